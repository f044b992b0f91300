//! How much visitors of an app may ask for: each for itself, and all together, so that nobody spends what the owner may.

use crate::{
    app::App,
    error::Result,
    front,
    limits::{self, bucket::Rate},
};

const VISITOR: Rate = Rate {
    per_minute: 300,
    per_second: 30,
    burst: 120,
    concurrent: 0,
};

const APP: Rate = Rate {
    per_minute: 6_000,
    per_second: 300,
    burst: 2_000,
    concurrent: 0,
};

/// One visitor has no more than this part of what the owner's tier gives to the app.
const SHARE: i64 = 4;

/// Visitors of all apps hold no more than this part of what the organization may have under way at once.
const PLACES: i64 = 2;

/// Notes of an app from one address.
const NOTES: Rate = Rate {
    per_minute: 120,
    per_second: 20,
    burst: 60,
    concurrent: 0,
};

/// A call of `/api` by this visitor: a user, or an address. The gate knows the app as it knows a key, with the rate of its
/// organization's tier; no visitor has all of that.
///
/// # Errors
/// 429 when the visitor, or the app, has asked too much.
pub async fn take(app: &App, org_id: &str, app_id: &str, visitor: &str) -> Result<()> {
    take_own(app, org_id, app_id, visitor).await?;
    limits::take_here(app, &format!("{app_id} visitors"), &APP)
        .await
        .1
}

/// A call of who may make none: it takes nothing of what those have who may.
///
/// # Errors
/// 429 when there were too many from there.
pub async fn take_own(app: &App, org_id: &str, app_id: &str, visitor: &str) -> Result<()> {
    let tier = limits::standing(app, org_id).await?.tier;
    let own = VISITOR.within(limits::rate_of(tier, app.config()).part(SHARE));
    limits::take_here(app, &format!("{app_id} visitor {visitor}"), &own)
        .await
        .1
}

/// The places of visitors among those of the organization: whose they are, and how many.
pub fn places(org_id: &str, rate: Rate) -> (String, Rate) {
    let concurrent = rate.part(PLACES).concurrent;
    (format!("{org_id} visitors"), Rate { concurrent, ..rate })
}

/// A note of what somebody at this address did.
///
/// # Errors
/// 429 when there are too many, from there or of the app.
pub async fn take_note(app: &App, app_id: &str) -> Result<()> {
    let owner = format!("{app_id} notes {}", front::network(front::address()));
    limits::take_here(app, &owner, &NOTES).await.1?;
    limits::page::take_note(app, app_id).await
}
