use axum::extract::{Path, State};
use loupe_wire::{
    APIKeyCreateRequest, APIKeyCreateResponse, APIKeyModel, APIKeyUpdateRequest,
    ApiKeyListResponse, CreateRetrieverAPIKeyRequest, GenericSuccessResponse,
    RetrieverAPIKeyListResponse, reading,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org, Scope},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_api_keys, create_api_key))
        .routes(routes!(update_api_key, revoke_api_key))
        .routes(routes!(rotate_api_key))
        .routes(routes!(list_retriever_api_keys, create_retriever_api_key))
        .routes(routes!(revoke_retriever_api_key))
}

macro_rules! from_query {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> axum::extract::FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        })*
    };
}

from_query!(KeysQuery, RetrieverKeysQuery, RevokeQuery);

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

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct RetrieverKeysQuery {
    /// Adds revoked keys.
    include_revoked: Option<bool>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct RevokeQuery {
    /// Revokes a key that is in use.
    force: Option<bool>,
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
#[utoipa::path(post, path = "/v1/organizations/users/{user_email}/api-keys", tag = "api_keys", request_body = APIKeyCreateRequest, responses((status = 200, body = APIKeyCreateResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_api_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path(email): Path<String>,
    Body(request): Body<APIKeyCreateRequest>,
) -> Result<Json<APIKeyCreateResponse>> {
    shown_once(super::create(&app, &org.caller, &email, request).await?)
}

/// Changes a key's settings. An empty list of scopes widens it to the whole organization; expiry is final.
#[utoipa::path(patch, path = "/v1/organizations/users/{user_email}/api-keys/{key_name}", tag = "api_keys", request_body = APIKeyUpdateRequest, responses((status = 200, body = APIKeyModel), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn update_api_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path((email, name)): Path<(String, String)>,
    Body(request): Body<APIKeyUpdateRequest>,
) -> Result<Json<APIKeyModel>> {
    super::update(&app, &org.caller, &email, &name, request)
        .await
        .map(Json)
}

/// Revokes a key for good. Refused while it is in use, with what was found, unless forced.
#[utoipa::path(delete, path = "/v1/organizations/users/{user_email}/api-keys/{key_name}", tag = "api_keys", params(RevokeQuery), responses((status = 200, body = GenericSuccessResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn revoke_api_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path((email, name)): Path<(String, String)>,
    query: RevokeQuery,
) -> Result<Json<GenericSuccessResponse>> {
    let force = query.force.unwrap_or(false);
    super::revoke(&app, &org.caller, &email, &name, force).await?;
    Ok(done("the key was revoked"))
}

/// Gives a key a new secret. The old one is refused from the next request on; id and settings stay. Live apps that have the old
/// one in them are told.
#[utoipa::path(post, path = "/v1/organizations/users/{user_email}/api-keys/{key_name}/rotate", tag = "api_keys", responses((status = 200, body = APIKeyCreateResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn rotate_api_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path((email, name)): Path<(String, String)>,
) -> Result<Json<APIKeyCreateResponse>> {
    let (key, secret, referencing) = super::rotate(&app, &org.caller, &email, &name).await?;
    let Json(mut told) = shown_once((key, secret))?;
    told.referencing_apps = referencing;
    Ok(Json(told))
}

/// Keys that execute this retriever and can do nothing else.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/api-keys", tag = "retriever_api_keys", params(RetrieverKeysQuery), responses((status = 200, body = RetrieverAPIKeyListResponse)))]
async fn list_retriever_api_keys(
    State(app): State<App>,
    scope: Scope<Admin>,
    Path(retriever): Path<String>,
    query: RetrieverKeysQuery,
) -> Result<Json<RetrieverAPIKeyListResponse>> {
    let revoked = query.include_revoked.unwrap_or(false);
    let results = super::list_for_retriever(&app, &scope, &retriever, revoked).await?;
    let total = i64::try_from(results.len()).unwrap_or(i64::MAX);
    Ok(Json(RetrieverAPIKeyListResponse {
        results,
        total,
        ..Default::default()
    }))
}

/// Makes a key that executes this retriever and can do nothing else. The answer is the only place where its secret is seen.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/api-keys", tag = "retriever_api_keys", request_body = CreateRetrieverAPIKeyRequest, responses((status = 200, body = APIKeyCreateResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_retriever_api_key(
    State(app): State<App>,
    scope: Scope<Admin>,
    Path(retriever): Path<String>,
    Body(request): Body<CreateRetrieverAPIKeyRequest>,
) -> Result<Json<APIKeyCreateResponse>> {
    shown_once(super::create_for_retriever(&app, &scope, &retriever, request).await?)
}

/// Revokes a key of this retriever, at once. Refused while it is in use, with what was found, unless forced.
#[utoipa::path(delete, path = "/v1/retrievers/{retriever_id}/api-keys/{key_id}", tag = "retriever_api_keys", params(RevokeQuery), responses((status = 200, body = GenericSuccessResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn revoke_retriever_api_key(
    State(app): State<App>,
    scope: Scope<Admin>,
    Path((retriever, key_id)): Path<(String, String)>,
    query: RevokeQuery,
) -> Result<Json<GenericSuccessResponse>> {
    let force = query.force.unwrap_or(false);
    super::revoke_for_retriever(&app, &scope, &retriever, &key_id, force).await?;
    Ok(done("the key was revoked"))
}

fn done(message: &str) -> Json<GenericSuccessResponse> {
    Json(GenericSuccessResponse {
        message: message.into(),
        success: true,
    })
}

/// A key's model with its secret.
fn shown_once((key, secret): (APIKeyModel, String)) -> Result<Json<APIKeyCreateResponse>> {
    let mut model = serde_json::to_value(key).map_err(ApiError::internal)?;
    model["key"] = secret.into();
    reading::from_value(&model)
        .map(Json)
        .map_err(ApiError::internal)
}
