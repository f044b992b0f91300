//! Wire types of the interface: figures of what is used, and of taxonomies.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{AnalyticsTimeRange, Object};

/// What a bucket used, by time, and what that costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketUsageResponse {
    pub bucket_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<UsageMetric>,
    pub cost_breakdown: CostBreakdown,
    pub total_credits: i64,
    pub total_cost_usd: f64,
}

/// What a bucket used in one stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UsageMetric {
    pub time_bucket: DateTime<Utc>,
    pub storage_gb_hours: f64,
    pub upload_operations: i64,
    pub sync_operations: i64,
    pub total_credits: i64,
    pub estimated_cost_usd: f64,
}

/// Percent of a cost, by what it is for; nothing where nothing was spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CostBreakdown {
    pub storage_percent: f64,
    pub upload_percent: f64,
    pub sync_percent: f64,
    /// Processing of objects.
    pub other_percent: f64,
}

/// What a namespace used in a stretch of time, and what that costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UsageSummaryResponse {
    pub namespace_id: String,
    pub time_range: AnalyticsTimeRange,
    pub ingestion: IngestionUse,
    pub search: SearchUse,
    pub storage: StorageUse,
    pub total_credits: i64,
    pub total_cost_usd: f64,
}

/// What batches did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct IngestionUse {
    pub objects: i64,
    pub documents: i64,
    pub cost_usd: f64,
}

/// Searches that were answered, those from memory left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SearchUse {
    pub queries: i64,
    pub cost_usd: f64,
}

/// Objects that are kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageUse {
    pub objects: i64,
    pub bytes: i64,
    pub gb_hours: f64,
    pub cost_usd: f64,
}

/// How often documents were given nodes of a taxonomy, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AssignmentMetricsResponse {
    pub taxonomy_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<AssignmentMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// Nodes given in one stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AssignmentMetric {
    pub time_bucket: DateTime<Utc>,
    pub assignment_count: i64,
    pub avg_confidence: f64,
    pub unique_labels: i64,
}

/// How sure a taxonomy was of the nodes it gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ConfidenceResponse {
    pub taxonomy_id: String,
    pub distribution: Vec<ConfidenceDistribution>,
    pub avg_confidence: f64,
    pub low_confidence_count: i64,
}

/// Nodes given with a score of one fifth.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ConfidenceDistribution {
    pub confidence_range: String,
    pub count: i64,
    pub percentage: f64,
}

/// How a taxonomy was applied to documents, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentHistoryResponse {
    pub taxonomy_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<EnrichmentMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// Documents of one stretch of time that a taxonomy was applied to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EnrichmentMetric {
    pub time_bucket: DateTime<Utc>,
    pub enrichment_count: i64,
    pub success_count: i64,
    pub failure_count: i64,
    pub avg_latency_ms: f64,
    pub success_rate: f64,
}

/// The labels that a taxonomy gave, the most frequent first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LabelDistributionResponse {
    pub taxonomy_id: String,
    pub labels: Vec<LabelMetric>,
    pub total_labels: i64,
    #[serde(default)]
    pub labels_returned: i64,
    #[serde(default)]
    pub total_assignments: i64,
    #[serde(default)]
    pub truncated: bool,
}

/// How often a label was given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LabelMetric {
    pub label: String,
    pub count: i64,
    pub percentage: f64,
    pub avg_confidence: f64,
}
