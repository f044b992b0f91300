//! Wire types of the interface: what a bucket is filled from by itself.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Object;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchingConfig {
    #[serde(default = "crate::defaults::batching_config_mode_time_window")]
    pub mode: BatchingConfigMode,
    #[serde(default = "crate::defaults::i64_30")]
    #[cfg_attr(feature = "schema", validate(range(min = 5, max = 300)))]
    pub window_seconds: i64,
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub max_batch_size: i64,
    #[serde(default = "crate::defaults::yes")]
    pub auto_submit: bool,
}

impl Default for BatchingConfig {
    fn default() -> Self {
        Self {
            mode: crate::defaults::batching_config_mode_time_window(),
            window_seconds: crate::defaults::i64_30(),
            max_batch_size: crate::defaults::i64_100(),
            auto_submit: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BatchingConfigMode {
    #[default]
    #[serde(rename = "time_window")]
    TimeWindow,
    #[serde(rename = "count")]
    Count,
    #[serde(rename = "immediate")]
    Immediate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BlobSource {
    pub file_field: String,
    #[serde(default = "crate::defaults::text_video")]
    pub blob_type: String,
    pub target_property: String,
}

impl Default for BlobSource {
    fn default() -> Self {
        Self {
            file_field: Default::default(),
            blob_type: crate::defaults::text_video(),
            target_property: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EventFilter {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExternalConnection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_base_url: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub credentials: Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceAdapterConfig {
    pub adapter_type: String,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ExternalConnection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_filter: Option<EventFilter>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub field_mapping: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_source: Option<BlobSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub batching: Option<BatchingConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_collection_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub source_filters: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_bucket_ids: Vec<String>,
}

impl Default for SourceAdapterConfig {
    fn default() -> Self {
        Self {
            adapter_type: Default::default(),
            enabled: crate::defaults::yes(),
            connection_id: None,
            connection: None,
            event_filter: None,
            field_mapping: Default::default(),
            blob_source: None,
            batching: None,
            dedup_key: None,
            webhook_secret: None,
            webhook_url: None,
            source_collection_id: None,
            source_filters: Default::default(),
            source_bucket_ids: Default::default(),
        }
    }
}
