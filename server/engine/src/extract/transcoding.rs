//! `transcoding_extractor`: films once more, as every browser plays them.

use loupe_wire::{Object, TranscodingExtractorParams};
use serde_json::json;

use super::media::{Conversion, Facts};
use super::needs::Need;
use super::registry::{Extractor, ExtractorInfo, Field, Input, Violation, read, within};
use super::{Data, Generated, Part};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Transcoding,
    name: "transcoding_extractor",
    version: "v1",
    feature_extractor_id: "transcoding_extractor_v1",
    description: "Films converted to MP4 that every browser plays, kept beside the document, with a thumbnail. No \
                  vectors.",
    category: "video",
    icon: "film",
    inputs: &[Input {
        name: "video",
        types: &["video"],
    }],
    outputs: &[
        Field {
            name: "duration",
            kind: "number",
            description: "Length, in seconds.",
        },
        Field {
            name: "width",
            kind: "integer",
            description: "Pixels of the original.",
        },
        Field {
            name: "height",
            kind: "integer",
            description: "Pixels of the original.",
        },
        Field {
            name: "video_codec",
            kind: "string",
            description: "Of the original.",
        },
        Field {
            name: "audio_codec",
            kind: "string",
            description: "Of the original.",
        },
        Field {
            name: "output_codec",
            kind: "string",
            description: "Of the converted film, which is among the document's files as `converted_video`.",
        },
        Field {
            name: "thumbnail_url",
            kind: "string",
            description: "A picture from the middle, longest side 512 pixels; where addresses are asked for.",
        },
    ],
    position_fields: &[],
    needs: &[Need::Media],
    gains: &[],
};

const KNOWN: &[&str] = &[
    "extractor_type",
    "output_codec",
    "crf",
    "preset",
    "max_resolution",
    "audio_codec",
    "require_native_sdks",
];

const PRESETS: &[&str] = &[
    "ultrafast",
    "superfast",
    "veryfast",
    "faster",
    "fast",
    "medium",
    "slow",
    "slower",
    "veryslow",
];

#[derive(Debug, Clone, PartialEq)]
pub struct TranscodingParams {
    pub(crate) conversion: Conversion,
}

pub(super) fn check(object: &Object) -> Result<TranscodingParams, Violation> {
    let params: TranscodingExtractorParams = read(object, KNOWN)?;
    one_of(
        "output_codec",
        &params.output_codec,
        &["libx264", "libx265"],
    )?;
    one_of("preset", &params.preset, PRESETS)?;
    one_of("audio_codec", &params.audio_codec, &["aac", "mp3", "copy"])?;
    within("crf", params.crf, 0, 51)?;
    within("max_resolution", params.max_resolution, 144, 4320)?;
    if params.require_native_sdks {
        return Err(Violation::new(
            "require_native_sdks",
            "this server converts films with ffmpeg only",
        ));
    }
    Ok(TranscodingParams {
        conversion: Conversion {
            video: params.output_codec,
            audio: match params.audio_codec.as_str() {
                "mp3" => "libmp3lame".to_owned(),
                other => other.to_owned(),
            },
            quality: params.crf,
            preset: params.preset,
            resolution: params.max_resolution,
        },
    })
}

fn one_of(field: &str, value: &str, known: &[&str]) -> Result<(), Violation> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(Violation::new(
        field,
        format!("must be one of {}", known.join(", ")),
    ))
}

/// The one part of a film.
pub(crate) fn part(
    params: &TranscodingParams,
    source: &str,
    facts: &Facts,
    converted: Data,
) -> Part {
    let mut part = Part {
        key: format!("{source}/converted"),
        ..Part::default()
    };
    let seconds = (facts.seconds * 1000.0).round() / 1000.0;
    part.fields.insert("duration".to_owned(), json!(seconds));
    part.fields
        .insert("output_codec".to_owned(), json!(params.conversion.video));
    if let Some(video) = &facts.video {
        part.fields.insert("width".to_owned(), json!(video.width));
        part.fields.insert("height".to_owned(), json!(video.height));
        part.fields
            .insert("video_codec".to_owned(), json!(video.codec));
    }
    if let Some(audio) = &facts.audio {
        part.fields.insert("audio_codec".to_owned(), json!(audio));
    }
    if let Some(title) = &facts.title {
        part.extras.insert("title".to_owned(), json!(title));
        part.keywords.push(title.clone());
    }
    part.generated.push(Generated {
        field: "converted_video".to_owned(),
        kind: "video",
        filename: "converted.mp4".to_owned(),
        content_type: "video/mp4".to_owned(),
        bytes: converted,
    });
    part
}
