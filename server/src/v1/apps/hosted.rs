//! An app as the database has it, and as owners and visitors see it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use loupe_wire::{
    AppResponse, AuthConfigOutput, BuildConfig, FeaturedGalleryConfig, HeroConfig,
    MonitoringConfig, Object, PageMeta, PageTab, SEOConfig, SectionConfig, StatItem, ThemeConfig,
    UpdateAppRequest, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PRODUCTION, asset_prefix, auth_config, place::named, store};
use crate::{app::App, error::Result, hosting, v1::retrievers::cast};

/// An app as the database has it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Hosted {
    pub app_id: String,
    pub slug: String,
    pub is_active: bool,
    /// What its public calls search in.
    #[serde(default)]
    pub namespace_id: Option<String>,
    pub auth_config: Option<AuthConfigOutput>,
    pub build_config: Option<BuildConfig>,
    pub monitoring_config: Option<MonitoringConfig>,
    /// What the owner edits.
    pub draft: Page,
    /// What visitors see.
    pub published: Option<Page>,
    /// The newest version's number.
    pub last_version: i64,
    /// The version of each environment.
    pub environments: BTreeMap<String, Environment>,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What an environment serves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Environment {
    pub version: i64,
    pub deploy_id: String,
    /// Versions that were served before, the last one last.
    #[serde(default)]
    pub before: Vec<i64>,
    /// Hashes of the keys that its files have in them.
    #[serde(default)]
    pub keys: BTreeSet<String>,
    /// Since when it serves the version; 0 where that was not kept yet.
    #[serde(default)]
    pub since: i64,
    /// Versions that were taken back, the last one last, each with the moment: there is no way back to them, and pages of
    /// them may be open.
    #[serde(default)]
    pub taken_back: Vec<(i64, i64)>,
}

/// The page that is made of sections, beside the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub meta: PageMeta,
    pub template: String,
    pub sections: Vec<SectionConfig>,
    pub custom_html: Option<String>,
    pub hero: Option<HeroConfig>,
    pub theme: ThemeConfig,
    pub seo: Option<SEOConfig>,
    pub stats: Vec<StatItem>,
    pub featured_gallery: Option<FeaturedGalleryConfig>,
    pub tabs: Vec<PageTab>,
}

impl Hosted {
    /// The version that visitors get; 0 before there is one.
    pub fn version(&self) -> i64 {
        self.environments
            .get(PRODUCTION)
            .map_or(0, |one| one.version)
    }

    /// What visitors see of the page.
    pub fn page(&self) -> &Page {
        self.published.as_ref().unwrap_or(&self.draft)
    }

    pub(super) fn view(&self, app: &App, domains: &[store::Domain]) -> Result<AppResponse> {
        let mut told = json!({});
        merge(&mut told, &self.draft);
        merge(
            &mut told,
            &json!({
                "app_id": self.app_id, "slug": self.slug, "url": self.url(app, domains), "is_active": self.is_active,
                "version": self.version(), "has_unpublished_changes": self.published.as_ref() != Some(&self.draft),
                "custom_domains": domains.iter().map(|domain| domain.config(app, &self.slug)).collect::<Vec<_>>(),
                "auth_config": self.auth_config.clone().map(auth_config::shown), "build_config": self.build_config.clone().map(without_secrets),
                "monitoring_config": self.monitoring_config.clone().unwrap_or_default(),
                "namespace_id": named(self), "environments": self.told_environments(app), "password_protected": self.is_password_protected(),
                "created_at": self.created_at, "updated_at": self.updated_at,
            }),
        );
        cast(&told)
    }

    /// Its own domain where it has a first one, else its name under the domain of all apps.
    fn url(&self, app: &App, domains: &[store::Domain]) -> String {
        let own = domains
            .iter()
            .filter(|domain| domain.status == store::ACTIVE)
            .find(|domain| domain.is_primary);
        match own {
            Some(domain) => hosting::url_of_domain(app, &domain.domain),
            None => hosting::url(app, &self.slug),
        }
    }

    fn told_environments(&self, app: &App) -> Object {
        let told = self.environments.iter().map(|(name, one)| {
            let host = if name == PRODUCTION {
                self.slug.clone()
            } else {
                format!("{}--{name}", self.slug)
            };
            let value = json!({
                "version": one.version, "deploy_id": one.deploy_id, "url": hosting::url(app, &host),
                "asset_prefix": asset_prefix(&self.app_id, one.version),
                "preview_url": hosting::url(app, &format!("{}--v{}", self.slug, one.version)),
            });
            (name.clone(), value)
        });
        told.collect()
    }
}

/// Secrets that an app was given when it could be are nobody's to read.
fn without_secrets(mut build: BuildConfig) -> BuildConfig {
    build.secrets.clear();
    build
}

fn merge(into: &mut Value, from: &impl Serialize) {
    if let (Value::Object(into), Ok(Value::Object(from))) = (into, serde_json::to_value(from)) {
        into.extend(from);
    }
}

impl Hosted {
    pub(super) fn change(&mut self, request: UpdateAppRequest) {
        self.slug = request.slug.unwrap_or(std::mem::take(&mut self.slug));
        self.is_active = request.is_active.unwrap_or(self.is_active);
        if let Some(sent) = request.build_config {
            let old = self.build_config.take();
            self.build_config = Some(sent.of(old.unwrap_or_default()));
        }
        self.monitoring_config = request.monitoring_config.or(self.monitoring_config.take());
        let draft = std::mem::take(&mut self.draft);
        self.draft = Page {
            meta: request.meta.unwrap_or(draft.meta),
            template: request.template.unwrap_or(draft.template),
            sections: request.sections.unwrap_or(draft.sections),
            custom_html: request.custom_html.unwrap_or(draft.custom_html),
            hero: request.hero.unwrap_or(draft.hero),
            theme: request.theme.unwrap_or(draft.theme),
            seo: request.seo.unwrap_or(draft.seo),
            stats: request.stats.unwrap_or(draft.stats),
            featured_gallery: request.featured_gallery.unwrap_or(draft.featured_gallery),
            tabs: request.tabs.unwrap_or(draft.tabs),
        };
    }
}
