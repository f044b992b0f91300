//! Wire types of the interface: batch.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BatchCost, BatchCostEstimate, BatchProgress, DedupStrategy, DegradedEntry, FailedObjectRecord,
    FailureCategory, Filter, Object, TaskStatusEnum, TierTaskInfo,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AddObjectsToBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub object_ids: Vec<String>,
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
    #[serde(default)]
    pub lifecycle: Option<String>,
    #[serde(default)]
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
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchBatchRequest {
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<BatchMetadata>))]
    pub metadata: Option<Option<BatchMetadata>>,
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
