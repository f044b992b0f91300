use axum::{Json, extract::State};
use loupe_wire::{OrganizationModelResponse, OrganizationUpdateRequest};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org, Read},
    body::Body,
    error::Result,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_organization, update_organization))
}

/// The organization that the key belongs to.
#[utoipa::path(get, path = "/v1/organizations", tag = "organizations", responses((status = 200, body = OrganizationModelResponse)))]
async fn get_organization(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<OrganizationModelResponse>> {
    super::find(app.db(), &org.caller.org_id).await.map(Json)
}

/// Changes the organization's settings.
#[utoipa::path(patch, path = "/v1/organizations", tag = "organizations", request_body = OrganizationUpdateRequest, responses((status = 200, body = OrganizationModelResponse)))]
async fn update_organization(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<OrganizationUpdateRequest>,
) -> Result<Json<OrganizationModelResponse>> {
    super::update(&app, &org.caller, request).await.map(Json)
}
