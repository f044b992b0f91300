//! Turns at work that keeps a processor busy, searches above all: so many at once, and a line before them that stays short.
//!
//! A line that empties now and then is a burst, and whoever stands in it is served. When nobody was idle for a while it is an
//! overload: waiting would make every answer late, so most are told at once to come again. (The "controlled delay" of CoDel,
//! with the two waits of Facebook's servers.)

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{ApiError, Result};

/// Whoever comes so soon after an idle moment is part of a burst. Also the longest wait in it.
const BURST: Duration = Duration::from_millis(80);
/// Longest wait in a line that stays.
const OVERLOAD: Duration = Duration::from_millis(10);

pub struct Turns {
    at_once: usize,
    free: Semaphore,
    began: Instant,
    /// Milliseconds after `began` when nobody had a turn.
    idle_at: AtomicU64,
}

impl Turns {
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        Self {
            at_once,
            free: Semaphore::new(at_once),
            began: Instant::now(),
            idle_at: AtomicU64::new(0),
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

    /// A turn, given back when it is dropped.
    ///
    /// # Errors
    /// 503 when the line is too long.
    pub async fn take(&self) -> Result<SemaphorePermit<'_>> {
        if let Ok(turn) = self.free.try_acquire() {
            if self.free.available_permits() + 1 == self.at_once {
                self.idle_at.store(self.now(), Ordering::Relaxed);
            }
            return Ok(turn);
        }
        let patience = if self.is_burst() { BURST } else { OVERLOAD };
        match tokio::time::timeout(patience, self.free.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
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
            tokio::time::sleep(BURST / 4).await;
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
