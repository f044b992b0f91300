use axum::extract::{Path, State};
use loupe_wire::{
    CloneCollectionRequest, CloneCollectionResponse, CollectionResponse, CreateCollectionRequest,
    DescribeCollectionFeaturesResponse, GenericDeleteResponse, LifecycleStatusResponse,
    ListCollectionsRequest, ListCollectionsResponse, ResourceType, SchemaSyncRequest,
    SyncCollectionSchemaResponse, TransitionLifecycleRequest, UpdateCollectionRequest,
};
use utoipa_axum::router::OpenApiRouter;

use super::{COLLECTIONS, details, lifecycle, schemas};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{ListParams, ListQuery, Params},
    openapi::routes,
    unresolved,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_collections, create_collection))
        .routes(routes!(search_collections))
        .routes(routes!(
            get_collection,
            update_collection,
            delete_collection
        ))
        .routes(routes!(clone_collection))
        .routes(routes!(describe_features))
        .routes(routes!(
            get_collection_lifecycle,
            transition_collection_lifecycle
        ))
        .routes(routes!(sync_collection_schema))
        .merge(super::reconciling::router())
}

async fn page(
    app: &App,
    scope: Scope<Read>,
    query: ListQuery,
    request: ListCollectionsRequest,
) -> Result<Json<ListCollectionsResponse>> {
    let params = ListParams::new(query, &request)?;
    let (caller, kind, owner) = (&scope.caller, ResourceType::Collection, &scope.namespace_id);
    let mut page = if request.include_system {
        details::with_system(app, &scope, &params).await?
    } else {
        caller.list(app, &COLLECTIONS, kind, owner, &params).await?
    };
    super::count_documents(app, &scope, &mut page.results).await?;
    let total_count = page.total_count(&params);
    let (results, pagination) = (page.results, page.pagination);
    Ok(Json(ListCollectionsResponse {
        stats: Some(details::stats(&results)),
        results,
        pagination,
        total_count,
        ..Default::default()
    }))
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// Words that collections are looked for by, in any letters.
    search: Option<String>,
    /// The namespace of the header: another one is refused.
    namespace_id: Option<String>,
    /// Lists the collections that the server keeps, too, such as that of annotations.
    include_system: Option<bool>,
}

impl SearchQuery {
    /// Refuses a request whose header and query name different namespaces.
    fn check(&self, scope: &Scope<Read>) -> Result<()> {
        let header = &scope.namespace_id;
        match &self.namespace_id {
            Some(asked) if asked != header && !unresolved::is_nowhere(header) => {
                Err(ApiError::bad_request(
                    "namespace_mismatch",
                    "X-Namespace and namespace_id name different namespaces",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Collections of the namespace.
#[utoipa::path(get, path = "/v1/collections", tag = "collections", params(ListQuery, SearchQuery), responses((status = 200, body = ListCollectionsResponse)))]
async fn list_collections(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Params(words): Params<SearchQuery>,
) -> Result<Json<ListCollectionsResponse>> {
    words.check(&scope)?;
    let request = ListCollectionsRequest {
        search: words.search,
        include_system: words.include_system.unwrap_or(false),
        ..Default::default()
    };
    page(&app, scope, query, request).await
}

/// Collections that match.
#[utoipa::path(post, path = "/v1/collections/list", tag = "collections", params(ListQuery), request_body = ListCollectionsRequest, responses((status = 200, body = ListCollectionsResponse)))]
async fn search_collections(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListCollectionsRequest>,
) -> Result<Json<ListCollectionsResponse>> {
    page(&app, scope, query, request).await
}

/// Makes a collection: a source, and the extractor that turns its objects into documents.
#[utoipa::path(post, path = "/v1/collections", tag = "collections", request_body = CreateCollectionRequest, responses((status = 200, body = CollectionResponse)))]
async fn create_collection(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateCollectionRequest>,
) -> Result<Json<CollectionResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// One collection, by id or name, with the addresses of its vector indexes.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}", tag = "collections", responses((status = 200, body = CollectionResponse)))]
async fn get_collection(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<CollectionResponse>> {
    details::get(&app, &scope, &identifier).await.map(Json)
}

/// Changes what is mutable; the extractor is not: clone the collection to change it.
#[utoipa::path(patch, path = "/v1/collections/{collection_identifier}", tag = "collections", request_body = UpdateCollectionRequest, responses((status = 200, body = CollectionResponse)))]
async fn update_collection(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<UpdateCollectionRequest>,
) -> Result<Json<CollectionResponse>> {
    super::update(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// Removes a collection with its documents.
#[utoipa::path(delete, path = "/v1/collections/{collection_identifier}", tag = "collections", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_collection(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(identifier): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &identifier).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

/// The features that searches of this collection can use.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/features", tag = "collections", responses((status = 200, body = DescribeCollectionFeaturesResponse)))]
async fn describe_features(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<DescribeCollectionFeaturesResponse>> {
    super::features(&app, &scope, &identifier).await.map(Json)
}

/// Makes a collection like this one, with the members that are sent in place of its own. With the same source and
/// extractor its documents are copied with their vectors, by a task; otherwise trigger the new collection to fill it.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/clone", tag = "collections", request_body = CloneCollectionRequest, responses((status = 200, body = CloneCollectionResponse)))]
async fn clone_collection(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<CloneCollectionRequest>,
) -> Result<Json<CloneCollectionResponse>> {
    super::clone(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// What the collection is for at the moment, and where its documents are.
#[utoipa::path(get, path = "/v1/collections/{collection_identifier}/lifecycle", tag = "collections", responses((status = 200, body = LifecycleStatusResponse)))]
async fn get_collection_lifecycle(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<LifecycleStatusResponse>> {
    lifecycle::show(&app, &scope, &identifier).await.map(Json)
}

/// Makes a collection active, cold (searched alone), archived (put away in a file) or frozen (put away and kept from being
/// deleted). A task moves the documents.
#[utoipa::path(patch, path = "/v1/collections/{collection_identifier}/lifecycle", tag = "collections", request_body = TransitionLifecycleRequest, responses((status = 200, body = LifecycleStatusResponse)))]
async fn transition_collection_lifecycle(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<TransitionLifecycleRequest>,
) -> Result<Json<LifecycleStatusResponse>> {
    lifecycle::transition(&app, &scope, &identifier, request)
        .await
        .map(Json)
}

/// Looks at documents and adds the fields that the collection's schema lacks, there and in the collections over it.
#[utoipa::path(post, path = "/v1/collections/{collection_id}/sync-schema", tag = "collections", request_body = SchemaSyncRequest, responses((status = 200, body = SyncCollectionSchemaResponse)))]
async fn sync_collection_schema(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(identifier): Path<String>,
    Body(request): Body<SchemaSyncRequest>,
) -> Result<Json<SyncCollectionSchemaResponse>> {
    schemas::sync(&app, &scope, &identifier, request)
        .await
        .map(Json)
}
