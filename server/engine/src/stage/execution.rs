//! One run of a plan: what its stages share, and how one of them is run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use loupe_wire::{
    DegradedEntry, Object, RetrieverExecutionStatistics, StageStatistics, Value, reading,
};
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;

use super::around::Metered;
use super::called::Inner;
use super::parameters::Parameters;
use super::plan::{Outcome, Run, StageEvent, Step};
use super::schema::{self, When};
use super::working::{MAX_ROWS, Row, Working};
use super::{RunError, Searchable, page};
use super::{
    agent_search, agentic_enrich, aggregate, api_call, attribute_filter, cluster, code_execution,
    cross_compare, document_enrich, feature_search, group, json_transform, llm_enrich, llm_filter,
    maxsim, mmr, moments, query_expand, rag_prepare, reduce, relevance, rerank, reverse_image,
    sort, sql_lookup, summarize, taxonomy_enrich, traverse_edge, unwind, web_scrape, web_search,
};
use crate::filter::{Filter, Resolved};
use crate::store::{Reach, StoreError};
use crate::template::{Context, Rendered, render_operand, render_text};

/// Documents of a stage that templates of later ones may read under its alias.
const MAX_EXPOSED: usize = 50;

/// How long an execution whose time ran out waits for its turn.
const TURN: Duration = Duration::from_millis(250);
/// Most documents that a stage works on at once.
pub(crate) const MAX_BATCH: usize = 1_000;

/// What stages tell beside their rows.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub warnings: Vec<String>,
    pub degraded: Vec<DegradedEntry>,
    pub facets: Vec<Object>,
    pub relaxations: Vec<String>,
    /// By stage: what fusion has learned.
    pub learned: Object,
    /// Of the stage that runs.
    pub metadata: Object,
    /// Of the stage that runs, where it is not the number of rows.
    pub output: Option<u64>,
    /// Whether the stage's rows came from memory, where they may.
    pub kept: Option<bool>,
    /// Questions of the stage to a language model, and their tokens.
    pub llm_calls: u64,
    pub tokens: u64,
}

pub(crate) struct Execution {
    pub run: Run,
    pub context: Context,
    pub report: Report,
    /// The stage that runs.
    pub stage: String,
    /// The lists that the last search made one ranking of, and the feature that each is of.
    pub legs: Vec<(String, String)>,
    /// Documents that the stage works on at once, where the retriever says so.
    pub batch: Option<usize>,
    /// The retriever that the stage tells.
    pub inner: Option<Arc<Inner>>,
    /// What `CONTEXT` holds.
    shared: Object,
    started: Instant,
}

impl Execution {
    pub fn new(mut run: Run) -> Self {
        // What runs inside of this one is counted with it.
        run.outside.runs.get_or_insert_default();
        let mut context = Context::new(&run.inputs, run.now);
        context.set("CONTEXT", &json!({}));
        context.set("STAGE", &json!({}));
        Self {
            run,
            context,
            report: Report::default(),
            stage: String::new(),
            legs: Vec::new(),
            batch: None,
            inner: None,
            shared: Object::new(),
            started: Instant::now(),
        }
    }

    pub fn begin(&mut self, step: &Step) {
        self.stage.clone_from(&step.name);
        self.batch = None;
        self.inner.clone_from(&step.inner);
        self.report.metadata.clear();
        self.report.output = None;
        self.report.kept = None;
        (self.report.llm_calls, self.report.tokens) = (0, 0);
    }

    /// `None`: the time ran out.
    pub async fn bounded(
        &mut self,
        step: &Step,
        set: Working,
    ) -> Result<Option<Working>, RunError> {
        match self.run.max_time_ms {
            None => work(step, self, set).await.map(Some),
            Some(budget) => {
                let left = Duration::from_millis(budget).saturating_sub(self.started.elapsed());
                match tokio::time::timeout(left, work(step, self, set)).await {
                    Ok(done) => done.map(Some),
                    Err(_) => {
                        // It may have waited for another machine, without its turn; whoever waits for the answer has no time.
                        let _ = tokio::time::timeout(TURN, self.back()).await;
                        Ok(None)
                    }
                }
            }
        }
    }

    pub fn out_of_time(&mut self, step: &Step) -> String {
        let reason = format!(
            "the time of {} ms ran out",
            self.run.max_time_ms.unwrap_or_default()
        );
        self.degrade(
            "stage",
            &step.name,
            &reason,
            "ask again, or raise max_time_ms of the retriever's budget",
        );
        reason
    }

    /// The documents of the collections in reach, or of those named by id or name alone.
    pub fn reach(&self, only: &[String]) -> Reach {
        let named = |c: &&Searchable| {
            only.is_empty() || only.contains(&c.collection_id) || only.contains(&c.name)
        };
        Reach {
            namespace_id: self.run.namespace_id.clone(),
            collection_ids: self
                .run
                .collections
                .iter()
                .filter(named)
                .map(|c| c.collection_id.clone())
                .collect(),
            principal: self.run.principal.clone(),
        }
    }

    /// A filter of a stage with inputs in place of dynamic values and templates.
    pub fn filter(&mut self, raw: &Value) -> Result<Filter, RunError> {
        self.resolve(Filter::parse(raw)?)
    }

    pub fn resolve(&mut self, filter: Filter) -> Result<Filter, RunError> {
        let (inputs, context) = (&self.run.inputs, &self.context);
        let (filter, removed) = filter.resolve_with(&mut |value| {
            let dynamic = crate::filter::resolve_dynamic(value, inputs);
            let Resolved::Value(value) = dynamic else {
                return Ok(dynamic);
            };
            Ok(match render_operand(&value, context).map_err(|e| e.0)? {
                Rendered::Value(value) => Resolved::Value(value),
                Rendered::Missing(expression) => Resolved::Missing(expression),
            })
        })?;
        self.report.relaxations.extend(removed);
        Ok(filter)
    }

    /// The rows of a set, read from the store where no stage has; said where there are more than a set holds.
    pub async fn rows(&mut self, set: Working) -> Result<Vec<Row>, RunError> {
        let unread = matches!(set, Working::Unread { .. });
        let rows = set.rows(&*self.run.store, &self.reach(&[])).await?;
        if unread && rows.len() >= MAX_ROWS {
            self.warn(format!(
                "stage `{}`: only the first {MAX_ROWS} documents were read; narrow the filter",
                self.stage
            ));
        }
        Ok(rows)
    }

    /// What a template may read about one document: `DOC`, and its place as `CONTEXT.INDEX`.
    pub fn context_of(&self, row: &Row, index: usize) -> Context {
        let mut context = self.context.clone();
        context.set("DOC", &row.value);
        context.extend("CONTEXT", &json!({"INDEX": index}));
        context
    }

    /// Tells whoever watches, with the first rows of what a stage left.
    pub async fn tell(&self, mut event: StageEvent, left: Option<(&Working, usize)>) {
        let Some(watch) = &self.run.watch else { return };
        if let Some((Working::Rows(rows), most)) = left {
            let objects = rows.iter().take(most).filter_map(|r| r.value.as_object());
            event.documents = objects.cloned().collect();
        }
        // Nobody reads any more: whoever dropped the other end drops the execution, too.
        let Err(TrySendError::Full(event)) = watch.try_send(event) else {
            return;
        };
        // Whoever reads slowly holds up no other search.
        let _ = self.away(watch.send(event)).await;
    }

    /// Waits for another machine without holding a search's turn.
    pub async fn away<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(around) = &self.run.around else {
            return work.await;
        };
        around.leave();
        let done = work.await;
        around.back().await;
        done
    }

    /// Takes a turn again after a wait that was cut off.
    pub async fn back(&self) {
        if let Some(around) = &self.run.around {
            around.back().await;
        }
    }

    /// Counts what the organization uses, before it does.
    pub fn spend(&self, what: Metered, amount: u64) -> Result<(), RunError> {
        let Some(around) = &self.run.around else {
            return Ok(());
        };
        around.spend(what, amount).map_err(|retry_after| {
            let used = match what {
                Metered::LanguageTokens => "tokens of language models",
                Metered::WebSearches => "searches of the web",
            };
            let message = format!(
                "stage `{}`: the organization has used its {used} of this minute",
                self.stage
            );
            RunError::Limited {
                what,
                message,
                retry_after,
            }
        })
    }

    /// The collections of that id or name: of the retriever, else among those that its stages name.
    pub fn collections_named(&self, identifier: &str) -> Result<Vec<Searchable>, RunError> {
        let named = |c: &&Searchable| c.collection_id == identifier || c.name == identifier;
        let run = &self.run;
        let found = run.collections.iter().chain(&run.references).find(named);
        found.cloned().map(|one| vec![one]).ok_or_else(|| {
            RunError::Invalid(format!(
                "stage `{}`: there is no collection `{identifier}`",
                self.stage
            ))
        })
    }

    /// Those collections as a place to read from.
    pub fn reach_of(&self, collections: &[Searchable]) -> Reach {
        Reach {
            namespace_id: self.run.namespace_id.clone(),
            collection_ids: collections
                .iter()
                .map(|c| c.collection_id.clone())
                .collect(),
            principal: self.run.principal.clone(),
        }
    }

    pub fn warn(&mut self, text: String) {
        if !self.report.warnings.contains(&text) {
            self.report.warnings.push(text);
        }
    }

    pub fn degrade(&mut self, resource: &str, id: &str, reason: &str, next_step: &str) {
        self.report.degraded.push(DegradedEntry {
            resource: resource.to_owned(),
            id: Some(id.to_owned()),
            reason: reason.to_owned(),
            next_step: next_step.to_owned(),
            stage: Some(self.stage.clone()),
        });
    }

    pub fn statistics(
        &mut self,
        input: u64,
        output: u64,
        took: Duration,
        error: Option<String>,
    ) -> StageStatistics {
        StageStatistics {
            input_count: input as i64,
            output_count: output as i64,
            duration_ms: millis(took),
            efficiency: if input == 0 {
                1.0
            } else {
                output as f64 / input as f64
            },
            error,
            llm_calls: (self.report.llm_calls > 0).then_some(self.report.llm_calls as i64),
            tokens_used: (self.report.tokens > 0).then_some(self.report.tokens as i64),
            stage_cache_hit: self.report.kept,
            metadata: std::mem::take(&mut self.report.metadata),
            ..Default::default()
        }
    }

    /// What templates of later stages may read about this one.
    pub fn expose(&mut self, step: &Step, set: &Working, input: u64, output: u64) {
        let elapsed = self.started.elapsed().as_millis() as u64;
        let left = self.run.max_time_ms.map(|max| max.saturating_sub(elapsed));
        // What stages before left under their aliases stays readable.
        let mut context = Value::Object(self.shared.clone());
        context["time_elapsed_ms"] = json!(elapsed);
        context["budget_remaining"] = json!(left);
        if let Some(alias) = &step.alias {
            let rows = match set {
                Working::Rows(rows) => rows.as_slice(),
                Working::Unread { .. } => &[],
            };
            let documents: Vec<&Value> = rows.iter().take(MAX_EXPOSED).map(|r| &r.value).collect();
            context[alias] =
                json!({"input_count": input, "output_count": output, "documents": documents});
        }
        self.context.set("CONTEXT", &context);
        if let Value::Object(context) = context {
            self.shared = context;
        }
        self.context.set(
            "STAGE",
            &json!({"name": step.name, "input_count": input, "output_count": output}),
        );
    }

    pub fn finish(
        self,
        cut: page::Cut,
        stages: IndexMap<String, StageStatistics>,
        timed_out: bool,
    ) -> Outcome {
        let mut interpretation = Object::new();
        if !self.report.relaxations.is_empty() {
            interpretation.insert("relaxations".into(), json!(self.report.relaxations));
        }
        let object = |row: Row| match row.value {
            Value::Object(object) => Some(object),
            _ => None,
        };
        Outcome {
            documents: cut.rows.into_iter().filter_map(object).collect(),
            facets: self.report.facets,
            statistics: RetrieverExecutionStatistics {
                stages,
                total_time_ms: millis(self.started.elapsed()),
                ..Default::default()
            },
            warnings: self.report.warnings,
            interpretation,
            degraded: self.report.degraded,
            total: cut.total,
            pagination: cut.pagination,
            learned: self.report.learned,
            timed_out,
        }
    }
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

/// Runs a stage between the conditions of what goes in, of what it works on and of what comes out.
async fn work(step: &Step, at: &mut Execution, set: Working) -> Result<Working, RunError> {
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

/// Runs work that keeps a processor busy, away from the threads that serve requests.
pub(crate) async fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RunError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| StoreError::Internal(format!("a stage stopped: {e}")).into())
}

/// The typed parameters of a stage whose table has been checked.
pub(crate) fn typed<T: serde::de::DeserializeOwned>(
    at: &Execution,
    parameters: Object,
) -> Result<T, RunError> {
    reading::from_value(&Value::Object(parameters)).map_err(|e| {
        RunError::Invalid(format!(
            "stage `{}`: the parameters cannot be read: {e}",
            at.stage
        ))
    })
}
