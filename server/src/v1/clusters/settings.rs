//! What the algorithm is told, of the parameters that were sent.

use loupe_engine::cluster::{Algorithm, Measure, Objective, Settings, Valleys};
use loupe_wire::{ClusteringAlgorithm, Object, Value, VectorBasedConfigInput};

use super::{classic, config::fault, params::Params, steps};
use crate::{error::Result, v1::tasks::name_of};

/// The largest distance that can be told.
pub(super) const FAR: f64 = 1e9;

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
    let (place, sent) = parameters(config)?;
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

/// The parameters that the method has, and where they were.
///
/// # Errors
/// The 422 list with those of another method, which nothing would read, or of one method in two places.
fn parameters(config: &VectorBasedConfigInput) -> Result<(&'static str, Option<&Value>)> {
    use ClusteringAlgorithm::{Auto, Dbscan, Hdbscan, Kmeans};
    let method = config.clustering_method;
    let named = [
        ("kmeans_parameters", &config.kmeans_parameters, [Kmeans; 2]),
        ("dbscan_parameters", &config.dbscan_parameters, [Dbscan; 2]),
        (
            "hdbscan_parameters",
            &config.hdbscan_parameters,
            [Hdbscan, Auto],
        ),
    ];
    let says = |sent: &&Value| match sent {
        Value::Null => false,
        Value::Object(sent) => !sent.is_empty(),
        _ => true,
    };
    let general = config.algorithm_params.as_ref();
    for (place, sent, methods) in named {
        let Some(sent) = sent.as_ref().filter(says) else {
            continue;
        };
        if !methods.contains(&method) {
            let msg = format!("the method is {}", name_of(method));
            let path = ["vector_config", place];
            return Err(fault(&path, "value_error", msg, sent.clone()));
        }
        if let Some(twice) = general.filter(says) {
            let msg = format!("parameters are said in {place} already");
            let path = ["vector_config", "algorithm_params"];
            return Err(fault(&path, "value_error", msg, twice.clone()));
        }
        return Ok((place, Some(sent)));
    }
    Ok(("algorithm_params", general))
}

fn told(p: &Params<'_>, algorithm: Algorithm) -> Result<Settings> {
    match algorithm {
        Algorithm::MeanShift => mean_shift(p),
        Algorithm::Optics => optics(p),
        Algorithm::Leiden => leiden(p),
        Algorithm::Evoc => evoc(p),
        Algorithm::Kmeans => classic::kmeans(p),
        Algorithm::Dbscan => classic::dbscan(p),
        Algorithm::Hdbscan => classic::hdbscan(p),
        Algorithm::Agglomerative => classic::agglomerative(p),
        Algorithm::Spectral => classic::spectral(p),
        Algorithm::GaussianMixture => classic::mixture(p),
    }
}

fn mean_shift(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "bandwidth",
        "bandwidth_quantile",
        "seeds",
        "bin_seeding",
        "min_bin_freq",
        "cluster_all",
        "n_jobs",
        "max_iter",
    ])?;
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
    p.only(&[
        "min_samples",
        "max_eps",
        "metric",
        "p",
        "metric_params",
        "cluster_method",
        "eps",
        "xi",
        "predecessor_correction",
        "min_cluster_size",
        "algorithm",
        "leaf_size",
        "n_jobs",
    ])?;
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
    p.only(&[
        "resolution",
        "n_neighbors",
        "metric",
        "min_cluster_size",
        "objective_function",
        "n_iterations",
        "random_state",
    ])?;
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
    p.only(&[
        "noise_level",
        "base_min_cluster_size",
        "approx_n_clusters",
        "n_neighbors",
        "min_samples",
        "random_state",
    ])?;
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
