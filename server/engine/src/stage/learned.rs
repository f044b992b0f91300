//! Weights of searches learned from what people did with earlier answers.
//!
//! Each act on a document is evidence for the searches that found it: the act's reward, divided among them as reciprocal
//! ranks would divide the document's score. For search `s`
//!
//! ```text
//! evidence(s) = prior_alpha + sum over acts of  reward · decay_factor ^ age in days · part(s)
//! part(s)     = 1 / (60 + rank in s)  /  sum over all searches of 1 / (60 + rank)      (0 where s did not find it)
//! weight(s)   = evidence(s) / sum of all evidence, kept between min_weight and max_weight
//! score       = sum over searches of  number of searches · weight(s) / (60 + rank in s)
//! ```
//!
//! which is the mean of a Dirichlet distribution that knows nothing at first; equal weights are reciprocal rank fusion.

use std::collections::{BTreeMap, HashMap};

use loupe_wire::{InteractionType, LearnedFusionConfig, Object, Value};
use serde::Deserialize as _;
use serde_json::json;

use super::execution::Execution;
use super::fusion::{Fused, Leg, RRF_K};

/// Something that was done with a document of an earlier answer.
#[derive(Debug, Clone, Default)]
pub struct Act {
    /// The stage that found the document.
    pub stage: String,
    pub kinds: Vec<InteractionType>,
    pub age_days: f64,
    /// The document's place in each of the stage's lists that had it, from 0.
    pub ranks: BTreeMap<String, u32>,
}

/// What acts say of a stage's lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Learned {
    /// Acts that were rewarded.
    pub acts: usize,
    /// In the order of the lists; they add up to 1.
    pub weights: Vec<f64>,
}

/// Gives the lists the weights that people's acts have earned them; their own where too little was done yet.
pub(crate) fn weigh(
    at: &mut Execution,
    config: Option<&LearnedFusionConfig>,
    legs: &mut [Leg],
) -> Object {
    let config = config.cloned().unwrap_or_default();
    let names: Vec<&str> = legs.iter().map(|leg| leg.name.as_str()).collect();
    let learned = learn(&config, &at.stage, &names, &at.run.acts);
    let weights: Object = names
        .iter()
        .zip(&learned.weights)
        .map(|(name, weight)| ((*name).to_owned(), json!(weight)))
        .collect();
    let enough = learned.acts as i64 >= config.min_interactions;
    let applied = enough && !config.shadow_mode && legs.len() > 1;
    if !enough {
        at.warn(format!(
            "stage `{}`: fusion learns from {} interactions, and there are {}; the lists are fused by their ranks until then",
            at.stage, config.min_interactions, learned.acts
        ));
    }
    if applied {
        let count = legs.len() as f64;
        for (leg, weight) in legs.iter_mut().zip(&learned.weights) {
            leg.weight = count * weight;
        }
    }
    let told = json!({"interactions": learned.acts, "applied": applied, "weights": weights});
    told.as_object().cloned().unwrap_or_default()
}

/// Documents of one answer whose places are remembered.
const REMEMBERED: usize = 50;

/// Keeps where each list had the best documents, so that what is done with them can be learned from.
pub(crate) fn remember(at: &mut Execution, mut told: Object, fused: &[Fused], legs: &[Leg]) {
    let places: Vec<(&str, HashMap<&str, usize>)> = legs
        .iter()
        .map(|leg| {
            let ranks = leg.hits.iter().enumerate();
            let ranks = ranks.map(|(rank, (id, _))| (id.as_str(), rank));
            (leg.name.as_str(), ranks.collect())
        })
        .collect();
    let of = |id: &str| -> Object {
        let found = places
            .iter()
            .filter_map(|(name, ranks)| Some(((*name).to_owned(), json!(ranks.get(id)?))));
        found.collect()
    };
    let best = fused.iter().take(REMEMBERED);
    let ranks: Object = best
        .map(|one| (one.document_id.clone(), Value::Object(of(&one.document_id))))
        .collect();
    told.insert("ranks".into(), Value::Object(ranks));
    at.report
        .learned
        .insert(at.stage.clone(), Value::Object(told));
}

/// The weights of a stage's lists.
pub(crate) fn learn(
    config: &LearnedFusionConfig,
    stage: &str,
    lists: &[&str],
    acts: &[Act],
) -> Learned {
    let mut evidence = vec![config.prior_alpha.max(0.1); lists.len()];
    let mut counted = 0;
    for act in acts.iter().filter(|act| act.stage == stage) {
        let reward = reward(config, act);
        let parts: Vec<f64> = lists.iter().map(|list| part(act, list)).collect();
        let sum: f64 = parts.iter().sum();
        if reward <= 0.0 || sum <= 0.0 || act.age_days > config.decay_window_days as f64 {
            continue;
        }
        counted += 1;
        let worth = reward * config.decay_factor.powf(act.age_days.max(0.0));
        for (evidence, part) in evidence.iter_mut().zip(parts) {
            *evidence += worth * part / sum;
        }
    }
    Learned {
        acts: counted,
        weights: bounded(config, &evidence),
    }
}

fn part(act: &Act, list: &str) -> f64 {
    let rank = act.ranks.get(list);
    rank.map_or(0.0, |rank| 1.0 / (RRF_K + f64::from(*rank) + 1.0))
}

/// The best of an act's kinds: what the map says of it, else 1 for the signal.
fn reward(config: &LearnedFusionConfig, act: &Act) -> f64 {
    let of = |kind: &InteractionType| {
        let name = serde_json::to_value(kind).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        match config.reward_map.get(name) {
            Some(reward) => *reward,
            None if config.reward_map.is_empty() && name == config.reward_signal => 1.0,
            None => 0.0,
        }
    };
    let best = act.kinds.iter().map(of).fold(0.0, f64::max);
    best.min(config.max_reward_per_interaction)
}

/// Shares that add up to 1, none of them outside the bounds if all can be inside.
fn bounded(config: &LearnedFusionConfig, evidence: &[f64]) -> Vec<f64> {
    let sum: f64 = evidence.iter().sum();
    let low = config.min_weight.min(1.0 / evidence.len().max(1) as f64);
    let high = config.max_weight.max(low);
    let clamped: Vec<f64> = evidence
        .iter()
        .map(|one| (one / sum).clamp(low, high))
        .collect();
    let sum: f64 = clamped.iter().sum();
    clamped.into_iter().map(|one| one / sum).collect()
}

/// What is remembered of an execution, read back: `{stage: {"ranks": {document: {list: rank}}}}`.
pub fn ranks_of(context: &Value, document_id: &str) -> Vec<(String, BTreeMap<String, u32>)> {
    let stages = context.as_object().into_iter().flatten();
    let ranks = stages.filter_map(|(stage, told)| {
        let ranks = told.get("ranks")?.get(document_id)?;
        let ranks = BTreeMap::<String, u32>::deserialize(ranks).ok()?;
        Some((stage.clone(), ranks))
    });
    ranks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(ranks: &[(&str, u32)], age_days: f64) -> Act {
        Act {
            stage: "search".into(),
            kinds: vec![InteractionType::Click],
            age_days,
            ranks: ranks
                .iter()
                .map(|(name, rank)| ((*name).to_owned(), *rank))
                .collect(),
        }
    }

    #[test]
    fn acts_move_the_weight_to_the_list_that_found_what_people_wanted() {
        let config = LearnedFusionConfig::default();
        let lists = ["dense", "words"];
        assert_eq!(learn(&config, "search", &lists, &[]).weights, [0.5, 0.5]);
        let acts = vec![act(&[("words", 0)], 0.0); 8];
        let learned = learn(&config, "search", &lists, &acts);
        assert_eq!((learned.acts, &learned.weights[..]), (8, &[0.1, 0.9][..]));
        // Found by both, at the same place: no news.
        let both = vec![act(&[("words", 3), ("dense", 3)], 0.0); 8];
        assert_eq!(learn(&config, "search", &lists, &both).weights, [0.5, 0.5]);
        // No list is given up, whatever people do.
        let many = vec![act(&[("words", 0)], 0.0); 10_000];
        let learned = learn(&config, "search", &lists, &many);
        assert!((learned.weights[0] - 0.05).abs() < 1e-3, "{learned:?}");
        // Old acts say less, and very old ones nothing.
        let old = vec![act(&[("words", 0)], 200.0); 8];
        let weight = learn(&config, "search", &lists, &old).weights[1];
        assert!(weight > 0.5 && weight < 0.9, "{weight}");
        assert_eq!(
            learn(&config, "search", &lists, &[act(&[("words", 0)], 400.0)]).acts,
            0
        );
        assert_eq!(learn(&config, "other", &lists, &acts).acts, 0);
    }

    #[test]
    fn a_map_says_what_acts_are_worth() {
        let mut config = LearnedFusionConfig::default();
        config.reward_map.insert("purchase".into(), 50.0);
        let lists = ["dense", "words"];
        let click = act(&[("words", 0)], 0.0);
        assert_eq!(
            learn(&config, "search", &lists, std::slice::from_ref(&click)).acts,
            0
        );
        let bought = Act {
            kinds: vec![InteractionType::Click, InteractionType::Purchase],
            ..click
        };
        // One act counts 5 at most.
        let learned = learn(&config, "search", &lists, &[bought]);
        assert!(
            (learned.weights[1] - 6.0 / 7.0).abs() < 1e-12,
            "{learned:?}"
        );
    }

    #[test]
    fn what_is_remembered_is_read_back() {
        let context = json!({"search": {"weights": {"a": 1.0}, "ranks": {"doc_1": {"a": 0, "b": 7}}}, "other": {}});
        let found = ranks_of(&context, "doc_1");
        assert_eq!(
            found,
            [(
                "search".to_owned(),
                BTreeMap::from([("a".to_owned(), 0), ("b".to_owned(), 7)])
            )]
        );
        assert!(
            ranks_of(&context, "doc_2").is_empty() && ranks_of(&Value::Null, "doc_1").is_empty()
        );
    }
}
