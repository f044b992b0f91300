//! Points to labels. hdbscan is the crate of that name, agglomerative is `kodama`; the others are the textbook's:
//! k-means with k-means++ seeds (Arthur and Vassilvitskii 2007), DBSCAN (Ester et al. 1996) with the radius at the knee
//! of the sorted distances to the k-th neighbour, and a mixture of Gaussians without covariances by
//! expectation-maximization.

use hdbscan::{DistanceMetric, Hdbscan, HdbscanHyperParams, NnAlgorithm};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{NOISE, spectral};

/// The same documents make the same clusters.
const SEED: u64 = 42;
const MAX_ROUNDS: usize = 50;

pub(super) struct Asked {
    pub algorithm: String,
    pub clusters: Option<usize>,
    pub least: usize,
}

/// One label a point, [`NOISE`] for points in no cluster.
pub(super) fn label(points: &[Vec<f32>], asked: &Asked) -> Vec<i32> {
    let count = points.len();
    if count < 2 {
        return vec![0; count];
    }
    let guess = (count as f64 / 2.0).sqrt().round() as usize;
    let k = asked.clusters.unwrap_or(guess).clamp(2, 100).min(count);
    let mut rng = StdRng::seed_from_u64(SEED);
    match asked.algorithm.as_str() {
        "kmeans" => kmeans(points, k, &mut rng),
        "dbscan" => dbscan(points, asked.least),
        "agglomerative" => agglomerative(points, k),
        "spectral" => spectral::label(points, k, &mut rng),
        "gaussian_mixture" => mixture(points, k, &mut rng),
        _ => density(points, asked.least),
    }
}

/// Fewer points than one cluster needs are all noise, and points that are all alike are one cluster.
fn density(points: &[Vec<f32>], least: usize) -> Vec<i32> {
    if points.len() < least {
        return vec![NOISE; points.len()];
    }
    let parameters = HdbscanHyperParams::builder()
        .min_cluster_size(least)
        .dist_metric(DistanceMetric::Euclidean)
        .nn_algorithm(NnAlgorithm::BruteForce)
        .build();
    let found = Hdbscan::new(points, parameters).cluster();
    found.unwrap_or_else(|_| vec![NOISE; points.len()])
}

pub(super) fn distance(a: &[f32], b: &[f32]) -> f64 {
    let sum: f32 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    f64::from(sum)
}

pub(super) fn mean(points: &[Vec<f32>], members: &[usize]) -> Vec<f32> {
    let dims = points.first().map_or(0, Vec::len);
    let mut sum = vec![0.0_f32; dims];
    for i in members {
        sum.iter_mut().zip(&points[*i]).for_each(|(s, x)| *s += x);
    }
    let count = members.len().max(1) as f32;
    sum.iter_mut().for_each(|s| *s /= count);
    sum
}

fn nearest(point: &[f32], centers: &[Vec<f32>]) -> usize {
    let mut best = (0, f64::INFINITY);
    for (i, center) in centers.iter().enumerate() {
        let apart = distance(point, center);
        if apart < best.1 {
            best = (i, apart);
        }
    }
    best.0
}

pub(super) fn kmeans(points: &[Vec<f32>], k: usize, rng: &mut StdRng) -> Vec<i32> {
    let mut centers = seeds(points, k, rng);
    let mut labels = vec![0_usize; points.len()];
    for round in 0..MAX_ROUNDS {
        let next: Vec<usize> = points.iter().map(|p| nearest(p, &centers)).collect();
        if round > 0 && next == labels {
            break;
        }
        labels = next;
        for (i, center) in centers.iter_mut().enumerate() {
            let members: Vec<usize> = (0..points.len()).filter(|p| labels[*p] == i).collect();
            if !members.is_empty() {
                *center = mean(points, &members);
            }
        }
    }
    labels.into_iter().map(|label| label as i32).collect()
}

/// Each next seed by chance, the likelier the further it is from those before.
fn seeds(points: &[Vec<f32>], k: usize, rng: &mut StdRng) -> Vec<Vec<f32>> {
    let mut centers = vec![points[rng.random_range(0..points.len())].clone()];
    let mut apart: Vec<f64> = points.iter().map(|p| distance(p, &centers[0])).collect();
    while centers.len() < k {
        let total: f64 = apart.iter().sum();
        if total <= 0.0 {
            break;
        }
        let mut left = rng.random_range(0.0..total);
        let chosen = apart.iter().position(|d| {
            left -= d;
            left < 0.0
        });
        let center = points[chosen.unwrap_or(points.len() - 1)].clone();
        for (d, point) in apart.iter_mut().zip(points) {
            *d = d.min(distance(point, &center));
        }
        centers.push(center);
    }
    centers
}

fn dbscan(points: &[Vec<f32>], least: usize) -> Vec<i32> {
    let count = points.len();
    let mut apart = vec![vec![0.0_f64; count]; count];
    for i in 0..count {
        for j in i + 1..count {
            let d = distance(&points[i], &points[j]).sqrt();
            apart[i][j] = d;
            apart[j][i] = d;
        }
    }
    let radius = knee(&apart, least.min(count) - 1);
    let around =
        |i: usize| -> Vec<usize> { (0..count).filter(|j| apart[i][*j] <= radius).collect() };
    let mut labels: Vec<Option<i32>> = vec![None; count];
    let mut cluster = NOISE;
    for start in 0..count {
        if labels[start].is_some() {
            continue;
        }
        let mut open = around(start);
        if open.len() < least {
            labels[start] = Some(NOISE);
            continue;
        }
        cluster += 1;
        labels[start] = Some(cluster);
        while let Some(i) = open.pop() {
            let before = labels[i];
            if before.is_none_or(|label| label == NOISE) {
                labels[i] = Some(cluster);
            }
            // A point that was noise is on the edge: the cluster ends there.
            if before.is_none() {
                let more = around(i);
                if more.len() >= least {
                    open.extend(more);
                }
            }
        }
    }
    labels
        .into_iter()
        .map(|label| label.unwrap_or(NOISE))
        .collect()
}

/// Where the sorted distances to the k-th neighbour bend most: the point furthest below the line from first to last.
fn knee(apart: &[Vec<f64>], k: usize) -> f64 {
    let mut of_kth: Vec<f64> = apart
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row.sort_by(f64::total_cmp);
            row[k.min(row.len() - 1)]
        })
        .collect();
    of_kth.sort_by(f64::total_cmp);
    let last = of_kth.len() - 1;
    let (low, high) = (of_kth[0], of_kth[last]);
    let below = |i: usize| low + (high - low) * i as f64 / last.max(1) as f64 - of_kth[i];
    let bend = (0..=last).max_by(|a, b| below(*a).total_cmp(&below(*b)));
    bend.map_or(high, |i| of_kth[i])
}

/// Average linkage, cut where `k` clusters are left.
fn agglomerative(points: &[Vec<f32>], k: usize) -> Vec<i32> {
    let count = points.len();
    let mut apart: Vec<f64> = Vec::with_capacity(count * (count - 1) / 2);
    for i in 0..count {
        apart.extend((i + 1..count).map(|j| distance(&points[i], &points[j]).sqrt()));
    }
    let tree = kodama::linkage(&mut apart, count, kodama::Method::Average);
    let mut groups: Vec<Vec<usize>> = (0..count).map(|i| vec![i]).collect();
    for step in tree.steps().iter().take(count - k) {
        let mut joined = std::mem::take(&mut groups[step.cluster1]);
        joined.append(&mut groups[step.cluster2]);
        groups.push(joined);
    }
    let mut labels = vec![NOISE; count];
    for (label, members) in groups.iter().filter(|g| !g.is_empty()).enumerate() {
        members.iter().for_each(|i| labels[*i] = label as i32);
    }
    labels
}

/// One Gaussian: its share of the points, its middle, and how wide it is in each direction.
struct Gaussian {
    weight: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Gaussian {
    /// Of points that each belong to it by a share.
    fn of(points: &[Vec<f32>], shares: &[f64]) -> Self {
        let dims = points[0].len();
        let total: f64 = shares.iter().sum::<f64>().max(1e-12);
        let (mut mean, mut variance) = (vec![0.0; dims], vec![0.0; dims]);
        for (point, share) in points.iter().zip(shares) {
            for (m, x) in mean.iter_mut().zip(point) {
                *m += share / total * f64::from(*x);
            }
        }
        for (point, share) in points.iter().zip(shares) {
            for ((v, m), x) in variance.iter_mut().zip(&mean).zip(point) {
                *v += share / total * (f64::from(*x) - m).powi(2);
            }
        }
        // A Gaussian without width would take a point for itself alone.
        variance.iter_mut().for_each(|v| *v += 1e-4);
        Self {
            weight: total / points.len() as f64,
            mean,
            variance,
        }
    }

    fn log_density(&self, point: &[f32]) -> f64 {
        let parts = self.mean.iter().zip(&self.variance).zip(point);
        let sum: f64 = parts
            .map(|((m, v), x)| v.ln() + (f64::from(*x) - m).powi(2) / v)
            .sum();
        self.weight.max(1e-300).ln() - 0.5 * sum
    }
}

fn mixture(points: &[Vec<f32>], k: usize, rng: &mut StdRng) -> Vec<i32> {
    let mut labels = kmeans(points, k, rng);
    let mut shares: Vec<Vec<f64>> = (0..k as i32)
        .map(|c| {
            labels
                .iter()
                .map(|l| f64::from(u8::from(*l == c)))
                .collect()
        })
        .collect();
    for _ in 0..MAX_ROUNDS {
        let parts: Vec<Gaussian> = shares.iter().map(|s| Gaussian::of(points, s)).collect();
        let mut next = Vec::with_capacity(points.len());
        for (i, point) in points.iter().enumerate() {
            let logs: Vec<f64> = parts.iter().map(|g| g.log_density(point)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
            for (share, log) in shares.iter_mut().zip(&logs) {
                share[i] = (log - most).exp() / total;
            }
            let best = logs.iter().position(|l| *l == most);
            next.push(best.map_or(NOISE, |c| c as i32));
        }
        if next == labels {
            break;
        }
        labels = next;
    }
    labels
}
