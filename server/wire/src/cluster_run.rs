//! Wire types of the interface: cluster run.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    DegradedEntry, Filter, LLMLabelingInput, LayoutStability, Object, PaginationResponse,
    SortOption, Value,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterCompositeSource {
    pub source_run_id: String,
    pub original_cluster_id: String,
    #[serde(default = "crate::defaults::i64_0")]
    pub num_members: i64,
}

impl Default for ClusterCompositeSource {
    fn default() -> Self {
        Self {
            source_run_id: Default::default(),
            original_cluster_id: Default::default(),
            num_members: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterExecutionCentroid {
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub cluster_id: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub num_members: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keywords: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_cosine_similarity: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_cosine_similarity: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub centroid_vector: Vec<f64>,
    #[serde(default)]
    pub representative_ids: Vec<RepresentativeDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterExecutionListStats {
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_executions: i64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub executions_by_status: IndexMap<String, i64>,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub avg_execution_time_ms: f64,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_documents_clustered: i64,
    #[serde(default = "crate::defaults::f64_0_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub avg_num_clusters: f64,
}

impl Default for ClusterExecutionListStats {
    fn default() -> Self {
        Self {
            total_executions: crate::defaults::i64_0(),
            executions_by_status: Default::default(),
            avg_execution_time_ms: crate::defaults::f64_0_0(),
            total_documents_clustered: crate::defaults::i64_0(),
            avg_num_clusters: crate::defaults::f64_0_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterExecutionMetrics {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = -1.0, max = 1.0)))]
    pub silhouette_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub davies_bouldin_index: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub calinski_harabasz_score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degenerate: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degenerate_detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_cluster_size: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_ratio: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_size_entropy: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub should_recluster: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_cosine_to_centroid: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_cosine_to_centroid: Option<f64>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterExecutionResult {
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P9)))]
    pub run_id: String,
    #[cfg_attr(feature = "schema", validate(regex(path = *crate::patterns::P10)))]
    pub cluster_id: String,
    pub status: ClusterRunStatus,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub num_clusters: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub num_points: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub metrics: Option<ClusterExecutionMetrics>,
    #[serde(default)]
    pub member_counts_stale: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub centroids: Option<Vec<ClusterExecutionCentroid>>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_traceback: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_labeling_errors: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_documents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_retrieved: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_clustered: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_gap: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_drop: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_reconciliation_ok: Option<bool>,
    #[serde(default)]
    pub input_reconciliation_reasons: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_drop_expected_as_noise: Option<bool>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub label_overrides: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 120)))]
    pub run_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability_applied: Option<LayoutStabilityApplied>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability_reason: Option<String>,
    #[serde(default)]
    pub generation_reap: Vec<ClusterGenerationReap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ClusterExecutionMode>,
    #[serde(default)]
    pub source_execution_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub composite_mapping: IndexMap<String, Vec<ClusterCompositeSource>>,
    /// What lies around the clusters, where they were divided or have attributes in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hierarchy_relationships: Vec<ClusterHierarchyNode>,
}

/// A cluster that was divided.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterHierarchyNode {
    pub cluster_id: String,
    /// The cluster around it; none of the outermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_cluster_id: Option<String>,
    /// 0 of the outermost.
    pub depth: i64,
    pub num_members: i64,
    pub label: String,
    #[serde(default)]
    pub keywords: Vec<String>,
    /// What it was divided into: clusters of the execution, and such as were divided further.
    pub child_cluster_ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ClusterRunStatus {
    #[default]
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "canceled")]
    Canceled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum LayoutStabilityApplied {
    #[default]
    #[serde(rename = "transform")]
    Transform,
    #[serde(rename = "aligned")]
    Aligned,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterGenerationReap {
    pub output_collection_id: String,
    pub decision: ClusterGenerationReapDecision,
    #[serde(default)]
    pub pending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<i64>,
    pub written: i64,
    pub stale: i64,
    pub reaped: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub wal_seq: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_seq: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_unavailable_reason: Option<String>,
}

impl Default for ClusterGenerationReap {
    fn default() -> Self {
        Self {
            output_collection_id: Default::default(),
            decision: Default::default(),
            pending: false,
            partition_key: None,
            superseded_by: None,
            finished_at: None,
            prior: None,
            written: Default::default(),
            stale: Default::default(),
            reaped: Default::default(),
            wal_seq: crate::defaults::i64_0(),
            confirmed_seq: None,
            confirmed_unavailable_reason: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ClusterGenerationReapDecision {
    #[default]
    #[serde(rename = "deleted")]
    Deleted,
    #[serde(rename = "nothing_stale")]
    NothingStale,
    #[serde(rename = "skipped_unconfirmed")]
    SkippedUnconfirmed,
    #[serde(rename = "skipped_unreadable")]
    SkippedUnreadable,
    #[serde(rename = "deleted_late")]
    DeletedLate,
    #[serde(rename = "superseded")]
    Superseded,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterGroup {
    pub cluster_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default)]
    pub keywords: Vec<String>,
    pub member_count: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterGroupsResponse {
    pub cluster_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub total_groups: i64,
    pub total_documents: i64,
    #[serde(default)]
    pub member_counts_stale: bool,
    pub groups: Vec<ClusterGroup>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecuteClusterByIdRequest {
    #[serde(default = "crate::defaults::cluster_execution_mode_full")]
    pub mode: ClusterExecutionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_execution_ids: Option<Vec<String>>,
    #[serde(default = "crate::defaults::f64_0_5")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub assignment_threshold: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(max = 1000000)))]
    pub sample_size: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vis_n_components: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defer_visualization: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_stability: Option<LayoutStability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub llm_labeling: Option<LLMLabelingInput>,
}

impl Default for ExecuteClusterByIdRequest {
    fn default() -> Self {
        Self {
            mode: crate::defaults::cluster_execution_mode_full(),
            source_execution_ids: None,
            assignment_threshold: crate::defaults::f64_0_5(),
            filters: None,
            sample_size: None,
            vis_n_components: None,
            defer_visualization: None,
            layout_stability: None,
            llm_labeling: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ClusterExecutionMode {
    #[default]
    #[serde(rename = "full")]
    Full,
    #[serde(rename = "assign")]
    Assign,
    #[serde(rename = "composite")]
    Composite,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClusterExecutionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Filter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<SortOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListClusterExecutionsResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<ClusterExecutionResult>,
    pub pagination: PaginationResponse,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub total_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub stats: Option<ClusterExecutionListStats>,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchExecutionLabelsRequest {
    pub labels: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchExecutionLabelsResponse {
    pub cluster_id: String,
    pub run_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_overrides: Option<IndexMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchExecutionRunNameRequest {
    pub run_name: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PatchExecutionRunNameResponse {
    pub cluster_id: String,
    pub run_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RepresentativeDocument {
    pub document_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<String>,
}

/// The picture of an execution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterVisualization {
    pub cluster_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// 2 or 3; 0 where nothing is drawn.
    pub dimensions: i64,
    /// Points of the whole picture.
    pub total_points: i64,
    /// `{document_id, collection_id, cluster_id, position}`, or `[position, cluster]` where compact ones are asked for.
    pub points: Vec<Value>,
    pub centroids: Vec<ClusterVisualizationCentroid>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterVisualizationCentroid {
    pub cluster_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub num_members: i64,
    /// The middle of its points.
    pub position: Vec<f64>,
}
