//! How tiers and batches end, and who is told.

use loupe_wire::{
    BatchModel, ExtractorJobInfo, NotificationPriority, NotificationType, TaskStatusEnum,
};
use serde_json::json;

use super::{
    callbacks,
    fillings::{Held, tell_untold},
    flow::Owner,
    store, supervising,
};
use crate::{
    clock,
    db::Tx,
    error::Result,
    v1::{
        namespaces::push_event,
        notifications::{self, Notice},
        tasks,
    },
    words::{counted, said},
};

/// How something ends of which some failed.
fn status_of(failed: i64, total: i64) -> TaskStatusEnum {
    match failed {
        0 => TaskStatusEnum::Completed,
        _ if failed == total => TaskStatusEnum::Failed,
        _ => TaskStatusEnum::CompletedWithErrors,
    }
}

/// Whether what ended so was done, as a whole or in part.
const fn is_done(status: TaskStatusEnum) -> bool {
    matches!(
        status,
        TaskStatusEnum::Completed | TaskStatusEnum::CompletedWithErrors
    )
}

pub(super) async fn end_tier(
    tx: &mut Tx,
    batch: &mut BatchModel,
    tier: i64,
    now: i64,
) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let (failed, all) = store::tier_counts(tx, &batch_id, tier).await?;
    let status = status_of(failed, all);
    let summary = supervising::failures(tx, &batch_id, tier).await?;
    for ended in batch
        .tier_tasks
        .iter_mut()
        .filter(|one| one.tier_num == tier)
    {
        ended.status = status;
        ended.error_summary.clone_from(&summary);
        ended.completed_at = Some(clock::time(now));
        ended.duration_ms = ended
            .started_at
            .map(|started| milliseconds(now - started.timestamp_micros()));
        let jobs = ended.extractor_jobs.iter_mut();
        for job in jobs.filter(|job| job.status != TaskStatusEnum::Canceled) {
            job.status = status;
            job.completed_at = Some(clock::time(now));
        }
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "durations of jobs are far below 2^52 microseconds"
)]
fn milliseconds(micros: i64) -> f64 {
    micros as f64 / 1000.0
}

pub(super) async fn end_batch(
    tx: &mut Tx,
    mut batch: BatchModel,
    owner: &Owner,
    held: &Held,
    now: i64,
) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    tell_untold(tx, &mut batch, owner, held, now).await?;
    let counts = store::counts(tx, &batch_id).await?;
    let task_id = batch.task_id.clone().unwrap_or_default();
    let status = match counts.canceled {
        0 => status_of(counts.failed, counts.total),
        _ => TaskStatusEnum::Canceled,
    };
    let first_error = match counts.failed {
        0 => None,
        _ => store::first_error(tx, &batch_id).await?,
    };
    let error = (status == TaskStatusEnum::Failed)
        .then(|| first_error.clone())
        .flatten();
    tasks::store::change(tx, &task_id, status, now, |task| {
        let data = task.additional_data.get_or_insert_default();
        if let Some(error) = error {
            data.insert("error".into(), error.into());
        }
        // What failed as a whole, or was stopped, has none.
        if is_done(status) {
            let told = json!({"batch_id": batch_id, "documents_written": counts.documents});
            task.outputs = Some(vec![told]);
        }
    })
    .await?;
    batch.status = status;
    batch.updated_at = Some(clock::time(now));
    batch.error = first_error;
    // Tiers that nothing came to.
    let unfinished = |status: TaskStatusEnum| !tasks::is_terminal(status);
    for tier in batch
        .tier_tasks
        .iter_mut()
        .filter(|tier| unfinished(tier.status))
    {
        tier.status = TaskStatusEnum::Skipped;
        tier.extractor_jobs
            .iter_mut()
            .for_each(|job| job.status = TaskStatusEnum::Skipped);
    }
    supervising::note_failures(tx, &mut batch, now).await?;
    store::update(tx, &batch, now).await?;
    supervising::schedule(tx, &batch, now).await?;
    tell_end(tx, &batch, owner, held, now).await?;
    // Who canceled a tier of it knows.
    if status == TaskStatusEnum::Canceled {
        return Ok(());
    }
    let notice = notice(&batch, &owner.namespace_id, &counts);
    notifications::notify(tx, &owner.org_id, notice, now).await
}

/// Tells who follows the feed that a batch is over, for each collection that it wrote; of one that failed or was stopped, for
/// all that it was to write.
pub(super) async fn tell_end(
    tx: &mut Tx,
    batch: &BatchModel,
    owner: &Owner,
    held: &Held,
    now: i64,
) -> Result<()> {
    callbacks::enqueue(tx, batch, owner, now).await?;
    let is_done = is_done(batch.status);
    let jobs = batch
        .tier_tasks
        .iter()
        .flat_map(|tier| &tier.extractor_jobs);
    // What could not be counted may be there.
    let wrote = |job: &&ExtractorJobInfo| {
        let mut collections = job.collection_ids.iter();
        job.documents_written.is_some_and(|documents| documents > 0)
            || collections.any(|id| held.count(id) != Some(0))
    };
    let told = jobs.filter(|job| !is_done || wrote(job));
    let told: Vec<&String> = told.flat_map(|job| &job.collection_ids).collect();
    for collection_id in told {
        let mut payload = json!({
            "batch_id": batch.batch_id, "collection_id": collection_id,
            "total_documents": held.count(collection_id), "status": tasks::name_of(batch.status),
        });
        // Why it was canceled.
        if let Some(reason) = &batch.status_message {
            payload["reason"] = reason.as_str().into();
        }
        let kind = "collection.documents.batch_completed";
        push_event(tx, &owner.org_id, &owner.namespace_id, kind, payload, now).await?;
    }
    Ok(())
}

/// Tells of batches that were canceled with the bucket or the namespace that they are of. What they wrote goes with it: nobody
/// counts it.
///
/// # Errors
/// The database does not answer.
pub async fn tell_closed(
    tx: &mut Tx,
    (org_id, namespace_id): (&str, &str),
    closed: Vec<BatchModel>,
    now: i64,
) -> Result<()> {
    let owner = Owner {
        org_id: org_id.to_owned(),
        namespace_id: namespace_id.to_owned(),
    };
    for batch in closed {
        tell_end(tx, &batch, &owner, &Held::default(), now).await?;
    }
    Ok(())
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
    let written = said(documents, "document", ("was written", "were written"));
    let content = match &batch.error {
        Some(error) if failed > 0 => format!(
            "{written} from {}, of which {failed} failed. The first error: {error}",
            counted(total, "object")
        ),
        _ => format!("{written} from {}.", counted(total, "object")),
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
