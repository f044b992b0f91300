//! Wire types of the interface: cluster.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AttributeBasedConfig, DegradedEntry, FaceClusterMergeConfig, FailureCategory, Filter,
    LLMLabelingInput, LayoutStability, Object, PaginationResponse, SortOption,
    SourceEnrichmentConfig, TaskStatusEnum, VectorBasedConfigInput,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterListStats {
    #[serde(default = "crate::defaults::i64_0")]
    pub total_clusters: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub total_documents: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    pub avg_documents_per_cluster: f64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub clusters_by_status: IndexMap<String, i64>,
}

impl Default for ClusterListStats {
    fn default() -> Self {
        Self {
            total_clusters: crate::defaults::i64_0(),
            total_documents: crate::defaults::i64_0(),
            avg_documents_per_cluster: crate::defaults::f64_0_0(),
            clusters_by_status: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterMetadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    pub cluster_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub namespace_id: String,
    pub input_collections: Vec<String>,
    #[serde(default)]
    pub source_cluster_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_bucket_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Object>,
    pub cluster_type: ClusterType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_uris: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_feature_strategy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_weights: Option<IndexMap<String, f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_quality_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_feature_method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub face_cluster_merge: Option<FaceClusterMergeConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_size: Option<i64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub preprocessing_steps: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchical_vector: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hierarchy_depth: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vis_n_components: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability: Option<LayoutStability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustered_attributes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchical_grouping: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation_method: Option<String>,
    #[serde(default)]
    pub output_collection_ids: Vec<String>,
    #[serde(default)]
    pub output_collection_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub algorithm_params: Option<Object>,
    #[serde(default)]
    pub enrich_source: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_enrichment_config: Option<SourceEnrichmentConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub llm_labeling: Option<LLMLabelingInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_clusters: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_documents_clustered: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub quality_metrics: Object,
    #[serde(default)]
    pub hierarchy_detected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_cluster_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub hierarchy_relationships: Option<Vec<Object>>,
    #[serde(default = "crate::defaults::task_status_enum_pending")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_category: Option<FailureCategory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_execution_task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_executed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_labeling_errors: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
}

impl Default for ClusterMetadata {
    fn default() -> Self {
        Self {
            cluster_id: None,
            cluster_name: Default::default(),
            description: None,
            namespace_id: Default::default(),
            input_collections: Default::default(),
            source_cluster_ids: Default::default(),
            source_bucket_ids: None,
            filters: None,
            cluster_type: Default::default(),
            feature_uris: None,
            multi_feature_strategy: None,
            learned_weights: None,
            learning_quality_score: None,
            effective_feature_method: None,
            face_cluster_merge: None,
            sample_size: None,
            preprocessing_steps: Default::default(),
            hierarchical_vector: None,
            max_hierarchy_depth: None,
            vis_n_components: None,
            layout_stability: None,
            clustered_attributes: None,
            hierarchical_grouping: None,
            aggregation_method: None,
            output_collection_ids: Default::default(),
            output_collection_names: Default::default(),
            algorithm: None,
            algorithm_params: None,
            enrich_source: false,
            source_enrichment_config: None,
            llm_labeling: None,
            num_clusters: None,
            num_documents_clustered: None,
            execution_time_seconds: None,
            quality_metrics: Default::default(),
            hierarchy_detected: false,
            parent_cluster_id: None,
            child_cluster_ids: None,
            hierarchy_relationships: None,
            status: crate::defaults::task_status_enum_pending(),
            error: None,
            failure_category: None,
            last_execution_task_id: None,
            last_run_id: None,
            created_at: None,
            updated_at: None,
            last_executed_at: None,
            completed_at: None,
            llm_labeling_errors: None,
            metadata: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub source_cluster_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default = "crate::defaults::cluster_type_vector")]
    pub cluster_type: ClusterType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_config: Option<VectorBasedConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub attribute_config: Option<AttributeBasedConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub llm_labeling: Option<LLMLabelingInput>,
    #[serde(default)]
    pub enrich_source_collection: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_enrichment_config: Option<SourceEnrichmentConfig>,
    #[serde(default)]
    pub auto_execute_on_batch: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_execute_min_documents: Option<i64>,
    #[serde(default = "crate::defaults::i64_3600")]
    pub auto_execute_cooldown_seconds: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parquet_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_clusters: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_stats: Option<ClusterStats>,
    #[serde(default = "crate::defaults::task_status_enum_pending")]
    pub status: TaskStatusEnum,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl Default for ClusterModel {
    fn default() -> Self {
        Self {
            collection_ids: None,
            source_cluster_ids: Default::default(),
            cluster_name: None,
            description: None,
            metadata: Default::default(),
            cluster_type: crate::defaults::cluster_type_vector(),
            vector_config: None,
            attribute_config: None,
            filters: None,
            llm_labeling: None,
            enrich_source_collection: false,
            source_enrichment_config: None,
            auto_execute_on_batch: false,
            auto_execute_min_documents: None,
            auto_execute_cooldown_seconds: crate::defaults::i64_3600(),
            cluster_id: None,
            parquet_path: None,
            members_key: None,
            num_clusters: None,
            cluster_stats: None,
            status: crate::defaults::task_status_enum_pending(),
            task_id: None,
            last_run_id: None,
            created_at: None,
            updated_at: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterStats {
    pub num_clusters: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_points: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silhouette_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ClusterType {
    #[default]
    #[serde(rename = "vector")]
    Vector,
    #[serde(rename = "attribute")]
    Attribute,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateClusterRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub collection_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub source_cluster_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default = "crate::defaults::cluster_type_vector")]
    pub cluster_type: ClusterType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub vector_config: Option<VectorBasedConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub attribute_config: Option<AttributeBasedConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub llm_labeling: Option<LLMLabelingInput>,
    #[serde(default)]
    pub enrich_source_collection: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_enrichment_config: Option<SourceEnrichmentConfig>,
    #[serde(default)]
    pub auto_execute_on_batch: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_execute_min_documents: Option<i64>,
    #[serde(default = "crate::defaults::i64_3600")]
    pub auto_execute_cooldown_seconds: i64,
}

impl Default for CreateClusterRequest {
    fn default() -> Self {
        Self {
            collection_ids: None,
            source_cluster_ids: None,
            cluster_name: None,
            description: None,
            metadata: None,
            cluster_type: crate::defaults::cluster_type_vector(),
            vector_config: None,
            attribute_config: None,
            filters: None,
            llm_labeling: None,
            enrich_source_collection: false,
            source_enrichment_config: None,
            auto_execute_on_batch: false,
            auto_execute_min_documents: None,
            auto_execute_cooldown_seconds: crate::defaults::i64_3600(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClustersRequest {
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
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub sorts: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClustersResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<ClusterMetadata>,
    pub pagination: PaginationResponse,
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<ClusterListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchClusterRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
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
    #[cfg_attr(feature = "schema", validate(nested))]
    pub llm_labeling: Option<LLMLabelingInput>,
    /// `null` takes it away, as an empty one does.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub filters: Option<Option<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub face_cluster_merge: Option<FaceClusterMergeConfig>,
    /// With `null` all documents are clustered.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>), validate(range(max = 1000000)))]
    pub sample_size: Option<Option<i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub algorithm_params: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub source_cluster_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability: Option<LayoutStability>,
}
