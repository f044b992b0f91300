//! Batches: which objects are processed into which collections, and what became of each.

mod again;
mod asks;
pub mod callbacks;
mod dropping;
mod ending;
pub mod fillings;
mod flow;
mod grouping;
mod healing;
mod heartbeat;
mod inspecting;
mod listing;
mod members;
mod progress;
mod routes;
mod splitting;
mod stopping;
pub mod store;
mod submitting;
mod supervising;
mod tiers;
mod triggering;
mod waiting;

use std::collections::HashMap;

use loupe_wire::{
    BatchModel, BatchProgress, FailedDocument, FailedObjectRecord, NamespaceOperation,
    ResourceType, TaskStatusEnum, reading,
};
use serde_json::json;

pub use again::{Again, NOTHING_TO_PROCESS, is_busy, is_nothing};
pub use dropping::{LeftOut, tell};
pub use ending::tell_closed;
pub use flow::{CHUNK, CRAWL, ChunkEnd, SourceDocuments, admit, end_chunk};
pub use grouping::{Bucketful, Standing, begin, check_size, halt, standing};
pub use members::Members;
pub use routes::router;
pub use splitting::split;
pub use stopping::cancel;
use store::{Counts, Failures};
pub use submitting::{
    add_objects, check_process, create, process, queue, resubmit, retry, select, submit,
};
pub use supervising::supervise;
pub use triggering::{check_trigger, trigger};

use super::{
    audit::{self, PartOf},
    buckets::BUCKETS,
    objects,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope},
    clock,
    error::{ApiError, Result},
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

/// A batch with its objects, progress and failures, as they stand now.
pub async fn get(
    app: &App,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchModel> {
    let mut batch = store::find(app.db(), org_id, namespace_id, bucket_id, batch_id).await?;
    let all = Failures::default();
    let failed = store::failed(app.db(), batch_id, &all, SHOWN_FAILURES, 0).await?;
    batch.failed_objects = failed
        .into_iter()
        .map(|row| FailedObjectRecord {
            object_id: row.object_id,
            error: row.error,
            error_type: reading::from_value(&row.error_type.into()).unwrap_or_default(),
            timestamp: clock::time(row.updated_at).to_rfc3339(),
        })
        .collect();
    let mut batches = [batch];
    complete(app, org_id, &mut batches).await?;
    let [mut batch] = batches;
    let count = batch.progress.as_ref().and_then(|progress| progress.total);
    let ids = members::find(app, batch_id, count.unwrap_or(0)).await?;
    batch.object_ids.clone_from(&ids);
    Ok(batch)
}

/// Which of the collections that a batch filled are there, still; none where it names none.
pub async fn filled<L: Level>(
    app: &App,
    scope: &Scope<L>,
    batch: &BatchModel,
) -> Result<Option<Vec<String>>> {
    match batch.collection_ids.clone() {
        Some(ids) => tiers::left(app, &scope.namespace_id, ids).await.map(Some),
        None => Ok(None),
    }
}

/// Which of a batch's objects are there, still.
pub async fn there<L: Level>(
    app: &App,
    scope: &Scope<L>,
    batch: &BatchModel,
) -> Result<Vec<String>> {
    store::known(
        app.db(),
        &scope.namespace_id,
        &batch.bucket_id,
        &batch.object_ids,
    )
    .await
}

/// Fills in what changes while batches run.
pub async fn complete(app: &App, org_id: &str, batches: &mut [BatchModel]) -> Result<()> {
    let beats = heartbeat::read(app, org_id, batches).await?;
    for batch in batches {
        complete_one(app, batch).await?;
        heartbeat::show(batch, &beats, app.clock().micros());
    }
    Ok(())
}

async fn complete_one(app: &App, batch: &mut BatchModel) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let counts = store::counts_of(app.db(), &batch_id).await?;
    batch.failed_object_count = counts.failed;
    batch.documents_written = Some(counts.documents);
    batch.max_node_death_resubmits = supervising::MOST_RESTARTS;
    let mut progress = progress(batch, &counts, app.clock().micros());
    if batch.status == TaskStatusEnum::Queued {
        let namespace_id = batch.namespace_id.as_deref().unwrap_or_default();
        progress.queue_position = store::place(app.db(), namespace_id, &batch_id).await?;
    }
    for tier in &mut batch.tier_tasks {
        let jobs = tier.extractor_jobs.iter();
        tier.documents_written = Some(jobs.filter_map(|job| job.documents_written).sum());
    }
    progress.status_warnings = dropping::show(batch);
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
        .last()
        .and_then(|tier| tier.completed_at)
        .map_or(now, |at| at.timestamp_micros());
    let tiers = batch.total_tiers.max(1);
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of objects are far below 2^52"
    )]
    let (total, processed, left, passed) = (
        (counts.total * tiers) as f64,
        done as f64,
        counts.pending as f64,
        (done * tiers + counts.tiers_passed) as f64,
    );
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
            passed / total * 100.0
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
    namespace_id: &str,
    batch_id: &str,
    which: &Failures,
    limit: i64,
    offset: i64,
) -> Result<(Vec<FailedDocument>, i64)> {
    let total = store::count_failed(app.db(), batch_id, which).await?;
    let rows = store::failed(app.db(), batch_id, which, limit, offset).await?;
    let ids: Vec<String> = rows.iter().map(|row| row.object_id.clone()).collect();
    let objects = objects::store::find_named(app.db(), namespace_id, &ids).await?;
    let named = objects.into_iter().filter_map(|object| {
        let first = object.blobs.into_iter().next()?;
        Some((object.object_id?, first.details?.filename?))
    });
    let mut names: HashMap<String, String> = named.collect();
    let failure = |row: store::FailedRow| FailedDocument {
        filename: names.remove(&row.object_id),
        object_id: row.object_id,
        document_id: row.document_id,
        collection_id: row.collection_id,
        tier_num: Some(row.tier),
        error: row.error,
        error_type: reading::from_value(&row.error_type.into()).unwrap_or_default(),
        timestamp: clock::time(row.updated_at),
        ..Default::default()
    };
    Ok((rows.into_iter().map(failure).collect(), total))
}

/// Removes a batch that does not run; its documents stay.
pub async fn delete(
    app: &App,
    scope: &Scope<Delete>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<()> {
    let (caller, namespace_id, bucket_id, id) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        bucket_id.to_owned(),
        batch_id.to_owned(),
    );
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let org_id = &caller.org_id;
                store::find_in(tx, org_id, &namespace_id, &bucket_id, &id).await?;
                // It may be submitted by the clock at this moment.
                store::lock(tx, &id, now).await?;
                let batch = store::find_in(tx, org_id, &namespace_id, &bucket_id, &id).await?;
                if store::is_running(batch.status) {
                    return Err(ApiError::conflict("", "the batch runs: cancel it first"));
                }
                store::delete(tx, &namespace_id, &id).await?;
                let changes = json!({
                    "change": "batch_deleted", "batch_id": id, "status": batch.status,
                });
                let whole = PartOf::Bucket(&bucket_id);
                audit::record_part(tx, &caller, whole, changes, now).await
            })
        })
        .await
}
