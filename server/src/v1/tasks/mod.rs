//! Tasks: the public face of asynchronous work. The row is the queue's own; inner work has a parent and is not listed.

mod routes;
pub mod store;

use loupe_wire::{
    NamespaceOperation, Object, ResourceType, TaskResponse, TaskStatusEnum, TaskType, Value,
};
use serde::Serialize;
use serde_json::json;

pub use routes::router;

use super::audit::{self, PartOf};
use crate::{
    app::App,
    auth::Caller,
    db::Tx,
    error::{ApiError, Result},
    id,
    jobs::{self, Claim},
};

/// The member of a task that has the triggers and alerts which led to it.
const CAUSED_BY: &str = "caused_by";

/// A task to be inserted.
pub struct NewTask {
    pub org_id: String,
    pub namespace_id: Option<String>,
    pub task_type: TaskType,
    pub status: TaskStatusEnum,
    /// Inner work names the task it belongs to.
    pub parent_id: Option<String>,
    /// What a worker runs; absent for tasks that only report.
    pub kind: Option<&'static str>,
    pub work: Value,
    pub inputs: Vec<Value>,
    pub additional_data: Object,
    pub description: String,
}

impl NewTask {
    /// A task that a worker of `kind` runs.
    pub fn work(
        org_id: &str,
        namespace_id: &str,
        task_type: TaskType,
        kind: &'static str,
        work: Value,
    ) -> Self {
        Self {
            org_id: org_id.into(),
            namespace_id: Some(namespace_id.into()),
            task_type,
            status: TaskStatusEnum::Queued,
            parent_id: None,
            kind: Some(kind),
            work,
            inputs: Vec::new(),
            additional_data: Object::new(),
            description: String::new(),
        }
    }
}

/// The wire name of an enum's case.
pub fn name_of(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The four of the specification and the two that were decided.
pub const fn is_terminal(status: TaskStatusEnum) -> bool {
    use TaskStatusEnum::{Canceled, Completed, CompletedWithErrors, Failed, Interrupted, Skipped};
    matches!(
        status,
        Canceled | Completed | CompletedWithErrors | Failed | Interrupted | Skipped
    )
}

/// Inserts a task in the transaction of the change it belongs to.
pub async fn insert(tx: &mut Tx, mut task: NewTask, now: i64) -> Result<TaskResponse> {
    let led = tx.cause().ids();
    if !led.is_empty() {
        task.additional_data
            .insert(CAUSED_BY.into(), led.iter().cloned().collect());
    }
    let response = TaskResponse {
        task_id: id::task(),
        task_type: task.task_type,
        status: task.status,
        inputs: Some(task.inputs),
        additional_data: Some(task.additional_data),
        description: Some(task.description),
        ..Default::default()
    };
    store::insert(
        tx,
        &response,
        &store::Place {
            org_id: &task.org_id,
            namespace_id: task.namespace_id.as_deref(),
            parent_id: task.parent_id.as_deref(),
            kind: task.kind,
            work: &task.work,
        },
        now,
    )
    .await?;
    Ok(response)
}

/// The task, from the archive when the sweep has moved it there.
pub async fn get(
    app: &App,
    caller: &Caller,
    namespace_id: Option<&str>,
    task_id: &str,
) -> Result<TaskResponse> {
    if let Some(task) = store::find(app.db(), &caller.org_id, namespace_id, task_id).await? {
        return Ok(task);
    }
    let archived = store::find_archived(app.db(), &caller.org_id, namespace_id, task_id).await?;
    let mut task = archived.ok_or_else(|| ApiError::not_found("task", task_id))?;
    task.additional_data
        .get_or_insert_default()
        .insert("from_durable_store".into(), true.into());
    Ok(task)
}

/// The task for somebody who follows it: whoever started it does, whatever the scopes of the key are, and an end user no other.
///
/// # Errors
/// There is no such task, or the key covers neither what it is part of nor started it.
pub async fn follow(
    app: &App,
    caller: &Caller,
    namespace_id: Option<&str>,
    task_id: &str,
) -> Result<TaskResponse> {
    let whole = match namespace_id {
        Some(id) => (ResourceType::Namespace, id),
        None => (ResourceType::Organization, caller.org_id.as_str()),
    };
    let covered = caller.allow(whole.0, whole.1, NamespaceOperation::ReadData);
    let is_anyones = caller.principal().is_none();
    if covered.is_err() || !is_anyones {
        let starter = store::starter(app.db(), &caller.org_id, task_id).await?;
        if starter.as_deref() != Some(caller.actor()) {
            covered?;
            return Err(ApiError::not_found("task", task_id));
        }
    }
    get(app, caller, namespace_id, task_id).await
}

/// Removes the record of a task that has ended.
pub async fn delete(
    app: &App,
    caller: &Caller,
    namespace_id: Option<&str>,
    task_id: &str,
) -> Result<()> {
    let task = get(app, caller, namespace_id, task_id).await?;
    if !is_terminal(task.status) {
        return Err(ApiError::conflict(
            "",
            "the task has not ended: cancel its batch first, or wait for its end",
        )
        .with("status", name_of(task.status)));
    }
    if task.task_type == TaskType::ApiNamespacesDelete && task.status != TaskStatusEnum::Completed {
        let message =
            "what the namespace held is not freed: the record keeps its id from being given away";
        return Err(ApiError::conflict("", message));
    }
    let (caller, task_id, now) = (caller.clone(), task_id.to_owned(), app.clock().micros());
    let namespace_id = namespace_id.map(ToOwned::to_owned);
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::delete(tx, &caller.org_id, &task_id).await?;
                let whole = match &namespace_id {
                    Some(id) => PartOf::Namespace(id),
                    None => PartOf::Organization,
                };
                let changes = json!({
                    "change": "task_deleted", "task_id": task_id, "task_type": task.task_type, "status": task.status,
                });
                audit::record_part(tx, &caller, whole, changes, now).await
            })
        })
        .await
}

/// Notes how far a claimed task is.
///
/// # Errors
/// The lease was lost, or the database fails.
pub async fn note(app: &App, claim: &Claim, member: &'static str, value: Value) -> Result<()> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::hold(tx, &claim.task_id).await?;
                if !jobs::holds(tx, &claim).await? {
                    return Err(ApiError::conflict("", "the lease of this task was lost"));
                }
                let status = TaskStatusEnum::Processing;
                store::change(tx, &claim.task_id, status, now, move |task| {
                    let data = task.additional_data.get_or_insert_default();
                    data.insert(member.into(), value);
                })
                .await
            })
        })
        .await
}

/// Ends a claimed task as done, with what it made.
///
/// # Errors
/// The lease was lost, or the database fails.
pub async fn succeed(app: &App, claim: &Claim, outputs: Vec<Value>) -> Result<()> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { succeed_in(tx, &claim, outputs, now).await }))
        .await
}

/// As [`succeed`], in the transaction of what is told of it.
///
/// # Errors
/// As [`succeed`].
pub async fn succeed_in(tx: &mut Tx, claim: &Claim, outputs: Vec<Value>, now: i64) -> Result<()> {
    let keep = move |task: &mut TaskResponse| task.outputs = Some(outputs);
    end_in(tx, claim, TaskStatusEnum::Completed, keep, now).await
}

/// Ends a claimed task as failed, with the reason.
///
/// # Errors
/// The lease was lost, or the database fails.
pub async fn fail(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let reason = reason.to_owned();
    let edit = move |task: &mut TaskResponse| {
        task.additional_data
            .get_or_insert_default()
            .insert("error".into(), reason.into());
    };
    end(app, claim, TaskStatusEnum::Failed, edit).await
}

/// Ends a claimed task as passed over, with the reason.
///
/// # Errors
/// The lease was lost, or the database fails.
pub async fn skip(app: &App, claim: &Claim, reason: &str) -> Result<()> {
    let reason = reason.to_owned();
    let edit = move |task: &mut TaskResponse| {
        task.additional_data
            .get_or_insert_default()
            .insert("skipped".into(), reason.into());
    };
    end(app, claim, TaskStatusEnum::Skipped, edit).await
}

async fn end(
    app: &App,
    claim: &Claim,
    status: TaskStatusEnum,
    edit: impl FnOnce(&mut TaskResponse) + Send + 'static,
) -> Result<()> {
    let (claim, now) = (claim.clone(), app.clock().micros());
    app.db()
        .write(move |tx| Box::pin(async move { end_in(tx, &claim, status, edit, now).await }))
        .await
}

async fn end_in(
    tx: &mut Tx,
    claim: &Claim,
    status: TaskStatusEnum,
    edit: impl FnOnce(&mut TaskResponse) + Send,
    now: i64,
) -> Result<()> {
    if !jobs::finish(tx, claim, status, now).await? {
        return Err(ApiError::conflict("", "the lease of this task was lost"));
    }
    store::change(tx, &claim.task_id, status, now, edit).await
}
