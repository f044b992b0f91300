//! The address that a submission names is called when its batch has ended: as a webhook is, and tried again as long.

use loupe_wire::{BatchModel, NotificationChannel, TaskType, Value};
use serde_json::json;

use super::{flow::Owner, store};
use crate::{
    app::App,
    clock,
    db::Tx,
    error::{ApiError, Result, Violation},
    jobs::{Claim, text},
    v1::{
        tasks::{self, NewTask, name_of},
        triggers,
        webhooks::{self, Channel, Outcome},
    },
};

/// The queue's word for one call, of a batch that ended or of a trigger.
pub const CALL: &str = "batch_callback";

/// The address that a submission names, if it may be called; an empty one is none.
///
/// # Errors
/// 422 for one that may not.
pub(super) fn read(app: &App, url: Option<String>) -> Result<Option<String>> {
    let Some(url) = url.filter(|url| !url.trim().is_empty()) else {
        return Ok(None);
    };
    if let Err(error) = app.outbound().check(&url) {
        let msg = error.to_string();
        return Err(Violation::body(&["webhook_url"], "value_error", msg, url.into()).into());
    }
    Ok(Some(url))
}

/// Has the end told, in the transaction that ends the batch.
pub(super) async fn enqueue(
    tx: &mut Tx,
    batch: &BatchModel,
    owner: &Owner,
    now: i64,
) -> Result<()> {
    let Some(url) = &batch.webhook_url else {
        return Ok(());
    };
    let batch_id = batch.batch_id.as_deref().unwrap_or_default();
    let task_id = batch.task_id.as_deref().unwrap_or_default();
    let counts = store::counts(tx, batch_id).await?;
    let body = json!({
        "event_type": "batch.ended",
        "occurred_at": clock::time(now),
        "organization_id": owner.org_id,
        "namespace_id": owner.namespace_id,
        "payload": {
            "batch_id": batch_id, "bucket_id": batch.bucket_id, "task_id": task_id,
            "status": name_of(batch.status), "error": batch.error, "reason": batch.status_message,
            "collection_ids": batch.collection_ids, "object_count": counts.total,
            "failed_object_count": counts.failed, "documents_written": counts.documents,
        },
    });
    // The same with every attempt, another with every end.
    let message_id = format!("msg_{task_id}_{now}");
    let mut task = NewTask::work(
        &owner.org_id,
        &owner.namespace_id,
        TaskType::ApiBucketsBatchesProcess,
        CALL,
        json!({ "url": url, "message_id": message_id, "body": body }),
    );
    // Inner work, which the batch does not wait for: it is no child of its task.
    task.parent_id = Some(batch_id.to_owned());
    task.description = format!("the end of the batch {batch_id}");
    tasks::insert(tx, task, now).await?;
    Ok(())
}

/// Calls once. The webhook of the organization that has the same address signs it.
///
/// # Errors
/// The receiver may take it later: the queue tries again; or it will not.
pub async fn run(app: &App, claim: &Claim) -> Result<()> {
    if claim.work.get("webhook_id").is_some() {
        return triggers::send(app, claim).await;
    }
    let (url, id) = (text(claim, "url"), text(claim, "message_id"));
    let body = claim.work.get("body").and_then(Value::as_object);
    let body = body.cloned().unwrap_or_default();
    let channel = match webhooks::channel_to(app, &claim.org_id, url).await? {
        Some(channel) => channel,
        None => Channel::plain(NotificationChannel::Webhook, json!({ "url": url }))
            .map_err(|why| ApiError::bad_request("", why))?,
    };
    match webhooks::post(app, &channel, id, body).await? {
        Outcome::Delivered(_) => Ok(()),
        Outcome::Failed(_, why) => {
            let message = format!("the end of a batch could not be told: {why}");
            Err(ApiError::unavailable("", message))
        }
        Outcome::Over(_, why) | Outcome::Unset(why) => {
            let message = format!("the end of a batch cannot be told: {why}");
            Err(ApiError::bad_request("", message))
        }
    }
}
