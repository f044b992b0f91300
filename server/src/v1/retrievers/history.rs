//! The history of executions is written behind the answers: many in one transaction, and dropped rather than waited for
//! when the database cannot keep up.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{Execution, insert_execution};
use crate::app::App;

/// Executions waiting to be written.
const WAITING: usize = 1024;
/// Executions of one transaction.
const TOGETHER: usize = 128;

/// How long the first one waits for others: a commit costs the disk more than an execution costs the processor.
const GATHERED: Duration = Duration::from_millis(50);

/// Where executions are handed in.
pub struct History {
    queue: mpsc::Sender<Execution>,
    waiting: std::sync::Mutex<Option<mpsc::Receiver<Execution>>>,
}

impl Default for History {
    fn default() -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        Self {
            queue,
            waiting: std::sync::Mutex::new(Some(waiting)),
        }
    }
}

/// Hands in one execution; never waits.
pub fn record(app: &App, execution: Execution) {
    if app.history.queue.try_send(execution).is_err() {
        tracing::warn!("an execution was not recorded: the database does not keep up");
    }
}

impl History {
    /// Writes what is handed in until the process stops; called once.
    pub fn start(app: &App) {
        let waiting = app
            .history
            .waiting
            .lock()
            .ok()
            .and_then(|mut waiting| waiting.take());
        let Some(mut waiting) = waiting else { return };
        let writer = app.clone();
        app.spawn(async move {
            loop {
                let first = tokio::select! {
                    received = waiting.recv() => match received { Some(first) => first, None => return },
                    () = writer.stop.cancelled() => return,
                };
                tokio::time::sleep(GATHERED).await;
                let mut executions = vec![first];
                while executions.len() < TOGETHER && let Ok(next) = waiting.try_recv() {
                    executions.push(next);
                }
                let written = writer.db().write(move |tx| {
                    Box::pin(async move {
                        for execution in &executions {
                            insert_execution(tx, execution).await?;
                        }
                        Ok(())
                    })
                });
                if let Err(error) = written.await {
                    tracing::warn!(%error, "executions were not recorded");
                }
            }
        });
    }
}
