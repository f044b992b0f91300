//! Stages that are run without being kept as a retriever, and the history of such executions.

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use loupe_wire::{
    AdhocExecuteRequest, AdhocExecutionDetail, AdhocExecutionSummary, ExecuteRetrieverResponse,
    ListAdhocExecutionsRequest, ListAdhocExecutionsResponse, NamespaceOperation, Object,
    PaginationMetadata, ResourceType, RetrieverModelOutput, StreamStageEvent, Value,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Asked, Execute, Mark, cast, compile_in, execute, readable, stage_output,
    store::{self, Wanted},
};
use crate::{
    app::App,
    auth::{Read, Scope},
    body::Body,
    db::{Json, Record},
    error::{ApiError, Result, Violation},
    idempotency,
    json::Json as Told,
    list::{ListParams, ListQuery},
    openapi::routes,
};

/// What stands where executions of a retriever have its id.
pub(super) const NO_RETRIEVER: &str = "";

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(execute_adhoc))
        .routes(routes!(list_adhoc_executions))
        .routes(routes!(get_adhoc_execution))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReturnQuery {
    pub return_presigned_urls: Option<bool>,
    pub return_vectors: Option<bool>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for ReturnQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self> {
        crate::list::query(parts).await
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AdhocQuery {
    return_presigned_urls: Option<bool>,
    return_vectors: Option<bool>,
    explain: Option<bool>,
}

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for AdhocQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self> {
        crate::list::query(parts).await
    }
}

/// Runs stages that are no retriever. With `stream` the answer is `text/event-stream`, as that of a retriever is, and no
/// `Idempotency-Key` is taken.
#[utoipa::path(post, path = "/v1/retrievers/execute", tag = "retrievers", params(AdhocQuery), request_body = AdhocExecuteRequest, responses((status = 200, content((ExecuteRetrieverResponse = "application/json"), (StreamStageEvent = "text/event-stream"))), (status = 304, description = "the answer has the tag that `If-None-Match` names")))]
async fn execute_adhoc(
    State(app): State<App>,
    scope: Scope<Read>,
    query: AdhocQuery,
    headers: HeaderMap,
    Asked(mut request): Asked<AdhocExecuteRequest>,
) -> Result<Response> {
    let ask = Execute {
        inputs: request.inputs.take().unwrap_or_default(),
        filters: request.filters.take(),
        pagination: request.pagination.take(),
        limit: request.limit,
        presigned_urls: query.return_presigned_urls.unwrap_or(false),
        vectors: query.return_vectors.unwrap_or(false),
        explain: request.explain || query.explain.unwrap_or(false),
        ..Execute::default()
    };
    let stream = request.stream;
    let retriever = retriever(&app, &scope, request).await?;
    if stream {
        idempotency::refuse_stream(&headers)?;
        let now = app.clock().micros();
        let record = Record {
            id: NO_RETRIEVER.to_owned(),
            name: retriever.retriever_name.clone(),
            created_at: now,
            updated_at: now,
            data: Json(retriever),
        };
        return super::streaming::stream(app, scope, record.into(), ask).await;
    }
    let answer = execute(&app, &scope, &retriever, ask).await?;
    let mark = Mark::passing(&answer);
    let mut response = match mark.is_known(&headers) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Told(answer).into_response(),
    };
    mark.put(&mut response);
    Ok(response)
}

/// The stages as a retriever that the caller could have made.
async fn retriever(
    app: &App,
    scope: &Scope<Read>,
    request: AdhocExecuteRequest,
) -> Result<RetrieverModelOutput> {
    let operation = NamespaceOperation::ExecuteRetriever;
    scope
        .caller
        .allow(ResourceType::Retriever, "*", operation)?;
    let schema = request.input_schema.unwrap_or_default();
    let plan = compile_in(&[], &request.stages, &schema)?;
    let identifiers = request.collection_identifiers.unwrap_or_default();
    let collections = readable(app, scope, &plan, &identifiers).await?;
    Ok(RetrieverModelOutput {
        retriever_id: Some(NO_RETRIEVER.to_owned()),
        retriever_name: "stages without a retriever".into(),
        collection_ids: collections,
        stages: request.stages.into_iter().map(stage_output).collect(),
        input_schema: schema,
        budget_limits: request.budget_limits,
        ..Default::default()
    })
}

fn moment(name: &str, value: Option<&Value>) -> Result<Option<i64>> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let text = value.as_str().and_then(|text| {
        let at = chrono::DateTime::parse_from_rfc3339(text).ok()?;
        Some(at.timestamp_micros())
    });
    let seconds = || value.as_f64().map(|seconds| (seconds * 1e6) as i64);
    let msg = "a moment is written as 2026-01-31T12:00:00Z, or in seconds since 1970";
    text.or_else(seconds)
        .map(Some)
        .ok_or_else(|| Violation::body(&[name], "value_error", msg, value.clone()).into())
}

/// Executions of stages without a retriever, newest first.
#[utoipa::path(post, path = "/v1/retrievers/executions/list", tag = "retrievers", params(ListQuery), request_body = Option<ListAdhocExecutionsRequest>, responses((status = 200, body = ListAdhocExecutionsResponse)))]
async fn list_adhoc_executions(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListAdhocExecutionsRequest>,
) -> Result<Told<ListAdhocExecutionsResponse>> {
    let params = ListParams::new(query, &json!({}))?;
    let wanted = Wanted {
        namespace_id: &scope.namespace_id,
        retriever_id: NO_RETRIEVER,
        status: request.status.as_deref().filter(|one| !one.is_empty()),
        since: moment("start_time", request.start_time.as_ref())?.unwrap_or(i64::MIN),
        until: moment("end_time", request.end_time.as_ref())?.unwrap_or(i64::MAX),
    };
    let total = store::count_executions(app.db(), wanted).await?;
    let rows = match request.count_only {
        true => Vec::new(),
        false => store::list_executions(app.db(), wanted, (params.limit, params.offset)).await?,
    };
    let results = rows.iter().map(summary).collect::<Result<Vec<_>>>()?;
    let shown = i64::try_from(results.len()).unwrap_or(0);
    let pagination = PaginationMetadata {
        total,
        limit: params.limit,
        offset: params.offset,
        has_next: params.offset + shown < total,
    };
    Ok(Told(ListAdhocExecutionsResponse {
        results,
        total,
        pagination: Some(cast(&pagination)?),
        ..Default::default()
    }))
}

/// One execution of stages without a retriever, without its documents.
#[utoipa::path(get, path = "/v1/retrievers/executions/{execution_id}", tag = "retrievers", responses((status = 200, body = AdhocExecutionDetail)))]
async fn get_adhoc_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(execution): Path<String>,
) -> Result<Told<AdhocExecutionDetail>> {
    let found =
        store::find_execution(app.db(), &scope.namespace_id, NO_RETRIEVER, &execution).await?;
    let mut told: AdhocExecutionDetail = cast(&members(&found))?;
    told.inputs = found.get("inputs").map(Value::to_string);
    Ok(Told(told))
}

fn summary(execution: &Object) -> Result<AdhocExecutionSummary> {
    cast(&members(execution))
}

/// An execution as the history has it, in the words of those without a retriever.
fn members(execution: &Object) -> Value {
    let mut told = execution.clone();
    let done = super::profile::completed(execution);
    told.shift_remove("inputs");
    told.insert("execution_mode".into(), json!("adhoc"));
    let at = execution.get("created_at").cloned();
    told.insert("timestamp".into(), at.unwrap_or_default());
    told.insert("stages_completed".into(), json!(done));
    told.entry("total_stages").or_insert(json!(done));
    Value::Object(told)
}
