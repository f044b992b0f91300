//! Wire types of the interface: namespace.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{Object, PaginationResponse, PayloadIndexConfig, TaskStatusEnum, TieringOverride};

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub namespace_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_resources: Option<CloneNamespaceResourcesConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_organization_id: Option<String>,
    #[serde(default = "crate::defaults::clone_namespace_request_mode_copy")]
    pub mode: CloneNamespaceRequestMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60)))]
    pub ttl_seconds: Option<i64>,
}

impl Default for CloneNamespaceRequest {
    fn default() -> Self {
        Self {
            namespace_name: Default::default(),
            include_resources: None,
            description: None,
            source_organization_id: None,
            mode: crate::defaults::clone_namespace_request_mode_copy(),
            ttl_seconds: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum CloneNamespaceRequestMode {
    #[default]
    #[serde(rename = "copy")]
    Copy,
    #[serde(rename = "branch")]
    Branch,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceResourcesConfig {
    #[serde(default = "crate::defaults::yes")]
    pub collections: bool,
    #[serde(default = "crate::defaults::yes")]
    pub retrievers: bool,
    #[serde(default)]
    pub taxonomies: bool,
}

impl Default for CloneNamespaceResourcesConfig {
    fn default() -> Self {
        Self {
            collections: crate::defaults::yes(),
            retrievers: crate::defaults::yes(),
            taxonomies: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CloneNamespaceResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub namespace: NamespaceModel,
    pub source_namespace_id: String,
    #[serde(default = "crate::defaults::text_cloning")]
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloned_resources: Option<ClonedResourceSummary>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub cloned_resource_counts: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_retriever_id: Option<String>,
}

impl Default for CloneNamespaceResponse {
    fn default() -> Self {
        Self {
            namespace: Default::default(),
            source_namespace_id: Default::default(),
            status: crate::defaults::text_cloning(),
            task_id: None,
            cloned_resources: None,
            cloned_resource_counts: Default::default(),
            primary_retriever_id: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClonedResourceSummary {
    pub collections: IndexMap<String, String>,
    pub retrievers: IndexMap<String, String>,
    pub taxonomies: IndexMap<String, String>,
    pub buckets: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateNamespaceRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 64)))]
    pub namespace_name: String,
    #[serde(default = "crate::defaults::text_managed")]
    pub mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_type: Option<NamespaceType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<NamespaceScope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractors: Option<Vec<BaseFeatureExtractorModelInput>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_configs: Option<Vec<VectorConfigSpec>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub payload_indexes: Option<Vec<PayloadIndexConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_create_indexes: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_indexing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60)))]
    pub ttl_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub infrastructure: Option<NamespaceInfrastructure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 5), nested))]
    pub trusted_issuers: Option<Vec<NamespaceTrustedIssuer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub spend_budget: Option<NamespaceSpendBudgetUpdate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cost_cap_override: Option<NamespaceCostCapOverride>,
}

impl Default for CreateNamespaceRequest {
    fn default() -> Self {
        Self {
            namespace_id: None,
            namespace_name: Default::default(),
            mode: crate::defaults::text_managed(),
            namespace_type: None,
            scope: None,
            description: None,
            features: None,
            feature_extractors: None,
            vector_configs: None,
            payload_indexes: None,
            auto_create_indexes: None,
            adaptive_indexing: None,
            ttl_seconds: None,
            infrastructure: None,
            trusted_issuers: None,
            tiering: None,
            spend_budget: None,
            cost_cap_override: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListNamespacesRequest {
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
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub sort: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    #[serde(default)]
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListNamespacesResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<NamespaceModel>,
    pub pagination: PaginationResponse,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<NamespaceListStats>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceAdminClaim {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub values: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceAuthorizationConfig {
    #[serde(default)]
    pub enabled: bool,
    #[serde(default = "crate::defaults::namespace_authorization_config_provider_openfga")]
    pub provider: NamespaceAuthorizationConfigProvider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token_secret_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token: Option<String>,
    #[serde(default = "crate::defaults::text_document")]
    pub object_type: String,
    #[serde(default = "crate::defaults::text_viewer")]
    pub relation: String,
    #[serde(default = "crate::defaults::text_user")]
    pub user_type: String,
    #[serde(default = "crate::defaults::namespace_authorization_config_mode_auto")]
    pub mode: NamespaceAuthorizationConfigMode,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 100000)))]
    pub list_objects_max: i64,
    #[serde(default = "crate::defaults::i64_2")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 10)))]
    pub over_fetch_factor: i64,
    #[serde(default = "crate::defaults::i64_30")]
    #[cfg_attr(feature = "schema", validate(range(min = 0, max = 3600)))]
    pub cache_ttl_seconds: i64,
}

impl Default for NamespaceAuthorizationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            provider: crate::defaults::namespace_authorization_config_provider_openfga(),
            api_url: None,
            store_id: None,
            model_id: None,
            api_token_secret_ref: None,
            api_token: None,
            object_type: crate::defaults::text_document(),
            relation: crate::defaults::text_viewer(),
            user_type: crate::defaults::text_user(),
            mode: crate::defaults::namespace_authorization_config_mode_auto(),
            list_objects_max: crate::defaults::i64_1000(),
            over_fetch_factor: crate::defaults::i64_2(),
            cache_ttl_seconds: crate::defaults::i64_30(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceAuthorizationConfigProvider {
    #[default]
    #[serde(rename = "openfga")]
    Openfga,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NamespaceAuthorizationConfigMode {
    #[serde(rename = "push")]
    Push,
    #[serde(rename = "pull_list_objects")]
    PullListObjects,
    #[serde(rename = "pull_batch_check")]
    PullBatchCheck,
    #[default]
    #[serde(rename = "auto")]
    Auto,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceClaimFilter {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub field: String,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceDeleteResponse {
    pub task_id: String,
    pub status: TaskStatusEnum,
    pub namespace_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceGroupClaim {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub claim: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 64)))]
    pub prefix: String,
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
pub struct NamespaceListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_feature_extractors: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_payload_indexes: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_documents: i64,
    #[serde(default = "crate::defaults::yes")]
    pub total_documents_complete: bool,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_buckets: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_collections: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_objects: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_feature_extractors_per_namespace: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_payload_indexes_per_namespace: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_documents_per_namespace: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_buckets_per_namespace: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_collections_per_namespace: f64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_objects_per_namespace: f64,
}

impl Default for NamespaceListStats {
    fn default() -> Self {
        Self {
            total_feature_extractors: crate::defaults::i64_0(),
            total_payload_indexes: crate::defaults::i64_0(),
            total_documents: crate::defaults::i64_0(),
            total_documents_complete: crate::defaults::yes(),
            total_buckets: crate::defaults::i64_0(),
            total_collections: crate::defaults::i64_0(),
            total_objects: crate::defaults::i64_0(),
            avg_feature_extractors_per_namespace: crate::defaults::f64_0_0(),
            avg_payload_indexes_per_namespace: crate::defaults::f64_0_0(),
            avg_documents_per_namespace: crate::defaults::f64_0_0(),
            avg_buckets_per_namespace: crate::defaults::f64_0_0(),
            avg_collections_per_namespace: crate::defaults::f64_0_0(),
            avg_objects_per_namespace: crate::defaults::f64_0_0(),
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceTrustedIssuer {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub issuer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub jwks_url: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub jwks: Object,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub algorithms: Vec<String>,
    #[serde(default = "crate::defaults::text_sub")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub principal_claim: String,
    #[serde(default = "crate::defaults::text_jwt")]
    #[cfg_attr(feature = "schema", validate(length(max = 64)))]
    pub principal_prefix: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub claim_filters: Vec<NamespaceClaimFilter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrievers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owner_writable_collections: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 8), nested))]
    pub group_claims: Vec<NamespaceGroupClaim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub admin_claim: Option<NamespaceAdminClaim>,
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
}

impl Default for NamespaceTrustedIssuer {
    fn default() -> Self {
        Self {
            issuer: Default::default(),
            jwks_url: None,
            jwks: Default::default(),
            audience: Default::default(),
            algorithms: Default::default(),
            principal_claim: crate::defaults::text_sub(),
            principal_prefix: crate::defaults::text_jwt(),
            claim_filters: Default::default(),
            retrievers: Default::default(),
            collections: Default::default(),
            owner_writable_collections: Default::default(),
            allowed_origins: Default::default(),
            group_claims: Default::default(),
            admin_claim: None,
            enabled: crate::defaults::yes(),
        }
    }
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchNamespaceRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 64)))]
    pub namespace_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_extractors: Option<Vec<BaseFeatureExtractorModelInput>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub payload_indexes: Option<Vec<PayloadIndexConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_create_indexes: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_indexing: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_vectors: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub infrastructure: Option<NamespaceInfrastructure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 5), nested))]
    pub trusted_issuers: Option<Vec<NamespaceTrustedIssuer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub spend_budget: Option<NamespaceSpendBudgetUpdate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<NamespacePin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tiering: Option<TieringOverride>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 60)))]
    pub ttl_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub cost_cap_override: Option<NamespaceCostCapOverride>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateNamespaceRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 64)))]
    pub namespace_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub payload_indexes: Option<Vec<PayloadIndexConfig>>,
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
