//! Turns at work that keeps a processor busy, searches above all: so many at once, and a line before them that stays short.
//!
//! A line that empties now and then is a burst, and whoever stands in it may wait for a part of what a turn lasts. When nobody
//! was idle for a while it is an overload: waiting would make every answer late, so most are told at once to come again. (The
//! "controlled delay" of CoDel, with the two waits of Facebook's servers.)

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{ApiError, Result};

/// Whoever comes so soon after an idle moment is part of a burst.
const BURST: Duration = Duration::from_millis(80);
/// What a turn is taken to last before any has ended.
const GUESS: Duration = Duration::from_millis(60);
/// Each turn moves the mean by so small a part of the difference.
const INERTIA: u64 = 8;

pub struct Turns {
    at_once: usize,
    free: Semaphore,
    began: Instant,
    /// Milliseconds after `began` when nobody had a turn.
    idle_at: AtomicU64,
    /// Microseconds that turns have lasted lately.
    mean: AtomicU64,
}

/// A turn, given back when it is dropped.
pub struct Turn<'t> {
    turns: &'t Turns,
    since: Instant,
    _permit: SemaphorePermit<'t>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let took = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mean = self.turns.mean.load(Ordering::Relaxed);
        // Of two that end at once one may be lost: it is a mean.
        let mean = mean - mean / INERTIA + took / INERTIA;
        self.turns.mean.store(mean, Ordering::Relaxed);
    }
}

impl Turns {
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        Self {
            at_once,
            free: Semaphore::new(at_once),
            began: Instant::now(),
            idle_at: AtomicU64::new(0),
            mean: AtomicU64::new(u64::try_from(GUESS.as_micros()).unwrap_or(0)),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_burst(&self) -> bool {
        let idle_at = self.idle_at.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(idle_at)) <= BURST
    }

    /// Refuses before anything was done for the request, when there is no turn and has not been enough of them for a while.
    ///
    /// # Errors
    /// 503 in an overload.
    pub fn check(&self) -> Result<()> {
        if self.free.available_permits() > 0 || self.is_burst() {
            return Ok(());
        }
        Err(overloaded())
    }

    fn turn<'t>(&'t self, permit: SemaphorePermit<'t>) -> Turn<'t> {
        Turn {
            turns: self,
            since: Instant::now(),
            _permit: permit,
        }
    }

    /// A turn. Nobody waits longer than a third of what turns last, so that an answer that is given is not late.
    ///
    /// # Errors
    /// 503 when the line is too long.
    pub async fn take(&self) -> Result<Turn<'_>> {
        if let Ok(turn) = self.free.try_acquire() {
            if self.free.available_permits() + 1 == self.at_once {
                self.idle_at.store(self.now(), Ordering::Relaxed);
            }
            return Ok(self.turn(turn));
        }
        let mean = Duration::from_micros(self.mean.load(Ordering::Relaxed));
        let patience = if self.is_burst() { mean / 3 } else { mean / 8 };
        match tokio::time::timeout(patience, self.free.acquire()).await {
            Ok(Ok(turn)) => Ok(self.turn(turn)),
            // Nobody closes the semaphore; either way there is no turn.
            _ => Err(overloaded()),
        }
    }
}

fn overloaded() -> ApiError {
    let message = "the server has more searches than it can run: try again in a moment";
    ApiError::unavailable("overloaded", message).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_is_served_and_an_overload_is_refused_soon() {
        let turns = Turns::new(1);
        let turn = turns.take().await.unwrap();
        let second = async {
            let _turn = turns.take().await.unwrap();
        };
        let end = async {
            tokio::time::sleep(GUESS / 20).await;
            drop(turn);
        };
        tokio::join!(second, end);

        let held = turns.take().await.unwrap();
        assert!(turns.check().is_ok());
        tokio::time::sleep(BURST * 2).await;
        assert!(turns.check().is_err());
        let began = Instant::now();
        let refused = turns.take().await.err().unwrap();
        assert_eq!(refused.kind(), "ServiceUnavailableError");
        assert!(began.elapsed() < BURST, "{:?}", began.elapsed());
        drop(held);
        assert!(turns.check().is_ok());
    }
}
