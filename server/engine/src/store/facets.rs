//! How often which value of a field occurs.

use std::collections::BTreeMap;

use loupe_wire::Value;

use super::FacetCount;
use crate::filter::{sort_values, values_at};

/// Values of one field and how many documents have each.
#[derive(Debug, Default)]
pub struct Counts {
    /// Keyed by JSON text: `1` and `"1"` are two values.
    values: BTreeMap<String, FacetCount>,
}

impl Counts {
    /// Counts what a document has in a field.
    pub fn add(&mut self, document: &Value, field: &str) {
        self.add_values(values(document, field));
    }

    /// The same of values that were taken out of a document.
    pub fn add_values(&mut self, values: BTreeMap<String, Value>) {
        for (key, value) in values {
            let entry = self.values.entry(key);
            let counted = entry.or_insert_with(|| FacetCount { value, count: 0 });
            counted.count += 1;
        }
    }

    /// The most frequent values, those of one frequency in their order.
    pub fn most_frequent(self, limit: usize) -> Vec<FacetCount> {
        let mut counts: Vec<FacetCount> = self.values.into_values().collect();
        counts.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| sort_values(Some(&a.value), Some(&b.value)))
        });
        counts.truncate(limit);
        counts
    }
}

/// The distinct scalars of a field in one document.
pub fn values(document: &Value, field: &str) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let mut note = |value: &Value| {
        if !matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            values.insert(value.to_string(), value.clone());
        }
    };
    for value in values_at(document, field) {
        match value {
            Value::Array(items) => items.iter().for_each(&mut note),
            scalar => note(scalar),
        }
    }
    values
}
