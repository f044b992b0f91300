//! How much memory values take, for caches that are bounded by it. As JSON text they would weigh a tenth of it.

use loupe_wire::{Object, Value};

/// A member of an object: its hash, its name's place, its value's place, its share of the table, and what a table that grows
/// leaves free.
const MEMBER: usize = 176;
const ITEM: usize = size_of::<Value>();
/// What an allocation costs beside what it holds.
const PIECE: usize = 16;

/// Bytes of an object, roughly.
pub fn of_object(object: &Object) -> usize {
    let members = object.iter();
    let members = members.map(|(name, value)| MEMBER + PIECE + name.len() + heap(value));
    PIECE + members.sum::<usize>()
}

/// Bytes of a value, roughly.
pub fn of(value: &Value) -> usize {
    ITEM + heap(value)
}

/// What a value has elsewhere than in its place.
fn heap(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => PIECE + text.len(),
        Value::Array(items) => PIECE + items.iter().map(of).sum::<usize>(),
        Value::Object(members) => of_object(members),
    }
}
