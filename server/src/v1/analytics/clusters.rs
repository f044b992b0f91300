//! How the executions of a cluster went.

use axum::extract::{Path, State};
use loupe_wire::{
    ClusterExecutionMetric, ClusterExecutionResult, ClusterFailureAnalysisResponse,
    ClusterRunStatus, ExecutionHistoryResponse, FailureMetric,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{Span, asks::WeekQuery, searches::object};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    figures::{Sorted, count, ratio},
    json::Json,
    list::{Params, within},
    openapi::routes,
    v1::{clusters, tasks::name_of},
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_cluster_history))
        .routes(routes!(get_cluster_failures))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// 1 to 720, default 168.
    hours: Option<i64>,
    /// 1 to 1000, default 100.
    limit: Option<i64>,
}

/// The cluster's id and its executions of the time, the newest first: of those that are kept.
async fn runs(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    span: Span,
) -> Result<(String, Vec<ClusterExecutionResult>)> {
    let (id, mut runs) = clusters::runs_of(app, scope, identifier).await?;
    runs.retain(|run| run.created_at.timestamp_micros() >= span.since);
    Ok((id, runs))
}

fn seconds(run: &ClusterExecutionResult) -> f64 {
    let ended = run.completed_at.unwrap_or(run.created_at);
    (ended - run.created_at).num_milliseconds().max(0) as f64 / 1e3
}

fn algorithm(run: &ClusterExecutionResult) -> String {
    let told = run
        .metrics
        .as_ref()
        .and_then(|metrics| metrics.extra.get("algorithm")?.as_str());
    told.unwrap_or_default().to_owned()
}

/// The executions of a cluster, the newest first, with what each took and made.
#[utoipa::path(get, path = "/v1/analytics/clusters/{cluster_id}/execution-history", tag = "analytics", params(HistoryQuery), responses((status = 200, body = ExecutionHistoryResponse)))]
async fn get_cluster_history(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HistoryQuery>,
) -> Result<Json<ExecutionHistoryResponse>> {
    let limit = within("limit", query.limit, 100, (1, 1000))?;
    let span = Span::hours(&app, query.hours, 168)?;
    let (cluster_id, runs) = runs(&app, &scope, &id, span).await?;
    let completed = runs
        .iter()
        .filter(|run| run.status == ClusterRunStatus::Completed);
    let took = Sorted::new(completed.clone().map(seconds).collect());
    let failed = runs
        .iter()
        .filter(|run| run.status == ClusterRunStatus::Failed)
        .count();
    let told = runs
        .iter()
        .take(usize::try_from(limit).unwrap_or(100))
        .map(|run| ClusterExecutionMetric {
            execution_id: run.run_id.clone(),
            started_at: run.created_at,
            duration_seconds: seconds(run),
            num_documents: run.num_points,
            num_clusters: run.num_clusters,
            status: name_of(run.status),
            algorithm: algorithm(run),
        });
    Ok(Json(ExecutionHistoryResponse {
        time_range: span.told(),
        results: told.collect(),
        summary: object(json!({
            "executions": runs.len(), "completed": took.len(), "failed": failed,
            "success_rate": ratio(took.len() as f64, (took.len() + failed) as f64),
            "avg_duration_seconds": took.mean(), "p95_duration_seconds": took.percentile(0.95),
        })),
        cluster_id,
    }))
}

/// Executions of a cluster that failed, the newest first, and why.
#[utoipa::path(get, path = "/v1/analytics/clusters/{cluster_id}/failures", tag = "analytics", params(WeekQuery), responses((status = 200, body = ClusterFailureAnalysisResponse)))]
async fn get_cluster_failures(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<WeekQuery>,
) -> Result<Json<ClusterFailureAnalysisResponse>> {
    let span = Span::hours(&app, query.hours, 168)?;
    let (cluster_id, runs) = runs(&app, &scope, &id, span).await?;
    let failed = runs
        .into_iter()
        .filter(|run| run.status == ClusterRunStatus::Failed);
    let failures: Vec<FailureMetric> = failed
        .map(|run| FailureMetric {
            timestamp: run.completed_at.unwrap_or(run.created_at),
            execution_id: run.run_id,
            error_message: run.error_message.unwrap_or_default(),
            error_type: "execution_failed".into(),
        })
        .collect();
    Ok(Json(ClusterFailureAnalysisResponse {
        cluster_id,
        time_range: span.told(),
        total_failures: count(failures.len()),
        failures,
    }))
}
