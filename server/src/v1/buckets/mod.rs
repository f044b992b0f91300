//! Buckets hold objects of one schema.

pub mod destinations;
mod filtering;
mod places;
mod routes;
pub mod sources;
mod store;

use loupe_wire::{
    AuditAction, BucketCreateRequest, BucketDeleteResponse, BucketResponse, BucketSchema,
    BucketSchemaField, BucketUpdateRequest, IngestFilter, NamespaceOperation, ResourceType,
    SourceAdapterConfig, TaskStatusEnum, TaskType, UniqueKeyConfig, Value,
};
use serde_json::json;

pub use filtering::{change as change_filter, check as check_filter};
pub use routes::router;
pub use store::BUCKETS;

use super::{
    audit::{self, Change},
    batches, objects, removal, tasks,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
    limits::quota::{self, Resource},
};

fn check_unique_key(
    schema: &loupe_wire::BucketSchema,
    unique_key: Option<&UniqueKeyConfig>,
) -> Result<()> {
    for (index, field) in unique_key
        .iter()
        .flat_map(|key| key.fields.iter().enumerate())
    {
        if !schema.properties.contains_key(field) {
            let msg = format!("the bucket's schema has no field '{field}'");
            return Err(Violation::body(
                &["unique_key", "fields", &index.to_string()],
                "value_error",
                msg,
                field.clone().into(),
            )
            .into());
        }
    }
    Ok(())
}

/// Buckets that fill themselves from elsewhere are not available yet: that is said, not passed over.
pub fn check_adapter(adapter: Option<&SourceAdapterConfig>) -> Result<()> {
    if adapter.is_none() {
        return Ok(());
    }
    let msg = "source adapters are not available yet: create objects or uploads";
    Err(Violation::body(&["source_adapter"], "not_enabled", msg, Value::Null).into())
}

fn check_name(name: &str) -> Result<()> {
    if name.trim().is_empty() || name.len() > 100 {
        return Err(Violation::body(
            &["bucket_name"],
            "string_too_short",
            "a name has 1 to 100 characters",
            name.into(),
        )
        .into());
    }
    Ok(())
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: BucketCreateRequest,
) -> Result<BucketResponse> {
    scope
        .caller
        .allow(ResourceType::Bucket, "*", NamespaceOperation::WriteData)?;
    check_name(&request.bucket_name)?;
    check_adapter(request.source_adapter.as_ref())?;
    let destination = destinations::check(app, &scope.caller, request.destination).await?;
    let ingest_filter = filtering::check(app, scope, request.ingest_filter).await?;
    check_unique_key(&request.bucket_schema, request.unique_key.as_ref())?;
    let caller = scope.caller.clone();
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let at = clock::time(now);
    let bucket_id = id::new("bkt_");
    let bucket = BucketResponse {
        bucket_id: Some(bucket_id.clone()),
        bucket_name: request.bucket_name,
        description: request.description,
        bucket_schema: Some(request.bucket_schema),
        unique_key: request.unique_key,
        metadata: request.metadata.unwrap_or_default(),
        storage_class: request.storage_class,
        destination,
        ingest_filter,
        created_at: Some(at),
        updated_at: Some(at),
        status: TaskStatusEnum::Active,
        ..Default::default()
    };
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                quota::check(tx, &caller.org_id, Resource::Buckets).await?;
                let owner = (caller.org_id.as_str(), namespace_id.as_str());
                destinations::open(tx, owner, &bucket, now).await?;
                BUCKETS
                    .insert(
                        tx,
                        &namespace_id,
                        &bucket_id,
                        &bucket.bucket_name,
                        now,
                        &bucket,
                    )
                    .await?;
                let change = Change {
                    action: AuditAction::BucketCreated,
                    resource: (ResourceType::Bucket, &bucket_id),
                    changes: json!({ "bucket_name": bucket.bucket_name }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(bucket)
            })
        })
        .await
}

/// With the counts of its objects.
pub async fn get<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<BucketResponse> {
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope.caller.allow(
        ResourceType::Bucket,
        &record.id,
        NamespaceOperation::ReadData,
    )?;
    counted(app, &scope.namespace_id, record.data.0).await
}

async fn counted(app: &App, namespace_id: &str, bucket: BucketResponse) -> Result<BucketResponse> {
    let mut buckets = [bucket];
    store::count(app.db(), namespace_id, &mut buckets).await?;
    let [bucket] = buckets;
    Ok(bucket)
}

/// The first property that `new` lacks or types otherwise: objects that were checked against `old` may not fit it.
fn broken_property<'s>(old: &'s BucketSchema, new: &BucketSchema) -> Option<&'s str> {
    let kept = |name: &String, field: &BucketSchemaField| {
        let same = new.properties.get(name);
        same.is_some_and(|same| same.r#type == field.r#type)
    };
    let mut broken = old
        .properties
        .iter()
        .filter(|(name, field)| !kept(name, field));
    broken.next().map(|(name, _)| name.as_str())
}

/// Refuses a schema that objects of the bucket may not fit.
fn check_schema(bucket: &BucketResponse, new: &BucketSchema, objects: i64) -> Result<()> {
    let broken = bucket
        .bucket_schema
        .as_ref()
        .and_then(|old| broken_property(old, new));
    match broken {
        Some(name) if objects > 0 => {
            let message = format!(
                "{objects} objects were checked against the property '{name}', which the new schema drops or types \
                 otherwise: send force_schema_break=true to take it all the same"
            );
            Err(ApiError::conflict("", message).with("property", name))
        }
        _ => Ok(()),
    }
}

/// A bucket with the members that are sent in place of its own.
fn changed(
    mut bucket: BucketResponse,
    request: BucketUpdateRequest,
    filter: Option<Option<IngestFilter>>,
) -> Result<BucketResponse> {
    bucket.bucket_name = request.bucket_name.unwrap_or(bucket.bucket_name);
    bucket.description = request.description.unwrap_or(bucket.description);
    if let Some(metadata) = request.metadata {
        bucket.metadata = metadata.unwrap_or_default();
    }
    bucket.bucket_schema = request.bucket_schema.or(bucket.bucket_schema);
    bucket.unique_key = request.unique_key.or(bucket.unique_key);
    bucket.storage_class = request.storage_class.or(bucket.storage_class);
    bucket.destination = request.destination.or(bucket.destination);
    bucket.ingest_filter = filter.unwrap_or(bucket.ingest_filter);
    if let Some(schema) = &bucket.bucket_schema {
        check_unique_key(schema, bucket.unique_key.as_ref())?;
    }
    Ok(bucket)
}

/// Changes the members that are sent; answers as [`get`]. `force` takes a schema that objects may no longer fit.
pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    mut request: BucketUpdateRequest,
    force: bool,
) -> Result<BucketResponse> {
    if let Some(name) = &request.bucket_name {
        check_name(name)?;
    }
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope.caller.allow(
        ResourceType::Bucket,
        &record.id,
        NamespaceOperation::WriteData,
    )?;
    let destination = request.destination.take();
    request.destination = destinations::check(app, &scope.caller, destination).await?;
    let filter = filtering::change(app, scope, request.ingest_filter.take()).await?;
    let caller = scope.caller.clone();
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let bucket = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let before = BUCKETS.hold(tx, &namespace_id, &record.id).await?.data.0;
                if let (Some(schema), false) = (&request.bucket_schema, force) {
                    let objects = objects::store::count_in(tx, &namespace_id, &record.id).await?;
                    check_schema(&before, schema, objects)?;
                }
                let mut bucket = changed(before.clone(), request, filter)?;
                bucket.updated_at = Some(clock::time(now));
                let owner = (caller.org_id.as_str(), namespace_id.as_str());
                destinations::change(tx, owner, &before, &bucket, now).await?;
                BUCKETS
                    .update(
                        tx,
                        &namespace_id,
                        &record.id,
                        &bucket.bucket_name,
                        now,
                        &bucket,
                    )
                    .await?;
                let change = Change {
                    action: AuditAction::BucketUpdated,
                    resource: (ResourceType::Bucket, &record.id),
                    changes: audit::difference(&before, &bucket),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(bucket)
            })
        })
        .await?;
    destinations::leave(app, &scope.namespace_id, &bucket).await;
    counted(app, &scope.namespace_id, bucket).await
}

/// Takes the bucket out of everybody's reach; a task frees its objects, files and documents.
pub async fn delete(
    app: &App,
    scope: &Scope<Delete>,
    identifier: &str,
    force: bool,
) -> Result<BucketDeleteResponse> {
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    let operation = NamespaceOperation::DeleteData;
    scope
        .caller
        .allow(ResourceType::Bucket, &record.id, operation)?;
    let object_count = objects::store::count(app.db(), &scope.namespace_id, &record.id).await?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let answer = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let closed =
                    removal::close_batches(tx, &namespace_id, &record.id, force, now).await?;
                BUCKETS.delete(tx, &namespace_id, &record.id).await?;
                let change = Change {
                    action: AuditAction::BucketDeleted,
                    resource: (ResourceType::Bucket, &record.id),
                    changes: json!({ "bucket_name": record.name }),
                };
                audit::record(tx, &caller, change, now).await?;
                let (kind, task_type) = (removal::REMOVE_BUCKET, TaskType::ApiBucketsDelete);
                let task =
                    removal::task(&caller.org_id, &namespace_id, task_type, kind, &record.id);
                let task = tasks::insert(tx, task, now).await?;
                batches::tell_closed(tx, (&caller.org_id, &namespace_id), closed, now).await?;
                Ok(BucketDeleteResponse {
                    task_id: task.task_id,
                    status: task.status,
                    bucket_id: record.id,
                    bucket_name: record.name,
                    object_count,
                })
            })
        })
        .await?;
    app.work.notify_one();
    Ok(answer)
}
