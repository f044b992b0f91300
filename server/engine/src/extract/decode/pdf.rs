//! PDFs to the texts of their pages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{Dictionary, Document, Object, PlainTextOutput, output_doc_page};

use super::{Format, TextFile};
use crate::extract::{ExtractError, Result};

/// More pages are refused rather than read for hours.
pub const MAX_PAGES: usize = 5_000;

pub fn decode(bytes: &[u8]) -> Result<TextFile> {
    let mut document = Document::load_mem(bytes).map_err(|_| broken())?;
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err(ExtractError::permanent(
            "the PDF is protected by a password",
        ));
    }
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    if numbers.is_empty() {
        return Err(broken());
    }
    if numbers.len() > MAX_PAGES {
        return Err(ExtractError::resource(format!(
            "the PDF has {} pages; the limit is {MAX_PAGES}",
            numbers.len()
        )));
    }
    let read: Vec<Option<String>> = numbers
        .iter()
        .map(|number| page(&document, *number))
        .collect();
    if read.iter().all(Option::is_none) {
        return Err(broken());
    }
    // A page that cannot be read stays empty: the others keep their numbers and are worth having.
    let pages = read
        .into_iter()
        .map(|page| tidy(&page.unwrap_or_default()))
        .collect();
    Ok(TextFile {
        format: Format::Pdf,
        title: text_of(&document, b"Title"),
        info: [("author", b"Author" as &[u8]), ("subject", b"Subject")]
            .into_iter()
            .filter_map(|(name, key)| Some((name.to_owned(), text_of(&document, key)?.into())))
            .collect(),
        pages,
    })
}

fn broken() -> ExtractError {
    ExtractError::permanent("the PDF is broken: its pages cannot be read")
}

fn page(document: &Document, number: u32) -> Option<String> {
    // The library panics on pages that break the rules of the format.
    catch_unwind(AssertUnwindSafe(|| {
        let mut text = String::new();
        let mut output = PlainTextOutput::new(&mut text);
        output_doc_page(document, &mut output, number).ok()?;
        Some(text)
    }))
    .ok()
    .flatten()
}

/// Lines without blanks at their ends, at most one empty line between them, no zero characters.
fn tidy(page: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in page.lines().map(str::trim) {
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().replace('\0', "")
}

/// A text of the information that a PDF keeps of itself.
fn text_of(document: &Document, key: &[u8]) -> Option<String> {
    let info = document.trailer.get(b"Info").ok()?;
    let info: &Dictionary = match info {
        Object::Reference(id) => document.get_dictionary(*id).ok()?,
        other => other.as_dict().ok()?,
    };
    let bytes = info.get(key).ok()?.as_str().ok()?;
    let text = match bytes {
        [0xfe, 0xff, ..] => encoding_rs::UTF_16BE.decode(bytes).0,
        _ => encoding_rs::WINDOWS_1252.decode(bytes).0,
    };
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
