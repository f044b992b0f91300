use axum::extract::{Path, State};
use loupe_wire::{
    BulkInteractionsRequest, BulkInteractionsResponse, GenericDeleteResponse, InteractionResponse,
    ListInteractionsRequest, ListInteractionsResponse, SearchInteraction,
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::Result,
    json::Json,
    list::ListQuery,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_interaction))
        .routes(routes!(create_interactions))
        .routes(routes!(list_interactions))
        .routes(routes!(get_interaction, delete_interaction))
}

/// Records what somebody did with a result.
#[utoipa::path(post, path = "/v1/retrievers/interactions", tag = "interactions", request_body = SearchInteraction, responses((status = 200, body = InteractionResponse)))]
async fn create_interaction(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<SearchInteraction>,
) -> Result<Json<InteractionResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// Records up to 1,000 interactions; each is done or refused for itself.
#[utoipa::path(post, path = "/v1/retrievers/interactions/batch", tag = "interactions", request_body = BulkInteractionsRequest, responses((status = 200, body = BulkInteractionsResponse)))]
async fn create_interactions(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<BulkInteractionsRequest>,
) -> Result<Json<BulkInteractionsResponse>> {
    super::create_all(&app, &scope, request.interactions)
        .await
        .map(Json)
}

/// Interactions that match, newest first.
#[utoipa::path(post, path = "/v1/retrievers/interactions/list", tag = "interactions", params(ListQuery), request_body = Option<ListInteractionsRequest>, responses((status = 200, body = ListInteractionsResponse)))]
async fn list_interactions(
    State(app): State<App>,
    scope: Scope<Read>,
    query: ListQuery,
    Body(request): Body<ListInteractionsRequest>,
) -> Result<Json<ListInteractionsResponse>> {
    super::list(&app, &scope, query, request).await.map(Json)
}

/// One interaction.
#[utoipa::path(get, path = "/v1/retrievers/interactions/{interaction_id}", tag = "interactions", responses((status = 200, body = InteractionResponse)))]
async fn get_interaction(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<InteractionResponse>> {
    super::get(&app, &scope, &id).await.map(Json)
}

/// Forgets an interaction.
#[utoipa::path(delete, path = "/v1/retrievers/interactions/{interaction_id}", tag = "interactions", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_interaction(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the interaction was deleted".into(),
        ..Default::default()
    }))
}
