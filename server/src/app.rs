//! The state that every request shares, and the layers around the routes, in order.

use std::{
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::DefaultBodyLimit, middleware};
use loupe_engine::{
    embed::{Encoders, Models},
    extract::{Extraction, Outputs},
    ingest::Ingest,
    stage::{Kept, ReverseImage, WebSearch},
    store::DocStore,
};
use loupe_wire::APIKeyModel;
use moka::sync::Cache;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    blob::Blobs,
    clock::Clock,
    config::Config,
    db::Db,
    error::ApiError,
    front::{self, Front, Shield},
    gate,
    hosting::Hosting,
    limits::{Limits, turns::Turns},
    mail::Mailer,
    metrics::Metrics,
    outbound::Outbound,
    password::Passwords,
    usage::Usage,
    v1,
    v1::{
        audit::repeats::Repeats,
        batches::Members,
        billing::Stored,
        collections::Counts,
        documents::{Journalled, Writers},
        notifications::Listeners,
        retrievers::{Acts, Answers, History, ReadyRetrievers, Used},
    },
    vault::Vault,
    watched::{Versions, Watched},
};

/// Cheap to clone; one a process.
///
/// Of an erased type: what a handler holds is looked through for each of its uses, and this holds everything.
#[derive(Clone)]
pub struct App(Arc<dyn AsRef<Inner> + Send + Sync>);

impl AsRef<Self> for Inner {
    fn as_ref(&self) -> &Self {
        self
    }
}

pub struct Inner {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub store: Arc<dyn DocStore>,
    pub blobs: Blobs,
    pub models: Models,
    /// The embedding outputs that answer on this server.
    pub outputs: Outputs,
    /// Turns objects into documents.
    pub ingest: Ingest,
    /// Executions on their way to the database.
    pub history: History,
    /// Who writes which documents right now.
    pub writers: Writers,
    /// Which entries of the document journal are this process's own.
    pub journalled: Journalled,
    /// The last number given to an entry of the document journal.
    journal_seq: AtomicI64,
    /// Entries that the document store has taken and not flushed.
    journal_applied: Mutex<Vec<i64>>,
    /// Accepted secrets' hashes. Entries live a few seconds, and changes on this process drop them at once.
    pub keys: Cache<String, Arc<APIKeyModel>>,
    /// Counts changes of keys, so that what was read before one is not kept after it.
    pub keys_changed: AtomicU64,
    /// How much each key may still ask for.
    pub limits: Limits,
    /// Requests on their way to the usage of their keys.
    pub usage: Usage,
    /// Key ids whose use was recorded within the last minute.
    pub touched: Cache<String, ()>,
    /// Refusals on their way to the audit log.
    pub repeats: Repeats,
    /// The moment at which alerts looked by the clock last.
    pub alert_moment: AtomicI64,
    /// Encrypts what has to be read again.
    vault: Vault,
    /// Asks addresses that callers aim.
    outbound: Outbound,
    /// Asks those of sign-in.
    sign_in_outbound: Outbound,
    /// Sends e-mail, where a mail server is configured.
    mailer: Option<Mailer>,
    /// (organization, namespace) pairs known to exist.
    pub namespaces: Cache<(String, String), ()>,
    /// Rings when there may be work to claim.
    pub work: Notify,
    /// Rings when the process stops.
    pub stop: CancellationToken,
    /// Rings when the process is told to stop, before it takes no more requests: no new work is begun from here on.
    pub leaving: CancellationToken,
    /// The same for what every request asks.
    is_leaving: AtomicBool,
    /// Everything spawned, so that a stop can wait for it.
    pub tracker: tokio_util::task::TaskTracker,
    /// Requests under way.
    pub shield: Shield,
    /// Searches under way.
    pub turns: Turns,
    /// What organizations have used of other machines lately.
    pub used: Used,
    /// Passwords that are being tried.
    pub passwords: Passwords,
    /// Who is told of unread notifications as they come.
    pub listeners: Listeners,
    /// How many documents large collections had a moment ago.
    pub counts: Counts,
    /// How often documents of each namespace have changed.
    versions: Versions,
    /// Retrievers that were executed lately.
    pub ready: ReadyRetrievers,
    /// Answers of retrievers that are kept.
    pub answers: Answers,
    /// What searches and models gave lately.
    pub kept: Arc<Kept>,
    /// What people did with answers, for those that learn from it.
    pub acts: Acts,
    /// The objects of batches that are looked at.
    pub members: Members,
    /// How much organizations had in storage lately.
    pub stored: Stored,
    /// Searches the web for stages.
    pub web_search: Option<Arc<WebSearch>>,
    /// Searches by picture for stages.
    pub reverse_image: Option<Arc<ReverseImage>>,
    pub metrics: Metrics,
    /// Apps as visitors meet them.
    pub hosting: Hosting,
}

/// What a process is made of.
pub struct Parts {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub store: Arc<dyn DocStore>,
    pub blobs: Blobs,
    pub models: Models,
    pub outputs: Outputs,
    pub extraction: Extraction,
    pub vault: Vault,
    pub outbound: Outbound,
    pub sign_in_outbound: Outbound,
    pub mailer: Option<Mailer>,
    pub web_search: Option<Arc<WebSearch>>,
    pub reverse_image: Option<Arc<ReverseImage>>,
}

/// What is remembered for a time.
fn lasting<K, V>(time: Duration) -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(10_000)
        .time_to_live(time)
        .build()
}

/// Searches keep a processor busy, unless they wait for machines elsewhere.
fn searches_at_once(config: &Config) -> usize {
    if config.qdrant_url.is_empty() && config.models.endpoints.is_empty() {
        std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2))
    } else {
        config.limits.concurrent_requests
    }
}

impl App {
    pub fn new(parts: Parts) -> Self {
        let ingest = Ingest {
            extraction: parts.extraction,
            encoders: Arc::new(parts.models.clone()),
            web: Some(Arc::new(parts.outbound.clone())),
        };
        let several = parts.config.is_postgres();
        let searches = searches_at_once(&parts.config);
        let stop = CancellationToken::new();
        let hosting = Hosting::new(&parts.config);
        let versions = Versions::default();
        let alone = parts.config.qdrant_url.is_empty();
        let journalled = Journalled::default();
        if !alone {
            journalled.share();
        }
        let store: Arc<dyn DocStore> = Arc::new(Watched::new(parts.store, versions.clone(), alone));
        Self(Arc::new(Inner {
            config: parts.config,
            db: parts.db,
            clock: parts.clock,
            store,
            blobs: parts.blobs,
            models: parts.models,
            outputs: parts.outputs,
            ingest,
            history: History::default(),
            writers: Writers::default(),
            journalled,
            journal_seq: AtomicI64::new(0),
            journal_applied: Mutex::new(Vec::new()),
            // Another process may revoke a key; it must be refused everywhere within a second, and a read takes a while.
            keys: lasting(Duration::from_millis(if several { 600 } else { 5_000 })),
            keys_changed: AtomicU64::new(0),
            limits: Limits::default(),
            usage: Usage::default(),
            touched: lasting(Duration::from_secs(60)),
            repeats: Repeats::default(),
            alert_moment: AtomicI64::new(-1),
            vault: parts.vault,
            outbound: parts.outbound,
            sign_in_outbound: parts.sign_in_outbound,
            mailer: parts.mailer,
            namespaces: lasting(Duration::from_secs(5)),
            work: Notify::new(),
            leaving: stop.child_token(),
            stop,
            is_leaving: AtomicBool::new(false),
            tracker: tokio_util::task::TaskTracker::new(),
            shield: Shield::default(),
            turns: Turns::new(searches),
            used: Used::default(),
            passwords: Passwords::default(),
            listeners: Listeners::default(),
            counts: Counts::default(),
            versions,
            ready: ReadyRetrievers::default(),
            answers: Answers::new(several),
            kept: Arc::new(Kept::new(Answers::lasting(several))),
            acts: Acts::default(),
            members: Members::default(),
            stored: Stored::default(),
            web_search: parts.web_search,
            reverse_image: parts.reverse_image,
            metrics: Metrics::default(),
            hosting,
        }))
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn db(&self) -> &Db {
        &self.db
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn store(&self) -> &Arc<dyn DocStore> {
        &self.store
    }

    /// What answers of a namespace are made of: another number as soon as a document or a definition may be another one.
    pub fn version_of(&self, namespace_id: &str) -> (u64, u64) {
        (self.versions.get(namespace_id), self.db.definitions())
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    pub fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// As [`outbound`](Self::outbound), for what people sign in to apps with: it reaches the networks of such services, too.
    pub fn sign_in_outbound(&self) -> &Outbound {
        &self.sign_in_outbound
    }

    /// None where no mail server is configured.
    pub fn mailer(&self) -> Option<&Mailer> {
        self.mailer.as_ref()
    }

    /// Where stages and ingestion get their models from.
    pub fn encoders(&self) -> Arc<dyn Encoders> {
        Arc::new(self.models.clone())
    }

    pub fn ingest(&self) -> &Ingest {
        &self.ingest
    }

    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// A number above every one given before, close to the time.
    pub fn next_journal_seq(&self) -> i64 {
        let now = self.clock().micros();
        let last = self
            .journal_seq
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
                Some(now.max(last + 1))
            });
        last.unwrap_or(0).saturating_add(1).max(now)
    }

    /// Notes that the document store has taken an entry of the journal.
    pub fn journal_applied(&self, seq: i64) {
        self.journal_applied
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(seq);
    }

    /// The entries taken since the last call.
    pub fn take_applied(&self) -> Vec<i64> {
        std::mem::take(
            &mut *self
                .journal_applied
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Begins the end: balancers are told, work that is held is given back; requests are still answered.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
        self.leaving.cancel();
    }

    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    /// Runs work that outlives its request.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// Runs work to its end, also for a request that is cut off before that.
    ///
    /// # Errors
    /// As the work.
    pub async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (answer, answered) = oneshot::channel();
        self.spawn(front::carry(async move {
            // Nobody may be there any more to hear of it.
            let _ = answer.send(work.await);
        }));
        let answered = answered.await;
        answered.unwrap_or_else(|_| Err(ApiError::internal("work was dropped before its end")))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        (*self.0).as_ref()
    }
}

/// Everything that the server answers.
pub fn router(app: App) -> Router {
    let gate = middleware::from_fn_with_state(app.clone(), gate::gate);
    let bodies = DefaultBodyLimit::max(app.config().limits.body_bytes);
    // A layer is a box around every route, and copied with all that it holds for every request.
    let api = v1::router().layer(gate);
    // What apps reach of the API: the operations, behind the same gate.
    let inner = api
        .clone()
        .layer(bodies)
        .fallback(crate::web::unknown)
        .with_state(app.clone());
    Router::new()
        .merge(api)
        .merge(crate::web::router(&app))
        .method_not_allowed_fallback(|| async {
            ApiError::method_not_allowed("", "this path does not take this method")
        })
        .with_state(app.clone())
        .layer(bodies)
        .layer(middleware::from_fn_with_state(
            Front { app, api: inner },
            front::front,
        ))
}
