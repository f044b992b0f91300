//! The columns of a table of documents, found by looking at every one of them.

use indexmap::IndexMap;
use loupe_wire::{Object, Value};

use crate::error::{ApiError, Result};

/// Columns of one file.
const MOST: usize = 2_000;

/// What all values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Flag,
    Integer,
    Number,
    Text,
    /// Numbers of single precision: a vector.
    Vector,
    /// Values of several kinds, lists and objects: written as JSON.
    Mixed,
}

/// Columns in the order in which they were met.
#[derive(Debug, Clone, Default)]
pub struct Columns(IndexMap<String, Kind>);

fn kind(name: &str, value: &Value) -> Option<Kind> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => Kind::Flag,
        Value::Number(number) if number.is_i64() => Kind::Integer,
        Value::Number(_) => Kind::Number,
        Value::String(_) => Kind::Text,
        Value::Array(_) if name.starts_with("vectors.") => Kind::Vector,
        Value::Array(_) | Value::Object(_) => Kind::Mixed,
    })
}

impl Columns {
    /// Takes a row into account.
    ///
    /// # Errors
    /// The documents have more fields than a table should.
    pub fn add(&mut self, row: &Object) -> Result<()> {
        for (name, value) in row {
            let Some(kind) = kind(name, value) else {
                continue;
            };
            let known = self.0.entry(name.clone()).or_insert(kind);
            *known = match (*known, kind) {
                (a, b) if a == b => a,
                (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
                _ => Kind::Mixed,
            };
        }
        if self.0.len() > MOST {
            let message = format!(
                "the documents have more than {MOST} fields: name some by select_fields, or ask for json"
            );
            return Err(ApiError::bad_request("too_many_fields", message));
        }
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.0.iter().map(|(name, kind)| (name.as_str(), *kind))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_is_what_all_its_values_are() {
        let mut columns = Columns::default();
        for row in [
            json!({"a": 1, "b": true, "c": null, "d": "x", "vectors.v": [0.5]}),
            json!({"a": 1.5, "b": true, "c": {"x": 1}, "d": 2, "vectors.v": [0.5]}),
        ] {
            columns.add(row.as_object().unwrap()).unwrap();
        }
        let found: Vec<_> = columns.iter().collect();
        let expected = [
            ("a", Kind::Number),
            ("b", Kind::Flag),
            ("d", Kind::Mixed),
            ("vectors.v", Kind::Vector),
            ("c", Kind::Mixed),
        ];
        assert_eq!(found, expected);
        let wide = (0..=MOST)
            .map(|number| (number.to_string(), json!(1)))
            .collect();
        assert!(columns.add(&wide).is_err());
    }
}
