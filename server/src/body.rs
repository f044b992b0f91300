//! JSON bodies: read, checked for unknown keys and limits, and refused with the 422 list, in one place.

use std::collections::BTreeMap;

use axum::extract::{FromRef, FromRequest, Request};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use loupe_wire::{
    Value,
    reading::{self, Fault},
};
use serde::de::DeserializeOwned;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};
use validator::{Validate, ValidationErrors, ValidationErrorsKind};

use crate::{
    app::App,
    error::{ApiError, Result, Violation},
    tolerance::{Ignored, Unknown},
    unread,
};

/// A checked body. An empty body reads as `{}`, which is a valid list request.
pub struct Body<T>(pub T);

impl<T, S> FromRequest<S> for Body<T>
where
    T: DeserializeOwned + Validate + ToSchema + Send,
    S: Send + Sync,
    App: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let (value, ignored) = receive(request, &App::from_ref(state)).await?;
        from_value(value, ignored.as_ref()).map(Self)
    }
}

/// A request's body as JSON, for [`from_value`], with the place that keeps unknown keys.
///
/// # Errors
/// 413 for a body that is too large, the 422 list for bad JSON.
pub async fn receive(request: Request, app: &App) -> Result<(Value, Option<Ignored>)> {
    let ignored = request.extensions().get::<Ignored>().cloned();
    let limit = app.config().limits.body_bytes;
    let bytes = read(request.into_body(), limit).await?;
    Ok((json(&bytes)?, ignored))
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// 413 for a body that is too large, 504 for one that does not come, 400 for one that breaks off.
pub async fn read(body: axum::body::Body, limit: usize) -> Result<Bytes> {
    let (mut pieces, mut whole) = (body.into_data_stream(), BytesMut::new());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| match unread::is_too_slow(&error) {
            true => ApiError::timeout("", "the body came too slowly"),
            false => ApiError::bad_request("", "the body could not be read"),
        })?;
        if whole.len() + piece.len() > limit {
            let message = format!("the body is larger than {limit} bytes");
            return Err(ApiError::payload_too_large("", message));
        }
        // Most come whole.
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Reads and checks a body.
///
/// # Errors
/// The 422 list: bad JSON, missing members, wrong types, broken limits, unknown keys (unless there is a place that keeps them).
pub fn parse<T: DeserializeOwned + Validate + ToSchema>(
    bytes: &[u8],
    ignored: Option<&Ignored>,
) -> Result<T> {
    from_value(json(bytes)?, ignored)
}

fn json(bytes: &[u8]) -> Result<Value> {
    let bytes = if bytes.iter().all(u8::is_ascii_whitespace) {
        b"{}"
    } else {
        bytes
    };
    serde_json::from_slice(bytes).map_err(|error| {
        let msg = format!("the body is not valid JSON: {error}");
        ApiError::from(Violation::body(
            &[&error.column().to_string()],
            "json_invalid",
            msg,
            Value::Null,
        ))
    })
}

/// As [`parse`], for a value read already.
///
/// # Errors
/// As [`parse`].
pub fn from_value<T: DeserializeOwned + Validate + ToSchema>(
    value: Value,
    ignored: Option<&Ignored>,
) -> Result<T> {
    let (parsed, unknown): (T, _) =
        reading::with_unknown_keys(&value).map_err(|fault| type_violation(fault, &value))?;
    let describe = Describe {
        schema: T::schema,
        schemas: T::schemas,
    };
    let violations = describe.judge(&value, &unknown, parsed.validate().err(), ignored);
    if violations.is_empty() {
        Ok(parsed)
    } else {
        Err(ApiError::Validation(violations))
    }
}

/// How to come by the description of a type.
#[derive(Clone, Copy)]
struct Describe {
    schema: fn() -> RefOr<Schema>,
    schemas: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Describe {
    /// What is wrong with a body that could be read.
    fn judge(
        self,
        value: &Value,
        unknown: &[Vec<String>],
        errors: Option<ValidationErrors>,
        ignored: Option<&Ignored>,
    ) -> Vec<Violation> {
        let mut violations = Vec::new();
        // Most bodies have no such key, and the description of a type is large: it is made where one is found.
        let shape = (!unknown.is_empty()).then(|| self.shape());
        for path in unknown {
            let accepted = shape.as_ref().map(|shape| shape.accepted_beside(path));
            let accepted = accepted.unwrap_or_default();
            match ignored {
                Some(ignored) => ignored.add(Unknown {
                    accepted,
                    path: path.join("."),
                }),
                None => violations.push(unknown_key(path, value, accepted)),
            }
        }
        if let Some(errors) = errors {
            limit_violations(&errors, &mut Vec::new(), value, &mut violations);
        }
        violations
    }

    fn shape(self) -> Shape {
        let mut schemas = vec![];
        (self.schemas)(&mut schemas);
        Shape {
            schema: (self.schema)(),
            schemas: schemas.into_iter().collect(),
        }
    }
}

/// A type as the description of the API has it.
struct Shape {
    schema: RefOr<Schema>,
    schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Shape {
    /// The keys that are declared where this one was found.
    fn accepted_beside(&self, path: &[String]) -> Vec<String> {
        let (parent, _) = path.split_at(path.len().saturating_sub(1));
        let mut current = self.schema.clone();
        for piece in parent {
            let Some(next) = member(&resolve(&current, &self.schemas), piece) else {
                return Vec::new();
            };
            current = next;
        }
        let mut keys = Vec::new();
        collect_keys(&resolve(&current, &self.schemas), &self.schemas, &mut keys);
        keys
    }
}

fn unknown_key(path: &[String], value: &Value, accepted: Vec<String>) -> Violation {
    let msg = if accepted.is_empty() {
        "extra inputs are not permitted".to_owned()
    } else {
        format!(
            "extra inputs are not permitted; accepted keys: {}",
            accepted.join(", ")
        )
    };
    let mut violation = violation(path, "extra_forbidden", msg, at(value, path).clone());
    violation.ctx = serde_json::json!({ "accepted": accepted });
    violation
}

fn at<'v>(value: &'v Value, path: &[String]) -> &'v Value {
    path.iter().fold(value, |value, piece| match value {
        Value::Array(items) => piece
            .parse::<usize>()
            .ok()
            .and_then(|index| items.get(index))
            .unwrap_or(&Value::Null),
        _ => value.get(piece).unwrap_or(&Value::Null),
    })
}

fn violation(path: &[String], kind: &str, msg: String, input: Value) -> Violation {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    Violation::body(&path, kind, msg, input)
}

fn type_violation(fault: Fault, value: &Value) -> Violation {
    let Fault {
        mut path, message, ..
    } = fault;
    if let Some(field) = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next())
    {
        let input = at(value, &path).clone();
        path.push(field.to_owned());
        return violation(&path, "missing", "field required".into(), input);
    }
    let kind = if message.starts_with("unknown variant") {
        "enum"
    } else {
        match message
            .rsplit_once("expected ")
            .map(|(_, expected)| expected)
        {
            Some(expected) if expected.contains("string") => "string_type",
            Some("i64" | "u64" | "usize") => "int_type",
            Some("f64") => "float_type",
            Some("a boolean") => "bool_type",
            Some("a sequence") => "list_type",
            Some(expected) if expected.contains("map") || expected.contains("struct") => {
                "dict_type"
            }
            _ => "value_error",
        }
    };
    violation(&path, kind, sentence(&message), at(value, &path).clone())
}

/// serde names Rust types; a caller reads JSON's.
fn sentence(message: &str) -> String {
    message
        .replace("expected i64", "expected an integer")
        .replace("expected u64", "expected an integer")
        .replace("expected usize", "expected an integer")
        .replace("expected f64", "expected a number")
        .replace("a sequence", "a list")
        .replace("a map", "an object")
        .split(", expected struct ")
        .collect::<Vec<_>>()
        .join(", expected an object for ")
}

fn resolve(schema: &RefOr<Schema>, schemas: &BTreeMap<String, RefOr<Schema>>) -> Option<Schema> {
    let mut current = schema.clone();
    for _ in 0..8 {
        match current {
            RefOr::T(Schema::OneOf(one)) => {
                // `Option<T>` is "null or T".
                current = one
                    .items
                    .into_iter()
                    .find(|item| matches!(item, RefOr::Ref(_)))?;
            }
            RefOr::T(schema) => return Some(schema),
            RefOr::Ref(reference) => {
                current = schemas
                    .get(reference.ref_location.rsplit('/').next()?)?
                    .clone();
            }
        }
    }
    None
}

fn member(schema: &Option<Schema>, piece: &str) -> Option<RefOr<Schema>> {
    match schema.as_ref()? {
        Schema::Object(object) => object.properties.get(piece).cloned(),
        Schema::Array(array) => match &array.items {
            utoipa::openapi::schema::ArrayItems::RefOrSchema(items) => Some((**items).clone()),
            utoipa::openapi::schema::ArrayItems::False => None,
        },
        Schema::AllOf(all) => all.items.iter().find_map(|item| match item {
            RefOr::T(schema) => member(&Some(schema.clone()), piece),
            RefOr::Ref(_) => None,
        }),
        _ => None,
    }
}

fn collect_keys(
    schema: &Option<Schema>,
    schemas: &BTreeMap<String, RefOr<Schema>>,
    keys: &mut Vec<String>,
) {
    match schema {
        Some(Schema::Object(object)) => keys.extend(object.properties.keys().cloned()),
        Some(Schema::AllOf(all)) => {
            for item in &all.items {
                collect_keys(&resolve(item, schemas), schemas, keys);
            }
        }
        _ => {}
    }
}

fn limit_violations(
    errors: &ValidationErrors,
    path: &mut Vec<String>,
    value: &Value,
    out: &mut Vec<Violation>,
) {
    for (field, kind) in errors.errors() {
        path.push(field.trim_start_matches("r#").to_owned());
        match kind {
            ValidationErrorsKind::Struct(inner) => limit_violations(inner, path, value, out),
            ValidationErrorsKind::List(items) => {
                for (index, inner) in items {
                    path.push(index.to_string());
                    limit_violations(inner, path, value, out);
                    path.pop();
                }
            }
            ValidationErrorsKind::Field(faults) => {
                let input = at(value, path).clone();
                for fault in faults {
                    let (kind, msg, ctx) = limit_sentence(fault, &input);
                    let mut violation = violation(path, kind, msg, input.clone());
                    violation.ctx = ctx;
                    out.push(violation);
                }
            }
        }
        path.pop();
    }
}

/// A fault's type, its sentence, and the bound that it broke.
type Sentence = (&'static str, String, Value);

fn limit_sentence(fault: &validator::ValidationError, input: &Value) -> Sentence {
    let bound = |name: &str| fault.params.get(name).cloned();
    let (kind, msg) = match fault.code.as_ref() {
        "length" => return length_sentence(bound("min"), bound("max"), input),
        "range" => return range_sentence(bound("min"), bound("max"), input),
        "regex" => (
            "string_pattern_mismatch",
            "string does not match the pattern".to_owned(),
        ),
        _ => ("value_error", fault.to_string()),
    };
    (kind, msg, Value::Object(loupe_wire::Object::new()))
}

fn length_sentence(min: Option<Value>, max: Option<Value>, input: &Value) -> Sentence {
    let list = input.is_array();
    let (thing, unit) = if list {
        ("list", "items")
    } else {
        ("string", "characters")
    };
    let size = match input {
        Value::Array(items) => items.len() as u64,
        Value::String(text) => text.chars().count() as u64,
        _ => 0,
    };
    match (min, max) {
        (Some(min), _) if min.as_u64().is_some_and(|min| size < min) => {
            let kind = if list {
                "too_short"
            } else {
                "string_too_short"
            };
            (
                kind,
                format!("{thing} should have at least {min} {unit}"),
                serde_json::json!({ "min_length": min }),
            )
        }
        (_, Some(max)) => {
            let kind = if list { "too_long" } else { "string_too_long" };
            (
                kind,
                format!("{thing} should have at most {max} {unit}"),
                serde_json::json!({ "max_length": max }),
            )
        }
        _ => (
            "value_error",
            format!("{thing} has a wrong length"),
            Value::Object(loupe_wire::Object::new()),
        ),
    }
}

fn range_sentence(min: Option<Value>, max: Option<Value>, input: &Value) -> Sentence {
    let number = input.as_f64().unwrap_or_default();
    if let Some(min) = min.filter(|min| min.as_f64().is_some_and(|min| number < min)) {
        return (
            "greater_than_equal",
            format!("input should be greater than or equal to {min}"),
            serde_json::json!({ "ge": min }),
        );
    }
    if let Some(max) = max.filter(|max| max.as_f64().is_some_and(|max| number > max)) {
        return (
            "less_than_equal",
            format!("input should be less than or equal to {max}"),
            serde_json::json!({ "le": max }),
        );
    }
    (
        "value_error",
        "input is out of range".into(),
        Value::Object(loupe_wire::Object::new()),
    )
}
