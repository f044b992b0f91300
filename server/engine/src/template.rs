//! The one template grammar: `{{ expression }}` inside text, nothing else. No blocks, no loops, no access to anything
//! but the names given, and limits on size, work and output.
//!
//! Names: `INPUT` (also `INPUTS`), `DOC`, `CONTEXT`, `STAGE`, `SECRET` (also `SECRETS`) and what a stage adds, in any
//! case; functions `utc_now()` and `time_ago(hours=2)`, by the clock of the [`Context`].

mod pieces;
mod reads;
mod sandbox;

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use minijinja::value::{
    Enumerator, Kwargs, Object as Dynamic, Serde, Value as Any, ValueKind, merge_maps,
};
use minijinja::{Error, ErrorKind};
use serde_json::Value;

use pieces::{Piece, bounded, filters, pieces};
pub use reads::{reads_the_run, secrets_read};
use sandbox::{FILTERS, SANDBOX, moment, time_ago};

use crate::weight;

/// Longest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 64 << 10;
/// Longest text that a template may give, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Deepest nesting of a value whose strings are rendered.
const MAX_DEPTH: usize = 32;

/// Why a template was refused or failed; safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

type Result<T> = std::result::Result<T, TemplateError>;

/// Looks a secret up by its name.
pub type Secrets = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What templates may read. Cheap to clone: values are shared.
#[derive(Clone, Debug)]
pub struct Context {
    inputs: Arc<Inputs>,
    names: HashMap<String, Any>,
}

/// The inputs of an execution, each made a template's value when one reads it: a query vector mostly passes as it is.
#[derive(Debug)]
struct Inputs(serde_json::Map<String, Value>);

impl Dynamic for Inputs {
    fn get_value(self: &Arc<Self>, key: &Any) -> Option<Any> {
        let value = self.0.get(key.as_str()?)?;
        // Whoever reads an input gets a copy of it.
        Some(match sandbox::make(weight::of(value)) {
            Ok(()) => Any::from(Serde(value)),
            Err(error) => Any::from(error),
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| Any::from(name.as_str())).collect())
    }
}

impl Context {
    /// A context with the inputs of an execution and its clock.
    pub fn new(inputs: &serde_json::Map<String, Value>, now: DateTime<Utc>) -> Self {
        let inputs = Arc::new(Inputs(inputs.clone()));
        let mut names = HashMap::new();
        names.insert("input".to_owned(), Any::from_dyn_object(inputs.clone()));
        names.insert(
            "utc_now".to_owned(),
            Any::from_function(move || moment(now)),
        );
        names.insert(
            "time_ago".to_owned(),
            Any::from_function(move |by: Kwargs| time_ago(now, &by)),
        );
        Self { inputs, names }
    }

    /// Gives a name a value: `DOC`, `CONTEXT`, `STAGE`, or a name of the stage's own.
    pub fn set(&mut self, name: &str, value: &Value) {
        self.names.insert(canonical(name), Any::from(Serde(value)));
    }

    /// Adds members to those that a name has already.
    pub fn extend(&mut self, name: &str, members: &Value) {
        let added = Any::from(Serde(members));
        let name = canonical(name);
        let merged = match self.names.get(&name) {
            Some(before) => merge_maps([added, before.clone()]),
            None => added,
        };
        self.names.insert(name, merged);
    }

    /// The input that an expression names and does nothing else with.
    fn input(&self, expression: &str) -> Option<&Value> {
        let (root, name) = expression.split_once('.')?;
        let is_input = root.eq_ignore_ascii_case("input") || root.eq_ignore_ascii_case("inputs");
        if is_input {
            self.inputs.0.get(name)
        } else {
            None
        }
    }

    /// Makes `SECRET.name` readable.
    pub fn set_secrets(&mut self, secrets: Secrets) {
        self.names
            .insert("secret".to_owned(), Any::from_object(SecretNames(secrets)));
    }
}

/// The name under which a name of any case or alias is kept.
fn canonical(name: &str) -> String {
    let mut name = name.to_lowercase();
    if matches!(name.as_str(), "inputs" | "secrets") {
        name.pop();
    }
    name
}

struct Root(Context);

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the names of a template")
    }
}

impl Dynamic for Root {
    fn get_value(self: &Arc<Self>, key: &Any) -> Option<Any> {
        self.0.names.get(&canonical(key.as_str()?)).cloned()
    }
}

struct SecretNames(Secrets);

impl std::fmt::Debug for SecretNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("secrets")
    }
}

impl Dynamic for SecretNames {
    fn get_value(self: &Arc<Self>, key: &Any) -> Option<Any> {
        (self.0)(key.as_str()?).map(Any::from)
    }

    // Secrets are read one by one, never listed.
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// What a text gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Rendered {
    Value(Value),
    /// An expression that has no value, as written: an input that was not sent.
    Missing(String),
}

/// Whether a text holds an expression.
pub fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Whether some string inside is a template.
pub fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(object) => object.values().any(has_template),
        _ => false,
    }
}

/// Reads the template without running it, so that a mistake is told when a retriever is made.
pub fn check(template: &str) -> Result<()> {
    read(template, known)
}

/// The same of a template that was written before: a filter that there is not is told by whoever comes to it.
pub fn check_stored(template: &str) -> Result<()> {
    read(template, |_| Ok(()))
}

fn read(template: &str, checks: fn(&str) -> Result<()>) -> Result<()> {
    for piece in pieces(template)? {
        if let Piece::Expression(source) = piece {
            bounded(source)?;
            SANDBOX
                .compile_expression(source)
                .map_err(|e| told(source, &e))?;
            checks(source)?;
        }
    }
    Ok(())
}

/// The first mistake in the strings of a value, and the way to it.
type Fault = (Vec<String>, TemplateError);

/// Checks every string of a value; the path of the first mistake comes with it.
pub fn check_value(value: &Value) -> std::result::Result<(), Fault> {
    read_value(value, check)
}

/// As [`check_stored`], every string of a value.
pub fn check_stored_value(value: &Value) -> std::result::Result<(), Fault> {
    read_value(value, check_stored)
}

fn read_value(value: &Value, checks: fn(&str) -> Result<()>) -> std::result::Result<(), Fault> {
    fn walk(value: &Value, checks: fn(&str) -> Result<()>, loc: &mut Vec<String>) -> Result<()> {
        let inside = |step: String, member: &Value, loc: &mut Vec<String>| {
            loc.push(step);
            walk(member, checks, loc)?;
            loc.pop();
            Ok(())
        };
        match value {
            Value::String(text) => checks(text),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, v)| inside(i.to_string(), v, loc)),
            Value::Object(object) => object
                .iter()
                .try_for_each(|(k, v)| inside(k.clone(), v, loc)),
            _ => Ok(()),
        }
    }
    let mut loc = Vec::new();
    walk(value, checks, &mut loc).map_err(|e| (loc, e))
}

/// The value of a text: typed where the text is exactly one expression, else text. Absent values are empty text, or
/// [`Rendered::Missing`] from a lone expression or one inside text when `strict`.
fn evaluate(template: &str, context: &Context, strict: bool) -> Result<Rendered> {
    let list = pieces(template.trim())?;
    if let [Piece::Expression(source)] = list.as_slice() {
        let value = match context.input(source) {
            Some(value) => sized(value.clone())?,
            None => plain(source, &run(source, context)?)?,
        };
        return Ok(match value {
            Value::Null if strict => Rendered::Missing((*source).to_owned()),
            value => Rendered::Value(value),
        });
    }
    let mut out = String::with_capacity(template.len());
    for piece in pieces(template)? {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Expression(source) => {
                let value = run(source, context)?;
                match plain(source, &value)? {
                    Value::Null if strict => return Ok(Rendered::Missing(source.to_owned())),
                    Value::Null => {}
                    Value::String(text) => out.push_str(&text),
                    other => out.push_str(&other.to_string()),
                }
            }
        }
        if out.len() > MAX_OUTPUT_BYTES {
            return Err(TemplateError(format!(
                "the template gives more than {MAX_OUTPUT_BYTES} bytes"
            )));
        }
    }
    Ok(Rendered::Value(Value::String(out)))
}

fn run(source: &str, context: &Context) -> Result<Any> {
    bounded(source)?;
    let expression = SANDBOX
        .compile_expression(source)
        .map_err(|e| told(source, &e))?;
    sandbox::begin();
    let value = expression.eval(Any::from_object(Root(context.clone())));
    // An input that was too large to be read is a value that says so: whoever did not look at it is told here.
    value
        .and_then(|value| sandbox::measure(&value).map(|()| value))
        .map_err(|e| told(source, &e))
}

fn plain(source: &str, value: &Any) -> Result<Value> {
    if value.is_undefined() {
        return Ok(Value::Null);
    }
    if value.kind() == ValueKind::Plain {
        let msg = format!("`{source}` is a function: write `{source}()`");
        return Err(TemplateError(msg));
    }
    let json = serde_json::to_value(value)
        .map_err(|_| TemplateError(format!("`{source}` gives something that is no JSON value")))?;
    sized(json)
}

fn sized(value: Value) -> Result<Value> {
    match &value {
        Value::String(text) if text.len() > MAX_OUTPUT_BYTES => Err(TemplateError(format!(
            "the template gives more than {MAX_OUTPUT_BYTES} bytes"
        ))),
        _ => Ok(value),
    }
}

fn told(source: &str, error: &Error) -> TemplateError {
    let reason = match error.kind() {
        ErrorKind::OutOfFuel => "it takes too long".to_owned(),
        ErrorKind::UnknownFilter => format!(
            "{}; {}",
            error.detail().unwrap_or("there is no such filter"),
            filters_told()
        ),
        _ => error
            .detail()
            .map_or_else(|| error.kind().to_string(), str::to_owned),
    };
    refused(source, &reason)
}

/// Refuses an expression with a filter that there is not, whether or not it would come to it.
fn known(source: &str) -> Result<()> {
    let mut used = filters(source).into_iter();
    match used.find(|name| !FILTERS.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let reason = format!("filter {name} is unknown; {}", filters_told());
            Err(refused(source, &reason))
        }
    }
}

fn filters_told() -> String {
    format!("the filters are {}", FILTERS.join(", "))
}

fn refused(source: &str, reason: &str) -> TemplateError {
    TemplateError(format!(
        "the template `{{{{ {source} }}}}` cannot be rendered: {reason}"
    ))
}

/// The text that a template gives; absent values are empty.
pub fn render_text(template: &str, context: &Context) -> Result<String> {
    Ok(match evaluate(template, context, false)? {
        Rendered::Value(Value::String(text)) => text,
        Rendered::Value(Value::Null) | Rendered::Missing(_) => String::new(),
        Rendered::Value(other) => other.to_string(),
    })
}

/// Renders every string inside a value. A string that is exactly one expression becomes the expression's value with
/// its type, `null` where there is none.
pub fn render_value(value: &Value, context: &Context) -> Result<Value> {
    render_at(value, context, 0)
}

fn render_at(value: &Value, context: &Context, depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(TemplateError(format!(
            "templates may be nested {MAX_DEPTH} deep at most"
        )));
    }
    Ok(match value {
        Value::String(text) if is_template(text) => match evaluate(text, context, false)? {
            Rendered::Value(value) => value,
            Rendered::Missing(_) => Value::Null,
        },
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|v| render_at(v, context, depth + 1))
                .collect::<Result<_>>()?,
        ),
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(k, v)| Ok((k.clone(), render_at(v, context, depth + 1)?)));
            Value::Object(members.collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

/// The value of a filter's condition: as [`render_value`] for a string, but an expression without a value is told, so
/// that the condition can be removed.
pub fn render_operand(value: &Value, context: &Context) -> Result<Rendered> {
    match value {
        Value::String(text) if is_template(text) => evaluate(text, context, true),
        Value::Array(items) => {
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                match render_operand(item, context)? {
                    Rendered::Value(value) => list.push(value),
                    missing => return Ok(missing),
                }
            }
            Ok(Rendered::Value(Value::Array(list)))
        }
        other => Ok(Rendered::Value(render_value(other, context)?)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
