//! Answers kept while nothing they were made of changes: the same question of the same organization and end user over the same
//! documents is answered from memory, and costs nothing.
//!
//! An answer belongs to a version of its namespace, which every write to a document or a definition raises, before it begins
//! and after it ends; what was made of another version is not used. Writes of other processes are not seen here, so where
//! there may be any an answer is kept no longer than a resource is.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use loupe_engine::{fingerprint::Fingerprint, weight};
use loupe_wire::{
    ExecuteRetrieverResponse, Object, RetrieverModelOutput, StageConfigOutput, Value,
};
use moka::sync::Cache;
use serde::Serialize;
use serde_json::json;

use super::{
    Execute, execute,
    execution::{checked, execute_checked},
    ready::ready,
    recording::{self, Begun},
};
use crate::{
    app::App,
    auth::{Level, Scope},
    db::Record,
    error::Result,
    id,
    limits::quota,
    v1::documents,
};

/// Bytes in memory of all answers together, and of one.
const ROOM: u64 = 32 << 20;
const LARGEST: usize = 4 << 20;
/// Of an answer beside its documents and facets.
const REST: usize = 8 << 10;

/// How long an answer is kept, alone on the database and with other processes on it.
const ALONE: Duration = Duration::from_secs(60);
const SHARED: Duration = Duration::from_secs(1);

/// Stages whose answer depends on documents, inputs and parameters alone.
const REPEATABLE: [&str; 20] = [
    "feature_search",
    "attribute_filter",
    "sort_attribute",
    "sort_relevance",
    "score_normalize",
    "rerank",
    "mmr",
    "maxsim_rerank",
    "moment_group",
    "aggregate",
    "cluster",
    "group_by",
    "limit",
    "deduplicate",
    "json_transform",
    "rag_prepare",
    "document_enrich",
    "cross_compare",
    "traverse_edge",
    "unwind",
];

/// Words in a definition that make answers differ from one moment to the next. Templates write them in any case.
const PASSING: [&str; 6] = [
    "utc_now",
    "time_ago",
    "time_elapsed_ms",
    "budget_remaining",
    "\"random\"",
    "\"learned\"",
];

/// Words that make a stage ask a language model or another retriever.
const ASKING: [&str; 5] = [
    "\"natural_language\"",
    "\"decision_model\"",
    "\"relevance_criteria\"",
    "\"retriever_id\"",
    "\"retriever_config\"",
];

type Key = [u8; 32];

struct Kept {
    version: (u64, u64),
    at: i64,
    tag: String,
    bytes: u32,
    answer: ExecuteRetrieverResponse,
}

/// The answers that are kept.
pub struct Answers(Cache<Key, Arc<Kept>>);

impl Answers {
    /// How long what is made of documents is kept.
    pub const fn lasting(several_processes: bool) -> Duration {
        if several_processes { SHARED } else { ALONE }
    }

    pub fn new(several_processes: bool) -> Self {
        let kept = Self::lasting(several_processes);
        let answers = Cache::builder()
            .max_capacity(ROOM)
            .weigher(|_: &Key, one: &Arc<Kept>| one.bytes)
            .time_to_live(kept);
        Self(answers.build())
    }
}

/// Goes with an answer that costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Unbilled;

/// Goes with the answer to several questions: how many were answered anew and from memory, and how many failed.
#[derive(Debug, Clone, Copy)]
pub struct Questions {
    pub made: i64,
    pub kept: i64,
    pub failed: i64,
}

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Kept,
    Made,
    /// Made, and not to be kept.
    Passing,
}

impl Source {
    /// The word of the header `X-Cache`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kept => "HIT",
            Self::Made => "MISS",
            Self::Passing => "BYPASS",
        }
    }
}

/// An answer and what a caller may know it by.
pub struct Answered {
    pub answer: ExecuteRetrieverResponse,
    pub mark: Mark,
}

/// Where an answer came from, and by what it may be known again.
#[derive(Debug, Clone)]
pub struct Mark {
    pub source: Source,
    /// The same for the same documents in the same order.
    pub tag: String,
}

/// Runs a stored retriever, or answers what it answered before.
///
/// # Errors
/// As [`execute`].
pub async fn answer<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &Record<RetrieverModelOutput>,
    mut ask: Execute,
) -> Result<Answered> {
    // An object changes without any document.
    let shows_objects = ask.expand.iter().any(|field| field == documents::ROOT);
    let passes = ask.skip_cache || ask.explain || ask.watch.is_some() || shows_objects;
    if passes || !ready(app, retriever)?.is_repeatable {
        let answer = execute(app, scope, retriever, ask).await?;
        let mark = Mark::passing(&answer);
        return Ok(Answered { answer, mark });
    }
    let started = Instant::now();
    ask.inputs = checked(retriever, &ask.inputs)?;
    // Inputs may be a vector: they are read through once for the key and for the history.
    let known_by = recording::known_by(&ask.inputs);
    let key = key(scope, retriever, &ask, &known_by);
    // Before anything is read: a write that comes in between leaves another version behind.
    let version = app.version_of(&scope.namespace_id);
    if let Some(kept) = app
        .answers
        .0
        .get(&key)
        .filter(|kept| kept.version == version)
    {
        quota::check_spend(app, &scope.caller.org_id).await?;
        return Ok(again(app, scope, retriever, &kept, ask, known_by, started));
    }
    let answer = execute_checked(app, scope, retriever, ask, Some(known_by)).await?;
    let tag = tag(&answer);
    keep(app, key, version, &tag, &answer);
    let source = Source::Made;
    Ok(Answered {
        answer,
        mark: Mark { source, tag },
    })
}

/// The kept answer as the answer to another execution.
fn again<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    kept: &Kept,
    ask: Execute,
    known_by: [u8; 32],
    started: Instant,
) -> Answered {
    let begun = Begun {
        execution_id: id::new("exec_"),
        namespace_id: scope.namespace_id.clone(),
        public_id: ask.public_id,
        query: recording::query(&retriever.input_schema, &ask.inputs),
        looks_on: ask.looks_on,
        unnoted: ask.unnoted,
        inputs: ask.inputs,
        known_by: Some(known_by),
        created_at: app.clock().micros(),
        started,
    };
    let mut answer = kept.answer.clone();
    answer.execution_id.clone_from(&begun.execution_id);
    answer.cache_hit = true;
    answer.cached_at = Some(kept.at as f64 / 1e6);
    let milliseconds = begun.milliseconds();
    answer.budget.insert("time_ms".into(), json!(milliseconds));
    answer.budget.insert("credits".into(), json!(0.0));
    if let Some(statistics) = &mut answer.stage_statistics {
        statistics.total_time_ms = milliseconds;
        statistics.credits_used = 0.0;
    }
    recording::note(app, &begun, &answer);
    let mark = Mark {
        source: Source::Kept,
        tag: kept.tag.clone(),
    };
    Answered { answer, mark }
}

/// What is not whole is asked again by the next caller.
fn keep(app: &App, key: Key, version: (u64, u64), tag: &str, answer: &ExecuteRetrieverResponse) {
    if !answer.degraded.is_empty() || answer.status != "completed" {
        return;
    }
    let documents = answer.documents.iter().map(weight::of_object);
    let facets = answer.facets.iter().map(weight::of_object);
    let bytes = documents.chain(facets).sum::<usize>() + REST;
    let Some(bytes) = u32::try_from(bytes).ok().filter(|_| bytes <= LARGEST) else {
        return;
    };
    let kept = Kept {
        version,
        at: app.clock().micros(),
        tag: tag.to_owned(),
        bytes,
        answer: answer.clone(),
    };
    app.answers.0.insert(key, Arc::new(kept));
}

impl Mark {
    /// Of an answer that is not kept.
    pub fn passing(answer: &ExecuteRetrieverResponse) -> Self {
        Self {
            source: Source::Passing,
            tag: tag(answer),
        }
    }

    /// Of several answers together: from memory where all of them are, and changed where one of them is.
    pub fn of_several(parts: &[Result<Answered>]) -> Self {
        let source = |part: &Result<Answered>| {
            let part = part.as_ref();
            part.map_or(Source::Passing, |one| one.mark.source)
        };
        let sources: Vec<Source> = parts.iter().map(source).collect();
        let source = if sources.iter().all(|one| *one == Source::Kept) {
            Source::Kept
        } else if sources.contains(&Source::Made) {
            Source::Made
        } else {
            Source::Passing
        };
        let tag = |part: &Result<Answered>| match part {
            Ok(answered) => answered.mark.tag.clone(),
            Err(error) => error.message(),
        };
        let tags: Vec<String> = parts.iter().map(tag).collect();
        Self {
            source,
            tag: weak(Fingerprint::default().part(&tags)),
        }
    }

    /// Whether the caller has it already, by its `If-None-Match`.
    pub fn is_known(&self, headers: &HeaderMap) -> bool {
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let sent = headers.get_all(header::IF_NONE_MATCH).iter();
        let mut sent = sent
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        sent.any(|tag| bare(tag) == bare(&self.tag))
    }

    /// Says in an answer where it came from, by what it may be known again, and what it costs.
    pub fn put(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert("x-cache", HeaderValue::from_static(self.source.word()));
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-cache"),
        );
        // A tag is of hexadecimal digits.
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            headers.insert(header::ETAG, tag);
        }
        if self.source == Source::Kept {
            response.extensions_mut().insert(Unbilled);
        }
    }
}

fn tag(answer: &ExecuteRetrieverResponse) -> String {
    let lasting = (
        &answer.pagination,
        &answer.facets,
        &answer.status,
        &answer.warnings,
    );
    tag_of(&answer.documents, &lasting)
}

/// The tag of what is left of an answer for those who are shown a part of it: what they are not shown changes it for nobody.
pub fn tag_of(documents: &[Object], beside: &impl Serialize) -> String {
    let documents = documents.iter();
    weak(documents.fold(Fingerprint::default().part(beside), Fingerprint::object))
}

fn weak(of: Fingerprint) -> String {
    format!("W/\"{}\"", hex::encode(&of.finish()[..12]))
}

/// Everything that an answer depends on besides the documents. Of what references name a key is told what its scopes cover.
fn key<L: Level>(
    scope: &Scope<L>,
    retriever: &Record<RetrieverModelOutput>,
    ask: &Execute,
    known_by: &[u8; 32],
) -> Key {
    let asked = (
        &scope.caller.org_id,
        &scope.namespace_id,
        scope.caller.principal(),
        &scope.caller.key.scopes,
        &retriever.id,
        &retriever.updated_at,
        &ask.filters,
        &ask.pagination,
        &ask.limit,
        &ask.expand,
        &ask.presigned_urls,
        &ask.vectors,
        (&ask.highlights, &ask.counted, ask.shown.as_deref()),
        known_by,
    );
    Fingerprint::default().part(&asked).finish()
}

pub(super) fn is_repeatable(retriever: &RetrieverModelOutput) -> bool {
    is_made_here(retriever, &PASSING)
}

/// Whether its answers are made here alone, of documents, inputs and parameters: asking once more costs its owner nothing.
pub fn asks_nobody(retriever: &RetrieverModelOutput) -> bool {
    retriever.stages.iter().all(is_own)
}

/// Whether a stage does all that it does here, of documents, inputs and parameters.
pub fn is_own(stage: &StageConfigOutput) -> bool {
    is_stage_made_here(stage, &[])
}

fn is_made_here(retriever: &RetrieverModelOutput, but: &[&str]) -> bool {
    let mut stages = retriever.stages.iter();
    stages.all(|stage| is_stage_made_here(stage, but))
}

fn is_stage_made_here(stage: &StageConfigOutput, but: &[&str]) -> bool {
    let id = stage.config.get("stage_id").and_then(Value::as_str);
    let told = serde_json::to_string(&stage.config).unwrap_or_default();
    let told = told.to_lowercase();
    id.is_some_and(|id| REPEATABLE.contains(&id))
        && !ASKING.iter().chain(but).any(|word| told.contains(word))
}
