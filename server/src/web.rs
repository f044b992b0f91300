//! What is not `/v1`: health for balancers, the description of the API, the console and its files, the public pages.

use std::{
    collections::BTreeMap,
    io::Read,
    sync::{Arc, LazyLock},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use flate2::read::GzDecoder;
use rust_embed::{EmbeddedFile, RustEmbed};
use tower_http::compression::CompressionLayer;

use crate::{
    app::App,
    error::{ApiError, Result},
    openapi,
    v1::public::PageHost,
};

/// What `cargo xtask web` built. Debug builds read it from disk. WebAssembly is carried packed only: a megabyte less.
#[derive(RustEmbed)]
#[folder = "../dist/web"]
#[exclude = "*.wasm"]
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
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/console/") }))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(crate::metrics::metrics))
        .route("/assets/{*name}", get(file))
        .route("/embed.js", get(embed))
        .route(
            "/console",
            get(|| async { Redirect::permanent("/console/") }),
        )
        .route("/console/", get(console))
        .route("/console/{*path}", get(console_path))
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
    match encoded(&name, &headers) {
        Some((file, encoding)) => serve(
            &name,
            file,
            encoding,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
        None => ApiError::not_found("file", &name).into_response(),
    }
}

/// The element that shows a public page within other sites. Its address is theirs for good, so it is asked about again
/// after an hour.
async fn embed(headers: HeaderMap) -> Response {
    let name = MANIFEST.get("embed.js").cloned().unwrap_or_default();
    let Some((file, encoding)) = encoded(&name, &headers) else {
        return ApiError::not_found("file", "embed.js").into_response();
    };
    let kept = HeaderValue::from_static("public, max-age=3600");
    let mut response = serve("embed.js", file, encoding, kept);
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
    let Some((file, encoding)) = encoded("index.html", &headers) else {
        let text = "The console was not built: run `cargo xtask web`, then build the server again.";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let mut response = serve(
        "index.html",
        file,
        encoding,
        HeaderValue::from_static("no-cache"),
    );
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

/// The smallest stored form that the caller takes.
fn encoded(name: &str, headers: &HeaderMap) -> Option<(EmbeddedFile, Option<&'static str>)> {
    let accepted = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    for (encoding, ending) in [("br", "br"), ("gzip", "gz")] {
        if accepted
            .split(',')
            .any(|one| one.trim().split(';').next() == Some(encoding))
            && let Some(file) = Files::get(&format!("{name}.{ending}"))
        {
            return Some((file, Some(encoding)));
        }
    }
    let plain = Files::get(name).or_else(|| unpacked(Files::get(&format!("{name}.gz"))?));
    plain.map(|file| (file, None))
}

/// A file that is carried packed only, for the rare caller that takes no packed one.
fn unpacked(packed: EmbeddedFile) -> Option<EmbeddedFile> {
    let mut data = Vec::new();
    let mut reader = GzDecoder::new(packed.data.as_ref());
    reader.read_to_end(&mut data).ok()?;
    Some(EmbeddedFile {
        data: data.into(),
        ..packed
    })
}

fn serve(
    name: &str,
    file: EmbeddedFile,
    encoding: Option<&'static str>,
    cache: HeaderValue,
) -> Response {
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
        file.data.into_owned(),
    )
        .into_response();
    if let Some(encoding) = encoding {
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}
