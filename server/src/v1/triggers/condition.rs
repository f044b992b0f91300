//! What conditions measure: how a collection changed since the trigger last fired.

use loupe_engine::store::{ListQuery, Reach, WithVectors};
use loupe_wire::{Object, Trigger, reading};
use serde_json::json;

use super::schedule::{Condition, Measured};
use crate::{app::App, error::Result, v1::collections};

/// Documents whose vectors make a mean.
const SAMPLE: usize = 500;

/// A measurement and what it says.
pub(super) struct Measurement {
    pub holds: bool,
    /// What was found, for the trigger's record.
    pub found: Object,
    /// What the next measurement is held against once the trigger has fired.
    pub baseline: Object,
}

/// Measures. The first time there is nothing to hold it against: that is the baseline, and nothing holds.
///
/// # Errors
/// The collection is gone, or the store does not answer.
pub(super) async fn measure(
    app: &App,
    trigger: &Trigger,
    condition: &Condition,
) -> Result<Measurement> {
    let wanted = [condition.collection_id.clone()];
    let collections = collections::resolve(app, &trigger.namespace_id, &wanted).await?;
    let reach = Reach {
        namespace_id: trigger.namespace_id.clone(),
        collection_ids: collections.iter().map(|one| one.id.clone()).collect(),
        principal: None,
    };
    let before = trigger.baseline_snapshot.as_ref();
    match condition.kind {
        Measured::Volume => {
            let documents = app.store().count(&reach, None).await?;
            let was = before.and_then(|one| one.get("documents")?.as_u64());
            Ok(volume(documents, was, condition))
        }
        Measured::Drift => {
            let (index, mean) = mean(app, &reach).await?;
            let was = before.filter(|one| one.get("index") == Some(&json!(index)));
            let was: Option<Vec<f64>> =
                was.and_then(|one| reading::from_value(&one.get("mean")?.clone()).ok());
            Ok(drift(&index, mean, was, condition))
        }
    }
}

fn object(value: serde_json::Value) -> Object {
    match value {
        serde_json::Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn volume(documents: u64, was: Option<u64>, condition: &Condition) -> Measurement {
    let change = was.map(|was| {
        let by = documents.abs_diff(was) as f64;
        // From nothing, one document is as much as a doubling.
        if condition.absolute {
            by
        } else {
            by / was.max(1) as f64
        }
    });
    Measurement {
        holds: change.is_some_and(|change| change >= condition.threshold),
        found: object(json!({
            "documents": documents, "before": was, "change": change, "threshold": condition.threshold,
        })),
        baseline: object(json!({ "documents": documents })),
    }
}

fn drift(index: &str, mean: Vec<f64>, was: Option<Vec<f64>>, condition: &Condition) -> Measurement {
    let distance = was
        .as_ref()
        .filter(|was| was.len() == mean.len() && !mean.is_empty())
        .map(|was| cosine_distance(was, &mean));
    Measurement {
        holds: distance.is_some_and(|distance| distance >= condition.threshold),
        found: object(json!({
            "index": index, "distance": distance, "threshold": condition.threshold,
        })),
        baseline: object(json!({ "index": index, "mean": mean })),
    }
}

/// 1 - cos(a, b); 0 where one has no length.
pub fn cosine_distance(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 {
        1.0 - dot(a, b) / length
    } else {
        0.0
    }
}

/// The mean vector of documents of the first index that they have, by name; empty where there is none.
///
/// # Errors
/// The store does not answer.
pub async fn mean(app: &App, reach: &Reach) -> Result<(String, Vec<f64>)> {
    let query = ListQuery {
        limit: SAMPLE,
        vectors: WithVectors::Yes,
        ..Default::default()
    };
    let documents = app.store().list(reach, query).await?.documents;
    let names = documents
        .iter()
        .flat_map(|document| document.vectors.keys());
    let Some(index) = names.min().cloned() else {
        return Ok((String::new(), Vec::new()));
    };
    let vectors: Vec<&Vec<f32>> = documents
        .iter()
        .filter_map(|document| document.vectors.get(&index))
        .collect();
    let mut mean = vec![0.0; vectors.first().map_or(0, |vector| vector.len())];
    for vector in &vectors {
        for (sum, number) in mean.iter_mut().zip(vector.iter()) {
            *sum += f64::from(*number) / vectors.len() as f64;
        }
    }
    Ok((index, mean))
}
