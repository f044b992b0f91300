//! Which collections of the embedded engine share a shard, and that no answer depends on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use loupe_engine::filter::Filter;
use loupe_engine::store::edge::{Edge, EdgeOptions};
use loupe_engine::store::{DocStore, Selection, WithVectors};

use crate::edge::options;
use crate::oracle::Oracle;
use crate::suite::{all, ids, keywords, nearest};
use crate::world::{DIMS, documents, reach, text_spec};

fn shards(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("shards")).unwrap().count()
}

fn small(large_collection: usize) -> EdgeOptions {
    EdgeOptions {
        large_collection,
        // Nothing moves but when it is told to.
        optimize_every: std::time::Duration::from_secs(3_600),
        ..options()
    }
}

/// Everything that is read of a reach, by the store and by the oracle.
async fn same(store: &Edge, oracle: &Oracle, collections: &[&str]) {
    let reach = reach("ns", collections);
    let expected = ids(oracle.matching(&reach, None));
    assert_eq!(ids(&all(store, &reach, None).await), expected);
    assert_eq!(
        store.count(&reach, None).await.unwrap(),
        expected.len() as u64
    );
    let film = Filter::eq("category", "film");
    assert_eq!(
        ids(&all(store, &reach, Some(film.clone())).await),
        ids(oracle.matching(&reach, Some(&film)))
    );
    let facet = store.facet(&reach, None, "category", 10).await.unwrap();
    let facet = facet.into_iter().map(|f| (f.value.to_string(), f.count));
    assert_eq!(oracle.facet(&reach, None, "category"), facet.collect());
    let got = store.get(&reach, &expected, WithVectors::No).await.unwrap();
    assert_eq!(ids(&got), expected);
    let query = [0.3; DIMS];
    let hits = store
        .search(&reach, nearest(&query, None, 5_000))
        .await
        .unwrap();
    let found: BTreeSet<_> = ids(hits.iter().map(|h| &h.document)).into_iter().collect();
    assert_eq!(
        (found.len(), hits.len()),
        (expected.len(), expected.len()),
        "none twice"
    );
    let hits = store
        .search(&reach, keywords("river", 5_000))
        .await
        .unwrap();
    let found: BTreeSet<_> = ids(hits.iter().map(|h| &h.document)).into_iter().collect();
    assert_eq!(found.len(), hits.len(), "none twice");
    assert!(found.iter().all(|id| expected.contains(id)));
}

#[tokio::test]
async fn small_collections_share_and_a_large_one_stays_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Edge::open(dir.path(), small(40)).unwrap();
    let mut oracle = Oracle::default();
    for (seed, (collection, n, expected)) in [
        ("large", 40, 1),
        ("a", 10, 2),
        ("b", 10, 2),
        ("large", 15, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let spec = text_spec("ns", collection);
        let written = documents(&spec, n, seed as u64);
        store.upsert(&spec, written.clone()).await.unwrap();
        oracle.upsert("ns", &written);
        assert_eq!(shards(dir.path()), expected, "after {collection}");
        for collections in [vec!["large"], vec!["a"], vec!["b"], vec!["large", "a", "b"]] {
            same(&store, &oracle, &collections).await;
        }
    }
    drop(store);
    let store = Edge::open(dir.path(), small(40)).unwrap();
    same(&store, &oracle, &["large"]).await;
    same(&store, &oracle, &["a"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_reads_while_a_neighbour_moves_in_sees_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Edge::open(dir.path(), options()).unwrap());
    for round in 0..8 {
        // Every round has vectors, and so a shard, of its own.
        let name = format!("text{round}");
        let vectors = [(name.as_str(), 4, loupe_engine::store::Distance::Dot)];
        let first = crate::world::spec("ns", "first", &vectors);
        let second = crate::world::spec("ns", "second", &vectors);
        store.drop_collection("ns", "first").await.unwrap();
        store.drop_collection("ns", "second").await.unwrap();
        store
            .upsert(&first, documents(&first, 20, 1))
            .await
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let reads = Arc::new(AtomicUsize::new(0));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (store, stop, reads) = (store.clone(), stop.clone(), reads.clone());
                tokio::spawn(async move {
                    let reach = reach("ns", &["first"]);
                    while !stop.load(Ordering::Acquire) {
                        assert_eq!(store.count(&reach, None).await.unwrap(), 20);
                        let facet = store.facet(&reach, None, "category", 9).await.unwrap();
                        assert_eq!(facet.iter().map(|f| f.count).sum::<u64>(), 20);
                        reads.fetch_add(1, Ordering::AcqRel);
                    }
                })
            })
            .collect();
        // They are at it.
        while reads.load(Ordering::Acquire) < 3 && !readers.iter().all(|one| one.is_finished()) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        for seed in 2..6 {
            store
                .upsert(&second, documents(&second, 40, seed))
                .await
                .unwrap();
        }
        stop.store(true, Ordering::Release);
        for reader in readers {
            reader.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_collection_that_grows_large_moves_under_reads_and_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Edge::open(dir.path(), small(600)).unwrap());
    let mut oracle = Oracle::default();
    for (collection, n, seed) in [("small", 30, 1), ("growing", 1_500, 2)] {
        let spec = text_spec("ns", collection);
        let written = documents(&spec, n, seed);
        store.upsert(&spec, written.clone()).await.unwrap();
        oracle.upsert("ns", &written);
    }
    assert_eq!(shards(dir.path()), 1);
    // Deletes the odd ones of what is there and writes new ones, while the collection moves and others read.
    let spec = text_spec("ns", "growing");
    let there = ids(oracle.matching(&reach("ns", &["growing"]), None));
    let gone: Vec<String> = there.into_iter().skip(1).step_by(2).collect();
    let fresh = documents(&spec, 400, 3);
    let moving = {
        let store = store.clone();
        tokio::spawn(async move { store.optimize().await })
    };
    let deleting = {
        let (store, gone) = (store.clone(), gone.clone());
        tokio::spawn(async move {
            let mut removed = 0;
            for id in gone {
                let one = Selection::Ids(vec![id]);
                removed += store.delete(&reach("ns", &["growing"]), one).await.unwrap();
            }
            removed
        })
    };
    let writing = {
        let (store, fresh, spec) = (store.clone(), fresh.clone(), spec.clone());
        tokio::spawn(async move {
            for document in fresh {
                store.upsert(&spec, vec![document]).await.unwrap();
            }
        })
    };
    while !writing.is_finished() || !moving.is_finished() || !deleting.is_finished() {
        assert_eq!(
            store.count(&reach("ns", &["small"]), None).await.unwrap(),
            30
        );
        let both = all(&*store, &reach("ns", &["small", "growing"]), None).await;
        let distinct: BTreeSet<_> = ids(&both).into_iter().collect();
        assert_eq!(distinct.len(), both.len(), "none twice");
        assert!(
            (30 + 750..=30 + 1_900).contains(&both.len()),
            "{}",
            both.len()
        );
    }
    moving.await.unwrap().unwrap();
    writing.await.unwrap();
    assert_eq!(deleting.await.unwrap(), gone.len() as u64);
    oracle.delete("ns", &gone);
    oracle.upsert("ns", &fresh);
    assert_eq!(shards(dir.path()), 2, "it has moved");
    for collections in [vec!["growing"], vec!["small"], vec!["small", "growing"]] {
        same(&store, &oracle, &collections).await;
    }
    drop(store);
    let store = Edge::open(dir.path(), small(600)).unwrap();
    same(&store, &oracle, &["small", "growing"]).await;
    store.optimize().await.unwrap();
    assert_eq!(shards(dir.path()), 2, "it moves once");
}
