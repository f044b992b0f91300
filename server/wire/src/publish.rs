//! Wire types of the interface: publish.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DegradedEntry, DisplayConfig, RateLimitConfig, RetrieverMetadata};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct OrganizationPublishStatsResponse {
    pub current_count: i64,
    pub max_allowed: i64,
    pub remaining: i64,
    pub at_limit: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicNameAvailabilityResponse {
    pub name: String,
    pub available: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublishRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 50), regex(path = *crate::patterns::P4)))]
    pub public_name: Option<String>,
    /// `null` takes away what the page had of its own.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(length(max = 500)), schema(value_type = Option<String>))]
    pub description: Option<Option<String>>,
    /// `null` takes it away, as an empty one does.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(length(max = 300000)), schema(value_type = Option<String>))]
    pub icon_base64: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub rate_limit_config: Option<RateLimitConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 200)))]
    pub password_secret_name: Option<String>,
    /// Whether the page tells what is behind it; it does without a word of its owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_metadata: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// `null` takes it away, as an empty one does.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(length(max = 50)), schema(value_type = Option<String>))]
    pub category: Option<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublishRetrieverResponse {
    pub public_id: String,
    pub retriever_id: String,
    pub public_url: String,
    pub short_url: String,
    #[serde(default)]
    pub public_api_key: Option<String>,
    /// What of the display configuration says nothing here and is passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublishedRetrieverListResponse {
    #[cfg_attr(feature = "schema", validate(nested))]
    pub results: Vec<PublishedRetrieverResponse>,
    pub total: i64,
    pub limit: i64,
    pub offset: i64,
    #[serde(default)]
    pub warnings: Vec<DegradedEntry>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublishedRetrieverResponse {
    pub retriever_id: String,
    pub public_id: String,
    pub public_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_base64: Option<String>,
    #[serde(default)]
    pub public_api_key: Option<String>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: DisplayConfig,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub rate_limit_config: RateLimitConfig,
    pub password_protected: bool,
    pub is_active: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_metadata: Option<RetrieverMetadata>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// What a change's display configuration says and the page passes over. Told once, with the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdatePublishedRetrieverRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: Option<DisplayConfig>,
    /// With `null` the page has the limits of one that was given none.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(nested), schema(value_type = Option<RateLimitConfig>))]
    pub rate_limit_config: Option<Option<RateLimitConfig>>,
    /// An empty name takes the password away; without one, or with `null`, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 200)))]
    pub password_secret_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// `null` takes all away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Vec<String>>))]
    pub tags: Option<Option<Vec<String>>>,
    /// `null` takes it away, as an empty one does.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub category: Option<Option<String>>,
    /// `null` takes it away, as an empty one does. That of `display_config` comes before it.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>), validate(length(max = 300000)))]
    pub icon_base64: Option<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MovePublishedRetrieverRequest {
    /// The retriever that the page searches with from now on.
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub retriever_id: String,
}
