//! Hosted apps: what they are made of and how they look.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
#[cfg(feature = "schema")]
use validator::Validate as _;

use crate::{
    AuthConfigInput, AuthConfigOutput, CustomDomainConfig, FeaturedGalleryConfig, HeroConfig,
    Object, PageMeta, PageTab, SEOConfig, SectionConfig, StatItem, ThemeConfig, VersionRecord,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ApiAllowRule {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    pub pattern: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppListItem {
    pub app_id: String,
    pub slug: String,
    pub url: String,
    pub meta: PageMeta,
    pub is_active: bool,
    pub version: i64,
    #[serde(default)]
    pub has_unpublished_changes: bool,
    pub template: String,
    pub custom_domains: Vec<CustomDomainConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_config: Option<BuildConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring_config: Option<MonitoringConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_branch: Option<String>,
    /// What its visitors search, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub environments: Object,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct AppResponse {
    pub app_id: String,
    pub slug: String,
    pub url: String,
    pub meta: PageMeta,
    pub is_active: bool,
    #[serde(default)]
    pub warnings: Vec<String>,
    pub version: i64,
    #[serde(default)]
    pub has_unpublished_changes: bool,
    pub custom_domains: Vec<CustomDomainConfig>,
    #[serde(default)]
    pub auth_config: Option<AuthConfigOutput>,
    #[serde(default)]
    pub build_config: Option<BuildConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring_config: Option<MonitoringConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github_installation_id: Option<i64>,
    #[serde(default)]
    pub versions: Vec<VersionRecord>,
    /// What its visitors search, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_id: Option<String>,
    /// By name, each with what it serves; production tells as `previous_version` what a rollback would serve.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::HashMap<String, serde_json::Value>))]
    pub environments: Object,
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
    pub template: String,
    pub sections: Vec<SectionConfig>,
    #[serde(default)]
    pub custom_html: Option<String>,
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
    pub password_protected: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BuildConfig {
    #[serde(default = "crate::defaults::text_src_layout_jsx")]
    pub entry: String,
    #[serde(default = "crate::defaults::build_config_framework_react")]
    pub framework: BuildConfigFramework,
    #[serde(default = "crate::defaults::yes")]
    pub tailwind: bool,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env_vars: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub secrets: IndexMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_allow: Vec<ApiAllowRule>,
}

/// What a change of an app says of its `build_config`: members that are not sent stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct BuildConfigChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<BuildConfigFramework>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tailwind: Option<bool>,
    /// All of the variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_vars: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<IndexMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_prefix: Option<String>,
    /// All of the rules; without any, visitors may read and search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_allow: Option<Vec<ApiAllowRule>>,
}

impl BuildConfigChange {
    /// The settings with this change.
    #[must_use]
    pub fn of(self, old: BuildConfig) -> BuildConfig {
        BuildConfig {
            entry: self.entry.unwrap_or(old.entry),
            framework: self.framework.unwrap_or(old.framework),
            tailwind: self.tailwind.unwrap_or(old.tailwind),
            env_vars: self.env_vars.unwrap_or(old.env_vars),
            secrets: self.secrets.unwrap_or(old.secrets),
            asset_prefix: self.asset_prefix.or(old.asset_prefix),
            api_allow: self.api_allow.unwrap_or(old.api_allow),
        }
    }
}

impl Default for BuildConfig {
    fn default() -> Self {
        Self {
            entry: crate::defaults::text_src_layout_jsx(),
            framework: crate::defaults::build_config_framework_react(),
            tailwind: crate::defaults::yes(),
            env_vars: Default::default(),
            secrets: Default::default(),
            asset_prefix: None,
            api_allow: Default::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum BuildConfigFramework {
    #[default]
    #[serde(rename = "react")]
    React,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct CreateAppRequest {
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 60), regex(path = *crate::patterns::P4)))]
    pub slug: String,
    pub meta: PageMeta,
    #[cfg_attr(feature = "schema", validate(nested))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_config: Option<BuildConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring_config: Option<MonitoringConfig>,
    #[serde(default = "crate::defaults::yes")]
    pub is_active: bool,
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    #[serde(default = "crate::defaults::text_generic")]
    pub template: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionConfig>>,
    #[cfg_attr(feature = "schema", validate(length(max = 200000)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_html: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hero: Option<HeroConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub seo: Option<SEOConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Vec<StatItem>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub featured_gallery: Option<FeaturedGalleryConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tabs: Option<Vec<PageTab>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_name: Option<String>,
}

impl Default for CreateAppRequest {
    fn default() -> Self {
        Self {
            slug: Default::default(),
            meta: Default::default(),
            auth_config: None,
            build_config: None,
            monitoring_config: None,
            is_active: crate::defaults::yes(),
            template: crate::defaults::text_generic(),
            sections: None,
            custom_html: None,
            hero: None,
            theme: None,
            seo: None,
            stats: None,
            featured_gallery: None,
            tabs: None,
            password_secret_name: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct ListAppsResponse {
    pub results: Vec<AppListItem>,
    pub total_count: i64,
    pub limit: i64,
    pub offset: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_apps: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct MonitoringConfig {
    #[serde(default = "crate::defaults::yes")]
    pub enabled: bool,
    #[serde(default = "crate::defaults::yes")]
    pub error_boundary_enabled: bool,
    #[serde(default = "crate::defaults::yes")]
    pub sentry_enabled: bool,
    #[serde(default = "crate::defaults::yes")]
    pub posthog_enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_error_message: Option<String>,
    #[serde(default = "crate::defaults::yes")]
    pub auto_fix_enabled: bool,
}

impl Default for MonitoringConfig {
    fn default() -> Self {
        Self {
            enabled: crate::defaults::yes(),
            error_boundary_enabled: crate::defaults::yes(),
            sentry_enabled: crate::defaults::yes(),
            posthog_enabled: crate::defaults::yes(),
            custom_error_message: None,
            auto_fix_enabled: crate::defaults::yes(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct PublishAppRequest {
    #[serde(default)]
    #[cfg_attr(feature = "schema", validate(length(max = 500)))]
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, validator::Validate))]
pub struct UpdateAppRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(length(min = 3, max = 60), regex(path = *crate::patterns::P4)))]
    pub slug: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<PageMeta>,
    #[cfg_attr(feature = "schema", validate(nested))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigInput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_config: Option<BuildConfigChange>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring_config: Option<MonitoringConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    #[serde(default)]
    pub publish: bool,
    #[cfg_attr(feature = "schema", validate(length(max = 100)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionConfig>>,
    /// `null` takes it away.
    #[cfg_attr(feature = "schema", validate(length(max = 200000)), schema(value_type = Option<String>))]
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    pub custom_html: Option<Option<String>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schema(value_type = Option<HeroConfig>))]
    pub hero: Option<Option<HeroConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeConfig>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(nested), schema(value_type = Option<SEOConfig>))]
    pub seo: Option<Option<SEOConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Vec<StatItem>>,
    /// `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::sent",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", validate(nested), schema(value_type = Option<FeaturedGalleryConfig>))]
    pub featured_gallery: Option<Option<FeaturedGalleryConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", validate(nested))]
    pub tabs: Option<Vec<PageTab>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_name: Option<String>,
}
