//! Input mappings of a new collection against its extractor and the schemas of its buckets.

use loupe_engine::{extract, ingest::check_mappings};
use loupe_wire::{BucketSchema, BucketSchemaField, FeatureExtractorConfigInput};

use crate::error::{Result, Violation};

/// Refuses a mapping that would make every object fail.
///
/// # Errors
/// An input that the extractor does not have, or a field that none of the buckets has. A bucket without a schema may
/// have any.
pub fn check(config: &FeatureExtractorConfigInput, schemas: &[Option<BucketSchema>]) -> Result<()> {
    let name = &config.feature_extractor_name;
    // Whoever names an extractor that does not exist has been told before.
    let Some(info) = extract::find(name, &config.version) else {
        return Ok(());
    };
    let declared: Option<Vec<&BucketSchema>> = schemas
        .iter()
        .map(|schema| {
            schema
                .as_ref()
                .filter(|schema| !schema.properties.is_empty())
        })
        .collect();
    let declared = declared.unwrap_or_default();
    let known = |path: &str| {
        if declared.is_empty() || declared.iter().any(|schema| has(schema, path)) {
            return Ok(());
        }
        let mut names: Vec<&str> = Vec::new();
        for name in declared.iter().flat_map(|schema| schema.properties.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        Err(format!(
            "the schema of the source has no field '{path}'; it has: {}",
            names.join(", ")
        ))
    };
    let mappings = config.input_mappings.as_ref();
    check_mappings(info, mappings, known).map_err(|fault| {
        let mut path = vec!["feature_extractor", "input_mappings"];
        path.extend(fault.loc.iter().map(String::as_str));
        let input = mappings.cloned().unwrap_or_default();
        Violation::body(&path, "value_error", fault.msg.clone(), input).into()
    })
}

/// Whether an object of the schema may have something at the path.
fn has(schema: &BucketSchema, path: &str) -> bool {
    if schema.properties.contains_key(path) {
        return true;
    }
    let mut pieces = path.split('.');
    let first = pieces.next().and_then(|name| schema.properties.get(name));
    let Some(mut field) = first else {
        return false;
    };
    for piece in pieces {
        match inner(field, piece) {
            Inner::Field(next) => field = next,
            Inner::Anything => return true,
            Inner::Nothing => return false,
        }
    }
    true
}

/// What a member of a field's value may be.
enum Inner<'a> {
    Field(&'a BucketSchemaField),
    Anything,
    Nothing,
}

fn inner<'a>(field: &'a BucketSchemaField, piece: &str) -> Inner<'a> {
    if let (Some(items), Ok(_)) = (&field.items, piece.parse::<usize>()) {
        return Inner::Field(items);
    }
    match &field.properties {
        Some(properties) => properties.get(piece).map_or(Inner::Nothing, Inner::Field),
        None => Inner::Anything,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_followed_as_far_as_the_schema_tells() {
        let schema: BucketSchema = serde_json::from_value(json!({"properties": {
            "title": {"type": "string"},
            "a.b": {"type": "string"},
            "book": {"type": "object", "properties": {"plot": {"type": "text"}}},
            "tags": {"type": "array", "items": {"type": "string"}},
            "free": {"type": "object"},
        }}))
        .unwrap();
        for path in [
            "title",
            "a.b",
            "book",
            "book.plot",
            "tags.0",
            "free.anything.below",
        ] {
            assert!(has(&schema, path), "{path}");
        }
        for path in ["plot", "a", "book.author", "book.author.name"] {
            assert!(!has(&schema, path), "{path}");
        }
    }
}
