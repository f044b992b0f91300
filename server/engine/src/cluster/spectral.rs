//! Spectral clustering (Ng, Jordan and Weiss 2001): k-means in the space of the first eigenvectors of the graph of
//! neighbours, found by orthogonal iteration.

use rand::Rng as _;
use rand::rngs::StdRng;

use super::algorithms::{check, kmeans};
use super::projection::orthonormal;
use super::{Settings, Stop, Stopped};
use crate::stage::likeness::dot;

/// Neighbours that each point is linked to.
const NEIGHBOURS: usize = 10;
const ROUNDS: usize = 200;

pub(super) fn label(
    points: &[Vec<f32>],
    k: usize,
    settings: &Settings,
    rng: &mut StdRng,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let graph = graph(points, stop)?;
    let mut space: Vec<Vec<f64>> = (0..k)
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
fn graph(points: &[Vec<f32>], stop: &Stop) -> Result<Vec<Vec<(usize, f64)>>, Stopped> {
    let count = points.len();
    let mut links = vec![Vec::new(); count];
    for i in 0..count {
        check(stop)?;
        let mut near: Vec<(usize, f64)> = (0..count)
            .filter(|j| *j != i)
            .map(|j| (j, dot(&points[i], &points[j]).max(0.0)))
            .collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (j, weight) in near.into_iter().take(NEIGHBOURS) {
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
