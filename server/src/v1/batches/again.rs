//! What of an ended batch is done again. It is put back in the transaction that queues the batch: what is refused there leaves
//! the batch as it was.

use loupe_wire::{BatchModel, BatchType, TaskStatusEnum, Value};

use super::{
    store,
    supervising::{self, TRANSIENT},
};
use crate::{
    db::Tx,
    error::{ApiError, Result, Violation},
};

/// The code of a refusal where nothing is there to be processed.
pub const NOTHING_TO_PROCESS: &str = "nothing_to_process";

/// The code of a refusal to do again what is under way.
const BUSY: &str = "batch_not_ended";

/// Whether there was nothing to process.
pub fn is_nothing(error: &ApiError) -> bool {
    error.has_code(NOTHING_TO_PROCESS)
}

fn busy() -> ApiError {
    ApiError::conflict(BUSY, "the batch is queued or running already")
}

/// Whether a batch that was to be done again is under way.
pub fn is_busy(error: &ApiError) -> bool {
    error.has_code(BUSY)
}

/// The message of a refusal to queue a batch whose tier lacks nothing.
pub(super) const NOTHING: &str = "tier_lacks_nothing";

/// What is done again.
#[derive(Debug, Clone)]
pub enum Again {
    /// Everything that did not finish.
    Unfinished,
    /// The same, of a canceled batch as well: who resubmits it knows that it had ended.
    Resubmitted,
    /// What failed: in this tier, or in any if it is below zero; of this kind, or of any if it is empty.
    Failed { tier: i64, error_type: String },
    /// The same of the tiers named, or of all if none is; and how often the batch is retried by itself from then on.
    Asked {
        tiers: Vec<i64>,
        error_type: String,
        most: i64,
    },
    /// What failed for reasons that may have passed, without anybody's asking.
    Retry,
    /// Everything, whatever became of it.
    Everything,
    /// All that came as far as a tier.
    From(i64),
    /// What failed or was canceled in a tier, and that of which one of the tier's collections holds nothing.
    Missing(i64),
}

impl Again {
    /// Forgets what the run before failed of.
    pub(super) fn renew(&self, batch: &mut BatchModel) {
        supervising::renew(batch, matches!(self, Self::Retry));
        if let Self::Asked { most, .. } = self {
            batch.max_retries = *most;
        }
    }

    /// Puts it back; answers how many objects that were. The caller holds the batch.
    pub(super) async fn put_back(&self, tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<u64> {
        let id = batch.batch_id.as_deref().unwrap_or_default();
        let ended = !store::is_running(batch.status) && batch.status != TaskStatusEnum::Draft;
        match self {
            Self::Unfinished | Self::Everything if batch.status == TaskStatusEnum::Canceled => {
                let message = "the batch was canceled: resubmit it";
                return Err(ApiError::conflict("batch_not_draft", message));
            }
            Self::Unfinished | Self::Resubmitted | Self::Everything if !ended => return Ok(0),
            Self::Unfinished | Self::Resubmitted => {
                return store::reset_unfinished(tx, id, now).await;
            }
            Self::Everything => return store::back_to(tx, id, 0, now).await,
            _ => {}
        }
        if store::is_running(batch.status) {
            return Err(busy());
        }
        if !ended {
            let message = "only a batch that has ended can be done again";
            return Err(ApiError::conflict("", message));
        }
        let none = |message: &str| ApiError::bad_request(NOTHING_TO_PROCESS, message);
        match self {
            Self::Unfinished | Self::Resubmitted | Self::Everything => Ok(0),
            Self::Asked {
                tiers, error_type, ..
            } => match asked(tx, batch, tiers, error_type, now).await? {
                0 => Err(none("no failed object can be retried")),
                reset => Ok(reset),
            },
            Self::Failed { tier, error_type } => {
                match store::reset_failed(tx, id, error_type, *tier, now).await? {
                    0 if *tier < 0 => Err(none("no failed object can be retried")),
                    0 => Err(none("no object failed in this tier")),
                    reset => Ok(reset),
                }
            }
            // It was canceled while its retry was about to begin.
            Self::Retry if batch.status == TaskStatusEnum::Canceled => {
                Err(ApiError::conflict("", "the batch was canceled"))
            }
            Self::Retry => match store::reset_failed(tx, id, TRANSIENT, -1, now).await? {
                0 => Err(none("no failed object can be retried")),
                reset => Ok(reset),
            },
            Self::From(tier) => {
                if !(0..batch.total_tiers).contains(tier) {
                    let msg = format!("the batch has the tiers 0 to {}", batch.total_tiers - 1);
                    let fault = Violation::query("from_tier", "range", msg, Value::from(*tier));
                    return Err(fault.into());
                }
                store::back_to(tx, id, *tier, now).await
            }
            Self::Missing(tier) => match missing(tx, batch, *tier, now).await? {
                0 => Err(ApiError::bad_request(NOTHING, "the tier lacks nothing")),
                reset => Ok(reset),
            },
        }
    }
}

/// Puts back what failed in the tiers named, or anywhere if none is.
async fn asked(
    tx: &mut Tx,
    batch: &BatchModel,
    tiers: &[i64],
    error_type: &str,
    now: i64,
) -> Result<u64> {
    let id = batch.batch_id.as_deref().unwrap_or_default();
    if tiers.is_empty() {
        return store::reset_failed(tx, id, error_type, -1, now).await;
    }
    let mut put_back = 0;
    for (number, tier) in tiers.iter().enumerate() {
        if !(0..batch.total_tiers).contains(tier) {
            let msg = format!("the batch has the tiers 0 to {}", batch.total_tiers - 1);
            let at = number.to_string();
            let fault = Violation::body(&["tier_nums", &at], "range", msg, Value::from(*tier));
            return Err(fault.into());
        }
        put_back += store::reset_failed(tx, id, error_type, *tier, now).await?;
    }
    Ok(put_back)
}

async fn missing(tx: &mut Tx, batch: &BatchModel, tier: i64, now: i64) -> Result<u64> {
    let id = batch.batch_id.as_deref().unwrap_or_default();
    let found = batch.tier_tasks.iter().find(|one| one.tier_num == tier);
    let found = found.ok_or_else(|| ApiError::not_found("tier", &tier.to_string()))?;
    let mut put_back = store::reset_stopped(tx, id, tier, now).await?;
    let of_objects = batch.r#type == BatchType::Bucket;
    let own = (batch.namespace_id.as_deref().unwrap_or_default(), id);
    for collection_id in &found.collection_ids {
        put_back += store::reset_missing(tx, own, tier, collection_id, of_objects, now).await?;
    }
    Ok(put_back)
}
