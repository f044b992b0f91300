//! What the algorithm is told, of the parameters that were sent.

use loupe_engine::cluster::{Algorithm, Linkage, Settings};
use loupe_wire::{ClusteringAlgorithm, Object, Value, VectorBasedConfigInput};

use super::config::fault;
use crate::{
    error::{ApiError, Result},
    v1::tasks::name_of,
};

/// What the algorithm is told; none names `auto`: it is chosen by what is found.
///
/// # Errors
/// The 422 list with the parameter that is out of bounds.
pub fn settings(config: &VectorBasedConfigInput) -> Result<(Settings, bool)> {
    let method = config.clustering_method;
    let is_auto = method == ClusteringAlgorithm::Auto;
    let algorithm = if is_auto {
        Some(Algorithm::Hdbscan)
    } else {
        Algorithm::named(&name_of(method))
    };
    let Some(algorithm) = algorithm else {
        let msg = "this version clusters by kmeans, hdbscan, dbscan, agglomerative, spectral, gaussian_mixture or auto; by \
            attributes with cluster_type attribute";
        return Err(fault(
            &["vector_config", "clustering_method"],
            "not_enabled",
            msg,
            name_of(method),
        ));
    };
    let own = match method {
        ClusteringAlgorithm::Kmeans => config
            .kmeans_parameters
            .as_ref()
            .map(|own| ("kmeans_parameters", own)),
        ClusteringAlgorithm::Dbscan => config
            .dbscan_parameters
            .as_ref()
            .map(|own| ("dbscan_parameters", own)),
        ClusteringAlgorithm::Hdbscan => config
            .hdbscan_parameters
            .as_ref()
            .map(|own| ("hdbscan_parameters", own)),
        _ => None,
    };
    let (place, sent) = match own {
        Some((place, own)) => (place, Some(own)),
        None => ("algorithm_params", config.algorithm_params.as_ref()),
    };
    let empty = Object::new();
    let sent = match sent {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(sent)) => sent,
        Some(other) => {
            return Err(fault(
                &["vector_config", place],
                "dict_type",
                "must be an object",
                other.clone(),
            ));
        }
    };
    let p = Params { place, sent };
    Ok((p.settings(algorithm)?, is_auto))
}

/// Parameters as they were sent, and where.
struct Params<'a> {
    place: &'static str,
    sent: &'a Object,
}

impl Params<'_> {
    fn settings(&self, algorithm: Algorithm) -> Result<Settings> {
        let (clusters, rounds, starts) = match algorithm {
            Algorithm::Kmeans | Algorithm::Spectral => (Some(8), 300, 10),
            Algorithm::Agglomerative => (Some(2), 300, 1),
            Algorithm::GaussianMixture => (None, 100, 1),
            Algorithm::Hdbscan | Algorithm::Dbscan => (None, 300, 1),
        };
        let threshold = self.number("distance_threshold", 0.0, 1e9)?;
        let count = self.whole("n_clusters", 2, 1_000)?;
        let count = count.or(self.whole("n_components", 1, 1_000)?);
        self.word("metric", &["euclidean", "cosine", "minkowski"])?;
        self.word(
            "affinity",
            &["euclidean", "cosine", "rbf", "nearest_neighbors"],
        )?;
        let linkage = match self.word("linkage", &["ward", "average", "complete", "single"])? {
            Some("average") => Linkage::Average,
            Some("complete") => Linkage::Complete,
            Some("single") => Linkage::Single,
            _ => Linkage::Ward,
        };
        let radius = match algorithm {
            Algorithm::Dbscan => Some(self.number("eps", 1e-9, 1e9)?.unwrap_or(0.5)),
            _ => self.number("cluster_selection_epsilon", 0.0, 1e9)?,
        };
        let most = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        Ok(Settings {
            clusters: most(count).or(clusters),
            least: most(self.whole("min_cluster_size", 2, 10_000)?).unwrap_or(5),
            samples: most(self.whole("min_samples", 1, 10_000)?),
            radius,
            linkage,
            threshold,
            rounds: most(self.whole("max_iter", 1, 10_000)?).unwrap_or(rounds),
            starts: most(self.whole("n_init", 1, 50)?).unwrap_or(starts),
            seed: self
                .whole("random_state", 0, i64::MAX)?
                .unwrap_or(42)
                .unsigned_abs(),
            ..Settings::new(algorithm)
        })
    }

    fn refuse(&self, name: &str, kind: &str, msg: String) -> ApiError {
        let input = self.sent.get(name).cloned().unwrap_or_default();
        fault(&["vector_config", self.place, name], kind, msg, input)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.sent.get(name).filter(|value| !value.is_null())
    }

    fn whole(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.as_i64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.refuse(
                name,
                "int_type",
                format!("a whole number from {least} to {most}"),
            )),
        }
    }

    fn number(&self, name: &str, least: f64, most: f64) -> Result<Option<f64>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.refuse(
                name,
                "float_type",
                format!("a number from {least} to {most}"),
            )),
        }
    }

    fn word(&self, name: &str, words: &'static [&'static str]) -> Result<Option<&'static str>> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let found = value
            .as_str()
            .and_then(|word| words.iter().find(|one| **one == word));
        match found {
            Some(word) => Ok(Some(*word)),
            None => Err(self.refuse(name, "enum", format!("one of {}", words.join(", ")))),
        }
    }
}
