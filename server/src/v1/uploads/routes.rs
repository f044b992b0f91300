use axum::{
    Extension,
    extract::{Path, State},
    http::StatusCode,
};
use loupe_wire::{
    BatchConfirmRequest, BatchConfirmResponse, BatchUploadRequest, BatchUploadResponse,
    ConfirmUploadRequest, ConfirmUploadResponse, CreateUploadRequest, ListUploadsRequest,
    ListUploadsResponse, NamespaceOperation, Permission, ResourceType, TaskStatusEnum, UploadParts,
    UploadResponse, Value,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

use super::{confirming::Confirmation, parts, store};
use crate::{
    app::App,
    auth::{Caller, Delete, Read, Scope, Write},
    body::{self, Body},
    error::{Result, Violation},
    json::Json,
    list::{ListParams, ListQuery, Page, Params, Sieve, Walk},
    openapi::routes,
    tolerance::Ignored,
    v1::objects,
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create_upload))
        .routes(routes!(create_uploads))
        .routes(routes!(list_uploads))
        .routes(routes!(confirm_uploads))
        .routes(routes!(confirm_upload))
        .routes(routes!(upload_parts))
        .routes(routes!(get_upload, delete_upload))
}

/// How many uploads a page has, where nothing is said.
const LISTED: i64 = 20;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ShowQuery {
    /// Adds an address that reads the file, or takes it.
    return_presigned_urls: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct DeleteQuery {
    /// Removes the file too; default true.
    delete_s3_object: Option<bool>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct PolicyQuery {
    /// insert, update or upsert, by the bucket's unique key.
    policy: Option<String>,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct LaterQuery {
    /// Answers a confirmation before it is done; the upload tells how it ends.
    #[serde(rename = "async")]
    later: Option<bool>,
}

/// Announces a file; the answer's address takes its bytes by PUT.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads", tag = "uploads", request_body = CreateUploadRequest, responses((status = 200, body = UploadResponse)))]
async fn create_upload(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    Body(request): Body<CreateUploadRequest>,
) -> Result<Json<UploadResponse>> {
    let bucket = objects::bucket(&app, &scope, &bucket, NamespaceOperation::WriteData).await?;
    super::create(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// Announces several files.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads/batch", tag = "uploads", request_body = BatchUploadRequest, responses((status = 200, body = BatchUploadResponse)))]
async fn create_uploads(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    Body(request): Body<BatchUploadRequest>,
) -> Result<Json<BatchUploadResponse>> {
    let bucket = objects::bucket(&app, &scope, &bucket, NamespaceOperation::WriteData).await?;
    super::create_many(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// Gives a confirmed upload an address that reads its file. Who may write the bucket gets one that takes the file of an
/// upload that waits for it, until it expires.
fn presign(app: &App, caller: &Caller, upload: &mut UploadResponse) {
    let (bucket_id, operation) = (&upload.bucket_id, NamespaceOperation::WriteData);
    let may_write =
        caller.has(Permission::Write) && caller.covers(ResourceType::Bucket, bucket_id, operation);
    upload.presigned_url = match upload.status {
        TaskStatusEnum::Completed => {
            let ttl = u64::try_from(upload.presigned_url_expiration).unwrap_or(3600);
            let filename = Some(upload.filename.as_str());
            Some(app.blobs().signed_get_url(&upload.s3_key, filename, ttl))
        }
        // What failed may be sent again.
        TaskStatusEnum::Pending | TaskStatusEnum::Failed if may_write => {
            let left = (upload.expires_at - app.clock().now()).num_seconds();
            let left = u64::try_from(left).ok().filter(|left| *left > 0);
            let key = super::arrival(upload);
            left.map(|left| app.blobs().signed_put_url(&key, left))
        }
        _ => None,
    };
}

/// Uploads that match, newest first.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads/list", tag = "uploads", params(ListQuery), request_body = ListUploadsRequest, responses((status = 200, body = ListUploadsResponse)))]
async fn list_uploads(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    query: ListQuery,
    Body(request): Body<ListUploadsRequest>,
) -> Result<Json<ListUploadsResponse>> {
    let bucket = objects::bucket(&app, &scope, &bucket, NamespaceOperation::ReadData).await?;
    let (db, namespace_id) = (app.db(), &scope.namespace_id);
    let bucket_id = bucket.id.clone();
    let query = ListQuery {
        page_size: query.page_size.or(Some(LISTED)),
        ..query
    };
    let params = ListParams::new(query, &request)?;
    let mut page = if params.is_plain() {
        let rows = store::page(db, namespace_id, &bucket_id, params.window()).await?;
        let total = if params.include_total {
            Some(store::count(db, namespace_id, &bucket_id).await?)
        } else {
            None
        };
        Page::from_window(rows, &params, total)
    } else {
        let walk = Walk::of(&params);
        let mut sieve = Sieve::along(&params, &walk)?;
        while let Some(mark) = sieve.goes_on() {
            sieve.take(store::piece(db, namespace_id, &bucket_id, &walk, mark).await?)?;
        }
        sieve.page()
    };
    let stats = store::stats(db, namespace_id, &bucket_id, &page.results).await?;
    if request.return_presigned_urls {
        page.results
            .iter_mut()
            .for_each(|upload| presign(&app, &scope.caller, upload));
    }
    Ok(Json(ListUploadsResponse {
        results: page.results,
        pagination: page.pagination,
        stats,
        ..Default::default()
    }))
}

/// One upload.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/uploads/{upload_id}", tag = "uploads", params(ShowQuery), responses((status = 200, body = UploadResponse)))]
async fn get_upload(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, upload_id)): Path<(String, String)>,
    Params(query): Params<ShowQuery>,
) -> Result<Json<UploadResponse>> {
    let operation = NamespaceOperation::ReadData;
    let (_, mut upload) = super::find(&app, &scope, &bucket, &upload_id, operation).await?;
    if query.return_presigned_urls == Some(true) {
        presign(&app, &scope.caller, &mut upload);
    }
    Ok(Json(upload))
}

/// Where each part of a large file goes, and which are there; the size of the file has to be announced. A part is sent by PUT with
/// its `headers`, in any order, side by side and again, also after a failure: what is asked again answers with new addresses
/// of the same parts. The confirmation makes the file of them.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads/{upload_id}/parts", tag = "uploads", responses((status = 200, body = UploadParts)))]
async fn upload_parts(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, upload_id)): Path<(String, String)>,
) -> Result<Json<UploadParts>> {
    parts::addresses(&app, &scope, &bucket, &upload_id)
        .await
        .map(Json)
}

/// Checks that the file arrived, and makes its object.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads/{upload_id}/confirm", tag = "uploads", params(LaterQuery, PolicyQuery), request_body = ConfirmUploadRequest, responses((status = 200, body = ConfirmUploadResponse)))]
async fn confirm_upload(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, upload_id)): Path<(String, String)>,
    Params(LaterQuery { later }): Params<LaterQuery>,
    Params(PolicyQuery { policy }): Params<PolicyQuery>,
    Body(request): Body<ConfirmUploadRequest>,
) -> Result<Json<ConfirmUploadResponse>> {
    let operation = NamespaceOperation::WriteData;
    let (bucket, upload) = super::find(&app, &scope, &bucket, &upload_id, operation).await?;
    let confirmed = match later {
        Some(true) => {
            super::confirm_later(&app, scope, (**bucket).clone(), upload, request, policy).await
        }
        _ => super::confirm(&app, &scope, &bucket, upload, &request, policy.as_deref()).await,
    };
    confirmed.map(Json)
}

/// Confirms several uploads; the task's outputs tell what became of each.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/uploads/confirm/batch", tag = "uploads", params(PolicyQuery), request_body = BatchConfirmRequest, responses((status = 200, body = BatchConfirmResponse)))]
async fn confirm_uploads(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    Params(query): Params<PolicyQuery>,
    ignored: Option<Extension<Ignored>>,
    Body(request): Body<BatchConfirmRequest>,
) -> Result<Json<BatchConfirmResponse>> {
    let mut confirmations = Vec::with_capacity(request.confirmations.len());
    for (index, mut confirmation) in request.confirmations.into_iter().enumerate() {
        let place = index.to_string();
        let Some(Value::String(upload_id)) = confirmation.shift_remove("upload_id") else {
            let path = ["confirmations", place.as_str(), "upload_id"];
            return Err(Violation::body(&path, "missing", "field required", Value::Null).into());
        };
        let request = body::from_value(Value::Object(confirmation), ignored.as_deref())
            .map_err(|error| error.under(&["confirmations", &place]))?;
        confirmations.push(Confirmation { upload_id, request });
    }
    let policy = query.policy.as_deref();
    super::confirm_many(&app, &scope, &bucket, confirmations, policy)
        .await
        .map(Json)
}

/// Removes the upload and, unless told otherwise, its file. An object made from it keeps its own copy.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_identifier}/uploads/{upload_id}", tag = "uploads", params(DeleteQuery), responses((status = 204)))]
async fn delete_upload(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((bucket, upload_id)): Path<(String, String)>,
    Params(query): Params<DeleteQuery>,
) -> Result<StatusCode> {
    let with_file = query.delete_s3_object != Some(false);
    super::delete(&app, &scope, &bucket, &upload_id, with_file).await?;
    Ok(StatusCode::NO_CONTENT)
}
