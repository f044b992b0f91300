//! `passthrough_extractor`: the object's own fields and vectors, no model.

use std::io::{BufRead, Read};

use loupe_wire::{
    Object, PassthroughExtractorParams, PassthroughExtractorParamsRowFormat, Value,
    VectorFieldSpecDistance,
};

use super::media::disk;
use super::parquet::Table;
use super::registry::{
    Extractor, ExtractorInfo, IndexInfo, Input, Source, Violation, read, within,
};
use super::{Data, ExtractError, Part, Result};
use crate::store::{Distance, check_vector_name};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Passthrough,
    name: "passthrough_extractor",
    version: "v1",
    feature_extractor_id: "passthrough_extractor_v1",
    description: "The fields of an object as they are, with vectors of your own; rows of JSON Lines or Parquet become \
                  documents.",
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
/// Bytes of one row as JSON: several vectors of the most dimensions that are usual.
const MAX_ROW_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct PassthroughParams {
    pub(crate) preserve_metadata: bool,
    /// Whether blobs are files of rows.
    pub(crate) rows: bool,
    /// Whether these are tables in Parquet; JSON Lines else.
    pub(crate) tables: bool,
    /// Dot path of the field, in the order of `indexes`.
    pub(crate) fields: Vec<String>,
    pub(super) indexes: Vec<IndexInfo>,
}

pub(super) fn check(object: &Object) -> std::result::Result<PassthroughParams, Violation> {
    let params: PassthroughExtractorParams = read(object, KNOWN)?;
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
        rows: params.row_format.is_some(),
        tables: params.row_format == Some(PassthroughExtractorParamsRowFormat::Parquet),
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

/// The rows of a file, one by one: the file is never in memory as a whole. Blocking.
pub(crate) struct Rows<'a> {
    form: Form<'a>,
    found: usize,
}

enum Form<'a> {
    Lines(Lines<'a>),
    Table(Box<Table<'a>>),
}

impl<'a> Rows<'a> {
    /// Of JSON Lines, or of a table in Parquet.
    pub fn open(file: &'a Data, is_table: bool) -> Result<Self> {
        let form = if is_table {
            Form::Table(Box::new(Table::open(file)?))
        } else {
            Form::Lines(Lines::open(file)?)
        };
        Ok(Self { form, found: 0 })
    }

    /// The next row; none after the last.
    pub fn row(&mut self) -> Result<Option<Object>> {
        let row = match &mut self.form {
            Form::Lines(lines) => lines.row()?,
            Form::Table(table) => table.row()?,
        };
        match row {
            None if self.found == 0 => Err(ExtractError::permanent("the file is empty")),
            Some(_) if self.found == MAX_ROWS => Err(ExtractError::resource(format!(
                "the file has more than {MAX_ROWS} rows, which is the limit"
            ))),
            row => {
                self.found += 1;
                Ok(row)
            }
        }
    }
}

/// Empty lines are left out.
struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    /// Lines read.
    lines: usize,
}

impl<'a> Lines<'a> {
    fn open(file: &'a Data) -> Result<Self> {
        Ok(Self {
            reader: file.reader().map_err(disk)?,
            line: Vec::new(),
            lines: 0,
        })
    }

    fn row(&mut self) -> Result<Option<Object>> {
        while self.read_line()? {
            let text = std::str::from_utf8(&self.line).map_err(|_| {
                ExtractError::permanent("the file is not JSON Lines: it is not UTF-8 text")
            })?;
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let row = serde_json::from_str::<Object>(text).map_err(|error| {
                ExtractError::permanent(format!(
                    "line {} of the file is not a JSON object: {error}",
                    self.lines
                ))
            })?;
            return Ok(Some(row));
        }
        Ok(None)
    }

    /// Whether there was another line. One that is too long is refused before it is read whole.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.lines += 1;
        let most = MAX_ROW_BYTES as u64 + 1;
        let mut line = self.reader.by_ref().take(most);
        let read = line.read_until(b'\n', &mut self.line).map_err(disk)?;
        if self.line.len() > MAX_ROW_BYTES {
            return Err(ExtractError::resource(format!(
                "line {} of the file has more than {} MiB, which is the limit",
                self.lines,
                MAX_ROW_BYTES >> 20
            )));
        }
        Ok(read > 0)
    }
}
