//! What a collection is filled from: objects of buckets, or documents of other collections.

use indexmap::{IndexMap, IndexSet};
use loupe_wire::{
    BucketSchema, CollectionResponse, FieldPassthrough, NamespaceOperation, ResourceType,
    SingleLineageEntry, SourceConfig, SourceType, Value, reading,
};

use super::{COLLECTIONS, details};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{Result, Violation},
    list::parse_filter,
    v1::buckets::BUCKETS,
};

/// Buckets or collections that one collection reads.
const MAX_SOURCES: usize = 100;
/// Tiers of collections over collections.
const MAX_TIERS: usize = 10;

fn fault(field: &str, msg: impl Into<String>, input: Value) -> Violation {
    Violation::body(&["source", field], "value_error", msg, input)
}

/// Checks the source and answers it with names resolved to ids.
///
/// # Errors
/// 404 for a bucket or collection that is not there, 403 for one out of the key's scopes, 422 for what cannot be a source.
pub async fn check(
    app: &App,
    scope: &Scope<Write>,
    mut source: SourceConfig,
) -> Result<SourceConfig> {
    if let Some(other) = &source.source_namespace_id
        && *other != scope.namespace_id
    {
        let msg = "a collection reads its own namespace only";
        return Err(fault("source_namespace_id", msg, other.clone().into()).into());
    }
    let filters = source.source_filters.as_ref();
    if let Some(filter) = filters.and_then(|filters| filters.filters.as_ref()) {
        parse_filter(&filter.0, "source")?;
    }
    source.inherited_bucket_ids = None;
    match source.r#type {
        SourceType::Bucket => of_buckets(app, scope, source).await,
        SourceType::Collection => of_collections(app, scope, source).await,
        SourceType::DirectUpsert | SourceType::None => Ok(source),
        other => {
            let input = serde_json::to_value(other).unwrap_or_default();
            let msg = "sources of this type are not available yet: use bucket, collection or direct_upsert";
            Err(fault("type", msg, input).into())
        }
    }
}

fn check_number(field: &str, named: &[String]) -> Result<()> {
    if named.is_empty() {
        let kind = field.split('_').next().unwrap_or(field);
        let msg = format!("a source of type {kind} names at least one {kind}");
        return Err(fault(field, msg, Value::Null).into());
    }
    if named.len() > MAX_SOURCES {
        let msg = format!("a collection reads at most {MAX_SOURCES} sources");
        return Err(fault(field, msg, named.len().into()).into());
    }
    Ok(())
}

async fn of_buckets(
    app: &App,
    scope: &Scope<Write>,
    mut source: SourceConfig,
) -> Result<SourceConfig> {
    let named = source.bucket_ids.take().unwrap_or_default();
    check_number("bucket_ids", &named)?;
    let mut ids = Vec::new();
    for identifier in named {
        let found = BUCKETS
            .find(app.db(), &scope.namespace_id, &identifier)
            .await?;
        let (kind, operation) = (ResourceType::Bucket, NamespaceOperation::ReadData);
        scope.caller.allow(kind, &found.id, operation)?;
        ids.push(found.id);
    }
    source.bucket_ids = Some(ids);
    Ok(source)
}

async fn of_collections(
    app: &App,
    scope: &Scope<Write>,
    mut source: SourceConfig,
) -> Result<SourceConfig> {
    let mut named = source.collection_ids.take().unwrap_or_default();
    named.extend(source.collection_id.take());
    check_number("collection_ids", &named)?;
    let (mut ids, mut buckets): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut maps = std::mem::take(&mut source.field_map);
    let mut map: IndexMap<String, Vec<FieldPassthrough>> = IndexMap::new();
    for identifier in named {
        let (db, namespace_id) = (app.db(), &scope.namespace_id);
        let found = COLLECTIONS.find(db, namespace_id, &identifier).await?;
        let (kind, operation) = (ResourceType::Collection, NamespaceOperation::ReadData);
        scope.caller.allow(kind, &found.id, operation)?;
        let rules = maps.shift_remove(&found.id);
        if let Some(rules) = rules.or_else(|| maps.shift_remove(&found.name)) {
            map.insert(found.id.clone(), rules);
        }
        if ids.contains(&found.id) {
            continue;
        }
        let below = &found.data.0.source;
        for bucket in below.bucket_ids.iter().chain(&below.inherited_bucket_ids) {
            for id in bucket
                .iter()
                .filter(|id| !buckets.contains(id))
                .cloned()
                .collect::<Vec<_>>()
            {
                buckets.push(id);
            }
        }
        ids.push(found.id);
    }
    if let Some(unknown) = maps.keys().next() {
        let msg = "fields are mapped of a collection that is not among the sources";
        return Err(fault("field_map", msg, unknown.clone().into()).into());
    }
    check_depth(app, &scope.namespace_id, &ids).await?;
    source.collection_id = (ids.len() == 1).then(|| ids[0].clone());
    source.collection_ids = Some(ids);
    source.bucket_ids = None;
    source.inherited_bucket_ids = (!buckets.is_empty()).then_some(buckets);
    source.field_map = map;
    Ok(source)
}

/// Refuses a collection with too many tiers below it, or below itself.
async fn check_depth(app: &App, namespace_id: &str, ids: &[String]) -> Result<()> {
    let all = COLLECTIONS.all(app.db(), namespace_id).await?;
    let mut level: Vec<String> = ids.to_vec();
    for _ in 1..MAX_TIERS {
        let sources = all.iter().filter(|record| level.contains(&record.id));
        let sources = sources.flat_map(|record| record.source.collection_ids.iter().flatten());
        level = sources.cloned().collect();
        level.sort();
        level.dedup();
        if level.is_empty() {
            return Ok(());
        }
    }
    let msg =
        format!("collections over collections have at most {MAX_TIERS} tiers, without circles");
    Err(fault("collection_ids", msg, ids.to_vec().into()).into())
}

/// The collections below one, with their ids: those that it reads first, those at the bottom last.
pub(super) async fn below(
    app: &App,
    namespace_id: &str,
    collection: &CollectionResponse,
) -> Result<Vec<(String, SingleLineageEntry)>> {
    let mut found: Vec<(String, SingleLineageEntry)> = Vec::new();
    let mut level = collection.source.collection_ids.clone().unwrap_or_default();
    for _ in 0..MAX_TIERS {
        // Two that read the same ones lead there once, not as often as there are ways.
        let mut next = IndexSet::new();
        for id in level {
            match COLLECTIONS.known(app.db(), namespace_id, &id).await {
                Ok(one) => {
                    next.extend(one.source.collection_ids.iter().flatten().cloned());
                    // One that is read over several ways counts where it is deepest.
                    found.retain(|(other, _)| *other != id);
                    found.push((id, details::entry(&one)));
                }
                // One that was deleted is told of nowhere.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        level = next.into_iter().collect();
    }
    Ok(found)
}

/// The schemas of what a collection reads, in their order; none of a source that may have any field.
pub async fn schemas(
    app: &App,
    namespace_id: &str,
    source: &SourceConfig,
) -> Result<Vec<Option<BucketSchema>>> {
    let mut schemas = Vec::new();
    for id in source.bucket_ids.iter().flatten() {
        let bucket = BUCKETS.find(app.db(), namespace_id, id).await?;
        schemas.push(bucket.data.0.bucket_schema);
    }
    for id in source.collection_ids.iter().flatten() {
        let collection = COLLECTIONS.find(app.db(), namespace_id, id).await?;
        schemas.push(of_documents(collection.data.0));
    }
    Ok(schemas)
}

/// What documents of a collection may hold, where that is known: what the extractor makes, and the fields and files of
/// the objects that they are made of.
fn of_documents(collection: CollectionResponse) -> Option<BucketSchema> {
    let makes_any = matches!(
        collection.source.r#type,
        SourceType::DirectUpsert | SourceType::None
    );
    let extractor = &collection.feature_extractor;
    if makes_any
        || collection.retriever_transform.is_some()
        || extractor.feature_extractor_name == "passthrough_extractor"
        || collection.taxonomy_applications.is_some()
        || collection.input_schema.is_none()
    {
        return None;
    }
    let mut schema = collection.output_schema?;
    for (name, field) in collection
        .input_schema
        .into_iter()
        .flat_map(|of| of.properties)
    {
        schema.properties.entry(name).or_insert(field);
    }
    let thumbnail = reading::from_value(&serde_json::json!({"type": "image"})).ok()?;
    schema
        .properties
        .entry("thumbnail".into())
        .or_insert(thumbnail);
    Some(schema)
}

/// What is left to read when a collection that was a source goes.
pub fn left(source: &SourceConfig, all: &[String]) -> bool {
    source
        .collection_ids
        .iter()
        .flatten()
        .any(|id| all.contains(id))
}
