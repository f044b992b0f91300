//! What a plan will do, before it does it.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use loupe_wire::{ExplainStagePlan, Object, Value};
use serde_json::json;

use super::parameters::Parameters;
use super::plan::{Plan, Step};
use super::targets::targets;
use super::{Configured, Searchable, decision, feature_table, foreseen, query_expand, schema};
use crate::filter::Filter;
use crate::template::{Context, is_template};

/// What estimates start from.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub collections: &'a [Searchable],
    /// Documents in reach.
    pub documents: u64,
    /// What is asked; where nothing is, templates stay what they are.
    pub inputs: Option<&'a Object>,
    pub now: DateTime<Utc>,
    pub configured: Configured,
}

/// Milliseconds that embedding one query takes, measured on two cores; one list from the store; a stage of its own.
const EMBED_MS: f64 = 5.0;
const LIST_MS: f64 = 1.0;
const STAGE_MS: f64 = 0.1;
/// Share of the documents that a filter is taken to let through.
const FILTER_SHARE: f64 = 0.3;

impl Plan {
    /// The stages with what they do in words, and estimates of rows and time.
    pub fn explain(&self, around: Surroundings<'_>) -> Vec<ExplainStagePlan> {
        let context = around.inputs.map(|inputs| Context::new(inputs, around.now));
        let (mut rows, mut is_unread) = (around.documents, true);
        let mut told = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let step = asked(step, context.as_ref());
            let one = explained(&step, (index, rows), is_unread, around);
            rows = one.estimated_output.unsigned_abs();
            is_unread &= foreseen::leaves_unread(&step);
            told.push(one);
        }
        told
    }
}

/// The stage with what is asked in the place of its templates.
fn asked<'a>(step: &'a Step, context: Option<&Context>) -> Cow<'a, Step> {
    let rendered = context.and_then(|context| {
        let members = step.definition.members;
        schema::render(members, &step.parameters, context).ok()
    });
    match rendered {
        Some(parameters) => Cow::Owned(Step {
            parameters,
            ..step.clone()
        }),
        None => Cow::Borrowed(step),
    }
}

/// One stage, with the documents that come to it.
fn explained(
    step: &Step,
    (index, rows): (usize, u64),
    is_unread: bool,
    around: Surroundings<'_>,
) -> ExplainStagePlan {
    let p = Parameters::new(step.definition.members, step.parameters.clone());
    let input = match step.filters.before {
        Some(_) => share(rows),
        None => rows,
    };
    let mut told = estimate(step, input, around);
    told.millis += foreseen::waits_ms(step, &p, input, around.configured);
    if step.filters.after.is_some() {
        told.output = share(told.output);
    }
    for (raw, words) in [
        (&step.filters.before, "only of documents where"),
        (&step.filters.when, "works only on documents where"),
        (&step.filters.after, "then keeps documents where"),
    ] {
        if let Some(filter) = raw.as_ref().and_then(|raw| Filter::parse(raw).ok()) {
            told.notes.push(format!("{words} {filter}"));
        }
    }
    let lacks = around.configured.lacks(step.definition.id);
    told.warnings.extend(lacks.map(str::to_owned));
    ExplainStagePlan {
        stage_index: index as i64,
        stage_name: step.name.clone(),
        stage_type: json!(step.definition.category)
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        estimated_input: rows as i64,
        estimated_output: told.output as i64,
        estimated_efficiency: if rows == 0 {
            1.0
        } else {
            told.output as f64 / rows as f64
        },
        estimated_cost_credits: 0.0,
        estimated_duration_ms: told.millis,
        cache_likely: foreseen::is_remembered(step, &p, is_unread),
        optimization_notes: told.notes,
        warnings: told.warnings,
    }
}

/// The documents that a filter is taken to let through.
fn share(documents: u64) -> u64 {
    (documents as f64 * FILTER_SHARE).ceil() as u64
}

struct Estimate {
    output: u64,
    millis: f64,
    notes: Vec<String>,
    warnings: Vec<String>,
}

fn estimate(step: &Step, input: u64, around: Surroundings<'_>) -> Estimate {
    if step.definition.id == feature_table::DEFINITION.id {
        return search(&step.parameters, input, around);
    }
    if step.definition.id == query_expand::DEFINITION.id {
        return expanded(&step.parameters, input, around);
    }
    let known = kept(step, input).or_else(|| Some((input, arranged(step)?)));
    let Some((output, note)) = known else {
        return other(step, input);
    };
    Estimate {
        output,
        millis: STAGE_MS,
        notes: vec![note],
        warnings: Vec::new(),
    }
}

/// How many documents a stage keeps that leaves others out, and that in words.
fn kept(step: &Step, input: u64) -> Option<(u64, String)> {
    let number = |name: &str, default: u64| {
        let given = step.parameters.get(name).and_then(Value::as_u64);
        given.unwrap_or(default)
    };
    Some(match step.definition.id {
        "attribute_filter" => (
            share(input),
            format!("keeps documents where {}", condition(step)),
        ),
        "limit" => {
            let (offset, limit) = (number("offset", 0), number("limit", 10));
            (
                input.saturating_sub(offset).min(limit),
                format!("keeps {limit} documents from number {offset} on"),
            )
        }
        "sample" => {
            let count = number("count", 10);
            let note = format!("keeps {count} documents by chance");
            (input.min(count), note)
        }
        "mmr" => {
            let most = number("top_k", 25);
            let note = format!("keeps the {most} that are relevant and unlike each other");
            (input.min(most), note)
        }
        _ => return None,
    })
}

/// What a stage does, in words, that keeps every document.
fn arranged(step: &Step) -> Option<String> {
    let text = |name: &str, default: &'static str| {
        let given = step.parameters.get(name).and_then(Value::as_str);
        given.unwrap_or(default).to_owned()
    };
    Some(match step.definition.id {
        "sort_attribute" => format!(
            "orders by {}, {}",
            text("field", "metadata.created_at"),
            text("direction", "desc")
        ),
        "group_by" => format!(
            "gathers documents by {}",
            text("group_by_field", "source_object_id")
        ),
        "deduplicate" => format!(
            "leaves out documents of the same {}",
            text("strategy", "field")
        ),
        _ => return None,
    })
}

/// Milliseconds of work on one document, measured on two cores.
const DOCUMENT_MS: f64 = 0.01;

/// The stages whose words need nothing but their parameters.
fn other(step: &Step, input: u64) -> Estimate {
    let p = Parameters::new(step.definition.members, step.parameters.clone());
    let output = match step.definition.id {
        "aggregate" if p.objects("group_by").is_empty() => 1,
        "aggregate" => {
            ((input as f64).sqrt().ceil() as u64).min(p.count("limit").unwrap_or(usize::MAX) as u64)
        }
        "cluster" => p
            .count("n_clusters")
            .map_or((input as f64 / 2.0).sqrt().ceil() as u64, |n| n as u64),
        "rag_prepare" if p.word("output_mode") == "single_context" => 1,
        "rerank" => input.min(p.count("top_k").unwrap_or(usize::MAX) as u64),
        "llm_filter" => share(input),
        "summarize" if p.text("group_by").is_none() => 1,
        "summarize" => (input as f64).sqrt().ceil() as u64,
        _ => input,
    };
    let read = match step.definition.id {
        // Another machine reads what a language model rates.
        "rerank" if decision::is_asked(&p) => 0,
        "rerank" => input.min(p.count("max_candidates").unwrap_or(10) as u64),
        _ => 0,
    };
    Estimate {
        output: output.min(input.max(1)),
        // A candidate takes a model at least as long to read as a query does.
        millis: STAGE_MS + input.min(10_000) as f64 * DOCUMENT_MS + read as f64 * EMBED_MS,
        notes: vec![words(step, &p)],
        warnings: Vec::new(),
    }
}

fn words(step: &Step, p: &Parameters) -> String {
    match step.definition.id {
        "sort_relevance" => format!("orders by {}", p.word("score_field")),
        "score_normalize" => format!("brings scores to a common scale ({})", p.word("method")),
        "rerank" => format!(
            "reads the best {} once more together with the query, by their {}",
            p.count("max_candidates").unwrap_or(10),
            p.word("document_field")
        ),
        "maxsim_rerank" => format!(
            "orders by how well parts answer each sentence of the query, by `{}`",
            p.word("feature_uri")
        ),
        "aggregate" => aggregated(p),
        "cluster" => format!("gathers documents that are alike ({})", p.word("algorithm")),
        "moment_group" => format!("tells the moments of each {}", p.word("group_by_field")),
        "json_transform" => "gives each document another shape".to_owned(),
        "rag_prepare" => format!(
            "makes a context of up to {} tokens ({})",
            p.count("max_tokens").unwrap_or(8000),
            p.word("tokenizer")
        ),
        "document_enrich" => joined(step, p),
        "traverse_edge" => linked(p),
        "cross_compare" => format!(
            "compares {} with `{}`",
            p.word("source_field"),
            p.word("reference_collection_id")
        ),
        "unwind" => format!("makes a document of each member of {}", p.word("field")),
        _ => format!(
            "{} ({} parameters)",
            step.definition.about,
            step.parameters.len()
        ),
    }
}

fn aggregated(p: &Parameters) -> String {
    let by: Vec<String> = p
        .objects("group_by")
        .iter()
        .map(|g| g.word("field"))
        .collect();
    let figures = p.objects("aggregations").len();
    match by.is_empty() {
        true => format!("computes {figures} figures over all documents"),
        false => format!("computes {figures} figures for each {}", by.join(", ")),
    }
}

fn joined(step: &Step, p: &Parameters) -> String {
    match (p.text("retriever_id"), &step.inner) {
        (Some(named), _) => {
            format!("adds members of what the retriever `{named}` finds for each document")
        }
        (None, Some(_)) => {
            "adds members of what its own retriever finds for each document".to_owned()
        }
        (None, None) => format!(
            "adds members of documents whose {} has the value of {}",
            p.word("target_field"),
            p.word("source_field")
        ),
    }
}

fn linked(p: &Parameters) -> String {
    let steps = p.count("max_depth").unwrap_or(1);
    match p.text("source_field") {
        Some(source) => format!(
            "gives the documents linked by {source} and {}, up to {steps} steps away",
            p.word("target_field")
        ),
        None => format!(
            "gives the documents linked by edges of their objects ({}), up to {steps} steps away",
            p.word("direction")
        ),
    }
}

fn condition(step: &Step) -> String {
    if let Some(sentence) = step.parameters.get("natural_language") {
        return format!("a language model finds them to meet {sentence}");
    }
    let tree = match step.parameters.get("conditions") {
        Some(tree) => Filter::parse(tree).ok(),
        None => None,
    };
    tree.map(|t| t.to_string()).unwrap_or_else(|| {
        let part = |name: &str| {
            step.parameters
                .get(name)
                .map(|v| v.to_string().trim_matches('"').to_owned())
        };
        format!(
            "{} {} {}",
            part("field").unwrap_or_else(|| "metadata.status".into()),
            part("operator").unwrap_or_else(|| "eq".into()),
            part("value").unwrap_or_default()
        )
    })
}

/// A search that is asked in several ways at once.
fn expanded(own: &Object, input: u64, around: Surroundings<'_>) -> Estimate {
    let inside = own.get("feature_search_config").and_then(Value::as_object);
    let nothing = Object::new();
    let mut told = search(inside.unwrap_or(&nothing), input, around);
    let more = own.get("num_expansions").and_then(Value::as_u64);
    let more = more.unwrap_or(3);
    // Without a language model the query itself is searched for once before.
    let before = if around.configured.language { 0 } else { 1 };
    told.millis *= (more + 1 + before) as f64;
    told.notes.push(format!(
        "searches in up to {more} other ways to say the query, and makes one ranking of them"
    ));
    told
}

fn search(own: &Object, input: u64, around: Surroundings<'_>) -> Estimate {
    let searches = own.get("searches").and_then(Value::as_array);
    let searches = searches.map(Vec::as_slice).unwrap_or_default();
    let legs: Vec<Leg> = searches.iter().map(|one| leg(one, around)).collect();
    let mut notes: Vec<String> = legs.iter().map(|leg| leg.note.clone()).collect();
    let most = own.get("final_top_k").and_then(Value::as_u64).unwrap_or(25);
    let lists: u32 = legs.iter().map(|leg| leg.lists).sum();
    if lists > 1 {
        let fusion = own.get("fusion").and_then(Value::as_str).unwrap_or("rrf");
        notes.push(format!(
            "makes one ranking of {lists} lists ({fusion}) and keeps {most}"
        ));
    }
    let group = own.get("group_by").and_then(|group| group.get("field"));
    if let Some(field) = group.and_then(Value::as_str) {
        notes.push(format!("gathers documents by {field}"));
    }
    let finds = legs.iter().any(|leg| leg.finds);
    Estimate {
        output: if finds { input.min(most) } else { 0 },
        millis: legs.iter().fold(0.0, |sum, leg| sum + leg.millis),
        notes,
        warnings: legs.into_iter().filter_map(|leg| leg.warning).collect(),
    }
}

/// One of the searches of a stage.
struct Leg {
    /// Whether it may find anything.
    finds: bool,
    /// Rankings that the store gives for it.
    lists: u32,
    millis: f64,
    note: String,
    warning: Option<String>,
}

fn leg(search: &Value, around: Surroundings<'_>) -> Leg {
    let uri = search.get("feature_uri").and_then(Value::as_str);
    let uri = uri.unwrap_or_default();
    let mode = search.pointer("/query/input_mode").and_then(Value::as_str);
    let mode = mode.unwrap_or("text");
    let is_lexical = search.get("lexical").and_then(Value::as_bool) == Some(true);
    let top_k = search.get("top_k").and_then(Value::as_u64).unwrap_or(100);
    let finds = is_template(uri) || !targets(around.collections, uri, &[]).is_empty();
    let (lists, words) = match is_lexical {
        true => (2, " and by keywords"),
        false => (1, ""),
    };
    let embedding = match mode {
        "vector" | "document" => 0.0,
        _ => EMBED_MS,
    };
    Leg {
        finds,
        lists,
        millis: LIST_MS * f64::from(lists) + embedding,
        note: format!("finds up to {top_k} documents by `{uri}` from a {mode} query{words}"),
        warning: (!finds).then(|| {
            format!("no collection in reach has the feature `{uri}`: this search finds nothing")
        }),
    }
}
