//! What bytes are, whatever their sender says.

use encoding_rs::Encoding;

/// How many bytes are looked at.
const HEAD: usize = 8 << 10;

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(HEAD)]
}

/// Readers look for the mark in the first kilobyte, as mail programs put lines before it.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(1024)]
        .windows(5)
        .any(|window| window == b"%PDF-")
}

pub fn is_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Zero bytes appear in no text but UTF-16, which says so in its first two bytes. Known binary marks without zero
/// bytes in their head count too.
pub fn is_binary(bytes: &[u8]) -> bool {
    if Encoding::for_bom(bytes).is_some() {
        return false;
    }
    head(bytes).contains(&0) || known(bytes).is_some()
}

/// Words for what the file is instead.
pub fn looks_like(bytes: &[u8]) -> String {
    match known(bytes) {
        Some(what) => format!("it looks like {what}"),
        None if is_pdf(bytes) => "it looks like a PDF".to_owned(),
        None if is_html(bytes) => "it looks like a web page".to_owned(),
        None if head(bytes).contains(&0) => "it holds binary data of an unknown kind".to_owned(),
        None => "it looks like text".to_owned(),
    }
}

fn known(bytes: &[u8]) -> Option<&'static str> {
    const MARKS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"GIF8", "a GIF picture"),
        (b"II*\0", "a TIFF picture"),
        (b"MM\0*", "a TIFF picture"),
        (b"PK\x03\x04", "a ZIP archive or an office file"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"Rar!", "a RAR archive"),
        (b"\xd0\xcf\x11\xe0", "an old office file"),
        (b"\x7fELF", "a program"),
        (b"OggS", "an Ogg recording"),
        (b"ID3", "an MP3 recording"),
        (b"fLaC", "a FLAC recording"),
        (b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
        (b"SQLite format 3\0", "an SQLite database"),
    ];
    if let Some((_, what)) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Some(what);
    }
    if bytes.starts_with(b"RIFF") {
        return match bytes.get(8..12) {
            Some(b"WEBP") => Some("a WebP picture"),
            Some(b"WAVE") => Some("a WAV recording"),
            _ => Some("a RIFF file"),
        };
    }
    match (bytes.get(4..8), bytes.get(8..12)) {
        (Some(b"ftyp"), Some(b"heic" | b"heix" | b"mif1" | b"msf1")) => Some("a HEIC picture"),
        (Some(b"ftyp"), Some(b"avif" | b"avis")) => Some("an AVIF picture"),
        (Some(b"ftyp"), _) => Some("an MP4 video"),
        _ => None,
    }
}

/// `charset=` of a MIME type.
pub fn charset_of_mime(mime: &str) -> Option<&'static Encoding> {
    let (_, charset) = mime.split_once("charset=")?;
    Encoding::for_label(charset.trim_matches(['"', ' ']).as_bytes())
}

/// `charset=` of the first kilobyte of a web page.
pub fn html_charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset=")?;
    let label: String = rest
        .trim_start_matches(['"', '\''])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_:".contains(*c))
        .collect();
    Encoding::for_label(label.as_bytes())
}
