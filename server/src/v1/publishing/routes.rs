use axum::{
    extract::{FromRequestParts, Path, State},
    http::request::Parts,
};
use loupe_wire::{
    GenericDeleteResponse, MovePublishedRetrieverRequest, OrganizationPublishStatsResponse,
    PublicNameAvailabilityResponse, PublishRetrieverRequest, PublishRetrieverResponse,
    PublishedRetrieverListResponse, PublishedRetrieverResponse, UpdatePublishedRetrieverRequest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{
    moving,
    preview::{self, PublishPreviewResponse},
    store,
};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{self, ListParams, ListQuery},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_published))
        .routes(routes!(publish_stats))
        .routes(routes!(
            get_published,
            publish_retriever,
            update_published,
            unpublish_retriever
        ))
        .routes(routes!(preview_published))
        .routes(routes!(move_published))
        .routes(routes!(check_public_name))
}

/// Publications that are listed where no number is asked for.
const PAGE: i64 = 100;

/// Published retrievers of the namespace.
#[utoipa::path(get, path = "/v1/retrievers/published", tag = "publishing", params(ListQuery), responses((status = 200, body = PublishedRetrieverListResponse)))]
async fn list_published(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
) -> Result<Json<PublishedRetrieverListResponse>> {
    let is_open = query.limit.or(query.page_size).is_none();
    let limit = is_open.then_some(PAGE).or(query.limit);
    let query = ListQuery { limit, ..query };
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let all = store::list(app.db(), &scope.namespace_id).await?;
    let total = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let window = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let results = all
        .into_iter()
        .skip(window(params.offset))
        .take(window(params.limit))
        .collect();
    Ok(Json(PublishedRetrieverListResponse {
        results,
        total,
        limit: params.limit,
        offset: params.offset,
        ..Default::default()
    }))
}

/// How many retrievers may still be published.
#[utoipa::path(get, path = "/v1/retrievers/publish/stats", tag = "publishing", responses((status = 200, body = OrganizationPublishStatsResponse)))]
async fn publish_stats(
    State(app): State<App>,
    scope: Scope<Read>,
) -> Result<Json<OrganizationPublishStatsResponse>> {
    let current_count =
        i64::try_from(store::list(app.db(), &scope.namespace_id).await?.len()).unwrap_or(i64::MAX);
    let max_allowed = app.config().limits.published_retrievers;
    let remaining = (max_allowed - current_count).max(0);
    Ok(Json(OrganizationPublishStatsResponse {
        current_count,
        max_allowed,
        remaining,
        at_limit: remaining == 0,
    }))
}

/// The publication of a retriever; null when it is not published.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/publish", tag = "publishing", responses((status = 200, body = Option<PublishedRetrieverResponse>)))]
async fn get_published(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<Option<PublishedRetrieverResponse>>> {
    super::lookup(&app, &scope, &id).await.map(Json)
}

/// Publishes a retriever; publishing again changes the page and keeps its address.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/publish", tag = "publishing", request_body = PublishRetrieverRequest, responses((status = 200, body = PublishRetrieverResponse)))]
async fn publish_retriever(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<PublishRetrieverRequest>,
) -> Result<Json<PublishRetrieverResponse>> {
    super::publish(&app, &scope, &id, request).await.map(Json)
}

/// Shows the page that publishing would make, at an address of its own that whoever has it can look at for an hour. Nothing
/// is published.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/publish/preview", tag = "publishing", request_body = PublishRetrieverRequest, responses((status = 200, body = PublishPreviewResponse)))]
async fn preview_published(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<PublishRetrieverRequest>,
) -> Result<Json<PublishPreviewResponse>> {
    preview::preview(&app, &scope, &id, request).await.map(Json)
}

/// Moves a page to another retriever of the namespace that has none: its addresses, its password and its limits stay, and no
/// visitor is turned away meanwhile.
#[utoipa::path(post, path = "/v1/retrievers/{retriever_id}/publish/move", tag = "publishing", request_body = MovePublishedRetrieverRequest, responses((status = 200, body = PublishedRetrieverResponse)))]
async fn move_published(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<MovePublishedRetrieverRequest>,
) -> Result<Json<PublishedRetrieverResponse>> {
    let moved = moving::page(&app, &scope, &id, &request.retriever_id).await;
    moved.map(Json)
}

/// Changes a publication.
#[utoipa::path(patch, path = "/v1/retrievers/{retriever_id}/publish", tag = "publishing", request_body = UpdatePublishedRetrieverRequest, responses((status = 200, body = PublishedRetrieverResponse)))]
async fn update_published(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<UpdatePublishedRetrieverRequest>,
) -> Result<Json<PublishedRetrieverResponse>> {
    super::update(&app, &scope, &id, request).await.map(Json)
}

/// Takes a page down for good.
#[utoipa::path(delete, path = "/v1/retrievers/{retriever_id}/publish", tag = "publishing", responses((status = 200, body = GenericDeleteResponse)))]
async fn unpublish_retriever(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::unpublish(&app, &scope, &id).await?;
    Ok(Json(GenericDeleteResponse::default()))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct NameQuery {
    /// The public name to look at.
    name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for NameQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        list::query(parts).await
    }
}

/// Whether a public name is free for this retriever: its own is.
#[utoipa::path(get, path = "/v1/retrievers/{retriever_id}/publish/availability", tag = "publishing", params(NameQuery), responses((status = 200, body = PublicNameAvailabilityResponse)))]
async fn check_public_name(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
    query: NameQuery,
) -> Result<Json<PublicNameAvailabilityResponse>> {
    let available = super::is_available(&app, &scope, &id, &query.name).await?;
    Ok(Json(PublicNameAvailabilityResponse {
        name: query.name,
        available,
    }))
}
