//! Points in two or three dimensions, for a picture: the directions in which they differ most (principal components), by
//! orthogonal iteration. Signs are chosen so that the same points make the same picture.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::{Stop, Stopped};

const ROUNDS: usize = 30;
/// The directions are those of so many points at most, evenly taken.
const LEARNED_FROM: usize = 5_000;

/// Each point by `dims` numbers.
///
/// # Errors
/// The work was stopped.
pub fn project(points: &[Vec<f32>], dims: usize, stop: &Stop) -> Result<Vec<Vec<f32>>, Stopped> {
    let width = points.first().map_or(0, Vec::len);
    let step = points.len().div_ceil(LEARNED_FROM).max(1);
    let some: Vec<&Vec<f32>> = points.iter().step_by(step).collect();
    let mut middle = vec![0.0_f64; width];
    for point in &some {
        for (m, x) in middle.iter_mut().zip(*point) {
            *m += f64::from(*x) / some.len() as f64;
        }
    }
    let mut rng = StdRng::seed_from_u64(42);
    let mut axes: Vec<Vec<f64>> = (0..dims.min(width))
        .map(|_| (0..width).map(|_| rng.random_range(-1.0..1.0)).collect())
        .collect();
    for _ in 0..ROUNDS {
        if stop.is_stopped() {
            return Err(Stopped);
        }
        axes = axes
            .iter()
            .map(|axis| applied(&some, &middle, axis))
            .collect();
        orthonormal(&mut axes);
    }
    for axis in &mut axes {
        let largest = axis
            .iter()
            .copied()
            .max_by(|a, b| a.abs().total_cmp(&b.abs()));
        if largest.is_some_and(|largest| largest < 0.0) {
            axis.iter_mut().for_each(|a| *a = -*a);
        }
    }
    let place = |point: &Vec<f32>| -> Vec<f32> {
        let along = |axis: &Vec<f64>| along(point, &middle, axis) as f32;
        axes.iter()
            .map(along)
            .chain(std::iter::repeat(0.0))
            .take(dims)
            .collect()
    };
    Ok(points.iter().map(place).collect())
}

fn along(point: &[f32], middle: &[f64], axis: &[f64]) -> f64 {
    let parts = point.iter().zip(middle).zip(axis);
    parts.map(|((x, m), a)| (f64::from(*x) - m) * a).sum()
}

/// The points' covariance applied to a direction.
fn applied(points: &[&Vec<f32>], middle: &[f64], axis: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; axis.len()];
    for point in points {
        let weight = along(point, middle, axis) / points.len() as f64;
        for ((o, x), m) in out.iter_mut().zip(*point).zip(middle) {
            *o += weight * (f64::from(*x) - m);
        }
    }
    out
}

/// Gram and Schmidt.
pub(super) fn orthonormal(space: &mut [Vec<f64>]) {
    for i in 0..space.len() {
        let (before, rest) = space.split_at_mut(i);
        let vector = &mut rest[0];
        for other in before {
            let along: f64 = vector.iter().zip(other.iter()).map(|(a, b)| a * b).sum();
            vector
                .iter_mut()
                .zip(other)
                .for_each(|(a, b)| *a -= along * *b);
        }
        let norm = vector.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm > 0.0 {
            vector.iter_mut().for_each(|a| *a /= norm);
        }
    }
}
