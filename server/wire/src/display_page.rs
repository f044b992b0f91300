//! Wire types of the interface: how a published page looks, and what it says of itself.

use serde::{Deserialize, Serialize};

use crate::Object;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CustomCTA {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 50)))]
    pub label: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 50000)))]
    pub markdown_content: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ExternalLink {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 100)))]
    pub name: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 2048)))]
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct LayoutConfig {
    /// Without it the template's own, else `grid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Without it the template's own, else 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 6)))]
    pub columns: Option<i64>,
    #[serde(default = "crate::defaults::text_16px")]
    pub gap: String,
    #[serde(default)]
    pub full_width: bool,
}

impl Default for LayoutConfig {
    fn default() -> Self {
        Self {
            mode: None,
            columns: None,
            gap: crate::defaults::text_16px(),
            full_width: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MarkdownContent {
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 200)))]
    pub title: String,
    #[cfg_attr(feature = "schema", validate(length(min = 1, max = 50000)))]
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SEOConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 60)))]
    pub meta_title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 160)))]
    pub meta_description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub og_image_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 200)))]
    pub og_image_alt: Option<String>,
    #[serde(default = "crate::defaults::text_website")]
    pub og_type: String,
    #[serde(default = "crate::defaults::text_summary_large_image")]
    pub twitter_card: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twitter_site: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twitter_creator: Option<String>,
    #[serde(default = "crate::defaults::text_index_follow")]
    pub robots: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical_url: Option<String>,
    #[serde(default = "crate::defaults::text_site_name")]
    pub site_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default = "crate::defaults::text_en_us")]
    pub locale: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub favicon_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_data: Option<StructuredDataConfig>,
}

impl Default for SEOConfig {
    fn default() -> Self {
        Self {
            meta_title: None,
            meta_description: None,
            keywords: Default::default(),
            og_image_url: None,
            og_image_alt: None,
            og_type: crate::defaults::text_website(),
            twitter_card: crate::defaults::text_summary_large_image(),
            twitter_site: None,
            twitter_creator: None,
            robots: crate::defaults::text_index_follow(),
            canonical_url: None,
            site_name: crate::defaults::text_site_name(),
            author: None,
            locale: crate::defaults::text_en_us(),
            logo_url: None,
            favicon_url: None,
            structured_data: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StructuredDataConfig {
    #[serde(default = "crate::defaults::text_webapplication")]
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub additional_properties: Object,
}

impl Default for StructuredDataConfig {
    fn default() -> Self {
        Self {
            r#type: crate::defaults::text_webapplication(),
            additional_properties: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ThemeConfig {
    #[serde(default = "crate::defaults::text_007aff")]
    pub primary_color: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secondary_color: Option<String>,
    #[serde(default = "crate::defaults::text_system_ui_apple_system_sans_serif")]
    pub font_family: String,
    #[serde(default = "crate::defaults::text_ffffff")]
    pub background_color: String,
    #[serde(default = "crate::defaults::text_374151")]
    pub text_color: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading_font_family: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface_color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted_color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border_color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border_radius: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_style: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_hover_effect: Option<String>,
}

impl Default for ThemeConfig {
    fn default() -> Self {
        Self {
            primary_color: crate::defaults::text_007aff(),
            secondary_color: None,
            font_family: crate::defaults::text_system_ui_apple_system_sans_serif(),
            background_color: crate::defaults::text_ffffff(),
            text_color: crate::defaults::text_374151(),
            heading_font_family: None,
            surface_color: None,
            muted_color: None,
            border_color: None,
            border_radius: None,
            card_style: None,
            card_hover_effect: None,
        }
    }
}
