//! Which kind of sound or film bytes are, by their marks alone.

/// What a recording is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recording {
    pub mime: &'static str,
    /// The name of ffmpeg's reader. It is given to ffmpeg, so that no playlist is taken for a film.
    pub reader: &'static str,
    pub film: bool,
}

const fn sound(mime: &'static str, reader: &'static str) -> Recording {
    Recording {
        mime,
        reader,
        film: false,
    }
}

const fn film(mime: &'static str, reader: &'static str) -> Recording {
    Recording {
        mime,
        reader,
        film: true,
    }
}

/// The kind of a recording, when its mark is known.
pub fn recording(bytes: &[u8]) -> Option<Recording> {
    const MARKS: &[(&[u8], Recording)] = &[
        (b"OggS", sound("audio/ogg", "ogg")),
        (b"ID3", sound("audio/mpeg", "mp3")),
        (b"fLaC", sound("audio/flac", "flac")),
        (b"#!AMR", sound("audio/amr", "amr")),
        (b"\x1aE\xdf\xa3", film("video/x-matroska", "matroska")),
        (b"FLV\x01", film("video/x-flv", "flv")),
        (b"\0\0\x01\xba", film("video/mpeg", "mpeg")),
        (
            b"0&\xb2u\x8ef\xcf\x11\xa6\xd9\0\xaa\0b\xcel",
            film("video/x-ms-asf", "asf"),
        ),
    ];
    if let Some((_, recording)) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Some(match recording.mime {
            "video/x-matroska" if super::sniff::says_webm(bytes) => film("video/webm", "matroska"),
            _ => *recording,
        });
    }
    let kind = bytes.get(8..12)?;
    match (&bytes[..4], kind) {
        (b"RIFF", b"WAVE") => return Some(sound("audio/wav", "wav")),
        (b"RIFF", b"AVI ") => return Some(film("video/x-msvideo", "avi")),
        (b"FORM", b"AIFF" | b"AIFC") => return Some(sound("audio/aiff", "aiff")),
        _ => {}
    }
    match (bytes.get(4..8)?, kind) {
        (b"ftyp", b"heic" | b"heix" | b"mif1" | b"msf1" | b"avif" | b"avis") => return None,
        (b"ftyp", b"M4A " | b"M4B ") => return Some(sound("audio/mp4", "mov")),
        (b"ftyp", b"qt  ") => return Some(film("video/quicktime", "mov")),
        (b"ftyp", _) => return Some(film("video/mp4", "mov")),
        (b"moov" | b"mdat" | b"wide", _) => return Some(film("video/quicktime", "mov")),
        _ => {}
    }
    if is_transport_stream(bytes) {
        return Some(film("video/mp2t", "mpegts"));
    }
    frames(bytes)
}

/// Packets of 188 bytes, each with its mark; those of cameras and discs (M2TS) have four bytes of time in front of it.
fn is_transport_stream(bytes: &[u8]) -> bool {
    let marked = |first: usize, each: usize| {
        (0..4).all(|packet| bytes.get(first + packet * each) == Some(&0x47))
    };
    marked(0, 188) || marked(4, 192)
}

/// Sounds without a container begin with the mark of their first frame.
fn frames(bytes: &[u8]) -> Option<Recording> {
    let [0xff, second, third, ..] = bytes else {
        return None;
    };
    // ADTS: layer bits are 0. MPEG audio: layer 3 and a bit rate that exists.
    if second & 0xf6 == 0xf0 {
        return Some(sound("audio/aac", "aac"));
    }
    let rate = third >> 4;
    (second & 0xe6 == 0xe2 && rate != 0 && rate != 0xf).then_some(sound("audio/mpeg", "mp3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transport_streams_are_told_by_the_marks_of_their_packets() {
        for (first, each) in [(0, 188), (4, 192)] {
            let mut stream = vec![9; 800];
            for packet in 0..4 {
                stream[first + packet * each] = 0x47;
            }
            let found = recording(&stream).map(|found| found.reader);
            assert_eq!(found, Some("mpegts"), "{each}");
            stream[first + 3 * each] = 0;
            assert_eq!(recording(&stream), None, "{each}");
        }
    }

    #[test]
    fn recordings_are_told_by_their_marks() {
        let reader = |bytes: &[u8]| recording(bytes).map(|found| (found.reader, found.film));
        assert_eq!(reader(b"\0\0\0\x18ftypisom\0\0"), Some(("mov", true)));
        assert_eq!(reader(b"\0\0\0\x18ftypM4A \0\0"), Some(("mov", false)));
        assert_eq!(reader(b"\0\0\0\x18ftypavif\0\0"), None, "a picture");
        assert_eq!(reader(b"RIFF\0\0\0\0WAVEfmt "), Some(("wav", false)));
        assert_eq!(
            reader(b"\xff\xfb\x90\x64\0\0\0\0\0\0\0\0"),
            Some(("mp3", false))
        );
        assert_eq!(
            reader(b"\xff\xf1\x50\x80\0\0\0\0\0\0\0\0"),
            Some(("aac", false))
        );
        assert_eq!(
            reader(b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01"),
            None,
            "a picture"
        );
        assert_eq!(
            reader(b"#EXTM3U\n#EXT-X-TARGETDURATION:10"),
            None,
            "a playlist"
        );
        assert_eq!(reader(b"\xff\xfe"), None, "a text");
    }
}
