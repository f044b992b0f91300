//! How much visitors of an app may ask for: each for itself, and all together, so that nobody spends what the owner may.

use crate::{
    app::App,
    error::Result,
    front,
    limits::{self, Standing, bucket::Rate},
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

/// What the visitors of an app have together, found once for many calls.
pub struct Together {
    bucket: limits::Held,
    /// The organization's, of all its apps.
    places: limits::Places,
}

impl Together {
    /// What the visitors of this app have.
    pub fn of(app: &App, org_id: &str, app_id: &str) -> Self {
        Self {
            bucket: limits::held(app, &format!("{app_id} visitors"), &APP),
            places: limits::places(app, &format!("{org_id} visitors")),
        }
    }

    /// A call of `/api`, after [`take_own`] of its visitor. The gate knows the app as it knows a key, with the rate of its
    /// organization's tier; no visitor has all of that.
    ///
    /// # Errors
    /// 429 when the app was asked too much.
    pub fn take(&self, app: &App) -> Result<()> {
        self.bucket.take(app, &APP).1
    }

    /// Where calls of visitors that are under way are counted.
    pub fn places(&self) -> limits::Places {
        self.places.clone()
    }
}

/// A call by this visitor: a user, or an address. Who may make none takes nothing of what those have who may. Answers how the
/// organization stands, which the call goes on to need.
///
/// # Errors
/// 429 when there were too many from there.
pub async fn take_own(
    app: &App,
    (org_id, app_id): (&str, &str),
    visitor: &str,
) -> Result<Standing> {
    let standing = limits::standing(app, org_id).await?;
    let own = VISITOR.within(limits::rate_of(standing.tier, app.config()).part(SHARE));
    let owner = [app_id, " visitor ", visitor].concat();
    limits::take_here(app, &owner, &own).1?;
    Ok(standing)
}

/// What visitors have of an organization's rate: a part of the requests under way.
pub fn part_of(rate: &Rate) -> Rate {
    let concurrent = rate.part(PLACES).concurrent;
    Rate {
        concurrent,
        ..*rate
    }
}

/// A note of what somebody at this address did.
///
/// # Errors
/// 429 when there are too many, from there or of the app.
pub fn take_note(app: &App, app_id: &str) -> Result<()> {
    let owner = format!("{app_id} notes {}", front::network(front::address()));
    limits::take_here(app, &owner, &NOTES).1?;
    limits::page::take_note(app, app_id)
}
