//! Batches: which objects are processed into which collections, and what became of each.

mod flow;
mod routes;
pub mod store;

use loupe_wire::{
    BatchModel, BatchProgress, CollectionResponse, CreateBatchRequest, DedupStrategy,
    ExtractorJobInfo, FailedDocument, FailedObjectRecord, NamespaceOperation, ResourceType,
    SubmitBatchRequest, TaskResponse, TaskStatusEnum, TaskType, TierTaskInfo, Value,
};
use serde_json::json;

pub use flow::{CHUNK, ChunkEnd, admit, cancel, end_chunk, fail_chunk};
pub use routes::router;
use store::Counts;

use super::{
    buckets::BUCKETS,
    collections::COLLECTIONS,
    tasks::{self, NewTask},
};
use crate::{
    app::App,
    auth::{Level, Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
};

/// Failed objects that a batch shows by itself; the rest is paged.
const SHOWN_FAILURES: i64 = 20;

/// The bucket that a batch route names, if the caller's scopes cover it.
pub async fn bucket_id<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<String> {
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Bucket, &record.id, operation)?;
    Ok(record.id)
}

/// Makes a draft of the objects named, or of every object of the bucket; submits it when asked to.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    request: CreateBatchRequest,
) -> Result<BatchModel> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    if request.filters.is_some() {
        let msg = "batches by filter are not available yet: name object_ids, or leave both out for every object";
        return Err(Violation::body(&["filters"], "not_enabled", msg, Value::Null).into());
    }
    let most = app.config().limits.batch_objects;
    let limit = request
        .limit
        .unwrap_or_else(|| i64::try_from(most).unwrap_or(i64::MAX));
    let named = request.object_ids.is_some();
    let object_ids = match request.object_ids {
        Some(ids) => ids,
        None => store::bucket_objects(app.db(), &scope.namespace_id, &bucket_id, limit).await?,
    };
    if object_ids.len() > most {
        let msg = format!("a batch has at most {most} objects");
        return Err(
            Violation::body(&["object_ids"], "too_long", msg, object_ids.len().into()).into(),
        );
    }
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let batch = BatchModel {
        batch_id: Some(id::new("btch_")),
        bucket_id: bucket_id.clone(),
        namespace_id: Some(namespace_id.clone()),
        batch_name: request.batch_name,
        status: TaskStatusEnum::Draft,
        dedup_strategy: request.dedup_strategy,
        collection_ids: request.collection_ids.clone(),
        metadata: request.metadata,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    let batch = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let id = batch.batch_id.clone().unwrap_or_default();
                if named {
                    check_objects(tx, &namespace_id, &bucket_id, &object_ids).await?;
                }
                store::insert(tx, &org_id, &batch, now).await?;
                store::add_objects(tx, &id, &object_ids, now).await?;
                Ok(batch)
            })
        })
        .await?;
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    if request
        .auto_submit
        .or(request.trigger_processing)
        .unwrap_or(false)
    {
        submit(
            app,
            scope,
            &batch.bucket_id,
            &batch_id,
            SubmitBatchRequest::default(),
        )
        .await?;
    }
    get(
        app,
        &scope.caller.org_id,
        &scope.namespace_id,
        "",
        &batch_id,
    )
    .await
}

async fn check_objects(
    tx: &mut crate::db::Tx,
    namespace_id: &str,
    bucket_id: &str,
    ids: &[String],
) -> Result<()> {
    for object_id in ids {
        if !store::is_object(tx, namespace_id, bucket_id, object_id).await? {
            return Err(ApiError::not_found("object", object_id));
        }
    }
    Ok(())
}

/// Adds objects to a draft.
pub async fn add_objects(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    object_ids: Vec<String>,
) -> Result<BatchModel> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let (id, bucket) = (batch_id.to_owned(), bucket_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let batch = store::find_in(tx, &org_id, &namespace_id, &bucket, &id).await?;
                if batch.status != TaskStatusEnum::Draft {
                    return Err(ApiError::conflict(
                        "batch_not_draft",
                        "objects can be added to a draft only",
                    ));
                }
                check_objects(tx, &namespace_id, &bucket, &object_ids).await?;
                store::add_objects(tx, &id, &object_ids, now).await
            })
        })
        .await?;
    get(
        app,
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        batch_id,
    )
    .await
}

/// The collections that a batch of this bucket fills: those named, else every enabled one over the bucket.
async fn targets(
    app: &App,
    namespace_id: &str,
    bucket_id: &str,
    named: Option<&Vec<String>>,
) -> Result<Vec<CollectionResponse>> {
    let mut found = Vec::new();
    match named {
        Some(identifiers) => {
            for identifier in identifiers {
                found.push(
                    COLLECTIONS
                        .find(app.db(), namespace_id, identifier)
                        .await?
                        .data
                        .0,
                );
            }
        }
        None => found.extend(
            COLLECTIONS
                .all(app.db(), namespace_id)
                .await?
                .into_iter()
                .map(|record| record.data.0),
        ),
    }
    let over = |collection: &CollectionResponse| {
        collection.enabled
            && collection
                .source
                .bucket_ids
                .as_ref()
                .is_some_and(|ids| ids.iter().any(|id| id == bucket_id))
    };
    found.retain(over);
    if found.is_empty() {
        let message = "no enabled collection has this bucket as its source: make one first";
        return Err(ApiError::bad_request("", message).with("bucket_id", bucket_id));
    }
    Ok(found)
}

/// Queues a batch: one transaction writes the batch, its task and the change. An answer means it is on disk.
pub async fn submit(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    request: SubmitBatchRequest,
) -> Result<TaskResponse> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let draft = store::find(
        app.db(),
        &scope.caller.org_id,
        &scope.namespace_id,
        &bucket_id,
        batch_id,
    )
    .await?;
    let named = request
        .collection_ids
        .as_ref()
        .or(draft.collection_ids.as_ref());
    let collections = targets(app, &scope.namespace_id, &bucket_id, named).await?;
    let jobs: Vec<ExtractorJobInfo> = collections
        .iter()
        .map(|one| ExtractorJobInfo {
            extractor_type: one.feature_extractor.feature_extractor_name.clone(),
            extractor_id: Some(one.feature_extractor.feature_extractor_id.clone()),
            collection_ids: one.collection_id.iter().cloned().collect(),
            status: TaskStatusEnum::Queued,
            documents_written: Some(0),
            ..Default::default()
        })
        .collect();
    let collection_ids: Vec<String> = collections
        .into_iter()
        .filter_map(|one| one.collection_id)
        .collect();
    let sample = store::object_ids(app.db(), batch_id).await?;
    if sample.is_empty() {
        return Err(ApiError::bad_request("", "the batch has no objects"));
    }
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let (actor, id) = (scope.caller.actor().to_owned(), batch_id.to_owned());
    let pause = i64::try_from(app.config().jobs.resubmit_seconds).unwrap_or(60) * 1_000_000;
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut batch = store::find_in(tx, &org_id, &namespace_id, &bucket_id, &id).await?;
                if store::is_running(batch.status) {
                    return Err(ApiError::conflict(
                        "batch_not_draft",
                        "the batch is queued or running already",
                    ));
                }
                if let Some(last) = store::submitted_at(tx, &id).await?
                    && now - last < pause
                {
                    let wait = u64::try_from((pause - (now - last)).div_euclid(1_000_000) + 1)
                        .unwrap_or(60);
                    let message = "a batch is submitted at most once in 60 seconds";
                    return Err(
                        ApiError::too_many_requests("batch_submit_too_soon", message)
                            .retry_after(wait),
                    );
                }
                if batch.status != TaskStatusEnum::Draft {
                    store::reset_unfinished(tx, &id, now).await?;
                }
                let position = i64::try_from(store::waiting_in(tx).await?.len()).unwrap_or(0) + 1;
                let task = insert_task(
                    tx,
                    &org_id,
                    &namespace_id,
                    &batch,
                    &collection_ids,
                    &sample,
                    now,
                )
                .await?;
                batch.status = TaskStatusEnum::Queued;
                batch.task_id = Some(task.task_id.clone());
                batch.collection_ids = Some(collection_ids.clone());
                batch.dag_tiers = Some(vec![collection_ids.clone()]);
                batch.effective_dedup_strategy =
                    Some(batch.dedup_strategy.unwrap_or(DedupStrategy::Skip));
                batch.submitted_by_key_id = Some(actor);
                batch.webhook_url = request.webhook_url;
                batch.error = None;
                batch.tier_tasks = vec![TierTaskInfo {
                    task_id: Some(task.task_id.clone()),
                    status: TaskStatusEnum::Queued,
                    collection_ids,
                    extractor_jobs: jobs,
                    source_type: "bucket".into(),
                    ..Default::default()
                }];
                batch.updated_at = Some(clock::time(now));
                store::queue(tx, &batch, now).await?;
                Ok(TaskResponse {
                    queue_position: Some(position),
                    ..task
                })
            })
        })
        .await?;
    app.work.notify_waiters();
    Ok(task)
}

async fn insert_task(
    tx: &mut crate::db::Tx,
    org_id: &str,
    namespace_id: &str,
    batch: &BatchModel,
    collections: &[String],
    objects: &[String],
    now: i64,
) -> Result<TaskResponse> {
    let data = json!({
        "batch_id": batch.batch_id, "bucket_id": batch.bucket_id, "namespace_id": namespace_id, "current_tier": 0,
        "total_tiers": 1, "collection_ids": collections, "object_count": objects.len(),
        "sample_object_ids": objects.iter().take(5).collect::<Vec<_>>(),
    });
    let task = NewTask {
        org_id: org_id.into(),
        namespace_id: Some(namespace_id.into()),
        task_type: TaskType::ApiBucketsBatchesProcess,
        status: TaskStatusEnum::Queued,
        parent_id: None,
        kind: None,
        work: Value::Null,
        inputs: vec![batch.batch_id.clone().into()],
        additional_data: data.as_object().cloned().unwrap_or_default(),
        description: format!("Process {} objects", objects.len()),
    };
    tasks::insert(tx, task, now).await
}

/// A batch with its objects, progress and failures, as they stand now.
pub async fn get(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchModel> {
    let mut batch = store::find(app.db(), org_id, namespace_id, bucket_id, batch_id).await?;
    batch.object_ids = store::object_ids(app.db(), batch_id).await?;
    let failed = store::failed(app.db(), batch_id, SHOWN_FAILURES, 0).await?;
    batch.failed_objects = failed
        .into_iter()
        .map(|row| FailedObjectRecord {
            object_id: row.0,
            error: row.2,
            error_type: serde_json::from_value(row.3.into()).unwrap_or_default(),
            timestamp: clock::time(row.4).to_rfc3339(),
        })
        .collect();
    complete(app, &mut batch).await?;
    Ok(batch)
}

/// Fills in what changes while a batch runs.
pub async fn complete(app: &App, batch: &mut BatchModel) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let counts = store::counts_of(app.db(), &batch_id).await?;
    batch.failed_object_count = counts.failed;
    batch.documents_written = Some(counts.documents);
    let mut progress = progress(batch, &counts, app.clock().micros());
    if batch.status == TaskStatusEnum::Queued {
        let waiting = store::waiting(app.db()).await?;
        let place = waiting.iter().position(|one| one.batch_id == batch_id);
        progress.queue_position = place.and_then(|place| i64::try_from(place + 1).ok());
    }
    for tier in &mut batch.tier_tasks {
        tier.documents_written = Some(counts.documents);
    }
    batch.progress = Some(progress);
    Ok(())
}

fn progress(batch: &BatchModel, counts: &Counts, now: i64) -> BatchProgress {
    let done = counts.total - counts.pending;
    let started = batch
        .tier_tasks
        .first()
        .and_then(|tier| tier.started_at)
        .map(|at| at.timestamp_micros());
    let until = batch
        .tier_tasks
        .first()
        .and_then(|tier| tier.completed_at)
        .map_or(now, |at| at.timestamp_micros());
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of objects are far below 2^52"
    )]
    let (total, processed, left) = (counts.total as f64, done as f64, counts.pending as f64);
    #[expect(
        clippy::cast_precision_loss,
        reason = "durations of jobs are far below 2^52 microseconds"
    )]
    let speed = started
        .map(|at| processed / ((until - at) as f64 / 1e6).max(0.001))
        .filter(|speed| *speed > 0.0);
    BatchProgress {
        processed: done,
        total: Some(counts.total),
        percent: Some(if counts.total == 0 {
            0.0
        } else {
            processed / total * 100.0
        }),
        items_per_second: speed,
        eta_seconds: speed
            .filter(|_| batch.status == TaskStatusEnum::Processing)
            .map(|speed| left / speed),
        errors: counts.failed,
        objects_extracted: Some(counts.completed),
        objects_skipped: Some(counts.skipped),
        objects_failed: Some(counts.failed),
        documents_written: Some(counts.documents),
        ..Default::default()
    }
}

/// Failed objects with their reasons.
pub async fn failures(
    app: &App,
    batch_id: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<FailedDocument>, i64)> {
    let total = store::counts_of(app.db(), batch_id).await?.failed;
    let rows = store::failed(app.db(), batch_id, limit, offset).await?;
    let failure = |row: store::FailedRow| FailedDocument {
        object_id: row.0,
        collection_id: row.1,
        tier_num: Some(0),
        error: row.2,
        error_type: serde_json::from_value(row.3.into()).unwrap_or_default(),
        timestamp: clock::time(row.4),
        ..Default::default()
    };
    Ok((rows.into_iter().map(failure).collect(), total))
}

/// Removes a batch that does not run; its documents stay.
pub async fn delete(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<()> {
    let (org_id, namespace_id, bucket_id, id) = (
        org_id.to_owned(),
        namespace_id.to_owned(),
        bucket_id.to_owned(),
        batch_id.to_owned(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let batch = store::find_in(tx, &org_id, &namespace_id, &bucket_id, &id).await?;
                if store::is_running(batch.status) {
                    return Err(ApiError::conflict("", "the batch runs: cancel it first"));
                }
                store::delete(tx, &id).await
            })
        })
        .await
}

/// Puts failed objects of an ended batch back and queues it again.
pub async fn retry(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    batch_id: &str,
    error_type: &str,
) -> Result<(TaskResponse, i64)> {
    let bucket_id = bucket_id(app, scope, bucket, NamespaceOperation::ExecuteJob).await?;
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let (id, kind) = (batch_id.to_owned(), error_type.to_owned());
    let reset = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let batch = store::find_in(tx, &org_id, &namespace_id, &bucket_id, &id).await?;
                if store::is_running(batch.status) || batch.status == TaskStatusEnum::Draft {
                    return Err(ApiError::conflict(
                        "",
                        "only a batch that has ended can be retried",
                    ));
                }
                store::reset_failed(tx, &id, &kind, now).await
            })
        })
        .await?;
    if reset == 0 {
        return Err(ApiError::bad_request("", "no failed object can be retried"));
    }
    let task = submit(app, scope, bucket, batch_id, SubmitBatchRequest::default()).await?;
    Ok((task, i64::try_from(reset).unwrap_or(i64::MAX)))
}
