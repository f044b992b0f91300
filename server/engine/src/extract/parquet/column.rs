//! One column of a group of rows, read page by page: no more than a page of it is in memory, as it was written.

use loupe_wire::Value;

use super::source::Source;
use super::thrift::{self, Struct};
use super::values::{Hybrid, Meaning, Plain, Stored, bits};
use super::{HELD, Result, broken, snappy, too_large, unread};
use crate::weight;

/// Bytes of one page.
const PAGE: u64 = 32 << 20;
/// Bytes of a page of the values that others name by numbers, and how many those are.
const DICTIONARY: u64 = 8 << 20;
const WORDS: u64 = 1 << 20;
/// What any value weighs in a row.
pub const VALUE: usize = 8;
/// Bytes of what stands before a page: first it is tried with few.
const HEADS: [u64; 2] = [4 << 10, 1 << 20];

/// What a schema says of a column.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub stored: Stored,
    pub meaning: Meaning,
    /// How often it may be missing, and how often repeated, on the way to it.
    pub most_defined: u64,
    pub most_repeated: u64,
    /// What an entry adds to a row beside what its value holds, by where it is repeated: the fields that begin anew there.
    pub costs: Vec<usize>,
}

/// A value with its place: where it is repeated, and how much of the way to it is there.
#[derive(Debug, Clone)]
pub struct Entry {
    pub repeated: u64,
    pub defined: u64,
    pub value: Value,
}

/// How the values of a page are written.
#[derive(Debug)]
enum Values {
    Plain(Plain),
    /// Numbers of the dictionary.
    Named(Hybrid),
    Truths(Hybrid),
}

#[derive(Debug)]
struct Page {
    bytes: Vec<u8>,
    left: u64,
    repeated: Hybrid,
    defined: Hybrid,
    values: Values,
}

#[derive(Debug)]
pub struct Column {
    leaf: Leaf,
    codec: i64,
    at: u64,
    end: u64,
    words: Vec<Value>,
    words_size: usize,
    page: Option<Page>,
    /// The first entry of the next row.
    next: Option<Entry>,
}

impl Column {
    /// A column by what the file says of it.
    pub fn open(leaf: &Leaf, chunk: &Struct, size: u64) -> Result<Self> {
        let about = chunk
            .of(3)
            .ok_or_else(|| broken("a column is not described"))?;
        let data = about.size(9)?;
        let words = about.int(11).and_then(|at| u64::try_from(at).ok());
        let at = words.filter(|at| *at > 0 && *at < data).unwrap_or(data);
        let end = at.checked_add(about.size(7)?).filter(|end| *end <= size);
        Ok(Self {
            leaf: leaf.clone(),
            codec: about.int(4).unwrap_or(0),
            at,
            end: end.ok_or_else(|| broken("a column lies outside of it"))?,
            words: Vec::new(),
            words_size: 0,
            page: None,
            next: None,
        })
    }

    /// Bytes that are held of it.
    pub fn held(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.bytes.len()) + self.words_size
    }

    /// The entries of the next row, which weigh `room` at most together.
    pub fn row(&mut self, source: &Source<'_>, room: &mut usize) -> Result<Vec<Entry>> {
        let first = match self.next.take() {
            Some(first) => first,
            None => self
                .entry(source)?
                .ok_or_else(|| broken("a column ends too early"))?,
        };
        let mut row = vec![first];
        // Most columns have one entry a row.
        if self.leaf.most_repeated == 0 {
            self.take_room(room, &row[0])?;
            return Ok(row);
        }
        self.take_room(room, &row[0])?;
        while let Some(entry) = self.entry(source)? {
            if entry.repeated == 0 {
                self.next = Some(entry);
                break;
            }
            self.take_room(room, &entry)?;
            row.push(entry);
        }
        Ok(row)
    }

    /// Counts an entry against what a row may weigh.
    fn take_room(&self, room: &mut usize, entry: &Entry) -> Result<()> {
        let place = usize::try_from(entry.repeated).unwrap_or(usize::MAX);
        let cost = self.leaf.costs.get(place).copied().unwrap_or(VALUE);
        let holds = match &entry.value {
            Value::String(text) => text.len(),
            Value::Array(_) | Value::Object(_) => weight::of(&entry.value),
            _ => 0,
        };
        let left = room.checked_sub(cost.saturating_add(holds));
        *room = left.ok_or_else(|| too_large("a row", super::ROW))?;
        Ok(())
    }

    fn entry(&mut self, source: &Source<'_>) -> Result<Option<Entry>> {
        while self.page.as_ref().is_none_or(|page| page.left == 0) {
            self.page = None;
            if self.at >= self.end {
                return Ok(None);
            }
            self.read_page(source)?;
        }
        let Some(page) = &mut self.page else {
            return Ok(None);
        };
        page.left -= 1;
        let repeated = page.repeated.next(&page.bytes)?;
        let defined = page.defined.next(&page.bytes)?;
        let value = if defined < self.leaf.most_defined {
            Value::Null
        } else {
            match &mut page.values {
                Values::Plain(plain) => plain.next(&page.bytes)?,
                Values::Truths(truths) => (truths.next(&page.bytes)? == 1).into(),
                Values::Named(names) => {
                    let name = usize::try_from(names.next(&page.bytes)?).unwrap_or(usize::MAX);
                    let word = self.words.get(name).cloned();
                    word.ok_or_else(|| broken("a value is none of its dictionary"))?
                }
            }
        };
        Ok(Some(Entry {
            repeated,
            defined,
            value,
        }))
    }

    /// The next page: a dictionary is taken in, values begin to be read, anything else is passed over.
    fn read_page(&mut self, source: &Source<'_>) -> Result<()> {
        let (head, length) = self.head(source)?;
        let (packed, size) = (head.size(3)?, head.size(2)?);
        let begin = self.at + length;
        let end = begin.checked_add(packed).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| broken("a page lies outside of its column"))?;
        let most = if head.has(7) { DICTIONARY } else { PAGE };
        if size.max(packed) > most {
            return Err(too_large("a page", most));
        }
        source.spend(size)?;
        self.at = end;
        if let Some(about) = head.of(7) {
            let bytes = self.unpack(source.read(begin, packed)?, size)?;
            return self.read_words(about, &bytes);
        }
        if let Some(about) = head.of(5) {
            let bytes = self.unpack(source.read(begin, packed)?, size)?;
            self.page = Some(self.first_form(about, bytes)?);
        } else if let Some(about) = head.of(8) {
            let bytes = source.read(begin, packed)?;
            self.page = Some(self.second_form(about, bytes, size)?);
        }
        Ok(())
    }

    fn head(&self, source: &Source<'_>) -> Result<(Struct, u64)> {
        let mut last = broken("a page is not described");
        for most in HEADS {
            let bytes = source.read(self.at, most.min(self.end - self.at))?;
            match thrift::read(&bytes) {
                Ok((head, length)) => return Ok((head, length as u64)),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    fn unpack(&self, bytes: Vec<u8>, size: u64) -> Result<Vec<u8>> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let wrong = || broken("a page is not what its compression says");
        match self.codec {
            0 => Ok(bytes),
            1 => snappy::decompress(&bytes, size),
            2 => {
                let mut out = Vec::new();
                let packed = flate2::read::MultiGzDecoder::new(&bytes[..]);
                let mut packed = std::io::Read::take(packed, size as u64 + 1);
                std::io::Read::read_to_end(&mut packed, &mut out).map_err(|_| wrong())?;
                match out.len() == size {
                    true => Ok(out),
                    false => Err(wrong()),
                }
            }
            6 => {
                let out = zstd::bulk::decompress(&bytes, size).map_err(|_| wrong())?;
                match out.len() == size {
                    true => Ok(out),
                    false => Err(wrong()),
                }
            }
            _ => Err(unread(
                "it is compressed in another way than snappy, gzip or zstd",
            )),
        }
    }

    fn read_words(&mut self, about: &Struct, bytes: &[u8]) -> Result<()> {
        let count = about.size(1)?;
        if count > WORDS {
            return Err(too_large("a dictionary", WORDS));
        }
        let mut plain = Plain::new(self.leaf.stored, self.leaf.meaning, 0);
        // Texts of JSON are read here, and weigh many times what they are written in.
        let (mut words, mut size) = (Vec::new(), 0);
        for _ in 0..count {
            let word = plain.next(bytes)?;
            size += weight::of(&word);
            if size > HELD {
                return Err(too_large("a dictionary", HELD));
            }
            words.push(word);
        }
        (self.words, self.words_size) = (words, size);
        Ok(())
    }

    /// Levels stand before the values, each with its length, and all is compressed together.
    fn first_form(&self, about: &Struct, bytes: Vec<u8>) -> Result<Page> {
        let mut at = 0;
        let mut levels = |most: u64| -> Result<Hybrid> {
            if most == 0 {
                return Ok(Hybrid::default());
            }
            let length = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
            let length = length.ok_or_else(|| broken("a page ends too early"))?;
            let begin = at + 4;
            at = begin + u32::from_le_bytes(length) as usize;
            Ok(Hybrid::new(begin, at, bits(most)))
        };
        let repeated = levels(self.leaf.most_repeated)?;
        let defined = levels(self.leaf.most_defined)?;
        let values = self.values(about.int(2), &bytes, at)?;
        Ok(Page {
            left: about.size(1)?,
            repeated,
            defined,
            values,
            bytes,
        })
    }

    /// Levels stand before the values, which alone are compressed.
    fn second_form(&self, about: &Struct, mut bytes: Vec<u8>, size: u64) -> Result<Page> {
        let (defined, repeated) = (about.size(5)?, about.size(6)?);
        let levels = defined.saturating_add(repeated);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        if bytes.len() < place(levels) || size < levels {
            return Err(broken("a page ends too early"));
        }
        let packed = bytes.split_off(place(levels));
        let is_packed = about.bool(7) != Some(false) && !packed.is_empty();
        bytes.extend(match is_packed {
            true => self.unpack(packed, size - levels)?,
            false => packed,
        });
        let hybrid = |begin: u64, end: u64, most: u64| match most {
            0 => Hybrid::default(),
            most => Hybrid::new(place(begin), place(end), bits(most)),
        };
        let values = self.values(about.int(4), &bytes, place(levels))?;
        Ok(Page {
            left: about.size(1)?,
            repeated: hybrid(0, repeated, self.leaf.most_repeated),
            defined: hybrid(repeated, levels, self.leaf.most_defined),
            values,
            bytes,
        })
    }

    fn values(&self, encoding: Option<i64>, bytes: &[u8], at: usize) -> Result<Values> {
        Ok(match encoding {
            Some(0) => Values::Plain(Plain::new(self.leaf.stored, self.leaf.meaning, at)),
            Some(2 | 8) => {
                // A page without values has no width of theirs.
                let width = bytes.get(at).copied().unwrap_or(0);
                if width > 32 {
                    return Err(broken("a page names its values in too many bits"));
                }
                Values::Named(Hybrid::new(at + 1, bytes.len(), usize::from(width)))
            }
            Some(3) if self.leaf.stored == Stored::Boolean => {
                Values::Truths(Hybrid::new(at + 4, bytes.len(), 1))
            }
            _ => {
                return Err(unread(
                    "its values are neither plain nor in a dictionary: write it with version 1.0 of pages",
                ));
            }
        })
    }
}
