//! Confirmation: what arrived is what was announced, and becomes an object.
//!
//! A confirmation holds its upload no longer than a request may take. One that was cut off is taken over by the next, and
//! both make the same object.

use std::time::Duration;

use loupe_wire::{
    BatchConfirmResponse, BucketResponse, ConfirmUploadRequest, ConfirmUploadResponse,
    CreateBlobRequest, CreateObjectRequest, NamespaceOperation, Object, TaskStatusEnum, TaskType,
    UploadResponse, Value,
};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    expiry, parts, place,
    processing::{batch_before, check_processing, process},
    store,
};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result},
    v1::{objects, syncs, tasks},
};

/// Confirmations at once whose answers did not wait for them.
const MOST_LATER: usize = 16;

/// One confirmation of many.
pub struct Confirmation {
    pub upload_id: String,
    pub request: ConfirmUploadRequest,
}

/// Checks that the file arrived as announced, makes its object and, when asked to, processes it. A second confirmation
/// answers the first.
pub async fn confirm(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    upload: UploadResponse,
    request: &ConfirmUploadRequest,
    policy: Option<&str>,
) -> Result<ConfirmUploadResponse> {
    check_processing(app, scope, &upload, request).await?;
    let mut upload = complete(app, scope, bucket, upload, request, policy).await?;
    let mut batch_id = None;
    if request.auto_submit_batch {
        batch_id = match process(app, scope, std::slice::from_mut(&mut upload)).await? {
            Some(batch) => batch.batch_id,
            None => batch_before(app, scope, &mut upload).await?,
        };
    }
    Ok(answer(upload, batch_id))
}

/// The same, answered before it is done: the upload tells how it ends. One that a stop of the process cut off is confirmed by
/// asking again. Where many are under way, the answer waits for its own.
pub async fn confirm_later(
    app: &App,
    scope: Scope<Write>,
    bucket: BucketResponse,
    upload: UploadResponse,
    request: ConfirmUploadRequest,
    policy: Option<String>,
) -> Result<ConfirmUploadResponse> {
    static UNDER_WAY: Semaphore = Semaphore::const_new(MOST_LATER);
    let place = UNDER_WAY.try_acquire();
    let (Ok(place), false) = (place, upload.status == TaskStatusEnum::Completed) else {
        return confirm(app, &scope, &bucket, upload, &request, policy.as_deref()).await;
    };
    check_processing(app, &scope, &upload, &request).await?;
    objects::policy(&bucket, policy.as_deref())?;
    if expiry::is_over(&upload, app.clock().now()) {
        return Err(expiry::gone());
    }
    let mut told = answer(upload.clone(), None);
    told.status = TaskStatusEnum::Processing;
    told.message = Some("the upload is being confirmed; it tells how that ends".into());
    let of = app.clone();
    app.spawn(async move {
        let upload_id = upload.upload_id.clone();
        let confirmed = confirm(&of, &scope, &bucket, upload, &request, policy.as_deref());
        // Whoever takes a confirmation over counts on none taking longer than a request may.
        let patience = Duration::from_secs(of.config().limits.request_seconds);
        match tokio::time::timeout(patience, confirmed).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::info!(
                    upload_id,
                    error = error.message(),
                    "an upload was not confirmed"
                );
            }
            Err(_) => tracing::info!(upload_id, "the confirmation of an upload took too long"),
        }
        drop(place);
    });
    Ok(told)
}

fn answer(upload: UploadResponse, batch_id: Option<String>) -> ConfirmUploadResponse {
    ConfirmUploadResponse {
        upload_id: upload.upload_id,
        status: upload.status,
        etag: upload.etag,
        file_size_bytes: upload.file_size_bytes,
        file_hash: upload.file_hash,
        verified_at: upload.verified_at,
        completed_at: upload.completed_at,
        object_id: upload.object_id,
        task_id: upload.task_id,
        batch_id,
        message: Some("the upload is confirmed".into()),
    }
}

/// The upload, confirmed by this call or one before it.
async fn complete(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    mut upload: UploadResponse,
    request: &ConfirmUploadRequest,
    policy: Option<&str>,
) -> Result<UploadResponse> {
    if upload.status == TaskStatusEnum::Completed {
        return Ok(upload);
    }
    if expiry::is_over(&upload, app.clock().now()) {
        return Err(expiry::gone());
    }
    let policy = objects::policy(bucket, policy)?;
    let claimed = claim(app, scope, &upload.upload_id).await?;
    // Not where an earlier confirmation kept it, whose object is gone.
    upload.s3_key = super::arrival(&upload);
    let sealed = super::sealed(&upload, claimed);
    match seal(app, scope, bucket, &upload, &sealed, request, policy).await {
        Ok(confirmed) => {
            let finished = finish(app, scope, &confirmed, claimed).await;
            match &finished {
                Ok(()) => discard(app, &upload.s3_key).await,
                // Taken over: the other confirmation has a copy of its own.
                Err(error) if error.is_conflict() => discard(app, &sealed).await,
                Err(_) => {}
            }
            finished.map(|()| confirmed)
        }
        Err(error) => {
            discard(app, &sealed).await;
            // A file that has not arrived yet may still come, and a store that failed come back; anything else failed for good
            // until it is sent again.
            let is_final =
                !error.is_transient() && app.blobs().head(&upload.s3_key).await?.is_some();
            upload.status = match is_final {
                true => TaskStatusEnum::Failed,
                false => TaskStatusEnum::Pending,
            };
            upload.message = Some(error.message());
            finish(app, scope, &upload, claimed).await?;
            Err(error)
        }
    }
}

/// The upload as it is confirmed: its file checked and kept where no address leads that takes one, its object made.
async fn seal(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    upload: &UploadResponse,
    sealed: &str,
    request: &ConfirmUploadRequest,
    policy: objects::Policy,
) -> Result<UploadResponse> {
    parts::join(app, &scope.namespace_id, upload).await?;
    let mut upload = verify(app, upload, sealed, request).await?;
    if upload.create_object_on_confirm {
        let object_id = make_object(app, scope, bucket, &upload, policy).await?;
        upload.object_id = Some(object_id);
    }
    let at = app.clock().now();
    upload.status = TaskStatusEnum::Completed;
    upload.verified_at = Some(at);
    upload.completed_at = Some(at);
    upload.message = None;
    Ok(upload)
}

/// Removes a file that nobody needs any more. One that stays goes with its upload.
async fn discard(app: &App, key: &str) {
    if let Err(error) = app.blobs().delete(key).await {
        tracing::warn!(%error, key, "the file of an upload is left behind");
    }
}

/// Takes the upload for this confirmation; answers the moment that fences its end.
async fn claim(app: &App, scope: &Scope<Write>, upload_id: &str) -> Result<i64> {
    let (namespace_id, upload_id) = (scope.namespace_id.clone(), upload_id.to_owned());
    let (now, dead) = (app.clock().micros(), expiry::dead_before(app));
    let owned = app
        .db()
        .write(move |tx| {
            Box::pin(async move { store::claim(tx, &namespace_id, &upload_id, now, dead).await })
        })
        .await?;
    if owned { Ok(now) } else { Err(taken()) }
}

pub(super) fn taken() -> ApiError {
    ApiError::conflict("", "this upload is being confirmed by another request").retry_after(1)
}

async fn finish(
    app: &App,
    scope: &Scope<Write>,
    upload: &UploadResponse,
    claimed: i64,
) -> Result<()> {
    let (namespace_id, upload, now) = (
        scope.namespace_id.clone(),
        upload.clone(),
        app.clock().micros(),
    );
    let finished = app
        .db()
        .write(move |tx| {
            Box::pin(async move { store::finish(tx, &namespace_id, &upload, claimed, now).await })
        })
        .await?;
    if finished { Ok(()) } else { Err(taken()) }
}

/// Size, tag and SHA-256 of what arrived against what was announced. What is checked is the copy at `sealed`: the file that
/// arrived may change as long as its address takes bytes.
async fn verify(
    app: &App,
    upload: &UploadResponse,
    sealed: &str,
    request: &ConfirmUploadRequest,
) -> Result<UploadResponse> {
    let refused = |message: String| ApiError::bad_request("", message);
    let Some(arrived) = app.blobs().head(&upload.s3_key).await? else {
        if upload.expires_at <= app.clock().now() {
            return Err(expiry::gone());
        }
        return Err(refused(
            "the file has not arrived: PUT it to presigned_url first".into(),
        ));
    };
    // A store that is sent to directly takes files of any size.
    let limit = app.config().limits.upload_bytes;
    let too_large = || refused(format!("the file is larger than {limit} bytes"));
    if arrived.size > limit {
        return Err(too_large());
    }
    let bare = |etag: &str| etag.trim_matches('"').to_owned();
    if let Some(etag) = &request.etag
        && bare(etag) != bare(&arrived.etag)
    {
        return Err(refused("the file has another etag".into()));
    }
    let (size, hash) = copy(app, &upload.s3_key, sealed).await?;
    if u64::try_from(size).unwrap_or(0) > limit {
        return Err(too_large());
    }
    for announced in [upload.file_size_bytes, request.file_size_bytes]
        .into_iter()
        .flatten()
    {
        if announced != size {
            return Err(refused(format!(
                "the file has {size} bytes, {announced} were announced"
            )));
        }
    }
    if let Some(announced) = &upload.file_hash
        && *announced != hash
    {
        return Err(refused(format!(
            "the file's sha256 is {hash}, {announced} was announced"
        )));
    }
    Ok(UploadResponse {
        s3_key: sealed.to_owned(),
        file_size_bytes: Some(size),
        etag: Some(arrived.etag),
        file_hash: Some(hash),
        ..upload.clone()
    })
}

/// Copies a file; answers size and SHA-256 of the copy.
async fn copy(app: &App, from: &str, to: &str) -> Result<(i64, String)> {
    app.blobs().copy(from, to).await?;
    let found = app.blobs().head(to).await?;
    let size = found.map_or(0, |copy| i64::try_from(copy.size).unwrap_or(i64::MAX));
    Ok((size, app.blobs().sha256(to).await?))
}

/// The object of a confirmed file.
async fn make_object(
    app: &App,
    scope: &Scope<Write>,
    bucket: &BucketResponse,
    upload: &UploadResponse,
    policy: objects::Policy,
) -> Result<String> {
    let (property, r#type) = place(bucket, upload)?;
    let mut request = CreateObjectRequest {
        blobs: Some(vec![CreateBlobRequest {
            property,
            r#type,
            upload_id: Some(upload.upload_id.clone()),
            metadata: (!upload.metadata.is_empty()).then(|| upload.metadata.clone()),
            ..Default::default()
        }]),
        extra: upload.object_metadata.clone().unwrap_or_default(),
        skip_duplicates: upload.skip_duplicates,
        // Two confirmations of one upload give one object.
        idempotency_key: Some(upload.upload_id.clone()),
        ..Default::default()
    };
    syncs::unmark(&mut request);
    let (object, _) = objects::create(app, scope, bucket, request, policy, Some(upload)).await?;
    Ok(object.object_id.unwrap_or_default())
}

/// Confirms several uploads; each succeeds or fails by itself, and those that are to be processed share one batch. The
/// task's outputs tell what became of each.
pub async fn confirm_many(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    confirmations: Vec<Confirmation>,
    policy: Option<&str>,
) -> Result<BatchConfirmResponse> {
    let (mut inputs, mut outcomes, mut processed) = (Vec::new(), Vec::new(), Vec::new());
    for Confirmation { upload_id, request } in confirmations {
        inputs.push(Value::from(upload_id.clone()));
        let outcome = confirm_one(app, scope, bucket, &upload_id, &request, policy).await;
        match outcome {
            Ok(upload) if request.auto_submit_batch => {
                outcomes.push(Ok(None));
                processed.push(upload);
            }
            Ok(upload) => outcomes.push(Ok(Some(upload))),
            Err(error) => outcomes.push(Err((upload_id, error))),
        }
    }
    let batch = process(app, scope, &mut processed)
        .await?
        .unwrap_or_default();
    let mut processed = processed.into_iter();
    let failed = outcomes.iter().filter(|one| one.is_err()).count();
    let mut outputs = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        outputs.push(match outcome {
            Err((upload_id, error)) => json!({
                "upload_id": upload_id, "status": "FAILED", "error": error.message(), "error_type": error.kind(),
            }),
            Ok(Some(upload)) => json!(answer(upload, None)),
            Ok(None) => json!(processed.next().map(|upload| {
                let in_batch = upload.task_id == batch.task_id;
                answer(upload, batch.batch_id.clone().filter(|_| in_batch))
            })),
        });
    }
    report(app, scope, inputs, outputs, failed).await
}

async fn confirm_one(
    app: &App,
    scope: &Scope<Write>,
    bucket: &str,
    upload_id: &str,
    request: &ConfirmUploadRequest,
    policy: Option<&str>,
) -> Result<UploadResponse> {
    let operation = NamespaceOperation::WriteData;
    let (bucket, upload) = super::find(app, scope, bucket, upload_id, operation).await?;
    check_processing(app, scope, &upload, request).await?;
    complete(app, scope, &bucket, upload, request, policy).await
}

/// The task that tells what became of several confirmations.
async fn report(
    app: &App,
    scope: &Scope<Write>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    failed: usize,
) -> Result<BatchConfirmResponse> {
    let count = inputs.len();
    let status = match failed {
        0 => TaskStatusEnum::Completed,
        all if all == count => TaskStatusEnum::Failed,
        _ => TaskStatusEnum::CompletedWithErrors,
    };
    let mut additional_data = Object::new();
    if failed > 0 {
        let error = format!("{failed} of {count} uploads could not be confirmed");
        additional_data.insert("error".into(), error.into());
    }
    let new = tasks::NewTask {
        org_id: scope.caller.org_id.clone(),
        namespace_id: Some(scope.namespace_id.clone()),
        task_type: TaskType::ApiBucketsUploadsBatchConfirm,
        status,
        parent_id: None,
        kind: None,
        work: Value::Null,
        inputs,
        additional_data,
        description: format!("confirmation of {count} uploads"),
    };
    let now = app.clock().micros();
    let task = app
        .db()
        .write(move |tx| {
            Box::pin(async move {
                let mut task = tasks::insert(tx, new, now).await?;
                let shown = outputs.clone();
                tasks::store::change(tx, &task.task_id, status, now, |task| {
                    task.outputs = Some(outputs);
                })
                .await?;
                task.outputs = Some(shown);
                Ok(task)
            })
        })
        .await?;
    Ok(BatchConfirmResponse {
        task_id: task.task_id.clone(),
        status,
        confirmations_count: i64::try_from(count).unwrap_or(i64::MAX),
        task,
        message: None,
    })
}
