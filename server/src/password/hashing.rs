//! Argon2id, for every password there is: as many at once as there are processors, and a short line behind them.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use argon2::{
    ARGON2ID_IDENT, Algorithm, Argon2, Params, PasswordHash, PasswordHasher, PasswordVerifier,
    Version,
};
use tokio::sync::Semaphore;

use crate::{
    error::{ApiError, Result},
    id,
};

/// Kibibytes and rounds of one hash: what OWASP asks for at least.
const MEMORY: u32 = 19 * 1024;
const ROUNDS: u32 = 2;

/// Hashes that may wait for a processor.
const WAITING: usize = 64;

/// A hash that nobody's password has: what is compared where there is nobody.
static NOBODY: LazyLock<String> =
    LazyLock::new(|| made(&id::random_base62(40)).unwrap_or_default());

/// Turns at the processors: one of these in a process.
pub struct Hashing {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    runs: AtomicU64,
}

impl Default for Hashing {
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(2, usize::from))
    }
}

/// Leaves the line however the wait ends.
struct Place<'h>(&'h AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn argon() -> Result<Argon2<'static>> {
    let params = Params::new(MEMORY, ROUNDS, 1, None).map_err(ApiError::internal)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn made(password: &str) -> Result<String> {
    let hash: PasswordHash = argon()?
        .hash_password(password.as_bytes())
        .map_err(ApiError::internal)?;
    Ok(hash.to_string())
}

/// What a hash keeps when it is [renewed](Hashing::renew): its salt. A new password has another one.
pub fn salt(hash: &str) -> &str {
    hash.rsplit('$').nth(1).unwrap_or_default()
}

/// Whether a hash was made with less than what is asked for today, or in another way.
pub fn is_outdated(hash: &str) -> bool {
    let is_good = |hash: &PasswordHash| {
        hash.algorithm == ARGON2ID_IDENT
            && hash.version == Some(Version::V0x13.into())
            && Params::try_from(hash)
                .is_ok_and(|has| has.m_cost() >= MEMORY && has.t_cost() >= ROUNDS)
    };
    !PasswordHash::new(hash).is_ok_and(|hash| is_good(&hash))
}

impl Hashing {
    fn of(at_once: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(at_once)),
            waiting: AtomicUsize::new(0),
            runs: AtomicU64::new(0),
        }
    }

    /// The hash to keep, with its salt and parameters.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        self.run(move || made(&password)).await?
    }

    /// The hash of today of a password that has an older one, with the salt of that.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub async fn renew(&self, password: &str, old: &str) -> Result<String> {
        let (password, old) = (password.to_owned(), old.to_owned());
        self.run(move || {
            let old = PasswordHash::new(&old).map_err(ApiError::internal)?;
            let Some(salt) = old.salt else {
                return made(&password);
            };
            let hash: PasswordHash = argon()?
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map_err(ApiError::internal)?;
            Ok(hash.to_string())
        })
        .await?
    }

    /// Whether this is the password. Where there is no hash, it takes as long and is not.
    ///
    /// # Errors
    /// 503 when too many wait already.
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool> {
        let (password, hash) = (password.to_owned(), hash.map(ToOwned::to_owned));
        self.run(move || {
            let compared = hash.as_deref().unwrap_or(NOBODY.as_str());
            let verified = argon()?.verify_password(password.as_bytes(), compared);
            Ok(verified.is_ok() && hash.is_some())
        })
        .await?
    }

    /// Hashes made since the process started, those that were compared among them.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Runs the work on a thread of its own, when it is its turn.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.waiting);
        if before >= WAITING {
            let message = "too many passwords are tried at this moment: try again in a few seconds";
            return Err(ApiError::unavailable("overloaded", message).retry_after(3));
        }
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(ApiError::internal)?;
        drop(place);
        self.runs.fetch_add(1, Ordering::Relaxed);
        // The turn lasts as long as the work, also when nobody waits for it any more.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(ApiError::internal)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicBool, time::Duration};

    use axum::{http::StatusCode, response::IntoResponse};

    use super::*;

    #[tokio::test]
    async fn a_password_opens_its_own_hash_alone() {
        let hashing = Hashing::default();
        let hash = hashing.hash("a lamp in the cave").await.unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        for (password, hash, right) in [
            ("a lamp in the cave", Some(hash.as_str()), true),
            ("a lamp in the cove", Some(hash.as_str()), false),
            ("a lamp in the cave", Some("no hash"), false),
            ("a lamp in the cave", None, false),
        ] {
            assert_eq!(hashing.verify(password, hash).await.unwrap(), right);
        }
    }

    #[tokio::test]
    async fn a_renewed_hash_is_of_today_and_keeps_its_salt() {
        let params = Params::new(8 * 1024, 1, 1, None).unwrap();
        let weak = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let weak: PasswordHash = weak.hash_password(b"a lamp in the cave").unwrap();
        let weak = weak.to_string();
        let hashing = Hashing::default();
        let strong = hashing.renew("a lamp in the cave", &weak).await.unwrap();
        assert!(is_outdated(&weak) && !is_outdated(&strong), "{strong}");
        assert_eq!(salt(&strong), salt(&weak));
        assert!(salt(&strong).len() >= 11, "{strong}");
        let right = hashing.verify("a lamp in the cave", Some(&strong)).await;
        assert!(right.unwrap());
        let other = hashing.hash("a lamp in the cave").await.unwrap();
        assert_ne!(salt(&other), salt(&strong));
        assert_eq!((salt(""), salt("no hash")), ("", ""));
    }

    #[test]
    fn weaker_hashes_are_outdated() {
        let salted = "$c2FsdHNhbHRzYWx0$MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE";
        for (start, outdated) in [
            ("$argon2id$v=19$m=19456,t=2,p=1", false),
            ("$argon2id$v=19$m=65536,t=3,p=1", false),
            ("$argon2id$v=19$m=8192,t=2,p=1", true),
            ("$argon2id$v=19$m=19456,t=1,p=1", true),
            ("$argon2id$v=16$m=19456,t=2,p=1", true),
            ("$argon2i$v=19$m=19456,t=2,p=1", true),
        ] {
            assert_eq!(
                is_outdated(&format!("{start}{salted}")),
                outdated,
                "{start}"
            );
        }
        assert!(is_outdated("no hash"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_more_run_than_have_a_turn_and_no_more_wait_than_the_line_holds() {
        const TURNS: usize = 2;
        let hashing = Arc::new(Hashing::of(TURNS));
        let open = Arc::new(AtomicBool::new(false));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 1..=TURNS + WAITING {
            let (hashing, open) = (hashing.clone(), open.clone());
            let (now, highest) = (running.clone(), most.clone());
            tasks.spawn(async move {
                let work = move || {
                    let count = now.fetch_add(1, Ordering::SeqCst) + 1;
                    highest.fetch_max(count, Ordering::SeqCst);
                    while !open.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    now.fetch_sub(1, Ordering::SeqCst);
                };
                hashing.run(work).await
            });
            // The first ones have their turns before the others stand in line.
            while number == TURNS && running.load(Ordering::SeqCst) < TURNS {
                tokio::task::yield_now().await;
            }
        }
        while hashing.waiting.load(Ordering::SeqCst) < WAITING {
            tokio::task::yield_now().await;
        }
        let refused = hashing.run(|| ()).await.unwrap_err();
        assert_eq!(refused.wait(), Some(3));
        let status = refused.into_response().status();
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        open.store(true, Ordering::SeqCst);
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), TURNS);
        hashing.run(|| ()).await.unwrap();
    }
}
