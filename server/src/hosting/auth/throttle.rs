//! How often somebody may guess: each address, each address at each account, and each account from browsers that nobody
//! signed in from. Nothing locks an account's owner out: a browser known to the account has a line of its own.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::sync::Cache;

use crate::{
    app::App,
    error::{ApiError, Result},
    front, limits,
};

const SECOND: i64 = 1_000_000;

/// Tries of one address in a minute.
const ADDRESS: i64 = 20;

/// Challenges for passkeys that one address is given in a minute: each page of sign-in asks for one.
const CHALLENGES: i64 = 60;

/// Looks at the keys of one service in a minute.
const KEYS: i64 = 30;

/// Passkeys that one person may add in an hour: each is told by mail.
const PASSKEYS: i64 = 20;

/// Wrong tries that cost nothing; each further one doubles the wait, up to a quarter of an hour.
const FREE: u32 = 5;
const FIRST_WAIT: i64 = 10 * SECOND;
const LONGEST_WAIT: i64 = 900 * SECOND;

/// Wrong tries at one account in a quarter of an hour, from whatever addresses.
const ACCOUNT: i64 = 20;

/// Mails that one address may have sent to one account in an hour, all addresses together to one, and all of an app. The last
/// ones are no mere guard of the server: mails that nobody asked for cost their sender its name.
const MAILS: i64 = 5;
const MAILS_TO_ACCOUNT: i64 = 12;
const MAILS_FROM_ADDRESS: i64 = 60;
const MAILS_OF_APP: i64 = 1_000;

/// What was counted of one thing.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// Start of the window.
    start: i64,
    count: i64,
    wrong: u32,
    /// No further try before.
    closed_until: i64,
}

type Counter = Arc<Mutex<Count>>;

pub(super) struct Throttle(Cache<String, Counter>);

impl Default for Throttle {
    fn default() -> Self {
        let idle = Duration::from_secs(3600);
        Self(
            Cache::builder()
                .max_capacity(200_000)
                .time_to_idle(idle)
                .build(),
        )
    }
}

/// A try that was counted as wrong before it was looked at, so that a thousand at once are a thousand.
pub(super) struct Try {
    pair: Counter,
    account: Counter,
}

impl Try {
    /// It was right after all.
    pub fn was_right(self) {
        *lock(&self.pair) = Count::default();
        let mut account = lock(&self.account);
        account.count = (account.count - 1).max(0);
    }
}

fn lock(counter: &Counter) -> std::sync::MutexGuard<'_, Count> {
    counter.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(micros: i64, limit: i64, window: &str) -> ApiError {
    let seconds = (micros.max(0) + SECOND - 1).div_euclid(SECOND).max(1);
    let message = format!("Too many tries. Wait {seconds} seconds and try again.");
    limits::too_many("too_many_tries", message, limit, window, seconds)
}

impl Throttle {
    fn of(&self, key: String) -> Counter {
        self.0.get_with(key, Counter::default)
    }

    /// One more in a window of this length.
    fn count(&self, key: String, now: i64, window: i64, most: i64) -> Result<()> {
        let counter = self.of(key);
        let mut count = lock(&counter);
        if now - count.start >= window {
            count.start = now;
            count.count = 0;
        }
        if count.count >= most {
            let name = if window > 60 * SECOND {
                "hour"
            } else {
                "minute"
            };
            return Err(wait(count.start + window - now, most, name));
        }
        count.count += 1;
        Ok(())
    }

    /// A try from this address, whatever it is at.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn address(&self, app: &App) -> Result<()> {
        let (now, address) = (app.clock().micros(), front::address());
        self.count(
            format!("from {}", front::network(address)),
            now,
            60 * SECOND,
            ADDRESS,
        )
    }

    /// A challenge for a passkey, asked for from this address.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn challenge(&self, app: &App) -> Result<()> {
        let (now, address) = (app.clock().micros(), front::address());
        let key = format!("challenges from {}", front::network(address));
        self.count(key, now, 60 * SECOND, CHALLENGES)
    }

    /// A look at the keys of a service, which tokens of anybody's making can lead to.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn keys(&self, app: &App, name: &str) -> Result<()> {
        let (now, key) = (app.clock().micros(), format!("keys of {name}"));
        self.count(key, now, 60 * SECOND, KEYS)
    }

    /// A passkey of this person.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn passkey(&self, app: &App, app_id: &str, user_id: &str) -> Result<()> {
        let (now, key) = (app.clock().micros(), format!("passkeys {app_id} {user_id}"));
        self.count(key, now, 3_600 * SECOND, PASSKEYS)
    }

    /// A mail to this account, asked for from this address. Whether there is such an account makes no difference.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn mail(&self, app: &App, app_id: &str, email: &str) -> Result<()> {
        let (now, address) = (app.clock().micros(), front::network(front::address()));
        for (key, most) in [
            (format!("mail {app_id} {email} {address}"), MAILS),
            (format!("mail {app_id} {email}"), MAILS_TO_ACCOUNT),
            (format!("mails {app_id} from {address}"), MAILS_FROM_ADDRESS),
            (format!("mails {app_id}"), MAILS_OF_APP),
        ] {
            self.count(key, now, 3_600 * SECOND, most)?;
        }
        Ok(())
    }

    /// A try at an account.
    ///
    /// # Errors
    /// 429 when there were too many wrong ones.
    pub fn begin(&self, app: &App, app_id: &str, email: &str, is_known: bool) -> Result<Try> {
        self.address(app)?;
        let (now, address) = (app.clock().micros(), front::network(front::address()));
        let line = if is_known { "known" } else { "" };
        let pair = self.of(format!("pair {app_id} {email} {address}"));
        let account = self.of(format!("account {line} {app_id} {email}"));
        {
            let count = lock(&pair);
            if count.closed_until > now {
                return Err(wait(count.closed_until - now, FREE.into(), "minute"));
            }
        }
        {
            let window = 900 * SECOND;
            let mut count = lock(&account);
            if now - count.start >= window {
                count.start = now;
                count.count = 0;
            }
            if count.count >= ACCOUNT {
                let left = count.start + window - now;
                return Err(wait(left, ACCOUNT, "quarter of an hour"));
            }
            count.count += 1;
        }
        let mut count = lock(&pair);
        count.wrong = count.wrong.saturating_add(1);
        if count.wrong >= FREE {
            let doubled = FIRST_WAIT << (count.wrong - FREE).min(10);
            count.closed_until = now + doubled.min(LONGEST_WAIT);
        }
        drop(count);
        Ok(Try { pair, account })
    }
}
