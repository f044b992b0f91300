//! How many bytes an organization has in storage: a sum over all of its objects, which is not made for every look at a bill.

use std::time::{Duration, Instant};

use moka::{Expiry, sync::Cache};

use super::store;
use crate::{app::App, error::Result};

/// A sum is kept for so many times as long as it took: a hundredth of one reader's time is spent on it at most.
const RESTS: u32 = 100;

/// The sum, and how long it may be told.
#[derive(Clone, Copy)]
struct Sum {
    bytes: i64,
    lasts: Duration,
}

struct Lasting;

/// The organization, and the moment (µs) before which objects were made.
type Key = (String, i64);

impl Expiry<Key, Sum> for Lasting {
    fn expire_after_create(&self, _: &Key, sum: &Sum, _: Instant) -> Option<Duration> {
        Some(sum.lasts)
    }
}

/// What organizations had in storage lately.
pub struct Stored(Cache<Key, Sum>);

impl Default for Stored {
    fn default() -> Self {
        Self(
            Cache::builder()
                .max_capacity(10_000)
                .expire_after(Lasting)
                .build(),
        )
    }
}

/// Bytes of the objects that were there before a moment and still are, as they were a moment ago where there are many.
///
/// # Errors
/// The database does not answer.
pub(super) async fn bytes(app: &App, org_id: &str, before: i64) -> Result<i64> {
    let key = (org_id.to_owned(), before);
    if let Some(sum) = app.stored.0.get(&key) {
        return Ok(sum.bytes);
    }
    let began = Instant::now();
    let bytes = store::stored_bytes(app.db(), org_id, before).await?;
    let took = began.elapsed();
    // What is quick is exact.
    if took > Duration::from_millis(5) {
        let lasts = took * RESTS;
        app.stored.0.insert(key, Sum { bytes, lasts });
    }
    Ok(bytes)
}
