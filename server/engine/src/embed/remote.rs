//! Encoders behind an HTTP endpoint: OpenAI-compatible `/embeddings`, TEI `/embed`, and CLIP-like models that take
//! texts and pictures through the former.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::http::Call;
use super::{EmbedError, ImageEncoder, ImageFeatures, Pixels, Result, TextEncoder, normalize};

/// JSON spends about 12 bytes on a number.
const BYTES_A_NUMBER: usize = 32;
const JPEG_QUALITY: u8 = 90;

/// How an endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// `POST {url}/embeddings` with `model` and `input`.
    OpenAi,
    /// `POST {url}/embed` with `inputs`.
    Tei,
}

/// How a picture is put into the `input` of an OpenAI-compatible endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureShape {
    /// `"data:image/jpeg;base64,…"`, with `"modality": "image"` beside.
    #[default]
    DataUri,
    /// `{"image": "…base64…"}`
    Object,
}

/// An endpoint that fills one output.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The output segment of feature URIs. A model has one name for ever: another model, another name.
    pub output: String,
    pub protocol: Protocol,
    /// The address up to, and without, `/embeddings` or `/embed`.
    pub url: String,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub api_key: Option<SecretString>,
    pub dims: usize,
    /// It takes pictures too, into the same space as texts (CLIP, SigLIP).
    #[serde(default)]
    pub pictures: bool,
    #[serde(default)]
    pub picture_shape: PictureShape,
    /// Texts or pictures in one request.
    #[serde(default = "default_batch")]
    pub batch: usize,
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
}

fn default_batch() -> usize {
    32
}

fn default_timeout() -> u64 {
    30
}

impl Endpoint {
    /// Refuses a configuration that cannot work, with the reason.
    pub fn check(&self) -> Result<()> {
        let refuse = |reason: &str| {
            let text = format!(
                "the endpoint of `{}` is misconfigured: {reason}",
                self.output
            );
            Err(EmbedError::Unavailable(text))
        };
        if self.output.is_empty() || self.dims == 0 || self.batch == 0 {
            return refuse("output, dims and batch must not be empty or 0");
        }
        let url = Url::parse(&self.url);
        if !url.is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return refuse("the url must be one of http:// or https://");
        }
        if self.protocol == Protocol::OpenAi && self.model.is_none() {
            return refuse("an OpenAI-compatible endpoint needs the name of a model");
        }
        if self.protocol == Protocol::Tei && self.pictures {
            return refuse("pictures need an OpenAI-compatible endpoint");
        }
        Ok(())
    }

    fn address(&self) -> String {
        let path = match self.protocol {
            Protocol::OpenAi => "embeddings",
            Protocol::Tei => "embed",
        };
        format!("{}/{path}", self.url.trim_end_matches('/'))
    }

    fn body(&self, inputs: Vec<Value>, pictures: bool) -> Value {
        match self.protocol {
            Protocol::Tei => json!({"inputs": inputs, "normalize": true, "truncate": true}),
            Protocol::OpenAi => {
                let mut body = json!({
                    "model": self.model, "input": inputs, "encoding_format": "float",
                });
                if pictures && self.picture_shape == PictureShape::DataUri {
                    body["modality"] = json!("image");
                }
                body
            }
        }
    }
}

/// Texts, and pictures where the endpoint takes them, to unit vectors over HTTP.
pub struct RemoteEncoder {
    endpoint: Endpoint,
    client: reqwest::Client,
}

impl RemoteEncoder {
    pub fn new(endpoint: Endpoint, client: reqwest::Client) -> Result<Self> {
        endpoint.check()?;
        Ok(Self { endpoint, client })
    }

    async fn vectors(&self, inputs: Vec<Value>, pictures: bool) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(inputs.len());
        let mut inputs = inputs.into_iter().peekable();
        while inputs.peek().is_some() {
            let part: Vec<Value> = inputs.by_ref().take(self.endpoint.batch).collect();
            let count = part.len();
            let answer = self.ask(&self.endpoint.body(part, pictures), count).await?;
            vectors.extend(self.parse(&answer, count)?);
        }
        Ok(vectors)
    }

    async fn ask(&self, body: &Value, count: usize) -> Result<Vec<u8>> {
        let call = Call {
            address: &self.endpoint.address(),
            key: self.endpoint.api_key.as_ref(),
            timeout: Duration::from_secs(self.endpoint.timeout_seconds),
            most: 64 * 1024 + count * self.endpoint.dims * BYTES_A_NUMBER,
        };
        call.post(&self.client, "application/json", body.to_string().into())
            .await
    }

    fn parse(&self, answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>> {
        let address = self.endpoint.address();
        let unreadable = |error: serde_json::Error| {
            EmbedError::Failed(format!(
                "the answer of {address} is not understood: {error}"
            ))
        };
        let mut vectors: Vec<Vec<f32>> = match self.endpoint.protocol {
            Protocol::Tei => serde_json::from_slice(answer).map_err(unreadable)?,
            Protocol::OpenAi => {
                let answer: Answer = serde_json::from_slice(answer).map_err(unreadable)?;
                let mut rows = answer.data;
                // The order of the answer is free: each row says which input it is of.
                rows.sort_by_key(|row| row.index);
                rows.into_iter().map(|row| row.embedding).collect()
            }
        };
        if vectors.len() != count {
            return Err(EmbedError::Failed(format!(
                "{} gave {} vectors for {count} inputs",
                self.endpoint.address(),
                vectors.len()
            )));
        }
        for vector in &mut vectors {
            self.accept(vector)?;
        }
        Ok(vectors)
    }

    /// A vector of another size or with holes in it would spoil an index.
    fn accept(&self, vector: &mut [f32]) -> Result<()> {
        if vector.len() != self.endpoint.dims {
            return Err(EmbedError::Unavailable(format!(
                "{} gave a vector of {} dimensions; `{}` has {}",
                self.endpoint.address(),
                vector.len(),
                self.endpoint.output,
                self.endpoint.dims
            )));
        }
        if vector.iter().any(|value| !value.is_finite()) {
            let reason = format!(
                "{} gave a vector that is not finite",
                self.endpoint.address()
            );
            return Err(EmbedError::Failed(reason));
        }
        normalize(vector);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

#[async_trait]
impl TextEncoder for RemoteEncoder {
    fn output(&self) -> &str {
        &self.endpoint.output
    }

    fn dims(&self) -> usize {
        self.endpoint.dims
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>> {
        self.vectors(texts.into_iter().map(Value::from).collect(), false)
            .await
    }
}

#[async_trait]
impl ImageEncoder for RemoteEncoder {
    fn output(&self) -> &str {
        &self.endpoint.output
    }

    fn dims(&self) -> usize {
        self.endpoint.dims
    }

    async fn embed(&self, images: Vec<Pixels>) -> Result<Vec<ImageFeatures>> {
        let shape = self.endpoint.picture_shape;
        let inputs = super::fetch::blocking(move || {
            images
                .iter()
                .map(|image| picture(image, shape))
                .collect::<Result<Vec<_>>>()
        });
        let vectors = self.vectors(inputs.await?, true).await?;
        // An embedding endpoint names nothing in the picture.
        let features = vectors.into_iter().map(|vector| ImageFeatures {
            vector,
            labels: Vec::new(),
        });
        Ok(features.collect())
    }
}

/// A picture as the file that endpoints take. Blocking.
pub(crate) fn jpeg(image: &Pixels) -> Result<Vec<u8>> {
    image.check()?;
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY)
        .encode(
            &image.rgb,
            image.width,
            image.height,
            ExtendedColorType::Rgb8,
        )
        .map_err(|error| EmbedError::Invalid(format!("cannot send the picture: {error}")))?;
    Ok(jpeg)
}

/// A picture as the endpoint wants it. Blocking.
fn picture(image: &Pixels, shape: PictureShape) -> Result<Value> {
    let packed = STANDARD.encode(jpeg(image)?);
    Ok(match shape {
        PictureShape::DataUri => json!(format!("data:image/jpeg;base64,{packed}")),
        PictureShape::Object => json!({"image": packed}),
    })
}
