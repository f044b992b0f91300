use proptest::prelude::*;

use super::*;

const ALL: [Algorithm; 10] = [
    Algorithm::Kmeans,
    Algorithm::Dbscan,
    Algorithm::Hdbscan,
    Algorithm::Agglomerative,
    Algorithm::Spectral,
    Algorithm::GaussianMixture,
    Algorithm::MeanShift,
    Algorithm::Optics,
    Algorithm::Leiden,
    Algorithm::Evoc,
];

/// Points around corners of a square, so many each.
fn corners(each: usize) -> Vec<Vec<f32>> {
    let mut rng = StdRng::seed_from_u64(7);
    let mut points = Vec::new();
    for i in 0..each * 3 {
        let corner = [[10.0, 0.0], [0.0, 10.0], [-10.0, 0.0]][i % 3];
        let near = |x: f32, rng: &mut StdRng| x + rand::Rng::random_range(rng, -0.5..0.5_f32);
        points.push(vec![near(corner[0], &mut rng), near(corner[1], &mut rng)]);
    }
    points
}

fn settings(algorithm: Algorithm) -> Settings {
    Settings {
        clusters: Some(3),
        starts: 4,
        // A tenth of few points is less than any group.
        quantile: 0.3,
        smallest: 10,
        valleys: Valleys::Steep {
            xi: 0.5,
            corrected: true,
        },
        ..Settings::new(algorithm)
    }
}

#[test]
fn every_algorithm_finds_what_is_there() {
    let points = corners(20);
    for algorithm in ALL {
        let found = cluster(&points, &settings(algorithm), None, &Stop::default()).unwrap();
        assert_eq!(found.clusters.len(), 3, "{algorithm:?}");
        for place in 0..points.len() {
            assert_eq!(
                found.labels[place],
                found.labels[place % 3],
                "{algorithm:?}"
            );
        }
        let good = quality(&points, &found);
        assert!(good.silhouette.unwrap() > 0.8, "{algorithm:?} {good:?}");
        assert!(good.davies_bouldin.unwrap() < 0.2 && good.calinski_harabasz.unwrap() > 100.0);
    }
}

#[test]
fn a_sample_stands_for_all() {
    let points = corners(100);
    for algorithm in [Algorithm::Kmeans, Algorithm::Hdbscan] {
        let found = cluster(&points, &settings(algorithm), Some(90), &Stop::default()).unwrap();
        assert_eq!(
            (found.compared, found.clusters.len()),
            (90, 3),
            "{algorithm:?}"
        );
        let clustered = found.labels.iter().filter(|label| **label != NOISE).count();
        assert!(clustered > 250, "{algorithm:?}: {clustered}");
    }
}

#[test]
fn what_is_stopped_ends() {
    let stop = Stop::default();
    stop.stop();
    for algorithm in ALL {
        assert!(
            cluster(&corners(20), &settings(algorithm), None, &stop).is_err(),
            "{algorithm:?}"
        );
    }
    assert!(project(&corners(3), 2, &stop).is_err());
}

#[test]
fn a_threshold_ends_the_joining() {
    let settings = Settings {
        threshold: Some(3.0),
        linkage: Linkage::Complete,
        ..Settings::new(Algorithm::Agglomerative)
    };
    let found = cluster(&corners(10), &settings, None, &Stop::default()).unwrap();
    assert_eq!(found.clusters.len(), 3);
}

#[test]
fn the_picture_keeps_what_differs_most() {
    let points: Vec<Vec<f32>> = (0..50)
        .map(|i| vec![i as f32, 1.0, (i % 2) as f32])
        .collect();
    let flat = project(&points, 2, &Stop::default()).unwrap();
    let width = |axis: usize| {
        let along = flat.iter().map(|point| point[axis]);
        along.clone().fold(f32::MIN, f32::max) - along.fold(f32::MAX, f32::min)
    };
    assert!(
        (width(0) - 49.0).abs() < 0.1 && (width(1) - 1.0).abs() < 0.1,
        "{} {}",
        width(0),
        width(1)
    );
    assert_eq!(flat, project(&points, 2, &Stop::default()).unwrap());
    assert_eq!(
        project(&[vec![1.0]], 3, &Stop::default()).unwrap(),
        [[0.0; 3]]
    );
    assert!(project(&[], 2, &Stop::default()).unwrap().is_empty());
}

#[test]
fn words_tell_clusters_apart() {
    let texts = [
        vec![
            "a ship on the sea",
            "ships and sailors on the sea",
            "the sea in winter",
        ],
        vec![
            "bread from the oven",
            "an oven for bread",
            "bread and butter",
        ],
    ];
    let told = keywords(&texts, 2);
    assert_eq!(told, [vec!["sea", "ship"], vec!["bread", "oven"]]);
}

#[test]
fn words_that_all_clusters_use_name_none() {
    let of = |thing: &str, places: [&str; 4]| -> Vec<String> {
        let text = |place: &str| {
            format!("this film tells a story about a {thing} in {place}, and the story is long")
        };
        places.iter().map(|place| text(place)).collect()
    };
    let things = ["ship", "war", "robot", "wedding", "train", "school"];
    let places = [
        ["rome", "paris", "oslo", "lima"],
        ["oslo", "lima", "cairo", "rome"],
        ["paris", "rome", "lima", "oslo"],
        ["cairo", "oslo", "rome", "paris"],
        ["lima", "cairo", "paris", "rome"],
        ["oslo", "paris", "cairo", "lima"],
    ];
    let texts = things.iter().zip(places);
    let texts: Vec<Vec<String>> = texts.map(|(thing, places)| of(thing, places)).collect();
    let texts: Vec<Vec<&str>> = texts
        .iter()
        .map(|texts| texts.iter().map(String::as_str).collect())
        .collect();
    let told = keywords(&texts, 10);
    for (thing, words) in things.iter().zip(&told) {
        assert_eq!(words[0], *thing, "{told:?}");
        let common = ["film", "tells", "story", "long", "this", "about"];
        assert!(
            !words.iter().any(|word| common.contains(&word.as_str())),
            "{told:?}"
        );
    }
    // Also where no spaces stand between words.
    let told = keywords(&[vec!["机器学习", "学习"], vec!["天气预报", "天气"]], 1);
    assert_eq!(told, [["学习"], ["天气"]]);
    // One alone is told by what it uses most.
    let alone = [vec!["bread and butter", "bread with salt"]];
    assert_eq!(keywords(&alone, 1), [["bread"]]);
    assert_eq!(keywords(&[vec![], vec!["the and of"]], 3), [[""; 0], []]);
}

#[test]
fn drift_is_none_where_nothing_moved() {
    let at = |x: f32, y: f32, size: usize| (vec![x, y], size);
    let before = [at(1.0, 0.0, 10), at(0.0, 1.0, 30)];
    let same = drift(&before, &[at(0.0, 2.0, 30), at(3.0, 0.0, 10)]);
    assert!(same.distance.abs() < 1e-9 && same.furthest.abs() < 1e-9);
    assert_eq!((same.new, same.nearest), (0, vec![Some(1), Some(0)]));
    let moved = drift(&before, &[at(1.0, 0.0, 40), at(-1.0, -0.5, 5)]);
    assert!((moved.distance - 0.75).abs() < 1e-9, "{moved:?}");
    assert_eq!((moved.furthest, moved.new), (1.0, 1));
    assert_eq!(drift(&before, &[]).distance, 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_point_is_in_one_cluster_or_none_and_always_in_the_same(
        points in proptest::collection::vec(proptest::collection::vec(-5.0_f32..5.0, 3), 0..40),
        which in 0_usize..10,
        most in proptest::option::of(5_usize..30),
    ) {
        let settings = Settings { clusters: None, ..settings(ALL[which]) };
        let found = cluster(&points, &settings, most, &Stop::default()).unwrap();
        prop_assert_eq!(found.labels.len(), points.len());
        let mut seen = vec![NOISE; points.len()];
        for (label, one) in found.clusters.iter().enumerate() {
            prop_assert!(!one.members.is_empty());
            for place in &one.members {
                prop_assert_eq!(seen[*place], NOISE);
                seen[*place] = label as i32;
            }
        }
        prop_assert_eq!(&seen, &found.labels);
        prop_assert!(found.clusters.windows(2).all(|pair| pair[0].members.len() >= pair[1].members.len()));
        if !settings.finds_noise() {
            prop_assert!(found.labels.iter().all(|label| *label != NOISE));
        }
        let again = cluster(&points, &settings, most, &Stop::default()).unwrap();
        prop_assert_eq!(found.labels, again.labels);
    }
}
