use axum::{
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts},
};
use loupe_wire::{
    BatchObjectResult, BatchObjectResultReplayedBy, BucketResponse, BulkSoftDeleteRequest,
    BulkSoftDeleteResponse, CreateObjectRequest, CreateObjectsBatchRequest,
    CreateObjectsBatchResponse, FailedObjectError, ListObjectsRequest, ListObjectsResponse,
    NamespaceOperation, ObjectResponse, PatchObjectRequest, UpdateObjectRequest, WriteConsistency,
};
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;

use super::{Outcome, Pace, listing, shelving, store};
use crate::{
    app::App,
    auth::{Delete, Read, Scope, Write},
    body::Body,
    error::{ApiError, Result},
    json::Json,
    list::{self, ListParams, ListQuery, Page},
    openapi::routes,
    v1::{batches, syncs},
};

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_objects, create_object))
        .routes(routes!(create_objects))
        .routes(routes!(search_objects))
        .routes(routes!(soft_delete_objects))
        .routes(routes!(get_object, patch_object, put_object, delete_object))
}

macro_rules! query {
    ($name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
        #[into_params(parameter_in = Query)]
        struct $name { $($(#[$meta])* $field: $type,)* }

        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
                list::query(parts).await
            }
        }
    };
}

query!(CreateQuery {
    /// insert, update or upsert, by the bucket's unique key.
    policy: Option<String>,
    /// Puts the object into a batch and submits it.
    auto_process: Option<bool>,
});
impl CreateQuery {
    /// Nothing is made when its processing would be refused.
    async fn check(&self, app: &App, scope: &Scope<Write>, bucket: &BucketResponse) -> Result<()> {
        if self.auto_process == Some(true) {
            let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
            batches::check_process(app, scope, bucket_id).await?;
        }
        Ok(())
    }

    /// Puts what was made into one batch and submits it; says where to ask for its end.
    async fn process(
        &self,
        app: &App,
        scope: &Scope<Write>,
        bucket: &BucketResponse,
        object_ids: Vec<String>,
    ) -> Result<Option<WriteConsistency>> {
        if self.auto_process != Some(true) || object_ids.is_empty() {
            return Ok(None);
        }
        let bucket_id = bucket.bucket_id.as_deref().unwrap_or_default();
        let batch = batches::process(app, scope, bucket_id, object_ids).await?;
        let path = format!(
            "/v1/batches/{}",
            batch.batch_id.as_deref().unwrap_or_default()
        );
        let poll = json!({"method": "GET", "path": path, "batch_id": batch.batch_id, "task_id": batch.task_id});
        Ok(Some(WriteConsistency {
            retriever_visible: "after_batch".into(),
            poll: poll.as_object().cloned().unwrap_or_default(),
            ..Default::default()
        }))
    }
}
query!(GetQuery {
    return_presigned_urls: Option<bool>,
    include_document_count: Option<bool>,
});

async fn page(
    app: &App,
    scope: &Scope<Read>,
    bucket: &str,
    query: ListQuery,
    request: ListObjectsRequest,
) -> Result<Json<ListObjectsResponse>> {
    let bucket = super::bucket(app, scope, bucket, NamespaceOperation::ReadData).await?;
    let bucket_id = bucket.id.clone();
    let namespace_id = &scope.namespace_id;
    let params = ListParams::new(query, &request)?;
    let (mut page, matching) = if params.is_plain() {
        let rows = store::page(app.db(), namespace_id, &bucket_id, params.window()).await?;
        let total = if params.include_total {
            Some(store::count(app.db(), namespace_id, &bucket_id).await?)
        } else {
            None
        };
        (Page::from_window(rows, &params, total), None)
    } else {
        let found = listing::page(app.db(), namespace_id, &bucket_id, &params).await?;
        (found.0, Some(found.1))
    };
    if request.return_presigned_urls {
        page.results
            .iter_mut()
            .for_each(|object| super::presign(app, object));
    }
    if let Some(select) = &request.select {
        for object in &mut page.results {
            object.extra.retain(|name, _| select.contains(name));
        }
    }
    let statuses = match matching {
        _ if !params.include_total => None,
        None => Some(store::statuses(app.db(), namespace_id, &bucket_id).await?),
        matching => matching,
    };
    let stats = statuses.map(|statuses| store::stats(statuses, &page.results));
    Ok(Json(ListObjectsResponse {
        results: page.results,
        pagination: page.pagination,
        stats,
        ..Default::default()
    }))
}

/// Objects of a bucket, newest first.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/objects", tag = "objects", params(ListQuery), responses((status = 200, body = ListObjectsResponse)))]
async fn list_objects(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    query: ListQuery,
) -> Result<Json<ListObjectsResponse>> {
    page(&app, &scope, &bucket, query, ListObjectsRequest::default()).await
}

/// Objects that match.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/objects/list", tag = "objects", params(ListQuery), request_body = ListObjectsRequest, responses((status = 200, body = ListObjectsResponse)))]
async fn search_objects(
    State(app): State<App>,
    scope: Scope<Read>,
    Path(bucket): Path<String>,
    query: ListQuery,
    Body(request): Body<ListObjectsRequest>,
) -> Result<Json<ListObjectsResponse>> {
    page(&app, &scope, &bucket, query, request).await
}

/// Takes objects out of every collection and keeps their records and files, with the reason; `lifecycle_state: "active"` takes
/// them back, and the next batch processes them.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/objects/bulk-soft-delete", tag = "objects", request_body = BulkSoftDeleteRequest, responses((status = 200, body = BulkSoftDeleteResponse)))]
async fn soft_delete_objects(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path(bucket): Path<String>,
    Body(request): Body<BulkSoftDeleteRequest>,
) -> Result<Json<BulkSoftDeleteResponse>> {
    shelving::soft_delete(&app, &scope, &bucket, request)
        .await
        .map(Json)
}

/// Makes an object, or changes the one with the same unique key.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/objects", tag = "objects", params(CreateQuery), request_body = CreateObjectRequest, responses((status = 200, body = ObjectResponse)))]
async fn create_object(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    query: CreateQuery,
    Body(mut request): Body<CreateObjectRequest>,
) -> Result<Json<ObjectResponse>> {
    syncs::unmark(&mut request);
    let bucket = super::bucket(&app, &scope, &bucket, NamespaceOperation::WriteData).await?;
    query.check(&app, &scope, &bucket).await?;
    let policy = super::policy(&bucket, query.policy.as_deref())?;
    let (mut object, _) = super::create(&app, &scope, &bucket, request, policy, None).await?;
    let ids = object.object_id.iter().cloned().collect();
    object.consistency = query.process(&app, &scope, &bucket, ids).await?;
    Ok(Json(object))
}

/// Makes up to 100 objects; each is made or refused by itself.
#[utoipa::path(post, path = "/v1/buckets/{bucket_identifier}/objects/batch", tag = "objects", params(CreateQuery), request_body = CreateObjectsBatchRequest, responses((status = 200, body = CreateObjectsBatchResponse)))]
async fn create_objects(
    State(app): State<App>,
    scope: Scope<Write>,
    Path(bucket): Path<String>,
    query: CreateQuery,
    Body(mut request): Body<CreateObjectsBatchRequest>,
) -> Result<Json<CreateObjectsBatchResponse>> {
    request.objects.iter_mut().for_each(syncs::unmark);
    let bucket = super::bucket(&app, &scope, &bucket, NamespaceOperation::WriteData).await?;
    query.check(&app, &scope, &bucket).await?;
    let total = request.objects.len();
    let policy = super::policy(&bucket, query.policy.as_deref())?;
    let pace = Pace::of_request(&app);
    let made = super::create_many(&app, &scope, &bucket, request.objects, policy, pace).await?;
    let mut answer = CreateObjectsBatchResponse::default();
    for (index, made) in made.into_iter().enumerate() {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        match made {
            Ok((object, outcome)) => answer.succeeded.push(result(object, outcome, index)),
            Err(error) => answer.failed.push(FailedObjectError {
                object_index: index,
                error_type: error.kind().into(),
                error: error.message(),
            }),
        }
    }
    let made = answer.succeeded.iter();
    let ids = made.filter_map(|object| object.object_id.clone()).collect();
    let consistency = query.process(&app, &scope, &bucket, ids).await?;
    for object in &mut answer.succeeded {
        object.consistency.clone_from(&consistency);
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    answer.total_requested = number(total);
    answer.succeeded_count = number(answer.succeeded.len());
    answer.failed_count = number(answer.failed.len());
    Ok(Json(answer))
}

fn result(object: ObjectResponse, outcome: Outcome, index: i64) -> BatchObjectResult {
    let replayed_by = match outcome {
        Outcome::Created | Outcome::Updated => None,
        Outcome::Replayed => Some(BatchObjectResultReplayedBy::SkipDuplicates),
        Outcome::ReplayedByIdempotencyKey => Some(BatchObjectResultReplayedBy::IdempotencyKey),
    };
    BatchObjectResult {
        object_id: object.object_id,
        bucket_id: object.bucket_id,
        key_prefix: object.key_prefix,
        blobs: object.blobs,
        source_details: object.source_details,
        edges: object.edges,
        status: Some(object.status),
        error: object.error,
        created_at: object.created_at,
        updated_at: object.updated_at,
        document_count: object.document_count,
        consistency: object.consistency,
        object_index: Some(index),
        replayed: replayed_by.is_some(),
        replayed_by,
        extra: object.extra,
    }
}

/// One object.
#[utoipa::path(get, path = "/v1/buckets/{bucket_identifier}/objects/{object_identifier}", tag = "objects", params(GetQuery), responses((status = 200, body = ObjectResponse)))]
async fn get_object(
    State(app): State<App>,
    scope: Scope<Read>,
    Path((bucket, object_id)): Path<(String, String)>,
    query: GetQuery,
) -> Result<Json<ObjectResponse>> {
    let mut object = super::get(&app, &scope, &bucket, &object_id).await?;
    if query.include_document_count != Some(false) {
        object.document_count = Some(super::count_documents(&app, &scope, &object_id).await?);
    }
    if query.return_presigned_urls == Some(true) {
        super::presign(&app, &mut object);
    }
    Ok(Json(object))
}

/// Changes the members that are sent.
#[utoipa::path(patch, path = "/v1/buckets/{bucket_identifier}/objects/{object_identifier}", tag = "objects", request_body = PatchObjectRequest, responses((status = 200, body = ObjectResponse)))]
async fn patch_object(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, object_id)): Path<(String, String)>,
    Body(request): Body<PatchObjectRequest>,
) -> Result<Json<ObjectResponse>> {
    super::check_change(request.skip_duplicates)?;
    super::update(&app, &scope, &bucket, &object_id, request.into())
        .await
        .map(Json)
}

/// Replaces the members.
#[utoipa::path(put, path = "/v1/buckets/{bucket_identifier}/objects/{object_identifier}", tag = "objects", request_body = UpdateObjectRequest, responses((status = 200, body = ObjectResponse)))]
async fn put_object(
    State(app): State<App>,
    scope: Scope<Write>,
    Path((bucket, object_id)): Path<(String, String)>,
    Body(request): Body<UpdateObjectRequest>,
) -> Result<Json<ObjectResponse>> {
    super::check_change(request.skip_duplicates)?;
    super::update(&app, &scope, &bucket, &object_id, request.into())
        .await
        .map(Json)
}

/// Removes the object with its files and documents.
#[utoipa::path(delete, path = "/v1/buckets/{bucket_identifier}/objects/{object_identifier}", tag = "objects", responses((status = 204)))]
async fn delete_object(
    State(app): State<App>,
    scope: Scope<Delete>,
    Path((bucket, object_id)): Path<(String, String)>,
) -> Result<StatusCode> {
    super::delete(&app, &scope, &bucket, &object_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
