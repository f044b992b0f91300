//! Wire types of the interface: the catalogue of published retrievers.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::{DisplayConfig, Object, RetrieverInputSchemaField};

/// A published retriever as the catalogue tells it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MarketplaceListing {
    pub listing_id: String,
    /// The organization whose page it is.
    pub internal_id: String,
    pub namespace_id: String,
    pub retriever_id: String,
    pub title: String,
    pub description: String,
    pub public_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    /// The page itself.
    pub app_url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_base64: Option<String>,
    pub available_tiers: Vec<SubscriptionTierConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_config: Option<DisplayConfig>,
    pub status: ListingStatus,
    pub visibility: ListingVisibility,
    pub is_active: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<DateTime<Utc>>,
    /// Of one listing only: what its searches take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<IndexMap<String, RetrieverInputSchemaField>>,
    /// Of one listing only: the body of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub example_request: Option<Object>,
    /// Of one listing only: searches that all visitors together have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous_rate_limit: Option<TierLimits>,
}

/// Where a listing is in its life. The catalogue has published ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ListingStatus {
    #[default]
    #[serde(rename = "draft")]
    Draft,
    #[serde(rename = "published")]
    Published,
    #[serde(rename = "archived")]
    Archived,
    #[serde(rename = "suspended")]
    Suspended,
}

/// Whether lists show it. What has a password is found by its name only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ListingVisibility {
    #[default]
    #[serde(rename = "listed")]
    Listed,
    #[serde(rename = "unlisted")]
    Unlisted,
}

/// What may be had of a listing for what. This server sells nothing: each has one, that is free.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SubscriptionTierConfig {
    pub tier: SubscriptionTier,
    #[serde(default)]
    pub price_per_month: f64,
    #[serde(default)]
    pub limits: TierLimits,
    #[serde(default)]
    pub features: Vec<String>,
}

/// The name of a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SubscriptionTier {
    #[default]
    #[serde(rename = "free")]
    Free,
    #[serde(rename = "basic")]
    Basic,
    #[serde(rename = "pro")]
    Pro,
    #[serde(rename = "enterprise")]
    Enterprise,
}

/// Searches in a stretch of time; none where there is no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TierLimits {
    #[serde(default)]
    pub requests_per_minute: Option<i64>,
    #[serde(default)]
    pub requests_per_hour: Option<i64>,
    #[serde(default)]
    pub requests_per_day: Option<i64>,
}
