//! What algorithms are told changes what they find.

use rand::Rng as _;

use super::*;

fn labels(points: &[Vec<f32>], settings: &Settings) -> Vec<i32> {
    let found = cluster(points, settings, None, &Stop::default()).unwrap();
    found.labels
}

/// Points at any place of a square.
fn anywhere(count: usize) -> Vec<Vec<f32>> {
    let mut rng = StdRng::seed_from_u64(5);
    let mut point = || vec![rng.random_range(0.0..1.0_f32), rng.random_range(0.0..1.0)];
    (0..count).map(|_| point()).collect()
}

/// Twenty points in each of two directions, the nth of both as far out: alike by their angle alone.
fn directions() -> Vec<Vec<f32>> {
    let mut points = Vec::new();
    for i in 0..20 {
        let (turn, far) = (0.01 * i as f32, 1.0 + 50.0 * i as f32);
        points.push(vec![far * turn.cos(), far * turn.sin()]);
        points.push(vec![far * turn.sin(), far * turn.cos()]);
    }
    points
}

/// Whether points are in two clusters by their directions.
fn are_by_direction(found: &[i32]) -> bool {
    let of = |start: usize| found.iter().skip(start).step_by(2);
    let same = |start: usize| of(start).all(|label| *label == found[start]);
    found[0] != found[1] && found[0] != NOISE && found[1] != NOISE && same(0) && same(1)
}

#[test]
fn a_measure_by_the_angle_finds_directions_and_the_straight_one_does_not() {
    let points = directions();
    let dbscan = Settings {
        radius: Some(0.1),
        samples: Some(3),
        ..Settings::new(Algorithm::Dbscan)
    };
    let hdbscan = Settings::new(Algorithm::Hdbscan);
    let joined = Settings {
        clusters: Some(2),
        linkage: Linkage::Average,
        ..Settings::new(Algorithm::Agglomerative)
    };
    for straight in [dbscan, hdbscan, joined] {
        let by_angle = Settings {
            measure: Measure::Cosine,
            ..straight.clone()
        };
        let found = labels(&points, &by_angle);
        assert!(
            are_by_direction(&found),
            "{:?}: {found:?}",
            straight.algorithm
        );
        let found = labels(&points, &straight);
        assert!(
            !are_by_direction(&found),
            "{:?}: {found:?}",
            straight.algorithm
        );
    }
}

#[test]
fn a_radius_by_the_angle_is_one_by_the_angle() {
    // A hundredth of a radian apart: by the angle that is 0.00005, on the straight line 0.01.
    let points = directions();
    let dbscan = |radius| Settings {
        radius: Some(radius),
        samples: Some(2),
        measure: Measure::Cosine,
        ..Settings::new(Algorithm::Dbscan)
    };
    assert!(are_by_direction(&labels(&points, &dbscan(1e-4))));
    let found = labels(&points, &dbscan(1e-5));
    assert!(found.iter().all(|label| *label == NOISE), "{found:?}");
}

#[test]
fn clusters_are_no_larger_than_they_may_be_and_one_alone_is_allowed() {
    let points = directions();
    let mut settings = Settings {
        measure: Measure::Cosine,
        largest: Some(10),
        ..Settings::new(Algorithm::Hdbscan)
    };
    let found = cluster(&points, &settings, None, &Stop::default()).unwrap();
    assert!(found.clusters.iter().all(|one| one.members.len() <= 10));
    // As far apart all along, points are one group or none.
    let line: Vec<Vec<f32>> = (0..30).map(|i| vec![i as f32, 0.0]).collect();
    settings = Settings::new(Algorithm::Hdbscan);
    let found = labels(&line, &settings);
    assert!(found.iter().all(|label| *label == NOISE), "{found:?}");
    settings.single = true;
    let found = labels(&line, &settings);
    assert_eq!(found.iter().max(), Some(&0), "{found:?}");
}

#[test]
fn k_means_begins_where_it_is_told_and_ends_when_little_moves() {
    let points = anywhere(400);
    let settings = Settings {
        clusters: Some(8),
        rounds: 300,
        ..Settings::new(Algorithm::Kmeans)
    };
    let usual = labels(&points, &settings);
    let soon = Settings {
        tolerance: 1e9,
        ..settings.clone()
    };
    assert_ne!(labels(&points, &soon), usual);
    // So little that it is as good as nothing.
    let late = Settings {
        tolerance: 1e-12,
        ..settings.clone()
    };
    assert_eq!(labels(&points, &late), usual);
    let spread = Settings {
        rounds: 1,
        ..settings
    };
    let by_chance = Settings {
        seeds: Seeds::Chance,
        ..spread.clone()
    };
    assert_ne!(labels(&points, &by_chance), labels(&points, &spread));
}

#[test]
fn gaussians_are_as_wide_as_they_are_told() {
    // A long flat group, a round one beside it, and a point that is far from the first across and from the second along.
    let mut points = Vec::new();
    for i in 0..41 {
        let across = if i % 2 == 1 { 0.2 } else { -0.2 };
        points.push(vec![(i as f32 - 20.0) * 0.3, across]);
        points.push(vec![(i as f32).cos(), 8.0 + (i as f32).sin()]);
    }
    points.push(vec![7.0, 4.5]);
    let flat = Settings {
        clusters: Some(2),
        rounds: 100,
        starts: 10,
        ..Settings::new(Algorithm::GaussianMixture)
    };
    let found = labels(&points, &flat);
    assert_eq!(found[82], found[1], "{found:?}");
    let round = Settings {
        shape: Shape::Round,
        ..flat.clone()
    };
    let found = labels(&points, &round);
    assert_eq!(found[82], found[0], "{found:?}");
    // Turned by an eighth, the flat group is as wide in both numbers: its narrowness lies between them.
    let eighth = std::f32::consts::FRAC_1_SQRT_2;
    let turn = |p: &Vec<f32>| vec![(p[0] - p[1]) * eighth, (p[0] + p[1]) * eighth];
    let turned: Vec<Vec<f32>> = points.iter().map(turn).collect();
    let found = labels(&turned, &flat);
    assert_eq!(found[82], found[0], "{found:?}");
    let full = Settings {
        shape: Shape::Full,
        ..flat.clone()
    };
    for points in [&turned, &points] {
        let found = labels(points, &full);
        assert_eq!(found[82], found[1], "{found:?}");
    }
    // One group is all points.
    let one = Settings {
        clusters: Some(1),
        ..flat.clone()
    };
    assert!(labels(&points, &one).iter().all(|label| *label == 0));
    // So wide that nothing tells them apart but how many there are.
    points.truncate(60);
    points.extend((0..30).map(|i| vec![-3.0 + 0.2 * i as f32, 0.1]));
    let wide = Settings {
        widened: 1e6,
        ..flat
    };
    assert!(labels(&points, &wide).iter().all(|label| *label == 0));
}

#[test]
fn covariances_are_held_against_each_other_of_so_many_points_and_numbers_only() {
    let settings = |clusters| Settings {
        clusters: Some(clusters),
        shape: Shape::Full,
        ..Settings::new(Algorithm::GaussianMixture)
    };
    let points = |width: usize| vec![vec![0.5_f32; width]; 60];
    // No more Gaussians than points, and one is no mixture.
    for (width, clusters, wide) in [
        (384, 50, false),
        (1536, 8, false),
        (1536, 9, true),
        (1536, 1, false),
        (4096, 1_000, true),
    ] {
        let found = settings(clusters).is_too_wide(&points(width), None);
        assert_eq!(found, wide, "{width} {clusters}");
    }
    // Where nobody says how many, there are no more than can be factored.
    let mut guessed = settings(2);
    guessed.clusters = None;
    let pictures = vec![vec![0.5_f32; 1280]; 600];
    assert!(!guessed.is_too_wide(&pictures, None));
    guessed.clusters = Some(17);
    assert!(guessed.is_too_wide(&pictures, None));
    // In a layout they are few.
    let mut laid = settings(50);
    laid.reductions = vec![Reduction::Umap(Umap {
        dims: 5,
        neighbours: 15,
        closest: 0.1,
        measure: Measure::default(),
        seed: 1,
    })];
    assert!(!laid.is_too_wide(&points(4096), None));
    let diagonal = Settings {
        shape: Shape::Diagonal,
        ..settings(50)
    };
    assert!(!diagonal.is_too_wide(&points(4096), None));
    // Of points of 8,192 numbers 29 are summed in a round, of those of 384 a part of 50,000.
    assert_eq!(settings(2).limit(&points(8192), None), 29);
    assert_eq!(settings(2).limit(&points(384), None), 13_563);
    assert_eq!(settings(2).limit(&points(384), Some(100)), 100);
    assert_eq!(diagonal.limit(&points(384), None), 50_000);
}
