//! How good a ranking is, measured against what is known to be right: the figures of `trec_eval`, cut off at `k`.
//!
//! - precision: relevant ones among the first `k`, divided by `k`, also where fewer were found
//! - recall: relevant ones among the first `k`, divided by all that are relevant
//! - f1: the harmonic mean of both
//! - map: precisions at the places of relevant ones among the first `k`, summed and divided by all that are relevant
//! - ndcg: gains (the relevance itself) divided by log2(place + 1), as a share of what the best order would have
//! - mrr: one divided by the place of the first relevant one
//!
//! A document counts once, where it first appears. Relevance below 1 is none.

use std::collections::{HashMap, HashSet};

/// What is right for one query.
#[derive(Debug, Clone, Default)]
pub struct Truth(HashMap<String, f64>);

impl Truth {
    /// Documents that are relevant, and how much some of them are: 1 where nothing is said.
    pub fn new<'a>(
        relevant: impl IntoIterator<Item = &'a String>,
        scores: impl IntoIterator<Item = (&'a String, &'a i64)>,
    ) -> Self {
        let mut gains: HashMap<String, f64> =
            relevant.into_iter().map(|id| (id.clone(), 1.0)).collect();
        gains.extend(
            scores
                .into_iter()
                .map(|(id, score)| (id.clone(), *score as f64)),
        );
        gains.retain(|_, gain| *gain > 0.0);
        Self(gains)
    }

    /// As [`Truth::new`], with gains of any size.
    pub fn of_gains(gains: impl IntoIterator<Item = (String, f64)>) -> Self {
        let gains = gains.into_iter().filter(|(_, gain)| *gain > 0.0);
        Self(gains.collect())
    }

    /// Whether nothing is right: then no ranking can be measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    Precision,
    Recall,
    F1,
    Map,
    Ndcg,
    Mrr,
}

impl Metric {
    /// Every figure, in the order in which they are told.
    pub const ALL: [Self; 6] = [
        Self::Precision,
        Self::Recall,
        Self::F1,
        Self::Map,
        Self::Ndcg,
        Self::Mrr,
    ];

    /// The interface's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Recall => "recall",
            Self::F1 => "f1",
            Self::Map => "map",
            Self::Ndcg => "ndcg",
            Self::Mrr => "mrr",
        }
    }

    /// The figure of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

/// A ranking held against the truth; every figure is read off it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The gain at each place.
    gains: Vec<f64>,
    /// The gains that the best order has, highest first.
    best: Vec<f64>,
}

impl Judged {
    pub fn new<'a>(ranking: impl IntoIterator<Item = &'a String>, truth: &Truth) -> Self {
        let mut seen = HashSet::new();
        let gains = ranking
            .into_iter()
            .filter(|id| seen.insert(id.as_str()))
            .map(|id| truth.0.get(id).copied().unwrap_or(0.0));
        let mut best: Vec<f64> = truth.0.values().copied().collect();
        best.sort_by(|one, other| other.total_cmp(one));
        Self {
            gains: gains.collect(),
            best,
        }
    }

    /// One figure over the first `k` places; 0 when nothing is right.
    pub fn figure(&self, metric: Metric, k: usize) -> f64 {
        if self.best.is_empty() || k == 0 {
            return 0.0;
        }
        let all = self.best.len() as f64;
        match metric {
            Metric::Precision => self.hits(k) / k as f64,
            Metric::Recall => self.hits(k) / all,
            Metric::F1 => {
                let precision = self.figure(Metric::Precision, k);
                let recall = self.figure(Metric::Recall, k);
                match precision + recall {
                    0.0 => 0.0,
                    both => 2.0 * precision * recall / both,
                }
            }
            Metric::Map => self.precisions(k) / all,
            Metric::Ndcg => discounted(&self.gains, k) / discounted(&self.best, k),
            Metric::Mrr => {
                let first = self.gains.iter().take(k).position(|gain| *gain > 0.0);
                first.map_or(0.0, |place| 1.0 / (place + 1) as f64)
            }
        }
    }

    fn hits(&self, k: usize) -> f64 {
        self.gains
            .iter()
            .take(k)
            .filter(|gain| **gain > 0.0)
            .count() as f64
    }

    fn precisions(&self, k: usize) -> f64 {
        let places = self.gains.iter().take(k).enumerate();
        let relevant = places.filter(|(_, gain)| **gain > 0.0);
        relevant
            .enumerate()
            .map(|(before, (place, _))| (before + 1) as f64 / (place + 1) as f64)
            .sum()
    }
}

fn discounted(gains: &[f64], k: usize) -> f64 {
    let places = gains.iter().take(k).enumerate();
    places
        .map(|(place, gain)| gain / ((place + 2) as f64).log2())
        .sum()
}

/// The mean of figures; 0 of none.
pub fn mean(figures: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = figures
        .into_iter()
        .fold((0.0, 0_u32), |(sum, count), figure| {
            (sum + figure, count + 1)
        });
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Case {
        run: Vec<String>,
        relevance: BTreeMap<String, i64>,
        at: BTreeMap<usize, BTreeMap<String, f64>>,
    }

    /// The file is what pytrec_eval said; `tests/reference/metrics.py` made it.
    #[test]
    fn figures_are_those_of_trec_eval() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../tests/reference/metrics.json")).unwrap();
        let mut compared = 0;
        for (number, case) in cases.iter().enumerate() {
            let truth = Truth::new([], &case.relevance);
            let judged = Judged::new(&case.run, &truth);
            for (k, figures) in &case.at {
                for metric in Metric::ALL {
                    let (ours, theirs) = (judged.figure(metric, *k), figures[metric.name()]);
                    assert!(
                        (ours - theirs).abs() < 1e-9,
                        "{}@{k} of run {number}: {ours}, not {theirs}",
                        metric.name()
                    );
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 80 * 5 * 6);
    }

    #[test]
    fn a_document_counts_once_and_relevance_is_one_where_nothing_is_said() {
        let texts = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let relevant = texts(&["a", "b"]);
        let truth = Truth::new(&relevant, []);
        let judged = Judged::new(&texts(&["x", "a", "a", "b"]), &truth);
        assert_eq!(judged.figure(Metric::Precision, 3), 2.0 / 3.0);
        assert_eq!(judged.figure(Metric::Recall, 3), 1.0);
        assert_eq!(judged.figure(Metric::Mrr, 3), 0.5);
        // A score of nothing takes a document back.
        let scores = BTreeMap::from([("b".to_owned(), 0)]);
        let truth = Truth::new(&relevant, &scores);
        assert_eq!(
            Judged::new(&texts(&["b"]), &truth).figure(Metric::Map, 5),
            0.0
        );
        assert!(Truth::new([], []).is_empty());
        assert_eq!(
            Judged::new(&texts(&["b"]), &Truth::default()).figure(Metric::Ndcg, 5),
            0.0
        );
    }
}
