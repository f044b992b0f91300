//! Retrievers that a stage runs for each document: stored ones, and such as are written out in the stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::StreamExt as _;
use indexmap::IndexMap;
use loupe_wire::{
    DegradedEntry, Object, RetrieverInputSchemaField, StageConfigInput, Value, reading,
};
use serde::Deserialize;
use serde_json::json;

use super::execution::Execution;
use super::parameters::Parameters;
use super::schema::{When, inside, problem};
use super::taxonomy::{Finder, Taxonomy, search};
use super::working::Row;
use super::{
    Outcome, Plan, Run, RunError, Searchable, StageProblem, check_inputs, document_enrich, kept,
};
use crate::template::{is_template, render_value};

/// Searches of one stage: as many different inputs as documents give.
const MAX_RUNS: usize = 100;
/// Searches of one execution, those inside of searches with them.
const MAX_IN_ALL: usize = 500;
/// Searches at once; inside of one of them, one after the other.
const AT_ONCE: usize = 4;
/// Retrievers that run inside of one another, the first one not counted.
const DEEPEST: usize = 3;
/// Warnings of a retriever that are passed on.
const MOST_WARNINGS: usize = 5;

/// The stored retrievers of a namespace.
#[async_trait]
pub trait Retrievers: Send + Sync + 'static {
    /// The retriever of that id or name, or a sentence saying why there is none.
    async fn find(&self, identifier: &str) -> Result<Called, String>;
}

/// A retriever ready to be run by a stage.
pub struct Called {
    pub finder: Finder,
    pub collections: Vec<Searchable>,
    /// Taxonomies that its stages name.
    pub taxonomies: Vec<Arc<Taxonomy>>,
    /// The time that its owner gives it.
    pub max_time_ms: Option<u64>,
}

/// A retriever that is written out in a stage.
pub(crate) struct Inner {
    pub plan: Plan,
    input_schema: IndexMap<String, RetrieverInputSchemaField>,
    /// That of the stage, else those of the retriever around it, where empty.
    pub collections: Vec<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    collection_identifiers: Vec<String>,
    stages: Vec<StageConfigInput>,
    #[serde(default)]
    input_schema: IndexMap<String, RetrieverInputSchemaField>,
}

/// The retriever that `retriever_config` tells, checked; what is wrong with it goes to `out`.
pub(super) fn compile(
    parameters: &Object,
    when: When,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) -> Option<Arc<Inner>> {
    let config = parameters
        .get("retriever_config")
        .filter(|config| config.is_object())?;
    let here = inside(loc, "retriever_config");
    let known = ["collection_identifiers", "stages", "input_schema"];
    let mut names = config.as_object().into_iter().flat_map(Object::keys);
    if let Some(name) = names.find(|name| !known.contains(&name.as_str())) {
        let msg = format!("a retriever has {} here, not `{name}`", known.join(", "));
        out.push(problem(inside(&here, name), "extra_forbidden", msg));
        return None;
    }
    let written: Written = match reading::from_value(config) {
        Ok(written) => written,
        Err(fault) => {
            out.push(problem(here, "invalid_stage", fault.to_string()));
            return None;
        }
    };
    if let Some(name) = written
        .collection_identifiers
        .iter()
        .find(|name| is_template(name))
    {
        let msg = format!("`{name}` is a template: collections are written out");
        let loc = inside(&here, "collection_identifiers");
        out.push(problem(loc, "invalid_template", msg));
        return None;
    }
    match Plan::compile_when(when, &written.stages, &written.input_schema) {
        Ok(plan) if plan.steps.iter().any(|step| step.inner.is_some()) => {
            let msg = "a retriever that is written out has none written out in its own stages";
            out.push(problem(here, "invalid_stage", msg.into()));
            None
        }
        Ok(plan) => Some(Arc::new(Inner {
            plan,
            input_schema: written.input_schema,
            collections: written.collection_identifiers,
        })),
        Err(problems) => {
            out.extend(problems.into_iter().map(|one| StageProblem {
                loc: here.iter().cloned().chain(one.loc).collect(),
                ..one
            }));
            None
        }
    }
}

/// What a retriever found for one document; absent where it was not asked any more.
pub(super) type Found = Option<Result<Vec<Row>, String>>;

/// What the retriever of the stage finds for each row, up to `most` documents, in the order of the rows.
pub(super) async fn run(
    at: &mut Execution,
    p: &Parameters,
    rows: &[Row],
    most: usize,
) -> Result<Vec<Found>, RunError> {
    let called = within_target(at, p, called(at, p).await?)?;
    let (asks, places) = asks(at, p, &called, rows)?;
    let ran = granted(at, asks.len().min(MAX_RUNS));
    if asks.len() > ran {
        at.warn(format!(
            "stage `{}`: the retriever was run {ran} times; {} more inputs were left out",
            at.stage,
            asks.len() - ran
        ));
    }
    let asks = asks.into_values().take(ran).collect();
    let outcomes = search_all(at, p, &called, asks, most).await;
    let mut found = Vec::with_capacity(ran);
    for outcome in outcomes {
        found.push(match outcome {
            Ok(outcome) => Ok(told(at, outcome)),
            // One document that the retriever cannot work with leaves the others as they are.
            Err(RunError::Invalid(reason) | RunError::Away(reason)) => Err(reason),
            Err(error) => return Err(error),
        });
    }
    at.report.metadata.insert("runs".into(), json!(ran));
    let of_row = |(row, place): (&Row, Result<usize, String>)| match place {
        Ok(place) => Some(match found.get(place)? {
            Ok(rows) => Ok(others(row, rows, most)),
            Err(reason) => Err(reason.clone()),
        }),
        Err(reason) => Some(Err(reason)),
    };
    Ok(rows.iter().zip(places).map(of_row).collect())
}

/// How many searches of those wanted the execution has left; they are counted as run.
fn granted(at: &Execution, wanted: usize) -> usize {
    let before = |runs: &Arc<AtomicUsize>| runs.fetch_add(wanted, Ordering::Relaxed);
    let before = at.run.outside.runs.as_ref().map_or(0, before);
    wanted.min(MAX_IN_ALL.saturating_sub(before))
}

/// The retriever that the stage names, or tells.
async fn called(at: &Execution, p: &Parameters) -> Result<Called, RunError> {
    let outside = &at.run.outside;
    let refused = |reason: String| RunError::Invalid(format!("stage `{}`: {reason}", at.stage));
    if outside.depth >= DEEPEST {
        let reason = format!("retrievers run {DEEPEST} deep inside of one another at most");
        return Err(refused(reason));
    }
    if let Some(inner) = &at.inner {
        return written_out(at, p, inner);
    }
    let Some(retrievers) = &outside.retrievers else {
        return Err(refused("retrievers are not run here".into()));
    };
    let identifier = p.word("retriever_id");
    retrievers.find(&identifier).await.map_err(refused)
}

/// The retriever, asked in the collection alone that the stage names, where it names one.
fn within_target(at: &Execution, p: &Parameters, mut called: Called) -> Result<Called, RunError> {
    if document_enrich::is_own(p) {
        return Ok(called);
    }
    let targets = document_enrich::targets(at, p)?;
    let ids: Vec<&str> = targets.iter().map(|c| c.collection_id.as_str()).collect();
    called
        .collections
        .retain(|one| ids.contains(&one.collection_id.as_str()));
    if called.collections.is_empty() {
        return Err(RunError::Invalid(format!(
            "stage `{}`: its retriever does not search the collection of `target_collection_id`",
            at.stage
        )));
    }
    Ok(called)
}

fn written_out(at: &Execution, p: &Parameters, inner: &Inner) -> Result<Called, RunError> {
    let mut collections = Vec::new();
    for name in &inner.collections {
        collections.extend(at.collections_named(name)?);
    }
    if inner.collections.is_empty() {
        collections = document_enrich::targets(at, p)?;
    }
    Ok(Called {
        finder: Finder {
            plan: inner.plan.clone(),
            input_schema: inner.input_schema.clone(),
            references: at.run.references.clone(),
            secrets: at.run.secrets.clone(),
            fallen: at.run.outside.fallen.clone(),
        },
        collections,
        taxonomies: at.run.taxonomies.clone(),
        max_time_ms: None,
    })
}

/// The searches by their inputs, and for each row the place of its own, or why the retriever does not take its inputs.
/// Documents that give the same inputs are one search.
type Asks = (IndexMap<String, Object>, Vec<Result<usize, String>>);

fn asks(at: &Execution, p: &Parameters, called: &Called, rows: &[Row]) -> Result<Asks, RunError> {
    let mut asks: IndexMap<String, Object> = IndexMap::new();
    let mut place = |sent: Object| -> Result<usize, String> {
        let inputs = taken(called, sent)?;
        let text = Value::Object(inputs.clone()).to_string();
        Ok(asks.insert_full(text, inputs).0)
    };
    let mut places = Vec::with_capacity(rows.len());
    match p.map("retriever_inputs").map(Value::Object) {
        // They are the same for each document.
        None if !rows.is_empty() => places.resize(rows.len(), place(inherited(at, called))),
        None => {}
        Some(written) => {
            for (index, row) in rows.iter().enumerate() {
                let rendered = render_value(&written, &at.context_of(row, index))?;
                places.push(place(rendered.as_object().cloned().unwrap_or_default()));
            }
        }
    }
    Ok((asks, places))
}

/// The inputs of this execution, as far as the retriever takes them.
fn inherited(at: &Execution, called: &Called) -> Object {
    let schema = &called.finder.input_schema;
    let takes = |name: &String| schema.is_empty() || schema.contains_key(name);
    let own = at.run.inputs.iter().filter(|(name, _)| takes(name));
    own.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The inputs as the retriever takes them, or why it does not.
fn taken(called: &Called, sent: Object) -> Result<Object, String> {
    let sent = sent.into_iter().filter(|(_, value)| !value.is_null());
    let checked = check_inputs(&called.finder.input_schema, &sent.collect());
    checked.map_err(|faults| {
        let told: Vec<String> = faults
            .into_iter()
            .map(|fault| format!("{}: {}", fault.loc.join("."), fault.msg))
            .collect();
        told.join("; ")
    })
}

async fn search_all(
    at: &Execution,
    p: &Parameters,
    called: &Called,
    asks: Vec<Object>,
    most: usize,
) -> Vec<Result<Outcome, RunError>> {
    // One more than wanted: a document may find itself.
    let work = asks.into_iter().map(|inputs| {
        search(
            &called.finder.plan,
            inner_run(at, p, called, inputs, most + 1),
        )
    });
    // Collected first: a stream over borrowing closures is no future of its own for every lifetime.
    let work: Vec<_> = work.collect();
    let at_once = match at.run.outside.depth {
        0 => at.batch.unwrap_or(AT_ONCE).clamp(1, AT_ONCE),
        _ => 1,
    };
    futures::stream::iter(work)
        .buffered(at_once)
        .collect()
        .await
}

fn inner_run(at: &Execution, p: &Parameters, called: &Called, inputs: Object, limit: usize) -> Run {
    let mut run = at.run.inner(
        called.collections.clone(),
        called.finder.references.clone(),
        called.finder.secrets.clone(),
        inputs,
        limit,
    );
    run.taxonomies.clone_from(&called.taxonomies);
    run.max_time_ms = called.max_time_ms;
    run.outside.depth += 1;
    run.outside.fallen = called.finder.fallen.clone();
    run.keeping = kept::time_of(p).and_then(|most| Some(run.keeping.take()?.within(most)));
    run
}

/// The documents of a search; what it has to tell beside them is told of this stage.
fn told(at: &mut Execution, outcome: Outcome) -> Vec<Row> {
    for statistics in outcome.statistics.stages.values() {
        let count = |figure: Option<i64>| figure.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        at.report.llm_calls += count(statistics.llm_calls);
        at.report.tokens += count(statistics.tokens_used);
    }
    for warning in outcome.warnings.into_iter().take(MOST_WARNINGS) {
        at.warn(format!("stage `{}`: its retriever: {warning}", at.stage));
    }
    at.report.may_pass |= outcome.may_pass;
    for entry in outcome.degraded.into_iter().take(1) {
        let known = at
            .report
            .degraded
            .iter()
            .any(|one| one.stage.as_ref() == Some(&at.stage) && one.reason == entry.reason);
        if !known {
            at.report.degraded.push(DegradedEntry {
                stage: Some(at.stage.clone()),
                ..entry
            });
        }
    }
    let documents = outcome.documents.into_iter();
    let rows = documents.map(|document| Row {
        value: document.into(),
    });
    rows.collect()
}

/// The documents found but the one that they were looked for.
fn others(row: &Row, found: &[Row], most: usize) -> Vec<Row> {
    let own = row.id();
    let others = found.iter().filter(|one| own.is_empty() || one.id() != own);
    others.take(most).cloned().collect()
}
