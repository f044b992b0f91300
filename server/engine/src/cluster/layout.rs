//! Points laid out in few dimensions so that what belongs together in a graph lies together: stochastic gradient descent
//! over its links, with points taken by chance pushed away (UMAP: McInnes, Healy and Melville 2018).

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::algorithms::check;
use super::neighbours::{Edge, Measure, Space, fuzzy, nearest_of_each};
use super::projection::project;
use super::{Stop, Stopped};

/// No point moves further than this along one direction in one step.
const CLIP: f32 = 4.0;
/// Points this far at least in the middle of the beginning's width, so that none lie on one another.
const JITTER: f32 = 1e-4;

/// What is done to a layout, over and over.
pub(super) struct Descent<P, N> {
    pub epochs: usize,
    pub rate: f32,
    /// Points that are pushed away for each link that pulls.
    pub pushed: f64,
    /// By squared distance, how strongly a link pulls (below 0) and how strongly others are pushed (above 0).
    pub pull: P,
    pub push: N,
}

impl<P: Fn(f32) -> f32, N: Fn(f32) -> f32> Descent<P, N> {
    /// Moves the points of a layout along the links of a graph.
    pub(super) fn run(
        &self,
        edges: &[Edge],
        at: &mut [Vec<f32>],
        rng: &mut StdRng,
        stop: &Stop,
    ) -> Result<(), Stopped> {
        let most = edges.iter().map(|edge| edge.weight).fold(0.0, f64::max);
        // A link is used as often as it is strong; those that would never be used are left out.
        let used = |edge: &&Edge| edge.weight * self.epochs as f64 >= most;
        let mut links: Vec<(Edge, f64, f64)> = edges
            .iter()
            .filter(used)
            .map(|edge| (*edge, most / edge.weight, most / edge.weight))
            .collect();
        for epoch in 0..self.epochs {
            check(stop)?;
            let rate = self.rate * (1.0 - epoch as f32 / self.epochs as f32);
            for (edge, every, next) in &mut links {
                if *next > epoch as f64 {
                    continue;
                }
                *next += *every;
                // Both ends pull: the graph is the same both ways.
                for (from, to) in [(edge.a, edge.b), (edge.b, edge.a)] {
                    self.step(at, (from, to), rate, rng);
                }
            }
        }
        Ok(())
    }

    fn step(&self, at: &mut [Vec<f32>], (from, to): (usize, usize), rate: f32, rng: &mut StdRng) {
        let strength = (self.pull)(apart(&at[from], &at[to]));
        let along = |a: f32, b: f32| (strength * (a - b)).clamp(-CLIP, CLIP) * rate;
        for axis in 0..at[from].len() {
            let moved = along(at[from][axis], at[to][axis]);
            at[from][axis] += moved;
            at[to][axis] -= moved;
        }
        let whole = self.pushed.floor();
        let more = rng.random_bool((self.pushed - whole).clamp(0.0, 1.0));
        for _ in 0..whole as usize + usize::from(more) {
            let other = rng.random_range(0..at.len());
            if other == from {
                continue;
            }
            let strength = (self.push)(apart(&at[from], &at[other]));
            for axis in 0..at[from].len() {
                let off = at[from][axis] - at[other][axis];
                at[from][axis] += (strength * off).clamp(-CLIP, CLIP) * rate;
            }
        }
    }
}

/// Squared, and never 0: forces along no distance have no direction.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    let sum: f32 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    sum.max(1e-12)
}

/// Where a layout begins: the directions in which the points differ most, so wide.
pub(super) fn beginning(
    points: &[Vec<f32>],
    dims: usize,
    width: f32,
    rng: &mut StdRng,
    stop: &Stop,
) -> Result<Vec<Vec<f32>>, Stopped> {
    let mut at = project(points, dims, stop)?;
    let numbers = at.iter().flatten().map(|x| x.abs());
    let scale = width / numbers.fold(f32::MIN_POSITIVE, f32::max).max(1e-12);
    for x in at.iter_mut().flatten() {
        *x = *x * scale + width * rng.random_range(-JITTER..JITTER);
    }
    Ok(at)
}

/// What UMAP is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Umap {
    pub dims: usize,
    pub neighbours: usize,
    /// How close points may lie.
    pub closest: f64,
    pub measure: Measure,
    pub seed: u64,
}

impl Umap {
    pub(super) fn run(&self, points: &[Vec<f32>], stop: &Stop) -> Result<Vec<Vec<f32>>, Stopped> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        // A point is one of its own neighbours.
        let near = nearest_of_each(
            &Space::new(points, self.measure),
            self.neighbours.saturating_sub(1).max(1),
            stop,
        )?;
        let mut at = beginning(points, self.dims, 10.0, &mut rng, stop)?;
        let (a, b) = curve(self.closest);
        let (a, b) = (a as f32, b as f32);
        let descent = Descent {
            epochs: if points.len() > 5_000 { 200 } else { 500 },
            rate: 1.0,
            pushed: 5.0,
            pull: move |apart: f32| {
                let near = apart.powf(b);
                -2.0 * a * b * near / apart / (1.0 + a * near)
            },
            push: move |apart: f32| 2.0 * b / ((1e-3 + apart) * (1.0 + a * apart.powf(b))),
        };
        descent.run(&fuzzy(&near), &mut at, &mut rng, stop)?;
        Ok(at)
    }
}

/// The curve `1 / (1 + a·x^2b)` nearest to one that is 1 up to `closest` and falls exponentially from there on, by Gauss
/// and Newton with damping.
fn curve(closest: f64) -> (f64, f64) {
    let wanted = |x: f64| match x - closest {
        beyond if beyond > 0.0 => (-beyond).exp(),
        _ => 1.0,
    };
    let places: Vec<f64> = (1..=300).map(|i| f64::from(i) / 100.0).collect();
    let value = |x: f64, a: f64, b: f64| 1.0 / (1.0 + a * x.powf(2.0 * b));
    let error = |a: f64, b: f64| -> f64 {
        places
            .iter()
            .map(|x| (value(*x, a, b) - wanted(*x)).powi(2))
            .sum()
    };
    let (mut a, mut b, mut damping) = (1.5_f64, 0.9_f64, 1e-2_f64);
    for _ in 0..200 {
        let (mut aa, mut ab, mut bb, mut ra, mut rb) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for x in &places {
            let (at, power) = (value(*x, a, b), x.powf(2.0 * b));
            let by_a = -at * at * power;
            let by_b = -at * at * a * power * 2.0 * x.ln();
            let off = wanted(*x) - at;
            aa += by_a * by_a;
            ab += by_a * by_b;
            bb += by_b * by_b;
            ra += by_a * off;
            rb += by_b * off;
        }
        let (aa, bb) = (aa * (1.0 + damping), bb * (1.0 + damping));
        let size = aa * bb - ab * ab;
        if size.abs() < 1e-18 {
            break;
        }
        let (next_a, next_b) = (
            a + (ra * bb - rb * ab) / size,
            b + (rb * aa - ra * ab) / size,
        );
        if next_a > 0.0 && next_b > 0.0 && error(next_a, next_b) < error(a, b) {
            (a, b, damping) = (next_a, next_b, damping / 3.0);
        } else {
            damping *= 5.0;
        }
    }
    (a, b)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_curve_is_the_one_that_is_known() {
        // What the reference implementation finds for its defaults.
        for (closest, a, b) in [
            (0.0, 1.929, 0.7915),
            (0.1, 1.577, 0.8951),
            (0.5, 0.583, 1.334),
        ] {
            let found = super::curve(closest);
            assert!(
                (found.0 - a).abs() < 0.02 && (found.1 - b).abs() < 0.02,
                "{closest}: {found:?}"
            );
        }
    }
}
