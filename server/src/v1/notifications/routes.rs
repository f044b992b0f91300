use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header::ACCEPT},
    response::{IntoResponse, Response},
};
use loupe_wire::{
    ListNotificationsRequest, ListNotificationsResponse, MarkAllReadResponse, MarkAsReadRequest,
    Notification, NotificationPreferencesResponse, UnreadCountResponse, UpdatePreferencesRequest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{live, preferences};
use crate::{
    app::App,
    auth::{Admin, Org, Read},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_notifications))
        .routes(routes!(read_all_notifications))
        .routes(routes!(count_unread_notifications))
        .routes(routes!(
            get_notification_preferences,
            update_notification_preferences
        ))
        .routes(routes!(get_notification, delete_notification))
        .routes(routes!(read_notification))
}

/// Notifications of the organization, newest first. With `user_id`, those for this user alone; what is for everybody has none.
#[utoipa::path(post, path = "/v1/notifications/list", tag = "notifications", params(ListQuery), request_body = Option<ListNotificationsRequest>, responses((status = 200, body = ListNotificationsResponse)))]
async fn list_notifications(
    State(app): State<App>,
    org: Org<Read>,
    query: ListQuery,
    Body(request): Body<ListNotificationsRequest>,
) -> Result<Json<ListNotificationsResponse>> {
    let params = ListParams::new(query, &request)?;
    super::list(&app, &org.caller, &params, request)
        .await
        .map(Json)
}

/// Marks every notification as read, or those of one user and of everybody.
#[utoipa::path(post, path = "/v1/notifications/read/all", tag = "notifications", request_body = Option<MarkAsReadRequest>, responses((status = 200, body = MarkAllReadResponse)))]
async fn read_all_notifications(
    State(app): State<App>,
    org: Org<Read>,
    Body(request): Body<MarkAsReadRequest>,
) -> Result<Json<MarkAllReadResponse>> {
    let updated_count = super::read_all(&app, &org.caller, request.user_id).await?;
    Ok(Json(MarkAllReadResponse {
        success: true,
        updated_count,
    }))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct UnreadQuery {
    user_id: Option<String>,
}

/// How many notifications nobody has read yet. Whoever accepts `text/event-stream` is told the number now and whenever it changes,
/// as events `unread`, for ten minutes at a time.
#[utoipa::path(get, path = "/v1/notifications/unread/count", tag = "notifications", params(UnreadQuery), responses((status = 200, content((UnreadCountResponse = "application/json"), (UnreadCountResponse = "text/event-stream")))))]
async fn count_unread_notifications(
    State(app): State<App>,
    org: Org<Read>,
    Params(query): Params<UnreadQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains("text/event-stream")) {
        return live::stream(&app, &org.caller.org_id, query.user_id);
    }
    let user_id = query.user_id.unwrap_or_default();
    let count = super::unread(&app, &org.caller.org_id, &user_id).await?;
    Ok(Json(UnreadCountResponse { count }).into_response())
}

/// One notification.
#[utoipa::path(get, path = "/v1/notifications/{notification_id}", tag = "notifications", responses((status = 200, body = Notification)))]
async fn get_notification(
    State(app): State<App>,
    org: Org<Read>,
    Path(id): Path<String>,
) -> Result<Json<Notification>> {
    super::get(&app, &org.caller, &id).await.map(Json)
}

/// Marks a notification as read.
#[utoipa::path(post, path = "/v1/notifications/{notification_id}/read", tag = "notifications", responses((status = 200, body = Notification)))]
async fn read_notification(
    State(app): State<App>,
    org: Org<Read>,
    Path(id): Path<String>,
) -> Result<Json<Notification>> {
    super::read(&app, &org.caller, &id).await.map(Json)
}

/// Removes a notification.
#[utoipa::path(delete, path = "/v1/notifications/{notification_id}", tag = "notifications", responses((status = 204)))]
async fn delete_notification(
    State(app): State<App>,
    org: Org<Read>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    super::delete(&app, &org.caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Which types of notifications the organization gets in the console and by e-mail.
#[utoipa::path(get, path = "/v1/notifications/preferences", tag = "notifications", responses((status = 200, body = NotificationPreferencesResponse)))]
async fn get_notification_preferences(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<NotificationPreferencesResponse>> {
    preferences::get(&app, &org.caller).await.map(Json)
}

/// Replaces what the organization has set: types that are left out come to the console and not by e-mail. E-mails go to the
/// organization's `notifications_email`.
#[utoipa::path(put, path = "/v1/notifications/preferences", tag = "notifications", request_body = UpdatePreferencesRequest, responses((status = 200, body = NotificationPreferencesResponse)))]
async fn update_notification_preferences(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<UpdatePreferencesRequest>,
) -> Result<Json<NotificationPreferencesResponse>> {
    preferences::update(&app, &org.caller, request)
        .await
        .map(Json)
}
