//! The state that every request shares, and the layers around the routes, in order.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderName, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use loupe_engine::{
    embed::{Encoders, Models},
    extract::{Extraction, Outputs},
    ingest::Ingest,
    store::DocStore,
};
use loupe_wire::APIKeyModel;
use moka::future::Cache;
use tokio::sync::{Notify, Semaphore};
use tower::ServiceBuilder;
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowOrigin, CorsLayer},
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
};

use crate::{
    blob::Blobs, clock::Clock, config::Config, db::Db, error::ApiError, gate, limits::Limits,
    usage::Usage, v1, v1::retrievers::History,
};

/// Cheap to clone; one a process.
#[derive(Clone)]
pub struct App(Arc<Inner>);

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
    /// (organization, namespace) pairs known to exist.
    pub namespaces: Cache<(String, String), ()>,
    /// Rings when there may be work to claim.
    pub work: Notify,
    /// Rings when the process stops.
    pub stop: tokio_util::sync::CancellationToken,
    /// Everything spawned, so that a stop can wait for it.
    pub tracker: tokio_util::task::TaskTracker,
    shield: Arc<Semaphore>,
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
}

impl App {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            config,
            db,
            clock,
            store,
            blobs,
            models,
            outputs,
            extraction,
        } = parts;
        let ingest = Ingest {
            extraction,
            encoders: Arc::new(models.clone()),
        };
        let cache = |seconds| {
            Cache::builder()
                .max_capacity(10_000)
                .time_to_live(Duration::from_secs(seconds))
                .build()
        };
        let several = config.is_postgres();
        let shield = Arc::new(Semaphore::new(config.limits.concurrent_requests));
        Self(Arc::new(Inner {
            config,
            db,
            clock,
            store,
            blobs,
            models,
            outputs,
            ingest,
            history: History::default(),
            journal_seq: AtomicI64::new(0),
            journal_applied: Mutex::new(Vec::new()),
            // Another process may revoke a key; it must be refused everywhere within a second.
            keys: cache(if several { 1 } else { 5 }),
            keys_changed: AtomicU64::new(0),
            limits: Limits::default(),
            usage: Usage::default(),
            touched: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(Duration::from_secs(60))
                .build(),
            namespaces: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(Duration::from_secs(5))
                .build(),
            work: Notify::new(),
            stop: tokio_util::sync::CancellationToken::new(),
            tracker: tokio_util::task::TaskTracker::new(),
            shield,
        }))
    }

    pub fn config(&self) -> &Config {
        &self.0.config
    }

    pub fn db(&self) -> &Db {
        &self.0.db
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub fn store(&self) -> &Arc<dyn DocStore> {
        &self.0.store
    }

    pub fn blobs(&self) -> &Blobs {
        &self.0.blobs
    }

    /// Where stages and ingestion get their models from.
    pub fn encoders(&self) -> Arc<dyn Encoders> {
        Arc::new(self.0.models.clone())
    }

    pub fn ingest(&self) -> &Ingest {
        &self.0.ingest
    }

    pub fn outputs(&self) -> &Outputs {
        &self.0.outputs
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

    /// Runs work that outlives its request.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.tracker.spawn(work);
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Everything that the server answers.
pub fn router(app: App) -> Router {
    let (api, document) = v1::router();
    let document = Arc::new(document);
    let request_id = HeaderName::from_static("x-request-id");
    let layers = ServiceBuilder::new()
        .layer(SetRequestIdLayer::new(request_id.clone(), MakeRequestUuid))
        .layer(PropagateRequestIdLayer::new(request_id))
        .layer(middleware::from_fn(log))
        .layer(CatchPanicLayer::custom(|_| {
            ApiError::internal("a handler panicked").into_response()
        }))
        .layer(cors())
        .layer(middleware::from_fn_with_state(app.clone(), shield))
        .layer(DefaultBodyLimit::max(app.config().limits.body_bytes));
    Router::new()
        .merge(api.layer(middleware::from_fn_with_state(app.clone(), gate::gate)))
        .merge(crate::web::router(&app, document))
        .method_not_allowed_fallback(|| async {
            ApiError::method_not_allowed("", "this path does not take this method")
        })
        .with_state(app)
        .layer(layers)
}

/// Browsers may call with a key from anywhere; which origins a key may be used from is the key's own matter.
fn cors() -> CorsLayer {
    let exposed = [
        "x-request-id",
        "x-namespace-unresolved",
        "retry-after",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-window",
        "idempotency-replayed",
        "etag",
    ];
    CorsLayer::new()
        .allow_origin(AllowOrigin::any())
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            HeaderName::from_static("x-namespace"),
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("x-retriever-password"),
            HeaderName::from_static("x-session-id"),
            HeaderName::from_static("x-change-reason"),
        ])
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(Duration::from_secs(600))
}

/// Refuses what exceeds the requests under way, and ends what takes too long. Health and uploads are exempt.
async fn shield(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if matches!(path, "/healthz" | "/readyz") || path.starts_with("/v1/blobs/") {
        return next.run(request).await;
    }
    let Ok(_permit) = app.shield.clone().try_acquire_owned() else {
        return ApiError::unavailable("", "too many requests are under way: try again in a moment")
            .retry_after(1)
            .into_response();
    };
    let limit = Duration::from_secs(app.config().limits.request_seconds);
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::timeout("", "the request took too long").into_response(),
    }
}

/// One line a request; never headers, bodies or query strings, which may hold secrets.
async fn log(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let start = std::time::Instant::now();
    let response = next.run(request).await;
    let (status, ms) = (response.status(), start.elapsed().as_secs_f64() * 1e3);
    let id = response
        .headers()
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default();
    if status.is_server_error() {
        tracing::warn!(%method, path, status = status.as_u16(), ms, id, "request");
    } else if status == StatusCode::NOT_MODIFIED || !path.starts_with("/v1") {
        tracing::trace!(%method, path, status = status.as_u16(), ms, id, "request");
    } else {
        tracing::debug!(%method, path, status = status.as_u16(), ms, id, "request");
    }
    response
}
