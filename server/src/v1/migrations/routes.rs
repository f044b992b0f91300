use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    CancelMigrationRequest, CancelMigrationResponse, CreateMigrationRequest,
    CreateMigrationResponse, GetMigrationResponse, ListMigrationsRequest, ListMigrationsResponse,
    StartMigrationRequest, StartMigrationResponse, ValidateMigrationRequest,
    ValidateMigrationResponse,
};
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
        .routes(routes!(create_migration))
        .routes(routes!(list_migrations))
        .routes(routes!(validate_migration))
        .routes(routes!(get_migration, delete_migration))
        .routes(routes!(cancel_migration))
        .routes(routes!(start_migration))
}

/// Makes a migration: a copy of a namespace, an extension of another one by it, or a new one extracted anew from its objects.
#[utoipa::path(post, path = "/v1/namespaces/migrations/", tag = "migrations", request_body = CreateMigrationRequest, responses((status = 200, body = CreateMigrationResponse)))]
async fn create_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<CreateMigrationRequest>,
) -> Result<Json<CreateMigrationResponse>> {
    super::create(&app, &org.caller, request).await.map(Json)
}

/// Migrations that match, newest first.
#[utoipa::path(post, path = "/v1/namespaces/migrations/list", tag = "migrations", request_body = ListMigrationsRequest, responses((status = 200, body = ListMigrationsResponse)))]
async fn list_migrations(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<ListMigrationsRequest>,
) -> Result<Json<ListMigrationsResponse>> {
    super::list(&app, &org.caller, request).await.map(Json)
}

/// What a migration would take along, and what stands against it. Nothing is kept.
#[utoipa::path(post, path = "/v1/namespaces/migrations/validate", tag = "migrations", request_body = ValidateMigrationRequest, responses((status = 200, body = ValidateMigrationResponse)))]
async fn validate_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<ValidateMigrationRequest>,
) -> Result<Json<ValidateMigrationResponse>> {
    super::validate(&app, &org.caller, request).await.map(Json)
}

/// One migration, and how far it is.
#[utoipa::path(get, path = "/v1/namespaces/migrations/{migration_id}", tag = "migrations", responses((status = 200, body = GetMigrationResponse)))]
async fn get_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<GetMigrationResponse>> {
    super::get(&app, &org.caller, &id).await.map(Json)
}

/// Removes the record of a migration that is not under way.
#[utoipa::path(delete, path = "/v1/namespaces/migrations/{migration_id}", tag = "migrations", responses((status = 204)))]
async fn delete_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    super::delete(&app, &org.caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops a migration where it stands.
#[utoipa::path(post, path = "/v1/namespaces/migrations/{migration_id}/cancel", tag = "migrations", request_body = Option<CancelMigrationRequest>, responses((status = 200, body = CancelMigrationResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn cancel_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
    Body(request): Body<CancelMigrationRequest>,
) -> Result<Json<CancelMigrationResponse>> {
    super::cancel(&app, &org.caller, &id, request)
        .await
        .map(Json)
}

/// Starts a migration that was checked. `force` changes nothing: what stands against it would break the copy.
#[utoipa::path(post, path = "/v1/namespaces/migrations/{migration_id}/start", tag = "migrations", request_body = Option<StartMigrationRequest>, responses((status = 200, body = StartMigrationResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn start_migration(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
    Body(request): Body<StartMigrationRequest>,
) -> Result<Json<StartMigrationResponse>> {
    super::start(&app, &org.caller, &id, request.force)
        .await
        .map(Json)
}
