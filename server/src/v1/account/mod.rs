//! Who the key is.

use axum::extract::State;
use loupe_wire::{MeKeyInfo, MeResponse};
use utoipa_axum::router::OpenApiRouter;

use super::{organizations, users};
use crate::{
    app::App,
    auth::{Org, Read},
    error::Result,
    json::Json,
    limits,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_me))
}

/// Which organization the key belongs to and what it may do. Works for every valid key.
#[utoipa::path(get, path = "/v1/me", tag = "account", responses((status = 200, body = MeResponse)))]
async fn get_me(State(app): State<App>, org: Org<Read>) -> Result<Json<MeResponse>> {
    let organization = organizations::find(app.db(), &org.caller.org_id).await?;
    let key = &org.caller.key;
    // Keys of retrievers and of end users are in the hands of strangers: whose they were made by is not for them.
    let user = match org.caller.is_retriever_key() || org.caller.principal().is_some() {
        true => None,
        false => users::find_by_id(app.db(), &org.caller.org_id, &key.user_id).await?,
    };
    let standing = limits::standing(&app, &org.caller.org_id).await?;
    let rate = limits::rate(&app, &org.caller, standing);
    let rate_limits = [
        ("requests_per_minute", rate.per_minute),
        ("requests_per_second", rate.per_second),
        ("burst", rate.burst),
        ("concurrent_requests", rate.concurrent),
    ];
    Ok(Json(MeResponse {
        organization_id: organization.organization_id,
        organization_name: Some(organization.organization_name),
        account_type: name(organization.account_type),
        user_email: user.map(|user| user.email),
        key: MeKeyInfo {
            key_id: key.key_id.clone(),
            name: Some(key.name.clone()),
            key_type: Some(name(key.key_type)),
            permissions: key.permissions.iter().map(name).collect(),
            scopes: key.scopes.clone(),
            expires_at: key.expires_at,
        },
        rate_limits: rate_limits
            .into_iter()
            .map(|(name, figure)| (name.to_owned(), figure))
            .collect(),
        principal_scoped: key.principal_id.is_some(),
    }))
}

/// The wire name of an enum's case.
fn name(value: impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(ToOwned::to_owned))
        .unwrap_or_default()
}
