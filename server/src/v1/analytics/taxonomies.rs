//! What taxonomies gave to documents: counted from what the documents' records say, so the newest word on each.

use std::collections::{BTreeMap, HashMap, HashSet};

use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use loupe_engine::{
    filter::{Filter, Operator},
    store::{Document, ListQuery},
};
use loupe_wire::{
    AssignmentMetric, AssignmentMetricsResponse, ConfidenceDistribution, ConfidenceResponse,
    DateTruncUnit, EnrichmentHistoryResponse, EnrichmentMetric, LabelDistributionResponse,
    LabelMetric, NamespaceOperation, Value,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Span,
    asks::{DatesQuery, WeekQuery},
    bucket, by_hours, ingested,
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
    v1::{documents, taxonomies},
};

/// Documents that figures are made of, and those that are read at once.
const COUNTED: usize = 20_000;
const PAGE: usize = 500;

/// Scores below this are low.
const LOW: f64 = 0.5;
/// Ranges of scores that are told apart.
const RANGES: usize = 5;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_taxonomy_assignments))
        .routes(routes!(get_taxonomy_confidence))
        .routes(routes!(get_taxonomy_enrichments))
        .routes(routes!(get_taxonomy_labels))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LabelsQuery {
    /// 1 to 720, default 168.
    hours: Option<i64>,
    /// 1 to 1000, default 50.
    limit: Option<i64>,
}

/// A node that a document was given.
struct Given {
    at: i64,
    label: String,
    score: Option<f64>,
}

/// A document that the taxonomy was applied to.
struct Applied {
    at: i64,
    failed: bool,
    took_ms: Option<f64>,
}

/// What the documents say of one taxonomy.
#[derive(Default)]
struct Seen {
    taxonomy_id: String,
    given: Vec<Given>,
    applied: Vec<Applied>,
    /// Whether every document was read.
    is_exact: bool,
}

impl Seen {
    /// Reads the documents that the caller may see and that the taxonomy was applied to in the time.
    async fn find(app: &App, scope: &Scope<Read>, identifier: &str, span: Span) -> Result<Self> {
        let operation = NamespaceOperation::ReadData;
        let taxonomy = taxonomies::find(app, scope, identifier, operation).await?;
        let mut seen = Self {
            taxonomy_id: taxonomy.taxonomy_id.unwrap_or_default(),
            ..Self::default()
        };
        let sight = documents::everywhere(app, scope).await?;
        let field = "_internal.processing.taxonomy_lineage.taxonomy_id";
        let named = Filter::leaf(field, Operator::Eq, json!(seen.taxonomy_id));
        let mut query = ListQuery {
            filter: sight.filter(Some(named)),
            limit: PAGE,
            ..Default::default()
        };
        // It reads as much as a search, and takes its turn as one.
        let _turn = app.turns.take().await?;
        let mut read = 0;
        while read < COUNTED {
            let page = app.store().list(&sight.reach, query.clone()).await?;
            read += page.documents.len();
            for document in &page.documents {
                seen.note(document, span);
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                seen.is_exact = true;
                break;
            }
        }
        Ok(seen)
    }

    fn note(&mut self, document: &Document, span: Span) {
        let internal = document.payload.get("_internal");
        let list = internal.map(|internal| &internal["processing"]["taxonomy_lineage"]);
        let said = list.and_then(Value::as_array).into_iter().flatten();
        let mut applied = None;
        for one in said.filter(|one| one["taxonomy_id"] == self.taxonomy_id.as_str()) {
            let Some(at) = moment(&one["at"]).filter(|at| span.since <= *at && *at < span.until)
            else {
                continue;
            };
            let failed = !one["error"].is_null();
            applied = Some(Applied {
                at,
                failed,
                took_ms: one["took_ms"].as_f64(),
            });
            if !failed {
                self.given.push(Given {
                    at,
                    label: one["label"].as_str().unwrap_or_default().to_owned(),
                    score: one["score"].as_f64(),
                });
            }
        }
        self.applied.extend(applied);
    }
}

fn moment(text: &Value) -> Option<i64> {
    let at = DateTime::parse_from_rfc3339(text.as_str()?).ok()?;
    Some(at.timestamp_micros())
}

/// The mean of the scores that there are; retrievers that do not rank give none.
fn confidence<'a>(given: impl IntoIterator<Item = &'a Given>) -> f64 {
    let scores = given.into_iter().filter_map(|one| one.score);
    Sorted::new(scores.collect()).mean()
}

fn labels(given: &[&Given]) -> i64 {
    let labels: HashSet<&str> = given.iter().map(|one| one.label.as_str()).collect();
    count(labels.len())
}

/// Things by the stretch of time that each is in, the oldest first.
fn by_time<T>(
    all: &[T],
    at: fn(&T) -> i64,
    unit: DateTruncUnit,
) -> BTreeMap<DateTime<Utc>, Vec<&T>> {
    let mut stretches: BTreeMap<_, Vec<&T>> = BTreeMap::new();
    for one in all {
        stretches
            .entry(bucket(at(one), unit))
            .or_default()
            .push(one);
    }
    stretches
}

/// How often documents were given nodes, by when each was.
#[utoipa::path(get, path = "/v1/analytics/taxonomies/{taxonomy_id}/assignments", tag = "analytics", params(DatesQuery), responses((status = 200, body = AssignmentMetricsResponse)))]
async fn get_taxonomy_assignments(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<DatesQuery>,
) -> Result<Json<AssignmentMetricsResponse>> {
    let (span, unit) = by_hours(&app, &query)?;
    let seen = Seen::find(&app, &scope, &id, span).await?;
    let stretches = by_time(&seen.given, |one| one.at, unit).into_iter();
    let metrics = stretches.map(|(time_bucket, given)| AssignmentMetric {
        time_bucket,
        assignment_count: count(given.len()),
        avg_confidence: confidence(given.iter().copied()),
        unique_labels: labels(&given),
    });
    let metrics = metrics.collect();
    let all: Vec<&Given> = seen.given.iter().collect();
    Ok(Json(AssignmentMetricsResponse {
        time_range: span.told(),
        metrics,
        summary: object(json!({
            "assignment_count": all.len(), "avg_confidence": confidence(&seen.given), "unique_labels": labels(&all),
            "is_exact": seen.is_exact,
        })),
        taxonomy_id: seen.taxonomy_id,
    }))
}

/// How sure the taxonomy was of the nodes it gave, by fifths of the score.
#[utoipa::path(get, path = "/v1/analytics/taxonomies/{taxonomy_id}/confidence", tag = "analytics", params(WeekQuery), responses((status = 200, body = ConfidenceResponse)))]
async fn get_taxonomy_confidence(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<WeekQuery>,
) -> Result<Json<ConfidenceResponse>> {
    let span = Span::hours(&app, query.hours, 168)?;
    let seen = Seen::find(&app, &scope, &id, span).await?;
    let scores: Vec<f64> = seen.given.iter().filter_map(|one| one.score).collect();
    Ok(Json(ConfidenceResponse {
        taxonomy_id: seen.taxonomy_id,
        distribution: distribution(&scores),
        low_confidence_count: count(scores.iter().filter(|score| **score < LOW).count()),
        avg_confidence: Sorted::new(scores).mean(),
    }))
}

/// Scores by their range; those outside 0 to 1, which some rankings give, count in the nearest.
fn distribution(scores: &[f64]) -> Vec<ConfidenceDistribution> {
    let mut counts = [0_usize; RANGES];
    for score in scores {
        let range = (score.clamp(0.0, 1.0) * RANGES as f64) as usize;
        counts[range.min(RANGES - 1)] += 1;
    }
    let edge = |number: usize| number as f64 / RANGES as f64;
    let told = counts.into_iter().enumerate();
    let told = told.map(|(number, found)| ConfidenceDistribution {
        confidence_range: format!("{:.1}-{:.1}", edge(number), edge(number + 1)),
        count: count(found),
        percentage: 100.0 * ratio(found as f64, scores.len() as f64),
    });
    told.collect()
}

/// How the taxonomy was applied to documents, by when that was: those that were given nodes, and those for which it failed.
#[utoipa::path(get, path = "/v1/analytics/taxonomies/{taxonomy_id}/enrichments", tag = "analytics", params(DatesQuery), responses((status = 200, body = EnrichmentHistoryResponse)))]
async fn get_taxonomy_enrichments(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<DatesQuery>,
) -> Result<Json<EnrichmentHistoryResponse>> {
    let (span, unit) = by_hours(&app, &query)?;
    let mut seen = Seen::find(&app, &scope, &id, span).await?;
    seen.applied
        .extend(failures(&app, &scope, &seen.taxonomy_id, span).await?);
    let stretches = by_time(&seen.applied, |one| one.at, unit).into_iter();
    let metrics = stretches.map(|(at, applied)| enrichment(at, &applied));
    let metrics = metrics.collect();
    let all: Vec<&Applied> = seen.applied.iter().collect();
    let whole = enrichment(DateTime::default(), &all);
    Ok(Json(EnrichmentHistoryResponse {
        time_range: span.told(),
        metrics,
        summary: object(json!({
            "enrichment_count": whole.enrichment_count, "success_count": whole.success_count,
            "failure_count": whole.failure_count, "avg_latency_ms": whole.avg_latency_ms,
            "success_rate": whole.success_rate, "is_exact": seen.is_exact,
        })),
        taxonomy_id: seen.taxonomy_id,
    }))
}

/// Documents for which tasks failed: the tasks tell of them, the documents stay as they were.
async fn failures(
    app: &App,
    scope: &Scope<Read>,
    taxonomy_id: &str,
    span: Span,
) -> Result<Vec<Applied>> {
    let of = (scope.caller.org_id.as_str(), scope.namespace_id.as_str());
    let mut failed = Vec::new();
    for (at, task) in ingested::applied(app.db(), of, span).await? {
        let outputs = task.outputs.iter().flatten();
        for one in outputs.filter(|one| one["taxonomy_id"] == taxonomy_id) {
            let errors = one["errors"].as_u64().unwrap_or(0);
            let errors = usize::try_from(errors).unwrap_or(COUNTED).min(COUNTED);
            failed.extend((0..errors).map(|_| Applied {
                at,
                failed: true,
                took_ms: None,
            }));
        }
    }
    Ok(failed)
}

fn enrichment(time_bucket: DateTime<Utc>, applied: &[&Applied]) -> EnrichmentMetric {
    let failed = applied.iter().filter(|one| one.failed).count();
    let came = applied.len() - failed;
    let took = applied.iter().filter_map(|one| one.took_ms);
    EnrichmentMetric {
        time_bucket,
        enrichment_count: count(applied.len()),
        success_count: count(came),
        failure_count: count(failed),
        avg_latency_ms: Sorted::new(took.collect()).mean(),
        success_rate: ratio(came as f64, applied.len() as f64),
    }
}

/// The labels that documents were given, the most frequent first.
#[utoipa::path(get, path = "/v1/analytics/taxonomies/{taxonomy_id}/labels", tag = "analytics", params(LabelsQuery), responses((status = 200, body = LabelDistributionResponse)))]
async fn get_taxonomy_labels(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<LabelsQuery>,
) -> Result<Json<LabelDistributionResponse>> {
    let limit = within("limit", query.limit, 50, (1, 1000))?;
    let span = Span::hours(&app, query.hours, 168)?;
    let seen = Seen::find(&app, &scope, &id, span).await?;
    let mut by_label: HashMap<&str, Vec<&Given>> = HashMap::new();
    for one in &seen.given {
        by_label.entry(&one.label).or_default().push(one);
    }
    let mut all: Vec<_> = by_label.into_iter().collect();
    all.sort_by_key(|(label, given)| (std::cmp::Reverse(given.len()), *label));
    let told = all.iter().take(usize::try_from(limit).unwrap_or(0));
    let told = told.map(|(label, given)| LabelMetric {
        label: (*label).to_owned(),
        count: count(given.len()),
        percentage: 100.0 * ratio(given.len() as f64, seen.given.len() as f64),
        avg_confidence: confidence(given.iter().copied()),
    });
    let labels: Vec<LabelMetric> = told.collect();
    Ok(Json(LabelDistributionResponse {
        total_labels: count(all.len()),
        labels_returned: count(labels.len()),
        total_assignments: count(seen.given.len()),
        truncated: labels.len() < all.len() || !seen.is_exact,
        labels,
        taxonomy_id: seen.taxonomy_id.clone(),
    }))
}
