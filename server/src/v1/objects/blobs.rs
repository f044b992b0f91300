//! The files of an object: given inline, as base64, or by an upload.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use loupe_wire::{
    BlobDetails, BlobModel, BucketSchemaFieldType as Kind, CreateBlobRequest, ObjectResponse,
    TaskStatusEnum, UploadResponse, Value,
};
use sha2::{Digest, Sha256};

use super::schema::is_file;
use crate::{
    app::App,
    blob::safe_name,
    error::{ApiError, Result, Violation},
    id,
    v1::uploads,
};

/// Where an object's own files are.
pub fn folder(namespace_id: &str, object_id: &str) -> String {
    format!("{namespace_id}/objects/{object_id}")
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

/// A blob read from a request, not yet kept.
pub enum Source {
    Bytes {
        bytes: Bytes,
        mime: String,
        filename: String,
    },
    /// A confirmed upload's file.
    Upload(Box<UploadResponse>),
}

/// Reads one blob of a request, without keeping anything.
pub async fn read(
    app: &App,
    namespace_id: &str,
    bucket_id: &str,
    index: usize,
    request: &CreateBlobRequest,
    confirming: Option<&UploadResponse>,
) -> Result<Source> {
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
            let upload = uploads::store::find(app.db(), namespace_id, bucket_id, upload_id).await?;
            let upload = upload.ok_or_else(|| ApiError::not_found("upload", upload_id))?;
            if upload.status != TaskStatusEnum::Completed {
                return Err(
                    ApiError::conflict("upload_not_confirmed", "confirm the upload first")
                        .with("upload_id", upload_id.as_str()),
                );
            }
            Ok(Source::Upload(Box::new(upload)))
        }
        (Some(data), None) => {
            let source = inline(request, data).map_err(|msg| fault("data", &msg))?;
            if let (Source::Bytes { bytes, .. }, Some(checksum)) = (&source, &request.checksum) {
                let found = hex::encode(Sha256::digest(bytes));
                let checksum = checksum.strip_prefix("sha256:").unwrap_or(checksum);
                if checksum.len() == 64 && !checksum.eq_ignore_ascii_case(&found) {
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
            return Err("a file is sent as base64 text or a data URI, or by upload_id".into());
        }
        other => {
            let bytes = serde_json::to_vec(other).map_err(|error| error.to_string())?;
            return Ok(bytes_named(request, bytes, "application/json"));
        }
    };
    if text.starts_with("http://") || text.starts_with("https://") {
        if is_file(request.r#type) {
            return Err("files are not fetched from addresses: upload the file (POST …/uploads) and send its upload_id, or send it as base64".into());
        }
    } else if let Some((mime, bytes)) = data_uri(text)? {
        return Ok(bytes_named(request, bytes, &mime));
    } else if is_file(request.r#type) {
        let bytes = STANDARD
            .decode(text.as_bytes())
            .map_err(|_| "the data is neither base64 nor a data URI")?;
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

const fn default_mime(kind: Kind) -> &'static str {
    match kind {
        Kind::Image => "image/jpeg",
        Kind::Audio => "audio/mpeg",
        Kind::Video => "video/mp4",
        Kind::Pdf => "application/pdf",
        Kind::Excel => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        _ => "text/plain",
    }
}

fn bytes_named(request: &CreateBlobRequest, bytes: Vec<u8>, mime: &str) -> Source {
    let given = request
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.get("filename"))
        .and_then(Value::as_str)
        .or(request
            .key_prefix
            .as_deref()
            .filter(|key| key.contains('.')));
    let filename = given.map_or_else(
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
        safe_name,
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
    }
}

/// Keeps the blob under its object.
pub async fn keep(
    app: &App,
    namespace_id: &str,
    object_id: &str,
    request: CreateBlobRequest,
    source: Source,
) -> Result<BlobModel> {
    let hash = hash(&source);
    let blob_id = id::new("blob_");
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
    };
    let key = format!(
        "{}/{blob_id}/{}",
        folder(namespace_id, object_id),
        safe_name(&filename)
    );
    match source {
        Source::Bytes { bytes, .. } => {
            app.blobs().put(&key, bytes).await?;
        }
        Source::Upload(upload) => app.blobs().copy(&upload.s3_key, &key).await?,
    }
    let mut properties = request.metadata.unwrap_or_default();
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
