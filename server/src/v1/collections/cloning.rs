//! A new collection after the pattern of another.

use loupe_wire::{
    AlertApplicationConfig, CloneCollectionRequest, CloneCollectionResponse, CollectionResponse,
    CreateCollectionRequest, FeatureExtractorConfigInput, FeatureExtractorConfigOutput,
    NamespaceOperation, RetrieverTransformConfigInput, RetrieverTransformConfigOutput, Value,
    reading,
};

use super::{draft, draft_copy, find, headers, insert, lifecycle};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    v1::{
        alerts,
        copying::{self, Copy},
        retrievers,
    },
};

/// The extractor of a stored collection as a request names it.
pub(super) fn as_sent(extractor: FeatureExtractorConfigOutput) -> FeatureExtractorConfigInput {
    FeatureExtractorConfigInput {
        feature_extractor_name: extractor.feature_extractor_name,
        version: extractor.version,
        params: extractor.params,
        parameters: extractor.parameters,
        input_mappings: extractor.input_mappings,
        field_passthrough: extractor.field_passthrough,
        include_all_source_fields: extractor.include_all_source_fields,
    }
}

fn transform_as_sent(transform: RetrieverTransformConfigOutput) -> RetrieverTransformConfigInput {
    let stages = retrievers::stage_inputs(&transform.stages);
    RetrieverTransformConfigInput {
        retriever_id: transform.retriever_id,
        retriever_version: transform.retriever_version,
        stages: (!stages.is_empty()).then_some(stages),
        input_mappings: transform.input_mappings,
        write_back_fields: transform.write_back_fields,
        unique_id_field: transform.unique_id_field,
    }
}

/// The extractor that is asked for: of the same source it reads and takes along what that of the pattern does, where nothing
/// is said of it. Inputs of another extractor have names of their own.
fn extractor(
    own: FeatureExtractorConfigInput,
    sent: Option<FeatureExtractorConfigInput>,
    same_source: bool,
) -> FeatureExtractorConfigInput {
    let Some(mut asked) = sent else {
        return own;
    };
    if !same_source {
        return asked;
    }
    if asked.input_mappings.is_none() && asked.feature_extractor_name == own.feature_extractor_name
    {
        asked.input_mappings = own.input_mappings;
    }
    if asked.field_passthrough.is_empty() && !asked.include_all_source_fields {
        asked.field_passthrough = own.field_passthrough;
        asked.include_all_source_fields = own.include_all_source_fields;
    }
    asked
}

/// What is asked for, with what the pattern has where nothing is said.
fn wanted(pattern: CollectionResponse, request: CloneCollectionRequest) -> CreateCollectionRequest {
    // Another source has a schema of its own.
    let same_source = request.source.is_none();
    let own_extractor = as_sent(pattern.feature_extractor);
    CreateCollectionRequest {
        collection_name: request.collection_name,
        description: request.description.or(pattern.description),
        source: request.source.unwrap_or(pattern.source),
        input_schema: pattern.input_schema.filter(|_| same_source),
        feature_extractor: Some(extractor(
            own_extractor,
            request.feature_extractor,
            same_source,
        )),
        enabled: request.enabled.unwrap_or(pattern.enabled),
        metadata: request.metadata.or(pattern.metadata),
        taxonomy_applications: request
            .taxonomy_applications
            .or(pattern.taxonomy_applications),
        cluster_applications: pattern.cluster_applications,
        alert_applications: pattern.alert_applications,
        schedule: pattern.schedule,
        retriever_enrichments: pattern.retriever_enrichments,
        retriever_transform: pattern.retriever_transform.map(transform_as_sent),
        embedding_task: pattern.embedding_task,
        ..Default::default()
    }
}

/// The alerts that a clone applies: those of its pattern that are there for the caller. A collection keeps naming one that was
/// removed.
async fn applied(
    app: &App,
    scope: &Scope<Write>,
    named: Option<Vec<AlertApplicationConfig>>,
) -> Result<Option<Vec<AlertApplicationConfig>>> {
    let Some(named) = named else { return Ok(None) };
    let mut applied = Vec::with_capacity(named.len());
    for one in named {
        match alerts::exists(app, scope, &one.alert_id).await {
            Ok(()) => applied.push(one),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok((!applied.is_empty()).then_some(applied))
}

/// Whoever says what is crawled would be sent the secrets that another source was given.
fn check_headers(made: &CollectionResponse) -> Result<()> {
    if !headers::are_sealed(&made.feature_extractor) {
        return Ok(());
    }
    let msg = "the headers of this collection are secrets for its own source: send the extractor with its headers";
    Err(Violation::body(&["source"], "sealed_headers", msg, Value::Null).into())
}

/// Makes a collection like the named one; members of the request win over its own. With the same source and extractor a
/// task copies the documents with their vectors, else the new collection is to be triggered.
pub async fn clone(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: CloneCollectionRequest,
) -> Result<CloneCollectionResponse> {
    let pattern = find(app, scope, identifier, NamespaceOperation::ReadData).await?;
    lifecycle::check_here(&pattern)?;
    let source_id = pattern.collection_id.clone().unwrap_or_default();
    let own = request.feature_extractor.is_none();
    let mut create_request = wanted(pattern.clone(), request);
    create_request.alert_applications =
        applied(app, scope, create_request.alert_applications).await?;
    let mut made = match own {
        true => draft_copy(app, scope, create_request, false).await?,
        false => draft(app, scope, create_request).await?,
    };
    made.document_schema = pattern.document_schema;
    made.schema_validation = pattern.schema_validation;
    made.schema_sync_enabled = pattern.schema_sync_enabled;
    if own && made.source != pattern.source {
        check_headers(&made)?;
    }
    let extractors = (made.feature_extractor.clone(), pattern.feature_extractor);
    let same = made.source == pattern.source && as_sent(extractors.0) == as_sent(extractors.1);
    if own || same {
        made.index_map = pattern.index_map;
    }
    let collection_id = made.collection_id.clone();
    let copy = Copy {
        from_namespace: scope.namespace_id.clone(),
        collections: [(source_id.clone(), collection_id.clone().unwrap_or_default())].into(),
        whole: false,
    };
    let (caller, namespace_id, now) = (
        scope.caller.clone(),
        scope.namespace_id.clone(),
        app.clock().micros(),
    );
    let made = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                insert(tx, &caller, &namespace_id, &made, now).await?;
                if same {
                    copying::enqueue(tx, &caller.org_id, &namespace_id, &copy, now).await?;
                }
                Ok(made)
            })
        })
        .await?;
    app.work.notify_one();
    // Two faces of one resource: the members are the same.
    let collection = reading::cast(&made).map_err(ApiError::internal)?;
    Ok(CloneCollectionResponse {
        collection,
        source_collection_id: source_id,
        collection_id,
    })
}
