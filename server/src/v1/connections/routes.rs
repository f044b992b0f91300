use axum::extract::{Path, State};
use loupe_wire::{
    GenericDeleteResponse, ListStorageConnectionsRequest, StorageConnectionCreateRequest,
    StorageConnectionListResponse, StorageConnectionModel, StorageConnectionTestResponse,
    StorageConnectionUpdateRequest,
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    auth::{Admin, Org, Read},
    body::Body,
    error::Result,
    json::Json,
    list::{ListParams, ListQuery},
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_connection))
        .routes(routes!(list_connections))
        .routes(routes!(
            get_connection,
            update_connection,
            delete_connection
        ))
        .routes(routes!(test_connection))
}

/// Keeps a connection to a storage, its secrets encrypted.
#[utoipa::path(post, path = "/v1/organizations/connections", tag = "connections", request_body = StorageConnectionCreateRequest, responses((status = 200, body = StorageConnectionModel)))]
async fn create_connection(
    State(app): State<App>,
    org: Org<Admin>,
    Body(request): Body<StorageConnectionCreateRequest>,
) -> Result<Json<StorageConnectionModel>> {
    super::create(&app, &org.caller, request).await.map(Json)
}

/// The organization's connections.
#[utoipa::path(post, path = "/v1/organizations/connections/list", tag = "connections", params(ListQuery), request_body = ListStorageConnectionsRequest, responses((status = 200, body = StorageConnectionListResponse)))]
async fn list_connections(
    State(app): State<App>,
    org: Org<Read>,
    query: ListQuery,
    Body(request): Body<ListStorageConnectionsRequest>,
) -> Result<Json<StorageConnectionListResponse>> {
    let params = ListParams::new(query, &serde_json::json!({}))?;
    let page = super::list(&app, &org.caller, &params, &request).await?;
    Ok(Json(StorageConnectionListResponse {
        total: page.total_count(&params),
        results: page.results,
        pagination: page.pagination,
    }))
}

/// One connection, by id or name. Its secrets are never told.
#[utoipa::path(get, path = "/v1/organizations/connections/{connection_identifier}", tag = "connections", responses((status = 200, body = StorageConnectionModel)))]
async fn get_connection(
    State(app): State<App>,
    org: Org<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<StorageConnectionModel>> {
    super::get(&app, &org.caller, &identifier).await.map(Json)
}

/// Changes a connection.
#[utoipa::path(patch, path = "/v1/organizations/connections/{connection_identifier}", tag = "connections", request_body = StorageConnectionUpdateRequest, responses((status = 200, body = StorageConnectionModel)))]
async fn update_connection(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
    Body(request): Body<StorageConnectionUpdateRequest>,
) -> Result<Json<StorageConnectionModel>> {
    super::update(&app, &org.caller, &identifier, request)
        .await
        .map(Json)
}

/// Forgets a connection. Files that were fetched through it stay.
#[utoipa::path(delete, path = "/v1/organizations/connections/{connection_identifier}", tag = "connections", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_connection(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &org.caller, &identifier).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the connection is deleted".into(),
        ..Default::default()
    }))
}

/// Asks the storage whether it takes the credentials.
#[utoipa::path(post, path = "/v1/organizations/connections/{connection_identifier}/test", tag = "connections", responses((status = 200, body = StorageConnectionTestResponse)))]
async fn test_connection(
    State(app): State<App>,
    org: Org<Admin>,
    Path(identifier): Path<String>,
) -> Result<Json<StorageConnectionTestResponse>> {
    super::test(&app, &org.caller, &identifier).await.map(Json)
}
