use loupe_wire::{TaskStatusEnum, UploadListStats, UploadResponse};
use sqlx::types::Json;

use crate::{
    args,
    db::{Arg, Db, Tx},
    error::Result,
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT = "INSERT INTO uploads (upload_id, namespace_id, bucket_id, file_hash, status, created_at, updated_at, expires_at, data) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8)";
    const FIND = "SELECT data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND upload_id = $3";
    const BY_HASH = "SELECT data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND file_hash = $3 AND status = 'COMPLETED' ORDER BY created_at LIMIT 1";
    const PAGE = "SELECT data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 ORDER BY created_at DESC, upload_id LIMIT $3 OFFSET $4";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM uploads WHERE namespace_id = $1 AND bucket_id = $2";
    const UPDATE = "UPDATE uploads SET file_hash = $3, status = $4, updated_at = $5, data = $6 WHERE namespace_id = $1 AND upload_id = $2";
    // Only one confirmation of an upload goes on.
    const CLAIM = "UPDATE uploads SET status = $3, updated_at = $4 WHERE namespace_id = $1 AND upload_id = $2 AND status IN ('PENDING', 'FAILED')";
    const DELETE = "DELETE FROM uploads WHERE namespace_id = $1 AND upload_id = $2";
    const STATS = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 GROUP BY status ORDER BY status";
}

type Row = (Json<UploadResponse>,);

pub async fn insert(
    tx: &mut Tx,
    namespace_id: &str,
    upload: &UploadResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        &upload.upload_id,
        namespace_id,
        &upload.bucket_id,
        upload.file_hash.as_deref(),
        name_of(upload.status),
        now,
        upload.expires_at.timestamp_micros(),
        Arg::json(upload)
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

pub async fn find(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    upload_id: &str,
) -> Result<Option<UploadResponse>> {
    let args = args![namespace_id, bucket_id, upload_id];
    Ok(db.one::<Row>(FIND, args).await?.map(|row| row.0.0))
}

/// The first upload of the same bytes that was confirmed.
pub async fn find_same(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    file_hash: &str,
) -> Result<Option<UploadResponse>> {
    let args = args![namespace_id, bucket_id, file_hash];
    Ok(db.one::<Row>(BY_HASH, args).await?.map(|row| row.0.0))
}

pub async fn page(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    limit: i64,
    offset: i64,
) -> Result<Vec<UploadResponse>> {
    let args = args![namespace_id, bucket_id, limit, offset];
    let rows: Vec<Row> = db.all(PAGE, args).await?;
    Ok(rows.into_iter().map(|row| row.0.0).collect())
}

pub async fn count(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    db.number(COUNT, args![namespace_id, bucket_id]).await
}

pub async fn update(
    tx: &mut Tx,
    namespace_id: &str,
    upload: &UploadResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        namespace_id,
        &upload.upload_id,
        upload.file_hash.as_deref(),
        name_of(upload.status),
        now,
        Arg::json(upload)
    ];
    tx.run(UPDATE, args).await?;
    Ok(())
}

/// Whether this call is the one that confirms.
pub async fn claim(tx: &mut Tx, namespace_id: &str, upload_id: &str, now: i64) -> Result<bool> {
    let status = name_of(TaskStatusEnum::Processing);
    let changed = tx
        .run(CLAIM, args![namespace_id, upload_id, status, now])
        .await?;
    Ok(changed == 1)
}

pub async fn delete(tx: &mut Tx, namespace_id: &str, upload_id: &str) -> Result<()> {
    tx.run(DELETE, args![namespace_id, upload_id]).await?;
    Ok(())
}

/// Counts of all the bucket's uploads, sizes of the ones given.
pub async fn stats(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    shown: &[UploadResponse],
) -> Result<UploadListStats> {
    let rows: Vec<(String, i64)> = db.all(STATS, args![namespace_id, bucket_id]).await?;
    let sizes: Vec<i64> = shown
        .iter()
        .filter_map(|upload| upload.file_size_bytes)
        .collect();
    let total_size_bytes: i64 = sizes.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let average = total_size_bytes as f64 / sizes.len().max(1) as f64;
    Ok(UploadListStats {
        total_uploads: rows.iter().map(|(_, count)| count).sum(),
        total_size_bytes,
        uploads_by_status: rows.into_iter().collect(),
        avg_file_size_bytes: average,
        unique_buckets: 1,
    })
}
