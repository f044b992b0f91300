//! Hosted apps: bundles and the versions made of them.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Object, Value};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DeployRequest {
    #[serde(default = "crate::defaults::deploy_request_environment_production")]
    pub environment: DeployRequestEnvironment,
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    #[serde(default = "crate::defaults::text_deploy_via_bundle_upload")]
    pub message: String,
    #[serde(default = "crate::defaults::deploy_request_source_cli_upload")]
    pub source: DeployRequestSource,
    #[cfg_attr(feature = "schema", validate(length(max = 400)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_s3_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_files: Option<IndexMap<String, String>>,
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_sha: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 2000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_message: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 200)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_author: Option<String>,
}

impl Default for DeployRequest {
    fn default() -> Self {
        Self {
            environment: crate::defaults::deploy_request_environment_production(),
            message: crate::defaults::text_deploy_via_bundle_upload(),
            source: crate::defaults::deploy_request_source_cli_upload(),
            bundle_s3_key: None,
            source_files: None,
            git_commit_sha: None,
            git_commit_message: None,
            git_author: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DeployRequestEnvironment {
    #[serde(rename = "staging")]
    Staging,
    #[default]
    #[serde(rename = "production")]
    Production,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DeployRequestSource {
    #[default]
    #[serde(rename = "cli_upload")]
    CliUpload,
    #[serde(rename = "git")]
    Git,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DeployResponse {
    pub app_id: String,
    pub deploy_id: String,
    pub status: DeployResponseStatus,
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DeployResponseStatus {
    #[default]
    #[serde(rename = "queued")]
    Queued,
    #[serde(rename = "building")]
    Building,
    #[serde(rename = "complete")]
    Complete,
    #[serde(rename = "failed")]
    Failed,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DeployStatusResponse {
    pub deploy_id: String,
    pub status: DeployStatusResponseStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_s3_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoke_test: Option<SmokeTestResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum DeployStatusResponseStatus {
    #[default]
    #[serde(rename = "queued")]
    Queued,
    #[serde(rename = "building")]
    Building,
    #[serde(rename = "complete")]
    Complete,
    #[serde(rename = "failed")]
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DownloadUrlResponse {
    pub download_url: String,
    pub version: i64,
    pub asset_prefix: String,
    #[serde(default = "crate::defaults::i64_3600")]
    pub expires_in: i64,
}

impl Default for DownloadUrlResponse {
    fn default() -> Self {
        Self {
            download_url: Default::default(),
            version: Default::default(),
            asset_prefix: Default::default(),
            expires_in: crate::defaults::i64_3600(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FileDiff {
    pub path: String,
    pub status: FileDiffStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_delta: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FileDiffStatus {
    #[default]
    #[serde(rename = "added")]
    Added,
    #[serde(rename = "removed")]
    Removed,
    #[serde(rename = "modified")]
    Modified,
    #[serde(rename = "unchanged")]
    Unchanged,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PromoteResponse {
    pub app_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    pub deploy_id: String,
    #[serde(default = "crate::defaults::text_production")]
    pub environment: String,
    pub asset_prefix: String,
}

impl Default for PromoteResponse {
    fn default() -> Self {
        Self {
            app_id: Default::default(),
            version: None,
            deploy_id: Default::default(),
            environment: crate::defaults::text_production(),
            asset_prefix: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreVersionRequest {
    #[serde(default = "crate::defaults::restore_version_request_environment_production")]
    pub environment: RestoreVersionRequestEnvironment,
}

impl Default for RestoreVersionRequest {
    fn default() -> Self {
        Self {
            environment: crate::defaults::restore_version_request_environment_production(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RestoreVersionRequestEnvironment {
    #[serde(rename = "staging")]
    Staging,
    #[default]
    #[serde(rename = "production")]
    Production,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RestoreVersionResponse {
    pub app_id: String,
    pub version: i64,
    pub deploy_id: String,
    pub environment: String,
    pub asset_prefix: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SmokeTestResult {
    pub passed: bool,
    pub url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub duration_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested_at: Option<String>,
}

impl Default for SmokeTestResult {
    fn default() -> Self {
        Self {
            passed: Default::default(),
            url: Default::default(),
            errors: Default::default(),
            duration_ms: crate::defaults::i64_0(),
            tested_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadUrlRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 255)))]
    pub filename: String,
    #[cfg_attr(feature = "schema", validate(length(max = 255)))]
    #[serde(default = "crate::defaults::text_application_zip")]
    pub content_type: String,
}

impl Default for UploadUrlRequest {
    fn default() -> Self {
        Self {
            filename: Default::default(),
            content_type: crate::defaults::text_application_zip(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadUrlResponse {
    pub upload_url: String,
    pub bundle_s3_key: String,
    #[serde(default = "crate::defaults::i64_3600")]
    pub expires_in: i64,
}

impl Default for UploadUrlResponse {
    fn default() -> Self {
        Self {
            upload_url: Default::default(),
            bundle_s3_key: Default::default(),
            expires_in: crate::defaults::i64_3600(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VerifyUploadRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 400)))]
    pub bundle_s3_key: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VerifyUploadResponse {
    pub bundle_s3_key: String,
    pub exists: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VersionDetailResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_version_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub asset_manifest: IndexMap<String, Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_duration_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub source_files: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_author: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub is_active: IndexMap<String, bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VersionDiffResponse {
    pub app_id: String,
    pub from_version: i64,
    pub to_version: i64,
    #[serde(default)]
    pub files: Vec<FileDiff>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub summary: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub source_diff: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VersionListResponse {
    pub versions: Vec<Value>,
    pub total: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VersionRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_version_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub asset_manifest: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_manifest_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::text_production")]
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_duration_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub source_files: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_commit_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_author: Option<String>,
}

impl Default for VersionRecord {
    fn default() -> Self {
        Self {
            version: None,
            s3_version_id: None,
            asset_prefix: None,
            asset_manifest: Default::default(),
            asset_manifest_url: None,
            deployed_by: None,
            deployed_at: None,
            environment: crate::defaults::text_production(),
            build_duration_ms: None,
            message: None,
            source_files: Default::default(),
            git_commit_sha: None,
            git_commit_message: None,
            git_author: None,
        }
    }
}
