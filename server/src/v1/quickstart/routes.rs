use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;

use super::QuickstartDemoResponse;
use crate::{
    app::App,
    auth::{Admin, Org},
    error::Result,
    json::Json,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(start_demo))
}

/// Makes the demo: a namespace of pictures with descriptions, searched by a published page. Asked again, it answers
/// what is there and makes what is missing.
#[utoipa::path(post, path = "/v1/quickstart/demo", tag = "quickstart", responses((status = 200, body = QuickstartDemoResponse)))]
async fn start_demo(
    State(app): State<App>,
    org: Org<Admin>,
) -> Result<Json<QuickstartDemoResponse>> {
    super::demo(&app, &org.caller).await.map(Json)
}
