//! Chunks through the real extraction and the real embedded store; the model is one whose failures are in the texts.

mod documents;
mod large;
mod left_out;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use loupe_wire::{FeatureExtractorConfigOutput, Value};
use serde_json::json;

use super::*;
use crate::embed::{ImageEncoder, Result as EmbedResult, TextEncoder};
use crate::extract::{Outputs, registry::TEXT_OUTPUT, samples};
use crate::store::{
    CollectionSpec, DocStore, Edge, EdgeOptions, Ranking, Reach, SearchQuery, WithVectors, edge,
};

const DIMS: usize = 384;
const NOW: &str = "2026-11-21T08:00:00Z";
const URI: &str = "text_extractor_v1_all_minilm_l6_v2_v1";

/// Refuses, fails or answers nonsense when a text of a call holds the word for it.
#[derive(Clone, Default)]
struct Moody {
    away: bool,
    /// Texts of each call.
    calls: Arc<Mutex<Vec<usize>>>,
}

#[async_trait]
impl Encoders for Moody {
    async fn text(&self, _: &str) -> EmbedResult<Arc<dyn TextEncoder>> {
        Ok(Arc::new(self.clone()))
    }
    async fn image(&self, output: &str) -> EmbedResult<Arc<dyn ImageEncoder>> {
        Err(EmbedError::Unavailable(format!("no model gives {output}")))
    }
}

#[async_trait]
impl TextEncoder for Moody {
    fn output(&self) -> &str {
        TEXT_OUTPUT
    }
    fn dims(&self) -> usize {
        DIMS
    }
    async fn embed(&self, texts: Vec<String>) -> EmbedResult<Vec<Vec<f32>>> {
        self.calls.lock().unwrap().push(texts.len());
        let any = |word: &str| texts.iter().any(|text| text.contains(word));
        if self.away || any("FAIL") {
            return Err(EmbedError::Failed("nobody answers".into()));
        }
        if any("REFUSE") {
            return Err(EmbedError::Invalid("the text cannot be split".into()));
        }
        let mut vectors: Vec<Vec<f32>> = texts.iter().map(|text| vector(text)).collect();
        if any("TWICE") {
            vectors.push(vector("once more"));
        }
        Ok(vectors)
    }
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; if text.contains("SHORT") { 3 } else { DIMS }];
    vector[0] = if text.contains("HOLE") { f32::NAN } else { 1.0 };
    vector[1] = text.len() as f32;
    vector
}

/// A collection of the extractor, with more of its configuration.
fn plan(extractor: &str, more: Value) -> CollectionPlan {
    let mut config = json!({
        "feature_extractor_name": extractor, "version": "v1", "feature_extractor_id": format!("{extractor}_v1"),
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let config: FeatureExtractorConfigOutput = serde_json::from_value(config).unwrap();
    let outputs = Outputs::builtin();
    let spec = CollectionSpec {
        namespace_id: "ns_1".into(),
        collection_id: "col_1".into(),
        vectors: Vec::new(),
    };
    let mut plan = CollectionPlan::new(spec, "org_1", &config, &outputs).unwrap();
    plan.spec.vectors = plan.params.indexes().iter().map(|i| i.spec()).collect();
    plan
}

fn object(number: usize, fields: Value) -> ObjectInput {
    ObjectInput {
        object_id: format!("obj_{number}"),
        bucket_id: "bkt_1".into(),
        fields: fields.as_object().unwrap().clone(),
        ..Default::default()
    }
}

fn file(name: &str, kind: &str, mime: &str, bytes: impl Into<Data>) -> BlobInput {
    BlobInput {
        blob_id: "blob_1".into(),
        property: "file".into(),
        kind: kind.into(),
        filename: Some(name.into()),
        mime: Some(mime.into()),
        url: format!("blob://{name}"),
        bytes: bytes.into(),
        role: BlobRole::Source,
    }
}

fn texts(texts: &[&str]) -> Vec<ObjectInput> {
    let numbered = texts.iter().enumerate();
    numbered
        .map(|(number, text)| object(number, json!({ "text": text })))
        .collect()
}

async fn run(
    model: &Moody,
    plan: &CollectionPlan,
    objects: Vec<ObjectInput>,
    attempt: Try,
) -> Result<Vec<ObjectOutcome>, IngestError> {
    let ingest = Ingest {
        extraction: Extraction::in_process(),
        encoders: Arc::new(model.clone()),
        web: None,
    };
    ingest.run(plan, objects, NOW, attempt).await
}

/// Runs one chunk without a failure of the model and answers the documents of its first object.
async fn documents(plan: &CollectionPlan, object: ObjectInput) -> Result<Vec<Document>, Failure> {
    let outcomes = run(&Moody::default(), plan, vec![object], Try::More).await;
    let outcome = outcomes.unwrap().remove(0);
    let mut made = outcome.documents?;
    if let Some(sliced) = outcome.sliced {
        let mut walk = sliced.walk();
        while let Some(slice) = walk.slice().await? {
            made.extend(slice.documents);
        }
    }
    Ok(made)
}

/// Which objects failed, with reason and kind.
fn failures(outcomes: &[ObjectOutcome]) -> Vec<(&str, &str, &'static str)> {
    let failed = outcomes.iter().filter_map(|outcome| {
        let failure = outcome.documents.as_ref().err()?;
        let id = outcome.object_id.as_str();
        Some((id, failure.error.as_str(), failure.error_type))
    });
    failed.collect()
}

/// Writes what was made into an embedded store and answers which objects a search finds there.
async fn found_in_store(plan: &CollectionPlan, outcomes: Vec<ObjectOutcome>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let options = EdgeOptions {
        free_space: Arc::new(|_: &std::path::Path| {
            Ok(edge::Space {
                free: 1 << 40,
                total: 1 << 40,
            })
        }),
        ..EdgeOptions::default()
    };
    let store = Edge::open(folder.path(), options).unwrap();
    let made = outcomes.into_iter().filter_map(|one| one.documents.ok());
    store
        .upsert(&plan.spec, made.flatten().collect())
        .await
        .unwrap();
    let reach = Reach {
        namespace_id: "ns_1".into(),
        collection_ids: vec!["col_1".into()],
        principal: None,
    };
    let query = SearchQuery {
        ranking: Ranking::Nearest {
            index: URI.into(),
            vector: vector("a question"),
        },
        filter: None,
        limit: 1_000,
        min_score: None,
        vectors: WithVectors::No,
    };
    let hits = store.search(&reach, query).await.unwrap();
    let object = |payload: &Object| {
        let id = payload["_internal"]["lineage"]["root_object_id"].as_str();
        id.unwrap().to_owned()
    };
    let mut found: Vec<String> = hits
        .iter()
        .map(|hit| object(&hit.document.payload))
        .collect();
    found.sort();
    store.close().await.unwrap();
    found
}

#[tokio::test]
async fn a_refused_text_costs_only_its_object() {
    let plan = plan("text_extractor", json!({}));
    let mut sent = vec!["a text"; 64];
    for guilty in [0, 1, 40, 63] {
        sent[guilty] = "REFUSE";
    }
    let model = Moody::default();
    let outcomes = run(&model, &plan, texts(&sent), Try::More).await.unwrap();
    let reason = "the text cannot be split";
    let expected = ["obj_0", "obj_1", "obj_40", "obj_63"].map(|id| (id, reason, "permanent"));
    assert_eq!(failures(&outcomes), expected);
    let calls = model.calls.lock().unwrap().len();
    assert!(calls < 40, "{calls} calls find four of 64");
    assert_eq!(found_in_store(&plan, outcomes).await.len(), 60);
}

#[tokio::test]
async fn one_refused_chunk_fails_its_whole_object() {
    let parameters = json!({"split_by": "words", "chunk_size": 2, "chunk_overlap": 0});
    let plan = plan("text_extractor", json!({ "parameters": parameters }));
    let sent = texts(&["one two three REFUSE five six", "one two three"]);
    let outcomes = run(&Moody::default(), &plan, sent, Try::More)
        .await
        .unwrap();
    assert_eq!(failures(&outcomes).len(), 1, "{outcomes:?}");
    assert_eq!(found_in_store(&plan, outcomes).await, ["obj_1", "obj_1"]);
}

#[tokio::test]
async fn vectors_that_no_index_takes_fail_before_the_store() {
    let plan = plan("text_extractor", json!({}));
    let sent = texts(&["good", "HOLE", "SHORT", "also good"]);
    let outcomes = run(&Moody::default(), &plan, sent, Try::More)
        .await
        .unwrap();
    let model = "the model failed: all_minilm_l6_v2_v1 gave a vector";
    let hole = format!("{model} that is not a finite number at 0");
    let short = format!("{model} of 3 dimensions; the index has 384");
    assert_eq!(
        failures(&outcomes),
        [
            ("obj_1", hole.as_str(), "transient"),
            ("obj_2", short.as_str(), "transient")
        ]
    );
    assert_eq!(found_in_store(&plan, outcomes).await, ["obj_0", "obj_3"]);
}

#[tokio::test]
async fn a_model_that_fails_is_tried_again_and_at_last_costs_only_what_it_fails_on() {
    let plan = plan("text_extractor", json!({}));
    for (guilty, reason) in [
        ("FAIL", "the model failed: nobody answers"),
        ("TWICE", "the model failed: it gave 2 vectors for 1 inputs"),
    ] {
        let sent = texts(&["good", "also good", guilty, "the last"]);
        let early = run(&Moody::default(), &plan, sent.clone(), Try::More).await;
        let early = early.expect_err("the chunk is tried again");
        assert!(matches!(early, IngestError::Model(EmbedError::Failed(_))));
        let outcomes = run(&Moody::default(), &plan, sent, Try::Last).await;
        let outcomes = outcomes.unwrap();
        assert_eq!(failures(&outcomes), [("obj_2", reason, "transient")]);
        let found = found_in_store(&plan, outcomes).await;
        assert_eq!(found, ["obj_0", "obj_1", "obj_3"]);
    }
}

#[tokio::test]
async fn a_model_that_answers_for_nothing_is_waited_for() {
    let plan = plan("text_extractor", json!({}));
    let run = async |sent: &[&str], attempt| {
        let outcomes = run(&Moody::default(), &plan, texts(sent), attempt).await;
        outcomes.map(|outcomes| failures(&outcomes).len()).ok()
    };
    // It may be the text or the model.
    assert_eq!(run(&["FAIL"], Try::More).await, None);
    assert_eq!(run(&["good", "FAIL"], Try::More).await, None);
    // No other try comes: each text fails by itself.
    assert_eq!(run(&["good", "FAIL"], Try::Last).await, Some(1));
    assert_eq!(run(&["FAIL"], Try::Last).await, Some(1));
}

#[test]
fn what_may_pass_is_worth_another_try_of_the_chunk() {
    let work = |errors: &[Option<ExtractError>]| -> Vec<Work> {
        let of = |error: Option<ExtractError>| Work {
            object: ObjectInput::default(),
            notes: Notes {
                away: matches!(&error, Some(one) if one.kind == ErrorKind::Away),
                ..Notes::default()
            },
            parts: error.map_or(Ok(Vec::new()), |error| Err(error.into())),
        };
        errors.iter().cloned().map(of).collect()
    };
    let killed = || Some(ExtractError::transient("the worker was killed"));
    let away = || Some(ExtractError::away("nobody answers"));
    let broken = || Some(ExtractError::permanent("the file is broken"));
    for (errors, more) in [
        (vec![None, broken()], true),
        (vec![None, killed()], false),
        (vec![killed()], false),
        (vec![None, away()], false),
        (vec![broken(), away()], false),
    ] {
        let work = work(&errors);
        let passes = |attempt| check_passing(&work, attempt).is_ok();
        assert_eq!(passes(Try::More), more, "{errors:?}");
        assert!(passes(Try::Last), "{errors:?}");
    }
}

#[tokio::test]
async fn a_model_that_is_away_is_not_asked_for_every_text() {
    let plan = plan("text_extractor", json!({}));
    let model = Moody {
        away: true,
        ..Moody::default()
    };
    let sent = texts(&["a text"; 64]);
    let error = run(&model, &plan, sent, Try::Last).await.unwrap_err();
    assert_eq!(error.to_string(), "the model failed: nobody answers");
    assert_eq!(*model.calls.lock().unwrap(), [64, 1, 63, 1]);
}
