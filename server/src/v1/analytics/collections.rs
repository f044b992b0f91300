//! What came into a collection, how long it took, and what failed on the way.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use loupe_wire::{
    CollectionFailureAnalysisResponse, CollectionOverviewResponse, CollectionResponse,
    DateTruncUnit, ErrorMetrics, ExtractorMetrics, ExtractorPerformanceResponse, GrowthMetric,
    GrowthMetricsResponse, LatencyMetric, LatencyResponse, NamespaceOperation,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    HOUR, Span,
    asks::{DatesQuery, HoursQuery, StretchesQuery},
    bucket,
    ingested::{self, Fault, Of, Took},
    searches::object,
    unit,
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
    v1::{clusters::CLUSTERS, collections},
};

/// Objects that are shown as the slowest.
const SLOWEST: usize = 10;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_collection_overview))
        .routes(routes!(get_collection_growth))
        .routes(routes!(get_collection_latency))
        .routes(routes!(get_collection_extractor_figures))
        .routes(routes!(get_collection_failures))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct FailuresQuery {
    /// 1 to 720, default 72.
    hours: Option<i64>,
}

/// A collection that the caller may know of.
struct Place {
    namespace_id: String,
    id: String,
    collection: CollectionResponse,
}

impl Place {
    async fn find(app: &App, scope: &Scope<Read>, id: &str) -> Result<Self> {
        let collection = collections::find(app, scope, id, NamespaceOperation::ReadData).await?;
        Ok(Self {
            namespace_id: scope.namespace_id.clone(),
            id: collection.collection_id.clone().unwrap_or_default(),
            collection,
        })
    }

    fn key(&self) -> (&str, &str) {
        (&self.namespace_id, &self.id)
    }

    async fn faults(&self, app: &App, span: Span) -> Result<Vec<Fault>> {
        let of = Of {
            namespace_id: &self.namespace_id,
            collection_id: &self.id,
            ..Of::default()
        };
        ingested::faults(app.db(), of, span).await
    }
}

/// Milliseconds of objects, in their order.
fn times<'a>(took: impl IntoIterator<Item = &'a Took>) -> Sorted {
    Sorted::new(
        took.into_iter()
            .map(|one| one.micros as f64 / 1e3)
            .collect(),
    )
}

/// The share of objects that came through; all of none.
fn success(came: i64, failed: i64) -> f64 {
    if came + failed == 0 {
        1.0
    } else {
        ratio(came as f64, (came + failed) as f64)
    }
}

/// The collection at a glance: what it has, what batches brought lately, how long that took and how much of it failed in the
/// last 30 days.
#[utoipa::path(get, path = "/v1/analytics/collections/{collection_id}/overview", tag = "analytics", responses((status = 200, body = CollectionOverviewResponse)))]
async fn get_collection_overview(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<CollectionOverviewResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let span = Span::last(&app, 30 * 24);
    let written = ingested::written(app.db(), place.key(), span).await?;
    // The hour that a moment is in counts as a whole.
    let since = |hours: i64| {
        let from = span.until - hours * HOUR;
        let lately = written.iter().filter(|hour| hour.at + HOUR > from);
        lately.map(|hour| hour.amount).sum::<i64>()
    };
    let came = written.iter().map(|hour| hour.objects).sum();
    let failed = count(place.faults(&app, span).await?.len());
    let newest = ingested::newest(app.db(), place.key()).await?;
    let clusters = CLUSTERS.all(app.db(), &place.namespace_id).await?;
    let uses = |model: &loupe_wire::ClusterModel| {
        let named = model.collection_ids.iter().flatten();
        named.into_iter().any(|one| *one == place.id)
    };
    let using = clusters
        .iter()
        .filter(|cluster| uses(&cluster.data.0.model));
    let taxonomies = place.collection.taxonomy_applications.iter().flatten();
    let reach = scope.reach(vec![place.id.clone()]);
    let documents = match &place.collection.s3_vector_index {
        // Put away: what it has is noted.
        Some(_) => place.collection.document_count.unwrap_or(0),
        None => i64::try_from(app.store().count(&reach, None).await?).unwrap_or(i64::MAX),
    };
    Ok(Json(CollectionOverviewResponse {
        collection_name: place.collection.collection_name.clone(),
        total_documents: documents,
        documents_last_24h: since(24),
        documents_last_7d: since(7 * 24),
        avg_processing_time_ms: times(&ingested::took(app.db(), place.key(), span).await?).mean(),
        success_rate: success(came, failed),
        active_taxonomies: count(taxonomies.count()),
        active_clusters: count(using.count()),
        last_indexed: (newest > 0).then(|| clock::time(newest)),
        collection_id: place.id,
    }))
}

/// What batches brought into the collection, by time. Documents that were written one by one are not in it.
#[utoipa::path(get, path = "/v1/analytics/collections/{collection_id}/growth", tag = "analytics", params(DatesQuery), responses((status = 200, body = GrowthMetricsResponse)))]
async fn get_collection_growth(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<DatesQuery>,
) -> Result<Json<GrowthMetricsResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let (span, unit) = super::by_hours(&app, &query)?;
    let mut stretches: BTreeMap<_, (i64, i64, i64, Vec<f64>)> = BTreeMap::new();
    for hour in ingested::written(app.db(), place.key(), span).await? {
        let stretch = stretches.entry(bucket(hour.at, unit)).or_default();
        stretch.0 += hour.amount;
        stretch.1 += hour.objects;
    }
    for fault in place.faults(&app, span).await? {
        stretches.entry(bucket(fault.at, unit)).or_default().2 += 1;
    }
    for one in ingested::took(app.db(), place.key(), span).await? {
        let stretch = stretches.entry(bucket(one.at, unit)).or_default();
        stretch.3.push(one.micros as f64 / 1e3);
    }
    let (added, came, failed) = stretches.values().fold((0, 0, 0), |sum, one| {
        (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
    });
    let told = stretches
        .into_iter()
        .map(|(at, (documents, came, failed, took))| GrowthMetric {
            time_bucket: at,
            documents_added: documents,
            success_rate: success(came, failed),
            avg_latency_ms: Sorted::new(took).mean(),
        });
    Ok(Json(GrowthMetricsResponse {
        time_range: span.told(),
        metrics: told.collect(),
        summary: object(json!({
            "documents_added": added, "objects_processed": came, "objects_failed": failed, "success_rate": success(came, failed),
        })),
        collection_id: place.id,
    }))
}

/// How long objects take from the submission of their batch to documents that can be searched, by time, and the slowest. Of
/// the newest 20,000 objects.
#[utoipa::path(get, path = "/v1/analytics/collections/{collection_id}/latency", tag = "analytics", params(StretchesQuery), responses((status = 200, body = LatencyResponse)))]
async fn get_collection_latency(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<StretchesQuery>,
) -> Result<Json<LatencyResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let unit = unit(query.group_by.as_deref(), DateTruncUnit::Hour)?;
    let span = Span::hours(&app, query.hours, 24)?;
    let mut all = ingested::took(app.db(), place.key(), span).await?;
    let mut stretches: BTreeMap<_, Vec<&Took>> = BTreeMap::new();
    for one in &all {
        stretches.entry(bucket(one.at, unit)).or_default().push(one);
    }
    let told = stretches.into_iter().map(|(at, took)| {
        let times = times(took.iter().copied());
        LatencyMetric {
            time_bucket: at,
            document_count: took.iter().map(|one| one.documents).sum(),
            avg_latency_ms: times.mean(),
            p95_latency_ms: times.percentile(0.95),
            p99_latency_ms: times.percentile(0.99),
        }
    });
    let metrics = told.collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.micros));
    let slowest = all.iter().take(SLOWEST).map(|one| {
        object(json!({
            "object_id": one.object_id, "documents": one.documents, "latency_ms": one.micros as f64 / 1e3,
            "indexed_at": clock::time(one.at),
        }))
    });
    Ok(Json(LatencyResponse {
        time_range: span.told(),
        metrics,
        slowest_documents: slowest.collect(),
        collection_id: place.id,
    }))
}

/// How the collection's extractor does: objects that came through, those that failed, and how long they took from the
/// submission of their batch.
#[utoipa::path(get, path = "/v1/analytics/collections/{collection_id}/extractors", tag = "analytics", params(HoursQuery), responses((status = 200, body = ExtractorPerformanceResponse)))]
async fn get_collection_extractor_figures(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<ExtractorPerformanceResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 24)?;
    let written = ingested::written(app.db(), place.key(), span).await?;
    let came = written.iter().map(|hour| hour.objects).sum();
    let failed = count(place.faults(&app, span).await?.len());
    let times = times(&ingested::took(app.db(), place.key(), span).await?);
    let extractor = &place.collection.feature_extractor;
    let metrics = ExtractorMetrics {
        extractor_name: extractor.feature_extractor_name.clone(),
        version: extractor.version.clone(),
        execution_count: came + failed,
        success_count: came,
        failure_count: failed,
        success_rate: success(came, failed),
        avg_latency_ms: times.mean(),
        p95_latency_ms: times.percentile(0.95),
        p99_latency_ms: times.percentile(0.99),
    };
    Ok(Json(ExtractorPerformanceResponse {
        time_range: span.told(),
        extractors: if came + failed > 0 {
            vec![metrics]
        } else {
            Vec::new()
        },
        summary: object(
            json!({"objects": came + failed, "documents": written.iter().map(|hour| hour.amount).sum::<i64>()}),
        ),
        collection_id: place.id,
    }))
}

/// What failed on the way into the collection, by its kind, the most frequent first.
#[utoipa::path(get, path = "/v1/analytics/collections/{collection_id}/failures", tag = "analytics", params(FailuresQuery), responses((status = 200, body = CollectionFailureAnalysisResponse)))]
async fn get_collection_failures(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<FailuresQuery>,
) -> Result<Json<CollectionFailureAnalysisResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 72)?;
    let faults = place.faults(&app, span).await?;
    let told = ingested::kinds(&faults)
        .into_iter()
        .map(|(kind, of_kind)| ErrorMetrics {
            error_type: kind.to_owned(),
            count: count(of_kind.len()),
            percentage: 100.0 * ratio(of_kind.len() as f64, faults.len() as f64),
            recent_message: of_kind
                .first()
                .map(|one| one.message.clone())
                .unwrap_or_default(),
        });
    Ok(Json(CollectionFailureAnalysisResponse {
        time_range: span.told(),
        error_distribution: told.collect(),
        total_errors: count(faults.len()),
        collection_id: place.id,
    }))
}
