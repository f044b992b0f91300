//! Uploads: a file is sent straight to the blob store by a signed address, then confirmed.

mod confirming;
mod expiry;
mod parts;
mod processing;
mod routes;
pub mod store;

use std::sync::Arc;

use chrono::Duration;
use loupe_wire::{
    BatchUploadRequest, BatchUploadResponse, BucketResponse, BucketSchemaFieldType as Kind,
    CreateUploadRequest, NamespaceOperation, Object, TaskStatusEnum, UploadResponse, reading,
};
use serde_json::json;

pub use confirming::{confirm, confirm_later, confirm_many};
pub use expiry::sweep;
pub use parts::abandon_all;
pub use routes::router;

use super::{
    audit::{self, PartOf},
    buckets::destinations,
    objects,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    blob::{self, safe_name},
    db::Record,
    error::{ApiError, Result, Violation},
    id,
};

/// The property that an object's file gets when the upload names none and the bucket has one file property.
const DEFAULT_PROPERTY: &str = "content";

/// Where everything of an upload is: where files of its bucket went when it was announced.
pub fn folder(upload: &UploadResponse) -> String {
    let root = blob::root(&upload.s3_key);
    format!("{root}/uploads/{}", upload.upload_id)
}

/// Where the file of an upload arrives.
fn arrival(upload: &UploadResponse) -> String {
    format!("{}/{}", folder(upload), safe_name(&upload.filename))
}

/// Where the file of a confirmed upload is kept. No address that takes a file leads there, so its bytes never change; each
/// confirmation has a place of its own.
fn sealed(upload: &UploadResponse, claimed: i64) -> String {
    let (folder, name) = (folder(upload), safe_name(&upload.filename));
    format!("{folder}/{claimed}/{name}")
}

/// Refuses bytes for an upload that does not wait for them any more. A key of something else is none of its business.
///
/// # Errors
/// The upload is confirmed or being confirmed, has expired, or is gone.
pub async fn check_waiting(app: &App, key: &str) -> Result<()> {
    let root = blob::root(key);
    let namespace_id = root.split('/').next();
    let mut pieces = key
        .strip_prefix(root)
        .unwrap_or_default()
        .split('/')
        .skip(1);
    let (Some(namespace_id), Some("uploads"), Some(upload_id)) =
        (namespace_id, pieces.next(), pieces.next())
    else {
        return Ok(());
    };
    let found = store::find_at(app.db(), namespace_id, upload_id).await?;
    let upload = found.ok_or_else(|| ApiError::gone("", "the upload was deleted"))?;
    match upload.status {
        TaskStatusEnum::Completed => Err(ApiError::conflict(
            "upload_confirmed",
            "the upload is confirmed: its file does not change any more",
        )),
        TaskStatusEnum::Processing => Err(ApiError::conflict(
            "upload_confirming",
            "the upload is being confirmed",
        )
        .retry_after(1)),
        TaskStatusEnum::Canceled => Err(ApiError::gone("", "the upload was canceled")),
        _ if upload.expires_at <= app.clock().now() => Err(expiry::gone()),
        _ => Ok(()),
    }
}

fn kind_of(content_type: &str) -> Kind {
    match content_type.split('/').next().unwrap_or_default() {
        "image" => Kind::Image,
        "audio" => Kind::Audio,
        "video" => Kind::Video,
        _ if content_type.starts_with("application/pdf") => Kind::Pdf,
        _ if content_type.contains("spreadsheet") || content_type.contains("excel") => Kind::Excel,
        _ => Kind::Text,
    }
}

/// Which property of the bucket the file goes to, and as what.
fn place(bucket: &BucketResponse, upload: &UploadResponse) -> Result<(String, Kind)> {
    let sent = upload.blob_type.as_deref().map(|name| {
        reading::from_value::<Kind>(&name.to_ascii_lowercase().into()).map_err(|_| {
            let msg = "this is not a type of a bucket's schema";
            ApiError::from(Violation::body(&["blob_type"], "enum", msg, name.into()))
        })
    });
    let kind = sent
        .transpose()?
        .unwrap_or_else(|| kind_of(&upload.content_type));
    let properties = bucket
        .bucket_schema
        .as_ref()
        .map(|schema| &schema.properties);
    let declared = |name: &str| {
        properties
            .and_then(|all| all.get(name))
            .map(|field| field.r#type)
    };
    if let Some(name) = &upload.blob_property {
        return Ok((name.clone(), declared(name).unwrap_or(kind)));
    }
    // The first property of that kind.
    let fitting = properties
        .into_iter()
        .flatten()
        .find(|(_, field)| field.r#type == kind);
    Ok(fitting.map_or_else(
        || (DEFAULT_PROPERTY.to_owned(), kind),
        |(name, field)| (name.clone(), field.r#type),
    ))
}

/// Refuses what cannot become a file of the bucket: told now, not after the file was sent.
///
/// # Errors
/// The disk is full, the file too large, or no property takes it.
pub fn check(app: &App, bucket: &BucketResponse, request: &CreateUploadRequest) -> Result<()> {
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let limit = i64::try_from(app.config().limits.upload_bytes).unwrap_or(i64::MAX);
    if request.file_size_bytes.is_some_and(|size| size > limit) {
        let mut fault = Violation::body(
            &["file_size_bytes"],
            "less_than_equal",
            format!("a file has at most {limit} bytes"),
            request.file_size_bytes.into(),
        );
        fault.ctx = json!({ "le": limit });
        return Err(fault.into());
    }
    let upload = UploadResponse {
        content_type: request.content_type.clone(),
        blob_property: request.blob_property.clone(),
        blob_type: request.blob_type.clone(),
        ..Default::default()
    };
    place(bucket, &upload)?;
    check_property(bucket, request)
}

/// The object that a confirmation makes could not have the file.
fn check_property(bucket: &BucketResponse, request: &CreateUploadRequest) -> Result<()> {
    let schema = bucket.bucket_schema.as_ref();
    let known = schema.map(|schema| &schema.properties);
    // A bucket without properties takes any.
    let known = known.filter(|known| request.create_object_on_confirm && !known.is_empty());
    match (known, &request.blob_property) {
        (Some(known), Some(name)) if !known.contains_key(name) => {
            let all: Vec<&str> = known.keys().map(String::as_str).collect();
            let msg = format!(
                "the bucket's schema has no field '{name}'; it has: {}",
                all.join(", ")
            );
            let input = name.clone().into();
            Err(Violation::body(&["blob_property"], "value_error", msg, input).into())
        }
        _ => Ok(()),
    }
}

/// What is answered in place of another upload of the same file.
fn duplicate_of(first: UploadResponse) -> UploadResponse {
    UploadResponse {
        is_duplicate: true,
        duplicate_of_upload_id: Some(first.upload_id.clone()),
        existing_object_id: first.object_id.clone(),
        message: Some("the same file was uploaded before: nothing to send".into()),
        presigned_url: None,
        ..first
    }
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    request: CreateUploadRequest,
) -> Result<UploadResponse> {
    check(app, bucket, &request)?;
    let (namespace_id, bucket_id) = (
        scope.namespace_id.clone(),
        bucket.bucket_id.clone().unwrap_or_default(),
    );
    if let (true, Some(hash)) = (request.skip_duplicates, &request.file_hash)
        && let Some(first) = store::find_same(app.db(), &namespace_id, &bucket_id, hash).await?
    {
        return Ok(duplicate_of(first));
    }
    let (upload_id, now) = (id::new("upl_"), app.clock().micros());
    let at = crate::clock::time(now);
    let root = destinations::root(&namespace_id, bucket);
    let key = format!(
        "{root}/uploads/{upload_id}/{}",
        safe_name(&request.filename)
    );
    let ttl = u64::try_from(request.presigned_url_expiration).unwrap_or(3600);
    let upload = UploadResponse {
        upload_id,
        bucket_id,
        filename: request.filename,
        content_type: request.content_type,
        file_size_bytes: request.file_size_bytes,
        presigned_url: None,
        presigned_url_expiration: request.presigned_url_expiration,
        s3_key: key.clone(),
        status: TaskStatusEnum::Pending,
        metadata: request.metadata.unwrap_or_default(),
        create_object_on_confirm: request.create_object_on_confirm,
        object_metadata: request.object_metadata,
        blob_property: request.blob_property,
        blob_type: request.blob_type,
        file_hash: request.file_hash,
        skip_duplicates: request.skip_duplicates,
        created_at: at,
        expires_at: at + Duration::seconds(request.presigned_url_expiration),
        ..Default::default()
    };
    let mut upload = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::insert(tx, &namespace_id, &upload, now).await?;
                Ok(upload)
            })
        })
        .await?;
    // The address is a secret: it is answered, never stored.
    upload.presigned_url = Some(app.blobs().signed_put_url(&key, ttl));
    Ok(upload)
}

/// Announces several files; none where one of them is wrong, so that nobody has to find out which were.
pub async fn create_many(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    request: BatchUploadRequest,
) -> Result<BatchUploadResponse> {
    for (index, upload) in request.uploads.iter().enumerate() {
        check(app, bucket, upload)
            .map_err(|error| error.under(&["uploads", &index.to_string()]))?;
    }
    let mut uploads = Vec::with_capacity(request.uploads.len());
    for mut upload in request.uploads {
        upload.metadata = merged(request.shared_metadata.as_ref(), upload.metadata);
        upload.object_metadata = merged(
            request.shared_object_metadata.as_ref(),
            upload.object_metadata,
        );
        uploads.push(create(app, scope, bucket, upload).await?);
    }
    Ok(BatchUploadResponse {
        total: i64::try_from(uploads.len()).unwrap_or(i64::MAX),
        uploads,
    })
}

/// An upload's own members win over the shared ones.
fn merged(shared: Option<&Object>, own: Option<Object>) -> Option<Object> {
    let Some(mut all) = shared.cloned() else {
        return own;
    };
    all.extend(own.unwrap_or_default());
    Some(all)
}

/// With its bucket, if the caller's scopes cover it.
pub async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    bucket: &str,
    upload_id: &str,
    operation: NamespaceOperation,
) -> Result<(Arc<Record<BucketResponse>>, UploadResponse)> {
    let bucket = objects::bucket(app, scope, bucket, operation).await?;
    let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
    let found = store::find(app.db(), &scope.namespace_id, bucket_id, upload_id).await?;
    let upload = found.ok_or_else(|| ApiError::not_found("upload", upload_id))?;
    Ok((bucket, upload))
}

pub async fn delete(
    app: &App,
    scope: &Scope<Delete>,
    bucket: &str,
    upload_id: &str,
    with_file: bool,
) -> Result<()> {
    let operation = NamespaceOperation::DeleteData;
    let (_, upload) = find(app, scope, bucket, upload_id, operation).await?;
    parts::abandon(app, &scope.namespace_id, &upload).await?;
    if with_file {
        // An object made from the upload has its own copy.
        let folder = folder(&upload);
        app.blobs().delete_all(&folder).await?;
    }
    let (caller, now) = (scope.caller.clone(), app.clock().micros());
    let (namespace_id, bucket_id) = (scope.namespace_id.clone(), upload.bucket_id);
    let upload_id = upload.upload_id;
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Of two removals at once one is told.
                if !store::delete(tx, &namespace_id, &upload_id).await? {
                    return Err(ApiError::not_found("upload", &upload_id));
                }
                let changes = json!({"change": "upload_deleted", "upload_id": upload_id});
                let whole = PartOf::Bucket(&bucket_id);
                audit::record_part(tx, &caller, whole, changes, now).await
            })
        })
        .await
}
