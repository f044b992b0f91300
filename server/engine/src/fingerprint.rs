//! What answers are known by: a digest of values as they lie in memory. Written as JSON first, a vector of 384 numbers costs
//! more than the walk through an index to its neighbours.

use loupe_wire::{Object, Value};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Gathers the parts of a digest. Each tells its kind and its length, so that no two lists of parts read alike.
#[derive(Default)]
pub struct Fingerprint(Vec<u8>);

impl Fingerprint {
    /// A text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.put(b's', text.as_bytes());
        self
    }

    /// Anything small, as JSON.
    #[must_use]
    pub fn part(mut self, part: &impl Serialize) -> Self {
        // What could not be written must not be known by what is another's.
        let text =
            serde_json::to_vec(part).expect("maps have text for keys, and memory is written to");
        self.put(b'j', &text);
        self
    }

    /// A value of any shape and size.
    #[must_use]
    pub fn value(mut self, value: &Value) -> Self {
        self.put_value(value);
        self
    }

    /// An object; the order of its members counts.
    #[must_use]
    pub fn object(mut self, object: &Object) -> Self {
        self.put_object(object);
        self
    }

    /// SHA-256 of the parts.
    pub fn finish(self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }

    fn put(&mut self, kind: u8, bytes: &[u8]) {
        self.head(kind, bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn head(&mut self, kind: u8, length: usize) {
        self.0.push(kind);
        self.0.extend_from_slice(&length.to_le_bytes());
    }

    fn put_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.push(b'n'),
            Value::Bool(true) => self.0.push(b'y'),
            Value::Bool(false) => self.0.push(b'x'),
            Value::Number(number) => {
                let (kind, bits) = if let Some(whole) = number.as_u64() {
                    (b'u', whole)
                } else if let Some(whole) = number.as_i64() {
                    (b'i', whole.cast_unsigned())
                } else {
                    (b'f', number.as_f64().unwrap_or_default().to_bits())
                };
                self.0.push(kind);
                self.0.extend_from_slice(&bits.to_le_bytes());
            }
            Value::String(text) => self.put(b's', text.as_bytes()),
            Value::Array(items) => {
                self.head(b'a', items.len());
                items.iter().for_each(|item| self.put_value(item));
            }
            Value::Object(object) => self.put_object(object),
        }
    }

    fn put_object(&mut self, object: &Object) {
        self.head(b'o', object.len());
        for (name, value) in object {
            self.put(b's', name.as_bytes());
            self.put_value(value);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_as_json_is_known_by_something_else() {
        let values = [
            json!(null),
            json!(true),
            json!(false),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(0.0),
            json!(-0.0),
            json!(1.0),
            json!(1),
            json!("1"),
            json!(""),
            json!([]),
            json!({}),
            json!([[]]),
            json!(["a", "b"]),
            json!(["ab"]),
            json!(["a"]),
            json!([["a"], "b"]),
            json!([["a", "b"]]),
            json!({"a": "b"}),
            json!({"a": {"b": null}}),
            json!({"a": null, "b": null}),
            json!({"b": null, "a": null}),
        ];
        let known = |value: &Value| Fingerprint::default().value(value).finish();
        for (i, one) in values.iter().enumerate() {
            for (j, other) in values.iter().enumerate() {
                assert_eq!(known(one) == known(other), i == j, "{one} and {other}");
            }
        }
        let parts = |a: &str, b: &str| Fingerprint::default().text(a).text(b).finish();
        assert_ne!(parts("ab", "c"), parts("a", "bc"));
    }
}
