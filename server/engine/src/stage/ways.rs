//! Why a document stands where it does: its place and its scores after every stage.

use std::collections::HashMap;

use indexmap::IndexMap;
use loupe_wire::{Object, Value};
use serde_json::json;

use super::working::{Row, Working};

/// The ways of the documents through the stages; kept only where somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Ways(HashMap<String, Vec<Value>>);

impl Ways {
    /// Writes down where every document stands after a stage. What no stage has read stands nowhere.
    pub fn note(&mut self, stage: &str, set: &Working) {
        let Working::Rows(rows) = set else { return };
        let mut seen: IndexMap<&str, (usize, &Row)> = IndexMap::with_capacity(rows.len());
        for (place, row) in rows.iter().enumerate() {
            if !row.id().is_empty() {
                seen.entry(row.id()).or_insert((place, row));
            }
        }
        for (id, (place, row)) in seen {
            let steps = self.0.entry(id.to_owned()).or_default();
            let before = steps.last().and_then(|step| step["rank"].as_u64());
            let mut step = json!({"stage": stage, "rank": place + 1});
            if let Some(before) = before {
                step["rank_before"] = before.into();
            }
            for member in ["score", "scores"] {
                if let Some(value) = row.value.get(member) {
                    step[member] = value.clone();
                }
            }
            steps.push(step);
        }
    }

    /// The ways of these documents, by their ids.
    pub fn of(mut self, rows: &[Row]) -> Object {
        let told = rows.iter().filter_map(|row| {
            let steps = self.0.remove(row.id())?;
            Some((row.id().to_owned(), Value::Array(steps)))
        });
        told.collect()
    }
}
