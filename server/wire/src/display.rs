//! Wire types of the interface: display.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    CustomCTA, ExternalLink, LayoutConfig, MarkdownContent, Object, RetrieverInputSchemaField,
    SEOConfig, ThemeConfig,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ComponentsConfig {
    #[serde(default = "crate::defaults::yes")]
    pub show_hero: bool,
    #[serde(default = "crate::defaults::yes")]
    pub show_search: bool,
    #[serde(default)]
    pub show_filters: bool,
    #[serde(default = "crate::defaults::yes")]
    pub show_results_header: bool,
    /// Without it that of `layout`, else the template's own; `grid` where there is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_layout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub result_card: Option<ResultCardProperties>,
}

impl Default for ComponentsConfig {
    fn default() -> Self {
        Self {
            show_hero: crate::defaults::yes(),
            show_search: crate::defaults::yes(),
            show_filters: false,
            show_results_header: crate::defaults::yes(),
            result_layout: None,
            result_card: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct DisplayConfig {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(max = 300000)))]
    pub icon_base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub seo: Option<SEOConfig>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub markdowns: Vec<MarkdownContent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeConfig>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub inputs: Vec<InputRenderingConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub layout: Option<LayoutConfig>,
    #[cfg_attr(feature = "schema", validate(length(min = 1)))]
    pub exposed_fields: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub components: Option<ComponentsConfig>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub field_config: IndexMap<String, FieldConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub custom_cta: Option<CustomCTA>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub external_links: Vec<ExternalLink>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_mappings: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub extensions: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<std::collections::HashMap<String, serde_json::Value>>))]
    pub retriever_config: Option<Object>,
    /// Undeclared members, stored as sent.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub extra: Object,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldConfig {
    pub format: FieldFormatType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub format_options: Option<FieldFormatOptions>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FieldFormatOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub show_empty: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub truncate_chars: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub width: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub height: Option<i64>,
    #[serde(default = "crate::defaults::yes")]
    pub lazy_load: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect_ratio: Option<String>,
    #[serde(default = "crate::defaults::text_cover")]
    pub object_fit: String,
    #[serde(default = "crate::defaults::text_relative")]
    pub date_format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub decimals: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub open_in_new_tab: bool,
    #[serde(default)]
    pub show_domain: bool,
    #[serde(default = "crate::defaults::text_yes")]
    pub true_label: String,
    #[serde(default = "crate::defaults::text_no")]
    pub false_label: String,
    #[serde(default = "crate::defaults::text_")]
    pub separator: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_items: Option<i64>,
}

impl Default for FieldFormatOptions {
    fn default() -> Self {
        Self {
            label: None,
            show_empty: crate::defaults::yes(),
            truncate_chars: None,
            width: None,
            height: None,
            lazy_load: crate::defaults::yes(),
            aspect_ratio: None,
            object_fit: crate::defaults::text_cover(),
            date_format: crate::defaults::text_relative(),
            decimals: None,
            prefix: None,
            suffix: None,
            open_in_new_tab: crate::defaults::yes(),
            show_domain: false,
            true_label: crate::defaults::text_yes(),
            false_label: crate::defaults::text_no(),
            separator: crate::defaults::text_(),
            max_items: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FieldFormatType {
    #[default]
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "date")]
    Date,
    #[serde(rename = "number")]
    Number,
    #[serde(rename = "url")]
    Url,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "array")]
    Array,
    #[serde(rename = "object")]
    Object,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct InputRenderingConfig {
    pub field_name: String,
    pub field_schema: RetrieverInputSchemaField,
    #[serde(default = "crate::defaults::text_text")]
    pub input_type: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper_text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
    #[serde(default = "crate::defaults::yes")]
    pub required: bool,
    #[serde(default = "crate::defaults::i64_0")]
    #[cfg_attr(feature = "schema", validate(range(min = 0)))]
    pub order: i64,
}

impl Default for InputRenderingConfig {
    fn default() -> Self {
        Self {
            field_name: Default::default(),
            field_schema: Default::default(),
            input_type: crate::defaults::text_text(),
            label: Default::default(),
            placeholder: None,
            helper_text: None,
            suggestions: None,
            required: crate::defaults::yes(),
            order: crate::defaults::i64_0(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RateLimitConfig {
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default = "crate::defaults::rate_limit_tier_standard")]
    pub tier: RateLimitTier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub requests_per_minute: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub requests_per_hour: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub requests_per_day: Option<i64>,
    #[serde(default = "crate::defaults::i64_100")]
    #[cfg_attr(feature = "schema", validate(range(min = 1, max = 1000)))]
    pub max_results_per_query: i64,
    #[serde(default)]
    pub enable_ip_limits: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub max_requests_per_ip_hour: Option<i64>,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            enabled: crate::defaults::yes(),
            tier: crate::defaults::rate_limit_tier_standard(),
            requests_per_minute: None,
            requests_per_hour: None,
            requests_per_day: None,
            max_results_per_query: crate::defaults::i64_100(),
            enable_ip_limits: false,
            max_requests_per_ip_hour: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RateLimitTier {
    #[default]
    #[serde(rename = "standard")]
    Standard,
    #[serde(rename = "elevated")]
    Elevated,
    #[serde(rename = "enterprise")]
    Enterprise,
    #[serde(rename = "unlimited")]
    Unlimited,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ResultCardProperties {
    /// Without it the template's own, else `vertical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub show_thumbnail: bool,
    /// Without it the template's own, else `16/9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnail_aspect_ratio: Option<String>,
    #[serde(default = "crate::defaults::text_cover")]
    pub thumbnail_fit: String,
    #[serde(default)]
    pub show_score: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub truncate_title: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(range(min = 1)))]
    pub truncate_description: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub field_order: Vec<String>,
    #[serde(default)]
    pub show_find_similar: bool,
    #[serde(default = "crate::defaults::text_viewdetails")]
    pub card_click_action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thumbnail_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title_field: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_fields: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modal_fields: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_style: Option<String>,
}

impl Default for ResultCardProperties {
    fn default() -> Self {
        Self {
            layout: None,
            show_thumbnail: crate::defaults::yes(),
            thumbnail_aspect_ratio: None,
            thumbnail_fit: crate::defaults::text_cover(),
            show_score: false,
            truncate_title: None,
            truncate_description: None,
            field_order: Default::default(),
            show_find_similar: false,
            card_click_action: crate::defaults::text_viewdetails(),
            thumbnail_field: None,
            title_field: None,
            card_fields: None,
            modal_fields: None,
            card_style: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct RetrieverMetadata {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub stages: Vec<Object>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<std::collections::HashMap<String, serde_json::Value>>))]
    pub collections: Vec<Object>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub capabilities: Object,
}
