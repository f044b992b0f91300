use loupe_engine::filter::Filter;
use loupe_wire::{ObjectResponse, TaskStatusEnum};

use crate::{
    args,
    db::{Arg, Db, Json, Tx},
    error::{ApiError, Result},
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11)";
    const UPDATE = "UPDATE objects SET key_prefix = $3, unique_key = $4, content_hash = $5, status = $6, size_bytes = $7, updated_at = $8, data = $9 WHERE namespace_id = $1 AND object_id = $2";
    const FIND = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND object_id = $3";
    const FIND_ANYWHERE = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND object_id = $2";
    const BY_UNIQUE = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND unique_key = $3";
    const BY_HASH = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND content_hash = $3 ORDER BY created_at LIMIT 1";
    const BY_IDEMPOTENCY = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND idempotency_key = $3";
    const PAGE = "SELECT object_id, status, size_bytes, data FROM objects WHERE namespace_id = $1 AND bucket_id = $2 ORDER BY created_at DESC, object_id LIMIT $3 OFFSET $4";
    const AFTER = "SELECT object_id, status, size_bytes, data, created_at FROM objects WHERE namespace_id = $1 AND bucket_id = $2 AND (created_at > $3 OR (created_at = $3 AND object_id > $4)) ORDER BY created_at, object_id LIMIT 1000";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1 AND bucket_id = $2";
    const DELETE = "DELETE FROM objects WHERE namespace_id = $1 AND object_id = $2";
}

/// The columns beside the wire type.
pub struct Columns {
    pub unique_key: Option<String>,
    pub content_hash: String,
    pub idempotency_key: Option<String>,
    pub size_bytes: i64,
}

type Row = (String, String, i64, Json<ObjectResponse>);

/// The status is a column of its own, for it changes without the rest.
fn read((_, status, _, Json(mut object)): Row) -> ObjectResponse {
    object.status = serde_json::from_value(status.into()).unwrap_or(TaskStatusEnum::Unknown);
    object
}

pub async fn insert(
    tx: &mut Tx,
    namespace_id: &str,
    object: &ObjectResponse,
    columns: &Columns,
    now: i64,
) -> Result<()> {
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
    tx.run(INSERT, args).await?;
    Ok(())
}

pub async fn update(
    tx: &mut Tx,
    namespace_id: &str,
    object: &ObjectResponse,
    columns: &Columns,
    now: i64,
) -> Result<()> {
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
    tx.run(UPDATE, args).await?;
    Ok(())
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

/// Up to 1,000 objects made after this moment, or then with a greater id; each with its moment.
pub async fn after(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    at: i64,
    id: &str,
) -> Result<Vec<(ObjectResponse, i64)>> {
    let args = args![namespace_id, bucket_id, at, id];
    let rows: Vec<(String, String, i64, Json<ObjectResponse>, i64)> = db.all(AFTER, args).await?;
    let object = |(id, status, size, data, at)| (read((id, status, size, data)), at);
    Ok(rows.into_iter().map(object).collect())
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
    limit: i64,
    offset: i64,
) -> Result<Vec<ObjectResponse>> {
    let rows: Vec<Row> = db
        .all(PAGE, args![namespace_id, bucket_id, limit, offset])
        .await?;
    Ok(rows.into_iter().map(read).collect())
}

/// Ids of the objects that match, oldest first, at most `limit`. The bucket is read in pages, never whole.
pub async fn matching(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<String>> {
    let (mut found, mut at, mut id) = (Vec::new(), i64::MIN, String::new());
    loop {
        let rows = after(db, namespace_id, bucket_id, at, &id).await?;
        let Some((last, created)) = rows.last() else {
            return Ok(found);
        };
        (id, at) = (last.object_id.clone().unwrap_or_default(), *created);
        for (object, _) in rows {
            let object_id = object.object_id.clone().unwrap_or_default();
            let value = serde_json::to_value(object).map_err(ApiError::internal)?;
            if filter.matches(&value) {
                found.push(object_id);
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
    }
}

pub async fn count(db: &Db, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    db.number(COUNT, args![namespace_id, bucket_id]).await
}

pub async fn count_in(tx: &mut Tx, namespace_id: &str, bucket_id: &str) -> Result<i64> {
    tx.number(COUNT, args![namespace_id, bucket_id]).await
}

pub async fn delete(tx: &mut Tx, namespace_id: &str, object_id: &str) -> Result<u64> {
    tx.run(DELETE, args![namespace_id, object_id]).await
}
