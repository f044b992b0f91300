//! The deserializer: a value, where it stands, and who wants to know of unknown keys.

use std::cell::RefCell;

use serde::de::{DeserializeSeed, Deserializer, Error as _, Expected, Unexpected, Visitor};
use serde_json::{Map, Number, Value};

use super::{
    Fault,
    parts::{Items, Members, Variant},
};

/// The paths of keys that nobody asked for.
pub(super) type Unknown = RefCell<Vec<Vec<String>>>;

/// Keys that are told of: a body may be made of hundreds of thousands of others.
pub(super) const MOST_UNKNOWN: usize = 100;

/// Where a reader stands: a list on the stack, made a path only when something is to be said of it.
#[derive(Clone, Copy)]
pub(super) enum Place<'p> {
    Root,
    Key(&'p Place<'p>, &'p str),
    Index(&'p Place<'p>, usize),
}

impl Place<'_> {
    pub fn path(&self) -> Vec<String> {
        let (mut path, piece) = match self {
            Place::Root => return Vec::new(),
            Place::Key(parent, key) => (parent.path(), (*key).to_owned()),
            Place::Index(parent, index) => (parent.path(), index.to_string()),
        };
        path.push(piece);
        path
    }
}

/// What is read: a value, or the key of a member.
#[derive(Clone, Copy)]
pub(super) enum Source<'v> {
    Value(&'v Value),
    Key(&'v str),
}

/// A value with its place.
#[derive(Clone, Copy)]
pub(super) struct Reader<'v, 'p> {
    pub source: Source<'v>,
    pub place: &'p Place<'p>,
    pub unknown: Option<&'p Unknown>,
}

// What does not depend on the type that is read is kept out of the generic functions below: they are compiled for each.
impl<'v, 'p> Reader<'v, 'p> {
    pub fn new(value: &'v Value, unknown: Option<&'p Unknown>) -> Self {
        Self {
            source: Source::Value(value),
            place: &Place::Root,
            unknown,
        }
    }

    pub fn unexpected(self, expected: &dyn Expected) -> Fault {
        let found = match self.source {
            Source::Key(key) => Unexpected::Str(key),
            Source::Value(Value::Null) => Unexpected::Other("null"),
            Source::Value(Value::Bool(value)) => Unexpected::Bool(*value),
            Source::Value(Value::Number(number)) => unexpected_number(number),
            Source::Value(Value::String(text)) => Unexpected::Str(text),
            Source::Value(Value::Array(_)) => Unexpected::Seq,
            Source::Value(Value::Object(_)) => Unexpected::Map,
        };
        Fault::invalid_type(found, expected)
    }

    fn text(self) -> Option<&'v str> {
        match self.source {
            Source::Key(key) => Some(key),
            Source::Value(value) => value.as_str(),
        }
    }

    fn list(self) -> Option<&'v [Value]> {
        match self.source {
            Source::Value(Value::Array(items)) => Some(items),
            _ => None,
        }
    }

    fn object(self) -> Option<&'v Map<String, Value>> {
        match self.source {
            Source::Value(Value::Object(members)) => Some(members),
            _ => None,
        }
    }

    /// A number, also as the key of a member.
    fn number(self) -> Option<Number> {
        match self.source {
            Source::Key(key) => key.parse().ok(),
            Source::Value(Value::Number(number)) => Some(number.clone()),
            Source::Value(_) => None,
        }
    }

    /// An enum's variant: a text, or an object of one member that holds what the variant has.
    fn variant(self) -> Result<(&'v str, Option<&'v Value>), Fault> {
        if let Some(text) = self.text() {
            return Ok((text, None));
        }
        let Some(members) = self.object() else {
            return Err(self.unexpected(&"string or map"));
        };
        match members.iter().next() {
            Some((name, value)) if members.len() == 1 => Ok((name, Some(value))),
            _ => {
                let expected = "map with a single key";
                Err(Fault::invalid_value(Unexpected::Map, &expected))
            }
        }
    }

    /// Reads what lies within: a fault that has no place yet gets this one.
    pub fn read_within<T: DeserializeSeed<'v>>(
        self,
        value: &'v Value,
        place: &Place<'_>,
        seed: T,
    ) -> Result<T::Value, Fault> {
        let source = Source::Value(value);
        seed.deserialize(Reader {
            source,
            place,
            unknown: self.unknown,
        })
        .map_err(|fault| fault.at(place))
    }

    fn numbered<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.number() {
            None => Err(self.unexpected(&visitor)),
            Some(number) => visit_number(&number, visitor),
        }
    }
}

fn unexpected_number(number: &Number) -> Unexpected<'static> {
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => Unexpected::Unsigned(value),
        (None, Some(value)) => Unexpected::Signed(value),
        (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

fn visit_number<'v, V: Visitor<'v>>(number: &Number, visitor: V) -> Result<V::Value, Fault> {
    match (number.as_u64(), number.as_i64()) {
        (Some(value), _) => visitor.visit_u64(value),
        (None, Some(value)) => visitor.visit_i64(value),
        (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
    }
}

macro_rules! read_as {
    ($($method:ident)* => $with:ident) => {
        $(fn $method<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.$with(visitor)
        })*
    };
}

impl<'v> Deserializer<'v> for Reader<'v, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source {
            Source::Key(text) => visitor.visit_str(text),
            Source::Value(Value::Null) => visitor.visit_unit(),
            Source::Value(Value::Bool(value)) => visitor.visit_bool(*value),
            Source::Value(Value::Number(number)) => visit_number(number, visitor),
            Source::Value(Value::String(text)) => visitor.visit_str(text),
            Source::Value(Value::Array(_)) => self.deserialize_seq(visitor),
            Source::Value(Value::Object(_)) => self.deserialize_map(visitor),
        }
    }

    read_as! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64 => numbered
    }
    read_as! { deserialize_char deserialize_string deserialize_identifier => deserialize_str }
    read_as! { deserialize_byte_buf => deserialize_bytes }

    fn deserialize_bool<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source {
            Source::Value(Value::Bool(value)) => visitor.visit_bool(*value),
            Source::Key("true") => visitor.visit_bool(true),
            Source::Key("false") => visitor.visit_bool(false),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_str(text),
            None => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_bytes<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text() {
            Some(text) => visitor.visit_str(text),
            None => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source {
            Source::Value(Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.source {
            Source::Value(Value::Null) => visitor.visit_unit(),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(items) = self.list() else {
            return Err(self.unexpected(&visitor));
        };
        let mut members = Items {
            of: self,
            items,
            index: 0,
        };
        let read = visitor.visit_seq(&mut members)?;
        if members.index < items.len() {
            return Err(Fault::invalid_length(
                items.len(),
                &"fewer elements in array",
            ));
        }
        Ok(read)
    }

    fn deserialize_tuple<V: Visitor<'v>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Some(members) = self.object() else {
            return Err(self.unexpected(&visitor));
        };
        visitor.visit_map(Members {
            of: self,
            members: members.iter(),
            current: None,
        })
    }

    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (name, value) = self.variant()?;
        visitor.visit_enum(Variant {
            of: self,
            name,
            value,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, Fault> {
        if let Some(unknown) = self.unknown
            && unknown.borrow().len() < MOST_UNKNOWN
        {
            unknown.borrow_mut().push(self.place.path());
        }
        visitor.visit_unit()
    }
}
