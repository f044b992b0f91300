use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use loupe_wire::{CollectionExportRequest, CollectionExportResponse, TaskResponse};
use utoipa_axum::router::OpenApiRouter;

use super::Exported;
use crate::{
    app::App,
    auth::{Read, Scope},
    body::Body,
    error::Result,
    json::Json,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(export_collection))
}

/// The documents of a collection as a file to download, which is kept for a day, or as shards of a web dataset. With a
/// `destination`, for which the key needs the level `write`, the files are also written into that storage, where they stay. What
/// takes longer than 20 seconds is answered with the task that makes the files: its output is the same answer.
#[utoipa::path(post, path = "/v1/collections/{collection_identifier}/export", tag = "collections", request_body = CollectionExportRequest, responses((status = 200, body = CollectionExportResponse), (status = 202, body = TaskResponse)))]
async fn export_collection(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(collection): Path<String>,
    Body(request): Body<CollectionExportRequest>,
) -> Result<Response> {
    Ok(
        match super::export(&app, &scope, &collection, request).await? {
            Exported::File(file) => Json(*file).into_response(),
            Exported::Task(task) => (StatusCode::ACCEPTED, Json(*task)).into_response(),
        },
    )
}
