use axum::extract::{Path, State};
use loupe_wire::{
    CreateSnapshotRequest, CreateSnapshotResponse, GenericDeleteResponse, ListSnapshotsRequest,
    ListSnapshotsResponse, RestoreSnapshotRequest, RestoreSnapshotResponse, SnapshotDetailResponse,
    SnapshotVerifyResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::restore;
use crate::{
    app::App,
    auth::{Admin, OptionalScope},
    body::Body,
    error::Result,
    json::Json,
    list::Params,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_snapshot))
        .routes(routes!(list_snapshots))
        .routes(routes!(get_snapshot, delete_snapshot))
        .routes(routes!(restore_snapshot))
        .routes(routes!(verify_snapshot))
}

/// Takes a snapshot of a namespace: rows, documents and vectors, and with `copy_s3_objects` their files.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/snapshots", tag = "snapshots", request_body = CreateSnapshotRequest, responses((status = 200, body = CreateSnapshotResponse)))]
async fn create_snapshot(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<CreateSnapshotRequest>,
) -> Result<Json<CreateSnapshotResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    super::create(&app, caller, &identifier, request)
        .await
        .map(Json)
}

/// Snapshots of a namespace, newest first.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/snapshots/list", tag = "snapshots", request_body = Option<ListSnapshotsRequest>, responses((status = 200, body = ListSnapshotsResponse)))]
async fn list_snapshots(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<ListSnapshotsRequest>,
) -> Result<Json<ListSnapshotsResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    super::list(&app, caller, &identifier, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DetailQuery {
    /// With addresses of its files, which live for an hour.
    download: Option<bool>,
}

/// One snapshot, and how its last restoration went.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}", tag = "snapshots", params(DetailQuery), responses((status = 200, body = SnapshotDetailResponse)))]
async fn get_snapshot(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path((identifier, id)): Path<(String, String)>,
    Params(query): Params<DetailQuery>,
) -> Result<Json<SnapshotDetailResponse>> {
    let download = query.download.unwrap_or(false);
    let caller = scope.at(&app, &identifier).await?;
    super::get(&app, caller, &identifier, &id, download)
        .await
        .map(Json)
}

/// Removes a snapshot with its files.
#[utoipa::path(delete, path = "/v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}", tag = "snapshots", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_snapshot(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path((identifier, id)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    super::delete(&app, caller, &identifier, &id)
        .await
        .map(Json)
}

/// Restores a snapshot into a new namespace, or in place: then everything that it holds becomes what it was, and what was made
/// since stays.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/restore", tag = "snapshots", request_body = RestoreSnapshotRequest, responses((status = 200, body = RestoreSnapshotResponse)))]
async fn restore_snapshot(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path((identifier, id)): Path<(String, String)>,
    Body(request): Body<RestoreSnapshotRequest>,
) -> Result<Json<RestoreSnapshotResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    restore::start(&app, caller, &identifier, &id, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct VerifyQuery {
    /// Reads every file and compares its SHA-256, rather than its size alone.
    deep: Option<bool>,
}

/// Whether a snapshot can be restored: its files are there, and are what they were.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/snapshots/{snapshot_id}/verify", tag = "snapshots", params(VerifyQuery), responses((status = 200, body = SnapshotVerifyResponse)))]
async fn verify_snapshot(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path((identifier, id)): Path<(String, String)>,
    Params(query): Params<VerifyQuery>,
) -> Result<Json<SnapshotVerifyResponse>> {
    let deep = query.deep.unwrap_or(false);
    let caller = scope.at(&app, &identifier).await?;
    super::verify(&app, caller, &identifier, &id, deep)
        .await
        .map(Json)
}
