//! Texts to vectors in process: the BERT family by rten, the tokenizer of the reference implementation.

use std::sync::Arc;

use async_trait::async_trait;
use rten::{Model, ModelOptions, NodeId, RunOptions, Value};
use tokenizers::{Tokenizer, TruncationParams};

use super::bert_graph::{self, Config, HIDDEN, MASK, POSITIONS, TOKENS};
use super::fetch::Files;
use super::workers::{Lane, Workers};
use super::{EmbedError, Result, TextEncoder};

/// The reference cuts here too; more would be another embedding space.
const MAX_TOKENS: usize = 256;
/// Texts of one call that are few enough to be a query.
const QUERY_TEXTS: usize = 2;
/// Texts handed to a worker at once: enough to sort by length, few enough to share among cores.
const PART_TEXTS: usize = 64;
/// Padded tokens of one run. More only leaves the caches.
const RUN_TOKENS: usize = 1024;
/// A beginning this long has 256 tokens, but for texts that are mostly white space or one word.
const LONG_TEXT: usize = 16 * 1024;
/// What a masked position adds to its score; the share of such a position is exactly 0.
const MASKED: f32 = -1.0e9;

/// A sentence encoder: mean of the token vectors, of length 1.
pub struct BertEncoder {
    output: String,
    dims: usize,
    workers: Workers<Vec<String>, Vec<Vec<f32>>>,
}

impl BertEncoder {
    /// Loads `model.safetensors`, `config.json` and `tokenizer.json`. Blocking, a second or so.
    pub fn load(output: &str, files: &Files) -> Result<Self> {
        let bert = Bert::load(files)?;
        let dims = bert.config.hidden_size;
        let workers = Workers::start("text", move |texts: Vec<String>, options| {
            bert.embed(&texts, &options)
        })?;
        Ok(Self {
            output: output.to_owned(),
            dims,
            workers,
        })
    }
}

#[async_trait]
impl TextEncoder for BertEncoder {
    fn output(&self) -> &str {
        &self.output
    }

    fn dims(&self) -> usize {
        self.dims
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>> {
        if texts.len() <= QUERY_TEXTS {
            return self.workers.submit(Lane::Query, texts).await?.wait().await;
        }
        let mut order: Vec<(usize, String)> = texts.into_iter().enumerate().collect();
        // Longest first: the last parts are short, so the cores end together.
        order.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        let mut vectors = vec![Vec::new(); order.len()];
        let mut pending = Vec::new();
        let mut order = order.into_iter().peekable();
        while order.peek().is_some() {
            let (places, part): (Vec<_>, Vec<_>) = order.by_ref().take(PART_TEXTS).unzip();
            pending.push((places, self.workers.submit(Lane::Bulk, part).await?));
        }
        for (places, part) in pending {
            for (place, vector) in places.into_iter().zip(part.wait().await?) {
                vectors[place] = vector;
            }
        }
        Ok(vectors)
    }
}

struct Bert {
    config: Config,
    tokenizer: Tokenizer,
    model: Arc<Model>,
    tokens: NodeId,
    positions: NodeId,
    mask: NodeId,
    hidden: NodeId,
}

impl Bert {
    fn load(files: &Files) -> Result<Self> {
        let config = Config::read(&files.read("config.json")?)?;
        let graph = bert_graph::write(&config, &files.read("model.safetensors")?)?;
        let model = ModelOptions::with_all_ops()
            .prepack_weights(true)
            .load(graph)
            .map_err(unreadable)?;
        let node = |name: &str| model.node_id(name).map_err(unreadable);
        let (tokens, positions) = (node(TOKENS)?, node(POSITIONS)?);
        let (mask, hidden) = (node(MASK)?, node(HIDDEN)?);
        let mut tokenizer =
            Tokenizer::from_bytes(files.read("tokenizer.json")?).map_err(unreadable)?;
        let truncation = TruncationParams {
            max_length: MAX_TOKENS.min(config.max_position_embeddings),
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(unreadable)?;
        tokenizer.with_padding(None);
        Ok(Self {
            config,
            tokenizer,
            model: Arc::new(model),
            tokens,
            positions,
            mask,
            hidden,
        })
    }

    fn embed(&self, texts: &[String], options: &RunOptions) -> Result<Vec<Vec<f32>>> {
        let mut rows = Vec::with_capacity(texts.len());
        for (place, text) in texts.iter().enumerate() {
            rows.push((place, self.token_ids(text)?));
        }
        rows.sort_by_key(|(_, ids)| ids.len());
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let (run, later) = rest.split_at(run_length(rest));
            let ids: Vec<&[u32]> = run.iter().map(|(_, ids)| ids.as_slice()).collect();
            for ((place, _), vector) in run.iter().zip(self.run(&ids, options)?) {
                vectors[*place] = vector;
            }
            rest = later;
        }
        Ok(vectors)
    }

    /// Token ids as the reference makes them. Of a long text only the beginning is looked at, as the rest would be
    /// cut off anyway.
    fn token_ids(&self, text: &str) -> Result<Vec<u32>> {
        let beginning = beginning(text);
        let ids = self.encode(beginning)?;
        if beginning.len() == text.len() || ids.len() >= MAX_TOKENS {
            return Ok(ids);
        }
        self.encode(text)
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self
            .tokenizer
            .encode_fast(text, true)
            .map_err(|error| EmbedError::Invalid(format!("cannot split the text: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    fn run(&self, rows: &[&[u32]], options: &RunOptions) -> Result<Vec<Vec<f32>>> {
        let batch = rows.len();
        let width = rows.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let mut tokens = vec![0_i32; batch * width];
        let mut mask = vec![MASKED; batch * width];
        for (row, ids) in rows.iter().enumerate() {
            for (column, id) in ids.iter().enumerate() {
                // A vocabulary is far smaller than 2^31.
                tokens[row * width + column] = *id as i32;
                mask[row * width + column] = 0.0;
            }
        }
        let positions: Vec<i32> = (0..width as i32).collect();
        let tokens = Value::from_shape([batch, width], tokens).map_err(failed)?;
        let positions = Value::from_shape([width], positions).map_err(failed)?;
        let mask = Value::from_shape([batch, 1, 1, width], mask).map_err(failed)?;
        let inputs = vec![
            (self.tokens, tokens.into()),
            (self.positions, positions.into()),
            (self.mask, mask.into()),
        ];
        let [hidden] = self
            .model
            .run_n(inputs, [self.hidden], Some(options.clone()))
            .map_err(failed)?;
        let ([_, _, dims], hidden) = hidden.into_shape_vec::<f32, 3>().map_err(failed)?;
        let texts = rows.iter().zip(hidden.chunks_exact(width * dims));
        Ok(texts
            .map(|(ids, states)| pool(&states[..ids.len() * dims], dims))
            .collect())
    }
}

/// How many of the rows, shortest first, one run takes within its budget of padded tokens.
fn run_length(rows: &[(usize, Vec<u32>)]) -> usize {
    let fits =
        |(count, (_, ids)): &(usize, &(usize, Vec<u32>))| (count + 1) * ids.len() <= RUN_TOKENS;
    rows.iter().enumerate().take_while(fits).count().max(1)
}

/// The text up to a white space near [`LONG_TEXT`], where no word is cut.
fn beginning(text: &str) -> &str {
    if text.len() <= LONG_TEXT {
        return text;
    }
    let end = text.floor_char_boundary(LONG_TEXT);
    match text[..end].rfind(char::is_whitespace) {
        Some(space) => &text[..space],
        None => text,
    }
}

/// The mean of the token vectors, scaled to length 1.
fn pool(states: &[f32], dims: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f32; dims];
    for state in states.chunks_exact(dims) {
        sum.iter_mut()
            .zip(state)
            .for_each(|(total, value)| *total += value);
    }
    super::normalize(&mut sum);
    sum
}

fn unreadable(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Unavailable(format!("the text model cannot be read: {error}"))
}

fn failed(error: impl std::fmt::Display) -> EmbedError {
    EmbedError::Failed(error.to_string())
}
