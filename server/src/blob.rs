//! Files of objects and documents: kept by `object_store`, addressed by URLs that the server signs.
//!
//! A key is `{namespace}/{kind}/{id}/{name}`; nobody outside picks one, and a key without a signature opens nothing.

use std::{path::Path as FilePath, sync::Arc};

use axum::{
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use hmac::{Hmac, KeyInit, Mac};
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, WriteMultipart,
    local::LocalFileSystem, path::Path as Key,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    clock::Clock,
    error::{ApiError, Result},
};

/// Cheap to clone.
#[derive(Clone)]
pub struct Blobs(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    /// Local files: what the free space is measured on.
    folder: std::path::PathBuf,
    secret: [u8; 32],
    address: String,
    clock: Clock,
}

/// What is known of a stored file.
#[derive(Debug, Clone)]
pub struct Stored {
    pub size: u64,
    pub etag: String,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Signed {
    /// Unix time at which the address ends.
    #[serde(default)]
    expires: i64,
    #[serde(default)]
    signature: String,
    /// The name that a download gets.
    filename: Option<String>,
}

impl Blobs {
    /// Files under `folder`; `secret` signs addresses that start with `address`.
    ///
    /// # Errors
    /// A folder that cannot be made or read.
    pub fn open(
        folder: &FilePath,
        secret: [u8; 32],
        address: String,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let store = LocalFileSystem::new_with_prefix(folder)?
            .with_automatic_cleanup(true)
            .with_fsync(true);
        Ok(Self(Arc::new(Inner {
            store: Arc::new(store),
            folder: folder.to_owned(),
            secret,
            address,
            clock,
        })))
    }

    pub async fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<Stored> {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let put = self
            .0
            .store
            .put(&parse(key)?, bytes.into())
            .await
            .map_err(failed)?;
        Ok(Stored {
            size,
            etag: put.e_tag.unwrap_or_default(),
        })
    }

    pub async fn get(&self, key: &str) -> Result<Bytes> {
        let found = self.0.store.get(&parse(key)?).await.map_err(failed)?;
        found.bytes().await.map_err(failed)
    }

    /// Absent when there is no such file.
    pub async fn head(&self, key: &str) -> Result<Option<Stored>> {
        match self.0.store.head(&parse(key)?).await {
            Ok(meta) => Ok(Some(Stored {
                size: meta.size,
                etag: meta.e_tag.unwrap_or_default(),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The file's SHA-256 in hex, read as a stream.
    pub async fn sha256(&self, key: &str) -> Result<String> {
        let found = self.0.store.get(&parse(key)?).await.map_err(failed)?;
        let mut stream = found.into_stream();
        let mut hash = Sha256::new();
        while let Some(piece) = stream.try_next().await.map_err(failed)? {
            hash.update(&piece);
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// A second file with the same bytes.
    pub async fn copy(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (parse(from)?, parse(to)?);
        self.0.store.copy(&from, &to).await.map_err(failed)
    }

    /// A file that is gone already counts as deleted.
    pub async fn delete(&self, key: &str) -> Result<()> {
        match self.0.store.delete(&parse(key)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes every file whose key starts with these whole segments.
    pub async fn delete_all(&self, prefix: &str) -> Result<()> {
        let prefix = parse(prefix)?;
        let mut files = self.0.store.list(Some(&prefix));
        while let Some(file) = files.try_next().await.map_err(failed)? {
            self.delete(file.location.as_ref()).await?;
        }
        Ok(())
    }

    /// An address that reads the file for `ttl` seconds.
    pub fn signed_get_url(&self, key: &str, filename: Option<&str>, ttl: u64) -> String {
        self.signed("GET", key, filename, ttl)
    }

    /// An address that takes the file's bytes for `ttl` seconds.
    pub fn signed_put_url(&self, key: &str, ttl: u64) -> String {
        self.signed("PUT", key, None, ttl)
    }

    fn signed(&self, method: &str, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let expires = self.0.clock.now().timestamp() + i64::try_from(ttl).unwrap_or(0);
        let signature = hex::encode(
            self.mac(method, key, filename, expires)
                .finalize()
                .into_bytes(),
        );
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("expires", &expires.to_string())
            .append_pair("signature", &signature);
        if let Some(filename) = filename {
            query.append_pair("filename", filename);
        }
        format!("{}/v1/blobs/{key}?{}", self.0.address, query.finish())
    }

    fn mac(&self, method: &str, key: &str, filename: Option<&str>, expires: i64) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0.secret)
            .expect("HMAC takes keys of any length");
        for piece in [
            "blob",
            method,
            key,
            filename.unwrap_or_default(),
            &expires.to_string(),
        ] {
            mac.update(&(piece.len() as u64).to_be_bytes());
            mac.update(piece.as_bytes());
        }
        mac
    }

    fn check(&self, method: &str, key: &str, signed: &Signed) -> Result<()> {
        let refused = || {
            ApiError::forbidden(
                "",
                "the signature of this address is wrong or has expired: ask for a new one",
            )
        };
        let signature = hex::decode(&signed.signature).map_err(|_| refused())?;
        // Compares in constant time.
        self.mac(method, key, signed.filename.as_deref(), signed.expires)
            .verify_slice(&signature)
            .map_err(|_| refused())?;
        if signed.expires <= self.0.clock.now().timestamp() {
            return Err(refused());
        }
        Ok(())
    }

    /// Refuses writes when too little of the disk is free: max of `least` and 5 %.
    pub fn check_room(&self, least: u64) -> Result<()> {
        let Ok(disk) = rustix::fs::statvfs(&self.0.folder) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let floor = if least < 1 << 30 {
            // A floor below 1 GiB was set by hand: it is meant as it stands.
            least
        } else {
            least.max(disk.f_blocks.saturating_mul(disk.f_frsize) / 20)
        };
        if free < floor {
            return Err(ApiError::disk_full(
                "",
                "the disk is almost full: writes are refused until space is freed",
            ));
        }
        Ok(())
    }
}

fn parse(key: &str) -> Result<Key> {
    Key::parse(key).map_err(|_| ApiError::not_found("blob", key))
}

fn failed(error: object_store::Error) -> ApiError {
    match error {
        object_store::Error::NotFound { path, .. } => ApiError::not_found("blob", &path),
        other => ApiError::internal(other),
    }
}

/// A file name's last segment without anything that a path, a header or a shell could misread.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe: String = last
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let safe = safe.trim_start_matches('.');
    let start = safe.len().saturating_sub(100);
    if safe.is_empty() {
        "file".into()
    } else {
        safe[start..].to_owned()
    }
}

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_blob, put_blob))
}

/// Reads a file by its signed address. Takes `Range` and `If-None-Match`.
#[utoipa::path(get, path = "/v1/blobs/{*key}", tag = "blobs", params(Signed), security(()), responses((status = 200, description = "the file"), (status = 206, description = "a part of it")))]
async fn get_blob(
    State(app): State<App>,
    Path(key): Path<String>,
    Query(signed): Query<Signed>,
    headers: HeaderMap,
) -> Result<Response> {
    let blobs = app.blobs();
    blobs.check("GET", &key, &signed)?;
    let location = parse(&key)?;
    let meta = blobs.0.store.head(&location).await.map_err(failed)?;
    let etag = etag(&meta);
    let mut answer = file_headers(&key, &signed, &etag);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known == "*" || known.split(',').any(|one| one.trim() == etag)) {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    let asked = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok())
        .and_then(range);
    let (status, window) = match asked {
        None => (StatusCode::OK, 0..meta.size),
        Some(asked) => match asked.as_range(meta.size) {
            Ok(window) if window.start < meta.size => (StatusCode::PARTIAL_CONTENT, window),
            _ => {
                let value = format!("bytes */{}", meta.size);
                return Ok((
                    StatusCode::RANGE_NOT_SATISFIABLE,
                    [(header::CONTENT_RANGE, value)],
                )
                    .into_response());
            }
        },
    };
    if status == StatusCode::PARTIAL_CONTENT {
        let value = format!("bytes {}-{}/{}", window.start, window.end - 1, meta.size);
        if let Ok(value) = value.parse() {
            answer.insert(header::CONTENT_RANGE, value);
        }
    }
    answer.insert(
        header::CONTENT_LENGTH,
        HeaderValue::from(window.end - window.start),
    );
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

/// Pages shown from this origin must not be able to run what strangers uploaded: only types without script are shown
/// in place, everything else is a download, and nothing is guessed from the bytes.
fn file_headers(key: &str, signed: &Signed, etag: &str) -> HeaderMap {
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
    let name = safe_name(signed.filename.as_deref().unwrap_or(key));
    let disposition = if inline { "inline" } else { "attachment" };
    let mut headers = HeaderMap::new();
    for (header, value) in [
        (header::CONTENT_TYPE, content_type),
        (
            header::CONTENT_DISPOSITION,
            format!("{disposition}; filename=\"{name}\""),
        ),
        (header::ETAG, etag.to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".into()),
        (
            header::CACHE_CONTROL,
            "private, max-age=3600, immutable".into(),
        ),
        (header::ACCEPT_RANGES, "bytes".into()),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox".into(),
        ),
    ] {
        if let Ok(value) = value.parse() {
            headers.insert(header, value);
        }
    }
    headers
}

/// Takes a file by its signed address, streamed to disk. `x-checksum-sha256` (hex) is checked when sent.
#[utoipa::path(put, path = "/v1/blobs/{*key}", tag = "blobs", params(Signed), security(()), responses((status = 200, description = "stored")))]
async fn put_blob(
    State(app): State<App>,
    Path(key): Path<String>,
    Query(signed): Query<Signed>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    app.blobs().check("PUT", &key, &signed)?;
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let limit = app.config().limits.upload_bytes;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let announced = text("content-length").and_then(|text| text.parse::<u64>().ok());
    if announced.is_some_and(|size| size > limit) {
        return Err(too_large(limit));
    }
    let checksum = text("x-checksum-sha256").map(str::to_ascii_lowercase);
    let location = parse(&key)?;
    let upload = app
        .blobs()
        .0
        .store
        .put_multipart(&location)
        .await
        .map_err(failed)?;
    let mut writer = WriteMultipart::new_with_chunk_size(upload, 5 << 20);
    match receive(&mut writer, body, limit, announced, checksum.as_deref()).await {
        Ok(()) => {
            let put = writer.finish().await.map_err(failed)?;
            let etag = format!("\"{}\"", put.e_tag.unwrap_or_default().trim_matches('"'));
            Ok((StatusCode::OK, [(header::ETAG, etag)]).into_response())
        }
        Err(error) => {
            // What was written so far is a file of its own until it is finished; nothing replaces the old one.
            if let Err(error) = writer.abort().await {
                tracing::warn!(%error, "an upload that failed left its part behind");
            }
            Err(error)
        }
    }
}

fn too_large(limit: u64) -> ApiError {
    ApiError::payload_too_large("", format!("the file is larger than {limit} bytes"))
}

async fn receive(
    writer: &mut WriteMultipart,
    body: Body,
    limit: u64,
    announced: Option<u64>,
    checksum: Option<&str>,
) -> Result<()> {
    let (mut hash, mut size) = (Sha256::new(), 0_u64);
    let mut body = body.into_data_stream();
    // A sender that stays silent this long is cut off.
    let patience = std::time::Duration::from_secs(60);
    while let Some(piece) = tokio::time::timeout(patience, body.next())
        .await
        .map_err(|_| ApiError::timeout("", "no bytes arrived for a minute"))?
    {
        let piece =
            piece.map_err(|_| ApiError::bad_request("", "the upload broke off before its end"))?;
        size += piece.len() as u64;
        if size > limit {
            return Err(too_large(limit));
        }
        hash.update(&piece);
        // At most two parts wait for the disk.
        writer.wait_for_capacity(2).await.map_err(failed)?;
        writer.put(piece);
    }
    if announced.is_some_and(|announced| announced != size) {
        return Err(ApiError::bad_request(
            "",
            "the upload is not as long as its Content-Length says",
        ));
    }
    let found = hex::encode(hash.finalize());
    if checksum.is_some_and(|checksum| checksum != found) {
        return Err(ApiError::bad_request(
            "",
            format!("the upload's sha256 is {found}, not the one that was sent"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs(folder: &tempfile::TempDir, clock: &Clock) -> Blobs {
        Blobs::open(folder.path(), [7; 32], "http://here".into(), clock.clone()).unwrap()
    }

    fn signed(address: &str) -> (String, Signed) {
        let url = url::Url::parse(address).unwrap();
        let pairs: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
        let key = url.path().strip_prefix("/v1/blobs/").unwrap().to_owned();
        let signed = Signed {
            expires: pairs["expires"].parse().unwrap(),
            signature: pairs["signature"].clone(),
            filename: pairs.get("filename").cloned(),
        };
        (key, signed)
    }

    #[test]
    fn a_signature_opens_its_key_method_and_time_alone() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let (key, signed) = signed(&blobs.signed_get_url("ns_1/a/b.txt", Some("my file.txt"), 60));
        assert!(blobs.check("GET", &key, &signed).is_ok());
        assert!(blobs.check("PUT", &key, &signed).is_err());
        assert!(blobs.check("GET", "ns_2/a/b.txt", &signed).is_err());
        clock.advance(61);
        assert!(blobs.check("GET", &key, &signed).is_err());
    }

    #[tokio::test]
    async fn files_come_back_and_go_by_prefix() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        blobs.put("ns_1/a/x.txt", "one").await.unwrap();
        blobs.put("ns_1/ab/x.txt", "two").await.unwrap();
        assert_eq!(blobs.get("ns_1/a/x.txt").await.unwrap(), "one");
        blobs.delete_all("ns_1/a").await.unwrap();
        assert!(blobs.head("ns_1/a/x.txt").await.unwrap().is_none());
        assert_eq!(blobs.head("ns_1/ab/x.txt").await.unwrap().unwrap().size, 3);
        assert!(blobs.get("../secret").await.is_err());
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
        }
    }
}
