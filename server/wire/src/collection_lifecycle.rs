//! Wire types of the interface: where a collection's documents are kept, and its schema brought up to them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

/// What a collection is for at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LifecycleState {
    /// Filled, written to and searched.
    #[default]
    Active,
    /// Searched and read; nothing is added or changed.
    Cold,
    /// Its documents lie in one file outside of the search engine: neither searched nor read until they are brought back.
    Archived,
    /// As archived, and not to be deleted.
    Frozen,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TransitionLifecycleRequest {
    pub lifecycle_state: LifecycleState,
    /// False waits up to 20 seconds for the end of a move.
    #[serde(default = "crate::defaults::yes")]
    pub async_transition: bool,
}

/// The storage of a whole namespace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceStorageTier {
    pub rung: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LifecycleStatusResponse {
    pub collection_id: String,
    pub lifecycle_state: LifecycleState,
    /// The file that holds the documents of an archived collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_vector_index: Option<String>,
    /// Documents in the search engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_document_count: Option<i64>,
    /// Documents in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_vector_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transitioned_at: Option<DateTime<Utc>>,
    /// The move that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub namespace_storage_tier: Option<NamespaceStorageTier>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SchemaSyncRequest {
    /// Documents that are looked at.
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10000)))]
    pub sample_size: i64,
    /// Also where the collection's own syncing is switched off.
    #[serde(default)]
    pub force: bool,
    /// Collections over this one learn of the new fields too.
    #[serde(default = "crate::defaults::yes")]
    pub cascade_to_downstream: bool,
}

impl Default for SchemaSyncRequest {
    fn default() -> Self {
        Self {
            sample_size: crate::defaults::i64_1000(),
            force: false,
            cascade_to_downstream: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum SyncCollectionSchemaResponse {
    Synced(SchemaSyncResponse),
    Skipped(SchemaSyncSkippedResponse),
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SchemaSyncResponse {
    pub success: bool,
    pub collection_id: String,
    pub schema_version: i64,
    pub previous_version: i64,
    #[serde(default)]
    pub fields_added: Vec<String>,
    pub fields_total: i64,
    pub documents_sampled: i64,
    #[serde(default)]
    pub downstream_collections_updated: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SchemaSyncSkippedResponse {
    #[serde(default = "crate::defaults::yes")]
    pub success: bool,
    #[serde(default = "crate::defaults::yes")]
    pub skipped: bool,
    pub reason: String,
    pub collection_id: String,
    pub schema_version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<String>,
}
