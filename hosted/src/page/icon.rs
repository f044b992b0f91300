//! The owner's icon, kept as base64 in the display configuration, served as a file of its own so that a page stays
//! small.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Type and bytes of an icon; none for anything that is not a picture.
pub fn decode(text: &str) -> Option<(&'static str, Vec<u8>)> {
    let data = match text.trim().strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?.1,
        None => text.trim(),
    };
    let bytes = STANDARD.decode(data.trim()).ok()?;
    // What the bytes are, not what the text says.
    let kind = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [0, 0, 1, 0, ..] => "image/x-icon",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "image/webp",
        _ => {
            let start = std::str::from_utf8(&bytes).ok()?.trim_start();
            (start.starts_with("<svg") || (start.starts_with("<?xml") && start.contains("<svg")))
                .then_some("image/svg+xml")?
        }
    };
    Some((kind, bytes))
}
