//! What a schema says, read and checked.

use std::collections::{BTreeMap, BTreeSet};

use loupe_engine::filter::MAX_REGEX_BYTES;
use loupe_wire::{Object, Value};
use regex::{Regex, RegexBuilder};

use super::{Kind, Others, Schema, Unreadable};

/// Schemas that one schema is made of.
const MOST: usize = 1_000;
/// Pieces of the longest path to one of them.
const DEEPEST: usize = 32;
/// Patterns of one schema, bytes that one takes when it is compiled, and those of the table that it makes as it is asked.
const PATTERNS: usize = 32;
const PATTERN: usize = 256 << 10;
const TABLE: usize = 1 << 20;
/// Values of an enum, each of which a value may be compared with; bytes of them, or of a const, as JSON.
const VALUES: usize = 256;
const TEXT: usize = 16 << 10;
/// Members that an object is asked to have.
const NAMES: usize = 1_000;

/// Members that ask nothing of a value.
const NOTES: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// A schema being read.
pub(super) struct Reading {
    /// Schemas that it may yet hold.
    left: usize,
    patterns: usize,
    path: Vec<String>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            left: MOST,
            patterns: PATTERNS,
            path: Vec::new(),
        }
    }
}

impl Reading {
    pub(super) fn refuse<T>(&self, member: &str, msg: &str) -> Result<T, Unreadable> {
        let mut path = self.path.clone();
        path.push(member.to_owned());
        let msg = msg.to_owned();
        Err(Unreadable { path, msg })
    }

    pub(super) fn schema(&mut self, written: &Object) -> Result<Schema, Unreadable> {
        let mut schema = Schema::default();
        for (name, value) in written {
            self.member(&mut schema, name, value)?;
        }
        Ok(schema)
    }

    /// A schema inside of this one.
    fn inner(&mut self, place: &[&str], value: &Value) -> Result<Schema, Unreadable> {
        let before = self.path.len();
        self.path
            .extend(place.iter().map(|piece| (*piece).to_owned()));
        if self.left == 0 || self.path.len() > DEEPEST {
            let msg = "at most 1000 schemas, one inside another 16 times";
            return Err(Unreadable {
                path: self.path.clone(),
                msg: msg.to_owned(),
            });
        }
        self.left -= 1;
        let Some(written) = value.as_object() else {
            return Err(Unreadable {
                path: self.path.clone(),
                msg: "a schema is an object".to_owned(),
            });
        };
        let schema = self.schema(written)?;
        self.path.truncate(before);
        Ok(schema)
    }

    fn member(&mut self, schema: &mut Schema, name: &str, value: &Value) -> Result<(), Unreadable> {
        match name {
            "type" => schema.kinds = self.kinds(value)?,
            "enum" => schema.allowed = Some(self.values(name, value)?),
            "const" => schema.fixed = Some(self.fixed(value)?),
            "minimum" => schema.range.least = Some(self.number(name, value)?),
            "exclusiveMinimum" => schema.range.above = Some(self.number(name, value)?),
            "maximum" => schema.range.most = Some(self.number(name, value)?),
            "exclusiveMaximum" => schema.range.below = Some(self.number(name, value)?),
            "minLength" => schema.characters.least = Some(self.length(name, value)?),
            "maxLength" => schema.characters.most = Some(self.length(name, value)?),
            "pattern" => schema.pattern = Some(self.pattern(value)?),
            "items" => schema.items = Some(Box::new(self.inner(&["items"], value)?)),
            "minItems" => schema.count.least = Some(self.length(name, value)?),
            "maxItems" => schema.count.most = Some(self.length(name, value)?),
            "properties" => schema.properties = self.properties(value)?,
            "required" => schema.required = self.names(value)?,
            "additionalProperties" => schema.others = self.others(value)?,
            _ if NOTES.contains(&name) => {}
            _ => {
                let msg = "documents are checked by type, enum, const, minimum, maximum, exclusiveMinimum, \
                           exclusiveMaximum, minLength, maxLength, pattern, items, minItems, maxItems, properties, \
                           required and additionalProperties";
                return self.refuse(name, msg);
            }
        }
        Ok(())
    }

    fn kinds(&self, value: &Value) -> Result<Vec<Kind>, Unreadable> {
        let words = match value {
            Value::Array(words) if !words.is_empty() => words.as_slice(),
            word => std::slice::from_ref(word),
        };
        let kind = |word: &Value| {
            let known = Kind::ALL.into_iter().find(|kind| word == kind.name());
            let msg = "null, boolean, integer, number, string, array or object, or a list of these";
            known.map_or_else(|| self.refuse("type", msg), Ok)
        };
        let mut kinds = Vec::new();
        for word in words {
            let kind = kind(word)?;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }

    fn values(&self, name: &str, value: &Value) -> Result<Vec<Value>, Unreadable> {
        let msg = "a list of 1 to 256 values, with at most 16384 bytes as JSON";
        match value {
            Value::Array(values)
                if (1..=VALUES).contains(&values.len()) && value.to_string().len() <= TEXT =>
            {
                Ok(values.clone())
            }
            _ => self.refuse(name, msg),
        }
    }

    fn fixed(&self, value: &Value) -> Result<Value, Unreadable> {
        match value.to_string().len() <= TEXT {
            true => Ok(value.clone()),
            false => self.refuse("const", "a value with at most 16384 bytes as JSON"),
        }
    }

    fn number(&self, name: &str, value: &Value) -> Result<f64, Unreadable> {
        let number = value.as_f64();
        number.map_or_else(|| self.refuse(name, "a number"), Ok)
    }

    fn length(&self, name: &str, value: &Value) -> Result<usize, Unreadable> {
        let length = value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok());
        length.map_or_else(|| self.refuse(name, "a whole number from 0"), Ok)
    }

    fn pattern(&mut self, value: &Value) -> Result<Regex, Unreadable> {
        let Some(text) = value.as_str() else {
            return self.refuse("pattern", "a regular expression");
        };
        if self.patterns == 0 {
            return self.refuse("pattern", "a schema has at most 32 patterns");
        }
        self.patterns -= 1;
        if text.len() > MAX_REGEX_BYTES {
            let msg = format!("a regular expression has {MAX_REGEX_BYTES} bytes at most");
            return self.refuse("pattern", &msg);
        }
        let compiled = RegexBuilder::new(text)
            .size_limit(PATTERN)
            .dfa_size_limit(TABLE)
            .build();
        compiled.or_else(|error| {
            let msg = format!("this regular expression cannot be followed: {error}");
            self.refuse("pattern", &msg)
        })
    }

    fn names(&self, value: &Value) -> Result<Vec<String>, Unreadable> {
        let names = value.as_array().map(|names| {
            let names = names
                .iter()
                .map(|name| name.as_str().map(ToOwned::to_owned));
            names.collect::<Option<Vec<String>>>()
        });
        let msg = "a list of the members that a value must have, at most 1000";
        let names = names.flatten().filter(|names| names.len() <= NAMES);
        let mut names = names.map_or_else(|| self.refuse("required", msg), Ok)?;
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    fn properties(&mut self, value: &Value) -> Result<BTreeMap<String, Schema>, Unreadable> {
        let Some(written) = value.as_object() else {
            return self.refuse("properties", "an object of schemas");
        };
        let mut properties = BTreeMap::new();
        for (name, inner) in written {
            let schema = self.inner(&["properties", name], inner)?;
            properties.insert(name.clone(), schema);
        }
        Ok(properties)
    }

    fn others(&mut self, value: &Value) -> Result<Others, Unreadable> {
        match value {
            Value::Bool(true) => Ok(Others::Any),
            Value::Bool(false) => Ok(Others::None),
            inner => {
                let schema = self.inner(&["additionalProperties"], inner)?;
                Ok(Others::Of(Box::new(schema)))
            }
        }
    }
}
