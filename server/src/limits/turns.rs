//! Turns at work that keeps a processor busy, searches above all: so many at once, and a line before them that stays short.
//!
//! A line that empties now and then is a burst, and whoever stands in it is served. One that has not been empty for a while
//! is an overload: waiting in it would make every answer late, so most are told at once to come again. (The "controlled
//! delay" of CoDel, with the two waits of Facebook's servers.)

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{ApiError, Result};

/// A line that was empty so lately is a burst. Also the longest wait in it.
const BURST: Duration = Duration::from_millis(80);
/// Longest wait in a line that stays.
const OVERLOAD: Duration = Duration::from_millis(10);

pub struct Turns {
    free: Semaphore,
    began: Instant,
    /// Milliseconds after `began` when there was no line.
    empty_at: AtomicU64,
}

impl Turns {
    pub fn new(at_once: usize) -> Self {
        Self {
            free: Semaphore::new(at_once.max(1)),
            began: Instant::now(),
            empty_at: AtomicU64::new(0),
        }
    }

    /// A turn, given back when it is dropped.
    ///
    /// # Errors
    /// 503 when the line is too long.
    pub async fn take(&self) -> Result<SemaphorePermit<'_>> {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Ok(turn) = self.free.try_acquire() {
            self.empty_at.store(now, Ordering::Relaxed);
            return Ok(turn);
        }
        let since =
            Duration::from_millis(now.saturating_sub(self.empty_at.load(Ordering::Relaxed)));
        let patience = if since > BURST { OVERLOAD } else { BURST };
        match tokio::time::timeout(patience, self.free.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            // Nobody closes the semaphore; either way there is no turn.
            _ => Err(ApiError::unavailable(
                "overloaded",
                "the server has more searches than it can run: try again in a moment",
            )
            .retry_after(1)),
        }
    }
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

        let _turn = turns.take().await.unwrap();
        tokio::time::sleep(BURST * 2).await;
        let began = Instant::now();
        let refused = turns.take().await.err().unwrap();
        assert_eq!(refused.kind(), "ServiceUnavailableError");
        assert!(began.elapsed() < BURST, "{:?}", began.elapsed());
    }
}
