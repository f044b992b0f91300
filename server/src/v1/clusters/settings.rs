//! What the algorithm is told, of the parameters that were sent.

use loupe_engine::cluster::{Algorithm, Linkage, Measure, Objective, Settings, Valleys};
use loupe_wire::{ClusteringAlgorithm, Object, Value, VectorBasedConfigInput};

use super::{config::fault, params::Params, steps};
use crate::{error::Result, v1::tasks::name_of};

/// The largest distance that can be told.
const FAR: f64 = 1e9;

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
        let msg = "documents are clustered by attributes with cluster_type attribute";
        return Err(fault(
            &["vector_config", "clustering_method"],
            "value_error",
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
    let p = Params {
        path: ["vector_config", place].map(str::to_owned).to_vec(),
        sent,
    };
    let mut settings = told(&p, algorithm)?;
    settings.reductions = steps::steps(config)?;
    Ok((settings, is_auto))
}

fn told(p: &Params<'_>, algorithm: Algorithm) -> Result<Settings> {
    match algorithm {
        Algorithm::MeanShift => mean_shift(p),
        Algorithm::Optics => optics(p),
        Algorithm::Leiden => leiden(p),
        Algorithm::Evoc => evoc(p),
        _ => classic(p, algorithm),
    }
}

fn classic(p: &Params<'_>, algorithm: Algorithm) -> Result<Settings> {
    let (clusters, rounds, starts) = match algorithm {
        Algorithm::Kmeans | Algorithm::Spectral => (Some(8), 300, 10),
        Algorithm::Agglomerative => (Some(2), 300, 1),
        Algorithm::GaussianMixture => (None, 100, 1),
        _ => (None, 300, 1),
    };
    let count = p.count("n_clusters", 2, 1_000)?;
    let count = count.or(p.count("n_components", 1, 1_000)?);
    p.word("metric", &["euclidean", "cosine", "minkowski"])?;
    p.word(
        "affinity",
        &["euclidean", "cosine", "rbf", "nearest_neighbors"],
    )?;
    let linkage = match p.word("linkage", &["ward", "average", "complete", "single"])? {
        Some("average") => Linkage::Average,
        Some("complete") => Linkage::Complete,
        Some("single") => Linkage::Single,
        _ => Linkage::Ward,
    };
    let radius = match algorithm {
        Algorithm::Dbscan => Some(p.number("eps", 1e-9, FAR)?.unwrap_or(0.5)),
        _ => p.number("cluster_selection_epsilon", 0.0, FAR)?,
    };
    Ok(Settings {
        clusters: count.or(clusters),
        least: p.count("min_cluster_size", 2, 10_000)?.unwrap_or(5),
        samples: p.count("min_samples", 1, 10_000)?,
        radius,
        linkage,
        threshold: p.number("distance_threshold", 0.0, FAR)?,
        rounds: p.count("max_iter", 1, 10_000)?.unwrap_or(rounds),
        starts: p.count("n_init", 1, 50)?.unwrap_or(starts),
        seed: p.seed()?,
        ..Settings::new(algorithm)
    })
}

fn mean_shift(p: &Params<'_>) -> Result<Settings> {
    p.without(
        "seeds",
        "it begins at the points, or at cells of a grid with bin_seeding",
    )?;
    let least = p.count("min_bin_freq", 1, 10_000)?.unwrap_or(1);
    let by_cells = p.flag("bin_seeding")? == Some(true);
    Ok(Settings {
        radius: p.number("bandwidth", 1e-9, FAR)?,
        quantile: p.number("bandwidth_quantile", 1e-9, 1.0)?.unwrap_or(0.1),
        cells: by_cells.then_some(least),
        everything: p.flag("cluster_all")?.unwrap_or(true),
        rounds: p.count("max_iter", 1, 10_000)?.unwrap_or(300),
        ..Settings::new(Algorithm::MeanShift)
    })
}

fn optics(p: &Params<'_>) -> Result<Settings> {
    let measure = match p.word("metric", &["minkowski", "euclidean", "cosine"])? {
        Some("cosine") => Measure::Cosine,
        _ => Measure::Euclidean,
    };
    if p.number("p", 1.0, FAR)?.is_some_and(|power| power != 2.0) {
        let msg = "distances are those of p 2, or by the angle with metric cosine";
        return Err(p.refuse("p", "not_enabled", msg));
    }
    p.without("metric_params", "no measure has parameters")?;
    let furthest = p.number("max_eps", 1e-9, FAR)?;
    let xi = p.number("xi", 0.0, 1.0)?.unwrap_or(0.05);
    let corrected = p.flag("predecessor_correction")?.unwrap_or(true);
    let radius = p.number("eps", 1e-9, FAR)?;
    let valleys = match p.word("cluster_method", &["xi", "dbscan"])? {
        Some("dbscan") => {
            let Some(radius) = radius.or(furthest) else {
                let msg = "cluster_method dbscan cuts at a distance: name it";
                return Err(p.refuse("eps", "missing", msg));
            };
            Valleys::Below(radius)
        }
        _ => Valleys::Steep { xi, corrected },
    };
    // A share of the points up to 1, a number of them from 2 on.
    let least = p.number("min_cluster_size", 0.0, 10_000.0)?.unwrap_or(0.0);
    if least > 1.0 && least.fract() > 0.0 {
        let msg = "a share up to 1, or a whole number of documents";
        return Err(p.refuse("min_cluster_size", "value_error", msg));
    }
    Ok(Settings {
        samples: Some(p.count("min_samples", 2, 10_000)?.unwrap_or(5)),
        radius: furthest,
        measure,
        valleys,
        share: (least > 0.0 && least <= 1.0).then_some(least),
        smallest: if least > 1.0 { least as usize } else { 0 },
        ..Settings::new(Algorithm::Optics)
    })
}

fn leiden(p: &Params<'_>) -> Result<Settings> {
    let objectives = &["RBConfiguration", "modularity", "CPM"];
    let passes = p.whole("n_iterations", -1, 20)?.unwrap_or(2);
    if passes == 0 {
        let msg = "1 to 20, or -1 until nothing changes";
        return Err(p.refuse("n_iterations", "value_error", msg));
    }
    Ok(Settings {
        resolution: p.number("resolution", 1e-9, 100.0)?.unwrap_or(1.0),
        neighbours: p.count("n_neighbors", 2, 200)?.unwrap_or(30),
        measure: match p.word("metric", &["cosine", "euclidean"])? {
            Some("euclidean") => Measure::Euclidean,
            _ => Measure::Cosine,
        },
        smallest: p.count("min_cluster_size", 0, 10_000)?.unwrap_or(0),
        objective: match p.word("objective_function", objectives)? {
            Some("modularity") => Objective::Modularity,
            Some("CPM") => Objective::Potts,
            _ => Objective::Configuration,
        },
        passes: usize::try_from(passes).ok(),
        seed: p.seed()?,
        ..Settings::new(Algorithm::Leiden)
    })
}

fn evoc(p: &Params<'_>) -> Result<Settings> {
    Ok(Settings {
        noise: p.number("noise_level", 0.0, 1.0)?.unwrap_or(0.5),
        least: p.count("base_min_cluster_size", 2, 10_000)?.unwrap_or(5),
        clusters: p.count("approx_n_clusters", 2, 1_000)?,
        neighbours: p.count("n_neighbors", 2, 200)?.unwrap_or(15),
        samples: Some(p.count("min_samples", 1, 10_000)?.unwrap_or(5)),
        seed: p.seed()?,
        ..Settings::new(Algorithm::Evoc)
    })
}
