use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    CreateTriggerRequest, ListTriggersRequest, ListTriggersResponse, TaskResponse, Trigger,
    TriggerActionType, TriggerHistoryResponse, TriggerStatus, TriggerType, UpdateTriggerRequest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{Result, Violation},
    json::Json,
    list::{Params, bounded},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_triggers, create_trigger))
        .routes(routes!(search_triggers))
        .routes(routes!(get_trigger, update_trigger, delete_trigger))
        .routes(routes!(execute_trigger))
        .routes(routes!(pause_trigger))
        .routes(routes!(resume_trigger))
        .routes(routes!(trigger_history))
        .merge(super::of_clusters::router())
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TriggersQuery {
    action_type: Option<TriggerActionType>,
    trigger_type: Option<TriggerType>,
    status: Option<TriggerStatus>,
    /// The id of what a trigger acts on.
    resource_id: Option<String>,
    /// How many to pass over, from 0, default 0.
    offset: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
    /// Such as created_at, the default, or name.
    sort_by: Option<String>,
    /// asc or desc, the default.
    direction: Option<String>,
}

impl TriggersQuery {
    /// What is asked for; where the query says nothing, what the body says.
    fn over(self, body: ListTriggersRequest) -> Result<ListTriggersRequest> {
        let request = ListTriggersRequest {
            action_type: self.action_type.or(body.action_type),
            trigger_type: self.trigger_type.or(body.trigger_type),
            status: self.status.or(body.status),
            resource_id: self.resource_id.or(body.resource_id),
            offset: self.offset.unwrap_or(body.offset),
            limit: self.limit.unwrap_or(body.limit),
            sort_by: self.sort_by.unwrap_or(body.sort_by),
            direction: self.direction.unwrap_or(body.direction),
        };
        bounded("limit", request.limit, 1, 1000)?;
        bounded("offset", request.offset, 0, i64::MAX)?;
        Ok(request)
    }
}

/// Triggers of the namespace, newest first.
#[utoipa::path(get, path = "/v1/triggers", tag = "triggers", params(TriggersQuery), responses((status = 200, body = ListTriggersResponse)))]
async fn list_triggers(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<TriggersQuery>,
    Body(request): Body<ListTriggersRequest>,
) -> Result<Json<ListTriggersResponse>> {
    let request = query.over(request)?;
    super::list(&app, &scope, request).await.map(Json)
}

/// Triggers that match.
#[utoipa::path(post, path = "/v1/triggers/list", tag = "triggers", request_body = Option<ListTriggersRequest>, responses((status = 200, body = ListTriggersResponse)))]
async fn search_triggers(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTriggersRequest>,
) -> Result<Json<ListTriggersResponse>> {
    super::list(&app, &scope, request).await.map(Json)
}

/// Makes a trigger: an action that runs by the clock, on events, or when a condition holds.
#[utoipa::path(post, path = "/v1/triggers", tag = "triggers", request_body = CreateTriggerRequest, responses((status = 200, body = Trigger)))]
async fn create_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateTriggerRequest>,
) -> Result<Json<Trigger>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// One trigger.
#[utoipa::path(get, path = "/v1/triggers/{trigger_id}", tag = "triggers", responses((status = 200, body = Trigger)))]
async fn get_trigger(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<Trigger>> {
    super::get(&app, &scope, &id).await.map(Json)
}

/// Changes a trigger; a schedule that is changed begins now.
#[utoipa::path(patch, path = "/v1/triggers/{trigger_id}", tag = "triggers", request_body = UpdateTriggerRequest, responses((status = 200, body = Trigger)))]
async fn update_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<UpdateTriggerRequest>,
) -> Result<Json<Trigger>> {
    super::update(&app, &scope, &id, request).await.map(Json)
}

/// Removes a trigger: it stays readable as disabled.
#[utoipa::path(delete, path = "/v1/triggers/{trigger_id}", tag = "triggers", responses((status = 204)))]
async fn delete_trigger(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    super::delete(&app, &scope, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs the action now, whatever the schedule says.
#[utoipa::path(post, path = "/v1/triggers/{trigger_id}/execute", tag = "triggers", responses((status = 200, body = TaskResponse)))]
async fn execute_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<TaskResponse>> {
    super::execute(&app, &scope, &id).await.map(Json)
}

/// Stops a trigger until it is resumed.
#[utoipa::path(post, path = "/v1/triggers/{trigger_id}/pause", tag = "triggers", responses((status = 200, body = Trigger)))]
async fn pause_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<Trigger>> {
    super::pause(&app, &scope, &id).await.map(Json)
}

/// Runs a trigger by its schedule again.
#[utoipa::path(post, path = "/v1/triggers/{trigger_id}/resume", tag = "triggers", responses((status = 200, body = Trigger)))]
async fn resume_trigger(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<Trigger>> {
    super::resume(&app, &scope, &id).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// How many to pass over, from 0, default 0.
    offset: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
}

/// When a trigger fired and what came of it, newest first, kept for 90 days.
#[utoipa::path(get, path = "/v1/triggers/{trigger_id}/history", tag = "triggers", params(HistoryQuery), responses((status = 200, body = TriggerHistoryResponse)))]
async fn trigger_history(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HistoryQuery>,
) -> Result<Json<TriggerHistoryResponse>> {
    let (offset, limit) = (query.offset.unwrap_or(0), query.limit.unwrap_or(50));
    if !(1..=1000).contains(&limit) {
        let msg = "must be between 1 and 1000";
        return Err(Violation::query("limit", "range", msg, limit.into()).into());
    }
    if offset < 0 {
        let msg = "must be at least 0";
        return Err(Violation::query("offset", "range", msg, offset.into()).into());
    }
    super::history(&app, &scope, &id, limit, offset)
        .await
        .map(Json)
}
