use loupe_wire::{Trigger, TriggerExecutionHistory};

use crate::{
    args,
    cause::Cause,
    clock,
    db::{Arg, Args, Db, Json, Tx},
    error::{ApiError, Result},
};

/// The moment of what waits for none.
const NEVER: i64 = 0;

crate::sql! {
    const INSERT = "INSERT INTO triggers (trigger_id, org_id, namespace_id, action_type, trigger_type, status, resource_id, next_at, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10)";
    const FIND = "SELECT next_at, data FROM triggers WHERE namespace_id = $1 AND trigger_id = $2";
    const UPDATE = "UPDATE triggers SET status = $3, next_at = $4, updated_at = $5, data = $6 WHERE namespace_id = $1 AND trigger_id = $2";
    // What is read, edited and written back is held first, until the transaction ends.
    const HOLD = "UPDATE triggers SET updated_at = updated_at WHERE namespace_id = $1 AND trigger_id = $2";
    // Whoever fires moves the moment in the same statement: a second one changes no row, nor does one that read it before
    // somebody changed it.
    const MOVE = "UPDATE triggers SET next_at = $4, updated_at = $5, data = $6 WHERE namespace_id = $1 AND trigger_id = $2 AND next_at = $3 AND updated_at = $7 AND status = 'active'";
    // What led to the events that it has counted.
    const CAUSE = "SELECT cause FROM triggers WHERE namespace_id = $1 AND trigger_id = $2";
    const KEEP_CAUSE = "UPDATE triggers SET cause = $3 WHERE namespace_id = $1 AND trigger_id = $2";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM triggers WHERE namespace_id = $1 AND status <> 'disabled'";
    const ALL = "SELECT next_at, data FROM triggers WHERE namespace_id = $1 AND ($2 = '' OR action_type = $2) AND ($3 = '' OR trigger_type = $3) AND ($4 = '' OR status = $4) AND ($5 = '' OR resource_id = $5) ORDER BY created_at, trigger_id";
    // Of every organization: the clock is one. What a namespace leaves that is being removed fires no more.
    const DUE = "SELECT next_at, updated_at, data FROM triggers WHERE status = 'active' AND next_at > 0 AND next_at <= $1 AND EXISTS (SELECT 1 FROM namespaces WHERE namespaces.id = triggers.namespace_id) ORDER BY next_at, trigger_id LIMIT 100";
    const WAITING = "SELECT next_at, data FROM triggers WHERE org_id = $1 AND status = 'active' AND trigger_type = 'event' AND EXISTS (SELECT 1 FROM namespaces WHERE namespaces.id = triggers.namespace_id) ORDER BY trigger_id";

    const INSERT_FIRING = "INSERT INTO trigger_firings (task_id, trigger_id, namespace_id, triggered_at, status, ended_at, error) VALUES ($1, $2, $3, $4, 'QUEUED', 0, '')";
    const END_FIRING = "UPDATE trigger_firings SET status = $3, ended_at = $4, error = $5 WHERE namespace_id = $1 AND task_id = $2";
    const FIRINGS = "SELECT task_id, triggered_at, status, ended_at, error FROM trigger_firings WHERE namespace_id = $1 AND trigger_id = $2 AND ($5 = '' OR status = $5) ORDER BY triggered_at DESC, task_id LIMIT $3 OFFSET $4";
    const COUNT_FIRINGS = "SELECT CAST(COUNT(*) AS BIGINT) FROM trigger_firings WHERE namespace_id = $1 AND trigger_id = $2 AND ($3 = '' OR status = $3)";
    const SWEEP = "DELETE FROM trigger_firings WHERE triggered_at < $1";
    const SWEEP_REMOVED = "DELETE FROM triggers WHERE status = 'disabled' AND updated_at < $1";
}

type Row = (i64, Json<Trigger>);

/// A trigger with the moment that it waits for.
fn trigger((next_at, data): Row) -> Trigger {
    Trigger {
        next_scheduled_at: (next_at > NEVER).then(|| clock::time(next_at)),
        ..data.0
    }
}

/// The moment of a trigger in the database's numbers.
fn next_at(trigger: &Trigger) -> i64 {
    trigger
        .next_scheduled_at
        .map_or(NEVER, |at| at.timestamp_micros())
}

/// Keeps a new trigger with the id of what it acts on: an action stays what it is.
pub(super) async fn insert(
    tx: &mut Tx,
    org_id: &str,
    trigger: &Trigger,
    resource_id: &str,
    now: i64,
) -> Result<()> {
    let row = args![
        trigger.trigger_id.as_deref().unwrap_or_default(),
        org_id,
        &trigger.namespace_id,
        super::name_of(trigger.action_type),
        super::name_of(trigger.trigger_type),
        super::name_of(trigger.status),
        resource_id,
        next_at(trigger),
        now,
        Arg::json(trigger)
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

pub(super) async fn find(db: &Db, namespace_id: &str, id: &str) -> Result<Trigger> {
    let row: Option<Row> = db.one(FIND, args![namespace_id, id]).await?;
    row.map(trigger)
        .ok_or_else(|| ApiError::not_found("trigger", id))
}

/// The trigger as it is now; nobody else changes it until the transaction ends.
pub(super) async fn hold(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<Trigger> {
    tx.run(HOLD, args![namespace_id, id]).await?;
    find_in(tx, namespace_id, id).await
}

/// As [`find`], inside a transaction.
pub(super) async fn find_in(tx: &mut Tx, namespace_id: &str, id: &str) -> Result<Trigger> {
    let row: Option<Row> = tx.one(FIND, args![namespace_id, id]).await?;
    row.map(trigger)
        .ok_or_else(|| ApiError::not_found("trigger", id))
}

pub(super) async fn update(tx: &mut Tx, trigger: &Trigger, now: i64) -> Result<()> {
    let row = args![
        &trigger.namespace_id,
        trigger.trigger_id.as_deref().unwrap_or_default(),
        super::name_of(trigger.status),
        next_at(trigger),
        now,
        Arg::json(trigger)
    ];
    tx.run(UPDATE, row).await?;
    Ok(())
}

/// What led to the events that a trigger has counted.
pub(super) async fn cause(tx: &mut Tx, trigger: &Trigger) -> Result<Cause> {
    let id = trigger.trigger_id.as_deref().unwrap_or_default();
    let row: Option<(Option<String>,)> = tx.one(CAUSE, args![&trigger.namespace_id, id]).await?;
    let kept = row.and_then(|(cause,)| cause);
    Ok(Cause::read(kept.as_deref()))
}

pub(super) async fn keep_cause(tx: &mut Tx, trigger: &Trigger, cause: &Cause) -> Result<()> {
    let id = trigger.trigger_id.as_deref().unwrap_or_default();
    let args = args![&trigger.namespace_id, id, cause.text()];
    tx.run(KEEP_CAUSE, args).await?;
    Ok(())
}

/// Whether nobody moved or changed it since it was due.
pub(super) async fn advance(
    tx: &mut Tx,
    trigger: &Trigger,
    due: (i64, i64),
    now: i64,
) -> Result<bool> {
    let (moment, updated_at) = due;
    let row = args![
        &trigger.namespace_id,
        trigger.trigger_id.as_deref().unwrap_or_default(),
        moment,
        next_at(trigger),
        now,
        Arg::json(trigger),
        updated_at
    ];
    Ok(tx.run(MOVE, row).await? > 0)
}

/// What a list is narrowed to; empty members match everything.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub action_type: String,
    pub trigger_type: String,
    pub status: String,
    pub resource_id: String,
}

impl Wanted {
    fn args(&self, namespace_id: &str) -> Args {
        args![
            namespace_id,
            &self.action_type,
            &self.trigger_type,
            &self.status,
            &self.resource_id
        ]
    }
}

/// Oldest first.
pub(super) async fn list(db: &Db, namespace_id: &str, wanted: &Wanted) -> Result<Vec<Trigger>> {
    let rows: Vec<Row> = db.all(ALL, wanted.args(namespace_id)).await?;
    Ok(rows.into_iter().map(trigger).collect())
}

/// As [`list`], of everything, inside a transaction.
pub(super) async fn all_in(tx: &mut Tx, namespace_id: &str) -> Result<Vec<Trigger>> {
    let rows: Vec<Row> = tx.all(ALL, Wanted::default().args(namespace_id)).await?;
    Ok(rows.into_iter().map(trigger).collect())
}

/// How many there are, without those that were removed.
pub(super) async fn count(db: &Db, namespace_id: &str) -> Result<i64> {
    db.number(COUNT, args![namespace_id]).await
}

/// As [`count`], inside a transaction.
pub(super) async fn count_in(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(COUNT, args![namespace_id]).await
}

crate::row! {
    /// A trigger whose moment has come.
    #[derive(Debug, Clone)]
    pub(super) struct Due {
        pub next_at: i64,
        pub updated_at: i64,
        pub data: Json<Trigger>,
    }
}

pub(super) async fn due(db: &Db, now: i64) -> Result<Vec<Due>> {
    db.all(DUE, args![now]).await
}

/// Active triggers that wait for events.
pub(super) async fn waiting(tx: &mut Tx, org_id: &str) -> Result<Vec<Trigger>> {
    let rows: Vec<Row> = tx.all(WAITING, args![org_id]).await?;
    Ok(rows.into_iter().map(trigger).collect())
}

pub(super) async fn insert_firing(
    tx: &mut Tx,
    trigger: &Trigger,
    task_id: &str,
    now: i64,
) -> Result<()> {
    let id = trigger.trigger_id.as_deref().unwrap_or_default();
    tx.run(
        INSERT_FIRING,
        args![task_id, id, &trigger.namespace_id, now],
    )
    .await?;
    Ok(())
}

pub(super) async fn end_firing(
    tx: &mut Tx,
    namespace_id: &str,
    task_id: &str,
    (status, error): (&str, &str),
    now: i64,
) -> Result<()> {
    let args = args![namespace_id, task_id, status, now, error];
    tx.run(END_FIRING, args).await?;
    Ok(())
}

crate::row! {
    struct Firing {
        task_id: String,
        triggered_at: i64,
        status: String,
        ended_at: i64,
        error: String,
    }
}

/// Newest first, and how many there are; of one status where it is named.
pub(super) async fn firings(
    db: &Db,
    namespace_id: &str,
    id: &str,
    status: &str,
    (limit, offset): (i64, i64),
) -> Result<(Vec<TriggerExecutionHistory>, i64)> {
    let rows: Vec<Firing> = db
        .all(FIRINGS, args![namespace_id, id, limit, offset, status])
        .await?;
    let total = db
        .number(COUNT_FIRINGS, args![namespace_id, id, status])
        .await?;
    let told = rows.into_iter().map(|row| TriggerExecutionHistory {
        task_id: row.task_id,
        triggered_at: clock::time(row.triggered_at),
        status: row.status,
        execution_time_ms: (row.ended_at > 0)
            .then(|| (row.ended_at - row.triggered_at) as f64 / 1000.0),
        error: (!row.error.is_empty()).then_some(row.error),
    });
    Ok((told.collect(), total))
}

/// Forgets firings of before a moment, and triggers that were removed before it.
pub(super) async fn sweep(tx: &mut Tx, before: i64) -> Result<()> {
    tx.run(SWEEP, args![before]).await?;
    tx.run(SWEEP_REMOVED, args![before]).await?;
    Ok(())
}
