//! Replies and their headers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::query::encode;
use super::shell::Document;
use crate::Listed;

/// How a reply may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Kept by the browser and asked about every time.
    Revalidate,
    /// Not kept.
    Never,
}

/// A document with its policy. Scripts and styles run only with the nonce of this very reply.
pub fn page(status: StatusCode, document: Document, cache: Cache, asked: &HeaderMap) -> Response {
    let tag = (cache == Cache::Revalidate).then(|| {
        let digest = Sha256::digest(document.lasting().as_bytes());
        format!("W/\"{}\"", hex::encode(&digest[..12]))
    });
    if let Some(tag) = &tag
        && matches(asked, tag)
    {
        // No policy here: the browser keeps the one that came with the body, whose nonce it names.
        let mut reply = StatusCode::NOT_MODIFIED.into_response();
        set(reply.headers_mut(), header::ETAG, tag);
        set(
            reply.headers_mut(),
            header::CACHE_CONTROL,
            "private, no-cache",
        );
        return reply;
    }
    let policy = format!(
        "default-src 'none'; img-src 'self' https: http: data:; media-src 'self' https: http:; style-src 'self' 'nonce-{nonce}'; \
         script-src 'self' 'nonce-{nonce}'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
         object-src 'none'; frame-ancestors {ancestors}",
        nonce = document.nonce,
        ancestors = document.ancestors.as_deref().unwrap_or("'self'")
    );
    let mut reply = (status, Body::from(document.html)).into_response();
    let headers = reply.headers_mut();
    set(headers, header::CONTENT_TYPE, "text/html; charset=utf-8");
    set(headers, header::CONTENT_SECURITY_POLICY, &policy);
    common(headers);
    if let Some(tag) = &tag {
        set(headers, header::ETAG, tag);
    }
    set(
        headers,
        header::CACHE_CONTROL,
        if cache == Cache::Revalidate {
            "private, no-cache"
        } else {
            "no-store"
        },
    );
    reply
}

/// A picture of the owner. The policy keeps a drawing with script in it still.
pub fn file(kind: &'static str, bytes: Vec<u8>, secret: bool, asked: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&bytes)[..12]));
    let mut reply = if matches(asked, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        bytes.into_response()
    };
    let headers = reply.headers_mut();
    set(headers, header::CONTENT_TYPE, kind);
    set(
        headers,
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    );
    set(headers, header::ETAG, &tag);
    let kept = if secret {
        "no-store"
    } else {
        "public, max-age=3600"
    };
    set(headers, header::CACHE_CONTROL, kept);
    common(headers);
    reply
}

/// The page has another name. Some other page may take this one, so nobody keeps what it led to.
pub fn moved(to: &str) -> Response {
    let mut reply = StatusCode::PERMANENT_REDIRECT.into_response();
    let headers = reply.headers_mut();
    set(headers, header::LOCATION, to);
    set(headers, header::CACHE_CONTROL, "no-cache");
    common(headers);
    reply
}

/// What is asked for is at an address that does not last: this is kept for less time than that one is good.
pub fn found(at: &str, secret: bool) -> Response {
    let mut reply = StatusCode::FOUND.into_response();
    let headers = reply.headers_mut();
    set(headers, header::LOCATION, at);
    let kept = if secret {
        "no-store"
    } else {
        "public, max-age=600"
    };
    set(headers, header::CACHE_CONTROL, kept);
    common(headers);
    reply
}

/// Plain text.
pub fn text(text: String) -> Response {
    typed(StatusCode::OK, "text/plain; charset=utf-8", text)
}

/// Nothing here.
pub fn missing() -> Response {
    typed(
        StatusCode::NOT_FOUND,
        "text/plain; charset=utf-8",
        "not found\n".to_owned(),
    )
}

/// Not now.
pub fn unavailable() -> Response {
    typed(
        StatusCode::SERVICE_UNAVAILABLE,
        "text/plain; charset=utf-8",
        "try again in a moment\n".to_owned(),
    )
}

/// Not so often.
pub fn busy(retry_after_s: u64) -> Response {
    let mut reply = typed(
        StatusCode::TOO_MANY_REQUESTS,
        "text/plain; charset=utf-8",
        format!("try again in {retry_after_s} s\n"),
    );
    let headers = reply.headers_mut();
    headers.insert(header::RETRY_AFTER, retry_after_s.into());
    reply
}

/// The sitemap of these pages.
pub fn sitemap(base_url: &str, pages: &[Listed]) -> Response {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    // The protocol's limit.
    for page in pages.iter().take(50_000) {
        let address = format!("{base_url}/r/{}", encode(&page.public_name)).replace('&', "&amp;");
        let changed = page.updated_at.format("%Y-%m-%d");
        xml.push_str(&format!(
            "  <url><loc>{address}</loc><lastmod>{changed}</lastmod></url>\n"
        ));
    }
    xml.push_str("</urlset>\n");
    typed(StatusCode::OK, "application/xml; charset=utf-8", xml)
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut reply = (status, body).into_response();
    set(reply.headers_mut(), header::CONTENT_TYPE, kind);
    common(reply.headers_mut());
    reply
}

fn common(headers: &mut HeaderMap) {
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("strict-origin-when-cross-origin"),
    );
    headers.insert(
        "permissions-policy",
        HeaderValue::from_static("geolocation=(), microphone=(), payment=()"),
    );
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    // Values are made here of fixed words and hex; one that could not be a header is left out.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn matches(asked: &HeaderMap, tag: &str) -> bool {
    let bare = tag.trim_start_matches("W/");
    asked
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|given| given.trim().trim_start_matches("W/") == bare)
}
