//! Wire types of the interface: organization.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::Object;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AccountTier {
    #[default]
    #[serde(rename = "build")]
    Build,
    #[serde(rename = "scale")]
    Scale,
    #[serde(rename = "enterprise")]
    Enterprise,
    #[serde(rename = "free")]
    Free,
    #[serde(rename = "pro")]
    Pro,
    #[serde(rename = "team")]
    Team,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BaseRateLimits {
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub metadata: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub data: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub search: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub upload: i64,
    #[serde(default = "crate::defaults::i64_10")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub compute: i64,
}

impl Default for BaseRateLimits {
    fn default() -> Self {
        Self {
            metadata: crate::defaults::i64_10(),
            data: crate::defaults::i64_10(),
            search: crate::defaults::i64_10(),
            upload: crate::defaults::i64_10(),
            compute: crate::defaults::i64_10(),
        }
    }
}

/// Requests a second that each key may make of a kind; a kind that is left out keeps its figure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RateLimitOverrides {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub metadata: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub data: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub search: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub upload: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub compute: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OrganizationModelResponse {
    pub organization_id: String,
    pub organization_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    pub account_type: AccountTier,
    pub credit_count: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_monthly_credit_cap: Option<i64>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications_email: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub notifications_email_delivery_status: Object,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub rate_limits: BaseRateLimits,
    #[serde(default)]
    pub auto_billing_enabled: bool,
    #[serde(default = "crate::defaults::i64_1")]
    pub billing_cycle_start: i64,
    #[serde(default = "crate::defaults::i64_0")]
    pub current_month_usage: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub users: Option<Vec<Object>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_provider_org_id: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub default_llm_credentials: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub spend_limits: Object,
    #[serde(default)]
    pub requires_plan: bool,
    #[serde(default)]
    pub is_internal: bool,
}

impl Default for OrganizationModelResponse {
    fn default() -> Self {
        Self {
            organization_id: Default::default(),
            organization_name: Default::default(),
            logo_url: None,
            account_type: Default::default(),
            credit_count: Default::default(),
            effective_monthly_credit_cap: None,
            metadata: Default::default(),
            billing_email: None,
            notifications_email: None,
            notifications_email_delivery_status: Default::default(),
            rate_limits: Default::default(),
            auto_billing_enabled: false,
            billing_cycle_start: crate::defaults::i64_1(),
            current_month_usage: crate::defaults::i64_0(),
            created_at: Default::default(),
            updated_at: Default::default(),
            users: None,
            auth_provider_org_id: None,
            default_llm_credentials: Default::default(),
            api_url: None,
            spend_limits: Default::default(),
            requires_plan: false,
            is_internal: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OrganizationUpdateRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications_email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub rate_limit_overrides: Option<RateLimitOverrides>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_llm_credentials: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub spend_limits: Option<SpendLimitsUpdate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nsfw_check_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nsfw_fail_closed: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SpendLimitsUpdate {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub daily_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub monthly_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub namespace_default_daily_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0.0)))]
    pub namespace_default_monthly_usd: Option<f64>,
}

/// One quota of an organization.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct QuotaUse {
    /// As `details.resource` of a `QuotaExceededError`: `namespaces`, `collections`, `buckets`, `documents`, `retrievers`,
    /// `taxonomies`, `clusters`, `api_keys`, `batch_objects`.
    pub resource: String,
    /// What there is of it; absent for objects of a batch, which are counted for each batch alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<i64>,
    /// Absent where the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// What an organization may hold, and what it holds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OrganizationQuotasResponse {
    pub tier: AccountTier,
    pub quotas: Vec<QuotaUse>,
}
