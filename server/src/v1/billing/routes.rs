use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::request::Parts,
};
use chrono::NaiveDate;
use loupe_wire::{
    CurrentUsageResponse, EstimateRequest, EstimateResponse, OrgUsageResponse,
    PricingConfigResponse, UsageBreakdownResponse, VectorBackendUsageResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{Period, breakdown, card, current};
use crate::{
    app::App,
    auth::{Org, Read},
    body::Body,
    error::{ApiError, Result, Violation},
    list,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_organization_usage))
        .routes(routes!(get_current_usage))
        .routes(routes!(get_usage_breakdown))
        .routes(routes!(get_vector_usage))
        .routes(routes!(get_pricing))
        .routes(routes!(estimate_workload))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PeriodQuery {
    /// ISO 8601; the beginning of the month when left out. Whole hours are counted.
    start: Option<String>,
    /// ISO 8601; the end of the month when left out.
    end: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct MonthQuery {
    /// `YYYY-MM`; this month when left out.
    billing_month: Option<String>,
}

impl MonthQuery {
    /// A moment of the month.
    fn moment(&self, app: &App) -> Result<chrono::DateTime<chrono::Utc>> {
        let named = self.billing_month.as_deref().map(first_of).transpose()?;
        Ok(named.unwrap_or_else(|| app.clock().now()))
    }
}

macro_rules! from_query {
    ($($name:ident),*) => {
        $(impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        })*
    };
}

from_query!(PeriodQuery, MonthQuery);

/// What the organization spent by category, and what is left of the month's pool.
#[utoipa::path(get, path = "/v1/organizations/usage", tag = "usage", params(PeriodQuery), responses((status = 200, body = OrgUsageResponse)))]
async fn get_organization_usage(
    State(app): State<App>,
    org: Org<Read>,
    query: PeriodQuery,
) -> Result<Json<OrgUsageResponse>> {
    let month = Period::month_of(app.clock().now());
    let start = list::moment("start", query.start.as_deref())?.unwrap_or(month.start);
    let end = list::moment("end", query.end.as_deref())?.unwrap_or(month.end);
    if start > end {
        let msg = "start lies after end";
        return Err(
            Violation::query("start", "value_error", msg, start.to_rfc3339().into()).into(),
        );
    }
    super::of_organization(&app, &org.caller, Some(Period { start, end }))
        .await
        .map(Json)
}

/// What the organization's vectors take in a month.
#[utoipa::path(get, path = "/v1/organizations/billing/usage/vector-backend", tag = "usage", params(MonthQuery), responses((status = 200, body = VectorBackendUsageResponse)))]
async fn get_vector_usage(
    State(app): State<App>,
    org: Org<Read>,
    query: MonthQuery,
) -> Result<Json<VectorBackendUsageResponse>> {
    let month = Period::month_of(query.moment(&app)?);
    super::of_vectors(&app, &org.caller, month).await.map(Json)
}

/// What this month has cost so far, and how much of the plan is used.
#[utoipa::path(get, path = "/v1/organizations/billing/usage/current", tag = "usage", responses((status = 200, body = CurrentUsageResponse)))]
async fn get_current_usage(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<CurrentUsageResponse>> {
    current::of_month(&app, &org.caller).await.map(Json)
}

/// What a month's spend went to.
#[utoipa::path(get, path = "/v1/organizations/billing/usage/breakdown", tag = "usage", params(MonthQuery), responses((status = 200, body = UsageBreakdownResponse)))]
async fn get_usage_breakdown(
    State(app): State<App>,
    org: Org<Read>,
    query: MonthQuery,
) -> Result<Json<UsageBreakdownResponse>> {
    let month = Period::month_of(query.moment(&app)?);
    breakdown::of_month(&app, &org.caller, month)
        .await
        .map(Json)
}

fn first_of(month: &str) -> Result<chrono::DateTime<chrono::Utc>> {
    let well_formed = month.len() == 7;
    NaiveDate::parse_from_str(&format!("{month}-01"), "%Y-%m-%d")
        .ok()
        .filter(|_| well_formed)
        .map(|day| day.and_time(chrono::NaiveTime::MIN).and_utc())
        .ok_or_else(|| {
            let msg = "a month is YYYY-MM";
            Violation::query(
                "billing_month",
                "string_pattern_mismatch",
                msg,
                month.into(),
            )
            .into()
        })
}

/// The rate card.
#[utoipa::path(get, path = "/v1/billing/pricing", tag = "billing", responses((status = 200, body = PricingConfigResponse)))]
async fn get_pricing(State(app): State<App>) -> Json<PricingConfigResponse> {
    Json(card::pricing(app.config()))
}

/// The price of a workload before it runs.
#[utoipa::path(post, path = "/v1/organizations/billing/estimate", tag = "billing", request_body = EstimateRequest, responses((status = 200, body = EstimateResponse)))]
async fn estimate_workload(
    State(app): State<App>,
    org: Org<Read>,
    Body(request): Body<EstimateRequest>,
) -> Result<Json<EstimateResponse>> {
    super::estimate(&app, &org.caller, request).await.map(Json)
}
