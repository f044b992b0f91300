use axum::extract::{Path, State};
use loupe_wire::{
    ApplyTaxonomyRequest, ApplyTaxonomyResponse, CloneTaxonomyRequest, CloneTaxonomyResponse,
    CreateTaxonomyRequest, CreateTaxonomyVersionRequest, ExecuteTaxonomyRequest,
    GenericDeleteResponse, JoinResponse, ListTaxonomiesRequest, ListTaxonomiesResponse,
    PatchTaxonomyRequest, TaxonomyResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{Result, Violation},
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_taxonomies, create_taxonomy))
        .routes(routes!(search_taxonomies))
        .routes(routes!(get_taxonomy, update_taxonomy, delete_taxonomy))
        .routes(routes!(clone_taxonomy))
        .routes(routes!(execute_taxonomy))
        .routes(routes!(execute_taxonomy_before))
        .routes(routes!(list_taxonomy_versions, create_version))
        .routes(routes!(apply_taxonomy))
        .merge(super::promoting::router())
}

async fn page(
    app: &App,
    scope: Scope<Read>,
    query: ListQuery,
    request: ListTaxonomiesRequest,
) -> Result<Json<ListTaxonomiesResponse>> {
    let params = ListParams::new(query, &request)?;
    super::list(app, &scope, &params).await.map(Json)
}

/// Taxonomies of the namespace, newest first.
#[utoipa::path(get, path = "/v1/taxonomies", tag = "taxonomies", params(ListQuery), responses((status = 200, body = ListTaxonomiesResponse)))]
async fn list_taxonomies(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
) -> Result<Json<ListTaxonomiesResponse>> {
    page(&app, scope, query, ListTaxonomiesRequest::default()).await
}

/// Taxonomies that match.
#[utoipa::path(post, path = "/v1/taxonomies/list", tag = "taxonomies", params(ListQuery), request_body = Option<ListTaxonomiesRequest>, responses((status = 200, body = ListTaxonomiesResponse)))]
async fn search_taxonomies(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListTaxonomiesRequest>,
) -> Result<Json<ListTaxonomiesResponse>> {
    page(&app, scope, query, request).await
}

/// Makes a taxonomy: collections of nodes, the retrievers that find a document's nodes, and what documents take over.
#[utoipa::path(post, path = "/v1/taxonomies", tag = "taxonomies", request_body = CreateTaxonomyRequest, responses((status = 200, body = TaxonomyResponse)))]
async fn create_taxonomy(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateTaxonomyRequest>,
) -> Result<Json<TaxonomyResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct VersionQuery {
    /// From 1: a version before the newest.
    version: Option<i64>,
}

impl VersionQuery {
    fn checked(self) -> Result<Option<i64>> {
        match self.version {
            Some(version) if version < 1 => {
                let msg = "versions are counted from 1";
                Err(Violation::query("version", "range", msg, version.into()).into())
            }
            version => Ok(version),
        }
    }
}

/// One taxonomy, by id or name, as it is or as a version of it was.
#[utoipa::path(get, path = "/v1/taxonomies/{taxonomy_identifier}", tag = "taxonomies", params(VersionQuery), responses((status = 200, body = TaxonomyResponse)))]
async fn get_taxonomy(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
    Params(query): Params<VersionQuery>,
) -> Result<Json<TaxonomyResponse>> {
    super::get(&app, &scope, &identifier, query.checked()?)
        .await
        .map(Json)
}

/// Changes name, description and metadata; how nodes are found never changes: clone the taxonomy.
#[utoipa::path(patch, path = "/v1/taxonomies/{taxonomy_identifier}", tag = "taxonomies", request_body = PatchTaxonomyRequest, responses((status = 200, body = TaxonomyResponse)))]
async fn update_taxonomy(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<PatchTaxonomyRequest>,
) -> Result<Json<TaxonomyResponse>> {
    super::update(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// Removes a taxonomy with its versions; collections apply it no more.
#[utoipa::path(delete, path = "/v1/taxonomies/{taxonomy_identifier}", tag = "taxonomies", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_taxonomy(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(identifier): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &identifier).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// Makes a taxonomy like this one, with another configuration or retriever where sent.
#[utoipa::path(post, path = "/v1/taxonomies/{taxonomy_identifier}/clone", tag = "taxonomies", request_body = CloneTaxonomyRequest, responses((status = 200, body = CloneTaxonomyResponse)))]
async fn clone_taxonomy(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<CloneTaxonomyRequest>,
) -> Result<Json<CloneTaxonomyResponse>> {
    super::clone(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// Finds the nodes of documents. `on_demand` shows what they would take over; `batch` leaves a task that stores it.
#[utoipa::path(post, path = "/v1/taxonomies/{taxonomy_identifier}/execute", tag = "taxonomies", params(VersionQuery), request_body = ExecuteTaxonomyRequest, responses((status = 200, body = JoinResponse)))]
async fn execute_taxonomy(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Params(query): Params<VersionQuery>,
    Body(request): Body<ExecuteTaxonomyRequest>,
) -> Result<Json<JoinResponse>> {
    super::executing::execute(&app, &scope, &identifier, query.checked()?, request)
        .await
        .map(Json)
}

/// As `POST /v1/taxonomies/{taxonomy_identifier}/execute`, at its address of before.
#[utoipa::path(post, path = "/v1/taxonomies/execute/{taxonomy_identifier}", tag = "taxonomies", params(VersionQuery), request_body = ExecuteTaxonomyRequest, responses((status = 200, body = JoinResponse)))]
async fn execute_taxonomy_before(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Params(query): Params<VersionQuery>,
    Body(request): Body<ExecuteTaxonomyRequest>,
) -> Result<Json<JoinResponse>> {
    super::executing::execute(&app, &scope, &identifier, query.checked()?, request)
        .await
        .map(Json)
}

/// Every version of a taxonomy, newest first.
#[utoipa::path(get, path = "/v1/taxonomies/{taxonomy_id}/versions", tag = "taxonomies", responses((status = 200, body = ListTaxonomiesResponse)))]
async fn list_taxonomy_versions(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<ListTaxonomiesResponse>> {
    super::versions(&app, &scope, &identifier).await.map(Json)
}

/// Makes a new version: other settings around the same retrievers, mappings and fields, and the tree as it is now.
#[utoipa::path(post, path = "/v1/taxonomies/{taxonomy_id}/versions", tag = "taxonomies", request_body = CreateTaxonomyVersionRequest, responses((status = 200, body = TaxonomyResponse)))]
async fn create_version(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<CreateTaxonomyVersionRequest>,
) -> Result<Json<TaxonomyResponse>> {
    super::new_version(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// Applies a taxonomy to the documents that a collection has already, by a task.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/apply-taxonomy", tag = "taxonomies", request_body = ApplyTaxonomyRequest, responses((status = 200, body = ApplyTaxonomyResponse)))]
async fn apply_taxonomy(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(collection): Path<String>,
    Body(request): Body<ApplyTaxonomyRequest>,
) -> Result<Json<ApplyTaxonomyResponse>> {
    super::executing::apply_to(&app, &scope, &collection, request)
        .await
        .map(Json)
}
