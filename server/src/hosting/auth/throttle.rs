//! How often somebody may guess: each address, each address at each account, and each account from browsers that nobody
//! signed in from. Nothing locks an account's owner out: a browser known to the account has a line of its own.
//! It is counted for [all processes together](crate::limits::tries).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::sync::Cache;

use crate::{
    app::App,
    error::{ApiError, Result},
    front,
    limits::{
        self,
        tries::{Count, FREE, HOUR, Limit, MINUTE, Rule, SECOND, Tries},
    },
};

/// Tries of one address in a minute.
const ADDRESS: i64 = 20;

/// Challenges for passkeys that one address is given in a minute: each page of sign-in asks for one.
const CHALLENGES: i64 = 60;

/// Looks at the keys of one service in a minute.
const KEYS: i64 = 30;

/// Passkeys that one person may add in an hour: each is told by mail.
const PASSKEYS: i64 = 20;

/// What the first wrong try costs that costs something.
const FIRST_WAIT: i64 = 10 * SECOND;

/// Wrong tries at one account in a quarter of an hour, from whatever addresses.
const ACCOUNT: i64 = 20;

/// Mails that one address may have sent to one account in an hour, all addresses together to one, and all of an app. The last
/// ones are no mere guard of the server: mails that nobody asked for cost their sender its name.
const MAILS: i64 = 5;
const MAILS_TO_ACCOUNT: i64 = 12;
const MAILS_FROM_ADDRESS: i64 = 60;
const MAILS_OF_APP: i64 = 1_000;

/// So many in a window of this length.
fn window(name: &str, most: i64, long: i64) -> Limit {
    Limit::new(name, Rule::Window { most, long })
}

fn refused(limit: &Limit, micros: i64) -> ApiError {
    let seconds = (micros.max(0) + SECOND - 1).div_euclid(SECOND).max(1);
    let message = format!("Too many tries. Wait {seconds} seconds and try again.");
    let (most, long) = match limit.rule {
        Rule::Window { most, long } | Rule::Full { most, long } => (most, long),
        Rule::Wrong { .. } => (FREE, MINUTE),
    };
    let window = match long {
        MINUTE => "minute",
        HOUR => "hour",
        _ => "quarter of an hour",
    };
    limits::too_many("too_many_tries", message, most, window, seconds)
}

type Counter = Arc<Mutex<Count>>;

pub(super) struct Throttle {
    tries: Tries,
    /// What this process counts alone: it keeps the server from work, and lets nobody guess.
    here: Cache<String, Counter>,
}

impl Default for Throttle {
    fn default() -> Self {
        let here = Cache::builder()
            .max_capacity(200_000)
            .time_to_idle(Duration::from_secs(3600));
        Self {
            tries: Tries::default(),
            here: here.build(),
        }
    }
}

/// A try that was counted as wrong before it was looked at, so that a thousand at once are a thousand.
pub(super) struct Try {
    pair: String,
    account: String,
}

impl Try {
    /// It was right after all.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn was_right(self, app: &App) -> Result<()> {
        let tries = &app.hosting.auth.throttle.tries;
        tries.was_right(app, self.pair, Some(self.account)).await
    }
}

impl Throttle {
    /// Counts all of these, over all processes.
    async fn take(&self, app: &App, all: Vec<Limit>) -> Result<()> {
        match self.tries.take(app, all).await? {
            Some(closed) => {
                let left = closed.until - app.clock().micros();
                Err(refused(&closed.limit, left))
            }
            None => Ok(()),
        }
    }

    /// Counts this in this process.
    fn take_here(&self, app: &App, limit: &Limit) -> Result<()> {
        let now = app.clock().micros();
        let counter = self.here.get_with(limit.name.clone(), Counter::default);
        let mut count = counter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(until) = limit.rule.closed_until(&count, now) {
            return Err(refused(limit, until - now));
        }
        limit.rule.add(&mut count, now);
        Ok(())
    }

    /// A try from this address, whatever it is at.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub async fn address(&self, app: &App) -> Result<()> {
        let name = format!("from {}", front::network(front::address()));
        self.take(app, vec![window(&name, ADDRESS, MINUTE)]).await
    }

    /// A challenge for a passkey, asked for from this address.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn challenge(&self, app: &App) -> Result<()> {
        let name = format!("challenges from {}", front::network(front::address()));
        self.take_here(app, &window(&name, CHALLENGES, MINUTE))
    }

    /// A look at the keys of a service, which tokens of anybody's making can lead to.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub fn keys(&self, app: &App, name: &str) -> Result<()> {
        let name = format!("keys of {name}");
        self.take_here(app, &window(&name, KEYS, MINUTE))
    }

    /// A passkey of this person.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub async fn passkey(&self, app: &App, app_id: &str, user_id: &str) -> Result<()> {
        let name = format!("passkeys {app_id} {user_id}");
        self.take(app, vec![window(&name, PASSKEYS, HOUR)]).await
    }

    /// A mail to this account, asked for from this address. Whether there is such an account makes no difference.
    ///
    /// # Errors
    /// 429 when there were too many.
    pub async fn mail(&self, app: &App, app_id: &str, email: &str) -> Result<()> {
        let address = front::network(front::address());
        let all = [
            (format!("mail {app_id} {email} {address}"), MAILS),
            (format!("mail {app_id} {email}"), MAILS_TO_ACCOUNT),
            (format!("mails {app_id} from {address}"), MAILS_FROM_ADDRESS),
            (format!("mails {app_id}"), MAILS_OF_APP),
        ];
        let all = all.map(|(name, most)| window(&name, most, HOUR));
        self.take(app, all.into()).await
    }

    /// A try at an account.
    ///
    /// # Errors
    /// 429 when there were too many wrong ones.
    pub async fn begin(&self, app: &App, app_id: &str, email: &str, is_known: bool) -> Result<Try> {
        self.address(app).await?;
        let address = front::network(front::address());
        let line = if is_known { "known" } else { "" };
        let wrong = Rule::Wrong { first: FIRST_WAIT };
        let pair = Limit::new(&format!("pair {app_id} {email} {address}"), wrong);
        let account = format!("account {line} {app_id} {email}");
        let account = window(&account, ACCOUNT, 15 * MINUTE);
        let counted = Try {
            pair: pair.name.clone(),
            account: account.name.clone(),
        };
        self.take(app, vec![pair, account]).await?;
        Ok(counted)
    }
}
