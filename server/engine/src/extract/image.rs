//! `image_extractor`: pictures with their features, labels, EXIF and a thumbnail.

use std::sync::Arc;

use loupe_wire::{ImageExtractorParams, Object, Value};
use serde_json::json;

use super::decode::Thumbnail;
use super::needs::Need;
use super::registry::{
    Extractor, ExtractorInfo, Field, IMAGE_OUTPUT, IndexInfo, Input, Outputs, SIGLIP_OUTPUT,
    Source, TEXT_OUTPUT, Violation, index, read,
};
use super::{Claim, Generated, Part, Picture};

/// What a classifier makes of a picture.
pub const LABELS: Field = Field {
    name: "labels",
    kind: "array",
    description: "What the picture shows, most likely first.",
};

pub const INFO: ExtractorInfo = ExtractorInfo {
    extractor: Extractor::Image,
    name: "image_extractor",
    version: "v1",
    feature_extractor_id: "image_extractor_v1",
    description: "Pictures: EfficientNet features for picture-to-picture search, labels with scores, EXIF, dominant \
                  colour and a thumbnail. Words find pictures through google_siglip_base_v1 where an endpoint for it \
                  is configured; without one, through a local fallback: the labels, the file name and the texts of \
                  the EXIF data, embedded as text (all_minilm_l6_v2_v1).",
    category: "image",
    icon: "image",
    inputs: &[Input {
        name: "image",
        types: &["image"],
    }],
    outputs: &[
        Field {
            name: "thumbnail_url",
            kind: "string",
            description: "The thumbnail, longest side 512 pixels; where addresses are asked for.",
        },
        Field {
            name: "processing_time_ms",
            kind: "integer",
            description: "Time taken by decoding.",
        },
        LABELS,
        Field {
            name: "label_scores",
            kind: "array",
            description: "The labels with their probabilities.",
        },
        Field {
            name: "width",
            kind: "integer",
            description: "Pixels, as shown (EXIF orientation applied).",
        },
        Field {
            name: "height",
            kind: "integer",
            description: "Pixels, as shown (EXIF orientation applied).",
        },
        Field {
            name: "dominant_color",
            kind: "string",
            description: "`#rrggbb`.",
        },
        Field {
            name: "exif",
            kind: "object",
            description: "Camera, time, place, author and the like, where given.",
        },
        Field {
            name: "text_search",
            kind: "string",
            description: "`labels_fallback` where the text vector stands for labels, file name and EXIF texts and not \
                          for the pixels.",
        },
    ],
    position_fields: &[],
    needs: &[],
    gains: &[Need::Media],
};

const KNOWN: &[&str] = &["extractor_type", "enable_thumbnails", "use_cdn"];

/// Labels that a document keeps at most, and the least probability of each.
const MAX_LABELS: usize = 5;
const MIN_PROBABILITY: f32 = 0.05;

#[derive(Debug, Clone, PartialEq)]
pub struct ImageParams {
    pub(crate) thumbnails: bool,
    pub(super) indexes: Vec<IndexInfo>,
}

pub(super) fn check(object: &Object, outputs: &Outputs) -> Result<ImageParams, Violation> {
    let params: ImageExtractorParams = read(object, KNOWN)?;
    let missing = |msg| Violation {
        loc: Vec::new(),
        msg,
    };
    let mut indexes = vec![
        index(&INFO, IMAGE_OUTPUT, Source::ImageModel, outputs).map_err(missing)?,
        index(&INFO, TEXT_OUTPUT, Source::TextModel, outputs).map_err(missing)?,
    ];
    if outputs.find(SIGLIP_OUTPUT, Source::ImageModel).is_some() {
        indexes.push(index(&INFO, SIGLIP_OUTPUT, Source::ImageModel, outputs).map_err(missing)?);
    }
    Ok(ImageParams {
        thumbnails: params.enable_thumbnails,
        indexes,
    })
}

/// The one part of a picture. Labels and the text to embed follow with [`describe`].
pub(crate) fn part(source: &str, picture: Picture, claim: &Claim, milliseconds: u64) -> Part {
    let mut part = Part {
        key: format!("{source}/0"),
        ..Part::default()
    };
    part.extras.insert("width".to_owned(), json!(picture.width));
    part.extras
        .insert("height".to_owned(), json!(picture.height));
    part.extras
        .insert("dominant_color".to_owned(), json!(picture.dominant_color));
    part.fields
        .insert("processing_time_ms".to_owned(), json!(milliseconds));
    part.keywords.extend(words_of_file(claim));
    part.keywords.extend(exif_texts(&picture.exif));
    if !picture.exif.is_empty() {
        part.extras
            .insert("exif".to_owned(), Value::Object(picture.exif));
    }
    part.generated.extend(picture.thumbnail.map(thumbnail_of));
    part.pixels = Some(Arc::new(picture.pixels));
    part
}

/// A thumbnail as a file beside the document.
pub(crate) fn thumbnail_of(thumbnail: Thumbnail) -> Generated {
    let extension = if thumbnail.content_type == "image/webp" {
        "webp"
    } else {
        "jpg"
    };
    Generated {
        field: "thumbnail".to_owned(),
        kind: "image",
        filename: format!("thumbnail.{extension}"),
        content_type: thumbnail.content_type,
        bytes: thumbnail.bytes.into(),
    }
}

/// Adds what the label model saw, and the text by which words find the picture, unless something was said or written.
pub(crate) fn describe(part: &mut Part, labels: &[(String, f32)], siglip: bool) {
    let labels: Vec<&(String, f32)> = labels
        .iter()
        .filter(|(_, probability)| *probability >= MIN_PROBABILITY)
        .take(MAX_LABELS)
        .collect();
    let names: Vec<&str> = labels.iter().map(|(label, _)| label.as_str()).collect();
    let scores: Vec<Value> = labels
        .iter()
        .map(|(label, probability)| json!({"label": label, "score": rounded(*probability)}))
        .collect();
    let mut texts: Vec<String> = Vec::new();
    if !names.is_empty() {
        texts.push(names.join(", "));
    }
    texts.append(&mut part.keywords);
    part.extras.insert("labels".to_owned(), json!(names));
    part.extras
        .insert("label_scores".to_owned(), Value::Array(scores));
    if !siglip && part.text.is_none() {
        part.extras
            .insert("text_search".to_owned(), json!("labels_fallback"));
    }
    part.text.get_or_insert_with(|| texts.join(". "));
    part.keywords = texts;
}

/// Four digits: more would tell machines apart, not pictures.
fn rounded(probability: f32) -> f64 {
    (f64::from(probability) * 10_000.0).round() / 10_000.0
}

/// The words in the name of a file, when it has any.
pub(crate) fn words_of_file(claim: &Claim) -> Option<String> {
    let words = claim.filename.as_deref().map(words_of_a_name);
    words.filter(|words| !words.is_empty())
}

/// `IMG_20210203_red-barn.jpg` to `red barn`: numbers and the marks of cameras tell nothing.
fn words_of_a_name(name: &str) -> String {
    let stem = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let camera = [
        "img",
        "dsc",
        "dscn",
        "dscf",
        "image",
        "photo",
        "pxl",
        "screenshot",
    ];
    stem.split(|character: char| !character.is_alphanumeric())
        .filter(|word| {
            word.chars()
                .filter(|character| character.is_alphabetic())
                .count()
                > 1
        })
        .filter(|word| {
            // `DSC0001` is the mark of a camera with its counter.
            let mark = word.trim_end_matches(|character: char| character.is_ascii_digit());
            !camera.contains(&mark.to_ascii_lowercase().as_str())
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// What people wrote into a picture, not what cameras did.
fn exif_texts(exif: &Object) -> Vec<String> {
    ["description", "user_comment", "artist", "copyright"]
        .iter()
        .filter_map(|key| exif.get(*key)?.as_str())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_become_words() {
        assert_eq!(words_of_a_name("IMG_20210203_red-barn.jpg"), "red barn");
        assert_eq!(words_of_a_name("DSC0001.JPG"), "");
        assert_eq!(words_of_a_name("a/b/Köln Dom.png"), "Köln Dom");
    }

    #[test]
    fn unlikely_labels_are_left_out() {
        let labels = [("barn".to_owned(), 0.61234), ("cow".to_owned(), 0.01)];
        let mut part = Part {
            keywords: vec!["my farm".to_owned()],
            ..Part::default()
        };
        describe(&mut part, &labels, false);
        assert_eq!(
            part.extras["label_scores"],
            json!([{"label": "barn", "score": 0.6123}])
        );
        assert_eq!(part.text.as_deref(), Some("barn. my farm"));
        assert_eq!(part.extras["text_search"], "labels_fallback");
    }
}
