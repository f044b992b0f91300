use axum::extract::{Path, State};
use loupe_wire::{
    AnnotationResponse, AnnotationStatsResponse, AnnotationVersionsResponse,
    BulkAnnotationsRequest, BulkAnnotationsResponse, CreateAnnotationRequest,
    GenericDeleteResponse, ListAnnotationsRequest, ListAnnotationsResponse, PatchAnnotationRequest,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::bulk;
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result, Violation},
    json::Json,
    list::Params,
    openapi::routes,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_annotation))
        .routes(routes!(bulk_annotations))
        .routes(routes!(list_annotations))
        .routes(routes!(annotation_stats))
        .routes(routes!(
            get_annotation,
            update_annotation,
            delete_annotation
        ))
        .routes(routes!(list_annotation_versions))
        .routes(routes!(get_annotation_version))
}

/// Records a decision on a document.
#[utoipa::path(post, path = "/v1/annotations", tag = "annotations", request_body = CreateAnnotationRequest, responses((status = 200, body = AnnotationResponse)))]
async fn create_annotation(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<CreateAnnotationRequest>,
) -> Result<Json<AnnotationResponse>> {
    super::create(&app, &scope, request).await.map(Json)
}

/// Creates, edits and deletes up to 1,000 annotations each; every one is done or refused for itself.
#[utoipa::path(post, path = "/v1/annotations/bulk", tag = "annotations", request_body = BulkAnnotationsRequest, responses((status = 200, body = BulkAnnotationsResponse)))]
async fn bulk_annotations(
    State(app): State<App>,
    scope: Scope<Write>,
    Body(request): Body<BulkAnnotationsRequest>,
) -> Result<Json<BulkAnnotationsResponse>> {
    bulk::run(&app, &scope, request).await.map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AnnotationsQuery {
    /// How many to pass over, from 0, default 0.
    skip: Option<i64>,
    /// 1 to 500, default 50.
    limit: Option<i64>,
}

/// Annotations, newest first; with `as_of`, as they were at that moment: those that were deleted since are among them for 90 days.
#[utoipa::path(post, path = "/v1/annotations/list", tag = "annotations", params(AnnotationsQuery), request_body = Option<ListAnnotationsRequest>, responses((status = 200, body = ListAnnotationsResponse)))]
async fn list_annotations(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<AnnotationsQuery>,
    Body(request): Body<ListAnnotationsRequest>,
) -> Result<Json<ListAnnotationsResponse>> {
    let (skip, limit) = (query.skip.unwrap_or(0), query.limit.unwrap_or(50));
    if !(1..=500).contains(&limit) {
        let msg = "must be between 1 and 500";
        return Err(Violation::query("limit", "range", msg, limit.into()).into());
    }
    if skip < 0 {
        let msg = "must be at least 0";
        return Err(Violation::query("skip", "range", msg, skip.into()).into());
    }
    super::list(&app, &scope, request, limit, skip)
        .await
        .map(Json)
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct StatsQuery {
    document_id: Option<String>,
    collection_id: Option<String>,
}

/// How many annotations there are, by label.
#[utoipa::path(get, path = "/v1/annotations/stats", tag = "annotations", params(StatsQuery), responses((status = 200, body = AnnotationStatsResponse)))]
async fn annotation_stats(
    State(app): State<App>,
    scope: Scope<Read>,
    Params(query): Params<StatsQuery>,
) -> Result<Json<AnnotationStatsResponse>> {
    super::stats(&app, &scope, query.document_id, query.collection_id)
        .await
        .map(Json)
}

/// One annotation, with what every edit replaced.
#[utoipa::path(get, path = "/v1/annotations/{annotation_id}", tag = "annotations", responses((status = 200, body = AnnotationResponse)))]
async fn get_annotation(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<AnnotationResponse>> {
    super::get(&app, &scope, &id).await.map(Json)
}

/// Edits an annotation: the members sent change, and the version rises by one.
#[utoipa::path(patch, path = "/v1/annotations/{annotation_id}", tag = "annotations", request_body = PatchAnnotationRequest, responses((status = 200, body = AnnotationResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn update_annotation(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(id): Path<String>,
    Body(request): Body<PatchAnnotationRequest>,
) -> Result<Json<AnnotationResponse>> {
    super::update(&app, &scope, &id, request).await.map(Json)
}

/// Removes an annotation with all its versions; only lists as of an earlier moment have it for another 90 days.
#[utoipa::path(delete, path = "/v1/annotations/{annotation_id}", tag = "annotations", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_annotation(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &scope, &id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the annotation was deleted".into(),
        ..Default::default()
    }))
}

/// The versions of an annotation, the current one first.
#[utoipa::path(get, path = "/v1/annotations/{annotation_id}/versions", tag = "annotations", responses((status = 200, body = AnnotationVersionsResponse)))]
async fn list_annotation_versions(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(id): Path<String>,
) -> Result<Json<AnnotationVersionsResponse>> {
    super::versions(&app, &scope, &id).await.map(Json)
}

/// An annotation as it was in one version.
#[utoipa::path(get, path = "/v1/annotations/{annotation_id}/versions/{version}", tag = "annotations", params(("version" = i64, Path, minimum = 1)), responses((status = 200, body = AnnotationResponse)))]
async fn get_annotation_version(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((id, version)): Path<(String, String)>,
) -> Result<Json<AnnotationResponse>> {
    let number = version.parse().map_err(|_| {
        let msg = "a version is a whole number from 1";
        ApiError::from(Violation::path(
            "version",
            "int_parsing",
            msg,
            version.into(),
        ))
    })?;
    super::version(&app, &scope, &id, number).await.map(Json)
}
