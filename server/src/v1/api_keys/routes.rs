use axum::{
    Json,
    extract::{Path, State},
};
use loupe_wire::{APIKeyCreateRequest, APIKeyCreateResponse, ApiKeyListResponse};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{Admin, Org},
    body::Body,
    error::{ApiError, Result},
    list,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_api_keys, create_api_key))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct KeysQuery {
    /// Adds revoked keys.
    include_revoked: Option<bool>,
    #[allow(
        dead_code,
        reason = "accepted by the interface; there are no session keys yet"
    )]
    include_session_keys: Option<bool>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for KeysQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Keys of a user. Secrets are never among the answers.
#[utoipa::path(get, path = "/v1/organizations/users/{user_email}/api-keys", tag = "api_keys", params(KeysQuery), responses((status = 200, body = ApiKeyListResponse)))]
async fn list_api_keys(
    State(app): State<App>,
    org: Org<Admin>,
    Path(email): Path<String>,
    query: KeysQuery,
) -> Result<Json<ApiKeyListResponse>> {
    let results = super::list(
        &app,
        &org.caller,
        &email,
        query.include_revoked.unwrap_or(false),
    )
    .await?;
    let total = i64::try_from(results.len()).unwrap_or(i64::MAX);
    Ok(Json(ApiKeyListResponse { results, total }))
}

/// Makes a key. The answer is the only place where its secret is seen.
#[utoipa::path(post, path = "/v1/organizations/users/{user_email}/api-keys", tag = "api_keys", request_body = APIKeyCreateRequest, responses((status = 200, body = APIKeyCreateResponse)))]
async fn create_api_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path(email): Path<String>,
    Body(request): Body<APIKeyCreateRequest>,
) -> Result<Json<APIKeyCreateResponse>> {
    let (key, secret) = super::create(&app, &org.caller, &email, request).await?;
    let model = serde_json::to_value(key).map_err(ApiError::internal)?;
    let mut response: APIKeyCreateResponse =
        serde_json::from_value(with_secret(model, &secret)).map_err(ApiError::internal)?;
    response.key = secret;
    Ok(Json(response))
}

/// The create response is the key's model plus its secret.
fn with_secret(mut model: serde_json::Value, secret: &str) -> serde_json::Value {
    model["key"] = secret.into();
    model
}
