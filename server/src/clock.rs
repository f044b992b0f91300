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
}

impl Clock {
    /// Microseconds since 1970, as the databases keep time.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the system's clock"
    )]
    pub fn micros(&self) -> i64 {
        Utc::now().timestamp_micros() + self.offset_micros.load(Ordering::Relaxed)
    }

    pub fn now(&self) -> DateTime<Utc> {
        time(self.micros())
    }

    /// Moves the clock; for tests.
    pub fn advance(&self, seconds: i64) {
        self.offset_micros
            .fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

/// A database time as a moment.
pub fn time(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}
