//! Where the time of an execution went, and how far it came.

use axum::extract::{Path, State};
use loupe_wire::{
    ExecutionStatusResponse, NamespaceOperation, Object, RetrieverModelOutput, Value,
};
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{recording::is_kept, store};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    json::Json,
    openapi::routes,
};

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_execution_status))
        .routes(routes!(get_execution_profile))
}

/// The retriever and one of its executions.
async fn found(
    app: &App,
    scope: &Scope<Read>,
    id: &str,
    execution: &str,
) -> Result<(RetrieverModelOutput, Object)> {
    let retriever = super::find(app, scope, id, NamespaceOperation::ReadData).await?;
    let id = retriever.retriever_id.as_deref().unwrap_or_default();
    let found = store::find_execution(app.db(), &scope.namespace_id, id, execution).await?;
    Ok((retriever, found))
}

/// The stages of an execution with their statistics; in no order, for databases keep members in one of their own.
pub fn stages_of(execution: &Object) -> impl Iterator<Item = (&String, &Value)> {
    let told = execution.get("stage_statistics");
    let stages = told.and_then(|told| told.get("stages")?.as_object());
    stages.into_iter().flatten()
}

/// How many stages came to their end.
pub fn completed(execution: &Object) -> usize {
    let failed = |stage: &Value| stage.get("error").is_some_and(|error| !error.is_null());
    stages_of(execution)
        .filter(|(_, told)| !failed(told))
        .count()
}

/// How far an execution came. An execution is told once it has ended, a moment after its answer.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/executions/{execution_id}/status", tag = "retrievers", responses((status = 200, body = ExecutionStatusResponse)))]
async fn get_execution_status(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((id, execution)): Path<(String, String)>,
) -> Result<Json<ExecutionStatusResponse>> {
    let (_, found) = found(&app, &scope, &id, &execution).await?;
    let done = i64::try_from(completed(&found)).unwrap_or(i64::MAX);
    let text = |name: &str| found.get(name).and_then(Value::as_str);
    let total = found.get("total_stages").and_then(Value::as_i64);
    let at = text("completed_at").and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    Ok(Json(ExecutionStatusResponse {
        retriever_id: text("retriever_id").map(ToOwned::to_owned),
        status: text("status").unwrap_or_default().to_owned(),
        stages_completed: done,
        total_stages: total.unwrap_or(done),
        last_heartbeat_at: at.map(|at| at.to_utc()),
        execution_id: execution,
        ..Default::default()
    }))
}

/// Where the time of an execution went, the slowest stage first.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/executions/{execution_id}/profile", tag = "retrievers", responses((status = 200, body = std::collections::HashMap<String, serde_json::Value>)))]
async fn get_execution_profile(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((id, execution)): Path<(String, String)>,
) -> Result<Json<Value>> {
    let (retriever, found) = found(&app, &scope, &id, &execution).await?;
    let total = found.get("duration_ms").and_then(Value::as_f64);
    let total = total.unwrap_or(0.0);
    let spent = |stage: &Value| {
        let spent = stage.get("duration_ms").and_then(Value::as_f64);
        spent.unwrap_or(0.0)
    };
    let share = |spent: f64| if total > 0.0 { spent / total } else { 0.0 };
    let place = |name: &String| {
        let mut stages = retriever.stages.iter();
        stages.position(|stage| stage.stage_name == *name)
    };
    let mut stages: Vec<Value> = stages_of(&found)
        .map(|(name, told)| {
            let of = |member: &str| told.get(member).cloned().unwrap_or_default();
            json!({
                "stage_name": name, "stage_index": place(name), "duration_ms": spent(told), "share": share(spent(told)),
                "input_count": of("input_count"), "output_count": of("output_count"), "llm_calls": of("llm_calls"),
                "tokens_used": of("tokens_used"), "stage_cache_hit": of("stage_cache_hit"), "error": of("error"), "metadata": of("metadata"),
            })
        })
        .collect();
    let inside: f64 = stages.iter().map(spent).sum();
    stages.sort_by(|a, b| spent(b).total_cmp(&spent(a)));
    let slowest = stages.first().map(|stage| stage["stage_name"].clone());
    let outside = (total - inside).max(0.0);
    let of = |member: &str| found.get(member).cloned().unwrap_or_default();
    Ok(Json(json!({
        "execution_id": execution, "retriever_id": of("retriever_id"), "status": of("status"),
        "created_at": of("created_at"), "total_time_ms": total, "slowest_stage": slowest,
        "outside_of_stages_ms": outside, "cache_hit": is_kept(&found),
        "stages": stages, "warnings": of("warnings"),
    })))
}
