//! Dot paths into the members of an object.

use loupe_wire::{Object, Value};

/// The value at a path. A member whose name holds dots wins over the path.
pub fn get<'a>(fields: &'a Object, path: &str) -> Option<&'a Value> {
    if let Some(value) = fields.get(path) {
        return Some(value);
    }
    let (head, rest) = path.split_once('.')?;
    match fields.get(head)? {
        Value::Object(inner) => get(inner, rest),
        Value::Array(items) => {
            let (index, rest) = rest
                .split_once('.')
                .map_or((rest, None), |(index, rest)| (index, Some(rest)));
            let item = items.get(index.parse::<usize>().ok()?)?;
            match (rest, item) {
                (None, item) => Some(item),
                (Some(rest), Value::Object(inner)) => get(inner, rest),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Takes the value at a path out; what is left keeps its place.
pub fn take(fields: &mut Object, path: &str) -> Option<Value> {
    if fields.contains_key(path) {
        return fields.shift_remove(path);
    }
    let (head, rest) = path.split_once('.')?;
    match fields.get_mut(head)? {
        Value::Object(inner) => take(inner, rest),
        _ => None,
    }
}

/// Puts a value at a path, making the objects on the way.
pub fn set(fields: &mut Object, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            fields.insert(path.to_owned(), value);
        }
        Some((head, rest)) => {
            let inner = fields
                .entry(head.to_owned())
                .or_insert_with(|| Value::Object(Object::new()));
            if !inner.is_object() {
                *inner = Value::Object(Object::new());
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Every text below a value, in order.
pub fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(members) => members.values().for_each(|member| texts(member, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_taken_and_set() {
        let Value::Object(mut fields) = json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3}) else {
            return;
        };
        assert_eq!(get(&fields, "a.b.1.c"), Some(&json!(2)));
        assert_eq!(get(&fields, "x.y"), Some(&json!(3)));
        assert_eq!(get(&fields, "a.z"), None);
        assert_eq!(take(&mut fields, "a.b"), Some(json!([1, {"c": 2}])));
        set(&mut fields, "a.d.e", json!(true));
        assert_eq!(
            Value::Object(fields),
            json!({"a": {"d": {"e": true}}, "x.y": 3})
        );
    }
}
