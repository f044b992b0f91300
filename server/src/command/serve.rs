//! `loupe serve`: the data folder locked, the database open, the listener bound, until a signal.

use std::{future::IntoFuture, time::Duration};

use anyhow::Context;
use axum::serve::ListenerExt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{self, App},
    boot::{self, Signal},
    config::Config,
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
    let service = app::router(started.app.clone())
        .into_make_service_with_connect_info::<std::net::SocketAddr>();
    let patience = Duration::from_secs(started.app.config().limits.request_seconds);
    let listener = listener.tap_io(move |stream| cut_slow_readers(stream, patience));
    let closing = CancellationToken::new();
    tokio::spawn(close_when_told(started.app.clone(), closing.clone()));
    let serving =
        axum::serve(listener, service).with_graceful_shutdown(closing.clone().cancelled_owned());
    let late = async {
        closing.cancelled().await;
        tokio::time::sleep(LAST_REQUESTS).await;
    };
    tokio::select! {
        served = serving.into_future() => served?,
        () = late => tracing::warn!("the last requests did not end in time and are cut off"),
    }
    started.close().await;
    Ok(())
}

/// Longest time for the requests that are under way when the listener closes. With the wait for balancers before it and
/// that for background work after it, a process ends within 30 seconds of its signal.
const LAST_REQUESTS: Duration = Duration::from_secs(15);

/// Has the system end a connection whose caller takes nothing of an answer for so long: it would hold what is left of the
/// answer for ever.
fn cut_slow_readers(stream: &TcpStream, patience: Duration) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(patience)) {
        tracing::warn!(%error, "callers that do not read are not cut off");
    }
}

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
