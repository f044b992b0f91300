//! Wire types of the interface: what a migration takes along.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Object;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BatchOptions {
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub batch_size: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 50)))]
    pub max_workers: i64,
    #[serde(default = "crate::defaults::yes")]
    pub retry_failed: bool,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            batch_size: crate::defaults::i64_100(),
            max_workers: crate::defaults::i64_10(),
            retry_failed: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterOptions {
    #[serde(default = "crate::defaults::yes")]
    pub preserve_cluster_ids: bool,
    #[serde(default = "crate::defaults::yes")]
    pub preserve_assignments: bool,
    #[serde(default = "crate::defaults::yes")]
    pub migrate_artifacts: bool,
    #[serde(default = "crate::defaults::yes")]
    pub preserve_centroids: bool,
    #[serde(default)]
    pub recompute_clusters: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            preserve_cluster_ids: crate::defaults::yes(),
            preserve_assignments: crate::defaults::yes(),
            migrate_artifacts: crate::defaults::yes(),
            preserve_centroids: crate::defaults::yes(),
            recompute_clusters: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MigrationFeatureExtractorConfig {
    pub feature_extractor_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub parameters: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResourceFilter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_range: Option<IndexMap<String, String>>,
    #[serde(default = "crate::defaults::yes")]
    pub auto_include_dependencies: bool,
}

impl Default for ResourceFilter {
    fn default() -> Self {
        Self {
            collection_ids: None,
            taxonomy_ids: None,
            cluster_ids: None,
            retriever_ids: None,
            date_range: None,
            auto_include_dependencies: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverOptions {
    #[serde(default)]
    pub preserve_retriever_ids: bool,
    #[serde(default)]
    pub migrate_interactions: bool,
    #[serde(default)]
    pub migrate_execution_history: bool,
    #[serde(default = "crate::defaults::yes")]
    pub validate_references: bool,
}

impl Default for RetrieverOptions {
    fn default() -> Self {
        Self {
            preserve_retriever_ids: false,
            migrate_interactions: false,
            migrate_execution_history: false,
            validate_references: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyOptions {
    #[serde(default = "crate::defaults::yes")]
    pub preserve_taxonomy_ids: bool,
    #[serde(default = "crate::defaults::yes")]
    pub preserve_enrichment_fields: bool,
    #[serde(default)]
    pub re_run_enrichment: bool,
    #[serde(default = "crate::defaults::yes")]
    pub migrate_reference_collections: bool,
}

impl Default for TaxonomyOptions {
    fn default() -> Self {
        Self {
            preserve_taxonomy_ids: crate::defaults::yes(),
            preserve_enrichment_fields: crate::defaults::yes(),
            re_run_enrichment: false,
            migrate_reference_collections: crate::defaults::yes(),
        }
    }
}
