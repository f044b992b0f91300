//! The BERT graph (BERT, MiniLM, BGE, E5, GTE) as ONNX bytes, written from the official safetensors.

use loupe_wire::reading;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use super::onnx::{Attr, Dim, Graph};
use super::{EmbedError, Result};

pub(super) const TOKENS: &str = "token_ids";
pub(super) const POSITIONS: &str = "positions";
pub(super) const MASK: &str = "mask";
pub(super) const HIDDEN: &str = "hidden";

/// The part of `config.json` that shapes the graph.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub max_position_embeddings: usize,
    pub layer_norm_eps: f32,
    pub hidden_act: String,
    #[serde(default = "absolute")]
    pub position_embedding_type: String,
}

fn absolute() -> String {
    "absolute".to_owned()
}

impl Config {
    pub fn read(json: &[u8]) -> Result<Self> {
        let config: Self =
            reading::from_slice(json).map_err(|error| broken(format!("config.json: {error}")))?;
        if config.hidden_act != "gelu" || config.position_embedding_type != "absolute" {
            return Err(broken(format!(
                "only BERT with gelu and absolute positions is supported, not {} and {}",
                config.hidden_act, config.position_embedding_type
            )));
        }
        let heads = config.num_attention_heads;
        if heads == 0 || !config.hidden_size.is_multiple_of(heads) {
            return Err(broken(format!(
                "{heads} attention heads do not divide the model"
            )));
        }
        Ok(config)
    }
}

fn broken(reason: String) -> EmbedError {
    EmbedError::Unavailable(format!("the text model cannot be read: {reason}"))
}

/// Writes the graph: token ids `[batch, tokens]`, positions `[tokens]` and an additive mask
/// `[batch, 1, 1, tokens]` in, hidden states `[batch, tokens, hidden]` out.
pub(super) fn write(config: &Config, weights: &[u8]) -> Result<Vec<u8>> {
    let tensors = SafeTensors::deserialize(weights).map_err(|error| broken(error.to_string()))?;
    let prefix = match tensors.tensor("embeddings.word_embeddings.weight") {
        Ok(_) => "",
        Err(_) => "bert.",
    };
    let mut writer = Writer {
        graph: Graph::new("bert"),
        tensors,
        prefix,
        config,
    };
    let mut hidden = writer.embeddings()?;
    for layer in 0..config.num_hidden_layers {
        let path = format!("encoder.layer.{layer}");
        let mixed = writer.attention(&path, &hidden)?;
        hidden = writer.norm(
            &format!("{path}.attention.output.LayerNorm"),
            &mixed,
            &hidden,
        )?;
        let wide = writer.linear(&format!("{path}.intermediate.dense"), &hidden)?;
        let wide = writer.graph.op("Gelu", &[&wide], &[]);
        let narrow = writer.linear(&format!("{path}.output.dense"), &wide)?;
        hidden = writer.norm(&format!("{path}.output.LayerNorm"), &narrow, &hidden)?;
    }
    writer.graph.named_op("Identity", HIDDEN, &[&hidden], &[]);
    let dims = [
        Dim::Named("batch"),
        Dim::Named("tokens"),
        Dim::Fixed(config.hidden_size),
    ];
    writer.graph.output(HIDDEN, &dims);
    Ok(writer.graph.into_bytes())
}

struct Writer<'a> {
    graph: Graph,
    tensors: SafeTensors<'a>,
    prefix: &'static str,
    config: &'a Config,
}

impl Writer<'_> {
    fn read(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>)> {
        let full = format!("{}{name}", self.prefix);
        let view = self
            .tensors
            .tensor(&full)
            .map_err(|error| broken(format!("{full}: {error}")))?;
        if view.dtype() != Dtype::F32 {
            return Err(broken(format!(
                "{full} is {:?}, not 32-bit floats",
                view.dtype()
            )));
        }
        Ok((
            view.shape().to_vec(),
            bytemuck::pod_collect_to_vec(view.data()),
        ))
    }

    fn vector(&mut self, name: &str, scale: f32) -> Result<String> {
        let (shape, mut values) = self.read(name)?;
        values.iter_mut().for_each(|value| *value *= scale);
        Ok(self.graph.floats(name, &shape, &values))
    }

    /// A weight stored as `[out, in]`, turned so that rows multiply it from the left.
    fn matrix(&mut self, name: &str, scale: f32) -> Result<String> {
        let (shape, values) = self.read(name)?;
        let [rows, columns] = shape[..] else {
            return Err(broken(format!("{name} is not a matrix")));
        };
        let mut turned = Vec::with_capacity(values.len());
        for column in 0..columns {
            turned.extend((0..rows).map(|row| values[row * columns + column] * scale));
        }
        Ok(self.graph.floats(name, &[columns, rows], &turned))
    }

    fn embeddings(&mut self) -> Result<String> {
        let (shape, words) = self.read("embeddings.word_embeddings.weight")?;
        let words = self.graph.floats("words", &shape, &words);
        let (shape, mut places) = self.read("embeddings.position_embeddings.weight")?;
        let (_, kinds) = self.read("embeddings.token_type_embeddings.weight")?;
        // Every text is of the first kind, so that row is a constant of every position.
        let width = self.config.hidden_size;
        for place in places.chunks_exact_mut(width) {
            place
                .iter_mut()
                .zip(&kinds)
                .for_each(|(value, kind)| *value += kind);
        }
        let places = self.graph.floats("places", &shape, &places);
        let batch = [Dim::Named("batch"), Dim::Named("tokens")];
        let tokens = self.graph.input_ints(TOKENS, &batch);
        let positions = self.graph.input_ints(POSITIONS, &[Dim::Named("tokens")]);
        let mask = [
            Dim::Named("batch"),
            Dim::Fixed(1),
            Dim::Fixed(1),
            Dim::Named("tokens"),
        ];
        self.graph.input_floats(MASK, &mask);
        let words = self
            .graph
            .op("Gather", &[&words, &tokens], &[Attr::Int("axis", 0)]);
        let places = self
            .graph
            .op("Gather", &[&places, &positions], &[Attr::Int("axis", 0)]);
        self.norm("embeddings.LayerNorm", &words, &places)
    }

    fn norm(&mut self, name: &str, value: &str, residual: &str) -> Result<String> {
        let scale = self.vector(&format!("{name}.weight"), 1.0)?;
        let shift = self.vector(&format!("{name}.bias"), 1.0)?;
        let sum = self.graph.op("Add", &[value, residual], &[]);
        let epsilon = Attr::Float("epsilon", self.config.layer_norm_eps);
        let axis = Attr::Int("axis", -1);
        Ok(self.graph.op(
            "LayerNormalization",
            &[&sum, &scale, &shift],
            &[axis, epsilon],
        ))
    }

    fn linear(&mut self, name: &str, value: &str) -> Result<String> {
        self.scaled_linear(name, value, 1.0)
    }

    fn scaled_linear(&mut self, name: &str, value: &str, scale: f32) -> Result<String> {
        let weight = self.matrix(&format!("{name}.weight"), scale)?;
        let bias = self.vector(&format!("{name}.bias"), scale)?;
        let product = self.graph.op("MatMul", &[value, &weight], &[]);
        Ok(self.graph.op("Add", &[&product, &bias], &[]))
    }

    fn attention(&mut self, path: &str, hidden: &str) -> Result<String> {
        let heads = self.config.num_attention_heads;
        let width = self.config.hidden_size / heads;
        // The scale of the scores is part of the query's weights: one pass over the scores less.
        let scale = 1.0 / (width as f32).sqrt();
        let split = [0, 0, heads as i64, width as i64];
        let split = self.graph.ints(&format!("{path}.split"), &split);
        let joined = [0, 0, self.config.hidden_size as i64];
        let joined = self.graph.ints(&format!("{path}.join"), &joined);
        let query = self.scaled_linear(&format!("{path}.attention.self.query"), hidden, scale)?;
        let key = self.linear(&format!("{path}.attention.self.key"), hidden)?;
        let value = self.linear(&format!("{path}.attention.self.value"), hidden)?;
        let query = self.heads(&query, &split, &[0, 2, 1, 3]);
        let key = self.heads(&key, &split, &[0, 2, 3, 1]);
        let value = self.heads(&value, &split, &[0, 2, 1, 3]);
        let scores = self.graph.op("MatMul", &[&query, &key], &[]);
        let scores = self.graph.op("Add", &[&scores, MASK], &[]);
        let shares = self
            .graph
            .op("Softmax", &[&scores], &[Attr::Int("axis", -1)]);
        let mixed = self.graph.op("MatMul", &[&shares, &value], &[]);
        let back = Attr::Ints("perm", &[0, 2, 1, 3]);
        let mixed = self.graph.op("Transpose", &[&mixed], &[back]);
        let mixed = self.graph.op("Reshape", &[&mixed, &joined], &[]);
        self.linear(&format!("{path}.attention.output.dense"), &mixed)
    }

    fn heads(&mut self, value: &str, split: &str, order: &[i64]) -> String {
        let split = self.graph.op("Reshape", &[value, split], &[]);
        self.graph
            .op("Transpose", &[&split], &[Attr::Ints("perm", order)])
    }
}
