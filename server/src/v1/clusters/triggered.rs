//! Clusters as triggers execute them.

use loupe_wire::{
    ExecuteClusterByIdRequest, Filter, NamespaceOperation, ResourceType,
    TriggerActionConfigCluster, Value,
};

use super::{
    composing, config, ending, find,
    running::{self, Begin},
    store::{self, CLUSTERS, Stored},
};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result, Violation},
    id,
    v1::collections,
};

/// The cluster that a trigger names, or the one over the collection that it names.
///
/// # Errors
/// 404 where there is none, the 422 list for what cannot be asked of it.
pub async fn of_trigger(
    app: &App,
    scope: &Scope<Write>,
    config: &TriggerActionConfigCluster,
) -> Result<(String, ExecuteClusterByIdRequest)> {
    let operation = NamespaceOperation::ExecuteJob;
    let stored = match (&config.cluster_id, &config.collection_id) {
        (Some(id), _) => find(app, scope, id, operation).await?,
        (None, Some(collection)) => over(app, scope, collection).await?,
        (None, None) => {
            let msg = "name the cluster";
            let path = ["action_config", "cluster_id"];
            return Err(Violation::body(&path, "missing", msg, Value::Null).into());
        }
    };
    if !config.output_collection_ids.is_empty() {
        let msg = "executions write into the documents themselves: enrich_source of the cluster";
        let path = ["action_config", "output_collection_ids"];
        return Err(Violation::body(&path, "not_enabled", msg, Value::Null).into());
    }
    let request = ExecuteClusterByIdRequest {
        mode: config.mode,
        source_execution_ids: (!config.source_execution_ids.is_empty())
            .then(|| config.source_execution_ids.clone()),
        assignment_threshold: config.assignment_threshold,
        filters: (!config.filters.is_empty())
            .then(|| Filter(Value::Object(config.filters.clone()))),
        ..Default::default()
    };
    config::check_request(&request, &stored.model)?;
    composing::check(app, scope, &request).await?;
    Ok((stored.told.cluster_id.unwrap_or_default(), request))
}

async fn over(app: &App, scope: &Scope<Write>, collection: &str) -> Result<Stored> {
    let operation = NamespaceOperation::ReadData;
    let collection = collections::known(app, scope, collection, operation).await?;
    let all = CLUSTERS.all(app.db(), &scope.namespace_id).await?;
    let mut over = all
        .into_iter()
        .filter(|one| one.told.input_collections.contains(&collection.id));
    let Some(found) = over.next() else {
        return Err(ApiError::not_found(
            "cluster over the collection",
            &collection.id,
        ));
    };
    let operation = NamespaceOperation::ExecuteJob;
    scope
        .caller
        .allow(ResourceType::Cluster, &found.id, operation)?;
    Ok(found.data.0)
}

/// Executes a cluster as a part of a trigger's task.
///
/// # Errors
/// What the execution ends in.
pub async fn fire(
    app: &App,
    scope: &Scope<Write>,
    task_id: &str,
    config: &TriggerActionConfigCluster,
) -> Result<Vec<Value>> {
    let (cluster_id, request) = of_trigger(app, scope, config).await?;
    let (caller, namespace_id) = (scope.caller.clone(), scope.namespace_id.clone());
    let (id, task, now) = (cluster_id.clone(), task_id.to_owned(), app.clock().micros());
    let run = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                store::lock(tx, &namespace_id, &id, now).await?;
                let begin = Begin {
                    cluster_id: &id,
                    run_id: id::new("run_"),
                    task_id: &task,
                    triggered: true,
                    request,
                };
                begin.write(tx, &caller, &namespace_id, now).await
            })
        })
        .await?;
    let run_id = run.result.run_id.clone();
    match running::perform(app, scope, run, None).await {
        Ok(Some(run)) => Ok(vec![running::output(&run)]),
        Ok(None) => Err(ApiError::bad_request("", "the execution was canceled")),
        Err(error) => {
            let (org_id, reason) = (&scope.caller.org_id, error.message());
            ending::fail(
                app,
                org_id,
                &scope.namespace_id,
                &cluster_id,
                &run_id,
                &reason,
            )
            .await?;
            Err(error)
        }
    }
}
