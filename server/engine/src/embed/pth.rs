//! Reads the tensors of an old PyTorch file (`.pth` before the zip format) without running anything.
//!
//! A pickle is a program. This reader knows the few opcodes and the four names that a table of tensors needs and
//! refuses every other one.

use std::collections::HashMap;
use std::rc::Rc;

use super::{EmbedError, Result};

const MAX_DEPTH: u8 = 16;
const NAMES: [&str; 4] = [
    "collections OrderedDict",
    "torch FloatStorage",
    "torch LongStorage",
    "torch._utils _rebuild_tensor_v2",
];

/// A tensor of 32-bit floats, row by row.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// All float tensors of the file by name; integer tensors are left out.
pub fn read(bytes: &[u8]) -> Result<HashMap<String, Tensor>> {
    let mut input = Input { bytes, at: 0 };
    // The file's magic number, its protocol and the machine that wrote it say nothing about the tensors.
    for _ in 0..3 {
        unpickle(&mut input)?;
    }
    let Value::Dict(entries) = unpickle(&mut input)? else {
        return Err(broken("the file holds no table of tensors"));
    };
    let Value::List(keys) = unpickle(&mut input)? else {
        return Err(broken("the file lists no storages"));
    };
    let mut storages = HashMap::new();
    let kinds = kinds_of(&entries)?;
    for key in keys {
        let key = key.text()?;
        let count = input.length(8)?;
        let kind = kinds.get(&key).ok_or(broken("a storage nobody uses"))?;
        let size = count.checked_mul(kind.width());
        let size = size.ok_or(broken("a storage too large"))?;
        storages.insert(key, input.take(size)?);
    }
    let mut tensors = HashMap::new();
    for (name, value) in entries {
        let Value::Tensor(tensor) = value else {
            return Err(broken("the table holds something that is no tensor"));
        };
        if tensor.storage.kind == Kind::Float {
            tensors.insert(name.text()?.to_string(), floats(&tensor, &storages)?);
        }
    }
    Ok(tensors)
}

fn kinds_of(entries: &[(Value, Value)]) -> Result<HashMap<Rc<str>, Kind>> {
    let mut kinds = HashMap::new();
    for (_, value) in entries {
        let Value::Tensor(tensor) = value else {
            return Err(broken("the table holds something that is no tensor"));
        };
        kinds.insert(Rc::clone(&tensor.storage.key), tensor.storage.kind);
    }
    Ok(kinds)
}

/// The values of a view row by row; converted weights are often stored in another order.
fn floats(view: &View, storages: &HashMap<Rc<str>, &[u8]>) -> Result<Tensor> {
    let bytes = storages.get(&view.storage.key);
    let (all, _) = bytes
        .ok_or(broken("a storage is missing"))?
        .as_chunks::<4>();
    let mut places = vec![view.offset];
    for (size, stride) in view.shape.iter().zip(&view.strides) {
        // Every value is there once, so a view is never larger than its storage.
        if places.len().saturating_mul(*size) > all.len() {
            return Err(broken("a tensor larger than its storage"));
        }
        let steps = |from: &usize| {
            let from = *from;
            (0..*size).map(move |step| step.saturating_mul(*stride).saturating_add(from))
        };
        places = places.iter().flat_map(steps).collect();
    }
    let values = places.into_iter().map(|place| all.get(place));
    let values = values.map(|four| four.map(|four| f32::from_le_bytes(*four)));
    let values: Option<Vec<f32>> = values.collect();
    Ok(Tensor {
        shape: view.shape.clone(),
        values: values.ok_or(broken("a tensor reaches beyond its storage"))?,
    })
}

fn broken(reason: &str) -> EmbedError {
    EmbedError::Unavailable(format!("the weights cannot be read: {reason}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Long,
}

impl Kind {
    fn width(self) -> usize {
        match self {
            Kind::Float => 4,
            Kind::Long => 8,
        }
    }
}

#[derive(Debug, Clone)]
struct Storage {
    key: Rc<str>,
    kind: Kind,
}

#[derive(Debug, Clone)]
struct View {
    storage: Storage,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

#[derive(Debug, Clone)]
enum Value {
    Plain,
    Int(i64),
    Text(Rc<str>),
    Name(&'static str),
    Tuple(Rc<[Value]>, u8),
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Storage(Storage),
    Tensor(Rc<View>),
}

impl Value {
    fn text(&self) -> Result<Rc<str>> {
        match self {
            Value::Text(text) => Ok(Rc::clone(text)),
            _ => Err(broken("a name is no text")),
        }
    }

    fn size(&self) -> Result<usize> {
        match self {
            Value::Int(value) => usize::try_from(*value).map_err(|_| broken("a negative size")),
            _ => Err(broken("a size is no number")),
        }
    }

    fn sizes(&self) -> Result<Vec<usize>> {
        match self {
            Value::Tuple(items, _) => items.iter().map(Value::size).collect(),
            _ => Err(broken("a shape is no tuple")),
        }
    }

    fn depth(&self) -> u8 {
        match self {
            Value::Tuple(_, depth) => *depth,
            Value::List(items) => items.iter().map(Value::depth).max().unwrap_or(0) + 1,
            Value::Dict(entries) => {
                let depths = entries.iter().map(|(_, value)| value.depth());
                depths.max().unwrap_or(0) + 1
            }
            _ => 0,
        }
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let part = end.and_then(|end| self.bytes.get(self.at..end));
        let part = part.ok_or(broken("the file ends too early"))?;
        self.at += count;
        Ok(part)
    }

    /// An unsigned number of up to 8 bytes, the lowest first.
    fn number(&mut self, width: usize) -> Result<u64> {
        let bytes = self.take(width)?.iter().rev();
        Ok(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn length(&mut self, width: usize) -> Result<usize> {
        usize::try_from(self.number(width)?).map_err(|_| broken("a length too large"))
    }

    fn text(&mut self, length: usize) -> Result<&'a str> {
        std::str::from_utf8(self.take(length)?).map_err(|_| broken("a text is not UTF-8"))
    }

    fn line(&mut self) -> Result<&'a str> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n');
        let line = self.text(length.ok_or(broken("the file ends too early"))?)?;
        self.at += 1;
        Ok(line)
    }
}

/// What is put into a list or a table: with the depth of its container still within the bound.
fn check_items(items: &[Value]) -> Result<()> {
    check_depth(items.iter().map(Value::depth).max().unwrap_or(0) + 1)
}

/// Values are dropped recursively, so their depth must be bounded.
fn check_depth(depth: u8) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(broken("it is nested too deeply"));
    }
    Ok(())
}

#[derive(Default)]
struct Machine {
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

fn unpickle(input: &mut Input) -> Result<Value> {
    let mut machine = Machine::default();
    loop {
        match input.take(1)?[0] {
            b'.' => return machine.pop(),
            0x80 => match input.number(1)? {
                2 => {}
                _ => return Err(broken("an unknown pickle protocol")),
            },
            code => machine.step(code, input)?,
        }
    }
}

impl Machine {
    fn step(&mut self, code: u8, input: &mut Input) -> Result<()> {
        match code {
            b'(' => self.marks.push(self.stack.len()),
            // None, True, False: nothing here depends on them.
            b'N' | 0x88 | 0x89 => self.stack.push(Value::Plain),
            b'K' => self.push_int(input.number(1)?),
            b'M' => self.push_int(input.number(2)?),
            b'J' => self.push_int(input.number(4)?),
            // A long number appears only as the file's magic number.
            0x8a => {
                let length = input.length(1)?;
                input.take(length)?;
                self.stack.push(Value::Plain);
            }
            b'X' => {
                let length = input.length(4)?;
                self.stack.push(Value::Text(input.text(length)?.into()));
            }
            b'c' => {
                let name = format!("{} {}", input.line()?, input.line()?);
                let known = NAMES.into_iter().find(|known| *known == name);
                let known = known.ok_or_else(|| broken(&format!("it names {name}")))?;
                self.stack.push(Value::Name(known));
            }
            b'q' => self.remember(input.number(1)?)?,
            b'r' => self.remember(input.number(4)?)?,
            b'h' => self.recall(input.number(1)?)?,
            b'j' => self.recall(input.number(4)?)?,
            b')' => self.push_tuple(Vec::new())?,
            0x85 => self.tuple_of(1)?,
            0x86 => self.tuple_of(2)?,
            b't' => {
                let items = self.since_mark()?;
                self.push_tuple(items)?;
            }
            b']' => self.stack.push(Value::List(Vec::new())),
            b'}' => self.stack.push(Value::Dict(Vec::new())),
            b'e' => self.append()?,
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(vec![key, value])?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(items)?;
            }
            b'Q' => self.storage()?,
            b'R' => self.call()?,
            // The state of the table itself (versions of its modules).
            b'b' => drop(self.pop()?),
            other => return Err(broken(&format!("it has the opcode {other:#04x}"))),
        }
        Ok(())
    }

    fn push_int(&mut self, value: u64) {
        // Four bytes at most: they fit, and a negative one is refused as a size far too large.
        self.stack.push(Value::Int(value as i64));
    }

    fn pop(&mut self) -> Result<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(broken("its stack is empty"));
        }
        self.stack.pop().ok_or(broken("its stack is empty"))
    }

    fn since_mark(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or(broken("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple_of(&mut self, count: usize) -> Result<()> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.insert(0, self.pop()?);
        }
        self.push_tuple(items)
    }

    fn push_tuple(&mut self, items: Vec<Value>) -> Result<()> {
        let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
        check_depth(depth)?;
        self.stack.push(Value::Tuple(items.into(), depth));
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Result<()> {
        let value = self.stack.last().cloned();
        let value = value.ok_or(broken("it remembers nothing"))?;
        self.memo.insert(place, value);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Result<()> {
        let value = self.memo.get(&place).cloned();
        self.stack
            .push(value.ok_or(broken("it recalls what it never had"))?);
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        let items = self.since_mark()?;
        check_items(&items)?;
        match self.stack.last_mut() {
            Some(Value::List(list)) => list.extend(items),
            _ => return Err(broken("it appends to no list")),
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<Value>) -> Result<()> {
        check_items(&items)?;
        let Some(Value::Dict(entries)) = self.stack.last_mut() else {
            return Err(broken("it sets an entry of no table"));
        };
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        Ok(())
    }

    /// `("storage", type, key, "cpu", length, None)`
    fn storage(&mut self) -> Result<()> {
        let Value::Tuple(items, _) = self.pop()? else {
            return Err(broken("a storage without a description"));
        };
        let [_, Value::Name(kind), key, ..] = &items[..] else {
            return Err(broken("a storage with an unknown description"));
        };
        let kind = match *kind {
            "torch FloatStorage" => Kind::Float,
            "torch LongStorage" => Kind::Long,
            _ => return Err(broken("a storage of an unknown type")),
        };
        let key = key.text()?;
        self.stack.push(Value::Storage(Storage { key, kind }));
        Ok(())
    }

    /// The two calls a table of tensors makes: an empty table, and a view into a storage.
    fn call(&mut self) -> Result<()> {
        let (arguments, name) = (self.pop()?, self.pop()?);
        let (Value::Tuple(arguments, _), Value::Name(name)) = (arguments, name) else {
            return Err(broken("it calls something unknown"));
        };
        let made = match (name, &arguments[..]) {
            ("collections OrderedDict", []) => Value::Dict(Vec::new()),
            (
                "torch._utils _rebuild_tensor_v2",
                [Value::Storage(storage), offset, shape, strides, ..],
            ) => Value::Tensor(Rc::new(View {
                storage: storage.clone(),
                offset: offset.size()?,
                shape: shape.sizes()?,
                strides: strides.sizes()?,
            })),
            _ => return Err(broken(&format!("it calls {name} in an unknown way"))),
        };
        self.stack.push(made);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        read(bytes)
            .map(drop)
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn a_pickle_that_calls_the_shell_is_refused() {
        let reason = refusal(b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.");
        assert!(reason.contains("posix system"), "{reason}");
    }

    #[test]
    fn unknown_opcodes_are_refused() {
        for code in [b'i', b'o', b'\x81', b'\x93', b'P', b'F', b'\x95'] {
            let reason = refusal(&[0x80, 2, code, b'.']);
            assert!(reason.contains("opcode"), "{reason}");
        }
    }

    #[test]
    fn broken_programs_are_refused_without_a_panic() {
        let programs: [&[u8]; 8] = [
            b"",
            b"\x80\x02",
            b"\x80\x02.",
            b"\x80\x02t.",
            b"\x80\x02(R.",
            b"\x80\x02X\xff\xff\xff\xffab",
            b"\x80\x02h\x07.",
            b"\x80\x04N.",
        ];
        for program in programs {
            refusal(program);
        }
        let mut deep = b"\x80\x02)".to_vec();
        deep.extend([0x85; 100_000]);
        assert!(refusal(&deep).contains("nested"));
    }
}
