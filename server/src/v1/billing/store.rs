use crate::{args, db::Db, error::Result};

crate::sql! {
    const PROCESSED = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE status = 'COMPLETED' AND updated_at >= $2 AND updated_at < $3 AND batch_id IN (SELECT batch_id FROM batches WHERE org_id = $1)";
    const WRITTEN = "SELECT CAST(COALESCE(SUM(documents), 0) AS BIGINT) FROM batch_objects WHERE updated_at >= $2 AND updated_at < $3 AND batch_id IN (SELECT batch_id FROM batches WHERE org_id = $1)";
    const BY_COLLECTION = "SELECT collection_id, CAST(COUNT(*) AS BIGINT) AS objects FROM processed WHERE collection_id IN (SELECT id FROM collections WHERE owner IN (SELECT id FROM namespaces WHERE owner = $1)) AND updated_at >= $2 AND updated_at < $3 GROUP BY collection_id";
    const BY_RETRIEVER = "SELECT namespace_id, retriever_id, CAST(COUNT(*) AS BIGINT) AS searches FROM executions WHERE namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND created_at >= $2 AND created_at < $3 GROUP BY namespace_id, retriever_id";
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
