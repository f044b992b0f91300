//! Confirmation: what arrived is what was announced, and becomes an object.
//!
//! A confirmation holds its upload no longer than a request may take. One that was cut off is taken over by the next, and
//! both make the same object.

use loupe_wire::{
    BatchConfirmResponse, BatchModel, BucketResponse, ConfirmUploadRequest, ConfirmUploadResponse,
    CreateBlobRequest, CreateObjectRequest, NamespaceOperation, Object, TaskStatusEnum, TaskType,
    UploadResponse, Value,
};
use serde_json::json;

use super::{expiry, place, store};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result},
    v1::{batches, objects, tasks},
};

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
            None => batch_before(app, scope, &upload).await?,
        };
    }
    Ok(answer(upload, batch_id))
}

/// The batch that an earlier confirmation submitted.
async fn batch_before(
    app: &App,
    scope: &Scope<Write>,
    upload: &UploadResponse,
) -> Result<Option<String>> {
    let task_id = upload.task_id.as_deref().unwrap_or_default();
    let task = tasks::store::find(app.db(), &scope.caller.org_id, None, task_id).await?;
    let data = task.and_then(|task| task.additional_data);
    let batch_id = data
        .as_ref()
        .and_then(|data| data.get("batch_id")?.as_str());
    Ok(batch_id.map(ToOwned::to_owned))
}

/// Nothing is confirmed when its processing would be refused.
async fn check_processing(
    app: &App,
    scope: &Scope<Write>,
    upload: &UploadResponse,
    request: &ConfirmUploadRequest,
) -> Result<()> {
    if !request.auto_submit_batch {
        return Ok(());
    }
    if !upload.create_object_on_confirm {
        let message = "this upload makes no object, so there is nothing to process";
        return Err(ApiError::bad_request("", message));
    }
    batches::check_process(app, scope, &upload.bucket_id).await
}

/// Puts the objects of these uploads into one batch and submits it. What was submitted before is not submitted again.
async fn process(
    app: &App,
    scope: &Scope<Write>,
    uploads: &mut [UploadResponse],
) -> Result<Option<BatchModel>> {
    let mut fresh: Vec<&mut UploadResponse> = uploads
        .iter_mut()
        .filter(|upload| upload.task_id.is_none() && upload.object_id.is_some())
        .collect();
    let Some(bucket_id) = fresh.first().map(|upload| upload.bucket_id.clone()) else {
        return Ok(None);
    };
    let object_ids = fresh.iter().filter_map(|one| one.object_id.clone());
    let batch = batches::process(app, scope, &bucket_id, object_ids.collect()).await?;
    for upload in &mut fresh {
        upload.task_id = batch.task_id.clone();
    }
    let changed: Vec<UploadResponse> = fresh.into_iter().map(|one| one.clone()).collect();
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for upload in &changed {
                    store::set_data(tx, &namespace_id, upload, now).await?;
                }
                Ok(())
            })
        })
        .await?;
    Ok(Some(batch))
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
    let checked = verify(app, &mut upload, request).await;
    let made = match checked {
        Ok(()) if upload.create_object_on_confirm => {
            make_object(app, scope, bucket, &upload, policy)
                .await
                .map(Some)
        }
        Ok(()) => Ok(None),
        Err(error) => Err(error),
    };
    match made {
        Ok(object_id) => {
            let at = app.clock().now();
            upload.status = TaskStatusEnum::Completed;
            upload.object_id = object_id;
            upload.verified_at = Some(at);
            upload.completed_at = Some(at);
            upload.message = None;
            finish(app, scope, &upload, claimed).await?;
            Ok(upload)
        }
        Err(error) => {
            // A file that has not arrived yet may still come; anything else failed for good until it is sent again.
            upload.status = if app.blobs().head(&upload.s3_key).await?.is_none() {
                TaskStatusEnum::Pending
            } else {
                TaskStatusEnum::Failed
            };
            upload.message = Some(error.message());
            finish(app, scope, &upload, claimed).await?;
            Err(error)
        }
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

fn taken() -> ApiError {
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

/// Size, tag and SHA-256 of what arrived against what was announced.
async fn verify(
    app: &App,
    upload: &mut UploadResponse,
    request: &ConfirmUploadRequest,
) -> Result<()> {
    let refused = |message: String| ApiError::bad_request("", message);
    let Some(stored) = app.blobs().head(&upload.s3_key).await? else {
        if upload.expires_at <= app.clock().now() {
            return Err(expiry::gone());
        }
        return Err(refused(
            "the file has not arrived: PUT it to presigned_url first".into(),
        ));
    };
    let size = i64::try_from(stored.size).unwrap_or(i64::MAX);
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
    let bare = |etag: &str| etag.trim_matches('"').to_owned();
    if let Some(etag) = &request.etag
        && bare(etag) != bare(&stored.etag)
    {
        return Err(refused("the file has another etag".into()));
    }
    let hash = app.blobs().sha256(&upload.s3_key).await?;
    if let Some(announced) = &upload.file_hash
        && *announced != hash
    {
        return Err(refused(format!(
            "the file's sha256 is {hash}, {announced} was announced"
        )));
    }
    upload.file_size_bytes = Some(size);
    upload.etag = Some(stored.etag);
    upload.file_hash = Some(hash);
    Ok(())
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
    let request = CreateObjectRequest {
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
