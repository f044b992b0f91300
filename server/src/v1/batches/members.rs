//! Which objects a batch has, kept for those who look at it again and again while it runs.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;

use super::store;
use crate::{app::App, error::Result};

/// How long the ids of a batch are kept that nobody looks at.
const IDLE: Duration = Duration::from_secs(60);

/// Ids that are kept of all batches, each of some 60 bytes.
const MOST: u64 = 500_000;

/// The batch, and how many objects it has: objects are only ever added to one, so that as many are the same ones.
type Key = (String, i64);

/// The ids of objects of batches that were looked at lately.
pub struct Members(Cache<Key, Arc<Vec<String>>>);

impl Default for Members {
    fn default() -> Self {
        let kept = Cache::builder()
            .max_capacity(MOST)
            .weigher(|_, ids: &Arc<Vec<String>>| u32::try_from(ids.len()).unwrap_or(u32::MAX))
            .time_to_idle(IDLE);
        Self(kept.build())
    }
}

/// The ids of the batch's objects in their order, of which there are so many.
///
/// # Errors
/// The database does not answer.
pub(super) async fn find(app: &App, batch_id: &str, count: i64) -> Result<Arc<Vec<String>>> {
    let key = (batch_id.to_owned(), count);
    if let Some(known) = app.members.0.get(&key) {
        return Ok(known);
    }
    let ids = Arc::new(store::object_ids(app.db(), batch_id).await?);
    // Some may have been added since they were counted.
    if i64::try_from(ids.len()) == Ok(count) {
        app.members.0.insert(key, ids.clone());
    }
    Ok(ids)
}
