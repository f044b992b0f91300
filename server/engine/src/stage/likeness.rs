//! What makes documents alike: their vectors, read from the store, and how two of them are compared.

use std::collections::HashMap;

use super::RunError;
use super::execution::Execution;
use super::targets::targets;
use super::working::Row;
use crate::store::{Reach, WithVectors};

/// The vectors of one feature by document id, or of each document's first index where no feature is named. A feature
/// that no collection has gives none, and a warning.
pub(crate) async fn vectors(
    at: &mut Execution,
    rows: &[Row],
    feature: Option<&str>,
) -> Result<HashMap<String, Vec<f32>>, RunError> {
    let names: Option<Vec<String>> = feature.map(|uri| {
        let found = targets(&at.run.collections, uri, &[]).into_iter();
        found.map(|target| target.index).collect()
    });
    if let (Some(uri), Some([])) = (feature, names.as_deref()) {
        at.warn(format!(
            "stage `{}`: no collection in reach has the feature `{uri}`",
            at.stage
        ));
    }
    let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    let reach = at.reach(&[]);
    of_ids(at, &reach, &ids, names.as_deref()).await
}

/// As [`vectors`], of documents by their ids and of any of the named indexes.
pub(crate) async fn of_ids(
    at: &Execution,
    reach: &Reach,
    ids: &[String],
    names: Option<&[String]>,
) -> Result<HashMap<String, Vec<f32>>, RunError> {
    let documents = at.run.store.get(reach, ids, WithVectors::Yes).await?;
    let pick = |mut vectors: std::collections::BTreeMap<String, Vec<f32>>| {
        let name = match names {
            Some(names) => names.iter().find(|n| vectors.contains_key(*n)).cloned(),
            None => vectors.keys().next().cloned(),
        }?;
        vectors.remove(&name)
    };
    Ok(documents
        .into_iter()
        .filter_map(|d| Some((d.document_id, pick(d.vectors)?)))
        .collect())
}

pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| f64::from(*x) * f64::from(*y))
        .sum()
}

/// 0 where the two are not of one space, or one of them has no length.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let norm = (dot(a, a) * dot(b, b)).sqrt();
    if a.len() == b.len() && norm > 0.0 {
        dot(a, b) / norm
    } else {
        0.0
    }
}

/// 1 / (1 + distance).
pub(crate) fn nearness(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2))
        .sum();
    1.0 / (1.0 + sum.sqrt())
}
