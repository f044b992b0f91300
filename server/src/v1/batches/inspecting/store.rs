use crate::{
    args,
    db::{Db, Tx},
    error::Result,
};

crate::sql! {
    // Found with its owner before.
    const STANDING = "SELECT tier, status, CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 GROUP BY tier, status";
    const FAILURES = "SELECT COALESCE(error_type, 'permanent'), CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE batch_id = $1 AND status = 'FAILED' GROUP BY COALESCE(error_type, 'permanent') ORDER BY 1";
    const NOTES = "SELECT object_id, error, tier, updated_at FROM batch_objects WHERE batch_id = $1 AND status = 'COMPLETED' AND error IS NOT NULL AND ($2 < 0 OR tier = $2) ORDER BY position LIMIT $3";
    const CHUNKS = "SELECT status, CAST(COUNT(*) AS BIGINT) AS count, CAST(MAX(tries) AS BIGINT) AS tries, CAST(MAX(attempt) AS BIGINT) AS attempts, CAST(COALESCE(MIN(lease_until), 0) AS BIGINT) AS lease_until FROM tasks WHERE org_id = $1 AND parent_id = $2 GROUP BY status ORDER BY status";
    const UNCHANGED = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects b JOIN objects o ON o.object_id = b.object_id JOIN processed p ON p.object_id = b.object_id AND p.content_hash = o.content_hash WHERE b.batch_id = $1 AND o.namespace_id = $2 AND p.collection_id = $3";
    const DRAFTS = "SELECT batch_id FROM batches WHERE namespace_id = $1 AND bucket_id = $2 AND status = 'DRAFT' ORDER BY created_at, batch_id LIMIT $3";
    const FORGET = "DELETE FROM processed WHERE namespace_id = $1 AND collection_id = $2 AND object_id IN (SELECT object_id FROM batch_objects WHERE batch_id = $3)";
}

/// Tier, status and number of objects.
pub async fn standing(db: &Db, batch_id: &str) -> Result<Vec<(i64, String, i64)>> {
    db.all(STANDING, args![batch_id]).await
}

/// Kinds of failures with their numbers.
pub async fn failures(db: &Db, batch_id: &str) -> Result<Vec<(String, i64)>> {
    db.all(FAILURES, args![batch_id]).await
}

/// Objects that completed, with what is to be said of them all the same, their tier and the moment.
pub async fn notes(
    db: &Db,
    batch_id: &str,
    tier: i64,
    most: i64,
) -> Result<Vec<(String, String, i64, i64)>> {
    db.all(NOTES, args![batch_id, tier, most]).await
}

crate::row! {
    /// Pieces of a batch's work that stand alike.
    #[derive(Debug, Clone)]
    pub struct Chunks {
        pub status: String,
        pub count: i64,
        /// Most ends in an error of one of them.
        pub tries: i64,
        /// Most claims of one of them.
        pub attempts: i64,
        /// The earliest end of a lease.
        pub lease_until: i64,
    }
}

/// The pieces of work of a batch's task.
pub async fn chunks(db: &Db, org_id: &str, task_id: &str) -> Result<Vec<Chunks>> {
    db.all(CHUNKS, args![org_id, task_id]).await
}

/// Objects of a batch that a collection was filled from as they are.
pub async fn unchanged(
    db: &Db,
    namespace_id: &str,
    batch_id: &str,
    collection_id: &str,
) -> Result<i64> {
    db.number(UNCHANGED, args![batch_id, namespace_id, collection_id])
        .await
}

/// Drafts of a bucket, oldest first.
pub async fn drafts(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    limit: i64,
) -> Result<Vec<String>> {
    let rows: Vec<(String,)> = db
        .all(DRAFTS, args![namespace_id, bucket_id, limit])
        .await?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// Forgets that a collection was filled from the objects of a batch: it is filled from them again.
pub async fn forget(
    tx: &mut Tx,
    namespace_id: &str,
    collection_id: &str,
    batch_id: &str,
) -> Result<()> {
    tx.run(FORGET, args![namespace_id, collection_id, batch_id])
        .await?;
    Ok(())
}
