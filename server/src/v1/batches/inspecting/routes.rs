use axum::{
    Json,
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_wire::{
    BatchAuditResponse, BatchCostEstimate, BatchRequeueResponse, BulkUpdateDocumentsResponse,
    NamespaceOperation, Object, SubmitAllResponse, Value,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    error::{ApiError, Result},
    list,
    openapi::routes,
    v1::batches::bucket_id,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(audit_batch))
        .routes(routes!(diagnose_batch))
        .routes(routes!(get_batch_logs))
        .routes(routes!(estimate_batch_cost))
        .routes(routes!(submit_all_batches))
        .routes(routes!(delete_batch_documents))
        .routes(routes!(retry_batch_tier))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsQuery {
    /// Only of this tier, counted from 0.
    tier_num: Option<i64>,
}

impl<S: Send + Sync> FromRequestParts<S> for LogsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Every object of every tier accounted for.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/audit", tag = "batches", responses((status = 200, body = BatchAuditResponse)))]
async fn audit_batch(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<BatchAuditResponse>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    super::audit(&app, &scope, &bucket, &batch).await.map(Json)
}

/// What stands in the way of a batch, with what to do about it.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/diagnose", tag = "batches", responses((status = 200, body = std::collections::HashMap<String, Value>)))]
async fn diagnose_batch(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<Object>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    super::diagnose(&app, &scope, &bucket, &batch)
        .await
        .map(Json)
}

/// What happened to a batch, in the order in which it did, with at most 1,000 failures.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/logs", tag = "batches", params(LogsQuery), responses((status = 200, body = Value)))]
async fn get_batch_logs(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch)): Path<(String, String)>,
    query: LogsQuery,
) -> Result<Json<Value>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    super::logs(&app, &scope, &bucket, &batch, query.tier_num)
        .await
        .map(Json)
}

/// What processing a batch would cost now; objects that are unchanged cost nothing.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/estimate-cost", tag = "batches", responses((status = 200, body = BatchCostEstimate)))]
async fn estimate_batch_cost(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<BatchCostEstimate>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    super::estimate(&app, &scope, &bucket, &batch)
        .await
        .map(Json)
}

/// Queues every draft of a bucket, at most 1,000, oldest first; each is queued or refused by itself.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/submit-all", tag = "batches", responses((status = 200, body = SubmitAllResponse)))]
async fn submit_all_batches(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
) -> Result<Json<SubmitAllResponse>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ExecuteJob).await?;
    super::submit_all(&app, &scope, &bucket).await.map(Json)
}

/// Removes the documents that a batch wrote, with what was made of them; its objects are processed anew by the next run.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/documents", tag = "batches", responses((status = 200, body = BulkUpdateDocumentsResponse)))]
async fn delete_batch_documents(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<BulkUpdateDocumentsResponse>> {
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::DeleteData).await?;
    super::remove_documents(&app, &scope, &bucket, &batch)
        .await
        .map(Json)
}

/// Puts back what failed in a tier and queues the batch again, from that tier.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/retry", tag = "batches", responses((status = 200, body = BatchRequeueResponse)))]
async fn retry_batch_tier(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch, tier)): Path<(String, String, String)>,
) -> Result<Json<BatchRequeueResponse>> {
    let number = tier.parse();
    let tier = number.map_err(|_| ApiError::not_found("tier", &tier))?;
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ExecuteJob).await?;
    super::retry_tier(&app, &scope, &bucket, &batch, tier)
        .await
        .map(Json)
}
