//! Tiers that are healed: what stands still is started again, what is missing is made.

use loupe_wire::{
    BatchModel, HealTierAction, Object, SubmitBatchRequest, TaskStatusEnum, TierTaskInfo, Value,
};
use serde_json::json;

use super::{
    Again,
    again::NOTHING,
    flow::{Owner, insert_chunks},
    queue,
    stopping::Named,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    db::Tx,
    error::{ApiError, Result},
    jobs,
    v1::tasks::{self, name_of},
};

/// What was done.
#[derive(Debug, Default)]
struct Healed {
    /// Chunks that start again.
    restarted: i64,
    /// Chunks that were not there.
    added: i64,
    /// Objects that an ended batch processes again.
    put_back: i64,
}

/// Heals a tier: of a batch that runs the chunks, of one that has ended what the tier lacks.
pub(super) async fn heal(
    app: &App,
    scope: &Scope<Write>,
    bucket_id: &str,
    batch_id: &str,
    tier: i64,
    action: HealTierAction,
) -> Result<Object> {
    let named = Named {
        org_id: scope.caller.org_id.clone(),
        namespace_id: scope.namespace_id.clone(),
        bucket_id: bucket_id.to_owned(),
        batch_id: batch_id.to_owned(),
    };
    let (chunk, now) = (app.config().jobs.chunk_objects, app.clock().micros());
    let (mut healed, mut status) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let batch = named.lock(tx, now).await?;
                let healed = match batch.status {
                    TaskStatusEnum::Processing => {
                        restart(tx, &batch, &named, (tier, action), chunk, now).await?
                    }
                    // It waits for its turn: nothing stands still.
                    TaskStatusEnum::Queued => find(&batch, tier).map(|_| Healed::default())?,
                    _ => check_ended(&batch, tier, action).map(|()| Healed::default())?,
                };
                Ok((healed, batch.status))
            })
        })
        .await?;
    let mut task_id = None;
    if tasks::is_terminal(status) {
        let ask = SubmitBatchRequest::default();
        match queue(app, scope, bucket_id, batch_id, ask, Again::Missing(tier)).await {
            Ok((task, put_back)) => {
                healed.put_back = i64::try_from(put_back).unwrap_or(i64::MAX);
                (task_id, status) = (Some(task.task_id), TaskStatusEnum::Queued);
            }
            Err(error) if error.has_code(NOTHING) => {}
            Err(error) => return Err(error),
        }
    }
    app.work.notify_waiters();
    let told = json!({
        "batch_id": batch_id, "tier_num": tier, "action": name_of(action),
        "healed": healed.restarted + healed.added + healed.put_back > 0,
        "chunks_restarted": healed.restarted, "chunks_added": healed.added,
        "objects_put_back": healed.put_back, "status": name_of(status), "task_id": task_id,
    });
    match told {
        Value::Object(members) => Ok(members),
        _ => Ok(Object::new()),
    }
}

fn find(batch: &BatchModel, tier: i64) -> Result<&TierTaskInfo> {
    let found = batch.tier_tasks.iter().find(|one| one.tier_num == tier);
    found.ok_or_else(|| ApiError::not_found("tier", &tier.to_string()))
}

/// Chunks of a tier that runs: those that stand still start again, and those that are gone are inserted.
async fn restart(
    tx: &mut Tx,
    batch: &BatchModel,
    named: &Named,
    (tier, action): (i64, HealTierAction),
    chunk: usize,
    now: i64,
) -> Result<Healed> {
    let found = find(batch, tier)?;
    if tasks::is_terminal(found.status) {
        let message = "the tier has ended: it can be healed once the batch has";
        return Err(ApiError::conflict("", message));
    }
    let mut healed = Healed::default();
    if batch.current_tier != Some(tier) {
        return Ok(healed);
    }
    let task_id = batch.task_id.as_deref().unwrap_or_default();
    let held = action == HealTierAction::Restart;
    healed.restarted = jobs::hand_back(tx, task_id, held, now).await?;
    if jobs::unfinished(tx, task_id).await? == 0 {
        let owner = Owner {
            org_id: named.org_id.clone(),
            namespace_id: named.namespace_id.clone(),
        };
        healed.added = insert_chunks(tx, batch, &owner, tier, chunk, now).await?;
    }
    Ok(healed)
}

/// Of an ended batch nothing runs that could be restarted: what its tier lacks is made.
fn check_ended(batch: &BatchModel, tier: i64, action: HealTierAction) -> Result<()> {
    find(batch, tier)?;
    if action == HealTierAction::Restart {
        let message = "the batch has ended, nothing of it runs: send the action auto";
        return Err(ApiError::conflict("", message));
    }
    Ok(())
}
