//! What cameras and people wrote into a picture.

use std::io::Cursor;

use exif::{Exif, In, Reader, Tag, Value as ExifValue};
use loupe_wire::{Object, Value};
use serde_json::json;

/// Longer texts are cut: EXIF is a place for captions.
const MAX_CHARACTERS: usize = 2_000;

const TEXTS: &[(Tag, &str)] = &[
    (Tag::Make, "make"),
    (Tag::Model, "model"),
    (Tag::LensModel, "lens"),
    (Tag::Software, "software"),
    (Tag::Artist, "artist"),
    (Tag::Copyright, "copyright"),
    (Tag::ImageDescription, "description"),
    (Tag::UserComment, "user_comment"),
];

const NUMBERS: &[(Tag, &str)] = &[
    (Tag::ExposureTime, "exposure_time"),
    (Tag::FNumber, "f_number"),
    (Tag::FocalLength, "focal_length"),
    (Tag::PhotographicSensitivity, "iso"),
];

/// The data of a file, empty when it has none or it is broken: a picture is worth having without.
pub fn read(bytes: &[u8]) -> Object {
    let mut reader = Reader::new();
    reader.continue_on_error(true);
    match reader.read_from_container(&mut Cursor::new(bytes)) {
        Ok(exif) => members(&exif),
        Err(error) => error
            .distill_partial_result(|_| {})
            .map(|exif| members(&exif))
            .unwrap_or_default(),
    }
}

fn members(exif: &Exif) -> Object {
    let mut object = Object::new();
    for (tag, name) in TEXTS {
        if let Some(text) = text(exif, *tag) {
            object.insert((*name).to_owned(), Value::String(text));
        }
    }
    for (tag, name) in NUMBERS {
        if let Some(number) = number(exif, *tag) {
            object.insert((*name).to_owned(), number);
        }
    }
    let taken = text(exif, Tag::DateTimeOriginal).or_else(|| text(exif, Tag::DateTime));
    if let Some(taken) = taken.as_deref().and_then(moment) {
        object.insert("taken_at".to_owned(), Value::String(taken));
    }
    if let (Some(lat), Some(lon)) = (
        degrees(exif, Tag::GPSLatitude, Tag::GPSLatitudeRef, "S"),
        degrees(exif, Tag::GPSLongitude, Tag::GPSLongitudeRef, "W"),
    ) {
        object.insert("location".to_owned(), json!({"lat": lat, "lon": lon}));
    }
    object
}

fn text(exif: &Exif, tag: Tag) -> Option<String> {
    let bytes: Vec<u8> = match &exif.get_field(tag, In::PRIMARY)?.value {
        ExifValue::Ascii(pieces) => pieces.join(&b' '),
        // A comment begins with the name of its encoding in eight bytes.
        ExifValue::Undefined(bytes, _) if tag == Tag::UserComment => bytes.get(8..)?.to_vec(),
        _ => return None,
    };
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARACTERS)
        .collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(exif: &Exif, tag: Tag) -> Option<Value> {
    match &exif.get_field(tag, In::PRIMARY)?.value {
        ExifValue::Rational(values) => {
            let number = values.first()?.to_f64();
            number.is_finite().then(|| json!(number))
        }
        value => value.get_uint(0).map(|number| json!(number)),
    }
}

/// `2026:11:21 10:00:00` to `2026-11-21T10:00:00`: cameras do not know their time zone.
fn moment(text: &str) -> Option<String> {
    chrono::NaiveDateTime::parse_from_str(text, "%Y:%m:%d %H:%M:%S")
        .ok()
        .map(|moment| moment.format("%Y-%m-%dT%H:%M:%S").to_string())
}

fn degrees(exif: &Exif, tag: Tag, reference: Tag, negative: &str) -> Option<f64> {
    let ExifValue::Rational(values) = &exif.get_field(tag, In::PRIMARY)?.value else {
        return None;
    };
    let part = |index: usize| values.get(index).map_or(0.0, |value| value.to_f64());
    let degrees = part(0) + part(1) / 60.0 + part(2) / 3600.0;
    let sign = if text(exif, reference).is_some_and(|text| text.starts_with(negative)) {
        -1.0
    } else {
        1.0
    };
    let limit = if negative == "S" { 90.0 } else { 180.0 };
    (degrees.is_finite() && degrees <= limit).then_some(sign * degrees)
}
