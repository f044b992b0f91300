//! Resources as the requests that would make them again, as far as a template keeps them: nothing that is secret, and nothing of
//! what reads them or is made of them.

use loupe_wire::{
    BucketCreateRequest, BucketResponse, ClusterModel, CollectionResponse, CreateClusterRequest,
    CreateCollectionRequest, CreateRetrieverRequest, CreateTaxonomyRequest, RetrieverModelOutput,
    SourceConfig, SourceType, TaxonomyConfig, TaxonomyResponse,
};

use crate::{
    error::{ApiError, Result},
    v1::{
        collections::headers,
        retrievers::{cast, stage_inputs},
    },
};

pub fn bucket(bucket: &BucketResponse) -> BucketCreateRequest {
    BucketCreateRequest {
        bucket_name: bucket.bucket_name.clone(),
        description: bucket.description.clone(),
        bucket_schema: bucket.bucket_schema.clone().unwrap_or_default(),
        unique_key: bucket.unique_key.clone(),
        metadata: Some(bucket.metadata.clone()),
        storage_class: bucket.storage_class,
        ..Default::default()
    }
}

/// What a template of a bucket leaves out.
pub fn left_of_bucket(bucket: &BucketResponse) -> Vec<String> {
    let left = [
        (bucket.ingest_filter.is_some(), "the bucket's ingest filter"),
        (bucket.destination.is_some(), "the bucket's destination"),
    ];
    told(&left)
}

/// What is to be set anew where it is wanted.
fn told(left: &[(bool, &str)]) -> Vec<String> {
    let left = left.iter().filter(|(is_left, _)| *is_left);
    left.map(|(_, what)| format!("left out: {what}")).collect()
}

/// Its source names nothing yet.
///
/// # Errors
/// 409 for a collection that is made by a retriever.
pub fn collection(collection: &CollectionResponse) -> Result<CreateCollectionRequest> {
    if collection.retriever_transform.is_some() {
        let message = "a retriever makes the documents of this collection: a template names none";
        return Err(ApiError::conflict("", message));
    }
    let mut extractor = collection.feature_extractor.clone();
    headers::leave_out(&mut extractor);
    let source = &collection.source;
    let is_written = matches!(source.r#type, SourceType::DirectUpsert | SourceType::None);
    Ok(CreateCollectionRequest {
        collection_name: collection.collection_name.clone(),
        description: collection.description.clone(),
        source: SourceConfig {
            r#type: source.r#type,
            source_filters: source.source_filters.clone(),
            ..Default::default()
        },
        // Others have the schema of what they read.
        input_schema: collection.input_schema.clone().filter(|_| is_written),
        feature_extractor: Some(cast(&extractor)?),
        enabled: collection.enabled,
        metadata: collection.metadata.clone(),
        schedule: collection.schedule.clone(),
        embedding_task: collection.embedding_task.clone(),
        ..Default::default()
    })
}

/// What a template of a collection leaves out.
pub fn left_of_collection(collection: &CollectionResponse) -> Vec<String> {
    fn any<T>(list: Option<&Vec<T>>) -> bool {
        list.is_some_and(|list| !list.is_empty())
    }
    let mut extractor = collection.feature_extractor.clone();
    let left = [
        (
            headers::leave_out(&mut extractor),
            "headers that the extractor sends",
        ),
        (
            any(collection.taxonomy_applications.as_ref()),
            "taxonomies that the collection applies",
        ),
        (
            any(collection.cluster_applications.as_ref()),
            "clusters that the collection applies",
        ),
        (
            any(collection.alert_applications.as_ref()),
            "alerts that the collection applies",
        ),
        (
            any(collection.retriever_enrichments.as_ref()),
            "retrievers that enrich the collection",
        ),
    ];
    told(&left)
}

/// It searches nothing yet.
pub fn retriever(retriever: &RetrieverModelOutput) -> Result<CreateRetrieverRequest> {
    Ok(CreateRetrieverRequest {
        retriever_name: retriever.retriever_name.clone(),
        description: retriever.description.clone(),
        stages: stage_inputs(&retriever.stages),
        input_schema: Some(retriever.input_schema.clone()),
        budget_limits: retriever.budget_limits.clone(),
        tags: Some(retriever.tags.clone()),
        metadata: Some(retriever.metadata.clone()),
        display_config: retriever.display_config.as_ref().map(cast).transpose()?,
        ..Default::default()
    })
}

/// With the ids that it has; what a tree was inferred from is left out once it is there.
pub fn taxonomy(taxonomy: &TaxonomyResponse) -> CreateTaxonomyRequest {
    let mut config = taxonomy.config.clone();
    if let TaxonomyConfig::Hierarchical(tree) = &mut config
        && tree.hierarchical_nodes.is_some()
    {
        tree.inference_strategy = None;
        tree.inference_collections = None;
        tree.cluster_ids = None;
    }
    CreateTaxonomyRequest {
        taxonomy_name: taxonomy.taxonomy_name.clone(),
        description: taxonomy.description.clone(),
        config,
        metadata: Some(taxonomy.metadata.clone()),
    }
}

/// It gathers nothing yet.
pub fn cluster(model: &ClusterModel) -> CreateClusterRequest {
    CreateClusterRequest {
        cluster_name: model.cluster_name.clone(),
        description: model.description.clone(),
        metadata: Some(model.metadata.clone()),
        cluster_type: model.cluster_type,
        vector_config: model.vector_config.clone(),
        attribute_config: model.attribute_config.clone(),
        filters: model.filters.clone(),
        llm_labeling: model.llm_labeling.clone(),
        enrich_source_collection: model.enrich_source_collection,
        source_enrichment_config: model.source_enrichment_config.clone(),
        auto_execute_on_batch: model.auto_execute_on_batch,
        auto_execute_min_documents: model.auto_execute_min_documents,
        auto_execute_cooldown_seconds: model.auto_execute_cooldown_seconds,
        ..Default::default()
    }
}
