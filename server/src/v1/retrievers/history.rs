//! The history of executions is written behind the answers: many in one transaction, and dropped rather than waited for
//! when the database cannot keep up.

use tokio::sync::mpsc;

use super::{Execution, insert_execution};
use crate::app::App;

/// Executions waiting to be written.
const WAITING: usize = 1024;
/// Executions of one transaction.
const TOGETHER: usize = 128;

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
            let mut together = Vec::with_capacity(TOGETHER);
            loop {
                tokio::select! {
                    received = waiting.recv_many(&mut together, TOGETHER) => if received == 0 { return },
                    () = writer.stop.cancelled() => return,
                }
                let executions = std::mem::take(&mut together);
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
