//! Wire types of the interface: up to where a snapshot reaches in each store.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ArtifactDigest {
    pub sha256: String,
    pub size: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BackupCoverage {
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covered: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_backup: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_backup_time: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oplog_end_time: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterTime {
    pub t: i64,
    pub i: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MongoFrontier {
    #[serde(default = "crate::defaults::text_snapshot")]
    pub read_concern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_time_start: Option<ClusterTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_time_end: Option<ClusterTime>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Default for MongoFrontier {
    fn default() -> Self {
        Self {
            read_concern: crate::defaults::text_snapshot(),
            cluster_time_start: None,
            cluster_time_end: None,
            error: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ObjectFrontier {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation_cutoff: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified_cutoff: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub objects_listed: i64,
}

impl Default for ObjectFrontier {
    fn default() -> Self {
        Self {
            generation_cutoff: None,
            last_modified_cutoff: None,
            objects_listed: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SecretVersion {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ShardFrontier {
    #[serde(default)]
    pub history_id: String,
    #[serde(default = "crate::defaults::i64_0")]
    pub durable_confirmed_seq: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub shipped_wal_highwater: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub frontier_seq: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Default for ShardFrontier {
    fn default() -> Self {
        Self {
            history_id: String::new(),
            durable_confirmed_seq: crate::defaults::i64_0(),
            shipped_wal_highwater: crate::defaults::i64_0(),
            frontier_seq: crate::defaults::i64_0(),
            note: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SnapshotFrontier {
    #[serde(default = "crate::defaults::text_bracketed")]
    pub consistency: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mongo: Option<MongoFrontier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorFrontier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectFrontier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_yaml: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_yaml_error: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub digests: IndexMap<String, ArtifactDigest>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub schema_versions: IndexMap<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretVersion>,
}

impl Default for SnapshotFrontier {
    fn default() -> Self {
        Self {
            consistency: crate::defaults::text_bracketed(),
            mongo: None,
            vectors: None,
            objects: None,
            config_yaml: None,
            config_yaml_error: None,
            digests: Default::default(),
            schema_versions: Default::default(),
            secrets: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorFrontier {
    #[serde(default = "crate::defaults::text_scroll_bracketed")]
    pub capture_mode: String,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub shards_start: IndexMap<String, ShardFrontier>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub shards_end: IndexMap<String, ShardFrontier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Default for VectorFrontier {
    fn default() -> Self {
        Self {
            capture_mode: crate::defaults::text_scroll_bracketed(),
            shards_start: Default::default(),
            shards_end: Default::default(),
            error: None,
        }
    }
}
