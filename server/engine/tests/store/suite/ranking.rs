//! Search.

use std::collections::BTreeSet;

use loupe_engine::filter::{Filter, Operator};
use loupe_engine::store::{
    Direction, Distance, DocStore, ListQuery, Ranking, Reach, SearchQuery, Sort, WithVectors,
};
use serde_json::json;

use super::{Bed, filled, ids, keywords, nearest, walk};
use crate::oracle::Oracle;
use crate::world::{DIMS, WORDS, documents, reach, spec, text_spec};

async fn same_ranking(
    store: &dyn DocStore,
    reach: &Reach,
    query: SearchQuery,
    expected: &[(String, f32)],
) {
    let found = store.search(reach, query).await.unwrap();
    assert_eq!(
        ids(found.iter().map(|h| &h.document)),
        expected.iter().map(|e| e.0.clone()).collect::<Vec<_>>()
    );
    for (hit, (_, score)) in found.iter().zip(expected) {
        assert!(
            (hit.score - score).abs() < 1e-4,
            "{} is not {score}",
            hit.score
        );
    }
}

pub async fn ranks_by_nearness(bed: &mut impl Bed) {
    let (reach, oracle, written) = filled(bed, 120).await;
    let (store, spec) = (bed.store(), &text_spec("ns_a", "col_a").vectors[0]);
    for document in &written[..5] {
        let query = &document.vectors["text"];
        same_ranking(
            store,
            &reach,
            nearest(query, None, 10),
            &oracle.nearest(&reach, None, spec, query, 10),
        )
        .await;
        for filter in [
            Filter::eq("category", "film"),
            Filter::leaf("year", Operator::Gte, json!(1995)),
        ] {
            let expected = oracle.nearest(&reach, Some(&filter), spec, query, 10);
            same_ranking(store, &reach, nearest(query, Some(filter), 10), &expected).await;
        }
        let expected = oracle.nearest(&reach, None, spec, query, 10);
        let least = expected[4].1 - 1e-4;
        let query = SearchQuery {
            min_score: Some(least),
            ..nearest(query, None, 10)
        };
        assert_eq!(
            store.search(&reach, query).await.unwrap().len(),
            5,
            "min_score cuts"
        );
    }
    let unknown = Ranking::Nearest {
        index: "image".to_owned(),
        vector: vec![1.0; 3],
    };
    let query = SearchQuery {
        ranking: unknown,
        ..nearest(&[], None, 10)
    };
    assert_eq!(
        store.search(&reach, query).await.unwrap(),
        [],
        "an index that no collection has gives no rows"
    );
    let with = SearchQuery {
        vectors: WithVectors::Yes,
        ..nearest(&written[0].vectors["text"], None, 1)
    };
    assert_eq!(
        store.search(&reach, with).await.unwrap()[0]
            .document
            .vectors["text"]
            .len(),
        DIMS
    );
}

pub async fn ranks_by_every_distance(bed: &mut impl Bed) {
    for (i, distance) in [Distance::Cosine, Distance::Dot, Distance::Euclid]
        .into_iter()
        .enumerate()
    {
        let collection = format!("col_{i}");
        let spec = spec(
            "ns_a",
            &collection,
            &[("text", DIMS, distance), ("other", 3, Distance::Dot)],
        );
        let written = documents(&spec, 60, 3);
        let mut oracle = Oracle::default();
        oracle.upsert("ns_a", &written);
        bed.store().upsert(&spec, written.clone()).await.unwrap();
        let (reach, query) = (reach("ns_a", &[&collection]), &written[0].vectors["text"]);
        let expected = oracle.nearest(&reach, None, &spec.vectors[0], query, 10);
        same_ranking(bed.store(), &reach, nearest(query, None, 10), &expected).await;
    }
}

pub async fn ranks_with_a_filter_that_lets_little_through(bed: &mut impl Bed) {
    let (spec, reach) = (text_spec("ns_a", "col_a"), reach("ns_a", &["col_a"]));
    let mut written = documents(&spec, 5_000, 11);
    let query = vec![1.0; DIMS];
    let against: Vec<f32> = query.iter().map(|x| -x).collect();
    // The only two that pass are the farthest of all.
    for place in [17, 4_321] {
        written[place]
            .payload
            .insert("title".to_owned(), json!("a needle in it"));
        written[place]
            .vectors
            .insert("text".to_owned(), against.clone());
    }
    bed.store().upsert(&spec, written.clone()).await.unwrap();
    let filter = Filter::leaf("title", Operator::Phrase, json!("needle in"));
    let found = bed
        .store()
        .search(&reach, nearest(&query, Some(filter), 10))
        .await
        .unwrap();
    let expected: BTreeSet<_> = [17, 4_321]
        .map(|place| written[place].document_id.clone())
        .into();
    assert_eq!(
        ids(found.iter().map(|h| &h.document))
            .into_iter()
            .collect::<BTreeSet<_>>(),
        expected
    );
}

pub async fn ranks_by_keywords(bed: &mut impl Bed) {
    let (reach, _, written) = filled(bed, 60).await;
    let store = bed.store();
    for word in WORDS {
        let found = store
            .search(&reach, keywords(&word.to_uppercase(), 100))
            .await
            .unwrap();
        let expected: BTreeSet<_> = written
            .iter()
            .filter(|d| d.keywords.as_ref().unwrap().contains(word))
            .map(|d| &d.document_id)
            .collect();
        assert_eq!(
            found
                .iter()
                .map(|h| &h.document.document_id)
                .collect::<BTreeSet<_>>(),
            expected,
            "{word}"
        );
        assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        assert!(
            found
                .iter()
                .all(|h| h.score > 0.0 && h.document.keywords.is_none())
        );
    }
    let inflected = store.search(&reach, keywords("runs", 100)).await.unwrap();
    assert!(!inflected.is_empty(), "`runs` finds `running`");
    assert_eq!(
        store.search(&reach, keywords("absent", 100)).await.unwrap(),
        []
    );

    // Other collections of the shard do not change scores: the statistics are those of the reach.
    let before = store.search(&reach, keywords("river", 5)).await.unwrap();
    let other = text_spec("ns_z", "col_z");
    store
        .upsert(&other, documents(&other, 200, 99))
        .await
        .unwrap();
    assert_eq!(
        store.search(&reach, keywords("river", 5)).await.unwrap(),
        before
    );
}

pub async fn merges_shards(bed: &mut impl Bed) {
    let first = text_spec("ns_a", "col_a");
    let second = spec(
        "ns_a",
        "col_b",
        &[
            ("text", DIMS, Distance::Cosine),
            ("image", 4, Distance::Dot),
        ],
    );
    let mut oracle = Oracle::default();
    for (spec, seed) in [(&first, 1), (&second, 2)] {
        let written = documents(spec, 40, seed);
        bed.store().upsert(spec, written.clone()).await.unwrap();
        oracle.upsert("ns_a", &written);
    }
    let (store, reach) = (bed.store(), reach("ns_a", &["col_a", "col_b"]));
    let query = vec![0.5; DIMS];
    let expected = oracle.nearest(&reach, None, &first.vectors[0], &query, 12);
    same_ranking(store, &reach, nearest(&query, None, 12), &expected).await;
    let expected = ids(oracle.matching(&reach, None));
    assert_eq!(
        walk(
            store,
            &reach,
            ListQuery {
                limit: 9,
                ..ListQuery::default()
            }
        )
        .await,
        expected
    );
    let sort = Sort {
        field: "year".to_owned(),
        direction: Direction::Descending,
    };
    let expected = ids(oracle.sorted(&reach, None, &sort));
    assert_eq!(
        walk(
            store,
            &reach,
            ListQuery {
                limit: 9,
                sort: Some(sort),
                ..ListQuery::default()
            }
        )
        .await,
        expected
    );
    assert_eq!(store.count(&reach, None).await.unwrap(), 80);
    let found = store.search(&reach, keywords("river", 6)).await.unwrap();
    let from: BTreeSet<_> = found
        .iter()
        .map(|h| h.document.collection_id.as_str())
        .collect();
    assert_eq!(from.len(), 2, "the best of both are on top");
}
