use axum::{
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use loupe_wire::{
    AuditAction, AuditEventListResponse, AuditEventResponse, AuditSettings,
    AuditSettingsUpdateRequest, ResourceType,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::Wanted;
use crate::{
    app::App,
    auth::{Admin, Org},
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
    list,
    openapi::routes,
    v1::tasks::name_of,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_audit_logs))
        .routes(routes!(export_audit_logs))
        .routes(routes!(get_audit_settings, update_audit_settings))
        .routes(routes!(get_audit_log))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsQuery {
    resource_type: Option<ResourceType>,
    resource_id: Option<String>,
    actor_id: Option<String>,
    action: Option<AuditAction>,
    /// ISO 8601.
    start: Option<String>,
    /// ISO 8601.
    end: Option<String>,
    /// How many to pass over, from 0, default 0.
    skip: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    resource_type: Option<ResourceType>,
    resource_id: Option<String>,
    actor_id: Option<String>,
    action: Option<AuditAction>,
    /// ISO 8601.
    start: Option<String>,
    /// ISO 8601.
    end: Option<String>,
    /// 1 to 200000, all of them by default.
    max_events: Option<i64>,
}

macro_rules! from_query {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> axum::extract::FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        }

        impl $name {
            fn wanted(&self) -> Result<Wanted> {
                let micros = |at: Option<DateTime<Utc>>| at.map(|at| at.timestamp_micros());
                Ok(Wanted {
                    resource_type: self.resource_type.map(name_of).unwrap_or_default(),
                    resource_id: self.resource_id.clone().unwrap_or_default(),
                    actor_id: self.actor_id.clone().unwrap_or_default(),
                    action: self.action.map(name_of).unwrap_or_default(),
                    start: micros(list::moment("start", self.start.as_deref())?).unwrap_or(0),
                    end: micros(list::moment("end", self.end.as_deref())?).unwrap_or(i64::MAX),
                })
            }
        })*
    };
}

from_query!(LogsQuery, ExportQuery);

fn bounded(name: &str, value: i64, least: i64, most: i64) -> Result<i64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let msg = format!("must lie between {least} and {most}");
    let kind = if value < least {
        "greater_than_equal"
    } else {
        "less_than_equal"
    };
    Err(Violation::query(name, kind, msg, value.into()).into())
}

/// Who did what to which resource, the newest first.
#[utoipa::path(get, path = "/v1/organizations/audit/logs", tag = "audit", params(LogsQuery), responses((status = 200, body = AuditEventListResponse)))]
async fn list_audit_logs(
    State(app): State<App>,
    org: Org<Admin>,
    query: LogsQuery,
) -> Result<Json<AuditEventListResponse>> {
    let skip = bounded("skip", query.skip.unwrap_or(0), 0, i64::MAX)?;
    let limit = bounded("limit", query.limit.unwrap_or(50), 1, 1000)?;
    let wanted = query.wanted()?;
    let (results, total) = super::list(&app, &org.caller, &wanted, skip, limit).await?;
    Ok(Json(AuditEventListResponse {
        results,
        total,
        skip,
        limit,
    }))
}

/// The log as lines of JSON, the newest first.
#[utoipa::path(get, path = "/v1/organizations/audit/logs/export", tag = "audit", params(ExportQuery), responses((status = 200, content_type = "application/x-ndjson", body = String)))]
async fn export_audit_logs(
    State(app): State<App>,
    org: Org<Admin>,
    query: ExportQuery,
) -> Result<Response> {
    let most = query
        .max_events
        .map(|most| bounded("max_events", most, 1, 200_000))
        .transpose()?;
    let lines = super::export(app, org.caller, query.wanted()?, most).await?;
    let kind = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"audit.ndjson\"",
        ),
    ];
    Ok((kind, axum::body::Body::from_stream(lines)).into_response())
}

/// One record.
#[utoipa::path(get, path = "/v1/organizations/audit/logs/{audit_id}", tag = "audit", responses((status = 200, body = AuditEventResponse)))]
async fn get_audit_log(
    State(app): State<App>,
    org: Org<Admin>,
    Path(audit_id): Path<String>,
) -> Result<Json<AuditEventResponse>> {
    super::get(&app, &org.caller, &audit_id).await.map(Json)
}

/// Whether the log is told of reads.
#[utoipa::path(get, path = "/v1/organizations/audit/settings", tag = "audit", responses((status = 200, body = AuditSettings)))]
async fn get_audit_settings(
    State(app): State<App>,
    org: Org<Admin>,
) -> Result<Json<AuditSettings>> {
    super::settings(&app, &org.caller).await.map(Json)
}

/// Has the log told of reads, or no longer. A key that reads the same again is counted, and told of once an hour.
#[utoipa::path(patch, path = "/v1/organizations/audit/settings", tag = "audit", request_body = AuditSettingsUpdateRequest, responses((status = 200, body = AuditSettings)))]
async fn update_audit_settings(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<AuditSettingsUpdateRequest>,
) -> Result<Json<AuditSettings>> {
    super::update_settings(&app, &org.caller, request)
        .await
        .map(Json)
}
