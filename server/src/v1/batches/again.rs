//! What of an ended batch is done again. It is put back in the transaction that queues the batch: what is refused there leaves
//! the batch as it was.

use loupe_wire::{BatchModel, BatchType, TaskStatusEnum, Value};

use super::store;
use crate::{
    db::Tx,
    error::{ApiError, Result, Violation},
};

/// The message of a refusal to queue a batch whose tier lacks nothing.
pub(super) const NOTHING: &str = "the tier lacks nothing";

/// What is done again.
#[derive(Debug, Clone)]
pub enum Again {
    /// Everything that did not finish.
    Unfinished,
    /// What failed: in this tier, or in any if it is below zero; of this kind, or of any if it is empty.
    Failed { tier: i64, error_type: String },
    /// All that came as far as a tier.
    From(i64),
    /// What failed or was canceled in a tier, and that of which one of the tier's collections holds nothing.
    Missing(i64),
}

impl Again {
    /// Puts it back; answers how many objects that were. The caller holds the batch.
    pub(super) async fn put_back(&self, tx: &mut Tx, batch: &BatchModel, now: i64) -> Result<u64> {
        let id = batch.batch_id.as_deref().unwrap_or_default();
        let ended = !store::is_running(batch.status) && batch.status != TaskStatusEnum::Draft;
        if let Self::Unfinished = self {
            return match ended {
                true => store::reset_unfinished(tx, id, now).await,
                false => Ok(0),
            };
        }
        if !ended {
            let message = "only a batch that has ended can be done again";
            return Err(ApiError::conflict("", message));
        }
        let none = |message: &str| ApiError::bad_request("", message);
        match self {
            Self::Unfinished => Ok(0),
            Self::Failed { tier, error_type } => {
                match store::reset_failed(tx, id, error_type, *tier, now).await? {
                    0 if *tier < 0 => Err(none("no failed object can be retried")),
                    0 => Err(none("no object failed in this tier")),
                    reset => Ok(reset),
                }
            }
            Self::From(tier) => {
                if !(0..batch.total_tiers).contains(tier) {
                    let msg = format!("the batch has the tiers 0 to {}", batch.total_tiers - 1);
                    let fault = Violation::query("from_tier", "range", msg, Value::from(*tier));
                    return Err(fault.into());
                }
                store::back_to(tx, id, *tier, now).await
            }
            Self::Missing(tier) => match missing(tx, batch, *tier, now).await? {
                0 => Err(none(NOTHING)),
                reset => Ok(reset),
            },
        }
    }
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
