use axum::extract::{Path, State};
use loupe_wire::{
    GenericDeleteResponse, ListSyncConfigurationsRequest, ListSyncJobsRequest,
    SyncConfigurationModel, SyncCreateRequest, SyncJobListResponse, SyncJobModel, SyncListResponse,
    SyncUpdateRequest, TaskResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_sync))
        .routes(routes!(list_syncs))
        .routes(routes!(get_sync, update_sync, delete_sync))
        .routes(routes!(pause_sync))
        .routes(routes!(resume_sync))
        .routes(routes!(trigger_sync))
        .routes(routes!(list_sync_jobs))
        .routes(routes!(get_sync_job))
}

/// Lets a bucket follow a folder of a storage: new files become objects, changed ones are read again, and what is gone goes.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs", tag = "syncs", request_body = SyncCreateRequest, responses((status = 200, body = SyncConfigurationModel), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_sync(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    Body(request): Body<SyncCreateRequest>,
) -> Result<Json<SyncConfigurationModel>> {
    super::create(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// What a bucket follows.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs/list", tag = "syncs", params(ListQuery), request_body = Option<ListSyncConfigurationsRequest>, responses((status = 200, body = SyncListResponse)))]
async fn list_syncs(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    query: ListQuery,
    Body(request): Body<ListSyncConfigurationsRequest>,
) -> Result<Json<SyncListResponse>> {
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let page = super::list(&app, &scope, &bucket, &params, &request).await?;
    Ok(Json(SyncListResponse {
        total: page.total_count(&params),
        results: page.results,
        pagination: page.pagination,
        ..Default::default()
    }))
}

/// One sync, with what its looks brought.
#[utoipa::path(get, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}", tag = "syncs", responses((status = 200, body = SyncConfigurationModel)))]
async fn get_sync(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, id)): Path<(String, String)>,
) -> Result<Json<SyncConfigurationModel>> {
    super::get(&app, &scope, &bucket, &id).await.map(Json)
}

/// Changes a sync from its next look on.
#[utoipa::path(patch, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}", tag = "syncs", request_body = SyncUpdateRequest, responses((status = 200, body = SyncConfigurationModel)))]
async fn update_sync(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, id)): Path<(String, String)>,
    Body(request): Body<SyncUpdateRequest>,
) -> Result<Json<SyncConfigurationModel>> {
    super::update(&app, &scope, &bucket, &id, request)
        .await
        .map(Json)
}

/// Removes a sync. The objects that it made stay.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}", tag = "syncs", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_sync(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((bucket, id)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &bucket, &id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the sync is removed; its objects stay".into(),
        ..Default::default()
    }))
}

/// Looks no more until the sync is resumed.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}/pause", tag = "syncs", responses((status = 200, body = SyncConfigurationModel)))]
async fn pause_sync(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, id)): Path<(String, String)>,
) -> Result<Json<SyncConfigurationModel>> {
    super::pause(&app, &scope, &bucket, &id).await.map(Json)
}

/// Looks again, at once and then by its plan.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}/resume", tag = "syncs", responses((status = 200, body = SyncConfigurationModel)))]
async fn resume_sync(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, id)): Path<(String, String)>,
) -> Result<Json<SyncConfigurationModel>> {
    super::resume(&app, &scope, &bucket, &id).await.map(Json)
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TriggerQuery {
    /// Reads files again that did not change.
    full_sync: Option<bool>,
}

/// Looks now.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}/trigger", tag = "syncs", params(TriggerQuery), responses((status = 200, body = TaskResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn trigger_sync(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, id)): Path<(String, String)>,
    Params(query): Params<TriggerQuery>,
) -> Result<Json<TaskResponse>> {
    let full = query.full_sync.unwrap_or(false);
    super::trigger(&app, &scope, &bucket, &id, full)
        .await
        .map(Json)
}

/// Looks of a sync, the newest first.
#[utoipa::path(post, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs", tag = "syncs", params(ListQuery), request_body = Option<ListSyncJobsRequest>, responses((status = 200, body = SyncJobListResponse)))]
async fn list_sync_jobs(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, id)): Path<(String, String)>,
    query: ListQuery,
    Body(request): Body<ListSyncJobsRequest>,
) -> Result<Json<SyncJobListResponse>> {
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let page = super::jobs(&app, &scope, &bucket, &id, &params, &request).await?;
    Ok(Json(SyncJobListResponse {
        total: page.total_count(&params),
        results: page.results,
        pagination: page.pagination,
        ..Default::default()
    }))
}

/// One look, with how far it is.
#[utoipa::path(get, path = "/v1/buckets/{bucket_id}/syncs/{sync_config_id}/jobs/{sync_job_id}", tag = "syncs", responses((status = 200, body = SyncJobModel)))]
async fn get_sync_job(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, id, job)): Path<(String, String, String)>,
) -> Result<Json<SyncJobModel>> {
    super::job(&app, &scope, &bucket, &id, &job).await.map(Json)
}
