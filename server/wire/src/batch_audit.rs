//! Wire types of the interface: looking into batches.

use serde::{Deserialize, Serialize};

use crate::{BulkSubmittedBatch, TaskStatusEnum, TierAuditInfo};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchAuditResponse {
    pub batch_id: String,
    pub status: TaskStatusEnum,
    pub all_balanced: bool,
    pub has_lost_objects: bool,
    pub tiers: Vec<TierAuditInfo>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubmitAllResponse {
    pub submitted: i64,
    pub failed: i64,
    pub batches: Vec<BulkSubmittedBatch>,
}
