//! SQLite's one writer: up to 256 waiting closures share one transaction (a SAVEPOINT each) and one fsync.

use std::{panic::AssertUnwindSafe, path::Path, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use sqlx::{
    ConnectOptions, Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::sync::{mpsc, oneshot};

use super::Tx;
use crate::error::{ApiError, Result};

/// Closures that share one commit at most.
const GROUP: usize = 256;

/// Told whether the shared transaction committed; answers the caller.
type Finish = Box<dyn FnOnce(bool) + Send>;

/// Runs in the shared transaction; says whether its savepoint is kept.
type Work = Box<dyn for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, (bool, Finish)> + Send>;

enum Message {
    Work(Work),
    Close(oneshot::Sender<()>),
}

#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Message>,
}

/// Opens `file` for reading by many and writing by one.
pub(super) async fn open(file: &Path) -> anyhow::Result<(SqlitePool, Writer)> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5))
        .pragma("temp_store", "memory")
        .optimize_on_close(true, None);
    let mut connection = options.connect().await?;
    check_settings(&mut connection).await?;
    let read = SqlitePoolOptions::new()
        .max_connections(8)
        .acquire_timeout(Duration::from_secs(4))
        .connect_with(options.clone().pragma("query_only", "on"))
        .await?;
    let (queue, messages) = mpsc::channel(4 * GROUP);
    tokio::spawn(serve(Tx::Sqlite(connection), messages));
    Ok((read, Writer { queue }))
}

/// Reads the settings back: a database that could lose acknowledged writes is not served.
async fn check_settings(connection: &mut SqliteConnection) -> anyhow::Result<()> {
    let (journal,): (String,) = sqlx::query_as("PRAGMA journal_mode")
        .fetch_one(&mut *connection)
        .await?;
    let (synchronous,): (i64,) = sqlx::query_as("PRAGMA synchronous")
        .fetch_one(&mut *connection)
        .await?;
    let (foreign_keys,): (i64,) = sqlx::query_as("PRAGMA foreign_keys")
        .fetch_one(&mut *connection)
        .await?;
    let (busy_timeout,): (i64,) = sqlx::query_as("PRAGMA busy_timeout")
        .fetch_one(&mut *connection)
        .await?;
    anyhow::ensure!(
        journal == "wal" && synchronous == 2 && foreign_keys == 1 && busy_timeout == 5000,
        "sqlite refused its settings: journal_mode={journal} synchronous={synchronous} foreign_keys={foreign_keys} busy_timeout={busy_timeout}"
    );
    Ok(())
}

impl Writer {
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |tx| {
            async move {
                let result = AssertUnwindSafe(work(tx)).catch_unwind().await;
                let result = result
                    .unwrap_or_else(|_| Err(ApiError::internal("a database closure panicked")));
                let keep = result.is_ok();
                let finish: Finish = Box::new(move |committed| {
                    let result = if keep && !committed {
                        Err(lost_commit())
                    } else {
                        result
                    };
                    // The caller may have gone away; the write stands all the same.
                    let _ = answer.send(result);
                });
                (keep, finish)
            }
            .boxed()
        });
        self.queue
            .send(Message::Work(work))
            .await
            .map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Message::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }
}

fn closed() -> ApiError {
    ApiError::unavailable("", "the database is closed")
}

fn lost_commit() -> ApiError {
    ApiError::unavailable(
        "",
        "the write could not be committed; nothing of it was kept",
    )
    .retry_after(1)
}

async fn serve(mut tx: Tx, mut messages: mpsc::Receiver<Message>) {
    while let Some(first) = messages.recv().await {
        let mut group = Vec::new();
        let mut close = None;
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Work(work) => group.push(work),
                Message::Close(done) => {
                    close = Some(done);
                    break;
                }
            }
            if group.len() < GROUP {
                next = messages.try_recv().ok();
            }
        }
        commit(&mut tx, group).await;
        if let Some(done) = close {
            if let Tx::Sqlite(connection) = tx {
                let _ = connection.close().await;
            }
            let _ = done.send(());
            return;
        }
    }
}

async fn commit(tx: &mut Tx, group: Vec<Work>) {
    if group.is_empty() {
        return;
    }
    if let Err(error) = execute(tx, "BEGIN IMMEDIATE").await {
        tracing::error!(%error, "cannot begin a transaction");
        for work in group {
            // Dropping the closure drops its sender: the caller hears that the database is not available.
            drop(work);
        }
        return;
    }
    let mut finishes = Vec::with_capacity(group.len());
    for work in group {
        if execute(tx, "SAVEPOINT work").await.is_err() {
            break;
        }
        let (keep, finish) = work(tx).await;
        finishes.push(finish);
        let end = if keep {
            "RELEASE work"
        } else {
            "ROLLBACK TO work; RELEASE work"
        };
        if let Err(error) = execute(tx, end).await {
            tracing::error!(%error, "cannot end a savepoint");
            break;
        }
    }
    let committed = match execute(tx, "COMMIT").await {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "cannot commit");
            let _ = execute(tx, "ROLLBACK").await;
            false
        }
    };
    for finish in finishes {
        finish(committed);
    }
}

async fn execute(tx: &mut Tx, sql: &'static str) -> Result<(), sqlx::Error> {
    let Tx::Sqlite(connection) = tx else {
        return Ok(());
    };
    sqlx::raw_sql(sql).execute(connection).await.map(|_| ())
}
