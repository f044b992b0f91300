//! t-SNE (van der Maaten and Hinton 2008), exactly: every point pulls and pushes every other one.

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::algorithms::{check, distance};
use super::layout::beginning;
use super::{Stop, Stopped};

const ROUNDS: usize = 500;
/// Rounds at the beginning in which what is near pulls so many times as strongly, so that groups find together.
const EARLY: usize = 125;
const EXAGGERATION: f64 = 12.0;

/// What t-SNE is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Tsne {
    pub dims: usize,
    /// How many points each counts as near.
    pub perplexity: f64,
    /// How far a step goes at most; few points step less far.
    pub rate: f64,
    pub seed: u64,
}

impl Tsne {
    pub(super) fn run(&self, points: &[Vec<f32>], stop: &Stop) -> Result<Vec<Vec<f32>>, Stopped> {
        match self.dims {
            3 => self.descend::<3>(points, stop),
            _ => self.descend::<2>(points, stop),
        }
    }

    fn descend<const D: usize>(
        &self,
        points: &[Vec<f32>],
        stop: &Stop,
    ) -> Result<Vec<Vec<f32>>, Stopped> {
        let near = self.affinities(points, stop)?;
        let mut rng = StdRng::seed_from_u64(self.seed);
        let begin = beginning(points, D, 1e-2, &mut rng, stop)?;
        let place = |point: &Vec<f32>| std::array::from_fn(|axis| f64::from(point[axis]));
        let mut at: Vec<[f64; D]> = begin.iter().map(place).collect();
        let mut speed = vec![[0.0_f64; D]; at.len()];
        let mut gains = vec![[1.0_f64; D]; at.len()];
        for round in 0..ROUNDS {
            let (pull, keep) = match round < EARLY {
                true => (EXAGGERATION, 0.5),
                false => (1.0, 0.8),
            };
            // A step that is wider than this jumps over what it steps to and tears groups of few points apart (Belkina et al. 2019).
            let rate = self.rate.min(at.len() as f64 / (4.0 * pull));
            for (point, slope) in slopes(&at, &near, pull, stop)?.into_iter().enumerate() {
                for (axis, slope) in slope.into_iter().enumerate() {
                    let (gain, speed) = (&mut gains[point][axis], &mut speed[point][axis]);
                    let onward = (slope > 0.0) == (*speed > 0.0);
                    *gain = if onward { *gain * 0.8 } else { *gain + 0.2 }.max(0.01);
                    *speed = keep * *speed - rate * *gain * slope;
                    at[point][axis] += *speed;
                }
            }
        }
        let told = |point: [f64; D]| point.iter().map(|x| *x as f32).collect();
        Ok(at.into_iter().map(told).collect())
    }

    /// How likely two points are to be neighbours, each by its own scale, both ways alike.
    fn affinities(&self, points: &[Vec<f32>], stop: &Stop) -> Result<Vec<f32>, Stopped> {
        let count = points.len();
        let wanted = self
            .perplexity
            .min((count as f64 - 1.0) / 3.0)
            .max(1.0)
            .ln();
        let mut near = vec![0.0_f32; count * count];
        for i in 0..count {
            check(stop)?;
            let far: Vec<f64> = points.iter().map(|p| distance(&points[i], p)).collect();
            for (j, share) in shares(&far, i, wanted).into_iter().enumerate() {
                let share = (share / (2.0 * count as f64)) as f32;
                near[i * count + j] += share;
                near[j * count + i] += share;
            }
        }
        Ok(near)
    }
}

/// Where each point is pulled from by those near to it, and pushed to by all.
fn slopes<const D: usize>(
    at: &[[f64; D]],
    near: &[f32],
    pull: f64,
    stop: &Stop,
) -> Result<Vec<[f64; D]>, Stopped> {
    let mut total = 0.0_f64;
    let mut sums = Vec::with_capacity(at.len());
    for (own, row) in at.iter().zip(near.chunks(at.len())) {
        check(stop)?;
        let (mut pulled, mut pushed) = ([0.0_f64; D], [0.0_f64; D]);
        for (other, near) in at.iter().zip(row) {
            let off: [f64; D] = std::array::from_fn(|axis| own[axis] - other[axis]);
            let close = 1.0 / (1.0 + off.iter().map(|x| x * x).sum::<f64>());
            total += close;
            let (pull, push) = (f64::from(*near) * close, close * close);
            for axis in 0..D {
                pulled[axis] += pull * off[axis];
                pushed[axis] += push * off[axis];
            }
        }
        sums.push((pulled, pushed));
    }
    // A point is no neighbour of its own.
    let total = (total - at.len() as f64).max(1e-12);
    let slope = |(pulled, pushed): ([f64; D], [f64; D])| {
        std::array::from_fn(|axis| 4.0 * (pull * pulled[axis] - pushed[axis] / total))
    };
    Ok(sums.into_iter().map(slope).collect())
}

/// Shares of one point's neighbours whose entropy is the one that is wanted.
fn shares(far: &[f64], own: usize, wanted: f64) -> Vec<f64> {
    let others = far.iter().enumerate().filter(|(j, _)| *j != own);
    let least = others.map(|(_, far)| *far).fold(f64::INFINITY, f64::min);
    let (mut low, mut high, mut beta) = (0.0_f64, f64::INFINITY, 1.0_f64);
    let mut shares = vec![0.0; far.len()];
    for _ in 0..64 {
        let (mut sum, mut weighed) = (0.0, 0.0);
        for (j, (share, far)) in shares.iter_mut().zip(far).enumerate() {
            let beyond = far - least;
            *share = if j == own {
                0.0
            } else {
                (-beta * beyond).exp()
            };
            sum += *share;
            weighed += *share * beyond;
        }
        let entropy = sum.ln() + beta * weighed / sum;
        shares.iter_mut().for_each(|share| *share /= sum);
        if (entropy - wanted).abs() < 1e-5 {
            break;
        }
        if entropy > wanted {
            low = beta;
        } else {
            high = beta;
        }
        beta = match high.is_finite() {
            true => f64::midpoint(low, high),
            false => beta * 2.0,
        };
    }
    shares
}
