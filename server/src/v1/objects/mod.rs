//! Objects: what a bucket holds, members and files together.

pub mod blobs;
mod creating;
mod decomposing;
mod fetching;
pub mod listing;
mod routes;
mod schema;
pub mod shelving;
pub mod store;

use std::sync::Arc;

use loupe_engine::filter::Filter;
use loupe_wire::{
    BlobModel, BucketResponse, NamespaceOperation, Object, ObjectResponse, PatchObjectRequest,
    ResourceType, UpdateObjectRequest, Value,
};
use serde_json::json;
use sha2::{Digest, Sha256};

pub use creating::{Outcome, Policy, create, create_many, policy};
pub use fetching::Pace;
use utoipa_axum::router::OpenApiRouter;

/// Every operation on objects.
pub fn router() -> OpenApiRouter<App> {
    routes::router().merge(decomposing::router())
}

use super::{
    audit::{self, PartOf},
    buckets::BUCKETS,
    documents,
    namespaces::push_event,
    removal, syncs,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{ApiError, Result, Violation},
};

/// Presigned addresses live this long.
const LINK_SECONDS: u64 = 3600;

/// The bucket, from memory if nothing changed, if the caller's scopes cover it.
pub async fn bucket<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<Arc<Record<BucketResponse>>> {
    let record = BUCKETS
        .known(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Bucket, &record.id, operation)?;
    Ok(record)
}

fn unique_key(bucket: &BucketResponse, fields: &Object) -> Result<Option<String>> {
    let Some(key) = &bucket.unique_key else {
        return Ok(None);
    };
    let mut values = Vec::new();
    for field in &key.fields {
        match fields.get(field).filter(|value| !value.is_null()) {
            Some(value) => values.push(value.clone()),
            None => {
                return Err(ApiError::bad_request(
                    "",
                    format!("the bucket's unique key needs the field '{field}'"),
                )
                .with("field", field.as_str()));
            }
        }
    }
    Ok(Some(Value::Array(values).to_string()))
}

/// The same members and files give the same hash, in whatever order they were sent.
fn content_hash<'a>(
    fields: &Object,
    files: impl Iterator<Item = (&'a String, &'a String)>,
) -> String {
    fn canonical(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let sorted: std::collections::BTreeMap<_, _> = members
                    .iter()
                    .map(|(name, value)| (name.clone(), canonical(value)))
                    .collect();
                Value::Object(sorted.into_iter().collect())
            }
            Value::Array(items) => items.iter().map(canonical).collect(),
            other => other.clone(),
        }
    }
    let mut files: Vec<_> = files.collect();
    files.sort();
    let whole = json!([canonical(&Value::Object(fields.clone())), files]);
    hex::encode(Sha256::digest(whole.to_string()))
}

/// What an event of an object says.
pub fn payload(object: &ObjectResponse) -> Value {
    json!({"bucket_id": object.bucket_id, "object_id": object.object_id})
}

pub async fn get<L: Level>(
    app: &App,
    scope: &Scope<L>,
    bucket: &str,
    object_id: &str,
) -> Result<ObjectResponse> {
    let bucket = self::bucket(app, scope, bucket, NamespaceOperation::ReadData).await?;
    let bucket_id = bucket.id.clone();
    let found = store::find(app.db(), &scope.namespace_id, &bucket_id, object_id).await?;
    found.ok_or_else(|| ApiError::not_found("object", object_id))
}

/// Documents made from the object, of those that the caller sees and the key's scopes cover.
pub async fn count_documents<L: Level>(
    app: &App,
    scope: &Scope<L>,
    object_id: &str,
) -> Result<i64> {
    let sight = documents::everywhere(app, scope).await?;
    let filter =
        json!({"field": "_internal.lineage.root_object_id", "operator": "eq", "value": object_id});
    let filter = Filter::parse(&filter).map_err(|error| ApiError::internal(error.msg))?;
    let count = sight.count(app, Some(filter)).await?;
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Gives every file an address that reads it.
pub fn presign(app: &App, object: &mut ObjectResponse) {
    for blob in &mut object.blobs {
        let filename = blob
            .details
            .as_ref()
            .and_then(|details| details.filename.clone());
        if let Some(key) = blobs::key(blob).map(ToOwned::to_owned) {
            let url = app
                .blobs()
                .signed_get_url(&key, filename.as_deref(), LINK_SECONDS);
            blob.presigned_url = Some(url);
        }
    }
}

/// Refuses to look for others with the same content: an object that is changed stays the one that it is.
fn check_change(skip_duplicates: Option<bool>) -> Result<()> {
    if skip_duplicates != Some(true) {
        return Ok(());
    }
    let msg = "skip_duplicates is for new objects: one that is changed stays the one that it is";
    Err(Violation::body(&["skip_duplicates"], "not_enabled", msg, true.into()).into())
}

/// A change of an object's members.
pub struct Change {
    pub key_prefix: Option<String>,
    pub fields: Object,
    /// Members that are not sent go away.
    pub replace: bool,
}

impl From<PatchObjectRequest> for Change {
    fn from(request: PatchObjectRequest) -> Self {
        Self {
            key_prefix: request.key_prefix,
            fields: request.extra,
            replace: false,
        }
    }
}

impl From<UpdateObjectRequest> for Change {
    fn from(request: UpdateObjectRequest) -> Self {
        let mut fields = request.extra;
        if let Some(metadata) = request.metadata {
            fields.insert("metadata".into(), Value::Object(metadata));
        }
        Self {
            key_prefix: request.key_prefix,
            fields,
            replace: true,
        }
    }
}

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    object_id: &str,
    change: Change,
) -> Result<ObjectResponse> {
    let bucket = self::bucket(app, scope, bucket, NamespaceOperation::WriteData).await?;
    let bucket_id = bucket.bucket_id.clone().unwrap_or_default();
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let (object_id, now) = (object_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Held before it is read: of two changes at once the second one sees the first.
                store::hold(tx, &namespace_id, &object_id).await?;
                let found = store::find_in(tx, &namespace_id, &bucket_id, &object_id).await?;
                let mut object = found.ok_or_else(|| ApiError::not_found("object", &object_id))?;
                let mut fields = change.fields;
                if !change.replace {
                    let sent = std::mem::replace(&mut fields, object.extra.clone());
                    fields.extend(sent);
                }
                let kinds: Vec<_> = object
                    .blobs
                    .iter()
                    .map(|blob| (blob.property.clone(), blob.r#type))
                    .collect();
                let faults =
                    schema::check(bucket.bucket_schema.as_ref(), &mut fields, &kinds, false);
                if !faults.is_empty() {
                    return Err(ApiError::Validation(faults));
                }
                let unique_key = unique_key(&bucket, &fields)?;
                if let Some(key) = &unique_key {
                    check_unique(tx, &namespace_id, &bucket_id, &object, key).await?;
                }
                let columns = columns(&object, &fields, unique_key);
                object.extra = fields;
                object.key_prefix = change.key_prefix.or(object.key_prefix);
                object.updated_at = Some(clock::time(now));
                match store::update(tx, &namespace_id, &object, &columns, now).await {
                    Ok(true) => {}
                    Ok(false) => return Err(ApiError::not_found("object", &object_id)),
                    // Somebody took the key since it was looked for.
                    Err(error) if error.has_code("name_taken") => return Err(key_taken()),
                    Err(error) => return Err(error),
                }
                let payload = payload(&object);
                push_event(tx, &org_id, &namespace_id, "object.updated", payload, now).await?;
                Ok(object)
            })
        })
        .await
}

/// Refuses a unique key that another object of the bucket has.
async fn check_unique(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    object: &ObjectResponse,
    key: &str,
) -> Result<()> {
    let same = store::Same::UniqueKey(key);
    let other = store::find_same(tx, namespace_id, bucket_id, same).await?;
    if other.is_some_and(|other| other.object_id != object.object_id) {
        return Err(key_taken());
    }
    Ok(())
}

fn key_taken() -> ApiError {
    ApiError::conflict("unique_key_conflict", "another object has this unique key")
}

/// The columns of an object that keeps its files and has other fields.
fn columns(object: &ObjectResponse, fields: &Object, unique_key: Option<String>) -> store::Columns {
    let details = |blob: &BlobModel| blob.details.clone().unwrap_or_default();
    let files: Vec<(String, String)> = object
        .blobs
        .iter()
        .map(|blob| {
            (
                blob.property.clone(),
                details(blob).hash.unwrap_or_default(),
            )
        })
        .collect();
    let sizes = object
        .blobs
        .iter()
        .filter_map(|blob| details(blob).size_bytes);
    store::Columns {
        unique_key,
        content_hash: content_hash(fields, files.iter().map(|(name, hash)| (name, hash))),
        idempotency_key: None,
        size_bytes: sizes.sum(),
    }
}

/// Removes objects in the transaction of what they lost; files and documents go right after, by a task. Ids of objects that
/// are gone already are passed over. Answers how many files of syncs had their content in these objects alone.
pub async fn remove_in(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    bucket_id: &str,
    object_ids: &[String],
    now: i64,
) -> Result<u64> {
    let (mut gone, mut freed) = (Vec::with_capacity(object_ids.len()), 0);
    for object in store::find_many(tx, namespace_id, bucket_id, object_ids).await? {
        let object_id = object.object_id.clone().unwrap_or_default();
        // Told once, even when two remove it at once.
        if store::delete(tx, namespace_id, &object_id).await? == 1 {
            freed += syncs::forget_borrowed(tx, namespace_id, &object_id).await?;
            gone.push(object);
        }
    }
    let left = removal::Gone::objects(&gone);
    removal::enqueue(tx, org_id, namespace_id, left, now).await?;
    for object in &gone {
        push_event(
            tx,
            org_id,
            namespace_id,
            "object.deleted",
            payload(object),
            now,
        )
        .await?;
    }
    Ok(freed)
}

/// Removes the object; its files and its documents in every collection go right after, by a task.
pub async fn delete(app: &App, scope: &Scope<Delete>, bucket: &str, object_id: &str) -> Result<()> {
    let bucket = self::bucket(app, scope, bucket, NamespaceOperation::DeleteData).await?;
    let bucket_id = bucket.id.clone();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let (object_id, now) = (object_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                // Of two removals at once the second one finds nothing, and one is told.
                store::hold(tx, &namespace_id, &object_id).await?;
                let found = store::find_in(tx, &namespace_id, &bucket_id, &object_id).await?;
                found.ok_or_else(|| ApiError::not_found("object", &object_id))?;
                let changes = json!({"change": "object_deleted", "object_id": object_id});
                let whole = PartOf::Bucket(&bucket_id);
                audit::record_part(tx, &caller, whole, changes, now).await?;
                let ids = std::slice::from_ref(&object_id);
                remove_in(tx, &caller.org_id, &namespace_id, &bucket_id, ids, now).await?;
                Ok(())
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}
