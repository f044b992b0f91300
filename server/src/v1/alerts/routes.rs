use axum::extract::{Path, State};
use loupe_wire::{
    AlertExecutionListResponse, AlertExecutionResult, AlertResponse, ChannelTestResponse,
    CreateAlertRequest, GenericDeleteResponse, ListAlertsRequest, ListAlertsResponse,
    PatchAlertRequest,
};
use utoipa_axum::router::OpenApiRouter;

use super::Place;
use crate::{
    app::App,
    auth::{Admin, Delete, Org, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_alerts, create_alert))
        .routes(routes!(search_alerts))
        .routes(routes!(list_alert_executions))
        .routes(routes!(get_alert_execution))
        .routes(routes!(get_alert, update_alert, delete_alert))
        .routes(routes!(list_executions_of_alert))
        .routes(routes!(get_alert_results))
        .routes(routes!(execute_alert))
        .routes(routes!(test_alert))
        .routes(routes!(list_organization_alerts, create_organization_alert))
        .routes(routes!(search_organization_alerts))
        .routes(routes!(list_organization_alert_executions))
        .routes(routes!(get_organization_alert_execution))
        .routes(routes!(
            get_organization_alert,
            update_organization_alert,
            delete_organization_alert
        ))
        .routes(routes!(list_executions_of_organization_alert))
        .routes(routes!(get_organization_alert_results))
        .routes(routes!(execute_organization_alert))
        .routes(routes!(test_organization_alert))
}

/// Alerts of the namespace, newest first.
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts", params(ListQuery), responses((status = 200, body = ListAlertsResponse)))]
async fn list_alerts(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
) -> Result<Json<ListAlertsResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::list(&app, &Place::from(&scope), &params)
        .await
        .map(Json)
}

/// Makes an alert: a retriever's answer, or a state of the server, that people are told of.
#[utoipa::path(post, path = "/v1/alerts", tag = "alerts", request_body = CreateAlertRequest, responses((status = 200, body = AlertResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_alert(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateAlertRequest>,
) -> Result<Json<AlertResponse>> {
    super::create(&app, Place::from(&scope), request)
        .await
        .map(Json)
}

/// Alerts that match.
#[utoipa::path(post, path = "/v1/alerts/list", tag = "alerts", params(ListQuery), request_body = Option<ListAlertsRequest>, responses((status = 200, body = ListAlertsResponse)))]
async fn search_alerts(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListAlertsRequest>,
) -> Result<Json<ListAlertsResponse>> {
    let params = ListParams::new(query, &request)?;
    super::list(&app, &Place::from(&scope), &params)
        .await
        .map(Json)
}

/// Looks of every alert of the namespace, newest first: 90 days of those that fired, 2 of the others.
#[utoipa::path(get, path = "/v1/alerts/executions", tag = "alerts", params(ListQuery), responses((status = 200, body = AlertExecutionListResponse)))]
async fn list_alert_executions(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
) -> Result<Json<AlertExecutionListResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::executions::list(&app, &Place::from(&scope), None, &params)
        .await
        .map(Json)
}

/// One look, with what came of each delivery.
#[utoipa::path(get, path = "/v1/alerts/executions/{execution_id}", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn get_alert_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::get(&app, &Place::from(&scope), &id)
        .await
        .map(Json)
}

/// One alert, by id or name. Secrets of its channels are masked.
#[utoipa::path(get, path = "/v1/alerts/{alert_identifier}", tag = "alerts", responses((status = 200, body = AlertResponse)))]
async fn get_alert(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<AlertResponse>> {
    super::get(&app, &Place::from(&scope), &id).await.map(Json)
}

/// Changes what is sent; a masked secret stays what it was.
#[utoipa::path(patch, path = "/v1/alerts/{alert_identifier}", tag = "alerts", request_body = PatchAlertRequest, responses((status = 200, body = AlertResponse)))]
async fn update_alert(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<PatchAlertRequest>,
) -> Result<Json<AlertResponse>> {
    super::update(&app, Place::from(&scope), &id, request)
        .await
        .map(Json)
}

/// Removes an alert with its looks.
#[utoipa::path(delete, path = "/v1/alerts/{alert_identifier}", tag = "alerts", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_alert(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, Place::from(&scope), &id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Looks of one alert, newest first.
#[utoipa::path(get, path = "/v1/alerts/{alert_identifier}/executions", tag = "alerts", params(ListQuery), responses((status = 200, body = AlertExecutionListResponse)))]
async fn list_executions_of_alert(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    query: ListQuery,
) -> Result<Json<AlertExecutionListResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::executions::list(&app, &Place::from(&scope), Some(&id), &params)
        .await
        .map(Json)
}

/// What an alert found the last time it looked.
#[utoipa::path(get, path = "/v1/alerts/{alert_identifier}/results", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn get_alert_results(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::last(&app, &Place::from(&scope), &id)
        .await
        .map(Json)
}

/// Looks now, whatever the mode. What fires is told through the channels, unless it rests.
#[utoipa::path(post, path = "/v1/alerts/{alert_identifier}/execute", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn execute_alert(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::execute(&app, &Place::from(&scope), &id)
        .await
        .map(Json)
}

/// Sends a test message through every channel now, once, whatever the alert finds, and tells what came of it.
#[utoipa::path(post, path = "/v1/alerts/{alert_identifier}/test", tag = "alerts", responses((status = 200, body = ChannelTestResponse)))]
async fn test_alert(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
) -> Result<Json<ChannelTestResponse>> {
    super::test(&app, &Place::from(&scope), &id).await.map(Json)
}

/// Alerts of the organization over its namespaces, newest first.
#[utoipa::path(get, path = "/v1/organizations/alerts", tag = "alerts", params(ListQuery), responses((status = 200, body = ListAlertsResponse)))]
async fn list_organization_alerts(
    State(app): State<App>,
    org: Org<Admin>,
    query: ListQuery,
) -> Result<Json<ListAlertsResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::list(&app, &Place::from(&org), &params)
        .await
        .map(Json)
}

/// Makes an alert over all namespaces, or the selected ones.
#[utoipa::path(post, path = "/v1/organizations/alerts", tag = "alerts", request_body = CreateAlertRequest, responses((status = 200, body = AlertResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<CreateAlertRequest>,
) -> Result<Json<AlertResponse>> {
    super::create(&app, Place::from(&org), request)
        .await
        .map(Json)
}

/// Alerts of the organization that match.
#[utoipa::path(post, path = "/v1/organizations/alerts/list", tag = "alerts", params(ListQuery), request_body = Option<ListAlertsRequest>, responses((status = 200, body = ListAlertsResponse)))]
async fn search_organization_alerts(
    State(app): State<App>,
    org: Org<Admin>,
    query: ListQuery,
    Body(request): Body<ListAlertsRequest>,
) -> Result<Json<ListAlertsResponse>> {
    let params = ListParams::new(query, &request)?;
    super::list(&app, &Place::from(&org), &params)
        .await
        .map(Json)
}

/// Looks of every alert of the organization, newest first: 90 days of those that fired, 2 of the others.
#[utoipa::path(get, path = "/v1/organizations/alerts/executions", tag = "alerts", params(ListQuery), responses((status = 200, body = AlertExecutionListResponse)))]
async fn list_organization_alert_executions(
    State(app): State<App>,
    org: Org<Admin>,
    query: ListQuery,
) -> Result<Json<AlertExecutionListResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::executions::list(&app, &Place::from(&org), None, &params)
        .await
        .map(Json)
}

/// One look of an alert of the organization, with what came of each delivery.
#[utoipa::path(get, path = "/v1/organizations/alerts/executions/{execution_id}", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn get_organization_alert_execution(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::get(&app, &Place::from(&org), &id)
        .await
        .map(Json)
}

/// One alert of the organization, by id or name.
#[utoipa::path(get, path = "/v1/organizations/alerts/{alert_identifier}", tag = "alerts", responses((status = 200, body = AlertResponse)))]
async fn get_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<AlertResponse>> {
    super::get(&app, &Place::from(&org), &id).await.map(Json)
}

/// Changes what is sent of an alert of the organization.
#[utoipa::path(patch, path = "/v1/organizations/alerts/{alert_identifier}", tag = "alerts", request_body = PatchAlertRequest, responses((status = 200, body = AlertResponse)))]
async fn update_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
    Body(request): Body<PatchAlertRequest>,
) -> Result<Json<AlertResponse>> {
    super::update(&app, Place::from(&org), &id, request)
        .await
        .map(Json)
}

/// Removes an alert of the organization with its looks.
#[utoipa::path(delete, path = "/v1/organizations/alerts/{alert_identifier}", tag = "alerts", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, Place::from(&org), &id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Looks of one alert of the organization, newest first.
#[utoipa::path(get, path = "/v1/organizations/alerts/{alert_identifier}/executions", tag = "alerts", params(ListQuery), responses((status = 200, body = AlertExecutionListResponse)))]
async fn list_executions_of_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
    query: ListQuery,
) -> Result<Json<AlertExecutionListResponse>> {
    let params = ListParams::new(query, &ListAlertsRequest::default())?;
    super::executions::list(&app, &Place::from(&org), Some(&id), &params)
        .await
        .map(Json)
}

/// What an alert of the organization found the last time it looked.
#[utoipa::path(get, path = "/v1/organizations/alerts/{alert_identifier}/results", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn get_organization_alert_results(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::last(&app, &Place::from(&org), &id)
        .await
        .map(Json)
}

/// Looks now in every namespace that the alert watches, whatever its mode. What fires is told, unless it rests.
#[utoipa::path(post, path = "/v1/organizations/alerts/{alert_identifier}/execute", tag = "alerts", responses((status = 200, body = AlertExecutionResult)))]
async fn execute_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<AlertExecutionResult>> {
    super::executions::execute(&app, &Place::from(&org), &id)
        .await
        .map(Json)
}

/// Sends a test message through every channel of an alert of the organization.
#[utoipa::path(post, path = "/v1/organizations/alerts/{alert_identifier}/test", tag = "alerts", responses((status = 200, body = ChannelTestResponse)))]
async fn test_organization_alert(
    State(app): State<App>,
    org: Org<Admin>,
    Path(id): Path<String>,
) -> Result<Json<ChannelTestResponse>> {
    super::test(&app, &Place::from(&org), &id).await.map(Json)
}
