//! How well texts answer a query, judged pair by pair: a cross-encoder in process, or one behind an endpoint.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use loupe_wire::reading;
use rten::{Model, ModelOptions, NodeId, RunOptions, Value as Tensor};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use tokenizers::{Tokenizer, TruncationParams};

use super::fetch::Files;
use super::http::{Call, check_address};
use super::workers::{Lane, Workers};
use super::{EmbedError, Result};

/// Tokens of a query and a text together; the model knows no more.
const MAX_TOKENS: usize = 512;
/// Pairs handed to a worker at once: few, so that all cores have some.
const PART_PAIRS: usize = 8;

/// Judges texts.
#[async_trait]
pub trait Reranker: Send + Sync + 'static {
    /// The name that stages call it by.
    fn name(&self) -> &str;
    /// Whether it answers from another machine.
    fn is_remote(&self) -> bool {
        false
    }
    /// One score a text, in the order given; higher is better, 0 to 1.
    async fn scores(&self, query: &str, texts: Vec<String>) -> Result<Vec<f64>>;
}

/// What a worker gets: the query, and texts.
type Pairs = (Arc<str>, Vec<String>);

/// A BERT with one output, in process.
pub struct CrossEncoder {
    name: String,
    workers: Workers<Pairs, Vec<f64>>,
}

impl CrossEncoder {
    /// Loads `model.onnx` and `tokenizer.json`. Blocking, a second or so.
    pub fn load(name: &str, files: &Files) -> Result<Self> {
        let judge = Judge::load(files)?;
        let workers = Workers::start("rerank", move |(query, texts): Pairs, options| {
            judge.scores(&query, &texts, &options)
        })?;
        Ok(Self {
            name: name.to_owned(),
            workers,
        })
    }
}

#[async_trait]
impl Reranker for CrossEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    async fn scores(&self, query: &str, texts: Vec<String>) -> Result<Vec<f64>> {
        let query: Arc<str> = query.into();
        let mut order: Vec<(usize, String)> = texts.into_iter().enumerate().collect();
        // Texts of a length together: what is shorter than the longest of its part is padded.
        order.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        let mut scores = vec![0.0; order.len()];
        let mut pending = Vec::new();
        let mut order = order.into_iter().peekable();
        while order.peek().is_some() {
            let (places, part): (Vec<_>, Vec<_>) = order.by_ref().take(PART_PAIRS).unzip();
            let part = (Arc::clone(&query), part);
            pending.push((places, self.workers.submit(Lane::Bulk, part).await?));
        }
        for (places, part) in pending {
            for (place, score) in places.into_iter().zip(part.wait().await?) {
                scores[place] = score;
            }
        }
        Ok(scores)
    }
}

struct Judge {
    tokenizer: Tokenizer,
    model: Model,
    /// Tokens, which of the two texts each is of, and which of them are there.
    inputs: [NodeId; 3],
    output: NodeId,
}

impl Judge {
    fn load(files: &Files) -> Result<Self> {
        let model = ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load(files.read("model.onnx")?)
            .map_err(unreadable)?;
        let node = |name: &str| model.node_id(name).map_err(unreadable);
        let inputs = [
            node("input_ids")?,
            node("token_type_ids")?,
            node("attention_mask")?,
        ];
        let output = node("logits")?;
        let mut tokenizer =
            Tokenizer::from_bytes(files.read("tokenizer.json")?).map_err(unreadable)?;
        let truncation = TruncationParams {
            max_length: MAX_TOKENS,
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(unreadable)?;
        tokenizer.with_padding(None);
        Ok(Self {
            tokenizer,
            model,
            inputs,
            output,
        })
    }

    fn scores(&self, query: &str, texts: &[String], options: &RunOptions) -> Result<Vec<f64>> {
        let mut rows = Vec::with_capacity(texts.len());
        for text in texts {
            let pair = self
                .tokenizer
                .encode_fast((query, text.as_str()), true)
                .map_err(|e| EmbedError::Invalid(format!("cannot split the text: {e}")))?;
            rows.push(pair);
        }
        let (batch, width) = (
            rows.len(),
            rows.iter().map(|row| row.len()).max().unwrap_or(0),
        );
        let mut values = [
            vec![0_i32; batch * width],
            vec![0_i32; batch * width],
            vec![0_i32; batch * width],
        ];
        for (row, pair) in rows.iter().enumerate() {
            let tokens = pair.get_ids().iter().zip(pair.get_type_ids());
            for (column, (id, kind)) in tokens.enumerate() {
                let at = row * width + column;
                // A vocabulary is far smaller than 2^31, and there are two kinds.
                values[0][at] = *id as i32;
                values[1][at] = *kind as i32;
                values[2][at] = 1;
            }
        }
        let mut inputs = Vec::with_capacity(3);
        for (node, values) in self.inputs.iter().zip(values) {
            let tensor = Tensor::from_shape([batch, width], values).map_err(failed)?;
            inputs.push((*node, tensor.into()));
        }
        let [logits] = self
            .model
            .run_n(inputs, [self.output], Some(options.clone()))
            .map_err(failed)?;
        let (_, logits) = logits.into_shape_vec::<f32, 2>().map_err(failed)?;
        Ok(logits.into_iter().map(sigmoid).collect())
    }
}

fn sigmoid(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

fn unreadable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unavailable(format!("the reranker cannot be read: {error}"))
}

fn failed(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Failed(error.to_string())
}

/// How a reranker's endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerankProtocol {
    /// `POST {url}/rerank` with `query` and `texts`.
    Tei,
    /// `POST {url}/rerank` with `model`, `query` and `documents`, as Cohere, Jina and vLLM have it.
    OpenAi,
}

/// The endpoint of one reranker.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankEndpoint {
    /// What stages call it, in `inference_name`.
    pub name: String,
    pub protocol: RerankProtocol,
    /// The address up to, and without, `/rerank`.
    pub url: String,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub api_key: Option<SecretString>,
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
}

fn default_timeout() -> u64 {
    30
}

/// A reranker over HTTP.
pub struct RemoteReranker {
    endpoint: RerankEndpoint,
    client: reqwest::Client,
}

#[derive(Deserialize)]
struct Judged {
    index: usize,
    #[serde(alias = "relevance_score")]
    score: f64,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Judged>,
}

impl RemoteReranker {
    pub fn new(endpoint: RerankEndpoint, client: reqwest::Client) -> Result<Self> {
        check_address(&endpoint.url, &format!("the reranker `{}`", endpoint.name))?;
        Ok(Self { endpoint, client })
    }
}

#[async_trait]
impl Reranker for RemoteReranker {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn is_remote(&self) -> bool {
        true
    }

    async fn scores(&self, query: &str, texts: Vec<String>) -> Result<Vec<f64>> {
        let count = texts.len();
        let address = format!("{}/rerank", self.endpoint.url.trim_end_matches('/'));
        let call = Call {
            address: &address,
            key: self.endpoint.api_key.as_ref(),
            timeout: Duration::from_secs(self.endpoint.timeout_seconds),
            most: 64 * 1024 + count * 1024,
        };
        let tei = self.endpoint.protocol == RerankProtocol::Tei;
        let body = if tei {
            json!({"query": query, "texts": texts, "truncate": true})
        } else {
            json!({"model": self.endpoint.model, "query": query, "documents": texts, "return_documents": false})
        };
        let answer = call
            .post(&self.client, "application/json", body.to_string().into())
            .await?;
        let judged: Vec<Judged> = if tei {
            reading::from_slice(&answer)
        } else {
            reading::from_slice(&answer).map(|answer: Results| answer.results)
        }
        .map_err(|e| {
            EmbedError::Failed(format!("the answer of {address} is not understood: {e}"))
        })?;
        let mut scores = vec![f64::NAN; count];
        for one in judged {
            if let Some(score) = scores.get_mut(one.index) {
                *score = one.score;
            }
        }
        if scores.iter().any(|score| !score.is_finite()) {
            let reason = format!("{address} did not judge each of {count} texts");
            return Err(EmbedError::Failed(reason));
        }
        Ok(scores)
    }
}
