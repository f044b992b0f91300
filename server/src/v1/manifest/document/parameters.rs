//! Whether a manifest's parameters can be used, and what values they take.

use loupe_wire::{ManifestParameterSpec, ManifestParameterType, Value};

/// Why a parameter cannot be used.
pub(super) fn unusable(
    spec: &ManifestParameterSpec,
    before: &[ManifestParameterSpec],
) -> Option<String> {
    let starts = spec
        .name
        .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !starts || !spec.name.chars().all(goes_on) {
        return Some("a name has letters, digits and underscores, and no digit first".into());
    }
    if before.iter().any(|one| one.name == spec.name) {
        return Some(format!("the parameter '{}' is there twice", spec.name));
    }
    match &spec.default {
        Some(value) => unfit(spec, value).map(|why| format!("the default does not fit: {why}")),
        None => None,
    }
}

/// Why a value is none of a parameter.
pub(super) fn unfit(spec: &ManifestParameterSpec, value: &Value) -> Option<String> {
    if !is_of(spec.r#type, value) {
        return Some(format!("the value is no {}", word(spec.r#type)));
    }
    let (items, list) = (spec.items, value.as_array());
    if let (Some(items), Some(list)) = (items, list)
        && !list.iter().all(|item| is_of(items, item))
    {
        return Some(format!("every item has to be a {}", word(items)));
    }
    match &spec.r#enum {
        Some(known) if !known.contains(value) => {
            let known: Vec<String> = known.iter().map(Value::to_string).collect();
            Some(format!("the value is none of {}", known.join(", ")))
        }
        _ => None,
    }
}

fn is_of(kind: ManifestParameterType, value: &Value) -> bool {
    match kind {
        ManifestParameterType::String => value.is_string(),
        ManifestParameterType::Integer => value.is_i64() || value.is_u64(),
        ManifestParameterType::Number => value.is_number(),
        ManifestParameterType::Boolean => value.is_boolean(),
        ManifestParameterType::Array => value.is_array(),
    }
}

fn word(kind: ManifestParameterType) -> &'static str {
    match kind {
        ManifestParameterType::String => "string",
        ManifestParameterType::Integer => "integer",
        ManifestParameterType::Number => "number",
        ManifestParameterType::Boolean => "boolean",
        ManifestParameterType::Array => "list",
    }
}
