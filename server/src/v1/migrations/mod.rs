//! Migrations of namespaces: what a namespace holds, chosen, checked, and taken into a new one, or one that is there, or extracted
//! anew in a new one, by a task that can be watched and canceled.

mod checking;
mod choosing;
mod extracting;
mod idle;
mod objects;
mod refilling;
mod routes;
mod running;
mod stages;
mod targeting;
mod telling;
mod work;

use loupe_wire::{
    AuditAction, CancelMigrationRequest, CancelMigrationResponse, CreateMigrationRequest,
    CreateMigrationResponse, GetMigrationResponse, ListMigrationsRequest, ListMigrationsResponse,
    MigrationProgress, MigrationStatus, NamespaceOperation, ResourceType, StartMigrationResponse,
    ValidateMigrationRequest, ValidateMigrationResponse,
};
use serde_json::json;

pub use routes::router;
pub use running::{MIGRATE, give_up, run};

use self::checking::Checked;
use super::{
    audit::{self, Change},
    tasks::name_of,
};
use crate::{
    app::App,
    auth::Caller,
    clock,
    db::Tx,
    error::{ApiError, Result},
    id,
};

crate::table!(pub(super) static MIGRATIONS: GetMigrationResponse = "migrations", "migration");

/// Migrations that one organization keeps.
const MOST: i64 = 1000;

fn allow(caller: &Caller, namespace_id: &str) -> Result<()> {
    let operation = NamespaceOperation::ModifyInfrastructure;
    caller.allow(ResourceType::Namespace, namespace_id, operation)
}

/// What would be done, and what stands against it.
async fn validate(
    app: &App,
    caller: &Caller,
    request: ValidateMigrationRequest,
) -> Result<ValidateMigrationResponse> {
    allow(caller, "*")?;
    let checked = Checked::of(app, caller, &request.config).await?;
    let message = match checked.result.valid {
        true => "the migration can start",
        false => "the migration cannot start: the errors say why",
    };
    Ok(ValidateMigrationResponse {
        validation_result: checked.result,
        dependency_graph: Some(checked.graph),
        message: message.into(),
    })
}

async fn create(
    app: &App,
    caller: &Caller,
    request: CreateMigrationRequest,
) -> Result<CreateMigrationResponse> {
    allow(caller, "*")?;
    let checked = Checked::of(app, caller, &request.config).await?;
    let now = app.clock().micros();
    let migration = GetMigrationResponse {
        migration_id: id::new("mig_"),
        internal_id: caller.org_id.clone(),
        namespace_id: checked.source_id.clone(),
        config: request.config,
        status: MigrationStatus::Draft,
        progress: progress(MigrationStatus::Draft),
        validation_result: Some(checked.result.clone()),
        dependency_graph: Some(checked.graph),
        created_at: clock::time(now),
        ..GetMigrationResponse::default()
    };
    let (kept, acting) = (migration.clone(), caller.clone());
    app.db()
        .write(move |tx| Box::pin(async move { insert(tx, &acting, &kept, now).await }))
        .await?;
    let mut status = migration.status;
    if request.start_immediately && checked.result.valid {
        let id = &migration.migration_id;
        status = start(app, caller, id, false).await?.status;
    }
    let message = match (checked.result.valid, status) {
        (false, _) => "the migration is kept as a draft: what is wrong with it is told",
        (true, MigrationStatus::Draft) => "the migration waits to be started",
        (true, _) => "the migration was started",
    };
    Ok(CreateMigrationResponse {
        migration_id: migration.migration_id,
        status,
        validation_result: Some(checked.result),
        created_at: migration.created_at,
        message: message.into(),
    })
}

fn progress(status: MigrationStatus) -> MigrationProgress {
    MigrationProgress {
        overall_status: status,
        ..MigrationProgress::default()
    }
}

async fn insert(
    tx: &mut Tx,
    caller: &Caller,
    migration: &GetMigrationResponse,
    now: i64,
) -> Result<()> {
    if MIGRATIONS.count_in(tx, &caller.org_id).await? >= MOST {
        let message = format!("an organization keeps at most {MOST} migrations: remove some");
        return Err(ApiError::conflict("", message).with("limit", MOST));
    }
    let id = &migration.migration_id;
    MIGRATIONS
        .insert(tx, &caller.org_id, id, id, now, migration)
        .await?;
    let change = Change {
        action: AuditAction::NamespaceUpdated,
        resource: (ResourceType::Namespace, &migration.namespace_id),
        changes: json!({ "migration_created": id }),
    };
    audit::record(tx, caller, change, now).await
}

/// Newest first.
async fn list(
    app: &App,
    caller: &Caller,
    request: ListMigrationsRequest,
) -> Result<ListMigrationsResponse> {
    allow(caller, "*")?;
    let wanted = |one: &GetMigrationResponse| {
        request.status.is_none_or(|status| status == one.status)
            && request
                .migration_type
                .is_none_or(|kind| kind == one.config.migration_type)
            && request.source_namespace_id.as_ref().is_none_or(|source| {
                [&one.namespace_id, &one.config.source_namespace_id].contains(&source)
            })
    };
    let records = MIGRATIONS.all(app.db(), &caller.org_id).await?;
    let found: Vec<GetMigrationResponse> = records
        .into_iter()
        .map(|record| record.data.0)
        .filter(wanted)
        .collect();
    let number = |number: i64| usize::try_from(number).unwrap_or(0);
    Ok(ListMigrationsResponse {
        total: i64::try_from(found.len()).unwrap_or(i64::MAX),
        results: found
            .into_iter()
            .skip(number(request.offset))
            .take(number(request.limit))
            .collect(),
        limit: request.limit,
        offset: request.offset,
    })
}

async fn get(app: &App, caller: &Caller, id: &str) -> Result<GetMigrationResponse> {
    let migration = MIGRATIONS.find(app.db(), &caller.org_id, id).await?.data.0;
    allow(caller, &migration.namespace_id)?;
    Ok(migration)
}

/// Starts a draft. It is checked again: much may have changed since it was made. Nobody can force what stands against it:
/// the copy would be broken.
async fn start(
    app: &App,
    caller: &Caller,
    id: &str,
    force: bool,
) -> Result<StartMigrationResponse> {
    let migration = get(app, caller, id).await?;
    if migration.status != MigrationStatus::Draft {
        let message = "only a migration that has not started can be started";
        return Err(ApiError::conflict("", message).with("status", name_of(migration.status)));
    }
    let checked = Checked::of(app, caller, &migration.config).await?;
    if let Some(error) = checked.result.errors.first() {
        let cannot = if force {
            "cannot be forced"
        } else {
            "cannot start"
        };
        let message = format!("the migration {cannot}: {}", error.message);
        return Err(ApiError::conflict("", message));
    }
    let started = running::begin(app, caller, migration, checked).await?;
    Ok(StartMigrationResponse {
        migration_id: started.migration_id,
        status: started.status,
        task_id: started.task_id.unwrap_or_default(),
        started_at: started.started_at.unwrap_or_else(|| app.clock().now()),
        message: match started.config.dry_run {
            true => "nothing was migrated: this was a dry run",
            false => "the migration is under way",
        }
        .into(),
    })
}

/// Stops it where it stands, with its batches: what was copied stays where it is.
async fn cancel(
    app: &App,
    caller: &Caller,
    id: &str,
    request: CancelMigrationRequest,
) -> Result<CancelMigrationResponse> {
    get(app, caller, id).await?;
    let (caller, id, now) = (caller.clone(), id.to_owned(), app.clock().micros());
    let at = clock::time(now);
    let cancelled = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let edit = |migration: &mut GetMigrationResponse| {
                    if is_over(migration.status) {
                        let message = "the migration is over";
                        return Err(ApiError::conflict("", message)
                            .with("status", name_of(migration.status)));
                    }
                    migration.status = MigrationStatus::Cancelled;
                    migration.progress.overall_status = MigrationStatus::Cancelled;
                    migration.completed_at = Some(at);
                    migration.error_message = request.reason;
                    Ok(())
                };
                let cancelled = running::change(tx, &caller.org_id, &id, now, edit).await?;
                running::record(tx, &caller, &cancelled, "migration_canceled", now).await?;
                Ok(cancelled)
            })
        })
        .await?;
    extracting::cancel(app, &cancelled.internal_id, &cancelled).await?;
    Ok(CancelMigrationResponse {
        migration_id: cancelled.migration_id,
        status: cancelled.status,
        cancelled_at: at,
        message: "the migration was canceled: what it copied stays".into(),
    })
}

fn is_over(status: MigrationStatus) -> bool {
    matches!(
        status,
        MigrationStatus::Completed | MigrationStatus::Failed | MigrationStatus::Cancelled
    )
}

/// Removes the record of a migration that is not under way.
async fn delete(app: &App, caller: &Caller, id: &str) -> Result<()> {
    get(app, caller, id).await?;
    let (caller, id, now) = (caller.clone(), id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // It may be started at this moment.
                let migration = MIGRATIONS.hold(tx, &caller.org_id, &id).await?.data.0;
                if !is_over(migration.status) && migration.status != MigrationStatus::Draft {
                    let message = "the migration is under way: cancel it first";
                    return Err(
                        ApiError::conflict("", message).with("status", name_of(migration.status))
                    );
                }
                MIGRATIONS.delete(tx, &caller.org_id, &id).await?;
                running::record(tx, &caller, &migration, "migration_deleted", now).await
            })
        })
        .await
}
