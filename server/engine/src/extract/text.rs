//! `text_extractor`: texts, Markdown, web pages and the text of PDFs, whole or in chunks.

use loupe_wire::{
    EmbeddingModel, Object, TextExtractorParams, TextExtractorParamsSourceType, TextSplitStrategy,
    Value,
};
use serde_json::json;

use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IndexInfo, Input, Outputs, Source, TEXT_OUTPUT, Violation,
    index, read, within,
};
use super::shape::Shape;
use super::split::{Limit, Split, split};
use super::{ExtractError, Part, Result, TextFile};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Text,
    name: "text_extractor",
    version: "v1",
    feature_extractor_id: "text_extractor_v1",
    description: "Texts, Markdown, web pages, PDFs, office documents (DOCX, PPTX, XLSX and their elders), books (EPUB) and \
                  e-mails, whole or in chunks, with one text vector each.",
    category: "text",
    icon: "text",
    inputs: &[Input {
        name: "text",
        types: &["text", "string", "pdf", "excel"],
    }],
    outputs: &[
        Field {
            name: "text",
            kind: "string",
            description: "The text of the document.",
        },
        Field {
            name: "title",
            kind: "string",
            description: "The title of the file, when it has one.",
        },
        Field {
            name: "chunk_index",
            kind: "integer",
            description: "Position in the text, from 0; with split_by only.",
        },
        Field {
            name: "total_chunks",
            kind: "integer",
            description: "Chunks of the text; with split_by only.",
        },
        Field {
            name: "page_number",
            kind: "integer",
            description: "The page, slide or sheet on which the text begins; of files with several only.",
        },
    ],
    position_fields: &["chunk_index"],
    needs: &[],
    gains: &[Need::PagesAsPictures, Need::Ocr, Need::Language],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "source_type",
    "split_by",
    "chunk_size",
    "chunk_overlap",
    "segment_length_seconds",
    "language",
    "extract_captions",
    "response_shape",
    "llm_provider",
    "llm_model",
    "llm_api_key",
    "embedding_model",
    "embedding_task",
];

#[derive(Debug, Clone, PartialEq)]
pub struct TextParams {
    pub(super) split: Split,
    /// As given; detected when absent.
    pub(super) language: Option<String>,
    /// What a language model is to find in each document.
    pub(crate) shape: Option<Shape>,
    /// Another model of the configured endpoint.
    pub(crate) llm_model: Option<String>,
    pub(super) indexes: Vec<IndexInfo>,
}

impl TextParams {
    /// A text as it is.
    pub(crate) fn whole() -> Self {
        Self {
            split: Split {
                by: TextSplitStrategy::None,
                size: 1,
                overlap: 0,
            },
            language: None,
            shape: None,
            llm_model: None,
            indexes: Vec::new(),
        }
    }
}

pub(super) fn check(
    object: &Object,
    outputs: &Outputs,
) -> std::result::Result<TextParams, Violation> {
    let params: TextExtractorParams = read(object, KNOWN)?;
    within("chunk_size", params.chunk_size, 1, 10_000)?;
    within("chunk_overlap", params.chunk_overlap, 0, 5_000)?;
    within(
        "segment_length_seconds",
        params.segment_length_seconds,
        30,
        600,
    )?;
    if params.source_type == TextExtractorParamsSourceType::Youtube {
        return Err(Violation::new(
            "source_type",
            "videos are not read by this server; only \"text\" is",
        ));
    }
    if params.split_by == TextSplitStrategy::TimeSegments {
        return Err(Violation::new(
            "split_by",
            "time_segments needs the timed captions of a video; texts have none",
        ));
    }
    if params.split_by != TextSplitStrategy::None && params.chunk_overlap >= params.chunk_size {
        return Err(Violation::new(
            "chunk_overlap",
            "must be less than chunk_size",
        ));
    }
    let shape = Shape::read(params.response_shape.as_ref())?;
    let output = match params.embedding_model {
        None => TEXT_OUTPUT.to_owned(),
        Some(model) => model_name(model),
    };
    let index = index(&INFO, &output, Source::TextModel, outputs)
        .map_err(|msg| Violation::new("embedding_model", msg))?;
    Ok(TextParams {
        split: Split {
            by: params.split_by,
            // Both were checked to be within small positive bounds.
            size: usize::try_from(params.chunk_size).unwrap_or(1),
            overlap: usize::try_from(params.chunk_overlap).unwrap_or(0),
        },
        language: object
            .get("language")
            .and_then(Value::as_str)
            .map(str::to_owned),
        shape,
        llm_model: params.llm_model,
        indexes: vec![index],
    })
}

/// The wire name of a model.
fn model_name(model: EmbeddingModel) -> String {
    match serde_json::to_value(model) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// What one text may become.
const LIMIT: Limit = Limit {
    chunks: 100_000,
    bytes: 128 << 20,
};

/// The parts of one text. `source` tells the texts of one object apart.
pub(crate) fn parts(params: &TextParams, source: &str, file: &TextFile) -> Result<Vec<Part>> {
    let chunks = split(&file.pages, params.split, LIMIT)?;
    if chunks.is_empty() {
        return Err(ExtractError::permanent("the text is empty"));
    }
    let total = chunks.len();
    let whole = params.split.by == TextSplitStrategy::None;
    let title = file
        .title
        .as_deref()
        .map(str::trim)
        .filter(|title| !title.is_empty());
    let language = params.language.clone().or_else(|| language(&file.pages));
    Ok(chunks
        .into_iter()
        .enumerate()
        .map(|(position, chunk)| {
            let mut part = Part {
                key: format!("{source}/{position}"),
                ..Part::default()
            };
            part.fields.insert("text".to_owned(), json!(chunk.text));
            if !whole {
                part.fields
                    .insert("chunk_index".to_owned(), json!(position));
                part.fields.insert("total_chunks".to_owned(), json!(total));
                part.metadata
                    .insert("start_offset".to_owned(), json!(chunk.start));
                part.metadata
                    .insert("end_offset".to_owned(), json!(chunk.end));
            }
            if let Some(page) = chunk.page {
                part.fields.insert("page_number".to_owned(), json!(page));
            }
            if let Some(title) = title {
                part.extras.insert("title".to_owned(), json!(title));
                part.keywords.push(title.to_owned());
            }
            if let Some(language) = &language {
                part.metadata.insert("language".to_owned(), json!(language));
            }
            part.metadata.extend(file.info.clone());
            part.keywords.push(chunk.text.clone());
            part.text = Some(chunk.text);
            part
        })
        .collect())
}

/// The ISO 639-3 code of the language, when the detector is sure. The beginning of a text is enough to tell.
pub(super) fn language(pages: &[String]) -> Option<String> {
    let start: String = pages
        .iter()
        .flat_map(|page| page.chars())
        .take(2_000)
        .collect();
    let info = whatlang::detect(&start)?;
    info.is_reliable().then(|| info.lang().code().to_owned())
}
