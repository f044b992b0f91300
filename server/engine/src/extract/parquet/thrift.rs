//! Thrift's compact protocol, in which a Parquet file describes itself: read into a tree, whatever the fields mean.

use std::collections::BTreeMap;

use super::{Fault, Result, broken, too_large};

/// Structs within structs: the format has fewer.
const DEPTH: usize = 24;
/// Bytes in memory of one description, roughly: what has a byte in the file may take hundreds of them.
const ROOM: usize = 128 << 20;
/// What a struct takes beside its fields, and what a field or an item does.
const STRUCT: usize = 400;
const FIELD: usize = 80;

/// One value of a description.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<Field>),
    Struct(Struct),
    /// What nobody here asks for.
    Other,
}

/// The fields of a struct by their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Struct(BTreeMap<i64, Field>);

impl Struct {
    pub fn has(&self, number: i64) -> bool {
        self.0.contains_key(&number)
    }

    pub fn int(&self, number: i64) -> Option<i64> {
        match self.0.get(&number) {
            Some(Field::Int(value)) => Some(*value),
            _ => None,
        }
    }

    pub fn bool(&self, number: i64) -> Option<bool> {
        match self.0.get(&number) {
            Some(Field::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    pub fn text(&self, number: i64) -> Option<String> {
        match self.0.get(&number) {
            Some(Field::Bytes(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    pub fn of(&self, number: i64) -> Option<&Struct> {
        match self.0.get(&number) {
            Some(Field::Struct(inner)) => Some(inner),
            _ => None,
        }
    }

    /// The structs of a list; none where there is none.
    pub fn list(&self, number: i64) -> Vec<&Struct> {
        let Some(Field::List(items)) = self.0.get(&number) else {
            return Vec::new();
        };
        let structs = items.iter().filter_map(|item| match item {
            Field::Struct(inner) => Some(inner),
            _ => None,
        });
        structs.collect()
    }

    /// The same, taken out of it.
    pub fn take_list(&mut self, number: i64) -> Vec<Struct> {
        let Some(Field::List(items)) = self.0.remove(&number) else {
            return Vec::new();
        };
        let structs = items.into_iter().filter_map(|item| match item {
            Field::Struct(inner) => Some(inner),
            _ => None,
        });
        structs.collect()
    }

    /// A size or a place: a number that is not below zero.
    pub fn size(&self, number: i64) -> Result<u64> {
        let size = self.int(number).and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| broken("a size is missing"))
    }
}

/// Reads a struct; answers how many bytes it took.
pub fn read(bytes: &[u8]) -> Result<(Struct, usize)> {
    let mut reader = Reader {
        bytes,
        at: 0,
        room: ROOM,
    };
    let found = reader.structure(DEPTH)?;
    Ok((found, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    room: usize,
}

fn cut() -> Fault {
    broken("a description ends too early")
}

impl Reader<'_> {
    fn weigh(&mut self, weight: usize) -> Result<()> {
        let left = self.room.checked_sub(weight);
        self.room = left.ok_or_else(|| too_large("the unpacked description", ROOM))?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(cut)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, length: usize) -> Result<&[u8]> {
        let end = self.at.checked_add(length).ok_or_else(cut)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(cut)?;
        self.at = end;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(broken("a number is too long"))
    }

    #[expect(
        clippy::cast_possible_wrap,
        reason = "zigzag keeps the sign in the lowest bit"
    )]
    fn int(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn length(&mut self) -> Result<usize> {
        let length = usize::try_from(self.varint()?).map_err(|_| cut())?;
        // Whatever it is the length of takes a byte each at least.
        match length <= self.bytes.len() - self.at {
            true => Ok(length),
            false => Err(cut()),
        }
    }

    fn structure(&mut self, depth: usize) -> Result<Struct> {
        if depth == 0 {
            return Err(broken("a description is too deep"));
        }
        self.weigh(STRUCT)?;
        let (mut fields, mut number) = (BTreeMap::new(), 0i64);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(Struct(fields));
            }
            self.weigh(FIELD)?;
            number = match head >> 4 {
                0 => self.int()?,
                step => number.saturating_add(i64::from(step)),
            };
            let value = match head & 0x0f {
                1 => Field::Bool(true),
                2 => Field::Bool(false),
                kind => self.value(kind, depth)?,
            };
            fields.insert(number, value);
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<Field> {
        Ok(match kind {
            // In a list a truth is a byte of its own.
            1 | 2 => Field::Bool(self.byte()? == 1),
            3 => Field::Int(i64::from(self.byte()?)),
            4..=6 => Field::Int(self.int()?),
            7 => {
                self.take(8)?;
                Field::Other
            }
            8 => {
                let length = self.length()?;
                self.weigh(length)?;
                Field::Bytes(self.take(length)?.to_vec())
            }
            9 | 10 => Field::List(self.items(depth)?),
            12 => Field::Struct(self.structure(depth.saturating_sub(1))?),
            _ => return Err(broken("a description holds what the format does not have")),
        })
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Field>> {
        if depth == 0 {
            return Err(broken("a description is too deep"));
        }
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.length()?,
            count => usize::from(count),
        };
        let kind = head & 0x0f;
        let mut items = Vec::new();
        for _ in 0..count {
            self.weigh(FIELD)?;
            items.push(self.value(kind, depth.saturating_sub(1))?);
        }
        Ok(items)
    }
}
