//! What a reader hands out: items of a list, members of an object, the variant of an enum.

use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::{Value, map};

use super::{
    Fault,
    reader::{Place, Reader, Source},
};

/// The items of a list that are still to be read.
pub(super) struct Items<'v, 'p> {
    pub of: Reader<'v, 'p>,
    pub items: &'v [Value],
    pub index: usize,
}

impl<'v> SeqAccess<'v> for Items<'v, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'v>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.get(self.index) else {
            return Ok(None);
        };
        let place = Place::Index(self.of.place, self.index);
        self.index += 1;
        self.of.read_within(item, &place, seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.index)
    }
}

/// The members of an object that are still to be read.
pub(super) struct Members<'v, 'p> {
    pub of: Reader<'v, 'p>,
    pub members: map::Iter<'v>,
    pub current: Option<(&'v str, &'v Value)>,
}

impl<'v> MapAccess<'v> for Members<'v, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'v>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.current = self
            .members
            .next()
            .map(|(key, value)| (key.as_str(), value));
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        let source = Source::Key(key);
        seed.deserialize(Reader { source, ..self.of }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'v>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((key, value)) = self.current.take() else {
            return Err(Fault::custom("value is missing"));
        };
        let place = Place::Key(self.of.place, key);
        self.of.read_within(value, &place, seed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// One of an enum's variants: its name, and what it holds.
pub(super) struct Variant<'v, 'p> {
    pub of: Reader<'v, 'p>,
    pub name: &'v str,
    pub value: Option<&'v Value>,
}

impl<'v> Variant<'v, '_> {
    fn content(&self, expected: &dyn Expected) -> Result<Source<'v>, Fault> {
        let content = self.value.map(Source::Value);
        content.ok_or_else(|| Fault::invalid_type(Unexpected::UnitVariant, expected))
    }
}

impl<'v> EnumAccess<'v> for Variant<'v, '_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'v>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let source = Source::Key(self.name);
        let variant = seed.deserialize(Reader { source, ..self.of })?;
        Ok((variant, self))
    }
}

impl<'v> VariantAccess<'v> for Variant<'v, '_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.value {
            None | Some(Value::Null) => Ok(()),
            Some(value) => {
                let source = Source::Value(value);
                Err(Reader { source, ..self.of }.unexpected(&"unit variant"))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<T::Value, Fault> {
        let place = Place::Key(self.of.place, self.name);
        match self.value {
            Some(value) => self.of.read_within(value, &place, seed),
            None => Err(self.of.unexpected(&"newtype variant")),
        }
    }

    fn tuple_variant<V: Visitor<'v>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        let place = Place::Key(self.of.place, self.name);
        let source = self.content(&visitor)?;
        Reader {
            source,
            place: &place,
            ..self.of
        }
        .deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'v>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let place = Place::Key(self.of.place, self.name);
        let source = self.content(&visitor)?;
        Reader {
            source,
            place: &place,
            ..self.of
        }
        .deserialize_map(visitor)
    }
}
