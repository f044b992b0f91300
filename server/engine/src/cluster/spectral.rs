//! Spectral clustering (Ng, Jordan and Weiss 2001): k-means in the space of the first eigenvectors of the graph of
//! neighbours, found by orthogonal iteration.

use rand::Rng as _;
use rand::rngs::StdRng;

use super::algorithms::{check, distance, kmeans};
use super::projection::orthonormal;
use super::{Settings, Stop, Stopped};
use crate::stage::likeness::dot;

/// What the link of a point and one of its neighbours weighs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Affinity {
    /// How alike they are by their angle.
    #[default]
    Angle,
    /// The same whichever it is.
    Neighbours,
    /// The less, the further they are apart: the radial basis function with this gamma.
    Radial(f64),
}

impl Affinity {
    /// How far two points are apart, for the order of neighbours, and what their link weighs.
    fn of(self, a: &[f32], b: &[f32]) -> (f64, f64) {
        match self {
            Self::Angle => {
                let near = dot(a, b).max(0.0);
                (-near, near)
            }
            Self::Neighbours => (distance(a, b), 1.0),
            Self::Radial(gamma) => {
                let apart = distance(a, b);
                (apart, (-gamma * apart).exp())
            }
        }
    }
}

const ROUNDS: usize = 200;

pub(super) fn label(
    points: &[Vec<f32>],
    k: usize,
    settings: &Settings,
    rng: &mut StdRng,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let graph = graph(points, settings, stop)?;
    let width = settings.components.unwrap_or(k).clamp(1, points.len());
    let mut space: Vec<Vec<f64>> = (0..width)
        .map(|_| points.iter().map(|_| rng.random_range(-1.0..1.0)).collect())
        .collect();
    for _ in 0..ROUNDS {
        check(stop)?;
        space = space.iter().map(|vector| step(&graph, vector)).collect();
        orthonormal(&mut space);
    }
    let rows: Vec<Vec<f32>> = (0..points.len())
        .map(|i| {
            let mut row: Vec<f32> = space.iter().map(|vector| vector[i] as f32).collect();
            crate::embed::normalize(&mut row);
            row
        })
        .collect();
    kmeans(&rows, k, settings, rng, stop)
}

/// The links of each point with their weights, scaled by what both ends have in all.
fn graph(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<Vec<(usize, f64)>>, Stopped> {
    let count = points.len();
    let mut links = vec![Vec::new(); count];
    for i in 0..count {
        check(stop)?;
        let mut near: Vec<(usize, (f64, f64))> = (0..count)
            .filter(|j| *j != i)
            .map(|j| (j, settings.affinity.of(&points[i], &points[j])))
            .collect();
        near.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
        for (j, (_, weight)) in near.into_iter().take(settings.neighbours) {
            // Half from each side, so that the graph is the same both ways.
            links[i].push((j, weight / 2.0));
            links[j].push((i, weight / 2.0));
        }
    }
    let all: Vec<f64> = links
        .iter()
        .map(|list: &Vec<(usize, f64)>| list.iter().map(|(_, w)| w).sum::<f64>().max(1e-12))
        .collect();
    for (i, list) in links.iter_mut().enumerate() {
        list.iter_mut()
            .for_each(|(j, w)| *w /= (all[i] * all[*j]).sqrt());
    }
    Ok(links)
}

/// The graph applied to a vector, half of it kept: that makes every eigenvalue positive and their order that of size.
fn step(graph: &[Vec<(usize, f64)>], vector: &[f64]) -> Vec<f64> {
    let of = |(i, links): (usize, &Vec<(usize, f64)>)| {
        (vector[i] + links.iter().map(|(j, w)| w * vector[*j]).sum::<f64>()) / 2.0
    };
    graph.iter().enumerate().map(of).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cluster::Algorithm;

    #[test]
    fn links_weigh_what_is_asked_for() {
        // On a line: each is linked with its nearest, the last one with the middle alone.
        let points = [vec![0.0_f32, 1.0], vec![1.0, 1.0], vec![3.0, 1.0]];
        let of = |affinity, neighbours| {
            let settings = Settings {
                affinity,
                neighbours,
                ..Settings::new(Algorithm::Spectral)
            };
            graph(&points, &settings, &Stop::default()).unwrap()
        };
        let linked = |graph: &[Vec<(usize, f64)>], a: usize, b: usize| -> f64 {
            let links = graph[a].iter().filter(|(other, _)| *other == b);
            links.map(|(_, weight)| weight).sum()
        };
        let one = of(Affinity::Neighbours, 1);
        assert_eq!(linked(&one, 0, 2), 0.0);
        assert!(linked(&of(Affinity::Neighbours, 2), 0, 2) > 0.0);
        // Of two links at one point that with the nearer weighs more, the more so, the larger gamma is.
        let ratio = |gamma| {
            let graph = of(Affinity::Radial(gamma), 1);
            linked(&graph, 1, 0) / linked(&graph, 1, 2)
        };
        assert!(ratio(1.0) > ratio(0.1), "{} {}", ratio(1.0), ratio(0.1));
        assert!(linked(&one, 0, 1) > linked(&one, 1, 2));
    }
}
