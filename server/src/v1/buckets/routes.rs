use axum::extract::{Path, State};
use loupe_wire::{
    BucketCreateRequest, BucketDeleteResponse, BucketPatchRequest, BucketResponse,
    BucketUpdateRequest, ListBucketsRequest, ListBucketsResponse, ResourceType,
};
use utoipa_axum::router::OpenApiRouter;

use super::{BUCKETS, store};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_buckets, create_bucket))
        .routes(routes!(search_buckets))
        .routes(routes!(
            get_bucket,
            update_bucket,
            put_bucket,
            delete_bucket
        ))
}

async fn page(
    app: &App,
    scope: Scope<Read>,
    query: ListQuery,
    request: ListBucketsRequest,
) -> Result<Json<ListBucketsResponse>> {
    let params = ListParams::new(query, &request)?;
    let owner = &scope.namespace_id;
    let mut page = scope
        .caller
        .list(app, &BUCKETS, ResourceType::Bucket, owner, &params)
        .await?;
    store::count(app.db(), &scope.namespace_id, &mut page.results).await?;
    let total_count = page.total_count(&params);
    Ok(Json(ListBucketsResponse {
        stats: Some(store::stats(&page.results)),
        results: page.results,
        pagination: page.pagination,
        total_count,
        ..Default::default()
    }))
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Words that buckets are looked for by, in any letters.
    search: Option<String>,
}

/// Buckets of the namespace.
#[utoipa::path(get, path = "/v1/buckets", tag = "buckets", params(ListQuery, SearchQuery), responses((status = 200, body = ListBucketsResponse)))]
async fn list_buckets(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Params(words): Params<SearchQuery>,
) -> Result<Json<ListBucketsResponse>> {
    let request = ListBucketsRequest {
        search: words.search,
        ..Default::default()
    };
    page(&app, scope, query, request).await
}

/// Buckets that match.
#[utoipa::path(post, path = "/v1/buckets/list", tag = "buckets", params(ListQuery), request_body = ListBucketsRequest, responses((status = 200, body = ListBucketsResponse)))]
async fn search_buckets(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListBucketsRequest>,
) -> Result<Json<ListBucketsResponse>> {
    page(&app, scope, query, request).await
}

/// Makes a bucket.
#[utoipa::path(post, path = "/v1/buckets", tag = "buckets", request_body = BucketCreateRequest, responses((status = 200, body = BucketResponse)))]
async fn create_bucket(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<BucketCreateRequest>,
) -> Result<Json<BucketResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// One bucket, by id or name.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}", tag = "buckets", responses((status = 200, body = BucketResponse)))]
async fn get_bucket(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<BucketResponse>> {
    super::get(&app, &scope, &identifier).await.map(Json)
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ChangeQuery {
    /// Takes a schema that objects of the bucket may no longer fit.
    force_schema_break: Option<bool>,
}

/// Changes members of a bucket.
#[utoipa::path(patch, path = "/v1/buckets/{bucket_identifier}", tag = "buckets", params(ChangeQuery), request_body = BucketPatchRequest, responses((status = 200, body = BucketResponse)))]
async fn update_bucket(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Params(query): Params<ChangeQuery>,
    Body(request): Body<BucketPatchRequest>,
) -> Result<Json<BucketResponse>> {
    super::check_adapter(request.source_adapter.as_ref())?;
    let force = query.force_schema_break == Some(true);
    super::update(&app, &scope, &identifier, request.into(), force)
        .await
        .map(Json)
}

/// Changes members of a bucket, its storage class among them.
#[utoipa::path(put, path = "/v1/buckets/{bucket_identifier}", tag = "buckets", params(ChangeQuery), request_body = BucketUpdateRequest, responses((status = 200, body = BucketResponse)))]
async fn put_bucket(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Params(query): Params<ChangeQuery>,
    Body(request): Body<BucketUpdateRequest>,
) -> Result<Json<BucketResponse>> {
    let force = query.force_schema_break == Some(true);
    super::update(&app, &scope, &identifier, request, force)
        .await
        .map(Json)
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DeleteQuery {
    /// Cancels batches that still wait or run.
    force_foreclose: Option<bool>,
}

/// Removes the bucket with its objects, their files and their documents, by a task.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_identifier}", tag = "buckets", params(DeleteQuery), responses((status = 200, body = BucketDeleteResponse)))]
async fn delete_bucket(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(identifier): Path<String>,
    Params(query): Params<DeleteQuery>,
) -> Result<Json<BucketDeleteResponse>> {
    let force = query.force_foreclose == Some(true);
    super::delete(&app, &scope, &identifier, force)
        .await
        .map(Json)
}
