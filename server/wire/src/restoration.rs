//! Wire types of the interface: restorations.

use serde::{Deserialize, Serialize};

use crate::{Object, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreCollectionOutcome {
    pub collection: String,
    pub expected: i64,
    pub restored: i64,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreReport {
    pub snapshot_id: String,
    pub target_namespace_id: String,
    pub complete: bool,
    #[serde(default)]
    pub collections: Vec<RestoreCollectionOutcome>,
    #[serde(default = "crate::defaults::i64_0")]
    pub vector_expected: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub vector_restored: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_source: Option<String>,
    #[serde(default = "crate::defaults::text_none")]
    pub vector_status: String,
    #[serde(default)]
    pub skipped_summary: Vec<String>,
    #[serde(default)]
    pub retriever_parity: Vec<RetrieverParityResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_point: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_seq: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub write_gap: Object,
}

impl Default for RestoreReport {
    fn default() -> Self {
        Self {
            snapshot_id: Default::default(),
            target_namespace_id: Default::default(),
            complete: Default::default(),
            collections: Default::default(),
            vector_expected: crate::defaults::i64_0(),
            vector_restored: crate::defaults::i64_0(),
            vector_source: None,
            vector_status: crate::defaults::text_none(),
            skipped_summary: Default::default(),
            retriever_parity: Default::default(),
            restore_point: None,
            resolved_seq: None,
            fork_id: None,
            write_gap: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreSnapshotRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_namespace_name: Option<String>,
    #[serde(default)]
    pub confirm_in_place: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_point: Option<Value>,
    #[serde(default)]
    pub isolated: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreSnapshotResponse {
    pub task_id: String,
    pub snapshot_id: String,
    pub target_namespace_id: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore_point: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_seq: Option<i64>,
    #[serde(default)]
    pub isolated: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverParityResult {
    pub retriever_name: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub probe_inputs: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_top_k: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_top_k: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<i64>,
}
