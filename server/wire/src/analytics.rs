//! Wire types of the interface: figures of searches.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{Object, Value};

/// The time that figures are of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AnalyticsTimeRange {
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

/// How often a retriever answers from memory, and what that saves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CachePerformanceResponse {
    pub retriever_id: String,
    pub time_range: AnalyticsTimeRange,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub cache_hit_rate: f64,
    pub total_cache_hits: i64,
    pub total_cache_misses: i64,
    pub avg_cache_hit_latency_ms: f64,
    pub avg_cache_miss_latency_ms: f64,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub hourly_breakdown: Vec<Object>,
}

/// Fields that searches filter on together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CompoundIndexPattern {
    pub field_combination: Vec<String>,
    pub combination_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
}

/// Fields that searches of a namespace filter on together, the most frequent first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CompoundIndexResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    pub patterns: Vec<CompoundIndexPattern>,
    pub total_patterns: i64,
}

/// How long searches take that filter on a field. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldPerformanceMetrics {
    pub field_name: String,
    pub usage_count: i64,
    pub avg_latency_ms: f64,
    pub p50_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub p99_latency_ms: f64,
    pub max_latency_ms: f64,
    pub index_priority_score: f64,
}

/// How long searches take by the field that they filter on, those that took most time first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldPerformanceResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    pub fields: Vec<FieldPerformanceMetrics>,
    pub total_fields: i64,
    #[serde(default)]
    pub coverage: RecommendationCoverage,
}

/// How often searches filter on a field, and how long they take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldQueryMetrics {
    pub field_name: String,
    pub query_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
}

/// A field worth an index, and how to make it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct IndexRecommendation {
    pub field_name: String,
    pub query_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub slow_query_count: i64,
    pub very_slow_query_count: i64,
    pub priority_score: f64,
    pub recommendation: String,
    pub mongodb_index_command: String,
    #[serde(default)]
    pub index_kind: String,
}

/// Fields worth an index: none, as every field is indexed as it is written; told with the searches that were looked at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct IndexRecommendationsResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    pub recommendations: Vec<IndexRecommendation>,
    pub summary: IndexMap<String, i64>,
    #[serde(default)]
    pub coverage: RecommendationCoverage,
}

/// What to change in a retriever, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InteractionTuningRecommendation {
    pub recommendation_type: String,
    #[serde(default)]
    pub current_value: Value,
    pub recommended_value: Value,
    pub expected_impact: String,
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1.0)))]
    pub confidence: f64,
    pub reasoning: String,
}

/// What to change in a retriever by what came of its answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InteractionTuningResponse {
    pub retriever_id: String,
    pub analysis_period: AnalyticsTimeRange,
    pub recommendations: Vec<InteractionTuningRecommendation>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub current_performance: Object,
}

/// The fields that searches of a namespace filter on most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MostQueriedFieldsResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    pub fields: Vec<FieldQueryMetrics>,
    pub total_fields: i64,
}

/// What failed in a namespace, by resource.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceErrorsResponse {
    pub namespace_id: String,
    pub hours: i64,
    #[serde(default)]
    pub collections: Vec<ResourceErrorCount>,
    #[serde(default)]
    pub clusters: Vec<ResourceErrorCount>,
    pub total_errors: i64,
}

/// Searches of a namespace at a glance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceSummaryResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
    pub recommendations: Vec<IndexRecommendation>,
    pub most_queried_fields: Vec<FieldQueryMetrics>,
    pub slowest_fields: Vec<FieldPerformanceMetrics>,
    pub compound_indexes: Vec<CompoundIndexPattern>,
}

/// The searches that figures of fields are made of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RecommendationCoverage {
    pub total_queries: i64,
    pub filtered_queries: i64,
    pub slow_queries: i64,
    pub slow_filtered_queries: i64,
    #[serde(default)]
    pub threshold_ms: f64,
}

/// What failed in one resource.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResourceErrorCount {
    pub resource_id: String,
    pub error_count: i64,
}

/// How often a retriever is asked and how long it takes, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverPerformanceResponse {
    pub retriever_id: String,
    pub time_range: AnalyticsTimeRange,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub metrics: Vec<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub summary: Option<Object>,
}

/// Something that came of one answer: what somebody did with it, or what was wrong with it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverSignal {
    pub timestamp: DateTime<Utc>,
    pub execution_id: String,
    pub signal_type: String,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub signal_data: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
}

/// The slowest searches of a namespace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SlowQueriesResponse {
    pub namespace_id: String,
    pub time_range_days: i64,
    pub latency_threshold_ms: f64,
    pub slow_queries: Vec<SlowQueryDetails>,
    pub total_slow_queries: i64,
    pub returned_count: i64,
    pub total_is_exact: bool,
}

/// A slow search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SlowQueryDetails {
    pub retriever_id: String,
    pub query: String,
    pub latency_ms: f64,
    pub results_count: i64,
    pub queried_fields: Vec<String>,
}

/// Where the time of a retriever goes. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StageBreakdownResponse {
    pub retriever_id: String,
    pub stages: Vec<StagePerformanceMetrics>,
    pub total_latency_ms: f64,
}

/// One stage of a retriever.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StagePerformanceMetrics {
    pub stage_name: String,
    pub stage_type: String,
    pub execution_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub avg_documents_in: f64,
    pub avg_documents_out: f64,
}
