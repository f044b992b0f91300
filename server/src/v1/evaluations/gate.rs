//! Weights that evaluations speak for: what a retriever names has to be there and to have passed, and what fell behind later
//! is not used.

use std::sync::Arc;

use loupe_engine::stage::Plan;
use loupe_wire::{EvaluationRecord, EvaluationStatus, NamespaceOperation, ResourceType};

use super::{store, verdict::verdict};
use crate::{
    app::App,
    auth::{Level, Scope},
    error::{ApiError, Result, Violation},
};

/// Whether a plan may be made: its datasets exist, and the evaluations of its weights are of one dataset and did not fall.
///
/// # Errors
/// 404 for what is not there, 422 for weights that fell behind their baseline.
pub async fn check<L: Level>(app: &App, scope: &Scope<L>, plan: &Plan) -> Result<()> {
    for named in plan.datasets() {
        let found = store::dataset_id(app.db(), &scope.namespace_id, &named).await?;
        found.ok_or_else(|| ApiError::not_found("evaluation_dataset", &named))?;
    }
    for set in plan.weight_sets() {
        let measured = completed(app, scope, &set.evaluation_id).await?;
        let baseline = completed(app, scope, &set.baseline_evaluation_id).await?;
        if measured.dataset_id != baseline.dataset_id {
            return Err(fault(&measured, "its baseline is over another dataset"));
        }
        let verdict = verdict(&baseline, &measured);
        if !verdict.passed {
            return Err(fault(&measured, &verdict.reason));
        }
    }
    Ok(())
}

async fn completed<L: Level>(app: &App, scope: &Scope<L>, id: &str) -> Result<EvaluationRecord> {
    let found = store::find(app.db(), &scope.namespace_id, id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("evaluation", id))?;
    let (kind, operation) = (ResourceType::Retriever, NamespaceOperation::ReadData);
    scope.caller.allow(kind, &found.retriever_id, operation)?;
    if found.status != EvaluationStatus::Completed {
        return Err(fault(&found, "it is not completed"));
    }
    Ok(found)
}

fn fault(evaluation: &EvaluationRecord, why: &str) -> ApiError {
    let id = evaluation.evaluation_id.clone();
    let msg = format!("weights cannot be shipped by the evaluation `{id}`: {why}");
    Violation::body(&["stages"], "value_error", msg, id.into()).into()
}

/// Those of the datasets over which the retriever's last evaluation fell behind its baseline.
///
/// # Errors
/// The database does not answer.
pub async fn fallen(
    app: &App,
    namespace_id: &str,
    retriever_id: &str,
    datasets: Vec<String>,
) -> Result<Arc<[String]>> {
    let mut fallen = Vec::new();
    for named in datasets {
        let Some(dataset) = store::dataset_id(app.db(), namespace_id, &named).await? else {
            continue;
        };
        let last = store::last(app.db(), namespace_id, retriever_id, &dataset).await?;
        let verdict = last.and_then(|record| record.verdict);
        if verdict.is_some_and(|verdict| !verdict.passed) {
            fallen.push(named);
        }
    }
    Ok(fallen.into())
}
