//! What would make a plan faster or its answers better, told before anything is run.

use loupe_wire::{Object, StageCategory, Value};
use serde_json::json;

use super::parameters::Parameters;
use super::plan::{Plan, Step};
use crate::template::reads_the_run;

/// Stages that ask another machine, or run code, for every document.
const DEAR: [&str; 5] = [
    "llm_enrich",
    "agentic_enrich",
    "api_call",
    "web_scrape",
    "code_execution",
];

/// What to do, and why.
type Told = (String, String);

impl Plan {
    /// What would make the plan faster, or its answers better: `{stage_name, suggestion, reason}`.
    pub fn suggestions(&self) -> Vec<Object> {
        let mut found = Vec::new();
        for (place, step) in self.steps.iter().enumerate() {
            let (before, after) = (&self.steps[..place], self.steps.get(place + 1));
            let told = late_filter(step, before)
                .or_else(|| unread(step, before))
                .or_else(|| late_limit(step, after?));
            if let Some((suggestion, reason)) = told {
                let told = [
                    ("stage_name", step.name.clone()),
                    ("suggestion", suggestion),
                    ("reason", reason),
                ];
                let told = told.map(|(name, text)| (name.to_owned(), Value::String(text)));
                found.push(Object::from_iter(told));
            }
        }
        found
    }
}

/// The search whose documents come to a stage as they were found, some left out and in another order maybe.
fn search_before(before: &[Step]) -> Option<&Step> {
    let place = before
        .iter()
        .rposition(|step| step.definition.id == "feature_search")?;
    let between = before[place + 1..].iter();
    let mut kinds = between.map(|step| step.definition.category);
    let plain = kinds.all(|kind| matches!(kind, StageCategory::Filter | StageCategory::Sort));
    plain.then(|| &before[place])
}

/// Conditions of what documents hold, asked of what a search has found.
fn late_filter(step: &Step, before: &[Step]) -> Option<Told> {
    let own = &step.parameters;
    let is_filter =
        step.definition.id == "attribute_filter" && !own.contains_key("natural_language");
    // What the search itself gives is there behind it alone.
    let written = json!(own);
    let of_search = written.to_string().contains("\"score") || reads_the_run(&written);
    let search = search_before(before).filter(|_| is_filter && !of_search)?;
    Some((
        format!("put it before `{}`", search.name),
        "what stands before a search is a part of its question; behind it, fewer documents are left than were asked for"
            .to_owned(),
    ))
}

/// Documents that come to a reranker and are not read.
fn unread(step: &Step, before: &[Step]) -> Option<Told> {
    let read = |step: &Step| Parameters::new(step.definition.members, step.parameters.clone());
    let own = read(step);
    let search = search_before(before).filter(|_| step.definition.id == "rerank")?;
    let found = read(search).count("final_top_k")?;
    let judged = own.count("max_candidates")?;
    let kept = own.count("top_k").unwrap_or(found);
    (judged < found.min(kept)).then(|| {
        (
            format!("raise max_candidates to {}", found.min(1_000)),
            format!(
                "it reads {judged} of the {found} documents that `{}` finds; the others follow in their order",
                search.name
            ),
        )
    })
}

/// Work on documents that the next stage leaves out.
fn late_limit(step: &Step, after: &Step) -> Option<Told> {
    let removes = step.parameters.get("on_error").and_then(Value::as_str) == Some("remove");
    let is_late = DEAR.contains(&step.definition.id) && after.definition.id == "limit" && !removes;
    is_late.then(|| {
        (
            format!("put `{}` before it", after.name),
            "it works on every document, and the limit leaves some of them out".to_owned(),
        )
    })
}
