//! Wire types of the interface: storages that buckets follow, as they are asked for.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    DegradedEntry, IngestFilter, Object, PaginationResponse, SchemaMapping, SyncConfigurationModel,
    TaskStatusEnum, Value,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncCreateRequest {
    pub connection_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<String>,
    #[serde(default = "crate::defaults::sync_mode_continuous")]
    pub sync_mode: SyncMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub file_filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub schema_mapping: Option<SchemaMapping>,
    #[serde(default = "crate::defaults::i64_300")]
    #[cfg_attr(feature = "schema", validate(range(min = 30, max = 86400)))]
    pub polling_interval_seconds: i64,
    #[serde(default = "crate::defaults::i64_50")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub batch_size: i64,
    #[serde(default)]
    pub skip_batch_submission: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_collection_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub ingest_filter: Option<IngestFilter>,
    #[serde(default = "crate::defaults::yes")]
    pub skip_duplicates: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub reconcile: Option<ReconcileSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_from: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provider_filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_objects_per_run: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub sync_concurrency: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

impl Default for SyncCreateRequest {
    fn default() -> Self {
        Self {
            connection_id: Default::default(),
            source_path: None,
            sync_mode: crate::defaults::sync_mode_continuous(),
            file_filters: None,
            schema_mapping: None,
            polling_interval_seconds: crate::defaults::i64_300(),
            batch_size: crate::defaults::i64_50(),
            skip_batch_submission: false,
            batch_collection_ids: Vec::new(),
            ingest_filter: None,
            skip_duplicates: true,
            reconcile: None,
            sync_from: None,
            provider_filters: None,
            description: None,
            max_objects_per_run: None,
            sync_concurrency: None,
            metadata: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 30, max = 86400)))]
    pub polling_interval_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub batch_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub schema_mapping: Option<SchemaMapping>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_batch_submission: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_collection_ids: Vec<String>,
    /// `null` takes the filter away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<IngestFilter>))]
    pub ingest_filter: Option<Option<IngestFilter>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_objects_per_run: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub sync_concurrency: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub reconcile: Option<ReconcileSettings>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub provider_filters: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListSyncConfigurationsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<SyncConfigurationModel>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub pagination: PaginationResponse,
    pub total: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SyncMode {
    #[default]
    #[serde(rename = "initial_only")]
    InitialOnly,
    #[serde(rename = "continuous")]
    Continuous,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ReconcileSettings {
    #[serde(default = "crate::defaults::yes")]
    pub on_delete: bool,
    #[serde(default = "crate::defaults::yes")]
    pub on_update: bool,
    #[serde(default = "crate::defaults::yes")]
    pub on_filter_drift: bool,
    #[serde(default = "crate::defaults::yes")]
    pub re_extract_on_update: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub re_extract_fields: Vec<String>,
}

impl Default for ReconcileSettings {
    fn default() -> Self {
        Self {
            on_delete: true,
            on_update: true,
            on_filter_drift: true,
            re_extract_on_update: true,
            re_extract_fields: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FileFilters {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_patterns: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_patterns: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub min_size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub max_size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_after: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_before: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_types: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub metadata_filters: Vec<MetadataFilter>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MetadataFilter {
    pub field: String,
    #[serde(default)]
    pub operator: MetadataFilterOperator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MetadataFilterOperator {
    #[default]
    #[serde(rename = "equals")]
    Equals,
    #[serde(rename = "not_equals")]
    NotEquals,
    #[serde(rename = "contains")]
    Contains,
    #[serde(rename = "not_contains")]
    NotContains,
    #[serde(rename = "gt")]
    Gt,
    #[serde(rename = "lt")]
    Lt,
    #[serde(rename = "gte")]
    Gte,
    #[serde(rename = "lte")]
    Lte,
    #[serde(rename = "exists")]
    Exists,
}
