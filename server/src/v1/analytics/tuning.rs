//! Advice on a retriever, each piece by a rule over what came of its answers.

use loupe_wire::{
    InteractionTuningRecommendation, Object, RetrieverModelOutput, StagePerformanceMetrics, Value,
};
use serde_json::json;

use super::{
    retrievers::Acts,
    searches::{places, took},
    store::Search,
};
use crate::figures::ratio;

/// Searches, or clicks, that a rule wants to have seen before it says anything.
const ENOUGH: usize = 20;
/// Share of searches that find nothing from which that is worth a change.
const EMPTY: f64 = 0.1;
/// Place from which clicks lie deep.
const DEEP: f64 = 3.0;
/// Milliseconds of the slowest twentieth from which a retriever is slow, and the share of a stage that is to blame.
const SLOW: f64 = 500.0;
const BLAME: f64 = 0.6;
/// Times as many documents as anybody clicks on from which fewer would do.
const SPARE: f64 = 4.0;

/// What the advice is made of.
pub(super) struct Seen {
    pub searches: Vec<Search>,
    pub acts: Acts,
    pub stages: Vec<StagePerformanceMetrics>,
}

/// The stages of one kind with their parameters.
fn stages<'a>(retriever: &'a RetrieverModelOutput, kind: &str) -> Vec<(&'a str, &'a Object)> {
    let all = retriever.stages.iter();
    let of_kind = all.filter(|stage| stage.config.get("stage_id").is_some_and(|id| id == kind));
    let told = of_kind.filter_map(|stage| {
        let parameters = stage.config.get("parameters")?.as_object()?;
        Some((stage.stage_name.as_str(), parameters))
    });
    told.collect()
}

/// How sure so many observations make one: half at fifty, never quite.
fn confidence(observed: usize) -> f64 {
    observed as f64 / (observed as f64 + 50.0)
}

/// What to change; nothing where too little was seen.
pub(super) fn advise(
    retriever: &RetrieverModelOutput,
    seen: &Seen,
) -> Vec<InteractionTuningRecommendation> {
    let rules = [too_strict, too_deep, too_many, too_slow];
    rules
        .iter()
        .filter_map(|rule| rule(retriever, seen))
        .collect()
}

/// Many searches find nothing.
fn too_strict(
    retriever: &RetrieverModelOutput,
    seen: &Seen,
) -> Option<InteractionTuningRecommendation> {
    let asked = seen.searches.len();
    let empty = seen.searches.iter().filter(|one| one.returned == 0).count();
    let share = ratio(empty as f64, asked as f64);
    if asked < ENOUGH || share < EMPTY {
        return None;
    }
    let searching = stages(retriever, "feature_search");
    let strict = searching.iter().find_map(|(name, parameters)| {
        let searches = parameters.get("searches").and_then(Value::as_array);
        let mut searches = searches.into_iter().flatten();
        let least = searches.find_map(|one| one.get("min_score")?.as_f64());
        let least = least.or_else(|| parameters.get("min_score")?.as_f64())?;
        (least > 0.0).then_some((*name, least))
    });
    let reasoning = format!("{empty} of {asked} searches found nothing");
    let (kind, current, recommended, impact) = match strict {
        Some((name, least)) => (
            "min_score",
            json!({"stage_name": name, "min_score": least}),
            json!({"stage_name": name, "min_score": least / 2.0}),
            "fewer empty answers, with documents that fit less well",
        ),
        None if stages(retriever, "query_expand").is_empty() => (
            "query_expand",
            Value::Null,
            json!({"stage_id": "query_expand"}),
            "fewer empty answers, a little slower",
        ),
        None => return None,
    };
    Some(InteractionTuningRecommendation {
        recommendation_type: kind.into(),
        current_value: current,
        recommended_value: recommended,
        expected_impact: impact.into(),
        confidence: confidence(asked),
        reasoning,
    })
}

/// People find what they want far down.
fn too_deep(
    retriever: &RetrieverModelOutput,
    seen: &Seen,
) -> Option<InteractionTuningRecommendation> {
    let clicks = places(&seen.acts.clicks);
    if clicks.len() < ENOUGH || clicks.mean() <= DEEP {
        return None;
    }
    let several = stages(retriever, "feature_search")
        .into_iter()
        .find_map(|(name, parameters)| {
            let searches = parameters.get("searches")?.as_array()?;
            let fusion = parameters.get("fusion").cloned().unwrap_or_default();
            (searches.len() > 1 && fusion != "learned").then_some((name, fusion))
        });
    let (kind, current, recommended, impact) = if stages(retriever, "rerank").is_empty() {
        (
            "rerank",
            Value::Null,
            json!({"stage_id": "rerank"}),
            "what people want comes first; slower by the reading of the candidates",
        )
    } else if let Some((name, fusion)) = several {
        (
            "fusion",
            json!({"stage_name": name, "fusion": fusion}),
            json!({"stage_name": name, "fusion": "learned"}),
            "searches weigh as much as their documents are clicked on",
        )
    } else {
        return None;
    };
    let reasoning = format!(
        "people click on place {:.1} on average, over {} clicks",
        clicks.mean(),
        clicks.len()
    );
    Some(InteractionTuningRecommendation {
        recommendation_type: kind.into(),
        current_value: current,
        recommended_value: recommended,
        expected_impact: impact.into(),
        confidence: confidence(clicks.len()),
        reasoning,
    })
}

/// More is fetched than anybody looks at.
fn too_many(
    retriever: &RetrieverModelOutput,
    seen: &Seen,
) -> Option<InteractionTuningRecommendation> {
    let clicks = places(&seen.acts.clicks);
    let deepest = clicks.percentile(0.99);
    let searching = stages(retriever, "feature_search").into_iter().next_back();
    let (name, parameters) = searching?;
    let fetched = parameters.get("final_top_k")?.as_f64()?;
    if clicks.len() < ENOUGH || fetched <= (SPARE * deepest).max(10.0) {
        return None;
    }
    let enough = (2.0 * deepest).max(10.0).ceil();
    Some(InteractionTuningRecommendation {
        recommendation_type: "final_top_k".into(),
        current_value: json!({"stage_name": name, "final_top_k": fetched}),
        recommended_value: json!({"stage_name": name, "final_top_k": enough as i64}),
        expected_impact: "faster, with the same documents where people look".into(),
        confidence: confidence(clicks.len()),
        reasoning: format!(
            "of {} clicks, 99 in 100 are on the first {deepest} of {fetched} places",
            clicks.len()
        ),
    })
}

/// One stage takes most of the time of slow answers.
fn too_slow(_: &RetrieverModelOutput, seen: &Seen) -> Option<InteractionTuningRecommendation> {
    let times = took(&seen.searches);
    let whole: f64 = seen.stages.iter().map(|stage| stage.avg_latency_ms).sum();
    let slowest = seen
        .stages
        .iter()
        .max_by(|a, b| a.avg_latency_ms.total_cmp(&b.avg_latency_ms))?;
    let share = ratio(slowest.avg_latency_ms, whole);
    if times.len() < ENOUGH || times.percentile(0.95) < SLOW || share < BLAME {
        return None;
    }
    let fewer = (slowest.avg_documents_in / 2.0).ceil().max(1.0);
    Some(InteractionTuningRecommendation {
        recommendation_type: "stage_latency".into(),
        current_value: json!({"stage_name": slowest.stage_name, "avg_documents_in": slowest.avg_documents_in}),
        recommended_value: json!({"stage_name": slowest.stage_name, "avg_documents_in": fewer}),
        expected_impact: "faster answers by fewer documents that go into the stage".into(),
        confidence: confidence(times.len()),
        reasoning: format!(
            "one answer in twenty takes {:.0} ms and more, and {:.0} % of the time of the stages goes into {}",
            times.percentile(0.95),
            100.0 * share,
            slowest.stage_name
        ),
    })
}
