pub mod groups;
mod objects;

use loupe_wire::{BatchModel, TaskStatusEnum, Value, reading};

pub use objects::{
    Counts, FailedRow, Failures, ObjectEnd, Processed, Span, Step, add_objects, back_to,
    back_to_first, bucket_objects, cancel_objects, cancel_tier, chunk_objects, count_failed,
    counts, counts_of, end_object, failed, first_error, first_unknown, forget_collection, known,
    next_tier, object_ids, pending, processed, reset_failed, reset_missing, reset_stopped,
    reset_unfinished, set_processed, tier_counts, waits_for,
};

use crate::{
    args,
    db::{self, Arg, Db, Json, Tx},
    error::{ApiError, Result},
    list::{Mark, Window},
    v1::{batches::CRAWL, tasks::name_of},
};

crate::sql! {
    const INSERT = "INSERT INTO batches (batch_id, org_id, namespace_id, bucket_id, status, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)";
    const FIND = "SELECT data, status, queued_at FROM batches WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR bucket_id = $3) AND batch_id = $4";
    const LIST = "SELECT data, status, queued_at, created_at, batch_id FROM batches WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR bucket_id = $3) AND ($4 = '' OR status = $4) AND ($5 = '' OR CAST(data AS TEXT) LIKE $5 ESCAPE '!') AND created_at <= $8 AND (created_at < $8 OR batch_id > $9) ORDER BY created_at DESC, batch_id LIMIT $6 OFFSET $7";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE org_id = $1 AND ($2 = '' OR namespace_id = $2) AND ($3 = '' OR bucket_id = $3) AND ($4 = '' OR status = $4) AND ($5 = '' OR CAST(data AS TEXT) LIKE $5 ESCAPE '!')";
    const UPDATE = "UPDATE batches SET status = $2, updated_at = $3, data = $4 WHERE batch_id = $1 AND namespace_id = $5";
    // Locks the row: of two chunks that end at once, the second sees what the first wrote.
    const LOCK = "UPDATE batches SET updated_at = $2 WHERE batch_id = $1";
    const QUEUE = "UPDATE batches SET status = 'QUEUED', queued_at = $2, submitted_at = $2, updated_at = $2, data = $3 WHERE batch_id = $1 AND namespace_id = $4";
    const SUBMITTED_AT = "SELECT submitted_at FROM batches WHERE batch_id = $1 AND namespace_id = $2";
    const DELETE = "DELETE FROM batches WHERE batch_id = $1 AND namespace_id = $2";
    const DELETE_OBJECTS = "DELETE FROM batch_objects WHERE batch_id = $1";

    // The queue spans organizations: admission is first in, first out over everybody.
    const WAITING = "SELECT batch_id, org_id, namespace_id, bucket_id, queued_at FROM batches WHERE status = 'QUEUED' ORDER BY queued_at, batch_id LIMIT 1000";
    const QUEUED = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE status = 'QUEUED'";
    const PLACE = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches own JOIN batches q ON q.status = 'QUEUED' AND (q.queued_at < own.queued_at OR (q.queued_at = own.queued_at AND q.batch_id <= own.batch_id)) WHERE own.namespace_id = $1 AND own.batch_id = $2 AND own.status = 'QUEUED'";
    const PLACES = "SELECT batch_id, namespace_id, bucket_id, queued_at, position FROM (SELECT batch_id, org_id, namespace_id, bucket_id, queued_at, ROW_NUMBER() OVER (ORDER BY queued_at, batch_id) AS position FROM batches WHERE status = 'QUEUED') queue WHERE org_id = $1 ORDER BY position";
    const CRAWLING = "SELECT CAST(COUNT(DISTINCT chunks.parent_id) AS BIGINT) FROM tasks chunks JOIN tasks running ON running.task_id = chunks.parent_id WHERE chunks.kind = $1 AND chunks.status IN ('QUEUED', 'PROCESSING') AND running.status = 'PROCESSING'";
    const RUNNING = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE status = 'PROCESSING'";
    const FILLING = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1 AND status IN ('QUEUED', 'PROCESSING') AND CAST(data AS TEXT) LIKE $2 ESCAPE '!'";
    const READ = "SELECT data, org_id, namespace_id FROM batches WHERE batch_id = $1";
}

type Row = (Json<BatchModel>, String, Option<i64>);

fn model((data, status, _): Row) -> BatchModel {
    let status = reading::from_value(&Value::String(status)).unwrap_or_default();
    BatchModel { status, ..data.0 }
}

crate::row! {
    /// A batch that waits, and its place among everybody's, from 1.
    #[derive(Debug, Clone)]
    pub struct Place {
        pub batch_id: String,
        pub namespace_id: String,
        pub bucket_id: String,
        pub queued_at: Option<i64>,
        pub position: i64,
    }
}

crate::row! {
    /// A batch in the queue.
    #[derive(Debug, Clone)]
    pub struct Waiting {
        pub batch_id: String,
        pub org_id: String,
        pub namespace_id: String,
        pub bucket_id: String,
        pub queued_at: Option<i64>,
    }
}

pub async fn insert(tx: &mut Tx, org_id: &str, batch: &BatchModel, now: i64) -> Result<()> {
    let args = args![
        batch.batch_id.clone(),
        org_id,
        batch.namespace_id.clone(),
        &batch.bucket_id,
        name_of(batch.status),
        now,
        Arg::json(batch),
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

/// Empty texts match everything.
pub async fn find(
    db: &Db,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchModel> {
    let found: Option<Row> = db
        .one(FIND, args![org_id, namespace_id, bucket_id, batch_id])
        .await?;
    found
        .map(model)
        .ok_or_else(|| ApiError::not_found("batch", batch_id))
}

pub async fn find_in(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    batch_id: &str,
) -> Result<BatchModel> {
    let found: Option<Row> = tx
        .one(FIND, args![org_id, namespace_id, bucket_id, batch_id])
        .await?;
    found
        .map(model)
        .ok_or_else(|| ApiError::not_found("batch", batch_id))
}

/// What a listing asks for; empty texts match everything.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub org_id: String,
    pub namespace_id: String,
    pub bucket_id: String,
    pub status: String,
    /// Batches that were made for this collection, or have filled it.
    pub collection_id: String,
}

impl Asked {
    /// What a batch that names the collection looks like; ids need no other form in JSON.
    fn naming(&self) -> String {
        if self.collection_id.is_empty() {
            return String::new();
        }
        format!("%\"{}\"%", db::verbatim(&self.collection_id))
    }
}

/// A page of them, newest first, each with its mark.
pub async fn list(db: &Db, asked: &Asked, window: Window) -> Result<Vec<(BatchModel, Mark)>> {
    let Asked {
        org_id,
        namespace_id,
        bucket_id,
        status,
        ..
    } = asked;
    let mut args = args![org_id, namespace_id, bucket_id, status, asked.naming()];
    args.extend(args![window.limit, window.offset, window.at, window.id]);
    type Found = (Json<BatchModel>, String, Option<i64>, i64, String);
    let rows: Vec<Found> = db.all(LIST, args).await?;
    let marked = |(data, status, queued_at, at, id)| (model((data, status, queued_at)), (at, id));
    Ok(rows.into_iter().map(marked).collect())
}

pub async fn count(db: &Db, asked: &Asked) -> Result<i64> {
    let Asked {
        org_id,
        namespace_id,
        bucket_id,
        status,
        ..
    } = asked;
    let args = args![org_id, namespace_id, bucket_id, status, asked.naming()];
    db.number(COUNT, args).await
}

pub async fn update(tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<()> {
    tx.run(
        UPDATE,
        args![
            batch.batch_id.clone(),
            name_of(batch.status),
            now,
            Arg::json(batch),
            batch.namespace_id.clone()
        ],
    )
    .await?;
    Ok(())
}

pub async fn queue(tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<()> {
    let (id, namespace_id) = (batch.batch_id.clone(), batch.namespace_id.clone());
    tx.run(QUEUE, args![id, now, Arg::json(batch), namespace_id])
        .await?;
    Ok(())
}

pub async fn submitted_at(tx: &mut Tx, batch: &BatchModel) -> Result<Option<i64>> {
    let args = args![batch.batch_id.clone(), batch.namespace_id.clone()];
    let found = tx.one::<(Option<i64>,)>(SUBMITTED_AT, args).await?;
    Ok(found.and_then(|row| row.0))
}

/// Removes a batch that was found in its namespace in this transaction.
pub async fn delete(tx: &mut Tx, namespace_id: &str, batch_id: &str) -> Result<()> {
    tx.run(DELETE_OBJECTS, args![batch_id]).await?;
    tx.run(DELETE, args![batch_id, namespace_id]).await?;
    Ok(())
}

/// Holds the batch against every other change until the transaction ends.
pub async fn lock(tx: &mut Tx, batch_id: &str, now: i64) -> Result<()> {
    tx.run(LOCK, args![batch_id, now]).await?;
    Ok(())
}

/// The batches of an organization that wait.
pub async fn places(db: &Db, org_id: &str) -> Result<Vec<Place>> {
    db.all(PLACES, args![org_id]).await
}

/// The place of a batch in the queue, from 1; none when it does not wait.
pub async fn place(db: &Db, namespace_id: &str, batch_id: &str) -> Result<Option<i64>> {
    let place = db.number(PLACE, args![namespace_id, batch_id]).await?;
    Ok((place > 0).then_some(place))
}

/// How many batches wait.
pub async fn count_waiting(tx: &mut Tx) -> Result<i64> {
    tx.number(QUEUED, vec![]).await
}

/// The head of the queue, in the order of admission.
pub async fn waiting_in(tx: &mut Tx) -> Result<Vec<Waiting>> {
    tx.all(WAITING, vec![]).await
}

pub async fn running(db: &Db) -> Result<i64> {
    db.number(RUNNING, vec![]).await
}

/// Running batches that keep others waiting: those that wait for web sites do not, nor for how long those take.
pub async fn working_in(tx: &mut Tx) -> Result<i64> {
    Ok(tx.number(RUNNING, vec![]).await? - tx.number(CRAWLING, args![CRAWL]).await?)
}

/// The batch with its organization and namespace; none when it was deleted.
pub async fn read(tx: &mut Tx, batch_id: &str) -> Result<Option<(BatchModel, String, String)>> {
    let found: Option<(Json<BatchModel>, String, String)> = tx.one(READ, args![batch_id]).await?;
    Ok(found.map(|(data, org_id, namespace_id)| (data.0, org_id, namespace_id)))
}

pub async fn read_from(db: &Db, batch_id: &str) -> Result<Option<(BatchModel, String, String)>> {
    let found: Option<(Json<BatchModel>, String, String)> = db.one(READ, args![batch_id]).await?;
    Ok(found.map(|(data, org_id, namespace_id)| (data.0, org_id, namespace_id)))
}

/// Whether a batch that waits or runs fills the collection.
pub async fn fills(tx: &mut Tx, namespace_id: &str, collection_id: &str) -> Result<bool> {
    let asked = Asked {
        collection_id: collection_id.to_owned(),
        ..Default::default()
    };
    let args = args![namespace_id, asked.naming()];
    Ok(tx.number(FILLING, args).await? > 0)
}

/// A status as the wire has it.
pub const fn is_running(status: TaskStatusEnum) -> bool {
    matches!(status, TaskStatusEnum::Queued | TaskStatusEnum::Processing)
}
