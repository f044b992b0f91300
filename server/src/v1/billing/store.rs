use crate::{args, db::Db, error::Result};

crate::sql! {
    const PROCESSED = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE status = 'COMPLETED' AND updated_at >= $2 AND updated_at < $3 AND batch_id IN (SELECT batch_id FROM batches WHERE org_id = $1)";
    const WRITTEN = "SELECT CAST(COALESCE(SUM(documents), 0) AS BIGINT) FROM batch_objects WHERE updated_at >= $2 AND updated_at < $3 AND batch_id IN (SELECT batch_id FROM batches WHERE org_id = $1)";
    const BY_COLLECTION = "SELECT collection_id, CAST(COUNT(*) AS BIGINT) AS objects FROM processed WHERE collection_id IN (SELECT id FROM collections WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)) AND updated_at >= $2 AND updated_at < $3 GROUP BY collection_id";
    const BY_RETRIEVER = "SELECT namespace_id, retriever_id, CAST(COUNT(*) AS BIGINT) AS searches FROM executions WHERE namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND created_at >= $2 AND created_at < $3 GROUP BY namespace_id, retriever_id";
    // Ingestion by batch, searches by key and hour. An hour that has begun counts with what it has.
    const TRANSACTIONS = "SELECT operation, resource_id, namespace_id, occurred_at, units FROM (SELECT 'ingestion' AS operation, b.batch_id AS resource_id, b.namespace_id AS namespace_id, MAX(o.updated_at) AS occurred_at, CAST(COUNT(*) AS BIGINT) AS units FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id WHERE b.org_id = $1 AND o.status = 'COMPLETED' AND o.updated_at >= $2 AND o.updated_at < $3 GROUP BY b.batch_id, b.namespace_id UNION ALL SELECT 'search' AS operation, key_id AS resource_id, '' AS namespace_id, hour AS occurred_at, CAST(SUM(requests - errors) AS BIGINT) AS units FROM key_usage WHERE org_id = $1 AND path LIKE '%/execute' AND hour >= $2 AND hour < $3 GROUP BY key_id, hour HAVING SUM(requests - errors) > 0) t ORDER BY occurred_at DESC, operation, resource_id LIMIT $4 OFFSET $5";
    const COUNT_TRANSACTIONS = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT b.batch_id AS resource_id, CAST(0 AS BIGINT) AS hour FROM batch_objects o JOIN batches b ON b.batch_id = o.batch_id WHERE b.org_id = $1 AND o.status = 'COMPLETED' AND o.updated_at >= $2 AND o.updated_at < $3 GROUP BY b.batch_id UNION ALL SELECT key_id AS resource_id, hour FROM key_usage WHERE org_id = $1 AND path LIKE '%/execute' AND hour >= $2 AND hour < $3 GROUP BY key_id, hour HAVING SUM(requests - errors) > 0) t";
    const STORED = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM objects WHERE namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND created_at < $2";
}

/// Objects that batches processed between two moments.
pub(super) async fn processed(db: &Db, org_id: &str, from: i64, to: i64) -> Result<i64> {
    db.number(PROCESSED, args![org_id, from, to]).await
}

/// Documents that batches wrote between two moments.
pub(super) async fn written(db: &Db, org_id: &str, from: i64, to: i64) -> Result<i64> {
    db.number(WRITTEN, args![org_id, from, to]).await
}

/// Bytes of the objects that were there before a moment and still are.
pub(super) async fn stored_bytes(db: &Db, org_id: &str, before: i64) -> Result<i64> {
    db.number(STORED, args![org_id, before]).await
}

/// How many objects each collection was filled from between two moments.
pub(super) async fn processed_by_collection(
    db: &Db,
    org_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(String, i64)>> {
    db.all(BY_COLLECTION, args![org_id, from, to]).await
}

/// How often each retriever was executed between two moments: its namespace, its id, the count.
pub(super) async fn searches_by_retriever(
    db: &Db,
    org_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(String, String, i64)>> {
    db.all(BY_RETRIEVER, args![org_id, from, to]).await
}

crate::row! {
    /// Work that was paid for at once.
    #[derive(Debug, Clone)]
    pub(super) struct Worked {
        /// `ingestion` or `search`.
        pub operation: String,
        /// The batch, or the key.
        pub resource_id: String,
        pub namespace_id: String,
        pub occurred_at: i64,
        pub units: i64,
    }
}

/// What was worked between two moments, the newest first.
pub(super) async fn transactions(
    db: &Db,
    org_id: &str,
    (from, to): (i64, i64),
    limit: i64,
    offset: i64,
) -> Result<Vec<Worked>> {
    let args = args![org_id, from, to, limit, offset];
    db.all(TRANSACTIONS, args).await
}

pub(super) async fn count_transactions(
    db: &Db,
    org_id: &str,
    (from, to): (i64, i64),
) -> Result<i64> {
    db.number(COUNT_TRANSACTIONS, args![org_id, from, to]).await
}
