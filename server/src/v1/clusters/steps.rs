//! What is done to vectors before they are compared, as it was asked for.

use loupe_engine::cluster::{Measure, Reduction, Tsne, Umap};
use loupe_wire::{Value, VectorBasedConfigInput};

use super::{config::fault, params::Params};
use crate::error::Result;

/// Steps of one cluster.
const MOST: usize = 5;

/// Numbers of a vector that can be whitened: their square is kept in memory.
pub(super) const MOST_WHITENED: usize = 4_096;

/// The steps in their order; those that do nothing are left out.
///
/// # Errors
/// The 422 list with what is out of bounds.
pub(super) fn steps(config: &VectorBasedConfigInput) -> Result<Vec<Reduction>> {
    let path = ["vector_config", "preprocessing_steps"];
    if config.preprocessing_steps.len() > MOST {
        let count = config.preprocessing_steps.len();
        let msg = format!("at most {MOST} steps");
        return Err(fault(&path, "too_long", msg, count));
    }
    let mut steps = Vec::new();
    for (place, sent) in config.preprocessing_steps.iter().enumerate() {
        let place = place.to_string();
        let Value::Object(object) = sent else {
            let path = [path[0], path[1], &place];
            return Err(fault(&path, "dict_type", "must be an object", sent.clone()));
        };
        let p = Params {
            path: [path[0], path[1], &place].map(str::to_owned).to_vec(),
            sent: object,
        };
        match p.word("method", &["none", "umap", "tsne", "whitening"])? {
            Some("umap") => steps.push(Reduction::Umap(umap(&p)?)),
            Some("tsne") => steps.push(Reduction::Tsne(tsne(&p)?)),
            Some("whitening") => {
                let more = p.number("regularization", 0.0, 1e9)?;
                steps.push(Reduction::Whitening(more.unwrap_or(1e-5)));
            }
            Some(_) => {}
            None => {
                let msg = "a step says its method: umap, tsne, whitening or none";
                return Err(p.refuse("method", "missing", msg));
            }
        }
    }
    Ok(steps)
}

fn umap(p: &Params<'_>) -> Result<Umap> {
    Ok(Umap {
        dims: p.count("n_components", 2, 256)?.unwrap_or(50),
        neighbours: p.count("n_neighbors", 2, 200)?.unwrap_or(30),
        closest: p.number("min_dist", 0.0, 1.0)?.unwrap_or(0.0),
        measure: match p.word("metric", &["cosine", "euclidean"])? {
            Some("euclidean") => Measure::Euclidean,
            _ => Measure::Cosine,
        },
        seed: p.seed()?,
    })
}

fn tsne(p: &Params<'_>) -> Result<Tsne> {
    let dims = p.count("n_components", 2, 256)?.unwrap_or(2);
    if dims > 3 {
        let msg = "t-SNE makes 2 or 3 dimensions; for more take umap";
        return Err(p.refuse("n_components", "not_enabled", msg));
    }
    Ok(Tsne {
        dims,
        perplexity: p.number("perplexity", 1.0, 500.0)?.unwrap_or(30.0),
        rate: p.number("learning_rate", 1e-3, 1e4)?.unwrap_or(200.0),
        seed: p.seed()?,
    })
}
