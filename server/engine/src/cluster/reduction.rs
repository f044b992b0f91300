//! What is done to vectors before they are compared: laid out in fewer dimensions, or brought to the same width in every
//! direction.

use super::algorithms::check;
use super::layout::Umap;
use super::tsne::Tsne;
use super::{Stop, Stopped};

/// Fewer points than this have no shape to keep.
const LEAST: usize = 4;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Reduction {
    Umap(Umap),
    Tsne(Tsne),
    /// With what is added to the width of every direction.
    Whitening(f64),
}

impl Reduction {
    /// Most points that it takes: each is compared with each.
    pub const fn most_points(&self) -> usize {
        match self {
            Self::Umap(_) => 10_000,
            Self::Tsne(_) => 2_000,
            Self::Whitening(_) => 50_000,
        }
    }

    fn run(&self, points: &[Vec<f32>], stop: &Stop) -> Result<Vec<Vec<f32>>, Stopped> {
        match self {
            Self::Umap(umap) => umap.run(points, stop),
            Self::Tsne(tsne) => tsne.run(points, stop),
            Self::Whitening(more) => whitened(points, *more, stop),
        }
    }
}

/// The points after all steps, in their order.
pub(super) fn reduced(
    points: &[Vec<f32>],
    steps: &[Reduction],
    stop: &Stop,
) -> Result<Option<Vec<Vec<f32>>>, Stopped> {
    if points.len() < LEAST {
        return Ok(None);
    }
    let mut at: Option<Vec<Vec<f32>>> = None;
    for step in steps {
        at = Some(step.run(at.as_deref().unwrap_or(points), stop)?);
    }
    Ok(at)
}

/// A picture by the last step that makes one, after the steps before it; none where there is no such step, or more points
/// than it takes.
///
/// # Errors
/// The work was stopped.
pub fn picture(
    points: &[Vec<f32>],
    dims: usize,
    steps: &[Reduction],
    stop: &Stop,
) -> Result<Option<Vec<Vec<f32>>>, Stopped> {
    let draws = |step: &Reduction| !matches!(step, Reduction::Whitening(_));
    let Some(last) = steps.iter().rposition(draws) else {
        return Ok(None);
    };
    let taken = steps[..=last].iter().map(Reduction::most_points).min();
    if points.len() < LEAST || taken.is_some_and(|most| points.len() > most) {
        return Ok(None);
    }
    let mut steps = steps[..=last].to_vec();
    match &mut steps[last] {
        Reduction::Umap(umap) => umap.dims = dims,
        Reduction::Tsne(tsne) => tsne.dims = dims,
        Reduction::Whitening(_) => {}
    }
    reduced(points, &steps, stop)
}

/// Puts Cholesky's factor in the place of a covariance's lower half, which is row by row and widened by `more`.
pub(super) fn factor(lower: &mut [Vec<f64>], more: f64, stop: &Stop) -> Result<(), Stopped> {
    for row in 0..lower.len() {
        check(stop)?;
        let (done, rest) = lower.split_at_mut(row);
        let own = &mut rest[0];
        own[row] += more;
        for column in 0..=row {
            let other = done
                .get(column)
                .map_or(&own[..column], |other| &other[..column]);
            let known: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
            let left = own[column] - known;
            own[column] = match done.get(column) {
                Some(other) => left / other[column],
                // A direction in which nothing differs stays one.
                None => left.max(1e-12).sqrt(),
            };
        }
    }
    Ok(())
}

/// Numbers that are as wide in every direction and depend on no other one: the covariance's factor by Cholesky, undone. Any
/// other way to whiten turns the same points (Kessy, Lewin and Strimmer 2018).
fn whitened(points: &[Vec<f32>], more: f64, stop: &Stop) -> Result<Vec<Vec<f32>>, Stopped> {
    let width = points.first().map_or(0, Vec::len);
    let count = points.len() as f64;
    let mut middle = vec![0.0_f64; width];
    for point in points {
        for (m, x) in middle.iter_mut().zip(point) {
            *m += f64::from(*x) / count;
        }
    }
    let centered = |point: &Vec<f32>| -> Vec<f64> {
        let off = point.iter().zip(&middle);
        off.map(|(x, m)| f64::from(*x) - m).collect()
    };
    // The lower half, row by row.
    let mut factor: Vec<Vec<f64>> = (0..width).map(|row| vec![0.0; row + 1]).collect();
    for point in points {
        check(stop)?;
        let off = centered(point);
        for (row, a) in factor.iter_mut().zip(&off) {
            for (sum, b) in row.iter_mut().zip(&off) {
                *sum += a * b / count;
            }
        }
    }
    self::factor(&mut factor, more, stop)?;
    let mut out = Vec::with_capacity(points.len());
    for point in points {
        check(stop)?;
        let mut off = centered(point);
        for (row, factors) in factor.iter().enumerate() {
            let known: f64 = factors[..row].iter().zip(&off).map(|(a, b)| a * b).sum();
            off[row] = (off[row] - known) / factors[row];
        }
        out.push(off.into_iter().map(|x| x as f32).collect());
    }
    Ok(out)
}
