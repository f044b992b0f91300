use std::collections::BTreeSet;

use loupe_wire::{ObjectListStats, ObjectResponse, TaskStatusEnum, reading};

use super::{listing::Statuses, shelving::is_shelved};
use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::Result,
    list::{Mark, Window},
    v1::tasks::name_of,
};

crate::sql! {
    // Another one with its keys, of a transaction beside, is no error: that would end the transaction on PostgreSQL.
    const INSERT = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11) ON CONFLICT DO NOTHING";
    const HOLD = "UPDATE objects SET updated_at = updated_at WHERE namespace_id = $1 AND object_id = $2";
    const UPDATE = "UPDATE objects SET key_prefix = $3, unique_key = $4, content_hash = $5, status = $6, size_bytes = $7, updated_at = $8, data = $9, error = CASE WHEN CAST($6 AS TEXT) = 'FAILED' THEN error END WHERE namespace_id = $1 AND object_id = $2";
    const FIND = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND object_id = $3";
    const FIND_ANYWHERE = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id = $1 AND object_id = $2";
    const BY_UNIQUE = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND unique_key = $3";
    const BY_HASH = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND content_hash = $3 ORDER BY created_at LIMIT 1";
    const BY_IDEMPOTENCY = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND idempotency_key = $3";
    const PAGE = "SELECT object_id, status, size_bytes, data, error, created_at FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND created_at <= $5 AND (created_at < $5 OR object_id > $6) ORDER BY created_at DESC, object_id LIMIT $3 OFFSET $4";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND bucket_id = $2";
    const STATUSES = "SELECT status, CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND bucket_id = $2 GROUP BY status";
    // A hundred ids at once: fewer are filled up with the last one.
    // The owner is no key here: SQLite would look at all that the owner has, where the ids lead to each.
    const FIND_MANY = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id || '' = $1 AND bucket_id || '' = $2 AND object_id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101, $102)";
    const FIND_NAMED = "SELECT object_id, status, size_bytes, data, error FROM objects WHERE namespace_id || '' = $1 AND object_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101)";
    const LIVING = "SELECT object_id FROM objects WHERE namespace_id || '' = $1 AND object_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101) AND status NOT IN ('ARCHIVED', 'SUSPENDED', 'DEACTIVATED')";
    const FILLED = "SELECT DISTINCT collection_id FROM processed WHERE namespace_id = $1 AND object_id IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69, $70, $71, $72, $73, $74, $75, $76, $77, $78, $79, $80, $81, $82, $83, $84, $85, $86, $87, $88, $89, $90, $91, $92, $93, $94, $95, $96, $97, $98, $99, $100, $101) AND documents > 0";
    const SET_STATE = "UPDATE objects SET status = $3, updated_at = $4, data = $5, error = CASE WHEN CAST($3 AS TEXT) = 'FAILED' THEN error END WHERE namespace_id = $1 AND object_id = $2";
    const DELETE = "DELETE FROM objects WHERE namespace_id = $1 AND object_id = $2";
}

/// The columns beside the wire type.
pub struct Columns {
    pub unique_key: Option<String>,
    pub content_hash: String,
    pub idempotency_key: Option<String>,
    pub size_bytes: i64,
}

pub(super) type Row = (String, String, i64, Json<ObjectResponse>, Option<String>);

/// The status and what it comes from are columns of their own, for they change without the rest.
pub(super) fn read((_, status, _, Json(mut object), error): Row) -> ObjectResponse {
    object.status = reading::from_value(&status.into()).unwrap_or(TaskStatusEnum::Unknown);
    // Whoever takes an object away says why in what is kept of it.
    if !is_shelved(object.status) {
        object.error = error;
    }
    object
}

/// A row with the moment at which it was made.
pub(super) type Marked = (
    String,
    String,
    i64,
    Json<ObjectResponse>,
    Option<String>,
    i64,
);

pub(super) fn read_marked((id, status, size, data, error, at): Marked) -> (ObjectResponse, Mark) {
    let mark = (at, id.clone());
    (read((id, status, size, data, error)), mark)
}

/// False when there is another one with the same unique key or the same mark.
pub async fn insert(
    tx: &mut Tx,
    namespace_id: &str,
    object: &ObjectResponse,
    columns: &Columns,
    now: i64,
) -> Result<bool> {
    let args = args![
        object.object_id.as_deref(),
        namespace_id,
        &object.bucket_id,
        object.key_prefix.as_deref(),
        columns.unique_key.as_deref(),
        &columns.content_hash,
        columns.idempotency_key.as_deref(),
        name_of(object.status),
        columns.size_bytes,
        now,
        Arg::json(object)
    ];
    Ok(tx.run(INSERT, args).await? == 1)
}

/// Whether there is such an object; it stays until the transaction ends.
pub async fn hold(tx: &mut Tx, namespace_id: &str, object_id: &str) -> Result<bool> {
    Ok(tx.run(HOLD, args![namespace_id, object_id]).await? == 1)
}

/// False when the object is gone.
pub async fn update(
    tx: &mut Tx,
    namespace_id: &str,
    object: &ObjectResponse,
    columns: &Columns,
    now: i64,
) -> Result<bool> {
    let args = args![
        namespace_id,
        object.object_id.as_deref(),
        object.key_prefix.as_deref(),
        columns.unique_key.as_deref(),
        &columns.content_hash,
        name_of(object.status),
        columns.size_bytes,
        now,
        Arg::json(object)
    ];
    Ok(tx.run(UPDATE, args).await? == 1)
}

pub async fn find(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    object_id: &str,
) -> Result<Option<ObjectResponse>> {
    let row = db
        .one::<Row>(FIND, args![namespace_id, bucket_id, object_id])
        .await?;
    Ok(row.map(read))
}

/// In whichever bucket of the namespace it is.
pub async fn find_anywhere(
    db: &Db,
    namespace_id: &str,
    object_id: &str,
) -> Result<Option<ObjectResponse>> {
    let row = db
        .one::<Row>(FIND_ANYWHERE, args![namespace_id, object_id])
        .await?;
    Ok(row.map(read))
}

pub async fn find_in(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    object_id: &str,
) -> Result<Option<ObjectResponse>> {
    let row = tx
        .one::<Row>(FIND, args![namespace_id, bucket_id, object_id])
        .await?;
    Ok(row.map(read))
}

/// What a create request may run into.
pub enum Same<'a> {
    UniqueKey(&'a str),
    Hash(&'a str),
    Idempotency(&'a str),
}

pub async fn find_same(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    same: Same<'_>,
) -> Result<Option<ObjectResponse>> {
    let (sql, value) = match same {
        Same::UniqueKey(value) => (BY_UNIQUE, value),
        Same::Hash(value) => (BY_HASH, value),
        Same::Idempotency(value) => (BY_IDEMPOTENCY, value),
    };
    let row = tx
        .one::<Row>(sql, args![namespace_id, bucket_id, value])
        .await?;
    Ok(row.map(read))
}

pub async fn page(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    window: Window,
) -> Result<Vec<(ObjectResponse, Mark)>> {
    let Window {
        limit,
        offset,
        at,
        id,
    } = window;
    let args = args![namespace_id, bucket_id, limit, offset, at, id];
    let rows: Vec<Marked> = db.all(PAGE, args).await?;
    Ok(rows.into_iter().map(read_marked).collect())
}

pub async fn count(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    db.number(COUNT, args![namespace_id, bucket_id]).await
}

/// How many of the bucket's objects have which status.
pub async fn statuses(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<Statuses> {
    let rows: Vec<(String, i64)> = db.all(STATUSES, args![namespace_id, bucket_id]).await?;
    Ok(rows.into_iter().collect())
}

/// Counts of the objects that a list is of, files of those that are shown.
pub fn stats(statuses: Statuses, shown: &[ObjectResponse]) -> ObjectListStats {
    let blobs: usize = shown.iter().map(|object| object.blobs.len()).sum();
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let average = blobs as f64 / shown.len().max(1) as f64;
    ObjectListStats {
        total_objects: statuses.values().sum(),
        total_blobs: i64::try_from(blobs).unwrap_or(i64::MAX),
        avg_blobs_per_object: average,
        objects_by_status: statuses
            .into_iter()
            .map(|(status, count)| (status, count.into()))
            .collect(),
    }
}

pub async fn count_in(tx: &mut Tx, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    tx.number(COUNT, args![namespace_id, bucket_id]).await
}

pub async fn delete(tx: &mut Tx, namespace_id: &str, object_id: &str) -> Result<u64> {
    tx.run(DELETE, args![namespace_id, object_id]).await
}

/// Ids looked up by one statement.
pub(super) const LOOKED_UP: usize = 100;

/// A hundred arguments, whatever the number of ids.
pub(super) fn ids(some: &[String]) -> impl Iterator<Item = Arg> + '_ {
    let last = some.last().into_iter().cycle();
    some.iter().chain(last).take(LOOKED_UP).map(Arg::from)
}

/// Those objects of the bucket that there are.
pub async fn find_many(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    object_ids: &[String],
) -> Result<Vec<ObjectResponse>> {
    let mut found = Vec::new();
    for some in object_ids.chunks(LOOKED_UP) {
        let mut args = args![namespace_id, bucket_id];
        args.extend(ids(some));
        let rows: Vec<Row> = tx.all(FIND_MANY, args).await?;
        found.extend(rows.into_iter().map(read));
    }
    Ok(found)
}

/// Those objects that there are, in whichever buckets of the namespace.
pub async fn find_named(
    db: &Db,
    namespace_id: &str,
    object_ids: &[String],
) -> Result<Vec<ObjectResponse>> {
    let mut found = Vec::new();
    for some in object_ids.chunks(LOOKED_UP) {
        let mut args = args![namespace_id];
        args.extend(ids(some));
        let rows: Vec<Row> = db.all(FIND_NAMED, args).await?;
        found.extend(rows.into_iter().map(read));
    }
    Ok(found)
}

/// Those that there are and that are not soft deleted.
pub async fn living(
    tx: &mut Tx,
    namespace_id: &str,
    object_ids: &[String],
) -> Result<BTreeSet<String>> {
    named(tx, LIVING, namespace_id, object_ids).await
}

/// Collections that hold documents of these objects.
pub async fn filled_from(
    tx: &mut Tx,
    namespace_id: &str,
    object_ids: &[String],
) -> Result<BTreeSet<String>> {
    named(tx, FILLED, namespace_id, object_ids).await
}

async fn named(
    tx: &mut Tx,
    sql: &'static str,
    namespace_id: &str,
    object_ids: &[String],
) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for some in object_ids.chunks(LOOKED_UP) {
        let mut args = args![namespace_id];
        args.extend(ids(some));
        let rows: Vec<(String,)> = tx.all(sql, args).await?;
        found.extend(rows.into_iter().map(|(id,)| id));
    }
    Ok(found)
}

/// Writes the status of an object and what it says of it.
pub async fn set_state(
    tx: &mut Tx,
    namespace_id: &str,
    object: &ObjectResponse,
    now: i64,
) -> Result<()> {
    let args = args![
        namespace_id,
        object.object_id.as_deref(),
        name_of(object.status),
        now,
        Arg::json(object)
    ];
    tx.run(SET_STATE, args).await?;
    Ok(())
}
