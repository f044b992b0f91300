//! One run held against another.

use indexmap::IndexMap;
use loupe_wire::{EvaluationRecord, GateMetricComparison, GateVerdict};

/// A figure that falls by more than this has become worse; less is the noise of a dataset.
const THRESHOLD: f64 = 0.01;

/// The figure that says most about a ranking.
const PRIMARY: &str = "ndcg";

/// Compares every figure at every cut-off that both runs have.
pub fn verdict(baseline: &EvaluationRecord, candidate: &EvaluationRecord) -> GateVerdict {
    let (before, after) = (figures(baseline), figures(candidate));
    let mut verdict = GateVerdict::default();
    for (name, value) in &after {
        let Some(was) = before.get(name) else {
            verdict.skipped_metrics.push(name.clone());
            continue;
        };
        let delta = value - was;
        let regressed = delta < -THRESHOLD;
        let comparison = GateMetricComparison {
            baseline: *was,
            candidate: *value,
            delta,
            threshold: THRESHOLD,
            pct_change: (*was != 0.0).then(|| delta / was * 100.0),
            regressed,
            comparable: true,
        };
        verdict.per_metric.insert(name.clone(), comparison);
        if regressed {
            verdict.regressed_metrics.push(name.clone());
        }
    }
    verdict.compared_metrics = i64::try_from(verdict.per_metric.len()).unwrap_or(i64::MAX);
    // Figures come in the order of their cut-offs: the last is the furthest.
    let primary = verdict
        .per_metric
        .keys()
        .rfind(|name| name.starts_with(PRIMARY));
    verdict.primary_metric = primary.cloned();
    verdict.passed = verdict.compared_metrics > 0 && verdict.regressed_metrics.is_empty();
    verdict.reason = match (verdict.compared_metrics, verdict.regressed_metrics.len()) {
        (0, _) => "the runs have no figure in common".into(),
        (_, 0) => format!("no figure fell by more than {THRESHOLD}"),
        (_, fallen) => format!("{fallen} figures fell by more than {THRESHOLD}"),
    };
    verdict
}

/// `ndcg@10` and its like, by cut-off.
fn figures(record: &EvaluationRecord) -> IndexMap<String, f64> {
    let by_k = record.metrics_by_k.iter().flatten();
    by_k.flat_map(|(k, figures)| {
        figures
            .iter()
            .map(move |(name, value)| (format!("{name}@{k}"), *value))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(figures: &[(&str, &str, f64)]) -> EvaluationRecord {
        let mut by_k: IndexMap<String, IndexMap<String, f64>> = IndexMap::new();
        for (k, name, value) in figures {
            by_k.entry((*k).into())
                .or_default()
                .insert((*name).into(), *value);
        }
        EvaluationRecord {
            metrics_by_k: Some(by_k),
            ..Default::default()
        }
    }

    #[test]
    fn a_figure_that_falls_fails_the_run() {
        let before = record(&[("1", "ndcg", 0.5), ("10", "ndcg", 0.4), ("10", "mrr", 0.0)]);
        let better = verdict(
            &before,
            &record(&[
                ("1", "ndcg", 0.495),
                ("10", "ndcg", 0.6),
                ("10", "mrr", 0.1),
            ]),
        );
        assert!(better.passed, "{better:?}");
        assert_eq!(better.primary_metric.as_deref(), Some("ndcg@10"));
        assert!((better.per_metric["ndcg@10"].pct_change.unwrap() - 50.0).abs() < 1e-9);
        assert_eq!(better.per_metric["mrr@10"].pct_change, None);
        let worse = verdict(
            &before,
            &record(&[("1", "ndcg", 0.48), ("20", "ndcg", 0.9)]),
        );
        assert_eq!((worse.passed, worse.compared_metrics), (false, 1));
        assert_eq!(
            (worse.regressed_metrics, worse.skipped_metrics),
            (vec!["ndcg@1".to_owned()], vec!["ndcg@20".to_owned()])
        );
        assert!(!verdict(&before, &record(&[])).passed);
    }
}
