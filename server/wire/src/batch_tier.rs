//! Wire types of the interface: the tiers of a batch.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BatchErrorDetail, ExtractorJobInfo, InfrastructureDetail, Object, SubmissionParams,
    TaskStatusEnum,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HealTierRequest {
    pub action: HealTierAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum HealTierAction {
    /// What evidently stands still is started again; of an ended batch, what the tier lacks is made.
    #[default]
    Auto,
    /// Also what workers are at is taken from them and started again.
    Restart,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TierAuditInfo {
    pub tier_num: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<i64>,
    #[serde(default = "crate::defaults::i64_0")]
    pub processed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub skipped: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub lost: i64,
    #[serde(default)]
    pub balanced: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<TierAuditInfoDurability>,
}

impl Default for TierAuditInfo {
    fn default() -> Self {
        Self {
            tier_num: Default::default(),
            submitted: None,
            processed: crate::defaults::i64_0(),
            failed: crate::defaults::i64_0(),
            skipped: crate::defaults::i64_0(),
            lost: crate::defaults::i64_0(),
            balanced: false,
            notes: Default::default(),
            durability: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TierAuditInfoDurability {
    #[default]
    #[serde(rename = "confirmed")]
    Confirmed,
    #[serde(rename = "lagging")]
    Lagging,
    #[serde(rename = "untracked")]
    Untracked,
    #[serde(rename = "frontier_unknown")]
    FrontierUnknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TierTaskInfo {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub tier_num: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default = "crate::defaults::task_status_enum_pending")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub extractor_jobs: Vec<ExtractorJobInfo>,
    pub source_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub errors: Vec<BatchErrorDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<IndexMap<String, i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub performance: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_gpu: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub celery_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_documents_fetched: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_after_source_filter: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_missing_input_fields: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_submitted_to_engine: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_written: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_replaced: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_deleted: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_before_processing: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_logs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_logs_captured_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_params: Option<SubmissionParams>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub infrastructure_events: Vec<InfrastructureDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<TierAuditInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_override_reason: Option<String>,
}

impl Default for TierTaskInfo {
    fn default() -> Self {
        Self {
            tier_num: Default::default(),
            task_id: None,
            status: crate::defaults::task_status_enum_pending(),
            collection_ids: Default::default(),
            extractor_jobs: Default::default(),
            source_type: Default::default(),
            source_collection_ids: None,
            parent_task_id: None,
            started_at: None,
            completed_at: None,
            duration_ms: None,
            errors: Default::default(),
            error_summary: None,
            performance: None,
            ray_job_id: None,
            ray_job_started_at: None,
            ray_job_completed_at: None,
            requires_gpu: None,
            worker_groups: Default::default(),
            celery_task_id: None,
            source_documents_fetched: None,
            documents_after_source_filter: None,
            documents_missing_input_fields: None,
            documents_submitted_to_engine: None,
            documents_written: None,
            documents_replaced: None,
            documents_deleted: None,
            documents_before_processing: None,
            last_activity_at: None,
            ray_job_status: None,
            ray_job_logs: None,
            ray_job_logs_captured_at: None,
            submission_params: None,
            infrastructure_events: Default::default(),
            audit: None,
            audit_override_reason: None,
        }
    }
}
