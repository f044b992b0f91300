//! How far a migration is that extracts anew, stage by stage.

use chrono::{DateTime, Utc};
use loupe_wire::{
    GetMigrationResponse, MigrationProgress, MigrationResourceType, MigrationStage,
    MigrationStatus, ResourceProgress, StageProgress,
};

use super::work::{Refill, Work};
use crate::v1::batches::Standing;

type Moment = Option<DateTime<Utc>>;

/// Of a hundred parts of the way, those that lie before the batches.
const SETUP: f64 = 20.0;

/// Those that there are, those that are done, and those that failed.
type Items = (i64, i64, i64);

/// Before anything is done.
pub(super) fn first(work: &Work, refill: &Refill, at: Moment) -> MigrationProgress {
    use MigrationStage::{BatchCreation, BatchProcessing, Finalization, NamespaceSetup};
    let copied = i64::try_from(work.copy.collections.len()).unwrap_or(i64::MAX);
    let stages = [
        (NamespaceSetup, refill.objects.saturating_add(copied)),
        (BatchCreation, 0),
        (BatchProcessing, 0),
        (Finalization, 1),
    ];
    let stage = |(stage, items_total)| StageProgress {
        stage,
        status: MigrationStatus::Pending,
        items_total,
        ..StageProgress::default()
    };
    let resource = |id: &String| ResourceProgress {
        resource_id: id.clone(),
        resource_type: MigrationResourceType::Collection,
        status: MigrationStatus::Pending,
        ..ResourceProgress::default()
    };
    MigrationProgress {
        overall_status: MigrationStatus::Pending,
        current_stage: Some(NamespaceSetup),
        stages: stages.into_iter().map(stage).collect(),
        resources: refill.collections.keys().map(resource).collect(),
        started_at: at,
        ..MigrationProgress::default()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of objects are far below 2^52"
)]
fn percent((total, done, failed): Items, is_over: bool) -> f64 {
    match (total, is_over) {
        (_, true) => 100.0,
        (..=0, false) => 0.0,
        _ => ((done + failed) as f64 / total as f64 * 100.0).clamp(0.0, 100.0),
    }
}

/// A stage as it stands; answers its part of the way.
fn advance(
    progress: &mut MigrationProgress,
    which: MigrationStage,
    items: Items,
    is_over: bool,
    at: Moment,
) -> f64 {
    let share = percent(items, is_over);
    let stages = progress.stages.iter_mut();
    for stage in stages.filter(|one| one.stage == which) {
        (stage.items_total, stage.items_completed, stage.items_failed) = items;
        stage.progress_percent = share;
        stage.started_at = stage.started_at.or(at);
        stage.completed_at = stage.completed_at.or(at).filter(|_| is_over);
        stage.status = match is_over {
            true => MigrationStatus::Completed,
            false => MigrationStatus::InProgress,
        };
    }
    share
}

/// So many objects have come, and so many collections that are copied.
pub(super) fn set_up(migration: &mut GetMigrationResponse, done: i64, at: Moment) {
    use MigrationStage::NamespaceSetup;
    migration.status = MigrationStatus::InProgress;
    let progress = &mut migration.progress;
    progress.overall_status = MigrationStatus::InProgress;
    let total = progress
        .stages
        .iter()
        .find(|one| one.stage == NamespaceSetup);
    // Some may have been made since they were counted.
    let total = total.map_or(0, |one| one.items_total).max(done);
    let share = advance(progress, NamespaceSetup, (total, done, 0), false, at);
    progress.overall_progress_percent = share / 100.0 * SETUP;
}

/// A collection is there with its documents.
pub(super) fn copied(migration: &mut GetMigrationResponse, id: &str) {
    let parts = migration.progress.resources.iter_mut();
    for part in parts.filter(|one| one.resource_id == id) {
        (part.status, part.progress_percent) = (MigrationStatus::Completed, 100.0);
    }
}

/// All is there that batches are made over.
pub(super) fn begin_batches(migration: &mut GetMigrationResponse, at: Moment) {
    use MigrationStage::{BatchCreation, NamespaceSetup};
    let progress = &mut migration.progress;
    let stage = progress
        .stages
        .iter()
        .find(|one| one.stage == NamespaceSetup);
    let came = stage.map_or(0, |one| one.items_completed);
    advance(progress, NamespaceSetup, (came, came, 0), true, at);
    advance(progress, BatchCreation, (0, 0, 0), false, at);
    progress.current_stage = Some(BatchCreation);
    progress.overall_progress_percent = SETUP;
}

/// The batches as they stand.
pub(super) fn look(migration: &mut GetMigrationResponse, standing: &Standing, at: Moment) {
    use MigrationStage::{BatchCreation, BatchProcessing};
    let progress = &mut migration.progress;
    let is_split = standing.splitting == 0;
    let missing = match is_split {
        true => standing.wanted - standing.batches,
        false => 0,
    };
    let items = (standing.wanted, standing.batches, missing);
    advance(progress, BatchCreation, items, is_split, at);
    let lost = standing.failed + standing.canceled;
    let items = (standing.objects, standing.done, lost);
    let share = advance(progress, BatchProcessing, items, standing.is_over(), at);
    let stages = progress.stages.iter_mut();
    for stage in stages.filter(|one| one.stage == BatchProcessing) {
        stage.error_message = failures(standing);
    }
    progress.current_stage = Some(match is_split {
        true => BatchProcessing,
        false => BatchCreation,
    });
    progress.overall_progress_percent = SETUP + share * (100.0 - SETUP) / 100.0;
    let parts = progress.resources.iter_mut();
    for part in parts.filter(|one| one.status != MigrationStatus::Completed) {
        (part.status, part.progress_percent) = (MigrationStatus::InProgress, share);
    }
}

/// Everything is done that can be.
pub(super) fn end(migration: &mut GetMigrationResponse, standing: &Standing, at: Moment) {
    migration.status = MigrationStatus::Completed;
    migration.completed_at = at;
    migration.error_message = failures(standing);
    let progress = &mut migration.progress;
    progress.overall_status = MigrationStatus::Completed;
    progress.overall_progress_percent = 100.0;
    progress.current_stage = Some(MigrationStage::Finalization);
    advance(progress, MigrationStage::Finalization, (1, 1, 0), true, at);
    for part in &mut progress.resources {
        (part.status, part.progress_percent) = (MigrationStatus::Completed, 100.0);
    }
}

/// How many objects failed, and the first reason; nothing where none did.
pub(super) fn failures(standing: &Standing) -> Option<String> {
    let (failed, canceled) = (standing.failed, standing.canceled);
    let missing = match standing.is_over() {
        true => standing.objects - standing.done,
        false => failed + canceled,
    };
    if missing <= 0 {
        return None;
    }
    let mut said = format!("{missing} of {} objects failed", standing.objects);
    if canceled > 0 {
        said = format!("{said}, {canceled} of them with canceled batches");
    }
    match &standing.error {
        Some(error) => Some(format!("{said}; the first error: {error}")),
        None => Some(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_counted_and_said() {
        let standing = Standing {
            wanted: 2,
            batches: 2,
            objects: 4,
            done: 3,
            failed: 1,
            error: Some("no such picture".into()),
            ..Standing::default()
        };
        let said = "1 of 4 objects failed; the first error: no such picture";
        assert_eq!(failures(&standing).as_deref(), Some(said));
        let refill = Refill {
            objects: 4,
            collections: [("col_1".to_owned(), "col_2".to_owned())].into(),
            ..Refill::default()
        };
        let mut migration = GetMigrationResponse {
            progress: first(&Work::default(), &refill, None),
            ..GetMigrationResponse::default()
        };
        set_up(&mut migration, 2, None);
        assert!((migration.progress.overall_progress_percent - 10.0).abs() < 0.01);
        begin_batches(&mut migration, None);
        let open = Standing {
            open: 1,
            done: 1,
            failed: 1,
            ..standing.clone()
        };
        look(&mut migration, &open, None);
        assert!((migration.progress.overall_progress_percent - 60.0).abs() < 0.01);
        look(&mut migration, &standing, None);
        end(&mut migration, &standing, None);
        let items =
            |stage: &StageProgress| (stage.items_total, stage.items_completed, stage.items_failed);
        let stages: Vec<_> = migration.progress.stages.iter().map(items).collect();
        assert_eq!(stages, [(2, 2, 0), (2, 2, 0), (4, 3, 1), (1, 1, 0)]);
        assert_eq!(migration.error_message.as_deref(), Some(said));
        // One whose batches could not all be made has lost more than what failed.
        let cut = Standing {
            done: 1,
            failed: 1,
            ..standing
        };
        assert!(failures(&cut).is_some_and(|said| said.starts_with("3 of 4 objects failed")));
    }
}
