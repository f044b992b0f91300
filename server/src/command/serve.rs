//! `loupe serve`: the data folder locked, the database open, the listener bound, until a signal.

use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    boot::{self, Signal},
    config::Config,
    serving,
};

pub async fn run(mut config: Config) -> anyhow::Result<()> {
    boot::log(&config);
    let listen = config.listen;
    let listener = tokio::net::TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: is another server running there?"))?;
    // Port 0 is any that is free: what answers say of this server's addresses has the one it got.
    config.listen = listener.local_addr()?;
    let address = config.address();
    tracing::info!(settings = %serde_json::to_string(&config)?, "settings");
    let started = boot::open(config).await?;
    println!(
        "Loupe is running.\n  Console  {address}/console/\n  API      {address}/v1   (reference: {address}/docs)"
    );
    if let Some(secret) = &started.first_key {
        println!("  First key (shown once, keep it): {secret}");
    }
    boot::start_work(&started.app);
    let app = started.app.clone();
    let closing = CancellationToken::new();
    tokio::spawn(close_when_told(app.clone(), closing.clone()));
    let late = async {
        closing.cancelled().await;
        tokio::time::sleep(LAST_REQUESTS).await;
    };
    tokio::select! {
        () = serving::serve(listener, app, closing.clone()) => {}
        () = late => tracing::warn!("the last requests did not end in time and are cut off"),
    }
    started.close().await;
    Ok(())
}

/// Longest time for the requests that are under way when the listener closes. With the wait for balancers before it and
/// that for background work after it, a process ends within 30 seconds of its signal.
const LAST_REQUESTS: Duration = Duration::from_secs(15);

/// At the signal `/readyz` fails and work is given back; new requests are taken for a moment longer, because those who send
/// them have not heard yet. Who sits at the keyboard, or says it twice, does not wait.
async fn close_when_told(app: App, closing: CancellationToken) {
    let signal = boot::signal().await;
    tracing::info!("stopping");
    app.leave();
    if signal == Signal::Terminate {
        let drain = Duration::from_secs(app.config().limits.drain_seconds.min(5));
        tokio::select! {
            () = tokio::time::sleep(drain) => {}
            _ = boot::signal() => {}
        }
    }
    closing.cancel();
}

pub async fn migrate(config: Config) -> anyhow::Result<()> {
    boot::log(&config);
    let started = boot::open(config).await?;
    println!("The schema is up to date.");
    started.close().await;
    Ok(())
}
