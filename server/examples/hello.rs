//! The smallest axum server, the yardstick of the benches: `hello [PORT [FOLDER]]` answers `{}` to everything, or with the
//! files of a folder.

use axum::{Json, Router};
use tower_http::services::ServeDir;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut given = std::env::args().skip(1);
    let port = given.next().and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    let router = match given.next() {
        Some(folder) => Router::new().fallback_service(ServeDir::new(folder)),
        None => Router::new().fallback(|| async { Json(serde_json::json!({})) }),
    };
    axum::serve(listener, router).await
}
