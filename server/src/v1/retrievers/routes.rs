use axum::{
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use loupe_engine::stage;
use loupe_wire::{
    CloneRetrieverRequest, CloneRetrieverResponse, CreateRetrieverRequest, ExecuteRetrieverRequest,
    ExecuteRetrieverResponse, ExecutionDetail, ExplainRetrieverRequest, ExplainRetrieverResponse,
    GenericDeleteResponse, ListExecutionsRequest, ListExecutionsResponse, ListRetrieversRequest,
    ListRetrieversResponse, NamespaceOperation, PatchRetrieverRequest, PatchRetrieverResponse,
    ReadConsistencyOptionMode, ResourceType, RetrieverConfig, RetrieverModelOutput,
    RetrieverStageDefinition, StreamStageEvent,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    Asked, Execute, RETRIEVERS, cast,
    store::{self, Wanted},
    writing::Target,
};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result, Violation},
    idempotency,
    json::Json,
    list::{self, ListParams, ListQuery},
    openapi::routes,
    v1::tasks::name_of,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_retrievers, create_retriever))
        .routes(routes!(search_retrievers))
        .routes(routes!(list_stages))
        .routes(routes!(get_retriever, update_retriever, delete_retriever))
        .routes(routes!(clone_retriever))
        .routes(routes!(execute_retriever))
        .routes(routes!(explain_retriever))
        .routes(routes!(list_executions))
        .routes(routes!(get_execution))
        .merge(super::adhoc::router())
        .merge(super::batching::router())
        .merge(super::profile::router())
        .merge(super::typeahead::router())
}

#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ExecuteQuery {
    return_presigned_urls: Option<bool>,
    return_vectors: Option<bool>,
    explain: Option<bool>,
    /// Repeats `documents` under the older name `results`.
    include_legacy_results: Option<bool>,
    /// Asks the documents even where the answer is known.
    skip_cache: Option<bool>,
}

impl<S: Send + Sync> FromRequestParts<S> for ExecuteQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

async fn page(
    app: &App,
    scope: Scope<Read>,
    query: ListQuery,
    request: ListRetrieversRequest,
) -> Result<Json<ListRetrieversResponse>> {
    let params = ListParams::new(query, &request)?;
    let mut page = scope
        .caller
        .list(
            app,
            &RETRIEVERS,
            ResourceType::Retriever,
            &scope.namespace_id,
            &params,
        )
        .await?;
    crate::v1::publishing::mark_published(app, &scope.namespace_id, &mut page.results).await?;
    let total = page.total_count(&params);
    let answer = ListRetrieversResponse {
        results: page.results,
        total,
        pagination: Some(page.pagination),
        ..Default::default()
    };
    Ok(Json(answer))
}

/// Retrievers of the namespace.
#[utoipa::path(get, path = "/v1/retrievers", tag = "retrievers", params(ListQuery), responses((status = 200, body = ListRetrieversResponse)))]
async fn list_retrievers(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
) -> Result<Json<ListRetrieversResponse>> {
    page(&app, scope, query, ListRetrieversRequest::default()).await
}

/// Retrievers that match.
#[utoipa::path(post, path = "/v1/retrievers/list", tag = "retrievers", params(ListQuery), request_body = ListRetrieversRequest, responses((status = 200, body = ListRetrieversResponse)))]
async fn search_retrievers(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListRetrieversRequest>,
) -> Result<Json<ListRetrieversResponse>> {
    page(&app, scope, query, request).await
}

/// Makes a retriever: stages over collections.
#[utoipa::path(post, path = "/v1/retrievers", tag = "retrievers", request_body = CreateRetrieverRequest, responses((status = 200, body = RetrieverConfig)))]
async fn create_retriever(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateRetrieverRequest>,
) -> Result<Json<RetrieverConfig>> {
    cast(&super::create(&app, &scope, request).await?).map(Json)
}

/// The stages, with their parameters, and what those that cannot run here lack.
#[utoipa::path(get, path = "/v1/retrievers/stages", tag = "stages", responses((status = 200, body = Vec<RetrieverStageDefinition>)))]
async fn list_stages(State(app): State<App>) -> Json<Vec<RetrieverStageDefinition>> {
    Json(stage::catalogue(super::configured(&app)))
}

/// One retriever, by id or name.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}", tag = "retrievers", responses((status = 200, body = RetrieverModelOutput)))]
async fn get_retriever(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<RetrieverModelOutput>> {
    let mut found = vec![super::find(&app, &scope, &id, NamespaceOperation::ReadData).await?];
    crate::v1::publishing::mark_published(&app, &scope.namespace_id, &mut found).await?;
    Ok(Json(found.remove(0)))
}

/// Changes what is mutable; stages are not: clone the retriever to change them.
#[utoipa::path(patch, path = "/v1/retrievers/{retriever_id}", tag = "retrievers", request_body = PatchRetrieverRequest, responses((status = 200, body = PatchRetrieverResponse)))]
async fn update_retriever(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<PatchRetrieverRequest>,
) -> Result<Json<PatchRetrieverResponse>> {
    let retriever = cast(&super::update(&app, &scope, &id, request).await?)?;
    Ok(Json(PatchRetrieverResponse { retriever }))
}

/// Removes a retriever and its public page.
#[utoipa::path(delete, path = "/v1/retrievers/{retriever_id}", tag = "retrievers", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_retriever(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Copies a retriever, with other stages or collections where sent.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/clone", tag = "retrievers", request_body = CloneRetrieverRequest, responses((status = 200, body = CloneRetrieverResponse)))]
async fn clone_retriever(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CloneRetrieverRequest>,
) -> Result<Json<CloneRetrieverResponse>> {
    let (clone, source_retriever_id) = super::clone(&app, &scope, &id, request).await?;
    let retriever_id = clone.retriever_id.clone();
    Ok(Json(CloneRetrieverResponse {
        retriever: cast(&clone)?,
        source_retriever_id,
        retriever_id,
    }))
}

/// Runs a retriever. With `stream` the answer is `text/event-stream`: each stage when it begins and ends, the whole last; it
/// takes no `Idempotency-Key`. With `target_collection_id` the documents of the answer are written into that collection, which
/// takes a key that may write: visitors of an app write nothing so.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/execute", tag = "retrievers", params(ExecuteQuery), request_body = ExecuteRetrieverRequest, responses((status = 200, content((ExecuteRetrieverResponse = "application/json"), (StreamStageEvent = "text/event-stream"))), (status = 304, description = "the answer has the tag that `If-None-Match` names")))]
async fn execute_retriever(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    query: ExecuteQuery,
    headers: HeaderMap,
    Asked(request): Asked<ExecuteRetrieverRequest>,
) -> Result<Response> {
    let retriever = super::known(&app, &scope, &id).await?;
    let target = target(&app, &scope, &request).await?;
    let (stream, consistency) = (request.stream, consistency(&request));
    let ask = ask(request, query);
    if stream {
        idempotency::refuse_stream(&headers)?;
        return super::streaming::stream(app, scope, retriever, ask).await;
    }
    let mut answered = super::answer(&app, &scope, &retriever, ask).await?;
    if let Some(target) = &target {
        target.write(&app, &retriever, &mut answered.answer).await?;
    }
    answered.answer.consistency_mode = consistency.map(name_of);
    if query.include_legacy_results.unwrap_or(false) {
        answered.answer.results = answered.answer.documents.to_vec();
    }
    // What was written is told, whether or not the caller has the documents.
    let is_known = target.is_none() && answered.mark.is_known(&headers);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Json(&answered.answer).into_response(),
    };
    answered.mark.put(&mut response);
    Ok(response)
}

/// The consistency that a request asks for: whoever shows what a write was answered with asks to see that write.
fn consistency(request: &ExecuteRetrieverRequest) -> Option<ReadConsistencyOptionMode> {
    let written = request.write_token.as_ref();
    let written = written.map(|_| ReadConsistencyOptionMode::Strong);
    written.or(request.consistency.as_ref().map(|asked| asked.mode))
}

/// Whether what is remembered is no answer. Whoever takes an answer of any age gets a remembered one, too.
fn must_be_fresh(request: &ExecuteRetrieverRequest) -> bool {
    let limit = request.consistency.as_ref();
    let limit = limit.and_then(|asked| asked.max_staleness_ms);
    limit.is_some() || consistency(request) == Some(ReadConsistencyOptionMode::Strong)
}

/// Where the execution writes, if it is to.
async fn target(
    app: &App,
    scope: &Scope<Read>,
    request: &ExecuteRetrieverRequest,
) -> Result<Option<Target>> {
    let Some(target) = request.target_collection_id.as_deref() else {
        return Ok(None);
    };
    if request.stream {
        let msg = "a stream writes nothing: leave `stream` or `target_collection_id` out";
        let path = ["target_collection_id"];
        return Err(Violation::body(&path, "value_error", msg, target.into()).into());
    }
    Target::find(app, scope, target).await.map(Some)
}

fn ask(request: ExecuteRetrieverRequest, query: ExecuteQuery) -> Execute {
    let fresh = must_be_fresh(&request);
    Execute {
        inputs: request.inputs.unwrap_or_default(),
        filters: request.filters,
        pagination: request.pagination,
        limit: request.limit,
        expand: request.expand.unwrap_or_default(),
        presigned_urls: request.return_presigned_urls
            || query.return_presigned_urls.unwrap_or(false),
        vectors: request.return_vectors || query.return_vectors.unwrap_or(false),
        highlights: request.return_highlights,
        explain: request.explain || query.explain.unwrap_or(false),
        // Whoever says how fresh an answer must be gets a fresh one, and only that is written.
        skip_cache: request.skip_cache
            || query.skip_cache.unwrap_or(false)
            || fresh
            || request.target_collection_id.is_some(),
        ..Execute::default()
    }
}

/// What an execution would do: with these inputs, where they are sent.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/execute/explain", tag = "retrievers", request_body = ExplainRetrieverRequest, responses((status = 200, body = ExplainRetrieverResponse)))]
async fn explain_retriever(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Body(request): Body<ExplainRetrieverRequest>,
) -> Result<Json<ExplainRetrieverResponse>> {
    let retriever = super::known(&app, &scope, &id).await?;
    let inputs = request.inputs.filter(|inputs| !inputs.is_empty());
    let inputs = inputs.map(|sent| super::execution::checked(&retriever, &sent));
    let inputs = inputs.transpose()?;
    let told = super::explain(&app, &scope, &retriever, inputs.as_ref());
    told.await.map(Json)
}

/// Executions of a retriever, newest first, also those that failed; with `status` those that ended so. `filters` and `sorts` are of
/// the members of an execution.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/executions/list", tag = "retrievers", params(ListQuery), request_body = ListExecutionsRequest, responses((status = 200, body = ListExecutionsResponse)))]
async fn list_executions(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    query: ListQuery,
    Body(request): Body<ListExecutionsRequest>,
) -> Result<Json<ListExecutionsResponse>> {
    let params = ListParams::new(query, &request)?;
    let id = super::find(&app, &scope, &id, NamespaceOperation::ReadData)
        .await?
        .retriever_id
        .unwrap_or_default();
    let wanted = Wanted {
        namespace_id: &scope.namespace_id,
        retriever_id: &id,
        status: request.status.as_deref().filter(|one| !one.is_empty()),
        since: i64::MIN,
        until: i64::MAX,
    };
    super::log::list(&app, params, wanted).await.map(Json)
}

/// One execution, without its documents.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/executions/{execution_id}", tag = "retrievers", responses((status = 200, body = ExecutionDetail)))]
async fn get_execution(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((id, execution)): Path<(String, String)>,
) -> Result<Json<ExecutionDetail>> {
    let id = super::find(&app, &scope, &id, NamespaceOperation::ReadData)
        .await?
        .retriever_id
        .unwrap_or_default();
    let found = store::find_execution(app.db(), &scope.namespace_id, &id, &execution).await?;
    cast(&found).map(Json)
}
