//! Wire types of the interface: snapshot.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{BackupCoverage, DegradedEntry, Object, RestoreReport, SnapshotFrontier};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateSnapshotRequest {
    #[serde(default)]
    pub copy_s3_objects: bool,
    #[serde(default = "crate::defaults::yes")]
    pub include_vectors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_from: Option<SnapshotImportSource>,
}

impl Default for CreateSnapshotRequest {
    fn default() -> Self {
        Self {
            copy_s3_objects: false,
            include_vectors: crate::defaults::yes(),
            import_from: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateSnapshotResponse {
    pub task_id: String,
    pub snapshot_id: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListSnapshotsRequest {
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub skip: i64,
    #[serde(default = "crate::defaults::i64_20")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub limit: i64,
}

impl Default for ListSnapshotsRequest {
    fn default() -> Self {
        Self {
            skip: crate::defaults::i64_0(),
            limit: crate::defaults::i64_20(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListSnapshotsResponse {
    pub results: Vec<SnapshotModel>,
    pub total_count: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotCopyOut {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub objects: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub bytes: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatched: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Default for SnapshotCopyOut {
    fn default() -> Self {
        Self {
            status: Default::default(),
            bucket: None,
            objects: crate::defaults::i64_0(),
            bytes: crate::defaults::i64_0(),
            mismatched: Default::default(),
            error: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotDetailResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    pub namespace_id: String,
    pub namespace_name: String,
    pub internal_id: String,
    pub snapshot_type: SnapshotType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SnapshotStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::i64_1")]
    pub schema_version: i64,
    #[serde(default)]
    pub s3_prefix: String,
    #[serde(default)]
    pub s3_objects_copied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<SnapshotManifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub include_vectors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_shard_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_out: Option<SnapshotCopyOut>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub imported_from: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<RestoreReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<SnapshotDownload>,
}

impl Default for SnapshotDetailResponse {
    fn default() -> Self {
        Self {
            snapshot_id: None,
            namespace_id: Default::default(),
            namespace_name: Default::default(),
            internal_id: Default::default(),
            snapshot_type: Default::default(),
            status: None,
            created_at: None,
            dispatch_at: None,
            completed_at: None,
            expires_at: None,
            schema_version: crate::defaults::i64_1(),
            s3_prefix: String::new(),
            s3_objects_copied: false,
            manifest: None,
            error: None,
            task_id: None,
            include_vectors: crate::defaults::yes(),
            vector_shard_key: None,
            copy_out: None,
            imported_from: Default::default(),
            last_restore: None,
            download: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotDownload {
    pub expires_at: DateTime<Utc>,
    pub artifacts: Vec<SnapshotDownloadArtifact>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotDownloadArtifact {
    pub path: String,
    pub url: String,
    pub sha256: String,
    pub size: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotImportSource {
    pub bucket: String,
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotManifest {
    pub snapshot_id: String,
    pub namespace_id: String,
    pub namespace_name: String,
    #[serde(default = "crate::defaults::i64_1")]
    pub schema_version: i64,
    pub created_at: DateTime<Utc>,
    pub snapshot_type: String,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub mongo_collections: IndexMap<String, i64>,
    #[serde(default = "crate::defaults::i64_0")]
    pub vector_point_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub s3_object_count: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub s3_total_bytes: i64,
    #[serde(default)]
    pub s3_objects_copied: bool,
    #[serde(default = "crate::defaults::yes")]
    pub include_vectors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_shard_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontier: Option<SnapshotFrontier>,
}

impl Default for SnapshotManifest {
    fn default() -> Self {
        Self {
            snapshot_id: Default::default(),
            namespace_id: Default::default(),
            namespace_name: Default::default(),
            schema_version: crate::defaults::i64_1(),
            created_at: Default::default(),
            snapshot_type: Default::default(),
            mongo_collections: Default::default(),
            vector_point_count: crate::defaults::i64_0(),
            s3_object_count: crate::defaults::i64_0(),
            s3_total_bytes: crate::defaults::i64_0(),
            s3_objects_copied: false,
            include_vectors: crate::defaults::yes(),
            vector_shard_key: None,
            frontier: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    pub namespace_id: String,
    pub namespace_name: String,
    pub internal_id: String,
    pub snapshot_type: SnapshotType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SnapshotStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default = "crate::defaults::i64_1")]
    pub schema_version: i64,
    #[serde(default)]
    pub s3_prefix: String,
    #[serde(default)]
    pub s3_objects_copied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<SnapshotManifest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub include_vectors: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_shard_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_out: Option<SnapshotCopyOut>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub imported_from: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<RestoreReport>,
}

impl Default for SnapshotModel {
    fn default() -> Self {
        Self {
            snapshot_id: None,
            namespace_id: Default::default(),
            namespace_name: Default::default(),
            internal_id: Default::default(),
            snapshot_type: Default::default(),
            status: None,
            created_at: None,
            dispatch_at: None,
            completed_at: None,
            expires_at: None,
            schema_version: crate::defaults::i64_1(),
            s3_prefix: String::new(),
            s3_objects_copied: false,
            manifest: None,
            error: None,
            task_id: None,
            include_vectors: crate::defaults::yes(),
            vector_shard_key: None,
            copy_out: None,
            imported_from: Default::default(),
            last_restore: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SnapshotStatus {
    #[default]
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "in_progress")]
    InProgress,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "partial")]
    Partial,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "expired")]
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SnapshotType {
    #[default]
    #[serde(rename = "daily")]
    Daily,
    #[serde(rename = "pre_delete")]
    PreDelete,
    #[serde(rename = "manual")]
    Manual,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotVerifyIssue {
    pub code: String,
    pub severity: String,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotVerifyResponse {
    pub snapshot_id: String,
    pub status: String,
    pub restorable: bool,
    #[serde(default)]
    pub issues: Vec<SnapshotVerifyIssue>,
    #[serde(default = "crate::defaults::i64_0")]
    pub collections_verified: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_source: Option<String>,
    #[serde(default = "crate::defaults::text_could_not_measure")]
    pub vector_capture: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontier: Option<SnapshotFrontier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mongo_backup: Option<BackupCoverage>,
    #[serde(default = "crate::defaults::i64_0")]
    pub digests_verified: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<RestoreReport>,
}

impl Default for SnapshotVerifyResponse {
    fn default() -> Self {
        Self {
            snapshot_id: Default::default(),
            status: Default::default(),
            restorable: Default::default(),
            issues: Default::default(),
            collections_verified: crate::defaults::i64_0(),
            vector_source: None,
            vector_capture: crate::defaults::text_could_not_measure(),
            frontier: None,
            mongo_backup: None,
            digests_verified: crate::defaults::i64_0(),
            last_restore: None,
        }
    }
}
