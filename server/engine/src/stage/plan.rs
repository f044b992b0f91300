//! Stages compiled once, run in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use loupe_wire::{
    DegradedEntry, Object, RetrieverExecutionStatistics, RetrieverInputSchemaField,
    RetrieverPagination, StageConfigInput, StageStatistics, Value,
};
use serde_json::json;

use super::compile::compile_stage;
use super::schema::{self, inside, problem};
use super::working::{Row, Working};
use super::{Definition, Fetch, RunError, Searchable, StageProblem, page};
use super::{attribute_filter, feature_search, feature_table, group, mmr, reduce, sort};
use crate::embed::Encoders;
use crate::filter::{Filter, Resolved};
use crate::store::{DocStore, Reach};
use crate::template::{Context, Rendered, Secrets, render_operand};

/// Most stages of one retriever.
const MAX_STAGES: usize = 20;

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
}

/// What one execution works with.
pub struct Run {
    pub store: Arc<dyn DocStore>,
    pub encoders: Arc<dyn Encoders>,
    /// Reads the URLs of `content` queries; without it they are refused.
    pub fetch: Option<Arc<dyn Fetch>>,
    pub namespace_id: String,
    /// The end user whose documents alone may be read; see [`Reach::principal`].
    pub principal: Option<String>,
    pub collections: Vec<Searchable>,
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
    pub secrets: Option<Secrets>,
}

/// What an execution gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The rows of the page: `document_id`, `collection_id`, `score`, user fields, `_internal`.
    pub documents: Vec<Object>,
    /// `{key, values: [{value, count}]}` a facet.
    pub facets: Vec<Object>,
    pub statistics: RetrieverExecutionStatistics,
    pub warnings: Vec<String>,
    /// `relaxations`: the conditions that were removed for want of an input.
    pub interpretation: Object,
    pub degraded: Vec<DegradedEntry>,
    /// Rows of the whole answer.
    pub total: u64,
    pub pagination: Object,
    /// The time ran out: what is here is what the stages had until then.
    pub timed_out: bool,
}

/// What stages tell beside their rows.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub warnings: Vec<String>,
    pub degraded: Vec<DegradedEntry>,
    pub facets: Vec<Object>,
    pub relaxations: Vec<String>,
    /// Of the stage that runs.
    pub metadata: Object,
    /// Of the stage that runs, where it is not the number of rows.
    pub output: Option<u64>,
}

pub(crate) struct Execution {
    pub run: Run,
    pub context: Context,
    pub report: Report,
    /// The stage that runs.
    pub stage: String,
    started: Instant,
}

impl Plan {
    /// Checks the stages and the defaults of the inputs. The problems name their place and what would be right.
    pub fn compile(
        stages: &[StageConfigInput],
        input_schema: &IndexMap<String, RetrieverInputSchemaField>,
    ) -> Result<Plan, Vec<StageProblem>> {
        let root = vec!["stages".to_owned()];
        let (mut steps, mut problems) = (Vec::new(), Vec::new());
        if stages.is_empty() || stages.len() > MAX_STAGES {
            problems.push(problem(
                root.clone(),
                "out_of_range",
                format!("a retriever has 1 to {MAX_STAGES} stages"),
            ));
        }
        problems.extend(super::inputs::check_schema(input_schema));
        for (i, stage) in stages.iter().enumerate() {
            steps.extend(compile_stage(
                stage,
                &inside(&root, &i.to_string()),
                &mut problems,
            ));
        }
        if problems.is_empty() {
            Ok(Plan { steps })
        } else {
            Err(problems)
        }
    }

    /// Runs the stages and cuts the page.
    pub async fn run(&self, run: Run) -> Result<Outcome, RunError> {
        let size = page::size(&run.pagination, run.limit, self.default_page())?;
        let mut at = Execution::new(run);
        let mut set = Working::Unread {
            filter: at.run.filter.clone(),
            sort: None,
        };
        let mut statistics = IndexMap::new();
        let mut timed_out = false;
        for step in &self.steps {
            let (started, input) = (Instant::now(), set.len() as u64);
            at.begin(step);
            // Kept only where the stage may leave no rows behind.
            let kept = (step.lenient || at.run.max_time_ms.is_some()).then(|| set.clone());
            let mut error = None;
            set = match at.bounded(step, set).await {
                Ok(Some(after)) => after,
                Ok(None) => {
                    timed_out = true;
                    error = Some(at.out_of_time(step));
                    kept.unwrap_or(Working::Rows(Vec::new()))
                }
                Err(e) if step.lenient => {
                    at.degrade(
                        "stage",
                        &step.name,
                        &e.to_string(),
                        "the stage was left out; correct it or its inputs",
                    );
                    error = Some(e.to_string());
                    kept.unwrap_or(Working::Rows(Vec::new()))
                }
                Err(e) => return Err(e),
            };
            let output = at.report.output.take().unwrap_or(set.len() as u64);
            let told = at.statistics(input, output, started.elapsed(), error);
            record(&mut statistics, &step.name, told);
            at.expose(step, input, output);
            if timed_out {
                // Documents nobody has searched are no answer to a search.
                if matches!(set, Working::Unread { .. }) {
                    set = Working::Rows(Vec::new());
                }
                break;
            }
        }
        let cut = page::cut(&at, set, size, &|| self.fingerprint(&at.run)).await?;
        Ok(at.finish(cut, statistics, timed_out))
    }

    /// The page without pagination: what the last search returns, else 10.
    fn default_page(&self) -> usize {
        let search = self
            .steps
            .iter()
            .rev()
            .find(|s| s.definition.id == feature_table::DEFINITION.id);
        search.map_or(10, |step| {
            step.parameters
                .get("final_top_k")
                .and_then(Value::as_u64)
                .unwrap_or(25) as usize
        })
    }

    /// Two runs with the same fingerprint rank the same documents for the same question.
    fn fingerprint(&self, run: &Run) -> String {
        use sha2::{Digest, Sha256};
        let stages: Vec<&Object> = self.steps.iter().map(|s| &s.parameters).collect();
        let collections: Vec<&str> = run
            .collections
            .iter()
            .map(|c| c.collection_id.as_str())
            .collect();
        let filter = run.filter.as_ref().map(ToString::to_string);
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

fn record(statistics: &mut IndexMap<String, StageStatistics>, name: &str, told: StageStatistics) {
    let mut key = name.to_owned();
    let mut number = 2;
    while statistics.contains_key(&key) {
        key = format!("{name} ({number})");
        number += 1;
    }
    statistics.insert(key, told);
}

impl Execution {
    fn new(run: Run) -> Self {
        let mut context = Context::new(&run.inputs, run.now);
        if let Some(secrets) = run.secrets.clone() {
            context.set_secrets(secrets);
        }
        context.set("CONTEXT", &json!({}));
        context.set("STAGE", &json!({}));
        Self {
            run,
            context,
            report: Report::default(),
            stage: String::new(),
            started: Instant::now(),
        }
    }

    fn begin(&mut self, step: &Step) {
        self.stage.clone_from(&step.name);
        self.report.metadata.clear();
        self.report.output = None;
    }

    /// `None`: the time ran out.
    async fn bounded(&mut self, step: &Step, set: Working) -> Result<Option<Working>, RunError> {
        match self.run.max_time_ms {
            None => dispatch(step, self, set).await.map(Some),
            Some(budget) => {
                let left = Duration::from_millis(budget).saturating_sub(self.started.elapsed());
                match tokio::time::timeout(left, dispatch(step, self, set)).await {
                    Ok(done) => done.map(Some),
                    Err(_) => Ok(None),
                }
            }
        }
    }

    fn out_of_time(&mut self, step: &Step) -> String {
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

    fn statistics(
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
            metadata: std::mem::take(&mut self.report.metadata),
            ..Default::default()
        }
    }

    /// What templates of later stages may read about this one.
    fn expose(&mut self, step: &Step, input: u64, output: u64) {
        let elapsed = self.started.elapsed().as_millis() as u64;
        let left = self.run.max_time_ms.map(|max| max.saturating_sub(elapsed));
        let mut context = json!({"time_elapsed_ms": elapsed, "budget_remaining": left});
        if let Some(alias) = &step.alias {
            context[alias] = json!({"input_count": input, "output_count": output});
        }
        self.context.set("CONTEXT", &context);
        self.context.set(
            "STAGE",
            &json!({"name": step.name, "input_count": input, "output_count": output}),
        );
    }

    fn finish(
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
            timed_out,
        }
    }
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

async fn dispatch(step: &Step, at: &mut Execution, set: Working) -> Result<Working, RunError> {
    let members = step.definition.members;
    let parameters = schema::render(members, &step.parameters, &at.context)?;
    // Templates may have given what the table does not allow.
    let mut problems = Vec::new();
    schema::check(
        members,
        &parameters,
        schema::When::Rendered,
        &[],
        &mut problems,
    );
    if let Some(first) = problems.first() {
        return Err(RunError::Invalid(format!(
            "stage `{}`: {}: {}",
            step.name,
            first.loc.join("."),
            first.msg
        )));
    }
    match step.definition.id {
        "feature_search" => feature_search::run(at, parameters, set).await,
        "attribute_filter" => attribute_filter::run(at, parameters, set).await,
        "sort_attribute" => sort::attribute(at, parameters, set).await,
        "score_normalize" => sort::normalize(at, parameters, set).await,
        "mmr" => mmr::run(at, parameters, set).await,
        "limit" => reduce::limit(at, parameters, set).await,
        "sample" => reduce::sample(at, parameters, set).await,
        "deduplicate" => reduce::deduplicate(at, parameters, set).await,
        "group_by" => group::run(at, parameters, set).await,
        other => Err(RunError::Invalid(format!("the stage `{other}` cannot run"))),
    }
}

/// The typed parameters of a stage whose table has been checked.
pub(crate) fn typed<T: serde::de::DeserializeOwned>(
    at: &Execution,
    parameters: Object,
) -> Result<T, RunError> {
    serde_json::from_value(Value::Object(parameters)).map_err(|e| {
        RunError::Invalid(format!(
            "stage `{}`: the parameters cannot be read: {e}",
            at.stage
        ))
    })
}
