//! OPTICS (Ankerst et al. 1999): points in the order in which they can be reached, and clusters as the valleys of that
//! reach between slopes of `xi`, cut where they end in points that are reached from elsewhere (Schubert and Gertz 2018).

use super::algorithms::check;
use super::neighbours::Space;
use super::{NOISE, Settings, Stop, Stopped};

/// How valleys become clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Valleys {
    /// Between slopes that fall and rise by this share at least.
    Steep { xi: f64, corrected: bool },
    /// What is reached within this distance, as DBSCAN would have it.
    Below(f64),
}

impl Default for Valleys {
    fn default() -> Self {
        Self::Steep {
            xi: 0.05,
            corrected: true,
        }
    }
}

pub(super) fn label(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let count = points.len();
    let samples = settings.samples.unwrap_or(5).max(2);
    let mut labels = vec![NOISE; count];
    if count < samples {
        return Ok(labels);
    }
    let space = Space::new(points, settings.measure);
    let plot = Plot::new(&space, samples, settings.radius, stop)?;
    match settings.valleys {
        Valleys::Below(radius) => plot.cut(radius, &mut labels),
        Valleys::Steep { xi, corrected } => {
            let least = match settings.share {
                Some(share) => (share * count as f64) as usize,
                None => settings.smallest,
            };
            let least = if least == 0 { samples } else { least.max(2) };
            let valleys = Steep {
                plot: &plot,
                keep: 1.0 - xi,
                patience: samples,
                least,
                corrected,
            };
            // Inner valleys come before those around them: the first that takes a point keeps it.
            let mut next = 0;
            for (from, to) in valleys.find() {
                let inside = &plot.order[from..=to];
                if inside.iter().all(|place| labels[*place] == NOISE) {
                    inside.iter().for_each(|place| labels[*place] = next);
                    next += 1;
                }
            }
        }
    }
    Ok(labels)
}

/// The points in order, each with what it was reached over.
struct Plot {
    order: Vec<usize>,
    /// By place in the order, with infinity after the last.
    reach: Vec<f64>,
    /// By place in the order: the point from which it was reached.
    from: Vec<Option<usize>>,
    /// By point: how far it is to as many neighbours as make it the middle of something.
    core: Vec<f64>,
}

impl Plot {
    fn new(
        space: &Space<'_>,
        samples: usize,
        furthest: Option<f64>,
        stop: &Stop,
    ) -> Result<Self, Stopped> {
        let count = space.len();
        let furthest = furthest.unwrap_or(f64::INFINITY);
        let mut core = Vec::with_capacity(count);
        for i in 0..count {
            check(stop)?;
            // A point counts as a neighbour of its own.
            let mut row: Vec<f64> = (0..count).map(|j| space.apart(i, j)).collect();
            let (_, kth, _) = row.select_nth_unstable_by(samples - 1, f64::total_cmp);
            core.push(if *kth <= furthest {
                *kth
            } else {
                f64::INFINITY
            });
        }
        let mut best = vec![(f64::INFINITY, None::<usize>); count];
        let mut open: Vec<usize> = (0..count).collect();
        let mut plot = Self {
            order: Vec::with_capacity(count),
            reach: Vec::with_capacity(count + 1),
            from: Vec::with_capacity(count),
            core,
        };
        while !open.is_empty() {
            check(stop)?;
            let by_reach = |a: &(usize, &usize), b: &(usize, &usize)| {
                best[*a.1].0.total_cmp(&best[*b.1].0).then(a.1.cmp(b.1))
            };
            let nearest = open.iter().enumerate().min_by(by_reach);
            let place = nearest.map_or(0, |(place, _)| place);
            let point = open.swap_remove(place);
            plot.order.push(point);
            plot.reach.push(best[point].0);
            plot.from.push(best[point].1);
            if plot.core[point].is_infinite() {
                continue;
            }
            for other in &open {
                let apart = space.apart(point, *other);
                let reached = apart.max(plot.core[point]);
                if apart <= furthest && reached < best[*other].0 {
                    best[*other] = (reached, Some(point));
                }
            }
        }
        plot.reach.push(f64::INFINITY);
        Ok(plot)
    }

    /// What is reached within a radius, each time from a point that is the middle of something.
    fn cut(&self, radius: f64, labels: &mut [i32]) {
        let mut current = NOISE;
        for (place, point) in self.order.iter().enumerate() {
            let is_core = self.core[*point] <= radius;
            if self.reach[place] > radius && is_core {
                current += 1;
            }
            if self.reach[place] <= radius || is_core {
                labels[*point] = current;
            }
        }
    }
}

/// A slope downwards that a cluster may begin at.
struct Fall {
    start: usize,
    end: usize,
    /// The highest reach since it ended.
    highest: f64,
}

/// Looks for valleys.
struct Steep<'a> {
    plot: &'a Plot,
    /// A slope is steep where the lower side is at most this share of the higher.
    keep: f64,
    /// Flat places in a row after which a slope has ended.
    patience: usize,
    least: usize,
    corrected: bool,
}

impl Steep<'_> {
    fn ratio(&self, place: usize) -> f64 {
        self.plot.reach[place] / self.plot.reach[place + 1]
    }

    fn falls(&self, place: usize) -> bool {
        self.ratio(place) * self.keep >= 1.0
    }

    fn rises(&self, place: usize) -> bool {
        self.ratio(place) <= self.keep
    }

    /// Where the slope that begins at a place ends.
    fn slope(&self, start: usize, down: bool) -> usize {
        let (mut end, mut flat) = (start, 0);
        for place in start..self.plot.order.len() {
            let ratio = self.ratio(place);
            let steep = if down {
                self.falls(place)
            } else {
                self.rises(place)
            };
            let against = if down { ratio < 1.0 } else { ratio > 1.0 };
            if steep {
                (end, flat) = (place, 0);
            } else if against {
                break;
            } else {
                flat += 1;
                if flat > self.patience {
                    break;
                }
            }
        }
        end
    }

    /// First and last place of each valley, inner ones before those around them.
    fn find(&self) -> Vec<(usize, usize)> {
        let reach = &self.plot.reach;
        let (mut found, mut falls) = (Vec::new(), Vec::<Fall>::new());
        let (mut index, mut highest) = (0, 0.0_f64);
        for place in 0..self.plot.order.len() {
            if place < index || !(self.falls(place) || self.rises(place)) {
                continue;
            }
            highest = reach[index..=place].iter().copied().fold(highest, f64::max);
            // What lies higher since than a fall began at is no valley of that fall.
            falls.retain(|one| highest.is_finite() && highest <= reach[one.start] * self.keep);
            falls
                .iter_mut()
                .for_each(|one| one.highest = one.highest.max(highest));
            let down = self.falls(place);
            let end = self.slope(place, down);
            if down {
                falls.push(Fall {
                    start: place,
                    end,
                    highest: 0.0,
                });
            } else {
                let valleys = falls.iter().rev();
                found.extend(valleys.filter_map(|fall| self.valley(fall, place, end)));
            }
            index = end + 1;
            highest = reach[index];
        }
        found
    }

    /// The valley between a fall and a rise, if it is one.
    fn valley(&self, fall: &Fall, rise: usize, end: usize) -> Option<(usize, usize)> {
        let reach = &self.plot.reach;
        let (top, after) = (reach[fall.start], reach[end + 1]);
        if after * self.keep < fall.highest {
            return None;
        }
        let (mut from, mut to) = (fall.start, end);
        // Both rims are brought to one height.
        if top * self.keep >= after {
            while from < fall.end && reach[from + 1] > after {
                from += 1;
            }
        } else if after * self.keep >= top {
            while to > rise && reach[to] > top {
                to -= 1;
            }
        }
        if self.corrected {
            (from, to) = self.corrected(from, to)?;
        }
        let large = to + 1 >= from + self.least;
        (large && from <= fall.end && to >= rise).then_some((from, to))
    }

    /// Without points at the end that were reached from outside of the valley.
    fn corrected(&self, from: usize, mut to: usize) -> Option<(usize, usize)> {
        while from < to {
            if self.plot.reach[from] > self.plot.reach[to] {
                return Some((from, to));
            }
            let inside = &self.plot.order[from..to];
            if self.plot.from[to].is_some_and(|point| inside.contains(&point)) {
                return Some((from, to));
            }
            to -= 1;
        }
        None
    }
}
