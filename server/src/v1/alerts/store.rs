use std::collections::HashMap;

use loupe_wire::{AlertExecutionResult, Object, Value};

use super::{Alert, again};
use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    list::{Mark, Window},
};

crate::table!(pub static ALERTS: Alert = "alerts", "alert");

crate::sql! {
    // Of every organization: the clock is one.
    const EVERYWHERE = "SELECT data FROM alerts ORDER BY id";
    // Of every organization, too: what may be looked at again, as its baseline has it.
    const STANDING = "SELECT s.owner, a.data, s.fired_at, s.baseline FROM alert_states s JOIN alerts a ON a.owner = s.owner AND a.id = s.alert_id WHERE s.stands = TRUE ORDER BY s.alert_id";
    const STATES = "SELECT alert_id, holds, fired_at, baseline, failures, error FROM alert_states WHERE owner = $1";
    const STATE = "SELECT alert_id, holds, fired_at, baseline, failures, error FROM alert_states WHERE owner = $1 AND alert_id = $2";
    // Changes nothing, but holds the row until the transaction ends, also one that was not there.
    const HOLD_STATE = "INSERT INTO alert_states (alert_id, owner, holds, fired_at, baseline) VALUES ($2, $1, FALSE, 0, '{}') ON CONFLICT (alert_id) DO UPDATE SET holds = alert_states.holds";
    const KEEP_STATE = "INSERT INTO alert_states (alert_id, owner, holds, fired_at, baseline, stands, failures, error) VALUES ($2, $1, $3, $4, $5, $6, $7, $8) ON CONFLICT (alert_id) DO UPDATE SET holds = $3, fired_at = $4, baseline = $5, stands = $6, failures = $7, error = $8";
    const DROP_STATE = "DELETE FROM alert_states WHERE owner = $1 AND alert_id = $2";

    const INSERT = "INSERT INTO alert_executions (execution_id, alert_id, owner, cause, triggered, created_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (alert_id, cause) DO NOTHING";
    const OF_CAUSE = "SELECT data FROM alert_executions WHERE owner = $1 AND alert_id = $2 AND cause = $3";
    // Of looks that fail in a row there is one row. Its cause is a word that no look has, until one does not fail.
    const INSERT_FAILED = "INSERT INTO alert_executions (execution_id, alert_id, owner, cause, triggered, created_at, data, failed) VALUES ($1, $2, $3, $4, FALSE, $5, $6, TRUE)";
    const FAILED_AGAIN = "UPDATE alert_executions SET created_at = $3, data = $4 WHERE owner = $1 AND execution_id = $2";
    const FAILS_NO_MORE = "UPDATE alert_executions SET cause = execution_id WHERE owner = $1 AND alert_id = $2 AND cause = $3";
    const FIND = "SELECT data FROM alert_executions WHERE owner = $1 AND execution_id = $2";
    const CHANGE = "UPDATE alert_executions SET data = $3 WHERE owner = $1 AND execution_id = $2";
    const LIST = "SELECT data, created_at, execution_id FROM alert_executions WHERE owner = $1 AND ($2 = '' OR alert_id = $2) AND created_at <= $5 AND (created_at < $5 OR execution_id > $6) ORDER BY created_at DESC, execution_id LIMIT $3 OFFSET $4";
    const LAST = "SELECT data FROM alert_executions WHERE owner = $1 AND alert_id = $2 AND NOT failed ORDER BY created_at DESC, execution_id LIMIT 1";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM alert_executions WHERE owner = $1 AND ($2 = '' OR alert_id = $2)";
    const DROP_EXECUTIONS = "DELETE FROM alert_executions WHERE owner = $1 AND alert_id = $2";
    // What fired is kept longer than what only looked.
    const SWEEP = "DELETE FROM alert_executions WHERE created_at < $1 AND (created_at < $2 OR NOT triggered)";

    const KEEP_WORK = "UPDATE tasks SET work = $3 WHERE org_id = $1 AND task_id = $2";
    const DELAY = "UPDATE tasks SET run_after = $3 WHERE org_id = $1 AND task_id = $2";

    const RETRIEVER_NAMESPACE = "SELECT r.owner FROM retrievers r JOIN namespaces n ON n.id = r.owner WHERE n.owner = $1 AND r.id = $2";
    const NAMESPACE_IDS = "SELECT id FROM namespaces WHERE owner = $1 ORDER BY id";
    const RESTS = "SELECT CAST(COALESCE(MAX(ended_at + $4 * (ended_at - created_at)), 0) AS BIGINT) FROM tasks WHERE org_id = $1 AND kind = $2 AND ended_at > $3 AND ended_at - created_at > $5";
    const UNDER_WAY = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE org_id = $1 AND kind = $2 AND status IN ('QUEUED', 'IN_PROGRESS', 'PENDING', 'PROCESSING')";
}

pub(super) async fn everywhere(db: &Db) -> Result<Vec<Alert>> {
    let rows: Vec<(Json<Alert>,)> = db.all(EVERYWHERE, args![]).await?;
    Ok(rows.into_iter().map(|(alert,)| alert.0).collect())
}

/// An alert, whose it is, when it fired last, and its baseline.
type Standing = (String, Json<Alert>, i64, Json<Object>);

/// Alerts whose condition held when they looked at what was written.
pub(super) async fn standing(db: &Db) -> Result<Vec<Standing>> {
    db.all(STANDING, args![]).await
}

crate::row! {
    /// What an alert remembers between two looks.
    #[derive(Debug, Clone)]
    pub(super) struct State {
        pub alert_id: String,
        /// Whether its condition held the last time it was looked at.
        pub holds: bool,
        /// When it fired last; never: 0.
        pub fired_at: i64,
        pub baseline: Json<Object>,
        /// Looks that failed since the last one that did not, and why the last of them did.
        pub failures: i64,
        pub error: String,
    }
}

pub(super) async fn states(db: &Db, owner: &str) -> Result<HashMap<String, State>> {
    let rows: Vec<State> = db.all(STATES, args![owner]).await?;
    let named = rows
        .into_iter()
        .map(|state| (state.alert_id.clone(), state));
    Ok(named.collect())
}

fn untouched(alert_id: &str) -> State {
    State {
        alert_id: alert_id.to_owned(),
        holds: false,
        fired_at: 0,
        baseline: Json(Object::new()),
        failures: 0,
        error: String::new(),
    }
}

pub(super) async fn state(db: &Db, owner: &str, alert_id: &str) -> Result<State> {
    let found = db.one(STATE, args![owner, alert_id]).await?;
    Ok(found.unwrap_or_else(|| untouched(alert_id)))
}

/// What it remembers, held: of looks at once each decides by what the one before it decided.
pub(super) async fn state_in(tx: &mut Tx, owner: &str, alert_id: &str) -> Result<State> {
    tx.run(HOLD_STATE, args![owner, alert_id]).await?;
    let found = tx.one(STATE, args![owner, alert_id]).await?;
    Ok(found.unwrap_or_else(|| untouched(alert_id)))
}

pub(super) async fn keep_state(tx: &mut Tx, owner: &str, state: &State) -> Result<()> {
    let baseline = Arg::json(&state.baseline.0);
    let args = args![
        owner,
        &state.alert_id,
        state.holds,
        state.fired_at,
        baseline,
        again::stands(state),
        state.failures,
        &state.error
    ];
    tx.run(KEEP_STATE, args).await?;
    Ok(())
}

/// Removes what an alert left: its state and its executions.
pub(super) async fn forget(tx: &mut Tx, owner: &str, alert_id: &str) -> Result<()> {
    tx.run(DROP_STATE, args![owner, alert_id]).await?;
    tx.run(DROP_EXECUTIONS, args![owner, alert_id]).await?;
    Ok(())
}

/// Whether this is the first look for its cause.
pub(super) async fn insert(
    tx: &mut Tx,
    owner: &str,
    cause: &str,
    execution: &AlertExecutionResult,
    now: i64,
) -> Result<bool> {
    let row = args![
        execution.execution_id.as_deref().unwrap_or_default(),
        &execution.alert_id,
        owner,
        cause,
        execution.triggered,
        now,
        Arg::json(execution)
    ];
    Ok(tx.run(INSERT, row).await? > 0)
}

type Row = (Json<AlertExecutionResult>,);

/// The cause of the row of looks that fail in a row.
const FAILING: &str = "failing";

/// Keeps a look that failed. Those of a row of failures are one execution, which tells of the last of them: what fails every few
/// seconds fills nothing. Whoever calls holds the state.
pub(super) async fn insert_failed(
    tx: &mut Tx,
    owner: &str,
    mut execution: AlertExecutionResult,
    now: i64,
) -> Result<()> {
    let place = args![owner, &execution.alert_id, FAILING];
    let before: Option<Row> = tx.one(OF_CAUSE, place).await?;
    if let Some((before,)) = before {
        execution.execution_id = before.0.execution_id;
        let id = execution.execution_id.as_deref().unwrap_or_default();
        let row = args![owner, id, now, Arg::json(&execution)];
        tx.run(FAILED_AGAIN, row).await?;
        return Ok(());
    }
    let row = args![
        execution.execution_id.as_deref().unwrap_or_default(),
        &execution.alert_id,
        owner,
        FAILING,
        now,
        Arg::json(&execution)
    ];
    tx.run(INSERT_FAILED, row).await?;
    Ok(())
}

/// Ends a row of failures in a state that is held, to be kept by whoever calls; whether there was one.
pub(super) async fn end_failures(tx: &mut Tx, owner: &str, state: &mut State) -> Result<bool> {
    if state.failures == 0 {
        return Ok(false);
    }
    state.failures = 0;
    state.error.clear();
    let args = args![owner, &state.alert_id, FAILING];
    tx.run(FAILS_NO_MORE, args).await?;
    Ok(true)
}

/// What a cause was found to be, if it was looked at already.
pub(super) async fn of_cause(
    db: &Db,
    owner: &str,
    alert_id: &str,
    cause: &str,
) -> Result<Option<AlertExecutionResult>> {
    let row: Option<Row> = db.one(OF_CAUSE, args![owner, alert_id, cause]).await?;
    Ok(row.map(|row| row.0.0))
}

pub(super) async fn find(db: &Db, owner: &str, id: &str) -> Result<AlertExecutionResult> {
    let row: Option<Row> = db.one(FIND, args![owner, id]).await?;
    row.map(|row| row.0.0)
        .ok_or_else(|| ApiError::not_found("alert execution", id))
}

pub(super) async fn change(
    tx: &mut Tx,
    owner: &str,
    execution: &AlertExecutionResult,
) -> Result<()> {
    let id = execution.execution_id.as_deref().unwrap_or_default();
    tx.run(CHANGE, args![owner, id, Arg::json(execution)])
        .await?;
    Ok(())
}

/// What a task that sends goes on with when it is tried again.
pub(super) async fn keep_work(
    tx: &mut Tx,
    org_id: &str,
    task_id: &str,
    work: &Value,
) -> Result<()> {
    tx.run(KEEP_WORK, args![org_id, task_id, Arg::json(work)])
        .await?;
    Ok(())
}

/// Lets a task wait until a moment.
pub(super) async fn delay(tx: &mut Tx, org_id: &str, task_id: &str, until: i64) -> Result<()> {
    tx.run(DELAY, args![org_id, task_id, until]).await?;
    Ok(())
}

/// Newest first, of one alert or of all.
pub(super) async fn list(
    db: &Db,
    owner: &str,
    alert_id: &str,
    window: Window,
) -> Result<Vec<(AlertExecutionResult, Mark)>> {
    let Window {
        limit,
        offset,
        at,
        id,
    } = window;
    let args = args![owner, alert_id, limit, offset, at, id];
    let rows: Vec<(Json<AlertExecutionResult>, i64, String)> = db.all(LIST, args).await?;
    let marked = rows.into_iter().map(|(data, at, id)| (data.0, (at, id)));
    Ok(marked.collect())
}

/// The last look that did not fail.
pub(super) async fn last(
    db: &Db,
    owner: &str,
    alert_id: &str,
) -> Result<Option<AlertExecutionResult>> {
    let row: Option<Row> = db.one(LAST, args![owner, alert_id]).await?;
    Ok(row.map(|row| row.0.0))
}

pub(super) async fn count(db: &Db, owner: &str, alert_id: &str) -> Result<i64> {
    db.number(COUNT, args![owner, alert_id]).await
}

pub(super) async fn sweep(tx: &mut Tx, looked: i64, fired: i64) -> Result<u64> {
    tx.run(SWEEP, args![looked, fired]).await
}

/// The namespace that a retriever of the organization is in.
pub(super) async fn retriever_namespace(
    db: &Db,
    org_id: &str,
    retriever_id: &str,
) -> Result<String> {
    let found: Option<(String,)> = db
        .one(RETRIEVER_NAMESPACE, args![org_id, retriever_id])
        .await?;
    found
        .map(|(namespace_id,)| namespace_id)
        .ok_or_else(|| ApiError::not_found("retriever", retriever_id))
}

pub(super) async fn namespace_ids(db: &Db, org_id: &str) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db.all(NAMESPACE_IDS, args![org_id]).await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// Until when work of this kind rests that ended after `since` and took longer than `least`: `times` as long as it took.
/// Microseconds.
pub(super) async fn rests_until(
    db: &Db,
    (org_id, kind): (&str, &str),
    since: i64,
    times: i64,
    least: i64,
) -> Result<i64> {
    db.number(RESTS, args![org_id, kind, since, times, least])
        .await
}

/// Whether work of this kind waits or runs for the organization.
pub(super) async fn under_way(db: &Db, org_id: &str, kind: &str) -> Result<bool> {
    Ok(db.number(UNDER_WAY, args![org_id, kind]).await? > 0)
}
