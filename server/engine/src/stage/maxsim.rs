//! `maxsim_rerank`: late interaction. Each sentence of the query looks for the part of a document that answers it best,
//! and the document's score is the sum over the sentences (the MaxSim of ColBERT, with sentences and parts of documents in
//! the place of tokens: that is what the indexes hold).

use std::collections::HashMap;

use loupe_wire::{StageCategory, Value};
use serde_json::json;
use unicode_segmentation::UnicodeSegmentation as _;

use super::execution::{Execution, offload};
use super::likeness;
use super::parameters::Parameters;
use super::schema::{Kind, member, required};
use super::targets::{Target, targets};
use super::working::{Row, Working, list};
use super::{Definition, RunError};
use crate::filter::{Filter, Operator};

/// Sentences of a query that are looked at.
const MAX_SENTENCES: usize = 32;
/// Most parts that are read of the objects of the documents.
const MAX_PARTS: usize = 5_000;
const ROOT: &str = "_internal.lineage.root_object_id";

pub(crate) static DEFINITION: Definition = Definition {
    id: "maxsim_rerank",
    aliases: &[],
    category: StageCategory::Sort,
    icon: "scan-search",
    about: "Orders the documents by how well their parts answer every sentence of the query",
    members: &[
        required(
            "feature_uri",
            Kind::Text,
            "The feature whose vectors are compared",
        ),
        member(
            "query",
            Kind::Text,
            r#""{{INPUT.query}}""#,
            "The text of the query",
        ),
        member(
            "top_n",
            Kind::Integer(1, 1000),
            "",
            "How many documents are compared; the others follow in their order",
        ),
        member(
            "match_on",
            Kind::Choice(&["document_id", "root_object_id"]),
            r#""document_id""#,
            "document_id: a document's own vector; root_object_id: the vectors of all parts of its object",
        ),
        member(
            "missing",
            Kind::Choice(&["bottom", "drop"]),
            r#""bottom""#,
            "What becomes of documents without a vector",
        ),
    ],
};

pub(crate) async fn run(
    at: &mut Execution,
    p: &Parameters,
    set: Working,
) -> Result<Working, RunError> {
    let mut rows = at.rows(set).await?;
    let feature = p.word("feature_uri");
    let found = targets(&at.run.collections, &feature, &[]);
    let Some(target) = found.first() else {
        at.warn(format!(
            "stage `{}`: no collection in reach has the feature `{feature}`; the order stays",
            at.stage
        ));
        return Ok(Working::Rows(rows));
    };
    let sentences = sentences(&p.word("query"));
    if sentences.is_empty() {
        at.warn(format!(
            "stage `{}`: the query is empty; the order stays",
            at.stage
        ));
        return Ok(Working::Rows(rows));
    }
    let encoder = at.run.encoders.text(&target.output).await?;
    let asked = encoder.embed(sentences).await?;
    let rest = rows.split_off(p.count("top_n").unwrap_or(rows.len()).min(rows.len()));
    let parts = parts(at, p, &rows, &found).await?;
    let scored = offload(move || {
        let scores: Vec<Option<f64>> = rows
            .iter()
            .map(|row| parts.get(row.id()).and_then(|list| maxsim(&asked, list)))
            .collect();
        let mut scored: Vec<(Option<f64>, Row)> = scores.into_iter().zip(rows).collect();
        scored.sort_by(|a, b| match (a.0, b.0) {
            (Some(x), Some(y)) => y.total_cmp(&x),
            (x, y) => x.is_none().cmp(&y.is_none()),
        });
        scored
    });
    let drop = p.word("missing") == "drop";
    let mut out = Vec::new();
    for (score, mut row) in scored.await? {
        match score {
            Some(score) => {
                row.set("scores.maxsim", json!(score));
            }
            None if drop => continue,
            None => {}
        }
        out.push(row);
    }
    out.extend(rest);
    Ok(Working::Rows(out))
}

fn sentences(query: &str) -> Vec<String> {
    query
        .unicode_sentences()
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .take(MAX_SENTENCES)
        .map(str::to_owned)
        .collect()
}

/// For each query vector the best of the parts, summed and brought back to the scale of one.
fn maxsim(asked: &[Vec<f32>], parts: &[Vec<f32>]) -> Option<f64> {
    if parts.is_empty() {
        return None;
    }
    let best = |q: &Vec<f32>| {
        parts
            .iter()
            .map(|part| likeness::cosine(q, part))
            .fold(f64::NEG_INFINITY, f64::max)
    };
    Some(asked.iter().map(best).sum::<f64>() / asked.len().max(1) as f64)
}

/// The vectors that each row is judged by.
async fn parts(
    at: &mut Execution,
    p: &Parameters,
    rows: &[Row],
    found: &[Target],
) -> Result<HashMap<String, Vec<Vec<f32>>>, RunError> {
    let names: Vec<String> = found.iter().map(|target| target.index.clone()).collect();
    let reach = at.reach(&[]);
    let own: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    if p.word("match_on") == "document_id" {
        let vectors = likeness::of_ids(at, &reach, &own, Some(&names)).await?;
        return Ok(vectors.into_iter().map(|(id, v)| (id, vec![v])).collect());
    }
    let roots: Vec<Value> = rows
        .iter()
        .filter_map(|row| row.at("root_object_id").cloned())
        .collect();
    let filter = Filter::leaf(ROOT, Operator::In, Value::Array(roots));
    let siblings = list(&*at.run.store, &reach, Some(filter), None, 0, MAX_PARTS).await?;
    if siblings.len() == MAX_PARTS {
        at.warn(format!(
            "stage `{}`: only the first {MAX_PARTS} parts of the objects were compared",
            at.stage
        ));
    }
    let ids: Vec<String> = siblings.iter().map(|row| row.id().to_owned()).collect();
    let vectors = likeness::of_ids(at, &reach, &ids, Some(&names)).await?;
    let mut of_root: HashMap<String, Vec<Vec<f32>>> = HashMap::new();
    for sibling in &siblings {
        if let (Some(root), Some(vector)) =
            (sibling.at("root_object_id"), vectors.get(sibling.id()))
        {
            of_root
                .entry(root.to_string())
                .or_default()
                .push(vector.clone());
        }
    }
    let of_row = |row: &Row| {
        let root = row.at("root_object_id")?.to_string();
        Some((row.id().to_owned(), of_root.get(&root)?.clone()))
    };
    Ok(rows.iter().filter_map(of_row).collect())
}
