//! The fields of a document, shared for as long as nobody changes them.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use loupe_wire::{Object, Value};
use serde_json::value::RawValue;

/// Bytes of the longest text that is kept.
const LONGEST: usize = 16 << 10;

/// An object that costs nothing to copy. Whoever changes it has its own copy from then on, unless nobody else holds it: what
/// was read lately is kept by the store, and answers are written from what is kept.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Object")]
pub struct Payload(#[serde(serialize_with = "fields")] Arc<Fields>);

#[derive(Debug, Default)]
struct Fields {
    object: Object,
    text: OnceLock<Text>,
}

/// How a document of these fields was answered.
#[derive(Debug)]
struct Text {
    ids: [Box<str>; 2],
    json: Box<RawValue>,
}

/// Whoever needs a copy is about to change it.
impl Clone for Fields {
    fn clone(&self) -> Self {
        Self {
            object: self.object.clone(),
            text: OnceLock::new(),
        }
    }
}

fn fields<S: serde::Serializer>(
    fields: &Arc<Fields>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&fields.object, serializer)
}

impl Payload {
    /// The JSON that `write` makes of these fields for the document and the collection of these ids: made once and kept with
    /// the fields, for as long as nobody changes them. Always the same for the same fields and ids.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn written<E>(
        &self,
        ids: [&str; 2],
        write: impl FnOnce() -> Result<Box<RawValue>, E>,
    ) -> Result<Cow<'_, RawValue>, E> {
        if let Some(text) = self.0.text.get()
            && ids == text.ids.each_ref().map(AsRef::as_ref)
        {
            return Ok(Cow::Borrowed(&text.json));
        }
        let json = write()?;
        if json.get().len() > LONGEST {
            return Ok(Cow::Owned(json));
        }
        let ids = ids.map(Into::into);
        match self.0.text.set(Text { ids, json }) {
            // Kept just now.
            Ok(()) => Ok(Cow::Borrowed(&self.0.text.wait().json)),
            // Somebody else was first, or asked for other ids.
            Err(text) => Ok(Cow::Owned(text.json)),
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.0.object == other.0.object
    }
}

impl Deref for Payload {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0.object
    }
}

impl DerefMut for Payload {
    fn deref_mut(&mut self) -> &mut Object {
        let fields = Arc::make_mut(&mut self.0);
        fields.text = OnceLock::new();
        &mut fields.object
    }
}

impl From<Object> for Payload {
    fn from(object: Object) -> Self {
        Self(Arc::new(Fields {
            object,
            text: OnceLock::new(),
        }))
    }
}

impl From<Payload> for Object {
    fn from(payload: Payload) -> Self {
        Arc::unwrap_or_clone(payload.0).object
    }
}

impl From<Payload> for Value {
    fn from(payload: Payload) -> Self {
        Value::Object(payload.into())
    }
}

impl IntoIterator for Payload {
    type Item = (String, Value);
    type IntoIter = <Object as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Object::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a Payload {
    type Item = (&'a String, &'a Value);
    type IntoIter = <&'a Object as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.object.iter()
    }
}

impl FromIterator<(String, Value)> for Payload {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        members.into_iter().collect::<Object>().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;

    #[test]
    fn a_text_is_kept_until_the_fields_change() {
        let mut payload = Payload::from(json!({"a": 1}).as_object().unwrap().clone());
        let write = |payload: &Payload, ids, times: &mut usize| {
            let written = payload.written(ids, || {
                *times += 1;
                to_raw_value(&json!({"ids": ids, "a": payload["a"]}))
            });
            written.unwrap().get().to_owned()
        };
        let (one, other) = (["doc_1", "col_1"], ["doc_2", "col_1"]);
        let mut times = 0;
        let first = write(&payload, one, &mut times);
        assert_eq!(first, r#"{"ids":["doc_1","col_1"],"a":1}"#);
        assert_eq!(write(&payload.clone(), one, &mut times), first);
        assert_eq!(times, 1);
        // Of another document it is another text.
        assert!(write(&payload, other, &mut times).contains("doc_2"));
        assert_eq!(write(&payload, one, &mut times), first);
        assert_eq!(times, 2);

        let before = payload.clone();
        payload.insert("a".into(), json!(2));
        assert!(write(&payload, one, &mut times).ends_with(r#""a":2}"#));
        assert_eq!(write(&before, one, &mut times), first);
        // Also where nobody else held them.
        payload.insert("a".into(), json!(3));
        assert!(write(&payload, one, &mut times).ends_with(r#""a":3}"#));

        payload.insert("a".into(), json!("x".repeat(LONGEST)));
        let long = write(&payload, one, &mut times);
        assert_eq!(write(&payload, one, &mut times), long);
        assert_eq!(times, 6);
    }
}
