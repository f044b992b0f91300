//! A mixture of Gaussians, by expectation and maximization from where k-means ends.

use rand::rngs::StdRng;

use super::algorithms::{check, kmeans};
use super::reduction::factor;
use super::{NOISE, Settings, Shape, Stop, Stopped};

/// How much less likely, as a logarithm, what is nothing beside the likeliest.
const NOTHING: f64 = 40.0;

/// Multiplications of one round that are borne: to sum the covariances of the points, and to factor those of all Gaussians.
const SUMMED: usize = 2_000_000_000;
const FACTORED: f64 = 1e10;

/// Points between two looks whether anybody waits.
const LOOK: usize = 256;

/// Most points of so many numbers whose covariances are summed.
pub(super) fn most_points(width: usize) -> usize {
    SUMMED / (width * width).max(1)
}

/// Most Gaussians whose covariances can be factored, of points of so many numbers.
pub(super) fn most_gaussians(width: usize) -> usize {
    (FACTORED * 3.0 / (width as f64).powi(3)) as usize
}

/// How wide a Gaussian is.
enum Spread {
    /// The variance of each number.
    Along(Vec<f64>),
    /// The covariance of each number with each, as Cholesky's factor.
    Whole(Vec<Vec<f64>>),
}

/// One Gaussian.
struct Gaussian {
    /// The logarithm of its density in its middle, weighed by its share of the points; what all have in common is left out.
    peak: f64,
    mean: Vec<f64>,
    spread: Spread,
}

impl Gaussian {
    /// Of points that each belong to it by a share.
    fn of(
        points: &[Vec<f32>],
        shares: &[f64],
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Self, Stopped> {
        let total: f64 = shares.iter().sum::<f64>().max(1e-12);
        let weights: Vec<f64> = shares.iter().map(|share| share / total).collect();
        let mut mean = vec![0.0; points[0].len()];
        for (point, weight) in points.iter().zip(&weights) {
            for (m, x) in mean.iter_mut().zip(point) {
                *m += weight * f64::from(*x);
            }
        }
        // A Gaussian without width would take a point for itself alone.
        let least = settings.widened.max(1e-12);
        let (spread, wide) = if settings.shape == Shape::Full {
            let mut rows = covariance(points, &weights, &mean, stop)?;
            factor(&mut rows, least, stop)?;
            let diagonal = rows.iter().filter_map(|row| row.last());
            let wide: f64 = diagonal.map(|one| 2.0 * one.ln()).sum();
            (Spread::Whole(rows), wide)
        } else {
            let mut along = variance(points, &weights, &mean, settings.shape);
            along.iter_mut().for_each(|v| *v += least);
            let wide: f64 = along.iter().map(|v| v.ln()).sum();
            (Spread::Along(along), wide)
        };
        let weight = total / points.len() as f64;
        Ok(Self {
            peak: weight.max(1e-300).ln() - 0.5 * wide,
            mean,
            spread,
        })
    }

    /// The logarithm of its density at a point. One below `least` need not be computed to its end. `off` is room to compute in.
    fn log_density(&self, point: &[f32], least: f64, off: &mut Vec<f64>) -> f64 {
        off.clear();
        off.extend(point.iter().zip(&self.mean).map(|(x, m)| f64::from(*x) - m));
        let factor = match &self.spread {
            Spread::Along(variance) => {
                let apart: f64 = off.iter().zip(variance).map(|(x, v)| x * x / v).sum();
                return self.peak - 0.5 * apart;
            }
            Spread::Whole(factor) => factor,
        };
        let mut log = self.peak;
        for (row, own) in factor.iter().enumerate() {
            let known: f64 = own[..row].iter().zip(off.iter()).map(|(a, b)| a * b).sum();
            let apart = (off[row] - known) / own[row];
            off[row] = apart;
            log -= 0.5 * apart * apart;
            if log < least {
                return f64::NEG_INFINITY;
            }
        }
        log
    }
}

fn variance(points: &[Vec<f32>], weights: &[f64], mean: &[f64], shape: Shape) -> Vec<f64> {
    let mut variance = vec![0.0; mean.len()];
    for (point, weight) in points.iter().zip(weights) {
        for ((v, m), x) in variance.iter_mut().zip(mean).zip(point) {
            *v += weight * (f64::from(*x) - m).powi(2);
        }
    }
    if shape == Shape::Round {
        let all = variance.iter().sum::<f64>() / mean.len().max(1) as f64;
        variance.fill(all);
    }
    variance
}

/// The lower half, row by row.
fn covariance(
    points: &[Vec<f32>],
    weights: &[f64],
    mean: &[f64],
    stop: &Stop,
) -> Result<Vec<Vec<f64>>, Stopped> {
    let mut rows: Vec<Vec<f64>> = (0..mean.len()).map(|row| vec![0.0; row + 1]).collect();
    let mut off = vec![0.0; mean.len()];
    for (place, (point, weight)) in points.iter().zip(weights).enumerate() {
        if place % LOOK == 0 {
            check(stop)?;
        }
        if *weight <= 0.0 {
            continue;
        }
        for ((o, x), m) in off.iter_mut().zip(point).zip(mean) {
            *o = f64::from(*x) - m;
        }
        for (row, a) in rows.iter_mut().zip(&off) {
            let a = a * weight;
            for (sum, b) in row.iter_mut().zip(&off) {
                *sum += a * b;
            }
        }
    }
    Ok(rows)
}

/// Tells points apart by the Gaussians: their labels, and by how much each belongs to each. Answers how likely they all are.
fn tell_apart(
    points: &[Vec<f32>],
    parts: &[Gaussian],
    labels: &mut [i32],
    shares: &mut [Vec<f64>],
    stop: &Stop,
) -> Result<f64, Stopped> {
    let (mut likely, mut off) = (0.0, Vec::new());
    let mut logs = vec![0.0; parts.len()];
    for (place, (point, label)) in points.iter().zip(labels.iter_mut()).enumerate() {
        if place % LOOK == 0 {
            check(stop)?;
        }
        // First where it was: beside that most others are nothing soon.
        let own = usize::try_from(*label).unwrap_or(0);
        let mut most = parts[own].log_density(point, f64::NEG_INFINITY, &mut off);
        logs[own] = most;
        for (c, part) in parts.iter().enumerate().filter(|(c, _)| *c != own) {
            logs[c] = part.log_density(point, most - NOTHING, &mut off);
            most = most.max(logs[c]);
        }
        let part = |log: &f64| match *log < most - NOTHING {
            true => 0.0,
            false => (log - most).exp(),
        };
        let total: f64 = logs.iter().map(part).sum();
        likely += (most + total.ln()) / points.len() as f64;
        for (share, log) in shares.iter_mut().zip(&logs) {
            share[place] = part(log) / total;
        }
        let best = logs.iter().position(|log| *log == most);
        *label = best.map_or(NOISE, |c| c as i32);
    }
    Ok(likely)
}

pub(super) fn label(
    points: &[Vec<f32>],
    k: usize,
    settings: &Settings,
    rng: &mut StdRng,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let mut labels = kmeans(points, k, settings, rng, stop)?;
    let mut shares: Vec<Vec<f64>> = (0..k as i32)
        .map(|c| {
            labels
                .iter()
                .map(|l| f64::from(u8::from(*l == c)))
                .collect()
        })
        .collect();
    let mut before = f64::NEG_INFINITY;
    for _ in 0..settings.rounds {
        check(stop)?;
        let of = |share: &Vec<f64>| Gaussian::of(points, share, settings, stop);
        let parts = shares.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let was = labels.clone();
        let likely = tell_apart(points, &parts, &mut labels, &mut shares, stop)?;
        let still = (likely - before).abs() < settings.tolerance;
        before = likely;
        if labels == was || still {
            break;
        }
    }
    Ok(labels)
}
