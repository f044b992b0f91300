//! Looking into batches: what became of every object, what stands in the way, what another run would cost; and what is
//! done about it.

mod diagnosing;
mod routes;
mod store;

use loupe_engine::{
    filter::Filter,
    store::{ListQuery, Reach},
};
use loupe_wire::{
    BatchAuditResponse, BatchCostEstimate, BatchModel, BatchRequeueResponse, BatchType,
    BulkSubmittedBatch, BulkUpdateDocumentsResponse, DedupStrategy, NamespaceOperation,
    SubmitAllResponse, SubmitBatchRequest, TaskStatusEnum, TierAuditInfo, TierTaskInfo, Value,
};
use serde_json::json;

use diagnosing::diagnose;
pub use routes::router;

use super::{Again, get, queue, store as batches, tiers};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    clock,
    error::{ApiError, Result},
    v1::{
        billing::OBJECT_USD,
        collections, documents,
        tasks::{self, name_of},
    },
    words::{counted, said},
};

/// Drafts that one call submits.
const SUBMITTED: i64 = 1_000;
/// Documents removed at once.
const PAGE: usize = 500;
/// Failures that a log shows.
const LOGGED: i64 = 1_000;

/// A batch as it is shown, of a bucket that the caller may read.
async fn read(app: &App, scope: &Scope<Read>, bucket_id: &str, id: &str) -> Result<BatchModel> {
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    get(app, org_id, namespace_id, bucket_id, id).await
}

/// Every object of every tier accounted for.
async fn audit(
    app: &App,
    scope: &Scope<Read>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchAuditResponse> {
    let batch = read(app, scope, bucket_id, batch_id).await?;
    let standing = store::standing(app.db(), batch_id).await?;
    let ended = tasks::is_terminal(batch.status);
    let tiers: Vec<TierAuditInfo> = (0..batch.total_tiers.max(1))
        .map(|tier| tier_audit(tier, &standing, ended))
        .collect();
    Ok(BatchAuditResponse {
        batch_id: batch_id.to_owned(),
        status: batch.status,
        all_balanced: tiers.iter().all(|tier| tier.balanced),
        has_lost_objects: tiers.iter().any(|tier| tier.lost > 0),
        tiers,
    })
}

/// A tier in figures. What an ended batch leaves waiting is lost.
fn tier_audit(tier: i64, standing: &[(i64, String, i64)], ended: bool) -> TierAuditInfo {
    let sum = |counts: &dyn Fn(i64, &str) -> bool| -> i64 {
        let counted = standing
            .iter()
            .filter(|(at, status, _)| counts(*at, status));
        counted.map(|(.., number)| number).sum()
    };
    let here = |wanted: &str| sum(&|at, status| at == tier && status == wanted);
    let submitted = sum(&|at, _| at >= tier);
    let (failed, skipped, canceled) = (here("FAILED"), here("SKIPPED"), here("CANCELED"));
    let processed = here("COMPLETED") + sum(&|at, _| at > tier);
    let lost = if ended { here("PENDING") } else { 0 };
    let mut notes = Vec::new();
    if canceled > 0 {
        notes.push(format!(
            "{} canceled",
            said(canceled, "object", ("was", "were"))
        ));
    }
    TierAuditInfo {
        tier_num: tier,
        submitted: Some(submitted),
        processed,
        failed,
        skipped,
        lost,
        balanced: submitted == processed + failed + skipped + canceled,
        notes,
        ..Default::default()
    }
}

/// When a tier began and ended.
fn moments(tier: &TierTaskInfo) -> Vec<(i64, String)> {
    let number = tier.tier_num;
    let began = tier
        .started_at
        .map(|at| (at, format!("tier {number} began")));
    let ended = tier.completed_at.map(|at| {
        let (status, written) = (name_of(tier.status), tier.documents_written.unwrap_or(0));
        (
            at,
            format!(
                "tier {number} ended: {status}, {} written",
                counted(written, "document")
            ),
        )
    });
    let told = began.into_iter().chain(ended);
    told.map(|(at, message)| (at.timestamp_micros(), message))
        .collect()
}

/// What happened to a batch, moment by moment, as far as it is kept.
async fn logs(
    app: &App,
    scope: &Scope<Read>,
    bucket_id: &str,
    batch_id: &str,
    tier: Option<i64>,
) -> Result<Value> {
    let batch = read(app, scope, bucket_id, batch_id).await?;
    let which = batches::Failures {
        tier: tier.unwrap_or(-1),
        ..Default::default()
    };
    let failed = batches::failed(app.db(), batch_id, &which, LOGGED, 0).await?;
    let notes = store::notes(app.db(), batch_id, tier.unwrap_or(-1), LOGGED).await?;
    let mut entries: Vec<(i64, Value)> = Vec::new();
    let mut tell = |at: Option<i64>, level: &str, tier: Option<i64>, message: String| {
        let at = at.unwrap_or_default();
        let time = clock::time(at).to_rfc3339();
        entries.push((
            at,
            json!({"timestamp": time, "level": level, "tier_num": tier, "message": message}),
        ));
    };
    if tier.is_none() {
        let made = batch.created_at.map(|at| at.timestamp_micros());
        tell(
            made,
            "info",
            None,
            format!(
                "the batch was made of {}",
                counted(batch.object_ids.len(), "object")
            ),
        );
    }
    for one in batch
        .tier_tasks
        .iter()
        .filter(|one| tier.is_none_or(|tier| one.tier_num == tier))
    {
        for (at, message) in moments(one) {
            tell(Some(at), "info", Some(one.tier_num), message);
        }
    }
    for one in failed {
        let message = format!("object {}: {}", one.object_id, one.error);
        tell(Some(one.updated_at), "error", Some(one.tier), message);
    }
    for (object_id, note, tier, at) in notes {
        let message = format!("object {object_id}: {note}");
        tell(Some(at), "warning", Some(tier), message);
    }
    entries.sort_by_key(|(at, _)| *at);
    let logs: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
    Ok(json!({"batch_id": batch_id, "logs": logs}))
}

/// What processing a batch would cost now.
async fn estimate(
    app: &App,
    scope: &Scope<Read>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchCostEstimate> {
    let batch = read(app, scope, bucket_id, batch_id).await?;
    let (named, namespace_id) = (batch.collection_ids.as_ref(), &scope.namespace_id);
    let tiers = match batch.r#type {
        BatchType::Bucket => tiers::of_bucket(app, namespace_id, &batch.bucket_id, named).await?,
        BatchType::Collection => {
            let named = named.cloned().unwrap_or_default();
            tiers::of_collections(app, namespace_id, &named).await?
        }
    };
    let strategy = batch.dedup_strategy.unwrap_or(DedupStrategy::Skip);
    let objects = i64::try_from(batch.object_ids.len()).unwrap_or(i64::MAX);
    let mut done = objects;
    for collection in tiers.first().into_iter().flatten() {
        let id = collection.collection_id.as_deref().unwrap_or_default();
        done = done.min(store::unchanged(app.db(), namespace_id, batch_id, id).await?);
    }
    let todo = match strategy {
        DedupStrategy::Skip => objects - done,
        _ => objects,
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of objects are far below 2^52"
    )]
    let usd = todo as f64 * OBJECT_USD;
    let collections = || tiers.iter().flatten();
    let mut extractors: Vec<String> = Vec::new();
    for one in collections() {
        let id = &one.feature_extractor.feature_extractor_id;
        if !extractors.contains(id) {
            extractors.push(id.clone());
        }
    }
    Ok(BatchCostEstimate {
        batch_id: batch_id.to_owned(),
        collection_ids: collections()
            .filter_map(|one| one.collection_id.clone())
            .collect(),
        dedup_strategy: name_of(strategy),
        object_count: objects,
        already_extracted_count: done,
        // A tenth of a credit for each object.
        estimated_credits: todo.div_euclid(10) + i64::from(todo % 10 > 0),
        estimated_usd: Some(usd),
        extractors,
        ..Default::default()
    })
}

/// Submits every draft of a bucket; one that cannot be submitted keeps no other back.
async fn submit_all(app: &App, scope: &Scope<Write>, bucket_id: &str) -> Result<SubmitAllResponse> {
    let drafts = store::drafts(app.db(), &scope.namespace_id, bucket_id, SUBMITTED).await?;
    let mut answer = SubmitAllResponse::default();
    for batch_id in drafts {
        let objects = batches::object_ids(app.db(), &batch_id).await?;
        let mut one = BulkSubmittedBatch {
            object_count: i64::try_from(objects.len()).unwrap_or(0),
            status: name_of(TaskStatusEnum::Queued),
            ..Default::default()
        };
        let ask = SubmitBatchRequest::default();
        match queue(app, scope, bucket_id, &batch_id, ask, Again::Unfinished).await {
            Ok((task, _)) => {
                answer.submitted += 1;
                one.queue_position = task.queue_position;
            }
            Err(error) if error.is_callers() => {
                answer.failed += 1;
                one.status = name_of(TaskStatusEnum::Draft);
                one.error = Some(error.message());
            }
            Err(error) => return Err(error),
        }
        one.batch_id = batch_id;
        answer.batches.push(one);
    }
    Ok(answer)
}

/// Removes the documents that a batch wrote last, with all that was made of them; its objects can be processed again.
async fn remove_documents(
    app: &App,
    scope: &Scope<Delete>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BulkUpdateDocumentsResponse> {
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let batch = batches::find(app.db(), org_id, namespace_id, bucket_id, batch_id).await?;
    if batches::is_running(batch.status) {
        let message = "the batch runs: cancel it first";
        return Err(ApiError::conflict("", message));
    }
    let tiers = batch.dag_tiers.unwrap_or_default();
    check_covered(app, scope, &tiers).await?;
    let mut removed = 0;
    for collection_id in tiers.iter().flatten() {
        removed += match remove_from(app, scope, collection_id, batch_id).await {
            // The collection is gone, and its documents with it.
            Err(error) if error.is_not_found() => 0,
            removed => removed?,
        };
        let (namespace_id, collection, id) = (
            namespace_id.clone(),
            collection_id.clone(),
            batch_id.to_owned(),
        );
        app.db()
            .write(move |tx| {
                Box::pin(async move { store::forget(tx, &namespace_id, &collection, &id).await })
            })
            .await?;
    }
    Ok(BulkUpdateDocumentsResponse {
        status: Some(name_of(TaskStatusEnum::Completed)),
        updated_count: Some(removed),
        message: format!("{} removed", said(removed, "document", ("was", "were"))),
        ..Default::default()
    })
}

/// Refuses a key whose scopes leave a part of what is removed: what objects were made into is forgotten of all of them.
async fn check_covered(app: &App, scope: &Scope<Delete>, tiers: &[Vec<String>]) -> Result<()> {
    for id in tiers.iter().flatten() {
        match collections::known(app, scope, id, NamespaceOperation::DeleteData).await {
            Err(error) if !error.is_not_found() => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

async fn remove_from(
    app: &App,
    scope: &Scope<Delete>,
    collection_id: &str,
    batch_id: &str,
) -> Result<i64> {
    let reach = Reach {
        namespace_id: scope.namespace_id.clone(),
        collection_ids: vec![collection_id.to_owned()],
        principal: None,
    };
    let mut removed = 0;
    loop {
        let query = ListQuery {
            filter: Some(Filter::eq("_internal.batch_id", batch_id)),
            limit: PAGE,
            ..Default::default()
        };
        let page = app.store().list(&reach, query).await?;
        let ids: Vec<String> = page
            .documents
            .into_iter()
            .map(|one| one.document_id)
            .collect();
        if ids.is_empty() {
            return Ok(removed);
        }
        let gone = documents::delete(app, scope, collection_id, ids).await?;
        // What may not be removed would be found for ever.
        if gone.is_empty() {
            return Ok(removed);
        }
        removed += i64::try_from(gone.len()).unwrap_or(0);
    }
}

/// Puts back what failed in a tier and queues the batch again.
async fn retry_tier(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    batch_id: &str,
    tier: i64,
) -> Result<BatchRequeueResponse> {
    let again = Again::Failed {
        tier,
        error_type: String::new(),
    };
    let ask = SubmitBatchRequest::default();
    let (task, reset) = queue(app, scope, bucket_id, batch_id, ask, again).await?;
    Ok(BatchRequeueResponse {
        batch_id: batch_id.to_owned(),
        status: TaskStatusEnum::Queued,
        task_id: Some(task.task_id),
        retried_count: i64::try_from(reset).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_of_a_tier_is_accounted_for() {
        let standing = [
            (0, "FAILED", 1),
            (1, "FAILED", 2),
            (1, "PENDING", 3),
            (2, "COMPLETED", 4),
            (2, "SKIPPED", 5),
        ]
        .map(|(tier, status, number)| (tier, status.to_owned(), number));
        let figures = |tier, ended| {
            let one = tier_audit(tier, &standing, ended);
            let submitted = one.submitted.unwrap();
            (
                submitted,
                one.processed,
                one.failed,
                one.skipped,
                one.lost,
                one.balanced,
            )
        };
        assert_eq!(figures(0, false), (15, 14, 1, 0, 0, true));
        assert_eq!(figures(1, false), (14, 9, 2, 0, 0, false));
        assert_eq!(figures(1, true), (14, 9, 2, 0, 3, false));
        assert_eq!(figures(2, true), (9, 4, 0, 5, 0, true));
    }
}
