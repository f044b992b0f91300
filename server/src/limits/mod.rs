//! How much a key may ask for: tokens per minute and second, requests of its organization under way at once.

pub mod bucket;
mod kinds;
pub mod page;
pub mod paid;
pub mod quota;
mod shared;
pub mod tries;
pub mod turns;

pub use shared::sweep;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bucket::{Bucket, Rate, Verdict, Window};
use loupe_wire::{AccountTier, RateLimitOverrides};
use moka::sync::Cache;

use crate::{
    app::App,
    auth::{Caller, table::Row},
    config::Config,
    error::{ApiError, Result},
    front,
    v1::{billing, organizations},
};

/// Buckets of the keys and counters of the organizations that were seen lately. An idle bucket is full within a minute, so
/// forgetting it after two changes nothing.
pub struct Limits {
    buckets: Cache<String, Arc<Entry>>,
    running: Cache<String, Places>,
    standings: Cache<String, Standing>,
    pages: page::Pages,
}

/// What this process knows of a key's bucket: the bucket itself, or with several processes the tokens it has leased.
struct Local {
    bucket: Bucket,
    leased: shared::Leased,
}

struct Entry {
    local: Mutex<Local>,
    /// Held while a block is fetched.
    leasing: tokio::sync::Mutex<()>,
}

impl Entry {
    fn local(&self) -> MutexGuard<'_, Local> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Limits {
    fn default() -> Self {
        fn cache<V: Clone + Send + Sync + 'static>(seconds: u64) -> Cache<String, V> {
            Cache::builder()
                .max_capacity(100_000)
                .time_to_idle(Duration::from_secs(seconds))
                .build()
        }
        Self {
            buckets: cache(120),
            running: cache(120),
            standings: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(Duration::from_secs(5))
                .build(),
            pages: page::Pages::default(),
        }
    }
}

impl Limits {
    /// After a change of organizations: the next request reads them anew.
    pub fn forget_tiers(&self) {
        self.standings.invalidate_all();
    }
}

/// What requests need to know of their organization.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub tier: AccountTier,
    /// No plan was chosen yet: what is paid for is refused.
    pub requires_plan: bool,
    /// Dollars spent and the limit that they have reached.
    pub over_limit: Option<Overspent>,
    /// The audit log is told of reads.
    pub audits_reads: bool,
    /// Requests a second by kind of operation, where the organization has set some.
    kinds: Option<RateLimitOverrides>,
}

/// A limit of the organization's own that its spend has reached.
#[derive(Debug, Clone, Copy)]
pub struct Overspent {
    /// `daily_spend_usd` or `monthly_spend_usd`.
    pub resource: &'static str,
    pub spent_usd: f64,
    pub limit_usd: f64,
}

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window");

/// The four headers that every answer carries.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    limit: i64,
    remaining: i64,
    /// Unix time.
    reset: i64,
    /// Seconds.
    window: i64,
}

impl Figures {
    pub fn are_in(headers: &HeaderMap) -> bool {
        headers.contains_key(LIMIT)
    }

    pub fn write(&self, headers: &mut HeaderMap) {
        headers.reserve(4);
        for (name, value) in [
            (LIMIT, self.limit),
            (REMAINING, self.remaining),
            (RESET, self.reset),
            (WINDOW, self.window),
        ] {
            headers.insert(name, HeaderValue::from(value));
        }
    }
}

/// A request that is under way; its end makes room for another one of its organization.
pub struct Running(Arc<AtomicI64>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The figures of a tier. Those of `enterprise` are the installation's own.
pub fn rate_of(tier: AccountTier, config: &Config) -> Rate {
    match tier {
        AccountTier::Free | AccountTier::Build => Rate {
            per_minute: 60,
            per_second: 10,
            burst: 20,
            concurrent: 5,
        },
        AccountTier::Pro | AccountTier::Scale | AccountTier::Team => Rate {
            per_minute: 600,
            per_second: 100,
            burst: 200,
            concurrent: 50,
        },
        AccountTier::Enterprise => {
            let rates = &config.rates;
            Rate {
                per_minute: rates.per_minute,
                per_second: rates.per_second,
                burst: rates.burst,
                concurrent: rates.concurrent,
            }
        }
    }
}

/// What a caller may do: its organization's tier, lowered by the key's own cap.
pub fn rate(app: &App, caller: &Caller, standing: Standing) -> Rate {
    rate_of(standing.tier, app.config()).capped(caller.key.rate_limit_override)
}

/// How the organization stands, at most 5 seconds old.
pub async fn standing(app: &App, org_id: &str) -> Result<Standing> {
    if let Some(standing) = app.limits.standings.get(org_id) {
        return Ok(standing);
    }
    // In a box: every request has room for it, and few read it anew.
    Box::pin(read_standing(app, org_id)).await
}

async fn read_standing(app: &App, org_id: &str) -> Result<Standing> {
    let organization = organizations::find(app.db(), org_id).await?;
    let settings = organizations::settings::find(app.db(), org_id).await?;
    let set = organizations::rates::set(&organization, &settings);
    let standing = Standing {
        tier: organization.account_type,
        requires_plan: organization.requires_plan,
        over_limit: billing::overspent(app, &organization).await?,
        audits_reads: settings.audits_reads,
        kinds: (set != RateLimitOverrides::default()).then_some(set),
    };
    app.limits.standings.insert(org_id.to_owned(), standing);
    Ok(standing)
}

/// A token of what the organization lets each of its keys do of one kind, where it has said so.
pub async fn take_of_kind(app: &App, caller: &Caller, standing: Standing, row: &Row) -> Result<()> {
    let Some(set) = standing.kinds else {
        return Ok(());
    };
    // What was not set is the plan's, whose token is taken already.
    let (name, Some(per_second)) = kinds::of(row.operation, &set) else {
        return Ok(());
    };
    let rate = Rate {
        per_minute: per_second.saturating_mul(60),
        per_second,
        burst: per_second,
        concurrent: i64::MAX,
    };
    let owner = format!("{} {name}", caller.actor());
    let taken = take(app, &owner, &rate).await.1;
    taken.map_err(|error| error.naming_kind(name))
}

/// A token of the key's bucket, which all processes share. The figures are answered either way; the error says which window
/// is used up and when to come again.
pub async fn take(app: &App, owner: &str, rate: &Rate) -> (Figures, Result<()>) {
    if !app.db().is_postgres() {
        return take_here(app, owner, rate);
    }
    let now = app.clock().micros();
    let entry = entry(app, owner, rate, now);
    decided(shared::take(app, owner, &entry, rate, now).await, rate, now)
}

/// A token of a bucket of this process.
pub fn take_here(app: &App, owner: &str, rate: &Rate) -> (Figures, Result<()>) {
    let now = app.clock().micros();
    let entry = entry(app, owner, rate, now);
    let verdict = entry.local().bucket.take(rate, now);
    decided(verdict, rate, now)
}

/// A bucket of this process that was found once for many calls. Whoever keeps it asks for it anew within a minute, or it is
/// forgotten and another one begins full.
pub struct Held(Arc<Entry>);

/// The bucket of an owner.
pub fn held(app: &App, owner: &str, rate: &Rate) -> Held {
    Held(entry(app, owner, rate, app.clock().micros()))
}

impl Held {
    /// A token of it, as [`take_here`] takes one.
    pub fn take(&self, app: &App, rate: &Rate) -> (Figures, Result<()>) {
        let now = app.clock().micros();
        let verdict = self.0.local().bucket.take(rate, now);
        decided(verdict, rate, now)
    }
}

/// A token of what callers without a key have: those of one network share it.
pub fn take_of_strangers(app: &App, address: Option<IpAddr>) -> (Figures, Result<()>) {
    let (owner, rate) = strangers(app, address);
    take_here(app, &owner, &rate)
}

/// The figures of callers without a key, for answers that no operation gave. Nothing is taken.
pub fn figures_of_strangers(app: &App, address: Option<IpAddr>) -> Figures {
    let (owner, rate) = strangers(app, address);
    let now = app.clock().micros();
    let entry = entry(app, &owner, &rate, now);
    let (remaining, full_in) = entry.local().bucket.seen(&rate, now);
    decided(Verdict::Taken { remaining, full_in }, &rate, now).0
}

fn strangers(app: &App, address: Option<IpAddr>) -> (String, Rate) {
    let owner = format!("from {}", front::network(address));
    (owner, rate_of(AccountTier::Enterprise, app.config()))
}

fn entry(app: &App, owner: &str, rate: &Rate, now: i64) -> Arc<Entry> {
    if let Some(entry) = app.limits.buckets.get(owner) {
        return entry;
    }
    let fresh = || {
        Arc::new(Entry {
            local: Mutex::new(Local {
                bucket: Bucket::full(rate, now),
                leased: shared::Leased::default(),
            }),
            leasing: tokio::sync::Mutex::default(),
        })
    };
    app.limits.buckets.get_with(owner.to_owned(), fresh)
}

fn decided(verdict: Verdict, rate: &Rate, now: i64) -> (Figures, Result<()>) {
    let unix = |micros: i64| (micros + 999_999) / 1_000_000;
    match verdict {
        Verdict::Taken { remaining, full_in } => {
            let figures = Figures {
                limit: rate.per_minute,
                remaining,
                reset: unix(now + full_in),
                window: 60,
            };
            (figures, Ok(()))
        }
        Verdict::Refused { window, wait } => {
            let (limit, seconds, name) = match window {
                Window::Minute => (rate.per_minute, 60, "minute"),
                Window::Second => (rate.per_second, 1, "second"),
            };
            let figures = Figures {
                limit,
                remaining: 0,
                reset: unix(now + wait),
                window: seconds,
            };
            let wait = unix(wait).max(1);
            let message =
                // Callers without a key and visitors of apps are told so, too.
                format!("{limit} requests a {name} are let through: wait {wait} s and try again");
            (figures, Err(too_many(RATE, message, limit, name, wait)))
        }
    }
}

/// The code of a refusal that counts requests.
pub const RATE: &str = "rate_limited";

/// A refusal of what is asked for too often: every one tells what is allowed in which window, and the seconds to wait.
pub fn too_many(
    code: &'static str,
    message: impl Into<String>,
    limit: i64,
    window: &str,
    wait: i64,
) -> ApiError {
    ApiError::too_many_requests(code, message)
        .with("limit", limit)
        .with("window", window)
        .with("retry_after", wait)
        .retry_after(wait.unsigned_abs())
}

/// Requests under way, of an organization or of its visitors.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<AtomicI64>);

/// The places of an owner, as all who ask within two minutes have them.
pub fn places(app: &App, owner: &str) -> Places {
    if let Some(places) = app.limits.running.get(owner) {
        return places;
    }
    let running = &app.limits.running;
    running.get_with(owner.to_owned(), Places::default)
}

/// Room for one more request of the organization.
///
/// # Errors
/// As many as the tier allows are under way.
pub fn enter(app: &App, org_id: &str, rate: &Rate) -> Result<Running> {
    enter_at(places(app, org_id), rate)
}

/// Room for one more request among these.
///
/// # Errors
/// As many as the rate allows are under way.
pub fn enter_at(Places(counter): Places, rate: &Rate) -> Result<Running> {
    let before = counter.fetch_add(1, Ordering::AcqRel);
    let running = Running(counter);
    if before < rate.concurrent {
        return Ok(running);
    }
    let limit = rate.concurrent;
    let message =
        format!("{limit} requests of this organization are under way: wait for one to end");
    Err(too_many(RATE, message, limit, "concurrent", 1))
}
