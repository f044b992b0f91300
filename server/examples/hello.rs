//! The smallest axum server, the yardstick of the benches: `hello [PORT]` answers `{}` to everything.

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|port| port.parse().ok())
        .unwrap_or(0);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    let router = axum::Router::new().fallback(|| async { axum::Json(serde_json::json!({})) });
    axum::serve(listener, router).await
}
