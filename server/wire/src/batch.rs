//! Wire types of the interface: batch.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BatchCostEstimate, DedupStrategy, FailureCategory, Filter, Object, SubmissionParams,
    TaskStatusEnum,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AddObjectsToBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub object_ids: Vec<String>,
}

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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<String>,
    pub bucket_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub batch_name: Option<String>,
    #[serde(default = "crate::defaults::task_status_enum_draft")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub queue_context: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 0)))]
    pub object_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_dedup_strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by_key_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by_key_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by_is_internal: Option<bool>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub dedup_audit: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<IndexMap<String, i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_category: Option<FailureCategory>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_objects: Vec<FailedObjectRecord>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub failed_object_count: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub partial_objects: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub partial_object_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub unaccounted_object_count: Option<i64>,
    #[serde(default = "crate::defaults::batch_type_bucket")]
    pub r#type: BatchType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_object_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub internal_metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BatchMetadata>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tier_tasks: Vec<TierTaskInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub current_tier: Option<i64>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub total_tiers: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag_tiers: Option<Vec<Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<BatchProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_written: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_replaced: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_deleted: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_dropped: Option<i64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub pages_dropped_reasons: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments_dropped: Option<i64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub segments_dropped_reasons: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub status_diagnostics: Object,
    #[serde(default)]
    pub documents_resolvable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_resolvable_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cost: Option<BatchCost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub retry_count: i64,
    #[serde(default = "crate::defaults::i64_3")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub max_retries: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_retry_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_reason: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub node_death_resubmit_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub deploy_resubmit_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_block_first_seen_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_completion: Option<DateTime<Utc>>,
    pub max_node_death_resubmits: i64,
    pub max_deploy_resubmits: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle_reason: Option<String>,
}

impl Default for BatchModel {
    fn default() -> Self {
        Self {
            batch_id: None,
            bucket_id: Default::default(),
            namespace_id: None,
            batch_name: None,
            status: crate::defaults::task_status_enum_draft(),
            queue_context: Default::default(),
            object_ids: Default::default(),
            dedup_strategy: None,
            effective_dedup_strategy: None,
            submitted_by_key_id: None,
            submitted_by_key_prefix: None,
            submitted_by_is_internal: None,
            dedup_audit: Default::default(),
            collection_ids: None,
            error: None,
            failure_reason: None,
            error_summary: None,
            failure_category: None,
            failed_objects: Default::default(),
            failed_object_count: crate::defaults::i64_0(),
            partial_objects: Default::default(),
            partial_object_count: None,
            unaccounted_object_count: None,
            r#type: crate::defaults::batch_type_bucket(),
            manifest_key: None,
            task_id: None,
            loaded_object_ids: None,
            internal_metadata: None,
            metadata: None,
            tier_tasks: Default::default(),
            current_tier: None,
            total_tiers: crate::defaults::i64_1(),
            dag_tiers: None,
            created_at: None,
            progress: None,
            documents_written: None,
            documents_replaced: None,
            documents_deleted: None,
            pages_dropped: None,
            pages_dropped_reasons: Default::default(),
            segments_dropped: None,
            segments_dropped_reasons: Default::default(),
            status_diagnostics: Default::default(),
            documents_resolvable: false,
            documents_resolvable_error: None,
            health: None,
            cost: None,
            last_activity_at: None,
            retry_count: crate::defaults::i64_0(),
            max_retries: crate::defaults::i64_3(),
            last_retry_at: None,
            retry_reason: None,
            node_death_resubmit_count: crate::defaults::i64_0(),
            deploy_resubmit_count: crate::defaults::i64_0(),
            quota_block_first_seen_at: None,
            webhook_url: None,
            updated_at: None,
            status_message: None,
            estimated_completion: None,
            max_node_death_resubmits: Default::default(),
            max_deploy_resubmits: Default::default(),
            lifecycle: None,
            lifecycle_reason: None,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchQueueResponse {
    pub active_jobs: i64,
    pub max_concurrency: i64,
    pub waiting: Vec<QueuedBatch>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchRequeueResponse {
    pub batch_id: String,
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_count: Option<i64>,
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
pub enum BatchType {
    #[default]
    #[serde(rename = "BUCKET")]
    Bucket,
    #[serde(rename = "COLLECTION")]
    Collection,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkSubmitBatchesRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 50000)))]
    pub chunk_size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_objects: Option<i64>,
}

impl Default for BulkSubmitBatchesRequest {
    fn default() -> Self {
        Self {
            collection_ids: None,
            filters: None,
            chunk_size: crate::defaults::i64_1000(),
            dedup_strategy: None,
            max_objects: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkSubmitBatchesResponse {
    pub batch_group_id: String,
    pub total_objects: i64,
    pub total_batches: i64,
    pub submitted: i64,
    pub failed: i64,
    pub chunk_size: i64,
    pub batches: Vec<BulkSubmittedBatch>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkSubmittedBatch {
    pub batch_id: String,
    pub status: String,
    pub object_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<BatchCostEstimate>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateBatchRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub object_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 50000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_strategy: Option<DedupStrategy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BatchMetadata>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub batch_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_submit: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_processing: Option<bool>,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListBatchesRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListBatchesResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<BatchModel>,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub pagination: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchBatchRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BatchMetadata>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct QueuedBatch {
    pub batch_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    pub position: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetryBatchRequest {
    #[serde(default = "crate::defaults::retry_batch_request_retry_mode_transient_only")]
    pub retry_mode: RetryBatchRequestRetryMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_nums: Option<Vec<i64>>,
    #[serde(default = "crate::defaults::i64_3")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10)))]
    pub max_retry_count: i64,
}

impl Default for RetryBatchRequest {
    fn default() -> Self {
        Self {
            retry_mode: crate::defaults::retry_batch_request_retry_mode_transient_only(),
            tier_nums: None,
            max_retry_count: crate::defaults::i64_3(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RetryBatchRequestRetryMode {
    #[default]
    #[serde(rename = "transient_only")]
    TransientOnly,
    #[serde(rename = "all")]
    All,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubmitBatchRequest {
    #[serde(default = "crate::defaults::yes")]
    pub include_processing_history: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
}

impl Default for SubmitBatchRequest {
    fn default() -> Self {
        Self {
            include_processing_history: crate::defaults::yes(),
            collection_ids: None,
            webhook_url: None,
        }
    }
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
