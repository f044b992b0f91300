//! How good a clustering is, and how far two of them are apart.

use super::algorithms::distance;
use super::{Clustering, NOISE};
use crate::stage::likeness::cosine;

/// Points that the silhouette is measured of, evenly taken: it compares each with each.
const SILHOUETTE_OF: usize = 1_000;

/// Figures of one clustering. Those that need two clusters are absent with fewer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quality {
    /// -1 to 1: how much nearer points are to their own cluster than to the next.
    pub silhouette: Option<f64>,
    /// The lower, the better apart.
    pub davies_bouldin: Option<f64>,
    /// The higher, the better apart.
    pub calinski_harabasz: Option<f64>,
    /// Share of points in no cluster.
    pub noise: f64,
    pub mean_size: f64,
    /// 0: all in one; 1: all clusters as large.
    pub entropy: f64,
    /// Of the members of each cluster to its middle: mean and least.
    pub cosines: Vec<(f64, f64)>,
}

/// Measures a clustering.
pub fn quality(points: &[Vec<f32>], found: &Clustering) -> Quality {
    let clustered: usize = found.clusters.iter().map(|one| one.members.len()).sum();
    let count = found.clusters.len();
    let shares = found
        .clusters
        .iter()
        .map(|one| one.members.len() as f64 / clustered.max(1) as f64);
    let entropy: f64 = shares.map(|share| -share * share.max(1e-300).ln()).sum();
    let cosines = found.clusters.iter().map(|one| {
        let near = one
            .members
            .iter()
            .map(|place| cosine(&points[*place], &one.centroid));
        let (sum, least) = near.fold((0.0, 1.0_f64), |(sum, least), near| {
            (sum + near, least.min(near))
        });
        (sum / one.members.len().max(1) as f64, least)
    });
    // Groups by attributes have no vectors to be apart by.
    let several = count > 1 && clustered > count && points.iter().any(|point| !point.is_empty());
    Quality {
        silhouette: several.then(|| silhouette(points, found)).flatten(),
        davies_bouldin: several.then(|| davies_bouldin(points, found)),
        calinski_harabasz: several
            .then(|| calinski_harabasz(points, found, clustered))
            .flatten(),
        noise: 1.0 - clustered as f64 / points.len().max(1) as f64,
        mean_size: clustered as f64 / count.max(1) as f64,
        entropy: if count > 1 {
            entropy / (count as f64).ln()
        } else {
            0.0
        },
        cosines: cosines.collect(),
    }
}

fn silhouette(points: &[Vec<f32>], found: &Clustering) -> Option<f64> {
    let clustered: Vec<usize> = (0..points.len())
        .filter(|place| found.labels[*place] != NOISE)
        .collect();
    let step = clustered.len().div_ceil(SILHOUETTE_OF).max(1);
    let some: Vec<usize> = clustered.into_iter().step_by(step).collect();
    let count = found.clusters.len();
    let (mut total, mut measured) = (0.0, 0_usize);
    for i in &some {
        let own = found.labels[*i] as usize;
        let (mut sums, mut sizes) = (vec![0.0; count], vec![0_usize; count]);
        for j in some.iter().filter(|j| *j != i) {
            let label = found.labels[*j] as usize;
            sums[label] += distance(&points[*i], &points[*j]).sqrt();
            sizes[label] += 1;
        }
        let mean = |label: usize| sums[label] / sizes[label] as f64;
        let next = (0..count)
            .filter(|label| *label != own && sizes[*label] > 0)
            .map(mean);
        let next = next.fold(f64::INFINITY, f64::min);
        if !next.is_finite() {
            continue;
        }
        measured += 1;
        // A point alone in its cluster counts as neither near nor far.
        if sizes[own] > 0 {
            let within = mean(own);
            total += (next - within) / next.max(within).max(1e-12);
        }
    }
    (measured > 0).then(|| total / measured as f64)
}

fn davies_bouldin(points: &[Vec<f32>], found: &Clustering) -> f64 {
    let spread: Vec<f64> = found
        .clusters
        .iter()
        .map(|one| {
            let apart = one
                .members
                .iter()
                .map(|place| distance(&points[*place], &one.centroid).sqrt());
            apart.sum::<f64>() / one.members.len().max(1) as f64
        })
        .collect();
    let count = found.clusters.len();
    let worst = |i: usize| {
        let ratio = |j: usize| {
            let apart = distance(&found.clusters[i].centroid, &found.clusters[j].centroid).sqrt();
            (spread[i] + spread[j]) / apart.max(1e-12)
        };
        (0..count)
            .filter(|j| *j != i)
            .map(ratio)
            .fold(0.0, f64::max)
    };
    (0..count).map(worst).sum::<f64>() / count as f64
}

fn calinski_harabasz(points: &[Vec<f32>], found: &Clustering, clustered: usize) -> Option<f64> {
    let dims = points.first().map_or(0, Vec::len);
    let mut middle = vec![0.0_f32; dims];
    for one in &found.clusters {
        let share = one.members.len() as f32 / clustered as f32;
        middle
            .iter_mut()
            .zip(&one.centroid)
            .for_each(|(m, x)| *m += share * x);
    }
    let (mut between, mut within) = (0.0, 0.0);
    for one in &found.clusters {
        between += one.members.len() as f64 * distance(&one.centroid, &middle);
        within += one
            .members
            .iter()
            .map(|place| distance(&points[*place], &one.centroid))
            .sum::<f64>();
    }
    let count = found.clusters.len();
    let free = (clustered - count) as f64 / (count - 1) as f64;
    // Points that are all alike in each cluster have no spread to hold the gaps against.
    (within > 0.0).then(|| between / within * free)
}

/// How far a clustering moved since the one before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drift {
    /// Mean cosine distance of each cluster before to the nearest one now, by size: 0 where nothing moved.
    pub distance: f64,
    /// The furthest of them.
    pub furthest: f64,
    /// Clusters now that are the nearest of none before.
    pub new: usize,
    /// Which cluster before each cluster now is nearest to.
    pub nearest: Vec<Option<usize>>,
}

/// Compares the centroids of two clusterings, each with its size. Of other spaces: nothing is alike.
pub fn drift(before: &[(Vec<f32>, usize)], now: &[(Vec<f32>, usize)]) -> Drift {
    let closest = |one: &[f32], others: &[(Vec<f32>, usize)]| {
        let near = others
            .iter()
            .map(|(other, _)| cosine(one, other))
            .enumerate();
        near.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let total: usize = before.iter().map(|(_, size)| size).sum();
    let mut out = Drift::default();
    let mut met = vec![false; now.len()];
    for (centroid, size) in before {
        let apart = match closest(centroid, now) {
            Some((place, near)) => {
                met[place] = true;
                1.0 - near
            }
            None => 1.0,
        };
        out.distance += apart * *size as f64 / total.max(1) as f64;
        out.furthest = out.furthest.max(apart);
    }
    out.new = met.iter().filter(|met| !**met).count();
    out.nearest = now
        .iter()
        .map(|(centroid, _)| closest(centroid, before).map(|(place, _)| place))
        .collect();
    out
}
