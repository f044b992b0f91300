//! How the syncs of a bucket do.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use loupe_wire::{
    SyncComparisonResponse, SyncConfigMetric, SyncHealthMetric, SyncJobModel, SyncJobStatus,
    SyncPerformanceResponse, SyncRunMetric, Value,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Span,
    asks::WeekQuery,
    buckets,
    ingested::{self, Of},
    searches::object,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    figures::{Sorted, count, ratio},
    json::Json,
    list::{Params, within},
    openapi::routes,
    v1::tasks::name_of,
};

/// The provider of every sync.
const PROVIDER: &str = "s3";
/// Looks that figures are made of, the newest ones.
pub(super) const LOOKS: i64 = 20_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_sync_performance))
        .routes(routes!(compare_syncs))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SyncsQuery {
    /// One sync; all of the bucket's when left out.
    sync_config_id: Option<String>,
    /// 1 to 720, default 168.
    hours: Option<i64>,
    /// 1 to 1000, default 100.
    limit: Option<i64>,
}

/// Looks by their sync, each newest first.
pub(super) fn each<'a>(looks: &[&'a SyncJobModel]) -> Vec<(String, Vec<&'a SyncJobModel>)> {
    let mut syncs: BTreeMap<String, Vec<&SyncJobModel>> = BTreeMap::new();
    for look in looks {
        syncs
            .entry(look.sync_config_id.clone())
            .or_default()
            .push(look);
    }
    syncs.into_iter().collect()
}

fn has_failed(look: &SyncJobModel) -> bool {
    look.status == Some(SyncJobStatus::Failed)
}

fn has_succeeded(look: &SyncJobModel) -> bool {
    look.status == Some(SyncJobStatus::Completed)
}

/// Whether a sync works, by its looks.
pub(super) fn health((sync_config_id, looks): (String, Vec<&SyncJobModel>)) -> SyncHealthMetric {
    let ended = |wanted: fn(&SyncJobModel) -> bool| {
        let mut all = looks.iter().filter(|look| wanted(look));
        all.find_map(|look| look.completed_at.or(look.updated_at))
    };
    let over = looks
        .iter()
        .filter(|look| has_failed(look) || has_succeeded(look));
    let failed = looks.iter().filter(|look| has_failed(look)).count();
    SyncHealthMetric {
        sync_config_id,
        consecutive_failures: count(over.clone().take_while(|look| has_failed(look)).count()),
        last_success_at: ended(has_succeeded),
        last_failure_at: ended(has_failed),
        failure_rate: ratio(failed as f64, over.count() as f64),
    }
}

/// One look in figures.
fn run(look: &SyncJobModel) -> SyncRunMetric {
    let began = look.started_at.unwrap_or_default();
    let ended = look.completed_at.or(look.updated_at).unwrap_or(began);
    let seconds = (ended - began).num_milliseconds().max(0) as f64 / 1e3;
    let bytes = look
        .metadata
        .as_ref()
        .and_then(|told| told.get("bytes_synced")?.as_i64());
    let bytes = bytes.unwrap_or(0);
    SyncRunMetric {
        sync_run_id: look.sync_job_id.clone().unwrap_or_default(),
        started_at: began,
        duration_seconds: seconds,
        files_discovered: look.total_files.unwrap_or(0),
        files_synced: look.files_synced,
        files_failed: look.files_failed,
        bytes_synced: bytes,
        throughput_mbps: ratio(bytes as f64 * 8.0 / 1e6, seconds),
        status: look.status.map(name_of).unwrap_or_default(),
        provider_type: PROVIDER.into(),
    }
}

/// The looks of the bucket's syncs, the newest first.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/sync-performance", tag = "analytics", params(SyncsQuery), responses((status = 200, body = SyncPerformanceResponse)))]
async fn get_sync_performance(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<SyncsQuery>,
) -> Result<Json<SyncPerformanceResponse>> {
    let id = buckets::find(&app, &scope, &id).await?;
    let limit = within("limit", query.limit, 100, (1, 1000))?;
    let span = Span::hours(&app, query.hours, 168)?;
    let of = Of {
        namespace_id: &scope.namespace_id,
        bucket_id: &id,
        ..Of::default()
    };
    let sync_id = query.sync_config_id.as_deref().unwrap_or_default();
    let looks = ingested::looks(app.db(), of, sync_id, span, limit).await?;
    let runs: Vec<SyncRunMetric> = looks.iter().map(|(_, look)| run(look)).collect();
    let failed = looks.iter().filter(|(_, look)| has_failed(look)).count();
    let seconds = Sorted::new(runs.iter().map(|run| run.duration_seconds).collect());
    let sum = |of: fn(&SyncRunMetric) -> i64| -> Value { runs.iter().map(of).sum::<i64>().into() };
    Ok(Json(SyncPerformanceResponse {
        bucket_id: id,
        sync_config_id: query.sync_config_id,
        time_range: span.told(),
        summary: object(json!({
            "runs": runs.len(), "failed_runs": failed, "avg_duration_seconds": seconds.mean(),
            "files_synced": sum(|run| run.files_synced), "files_failed": sum(|run| run.files_failed),
            "bytes_synced": sum(|run| run.bytes_synced),
        })),
        runs,
    }))
}

/// The syncs of the bucket beside each other.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/sync-comparison", tag = "analytics", params(WeekQuery), responses((status = 200, body = SyncComparisonResponse)))]
async fn compare_syncs(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<WeekQuery>,
) -> Result<Json<SyncComparisonResponse>> {
    let id = buckets::find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 168)?;
    let of = Of {
        namespace_id: &scope.namespace_id,
        bucket_id: &id,
        ..Of::default()
    };
    let looks = ingested::looks(app.db(), of, "", span, LOOKS).await?;
    let looks: Vec<&SyncJobModel> = looks.iter().map(|(_, look)| look).collect();
    let configs = each(&looks).into_iter().map(|(sync_config_id, looks)| {
        let runs: Vec<SyncRunMetric> = looks.iter().map(|look| run(look)).collect();
        let mean =
            |of: fn(&SyncRunMetric) -> f64| Sorted::new(runs.iter().map(of).collect()).mean();
        let over = looks
            .iter()
            .filter(|look| has_failed(look) || has_succeeded(look))
            .count();
        let succeeded = looks.iter().filter(|look| has_succeeded(look)).count();
        SyncConfigMetric {
            sync_config_id,
            provider_type: PROVIDER.into(),
            avg_duration_seconds: mean(|run| run.duration_seconds),
            avg_throughput_mbps: mean(|run| run.throughput_mbps),
            success_rate: ratio(succeeded as f64, over as f64),
            total_files_synced: runs.iter().map(|run| run.files_synced).sum(),
            total_bytes_synced: runs.iter().map(|run| run.bytes_synced).sum(),
        }
    });
    Ok(Json(SyncComparisonResponse {
        bucket_id: id,
        time_range: span.told(),
        configs: configs.collect(),
    }))
}
