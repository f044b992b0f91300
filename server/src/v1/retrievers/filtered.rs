//! The fields that searches filter on.

use std::collections::BTreeSet;

use loupe_wire::{RetrieverModelOutput, Value};

/// The fields that the stages of a retriever filter on: each condition names one beside its operator or value. What a template
/// names is known of no search.
pub(super) fn fields(retriever: &RetrieverModelOutput) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for stage in &retriever.stages {
        stage
            .config
            .values()
            .for_each(|value| gather(value, &mut found));
    }
    found
}

fn gather(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| gather(one, found)),
        Value::Object(members) => {
            let field = members.get("field").and_then(Value::as_str);
            let is_condition = members.contains_key("operator") || members.contains_key("value");
            if let Some(field) = field.filter(|field| is_condition && !field.contains("{{")) {
                found.insert(field.to_owned());
            }
            members.values().for_each(|one| gather(one, found));
        }
        _ => {}
    }
}
