//! Files over HTTP, by addresses that carry a signature.

use std::ops::Range;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use utoipa_axum::router::OpenApiRouter;

use super::{addresses::Signed, failed, parse, parts::Asked, safe_name, shown_name, too_large};
use crate::{
    app::App,
    error::{ApiError, Result},
    list::Params,
    openapi::routes,
    v1::uploads,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_blob, put_blob))
}

/// Reads a file by its signed address. Takes `Range` and `If-None-Match`.
#[utoipa::path(get, path = "/v1/blobs/{*key}", tag = "blobs", params(("key" = String, Path, description = "Namespace, kind, id and name; may hold slashes"), Signed), security(()), responses((status = 200, description = "the file", content_type = "*/*", body = Vec<u8>), (status = 206, description = "a part of it", content_type = "*/*", body = Vec<u8>), (status = 304, description = "the caller has it already"), (status = 416, description = "the file has no such part")))]
async fn get_blob(
    State(app): State<App>,
    Path(key): Path<String>,
    Params(signed): Params<Signed>,
    headers: HeaderMap,
) -> Result<Response> {
    let blobs = app.blobs();
    blobs.check("GET", &key, &signed)?;
    let location = parse(&key)?;
    let meta = blobs.0.store.head(&location).await.map_err(failed)?;
    let etag = etag(&meta);
    let mut answer = file_headers(&key, &signed, &etag);
    if is_known(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    let Some((status, window)) = window(&headers, meta.size) else {
        let place = [(header::CONTENT_RANGE, format!("bytes */{}", meta.size))];
        return Ok((StatusCode::RANGE_NOT_SATISFIABLE, place).into_response());
    };
    place(&mut answer, status, &window, meta.size);
    let mut options = GetOptions::default();
    if meta.size > 0 {
        options.range = Some(GetRange::Bounded(window));
    }
    let found = blobs
        .0
        .store
        .get_opts(&location, options)
        .await
        .map_err(failed)?;
    Ok((status, answer, Body::from_stream(found.into_stream())).into_response())
}

/// Whether the caller has the file already.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    known.is_some_and(|known| known == "*" || known.split(',').any(|one| one.trim() == etag))
}

/// The bytes that are answered of a file of this size; none where it has no such part.
fn window(headers: &HeaderMap, size: u64) -> Option<(StatusCode, Range<u64>)> {
    let asked = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok())
        .and_then(range);
    let Some(asked) = asked else {
        return Some((StatusCode::OK, 0..size));
    };
    let window = asked.as_range(size).ok()?;
    (window.start < size).then_some((StatusCode::PARTIAL_CONTENT, window))
}

/// Tells which bytes of the file are answered, and how many.
fn place(answer: &mut HeaderMap, status: StatusCode, window: &Range<u64>, size: u64) {
    if status == StatusCode::PARTIAL_CONTENT {
        let value = format!("bytes {}-{}/{size}", window.start, window.end - 1);
        if let Ok(value) = value.parse() {
            answer.insert(header::CONTENT_RANGE, value);
        }
    }
    answer.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(window.end - window.start),
    );
}

fn etag(meta: &ObjectMeta) -> String {
    format!(
        "\"{}\"",
        meta.e_tag.as_deref().unwrap_or_default().trim_matches('"')
    )
}

/// One range of bytes; several are answered whole, as the standard allows.
fn range(text: &str) -> Option<GetRange> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    match (first.trim(), last.trim()) {
        ("", last) => Some(GetRange::Suffix(last.parse().ok()?)),
        (first, "") => Some(GetRange::Offset(first.parse().ok()?)),
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then(|| GetRange::Bounded(first..last.saturating_add(1)))
        }
    }
}

/// The type of a file, and whether it is shown in place. Only types without script are: no page may run what strangers
/// uploaded.
pub(super) fn shown(key: &str, filename: Option<&str>) -> (String, String) {
    let guess = mime_guess::from_path(key).first_or_octet_stream();
    let kind = guess.type_().as_str();
    let text = kind == "text" && matches!(guess.subtype().as_str(), "plain" | "csv" | "markdown");
    let image = kind == "image" && guess.subtype() != "svg";
    let inline = image
        || text
        || matches!(kind, "audio" | "video")
        || guess == mime_guess::mime::APPLICATION_PDF;
    let content_type = if kind == "text" {
        format!("{}; charset=utf-8", guess.essence_str())
    } else {
        guess.essence_str().to_owned()
    };
    let disposition = if inline { "inline" } else { "attachment" };
    (content_type, named(disposition, filename.unwrap_or(key)))
}

/// A disposition with the name of a file; in letters that headers do not have, as RFC 6266 says it beside one of those that they
/// have.
fn named(disposition: &str, filename: &str) -> String {
    let (safe, shown) = (safe_name(filename), shown_name(filename));
    if safe == shown {
        return format!("{disposition}; filename=\"{safe}\"");
    }
    let encoded = percent_encoding::utf8_percent_encode(&shown, percent_encoding::NON_ALPHANUMERIC);
    format!("{disposition}; filename=\"{safe}\"; filename*=UTF-8''{encoded}")
}

/// What a file is answered with; nothing is guessed from its bytes.
fn file_headers(key: &str, signed: &Signed, etag: &str) -> HeaderMap {
    let (content_type, disposition) = shown(key, signed.filename.as_deref());
    let is_pdf = content_type == "application/pdf";
    let mut headers = HeaderMap::new();
    for (header, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_DISPOSITION, disposition),
        (header::ETAG, etag.to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".into()),
        (
            header::CACHE_CONTROL,
            "private, max-age=3600, immutable".into(),
        ),
        (header::ACCEPT_RANGES, "bytes".into()),
    ] {
        if let Ok(value) = value.parse() {
            headers.insert(header, value);
        }
    }
    // Browsers show a PDF in a viewer of their own, apart from this origin; under a policy Chrome and Safari show nothing.
    if !is_pdf {
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        );
    }
    headers
}

/// Takes a file by its signed address, streamed to disk. `x-checksum-sha256` (hex) is checked when sent. With `Content-Range:
/// bytes FIRST-LAST/TOTAL` the body is a part of the file: parts may come in any order and again, 202 tells in `Range` what is
/// there from the first byte on, and 200 that the file is whole. An empty body with `bytes */TOTAL` asks how far it is. An upload
/// that is confirmed (409), has expired or was deleted (410) takes nothing any more.
#[utoipa::path(put, path = "/v1/blobs/{*key}", tag = "blobs", params(("key" = String, Path, description = "Namespace, kind, id and name; may hold slashes"), Signed), security(()), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 200, description = "stored"), (status = 202, description = "a part is stored; `Range` tells what is there")))]
async fn put_blob(
    State(app): State<App>,
    Path(key): Path<String>,
    Params(signed): Params<Signed>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    app.blobs().check("PUT", &key, &signed)?;
    uploads::check_waiting(&app, &key).await?;
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let limit = app.config().limits.upload_bytes;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let announced = text("content-length").and_then(|text| text.parse::<u64>().ok());
    if announced.is_some_and(|size| size > limit) {
        return Err(too_large(limit));
    }
    let checksum = text("x-checksum-sha256").map(str::to_ascii_lowercase);
    if let Some(part) = headers.get(header::CONTENT_RANGE) {
        let asked = Asked::read(part.to_str().unwrap_or_default())?;
        let blobs = app.blobs();
        let kept = blobs.put_part(&key, asked, pieces(body), limit, checksum);
        return kept.await;
    }
    let check = |size: u64, sha256: &str| {
        if announced.is_some_and(|announced| announced != size) {
            let message = "the upload is not as long as its Content-Length says";
            return Err(ApiError::bad_request("", message));
        }
        if checksum.is_some_and(|checksum| checksum != sha256) {
            let message = format!("the upload's sha256 is {sha256}, not the one that was sent");
            return Err(ApiError::bad_request("", message));
        }
        Ok(())
    };
    let kept = app.blobs().put_stream(&key, pieces(body), limit, check);
    let etag = format!("\"{}\"", kept.await?.etag.trim_matches('"'));
    Ok((StatusCode::OK, [(header::ETAG, etag)]).into_response())
}

/// The pieces of a body. A sender that stays silent for a minute is cut off.
fn pieces(body: Body) -> impl Stream<Item = Result<Bytes>> + Unpin {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
    Box::pin(futures::stream::try_unfold(
        body.into_data_stream(),
        |mut body| async move {
            let piece = tokio::time::timeout(PATIENCE, body.try_next())
                .await
                .map_err(|_| ApiError::timeout("", "no bytes arrived for a minute"))?;
            let piece = piece
                .map_err(|_| ApiError::bad_request("", "the upload broke off before its end"))?;
            Ok(piece.map(|piece| (piece, body)))
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_in_any_alphabet() {
        for (filename, said) in [
            ("red.png", "inline; filename=\"red.png\""),
            (
                "a/Müller Straße.pdf",
                "inline; filename=\"M_ller_Stra_e.pdf\"; filename*=UTF-8''M%C3%BCller%20Stra%C3%9Fe%2Epdf",
            ),
            (
                "a\"\r\n.pdf",
                "inline; filename=\"a___.pdf\"; filename*=UTF-8''a%22%2Epdf",
            ),
        ] {
            assert_eq!(shown(filename, Some(filename)).1, said);
        }
    }

    #[test]
    fn script_is_never_shown_in_place() {
        for (key, inline) in [
            ("n/a.png", true),
            ("n/a.pdf", true),
            ("n/a.txt", true),
            ("n/a.mp4", true),
            ("n/a.html", false),
            ("n/a.svg", false),
            ("n/a.js", false),
            ("n/a", false),
        ] {
            let headers = file_headers(key, &Signed::default(), "\"1\"");
            let disposition = headers[header::CONTENT_DISPOSITION].to_str().unwrap();
            assert_eq!(disposition.starts_with("inline"), inline, "{key}");
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            let is_pdf = key.ends_with(".pdf");
            assert_ne!(
                headers.contains_key(header::CONTENT_SECURITY_POLICY),
                is_pdf
            );
        }
    }
}
