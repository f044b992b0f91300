//! Wire types of the interface: billing, and the usage that is billed.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{CostsInfo, Object};

/// Dollars by what they were spent on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SpendByCategory {
    pub ingestion_usd: f64,
    pub search_usd: f64,
    pub storage_usd: f64,
    pub total_usd: f64,
}

/// The dollars that the tier includes each month.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UsagePool {
    pub total_usd: f64,
    pub used_usd: f64,
    pub remaining_usd: f64,
    pub reset_date: DateTime<Utc>,
}

/// What an organization spent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OrgUsageResponse {
    pub period_start: DateTime<Utc>,
    pub period_end: DateTime<Utc>,
    pub tier: String,
    pub currency: String,
    pub spend: SpendByCategory,
    pub pool: UsagePool,
}

/// Dollars of the vectors by what they are for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorUsageBreakdown {
    pub backend: String,
    pub vector_storage_usd: f64,
    pub data_storage_usd: f64,
    pub query_usd: f64,
    pub write_usd: f64,
    pub total_usd: f64,
    pub total_credits: i64,
}

/// What the vectors of an organization take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct VectorBackendUsageResponse {
    pub vector_backend: String,
    /// `YYYY-MM`.
    pub billing_month: String,
    pub namespace_count: i64,
    pub vectors_stored: i64,
    pub storage_bytes: i64,
    pub queries: i64,
    pub writes: i64,
    pub cost_breakdown: VectorUsageBreakdown,
    pub total_credits: i64,
    pub total_cost_usd: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExtractorPricing {
    pub feature_extractor_name: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<CostsInfo>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PlanDefinitionResponse {
    pub product: String,
    pub tier: String,
    pub name: String,
    pub monthly_price_cents: i64,
    pub self_serve: bool,
    #[serde(default)]
    pub features: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_pool_usd: Option<f64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub resource_limits: Object,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub rate_limits: Object,
}

/// The rate card.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PricingConfigResponse {
    pub credit_rate_usd: f64,
    pub managed_plans: Vec<PlanDefinitionResponse>,
    pub mvs_plans: Vec<PlanDefinitionResponse>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub mvs_usage_rates: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub enterprise_defaults: Object,
    pub extractors: Vec<ExtractorPricing>,
    pub pricing_model: String,
    pub currency: String,
    pub placeholder_rates: bool,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<serde_json::Value>))]
    pub modalities: Vec<Object>,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub usage_pools: Object,
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub reads: Object,
    pub full_res_multiplier: f64,
}

/// Files of one kind that a workload brings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EstimateItem {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 255)))]
    pub mime_type: String,
    /// Files; 1 when nothing else is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1e12)))]
    pub count: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1e12)))]
    pub minutes: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1e12)))]
    pub pages: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1e12)))]
    pub tokens: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0, max = 1e12)))]
    pub units: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EstimateRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 1000), nested))]
    pub items: Vec<EstimateItem>,
    /// Names of extractors; each of them works on every item. One when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub features: Option<Vec<String>>,
    #[serde(default)]
    pub full_res: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct EstimateResponse {
    pub pricing_model: String,
    pub placeholder_rates: bool,
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub line_items: Vec<Object>,
    pub total_usd: f64,
    pub batch_minimum_applied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowance_pool_usd: Option<f64>,
    pub allowance_covered_usd: f64,
    pub estimated_overage_usd: f64,
    pub overage_discount_pct: f64,
    pub overage_discount_usd: f64,
}

/// What a month's spend went to, in credits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UsageBreakdownResponse {
    pub billing_month: String,
    pub total_credits: i64,
    pub total_cost_usd: f64,
    pub by_operation: IndexMap<String, i64>,
    pub by_extractor: IndexMap<String, i64>,
    pub by_namespace: IndexMap<String, i64>,
    pub by_retriever: IndexMap<String, i64>,
    pub period_start: DateTime<Utc>,
    pub period_end: DateTime<Utc>,
}
