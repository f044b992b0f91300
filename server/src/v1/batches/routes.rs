use axum::{
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts},
};
use loupe_wire::{
    AddObjectsToBatchRequest, BatchModel, BatchQueueResponse, BatchRequeueResponse,
    BulkSubmitBatchesRequest, BulkSubmitBatchesResponse, CreateBatchRequest,
    FailedDocumentsResponse, GenericDeleteResponse, ListBatchesRequest, ListBatchesResponse,
    NamespaceOperation, PatchBatchRequest, QueuedBatch, RetryBatchRequest,
    RetryBatchRequestRetryMode, SubmitBatchRequest, TaskResponse, TaskStatusEnum,
    TriggerCollectionRequest, TriggerCollectionResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Again,
    asks::{self, CheckQuery, ResubmitQuery},
    store::{self, Asked, Failures},
};
use crate::{
    app::App,
    auth::{Delete, OptionalScope, Read, Scope, Write},
    body::Body,
    clock,
    error::{ApiError, Result},
    json::Json,
    list::{self, Params},
    openapi::routes,
    v1::collections,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(super::inspecting::router())
        .routes(routes!(create_batch))
        .routes(routes!(list_bucket_batches))
        .routes(routes!(bulk_submit))
        .routes(routes!(get_batch, update_batch, delete_batch))
        .routes(routes!(add_objects))
        .routes(routes!(submit_batch))
        .routes(routes!(cancel_batch))
        .routes(routes!(retry_batch))
        .routes(routes!(resubmit_batch))
        .routes(routes!(list_failed_documents))
        .routes(routes!(list_batches))
        .routes(routes!(get_queue))
        .routes(routes!(get_any_batch))
        .routes(routes!(cancel_any_batch))
        .routes(routes!(trigger_collection))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct WindowQuery {
    /// 1 to 1000, default 100.
    limit: Option<i64>,
    /// From 0.
    offset: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FailuresQuery {
    /// Only what failed in this tier, counted from 0.
    tier_num: Option<i64>,
    /// Only what failed on its way into this collection.
    collection_id: Option<String>,
    /// 1 to 1000, default 100.
    limit: Option<i64>,
    /// From 0.
    offset: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct CreateQuery {
    /// Submits the batch at once.
    auto_submit: Option<bool>,
    /// The same.
    trigger_processing: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SubmitQuery {
    /// Processes all objects of the batch, also those that are done already.
    force: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct CancelQuery {
    /// Why, kept with the batch and its task, and told in the change feed.
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
query_extractor!(
    WindowQuery,
    FailuresQuery,
    CreateQuery,
    SubmitQuery,
    CancelQuery
);

/// Makes a batch of objects of the bucket.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches", tag = "batches", params(CreateQuery, CheckQuery), request_body = CreateBatchRequest, responses((status = 200, body = BatchModel)))]
async fn create_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    query: CreateQuery,
    Params(check): Params<CheckQuery>,
    Body(mut request): Body<CreateBatchRequest>,
) -> Result<Json<BatchModel>> {
    request.auto_submit = request.auto_submit.max(query.auto_submit);
    request.trigger_processing = request.trigger_processing.max(query.trigger_processing);
    if let Some(ids) = request.object_ids.take() {
        request.object_ids = Some(check.of(&app, &scope, &bucket, ids).await?);
    }
    super::create(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// Batches of a bucket, newest first. `next_cursor` of a page is the `cursor` of the next.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/list", tag = "batches", params(WindowQuery), request_body = ListBatchesRequest, responses((status = 200, body = ListBatchesResponse)))]
async fn list_bucket_batches(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    query: WindowQuery,
    Body(request): Body<ListBatchesRequest>,
) -> Result<Json<ListBatchesResponse>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    let asked = Asked {
        org_id: scope.caller.org_id,
        namespace_id: scope.namespace_id,
        bucket_id,
        ..Default::default()
    };
    let window = (query.limit, query.offset);
    let page = super::listing::page(&app, asked, window, &request).await?;
    Ok(Json(page))
}

/// Batches of the organization, newest first; X-Namespace narrows.
#[utoipa::path(post, path = "/v1/batches/list", tag = "batches", params(WindowQuery), request_body = ListBatchesRequest, responses((status = 200, body = ListBatchesResponse)))]
async fn list_batches(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: WindowQuery,
    Body(request): Body<ListBatchesRequest>,
) -> Result<Json<ListBatchesResponse>> {
    let asked = Asked {
        org_id: scope.caller.org_id,
        namespace_id: asks::namespace(scope.namespace_id, request.namespace_id.as_deref())?,
        bucket_id: request.bucket_id.clone().unwrap_or_default(),
        ..Default::default()
    };
    let window = (query.limit, query.offset);
    let page = super::listing::page(&app, asked, window, &request).await?;
    Ok(Json(page))
}

/// One batch of a bucket, with its progress.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}", tag = "batches", responses((status = 200, body = BatchModel)))]
async fn get_batch(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<BatchModel>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    super::get(
        &app,
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        &batch,
    )
    .await
    .map(Json)
}

/// One batch, wherever it is.
#[utoipa::path(get, path = "/v1/batches/{batch_id}", tag = "batches", responses((status = 200, body = BatchModel)))]
async fn get_any_batch(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    Path(batch): Path<String>,
) -> Result<Json<BatchModel>> {
    let namespace = scope.namespace_id.unwrap_or_default();
    super::get(&app, &scope.caller.org_id, &namespace, "", &batch)
        .await
        .map(Json)
}

/// Changes the metadata of a batch.
#[utoipa::path(patch, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}", tag = "batches", request_body = PatchBatchRequest, responses((status = 200, body = BatchModel)))]
async fn update_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch_id)): Path<(String, String)>,
    Body(request): Body<PatchBatchRequest>,
) -> Result<Json<BatchModel>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::WriteData).await?;
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let (id, bucket) = (batch_id.clone(), bucket_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &id, now).await?;
                let mut batch = store::find_in(tx, &org_id, &namespace_id, &bucket, &id).await?;
                batch.metadata = request.metadata.unwrap_or(batch.metadata);
                batch.updated_at = Some(clock::time(now));
                store::update(tx, &batch, now).await
            })
        })
        .await?;
    super::get(
        &app,
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        &batch_id,
    )
    .await
    .map(Json)
}

/// Removes a batch that does not run. Documents stay.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}", tag = "batches", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_batch(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((bucket, batch)): Path<(String, String)>,
) -> Result<Json<GenericDeleteResponse>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::DeleteData).await?;
    super::delete(&app, &scope, &bucket_id, &batch).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Adds objects to a draft.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/objects", tag = "batches", params(CheckQuery), request_body = AddObjectsToBatchRequest, responses((status = 200, body = BatchModel)))]
async fn add_objects(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch)): Path<(String, String)>,
    Params(check): Params<CheckQuery>,
    Body(request): Body<AddObjectsToBatchRequest>,
) -> Result<Json<BatchModel>> {
    let object_ids = check.of(&app, &scope, &bucket, request.object_ids).await?;
    super::add_objects(&app, &scope, &bucket, &batch, object_ids)
        .await
        .map(Json)
}

/// Queues a batch, a canceled one by `resubmit` alone. An answer means that it is on disk.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/submit", tag = "batches", params(SubmitQuery), request_body = SubmitBatchRequest, responses((status = 200, body = TaskResponse)))]
async fn submit_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch)): Path<(String, String)>,
    query: SubmitQuery,
    Body(request): Body<SubmitBatchRequest>,
) -> Result<Json<TaskResponse>> {
    let again = match query.force {
        Some(true) => Again::Everything,
        _ => Again::Unfinished,
    };
    super::submit(&app, &scope, &bucket, &batch, request, again)
        .await
        .map(Json)
}

/// Stops a batch; what was written stays.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/cancel", tag = "batches", params(CancelQuery), responses((status = 200, body = TaskResponse)))]
async fn cancel_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch)): Path<(String, String)>,
    query: CancelQuery,
) -> Result<Json<TaskResponse>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::CancelJob).await?;
    super::cancel(
        &app,
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        &batch,
        query.reason,
    )
    .await
    .map(Json)
}

/// Stops a batch, wherever it is.
#[utoipa::path(post, path = "/v1/batches/{batch_id}/cancel", tag = "batches", params(CancelQuery), responses((status = 200, body = TaskResponse)))]
async fn cancel_any_batch(
    State(app): State<App>,
    scope: OptionalScope<Write>,
    Path(batch): Path<String>,
    query: CancelQuery,
) -> Result<Json<TaskResponse>> {
    let (org_id, reason) = (&scope.caller.org_id, query.reason);
    let namespace = scope.namespace_id.unwrap_or_default();
    super::cancel(&app, org_id, &namespace, "", &batch, reason)
        .await
        .map(Json)
}

/// Puts failed objects back, those of the tiers in `tier_nums` or all, and queues the batch again. What fails for passing
/// reasons is retried by itself from then on, `max_retry_count` times at most.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/retry", tag = "batches", request_body = RetryBatchRequest, responses((status = 200, body = BatchRequeueResponse)))]
async fn retry_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch_id)): Path<(String, String)>,
    Body(request): Body<RetryBatchRequest>,
) -> Result<Json<BatchRequeueResponse>> {
    let error_type = match request.retry_mode {
        RetryBatchRequestRetryMode::All => String::new(),
        RetryBatchRequestRetryMode::TransientOnly => "transient".into(),
    };
    let again = Again::Asked {
        tiers: request.tier_nums.unwrap_or_default(),
        error_type,
        most: request.max_retry_count,
    };
    let (task, retried) = super::retry(&app, &scope, &bucket, &batch_id, again).await?;
    let (status, task_id) = (TaskStatusEnum::Queued, Some(task.task_id));
    Ok(Json(BatchRequeueResponse {
        batch_id,
        status,
        task_id,
        retried_count: Some(retried),
    }))
}

/// Queues an ended batch again; objects that are done are passed over.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/resubmit", tag = "batches", params(ResubmitQuery), responses((status = 200, body = BatchRequeueResponse)))]
async fn resubmit_batch(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, batch_id)): Path<(String, String)>,
    Params(query): Params<ResubmitQuery>,
) -> Result<Json<BatchRequeueResponse>> {
    let task = super::resubmit(&app, &scope, &bucket, &batch_id, query.tier()?).await?;
    let (status, task_id) = (TaskStatusEnum::Queued, Some(task.task_id));
    Ok(Json(BatchRequeueResponse {
        batch_id,
        status,
        task_id,
        retried_count: None,
    }))
}

/// Objects that failed, with the reasons.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/batches/{batch_id}/failed-documents", tag = "batches", params(FailuresQuery), responses((status = 200, body = FailedDocumentsResponse)))]
async fn list_failed_documents(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, batch_id)): Path<(String, String)>,
    query: FailuresQuery,
) -> Result<Json<FailedDocumentsResponse>> {
    let bucket_id = super::bucket_id(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    store::find(
        app.db(),
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        &batch_id,
    )
    .await?;
    let limit = list::within("limit", query.limit, 100, (1, 1000))?;
    let offset = list::within("offset", query.offset, 0, (0, i64::MAX))?;
    let which = Failures {
        tier: query.tier_num.unwrap_or(-1),
        collection_id: query.collection_id.unwrap_or_default(),
    };
    let (results, total) =
        super::failures(&app, &scope.namespace_id, &batch_id, &which, limit, offset).await?;
    Ok(Json(FailedDocumentsResponse {
        batch_id,
        results,
        total,
        limit,
        offset,
    }))
}

/// The queue as this organization sees it: positions count over everybody.
#[utoipa::path(get, path = "/v1/batches/queue", tag = "batches", responses((status = 200, body = BatchQueueResponse)))]
async fn get_queue(
    State(app): State<App>,
    scope: OptionalScope<Read>,
) -> Result<Json<BatchQueueResponse>> {
    let waiting = store::places(app.db(), &scope.caller.org_id).await?;
    let mine = waiting.into_iter().map(|place| QueuedBatch {
        batch_id: place.batch_id,
        bucket_id: Some(place.bucket_id),
        namespace_id: Some(place.namespace_id),
        position: place.position,
        priority: None,
        queued_at: place.queued_at.map(clock::time),
    });
    let max_concurrency = i64::try_from(app.config().jobs.running_batches).unwrap_or(i64::MAX);
    Ok(Json(BatchQueueResponse {
        active_jobs: store::running(app.db()).await?,
        max_concurrency,
        waiting: mine.collect(),
    }))
}

/// Splits the bucket into batches and queues each. The same again, while one of them waits or runs, answers those. A bucket
/// that takes longer than 20 seconds to split is answered before its end: then `total_objects` and `total_batches` are the
/// most that it can come to, and the same request again tells how far it is.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/batches/bulk-submit", tag = "batches", request_body = BulkSubmitBatchesRequest, responses((status = 200, body = BulkSubmitBatchesResponse)))]
async fn bulk_submit(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    Body(request): Body<BulkSubmitBatchesRequest>,
) -> Result<Json<BulkSubmitBatchesResponse>> {
    super::splitting::bulk_submit(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// Processes every object of the collection's buckets, one batch a bucket; of a collection over collections every document
/// of those. With `reembed` nothing is processed: the texts that documents of the collection hold are embedded again.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/trigger", tag = "collections", request_body = TriggerCollectionRequest, responses((status = 202, body = TriggerCollectionResponse)))]
async fn trigger_collection(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(collection): Path<String>,
    Body(request): Body<TriggerCollectionRequest>,
) -> Result<(StatusCode, Json<TriggerCollectionResponse>)> {
    let operation = NamespaceOperation::ExecuteJob;
    let collection = collections::find(&app, &scope, &collection, operation).await?;
    let answer = super::trigger(&app, &scope, collection, request).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)))
}
