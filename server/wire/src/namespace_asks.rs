//! Wire types of the interface: what is asked of namespaces, and answered.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    BaseFeatureExtractorModelInput, DegradedEntry, NamespaceCostCapOverride,
    NamespaceInfrastructure, NamespaceModel, NamespacePin, NamespaceScope,
    NamespaceSpendBudgetUpdate, NamespaceTrustedIssuer, NamespaceType, Object, PaginationResponse,
    PayloadIndexConfig, TaskStatusEnum, TieringOverride, VectorConfigSpec,
};

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
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchNamespaceRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 64)))]
    pub namespace_name: Option<String>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
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
    #[serde(
        default,
        deserialize_with = "crate::sent_moment",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<DateTime<Utc>>))]
    pub expires_at: Option<Option<DateTime<Utc>>>,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceStatsBatchRequest {
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub namespace_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceStatsBatchResponse {
    #[serde(default)]
    pub stats: IndexMap<String, NamespaceStatsResponse>,
}

/// What a namespace holds. Documents are counted in their store, the rest in the database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceStatsResponse {
    pub namespace_id: String,
    #[serde(default)]
    pub document_count: i64,
    #[serde(default)]
    pub document_count_complete: bool,
    #[serde(default)]
    pub bucket_count: i64,
    #[serde(default)]
    pub collection_count: i64,
    #[serde(default)]
    pub object_count: i64,
}
