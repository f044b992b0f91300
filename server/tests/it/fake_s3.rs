//! A small S3: files, files in parts, copies, lists of a page at a time. It holds one bucket, `files`, for one key.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use loupe_server::config;
use sha2::{Digest, Sha256};

use crate::fetching::serve;

pub const KEY: &str = "AKIAFILES";

/// Real stores take no smaller part, but for the last one.
const LEAST: usize = 5 << 20;

#[derive(Default)]
struct Inner {
    files: BTreeMap<String, Bytes>,
    /// Parts of files that are not whole, by the id of their upload.
    parts: BTreeMap<String, BTreeMap<u32, Bytes>>,
    /// Method and key of what was asked by addresses that were signed before.
    direct: Vec<String>,
    /// Nothing is answered but that.
    down: bool,
    /// So many of the next requests are answered like that.
    failing: usize,
    /// Uploads in parts that began, and those that ended as a file.
    begun: usize,
    joined: usize,
}

#[derive(Clone, Default)]
pub struct Bucket {
    pub address: String,
    inner: Arc<Mutex<Inner>>,
}

impl Bucket {
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1").await
    }

    pub async fn start_at(at: &str) -> Self {
        let mut bucket = Self::default();
        let router = Router::new().fallback(answer).with_state(bucket.clone());
        bucket.address = serve(router, at).await;
        bucket
    }

    /// Settings of a server that keeps its files here.
    pub fn settings(&self) -> config::Blobs {
        config::Blobs {
            url: "s3://files/loupe".into(),
            endpoint: self.address.clone(),
            access_key_id: KEY.into(),
            secret_access_key: "a secret".into(),
            path_style: true,
            allow_http: true,
            ..config::Blobs::default()
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Keys below the servers' folder that start with this.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let prefix = format!("loupe/{prefix}");
        let inner = self.inner();
        let found = inner.files.keys().filter(|key| key.starts_with(&prefix));
        found.cloned().collect()
    }

    /// Every file by its key.
    pub fn files(&self) -> BTreeMap<String, Bytes> {
        self.inner().files.clone()
    }

    /// A file that is there before anybody asks.
    pub fn put(&self, key: &str, bytes: Vec<u8>) {
        self.inner().files.insert(key.to_owned(), bytes.into());
    }

    pub fn remove(&self, key: &str) {
        self.inner().files.remove(key);
    }

    pub fn set_down(&self, down: bool) {
        self.inner().down = down;
    }

    /// Answers so many requests with a failure before it works again.
    pub fn fail(&self, requests: usize) {
        self.inner().failing = requests;
    }

    pub fn direct(&self) -> Vec<String> {
        self.inner().direct.clone()
    }

    /// Files that came in parts, and uploads in parts that are not over.
    pub fn in_parts(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.joined, inner.parts.len())
    }
}

struct Asked {
    head: Parts,
    key: String,
    query: BTreeMap<String, String>,
    body: Bytes,
}

impl Asked {
    fn has(&self, name: &str) -> bool {
        self.query.contains_key(name)
    }

    fn upload(&self) -> String {
        self.query.get("uploadId").cloned().unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        text(&self.head.headers, name)
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

async fn answer(State(bucket): State<Bucket>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some(key) = head.uri.path().strip_prefix("/files") else {
        return refused(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let asked = Asked {
        key: key.trim_start_matches('/').to_owned(),
        query: url::form_urlencoded::parse(query).into_owned().collect(),
        body: axum::body::to_bytes(body, usize::MAX).await.unwrap(),
        head,
    };
    let credential = asked.query.get("X-Amz-Credential");
    let direct = credential.is_some_and(|one| one.starts_with(&format!("{KEY}/")));
    let ours = format!("AWS4-HMAC-SHA256 Credential={KEY}/");
    let presigned = direct && asked.has("X-Amz-Signature");
    if !presigned && !asked.header("authorization").starts_with(&ours) {
        return refused(StatusCode::FORBIDDEN, "AccessDenied");
    }
    let mut inner = bucket.inner();
    let failing = inner.failing > 0;
    inner.failing = inner.failing.saturating_sub(1);
    if inner.down || failing {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
    }
    if direct {
        inner
            .direct
            .push(format!("{} {}", asked.head.method, asked.key));
    }
    let method = asked.head.method.clone();
    match method {
        Method::GET if asked.has("list-type") => list(&inner, &asked),
        Method::GET if asked.has("uploadId") => list_parts(&inner, &asked),
        Method::GET | Method::HEAD => get(&inner, &asked),
        Method::PUT => put(&mut inner, asked),
        Method::POST => post(&mut inner, &asked),
        Method::DELETE if asked.has("uploadId") => {
            inner.parts.remove(&asked.upload());
            StatusCode::NO_CONTENT.into_response()
        }
        Method::DELETE => {
            inner.files.remove(&asked.key);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn refused(status: StatusCode, code: &str) -> Response {
    (status, format!("<Error><Code>{code}</Code></Error>")).into_response()
}

fn etag(bytes: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&Sha256::digest(bytes)[..16]))
}

fn put(inner: &mut Inner, asked: Asked) -> Response {
    let source = asked.header("x-amz-copy-source").trim_start_matches('/');
    if let Some(source) = source.strip_prefix("files/") {
        let Some(bytes) = inner.files.get(source).cloned() else {
            return refused(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let tag = etag(&bytes);
        inner.files.insert(asked.key, bytes);
        return format!("<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>").into_response();
    }
    let tag = [(header::ETAG, etag(&asked.body))];
    if let Some(number) = asked.query.get("partNumber") {
        let number = number.parse().unwrap();
        let Some(parts) = inner.parts.get_mut(&asked.upload()) else {
            return refused(StatusCode::NOT_FOUND, "NoSuchUpload");
        };
        parts.insert(number, asked.body);
        return tag.into_response();
    }
    inner.files.insert(asked.key, asked.body);
    tag.into_response()
}

fn post(inner: &mut Inner, asked: &Asked) -> Response {
    if asked.has("uploads") {
        inner.begun += 1;
        let id = format!("upload-{}", inner.begun);
        inner.parts.insert(id.clone(), BTreeMap::new());
        return format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>").into_response();
    }
    let Some(parts) = inner.parts.remove(&asked.upload()) else {
        return refused(StatusCode::NOT_FOUND, "NoSuchUpload");
    };
    let last = parts.len().saturating_sub(1);
    if parts.values().take(last).any(|part| part.len() < LEAST) {
        return refused(StatusCode::BAD_REQUEST, "EntityTooSmall");
    }
    let parts: Vec<Bytes> = parts.into_values().collect();
    let whole = parts.concat();
    let tag = etag(&whole);
    inner.joined += 1;
    inner.files.insert(asked.key.clone(), whole.into());
    format!("<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>")
        .into_response()
}

fn get(inner: &Inner, asked: &Asked) -> Response {
    let Some(bytes) = inner.files.get(&asked.key) else {
        return refused(StatusCode::NOT_FOUND, "NoSuchKey");
    };
    let told = |name: &str| asked.query.get(name).cloned();
    let kind = told("response-content-type").unwrap_or_else(|| "binary/octet-stream".into());
    let shown = told("response-content-disposition").unwrap_or_else(|| "inline".into());
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, shown),
        (header::ETAG, etag(bytes)),
        (
            header::LAST_MODIFIED,
            "Sat, 21 Nov 2026 10:00:00 GMT".into(),
        ),
    ];
    let range = asked.header("range").strip_prefix("bytes=");
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return (headers, bytes.clone()).into_response();
    };
    let first: usize = first.parse().unwrap();
    let end = last.parse::<usize>().map_or(bytes.len(), |last| last + 1);
    let end = end.min(bytes.len());
    let told = format!("bytes {first}-{}/{}", end - 1, bytes.len());
    let told = [(header::CONTENT_RANGE, told)];
    (
        StatusCode::PARTIAL_CONTENT,
        told,
        headers,
        bytes.slice(first..end),
    )
        .into_response()
}

fn list_parts(inner: &Inner, asked: &Asked) -> Response {
    let Some(parts) = inner.parts.get(&asked.upload()) else {
        return refused(StatusCode::NOT_FOUND, "NoSuchUpload");
    };
    let entries = parts.iter().map(|(number, bytes)| {
        let (size, tag) = (bytes.len(), etag(bytes).replace('"', "&quot;"));
        format!(
            "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag><Size>{size}</Size></Part>"
        )
    });
    let entries: String = entries.collect();
    format!("<ListPartsResult><Bucket>files</Bucket>{entries}</ListPartsResult>").into_response()
}

fn list(inner: &Inner, asked: &Asked) -> Response {
    let told = |name: &str| asked.query.get(name).cloned().unwrap_or_default();
    let (prefix, after) = (told("prefix"), told("continuation-token"));
    let mut found = inner
        .files
        .iter()
        .filter(|(key, _)| key.starts_with(&prefix) && **key > after);
    let page: Vec<_> = found.by_ref().take(2).collect();
    let next = found.next().and_then(|_| page.last()).map(|(key, _)| key);
    let token = next.map(|key| format!("<NextContinuationToken>{key}</NextContinuationToken>"));
    let entries = page.iter().map(|(key, bytes)| {
        let size = bytes.len();
        format!("<Contents><Key>{key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><Size>{size}</Size></Contents>")
    });
    let entries: String = entries.collect();
    let token = token.unwrap_or_default();
    format!("<ListBucketResult><Name>files</Name>{token}{entries}</ListBucketResult>")
        .into_response()
}
