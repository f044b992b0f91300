//! The rows that ingestion leaves behind.

use loupe_wire::{SyncJobModel, TaskResponse, UploadResponse};

use super::{HOUR, Span};
use crate::{
    args,
    db::{Db, Json},
    error::Result,
};

crate::sql! {
    // A batch is begun again for a while: what fails in it may be younger than itself.
    const FAULTS = "SELECT b.bucket_id, COALESCE(o.error_type, 'permanent') AS error_type, COALESCE(o.error, '') AS error, o.updated_at FROM batches b JOIN batch_objects o ON o.batch_id = b.batch_id WHERE b.namespace_id = $1 AND ($2 = '' OR b.bucket_id = $2) AND ($3 = '' OR o.collection_id = $3) AND b.created_at >= $4 AND o.status = 'FAILED' AND o.updated_at >= $5 AND o.updated_at < $6 ORDER BY o.updated_at DESC LIMIT $7";
    const WRITTEN = "SELECT updated_at / 3600000000 AS hour, CAST(COUNT(*) AS BIGINT) AS objects, CAST(SUM(documents) AS BIGINT) AS documents FROM processed WHERE namespace_id = $1 AND collection_id = $2 AND updated_at >= $3 AND updated_at < $4 GROUP BY 1 ORDER BY 1";
    const NEWEST = "SELECT COALESCE(MAX(updated_at), 0) FROM processed WHERE namespace_id = $1 AND collection_id = $2";
    // An object of several batches took as long as in the one that finished it: in those before, its row is older.
    const TOOK = "SELECT p.updated_at, p.updated_at - b.submitted_at AS took, p.object_id, p.documents FROM batches b JOIN batch_objects o ON o.batch_id = b.batch_id JOIN processed p ON p.object_id = o.object_id WHERE b.namespace_id = $1 AND p.namespace_id = $1 AND p.collection_id = $2 AND b.created_at >= $3 AND b.submitted_at <= p.updated_at AND p.updated_at <= o.updated_at AND p.updated_at >= $4 AND p.updated_at < $5 ORDER BY p.updated_at DESC LIMIT $6";
    const STORED = "SELECT created_at / 3600000000 AS hour, CAST(COUNT(*) AS BIGINT) AS objects, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at < $3 GROUP BY 1 ORDER BY 1";
    const STORED_ANYWHERE = "SELECT created_at / 3600000000 AS hour, CAST(COUNT(*) AS BIGINT) AS objects, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes FROM objects WHERE namespace_id = $1 AND created_at < $2 GROUP BY 1 ORDER BY 1";
    const PROCESSED = "SELECT u.hour / 3600000000 AS hour, CAST(SUM(u.objects) AS BIGINT) AS objects, CAST(SUM(u.documents) AS BIGINT) AS documents FROM ingestion_usage u JOIN batches b ON b.batch_id = u.batch_id WHERE u.org_id = $1 AND b.namespace_id = $2 AND b.bucket_id = $3 AND u.hour >= $4 AND u.hour < $5 GROUP BY u.hour ORDER BY u.hour";
    const WORKED = "SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT), CAST(COALESCE(SUM(documents), 0) AS BIGINT) FROM ingestion_usage WHERE org_id = $1 AND namespace_id = $2 AND hour >= $3 AND hour < $4";
    // A task that ended lately began lately: it lasts a day or two.
    const APPLIED = "SELECT ended_at, data FROM (SELECT ended_at, data FROM tasks WHERE org_id = $1 AND namespace_id = $2 AND task_type = 'api_taxonomies_materialize' AND status = 'COMPLETED' AND created_at >= $3 AND created_at < $5 AND ended_at >= $4 AND ended_at < $5 UNION ALL SELECT ended_at, data FROM tasks_archive WHERE org_id = $1 AND namespace_id = $2 AND task_type = 'api_taxonomies_materialize' AND status = 'COMPLETED' AND created_at >= $3 AND created_at < $5 AND ended_at >= $4 AND ended_at < $5) t ORDER BY ended_at DESC LIMIT $6";
    const UPLOADS = "SELECT status, data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND created_at >= $3 AND created_at < $4 ORDER BY created_at DESC, upload_id LIMIT $5";
    const LOOKS = "SELECT s.bucket_id, j.data FROM sync_jobs j JOIN syncs s ON s.namespace_id = j.namespace_id AND s.sync_id = j.sync_id WHERE j.namespace_id = $1 AND ($2 = '' OR s.bucket_id = $2) AND ($3 = '' OR j.sync_id = $3) AND (j.created_at >= $4 OR j.status = 'running') AND j.created_at < $5 ORDER BY j.created_at DESC, j.job_id LIMIT $6";
}

/// Days before which a batch that still fails objects was made.
const BEGUN: i64 = 30 * 24 * HOUR;

/// How long a batch lasts at most, and a little.
const LASTS: i64 = 48 * HOUR;

/// Rows of one kind that figures are made of, the newest ones.
const COUNTED: i64 = 20_000;

/// One object that failed.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub bucket_id: String,
    pub kind: String,
    pub message: String,
    pub at: i64,
}

/// Whose rows are wanted; empty names are all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Of<'a> {
    pub namespace_id: &'a str,
    pub bucket_id: &'a str,
    pub collection_id: &'a str,
}

/// The newest objects that failed.
pub(super) async fn faults(db: &Db, of: Of<'_>, span: Span) -> Result<Vec<Fault>> {
    let args = args![
        of.namespace_id,
        of.bucket_id,
        of.collection_id,
        span.since - BEGUN,
        span.since,
        span.until,
        COUNTED
    ];
    let rows: Vec<(String, String, String, i64)> = db.all(FAULTS, args).await?;
    let fault = |(bucket_id, kind, message, at)| Fault {
        bucket_id,
        kind,
        message,
        at,
    };
    Ok(rows.into_iter().map(fault).collect())
}

/// What was counted in one hour.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hour {
    /// Its beginning, in microseconds.
    pub at: i64,
    pub objects: i64,
    /// Documents, or bytes.
    pub amount: i64,
}

fn hours(rows: Vec<(i64, i64, i64)>) -> Vec<Hour> {
    let hour = |(hour, objects, amount): (i64, i64, i64)| Hour {
        at: hour * HOUR,
        objects,
        amount,
    };
    rows.into_iter().map(hour).collect()
}

/// Objects that came into a collection, and their documents, by the hour.
pub(super) async fn written(
    db: &Db,
    (namespace_id, collection_id): (&str, &str),
    span: Span,
) -> Result<Vec<Hour>> {
    let args = args![namespace_id, collection_id, span.since, span.until];
    Ok(hours(db.all(WRITTEN, args).await?))
}

/// When the newest object came into a collection; 0 for never.
pub(super) async fn newest(db: &Db, (namespace_id, collection_id): (&str, &str)) -> Result<i64> {
    db.number(NEWEST, args![namespace_id, collection_id]).await
}

/// How long one object took from the submission of its batch to its documents.
#[derive(Debug, Clone)]
pub(super) struct Took {
    pub at: i64,
    pub micros: i64,
    pub object_id: String,
    pub documents: i64,
}

/// The newest objects that came into a collection by batches.
pub(super) async fn took(
    db: &Db,
    (namespace_id, collection_id): (&str, &str),
    span: Span,
) -> Result<Vec<Took>> {
    let args = args![
        namespace_id,
        collection_id,
        span.since - LASTS,
        span.since,
        span.until,
        COUNTED
    ];
    let rows: Vec<(i64, i64, String, i64)> = db.all(TOOK, args).await?;
    let took = |(at, micros, object_id, documents)| Took {
        at,
        micros,
        object_id,
        documents,
    };
    Ok(rows.into_iter().map(took).collect())
}

/// The objects that a bucket has, and their bytes, by the hour in which they came.
pub(super) async fn stored(
    db: &Db,
    (namespace_id, bucket_id): (&str, &str),
    until: i64,
) -> Result<Vec<Hour>> {
    let args = args![namespace_id, bucket_id, until];
    Ok(hours(db.all(STORED, args).await?))
}

/// The objects that a namespace has, and their bytes, by the hour in which they came.
pub(super) async fn stored_anywhere(db: &Db, namespace_id: &str, until: i64) -> Result<Vec<Hour>> {
    let args = args![namespace_id, until];
    Ok(hours(db.all(STORED_ANYWHERE, args).await?))
}

/// Objects of a bucket that batches processed, and the documents they wrote, by the hour: of batches that are still there.
pub(super) async fn processed(
    db: &Db,
    org_id: &str,
    (namespace_id, bucket_id): (&str, &str),
    span: Span,
) -> Result<Vec<Hour>> {
    let args = args![org_id, namespace_id, bucket_id, span.since, span.until];
    Ok(hours(db.all(PROCESSED, args).await?))
}

/// Objects of a namespace that batches processed, and the documents they wrote.
pub(super) async fn worked(
    db: &Db,
    (org_id, namespace_id): (&str, &str),
    span: Span,
) -> Result<(i64, i64)> {
    let args = args![org_id, namespace_id, span.since, span.until];
    let sums: Option<(i64, i64)> = db.one(WORKED, args).await?;
    Ok(sums.unwrap_or_default())
}

/// The newest tasks that applied taxonomies, with the moments of their ends.
pub(super) async fn applied(
    db: &Db,
    (org_id, namespace_id): (&str, &str),
    span: Span,
) -> Result<Vec<(i64, TaskResponse)>> {
    let args = args![
        org_id,
        namespace_id,
        span.since - LASTS,
        span.since,
        span.until,
        COUNTED
    ];
    let rows: Vec<(i64, Json<TaskResponse>)> = db.all(APPLIED, args).await?;
    Ok(rows.into_iter().map(|(at, data)| (at, data.0)).collect())
}

/// The newest uploads into a bucket with their states.
pub(super) async fn uploads(
    db: &Db,
    (namespace_id, bucket_id): (&str, &str),
    span: Span,
) -> Result<Vec<(String, UploadResponse)>> {
    let args = args![namespace_id, bucket_id, span.since, span.until, COUNTED];
    let rows: Vec<(String, Json<UploadResponse>)> = db.all(UPLOADS, args).await?;
    let upload = |(status, data): (String, Json<UploadResponse>)| (status, data.0);
    Ok(rows.into_iter().map(upload).collect())
}

/// The newest looks of syncs with the buckets that they are for.
pub(super) async fn looks(
    db: &Db,
    of: Of<'_>,
    sync_id: &str,
    span: Span,
    most: i64,
) -> Result<Vec<(String, SyncJobModel)>> {
    let args = args![
        of.namespace_id,
        of.bucket_id,
        sync_id,
        span.since,
        span.until,
        most.min(COUNTED)
    ];
    let rows: Vec<(String, Json<SyncJobModel>)> = db.all(LOOKS, args).await?;
    let look = |(bucket_id, data): (String, Json<SyncJobModel>)| (bucket_id, data.0);
    Ok(rows.into_iter().map(look).collect())
}

/// Faults by their kind, the most frequent first; within a kind in their order.
pub(super) fn kinds(faults: &[Fault]) -> Vec<(&str, Vec<&Fault>)> {
    let mut kinds: std::collections::BTreeMap<&str, Vec<&Fault>> =
        std::collections::BTreeMap::new();
    for fault in faults {
        kinds.entry(&fault.kind).or_default().push(fault);
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, faults)| std::cmp::Reverse(faults.len()));
    kinds
}
