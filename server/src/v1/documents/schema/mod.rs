//! A JSON Schema of documents: the part of it that says what a value is. What combines schemas or refers to others is refused
//! as the schema is written, so that nothing it asks for is passed over later.

mod reading;

use std::collections::BTreeMap;

use loupe_wire::{Object, Value};
use regex::Regex;

use self::reading::Reading;

/// Faults told of one document.
const TOLD: usize = 20;
/// Characters of what was expected, of each piece of the place, and of what was found instead.
const LETTERS: usize = 200;

/// Why a schema cannot be followed, and where.
#[derive(Debug)]
pub struct Unreadable {
    pub path: Vec<String>,
    pub msg: String,
}

/// What is not as the schema says. What is long is told by how it begins.
#[derive(Debug)]
pub struct Fault {
    pub path: Vec<String>,
    pub kind: &'static str,
    pub expected: String,
    pub found: Value,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => write!(out, "expected {}", self.expected),
            false => write!(out, "{}: expected {}", self.path.join("."), self.expected),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Null,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::String,
        Self::Array,
        Self::Object,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// The type of the fault where a value is not of this kind.
    const fn fault(self) -> &'static str {
        match self {
            Self::Null => "none_required",
            Self::Boolean => "bool_type",
            Self::Integer => "int_type",
            Self::Number => "float_type",
            Self::String => "string_type",
            Self::Array => "list_type",
            Self::Object => "dict_type",
        }
    }

    fn is(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => match value.as_f64() {
                Some(number) if value.is_f64() => number.fract() == 0.0,
                number => number.is_some(),
            },
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// Bounds of a number.
#[derive(Debug, Default)]
struct Range {
    least: Option<f64>,
    above: Option<f64>,
    most: Option<f64>,
    below: Option<f64>,
}

/// Bounds of a length.
#[derive(Debug, Default)]
struct Length {
    least: Option<usize>,
    most: Option<usize>,
}

/// Members that a schema does not name.
#[derive(Debug, Default)]
enum Others {
    #[default]
    Any,
    None,
    Of(Box<Schema>),
}

/// A schema that can be followed. What is empty asks nothing.
#[derive(Debug, Default)]
pub struct Schema {
    kinds: Vec<Kind>,
    allowed: Option<Vec<Value>>,
    fixed: Option<Value>,
    range: Range,
    characters: Length,
    pattern: Option<Regex>,
    items: Option<Box<Schema>>,
    count: Length,
    properties: BTreeMap<String, Schema>,
    required: Vec<String>,
    others: Others,
}

impl Schema {
    /// Reads the schema of a document, which is an object.
    ///
    /// # Errors
    /// What it says is no schema, or more than this server follows.
    pub fn read(written: &Object) -> Result<Self, Unreadable> {
        let mut reading = Reading::default();
        let schema = reading.schema(written)?;
        if !schema.kinds.is_empty() && !schema.kinds.contains(&Kind::Object) {
            return reading.refuse("type", "a document is an object");
        }
        Ok(schema)
    }

    /// What of a document is not as the schema says: the first faults.
    pub fn faults(&self, document: &Object) -> Vec<Fault> {
        let mut checking = Checking::default();
        checking.object(self, document);
        checking.faults
    }
}

/// A document being checked.
#[derive(Default)]
struct Checking {
    path: Vec<String>,
    faults: Vec<Fault>,
}

impl Checking {
    fn refuse(&mut self, kind: &'static str, expected: impl Into<String>, found: &Value) {
        if self.faults.len() < TOLD {
            let mut left = LETTERS;
            self.faults.push(Fault {
                path: self.path.iter().map(|piece| cut(piece, LETTERS)).collect(),
                kind,
                expected: cut(&expected.into(), LETTERS),
                found: beginning(found, &mut left),
            });
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value) {
        if self.faults.len() >= TOLD {
            return;
        }
        let kinds = &schema.kinds;
        if !kinds.is_empty() && !kinds.iter().any(|kind| kind.is(value)) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            return self.refuse(kinds[0].fault(), names.join(" or "), value);
        }
        if let Some(fixed) = schema.fixed.as_ref().filter(|fixed| *fixed != value) {
            self.refuse("const", fixed.to_string(), value);
        }
        if let Some(allowed) = &schema.allowed
            && !allowed.contains(value)
        {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            self.refuse("enum", format!("one of {}", allowed.join(", ")), value);
        }
        match value {
            Value::Number(_) => self.number(&schema.range, value),
            Value::String(text) => self.text(schema, text, value),
            Value::Array(items) => self.list(schema, items, value),
            Value::Object(members) => self.object(schema, members),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn number(&mut self, range: &Range, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        if let Some(least) = range.least.filter(|least| number < *least) {
            self.refuse("greater_than_equal", format!("at least {least}"), value);
        }
        if let Some(above) = range.above.filter(|above| number <= *above) {
            self.refuse("greater_than", format!("more than {above}"), value);
        }
        if let Some(most) = range.most.filter(|most| number > *most) {
            self.refuse("less_than_equal", format!("at most {most}"), value);
        }
        if let Some(below) = range.below.filter(|below| number >= *below) {
            self.refuse("less_than", format!("less than {below}"), value);
        }
    }

    fn text(&mut self, schema: &Schema, text: &str, value: &Value) {
        let bounds = &schema.characters;
        if bounds.least.is_some() || bounds.most.is_some() {
            let length = text.chars().count();
            if let Some(least) = bounds.least.filter(|least| length < *least) {
                let expected = format!("at least {least} characters");
                self.refuse("string_too_short", expected, value);
            }
            if let Some(most) = bounds.most.filter(|most| length > *most) {
                let expected = format!("at most {most} characters");
                self.refuse("string_too_long", expected, value);
            }
        }
        if let Some(pattern) = &schema.pattern
            && !pattern.is_match(text)
        {
            let expected = format!("a text that matches {pattern}");
            self.refuse("string_pattern_mismatch", expected, value);
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value], value: &Value) {
        if let Some(least) = schema.count.least.filter(|least| items.len() < *least) {
            self.refuse("too_short", format!("at least {least} items"), value);
        }
        if let Some(most) = schema.count.most.filter(|most| items.len() > *most) {
            self.refuse("too_long", format!("at most {most} items"), value);
        }
        let Some(inner) = &schema.items else { return };
        for (place, item) in items.iter().enumerate() {
            self.inside(place.to_string(), inner, item);
        }
    }

    fn object(&mut self, schema: &Schema, members: &Object) {
        for name in &schema.required {
            if !members.contains_key(name) {
                self.path.push(name.clone());
                self.refuse("missing", "a value", &Value::Null);
                self.path.pop();
            }
        }
        for (name, value) in members {
            match (schema.properties.get(name), &schema.others) {
                (Some(inner), _) => self.inside(name.clone(), inner, value),
                (None, Others::Of(inner)) => self.inside(name.clone(), inner, value),
                (None, Others::None) => {
                    self.path.push(name.clone());
                    self.refuse("extra_forbidden", "no such member", value);
                    self.path.pop();
                }
                (None, Others::Any) => {}
            }
        }
    }

    fn inside(&mut self, piece: String, schema: &Schema, value: &Value) {
        self.path.push(piece);
        self.value(schema, value);
        self.path.pop();
    }
}

/// A text, or so many characters of it.
fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How a value begins, as a value of its kind: what is left goes down by each value and each character of a text.
fn beginning(value: &Value, left: &mut usize) -> Value {
    match value {
        Value::String(text) => {
            let told = cut(text, *left);
            *left = left.saturating_sub(told.chars().count());
            Value::String(told)
        }
        Value::Array(items) => {
            let mut told = Vec::new();
            for item in items {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                told.push(beginning(item, left));
            }
            Value::Array(told)
        }
        Value::Object(members) => {
            let mut told = Object::new();
            for (name, member) in members {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                told.insert(cut(name, LETTERS), beginning(member, left));
            }
            Value::Object(told)
        }
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(written: Value) -> Result<Schema, String> {
        let written = written.as_object().cloned().unwrap();
        Schema::read(&written).map_err(|fault| fault.path.join("."))
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let schema = read(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": ["title", "year"],
            "additionalProperties": false,
            "properties": {
                "title": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
                "year": {"type": ["integer", "null"], "minimum": 1900, "exclusiveMaximum": 2100},
                "kind": {"enum": ["a", 1]}, "one": {"const": 1},
                "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
                "more": {"type": "object", "additionalProperties": {"type": "boolean"}, "required": ["x"]},
            },
        }))
        .unwrap();
        let told = |document: Value| -> Vec<String> {
            let faults = schema.faults(document.as_object().unwrap());
            faults
                .iter()
                .map(|fault| format!("{} {}", fault.path.join("."), fault.kind))
                .collect()
        };
        let good = json!({"title": "abc", "year": 1984.0, "kind": 1, "one": 1, "tags": ["x"], "more": {"x": true}});
        assert!(told(good).is_empty());
        assert!(told(json!({"title": "ab", "year": null})).is_empty());
        let mut faults = told(json!({
            "title": "A", "year": 2100, "kind": "b", "one": 2, "tags": [1, "x", "y"], "more": {"y": 1}, "other": 0,
        }));
        faults.sort();
        assert_eq!(
            faults,
            [
                "kind enum",
                "more.x missing",
                "more.y bool_type",
                "one const",
                "other extra_forbidden",
                "tags too_long",
                "tags.0 string_type",
                "title string_pattern_mismatch",
                "title string_too_short",
                "year less_than",
            ]
        );
        assert_eq!(told(json!({"title": "ab", "year": 1.5})), ["year int_type"]);
        assert_eq!(told(json!({})), ["title missing", "year missing"]);
        let many: Object = (0..100)
            .map(|one| (format!("m{one}"), Value::Null))
            .collect();
        assert_eq!(schema.faults(&many).len(), TOLD);
    }

    #[test]
    fn what_is_long_is_told_by_how_it_begins() {
        let values: Vec<String> = (0..256).map(|one| format!("value {one}")).collect();
        let schema = read(json!({
            "required": ["a", "a"], "additionalProperties": false,
            "properties": {"a": {"enum": values}, "b": {"type": ["null", "null"]}, "c": {"maxItems": 1}},
        }))
        .unwrap();
        let long = "ä".repeat(5_000);
        let many = vec![1; 5_000];
        let document =
            json!({"a": long, "b": [long, long], "c": many, (long.clone()): {"x": long}});
        let faults = schema.faults(document.as_object().unwrap());
        assert_eq!(faults.len(), 4);
        for fault in faults {
            let most = LETTERS + 1;
            assert!(fault.expected.chars().count() <= most, "{fault:?}");
            assert!(fault.path[0].chars().count() <= most, "{fault:?}");
            let found = fault.found.to_string();
            assert!(found.chars().count() < 3 * LETTERS, "{fault:?}");
            match fault.kind {
                "enum" => assert!(fault.found.is_string()),
                "none_required" => assert!(fault.found.is_array() && fault.expected == "null"),
                "too_long" => assert!(fault.found.is_array()),
                _ => assert!(fault.found.is_object()),
            }
        }
        assert_eq!(
            schema.faults(&Object::new()).len(),
            1,
            "a name is asked for once"
        );
    }

    #[test]
    fn what_cannot_be_followed_is_refused_where_it_is() {
        let mut deep = json!({"type": "string"});
        for _ in 0..40 {
            deep = json!({"items": deep});
        }
        let deep = read(deep).unwrap_err();
        assert!(deep.starts_with("items.items"), "{deep}");
        for (written, place) in [
            (json!({"type": "text"}), "type"),
            (json!({"type": "array"}), "type"),
            (
                json!({"properties": {"a": {"$ref": "#"}}}),
                "properties.a.$ref",
            ),
            (json!({"properties": {"a": true}}), "properties.a"),
            (
                json!({"properties": {"a": {"required": true}}}),
                "properties.a.required",
            ),
            (
                json!({"properties": {"a": {"pattern": "("}}}),
                "properties.a.pattern",
            ),
            (
                json!({"properties": {"a": {"pattern": "\\w{999}{99}"}}}),
                "properties.a.pattern",
            ),
            (
                json!({"additionalProperties": {"maxLength": -1}}),
                "additionalProperties.maxLength",
            ),
            (
                json!({"properties": {"a": {"enum": []}}}),
                "properties.a.enum",
            ),
            (
                json!({"properties": {"a": {"enum": (0..257).collect::<Vec<i32>>()}}}),
                "properties.a.enum",
            ),
            (
                json!({"properties": {"a": {"enum": ["x".repeat(20_000)]}}}),
                "properties.a.enum",
            ),
            (
                json!({"properties": {"a": {"const": "x".repeat(20_000)}}}),
                "properties.a.const",
            ),
            (
                json!({"properties": {"a": {"pattern": "x".repeat(513)}}}),
                "properties.a.pattern",
            ),
            (json!({"required": vec!["a"; 1_001]}), "required"),
            (json!({"anyOf": []}), "anyOf"),
        ] {
            assert_eq!(read(written).unwrap_err(), place);
        }
    }
}
