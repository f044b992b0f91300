//! The nearest neighbours of every point, exactly, and the graph that they make.

use std::borrow::Cow;

use super::algorithms::{check, distance};
use super::{Stop, Stopped};
use crate::stage::likeness::dot;

/// How far two points are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    #[default]
    Euclidean,
    /// By the angle between them: 0 where they lie in one direction, 2 where they are opposed.
    Cosine,
}

/// Points as a measure compares them by their distance: for that by angles at unit length.
pub(super) fn measured(points: &[Vec<f32>], measure: Measure) -> Cow<'_, [Vec<f32>]> {
    match measure {
        Measure::Euclidean => Cow::Borrowed(points),
        Measure::Cosine => {
            let mut own = points.to_vec();
            own.iter_mut()
                .for_each(|point| crate::embed::normalize(point));
            Cow::Owned(own)
        }
    }
}

/// Points that are measured by one measure.
pub(super) struct Space<'a> {
    points: Cow<'a, [Vec<f32>]>,
    measure: Measure,
}

impl<'a> Space<'a> {
    pub(super) fn new(points: &'a [Vec<f32>], measure: Measure) -> Self {
        Self {
            points: measured(points, measure),
            measure,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    pub(super) fn apart(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (&self.points[a], &self.points[b]);
        match self.measure {
            Measure::Euclidean => distance(a, b).sqrt(),
            Measure::Cosine => (1.0 - dot(a, b)).max(0.0),
        }
    }
}

/// The `most` nearest other points of each with their distances, nearest first.
pub(super) fn nearest_of_each(
    space: &Space<'_>,
    most: usize,
    stop: &Stop,
) -> Result<Vec<Vec<(usize, f64)>>, Stopped> {
    let count = space.len();
    let most = most.min(count.saturating_sub(1));
    let mut all = Vec::with_capacity(count);
    for i in 0..count {
        check(stop)?;
        let others = (0..count).filter(|j| *j != i);
        let mut row: Vec<(usize, f64)> = others.map(|j| (j, space.apart(i, j))).collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        if most > 0 && most < row.len() {
            row.select_nth_unstable_by(most - 1, order);
        }
        row.truncate(most);
        row.sort_by(order);
        row.shrink_to_fit();
        all.push(row);
    }
    Ok(all)
}

/// A link of two points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub a: usize,
    pub b: usize,
    pub weight: f64,
}

/// The links of points with their neighbours, each once, `a` before `b`; `join` makes one weight of the two that the ends
/// give each other, 0 of an end that does not know the other.
pub(super) fn edges(weighted: &[Vec<(usize, f64)>], join: impl Fn(f64, f64) -> f64) -> Vec<Edge> {
    let mut both: std::collections::BTreeMap<(usize, usize), (f64, f64)> = Default::default();
    for (i, row) in weighted.iter().enumerate() {
        for (j, weight) in row {
            let entry = both.entry((i.min(*j), i.max(*j))).or_default();
            match i < *j {
                true => entry.0 = *weight,
                false => entry.1 = *weight,
            }
        }
    }
    let edges = both.into_iter().map(|((a, b), (one, other))| Edge {
        a,
        b,
        weight: join(one, other),
    });
    edges.collect()
}

/// How much each point belongs together with its neighbours, 0 to 1, by its own scale: the nearest wholly, the others the
/// less, the further they are out, in all the logarithm of their number (McInnes, Healy and Melville 2018). The ends' two
/// weights are joined as the chance that one of them holds.
pub(super) fn fuzzy(near: &[Vec<(usize, f64)>]) -> Vec<Edge> {
    let weighted: Vec<Vec<(usize, f64)>> = near.iter().map(|row| weigh(row)).collect();
    edges(&weighted, |one, other| one + other - one * other)
}

fn weigh(row: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let target = (row.len() as f64 + 1.0).log2();
    let least = row.iter().map(|one| one.1).find(|apart| *apart > 0.0);
    let least = least.unwrap_or(0.0);
    let share = |apart: f64, scale: f64| match apart - least {
        beyond if beyond > 0.0 => (-beyond / scale).exp(),
        _ => 1.0,
    };
    let (mut low, mut high, mut scale) = (0.0_f64, f64::INFINITY, 1.0_f64);
    for _ in 0..64 {
        let sum: f64 = row.iter().map(|one| share(one.1, scale)).sum();
        if (sum - target).abs() < 1e-5 {
            break;
        }
        if sum > target {
            high = scale;
        } else {
            low = scale;
        }
        scale = if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            scale * 2.0
        };
    }
    // Where many points are the same, the scale would become nothing.
    let mean = row.iter().map(|one| one.1).sum::<f64>() / row.len().max(1) as f64;
    let scale = scale.max(1e-3 * mean).max(1e-12);
    row.iter()
        .map(|(place, apart)| (*place, share(*apart, scale)))
        .collect()
}
