//! What the methods are told that were there first: k-means, Gaussians, graphs, joining, and both by density.

use loupe_engine::cluster::{Affinity, Algorithm, Linkage, Measure, Seeds, Settings, Shape};

use super::{params::Params, settings::FAR};
use crate::error::Result;

/// The measure of a method by density; of distances with a power there is that of 2.
fn measure(p: &Params<'_>) -> Result<Measure> {
    Ok(
        match p.word("metric", &["euclidean", "cosine", "minkowski"])? {
            Some("cosine") => Measure::Cosine,
            _ => Measure::Euclidean,
        },
    )
}

pub(super) fn kmeans(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "n_clusters",
        "max_iter",
        "random_state",
        "n_init",
        "tol",
        "init",
        "verbose",
        "copy_x",
        "algorithm",
    ])?;
    // They differ in how they save work: the clusters are the same.
    p.word("algorithm", &["lloyd", "elkan", "auto", "full"])?;
    Ok(Settings {
        clusters: Some(p.count("n_clusters", 2, 1_000)?.unwrap_or(8)),
        tolerance: p.number("tol", 0.0, FAR)?.unwrap_or(1e-4),
        seeds: match p.word("init", &["k-means++", "random"])? {
            Some("random") => Seeds::Chance,
            _ => Seeds::Spread,
        },
        rounds: p.count("max_iter", 1, 10_000)?.unwrap_or(300),
        starts: p.count("n_init", 1, 50)?.unwrap_or(10),
        seed: p.seed()?,
        ..Settings::new(Algorithm::Kmeans)
    })
}

pub(super) fn dbscan(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "eps",
        "min_samples",
        "metric",
        "metric_params",
        "algorithm",
        "leaf_size",
        "p",
        "n_jobs",
    ])?;
    let msg = "distances are those of p 2, or by the angle with metric cosine";
    p.always("p", 2, msg)?;
    p.without("metric_params", "no measure has parameters")?;
    Ok(Settings {
        radius: Some(p.number("eps", 1e-9, FAR)?.unwrap_or(0.5)),
        samples: Some(p.count("min_samples", 1, 10_000)?.unwrap_or(5)),
        measure: measure(p)?,
        ..Settings::new(Algorithm::Dbscan)
    })
}

pub(super) fn hdbscan(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "min_cluster_size",
        "min_samples",
        "cluster_selection_epsilon",
        "max_cluster_size",
        "metric",
        "alpha",
        "cluster_selection_method",
        "allow_single_cluster",
        "prediction_data",
        "match_reference_implementation",
    ])?;
    p.always("alpha", 1, "distances are compared as they are: alpha 1")?;
    let msg = "clusters are those that last longest: eom";
    p.always("cluster_selection_method", "eom", msg)?;
    let msg = "a point counts among its own neighbours here";
    p.always("match_reference_implementation", false, msg)?;
    let least = p.count("min_cluster_size", 2, 10_000)?.unwrap_or(5);
    let largest = p.count("max_cluster_size", 1, 1_000_000)?;
    if largest.is_some_and(|largest| largest < least) {
        let msg = format!("no cluster has {least} documents at least and fewer at most");
        return Err(p.refuse("max_cluster_size", "value_error", msg));
    }
    Ok(Settings {
        least,
        largest,
        single: p.flag("allow_single_cluster")?.unwrap_or(false),
        samples: p.count("min_samples", 1, 10_000)?,
        radius: p.number("cluster_selection_epsilon", 0.0, FAR)?,
        measure: measure(p)?,
        ..Settings::new(Algorithm::Hdbscan)
    })
}

pub(super) fn agglomerative(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "n_clusters",
        "affinity",
        "metric",
        "memory",
        "connectivity",
        "compute_full_tree",
        "linkage",
        "distance_threshold",
        "compute_distances",
    ])?;
    let msg = "any two groups may be joined: no document is tied to others";
    p.without("connectivity", msg)?;
    p.without("memory", "what is computed is not kept")?;
    p.always("compute_distances", false, "executions tell no distances")?;
    let linkage = match p.word("linkage", &["ward", "average", "complete", "single"])? {
        Some("average") => Linkage::Average,
        Some("complete") => Linkage::Complete,
        Some("single") => Linkage::Single,
        _ => Linkage::Ward,
    };
    // Two names of one thing: the second is the newer one.
    let words = &["euclidean", "cosine"];
    let (old, new) = (p.word("affinity", words)?, p.word("metric", words)?);
    let name = if new.is_some() { "metric" } else { "affinity" };
    let by_angle = new.or(old) == Some("cosine");
    if by_angle && linkage == Linkage::Ward {
        let msg = "linkage ward joins by straight distances: name another linkage";
        return Err(p.refuse(name, "value_error", msg));
    }
    Ok(Settings {
        clusters: Some(p.count("n_clusters", 2, 1_000)?.unwrap_or(2)),
        linkage,
        measure: match by_angle {
            true => Measure::Cosine,
            false => Measure::Euclidean,
        },
        threshold: p.number("distance_threshold", 0.0, FAR)?,
        ..Settings::new(Algorithm::Agglomerative)
    })
}

pub(super) fn spectral(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "n_clusters",
        "eigen_solver",
        "n_components",
        "random_state",
        "n_init",
        "gamma",
        "affinity",
        "n_neighbors",
        "eigen_tol",
        "assign_labels",
        "degree",
        "coef0",
        "kernel_params",
        "n_jobs",
        "verbose",
    ])?;
    let msg = "documents go to clusters by k-means";
    p.always("assign_labels", "kmeans", msg)?;
    p.always("eigen_tol", 0, "eigenvectors take so many rounds each")?;
    let msg =
        "links weigh by affinity rbf, nearest_neighbors or cosine, which have no such parameter";
    p.always("degree", 3, msg)?;
    p.always("coef0", 1, msg)?;
    p.without("kernel_params", msg)?;
    let gamma = p.number("gamma", 1e-9, FAR)?.unwrap_or(1.0);
    Ok(Settings {
        clusters: Some(p.count("n_clusters", 2, 1_000)?.unwrap_or(8)),
        components: p.count("n_components", 1, 100)?,
        affinity: match p.word("affinity", &["rbf", "nearest_neighbors", "cosine"])? {
            Some("nearest_neighbors") => Affinity::Neighbours,
            Some("cosine") => Affinity::Angle,
            _ => Affinity::Radial(gamma),
        },
        neighbours: p.count("n_neighbors", 1, 200)?.unwrap_or(10),
        rounds: 300,
        starts: p.count("n_init", 1, 50)?.unwrap_or(10),
        seed: p.seed()?,
        ..Settings::new(Algorithm::Spectral)
    })
}

pub(super) fn mixture(p: &Params<'_>) -> Result<Settings> {
    p.only(&[
        "n_components",
        "covariance_type",
        "tol",
        "reg_covar",
        "max_iter",
        "n_init",
        "init_params",
        "weights_init",
        "means_init",
        "precisions_init",
        "random_state",
        "warm_start",
        "verbose",
        "verbose_interval",
    ])?;
    p.always(
        "init_params",
        "kmeans",
        "Gaussians begin where k-means ends",
    )?;
    for name in ["weights_init", "means_init", "precisions_init"] {
        p.without(name, "Gaussians begin where k-means ends")?;
    }
    p.always("warm_start", false, "every execution begins anew")?;
    let shape = match p.word("covariance_type", &["full", "diag", "spherical"])? {
        Some("spherical") => Shape::Round,
        Some("diag") => Shape::Diagonal,
        _ => Shape::Full,
    };
    Ok(Settings {
        clusters: p.count("n_components", 1, 1_000)?,
        shape,
        tolerance: p.number("tol", 0.0, FAR)?.unwrap_or(1e-3),
        widened: p.number("reg_covar", 0.0, FAR)?.unwrap_or(1e-6),
        rounds: p.count("max_iter", 1, 10_000)?.unwrap_or(100),
        starts: p.count("n_init", 1, 50)?.unwrap_or(1),
        seed: p.seed()?,
        ..Settings::new(Algorithm::GaussianMixture)
    })
}
