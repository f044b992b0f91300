//! Which keys live apps have in them: they are not revoked unseen.

use std::collections::BTreeSet;

use loupe_wire::Value;
use serde_json::json;

use super::{APPS, Hosted};
use crate::{app::App, auth::key, error::Result, hosting};

/// The keys that live apps of an organization have in their files, their page or their settings: without them they stop
/// working.
#[derive(Debug)]
pub struct Embedding(Vec<(BTreeSet<String>, Value)>);

impl Embedding {
    /// # Errors
    /// The database does not answer.
    pub async fn read(app: &App, org_id: &str) -> Result<Self> {
        let records = APPS.all(app.db(), org_id).await?;
        let live = records
            .iter()
            .filter(|record| record.is_active && !record.environments.is_empty());
        let told = live.map(|record| {
            let hosted: &Hosted = record;
            let texts = json!([hosted.published, hosted.build_config]).to_string();
            let mut keys = key::find_in(texts.as_bytes());
            keys.extend(
                hosted
                    .environments
                    .values()
                    .flat_map(|one| one.keys.clone()),
            );
            let url = hosting::url(app, &hosted.slug);
            let app = json!({ "app_id": hosted.app_id, "slug": hosted.slug, "url": url });
            (keys, app)
        });
        Ok(Self(told.collect()))
    }

    /// Apps with this key, told by its hash.
    pub fn of(&self, key_hash: &str) -> Vec<Value> {
        let has = self.0.iter().filter(|(keys, _)| keys.contains(key_hash));
        has.map(|(_, app)| app.clone()).collect()
    }
}
