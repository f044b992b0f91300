//! The inputs of an execution against the retriever's input schema.

use chrono::{DateTime, NaiveDate};
use indexmap::IndexMap;
use loupe_wire::{
    Object, RetrieverInputSchemaField as Field, RetrieverInputSchemaFieldType as Type, Value,
};
use serde_json::json;

use super::StageProblem;

/// What is wrong with one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// From `inputs` on.
    pub loc: Vec<String>,
    pub msg: String,
    /// The word of the kind of problem, such as `missing`.
    pub r#type: &'static str,
    /// What was sent.
    pub input: Value,
}

/// The inputs with defaults put in and numbers and booleans read from text (forms send text), or everything that is
/// wrong with them. `null` counts as not sent. Without a schema every input is taken as it is.
pub fn check_inputs(
    schema: &IndexMap<String, Field>,
    inputs: &Object,
) -> Result<Object, Vec<Violation>> {
    if schema.is_empty() {
        return Ok(inputs.clone());
    }
    let mut violations = Vec::new();
    let checked = object(
        schema,
        inputs,
        &["inputs".to_owned()],
        true,
        &mut violations,
    );
    if violations.is_empty() {
        Ok(checked)
    } else {
        Err(violations)
    }
}

/// Defaults that are not of their own input's type.
pub(super) fn check_schema(schema: &IndexMap<String, Field>) -> Vec<StageProblem> {
    let mut violations = Vec::new();
    for (name, field) in schema {
        if let Some(default) = field.default.as_ref().filter(|d| !d.is_null()) {
            let loc = [
                "input_schema".to_owned(),
                name.clone(),
                "default".to_owned(),
            ];
            one(field, default, &loc, &mut violations);
        }
    }
    violations
        .into_iter()
        .map(|v| StageProblem {
            loc: v.loc,
            msg: v.msg,
            r#type: v.r#type,
        })
        .collect()
}

fn object(
    schema: &IndexMap<String, Field>,
    sent: &Object,
    loc: &[String],
    closed: bool,
    out: &mut Vec<Violation>,
) -> Object {
    let at = |name: &str| -> Vec<String> { loc.iter().cloned().chain([name.to_owned()]).collect() };
    let mut checked = Object::new();
    for (name, value) in sent.iter().filter(|(name, _)| !schema.contains_key(*name)) {
        if closed {
            let known: Vec<&str> = schema.keys().map(String::as_str).collect();
            let msg = format!("there is no input `{name}`; there are {}", known.join(", "));
            out.push(Violation {
                loc: at(name),
                msg,
                r#type: "extra_forbidden",
                input: value.clone(),
            });
        } else {
            checked.insert(name.clone(), value.clone());
        }
    }
    for (name, field) in schema {
        match (sent.get(name), &field.default) {
            (None | Some(Value::Null), Some(default)) if !default.is_null() => {
                checked.insert(name.clone(), default.clone());
            }
            (None | Some(Value::Null), _) => {
                if field.required == Some(true) {
                    let msg = format!("the input `{name}` is required");
                    out.push(Violation {
                        loc: at(name),
                        msg,
                        r#type: "missing",
                        input: Value::Null,
                    });
                }
            }
            (Some(value), _) => {
                checked.insert(name.clone(), one(field, value, &at(name), out));
            }
        }
    }
    checked
}

fn one(field: &Field, sent: &Value, loc: &[String], out: &mut Vec<Violation>) -> Value {
    let fault = |r#type, msg: String| Violation {
        loc: loc.to_vec(),
        msg,
        r#type,
        input: sent.clone(),
    };
    let value = match typed(field, sent, loc, out) {
        Ok(value) => value,
        Err((r#type, msg)) => {
            out.push(fault(r#type, msg.to_owned()));
            return Value::Null;
        }
    };
    if let Some(allowed) = field.r#enum.as_ref().filter(|list| !list.is_empty()) {
        // A list input holds any of the allowed values; form fields of several choices send such lists.
        let fits = allowed.contains(&value)
            || matches!(&value, Value::Array(items) if items.iter().all(|i| allowed.contains(i)));
        if !fits {
            let words: Vec<String> = allowed.iter().map(Value::to_string).collect();
            let msg = format!("must be one of {}", words.join(", "));
            out.push(fault("enum", msg));
        }
    }
    value
}

/// The value as the field's type has it, or the kind and the words of what is wrong with it.
fn typed(
    field: &Field,
    sent: &Value,
    loc: &[String],
    out: &mut Vec<Violation>,
) -> Result<Value, (&'static str, &'static str)> {
    match (field.r#type, sent) {
        (Type::String | Type::Text, Value::String(_)) => {}
        (Type::String | Type::Text, _) => return Err(("string_type", "must be a text")),
        (Type::Number | Type::Float, _) => {
            return number(sent).ok_or(("float_type", "must be a number"));
        }
        (Type::Integer, _) => {
            let number = number(sent).as_ref().and_then(whole);
            return number
                .map(|n| json!(n))
                .ok_or(("int_type", "must be a whole number"));
        }
        (Type::Boolean, Value::Bool(_)) => {}
        (Type::Boolean, Value::String(s)) if s == "true" || s == "false" => {
            return Ok(json!(s == "true"));
        }
        (Type::Boolean, _) => return Err(("bool_type", "must be true or false")),
        (Type::Date, Value::String(s)) if NaiveDate::parse_from_str(s, "%Y-%m-%d").is_ok() => {}
        (Type::Date, _) => return Err(("date_type", "must be a date such as 2026-11-21")),
        (Type::Datetime, Value::String(s)) if DateTime::parse_from_rfc3339(s).is_ok() => {}
        (Type::Datetime, _) => {
            let msg = "must be a moment such as 2026-11-21T12:00:00Z";
            return Err(("datetime_type", msg));
        }
        (Type::Array, Value::Array(items)) => {
            if let Some(of) = &field.items {
                return Ok(list(of, items, loc, out));
            }
        }
        (Type::Array, _) => return Err(("list_type", "must be a list")),
        (Type::Object, Value::Object(members)) => {
            if let Some(properties) = &field.properties {
                return Ok(Value::Object(object(properties, members, loc, false, out)));
            }
        }
        (Type::Object, _) => return Err(("dict_type", "must be an object")),
        (Type::DocumentReference, Value::Object(o))
            if o.get("document_id").is_some_and(Value::is_string) => {}
        (Type::DocumentReference, Value::String(_)) => {}
        (Type::DocumentReference, _) => {
            let msg = "must be {collection_id, document_id} or a document id";
            return Err(("document_reference_type", msg));
        }
        (
            Type::Image | Type::Audio | Type::Video | Type::Pdf | Type::Excel,
            Value::String(_) | Value::Object(_),
        ) => {}
        (Type::Image | Type::Audio | Type::Video | Type::Pdf | Type::Excel, _) => {
            let msg = "must be a URL, base64 text, or {url} or {base64}";
            return Err(("file_type", msg));
        }
    }
    Ok(sent.clone())
}

fn list(of: &Field, items: &[Value], loc: &[String], out: &mut Vec<Violation>) -> Value {
    let at = |i: usize| -> Vec<String> { loc.iter().cloned().chain([i.to_string()]).collect() };
    items
        .iter()
        .enumerate()
        .map(|(i, item)| one(of, item, &at(i), out))
        .collect()
}

fn number(sent: &Value) -> Option<Value> {
    match sent {
        Value::Number(_) => Some(sent.clone()),
        Value::String(text) => match text.trim().parse::<i64>() {
            Ok(n) => Some(json!(n)),
            Err(_) => text
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .map(|n| json!(n)),
        },
        _ => None,
    }
}

fn whole(number: &Value) -> Option<i64> {
    number.as_i64().or_else(|| {
        number
            .as_f64()
            .filter(|n| n.fract() == 0.0 && n.abs() < 9e15)
            .map(|n| n as i64)
    })
}
