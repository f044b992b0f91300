//! Objects: what a bucket holds, members and files together.

pub mod blobs;
mod routes;
mod schema;
pub mod store;

use loupe_engine::filter::Filter;
use loupe_wire::{
    BucketResponse, CreateObjectRequest, NamespaceOperation, Object, ObjectResponse,
    PatchObjectRequest, ResourceType, TaskType, UniqueKeyConfigDefaultPolicy, UpdateObjectRequest,
    UploadResponse, Value,
};
use serde_json::json;
use sha2::{Digest, Sha256};

pub use routes::router;

use super::{buckets::BUCKETS, collections::COLLECTIONS, namespaces::push_event, tasks};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    id,
};

/// Presigned addresses live this long.
const LINK_SECONDS: u64 = 3600;

/// The kind of task that removes files and documents of objects that are gone; see [`super::removal`].
pub const REMOVE_OBJECTS: &str = "remove_objects";

/// What a create does when the unique key exists.
pub type Policy = UniqueKeyConfigDefaultPolicy;

/// The bucket, if the caller's scopes cover it.
pub async fn bucket<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<BucketResponse> {
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Bucket, &record.id, operation)?;
    Ok(record.data.0)
}

/// `policy` of the query, else the bucket's, else insert.
pub fn policy(bucket: &BucketResponse, asked: Option<&str>) -> Result<Policy> {
    let Some(asked) = asked else {
        let default = bucket
            .unique_key
            .as_ref()
            .and_then(|key| key.default_policy);
        return Ok(default.unwrap_or_default());
    };
    let policy: Policy = serde_json::from_value(asked.into()).map_err(|_| {
        let msg = "policy is insert, update or upsert";
        ApiError::from(Violation::query("policy", "enum", msg, asked.into()))
    })?;
    if bucket.unique_key.is_none() && policy != Policy::Insert {
        return Err(ApiError::bad_request(
            "",
            "this policy needs a bucket with a unique key",
        ));
    }
    Ok(policy)
}

/// An object that was checked and whose files are kept, ready for its transaction.
pub struct Draft {
    object: ObjectResponse,
    columns: store::Columns,
    skip_duplicates: bool,
    policy: Policy,
}

/// How an object came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Updated,
    /// It was there already.
    Replayed,
    ReplayedByIdempotencyKey,
}

/// Checks the request against the bucket and keeps its files.
pub async fn prepare(
    app: &App,
    namespace_id: &str,
    bucket: &BucketResponse,
    mut request: CreateObjectRequest,
    policy: Policy,
    confirming: Option<&UploadResponse>,
) -> Result<Draft> {
    app.blobs()
        .check_room(app.config().limits.free_disk_bytes)?;
    let bucket_id = bucket.bucket_id.clone().unwrap_or_default();
    let asked = request.blobs.take().unwrap_or_default();
    let kinds: Vec<_> = asked
        .iter()
        .map(|blob| (blob.property.clone(), blob.r#type))
        .collect();
    let mut fields = std::mem::take(&mut request.extra);
    let faults = schema::check(bucket.bucket_schema.as_ref(), &mut fields, &kinds, false);
    if !faults.is_empty() {
        return Err(ApiError::Validation(faults));
    }
    let unique_key = unique_key(bucket, &fields)?;
    let mut sources = Vec::with_capacity(asked.len());
    for (index, blob) in asked.iter().enumerate() {
        sources.push(blobs::read(app, namespace_id, &bucket_id, index, blob, confirming).await?);
    }
    let hashes: Vec<String> = sources.iter().map(blobs::hash).collect();
    let content_hash = content_hash(&fields, kinds.iter().map(|(name, _)| name).zip(&hashes));
    let object_id = id::new("obj_");
    let mut kept = Vec::with_capacity(asked.len());
    for (blob, source) in asked.into_iter().zip(sources) {
        kept.push(blobs::keep(app, namespace_id, &object_id, blob, source).await?);
    }
    let size_bytes = kept
        .iter()
        .filter_map(|blob| blob.details.as_ref()?.size_bytes)
        .sum();
    let at = app.clock().now();
    let object = ObjectResponse {
        object_id: Some(object_id),
        bucket_id,
        key_prefix: request.key_prefix,
        blobs: kept,
        edges: request.edges.unwrap_or_default(),
        created_at: Some(at),
        updated_at: Some(at),
        extra: fields,
        ..Default::default()
    };
    let columns = store::Columns {
        unique_key,
        content_hash,
        idempotency_key: request.idempotency_key,
        size_bytes,
    };
    Ok(Draft {
        object,
        columns,
        skip_duplicates: request.skip_duplicates,
        policy,
    })
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

/// Writes the draft by its policy. What is not written leaves its files to [`discard`].
pub async fn apply(
    tx: &mut Tx,
    namespace_id: &str,
    draft: &Draft,
    now: i64,
) -> Result<(ObjectResponse, Outcome)> {
    let bucket_id = &draft.object.bucket_id;
    if let Some(key) = &draft.columns.idempotency_key {
        let same = store::Same::Idempotency(key);
        if let Some(found) = store::find_same(tx, namespace_id, bucket_id, same).await? {
            return Ok((found, Outcome::ReplayedByIdempotencyKey));
        }
    }
    if draft.skip_duplicates {
        let same = store::Same::Hash(&draft.columns.content_hash);
        if let Some(found) = store::find_same(tx, namespace_id, bucket_id, same).await? {
            return Ok((found, Outcome::Replayed));
        }
    }
    let existing = match &draft.columns.unique_key {
        Some(key) => {
            store::find_same(tx, namespace_id, bucket_id, store::Same::UniqueKey(key)).await?
        }
        None => None,
    };
    match (existing, draft.policy) {
        (Some(found), Policy::Insert) => Err(ApiError::conflict(
            "unique_key_conflict",
            "an object with this unique key exists already",
        )
        .with("object_id", found.object_id.unwrap_or_default())),
        (None, Policy::Update) => Err(ApiError::not_found(
            "object",
            draft.columns.unique_key.as_deref().unwrap_or_default(),
        )),
        (Some(found), _) => {
            let object = ObjectResponse {
                object_id: found.object_id,
                created_at: found.created_at,
                updated_at: Some(clock::time(now)),
                ..draft.object.clone()
            };
            store::update(tx, namespace_id, &object, &draft.columns, now).await?;
            Ok((object, Outcome::Updated))
        }
        (None, _) => {
            store::insert(tx, namespace_id, &draft.object, &draft.columns, now).await?;
            Ok((draft.object.clone(), Outcome::Created))
        }
    }
}

/// Removes the files of a draft that was not written.
pub async fn discard(app: &App, namespace_id: &str, draft: &Draft) {
    let object_id = draft.object.object_id.as_deref().unwrap_or_default();
    let folder = blobs::folder(namespace_id, object_id);
    if let Err(error) = app.blobs().delete_all(&folder).await {
        tracing::warn!(%error, "files of an object that was not made stay behind");
    }
}

fn payload(object: &ObjectResponse) -> Value {
    json!({"bucket_id": object.bucket_id, "object_id": object.object_id})
}

/// Creates one object, or updates the one with its unique key. `confirming` is an upload that may be used although its
/// confirmation is still under way.
pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    request: CreateObjectRequest,
    policy: Policy,
    confirming: Option<&UploadResponse>,
) -> Result<(ObjectResponse, Outcome)> {
    let draft = prepare(
        app,
        &scope.namespace_id,
        bucket,
        request,
        policy,
        confirming,
    )
    .await?;
    let (mut made, drafts) = write(app, scope, vec![draft]).await?;
    let made = made
        .pop()
        .unwrap_or_else(|| Err(ApiError::internal("an object was neither made nor refused")));
    if !matches!(&made, Ok((_, Outcome::Created | Outcome::Updated))) {
        for draft in &drafts {
            discard(app, &scope.namespace_id, draft).await;
        }
    }
    made
}

type Made = Vec<Result<(ObjectResponse, Outcome)>>;

/// Writes drafts and their events in one transaction; each is made or refused by itself.
async fn write(app: &App, scope: &Scope<Write>, drafts: Vec<Draft>) -> Result<(Made, Vec<Draft>)> {
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut made = Vec::with_capacity(drafts.len());
                for draft in &drafts {
                    made.push(apply(tx, &namespace_id, draft, now).await);
                }
                push_made(tx, &org_id, &namespace_id, &made, now).await?;
                Ok((made, drafts))
            })
        })
        .await
}

async fn push_made(
    tx: &mut Tx,
    org_id: &str,
    namespace_id: &str,
    made: &Made,
    now: i64,
) -> Result<()> {
    let of = |wanted: Outcome| {
        made.iter()
            .flatten()
            .filter(move |(_, outcome)| *outcome == wanted)
            .map(|(object, _)| object)
            .collect::<Vec<_>>()
    };
    match of(Outcome::Created).as_slice() {
        [] => {}
        [one] => {
            push_event(
                tx,
                org_id,
                namespace_id,
                "object.created",
                payload(one),
                now,
            )
            .await?
        }
        many => {
            let ids: Vec<_> = many
                .iter()
                .filter_map(|object| object.object_id.clone())
                .collect();
            let payload =
                json!({"bucket_id": many[0].bucket_id, "object_ids": ids, "count": ids.len()});
            push_event(
                tx,
                org_id,
                namespace_id,
                "objects.created.batch",
                payload,
                now,
            )
            .await?;
        }
    }
    for object in of(Outcome::Updated) {
        push_event(
            tx,
            org_id,
            namespace_id,
            "object.updated",
            payload(object),
            now,
        )
        .await?;
    }
    Ok(())
}

/// Creates up to a hundred objects; each answer stands at its request's place.
pub async fn create_many(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    requests: Vec<CreateObjectRequest>,
) -> Result<Made> {
    let policy = policy(bucket, None)?;
    let mut slots: Vec<Option<ApiError>> = Vec::with_capacity(requests.len());
    let mut drafts = Vec::new();
    for request in requests {
        match prepare(app, &scope.namespace_id, bucket, request, policy, None).await {
            Ok(draft) => {
                drafts.push(draft);
                slots.push(None);
            }
            Err(error) => slots.push(Some(error)),
        }
    }
    let (made, drafts) = write(app, scope, drafts).await?;
    for (outcome, draft) in made.iter().zip(&drafts) {
        if !matches!(outcome, Ok((_, Outcome::Created | Outcome::Updated))) {
            discard(app, &scope.namespace_id, draft).await;
        }
    }
    let mut made = made.into_iter();
    let missing = || ApiError::internal("an object was neither made nor refused");
    Ok(slots
        .into_iter()
        .map(|refused| match refused {
            Some(error) => Err(error),
            None => made.next().unwrap_or_else(|| Err(missing())),
        })
        .collect())
}

pub async fn get<L: Level>(
    app: &App,
    scope: &Scope<L>,
    bucket: &str,
    object_id: &str,
) -> Result<ObjectResponse> {
    let bucket = self::bucket(app, scope, bucket, NamespaceOperation::ReadData).await?;
    let bucket_id = bucket.bucket_id.unwrap_or_default();
    let found = store::find(app.db(), &scope.namespace_id, &bucket_id, object_id).await?;
    found.ok_or_else(|| ApiError::not_found("object", object_id))
}

/// Documents made from the object, as this caller sees them.
pub async fn count_documents<L: Level>(
    app: &App,
    scope: &Scope<L>,
    object_id: &str,
) -> Result<i64> {
    let collections = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let reach = scope.reach(collections.into_iter().map(|record| record.id).collect());
    let filter =
        json!({"field": "_internal.lineage.root_object_id", "operator": "eq", "value": object_id});
    let filter = Filter::parse(&filter).map_err(|error| ApiError::internal(error.msg))?;
    let count = app.store().count(&reach, Some(&filter)).await?;
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
                    let same = store::Same::UniqueKey(key);
                    let other = store::find_same(tx, &namespace_id, &bucket_id, same).await?;
                    if other.is_some_and(|other| other.object_id != object.object_id) {
                        return Err(ApiError::conflict(
                            "unique_key_conflict",
                            "another object has this unique key",
                        ));
                    }
                }
                let details =
                    |blob: &loupe_wire::BlobModel| blob.details.clone().unwrap_or_default();
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
                let columns = store::Columns {
                    unique_key,
                    content_hash: content_hash(
                        &fields,
                        files.iter().map(|(name, hash)| (name, hash)),
                    ),
                    idempotency_key: None,
                    size_bytes: object
                        .blobs
                        .iter()
                        .filter_map(|blob| details(blob).size_bytes)
                        .sum(),
                };
                object.extra = fields;
                object.key_prefix = change.key_prefix.or(object.key_prefix);
                object.updated_at = Some(clock::time(now));
                store::update(tx, &namespace_id, &object, &columns, now).await?;
                let payload = payload(&object);
                push_event(tx, &org_id, &namespace_id, "object.updated", payload, now).await?;
                Ok(object)
            })
        })
        .await
}

/// Removes the object; its files and its documents in every collection go right after, by a task.
pub async fn delete(app: &App, scope: &Scope<Delete>, bucket: &str, object_id: &str) -> Result<()> {
    let bucket = self::bucket(app, scope, bucket, NamespaceOperation::DeleteData).await?;
    let bucket_id = bucket.bucket_id.unwrap_or_default();
    let (org_id, namespace_id) = (scope.caller.org_id.clone(), scope.namespace_id.clone());
    let (object_id, now) = (object_id.to_owned(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let found = store::find_in(tx, &namespace_id, &bucket_id, &object_id).await?;
                let object = found.ok_or_else(|| ApiError::not_found("object", &object_id))?;
                store::delete(tx, &namespace_id, &object_id).await?;
                let work = json!({"object_ids": [object_id], "bucket_id": bucket_id});
                let mut task = tasks::NewTask::work(
                    &org_id,
                    &namespace_id,
                    TaskType::ApiCollectionsDocumentsBulkDelete,
                    REMOVE_OBJECTS,
                    work,
                );
                // Inner work: it is not listed.
                task.parent_id = Some(object_id);
                tasks::insert(tx, task, now).await?;
                push_event(
                    tx,
                    &org_id,
                    &namespace_id,
                    "object.deleted",
                    payload(&object),
                    now,
                )
                .await
            })
        })
        .await?;
    app.work.notify_one();
    Ok(())
}
