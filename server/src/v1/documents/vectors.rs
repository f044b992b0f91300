//! Vectors as callers send them.

use std::collections::BTreeMap;

use loupe_engine::store::CollectionSpec;
use loupe_wire::{Object, Value};

use crate::error::{ApiError, Result, Violation};

/// Refuses vectors that the collection has no index for, of a wrong length or with numbers that are none. `path` is where
/// they stand in the body.
pub(super) fn check_vectors(
    spec: &CollectionSpec,
    vectors: &Object,
    path: &[&str],
) -> Result<BTreeMap<String, Vec<f32>>> {
    let mut checked = BTreeMap::new();
    for (name, value) in vectors {
        let fault = |kind: &str, msg: String| {
            let place: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            ApiError::from(Violation::body(&place, kind, msg, Value::Null))
        };
        let Some(index) = spec.vectors.iter().find(|index| index.name == *name) else {
            let known: Vec<&str> = spec
                .vectors
                .iter()
                .map(|index| index.name.as_str())
                .collect();
            let msg = format!(
                "the collection has no vector index '{name}'; it has: {}",
                known.join(", ")
            );
            return Err(fault("value_error", msg));
        };
        if let Some(what) = other_kind(value) {
            let msg = format!("{what} are not kept by this server: send one list of numbers");
            return Err(fault("vector_kind", msg));
        }
        let numbers = numbers(value);
        if numbers.len() != index.dims {
            let msg = format!(
                "the vector has {} numbers, the index '{name}' takes {}",
                numbers.len(),
                index.dims
            );
            return Err(fault("vector_dimensions", msg));
        }
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(fault(
                "finite_number",
                "every number of a vector must be finite".into(),
            ));
        }
        checked.insert(name.clone(), numbers);
    }
    Ok(checked)
}

/// What a value is that is another kind of vector.
fn other_kind(value: &Value) -> Option<&'static str> {
    let items = value.as_array();
    match value.is_object() {
        true => Some("sparse vectors"),
        false if items.is_some_and(|items| items.iter().any(Value::is_array)) => {
            Some("several vectors of one document")
        }
        false => None,
    }
}

/// The numbers of a list; what is none in their place is not finite.
#[expect(
    clippy::cast_possible_truncation,
    reason = "vectors are kept in single precision"
)]
fn numbers(value: &Value) -> Vec<f32> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .map(|item| item.as_f64().map_or(f32::NAN, |number| number as f32))
        .collect()
}
