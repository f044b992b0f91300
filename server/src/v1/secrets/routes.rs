use axum::extract::{Path, State};
use loupe_wire::{CreateSecretRequest, SecretResponse, SecretsListResponse, UpdateSecretRequest};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org},
    body::Body,
    error::Result,
    json::Json,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_secrets, create_secret))
        .routes(routes!(replace_secret, delete_secret))
}

/// Names of the organization's secrets; their values are never told.
#[utoipa::path(get, path = "/v1/organizations/secrets", tag = "secrets", responses((status = 200, body = SecretsListResponse)))]
async fn list_secrets(
    State(app): State<App>,
    org: Org<Admin>,
) -> Result<Json<SecretsListResponse>> {
    let secrets = super::list(&app, &org.caller).await?;
    let count = i64::try_from(secrets.len()).unwrap_or(i64::MAX);
    Ok(Json(SecretsListResponse { secrets, count }))
}

/// Keeps a secret, encrypted.
#[utoipa::path(post, path = "/v1/organizations/secrets", tag = "secrets", request_body = CreateSecretRequest, responses((status = 200, body = SecretResponse)))]
async fn create_secret(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<CreateSecretRequest>,
) -> Result<Json<SecretResponse>> {
    let secret_name = super::create(&app, &org.caller, request).await?;
    Ok(Json(SecretResponse {
        secret_name,
        created: Some(true),
        ..Default::default()
    }))
}

/// Changes a secret's value.
#[utoipa::path(put, path = "/v1/organizations/secrets/{secret_name}", tag = "secrets", request_body = UpdateSecretRequest, responses((status = 200, body = SecretResponse)))]
async fn replace_secret(
    State(app): State<App>,
    org: Org<Admin>,
    Path(secret_name): Path<String>,
    Body(request): Body<UpdateSecretRequest>,
) -> Result<Json<SecretResponse>> {
    super::replace(&app, &org.caller, &secret_name, &request.secret_value).await?;
    Ok(Json(SecretResponse {
        secret_name,
        updated: Some(true),
        ..Default::default()
    }))
}

/// Removes a secret.
#[utoipa::path(delete, path = "/v1/organizations/secrets/{secret_name}", tag = "secrets", responses((status = 200, body = SecretResponse)))]
async fn delete_secret(
    State(app): State<App>,
    org: Org<Admin>,
    Path(secret_name): Path<String>,
) -> Result<Json<SecretResponse>> {
    super::delete(&app, &org.caller, &secret_name).await?;
    Ok(Json(SecretResponse {
        secret_name,
        deleted: Some(true),
        ..Default::default()
    }))
}
