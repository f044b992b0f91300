use loupe_wire::{TaskResponse, TaskStatusEnum, Value, reading};

use super::{is_terminal, name_of};
use crate::{
    args,
    cause::Cause,
    clock,
    db::{Arg, Db, Json, Tx},
    error::Result,
    list::{Mark, Walk, Window},
};

crate::sql! {
    // What is part of a task came of what that came of, whoever goes on with it.
    const INSERT = "INSERT INTO tasks (task_id, org_id, namespace_id, task_type, status, parent_id, kind, work, created_at, updated_at, ended_at, data, cause, started_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, COALESCE((SELECT cause FROM tasks WHERE task_id = $6 AND org_id = $2), $12), $13)";
    const CAUSE = "SELECT cause FROM tasks WHERE org_id = $1 AND task_id = $2";
    const FIND = "SELECT status, data, created_at, updated_at, ended_at FROM tasks WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND task_id = $3 AND parent_id IS NULL";
    const FIND_ARCHIVED = "SELECT status, data, created_at, updated_at, ended_at FROM tasks_archive WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND task_id = $3";
    const LIST = "SELECT status, data, created_at, updated_at, ended_at, task_id FROM tasks WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR status = $3) AND ($4 = '' OR task_type = $4) AND parent_id IS NULL AND created_at <= $7 AND (created_at < $7 OR task_id > $8) ORDER BY created_at DESC, task_id LIMIT $5 OFFSET $6";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR status = $3) AND ($4 = '' OR task_type = $4) AND parent_id IS NULL";
    const STARTER = "SELECT started_by FROM tasks WHERE org_id = $1 AND task_id = $2 AND parent_id IS NULL UNION ALL SELECT started_by FROM tasks_archive WHERE org_id = $1 AND task_id = $2";
    const UPDATE = "UPDATE tasks SET status = $2, updated_at = $3, ended_at = $4, data = $5 WHERE task_id = $1";
    const DELETE = "DELETE FROM tasks WHERE org_id = $1 AND (task_id = $2 OR parent_id = $2)";
    const DELETE_ARCHIVED = "DELETE FROM tasks_archive WHERE org_id = $1 AND task_id = $2";
    const HOLD = "UPDATE tasks SET updated_at = updated_at WHERE task_id = $1";
    const READ = "SELECT data FROM tasks WHERE task_id = $1";
}

crate::pieces!(
    "tasks",
    "task_id",
    "status, data, created_at, updated_at, ended_at, task_id",
    "org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($6 = '' OR status = $6) AND ($7 = '' OR task_type = $7) AND ($8 = '' OR $8 LIKE '%|' || status || '|%') AND ($9 = '' OR $9 LIKE '%|' || task_type || '|%') AND parent_id IS NULL"
);

/// Where a task belongs.
pub struct Place<'a> {
    pub org_id: &'a str,
    pub namespace_id: Option<&'a str>,
    pub parent_id: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub work: &'a Value,
}

type Row = (String, Json<TaskResponse>, i64, i64, Option<i64>);

/// A task as it is at this moment: whoever claims it or puts it back writes the column alone. `error` is the flat copy of
/// `additional_data.error`.
fn shown((status, Json(mut task), created_at, updated_at, ended_at): Row) -> TaskResponse {
    task.created_at = Some(clock::time(created_at));
    task.updated_at = Some(clock::time(updated_at));
    task.completed_at = ended_at.map(clock::time);
    if let Ok(status) = reading::from_value::<TaskStatusEnum>(&Value::from(status)) {
        task.status = status;
    }
    if task.status == TaskStatusEnum::Failed && task.error.is_none() {
        let error = task
            .additional_data
            .as_ref()
            .and_then(|data| data.get("error"));
        task.error = error.and_then(Value::as_str).map(ToOwned::to_owned);
    }
    task
}

pub async fn insert(tx: &mut Tx, task: &TaskResponse, place: &Place<'_>, now: i64) -> Result<()> {
    let ended = is_terminal(task.status).then_some(now);
    let args = args![
        &task.task_id,
        place.org_id,
        place.namespace_id,
        name_of(task.task_type),
        name_of(task.status),
        place.parent_id,
        place.kind,
        Arg::json(place.work),
        now,
        ended,
        Arg::json(task),
        tx.cause().text(),
        tx.key_id()
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

/// What led to a task.
///
/// # Errors
/// The database does not answer.
pub async fn cause(db: &Db, org_id: &str, task_id: &str) -> Result<Cause> {
    let found: Option<(Option<String>,)> = db.one(CAUSE, args![org_id, task_id]).await?;
    let kept = found.and_then(|(cause,)| cause);
    Ok(Cause::read(kept.as_deref()))
}

pub async fn find(
    db: &Db,
    org_id: &str,
    namespace_id: Option<&str>,
    task_id: &str,
) -> Result<Option<TaskResponse>> {
    let args = args![org_id, namespace_id.unwrap_or_default(), task_id];
    Ok(db.one::<Row>(FIND, args).await?.map(shown))
}

/// The id of the key whose request left the task; none for what the server began by itself, and for what is not there.
pub async fn starter(db: &Db, org_id: &str, task_id: &str) -> Result<Option<String>> {
    let found: Option<(Option<String>,)> = db.one(STARTER, args![org_id, task_id]).await?;
    Ok(found.and_then(|(key_id,)| key_id))
}

pub async fn find_archived(
    db: &Db,
    org_id: &str,
    namespace_id: Option<&str>,
    task_id: &str,
) -> Result<Option<TaskResponse>> {
    let args = args![org_id, namespace_id.unwrap_or_default(), task_id];
    Ok(db.one::<Row>(FIND_ARCHIVED, args).await?.map(shown))
}

/// What a listing asks for; empty texts match everything.
pub struct Asked<'a> {
    pub org_id: &'a str,
    pub namespace_id: &'a str,
    pub status: &'a str,
    pub task_type: &'a str,
}

pub async fn list(db: &Db, asked: &Asked<'_>, window: Window) -> Result<Vec<(TaskResponse, Mark)>> {
    let args = args![
        asked.org_id,
        asked.namespace_id,
        asked.status,
        asked.task_type,
        window.limit,
        window.offset,
        window.at,
        window.id
    ];
    let rows: Vec<Marked> = db.all(LIST, args).await?;
    Ok(rows.into_iter().map(marked).collect())
}

/// A row with its id.
type Marked = (String, Json<TaskResponse>, i64, i64, Option<i64>, String);

fn marked((status, data, at, updated_at, ended_at, id): Marked) -> (TaskResponse, Mark) {
    (shown((status, data, at, updated_at, ended_at)), (at, id))
}

/// Up to 1,000 tasks behind this mark; each with its own.
pub async fn piece(
    db: &Db,
    asked: &Asked<'_>,
    walk: &Walk<'_>,
    (at, id): Mark,
) -> Result<Vec<(TaskResponse, Mark)>> {
    let args = args![
        asked.org_id,
        asked.namespace_id,
        at,
        id,
        walk.end(),
        asked.status,
        asked.task_type,
        walk.words("status"),
        walk.words("task_type")
    ];
    let rows: Vec<Marked> = db.all(walk.sql(NEWEST, OLDEST), args).await?;
    Ok(rows.into_iter().map(marked).collect())
}

pub async fn count(db: &Db, asked: &Asked<'_>) -> Result<i64> {
    let args = args![
        asked.org_id,
        asked.namespace_id,
        asked.status,
        asked.task_type
    ];
    db.number(COUNT, args).await
}

pub async fn delete(tx: &mut Tx, org_id: &str, task_id: &str) -> Result<()> {
    tx.run(DELETE, args![org_id, task_id]).await?;
    tx.run(DELETE_ARCHIVED, args![org_id, task_id]).await?;
    Ok(())
}

/// Nobody else changes the task until the transaction ends. What looks how it stands and writes it back begins here: on
/// PostgreSQL it would else go over an end that came beside it.
pub async fn hold(tx: &mut Tx, task_id: &str) -> Result<()> {
    tx.run(HOLD, args![task_id]).await?;
    Ok(())
}

/// Changes a task inside the transaction of what changed it. A task that is gone stays gone.
pub async fn change(
    tx: &mut Tx,
    task_id: &str,
    status: TaskStatusEnum,
    now: i64,
    edit: impl FnOnce(&mut TaskResponse) + Send,
) -> Result<()> {
    hold(tx, task_id).await?;
    let Some((Json(mut task),)) = tx
        .one::<(Json<TaskResponse>,)>(READ, args![task_id])
        .await?
    else {
        return Ok(());
    };
    task.status = status;
    edit(&mut task);
    let ended = is_terminal(status).then_some(now);
    tx.run(
        UPDATE,
        args![task_id, name_of(status), now, ended, Arg::json(&task)],
    )
    .await?;
    Ok(())
}
