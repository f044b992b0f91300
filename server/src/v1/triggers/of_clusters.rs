//! Triggers as clusters have them: those whose action is `cluster`, in the words of that part of the interface.

use std::collections::HashMap;

use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    ClusterTrigger, ClusterTriggerHistoryResponse, CreateClusterRequest,
    CreateClusterTriggerRequest, CreateTriggerRequest, ListClusterTriggersRequest,
    ListClusterTriggersResponse, ListTriggersRequest, NamespaceOperation, Object, Trigger,
    TriggerActionType, TriggerExecutionConfig, TriggerExecutionHistoryItem, TriggerHistoryRequest,
    TriggerStatus, UpdateClusterTriggerRequest, UpdateTriggerRequest, Value,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{member, schedule, schedule::Schedule, store};
use crate::{
    app::App,
    auth::{Delete, Level, Read, Scope, Write},
    body::{self, Body},
    error::{ApiError, Result, Violation},
    json::Json,
    openapi::routes,
    v1::clusters::{self, Executed},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_cluster_trigger))
        .routes(routes!(list_cluster_triggers))
        .routes(routes!(
            get_cluster_trigger,
            update_cluster_trigger,
            delete_cluster_trigger
        ))
        .routes(routes!(pause_cluster_trigger))
        .routes(routes!(resume_cluster_trigger))
        .routes(routes!(cluster_trigger_history))
}

/// A trigger by its id, if it is one of a cluster.
async fn find<L: Level>(app: &App, scope: &Scope<L>, id: &str) -> Result<Trigger> {
    let trigger = store::find(app.db(), &scope.namespace_id, id).await?;
    match trigger.action_type {
        TriggerActionType::Cluster => Ok(trigger),
        _ => Err(ApiError::not_found("trigger", id)),
    }
}

/// Triggers in the words of clusters.
async fn told<L: Level>(
    app: &App,
    scope: &Scope<L>,
    triggers: Vec<Trigger>,
) -> Result<Vec<ClusterTrigger>> {
    let executed = clusters::executed(app, &scope.namespace_id).await?;
    let told = triggers.into_iter().map(|one| tell(one, &executed));
    Ok(told.collect())
}

async fn told_one<L: Level>(
    app: &App,
    scope: &Scope<L>,
    trigger: Trigger,
) -> Result<Json<ClusterTrigger>> {
    let mut told = told(app, scope, vec![trigger]).await?;
    Ok(Json(told.pop().unwrap_or_default()))
}

fn tell(trigger: Trigger, executed: &HashMap<String, Executed>) -> ClusterTrigger {
    let named = member(&trigger.action_config, "cluster_id");
    let named = named.map(|named| (named, executed.get(named)));
    let execution_config = match named {
        Some((_, Some(found))) => TriggerExecutionConfig {
            collection_ids: found.collection_ids.clone(),
            config: found.config.clone(),
        },
        // A cluster that is gone, or the one over a collection, whichever that is.
        _ => TriggerExecutionConfig {
            collection_ids: member(&trigger.action_config, "collection_id")
                .map(ToOwned::to_owned)
                .into_iter()
                .collect(),
            config: trigger.action_config.clone(),
        },
    };
    let cluster_id = named.map(|(named, found)| match found {
        Some(found) => found.cluster_id.clone(),
        None => named.to_owned(),
    });
    ClusterTrigger {
        trigger_id: trigger.trigger_id,
        cluster_id,
        namespace_id: trigger.namespace_id,
        internal_id: trigger.internal_id,
        execution_config,
        trigger_type: trigger.trigger_type,
        schedule_config: trigger.schedule_config,
        status: trigger.status,
        last_triggered_at: trigger.last_triggered_at,
        last_execution_job_id: trigger.last_execution_task_id,
        next_scheduled_at: trigger.next_scheduled_at,
        execution_count: trigger.execution_count,
        consecutive_failures: trigger.consecutive_failures,
        last_execution_status: trigger.last_execution_status,
        last_execution_error: trigger.last_execution_error,
        event_counter: trigger.event_counter,
        last_cooldown_at: trigger.last_cooldown_at,
        created_at: trigger.created_at,
        updated_at: trigger.updated_at,
        created_by: trigger.created_by,
        description: trigger.description,
    }
}

fn refused(member: &str, kind: &str, msg: &str) -> ApiError {
    Violation::body(&[member], kind, msg, Value::Null).into()
}

/// The cluster that is named, or the one that is asked for, made now.
async fn cluster_of(
    app: &App,
    scope: &Scope<Write>,
    named: Option<String>,
    asked: Option<TriggerExecutionConfig>,
) -> Result<String> {
    match (named, asked) {
        (Some(named), None) => {
            let operation = NamespaceOperation::ExecuteJob;
            clusters::known(app, scope, &named, operation).await
        }
        (None, Some(asked)) if asked.collection_ids.is_empty() => {
            let path = ["execution_config", "collection_ids"];
            let msg = "name at least one collection";
            Err(Violation::body(&path, "too_short", msg, json!([])).into())
        }
        (None, Some(asked)) => {
            let config = Value::Object(asked.config);
            let request: CreateClusterRequest = body::from_value(config, None)
                .map_err(|error| error.under(&["execution_config", "config"]))?;
            let request = CreateClusterRequest {
                collection_ids: Some(asked.collection_ids),
                ..request
            };
            let made = clusters::create(app, scope, request).await?;
            Ok(made.cluster_id.unwrap_or_default())
        }
        (Some(_), Some(_)) => {
            let msg = "name a cluster, or say what to make, not both";
            Err(refused("execution_config", "value_error", msg))
        }
        (None, None) => {
            let msg = "name the cluster, or say with execution_config what to make";
            Err(refused("cluster_id", "missing", msg))
        }
    }
}

async fn create(
    app: &App,
    scope: &Scope<Write>,
    request: CreateClusterTriggerRequest,
) -> Result<Trigger> {
    // What cannot be followed leaves no cluster behind.
    let mut schedule_config = request.schedule_config.clone();
    schedule::normal(request.trigger_type, &mut schedule_config);
    let schedule = Schedule::read(request.trigger_type, &schedule_config)?;
    schedule::check_members(request.trigger_type, &schedule_config)?;
    super::check_looked_at(app, scope, &schedule, &mut schedule_config, None).await?;
    if !matches!(
        request.status,
        TriggerStatus::Active | TriggerStatus::Paused
    ) {
        return Err(super::not_settable(request.status));
    }
    schedule.first(app.clock().micros())?;
    super::check_room(store::count(app.db(), &scope.namespace_id).await?)?;
    let (named, asked) = (request.cluster_id, request.execution_config);
    let cluster_id = cluster_of(app, scope, named, asked).await?;
    let mut action_config = Object::new();
    action_config.insert("cluster_id".into(), json!(cluster_id));
    let request = CreateTriggerRequest {
        action_type: TriggerActionType::Cluster,
        action_config,
        trigger_type: request.trigger_type,
        schedule_config,
        name: None,
        description: request.description,
        status: request.status,
    };
    super::create(app, scope, request).await
}

/// Makes a trigger that executes a cluster: one that is there, or one that is made for it.
#[utoipa::path(post, path = "/v1/clusters/triggers", tag = "clusters", request_body = CreateClusterTriggerRequest, responses((status = 200, body = ClusterTrigger)))]
async fn create_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateClusterTriggerRequest>,
) -> Result<Json<ClusterTrigger>> {
    let made = create(&app, &scope, request).await?;
    told_one(&app, &scope, made).await
}

/// Triggers that execute clusters.
#[utoipa::path(post, path = "/v1/clusters/triggers/list", tag = "clusters", request_body = ListClusterTriggersRequest, responses((status = 200, body = ListClusterTriggersResponse)))]
async fn list_cluster_triggers(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListClusterTriggersRequest>,
) -> Result<Json<ListClusterTriggersResponse>> {
    let request = ListTriggersRequest {
        action_type: Some(TriggerActionType::Cluster),
        trigger_type: request.trigger_type,
        status: request.status,
        resource_id: request.cluster_id,
        offset: request.offset,
        limit: request.limit,
        sort_by: request.sort_by,
        direction: request.direction,
    };
    let page = super::list(&app, &scope, request).await?;
    Ok(Json(ListClusterTriggersResponse {
        results: told(&app, &scope, page.results).await?,
        total: page.total,
        offset: page.offset,
        limit: page.limit,
        ..Default::default()
    }))
}

/// One trigger of a cluster.
#[utoipa::path(get, path = "/v1/clusters/triggers/{trigger_id}", tag = "clusters", responses((status = 200, body = ClusterTrigger)))]
async fn get_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<ClusterTrigger>> {
    let trigger = find(&app, &scope, &id).await?;
    told_one(&app, &scope, trigger).await
}

/// Changes a trigger of a cluster; a schedule that is changed begins now.
#[utoipa::path(patch, path = "/v1/clusters/triggers/{trigger_id}", tag = "clusters", request_body = UpdateClusterTriggerRequest, responses((status = 200, body = ClusterTrigger)))]
async fn update_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<UpdateClusterTriggerRequest>,
) -> Result<Json<ClusterTrigger>> {
    find(&app, &scope, &id).await?;
    let request = UpdateTriggerRequest {
        schedule_config: request.schedule_config,
        description: request.description,
        status: request.status,
        ..Default::default()
    };
    let changed = super::update(&app, &scope, &id, request).await?;
    told_one(&app, &scope, changed).await
}

/// Removes a trigger of a cluster: it stays readable as disabled. A cluster that was made for it stays.
#[utoipa::path(delete, path = "/v1/clusters/triggers/{trigger_id}", tag = "clusters", responses((status = 204)))]
async fn delete_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    find(&app, &scope, &id).await?;
    super::delete(&app, &scope, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops a trigger of a cluster until it is resumed.
#[utoipa::path(post, path = "/v1/clusters/triggers/{trigger_id}/pause", tag = "clusters", responses((status = 200, body = ClusterTrigger)))]
async fn pause_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<ClusterTrigger>> {
    find(&app, &scope, &id).await?;
    let paused = super::pause(&app, &scope, &id).await?;
    told_one(&app, &scope, paused).await
}

/// Runs a trigger of a cluster by its schedule again.
#[utoipa::path(post, path = "/v1/clusters/triggers/{trigger_id}/resume", tag = "clusters", responses((status = 200, body = ClusterTrigger)))]
async fn resume_cluster_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<ClusterTrigger>> {
    find(&app, &scope, &id).await?;
    let resumed = super::resume(&app, &scope, &id).await?;
    told_one(&app, &scope, resumed).await
}

/// When a trigger of a cluster fired and what came of it, newest first, kept for 90 days.
#[utoipa::path(post, path = "/v1/clusters/triggers/{trigger_id}/history", tag = "clusters", request_body = Option<TriggerHistoryRequest>, responses((status = 200, body = ClusterTriggerHistoryResponse)))]
async fn cluster_trigger_history(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Body(request): Body<TriggerHistoryRequest>,
) -> Result<Json<ClusterTriggerHistoryResponse>> {
    find(&app, &scope, &id).await?;
    let status = request.status_filter.unwrap_or_default().to_uppercase();
    let (limit, offset) = (request.limit, request.offset);
    let namespace_id = &scope.namespace_id;
    let page = (limit, offset);
    let (firings, total) = store::firings(app.db(), namespace_id, &id, &status, page).await?;
    let made = clusters::made_by(&app, namespace_id, &id).await?;
    let executions = firings.into_iter().map(|one| {
        let made = made.get(&one.task_id);
        TriggerExecutionHistoryItem {
            execution_time_ms: one.execution_time_ms.map(|ms| ms.round() as i64),
            num_clusters: made.map(|made| made.0),
            num_documents: made.map(|made| made.1),
            job_id: one.task_id,
            triggered_at: one.triggered_at,
            status: one.status,
            error: one.error,
        }
    });
    Ok(Json(ClusterTriggerHistoryResponse {
        executions: executions.collect(),
        trigger_id: id,
        total,
        offset,
        limit,
    }))
}
