//! What namespaces hold.

use axum::extract::{Path, State};
use futures::{StreamExt, TryStreamExt, stream};
use loupe_engine::store::Reach;
use loupe_wire::{
    NamespaceModel, NamespaceOperation, NamespaceStatsBatchRequest, NamespaceStatsBatchResponse,
    NamespaceStatsResponse, ResourceType,
};
use utoipa_axum::router::OpenApiRouter;

use super::{NAMESPACES, store};
use crate::{
    app::App,
    auth::{OptionalScope, Org, Read},
    body::Body,
    error::Result,
    json::Json,
    openapi::routes,
    v1::collections::COLLECTIONS,
};

/// Namespaces of a batch that are counted at once.
const AT_ONCE: usize = 8;

const READ: NamespaceOperation = NamespaceOperation::ReadData;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_namespace_stats))
        .routes(routes!(get_namespaces_stats))
}

/// How much a namespace holds.
#[utoipa::path(get, path = "/v1/namespaces/{namespace_identifier}/stats", tag = "namespaces", responses((status = 200, body = NamespaceStatsResponse)))]
async fn get_namespace_stats(
    State(app): State<App>,
    scope: OptionalScope<Read>,
    Path(identifier): Path<String>,
) -> Result<Json<NamespaceStatsResponse>> {
    let caller = scope.at(&app, &identifier).await?;
    let found = NAMESPACES
        .find(app.db(), &caller.org_id, &identifier)
        .await?;
    caller.allow(ResourceType::Namespace, &found.id, READ)?;
    count(&app, found.id).await.map(Json)
}

/// How much each of up to 100 namespaces holds; ids that are not there are left out.
#[utoipa::path(post, path = "/v1/namespaces/stats/batch", tag = "namespaces", request_body = NamespaceStatsBatchRequest, responses((status = 200, body = NamespaceStatsBatchResponse)))]
async fn get_namespaces_stats(
    State(app): State<App>,
    org: Org<Read>,
    Body(request): Body<NamespaceStatsBatchRequest>,
) -> Result<Json<NamespaceStatsBatchResponse>> {
    let (app, caller) = (&app, &org.caller);
    let counted = stream::iter(request.namespace_ids).map(|id| async move {
        let covered = caller.covers(ResourceType::Namespace, &id, READ);
        match NAMESPACES.find(app.db(), &caller.org_id, &id).await {
            // An id, as the answer names it, and no name.
            Ok(found) if covered && found.id == id => count(app, id).await.map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    });
    let counted: Vec<_> = counted.buffered(AT_ONCE).try_collect().await?;
    let stats = counted.into_iter().flatten();
    let stats = stats.map(|one| (one.namespace_id.clone(), one)).collect();
    Ok(Json(NamespaceStatsBatchResponse { stats }))
}

async fn count(app: &App, namespace_id: String) -> Result<NamespaceStatsResponse> {
    let mut rows = NamespaceModel::default();
    store::count(app.db(), &namespace_id, &mut rows).await?;
    let collections = COLLECTIONS.all(app.db(), &namespace_id).await?;
    let reach = Reach {
        namespace_id: namespace_id.clone(),
        collection_ids: collections.into_iter().map(|one| one.id).collect(),
        principal: None,
    };
    let documents = app.store().count(&reach, None).await?;
    Ok(NamespaceStatsResponse {
        namespace_id,
        document_count: i64::try_from(documents).unwrap_or(i64::MAX),
        document_count_complete: true,
        bucket_count: rows.bucket_count.unwrap_or(0),
        collection_count: rows.collection_count.unwrap_or(0),
        object_count: rows.object_count.unwrap_or(0),
    })
}
