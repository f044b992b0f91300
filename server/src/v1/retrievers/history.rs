//! The history of executions is written behind the answers: many in one transaction, and dropped rather than waited for
//! when the database cannot keep up.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::sync::mpsc;

use loupe_wire::{Object, Value};

use super::{Execution, insert_execution, store};
use crate::{app::App, error::Result};

/// Executions waiting to be written.
const WAITING: usize = 1024;
/// Executions of one transaction.
const TOGETHER: usize = 128;

/// How long the first one waits for others: a commit costs the disk more than an execution costs the processor.
const GATHERED: Duration = Duration::from_millis(50);

/// Days that an execution is kept, as interactions are: they are told of one. A month's use is counted by retriever from them.
const KEPT_DAYS: i64 = 400;

/// Executions that are forgotten in one transaction.
const FORGOTTEN: i64 = 5_000;

/// Executions of one read, and of all reads together.
const PAGE: i64 = 2_000;
const MOST: i64 = 20_000;

/// The inputs of some of a retriever's executions, where the history has them: it keeps those that are short.
///
/// # Errors
/// The database does not answer.
pub async fn inputs_of_executions(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    wanted: &[&str],
    since: i64,
) -> Result<HashMap<String, Object>> {
    let wanted: HashSet<&str> = wanted.iter().copied().collect();
    let mut found = HashMap::new();
    // An answer is acted on later than it was asked for.
    let since = since - 86_400_000_000;
    let mut offset = 0;
    while found.len() < wanted.len() && offset < MOST {
        let page =
            store::executions_since(app.db(), namespace_id, retriever_id, since, PAGE, offset);
        let page = page.await?;
        let is_last = i64::try_from(page.len()).unwrap_or(0) < PAGE;
        for (id, mut data) in page {
            if let Some(Value::Object(inputs)) = data.remove("inputs")
                && wanted.contains(id.as_str())
            {
                found.insert(id, inputs);
            }
        }
        if is_last {
            break;
        }
        offset += PAGE;
    }
    Ok(found)
}

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

/// Forgets what is too old to be of use.
///
/// # Errors
/// The database fails.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_DAYS * 86_400_000_000;
    loop {
        let forgotten = app.db().write(move |tx| {
            Box::pin(async move { store::sweep_executions(tx, before, FORGOTTEN).await })
        });
        if forgotten.await? < FORGOTTEN as u64 {
            return Ok(());
        }
    }
}
