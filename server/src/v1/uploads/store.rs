use loupe_wire::{TaskStatusEnum, UploadListStats, UploadResponse, reading};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    list::{Mark, Walk, Window},
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT = "INSERT INTO uploads (upload_id, namespace_id, bucket_id, file_hash, status, created_at, updated_at, expires_at, data) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8)";
    const FIND = "SELECT status, data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND upload_id = $3";
    const AT = "SELECT status, data FROM uploads WHERE namespace_id = $1 AND upload_id = $2";
    const BY_HASH = "SELECT status, data FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND file_hash = $3 AND status = 'COMPLETED' ORDER BY created_at LIMIT 1";
    const PAGE = "SELECT status, data, created_at, upload_id FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $5 AND (created_at < $5 OR upload_id > $6) ORDER BY created_at DESC, upload_id LIMIT $3 OFFSET $4";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM uploads WHERE namespace_id = $1 AND bucket_id = $2";
    // Only one confirmation of an upload goes on; one that began before $4 is dead.
    const CLAIM = "UPDATE uploads SET status = 'PROCESSING', updated_at = $3 WHERE namespace_id = $1 AND upload_id = $2 AND (status IN ('PENDING', 'FAILED') OR (status = 'PROCESSING' AND updated_at < $4))";
    // Fenced by the moment of the claim: a confirmation that was taken over changes nothing.
    const FINISH = "UPDATE uploads SET file_hash = $4, status = $5, updated_at = $6, data = $7, object_id = $8 WHERE namespace_id = $1 AND upload_id = $2 AND status = 'PROCESSING' AND updated_at = $3";
    // Only one confirmation submits a batch; one that began before $4 and did not end is dead.
    const CLAIM_BATCH = "UPDATE uploads SET batch_claimed_at = $3 WHERE namespace_id = $1 AND upload_id = $2 AND status = 'COMPLETED' AND (batch_claimed_at IS NULL OR batch_claimed_at < $4)";
    // Fenced by the moment of the claim, which is the last one.
    const SET_BATCH = "UPDATE uploads SET updated_at = $4, data = $5, batch_claimed_at = 9223372036854775807 WHERE namespace_id = $1 AND upload_id = $2 AND batch_claimed_at = $3";
    const FREE_BATCH = "UPDATE uploads SET batch_claimed_at = NULL WHERE namespace_id = $1 AND upload_id = $2 AND batch_claimed_at = $3";
    // For the one process that owns an SQLite database: whoever confirmed these is dead.
    const RECLAIM = "UPDATE uploads SET status = 'PENDING' WHERE status = 'PROCESSING'";
    // Uploads of every organization: one sweep serves all.
    const DUE = "SELECT namespace_id, status, data FROM uploads WHERE status <> 'COMPLETED' AND expires_at < $1 AND (status <> 'PROCESSING' OR updated_at < $2) ORDER BY expires_at LIMIT 200";
    const FAIL = "UPDATE uploads SET status = 'FAILED', updated_at = $3, data = $5 WHERE namespace_id = $1 AND upload_id = $2 AND status <> 'COMPLETED' AND (status <> 'PROCESSING' OR updated_at < $4)";
    // A confirmed one has its file elsewhere: what lies where it arrived came late, or was left by a process that was killed.
    const LATE = "SELECT namespace_id, status, data FROM uploads WHERE status = 'COMPLETED' AND expires_at < $1 ORDER BY expires_at LIMIT 200";
    // The column says when the sweep has to come, and it has been; the moment itself stays in the data.
    const RETIRE = "UPDATE uploads SET expires_at = 9223372036854775807 WHERE namespace_id = $1 AND upload_id = $2 AND status IN ('FAILED', 'COMPLETED')";
    // By what the bucket knows the parts of a file that is sent to it in such.
    const PARTS = "SELECT parts_id FROM uploads WHERE namespace_id = $1 AND upload_id = $2 AND parts_id IS NOT NULL";
    const BEGIN_PARTS = "UPDATE uploads SET parts_id = $3 WHERE namespace_id = $1 AND upload_id = $2 AND parts_id IS NULL AND status IN ('PENDING', 'FAILED')";
    const IN_PARTS = "SELECT status, data FROM uploads WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) AND parts_id IS NOT NULL ORDER BY upload_id LIMIT 200";
    const END_PARTS = "UPDATE uploads SET parts_id = NULL WHERE namespace_id = $1 AND upload_id = $2 AND parts_id = $3";
    const DELETE = "DELETE FROM uploads WHERE namespace_id = $1 AND upload_id = $2";
    const STATS = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM uploads WHERE namespace_id = $1 AND bucket_id = $2 GROUP BY status ORDER BY status";
}

crate::pieces!(
    "uploads",
    "upload_id",
    "status, data, created_at, upload_id",
    "namespace_id = $1 AND bucket_id = $2 AND ($6 = '' OR $6 LIKE '%|' || status || '|%')"
);

type Row = (String, Json<UploadResponse>);

/// The status is a column of its own, for it changes without the rest.
fn read((status, Json(mut upload)): Row) -> UploadResponse {
    upload.status = reading::from_value(&status.into()).unwrap_or(TaskStatusEnum::Unknown);
    upload
}

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
    Ok(db.one::<Row>(FIND, args).await?.map(read))
}

/// The upload whose file arrives at a place of this namespace, in whatever bucket.
pub async fn find_at(
    db: &Db,
    namespace_id: &str,
    upload_id: &str,
) -> Result<Option<UploadResponse>> {
    let args = args![namespace_id, upload_id];
    Ok(db.one::<Row>(AT, args).await?.map(read))
}

/// The first upload of the same bytes that was confirmed.
pub async fn find_same(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    file_hash: &str,
) -> Result<Option<UploadResponse>> {
    let args = args![namespace_id, bucket_id, file_hash];
    Ok(db.one::<Row>(BY_HASH, args).await?.map(read))
}

pub async fn page(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    window: Window,
) -> Result<Vec<(UploadResponse, Mark)>> {
    let Window {
        limit,
        offset,
        at,
        id,
    } = window;
    let args = args![namespace_id, bucket_id, limit, offset, at, id];
    let rows: Vec<Marked> = db.all(PAGE, args).await?;
    Ok(rows.into_iter().map(marked).collect())
}

/// A row with the moment at which it was made, and its id.
type Marked = (String, Json<UploadResponse>, i64, String);

fn marked((status, data, at, id): Marked) -> (UploadResponse, Mark) {
    (read((status, data)), (at, id))
}

/// Up to 1,000 uploads behind this mark; each with its own.
pub async fn piece(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    walk: &Walk<'_>,
    (at, id): Mark,
) -> Result<Vec<(UploadResponse, Mark)>> {
    let status = walk.words("status");
    let args = args![namespace_id, bucket_id, at, id, walk.end(), status];
    let rows: Vec<Marked> = db.all(walk.sql(NEWEST, OLDEST), args).await?;
    Ok(rows.into_iter().map(marked).collect())
}

pub async fn count(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    db.number(COUNT, args![namespace_id, bucket_id]).await
}

/// Whether this call is the one that confirms; `now` is its mark. A claim from before `dead` is taken over.
pub async fn claim(
    tx: &mut Tx,
    namespace_id: &str,
    upload_id: &str,
    now: i64,
    dead: i64,
) -> Result<bool> {
    let changed = tx
        .run(CLAIM, args![namespace_id, upload_id, now, dead])
        .await?;
    Ok(changed == 1)
}

/// Ends the confirmation that was claimed at `claimed`; false when another one took it over.
pub async fn finish(
    tx: &mut Tx,
    namespace_id: &str,
    upload: &UploadResponse,
    claimed: i64,
    now: i64,
) -> Result<bool> {
    let args = args![
        namespace_id,
        &upload.upload_id,
        claimed,
        upload.file_hash.as_deref(),
        name_of(upload.status),
        now,
        Arg::json(upload),
        upload.object_id.as_deref()
    ];
    Ok(tx.run(FINISH, args).await? == 1)
}

/// Whether this call is the one that submits the batch of a confirmed upload; `now` is its mark. A claim from before `dead`
/// is taken over.
pub async fn claim_batch(
    tx: &mut Tx,
    namespace_id: &str,
    upload_id: &str,
    now: i64,
    dead: i64,
) -> Result<bool> {
    let args = args![namespace_id, upload_id, now, dead];
    Ok(tx.run(CLAIM_BATCH, args).await? == 1)
}

/// Writes the task of the batch that was claimed at `claimed`. Nobody claims it again.
pub async fn set_batch(
    tx: &mut Tx,
    namespace_id: &str,
    upload: &UploadResponse,
    claimed: i64,
    now: i64,
) -> Result<()> {
    let args = args![
        namespace_id,
        &upload.upload_id,
        claimed,
        now,
        Arg::json(upload)
    ];
    tx.run(SET_BATCH, args).await?;
    Ok(())
}

/// Gives a claim back whose batch could not be submitted.
pub async fn free_batch(
    tx: &mut Tx,
    namespace_id: &str,
    upload_id: &str,
    claimed: i64,
) -> Result<()> {
    tx.run(FREE_BATCH, args![namespace_id, upload_id, claimed])
        .await?;
    Ok(())
}

/// Frees every claim; answers how many there were.
pub async fn reclaim(tx: &mut Tx) -> Result<u64> {
    tx.run(RECLAIM, vec![]).await
}

/// Uploads that ended before `expired` without a confirmation, with their namespaces.
pub async fn due(db: &Db, expired: i64, dead: i64) -> Result<Vec<(String, UploadResponse)>> {
    let rows: Vec<(String, String, Json<UploadResponse>)> =
        db.all(DUE, args![expired, dead]).await?;
    let upload = |(namespace_id, status, data)| (namespace_id, read((status, data)));
    Ok(rows.into_iter().map(upload).collect())
}

/// Confirmed uploads whose address has ended.
pub async fn late(db: &Db, expired: i64) -> Result<Vec<(String, UploadResponse)>> {
    let rows: Vec<(String, String, Json<UploadResponse>)> = db.all(LATE, args![expired]).await?;
    let upload = |(namespace_id, status, data)| (namespace_id, read((status, data)));
    Ok(rows.into_iter().map(upload).collect())
}

/// Fails an upload; false when it was confirmed, or is being confirmed.
pub async fn fail(
    tx: &mut Tx,
    namespace_id: &str,
    upload: &UploadResponse,
    now: i64,
    dead: i64,
) -> Result<bool> {
    let args = args![
        namespace_id,
        &upload.upload_id,
        now,
        dead,
        Arg::json(upload)
    ];
    Ok(tx.run(FAIL, args).await? == 1)
}

/// The sweep does not come back to this one.
pub async fn retire(tx: &mut Tx, namespace_id: &str, upload_id: &str) -> Result<()> {
    tx.run(RETIRE, args![namespace_id, upload_id]).await?;
    Ok(())
}

/// Removes an upload; false where somebody else has.
pub async fn delete(tx: &mut Tx, namespace_id: &str, upload_id: &str) -> Result<bool> {
    Ok(tx.run(DELETE, args![namespace_id, upload_id]).await? > 0)
}

/// By what the bucket knows the parts of the upload's file, if they were begun.
pub async fn parts_id(db: &Db, namespace_id: &str, upload_id: &str) -> Result<Option<String>> {
    let found = db.one::<(String,)>(PARTS, args![namespace_id, upload_id]);
    Ok(found.await?.map(|row| row.0))
}

/// Some uploads of a bucket whose files' parts were begun; of the whole namespace where it is empty.
pub async fn in_parts(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<Vec<UploadResponse>> {
    let rows: Vec<Row> = db.all(IN_PARTS, args![namespace_id, bucket_id]).await?;
    Ok(rows.into_iter().map(read).collect())
}

/// Notes that parts were begun; false when others were before, or the upload waits for nothing.
pub async fn begin_parts(
    tx: &mut Tx,
    namespace_id: &str,
    upload_id: &str,
    parts_id: &str,
) -> Result<bool> {
    let args = args![namespace_id, upload_id, parts_id];
    Ok(tx.run(BEGIN_PARTS, args).await? == 1)
}

/// Forgets these parts: the file was made of them, or they are gone.
pub async fn end_parts(
    tx: &mut Tx,
    namespace_id: &str,
    upload_id: &str,
    parts_id: &str,
) -> Result<()> {
    let args = args![namespace_id, upload_id, parts_id];
    tx.run(END_PARTS, args).await.map(drop)
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
