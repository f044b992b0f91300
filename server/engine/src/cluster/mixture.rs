//! A mixture of Gaussians without covariances, by expectation and maximization from where k-means ends.

use rand::rngs::StdRng;

use super::algorithms::{check, kmeans};
use super::{NOISE, Settings, Shape, Stop, Stopped};

/// One Gaussian: its share of the points, its middle, and how wide it is in each direction.
struct Gaussian {
    weight: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Gaussian {
    /// Of points that each belong to it by a share.
    fn of(points: &[Vec<f32>], shares: &[f64], settings: &Settings) -> Self {
        let dims = points[0].len();
        let total: f64 = shares.iter().sum::<f64>().max(1e-12);
        let (mut mean, mut variance) = (vec![0.0; dims], vec![0.0; dims]);
        for (point, share) in points.iter().zip(shares) {
            for (m, x) in mean.iter_mut().zip(point) {
                *m += share / total * f64::from(*x);
            }
        }
        for (point, share) in points.iter().zip(shares) {
            for ((v, m), x) in variance.iter_mut().zip(&mean).zip(point) {
                *v += share / total * (f64::from(*x) - m).powi(2);
            }
        }
        if settings.shape == Shape::Round {
            let mean = variance.iter().sum::<f64>() / dims.max(1) as f64;
            variance.fill(mean);
        }
        // A Gaussian without width would take a point for itself alone.
        let least = settings.widened.max(1e-12);
        variance.iter_mut().for_each(|v| *v += least);
        Self {
            weight: total / points.len() as f64,
            mean,
            variance,
        }
    }

    fn log_density(&self, point: &[f32]) -> f64 {
        let parts = self.mean.iter().zip(&self.variance).zip(point);
        let sum: f64 = parts
            .map(|((m, v), x)| v.ln() + (f64::from(*x) - m).powi(2) / v)
            .sum();
        self.weight.max(1e-300).ln() - 0.5 * sum
    }
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
        let of = |share: &Vec<f64>| Gaussian::of(points, share, settings);
        let parts: Vec<Gaussian> = shares.iter().map(of).collect();
        let mut likely = 0.0;
        let mut next = Vec::with_capacity(points.len());
        for (i, point) in points.iter().enumerate() {
            let logs: Vec<f64> = parts.iter().map(|g| g.log_density(point)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|l| (l - most).exp()).sum();
            likely += (most + total.ln()) / points.len() as f64;
            for (share, log) in shares.iter_mut().zip(&logs) {
                share[i] = (log - most).exp() / total;
            }
            let best = logs.iter().position(|l| *l == most);
            next.push(best.map_or(NOISE, |c| c as i32));
        }
        let still = (likely - before).abs() < settings.tolerance;
        if next == labels || still {
            labels = next;
            break;
        }
        (labels, before) = (next, likely);
    }
    Ok(labels)
}
