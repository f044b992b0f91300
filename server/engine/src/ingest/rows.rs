//! Objects that are passed on as they are, and the rows of their files.

use std::{iter::Enumerate, slice::Iter};

use loupe_wire::Object;

use super::{
    BlobInput, ObjectInput,
    slices::{SLICE, SLICE_BYTES},
};
use crate::extract::{
    ExtractError, Part,
    passthrough::{PassthroughParams, Rows, take_vectors},
};

type Result<T> = std::result::Result<T, ExtractError>;

/// The object as it is; with rows, one part for each row of its files. None where those are too many to be held at once.
/// Blocking.
pub(super) fn pass(params: &PassthroughParams, object: &ObjectInput) -> Result<Option<Vec<Part>>> {
    if !params.rows || object.blobs.is_empty() {
        return whole(params, object).map(|part| Some(vec![part]));
    }
    let (mut parts, mut bytes) = (Vec::new(), 0);
    let mut rows = RowParts::of(params, object);
    while let Some(part) = rows.part()? {
        bytes += weight(&part);
        if is_full(&parts, bytes) {
            return Ok(None);
        }
        parts.push(part);
    }
    Ok(Some(parts))
}

/// Whether parts are too many, or with one more too large, to be held together.
pub(super) fn is_full(parts: &[Part], bytes: usize) -> bool {
    parts.len() >= SLICE || (bytes > SLICE_BYTES && !parts.is_empty())
}

/// Bytes of a row and of the vectors that were taken out of it.
pub(super) fn weight(part: &Part) -> usize {
    let numbers: usize = part.vectors.values().map(Vec::len).sum();
    part.row.as_ref().map_or(0, crate::weight::of_object) + numbers * size_of::<f32>()
}

fn whole(params: &PassthroughParams, object: &ObjectInput) -> Result<Part> {
    let blob = (!object.blobs.is_empty()).then_some(0);
    let mut fields = object.fields.clone();
    let mut part = Part {
        key: "row/0".to_owned(),
        blob,
        ..Part::default()
    };
    take_vectors(params, &mut fields, &mut part)?;
    if params.preserve_metadata {
        part.extras = fields;
    }
    Ok(part)
}

/// The rows of an object's files, one by one, numbered over all of them. Blocking.
pub(super) struct RowParts<'a> {
    params: &'a PassthroughParams,
    files: Enumerate<Iter<'a, BlobInput>>,
    /// The file that is being read, and its place.
    open: Option<(usize, Rows<'a>)>,
    number: usize,
}

impl<'a> RowParts<'a> {
    pub fn of(params: &'a PassthroughParams, object: &'a ObjectInput) -> Self {
        Self {
            params,
            files: object.blobs.iter().enumerate(),
            open: None,
            number: 0,
        }
    }

    /// The next one; none after the last row of the last file.
    pub fn part(&mut self) -> Result<Option<Part>> {
        loop {
            let (blob, mut rows) = match self.open.take() {
                Some(open) => open,
                None => match self.files.next() {
                    Some((blob, file)) => (blob, Rows::open(&file.bytes, self.params.tables)?),
                    None => return Ok(None),
                },
            };
            if let Some(row) = rows.row()? {
                self.open = Some((blob, rows));
                return self.of_row(blob, row).map(Some);
            }
        }
    }

    fn of_row(&mut self, blob: usize, mut row: Object) -> Result<Part> {
        let number = self.number;
        let mut part = Part {
            key: format!("row/{number}"),
            blob: Some(blob),
            ..Part::default()
        };
        take_vectors(self.params, &mut row, &mut part)
            .map_err(|error| error.at(&format!("row {number}")))?;
        part.extras.insert("row_index".into(), number.into());
        part.row = Some(row);
        self.number += 1;
        Ok(part)
    }
}
