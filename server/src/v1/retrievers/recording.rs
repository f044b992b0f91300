//! What the history tells of an execution: one that was answered, was answered from memory, or failed.

use std::time::Instant;

use indexmap::IndexMap;
use loupe_engine::{fingerprint::Fingerprint, stage::Outcome};
use loupe_wire::{
    ExecuteRetrieverResponse, Object, RetrieverExecutionStatistics, RetrieverExecutionSummary,
    RetrieverInputSchemaField, RetrieverInputSchemaFieldType, RetrieverModelOutput,
    StageStatistics, Value,
};

use super::{Execution, ended::answer, record};
use crate::{app::App, clock, error::ApiError, front};

/// Bytes of inputs, as JSON, that the history keeps.
const LONGEST_INPUTS: usize = 2 << 10;
/// Letters of an error that the history keeps: it may repeat what was asked.
const LONGEST_ERROR: usize = 1_000;
/// Where the history tells whether a question itself made its execution fail.
pub const AT_FAULT: &str = "at_fault";
/// Where it tells whether the whole answer came from memory.
const KEPT: &str = "cache_hit";

/// An execution that has begun.
pub(super) struct Begun {
    pub execution_id: String,
    pub namespace_id: String,
    /// The page that it was asked on; empty for others.
    pub public_id: String,
    /// The words that lists tell it by.
    pub query: Option<String>,
    /// Nobody searched anew.
    pub looks_on: bool,
    /// Is no part of the history.
    pub unnoted: bool,
    /// As the retriever's schema has them.
    pub inputs: Object,
    /// The digest of the inputs, where they were looked for in memory.
    pub known_by: Option<[u8; 32]>,
    /// In microseconds.
    pub created_at: i64,
    pub started: Instant,
}

impl Begun {
    /// How long it has lasted.
    pub fn milliseconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1e3
    }
}

/// What inputs are known by, in memory and in the history.
pub(super) fn known_by(inputs: &Object) -> [u8; 32] {
    Fingerprint::default().object(inputs).finish()
}

/// Puts an answer that was kept into the history.
pub(super) fn note(app: &App, begun: &Begun, answer: &ExecuteRetrieverResponse) {
    if begun.unnoted {
        return;
    }
    record(app, execution(begun, answer, begun.milliseconds()));
}

/// Puts an execution that failed into the history, with the stages that ran. A question that was refused for how it was asked, or
/// because this server has too much to do, has not begun.
pub(super) fn note_failure(
    app: &App,
    retriever: &RetrieverModelOutput,
    begun: &Begun,
    error: &ApiError,
    so_far: Outcome,
) {
    let is_refused = matches!(error, ApiError::Validation(_)) || error.has_code("overloaded");
    if is_refused || begun.unnoted {
        return;
    }
    let mut response = answer(retriever, so_far, begun.milliseconds(), 0.0);
    response.execution_id.clone_from(&begun.execution_id);
    response.status = "failed".into();
    response.error = Some(kept(&error.message(), LONGEST_ERROR));
    let mut failed = of_stages(retriever, begun, &response, begun.milliseconds());
    failed.data[AT_FAULT] = (!error.is_transient() && !error.is_refusal()).into();
    record(app, failed);
}

/// The beginning of a text, without what one of the databases cannot keep.
fn kept(text: &str, longest: usize) -> String {
    let letters = text.chars().filter(|letter| *letter != '\0');
    letters.take(longest).collect()
}

/// An execution whose stages were run.
pub(super) fn of_stages(
    retriever: &RetrieverModelOutput,
    begun: &Begun,
    response: &ExecuteRetrieverResponse,
    milliseconds: f64,
) -> Execution {
    let mut execution = execution(begun, response, milliseconds);
    execution.data["total_stages"] = retriever.stages.len().into();
    execution.data["collection_ids"] = retriever.collection_ids.clone().into();
    execution
}

fn execution(begun: &Begun, response: &ExecuteRetrieverResponse, milliseconds: f64) -> Execution {
    let query = begun.query.clone();
    let returned = i64::try_from(response.documents.len()).unwrap_or(i64::MAX);
    let micros = (milliseconds * 1e3).round() as i64;
    let total = response.pagination.get("total").and_then(Value::as_i64);
    Execution {
        execution_id: response.execution_id.clone(),
        namespace_id: begun.namespace_id.clone(),
        retriever_id: response.retriever_id.clone(),
        created_at: begun.created_at,
        micros,
        // A page behind the last one found what the search found.
        returned: total.unwrap_or(0).max(returned),
        cached: response.cache_hit,
        looks_on: begun.looks_on,
        public_id: begun.public_id.clone(),
        query: query.clone().unwrap_or_default(),
        fields: Vec::new(),
        status: response.status.clone(),
        data: told(begun, response, query, returned, milliseconds),
    }
}

/// The first input for words tells the execution in lists: ids of documents, days and files say nothing there. Where the schema
/// does not know an input, it may be for words.
pub(super) fn query(
    schema: &IndexMap<String, RetrieverInputSchemaField>,
    inputs: &Object,
) -> Option<String> {
    use RetrieverInputSchemaFieldType as Type;
    let words = schema
        .iter()
        .filter(|(_, field)| matches!(field.r#type, Type::String | Type::Text))
        .filter_map(|(name, _)| inputs.get(name));
    let unknown = inputs
        .iter()
        .filter(|(name, _)| !schema.contains_key(name.as_str()))
        .map(|(_, value)| value);
    let mut texts = words.chain(unknown).filter_map(Value::as_str);
    let text = texts.find(|text| !text.starts_with("data:"))?;
    Some(kept(text, 200))
}

fn told(
    begun: &Begun,
    response: &ExecuteRetrieverResponse,
    query: Option<String>,
    returned: i64,
    milliseconds: f64,
) -> Value {
    let at = clock::time(begun.created_at);
    let statistics = response.stage_statistics.as_ref();
    let known_by = begun.known_by.unwrap_or_else(|| known_by(&begun.inputs));
    let micros = (milliseconds * 1e3).round() as i64;
    let summary = RetrieverExecutionSummary {
        execution_id: response.execution_id.clone(),
        status: response.status.clone(),
        created_at: at,
        completed_at: Some(at + chrono::Duration::microseconds(micros)),
        duration_ms: milliseconds,
        credits_used: statistics.map_or(0.0, |told| told.credits_used),
        total_processed: statistics.map_or(0, processed).max(returned),
        total_returned: returned,
        cache_hit_rate: match response.cache_hit {
            true => Some(1.0),
            false => statistics.and_then(remembered),
        },
        inputs_hash: Some(hex::encode(&known_by[..12])),
        query_summary: query,
        trace_id: Some(front::id()).filter(|id| !id.is_empty()),
    };
    let mut data = serde_json::to_value(summary).unwrap_or_default();
    let stages = statistics.map_or(0, |told| told.stages.len());
    data["stages_completed"] = statistics.map_or(0, completed).into();
    data["total_stages"] = stages.into();
    data[KEPT] = response.cache_hit.into();
    data["retriever_id"] = response.retriever_id.clone().into();
    data["stage_statistics"] = stage_statistics(response);
    data["warnings"] = response.warnings.clone().into();
    if !response.degraded.is_empty() {
        data["degraded"] = degraded(response);
    }
    if !response.limits.is_empty() {
        data["limits"] = serde_json::to_value(&response.limits).unwrap_or_default();
    }
    if let Some(error) = &response.error {
        data["error"] = error.clone().into();
    }
    // What people did with the answer says something of its query; a picture or a vector is too long to keep.
    if is_short(&begun.inputs) {
        data["inputs"] = Value::Object(begun.inputs.clone());
    }
    data
}

/// The stages and how they ended; their errors may repeat what was asked, too.
fn stage_statistics(response: &ExecuteRetrieverResponse) -> Value {
    let mut told = response.stage_statistics.clone();
    let stages = told.iter_mut().flat_map(|told| told.stages.values_mut());
    for error in stages.filter_map(|stage| stage.error.as_mut()) {
        *error = kept(error, LONGEST_ERROR);
    }
    serde_json::to_value(told).unwrap_or_default()
}

/// What an answer was less by than it should have been; reasons may repeat what others said.
fn degraded(response: &ExecuteRetrieverResponse) -> Value {
    let mut told = response.degraded.clone();
    for one in &mut told {
        one.reason = kept(&one.reason, LONGEST_ERROR);
    }
    serde_json::to_value(told).unwrap_or_default()
}

/// The most documents that a stage was given or gave.
fn processed(told: &RetrieverExecutionStatistics) -> i64 {
    let most = |stage: &StageStatistics| stage.input_count.max(stage.output_count);
    told.stages.values().map(most).max().unwrap_or(0)
}

/// The stages that came to their end.
fn completed(told: &RetrieverExecutionStatistics) -> usize {
    let stages = told.stages.values();
    stages.filter(|stage| stage.error.is_none()).count()
}

/// The share of the stages that were answered from memory, of those that may be.
fn remembered(told: &RetrieverExecutionStatistics) -> Option<f64> {
    let hits: Vec<bool> = told
        .stages
        .values()
        .filter_map(|stage| stage.stage_cache_hit)
        .collect();
    let kept = hits.iter().filter(|hit| **hit).count();
    (!hits.is_empty()).then(|| kept as f64 / hits.len() as f64)
}

/// Whether an execution of the history was answered from memory as a whole: its stages did not run.
pub(super) fn is_kept(execution: &Object) -> bool {
    execution.get(KEPT).and_then(Value::as_bool) == Some(true)
}

/// Whether the history keeps these inputs: short ones, without what one of the databases cannot keep. What is too long is
/// written no further than that.
fn is_short(inputs: &Object) -> bool {
    let mut room = [0_u8; LONGEST_INPUTS];
    let mut rest = room.as_mut_slice();
    let fits = serde_json::to_writer(&mut rest, inputs).is_ok();
    let used = LONGEST_INPUTS - rest.len();
    let escaped = b"\\u0000";
    fits && !room[..used].windows(escaped.len()).any(|at| at == escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_tell_an_execution_and_ids_do_not() {
        let field = |kind| RetrieverInputSchemaField {
            r#type: kind,
            ..Default::default()
        };
        let schema: IndexMap<String, RetrieverInputSchemaField> = [
            (
                "like".to_owned(),
                field(RetrieverInputSchemaFieldType::DocumentReference),
            ),
            (
                "since".to_owned(),
                field(RetrieverInputSchemaFieldType::Date),
            ),
            (
                "query".to_owned(),
                field(RetrieverInputSchemaFieldType::Text),
            ),
        ]
        .into();
        let of = |schema: &IndexMap<String, RetrieverInputSchemaField>, inputs: Value| {
            query(schema, inputs.as_object().unwrap())
        };
        let inputs = json!({"like": "doc_1", "since": "2024-01-01"});
        assert_eq!(of(&schema, inputs), None);
        let inputs = json!({"like": "doc_1", "query": "sea"});
        assert_eq!(of(&schema, inputs).as_deref(), Some("sea"));
        let inputs = json!({"picture": "data:image/png;base64,AA==", "words": "sea"});
        assert_eq!(of(&IndexMap::new(), inputs).as_deref(), Some("sea"));
    }
}
