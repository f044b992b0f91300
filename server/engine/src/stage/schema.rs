//! One table a stage says which parameters it takes: it checks what is sent and is told to clients as a JSON schema.

use loupe_wire::{Object, Value, reading};
use serde_json::json;

use super::StageProblem;
use crate::filter::Filter;
use crate::template::{self, Context, TemplateError};

/// One parameter.
pub(crate) struct Member {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// The default as JSON text; empty where there is none.
    pub default: &'static str,
    pub about: &'static str,
}

/// What a parameter holds. A template may stand in place of any scalar.
pub(crate) enum Kind {
    Text,
    Texts,
    Boolean,
    Integer(i64, i64),
    Number(f64, f64),
    Choice(&'static [&'static str]),
    Object(&'static [Member]),
    Objects(&'static [Member], usize),
    Filter,
    /// The value of a condition: rendered later, so that a missing input removes the condition.
    Operand,
    Query,
    /// A text that is rendered later, once a document.
    Template,
    /// A text that is taken as it is written: code, in which braces mean something else.
    Verbatim,
    /// An object with any members.
    Map,
    /// An object with any members whose texts are rendered later, once a document.
    Templates,
}

/// An optional parameter; `const fn`s keep the tables short.
pub(crate) const fn member(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Member {
    Member {
        name,
        kind,
        required: false,
        default,
        about,
    }
}

pub(crate) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Member {
    Member {
        name,
        kind,
        required: true,
        default: "",
        about,
    }
}

/// The members of a query, by its `input_mode`.
const QUERY_MODES: [(&str, &[&str]); 5] = [
    ("text", &["value", "text", "embedding_task"]),
    ("content", &["value", "content"]),
    ("document", &["document_ref"]),
    ("vector", &["value"]),
    ("multi_content", &["values"]),
];

/// What a text query may say that its vector is for.
const TASKS: [&str; 5] = [
    "retrieval_query",
    "retrieval_document",
    "semantic_similarity",
    "classification",
    "none",
];

/// When parameters are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// As they are written: texts may be templates.
    Written,
    /// As they were written once: what was not refused then is none of it now.
    Stored,
    /// After their templates gave values, in which braces are nothing but text. Filters and operands are as written still.
    Rendered,
}

/// Collects what is wrong with `object`.
pub(crate) fn check(
    members: &[Member],
    object: &Object,
    when: When,
    loc: &[String],
    out: &mut Vec<StageProblem>,
) {
    for (key, value) in object {
        let here = inside(loc, key);
        match members.iter().find(|m| m.name == key) {
            None => {
                let known: Vec<&str> = members.iter().map(|m| m.name).collect();
                out.push(problem(
                    here,
                    "extra_forbidden",
                    format!(
                        "there is no parameter `{key}`; there are {}",
                        known.join(", ")
                    ),
                ));
            }
            Some(_) if value.is_null() => {}
            Some(member) => check_kind(&member.kind, value, when, here, out),
        }
    }
    for member in members.iter().filter(|m| m.required) {
        if object.get(member.name).is_none_or(Value::is_null) {
            out.push(problem(
                inside(loc, member.name),
                "missing",
                format!("`{}` is required: {}", member.name, member.about),
            ));
        }
    }
}

fn check_kind(
    kind: &Kind,
    value: &Value,
    when: When,
    here: Vec<String>,
    out: &mut Vec<StageProblem>,
) {
    let text = value
        .as_str()
        .filter(|t| when != When::Rendered && template::is_template(t));
    if let (Some(text), false) = (text, matches!(kind, Kind::Filter | Kind::Verbatim)) {
        check_template(text, when, here, out);
        return;
    }
    match kind {
        Kind::Object(members) => check_object(members, value, when, here, out),
        Kind::Objects(members, most) => match value.as_array() {
            Some(items) if items.len() > *most => {
                let msg = format!("must have {most} members at most");
                out.push(problem(here, "too_long", msg));
            }
            Some(items) => items.iter().enumerate().for_each(|(place, item)| {
                check_object(members, item, when, inside(&here, &place.to_string()), out);
            }),
            None => out.push(problem(here, "list_type", "must be a list".into())),
        },
        Kind::Filter if when != When::Rendered => check_filter(value, when, &here, out),
        Kind::Query => check_query(value, when, &here, out),
        Kind::Map | Kind::Templates => check_map(value, when, here, out),
        Kind::Filter | Kind::Operand => {}
        Kind::Texts => match value.as_array() {
            Some(items) if items.iter().all(Value::is_string) => {}
            _ => out.push(problem(here, "list_type", "must be a list of texts".into())),
        },
        Kind::Text
        | Kind::Template
        | Kind::Verbatim
        | Kind::Boolean
        | Kind::Integer(..)
        | Kind::Number(..)
        | Kind::Choice(_) => {
            if let Some((r#type, msg)) = wrong_scalar(kind, value) {
                out.push(problem(here, r#type, msg));
            }
        }
    }
}

/// What is wrong with one text, number, truth or word of a list.
fn wrong_scalar(kind: &Kind, value: &Value) -> Option<(&'static str, String)> {
    let range = |min: String, max: String| {
        let msg = format!("must be between {min} and {max}");
        Some(("out_of_range", msg))
    };
    match kind {
        Kind::Text | Kind::Template | Kind::Verbatim if !value.is_string() => {
            Some(("string_type", "must be a text".into()))
        }
        Kind::Boolean if !value.is_boolean() => Some(("bool_type", "must be true or false".into())),
        Kind::Integer(min, max) => match value.as_i64() {
            None => Some(("int_type", "must be a whole number".into())),
            Some(n) if n < *min || n > *max => range(min.to_string(), max.to_string()),
            Some(_) => None,
        },
        Kind::Number(min, max) => match value.as_f64() {
            None => Some(("float_type", "must be a number".into())),
            Some(n) if n < *min || n > *max => range(min.to_string(), max.to_string()),
            Some(_) => None,
        },
        Kind::Choice(words) if !value.as_str().is_some_and(|w| words.contains(&w)) => {
            Some(("enum", format!("must be one of {}", words.join(", "))))
        }
        _ => None,
    }
}

fn check_object(
    members: &[Member],
    value: &Value,
    when: When,
    here: Vec<String>,
    out: &mut Vec<StageProblem>,
) {
    match value.as_object() {
        Some(object) => check(members, object, when, &here, out),
        None => out.push(problem(here, "dict_type", "must be an object".into())),
    }
}

/// An object with any members.
fn check_map(value: &Value, when: When, here: Vec<String>, out: &mut Vec<StageProblem>) {
    if !value.is_object() {
        out.push(problem(here, "dict_type", "must be an object".into()));
    } else {
        check_templates(value, when, &here, out);
    }
}

/// A text that is a template.
pub(super) fn check_template(
    text: &str,
    when: When,
    here: Vec<String>,
    out: &mut Vec<StageProblem>,
) {
    let checked = match when {
        When::Written => template::check(text),
        When::Stored => template::check_stored(text),
        When::Rendered => Ok(()),
    };
    if let Err(e) = checked {
        out.push(problem(here, "invalid_template", e.to_string()));
    }
}

/// The texts of a value that are.
fn check_templates(value: &Value, when: When, here: &[String], out: &mut Vec<StageProblem>) {
    let checked = match when {
        When::Written => template::check_value(value),
        When::Stored => template::check_stored_value(value),
        When::Rendered => Ok(()),
    };
    if let Err((path, e)) = checked {
        let loc = here.iter().cloned().chain(path).collect();
        out.push(problem(loc, "invalid_template", e.to_string()));
    }
}

fn check_filter(value: &Value, when: When, here: &[String], out: &mut Vec<StageProblem>) {
    if let Err(e) = Filter::parse(value) {
        let loc = here.iter().cloned().chain(e.loc).collect();
        out.push(problem(loc, "invalid_filter", e.msg));
    }
    check_templates(value, when, here, out);
}

/// A query is an object with an `input_mode`, or a text (the mode `text`).
fn check_query(value: &Value, when: When, here: &[String], out: &mut Vec<StageProblem>) {
    let object = match value {
        Value::String(_) => return,
        Value::Object(object) => object,
        _ => {
            return out.push(problem(
                here.to_vec(),
                "dict_type",
                "must be {input_mode, ...} or a text".into(),
            ));
        }
    };
    let mode = object
        .get("input_mode")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some((_, keys)) = QUERY_MODES.iter().find(|(word, _)| *word == mode) else {
        let words = QUERY_MODES.map(|(word, _)| word).join(", ");
        return out.push(problem(
            inside(here, "input_mode"),
            "enum",
            format!("must be one of {words}"),
        ));
    };
    if let Some(key) = object
        .keys()
        .find(|k| *k != "input_mode" && !keys.contains(&k.as_str()))
    {
        let msg = format!(
            "a query of the mode `{mode}` has no `{key}`; it has {}",
            keys.join(", ")
        );
        out.push(problem(inside(here, key), "extra_forbidden", msg));
    }
    if let Some(task) = object.get("embedding_task").filter(|task| !task.is_null()) {
        check_task(task, when, &inside(here, "embedding_task"), out);
    }
    if !keys.iter().any(|k| object.contains_key(*k)) {
        out.push(problem(
            inside(here, keys[0]),
            "missing",
            format!("a query of the mode `{mode}` needs `{}`", keys[0]),
        ));
    }
    check_templates(value, when, here, out);
}

fn check_task(task: &Value, when: When, here: &[String], out: &mut Vec<StageProblem>) {
    let word = task.as_str().unwrap_or_default();
    if TASKS.contains(&word) || (when != When::Rendered && template::is_template(word)) {
        return;
    }
    let msg = format!("must be one of {}", TASKS.join(", "));
    out.push(problem(here.to_vec(), "enum", msg));
}

/// The parameters with their templates rendered; filters and operands stay as written. Members that turn out `null`
/// are left out, so that their defaults apply.
pub(crate) fn render(
    members: &[Member],
    object: &Object,
    context: &Context,
) -> Result<Object, TemplateError> {
    let mut out = Object::new();
    for (key, value) in object {
        let kind = members.iter().find(|m| m.name == key).map(|m| &m.kind);
        let rendered = match (kind, value) {
            (
                Some(
                    Kind::Filter
                    | Kind::Operand
                    | Kind::Template
                    | Kind::Templates
                    | Kind::Verbatim,
                ),
                _,
            ) => value.clone(),
            (Some(Kind::Object(inner)), Value::Object(o)) => {
                Value::Object(render(inner, o, context)?)
            }
            (Some(Kind::Objects(inner, _)), Value::Array(items)) => {
                let items = items.iter().map(|item| match item {
                    Value::Object(o) => render(inner, o, context).map(Value::Object),
                    other => template::render_value(other, context),
                });
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            _ => template::render_value(value, context)?,
        };
        if !rendered.is_null() {
            out.insert(key.clone(), rendered);
        }
    }
    // Defaults that are templates are rendered too, so that nothing is rendered twice.
    for member in members.iter().filter(|m| matches!(m.kind, Kind::Text)) {
        let written: Option<String> = reading::from_str(member.default).ok();
        if let Some(text) = written.filter(|text| template::is_template(text))
            && object.get(member.name).is_none_or(Value::is_null)
        {
            let value = template::render_value(&Value::String(text), context)?;
            if !value.is_null() {
                out.insert(member.name.to_owned(), value);
            }
        }
    }
    Ok(out)
}

pub(crate) fn inside(loc: &[String], step: &str) -> Vec<String> {
    loc.iter().cloned().chain([step.to_owned()]).collect()
}

pub(crate) fn problem(loc: Vec<String>, r#type: &'static str, msg: String) -> StageProblem {
    StageProblem { loc, msg, r#type }
}

/// What every stage takes beside its own parameters.
pub(crate) const COMMON: &[Member] = &[
    member(
        "pre_filters",
        Kind::Filter,
        "",
        "Conditions of the documents that reach the stage; the others are left out",
    ),
    member(
        "post_filters",
        Kind::Filter,
        "",
        "Conditions of what the stage gives; the rest is left out",
    ),
];

/// What stages take that work on each document.
pub(crate) const WHEN: Member = member(
    "when",
    Kind::Filter,
    "",
    "Conditions of the documents that the stage works on; the others pass as they are",
);

/// The table as a JSON schema.
pub(crate) fn json_schema(members: &[Member]) -> Object {
    let mut properties = Object::new();
    for member in members {
        let mut schema = kind_schema(&member.kind);
        schema.insert("description".into(), json!(member.about));
        if let Ok(default) = serde_json::from_str::<Value>(member.default) {
            schema.insert("default".into(), default);
        }
        properties.insert(member.name.into(), Value::Object(schema));
    }
    let required: Vec<&str> = members
        .iter()
        .filter(|m| m.required)
        .map(|m| m.name)
        .collect();
    let mut schema = Object::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("required".into(), json!(required));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

fn kind_schema(kind: &Kind) -> Object {
    let schema = match kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Template => json!({"type": "string", "format": "template"}),
        Kind::Verbatim => json!({"type": "string", "format": "code"}),
        Kind::Map | Kind::Templates => json!({"type": "object"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Integer(min, max) => {
            let mut schema = json!({"type": "integer"});
            // An end that is none is not told: clients would have to hold a number of that size.
            if *min > i64::MIN {
                schema["minimum"] = json!(min);
            }
            if *max < i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        Kind::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        Kind::Choice(words) => json!({"type": "string", "enum": words}),
        Kind::Object(members) => Value::Object(json_schema(members)),
        Kind::Objects(members, most) => {
            json!({"type": "array", "maxItems": most, "items": json_schema(members)})
        }
        Kind::Filter => json!({"type": "object", "format": "filter"}),
        Kind::Query => json!({"type": "object", "format": "query", "properties": {
            "input_mode": {"type": "string", "enum": QUERY_MODES.map(|(word, _)| word), "default": "text"}}}),
        Kind::Operand => json!({}),
    };
    match schema {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
