//! Texts and slides of office programs, new (DOCX, PPTX) and old (DOC, PPT), to Markdown.

use std::collections::{HashMap, VecDeque};

use loupe_wire::Object;
use serde_json::json;
use undoc::render::{RenderOptions, render_section_to_string};
use undoc::{Block, Document, ErrorKind, FormatType, Section};

use super::{Format, Gaps, TextFile};
use crate::extract::{ExtractError, Result};

pub fn decode(bytes: &[u8]) -> Result<TextFile> {
    let mut document = undoc::parse_bytes(bytes).map_err(|error| unreadable(&error))?;
    let format = match document.format {
        FormatType::Pptx | FormatType::Ppt => Format::Slides,
        _ => Format::Document,
    };
    let sections = std::mem::take(&mut document.sections);
    let pages: Vec<String> = match format {
        Format::Slides => sections
            .into_iter()
            .map(|slide| {
                page(
                    &Section {
                        name: None,
                        ..slide
                    },
                    &document,
                )
            })
            .collect(),
        _ => sections
            .into_iter()
            .map(with_margins)
            .flat_map(at_page_breaks)
            .map(|part| page(&part, &document))
            .filter(|page| !page.is_empty())
            .collect(),
    };
    if pages.iter().all(String::is_empty) {
        return Err(ExtractError::permanent("the document holds no text"));
    }
    Ok(TextFile {
        format,
        title: filled(document.metadata.title.as_deref()),
        pages,
        info: info(&document),
        gaps: Gaps::default(),
    })
}

fn unreadable(error: &undoc::Error) -> ExtractError {
    match error.kind() {
        ErrorKind::Encrypted => ExtractError::permanent("the document is protected by a password"),
        ErrorKind::UnsupportedFormat | ErrorKind::UnknownFormat => ExtractError::permanent(
            "the document is of a kind that is not read: save it as DOCX, PPTX, XLSX or PDF",
        ),
        _ => ExtractError::permanent("the document is broken: its text cannot be read"),
    }
}

/// A section with what stands above and below each of its pages, once.
fn with_margins(mut section: Section) -> Section {
    let header = section.header.take().into_iter().flatten();
    let footer = section.footer.take().into_iter().flatten();
    let content = std::mem::take(&mut section.content);
    let header = header.map(Block::Paragraph);
    section.content = header
        .chain(content)
        .chain(footer.map(Block::Paragraph))
        .collect();
    section
}

/// A section cut where its author began a new page.
fn at_page_breaks(mut section: Section) -> Vec<Section> {
    let index = section.index;
    let mut parts = vec![Section::new(index)];
    let mut blocks: VecDeque<Block> = std::mem::take(&mut section.content).into();
    while let Some(block) = blocks.pop_front() {
        let block = match block {
            Block::PageBreak => {
                parts.push(Section::new(index));
                continue;
            }
            Block::Paragraph(mut paragraph) => {
                // A break stands behind the words of its run.
                if let Some(at) = paragraph.runs.iter().position(|run| run.page_break) {
                    let mut rest = paragraph.clone();
                    rest.runs = paragraph.runs.split_off(at + 1);
                    blocks.push_front(Block::Paragraph(rest));
                    blocks.push_front(Block::PageBreak);
                }
                Block::Paragraph(paragraph)
            }
            other => other,
        };
        if let Some(last) = parts.last_mut() {
            last.add_block(block);
        }
    }
    parts
}

fn page(section: &Section, document: &Document) -> String {
    let options = RenderOptions::new().with_images(false);
    let page = render_section_to_string(
        section,
        section.index,
        document.format,
        &options,
        &HashMap::new(),
    );
    page.trim().replace('\0', "")
}

fn info(document: &Document) -> Object {
    let of = &document.metadata;
    let texts = [
        ("author", &of.author),
        ("subject", &of.subject),
        ("description", &of.description),
        ("created", &of.created),
        ("modified", &of.modified),
    ];
    let mut info: Object = texts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(filled(value.as_deref())?))))
        .collect();
    if !of.keywords.is_empty() {
        info.insert("keywords".to_owned(), json!(of.keywords));
    }
    info
}

fn filled(text: Option<&str>) -> Option<String> {
    let text = text?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
