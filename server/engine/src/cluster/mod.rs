//! Points gathered into clusters: one place for stages and for clusters that are resources of their own.
//!
//! Everything is deterministic: the same points and [`Settings`] make the same clusters. Work is plain computing and
//! belongs off the async runtime.

mod algorithms;
mod aligning;
mod evoc;
mod hierarchy;
mod layout;
mod leiden;
mod mean_shift;
mod mixture;
mod neighbours;
mod optics;
mod projection;
mod quality;
mod reduction;
mod spectral;
mod tsne;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::index::sample;

pub use aligning::aligned;
pub use hierarchy::{Branch, branches, divided, numbered};
pub use layout::Umap;
pub use leiden::Objective;
pub use neighbours::Measure;
pub use optics::Valleys;
pub use projection::project;
pub use quality::{Drift, Quality, drift, quality};
pub use reduction::{Reduction, picture};
pub use spectral::Affinity;
pub use tsne::Tsne;
pub use words::keywords;

use crate::stage::likeness::cosine;

/// The label of points in no cluster.
pub const NOISE: i32 = -1;

/// Ways to gather points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    Kmeans,
    Dbscan,
    Hdbscan,
    Agglomerative,
    Spectral,
    GaussianMixture,
    MeanShift,
    Optics,
    Leiden,
    Evoc,
}

impl Algorithm {
    /// By the interface's word.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "kmeans" => Self::Kmeans,
            "dbscan" => Self::Dbscan,
            "hdbscan" => Self::Hdbscan,
            "agglomerative" => Self::Agglomerative,
            "spectral" => Self::Spectral,
            "gaussian_mixture" => Self::GaussianMixture,
            "mean_shift" => Self::MeanShift,
            "optics" => Self::Optics,
            "leiden" => Self::Leiden,
            "evoc" => Self::Evoc,
            _ => return None,
        })
    }

    /// The interface's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kmeans => "kmeans",
            Self::Dbscan => "dbscan",
            Self::Hdbscan => "hdbscan",
            Self::Agglomerative => "agglomerative",
            Self::Spectral => "spectral",
            Self::GaussianMixture => "gaussian_mixture",
            Self::MeanShift => "mean_shift",
            Self::Optics => "optics",
            Self::Leiden => "leiden",
            Self::Evoc => "evoc",
        }
    }

    /// Most points that are compared; of more, a sample is clustered and the others go to the cluster that is nearest.
    /// What compares each with each is bounded by time, what keeps every distance by memory.
    pub const fn most_points(self) -> usize {
        match self {
            Self::Kmeans | Self::GaussianMixture => 50_000,
            Self::Hdbscan | Self::Dbscan | Self::Optics | Self::Leiden | Self::Evoc => 10_000,
            Self::Agglomerative | Self::Spectral => 4_000,
            // Each climbs over all, again and again.
            Self::MeanShift => 2_000,
        }
    }
}

/// How the distance of two groups is measured when they are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    #[default]
    Average,
    Ward,
    Complete,
    Single,
}

/// Where k-means begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seeds {
    /// Each far from those before.
    #[default]
    Spread,
    /// At any points.
    Chance,
}

/// What a Gaussian may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Long and narrow in any direction.
    Full,
    /// Of its own width in each number.
    #[default]
    Diagonal,
    /// As wide in all of them.
    Round,
}

/// What an algorithm is told.
#[derive(Debug, Clone)]
pub struct Settings {
    pub algorithm: Algorithm,
    /// The square root of half the points where absent.
    pub clusters: Option<usize>,
    /// Fewest points of a cluster, for those that find noise.
    pub least: usize,
    /// Most points of a cluster, and whether all points may be one, for hdbscan.
    pub largest: Option<usize>,
    pub single: bool,
    /// Neighbours that make a point a part of a cluster; as `least` where absent.
    pub samples: Option<usize>,
    /// How near neighbours are; measured where absent.
    pub radius: Option<f64>,
    /// How far points are apart, for those that ask.
    pub measure: Measure,
    /// Neighbours that each point is linked with.
    pub neighbours: usize,
    /// What the links of a graph weigh, and its eigenvectors that are compared: as many as clusters where absent.
    pub affinity: Affinity,
    pub components: Option<usize>,
    pub objective: Objective,
    /// The larger, the smaller communities.
    pub resolution: f64,
    /// How often communities are looked for, each time from those before; until nothing changes where absent.
    pub passes: Option<usize>,
    /// Clusters of fewer points are none; in place of it `share`, of all points.
    pub smallest: usize,
    pub share: Option<f64>,
    pub valleys: Valleys,
    /// Share of the points that the radius is measured by.
    pub quantile: f64,
    /// Begins at cells of a grid with so many points, not at every point.
    pub cells: Option<usize>,
    /// Also what is far from every cluster belongs to the nearest.
    pub everything: bool,
    /// 0 to cluster as much as can be, 1 to leave out what does not belong clearly.
    pub noise: f64,
    /// What is done to the points before they are compared.
    pub reductions: Vec<Reduction>,
    pub linkage: Linkage,
    /// Groups that are further apart than this are not joined.
    pub threshold: Option<f64>,
    pub rounds: usize,
    /// Rounds end where less than this changes; at 0 where nothing does.
    pub tolerance: f64,
    /// Beginnings of which the best is kept.
    pub starts: usize,
    pub seeds: Seeds,
    pub shape: Shape,
    /// What Gaussians are wider than their points in every direction, as a variance.
    pub widened: f64,
    pub seed: u64,
}

impl Settings {
    pub fn new(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            clusters: None,
            least: 5,
            largest: None,
            single: false,
            samples: None,
            radius: None,
            measure: Measure::default(),
            neighbours: match algorithm {
                Algorithm::Spectral => 10,
                _ => 15,
            },
            affinity: Affinity::default(),
            components: None,
            objective: Objective::default(),
            resolution: 1.0,
            passes: Some(2),
            smallest: 0,
            share: None,
            valleys: Valleys::default(),
            quantile: 0.1,
            cells: None,
            everything: true,
            noise: 0.5,
            reductions: Vec::new(),
            linkage: Linkage::default(),
            threshold: None,
            rounds: 50,
            tolerance: 0.0,
            starts: 1,
            seeds: Seeds::default(),
            shape: Shape::default(),
            widened: 1e-4,
            seed: 42,
        }
    }

    /// Whether points that are like nothing are in no cluster.
    pub const fn finds_noise(&self) -> bool {
        match self.algorithm {
            Algorithm::Hdbscan | Algorithm::Dbscan | Algorithm::Optics | Algorithm::Evoc => true,
            Algorithm::MeanShift => !self.everything,
            Algorithm::Leiden => self.smallest > 1,
            _ => false,
        }
    }

    /// Whether each number of a point is held against each.
    fn is_full(&self) -> bool {
        self.algorithm == Algorithm::GaussianMixture && self.shape == Shape::Full
    }

    /// Numbers of each point after the steps.
    fn width(&self, points: &[Vec<f32>]) -> usize {
        let drawn = self.reductions.iter().rev().find_map(|step| match step {
            Reduction::Umap(umap) => Some(umap.dims),
            Reduction::Tsne(tsne) => Some(tsne.dims),
            Reduction::Whitening(_) => None,
        });
        drawn.unwrap_or_else(|| points.first().map_or(0, Vec::len))
    }

    /// Most of these points that are compared: what the algorithm and every step before it take, and what is wanted.
    fn limit(&self, points: &[Vec<f32>], most: Option<usize>) -> usize {
        let mut limit = self.algorithm.most_points();
        if self.is_full() {
            limit = limit.min(mixture::most_points(self.width(points)));
        }
        let steps = self.reductions.iter().map(Reduction::most_points);
        let limit = steps.chain(most).fold(limit, usize::min);
        limit.max(2)
    }

    /// Whether points are of too many numbers to hold each against each, for as many Gaussians as are wanted.
    pub fn is_too_wide(&self, points: &[Vec<f32>], most: Option<usize>) -> bool {
        let compared = points.len().min(self.limit(points, most));
        let width = self.width(points);
        let gaussians = algorithms::gaussians(compared, width, self);
        self.is_full() && gaussians > mixture::most_gaussians(width)
    }
}

/// Tells work that goes on for long that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The work was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// Points and the clusters that they are in.
#[derive(Debug, Clone, Default)]
pub struct Clustering {
    /// One a point, from 0 for the largest cluster on; [`NOISE`] for points in none.
    pub labels: Vec<i32>,
    pub clusters: Vec<Cluster>,
    /// Points that were compared; fewer than all where a sample was taken.
    pub compared: usize,
}

/// One cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cluster {
    /// Places of the points, nearest to the middle first.
    pub members: Vec<usize>,
    /// The mean of the points.
    pub centroid: Vec<f32>,
}

/// Gathers points. More points than the algorithm compares, or than `most`, are sampled.
///
/// # Errors
/// The work was stopped.
pub fn cluster(
    points: &[Vec<f32>],
    settings: &Settings,
    most: Option<usize>,
    stop: &Stop,
) -> Result<Clustering, Stopped> {
    let limit = settings.limit(points, most);
    if points.len() <= limit {
        let labels = label(points, settings, stop)?;
        return Ok(gathered(points, labels, points.len()));
    }
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let mut chosen = sample(&mut rng, points.len(), limit).into_vec();
    chosen.sort_unstable();
    let some: Vec<Vec<f32>> = chosen.iter().map(|place| points[*place].clone()).collect();
    let labels = label(&some, settings, stop)?;
    let found = gathered(&some, labels, limit);
    let labels = assign(points, &found, &some, settings.finds_noise(), stop)?;
    Ok(gathered(points, labels, limit))
}

/// Labels of points as they are after the steps; what clusters are is told of the points as they came.
fn label(points: &[Vec<f32>], settings: &Settings, stop: &Stop) -> Result<Vec<i32>, Stopped> {
    let reduced = reduction::reduced(points, &settings.reductions, stop)?;
    algorithms::label(reduced.as_deref().unwrap_or(points), settings, stop)
}

/// How alike two points are by their angle: 1 where they are the same.
pub fn likeness(a: &[f32], b: &[f32]) -> f64 {
    cosine(a, b)
}

/// Points in given clusters: each in the one that it is most like by its angle, in none where that is less than `least`.
/// The clusters stay what and where they are; one may be empty.
pub fn assigned(points: &[Vec<f32>], centroids: &[Vec<f32>], least: f64) -> Clustering {
    let of = |point: &Vec<f32>| {
        let near = centroids.iter().map(|one| cosine(point, one)).enumerate();
        near.max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, near)| *near >= least)
    };
    let found: Vec<Option<(usize, f64)>> = points.iter().map(of).collect();
    let mut members: Vec<Vec<(f64, usize)>> = vec![Vec::new(); centroids.len()];
    for (place, one) in found.iter().enumerate() {
        if let Some((label, near)) = one {
            members[*label].push((*near, place));
        }
    }
    let labels = found
        .iter()
        .map(|one| one.map_or(NOISE, |(label, _)| label as i32));
    let gathered = centroids
        .iter()
        .zip(members)
        .map(|(centroid, mut members)| {
            members.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            Cluster {
                members: members.into_iter().map(|(_, place)| place).collect(),
                centroid: centroid.clone(),
            }
        });
    Clustering {
        labels: labels.collect(),
        compared: points.len(),
        clusters: gathered.collect(),
    }
}

/// Labels of points by the clusters of others: the nearest one, or none where the point is further from it than its
/// members are.
fn assign(
    points: &[Vec<f32>],
    found: &Clustering,
    some: &[Vec<f32>],
    noise: bool,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let centers: Vec<&[f32]> = found
        .clusters
        .iter()
        .map(|one| one.centroid.as_slice())
        .collect();
    let reach: Vec<f64> = found
        .clusters
        .iter()
        .map(|one| {
            let apart = one
                .members
                .iter()
                .map(|place| algorithms::distance(&some[*place], &one.centroid));
            apart.fold(0.0, f64::max)
        })
        .collect();
    let mut labels = Vec::with_capacity(points.len());
    for (place, point) in points.iter().enumerate() {
        if place % 1_000 == 0 && stop.is_stopped() {
            return Err(Stopped);
        }
        let nearest = algorithms::nearest(point, &centers);
        labels.push(match nearest {
            Some((label, apart)) if !noise || apart <= reach[label] => label as i32,
            _ => NOISE,
        });
    }
    Ok(labels)
}

/// Clusters from labels of any numbers: the largest becomes 0, and so on. Labels that are below 0 are noise.
pub fn gathered(points: &[Vec<f32>], labels: Vec<i32>, compared: usize) -> Clustering {
    let mut by_label: std::collections::BTreeMap<i32, Vec<usize>> = Default::default();
    for (place, label) in labels
        .iter()
        .enumerate()
        .filter(|(_, label)| **label > NOISE)
    {
        by_label.entry(*label).or_default().push(place);
    }
    let mut groups: Vec<Vec<usize>> = by_label.into_values().collect();
    // Stable: of equals the one that was first stays first.
    groups.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let mut labels = vec![NOISE; points.len()];
    let mut clusters = Vec::with_capacity(groups.len());
    for (label, mut members) in groups.into_iter().enumerate() {
        let centroid = algorithms::mean(points, &members);
        members
            .iter()
            .for_each(|place| labels[*place] = label as i32);
        let mut near: Vec<(f64, usize)> = members
            .iter()
            .map(|place| (cosine(&points[*place], &centroid), *place))
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        members = near.into_iter().map(|(_, place)| place).collect();
        clusters.push(Cluster { members, centroid });
    }
    Clustering {
        labels,
        clusters,
        compared,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod known_groups;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod parameters;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
