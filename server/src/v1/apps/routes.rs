use axum::{
    extract::{Path, State},
    http::HeaderMap,
    response::Response,
};
use loupe_wire::{
    AppAnalyticsResponse, AppLogsResponse, AppResponse, CreateAppRequest, DeployRequest,
    DeployResponse, DeployStatusResponse, DownloadUrlResponse, ErrorRateResponse,
    GenericDeleteResponse, ListAppsResponse, PromoteResponse, PublishAppRequest,
    RestoreVersionRequest, RestoreVersionResponse, SignInTestResponse, UpdateAppRequest,
    UploadUrlRequest, UploadUrlResponse, VerifyUploadRequest, VerifyUploadResponse,
    VersionDetailResponse, VersionDiffResponse, VersionListResponse,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{Wanted, changes, deploys, insight, people, versions};
use crate::{
    app::App,
    auth::{self, Caller, Delete, Org, Read, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{Params, within},
    openapi::routes,
    v1::namespaces,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_apps, create_app))
        .routes(routes!(get_app, update_app, delete_app))
        .routes(routes!(publish_app))
        .routes(routes!(deploy_upload_url))
        .routes(routes!(verify_upload))
        .routes(routes!(deploy_app))
        .routes(routes!(get_deploy))
        .routes(routes!(stream_deploy_logs))
        .routes(routes!(list_app_versions))
        .routes(routes!(get_version))
        .routes(routes!(diff_versions))
        .routes(routes!(download_version))
        .routes(routes!(restore_version))
        .routes(routes!(rollback_app))
        .routes(routes!(promote_app))
        .routes(routes!(test_app_sign_in))
        .routes(routes!(get_app_analytics))
        .routes(routes!(get_app_error_rate))
        .routes(routes!(list_app_logs))
        .merge(super::domains::router())
        .merge(super::people::router())
        .merge(super::public::router())
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AppsQuery {
    /// 1 to 1000, default 50.
    limit: Option<i64>,
    /// From 0.
    offset: Option<i64>,
    template: Option<String>,
    slug: Option<String>,
    /// A part of slug, title or description.
    search: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct UpdateQuery {
    /// Answers what the change would make, and changes nothing.
    dry_run: Option<bool>,
}

/// The namespace that a caller names for an app, which must be its own.
async fn namespace(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<Option<String>> {
    let Some(sent) = auth::namespace_header(headers)? else {
        return Ok(None);
    };
    if !namespaces::exists(app, caller, &sent).await? {
        return Err(ApiError::not_found("namespace", &sent));
    }
    Ok(Some(sent))
}

/// Apps of the organization, newest first.
#[utoipa::path(get, path = "/v1/apps", tag = "apps", params(AppsQuery), responses((status = 200, body = ListAppsResponse)))]
async fn list_apps(
    State(app): State<App>,
    org: Org<Read>,
    Params(query): Params<AppsQuery>,
) -> Result<Json<ListAppsResponse>> {
    let wanted = Wanted {
        limit: within("limit", query.limit, 50, (1, 1000))?,
        offset: within("offset", query.offset, 0, (0, i64::MAX))?,
        template: query.template,
        slug: query.slug,
        search: query.search,
    };
    super::list(&app, &org.caller, &wanted).await.map(Json)
}

/// Makes an app. It gets an origin of its own, and serves nothing before its first deploy. The namespace of the header
/// `X-Namespace` is what its `/api` works in.
#[utoipa::path(post, path = "/v1/apps", tag = "apps", security(("namespace" = []), ()), request_body = CreateAppRequest, responses((status = 200, body = AppResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn create_app(
    State(app): State<App>,
    org: Org<Write>,
    headers: HeaderMap,
    Body(request): Body<CreateAppRequest>,
) -> Result<Json<AppResponse>> {
    let namespace = namespace(&app, &org.caller, &headers).await?;
    let made = super::create(&app, &org.caller, namespace, request).await;
    made.map(Json)
}

/// One app with its newest versions.
#[utoipa::path(get, path = "/v1/apps/{app_id}", tag = "apps", responses((status = 200, body = AppResponse)))]
async fn get_app(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
) -> Result<Json<AppResponse>> {
    super::get(&app, &org.caller, &app_id).await.map(Json)
}

/// Changes an app. Slug, access and `is_active` hold at once; what visitors see of the page, after it was published.
#[utoipa::path(patch, path = "/v1/apps/{app_id}", tag = "apps", params(UpdateQuery), security(("namespace" = []), ()), request_body = UpdateAppRequest, responses((status = 200, body = AppResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn update_app(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Params(query): Params<UpdateQuery>,
    headers: HeaderMap,
    Body(request): Body<UpdateAppRequest>,
) -> Result<Json<AppResponse>> {
    let namespace = namespace(&app, &org.caller, &headers).await?;
    let dry_run = query.dry_run.unwrap_or(false);
    super::update(&app, &org.caller, namespace, &app_id, request, dry_run)
        .await
        .map(Json)
}

/// Removes an app with its files, its users and all that is known of them.
#[utoipa::path(delete, path = "/v1/apps/{app_id}", tag = "apps", responses((status = 200, body = GenericDeleteResponse)))]
async fn delete_app(
    State(app): State<App>,
    org: Org<Delete>,
    Path(app_id): Path<String>,
) -> Result<Json<GenericDeleteResponse>> {
    super::delete(&app, &org.caller, &app_id).await?;
    Ok(Json(GenericDeleteResponse {
        message: "the app is deleted".into(),
        ..Default::default()
    }))
}

/// Shows visitors what was edited.
#[utoipa::path(post, path = "/v1/apps/{app_id}/publish", tag = "apps", request_body = Option<PublishAppRequest>, responses((status = 200, body = AppResponse)))]
async fn publish_app(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Body(request): Body<PublishAppRequest>,
) -> Result<Json<AppResponse>> {
    super::publish(&app, &org.caller, &app_id, request.message)
        .await
        .map(Json)
}

/// An address that takes a bundle: a zip archive of what a build made.
#[utoipa::path(post, path = "/v1/apps/{app_id}/deploy/upload-url", tag = "apps", request_body = UploadUrlRequest, responses((status = 200, body = UploadUrlResponse)))]
async fn deploy_upload_url(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Body(request): Body<UploadUrlRequest>,
) -> Result<Json<UploadUrlResponse>> {
    deploys::upload_url(&app, &org.caller, &app_id, request)
        .await
        .map(Json)
}

/// Whether a bundle has arrived.
#[utoipa::path(post, path = "/v1/apps/{app_id}/deploy/verify-upload", tag = "apps", request_body = VerifyUploadRequest, responses((status = 200, body = VerifyUploadResponse)))]
async fn verify_upload(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Body(request): Body<VerifyUploadRequest>,
) -> Result<Json<VerifyUploadResponse>> {
    deploys::verify(&app, &org.caller, &app_id, request.bundle_s3_key)
        .await
        .map(Json)
}

/// Makes a version of a bundle, or of files in the request, and serves it.
#[utoipa::path(post, path = "/v1/apps/{app_id}/deploy", tag = "apps", request_body = DeployRequest, responses((status = 200, body = DeployResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn deploy_app(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
    Body(request): Body<DeployRequest>,
) -> Result<Json<DeployResponse>> {
    deploys::deploy(&app, &org.caller, &app_id, request)
        .await
        .map(Json)
}

/// How a deploy stands.
#[utoipa::path(get, path = "/v1/apps/{app_id}/deploys/{deploy_id}", tag = "apps", responses((status = 200, body = DeployStatusResponse)))]
async fn get_deploy(
    State(app): State<App>,
    org: Org<Read>,
    Path((app_id, deploy_id)): Path<(String, String)>,
) -> Result<Json<DeployStatusResponse>> {
    deploys::status(&app, &org.caller, &app_id, &deploy_id)
        .await
        .map(Json)
}

/// The log of a deploy as it is written: `log` events, and one `end`.
#[utoipa::path(get, path = "/v1/apps/{app_id}/deploys/{deploy_id}/logs/stream", tag = "apps", responses((status = 200, content_type = "text/event-stream", body = loupe_wire::Value)))]
async fn stream_deploy_logs(
    State(app): State<App>,
    org: Org<Read>,
    Path((app_id, deploy_id)): Path<(String, String)>,
) -> Result<Response> {
    deploys::stream(app, org.caller, app_id, deploy_id).await
}

/// Versions that are kept, the newest first.
#[utoipa::path(get, path = "/v1/apps/{app_id}/versions", tag = "apps", responses((status = 200, body = VersionListResponse)))]
async fn list_app_versions(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
) -> Result<Json<VersionListResponse>> {
    versions::list(&app, &org.caller, &app_id).await.map(Json)
}

/// One version with its files.
#[utoipa::path(get, path = "/v1/apps/{app_id}/versions/{version}", tag = "apps", params(("app_id" = String, Path), ("version" = i64, Path)), responses((status = 200, body = VersionDetailResponse)))]
async fn get_version(
    State(app): State<App>,
    org: Org<Read>,
    Path((app_id, version)): Path<(String, String)>,
) -> Result<Json<VersionDetailResponse>> {
    let version = number(&version)?;
    versions::get(&app, &org.caller, &app_id, version)
        .await
        .map(Json)
}

/// A version's number; anything else is a version that does not exist.
fn number(text: &str) -> Result<i64> {
    text.parse()
        .map_err(|_| ApiError::not_found("version", text))
}

/// What one version has and another has not.
#[utoipa::path(get, path = "/v1/apps/{app_id}/versions/{from_version}/diff/{to_version}", tag = "apps", params(("app_id" = String, Path), ("from_version" = i64, Path), ("to_version" = i64, Path)), responses((status = 200, body = VersionDiffResponse)))]
async fn diff_versions(
    State(app): State<App>,
    org: Org<Read>,
    Path((app_id, from, to)): Path<(String, String, String)>,
) -> Result<Json<VersionDiffResponse>> {
    let (from, to) = (number(&from)?, number(&to)?);
    changes::between(&app, &org.caller, &app_id, from, to)
        .await
        .map(Json)
}

/// An address of a version's files as one archive.
#[utoipa::path(get, path = "/v1/apps/{app_id}/versions/{version}/download", tag = "apps", params(("app_id" = String, Path), ("version" = i64, Path)), responses((status = 200, body = DownloadUrlResponse)))]
async fn download_version(
    State(app): State<App>,
    org: Org<Read>,
    Path((app_id, version)): Path<(String, String)>,
) -> Result<Json<DownloadUrlResponse>> {
    let version = number(&version)?;
    versions::download(&app, &org.caller, &app_id, version)
        .await
        .map(Json)
}

/// Serves a version again.
#[utoipa::path(post, path = "/v1/apps/{app_id}/versions/{version}/restore", tag = "apps", params(("app_id" = String, Path), ("version" = i64, Path)), request_body = RestoreVersionRequest, responses((status = 200, body = RestoreVersionResponse)))]
async fn restore_version(
    State(app): State<App>,
    org: Org<Write>,
    Path((app_id, version)): Path<(String, String)>,
    Body(request): Body<RestoreVersionRequest>,
) -> Result<Json<RestoreVersionResponse>> {
    let version = number(&version)?;
    versions::restore(&app, &org.caller, &app_id, version, request.environment)
        .await
        .map(Json)
}

/// Goes back to what production served before.
#[utoipa::path(post, path = "/v1/apps/{app_id}/rollback", tag = "apps", responses((status = 200, body = AppResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn rollback_app(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
) -> Result<Json<AppResponse>> {
    versions::rollback(&app, &org.caller, &app_id)
        .await
        .map(Json)
}

/// Serves in production what staging serves.
#[utoipa::path(post, path = "/v1/apps/{app_id}/promote", tag = "apps", responses((status = 200, body = PromoteResponse), (status = 409, body = loupe_wire::ErrorResponse)))]
async fn promote_app(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
) -> Result<Json<PromoteResponse>> {
    versions::promote(&app, &org.caller, &app_id)
        .await
        .map(Json)
}

/// Looks at every way to sign in that the app allows: whether the service answers, and what it has to know.
#[utoipa::path(post, path = "/v1/apps/{app_id}/sign-in/test", tag = "apps", responses((status = 200, body = SignInTestResponse)))]
async fn test_app_sign_in(
    State(app): State<App>,
    org: Org<Write>,
    Path(app_id): Path<String>,
) -> Result<Json<SignInTestResponse>> {
    people::test_sign_in(&app, &org.caller, &app_id)
        .await
        .map(Json)
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct AnalyticsQuery {
    /// 1 to 720, default 24.
    hours: Option<i64>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ErrorRateQuery {
    /// 1 to 1440, default 60.
    minutes: Option<i64>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsQuery {
    /// requests (default), errors, interactions or deploys.
    log_type: Option<String>,
    /// 1 to 168, default 24.
    hours: Option<i64>,
    /// info, warn or error.
    level: Option<String>,
    /// 1 to 1000, default 100.
    limit: Option<i64>,
}

/// How an app is visited: pages, what failed, how fast pages were for visitors.
#[utoipa::path(get, path = "/v1/apps/{app_id}/analytics", tag = "apps", params(AnalyticsQuery), responses((status = 200, body = AppAnalyticsResponse)))]
async fn get_app_analytics(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
    Params(query): Params<AnalyticsQuery>,
) -> Result<Json<AppAnalyticsResponse>> {
    let hours = within("hours", query.hours, 24, (1, 720))?;
    insight::analytics(&app, &org.caller, &app_id, hours)
        .await
        .map(Json)
}

/// How much fails for visitors of an app.
#[utoipa::path(get, path = "/v1/apps/{app_id}/error-rate", tag = "apps", params(ErrorRateQuery), responses((status = 200, body = ErrorRateResponse)))]
async fn get_app_error_rate(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
    Params(query): Params<ErrorRateQuery>,
) -> Result<Json<ErrorRateResponse>> {
    let minutes = within("minutes", query.minutes, 60, (1, 1440))?;
    insight::error_rate(&app, &org.caller, &app_id, minutes)
        .await
        .map(Json)
}

/// Lines of an app, the newest first: calls of its `/api` and what failed, what visitors did, deploys.
#[utoipa::path(get, path = "/v1/apps/{app_id}/logs", tag = "apps", params(LogsQuery), responses((status = 200, body = AppLogsResponse)))]
async fn list_app_logs(
    State(app): State<App>,
    org: Org<Read>,
    Path(app_id): Path<String>,
    Params(query): Params<LogsQuery>,
) -> Result<Json<AppLogsResponse>> {
    let wanted = insight::Wanted {
        log_type: query.log_type,
        hours: within("hours", query.hours, 24, (1, 168))?,
        level: query.level,
        limit: within("limit", query.limit, 100, (1, 1000))?,
    };
    insight::logs(&app, &org.caller, &app_id, &wanted)
        .await
        .map(Json)
}
