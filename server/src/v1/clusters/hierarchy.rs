//! What lies around the clusters of an execution, where they were divided or have attributes in order.

use std::collections::HashMap;

use loupe_engine::cluster::{Branch, Cluster, Clustering, branches, keywords};
use loupe_wire::ClusterHierarchyNode;

use super::{computing::Computed, labels, reading::Point};

/// Words that a branch is named by.
const WORDS: usize = 10;

/// The branches with their names, outer ones first. Their ids go on after those of the clusters.
pub fn told(computed: &Computed) -> Vec<ClusterHierarchyNode> {
    let (found, branches) = (&computed.found, &computed.branches);
    let names = named(computed);
    let id = |place: usize| format!("cl_{}", found.clusters.len() + place);
    let node = |(place, branch): (usize, &Branch)| {
        let inner: Vec<usize> = (0..branches.len())
            .filter(|other| branches[*other].parent == Some(place))
            .collect();
        let within = |leaf: &&usize| {
            let mut inner = inner.iter();
            !inner.any(|branch| branches[*branch].leaves.contains(leaf))
        };
        let leaves = branch.leaves.iter().filter(within);
        let children = inner.iter().map(|branch| id(*branch));
        let members = branch
            .leaves
            .iter()
            .map(|leaf| found.clusters[*leaf].members.len());
        let (label, keywords) = names[place].clone();
        ClusterHierarchyNode {
            cluster_id: id(place),
            parent_cluster_id: branch.parent.map(id),
            depth: i64::try_from(branch.depth).unwrap_or(i64::MAX),
            num_members: i64::try_from(members.sum::<usize>()).unwrap_or(i64::MAX),
            child_cluster_ids: children
                .chain(leaves.map(|leaf| format!("cl_{leaf}")))
                .collect(),
            label,
            keywords,
        }
    };
    branches.iter().enumerate().map(node).collect()
}

/// Label and words of each branch: by the values that its documents share, or by the words that others of its depth do not
/// use.
fn named(computed: &Computed) -> Vec<(String, Vec<String>)> {
    let (found, branches) = (&computed.found, &computed.branches);
    let points = &computed.gathered.points;
    let members = |branch: &Branch| -> Vec<usize> {
        let leaves = branch.leaves.iter().map(|leaf| &found.clusters[*leaf]);
        leaves
            .flat_map(|one: &Cluster| one.members.clone())
            .collect()
    };
    let mut names = vec![(String::new(), Vec::new()); branches.len()];
    let deepest = branches.iter().map(|branch| branch.depth).max();
    for depth in 0..=deepest.unwrap_or(0) {
        let places: Vec<usize> = (0..branches.len())
            .filter(|place| branches[*place].depth == depth)
            .collect();
        let held: Vec<Vec<usize>> = places
            .iter()
            .map(|place| members(&branches[*place]))
            .collect();
        let texts: Vec<Vec<&str>> = held
            .iter()
            .map(|held| {
                held.iter()
                    .map(|point| points[*point].text.as_str())
                    .collect()
            })
            .collect();
        let words = keywords(&texts, WORDS);
        let own = labels::labels(&words).into_iter().zip(words);
        for (number, (place, (label, words))) in places.iter().zip(own).enumerate() {
            let first = held[number].first().map(|point| &points[*point].attributes);
            let values = first.filter(|values| !values.is_empty());
            let label = match values {
                Some(values) => values[..=depth.min(values.len() - 1)].join(" / "),
                None => label,
            };
            names[*place] = (label, words);
        }
    }
    names
}

/// The branches of documents by the order of their attributes: those with the same first value, of these those with the
/// same second one, and so on.
pub fn by_attributes(found: &Clustering, points: &[Point]) -> Vec<Branch> {
    let mut known: HashMap<&str, i32> = HashMap::new();
    let mut paths = Vec::with_capacity(points.len());
    for point in points {
        let mut path = Vec::with_capacity(point.attributes.len());
        for value in &point.attributes {
            let next = i32::try_from(known.len()).unwrap_or(i32::MAX);
            path.push(*known.entry(value.as_str()).or_insert(next));
        }
        paths.push(path);
    }
    branches(found, &paths)
}
