//! The end of a look: what the sync tells of itself from then on, and when the next one is.

use std::time::Duration;

use loupe_wire::{
    NotificationPriority, NotificationType, SyncConfigurationModel, SyncJobModel, SyncJobStatus,
    SyncMode, TaskStatusEnum,
};
use serde_json::json;

use super::{
    running::{TOLD, Tally, place_of},
    store,
};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::Result,
    jobs::{Claim, text},
    v1::notifications::{self, Notice},
};

/// Looks that failed one after the other before a sync rests until somebody resumes it.
const PATIENCE: i64 = 10;

/// Adds a look that ended to what the sync tells of itself.
pub fn account(model: &mut SyncConfigurationModel, job: &SyncJobModel, tally: &Tally, now: i64) {
    let began = job.started_at.map_or(now, |at| at.timestamp_micros());
    let seconds = Duration::from_micros(u64::try_from(now - began).unwrap_or(0)).as_secs_f64();
    let minutes = (seconds / 60.0).max(f64::EPSILON);
    let stats = model.stats.get_or_insert_default();
    stats.total_objects_synced += tally.synced;
    stats.total_objects_verified += tally.unchanged;
    stats.total_objects_failed += tally.failed;
    stats.total_objects_discovered += tally.discovered;
    stats.total_objects_skipped += tally.unchanged;
    stats.total_bytes_synced += tally.bytes;
    stats.total_duration_seconds += seconds;
    stats.total_runs_completed += 1;
    stats.last_run_objects_synced = tally.synced;
    stats.last_run_objects_verified = tally.unchanged;
    stats.last_run_objects_failed = tally.failed;
    stats.last_run_objects_discovered = tally.discovered;
    stats.last_run_objects_skipped = tally.unchanged;
    stats.last_run_bytes_synced = tally.bytes;
    stats.last_run_duration_seconds = seconds;
    stats.last_run_throughput_objects_per_min = tally.synced as f64 / minutes;
    stats.last_run_throughput_mbps = tally.bytes as f64 * 8.0 / 1e6 / (minutes * 60.0);
    stats.last_run_avg_object_size_bytes = tally.bytes / tally.synced.max(1);
    stats.peak_objects_per_min = stats
        .peak_objects_per_min
        .max(stats.last_run_throughput_objects_per_min);
    stats.last_run_at = Some(clock::time(now));
    stats.updated_at = Some(clock::time(now));
    model.total_files_discovered = tally.discovered;
    model.total_files_synced += tally.synced;
    model.total_files_failed += tally.failed;
    model.total_bytes_synced += tally.bytes;
    model.batches_created += i64::try_from(tally.batches.len()).unwrap_or(0);
    model.batch_ids.extend(tally.batches.iter().cloned());
    let old = model.batch_ids.len().saturating_sub(100);
    model.batch_ids.drain(..old);
    model.last_sync_at = Some(clock::time(now));
    model.updated_at = Some(clock::time(now));
    model.last_error = tally.error.clone();
    model.consecutive_failures = 0;
    model.status = match &tally.error {
        None => TaskStatusEnum::Completed,
        Some(_) => TaskStatusEnum::CompletedWithErrors,
    };
    // What was cut off goes on at once; who wanted one look has had it.
    if model.sync_mode == SyncMode::InitialOnly && !tally.unfinished {
        model.is_active = false;
    }
    let pause = match tally.unfinished {
        true => 0,
        false => model.polling_interval_seconds,
    };
    plan(model, now, pause);
}

/// Tells people of a sync that rests: its bucket follows nothing any more.
async fn give_notice(
    tx: &mut Tx,
    model: &SyncConfigurationModel,
    why: &str,
    now: i64,
) -> Result<()> {
    let notice = Notice {
        kind: NotificationType::PipelineFailure,
        priority: NotificationPriority::High,
        title: format!("The sync of {} was paused", model.source_path),
        content: format!(
            "{PATIENCE} looks failed one after the other, the last one because of: {why}. Resume it when the cause is gone: what came, changed and went meanwhile is found then."
        ),
        about: json!({
            "namespace_id": model.namespace_id, "bucket_id": model.bucket_id,
            "sync_config_id": model.sync_config_id, "connection_id": model.connection_id,
        }),
    };
    notifications::notify(tx, &model.internal_id, notice, now).await
}

/// The moment of the next look, if there is one.
pub fn plan(model: &mut SyncConfigurationModel, now: i64, seconds: i64) {
    if model.paused {
        // Also after a look that was under way when it was paused.
        model.status = TaskStatusEnum::Suspended;
    }
    let waits = model.is_active && !model.paused;
    model.next_sync_at = waits.then(|| clock::time(now + seconds * 1_000_000));
}

/// Ends a look that failed. The next one comes later each time; after the tenth somebody has to say that it should.
///
/// # Errors
/// The database does not answer.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let (place, job_id) = (place_of(claim), text(claim, "job_id").to_owned());
    let (reason, now): (String, i64) = (reason.chars().take(TOLD).collect(), app.clock().micros());
    let mut job = match store::find_job(app.db(), &place, &job_id).await {
        Ok(job) => job,
        // Its sync was removed.
        Err(error) if error.is_not_found() => return Ok(()),
        // Whoever takes the task over ends it: no other look begins before that.
        Err(error) => return Err(error),
    };
    job.status = Some(SyncJobStatus::Failed);
    job.phase = Some("failed".into());
    job.error = Some(reason.clone());
    job.completed_at = Some(clock::time(now));
    job.updated_at = Some(clock::time(now));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                if !store::end(tx, &place, &job_id).await? {
                    return Ok(());
                }
                store::update_job(tx, &job).await?;
                let mut model = store::hold(tx, &place).await?;
                model.status = TaskStatusEnum::Failed;
                model.last_error = Some(reason.clone());
                model.consecutive_failures += 1;
                model.stats.get_or_insert_default().total_runs_failed += 1;
                model.updated_at = Some(clock::time(now));
                // One that is paused may be looked into all the same, when somebody asks for it.
                if model.consecutive_failures >= PATIENCE && !model.paused {
                    model.paused = true;
                    model.paused_at = Some(clock::time(now));
                    model.pause_reason =
                        Some(format!("{PATIENCE} looks failed one after the other"));
                    give_notice(tx, &model, &reason, now).await?;
                }
                let doubled = u32::try_from(model.consecutive_failures.min(8)).unwrap_or(8);
                let later = (model.polling_interval_seconds * 2_i64.pow(doubled)).min(86_400);
                plan(&mut model, now, later);
                store::update(tx, &model, now).await
            })
        })
        .await
}
