//! `mmr`: relevant documents that are not alike (maximal marginal relevance).

use std::collections::HashMap;

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::plan::Execution;
use super::schema::{Kind, member};
use super::targets::targets;
use super::working::{Row, Working};
use super::{Definition, RunError};
use crate::filter::value_at;
use crate::store::WithVectors;

/// Rows that compete: the choice costs `top_k` times this many comparisons.
const MAX_CANDIDATES: usize = 1_000;

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
            "The feature whose vectors tell what is alike; the documents' first where not given",
        ),
        member("diversity_features", Kind::NotBuilt, "", ""),
        member("diversity_fields", Kind::NotBuilt, "", ""),
        member("diversity_field_weights", Kind::NotBuilt, "", ""),
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

pub(crate) async fn run(
    at: &mut Execution,
    parameters: Object,
    set: Working,
) -> Result<Working, RunError> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let number = |name: &str, default: f64| {
        parameters
            .get(name)
            .and_then(Value::as_f64)
            .unwrap_or(default)
    };
    let mut rows = set.rows(&*at.run.store, &at.reach(&[])).await?;
    rows.truncate(MAX_CANDIDATES);
    let names: Option<Vec<String>> = match text("diversity_feature_uri") {
        None => None,
        Some(uri) => {
            let found: Vec<String> = targets(&at.run.collections, uri, &[])
                .into_iter()
                .map(|t| t.index)
                .collect();
            if found.is_empty() {
                at.warn(format!(
                    "stage `{}`: no collection has the feature `{uri}`; the order stays",
                    at.stage
                ));
            }
            Some(found)
        }
    };
    let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    let documents = at
        .run
        .store
        .get(&at.reach(&[]), &ids, WithVectors::Yes)
        .await?;
    let vectors: HashMap<String, Vec<f32>> = documents
        .into_iter()
        .filter_map(|mut d| {
            let name = match &names {
                Some(names) => names.iter().find(|n| d.vectors.contains_key(*n)).cloned(),
                None => d.vectors.keys().next().cloned(),
            }?;
            Some((d.document_id, d.vectors.remove(&name)?))
        })
        .collect();
    let field = text("score_field").unwrap_or("score");
    let choice = Choice {
        lambda: number("lambda", 0.7),
        top_k: number("top_k", 25.0) as usize,
        metric: text("similarity_metric").unwrap_or("cosine"),
    };
    let scores: Vec<f64> = rows
        .iter()
        .map(|r| {
            value_at(&r.value, field)
                .and_then(Value::as_f64)
                .unwrap_or(0.0)
        })
        .collect();
    let list: Vec<Option<&[f32]>> = rows
        .iter()
        .map(|r| vectors.get(r.id()).map(Vec::as_slice))
        .collect();
    let picked = choice.pick(&scores, &list);
    let target = text("mmr_score_field").unwrap_or("scores.mmr");
    let mut slots: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
    let ordered = picked.into_iter().filter_map(|(i, score)| {
        let mut row = slots[i].take()?;
        row.set(target, json!(score));
        Some(row)
    });
    Ok(Working::Rows(ordered.collect()))
}

struct Choice<'a> {
    lambda: f64,
    top_k: usize,
    metric: &'a str,
}

impl Choice<'_> {
    /// Indices in their new order with their new scores. Relevance is brought to 0..1 first, so that `lambda` weighs
    /// like with like; documents without a vector are like nothing.
    fn pick(&self, scores: &[f64], vectors: &[Option<&[f32]>]) -> Vec<(usize, f64)> {
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let min = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let relevance = |i: usize| {
            if max > min {
                (scores[i] - min) / (max - min)
            } else {
                1.0
            }
        };
        let mut nearest = vec![0.0_f64; scores.len()];
        let mut left: Vec<usize> = (0..scores.len()).collect();
        let mut out = Vec::new();
        while out.len() < self.top_k && !left.is_empty() {
            let value = |i: usize| self.lambda * relevance(i) - (1.0 - self.lambda) * nearest[i];
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
                if let (Some(a), Some(b)) = (vectors[chosen], vectors[i]) {
                    nearest[i] = nearest[i].max(self.similarity(a, b));
                }
            }
        }
        out
    }

    fn similarity(&self, a: &[f32], b: &[f32]) -> f64 {
        if a.len() != b.len() {
            return 0.0;
        }
        let sum = |f: fn(f64, f64) -> f64| {
            a.iter()
                .zip(b)
                .map(|(x, y)| f(f64::from(*x), f64::from(*y)))
                .sum::<f64>()
        };
        match self.metric {
            "dot" => sum(|x, y| x * y),
            "euclidean" => 1.0 / (1.0 + sum(|x, y| (x - y).powi(2)).sqrt()),
            _ => {
                let norm = (sum(|x, _| x * x) * sum(|_, y| y * y)).sqrt();
                if norm > 0.0 {
                    sum(|x, y| x * y) / norm
                } else {
                    0.0
                }
            }
        }
    }
}
