use loupe_wire::{
    ClusterExecutionResult, ClusterMetadata, ClusterModel, ClusterRunStatus,
    ExecuteClusterByIdRequest,
};
use serde::{Deserialize, Serialize};

use crate::{
    args,
    db::{Arg, Args, Db, Json, Tx},
    error::{ApiError, Result},
    v1::tasks::name_of,
};

crate::table!(pub static CLUSTERS: Stored = "clusters", "cluster");

crate::sql! {
    // Held until the transaction ends, so that two executions cannot both begin.
    const LOCK = "UPDATE clusters SET updated_at = $3 WHERE owner = $1 AND id = $2";
    const ACTIVE = "SELECT data FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2 AND status IN ('pending', 'processing')";
    const INSERT = "INSERT INTO cluster_runs (run_id, cluster_id, namespace_id, task_id, status, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)";
    const FIND = "SELECT data FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2 AND run_id = $3";
    // As many as one may be made of; those that are not named are empty.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const NAMED_RUNS = "SELECT data FROM cluster_runs WHERE namespace_id || '' = $1 AND run_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";
    const NEWEST = "SELECT data FROM cluster_runs r WHERE namespace_id = $1 AND cluster_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) AND status = 'completed' AND created_at = (SELECT MAX(o.created_at) FROM cluster_runs o WHERE o.namespace_id = r.namespace_id AND o.cluster_id = r.cluster_id AND o.status = 'completed') ORDER BY run_id";
    const OF_TRIGGER = "SELECT r.data FROM cluster_runs r JOIN trigger_firings f ON f.namespace_id = r.namespace_id AND f.task_id = r.task_id WHERE r.namespace_id = $1 AND f.trigger_id = $2 ORDER BY f.triggered_at DESC LIMIT 1000";
    const LIST = "SELECT data FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2 ORDER BY created_at DESC, run_id DESC LIMIT $3";
    const LAST = "SELECT data FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2 AND status = 'completed' ORDER BY created_at DESC, run_id DESC LIMIT 1";
    // Fenced: an execution that ended already stays as it ended.
    const MOVE = "UPDATE cluster_runs SET status = $4, updated_at = $5, data = $6 WHERE namespace_id = $1 AND cluster_id = $2 AND run_id = $3 AND status IN ('pending', 'processing')";
    const AMEND = "UPDATE cluster_runs SET updated_at = $4, data = $5 WHERE namespace_id = $1 AND cluster_id = $2 AND run_id = $3";
    const DELETE = "DELETE FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2 AND run_id = $3";
    const DELETE_ALL = "DELETE FROM cluster_runs WHERE namespace_id = $1 AND cluster_id = $2";
}

/// A cluster as it is kept: as it is told, and as it was asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stored {
    #[serde(flatten)]
    pub told: ClusterMetadata,
    #[serde(rename = "_model")]
    pub model: ClusterModel,
}

/// One execution as it is kept. Members, centroids and the picture are in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Run {
    pub result: ClusterExecutionResult,
    pub request: ExecuteClusterByIdRequest,
    pub task_id: String,
    /// The task is a trigger's.
    #[serde(default)]
    pub triggered: bool,
    /// What the language model was asked of its clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// A question to the language model that a cluster's name answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Asked {
    /// Its digest.
    pub question: String,
    pub cluster_id: String,
    /// When it was asked.
    pub at: i64,
}

impl Run {
    pub fn is_active(&self) -> bool {
        use ClusterRunStatus::{Pending, Processing};
        matches!(self.result.status, Pending | Processing)
    }
}

type Row = (Json<Run>,);

/// Holds the cluster until the transaction ends.
///
/// # Errors
/// It was removed meanwhile.
pub async fn lock(tx: &mut Tx, namespace_id: &str, cluster_id: &str, now: i64) -> Result<()> {
    match tx.run(LOCK, args![namespace_id, cluster_id, now]).await? {
        0 => Err(ApiError::not_found("cluster", cluster_id)),
        _ => Ok(()),
    }
}

pub async fn active(tx: &mut Tx, namespace_id: &str, cluster_id: &str) -> Result<Option<Run>> {
    let row: Option<Row> = tx.one(ACTIVE, args![namespace_id, cluster_id]).await?;
    Ok(row.map(|row| row.0.0))
}

pub async fn insert(tx: &mut Tx, namespace_id: &str, run: &Run, now: i64) -> Result<()> {
    let row = args![
        &run.result.run_id,
        &run.result.cluster_id,
        namespace_id,
        &run.task_id,
        name_of(run.result.status),
        now,
        Arg::json(run)
    ];
    tx.run(INSERT, row).await?;
    Ok(())
}

fn found(row: Option<Row>, run_id: &str) -> Result<Run> {
    row.map(|row| row.0.0)
        .ok_or_else(|| ApiError::not_found("cluster execution", run_id))
}

pub async fn find(db: &Db, namespace_id: &str, cluster_id: &str, run_id: &str) -> Result<Run> {
    let row: Option<Row> = db
        .one(FIND, args![namespace_id, cluster_id, run_id])
        .await?;
    found(row, run_id)
}

pub async fn find_in(
    tx: &mut Tx,
    namespace_id: &str,
    cluster_id: &str,
    run_id: &str,
) -> Result<Run> {
    let row: Option<Row> = tx
        .one(FIND, args![namespace_id, cluster_id, run_id])
        .await?;
    found(row, run_id)
}

/// Newest first.
pub async fn list(db: &Db, namespace_id: &str, cluster_id: &str, most: i64) -> Result<Vec<Run>> {
    let rows: Vec<Row> = db.all(LIST, args![namespace_id, cluster_id, most]).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

/// As [`list`], inside a transaction.
pub async fn list_in(
    tx: &mut Tx,
    namespace_id: &str,
    cluster_id: &str,
    most: i64,
) -> Result<Vec<Run>> {
    let rows: Vec<Row> = tx.all(LIST, args![namespace_id, cluster_id, most]).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

/// Ids that one statement names.
pub const NAMED: usize = 20;

fn names(namespace_id: &str, ids: &[String]) -> Args {
    let mut args = args![namespace_id];
    args.extend((0..NAMED).map(|place| Arg::from(ids.get(place).map_or("", String::as_str))));
    args
}

/// Executions of any clusters, by their ids; in no order.
pub async fn named(db: &Db, namespace_id: &str, ids: &[String]) -> Result<Vec<Run>> {
    let rows: Vec<Row> = db.all(NAMED_RUNS, names(namespace_id, ids)).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

/// The newest completed execution of each cluster; in no order.
pub async fn newest(db: &Db, namespace_id: &str, cluster_ids: &[String]) -> Result<Vec<Run>> {
    let rows: Vec<Row> = db.all(NEWEST, names(namespace_id, cluster_ids)).await?;
    let mut runs: Vec<Run> = rows.into_iter().map(|row| row.0.0).collect();
    // Two of one moment are in the order of their ids: the last stays.
    runs.reverse();
    let mut known = std::collections::HashSet::new();
    runs.retain(|run| known.insert(run.result.cluster_id.clone()));
    Ok(runs)
}

/// The newest executions that a trigger began.
pub async fn of_trigger(db: &Db, namespace_id: &str, trigger_id: &str) -> Result<Vec<Run>> {
    let rows: Vec<Row> = db.all(OF_TRIGGER, args![namespace_id, trigger_id]).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

/// The newest execution that was completed.
pub async fn last(db: &Db, namespace_id: &str, cluster_id: &str) -> Result<Option<Run>> {
    let row: Option<Row> = db.one(LAST, args![namespace_id, cluster_id]).await?;
    Ok(row.map(|row| row.0.0))
}

/// Whether the execution had not ended.
pub async fn advance(tx: &mut Tx, namespace_id: &str, run: &Run, now: i64) -> Result<bool> {
    let row = args![
        namespace_id,
        &run.result.cluster_id,
        &run.result.run_id,
        name_of(run.result.status),
        now,
        Arg::json(run)
    ];
    Ok(tx.run(MOVE, row).await? > 0)
}

/// Changes what is said of an execution, not where it stands.
pub async fn amend(tx: &mut Tx, namespace_id: &str, run: &Run, now: i64) -> Result<()> {
    let (cluster_id, run_id) = (&run.result.cluster_id, &run.result.run_id);
    let row = args![namespace_id, cluster_id, run_id, now, Arg::json(run)];
    tx.run(AMEND, row).await?;
    Ok(())
}

pub async fn delete(tx: &mut Tx, namespace_id: &str, cluster_id: &str, run_id: &str) -> Result<()> {
    tx.run(DELETE, args![namespace_id, cluster_id, run_id])
        .await?;
    Ok(())
}

pub async fn delete_all(tx: &mut Tx, namespace_id: &str, cluster_id: &str) -> Result<()> {
    tx.run(DELETE_ALL, args![namespace_id, cluster_id]).await?;
    Ok(())
}
