//! How long a batch in the queue waits for its turn, going by how long batches took lately.

use loupe_wire::{BatchModel, TaskResponse};

use super::store;
use crate::{app::App, db::Json, error::Result};

crate::sql! {
    // Of every organization: the queue is one. Nothing but durations is read.
    const RECENT = "SELECT data FROM batches WHERE status = 'COMPLETED' ORDER BY queued_at DESC LIMIT 20";
}

/// Tells with the task of a batch that was queued how long that is likely to wait, while anything tells it. Where it starts at once,
/// neither place nor wait is told.
pub(super) async fn tell(app: &App, task: &mut TaskResponse) -> Result<()> {
    let position = task.queue_position.unwrap_or(1);
    let room = i64::try_from(app.config().jobs.running_batches).unwrap_or(i64::MAX);
    let free = (room - store::running(app.db()).await?).max(0);
    if position <= free {
        task.queue_position = None;
        return Ok(());
    }
    let recent: Vec<(Json<BatchModel>,)> = app.db().all(RECENT, vec![]).await?;
    let took: Vec<i64> = recent.iter().filter_map(|(one,)| duration(one)).collect();
    let count = i64::try_from(took.len()).unwrap_or(0);
    task.estimated_wait_minutes = (count > 0).then(|| {
        let average = took.iter().sum::<i64>() / count;
        // As many as run at once are through after each average.
        let turns = (position - free - 1) / room.max(1) + 1;
        minutes(turns.saturating_mul(average))
    });
    Ok(())
}

/// Microseconds from the first tier's start to the last one's end.
fn duration(batch: &BatchModel) -> Option<i64> {
    let started = batch.tier_tasks.iter().filter_map(|one| one.started_at);
    let ended = batch.tier_tasks.iter().filter_map(|one| one.completed_at);
    let took = ended.max()? - started.min()?;
    took.num_microseconds()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "durations of batches are far below 2^52 microseconds"
)]
fn minutes(micros: i64) -> f64 {
    micros as f64 / 60e6
}
