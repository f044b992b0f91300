//! Files of several pictures: how many there are, for only the first is decoded.

use std::collections::HashSet;
use std::io::Cursor;

use image::ImageFormat;
use tiff::{decoder::Decoder, tags::Tag};

/// More are not counted.
const MOST: usize = 100_000;

/// How many pictures a file holds after its first one: pages of a scan, frames of what moves. What cannot be counted is none: the
/// file was decoded, and nothing but what is told depends on it.
pub fn further(bytes: &[u8], format: ImageFormat) -> usize {
    let all = match format {
        ImageFormat::Tiff => pages(bytes),
        ImageFormat::Gif => gif_frames(bytes),
        ImageFormat::WebP => image_webp::WebPDecoder::new(Cursor::new(bytes))
            .ok()
            .and_then(|decoder| usize::try_from(decoder.num_frames()).ok()),
        _ => None,
    };
    all.unwrap_or_default().saturating_sub(1)
}

/// The first page, and the others that are no small copies of one.
fn pages(bytes: &[u8]) -> Option<usize> {
    let mut decoder = Decoder::new(Cursor::new(bytes)).ok()?;
    let (mut next, mut seen, mut count) = (decoder.ifd_pointer(), HashSet::new(), 0);
    // Directories that name one another would go on for ever.
    while let Some(pointer) = next.filter(|pointer| seen.len() < MOST && seen.insert(pointer.0)) {
        let Ok(directory) = decoder.read_directory(pointer) else {
            break;
        };
        let mut tags = decoder.read_directory_tags(&directory);
        let kind = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType);
        let is_small = kind.ok().flatten().unwrap_or_default() & 1 == 1;
        count += usize::from(count == 0 || !is_small);
        next = directory.next();
    }
    Some(count)
}

fn gif_frames(bytes: &[u8]) -> Option<usize> {
    let mut options = gif::DecodeOptions::new();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(bytes).ok()?;
    let mut count = 0;
    while count < MOST && matches!(decoder.next_frame_info(), Ok(Some(_))) {
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::samples;

    #[test]
    fn pages_and_frames_are_counted() {
        for (count, file, format) in [
            (2, samples::tiff(3), ImageFormat::Tiff),
            (0, samples::tiff(1), ImageFormat::Tiff),
            (4, samples::gif(5), ImageFormat::Gif),
            (0, samples::gif(1), ImageFormat::Gif),
            (0, samples::png(4, 4), ImageFormat::Png),
        ] {
            assert_eq!(further(&file, format), count, "{format:?}");
        }
    }

    #[test]
    fn directories_that_go_round_are_counted_once() {
        let mut file = samples::tiff(1);
        let first = u32::from_le_bytes(file[4..8].try_into().unwrap());
        let at = first as usize;
        let entries = u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
        let next = at + 2 + usize::from(entries) * 12;
        file[next..next + 4].copy_from_slice(&first.to_le_bytes());
        assert_eq!(further(&file, ImageFormat::Tiff), 0);
    }
}
