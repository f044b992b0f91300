//! What bytes are, whatever their sender says.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;
use quick_xml::{Reader, events::Event};

/// How many bytes are looked at.
const HEAD: usize = 8 << 10;

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(HEAD)]
}

/// Readers look for the mark in the first kilobyte, as mail programs put lines before it.
pub fn is_pdf(bytes: &[u8]) -> bool {
    holds(&bytes[..bytes.len().min(1024)], b"%PDF-")
}

pub fn is_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// The container of office programs before 2007, and of protected documents.
pub fn is_ole(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
}

/// What an archive is by the names in it, which stand at its beginning and once more at its end.
fn packed(bytes: &[u8]) -> (&'static str, &'static str) {
    const END: usize = 64 << 10;
    const KINDS: &[(&[u8], &str, &str)] = &[
        (
            b"word/document.xml",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "a DOCX document",
        ),
        (
            b"ppt/presentation.xml",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "a PPTX presentation",
        ),
        (
            b"xl/workbook.xml",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "an XLSX workbook",
        ),
        (
            b"xl/workbook.bin",
            "application/vnd.ms-excel.sheet.binary.macroenabled.12",
            "an XLSB workbook",
        ),
        (
            b"application/epub+zip",
            "application/epub+zip",
            "an EPUB book",
        ),
        (
            b"application/vnd.oasis.opendocument.spreadsheet",
            "application/vnd.oasis.opendocument.spreadsheet",
            "an ODS workbook",
        ),
        (
            b"application/vnd.oasis.opendocument.text",
            "application/vnd.oasis.opendocument.text",
            "an ODT document",
        ),
    ];
    let end = &bytes[bytes.len().saturating_sub(END)..];
    KINDS
        .iter()
        .find(|(name, ..)| holds(end, name) || holds(head(bytes), name))
        .map_or(("application/zip", "a ZIP archive"), |(_, mime, words)| {
            (*mime, *words)
        })
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
        Some(known) => format!("it looks like {}", known.words),
        None if is_pdf(bytes) => "it looks like a PDF".to_owned(),
        None if is_svg(bytes) => "it looks like an SVG drawing".to_owned(),
        None if is_html(bytes) => "it looks like a web page".to_owned(),
        None if head(bytes).contains(&0) => "it holds binary data of an unknown kind".to_owned(),
        None => "it looks like text".to_owned(),
    }
}

/// What a mark at the beginning of a file tells.
pub struct Known {
    pub mime: &'static str,
    /// For people, such as `a PNG picture`.
    words: &'static str,
}

/// The kind of a file with a mark that is known.
pub fn known(bytes: &[u8]) -> Option<Known> {
    const MARKS: &[(&[u8], &str, &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png", "a PNG picture"),
        (b"\xff\xd8\xff", "image/jpeg", "a JPEG picture"),
        (b"GIF8", "image/gif", "a GIF picture"),
        (b"II*\0", "image/tiff", "a TIFF picture"),
        (b"MM\0*", "image/tiff", "a TIFF picture"),
        (b"PK\x03\x04", "application/zip", "a ZIP archive"),
        (b"\x1f\x8b", "application/gzip", "a gzip archive"),
        (
            b"7z\xbc\xaf\x27\x1c",
            "application/x-7z-compressed",
            "a 7z archive",
        ),
        (b"Rar!", "application/vnd.rar", "a RAR archive"),
        (
            b"\xd0\xcf\x11\xe0",
            "application/x-ole-storage",
            "an old office file",
        ),
        (b"\x7fELF", "application/x-executable", "a program"),
        (b"OggS", "audio/ogg", "an Ogg recording"),
        (b"ID3", "audio/mpeg", "an MP3 recording"),
        (b"fLaC", "audio/flac", "a FLAC recording"),
        (
            b"\x1aE\xdf\xa3",
            "video/x-matroska",
            "a Matroska or WebM video",
        ),
        (
            b"SQLite format 3\0",
            "application/vnd.sqlite3",
            "an SQLite database",
        ),
    ];
    let mark = MARKS.iter().find(|(mark, ..)| bytes.starts_with(mark));
    let (mime, words) = match mark {
        Some((_, "video/x-matroska", words)) if says_webm(bytes) => ("video/webm", *words),
        Some((_, "application/zip", _)) => packed(bytes),
        Some((_, mime, words)) => (*mime, *words),
        None if is_pnm(bytes) => ("image/x-portable-anymap", "a PNM picture"),
        None => container(bytes)?,
    };
    Some(Known { mime, words })
}

/// Files that say what they are a few bytes later.
fn container(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    let brand = bytes.get(8..12)?;
    if bytes.starts_with(b"RIFF") {
        return Some(match brand {
            b"WEBP" => ("image/webp", "a WebP picture"),
            b"WAVE" => ("audio/wav", "a WAV recording"),
            b"AVI " => ("video/x-msvideo", "an AVI video"),
            _ => ("application/octet-stream", "a RIFF file"),
        });
    }
    if bytes.get(4..8) != Some(b"ftyp") {
        return None;
    }
    Some(match brand {
        // Of any picture in this container.
        b"mif1" | b"msf1" if is_compatible(bytes, [b"avif", b"avis"]) => {
            ("image/avif", "an AVIF picture")
        }
        b"heic" | b"heix" | b"mif1" | b"msf1" => ("image/heic", "a HEIC picture"),
        b"avif" | b"avis" => ("image/avif", "an AVIF picture"),
        b"qt  " => ("video/quicktime", "a QuickTime video"),
        b"M4A " => ("audio/mp4", "an MP4 recording"),
        _ => ("video/mp4", "an MP4 video"),
    })
}

/// Pictures whose head is written in letters: `P6`, width, height and the largest value, with comments between. Texts may begin
/// with the first of it.
fn is_pnm(bytes: &[u8]) -> bool {
    let [b'P', kind @ b'1'..=b'7', rest @ ..] = head(bytes) else {
        return false;
    };
    if *kind == b'7' {
        return rest.starts_with(b"\n") && holds(rest, b"\nENDHDR\n");
    }
    let text = String::from_utf8_lossy(rest);
    let lines = text.lines().map(|line| line.split('#').next());
    let words: Vec<&str> = lines.flatten().flat_map(str::split_whitespace).collect();
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = words.iter().take_while(|word| is_number(word)).count();
    let (bitmap, written) = (matches!(kind, b'1' | b'4'), matches!(kind, b'1'..=b'3'));
    text.starts_with([' ', '\t', '\r', '\n', '#'])
        && numbers >= if bitmap { 2 } else { 3 }
        && (!written || numbers == words.len())
}

/// Whether a file is XML whose first element is a drawing.
pub fn is_svg(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head(bytes));
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return false;
    }
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => {
                return element.local_name().as_ref() == "svg";
            }
            Ok(Event::Text(text)) if text.trim().is_empty() => {}
            Ok(Event::Decl(_) | Event::Comment(_) | Event::DocType(_) | Event::PI(_)) => {}
            _ => return false,
        }
    }
}

/// Whether a file names one of these brands behind its first one, as some that it can be read as.
fn is_compatible(bytes: &[u8], brands: [&[u8; 4]; 2]) -> bool {
    let size = bytes.first_chunk().map(|size| u32::from_be_bytes(*size));
    let end = size.and_then(|size| usize::try_from(size).ok());
    let named = bytes.get(16..end.unwrap_or_default().min(bytes.len()));
    let mut named = named.unwrap_or_default().chunks_exact(4);
    named.any(|brand| brands.iter().any(|known| brand == known.as_slice()))
}

pub fn says_webm(bytes: &[u8]) -> bool {
    holds(head(bytes), b"webm")
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

/// `charset=` of a MIME type.
pub fn charset_of_mime(mime: &str) -> Option<&'static Encoding> {
    let mut parameters = mime.split(';').filter_map(|one| one.split_once('='));
    let (_, charset) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(charset.trim_matches(['"', ' ']).as_bytes())
}

/// Whether a text is UTF-8, but for what was cut off or broken here and there.
pub fn is_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        // Every character beyond ASCII begins with a byte from 0xc0 on.
        whole += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    broken * 10 <= whole
}

/// The encoding that a text which is not UTF-8 is likely to be in.
pub fn guessed(bytes: &[u8]) -> &'static Encoding {
    /// More tell nothing new, and take time.
    const ENOUGH: usize = 1 << 20;
    // What comes before the first strange letter is the same in all of them. The letter before it is not: where words change
    // from one alphabet to another tells encodings apart.
    let start = Encoding::ascii_valid_up_to(bytes).saturating_sub(1);
    let bytes = &bytes[start..];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let enough = &bytes[..bytes.len().min(ENOUGH)];
    detector.feed(enough, enough.len() == bytes.len());
    detector.guess(None, Utf8Detection::Deny)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_type_stands_among_its_parameters() {
        for mime in [
            "text/plain; charset=Shift_JIS",
            "text/plain;Charset=\"shift_jis\"; format=flowed",
            "text/plain; format=flowed; charset=sjis",
        ] {
            assert_eq!(
                charset_of_mime(mime),
                Some(encoding_rs::SHIFT_JIS),
                "{mime}"
            );
        }
        assert_eq!(charset_of_mime("text/plain"), None);
    }

    #[test]
    fn pictures_that_begin_as_texts_do() {
        let is_picture = |text: &str| known(text.as_bytes()).is_some();
        for picture in [
            "P6\n# by hand\n2 1\n255\nabcdef",
            "P5 2 1 255\nab",
            "P4\n8 1\nx",
            "P3\n1 1 255 1 2 3",
            "P1\n# comment\n2 2\n0 1\n1 0\n",
            "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\na",
        ] {
            assert!(is_picture(picture), "{picture}");
        }
        for text in [
            "P6 is the sixth of them",
            "P1 10 20 things",
            "P2: 10 20 30",
            "P3",
            "P7\nWIDTH is given",
        ] {
            assert!(!is_picture(text), "{text}");
        }
    }

    #[test]
    fn drawings_are_told_by_their_first_element() {
        for drawing in [
            "<svg xmlns='http://www.w3.org/2000/svg'/>",
            "\u{feff}<?xml version='1.0'?>\n<!-- made by hand -->\n<!DOCTYPE svg PUBLIC 'a' 'b'>\n<svg:svg>",
        ] {
            assert!(is_svg(drawing.as_bytes()), "{drawing}");
        }
        for text in ["<html><svg/></html>", "svg", "<!-- words", "a <svg/>", "<"] {
            assert!(!is_svg(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn pictures_of_one_container_are_told_apart_by_their_other_brands() {
        let mime = |bytes: &[u8]| known(bytes).map(|known| known.mime);
        let files: [(&[u8], &str); 5] = [
            (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "image/avif"),
            (b"\0\0\0\x18ftypmsf1\0\0\0\0avismsf1", "image/avif"),
            (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heic"),
            // Behind the names.
            (b"\0\0\0\x14ftypmif1\0\0\0\0heicavif", "image/heic"),
            (b"\xff\xff\xff\xffftypmif1", "image/heic"),
        ];
        for (bytes, expected) in files {
            assert_eq!(mime(bytes), Some(expected), "{bytes:?}");
        }
    }
}
