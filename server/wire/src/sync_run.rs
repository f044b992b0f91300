//! Wire types of the interface: what one look into a storage brought.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Object, PaginationResponse};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncJobModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_job_id: Option<String>,
    pub sync_config_id: String,
    pub internal_id: String,
    pub namespace_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SyncJobStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<SyncJobTrigger>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_files: Option<i64>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub files_synced: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub files_failed: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub files_verified: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_via: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 100.0)))]
    pub progress_percent: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub throughput_files_per_min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub lag_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub progress: Option<Object>,
}

impl Default for SyncJobModel {
    fn default() -> Self {
        Self {
            sync_job_id: None,
            sync_config_id: Default::default(),
            internal_id: Default::default(),
            namespace_id: Default::default(),
            status: None,
            trigger: None,
            phase: None,
            total_files: None,
            files_synced: crate::defaults::i64_0(),
            files_failed: crate::defaults::i64_0(),
            files_verified: None,
            started_at: None,
            completed_at: None,
            updated_at: None,
            error: None,
            resumed_via: None,
            metadata: None,
            progress_percent: None,
            throughput_files_per_min: None,
            lag_seconds: None,
            current_cursor: None,
            progress: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SyncJobStatus {
    #[default]
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "interrupted")]
    Interrupted,
    #[serde(rename = "skipped")]
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SyncJobTrigger {
    #[default]
    #[serde(rename = "scheduled")]
    Scheduled,
    #[serde(rename = "manual")]
    Manual,
    #[serde(rename = "resume")]
    Resume,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListSyncJobsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SyncJobStatus>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncJobListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<SyncJobModel>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub pagination: PaginationResponse,
    pub total: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}
