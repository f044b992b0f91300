//! Wire types of the interface: namespace.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    NamespaceAuthorizationConfig, NamespaceTrustedIssuer, Object, PayloadIndexConfig,
    TieringOverride,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BaseFeatureExtractorModelInput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub params: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BaseFeatureExtractorModelOutput {
    pub feature_extractor_name: String,
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub params: Option<Object>,
    pub feature_extractor_id: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceCostCapOverride {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub daily_usd: Option<f64>,
    #[cfg_attr(feature = "schema", validate(length(min = 10, max = 500)))]
    pub reason: String,
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 200)))]
    pub owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceInfrastructure {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P3)))]
    pub ray_cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_dashboard_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_vector_bucket: Option<String>,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub max_concurrent_jobs: i64,
    #[serde(default = "crate::defaults::yes")]
    pub autoscaling_enabled: bool,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 100)))]
    pub min_workers: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100)))]
    pub max_workers: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 8)))]
    pub gpus_per_worker: i64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub compute_profiles: IndexMap<String, Object>,
    #[serde(default = "crate::defaults::text_loupe_plugins")]
    pub s3_plugin_bucket: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3_plugin_prefix: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 100)))]
    pub max_custom_plugins: i64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 50)))]
    pub max_custom_models: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub authorization: Option<NamespaceAuthorizationConfig>,
}

impl Default for NamespaceInfrastructure {
    fn default() -> Self {
        Self {
            ray_cluster_id: None,
            ray_dashboard_url: None,
            s3_vector_bucket: None,
            max_concurrent_jobs: crate::defaults::i64_10(),
            autoscaling_enabled: crate::defaults::yes(),
            min_workers: crate::defaults::i64_1(),
            max_workers: crate::defaults::i64_10(),
            gpu_type: None,
            gpus_per_worker: crate::defaults::i64_1(),
            compute_profiles: Default::default(),
            s3_plugin_bucket: crate::defaults::text_loupe_plugins(),
            s3_plugin_prefix: None,
            max_custom_plugins: crate::defaults::i64_0(),
            max_custom_models: crate::defaults::i64_0(),
            authorization: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceModel {
    #[serde(default = "crate::defaults::text_namespace")]
    pub object: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(max = 64)))]
    pub namespace_name: String,
    #[serde(default = "crate::defaults::namespace_type_standard")]
    pub namespace_type: NamespaceType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<NamespaceScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub infrastructure: Option<NamespaceInfrastructure>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 5), nested))]
    pub trusted_issuers: Vec<NamespaceTrustedIssuer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cost_cap_override: Option<NamespaceCostCapOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<NamespacePin>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub spend_budget: Object,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub budget: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_extractors: Vec<BaseFeatureExtractorModelOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub payload_indexes: Option<Vec<PayloadIndexConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_index_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_count: Option<i64>,
    #[serde(default = "crate::defaults::yes")]
    pub document_count_complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_count: Option<i64>,
    #[serde(default)]
    pub auto_create_indexes: bool,
    #[serde(default)]
    pub adaptive_indexing: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_inference_map: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_vector_indexes: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub vector_configs: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_phase: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_dispatched_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_namespace_id: Option<String>,
    #[serde(default)]
    pub namespace_ready: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

impl Default for NamespaceModel {
    fn default() -> Self {
        Self {
            object: crate::defaults::text_namespace(),
            namespace_id: None,
            namespace_name: Default::default(),
            namespace_type: crate::defaults::namespace_type_standard(),
            scope: None,
            infrastructure: None,
            trusted_issuers: Default::default(),
            cost_cap_override: None,
            tiering: None,
            pinned: None,
            spend_budget: Default::default(),
            budget: Default::default(),
            cluster_id: None,
            description: None,
            feature_extractors: Default::default(),
            payload_indexes: None,
            payload_index_count: None,
            document_count: None,
            document_count_complete: crate::defaults::yes(),
            bucket_count: None,
            collection_count: None,
            object_count: None,
            auto_create_indexes: false,
            adaptive_indexing: false,
            vector_inference_map: None,
            dynamic_vector_indexes: None,
            mode: None,
            vector_configs: Default::default(),
            clone_status: None,
            clone_error: None,
            clone_phase: None,
            clone_task_id: None,
            clone_dispatched_at: None,
            source_namespace_id: None,
            namespace_ready: false,
            created_at: None,
            updated_at: None,
            expires_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespacePin {
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default)]
    pub warm_query_encoder: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
}

impl Default for NamespacePin {
    fn default() -> Self {
        Self {
            enabled: crate::defaults::yes(),
            warm_query_encoder: false,
            set_at: None,
            set_by: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceScope {
    #[default]
    #[serde(rename = "org")]
    Org,
    #[serde(rename = "system")]
    System,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceSpendBudgetUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub daily_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub monthly_usd: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceType {
    #[default]
    #[serde(rename = "standard")]
    Standard,
    #[serde(rename = "marketplace")]
    Marketplace,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorConfigSpec {
    pub name: String,
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub dimension: i64,
    #[serde(default = "crate::defaults::text_cosine")]
    pub metric: String,
}

impl Default for VectorConfigSpec {
    fn default() -> Self {
        Self {
            name: Default::default(),
            dimension: Default::default(),
            metric: crate::defaults::text_cosine(),
        }
    }
}
