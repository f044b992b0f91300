//! Retrievers: stages that run over collections. Stages are immutable; changes are made on clones.

mod adhoc;
mod answers;
mod around;
mod asked;
mod batching;
mod called;
mod ended;
mod execution;
mod filtered;
mod highlights;
mod history;
mod keys;
mod learned;
mod log;
mod paging;
mod profile;
mod ready;
mod recording;
mod routes;
mod signing;
mod stages;
mod store;
mod streaming;
mod typeahead;
mod writing;

use std::sync::Arc;

use indexmap::IndexMap;
use loupe_engine::stage::{Configured, Plan, Surroundings};
use loupe_wire::{
    AuditAction, CloneRetrieverRequest, CreateRetrieverRequest, ExplainRetrieverResponse,
    NamespaceOperation, Object, PatchRetrieverRequest, ResourceType, RetrieverModelOutput, Value,
    reading,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

pub use answers::{
    Answered, Answers, Mark, Questions, Source, Unbilled, answer, asks_nobody, is_own, tag_of,
};
pub use around::{Held, Used, spend, used_up};
pub use asked::{Asked, Settings};
pub use ended::run_error;
pub use execution::{Execute, budget_ms, execute, finder, ground};
pub use highlights::of as highlights;
pub use history::{History, inputs_of_executions, record, sweep};
pub use keys::{hide_position, without_position};
pub use learned::Acts;
pub use profile::stages_of;
pub use ready::ReadyRetrievers;
pub use recording::AT_FAULT;
pub use routes::router;
pub use stages::{compile, compile_in, stage_inputs, stage_output, written_to};
pub use store::{Execution, RETRIEVERS, insert_execution, namespace_of};
pub use writing::fields as fields_of;

use super::{
    alerts, api_keys,
    audit::{self, Change},
    billing::QUERY_CREDITS,
    collections, connections, evaluations, secrets, taxonomies,
};
use crate::{
    app::App,
    auth::{Delete, Level, Scope, Write},
    clock,
    db::Record,
    error::{ApiError, Result, Violation},
    id,
    limits::quota::{self, Resource},
};

/// One wire type as another with the same members.
pub fn cast<T: DeserializeOwned>(value: &impl Serialize) -> Result<T> {
    reading::cast(value).map_err(ApiError::internal)
}

pub async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateRetrieverRequest,
) -> Result<RetrieverModelOutput> {
    scope.caller.allow(
        ResourceType::Retriever,
        "*",
        NamespaceOperation::CreateRetriever,
    )?;
    let schema = request.input_schema.unwrap_or_default();
    let plan = compile_in(&[], &request.stages, &schema)?;
    let identifiers = request.collection_identifiers.unwrap_or_default();
    let collection_ids = readable(app, scope, &plan, &identifiers).await?;
    let now = app.clock().micros();
    let retriever = RetrieverModelOutput {
        retriever_id: Some(id::new("ret_")),
        retriever_name: request.retriever_name,
        description: request.description,
        collection_ids,
        feature_dependencies: Some(stages::dependencies(&request.stages)),
        stages: request.stages.into_iter().map(stage_output).collect(),
        input_schema: schema,
        budget_limits: request.budget_limits,
        tags: request.tags.unwrap_or_default(),
        metadata: request.metadata.unwrap_or_default(),
        display_config: request.display_config.as_ref().map(cast).transpose()?,
        version: 1,
        created_at: Some(clock::time(now)),
        updated_at: Some(clock::time(now)),
        created_by: Some(scope.caller.actor().to_owned()),
        collection_identifiers: identifiers,
        ..Default::default()
    };
    insert(app, scope, retriever, now).await
}

/// What this server is configured with that stages need.
pub fn configured(app: &App) -> Configured {
    Configured {
        language: app.config().models.language.is_some(),
        web_search: app.web_search.is_some(),
        reverse_image: app.reverse_image.is_some(),
        code: app.config().code.enabled,
    }
}

/// The ids of the collections that a plan is to read, where the caller may read everything that it reads: these, those that
/// its stages name, taxonomies, retrievers, databases, and secrets that it sends.
///
/// # Errors
/// 404 for what is not there, 403 for what the caller may not read.
pub async fn readable<L: Level>(
    app: &App,
    scope: &Scope<L>,
    plan: &Plan,
    identifiers: &[String],
) -> Result<Vec<String>> {
    let caller = &scope.caller;
    for name in plan.secrets() {
        secrets::check_sender(app, caller, &name).await?;
    }
    let collections = collections::searched(app, &scope.namespace_id, identifiers).await?;
    let named = collections::searched(app, &scope.namespace_id, &plan.references()).await?;
    // A retriever reads its collections, and those that its stages name, for whoever may execute it.
    let all = collections.iter().chain(&named);
    for id in all.filter_map(|one| one.collection_id.as_deref()) {
        collections::allow_reading(caller, id)?;
    }
    // The same goes for taxonomies, other retrievers and databases.
    for named in plan.taxonomies() {
        taxonomies::find(app, scope, &named, NamespaceOperation::ReadData).await?;
    }
    for named in plan.retrievers() {
        find(app, scope, &named, NamespaceOperation::ExecuteRetriever).await?;
    }
    for named in plan.connections() {
        connections::check_database(app, caller, &named).await?;
    }
    evaluations::check(app, scope, plan).await?;
    let ids = collections
        .iter()
        .filter_map(|one| one.collection_id.clone());
    Ok(ids.collect())
}

async fn insert(
    app: &App,
    scope: &Scope<Write>,
    retriever: RetrieverModelOutput,
    now: i64,
) -> Result<RetrieverModelOutput> {
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let id = retriever.retriever_id.clone().unwrap_or_default();
                quota::check(tx, &caller.org_id, Resource::Retrievers).await?;
                RETRIEVERS
                    .insert(
                        tx,
                        &namespace_id,
                        &id,
                        &retriever.retriever_name,
                        now,
                        &retriever,
                    )
                    .await?;
                let change = Change {
                    action: AuditAction::RetrieverCreated,
                    resource: (ResourceType::Retriever, &id),
                    changes: json!({ "retriever_name": retriever.retriever_name }),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(retriever)
            })
        })
        .await
}

/// The stored retriever, if the caller's scopes cover it. By id or name.
pub async fn find<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<RetrieverModelOutput> {
    let record = RETRIEVERS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    scope
        .caller
        .allow(ResourceType::Retriever, &record.id, operation)?;
    Ok(record.data.0)
}

/// As [`find`], from memory if nothing changed: for running the retriever.
pub async fn known<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<Arc<Record<RetrieverModelOutput>>> {
    let record = RETRIEVERS
        .known(app.db(), &scope.namespace_id, identifier)
        .await?;
    let operation = NamespaceOperation::ExecuteRetriever;
    scope
        .caller
        .allow(ResourceType::Retriever, &record.id, operation)?;
    Ok(record)
}

/// Refuses what only a clone changes.
fn check_fixed(request: &PatchRetrieverRequest) -> Result<()> {
    for (member, sent) in [
        ("stages", request.stages.is_some()),
        (
            "collection_identifiers",
            request.collection_identifiers.is_some(),
        ),
        ("input_schema", request.input_schema.is_some()),
    ] {
        if sent {
            let msg = format!(
                "{member} cannot be changed in place: clone the retriever with the new value"
            );
            return Err(Violation::body(&[member], "immutable_field", msg, Value::Null).into());
        }
    }
    Ok(())
}

/// Puts what is sent in place of what was there.
fn merge(retriever: &mut RetrieverModelOutput, request: PatchRetrieverRequest) -> Result<()> {
    if let Some(name) = request.retriever_name {
        retriever.retriever_name = name;
    }
    if let Some(description) = request.description {
        retriever.description = description;
    }
    if let Some(tags) = request.tags {
        retriever.tags = tags.unwrap_or_default();
    }
    if let Some(metadata) = request.metadata {
        retriever.metadata = metadata.unwrap_or_default();
    }
    if let Some(display) = request.display_config {
        retriever.display_config = display.as_ref().map(cast).transpose()?;
    }
    Ok(())
}

pub async fn update(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: PatchRetrieverRequest,
) -> Result<RetrieverModelOutput> {
    check_fixed(&request)?;
    let id = find(app, scope, identifier, NamespaceOperation::CreateRetriever)
        .await?
        .retriever_id
        .unwrap_or_default();
    let (namespace_id, caller, now) = (
        scope.namespace_id.clone(),
        scope.caller.clone(),
        app.clock().micros(),
    );
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut retriever = RETRIEVERS.hold(tx, &namespace_id, &id).await?.data.0;
                let before = retriever.clone();
                merge(&mut retriever, request)?;
                retriever.updated_at = Some(clock::time(now));
                retriever.updated_by = Some(caller.actor().to_owned());
                let name = &retriever.retriever_name;
                RETRIEVERS
                    .update(tx, &namespace_id, &id, name, now, &retriever)
                    .await?;
                let change = Change {
                    action: AuditAction::RetrieverUpdated,
                    resource: (ResourceType::Retriever, &id),
                    changes: audit::difference(&before, &retriever),
                };
                audit::record(tx, &caller, change, now).await?;
                Ok(retriever)
            })
        })
        .await
}

/// A copy with another name, and other stages or collections where sent.
pub async fn clone(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: CloneRetrieverRequest,
) -> Result<(RetrieverModelOutput, String)> {
    let source = find(app, scope, identifier, NamespaceOperation::CreateRetriever).await?;
    let create_request = CreateRetrieverRequest {
        retriever_name: request.retriever_name,
        description: request.description.or(source.description),
        collection_identifiers: Some(
            request
                .collection_identifiers
                .unwrap_or(source.collection_ids),
        ),
        stages: request
            .stages
            .unwrap_or_else(|| stage_inputs(&source.stages)),
        input_schema: Some(request.input_schema.unwrap_or(source.input_schema)),
        budget_limits: request.budget_limits.or(source.budget_limits),
        tags: Some(request.tags.unwrap_or(source.tags)),
        metadata: Some(source.metadata),
        display_config: match request.display_config {
            Some(display) => Some(display),
            None => source.display_config.as_ref().map(cast).transpose()?,
        },
        ..Default::default()
    };
    let clone = create(app, scope, create_request).await?;
    Ok((clone, source.retriever_id.unwrap_or_default()))
}

pub async fn delete(app: &App, scope: &Scope<Delete>, identifier: &str) -> Result<()> {
    let retriever = find(app, scope, identifier, NamespaceOperation::DeleteRetriever).await?;
    let id = retriever.retriever_id.unwrap_or_default();
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let now = app.clock().micros();
    let hashes = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                // Before its page: nobody publishes it from here on.
                let name = RETRIEVERS.hold(tx, &namespace_id, &id).await?.name;
                super::publishing::delete_of(tx, &namespace_id, &id).await?;
                RETRIEVERS.delete(tx, &namespace_id, &id).await?;
                let change = Change {
                    action: AuditAction::RetrieverDeleted,
                    resource: (ResourceType::Retriever, &id),
                    changes: Value::Null,
                };
                audit::record(tx, &caller, change, now).await?;
                let hashes = api_keys::revoke_all_of_retriever(tx, &caller, &id, now).await?;
                let names = (id.as_str(), name.as_str());
                alerts::forget_retriever(tx, &caller, &namespace_id, names, now).await?;
                Ok(hashes)
            })
        })
        .await?;
    api_keys::forget(app, &hashes);
    Ok(())
}

/// What an execution would do and cost, in words and estimates, and what would do it good. It is paid for once, whatever its
/// stages do here.
pub async fn explain<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    inputs: Option<&Object>,
) -> Result<ExplainRetrieverResponse> {
    let ready = ready::ready(app, retriever)?;
    let ids = &retriever.collection_ids;
    let collections = collections::searched(app, &scope.namespace_id, ids).await?;
    // Those that are put away are not searched.
    let collections = execution::searchable(app, &collections);
    let ids = collections.iter().map(|one| one.collection_id.clone());
    let documents = app.store().count(&scope.reach(ids.collect()), None).await?;
    let execution_plan = ready.plan.explain(Surroundings {
        collections: &collections,
        documents,
        inputs,
        now: app.clock().now(),
        configured: configured(app),
    });
    let total_ms: f64 = execution_plan
        .iter()
        .map(|stage| stage.estimated_duration_ms)
        .sum();
    let slowest = execution_plan
        .iter()
        .max_by(|a, b| a.estimated_duration_ms.total_cmp(&b.estimated_duration_ms));
    let details = Object::from_iter([("documents_in_reach".to_owned(), json!(documents))]);
    Ok(ExplainRetrieverResponse {
        retriever_id: retriever.retriever_id.clone().unwrap_or_default(),
        retriever_name: retriever.retriever_name.clone(),
        estimated_cost: IndexMap::from([
            ("total_credits".into(), QUERY_CREDITS),
            ("total_duration_ms".into(), total_ms),
        ]),
        total_estimated_stages: i64::try_from(execution_plan.len()).unwrap_or(i64::MAX),
        bottleneck_stages: slowest
            .map(|stage| stage.stage_name.clone())
            .into_iter()
            .collect(),
        optimization_suggestions: ready.plan.suggestions(),
        optimization_applied: false,
        optimization_details: Some(details),
        execution_plan,
        ..Default::default()
    })
}
