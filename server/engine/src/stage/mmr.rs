//! `mmr`: relevant documents that are not alike (maximal marginal relevance).

use std::collections::{HashMap, HashSet};

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::execution::{Execution, offload};
use super::likeness::{self, cosine, dot, nearness};
use super::parameters::Parameters;
use super::schema::{Kind, Member, inside, member, problem, required};
use super::working::{Row, Working};
use super::{Definition, RunError, StageProblem};
use crate::template::is_template;

/// Rows that compete: the choice costs `top_k` times this many comparisons.
const MAX_CANDIDATES: usize = 1_000;
/// Greatest weight of a field.
const MAX_WEIGHT: f64 = 1e6;

const FEATURE: &[Member] = &[
    required(
        "feature_uri",
        Kind::Text,
        "The feature whose vectors are compared",
    ),
    member(
        "weight",
        Kind::Number(0.0, 1.0),
        "1.0",
        "Its weight beside the others",
    ),
];

pub(crate) static DEFINITION: Definition = Definition {
    id: "mmr",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "shuffle",
    about: "Orders by relevance and difference from what stands above",
    members: &[
        member(
            "lambda",
            Kind::Number(0.0, 1.0),
            "0.7",
            "1: relevance alone; 0: difference alone",
        ),
        member(
            "top_k",
            Kind::Integer(1, 500),
            "25",
            "How many documents stay",
        ),
        member(
            "diversity_feature_uri",
            Kind::Text,
            "",
            "The feature whose vectors tell what is alike; the documents' first where nothing is given",
        ),
        member(
            "diversity_features",
            Kind::Objects(FEATURE, 10),
            "[]",
            "Several features with their weights",
        ),
        member(
            "diversity_fields",
            Kind::Texts,
            "[]",
            "Dot paths of fields whose common values make documents alike",
        ),
        member(
            "diversity_field_weights",
            Kind::Map,
            "{}",
            "Weights of those fields, by their paths; 1 where not given",
        ),
        member(
            "score_field",
            Kind::Text,
            r#""score""#,
            "Dot path of the relevance",
        ),
        member(
            "mmr_score_field",
            Kind::Text,
            r#""scores.mmr""#,
            "Where the new score goes",
        ),
        member(
            "similarity_metric",
            Kind::Choice(&["cosine", "dot", "euclidean"]),
            r#""cosine""#,
            "How vectors are compared",
        ),
    ],
};

/// What the table cannot say: weights are numbers, of fields that are compared.
pub(super) fn check(parameters: &Object, loc: &[String], out: &mut Vec<StageProblem>) {
    let weights = parameters.get("diversity_field_weights");
    let Some(weights) = weights.and_then(Value::as_object) else {
        return;
    };
    let fields = parameters.get("diversity_fields").and_then(Value::as_array);
    let fields: Vec<&str> = fields
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let place = inside(loc, "diversity_field_weights");
    for (field, weight) in weights {
        let is_open = weight.as_str().is_some_and(is_template);
        let is_weight = |weight: f64| (0.0..=MAX_WEIGHT).contains(&weight);
        if !is_open && !weight.as_f64().is_some_and(is_weight) {
            let msg = format!("must be a number from 0 to {MAX_WEIGHT}");
            out.push(problem(inside(&place, field), "out_of_range", msg));
        }
        if !fields.iter().any(|one| one == field || is_template(one)) {
            let msg = format!("`{field}` is none of `diversity_fields`");
            out.push(problem(inside(&place, field), "extra_forbidden", msg));
        }
    }
}

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    if rows.len() > MAX_CANDIDATES {
        at.warn(format!(
            "stage `{}`: only the first {MAX_CANDIDATES} of {} documents competed",
            at.stage,
            rows.len()
        ));
        at.capped("candidates", rows.len(), MAX_CANDIDATES);
        rows.truncate(MAX_CANDIDATES);
    }
    let aspects = aspects(at, p, &rows).await?;
    let field = p.word("score_field");
    let scores: Vec<f64> = rows
        .iter()
        .map(|r| r.at(&field).and_then(Value::as_f64).unwrap_or(0.0))
        .collect();
    let choice = Choice {
        lambda: p.number("lambda").unwrap_or(0.7),
        top_k: p.count("top_k").unwrap_or(25),
        aspects,
    };
    let picked = offload(move || choice.pick(&scores)).await?;
    let target = p.word("mmr_score_field");
    let mut slots: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
    let ordered = picked.into_iter().filter_map(|(i, score)| {
        let mut row = slots[i].take()?;
        row.set(&target, json!(score));
        Some(row)
    });
    Ok(Working::Rows(ordered.collect()))
}

/// One thing that makes documents alike, with what each of them is by it.
struct Aspect {
    weight: f64,
    of: Traits,
}

enum Traits {
    Vectors(Vec<Option<Vec<f32>>>, fn(&[f32], &[f32]) -> f64),
    Values(Vec<HashSet<String>>),
}

async fn aspects(
    at: &mut Execution,
    p: &Parameters,
    rows: &[Row],
) -> Result<Vec<Aspect>, RunError> {
    let metric: fn(&[f32], &[f32]) -> f64 = match p.word("similarity_metric").as_str() {
        "dot" => dot,
        "euclidean" => nearness,
        _ => cosine,
    };
    let fields = p.texts("diversity_fields");
    let mut features: Vec<(Option<String>, f64)> = p
        .text("diversity_feature_uri")
        .map(|uri| (Some(uri), 1.0))
        .into_iter()
        .collect();
    let more = p.objects("diversity_features");
    features.extend(
        more.iter()
            .map(|f| (f.text("feature_uri"), f.number("weight").unwrap_or(1.0))),
    );
    if features.is_empty() && fields.is_empty() {
        features.push((None, 1.0));
    }
    let mut aspects = Vec::new();
    for (feature, weight) in features {
        let mut found: HashMap<String, Vec<f32>> =
            likeness::vectors(at, rows, feature.as_deref()).await?;
        let list = rows.iter().map(|row| found.remove(row.id())).collect();
        aspects.push(Aspect {
            weight,
            of: Traits::Vectors(list, metric),
        });
    }
    let weights = p.map("diversity_field_weights").unwrap_or_default();
    for field in fields {
        let values = |row: &Row| -> HashSet<String> {
            let found = row.all_at(&field).into_iter();
            found
                .flat_map(|value| match value {
                    Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>(),
                    Value::Null => Vec::new(),
                    other => vec![other.to_string()],
                })
                .collect()
        };
        aspects.push(Aspect {
            weight: weights.get(&field).and_then(Value::as_f64).unwrap_or(1.0),
            of: Traits::Values(rows.iter().map(values).collect()),
        });
    }
    Ok(aspects)
}

struct Choice {
    lambda: f64,
    top_k: usize,
    aspects: Vec<Aspect>,
}

impl Choice {
    /// Indices in their new order with their new scores. Relevance is brought to 0..1 first, so that `lambda` weighs
    /// like with like; documents without a vector are like nothing.
    fn pick(&self, scores: &[f64]) -> Vec<(usize, f64)> {
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let min = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let relevance = |i: usize| {
            if max > min {
                (scores[i] - min) / (max - min)
            } else {
                1.0
            }
        };
        // Likeness to the nearest of those chosen: what points the other way is less than unlike.
        let mut nearest = vec![f64::NEG_INFINITY; scores.len()];
        let mut left: Vec<usize> = (0..scores.len()).collect();
        let mut out = Vec::new();
        while out.len() < self.top_k && !left.is_empty() {
            let is_first = out.is_empty();
            let value = |i: usize| {
                let near = if is_first { 0.0 } else { nearest[i] };
                self.lambda * relevance(i) - (1.0 - self.lambda) * near
            };
            // The first of equals wins: the order before decides.
            let mut best = 0;
            for place in 1..left.len() {
                if value(left[place]) > value(left[best]) {
                    best = place;
                }
            }
            let chosen = left.remove(best);
            out.push((chosen, value(chosen)));
            for &i in &left {
                nearest[i] = nearest[i].max(self.likeness(chosen, i));
            }
        }
        out
    }

    /// The weighted mean over the aspects.
    fn likeness(&self, a: usize, b: usize) -> f64 {
        let total: f64 = self.aspects.iter().map(|aspect| aspect.weight).sum();
        if total <= 0.0 {
            return 0.0;
        }
        let part = |aspect: &Aspect| {
            let alike = match &aspect.of {
                Traits::Vectors(list, metric) => match (&list[a], &list[b]) {
                    (Some(x), Some(y)) if x.len() == y.len() => metric(x, y),
                    _ => 0.0,
                },
                Traits::Values(list) => {
                    let common = list[a].intersection(&list[b]).count() as f64;
                    let all = list[a].len() as f64 + list[b].len() as f64 - common;
                    if all > 0.0 { common / all } else { 0.0 }
                }
            };
            aspect.weight * alike
        };
        self.aspects.iter().map(part).sum::<f64>() / total
    }
}
