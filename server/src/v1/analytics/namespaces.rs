//! What is asked of a namespace, and what fails in it.

use axum::extract::State;
use indexmap::IndexMap;
use loupe_wire::{
    CompoundIndexResponse, FieldPerformanceResponse, IndexRecommendationsResponse,
    MostQueriedFieldsResponse, NamespaceErrorsResponse, NamespaceOperation,
    NamespaceSummaryResponse, ResourceErrorCount, ResourceType, SlowQueriesResponse,
    SlowQueryDetails,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Span,
    asks::HoursQuery,
    fields::{Fields, coverage, together},
    searches,
    store::{self, Search},
};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    figures::count,
    json::Json,
    list::{Params, within},
    openapi::routes,
};

/// Searches that figures are made of, the newest ones.
const COUNTED: i64 = 50_000;
/// Rows of each part of the summary.
const SUMMED: usize = 10;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_namespace_errors))
        .routes(routes!(list_most_queried_fields))
        .routes(routes!(list_field_performance))
        .routes(routes!(list_compound_patterns))
        .routes(routes!(list_index_recommendations))
        .routes(routes!(list_slow_queries))
        .routes(routes!(get_namespace_search_summary))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DaysQuery {
    /// 1 to 90, default 30.
    days: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FieldsQuery {
    /// 1 to 90, default 30.
    days: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct RecommendationsQuery {
    /// 1 to 90, default 30.
    days: Option<i64>,
    /// 1 to 100, default 5.
    min_usage_count: Option<i64>,
    /// 1 to 100, default 50.
    limit: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SlowQuery {
    /// 1 to 90, default 30.
    days: Option<i64>,
    /// 100 to 10000, default 500.
    latency_threshold_ms: Option<f64>,
    /// 1 to 500, default 100.
    limit: Option<i64>,
}

/// A rule of the key that names single resources does not cover all that figures of a namespace are made of.
pub(super) fn allow(scope: &Scope<Read>, kinds: &[ResourceType]) -> Result<()> {
    let allow = |kind: &ResourceType| scope.caller.allow(*kind, "*", NamespaceOperation::ReadData);
    kinds.iter().try_for_each(allow)
}

/// The newest searches of the last days, whatever the retriever, and the number of days.
async fn searched(app: &App, scope: &Scope<Read>, days: Option<i64>) -> Result<(Vec<Search>, i64)> {
    allow(scope, &[ResourceType::Retriever])?;
    let (span, days) = Span::days(app, days, 30)?;
    let all = store::of_namespace(app.db(), &scope.namespace_id, span, COUNTED).await?;
    Ok((all, days))
}

fn limited<T>(mut all: Vec<T>, limit: i64) -> Vec<T> {
    all.truncate(usize::try_from(limit).unwrap_or(0));
    all
}

/// What failed in the namespace: objects on the way into collections, and executions of clusters.
#[utoipa::path(get, path = "/v1/analytics/namespaces/errors", tag = "analytics", params(HoursQuery), responses((status = 200, body = NamespaceErrorsResponse)))]
async fn get_namespace_errors(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<NamespaceErrorsResponse>> {
    allow(&scope, &[ResourceType::Collection, ResourceType::Cluster])?;
    let hours = within("hours", query.hours, 24, (1, 720))?;
    let span = Span::last(&app, hours);
    let told = |rows: Vec<(String, i64)>| -> Vec<ResourceErrorCount> {
        let one = |(resource_id, error_count)| ResourceErrorCount {
            resource_id,
            error_count,
        };
        rows.into_iter().map(one).collect()
    };
    let collections = told(store::failed_objects(app.db(), &scope.namespace_id, span).await?);
    let clusters = told(store::failed_clusters(app.db(), &scope.namespace_id, span).await?);
    let all = collections.iter().chain(&clusters);
    Ok(Json(NamespaceErrorsResponse {
        hours,
        total_errors: all.map(|one| one.error_count).sum(),
        collections,
        clusters,
        namespace_id: scope.namespace_id,
    }))
}

/// The fields that searches filter on, the most frequent first. Figures are of the newest 50,000 searches.
#[utoipa::path(get, path = "/v1/analytics/namespaces/fields/most-queried", tag = "analytics", params(FieldsQuery), responses((status = 200, body = MostQueriedFieldsResponse)))]
async fn list_most_queried_fields(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<FieldsQuery>,
) -> Result<Json<MostQueriedFieldsResponse>> {
    let limit = within("limit", query.limit, 50, (1, 1000))?;
    let (all, days) = searched(&app, &scope, query.days).await?;
    let fields = Fields::new(&all);
    Ok(Json(MostQueriedFieldsResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        total_fields: count(fields.len()),
        fields: limited(fields.most_queried(), limit),
    }))
}

/// How long searches take by the field that they filter on, those that took most time together first.
#[utoipa::path(get, path = "/v1/analytics/namespaces/fields/performance", tag = "analytics", params(FieldsQuery), responses((status = 200, body = FieldPerformanceResponse)))]
async fn list_field_performance(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<FieldsQuery>,
) -> Result<Json<FieldPerformanceResponse>> {
    let limit = within("limit", query.limit, 50, (1, 1000))?;
    let (all, days) = searched(&app, &scope, query.days).await?;
    let fields = Fields::new(&all);
    Ok(Json(FieldPerformanceResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        total_fields: count(fields.len()),
        fields: limited(fields.performance(), limit),
        coverage: coverage(&all),
    }))
}

/// Fields that searches filter on together, the most frequent first.
#[utoipa::path(get, path = "/v1/analytics/namespaces/indexes/compound-patterns", tag = "analytics", params(FieldsQuery), responses((status = 200, body = CompoundIndexResponse)))]
async fn list_compound_patterns(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<FieldsQuery>,
) -> Result<Json<CompoundIndexResponse>> {
    let limit = within("limit", query.limit, 50, (1, 1000))?;
    let (all, days) = searched(&app, &scope, query.days).await?;
    let patterns = together(&all);
    Ok(Json(CompoundIndexResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        total_patterns: count(patterns.len()),
        patterns: limited(patterns, limit),
    }))
}

/// Fields worth an index. There are none: every field is indexed for equality as it is written. Told is what was looked at, so
/// that it can be seen whether filters are what is slow.
#[utoipa::path(get, path = "/v1/analytics/namespaces/indexes/recommendations", tag = "analytics", params(RecommendationsQuery), responses((status = 200, body = IndexRecommendationsResponse)))]
async fn list_index_recommendations(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<RecommendationsQuery>,
) -> Result<Json<IndexRecommendationsResponse>> {
    within("min_usage_count", query.min_usage_count, 5, (1, 100))?;
    within("limit", query.limit, 50, (1, 100))?;
    let (all, days) = searched(&app, &scope, query.days).await?;
    let fields = count(Fields::new(&all).len());
    Ok(Json(IndexRecommendationsResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        recommendations: Vec::new(),
        summary: IndexMap::from([
            ("fields".to_owned(), fields),
            ("indexed_fields".to_owned(), fields),
            ("recommended".to_owned(), 0),
        ]),
        coverage: coverage(&all),
    }))
}

fn slowest(searches: &[Search]) -> Vec<SlowQueryDetails> {
    let mut slowest: Vec<&Search> = searches.iter().collect();
    slowest.sort_by_key(|one| std::cmp::Reverse(one.micros));
    let told = slowest.into_iter().map(|one| SlowQueryDetails {
        retriever_id: one.retriever_id.clone(),
        query: one.query.clone(),
        latency_ms: one.milliseconds(),
        results_count: one.returned,
        queried_fields: one.fields().map(ToOwned::to_owned).collect(),
    });
    told.collect()
}

/// The slowest searches of the namespace, whatever the retriever, the slowest first.
#[utoipa::path(get, path = "/v1/analytics/namespaces/queries/slow", tag = "analytics", params(SlowQuery), responses((status = 200, body = SlowQueriesResponse)))]
async fn list_slow_queries(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<SlowQuery>,
) -> Result<Json<SlowQueriesResponse>> {
    let limit = within("limit", query.limit, 100, (1, 500))?;
    let sent = query.latency_threshold_ms;
    let threshold = within("latency_threshold_ms", sent, 500.0, (100.0, 10_000.0))?;
    let (mut all, days) = searched(&app, &scope, query.days).await?;
    let is_exact = count(all.len()) < COUNTED;
    all.retain(|one| one.milliseconds() >= threshold);
    let slow = limited(slowest(&all), limit);
    Ok(Json(SlowQueriesResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        latency_threshold_ms: threshold,
        total_slow_queries: count(all.len()),
        returned_count: count(slow.len()),
        total_is_exact: is_exact,
        slow_queries: slow,
    }))
}

/// Searches of the namespace at a glance.
#[utoipa::path(get, path = "/v1/analytics/namespaces/summary", tag = "analytics", params(DaysQuery), responses((status = 200, body = NamespaceSummaryResponse)))]
async fn get_namespace_search_summary(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<DaysQuery>,
) -> Result<Json<NamespaceSummaryResponse>> {
    let (all, days) = searched(&app, &scope, query.days).await?;
    let fields = Fields::new(&all);
    let first = |mut patterns: Vec<_>| {
        patterns.truncate(SUMMED);
        patterns
    };
    let (mut most_queried, mut slowest) = (fields.most_queried(), fields.performance());
    most_queried.truncate(SUMMED);
    slowest.truncate(SUMMED);
    let mut summary = searches::figures(&all);
    let (asked, found_nothing) = searches::queries(&all);
    summary.insert("top_queries".into(), asked.into());
    summary.insert("zero_result_queries".into(), found_nothing.into());
    Ok(Json(NamespaceSummaryResponse {
        namespace_id: scope.namespace_id,
        time_range_days: days,
        summary,
        recommendations: Vec::new(),
        most_queried_fields: most_queried,
        slowest_fields: slowest,
        compound_indexes: first(together(&all)),
    }))
}
