//! The stages of a retriever and the plan that runs them.
//!
//! A [`Plan`] is compiled once from the stages of a retriever and run any number of times. Stages work in order over
//! one working set of rows; a filter that comes first is not run by itself but handed to the stage that reads the
//! store, and a set that no stage has read is listed page by page.

mod admission;
mod agent;
mod agent_search;
mod agentic_enrich;
mod aggregate;
mod analysis;
mod api_call;
mod around;
mod attribute_filter;
mod called;
mod cluster;
mod code_execution;
mod compile;
mod cross_compare;
mod decision;
mod decompose;
mod dispatching;
mod document_enrich;
mod execution;
mod explain;
mod exploring;
mod facets;
mod feature_search;
mod feature_table;
mod foreseen;
mod fusion;
mod group;
mod inputs;
mod json_transform;
mod kept;
mod language;
mod learned;
pub(crate) mod likeness;
mod lists;
mod llm_enrich;
mod llm_filter;
mod maxsim;
mod mmr;
mod moments;
mod page;
mod parameters;
mod pictures;
mod plan;
mod query;
mod query_expand;
mod rag_prepare;
mod reduce;
mod relevance;
mod rerank;
mod reverse_image;
mod running;
mod sandbox;
mod schema;
mod sentence;
mod shipped;
mod sort;
mod sql_lookup;
mod suggestions;
mod summarize;
mod targets;
pub mod taxonomy;
mod taxonomy_enrich;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tokens;
mod toolbox;
mod traverse_edge;
mod unwind;
mod ways;
mod web_scrape;
mod web_search;
mod working;

use loupe_wire::{RetrieverStageDefinition, StageCategory};

pub use around::{Around, Metered};
pub use called::{Called, Retrievers};
pub use explain::Surroundings;
pub use inputs::{Violation, check_inputs};
pub use kept::{Keeping, Kept};
pub use learned::{Act, ranks_of};
pub use page::POSITION as KEY_POSITION;
pub use pictures::Files;
pub use plan::{Outcome, Outside, Plan, Run, StageEvent};
pub use reverse_image::{ReverseImage, ReverseImageConfig};
pub use running::Failure;
pub use sandbox::CodeConfig;
pub use sql_lookup::{Lookup, NotAsked, Tables};
pub use web_search::{WebSearch, WebSearchConfig, WebSearchProtocol};

use crate::embed::EmbedError;
use crate::store::StoreError;
use schema::Member;

/// Why a stage was refused when a retriever was made, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageProblem {
    /// From `stages` on: `["stages", "0", "config", "parameters", "final_top_k"]`.
    pub loc: Vec<String>,
    pub msg: String,
    /// The word of the kind of problem, such as `extra_forbidden`.
    pub r#type: &'static str,
}

/// Why a run gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The inputs do not give something that the stages can work with; safe to show.
    #[error("{0}")]
    Invalid(String),
    /// A service that a stage asks is away or in trouble, and that was to end the search: another try may go better.
    #[error("{0}")]
    Away(String),
    /// The cursor, scroll or key of the page is not one of this search.
    #[error("{0}")]
    Cursor(String),
    /// The organization used so much in this minute that it has to wait.
    #[error("{message}")]
    Limited {
        what: Metered,
        message: String,
        retry_after: u64,
    },
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunError {
    /// What is told of it: nothing of what went wrong inside of the store.
    pub fn told(&self) -> String {
        match self {
            Self::Store(StoreError::Internal(_)) => "the document store failed".to_owned(),
            other => other.to_string(),
        }
    }
}

impl From<crate::template::TemplateError> for RunError {
    fn from(error: crate::template::TemplateError) -> Self {
        Self::Invalid(error.0)
    }
}

impl From<crate::filter::FilterError> for RunError {
    fn from(error: crate::filter::FilterError) -> Self {
        Self::Invalid(format!("the filter cannot be used: {error}"))
    }
}

/// One vector index of a collection in reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchIndex {
    /// Absent for the caller's own vectors.
    pub feature_uri: Option<String>,
    /// The name in the store.
    pub name: String,
    /// The output segment: equal outputs are one embedding space.
    pub output: String,
    pub dims: usize,
}

/// A collection that a run may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searchable {
    pub collection_id: String,
    pub name: String,
    pub indexes: Vec<SearchIndex>,
}

/// The index of a collection that has a feature's vectors, by the feature's address or the index's own name.
pub fn index_of(collection: &Searchable, feature: &str) -> Option<String> {
    let found = targets::targets(std::slice::from_ref(collection), feature, &[]);
    found.into_iter().next().map(|target| target.index)
}

/// What a stage is and takes.
pub(crate) struct Definition {
    pub id: &'static str,
    pub aliases: &'static [&'static str],
    pub category: StageCategory,
    pub icon: &'static str,
    pub about: &'static str,
    pub members: &'static [Member],
}

impl Definition {
    /// Whether the stage works on each document by itself, so that it can be told which.
    pub fn is_per_document(&self) -> bool {
        matches!(self.category, StageCategory::Apply | StageCategory::Enrich)
    }
}

/// The stages that run.
pub(crate) static BUILT: [&Definition; 34] = [
    &feature_table::DEFINITION,
    &attribute_filter::DEFINITION,
    &llm_filter::DEFINITION,
    &query_expand::DEFINITION,
    &relevance::DEFINITION,
    &sort::ATTRIBUTE,
    &rerank::DEFINITION,
    &maxsim::DEFINITION,
    &mmr::DEFINITION,
    &sort::NORMALIZE,
    &aggregate::DEFINITION,
    &reduce::SAMPLE,
    &summarize::DEFINITION,
    &cluster::DEFINITION,
    &group::DEFINITION,
    &reduce::LIMIT,
    &reduce::DEDUPLICATE,
    &moments::DEFINITION,
    &json_transform::DEFINITION,
    &rag_prepare::DEFINITION,
    &web_search::DEFINITION,
    &cross_compare::DEFINITION,
    &unwind::DEFINITION,
    &traverse_edge::DEFINITION,
    &document_enrich::DEFINITION,
    &taxonomy_enrich::DEFINITION,
    &llm_enrich::DEFINITION,
    &api_call::DEFINITION,
    &web_scrape::DEFINITION,
    &agent_search::DEFINITION,
    &agentic_enrich::DEFINITION,
    &reverse_image::DEFINITION,
    &sql_lookup::DEFINITION,
    &code_execution::DEFINITION,
];

/// What this server is configured with that stages need.
#[derive(Debug, Clone, Copy, Default)]
pub struct Configured {
    pub language: bool,
    pub web_search: bool,
    pub reverse_image: bool,
    pub code: bool,
}

impl Configured {
    /// What a stage needs that is not configured.
    fn lacks(self, stage: &str) -> Option<&'static str> {
        let (has, reason) = match stage {
            "llm_filter" | "llm_enrich" | "summarize" | "agent_search" | "agentic_enrich" => (
                self.language,
                "no language model is configured; set `models.language` of the server",
            ),
            "external_web_search" => (
                self.web_search,
                "no web search is configured; set `web_search` of the server",
            ),
            "external_reverse_image" => (
                self.reverse_image,
                "no search by picture is configured; set `reverse_image` of the server",
            ),
            "code_execution" => (
                self.code,
                "code is not run here; set `code.enabled` of the server",
            ),
            _ => (true, ""),
        };
        (!has).then_some(reason)
    }
}

/// Every stage that this version knows, with the schema of its parameters, and what it lacks here.
pub fn catalogue(configured: Configured) -> Vec<RetrieverStageDefinition> {
    BUILT
        .iter()
        .map(|d| {
            let lacks = configured.lacks(d.id);
            RetrieverStageDefinition {
                stage_id: d.id.to_owned(),
                description: d.about.to_owned(),
                category: d.category,
                icon: d.icon.to_owned(),
                parameter_schema: Some(parameter_schema(d)),
                available: lacks.is_none(),
                unavailable_reason: lacks.map(str::to_owned),
            }
        })
        .collect()
}

fn parameter_schema(definition: &Definition) -> loupe_wire::Object {
    let mut schema = schema::json_schema(definition.members);
    let mut more = schema::json_schema(schema::COMMON);
    if definition.is_per_document() {
        let when = schema::json_schema(&[schema::WHEN]);
        merge(&mut more, &when);
    }
    merge(&mut schema, &more);
    schema
}

/// Adds the properties that a schema does not have.
fn merge(schema: &mut loupe_wire::Object, more: &loupe_wire::Object) {
    let more = more.get("properties").and_then(|p| p.as_object());
    if let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) {
        for (name, property) in more.into_iter().flatten() {
            properties
                .entry(name.clone())
                .or_insert_with(|| property.clone());
        }
    }
}
