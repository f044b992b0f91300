//! Doing it: rows at once, documents by a task that tells how far it is after each collection.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use loupe_wire::{
    GetMigrationResponse, MigrationResourceType, MigrationStage, MigrationStatus, NamespaceModel,
    ResourceProgress, StageProgress, TaskType,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    MIGRATIONS,
    checking::Checked,
    extracting, is_over, stages, telling,
    work::{Refill, Step, Work},
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
    jobs::{self, Claim},
    v1::{
        audit::{self, PartOf},
        copying::{self, Copy},
        namespaces::{self, Clone, NAMESPACES},
        tasks::{self, NewTask},
    },
};

/// The queue's word for a migration.
pub const MIGRATE: &str = "migrate";

/// Writes the new namespace with its rows, or those alone into the one that is extended, and leaves the task that copies
/// documents; a dry run is over at once.
pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    migration: GetMigrationResponse,
    checked: Checked,
) -> Result<GetMigrationResponse> {
    let (caller, now) = (caller.clone(), app.clock().micros());
    let at = Some(clock::time(now));
    if migration.config.dry_run {
        return end_dry(app, &caller, &migration.migration_id, now).await;
    }
    let is_new = checked.extended.is_none();
    let namespace = match checked.extended {
        // Of what is there the rows that come have the time alone.
        Some(extended) => NamespaceModel {
            created_at: at,
            ..extended
        },
        None => new_namespace(app, &caller, &migration, &checked.source_id, at).await?,
    };
    let clone = Clone::of(namespace, checked.pattern)?;
    let mut collections: BTreeMap<String, String> =
        clone.ids.collections.clone().into_iter().collect();
    let refill = checked.refilled.map(|refilled| {
        collections.retain(|id, _| !refilled.collections.contains(id));
        Refill {
            actor: caller.actor().to_owned(),
            until: now,
            ..Refill::of(refilled, &clone.ids, &migration.config)
        }
    });
    let work = Work {
        migration_id: migration.migration_id.clone(),
        copy: Copy {
            from_namespace: checked.source_id,
            collections,
            whole: is_new,
        },
        refill,
    };
    let started = app
        .db()
        .write(move |tx| Box::pin(async move { start(tx, &caller, clone, work, now).await }))
        .await?;
    app.work.notify_one();
    Ok(started)
}

/// The namespace that a migration makes.
async fn new_namespace(
    app: &App,
    caller: &Caller,
    migration: &GetMigrationResponse,
    source_id: &str,
    at: Option<DateTime<Utc>>,
) -> Result<NamespaceModel> {
    let source = NAMESPACES.find(app.db(), &caller.org_id, source_id).await?;
    let name = migration.config.target_namespace_name.clone();
    Ok(NamespaceModel {
        namespace_id: Some(id::new("ns_")),
        namespace_name: namespaces::check_name(&name.unwrap_or_default())?,
        clone_status: Some("cloning".into()),
        clone_phase: Some("queued".into()),
        clone_error: None,
        clone_dispatched_at: at,
        source_namespace_id: Some(source.id),
        namespace_ready: false,
        created_at: at,
        updated_at: at,
        // The time of what it is made of is not its own.
        expires_at: None,
        ..source.data.0
    })
}

/// Writes the rows, the task that goes on with the documents, and how far the migration is.
async fn start(
    tx: &mut Tx,
    caller: &Caller,
    mut clone: Clone,
    work: Work,
    now: i64,
) -> Result<GetMigrationResponse> {
    // Held before the first event, which is a lock too: whoever cancels it holds it first.
    MIGRATIONS
        .hold(tx, &caller.org_id, &work.migration_id)
        .await?;
    let at = Some(clock::time(now));
    let target = clone.namespace.namespace_id.clone().unwrap_or_default();
    let body = serde_json::to_value(&work).map_err(ApiError::internal)?;
    let task_type = TaskType::ApiNamespacesMigrationsRun;
    let mut task = NewTask::work(&caller.org_id, &target, task_type, MIGRATE, body);
    task.inputs = vec![work.migration_id.clone().into()];
    task.description = format!("migration into {}", clone.namespace.namespace_name);
    let task = tasks::insert(tx, task, now).await?;
    let from = &work.copy.from_namespace;
    if work.copy.whole {
        clone.namespace.clone_task_id = Some(task.task_id.clone());
        let changes = json!({ "migrated_from": from });
        clone.insert(tx, caller, changes, now).await?;
    } else {
        let changes = json!({ "change": "namespace_extended", "extended_from": from });
        clone.add(tx, caller, changes, now).await?;
    }
    let started = change(tx, &caller.org_id, &work.migration_id, now, |migration| {
        if migration.status != MigrationStatus::Draft {
            return Err(ApiError::conflict("", "the migration was started already"));
        }
        migration.status = MigrationStatus::Pending;
        migration.progress = match &work.refill {
            Some(refill) => stages::first(&work, refill, at),
            None => progress(&work.copy, at),
        };
        migration.task_id = Some(task.task_id);
        migration.started_at = at;
        migration
            .additional_data
            .insert("target_namespace_id".into(), target.into());
        Ok(())
    })
    .await?;
    record(tx, caller, &started, "migration_started", now).await?;
    Ok(started)
}

/// The audit log's record of what people did with a migration: a change of the namespace that it is of.
pub(super) async fn record(
    tx: &mut Tx,
    caller: &Caller,
    migration: &GetMigrationResponse,
    what: &str,
    now: i64,
) -> Result<()> {
    let changes = json!({"change": what, "migration_id": migration.migration_id});
    let whole = PartOf::Namespace(&migration.namespace_id);
    audit::record_part(tx, caller, whole, changes, now).await
}

async fn end_dry(app: &App, caller: &Caller, id: &str, now: i64) -> Result<GetMigrationResponse> {
    let (caller, id, at) = (caller.clone(), id.to_owned(), Some(clock::time(now)));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let tried = change(tx, &caller.org_id, &id, now, |migration| {
                    migration.status = MigrationStatus::Completed;
                    migration.progress.overall_status = MigrationStatus::Completed;
                    migration.progress.overall_progress_percent = 100.0;
                    migration.started_at = at;
                    migration.completed_at = at;
                    Ok(())
                })
                .await?;
                record(tx, &caller, &tried, "migration_started", now).await?;
                Ok(tried)
            })
        })
        .await
}

fn progress(copy: &Copy, started_at: Option<DateTime<Utc>>) -> loupe_wire::MigrationProgress {
    let resource = |id: &String| ResourceProgress {
        resource_id: id.clone(),
        resource_type: MigrationResourceType::Collection,
        status: MigrationStatus::Pending,
        ..ResourceProgress::default()
    };
    loupe_wire::MigrationProgress {
        overall_status: MigrationStatus::Pending,
        current_stage: Some(MigrationStage::NamespaceSetup),
        stages: vec![StageProgress {
            stage: MigrationStage::BatchProcessing,
            status: MigrationStatus::Pending,
            started_at,
            items_total: i64::try_from(copy.collections.len()).unwrap_or(i64::MAX),
            ..StageProgress::default()
        }],
        resources: copy.collections.keys().map(resource).collect(),
        started_at,
        ..loupe_wire::MigrationProgress::default()
    }
}

/// Changes a migration in its transaction, and answers it; an end is told.
pub(super) async fn change(
    tx: &mut Tx,
    org_id: &str,
    id: &str,
    now: i64,
    edit: impl FnOnce(&mut GetMigrationResponse) -> Result<()>,
) -> Result<GetMigrationResponse> {
    let mut migration = MIGRATIONS.hold(tx, org_id, id).await?.data.0;
    let was_over = is_over(migration.status);
    edit(&mut migration)?;
    MIGRATIONS
        .update(tx, org_id, id, id, now, &migration)
        .await?;
    if is_over(migration.status) && !was_over {
        telling::ended(tx, org_id, &migration, now).await?;
    }
    Ok(migration)
}

/// Notes how far it is; whether it goes on: it may have been canceled, or removed.
pub(super) async fn note(
    app: &App,
    claim: &Claim,
    id: &str,
    edit: impl FnOnce(&mut GetMigrationResponse) + Send + 'static,
) -> Result<bool> {
    let (org_id, id, now) = (claim.org_id.clone(), id.to_owned(), app.clock().micros());
    let noted = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                change(tx, &org_id, &id, now, |migration| {
                    if !is_over(migration.status) {
                        edit(migration);
                    }
                    Ok(())
                })
                .await
            })
        })
        .await;
    match noted {
        Ok(migration) => Ok(migration.status != MigrationStatus::Cancelled),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The migration, unless somebody canceled or removed it since.
pub(super) async fn wanted(
    app: &App,
    claim: &Claim,
    id: &str,
) -> Result<Option<GetMigrationResponse>> {
    match MIGRATIONS.find(app.db(), &claim.org_id, id).await {
        Ok(found) if found.status == MigrationStatus::Cancelled => Ok(None),
        Ok(found) => Ok(Some(found.data.0)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether nobody did.
pub(super) async fn is_wanted(app: &App, claim: &Claim, id: &str) -> Result<bool> {
    Ok(wanted(app, claim, id).await?.is_some())
}

/// Goes on with a migration; safe to repeat.
///
/// # Errors
/// A store or the database fails, or all of what was to be extracted anew did; what was done stays.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    let step = match &work.refill {
        Some(refill) => extracting::run(app, claim, &work, refill).await?,
        None => copy_all(app, claim, &work).await?,
    };
    match step {
        Step::Done => tasks::succeed(app, claim, Vec::new()).await,
        Step::Waits(pause) => jobs::postpone(app, claim, pause).await,
    }
}

/// Copies the documents, collection by collection. A collection that is canceled meanwhile is copied no further.
async fn copy_all(app: &App, claim: &Claim, work: &Work) -> Result<Step> {
    let (migration_id, copy) = (&work.migration_id, &work.copy);
    tell(app, claim, copy, "cloning", None).await?;
    let total = copy.collections.len().max(1) as f64;
    for (number, (from, to)) in copy.collections.iter().enumerate() {
        let current = from.clone();
        let goes_on = note(app, claim, migration_id, move |migration| {
            migration.status = MigrationStatus::InProgress;
            at(
                migration,
                number,
                total,
                &current,
                MigrationStatus::InProgress,
            );
        })
        .await?;
        if !goes_on {
            return stop(app, claim, copy).await;
        }
        let wanted = || is_wanted(app, claim, migration_id).boxed();
        copying::fill(app, claim, copy, (from, to), &wanted).await?;
        let done = from.clone();
        let goes_on = note(app, claim, migration_id, move |migration| {
            at(
                migration,
                number + 1,
                total,
                &done,
                MigrationStatus::Completed,
            );
        })
        .await?;
        // Meanwhile: what was copied last is not the end of it.
        if !goes_on {
            return stop(app, claim, copy).await;
        }
    }
    tell(app, claim, copy, "ready", None).await?;
    let ended = Some(app.clock().now());
    note(app, claim, migration_id, move |migration| {
        migration.status = MigrationStatus::Completed;
        migration.completed_at = ended;
        end(migration, MigrationStatus::Completed, ended);
    })
    .await?;
    Ok(Step::Done)
}

/// Leaves the new namespace as what was canceled.
async fn stop(app: &App, claim: &Claim, copy: &Copy) -> Result<Step> {
    let why = Some("the migration was canceled");
    tell(app, claim, copy, "failed", why).await?;
    Ok(Step::Done)
}

/// Notes how far the new namespace is. One that is extended is there as it was.
pub(super) async fn tell(
    app: &App,
    claim: &Claim,
    copy: &Copy,
    status: &'static str,
    error: Option<&str>,
) -> Result<()> {
    if !copy.whole {
        return Ok(());
    }
    let phase = (status == "cloning").then_some("copying");
    namespaces::set_clone_status(app, claim, status, phase, error).await
}

/// The progress after so many collections.
fn at(
    migration: &mut GetMigrationResponse,
    done: usize,
    total: f64,
    collection: &str,
    status: MigrationStatus,
) {
    let progress = &mut migration.progress;
    progress.overall_status = MigrationStatus::InProgress;
    progress.current_stage = Some(MigrationStage::BatchProcessing);
    progress.overall_progress_percent = done as f64 / total * 100.0;
    for stage in &mut progress.stages {
        stage.status = MigrationStatus::InProgress;
        stage.items_completed = i64::try_from(done).unwrap_or(i64::MAX);
        stage.progress_percent = done as f64 / total * 100.0;
    }
    let named = progress
        .resources
        .iter_mut()
        .find(|resource| resource.resource_id == collection);
    if let Some(resource) = named {
        resource.status = status;
        if status == MigrationStatus::Completed {
            resource.progress_percent = 100.0;
        }
    }
}

fn end(migration: &mut GetMigrationResponse, status: MigrationStatus, at: Option<DateTime<Utc>>) {
    let progress = &mut migration.progress;
    progress.overall_status = status;
    progress.current_stage = Some(MigrationStage::Finalization);
    if status == MigrationStatus::Completed {
        progress.overall_progress_percent = 100.0;
    }
    let stages = progress.stages.iter_mut();
    for stage in stages.filter(|one| one.status != MigrationStatus::Completed) {
        stage.status = status;
        stage.completed_at = at;
        if status == MigrationStatus::Completed {
            stage.progress_percent = 100.0;
        }
    }
}

/// Marks what was given up.
///
/// # Errors
/// The database fails.
pub async fn give_up(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let work = Work::deserialize(&claim.work).map_err(ApiError::internal)?;
    tell(app, claim, &work.copy, "failed", Some(reason)).await?;
    if let Some(refill) = &work.refill {
        extracting::give_up(app, claim, &work, refill, reason).await?;
    }
    let (reason, ended) = (reason.to_owned(), Some(app.clock().now()));
    note(app, claim, &work.migration_id, move |migration| {
        migration.status = MigrationStatus::Failed;
        migration.error_message = Some(reason);
        migration.completed_at = ended;
        end(migration, MigrationStatus::Failed, ended);
    })
    .await?;
    Ok(())
}
