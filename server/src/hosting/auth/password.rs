//! Passwords: hashed with Argon2id by as many at once as there are processors, and a short line behind them.

use std::{
    collections::HashSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use tokio::sync::Semaphore;

use crate::error::{ApiError, Result};

/// Characters of a password.
const SHORTEST: usize = 8;
const LONGEST: usize = 128;

/// Hashes that may wait for a processor.
const WAITING: usize = 64;

/// Those of the twenty thousand that people choose most which are long enough, in lower case.
static COMMON: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("common-passwords.txt").lines().collect());

/// A hash that nobody's password has: what is compared where there is nobody.
static NOBODY: LazyLock<String> = LazyLock::new(|| {
    let hash = Argon2::default().hash_password(crate::id::random_base62(40).as_bytes());
    hash.map(|hash| hash.to_string()).unwrap_or_default()
});

/// Turns at the processors.
pub(super) struct Hashing {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Hashing {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            turns: Arc::new(Semaphore::new(processors)),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// Leaves the line at its end.
struct Place<'h>(&'h AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Hashing {
    /// The hash to keep.
    pub async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        self.run(move || {
            let hash = Argon2::default().hash_password(password.as_bytes());
            hash.map(|hash| hash.to_string())
                .map_err(ApiError::internal)
        })
        .await?
    }

    /// Whether this is the password. Where there is no hash, it takes as long and is not.
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool> {
        let (password, hash) = (password.to_owned(), hash.map(ToOwned::to_owned));
        self.run(move || {
            let compared = hash.as_deref().unwrap_or(NOBODY.as_str());
            let verified = Argon2::default().verify_password(password.as_bytes(), compared);
            verified.is_ok() && hash.is_some()
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let line = Place(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING {
            let message = "too many people sign in at this moment: try again in a few seconds";
            return Err(ApiError::unavailable("overloaded", message).retry_after(3));
        }
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(ApiError::internal)?;
        drop(line);
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        done.await.map_err(ApiError::internal)
    }
}

/// Why a password cannot be taken.
pub(super) fn fault(password: &str, email: &str) -> Option<String> {
    let length = password.chars().count();
    let lower = password.to_lowercase();
    if length < SHORTEST {
        return Some(format!("A password has at least {SHORTEST} characters."));
    }
    if length > LONGEST {
        return Some(format!("A password has at most {LONGEST} characters."));
    }
    if COMMON.contains(lower.as_str()) || lower == email {
        return Some(
            "This password is one of those that are guessed first. Choose another.".into(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_opens_its_own_hash_alone() {
        let hashing = Hashing::default();
        let hash = hashing.hash("a lamp in the cave").await.unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert!(
            hashing
                .verify("a lamp in the cave", Some(&hash))
                .await
                .unwrap()
        );
        assert!(
            !hashing
                .verify("a lamp in the cove", Some(&hash))
                .await
                .unwrap()
        );
        assert!(!hashing.verify("a lamp in the cave", None).await.unwrap());
    }

    #[test]
    fn what_is_guessed_first_is_refused() {
        assert!(COMMON.len() > 5_000);
        for bad in [
            "short",
            "password",
            "Password1",
            "12345678",
            "ada@example.com",
        ] {
            assert!(fault(bad, "ada@example.com").is_some(), "{bad}");
        }
        assert!(fault(&"a".repeat(129), "").is_some());
        assert_eq!(fault("correct horse battery", ""), None);
    }
}
