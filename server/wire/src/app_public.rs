//! What strangers may ask of a hosted app.

use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    FeaturedGalleryConfig, HeroConfig, Object, PageMeta, PageTab, SEOConfig, SectionConfig,
    StatItem, ThemeConfig, Value,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InteractionRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 60)))]
    pub event_type: String,
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    #[cfg_attr(feature = "schema", validate(length(max = 1000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dwell_ms: Option<i64>,
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub metadata: Option<Object>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicAppConfigResponse {
    pub slug: String,
    pub template: String,
    #[serde(default)]
    pub sections: Vec<SectionConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_html: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle_url: Option<String>,
    pub meta: PageMeta,
    #[serde(default)]
    pub hero: Option<HeroConfig>,
    pub theme: ThemeConfig,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub seo: Option<SEOConfig>,
    pub stats: Vec<StatItem>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub featured_gallery: Option<FeaturedGalleryConfig>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tabs: Vec<PageTab>,
    pub is_active: bool,
    pub password_protected: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublicAppSearchRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub tab_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub inputs: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub settings: Option<Object>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

/// A taxonomy as an app shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct TaxonomyTreeResponse {
    pub taxonomy_id: String,
    /// The uppermost nodes, each with its `children`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<serde_json::Value>))]
    pub nodes: Vec<Value>,
}
