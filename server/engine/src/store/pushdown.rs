//! Filters as conditions that an engine decides, and the facts of a document that those conditions ask for.
//!
//! An engine's own view of arrays, numbers and missing fields is not that of [`Filter::matches`]. So the store computes,
//! with the same rules, the facts of a document that a filter can ask for ("`meta.tags` has the value `red`"), keeps
//! their hashes in one reserved field, and asks for those. One index answers every field, known in advance or not.
//! What has no such fact (order, parts of texts, places) becomes a wider condition, and what comes back is evaluated.

use std::collections::BTreeSet;

use loupe_wire::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::layout::{self, SCOPE, TERMS, point_id};
use super::shards::Cond;
use crate::filter::{Condition, Filter, Operator};

/// Up to here a float holds every integer, so equal floats mean equal numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A condition that holds wherever the filter does.
#[derive(Debug, Clone, PartialEq)]
pub struct Pushed {
    pub cond: Cond,
    /// Whether it holds nowhere else. If not, what comes back has to be evaluated.
    pub exact: bool,
}

impl Pushed {
    fn exact(cond: Cond) -> Self {
        Self { cond, exact: true }
    }

    fn wider(cond: Cond) -> Self {
        Self { cond, exact: false }
    }
}

/// Fields that all documents of a collection, or no two documents, have the same value of: facts of them would cost
/// more than they save.
const WITHOUT_FACTS: [&str; 4] = [
    "_internal.internal_id",
    "_internal.namespace_id",
    "_internal.collection_id",
    "_internal.document_id",
];

/// The narrowest condition an engine can decide for a filter on documents of a namespace.
pub fn push(filter: Option<&Filter>, namespace_id: &str) -> Pushed {
    filter.map_or_else(
        || Pushed::exact(everything()),
        |filter| node(filter, namespace_id),
    )
}

fn everything() -> Cond {
    Cond::All(Vec::new())
}

fn nothing() -> Cond {
    Cond::Any(Vec::new())
}

fn not(cond: Cond) -> Cond {
    Cond::Not(Box::new(cond))
}

fn node(filter: &Filter, namespace_id: &str) -> Pushed {
    let pushed = |members: &[Filter]| -> (Vec<Cond>, bool) {
        let pushed: Vec<Pushed> = members
            .iter()
            .map(|member| node(member, namespace_id))
            .collect();
        let exact = pushed.iter().all(|p| p.exact);
        (pushed.into_iter().map(|p| p.cond).collect(), exact)
    };
    match filter {
        Filter::All(members) => {
            let (conds, exact) = pushed(members);
            Pushed {
                cond: Cond::All(conds),
                exact,
            }
        }
        Filter::Any(members) => {
            let (conds, exact) = pushed(members);
            Pushed {
                cond: Cond::Any(conds),
                exact,
            }
        }
        Filter::None(members) => {
            // The negation of a wider condition would be a narrower one: only exact members may be negated.
            let members: Vec<Pushed> = members
                .iter()
                .map(|member| node(member, namespace_id))
                .collect();
            let exact = members.iter().all(|p| p.exact);
            let conds = members
                .into_iter()
                .filter(|p| p.exact)
                .map(|p| p.cond)
                .collect();
            Pushed {
                cond: not(Cond::Any(conds)),
                exact,
            }
        }
        Filter::Leaf(condition) => leaf(condition, namespace_id),
    }
}

fn leaf(condition: &Condition, namespace_id: &str) -> Pushed {
    match condition.field.as_str() {
        "document_id" => return by_id(condition),
        "collection_id" => return by_collection(condition, namespace_id),
        field if WITHOUT_FACTS.iter().any(|path| is_within(field, path)) => {
            return Pushed::wider(everything());
        }
        _ => {}
    }
    // A number in a path may be a place in an array or a name; there are no facts for it.
    if condition
        .field
        .split('.')
        .any(|segment| segment.parse::<usize>().is_ok())
    {
        return Pushed::wider(everything());
    }
    let field = &condition.field;
    let value = &condition.value;
    match condition.operator {
        Operator::Eq => one_of(field, std::slice::from_ref(value), condition.case_sensitive),
        Operator::Ne => negated(one_of(
            field,
            std::slice::from_ref(value),
            condition.case_sensitive,
        )),
        Operator::In | Operator::Nin => {
            let Value::Array(members) = value else {
                return Pushed::exact(nothing());
            };
            let found = one_of(field, members, condition.case_sensitive);
            if condition.operator == Operator::In {
                found
            } else {
                negated(found)
            }
        }
        Operator::Exists => match value {
            Value::Bool(true) => Pushed::exact(exists(field)),
            Value::Bool(false) => Pushed::exact(not(exists(field))),
            _ => Pushed::exact(nothing()),
        },
        Operator::IsNull => match value {
            Value::Bool(true) => Pushed::exact(not(has_value(field))),
            Value::Bool(false) => Pushed::exact(has_value(field)),
            _ => Pushed::exact(nothing()),
        },
        // Each of these holds only where there is something to look at.
        _ => Pushed::wider(has_value(field)),
    }
}

fn negated(pushed: Pushed) -> Pushed {
    if pushed.exact {
        Pushed::exact(not(pushed.cond))
    } else {
        Pushed::wider(everything())
    }
}

fn by_id(condition: &Condition) -> Pushed {
    let ids = |values: &[Value]| -> Vec<Uuid> {
        values
            .iter()
            .filter_map(|v| v.as_str().and_then(point_id))
            .collect()
    };
    if !condition.case_sensitive {
        return Pushed::wider(everything());
    }
    match (condition.operator, &condition.value) {
        (Operator::Eq, value @ Value::String(_)) => {
            Pushed::exact(Cond::Ids(ids(std::slice::from_ref(value))))
        }
        (Operator::Ne, value @ Value::String(_)) => {
            Pushed::exact(not(Cond::Ids(ids(std::slice::from_ref(value)))))
        }
        (Operator::In, Value::Array(values)) => Pushed::exact(Cond::Ids(ids(values))),
        (Operator::Nin, Value::Array(values)) => Pushed::exact(not(Cond::Ids(ids(values)))),
        _ => Pushed::wider(everything()),
    }
}

/// Ids in their order, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub first: Uuid,
    pub last: Uuid,
}

/// Where the ids of the documents lie that a filter may hold for. No engine has a condition for that, but all read in the order
/// of ids: they begin there, and end there.
pub fn span(filter: Option<&Filter>) -> Span {
    let mut span = Span {
        first: Uuid::nil(),
        last: Uuid::from_u128(u128::MAX),
    };
    if let Some(filter) = filter {
        narrow(filter, &mut span);
    }
    span
}

fn narrow(filter: &Filter, span: &mut Span) {
    let condition = match filter {
        Filter::All(members) => return members.iter().for_each(|member| narrow(member, span)),
        Filter::Leaf(condition) if condition.field == "document_id" => condition,
        Filter::Any(_) | Filter::None(_) | Filter::Leaf(_) => return,
    };
    // Texts of that form are in the order of the ids.
    let Some(id) = condition.value.as_str().and_then(point_id) else {
        return;
    };
    match condition.operator {
        Operator::Gt | Operator::Gte => span.first = span.first.max(id),
        Operator::Lt | Operator::Lte => span.last = span.last.min(id),
        _ => {}
    }
}

fn is_within(field: &str, path: &str) -> bool {
    field
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The collection is part of a document's scope.
fn by_collection(condition: &Condition, namespace_id: &str) -> Pushed {
    let among = |values: &[Value]| -> Option<Cond> {
        let scope = |value: &Value| Some(layout::scope(namespace_id, value.as_str()?));
        Some(Cond::Keyword {
            path: SCOPE,
            any: values.iter().map(scope).collect::<Option<_>>()?,
        })
    };
    let values = match &condition.value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let list = condition.value.is_array();
    match (condition.operator, among(values)) {
        _ if !condition.case_sensitive => Pushed::wider(everything()),
        (Operator::Eq, Some(cond)) if !list => Pushed::exact(cond),
        (Operator::Ne, Some(cond)) if !list => Pushed::exact(not(cond)),
        (Operator::In, Some(cond)) if list => Pushed::exact(cond),
        (Operator::Nin, Some(cond)) if list => Pushed::exact(not(cond)),
        _ => Pushed::wider(everything()),
    }
}

/// The field, or a member of it where it is an array, equals one of the values.
fn one_of(field: &str, values: &[Value], case_sensitive: bool) -> Pushed {
    let mut any = Vec::with_capacity(values.len());
    let mut exact = true;
    let mut null = false;
    for value in values {
        match value {
            Value::Null => {
                null = true;
                any.push(term(Fact::Equals(field, value)));
            }
            Value::Number(number) => {
                exact &= number.as_f64().is_some_and(|x| x.abs() <= EXACT - 1.0);
                any.push(term(Fact::Equals(field, value)));
            }
            Value::Bool(_) => any.push(term(Fact::Equals(field, value))),
            Value::String(_) if case_sensitive => any.push(term(Fact::Equals(field, value))),
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                exact = false;
                any.push(term(Fact::Value(field)));
            }
        }
    }
    let mut cond = Cond::Term { path: TERMS, any };
    if null {
        // What is absent equals null.
        cond = Cond::Any(vec![cond, not(exists(field))]);
    }
    Pushed { cond, exact }
}

fn exists(field: &str) -> Cond {
    Cond::Term {
        path: TERMS,
        any: vec![term(Fact::Value(field)), term(Fact::Null(field))],
    }
}

fn has_value(field: &str) -> Cond {
    Cond::Term {
        path: TERMS,
        any: vec![term(Fact::Value(field))],
    }
}

/// Something that is true of a document.
enum Fact<'a> {
    /// There is a value that is not null.
    Value(&'a str),
    /// There is a null.
    Null(&'a str),
    /// There is this scalar, itself or as a member of an array.
    Equals(&'a str, &'a Value),
}

/// A fact as 64 bits of its SHA-256. Two facts share them with a chance of 1 in 10^19.
fn term(fact: Fact<'_>) -> i64 {
    let mut hash = Sha256::new();
    let mut head = |kind: u8, path: &str| {
        hash.update([kind]);
        hash.update((path.len() as u64).to_be_bytes());
        hash.update(path.as_bytes());
    };
    match fact {
        Fact::Value(path) => head(0, path),
        Fact::Null(path) => head(1, path),
        Fact::Equals(path, value) => {
            head(2, path);
            match value {
                Value::String(text) => {
                    hash.update([3]);
                    hash.update(text.as_bytes());
                }
                Value::Number(number) => {
                    // Adding zero turns -0.0, which equals 0.0, into it.
                    let x = number.as_f64().unwrap_or_default() + 0.0;
                    hash.update([4]);
                    hash.update(x.to_bits().to_be_bytes());
                }
                Value::Bool(is) => hash.update([5, u8::from(*is)]),
                Value::Null | Value::Array(_) | Value::Object(_) => hash.update([6]),
            }
        }
    }
    let digest = hash.finalize();
    i64::from_be_bytes(std::array::from_fn(|i| digest[i]))
}

/// The hashed facts of a document as filters see it.
pub fn terms(view: &Value) -> BTreeSet<i64> {
    let mut terms = BTreeSet::new();
    if let Value::Object(_) = view {
        collect(view, None, &mut terms);
    }
    terms
}

fn collect(value: &Value, path: Option<&str>, terms: &mut BTreeSet<i64>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // No path reaches such a name, except by a number; and ids are asked for as ids.
                if key.contains('.')
                    || key.parse::<usize>().is_ok()
                    || (path.is_none() && matches!(key.as_str(), "document_id" | "collection_id"))
                {
                    continue;
                }
                let path = path.map_or_else(|| key.clone(), |path| format!("{path}.{key}"));
                if WITHOUT_FACTS.contains(&path.as_str()) {
                    continue;
                }
                note(&path, value, terms);
                collect(value, Some(&path), terms);
            }
        }
        Value::Array(items) => {
            // Paths look through an array at the objects in it, not at arrays within arrays.
            for item in items.iter().filter(|item| item.is_object()) {
                collect(item, path, terms);
            }
        }
        _ => {}
    }
}

fn note(path: &str, value: &Value, terms: &mut BTreeSet<i64>) {
    terms.insert(term(if value.is_null() {
        Fact::Null(path)
    } else {
        Fact::Value(path)
    }));
    let mut equals = |value: &Value| {
        if !matches!(value, Value::Array(_) | Value::Object(_)) {
            terms.insert(term(Fact::Equals(path, value)));
        }
    };
    match value {
        Value::Array(items) => items.iter().for_each(equals),
        scalar => equals(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_ids_are_a_span() {
        let bound = |operator, number: u128| {
            let id = layout::document_id(Uuid::from_u128(number));
            Filter::leaf("document_id", operator, id.into())
        };
        let ends = |filter: &Filter| {
            let span = span(Some(filter));
            (span.first.as_u128(), span.last.as_u128())
        };
        let from = bound(Operator::Gte, 16);
        let to = bound(Operator::Lt, 4_096);
        assert_eq!(ends(&from), (16, u128::MAX));
        let both = Filter::All(vec![from.clone(), Filter::All(vec![to.clone()])]);
        assert_eq!(ends(&both), (16, 4_096));
        let more = both.clone().and(bound(Operator::Gt, 17));
        assert_eq!(ends(&more.and(bound(Operator::Lte, 900))), (17, 900));
        let one = bound(Operator::Eq, 5);
        let other = Filter::leaf("document_id", Operator::Gte, "doc_5".into());
        let field = Filter::leaf("title", Operator::Gte, "doc_5".into());
        let either = Filter::Any(vec![from.clone(), to]);
        for wide in [one, other, field, either, Filter::None(vec![from])] {
            assert_eq!(ends(&wide), (0, u128::MAX), "{wide}");
        }
    }
}
