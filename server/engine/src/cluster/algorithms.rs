//! Points to labels. hdbscan is the crate of that name, agglomerative is `kodama`; the others are the textbook's:
//! k-means with k-means++ seeds (Arthur and Vassilvitskii 2007), and DBSCAN (Ester et al. 1996) with the radius at the
//! knee of the sorted distances to the k-th neighbour where none is given.

use hdbscan::{DistanceMetric, Hdbscan, HdbscanHyperParams, NnAlgorithm};
use rand::rngs::StdRng;
use rand::seq::index::sample;
use rand::{Rng as _, SeedableRng as _};

use super::neighbours::{Measure, Space, measured};
use super::{
    Algorithm, Linkage, NOISE, Seeds, Settings, Stop, Stopped, evoc, leiden, mean_shift, mixture,
    optics, spectral,
};

/// Most clusters that are made where a number is given or guessed.
const MAX_CLUSTERS: usize = 1_000;
/// The same of what keeps a number of each point for each cluster.
const MAX_SHARES: usize = 100;

/// One label a point, [`NOISE`] for points in no cluster.
pub(super) fn label(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let count = points.len();
    if count < 2 {
        return Ok(vec![0; count]);
    }
    let k = groups(count, settings);
    let mut rng = StdRng::seed_from_u64(settings.seed);
    match settings.algorithm {
        Algorithm::Kmeans => kmeans(points, k, settings, &mut rng, stop),
        Algorithm::Dbscan => dbscan(points, settings, stop),
        Algorithm::Agglomerative => agglomerative(points, k, settings, stop),
        Algorithm::Spectral => spectral::label(points, k.min(MAX_SHARES), settings, &mut rng, stop),
        Algorithm::GaussianMixture if settings.clusters == Some(1) => Ok(vec![0; count]),
        Algorithm::GaussianMixture => {
            let k = gaussians(count, points[0].len(), settings);
            mixture::label(points, k, settings, &mut rng, stop)
        }
        Algorithm::Hdbscan => density(points, settings, stop),
        Algorithm::MeanShift => mean_shift::label(points, settings, stop),
        Algorithm::Optics => optics::label(points, settings, stop),
        Algorithm::Leiden => leiden::label(points, settings, stop),
        Algorithm::Evoc => evoc::label(points, settings, stop),
    }
}

/// How many groups so many points are to be in.
fn groups(count: usize, settings: &Settings) -> usize {
    let guess = (count as f64 / 2.0).sqrt().round() as usize;
    let wanted = settings.clusters.unwrap_or(guess.min(100));
    wanted.clamp(2, MAX_CLUSTERS).min(count)
}

/// How many Gaussians so many points of so many numbers are told apart by.
pub(super) fn gaussians(count: usize, width: usize, settings: &Settings) -> usize {
    let wanted = groups(count, settings).min(MAX_SHARES);
    match settings.clusters {
        Some(1) => 0,
        // Nobody asked for more than can be factored.
        None if settings.is_full() => wanted.min(mixture::most_gaussians(width).max(2)),
        _ => wanted,
    }
}

/// Fewer points than one cluster needs are all noise.
fn density(points: &[Vec<f32>], settings: &Settings, stop: &Stop) -> Result<Vec<i32>, Stopped> {
    check(stop)?;
    let least = settings.least.max(2);
    if points.len() < least {
        return Ok(vec![NOISE; points.len()]);
    }
    let mut parameters = HdbscanHyperParams::builder()
        .min_cluster_size(least)
        .allow_single_cluster(settings.single)
        .dist_metric(DistanceMetric::Euclidean)
        .nn_algorithm(NnAlgorithm::BruteForce);
    if let Some(samples) = settings.samples {
        parameters = parameters.min_samples(samples.clamp(1, points.len()));
    }
    if let Some(largest) = settings.largest {
        parameters = parameters.max_cluster_size(largest.max(least));
    }
    if let Some(radius) = settings.radius.filter(|radius| *radius > 0.0) {
        parameters = parameters.epsilon(match settings.measure {
            Measure::Euclidean => radius,
            // Between points at unit length the distance by the angle is half of the square of the straight one.
            Measure::Cosine => (2.0 * radius).sqrt(),
        });
    }
    let at = measured(points, settings.measure);
    let found = Hdbscan::new(&at[..], parameters.build()).cluster();
    check(stop)?;
    Ok(found.unwrap_or_else(|_| vec![NOISE; points.len()]))
}

pub(super) fn check(stop: &Stop) -> Result<(), Stopped> {
    if stop.is_stopped() {
        Err(Stopped)
    } else {
        Ok(())
    }
}

/// Squared.
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

/// The nearest center and its squared distance.
pub(super) fn nearest(point: &[f32], centers: &[impl AsRef<[f32]>]) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (i, center) in centers.iter().enumerate() {
        let apart = distance(point, center.as_ref());
        if best.is_none_or(|(_, least)| apart < least) {
            best = Some((i, apart));
        }
    }
    best
}

/// The best of several beginnings: the one whose points are nearest to their centers.
pub(super) fn kmeans(
    points: &[Vec<f32>],
    k: usize,
    settings: &Settings,
    rng: &mut StdRng,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let mut best: Option<(f64, Vec<i32>)> = None;
    for _ in 0..settings.starts.max(1) {
        let centers = match settings.seeds {
            Seeds::Spread => seeds(points, k, rng),
            Seeds::Chance => by_chance(points, k, rng),
        };
        let found = lloyd(points, centers, settings, stop)?;
        if best.as_ref().is_none_or(|(apart, _)| found.0 < *apart) {
            best = Some(found);
        }
    }
    Ok(best.map(|(_, labels)| labels).unwrap_or_default())
}

/// The sum of the squared distances, and the labels.
fn lloyd(
    points: &[Vec<f32>],
    mut centers: Vec<Vec<f32>>,
    settings: &Settings,
    stop: &Stop,
) -> Result<(f64, Vec<i32>), Stopped> {
    let mut labels = vec![0_usize; points.len()];
    let (mut total, mut still) = (0.0, false);
    // Told as a share of how far points are spread.
    let least = match settings.tolerance > 0.0 {
        true => settings.tolerance * variance(points),
        false => -1.0,
    };
    for round in 0..settings.rounds.max(1) {
        check(stop)?;
        let found: Vec<(usize, f64)> = points
            .iter()
            .map(|point| nearest(point, &centers).unwrap_or((0, 0.0)))
            .collect();
        total = found.iter().map(|(_, apart)| apart).sum();
        let next: Vec<usize> = found.into_iter().map(|(label, _)| label).collect();
        if round > 0 && next == labels {
            break;
        }
        labels = next;
        if still {
            break;
        }
        still = move_centers(points, &labels, &mut centers) <= least;
    }
    Ok((
        total,
        labels.into_iter().map(|label| label as i32).collect(),
    ))
}

/// How far points are spread in one direction, as a mean of all.
fn variance(points: &[Vec<f32>]) -> f64 {
    let all: Vec<usize> = (0..points.len()).collect();
    let middle = mean(points, &all);
    let sum: f64 = points.iter().map(|point| distance(point, &middle)).sum();
    sum / (points.len() * middle.len()).max(1) as f64
}

/// Each center to the mean of its points; one that has none stays. Answers how far all of them moved, squared.
fn move_centers(points: &[Vec<f32>], labels: &[usize], centers: &mut [Vec<f32>]) -> f64 {
    let dims = points.first().map_or(0, Vec::len);
    let mut sums = vec![vec![0.0_f32; dims]; centers.len()];
    let mut counts = vec![0_usize; centers.len()];
    for (point, label) in points.iter().zip(labels) {
        counts[*label] += 1;
        sums[*label]
            .iter_mut()
            .zip(point)
            .for_each(|(s, x)| *s += x);
    }
    let mut moved = 0.0;
    for ((center, mut sum), count) in centers.iter_mut().zip(sums).zip(counts) {
        if count > 0 {
            sum.iter_mut().for_each(|s| *s /= count as f32);
            moved += distance(center, &sum);
            *center = sum;
        }
    }
    moved
}

/// Seeds at any points, no two at one.
fn by_chance(points: &[Vec<f32>], k: usize, rng: &mut StdRng) -> Vec<Vec<f32>> {
    let chosen = sample(rng, points.len(), k.min(points.len()));
    chosen.iter().map(|place| points[place].clone()).collect()
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

/// Distances are computed as they are needed: all of them at once would be the square of the points.
fn dbscan(points: &[Vec<f32>], settings: &Settings, stop: &Stop) -> Result<Vec<i32>, Stopped> {
    let count = points.len();
    let least = settings.samples.unwrap_or(settings.least).max(1);
    let space = Space::new(points, settings.measure);
    let radius = match settings.radius {
        Some(radius) => radius,
        None => knee(&space, least.min(count) - 1, stop)?,
    };
    let around = |i: usize| -> Vec<usize> {
        let near = |j: &usize| space.apart(i, *j) <= radius;
        (0..count).filter(near).collect()
    };
    let mut labels: Vec<Option<i32>> = vec![None; count];
    let mut cluster = NOISE;
    for start in 0..count {
        if labels[start].is_some() {
            continue;
        }
        let near = around(start);
        if near.len() < least {
            labels[start] = Some(NOISE);
            continue;
        }
        cluster += 1;
        labels[start] = Some(cluster);
        let mut open = Vec::new();
        join(&mut labels, &mut open, near, cluster);
        while let Some(i) = open.pop() {
            check(stop)?;
            let near = around(i);
            if near.len() >= least {
                join(&mut labels, &mut open, near, cluster);
            }
        }
    }
    Ok(labels
        .into_iter()
        .map(|label| label.unwrap_or(NOISE))
        .collect())
}

/// Gives points to a cluster. Those that nobody looked at wait, each once: what waits has its label already. A point that was
/// noise is on the edge: the cluster ends there.
fn join(labels: &mut [Option<i32>], open: &mut Vec<usize>, near: Vec<usize>, cluster: i32) {
    for i in near {
        match labels[i] {
            None => open.push(i),
            Some(NOISE) => {}
            Some(_) => continue,
        }
        labels[i] = Some(cluster);
    }
}

/// Where the sorted distances to the k-th neighbour bend most: the point furthest below the line from first to last.
fn knee(space: &Space<'_>, k: usize, stop: &Stop) -> Result<f64, Stopped> {
    let count = space.len();
    let mut of_kth = Vec::with_capacity(count);
    for i in 0..count {
        check(stop)?;
        let mut row: Vec<f64> = (0..count).map(|j| space.apart(i, j)).collect();
        let place = k.min(row.len() - 1);
        let (_, kth, _) = row.select_nth_unstable_by(place, f64::total_cmp);
        of_kth.push(*kth);
    }
    of_kth.sort_by(f64::total_cmp);
    let last = of_kth.len() - 1;
    let (low, high) = (of_kth[0], of_kth[last]);
    let below = |i: usize| low + (high - low) * i as f64 / last.max(1) as f64 - of_kth[i];
    let bend = (0..=last).max_by(|a, b| below(*a).total_cmp(&below(*b)));
    Ok(bend.map_or(high, |i| of_kth[i]))
}

/// Joined from single points up, until `k` clusters are left or what is left is too far apart.
fn agglomerative(
    points: &[Vec<f32>],
    k: usize,
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let count = points.len();
    let space = Space::new(points, settings.measure);
    let mut apart: Vec<f64> = Vec::with_capacity(count * (count - 1) / 2);
    for i in 0..count {
        check(stop)?;
        apart.extend((i + 1..count).map(|j| space.apart(i, j)));
    }
    let method = match settings.linkage {
        Linkage::Average => kodama::Method::Average,
        Linkage::Ward => kodama::Method::Ward,
        Linkage::Complete => kodama::Method::Complete,
        Linkage::Single => kodama::Method::Single,
    };
    let tree = kodama::linkage(&mut apart, count, method);
    let joins = tree
        .steps()
        .iter()
        .enumerate()
        .take_while(|(number, step)| {
            settings
                .threshold
                .map_or(*number < count - k, |most| step.dissimilarity <= most)
        });
    let mut groups: Vec<Vec<usize>> = (0..count).map(|i| vec![i]).collect();
    for (_, step) in joins {
        let mut joined = std::mem::take(&mut groups[step.cluster1]);
        joined.append(&mut groups[step.cluster2]);
        groups.push(joined);
    }
    let mut labels = vec![NOISE; count];
    for (label, members) in groups.iter().filter(|g| !g.is_empty()).enumerate() {
        members.iter().for_each(|i| labels[*i] = label as i32);
    }
    Ok(labels)
}
