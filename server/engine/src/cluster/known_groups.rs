//! Methods on points whose groups are known.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand_distr::{Distribution as _, Normal};

use super::*;

/// How well labels tell the same groups as others: 1 the same, about 0 chance (Hubert and Arabie 1985).
fn adjusted_rand(found: &[i32], known: &[i32]) -> f64 {
    let pairs = |count: usize| (count * count.saturating_sub(1)) as f64 / 2.0;
    let sizes = |labels: &[i32]| {
        let mut sizes: std::collections::BTreeMap<i32, usize> = Default::default();
        labels
            .iter()
            .for_each(|label| *sizes.entry(*label).or_default() += 1);
        sizes.into_values().map(pairs).sum::<f64>()
    };
    let both: Vec<i32> = found
        .iter()
        .zip(known)
        .map(|(a, b)| a * 1_000 + b)
        .collect();
    let (same, a, b) = (sizes(&both), sizes(found), sizes(known));
    let chance = a * b / pairs(found.len());
    (same - chance) / (f64::midpoint(a, b) - chance)
}

/// Points in so many dimensions around the given middles, each so many and so wide, at unit length.
fn around(middles: &[Vec<f32>], each: &[usize], wide: f64) -> (Vec<Vec<f32>>, Vec<i32>) {
    let mut rng = StdRng::seed_from_u64(11);
    let normal = Normal::new(0.0, wide).unwrap();
    let (mut points, mut known) = (Vec::new(), Vec::new());
    for place in 0..*each.iter().max().unwrap() {
        for (label, (middle, count)) in middles.iter().zip(each).enumerate() {
            if place >= *count {
                continue;
            }
            let mut point: Vec<f32> = middle
                .iter()
                .map(|x| x + normal.sample(&mut rng) as f32)
                .collect();
            crate::embed::normalize(&mut point);
            points.push(point);
            known.push(label as i32);
        }
    }
    (points, known)
}

/// Four directions in 24 dimensions, as embeddings of four subjects lie, of different sizes.
fn subjects() -> (Vec<Vec<f32>>, Vec<i32>) {
    let middle = |label: usize| {
        let mut middle = vec![0.0; 24];
        middle[label * 5] = 1.0;
        middle[label * 5 + 1] = 0.5;
        middle
    };
    let middles: Vec<Vec<f32>> = (0..4).map(middle).collect();
    around(&middles, &[60, 45, 30, 40], 0.06)
}

fn labels(points: &[Vec<f32>], settings: &Settings) -> Vec<i32> {
    cluster(points, settings, None, &Stop::default())
        .unwrap()
        .labels
}

#[test]
fn the_index_is_the_one_that_is_known() {
    let known = [0, 0, 1, 1, 2, 2];
    assert_eq!(adjusted_rand(&[5, 5, 7, 7, 1, 1], &known), 1.0);
    // The example of scikit-learn's documentation.
    let found = adjusted_rand(&[0, 0, 1, 2], &[0, 0, 1, 1]);
    assert!((found - 0.571).abs() < 0.001, "{found}");
}

#[test]
fn methods_find_subjects_whose_number_nobody_told() {
    let (points, known) = subjects();
    for algorithm in [
        Algorithm::MeanShift,
        Algorithm::Optics,
        Algorithm::Leiden,
        Algorithm::Evoc,
    ] {
        let mut settings = Settings::new(algorithm);
        // A tenth of the points, as by default, is less than any subject has.
        settings.quantile = 0.15;
        let found = labels(&points, &settings);
        let near = adjusted_rand(&found, &known);
        assert!(near > 0.9, "{algorithm:?}: {near} {found:?}");
        assert_eq!(found, labels(&points, &settings), "{algorithm:?}");
    }
}

#[test]
fn seeds_choose_and_nothing_else_does() {
    let (points, _) = around(&[vec![1.0, 0.0, 0.0, 0.0]], &[120], 0.5);
    for algorithm in [Algorithm::Leiden, Algorithm::Evoc] {
        let with = |seed| {
            let settings = Settings {
                seed,
                ..Settings::new(algorithm)
            };
            labels(&points, &settings)
        };
        assert_eq!(with(1), with(1), "{algorithm:?}");
        let others: Vec<_> = (2..12).map(with).collect();
        assert!(
            others.iter().any(|one| *one != with(1)),
            "{algorithm:?} does not follow its seed"
        );
    }
}

#[test]
fn optics_finds_a_thin_group_beside_a_dense_one() {
    let mut points = Vec::new();
    let mut known = Vec::new();
    for i in 0..80 {
        let angle = i as f32 * 2.399;
        let far = (i as f32 / 80.0).sqrt();
        let (x, y) = (far * angle.cos(), far * angle.sin());
        points.push(vec![x * 0.1, y * 0.1]);
        points.push(vec![6.0 + x * 1.5, y * 1.5]);
        known.extend([0, 1]);
    }
    points.push(vec![2.5, 30.0]);
    known.push(2);
    let settings = Settings {
        smallest: 20,
        ..Settings::new(Algorithm::Optics)
    };
    let found = labels(&points, &settings);
    assert!(adjusted_rand(&found, &known) > 0.9, "{found:?}");
    assert_eq!(found.last(), Some(&NOISE));
    // Cut at a radius that only the dense one is joined by, the thin one falls apart.
    let cut = Settings {
        valleys: Valleys::Below(0.1),
        ..Settings::new(Algorithm::Optics)
    };
    let found = labels(&points, &cut);
    assert!(
        found.iter().step_by(2).take(80).all(|label| *label == 0),
        "{found:?}"
    );
    assert!(
        found.iter().skip(1).step_by(2).all(|label| *label == NOISE),
        "{found:?}"
    );
}

#[test]
fn mean_shift_leaves_out_what_is_far_where_it_is_told() {
    let mut points = vec![vec![50.0, 50.0]];
    for i in 0..40 {
        let near = (i / 2) as f32 * 0.01;
        points.push(vec![if i % 2 == 0 { near } else { 10.0 + near }, near]);
    }
    let mut settings = Settings {
        radius: Some(1.0),
        everything: false,
        cells: Some(2),
        ..Settings::new(Algorithm::MeanShift)
    };
    let found = labels(&points, &settings);
    assert_eq!(found[0], NOISE);
    assert_eq!(found.iter().max(), Some(&1));
    settings.everything = true;
    assert_ne!(labels(&points, &settings)[0], NOISE);
}

#[test]
fn leiden_makes_more_of_a_higher_resolution_and_drops_what_is_small() {
    let (points, _) = subjects();
    let mut settings = Settings {
        measure: Measure::Cosine,
        ..Settings::new(Algorithm::Leiden)
    };
    let count = |settings: &Settings| *labels(&points, settings).iter().max().unwrap() + 1;
    let usual = count(&settings);
    settings.resolution = 4.0;
    assert!(count(&settings) > usual);
    settings.resolution = 1.0;
    settings.smallest = 35;
    let found = labels(&points, &settings);
    assert_eq!(found.iter().filter(|label| **label == NOISE).count(), 30);
    for objective in [Objective::Modularity, Objective::Potts] {
        let settings = Settings {
            objective,
            resolution: if objective == Objective::Potts {
                0.05
            } else {
                1.0
            },
            passes: None,
            ..Settings::new(Algorithm::Leiden)
        };
        assert_eq!(count(&settings), 4, "{objective:?}");
    }
}

#[test]
fn evoc_comes_near_the_number_that_is_wanted() {
    let (points, _) = subjects();
    let settings = |clusters| Settings {
        clusters: Some(clusters),
        ..Settings::new(Algorithm::Evoc)
    };
    let count = |wanted| *labels(&points, &settings(wanted)).iter().max().unwrap() + 1;
    assert_eq!(count(4), 4);
    assert!(count(8) > 4);
}

#[test]
fn layouts_keep_groups_apart() {
    let (points, known) = subjects();
    let umap = Reduction::Umap(Umap {
        dims: 5,
        neighbours: 15,
        closest: 0.0,
        measure: Measure::Cosine,
        seed: 42,
    });
    let tsne = Reduction::Tsne(Tsne {
        dims: 2,
        perplexity: 20.0,
        rate: 200.0,
        seed: 42,
    });
    for step in [umap, tsne] {
        let settings = Settings {
            reductions: vec![step.clone()],
            clusters: Some(4),
            starts: 4,
            ..Settings::new(Algorithm::Kmeans)
        };
        let found = cluster(&points, &settings, None, &Stop::default()).unwrap();
        let near = adjusted_rand(&found.labels, &known);
        assert!(near > 0.95, "{step:?}: {near}");
        // What is told of clusters is of the points as they came.
        assert_eq!(found.clusters[0].centroid.len(), 24);
        let drawn = picture(&points, 2, std::slice::from_ref(&step), &Stop::default())
            .unwrap()
            .unwrap();
        assert!(drawn.iter().all(|point| point.len() == 2));
        let again = picture(&points, 2, std::slice::from_ref(&step), &Stop::default()).unwrap();
        assert_eq!(Some(&drawn), again.as_ref(), "{step:?}");
        let apart = quality(&drawn, &gathered(&drawn, known.clone(), drawn.len()));
        assert!(apart.silhouette.unwrap() > 0.6, "{step:?}: {apart:?}");
        let stop = Stop::default();
        stop.stop();
        assert!(picture(&points, 2, &[step], &stop).is_err());
    }
    assert_eq!(picture(&points, 2, &[], &Stop::default()).unwrap(), None);
}

#[test]
fn a_layout_of_few_points_keeps_them_together_in_any_order() {
    let point = |number: usize| {
        let mut point = vec![0.02 * (number / 3) as f32; 3];
        point[number % 3] = 1.0;
        point
    };
    let mut order: Vec<usize> = (0..30).collect();
    let mut rng = StdRng::seed_from_u64(9);
    for perplexity in [5.0, 9.0, 30.0] {
        for turn in 0..20 {
            order.shuffle(&mut rng);
            let points: Vec<Vec<f32>> = order.iter().map(|number| point(*number)).collect();
            let known: Vec<i32> = order.iter().map(|number| (number % 3) as i32).collect();
            let settings = Settings {
                reductions: vec![Reduction::Tsne(Tsne {
                    dims: 2,
                    perplexity,
                    rate: 200.0,
                    seed: 42,
                })],
                clusters: Some(3),
                starts: 4,
                ..Settings::new(Algorithm::Kmeans)
            };
            let near = adjusted_rand(&labels(&points, &settings), &known);
            assert!(near > 0.99, "{perplexity}, {turn}: {near}");
        }
    }
}

#[test]
fn whitening_makes_every_direction_as_wide() {
    // One long and one short direction, turned by 45 degrees.
    let points: Vec<Vec<f32>> = (0..200)
        .map(|i| {
            let (along, across) = ((i % 20) as f32 * 10.0, (i / 20) as f32 * 0.1);
            vec![along + across, along - across]
        })
        .collect();
    let steps = [Reduction::Whitening(1e-9)];
    let white = reduction::reduced(&points, &steps, &Stop::default())
        .unwrap()
        .unwrap();
    let product = |a: usize, b: usize| -> f64 {
        let sum = white.iter().map(|p| f64::from(p[a]) * f64::from(p[b]));
        sum.sum::<f64>() / white.len() as f64
    };
    assert!((product(0, 0) - 1.0).abs() < 0.01 && (product(1, 1) - 1.0).abs() < 0.01);
    assert!(product(0, 1).abs() < 0.01);
    // Points that are all the same stay so.
    let same = vec![vec![1.0, 2.0]; 10];
    let white = reduction::reduced(&same, &steps, &Stop::default())
        .unwrap()
        .unwrap();
    assert!(white.iter().flatten().all(|x| x.abs() < 1e-3));
}

#[test]
fn clusters_are_divided_while_their_parts_are_apart() {
    // Two regions with two towns each, and one that is a town alone.
    let towns = [
        [0.0, 0.0],
        [8.0, 0.0],
        [100.0, 0.0],
        [108.0, 0.0],
        [50.0, 90.0],
    ];
    let mut rng = StdRng::seed_from_u64(3);
    let normal = Normal::new(0.0, 0.4).unwrap();
    let mut points = Vec::new();
    for _ in 0..30 {
        for town in towns {
            // In many directions what is one group has no parts that are apart.
            let at = town.into_iter().chain([0.0; 10]);
            let near = at.map(|x: f32| x + normal.sample(&mut rng) as f32);
            points.push(near.collect());
        }
    }
    let settings = Settings {
        threshold: Some(20.0),
        linkage: Linkage::Single,
        ..Settings::new(Algorithm::Agglomerative)
    };
    let found = cluster(&points, &settings, None, &Stop::default()).unwrap();
    assert_eq!(found.clusters.len(), 3);
    let same = divided(&points, found.clone(), &settings, 3, &Stop::default()).unwrap();
    assert_eq!(
        (same.0.clusters.len(), branches(&same.0, &same.1)),
        (3, Vec::new())
    );
    let finer = Settings {
        clusters: Some(2),
        threshold: None,
        ..settings
    };
    let (leaves, paths) = divided(&points, found, &finer, 2, &Stop::default()).unwrap();
    let around = branches(&leaves, &paths);
    assert_eq!((leaves.clusters.len(), around.len()), (5, 2), "{around:?}");
    let mut inside: Vec<usize> = around.iter().flat_map(|one| one.leaves.clone()).collect();
    inside.sort_unstable();
    inside.dedup();
    assert_eq!(inside.len(), 4);
    assert!(
        around
            .iter()
            .all(|one| one.parent.is_none() && one.depth == 0)
    );
    for place in 0..points.len() {
        assert_eq!(leaves.labels[place], leaves.labels[place % 5]);
    }
}
