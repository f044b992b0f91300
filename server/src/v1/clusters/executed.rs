//! What triggers and taxonomies are told of clusters and their executions.

use std::collections::HashMap;

use loupe_wire::{ClusterExecutionMetrics, ClusterRunStatus, NamespaceOperation, Object, Value};

use super::{
    members::{self, Members},
    store::{self, CLUSTERS},
};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
};

/// What a cluster executes.
pub struct Executed {
    pub cluster_id: String,
    pub collection_ids: Vec<String>,
    /// As it was asked for.
    pub config: Object,
}

/// The clusters of a namespace, by id and by name.
///
/// # Errors
/// The database does not answer.
pub async fn executed(app: &App, namespace_id: &str) -> Result<HashMap<String, Executed>> {
    let mut all = HashMap::new();
    for record in CLUSTERS.all(app.db(), namespace_id).await? {
        let model = &record.model;
        let mut config = Object::new();
        let mut add = |name: &str, value: serde_json::Result<Value>| match value {
            Ok(Value::Null) | Err(_) => {}
            Ok(value) => {
                config.insert(name.to_owned(), value);
            }
        };
        add("cluster_name", serde_json::to_value(&model.cluster_name));
        add("cluster_type", serde_json::to_value(model.cluster_type));
        add("vector_config", serde_json::to_value(&model.vector_config));
        add(
            "attribute_config",
            serde_json::to_value(&model.attribute_config),
        );
        add("filters", serde_json::to_value(&model.filters));
        for name in [&record.id, &record.name] {
            let told = Executed {
                cluster_id: record.id.clone(),
                collection_ids: model.collection_ids.clone().unwrap_or_default(),
                config: config.clone(),
            };
            all.insert(name.clone(), told);
        }
    }
    Ok(all)
}

/// The id of a cluster that the caller may use so.
///
/// # Errors
/// 404 for what is not there, 403 for what is out of the key's scopes.
pub async fn known<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
    operation: NamespaceOperation,
) -> Result<String> {
    let found = super::find(app, scope, identifier, operation).await?;
    Ok(found.told.cluster_id.unwrap_or_default())
}

/// By task, how many clusters and documents the executions have that a trigger began.
///
/// # Errors
/// The database does not answer.
pub async fn made_by(
    app: &App,
    namespace_id: &str,
    trigger_id: &str,
) -> Result<HashMap<String, (i64, i64)>> {
    let runs = store::of_trigger(app.db(), namespace_id, trigger_id).await?;
    let completed = runs
        .into_iter()
        .filter(|run| run.result.status == ClusterRunStatus::Completed);
    let told = completed.map(|run| {
        let result = run.result;
        (run.task_id, (result.num_clusters, result.num_points))
    });
    Ok(told.collect())
}

/// The figures of the last completed execution of a cluster: of the one that is named, else of the newest over any of the
/// collections.
///
/// # Errors
/// 404 for a named one that is not there; the database does not answer.
pub async fn figures(
    app: &App,
    namespace_id: &str,
    named: Option<&str>,
    collection_ids: &[String],
) -> Result<Option<ClusterExecutionMetrics>> {
    let id = match named {
        Some(named) => {
            let found = CLUSTERS.known(app.db(), namespace_id, named).await?;
            found.id.clone()
        }
        None => {
            let mut all = CLUSTERS.all(app.db(), namespace_id).await?.into_iter();
            let reads = |id: &String| collection_ids.contains(id);
            let Some(over) = all.find(|one| one.told.input_collections.iter().any(reads)) else {
                return Ok(None);
            };
            over.id
        }
    };
    let last = store::last(app.db(), namespace_id, &id).await?;
    Ok(last.and_then(|run| run.result.metrics))
}

/// The collection and the cluster of each document that is in one, after the newest completed execution; none where there is
/// no such execution.
///
/// # Errors
/// 404 for a cluster that is not there, 403 for one out of the key's scopes.
pub async fn spread<L: Level>(
    app: &App,
    scope: &Scope<L>,
    identifier: &str,
) -> Result<Option<Vec<(String, usize)>>> {
    let namespace_id = &scope.namespace_id;
    let id = known(app, scope, identifier, NamespaceOperation::ReadData).await?;
    let Some(run) = store::last(app.db(), namespace_id, &id).await? else {
        return Ok(None);
    };
    let key = members::key(namespace_id, &id, &run.result.run_id);
    let kept = Members::read(app, &key).await?;
    let placed = kept.members.into_iter();
    let placed = placed.filter_map(|one| Some((one.collection_id, one.cluster?)));
    Ok(Some(placed.collect()))
}
