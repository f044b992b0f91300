//! The tree of a table's fields, and how the entries of its columns become the fields of a row again.

use loupe_wire::{Object, Value};

use super::column::{Entry, Leaf, VALUE};
use super::thrift::Struct;
use super::values::{Meaning, Stored};
use super::{Result, broken, too_large};

/// Columns of a table, and fields within fields.
const COLUMNS: u64 = 2_000;
const DEPTH: usize = 16;
/// What a field weighs in a row beside its name.
const MEMBER: usize = 16;

/// What a field is.
#[derive(Debug)]
enum Kind {
    Leaf,
    Fields(Vec<Node>),
    /// A group of a single field, of which the value is that of the field.
    Only(Vec<Node>),
    /// A list: of what is repeated in it.
    List(Box<Node>),
    /// Keys and their values.
    Map(Box<Node>),
}

/// A field.
#[derive(Debug)]
pub struct Node {
    name: String,
    kind: Kind,
    is_repeated: bool,
    /// How much of the way is there where this field is, and how often it is repeated.
    defined: u64,
    repeated: u64,
    /// Its columns: the first, and how many.
    first: usize,
    count: usize,
}

/// The fields of a row, and the columns that they are kept in.
pub struct Schema {
    root: Node,
    pub leaves: Vec<Leaf>,
}

impl Schema {
    pub fn of(elements: &[&Struct]) -> Result<Self> {
        let mut reader = Reader {
            elements,
            at: 0,
            leaves: Vec::new(),
        };
        let root = reader.node((0, 0), DEPTH)?;
        let mut leaves = reader.leaves;
        if leaves.is_empty() {
            return Err(broken("it has no columns"));
        }
        weigh(&root, &mut Vec::new(), &mut leaves);
        Ok(Self { root, leaves })
    }

    /// A row of the entries that each column has of it.
    pub fn row(&self, entries: &[Vec<Entry>]) -> Result<Object> {
        let entries: Vec<&[Entry]> = entries.iter().map(Vec::as_slice).collect();
        match inner(&self.root, &entries)? {
            Value::Object(row) => Ok(row),
            _ => Err(broken("a row has no fields")),
        }
    }
}

struct Reader<'a> {
    elements: &'a [&'a Struct],
    at: usize,
    leaves: Vec<Leaf>,
}

impl Reader<'_> {
    /// The next field with all that is in it.
    fn node(&mut self, (mut defined, mut repeated): (u64, u64), depth: usize) -> Result<Node> {
        let element = self.elements.get(self.at).copied();
        let element = element.ok_or_else(|| broken("its fields are not described"))?;
        let (is_root, first) = (self.at == 0, self.leaves.len());
        self.at += 1;
        if depth == 0 {
            return Err(broken("its fields lie too deep"));
        }
        let repetition = match is_root {
            true => 0,
            false => element.int(3).unwrap_or(0),
        };
        defined += u64::from(repetition != 0);
        repeated += u64::from(repetition == 2);
        let children = element.int(5).unwrap_or(0);
        let kind = if children > 0 {
            let mut fields = Vec::new();
            for _ in 0..children {
                fields.push(self.node((defined, repeated), depth - 1)?);
            }
            group(element, fields)
        } else {
            if self.leaves.len() as u64 == COLUMNS {
                return Err(too_large("its list of columns", COLUMNS));
            }
            self.leaves.push(Leaf {
                stored: Stored::of(element)?,
                meaning: Meaning::of(element),
                most_defined: defined,
                most_repeated: repeated,
                costs: Vec::new(),
            });
            Kind::Leaf
        };
        Ok(Node {
            name: element.text(4).unwrap_or_default(),
            kind,
            is_repeated: repetition == 2,
            defined,
            repeated,
            first,
            count: self.leaves.len() - first,
        })
    }
}

/// Lists and maps are groups of one field that is repeated.
fn group(element: &Struct, mut fields: Vec<Node>) -> Kind {
    let logical = element.of(10);
    let says = |logic: i64, old: &[i64]| {
        logical.is_some_and(|logical| logical.has(logic))
            || element.int(6).is_some_and(|kind| old.contains(&kind))
    };
    let (is_list, is_map) = (says(3, &[3]), says(2, &[1, 2]));
    match fields.pop() {
        Some(only) if fields.is_empty() && only.is_repeated && is_list => {
            Kind::List(bare(only).into())
        }
        Some(only) if fields.is_empty() && only.is_repeated && is_map => Kind::Map(only.into()),
        last => {
            fields.extend(last);
            Kind::Fields(fields)
        }
    }
}

/// A group of a single field around each item is the form's, not the table's.
fn bare(item: Node) -> Node {
    let is_form = item.name != "array" && !item.name.ends_with("_tuple");
    let kind = match item.kind {
        Kind::Fields(fields) if is_form && fields.len() == 1 => Kind::Only(fields),
        kind => kind,
    };
    Node { kind, ..item }
}

/// Writes down what entries of each column add to a row. The names of fields are in every row and in every item of a list,
/// and nothing of a file says how often: a long one in a long list would take all memory. `way` is of the fields that lead
/// here: how often they are repeated, and what each weighs.
fn weigh(node: &Node, way: &mut Vec<(u64, usize)>, leaves: &mut [Leaf]) {
    match &node.kind {
        Kind::Leaf => {
            let at = |repeated: u64| {
                let anew = way.iter().filter(|(of, _)| *of >= repeated);
                VALUE + anew.map(|(_, weight)| weight).sum::<usize>()
            };
            if let Some(leaf) = leaves.get_mut(node.first) {
                leaf.costs = (0..=node.repeated).map(at).collect();
            }
        }
        Kind::Fields(fields) => {
            for field in fields {
                way.push((node.repeated, MEMBER + field.name.len()));
                weigh(field, way, leaves);
                way.pop();
            }
        }
        Kind::Only(fields) => fields.iter().for_each(|field| weigh(field, way, leaves)),
        Kind::List(item) | Kind::Map(item) => weigh(item, way, leaves),
    }
}

/// The value of a field in an instance of what it is in.
fn value(node: &Node, entries: &[&[Entry]]) -> Result<Value> {
    let first = entries.first().and_then(|column| column.first());
    let first = first.ok_or_else(|| broken("a column ends too early"))?;
    let is_there = first.defined >= node.defined;
    if !node.is_repeated {
        return if is_there {
            inner(node, entries)
        } else {
            Ok(Value::Null)
        };
    }
    if !is_there {
        return Ok(Value::Array(Vec::new()));
    }
    let columns: Vec<Vec<&[Entry]>> = entries
        .iter()
        .map(|column| split(column, node.repeated))
        .collect();
    let length = columns.first().map_or(0, Vec::len);
    if columns.iter().any(|items| items.len() != length) {
        return Err(broken("the columns of a list do not fit"));
    }
    let item = |at: usize| {
        let entries: Vec<&[Entry]> = columns.iter().map(|items| items[at]).collect();
        inner(node, &entries)
    };
    (0..length).map(item).collect()
}

/// The instances of what is repeated so often: each begins where it is.
fn split(column: &[Entry], repeated: u64) -> Vec<&[Entry]> {
    let mut items = Vec::new();
    let mut begin = 0;
    for (at, entry) in column.iter().enumerate().skip(1) {
        if entry.repeated <= repeated {
            items.push(&column[begin..at]);
            begin = at;
        }
    }
    items.push(&column[begin..]);
    items
}

/// The value of a field that is there, of one instance of it.
fn inner(node: &Node, entries: &[&[Entry]]) -> Result<Value> {
    let of = |child: &Node| {
        let begin = child.first - node.first;
        let columns = entries.get(begin..begin + child.count);
        value(child, columns.unwrap_or_default())
    };
    Ok(match &node.kind {
        Kind::Leaf => {
            let entry = entries.first().and_then(|column| column.first());
            entry.map_or(Value::Null, |entry| entry.value.clone())
        }
        Kind::Fields(fields) => {
            let mut row = Object::new();
            for field in fields {
                row.insert(field.name.clone(), of(field)?);
            }
            Value::Object(row)
        }
        Kind::Only(fields) => fields.first().map_or(Ok(Value::Null), of)?,
        Kind::List(item) => of(item)?,
        Kind::Map(entry) => match of(entry)? {
            Value::Array(entries) => map(entry, entries),
            other => other,
        },
    })
}

/// An object, where all keys are texts.
fn map(entry: &Node, entries: Vec<Value>) -> Value {
    let Kind::Fields(fields) = &entry.kind else {
        return Value::Array(entries);
    };
    let key = |entry: &Value| {
        let key = fields.first().and_then(|field| entry.get(&field.name));
        key.and_then(Value::as_str).map(str::to_owned)
    };
    let keys: Option<Vec<String>> = entries.iter().map(key).collect();
    let Some(keys) = keys else {
        return Value::Array(entries);
    };
    let values = entries.into_iter().map(|mut entry| {
        let value = fields.get(1).and_then(|field| entry.get_mut(&field.name));
        value.map_or(Value::Null, Value::take)
    });
    Value::Object(keys.into_iter().zip(values).collect())
}
