//! `universal_extractor`: files of every kind in one collection, each read as what it is.

use loupe_wire::{Object, UniversalExtractorParams};

use super::document::DocumentParams;
use super::image::LABELS;
use super::media::Cut;
use super::multimodal::{Describe, MultimodalParams, SOURCE_VIDEO_URL, VIDEO_SEGMENT_URL, indexes};
use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IndexInfo, Input, Outputs, Violation, read, within,
};
use super::text::TextParams;

const JOINT_OUTPUTS: &[&str] = &["gemini-embedding-2"];

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Universal,
    name: "universal_extractor",
    version: "v1",
    feature_extractor_id: "universal_extractor_v1",
    description: "Texts, documents, pictures, sounds and films in one collection, each read as what its bytes say: \
                  texts whole, documents by pages, recordings by segments. With an endpoint for gemini-embedding-2 \
                  words and pictures share a space; without one, pictures find pictures and words find words.",
    category: "general",
    icon: "layers",
    inputs: &[Input {
        name: "*",
        types: &["text", "string", "image", "video", "audio", "pdf", "excel"],
    }],
    outputs: &[
        Field {
            name: "description",
            kind: "string",
            description: "What is seen, in words, where a language model looks at pictures.",
        },
        Field {
            name: "text",
            kind: "string",
            description: "The text, of texts and pages.",
        },
        Field {
            name: "page_number",
            kind: "integer",
            description: "Counted from 1; of documents.",
        },
        Field {
            name: "start_time",
            kind: "number",
            description: "In seconds; of recordings.",
        },
        Field {
            name: "end_time",
            kind: "number",
            description: "In seconds; of recordings.",
        },
        Field {
            name: "transcription",
            kind: "string",
            description: "What is said, where a speech model is configured.",
        },
        Field {
            name: "ocr_text",
            kind: "string",
            description: "What is written in the picture, where tesseract is installed.",
        },
        Field {
            name: "thumbnail_url",
            kind: "string",
            description: "Longest side 512 pixels; where addresses are asked for.",
        },
        SOURCE_VIDEO_URL,
        VIDEO_SEGMENT_URL,
        LABELS,
    ],
    position_fields: &["page_number", "segment_index"],
    needs: &[],
    gains: &[
        Need::Media,
        Need::Ocr,
        Need::PagesAsPictures,
        Need::Speech,
        Need::Sight,
    ],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "output_dimensionality",
    "task_type",
    "generate_description",
    "extract_text",
    "max_video_segments",
    "max_document_pages",
    "max_file_download_mb",
    "max_concurrency",
];

/// How each kind of file is read.
#[derive(Debug, Clone, PartialEq)]
pub struct UniversalParams {
    pub(crate) text: TextParams,
    pub(crate) document: DocumentParams,
    pub(crate) media: MultimodalParams,
    pub(crate) most_pages: usize,
    pub(crate) most_bytes: usize,
    pub(super) indexes: Vec<IndexInfo>,
}

pub(super) fn check(object: &Object, outputs: &Outputs) -> Result<UniversalParams, Violation> {
    let params: UniversalExtractorParams = read(object, KNOWN)?;
    within(
        "output_dimensionality",
        params.output_dimensionality,
        256,
        3072,
    )?;
    let most_segments = count("max_video_segments", params.max_video_segments, 50)?;
    let most_pages = count("max_document_pages", params.max_document_pages, 200)?;
    let most_bytes = count("max_file_download_mb", params.max_file_download_mb, 1024)? << 20;
    count("max_concurrency", params.max_concurrency, 32)?;
    let services = &outputs.services;
    // Nothing here was asked for by name: what this server lacks is left out.
    let reads = params.extract_text;
    let media = MultimodalParams {
        cut: Cut::Time(10.0),
        transcribe: (reads && services.speech).then(String::new),
        describe: (params.generate_description && services.sight).then(|| Describe {
            prompt: "Describe what is seen, in two or three plain sentences.".to_owned(),
            temperature: 0.2,
            most_tokens: 1024,
        }),
        ocr: reads && services.lacks(Need::Ocr).is_none(),
        thumbnails: true,
        visual: true,
        most_segments,
        shape: None,
        indexes: Vec::new(),
    };
    Ok(UniversalParams {
        text: TextParams::whole(),
        document: DocumentParams::of_every_page(),
        media,
        most_pages,
        most_bytes,
        indexes: indexes(&INFO, true, JOINT_OUTPUTS, outputs)?,
    })
}

/// A number from 1 to `most`.
fn count(field: &str, value: i64, most: i64) -> Result<usize, Violation> {
    within(field, value, 1, most)?;
    Ok(usize::try_from(value).unwrap_or(1))
}
