//! What is not `/v1`: health for balancers, the description of the API, the console and its files, the public pages.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use rust_embed::RustEmbed;
use tower_http::compression::{
    CompressionLayer, DefaultPredicate, Predicate, predicate::NotForContentType,
};

use crate::{
    app::App,
    error::{ApiError, Result},
    openapi,
    v1::public::PageHost,
};

/// What `cargo xtask web` built. Debug builds read it from disk. What gets smaller with brotli is carried so and not otherwise:
/// more than a megabyte less.
#[derive(RustEmbed)]
#[folder = "../dist/web"]
#[exclude = "*.wasm"]
#[exclude = "*.js"]
#[exclude = "*.css"]
#[exclude = "*.html"]
#[exclude = "*.svg"]
#[allow_missing = true]
struct Files;

/// Logical names, such as `public.css`, to names with the hash of their content.
static MANIFEST: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let file = Files::get("manifest.json");
    file.and_then(|file| loupe_wire::reading::from_slice(&file.data).ok())
        .unwrap_or_default()
});

const CONSOLE_CSP: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data: blob:; object-src 'none'; base-uri 'self'; frame-ancestors 'none'";

/// The address of a built file by its logical name; none when it was not built.
pub fn asset(logical_name: &str) -> Option<String> {
    MANIFEST
        .get(logical_name)
        .map(|name| format!("/assets/{name}"))
}

pub fn router(app: &App) -> Router<App> {
    let pages = loupe_hosted::page::router(Arc::new(PageHost(app.clone())));
    // No other site is answered with what a visitor alone may see: how well a page is compressed tells nobody anything.
    let texts = Router::new()
        .route("/v1/openapi.json", get(description))
        .merge(crate::docs::router(app))
        .merge(pages.with_state(()))
        .layer(CompressionLayer::new());
    // Fonts are small already.
    let worth_it = DefaultPredicate::new().and(NotForContentType::new("font/"));
    let files = Router::new()
        .route("/assets/{*name}", get(file))
        .route("/embed.js", get(embed))
        .route("/console/", get(console))
        .route("/console/{*path}", get(console_path))
        .layer(CompressionLayer::new().compress_when(worth_it));
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/console/") }))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(crate::metrics::metrics))
        .route(
            "/console",
            get(|| async { Redirect::permanent("/console/") }),
        )
        .merge(files)
        .merge(texts)
        .fallback(unknown)
}

async fn description() -> Result<Response> {
    let text = tokio::task::spawn_blocking(openapi::text).await;
    let text = text.map_err(ApiError::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// 503 from the moment the process is told to stop, so that balancers send no more.
async fn ready(State(app): State<App>) -> impl IntoResponse {
    if app.is_leaving() || app.db().ping().await.is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready");
    }
    (StatusCode::OK, "ready")
}

pub async fn unknown(uri: Uri) -> ApiError {
    ApiError::not_found("path", uri.path())
}

/// A built file. Names carry the hash of the content, so they are kept for good; a missing one is a 404.
async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match carried(&name, &headers).await {
        Some(carried) => serve(
            &name,
            carried,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
        None => ApiError::not_found("file", &name).into_response(),
    }
}

/// The element that shows a public page within other sites. Its address is theirs for good, so it is asked about again
/// after an hour.
async fn embed(headers: HeaderMap) -> Response {
    let name = MANIFEST.get("embed.js").cloned().unwrap_or_default();
    let Some(carried) = carried(&name, &headers).await else {
        return ApiError::not_found("file", "embed.js").into_response();
    };
    let kept = HeaderValue::from_static("public, max-age=3600");
    let mut response = serve("embed.js", carried, kept);
    response.headers_mut().insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("cross-origin"),
    );
    response
}

/// The console's files are named relative to its page; every other address is the page's own business.
async fn console_path(
    State(app): State<App>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    if path != "index.html"
        && path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.contains('.'))
    {
        return file(Path(path), headers).await;
    }
    console(State(app), headers).await
}

/// Every address of the console answers its one page; the page finds its way by the address.
async fn console(State(app): State<App>, headers: HeaderMap) -> Response {
    let Some(carried) = carried("index.html", &headers).await else {
        let text = "The console was not built: run `cargo xtask web`, then build the server again.";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let fresh = HeaderValue::from_static("no-cache");
    let mut response = serve("index.html", carried, fresh);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, console_policy(&app));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}

/// The console sends files to where they are kept, and shows them from there.
fn console_policy(app: &App) -> HeaderValue {
    let own = HeaderValue::from_static(CONSOLE_CSP);
    let Some(origin) = app.blobs().origin() else {
        return own;
    };
    let pictures = format!("img-src 'self' data: blob: {origin}");
    let policy = CONSOLE_CSP.replace("img-src 'self' data: blob:", &pictures);
    let policy = format!("{policy}; connect-src 'self' {origin}; media-src 'self' {origin}");
    policy.parse().unwrap_or(own)
}

/// The bytes of a file, and how they are packed.
type Carried = (Bytes, Option<&'static str>);

/// A built file for this caller. Who does not take brotli, such as a browser without TLS, gets it unpacked, and these routes'
/// layer packs it in a way that the caller takes.
async fn carried(name: &str, headers: &HeaderMap) -> Option<Carried> {
    let Some(packed) = Files::get(&format!("{name}.br")) else {
        return Files::get(name).map(|file| (bytes(file.data), None));
    };
    let packed = bytes(packed.data);
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    let mut ways = accepted.unwrap_or_default().split(',');
    if ways.any(|one| one.trim().split(';').next() == Some("br")) {
        return Some((packed, Some("br")));
    }
    let plain = tokio::task::spawn_blocking(move || unpacked(&packed)).await;
    Some((plain.ok()??, None))
}

fn bytes(data: Cow<'static, [u8]>) -> Bytes {
    match data {
        Cow::Borrowed(data) => Bytes::from_static(data),
        Cow::Owned(data) => data.into(),
    }
}

fn unpacked(packed: &[u8]) -> Option<Bytes> {
    let mut plain = Vec::new();
    brotli::BrotliDecompress(&mut &*packed, &mut plain).ok()?;
    Some(plain.into())
}

fn serve(name: &str, (file, encoding): Carried, cache: HeaderValue) -> Response {
    let kind = mime_guess::from_path(name).first_or_octet_stream();
    let kind = if kind.type_() == "text" {
        format!("{kind}; charset=utf-8")
    } else {
        kind.to_string()
    };
    let mut response = (
        [
            (header::CACHE_CONTROL, cache),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
            (
                header::X_CONTENT_TYPE_OPTIONS,
                HeaderValue::from_static("nosniff"),
            ),
        ],
        [(header::CONTENT_TYPE, kind)],
        file,
    )
        .into_response();
    if let Some(encoding) = encoding {
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}
