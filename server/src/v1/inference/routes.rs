use axum::extract::State;
use loupe_wire::{RawInferenceRequest, RawInferenceResponse};
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
    OpenApiRouter::new().routes(routes!(run_inference))
}

/// Asks a model of this server: vectors of texts or a picture, scores of texts for a query, or the words of a language model.
#[utoipa::path(post, path = "/v1/inference", tag = "inference", request_body = RawInferenceRequest, responses((status = 200, body = RawInferenceResponse)))]
async fn run_inference(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<RawInferenceRequest>,
) -> Result<Json<RawInferenceResponse>> {
    super::infer(&app, &scope, request).await.map(Json)
}
