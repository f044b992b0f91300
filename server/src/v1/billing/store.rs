use std::collections::BTreeMap;

use crate::{
    args,
    db::{Db, Tx},
    error::Result,
};

crate::sql! {
    const ADD = "INSERT INTO ingestion_usage (org_id, hour, batch_id, namespace_id, objects, documents, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (org_id, hour, batch_id) DO UPDATE SET objects = ingestion_usage.objects + excluded.objects, documents = ingestion_usage.documents + excluded.documents, updated_at = excluded.updated_at";
    const PROCESSED = "SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT) FROM ingestion_usage WHERE org_id = $1 AND hour >= $2 AND hour < $3";
    const WRITTEN = "SELECT CAST(COALESCE(SUM(documents), 0) AS BIGINT) FROM ingestion_usage WHERE org_id = $1 AND hour >= $2 AND hour < $3";
    const ADD_FILLED = "INSERT INTO ingestion_by_collection (org_id, hour, batch_id, collection_id, namespace_id, objects) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (org_id, hour, batch_id, collection_id) DO UPDATE SET objects = ingestion_by_collection.objects + excluded.objects";
    const BY_COLLECTION = "SELECT namespace_id, collection_id, CAST(SUM(objects) AS BIGINT) AS objects FROM ingestion_by_collection WHERE org_id = $1 AND hour >= $2 AND hour < $3 GROUP BY namespace_id, collection_id";
    const BY_NAMESPACE = "SELECT namespace_id, CAST(SUM(objects) AS BIGINT) AS objects FROM ingestion_usage WHERE org_id = $1 AND namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND hour >= $2 AND hour < $3 GROUP BY namespace_id";
    const BY_RETRIEVER = "SELECT namespace_id, retriever_id, CAST(COUNT(*) AS BIGINT) AS searches FROM executions WHERE namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND created_at >= $2 AND created_at < $3 AND status <> 'failed' AND NOT cached GROUP BY namespace_id, retriever_id";
    // Ingestion by batch, searches by key and hour, those of strangers by retriever and hour. An hour that has begun counts with
    // what it has.
    const TRANSACTIONS = "SELECT operation, resource_id, namespace_id, occurred_at, units FROM (SELECT 'ingestion' AS operation, batch_id AS resource_id, namespace_id, MAX(updated_at) AS occurred_at, CAST(SUM(objects) AS BIGINT) AS units FROM ingestion_usage WHERE org_id = $1 AND hour >= $2 AND hour < $3 GROUP BY batch_id, namespace_id HAVING SUM(objects) > 0 UNION ALL SELECT 'search' AS operation, key_id AS resource_id, '' AS namespace_id, hour AS occurred_at, CAST(SUM(requests - errors) AS BIGINT) AS units FROM key_usage WHERE org_id = $1 AND (path LIKE '/v1/retrievers/%execute' OR path LIKE '/v1/retrievers/%execute/batch' OR path = '/v1/public/retrievers/{public_name}/execute') AND hour >= $2 AND hour < $3 GROUP BY key_id, hour HAVING SUM(requests - errors) > 0) t ORDER BY occurred_at DESC, operation, resource_id LIMIT $4 OFFSET $5";
    const COUNT_TRANSACTIONS = "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT batch_id AS resource_id, CAST(0 AS BIGINT) AS hour FROM ingestion_usage WHERE org_id = $1 AND hour >= $2 AND hour < $3 GROUP BY batch_id, namespace_id HAVING SUM(objects) > 0 UNION ALL SELECT key_id AS resource_id, hour FROM key_usage WHERE org_id = $1 AND (path LIKE '/v1/retrievers/%execute' OR path LIKE '/v1/retrievers/%execute/batch' OR path = '/v1/public/retrievers/{public_name}/execute') AND hour >= $2 AND hour < $3 GROUP BY key_id, hour HAVING SUM(requests - errors) > 0) t";
    const STORED = "SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) FROM objects WHERE namespace_id IN (SELECT id FROM namespaces WHERE owner = $1) AND created_at < $2";
}

/// What a chunk of a batch did.
pub struct Ingested<'a> {
    pub org_id: &'a str,
    pub namespace_id: &'a str,
    pub batch_id: &'a str,
    pub objects: i64,
    pub documents: i64,
    /// How many objects each collection was filled from.
    pub filled: BTreeMap<&'a str, i64>,
}

const HOUR: i64 = 3_600_000_000;

/// Adds what a chunk did to its hour, in the transaction that notes its end: what was done stays paid for, whatever becomes
/// of the batch.
///
/// # Errors
/// The database does not answer.
pub async fn note(tx: &mut Tx, did: &Ingested<'_>, now: i64) -> Result<()> {
    let hour = now - now.rem_euclid(HOUR);
    if did.objects != 0 || did.documents != 0 {
        let args = args![
            did.org_id,
            hour,
            did.batch_id,
            did.namespace_id,
            did.objects,
            did.documents,
            now
        ];
        tx.run(ADD, args).await?;
    }
    for (collection_id, objects) in &did.filled {
        let args = args![
            did.org_id,
            hour,
            did.batch_id,
            *collection_id,
            did.namespace_id,
            *objects
        ];
        tx.run(ADD_FILLED, args).await?;
    }
    Ok(())
}

/// Objects that batches processed between two moments. Whole hours are counted.
pub(super) async fn processed(db: &Db, org_id: &str, from: i64, to: i64) -> Result<i64> {
    db.number(PROCESSED, args![org_id, from, to]).await
}

/// The same, of documents that they wrote.
pub(super) async fn written(db: &Db, org_id: &str, from: i64, to: i64) -> Result<i64> {
    db.number(WRITTEN, args![org_id, from, to]).await
}

/// Bytes of the objects that were there before a moment and still are.
pub(super) async fn stored_bytes(db: &Db, org_id: &str, before: i64) -> Result<i64> {
    db.number(STORED, args![org_id, before]).await
}

/// How many objects batches processed in each namespace that is still there between two moments. Whole hours are counted.
pub(super) async fn processed_by_namespace(
    db: &Db,
    org_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(String, i64)>> {
    db.all(BY_NAMESPACE, args![org_id, from, to]).await
}

/// The same by collections and their namespaces, of those that are gone, too. An object counts for each that it filled.
pub(super) async fn processed_by_collection(
    db: &Db,
    org_id: &str,
    from: i64,
    to: i64,
) -> Result<Vec<(String, String, i64)>> {
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
        /// The batch, the key, or the retriever of a public page.
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
