//! The files of an object: given inline, as base64, by an address, or by an upload.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use loupe_wire::{
    BlobDetails, BlobModel, BucketSchemaFieldType as Kind, CreateBlobRequest, CreateObjectRequest,
    ObjectResponse, TaskStatusEnum, UploadResponse, Value,
};
use sha2::{Digest, Sha256};

use super::{
    fetching::{self, Fetched, Patience},
    schema::is_file,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    blob::{self, safe_name, shown_name},
    error::{ApiError, Result, Violation},
    id,
    v1::uploads,
};

/// What names the storage connection of a file.
pub const CONNECTION: &str = "connection_id";

/// Where an object's own files are, below what keys of its bucket begin with.
pub fn folder(root: &str, object_id: &str) -> String {
    format!("{root}/objects/{object_id}")
}

/// Where objects may have files of their own, some of which have these keys.
pub fn folders(namespace_id: &str, object_ids: &[String], keys: &[String]) -> BTreeSet<String> {
    let roots = keys.iter().map(|key| blob::root(key));
    let roots: BTreeSet<&str> = roots.chain([namespace_id]).collect();
    let of = |id: &String| {
        roots
            .iter()
            .map(|root| folder(root, id))
            .collect::<Vec<_>>()
    };
    object_ids.iter().flat_map(of).collect()
}

/// The store's key of a blob.
pub fn key(blob: &BlobModel) -> Option<&str> {
    blob.properties
        .get("url")
        .and_then(Value::as_str)
        .and_then(|url| url.strip_prefix("blob://"))
}

/// The store's keys of an object's files.
pub fn keys(object: &ObjectResponse) -> impl Iterator<Item = String> + '_ {
    object
        .blobs
        .iter()
        .filter_map(|blob| key(blob).map(ToOwned::to_owned))
}

/// Decides for each file whether it stays at its source: its own word, else its object's. What is copied is so anew for every
/// object, so `force_remirror` is what happens anyway.
///
/// # Errors
/// The 422 list where a file is to stay at a source that this server does not read files from in place.
pub fn settle_sources(request: &mut CreateObjectRequest) -> Result<()> {
    let whole = request.canonicalize_source;
    for (index, blob) in request.blobs.iter_mut().flatten().enumerate() {
        let own = blob.canonicalize_source;
        let address = match (&blob.data, &blob.upload_id) {
            (Some(Value::String(text)), None) => text.as_str(),
            _ => "",
        };
        let has_source = is_fetched(blob, address);
        let in_storage = has_source && address.starts_with("s3://");
        let stays = !own.unwrap_or(whole);
        // What is sent itself has no source: an object's word does not mean it.
        if stays && !in_storage && (has_source || own.is_some()) {
            let path = ["blobs", &index.to_string(), "canonicalize_source"];
            let msg = "only files of a storage connection (s3://) stay at their source: this one is copied to this server";
            return Err(Violation::body(&path, "not_enabled", msg, false.into()).into());
        }
        blob.canonicalize_source = Some(!(stays && in_storage));
    }
    Ok(())
}

/// Connections and buckets of objects whose files are read through them, for they stay at their source.
pub fn sources<'o>(
    objects: impl Iterator<Item = &'o ObjectResponse>,
) -> BTreeSet<(String, String)> {
    let mut sources = BTreeSet::new();
    for object in objects {
        for blob in &object.blobs {
            let id = blob.properties.get(CONNECTION).and_then(Value::as_str);
            if let (Some(id), true) = (id, key(blob).is_some_and(blob::is_linked)) {
                sources.insert((id.to_owned(), object.bucket_id.clone()));
            }
        }
    }
    sources
}

/// A blob read from a request, not yet kept.
pub enum Source {
    Bytes {
        bytes: Bytes,
        mime: String,
        filename: String,
    },
    /// A confirmed upload's file.
    Upload(Box<UploadResponse>),
    /// A file that was fetched, and is kept already; or that stays where it is, which is kept.
    Fetched(Box<Fetched>),
}

/// What a blob is read for.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub app: &'a App,
    pub scope: &'a Scope<Write>,
    pub bucket_id: &'a str,
    pub object_id: &'a str,
    /// Where the object's files go.
    pub folder: &'a str,
    /// An upload that may be used although its confirmation is still under way.
    pub confirming: Option<&'a UploadResponse>,
    pub patience: Patience,
}

/// Reads one blob of a request. Only a file that is fetched is kept at once.
pub async fn read(
    reading: Reading<'_>,
    index: usize,
    request: &CreateBlobRequest,
) -> Result<Source> {
    let Reading {
        app,
        scope,
        bucket_id,
        confirming,
        ..
    } = reading;
    let place = index.to_string();
    let fault = |member: &str, msg: &str| {
        let path = ["blobs", place.as_str(), member];
        ApiError::from(Violation::body(&path, "value_error", msg, Value::Null))
    };
    match (&request.data, &request.upload_id) {
        (Some(_), Some(_)) => Err(fault("data", "send data or upload_id, not both")),
        (None, None) => Err(fault("data", "send data or upload_id")),
        (None, Some(upload_id)) => {
            if let Some(upload) = confirming.filter(|upload| upload.upload_id == *upload_id) {
                return Ok(Source::Upload(Box::new(upload.clone())));
            }
            let upload =
                uploads::store::find(app.db(), &scope.namespace_id, bucket_id, upload_id).await?;
            let upload = upload.ok_or_else(|| ApiError::not_found("upload", upload_id))?;
            if upload.status != TaskStatusEnum::Completed {
                return Err(
                    ApiError::conflict("upload_not_confirmed", "confirm the upload first")
                        .with("upload_id", upload_id.as_str()),
                );
            }
            Ok(Source::Upload(Box::new(upload)))
        }
        (Some(Value::String(address)), None) if is_fetched(request, address) => {
            let fetched = fetching::fetch(reading, request, address).await;
            let fetched = fetched.map_err(|error| match error.kind() {
                "BadRequestError" => fetching::fault(index, &error),
                _ => error,
            });
            Ok(Source::Fetched(Box::new(fetched?)))
        }
        (Some(data), None) => {
            let source = inline(request, data).map_err(|msg| fault("data", &msg))?;
            if let (Source::Bytes { bytes, .. }, Some(checksum)) = (&source, &request.checksum) {
                let found = hex::encode(Sha256::digest(bytes));
                if !is_sha256(checksum, &found) {
                    return Err(fault("checksum", "the data has another sha256"));
                }
            }
            Ok(source)
        }
    }
}

fn inline(request: &CreateBlobRequest, data: &Value) -> std::result::Result<Source, String> {
    let text = match data {
        Value::String(text) => text,
        _ if is_file(request.r#type) => {
            return Err(
                "a file is sent as base64 text, a data URI or an address, or by upload_id".into(),
            );
        }
        other => {
            let bytes = serde_json::to_vec(other).map_err(|error| error.to_string())?;
            return Ok(bytes_named(request, bytes, "application/json"));
        }
    };
    if let Some((mime, bytes)) = data_uri(text)? {
        return Ok(bytes_named(request, bytes, &mime));
    } else if is_file(request.r#type) {
        let bytes = STANDARD.decode(text.as_bytes()).map_err(
            |_| "the data is neither base64 nor a data URI nor an address (http, https, s3)",
        )?;
        return Ok(bytes_named(request, bytes, default_mime(request.r#type)));
    }
    Ok(bytes_named(request, text.as_bytes().to_vec(), "text/plain"))
}

/// `data:image/png;base64,…`.
fn data_uri(text: &str) -> std::result::Result<Option<(String, Vec<u8>)>, String> {
    let Some((head, body)) = text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
    else {
        return Ok(None);
    };
    let Some(mime) = head.strip_suffix(";base64") else {
        return Ok(None);
    };
    let bytes = STANDARD
        .decode(body.as_bytes())
        .map_err(|_| "the data URI is not base64")?;
    Ok(Some((mime.to_owned(), bytes)))
}

/// Whether data is the address of a file.
fn is_fetched(request: &CreateBlobRequest, data: &str) -> bool {
    (is_file(request.r#type) || names_storage(request, data)) && fetching::is_address(data)
}

/// Whether data is a file of a storage whatever its type: a text could begin like an address, but names no connection.
fn names_storage(request: &CreateBlobRequest, address: &str) -> bool {
    let metadata = request.metadata.as_ref();
    address.starts_with("s3://") && metadata.is_some_and(|one| one.contains_key(CONNECTION))
}

/// What a file of a kind mostly is.
pub const fn default_mime(kind: Kind) -> &'static str {
    match kind {
        Kind::Image => "image/jpeg",
        Kind::Audio => "audio/mpeg",
        Kind::Video => "video/mp4",
        Kind::Pdf => "application/pdf",
        Kind::Excel => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => "text/plain",
    }
}

/// The name that the request gives its file.
pub fn given_name(request: &CreateBlobRequest) -> Option<&str> {
    let metadata = request.metadata.as_ref();
    metadata
        .and_then(|metadata| metadata.get("filename")?.as_str())
        .or(request
            .key_prefix
            .as_deref()
            .filter(|key| key.contains('.')))
}

/// Whether a checksum is this SHA-256, or of another kind, which is not judged.
pub fn is_sha256(checksum: &str, found: &str) -> bool {
    let checksum = checksum.strip_prefix("sha256:").unwrap_or(checksum);
    checksum.len() != 64 || checksum.eq_ignore_ascii_case(found)
}

fn bytes_named(request: &CreateBlobRequest, bytes: Vec<u8>, mime: &str) -> Source {
    let filename = given_name(request).map_or_else(
        || {
            let extension = match mime {
                "text/plain" => "txt",
                "image/jpeg" => "jpg",
                _ => mime_guess::get_mime_extensions_str(mime)
                    .and_then(|all| all.first())
                    .copied()
                    .unwrap_or("bin"),
            };
            format!("{}.{extension}", request.property)
        },
        shown_name,
    );
    Source::Bytes {
        bytes: bytes.into(),
        mime: mime.to_owned(),
        filename,
    }
}

/// The content's SHA-256, known before anything is kept.
pub fn hash(source: &Source) -> String {
    match source {
        Source::Bytes { bytes, .. } => hex::encode(Sha256::digest(bytes)),
        Source::Upload(upload) => upload.file_hash.clone().unwrap_or_default(),
        Source::Fetched(fetched) => fetched.sha256.clone(),
    }
}

/// Keeps the blob in its object's folder.
pub async fn keep(
    app: &App,
    folder: &str,
    request: CreateBlobRequest,
    source: Source,
) -> Result<BlobModel> {
    let hash = hash(&source);
    let mut properties = request.metadata.unwrap_or_default();
    let mut blob_id = id::new("blob_");
    let (filename, mime, size) = match &source {
        Source::Bytes {
            bytes,
            mime,
            filename,
        } => (filename.clone(), mime.clone(), bytes.len() as u64),
        Source::Upload(upload) => (
            upload.filename.clone(),
            upload.content_type.clone(),
            u64::try_from(upload.file_size_bytes.unwrap_or(0)).unwrap_or(0),
        ),
        Source::Fetched(fetched) => (fetched.filename.clone(), fetched.mime.clone(), fetched.size),
    };
    let mut key = format!("{folder}/{blob_id}/{}", safe_name(&filename));
    match source {
        Source::Bytes { bytes, .. } => {
            app.blobs().put(&key, bytes).await?;
        }
        Source::Upload(upload) => app.blobs().copy(&upload.s3_key, &key).await?,
        Source::Fetched(fetched) => {
            (blob_id, key) = (fetched.blob_id, fetched.key);
            properties.insert("source_url".into(), fetched.from.into());
            if let Some(connection_id) = fetched.connection_id {
                properties.insert(CONNECTION.into(), connection_id.into());
                properties.insert("canonicalize_source".into(), false.into());
            }
        }
    }
    properties.insert("url".into(), format!("blob://{key}").into());
    Ok(BlobModel {
        blob_id: Some(blob_id),
        property: request.property,
        key_prefix: request.key_prefix,
        r#type: request.r#type,
        properties,
        presigned_url: None,
        details: Some(BlobDetails {
            filename: Some(filename),
            size_bytes: i64::try_from(size).ok(),
            mime_type: Some(mime),
            hash: Some(hash),
        }),
    })
}
