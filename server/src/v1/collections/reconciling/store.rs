use crate::{args, db::Db, error::Result};

crate::sql! {
    const SOURCE = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED')";
    const PRODUCED = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects o JOIN processed p ON p.object_id = o.object_id AND p.collection_id = $3 WHERE o.namespace_id = $1 AND o.bucket_id = $2 AND p.documents > 0";
    const MISSING = "SELECT o.object_id, o.status, o.created_at, CAST(COALESCE(p.documents, -1) AS BIGINT) AS documents FROM objects o LEFT JOIN processed p ON p.object_id = o.object_id AND p.collection_id = $3 WHERE o.namespace_id = $1 AND o.bucket_id = $2 AND (p.object_id IS NULL OR p.documents = 0) AND o.status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED') ORDER BY o.created_at, o.object_id LIMIT $4";
}

crate::row! {
    /// An object that a collection holds nothing of.
    #[derive(Debug, Clone)]
    pub struct Missing {
        pub object_id: String,
        pub status: String,
        pub created_at: i64,
        /// Below zero when the collection was never filled from it.
        pub documents: i64,
    }
}

/// How many objects a bucket has, and of how many a collection holds documents.
pub async fn counts(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    collection_id: &str,
) -> Result<(i64, i64)> {
    let all = db.number(SOURCE, args![namespace_id, bucket_id]).await?;
    let args = args![namespace_id, bucket_id, collection_id];
    Ok((all, db.number(PRODUCED, args).await?))
}

/// Objects of the bucket that the collection holds nothing of, oldest first.
pub async fn missing(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    collection_id: &str,
    limit: i64,
) -> Result<Vec<Missing>> {
    let args = args![namespace_id, bucket_id, collection_id, limit];
    db.all(MISSING, args).await
}
