//! What comes of asking a retriever: how often, how fast, where the time goes, what people do with the answers.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use indexmap::IndexMap;
use loupe_wire::{
    CachePerformanceResponse, DateTruncUnit, InteractionTuningResponse, InteractionType,
    NamespaceOperation, Object, RetrieverPerformanceResponse, RetrieverSignal,
    StageBreakdownResponse, StagePerformanceMetrics, Value,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Span,
    asks::HoursQuery,
    bucket, searches,
    store::{self, Asked},
    tuning, unit,
};
use crate::{
    app::App,
    auth::{Read, Scope},
    clock,
    error::{Result, Violation},
    figures::{Sorted, count, ratio},
    json::Json,
    list::{Params, within},
    openapi::routes,
    v1::{
        interactions,
        retrievers::{self, stages_of},
        tasks::name_of,
    },
};

/// Searches that figures are made of, the newest ones.
const COUNTED: i64 = 50_000;
/// Executions whose stages are looked at.
const LOOKED_AT: i64 = 2_000;
/// Acts on answers that are looked at.
const ACTS: i64 = 10_000;
/// Milliseconds from which an answer is slow.
const SLOW: f64 = 500.0;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_retriever_performance))
        .routes(routes!(get_retriever_stage_figures))
        .routes(routes!(get_retriever_cache_figures))
        .routes(routes!(list_retriever_signals))
        .routes(routes!(list_slow_queries_of_retriever))
        .routes(routes!(analyze_retriever_tuning))
}

/// A retriever that the caller may know of.
pub(super) struct Place {
    pub namespace_id: String,
    pub retriever: loupe_wire::RetrieverModelOutput,
}

impl Place {
    async fn find(app: &App, scope: &Scope<Read>, id: &str) -> Result<Self> {
        let retriever = retrievers::find(app, scope, id, NamespaceOperation::ReadData).await?;
        Ok(Self {
            namespace_id: scope.namespace_id.clone(),
            retriever,
        })
    }

    pub fn id(&self) -> String {
        self.retriever.retriever_id.clone().unwrap_or_default()
    }

    pub fn key(&self) -> (&str, &str) {
        let id = self.retriever.retriever_id.as_deref();
        (&self.namespace_id, id.unwrap_or_default())
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PerformanceQuery {
    /// RFC 3339, or a day; by default a day before the end by minutes and hours, else 30 days.
    start_date: Option<String>,
    /// RFC 3339, or a day; now when left out.
    end_date: Option<String>,
    /// `minute`, `hour`, `day`, `week` or `month`; default `hour`.
    group_by: Option<String>,
    /// `page`: what was asked on published pages; `api`: what was asked elsewhere. Both when left out.
    source: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SignalsQuery {
    /// A type of interaction, `zero_results` or `slow_query`.
    signal_type: Option<String>,
    /// 1 to 1000, default 100.
    limit: Option<i64>,
    /// 1 to 720, default 24.
    hours: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SlowQuery {
    /// 1 to 1000, default 10.
    limit: Option<i64>,
    /// 1 to 720, default 24.
    hours: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TuningQuery {
    /// 1 to 90, default 7.
    days: Option<i64>,
}

fn asked(source: Option<&str>) -> Result<Asked> {
    Ok(match source {
        None | Some("") => Asked::Anywhere,
        Some("page") => Asked::OnPages,
        Some("api") => Asked::Elsewhere,
        Some(other) => {
            let msg = "source is page or api";
            return Err(Violation::query("source", "enum", msg, other.into()).into());
        }
    })
}

/// How often a retriever is asked and how fast it answers, by time; in sum also what people asked most, what found nothing,
/// and what they did with the answers. Figures are of the newest 50,000 searches that did not fail; `failed_count` of the sum tells
/// how many did.
#[utoipa::path(get, path = "/v1/analytics/retrievers/{retriever_id}/performance", tag = "analytics", params(PerformanceQuery), responses((status = 200, body = RetrieverPerformanceResponse)))]
async fn get_retriever_performance(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<PerformanceQuery>,
) -> Result<Json<RetrieverPerformanceResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let unit = unit(query.group_by.as_deref(), DateTruncUnit::Hour)?;
    let span = Span::between(
        &app,
        query.start_date.as_deref(),
        query.end_date.as_deref(),
        unit,
    )?;
    let asked = asked(query.source.as_deref())?;
    let all = store::of_retriever(app.db(), place.key(), span, asked, COUNTED).await?;
    let failed = store::failed_searches(app.db(), place.key(), span, asked).await?;
    let acts = Acts::read(&app, &place, span, asked).await?;
    let mut summary = searches::figures(&all);
    let (most_asked, found_nothing) = searches::queries(&all);
    summary.insert("failed_count".into(), failed.into());
    summary.insert("top_queries".into(), most_asked.into());
    summary.insert("zero_result_queries".into(), found_nothing.into());
    summary.extend(searches::acts(&acts, all.len()));
    Ok(Json(RetrieverPerformanceResponse {
        retriever_id: place.id(),
        time_range: span.told(),
        metrics: searches::over_time(&all, unit),
        summary: Some(summary),
    }))
}

/// Where the time of a retriever goes, stage by stage, over its newest 2,000 executions.
#[utoipa::path(get, path = "/v1/analytics/retrievers/{retriever_id}/stages", tag = "analytics", params(HoursQuery), responses((status = 200, body = StageBreakdownResponse)))]
async fn get_retriever_stage_figures(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<StageBreakdownResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 24)?;
    let told = store::told(app.db(), place.key(), span, LOOKED_AT).await?;
    let stages = stages(&place, &told);
    Ok(Json(StageBreakdownResponse {
        retriever_id: place.id(),
        total_latency_ms: stages.iter().map(|stage| stage.avg_latency_ms).sum(),
        stages,
    }))
}

/// The stages of executions, in the order in which they run. What came from memory ran none.
pub(super) fn stages(place: &Place, executions: &[Object]) -> Vec<StagePerformanceMetrics> {
    let mut seen: IndexMap<&str, [Vec<f64>; 3]> = IndexMap::new();
    for execution in executions {
        if execution.get("cache_hit").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        for (name, told) in stages_of(execution) {
            let figures = seen.entry(name).or_default();
            let members = ["duration_ms", "input_count", "output_count"];
            for (figures, member) in figures.iter_mut().zip(members) {
                figures.push(told.get(member).and_then(Value::as_f64).unwrap_or(0.0));
            }
        }
    }
    let order = |name: &str| {
        let mut all = place.retriever.stages.iter();
        all.position(|one| one.stage_name == name)
    };
    let kind_of = |name: &str| {
        let stage = place.retriever.stages.get(order(name)?)?;
        let kind = stage.config.get("stage_id").and_then(Value::as_str);
        kind.map(ToOwned::to_owned)
    };
    let told = seen.into_iter().map(|(name, [took, read, gave])| {
        let (took, read, gave) = (Sorted::new(took), Sorted::new(read), Sorted::new(gave));
        StagePerformanceMetrics {
            stage_name: name.to_owned(),
            stage_type: kind_of(name).unwrap_or_default(),
            execution_count: count(took.len()),
            avg_latency_ms: took.mean(),
            p95_latency_ms: took.percentile(0.95),
            avg_documents_in: read.mean(),
            avg_documents_out: gave.mean(),
        }
    });
    let mut told: Vec<_> = told.collect();
    // One of the databases keeps members in an order of its own.
    told.sort_by_key(|one| order(&one.stage_name).unwrap_or(usize::MAX));
    told
}

/// How often a retriever answers from memory, and how much faster that is.
#[utoipa::path(get, path = "/v1/analytics/retrievers/{retriever_id}/cache-performance", tag = "analytics", params(HoursQuery), responses((status = 200, body = CachePerformanceResponse)))]
async fn get_retriever_cache_figures(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<HoursQuery>,
) -> Result<Json<CachePerformanceResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let span = Span::hours(&app, query.hours, 24)?;
    let all = store::of_retriever(app.db(), place.key(), span, Asked::Anywhere, COUNTED).await?;
    let (kept, made): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.cached);
    let mut hours: IndexMap<_, (i64, i64)> = IndexMap::new();
    for one in all.iter().rev() {
        let hour = bucket(one.created_at, DateTruncUnit::Hour);
        let (hits, misses) = hours.entry(hour).or_default();
        *(if one.cached { hits } else { misses }) += 1;
    }
    let told = |(hour, (hits, misses)): (_, (i64, i64))| {
        let rate = ratio(hits as f64, (hits + misses) as f64);
        searches::object(
            json!({"time_bucket": hour, "hits": hits, "misses": misses, "hit_rate": rate}),
        )
    };
    Ok(Json(CachePerformanceResponse {
        retriever_id: place.id(),
        time_range: span.told(),
        cache_hit_rate: ratio(kept.len() as f64, all.len() as f64),
        total_cache_hits: count(kept.len()),
        total_cache_misses: count(made.len()),
        avg_cache_hit_latency_ms: searches::took(kept).mean(),
        avg_cache_miss_latency_ms: searches::took(made).mean(),
        hourly_breakdown: hours.into_iter().map(told).collect(),
    }))
}

/// What people did with the answers of a retriever.
pub(super) struct Acts {
    /// How often each kind was done.
    pub kinds: BTreeMap<String, i64>,
    /// The newest clicks.
    pub clicks: Vec<store::Act>,
}

impl Acts {
    async fn read(app: &App, place: &Place, span: Span, asked: Asked) -> Result<Self> {
        let sums = store::sums_of_acts(app.db(), place.key(), span, asked).await?;
        let mut kinds = BTreeMap::new();
        for (bits, times) in sums {
            for kind in interactions::KINDS {
                if bits & interactions::bit(kind) != 0 {
                    *kinds.entry(name_of(kind)).or_default() += times;
                }
            }
        }
        let clicks = interactions::bit(InteractionType::Click);
        let clicks = store::acts(app.db(), place.key(), span, asked, (clicks, COUNTED));
        Ok(Self {
            kinds,
            clicks: clicks.await?,
        })
    }
}

/// What came of single answers, the newest first: what people did with them, and which found nothing (`zero_results`) or
/// took half a second and more (`slow_query`).
#[utoipa::path(get, path = "/v1/analytics/retrievers/{retriever_id}/signals", tag = "analytics", params(SignalsQuery), responses((status = 200, body = Vec<RetrieverSignal>)))]
async fn list_retriever_signals(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<SignalsQuery>,
) -> Result<Json<Vec<RetrieverSignal>>> {
    let place = Place::find(&app, &scope, &id).await?;
    let limit = within("limit", query.limit, 100, (1, 1000))?;
    let span = Span::hours(&app, query.hours, 24)?;
    // One kind may be rare among the others.
    let kind = query.signal_type.filter(|kind| !kind.is_empty());
    let read = if kind.is_some() { ACTS } else { limit };
    let all = (interactions::ANY, read);
    let acts = store::acts(app.db(), place.key(), span, Asked::Anywhere, all).await?;
    let poor = store::poor(app.db(), place.key(), span, (SLOW * 1e3) as i64, read).await?;
    let mut signals: Vec<RetrieverSignal> = acts.into_iter().flat_map(signals_of_act).collect();
    signals.extend(poor.iter().flat_map(signals_of_answer));
    if let Some(kind) = kind {
        signals.retain(|signal| signal.signal_type == kind);
    }
    signals.sort_by_key(|signal| std::cmp::Reverse(signal.timestamp));
    signals.truncate(usize::try_from(limit).unwrap_or(100));
    Ok(Json(signals))
}

fn signals_of_act(act: store::Act) -> Vec<RetrieverSignal> {
    let told = act.told;
    let signal = |kind| RetrieverSignal {
        timestamp: clock::time(act.created_at),
        execution_id: told.execution_id.clone().unwrap_or_default(),
        signal_type: name_of(kind),
        signal_data: searches::object(json!({
            "document_id": told.feature_id, "position": told.position, "session_id": told.session_id, "user_id": told.user_id,
        })),
        metadata: told.metadata.clone(),
    };
    told.interaction_type.iter().map(signal).collect()
}

fn signals_of_answer(answer: &store::Poor) -> Vec<RetrieverSignal> {
    let milliseconds = answer.micros as f64 / 1e3;
    let data =
        json!({"query": answer.query, "results": answer.returned, "latency_ms": milliseconds});
    let signal = |kind: &str| RetrieverSignal {
        timestamp: clock::time(answer.created_at),
        execution_id: answer.execution_id.clone(),
        signal_type: kind.to_owned(),
        signal_data: searches::object(data.clone()),
        metadata: None,
    };
    let mut signals = Vec::new();
    if answer.returned == 0 {
        signals.push(signal("zero_results"));
    }
    if milliseconds >= SLOW {
        signals.push(signal("slow_query"));
    }
    signals
}

/// The executions of a retriever that took longest, with the stage that took most of each.
#[utoipa::path(get, path = "/v1/analytics/retrievers/{retriever_id}/slow-queries", tag = "analytics", params(SlowQuery), responses((status = 200, body = Vec<std::collections::HashMap<String, serde_json::Value>>)))]
async fn list_slow_queries_of_retriever(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<SlowQuery>,
) -> Result<Json<Vec<Object>>> {
    let place = Place::find(&app, &scope, &id).await?;
    let limit = within("limit", query.limit, 10, (1, 1000))?;
    let span = Span::hours(&app, query.hours, 24)?;
    let slowest = store::slowest(app.db(), place.key(), span, limit).await?;
    let spent = |told: &Value| {
        told.get("duration_ms")
            .and_then(Value::as_f64)
            .unwrap_or(0.0)
    };
    let told = slowest.into_iter().map(|(micros, execution)| {
        let most = stages_of(&execution).max_by(|a, b| spent(a.1).total_cmp(&spent(b.1)));
        let of = |member: &str| execution.get(member).cloned().unwrap_or_default();
        searches::object(json!({
            "execution_id": of("execution_id"), "timestamp": of("created_at"), "query": of("query_summary"),
            "latency_ms": micros as f64 / 1e3, "results_count": of("total_returned"), "status": of("status"),
            "slowest_stage": most.map(|(name, _)| name), "slowest_stage_ms": most.map(|(_, told)| spent(told)),
        }))
    });
    Ok(Json(told.collect()))
}

/// What to change in a retriever, judged by what came of its answers: each piece of advice says by which figures, and how sure
/// they make it.
#[utoipa::path(post, path = "/v1/analytics/retrievers/{retriever_id}/analyze-tuning", tag = "analytics", params(TuningQuery), responses((status = 200, body = InteractionTuningResponse)))]
async fn analyze_retriever_tuning(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<TuningQuery>,
) -> Result<Json<InteractionTuningResponse>> {
    let place = Place::find(&app, &scope, &id).await?;
    let (span, _) = Span::days(&app, query.days, 7)?;
    let seen = tuning::Seen {
        searches: store::of_retriever(app.db(), place.key(), span, Asked::Anywhere, COUNTED)
            .await?,
        acts: Acts::read(&app, &place, span, Asked::Anywhere).await?,
        stages: stages(
            &place,
            &store::told(app.db(), place.key(), span, LOOKED_AT).await?,
        ),
    };
    let mut current = searches::figures(&seen.searches);
    current.extend(searches::acts(&seen.acts, seen.searches.len()));
    Ok(Json(InteractionTuningResponse {
        retriever_id: place.id(),
        analysis_period: span.told(),
        recommendations: tuning::advise(&place.retriever, &seen),
        current_performance: current,
    }))
}
