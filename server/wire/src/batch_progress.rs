//! Wire types of the interface: how far a batch is, and what failed in it.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, SubmissionParams, TaskStatusEnum};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchChunkStats {
    pub unit: String,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_chunks: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_units_per_chunk: Option<f64>,
}

impl Default for BatchChunkStats {
    fn default() -> Self {
        Self {
            unit: Default::default(),
            total_chunks: crate::defaults::i64_0(),
            mean_units_per_chunk: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchCost {
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub credits_consumed: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub cost_usd: f64,
    #[serde(default = "crate::defaults::f64_0_001")]
    pub credit_rate_usd: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub metered_model_usd: Option<f64>,
}

impl Default for BatchCost {
    fn default() -> Self {
        Self {
            credits_consumed: crate::defaults::i64_0(),
            cost_usd: crate::defaults::f64_0_0(),
            credit_rate_usd: crate::defaults::f64_0_001(),
            metered_model_usd: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchErrorDetail {
    pub error_type: ErrorCategory,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceback: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affected_document_ids: Vec<String>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub affected_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_suggestion: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}

impl Default for BatchErrorDetail {
    fn default() -> Self {
        Self {
            error_type: Default::default(),
            message: Default::default(),
            component: None,
            stage: None,
            traceback: None,
            timestamp: None,
            affected_document_ids: Default::default(),
            affected_count: crate::defaults::i64_1(),
            recovery_suggestion: None,
            metadata: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchPhaseDetail {
    #[serde(default = "crate::defaults::i64_0")]
    pub processed: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    #[serde(default = "crate::defaults::text_pending")]
    pub status: String,
}

impl Default for BatchPhaseDetail {
    fn default() -> Self {
        Self {
            processed: crate::defaults::i64_0(),
            total: None,
            status: crate::defaults::text_pending(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchPhases {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch: Option<BatchPhaseDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction: Option<BatchPhaseDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<BatchPhaseDetail>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchProgress {
    #[serde(default = "crate::defaults::i64_0")]
    pub processed: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_per_second: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_seconds: Option<f64>,
    #[serde(default = "crate::defaults::i64_0")]
    pub batch_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub errors: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extraction_first_error: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub documents_skipped: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_extracted: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_skipped: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_failed: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<BatchStageInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<BatchPhases>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_step: Option<BatchStepInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overshoot_percent: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage_history: Vec<BatchStageTiming>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_written: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_stats: Option<BatchChunkStats>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_warnings: Vec<String>,
}

impl Default for BatchProgress {
    fn default() -> Self {
        Self {
            processed: crate::defaults::i64_0(),
            total: None,
            percent: None,
            items_per_second: None,
            eta_seconds: None,
            batch_count: crate::defaults::i64_0(),
            errors: crate::defaults::i64_0(),
            first_error: None,
            extraction_first_error: None,
            documents_skipped: crate::defaults::i64_0(),
            objects_extracted: None,
            objects_skipped: None,
            objects_failed: None,
            current_stage: None,
            phases: None,
            active_step: None,
            overshoot_percent: None,
            queue_position: None,
            queue_reason: None,
            stage_history: Default::default(),
            documents_written: None,
            chunk_stats: None,
            status_warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchStageInfo {
    pub name: String,
    pub index: i64,
    pub total: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub stage_elapsed_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_stage_elapsed_seconds: Option<f64>,
}

impl Default for BatchStageInfo {
    fn default() -> Self {
        Self {
            name: Default::default(),
            index: Default::default(),
            total: Default::default(),
            stage_elapsed_seconds: crate::defaults::f64_0_0(),
            sub_stage: None,
            sub_stage_elapsed_seconds: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchStageTiming {
    pub name: String,
    pub index: i64,
    pub total: i64,
    pub started_at: f64,
    pub ended_at: f64,
    pub duration_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchStepInfo {
    pub name: String,
    pub index: i64,
    pub total: i64,
    pub step_elapsed_seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ErrorCategory {
    #[default]
    #[serde(rename = "dependency")]
    Dependency,
    #[serde(rename = "authentication")]
    Authentication,
    #[serde(rename = "validation")]
    Validation,
    #[serde(rename = "runtime")]
    Runtime,
    #[serde(rename = "network")]
    Network,
    #[serde(rename = "resource")]
    Resource,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExtractorJobInfo {
    pub extractor_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub celery_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_job_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_mode: Option<String>,
    #[serde(default = "crate::defaults::task_status_enum_pending")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_written: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_dropped: Option<i64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub pages_dropped_reasons: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_dropped: Option<i64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub segments_dropped_reasons: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_skipped: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub errors: Vec<BatchErrorDetail>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_job_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_params: Option<SubmissionParams>,
}

impl Default for ExtractorJobInfo {
    fn default() -> Self {
        Self {
            extractor_type: Default::default(),
            collection_ids: Default::default(),
            extractor_id: None,
            ray_job_id: None,
            celery_task_id: None,
            callback_job_id: None,
            execution_mode: None,
            status: crate::defaults::task_status_enum_pending(),
            started_at: None,
            completed_at: None,
            duration_ms: None,
            documents_written: None,
            warnings: Default::default(),
            pages_dropped: None,
            pages_dropped_reasons: Default::default(),
            segments_dropped: None,
            segments_dropped_reasons: Default::default(),
            documents_skipped: None,
            errors: Default::default(),
            error: None,
            last_activity_at: None,
            ray_job_status: None,
            submission_params: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FailedDocument {
    pub object_id: String,
    /// What the object's first file is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_num: Option<i64>,
    pub error: String,
    pub error_type: FailedDocumentErrorType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<i64>,
    pub timestamp: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FailedDocumentErrorType {
    #[default]
    #[serde(rename = "transient")]
    Transient,
    #[serde(rename = "permanent")]
    Permanent,
    #[serde(rename = "resource")]
    Resource,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FailedDocumentsResponse {
    pub batch_id: String,
    pub results: Vec<FailedDocument>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FailedObjectRecord {
    pub object_id: String,
    pub error: String,
    pub error_type: FailedObjectRecordErrorType,
    pub timestamp: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FailedObjectRecordErrorType {
    #[default]
    #[serde(rename = "transient")]
    Transient,
    #[serde(rename = "permanent")]
    Permanent,
    #[serde(rename = "resource")]
    Resource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum InfraEventType {
    #[default]
    #[serde(rename = "oom")]
    Oom,
    #[serde(rename = "preemption")]
    Preemption,
    #[serde(rename = "node_failure")]
    NodeFailure,
    #[serde(rename = "ray_bug")]
    RayBug,
    #[serde(rename = "rolling_update")]
    RollingUpdate,
    #[serde(rename = "unknown")]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InfrastructureDetail {
    pub event_type: InfraEventType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_signal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
}
