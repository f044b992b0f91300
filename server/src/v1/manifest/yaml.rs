//! YAML as far as a manifest needs it: read into JSON with the line of every part, and written in blocks. What makes a small
//! text a large one (aliases) is not taken, nor what nests without end.

use std::collections::HashMap;

use loupe_wire::{Object, Value};
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

/// How deep a manifest may nest, and how many parts it may have.
const DEEPEST: usize = 48;
const MOST: usize = 20_000;
/// Bytes of the names around a part: every one that names another resource has a path of its own.
const LONGEST: usize = 2_048;
/// Bytes of the paths whose lines are remembered.
const MOST_NOTED: usize = 8 << 20;

/// A text as it was read.
#[derive(Debug)]
pub struct Text {
    pub value: Value,
    /// The line of each part, by its path with dots between.
    lines: HashMap<String, usize>,
}

/// Why a text cannot be read.
#[derive(Debug)]
pub struct Fault {
    pub line: usize,
    pub message: String,
}

impl Text {
    /// The line of what a path leads to, or of the nearest part around it.
    pub fn line(&self, path: &[String]) -> Option<usize> {
        (0..=path.len())
            .rev()
            .find_map(|length| self.lines.get(&path[..length].join(".")))
            .copied()
    }
}

/// Reads a text, JSON or YAML of one document.
///
/// # Errors
/// The first fault with its line.
pub fn read(text: &str) -> Result<Text, Fault> {
    match serde_json::from_str::<Value>(text) {
        // All JSON of this kind is YAML, but for details of what stands in quotes.
        Ok(value) if value.is_object() => {
            // What stands in one line needs no search for it.
            let lines = match text.trim_end().contains('\n') {
                true => parse(text).map(|text| text.lines).unwrap_or_default(),
                false => HashMap::new(),
            };
            Ok(Text { value, lines })
        }
        _ => parse(text),
    }
}

/// Refuses what has too many parts, or names so long that the paths of its parts would be far larger than itself.
///
/// # Errors
/// What there is too much of.
pub fn weigh(value: &Value) -> Result<(), String> {
    weigh_part(value, 0, &mut 0)
}

fn weigh_part(value: &Value, around: usize, parts: &mut usize) -> Result<(), String> {
    *parts += 1;
    if *parts > MOST {
        return Err(format!("a manifest has at most {MOST} parts"));
    }
    if around > LONGEST {
        return Err(format!(
            "the names around a part have at most {LONGEST} bytes"
        ));
    }
    match value {
        Value::Object(members) => members
            .iter()
            .try_for_each(|(name, member)| weigh_part(member, around + name.len(), parts)),
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| weigh_part(item, around, parts)),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Result<Text, Fault> {
    let mut parser = Parser::new_from_str(text);
    let mut tree = Tree::default();
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| Fault {
            line: error.marker().line(),
            message: error.info().to_owned(),
        })?;
        let line = span.start.line();
        let begins = matches!(
            event,
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..)
        );
        if begins {
            tree.note(line);
        }
        tree.take(event)
            .map_err(|message| Fault { line, message })?;
        if begins && tree.has_key() {
            tree.note(line);
        }
    }
    Ok(Text {
        value: tree.root.unwrap_or(Value::Null),
        lines: tree.lines,
    })
}

/// A list or a mapping that is being read.
enum Open {
    List(Vec<Value>),
    Map(Object, Option<String>),
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    root: Option<Value>,
    lines: HashMap<String, usize>,
    /// Bytes of their paths.
    noted: usize,
    parts: usize,
}

impl Tree {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Alias(_) => Err("aliases are not taken: write it out".into()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("a manifest is one document".into())
            }
            Event::Scalar(text, style, _, tag) => self.scalar(&text, style, tag.as_deref()),
            Event::SequenceStart(..) => self.begin(Open::List(Vec::new())),
            Event::MappingStart(..) => self.begin(Open::Map(Object::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(items)) => self.put(Value::Array(items)),
                Some(Open::Map(members, _)) => self.put(Value::Object(members)),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Whether a key of a mapping comes next.
    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map(_, None)))
    }

    /// Whether the value of a key comes next.
    fn has_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map(_, Some(_))))
    }

    fn begin(&mut self, part: Open) -> Result<(), String> {
        if self.awaits_key() {
            return Err("a key is a text".into());
        }
        self.count()?;
        if self.open.len() >= DEEPEST {
            return Err(format!("a manifest nests at most {DEEPEST} deep"));
        }
        self.open.push(part);
        Ok(())
    }

    fn count(&mut self) -> Result<(), String> {
        self.parts += 1;
        match self.parts > MOST {
            true => Err(format!("a manifest has at most {MOST} parts")),
            false => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<(), String> {
        self.count()?;
        let bare = style == ScalarStyle::Plain;
        if let Some(Open::Map(members, key @ None)) = self.open.last_mut() {
            if bare && text == "<<" {
                return Err("merge keys are not taken: write it out".into());
            }
            if members.contains_key(text) {
                return Err(format!("the key '{text}' is there twice"));
            }
            *key = Some(text.to_owned());
            return Ok(());
        }
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        self.put(match bare && !is_text {
            true => plain(text),
            false => text.into(),
        })
    }

    fn put(&mut self, value: Value) -> Result<(), String> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map(members, key)) => {
                let key = key.take().ok_or("a key is a text")?;
                members.insert(key, value);
            }
        }
        Ok(())
    }

    /// Remembers where the part begins that is read now.
    fn note(&mut self, line: usize) {
        // A part without a line has that of what is around it.
        if self.noted > MOST_NOTED {
            return;
        }
        let pieces = self.open.iter().map_while(|part| match part {
            Open::List(items) => Some(items.len().to_string()),
            Open::Map(_, key) => key.clone(),
        });
        let path = pieces.collect::<Vec<_>>().join(".");
        self.noted += path.len();
        self.lines.entry(path).or_insert(line);
    }
}

/// What a text without quotes is, by YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    number(text).unwrap_or_else(|| text.into())
}

fn number(text: &str) -> Option<Value> {
    let digits = |base: u32, rest: &str| u64::from_str_radix(rest, base).ok().map(Value::from);
    if let Some(rest) = text.strip_prefix("0x") {
        return digits(16, rest);
    }
    if let Some(rest) = text.strip_prefix("0o") {
        return digits(8, rest);
    }
    let of_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.bytes().all(of_number) || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let whole = text.parse::<i64>().map(Value::from);
    let whole = whole.or_else(|_| text.parse::<u64>().map(Value::from));
    match whole {
        Ok(number) => Some(number),
        Err(_) => {
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Value::from)
        }
    }
}

/// Writes a value as YAML, members in their order.
pub fn write(value: &Value) -> String {
    let mut text = String::new();
    match is_block(value) {
        true => block(&mut text, value, 0, false),
        false => {
            text.push_str(&flat(value));
            text.push('\n');
        }
    }
    text
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Writes what has parts, each on lines of its own; the first one may go on in the line that was begun.
fn block(text: &mut String, value: &Value, indent: usize, mut begun: bool) {
    let mut start = |text: &mut String| {
        if !std::mem::take(&mut begun) {
            text.push_str(&" ".repeat(indent));
        }
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                start(text);
                text.push_str(&word(name));
                text.push(':');
                if is_block(member) {
                    text.push('\n');
                    block(text, member, indent + 2, false);
                } else {
                    text.push(' ');
                    text.push_str(&flat(member));
                    text.push('\n');
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                start(text);
                text.push_str("- ");
                if is_block(item) {
                    block(text, item, indent + 2, true);
                } else {
                    text.push_str(&flat(item));
                    text.push('\n');
                }
            }
        }
        _ => {}
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// A text, in quotes unless every reader of YAML, also of older versions, takes it for the text that it is.
fn word(text: &str) -> String {
    let plain_character = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let is_bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.ends_with(' ')
        && text.chars().all(plain_character)
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    match is_bare {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// A text as JSON writes it, with what may not stand in YAML as it is escaped, too: control characters of the second block,
/// ends of lines of older versions, and marks of byte order.
fn quoted(text: &str) -> String {
    let is_hidden = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    let json = Value::from(text).to_string();
    let mut written = String::with_capacity(json.len());
    for c in json.chars() {
        match is_hidden(c) {
            true => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => written.push(c),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let value = json!({
            "version": "1.0", "empty": {}, "none": [], "null": null, "yes": "no", "007": "007", "a: b": "c # d",
            "texts": ["", " ", "two\nlines", "{{INPUT.query}}", "${{ secrets.KEY }}", "üñí", "- x", "1e5", "0x1f", "~", "\u{7f}\u{85}\u{96} \u{2028}\u{feff}\u{ffff} \u{1f40b}"],
            "numbers": [0, -1, 1.5, 1e21, u64::MAX],
            "lists": [[1, [2, []]], [{"a": [{"b": true}], "c": {}}]],
        });
        let text = write(&value);
        assert_eq!(parse(&text).unwrap().value, value, "{text}");
        assert!(!text.contains([
            '\u{7f}', '\u{85}', '\u{96}', '\u{2028}', '\u{feff}', '\u{ffff}'
        ]));
        assert_eq!(read(&value.to_string()).unwrap().value, value);
        assert_eq!(read("plain").unwrap().value, json!("plain"));
    }

    #[test]
    fn texts_are_read_as_people_write_them() {
        let text = "# what it is\nname: films # here\nlong: >-\n  one\n  two\nkept: |\n  a\n  b\nlist:\n- {a: 1, b: [x, 'y z']}\n-\n  c: !!str 12\n  d: 0o17\n  e: 2024-01-01\n";
        let read = read(text).unwrap();
        let expected = json!({
            "name": "films", "long": "one two", "kept": "a\nb\n",
            "list": [{"a": 1, "b": ["x", "y z"]}, {"c": "12", "d": 15, "e": "2024-01-01"}],
        });
        assert_eq!(read.value, expected);
        let line = |path: &str| read.line(&path.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(line("name"), Some(2));
        assert_eq!(
            (line("list"), line("list.0"), line("list.1")),
            (Some(9), Some(10), Some(12))
        );
        assert_eq!(line("list.0.b.1"), Some(10));
        assert_eq!(line("list.1.d"), Some(13));
        assert_eq!(line("list.1.d.nothing.of.it"), Some(13));
    }

    #[test]
    fn what_would_grow_or_nest_without_end_is_refused() {
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\n";
        let fault = read(bomb).unwrap_err();
        assert!(
            fault.line == 2 && fault.message.contains("aliases"),
            "{fault:?}"
        );
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"{a: ".repeat(200)).is_err());
        let deep: String = (0..200).map(|depth| " ".repeat(depth) + "a:\n").collect();
        assert!(read(&deep).unwrap_err().message.contains("deep"));
        let many = "- a\n".repeat(MOST + 1);
        assert!(read(&many).unwrap_err().message.contains("parts"));
        let merged = "a: {<<: {b: 1}}";
        assert!(read(merged).unwrap_err().message.contains("merge"));
        assert!(read("a: 1\na: 2").unwrap_err().message.contains("twice"));
        assert!(
            read("a: 1\n---\nb: 2")
                .unwrap_err()
                .message
                .contains("one document")
        );
        assert!(
            read("? [a]\n: 1")
                .unwrap_err()
                .message
                .contains("a key is a text")
        );
        let fault = read("a: 1\nb: [1,\nc: 2\n").unwrap_err();
        assert!(fault.line >= 2, "{fault:?}");
    }
}
