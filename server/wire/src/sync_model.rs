//! Wire types of the interface: a storage that a bucket follows.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    FileFilters, IngestFilter, Object, ReconcileSettings, SchemaMapping, SyncMode, TaskStatusEnum,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncConfigurationModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_config_id: Option<String>,
    pub bucket_id: String,
    pub connection_id: String,
    pub internal_id: String,
    pub namespace_id: String,
    pub source_path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub file_filters: Option<FileFilters>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub schema_mapping: Option<SchemaMapping>,
    #[serde(default = "crate::defaults::sync_mode_continuous")]
    pub sync_mode: SyncMode,
    #[serde(default = "crate::defaults::i64_300")]
    #[cfg_attr(feature = "schema", validate(range(min = 30, max = 86400)))]
    pub polling_interval_seconds: i64,
    #[serde(default = "crate::defaults::i64_50")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub batch_size: i64,
    #[serde(default = "crate::defaults::yes")]
    pub create_object_on_confirm: bool,
    #[serde(default = "crate::defaults::yes")]
    pub skip_duplicates: bool,
    #[serde(default)]
    pub skip_batch_submission: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub ingest_filter: Option<IngestFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub reconcile: Option<ReconcileSettings>,
    #[serde(default = "crate::defaults::task_status_enum_pending")]
    pub status: TaskStatusEnum,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_files_discovered: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_files_synced: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_files_failed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_bytes_synced: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stats: Option<SyncStatsModel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, DateTime<Utc>>>))]
    pub per_shard_last_sync_at: Option<indexmap::IndexMap<String, DateTime<Utc>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_sync_at: Option<DateTime<Utc>>,
    pub created_by_user_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub last_error: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub consecutive_failures: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provider_filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_by_worker_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_expires_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub pending_full_sync: bool,
    #[serde(default)]
    pub paused: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by_user_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default = "crate::defaults::i64_100000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_objects_per_run: i64,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub max_batch_chunk_size: i64,
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub batch_chunk_size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub sync_concurrency: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_sync_run_id: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sync_run_counter: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_ids: Vec<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub batches_created: i64,
    #[serde(default = "crate::defaults::yes")]
    pub resume_enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_last_primary_key: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub resume_objects_processed: i64,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 100, max = 10000)))]
    pub resume_checkpoint_frequency: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, std::collections::HashMap<String, serde_json::Value>>>))]
    pub sync_checkpoints: Option<indexmap::IndexMap<String, Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub schedule: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub sync_progress: Option<Object>,
    pub locked: bool,
}

impl Default for SyncConfigurationModel {
    fn default() -> Self {
        Self {
            sync_config_id: None,
            bucket_id: Default::default(),
            connection_id: Default::default(),
            internal_id: Default::default(),
            namespace_id: Default::default(),
            source_path: Default::default(),
            file_filters: None,
            schema_mapping: None,
            sync_mode: crate::defaults::sync_mode_continuous(),
            polling_interval_seconds: crate::defaults::i64_300(),
            batch_size: crate::defaults::i64_50(),
            create_object_on_confirm: true,
            skip_duplicates: true,
            skip_batch_submission: false,
            batch_collection_ids: Vec::new(),
            ingest_filter: None,
            reconcile: None,
            status: crate::defaults::task_status_enum_pending(),
            is_active: true,
            total_files_discovered: crate::defaults::i64_0(),
            total_files_synced: crate::defaults::i64_0(),
            total_files_failed: crate::defaults::i64_0(),
            total_bytes_synced: crate::defaults::i64_0(),
            stats: None,
            created_at: None,
            updated_at: None,
            last_sync_at: None,
            per_shard_last_sync_at: None,
            next_sync_at: None,
            created_by_user_id: Default::default(),
            last_error: None,
            consecutive_failures: crate::defaults::i64_0(),
            provider_filters: None,
            source_type: None,
            metadata: None,
            locked_by_worker_id: None,
            locked_at: None,
            lock_expires_at: None,
            pending_full_sync: false,
            paused: false,
            pause_reason: None,
            paused_at: None,
            paused_by_user_id: None,
            description: None,
            max_objects_per_run: crate::defaults::i64_100000(),
            max_batch_chunk_size: crate::defaults::i64_1000(),
            batch_chunk_size: crate::defaults::i64_100(),
            sync_concurrency: None,
            current_sync_run_id: None,
            sync_run_counter: crate::defaults::i64_0(),
            batch_ids: Vec::new(),
            task_ids: Vec::new(),
            batches_created: crate::defaults::i64_0(),
            resume_enabled: true,
            resume_cursor: None,
            resume_last_primary_key: None,
            resume_objects_processed: crate::defaults::i64_0(),
            resume_checkpoint_frequency: crate::defaults::i64_1000(),
            current_cursor: None,
            sync_checkpoints: None,
            schedule: None,
            sync_progress: None,
            locked: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncStatsModel {
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_objects_synced: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_objects_verified: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_objects_failed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_objects_discovered: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_objects_skipped: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_bytes_synced: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub total_duration_seconds: f64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_runs_completed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_runs_failed: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub peak_objects_per_min: f64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_objects_synced: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_objects_verified: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_objects_failed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_objects_discovered: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_objects_skipped: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_bytes_synced: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub last_run_duration_seconds: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub last_run_throughput_objects_per_min: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub last_run_throughput_mbps: f64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub last_run_avg_object_size_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for SyncStatsModel {
    fn default() -> Self {
        Self {
            total_objects_synced: crate::defaults::i64_0(),
            total_objects_verified: crate::defaults::i64_0(),
            total_objects_failed: crate::defaults::i64_0(),
            total_objects_discovered: crate::defaults::i64_0(),
            total_objects_skipped: crate::defaults::i64_0(),
            total_bytes_synced: crate::defaults::i64_0(),
            total_duration_seconds: crate::defaults::f64_0_0(),
            total_runs_completed: crate::defaults::i64_0(),
            total_runs_failed: crate::defaults::i64_0(),
            peak_objects_per_min: crate::defaults::f64_0_0(),
            last_run_objects_synced: crate::defaults::i64_0(),
            last_run_objects_verified: crate::defaults::i64_0(),
            last_run_objects_failed: crate::defaults::i64_0(),
            last_run_objects_discovered: crate::defaults::i64_0(),
            last_run_objects_skipped: crate::defaults::i64_0(),
            last_run_bytes_synced: crate::defaults::i64_0(),
            last_run_duration_seconds: crate::defaults::f64_0_0(),
            last_run_throughput_objects_per_min: crate::defaults::f64_0_0(),
            last_run_throughput_mbps: crate::defaults::f64_0_0(),
            last_run_avg_object_size_bytes: crate::defaults::i64_0(),
            last_run_at: None,
            updated_at: None,
        }
    }
}
