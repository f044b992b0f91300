//! Parts of the page of a hosted app.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{DisplayConfig, FieldConfig, LayoutConfig, Object};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct FeaturedGalleryConfig {
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default = "crate::defaults::text_featured")]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_name: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub default_inputs: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub layout: Option<LayoutConfig>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub field_config: IndexMap<String, FieldConfig>,
}

impl Default for FeaturedGalleryConfig {
    fn default() -> Self {
        Self {
            enabled: crate::defaults::yes(),
            title: crate::defaults::text_featured(),
            retriever_id: None,
            public_name: None,
            default_inputs: Default::default(),
            layout: None,
            field_config: Default::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct HeroConfig {
    pub headline: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subheadline: Option<String>,
    #[serde(default = "crate::defaults::hero_config_background_type_solid")]
    pub background_type: HeroConfigBackgroundType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_color: Option<String>,
    #[serde(default = "crate::defaults::text_ffffff")]
    pub text_color: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default = "crate::defaults::text_420px")]
    pub height: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cta_label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cta_url: Option<String>,
}

impl Default for HeroConfig {
    fn default() -> Self {
        Self {
            headline: Default::default(),
            subheadline: None,
            background_type: crate::defaults::hero_config_background_type_solid(),
            background_url: None,
            background_color: None,
            text_color: crate::defaults::text_ffffff(),
            logo_url: None,
            height: crate::defaults::text_420px(),
            cta_label: None,
            cta_url: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum HeroConfigBackgroundType {
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "video")]
    Video,
    #[serde(rename = "gradient")]
    Gradient,
    #[default]
    #[serde(rename = "solid")]
    Solid,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PageMeta {
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub favicon_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexable: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PageTab {
    pub tab_id: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retriever_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[cfg_attr(feature = "schema", validate(nested))]
    pub display_config: DisplayConfig,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct SectionConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_id: Option<String>,
    pub r#type: String,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub props: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct StatItem {
    pub label: String,
    pub value: String,
}
