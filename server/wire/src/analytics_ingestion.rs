//! Wire types of the interface: figures of ingestion and of clusters.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{AnalyticsTimeRange, Object};

/// What failed in a bucket: its objects and its syncs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketHealthResponse {
    pub bucket_id: String,
    pub time_range: AnalyticsTimeRange,
    pub overall_health: String,
    pub total_errors: i64,
    pub error_breakdown: Vec<ErrorBreakdown>,
    pub sync_health: Vec<SyncHealthMetric>,
    pub stuck_syncs: Vec<String>,
}

/// What a bucket holds, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BucketStorageResponse {
    pub bucket_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<StorageMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// What failed on the way into a collection, by its kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionFailureAnalysisResponse {
    pub collection_id: String,
    pub time_range: AnalyticsTimeRange,
    pub error_distribution: Vec<ErrorMetrics>,
    pub total_errors: i64,
}

/// A collection at a glance.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CollectionOverviewResponse {
    pub collection_id: String,
    pub collection_name: String,
    pub total_documents: i64,
    #[serde(default)]
    pub documents_last_24h: i64,
    #[serde(default)]
    pub documents_last_7d: i64,
    #[serde(default)]
    pub avg_processing_time_ms: f64,
    #[serde(default)]
    pub success_rate: f64,
    pub active_taxonomies: i64,
    pub active_clusters: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_indexed: Option<DateTime<Utc>>,
}

/// One kind of fault in a bucket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ErrorBreakdown {
    pub error_type: String,
    pub count: i64,
    pub percentage: f64,
    pub first_seen: DateTime<Utc>,
    pub last_seen: DateTime<Utc>,
}

/// One kind of fault on the way into a collection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ErrorMetrics {
    pub error_type: String,
    pub count: i64,
    pub percentage: f64,
    pub recent_message: String,
}

/// How an extractor does. Times in milliseconds, from the submission to the searchable document.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExtractorMetrics {
    pub extractor_name: String,
    pub version: String,
    pub execution_count: i64,
    pub success_count: i64,
    pub failure_count: i64,
    pub success_rate: f64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub p99_latency_ms: f64,
}

/// How the extractors of a collection do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExtractorPerformanceResponse {
    pub collection_id: String,
    pub time_range: AnalyticsTimeRange,
    pub extractors: Vec<ExtractorMetrics>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// What a collection gained in one stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GrowthMetric {
    pub time_bucket: DateTime<Utc>,
    pub documents_added: i64,
    pub success_rate: f64,
    pub avg_latency_ms: f64,
}

/// What a collection gained, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct GrowthMetricsResponse {
    pub collection_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<GrowthMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// How long objects took in one stretch of time, from the submission to the searchable document. In milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LatencyMetric {
    pub time_bucket: DateTime<Utc>,
    pub document_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub p99_latency_ms: f64,
}

/// How long objects take on the way into a collection, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LatencyResponse {
    pub collection_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<LatencyMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub slowest_documents: Vec<Object>,
}

/// What failed in each bucket of a namespace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct NamespaceBucketsHealthResponse {
    pub time_range: AnalyticsTimeRange,
    pub buckets: Vec<BucketHealthResponse>,
}

/// What a bucket holds at the end of one stretch of time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StorageMetric {
    pub time_bucket: DateTime<Utc>,
    pub total_size_bytes: i64,
    pub object_count: i64,
    pub avg_size_bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth_rate_percent: Option<f64>,
}

/// The syncs of a bucket beside each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncComparisonResponse {
    pub bucket_id: String,
    pub time_range: AnalyticsTimeRange,
    pub configs: Vec<SyncConfigMetric>,
}

/// How one sync does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncConfigMetric {
    pub sync_config_id: String,
    pub provider_type: String,
    pub avg_duration_seconds: f64,
    pub avg_throughput_mbps: f64,
    pub success_rate: f64,
    pub total_files_synced: i64,
    pub total_bytes_synced: i64,
}

/// Whether a sync works.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncHealthMetric {
    pub sync_config_id: String,
    pub consecutive_failures: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<DateTime<Utc>>,
    pub failure_rate: f64,
}

/// The looks of the syncs of a bucket, the newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncPerformanceResponse {
    pub bucket_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_config_id: Option<String>,
    pub time_range: AnalyticsTimeRange,
    pub runs: Vec<SyncRunMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// One look of a sync.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SyncRunMetric {
    pub sync_run_id: String,
    pub started_at: DateTime<Utc>,
    pub duration_seconds: f64,
    pub files_discovered: i64,
    pub files_synced: i64,
    pub files_failed: i64,
    pub bytes_synced: i64,
    pub throughput_mbps: f64,
    pub status: String,
    pub provider_type: String,
}

/// Uploads of one stretch of time, from the address to the confirmed object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadPerformanceMetric {
    pub time_bucket: DateTime<Utc>,
    pub upload_count: i64,
    pub avg_latency_ms: f64,
    pub p95_latency_ms: f64,
    pub p99_latency_ms: f64,
    pub avg_throughput_mbps: f64,
    pub error_rate: f64,
}

/// How uploads into a bucket do, by time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UploadPerformanceResponse {
    pub bucket_id: String,
    pub time_range: AnalyticsTimeRange,
    pub metrics: Vec<UploadPerformanceMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// One execution of a cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterExecutionMetric {
    pub execution_id: String,
    pub started_at: DateTime<Utc>,
    pub duration_seconds: f64,
    pub num_documents: i64,
    pub num_clusters: i64,
    pub status: String,
    pub algorithm: String,
}

/// Executions of a cluster that failed, and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ClusterFailureAnalysisResponse {
    pub cluster_id: String,
    pub time_range: AnalyticsTimeRange,
    pub failures: Vec<FailureMetric>,
    pub total_failures: i64,
}

/// The executions of a cluster, the newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExecutionHistoryResponse {
    pub cluster_id: String,
    pub time_range: AnalyticsTimeRange,
    pub results: Vec<ClusterExecutionMetric>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub summary: Object,
}

/// One failed execution of a cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FailureMetric {
    pub timestamp: DateTime<Utc>,
    pub execution_id: String,
    pub error_message: String,
    pub error_type: String,
}
