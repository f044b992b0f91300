//! A collection processed as a whole: every object of its buckets, or every document of its source collections.

use std::collections::{HashMap, HashSet};

use loupe_engine::{
    filter::{Filter, Operator},
    ingest,
    store::ListQuery,
};
use loupe_wire::{
    BatchModel, BatchType, CollectionResponse, CreateBatchRequest, SourceType, SubmitBatchRequest,
    TaskStatusEnum, TriggerCollectionRequest, TriggerCollectionResponse, Value,
};

use super::{Again, NOTHING_TO_PROCESS, create, get, is_nothing, queue, store, tiers};
use crate::{
    app::App,
    auth::{Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
    limits::quota,
    list::parse_filter,
    v1::{
        collections::{COLLECTIONS, lifecycle},
        documents::reembedding,
        objects,
    },
    words::said,
};

/// Documents listed at once.
const LISTED: usize = 1_000;

/// Refuses what could not be processed.
///
/// # Errors
/// 409 for a collection that is not active, 400 for one that is disabled, or when nothing of its source is named.
pub fn check_trigger(
    collection: &CollectionResponse,
    request: &TriggerCollectionRequest,
) -> Result<()> {
    lifecycle::check_active(collection)?;
    if !collection.enabled {
        let reason = collection.disabled_reason.as_ref();
        let reason = reason.map_or("enable it first", |reason| &reason.message);
        let message = format!("the collection is disabled: {reason}");
        return Err(ApiError::bad_request("collection_disabled", message));
    }
    if collection.source.r#type != SourceType::Collection && buckets(collection, request).is_empty()
    {
        let message = "the collection has none of these buckets as its source";
        return Err(ApiError::bad_request("", message));
    }
    Ok(())
}

/// Refuses what says which objects are processed, beside texts that documents hold.
fn check_alone(request: &TriggerCollectionRequest) -> Result<()> {
    let sent = [
        ("include_buckets", request.include_buckets.is_some()),
        ("include_collections", request.include_collections.is_some()),
        ("object_ids", request.object_ids.is_some()),
        ("source_filters", request.source_filters.is_some()),
        ("dedup_strategy", request.dedup_strategy.is_some()),
    ];
    match sent.into_iter().find(|(_, is_sent)| *is_sent) {
        Some((member, _)) => {
            let msg = "reembed is about documents, and nothing is processed: name them by its document_ids";
            Err(Violation::body(&[member], "value_error", msg, Value::Null).into())
        }
        None => Ok(()),
    }
}

fn buckets(collection: &CollectionResponse, request: &TriggerCollectionRequest) -> Vec<String> {
    let mut buckets = collection.source.bucket_ids.clone().unwrap_or_default();
    if let Some(wanted) = &request.include_buckets {
        buckets.retain(|bucket| wanted.contains(bucket));
    }
    buckets
}

/// Queues the batches that process a collection, and all that is over it.
///
/// # Errors
/// See [`check_trigger`]; nothing to process; more than a batch may have; 409 while a collection that it reads is put away.
pub async fn trigger(
    app: &App,
    scope: &Scope<Write>,
    collection: CollectionResponse,
    mut request: TriggerCollectionRequest,
) -> Result<TriggerCollectionResponse> {
    if let Some(reembed) = request.reembed.take() {
        check_alone(&request)?;
        return reembedding::begin(app, scope, &collection, reembed).await;
    }
    check_trigger(&collection, &request)?;
    let mut answer = TriggerCollectionResponse {
        collection_id: collection.collection_id.clone().unwrap_or_default(),
        ..Default::default()
    };
    let batches = match collection.source.r#type {
        SourceType::Collection => {
            let (batch, documents) = of_documents(app, scope, &collection, request).await?;
            answer.source_collection_ids = collection.source.collection_ids;
            answer.document_count = Some(documents);
            answer.message = format!("{} queued", said(documents, "document", ("is", "are")));
            vec![batch]
        }
        _ => {
            let (buckets, batches) = of_objects(app, scope, &collection, request).await?;
            let objects: usize = batches.iter().map(|batch| batch.object_ids.len()).sum();
            let objects = i64::try_from(objects).unwrap_or(i64::MAX);
            answer.source_bucket_ids = Some(buckets);
            answer.object_count = Some(objects);
            answer.message = format!("{} queued", said(objects, "object", ("is", "are")));
            batches
        }
    };
    let tiers = batches.iter().map(|batch| batch.total_tiers);
    answer.total_tiers = tiers.max().unwrap_or(1);
    for batch in batches {
        answer.batch_ids.extend(batch.batch_id);
        answer.task_ids.extend(batch.task_id);
    }
    answer.batch_id = answer.batch_ids.first().cloned();
    answer.task_id = answer.task_ids.first().cloned().unwrap_or_default();
    answer.batch_count = i64::try_from(answer.batch_ids.len()).ok();
    Ok(answer)
}

/// One batch a bucket.
async fn of_objects(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: TriggerCollectionRequest,
) -> Result<(Vec<String>, Vec<BatchModel>)> {
    let buckets = buckets(collection, &request);
    let named = named(app, scope, &buckets, &request).await?;
    let (mut batches, mut nothing) = (Vec::with_capacity(buckets.len()), None);
    for bucket in &buckets {
        // A batch of nothing cannot be submitted, and its draft would stay.
        let some = store::bucket_objects(app.db(), &scope.namespace_id, bucket, 1).await?;
        let its = named.as_ref().map(|named| named.get(bucket));
        if some.is_empty() || its == Some(None) {
            continue;
        }
        let create = CreateBatchRequest {
            object_ids: its.flatten().cloned(),
            filters: request.source_filters.clone(),
            collection_ids: Some(collection.collection_id.iter().cloned().collect()),
            dedup_strategy: request.dedup_strategy,
            auto_submit: Some(true),
            ..Default::default()
        };
        match self::create(app, scope, bucket, create).await {
            Ok(batch) => batches.push(batch),
            // Of several buckets one may hold nothing that is asked for.
            Err(error) if is_nothing(&error) => nothing = Some(error),
            Err(error) => return Err(error),
        }
    }
    if batches.is_empty() {
        let message = "the buckets of the collection hold no objects";
        let empty = || ApiError::bad_request(NOTHING_TO_PROCESS, message);
        return Err(nothing.unwrap_or_else(empty));
    }
    Ok((buckets, batches))
}

/// The objects that are named, by their buckets; none where none is named.
async fn named(
    app: &App,
    scope: &Scope<Write>,
    buckets: &[String],
    request: &TriggerCollectionRequest,
) -> Result<Option<HashMap<String, Vec<String>>>> {
    let Some(ids) = &request.object_ids else {
        return Ok(None);
    };
    let found = objects::store::find_named(app.db(), &scope.namespace_id, ids).await?;
    let found = found
        .into_iter()
        .filter(|one| buckets.contains(&one.bucket_id));
    let home: HashMap<String, String> = found
        .filter_map(|one| Some((one.object_id?, one.bucket_id)))
        .collect();
    let mut named: HashMap<String, Vec<String>> = HashMap::new();
    for id in ids {
        let bucket = home.get(id);
        let bucket = bucket.ok_or_else(|| ApiError::not_found("object", id))?;
        named.entry(bucket.clone()).or_default().push(id.clone());
    }
    Ok(Some(named))
}

/// One batch of what the documents of the source belong to; answers it with the number of documents.
async fn of_documents(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: TriggerCollectionRequest,
) -> Result<(BatchModel, i64)> {
    let named: Vec<String> = collection.collection_id.iter().cloned().collect();
    for source in collection.source.collection_ids.iter().flatten() {
        match COLLECTIONS
            .find(app.db(), &scope.namespace_id, source)
            .await
        {
            Ok(source) => lifecycle::check_here(&source)?,
            // Deleted: nothing is read of it.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    // Refused before a draft is left behind.
    tiers::of_collections(app, &scope.namespace_id, &named).await?;
    let (roots, documents) = roots(app, scope, collection, &request).await?;
    quota::check_batch(app, &scope.caller, roots.len()).await?;
    let mut buckets = collection.source.inherited_bucket_ids.iter().flatten();
    let bucket_id = buckets.next().cloned().unwrap_or_default();
    let (org_id, namespace_id, now) = (
        scope.caller.org_id.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let batch_id = id::new("btch_");
    let batch = BatchModel {
        batch_id: Some(batch_id.clone()),
        bucket_id: bucket_id.clone(),
        namespace_id: Some(namespace_id),
        r#type: BatchType::Collection,
        status: TaskStatusEnum::Draft,
        dedup_strategy: request.dedup_strategy,
        collection_ids: Some(named),
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    };
    let id = batch_id.clone();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                store::insert(tx, &org_id, &batch, now).await?;
                store::add_objects(tx, &id, &roots, now).await
            })
        })
        .await?;
    let ask = SubmitBatchRequest::default();
    queue(app, scope, &bucket_id, &batch_id, ask, Again::Unfinished).await?;
    let (org_id, namespace_id) = (&scope.caller.org_id, &scope.namespace_id);
    let batch = get(app, org_id, namespace_id, "", &batch_id).await?;
    Ok((batch, documents))
}

/// The objects, or first documents, that the wanted documents of the source belong to, and how many documents these are.
async fn roots(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: &TriggerCollectionRequest,
) -> Result<(Vec<String>, i64)> {
    let reach = scope.reach(sources(app, scope, collection, request).await?);
    let most = app.config().limits.batch_objects;
    let mut query = ListQuery {
        filter: wanted(collection, request)?,
        limit: LISTED,
        ..Default::default()
    };
    let (mut seen, mut roots, mut documents) = (HashSet::new(), Vec::new(), 0_i64);
    loop {
        let page = app.store().list(&reach, query.clone()).await?;
        for document in page.documents {
            documents += 1;
            let root = ingest::root(&document);
            if seen.insert(root.to_owned()) {
                roots.push(root.to_owned());
            }
        }
        if roots.len() > most {
            let msg = format!(
                "the documents belong to more than {most} objects: name some by object_ids or source_filters"
            );
            return Err(Violation::body(&["object_ids"], "too_long", msg, Value::Null).into());
        }
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    if roots.is_empty() {
        let message = "the source collections hold no documents that are asked for";
        return Err(ApiError::bad_request(NOTHING_TO_PROCESS, message));
    }
    Ok((roots, documents))
}

/// The source collections that are there still, of those that are asked for.
async fn sources(
    app: &App,
    scope: &Scope<Write>,
    collection: &CollectionResponse,
    request: &TriggerCollectionRequest,
) -> Result<Vec<String>> {
    let mut sources = collection.source.collection_ids.clone().unwrap_or_default();
    if let Some(wanted) = &request.include_collections {
        let mut ids = HashSet::new();
        for identifier in wanted {
            let (db, namespace_id) = (app.db(), &scope.namespace_id);
            let found = COLLECTIONS.known(db, namespace_id, identifier).await?;
            ids.insert(found.id.clone());
        }
        sources.retain(|id| ids.contains(id));
    }
    if sources.is_empty() {
        let message = "the collection has none of these collections as its source";
        return Err(ApiError::bad_request("", message));
    }
    Ok(sources)
}

fn wanted(
    collection: &CollectionResponse,
    request: &TriggerCollectionRequest,
) -> Result<Option<Filter>> {
    let own = collection.source.source_filters.as_ref();
    let own = own.and_then(|filters| filters.filters.as_ref());
    let mut filters = Vec::new();
    for filter in own.into_iter().chain(&request.source_filters) {
        filters.push(parse_filter(&filter.0, "source_filters")?);
    }
    if let Some(ids) = &request.object_ids {
        let ids: Vec<Value> = ids.iter().map(|id| id.as_str().into()).collect();
        let is = |field: &str| Filter::leaf(field, Operator::In, Value::Array(ids.clone()));
        filters.push(Filter::Any(vec![
            is("_internal.lineage.root_object_id"),
            is("_internal.lineage.root_document_id"),
            is("document_id"),
        ]));
    }
    Ok((!filters.is_empty()).then(|| Filter::All(filters)))
}
