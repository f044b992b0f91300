//! An object against the schema of its bucket: types, required members, closed sets, defaults.

use loupe_wire::{BucketSchema, BucketSchemaField, BucketSchemaFieldType as Kind, Object, Value};

use crate::error::Violation;

/// Members of an object that only the server writes.
const SYSTEM: [&str; 12] = [
    "object_id",
    "bucket_id",
    "blobs",
    "source_details",
    "status",
    "error",
    "created_at",
    "updated_at",
    "document_count",
    "consistency",
    "_internal",
    "namespace_id",
];

/// Kinds whose value is a file.
pub const fn is_file(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Image | Kind::Audio | Kind::Video | Kind::Pdf | Kind::Excel
    )
}

/// Fills in defaults, then collects every fault. `blobs` are the names and kinds of the object's blobs.
pub fn check(
    schema: Option<&BucketSchema>,
    fields: &mut Object,
    blobs: &[(String, Kind)],
    partial: bool,
) -> Vec<Violation> {
    let mut faults = Vec::new();
    for name in fields.keys().filter(|name| SYSTEM.contains(&name.as_str())) {
        let msg = "this member is written by the server";
        let input = fields[name.as_str()].clone();
        faults.push(Violation::body(&[name], "extra_forbidden", msg, input));
    }
    let Some(schema) = schema else { return faults };
    for (name, field) in &schema.properties {
        let given = fields.get(name).is_some_and(|value| !value.is_null());
        let blob = blobs.iter().any(|(property, _)| property == name);
        if let (false, false, false, Some(default)) = (given, blob, partial, &field.default) {
            fields.insert(name.clone(), default.clone());
        } else if !given && !blob && !partial && field.required == Some(true) {
            let msg = "the bucket's schema requires this field";
            faults.push(Violation::body(&[name], "missing", msg, Value::Null));
        }
        if let Some(value) = fields.get(name).filter(|value| !value.is_null()) {
            check_value(field, value, &mut vec![name.clone()], &mut faults);
        }
    }
    if !schema.properties.is_empty() {
        check_blobs(schema, blobs, &mut faults);
    }
    faults
}

fn check_blobs(schema: &BucketSchema, blobs: &[(String, Kind)], faults: &mut Vec<Violation>) {
    for (index, (property, kind)) in blobs.iter().enumerate() {
        let place = index.to_string();
        match schema.properties.get(property) {
            None => {
                let known: Vec<&str> = schema.properties.keys().map(String::as_str).collect();
                let msg = format!(
                    "the bucket's schema has no field '{property}'; it has: {}",
                    known.join(", ")
                );
                let path = ["blobs", &place, "property"];
                faults.push(Violation::body(
                    &path,
                    "value_error",
                    msg,
                    property.clone().into(),
                ));
            }
            Some(field) if !same_kind(field.r#type, *kind) => {
                let msg = format!(
                    "the bucket's schema says {} for '{property}'",
                    word(field.r#type)
                );
                let path = ["blobs", &place, "type"];
                faults.push(Violation::body(
                    &path,
                    "value_error",
                    msg,
                    word(*kind).into(),
                ));
            }
            Some(_) => {}
        }
    }
}

fn same_kind(declared: Kind, sent: Kind) -> bool {
    let text = |kind| matches!(kind, Kind::Text | Kind::String);
    declared == sent || (text(declared) && text(sent))
}

fn word(kind: Kind) -> String {
    crate::v1::tasks::name_of(kind)
}

fn check_value(
    field: &BucketSchemaField,
    value: &Value,
    path: &mut Vec<String>,
    faults: &mut Vec<Violation>,
) {
    let fault = |path: &[String], kind: &str, msg: String| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Violation::body(&path, kind, msg, value.clone())
    };
    if let Err(kind) = fits(field.r#type, value) {
        faults.push(fault(
            path,
            kind,
            format!("expected {}", word(field.r#type)),
        ));
        return;
    }
    if let Some(allowed) = field.r#enum.as_ref().filter(|allowed| !allowed.is_empty())
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        faults.push(fault(
            path,
            "enum",
            format!("one of {}", allowed.join(", ")),
        ));
    }
    if let (Some(items), Some(values)) = (&field.items, value.as_array()) {
        for (index, value) in values.iter().enumerate() {
            path.push(index.to_string());
            check_value(items, value, path, faults);
            path.pop();
        }
    }
    if let (Some(properties), Some(members)) = (&field.properties, value.as_object()) {
        for (name, inner) in properties {
            path.push(name.clone());
            match members.get(name).filter(|value| !value.is_null()) {
                Some(value) => check_value(inner, value, path, faults),
                None if inner.required == Some(true) => {
                    let path: Vec<&str> = path.iter().map(String::as_str).collect();
                    let msg = "the bucket's schema requires this field";
                    faults.push(Violation::body(&path, "missing", msg, Value::Null));
                }
                None => {}
            }
            path.pop();
        }
    }
}

/// Or the type of the fault.
fn fits(kind: Kind, value: &Value) -> Result<(), &'static str> {
    let date = |text: &str| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok();
    let moment = |text: &str| chrono::DateTime::parse_from_rfc3339(text).is_ok() || date(text);
    let (good, fault) = match kind {
        Kind::Number | Kind::Float => (value.is_number(), "float_type"),
        Kind::Integer => (value.is_i64() || value.is_u64(), "int_type"),
        Kind::Boolean => (value.is_boolean(), "bool_type"),
        Kind::Object => (value.is_object(), "dict_type"),
        Kind::Array => (value.is_array(), "list_type"),
        Kind::Date => (value.as_str().is_some_and(moment), "date_parsing"),
        Kind::Datetime => (value.as_str().is_some_and(moment), "datetime_parsing"),
        // Text, and files named by their address.
        _ => (value.is_string(), "string_type"),
    };
    if good { Ok(()) } else { Err(fault) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(fields: Value, blobs: &[(String, Kind)]) -> Vec<String> {
        let schema: BucketSchema = serde_json::from_value(json!({"properties": {
            "title": {"type": "string", "required": true},
            "year": {"type": "integer"},
            "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "photo": {"type": "image"},
        }}))
        .unwrap();
        let mut fields = fields.as_object().unwrap().clone();
        check(Some(&schema), &mut fields, blobs, false)
            .into_iter()
            .map(|fault| {
                let path: Vec<String> = fault.loc.iter().map(ToString::to_string).collect();
                format!("{} {}", path.join(".").replace('"', ""), fault.kind)
            })
            .collect()
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        assert!(
            faults(
                json!({"title": "x", "year": 3, "tags": ["a"], "own": 1}),
                &[]
            )
            .is_empty()
        );
        assert_eq!(
            faults(
                json!({"year": "x", "kind": "c", "tags": [1], "status": 1}),
                &[]
            ),
            [
                "body.status extra_forbidden",
                "body.title missing",
                "body.year int_type",
                "body.kind enum",
                "body.tags.0 string_type"
            ]
        );
        let blobs = [
            ("photo".to_owned(), Kind::Pdf),
            ("film".to_owned(), Kind::Video),
        ];
        assert_eq!(
            faults(json!({"title": "x"}), &blobs),
            [
                "body.blobs.0.type value_error",
                "body.blobs.1.property value_error"
            ]
        );
    }
}
