//! `cargo xtask web [--dev]`: builds the console and the style sheets into `dist/web`.

mod web;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask web [--dev]

  web         build the console and the style sheets into dist/web, compressed, within the size budget
  web --dev   the same without optimisation, compression and budget";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["web"] => web::build(web::Mode::Release),
        ["web", "--dev"] => web::build(web::Mode::Dev),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
