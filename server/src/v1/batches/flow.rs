//! How a batch moves: admitted, its chunks ended, itself ended. Every step is one transaction.

use loupe_wire::{
    BatchModel, CancellationOutcome, NotificationPriority, NotificationType, Object, TaskResponse,
    TaskStatusEnum, TaskType, Value,
};
use serde_json::json;

use super::store::{self, ObjectEnd, Processed};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result},
    jobs::{self, Claim},
    v1::{
        namespaces::push_event,
        notifications::{self, Notice},
        tasks::{self, NewTask},
    },
};

/// The queue's word for a chunk of a batch.
pub const CHUNK: &str = "batch_chunk";

/// Starts waiting batches, oldest first, while fewer than the configured number run. Called by the leader alone.
pub async fn admit(app: &App) -> Result<()> {
    let (limit, chunk, now) = (
        app.config().jobs.running_batches,
        app.config().jobs.chunk_objects,
        app.clock().micros(),
    );
    let limit = i64::try_from(limit).unwrap_or(1);
    let started = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut room = limit - store::running_in(tx).await?;
                let mut started = 0;
                for waiting in store::waiting_in(tx).await? {
                    if room <= 0 {
                        break;
                    }
                    start(tx, &waiting.batch_id, chunk, now).await?;
                    room -= 1;
                    started += 1;
                }
                Ok(started)
            })
        })
        .await?;
    if started > 0 {
        app.work.notify_waiters();
    }
    Ok(())
}

/// Inserts the chunks of a batch and marks it running.
async fn start(tx: &mut Tx, batch_id: &str, chunk: usize, now: i64) -> Result<()> {
    store::lock(tx, batch_id, now).await?;
    let Some((mut batch, org_id, namespace_id)) = store::read(tx, batch_id).await? else {
        return Ok(());
    };
    // Canceled while it waited for the lock.
    if batch.status != TaskStatusEnum::Queued {
        return Ok(());
    }
    let total = store::counts(tx, batch_id).await?.total;
    let task_id = batch.task_id.clone().unwrap_or_default();
    for from in (0..total).step_by(chunk.max(1)) {
        let to = from + i64::try_from(chunk.max(1)).unwrap_or(1);
        let work = json!({"batch_id": batch_id, "from": from, "to": to});
        let mut task = NewTask::work(
            &org_id,
            &namespace_id,
            TaskType::EngineObjectProcessing,
            CHUNK,
            work,
        );
        task.parent_id = Some(task_id.clone());
        tasks::insert(tx, task, now).await?;
    }
    batch.status = TaskStatusEnum::Processing;
    batch.current_tier = Some(0);
    batch.updated_at = Some(clock::time(now));
    for tier in &mut batch.tier_tasks {
        tier.status = TaskStatusEnum::Processing;
        tier.started_at = Some(clock::time(now));
        tier.completed_at = None;
        tier.extractor_jobs
            .iter_mut()
            .for_each(|job| job.status = TaskStatusEnum::Processing);
    }
    store::update(tx, &batch, now).await?;
    tasks::store::change(tx, &task_id, TaskStatusEnum::Processing, now, |_| ()).await
}

/// What a chunk gave: where each object ended, and the documents written into each collection.
#[derive(Debug, Default)]
pub struct ChunkEnd {
    pub objects: Vec<ObjectEnd>,
    /// Collection id and the ids of documents that are safely stored.
    pub written: Vec<(String, Vec<String>)>,
    pub processed: Vec<Processed>,
}

/// Ends a chunk, fenced by its claim: a worker that lost its lease changes nothing. The last chunk ends the batch.
pub async fn end_chunk(app: &App, claim: &Claim, batch_id: &str, end: ChunkEnd) -> Result<()> {
    let (claim, batch_id, now) = (claim.clone(), batch_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &batch_id, now).await?;
                if !jobs::finish(tx, &claim, TaskStatusEnum::Completed, now).await? {
                    return Err(ApiError::conflict("", "the lease of this chunk was lost"));
                }
                let Some((mut batch, org_id, namespace_id)) = store::read(tx, &batch_id).await? else { return Ok(()) };
                for object in &end.objects {
                    store::end_object(tx, &namespace_id, &batch_id, object, now).await?;
                }
                for one in &end.processed {
                    store::set_processed(tx, &namespace_id, one, now).await?;
                }
                for (collection_id, document_ids) in end.written.iter().filter(|(_, ids)| !ids.is_empty()) {
                    let payload = json!({
                        "namespace_id": namespace_id, "collection_id": collection_id, "batch_id": batch_id,
                        "document_ids": document_ids, "count": document_ids.len(),
                    });
                    push_event(tx, &org_id, &namespace_id, "collection.documents.written", payload, now).await?;
                    count_written(&mut batch, collection_id, document_ids.len());
                }
                end_batch_if_done(tx, batch, &org_id, &namespace_id, now).await
            })
        })
        .await
}

/// Adds to the documents that the batch has written into a collection.
fn count_written(batch: &mut BatchModel, collection_id: &str, documents: usize) {
    let jobs = batch
        .tier_tasks
        .iter_mut()
        .flat_map(|tier| &mut tier.extractor_jobs);
    for job in jobs.filter(|job| job.collection_ids.iter().any(|id| id == collection_id)) {
        let before = job.documents_written.unwrap_or(0);
        job.documents_written = Some(before + i64::try_from(documents).unwrap_or(0));
    }
}

/// Gives a chunk up: its unfinished objects failed for this reason.
pub async fn fail_chunk(
    app: &App,
    claim: &Claim,
    batch_id: &str,
    object_ids: Vec<String>,
    error: &str,
    error_type: &str,
) -> Result<()> {
    let end = |object_id: String| ObjectEnd {
        object_id,
        status: "FAILED",
        error: Some(error.to_owned()),
        error_type: Some(error_type.to_owned()),
        collection_id: None,
        documents: 0,
    };
    let objects = object_ids.into_iter().map(end).collect();
    end_chunk(
        app,
        claim,
        batch_id,
        ChunkEnd {
            objects,
            ..ChunkEnd::default()
        },
    )
    .await
}

async fn end_batch_if_done(
    tx: &mut Tx,
    mut batch: BatchModel,
    org_id: &str,
    namespace_id: &str,
    now: i64,
) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let counts = store::counts(tx, &batch_id).await?;
    let task_id = batch.task_id.clone().unwrap_or_default();
    let status = match counts {
        _ if counts.pending > 0 => TaskStatusEnum::Processing,
        _ if counts.failed == 0 => TaskStatusEnum::Completed,
        _ if counts.failed == counts.total => TaskStatusEnum::Failed,
        _ => TaskStatusEnum::CompletedWithErrors,
    };
    let done = counts.total - counts.pending;
    let progress = json!({"processed": done, "total": counts.total, "failed": counts.failed, "documents_written": counts.documents});
    let first_error = match counts.failed {
        0 => None,
        _ => store::first_error(tx, &batch_id).await?,
    };
    let error = (status == TaskStatusEnum::Failed)
        .then(|| first_error.clone())
        .flatten();
    tasks::store::change(tx, &task_id, status, now, |task| {
        let data = task.additional_data.get_or_insert_default();
        data.insert("progress".into(), progress);
        if let Some(error) = error {
            data.insert("error".into(), error.into());
        }
        if tasks::is_terminal(status) {
            task.outputs = Some(vec![
                json!({"batch_id": batch_id, "documents_written": counts.documents}),
            ]);
        }
    })
    .await?;
    batch.status = status;
    batch.updated_at = Some(clock::time(now));
    if status == TaskStatusEnum::Processing {
        return store::update(tx, &batch, now).await;
    }
    batch.error = first_error;
    for tier in &mut batch.tier_tasks {
        tier.status = status;
        tier.completed_at = Some(clock::time(now));
        for job in &mut tier.extractor_jobs {
            job.status = status;
            job.completed_at = Some(clock::time(now));
        }
    }
    store::update(tx, &batch, now).await?;
    for job in batch
        .tier_tasks
        .iter()
        .flat_map(|tier| &tier.extractor_jobs)
    {
        let payload = json!({
            "batch_id": batch_id, "collection_id": job.collection_ids.first(), "total_documents": job.documents_written,
            "status": tasks::name_of(status),
        });
        push_event(
            tx,
            org_id,
            namespace_id,
            "collection.documents.batch_completed",
            payload,
            now,
        )
        .await?;
    }
    let notice = notice(&batch, namespace_id, &counts);
    notifications::notify(tx, org_id, notice, now).await
}

/// What people are told about a batch that ended.
fn notice(batch: &BatchModel, namespace_id: &str, counts: &store::Counts) -> Notice {
    let batch_id = batch.batch_id.as_deref().unwrap_or_default();
    let name = batch.batch_name.as_deref().unwrap_or(batch_id);
    let (failed, total, documents) = (counts.failed, counts.total, counts.documents);
    let (kind, priority, title) = match failed {
        0 => (
            NotificationType::PipelineSuccess,
            NotificationPriority::Low,
            format!("Batch {name} is done"),
        ),
        _ if failed == total => (
            NotificationType::PipelineFailure,
            NotificationPriority::High,
            format!("Batch {name} failed"),
        ),
        _ => (
            NotificationType::PipelineFailure,
            NotificationPriority::Medium,
            format!("Batch {name} is done, but {failed} of {total} objects failed"),
        ),
    };
    let content = match &batch.error {
        Some(error) if failed > 0 => format!(
            "{documents} documents were written from {} objects. The first error: {error}",
            total - failed
        ),
        _ => format!("{documents} documents were written from {total} objects."),
    };
    let about = json!({
        "namespace_id": namespace_id, "bucket_id": batch.bucket_id, "batch_id": batch_id,
    });
    Notice {
        kind,
        priority,
        title,
        content,
        about,
    }
}

/// Cancels a batch that waits or runs. Chunks that run lose their lease and write nothing more.
pub async fn cancel(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<TaskResponse> {
    let (org, namespace, bucket, id) = (
        org_id.to_owned(),
        namespace_id.to_owned(),
        bucket_id.to_owned(),
        batch_id.to_owned(),
    );
    let now = app.clock().micros();
    let (task_id, canceled) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &id, now).await?;
                let mut batch = store::find_in(tx, &org, &namespace, &bucket, &id).await?;
                if tasks::is_terminal(batch.status) {
                    return Err(ApiError::conflict("", "the batch has ended already"));
                }
                let task_id = batch.task_id.clone().unwrap_or_default();
                let canceled = jobs::cancel_children(tx, &task_id, now).await?;
                store::cancel_objects(tx, &id, now).await?;
                batch.status = TaskStatusEnum::Canceled;
                batch.updated_at = Some(clock::time(now));
                batch
                    .tier_tasks
                    .iter_mut()
                    .for_each(|tier| tier.status = TaskStatusEnum::Canceled);
                store::update(tx, &batch, now).await?;
                tasks::store::change(tx, &task_id, TaskStatusEnum::Canceled, now, |_| ()).await?;
                Ok((task_id, canceled))
            })
        })
        .await?;
    let task = tasks::store::find(app.db(), org_id, None, &task_id).await?;
    let outcome = CancellationOutcome {
        ray_jobs_requested: canceled,
        ray_jobs_accepted: canceled,
        ray_jobs_refused: 0,
    };
    let task = task.unwrap_or_else(|| TaskResponse {
        task_type: TaskType::ApiBucketsBatchesProcess,
        status: TaskStatusEnum::Canceled,
        additional_data: Some(Object::from_iter([(
            "batch_id".to_owned(),
            Value::from(batch_id),
        )])),
        ..Default::default()
    });
    Ok(TaskResponse {
        cancellation: Some(outcome),
        ..task
    })
}
