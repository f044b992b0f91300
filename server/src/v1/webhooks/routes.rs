use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    ChannelTestResponse, ListWebhooksRequest, ListWebhooksResponse, WebhookDeliveryLog,
    WebhookDeliveryLogResponse, WebhookInput, WebhookOutput,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org},
    body::Body,
    error::{Result, Violation},
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_webhook))
        .routes(routes!(list_webhooks))
        .routes(routes!(get_webhook, replace_webhook, delete_webhook))
        .routes(routes!(list_webhook_deliveries))
        .routes(routes!(replay_webhook_delivery))
        .routes(routes!(test_webhook))
}

/// Makes a webhook: events of the change feed are sent to its channels. The answer has the signing secret, this once.
#[utoipa::path(post, path = "/v1/organizations/webhooks", tag = "webhooks", request_body = WebhookInput, responses((status = 200, body = WebhookOutput), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_webhook(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<WebhookInput>,
) -> Result<Json<WebhookOutput>> {
    super::create(&app, &org.caller, request).await.map(Json)
}

/// Webhooks of the organization, and how their receivers do.
#[utoipa::path(post, path = "/v1/organizations/webhooks/list", tag = "webhooks", params(ListQuery), request_body = Option<ListWebhooksRequest>, responses((status = 200, body = ListWebhooksResponse)))]
async fn list_webhooks(
    State(app): State<App>,
    org: Org<Admin>,
    query: ListQuery,
    Body(request): Body<ListWebhooksRequest>,
) -> Result<Json<ListWebhooksResponse>> {
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let (page, results) = super::list(&app, &org.caller, &params, request).await?;
    let total = page.total_count(&params);
    Ok(Json(ListWebhooksResponse {
        results,
        pagination: page.pagination,
        total,
    }))
}

/// One webhook, by id or name.
#[utoipa::path(get, path = "/v1/organizations/webhooks/{identifier}", tag = "webhooks", responses((status = 200, body = WebhookOutput)))]
async fn get_webhook(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
) -> Result<Json<WebhookOutput>> {
    super::get(&app, &org.caller, &identifier).await.map(Json)
}

/// Puts another webhook in its place. A secret that is left out stays; after a change both sign for a day.
#[utoipa::path(put, path = "/v1/organizations/webhooks/{identifier}", tag = "webhooks", request_body = WebhookInput, responses((status = 200, body = WebhookOutput), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn replace_webhook(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<WebhookInput>,
) -> Result<Json<WebhookOutput>> {
    super::replace(&app, &org.caller, &identifier, request)
        .await
        .map(Json)
}

/// Removes a webhook with its log.
#[utoipa::path(delete, path = "/v1/organizations/webhooks/{identifier}", tag = "webhooks", responses((status = 204)))]
async fn delete_webhook(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
) -> Result<StatusCode> {
    super::delete(&app, &org.caller, &identifier).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StatusQuery {
    /// pending, delivered or failed.
    status: Option<String>,
}

/// What a webhook sent, newest first, kept for 30 days.
#[utoipa::path(get, path = "/v1/organizations/webhooks/{identifier}/deliveries", tag = "webhooks", params(ListQuery, StatusQuery), responses((status = 200, body = WebhookDeliveryLogResponse)))]
async fn list_webhook_deliveries(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
    query: ListQuery,
    Params(only): Params<StatusQuery>,
) -> Result<Json<WebhookDeliveryLogResponse>> {
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let status = only.status.unwrap_or_default();
    if !["", "pending", "delivered", "failed"].contains(&status.as_str()) {
        let msg = "a delivery is pending, delivered or failed";
        return Err(Violation::query("status", "enum", msg, status.into()).into());
    }
    super::deliveries(&app, &org.caller, &identifier, &status, &params)
        .await
        .map(Json)
}

/// Sends a delivery once more, with the same `webhook-id`.
#[utoipa::path(post, path = "/v1/organizations/webhooks/{identifier}/deliveries/{delivery_id}/replay", tag = "webhooks", responses((status = 200, body = WebhookDeliveryLog)))]
async fn replay_webhook_delivery(
    State(app): State<App>,
    org: Org<Admin>,
    Path((identifier, delivery_id)): Path<(String, String)>,
) -> Result<Json<WebhookDeliveryLog>> {
    super::replay(&app, &org.caller, &identifier, &delivery_id)
        .await
        .map(Json)
}

/// Sends a test message through every channel now, once, and tells what came of it. The log has nothing of it.
#[utoipa::path(post, path = "/v1/organizations/webhooks/{identifier}/test", tag = "webhooks", responses((status = 200, body = ChannelTestResponse)))]
async fn test_webhook(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
) -> Result<Json<ChannelTestResponse>> {
    super::test(&app, &org.caller, &identifier).await.map(Json)
}
