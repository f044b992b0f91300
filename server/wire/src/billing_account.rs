//! Wire types of the interface: what an organization has left, where it stops spending, its plan and its transactions.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

/// What is left of the month's pool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreditBalanceResponse {
    pub organization_id: String,
    pub credit_balance: i64,
    pub account_tier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_tier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits_until_next_tier: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_days_remaining: Option<i64>,
    #[serde(default)]
    pub daily_burn_rate: f64,
}

/// Where an organization wants to be told of its spending, and where it stops. Amounts are cents, of a calendar month.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SpendingCapsResponse {
    pub monthly_spending_budget: Option<i64>,
    pub monthly_spending_budget_usd: Option<f64>,
    /// Percent of the budget.
    #[serde(default)]
    pub spending_alert_thresholds: Vec<i64>,
    #[serde(default = "crate::defaults::yes")]
    pub spending_alerts_enabled: bool,
    /// Those that were told of this month.
    #[serde(default)]
    pub spending_alerts_sent: Vec<i64>,
    pub hard_spending_cap: Option<i64>,
    pub hard_spending_cap_usd: Option<f64>,
    #[serde(default)]
    pub hard_cap_enabled: bool,
    pub current_spending_cents: i64,
    pub current_spending_usd: f64,
    pub budget_percentage_used: Option<f64>,
}

/// A member that is not sent stays as it is; `null` takes an amount away, and gives thresholds and alerts what they were at
/// first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateSpendingCapsRequest {
    /// Cents a month.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>, minimum = 0))]
    pub monthly_spending_budget: Option<Option<i64>>,
    /// Percent of the budget, each told once a month.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<i64>>))]
    pub spending_alert_thresholds: Option<Option<Vec<i64>>>,
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<bool>))]
    pub spending_alerts_enabled: Option<Option<bool>>,
    /// Cents a month at which work that is paid for is refused.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<i64>, minimum = 0))]
    pub hard_spending_cap: Option<Option<i64>>,
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<bool>))]
    pub hard_cap_enabled: Option<Option<bool>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubscriptionStatusResponse {
    #[serde(default)]
    pub has_subscription: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Unix time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_period_end: Option<i64>,
    #[serde(default)]
    pub cancel_at_period_end: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubscribeRequest {
    /// The tier of a plan on the rate card.
    pub plan: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 2000)))]
    pub success_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 2000)))]
    pub cancel_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubscribeResponse {
    /// Where to go on. Nothing is to be paid here: it is `success_url`, or the console.
    pub checkout_url: String,
    pub session_id: String,
}

/// Work that was paid for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TransactionInfo {
    pub record_id: String,
    pub occurred_at: DateTime<Utc>,
    pub billing_month: String,
    /// Begun ones are whole.
    pub credits_consumed: i64,
    pub cost_usd: f64,
    pub operation_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extractor_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<String>,
    #[serde(default, skip_serializing_if = "crate::Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub metadata: crate::Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TransactionsListResponse {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub transactions: Vec<TransactionInfo>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
    pub has_more: bool,
}

/// A page of invoices, the newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InvoiceListResponse {
    #[serde(default)]
    pub invoices: Vec<InvoiceInfo>,
    pub total: i64,
    pub has_more: bool,
}

/// What a month was billed with. Amounts are cents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InvoiceInfo {
    pub invoice_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoice_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invoice_pdf: Option<String>,
    pub amount_due: i64,
    pub amount_paid: i64,
    pub status: String,
    pub billing_month: String,
    pub total_credits: i64,
    pub created: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_at: Option<DateTime<Utc>>,
}
