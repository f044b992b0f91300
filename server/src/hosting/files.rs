//! The files of an app over HTTP.

use std::sync::Arc;

use axum::{
    BoxError,
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use loupe_hosted::app::{
    Injector,
    files::{self, Asset, Found},
    inject, permit,
};
use loupe_hosted::auth::{Page, render};
use sha2::{Digest, Sha256};

use super::{Content, Site};
use crate::{app::App, error::Result, v1::apps::packing::file_key};

/// Larger files are not kept in memory.
const SMALL: u64 = 2 << 20;

/// How a file goes over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Brotli,
    Gzip,
}

impl Form {
    /// Name of the coding, and ending of the file that has it.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Brotli => ("br", ".br"),
            Self::Gzip => ("gzip", ".gz"),
        }
    }

    /// The smallest that the browser takes and the file has.
    fn of(asset: &Asset, headers: &HeaderMap) -> (Self, u64) {
        match (asset.br, asset.gzip) {
            (Some(size), _) if takes(headers, "br") => (Self::Brotli, size),
            (_, Some(size)) if takes(headers, "gzip") => (Self::Gzip, size),
            _ => (Self::Plain, asset.size),
        }
    }
}

/// Whether a browser takes a form of a file.
pub(super) fn takes(headers: &HeaderMap, coding: &str) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim() == coding && weight.replace(' ', "") != "q=0"
    })
}

/// Whether a browser has what this tag is of.
pub(super) fn knows(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    known == "*"
        || known
            .split(',')
            .any(|one| one.trim().trim_start_matches("W/") == etag)
}

/// Answers a path with a file, the app's page, or that there is nothing.
pub(super) async fn answer(app: &App, site: &Site, request: &Parts) -> Response {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "this address is only read");
    }
    let raw = request.uri.path();
    let navigates = files::navigates(&request.headers);
    let found = files::find(&site.content.files, raw, navigates);
    let earlier = match found {
        Found::Nothing(_) => earlier(app, site, raw).await,
        _ => None,
    };
    let found = match &earlier {
        Some(content) => files::find(&content.files, raw, false),
        None => found,
    };
    let (status, path, asset) = match found {
        Found::File(path, asset) | Found::App(path, asset) => (StatusCode::OK, path, asset),
        Found::Folder => return to_folder(request),
        Found::Nothing(Some((path, asset))) => (StatusCode::NOT_FOUND, path, asset),
        Found::Nothing(None) => return refusal(StatusCode::NOT_FOUND, "there is no such file"),
    };
    let stands_in = !matches!(found, Found::File(..));
    let asked = Asked {
        app,
        site,
        path,
        asset,
        headers: &request.headers,
    };
    let script = site.script.as_ref();
    let script = script.filter(|_| asset.r#type.starts_with("text/html"));
    let answered = match script {
        Some(script) => asked.page(status, script).await,
        None => asked.file(status).await,
    };
    match answered {
        Ok(mut response) => {
            let own = response.headers().get(header::CACHE_CONTROL).cloned();
            site.content.headers.apply(raw, response.headers_mut());
            // What the app says of a file at this path is said of no page that stands in for it.
            if let Some(own) = own.filter(|_| stands_in) {
                response.headers_mut().insert(header::CACHE_CONTROL, own);
            }
            if script.is_some() {
                make_room(site, response.headers_mut());
            }
            let hidden = site.hosted.page().meta.indexable == Some(false);
            if site.preview || hidden {
                let robots = HeaderName::from_static("x-robots-tag");
                let value = HeaderValue::from_static("noindex");
                response.headers_mut().insert(robots, value);
            }
            response
        }
        Err(error) => {
            tracing::error!(%error, app = site.app_id(), path, "a file of an app cannot be read");
            broken(site, navigates)
        }
    }
}

/// The files of a version that was served a while ago and has what is asked for: pages that are open since then ask for their own
/// pieces, whose names tell of what is in them.
async fn earlier(app: &App, site: &Site, raw: &str) -> Option<Arc<Content>> {
    if !files::is_fingerprinted(raw) {
        return None;
    }
    for version in &site.earlier {
        let content = super::content(app, &site.org_id, site.app_id(), *version).await;
        // One that cannot be read now, or is gone, has nothing.
        if let Ok(Some(content)) = content
            && matches!(files::find(&content.files, raw, false), Found::File(..))
        {
            return Some(content);
        }
    }
    None
}

/// Where the sign-in script of this host lies, and what it asks.
fn place(site: &Site) -> String {
    format!("{}/_auth/", site.origin)
}

/// What the app says of its pages holds, and the sign-in script works beside it.
fn make_room(site: &Site, headers: &mut HeaderMap) {
    for name in [
        header::CONTENT_SECURITY_POLICY,
        header::CONTENT_SECURITY_POLICY_REPORT_ONLY,
    ] {
        let own: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        headers.remove(&name);
        for policy in own {
            let text = policy.to_str().ok();
            let permitted = text.map(|text| permit(text, &place(site)));
            let permitted = permitted.and_then(|text| HeaderValue::from_str(&text).ok());
            headers.append(&name, permitted.unwrap_or(policy));
        }
    }
}

/// What a visitor gets of an app that cannot be read: a page in its owner's colours and, where there are some, words, unless the
/// owner wants none.
fn broken(site: &Site, navigates: bool) -> Response {
    const STATUS: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    let monitoring = site.hosted.monitoring_config.clone().unwrap_or_default();
    if !navigates || !monitoring.error_boundary_enabled {
        return refusal(STATUS, "try again in a moment");
    }
    let words = monitoring.custom_error_message;
    let words = words.filter(|words| !words.trim().is_empty());
    let page = Page {
        title: "Something went wrong".into(),
        text: words
            .unwrap_or_else(|| "This page cannot be shown now. Try again in a moment.".into()),
        ..Default::default()
    };
    render(STATUS, &site.style(), &page)
}

fn refusal(status: StatusCode, text: &'static str) -> Response {
    let mut response = (status, text).into_response();
    files::common(response.headers_mut());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Relative addresses in a folder's page count from behind its slash.
fn to_folder(request: &Parts) -> Response {
    let uri = &request.uri;
    let query = uri
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    // The path was decoded and found; written as it was sent it stays on this host.
    let target = format!("{}/{query}", uri.path());
    match HeaderValue::from_str(&target) {
        Ok(target) => {
            let mut response = StatusCode::PERMANENT_REDIRECT.into_response();
            response.headers_mut().insert(header::LOCATION, target);
            files::common(response.headers_mut());
            response
        }
        Err(_) => refusal(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

/// A file that is asked for.
struct Asked<'a> {
    app: &'a App,
    site: &'a Site,
    path: &'a str,
    asset: &'a Asset,
    headers: &'a HeaderMap,
}

impl Asked<'_> {
    fn has(&self, etag: &str) -> bool {
        knows(self.headers, etag)
    }

    /// The file as its owner brought it.
    async fn file(&self, status: StatusCode) -> Result<Response> {
        let (form, size) = Form::of(self.asset, self.headers);
        let (coding, ending) = form.names();
        let etag = format!(
            "\"{}{ending}\"",
            &self.asset.hash[..32.min(self.asset.hash.len())]
        );
        let mut headers = files::headers(self.path, self.asset, &etag);
        if status == StatusCode::OK && self.has(&etag) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        let key = format!("{}{ending}", file_key(self.site.app_id(), &self.asset.hash));
        if !coding.is_empty() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        } else if status == StatusCode::OK
            && let Some(window) = self.window(size, &etag)
        {
            return self.part(&key, window, size, headers).await;
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
        if size > SMALL {
            let stream = self.app.blobs().stream(&key, None).await?;
            return Ok((status, headers, self.passing(stream)).into_response());
        }
        let bytes = self.bytes(&key).await?;
        Ok((status, headers, bytes).into_response())
    }

    /// What goes by as it is read. Where that breaks off, the visitor's connection ends, and only the log can say why.
    fn passing<E>(
        &self,
        pieces: impl Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
    ) -> Body
    where
        E: Into<BoxError> + std::fmt::Display + 'static,
    {
        let (app, path) = (self.site.app_id().to_owned(), self.path.to_owned());
        Body::from_stream(pieces.inspect_err(move |error| {
            tracing::error!(%error, app, path, "a file of an app broke off on its way to a visitor");
        }))
    }

    async fn bytes(&self, key: &str) -> Result<Bytes> {
        let files = &self.app.hosting.files;
        if let Some(bytes) = files.get(key) {
            return Ok(bytes);
        }
        let bytes = self.app.blobs().get(key).await?;
        files.insert(key.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// The one range that is asked for. Several, or one of another form of the file, are answered whole.
    fn window(&self, size: u64, etag: &str) -> Option<Result<std::ops::Range<u64>, ()>> {
        let text = |name| self.headers.get(name).and_then(|value| value.to_str().ok());
        if text(header::IF_RANGE).is_some_and(|known| known != etag) {
            return None;
        }
        let (first, last) = text(header::RANGE)?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let range = match (number(first), number(last)) {
            (Some(first), None) if last.trim().is_empty() => first..size,
            (Some(first), Some(last)) if first <= last => first..size.min(last.saturating_add(1)),
            (None, Some(last)) if first.trim().is_empty() => size.saturating_sub(last)..size,
            _ => return None,
        };
        Some(if range.start < range.end {
            Ok(range)
        } else {
            Err(())
        })
    }

    async fn part(
        &self,
        key: &str,
        window: Result<std::ops::Range<u64>, ()>,
        size: u64,
        mut headers: HeaderMap,
    ) -> Result<Response> {
        let Ok(window) = window else {
            let value = format!("bytes */{size}");
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            let mut response = (status, [(header::CONTENT_RANGE, value)]).into_response();
            files::common(response.headers_mut());
            return Ok(response);
        };
        let range = format!("bytes {}-{}/{size}", window.start, window.end - 1);
        if let Ok(range) = range.parse() {
            headers.insert(header::CONTENT_RANGE, range);
        }
        let length = HeaderValue::from(window.end - window.start);
        headers.insert(header::CONTENT_LENGTH, length);
        let stream = self.app.blobs().stream(key, Some(window)).await?;
        let body = self.passing(stream);
        Ok((StatusCode::PARTIAL_CONTENT, headers, body).into_response())
    }

    /// A page with the sign-in script in it.
    async fn page(&self, status: StatusCode, script: &str) -> Result<Response> {
        let place = place(self.site);
        let told = Sha256::digest(format!("{script}\n{place}").as_bytes());
        let told = hex::encode(&told[..6]);
        // What is not held goes by as it is.
        let large = self.asset.size > SMALL;
        let packed = !large && Form::of(self.asset, self.headers).0 == Form::Brotli;
        let ending = if packed { ".br" } else { "" };
        let hash = &self.asset.hash[..32.min(self.asset.hash.len())];
        let etag = format!("\"{hash}-{told}{ending}\"");
        let mut headers = files::headers(self.path, self.asset, &etag);
        if status == StatusCode::OK && self.has(&etag) {
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        if packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
        let key = file_key(self.site.app_id(), &self.asset.hash);
        if large {
            let pieces = self.app.blobs().stream(&key, None).await?;
            let body = self.passing(injected(pieces, Injector::new(script, &place)));
            return Ok((status, headers, body).into_response());
        }
        let made = format!("{key}-{told}{ending}");
        let files = &self.app.hosting.files;
        let bytes = match files.get(&made) {
            Some(bytes) => bytes,
            None => {
                let page = self.bytes(&key).await?;
                let script = script.to_owned();
                let work = move || with_script(&page, &script, &place, packed);
                let bytes = tokio::task::spawn_blocking(work).await;
                let bytes = bytes.map_err(crate::error::ApiError::internal)?;
                files.insert(made, bytes.clone());
                bytes
            }
        };
        Ok((status, headers, bytes).into_response())
    }
}

/// A page on its way from the store to a visitor, with the script put into it as it goes by.
fn injected<E: Into<BoxError> + 'static>(
    pieces: impl Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
    injector: Injector,
) -> impl Stream<Item = std::result::Result<Bytes, BoxError>> + Send + 'static {
    let state = Some((Box::pin(pieces), injector));
    stream::try_unfold(state, |state| async move {
        let Some((mut pieces, mut injector)) = state else {
            return Ok::<_, BoxError>(None);
        };
        let step = match pieces.next().await {
            Some(piece) => {
                let piece: Bytes = piece.map_err(Into::<BoxError>::into)?;
                let made = injector.write(&piece)?;
                (Bytes::from(made), Some((pieces, injector)))
            }
            None => (Bytes::from(injector.end()?), None),
        };
        Ok(Some(step))
    })
}

fn with_script(page: &Bytes, script: &str, place: &str, packed: bool) -> Bytes {
    use std::io::Write;
    let whole = match std::str::from_utf8(page) {
        Ok(text) => Bytes::from(inject(text, script, place)),
        // What cannot be read is left as it is.
        Err(_) => by_bytes(page, script, place).unwrap_or_else(|| page.clone()),
    };
    if !packed {
        return whole;
    }
    let mut small = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut small, 1 << 15, 5, 20);
    let written = writer.write_all(&whole);
    drop(writer);
    // Writing to memory does not fail; if it did, the answer would say what it is not.
    debug_assert!(written.is_ok());
    small.into()
}

/// A page that is no UTF-8 keeps its bytes, and gets the script as one that goes by in pieces.
fn by_bytes(page: &[u8], script: &str, place: &str) -> Option<Bytes> {
    let mut injector = Injector::new(script, place);
    let mut made = injector.write(page).ok()?;
    made.extend(injector.end().ok()?);
    Some(made.into())
}
