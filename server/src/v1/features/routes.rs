use axum::extract::State;
use loupe_wire::{FeatureSearchRequest, Object};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Read, Scope},
    body::Body,
    error::Result,
    json::Json,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search_features))
}

/// The documents nearest to a text, a picture or a vector, by one feature and without a retriever.
#[utoipa::path(post, path = "/v1/features/search", tag = "features", request_body = FeatureSearchRequest, responses((status = 200, body = std::collections::HashMap<String, serde_json::Value>)))]
async fn search_features(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<FeatureSearchRequest>,
) -> Result<Json<Object>> {
    super::search(&app, &scope, request).await.map(Json)
}
