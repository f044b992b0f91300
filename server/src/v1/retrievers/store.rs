use loupe_wire::{
    InteractionResponse, Object, RetrieverExecutionSummary, RetrieverModelOutput, Value,
};

use crate::{
    args,
    db::{Db, Json, Tx},
    error::{ApiError, Result},
    list::{Mark, Walk},
};

crate::table!(pub static RETRIEVERS: RetrieverModelOutput = "retrievers", "retriever");

crate::sql! {
    // Written behind the answer: the namespace may be gone by then, and nothing of it comes back.
    const INSERT_EXECUTION = "INSERT INTO executions (execution_id, namespace_id, retriever_id, created_at, micros, returned, cached, public_id, query, fields, data, status, looks_on) SELECT $1, id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM namespaces WHERE id = $2";
    const ACTS = "SELECT i.data, e.data FROM interactions i JOIN executions e ON e.execution_id = i.execution_id WHERE i.namespace_id = $1 AND e.namespace_id = $1 AND e.retriever_id = $2 AND e.status <> 'failed' ORDER BY i.created_at DESC, i.interaction_id LIMIT $3";
    const EXECUTIONS_SINCE = "SELECT execution_id, data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND status <> 'failed' ORDER BY created_at DESC, execution_id LIMIT $4 OFFSET $5";
    const LIST_SPAN = "SELECT data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at <= $4 ORDER BY created_at DESC, execution_id LIMIT $5 OFFSET $6";
    const COUNT_SPAN = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at <= $4";
    const LIST_STATUS = "SELECT data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at <= $4 AND status = $7 ORDER BY created_at DESC, execution_id LIMIT $5 OFFSET $6";
    const COUNT_STATUS = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at <= $4 AND status = $5";
    const RECENT = "SELECT retriever_id, data FROM executions WHERE namespace_id = $1 AND status <> 'failed' ORDER BY created_at DESC LIMIT $2";
    const NAMESPACE_OF = "SELECT r.owner FROM retrievers r JOIN namespaces n ON n.id = r.owner WHERE n.owner = $1 AND r.id = $2";
    const SWEEP_EXECUTIONS = "DELETE FROM executions WHERE execution_id IN (SELECT execution_id FROM executions WHERE created_at < $1 LIMIT $2)";
    const FIND_EXECUTION = "SELECT data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND execution_id = $3";
}

crate::pieces!(
    "executions",
    "execution_id",
    "data, created_at, execution_id",
    "namespace_id = $1 AND retriever_id = $2 AND ($6 = '' OR status = $6) AND ($7 = '' OR $7 LIKE '%|' || status || '|%')"
);

/// One execution, told without its documents.
#[derive(Debug, Clone)]
pub struct Execution {
    pub execution_id: String,
    pub namespace_id: String,
    pub retriever_id: String,
    pub created_at: i64,
    /// How long it took, in microseconds.
    pub micros: i64,
    /// Documents that it gave.
    pub returned: i64,
    pub cached: bool,
    /// Whether nobody searched: a page as it is found, or further results of a search.
    pub looks_on: bool,
    /// The page that it was asked on; empty for others.
    pub public_id: String,
    /// The words that were searched for, cut short.
    pub query: String,
    /// The fields that it filtered on.
    pub fields: Vec<String>,
    /// How it ended.
    pub status: String,
    pub data: Value,
}

/// The executions that a list is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub namespace_id: &'a str,
    pub retriever_id: &'a str,
    /// How they ended; all of them without it.
    pub status: Option<&'a str>,
    pub since: i64,
    pub until: i64,
}

pub async fn insert_execution(tx: &mut Tx, execution: &Execution) -> Result<()> {
    let row = args![
        &execution.execution_id,
        &execution.namespace_id,
        &execution.retriever_id,
        execution.created_at,
        execution.micros,
        execution.returned,
        execution.cached,
        &execution.public_id,
        &execution.query,
        execution.fields.join("\n"),
        execution.data.clone(),
        &execution.status,
        execution.looks_on
    ];
    tx.run(INSERT_EXECUTION, row).await?;
    Ok(())
}

/// Forgets what is older than this, so many at most; answers how many they were.
pub async fn sweep_executions(tx: &mut Tx, before: i64, most: i64) -> Result<u64> {
    tx.run(SWEEP_EXECUTIONS, args![before, most]).await
}

/// Executions, newest first: so many of them, from number so much on.
pub async fn list_executions(
    db: &Db,
    wanted: Wanted<'_>,
    (limit, offset): (i64, i64),
) -> Result<Vec<Object>> {
    let (namespace_id, retriever_id) = (wanted.namespace_id, wanted.retriever_id);
    let (since, until) = (wanted.since, wanted.until);
    let mut args = args![namespace_id, retriever_id, since, until, limit, offset];
    let rows: Vec<(Json<Object>,)> = match wanted.status {
        Some(status) => {
            args.extend(args![status]);
            db.all(LIST_STATUS, args).await?
        }
        None => db.all(LIST_SPAN, args).await?,
    };
    Ok(rows.into_iter().map(|(data,)| data.0).collect())
}

/// Up to 1,000 executions behind this mark, of any moment on the walk; each with its own.
pub async fn piece(
    db: &Db,
    wanted: Wanted<'_>,
    walk: &Walk<'_>,
    (at, id): Mark,
) -> Result<Vec<(RetrieverExecutionSummary, Mark)>> {
    let args = args![
        wanted.namespace_id,
        wanted.retriever_id,
        at,
        id,
        walk.end(),
        wanted.status.unwrap_or_default(),
        walk.words("status")
    ];
    let rows: Vec<(Json<RetrieverExecutionSummary>, i64, String)> =
        db.all(walk.sql(NEWEST, OLDEST), args).await?;
    let execution = |(Json(data), at, id)| (data, (at, id));
    Ok(rows.into_iter().map(execution).collect())
}

/// The number of executions.
pub async fn count_executions(db: &Db, wanted: Wanted<'_>) -> Result<i64> {
    let (namespace_id, retriever_id) = (wanted.namespace_id, wanted.retriever_id);
    let (since, until) = (wanted.since, wanted.until);
    let mut args = args![namespace_id, retriever_id, since, until];
    match wanted.status {
        Some(status) => {
            args.extend(args![status]);
            db.number(COUNT_STATUS, args).await
        }
        None => db.number(COUNT_SPAN, args).await,
    }
}

/// What was done with answers of the retriever, and the executions that gave them, newest first.
pub async fn acts(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
    limit: i64,
) -> Result<Vec<(InteractionResponse, Value)>> {
    let rows: Vec<(Json<InteractionResponse>, Json<Value>)> = db
        .all(ACTS, args![namespace_id, retriever_id, limit])
        .await?;
    Ok(rows
        .into_iter()
        .map(|(act, execution)| (act.0, execution.0))
        .collect())
}

/// Executions of a retriever since a moment that did not fail, newest first.
pub async fn executions_since(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
    since: i64,
    limit: i64,
    offset: i64,
) -> Result<Vec<(String, Object)>> {
    let args = args![namespace_id, retriever_id, since, limit, offset];
    let rows: Vec<(String, Json<Object>)> = db.all(EXECUTIONS_SINCE, args).await?;
    Ok(rows.into_iter().map(|(id, data)| (id, data.0)).collect())
}

/// The newest executions of a namespace that did not fail, with the retrievers that they were of.
pub async fn recent_executions(
    db: &Db,
    namespace_id: &str,
    limit: i64,
) -> Result<Vec<(String, Object)>> {
    let rows: Vec<(String, Json<Object>)> = db.all(RECENT, args![namespace_id, limit]).await?;
    Ok(rows.into_iter().map(|(id, data)| (id, data.0)).collect())
}

pub async fn find_execution(
    db: &Db,
    namespace_id: &str,
    retriever_id: &str,
    execution_id: &str,
) -> Result<Object> {
    let found: Option<(Json<Object>,)> = db
        .one(
            FIND_EXECUTION,
            args![namespace_id, retriever_id, execution_id],
        )
        .await?;
    found
        .map(|(data,)| data.0)
        .ok_or_else(|| ApiError::not_found("execution", execution_id))
}

/// The namespace that a retriever of this organization is in.
pub async fn namespace_of(db: &Db, org_id: &str, retriever_id: &str) -> Result<Option<String>> {
    let row: Option<(String,)> = db.one(NAMESPACE_OF, args![org_id, retriever_id]).await?;
    Ok(row.map(|(namespace_id,)| namespace_id))
}
