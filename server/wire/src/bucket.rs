//! Wire types of the interface: bucket.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BucketSchema, DegradedEntry, IngestFilter, Object, PaginationResponse, SourceAdapterConfig,
    TaskStatusEnum,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchStatistics {
    #[serde(default = "crate::defaults::i64_0")]
    pub total: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub active: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub completed: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed: i64,
}

impl Default for BatchStatistics {
    fn default() -> Self {
        Self {
            total: crate::defaults::i64_0(),
            active: crate::defaults::i64_0(),
            completed: crate::defaults::i64_0(),
            failed: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketCreateRequest {
    pub bucket_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub bucket_schema: BucketSchema,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub unique_key: Option<UniqueKeyConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<StorageClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<BucketDestination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub ingest_filter: Option<IngestFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_adapter: Option<SourceAdapterConfig>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketDeleteResponse {
    pub task_id: String,
    pub status: TaskStatusEnum,
    pub bucket_id: String,
    pub bucket_name: String,
    pub object_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketDestination {
    /// Id or name of a storage connection that is for writing.
    pub connection_id: String,
    /// `s3://BUCKET/FOLDER`, or a folder of the bucket that the connection names.
    #[serde(default)]
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_objects: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_size_bytes: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_objects_per_bucket: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_size_per_bucket: f64,
}

impl Default for BucketListStats {
    fn default() -> Self {
        Self {
            total_objects: crate::defaults::i64_0(),
            total_size_bytes: crate::defaults::i64_0(),
            avg_objects_per_bucket: crate::defaults::f64_0_0(),
            avg_size_per_bucket: crate::defaults::f64_0_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketPatchRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub source_adapter: Option<SourceAdapterConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub unique_key: Option<UniqueKeyConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<BucketDestination>,
    /// `null` takes the filter away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<IngestFilter>))]
    pub ingest_filter: Option<Option<IngestFilter>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_id: Option<String>,
    pub bucket_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub unique_key: Option<UniqueKeyConfig>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<StorageClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<BucketDestination>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub ingest_filter: Option<IngestFilter>,
    pub object_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub failed_object_count: i64,
    pub total_size_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_upload_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats_updated_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::task_status_enum_active")]
    pub status: TaskStatusEnum,
    #[serde(default)]
    pub is_locked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_stats: Option<BatchStatistics>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_stats: Option<StorageStatistics>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub source_adapter: Object,
}

impl Default for BucketResponse {
    fn default() -> Self {
        Self {
            bucket_id: None,
            bucket_name: Default::default(),
            description: None,
            bucket_schema: None,
            unique_key: None,
            metadata: Default::default(),
            storage_class: None,
            destination: None,
            ingest_filter: None,
            object_count: Default::default(),
            failed_object_count: crate::defaults::i64_0(),
            total_size_bytes: Default::default(),
            created_at: None,
            updated_at: None,
            last_upload_at: None,
            stats_updated_at: None,
            status: crate::defaults::task_status_enum_active(),
            is_locked: false,
            batch_stats: None,
            storage_stats: None,
            source_adapter: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_schema: Option<BucketSchema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<StorageClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<BucketDestination>,
    /// `null` takes the filter away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<IngestFilter>))]
    pub ingest_filter: Option<Option<IngestFilter>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub unique_key: Option<UniqueKeyConfig>,
}

impl From<BucketPatchRequest> for BucketUpdateRequest {
    fn from(patch: BucketPatchRequest) -> Self {
        Self {
            bucket_name: patch.bucket_name,
            description: patch.description,
            metadata: patch.metadata,
            bucket_schema: patch.bucket_schema,
            storage_class: None,
            destination: patch.destination,
            ingest_filter: patch.ingest_filter,
            unique_key: patch.unique_key,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListBucketsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub limit: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub page_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 10000)))]
    pub offset: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub page: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub sort: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListBucketsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<BucketResponse>,
    pub total_count: i64,
    pub pagination: PaginationResponse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<BucketListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StorageClass {
    #[default]
    #[serde(rename = "standard")]
    Standard,
    #[serde(rename = "nearline")]
    Nearline,
    #[serde(rename = "coldline")]
    Coldline,
    #[serde(rename = "archive")]
    Archive,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageStatistics {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_size_bytes: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub avg_size_bytes: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub max_size_bytes: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub min_size_bytes: i64,
}

impl Default for StorageStatistics {
    fn default() -> Self {
        Self {
            total_size_bytes: crate::defaults::i64_0(),
            avg_size_bytes: crate::defaults::i64_0(),
            max_size_bytes: crate::defaults::i64_0(),
            min_size_bytes: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UniqueKeyConfig {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_policy: Option<UniqueKeyConfigDefaultPolicy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum UniqueKeyConfigDefaultPolicy {
    #[default]
    #[serde(rename = "insert")]
    Insert,
    #[serde(rename = "update")]
    Update,
    #[serde(rename = "upsert")]
    Upsert,
}
