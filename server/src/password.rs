//! Passwords: kept as Argon2id hashes, hashed a few at once, and throttled before they are hashed, so that guessing is slow
//! and costs this server little.

pub mod hashing;

use std::{net::IpAddr, time::Duration};

use moka::sync::Cache;
use sha2::{Digest, Sha256};

use hashing::{Hashing, is_outdated};

use crate::{
    app::App,
    error::{ApiError, Result},
    front,
    limits::{
        self,
        tries::{Closed, FREE, Limit, MINUTE, Rule, SECOND, Tries},
    },
};

/// Failures in a minute for one thing that has a password: of a neighbourhood of addresses, and of everybody together. The second
/// is what nobody who has a few networks reaches: whoever did would keep everybody out.
const FAILURES_OF_NEIGHBOURS: i64 = 30;
const FAILURES_OF_ALL: i64 = 1_000;

/// How long a password that was right is known without hashing it again: some callers send it with every request.
const PROVED_FOR: Duration = Duration::from_secs(300);

/// Passwords that are being tried.
pub struct Passwords {
    /// The one place where passwords are hashed, those of people among them.
    pub hashing: Hashing,
    tries: Tries,
    proved: Cache<[u8; 32], ()>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            hashing: Hashing::default(),
            tries: Tries::default(),
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
    let tries = Places::new(thing, address, app.clock().micros());
    // Counted before it is tried: many at once are no way around it.
    let passwords = &app.passwords;
    let closed = passwords.tries.take(app, tries.begun()).await?;
    if let Some(closed) = closed {
        return Err(refused(&closed, app.clock().micros()));
    }
    let right = passwords.hashing.verify(password, Some(hash)).await?;
    if right {
        let visitor = tries.visitor().name;
        passwords.tries.was_right(app, visitor, None).await?;
        passwords.proved.insert(proof, ());
        return Ok(Checked::Right);
    }
    // Whether or not they are full by now.
    passwords.tries.take(app, tries.failed()).await?;
    Ok(Checked::Wrong)
}

/// Where a try is counted.
struct Places {
    visitor: String,
    /// Of this minute.
    neighbours: String,
    /// As above.
    thing: String,
}

impl Places {
    fn new(thing: &str, address: Option<IpAddr>, now: i64) -> Self {
        let minute = now.div_euclid(MINUTE);
        let around = neighbourhood(address);
        Self {
            visitor: format!("password of {thing} {}", front::network(address)),
            neighbours: format!("password of {thing} around {around} @{minute}"),
            thing: format!("password of {thing} @{minute}"),
        }
    }

    /// Failures of this address, each of which costs it more time.
    fn visitor(&self) -> Limit {
        let first = SECOND;
        Limit::new(&self.visitor, Rule::Wrong { first })
    }

    /// What a try is counted as before it is looked at.
    fn begun(&self) -> Vec<Limit> {
        let full = |name: &str, most| Limit::new(name, Rule::Full { most, long: MINUTE });
        vec![
            full(&self.neighbours, FAILURES_OF_NEIGHBOURS),
            full(&self.thing, FAILURES_OF_ALL),
            self.visitor(),
        ]
    }

    /// What one that was wrong is counted as.
    fn failed(&self) -> Vec<Limit> {
        // Those that are over the edge tell as much as those at it.
        let all = Rule::Window {
            most: i64::MAX,
            long: MINUTE,
        };
        vec![
            Limit::new(&self.neighbours, all),
            Limit::new(&self.thing, all),
        ]
    }
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

/// Whoever failed too often waits as long as told, and everybody together until the minute is over.
fn refused(closed: &Closed, now: i64) -> ApiError {
    let until = match closed.limit.rule {
        Rule::Wrong { .. } => closed.until + SECOND,
        Rule::Full { .. } | Rule::Window { .. } => (now.div_euclid(MINUTE) + 1) * MINUTE,
    };
    throttled((until - now).div_euclid(SECOND))
}

fn throttled(seconds: i64) -> ApiError {
    let wait = seconds.max(1);
    let message = format!("too many wrong passwords: wait {wait} s and try again");
    limits::too_many(limits::RATE, message, FREE, "minute", wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_and_a_neighbourhood_are_counted_by_themselves() {
        let of = |address: &str, now| Places::new("page", address.parse().ok(), now);
        let one = of("203.0.113.7", 5 * MINUTE);
        let names = |places: &Places| places.failed().into_iter().map(|limit| limit.name);
        let counted: Vec<String> = names(&one).collect();
        let (neighbours, thing) = (counted[0].clone(), counted[1].clone());
        let beside = of("203.0.113.8", 6 * MINUTE - 1);
        assert!(names(&beside).eq(counted));
        assert_ne!(beside.visitor().name, one.visitor().name);
        // Elsewhere there are other neighbours, and a minute later another minute.
        let elsewhere = names(&of("198.51.100.7", 5 * MINUTE)).collect::<Vec<_>>();
        assert!(elsewhere[0] != neighbours && elsewhere[1] == thing);
        assert!(
            names(&of("203.0.113.7", 6 * MINUTE)).all(|name| name != neighbours && name != thing)
        );
        // What is looked at before is what is counted after.
        let begun: Vec<Limit> = one.begun();
        assert_eq!((&begun[0].name, &begun[1].name), (&neighbours, &thing));
    }

    #[test]
    fn a_refusal_says_how_long_it_lasts() {
        let now = 10 * MINUTE + 20 * SECOND;
        let wait = |rule| {
            let limit = Limit::new("a page", rule);
            let until = now + 4 * SECOND;
            refused(&Closed { limit, until }, now).wait()
        };
        assert_eq!(wait(Rule::Wrong { first: SECOND }), Some(5));
        let (most, long) = (FAILURES_OF_ALL, MINUTE);
        assert_eq!(wait(Rule::Full { most, long }), Some(40));
    }
}
