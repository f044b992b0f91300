//! `loupe demo`: the demo on the data folder itself, or on the server that runs there.

use std::time::Duration;

use anyhow::{Context, bail};
use loupe_wire::{TaskResponse, TaskStatusEnum, Value, reading};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    boot,
    config::Config,
    folder,
    outbound::tls,
    progress::Bar,
    v1::{
        organizations,
        quickstart::{self, QuickstartDemoResponse},
        tasks,
    },
};

/// Between two looks at the task.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(clap::Args)]
pub struct Demo {
    /// Address of the server that is asked when one runs; that of the settings by default
    #[arg(long)]
    url: Option<String>,
    /// Admin key for that server
    #[arg(long, env = "LOUPE_KEY", hide_env_values = true)]
    key: Option<SecretString>,
}

pub async fn run(config: Config, demo: Demo) -> anyhow::Result<()> {
    // A running server owns the folder and its output belongs to it: only errors are of interest here.
    boot::log(&Config {
        log: "error".into(),
        ..config.clone()
    });
    if demo.url.is_some() || folder::is_in_use(&config.data)? {
        let url = demo.url.unwrap_or_else(|| config.address());
        return on_server(url.trim_end_matches('/'), demo.key).await;
    }
    on_folder(config).await
}

/// Follows a task to its end with a bar.
async fn follow(
    look: impl AsyncFn() -> anyhow::Result<TaskResponse>,
) -> anyhow::Result<TaskResponse> {
    let mut bar = Bar::new("Reading pictures and texts");
    loop {
        let task = look().await?;
        let progress = task
            .additional_data
            .as_ref()
            .and_then(|data| data.get("progress"));
        let number = |member| {
            progress
                .and_then(|progress| progress.get(member)?.as_u64())
                .unwrap_or(0)
        };
        bar.show(number("processed"), number("total"));
        if tasks::is_terminal(task.status) {
            bar.end();
            return Ok(task);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What is said of a task that has ended.
fn judge(task: &TaskResponse) -> anyhow::Result<()> {
    match task.status {
        TaskStatusEnum::Completed => Ok(()),
        TaskStatusEnum::CompletedWithErrors => {
            eprintln!(
                "Some objects could not be read; the batch of the task {} names them.",
                task.task_id
            );
            Ok(())
        }
        _ => bail!(
            "the demo's objects could not be read: {}",
            task.error.as_deref().unwrap_or("the task was stopped")
        ),
    }
}

async fn on_server(url: &str, key: Option<SecretString>) -> anyhow::Result<()> {
    let key = key
        .context("a server runs on this data folder: send an admin key with --key or LOUPE_KEY")?;
    #[expect(
        clippy::disallowed_methods,
        reason = "a command asks the address of its own server"
    )]
    let http = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::client_config()?)
        .connect_timeout(Duration::from_secs(5))
        .build()?;
    let ask = async |request: reqwest::RequestBuilder| -> anyhow::Result<Value> {
        let answer = request
            .bearer_auth(key.expose_secret())
            .send()
            .await
            .with_context(|| {
                format!("the server at {url} does not answer: name its address with --url")
            })?;
        let (status, body) = (
            answer.status(),
            answer.json::<Value>().await.unwrap_or_default(),
        );
        if !status.is_success() {
            let message = body.pointer("/error/message").and_then(Value::as_str);
            bail!(
                "the server answered {status}: {}",
                message.unwrap_or("without a reason")
            );
        }
        Ok(body)
    };
    let made = ask(http.post(format!("{url}/v1/quickstart/demo"))).await?;
    let made: QuickstartDemoResponse = reading::from_value(&made)?;
    let address = format!("{url}/v1/tasks/{}", made.task_id);
    let task = follow(async || Ok(reading::from_value(&ask(http.get(&address)).await?)?)).await?;
    judge(&task)?;
    println!("The demo is ready: {}", made.public_url);
    Ok(())
}

async fn on_folder(config: Config) -> anyhow::Result<()> {
    let started = boot::open(config).await?;
    if let Some(secret) = &started.first_key {
        println!("First key, of the level admin (shown once, keep it): {secret}");
    }
    boot::start_work(&started.app);
    let done = make(&started).await;
    started.close().await;
    println!(
        "The demo is ready. Start the server with `loupe serve`, then open {}",
        done?
    );
    Ok(())
}

/// The address of the page, once everything in it can be found.
async fn make(started: &boot::Started) -> anyhow::Result<String> {
    let app = &started.app;
    let caller = organizations::local_caller(app).await?;
    let made = quickstart::demo(app, &caller).await?;
    let task = follow(async || Ok(tasks::get(app, &caller, None, &made.task_id).await?)).await?;
    judge(&task)?;
    Ok(made.public_url)
}
