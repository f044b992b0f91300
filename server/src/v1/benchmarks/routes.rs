use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    BenchmarkListResponse, BenchmarkResponse, CreateBenchmarkRequest, NamespaceOperation,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::Params,
    openapi::routes,
    v1::evaluations,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_benchmarks, create_benchmark))
        .routes(routes!(get_benchmark, delete_benchmark))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct BenchmarksQuery {
    /// The baseline or a candidate.
    retriever_id: Option<String>,
    status: Option<String>,
    /// From 1, default 1.
    page: Option<i64>,
    /// 1 to 1000, default 20.
    page_size: Option<i64>,
}

/// Benchmarks, newest first.
#[utoipa::path(get, path = "/v1/retrievers/benchmarks", tag = "benchmarks", params(BenchmarksQuery), responses((status = 200, body = BenchmarkListResponse)))]
async fn list_benchmarks(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<BenchmarksQuery>,
) -> Result<Json<BenchmarkListResponse>> {
    let window = evaluations::window(query.page, query.page_size)?;
    let narrowed = (query.retriever_id, query.status);
    super::list(&app, &scope, narrowed, window).await.map(Json)
}

/// Asks retrievers again what people asked before, in the background, and measures where each puts what people wanted.
#[utoipa::path(post, path = "/v1/retrievers/benchmarks", tag = "benchmarks", request_body = CreateBenchmarkRequest, responses((status = 200, body = BenchmarkResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_benchmark(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateBenchmarkRequest>,
) -> Result<Json<BenchmarkResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// One benchmark, with its results once it is completed.
#[utoipa::path(get, path = "/v1/retrievers/benchmarks/{benchmark_id}", tag = "benchmarks", responses((status = 200, body = BenchmarkResponse)))]
async fn get_benchmark(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BenchmarkResponse>> {
    super::get(&app, &scope, &id, NamespaceOperation::ReadData)
        .await
        .map(Json)
}

/// Removes a benchmark.
#[utoipa::path(delete, path = "/v1/retrievers/benchmarks/{benchmark_id}", tag = "benchmarks", responses((status = 204)))]
async fn delete_benchmark(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    super::delete(&app, &scope, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
