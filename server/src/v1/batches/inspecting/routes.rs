use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_wire::{
    BatchAuditResponse, BatchCostEstimate, BatchRequeueResponse, BulkUpdateDocumentsResponse,
    HealTierRequest, NamespaceOperation, Object, SubmitAllResponse, TaskResponse, Value,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list,
    openapi::routes,
    v1::batches::{
        bucket_id, healing,
        stopping::{self, Named, Stop},
    },
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
        .routes(routes!(cancel_batch_tier))
        .routes(routes!(cancel_batch_tier_job))
        .routes(routes!(heal_batch_tier))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsQuery {
    /// Only of this tier, counted from 0.
    tier_num: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ReasonQuery {
    /// Why, kept with the batch.
    reason: Option<String>,
}

macro_rules! query_extractor {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        })*
    };
}
query_extractor!(LogsQuery, ReasonQuery);

fn number(tier: &str) -> Result<i64> {
    tier.parse().map_err(|_| ApiError::not_found("tier", tier))
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
    let tier = number(&tier)?;
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ExecuteJob).await?;
    super::retry_tier(&app, &scope, &bucket, &batch, tier)
        .await
        .map(Json)
}

async fn named(app: &App, scope: &Scope<Write>, bucket: &str, batch: String) -> Result<Named> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::CancelJob).await?;
    Ok(Named {
        org_id: scope.caller.org_id.clone(),
        namespace_id: scope.namespace_id.clone(),
        bucket_id,
        batch_id: batch,
    })
}

/// Stops a tier that has not ended: what waits for it or comes to it goes no further, what came out of it goes on. What was
/// written stays.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/cancel", tag = "batches", params(ReasonQuery), responses((status = 200, body = TaskResponse)))]
async fn cancel_batch_tier(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch, tier)): Path<(String, String, String)>,
    query: ReasonQuery,
) -> Result<Json<TaskResponse>> {
    let tier = number(&tier)?;
    let named = named(&app, &scope, &bucket, batch).await?;
    let (job_id, reason) = (None, query.reason);
    let stop = Stop {
        tier,
        job_id,
        reason,
    };
    stopping::cancel_tier(&app, named, stop).await.map(Json)
}

/// Stops one job of a tier, by its `ray_job_id`: its collection gets nothing more of this batch, the others of the tier do.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/jobs/{job_id}/cancel", tag = "batches", params(ReasonQuery), responses((status = 200, body = std::collections::HashMap<String, Value>)))]
async fn cancel_batch_tier_job(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch, tier, job)): Path<(String, String, String, String)>,
    query: ReasonQuery,
) -> Result<Json<Object>> {
    let tier = number(&tier)?;
    let named = named(&app, &scope, &bucket, batch).await?;
    let (job_id, reason) = (Some(job), query.reason);
    let stop = Stop {
        tier,
        job_id,
        reason,
    };
    stopping::cancel_job(&app, named, stop).await.map(Json)
}

/// Starts again what stands still in a tier that runs; of a batch that has ended, makes what the tier lacks.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/tiers/{tier_num}/heal", tag = "batches", request_body = HealTierRequest, responses((status = 200, body = std::collections::HashMap<String, Value>)))]
async fn heal_batch_tier(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch, tier)): Path<(String, String, String)>,
    Body(request): Body<HealTierRequest>,
) -> Result<Json<Object>> {
    let tier = number(&tier)?;
    let bucket = bucket_id(&app, &scope, &bucket, NamespaceOperation::ExecuteJob).await?;
    healing::heal(&app, &scope, &bucket, &batch, tier, request.action)
        .await
        .map(Json)
}
