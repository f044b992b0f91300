//! What of an object an extractor reads: by its mappings, else by the types that fit.

use std::collections::HashSet;

use loupe_wire::Value;

use super::{
    BlobInput, BlobRole, CollectionPlan, ObjectInput, fields,
    mapping::{From, own},
};
use crate::extract::ExtractError;

/// One thing to extract from.
pub(super) enum Piece<'a> {
    Text(String),
    File(&'a BlobInput),
}

/// Everything that the extractor reads of this object, with a name that tells the pieces apart.
///
/// # Errors
/// Nothing fits: the object is told which inputs it lacks.
pub(super) fn pieces<'a>(
    plan: &CollectionPlan,
    object: &'a ObjectInput,
) -> Result<Vec<(String, Piece<'a>)>, ExtractError> {
    let mut found = Vec::new();
    for (number, mapping) in plan.mappings.iter().enumerate() {
        match &mapping.from {
            From::Literal(value) => {
                let name = format!("{}={number}", mapping.input);
                found.extend(text(value).map(|text| (name, Piece::Text(text))));
            }
            From::Path(path) => found.extend(at(object, path)),
        }
    }
    // What is mapped twice would be two documents of one id.
    let mut names = HashSet::new();
    found.retain(|(name, _)| names.insert(name.clone()));
    if plan.mappings.is_empty() {
        found = fitting(plan, object);
    }
    if found.is_empty() {
        let wanted: Vec<String> = match plan.mappings.is_empty() {
            true => plan
                .extractor
                .inputs
                .iter()
                .flat_map(|input| input.types)
                .map(|kind| (*kind).to_owned())
                .collect(),
            false => plan
                .mappings
                .iter()
                .map(|mapping| mapping.input.clone())
                .collect(),
        };
        let message = format!("{}: {}", super::NO_INPUT, wanted.join(", "));
        return Err(ExtractError::permanent(message));
    }
    Ok(found)
}

/// The files of a property, or the texts of a field.
fn at<'a>(object: &'a ObjectInput, path: &str) -> Vec<(String, Piece<'a>)> {
    let path = own(path);
    let files: Vec<&BlobInput> = object
        .blobs
        .iter()
        .filter(|blob| blob.property == path)
        .collect();
    if !files.is_empty() {
        return name(path, files.into_iter().map(Piece::File).collect());
    }
    match fields::get(&object.fields, path) {
        Some(Value::Array(items)) => name(
            path,
            items.iter().filter_map(text).map(Piece::Text).collect(),
        ),
        Some(value) => text(value)
            .map(|text| (path.to_owned(), Piece::Text(text)))
            .into_iter()
            .collect(),
        None => Vec::new(),
    }
}

/// Names that stay the same on every run: the document ids are made from them.
fn name<'a>(path: &str, pieces: Vec<Piece<'a>>) -> Vec<(String, Piece<'a>)> {
    let single = pieces.len() == 1;
    let numbered = pieces.into_iter().enumerate();
    numbered
        .map(|(number, piece)| {
            (
                if single {
                    path.to_owned()
                } else {
                    format!("{path}#{number}")
                },
                piece,
            )
        })
        .collect()
}

/// Without mappings: every file of a type that an input takes, else the field with the input's name; of a document the
/// field first.
fn fitting<'a>(plan: &CollectionPlan, object: &'a ObjectInput) -> Vec<(String, Piece<'a>)> {
    let takes = |kind: &str| {
        plan.extractor
            .inputs
            .iter()
            .any(|input| input.types.contains(&kind))
    };
    let files = |role: Option<BlobRole>| -> Vec<_> {
        let mut properties: Vec<&str> = Vec::new();
        let of_role = |blob: &&BlobInput| role.is_none_or(|role| blob.role == role);
        for blob in object.blobs.iter().filter(of_role) {
            let property = blob.property.as_str();
            if takes(&blob.kind) && !properties.contains(&property) {
                properties.push(property);
            }
        }
        let found = properties.into_iter();
        found.flat_map(|property| at(object, property)).collect()
    };
    let named = || -> Vec<_> {
        let inputs = plan.extractor.inputs.iter();
        inputs.flat_map(|input| at(object, input.name)).collect()
    };
    if object.origin.is_none() {
        let found = files(None);
        return if found.is_empty() { named() } else { found };
    }
    // A document says more than the file it was made of: a page names the whole book as its file.
    let mut found = named();
    for role in [BlobRole::Processed, BlobRole::Source, BlobRole::Thumbnail] {
        if found.is_empty() {
            found = files(Some(role));
        }
    }
    found
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
