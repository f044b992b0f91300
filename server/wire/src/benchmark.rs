//! Wire types of the interface: benchmark.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, Value};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AlignmentMetrics {
    pub ndcg_at_k: IndexMap<String, f64>,
    pub mean_rank_clicked: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_rank_purchased: Option<f64>,
    pub recall_at_k: IndexMap<String, f64>,
    pub avg_position_delta: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub items_promoted: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub items_demoted: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sessions_improved: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sessions_degraded: i64,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub sessions_neutral: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BenchmarkComparison {
    pub baseline_retriever_id: String,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub comparisons: Vec<PipelineComparison>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BenchmarkListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub benchmarks: Vec<BenchmarkResponse>,
    pub total: i64,
    #[serde(default = "crate::defaults::i64_1")]
    pub page: i64,
    #[serde(default = "crate::defaults::i64_20")]
    pub page_size: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

impl Default for BenchmarkListResponse {
    fn default() -> Self {
        Self {
            benchmarks: Default::default(),
            total: Default::default(),
            page: crate::defaults::i64_1(),
            page_size: crate::defaults::i64_20(),
            warnings: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BenchmarkResponse {
    pub benchmark_id: String,
    pub benchmark_name: String,
    pub baseline_retriever_id: String,
    pub candidate_retriever_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub session_filter: Option<SessionFilterOutput>,
    pub session_count: i64,
    pub status: BenchmarkStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Option<Vec<BenchmarkResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub comparison: Option<BenchmarkComparison>,
    pub created_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BenchmarkResult {
    pub retriever_id: String,
    pub retriever_name: String,
    pub pipeline_hash: String,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub metrics: AlignmentMetrics,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_deltas: Option<IndexMap<String, AlignmentMetrics>>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub latency: LatencyMetrics,
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub failed_sessions: i64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub error_summary: IndexMap<String, i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BenchmarkStatus {
    #[default]
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "building_sessions")]
    BuildingSessions,
    #[serde(rename = "replaying")]
    Replaying,
    #[serde(rename = "computing_metrics")]
    ComputingMetrics,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BenchmarkTimeRange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateBenchmarkRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 255)))]
    pub benchmark_name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 256)))]
    pub baseline_retriever_id: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 10)))]
    pub candidate_retriever_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub session_filter: Option<SessionFilterInput>,
    #[serde(default = "crate::defaults::i64_1000")]
    #[cfg_attr(feature = "schema", validate(range(min = 10, max = 10000)))]
    pub session_count: i64,
}

impl Default for CreateBenchmarkRequest {
    fn default() -> Self {
        Self {
            benchmark_name: Default::default(),
            baseline_retriever_id: Default::default(),
            candidate_retriever_ids: Default::default(),
            session_filter: None,
            session_count: crate::defaults::i64_1000(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InteractionWeights {
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub weights: IndexMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LatencyMetrics {
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub p50_ms: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub p90_ms: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub p99_ms: f64,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub mean_ms: f64,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub stage_latencies: IndexMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PipelineComparison {
    pub candidate_retriever_id: String,
    pub ndcg_delta: IndexMap<String, f64>,
    pub recall_delta: IndexMap<String, f64>,
    pub latency_delta_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 2, max = 2)))]
    pub confidence_interval: Option<Vec<Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taxonomy_wins: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taxonomy_losses: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SessionFilterInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub retriever_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_node_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<TimeRangeInput>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub min_interactions: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_types: Option<Vec<String>>,
    #[serde(default = "crate::defaults::text_random")]
    pub sample_strategy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_weights: Option<InteractionWeights>,
}

impl Default for SessionFilterInput {
    fn default() -> Self {
        Self {
            retriever_ids: None,
            taxonomy_node_ids: None,
            time_range: None,
            min_interactions: crate::defaults::i64_1(),
            interaction_types: None,
            sample_strategy: crate::defaults::text_random(),
            interaction_weights: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SessionFilterOutput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy_node_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<BenchmarkTimeRange>,
    #[serde(default = "crate::defaults::i64_1")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub min_interactions: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_types: Option<Vec<String>>,
    #[serde(default = "crate::defaults::text_random")]
    pub sample_strategy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_weights: Option<InteractionWeights>,
}

impl Default for SessionFilterOutput {
    fn default() -> Self {
        Self {
            retriever_ids: None,
            taxonomy_node_ids: None,
            time_range: None,
            min_interactions: crate::defaults::i64_1(),
            interaction_types: None,
            sample_strategy: crate::defaults::text_random(),
            interaction_weights: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TimeRangeInput {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<DateTime<Utc>>,
}
