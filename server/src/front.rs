//! What every request passes first, in one function: its id, the shield against too many at once, the time limit, the
//! origins of browsers, the figures and the line of the log.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
    panic::AssertUnwindSafe,
    sync::{
        Arc, LazyLock, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{ConnectInfo, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use loupe_wire::APIKeyModel;

use crate::{
    app::App,
    cause::Cause,
    cors,
    error::ApiError,
    hosting::{self, Split},
    limits::{self, Figures},
    unread::{self, Pace},
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long a caller has for what is left of a body that nobody reads.
const FOR_THE_REST: Duration = Duration::from_secs(5);

/// What is known about a request wherever it is being answered, or about work wherever it is done.
#[derive(Debug, Clone)]
struct Current {
    id: HeaderValue,
    address: Option<IpAddr>,
    /// Whose key it carries, once that is known.
    key: OnceLock<Arc<APIKeyModel>>,
    cause: Cause,
}

impl Current {
    /// No request, and nothing that led to it.
    fn nobody() -> Self {
        Self {
            id: HeaderValue::from_static(""),
            address: None,
            key: OnceLock::new(),
            cause: Cause::default(),
        }
    }
}

tokio::task_local! {
    static CURRENT: Current;
}

/// The id of the request that is being answered, for lines of the log; empty outside of one.
pub fn id() -> String {
    CURRENT
        .try_with(|current| current.id.to_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

/// Notes whose key the request carries that is being answered.
pub fn recognize(key: &Arc<APIKeyModel>) {
    // Outside of a request there is nobody to note, and the first one stays: what an app asks for a visitor is the app's.
    let _ = CURRENT.try_with(|current| current.key.set(key.clone()));
}

/// The id of the key of the request that is being answered; none outside of one, and before it is known.
pub fn key_id() -> Option<String> {
    let key = CURRENT.try_with(|current| current.key.get()?.key_id.clone());
    key.ok().flatten()
}

/// The address that the request comes from; none outside of one.
pub fn address() -> Option<IpAddr> {
    CURRENT.try_with(|current| current.address).ok().flatten()
}

/// What requests are counted by: whoever has one address of version 6 has all of its network.
pub fn network(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V6(address)) => {
            let start = address.segments();
            format!(
                "{:x}:{:x}:{:x}:{:x}",
                start[0], start[1], start[2], start[3]
            )
        }
        Some(address) => address.to_string(),
        None => String::new(),
    }
}

/// Lets spawned work log under the id of the request that it belongs to.
pub fn carry<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = CURRENT.try_with(Clone::clone);
    CURRENT.scope(current.unwrap_or_else(|_| Current::nobody()), work)
}

/// What led to the work that is done here; nothing in what people ask for.
pub fn cause() -> Cause {
    CURRENT
        .try_with(|current| current.cause.clone())
        .unwrap_or_default()
}

/// Does work that came of something: what is written by it bears that.
pub fn caused<F: Future>(cause: Cause, work: F) -> impl Future<Output = F::Output> {
    let current = CURRENT.try_with(Clone::clone);
    let current = current.unwrap_or_else(|_| Current::nobody());
    CURRENT.scope(Current { cause, ..current }, work)
}

/// What every request meets first: the state, and the API for the apps that ask it in process.
#[derive(Clone)]
pub struct Front {
    pub app: App,
    pub api: Router,
}

/// Wraps every route. The host decides before the path does.
pub async fn front(State(front): State<Front>, request: Request, next: Next) -> Response {
    let app = &front.app;
    let started = Instant::now();
    let id = request_id(request.headers());
    let origin = cors::origin(request.headers());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let address = peer(app, &request);
    let current = Current {
        id: id.clone(),
        address,
        key: OnceLock::new(),
        cause: Cause::default(),
    };
    // Files come as slowly as they may, with a patience of their own.
    let is_file = uri.path().starts_with("/v1/blobs/");
    let pace = (!is_file).then(|| Pace::new(app.config().limits.body_seconds));
    let (request, rest) = unread::watch(request, pace);
    let answering = AssertUnwindSafe(answer(&front, request, next)).catch_unwind();
    let mut response = CURRENT
        .scope(current, answering)
        .await
        .unwrap_or_else(|_| panicked(&id));
    let at_app = response.extensions().get::<AtApp>().is_some();
    // What an app answers is for its own pages.
    if let Some(origin) = origin.filter(|_| !at_app) {
        cors::allow(origin, uri.path(), &mut response);
    }
    // What no operation answered, such as a wrong path, an overload or a panic, has figures all the same.
    if !at_app && uri.path().starts_with("/v1/") && !Figures::are_in(response.headers()) {
        let figures = limits::figures_of_strangers(app, address);
        figures.write(response.headers_mut());
    }
    let took = started.elapsed();
    let limit = Duration::from_secs(app.config().limits.request_seconds);
    let patience = limit.saturating_sub(took).min(FOR_THE_REST);
    if app.is_leaving() || !rest.take(patience).await {
        // Callers that keep connections open go elsewhere instead of running into the end of this one: the server's, or
        // that of a connection on which much of a body is still on its way.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    let status = response.status();
    let route = route.filter(|_| !at_app);
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics.count(&method, route, status, took);
    log(&method, &uri, status.as_u16(), took, &id);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Goes with an answer of an app's host.
#[derive(Debug, Clone, Copy)]
struct AtApp;

async fn answer(front: &Front, request: Request, next: Next) -> Response {
    if !is_known(request.method()) {
        return ApiError::method_not_allowed("", "this server does not know this method")
            .into_response();
    }
    match hosting::split(&front.app, request.headers(), request.uri()).await {
        Ok(Split::Server) => {}
        Ok(Split::App(site)) => {
            // In a box: every request's state would have room for it, and be moved with it, though few ask an app.
            let answering = Box::pin(hosting::answer(&front.app, &front.api, site, request));
            let mut response = bounded(&front.app, answering).await;
            response.extensions_mut().insert(AtApp);
            return response;
        }
        Ok(Split::Moved(to)) => {
            let mut response = hosting::lead(&to, request.uri());
            response.extensions_mut().insert(AtApp);
            return response;
        }
        Err(error) => return error.into_response(),
    }
    if let Some(response) = cors::preflight(&request) {
        return response;
    }
    let path = request.uri().path();
    if matches!(path, "/healthz" | "/readyz" | "/metrics") || path.starts_with("/v1/blobs/") {
        return next.run(request).await;
    }
    bounded(&front.app, next.run(request)).await
}

/// Answers if there is room for one more, and in time.
async fn bounded(app: &App, answering: impl Future<Output = Response>) -> Response {
    let Some(_running) = app.shield.enter(app.config().limits.concurrent_requests) else {
        let message = "too many requests are under way: try again in a moment";
        return ApiError::unavailable("overloaded", message)
            .retry_after(1)
            .into_response();
    };
    let limit = Duration::from_secs(app.config().limits.request_seconds);
    match tokio::time::timeout(limit, answering).await {
        Ok(response) => response,
        Err(_) => ApiError::timeout("", "the request took too long").into_response(),
    }
}

/// Whom the listener saw, or whom the proxy before it saw when there is one that can be trusted.
fn peer(app: &App, request: &Request) -> Option<IpAddr> {
    if app.config().trust_proxy
        && let Some(forwarded) = request.headers().get_all("x-forwarded-for").iter().next_back()
        // The last one is what the proxy itself wrote; what stands before it anybody can send.
        && let Some(last) = forwarded.to_str().unwrap_or_default().rsplit(',').next()
        && let Ok(address) = last.trim().parse::<IpAddr>()
    {
        return Some(address.to_canonical());
    }
    let ConnectInfo(peer) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(peer.ip().to_canonical())
}

/// TRACE would show a caller its own headers, CONNECT is for proxies, and the others are nobody's.
fn is_known(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::OPTIONS
    )
}

fn panicked(id: &HeaderValue) -> Response {
    // The panic's own words are on stderr already.
    let id = id.to_str().unwrap_or_default();
    tracing::error!(request_id = id, "a handler panicked");
    ApiError::internal("a handler panicked").into_response()
}

/// The caller's own id when it is one, else a new one: random for the process, counted within it.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    static PROCESS: LazyLock<u64> = LazyLock::new(rand::random);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let sent = headers.get(REQUEST_ID).filter(|id| {
        let id = id.as_bytes();
        (1..=128).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
    });
    if let Some(sent) = sent {
        return sent.clone();
    }
    let mut id = [0; 32];
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    for (digits, number) in id.chunks_exact_mut(16).zip([*PROCESS, count]) {
        // Sixteen digits hold eight bytes.
        let _ = hex::encode_to_slice(number.to_be_bytes(), digits);
    }
    HeaderValue::from_bytes(&id).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// One line a request; never headers, bodies or query strings, which may hold secrets.
fn log(method: &Method, uri: &Uri, status: u16, took: Duration, id: &HeaderValue) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                %method,
                path = &*told(uri.path()),
                status,
                ms = took.as_secs_f64() * 1e3,
                request_id = id.to_str().unwrap_or_default(),
                "request"
            )
        };
    }
    if status >= 500 {
        line!(warn);
    } else if status == 304 || !uri.path().starts_with("/v1") {
        line!(trace);
    } else {
        line!(debug);
    }
}

/// A path without the keys that somebody may have put into it.
fn told(path: &str) -> Cow<'_, str> {
    const MARK: &str = "_sk_";
    if !path.contains(MARK) {
        return path.into();
    }
    let mut told = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find(MARK) {
        let (before, secret) = rest.split_at(at + MARK.len());
        told.push_str(before);
        told.push('…');
        rest = secret.trim_start_matches(|char: char| char.is_ascii_alphanumeric());
    }
    (told + rest).into()
}

/// Counts the requests under way.
#[derive(Default)]
pub struct Shield(AtomicUsize);

/// A request that is under way; its end makes room for another one.
pub struct Running<'s>(&'s AtomicUsize);

impl Shield {
    /// Room for one more; none when there are as many as the limit.
    fn enter(&self, limit: usize) -> Option<Running<'_>> {
        let running = Running(&self.0);
        (self.0.fetch_add(1, Ordering::AcqRel) < limit).then_some(running)
    }

    pub fn running(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_a_path_are_not_told() {
        assert_eq!(told("/v1/buckets/bkt_1"), "/v1/buckets/bkt_1");
        assert_eq!(
            told("/v1/blobs/loupe_sk_a1B2/ret_sk_c3.txt"),
            "/v1/blobs/loupe_sk_…/ret_sk_….txt"
        );
    }
}
