//! How often strangers may search a published page: its owner's figures, or those of its tier, and a share for each address.
//!
//! Windows are those of the clock: a day's figure is used up once a day. Each process counts for itself.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use loupe_wire::{RateLimitConfig, RateLimitTier, TierLimits};
use moka::sync::Cache;

use super::{RATE, too_many};
use crate::{app::App, error::Result, front};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// Requests of one address in an hour where the owner asks for such a limit and names none.
const ADDRESS_HOUR: i64 = 1000;

/// Interactions that a page takes in a minute, and one address of it in an hour, whatever its owner says of searches.
const BEACONS_MINUTE: i64 = 6_000;
const BEACONS_ADDRESS_HOUR: i64 = 3_000;

/// Notes that an app's page takes in a minute and in a day: each is kept for months.
const NOTES_MINUTE: i64 = 1_200;
const NOTES_DAY: i64 = 100_000;

/// Test messages through the channels of one webhook or alert in a minute.
const TRIALS_MINUTE: i64 = 6;

/// Looks at the map of pages from one address in a minute.
const MAPS_MINUTE: i64 = 30;

/// Requests counted in a window.
#[derive(Debug, Default, Clone, Copy)]
struct Window {
    start: i64,
    count: i64,
}

/// A window's length in seconds, and how many requests fit into it.
type Limit = (i64, Option<i64>);

type Windows = Arc<Mutex<[Window; 3]>>;

/// The windows of pages, and of the addresses that visit them.
pub struct Pages(Cache<String, Windows>);

impl Default for Pages {
    fn default() -> Self {
        let windows = Cache::builder()
            .max_capacity(100_000)
            .time_to_idle(Duration::from_secs(DAY.unsigned_abs()));
        Self(windows.build())
    }
}

/// Counts one search of a page.
///
/// # Errors
/// 429 when the page, or the visitor's address, has used up a window.
pub fn take_page(
    app: &App,
    page: &str,
    config: &RateLimitConfig,
    address: Option<IpAddr>,
) -> Result<()> {
    if !config.enabled {
        return Ok(());
    }
    if config.enable_ip_limits && address.is_some() {
        let network = front::network(address);
        let limit = config.max_requests_per_ip_hour.unwrap_or(ADDRESS_HOUR);
        let windows = [(HOUR, Some(limit)), (HOUR, None), (HOUR, None)];
        take(app, format!("{page} {network}"), windows, 1, "searches")?;
    }
    take(app, page.to_owned(), limits(config), 1, "searches")
}

/// Counts interactions that a page tells.
///
/// # Errors
/// 429 when the page, or the visitor's address, has used up a window.
pub fn take_beacons(app: &App, page: &str, address: Option<IpAddr>, number: usize) -> Result<()> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let none = (DAY, None);
    if address.is_some() {
        let network = front::network(address);
        let windows = [none, (HOUR, Some(BEACONS_ADDRESS_HOUR)), none];
        take(
            app,
            format!("{page} told {network}"),
            windows,
            number,
            "interactions",
        )?;
    }
    let windows = [(MINUTE, Some(BEACONS_MINUTE)), none, none];
    take(app, format!("{page} told"), windows, number, "interactions")
}

/// Counts a note that an app's page sends of a visitor.
///
/// # Errors
/// 429 when the app has told too much.
pub fn take_note(app: &App, app_id: &str) -> Result<()> {
    let windows = [
        (MINUTE, Some(NOTES_MINUTE)),
        (HOUR, None),
        (DAY, Some(NOTES_DAY)),
    ];
    take(app, format!("{app_id} told"), windows, 1, "interactions")
}

/// Counts test messages of a webhook or an alert.
///
/// # Errors
/// 429 when it was tried too often.
pub fn take_trial(app: &App, of: &str) -> Result<()> {
    let windows = [(MINUTE, Some(TRIALS_MINUTE)), (HOUR, None), (DAY, None)];
    let what = ("a receiver", "tests");
    take_of(app, format!("{of} tried"), windows, 1, what)
}

/// Counts a look at the map of all pages.
///
/// # Errors
/// 429 when this address has looked too often.
pub fn take_map(app: &App, address: Option<IpAddr>) -> Result<()> {
    let windows = [(MINUTE, Some(MAPS_MINUTE)), (HOUR, None), (DAY, None)];
    let owner = format!("map {}", front::network(address));
    take(app, owner, windows, 1, "looks")
}

/// The limits of a page as they are told; none where it has none.
pub fn told(config: &RateLimitConfig) -> TierLimits {
    if !config.enabled {
        return TierLimits::default();
    }
    let [(_, minute), (_, hour), (_, day)] = limits(config);
    TierLimits {
        requests_per_minute: minute,
        requests_per_hour: hour,
        requests_per_day: day,
    }
}

/// What the owner says; where nothing is said, the tier's requests a minute.
fn limits(config: &RateLimitConfig) -> [Limit; 3] {
    let said = [
        config.requests_per_minute,
        config.requests_per_hour,
        config.requests_per_day,
    ];
    let tier = match config.tier {
        RateLimitTier::Standard => Some(600),
        RateLimitTier::Elevated => Some(6_000),
        RateLimitTier::Enterprise => Some(60_000),
        RateLimitTier::Unlimited => None,
    };
    let minute = said[0].or(tier.filter(|_| said == [None; 3]));
    [(MINUTE, minute), (HOUR, said[1]), (DAY, said[2])]
}

fn take(app: &App, owner: String, limits: [Limit; 3], number: i64, what: &str) -> Result<()> {
    take_of(app, owner, limits, number, ("this page", what))
}

/// Counts what somebody takes, who and what being words of the refusal.
fn take_of(
    app: &App,
    owner: String,
    limits: [Limit; 3],
    number: i64,
    (who, what): (&str, &str),
) -> Result<()> {
    let now = app.clock().micros().div_euclid(1_000_000);
    let windows = app.limits.pages.0.get_with(owner, Windows::default);
    let mut windows = windows.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((limit, seconds)) = count(&mut windows, &limits, number, now) else {
        return Ok(());
    };
    let wait = seconds - now.rem_euclid(seconds);
    let name = match seconds {
        MINUTE => "minute",
        HOUR => "hour",
        _ => "day",
    };
    let message = format!("{who} takes {limit} {what} a {name}: wait {wait} s and try again");
    Err(too_many(RATE, message, limit, name, wait))
}

/// Counts requests in every window, or in none: the limit and the seconds of the one that is full.
fn count(
    windows: &mut [Window; 3],
    limits: &[Limit; 3],
    number: i64,
    now: i64,
) -> Option<(i64, i64)> {
    for (window, (seconds, limit)) in windows.iter_mut().zip(limits) {
        let start = now - now.rem_euclid(*seconds);
        if window.start != start {
            *window = Window { start, count: 0 };
        }
        if let Some(limit) = limit.filter(|limit| window.count.saturating_add(number) > *limit) {
            return Some((limit, *seconds));
        }
    }
    windows.iter_mut().for_each(|window| window.count += number);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_lets_through_its_figure() {
        let mut windows = [Window::default(); 3];
        let limits = [(MINUTE, Some(2)), (HOUR, Some(3)), (DAY, None)];
        let noon = 20_000 * DAY + 12 * HOUR;
        let at = |seconds: i64, windows: &mut _| count(windows, &limits, 1, noon + seconds);
        assert_eq!(at(0, &mut windows), None);
        assert_eq!(at(59, &mut windows), None);
        assert_eq!(at(59, &mut windows), Some((2, MINUTE)));
        assert_eq!(at(60, &mut windows), None);
        assert_eq!(at(120, &mut windows), Some((3, HOUR)));
        assert_eq!(at(HOUR, &mut windows), None);
    }

    #[test]
    fn the_tier_counts_where_nothing_is_said() {
        let mut config = RateLimitConfig::default();
        assert_eq!(limits(&config)[0], (MINUTE, Some(600)));
        config.requests_per_day = Some(5);
        assert_eq!(
            limits(&config),
            [(MINUTE, None), (HOUR, None), (DAY, Some(5))]
        );
    }
}
