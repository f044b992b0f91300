//! Wire types of the interface: usage.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// What a key did with one operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiKeyEndpointUsage {
    pub method: String,
    pub path: String,
    pub requests: i64,
    pub errors: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiKeyUsageResponse {
    pub key_id: String,
    pub key_name: String,
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
    pub requests: i64,
    pub errors: i64,
    pub spend_usd: f64,
    /// Requests: `search`, `ingestion`, `other`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub by_category: IndexMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
}
