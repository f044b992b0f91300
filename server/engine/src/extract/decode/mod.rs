//! What strangers sent to plain texts and pixels. Runs in the worker process: everything here may die.

mod archive;
mod email;
mod epub;
mod exif;
mod form;
mod frames;
mod heic;
mod html;
mod office;
pub mod page;
mod pdf;
mod picture;
pub mod recording;
mod sheet;
mod sniff;

use std::borrow::Cow;

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8};
use loupe_wire::Object;
use serde::{Deserialize, Serialize};

use super::dropped::{NO_OCR, UNREADABLE};
use super::{Claim, Dropped, ExtractError, Result, Want};

pub use picture::{Picture, Thumbnail};

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Text,
    Markdown,
    Html,
    Pdf,
    /// DOCX, DOC.
    Document,
    /// PPTX, PPT.
    Slides,
    /// XLSX, XLS, XLSB, ODS.
    Sheets,
    /// EPUB.
    Book,
    Email,
}

impl Format {
    /// Whether it comes in pages of its own.
    pub fn has_pages(self) -> bool {
        !matches!(self, Self::Text | Self::Markdown | Self::Html)
    }

    /// What a page of it is called.
    pub fn page_kind(self) -> &'static str {
        match self {
            Self::Slides => "slide",
            Self::Sheets => "sheet",
            Self::Book => "chapter",
            Self::Email => "message",
            Self::Text | Self::Markdown | Self::Html | Self::Pdf | Self::Document => "page",
        }
    }
}

/// The text of a file. A text or web page has one page; slides, sheets, parts of a book and attachments of a mail are
/// pages too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextFile {
    pub format: Format,
    pub title: Option<String>,
    pub pages: Vec<String>,
    /// What the file tells of itself: author, dates, addressees, names of sheets.
    pub info: Object,
    #[serde(default)]
    pub gaps: Gaps,
}

/// What of a file is not in its pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gaps {
    /// Numbers of pages without words that show pictures: scans, perhaps. Ascending, from 1.
    pub pictures: Vec<usize>,
    /// Numbers of pages that cannot be read.
    pub broken: Vec<usize>,
    /// What nothing can be done about.
    pub dropped: Dropped,
}

impl Gaps {
    pub fn is_broken(&self, number: usize) -> bool {
        self.broken.binary_search(&number).is_ok()
    }

    /// Whether something may be on a page that has no words.
    pub fn is_at(&self, number: usize) -> bool {
        self.is_broken(number) || self.pictures.binary_search(&number).is_ok()
    }
}

impl TextFile {
    /// A text that was never a file.
    pub fn plain(text: String) -> Self {
        Self {
            format: Format::Text,
            title: None,
            pages: vec![text],
            info: Object::new(),
            gaps: Gaps::default(),
        }
    }

    /// What is left out where nothing reads the pages that are pictures.
    pub fn unread(&self) -> Dropped {
        let mut dropped = self.gaps.dropped.clone();
        let empty = |number: &&usize| self.pages.get(**number - 1).is_none_or(String::is_empty);
        for (reason, numbers) in [
            (NO_OCR, &self.gaps.pictures),
            (UNREADABLE, &self.gaps.broken),
        ] {
            dropped.add_pages(reason, numbers.iter().filter(empty).count());
        }
        dropped
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Decoded {
    Text(TextFile),
    Page(Box<page::WebPage>),
    Picture(Picture),
}

/// Texts longer than this are refused: they are data, not something to read.
pub const MAX_TEXT_BYTES: usize = 32 << 20;

/// Decodes a file. Panics of libraries are turned into errors; aborts are for the parent process to see.
pub fn decode(want: Want, claim: &Claim, bytes: &[u8]) -> Result<Decoded> {
    let decoding = std::panic::AssertUnwindSafe(|| run(want, claim, bytes));
    std::panic::catch_unwind(decoding).unwrap_or_else(|_| {
        Err(ExtractError::permanent(
            "the file is broken: its decoder gave up",
        ))
    })
}

fn run(want: Want, claim: &Claim, bytes: &[u8]) -> Result<Decoded> {
    if bytes.is_empty() {
        return Err(ExtractError::permanent("the file is empty"));
    }
    match want {
        Want::Picture { thumbnail, large } => {
            picture::decode(claim, bytes, thumbnail, large).map(Decoded::Picture)
        }
        Want::Text => text(claim, bytes, true).map(Decoded::Text),
        Want::Page => page(claim, bytes),
    }
    .and_then(within_limit)
}

/// The MIME type that the bytes have. The claim only tells texts apart, which have no marks of their own.
pub fn mime(claim: &Claim, bytes: &[u8]) -> String {
    if let Some(known) = sniff::known(bytes) {
        return known.mime.to_owned();
    }
    if let Some(recording) = recording::recording(bytes) {
        return recording.mime.to_owned();
    }
    if sniff::is_pdf(bytes) {
        return "application/pdf".to_owned();
    }
    if is_drawing(claim, bytes) {
        return "image/svg+xml".to_owned();
    }
    if is_email(claim, bytes) {
        let is_mailbox = email::is_mailbox(bytes);
        return if is_mailbox {
            "application/mbox"
        } else {
            "message/rfc822"
        }
        .to_owned();
    }
    if sniff::is_binary(bytes) {
        let picture = image::guess_format(bytes).map(|format| format.to_mime_type());
        return picture.unwrap_or("application/octet-stream").to_owned();
    }
    if claims_html(claim) || sniff::is_html(bytes) {
        return "text/html".to_owned();
    }
    if claims_markdown(claim) {
        return "text/markdown".to_owned();
    }
    let claimed = claim.mime.as_deref().unwrap_or_default();
    let claimed = claimed.split(';').next().unwrap_or_default();
    let claimed = claimed.trim().to_ascii_lowercase();
    let textual = [
        "json",
        "xml",
        "yaml",
        "javascript",
        "x-ndjson",
        "jsonl",
        "sql",
        "toml",
    ];
    let named = claimed.strip_prefix("application/").is_some_and(|name| {
        textual
            .iter()
            .any(|text| name == *text || name.ends_with(&format!("+{text}")))
    });
    if named || claimed.starts_with("text/") {
        return claimed;
    }
    "text/plain".to_owned()
}

fn claims_html(claim: &Claim) -> bool {
    claim.says("", "text/html", &["html", "htm", "xhtml"])
}

fn claims_markdown(claim: &Claim) -> bool {
    claim.says("", "text/markdown", &["md", "markdown"])
}

/// A text of Markdown may begin with a drawing.
fn is_drawing(claim: &Claim, bytes: &[u8]) -> bool {
    !claims_markdown(claim) && sniff::is_svg(bytes)
}

fn is_email(claim: &Claim, bytes: &[u8]) -> bool {
    !sniff::is_binary(bytes)
        && (claim.says("", "message/rfc822", &["eml"])
            || (claim.says("", "application/mbox", &["mbox"]) && email::is_mailbox(bytes))
            || email::is_email(bytes))
}

fn within_limit(decoded: Decoded) -> Result<Decoded> {
    let file = match &decoded {
        Decoded::Text(file) => Some(file),
        Decoded::Page(page) => page.text.as_ref(),
        Decoded::Picture(_) => None,
    };
    if let Some(file) = file
        && file.pages.iter().map(String::len).sum::<usize>() > MAX_TEXT_BYTES
    {
        return Err(too_long());
    }
    Ok(decoded)
}

fn too_long() -> ExtractError {
    ExtractError::resource(format!(
        "the file holds more than {} MiB of text, which is the limit",
        MAX_TEXT_BYTES >> 20
    ))
}

/// A page of the web, or the text of another file that a link leads to.
fn page(claim: &Claim, bytes: &[u8]) -> Result<Decoded> {
    let is_page = !sniff::is_pdf(bytes)
        && !sniff::is_binary(bytes)
        && (sniff::is_html(bytes) || claims_html(claim));
    if !is_page {
        return text(claim, bytes, false).map(Decoded::Text);
    }
    let charset = claim.mime.as_deref().and_then(sniff::charset_of_mime);
    let text = to_utf8(bytes, charset.or_else(|| sniff::html_charset(bytes)))?;
    page::decode(&text).map(|page| Decoded::Page(Box::new(page)))
}

/// The text of anything that has one. `attached` files are read with a mail, their own attachments are not.
fn text(claim: &Claim, bytes: &[u8], attached: bool) -> Result<TextFile> {
    if sniff::is_pdf(bytes) {
        return pdf::decode(bytes);
    }
    if sniff::is_zip(bytes) {
        return packed(bytes);
    }
    if sniff::is_ole(bytes) {
        return old_office(bytes);
    }
    if claim.says("pdf", "application/pdf", &["pdf"]) {
        return Err(ExtractError::permanent(format!(
            "the file claims to be a PDF but is not: {}",
            sniff::looks_like(bytes)
        )));
    }
    if is_email(claim, bytes) {
        return email::decode(bytes, |claim, bytes| match attached {
            true => text(claim, bytes, false),
            false => Err(ExtractError::permanent(
                "attachments of attached mails are not read",
            )),
        });
    }
    if sniff::is_binary(bytes) || is_drawing(claim, bytes) {
        return Err(ExtractError::permanent(format!(
            "the file is not text: {}",
            sniff::looks_like(bytes)
        )));
    }
    if claims_html(claim) || sniff::is_html(bytes) {
        let charset = claim.mime.as_deref().and_then(sniff::charset_of_mime);
        let text = to_utf8(bytes, charset.or_else(|| sniff::html_charset(bytes)))?;
        return html::decode(&text);
    }
    plain(claim, bytes)
}

/// A text that stands in the file as it is.
fn plain(claim: &Claim, bytes: &[u8]) -> Result<TextFile> {
    let format = if claims_markdown(claim) {
        Format::Markdown
    } else {
        Format::Text
    };
    // No encoding needs more than twice the bytes: what is too long is told before it is decoded and copied.
    if bytes.len() > 2 * MAX_TEXT_BYTES {
        return Err(too_long());
    }
    let text = to_utf8(
        bytes,
        claim.mime.as_deref().and_then(sniff::charset_of_mime),
    )?
    .into_owned();
    if text.trim().is_empty() {
        return Err(ExtractError::permanent("the file holds nothing but blanks"));
    }
    let title = (format == Format::Markdown)
        .then(|| markdown_title(&text))
        .flatten();
    Ok(TextFile {
        format,
        title,
        pages: vec![text],
        info: Object::new(),
        gaps: Gaps::default(),
    })
}

/// An archive that is a document.
fn packed(bytes: &[u8]) -> Result<TextFile> {
    let mut archive = archive::open(bytes)?;
    match archive::kind(&mut archive) {
        Some(archive::Kind::Docx | archive::Kind::Pptx) => office::decode(bytes),
        Some(archive::Kind::Workbook) => sheet::decode(bytes),
        Some(archive::Kind::Epub) => epub::decode(archive),
        None => Err(ExtractError::permanent(
            "the file is an archive, not a document: DOCX, PPTX, XLSX, ODS and EPUB are read; unpack the others first",
        )),
    }
}

/// A document of the office programs before 2007, or a protected one of today's.
fn old_office(bytes: &[u8]) -> Result<TextFile> {
    match undoc::detect_format_from_bytes(bytes) {
        Ok(undoc::FormatType::Xls) => sheet::decode(bytes),
        _ => office::decode(bytes),
    }
}

/// The first heading of the first level.
fn markdown_title(text: &str) -> Option<String> {
    let line = text
        .lines()
        .take(200)
        .find_map(|line| line.strip_prefix("# "))?;
    let title = line.trim().trim_end_matches('#').trim();
    (!title.is_empty()).then(|| title.to_owned())
}

/// A byte order mark decides, then UTF-8 where it is, then what the file or its sender says, then what its bytes look like.
fn to_utf8<'a>(bytes: &'a [u8], label: Option<&'static Encoding>) -> Result<Cow<'a, str>> {
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    // This one is written in ASCII alone, so it is UTF-8, too.
    let escaped = label.filter(|label| *label == ISO_2022_JP);
    let encoding = marked
        .or(escaped)
        .or_else(|| sniff::is_utf8(bytes).then_some(UTF_8))
        // Many say UTF-8 of whatever they send.
        .or(label.filter(|label| *label != UTF_8))
        .unwrap_or_else(|| sniff::guessed(bytes));
    let (text, _, _) = encoding.decode(bytes);
    if text.contains('\0') {
        return Err(ExtractError::permanent(
            "the file is not text: it holds zero bytes",
        ));
    }
    Ok(text)
}
