//! Stages compiled once, and what they run with and give.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use chrono::{DateTime, Utc};
use loupe_wire::{
    DegradedEntry, LimitEntry, Object, RetrieverExecutionStatistics, RetrieverPagination,
    StageStatistics, Value,
};
use serde_json::json;
use tokio::sync::mpsc;

use super::called::Inner;
use super::taxonomy::Taxonomy;
use super::{
    Act, Around, CodeConfig, Definition, Files, Keeping, Retrievers, ReverseImage, Searchable,
    Tables, WebSearch, api_call, language, learned,
};
use crate::embed::Encoders;
use crate::extract::Extraction;
use crate::filter::Filter;
use crate::store::DocStore;
use crate::template::{Context, is_template, render_text};
use crate::web::Web;

/// The stages of a retriever, checked.
#[derive(Clone)]
pub struct Plan {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone)]
pub(crate) struct Step {
    pub name: String,
    pub definition: &'static Definition,
    pub parameters: Object,
    /// An error of this stage is told and the stage left out.
    pub lenient: bool,
    pub alias: Option<String>,
    /// Conditions of what goes in, of what comes out, and of the documents that a stage works on.
    pub filters: Filters,
    /// How many documents are worked on at once; may be a template.
    pub batch_size: Option<String>,
    /// The retriever that the stage tells and runs.
    pub inner: Option<Arc<Inner>>,
}

/// The parameters that every stage takes, as written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub when: Option<Value>,
}

/// What one execution works with.
pub struct Run {
    pub store: Arc<dyn DocStore>,
    pub encoders: Arc<dyn Encoders>,
    pub namespace_id: String,
    /// The end user whose documents alone may be read; see [`Reach::principal`].
    pub principal: Option<String>,
    pub collections: Vec<Searchable>,
    /// Collections that stages name beside those; see [`Plan::references`].
    pub references: Vec<Searchable>,
    /// Taxonomies that stages name; see [`Plan::taxonomies`].
    pub taxonomies: Vec<Arc<Taxonomy>>,
    /// Checked by [`super::check_inputs`].
    pub inputs: Object,
    /// The filter of the request, applied to everything read.
    pub filter: Option<Filter>,
    pub now: DateTime<Utc>,
    pub max_time_ms: Option<u64>,
    pub pagination: Option<RetrieverPagination>,
    /// The request's `limit`: the page size, whatever the method.
    pub limit: Option<i64>,
    pub return_vectors: bool,
    /// Whether the outcome tells why its documents stand where they do.
    pub explain: bool,
    /// The values of the secrets that stages send along; see [`Plan::secrets`].
    pub secrets: HashMap<String, String>,
    /// Asks other services for stages, and reads the URLs of queries; without it they are refused.
    pub web: Option<Arc<dyn Web>>,
    /// The search service of the web, where one is configured.
    pub web_search: Option<Arc<WebSearch>>,
    pub outside: Outside,
    /// What searches and models gave before; nothing is remembered without it.
    pub keeping: Option<Keeping>,
    /// Is told of every stage; a slow reader makes the stages wait.
    pub watch: Option<mpsc::Sender<StageEvent>>,
    /// What people did with earlier answers; see [`Plan::learns`].
    pub acts: Arc<Vec<Act>>,
    /// What the server holds and counts of this execution.
    pub around: Option<Arc<dyn Around>>,
    /// The fields that whoever asks is shown, with what lies in them; all where absent.
    pub shown: Option<Arc<[String]>>,
    /// Fields whose values are counted in all that is found, in place of what stages count of them.
    pub counted: Vec<String>,
}

/// What stages may use beyond the store and the models; what is absent is told by the stage that needs it.
#[derive(Clone, Default)]
pub struct Outside {
    /// Decodes pages of the web.
    pub extraction: Option<Extraction>,
    /// Searches by picture.
    pub reverse_image: Option<Arc<ReverseImage>>,
    /// The databases of the organization's connections.
    pub tables: Option<Arc<dyn Tables>>,
    /// Code is run, within these bounds.
    pub code: Option<CodeConfig>,
    /// The stored retrievers that stages run.
    pub retrievers: Option<Arc<dyn Retrievers>>,
    /// The files that documents name.
    pub files: Option<Arc<dyn Files>>,
    /// Datasets over which the retriever's last evaluation fell behind; see [`Plan::datasets`].
    pub fallen: Arc<[String]>,
    /// Retrievers that this one runs inside of.
    pub depth: usize,
    /// Retrievers that stages of this execution have run so far; counted from here on where absent.
    pub runs: Option<Arc<AtomicUsize>>,
}

impl Run {
    /// A search inside of this one: over other collections, with inputs of its own, without what the request asks of the
    /// answer. It uses no taxonomies: a taxonomy could use itself.
    pub(crate) fn inner(
        &self,
        collections: Vec<Searchable>,
        references: Vec<Searchable>,
        secrets: HashMap<String, String>,
        inputs: Object,
        limit: usize,
    ) -> Self {
        Self {
            store: self.store.clone(),
            encoders: self.encoders.clone(),
            namespace_id: self.namespace_id.clone(),
            principal: self.principal.clone(),
            collections,
            references,
            taxonomies: Vec::new(),
            inputs,
            filter: None,
            now: self.now,
            max_time_ms: None,
            pagination: None,
            limit: i64::try_from(limit).ok(),
            return_vectors: false,
            explain: false,
            secrets,
            web: self.web.clone(),
            web_search: self.web_search.clone(),
            outside: self.outside.clone(),
            keeping: self.keeping.clone(),
            watch: None,
            acts: Arc::default(),
            around: self.around.clone(),
            shown: self.shown.clone(),
            counted: Vec::new(),
        }
    }
}

/// What happened to a stage: it began, it ended with statistics, or it failed.
#[derive(Debug, Clone)]
pub struct StageEvent {
    pub name: String,
    pub index: usize,
    pub total: usize,
    pub statistics: Option<StageStatistics>,
    /// The first rows that the stage leaves, a page of them.
    pub documents: Vec<Object>,
    pub error: Option<String>,
}

/// What an execution gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The rows of the page: `document_id`, `collection_id`, `score`, user fields, `_internal`.
    pub documents: Vec<Object>,
    /// `{key, values: [{value, count}]}` a facet; see [`Run::counted`].
    pub facets: Vec<Object>,
    pub statistics: RetrieverExecutionStatistics,
    pub warnings: Vec<String>,
    /// `relaxations`: the conditions that were removed for want of an input.
    pub interpretation: Object,
    pub degraded: Vec<DegradedEntry>,
    /// Where a stage worked on less than came to it.
    pub limits: Vec<LimitEntry>,
    /// Stages that were to enrich documents and did not, and why the first of them did not.
    pub skipped: Vec<String>,
    pub skip_reason: Option<String>,
    /// Asked again, the same search may find what is missing by `degraded`.
    pub may_pass: bool,
    /// Rows of the whole answer.
    pub total: u64,
    pub pagination: Object,
    /// By stage: what fusion has learned, and which list has which document where.
    pub learned: Object,
    /// By document: its place and scores after each stage, where that was asked for.
    pub ranking: Object,
    /// The time ran out: what is here is what the stages had until then.
    pub timed_out: bool,
}

impl Plan {
    /// The stages, and those of retrievers that stages tell.
    pub(super) fn every_step(&self) -> Vec<&Step> {
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            steps.push(step);
            if let Some(inner) = &step.inner {
                steps.extend(inner.plan.every_step());
            }
        }
        steps
    }

    /// Whether one document may become several rows: one for each member of a list, or for each thing found in it.
    pub fn multiplies(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step.definition.id, "unwind" | "cross_compare"))
    }

    /// The stored retrievers that stages run. Whoever makes a retriever must be allowed to execute them.
    pub fn retrievers(&self) -> Vec<String> {
        let steps = self.every_step().into_iter();
        let named = steps.filter(|step| step.definition.id == "document_enrich");
        let mut list: Vec<String> = named
            .filter_map(|step| step.parameters.get("retriever_id")?.as_str())
            .map(str::to_owned)
            .collect();
        list.sort();
        list.dedup();
        list
    }

    /// The collections that stages name by id or name beyond those of the retriever. Whoever makes a retriever must be
    /// allowed to read them.
    pub fn references(&self) -> Vec<String> {
        let named = self.every_step().into_iter().flat_map(|step| {
            let one = ["target_collection_id", "reference_collection_id"]
                .into_iter()
                .filter_map(|name| step.parameters.get(name));
            let list = step.parameters.get("example_collection_ids");
            let list = list.and_then(Value::as_array).into_iter().flatten();
            let inner = step.inner.iter().flat_map(|inner| &inner.collections);
            one.chain(list)
                .filter_map(Value::as_str)
                .chain(inner.map(String::as_str))
        });
        let mut list: Vec<String> = named
            .filter(|text| !is_template(text))
            .map(str::to_owned)
            .collect();
        list.sort();
        list.dedup();
        list
    }

    /// The taxonomies that stages name. Whoever makes a retriever must be allowed to use them.
    pub fn taxonomies(&self) -> Vec<String> {
        let steps = self.every_step().into_iter();
        let named =
            steps.filter(|step| matches!(step.definition.id, "taxonomy_enrich" | "agentic_enrich"));
        let mut list: Vec<String> = named
            .filter_map(|step| step.parameters.get("taxonomy_id")?.as_str())
            .filter(|text| !is_template(text))
            .map(str::to_owned)
            .collect();
        list.sort();
        list.dedup();
        list
    }

    /// The connections whose databases stages read. Whoever makes a retriever must be allowed to use them.
    pub fn connections(&self) -> Vec<String> {
        let steps = self.every_step().into_iter();
        let named = steps.filter(|step| step.definition.id == "sql_lookup");
        let mut list: Vec<String> = named
            .filter_map(|step| step.parameters.get("connection_id")?.as_str())
            .map(str::to_owned)
            .collect();
        list.sort();
        list.dedup();
        list
    }

    /// The names of the secrets that stages send to other services. Who makes such a retriever could read them.
    pub fn secrets(&self) -> Vec<String> {
        let named = self.every_step().into_iter().flat_map(|step| {
            let own = &step.parameters;
            let inside = |object: &str, name: &str| own.get(object)?.get(name)?.as_str();
            let key = own.get("api_key").and_then(Value::as_str);
            let keys = key
                .into_iter()
                .chain(inside("analysis_provider", "api_key"));
            let sent = inside("auth", "secret_ref");
            let named = keys.map(language::secret_named).chain(sent);
            let read = match step.definition.id {
                "api_call" => api_call::secrets_read(own),
                _ => Vec::new(),
            };
            named.map(str::to_owned).chain(read)
        });
        let mut list: Vec<String> = named.collect();
        list.sort();
        list.dedup();
        list
    }

    /// How long an answer waits for what people did with earlier ones, where a search is fused by that or may be.
    pub fn learns(&self) -> Option<Duration> {
        let patience = self.steps.iter().filter_map(|step| {
            let inside = step.parameters.get("feature_search_config");
            let search = inside.and_then(Value::as_object);
            let search = search.unwrap_or(&step.parameters);
            if !learned::may_be_asked(search) {
                return None;
            }
            let config = search.get("learning_config");
            let limit = config.and_then(|config| config.get("circuit_breaker_timeout_ms"));
            Some(limit.and_then(Value::as_u64).unwrap_or(1_000))
        });
        patience.min().map(Duration::from_millis)
    }

    /// The page without pagination: what the last search returns, else 10.
    pub(super) fn default_page(&self, context: &Context) -> usize {
        let search = self
            .steps
            .iter()
            .rev()
            .find(|s| matches!(s.definition.id, "feature_search" | "query_expand"));
        search.map_or(10, |step| {
            let inside = step.parameters.get("feature_search_config");
            let asked = inside
                .and_then(|search| search.get("final_top_k"))
                .or_else(|| step.parameters.get("final_top_k"));
            let asked = match asked {
                // What is no number is refused by the stage itself.
                Some(Value::String(text)) => {
                    let text = render_text(text, context).unwrap_or_default();
                    text.trim().parse().ok()
                }
                asked => asked.and_then(Value::as_u64),
            };
            asked.unwrap_or(25).clamp(1, 5_000) as usize
        })
    }

    /// Two runs with the same fingerprint rank the same documents for the same question.
    pub(super) fn fingerprint(&self, run: &Run) -> String {
        use sha2::{Digest, Sha256};
        let stages: Vec<Value> = self
            .steps
            .iter()
            .map(|s| {
                let Filters {
                    before,
                    after,
                    when,
                } = &s.filters;
                json!([s.definition.id, s.parameters, before, after, when])
            })
            .collect();
        let collections: Vec<&str> = run
            .collections
            .iter()
            .map(|c| c.collection_id.as_str())
            .collect();
        // With whether case counts, which its words leave out.
        let filter = format!("{:?}", run.filter);
        let text = json!([
            stages,
            run.inputs,
            filter,
            run.namespace_id,
            run.principal,
            collections
        ])
        .to_string();
        hex::encode(&Sha256::digest(text.as_bytes())[..8])
    }
}
