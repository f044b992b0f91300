//! Wire types of the interface: what is let in.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct IngestFilter {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub retriever_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub retriever_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<IngestFilterAction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<IngestFilterOnError>,
    #[serde(default = "crate::defaults::i64_30")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 300)))]
    pub timeout_seconds: i64,
}

impl Default for IngestFilter {
    fn default() -> Self {
        Self {
            retriever_id: Default::default(),
            retriever_version: None,
            action: None,
            on_error: None,
            timeout_seconds: crate::defaults::i64_30(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum IngestFilterAction {
    #[default]
    #[serde(rename = "keep")]
    Keep,
    #[serde(rename = "drop")]
    Drop,
    #[serde(rename = "tag")]
    Tag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum IngestFilterOnError {
    #[default]
    #[serde(rename = "keep")]
    Keep,
    #[serde(rename = "drop")]
    Drop,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ReadConsistencyOption {
    pub mode: ReadConsistencyOptionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub max_staleness_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ReadConsistencyOptionMode {
    #[default]
    #[serde(rename = "strong")]
    Strong,
    #[serde(rename = "eventual")]
    Eventual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SourceType {
    #[default]
    #[serde(rename = "bucket")]
    Bucket,
    #[serde(rename = "collection")]
    Collection,
    #[serde(rename = "taxonomy")]
    Taxonomy,
    #[serde(rename = "cluster")]
    Cluster,
    #[serde(rename = "direct_upsert")]
    DirectUpsert,
    #[serde(rename = "signals")]
    Signals,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubmissionParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_gpu: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_cpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_gpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugin_archives: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugin_dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor_version: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_vars_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TieringIdleDays {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub cold: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub frozen: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TieringOverride {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub idle_days: Option<TieringIdleDays>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct WriteConsistency {
    pub retriever_visible: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_header: Option<String>,
    #[serde(default)]
    pub write_token_available: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_visible_within_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub poll: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub next_actions: Vec<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InputMapping {
    pub input_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<InputSourceType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#override: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum InputSourceType {
    #[default]
    #[serde(rename = "payload")]
    Payload,
    #[serde(rename = "literal")]
    Literal,
    #[serde(rename = "vector")]
    Vector,
    #[serde(rename = "blob")]
    Blob,
}
