//! Conditions of batches.

use super::{HOUR, Look, MINUTE};
use crate::{args, error::Result, words::counted};

crate::sql! {
    const FAILED = "SELECT batch_id FROM batches WHERE namespace_id = $1 AND status = 'FAILED' AND updated_at >= $2 ORDER BY updated_at DESC LIMIT 50";
    // A batch moves when one of its objects does.
    const STALLED = "SELECT b.batch_id FROM batches b WHERE b.namespace_id = $1 AND b.status = 'PROCESSING' AND b.updated_at < $2 AND NOT EXISTS (SELECT 1 FROM batch_objects o WHERE o.batch_id = b.batch_id AND o.updated_at >= $2) ORDER BY b.updated_at LIMIT 50";
    const ENDED = "SELECT CAST(COUNT(*) AS BIGINT), CAST(SUM(CASE WHEN o.status = 'FAILED' THEN 1 ELSE 0 END) AS BIGINT) FROM batches b JOIN batch_objects o ON o.batch_id = b.batch_id WHERE b.namespace_id = $1 AND b.status IN ('COMPLETED', 'COMPLETED_WITH_ERRORS', 'FAILED') AND b.updated_at >= $2";
    const OLDEST_WAITING = "SELECT batch_id FROM batches WHERE namespace_id = $1 AND status IN ('QUEUED', 'PROCESSING') AND created_at < $2 ORDER BY created_at LIMIT 1";
    const PROCESSED_SINCE = "SELECT CAST(COUNT(*) AS BIGINT) FROM processed WHERE namespace_id = $1 AND collection_id IN (SELECT id FROM collections WHERE owner = $1) AND updated_at >= $2";
}

/// How far back a failure is news: longer than the time between two looks.
const NEWS: i64 = 10 * MINUTE;

pub(super) async fn failed(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let args = args![namespace_id, look.now - NEWS];
    let batches: Vec<(String,)> = look.app.db().all(FAILED, args).await?;
    for (batch_id,) in batches {
        let text = format!("batch {batch_id} failed");
        look.find(batch_id, text);
    }
    Ok(())
}

pub(super) async fn stalled(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let args = args![namespace_id, look.stalled(30.0)];
    let batches: Vec<(String,)> = look.app.db().all(STALLED, args).await?;
    let minutes = counted(look.number("stall_minutes", 30.0), "minute");
    for (batch_id,) in batches {
        let text = format!("batch {batch_id} has not moved for {minutes}");
        look.find(batch_id, text);
    }
    Ok(())
}

/// Of the objects of batches that ended within the last hour.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(super) async fn error_rate(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let args = args![namespace_id, look.now - HOUR];
    let row: Option<(i64, Option<i64>)> = look.app.db().one(ENDED, args).await?;
    let Some((objects, failed)) = row.map(|(objects, failed)| (objects, failed.unwrap_or(0)))
    else {
        return Ok(());
    };
    let most = look.number("error_rate_threshold", 0.1);
    if objects > 0 && failed as f64 > most * objects as f64 {
        let text = format!(
            "{failed} of {} failed in the batches of {namespace_id} that ended within the last hour",
            counted(objects, "object")
        );
        look.find(namespace_id, text);
    }
    Ok(())
}

/// Batches wait or run, and no object of the namespace came through.
pub(super) async fn ingest_stalled(look: &mut Look<'_>, namespace_id: &str) -> Result<()> {
    let since = look.stalled(30.0);
    let waiting: Option<(String,)> = look
        .app
        .db()
        .one(OLDEST_WAITING, args![namespace_id, since])
        .await?;
    let Some((batch_id,)) = waiting else {
        return Ok(());
    };
    let moved = look
        .app
        .db()
        .number(PROCESSED_SINCE, args![namespace_id, since])
        .await?;
    if moved == 0 {
        let minutes = counted(look.number("stall_minutes", 30.0), "minute");
        let text = format!(
            "no object of {namespace_id} was processed for {minutes}, and {batch_id} waits"
        );
        look.find(batch_id, text);
    }
    Ok(())
}
