//! Mean shift (Comaniciu and Meer 2002) with a flat kernel: from every point, or from every cell of a grid, uphill to where
//! points are densest. Places that end within one bandwidth of each other are one cluster.

use std::collections::BTreeMap;

use super::algorithms::{check, distance, mean, nearest};
use super::neighbours::{Space, nearest_of_each};
use super::{Measure, NOISE, Settings, Stop, Stopped};

/// A move of less than this share of the bandwidth is none.
const STILL: f64 = 1e-3;

pub(super) fn label(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let width = match settings.radius {
        Some(width) => width,
        None => bandwidth(points, settings.quantile, stop)?,
    };
    // Of points that are all the same there is nothing to measure.
    let width = width.max(1e-9);
    let mut tops: Vec<(usize, Vec<f32>)> = Vec::new();
    for seed in seeds(points, settings, width) {
        check(stop)?;
        tops.extend(climb(points, seed, width, settings.rounds, stop)?);
    }
    // The densest first; of equals the one that came first.
    tops.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let mut centers: Vec<Vec<f32>> = Vec::new();
    for (_, top) in tops {
        let near = nearest(&top, &centers);
        if near.is_none_or(|(_, apart)| apart.sqrt() >= width) {
            centers.push(top);
        }
    }
    let of = |point: &Vec<f32>| match nearest(point, &centers) {
        Some((label, apart)) if settings.everything || apart.sqrt() <= width => label as i32,
        _ => NOISE,
    };
    Ok(points.iter().map(of).collect())
}

/// How far it is on average to the share of points that are nearest.
fn bandwidth(points: &[Vec<f32>], quantile: f64, stop: &Stop) -> Result<f64, Stopped> {
    let most = ((points.len() as f64 * quantile) as usize).max(1);
    let near = nearest_of_each(&Space::new(points, Measure::Euclidean), most, stop)?;
    let furthest = near.iter().filter_map(|row| row.last()).map(|one| one.1);
    Ok(furthest.sum::<f64>() / points.len().max(1) as f64)
}

/// The points, or the middles of the grid's cells that hold enough of them.
fn seeds(points: &[Vec<f32>], settings: &Settings, width: f64) -> Vec<Vec<f32>> {
    let Some(least) = settings.cells else {
        return points.to_vec();
    };
    let mut cells: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
    for point in points {
        let cell = point.iter().map(|x| (f64::from(*x) / width).round() as i64);
        *cells.entry(cell.collect()).or_default() += 1;
    }
    let middle = |cell: Vec<i64>| cell.iter().map(|x| (*x as f64 * width) as f32).collect();
    let full = cells.into_iter().filter(|(_, count)| *count >= least);
    let seeds: Vec<Vec<f32>> = full.map(|(cell, _)| middle(cell)).collect();
    if seeds.is_empty() || seeds.len() == points.len() {
        return points.to_vec();
    }
    seeds
}

/// Where a place ends, and how many points lie around it; nothing where it begins far from all points.
fn climb(
    points: &[Vec<f32>],
    mut at: Vec<f32>,
    width: f64,
    rounds: usize,
    stop: &Stop,
) -> Result<Option<(usize, Vec<f32>)>, Stopped> {
    let mut around = Vec::new();
    for _ in 0..rounds.max(1) {
        check(stop)?;
        let within = |place: &usize| distance(&points[*place], &at) <= width * width;
        around = (0..points.len()).filter(within).collect();
        if around.is_empty() {
            return Ok(None);
        }
        let next = mean(points, &around);
        let moved = distance(&next, &at).sqrt();
        at = next;
        if moved <= STILL * width {
            break;
        }
    }
    Ok(Some((around.len(), at)))
}
