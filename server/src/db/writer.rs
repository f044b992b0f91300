//! SQLite's one writer, a thread of its own: up to 256 waiting closures share one transaction (a SAVEPOINT each, unless they
//! decide before they write) and one fsync. On its thread a statement is a call; handed to another thread, each would cost two
//! switches of it.

use std::{panic::AssertUnwindSafe, path::Path, sync::Arc, thread, time::Duration};

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};

use super::{Origin, Tx, TxLink, Undo, Work, known::Known, sqlite};
use crate::error::{ApiError, Result};

/// Closures that share one commit at most.
const GROUP: usize = 256;

/// After a group of so many the next one is given a moment to gather: each commit costs a few pages of the log and an fsync,
/// whatever is in it.
const CROWD: usize = 4;

/// That moment. Whoever writes alone never waits for it.
const GATHERED: Duration = Duration::from_micros(400);

/// KiB of pages that the writer keeps, negative as SQLite has it. It looks at each of them in a commit that split a page.
const CACHE: i64 = -4096;

/// What runs in the shared transaction for one caller, who hears of it after the commit.
struct Job {
    origin: Origin,
    undo: Undo,
    work: Work,
    answer: oneshot::Sender<Result<()>>,
}

enum Message {
    Job(Job),
    Close(oneshot::Sender<()>),
}

#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Message>,
}

/// Opens `file` and starts its writer.
pub(super) fn start(file: &Path, known: Arc<Known>) -> anyhow::Result<Writer> {
    let connection = sqlite::open(file)?;
    sqlite::check_settings(&connection)?;
    connection.pragma_update(None, "cache_size", CACHE)?;
    let (queue, messages) = mpsc::channel(4 * GROUP);
    thread::Builder::new()
        .name("database writer".into())
        .spawn(move || serve(Tx::new(TxLink::Sqlite(connection)), messages, &known))?;
    Ok(Writer { queue })
}

impl Writer {
    /// Runs work of this origin.
    pub(super) async fn write(&self, origin: Origin, undo: Undo, work: Work) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            origin,
            undo,
            work,
            answer,
        };
        let sent = self.queue.send(Message::Job(job)).await;
        sent.map_err(|_| closed())?;
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

fn serve(mut tx: Tx, mut messages: mpsc::Receiver<Message>, known: &Known) {
    let mut last = 0;
    while let Some(first) = messages.blocking_recv() {
        if last >= CROWD {
            thread::sleep(GATHERED);
        }
        let mut group = Vec::new();
        let mut close = None;
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                Message::Job(job) => group.push(job),
                Message::Close(done) => {
                    close = Some(done);
                    break;
                }
            }
            if group.len() < GROUP {
                next = messages.try_recv().ok();
            }
        }
        last = group.len();
        commit(&mut tx, group, known);
        if let Some(done) = close {
            execute(&tx, "PRAGMA optimize");
            drop(tx);
            let _ = done.send(());
            return;
        }
    }
}

fn commit(tx: &mut Tx, group: Vec<Job>, known: &Known) {
    if group.is_empty() {
        return;
    }
    if !execute(tx, "BEGIN IMMEDIATE") {
        // Dropping the jobs drops their senders: the callers hear that the database is not available.
        return;
    }
    let mut ended = Vec::with_capacity(group.len());
    let mut stands = true;
    for job in group {
        if !stands {
            // Not begun: it hears what those hear that are undone.
            ended.push((job.answer, Ok(())));
            continue;
        }
        // Of each job its own: they share the transaction.
        tx.origin = job.origin;
        let result = match job.undo {
            Undo::Alone => run_alone(tx, job.work, &mut stands),
            Undo::Shared => run_shared(tx, job.work, &mut stands),
        };
        ended.push((job.answer, result));
    }
    let committed = stands && execute(tx, "COMMIT");
    if !committed {
        execute(tx, "ROLLBACK");
    }
    // Before the callers hear of it: what they ask next is not answered from before their write.
    if committed {
        tx.committed(known);
    } else {
        tx.forget();
    }
    for (answer, result) in ended {
        let result = result.and_then(|()| {
            if committed {
                Ok(())
            } else {
                Err(lost_commit())
            }
        });
        // The caller may have gone away; the write stands all the same.
        let _ = answer.send(result);
    }
}

/// Runs work whose failure undoes its own statements. The transaction stands no more where those of the savepoint fail.
fn run_alone(tx: &mut Tx, work: Work, stands: &mut bool) -> Result<()> {
    *stands = execute(tx, "SAVEPOINT work");
    if !*stands {
        return Err(lost_commit());
    }
    let result = run(tx, work);
    *stands = (result.is_ok() || execute(tx, "ROLLBACK TO work")) && execute(tx, "RELEASE work");
    result
}

/// Runs work whose failure undoes the whole transaction, if it wrote.
fn run_shared(tx: &mut Tx, work: Work, stands: &mut bool) -> Result<()> {
    let before = changes(tx);
    let result = run(tx, work);
    *stands = result.is_ok() || changes(tx) == before;
    if !*stands {
        tracing::error!("decided work failed after it wrote: nothing of its commit stands");
    }
    result
}

fn run(tx: &mut Tx, work: Work) -> Result<()> {
    // Every statement of this transaction is a call, so a closure that speaks to it alone never waits.
    let ended = AssertUnwindSafe(work(tx)).catch_unwind().now_or_never();
    match ended {
        Some(Ok(result)) => result,
        Some(Err(_)) => Err(ApiError::internal("a database closure panicked")),
        None => Err(ApiError::internal(
            "a database closure waited for something other than its transaction",
        )),
    }
}

/// Rows that statements of this connection changed so far.
fn changes(tx: &Tx) -> u64 {
    match &tx.link {
        TxLink::Sqlite(connection) => connection.total_changes(),
        _ => 0,
    }
}

/// Whether the statement ran; if not, the log says why.
fn execute(tx: &Tx, sql: &'static str) -> bool {
    let TxLink::Sqlite(connection) = &tx.link else {
        return false;
    };
    let outcome = sqlite::run(connection, sql, Vec::new());
    if let Err(error) = &outcome {
        tracing::error!(%error, statement = sql, "the database refused a transaction's statement");
    }
    outcome.is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::db::Db;

    const NOTE: &str = "INSERT INTO notes (name) VALUES ($1)";

    async fn opened(folder: &Path) -> Db {
        let db = Db::sqlite(&folder.join("loupe.db")).await.unwrap();
        db.write(|tx| Box::pin(tx.run("CREATE TABLE notes (name TEXT)", vec![])))
            .await
            .unwrap();
        db
    }

    /// Holds the writer until something is sent, so that what is asked for meanwhile shares one commit.
    async fn held(db: &Db) -> Sender<()> {
        let (release, released) = channel::<()>();
        let (begun, begins) = oneshot::channel();
        let db = db.clone();
        tokio::spawn(async move {
            db.write(move |_| {
                let _ = begun.send(());
                let _ = released.recv();
                Box::pin(std::future::ready(Ok(())))
            })
            .await
        });
        begins.await.unwrap();
        release
    }

    /// What came of work that notes a name, and fails then if it is to.
    fn note(
        db: &Db,
        undo: Undo,
        name: &'static str,
        fails: bool,
    ) -> tokio::task::JoinHandle<Result<()>> {
        let db = db.clone();
        tokio::spawn(async move {
            let noted = db.transact(undo, move |tx| {
                Box::pin(async move {
                    tx.run(NOTE, vec![name.into()]).await?;
                    match fails {
                        true => Err(ApiError::internal("the disk is broken")),
                        false => Ok(()),
                    }
                })
            });
            noted.await
        })
    }

    async fn noted(db: &Db) -> Vec<String> {
        let rows: Vec<(String,)> = db
            .all("SELECT name FROM notes ORDER BY name", vec![])
            .await
            .unwrap();
        rows.into_iter().map(|(name,)| name).collect()
    }

    #[tokio::test]
    async fn failures_undo_their_own_part_or_the_commit_that_they_share() {
        let folder = tempfile::tempdir().unwrap();
        let db = opened(folder.path()).await;

        let release = held(&db).await;
        let kept = note(&db, Undo::Shared, "kept", false);
        let refused = note(&db, Undo::Alone, "refused", true);
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        assert!(kept.await.unwrap().is_ok());
        assert!(refused.await.unwrap().is_err());
        assert_eq!(noted(&db).await, ["kept"]);

        let release = held(&db).await;
        let before = note(&db, Undo::Alone, "before", false);
        tokio::task::yield_now().await;
        let broken = note(&db, Undo::Shared, "broken", true);
        tokio::task::yield_now().await;
        let after = note(&db, Undo::Alone, "after", false);
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        assert_eq!(
            broken.await.unwrap().unwrap_err().kind(),
            "InternalServerError"
        );
        // Those that were undone, and those that were not begun, are to come again.
        for lost in [before, after] {
            let told = lost.await.unwrap().unwrap_err();
            assert_eq!(told.message(), lost_commit().message());
        }
        assert_eq!(noted(&db).await, ["kept"]);

        // The writer goes on.
        let next = note(&db, Undo::Shared, "next", false);
        assert!(next.await.unwrap().is_ok());
        assert_eq!(noted(&db).await, ["kept", "next"]);
    }
}
