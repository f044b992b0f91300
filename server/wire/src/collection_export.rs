//! Wire types of the interface: exports of collections.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Filter;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionExportRequest {
    #[serde(default = "crate::defaults::export_format_parquet")]
    pub format: ExportFormat,
    #[serde(default)]
    pub include_vectors: bool,
    #[serde(default)]
    pub include_lineage: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select_fields: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000000)))]
    pub sample_size: Option<i64>,
    /// The documents' files beside their rows, in a webdataset.
    #[serde(default)]
    pub include_media: bool,
    /// Documents of each tar file of a webdataset.
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100000)))]
    pub samples_per_shard: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<ExportDestination>,
}

impl Default for CollectionExportRequest {
    fn default() -> Self {
        Self {
            format: crate::defaults::export_format_parquet(),
            include_vectors: false,
            include_lineage: false,
            select_fields: None,
            filters: None,
            sample_size: None,
            include_media: false,
            samples_per_shard: crate::defaults::i64_1000(),
            destination: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionExportResponse {
    pub download_url: String,
    pub s3_path: String,
    pub format: ExportFormat,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub document_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub file_size_bytes: i64,
    pub exported_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_download_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_s3_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub shard_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_pattern: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub shards: Vec<ExportShard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub media: Option<ExportMediaSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub destination: Option<ExportDestinationResult>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportDestination {
    /// Of a storage connection that is `write_enabled`; or its name.
    pub connection_id: String,
    /// `s3://BUCKET/FOLDER`, or a folder of the `bucket` of the connection's `provider_config`.
    #[serde(default)]
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportDestinationResult {
    pub connection_id: String,
    /// The folder of this export, `s3://BUCKET/FOLDER`.
    pub prefix: String,
    /// Keys in the bucket, as `manifest_key` is one.
    pub files: Vec<String>,
    pub manifest_key: String,
    /// Of `files`.
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub bytes_written: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ExportFormat {
    #[default]
    #[serde(rename = "json")]
    Json,
    #[serde(rename = "csv")]
    Csv,
    #[serde(rename = "parquet")]
    Parquet,
    #[serde(rename = "webdataset")]
    Webdataset,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportMediaSummary {
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub samples_with_media: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub samples_without_media: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub members_written: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub members_skipped_too_large: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub objects_not_found: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub download_failures: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub media_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExportShard {
    pub filename: String,
    pub s3_path: String,
    pub download_url: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sample_count: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub file_size_bytes: i64,
}
