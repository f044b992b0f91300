//! What a replay says of a retriever: where it puts what people wanted, and whether that is chance.

use std::collections::HashMap;

use indexmap::IndexMap;
use loupe_engine::judging::{Judged, Metric, Truth, mean};
use loupe_wire::{AlignmentMetrics, LatencyMetrics};
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::figures::Sorted;

/// Where rankings are cut off.
pub const KS: [usize; 3] = [5, 10, 20];

/// Results that a replay looks at; what is not among them stands behind them.
pub const DEPTH: usize = 100;

/// Times that chance is tried.
const ROUNDS: usize = 2_000;

/// What somebody did with one result.
#[derive(Debug, Clone, PartialEq)]
pub struct Act {
    pub document_id: String,
    /// Where it stood then, from 0.
    pub position: i64,
    /// How much it says for the document.
    pub weight: f64,
    pub clicked: bool,
    pub purchased: bool,
}

/// One query of one person, and what was done with its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Which of the queries it is.
    pub query: usize,
    pub acts: Vec<Act>,
}

impl Session {
    fn truth(&self) -> Truth {
        let mut gains: HashMap<String, f64> = HashMap::new();
        for act in &self.acts {
            let gain = gains.entry(act.document_id.clone()).or_default();
            *gain = gain.max(act.weight);
        }
        Truth::of_gains(gains)
    }
}

/// One retriever's rankings of the queries; none where it failed.
pub type Rankings = Vec<Option<Vec<String>>>;

/// The figure of every session that has one, in their order.
pub fn by_session(
    sessions: &[Session],
    rankings: &Rankings,
    metric: Metric,
    k: usize,
) -> Vec<Option<f64>> {
    let figure = |session: &Session| {
        let ranking = rankings.get(session.query)?.as_ref()?;
        Some(Judged::new(ranking, &session.truth()).figure(metric, k))
    };
    sessions.iter().map(figure).collect()
}

/// Where the retriever puts what people wanted.
pub fn alignment(sessions: &[Session], rankings: &Rankings) -> AlignmentMetrics {
    let at = |metric: Metric| -> IndexMap<String, f64> {
        let figure = |k: &usize| {
            let figures = by_session(sessions, rankings, metric, *k);
            (k.to_string(), mean(figures.into_iter().flatten()))
        };
        KS.iter().map(figure).collect()
    };
    let mut told = AlignmentMetrics {
        ndcg_at_k: at(Metric::Ndcg),
        recall_at_k: at(Metric::Recall),
        ..Default::default()
    };
    let (mut clicked, mut purchased, mut deltas) = (Vec::new(), Vec::new(), Vec::new());
    for session in sessions {
        let Some(Some(ranking)) = rankings.get(session.query) else {
            continue;
        };
        let mut sum = 0.0;
        for act in &session.acts {
            let place = ranking.iter().position(|id| *id == act.document_id);
            let place = place.unwrap_or(DEPTH) as f64;
            let delta = act.position as f64 - place;
            sum += delta;
            deltas.push(delta);
            told.items_promoted += i64::from(delta > 0.0);
            told.items_demoted += i64::from(delta < 0.0);
            if act.clicked {
                clicked.push(place + 1.0);
            }
            if act.purchased {
                purchased.push(place + 1.0);
            }
        }
        told.sessions_improved += i64::from(sum > 0.0);
        told.sessions_degraded += i64::from(sum < 0.0);
        told.sessions_neutral += i64::from(sum == 0.0);
    }
    told.mean_rank_purchased = (!purchased.is_empty()).then(|| mean(purchased));
    told.mean_rank_clicked = mean(clicked);
    told.avg_position_delta = mean(deltas);
    told
}

/// How long executions took, in all and by stage.
pub fn latency(took: Vec<f64>, stages: IndexMap<String, Vec<f64>>) -> LatencyMetrics {
    let took = Sorted::new(took);
    LatencyMetrics {
        p50_ms: took.percentile(0.5),
        p90_ms: took.percentile(0.9),
        p99_ms: took.percentile(0.99),
        mean_ms: took.mean(),
        stage_latencies: stages
            .into_iter()
            .map(|(name, took)| (name, mean(took)))
            .collect(),
    }
}

/// How likely so large a difference is by chance alone (by turning the signs of the sessions' differences), and between what
/// the true one lies in 19 of 20 cases (by drawing the sessions again).
pub fn chance(differences: &[f64]) -> Option<(f64, [f64; 2])> {
    if differences.len() < 2 {
        return None;
    }
    // The same sessions give the same figures.
    let mut random = StdRng::seed_from_u64(differences.len() as u64);
    let seen = mean(differences.iter().copied()).abs();
    let mut as_large = 0_usize;
    let mut means = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let turned = mean(
            differences
                .iter()
                .map(|one| if random.random::<bool>() { *one } else { -one }),
        );
        as_large += usize::from(turned.abs() >= seen - 1e-12);
        let drawn =
            (0..differences.len()).map(|_| differences[random.random_range(0..differences.len())]);
        means.push(mean(drawn));
    }
    means.sort_by(f64::total_cmp);
    let p = (as_large + 1) as f64 / (ROUNDS + 1) as f64;
    Some((p, [means[ROUNDS / 40], means[ROUNDS - 1 - ROUNDS / 40]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(document: &str, position: i64, weight: f64) -> Act {
        Act {
            document_id: document.into(),
            position,
            weight,
            clicked: true,
            purchased: weight > 2.0,
        }
    }

    fn ranking(ids: &str) -> Option<Vec<String>> {
        Some(ids.chars().map(String::from).collect())
    }

    #[test]
    fn what_people_wanted_moves_up_or_down() {
        let sessions = [
            Session {
                query: 0,
                acts: vec![act("b", 1, 1.0)],
            },
            Session {
                query: 1,
                acts: vec![act("c", 2, 3.0), act("x", 0, 1.0)],
            },
            Session {
                query: 2,
                acts: vec![act("a", 0, 1.0)],
            },
        ];
        let told = alignment(&sessions, &vec![ranking("bac"), ranking("cab"), None]);
        assert_eq!((told.items_promoted, told.items_demoted), (2, 1));
        assert_eq!(
            (
                told.sessions_improved,
                told.sessions_degraded,
                told.sessions_neutral
            ),
            (1, 1, 0)
        );
        assert_eq!(
            (told.mean_rank_clicked, told.mean_rank_purchased),
            ((1.0 + 1.0 + 101.0) / 3.0, Some(1.0))
        );
        assert_eq!(told.recall_at_k["5"], 0.75);
        let second = 3.0 / (3.0 + 1.0 / 3_f64.log2());
        assert!((told.ndcg_at_k["10"] - (1.0 + second) / 2.0).abs() < 1e-12);
        assert!((told.avg_position_delta - (1.0 + 2.0 - 100.0) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn chance_explains_noise_and_nothing_else() {
        assert_eq!(chance(&[0.5]), None);
        let better: Vec<f64> = (0..40)
            .map(|number| 0.1 + f64::from(number % 5) * 0.01)
            .collect();
        let (p, [low, high]) = chance(&better).unwrap();
        assert!(p < 0.01 && low > 0.1 && high < 0.14, "{p} {low} {high}");
        let noise: Vec<f64> = (0..40)
            .map(|number| if number % 2 == 0 { 0.1 } else { -0.1 })
            .collect();
        let (p, [low, high]) = chance(&noise).unwrap();
        assert!(p > 0.5 && low < 0.0 && high > 0.0, "{p}");
        assert_eq!(chance(&better), chance(&better));
    }

    #[test]
    fn latencies_are_told_by_their_shares() {
        let took = latency(
            (1..=100).rev().map(f64::from).collect(),
            IndexMap::from([("search".into(), vec![1.0, 3.0])]),
        );
        assert_eq!(
            (took.p50_ms, took.p90_ms, took.p99_ms, took.mean_ms),
            (50.0, 90.0, 99.0, 50.5)
        );
        assert_eq!(took.stage_latencies["search"], 2.0);
        assert_eq!(latency(Vec::new(), IndexMap::new()).p99_ms, 0.0);
    }
}
