use loupe_wire::{InteractionResponse, Object};

use super::Span;
use crate::{
    args,
    db::{Db, Json},
    error::Result,
};

crate::sql! {
    // Whoever looks on, at a further page of a search or at a page before anything was asked, has not searched.
    const OF_RETRIEVER = "SELECT retriever_id, created_at, micros, returned, cached, query, fields FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at < $4 AND status <> 'failed' AND NOT looks_on AND (CAST($5 AS BIGINT) = 0 OR (CAST($5 AS BIGINT) = 1) = (public_id <> '')) ORDER BY created_at DESC LIMIT $6";
    const OF_NAMESPACE = "SELECT retriever_id, created_at, micros, returned, cached, query, fields FROM executions WHERE namespace_id = $1 AND created_at >= $2 AND created_at < $3 AND status <> 'failed' AND NOT looks_on ORDER BY created_at DESC LIMIT $4";
    const TOLD = "SELECT data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at < $4 AND status <> 'failed' ORDER BY created_at DESC LIMIT $5";
    const SLOWEST = "SELECT micros, data FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at < $4 AND status <> 'failed' ORDER BY micros DESC, execution_id LIMIT $5";
    const POOR = "SELECT execution_id, created_at, micros, returned, query FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND created_at >= $3 AND created_at < $4 AND status <> 'failed' AND NOT looks_on AND (returned = 0 OR micros >= $5) ORDER BY created_at DESC, execution_id LIMIT $6";
    const FAILED_SEARCHES = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1 AND retriever_id = $2 AND status = 'failed' AND NOT looks_on AND created_at >= $3 AND created_at < $4 AND (CAST($5 AS BIGINT) = 0 OR (CAST($5 AS BIGINT) = 1) = (public_id <> ''))";
    // An act may name the execution alone.
    const ACTS = "SELECT created_at, data FROM interactions WHERE namespace_id = $1 AND created_at >= $3 AND created_at < $4 AND (CAST($5 AS BIGINT) = 0 OR (CAST($5 AS BIGINT) = 1) = (public_id <> '')) AND (retriever_id = $2 OR (retriever_id = '' AND EXISTS (SELECT 1 FROM executions e WHERE e.namespace_id = $1 AND e.retriever_id = $2 AND e.execution_id = interactions.execution_id))) AND (kinds & CAST($6 AS BIGINT)) <> 0 ORDER BY created_at DESC, interaction_id LIMIT $7";
    const SUMS_OF_ACTS = "SELECT kinds, CAST(COUNT(*) AS BIGINT) FROM interactions WHERE namespace_id = $1 AND created_at >= $3 AND created_at < $4 AND (CAST($5 AS BIGINT) = 0 OR (CAST($5 AS BIGINT) = 1) = (public_id <> '')) AND (retriever_id = $2 OR (retriever_id = '' AND EXISTS (SELECT 1 FROM executions e WHERE e.namespace_id = $1 AND e.retriever_id = $2 AND e.execution_id = interactions.execution_id))) GROUP BY kinds ORDER BY kinds";
    const FAILED_OBJECTS = "SELECT o.collection_id, CAST(COUNT(*) AS BIGINT) FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id WHERE b.namespace_id = $1 AND b.created_at >= $2 AND o.status = 'FAILED' AND o.collection_id IS NOT NULL AND o.updated_at >= $3 AND o.updated_at < $4 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1000";
    // As searches are paid for: those that were answered, and not from memory.
    const PAID_SEARCHES = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1 AND created_at >= $2 AND created_at < $3 AND status <> 'failed' AND NOT cached";
    const FAILED_CLUSTERS = "SELECT cluster_id, CAST(COUNT(*) AS BIGINT) FROM cluster_runs WHERE namespace_id = $1 AND status = 'failed' AND created_at >= $2 AND created_at < $3 GROUP BY cluster_id ORDER BY 2 DESC, 1 LIMIT 1000";
}

crate::row! {
    /// One search, as figures need it.
    #[derive(Debug, Clone)]
    pub(super) struct Search {
        pub retriever_id: String,
        pub created_at: i64,
        pub micros: i64,
        pub returned: i64,
        pub cached: bool,
        pub query: String,
        /// The fields that it filtered on, a line each.
        pub fields: String,
    }

    /// An answer with nothing in it, or one that took long.
    #[derive(Debug)]
    pub(super) struct Poor {
        pub execution_id: String,
        pub created_at: i64,
        pub micros: i64,
        pub returned: i64,
        pub query: String,
    }
}

impl Search {
    pub fn milliseconds(&self) -> f64 {
        self.micros as f64 / 1e3
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.lines()
    }
}

/// Whose searches are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Asked {
    #[default]
    Anywhere,
    /// On a published page.
    OnPages,
    /// Through the API.
    Elsewhere,
}

/// The newest searches of one retriever.
pub(super) async fn of_retriever(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    asked: Asked,
    most: i64,
) -> Result<Vec<Search>> {
    let args = args![
        namespace_id,
        retriever_id,
        span.since,
        span.until,
        asked as i64,
        most
    ];
    db.all(OF_RETRIEVER, args).await
}

/// How many searches of a retriever failed.
pub(super) async fn failed_searches(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    asked: Asked,
) -> Result<i64> {
    let args = args![
        namespace_id,
        retriever_id,
        span.since,
        span.until,
        asked as i64
    ];
    db.number(FAILED_SEARCHES, args).await
}

/// The newest searches of a namespace.
pub(super) async fn of_namespace(
    db: &Db,
    namespace_id: &str,
    span: Span,
    most: i64,
) -> Result<Vec<Search>> {
    let args = args![namespace_id, span.since, span.until, most];
    db.all(OF_NAMESPACE, args).await
}

/// The newest executions of a retriever, as they are told.
pub(super) async fn told(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    most: i64,
) -> Result<Vec<Object>> {
    let args = args![namespace_id, retriever_id, span.since, span.until, most];
    let rows: Vec<(Json<Object>,)> = db.all(TOLD, args).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

/// The slowest executions of a retriever with their microseconds.
pub(super) async fn slowest(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    most: i64,
) -> Result<Vec<(i64, Object)>> {
    let args = args![namespace_id, retriever_id, span.since, span.until, most];
    let rows: Vec<(i64, Json<Object>)> = db.all(SLOWEST, args).await?;
    Ok(rows
        .into_iter()
        .map(|(took, data)| (took, data.0))
        .collect())
}

/// The newest answers that found nothing or took so many microseconds.
pub(super) async fn poor(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    slow: i64,
    most: i64,
) -> Result<Vec<Poor>> {
    let args = args![
        namespace_id,
        retriever_id,
        span.since,
        span.until,
        slow,
        most
    ];
    db.all(POOR, args).await
}

/// What somebody did with an answer.
#[derive(Debug)]
pub(super) struct Act {
    pub created_at: i64,
    pub told: InteractionResponse,
}

/// How often each mixture of kinds was done with answers of a retriever.
pub(super) async fn sums_of_acts(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    asked: Asked,
) -> Result<Vec<(i64, i64)>> {
    let args = args![
        namespace_id,
        retriever_id,
        span.since,
        span.until,
        asked as i64
    ];
    db.all(SUMS_OF_ACTS, args).await
}

/// The newest acts of some kinds, by their bits, on answers of a retriever: so many.
pub(super) async fn acts(
    db: &Db,
    (namespace_id, retriever_id): (&str, &str),
    span: Span,
    asked: Asked,
    (kinds, most): (i64, i64),
) -> Result<Vec<Act>> {
    let args = args![
        namespace_id,
        retriever_id,
        span.since,
        span.until,
        asked as i64,
        kinds,
        most
    ];
    let rows: Vec<(i64, Json<InteractionResponse>)> = db.all(ACTS, args).await?;
    let act = |(created_at, told): (i64, Json<InteractionResponse>)| Act {
        created_at,
        told: told.0,
    };
    Ok(rows.into_iter().map(act).collect())
}

/// Objects that failed, by collection. A batch lasts a day at most, and may be begun again for a while.
pub(super) async fn failed_objects(
    db: &Db,
    namespace_id: &str,
    span: Span,
) -> Result<Vec<(String, i64)>> {
    let begun = span.since - 30 * 24 * super::HOUR;
    let args = args![namespace_id, begun, span.since, span.until];
    db.all(FAILED_OBJECTS, args).await
}

/// Searches of a namespace that are paid for.
pub(super) async fn paid_searches(db: &Db, namespace_id: &str, span: Span) -> Result<i64> {
    let args = args![namespace_id, span.since, span.until];
    db.number(PAID_SEARCHES, args).await
}

/// Executions that failed, by cluster.
pub(super) async fn failed_clusters(
    db: &Db,
    namespace_id: &str,
    span: Span,
) -> Result<Vec<(String, i64)>> {
    let args = args![namespace_id, span.since, span.until];
    db.all(FAILED_CLUSTERS, args).await
}
