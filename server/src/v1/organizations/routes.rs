use axum::extract::State;
use loupe_wire::{
    OrganizationModelResponse, OrganizationQuotasResponse, OrganizationUpdateRequest,
};
use utoipa_axum::router::OpenApiRouter;

use super::{Clearing, rates, settings};
use crate::{
    app::App,
    auth::{Admin, Org, Read},
    error::Result,
    json::Json,
    limits::quota,
    openapi::routes,
    v1::billing,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_organization, update_organization))
        .routes(routes!(get_quotas))
}

/// The organization that the key belongs to.
#[utoipa::path(get, path = "/v1/organizations", tag = "organizations", responses((status = 200, body = OrganizationModelResponse)))]
async fn get_organization(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<OrganizationModelResponse>> {
    let found = super::find(app.db(), &org.caller.org_id).await?;
    let settings = settings::find(app.db(), &org.caller.org_id).await?;
    let mut found = rates::shown(&app, found, &settings);
    (found.credit_count, found.current_month_usage) = billing::month(&app, &org.caller).await?;
    Ok(Json(found))
}

/// Changes the organization's settings. A limit that is left out stays as it is; null takes limits and addresses away.
#[utoipa::path(patch, path = "/v1/organizations", tag = "organizations", request_body = OrganizationUpdateRequest, responses((status = 200, body = OrganizationModelResponse)))]
async fn update_organization(
    State(app): State<App>,
    org: Org<Admin>,
    sent: Clearing<OrganizationUpdateRequest>,
) -> Result<Json<OrganizationModelResponse>> {
    let mut changed = super::update(&app, &org.caller, sent).await?;
    (changed.credit_count, changed.current_month_usage) = billing::month(&app, &org.caller).await?;
    Ok(Json(changed))
}

/// How much of each quota the organization has used, over all its namespaces, and what its plan allows.
#[utoipa::path(get, path = "/v1/organizations/quotas", tag = "organizations", responses((status = 200, body = OrganizationQuotasResponse)))]
async fn get_quotas(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<OrganizationQuotasResponse>> {
    quota::uses(&app, &org.caller.org_id).await.map(Json)
}
