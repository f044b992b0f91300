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
//! which is the mean of a Dirichlet distribution that knows nothing at first; equal weights are reciprocal rank fusion. An
//! `algorithm` tries other weights out as well, see [`super::exploring`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loupe_wire::{
    InteractionType, LearnedFusionConfig, LearnedFusionConfigFallbackStrategy, Object, Value,
    reading,
};
use serde::Deserialize as _;
use serde_json::json;

use super::execution::Execution;
use super::exploring;
use super::fusion::{Fused, Leg, RRF_K};
use super::schema::{inside, problem};
use super::{StageProblem, shipped};
use crate::template::is_template;

/// Something that was done with a document of an earlier answer.
#[derive(Debug, Clone, Default)]
pub struct Act {
    /// The stage that found the document.
    pub stage: String,
    pub kinds: Vec<InteractionType>,
    pub age_days: f64,
    /// The document's place in each of the stage's lists that had it, from 0.
    pub ranks: BTreeMap<String, u32>,
    /// The short inputs of the answer's question.
    pub inputs: Arc<Object>,
}

/// What acts say of a stage's lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Learned {
    /// Acts that were rewarded.
    pub acts: usize,
    /// In the order of the lists; they add up to 1.
    pub weights: Vec<f64>,
    /// What speaks for each list and against it, the priors with it.
    pub evidence: Vec<(f64, f64)>,
}

/// Rewards are numbers.
pub(super) fn check(config: Option<&Value>, loc: &[String], out: &mut Vec<StageProblem>) {
    let map = config.and_then(|config| config.get("reward_map")?.as_object());
    for (name, reward) in map.into_iter().flatten() {
        if !reward.is_number() && !reward.as_str().is_some_and(is_template) {
            let here = inside(&inside(loc, "learning_config"), "reward_map");
            let msg = "must be a number".to_owned();
            out.push(problem(inside(&here, name), "float_type", msg));
        }
    }
}

/// Whether a search is fused by what was learned, or may be: a template may turn out to ask for it.
pub(super) fn may_be_asked(search: &Object) -> bool {
    let fusion = search.get("fusion").and_then(Value::as_str);
    fusion.is_some_and(|fusion| fusion == "learned" || is_template(fusion))
}

/// Tells of rewards for acts that nobody does: nothing is learned from them.
fn tell_unknown(at: &mut Execution, config: &LearnedFusionConfig) {
    let map = config.reward_map.keys();
    for name in std::iter::once(&config.reward_signal).chain(map) {
        if reading::from_value::<InteractionType>(&json!(name)).is_err() {
            at.warn(format!(
                "stage `{}`: `{name}` is no type of interaction; nothing is learned from it",
                at.stage
            ));
        }
    }
}

/// Gives the lists the weights that people's acts have earned them; their own where too little was done yet.
pub(crate) fn weigh(
    at: &mut Execution,
    config: Option<&LearnedFusionConfig>,
    legs: &mut [Leg],
) -> Object {
    let config = config.cloned().unwrap_or_default();
    tell_unknown(at, &config);
    let names: Vec<&str> = legs.iter().map(|leg| leg.name.as_str()).collect();
    let all = at.run.acts.clone();
    let acts = alike(&config, &at.stage, &names, &all, &at.run.inputs);
    let mut learned = learn(&config, &at.stage, &names, acts.acts.iter().copied());
    let question = exploring::number_of(&json!([at.run.principal, at.run.inputs, at.stage]));
    let set = config.shipped_weight_set.as_ref();
    let shares = set.and_then(|set| shipped::shares(set, &names));
    let explored = config.algorithm.filter(|_| shares.is_none());
    if let Some(algorithm) = explored {
        learned.weights = exploring::weights(algorithm, &config, &learned, question);
    }
    let is_shipped = shares.is_some();
    learned.weights = shares.unwrap_or(learned.weights);
    let weights: Object = names
        .iter()
        .zip(&learned.weights)
        .map(|(name, weight)| ((*name).to_owned(), json!(weight)))
        .collect();
    let enough = is_shipped || learned.acts as i64 >= config.min_interactions;
    let rolled_out = exploring::share_of(question) < config.rollout_pct;
    let wanted = enough && rolled_out && !config.shadow_mode && legs.len() > 1;
    let applied = wanted && shipped::holds(at, config.evaluation_dataset_id.as_deref());
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
    let told = json!({"interactions": learned.acts, "applied": applied, "weights": weights, "algorithm": explored,
        "learned_from": acts.whose});
    let mut told = told.as_object().cloned().unwrap_or_default();
    if let Some(set) = set.filter(|_| is_shipped) {
        told.insert("weight_set_id".into(), json!(set.weight_set_id));
    }
    told
}

/// The acts that are learned from, and of which questions they are.
struct Alike<'a> {
    acts: Vec<&'a Act>,
    whose: &'static str,
}

/// The acts of questions with the same context, as far as there are enough: of the same context and people, else of the same
/// context, else all.
fn alike<'a>(
    config: &LearnedFusionConfig,
    stage: &str,
    lists: &[&str],
    acts: &'a [Act],
    inputs: &Object,
) -> Alike<'a> {
    let (context, people) = (&config.context_features, &config.demographic_features);
    let same = |act: &Act, names: &[String]| {
        let of = |inputs: &Object, name: &String| inputs.get(name).cloned().unwrap_or_default();
        names
            .iter()
            .all(|name| of(&act.inputs, name) == of(inputs, name))
    };
    let all: Vec<String> = context.iter().chain(people).cloned().collect();
    let steps = match config.fallback_strategy {
        LearnedFusionConfigFallbackStrategy::Hierarchical => {
            vec![
                (&all, "the same context and people"),
                (context, "the same context"),
            ]
        }
        LearnedFusionConfigFallbackStrategy::Global => vec![(&all, "the same context and people")],
    };
    for (names, whose) in steps.into_iter().filter(|(names, _)| !names.is_empty()) {
        let some = acts.iter().filter(|act| same(act, names));
        let some: Vec<&Act> = some.collect();
        let learned = learn(config, stage, lists, some.iter().copied());
        if learned.acts as i64 >= config.min_interactions {
            return Alike { acts: some, whose };
        }
    }
    Alike {
        acts: acts.iter().collect(),
        whose: "all questions",
    }
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
    let mut ranks = ranks_before(at);
    for one in best {
        let ranks = ranks.entry(one.document_id.clone());
        ranks.or_insert_with(|| Value::Object(of(&one.document_id)));
    }
    told.insert("ranks".into(), Value::Object(ranks));
    at.report
        .learned
        .insert(at.stage.clone(), Value::Object(told));
}

/// What the stage remembers already: one that asks in several ways searches several times, and any of them may have found what
/// somebody acts on.
fn ranks_before(at: &mut Execution) -> Object {
    let told = at.report.learned.get_mut(&at.stage);
    match told.and_then(|told| told.get_mut("ranks")).map(Value::take) {
        Some(Value::Object(ranks)) => ranks,
        _ => Object::new(),
    }
}

/// The weights of a stage's lists.
pub(crate) fn learn<'a>(
    config: &LearnedFusionConfig,
    stage: &str,
    lists: &[&str],
    acts: impl IntoIterator<Item = &'a Act>,
) -> Learned {
    let mut evidence = vec![config.prior_alpha.max(0.1); lists.len()];
    let (mut counted, mut all) = (0, 0.0);
    for act in acts.into_iter().filter(|act| act.stage == stage) {
        let reward = reward(config, act);
        let parts: Vec<f64> = lists.iter().map(|list| part(act, list)).collect();
        let sum: f64 = parts.iter().sum();
        if reward <= 0.0 || sum <= 0.0 || act.age_days > config.decay_window_days as f64 {
            continue;
        }
        counted += 1;
        let worth = reward * config.decay_factor.powf(act.age_days.max(0.0));
        all += worth;
        for (evidence, part) in evidence.iter_mut().zip(parts) {
            *evidence += worth * part / sum;
        }
    }
    let prior = config.prior_alpha.max(0.1);
    let against = |one: &f64| config.prior_beta.max(0.1) + (all - (one - prior)).max(0.0);
    Learned {
        acts: counted,
        weights: bounded(config, &evidence),
        evidence: evidence.iter().map(|one| (*one, against(one))).collect(),
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
pub(crate) fn bounded(config: &LearnedFusionConfig, evidence: &[f64]) -> Vec<f64> {
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
            inputs: Arc::default(),
        }
    }

    #[test]
    fn acts_of_the_same_context_count_where_there_are_enough() {
        let config: LearnedFusionConfig = serde_json::from_value(
            json!({"context_features": ["shop"], "demographic_features": ["age"], "min_interactions": 2}),
        )
        .unwrap_or_default();
        let of = |shop: &str, age: i64, list: &str| Act {
            inputs: Arc::new(
                json!({"shop": shop, "age": age})
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
            ),
            ..act(&[(list, 0)], 0.0)
        };
        let acts = [
            of("books", 20, "words"),
            of("books", 20, "words"),
            of("books", 70, "dense"),
            of("toys", 20, "dense"),
        ];
        let with = |shop: &str, age: i64| {
            let inputs = json!({"shop": shop, "age": age});
            let lists = ["dense", "words"];
            let inputs = inputs.as_object().cloned().unwrap_or_default();
            let found = alike(&config, "search", &lists, &acts, &inputs);
            (found.acts.len(), found.whose)
        };
        assert_eq!(with("books", 20), (2, "the same context and people"));
        assert_eq!(with("books", 70), (3, "the same context"));
        assert_eq!(with("toys", 20), (4, "all questions"));
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
