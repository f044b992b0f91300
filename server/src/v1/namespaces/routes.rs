use axum::extract::{Path, State};
use loupe_wire::{
    CloneNamespaceRequest, CloneNamespaceResponse, CreateNamespaceRequest, ListNamespacesRequest,
    ListNamespacesResponse, NamespaceDeleteResponse, NamespaceModel, NamespaceOperation,
    PatchNamespaceRequest, ResourceType, UpdateNamespaceRequest,
};
use utoipa_axum::router::OpenApiRouter;

use super::NAMESPACES;
use crate::{
    app::App,
    auth::{Admin, OptionalScope, Org, Read},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_namespaces, create_namespace))
        .routes(routes!(search_namespaces))
        .routes(routes!(clone_namespace))
        .routes(routes!(
            get_namespace,
            update_namespace,
            put_namespace,
            delete_namespace
        ))
        .merge(super::own_vectors::router())
        .merge(super::stats::router())
}

async fn page(
    app: &App,
    scope: &OptionalScope<Read>,
    query: ListQuery,
    request: ListNamespacesRequest,
) -> Result<Json<ListNamespacesResponse>> {
    let params = ListParams::new(query, &request)?;
    let (caller, kind) = (&scope.caller, ResourceType::Namespace);
    let owner = &caller.org_id;
    let page = match scope.namespace_id.as_deref() {
        None => caller.list(app, &NAMESPACES, kind, owner, &params).await?,
        Some(only) => {
            let operation = NamespaceOperation::ReadData;
            let shown = |id: &str| id == only && caller.covers(kind, id, operation);
            NAMESPACES
                .list_some(app.db(), owner, &params, shown)
                .await?
        }
    };
    let total_count = page.total_count(&params);
    Ok(Json(ListNamespacesResponse {
        results: page.results,
        pagination: page.pagination,
        total_count,
        ..Default::default()
    }))
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "accepted by the interface; there are no namespaces of the system, and one view"
)]
struct SearchQuery {
    /// Without effect: the server keeps no namespaces of its own.
    include_system: Option<bool>,
    /// Without effect: namespaces are always told whole.
    view: Option<String>,
}

/// Namespaces of the organization; X-Namespace narrows.
#[utoipa::path(get, path = "/v1/namespaces", tag = "namespaces", params(ListQuery), responses((status = 200, body = ListNamespacesResponse)))]
async fn list_namespaces(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: ListQuery,
) -> Result<Json<ListNamespacesResponse>> {
    page(&app, &scope, query, ListNamespacesRequest::default()).await
}

/// Namespaces that match; X-Namespace narrows.
#[utoipa::path(post, path = "/v1/namespaces/list", tag = "namespaces", params(ListQuery, SearchQuery), request_body = ListNamespacesRequest, responses((status = 200, body = ListNamespacesResponse)))]
async fn search_namespaces(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    query: ListQuery,
    _without_effect: Params<SearchQuery>,
    Body(request): Body<ListNamespacesRequest>,
) -> Result<Json<ListNamespacesResponse>> {
    page(&app, &scope, query, request).await
}

/// Makes a namespace.
#[utoipa::path(post, path = "/v1/namespaces", tag = "namespaces", request_body = CreateNamespaceRequest, responses((status = 200, body = NamespaceModel)))]
async fn create_namespace(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<CreateNamespaceRequest>,
) -> Result<Json<NamespaceModel>> {
    super::create(&app, &org.caller, request).await.map(Json)
}

/// One namespace, by id or name, with the counts of what it holds.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}", tag = "namespaces", responses((status = 200, body = NamespaceModel)))]
async fn get_namespace(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<NamespaceModel>> {
    let caller = scope.at(&app, &identifier).await?;
    super::get(&app, caller, &identifier).await.map(Json)
}

/// Changes a namespace's settings.
#[utoipa::path(patch, path = "/v1/namespaces/{namespace_identifier}", tag = "namespaces", request_body = PatchNamespaceRequest, responses((status = 200, body = NamespaceModel)))]
async fn update_namespace(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<PatchNamespaceRequest>,
) -> Result<Json<NamespaceModel>> {
    let caller = scope.at(&app, &identifier).await?;
    super::update(&app, caller, &identifier, request)
        .await
        .map(Json)
}

/// Changes a namespace's name or payload indexes.
#[utoipa::path(put, path = "/v1/namespaces/{namespace_identifier}", tag = "namespaces", request_body = UpdateNamespaceRequest, responses((status = 200, body = NamespaceModel)))]
async fn put_namespace(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<UpdateNamespaceRequest>,
) -> Result<Json<NamespaceModel>> {
    let caller = scope.at(&app, &identifier).await?;
    let request = PatchNamespaceRequest {
        namespace_name: request.namespace_name,
        payload_indexes: request.payload_indexes,
        ..Default::default()
    };
    super::update(&app, caller, &identifier, request)
        .await
        .map(Json)
}

/// Makes a namespace like this one: collections with their documents, retrievers, buckets without their objects.
/// Documents are copied by a task; `clone_status` tells when they are there.
#[utoipa::path(post, path = "/v1/namespaces/{namespace_identifier}/clone", tag = "namespaces", request_body = CloneNamespaceRequest, responses((status = 200, body = CloneNamespaceResponse)))]
async fn clone_namespace(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<CloneNamespaceRequest>,
) -> Result<Json<CloneNamespaceResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    super::clone(&app, caller, &identifier, request)
        .await
        .map(Json)
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DeleteQuery {
    /// Cancels batches that still wait or run.
    force: Option<bool>,
}

/// Removes the namespace with its buckets, collections, retrievers and documents, by a task.
#[utoipa::path(delete, path = "/v1/namespaces/{namespace_identifier}", tag = "namespaces", params(DeleteQuery), responses((status = 200, body = NamespaceDeleteResponse)))]
async fn delete_namespace(
    State(app): State<App>,
    scope: OptionalScope<Admin>,
    Path(identifier): Path<String>,
    Params(query): Params<DeleteQuery>,
) -> Result<Json<NamespaceDeleteResponse>> {
    let force = query.force == Some(true);
    let caller = scope.at(&app, &identifier).await?;
    super::delete(&app, caller, &identifier, force)
        .await
        .map(Json)
}
