//! Pictures of telephones.

use heic_rs::{DecodeOptions, Error, PixelLayout};
use image::{DynamicImage, RgbImage, RgbaImage};

use super::{
    picture::{MAX_BYTES, MAX_SIDE, too_large},
    sniff,
};
use crate::extract::{ExtractError, Result};

pub const MIME: &str = "image/heic";

pub fn is_heic(bytes: &[u8]) -> bool {
    sniff::known(bytes).is_some_and(|known| known.mime == MIME)
}

/// Pixels within the limits. They are upright: how it is to be turned says the file, whatever its EXIF repeats of that.
pub fn pixels(bytes: &[u8]) -> Result<DynamicImage> {
    let info = heic_rs::probe(bytes).map_err(|error| unreadable(&error))?;
    let layout = match info.has_alpha {
        true => PixelLayout::Rgba8,
        false => PixelLayout::Rgb8,
    };
    let each: u64 = if layout.has_alpha() { 4 } else { 3 };
    let (width, height) = (
        info.width.max(info.coded_width),
        info.height.max(info.coded_height),
    );
    let needed = u64::from(width) * u64::from(height) * each;
    if needed > MAX_BYTES || width > MAX_SIDE || height > MAX_SIDE {
        return Err(too_large(width, height, needed));
    }
    let options = DecodeOptions::default()
        .with_layout(layout)
        .with_max_pixels(Some(MAX_BYTES / each));
    let read = heic_rs::decode(bytes, &options).map_err(|error| unreadable(&error))?;
    let (width, height) = (read.width, read.height);
    let picture = match layout.has_alpha() {
        true => RgbaImage::from_raw(width, height, read.data).map(DynamicImage::ImageRgba8),
        false => RgbImage::from_raw(width, height, read.data).map(DynamicImage::ImageRgb8),
    };
    picture.ok_or_else(broken)
}

fn unreadable(error: &Error) -> ExtractError {
    match error {
        Error::PixelLimit { pixels, .. } => ExtractError::resource(format!(
            "the picture is too large: it has {} megapixels and needs more than {} MiB, which is the limit",
            pixels / 1_000_000,
            MAX_BYTES >> 20
        )),
        Error::Unsupported(what) => ExtractError::permanent(format!(
            "the picture is HEIC of a kind that is not read: {what}"
        )),
        _ => broken(),
    }
}

fn broken() -> ExtractError {
    ExtractError::permanent("the picture is broken: it begins as HEIC but cannot be decoded")
}
