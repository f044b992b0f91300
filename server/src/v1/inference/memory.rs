//! What models said lately, for the same organization and end user. Vectors and scores are of their inputs alone; the words of a
//! language model are kept where the caller says so, and answer prompts that mean nearly the same, too.

use std::sync::Arc;

use indexmap::IndexMap;
use loupe_engine::{stage::Keeping, weight};
use loupe_wire::{RawInferenceRequest, Value, reading};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{TEXT_MODEL, Task};
use crate::{
    app::App,
    auth::{Read, Scope},
};

/// Prompts of one model that are looked through, and bytes of an answer that is kept.
const PROMPTS: usize = 32;
const LARGEST: usize = 1 << 20;

/// Letters of a prompt that are compared at once, and how often so many: a letter is one token at most, and of more tokens the model
/// would know the beginning alone. Longer prompts are answered from memory where they are the same.
const PIECE: usize = 250;
const PIECES: usize = 4;

/// How far a prompt may lie from one that was answered, from 0 (the same) to 1, where the request does not say.
const NEAR: f64 = 0.05;

/// What a model said.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Said {
    pub data: Value,
    pub provider: String,
    pub model: String,
    pub tokens: Option<IndexMap<String, i64>>,
}

/// A prompt that was answered.
#[derive(Serialize, Deserialize)]
struct Prompt {
    vectors: Vec<Vec<f32>>,
    said: Said,
}

/// The memory as one request may use it.
pub(super) struct Memory {
    keeping: Keeping,
    question: Value,
    /// Where prompts of the same model and parameters are, and how near one has to be.
    near: Option<(Value, f64)>,
    vectors: Option<Vec<Vec<f32>>>,
}

impl Memory {
    /// None where nothing is to be remembered. The inputs are taken out of the request.
    pub(super) fn of(
        app: &App,
        scope: &Scope<Read>,
        request: &mut RawInferenceRequest,
        task: &Task,
    ) -> Option<Self> {
        let is_words = matches!(task, Task::Words(_));
        if is_words && !request.enable_semantic_cache {
            return None;
        }
        let whose = json!([scope.caller.org_id, scope.caller.principal()]);
        let model = json!([super::name(request), request.parameters]);
        let inputs = Value::Object(std::mem::take(&mut request.inputs));
        let delta = request.cache_delta.unwrap_or(NEAR);
        Some(Self {
            keeping: Keeping {
                kept: app.kept.clone(),
                whose: whose.to_string(),
                version: app.version_of(&scope.namespace_id),
                most: None,
            },
            // Keys of one namespace are told nothing of prompts in another.
            near: is_words.then(|| {
                let place = json!(["inference near", scope.namespace_id, model]);
                (place, delta)
            }),
            question: json!(["inference", model, inputs]),
            vectors: None,
        })
    }

    /// What the same inputs gave.
    pub(super) fn exact(&self) -> Option<Said> {
        let said = self.keeping.said(&self.question)?;
        reading::from_value(&said).ok()
    }

    /// What was said to the nearest prompt, where one is near enough.
    pub(super) async fn near(&mut self, app: &App, task: &Task) -> Option<Said> {
        let (Some((_, delta)), Task::Words(prompt)) = (&self.near, task) else {
            return None;
        };
        let pieces = pieces(prompt);
        if pieces.len() > PIECES {
            return None;
        }
        let encoder = app.encoders().text(TEXT_MODEL).await.ok()?;
        let vectors = encoder.embed(pieces).await.ok()?;
        let nearest = self
            .prompts()
            .into_iter()
            .map(|one| (farthest(&one.vectors, &vectors), one.said))
            .filter(|(distance, _)| *distance <= *delta)
            .min_by(|one, other| one.0.total_cmp(&other.0));
        self.vectors = Some(vectors);
        nearest.map(|(_, said)| said)
    }

    /// Keeps what a model said.
    pub(super) fn keep(self, said: &Said) {
        if weight::of(&said.data) > LARGEST {
            return;
        }
        if let (Some((place, _)), Some(vectors)) = (&self.near, self.vectors.clone()) {
            let mut prompts = self.prompts();
            prompts.insert(
                0,
                Prompt {
                    vectors,
                    said: said.clone(),
                },
            );
            prompts.truncate(PROMPTS);
            self.keeping.keep_said(place, json!(prompts));
        }
        self.keeping.keep_said(&self.question, json!(said));
    }

    /// The prompts that were answered, the newest first.
    fn prompts(&self) -> Vec<Prompt> {
        let found = self.near.as_ref();
        let found: Option<Arc<Value>> = found.and_then(|(place, _)| self.keeping.said(place));
        let found = found.and_then(|found| reading::from_value(&found).ok());
        found.unwrap_or_default()
    }
}

/// A prompt in pieces that the model reads whole.
fn pieces(prompt: &str) -> Vec<String> {
    let letters: Vec<char> = prompt.chars().collect();
    let pieces = letters.chunks(PIECE);
    pieces.map(|piece| piece.iter().collect()).collect()
}

/// How far two prompts lie from each other: as far as the pieces that differ most.
fn farthest(one: &[Vec<f32>], other: &[Vec<f32>]) -> f64 {
    if one.len() != other.len() {
        return f64::INFINITY;
    }
    let pairs = one.iter().zip(other);
    pairs.map(|(a, b)| distance(a, b)).fold(0.0, f64::max)
}

/// One less the cosine of two vectors.
fn distance(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let length = (dot(one, one) * dot(other, other)).sqrt();
    match length > 0.0 {
        true => 1.0 - dot(one, other) / length,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{distance, farthest, pieces};

    #[test]
    fn what_points_the_same_way_is_near() {
        assert!(distance(&[1.0, 2.0], &[2.0, 4.0]).abs() < 1e-9);
        assert!((distance(&[1.0, 0.0], &[0.0, 1.0]) - 1.0).abs() < 1e-9);
        assert_eq!(distance(&[0.0, 0.0], &[0.0, 1.0]), 1.0);
    }

    #[test]
    fn prompts_that_end_otherwise_are_others() {
        let same = "x".repeat(250);
        assert_eq!(
            pieces(&format!("{same}yes")),
            [same.clone(), "yes".to_owned()]
        );
        let (a, b, c) = (vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 1.0]);
        assert_eq!(farthest(&[a.clone(), b.clone()], &[a.clone(), b]), 0.0);
        assert!(farthest(&[a.clone(), c], &[a.clone(), a.clone()]) > 0.2);
        let two = [a.clone(), a.clone()];
        assert_eq!(farthest(std::slice::from_ref(&a), &two), f64::INFINITY);
    }
}
