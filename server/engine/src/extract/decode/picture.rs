//! Pictures to small pixels, a thumbnail and what is known of them.

use std::io::Cursor;

use bytes::Bytes;
use fast_image_resize::{ResizeOptions, Resizer};
use image::codecs::{jpeg::JpegEncoder, webp::WebPEncoder};
use image::error::{ImageError, LimitErrorKind};
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageFormat, ImageReader, Limits, RgbImage};
use loupe_wire::Object;

use super::{exif, frames, heic, sniff};
use crate::embed::Pixels;
use crate::extract::{Claim, ExtractError, Result};

/// Limits of one decoded picture.
pub const MAX_SIDE: u32 = 20_000;
pub const MAX_BYTES: u64 = 256 << 20;
/// The longest side of thumbnails, and of the pixels that models see.
pub const SMALL_SIDE: u32 = 512;

const JPEG_QUALITY: u8 = 82;
/// The longest side of the copy in which texts are looked for, and its quality.
const LARGE_SIDE: u32 = 2_400;
const LARGE_QUALITY: u8 = 92;

#[derive(Debug, Clone, PartialEq)]
pub struct Thumbnail {
    pub content_type: String,
    pub bytes: Bytes,
}

#[derive(Debug, Clone)]
pub struct Picture {
    /// As shown: after the EXIF orientation.
    pub width: u32,
    pub height: u32,
    pub mime: String,
    /// At most [`SMALL_SIDE`] on the longest side.
    pub pixels: Pixels,
    pub thumbnail: Option<Thumbnail>,
    /// A JPEG in which texts are looked for, upright.
    pub large: Option<Bytes>,
    /// `#rrggbb`.
    pub dominant_color: String,
    pub exif: Object,
    /// Pictures of the file after this one: pages of a scan, frames of what moves.
    pub further: usize,
}

impl PartialEq for Picture {
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.height, &self.mime, &self.pixels.rgb)
            == (other.width, other.height, &other.mime, &other.pixels.rgb)
            && (
                &self.thumbnail,
                &self.large,
                &self.dominant_color,
                &self.exif,
                self.further,
            ) == (
                &other.thumbnail,
                &other.large,
                &other.dominant_color,
                &other.exif,
                other.further,
            )
    }
}

pub fn decode(claim: &Claim, bytes: &[u8], thumbnail: bool, large: bool) -> Result<Picture> {
    let (picture, mime, further) = if heic::is_heic(bytes) {
        (heic::pixels(bytes)?, heic::MIME, 0)
    } else {
        let format = format(claim, bytes)?;
        let picture = match (pixels(bytes, format), png_of_icon(bytes)) {
            (Err(_), Some(png)) if format == ImageFormat::Ico => pixels(png, ImageFormat::Png)?,
            (picture, _) => picture?,
        };
        let further = frames::further(bytes, format);
        (picture, format.to_mime_type(), further)
    };
    let (width, height) = (picture.width(), picture.height());
    let small = shrink(&picture, SMALL_SIDE)?;
    let large = large.then(|| readable(&picture)).transpose()?;
    drop(picture);
    let rgb = flatten(&small);
    let thumbnail = if thumbnail {
        Some(encode(&small, &rgb)?)
    } else {
        None
    };
    Ok(Picture {
        width,
        height,
        mime: mime.to_owned(),
        thumbnail,
        large,
        dominant_color: dominant_color(&rgb),
        exif: exif::read(bytes),
        further,
        pixels: Pixels {
            width: rgb.width(),
            height: rgb.height(),
            rgb: rgb.into_raw(),
        },
    })
}

fn format(claim: &Claim, bytes: &[u8]) -> Result<ImageFormat> {
    let readable = image::guess_format(bytes)
        .ok()
        .filter(ImageFormat::reading_enabled);
    readable.ok_or_else(|| {
        let name = claim.filename.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        ExtractError::permanent(format!(
            "the file{name} is not a picture that can be read: {}. JPEG, PNG, WebP, GIF, TIFF, BMP, ICO, PNM and HEIC are read",
            sniff::looks_like(bytes)
        ))
    })
}

/// Upright pixels, within the limits.
fn pixels(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits.clone());
    let mut decoder = reader
        .into_decoder()
        .map_err(|error| unreadable(format, &error))?;
    let (width, height) = decoder.dimensions();
    if decoder.total_bytes() > MAX_BYTES || width > MAX_SIDE || height > MAX_SIDE {
        return Err(too_large(width, height, decoder.total_bytes()));
    }
    let orientation = decoder
        .orientation()
        .unwrap_or(image::metadata::Orientation::NoTransforms);
    let mut picture =
        DynamicImage::from_decoder(decoder).map_err(|error| unreadable(format, &error))?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

/// The largest PNG in an icon. The decoder of icons takes those with transparency alone, as the rule is; browsers take any.
fn png_of_icon(bytes: &[u8]) -> Option<&[u8]> {
    let number = |at: &[u8]| at.first_chunk().map(|number| u32::from_le_bytes(*number));
    // Each entry says in which size and where: a side of 0 stands for 256.
    let png = |entry: &[u8]| {
        let start = usize::try_from(number(&entry[12..])?).ok()?;
        let length = usize::try_from(number(&entry[8..])?).ok()?;
        let png = bytes.get(start..start.checked_add(length)?)?;
        let side = |side: u8| u32::from(side.wrapping_sub(1)) + 1;
        png.starts_with(b"\x89PNG")
            .then_some((side(entry[0]) * side(entry[1]), png))
    };
    let count = bytes.get(4..6)?.first_chunk()?;
    let entries = bytes.get(6..)?.chunks_exact(16);
    entries
        .take(usize::from(u16::from_le_bytes(*count)))
        .filter_map(png)
        .max_by_key(|(size, _)| *size)
        .map(|(_, png)| png)
}

pub fn too_large(width: u32, height: u32, bytes: u64) -> ExtractError {
    let megapixels = u64::from(width) * u64::from(height) / 1_000_000;
    ExtractError::resource(format!(
        "the picture has {megapixels} megapixels ({width} x {height}) and needs {} MiB; the limit is {} MiB and \
         {MAX_SIDE} pixels a side",
        bytes >> 20,
        MAX_BYTES >> 20
    ))
}

fn unreadable(format: ImageFormat, error: &ImageError) -> ExtractError {
    if let ImageError::Limits(limit) = error {
        let what = match limit.kind() {
            LimitErrorKind::DimensionError => format!("more than {MAX_SIDE} pixels a side"),
            _ => format!("needs more than {} MiB", MAX_BYTES >> 20),
        };
        return ExtractError::resource(format!(
            "the picture is too large: {what}, which is the limit"
        ));
    }
    let name = format
        .extensions_str()
        .first()
        .copied()
        .unwrap_or("image")
        .to_ascii_uppercase();
    ExtractError::permanent(format!(
        "the picture is broken: it begins as {name} but cannot be decoded"
    ))
}

/// The copy in which texts are looked for.
fn readable(picture: &DynamicImage) -> Result<Bytes> {
    let rgb = flatten(&shrink(picture, LARGE_SIDE)?);
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, LARGE_QUALITY)
        .encode_image(&rgb)
        .map_err(|error| {
            ExtractError::permanent(format!("the picture cannot be copied: {error}"))
        })?;
    Ok(bytes.into())
}

/// At most `most` on the longest side, 8 bits a channel.
fn shrink(picture: &DynamicImage, most: u32) -> Result<DynamicImage> {
    let transparent = picture.color().has_alpha();
    let longest = picture.width().max(picture.height());
    if longest <= most {
        return Ok(match transparent {
            true => DynamicImage::ImageRgba8(picture.to_rgba8()),
            false => DynamicImage::ImageRgb8(picture.to_rgb8()),
        });
    }
    let side = |side: u32| {
        let scaled = u64::from(side) * u64::from(most) / u64::from(longest);
        // At most `most`, because `side` is at most `longest`.
        u32::try_from(scaled).unwrap_or(most).max(1)
    };
    // Four channels whatever there are: it is the one kind that the scaling is compiled for.
    let whole = DynamicImage::ImageRgba8(picture.to_rgba8());
    let mut small = DynamicImage::new(side(picture.width()), side(picture.height()), whole.color());
    Resizer::new()
        .resize(
            &whole,
            &mut small,
            &ResizeOptions::new().use_alpha(transparent),
        )
        .map_err(|error| {
            ExtractError::permanent(format!("the picture cannot be scaled: {error}"))
        })?;
    Ok(match transparent {
        true => small,
        false => DynamicImage::ImageRgb8(small.to_rgb8()),
    })
}

/// On white where it is transparent.
fn flatten(picture: &DynamicImage) -> RgbImage {
    let DynamicImage::ImageRgba8(rgba) = picture else {
        return picture.to_rgb8();
    };
    let mut rgb = RgbImage::new(rgba.width(), rgba.height());
    for (to, from) in rgb.pixels_mut().zip(rgba.pixels()) {
        let alpha = u32::from(from.0[3]);
        for channel in 0..3 {
            let value = (u32::from(from.0[channel]) * alpha + 255 * (255 - alpha)) / 255;
            to.0[channel] = u8::try_from(value).unwrap_or(u8::MAX);
        }
    }
    rgb
}

/// JPEG; WebP where transparency would be lost.
fn encode(small: &DynamicImage, rgb: &RgbImage) -> Result<Thumbnail> {
    let mut bytes = Vec::new();
    let transparent = match small {
        DynamicImage::ImageRgba8(rgba) if rgba.pixels().any(|pixel| pixel.0[3] < u8::MAX) => {
            Some(rgba)
        }
        _ => None,
    };
    let (written, content_type) = match transparent {
        Some(rgba) => (
            WebPEncoder::new_lossless(&mut bytes).write_image(
                rgba.as_raw(),
                rgba.width(),
                rgba.height(),
                image::ExtendedColorType::Rgba8,
            ),
            "image/webp",
        ),
        None => (
            JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY).encode_image(rgb),
            "image/jpeg",
        ),
    };
    written.map_err(|error| {
        ExtractError::permanent(format!("the thumbnail cannot be written: {error}"))
    })?;
    Ok(Thumbnail {
        content_type: content_type.to_owned(),
        bytes: bytes.into(),
    })
}

/// The mean of the fullest of 4,096 boxes of colours.
fn dominant_color(rgb: &RgbImage) -> String {
    let mut boxes = vec![(0_u64, [0_u64; 3]); 4_096];
    for pixel in rgb.pixels() {
        let [r, g, b] = pixel.0.map(usize::from);
        let (count, sums) = &mut boxes[(r >> 4) << 8 | (g >> 4) << 4 | b >> 4];
        *count += 1;
        for (sum, value) in sums.iter_mut().zip(pixel.0) {
            *sum += u64::from(value);
        }
    }
    let (count, sums) = boxes
        .into_iter()
        .max_by_key(|(count, _)| *count)
        .unwrap_or((1, [0; 3]));
    let [r, g, b] = sums.map(|sum| sum / count.max(1));
    format!("#{r:02x}{g:02x}{b:02x}")
}
