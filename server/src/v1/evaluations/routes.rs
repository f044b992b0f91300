use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use indexmap::IndexMap;
use loupe_wire::{
    CreateDatasetRequest, DatasetListResponse, EvaluationDataset, EvaluationDiscoveryResponse,
    EvaluationListResponse, EvaluationRecord, EvaluationStatus, GenerateFromInteractionsRequest,
    ScorePredictionsRequest, ScorePredictionsResponse, StartEvaluationRequest,
    StartEvaluationResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{dataset, score};
use crate::{
    app::App,
    auth::{Org, Read, Scope, Write},
    body::Body,
    error::{Result, Violation},
    json::Json,
    list::Params,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(discover_evaluations))
        .routes(routes!(score_predictions))
        .routes(routes!(list_datasets, create_dataset))
        .routes(routes!(get_dataset))
        .routes(routes!(list_evaluations, start_evaluation))
        .routes(routes!(generate_dataset))
        .routes(routes!(get_evaluation))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    /// From 1, default 1.
    page: Option<i64>,
    /// 1 to 1000, default 20.
    page_size: Option<i64>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct EvaluationsQuery {
    #[param(inline)]
    status: Option<EvaluationStatus>,
    dataset_name: Option<String>,
    /// From 1, default 1.
    page: Option<i64>,
    /// 1 to 1000, default 20.
    page_size: Option<i64>,
}

/// The page asked for, checked.
pub fn window(page: Option<i64>, page_size: Option<i64>) -> Result<(i64, i64)> {
    let (page, page_size) = (page.unwrap_or(1), page_size.unwrap_or(20));
    if page < 1 {
        let msg = "pages are counted from 1";
        return Err(Violation::query("page", "range", msg, page.into()).into());
    }
    if !(1..=1000).contains(&page_size) {
        let msg = "must be between 1 and 1000";
        return Err(Violation::query("page_size", "range", msg, page_size.into()).into());
    }
    Ok((page, page_size))
}

/// What there is to evaluate with.
#[utoipa::path(get, path = "/v1/evaluations", tag = "evaluations", responses((status = 200, body = EvaluationDiscoveryResponse)))]
async fn discover_evaluations(_org: Org<Read>) -> Json<EvaluationDiscoveryResponse> {
    let endpoints = [
        ("datasets", "GET /v1/retrievers/evaluations/datasets"),
        ("create_dataset", "POST /v1/retrievers/evaluations/datasets"),
        (
            "dataset",
            "GET /v1/retrievers/evaluations/datasets/{dataset_identifier}",
        ),
        (
            "generate_dataset",
            "POST /v1/retrievers/{retriever_id}/evaluations/generate-from-interactions",
        ),
        (
            "evaluations",
            "GET /v1/retrievers/{retriever_id}/evaluations",
        ),
        (
            "start_evaluation",
            "POST /v1/retrievers/{retriever_id}/evaluations",
        ),
        (
            "evaluation",
            "GET /v1/retrievers/{retriever_id}/evaluations/{evaluation_id}",
        ),
        ("score", "POST /v1/evaluations/score"),
    ];
    let endpoints = endpoints.map(|(name, operation)| (name.to_owned(), operation.to_owned()));
    Json(EvaluationDiscoveryResponse {
        endpoints: IndexMap::from(endpoints),
    })
}

/// Measures predictions that are sent, beside what is right: precision, recall, f1, map, ndcg and mrr at `k`.
#[utoipa::path(post, path = "/v1/evaluations/score", tag = "evaluations", request_body = ScorePredictionsRequest, responses((status = 200, body = ScorePredictionsResponse)))]
async fn score_predictions(
    _org: Org<Read>,
    Body(request): Body<ScorePredictionsRequest>,
) -> Result<Json<ScorePredictionsResponse>> {
    score::score(request).map(Json)
}

/// Datasets of the namespace, newest first, without their queries.
#[utoipa::path(get, path = "/v1/retrievers/evaluations/datasets", tag = "evaluations", params(PageQuery), responses((status = 200, body = DatasetListResponse)))]
async fn list_datasets(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<PageQuery>,
) -> Result<Json<DatasetListResponse>> {
    let window = window(query.page, query.page_size)?;
    dataset::list(&app, &scope, window).await.map(Json)
}

/// Keeps queries with the documents that are right for them.
#[utoipa::path(post, path = "/v1/retrievers/evaluations/datasets", tag = "evaluations", request_body = CreateDatasetRequest, responses((status = 200, body = EvaluationDataset), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_dataset(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateDatasetRequest>,
) -> Result<Json<EvaluationDataset>> {
    dataset::create(&app, &scope, request).await.map(Json)
}

/// One dataset, by id or name, with its queries.
#[utoipa::path(get, path = "/v1/retrievers/evaluations/datasets/{dataset_identifier}", tag = "evaluations", responses((status = 200, body = EvaluationDataset)))]
async fn get_dataset(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<EvaluationDataset>> {
    dataset::get(&app, &scope, &identifier).await.map(Json)
}

/// Evaluations of a retriever, newest first, without what came of each query.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/evaluations", tag = "evaluations", params(EvaluationsQuery), responses((status = 200, body = EvaluationListResponse)))]
async fn list_evaluations(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    Params(query): Params<EvaluationsQuery>,
) -> Result<Json<EvaluationListResponse>> {
    let window = window(query.page, query.page_size)?;
    super::list(&app, &scope, &id, query.status, query.dataset_name, window)
        .await
        .map(Json)
}

/// Asks the retriever every query of a dataset and measures its rankings; the task and the evaluation tell how far it is.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/evaluations", tag = "evaluations", request_body = StartEvaluationRequest, responses((status = 202, body = StartEvaluationResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn start_evaluation(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<StartEvaluationRequest>,
) -> Result<(StatusCode, Json<StartEvaluationResponse>)> {
    let started = super::start(&app, &scope, &id, request).await?;
    Ok((StatusCode::ACCEPTED, Json(started)))
}

/// Makes a dataset of what people did with the retriever's results.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/evaluations/generate-from-interactions", tag = "evaluations", request_body = Option<GenerateFromInteractionsRequest>, responses((status = 200, body = EvaluationDataset), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn generate_dataset(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<GenerateFromInteractionsRequest>,
) -> Result<Json<EvaluationDataset>> {
    dataset::generate(&app, &scope, &id, request)
        .await
        .map(Json)
}

/// One evaluation, with its figures and what came of each query.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/evaluations/{evaluation_id}", tag = "evaluations", responses((status = 200, body = EvaluationRecord)))]
async fn get_evaluation(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((retriever, id)): Path<(String, String)>,
) -> Result<Json<EvaluationRecord>> {
    super::get(&app, &scope, &retriever, &id).await.map(Json)
}
