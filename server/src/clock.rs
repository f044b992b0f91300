//! The one clock. Tests move it.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, Utc};

/// Wall-clock time plus an offset that tests set. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    offset_micros: Arc<AtomicI64>,
    /// The moment at which tests hold it; 0 while it goes.
    held_micros: Arc<AtomicI64>,
}

impl Clock {
    /// Microseconds since 1970, as the databases keep time.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn micros(&self) -> i64 {
        match self.held_micros.load(Ordering::Relaxed) {
            0 => Utc::now().timestamp_micros() + self.offset_micros.load(Ordering::Relaxed),
            held => held,
        }
    }

    pub fn now(&self) -> DateTime<Utc> {
        time(self.micros())
    }

    /// Moves the clock; for tests.
    pub fn advance(&self, seconds: i64) {
        let micros = seconds * 1_000_000;
        self.offset_micros.fetch_add(micros, Ordering::Relaxed);
        if self.held_micros.load(Ordering::Relaxed) != 0 {
            self.held_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// From now on only [`Self::advance`] moves the clock: no second passes by itself while a test looks; for tests.
    pub fn hold(&self) {
        self.held_micros.store(self.micros(), Ordering::Relaxed);
    }
}

/// A database time as a moment.
pub fn time(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}
