//! What ffprobe tells of a recording.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What is known of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    pub seconds: f64,
    pub video: Option<Video>,
    pub audio: Option<String>,
    pub title: Option<String>,
    pub artist: Option<String>,
}

/// The pictures of a film.
#[derive(Debug, Clone, PartialEq)]
pub struct Video {
    pub codec: String,
    pub width: u32,
    pub height: u32,
}

/// The answer of ffprobe, as far as it is of use.
#[derive(Deserialize)]
pub(super) struct Probe {
    #[serde(default)]
    streams: Vec<Stream>,
    #[serde(default)]
    format: Container,
}

#[derive(Deserialize, Default)]
struct Container {
    duration: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Stream {
    codec_type: Option<String>,
    codec_name: Option<String>,
    #[serde(default)]
    width: u32,
    #[serde(default)]
    height: u32,
    duration: Option<String>,
    #[serde(default)]
    disposition: BTreeMap<String, i64>,
}

impl Probe {
    pub fn facts(self) -> Facts {
        let of = |kind: &str| {
            let streams = self.streams.iter();
            streams
                .filter(|stream| stream.codec_type.as_deref() == Some(kind))
                // The picture on the cover of a record is no film.
                .find(|stream| stream.disposition.get("attached_pic") != Some(&1))
        };
        let codec = |stream: &Stream| stream.codec_name.clone().unwrap_or_default();
        let (video, audio) = (of("video"), of("audio"));
        let duration = self.format.duration.as_ref();
        let duration = duration
            .or_else(|| video.or(audio)?.duration.as_ref())
            .and_then(|text| text.parse().ok());
        let tag = |name: &str| {
            let mut tags = self.format.tags.iter();
            tags.find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        Facts {
            seconds: duration
                .filter(|seconds: &f64| seconds.is_finite())
                .unwrap_or(0.0),
            video: video.map(|stream| Video {
                codec: codec(stream),
                width: stream.width,
                height: stream.height,
            }),
            audio: audio.map(codec),
            title: tag("title"),
            artist: tag("artist"),
        }
    }
}
