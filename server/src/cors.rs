//! Which pages of other origins may call the API and read its answers.
//!
//! Nothing here is ambient: a call from a browser carries its key in a header, never a cookie. So a browser may send any
//! call, and the key decides about the answer: one with `allowed_origins` is read by these origins alone, and each is
//! echoed by name. What needs no key, or has one without a list, may be read from every origin that has a name; `null`,
//! which any sandboxed frame has, is never one.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const SENT: &str = "authorization, content-type, content-range, if-none-match, x-namespace, idempotency-key, x-retriever-password, x-public-api-key, x-session-id, x-change-reason, x-checksum-sha256, x-request-id";
const READ: &str = "x-request-id, x-namespace-unresolved, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-ratelimit-window, idempotency-replayed, etag, range, x-cache";
const KEPT_SECONDS: &str = "600";

/// Who may read an answer; the gate leaves it in the answer's extensions when a browser asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The key has a list, and the origin is on it.
    Listed,
    /// The key has a list, and the origin is not on it.
    Nobody,
}

/// The origin that a browser names; none for other callers.
pub fn origin(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(header::ORIGIN).cloned()
}

/// The answer to a browser that asks before it calls.
pub fn preflight(request: &Request) -> Option<Response> {
    let headers = request.headers();
    if request.method() != Method::OPTIONS
        || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    {
        return None;
    }
    let origin = origin(headers)?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    if is_open(&origin, request.uri().path()) {
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
            (header::ACCESS_CONTROL_MAX_AGE, KEPT_SECONDS),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    Some(response)
}

/// The console and the pages are for themselves; the API is for everybody with a name.
fn is_open(origin: &HeaderValue, path: &str) -> bool {
    origin != "null" && path.starts_with("/v1/")
}

/// Says in an answer whether the page that asked may read it.
pub fn allow(origin: HeaderValue, path: &str, response: &mut Response) {
    let readers = response.extensions().get::<Readers>().copied();
    let open = is_open(&origin, path);
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let allowed = match readers {
        Some(Readers::Listed) => origin,
        None if open => HeaderValue::from_static("*"),
        _ => return,
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(READ),
    );
}
