//! PDFs to the texts of their pages.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{Dictionary, Document, Object, ObjectId, PlainTextOutput, output_doc_page};

use super::{
    Format, Gaps, TextFile,
    form::{self, Form},
};
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
    let numbers: Vec<(u32, ObjectId)> = document.get_pages().into_iter().collect();
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
        .map(|(number, _)| page(&document, *number))
        .collect();
    // A page that cannot be read stays empty: the others keep their numbers and are worth having.
    let (mut pages, mut gaps) = (Vec::with_capacity(read.len()), Gaps::default());
    let mut form = Form::of(&document);
    for (page, (_, id)) in read.into_iter().zip(numbers) {
        let number = pages.len() + 1;
        let is_read = page.is_some();
        let mut text = tidy(&page.unwrap_or_default());
        if text.is_empty() && shows_pictures(&document, id) {
            gaps.pictures.push(number);
        } else if !is_read {
            gaps.broken.push(number);
        } else {
            text = tidy(&format!("{text}\n\n{}", form.on_page(id).join("\n")));
        }
        pages.push(text);
    }
    if gaps.broken.len() == pages.len() {
        return Err(broken());
    }
    Ok(TextFile {
        format: Format::Pdf,
        title: text_of(&document, b"Title"),
        info: [("author", b"Author" as &[u8]), ("subject", b"Subject")]
            .into_iter()
            .filter_map(|(name, key)| Some((name.to_owned(), text_of(&document, key)?.into())))
            .collect(),
        pages,
        gaps,
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

/// Whether a page draws pictures. What it says of itself is read as it is, since nothing depends on it but what is told.
fn shows_pictures(document: &Document, id: ObjectId) -> bool {
    let content = catch_unwind(AssertUnwindSafe(|| document.get_page_content(id)));
    let Ok(Ok(content)) = content else {
        return false;
    };
    // Names, texts and lists may follow an operator without a blank.
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/[(<".contains(byte);
    let mut words = content.split(ends);
    words.any(|word| matches!(word, b"Do" | b"EI"))
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
    form::text(info.get(key).ok()?)
}
