//! EVoC, clustering made for embeddings, after its authors' description and program (McInnes, Tutte Institute): the graph of
//! nearest neighbours by angle is laid out in few dimensions with a pull that is softer, the less noise there is; the
//! densities of the layout make a tree; and of all sizes that clusters may have at least, the one is taken at which what
//! there is lasts longest. Three things are simpler here: neighbours are exact, the layout begins at principal components, and
//! what lasts is summed as it is.

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::algorithms::check;
use super::layout::{Descent, beginning};
use super::neighbours::{Measure, Space, fuzzy, nearest_of_each};
use super::{NOISE, Settings, Stop, Stopped};

const EPOCHS: usize = 50;
/// Dimensions of the layout at most.
const DIMS: usize = 15;
/// Nearer than this, points do not push each other.
const TOUCHING: f32 = 1e-2;

pub(super) fn label(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let least = settings.least.max(2);
    if points.len() < 2 * least {
        return Ok(vec![0; points.len()]);
    }
    let near = nearest_of_each(
        &Space::new(points, Measure::Cosine),
        settings.neighbours,
        stop,
    )?;
    let mut rng = StdRng::seed_from_u64(settings.seed);
    let dims = settings.neighbours.clamp(2, DIMS);
    let mut at = beginning(points, dims, 5.0, &mut rng, stop)?;
    let noise = settings.noise as f32;
    let descent = Descent {
        epochs: EPOCHS,
        rate: 0.5,
        pushed: 1.0,
        pull: move |apart: f32| {
            (-2.0 * noise * apart.sqrt() - 2.0) / (2.0 * apart - 0.5 * apart.sqrt() + 1.0)
        },
        push: |apart: f32| match apart > TOUCHING {
            true => 4.0 / ((1.0 + 0.25 * apart) * apart),
            false => 0.0,
        },
    };
    descent.run(&fuzzy(&near), &mut at, &mut rng, stop)?;
    let samples = settings.samples.unwrap_or(5);
    let joins = joins(&Space::new(&at, Measure::Euclidean), samples, stop)?;
    let tree = Tree::new(points.len(), &joins);
    let parts = tree.parts(least);
    let size = match settings.clusters {
        Some(wanted) => nearest_count(&parts, wanted),
        None => most_lasting(&parts),
    };
    let mut labels = vec![NOISE; points.len()];
    let chosen = parts.iter().filter(|part| part.is_there(size));
    for (label, part) in chosen.enumerate() {
        tree.points(part.node, &mut |point| labels[point] = label as i32);
    }
    if labels.iter().all(|label| *label == NOISE) {
        labels.fill(0);
    }
    Ok(labels)
}

/// The shortest links that join all points (Prim), by the distance at which both ends lie densely too; shortest first.
fn joins(space: &Space<'_>, samples: usize, stop: &Stop) -> Result<Vec<(usize, usize)>, Stopped> {
    let count = space.len();
    let near = nearest_of_each(space, samples.max(1), stop)?;
    let core: Vec<f64> = near
        .iter()
        .map(|row| row.last().map_or(0.0, |one| one.1))
        .collect();
    let mut best = vec![(f64::INFINITY, 0_usize); count];
    let mut open: Vec<usize> = (1..count).collect();
    let (mut current, mut joins) = (0, Vec::with_capacity(count));
    while !open.is_empty() {
        check(stop)?;
        for other in &open {
            let apart = space.apart(current, *other);
            let apart = apart.max(core[current]).max(core[*other]);
            if apart < best[*other].0 {
                best[*other] = (apart, current);
            }
        }
        let by_best = |a: &(usize, &usize), b: &(usize, &usize)| {
            best[*a.1].0.total_cmp(&best[*b.1].0).then(a.1.cmp(b.1))
        };
        let nearest = open.iter().enumerate().min_by(by_best);
        let place = nearest.map_or(0, |(place, _)| place);
        current = open.swap_remove(place);
        joins.push((best[current].1, current, best[current].0));
    }
    joins.sort_by(|a: &(usize, usize, f64), b| a.2.total_cmp(&b.2));
    Ok(joins.into_iter().map(|(a, b, _)| (a, b)).collect())
}

/// What was joined from single points up: nodes below the number of points are those, the last one holds all.
struct Tree {
    count: usize,
    /// By node beyond the points: both parts.
    nodes: Vec<(usize, usize)>,
    /// By node: how many points it holds.
    sizes: Vec<usize>,
}

impl Tree {
    fn new(count: usize, joins: &[(usize, usize)]) -> Self {
        let mut tree = Self {
            count,
            nodes: Vec::with_capacity(joins.len()),
            sizes: vec![1; count],
        };
        let mut top: Vec<usize> = (0..count).collect();
        let mut parent: Vec<usize> = (0..count).collect();
        fn root(parent: &mut [usize], mut at: usize) -> usize {
            while parent[at] != at {
                parent[at] = parent[parent[at]];
                at = parent[at];
            }
            at
        }
        for (a, b) in joins {
            let (a, b) = (root(&mut parent, *a), root(&mut parent, *b));
            tree.nodes.push((top[a], top[b]));
            tree.sizes.push(tree.sizes[top[a]] + tree.sizes[top[b]]);
            parent[b] = a;
            top[a] = count + tree.nodes.len() - 1;
        }
        tree
    }

    fn node(&self, node: usize) -> Option<(usize, usize)> {
        self.nodes.get(node.checked_sub(self.count)?).copied()
    }

    /// Calls for every point below a node.
    fn points(&self, node: usize, each: &mut impl FnMut(usize)) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match self.node(node) {
                Some((a, b)) => open.extend([a, b]),
                None => each(node),
            }
        }
    }

    /// Every group that parted from another, where both have `least` points.
    fn parts(&self, least: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        // Each node with the part that it belongs to; parts come before those inside of them.
        let mut open = vec![(self.count + self.nodes.len() - 1, None::<usize>)];
        while let Some((node, inside)) = open.pop() {
            let Some((a, b)) = self.node(node) else {
                continue;
            };
            let smaller = self.sizes[a].min(self.sizes[b]);
            if smaller < least {
                let larger = if self.sizes[a] >= self.sizes[b] { a } else { b };
                open.push((larger, inside));
                continue;
            }
            for child in [a, b] {
                open.push((child, Some(parts.len())));
                parts.push(Part {
                    node: child,
                    inside,
                    death: smaller,
                    birth: least - 1,
                });
            }
        }
        for place in (0..parts.len()).rev() {
            if let Some(inside) = parts[place].inside {
                let inner = parts[place].birth.max(parts[place].death);
                parts[inside].birth = parts[inside].birth.max(inner);
            }
        }
        parts
    }
}

/// A group, and the least sizes of clusters at which it is one: beyond `birth` what is inside of it is too small to be one of
/// its own, beyond `death` it is too small itself or what it parted from is.
struct Part {
    node: usize,
    inside: Option<usize>,
    birth: usize,
    death: usize,
}

impl Part {
    const fn is_there(&self, size: usize) -> bool {
        self.birth < size && size <= self.death
    }

    const fn lasts(&self) -> usize {
        self.death.saturating_sub(self.birth)
    }
}

/// The sizes at which something changes.
fn sizes(parts: &[Part]) -> Vec<usize> {
    let mut sizes: Vec<usize> = parts.iter().map(|part| part.birth + 1).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn most_lasting(parts: &[Part]) -> usize {
    let lasting = |size: usize| -> usize {
        let there = parts.iter().filter(|part| part.is_there(size));
        there.map(Part::lasts).sum()
    };
    let best = sizes(parts)
        .into_iter()
        .map(|size| (lasting(size), size))
        // Of equals the finer one.
        .max_by_key(|(lasting, size)| (*lasting, std::cmp::Reverse(*size)));
    best.map_or(0, |(_, size)| size)
}

fn nearest_count(parts: &[Part], wanted: usize) -> usize {
    let count = |size: &usize| parts.iter().filter(|part| part.is_there(*size)).count();
    let best = sizes(parts)
        .into_iter()
        .min_by_key(|size| (count(size).abs_diff(wanted), *size));
    best.unwrap_or(0)
}
