//! Runs one stage of a plan, on the rows that it is meant for.

use loupe_wire::{Object, Value};
use serde_json::json;

use super::RunError;
use super::execution::{Execution, MAX_BATCH};
use super::parameters::Parameters;
use super::plan::Step;
use super::schema::{self, When};
use super::working::{Row, Working};
use super::{
    agent_search, agentic_enrich, aggregate, api_call, attribute_filter, cluster, code_execution,
    cross_compare, document_enrich, feature_search, group, json_transform, llm_enrich, llm_filter,
    maxsim, mmr, moments, query_expand, rag_prepare, reduce, relevance, rerank, reverse_image,
    sentence, sort, sql_lookup, summarize, taxonomy_enrich, traverse_edge, unwind, web_scrape,
    web_search,
};
use crate::template::{is_template, render_text};

/// Runs a stage between the conditions of what goes in, of what it works on and of what comes out.
pub(super) async fn work(
    step: &Step,
    at: &mut Execution,
    set: Working,
) -> Result<Working, RunError> {
    if let Some(size) = &step.batch_size {
        at.batch = Some(batch_size(at, size)?);
    }
    let mut set = set;
    if let Some(raw) = &step.filters.before {
        let filter = at.filter(raw)?;
        set = attribute_filter::keep(set, filter);
    }
    let set = match &step.filters.when {
        None => dispatch(step, at, set).await?,
        Some(raw) => {
            let matcher = at.filter(raw)?.matcher();
            let rows = at.rows(set).await?;
            let meant: Vec<bool> = rows.iter().map(|r| matcher.matches(&r.value)).collect();
            let (work, mut rest) = (pick(&rows, &meant, true), pick(&rows, &meant, false));
            at.report
                .metadata
                .insert("when_skipped".into(), json!(rest.len()));
            let done = dispatch(step, at, Working::Rows(work)).await?;
            let done = at.rows(done).await?;
            Working::Rows(weave(&rows, &meant, done, &mut rest))
        }
    };
    match &step.filters.after {
        None => Ok(set),
        Some(raw) => {
            let filter = at.filter(raw)?;
            // A stage may have counted what it leaves unread.
            at.report.output = None;
            let set = attribute_filter::keep(set, filter);
            Ok(Working::Rows(at.rows(set).await?))
        }
    }
}

fn batch_size(at: &Execution, written: &str) -> Result<usize, RunError> {
    let text = render_text(written, &at.context)?;
    text.trim()
        .parse()
        .ok()
        .filter(|size| (1..=MAX_BATCH).contains(size))
        .ok_or_else(|| {
            RunError::Invalid(format!(
                "stage `{}`: batch_size is a whole number from 1 to {MAX_BATCH}, not `{text}`",
                at.stage
            ))
        })
}

fn pick(rows: &[Row], meant: &[bool], which: bool) -> Vec<Row> {
    rows.iter()
        .zip(meant)
        .filter(|(_, is)| **is == which)
        .map(|(row, _)| row.clone())
        .collect()
}

/// Puts the rows that a stage worked on back between those that it did not: each place gets what was made of its
/// document, anything else comes at the end. Places that follow one another may have one id, as what is made of a list has,
/// or none: then each gets one row, and the last of them what is left.
fn weave(before: &[Row], meant: &[bool], done: Vec<Row>, rest: &mut Vec<Row>) -> Vec<Row> {
    let mut done = done.into_iter().peekable();
    let mut rest = rest.drain(..);
    let mut out = Vec::with_capacity(before.len());
    let worked_on = before.iter().zip(meant).filter(|(_, is)| **is);
    let mut following = worked_on.map(|(row, _)| row.id()).skip(1);
    for (row, is) in before.iter().zip(meant) {
        if !is {
            out.extend(rest.next());
            continue;
        }
        let is_last = following.next() != Some(row.id());
        while let Some(made) = done.next_if(|made| made.id() == row.id()) {
            out.push(made);
            if !is_last {
                break;
            }
        }
    }
    out.extend(done);
    out
}

async fn dispatch(step: &Step, at: &mut Execution, set: Working) -> Result<Working, RunError> {
    let members = step.definition.members;
    let parameters = schema::render(members, &step.parameters, &at.context)?;
    // Templates may have given what the table does not allow.
    let mut problems = Vec::new();
    schema::check(members, &parameters, When::Rendered, &[], &mut problems);
    if let Some(first) = problems.first() {
        return Err(RunError::Invalid(format!(
            "stage `{}`: {}: {}",
            step.name,
            first.loc.join("."),
            first.msg
        )));
    }
    check_named(step, at, &parameters, &set)?;
    let p = || Parameters::new(members, parameters.clone());
    match step.definition.id {
        "feature_search" => feature_search::run(at, parameters, set).await,
        "attribute_filter" => attribute_filter::run(at, parameters, set).await,
        "sort_attribute" => sort::attribute(at, parameters, set).await,
        "sort_relevance" => relevance::run(at, &p(), set).await,
        "maxsim_rerank" => maxsim::run(at, &p(), set).await,
        "aggregate" => aggregate::run(at, &p(), set).await,
        "cluster" => cluster::run(at, &p(), set).await,
        "moment_group" => moments::run(at, &p(), set).await,
        "json_transform" => json_transform::run(at, &p(), set).await,
        "rag_prepare" => rag_prepare::run(at, &p(), set).await,
        "document_enrich" => document_enrich::run(at, &p(), set).await,
        "taxonomy_enrich" => taxonomy_enrich::run(at, &p(), set).await,
        "cross_compare" => cross_compare::run(at, &p(), set).await,
        "rerank" => rerank::run(at, &p(), set).await,
        "llm_filter" => llm_filter::run(at, &p(), set).await,
        "llm_enrich" => llm_enrich::run(at, &p(), set).await,
        "summarize" => summarize::run(at, &p(), set).await,
        "query_expand" => query_expand::run(at, &p(), set).await,
        "external_web_search" => web_search::run(at, &p(), set).await,
        "external_reverse_image" => reverse_image::run(at, &p(), set).await,
        "agent_search" => agent_search::run(at, &p(), set).await,
        "agentic_enrich" => agentic_enrich::run(at, &p(), set).await,
        "api_call" => api_call::run(at, &p(), set).await,
        "web_scrape" => web_scrape::run(at, &p(), set).await,
        "sql_lookup" => sql_lookup::run(at, &p(), set).await,
        "code_execution" => code_execution::run(at, &p(), set).await,
        "traverse_edge" => traverse_edge::run(at, &p(), set).await,
        "unwind" => unwind::run(at, &p(), set).await,
        "score_normalize" => sort::normalize(at, parameters, set).await,
        "mmr" => mmr::run(at, &p(), set).await,
        "limit" => reduce::limit(at, parameters, set).await,
        "sample" => reduce::sample(at, parameters, set).await,
        "deduplicate" => reduce::deduplicate(at, parameters, set).await,
        "group_by" => group::run(at, parameters, set).await,
        other => Err(RunError::Invalid(format!("the stage `{other}` cannot run"))),
    }
}

/// Members that name the field by which a stage lets documents through, orders or groups them.
const NAMES: [&str; 3] = ["field", "group_by_field", "stratify_by"];

/// What everybody is shown of a document.
const ALWAYS_SHOWN: [&str; 2] = ["document_id", "collection_id"];

/// Where an input says which field that is, whoever is shown a part of them names one of these: which documents come, and in which
/// order, tells what is in it.
fn check_named(
    step: &Step,
    at: &Execution,
    parameters: &Object,
    set: &Working,
) -> Result<(), RunError> {
    let shown = at.run.shown.as_deref();
    // What no search has read yet has no score but a field that is called so.
    let is_ranked = matches!(set, Working::Rows(_));
    let is_always_shown =
        |field: &str| ALWAYS_SHOWN.contains(&field) || (is_ranked && field == "score");
    let is_asked = |name: &str| {
        let written = step.parameters.get(name).and_then(Value::as_str);
        written.is_some_and(is_template)
    };
    for name in NAMES.into_iter().filter(|name| is_asked(name)) {
        // Without such an input it is the stage's own.
        let Some(field) = parameters.get(name).and_then(Value::as_str) else {
            continue;
        };
        if !is_always_shown(field) && !sentence::is_shown(field, shown) {
            let message = "an input names a field that is not shown";
            return Err(RunError::Invalid(message.to_owned()));
        }
    }
    Ok(())
}
