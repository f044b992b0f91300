//! Who is told that a migration has ended: the address that it names, as that of a batch is, and people, where it failed.

use loupe_wire::{
    GetMigrationResponse, MigrationConfig, MigrationStatus, MigrationType, TaskType,
    ValidationError,
};
use serde_json::json;

use super::checking::error;
use crate::{
    app::App,
    clock,
    db::Tx,
    error::Result,
    v1::{
        batches::callbacks::CALL,
        notifications::{self, Failure},
        tasks::{self, NewTask, name_of},
    },
};

/// The address that is called; an empty one is none.
fn address(config: &MigrationConfig) -> Option<&str> {
    let url = config.webhook_url.as_deref();
    url.filter(|url| !url.trim().is_empty())
}

/// What stands against the address.
pub(super) fn refused(app: &App, config: &MigrationConfig) -> Option<ValidationError> {
    let refused = app.outbound().check(address(config)?).err()?;
    Some(error("invalid_webhook", format!("webhook_url: {refused}")))
}

/// Tells that it ended, in the transaction that ends it.
pub(super) async fn ended(
    tx: &mut Tx,
    org_id: &str,
    migration: &GetMigrationResponse,
    now: i64,
) -> Result<()> {
    call(tx, org_id, migration, now).await?;
    if migration.status != MigrationStatus::Failed {
        return Ok(());
    }
    let id = &migration.migration_id;
    let config = &migration.config;
    let is_new = config.migration_type != MigrationType::Extend;
    let name = match is_new {
        true => config.target_namespace_name.as_ref(),
        false => config.target_namespace_id.as_ref(),
    };
    let what = match is_new {
        true => "What was copied already stays in the new namespace: remove it",
        false => "What came already stays in the namespace: remove that",
    };
    let reason = migration.error_message.as_deref().unwrap_or_default();
    let failure = Failure {
        title: format!("The migration into {} failed", name.unwrap_or(id)),
        content: format!("{reason}. {what}, and make the migration again when the cause is gone."),
        about: json!({
            "namespace_id": migration.namespace_id, "migration_id": id, "task_id": migration.task_id,
        }),
    };
    notifications::notify(tx, org_id, failure.notice(), now).await
}

async fn call(tx: &mut Tx, org_id: &str, migration: &GetMigrationResponse, now: i64) -> Result<()> {
    let Some(url) = address(&migration.config) else {
        return Ok(());
    };
    let id = &migration.migration_id;
    let body = json!({
        "event_type": "migration.ended",
        "occurred_at": clock::time(now),
        "organization_id": org_id,
        "namespace_id": migration.namespace_id,
        "payload": {
            "migration_id": id, "status": name_of(migration.status), "task_id": migration.task_id,
            "error": migration.error_message,
            "target_namespace_id": migration.additional_data.get("target_namespace_id"),
        },
    });
    // The same with every attempt: a migration ends once.
    let work = json!({ "url": url, "message_id": format!("msg_{id}"), "body": body });
    let task_type = TaskType::ApiNamespacesMigrationsRun;
    let mut task = NewTask::work(org_id, &migration.namespace_id, task_type, CALL, work);
    // Inner work, which nobody waits for.
    task.parent_id = Some(id.clone());
    task.description = format!("the end of the migration {id}");
    tasks::insert(tx, task, now).await?;
    Ok(())
}
