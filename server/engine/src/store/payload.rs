//! The fields of a document, shared for as long as nobody changes them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use loupe_wire::{Object, Value};

/// An object that costs nothing to copy. Whoever changes it has its own copy from then on, unless nobody else holds it: what
/// was read lately is kept by the store, and answers are written from what is kept.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Object")]
pub struct Payload(#[serde(serialize_with = "fields")] Arc<Object>);

fn fields<S: serde::Serializer>(
    fields: &Arc<Object>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serde::Serialize::serialize(fields.as_ref(), serializer)
}

impl Deref for Payload {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

impl DerefMut for Payload {
    fn deref_mut(&mut self) -> &mut Object {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Object> for Payload {
    fn from(fields: Object) -> Self {
        Self(Arc::new(fields))
    }
}

impl From<Payload> for Object {
    fn from(payload: Payload) -> Self {
        Arc::unwrap_or_clone(payload.0)
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
        self.0.iter()
    }
}

impl FromIterator<(String, Value)> for Payload {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        members.into_iter().collect::<Object>().into()
    }
}
