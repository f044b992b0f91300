//! What stands in the way of a batch, and what to do about it.

use loupe_wire::{BatchModel, Object, TaskStatusEnum, Value};
use serde_json::json;

use super::{read, store};
use crate::{
    app::App,
    auth::{Read, Scope},
    error::Result,
    v1::tasks::name_of,
    words::{counted, said},
};

/// What stands in the way of a batch, as far as it can be told.
pub(super) async fn diagnose(
    app: &App,
    scope: &Scope<Read>,
    bucket_id: &str,
    batch_id: &str,
) -> Result<Object> {
    let batch = read(app, scope, bucket_id, batch_id).await?;
    let task_id = batch.task_id.clone().unwrap_or_default();
    let chunks = store::chunks(app.db(), &scope.caller.org_id, &task_id).await?;
    let failures = store::failures(app.db(), batch_id).await?;
    let now = app.clock().micros();
    let findings = findings(&batch, &chunks, &failures, now);
    let health = match batch.status {
        _ if findings.is_empty() => "healthy",
        TaskStatusEnum::Failed => "failed",
        _ => "degraded",
    };
    let of_chunk = |one: &store::Chunks| json!({"status": one.status, "count": one.count, "most_failed_tries": one.tries, "most_claims": one.attempts});
    let failures: Object = failures
        .into_iter()
        .map(|(kind, number)| (kind, number.into()))
        .collect();
    let diagnosis = json!({
        "batch_id": batch_id, "status": name_of(batch.status), "health": health,
        "current_tier": batch.current_tier, "total_tiers": batch.total_tiers,
        "progress": batch.progress, "chunks": chunks.iter().map(of_chunk).collect::<Vec<_>>(),
        "failures_by_type": failures, "first_error": batch.error, "findings": findings,
    });
    match diagnosis {
        Value::Object(members) => Ok(members),
        _ => Ok(Object::new()),
    }
}

/// What is out of order, each with what to do about it.
fn findings(
    batch: &BatchModel,
    chunks: &[store::Chunks],
    failures: &[(String, i64)],
    now: i64,
) -> Vec<Value> {
    let mut found = Vec::new();
    let mut tell = |code: &str, message: String, advice: &str| {
        found.push(json!({"code": code, "message": message, "recommendation": advice}));
    };
    let place = batch
        .progress
        .as_ref()
        .and_then(|progress| progress.queue_position);
    if let (TaskStatusEnum::Queued, Some(place)) = (batch.status, place) {
        let message = format!("the batch waits at place {place} of the queue");
        tell("queued", message, "wait, or raise jobs.running_batches");
    }
    let dead = chunks
        .iter()
        .filter(|one| one.status == "PROCESSING" && one.lease_until < now);
    for one in dead {
        let message = format!(
            "up to {} held by a worker that is gone",
            said(one.count, "chunk", ("is", "are"))
        );
        tell(
            "lease_expired",
            message,
            "nothing: another worker takes them over",
        );
    }
    for one in chunks
        .iter()
        .filter(|one| one.status == "QUEUED" && one.tries > 0)
    {
        let message = format!(
            "chunks failed {} and wait for another try",
            counted(one.tries, "time")
        );
        tell("retrying", message, "see the server's log for the reason");
    }
    for (kind, number) in failures {
        let advice = match kind.as_str() {
            "transient" => "retry the batch: the reason may be gone",
            "resource" => {
                "the files need more memory or time than they may take: make them smaller"
            }
            _ => "look at failed-documents, mend the objects, and retry the batch",
        };
        tell(
            "failures",
            format!("{} failed ({kind})", counted(number, "object")),
            advice,
        );
    }
    found
}
