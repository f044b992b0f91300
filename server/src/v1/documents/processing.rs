//! What the record of a document tells of what was done with it.

use loupe_engine::store::Document;
use loupe_wire::Value;
use serde_json::json;

/// Puts what somebody says into a list of the record, in place of what they said before: whose an entry is stands in `member`.
pub fn note_processing(
    document: &mut Document,
    list: &str,
    (member, id): (&str, &str),
    said: impl IntoIterator<Item = Value>,
) {
    let internal = document
        .payload
        .entry("_internal")
        .or_insert_with(|| json!({}));
    if !internal["processing"].is_object() {
        internal["processing"] = json!({});
    }
    let place = &mut internal["processing"][list];
    let mut entries = match place.take() {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    };
    entries.retain(|one| one[member] != id);
    entries.extend(said);
    *place = Value::Array(entries);
}
