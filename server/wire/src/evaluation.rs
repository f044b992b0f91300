//! Wire types of the interface: evaluation.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Object};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateDatasetRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub dataset_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 2000)))]
    pub description: Option<String>,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 2000), nested))]
    pub queries: Vec<GroundTruthQuery>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DatasetListResponse {
    pub datasets: Vec<EvaluationDataset>,
    pub total: i64,
    pub page: i64,
    pub page_size: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EvaluationConfig {
    /// Up to 20 cut-offs of 1 to 500, default 1, 5, 10 and 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 20)))]
    pub k_values: Option<Vec<i64>>,
    /// Of precision, recall, f1, map, ndcg and mrr; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 20)))]
    pub metrics: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EvaluationDataset {
    pub dataset_id: String,
    pub dataset_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub queries: Vec<GroundTruthQuery>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub namespace_id: String,
    pub internal_id: String,
    pub query_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EvaluationDiscoveryResponse {
    pub endpoints: IndexMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EvaluationListResponse {
    pub evaluations: Vec<EvaluationRecord>,
    pub total: i64,
    pub page: i64,
    pub page_size: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EvaluationRecord {
    pub evaluation_id: String,
    pub retriever_id: String,
    pub dataset_id: String,
    pub dataset_name: String,
    pub config: EvaluationConfig,
    pub status: EvaluationStatus,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    pub namespace_id: String,
    pub internal_id: String,
    pub query_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall_metrics: Option<IndexMap<String, f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_by_k: Option<IndexMap<String, IndexMap<String, f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_queries: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluated_queries: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_queries: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default)]
    pub query_results: Vec<QueryOutcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_evaluation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_set_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GateVerdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum EvaluationStatus {
    #[default]
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "in_progress")]
    InProgress,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GateMetricComparison {
    pub baseline: f64,
    pub candidate: f64,
    pub delta: f64,
    pub threshold: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct_change: Option<f64>,
    pub regressed: bool,
    pub comparable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GateVerdict {
    pub passed: bool,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_metric: Option<String>,
    #[serde(default = "crate::defaults::i64_0")]
    pub compared_metrics: i64,
    #[serde(default)]
    pub regressed_metrics: Vec<String>,
    #[serde(default)]
    pub skipped_metrics: Vec<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub per_metric: IndexMap<String, GateMetricComparison>,
}

impl Default for GateVerdict {
    fn default() -> Self {
        Self {
            passed: Default::default(),
            reason: Default::default(),
            primary_metric: None,
            compared_metrics: crate::defaults::i64_0(),
            regressed_metrics: Default::default(),
            skipped_metrics: Default::default(),
            per_metric: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GenerateFromInteractionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub dataset_name: Option<String>,
    #[serde(default = "crate::defaults::i64_5")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub min_interactions: i64,
    #[serde(default = "crate::defaults::i64_30")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 365)))]
    pub lookback_days: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 22)))]
    pub positive_interaction_types: Option<Vec<String>>,
}

impl Default for GenerateFromInteractionsRequest {
    fn default() -> Self {
        Self {
            dataset_name: None,
            min_interactions: crate::defaults::i64_5(),
            lookback_days: crate::defaults::i64_30(),
            positive_interaction_types: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GroundTruthQuery {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 256)))]
    pub query_id: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub query_input: Object,
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    pub relevant_documents: Vec<String>,
    /// How relevant documents are; 1 where nothing is said, below 1 not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance_scores: Option<IndexMap<String, i64>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct QueryOutcome {
    pub query_id: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrieved_count: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ScoreItem {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 10000)))]
    pub predicted: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(length(max = 10000)))]
    pub ground_truth: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ScorePredictionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 10000)))]
    pub predicted: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 10000)))]
    pub ground_truth: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 1000), nested))]
    pub items: Option<Vec<ScoreItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 20)))]
    pub metrics: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub k: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ScorePredictionsResponse {
    pub metrics: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<i64>,
    pub count: i64,
    pub per_item: Vec<IndexMap<String, f64>>,
    pub aggregate: IndexMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StartEvaluationRequest {
    /// Name or id of the dataset.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 256)))]
    pub dataset_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub evaluation_config: Option<EvaluationConfig>,
    /// The evaluation, of this retriever or another one, that this one is held against; by default the last one of this
    /// retriever over the same dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 256)))]
    pub baseline_evaluation_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StartEvaluationResponse {
    pub task_id: String,
    pub evaluation_id: String,
    #[serde(default = "crate::defaults::text_retriever_evaluation")]
    pub task_type: String,
    #[serde(default = "crate::defaults::text_pending")]
    pub status: String,
    pub created_at: String,
}

impl Default for StartEvaluationResponse {
    fn default() -> Self {
        Self {
            task_id: Default::default(),
            evaluation_id: Default::default(),
            task_type: crate::defaults::text_retriever_evaluation(),
            status: crate::defaults::text_pending(),
            created_at: Default::default(),
        }
    }
}
