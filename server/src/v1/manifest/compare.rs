//! Whether a resource is as a manifest says.

use loupe_wire::{Object, Value};

use super::{kinds::Kind, placeholders};

/// How a secret is shown.
const MASK: &str = "********";
const SEALED: &str = "sealed:";

/// What is otherwise than a manifest says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Members that differ.
    pub drift: Vec<String>,
    /// Members of which not all is told.
    pub unseen: Vec<String>,
}

/// Compares what is said with what is there; what is not said may be as it likes. Both have names, or both ids.
pub fn differences(kind: Kind, said: &Object, there: &Object) -> Differences {
    let mut found = Differences::default();
    for (name, said) in said {
        if kind.untold().contains(&name.as_str()) {
            found.unseen.push(name.clone());
            continue;
        }
        let mut unseen = false;
        if differs(said, there.get(name).unwrap_or(&Value::Null), &mut unseen) {
            found.drift.push(name.clone());
        } else if unseen {
            found.unseen.push(name.clone());
        }
    }
    found
}

/// Whether a text stands for a secret that is not told.
pub fn is_hidden(text: &str) -> bool {
    text == MASK || text.starts_with(SEALED)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn differs(said: &Value, there: &Value, unseen: &mut bool) -> bool {
    match (said, there) {
        (Value::Null, _) => false,
        (Value::String(said), _) if placeholders::has_secret(said) => {
            *unseen = true;
            false
        }
        (_, Value::String(there)) if is_hidden(there) => {
            *unseen = true;
            false
        }
        (Value::Object(said), Value::Object(there)) => said.iter().any(|(name, said)| {
            let there = there.get(name).unwrap_or(&Value::Null);
            differs(said, there, unseen)
        }),
        (Value::Array(said), Value::Array(there)) => {
            let mut pairs = said.iter().zip(there);
            said.len() != there.len() || pairs.any(|(said, there)| differs(said, there, unseen))
        }
        (Value::Number(said), Value::Number(there)) => {
            said != there && said.as_f64() != there.as_f64()
        }
        (said, Value::Null) => !is_empty(said),
        (said, there) => said != there,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_is_compared_and_nothing_else() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let there = object(
            json!({"description": "a", "bucket_schema": {"properties": {"x": {"type": "text", "more": 1}}}, "metadata": {"n": 1.0}, "unique_key": null, "key": {"url": MASK}}),
        );
        let same = object(
            json!({"description": "a", "bucket_schema": {"properties": {"x": {"type": "text"}}}, "metadata": {"n": 1}, "unique_key": {}, "key": {"url": "${{ secrets.url }}"}}),
        );
        let found = differences(Kind::Bucket, &same, &there);
        assert_eq!(
            found,
            Differences {
                drift: vec![],
                unseen: vec!["key".into()]
            }
        );
        let other = object(
            json!({"description": "b", "bucket_schema": {"properties": {"y": {}}}, "metadata": {"n": [1]}, "unique_key": {"fields": ["x"]}}),
        );
        let found = differences(Kind::Bucket, &other, &there);
        assert_eq!(found.drift, ["description", "metadata", "unique_key"]);
        let other = object(json!({"bucket_schema": {"properties": {"y": {"type": "text"}}}}));
        assert_eq!(
            differences(Kind::Bucket, &other, &there).drift,
            ["bucket_schema"]
        );
    }
}
