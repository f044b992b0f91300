//! Parquet, as far as tables of documents need it: plain values, one page for each column of a group of rows, nothing
//! compressed. The published writer shares a crate with the vector engine that it would have compiled in another way.

use std::io::Write as _;

use loupe_wire::{Object, Value};

use super::columns::{Columns, Kind};

const MAGIC: &[u8; 4] = b"PAR1";

/// Words of the format.
mod word {
    pub const BOOLEAN: i32 = 0;
    pub const INT64: i32 = 2;
    pub const FLOAT: i32 = 4;
    pub const DOUBLE: i32 = 5;
    pub const BYTE_ARRAY: i32 = 6;
    pub const REQUIRED: i32 = 0;
    pub const OPTIONAL: i32 = 1;
    pub const REPEATED: i32 = 2;
    pub const UTF8: i32 = 0;
    pub const LIST: i32 = 3;
    pub const PLAIN: i32 = 0;
    pub const RLE: i32 = 3;
}

/// Thrift's compact protocol: fields of a struct in the order of their ids.
#[derive(Default)]
struct Struct {
    out: Vec<u8>,
    last: u8,
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let bits = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            return out.push(bits);
        }
        out.push(bits | 0x80);
    }
}

#[expect(
    clippy::cast_sign_loss,
    reason = "zigzag keeps the sign in the lowest bit"
)]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn size(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn list_head(out: &mut Vec<u8>, length: usize, kind: u8) {
    match u8::try_from(length) {
        Ok(short) if short < 15 => out.push(short << 4 | kind),
        _ => {
            out.push(0xf0 | kind);
            varint(out, length as u64);
        }
    }
}

impl Struct {
    /// Ids rise by less than 16 in everything that is written here.
    fn field(&mut self, id: u8, kind: u8) {
        self.out.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    fn i32(mut self, id: u8, number: i32) -> Self {
        self.field(id, I32);
        varint(&mut self.out, zigzag(number.into()));
        self
    }

    fn i64(mut self, id: u8, number: i64) -> Self {
        self.field(id, I64);
        varint(&mut self.out, zigzag(number));
        self
    }

    fn text(mut self, id: u8, text: &str) -> Self {
        self.field(id, BINARY);
        varint(&mut self.out, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    fn one(mut self, id: u8, inner: Struct) -> Self {
        self.field(id, STRUCT);
        self.out.extend(inner.end());
        self
    }

    fn structs(mut self, id: u8, items: Vec<Vec<u8>>) -> Self {
        self.field(id, LIST);
        list_head(&mut self.out, items.len(), STRUCT);
        self.out.extend(items.concat());
        self
    }

    fn numbers(mut self, id: u8, items: &[i32]) -> Self {
        self.field(id, LIST);
        list_head(&mut self.out, items.len(), I32);
        for item in items {
            varint(&mut self.out, zigzag((*item).into()));
        }
        self
    }

    fn texts(mut self, id: u8, items: &[&str]) -> Self {
        self.field(id, LIST);
        list_head(&mut self.out, items.len(), BINARY);
        for item in items {
            varint(&mut self.out, item.len() as u64);
            self.out.extend_from_slice(item.as_bytes());
        }
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }
}

/// Levels as runs of equal ones, with their length in front.
#[derive(Default)]
struct Levels {
    runs: Vec<(u8, u64)>,
}

impl Levels {
    fn add(&mut self, level: u8, times: usize) {
        let times = times as u64;
        match self.runs.last_mut() {
            Some((last, count)) if *last == level => *count += times,
            _ if times > 0 => self.runs.push((level, times)),
            _ => {}
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut runs = Vec::new();
        for (level, count) in &self.runs {
            varint(&mut runs, count << 1);
            runs.push(*level);
        }
        let length = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        [length.to_le_bytes().to_vec(), runs].concat()
    }
}

const fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Flag => word::BOOLEAN,
        Kind::Integer => word::INT64,
        Kind::Number => word::DOUBLE,
        Kind::Vector => word::FLOAT,
        Kind::Text | Kind::Mixed => word::BYTE_ARRAY,
    }
}

/// Where a column lies in its file and below its own name.
fn path(name: &str, kind: Kind) -> Vec<&str> {
    match kind {
        Kind::Vector => vec![name, "list", "element"],
        _ => vec![name],
    }
}

/// The values of a column, in one page.
#[derive(Default)]
struct Page {
    /// Whether an element begins a new vector.
    repetition: Levels,
    /// How much of the path to a value is there.
    definition: Levels,
    values: Vec<u8>,
    /// Flags of the byte that is not full.
    flags: (u8, u8),
    count: usize,
}

impl Page {
    fn add(&mut self, kind: Kind, value: Option<&Value>) {
        let value = value.filter(|value| !value.is_null());
        if kind == Kind::Vector {
            return self.add_vector(value);
        }
        self.count += 1;
        self.definition.add(u8::from(value.is_some()), 1);
        let Some(value) = value else { return };
        match kind {
            Kind::Flag => {
                let (bits, used) = &mut self.flags;
                *bits |= u8::from(value == &Value::Bool(true)) << *used;
                *used += 1;
                if *used == 8 {
                    self.values.push(*bits);
                    self.flags = (0, 0);
                }
            }
            Kind::Integer => {
                let number = value.as_i64().unwrap_or_default();
                self.values.extend(number.to_le_bytes());
            }
            Kind::Number => {
                let number = value.as_f64().unwrap_or_default();
                self.values.extend(number.to_le_bytes());
            }
            _ => {
                let text = match (kind, value) {
                    (Kind::Text, Value::String(text)) => text.clone(),
                    (_, value) => value.to_string(),
                };
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                self.values.extend(length.to_le_bytes());
                self.values.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn add_vector(&mut self, value: Option<&Value>) {
        let numbers = value.and_then(Value::as_array);
        self.repetition.add(0, 1);
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
            self.count += 1;
            self.definition.add(u8::from(numbers.is_some()), 1);
            return;
        };
        self.count += numbers.len();
        self.repetition.add(1, numbers.len() - 1);
        self.definition.add(2, numbers.len());
        for number in numbers {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "vectors are kept in single precision"
            )]
            let number = number.as_f64().unwrap_or_default() as f32;
            self.values.extend(number.to_le_bytes());
        }
    }

    /// The page with its head.
    fn end(mut self, kind: Kind) -> Vec<u8> {
        if self.flags.1 > 0 {
            self.values.push(self.flags.0);
        }
        let mut body = Vec::new();
        if kind == Kind::Vector {
            body.extend(self.repetition.bytes());
        }
        body.extend(self.definition.bytes());
        body.extend(self.values);
        let length = i32::try_from(body.len()).unwrap_or(i32::MAX);
        let head = Struct::default()
            .i32(1, i32::try_from(self.count).unwrap_or(i32::MAX))
            .i32(2, word::PLAIN)
            .i32(3, word::RLE)
            .i32(4, word::RLE);
        let head = Struct::default()
            .i32(1, 0)
            .i32(2, length)
            .i32(3, length)
            .one(5, head)
            .end();
        [head, body].concat()
    }
}

/// A file that is written group by group.
pub struct Writer {
    columns: Columns,
    /// Bytes so far.
    written: usize,
    rows: usize,
    groups: Vec<Vec<u8>>,
}

impl Writer {
    pub fn new(columns: Columns) -> Self {
        Self {
            columns,
            written: 0,
            rows: 0,
            groups: Vec::new(),
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.written += bytes.len();
    }

    /// What every file begins with.
    pub fn start(&mut self) -> Vec<u8> {
        self.note(MAGIC);
        MAGIC.to_vec()
    }

    /// A group of rows. Without rows nothing.
    pub fn rows(&mut self, rows: &[Object]) -> Vec<u8> {
        if rows.is_empty() {
            return Vec::new();
        }
        let (mut out, mut chunks) = (Vec::new(), Vec::new());
        for (name, kind) in self.columns.iter() {
            let mut page = Page::default();
            rows.iter().for_each(|row| page.add(kind, row.get(name)));
            let (count, place) = (page.count, self.written + out.len());
            let bytes = page.end(kind);
            let data = Struct::default()
                .i32(1, physical(kind))
                .numbers(2, &[word::PLAIN, word::RLE])
                .texts(3, &path(name, kind))
                .i32(4, 0)
                .i64(5, size(count))
                .i64(6, size(bytes.len()))
                .i64(7, size(bytes.len()))
                .i64(9, size(place));
            chunks.push(Struct::default().i64(2, size(place)).one(3, data).end());
            out.extend(bytes);
        }
        let group = Struct::default()
            .structs(1, chunks)
            .i64(2, size(out.len()))
            .i64(3, size(rows.len()))
            .end();
        self.groups.push(group);
        self.rows += rows.len();
        self.note(&out);
        out
    }

    /// The schema, and where the groups lie.
    pub fn end(self) -> Vec<u8> {
        let count = self.columns.iter().count();
        let mut schema = vec![
            Struct::default()
                .text(4, "document")
                .i32(5, i32::try_from(count).unwrap_or(i32::MAX))
                .end(),
        ];
        for (name, kind) in self.columns.iter() {
            schema.extend(elements(name, kind));
        }
        let footer = Struct::default()
            .i32(1, 1)
            .structs(2, schema)
            .i64(3, size(self.rows))
            .structs(4, self.groups)
            .text(6, concat!("loupe version ", env!("CARGO_PKG_VERSION")))
            .end();
        let mut out = footer;
        let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
        // Writing into memory does not fail.
        let _ = out.write_all(&length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }
}

/// A column in the schema.
fn elements(name: &str, kind: Kind) -> Vec<Vec<u8>> {
    match kind {
        Kind::Vector => vec![
            Struct::default()
                .i32(3, word::OPTIONAL)
                .text(4, name)
                .i32(5, 1)
                .i32(6, word::LIST)
                .end(),
            Struct::default()
                .i32(3, word::REPEATED)
                .text(4, "list")
                .i32(5, 1)
                .end(),
            Struct::default()
                .i32(1, word::FLOAT)
                .i32(3, word::REQUIRED)
                .text(4, "element")
                .end(),
        ],
        Kind::Text | Kind::Mixed => vec![
            Struct::default()
                .i32(1, word::BYTE_ARRAY)
                .i32(3, word::OPTIONAL)
                .text(4, name)
                .i32(6, word::UTF8)
                .end(),
        ],
        _ => vec![
            Struct::default()
                .i32(1, physical(kind))
                .i32(3, word::OPTIONAL)
                .text(4, name)
                .end(),
        ],
    }
}
