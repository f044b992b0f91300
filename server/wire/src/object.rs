//! Wire types of the interface: object.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BucketSchemaFieldType, DegradedEntry, Filter, Object, PaginationResponse, SortOption,
    SourceType, TaskStatusEnum, Value, WriteConsistency,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchObjectResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    pub bucket_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<BlobModel>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_details: Vec<SourceDetails>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeModel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatusEnum>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<WriteConsistency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_index: Option<i64>,
    #[serde(default)]
    pub replayed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed_by: Option<BatchObjectResultReplayedBy>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BatchObjectResultReplayedBy {
    #[default]
    #[serde(rename = "idempotency_key")]
    IdempotencyKey,
    #[serde(rename = "skip_duplicates")]
    SkipDuplicates,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BlobDetails {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BlobModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_id: Option<String>,
    pub property: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    pub r#type: BucketSchemaFieldType,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub properties: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presigned_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<BlobDetails>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateBlobRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub property: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    pub r#type: BucketSchemaFieldType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P0)))]
    pub upload_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    /// The object's word, unless it is sent. `false`: the file of a storage connection (`s3://`) stays there and is read there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonicalize_source: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_remirror: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateObjectRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub blobs: Option<Vec<CreateBlobRequest>>,
    #[serde(default)]
    pub skip_duplicates: bool,
    /// `false`: files of a storage connection (`s3://`) are not copied but read where they are, unless a blob says otherwise.
    #[serde(default = "crate::defaults::yes")]
    pub canonicalize_source: bool,
    #[serde(default)]
    pub force_remirror: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<EdgeModel>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 255)))]
    pub idempotency_key: Option<String>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

impl Default for CreateObjectRequest {
    fn default() -> Self {
        Self {
            key_prefix: None,
            blobs: None,
            skip_duplicates: false,
            canonicalize_source: crate::defaults::yes(),
            force_remirror: false,
            edges: None,
            idempotency_key: None,
            extra: Object::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateObjectsBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(max = 100), nested))]
    pub objects: Vec<CreateObjectRequest>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateObjectsBatchResponse {
    pub succeeded: Vec<BatchObjectResult>,
    pub failed: Vec<FailedObjectError>,
    pub total_requested: i64,
    pub succeeded_count: i64,
    pub failed_count: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EdgeModel {
    pub r#type: String,
    pub target_object_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<String>,
    #[serde(default = "crate::defaults::edge_model_direction_out")]
    pub direction: EdgeModelDirection,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub attributes: Object,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

impl Default for EdgeModel {
    fn default() -> Self {
        Self {
            r#type: Default::default(),
            target_object_id: Default::default(),
            target_collection_id: None,
            direction: crate::defaults::edge_model_direction_out(),
            attributes: Default::default(),
            extra: Object::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum EdgeModelDirection {
    #[default]
    #[serde(rename = "out")]
    Out,
    #[serde(rename = "in")]
    In,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FailedObjectError {
    pub object_index: i64,
    pub error: String,
    pub error_type: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListObjectsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Vec<String>>,
    #[serde(default)]
    pub return_presigned_urls: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListObjectsResponse {
    pub results: Vec<ObjectResponse>,
    pub pagination: PaginationResponse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<ObjectListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ObjectListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_objects: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_blobs: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_blobs_per_object: f64,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub objects_by_status: Object,
}

impl Default for ObjectListStats {
    fn default() -> Self {
        Self {
            total_objects: crate::defaults::i64_0(),
            total_blobs: crate::defaults::i64_0(),
            avg_blobs_per_object: crate::defaults::f64_0_0(),
            objects_by_status: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ObjectResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    pub bucket_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    #[serde(default)]
    pub blobs: Vec<BlobModel>,
    #[serde(default)]
    pub source_details: Vec<SourceDetails>,
    #[serde(default)]
    pub edges: Vec<EdgeModel>,
    #[serde(default = "crate::defaults::task_status_enum_draft")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<WriteConsistency>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

impl Default for ObjectResponse {
    fn default() -> Self {
        Self {
            object_id: None,
            bucket_id: Default::default(),
            key_prefix: None,
            blobs: Default::default(),
            source_details: Default::default(),
            edges: Default::default(),
            status: crate::defaults::task_status_enum_draft(),
            error: None,
            created_at: None,
            updated_at: None,
            document_count: None,
            consistency: None,
            extra: Object::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchObjectRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_duplicates: Option<bool>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SourceDetails {
    pub r#type: SourceType,
    pub source_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateObjectRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_duplicates: Option<bool>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

/// Objects that are taken out of every collection while their records and files stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkSoftDeleteRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 5000)))]
    pub object_ids: Vec<String>,
    /// Shown with each object.
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub reason: String,
    /// `disabled`, `suspended` or `archived`; `active` takes back.
    #[serde(default = "crate::defaults::text_disabled")]
    pub lifecycle_state: String,
    #[serde(default = "crate::defaults::text_bulk_purge")]
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BulkSoftDeleteResponse {
    /// Objects whose state changed.
    pub soft_deleted: i64,
    pub requested: i64,
    /// Collections that lose documents.
    pub collections: i64,
}
