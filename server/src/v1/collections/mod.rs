//! Collections: a source of objects, and the feature extractor that turns them into documents with vectors.

pub mod archiving;
mod changing;
mod cloning;
mod configuring;
mod counting;
mod details;
mod enriching;
mod extractors;
mod features;
pub mod headers;
mod internal;
pub mod lifecycle;
mod mappings;
mod naming;
mod parameters;
mod reconciling;
mod replacing;
mod routes;
mod scheduling;
mod schemas;
mod searching;
mod sources;
pub mod store;
mod transforming;
pub mod unbuilt;

use std::sync::Arc;

use loupe_engine::{
    extract::{self, IndexInfo, Params, registry::Source},
    stage::{SearchIndex, Searchable},
    store::CollectionSpec,
};
use loupe_wire::{
    AlertApplicationConfig, AuditAction, CollectionFeatureDescriptor, CollectionResponse,
    CollectionVectorIndex, CreateCollectionRequest, DescribeCollectionFeaturesResponse,
    NamespaceOperation, ResourceType, Value, VectorIndex, VectorType,
};
use serde_json::json;

pub use changing::{delete, update};
pub use cloning::clone;
pub use counting::Counts;
pub use enriching::enrich;
pub use internal::{allow_reading, readable, searched};
pub use replacing::{check_extractor, with_extractor};
pub use routes::router;
pub use scheduling::{hold_scheduled, unschedule};
pub use searching::{Ready, hindered};
pub use store::COLLECTIONS;
pub use transforming::{Results, Transform};

use counting::count_documents;

use super::{
    alerts,
    annotations::signal,
    audit::{self, Change},
    clusters,
    namespaces::push_event,
    taxonomies, triggers,
};
use crate::{
    app::App,
    auth::{Caller, Level, Scope, Write},
    clock,
    db::{Record, Tx},
    error::{Result, Violation},
    id,
    limits::quota::{self, Resource},
};

/// The extractor routes live beside the collections that use them.
pub use extractors::{describe, router as extractors_router};

/// The member of an index that names the model which questions are asked by.
pub const INFERENCE: &str = "inference_service";

pub fn vector_index(index: &IndexInfo) -> CollectionVectorIndex {
    let described = json!({
        "dimensions": index.dims, "distance": index.distance, "output": index.output, "source": index.source,
    });
    CollectionVectorIndex {
        name: Some(index.name.clone()),
        feature_uri: Some(index.feature_uri.clone()),
        r#type: Some("dense".into()),
        index: described.as_object().cloned(),
        ..Default::default()
    }
}

/// The indexes of a stored collection, as the engine wants them.
pub fn indexes(app: &App, collection: &CollectionResponse) -> Vec<IndexInfo> {
    params(app, collection)
        .map(|params| params.indexes().to_vec())
        .unwrap_or_default()
}

/// The parameters of a stored collection's extractor; none for one that is not here any more.
pub fn params(app: &App, collection: &CollectionResponse) -> Option<Params> {
    let extractor = &collection.feature_extractor;
    let info = extract::find(&extractor.feature_extractor_name, &extractor.version)?;
    let sent = extractor.parameters.clone().unwrap_or(Value::Null);
    info.check_params(&sent, app.outputs()).ok()
}

/// Where the collection's documents live and with which vectors.
pub fn spec(app: &App, namespace_id: &str, collection: &CollectionResponse) -> CollectionSpec {
    CollectionSpec {
        namespace_id: namespace_id.into(),
        collection_id: collection.collection_id.clone().unwrap_or_default(),
        vectors: indexes(app, collection)
            .iter()
            .map(IndexInfo::spec)
            .collect(),
    }
}

/// The collection as a plan of a retriever sees it.
pub fn searchable(app: &App, collection: &CollectionResponse) -> Searchable {
    let output = |index: &IndexInfo| {
        inference(collection, &index.name).unwrap_or_else(|| index.output.clone())
    };
    let own = indexes(app, collection).into_iter();
    let mut indexes: Vec<SearchIndex> = own
        .map(|index| SearchIndex {
            output: output(&index),
            // Vectors that objects bring along are named, not addressed.
            feature_uri: (index.source != Source::Own).then_some(index.feature_uri),
            name: index.name,
            dims: index.dims,
        })
        .collect();
    naming::add(collection, &mut indexes);
    Searchable {
        collection_id: collection.collection_id.clone().unwrap_or_default(),
        name: collection.collection_name.clone(),
        indexes,
    }
}

/// The model that texts are asked by where an index holds vectors of one's own.
pub fn inference(collection: &CollectionResponse, name: &str) -> Option<String> {
    let named = |index: &&CollectionVectorIndex| index.name.as_deref() == Some(name);
    let index = collection.vector_indexes.iter().find(named)?;
    let service = index.index.as_ref()?.get(INFERENCE)?.as_str()?;
    Some(service.to_owned())
}

fn check_name(name: &str) -> Result<()> {
    if signal::named(name).is_some() {
        let msg = "the server keeps a collection of this name";
        return Err(Violation::body(&["collection_name"], "value_error", msg, name.into()).into());
    }
    let length = name.chars().count();
    if (3..=100).contains(&length) {
        return Ok(());
    }
    Err(Violation::body(
        &["collection_name"],
        "string_too_short",
        "a name has 3 to 100 characters",
        name.into(),
    )
    .into())
}

/// The collection that a request asks for, checked and not yet written.
///
/// # Errors
/// A source, extractor or application that is not there or cannot be used.
pub async fn draft(
    app: &App,
    scope: &Scope<Write>,
    request: CreateCollectionRequest,
) -> Result<CollectionResponse> {
    let mut drafted = draft_copy(app, scope, request, true).await?;
    headers::seal(app, &scope.caller.org_id, &mut drafted.feature_extractor)?;
    Ok(drafted)
}

/// As [`draft`]; unless it is new, with the extractor of another collection: what is secret of it is sealed already, and it
/// goes on as it is.
async fn draft_copy(
    app: &App,
    scope: &Scope<Write>,
    request: CreateCollectionRequest,
    is_new: bool,
) -> Result<CollectionResponse> {
    scope
        .caller
        .allow(ResourceType::Collection, "*", NamespaceOperation::WriteData)?;
    check_name(&request.collection_name)?;
    let source = sources::check(app, scope, request.source).await?;
    let about = (request.collection_name.as_str(), &source);
    let transform = transforming::check(app, scope, request.retriever_transform, about).await?;
    let (sent, features) = (request.feature_extractor, request.features);
    let config = features::extractor(app, sent, features, transform.is_some())?;
    let (feature_extractor, indexes) = configuring::check(app, &config, is_new)?;
    let schemas = match &transform {
        // What a retriever finds may have any field.
        Some(_) => vec![None],
        None => sources::schemas(app, &scope.namespace_id, &source).await?,
    };
    mappings::check(&config, &schemas)?;
    check_alerts(app, scope, request.alert_applications.as_deref()).await?;
    let input_schema = match request.input_schema {
        Some(schema) => Some(schema),
        None => schemas.into_iter().next().flatten(),
    };
    let output_schema = configuring::output_schema(app, &feature_extractor, input_schema.as_ref());
    let applications = request.taxonomy_applications;
    let taxonomy_applications = taxonomies::check_applications(app, scope, applications).await?;
    let applied = request.cluster_applications;
    let cluster_applications = clusters::check_applications(app, scope, applied).await?;
    let schedule = scheduling::check(app, scope, request.schedule, ("*", &source)).await?;
    let enrichments = enriching::check(app, scope, request.retriever_enrichments).await?;
    let now = app.clock().micros();
    Ok(CollectionResponse {
        collection_id: Some(id::new("col_")),
        collection_name: request.collection_name,
        description: request.description,
        output_schema: Some(output_schema),
        input_schema,
        feature_extractor,
        source,
        vector_indexes: indexes.iter().map(vector_index).collect(),
        embedding_task: request.embedding_task,
        enabled: request.enabled,
        metadata: request.metadata,
        alert_applications: request.alert_applications,
        trigger_id: triggers::new_id(schedule.as_ref()),
        schedule,
        retriever_enrichments: enrichments,
        retriever_transform: transform,
        taxonomy_applications,
        cluster_applications,
        document_count: Some(0),
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        ..Default::default()
    })
}

/// Alerts that a collection applies are there.
async fn check_alerts(
    app: &App,
    scope: &Scope<Write>,
    applications: Option<&[AlertApplicationConfig]>,
) -> Result<()> {
    for application in applications.into_iter().flatten() {
        alerts::exists(app, scope, &application.alert_id).await?;
    }
    Ok(())
}

/// Writes a new collection, its record and its event.
pub async fn insert(
    tx: &mut Tx,
    caller: &Caller,
    namespace_id: &str,
    collection: &CollectionResponse,
    now: i64,
) -> Result<()> {
    let (id, name) = (
        collection.collection_id.as_deref().unwrap_or_default(),
        &collection.collection_name,
    );
    let org_id = &caller.org_id;
    quota::check(tx, org_id, Resource::Collections).await?;
    COLLECTIONS
        .insert(tx, namespace_id, id, name, now, collection)
        .await?;
    if collection.schedule.is_some() && collection.cluster_applications.is_some() {
        triggers::hold_all_of(tx, org_id, namespace_id, id).await?;
    }
    triggers::begin_schedule(tx, caller, namespace_id, collection, None, now).await?;
    clusters::apply(tx, caller, namespace_id, collection, now).await?;
    let payload = json!({"collection_id": id, "collection_name": name});
    let change = Change {
        action: AuditAction::CollectionCreated,
        resource: (ResourceType::Collection, id),
        changes: payload.clone(),
    };
    audit::record(tx, caller, change, now).await?;
    push_event(tx, org_id, namespace_id, "collection.created", payload, now).await
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateCollectionRequest,
) -> Result<CollectionResponse> {
    let collection = draft(app, scope, request).await?;
    let (caller, namespace_id, now) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                insert(tx, &caller, &namespace_id, &collection, now).await?;
                Ok(collection)
            })
        })
        .await
}

/// With the number of its documents.
pub async fn get<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<CollectionResponse> {
    let collection = match find(app, scope, identifier, NamespaceOperation::ReadData).await {
        Err(error) if error.is_not_found() => {
            let found = internal::signal_of(&scope.caller, identifier, error)?;
            found.data.0.clone()
        }
        found => found?,
    };
    let mut collections = vec![collection];
    count_documents(app, scope, &mut collections).await?;
    Ok(collections.remove(0))
}

/// The stored collection, if the caller's scopes cover it.
pub async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<CollectionResponse> {
    let record = COLLECTIONS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Collection, &record.id, operation)?;
    Ok(record.data.0)
}

/// As [`find`], from memory if nothing changed: for what is asked for through the collection.
pub async fn known<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<Arc<Record<CollectionResponse>>> {
    let record = COLLECTIONS
        .known(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Collection, &record.id, operation)?;
    Ok(record)
}

/// What searches of the collection can use.
pub async fn features<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<DescribeCollectionFeaturesResponse> {
    let collection = find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let extractor = &collection.feature_extractor;
    let describe = |(place, index): (usize, IndexInfo)| CollectionFeatureDescriptor {
        feature_address: index.feature_uri.clone(),
        feature_extractor_name: extractor.feature_extractor_name.clone(),
        version: extractor.version.clone(),
        vector_index: VectorIndex {
            name: Some(index.name),
            description: format!("vectors of {}", index.output),
            dimensions: i64::try_from(index.dims).ok(),
            r#type: VectorType::Dense,
            distance: serde_json::to_value(index.distance)
                .ok()
                .and_then(|name| name.as_str().map(Into::into)),
            ..Default::default()
        },
        primary: place == 0,
        feature_uri: index.feature_uri,
    };
    let features = indexes(app, &collection)
        .into_iter()
        .enumerate()
        .map(describe)
        .collect();
    Ok(DescribeCollectionFeaturesResponse { features })
}

/// Collections by id or name, in the order named, from memory if nothing changed; the first unknown one is a 404.
pub async fn resolve(
    app: &App,
    namespace_id: &str,
    identifiers: &[String],
) -> Result<Vec<Arc<Record<CollectionResponse>>>> {
    let mut found = Vec::with_capacity(identifiers.len());
    for identifier in identifiers {
        found.push(
            COLLECTIONS
                .known(app.db(), namespace_id, identifier)
                .await?,
        );
    }
    Ok(found)
}
