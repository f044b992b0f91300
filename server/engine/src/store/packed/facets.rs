//! How often which value occurs.

use std::collections::BTreeMap;
use std::sync::Arc;

use loupe_wire::Value;

use super::super::shards::{Shard, Shards};
use super::super::{FacetCount, Result, layout};
use super::{Access, PAGE, Packed};
use crate::filter::{sort_values, values_at};

/// Counts the values of a field over all shards.
pub async fn count<S: Shards>(
    store: &Packed<S>,
    shards: Vec<Arc<Shard>>,
    access: &Access,
    field: &str,
    limit: usize,
) -> Result<Vec<FacetCount>> {
    // Keyed by JSON text: `1` and `"1"` are two values.
    let mut counts: BTreeMap<String, FacetCount> = BTreeMap::new();
    for shard in &shards {
        store
            .each(shard, access, None, PAGE, true, &mut |_, mut document| {
                for (key, value) in layout::viewed(&mut document, |view| values(view, field)) {
                    counts
                        .entry(key)
                        .or_insert_with(|| FacetCount { value, count: 0 })
                        .count += 1;
                }
                true
            })
            .await?;
    }
    let mut counts: Vec<FacetCount> = counts.into_values().collect();
    counts.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| sort_values(Some(&a.value), Some(&b.value)))
    });
    counts.truncate(limit);
    Ok(counts)
}

/// The distinct scalars of a field in one document.
fn values(view: &Value, field: &str) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let mut note = |value: &Value| {
        if !matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            values.insert(value.to_string(), value.clone());
        }
    };
    for value in values_at(view, field) {
        match value {
            Value::Array(items) => items.iter().for_each(&mut note),
            scalar => note(scalar),
        }
    }
    values
}
