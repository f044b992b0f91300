//! How many documents collections hold.

use std::time::{Duration, Instant};

use loupe_engine::store::Reach;
use loupe_wire::CollectionResponse;
use moka::sync::Cache;

use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
};

/// Documents from which on a count is told once more although something was written since, for so many times as long as it took, and
/// how long at most: the store looks at each of them, and beside a batch a count that waits for it takes a hundred times as long.
const LARGE: u64 = 5_000;
const TIMES: u32 = 20;
const LONGEST: Duration = Duration::from_secs(1);

/// Counts of large collections, each with the moment until which it is told.
pub struct Counts(Cache<Reach, (u64, Instant)>);

impl Default for Counts {
    fn default() -> Self {
        let counts = Cache::builder().max_capacity(10_000);
        Self(counts.time_to_live(LONGEST).build())
    }
}

/// Fills in how many documents each collection holds, as this caller sees them.
///
/// # Errors
/// The document store fails.
pub async fn count_documents<L: Level>(
    app: &App,
    scope: &Scope<L>,
    collections: &mut [CollectionResponse],
) -> Result<()> {
    let counts = collections.iter().map(|collection| {
        let reach = scope.reach(collection.collection_id.iter().cloned().collect());
        count(app, reach)
    });
    let counts = futures::future::join_all(counts).await;
    for (collection, count) in collections.iter_mut().zip(counts) {
        let count = i64::try_from(count?).ok();
        if collection.s3_vector_index.is_none() {
            collection.document_count = count;
        } else if scope.caller.principal().is_some() {
            // What is put away was counted then, whoever owned it: how much of it an end user owns nobody knows.
            collection.document_count = None;
        }
    }
    Ok(())
}

async fn count(app: &App, reach: Reach) -> Result<u64> {
    let Counts(kept) = &app.counts;
    let began = Instant::now();
    if let Some((count, until)) = kept.get(&reach)
        && began < until
    {
        return Ok(count);
    }
    let count = app.store().count(&reach, None).await?;
    if count >= LARGE {
        let lasts = (began.elapsed() * TIMES).min(LONGEST);
        kept.insert(reach, (count, Instant::now() + lasts));
    }
    Ok(count)
}
