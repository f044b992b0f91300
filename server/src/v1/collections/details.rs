//! What is told of collections beside what they keep: where they are filled from, what is applied to them, and who reads them.

use std::collections::BTreeSet;

use loupe_wire::{
    CollectionListStats, CollectionResponse, NamespaceOperation, ResourceType,
    RetrieverModelOutput, SingleLineageEntry,
};

use super::{COLLECTIONS, internal, sources};
use crate::{
    app::App,
    auth::{Read, Scope},
    db::Record,
    error::Result,
    list::{ListParams, Page},
    unresolved,
    v1::{
        annotations::signal,
        buckets::BUCKETS,
        retrievers::{self, RETRIEVERS},
    },
};

/// As [`super::get`], with all that is told of it. End users are told of documents, not of what these are made by.
pub(super) async fn get(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
) -> Result<CollectionResponse> {
    let mut collection = super::get(app, scope, identifier).await?;
    if scope.caller.principal().is_some() {
        return Ok(collection);
    }
    add_sources(app, scope, &mut collection).await?;
    collection.retriever_count = Some(count_retrievers(app, scope, &collection).await?);
    collection.taxonomy_count = i64::try_from(applied(&collection).count()).ok();
    Ok(collection)
}

/// How many retrievers read a collection, of those that the caller may read.
async fn count_retrievers(
    app: &App,
    scope: &Scope<Read>,
    collection: &CollectionResponse,
) -> Result<i64> {
    let id = collection.collection_id.as_deref().unwrap_or_default();
    let operation = NamespaceOperation::ReadData;
    let reads = |one: &RetrieverModelOutput| {
        // A retriever names in its stages, too, what it reads, by id or by name.
        let named = || {
            let stages = retrievers::stage_inputs(&one.stages);
            let plan = retrievers::compile(&stages, &one.input_schema);
            let named = plan.map(|plan| plan.references()).unwrap_or_default();
            named.contains(&collection.collection_name) || named.iter().any(|one| one == id)
        };
        one.collection_ids.iter().any(|one| one == id) || named()
    };
    let all = RETRIEVERS.all(app.db(), &scope.namespace_id).await?;
    let covers = |id: &str| scope.caller.covers(ResourceType::Retriever, id, operation);
    let covered = all.iter().filter(|one| covers(&one.id));
    let count = covered.filter(|one| reads(one)).count();
    Ok(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The schemas of the buckets at the bottom, and the collections in between, those first that are filled first. What the
/// caller may not read is left out.
async fn add_sources(
    app: &App,
    scope: &Scope<Read>,
    collection: &mut CollectionResponse,
) -> Result<()> {
    let covers = |kind: ResourceType, id: &str| {
        let operation = NamespaceOperation::ReadData;
        scope.caller.covers(kind, id, operation)
    };
    let source = &collection.source;
    let buckets = source.bucket_ids.iter().chain(&source.inherited_bucket_ids);
    let buckets: Vec<&String> = buckets.flatten().collect();
    let mut schemas = indexmap::IndexMap::new();
    for id in buckets {
        if !covers(ResourceType::Bucket, id) {
            continue;
        }
        // One that was deleted has no schema any more.
        match BUCKETS.known(app.db(), &scope.namespace_id, id).await {
            Ok(bucket) => schemas.extend(bucket.bucket_schema.clone().map(|one| (id.clone(), one))),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let below = sources::below(app, &scope.namespace_id, collection).await?;
    let below = below.into_iter().rev();
    collection.source_lineage = below
        .filter(|(id, _)| covers(ResourceType::Collection, id))
        .map(|(_, entry)| entry)
        .collect();
    collection.source_bucket_schemas = (!schemas.is_empty()).then_some(schemas);
    Ok(())
}

/// The ids of the taxonomies that a collection applies.
fn applied(collection: &CollectionResponse) -> impl Iterator<Item = &str> {
    let applications = collection.taxonomy_applications.iter().flatten();
    applications.map(|application| application.taxonomy_id.as_str())
}

/// The retrievers that fill in or make its documents.
fn running(collection: &CollectionResponse) -> impl Iterator<Item = &str> {
    let enrichments = collection.retriever_enrichments.iter().flatten();
    let transform = collection.retriever_transform.iter();
    enrichments
        .map(|enrichment| enrichment.retriever_id.as_str())
        .chain(transform.filter_map(|transform| transform.retriever_id.as_deref()))
}

/// Of the collections that are listed.
pub(super) fn stats(collections: &[CollectionResponse]) -> CollectionListStats {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let counts = collections.iter().filter_map(|one| one.document_count);
    let total_documents: i64 = counts.sum();
    let extractors: BTreeSet<&str> = collections
        .iter()
        .map(|one| one.feature_extractor.feature_extractor_id.as_str())
        .collect();
    let taxonomies: BTreeSet<&str> = collections.iter().flat_map(applied).collect();
    let retrievers: BTreeSet<&str> = collections.iter().flat_map(running).collect();
    let tagged = collections
        .iter()
        .filter(|one| applied(one).next().is_some());
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let average = total_documents as f64 / collections.len().max(1) as f64;
    CollectionListStats {
        total_documents,
        avg_documents_per_collection: average,
        collections_with_taxonomies: number(tagged.count()),
        total_feature_extractors: number(extractors.len()),
        total_taxonomies: number(taxonomies.len()),
        total_retrievers: number(retrievers.len()),
    }
}

/// A page of the collections that people made and of those that the server keeps.
pub(super) async fn with_system(
    app: &App,
    scope: &Scope<Read>,
    params: &ListParams,
) -> Result<Page<CollectionResponse>> {
    let all = COLLECTIONS.all(app.db(), &scope.namespace_id).await?;
    let operation = NamespaceOperation::ReadData;
    let kept = signal::named(signal::SIGNAL).filter(|one| {
        let is_here = !unresolved::is_nowhere(&scope.namespace_id);
        is_here && internal::allow_reading(&scope.caller, &one.id).is_ok()
    });
    let covered = |id: &str| scope.caller.covers(ResourceType::Collection, id, operation);
    let made = all.into_iter().filter(|record| covered(&record.id));
    let made = made.map(Record::marked);
    // Behind all that people made.
    let kept = kept
        .iter()
        .map(|record| (record.data.0.clone(), (i64::MIN, record.id.clone())));
    Page::from_marked(made.chain(kept).collect(), params)
}

/// What a collection below another one is told as.
pub(super) fn entry(collection: &CollectionResponse) -> SingleLineageEntry {
    SingleLineageEntry {
        source_config: collection.source.clone(),
        feature_extractor: collection.feature_extractor.clone(),
        output_schema: collection.output_schema.clone().unwrap_or_default(),
    }
}
