//! Paths into documents and the order of values.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde_json::Value;

/// Every value at a dot path. Arrays on the way are looked through; an array at the end comes as it is.
pub fn values_at<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut at = vec![document];
    for segment in path.split('.') {
        let mut next = Vec::with_capacity(at.len());
        for value in at {
            step(value, segment, &mut next);
        }
        if next.is_empty() {
            return next;
        }
        at = next;
    }
    at
}

/// The first value at a dot path.
pub fn value_at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    values_at(document, path).into_iter().next()
}

fn step<'a>(value: &'a Value, segment: &str, out: &mut Vec<&'a Value>) {
    match value {
        Value::Object(object) => out.extend(object.get(segment)),
        Value::Array(items) => match segment.parse::<usize>() {
            Ok(index) => out.extend(items.get(index)),
            Err(_) => items.iter().for_each(|item| {
                if let Value::Object(object) = item {
                    out.extend(object.get(segment));
                }
            }),
        },
        _ => {}
    }
}

/// A moment written in RFC 3339, or a plain date as midnight UTC.
pub fn moment(text: &str) -> Option<DateTime<Utc>> {
    // The cheap test first: almost no text is a moment, and parsing builds an error each time.
    let bytes = text.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' || !bytes[0].is_ascii_digit() {
        return None;
    }
    if bytes.len() == 10 {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        return Some(date.and_time(NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|t| t.with_timezone(&Utc))
}

/// How two numbers compare; integers exactly, also beyond 2^53.
pub(super) fn compare_numbers(a: &serde_json::Number, b: &serde_json::Number) -> Option<Ordering> {
    if let (Some(x), Some(y)) = (a.as_i64(), b.as_i64()) {
        return Some(x.cmp(&y));
    }
    if let (Some(x), Some(y)) = (a.as_u64(), b.as_u64()) {
        return Some(x.cmp(&y));
    }
    a.as_f64()?.partial_cmp(&b.as_f64()?)
}

/// How two values compare where `gt` and its like may compare them; nothing for values of different kinds.
pub fn compare_values(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => compare_numbers(x, y),
        (Value::String(x), Value::String(y)) => Some(match (moment(x), moment(y)) {
            (Some(t), Some(u)) => t.cmp(&u),
            _ => x.cmp(y),
        }),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
        _ => None,
    }
}

/// A total order for lists, ascending: numbers, then texts (moments among themselves by time), then booleans, then the
/// rest by its JSON; absent and null values come last. An array counts by its first member.
pub fn sort_values(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    let (a, b) = (head(a), head(b));
    match (rank(a), rank(b)) {
        (x, y) if x != y => x.cmp(&y),
        _ => match (a, b) {
            (Some(Value::String(x)), Some(Value::String(y))) => match (moment(x), moment(y)) {
                (Some(t), Some(u)) => t.cmp(&u).then_with(|| x.cmp(y)),
                // Moments before other texts: comparing only some pairs by time would not be an order.
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => x.cmp(y),
            },
            (Some(Value::Object(_)), Some(Value::Object(_))) => {
                a.map(Value::to_string).cmp(&b.map(Value::to_string))
            }
            (Some(Value::Number(x)), Some(Value::Number(y))) => compare_exactly(x, y),
            (Some(x), Some(y)) => compare_values(x, y).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        },
    }
}

/// As [`compare_numbers`], and beyond 2^53, where a fraction equals several whole numbers, still an order: sorting needs one.
fn compare_exactly(a: &serde_json::Number, b: &serde_json::Number) -> Ordering {
    let whole = |number: &serde_json::Number| {
        let exact = number.as_i64().map(i128::from);
        let exact = exact.or_else(|| number.as_u64().map(i128::from));
        exact.unwrap_or_else(|| number.as_f64().unwrap_or_default() as i128)
    };
    match compare_numbers(a, b).unwrap_or(Ordering::Equal) {
        Ordering::Equal => whole(a).cmp(&whole(b)),
        order => order,
    }
}

fn head(value: Option<&Value>) -> Option<&Value> {
    match value {
        Some(Value::Array(items)) => head(items.first()),
        other => other,
    }
}

fn rank(value: Option<&Value>) -> u8 {
    match value {
        Some(Value::Number(_)) => 0,
        Some(Value::String(_)) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Object(_) | Value::Array(_)) => 3,
        Some(Value::Null) | None => 4,
    }
}
