//! `passthrough_extractor`: the object's own fields and vectors, no model.

use loupe_wire::{
    Object, PassthroughExtractorParams, PassthroughExtractorParamsRowFormat, Value,
    VectorFieldSpecDistance,
};

use super::registry::{
    Extractor, ExtractorInfo, IndexInfo, Input, Source, Violation, read, within,
};
use super::{ExtractError, Part, Result};
use crate::store::{Distance, check_vector_name};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Passthrough,
    name: "passthrough_extractor",
    version: "v1",
    feature_extractor_id: "passthrough_extractor_v1",
    description: "The fields of an object as they are, with vectors of your own; rows of JSON Lines become documents.",
    category: "general",
    icon: "arrow-right",
    inputs: &[Input {
        name: "*",
        types: &["any"],
    }],
    outputs: &[],
    position_fields: &["row_index"],
    needs: &[],
    gains: &[],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "preserve_metadata",
    "vector_fields",
    "row_format",
];

/// Documents that one file of rows may give.
pub const MAX_ROWS: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub struct PassthroughParams {
    pub(crate) preserve_metadata: bool,
    /// Whether blobs are files of JSON Lines.
    pub(crate) rows: bool,
    /// Dot path of the field, in the order of `indexes`.
    pub(crate) fields: Vec<String>,
    pub(super) indexes: Vec<IndexInfo>,
}

pub(super) fn check(object: &Object) -> std::result::Result<PassthroughParams, Violation> {
    let params: PassthroughExtractorParams = read(object, KNOWN)?;
    if params.row_format == Some(PassthroughExtractorParamsRowFormat::Parquet) {
        return Err(Violation::new(
            "row_format",
            "parquet is not read by this server; \"jsonl\" is",
        ));
    }
    let mut indexes: Vec<IndexInfo> = Vec::new();
    let mut fields = Vec::new();
    for spec in params.vector_fields {
        if spec.field.is_empty() {
            return Err(Violation::new("vector_fields", "field must not be empty"));
        }
        check_vector_name(&spec.name).map_err(|why| Violation::new("vector_fields", why))?;
        within("vector_fields", spec.dimensions, 1, 65_536)?;
        if indexes.iter().any(|index| index.name == spec.name) {
            return Err(Violation::new(
                "vector_fields",
                format!("the name {} is used twice", spec.name),
            ));
        }
        indexes.push(IndexInfo {
            feature_uri: spec.name.clone(),
            name: spec.name.clone(),
            output: spec.name,
            dims: usize::try_from(spec.dimensions).unwrap_or(1),
            distance: match spec.distance {
                None | Some(VectorFieldSpecDistance::Cosine) => Distance::Cosine,
                Some(VectorFieldSpecDistance::Dot) => Distance::Dot,
                Some(VectorFieldSpecDistance::Euclidean) => Distance::Euclid,
            },
            source: Source::Own,
        });
        fields.push(spec.field);
    }
    Ok(PassthroughParams {
        preserve_metadata: params.preserve_metadata,
        rows: params.row_format == Some(PassthroughExtractorParamsRowFormat::Jsonl),
        fields,
        indexes,
    })
}

/// Takes the vectors out of `fields` and checks them.
pub(crate) fn take_vectors(
    params: &PassthroughParams,
    fields: &mut Object,
    part: &mut Part,
) -> Result<()> {
    for (path, index) in params.fields.iter().zip(&params.indexes) {
        let Some(value) = crate::ingest::fields::take(fields, path) else {
            return Err(ExtractError::permanent(format!(
                "the object has no vector in the field {path}"
            )));
        };
        part.vectors
            .insert(index.name.clone(), vector(path, &value, index.dims)?);
    }
    Ok(())
}

fn vector(path: &str, value: &Value, dims: usize) -> Result<Vec<f32>> {
    let Some(numbers) = value.as_array() else {
        return Err(ExtractError::permanent(format!(
            "the field {path} must be a list of numbers"
        )));
    };
    if numbers.len() != dims {
        return Err(ExtractError::permanent(format!(
            "the vector in the field {path} has {} numbers; the index has {dims} dimensions",
            numbers.len()
        )));
    }
    numbers
        .iter()
        .map(|number| {
            // The store keeps 32 bits: what does not fit would become an infinity.
            #[allow(clippy::cast_possible_truncation)]
            let number = number
                .as_f64()
                .map(|number| number as f32)
                .filter(|number| number.is_finite());
            number.ok_or_else(|| {
                ExtractError::permanent(format!(
                    "the vector in the field {path} holds something that is not a number"
                ))
            })
        })
        .collect()
}

/// The rows of a file of JSON Lines. Empty lines are left out.
pub(crate) fn rows(bytes: &[u8]) -> Result<Vec<Object>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ExtractError::permanent("the file is not JSON Lines: it is not UTF-8 text"))?;
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if rows.len() == MAX_ROWS {
            return Err(ExtractError::resource(format!(
                "the file has more than {MAX_ROWS} rows, which is the limit"
            )));
        }
        let row = serde_json::from_str::<Object>(line).map_err(|error| {
            ExtractError::permanent(format!(
                "line {} of the file is not a JSON object: {error}",
                number + 1
            ))
        })?;
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(ExtractError::permanent("the file is empty"));
    }
    Ok(rows)
}
