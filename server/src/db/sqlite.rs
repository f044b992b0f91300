//! SQLite: statements run on the thread that calls, which is a thread for blocking work or the writer's own.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, Statement, types::ValueRef};
use tokio::sync::Semaphore;

use super::{Arg, Args, Cell, Rows};
use crate::error::{ApiError, Result};

/// Statements that read at the same time.
const READERS: usize = 8;

/// A request waits this long for a connection.
const PATIENCE: Duration = Duration::from_secs(4);

/// Statements that a connection keeps prepared: all of them.
const PREPARED: usize = 512;

/// Opens a connection with the settings that every one has.
pub(super) fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on; PRAGMA temp_store = memory; PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 4000",
    )?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    Ok(connection)
}

/// Reads the settings back: a database that could lose acknowledged writes is not served.
pub(super) fn check_settings(connection: &Connection) -> anyhow::Result<()> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let (synchronous, foreign_keys, busy_timeout) = (
        number("synchronous")?,
        number("foreign_keys")?,
        number("busy_timeout")?,
    );
    anyhow::ensure!(
        journal == "wal" && synchronous == 2 && foreign_keys == 1 && busy_timeout == 5000,
        "sqlite refused its settings: journal_mode={journal} synchronous={synchronous} foreign_keys={foreign_keys} busy_timeout={busy_timeout}"
    );
    Ok(())
}

/// Connections that only read; opened when first needed.
#[derive(Clone)]
pub struct Readers(Arc<Pool>);

struct Pool {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
    free: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: &Path) -> Self {
        Self(Arc::new(Pool {
            file: file.to_owned(),
            idle: Mutex::default(),
            free: Arc::new(Semaphore::new(READERS)),
        }))
    }

    /// Runs one statement that reads.
    pub(super) async fn fetch(&self, sql: &'static str, args: Args, most: usize) -> Result<Rows> {
        self.with(move |connection| Ok(fetch(connection, sql, args, most)?))
            .await
    }

    /// Compiles a statement without running it.
    pub async fn prepare(&self, sql: &'static str) -> Result<()> {
        self.with(move |connection| {
            let prepared = connection.prepare(sql).map(drop);
            prepared.map_err(|error| ApiError::bad_request("", error.to_string()))
        })
        .await
    }

    /// How many may read at once, and how many do not at the moment.
    pub(super) fn connections(&self) -> (u32, usize) {
        (READERS as u32, self.0.free.available_permits())
    }

    /// Waits for what runs, then closes.
    pub(super) async fn close(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.free.acquire_many(READERS as u32)).await;
        self.0.free.close();
        self.idle().clear();
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = tokio::time::timeout(PATIENCE, self.0.free.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            tracing::error!("no connection of the database is free");
            return Err(unavailable());
        };
        let readers = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let idle = readers.idle().pop();
            let connection = match idle {
                Some(connection) => connection,
                None => {
                    let connection = open(&readers.0.file)?;
                    connection.pragma_update(None, "query_only", true)?;
                    connection
                }
            };
            let answer = work(&connection);
            readers.idle().push(connection);
            drop(permit);
            answer
        });
        done.await.map_err(ApiError::internal)?
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable() -> ApiError {
    ApiError::unavailable("", "the database is not available").retry_after(2)
}

/// At most `most` rows of a statement.
pub(super) fn fetch(
    connection: &Connection,
    sql: &str,
    args: Args,
    most: usize,
) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, args)?;
    let names: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(ToOwned::to_owned)
        .collect();
    let (width, mut cells) = (names.len(), Vec::new());
    let mut rows = statement.raw_query();
    while cells.len() < most.saturating_mul(width) {
        let Some(row) = rows.next()? else {
            break;
        };
        for column in 0..width {
            cells.push(match row.get_ref(column)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Real(value) => Cell::Real(value),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            });
        }
    }
    drop(rows);
    Ok(Rows { names, cells })
}

/// Runs a statement that answers no rows; answers how many it changed.
pub(super) fn run(connection: &Connection, sql: &str, args: Args) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, args)?;
    statement.raw_execute()
}

/// `$2` is the second argument wherever it stands; SQLite counts parameters as they appear.
fn bind(statement: &mut Statement<'_>, args: Args) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let place = statement
            .parameter_name(index)
            .and_then(|name| name.get(1..)?.parse::<usize>().ok())
            .unwrap_or(index);
        let arg = args
            .get(place.wrapping_sub(1))
            .ok_or(rusqlite::Error::InvalidParameterCount(args.len(), place))?;
        if !arg.is_kept() {
            let nul = std::ffi::CString::new("\0").err();
            return Err(nul.map_or(rusqlite::Error::InvalidQuery, rusqlite::Error::NulError));
        }
        match arg {
            Arg::Int(value) => statement.raw_bind_parameter(index, value),
            Arg::Real(value) => statement.raw_bind_parameter(index, value),
            Arg::Text(value) => statement.raw_bind_parameter(index, value.as_deref()),
            Arg::Bool(value) => statement.raw_bind_parameter(index, value),
            Arg::Bytes(value) => statement.raw_bind_parameter(index, value.as_deref()),
            Arg::Json(value) => {
                statement.raw_bind_parameter(index, value.as_ref().map(|value| value.get()))
            }
        }?;
    }
    Ok(())
}
