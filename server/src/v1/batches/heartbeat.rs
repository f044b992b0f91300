//! When batches last moved, and whether they stand still: told by what workers do with their chunks, which they renew their
//! leases on.

use std::collections::HashMap;

use loupe_wire::{BatchModel, TaskStatusEnum};

use super::{store, supervising::STILL};
use crate::{app::App, args, clock, db::Arg, error::Result};

crate::sql! {
    // Few batches run at a time: twenty at once, those that are not named are empty.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const BEATS = "SELECT parent_id, CAST(MAX(updated_at) AS BIGINT), CAST(COALESCE(MAX(CASE WHEN status = 'PROCESSING' THEN lease_until ELSE 0 END), 0) AS BIGINT) FROM tasks WHERE org_id || '' = $1 AND parent_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) GROUP BY parent_id";
}

const AT_ONCE: usize = 20;

/// When the chunks of running batches last moved, in microseconds, by the task of the batch.
pub type Beats = HashMap<String, i64>;

/// Of those among the batches that run, in one query for all that commonly do.
pub async fn read(app: &App, org_id: &str, batches: &[BatchModel]) -> Result<Beats> {
    let running = batches
        .iter()
        .filter(|batch| batch.status == TaskStatusEnum::Processing);
    let task_ids: Vec<&str> = running
        .filter_map(|batch| batch.task_id.as_deref())
        .collect();
    let lease = i64::try_from(app.config().jobs.lease_seconds).unwrap_or(60) * 1_000_000;
    let mut beats = Beats::new();
    for some in task_ids.chunks(AT_ONCE) {
        let mut args = args![org_id];
        let id = |place: usize| some.get(place).copied().unwrap_or_default();
        args.extend((0..AT_ONCE).map(|place| Arg::from(id(place))));
        let rows: Vec<(String, i64, i64)> = app.db().all(BEATS, args).await?;
        let beat = |(id, moved, held): (String, i64, i64)| (id, moved.max(held - lease));
        beats.extend(rows.into_iter().map(beat));
    }
    Ok(beats)
}

/// Says of a batch, its tiers and their jobs when they last moved, and of one that has not ended how it is.
pub fn show(batch: &mut BatchModel, beats: &Beats, now: i64) {
    let task_id = batch.task_id.as_deref().unwrap_or_default();
    let beat = beats.get(task_id).map(|at| clock::time(now.min(*at)));
    for tier in &mut batch.tier_tasks {
        let own = beat.filter(|_| batch.current_tier == Some(tier.tier_num));
        let moved = tier.started_at.max(tier.completed_at).max(own);
        tier.last_activity_at = moved;
        for job in &mut tier.extractor_jobs {
            let running = || moved.filter(|_| job.started_at.is_some());
            job.last_activity_at = job.completed_at.or_else(running);
        }
    }
    let tiers = batch.tier_tasks.iter();
    let moved = tiers.filter_map(|tier| tier.last_activity_at).max();
    // One that waits for its turn was put there; a draft has not moved yet.
    let queued = batch.updated_at.filter(|_| batch.task_id.is_some());
    batch.last_activity_at = moved.or(queued);
    let last = batch.last_activity_at.map_or(0, |at| at.timestamp_micros());
    let stands = batch.status == TaskStatusEnum::Processing && now - last >= STILL;
    let health = if stands { "stalled" } else { "healthy" };
    batch.health = store::is_running(batch.status).then(|| health.to_owned());
}
