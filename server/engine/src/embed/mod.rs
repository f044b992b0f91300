//! Texts and images to vectors, behind two traits.
//!
//! An embedding space is (model, file hash, pooling, precision); vectors of two spaces never mix in an index.

mod bert;
mod bert_graph;
pub mod catalog;
mod efficientnet;
mod efficientnet_graph;
pub mod fetch;
pub(crate) mod http;
mod hub;
mod language;
mod onnx;
mod pth;
pub mod registry;
pub mod remote;
pub mod rerank;
mod speech;
mod wheel;
mod workers;

use std::sync::Arc;

use async_trait::async_trait;

pub use fetch::{OnProgress, Progress};
pub use language::{
    Answered, Language, LanguageModel, Question, Said, ToolCall, Turn, Usage, object_in,
};
pub use registry::{ModelConfig, ModelKind, ModelStatus, Models};
pub use remote::{Endpoint, PictureShape, Protocol};
pub use rerank::{RerankEndpoint, RerankProtocol, Reranker};
pub use speech::{Spoken, Transcriber, Transcription};

#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model is not installed or not configured; the text says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// The input cannot be embedded; safe to show and not worth a retry.
    #[error("{0}")]
    Invalid(String),
    /// The endpoint does not let this server in, or its balance is used up: not worth a retry until somebody sees to it.
    #[error("{0}")]
    Refused(String),
    /// Worth a retry.
    #[error("the model failed: {0}")]
    Failed(String),
}

pub type Result<T> = std::result::Result<T, EmbedError>;

/// Texts to unit vectors. Calls are batched and run off the async runtime.
#[async_trait]
pub trait TextEncoder: Send + Sync + 'static {
    /// The output segment of feature URIs that this encoder fills, such as `all_minilm_l6_v2_v1`.
    fn output(&self) -> &str;
    fn dims(&self) -> usize;
    /// One vector a text, in the order given. Any number of texts; empty texts get the vector of "".
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>>;
}

/// What a picture gives: a unit vector and labels, best first, with probabilities.
#[derive(Debug, Clone, Default)]
pub struct ImageFeatures {
    pub vector: Vec<f32>,
    pub labels: Vec<(String, f32)>,
}

/// RGB pixels, row by row, 3 bytes a pixel.
#[derive(Debug, Clone)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
    pub rgb: Vec<u8>,
}

impl Pixels {
    /// Refuses a picture without pixels or with another number of bytes than its size asks for.
    pub(crate) fn check(&self) -> Result<()> {
        let pixels = u64::from(self.width) * u64::from(self.height);
        if pixels == 0 || pixels.checked_mul(3) != Some(self.rgb.len() as u64) {
            return Err(EmbedError::Invalid(format!(
                "{} bytes are no picture of {} x {} pixels",
                self.rgb.len(),
                self.width,
                self.height
            )));
        }
        Ok(())
    }
}

#[async_trait]
pub trait ImageEncoder: Send + Sync + 'static {
    /// The output segment of feature URIs, such as `efficientnet_lite0_v1`.
    fn output(&self) -> &str;
    fn dims(&self) -> usize;
    async fn embed(&self, images: Vec<Pixels>) -> Result<Vec<ImageFeatures>>;
}

/// Where encoders come from: asked by the output segment of a feature URI, loaded on first use.
#[async_trait]
pub trait Encoders: Send + Sync + 'static {
    /// The text encoder whose [`TextEncoder::output`] is `output`, else [`EmbedError::Unavailable`].
    async fn text(&self, output: &str) -> Result<Arc<dyn TextEncoder>>;
    /// The image encoder whose [`ImageEncoder::output`] is `output`, else [`EmbedError::Unavailable`].
    async fn image(&self, output: &str) -> Result<Arc<dyn ImageEncoder>>;

    /// The language model that describes pictures and fills in structures, where one is configured.
    fn language(&self) -> Option<Arc<LanguageModel>> {
        None
    }

    /// The reranker of this name, else the built-in one: [`Reranker::name`] tells which it is.
    async fn reranker(&self, name: &str) -> Result<Arc<dyn Reranker>> {
        Err(EmbedError::Unavailable(format!(
            "there is no reranker `{name}`"
        )))
    }

    /// The speech model that writes down what is said, where one is configured.
    fn speech(&self) -> Option<Arc<Transcriber>> {
        None
    }
}

/// The pixels of a picture of any format, within limits of its side and of the memory that decoding takes.
///
/// # Errors
/// Why it cannot be read, in words that are safe to show.
pub fn decode_picture(bytes: &[u8], side: u32, memory: u64) -> std::result::Result<Pixels, String> {
    let told = |error: image::ImageError| error.to_string();
    let reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.map_err(|error| error.to_string())?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(side);
    limits.max_image_height = Some(side);
    limits.max_alloc = Some(memory);
    reader.limits(limits);
    let rgb = reader.decode().map_err(told)?.to_rgb8();
    Ok(Pixels {
        width: rgb.width(),
        height: rgb.height(),
        rgb: rgb.into_raw(),
    })
}

/// Scales a vector to length 1; a zero vector stays as it is.
pub fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
}
