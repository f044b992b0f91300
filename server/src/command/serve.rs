//! `loupe serve`: the data folder locked, the database open, the listener bound, until a signal.

use anyhow::Context;

use crate::{app, boot, config::Config};

pub async fn run(config: Config) -> anyhow::Result<()> {
    boot::log(&config);
    let listen = config.listen;
    let address = config.address();
    tracing::info!(settings = %serde_json::to_string(&config)?, "settings");
    let started = boot::open(config).await?;
    let listener = tokio::net::TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}: is another server running there?"))?;
    println!(
        "Loupe is running.\n  Console  {address}/console/\n  API      {address}/v1   (reference: {address}/docs)"
    );
    if let Some(secret) = &started.first_key {
        println!("  First key (shown once, keep it): {secret}");
    }
    boot::start_work(&started.app);
    let app = started.app.clone();
    let stop = app.stop.clone();
    app.spawn(async move {
        boot::signal().await;
        tracing::info!("stopping");
        stop.cancel();
    });
    let stop = app.stop.clone();
    let service =
        app::router(app.clone()).into_make_service_with_connect_info::<std::net::SocketAddr>();
    axum::serve(listener, service)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await?;
    started.close().await;
    Ok(())
}

pub async fn migrate(config: Config) -> anyhow::Result<()> {
    boot::log(&config);
    let started = boot::open(config).await?;
    println!("The schema is up to date.");
    started.close().await;
    Ok(())
}
