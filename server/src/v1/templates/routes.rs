use axum::extract::{Path, State};
use loupe_wire::{
    BaseTemplateModel, CreateTemplateFromResourceRequest, CreateTemplateFromResourceResponse,
    GenericDeleteResponse, InstantiateBucketTemplateRequest, InstantiateClusterTemplateRequest,
    InstantiateCollectionTemplateRequest, InstantiateRetrieverTemplateRequest,
    InstantiateTaxonomyTemplateRequest, InstantiatedBucketTemplateResponse,
    InstantiatedClusterTemplateResponse, InstantiatedCollectionTemplateResponse,
    InstantiatedRetrieverTemplateResponse, InstantiatedTaxonomyTemplateResponse,
    ListTemplatesRequest, ListTemplatesResponse, TemplateScope, TemplateType,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{keeping, making, of_namespace};
use crate::{
    app::App,
    auth::{Delete, Org, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::Params,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_bucket_templates))
        .routes(routes!(get_bucket_template))
        .routes(routes!(keep_bucket_template))
        .routes(routes!(instantiate_bucket_template))
        .routes(routes!(list_collection_templates))
        .routes(routes!(get_collection_template))
        .routes(routes!(keep_collection_template))
        .routes(routes!(instantiate_collection_template))
        .routes(routes!(list_retriever_templates))
        .routes(routes!(get_retriever_template))
        .routes(routes!(keep_retriever_template))
        .routes(routes!(instantiate_retriever_template))
        .routes(routes!(list_taxonomy_templates))
        .routes(routes!(get_taxonomy_template))
        .routes(routes!(keep_taxonomy_template))
        .routes(routes!(instantiate_taxonomy_template))
        .routes(routes!(list_cluster_templates))
        .routes(routes!(get_cluster_template))
        .routes(routes!(keep_cluster_template))
        .routes(routes!(instantiate_cluster_template))
        .routes(routes!(list_namespace_templates))
        .routes(routes!(get_namespace_template))
        .routes(routes!(keep_namespace_template))
        .routes(routes!(list_public_namespace_templates))
        .routes(routes!(get_public_namespace_template))
        .routes(routes!(list_public_retriever_templates))
        .routes(routes!(get_public_retriever_template))
        .routes(routes!(delete_template))
}

/// Templates of buckets: the organization's own, newest first, then the server's.
#[utoipa::path(post, path = "/v1/templates/buckets", tag = "templates", request_body = Option<ListTemplatesRequest>, responses((status = 200, body = ListTemplatesResponse)))]
async fn list_bucket_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTemplatesRequest>,
) -> Result<Json<ListTemplatesResponse>> {
    super::list(&app, &scope.caller, TemplateType::Bucket, &request)
        .await
        .map(Json)
}

/// One template of a bucket.
#[utoipa::path(get, path = "/v1/templates/buckets/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_bucket_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Bucket, &id)
        .await
        .map(Json)
}

/// Keeps a bucket as a template.
#[utoipa::path(post, path = "/v1/templates/buckets/from-bucket/{bucket_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_bucket_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = keeping::bucket(&app, &scope, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// Makes a bucket of a template.
#[utoipa::path(post, path = "/v1/templates/buckets/{template_id}/instantiate", tag = "templates", request_body = InstantiateBucketTemplateRequest, responses((status = 200, body = InstantiatedBucketTemplateResponse)))]
async fn instantiate_bucket_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<InstantiateBucketTemplateRequest>,
) -> Result<Json<InstantiatedBucketTemplateResponse>> {
    making::bucket(&app, &scope, &id, request).await.map(Json)
}

/// Templates of collections: the organization's own, newest first, then the server's.
#[utoipa::path(post, path = "/v1/templates/collections", tag = "templates", request_body = Option<ListTemplatesRequest>, responses((status = 200, body = ListTemplatesResponse)))]
async fn list_collection_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTemplatesRequest>,
) -> Result<Json<ListTemplatesResponse>> {
    super::list(&app, &scope.caller, TemplateType::Collection, &request)
        .await
        .map(Json)
}

/// One template of a collection.
#[utoipa::path(get, path = "/v1/templates/collections/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_collection_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Collection, &id)
        .await
        .map(Json)
}

/// Keeps a collection as a template.
#[utoipa::path(post, path = "/v1/templates/collections/from-collection/{collection_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_collection_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = keeping::collection(&app, &scope, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// Makes a collection of a template, over the buckets or the collection that are named.
#[utoipa::path(post, path = "/v1/templates/collections/{template_id}/instantiate", tag = "templates", request_body = InstantiateCollectionTemplateRequest, responses((status = 200, body = InstantiatedCollectionTemplateResponse)))]
async fn instantiate_collection_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<InstantiateCollectionTemplateRequest>,
) -> Result<Json<InstantiatedCollectionTemplateResponse>> {
    making::collection(&app, &scope, &id, request)
        .await
        .map(Json)
}

/// Templates of retrievers: the organization's own, newest first, then the server's.
#[utoipa::path(post, path = "/v1/templates/retrievers", tag = "templates", request_body = Option<ListTemplatesRequest>, responses((status = 200, body = ListTemplatesResponse)))]
async fn list_retriever_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTemplatesRequest>,
) -> Result<Json<ListTemplatesResponse>> {
    super::list(&app, &scope.caller, TemplateType::Retriever, &request)
        .await
        .map(Json)
}

/// One template of a retriever.
#[utoipa::path(get, path = "/v1/templates/retrievers/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_retriever_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Retriever, &id)
        .await
        .map(Json)
}

/// Keeps a retriever as a template.
#[utoipa::path(post, path = "/v1/templates/retrievers/from-retriever/{retriever_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_retriever_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = keeping::retriever(&app, &scope, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// Makes a retriever of a template, over the collections that are named.
#[utoipa::path(post, path = "/v1/templates/retrievers/{template_id}/instantiate", tag = "templates", request_body = InstantiateRetrieverTemplateRequest, responses((status = 200, body = InstantiatedRetrieverTemplateResponse)))]
async fn instantiate_retriever_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<InstantiateRetrieverTemplateRequest>,
) -> Result<Json<InstantiatedRetrieverTemplateResponse>> {
    making::retriever(&app, &scope, &id, request)
        .await
        .map(Json)
}

/// Templates of taxonomies: the organization's own, newest first, then the server's.
#[utoipa::path(post, path = "/v1/templates/taxonomies", tag = "templates", request_body = Option<ListTemplatesRequest>, responses((status = 200, body = ListTemplatesResponse)))]
async fn list_taxonomy_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTemplatesRequest>,
) -> Result<Json<ListTemplatesResponse>> {
    super::list(&app, &scope.caller, TemplateType::Taxonomy, &request)
        .await
        .map(Json)
}

/// One template of a taxonomy.
#[utoipa::path(get, path = "/v1/templates/taxonomies/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_taxonomy_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Taxonomy, &id)
        .await
        .map(Json)
}

/// Keeps a taxonomy as a template.
#[utoipa::path(post, path = "/v1/templates/taxonomies/from-taxonomy/{taxonomy_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_taxonomy_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = keeping::taxonomy(&app, &scope, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// Makes a taxonomy of a template, with what `collection_config` names in its places.
#[utoipa::path(post, path = "/v1/templates/taxonomies/{template_id}/instantiate", tag = "templates", request_body = InstantiateTaxonomyTemplateRequest, responses((status = 200, body = InstantiatedTaxonomyTemplateResponse)))]
async fn instantiate_taxonomy_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<InstantiateTaxonomyTemplateRequest>,
) -> Result<Json<InstantiatedTaxonomyTemplateResponse>> {
    making::taxonomy(&app, &scope, &id, request).await.map(Json)
}

/// Templates of clusters: the organization's own, newest first, then the server's.
#[utoipa::path(post, path = "/v1/templates/clusters", tag = "templates", request_body = Option<ListTemplatesRequest>, responses((status = 200, body = ListTemplatesResponse)))]
async fn list_cluster_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Body(request): Body<ListTemplatesRequest>,
) -> Result<Json<ListTemplatesResponse>> {
    super::list(&app, &scope.caller, TemplateType::Cluster, &request)
        .await
        .map(Json)
}

/// One template of a cluster.
#[utoipa::path(get, path = "/v1/templates/clusters/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_cluster_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Cluster, &id)
        .await
        .map(Json)
}

/// Keeps a cluster as a template.
#[utoipa::path(post, path = "/v1/templates/clusters/from-cluster/{cluster_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_cluster_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = keeping::cluster(&app, &scope, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// Makes a cluster of a template, over the collections that are named.
#[utoipa::path(post, path = "/v1/templates/clusters/{template_id}/instantiate", tag = "templates", request_body = InstantiateClusterTemplateRequest, responses((status = 200, body = InstantiatedClusterTemplateResponse)))]
async fn instantiate_cluster_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<InstantiateClusterTemplateRequest>,
) -> Result<Json<InstantiatedClusterTemplateResponse>> {
    making::cluster(&app, &scope, &id, request).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct TemplatesQuery {
    category: Option<String>,
    scope: Option<TemplateScope>,
    /// Default true.
    is_active: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct CategoryQuery {
    category: Option<String>,
}

/// Templates of namespaces: the organization's own, newest first, then the server's.
#[utoipa::path(get, path = "/v1/templates/namespaces", tag = "templates", params(TemplatesQuery), responses((status = 200, body = Vec<BaseTemplateModel>)))]
async fn list_namespace_templates(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<TemplatesQuery>,
) -> Result<Json<Vec<BaseTemplateModel>>> {
    let request = ListTemplatesRequest {
        category: query.category,
        scope: query.scope,
        is_active: query.is_active.unwrap_or(true),
        ..Default::default()
    };
    let kind = TemplateType::Namespace;
    let found = super::list(&app, &scope.caller, kind, &request).await?;
    Ok(Json(found.results))
}

/// One template of a namespace: the requests that make what it holds, to be sent one after the other.
#[utoipa::path(get, path = "/v1/templates/namespaces/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_namespace_template(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<BaseTemplateModel>> {
    super::find(&app, &scope.caller, TemplateType::Namespace, &id)
        .await
        .map(Json)
}

/// Keeps what a namespace holds as a template, without its objects and documents.
#[utoipa::path(post, path = "/v1/templates/namespaces/from-namespace/{namespace_id}", tag = "templates", request_body = CreateTemplateFromResourceRequest, responses((status = 200, body = CreateTemplateFromResourceResponse)))]
async fn keep_namespace_template(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<CreateTemplateFromResourceRequest>,
) -> Result<Json<CreateTemplateFromResourceResponse>> {
    let kept = of_namespace::namespace(&app, &scope.caller, &id).await?;
    super::keep(&app, &scope.caller, kept, request)
        .await
        .map(Json)
}

/// The server's own templates of namespaces, for everybody.
#[utoipa::path(get, path = "/v1/public/templates/namespaces", tag = "templates", params(CategoryQuery), responses((status = 200, body = Vec<BaseTemplateModel>)))]
async fn list_public_namespace_templates(
    Params(query): Params<CategoryQuery>,
) -> Json<Vec<BaseTemplateModel>> {
    let category = query.category.as_deref();
    Json(super::list_built_in(TemplateType::Namespace, category))
}

/// One of the server's own templates of namespaces.
#[utoipa::path(get, path = "/v1/public/templates/namespaces/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_public_namespace_template(Path(id): Path<String>) -> Result<Json<BaseTemplateModel>> {
    super::find_built_in(TemplateType::Namespace, &id).map(Json)
}

/// The server's own templates of retrievers, for everybody.
#[utoipa::path(get, path = "/v1/public/templates/retrievers", tag = "templates", params(CategoryQuery), responses((status = 200, body = Vec<BaseTemplateModel>)))]
async fn list_public_retriever_templates(
    Params(query): Params<CategoryQuery>,
) -> Json<Vec<BaseTemplateModel>> {
    let category = query.category.as_deref();
    Json(super::list_built_in(TemplateType::Retriever, category))
}

/// One of the server's own templates of retrievers.
#[utoipa::path(get, path = "/v1/public/templates/retrievers/{template_id}", tag = "templates", responses((status = 200, body = BaseTemplateModel)))]
async fn get_public_retriever_template(Path(id): Path<String>) -> Result<Json<BaseTemplateModel>> {
    super::find_built_in(TemplateType::Retriever, &id).map(Json)
}

/// Removes a template of the organization, of whatever kind; what was made of it stays.
#[utoipa::path(delete, path = "/v1/templates/{template_id}", tag = "templates", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_template(
    State(app): State<App>,
    org: Org<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &org.caller, &id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}
