//! Turns at work that keeps a processor busy, searches above all: so many at once, and a line before them that stays short.
//!
//! A line that empties now and then is a burst, and whoever stands in it may wait for a part of what a turn lasts. When nobody
//! was idle for a while it is an overload: waiting would make every answer late, so most are told at once to come again. (The
//! "controlled delay" of CoDel, with the two waits of Facebook's servers.)

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, Result};

/// Whoever comes so soon after an idle moment is part of a burst, and later yet where turns last long.
const BURST: Duration = Duration::from_millis(80);
/// What a turn is taken to last before any has ended: the first load models, for a second or so, and whoever searches beside
/// them waits for that.
const GUESS: Duration = Duration::from_secs(4);
/// Each turn moves the mean by so small a part of the difference.
const INERTIA: u64 = 8;

pub struct Turns {
    at_once: usize,
    free: Arc<Semaphore>,
    /// Turns that work may have that nobody waits for: all but one.
    behind: Arc<Semaphore>,
    began: Instant,
    /// Milliseconds after `began` when nobody had a turn.
    idle_at: AtomicU64,
    /// Microseconds that turns have lasted lately.
    mean: Arc<AtomicU64>,
}

/// A turn, given back when it is dropped.
pub struct Turn {
    mean: Arc<AtomicU64>,
    since: Instant,
    _permit: OwnedSemaphorePermit,
    /// Of work that nobody waits for.
    behind: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mean = self.mean.load(Ordering::Relaxed);
        // Of two that end at once one may be lost: it is a mean.
        let mean = learned(mean, micros(self.since.elapsed()));
        self.mean.store(mean, Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The mean after a turn that took so long.
const fn learned(mean: u64, took: u64) -> u64 {
    mean - mean / INERTIA + took / INERTIA
}

fn most_behind(at_once: usize) -> usize {
    at_once.saturating_sub(1).max(1)
}

/// How long after an idle moment a burst lasts, where turns last so long.
fn burst(mean: Duration) -> Duration {
    BURST.max(mean / 3)
}

impl Turns {
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        Self {
            at_once,
            free: Arc::new(Semaphore::new(at_once)),
            behind: Arc::new(Semaphore::new(most_behind(at_once))),
            began: Instant::now(),
            idle_at: AtomicU64::new(0),
            mean: Arc::new(AtomicU64::new(micros(GUESS))),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn mean(&self) -> Duration {
        Duration::from_micros(self.mean.load(Ordering::Relaxed))
    }

    fn is_burst(&self) -> bool {
        let idle_at = self.idle_at.load(Ordering::Relaxed);
        Duration::from_millis(self.now().saturating_sub(idle_at)) <= burst(self.mean())
    }

    /// How long somebody who comes now waits at most.
    fn patience(&self) -> Duration {
        let part = if self.is_burst() { 3 } else { 8 };
        self.mean() / part
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

    fn turn(&self, permit: OwnedSemaphorePermit) -> Turn {
        Turn {
            mean: self.mean.clone(),
            since: Instant::now(),
            _permit: permit,
            behind: None,
        }
    }

    /// A turn. Nobody waits longer than a third of what turns last, so that an answer that is given is not late.
    ///
    /// # Errors
    /// 503 when the line is too long.
    pub async fn take(&self) -> Result<Turn> {
        if let Ok(turn) = self.free.clone().try_acquire_owned() {
            let behind = most_behind(self.at_once) - self.behind.available_permits();
            if self.free.available_permits() + 1 + behind >= self.at_once {
                self.idle_at.store(self.now(), Ordering::Relaxed);
            }
            return Ok(self.turn(turn));
        }
        match tokio::time::timeout(self.patience(), self.free.clone().acquire_owned()).await {
            Ok(Ok(turn)) => Ok(self.turn(turn)),
            // Nobody closes the semaphore; either way there is no turn.
            _ => Err(overloaded()),
        }
    }
}

impl Turns {
    /// A turn for work that nobody waits for, however long that takes: it is never refused, and all of it together leaves a turn
    /// to those who wait, where there are several.
    pub async fn behind(&self) -> Option<Turn> {
        let behind = self.behind.clone().acquire_owned().await.ok()?;
        let permit = self.free.clone().acquire_owned().await.ok()?;
        let mut turn = self.turn(permit);
        turn.behind = Some(behind);
        Some(turn)
    }

    /// A turn for a search that gave its own back while it waited for another machine. It was let in, so it is not
    /// refused now: the time of its request is what bounds the wait.
    pub async fn again(&self) -> Option<Turn> {
        let permit = self.free.clone().acquire_owned().await;
        permit.ok().map(|permit| self.turn(permit))
    }
}

fn overloaded() -> ApiError {
    let message = "the server has more searches than it can run: try again in a moment";
    ApiError::unavailable("overloaded", message).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if turns had lasted so long lately.
    fn set_mean(turns: &Turns, mean: Duration) {
        turns.mean.store(micros(mean), Ordering::Relaxed);
    }

    #[tokio::test]
    async fn a_burst_is_served_and_an_overload_is_refused_soon() {
        const HOUR: Duration = Duration::from_secs(3_600);
        let turns = Turns::new(1);
        let turn = turns.take().await.unwrap();
        // However slow the machine is, the burst is not over before the turn is given back.
        set_mean(&turns, HOUR);
        let second = async {
            let _turn = turns.take().await.unwrap();
        };
        // The second one waits by then: it is asked first.
        let end = async { drop(turn) };
        tokio::join!(biased; second, end);

        set_mean(&turns, HOUR);
        let held = turns.take().await.unwrap();
        assert!(turns.check().is_ok());
        set_mean(&turns, BURST);
        tokio::time::sleep(BURST * 2).await;
        assert!(turns.check().is_err());
        // Nobody gives a turn back here: it is the patience that ends.
        assert_eq!(turns.patience(), BURST / 8);
        let refused = turns.take().await.err().unwrap();
        assert_eq!(refused.kind(), "ServiceUnavailableError");
        drop(held);
        assert!(turns.check().is_ok());
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_leaves_a_turn_and_is_not_refused() {
        let turns = Turns::new(2);
        let held = turns.behind().await.unwrap();
        set_mean(&turns, BURST);
        tokio::time::sleep(BURST * 2).await;
        let next = turns.behind();
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
        // Whoever waits has the other turn, and finds the server idle.
        let turn = turns.take().await.unwrap();
        assert!(turns.check().is_ok());
        tokio::time::sleep(BURST * 2).await;
        assert!(turns.check().is_err());
        assert!(futures::poll!(&mut next).is_pending());
        drop(held);
        assert!(next.await.is_some());
        drop(turn);
    }

    #[test]
    fn a_cold_server_waits_for_its_models_and_learns_its_pace() {
        const LOADING: Duration = Duration::from_secs(1);
        let turns = Turns::new(2);
        assert!(turns.is_burst() && turns.patience() > LOADING);
        let after = |mean: u64, turns: usize, took: Duration| {
            (0..turns).fold(mean, |mean, _| learned(mean, micros(took)))
        };
        // Whoever comes while the models load is part of the burst, also beside searches that need none.
        let loaded = after(micros(GUESS), 2, LOADING);
        assert!(burst(Duration::from_micros(loaded)) > LOADING);
        let mixed = after(micros(GUESS), 2, Duration::from_millis(5));
        assert!(Duration::from_micros(mixed) / 3 > LOADING);
        // Some fifty searches later it is told by what they took alone, and by nothing else after a hundred.
        let pace = Duration::from_millis(20);
        assert!(after(loaded, 48, pace) < micros(pace * 3 / 2));
        let settled = after(loaded, 100, pace);
        assert!(settled.abs_diff(micros(pace)) < 100, "{settled}");
        assert_eq!(burst(pace), BURST);
        // One that is slow for a moment does not undo it.
        let slow = after(settled, 1, LOADING);
        assert!(slow < micros(LOADING) / 5, "{slow}");
    }
}
