//! Batches of what is removed end with it.

use loupe_wire::{BatchModel, TaskStatusEnum};

use crate::{
    args,
    db::{Json, Tx},
    error::{ApiError, Result},
    jobs,
    v1::tasks,
};

crate::sql! {
    const ACTIVE_BATCHES = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) AND status IN ('QUEUED', 'PROCESSING')";
    // Chunks and reports of batches that were still running: nothing of them goes on.
    const CANCEL_BATCHES = "UPDATE batches SET status = 'CANCELED', updated_at = $3 WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) AND status IN ('QUEUED', 'PROCESSING') RETURNING data";
    // Nor is any of them looked after, or retried.
    const UNWATCH = "UPDATE batches SET due_at = NULL WHERE namespace_id = $1 AND ($2 = '' OR bucket_id = $2) AND due_at IS NOT NULL";
}

/// Refuses while batches of the bucket (of the namespace, without one) wait or run, unless forced: then they are
/// canceled with the removal. Answers with these, which whoever calls tells of when all that it holds is held.
pub async fn close_batches(
    tx: &mut Tx,
    namespace_id: &str,
    bucket_id: &str,
    force: bool,
    now: i64,
) -> Result<Vec<BatchModel>> {
    let active = tx
        .number(ACTIVE_BATCHES, args![namespace_id, bucket_id])
        .await?;
    if active > 0 && !force {
        return Err(ApiError::conflict(
            "",
            format!("batches that wait or run: {active}; cancel them first, or force the removal"),
        )
        .with("batches", active));
    }
    let args = args![namespace_id, bucket_id, now];
    let canceled: Vec<(Json<BatchModel>,)> = tx.all(CANCEL_BATCHES, args).await?;
    tx.run(UNWATCH, args![namespace_id, bucket_id]).await?;
    // Their chunks too, which nobody could end once the batch is gone.
    let of = if bucket_id.is_empty() {
        "namespace"
    } else {
        "bucket"
    };
    let mut closed = Vec::with_capacity(canceled.len());
    for (Json(batch),) in canceled {
        let task_id = batch.task_id.as_deref().unwrap_or_default();
        jobs::cancel_children(tx, task_id, now).await?;
        tasks::store::change(tx, task_id, TaskStatusEnum::Canceled, now, |_| ()).await?;
        closed.push(BatchModel {
            status: TaskStatusEnum::Canceled,
            status_message: Some(format!("its {of} was removed")),
            ..batch
        });
    }
    Ok(closed)
}
