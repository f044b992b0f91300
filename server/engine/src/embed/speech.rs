//! A speech model behind an OpenAI-compatible `/audio/transcriptions`.

use std::time::Duration;

use bytes::Bytes;
use loupe_wire::reading;
use secrecy::SecretString;
use serde::Deserialize;

use super::http::{Call, check_address};
use super::{EmbedError, Result};

/// Bytes of one answer.
const MOST: usize = 8 << 20;

/// The endpoint of a speech model.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transcription {
    /// The address up to, and without, `/audio/transcriptions`.
    pub url: String,
    pub model: String,
    #[serde(default)]
    pub api_key: Option<SecretString>,
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
}

fn default_timeout() -> u64 {
    600
}

/// What was said, and when.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spoken {
    pub text: String,
    /// Start and end in seconds, with the words. Empty where the endpoint tells no times.
    pub pieces: Vec<(f64, f64, String)>,
}

/// Asks one speech model.
pub struct Transcriber {
    config: Transcription,
    client: reqwest::Client,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
    #[serde(default)]
    segments: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    start: f64,
    end: f64,
    text: String,
}

impl Transcriber {
    pub fn new(config: Transcription, client: reqwest::Client) -> Result<Self> {
        check_address(&config.url, "the speech model")?;
        Ok(Self { config, client })
    }

    /// What is said in a WAV file. `language` is a code such as `en`.
    pub async fn transcribe(&self, wav: Bytes, language: Option<&str>) -> Result<Spoken> {
        let address = format!(
            "{}/audio/transcriptions",
            self.config.url.trim_end_matches('/')
        );
        let call = Call {
            address: &address,
            key: self.config.api_key.as_ref(),
            timeout: Duration::from_secs(self.config.timeout_seconds),
            most: MOST,
        };
        let mut fields = vec![
            ("model", self.config.model.as_str()),
            ("response_format", "verbose_json"),
        ];
        fields.extend(language.map(|language| ("language", language)));
        let (kind, body) = form(&fields, &wav);
        let answer = call.post(&self.client, &kind, body).await?;
        let answer: Answer = reading::from_slice(&answer).map_err(|error| {
            EmbedError::Failed(format!(
                "the answer of {address} is not understood: {error}"
            ))
        })?;
        let pieces = answer.segments.into_iter();
        Ok(Spoken {
            text: answer.text.trim().to_owned(),
            pieces: pieces
                .map(|piece| (piece.start, piece.end, piece.text.trim().to_owned()))
                .collect(),
        })
    }
}

/// A form with one file. The boundary is chance: the sound cannot hold it by design.
fn form(fields: &[(&str, &str)], wav: &[u8]) -> (String, Bytes) {
    let boundary = format!("loupe-{:032x}", rand::random::<u128>());
    let mut body = Vec::with_capacity(wav.len() + 1024);
    for (name, value) in fields {
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        body.extend(
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            )
            .bytes(),
        );
    }
    body.extend(
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.wav\"\r\n\
             Content-Type: audio/wav\r\n\r\n"
        )
        .bytes(),
    );
    body.extend(wav);
    body.extend(format!("\r\n--{boundary}--\r\n").bytes());
    (
        format!("multipart/form-data; boundary={boundary}"),
        body.into(),
    )
}
