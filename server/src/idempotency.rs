//! A POST with an `Idempotency-Key` is done once: a repetition within 24 hours gets the answer of the first, from any
//! process and after a restart.
//!
//! Answers are kept sealed with a key derived from the caller's own secret, which the server does not keep: an answer may
//! hold a new API key, and no secret may lie in the database. Visitors of apps and strangers have no secret, and are answered
//! none: what is kept for them is sealed with a key of the server.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures::future::BoxFuture;
use ring::{
    aead::{self, Aad, LessSafeKey, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    args,
    auth::Caller,
    error::{ApiError, Result},
    front,
    hosting::api::Only,
    id,
    unresolved::Unresolved,
};

/// The header that names a request.
pub const HEADER: &str = "idempotency-key";

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const KEPT_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Answers larger than this are not kept; the operations that make something answer far less.
const LARGEST: usize = 4 << 20;
/// Longest time a repetition waits for the first request.
const PATIENCE: Duration = Duration::from_secs(25);

crate::sql! {
    // The key's id is the owner: it is unique over all organizations. What is older than a day gives way. A claim whose time
    // ran out does not: its process died, and nobody knows how far it came.
    const CLAIM = "INSERT INTO idempotency_keys (key_id, idempotency_key, org_id, request_hash, owner, lease_until, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key_id, idempotency_key) DO UPDATE SET request_hash = excluded.request_hash, owner = excluded.owner, lease_until = excluded.lease_until, created_at = excluded.created_at, status = NULL, content_type = NULL, body = NULL WHERE idempotency_keys.created_at < $8";
    const FIND = "SELECT request_hash, lease_until, status, content_type, body FROM idempotency_keys WHERE key_id = $1 AND idempotency_key = $2 AND org_id = $3";
    const ANSWER = "UPDATE idempotency_keys SET status = $4, content_type = $5, body = $6 WHERE key_id = $1 AND idempotency_key = $2 AND owner = $3 AND org_id = $7";
    const RELEASE = "DELETE FROM idempotency_keys WHERE key_id = $1 AND idempotency_key = $2 AND owner = $3 AND org_id = $4 AND status IS NULL";
    const SWEEP = "DELETE FROM idempotency_keys WHERE created_at < $1";
}

crate::row! {
    struct Stored {
        request_hash: String,
        lease_until: i64,
        status: Option<i64>,
        content_type: Option<String>,
        body: Option<Vec<u8>>,
    }
}

/// POSTs of strangers that write something. What only reads is done anew for each request.
const OF_STRANGERS: [&str; 3] = [
    "POST /v1/public/apps/{slug}/interactions",
    "POST /v1/public/retrievers/{public_name}/interactions",
    "POST /v1/public/retrievers/{public_name}/interactions/batch",
];

/// Whether answers of this operation are kept for callers without a key.
pub fn is_of_strangers(operation: &str) -> bool {
    OF_STRANGERS.contains(&operation)
}

/// Whose repetitions they are.
pub struct Owner {
    org_id: String,
    key_id: String,
    seal: Seal,
}

impl Owner {
    /// Who calls with a key, or the visitor for whom an app does; none where this server calls itself.
    ///
    /// # Errors
    /// Never: a key may have any length.
    pub fn of(app: &App, caller: &Caller, request: &Request) -> Result<Option<Self>> {
        let org_id = caller.org_id.clone();
        if let Some(only) = request.extensions().get::<Only>() {
            let words = ["visitor", caller.actor(), only.visitor()];
            return Self::without_key(app, org_id, &words).map(Some);
        }
        let seal = request.headers().get(header::AUTHORIZATION);
        let seal = seal.and_then(|secret| Seal::of(secret.as_bytes()));
        Ok(seal.map(|seal| Self {
            org_id,
            key_id: caller.actor().to_owned(),
            seal,
        }))
    }

    /// Strangers of one network, at one page. They belong to no organization.
    ///
    /// # Errors
    /// Never: a key may have any length.
    pub fn stranger(app: &App, path: &str) -> Result<Self> {
        let network = front::network(front::address());
        Self::without_key(app, String::new(), &["stranger", path, &network])
    }

    /// Under a signature: no address of a visitor lies in the database.
    fn without_key(app: &App, org_id: String, words: &[&str]) -> Result<Self> {
        let key_id = app.vault().signature(words)?;
        let secret = app.vault().signature(&["idempotency", &key_id])?;
        let seal = Seal::of(secret.as_bytes());
        let seal = seal.ok_or_else(|| ApiError::internal("an answer could not be sealed"))?;
        Ok(Self {
            org_id,
            key_id,
            seal,
        })
    }
}

/// What does the work of a request.
pub type Work = Box<dyn FnOnce(Request) -> BoxFuture<'static, Response> + Send>;

/// A request that carries the header.
struct Named {
    org_id: String,
    key_id: String,
    name: String,
    hash: String,
    owner: String,
}

/// Runs the request, or answers what the first one with its name was answered.
pub async fn run(app: &App, owner: Owner, request: Request, work: Work) -> Response {
    match attempt(app, owner, request, work).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn attempt(app: &App, owner: Owner, request: Request, work: Work) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let name = name(&parts.headers)?;
    let limit = app.config().limits.body_bytes;
    let bytes = crate::body::read(body, limit).await?;
    let named = Named {
        org_id: owner.org_id,
        key_id: owner.key_id,
        name,
        hash: fingerprint(&parts.uri.to_string(), &parts.headers, &bytes),
        owner: id::random_base62(20),
    };
    let seal = owner.seal;
    let start = std::time::Instant::now();
    let mut pause = Duration::from_millis(10);
    while !claim(app, &named).await? {
        if let Some(answer) = recall(app, &named, &seal).await? {
            return Ok(answer);
        }
        if start.elapsed() > PATIENCE {
            return Err(ApiError::conflict(
                "idempotency_key_in_use",
                "the first request with this Idempotency-Key is still under way",
            )
            .retry_after(5));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(250));
    }
    let request = Request::from_parts(parts, Body::from(bytes));
    let state = app.clone();
    // The request ends even when its caller goes away, so that a repetition finds its answer.
    let work = app.tracker.spawn(front::carry(async move {
        let response = work(request).await;
        keep(&state, &named, &seal, response).await
    }));
    work.await.map_err(ApiError::internal)?
}

/// Refuses the header on what is told while it happens: no repetition could be told it again.
///
/// # Errors
/// The header was sent.
pub fn refuse_stream(headers: &HeaderMap) -> Result<()> {
    if !headers.contains_key(HEADER) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "idempotency_key_on_stream",
        "a stream is not kept for repetitions: send no Idempotency-Key with it, or leave `stream` out",
    ))
}

fn name(headers: &HeaderMap) -> Result<String> {
    let name = headers.get(HEADER).and_then(|value| value.to_str().ok());
    name.map(str::trim)
        .filter(|name| !name.is_empty() && name.len() <= 255)
        .map(ToOwned::to_owned)
        .ok_or_else(|| {
            ApiError::bad_request("", "an Idempotency-Key has 1 to 255 visible characters")
        })
}

/// What makes two requests the same.
fn fingerprint(uri: &str, headers: &HeaderMap, body: &[u8]) -> String {
    let mut digest = Sha256::new();
    let namespace = headers
        .get("x-namespace")
        .map_or(&b""[..], HeaderValue::as_bytes);
    let session = headers.get("x-session-id").map(HeaderValue::as_bytes);
    let delimiter = delimiter(headers);
    let pieces = [uri.as_bytes(), namespace].into_iter();
    let pieces = pieces.chain(parts(body, delimiter.as_deref()));
    for piece in pieces.chain(session) {
        digest.update((piece.len() as u64).to_be_bytes());
        digest.update(piece);
    }
    hex::encode(digest.finalize())
}

/// What stands between the parts of a form. Whoever sends the same form again makes up another one.
fn delimiter(headers: &HeaderMap) -> Option<Vec<u8>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let (kind, parameters) = kind.split_once(';')?;
    if !kind.to_ascii_lowercase().starts_with("multipart/") {
        return None;
    }
    let boundary = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("boundary");
        is_it.then(|| value.trim().trim_matches('"'))
    });
    let boundary = boundary.filter(|boundary| !boundary.is_empty())?;
    Some(format!("--{boundary}").into_bytes())
}

/// The parts of a body that something stands between; the whole where nothing does.
fn parts<'b>(body: &'b [u8], delimiter: Option<&[u8]>) -> Vec<&'b [u8]> {
    let Some(delimiter) = delimiter else {
        return vec![body];
    };
    let (mut parts, mut rest) = (Vec::new(), body);
    let next = |rest: &[u8]| {
        let mut places = rest.windows(delimiter.len());
        places.position(|place| place == delimiter)
    };
    while let Some(at) = next(rest) {
        parts.push(&rest[..at]);
        rest = &rest[at + delimiter.len()..];
    }
    parts.push(rest);
    parts
}

async fn claim(app: &App, named: &Named) -> Result<bool> {
    let now = app.clock().micros();
    let seconds = i64::try_from(app.config().limits.request_seconds).unwrap_or(60);
    let args = args![
        &named.key_id,
        &named.name,
        &named.org_id,
        &named.hash,
        &named.owner,
        now + (seconds + 5) * 1_000_000,
        now,
        now - KEPT_MICROS,
    ];
    let claimed = app
        .db()
        .write(move |tx| Box::pin(async move { tx.run(CLAIM, args).await }))
        .await?;
    Ok(claimed == 1)
}

/// The answer of the first request; none while it is under way.
async fn recall(app: &App, named: &Named, seal: &Seal) -> Result<Option<Response>> {
    let args = args![&named.key_id, &named.name, &named.org_id];
    let Some(stored) = app.db().one::<Stored>(FIND, args).await? else {
        return Ok(None);
    };
    if stored.request_hash != named.hash {
        return Err(ApiError::conflict(
            "idempotency_key_reused",
            "this Idempotency-Key belongs to another request: send a new one",
        ));
    }
    let Some(status) = stored.status else {
        if stored.lease_until < app.clock().micros() {
            return Err(ApiError::conflict(
                "idempotency_outcome_unknown",
                "the first request with this Idempotency-Key was cut off, maybe after it did its work: look whether it did, and send a new key if not",
            ));
        }
        return Ok(None);
    };
    let body = seal
        .open(&named.name, stored.body.unwrap_or_default())
        .ok_or_else(|| {
            ApiError::conflict(
                "idempotency_key_reused",
                "the key was rotated since the first request: its answer cannot be read any more",
            )
        })?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        axum::http::StatusCode::from_u16(u16::try_from(status).unwrap_or(200)).unwrap_or_default();
    let headers = response.headers_mut();
    if let Some(kind) = stored.content_type.and_then(|kind| kind.parse().ok()) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(Some(response))
}

/// Keeps a success for repetitions. A failure made nothing, nor did a list of no namespace, so the next request with the name
/// tries again.
async fn keep(app: &App, named: &Named, seal: &Seal, response: Response) -> Result<Response> {
    let (parts, body) = response.into_parts();
    let kind = parts
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let unresolved = parts.extensions.get::<Unresolved>().is_some();
    if !parts.status.is_success() || kind.starts_with("text/event-stream") || unresolved {
        release(app, named).await?;
        return Ok(Response::from_parts(parts, body));
    }
    let Ok(bytes) = axum::body::to_bytes(body, LARGEST).await else {
        release(app, named).await?;
        return Err(ApiError::payload_too_large(
            "",
            "the answer is too large to be kept: ask for less, or send no Idempotency-Key",
        ));
    };
    let args = args![
        &named.key_id,
        &named.name,
        &named.owner,
        i64::from(parts.status.as_u16()),
        kind,
        seal.close(&named.name, &bytes)?,
        &named.org_id,
    ];
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(ANSWER, args).await }))
        .await?;
    Ok(Response::from_parts(parts, Body::from(bytes)))
}

async fn release(app: &App, named: &Named) -> Result<()> {
    let args = args![&named.key_id, &named.name, &named.owner, &named.org_id];
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(RELEASE, args).await.map(|_| ()) }))
        .await
}

/// Forgets what is older than a day.
pub async fn sweep(app: &App) -> Result<()> {
    let before = app.clock().micros() - KEPT_MICROS;
    app.db()
        .write(move |tx| Box::pin(async move { tx.run(SWEEP, args![before]).await.map(|_| ()) }))
        .await
}

/// Seals with a key made of a secret.
struct Seal(LessSafeKey);

const NONCE: usize = 12;

impl Seal {
    fn of(secret: &[u8]) -> Option<Self> {
        let mut digest = Sha256::new();
        digest.update(b"loupe idempotency 1\0");
        digest.update(secret);
        UnboundKey::new(&aead::AES_256_GCM, &digest.finalize())
            .ok()
            .map(|key| Self(LessSafeKey::new(key)))
    }

    fn close(&self, name: &str, plain: &[u8]) -> Result<Vec<u8>> {
        let failed = |_| ApiError::internal("an answer could not be sealed");
        let mut nonce = [0; NONCE];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut sealed = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(unique, Aad::from(name), &mut sealed)
            .map_err(failed)?;
        Ok([nonce.as_slice(), &sealed].concat())
    }

    fn open(&self, name: &str, sealed: Vec<u8>) -> Option<Bytes> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self
            .0
            .open_in_place(nonce, Aad::from(name), &mut sealed)
            .ok()?;
        Some(Bytes::copy_from_slice(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(boundary: &str, text: &str) -> String {
        let headers = HeaderMap::from_iter([(
            header::CONTENT_TYPE,
            HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}")).unwrap(),
        )]);
        let boundary = boundary.trim_matches('"');
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n{text}\r\n--{boundary}--\r\n"
        );
        fingerprint("/v1/manifest/apply", &headers, body.as_bytes())
    }

    #[test]
    fn a_form_is_the_same_whatever_parts_it() {
        assert_eq!(form("one", "text"), form("another-0123", "text"));
        assert_eq!(form("one", "text"), form("\"quoted one\"", "text"));
        assert_ne!(form("one", "text"), form("one", "texts"));
        // What is no form is what it is.
        let plain = |body: &str| fingerprint("/v1/buckets", &HeaderMap::new(), body.as_bytes());
        assert_ne!(plain("--one"), plain("--two"));
        assert_eq!(parts(b"a--xb", Some(b"--x".as_slice())), [b"a", b"b"]);
        assert_eq!(parts(b"a--xb", None), [b"a--xb"]);
    }
}
