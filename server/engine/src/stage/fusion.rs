//! Several ranked lists made one.

use std::collections::HashMap;

use loupe_wire::FusionStrategy;

/// Rank constant of reciprocal rank fusion.
pub(crate) const RRF_K: f64 = 60.0;

/// One ranked list: documents and scores, best first.
pub(crate) struct Leg {
    /// The number of the search that gave it.
    pub search: usize,
    /// Under `scores` in the row, such as `search_0` or `search_0_lexical`.
    pub name: String,
    pub weight: f64,
    pub hits: Vec<(String, f64)>,
}

/// A document of the fused list.
#[derive(Debug, PartialEq)]
pub(crate) struct Fused {
    pub document_id: String,
    pub score: f64,
    /// What each list that has the document gave it.
    pub scores: Vec<(String, f64)>,
}

/// The documents of all lists, best first, ties by id. A single list keeps its scores.
pub(crate) fn fuse(strategy: FusionStrategy, legs: &[Leg]) -> Vec<Fused> {
    let alone = legs.len() == 1;
    let mut by_id: HashMap<&str, Fused> = HashMap::new();
    for leg in legs {
        let scale = Scale::of(strategy, leg);
        for (rank, (id, score)) in leg.hits.iter().enumerate() {
            let part = if alone {
                *score
            } else {
                leg.weight * scale.apply(rank, *score)
            };
            let fused = by_id.entry(id).or_insert_with(|| Fused {
                document_id: id.clone(),
                score: 0.0,
                scores: Vec::new(),
            });
            fused.score = match strategy {
                FusionStrategy::Max if !alone => fused.score.max(part),
                _ => fused.score + part,
            };
            fused.scores.push((leg.name.clone(), *score));
        }
    }
    let mut list: Vec<Fused> = by_id.into_values().collect();
    list.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.document_id.cmp(&b.document_id))
    });
    list
}

/// How a list's ranks and scores become parts of the fused score.
enum Scale {
    /// 1 / (60 + rank), ranks counted from 1.
    Rank,
    /// The share of the list's best score: keyword scores have no upper end.
    Best(f64),
    /// The place between three standard deviations below and above the mean.
    Spread { low: f64, width: f64 },
}

impl Scale {
    fn of(strategy: FusionStrategy, leg: &Leg) -> Scale {
        match strategy {
            FusionStrategy::Max | FusionStrategy::Weighted => {
                Scale::Best(leg.hits.iter().map(|(_, s)| *s).fold(0.0, f64::max))
            }
            FusionStrategy::Dbsf => {
                let count = leg.hits.len().max(1) as f64;
                let mean = leg.hits.iter().map(|(_, s)| s).sum::<f64>() / count;
                let variance = leg
                    .hits
                    .iter()
                    .map(|(_, s)| (s - mean).powi(2))
                    .sum::<f64>()
                    / count;
                let spread = 3.0 * variance.sqrt();
                Scale::Spread {
                    low: mean - spread,
                    width: 2.0 * spread,
                }
            }
            FusionStrategy::Rrf | FusionStrategy::Learned => Scale::Rank,
        }
    }

    fn apply(&self, rank: usize, score: f64) -> f64 {
        match self {
            Scale::Rank => 1.0 / (RRF_K + rank as f64 + 1.0),
            Scale::Best(best) if *best > 0.0 => (score / best).max(0.0),
            Scale::Best(_) => 0.0,
            Scale::Spread { low, width } if *width > 0.0 => ((score - low) / width).clamp(0.0, 1.0),
            Scale::Spread { .. } => 0.5,
        }
    }
}
