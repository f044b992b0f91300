//! What providers say of themselves, kept for a while. One asks each of them at a time; whoever comes meanwhile waits for that.

use std::{sync::Arc, time::Duration};

use moka::future::Cache;
use tokio::sync::oneshot;

use super::oidc::{Description, ask_description, unusable};
use crate::{app::App, error::Result};

/// How long a provider that could not be read is left alone; until then its answer is what it was.
const PAUSE: i64 = 5_000_000;

/// What a provider said, or why that is nothing, and when it was asked.
pub(super) struct Described {
    told: std::result::Result<Arc<Description>, String>,
    asked_at: i64,
}

impl Described {
    /// Whether it is to be asked again.
    fn is_over(&self, now: i64) -> bool {
        self.told.is_err() && now - self.asked_at >= PAUSE
    }
}

/// Where descriptions are kept, for ten minutes.
pub(super) fn kept() -> Cache<String, Arc<Described>> {
    Cache::builder()
        .max_capacity(1_000)
        .time_to_live(Duration::from_secs(600))
        .build()
}

/// The description of a provider.
///
/// # Errors
/// It cannot be read now.
pub(super) async fn describe(app: &App, issuer: &str) -> Result<Arc<Description>> {
    let now = app.clock().micros();
    let known = app.hosting.auth.providers.described.get(issuer).await;
    let described = match known.filter(|known| !known.is_over(now)) {
        Some(known) => known,
        None => begin(app, issuer, now).await.map_err(unusable)?,
    };
    described.told.clone().map_err(unusable)
}

/// Asks a provider, unless somebody does so now or just did. Whoever asked may go: others wait for the same.
fn begin(app: &App, issuer: &str, now: i64) -> oneshot::Receiver<Arc<Described>> {
    let (tell, told) = oneshot::channel();
    let (state, issuer) = (app.clone(), issuer.to_owned());
    app.spawn(async move {
        let known = state.hosting.auth.providers.described.entry(issuer.clone());
        let asking = ask(&state, &issuer);
        let described = known.or_insert_with_if(asking, |known| known.is_over(now));
        // Nobody may wait for it any more.
        let _ = tell.send(described.await.into_value());
    });
    told
}

async fn ask(app: &App, issuer: &str) -> Arc<Described> {
    let told = ask_description(app, issuer).await.map(Arc::new);
    let asked_at = app.clock().micros();
    Arc::new(Described { told, asked_at })
}
