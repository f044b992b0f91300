//! How much visitors of an app may ask for: each for itself, and all together, so that nobody spends what the owner may.

use crate::{
    app::App,
    error::Result,
    front,
    limits::{self, Figures, bucket::Rate},
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

const NOTES: Rate = Rate {
    per_minute: 120,
    per_second: 20,
    burst: 60,
    concurrent: 0,
};

/// A call of `/api` by this visitor: a user, or an address.
///
/// # Errors
/// 429 when the visitor, or the app, has asked too much.
pub async fn take(app: &App, app_id: &str, visitor: &str) -> (Figures, Result<()>) {
    let (figures, taken) =
        limits::take_here(app, &format!("{app_id} visitor {visitor}"), &VISITOR).await;
    if taken.is_err() {
        return (figures, taken);
    }
    let (_, taken) = limits::take_here(app, &format!("{app_id} visitors"), &APP).await;
    (figures, taken)
}

/// A note of what somebody at this address did.
///
/// # Errors
/// 429 when there are too many.
pub async fn take_note(app: &App, app_id: &str) -> Result<()> {
    let address = front::address().map(|address| address.to_string());
    let owner = format!("{app_id} notes {}", address.unwrap_or_default());
    limits::take_here(app, &owner, &NOTES).await.1
}
