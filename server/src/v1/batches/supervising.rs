//! Batches are looked after: the leader starts what stands still again, ends what takes longer than a day, and retries what
//! failed for reasons that may pass. Each look is one transaction that also says when the next one is due, so of two
//! processes that take themselves for the leader one does it.

use indexmap::IndexMap;
use loupe_wire::{BatchModel, BatchType, FailureCategory, SubmitBatchRequest, TaskStatusEnum};

use super::{
    Again,
    ending::{end_batch, end_tier},
    fillings::count_held,
    flow::{Owner, insert_chunks, start_tier},
    queue,
    stopping::{Named, quiet},
    store,
};
use crate::{
    app::App,
    args,
    auth::{Caller, Scope, Write},
    clock,
    db::Tx,
    error::Result,
    front, jobs,
    v1::tasks,
};

/// Microseconds without any progress after which a batch stands still.
pub(super) const STILL: i64 = 30 * 60 * 1_000_000;
/// Microseconds that a batch may run.
const DEADLINE: i64 = 24 * HOUR;
const HOUR: i64 = 3_600_000_000;
/// Times that the lost work of a batch is made anew.
pub(super) const MOST_RESTARTS: i64 = 3;
/// The word for failures that are worth another try.
pub(super) const TRANSIENT: &str = "transient";
/// Where a batch says when it is retried.
const NEXT: &str = "next_retry_at";

crate::sql! {
    // Of every organization: the leader looks after all batches.
    const DUE = "SELECT batch_id FROM batches WHERE due_at <= $1 ORDER BY due_at, batch_id LIMIT 100";
    const IS_DUE = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE batch_id = $1 AND namespace_id = $2 AND due_at <= $3";
    const SET_DUE = "UPDATE batches SET due_at = $3 WHERE batch_id = $1 AND namespace_id = $2";
    const MOVED = "SELECT CAST(COALESCE(MAX(updated_at), 0) AS BIGINT), CAST(COALESCE(MAX(CASE WHEN status = 'PROCESSING' THEN lease_until ELSE 0 END), 0) AS BIGINT) FROM tasks WHERE org_id = $1 AND parent_id = $2";
    const FAILURES = "SELECT COALESCE(error_type, 'permanent'), CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' AND ($2 < 0 OR tier = $2) GROUP BY COALESCE(error_type, 'permanent') ORDER BY 1";
    const FAIL_WAITING = "UPDATE batch_objects SET status = 'FAILED', error = $2, error_type = $3, updated_at = $4 WHERE batch_id = $1 AND status = 'PENDING'";
    const FAIL_OBJECTS = "UPDATE objects SET status = 'FAILED', error = $4, updated_at = $3 WHERE namespace_id = $1 AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED') AND object_id IN (SELECT object_id FROM batch_objects WHERE batch_id = $2 AND status = 'PENDING')";
}

/// What a look finds.
enum Finding {
    /// Nothing to do before the next look.
    Well,
    /// What stood still goes on.
    Restarted,
    /// It cannot go on.
    Over(Owner, Over),
    /// Failures are worth another try; the task of the last one.
    Retry(Owner, String),
}

/// Why a submission of a batch cannot go on.
struct Over {
    /// Each submission has a task of its own.
    task_id: String,
    category: FailureCategory,
    reason: &'static str,
    /// What its objects failed of: what is worth another try is queued again by itself.
    error_type: &'static str,
}

/// Looks at the batches that are due.
///
/// # Errors
/// The database does not answer.
pub async fn supervise(app: &App) -> Result<()> {
    let due: Vec<(String,)> = app.db().all(DUE, args![app.clock().micros()]).await?;
    for (batch_id,) in due {
        if let Err(error) = look(app, &batch_id).await {
            tracing::warn!(%error, batch_id, "a batch could not be looked after");
        }
    }
    Ok(())
}

async fn look(app: &App, batch_id: &str) -> Result<()> {
    let (chunk, now) = (app.config().jobs.chunk_objects, app.clock().micros());
    let id = batch_id.to_owned();
    let finding = app
        .db()
        .write(move |tx| Box::pin(async move { find(tx, &id, chunk, now).await }))
        .await?;
    match finding {
        Finding::Well => Ok(()),
        Finding::Restarted => {
            tracing::warn!(batch_id, "a batch stood still: its work starts again");
            app.work.notify_waiters();
            Ok(())
        }
        Finding::Over(owner, over) => {
            tracing::warn!(batch_id, reason = over.reason, "a batch is ended");
            let cause = tasks::store::cause(app.db(), &owner.org_id, &over.task_id).await?;
            front::caused(cause, end(app, batch_id, owner, over)).await
        }
        Finding::Retry(owner, task_id) => {
            let cause = tasks::store::cause(app.db(), &owner.org_id, &task_id).await?;
            front::caused(cause, retry(app, owner, batch_id)).await
        }
    }
}

/// Decides what is to be done about a batch, and when it is looked at next.
async fn find(tx: &mut Tx, batch_id: &str, chunk: usize, now: i64) -> Result<Finding> {
    store::lock(tx, batch_id, now).await?;
    let Some((batch, org_id, namespace_id)) = store::read(tx, batch_id).await? else {
        return Ok(Finding::Well);
    };
    let due = args![batch_id, &namespace_id, now];
    // Another process has looked at it meanwhile.
    if tx.number(IS_DUE, due).await? == 0 {
        return Ok(Finding::Well);
    }
    let owner = Owner {
        org_id,
        namespace_id,
    };
    match batch.status {
        TaskStatusEnum::Processing => find_running(tx, batch, owner, chunk, now).await,
        TaskStatusEnum::Failed | TaskStatusEnum::CompletedWithErrors
            if batch.retry_count < batch.max_retries =>
        {
            begin_retry(tx, batch, owner, now).await
        }
        // It was submitted, canceled or deleted since.
        _ => {
            set_due(tx, &batch, None).await?;
            Ok(Finding::Well)
        }
    }
}

/// A batch that runs: whether it does, and not for too long.
async fn find_running(
    tx: &mut Tx,
    mut batch: BatchModel,
    owner: Owner,
    chunk: usize,
    now: i64,
) -> Result<Finding> {
    let task_id = batch.task_id.clone().unwrap_or_default();
    let tiers = batch.tier_tasks.iter();
    let started = tiers.filter_map(|tier| tier.started_at).min();
    let until = started.map_or(now, |at| at.timestamp_micros()) + DEADLINE;
    let next = match until > now {
        true => until.min(now + STILL),
        false => now + STILL,
    };
    set_due(tx, &batch, Some(next)).await?;
    if until <= now {
        let over = Over {
            task_id,
            category: FailureCategory::Timeout,
            reason: "the batch did not end within 24 hours",
            error_type: "resource",
        };
        return Ok(Finding::Over(owner, over));
    }
    let moved: Option<(i64, i64)> = tx.one(MOVED, args![&owner.org_id, &task_id]).await?;
    let (moved, held) = moved.unwrap_or_default();
    if held > now || now - moved < STILL {
        return Ok(Finding::Well);
    }
    jobs::hand_back(tx, &task_id, false, now).await?;
    if jobs::unfinished(tx, &task_id).await? > 0 {
        return Ok(Finding::Restarted);
    }
    // The work itself is lost.
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    let waits = store::next_tier(tx, &batch_id).await?;
    let Some(tier) = waits.filter(|_| batch.node_death_resubmit_count < MOST_RESTARTS) else {
        let over = Over {
            task_id,
            category: FailureCategory::Orphaned,
            reason: "the work of the batch was lost again and again",
            error_type: TRANSIENT,
        };
        return Ok(Finding::Over(owner, over));
    };
    batch.node_death_resubmit_count += 1;
    batch.updated_at = Some(clock::time(now));
    if batch.current_tier == Some(tier) {
        insert_chunks(tx, &batch, &owner, tier, chunk, now).await?;
        store::update(tx, &batch, now).await?;
    } else {
        start_tier(tx, &mut batch, &owner, tier, chunk, now).await?;
    }
    Ok(Finding::Restarted)
}

/// Counts a retry. One that cannot be queued now is looked at again like a batch that stands still.
async fn begin_retry(
    tx: &mut Tx,
    mut batch: BatchModel,
    owner: Owner,
    now: i64,
) -> Result<Finding> {
    batch.retry_count += 1;
    batch.last_retry_at = Some(clock::time(now));
    batch.retry_reason = Some("objects failed for reasons that may have passed".into());
    store::update(tx, &batch, now).await?;
    set_due(tx, &batch, Some(now + STILL)).await?;
    Ok(Finding::Retry(owner, batch.task_id.unwrap_or_default()))
}

async fn retry(app: &App, owner: Owner, batch_id: &str) -> Result<()> {
    let caller = Caller::system(&owner.org_id);
    let scope: Scope<Write> = Scope::internal(caller, owner.namespace_id);
    let ask = SubmitBatchRequest::default();
    queue(app, &scope, "", batch_id, ask, Again::Retry).await?;
    tracing::info!(batch_id, "a batch is retried");
    Ok(())
}

/// Ends a batch that cannot go on: what still waits in it failed. Nothing, if it has ended or was submitted anew.
async fn end(app: &App, batch_id: &str, owner: Owner, over: Over) -> Result<()> {
    let named = Named {
        org_id: owner.org_id.clone(),
        namespace_id: owner.namespace_id.clone(),
        bucket_id: String::new(),
        batch_id: batch_id.to_owned(),
    };
    quiet(app, &named, None).await?;
    let held = count_held(app, batch_id).await?;
    let (id, now) = (batch_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut batch = named.lock(tx, now).await?;
                let same = batch.task_id.as_ref() == Some(&over.task_id);
                if batch.status != TaskStatusEnum::Processing || !same {
                    return Ok(());
                }
                jobs::cancel_children(tx, &over.task_id, now).await?;
                if batch.r#type == BatchType::Bucket {
                    let args = args![&owner.namespace_id, &id, now, over.reason];
                    tx.run(FAIL_OBJECTS, args).await?;
                }
                let args = args![&id, over.reason, over.error_type, now];
                if tx.run(FAIL_WAITING, args).await? > 0 {
                    batch.failure_category = Some(over.category);
                    batch.failure_reason = Some(over.reason.to_owned());
                }
                let tier = batch.current_tier.unwrap_or(0);
                end_tier(tx, &mut batch, tier, now).await?;
                end_batch(tx, batch, &owner, &held, now).await
            })
        })
        .await
}

async fn set_due(tx: &mut Tx, batch: &BatchModel, due: Option<i64>) -> Result<()> {
    let (id, namespace_id) = (batch.batch_id.clone(), batch.namespace_id.clone());
    tx.run(SET_DUE, args![id, namespace_id, due]).await?;
    Ok(())
}

/// Has a batch looked after from when one of its tiers starts.
pub(super) async fn watch(tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<()> {
    set_due(tx, batch, Some(now + STILL)).await
}

/// How many objects failed in a tier, or in any if it is below zero, by kind; none where none did.
pub(super) async fn failures(
    tx: &mut Tx,
    batch_id: &str,
    tier: i64,
) -> Result<Option<IndexMap<String, i64>>> {
    let rows: Vec<(String, i64)> = tx.all(FAILURES, args![batch_id, tier]).await?;
    let kinds: IndexMap<String, i64> = rows.into_iter().collect();
    Ok((!kinds.is_empty()).then_some(kinds))
}

/// Notes on a batch that ends what its objects failed of.
pub(super) async fn note_failures(tx: &mut Tx, batch: &mut BatchModel, now: i64) -> Result<()> {
    let batch_id = batch.batch_id.clone().unwrap_or_default();
    batch.error_summary = failures(tx, &batch_id, -1).await?;
    let passing = batch.error_summary.as_ref().and_then(|kinds| {
        let all: i64 = kinds.values().sum();
        kinds.get(TRANSIENT).map(|passing| *passing == all)
    });
    if batch.error_summary.is_some() && batch.failure_category.is_none() {
        batch.failure_category = Some(match passing {
            Some(true) => FailureCategory::Infrastructure,
            _ => FailureCategory::Pipeline,
        });
    }
    if let Some(due) = next_retry(batch, passing.is_some(), now) {
        let at = clock::time(due).to_rfc3339();
        batch.status_diagnostics.insert(NEXT.into(), at.into());
    }
    Ok(())
}

/// Sets when a batch that has ended is retried, if it is.
pub(super) async fn schedule(tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<()> {
    let summary = batch.error_summary.as_ref();
    let passing = summary.is_some_and(|kinds| kinds.contains_key(TRANSIENT));
    set_due(tx, batch, next_retry(batch, passing, now)).await
}

/// One hour after a batch failed, then two, then four; half an hour after its work was lost.
fn next_retry(batch: &BatchModel, passing: bool, now: i64) -> Option<i64> {
    let ended = matches!(
        batch.status,
        TaskStatusEnum::Failed | TaskStatusEnum::CompletedWithErrors
    );
    let canceled = |status| status == TaskStatusEnum::Canceled;
    // A retry would begin what somebody stopped.
    let stopped = batch.tier_tasks.iter().any(|tier| {
        let mut jobs = tier.extractor_jobs.iter();
        canceled(tier.status) || jobs.any(|job| canceled(job.status))
    });
    let retries = passing && ended && !stopped && batch.retry_count < batch.max_retries;
    let doubled = u32::try_from(batch.retry_count).unwrap_or(0).min(2);
    let pause = match batch.failure_category {
        Some(FailureCategory::Orphaned) => STILL,
        _ => 2_i64.pow(doubled) * HOUR,
    };
    retries.then_some(now + pause)
}

/// Whether a batch that failed waits for the time at which it is retried.
pub(super) fn is_retried(batch: &BatchModel) -> bool {
    let failed = matches!(
        batch.status,
        TaskStatusEnum::Failed | TaskStatusEnum::CompletedWithErrors
    );
    // Where each retry was refused, its time stays behind.
    let is_left = batch.retry_count < batch.max_retries;
    failed && is_left && batch.status_diagnostics.contains_key(NEXT)
}

/// Has a batch that is canceled retried no more. The caller writes it.
pub(super) async fn forget_retry(tx: &mut Tx, batch: &mut BatchModel) -> Result<()> {
    batch.status_diagnostics.remove(NEXT);
    set_due(tx, batch, None).await
}

/// Forgets what the batch's last run failed of. Whoever submits it gives it all its retries again.
pub(super) fn renew(batch: &mut BatchModel, is_retry: bool) {
    batch.error_summary = None;
    batch.failure_category = None;
    batch.failure_reason = None;
    batch.status_diagnostics.remove(NEXT);
    batch.node_death_resubmit_count = 0;
    if !is_retry {
        batch.retry_count = 0;
        batch.last_retry_at = None;
        batch.retry_reason = None;
    }
}
