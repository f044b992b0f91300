//! The batch of confirmed uploads: of several confirmations at once, one submits it.

use loupe_wire::{BatchModel, ConfirmUploadRequest, UploadResponse};

use super::{confirming::taken, expiry, store};
use crate::{
    app::App,
    auth::{Scope, Write},
    error::{ApiError, Result},
    v1::{batches, tasks},
};

/// Nothing is confirmed when its processing would be refused.
pub(super) async fn check_processing(
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

/// Puts the objects of these uploads into one batch and submits it. What another confirmation submitted, or is submitting, is
/// not submitted again.
pub(super) async fn process(
    app: &App,
    scope: &Scope<Write>,
    uploads: &mut [UploadResponse],
) -> Result<Option<BatchModel>> {
    let mut fresh: Vec<&mut UploadResponse> = uploads
        .iter_mut()
        .filter(|upload| upload.task_id.is_none() && upload.object_id.is_some())
        .collect();
    if fresh.is_empty() {
        return Ok(None);
    }
    let claimed = app.clock().micros();
    let ids = fresh.iter().map(|upload| upload.upload_id.clone());
    let won = claim_batch(app, scope, ids.collect(), claimed).await?;
    fresh.retain(|upload| won.contains(&upload.upload_id));
    let Some(bucket_id) = fresh.first().map(|upload| upload.bucket_id.clone()) else {
        return Ok(None);
    };
    let object_ids = fresh.iter().filter_map(|one| one.object_id.clone());
    let submitted = batches::process(app, scope, &bucket_id, object_ids.collect()).await;
    if let Ok(batch) = &submitted {
        for upload in &mut fresh {
            upload.task_id = batch.task_id.clone();
        }
    }
    let changed: Vec<UploadResponse> = fresh.into_iter().map(|one| one.clone()).collect();
    let (namespace_id, now) = (scope.namespace_id.clone(), app.clock().micros());
    let is_submitted = submitted.is_ok();
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                for upload in &changed {
                    let id = &upload.upload_id;
                    match is_submitted {
                        true => store::set_batch(tx, &namespace_id, upload, claimed, now).await?,
                        false => store::free_batch(tx, &namespace_id, id, claimed).await?,
                    }
                }
                Ok(())
            })
        })
        .await?;
    submitted.map(Some)
}

/// Claims the submission of these uploads' batch; answers which of them are this confirmation's to submit.
async fn claim_batch(
    app: &App,
    scope: &Scope<Write>,
    upload_ids: Vec<String>,
    now: i64,
) -> Result<Vec<String>> {
    let (namespace_id, dead) = (scope.namespace_id.clone(), expiry::dead_before(app));
    app.db()
        .write(move |tx| {
            Box::pin(async move {
                let mut won = Vec::with_capacity(upload_ids.len());
                for upload_id in upload_ids {
                    if store::claim_batch(tx, &namespace_id, &upload_id, now, dead).await? {
                        won.push(upload_id);
                    }
                }
                Ok(won)
            })
        })
        .await
}

/// The batch that another confirmation submitted.
pub(super) async fn batch_before(
    app: &App,
    scope: &Scope<Write>,
    upload: &mut UploadResponse,
) -> Result<Option<String>> {
    if upload.task_id.is_none() && upload.object_id.is_some() {
        let (bucket_id, upload_id) = (&upload.bucket_id, &upload.upload_id);
        let now = store::find(app.db(), &scope.namespace_id, bucket_id, upload_id).await?;
        upload.task_id = now.and_then(|upload| upload.task_id);
        if upload.task_id.is_none() {
            return Err(taken());
        }
    }
    let task_id = upload.task_id.as_deref().unwrap_or_default();
    let task = tasks::store::find(app.db(), &scope.caller.org_id, None, task_id).await?;
    let data = task.and_then(|task| task.additional_data);
    let batch_id = data
        .as_ref()
        .and_then(|data| data.get("batch_id")?.as_str());
    Ok(batch_id.map(ToOwned::to_owned))
}
