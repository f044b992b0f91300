//! What each key was used for.

use axum::extract::{Path, State};
use chrono::{DateTime, Duration, Utc};
use loupe_wire::{
    APIKeyModel, ApiKeyDayUsage, ApiKeyEndpointUsage, ApiKeyUsageListResponse, ApiKeyUsageResponse,
    NamespaceOperation, ResourceType,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{api_keys, billing};
use crate::{
    app::App,
    auth::{Admin, Org},
    clock,
    error::{ApiError, Result, Violation},
    json::Json,
    list,
    openapi::routes,
    usage::{self, OperationUse},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_key_usage))
        .routes(routes!(get_key_usage_by_endpoint))
        .routes(routes!(get_usage_of_key))
        .routes(routes!(list_usage_of_keys))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PeriodQuery {
    /// ISO 8601; seven days ago when left out. Whole hours are counted.
    start: Option<String>,
    /// ISO 8601; now when left out.
    end: Option<String>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for PeriodQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// The key, the period and what was done in it.
struct Found {
    key: APIKeyModel,
    start: DateTime<Utc>,
    end: DateTime<Utc>,
    operations: Vec<OperationUse>,
}

/// The first and the last moment that are asked for.
fn period(app: &App, period: &PeriodQuery) -> Result<(DateTime<Utc>, DateTime<Utc>)> {
    let end = list::moment("end", period.end.as_deref())?.unwrap_or_else(|| app.clock().now());
    let start =
        list::moment("start", period.start.as_deref())?.unwrap_or_else(|| end - Duration::days(7));
    if start > end {
        let msg = "start lies after end";
        return Err(
            Violation::query("start", "value_error", msg, start.to_rfc3339().into()).into(),
        );
    }
    Ok((start, end))
}

async fn find(app: &App, org: &Org<Admin>, key_id: &str, asked: &PeriodQuery) -> Result<Found> {
    let key = api_keys::find(app, &org.caller.org_id, key_id).await?;
    org.caller
        .allow(ResourceType::ApiKey, key_id, NamespaceOperation::ReadData)?;
    let (start, end) = period(app, asked)?;
    let (from, to) = (start.timestamp_micros(), end.timestamp_micros());
    let operations = usage::of_key(app, &org.caller.org_id, key_id, from, to).await?;
    Ok(Found {
        key,
        start,
        end,
        operations,
    })
}

fn category(operation: &OperationUse) -> &'static str {
    let path = operation.path.as_str();
    let made = ["/objects", "/batches", "/documents", "/uploads", "/trigger"];
    if usage::is_search(path) {
        "search"
    } else if operation.method != "GET"
        && !path.ends_with("/list")
        && made.iter().any(|piece| path.contains(piece))
    {
        "ingestion"
    } else {
        "other"
    }
}

fn sum(key_id: String, found: Found) -> ApiKeyUsageResponse {
    let mut answer = ApiKeyUsageResponse {
        key_id,
        key_name: found.key.name,
        start: found.start,
        end: found.end,
        last_used_at: found.key.last_used_at,
        ..Default::default()
    };
    for name in ["search", "ingestion", "other"] {
        answer.by_category.insert(name.into(), 0);
    }
    let mut searches = 0;
    for operation in &found.operations {
        answer.requests += operation.requests;
        answer.errors += operation.errors;
        if usage::is_search(&operation.path) {
            searches += operation.requests - operation.errors;
        }
        if let Some(count) = answer.by_category.get_mut(category(operation)) {
            *count += operation.requests;
        }
        let at = Some(clock::time(operation.last_used_at));
        answer.last_used_at = answer.last_used_at.max(at);
    }
    // What failed costs nothing.
    #[expect(clippy::cast_precision_loss, reason = "a count far below 2^52")]
    let spend = searches as f64 * billing::QUERY_USD;
    answer.spend_usd = spend;
    answer
}

const DAY: i64 = 24 * 3600 * 1_000_000;

fn day((number, requests, errors): (i64, i64, i64)) -> ApiKeyDayUsage {
    ApiKeyDayUsage {
        day: clock::time(number * DAY).format("%Y-%m-%d").to_string(),
        requests,
        errors,
    }
}

async fn told(
    app: &App,
    org: &Org<Admin>,
    key_id: String,
    period: &PeriodQuery,
) -> Result<Json<ApiKeyUsageResponse>> {
    let found = find(app, org, &key_id, period).await?;
    let (from, to) = (found.start.timestamp_micros(), found.end.timestamp_micros());
    let days = usage::days_of_key(app, &org.caller.org_id, &key_id, from, to).await?;
    let mut answer = sum(key_id, found);
    answer.days = days.into_iter().map(day).collect();
    Ok(Json(answer))
}

/// What a key was used for, in sum and by day.
#[utoipa::path(get, path = "/v1/organizations/api-keys/{key_id}/usage", tag = "usage", params(PeriodQuery), responses((status = 200, body = ApiKeyUsageResponse)))]
async fn get_key_usage(
    State(app): State<App>,
    org: Org<Admin>,
    Path(key_id): Path<String>,
    period: PeriodQuery,
) -> Result<Json<ApiKeyUsageResponse>> {
    told(&app, &org, key_id, &period).await
}

/// What a key was used for, in sum and by day, at its other address.
#[utoipa::path(get, path = "/v1/organizations/usage/api-keys/{key_id}", tag = "usage", params(PeriodQuery), responses((status = 200, body = ApiKeyUsageResponse)))]
async fn get_usage_of_key(
    State(app): State<App>,
    org: Org<Admin>,
    Path(key_id): Path<String>,
    period: PeriodQuery,
) -> Result<Json<ApiKeyUsageResponse>> {
    told(&app, &org, key_id, &period).await
}

/// What each key of the organization was used for, in sum and by day, the busiest first. A key that was not used is left out.
#[utoipa::path(get, path = "/v1/organizations/usage/api-keys", tag = "usage", params(PeriodQuery), responses((status = 200, body = ApiKeyUsageListResponse)))]
async fn list_usage_of_keys(
    State(app): State<App>,
    org: Org<Admin>,
    asked: PeriodQuery,
) -> Result<Json<ApiKeyUsageListResponse>> {
    let (start, end) = period(&app, &asked)?;
    let org_id = &org.caller.org_id;
    let (from, to) = (start.timestamp_micros(), end.timestamp_micros());
    let mut uses = usage::of_keys(&app, org_id, from, to).await?;
    let keys = api_keys::list_all(&app, &org.caller).await?;
    let mut results: Vec<ApiKeyUsageResponse> = Vec::new();
    for key in keys {
        let key_id = key.key_id.clone().unwrap_or_default();
        let Some(used) = uses.remove(&key_id) else {
            continue;
        };
        let operations = used.operations;
        let found = Found {
            key,
            start,
            end,
            operations,
        };
        let mut told = sum(key_id, found);
        told.days = used.days.into_iter().map(day).collect();
        results.push(told);
    }
    results.sort_by_key(|one| std::cmp::Reverse(one.requests));
    let total = i64::try_from(results.len()).unwrap_or(i64::MAX);
    Ok(Json(ApiKeyUsageListResponse { results, total }))
}

/// What a key was used for, by operation, the busiest first.
#[utoipa::path(get, path = "/v1/organizations/api-keys/{key_id}/usage/endpoints", tag = "usage", params(PeriodQuery), responses((status = 200, body = Vec<ApiKeyEndpointUsage>)))]
async fn get_key_usage_by_endpoint(
    State(app): State<App>,
    org: Org<Admin>,
    Path(key_id): Path<String>,
    period: PeriodQuery,
) -> Result<Json<Vec<ApiKeyEndpointUsage>>> {
    let found = find(&app, &org, &key_id, &period).await?;
    let (from, to) = (found.start.timestamp_micros(), found.end.timestamp_micros());
    let mut slowest = usage::slowest_of_key(&app, &org.caller.org_id, &key_id, from, to).await?;
    let rows = found.operations.into_iter().map(|operation| {
        #[expect(clippy::cast_precision_loss, reason = "sums far below 2^52")]
        let average = operation.micros as f64 / operation.requests.max(1) as f64 / 1000.0;
        #[expect(clippy::cast_precision_loss, reason = "minutes at most")]
        let millis = |micros: i64| micros as f64 / 1000.0;
        let name = (operation.method, operation.path);
        let p95_latency_ms = slowest.remove(&name).map(millis);
        let (method, path) = name;
        ApiKeyEndpointUsage {
            method,
            path,
            requests: operation.requests,
            errors: operation.errors,
            avg_latency_ms: Some(average),
            p95_latency_ms,
            last_used_at: Some(clock::time(operation.last_used_at)),
        }
    });
    Ok(Json(rows.collect()))
}
