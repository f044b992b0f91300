//! Evaluations: how good a retriever is. A dataset holds queries with the documents that are right for them; a run asks the
//! retriever all of them and measures its rankings, beside an earlier run.

mod dataset;
mod gate;
mod learning;
mod routes;
mod run;
mod score;
mod store;
mod verdict;

use loupe_engine::judging::Metric;
use loupe_wire::{
    EvaluationConfig, EvaluationListResponse, EvaluationRecord, EvaluationStatus,
    NamespaceOperation, RetrieverModelOutput, StartEvaluationRequest, StartEvaluationResponse,
    TaskType, Value,
};
use serde_json::json;

pub use gate::{check, fallen};
pub use learning::{asked, grade, name};
pub use routes::{router, window};
pub use run::{EVALUATE, give_up, run};

use super::{
    retrievers,
    tasks::{self, NewTask, name_of},
};
use crate::{
    app::App,
    auth::{Read, Scope, Write},
    clock,
    error::{ApiError, Result, Violation},
    id,
};

/// Runs of a namespace that may wait or be under way.
const UNDER_WAY: i64 = 10;

/// The furthest cut-off: a page of results has no more rows.
const FURTHEST: i64 = 500;

/// A configuration as it is run.
#[derive(Debug, Clone)]
struct Settings {
    ks: Vec<usize>,
    metrics: Vec<Metric>,
}

impl Settings {
    /// Checks what was sent, with the defaults where nothing was.
    fn of(config: &EvaluationConfig) -> Result<Self> {
        let mut ks = Vec::new();
        for k in config.k_values.as_deref().unwrap_or(&[1, 5, 10, 20]) {
            let good = usize::try_from(*k)
                .ok()
                .filter(|_| (1..=FURTHEST).contains(k));
            ks.push(good.ok_or_else(|| {
                let msg = format!("a cut-off lies between 1 and {FURTHEST}");
                Violation::body(
                    &["evaluation_config", "k_values"],
                    "range",
                    msg,
                    (*k).into(),
                )
            })?);
        }
        ks.sort_unstable();
        ks.dedup();
        let place = &["evaluation_config", "metrics"];
        let metrics = metrics(config.metrics.as_deref(), place)?;
        Ok(Self { ks, metrics })
    }

    fn furthest(&self) -> usize {
        self.ks.last().copied().unwrap_or(1)
    }

    fn config(&self) -> EvaluationConfig {
        let ks = self
            .ks
            .iter()
            .map(|k| i64::try_from(*k).unwrap_or(i64::MAX));
        let names = self.metrics.iter().map(|metric| metric.name().to_owned());
        EvaluationConfig {
            k_values: Some(ks.collect()),
            metrics: Some(names.collect()),
        }
    }
}

/// The figures of these names, each once; all without names.
fn metrics(names: Option<&[String]>, place: &[&str]) -> Result<Vec<Metric>> {
    let Some(names) = names else {
        return Ok(Metric::ALL.to_vec());
    };
    let mut metrics: Vec<Metric> = Vec::new();
    for name in names {
        let metric = Metric::named(name).ok_or_else(|| {
            let known = Metric::ALL.map(Metric::name).join(", ");
            let msg = format!("there is no figure of this name, there are {known}");
            Violation::body(place, "enum", msg, name.clone().into())
        })?;
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    Ok(metrics)
}

/// Leaves the task of a run.
pub async fn start(
    app: &App,
    scope: &Scope<Write>,
    identifier: &str,
    request: StartEvaluationRequest,
) -> Result<StartEvaluationResponse> {
    let operation = NamespaceOperation::ExecuteRetriever;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    let settings = Settings::of(&request.evaluation_config.unwrap_or_default())?;
    let dataset = store::find_dataset(app.db(), &scope.namespace_id, &request.dataset_name).await?;
    let weight_set_id = weight_set(&retriever);
    let retriever_id = retriever.retriever_id.unwrap_or_default();
    let baseline = match request.baseline_evaluation_id {
        Some(named) => Some(baseline(app, scope, &named, &dataset.dataset_id).await?),
        None => {
            let (namespace, dataset) = (&scope.namespace_id, &dataset.dataset_id);
            store::last(app.db(), namespace, &retriever_id, dataset).await?
        }
    };
    let now = app.clock().micros();
    let record = EvaluationRecord {
        evaluation_id: id::new("eval_"),
        retriever_id,
        dataset_id: dataset.dataset_id,
        dataset_name: dataset.dataset_name,
        config: settings.config(),
        status: EvaluationStatus::Pending,
        created_at: clock::time(now),
        updated_at: clock::time(now),
        namespace_id: scope.namespace_id.clone(),
        internal_id: scope.caller.org_id.clone(),
        query_count: dataset.query_count,
        total_queries: Some(dataset.query_count),
        baseline_evaluation_id: baseline.map(|one| one.evaluation_id),
        weight_set_id,
        ..Default::default()
    };
    leave(app, scope, record, now).await
}

/// The weights that were shipped to the retriever.
fn weight_set(retriever: &RetrieverModelOutput) -> Option<String> {
    retriever.stages.iter().find_map(|stage| {
        let parameters = stage.config.get("parameters")?;
        let inside = parameters.pointer("/feature_search_config/learning_config");
        let config = inside.or_else(|| parameters.get("learning_config"))?;
        let id = config.pointer("/shipped_weight_set/weight_set_id")?;
        id.as_str().map(ToOwned::to_owned)
    })
}

async fn leave(
    app: &App,
    scope: &Scope<Write>,
    record: EvaluationRecord,
    now: i64,
) -> Result<StartEvaluationResponse> {
    let org_id = scope.caller.org_id.clone();
    let created_at = record.created_at.to_rfc3339();
    let (task, evaluation_id) = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let under_way = store::under_way(tx, &record.namespace_id).await?;
                if under_way >= UNDER_WAY {
                    let message =
                        format!("{under_way} evaluations wait or run: wait for their end");
                    return Err(ApiError::conflict("", message).with("evaluations", under_way));
                }
                store::insert(tx, &record, now).await?;
                let work = json!({ "evaluation_id": record.evaluation_id });
                let kind = TaskType::ApiEvaluationsRun;
                let mut task = NewTask::work(&org_id, &record.namespace_id, kind, EVALUATE, work);
                task.inputs = vec![
                    record.retriever_id.clone().into(),
                    record.dataset_id.clone().into(),
                ];
                task.description = format!("evaluation over {}", record.dataset_name);
                let id = Value::from(record.evaluation_id.clone());
                task.additional_data.insert("evaluation_id".into(), id);
                let task = tasks::insert(tx, task, now).await?;
                Ok((task, record.evaluation_id))
            })
        })
        .await?;
    app.work.notify_one();
    Ok(StartEvaluationResponse {
        task_id: task.task_id,
        evaluation_id,
        created_at,
        ..Default::default()
    })
}

/// The evaluation that was named to be held against, if it is over the same queries.
async fn baseline(
    app: &App,
    scope: &Scope<Write>,
    id: &str,
    dataset_id: &str,
) -> Result<EvaluationRecord> {
    let found = store::find(app.db(), &scope.namespace_id, id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("evaluation", id))?;
    let operation = NamespaceOperation::ReadData;
    let kind = loupe_wire::ResourceType::Retriever;
    scope.caller.allow(kind, &found.retriever_id, operation)?;
    let fault = if found.dataset_id != dataset_id {
        "it is over another dataset"
    } else if found.status != EvaluationStatus::Completed {
        "it is not completed"
    } else {
        return Ok(found);
    };
    let msg = format!("nothing can be held against this evaluation: {fault}");
    Err(Violation::body(&["baseline_evaluation_id"], "value_error", msg, id.into()).into())
}

/// One evaluation of the retriever, with what came of each query.
pub async fn get(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    id: &str,
) -> Result<EvaluationRecord> {
    let retriever_id = retriever_id(app, scope, identifier).await?;
    let found = store::find(app.db(), &scope.namespace_id, id).await?;
    found
        .filter(|record| record.retriever_id == retriever_id)
        .ok_or_else(|| ApiError::not_found("evaluation", id))
}

async fn retriever_id(app: &App, scope: &Scope<Read>, identifier: &str) -> Result<String> {
    let operation = NamespaceOperation::ReadData;
    let retriever = retrievers::find(app, scope, identifier, operation).await?;
    Ok(retriever.retriever_id.unwrap_or_default())
}

/// Evaluations of the retriever, newest first.
pub async fn list(
    app: &App,
    scope: &Scope<Read>,
    identifier: &str,
    status: Option<EvaluationStatus>,
    dataset_name: Option<String>,
    (page, page_size): (i64, i64),
) -> Result<EvaluationListResponse> {
    let wanted = store::Wanted {
        retriever_id: retriever_id(app, scope, identifier).await?,
        status: status.map(name_of).unwrap_or_default(),
        dataset_name: dataset_name.unwrap_or_default(),
    };
    let offset = (page - 1).saturating_mul(page_size);
    let (evaluations, total) =
        store::list(app.db(), &scope.namespace_id, &wanted, page_size, offset).await?;
    Ok(EvaluationListResponse {
        evaluations,
        total,
        page,
        page_size,
        ..Default::default()
    })
}
