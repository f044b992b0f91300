//! The one filter grammar: parsed here, pushed down to the store where it can be, evaluated here where it cannot.
//!
//! # Rules of comparison
//! - A field is a dot path. Arrays on the way are looked through (`items.price` is every price); a number picks one
//!   element (`items.0.price`). A leaf is true when any value at the path satisfies it; `ne` and `nin` are the exact
//!   opposites of `eq` and `in`, so they are true where the field is absent.
//! - `eq`: numbers compare as numbers (`1` is `1.0`), text as text, arrays as a whole or by any member, `null` also
//!   equals an absent field. Nothing is converted: `"1"` is not `1`.
//! - `gt` `gte` `lt` `lte`: numbers with numbers; RFC 3339 moments (or plain dates, midnight UTC) as moments; other text
//!   by code point. Anything else is false.
//! - `exists`: the path leads to something, if only `null`. `is_null`: there is nothing but `null` there.
//! - Case: `contains`, `starts_with`, `ends_with` fold it, `eq`, `ne`, `in`, `nin`, `regex` do not, unless the nearest
//!   enclosing `case_sensitive` says otherwise; `text`, `phrase` and `words` always fold it.

mod matches;
mod order;
mod parse;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};

pub use matches::Matcher;
pub use order::{compare_values, moment, sort_values, value_at, values_at};

/// Deepest nesting of nodes that is parsed.
pub const MAX_DEPTH: usize = 16;
/// Most conditions of one filter.
pub const MAX_CONDITIONS: usize = 500;
/// Most members of the list of `in` and `nin`.
pub const MAX_MEMBERS: usize = 10_000;
/// Longest regular expression, in bytes.
pub const MAX_REGEX_BYTES: usize = 512;

/// A parsed filter tree. Field names are dot paths into the document.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// True when every member is; without members always true.
    All(Vec<Filter>),
    /// True when one member is; without members never true.
    Any(Vec<Filter>),
    /// True when none of the members is.
    None(Vec<Filter>),
    Leaf(Condition),
}

/// One comparison of a field with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub field: String,
    pub operator: Operator,
    /// What to compare with, or `{type: "dynamic", field: "inputs.x"}` until [`Filter::resolve`] puts the input there.
    pub value: Value,
    /// Whether case matters, already decided: the nearest enclosing `case_sensitive`, else the operator's default.
    pub case_sensitive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    Nin,
    Contains,
    StartsWith,
    EndsWith,
    Regex,
    Exists,
    IsNull,
    Text,
    Phrase,
    Words,
    GeoRadius,
    GeoBoundingBox,
    GeoPolygon,
}

impl Operator {
    /// Every operator, in the order of the interface's vocabulary.
    pub const ALL: [Operator; 20] = [
        Self::Eq,
        Self::Ne,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::In,
        Self::Nin,
        Self::Contains,
        Self::StartsWith,
        Self::EndsWith,
        Self::Regex,
        Self::Exists,
        Self::IsNull,
        Self::Text,
        Self::Phrase,
        Self::Words,
        Self::GeoRadius,
        Self::GeoBoundingBox,
        Self::GeoPolygon,
    ];

    /// The word of the interface.
    pub fn word(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::In => "in",
            Self::Nin => "nin",
            Self::Contains => "contains",
            Self::StartsWith => "starts_with",
            Self::EndsWith => "ends_with",
            Self::Regex => "regex",
            Self::Exists => "exists",
            Self::IsNull => "is_null",
            Self::Text => "text",
            Self::Phrase => "phrase",
            Self::Words => "words",
            Self::GeoRadius => "geo_radius",
            Self::GeoBoundingBox => "geo_bounding_box",
            Self::GeoPolygon => "geo_polygon",
        }
    }

    /// The operator of a word, or nothing.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|o| o.word() == word)
    }

    /// Whether case matters when no enclosing node says so. Equality is exact, so that an index can answer it.
    pub fn case_sensitive_default(self) -> bool {
        matches!(
            self,
            Self::Eq | Self::Ne | Self::In | Self::Nin | Self::Regex
        )
    }
}

/// Why a filter was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {msg}", if loc.is_empty() { "filter".to_owned() } else { loc.join(".") })]
pub struct FilterError {
    /// The path to the offending member, from the root of the filter.
    pub loc: Vec<String>,
    pub msg: String,
}

/// What a condition's value turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    Value(Value),
    /// The input of this name is not there: the condition is removed.
    Missing(String),
}

impl Filter {
    /// Reads a filter as sent: `AND`, `OR`, `NOT` nodes over leaves `{field, operator, value}`, the shorthand
    /// `{field: value}` (a list means any of it) and `{field: {"$in": [..]}}`.
    pub fn parse(value: &Value) -> Result<Filter, FilterError> {
        parse::parse(value)
    }

    /// A leaf with the operator's own rule about case.
    pub fn leaf(field: impl Into<String>, operator: Operator, value: Value) -> Filter {
        Filter::Leaf(Condition {
            field: field.into(),
            operator,
            value,
            case_sensitive: operator.case_sensitive_default(),
        })
    }

    /// `field eq value`.
    pub fn eq(field: impl Into<String>, value: impl Into<Value>) -> Filter {
        Self::leaf(field, Operator::Eq, value.into())
    }

    /// Both; flattens `All` so that trees stay small.
    pub fn and(self, other: Filter) -> Filter {
        match (self, other) {
            (Filter::All(mut a), Filter::All(b)) => {
                a.extend(b);
                Filter::All(a)
            }
            (Filter::All(mut a), b) => {
                a.push(b);
                Filter::All(a)
            }
            (a, Filter::All(mut b)) => {
                b.insert(0, a);
                Filter::All(b)
            }
            (a, b) => Filter::All(vec![a, b]),
        }
    }

    /// Whether it lets everything through by its shape alone.
    pub fn is_trivial(&self) -> bool {
        matches!(self, Filter::All(members) if members.iter().all(Filter::is_trivial))
    }

    /// Whether a document satisfies the filter. `document` holds the payload's members and, at the top level,
    /// `document_id` and `collection_id`. For many documents prepare a [`Filter::matcher`] once.
    pub fn matches(&self, document: &Value) -> bool {
        self.matcher().matches(document)
    }

    /// The filter with regular expressions compiled and words stemmed, for many documents.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self)
    }

    /// Puts the inputs in place of dynamic values. Conditions whose input is absent or null are removed; their
    /// descriptions come back beside the filter.
    pub fn resolve(
        &self,
        inputs: &Map<String, Value>,
    ) -> Result<(Filter, Vec<String>), FilterError> {
        self.resolve_with(&mut |value| Ok(resolve_dynamic(value, inputs)))
    }

    /// As [`Filter::resolve`], with the caller's rule for what a value means.
    pub fn resolve_with(
        &self,
        rule: &mut dyn FnMut(&Value) -> Result<Resolved, String>,
    ) -> Result<(Filter, Vec<String>), FilterError> {
        let mut removed = Vec::new();
        let filter = resolve_node(self, rule, &mut removed)?;
        Ok((filter.unwrap_or(Filter::All(Vec::new())), removed))
    }

    /// Calls `visit` with every condition.
    pub fn for_each_condition<'a>(&'a self, visit: &mut dyn FnMut(&'a Condition)) {
        match self {
            Filter::All(m) | Filter::Any(m) | Filter::None(m) => {
                m.iter().for_each(|f| f.for_each_condition(visit))
            }
            Filter::Leaf(condition) => visit(condition),
        }
    }
}

/// The name of the input that a dynamic value reads, without its namespace.
pub fn dynamic_input(value: &Value) -> Option<&str> {
    let object = value.as_object()?;
    if object.len() != 2 || object.get("type")?.as_str()? != "dynamic" {
        return None;
    }
    let field = object.get("field")?.as_str()?;
    let (head, rest) = field.split_once('.').unwrap_or(("", field));
    Some(
        if head.eq_ignore_ascii_case("inputs") || head.eq_ignore_ascii_case("input") {
            rest
        } else {
            field
        },
    )
}

pub(crate) fn resolve_dynamic(value: &Value, inputs: &Map<String, Value>) -> Resolved {
    let Some(path) = dynamic_input(value) else {
        return Resolved::Value(value.clone());
    };
    let mut segments = path.split('.');
    let mut at = segments.next().and_then(|first| inputs.get(first));
    for segment in segments {
        at = at.and_then(|v| v.get(segment));
    }
    match at {
        Some(Value::Null) | None => Resolved::Missing(path.to_owned()),
        Some(found) => Resolved::Value(found.clone()),
    }
}

/// `None`: every condition below was removed, so the node says nothing.
fn resolve_node(
    filter: &Filter,
    rule: &mut dyn FnMut(&Value) -> Result<Resolved, String>,
    removed: &mut Vec<String>,
) -> Result<Option<Filter>, FilterError> {
    let mut members = |list: &[Filter]| -> Result<Option<Vec<Filter>>, FilterError> {
        let mut kept = Vec::with_capacity(list.len());
        for member in list {
            kept.extend(resolve_node(member, rule, removed)?);
        }
        Ok((list.is_empty() || !kept.is_empty()).then_some(kept))
    };
    Ok(match filter {
        Filter::All(list) => members(list)?.map(Filter::All),
        Filter::Any(list) => members(list)?.map(Filter::Any),
        Filter::None(list) => members(list)?.map(Filter::None),
        Filter::Leaf(condition) => {
            let at = |msg| FilterError {
                loc: vec![condition.field.clone()],
                msg,
            };
            match rule(&condition.value).map_err(at)? {
                Resolved::Missing(input) => {
                    removed.push(format!(
                        "{} {}: the input `{input}` is not there",
                        condition.field,
                        condition.operator.word()
                    ));
                    None
                }
                Resolved::Value(value) => {
                    parse::check_value(condition.operator, &value).map_err(at)?;
                    Some(Filter::Leaf(Condition {
                        value,
                        ..condition.clone()
                    }))
                }
            }
        }
    })
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, list: &[Filter], word: &str| {
            for (i, member) in list.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match member {
                    Filter::Leaf(_) => write!(f, "{member}")?,
                    _ => write!(f, "({member})")?,
                }
            }
            Ok(())
        };
        match self {
            Filter::All(list) if list.is_empty() => f.write_str("everything"),
            Filter::Any(list) if list.is_empty() => f.write_str("nothing"),
            Filter::All(list) => joined(f, list, "and"),
            Filter::Any(list) => joined(f, list, "or"),
            Filter::None(list) => {
                f.write_str("none of ")?;
                joined(f, list, "or")
            }
            Filter::Leaf(c) => match dynamic_input(&c.value) {
                Some(input) => write!(f, "{} {} INPUT.{input}", c.field, c.operator.word()),
                None => write!(f, "{} {} {}", c.field, c.operator.word(), c.value),
            },
        }
    }
}
