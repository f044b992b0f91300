//! What an execution holds of this server, and what an organization may use in a minute.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use loupe_engine::stage::{Around, Metered};
use moka::sync::Cache;
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    error::ApiError,
    limits::{
        self,
        turns::{Turn, Turns},
    },
};

const MINUTE: Duration = Duration::from_secs(60);

/// The interface's limits, of one organization in one minute.
const fn most(what: Metered) -> u64 {
    match what {
        Metered::LanguageTokens => 100_000,
        Metered::WebSearches => 10,
    }
}

/// What the organizations have used lately, on this process.
pub struct Used {
    windows: Cache<(String, Metered), Arc<Mutex<Window>>>,
    /// Calls that stages limit, of an hour at most.
    paces: Cache<[u8; 32], Arc<Mutex<Window>>>,
}

#[derive(Debug)]
struct Window {
    /// In microseconds.
    since: i64,
    used: u64,
}

impl Window {
    fn open(now: i64) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            since: now,
            used: 0,
        }))
    }

    /// Counts a use; the seconds to wait where the time has no room for it. What alone is more than the time allows is let in
    /// when nothing else was used.
    fn take(&mut self, amount: u64, most: u64, time: Duration, now: i64) -> Result<(), u64> {
        let time = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        if now.saturating_sub(self.since) >= time {
            (self.since, self.used) = (now, 0);
        }
        if self.used > 0 && self.used.saturating_add(amount) > most {
            let left = self.since.saturating_add(time).saturating_sub(now);
            return Err(u64::try_from((left + 999_999) / 1_000_000).unwrap_or(1));
        }
        self.used = self.used.saturating_add(amount);
        Ok(())
    }

    /// Puts a use in the place of what was counted for it at that moment; what an earlier time counted is none of this one's.
    fn settle(&mut self, counted: u64, used: u64, at: i64) {
        if at >= self.since {
            self.used = self.used.saturating_sub(counted).saturating_add(used);
        }
    }
}

impl Default for Used {
    fn default() -> Self {
        let windows = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(MINUTE * 2)
            .build();
        let paces = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(MINUTE * 120)
            .build();
        Self { windows, paces }
    }
}

impl Used {
    /// Counts a use; the seconds to wait where the minute has no room for it.
    fn spend(&self, org_id: &str, what: Metered, amount: u64, now: i64) -> Result<(), u64> {
        let key = (org_id.to_owned(), what);
        let window = self.windows.get_with(key, || Window::open(now));
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        window.take(amount, most(what), MINUTE, now)
    }

    fn settle(&self, org_id: &str, what: Metered, (counted, used): (u64, u64), at: i64) {
        if let Some(window) = self.windows.get(&(org_id.to_owned(), what)) {
            let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
            window.settle(counted, used, at);
        }
    }

    /// Counts a call that its stage limits.
    fn pace(&self, whose: &str, most: u64, time: Duration, now: i64) -> Result<(), u64> {
        // An address may be long, and there may be many.
        let whose = Sha256::digest(whose).into();
        let window = self.paces.get_with(whose, || Window::open(now));
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        window.take(1, most, time, now)
    }
}

/// The server around one execution: its turn, and its organization's use.
pub struct Held {
    app: App,
    org_id: String,
    place: Place,
}

/// An execution's place among others: its one turn, or none while all of it waits.
struct Place {
    turn: Mutex<Option<Turn>>,
    /// Held by whoever takes the turn again: parts of one execution may come back at the same time.
    coming: tokio::sync::Mutex<()>,
}

impl Place {
    fn new(turn: Turn) -> Self {
        Self {
            turn: Mutex::new(Some(turn)),
            coming: tokio::sync::Mutex::default(),
        }
    }

    fn put(&self, turn: Option<Turn>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    fn has_turn(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.is_some()
    }

    async fn back(&self, turns: &Turns) {
        let _coming = self.coming.lock().await;
        if !self.has_turn() {
            self.put(turns.again().await);
        }
    }
}

impl Held {
    pub fn new(app: &App, org_id: &str, turn: Turn) -> Self {
        Self {
            app: app.clone(),
            org_id: org_id.to_owned(),
            place: Place::new(turn),
        }
    }
}

#[async_trait]
impl Around for Held {
    fn leave(&self) {
        self.place.put(None);
    }

    async fn back(&self) {
        self.place.back(&self.app.turns).await;
    }

    fn spend(&self, what: Metered, amount: u64) -> Result<(), u64> {
        let now = self.app.clock().micros();
        self.app.used.spend(&self.org_id, what, amount, now)
    }

    fn settle(&self, what: Metered, counted: u64, used: u64, ago: Duration) {
        let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        let at = self.app.clock().micros().saturating_sub(ago);
        let used = (counted, used);
        self.app.used.settle(&self.org_id, what, used, at);
    }

    fn pace(&self, whose: &str, most: u64, time: Duration) -> Result<(), u64> {
        let whose = format!("{} {whose}", self.org_id);
        self.app
            .used
            .pace(&whose, most, time, self.app.clock().micros())
    }
}

/// Takes what other work uses of language models from the organization's use of this minute.
///
/// # Errors
/// The seconds to wait where the minute has no room for it.
pub fn spend(app: &App, org_id: &str, what: Metered, amount: u64) -> Result<(), u64> {
    app.used.spend(org_id, what, amount, app.clock().micros())
}

/// What a caller is told whose organization has used up a minute.
pub fn used_up(what: Metered, message: impl Into<String>, wait: u64) -> ApiError {
    let figure = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (limit, wait) = (figure(most(what)), figure(wait));
    limits::too_many("usage_limited", message, limit, "minute", wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_of_an_execution_that_come_back_together_share_its_turn() {
        let turns = Turns::new(1);
        let place = Place::new(turns.take().await.unwrap());
        place.put(None);
        let both = async { tokio::join!(place.back(&turns), place.back(&turns)) };
        let came = tokio::time::timeout(Duration::from_secs(10), both).await;
        assert!(came.is_ok() && place.has_turn());
    }

    #[test]
    fn a_minute_has_its_measure() {
        let used = Used::default();
        let spend = |org: &str, amount, now| used.spend(org, Metered::WebSearches, amount, now);
        for _ in 0..10 {
            assert_eq!(spend("a", 1, 5_000_000), Ok(()));
        }
        assert_eq!(spend("a", 1, 35_000_000), Err(30));
        assert_eq!(spend("b", 1, 35_000_000), Ok(()));
        assert_eq!(spend("a", 1, 65_000_000), Ok(()));
        let tokens = |amount, now| used.spend("a", Metered::LanguageTokens, amount, now);
        assert_eq!(tokens(150_000, 1), Ok(()));
        assert_eq!(tokens(1, 2), Err(60));
        // What an answer took less than was counted may be used, in the minute that counted it.
        let settle = |counted, took, at| {
            used.settle("a", Metered::LanguageTokens, (counted, took), at);
        };
        settle(150_000, 99_000, 1);
        assert_eq!((tokens(1_000, 3), tokens(1, 4)), (Ok(()), Err(60)));
        assert_eq!(tokens(100_000, 60_000_001), Ok(()));
        settle(99_000, 0, 2);
        assert_eq!(tokens(1, 60_000_002), Err(60));
        let hour = MINUTE * 60;
        let pace = |whose: &str, now| used.pace(whose, 2, hour, now);
        assert_eq!(
            (pace("a", 0), pace("a", 1), pace("b", 1)),
            (Ok(()), Ok(()), Ok(()))
        );
        assert_eq!(pace("a", 60_000_000), Err(3_540));
        assert_eq!(pace("a", 60_000_001), Err(3_540));
        assert_eq!(pace("a", 3_600_000_000), Ok(()));
    }
}
