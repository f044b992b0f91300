//! What a bucket and a namespace used, and what that costs by the rate card.

use axum::extract::{Path, State};
use chrono::{DateTime, Days, Months, Utc};
use loupe_wire::{
    BucketUsageResponse, CostBreakdown, DateTruncUnit, IngestionUse, ResourceType, SearchUse,
    StorageUse, UsageMetric, UsageSummaryResponse,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    HOUR, Span,
    asks::{DatesQuery, PeriodQuery},
    bucket, buckets, by_hours,
    ingested::{self, Hour, Of},
    namespaces, store, syncs,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    clock,
    error::{ApiError, Result, Violation},
    figures::{count, ratio},
    json::Json,
    list::Params,
    openapi::routes,
    v1::billing::{OBJECT_USD, QUERY_USD, STORAGE_GB_MONTH_USD, credits},
};

/// Hours of the month that storage is paid by.
const MONTH: f64 = 30.0 * 24.0;

/// Stretches of one answer.
const STRETCHES: usize = 3_000;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_bucket_usage))
        .routes(routes!(get_usage_summary))
}

/// What is kept for so many gigabyte-hours, in dollars.
fn storage_usd(gb_hours: f64) -> f64 {
    gb_hours / MONTH * STORAGE_GB_MONTH_USD
}

/// Gigabyte-hours of what came by the hour, between two moments.
fn gb_hours(stored: &[Hour], from: i64, until: i64) -> f64 {
    let there = stored.iter().take_while(|hour| hour.at < until);
    let kept = there.map(|hour| {
        let micros = until - hour.at.max(from);
        hour.amount as f64 / 1e9 * (micros.max(0) as f64 / HOUR as f64)
    });
    kept.sum()
}

/// What a bucket used, as its rows tell it.
struct Used {
    /// Objects that are there, and their bytes, by the hour in which they came.
    stored: Vec<Hour>,
    /// Objects that batches processed.
    processed: Vec<Hour>,
    /// When syncs looked.
    looks: Vec<i64>,
}

/// What was used in a stretch of time.
struct Sums {
    gb_hours: f64,
    uploads: i64,
    syncs: i64,
    processed: i64,
}

impl Sums {
    fn processing_usd(&self) -> f64 {
        self.processed as f64 * OBJECT_USD
    }

    fn usd(&self) -> f64 {
        storage_usd(self.gb_hours) + self.processing_usd()
    }

    fn metric(&self, time_bucket: DateTime<Utc>) -> UsageMetric {
        UsageMetric {
            time_bucket,
            storage_gb_hours: self.gb_hours,
            upload_operations: self.uploads,
            sync_operations: self.syncs,
            total_credits: credits(self.usd()),
            estimated_cost_usd: self.usd(),
        }
    }

    /// Uploads and looks of syncs cost nothing.
    fn breakdown(&self) -> CostBreakdown {
        let share = |usd: f64| 100.0 * ratio(usd, self.usd());
        CostBreakdown {
            storage_percent: share(storage_usd(self.gb_hours)),
            other_percent: share(self.processing_usd()),
            ..Default::default()
        }
    }
}

impl Used {
    async fn find(app: &App, scope: &Scope<Read>, bucket_id: &str, span: Span) -> Result<Self> {
        let (db, namespace_id) = (app.db(), scope.namespace_id.as_str());
        let of = Of {
            namespace_id,
            bucket_id,
            ..Of::default()
        };
        let looks = ingested::looks(db, of, "", span, syncs::LOOKS).await?;
        let began = |look: &loupe_wire::SyncJobModel| look.started_at.or(look.updated_at);
        let looks = looks.iter().filter_map(|(_, look)| began(look));
        Ok(Self {
            looks: looks.map(|at| at.timestamp_micros()).collect(),
            stored: ingested::stored(db, (namespace_id, bucket_id), span.until).await?,
            processed: ingested::processed(
                db,
                &scope.caller.org_id,
                (namespace_id, bucket_id),
                span,
            )
            .await?,
        })
    }

    /// When the bucket was first used.
    fn begin(&self) -> Option<i64> {
        let hours = self.stored.iter().chain(&self.processed);
        let hours = hours.map(|hour| hour.at);
        hours.chain(self.looks.iter().copied()).min()
    }

    fn between(&self, from: i64, until: i64) -> Sums {
        let came = |hours: &[Hour]| -> i64 {
            let within = hours
                .iter()
                .filter(|hour| from <= hour.at && hour.at < until);
            within.map(|hour| hour.objects).sum()
        };
        let looks = self.looks.iter().filter(|at| from <= **at && **at < until);
        Sums {
            gb_hours: gb_hours(&self.stored, from, until),
            uploads: came(&self.stored),
            syncs: count(looks.count()),
            processed: came(&self.processed),
        }
    }

    /// Each stretch from the first use on.
    fn metrics(&self, span: Span, unit: DateTruncUnit) -> Result<Vec<UsageMetric>> {
        let Some(begin) = self.begin() else {
            return Ok(Vec::new());
        };
        let (mut metrics, mut from) = (Vec::new(), span.since.max(begin));
        while from < span.until {
            if metrics.len() == STRETCHES {
                let msg = format!(
                    "at most {STRETCHES} stretches are told at once: ask for longer ones, or for less time"
                );
                return Err(Violation::query("group_by", "value_error", msg, json!(unit)).into());
            }
            let at = bucket(from, unit);
            let next = next(at, unit).timestamp_micros().min(span.until);
            metrics.push(self.between(from, next).metric(at));
            from = next;
        }
        Ok(metrics)
    }
}

/// The beginning of the stretch after the one that begins here.
fn next(at: DateTime<Utc>, unit: DateTruncUnit) -> DateTime<Utc> {
    match unit {
        DateTruncUnit::Month => at + Months::new(1),
        DateTruncUnit::Week => at + Days::new(7),
        DateTruncUnit::Day => at + Days::new(1),
        _ => clock::time(at.timestamp_micros() + HOUR),
    }
}

/// Whole hours, up to now: nothing is used yet of what is to come.
fn whole_hours(app: &App, span: Span) -> Span {
    Span {
        since: span.since - span.since.rem_euclid(HOUR),
        until: span.until.min(app.clock().micros() + 1),
    }
}

/// What a bucket used by time, of the objects that it has now, and what that costs: storage, and the processing of its objects.
#[utoipa::path(get, path = "/v1/analytics/buckets/{bucket_id}/usage", tag = "analytics", params(DatesQuery), responses((status = 200, body = BucketUsageResponse)))]
async fn get_bucket_usage(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<DatesQuery>,
) -> Result<Json<BucketUsageResponse>> {
    let id = buckets::find(&app, &scope, &id).await?;
    let (asked, unit) = by_hours(&app, &query)?;
    let span = whole_hours(&app, asked);
    let used = Used::find(&app, &scope, &id, span).await?;
    let whole = used.between(span.since, span.until);
    // Hours of years are gone through for each stretch.
    let metrics = tokio::task::spawn_blocking(move || used.metrics(span, unit));
    let metrics = metrics.await.map_err(ApiError::internal)??;
    Ok(Json(BucketUsageResponse {
        bucket_id: id,
        time_range: asked.told(),
        metrics,
        cost_breakdown: whole.breakdown(),
        total_credits: credits(whole.usd()),
        total_cost_usd: whole.usd(),
    }))
}

/// What the namespace used in a stretch of time, by default the last 30 days, and what that costs.
#[utoipa::path(get, path = "/v1/analytics/usage/summary", tag = "analytics", params(PeriodQuery), responses((status = 200, body = UsageSummaryResponse)))]
async fn get_usage_summary(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<PeriodQuery>,
) -> Result<Json<UsageSummaryResponse>> {
    let kinds = [
        ResourceType::Bucket,
        ResourceType::Collection,
        ResourceType::Retriever,
    ];
    namespaces::allow(&scope, &kinds)?;
    let (start, end) = (query.start_date.as_deref(), query.end_date.as_deref());
    let asked = Span::between(&app, start, end, DateTruncUnit::Day)?;
    summary(&app, &scope, asked).await.map(Json)
}

async fn summary(app: &App, scope: &Scope<Read>, asked: Span) -> Result<UsageSummaryResponse> {
    let (db, namespace_id) = (app.db(), scope.namespace_id.as_str());
    let span = whole_hours(app, asked);
    let (objects, documents) =
        ingested::worked(db, (&scope.caller.org_id, namespace_id), span).await?;
    let queries = store::paid_searches(db, namespace_id, span).await?;
    let stored = ingested::stored_anywhere(db, namespace_id, span.until).await?;
    let gb_hours = gb_hours(&stored, span.since, span.until);
    let (ingestion_usd, search_usd) = (objects as f64 * OBJECT_USD, queries as f64 * QUERY_USD);
    let total_cost_usd = ingestion_usd + search_usd + storage_usd(gb_hours);
    Ok(UsageSummaryResponse {
        namespace_id: namespace_id.to_owned(),
        time_range: asked.told(),
        ingestion: IngestionUse {
            objects,
            documents,
            cost_usd: ingestion_usd,
        },
        search: SearchUse {
            queries,
            cost_usd: search_usd,
        },
        storage: StorageUse {
            objects: stored.iter().map(|hour| hour.objects).sum(),
            bytes: stored.iter().map(|hour| hour.amount).sum(),
            gb_hours,
            cost_usd: storage_usd(gb_hours),
        },
        total_credits: credits(total_cost_usd),
        total_cost_usd,
    })
}
