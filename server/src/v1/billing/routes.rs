use axum::{
    extract::{FromRequestParts, State},
    http::request::Parts,
};
use chrono::NaiveDate;
use loupe_wire::{
    CreditBalanceResponse, CurrentUsageResponse, EstimateRequest, EstimateResponse,
    InvoiceListResponse, Object, OrgUsageResponse, PricingConfigResponse, SpendingCapsResponse,
    SubscribeRequest, SubscribeResponse, SubscriptionStatusResponse, TransactionsListResponse,
    UpdateSpendingCapsRequest, UsageBreakdownResponse, VectorBackendUsageResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{Period, account, breakdown, caps, card, current, transactions};
use crate::{
    app::App,
    auth::{Admin, Org, Read},
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
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
        .routes(routes!(get_credit_balance))
        .routes(routes!(get_credits))
        .routes(routes!(get_spending_caps, update_spending_caps))
        .routes(routes!(list_transactions))
        .routes(routes!(list_invoices))
        .routes(routes!(get_subscription))
        .routes(routes!(subscribe))
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

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TransactionsQuery {
    /// 1 to 200, default 50.
    limit: Option<i64>,
    /// From 0.
    offset: Option<i64>,
    /// `YYYY-MM`; all of them when left out.
    billing_month: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct InvoicesQuery {
    /// 1 to 100, default 10.
    limit: Option<i64>,
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

from_query!(PeriodQuery, MonthQuery, TransactionsQuery, InvoicesQuery);

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

/// The organization's invoices. Nobody is billed by this server: there are none.
#[utoipa::path(get, path = "/v1/organizations/billing/invoices", tag = "billing", params(InvoicesQuery), responses((status = 200, body = InvoiceListResponse)))]
async fn list_invoices(_: Org<Read>, query: InvoicesQuery) -> Result<Json<InvoiceListResponse>> {
    list::within("limit", query.limit, 10, (1, 100))?;
    Ok(Json(InvoiceListResponse::default()))
}

/// What is left of the month's pool, and how long it lasts at the month's pace.
#[utoipa::path(get, path = "/v1/organizations/billing/balance", tag = "billing", responses((status = 200, body = CreditBalanceResponse)))]
async fn get_credit_balance(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<CreditBalanceResponse>> {
    account::balance(&app, &org.caller).await.map(Json)
}

/// The month in credits: what the plan includes, what is used and what is left.
#[utoipa::path(get, path = "/v1/organizations/credits", tag = "organizations", responses((status = 200, body = std::collections::HashMap<String, loupe_wire::Value>)))]
async fn get_credits(State(app): State<App>, org: Org<Read>) -> Result<Json<Object>> {
    account::credits_of(&app, &org.caller).await.map(Json)
}

/// Where the organization is told of its spending, and where it stops.
#[utoipa::path(get, path = "/v1/organizations/billing/spending-caps", tag = "billing", responses((status = 200, body = SpendingCapsResponse)))]
async fn get_spending_caps(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<SpendingCapsResponse>> {
    caps::show(&app, &org.caller).await.map(Json)
}

/// Changes what is sent. A cap that is enabled holds from the next request on: batches and searches beyond it are refused.
#[utoipa::path(post, path = "/v1/organizations/billing/spending-caps", tag = "billing", request_body = UpdateSpendingCapsRequest, responses((status = 200, body = SpendingCapsResponse)))]
async fn update_spending_caps(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<UpdateSpendingCapsRequest>,
) -> Result<Json<SpendingCapsResponse>> {
    caps::update(&app, &org.caller, request).await.map(Json)
}

/// What was paid for, the newest first: batches, and searches by key and hour, those of strangers by retriever and hour. Usage tells
/// of storage.
#[utoipa::path(get, path = "/v1/organizations/billing/transactions", tag = "billing", params(TransactionsQuery), responses((status = 200, body = TransactionsListResponse)))]
async fn list_transactions(
    State(app): State<App>,
    org: Org<Read>,
    query: TransactionsQuery,
) -> Result<Json<TransactionsListResponse>> {
    let (limit, offset) = (query.limit.unwrap_or(50), query.offset.unwrap_or(0));
    if !(1..=200).contains(&limit) {
        let msg = "limit lies between 1 and 200";
        return Err(Violation::query("limit", "range", msg, limit.into()).into());
    }
    if offset < 0 {
        let msg = "offset is at least 0";
        return Err(Violation::query("offset", "range", msg, offset.into()).into());
    }
    let month = query.billing_month.as_deref().map(first_of).transpose()?;
    let month = month.map(Period::month_of);
    transactions::list(&app, &org.caller, month, limit, offset)
        .await
        .map(Json)
}

/// The plan that the organization is on.
#[utoipa::path(get, path = "/v1/organizations/billing/subscription", tag = "billing", responses((status = 200, body = SubscriptionStatusResponse)))]
async fn get_subscription(
    State(app): State<App>,
    org: Org<Read>,
) -> Result<Json<SubscriptionStatusResponse>> {
    account::subscription(&app, &org.caller).await.map(Json)
}

/// Chooses a plan of the rate card. Nothing is paid here: it holds at once.
#[utoipa::path(post, path = "/v1/organizations/billing/subscribe", tag = "billing", request_body = SubscribeRequest, responses((status = 200, body = SubscribeResponse)))]
async fn subscribe(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<SubscribeRequest>,
) -> Result<Json<SubscribeResponse>> {
    account::subscribe(&app, &org.caller, request)
        .await
        .map(Json)
}
