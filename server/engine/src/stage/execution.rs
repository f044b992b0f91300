//! One run of a plan: what its stages share and tell.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use loupe_wire::{
    DegradedEntry, LimitEntry, Object, RetrieverExecutionStatistics, StageCategory,
    StageStatistics, Value, reading,
};
use serde_json::json;
use tokio::sync::mpsc::error::TrySendError;

use super::around::Metered;
use super::called::Inner;
use super::dispatching::work;
use super::plan::{Outcome, Run, StageEvent, Step};
use super::ways::Ways;
use super::working::{MAX_ROWS, Row, Working};
use super::{RunError, Searchable, page};
use crate::filter::{Filter, Resolved};
use crate::store::{Reach, StoreError};
use crate::template::{Context, Rendered, render_operand};

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
    /// What is in `degraded` may be gone at another try, or a part of it.
    pub may_pass: bool,
    /// Where a stage worked on less than came to it.
    pub limits: Vec<LimitEntry>,
    /// Stages that were to enrich documents and did not, and why the first of them did not.
    pub skipped: Vec<String>,
    pub skip_reason: Option<String>,
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
    /// The ways of the documents, where they are asked for.
    ways: Option<Ways>,
    /// What `CONTEXT` holds.
    shared: Object,
    started: Instant,
}

impl Execution {
    pub fn new(mut run: Run) -> Self {
        // What runs inside of this one is counted with it.
        run.outside.runs.get_or_insert_default();
        let mut context = Context::new(&run.inputs, run.now);
        let times = json!({"time_elapsed_ms": 0, "budget_remaining": run.max_time_ms});
        context.set("CONTEXT", &times);
        context.set("STAGE", &json!({}));
        Self {
            ways: run.explain.then(Ways::default),
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

    /// What is left of the execution's time, where it has one.
    pub fn left(&self) -> Option<Duration> {
        let budget = Duration::from_millis(self.run.max_time_ms?);
        Some(budget.saturating_sub(self.started.elapsed()))
    }

    /// `None`: the time ran out.
    pub async fn bounded(
        &mut self,
        step: &Step,
        set: Working,
    ) -> Result<Option<Working>, RunError> {
        match self.left() {
            None => work(step, self, set).await.map(Some),
            Some(left) => {
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

    /// Tells that the time ran out in the first of these stages, and that the others did not begin.
    pub fn out_of_time(&mut self, steps: &[Step]) -> String {
        let reason = format!(
            "the time of {} ms ran out",
            self.run.max_time_ms.unwrap_or_default()
        );
        self.degrade(
            "stage",
            &self.stage.clone(),
            &reason,
            "ask again, or raise max_time_ms of the retriever's budget",
        );
        steps.iter().for_each(|step| self.skip(step, &reason));
        reason
    }

    /// Tells of a stage that failed and is left out.
    pub fn left_out(&mut self, step: &Step, error: &RunError) -> String {
        let reason = error.told();
        let next_step = "the stage was left out; correct it or its inputs";
        self.degrade("stage", &step.name, &reason, next_step);
        self.skip(step, &reason);
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
        let (filter, removed) =
            filter.resolve_with(&mut |value| operand(value, inputs, context))?;
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

    /// Tells that of so many things the stage took no more than it takes of any.
    pub fn capped(&mut self, name: &str, requested: usize, ceiling: usize) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.report.limits.push(LimitEntry {
            name: name.to_owned(),
            requested: count(requested),
            applied: count(requested.min(ceiling)),
            ceiling: count(ceiling),
            stage: Some(self.stage.clone()),
        });
    }

    /// Tells of a stage that was to enrich documents and did not.
    fn skip(&mut self, step: &Step, reason: &str) {
        if step.definition.category == StageCategory::Enrich {
            self.report.skipped.push(step.name.clone());
            self.report.skip_reason.get_or_insert(reason.to_owned());
        }
    }

    pub fn warn(&mut self, text: String) {
        if !self.report.warnings.contains(&text) {
            self.report.warnings.push(text);
        }
    }

    /// Tells that the answer is less than it should be, for a reason that may pass.
    pub fn degrade(&mut self, resource: &str, id: &str, reason: &str, next_step: &str) {
        self.report.may_pass = true;
        self.degrade_for_good(resource, id, reason, next_step);
    }

    /// The same for a reason that stays until somebody sees to it.
    pub fn degrade_for_good(&mut self, resource: &str, id: &str, reason: &str, next_step: &str) {
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
            let documents: Vec<&Value> = rows.iter().take(MAX_EXPOSED).map(|r| &*r.value).collect();
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

    /// Writes down where documents stand after a stage, where that is asked for.
    pub fn note(&mut self, step: &Step, set: &Working) {
        if let Some(ways) = &mut self.ways {
            ways.note(&step.name, set);
        }
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
        let object = |row: Row| match Value::from(row.value) {
            Value::Object(object) => Some(object),
            _ => None,
        };
        let ways = self.ways.unwrap_or_default();
        Outcome {
            ranking: ways.of(&cut.rows),
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
            limits: self.report.limits,
            skipped: self.report.skipped,
            skip_reason: self.report.skip_reason,
            may_pass: self.report.may_pass,
            total: cut.total,
            pagination: cut.pagination,
            learned: self.report.learned,
            timed_out,
        }
    }
}

/// What a condition compares with, with inputs in place of dynamic values and templates.
pub(super) fn operand(
    value: &Value,
    inputs: &Object,
    context: &Context,
) -> Result<Resolved, String> {
    let dynamic = crate::filter::resolve_dynamic(value, inputs);
    let Resolved::Value(value) = dynamic else {
        return Ok(dynamic);
    };
    Ok(match render_operand(&value, context).map_err(|e| e.0)? {
        Rendered::Value(value) => Resolved::Value(value),
        Rendered::Missing(expression) => Resolved::Missing(expression),
    })
}

/// Puts the statistics of a stage among those of the others; stages may share a name.
pub(super) fn record(
    statistics: &mut IndexMap<String, StageStatistics>,
    name: &str,
    told: StageStatistics,
) {
    let mut key = name.to_owned();
    let mut number = 2;
    while statistics.contains_key(&key) {
        key = format!("{name} ({number})");
        number += 1;
    }
    statistics.insert(key, told);
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
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
