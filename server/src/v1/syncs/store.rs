use loupe_wire::{SyncConfigurationModel, SyncJobModel};

use crate::{
    args, clock,
    db::{self, Arg, Db, Json, Tx},
    error::{ApiError, Result},
    list::{Mark, Window},
    v1::tasks::name_of,
};

crate::sql! {
    const INSERT = "INSERT INTO syncs (sync_id, org_id, namespace_id, bucket_id, next_at, job_id, created_at, updated_at, data) VALUES ($1, $2, $3, $4, $5, '', $6, $6, $7)";
    const FIND = "SELECT next_at, job_id, data FROM syncs WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3";
    // Held until the transaction ends: whoever changes a sync knows what it is by then.
    const HOLD = "UPDATE syncs SET updated_at = updated_at WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3 RETURNING next_at, job_id, data";
    const ALL = "SELECT next_at, job_id, data FROM syncs WHERE namespace_id = $1 AND bucket_id = $2 ORDER BY created_at DESC, sync_id";
    // What looks like it names the connection: the rest is read.
    const THROUGH = "SELECT next_at, job_id, data FROM syncs WHERE org_id = $1 AND CAST(data AS TEXT) LIKE $2 ESCAPE '!' ORDER BY created_at, sync_id";
    const COUNT = "SELECT CAST(COUNT(*) AS BIGINT) FROM syncs WHERE namespace_id = $1";
    const UPDATE = "UPDATE syncs SET next_at = $4, updated_at = $5, data = $6 WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3";
    const DELETE = "DELETE FROM syncs WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3";
    // Of every organization: the clock is one.
    const DUE = "SELECT next_at, job_id, data FROM syncs WHERE next_at > 0 AND next_at <= $1 AND job_id = '' ORDER BY next_at, sync_id LIMIT 100";
    // Of two that begin at once, the second changes no row.
    const BEGIN = "UPDATE syncs SET job_id = $4, next_at = 0 WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3 AND job_id = ''";
    const END = "UPDATE syncs SET job_id = '' WHERE namespace_id = $1 AND bucket_id = $2 AND sync_id = $3 AND job_id = $4";

    const INSERT_JOB = "INSERT INTO sync_jobs (job_id, sync_id, namespace_id, status, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
    const UPDATE_JOB = "UPDATE sync_jobs SET status = $3, data = $4 WHERE namespace_id = $1 AND job_id = $2";
    const FIND_JOB = "SELECT data FROM sync_jobs WHERE namespace_id = $1 AND sync_id = $2 AND job_id = $3";
    const JOBS = "SELECT data, created_at, job_id FROM sync_jobs WHERE namespace_id = $1 AND sync_id = $2 AND ($3 = '' OR status = $3) AND created_at <= $6 AND (created_at < $6 OR job_id > $7) ORDER BY created_at DESC, job_id LIMIT $4 OFFSET $5";
    const COUNT_JOBS = "SELECT CAST(COUNT(*) AS BIGINT) FROM sync_jobs WHERE namespace_id = $1 AND sync_id = $2 AND ($3 = '' OR status = $3)";
    const DELETE_JOBS = "DELETE FROM sync_jobs WHERE namespace_id = $1 AND sync_id = $2";
    const SWEEP_JOBS = "DELETE FROM sync_jobs WHERE created_at < $1 AND status <> 'running'";

    const KNOWN = "SELECT path, version, object_id, borrowed_id FROM sync_files WHERE namespace_id = $1 AND sync_id = $2 AND path > $3 ORDER BY path LIMIT 1000";
    const KEEP_FILE = "INSERT INTO sync_files (sync_id, path, namespace_id, version, object_id, borrowed_id) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (sync_id, path) DO UPDATE SET version = $4, object_id = $5, borrowed_id = $6";
    const FORGET_FILE = "DELETE FROM sync_files WHERE namespace_id = $1 AND sync_id = $2 AND path = $3";
    const FORGET_BORROWED = "DELETE FROM sync_files WHERE namespace_id = $1 AND borrowed_id = $2";
    const FORGET_FILES = "DELETE FROM sync_files WHERE namespace_id = $1 AND sync_id = $2";
}

/// Days that looks are kept.
const KEPT_DAYS: i64 = 90;

type Row = (i64, String, Json<SyncConfigurationModel>);

/// What changes by itself is in columns of its own.
fn model((next_at, job_id, Json(model)): Row) -> SyncConfigurationModel {
    SyncConfigurationModel {
        next_sync_at: (next_at > 0).then(|| clock::time(next_at)),
        locked: !job_id.is_empty(),
        current_sync_run_id: (!job_id.is_empty()).then_some(job_id),
        ..model
    }
}

/// The id of a sync.
pub fn id(model: &SyncConfigurationModel) -> &str {
    model.sync_config_id.as_deref().unwrap_or_default()
}

fn next_at(model: &SyncConfigurationModel) -> i64 {
    model.next_sync_at.map_or(0, |at| at.timestamp_micros())
}

pub async fn insert(tx: &mut Tx, model: &SyncConfigurationModel, now: i64) -> Result<()> {
    let args = args![
        id(model),
        &model.internal_id,
        &model.namespace_id,
        &model.bucket_id,
        next_at(model),
        now,
        Arg::json(model)
    ];
    tx.run(INSERT, args).await?;
    Ok(())
}

pub async fn count_in(tx: &mut Tx, namespace_id: &str) -> Result<i64> {
    tx.number(COUNT, args![namespace_id]).await
}

/// Where a sync is: its namespace, its bucket, its id.
#[derive(Debug, Clone)]
pub struct Place {
    pub namespace_id: String,
    pub bucket_id: String,
    pub sync_id: String,
}

impl Place {
    pub fn of(model: &SyncConfigurationModel) -> Self {
        Self {
            namespace_id: model.namespace_id.clone(),
            bucket_id: model.bucket_id.clone(),
            sync_id: id(model).to_owned(),
        }
    }

    fn missing(&self) -> ApiError {
        ApiError::not_found("sync", &self.sync_id)
    }
}

pub async fn find(db: &Db, place: &Place) -> Result<SyncConfigurationModel> {
    let args = args![&place.namespace_id, &place.bucket_id, &place.sync_id];
    let row: Option<Row> = db.one(FIND, args).await?;
    row.map(model).ok_or_else(|| place.missing())
}

/// The sync as it stays until the transaction ends.
pub async fn hold(tx: &mut Tx, place: &Place) -> Result<SyncConfigurationModel> {
    let args = args![&place.namespace_id, &place.bucket_id, &place.sync_id];
    let row: Option<Row> = tx.one(HOLD, args).await?;
    row.map(model).ok_or_else(|| place.missing())
}

/// The same, for a look, if it is still the one that is under way.
pub async fn hold_for(
    tx: &mut Tx,
    place: &Place,
    job: &SyncJobModel,
) -> Result<SyncConfigurationModel> {
    let model = hold(tx, place).await?;
    match model.current_sync_run_id == job.sync_job_id {
        true => Ok(model),
        false => Err(place.missing()),
    }
}

/// The newest first.
pub async fn list(
    db: &Db,
    namespace_id: &str,
    bucket_id: &str,
) -> Result<Vec<SyncConfigurationModel>> {
    let rows: Vec<Row> = db.all(ALL, args![namespace_id, bucket_id]).await?;
    Ok(rows.into_iter().map(model).collect())
}

/// The organization's syncs that look through a connection, oldest first.
pub async fn through(
    tx: &mut Tx,
    org_id: &str,
    connection_id: &str,
) -> Result<Vec<SyncConfigurationModel>> {
    let naming = format!("%\"{}\"%", db::verbatim(connection_id));
    let rows: Vec<Row> = tx.all(THROUGH, args![org_id, naming]).await?;
    let mut found: Vec<_> = rows.into_iter().map(model).collect();
    found.retain(|one| one.connection_id == connection_id);
    Ok(found)
}

pub async fn update(tx: &mut Tx, model: &SyncConfigurationModel, now: i64) -> Result<()> {
    let args = args![
        &model.namespace_id,
        &model.bucket_id,
        id(model),
        next_at(model),
        now,
        Arg::json(model)
    ];
    tx.run(UPDATE, args).await?;
    Ok(())
}

/// Removes a sync with all that is known of its storage; what it made stays.
pub async fn delete(tx: &mut Tx, place: &Place) -> Result<()> {
    let args = args![&place.namespace_id, &place.bucket_id, &place.sync_id];
    if tx.run(DELETE, args).await? == 0 {
        return Err(place.missing());
    }
    for sql in [DELETE_JOBS, FORGET_FILES] {
        tx.run(sql, args![&place.namespace_id, &place.sync_id])
            .await?;
    }
    Ok(())
}

/// Syncs whose moment has come.
pub async fn due(db: &Db, now: i64) -> Result<Vec<SyncConfigurationModel>> {
    let rows: Vec<Row> = db.all(DUE, args![now]).await?;
    Ok(rows.into_iter().map(model).collect())
}

/// Whether nobody looks into this storage already.
pub async fn begin(tx: &mut Tx, place: &Place, job_id: &str) -> Result<bool> {
    let args = args![
        &place.namespace_id,
        &place.bucket_id,
        &place.sync_id,
        job_id
    ];
    Ok(tx.run(BEGIN, args).await? > 0)
}

/// Whether this look was still the one that is under way.
pub async fn end(tx: &mut Tx, place: &Place, job_id: &str) -> Result<bool> {
    let args = args![
        &place.namespace_id,
        &place.bucket_id,
        &place.sync_id,
        job_id
    ];
    Ok(tx.run(END, args).await? > 0)
}

pub fn job_id(job: &SyncJobModel) -> &str {
    job.sync_job_id.as_deref().unwrap_or_default()
}

pub async fn insert_job(tx: &mut Tx, job: &SyncJobModel, now: i64) -> Result<()> {
    let args = args![
        job_id(job),
        &job.sync_config_id,
        &job.namespace_id,
        name_of(job.status),
        now,
        Arg::json(job)
    ];
    tx.run(INSERT_JOB, args).await?;
    Ok(())
}

pub async fn update_job(tx: &mut Tx, job: &SyncJobModel) -> Result<()> {
    let args = args![
        &job.namespace_id,
        job_id(job),
        name_of(job.status),
        Arg::json(job)
    ];
    tx.run(UPDATE_JOB, args).await?;
    Ok(())
}

pub async fn find_job(db: &Db, place: &Place, job_id: &str) -> Result<SyncJobModel> {
    let args = args![&place.namespace_id, &place.sync_id, job_id];
    let row: Option<(Json<SyncJobModel>,)> = db.one(FIND_JOB, args).await?;
    row.map(|(Json(job),)| job)
        .ok_or_else(|| ApiError::not_found("sync job", job_id))
}

/// The newest first.
pub async fn jobs(
    db: &Db,
    place: &Place,
    status: &str,
    window: Window,
) -> Result<Vec<(SyncJobModel, Mark)>> {
    let args = args![
        &place.namespace_id,
        &place.sync_id,
        status,
        window.limit,
        window.offset,
        window.at,
        window.id
    ];
    let rows: Vec<(Json<SyncJobModel>, i64, String)> = db.all(JOBS, args).await?;
    let marked = rows.into_iter().map(|(Json(job), at, id)| (job, (at, id)));
    Ok(marked.collect())
}

pub async fn count_jobs(db: &Db, place: &Place, status: &str) -> Result<i64> {
    let args = args![&place.namespace_id, &place.sync_id, status];
    db.number(COUNT_JOBS, args).await
}

/// Removes looks that are old.
pub async fn sweep(tx: &mut Tx, now: i64) -> Result<()> {
    let before = now - KEPT_DAYS * 86_400 * 1_000_000;
    tx.run(SWEEP_JOBS, args![before]).await?;
    Ok(())
}

crate::row! {
    /// A file of the storage that has an object: its own, or one that had its content already.
    #[derive(Debug, Clone)]
    pub struct Known {
        pub path: String,
        pub version: String,
        /// It goes with the file. Empty where the file has none of its own.
        pub object_id: String,
        /// It is not the sync's to remove; when it goes, the file gets an object of its own.
        pub borrowed_id: String,
    }
}

/// Forgets the files, of whichever sync, whose content was in an object that is gone: the next look makes them one. Answers
/// how many there were.
pub async fn forget_borrowed(tx: &mut Tx, namespace_id: &str, object_id: &str) -> Result<u64> {
    tx.run(FORGET_BORROWED, args![namespace_id, object_id])
        .await
}

/// How many files one answer of [`known`] has at most.
pub const KNOWN_AT_ONCE: usize = 1000;

/// Known files behind `after`, in the order of their paths.
pub async fn known(db: &Db, place: &Place, after: &str) -> Result<Vec<Known>> {
    let args = args![&place.namespace_id, &place.sync_id, after];
    db.all(KNOWN, args).await
}

pub async fn keep_file(tx: &mut Tx, place: &Place, file: &Known) -> Result<()> {
    let args = args![
        &place.sync_id,
        &file.path,
        &place.namespace_id,
        &file.version,
        &file.object_id,
        &file.borrowed_id
    ];
    tx.run(KEEP_FILE, args).await?;
    Ok(())
}

pub async fn forget_file(tx: &mut Tx, place: &Place, path: &str) -> Result<()> {
    let args = args![&place.namespace_id, &place.sync_id, path];
    tx.run(FORGET_FILE, args).await?;
    Ok(())
}
