//! `document_graph_extractor`: one document for every page, slide, sheet or chapter of a file.

use loupe_wire::{DocumentGraphExtractorParams, Object};
use serde_json::json;

use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IndexInfo, Input, Outputs, Source, TEXT_OUTPUT, Violation,
    index, read, within,
};
use super::text::language;
use super::{ExtractError, Part, Result, TextFile};

const E5_OUTPUT: &str = "multilingual_e5_large_instruct_v1";

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Document,
    name: "document_graph_extractor",
    version: "v1",
    feature_extractor_id: "document_graph_extractor_v1",
    description: "The pages of a PDF or office document, slides, sheets and chapters of books, one document each. \
                  Pages that are pictures are drawn with render_dpi dots per inch and read by tesseract where it and \
                  poppler are installed; with poppler, pages of PDFs get thumbnails. There is one object, the page: \
                  its layout is not looked for, nor its text corrected, and parameters of both have one value.",
    category: "document",
    icon: "file-text",
    inputs: &[Input {
        name: "pdf",
        types: &["pdf", "excel", "text"],
    }],
    outputs: &[
        Field {
            name: "text",
            kind: "string",
            description: "The text of the page.",
        },
        Field {
            name: "object_type",
            kind: "string",
            description: "`page`, `slide`, `sheet`, `chapter` or `message`.",
        },
        Field {
            name: "page_number",
            kind: "integer",
            description: "Counted from 1.",
        },
        Field {
            name: "total_pages",
            kind: "integer",
            description: "Pages of the file.",
        },
        Field {
            name: "thumbnail_url",
            kind: "string",
            description: "The page as a picture, longest side 512 pixels; of PDFs where poppler is installed, and \
                          addresses are asked for.",
        },
        Field {
            name: "title",
            kind: "string",
            description: "The title of the file, when it has one.",
        },
    ],
    position_fields: &["page_number"],
    needs: &[],
    gains: &[Need::PagesAsPictures, Need::Ocr],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "use_layout_detection",
    "layout_detector",
    "vertical_threshold",
    "horizontal_threshold",
    "min_text_length",
    "base_confidence",
    "min_confidence_for_vlm",
    "use_vlm_correction",
    "fast_mode",
    "vlm_provider",
    "vlm_model",
    "llm_api_key",
    "run_text_embedding",
    "render_dpi",
    "generate_thumbnails",
    "thumbnail_mode",
    "thumbnail_dpi",
];

/// Dots per inch at which writing is read where nobody says.
pub const READING_DPI: i64 = 200;

/// What the interface says of `render_dpi` where nobody says.
const DEFAULT_DPI: i64 = 150;

#[derive(Debug, Clone, PartialEq)]
pub struct DocumentParams {
    min_text_length: usize,
    /// Dots per inch at which writing is read.
    pub(crate) reading: i64,
    /// Dots per inch of thumbnails, when wanted.
    pub(crate) thumbnails: Option<i64>,
    pub(super) indexes: Vec<IndexInfo>,
}

impl DocumentParams {
    /// Pages of any length, with thumbnails and without indexes of their own.
    pub(super) fn of_every_page() -> Self {
        Self {
            min_text_length: 1,
            reading: READING_DPI,
            thumbnails: Some(72),
            indexes: Vec::new(),
        }
    }
}

pub(super) fn check(
    object: &Object,
    outputs: &Outputs,
) -> std::result::Result<DocumentParams, Violation> {
    let params: DocumentGraphExtractorParams = read(object, KNOWN)?;
    within("vertical_threshold", params.vertical_threshold, 1.0, 100.0)?;
    within(
        "horizontal_threshold",
        params.horizontal_threshold,
        1.0,
        200.0,
    )?;
    within("min_text_length", params.min_text_length, 1, 500)?;
    within("base_confidence", params.base_confidence, 0.0, 1.0)?;
    within(
        "min_confidence_for_vlm",
        params.min_confidence_for_vlm,
        0.0,
        1.0,
    )?;
    within("render_dpi", params.render_dpi, 72, 300)?;
    within("thumbnail_dpi", params.thumbnail_dpi, 36, 150)?;
    let mut indexes = Vec::new();
    if params.run_text_embedding {
        // The larger model of the interface where an endpoint answers for it, the built-in one elsewhere.
        let output = if outputs.find(E5_OUTPUT, Source::TextModel).is_some() {
            E5_OUTPUT
        } else {
            TEXT_OUTPUT
        };
        indexes.push(
            index(&INFO, output, Source::TextModel, outputs)
                .map_err(|msg| Violation::new("run_text_embedding", msg))?,
        );
    }
    Ok(DocumentParams {
        min_text_length: usize::try_from(params.min_text_length).unwrap_or(1),
        // The default of the interface is too coarse for small print: it leaves the choice to this server.
        reading: match params.render_dpi {
            DEFAULT_DPI => READING_DPI,
            dpi => dpi,
        },
        thumbnails: params.generate_thumbnails.then_some(params.thumbnail_dpi),
        indexes,
    })
}

/// The pages of one file. Pages under `min_text_length` are left out, unless nothing else is there; how many they are comes
/// second.
pub(crate) fn parts(
    params: &DocumentParams,
    source: &str,
    file: &TextFile,
) -> Result<(Vec<Part>, usize)> {
    let pages: Vec<(usize, &str)> = file
        .pages
        .iter()
        .enumerate()
        .map(|(index, page)| (index + 1, page.trim()))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    if pages.is_empty() {
        return Err(ExtractError::permanent("the file holds no text"));
    }
    let long = |text: &str| text.chars().count() >= params.min_text_length;
    let any_long = pages.iter().any(|(_, text)| long(text));
    let language = language(&file.pages);
    let all = pages.len();
    let parts: Vec<Part> = pages
        .into_iter()
        .filter(|(_, text)| !any_long || long(text))
        .map(|(number, text)| {
            let mut part = Part {
                key: format!("{source}/page{number}"),
                ..Part::default()
            };
            part.fields.insert("text".to_owned(), json!(text));
            part.fields
                .insert("object_type".to_owned(), json!(file.format.page_kind()));
            part.fields.insert("page_number".to_owned(), json!(number));
            part.fields
                .insert("total_pages".to_owned(), json!(file.pages.len()));
            if let Some(title) = &file.title {
                part.extras.insert("title".to_owned(), json!(title));
                part.keywords.push(title.clone());
            }
            if let Some(language) = &language {
                part.metadata.insert("language".to_owned(), json!(language));
            }
            part.metadata.extend(file.info.clone());
            part.keywords.push(text.to_owned());
            part.text = Some(text.to_owned());
            part
        })
        .collect();
    let short = all - parts.len();
    Ok((parts, short))
}
