//! Wire types of the interface: usage.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::Object;

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

/// What a key did on one day of UTC.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiKeyDayUsage {
    /// `YYYY-MM-DD`.
    pub day: String,
    pub requests: i64,
    pub errors: i64,
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
    /// The days on which there were requests, the first one first.
    #[serde(default)]
    pub days: Vec<ApiKeyDayUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
}

/// What each key did that was used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiKeyUsageListResponse {
    /// The busiest first.
    pub results: Vec<ApiKeyUsageResponse>,
    pub total: i64,
}

/// What this month has cost so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CurrentUsageResponse {
    /// Credits.
    pub current_month_usage: i64,
    /// `YYYY-MM`.
    pub billing_month: String,
    pub billing_period_start: DateTime<Utc>,
    pub billing_period_end: DateTime<Utc>,
    pub estimated_cost_usd: f64,
    /// Dollars of a credit.
    pub credit_rate: f64,
    pub auto_billing_enabled: bool,
    pub next_invoice_date: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_usage: Option<PlanUsage>,
    /// The same in dollars: `ingestion_usd`, `search_usd`, `storage_usd`, `total_usd`.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub usage_v2: Object,
}

/// How much of what the plan includes is used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PlanUsage {
    pub product: String,
    pub tier: String,
    pub plan_name: String,
    pub monthly_minimum_cents: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_start: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_end: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_processed: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_cap: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vectors_stored: Option<i64>,
    /// Whether every vector was counted.
    pub vectors_stored_complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_cap: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_pct: Option<f64>,
    /// `ok`, `near` from four fifths of a cap on, `reached`.
    pub cap_state: String,
}
