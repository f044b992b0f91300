//! What a bucket holds, what came into it, and whether its syncs work.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use loupe_wire::{
    BucketHealthResponse, BucketStorageResponse, DateTruncUnit, ErrorBreakdown,
    NamespaceBucketsHealthResponse, NamespaceOperation, ResourceType, StorageMetric,
    SyncHealthMetric, SyncJobModel, SyncJobStatus, UploadPerformanceMetric,
    UploadPerformanceResponse, UploadResponse,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    HOUR, Span,
    asks::{DatesQuery, HoursQuery, StretchesQuery},
    bucket, by_hours,
    ingested::{self, Fault, Hour, Of},
    searches::object,
    syncs, unit,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    clock,
    error::Result,
    figures::{Sorted, count, ratio},
    json::Json,
    list::Params,
    openapi::routes,
    v1::buckets::BUCKETS,
};

/// A look that has said nothing for so long, in microseconds, is stuck.
const STUCK: i64 = HOUR;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_bucket_health))
        .routes(routes!(get_bucket_health))
        .routes(routes!(get_bucket_storage))
        .routes(routes!(get_upload_performance))
}

/// The id of a bucket that the caller may know of.
pub(super) async fn find(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<String> {
    let record = BUCKETS
        .find(app.db(), &scope.namespace_id, identifier)
        .await?;
    let operation = NamespaceOperation::ReadData;
    scope
        .caller
        .allow(ResourceType::Bucket, &record.id, operation)?;
    Ok(record.id)
}

/// Whether each bucket of the namespace does well: the objects that failed on the way out of it, and its syncs.
#[utoipa::path(get, path = "/v1/analytics/buckets/health", tag = "analytics", params(HoursQuery), responses((status = 200, body = NamespaceBucketsHealthResponse)))]
async fn list_bucket_health(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<NamespaceBucketsHealthResponse>> {
    let span = Span::hours(&app, query.hours, 24)?;
    let of = Of {
        namespace_id: &scope.namespace_id,
        ..Of::default()
    };
    let faults = ingested::faults(app.db(), of, span).await?;
    let looks = ingested::looks(app.db(), of, "", span, syncs::LOOKS).await?;
    let seen = Seen {
        span,
        now: app.clock().micros(),
        faults,
        looks,
    };
    let all = BUCKETS.all(app.db(), &scope.namespace_id).await?;
    let read = NamespaceOperation::ReadData;
    let may = |id: &str| scope.caller.allow(ResourceType::Bucket, id, read).is_ok();
    let buckets = all.iter().filter(|record| may(&record.id));
    Ok(Json(NamespaceBucketsHealthResponse {
        time_range: span.told(),
        buckets: buckets.map(|record| seen.health(&record.id)).collect(),
    }))
}

/// Whether a bucket does well: the objects that failed on the way out of it, and its syncs.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/health", tag = "analytics", params(HoursQuery), responses((status = 200, body = BucketHealthResponse)))]
async fn get_bucket_health(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<BucketHealthResponse>> {
    let id = find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 24)?;
    let of = Of {
        namespace_id: &scope.namespace_id,
        bucket_id: &id,
        ..Of::default()
    };
    let seen = Seen {
        span,
        now: app.clock().micros(),
        faults: ingested::faults(app.db(), of, span).await?,
        looks: ingested::looks(app.db(), of, "", span, syncs::LOOKS).await?,
    };
    Ok(Json(seen.health(&id)))
}

/// What health is judged by.
struct Seen {
    span: Span,
    now: i64,
    faults: Vec<Fault>,
    looks: Vec<(String, SyncJobModel)>,
}

impl Seen {
    fn health(&self, bucket_id: &str) -> BucketHealthResponse {
        let faults = self
            .faults
            .iter()
            .filter(|fault| fault.bucket_id == bucket_id);
        let faults: Vec<Fault> = faults.cloned().collect();
        let breakdown = ingested::kinds(&faults).into_iter().map(|(kind, of_kind)| {
            let times = of_kind.iter().map(|fault| fault.at);
            ErrorBreakdown {
                error_type: kind.to_owned(),
                count: count(of_kind.len()),
                percentage: 100.0 * ratio(of_kind.len() as f64, faults.len() as f64),
                first_seen: clock::time(times.clone().min().unwrap_or_default()),
                last_seen: clock::time(times.max().unwrap_or_default()),
            }
        });
        let looks = self.looks.iter().filter(|(bucket, _)| bucket == bucket_id);
        let looks: Vec<&SyncJobModel> = looks.map(|(_, look)| look).collect();
        let syncs: Vec<SyncHealthMetric> =
            syncs::each(&looks).into_iter().map(syncs::health).collect();
        let stuck = looks.iter().filter(|look| self.is_stuck(look));
        let stuck: BTreeSet<&str> = stuck.map(|look| look.sync_config_id.as_str()).collect();
        let failing = syncs.iter().filter(|sync| sync.consecutive_failures > 0);
        let failing = failing.map(|sync| sync.sync_config_id.as_str());
        let broken = failing
            .chain(stuck.iter().copied())
            .collect::<BTreeSet<_>>()
            .len();
        let overall = match (broken, faults.len()) {
            (0, 0) => "healthy",
            (broken, _) if broken > 0 && broken >= syncs.len() => "unhealthy",
            _ => "degraded",
        };
        let stuck_syncs = stuck.into_iter().map(ToOwned::to_owned).collect();
        BucketHealthResponse {
            bucket_id: bucket_id.to_owned(),
            time_range: self.span.told(),
            overall_health: overall.into(),
            total_errors: count(faults.len()),
            error_breakdown: breakdown.collect(),
            stuck_syncs,
            sync_health: syncs,
        }
    }

    fn is_stuck(&self, look: &SyncJobModel) -> bool {
        let said = look.updated_at.or(look.started_at);
        let silent = said.is_none_or(|at| self.now - at.timestamp_micros() > STUCK);
        look.status == Some(SyncJobStatus::Running) && silent
    }
}

/// What the bucket holds at the end of each stretch of time, of the objects that it has now.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/storage", tag = "analytics", params(DatesQuery), responses((status = 200, body = BucketStorageResponse)))]
async fn get_bucket_storage(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<DatesQuery>,
) -> Result<Json<BucketStorageResponse>> {
    let id = find(&app, &scope, &id).await?;
    let (span, unit) = by_hours(&app, &query)?;
    let hours = ingested::stored(app.db(), (&scope.namespace_id, &id), span.until).await?;
    let metrics = storage(&hours, span, unit);
    let last = metrics.last();
    Ok(Json(BucketStorageResponse {
        bucket_id: id,
        time_range: span.told(),
        summary: object(json!({
            "total_size_bytes": last.map_or(0, |one| one.total_size_bytes),
            "object_count": last.map_or(0, |one| one.object_count),
        })),
        metrics,
    }))
}

/// Sums of everything that came up to the end of each stretch in which something came. What was there before is in them.
fn storage(hours: &[Hour], span: Span, unit: DateTruncUnit) -> Vec<StorageMetric> {
    let mut stretches: BTreeMap<_, (i64, i64)> = BTreeMap::new();
    for hour in hours {
        // Everything older lies in the first stretch.
        let at = bucket(hour.at.max(span.since), unit);
        let (objects, bytes) = stretches.entry(at).or_default();
        *objects += hour.objects;
        *bytes += hour.amount;
    }
    let (mut objects, mut bytes) = (0, 0);
    let told = stretches.into_iter().map(|(at, (more, heavier))| {
        let before = bytes;
        objects += more;
        bytes += heavier;
        let grown = (before > 0).then(|| 100.0 * heavier as f64 / before as f64);
        StorageMetric {
            time_bucket: at,
            total_size_bytes: bytes,
            object_count: objects,
            avg_size_bytes: bytes / objects.max(1),
            growth_rate_percent: grown,
        }
    });
    told.collect()
}

/// How uploads do, from the address that was handed out to the confirmed file: what the client waits is in it.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/upload-performance", tag = "analytics", params(StretchesQuery), responses((status = 200, body = UploadPerformanceResponse)))]
async fn get_upload_performance(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<StretchesQuery>,
) -> Result<Json<UploadPerformanceResponse>> {
    let id = find(&app, &scope, &id).await?;
    let unit = unit(query.group_by.as_deref(), DateTruncUnit::Hour)?;
    let span = Span::hours(&app, query.hours, 24)?;
    let all = ingested::uploads(app.db(), (&scope.namespace_id, &id), span).await?;
    let mut stretches: BTreeMap<_, Vec<&(String, UploadResponse)>> = BTreeMap::new();
    for upload in &all {
        let at = bucket(upload.1.created_at.timestamp_micros(), unit);
        stretches.entry(at).or_default().push(upload);
    }
    let metrics = stretches.into_iter().map(|(at, all)| {
        let all = Uploads::new(all);
        UploadPerformanceMetric {
            time_bucket: at,
            upload_count: count(all.count),
            avg_latency_ms: all.took.mean(),
            p95_latency_ms: all.took.percentile(0.95),
            p99_latency_ms: all.took.percentile(0.99),
            avg_throughput_mbps: all.speed.mean(),
            error_rate: all.error_rate(),
        }
    });
    let metrics = metrics.collect();
    let whole = Uploads::new(&all);
    Ok(Json(UploadPerformanceResponse {
        bucket_id: id,
        time_range: span.told(),
        metrics,
        summary: object(json!({
            "upload_count": whole.count, "completed": whole.took.len(), "failed": whole.failed,
            "avg_latency_ms": whole.took.mean(), "error_rate": whole.error_rate(),
        })),
    }))
}

/// Uploads, counted.
struct Uploads {
    count: usize,
    failed: usize,
    /// Milliseconds, and megabits a second, of those that were completed.
    took: Sorted,
    speed: Sorted,
}

impl Uploads {
    fn new<'a>(uploads: impl IntoIterator<Item = &'a (String, UploadResponse)>) -> Self {
        let (mut all, mut failed, mut took, mut speed) = (0, 0, Vec::new(), Vec::new());
        for (status, upload) in uploads {
            all += 1;
            failed += usize::from(status == "FAILED");
            let Some(at) = upload.completed_at else {
                continue;
            };
            let seconds = (at - upload.created_at)
                .num_microseconds()
                .unwrap_or(0)
                .max(1) as f64
                / 1e6;
            took.push(seconds * 1e3);
            if let Some(bytes) = upload.file_size_bytes {
                speed.push(bytes as f64 * 8.0 / 1e6 / seconds);
            }
        }
        Self {
            count: all,
            failed,
            took: Sorted::new(took),
            speed: Sorted::new(speed),
        }
    }

    fn error_rate(&self) -> f64 {
        ratio(self.failed as f64, self.count as f64)
    }
}
