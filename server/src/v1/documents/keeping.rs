//! Texts of documents without what no database keeps.

use loupe_engine::store::Document;
use loupe_wire::{Object, Value};

/// Takes U+0000 out of what work of the server writes: files have it, and a document that has it could not be changed any more.
pub fn without_nul(document: &mut Document) {
    let is_one = |(name, value): (&String, &Value)| name.contains('\0') || has_nul(value);
    if document.payload.iter().any(is_one) {
        document.payload = cleaned(&document.payload).into();
    }
    if let Some(text) = &mut document.keywords
        && text.contains('\0')
    {
        *text = text.replace('\0', "");
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn cleaned(members: &Object) -> Object {
    fn clean(value: &Value) -> Value {
        match value {
            Value::String(text) => text.replace('\0', "").into(),
            Value::Array(items) => items.iter().map(clean).collect(),
            Value::Object(members) => Value::Object(cleaned(members)),
            other => other.clone(),
        }
    }
    let members = members.iter();
    members
        .map(|(name, value)| (name.replace('\0', ""), clean(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_else_goes_with_it() {
        let payload = json!({"a": 1, "b\0": {"c": ["x\0y", null, {"d\0": "\0"}]}, "e": "whole"});
        let mut document = Document {
            payload: payload.as_object().cloned().unwrap().into(),
            keywords: Some("x\0y".into()),
            ..Default::default()
        };
        without_nul(&mut document);
        let expected = json!({"a": 1, "b": {"c": ["xy", null, {"d": ""}]}, "e": "whole"});
        assert_eq!(Value::from(document.payload), expected);
        assert_eq!(document.keywords.as_deref(), Some("xy"));
    }
}
