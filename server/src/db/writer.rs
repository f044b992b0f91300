//! SQLite's one writer, a thread of its own: up to 256 waiting closures share one transaction (a SAVEPOINT each) and one
//! fsync. On its thread a statement is a call; handed to another thread, each would cost two switches of it.

use std::{panic::AssertUnwindSafe, path::Path, sync::Arc, thread, time::Duration};

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot};

use super::{Tx, TxLink, Work, known::Known, sqlite};
use crate::error::{ApiError, Result};

/// Closures that share one commit at most.
const GROUP: usize = 256;

/// After a group of so many the next one is given a moment to gather: each commit costs a few pages of the log and an fsync,
/// whatever is in it.
const CROWD: usize = 4;

/// That moment. Whoever writes alone never waits for it.
const GATHERED: Duration = Duration::from_micros(400);

/// What runs in the shared transaction for one caller, who hears of it after the commit.
struct Job {
    /// The id of the caller's request.
    trace_id: String,
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
    let (queue, messages) = mpsc::channel(4 * GROUP);
    thread::Builder::new()
        .name("database writer".into())
        .spawn(move || serve(Tx::new(TxLink::Sqlite(connection)), messages, &known))?;
    Ok(Writer { queue })
}

impl Writer {
    /// Runs work of the request with this id.
    pub(super) async fn write(&self, trace_id: String, work: Work) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        let job = Job {
            trace_id,
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
    for job in group {
        if !execute(tx, "SAVEPOINT work") {
            break;
        }
        // Of each job its own: they share the transaction.
        tx.trace_id = job.trace_id;
        // Every statement of this transaction is a call, so a closure that speaks to it alone never waits.
        let Some(result) = AssertUnwindSafe((job.work)(tx))
            .catch_unwind()
            .now_or_never()
        else {
            tracing::error!("a database closure waited for something other than its transaction");
            if execute(tx, "ROLLBACK TO work") && execute(tx, "RELEASE work") {
                continue;
            }
            break;
        };
        let result =
            result.unwrap_or_else(|_| Err(ApiError::internal("a database closure panicked")));
        let keep = result.is_ok();
        ended.push((job.answer, result));
        if !((keep || execute(tx, "ROLLBACK TO work")) && execute(tx, "RELEASE work")) {
            break;
        }
    }
    let committed = execute(tx, "COMMIT");
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
