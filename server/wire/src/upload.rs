//! Wire types of the interface: upload.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    DegradedEntry, Filter, Object, PaginationResponse, SortOption, TaskResponse, TaskStatusEnum,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchConfirmRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub confirmations: Vec<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchConfirmResponse {
    pub task_id: String,
    pub status: TaskStatusEnum,
    pub confirmations_count: i64,
    pub task: TaskResponse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchUploadRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100), nested))]
    pub uploads: Vec<CreateUploadRequest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub shared_metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub shared_object_metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchUploadResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub uploads: Vec<UploadResponse>,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ConfirmUploadRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub file_size_bytes: Option<i64>,
    #[serde(default)]
    pub auto_submit_batch: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ConfirmUploadResponse {
    pub upload_id: String,
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateUploadRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 255)))]
    pub filename: String,
    pub content_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub file_size_bytes: Option<i64>,
    #[serde(default = "crate::defaults::i64_3600")]
    #[cfg_attr(feature = "schema", validate(range(min = 60, max = 86400)))]
    pub presigned_url_expiration: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default = "crate::defaults::yes")]
    pub create_object_on_confirm: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub object_metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P1)))]
    pub blob_property: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 64, max = 64), regex(path = *crate::patterns::P2)))]
    pub file_hash: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub skip_duplicates: bool,
}

impl Default for CreateUploadRequest {
    fn default() -> Self {
        Self {
            filename: Default::default(),
            content_type: Default::default(),
            file_size_bytes: None,
            presigned_url_expiration: crate::defaults::i64_3600(),
            metadata: None,
            create_object_on_confirm: crate::defaults::yes(),
            object_metadata: None,
            blob_property: None,
            blob_type: None,
            file_hash: None,
            skip_duplicates: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListUploadsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default)]
    pub return_presigned_urls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub offset: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListUploadsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<UploadResponse>,
    pub pagination: PaginationResponse,
    pub stats: UploadListStats,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

/// Where the parts of a large file go.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadParts {
    pub upload_id: String,
    /// Bytes of each part but the last one.
    pub part_size_bytes: i64,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub parts: Vec<UploadPart>,
    /// When the addresses end.
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadPart {
    /// From 1.
    pub part_number: i64,
    pub first_byte: i64,
    pub last_byte: i64,
    /// Takes these bytes by PUT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presigned_url: Option<String>,
    /// What has to be sent with them.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// The part has arrived.
    pub is_there: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadListStats {
    pub total_uploads: i64,
    pub total_size_bytes: i64,
    pub uploads_by_status: IndexMap<String, i64>,
    pub avg_file_size_bytes: f64,
    pub unique_buckets: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadResponse {
    pub upload_id: String,
    pub bucket_id: String,
    pub filename: String,
    pub content_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 2083)))]
    pub presigned_url: Option<String>,
    pub presigned_url_expiration: i64,
    pub s3_key: String,
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    pub create_object_on_confirm: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub object_metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_property: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_hash: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub skip_duplicates: bool,
    #[serde(default)]
    pub is_duplicate: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate_of_upload_id: Option<String>,
    #[serde(default)]
    pub skipped_unique_key: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

impl Default for UploadResponse {
    fn default() -> Self {
        Self {
            upload_id: Default::default(),
            bucket_id: Default::default(),
            filename: Default::default(),
            content_type: Default::default(),
            file_size_bytes: None,
            presigned_url: None,
            presigned_url_expiration: Default::default(),
            s3_key: Default::default(),
            status: Default::default(),
            metadata: Default::default(),
            create_object_on_confirm: Default::default(),
            object_metadata: None,
            blob_property: None,
            blob_type: None,
            file_hash: None,
            skip_duplicates: crate::defaults::yes(),
            is_duplicate: false,
            duplicate_of_upload_id: None,
            skipped_unique_key: false,
            existing_object_id: None,
            message: None,
            created_at: Default::default(),
            expires_at: Default::default(),
            completed_at: None,
            verified_at: None,
            etag: None,
            object_id: None,
            task_id: None,
        }
    }
}
