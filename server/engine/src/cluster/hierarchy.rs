//! Clusters inside of clusters.

use std::collections::BTreeMap;

use super::{Clustering, NOISE, Settings, Stop, Stopped, algorithms, cluster, gathered, quality};

/// A cluster is divided where its parts are so well apart (silhouette).
const APART: f64 = 0.25;

/// A cluster that was divided: it holds what is in all clusters below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The branch around it, by its place.
    pub parent: Option<usize>,
    /// 0 for those around which is nothing.
    pub depth: usize,
    /// The clusters in it that are not divided, by their places.
    pub leaves: Vec<usize>,
}

/// Divides clusters by the same way that they were found, again and again, while their parts are well apart.
///
/// # Errors
/// The work was stopped.
pub fn divided(
    points: &[Vec<f32>],
    found: Clustering,
    settings: &Settings,
    depth: usize,
    stop: &Stop,
) -> Result<(Clustering, Vec<Vec<i32>>), Stopped> {
    let mut paths: Vec<Vec<i32>> = vec![Vec::new(); points.len()];
    let mut open = Vec::new();
    for (label, one) in found.clusters.into_iter().enumerate() {
        one.members
            .iter()
            .for_each(|place| paths[*place].push(label as i32));
        open.push((one.members, 1));
    }
    while let Some((mut members, deep)) = open.pop() {
        algorithms::check(stop)?;
        if deep >= depth || members.len() < 2 * settings.least.max(2) {
            continue;
        }
        members.sort_unstable();
        let some: Vec<Vec<f32>> = members.iter().map(|place| points[*place].clone()).collect();
        let inner = cluster(&some, settings, None, stop)?;
        let apart = quality(&some, &inner).silhouette;
        if inner.clusters.len() < 2 || apart.is_none_or(|apart| apart < APART) {
            continue;
        }
        let middles: Vec<&[f32]> = inner.clusters.iter().map(|one| &*one.centroid).collect();
        let mut parts = vec![Vec::new(); middles.len()];
        for ((place, point), label) in members.iter().zip(&some).zip(&inner.labels) {
            // What is noise inside of a cluster is still a part of the cluster: of the nearest in it.
            let nearest = || algorithms::nearest(point, &middles).map_or(0, |(label, _)| label);
            let label = usize::try_from(*label).unwrap_or_else(|_| nearest());
            paths[*place].push(label as i32);
            parts[label].push(*place);
        }
        open.extend(parts.into_iter().map(|part| (part, deep + 1)));
    }
    let labels = numbered(&paths);
    Ok((gathered(points, labels, found.compared), paths))
}

/// A number for every path that is not empty; the clusters of a path are those that end with it.
pub fn numbered(paths: &[Vec<i32>]) -> Vec<i32> {
    let mut known: BTreeMap<&[i32], i32> = BTreeMap::new();
    for path in paths.iter().filter(|path| !path.is_empty()) {
        let next = known.len() as i32;
        known.entry(path).or_insert(next);
    }
    let number = |path: &Vec<i32>| known.get(path.as_slice()).copied().unwrap_or(NOISE);
    paths.iter().map(number).collect()
}

/// What lies around the clusters of a clustering, by the paths of its points: outer ones first. Around a cluster that was
/// not divided is nothing; without paths nothing was divided.
pub fn branches(found: &Clustering, paths: &[Vec<i32>]) -> Vec<Branch> {
    let mut by_path: BTreeMap<(usize, &[i32]), Vec<usize>> = BTreeMap::new();
    for (leaf, one) in found.clusters.iter().enumerate() {
        let Some(path) = one.members.first().and_then(|place| paths.get(*place)) else {
            continue;
        };
        for depth in 0..path.len().saturating_sub(1) {
            let around = by_path.entry((depth, &path[..=depth])).or_default();
            around.push(leaf);
        }
    }
    let places: Vec<(usize, &[i32])> = by_path.keys().copied().collect();
    let parent = |depth: usize, path: &[i32]| {
        let outer = (depth.checked_sub(1)?, &path[..path.len() - 1]);
        places.iter().position(|place| *place == outer)
    };
    let branch = |((depth, path), leaves): ((usize, &[i32]), Vec<usize>)| Branch {
        parent: parent(depth, path),
        depth,
        leaves,
    };
    by_path.into_iter().map(branch).collect()
}
