//! Leiden (Traag, Waltman and van Eck 2019), of the crate `leiden-rs`, over the graph of nearest neighbours.

use leiden_rs::{GraphDataBuilder, Leiden, LeidenConfig, QualityType};

use super::algorithms::check;
use super::neighbours::{Measure, Space, edges, nearest_of_each};
use super::{NOISE, Settings, Stop, Stopped};

/// What communities are measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Objective {
    /// Links beyond those that chance would make (Reichardt and Bornholdt).
    #[default]
    Configuration,
    /// The same with its classic scale (Newman and Girvan).
    Modularity,
    /// Links beyond a given share of all pairs (the constant Potts model).
    Potts,
}

/// Most rounds where they are to end by themselves.
const ROUNDS: usize = 20;

pub(super) fn label(
    points: &[Vec<f32>],
    settings: &Settings,
    stop: &Stop,
) -> Result<Vec<i32>, Stopped> {
    let near = nearest_of_each(
        &Space::new(points, settings.measure),
        settings.neighbours,
        stop,
    )?;
    let weight = |apart: f64| match settings.measure {
        Measure::Cosine => (1.0 - apart).max(0.0),
        Measure::Euclidean => 1.0 / (1.0 + apart),
    };
    let weighted: Vec<Vec<(usize, f64)>> = near
        .into_iter()
        .map(|row| row.into_iter().map(|(j, far)| (j, weight(far))).collect())
        .collect();
    let mut graph = GraphDataBuilder::new(points.len());
    for edge in edges(&weighted, f64::max) {
        // Ends and weights are what the graph takes; one that it refused would be no link.
        let _ = graph.add_edge(edge.a, edge.b, edge.weight);
    }
    let alone = || (0..points.len()).map(|place| place as i32).collect();
    let Ok(graph) = graph.build() else {
        return Ok(alone());
    };
    let rounds = settings.passes.unwrap_or(ROUNDS).clamp(1, ROUNDS);
    let mut found: Option<leiden_rs::Partition> = None;
    for round in 0..rounds {
        check(stop)?;
        let leiden = Leiden::new(LeidenConfig {
            resolution: settings.resolution,
            seed: Some(settings.seed.wrapping_add(round as u64)),
            quality: match settings.objective {
                Objective::Configuration => QualityType::RBConfiguration,
                Objective::Modularity => QualityType::Modularity,
                Objective::Potts => QualityType::CPM,
            },
            ..Default::default()
        });
        let next = match found.clone() {
            Some(before) => leiden.run_with_initial_partition(&graph, before),
            None => leiden.run(&graph),
        };
        let Ok(next) = next else { break };
        let same = found.as_ref() == Some(&next.partition);
        found = Some(next.partition);
        if same {
            break;
        }
    }
    let Some(found) = found else {
        return Ok(alone());
    };
    Ok(without_small(found.as_slice(), settings.smallest))
}

/// Members of communities that are smaller than asked for are in none.
fn without_small(found: &[usize], least: usize) -> Vec<i32> {
    let mut sizes = vec![0_usize; found.iter().max().map_or(0, |most| most + 1)];
    found.iter().for_each(|label| sizes[*label] += 1);
    let label = |label: &usize| match sizes[*label] >= least {
        true => *label as i32,
        false => NOISE,
    };
    found.iter().map(label).collect()
}
