//! A bucket of tokens, in whole numbers: what a key may still do in its minute and in its second.
//!
//! A bucket of capacity `burst` that fills at `limit` a minute lets through at most `limit + burst` requests in any minute.
//! The crate `governor` counts the same way, but decides one window at a time: a request that the minute refuses would
//! still cost a token of the second; and it has nothing that several processes could share.

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_minute: i64,
    pub per_second: i64,
    /// Tokens that an idle key banks.
    pub burst: i64,
    /// Requests of the whole organization under way at once.
    pub concurrent: i64,
}

impl Rate {
    /// The same with fewer requests a minute; nothing else may then exceed them.
    #[must_use]
    pub fn capped(self, per_minute: Option<i64>) -> Self {
        let cap = per_minute.unwrap_or(i64::MAX).clamp(1, self.per_minute);
        Self {
            per_minute: cap,
            per_second: self.per_second.min(cap),
            burst: self.burst.min(cap),
            concurrent: self.concurrent,
        }
    }

    /// One of so many equal parts, never nothing.
    #[must_use]
    pub fn part(self, parts: i64) -> Self {
        let part = |figure: i64| (figure / parts).max(1);
        Self {
            per_minute: part(self.per_minute),
            per_second: part(self.per_second),
            burst: part(self.burst),
            concurrent: part(self.concurrent),
        }
    }

    /// No more requests than another rate lets through.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            per_minute: self.per_minute.min(other.per_minute),
            per_second: self.per_second.min(other.per_second),
            burst: self.burst.min(other.burst),
            ..self
        }
    }
}

/// Which of the two windows refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    Minute,
    Second,
}

/// What was decided about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Tokens left, and when the bucket is full again (microseconds from now).
    Taken { remaining: i64, full_in: i64 },
    /// The window, and when a token is there (microseconds from now).
    Refused { window: Window, wait: i64 },
}

/// One window: a token is `token` units, and `rate` units flow in each microsecond, so that nothing is ever rounded.
#[derive(Debug, Clone, Copy)]
struct Flow {
    token: i64,
    rate: i64,
    capacity: i64,
}

/// Microseconds that clocks of several machines may differ by.
const SKEW: i64 = 10_000_000;
/// The same where several processes share a bucket: believing each of two clocks in turn would fill it again and again.
const SHARED_SKEW: i64 = 600_000_000;

/// More than any machine answers: figures above it are this one, so that no sum overflows.
const MOST: i64 = 1_000_000_000;

const fn bounded(figure: i64) -> i64 {
    if figure > MOST { MOST } else { figure }
}

impl Flow {
    const fn minute(rate: &Rate) -> Self {
        Self {
            token: 60_000_000,
            rate: bounded(rate.per_minute),
            capacity: bounded(rate.burst) * 60_000_000,
        }
    }

    const fn second(rate: &Rate) -> Self {
        Self {
            token: 1_000_000,
            rate: bounded(rate.per_second),
            capacity: bounded(rate.per_second) * 1_000_000,
        }
    }

    fn refilled(&self, level: i64, elapsed: i64) -> i64 {
        level
            .saturating_add(elapsed.saturating_mul(self.rate))
            .min(self.capacity)
    }

    /// Microseconds until the level is reached, rounded up.
    const fn time_to(&self, from: i64, level: i64) -> i64 {
        let missing = level - from;
        if missing <= 0 {
            0
        } else {
            (missing + self.rate - 1) / self.rate
        }
    }
}

/// The two windows of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    minute: i64,
    second: i64,
    at: i64,
    /// How far its moment may lie ahead before the clock is believed to be set back.
    skew: i64,
}

impl Bucket {
    /// A full one.
    pub const fn full(rate: &Rate, now: i64) -> Self {
        Self {
            minute: Flow::minute(rate).capacity,
            second: Flow::second(rate).capacity,
            at: now,
            skew: SKEW,
        }
    }

    /// As another process left it.
    pub const fn stored(minute: i64, second: i64, at: i64) -> Self {
        Self {
            minute,
            second,
            at,
            skew: SHARED_SKEW,
        }
    }

    /// What another process is to find.
    pub const fn parts(&self) -> (i64, i64, i64) {
        (self.minute, self.second, self.at)
    }

    fn refill(&mut self, rate: &Rate, now: i64) {
        // Clocks of several machines differ a little: going back gives nothing and takes nothing. One that was set back is
        // believed, or nobody would get anything until it is where it was.
        let elapsed = (now - self.at).max(0);
        self.at = if self.at - now > self.skew {
            now
        } else {
            self.at.max(now)
        };
        self.minute = Flow::minute(rate).refilled(self.minute, elapsed);
        self.second = Flow::second(rate).refilled(self.second, elapsed);
    }

    /// Takes a token of both windows, or of none.
    pub fn take(&mut self, rate: &Rate, now: i64) -> Verdict {
        self.refill(rate, now);
        let (minute, second) = (Flow::minute(rate), Flow::second(rate));
        let waits = [
            (Window::Minute, minute.time_to(self.minute, minute.token)),
            (Window::Second, second.time_to(self.second, second.token)),
        ];
        if let Some((window, wait)) = waits
            .into_iter()
            .filter(|(_, wait)| *wait > 0)
            .max_by_key(|(_, wait)| *wait)
        {
            return Verdict::Refused { window, wait };
        }
        self.minute -= minute.token;
        self.second -= second.token;
        let (remaining, full_in) = self.left(rate);
        Verdict::Taken { remaining, full_in }
    }

    /// Takes up to `most` tokens at once, for a process that hands them out itself.
    ///
    /// # Errors
    /// The refusal, when there is none.
    pub fn take_block(&mut self, rate: &Rate, now: i64, most: i64) -> Result<i64, Verdict> {
        if let refused @ Verdict::Refused { .. } = self.take(rate, now) {
            return Err(refused);
        }
        let (minute, second) = (Flow::minute(rate), Flow::second(rate));
        let there = (self.minute / minute.token).min(self.second / second.token);
        let more = there.min(most - 1).max(0);
        self.minute -= more * minute.token;
        self.second -= more * second.token;
        Ok(1 + more)
    }

    /// As [`Bucket::left`], at this moment; nothing is taken.
    pub fn seen(mut self, rate: &Rate, now: i64) -> (i64, i64) {
        self.refill(rate, now);
        self.left(rate)
    }

    /// Tokens left, and microseconds until it is full again.
    pub fn left(&self, rate: &Rate) -> (i64, i64) {
        let minute = Flow::minute(rate);
        (
            self.minute / minute.token,
            minute.time_to(self.minute, minute.capacity),
        )
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    const FREE: Rate = Rate {
        per_minute: 60,
        per_second: 10,
        burst: 20,
        concurrent: 5,
    };

    #[test]
    fn a_clock_that_was_set_back_holds_nobody_up() {
        const MINUTE: i64 = 60_000_000;
        let mut bucket = Bucket::full(&FREE, 100 * MINUTE);
        let mut takes = |now: i64| matches!(bucket.take(&FREE, now), Verdict::Taken { .. });
        while takes(100 * MINUTE) {}
        assert!(!takes(100 * MINUTE - SKEW), "a little gives nothing");
        assert!(!takes(10 * MINUTE), "nor does an hour, by itself");
        assert!(takes(10 * MINUTE + 2_000_000));
    }

    #[test]
    fn processes_with_different_clocks_do_not_fill_what_they_share() {
        let (ahead, mut now) = (15_000_000, 100_000_000_000);
        let mut row = Bucket::stored(0, 0, now).parts();
        let mut taken = 0;
        for _ in 0..100 {
            now += 10_000;
            for now in [now, now + ahead] {
                let mut bucket = Bucket::stored(row.0, row.1, row.2);
                taken += i64::from(matches!(bucket.take(&FREE, now), Verdict::Taken { .. }));
                row = bucket.parts();
            }
        }
        // What the one clock is ahead once, and the second that passes.
        assert!((10..=17).contains(&taken), "{taken}");
    }

    #[test]
    fn figures_without_measure_overflow_nothing() {
        let rate = Rate {
            per_minute: i64::MAX,
            per_second: i64::MAX,
            burst: i64::MAX,
            concurrent: i64::MAX,
        };
        let mut bucket = Bucket::full(&rate, 0);
        for now in [0, 1, i64::MAX / 2] {
            let verdict = bucket.take(&rate, now);
            assert!(matches!(verdict, Verdict::Taken { remaining, .. } if remaining > 0));
        }
        assert!(bucket.take_block(&rate, i64::MAX / 2, 64).is_ok());
    }

    /// The reference: two leaking counters in exact fractions of a token, kept as (amount, denominator 60e6).
    struct Reference {
        minute: i128,
        second: i128,
        at: i128,
    }

    impl Reference {
        fn take(&mut self, rate: &Rate, now: i64) -> bool {
            const TOKEN: i128 = 60_000_000;
            let passed = i128::from(now) - self.at;
            self.at = i128::from(now);
            self.minute = (self.minute + passed * i128::from(rate.per_minute))
                .min(TOKEN * i128::from(rate.burst));
            self.second = (self.second + passed * i128::from(rate.per_second) * 60)
                .min(TOKEN * i128::from(rate.per_second));
            let let_through = self.minute >= TOKEN && self.second >= TOKEN;
            if let_through {
                self.minute -= TOKEN;
                self.second -= TOKEN;
            }
            let_through
        }
    }

    #[test]
    fn it_decides_as_the_reference_and_keeps_the_bound() {
        let seed = std::env::var("LOUPE_TEST_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(rand::random::<u64>);
        println!("LOUPE_TEST_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..50 {
            let rate = Rate {
                per_minute: random.random_range(1..1000),
                per_second: random.random_range(1..100),
                burst: random.random_range(1..200),
                concurrent: 1,
            };
            let mut now = 1_800_000_000_000_000_i64;
            let mut bucket = Bucket::full(&rate, now);
            let mut reference = Reference {
                minute: 60_000_000 * i128::from(rate.burst),
                second: 60_000_000 * i128::from(rate.per_second),
                at: i128::from(now),
            };
            let mut passed = Vec::new();
            for _ in 0..2000 {
                now += random.random_range(0..200_000);
                let taken = matches!(bucket.take(&rate, now), Verdict::Taken { .. });
                assert_eq!(taken, reference.take(&rate, now));
                if taken {
                    passed.push(now);
                }
            }
            for (index, start) in passed.iter().enumerate() {
                let count = |window: i64| {
                    passed[index..]
                        .iter()
                        .take_while(|at| **at < start + window)
                        .count() as i64
                };
                assert!(count(60_000_000) <= rate.per_minute + rate.burst);
                assert!(count(1_000_000) <= 2 * rate.per_second);
            }
        }
    }

    #[test]
    fn whoever_waits_as_told_is_never_refused() {
        let mut now = 0;
        let mut bucket = Bucket::full(&FREE, now);
        let mut refused = 0;
        for _ in 0..500 {
            match bucket.take(&FREE, now) {
                Verdict::Taken { .. } => {}
                Verdict::Refused { wait, .. } => {
                    refused += 1;
                    now += wait;
                    let again = bucket.take(&FREE, now);
                    assert!(matches!(again, Verdict::Taken { .. }), "{again:?}");
                }
            }
        }
        assert!(refused > 100);
    }

    #[test]
    fn what_remains_falls_by_one() {
        let mut bucket = Bucket::full(&FREE, 0);
        let remaining: Vec<i64> = (0..10)
            .map(|_| match bucket.take(&FREE, 0) {
                Verdict::Taken { remaining, .. } => remaining,
                Verdict::Refused { .. } => -1,
            })
            .collect();
        assert_eq!(remaining, [19, 18, 17, 16, 15, 14, 13, 12, 11, 10]);
        let refused = bucket.take(&FREE, 0);
        assert_eq!(
            refused,
            Verdict::Refused {
                window: Window::Second,
                wait: 100_000
            }
        );
    }

    #[test]
    fn a_cap_lowers_and_never_raises() {
        assert_eq!(FREE.capped(None), FREE);
        assert_eq!(FREE.capped(Some(1000)), FREE);
        let low = FREE.capped(Some(3));
        assert_eq!((low.per_minute, low.per_second, low.burst), (3, 3, 3));
    }
}
