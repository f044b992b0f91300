//! Passwords: kept as Argon2id hashes, hashed a few at once, and throttled before they are hashed, so that guessing is slow
//! and costs this server little.

pub mod hashing;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use hashing::{Hashing, is_outdated};

use crate::{
    app::App,
    error::{ApiError, Result},
    front, limits,
};

/// Failures of one address before it has to wait, and the longest wait in seconds.
const FREE_FAILURES: u32 = 5;
const LONGEST_WAIT: i64 = 15 * 60;

/// Failures in a minute for one thing that has a password: of a neighbourhood of addresses, and of everybody together. The second
/// is what nobody who has a few networks reaches: whoever did would keep everybody out.
const FAILURES_OF_NEIGHBOURS: u32 = 30;
const FAILURES_OF_ALL: u32 = 1_000;

/// How long a password that was right is known without hashing it again: some callers send it with every request.
const PROVED_FOR: Duration = Duration::from_secs(300);

/// Failures so far, and the moment before which no further try is taken, in microseconds.
#[derive(Debug, Default)]
struct Tries {
    failures: u32,
    not_before: i64,
}

/// Passwords that are being tried.
pub struct Passwords {
    /// The one place where passwords are hashed, those of people among them.
    pub hashing: Hashing,
    tries: Cache<String, Arc<Mutex<Tries>>>,
    proved: Cache<[u8; 32], ()>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            hashing: Hashing::default(),
            tries: Cache::builder()
                .max_capacity(100_000)
                .time_to_idle(Duration::from_secs(3600))
                .build(),
            proved: Cache::builder()
                .max_capacity(10_000)
                .time_to_live(PROVED_FOR)
                .build(),
        }
    }
}

/// The hash of a new password, with its salt and parameters.
///
/// # Errors
/// Too many are hashed just now.
pub async fn hash(app: &App, password: &str) -> Result<String> {
    app.passwords.hashing.hash(password).await
}

/// What came of a password that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    Wrong,
    /// Right, by its hash.
    Right,
    /// Right, as it was a moment ago: nothing was hashed.
    Known,
}

impl Checked {
    pub fn is_right(self) -> bool {
        self != Self::Wrong
    }
}

/// Whether this is the password of `thing`, whose hash is `hash`. [`Checked::Right`] is the moment to [renew](renewed) that.
///
/// # Errors
/// 429 for whoever has failed too often, 503 when too many passwords are tried at once.
pub async fn check(
    app: &App,
    thing: &str,
    address: Option<IpAddr>,
    hash: &str,
    password: &str,
) -> Result<Checked> {
    let proof = proof(thing, hash, password);
    if app.passwords.proved.contains_key(&proof) {
        return Ok(Checked::Known);
    }
    let visitor = format!("{thing} {}", front::network(address));
    let neighbours = format!("{thing} around {}", neighbourhood(address));
    let now = app.clock().micros();
    // Counted before it is tried: many at once are no way around it.
    app.passwords.begin(&visitor, &neighbours, thing, now)?;
    let right = app.passwords.hashing.verify(password, Some(hash)).await?;
    if right {
        app.passwords.tries.invalidate(&visitor);
        app.passwords.proved.insert(proof, ());
        return Ok(Checked::Right);
    }
    app.passwords.failed(&neighbours, now);
    app.passwords.failed(thing, now);
    Ok(Checked::Wrong)
}

/// The hash of today of a password that was right and has a weaker one; none where that is good, and where too many wait: the
/// next time is soon enough. Nobody is kept out for it.
pub async fn renewed(app: &App, hash: &str, password: &str) -> Option<String> {
    if !is_outdated(hash) {
        return None;
    }
    app.passwords.hashing.renew(password, hash).await.ok()
}

/// What one party may well have all addresses of: a /24 of version 4, a /48 of version 6.
fn neighbourhood(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V4(address)) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}")
        }
        Some(IpAddr::V6(address)) => {
            let start = address.segments();
            format!("{:x}:{:x}:{:x}", start[0], start[1], start[2])
        }
        None => String::new(),
    }
}

fn proof(thing: &str, hash: &str, password: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    for piece in [thing, hash, password] {
        digest.update((piece.len() as u64).to_be_bytes());
        digest.update(piece);
    }
    digest.finalize().into()
}

impl Passwords {
    fn of(&self, name: &str) -> Arc<Mutex<Tries>> {
        self.tries.get_with(name.to_owned(), Arc::default)
    }

    fn begin(&self, visitor: &str, neighbours: &str, thing: &str, now: i64) -> Result<()> {
        for (many, most) in [
            (neighbours, FAILURES_OF_NEIGHBOURS),
            (thing, FAILURES_OF_ALL),
        ] {
            let minute = self.of(&minute(many, now));
            if lock(&minute).failures >= most {
                return Err(throttled(60 - now.div_euclid(1_000_000).rem_euclid(60)));
            }
        }
        let tries = self.of(visitor);
        let mut tries = lock(&tries);
        if now < tries.not_before {
            return Err(throttled(
                (tries.not_before - now).div_euclid(1_000_000) + 1,
            ));
        }
        tries.failures = tries.failures.saturating_add(1);
        if tries.failures >= FREE_FAILURES {
            let steps = (tries.failures - FREE_FAILURES).min(20);
            let wait = 2_i64.saturating_pow(steps).min(LONGEST_WAIT);
            tries.not_before = now + wait * 1_000_000;
        }
        Ok(())
    }

    fn failed(&self, many: &str, now: i64) {
        let minute = self.of(&minute(many, now));
        let mut minute = lock(&minute);
        minute.failures = minute.failures.saturating_add(1);
    }
}

fn minute(thing: &str, now: i64) -> String {
    format!("{thing} @{}", now.div_euclid(60_000_000))
}

fn lock(tries: &Mutex<Tries>) -> std::sync::MutexGuard<'_, Tries> {
    tries.lock().unwrap_or_else(PoisonError::into_inner)
}

fn throttled(seconds: i64) -> ApiError {
    let wait = seconds.max(1);
    let message = format!("too many wrong passwords: wait {wait} s and try again");
    limits::too_many(limits::RATE, message, FREE_FAILURES.into(), "minute", wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_make_an_address_wait_longer_and_longer() {
        let passwords = Passwords::default();
        let mut now = 1_000_000_000;
        let try_once = |now| passwords.begin("page 1.2.3.4", "page 1.2.3", "page", now);
        for _ in 0..FREE_FAILURES {
            try_once(now).unwrap();
        }
        let mut waits = Vec::new();
        for _ in 0..14 {
            let wait = try_once(now).unwrap_err().wait().unwrap();
            waits.push(wait);
            now += i64::try_from(wait).unwrap() * 1_000_000;
            try_once(now).unwrap();
        }
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.last(), Some(&901));
        // Another address is not kept waiting, until its neighbours fail too often, or everybody together.
        let neighbour = |now| passwords.begin("page 5.6.7.8", "page 5.6.7", "page", now);
        let other = |now| passwords.begin("page 9.9.9.9", "page 9.9.9", "page", now);
        neighbour(now).unwrap();
        for _ in 0..FAILURES_OF_NEIGHBOURS {
            passwords.failed("page 5.6.7", now);
            passwords.failed("page", now);
        }
        assert!(neighbour(now).unwrap_err().wait().unwrap() <= 60);
        other(now).unwrap();
        for _ in 0..FAILURES_OF_ALL {
            passwords.failed("page", now);
        }
        assert!(other(now).unwrap_err().wait().unwrap() <= 60);
        other(now + 60_000_000).unwrap();
        passwords
            .begin("vault 9.9.9.9", "vault 9.9.9", "vault", now)
            .unwrap();
    }
}
