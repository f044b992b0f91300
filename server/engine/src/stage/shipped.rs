//! Weights that were found and measured elsewhere, and shipped: a stage ranks by them in the place of what it learns.
//!
//! Weights, learned or shipped, may name a dataset: while the retriever's last evaluation over it fell behind its baseline,
//! they are not used.

use chrono::DateTime;
use loupe_wire::{ShippedWeightSet, Value, reading};

use super::StageProblem;
use super::execution::Execution;
use super::parameters::Parameters;
use super::plan::Plan;
use super::schema::{Kind, Member, inside, member, problem, required};
use super::working::Row;

/// What the model's own score is called among the weights of `rerank`.
const OWN: &str = "rerank";
/// Greatest weight: sums of them stay numbers.
const MOST: f64 = 1e6;

const SET: &[Member] = &[
    required("weight_set_id", Kind::Verbatim, "What the set is called"),
    required("weights", Kind::Map, "Weights by name, none below 0"),
    required(
        "evaluation_id",
        Kind::Verbatim,
        "The evaluation that measured the weights",
    ),
    required(
        "baseline_evaluation_id",
        Kind::Verbatim,
        "The evaluation over the same dataset that it is held against",
    ),
    required(
        "shipped_at",
        Kind::Verbatim,
        "When, such as 2026-01-31T12:00:00Z",
    ),
];

pub(super) const DATASET: Member = member(
    "evaluation_dataset_id",
    Kind::Verbatim,
    "",
    "Id or name of a dataset: weights are not used while the retriever's last evaluation over it fell behind its baseline",
);

/// The weights of a search's lists.
pub(super) const OF_LISTS: Member = member(
    "shipped_weight_set",
    Kind::Object(SET),
    "",
    "Weights of the lists (`search_0`, `search_0_lexical`) that are used in the place of learned ones",
);

/// The weights of scores beside that of the model.
const OF_SCORES: Member = member(
    "shipped_weight_set",
    Kind::Object(SET),
    "",
    "Weights of the model's score (`rerank`) and of others by their dot paths, such as `score`: each counts by its place between the least and the greatest",
);

/// Members of the `learning_config` of `rerank`.
pub(super) const OF_RERANK: &[Member] = &[DATASET, OF_SCORES];

/// What the table cannot say of a `learning_config`; weights have one of these names, or any where there are none.
pub(super) fn check(
    config: Option<&Value>,
    names: Option<&[String]>,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) {
    let Some(set) = config.and_then(|config| config.get("shipped_weight_set")?.as_object()) else {
        return;
    };
    let here = inside(&inside(loc, "learning_config"), "shipped_weight_set");
    let shipped_at = set.get("shipped_at").and_then(Value::as_str);
    if shipped_at.is_some_and(|text| DateTime::parse_from_rfc3339(text).is_err()) {
        let msg = "must be a moment such as 2026-01-31T12:00:00Z".to_owned();
        out.push(problem(
            inside(&here, "shipped_at"),
            "datetime_parsing",
            msg,
        ));
    }
    let place = inside(&here, "weights");
    let Some(weights) = set.get("weights").and_then(Value::as_object) else {
        return;
    };
    for (name, weight) in weights {
        if let Some(names) = names.filter(|names| !names.contains(name)) {
            let msg = format!("there is no list `{name}`; there are {}", names.join(", "));
            out.push(problem(inside(&place, name), "extra_forbidden", msg));
        }
        if !weight
            .as_f64()
            .is_some_and(|weight| (0.0..=MOST).contains(&weight))
        {
            let msg = format!("must be a number from 0 to {MOST}");
            out.push(problem(inside(&place, name), "out_of_range", msg));
        }
    }
    let says = |weight: &Value| weight.as_f64().is_some_and(|weight| weight > 0.0);
    if !weights.values().any(says) {
        let msg = "a set has a weight above 0".to_owned();
        out.push(problem(place, "missing", msg));
    }
}

/// As [`check`], for a stage that learns nothing: the dataset alone would hold nothing back.
pub(super) fn check_rerank(config: Option<&Value>, loc: &[String], out: &mut Vec<StageProblem>) {
    let has = |name: &str| {
        config
            .and_then(|config| config.get(name))
            .is_some_and(|value| !value.is_null())
    };
    if has("evaluation_dataset_id") && !has("shipped_weight_set") {
        let here = inside(&inside(loc, "learning_config"), "shipped_weight_set");
        let msg = "`evaluation_dataset_id` holds back the weights of this set, which is not there"
            .to_owned();
        out.push(problem(here, "missing", msg));
    }
    check(config, None, loc, out);
}

/// Whether weights may be used that this dataset speaks for; says so where not.
pub(super) fn holds(at: &mut Execution, dataset: Option<&str>) -> bool {
    let fallen = &at.run.outside.fallen;
    let Some(dataset) = dataset.filter(|name| fallen.iter().any(|one| one == name)) else {
        return true;
    };
    at.warn(format!(
        "stage `{}`: the last evaluation over `{dataset}` fell behind its baseline; its weights are not used",
        at.stage
    ));
    false
}

/// The shares of these lists; none where the set says nothing of them.
pub(super) fn shares(set: &ShippedWeightSet, names: &[&str]) -> Option<Vec<f64>> {
    let of = |name: &&str| set.weights.get(*name).copied().unwrap_or_default();
    let weights: Vec<f64> = names.iter().map(of).collect();
    let sum: f64 = weights.iter().sum();
    (sum > 0.0).then(|| weights.iter().map(|one| one / sum).collect())
}

/// The set that a `rerank` orders by, where it has one that may be used.
pub(super) fn of(at: &mut Execution, p: &Parameters) -> Option<ShippedWeightSet> {
    let config = p.map("learning_config")?;
    let set: ShippedWeightSet = reading::from_value(config.get("shipped_weight_set")?).ok()?;
    let dataset = config.get("evaluation_dataset_id").and_then(Value::as_str);
    holds(at, dataset).then_some(set)
}

/// The scores that a set makes of those of a model and of others: each by its place between the least and the greatest of
/// the documents judged, added up by the weights. What was not judged has no score still.
pub(super) fn blended(
    set: &ShippedWeightSet,
    rows: &[Row],
    judged: &[Option<f64>],
) -> Vec<Option<f64>> {
    let sum: f64 = set.weights.values().sum();
    let mut scores: Vec<Option<f64>> = judged.iter().map(|one| one.map(|_| 0.0)).collect();
    for (name, weight) in &set.weights {
        let values: Vec<Option<f64>> = match name.as_str() {
            OWN => judged.to_vec(),
            path => {
                let at = rows.iter().map(|row| row.at(path).and_then(Value::as_f64));
                at.collect()
            }
        };
        let known = || {
            let both = values.iter().zip(judged);
            both.filter_map(|(value, judged)| judged.and(*value))
        };
        let low = known().fold(f64::INFINITY, f64::min);
        let width = known().fold(f64::NEG_INFINITY, f64::max) - low;
        if !width.is_finite() || width <= 0.0 {
            continue;
        }
        for (score, value) in scores.iter_mut().zip(&values) {
            if let (Some(score), Some(value)) = (score, value) {
                *score += weight / sum * (value - low) / width;
            }
        }
    }
    scores
}

impl Plan {
    /// The datasets that speak for the weights of stages. They have to be there when a retriever is made.
    pub fn datasets(&self) -> Vec<String> {
        let named = configs(self).into_iter();
        let mut list: Vec<String> = named
            .filter_map(|config| config.get("evaluation_dataset_id")?.as_str())
            .map(str::to_owned)
            .collect();
        list.sort();
        list.dedup();
        list
    }

    /// The weights that stages were given. The evaluations that they name have to be there when a retriever is made.
    pub fn weight_sets(&self) -> Vec<ShippedWeightSet> {
        let named = configs(self).into_iter();
        named
            .filter_map(|config| reading::from_value(config.get("shipped_weight_set")?).ok())
            .collect()
    }
}

/// What the stages say of weights.
fn configs(plan: &Plan) -> Vec<&Value> {
    let steps = plan.every_step().into_iter();
    let config = steps.filter_map(|step| {
        let inside = step.parameters.get("feature_search_config");
        let inside = inside.and_then(|search| search.get("learning_config"));
        inside.or_else(|| step.parameters.get("learning_config"))
    });
    config.collect()
}
