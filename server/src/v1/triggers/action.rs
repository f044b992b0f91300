//! What triggers do: checked when one is made, done when one fires, with the rights of the server itself in the trigger's
//! namespace.

use loupe_wire::{
    BatchModel, BatchType, CollectionResponse, CreateBatchRequest, Filter, NamespaceOperation,
    Object, SubmitBatchRequest, Trigger, TriggerActionConfigBatchRerun,
    TriggerActionConfigCollectionTrigger, TriggerActionConfigRetrieverExecution,
    TriggerActionConfigTaxonomyEnrichment, TriggerActionType, TriggerCollectionRequest, Value,
    reading,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use utoipa::ToSchema;
use validator::Validate;

use super::canary;
use crate::{
    app::App,
    auth::{Caller, Scope, Write},
    body,
    error::{Result, Violation},
    jobs::Claim,
    v1::{
        alerts, batches, clusters, collections,
        retrievers::{self, Execute},
        taxonomies::{self, Apply},
    },
};

/// Settings of the action `alert_evaluation`.
#[derive(Debug, Deserialize)]
struct AlertEvaluation {
    alert_id: String,
}

/// Refuses what could not be done, and answers the id of what is acted on: lists find a trigger by it, however the action
/// names it.
///
/// # Errors
/// The 422 list for settings that are not those of the action, 404 for what is not there.
pub async fn check(
    app: &App,
    scope: &Scope<Write>,
    kind: TriggerActionType,
    config: &Object,
) -> Result<String> {
    Ok(match kind {
        TriggerActionType::RetrieverExecution => {
            let config: TriggerActionConfigRetrieverExecution = sent(config)?;
            let retriever = retrievers::known(app, scope, &config.retriever_id).await?;
            canary::check(app, &scope.caller.org_id, &config).await?;
            retriever.id.clone()
        }
        TriggerActionType::CollectionTrigger => {
            let (collection, request) = triggered(app, scope, sent(config)?).await?;
            batches::check_trigger(&collection, &request)?;
            collection.collection_id.unwrap_or_default()
        }
        TriggerActionType::BatchRerun => {
            let config: TriggerActionConfigBatchRerun = sent(config)?;
            batch(app, scope, &config.batch_id).await?;
            config.batch_id
        }
        TriggerActionType::TaxonomyEnrichment => {
            let mut work = enrichment(sent(config)?);
            taxonomies::check(app, scope, &mut work).await?;
            work.taxonomy_id
        }
        TriggerActionType::Cluster => clusters::of_trigger(app, scope, &read(config)?).await?.0,
        TriggerActionType::AlertEvaluation => {
            let config: AlertEvaluation = read(config)?;
            alerts::exists(app, scope, &config.alert_id).await?;
            config.alert_id
        }
    })
}

/// What a caller sent: every member is one of the action, and within its bounds.
fn sent<T: DeserializeOwned + Validate + ToSchema>(config: &Object) -> Result<T> {
    let config = Value::Object(config.clone());
    body::from_value(config, None).map_err(|error| error.under(&["action_config"]))
}

/// What is kept: it was checked when it was sent.
fn read<T: DeserializeOwned>(config: &Object) -> Result<T> {
    reading::from_value(&Value::Object(config.clone())).map_err(|error| {
        let msg = format!("these are no settings of the action: {error}");
        Violation::body(
            &["action_config"],
            "value_error",
            msg,
            config.clone().into(),
        )
        .into()
    })
}

/// The collection that is processed, and what of its source.
async fn triggered(
    app: &App,
    scope: &Scope<Write>,
    config: TriggerActionConfigCollectionTrigger,
) -> Result<(CollectionResponse, TriggerCollectionRequest)> {
    let operation = NamespaceOperation::ExecuteJob;
    let collection = collections::find(app, scope, &config.collection_id, operation).await?;
    let (buckets, filters) = (config.include_buckets, config.source_filters);
    let collections = config.include_collections;
    let request = TriggerCollectionRequest {
        include_buckets: (!buckets.is_empty()).then_some(buckets),
        include_collections: (!collections.is_empty()).then_some(collections),
        source_filters: (!filters.is_empty()).then(|| Filter(filters.into())),
        ..Default::default()
    };
    Ok((collection, request))
}

/// Does it, and answers what came of it.
///
/// # Errors
/// What the action ends in; a retriever that does not do as well as it should is a failure too.
pub async fn perform(app: &App, trigger: &Trigger, claim: &Claim) -> Result<Vec<Value>> {
    let caller = Caller::system(&trigger.internal_id);
    let scope: Scope<Write> = Scope::internal(caller, trigger.namespace_id.clone());
    let config = &trigger.action_config;
    match trigger.action_type {
        TriggerActionType::RetrieverExecution => search(app, &scope, read(config)?).await,
        TriggerActionType::CollectionTrigger => process(app, &scope, read(config)?).await,
        TriggerActionType::BatchRerun => rerun(app, &scope, read(config)?).await,
        TriggerActionType::Cluster => {
            clusters::fire(app, &scope, &claim.task_id, &read(config)?).await
        }
        TriggerActionType::TaxonomyEnrichment => enrich(app, &scope, read(config)?).await,
        TriggerActionType::AlertEvaluation => {
            let config: AlertEvaluation = read(config)?;
            let found = alerts::evaluate(app, &scope, &config.alert_id, claim).await?;
            Ok(vec![found])
        }
    }
}

async fn search(
    app: &App,
    scope: &Scope<Write>,
    config: TriggerActionConfigRetrieverExecution,
) -> Result<Vec<Value>> {
    let retriever = retrievers::known(app, scope, &config.retriever_id).await?;
    let ask = Execute {
        inputs: config.inputs,
        filters: (!config.filters.is_empty()).then_some(config.filters),
        skip_cache: config.skip_cache,
        behind: true,
        ..Default::default()
    };
    let answer = retrievers::execute(app, scope, &retriever, ask).await?;
    let results = i64::try_from(answer.documents.len()).unwrap_or(i64::MAX);
    let took = answer
        .stage_statistics
        .as_ref()
        .map(|statistics| statistics.total_time_ms)
        .unwrap_or_default();
    if let Some(acceptance) = &config.acceptance {
        canary::judge(acceptance, &answer.documents, took)?;
    }
    Ok(vec![json!({
        "execution_id": answer.execution_id, "retriever_id": config.retriever_id,
        "results": results, "total_time_ms": took,
    })])
}

async fn process(
    app: &App,
    scope: &Scope<Write>,
    config: TriggerActionConfigCollectionTrigger,
) -> Result<Vec<Value>> {
    let (collection, request) = triggered(app, scope, config).await?;
    begin(app, scope, collection, request).await
}

/// Queues the batches that process a collection, and answers them.
async fn begin(
    app: &App,
    scope: &Scope<Write>,
    collection: CollectionResponse,
    request: TriggerCollectionRequest,
) -> Result<Vec<Value>> {
    let answer = batches::trigger(app, scope, collection, request).await?;
    let made = answer.batch_ids.iter().zip(&answer.task_ids);
    Ok(made
        .map(|(batch, task)| json!({ "batch_id": batch, "task_id": task }))
        .collect())
}

/// What is applied to what.
fn enrichment(config: TriggerActionConfigTaxonomyEnrichment) -> Apply {
    Apply {
        taxonomy_id: config.taxonomy_id,
        collection_id: config.collection_id,
        target_collection_id: config.target_collection_id,
        filters: config.filters,
        incremental: config.incremental,
        batch_size: config.batch_size,
        parallelism: config.parallelism,
        ..Default::default()
    }
}

async fn enrich(
    app: &App,
    scope: &Scope<Write>,
    config: TriggerActionConfigTaxonomyEnrichment,
) -> Result<Vec<Value>> {
    let mut work = enrichment(config);
    taxonomies::check(app, scope, &mut work).await?;
    let done = taxonomies::apply(app, scope, &work, None).await?;
    Ok(taxonomies::outputs(&work, &done))
}

async fn batch(app: &App, scope: &Scope<Write>, id: &str) -> Result<BatchModel> {
    batches::get(app, &scope.caller.org_id, &scope.namespace_id, "", id).await
}

async fn rerun(
    app: &App,
    scope: &Scope<Write>,
    config: TriggerActionConfigBatchRerun,
) -> Result<Vec<Value>> {
    let batch = batch(app, scope, &config.batch_id).await?;
    if config.retry_failed_only {
        let (bucket, ask) = (&batch.bucket_id, SubmitBatchRequest::default());
        let failed = batches::Again::Failed {
            tier: -1,
            error_type: String::new(),
        };
        // Not by way of the bucket: a batch of documents may have none.
        let queued = batches::queue(app, scope, bucket, &config.batch_id, ask, failed).await?;
        return Ok(vec![
            json!({ "task_id": queued.0.task_id, "objects": queued.1 }),
        ]);
    }
    // A batch that ended stays what it was: its objects are processed by a new one, as far as they are there.
    let filters = config.filters;
    if batch.r#type == BatchType::Collection {
        return rerun_documents(app, scope, batch, filters).await;
    }
    let object_ids = match filters.is_empty() {
        true => Some(batches::there(app, scope, &batch).await?),
        false => None,
    };
    let create = CreateBatchRequest {
        object_ids,
        filters: (!filters.is_empty()).then(|| Filter(filters.into())),
        collection_ids: batches::filled(app, scope, &batch).await?,
        auto_submit: Some(true),
        ..Default::default()
    };
    let again = batches::create(app, scope, &batch.bucket_id, create).await?;
    Ok(vec![
        json!({ "batch_id": again.batch_id, "task_id": again.task_id }),
    ])
}

/// A batch of documents is made anew as it was made: by its collection, of the same documents, or of those of the sources
/// that match.
async fn rerun_documents(
    app: &App,
    scope: &Scope<Write>,
    batch: BatchModel,
    filters: Object,
) -> Result<Vec<Value>> {
    // The first one is that which was processed; the others are over it.
    let mut collection_ids = batch.collection_ids.into_iter().flatten();
    let collection_id = collection_ids.next().unwrap_or_default();
    let operation = NamespaceOperation::ExecuteJob;
    let collection = collections::find(app, scope, &collection_id, operation).await?;
    let request = TriggerCollectionRequest {
        object_ids: filters.is_empty().then_some(batch.object_ids),
        source_filters: (!filters.is_empty()).then(|| Filter(filters.into())),
        ..Default::default()
    };
    begin(app, scope, collection, request).await
}
