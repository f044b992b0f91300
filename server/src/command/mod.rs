//! The command line.

mod backup;
mod demo;
mod keys;
mod serve;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};

use crate::config::Config;

/// Files in, searchable documents out, retrievers over them, published as pages.
#[derive(Parser)]
#[command(name = "loupe", version)]
struct Arguments {
    /// File of settings, loupe.toml where there is one; every member can also be set as LOUPE_<MEMBER>.
    #[arg(long, env = "LOUPE_CONFIG", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server: the API, the console and the public pages
    Serve,
    /// Bring the database's schema up to date and exit
    Migrate,
    /// Make and list API keys on the data folder, while no server runs on it
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Fill a namespace with pictures and publish a search page over it
    Demo(demo::Demo),
    /// Copy the data folder, while no server runs on it
    Backup {
        /// A new folder for the copy
        to: PathBuf,
    },
    /// Decode files that arrive on standard input; run by the server, never by hand
    #[command(hide = true)]
    ExtractWorker,
    /// Print the description of the API (OpenAPI 3.1)
    Openapi,
}

/// Runs the command line; an error is one sentence on stderr.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if matches!(arguments.command, Command::ExtractWorker) {
        return loupe_engine::extract::worker::main();
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("loupe: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    if matches!(arguments.command, Command::Openapi) {
        print!("{}", crate::openapi::printed());
        return Ok(());
    }
    let config = Config::load(arguments.config.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = match arguments.command {
        Command::Serve => runtime.block_on(serve::run(config)),
        Command::Migrate => runtime.block_on(serve::migrate(config)),
        Command::Keys(keys) => runtime.block_on(keys::run(config, keys)),
        Command::Demo(demo) => runtime.block_on(demo::run(config, demo)),
        Command::Backup { to } => runtime.block_on(backup::run(config, &to)),
        Command::Openapi | Command::ExtractWorker => Ok(()),
    };
    // Whatever computes on a thread of its own is not waited for: nothing of it was announced.
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}
