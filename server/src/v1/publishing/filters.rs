//! The fields that a page offers as filters, where its owner wants filters and does not say which.

use std::collections::BTreeMap;

use loupe_engine::{filter::values_at, store::ListQuery};
use loupe_wire::{DisplayConfig, FieldFormatType, RetrieverModelOutput, Value};
use serde_json::json;

use crate::{
    app::App,
    auth::{Level, Scope},
    error::Result,
};

/// Documents that are looked at, exposed fields of them, and filters that a page gets.
const DOCUMENTS: usize = 500;
const FIELDS: usize = 24;
const MOST: usize = 6;

/// Values that visitors choose from, and letters of one: what has more is no choice.
const VALUES: usize = 12;
const LETTERS: usize = 40;

/// Names them in `extensions.facets`, by what is in the first documents.
///
/// # Errors
/// The document store does not answer.
pub(super) async fn choose<L: Level>(
    app: &App,
    scope: &Scope<L>,
    retriever: &RetrieverModelOutput,
    display: &mut DisplayConfig,
) -> Result<()> {
    if !is_left_open(display) || retriever.collection_ids.is_empty() {
        return Ok(());
    }
    let reach = scope.reach(retriever.collection_ids.clone());
    let query = ListQuery {
        limit: DOCUMENTS,
        ..Default::default()
    };
    let page = app.store().list(&reach, query).await?;
    let documents = page.documents.into_iter();
    let documents = documents.map(|document| Value::from(document.payload));
    let documents: Vec<Value> = documents.collect();
    let fields = display.exposed_fields.iter().take(FIELDS);
    let chosen = fields.filter(|field| is_choice(&counted(&documents, field)));
    let chosen: Vec<String> = chosen.take(MOST).cloned().collect();
    if !chosen.is_empty() {
        let extensions = display.extensions.get_or_insert_default();
        extensions.insert("facets".to_owned(), json!(chosen));
    }
    Ok(())
}

/// In how many documents each value of a field is, by the value as JSON; none where one of them is nothing to choose.
fn counted(documents: &[Value], field: &str) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    let found = documents.iter().flat_map(|one| values_at(one, field));
    let values = found.flat_map(|value| match value {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    });
    for value in values.filter(|value| !value.is_null()) {
        if !is_short(value) {
            return BTreeMap::new();
        }
        *counted.entry(value.to_string()).or_insert(0) += 1;
    }
    counted
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && text.chars().count() <= LETTERS,
        Value::Bool(_) | Value::Number(_) => true,
        _ => false,
    }
}

/// Whether the page is to have filters and nothing says which.
fn is_left_open(display: &DisplayConfig) -> bool {
    let wanted = display.components.as_ref();
    let wanted = wanted.is_some_and(|components| components.show_filters);
    let extensions = display.extensions.as_ref();
    let is_said = extensions.is_some_and(|extensions| extensions.contains_key("facets"));
    // Pages offer such fields without being told.
    let is_offered = |format| matches!(format, FieldFormatType::Array | FieldFormatType::Boolean);
    let mut formats = display.field_config.values().map(|config| config.format);
    wanted && !is_said && !formats.any(is_offered)
}

/// Whether documents share the values of a field, and these are few.
fn is_choice(counted: &BTreeMap<String, u64>) -> bool {
    (2..=VALUES).contains(&counted.len()) && counted.values().any(|count| *count > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_short_values_that_documents_share_are_a_choice() {
        let of = |values: &[Value]| {
            let documents = values.iter().map(|value| json!({ "of": value }));
            is_choice(&counted(&documents.collect::<Vec<_>>(), "of"))
        };
        assert!(of(&[json!("drama"), json!("comedy"), json!("drama")]));
        assert!(of(&[json!(true), json!(false), json!(true)]));
        assert!(of(&[json!(["a", "b"]), json!(["b"]), Value::Null]));
        // A title of each, one for all, a text, what is no value, and too many.
        assert!(!of(&[json!("M"), json!("Faust")]));
        assert!(!of(&[json!("film"), json!("film")]));
        assert!(!of(&[json!("a".repeat(41)), json!("b"), json!("b")]));
        assert!(!of(&[json!({"a": 1}), json!("b"), json!("b")]));
        let many: Vec<Value> = (0..26).map(|year| json!(year / 2)).collect();
        assert!(!of(&many));
    }
}
