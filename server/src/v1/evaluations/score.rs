//! Predictions measured where they stand: no retriever is asked.

use indexmap::IndexMap;
use loupe_engine::judging::{Judged, Metric, Truth, mean};
use loupe_wire::{ScoreItem, ScorePredictionsRequest, ScorePredictionsResponse, Value};

use crate::error::{Result, Violation};

/// Each item's figures and their means. Without `k` every prediction of an item counts.
pub fn score(request: ScorePredictionsRequest) -> Result<ScorePredictionsResponse> {
    let metrics = super::metrics(request.metrics.as_deref(), &["metrics"])?;
    let pair = (request.predicted, request.ground_truth);
    let items = match (request.items, pair) {
        (Some(items), (None, None)) if !items.is_empty() => items,
        (None, (Some(predicted), Some(ground_truth))) => vec![ScoreItem {
            predicted,
            ground_truth,
        }],
        _ => {
            let msg = "send predicted and ground_truth, or items of both";
            return Err(Violation::body(&["items"], "missing", msg, Value::Null).into());
        }
    };
    let k = request.k.and_then(|k| usize::try_from(k).ok());
    let per_item: Vec<IndexMap<String, f64>> = items
        .iter()
        .map(|item| figures(item, &metrics, k))
        .collect();
    let mean_of = |metric: &Metric| {
        let figures = per_item
            .iter()
            .filter_map(|item| item.get(metric.name()).copied());
        (metric.name().to_owned(), mean(figures))
    };
    Ok(ScorePredictionsResponse {
        metrics: metrics
            .iter()
            .map(|metric| metric.name().to_owned())
            .collect(),
        k: request.k,
        count: i64::try_from(items.len()).unwrap_or(i64::MAX),
        aggregate: metrics.iter().map(mean_of).collect(),
        per_item,
    })
}

fn figures(item: &ScoreItem, metrics: &[Metric], k: Option<usize>) -> IndexMap<String, f64> {
    let judged = Judged::new(&item.predicted, &Truth::new(&item.ground_truth, []));
    let k = k.unwrap_or(item.predicted.len());
    let figure = |metric: &Metric| (metric.name().to_owned(), judged.figure(*metric, k));
    metrics.iter().map(figure).collect()
}
