//! Threads that run a model away from the async runtime, behind bounded queues.
//!
//! Two lanes: a query waits for no ingestion, and a full queue makes the sender wait, so memory stays bounded
//! however many texts arrive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rten::{RunOptions, ThreadPool};
use tokio::sync::{mpsc, oneshot};

use super::{EmbedError, Result};

/// Which queue a piece of work takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Somebody waits for a single answer.
    Query,
    /// One part of many.
    Bulk,
}

struct Job<In, Out> {
    input: In,
    answer: oneshot::Sender<Result<Out>>,
}

/// What a worker does; called on its thread with the options that keep it to its own cores.
type Work<In, Out> = Arc<dyn Fn(In, RunOptions) -> Result<Out> + Send + Sync>;

/// The threads of one model. They end when the last sender is dropped.
pub(super) struct Workers<In, Out> {
    query: mpsc::Sender<Job<In, Out>>,
    bulk: mpsc::Sender<Job<In, Out>>,
}

const QUERY_QUEUE: usize = 256;

impl<In: Send + 'static, Out: Send + 'static> Workers<In, Out> {
    /// Starts one bulk thread a core and one for queries.
    pub fn start(
        name: &str,
        work: impl Fn(In, RunOptions) -> Result<Out> + Send + Sync + 'static,
    ) -> Result<Self> {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let work: Work<In, Out> = Arc::new(work);
        let (query, queries) = mpsc::channel(QUERY_QUEUE);
        let queries = Arc::new(Mutex::new(queries));
        spawn(name, Lane::Query, queries, Arc::clone(&work), cores.min(4))?;
        let (bulk, parts) = mpsc::channel(2 * cores);
        let parts = Arc::new(Mutex::new(parts));
        for _ in 0..cores {
            // One core a batch beats all cores on one batch: nothing to wait for between two operators.
            spawn(name, Lane::Bulk, Arc::clone(&parts), Arc::clone(&work), 1)?;
        }
        Ok(Self { query, bulk })
    }

    /// Puts the work into its queue, waiting for room, and gives a handle to the answer.
    pub async fn submit(&self, lane: Lane, input: In) -> Result<Pending<Out>> {
        let (answer, pending) = oneshot::channel();
        let queue = match lane {
            Lane::Query => &self.query,
            Lane::Bulk => &self.bulk,
        };
        let sent = queue.send(Job { input, answer }).await;
        sent.map_err(|_| EmbedError::Failed("its workers have stopped".to_owned()))?;
        Ok(Pending(pending))
    }
}

/// An answer that is on its way; dropping it cancels work that has not begun.
pub(super) struct Pending<Out>(oneshot::Receiver<Result<Out>>);

impl<Out> Pending<Out> {
    pub async fn wait(self) -> Result<Out> {
        self.0
            .await
            .unwrap_or_else(|_| Err(EmbedError::Failed("its worker has stopped".to_owned())))
    }
}

type Queue<In, Out> = Arc<Mutex<mpsc::Receiver<Job<In, Out>>>>;

fn spawn<In: Send + 'static, Out: Send + 'static>(
    name: &str,
    lane: Lane,
    queue: Queue<In, Out>,
    work: Work<In, Out>,
    cores: usize,
) -> Result<()> {
    let body = move || {
        if lane == Lane::Bulk {
            give_way();
        }
        // Threads begin with the priority of the one that starts them.
        let pool = Arc::new(ThreadPool::with_num_threads(cores));
        loop {
            let next = queue.lock().blocking_recv();
            let Some(job) = next else { break };
            if job.answer.is_closed() {
                continue;
            }
            let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&pool)));
            // A panic in the runtime spoils one answer, not the thread that all later ones need.
            let done = catch_unwind(AssertUnwindSafe(|| work(job.input, options)));
            let done = done.unwrap_or_else(|_| {
                // The same input would do it again: it is given up, not tried again.
                tracing::error!("a model panicked on its input");
                Err(EmbedError::Invalid(
                    "the model cannot read this input: it panicked".to_owned(),
                ))
            });
            let _ = job.answer.send(done);
        }
    };
    thread::Builder::new()
        .name(format!("embed-{name}"))
        .spawn(body)
        .map(|_| ())
        .map_err(|error| EmbedError::Failed(format!("cannot start a thread: {error}")))
}

/// Lets this thread have what others leave: where every core computes vectors, a request would wait for its turn otherwise.
/// The class of idle threads gives way as soon as another thread wants to run; the lowest priority of the ordinary class only
/// when its slice is over, which is 4 ms where the clock ticks 250 times a second.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{
            NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
            set_thread_priority_and_policy, thread_native_id,
        };
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        if let Err(error) =
            set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle)
        {
            tracing::debug!(%error, "a thread keeps its scheduling class");
            if let Err(error) = rustix::process::setpriority_process(None, LEAST) {
                tracing::debug!(%error, "a thread keeps its priority");
            }
        }
    }
}

/// The lowest priority there is, as `nice` has it.
#[cfg(target_os = "linux")]
const LEAST: i32 = 19;
