//! The one filter grammar: parsed here, pushed down to the store where it can be, evaluated here where it cannot.

use serde_json::Value;

/// A parsed filter tree. Field names are dot paths into the document.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    All(Vec<Filter>),
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
    pub value: Value,
    /// Text comparisons fold case unless the nearest enclosing node says `case_sensitive: true`.
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
