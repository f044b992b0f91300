//! How often which value occurs.

use std::sync::Arc;

use super::super::facets::{Counts, values};
use super::super::shards::{Shard, Shards};
use super::super::{FacetCount, Result, layout};
use super::{Access, PAGE, Packed};

/// Counts the values of a field over all shards.
pub async fn count<S: Shards>(
    store: &Packed<S>,
    shards: Vec<Arc<Shard>>,
    access: &Access,
    field: &str,
    limit: usize,
) -> Result<Vec<FacetCount>> {
    let mut counts = Counts::default();
    for shard in &shards {
        store
            .each(shard, access, None, PAGE, true, &mut |_, mut document| {
                counts.add_values(layout::viewed(&mut document, |view| values(view, field)));
                true
            })
            .await?;
    }
    Ok(counts.most_frequent(limit))
}
