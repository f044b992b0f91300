//! Documents that are ZIP archives: what kind they are, within limits that hold before anything is kept.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use crate::extract::{ExtractError, Result};

/// Files of one archive.
pub const MAX_ENTRIES: usize = 10_000;
/// What all files of one archive may take unpacked.
pub const MAX_UNPACKED: u64 = 256 << 20;

/// A document in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docx,
    Pptx,
    /// A workbook of any maker.
    Workbook,
    Epub,
}

pub type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// Opens an archive whose every file was unpacked once, into nothing: sizes that are only told are not believed.
pub fn open(bytes: &[u8]) -> Result<Archive<'_>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| broken())?;
    if archive.len() > MAX_ENTRIES {
        return Err(ExtractError::resource(format!(
            "the file is an archive of {} files; the limit is {MAX_ENTRIES}",
            archive.len()
        )));
    }
    let mut left = MAX_UNPACKED;
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).map_err(|error| match error {
            zip::result::ZipError::UnsupportedArchive(_) => ExtractError::permanent(
                "the archive is protected by a password or packed in an unusual way",
            ),
            _ => broken(),
        })?;
        if entry.size() > left {
            return Err(too_large());
        }
        let unpacked = std::io::copy(&mut (&mut entry).take(left + 1), &mut std::io::sink())
            .map_err(|_| broken())?;
        left = left.checked_sub(unpacked).ok_or_else(too_large)?;
    }
    Ok(archive)
}

fn too_large() -> ExtractError {
    ExtractError::resource(format!(
        "the file unpacks to more than {} MiB, which is the limit",
        MAX_UNPACKED >> 20
    ))
}

fn broken() -> ExtractError {
    ExtractError::permanent("the file is broken: it begins as an archive but cannot be unpacked")
}

/// What the names in an archive say.
pub fn kind(archive: &mut Archive<'_>) -> Option<Kind> {
    let has = |name: &str| archive.index_for_name(name).is_some();
    if has("word/document.xml") {
        return Some(Kind::Docx);
    }
    if has("ppt/presentation.xml") {
        return Some(Kind::Pptx);
    }
    if has("xl/workbook.xml") || has("xl/workbook.bin") {
        return Some(Kind::Workbook);
    }
    if has("META-INF/container.xml") {
        return Some(Kind::Epub);
    }
    let mime = text(archive, "mimetype").ok()?;
    mime.trim()
        .ends_with("opendocument.spreadsheet")
        .then_some(Kind::Workbook)
}

/// One file of the archive as text.
pub fn text(archive: &mut Archive<'_>, name: &str) -> Result<String> {
    let mut entry = archive.by_name(name).map_err(|_| {
        ExtractError::permanent(format!("the file is broken: it has no part {name}"))
    })?;
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(|_| broken())?;
    Ok(super::to_utf8(&bytes, None)?.into_owned())
}
