//! What is not `/v1`: health for balancers, the description of the API, the console's files.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{Html, IntoResponse},
    routing::get,
};
use utoipa::openapi::OpenApi;
use utoipa_scalar::Scalar;

use crate::app::App;

pub fn router(document: Arc<OpenApi>) -> Router<App> {
    let reference = Scalar::new((*document).clone()).to_html();
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route(
            "/v1/openapi.json",
            get(move || async move { Json((*document).clone()) }),
        )
        .route("/docs", get(move || async move { Html(reference.clone()) }))
}

/// 503 from the moment the process is told to stop, so that balancers send no more.
async fn ready(State(app): State<App>) -> impl IntoResponse {
    if app.stop.is_cancelled() || app.db().ping().await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready");
    }
    (StatusCode::OK, "ready")
}
