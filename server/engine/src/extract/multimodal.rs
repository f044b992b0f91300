//! `multimodal_extractor`: films and sounds in segments, pictures and texts, found by what they show and say.

use std::sync::Arc;

use loupe_wire::{MultimodalExtractorParams, Object, SplitMethod};
use serde_json::json;

use super::decode::Picture;
use super::image::{LABELS, thumbnail_of};
use super::media::{Cut, Facts, Segment};
use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IMAGE_OUTPUT, IndexInfo, Input, Outputs, Source, TEXT_OUTPUT,
    Violation, index, read, within,
};
use super::shape::Shape;
use super::{Part, text};

/// Models of the interface that place pictures and words in one space, where an endpoint answers for them.
const JOINT_OUTPUTS: &[&str] = &["vertex_multimodal_embedding", "gemini-embedding-2"];
const E5_OUTPUT: &str = "multilingual_e5_large_instruct_v1";

/// What is quiet, and how much two pictures of one scene differ at most, when nothing is said.
const QUIET_DECIBELS: i64 = -40;

/// Where the film of a segment is.
pub const SOURCE_VIDEO_URL: Field = Field {
    name: "source_video_url",
    kind: "string",
    description: "The film that the segment is of, where addresses are asked for.",
};
/// The same, at the segment.
pub const VIDEO_SEGMENT_URL: Field = Field {
    name: "video_segment_url",
    kind: "string",
    description: "The same from the segment's begin to its end (`#t=`).",
};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Multimodal,
    name: "multimodal_extractor",
    version: "v1",
    feature_extractor_id: "multimodal_extractor_v1",
    description: "Films and sounds cut into segments by time, scene or silence, one document each, with a key frame, a \
                  thumbnail and, when asked for, what is said, written and seen in it; pictures and texts as one \
                  document each. Pictures find pictures through efficientnet_lite0_v1; words find them through an \
                  endpoint for vertex_multimodal_embedding or gemini-embedding-2 where one is configured, else \
                  through what is said, written and labelled, embedded as text.",
    category: "multimodal",
    icon: "film",
    inputs: &[
        Input {
            name: "video",
            types: &["video", "audio"],
        },
        Input {
            name: "image",
            types: &["image"],
        },
        Input {
            name: "text",
            types: &["text", "string"],
        },
        Input {
            name: "gif",
            types: &["image"],
        },
    ],
    outputs: &[
        Field {
            name: "start_time",
            kind: "number",
            description: "Where the segment begins, in seconds.",
        },
        Field {
            name: "end_time",
            kind: "number",
            description: "Where the segment ends, in seconds.",
        },
        Field {
            name: "segment_index",
            kind: "integer",
            description: "Position in the recording, from 0.",
        },
        Field {
            name: "total_segments",
            kind: "integer",
            description: "Segments of the recording.",
        },
        Field {
            name: "duration",
            kind: "number",
            description: "Length of the whole recording, in seconds.",
        },
        Field {
            name: "transcription",
            kind: "string",
            description: "What is said; with run_transcription.",
        },
        Field {
            name: "description",
            kind: "string",
            description: "What is seen, in words; with run_video_description.",
        },
        Field {
            name: "ocr_text",
            kind: "string",
            description: "What is written in the picture; with run_ocr.",
        },
        Field {
            name: "text",
            kind: "string",
            description: "The text itself; of texts only.",
        },
        Field {
            name: "thumbnail_url",
            kind: "string",
            description: "The key frame, or a picture of the sound, longest side 512 pixels; where addresses are asked for.",
        },
        SOURCE_VIDEO_URL,
        VIDEO_SEGMENT_URL,
        LABELS,
        Field {
            name: "label_scores",
            kind: "array",
            description: "The labels with their probabilities.",
        },
        Field {
            name: "width",
            kind: "integer",
            description: "Pixels.",
        },
        Field {
            name: "height",
            kind: "integer",
            description: "Pixels.",
        },
        Field {
            name: "dominant_color",
            kind: "string",
            description: "`#rrggbb`.",
        },
    ],
    position_fields: &["segment_index", "start_time"],
    needs: &[],
    gains: &[Need::Media, Need::Ocr, Need::Speech, Need::Sight],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "split_method",
    "description_prompt",
    "time_split_interval",
    "silence_db_threshold",
    "scene_detection_threshold",
    "run_transcription",
    "transcription_language",
    "run_video_description",
    "run_transcription_embedding",
    "run_ocr_embedding",
    "run_description_embedding",
    "run_multimodal_embedding",
    "run_ocr",
    "max_segment_duration",
    "sensitivity",
    "enable_thumbnails",
    "use_cdn",
    "generation_config",
    "output_dimensionality",
    "task_type",
    "response_shape",
    "embedding_task",
];

/// What is wanted of sounds, films and pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct MultimodalParams {
    pub(crate) cut: Cut,
    /// The language that is spoken.
    pub(crate) transcribe: Option<String>,
    /// What the language model is told to do with a picture.
    pub(crate) describe: Option<Describe>,
    pub(crate) ocr: bool,
    pub(crate) thumbnails: bool,
    pub(crate) visual: bool,
    pub(crate) most_segments: usize,
    pub(crate) shape: Option<Shape>,
    pub(super) indexes: Vec<IndexInfo>,
}

/// How pictures are described.
#[derive(Debug, Clone, PartialEq)]
pub struct Describe {
    pub prompt: String,
    pub temperature: f64,
    pub most_tokens: i64,
}

pub(super) fn check(object: &Object, outputs: &Outputs) -> Result<MultimodalParams, Violation> {
    let params: MultimodalExtractorParams = read(object, KNOWN)?;
    within(
        "max_segment_duration",
        params.max_segment_duration,
        1.0,
        3600.0,
    )?;
    within(
        "output_dimensionality",
        params.output_dimensionality,
        1,
        65_536,
    )?;
    let generation = &params.generation_config;
    within("generation_config", generation.temperature, 0.0, 2.0)?;
    within("generation_config", generation.max_output_tokens, 1, 65_536)?;
    let visual = params.run_multimodal_embedding;
    Ok(MultimodalParams {
        cut: cut(&params)?,
        transcribe: params
            .run_transcription
            .then(|| params.transcription_language.clone()),
        describe: params.run_video_description.then(|| Describe {
            prompt: params.description_prompt.clone(),
            temperature: generation.temperature,
            most_tokens: generation.max_output_tokens,
        }),
        ocr: params.run_ocr,
        thumbnails: params.enable_thumbnails,
        visual,
        most_segments: super::media::MAX_SEGMENTS,
        shape: Shape::read(params.response_shape.as_ref())?,
        indexes: indexes(&INFO, visual, JOINT_OUTPUTS, outputs)?,
    })
}

fn cut(params: &MultimodalExtractorParams) -> Result<Cut, Violation> {
    let longest = params.max_segment_duration;
    Ok(match params.split_method {
        SplitMethod::Time => {
            let every = params.time_split_interval.unwrap_or(10);
            within("time_split_interval", every, 1, 3600)?;
            // At most an hour: exact as a float.
            #[allow(clippy::cast_precision_loss)]
            Cut::Time(every as f64)
        }
        SplitMethod::Scene => {
            let usual = match params.sensitivity.as_str() {
                "low" => 0.4,
                "medium" => 0.3,
                "high" => 0.2,
                _ => {
                    return Err(Violation::new(
                        "sensitivity",
                        "must be one of low, medium, high",
                    ));
                }
            };
            let threshold = params.scene_detection_threshold.unwrap_or(usual);
            within("scene_detection_threshold", threshold, 0.01, 1.0)?;
            Cut::Scene(threshold, longest)
        }
        SplitMethod::Silence => {
            let quiet = params.silence_db_threshold.unwrap_or(QUIET_DECIBELS);
            within("silence_db_threshold", quiet, -100, -1)?;
            // Three digits: exact as a float.
            #[allow(clippy::cast_precision_loss)]
            Cut::Silence(quiet as f64, longest)
        }
    })
}

/// The indexes of documents with pictures and words: the built-in ones, and those of the interface that answer here.
pub(super) fn indexes(
    info: &ExtractorInfo,
    visual: bool,
    joint: &[&str],
    outputs: &Outputs,
) -> Result<Vec<IndexInfo>, Violation> {
    let missing = |msg| Violation {
        loc: Vec::new(),
        msg,
    };
    let mut indexes = Vec::new();
    let there = |name: &&&str| outputs.find(name, Source::ImageModel).is_some();
    if visual {
        indexes.push(index(info, IMAGE_OUTPUT, Source::ImageModel, outputs).map_err(missing)?);
        for output in joint.iter().filter(there) {
            indexes.push(index(info, output, Source::ImageModel, outputs).map_err(missing)?);
        }
    }
    let words = match outputs.find(E5_OUTPUT, Source::TextModel) {
        Some(_) => E5_OUTPUT,
        None => TEXT_OUTPUT,
    };
    indexes.push(index(info, words, Source::TextModel, outputs).map_err(missing)?);
    Ok(indexes)
}

impl MultimodalParams {
    /// What these parameters ask for, each with the parameter that asks.
    pub(super) fn needs(&self) -> Vec<(&'static str, Need)> {
        let asked = [
            ("run_transcription", Need::Speech, self.transcribe.is_some()),
            (
                "run_video_description",
                Need::Sight,
                self.describe.is_some(),
            ),
            ("run_ocr", Need::Ocr, self.ocr),
            ("response_shape", Need::Language, self.shape.is_some()),
        ];
        let asked = asked.into_iter().filter(|(.., asked)| *asked);
        asked
            .map(|(parameter, need, _)| (parameter, need))
            .collect()
    }
}

/// What was found in one segment, or in a picture.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub picture: Option<Picture>,
    pub transcription: Option<String>,
    pub ocr: Option<String>,
    pub description: Option<String>,
}

/// The part of one segment of a recording.
pub(crate) fn segment(
    source: &str,
    (number, total): (usize, usize),
    segment: Segment,
    facts: &Facts,
    found: Found,
) -> Part {
    let mut part = Part {
        key: format!("{source}/segment{number}"),
        ..Part::default()
    };
    for (name, value) in [
        ("start_time", json!(milliseconds(segment.start))),
        ("end_time", json!(milliseconds(segment.end))),
        ("segment_index", json!(number)),
        ("total_segments", json!(total)),
        ("duration", json!(milliseconds(facts.seconds))),
    ] {
        part.fields.insert(name.to_owned(), value);
    }
    let (video, audio) = (facts.video.as_ref(), facts.audio.as_ref());
    for (name, value) in [
        ("video_codec", video.map(|video| json!(video.codec))),
        ("audio_codec", audio.map(|codec| json!(codec))),
        ("artist", facts.artist.as_ref().map(|artist| json!(artist))),
    ] {
        part.metadata
            .extend(value.map(|value| (name.to_owned(), value)));
    }
    if let Some(title) = &facts.title {
        part.extras.insert("title".to_owned(), json!(title));
        part.keywords.push(title.clone());
    }
    if let Some(video) = video {
        part.extras.insert("width".to_owned(), json!(video.width));
        part.extras.insert("height".to_owned(), json!(video.height));
    }
    tell(&mut part, found);
    part
}

/// Puts what was found into a part. Its words are what the text indexes embed.
pub(crate) fn tell(part: &mut Part, found: Found) {
    let mut words = Vec::new();
    for (name, text) in [
        ("transcription", found.transcription),
        ("description", found.description),
        ("ocr_text", found.ocr),
    ] {
        let text = text.map(|text| text.trim().to_owned());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            part.fields.insert(name.to_owned(), json!(text));
            words.push(text);
        }
    }
    if !words.is_empty() {
        let whole = words.join("\n");
        if let Some(language) = text::language(std::slice::from_ref(&whole)) {
            part.metadata.insert("language".to_owned(), json!(language));
        }
        part.text = Some(whole);
    }
    part.keywords.extend(words);
    if let Some(picture) = found.picture {
        part.extras
            .insert("dominant_color".to_owned(), json!(picture.dominant_color));
        part.generated.extend(picture.thumbnail.map(thumbnail_of));
        part.pixels = Some(Arc::new(picture.pixels));
    }
}

/// Three digits after the point.
fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
