//! What every document store does, whatever its engine.

use std::collections::BTreeSet;

use async_trait::async_trait;
use loupe_engine::filter::{Filter, Operator};
use loupe_engine::store::{
    Direction, Distance, DocStore, Document, ListQuery, Ranking, Reach, SearchQuery, Selection,
    Sort, StoreError, WithVectors,
};
use serde_json::{Value, json};

use crate::oracle::Oracle;
use crate::world::{self, DIMS, WORDS, documents, reach, spec, text_spec};

/// A store and the way to open it anew.
#[async_trait]
pub trait Bed: Send {
    fn store(&self) -> &dyn DocStore;
    async fn reopen(&mut self);
}

/// One `#[tokio::test]` for every function of this file named here, on the bed that the expression makes.
#[macro_export]
macro_rules! conformance {
    ($bed:expr) => {
        $crate::conformance!(@ $bed,
            upserts_and_replaces, keeps_the_last_of_equal_ids, refuses_bad_vectors, refuses_the_ids_of_others,
            lists_in_the_order_of_ids, lists_in_the_order_of_values, answers_every_operator_as_the_oracle,
            answers_nested_filters, counts_facets, ranks_by_nearness, ranks_by_every_distance,
            ranks_with_a_filter_that_lets_little_through, ranks_by_keywords, merges_shards, keeps_namespaces_apart,
            keeps_principals_apart, deletes_by_ids, deletes_by_filter, drops_collections, moves_to_new_vectors,
            keeps_everything_over_a_reopening, works_without_vectors, is_unavailable_when_closed);
    };
    (@ $bed:expr, $($name:ident),*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let Some(mut bed) = $bed.await else { return };
            $crate::suite::$name(&mut bed).await;
        })*
    };
}

fn ids<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<String> {
    documents
        .into_iter()
        .map(|d| d.document_id.clone())
        .collect()
}

async fn all(store: &dyn DocStore, reach: &Reach, filter: Option<Filter>) -> Vec<Document> {
    let query = ListQuery {
        filter,
        limit: 10_000,
        ..ListQuery::default()
    };
    store.list(reach, query).await.unwrap().documents
}

fn nearest(vector: &[f32], filter: Option<Filter>, limit: usize) -> SearchQuery {
    let ranking = Ranking::Nearest {
        index: "text".to_owned(),
        vector: vector.to_vec(),
    };
    SearchQuery {
        ranking,
        filter,
        limit,
        min_score: None,
        vectors: WithVectors::No,
    }
}

fn keywords(text: &str, limit: usize) -> SearchQuery {
    let ranking = Ranking::Keywords {
        text: text.to_owned(),
    };
    SearchQuery {
        ranking,
        filter: None,
        limit,
        min_score: None,
        vectors: WithVectors::No,
    }
}

fn stripped(document: &Document) -> Document {
    Document {
        vectors: Default::default(),
        keywords: None,
        ..document.clone()
    }
}

/// A collection of random documents, in the store and in the oracle.
async fn filled(bed: &mut impl Bed, n: usize) -> (Reach, Oracle, Vec<Document>) {
    let spec = text_spec("ns_a", "col_a");
    let written = documents(&spec, n, 7);
    bed.store().upsert(&spec, written.clone()).await.unwrap();
    let mut oracle = Oracle::default();
    oracle.upsert("ns_a", &written);
    (reach("ns_a", &["col_a"]), oracle, written)
}

pub async fn upserts_and_replaces(bed: &mut impl Bed) {
    let (reach, _, written) = filled(bed, 20).await;
    let (store, spec) = (bed.store(), text_spec("ns_a", "col_a"));
    let wanted = vec![
        written[3].document_id.clone(),
        "doc_unknown".to_owned(),
        written[1].document_id.clone(),
    ];
    let found = store.get(&reach, &wanted, WithVectors::No).await.unwrap();
    assert_eq!(
        found,
        [stripped(&written[3]), stripped(&written[1])],
        "in the order asked, without the unknown"
    );

    let mut changed = written[3].clone();
    changed.payload = json!({"title": "anew"}).as_object().unwrap().clone();
    store.upsert(&spec, vec![changed.clone()]).await.unwrap();
    let found = store
        .get(&reach, &wanted[..1], WithVectors::Yes)
        .await
        .unwrap();
    assert_eq!(
        found[0].payload, changed.payload,
        "nothing of the replaced payload is left"
    );
    let (read, given) = (&found[0].vectors["text"], &changed.vectors["text"]);
    let norm = given.iter().map(|x| x * x).sum::<f32>().sqrt();
    for (a, b) in read.iter().zip(given) {
        assert!(
            (a - b / norm).abs() < 1e-5,
            "cosine vectors come back with length one"
        );
    }
    assert_eq!(store.count(&reach, None).await.unwrap(), 20);
}

pub async fn keeps_the_last_of_equal_ids(bed: &mut impl Bed) {
    let spec = text_spec("ns_a", "col_a");
    let first = world::document("col_a", "1", json!({"n": 1}));
    let second = Document {
        payload: json!({"n": 2}).as_object().unwrap().clone(),
        ..first.clone()
    };
    bed.store()
        .upsert(&spec, vec![first, second.clone()])
        .await
        .unwrap();
    assert_eq!(
        all(bed.store(), &reach("ns_a", &["col_a"]), None).await,
        [second]
    );
}

pub async fn refuses_bad_vectors(bed: &mut impl Bed) {
    let (store, spec) = (bed.store(), text_spec("ns_a", "col_a"));
    let good = documents(&spec, 2, 1);
    for bad in [
        vec![0.0; DIMS - 1],
        vec![f32::NAN; DIMS],
        vec![f32::INFINITY; DIMS],
        vec![],
    ] {
        let mut batch = good.clone();
        batch[1].vectors.insert("text".to_owned(), bad);
        let error = store.upsert(&spec, batch).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    let mut batch = good.clone();
    batch[1].vectors.insert("unknown".to_owned(), vec![1.0]);
    assert!(matches!(
        store.upsert(&spec, batch).await,
        Err(StoreError::Invalid(_))
    ));
    let odd = Document {
        document_id: "doc_1".to_owned(),
        ..good[0].clone()
    };
    assert!(matches!(
        store.upsert(&spec, vec![odd]).await,
        Err(StoreError::Invalid(_))
    ));
    let reach = reach("ns_a", &["col_a"]);
    assert_eq!(
        store.count(&reach, None).await.unwrap(),
        0,
        "nothing of a refused batch is written"
    );

    store.upsert(&spec, good).await.unwrap();
    for bad in [vec![0.0; DIMS - 1], vec![f32::NAN; DIMS]] {
        assert!(matches!(
            store.search(&reach, nearest(&bad, None, 5)).await,
            Err(StoreError::Invalid(_))
        ));
    }
}

pub async fn refuses_the_ids_of_others(bed: &mut impl Bed) {
    let (mine, _, written) = filled(bed, 3).await;
    let store = bed.store();
    for (namespace, collection) in [("ns_b", "col_a"), ("ns_a", "col_b")] {
        let mut stolen = written[0].clone();
        stolen.collection_id = collection.to_owned();
        stolen.payload.clear();
        let error = store
            .upsert(&text_spec(namespace, collection), vec![stolen])
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    }
    assert_eq!(all(store, &mine, None).await.len(), 3);
    let found = store
        .get(&mine, &[written[0].document_id.clone()], WithVectors::No)
        .await
        .unwrap();
    assert_eq!(found, [stripped(&written[0])]);
}

async fn walk(store: &dyn DocStore, reach: &Reach, mut query: ListQuery) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..1_000 {
        let page = store.list(reach, query.clone()).await.unwrap();
        assert!(page.documents.len() <= query.limit);
        seen.extend(ids(&page.documents));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return seen;
        }
    }
    panic!("the cursor never ends");
}

pub async fn lists_in_the_order_of_ids(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 53).await;
    let store = bed.store();
    let expected = ids(oracle.matching(&reach, None));
    for limit in [1, 7, 53, 100] {
        assert_eq!(
            walk(
                store,
                &reach,
                ListQuery {
                    limit,
                    ..ListQuery::default()
                }
            )
            .await,
            expected,
            "{limit}"
        );
    }
    let query = ListQuery {
        limit: 10,
        offset: 45,
        ..ListQuery::default()
    };
    assert_eq!(
        ids(&store.list(&reach, query).await.unwrap().documents),
        expected[45..]
    );
    let filter = Some(Filter::leaf("title", Operator::Text, json!("river")));
    let query = ListQuery {
        limit: 4,
        filter: filter.clone(),
        ..ListQuery::default()
    };
    assert_eq!(
        walk(store, &reach, query).await,
        ids(oracle.matching(&reach, filter.as_ref()))
    );
    let bad = ListQuery {
        limit: 4,
        cursor: Some("nonsense".to_owned()),
        ..ListQuery::default()
    };
    assert!(matches!(
        store.list(&reach, bad).await,
        Err(StoreError::Invalid(_))
    ));
}

pub async fn lists_in_the_order_of_values(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 60).await;
    let store = bed.store();
    for field in [
        "year",
        "title",
        "mixed",
        "created",
        "meta.lang",
        "absent",
        "meta.sizes.w",
    ] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let sort = Sort {
                field: field.to_owned(),
                direction,
            };
            let expected = ids(oracle.sorted(&reach, None, &sort));
            let query = ListQuery {
                sort: Some(sort),
                limit: 11,
                ..ListQuery::default()
            };
            assert_eq!(
                walk(store, &reach, query.clone()).await,
                expected,
                "{field} {direction:?}"
            );
            let query = ListQuery {
                offset: 17,
                ..query
            };
            assert_eq!(
                ids(&store.list(&reach, query).await.unwrap().documents),
                expected[17..28],
                "{field}"
            );
        }
    }
}

/// Conditions for each of the twenty operators.
fn conditions() -> Vec<(Operator, &'static str, Value)> {
    use Operator as O;
    let berlin = json!({"center": {"lat": 52.5, "lon": 13.4}, "radius": 6_000_000});
    let area =
        json!({"top_left": {"lat": 60, "lon": -100}, "bottom_right": {"lat": -20, "lon": 90}});
    let ring = json!({"exterior": {"points": [
        {"lat": 0, "lon": 0}, {"lat": 70, "lon": 0}, {"lat": 70, "lon": 160}, {"lat": 0, "lon": 160}]}});
    let mut list = vec![
        (O::Gt, "year", json!(1994)),
        (O::Gte, "price", json!(5)),
        (O::Lt, "created", json!("2026-05-01")),
        (O::Lte, "meta.sizes.w", json!(1)),
        (O::Contains, "title", json!("mountain")),
        (O::Contains, "tags", json!("red")),
        (O::StartsWith, "title", json!("riv")),
        (O::EndsWith, "title", json!("station")),
        (O::Regex, "title", json!("^(river|Ember) .*n")),
        (O::Text, "title", json!("ANTER")),
        (O::Phrase, "title", json!("river mountain")),
        (O::Words, "title", json!("runs rivers")),
        (O::GeoRadius, "place", berlin),
        (O::GeoBoundingBox, "place", area),
        (O::GeoPolygon, "place", ring),
    ];
    let values = [
        json!(1),
        json!("1"),
        json!(true),
        Value::Null,
        json!("Books"),
        json!("red"),
        json!("en"),
        json!({"a": 1}),
    ];
    for field in [
        "mixed",
        "category",
        "tags",
        "meta.lang",
        "note",
        "meta.sizes.unit",
        "absent",
        "tags.0",
        "year",
    ] {
        for value in &values {
            list.push((O::Eq, field, value.clone()));
            list.push((O::Ne, field, value.clone()));
        }
        list.push((O::In, field, Value::Array(values[..3].to_vec())));
        list.push((O::Nin, field, Value::Array(values[3..6].to_vec())));
        for wanted in [true, false] {
            list.push((O::Exists, field, json!(wanted)));
            list.push((O::IsNull, field, json!(wanted)));
        }
    }
    list
}

pub async fn answers_every_operator_as_the_oracle(bed: &mut impl Bed) {
    let (reach, oracle, written) = filled(bed, 80).await;
    let store = bed.store();
    let conditions = conditions();
    let covered: BTreeSet<&str> = conditions
        .iter()
        .map(|(operator, ..)| operator.word())
        .collect();
    assert_eq!(
        covered.len(),
        Operator::ALL.len(),
        "every operator has a condition"
    );
    for (operator, field, value) in conditions {
        let filter = Filter::leaf(field, operator, value);
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(
            ids(&all(store, &reach, Some(filter.clone())).await),
            expected,
            "list {filter}"
        );
        assert_eq!(
            store.count(&reach, Some(&filter)).await.unwrap(),
            expected.len() as u64,
            "count {filter}"
        );
    }
    let some = json!([written[0].document_id, written[9].document_id, "doc_none"]);
    for operator in [Operator::In, Operator::Nin] {
        let filter = Filter::leaf("document_id", operator, some.clone());
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(ids(&all(store, &reach, Some(filter)).await), expected);
    }
}

pub async fn answers_nested_filters(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 80).await;
    for text in [
        json!({"AND": [{"category": "film"}, {"field": "year", "operator": "gt", "value": 1993}]}),
        json!({"OR": [{"category": "film"}, {"field": "title", "operator": "words", "value": "river"}]}),
        json!({"NOT": [{"category": "film"}, {"field": "year", "operator": "gt", "value": 1993}]}),
        json!({"NOT": {"AND": [{"meta.lang": "en"}, {"NOT": {"tags": "red"}}]}}),
        json!({"category": "BOOKS", "case_sensitive": false}),
        json!({"AND": []}),
        json!({"OR": []}),
        json!({"NOT": []}),
        json!({"NOT": {"OR": []}}),
        json!({"NOT": {"AND": []}}),
        json!({"OR": [{"AND": []}, {"category": "film"}]}),
        json!({"AND": [{"OR": []}, {"category": "film"}]}),
    ] {
        let Ok(filter) = Filter::parse(&text) else {
            continue;
        };
        let expected = ids(oracle.matching(&reach, Some(&filter)));
        assert_eq!(
            ids(&all(bed.store(), &reach, Some(filter)).await),
            expected,
            "{text}"
        );
    }
    for (filter, n) in [
        (Filter::All(vec![]), 80),
        (Filter::Any(vec![]), 0),
        (Filter::None(vec![]), 80),
    ] {
        assert_eq!(
            bed.store().count(&reach, Some(&filter)).await.unwrap(),
            n,
            "{filter:?}"
        );
    }
}

pub async fn counts_facets(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 80).await;
    let filter = Filter::leaf("title", Operator::Contains, json!("e"));
    for field in [
        "category",
        "tags",
        "mixed",
        "year",
        "meta.sizes.w",
        "absent",
        "meta",
    ] {
        for filter in [None, Some(&filter)] {
            let found = bed.store().facet(&reach, filter, field, 100).await.unwrap();
            let order: Vec<u64> = found.iter().map(|f| f.count).collect();
            assert!(order.is_sorted_by(|a, b| a >= b), "most frequent first");
            let found = found
                .into_iter()
                .map(|f| (f.value.to_string(), f.count))
                .collect();
            assert_eq!(oracle.facet(&reach, filter, field), found, "{field}");
        }
    }
    assert_eq!(
        bed.store()
            .facet(&reach, None, "category", 2)
            .await
            .unwrap()
            .len(),
        2
    );
}

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

pub async fn keeps_namespaces_apart(bed: &mut impl Bed) {
    let mut oracle = Oracle::default();
    for (seed, (namespace, collection)) in [("ns_a", "col_a"), ("ns_b", "col_b"), ("ns_a", "col_c")]
        .iter()
        .enumerate()
    {
        let spec = text_spec(namespace, collection);
        let written = documents(&spec, 30, seed as u64);
        bed.store().upsert(&spec, written.clone()).await.unwrap();
        oracle.upsert(namespace, &written);
    }
    let store = bed.store();
    let query = vec![0.3; DIMS];
    for (namespace, collections) in [
        ("ns_a", vec!["col_a"]),
        ("ns_b", vec!["col_a"]),
        ("ns_b", vec!["col_a", "col_b", "col_c"]),
        ("ns_a", vec![]),
        ("ns_", vec!["col_a"]),
    ] {
        let reach = reach(namespace, &collections);
        let expected = ids(oracle.matching(&reach, None));
        assert_eq!(ids(&all(store, &reach, None).await), expected);
        assert_eq!(
            store.count(&reach, None).await.unwrap(),
            expected.len() as u64
        );
        let hits = store
            .search(&reach, nearest(&query, None, 200))
            .await
            .unwrap();
        assert_eq!(hits.len(), expected.len());
        assert!(
            hits.iter()
                .all(|h| expected.contains(&h.document.document_id))
        );
        let hits = store
            .search(&reach, keywords("river quiet signal", 200))
            .await
            .unwrap();
        assert!(
            hits.iter()
                .all(|h| expected.contains(&h.document.document_id))
        );
        let facet = store
            .facet(&reach, None, "_internal.batch_id", 10)
            .await
            .unwrap();
        assert_eq!(
            facet.iter().map(|f| f.count).sum::<u64>(),
            expected.len() as u64
        );
        let foreign = reach_all(&oracle);
        let got = store.get(&reach, &foreign, WithVectors::No).await.unwrap();
        assert_eq!(got.len(), expected.len(), "get by id reaches no farther");
    }
    let stranger = reach("ns_b", &["col_a"]);
    assert_eq!(
        store
            .delete(&stranger, Selection::Ids(reach_all(&oracle)))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        store
            .delete(&stranger, Selection::Matching(None))
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        store
            .count(&reach("ns_a", &["col_a", "col_c"]), None)
            .await
            .unwrap(),
        60
    );
}

fn reach_all(oracle: &Oracle) -> Vec<String> {
    ["ns_a", "ns_b"]
        .iter()
        .flat_map(|namespace| {
            ids(oracle.matching(&reach(namespace, &["col_a", "col_b", "col_c"]), None))
        })
        .collect()
}

pub async fn keeps_principals_apart(bed: &mut impl Bed) {
    let (everybody, oracle, written) = filled(bed, 120).await;
    let store = bed.store();
    for principal in ["ada", "grace", "linus", "nobody"] {
        let reach = Reach {
            principal: Some(principal.to_owned()),
            ..everybody.clone()
        };
        let expected = ids(oracle.matching(&reach, None));
        assert!(
            expected.len() < written.len(),
            "the world is not all public"
        );
        assert_eq!(
            ids(&all(store, &reach, None).await),
            expected,
            "{principal}"
        );
        assert_eq!(
            store.count(&reach, None).await.unwrap(),
            expected.len() as u64
        );
        let hits = store
            .search(&reach, nearest(&[0.1; DIMS], None, 200))
            .await
            .unwrap();
        assert_eq!(hits.len(), expected.len());
        let got = store
            .get(&reach, &ids(&written), WithVectors::No)
            .await
            .unwrap();
        assert_eq!(got.len(), expected.len());
        let found = store.facet(&reach, None, "category", 10).await.unwrap();
        let found = found
            .into_iter()
            .map(|f| (f.value.to_string(), f.count))
            .collect();
        assert_eq!(oracle.facet(&reach, None, "category"), found);
    }
    let ada = Reach {
        principal: Some("ada".to_owned()),
        ..everybody.clone()
    };
    let hers = oracle.matching(&ada, None).len() as u64;
    assert_eq!(
        store.delete(&ada, Selection::Matching(None)).await.unwrap(),
        hers
    );
    assert_eq!(store.count(&everybody, None).await.unwrap(), 120 - hers);
}

pub async fn deletes_by_ids(bed: &mut impl Bed) {
    let (reach, _, written) = filled(bed, 10).await;
    let mut gone = ids(&written[..3]);
    gone.push("doc_ffffffffffffffffffffffffffffffff".to_owned());
    assert_eq!(
        bed.store()
            .delete(&reach, Selection::Ids(gone.clone()))
            .await
            .unwrap(),
        3
    );
    assert_eq!(
        bed.store()
            .delete(&reach, Selection::Ids(gone))
            .await
            .unwrap(),
        0
    );
    let left: BTreeSet<_> = ids(&all(bed.store(), &reach, None).await)
        .into_iter()
        .collect();
    assert_eq!(left, ids(&written[3..]).into_iter().collect());
}

pub async fn deletes_by_filter(bed: &mut impl Bed) {
    let (reach, oracle, _) = filled(bed, 60).await;
    let mut left = 60;
    // One that an engine decides and one that is evaluated.
    for filter in [
        Filter::eq("category", "film"),
        Filter::leaf("title", Operator::StartsWith, json!("r")),
    ] {
        let expected = oracle.matching(&reach, Some(&filter)).len() as u64;
        let expected = expected.min(bed.store().count(&reach, Some(&filter)).await.unwrap());
        assert_eq!(
            bed.store()
                .delete(&reach, Selection::Matching(Some(filter.clone())))
                .await
                .unwrap(),
            expected
        );
        left -= expected;
        assert_eq!(bed.store().count(&reach, Some(&filter)).await.unwrap(), 0);
        assert_eq!(bed.store().count(&reach, None).await.unwrap(), left);
    }
    assert!(left > 0 && left < 60);
}

pub async fn drops_collections(bed: &mut impl Bed) {
    let (gone, _, _) = filled(bed, 10).await;
    let kept = text_spec("ns_a", "col_b");
    bed.store()
        .upsert(&kept, documents(&kept, 10, 4))
        .await
        .unwrap();
    bed.store().drop_collection("ns_a", "col_a").await.unwrap();
    bed.store()
        .drop_collection("ns_a", "col_never")
        .await
        .unwrap();
    assert_eq!(bed.store().count(&gone, None).await.unwrap(), 0);
    assert_eq!(
        bed.store()
            .count(&reach("ns_a", &["col_b"]), None)
            .await
            .unwrap(),
        10
    );
    let again = text_spec("ns_a", "col_a");
    bed.store()
        .upsert(&again, documents(&again, 2, 5))
        .await
        .unwrap();
    assert_eq!(bed.store().count(&gone, None).await.unwrap(), 2);
}

pub async fn moves_to_new_vectors(bed: &mut impl Bed) {
    let (reach, _, mut written) = filled(bed, 10).await;
    let wider = spec(
        "ns_a",
        "col_a",
        &[
            ("text", DIMS, Distance::Cosine),
            ("image", 2, Distance::Dot),
        ],
    );
    for document in &mut written[..4] {
        document.vectors.insert("image".to_owned(), vec![1.0, 2.0]);
    }
    bed.store()
        .upsert(&wider, written[..4].to_vec())
        .await
        .unwrap();
    assert_eq!(
        bed.store().count(&reach, None).await.unwrap(),
        10,
        "none twice, none lost"
    );
    let found = bed
        .store()
        .search(&reach, nearest(&written[0].vectors["text"], None, 100))
        .await
        .unwrap();
    assert_eq!(found.len(), 10);
    let got = bed
        .store()
        .get(&reach, &ids(&written[..1]), WithVectors::Yes)
        .await
        .unwrap();
    assert_eq!(got[0].vectors["image"], [1.0, 2.0]);
}

pub async fn keeps_everything_over_a_reopening(bed: &mut impl Bed) {
    let (reach, oracle, written) = filled(bed, 50).await;
    bed.store().flush().await.unwrap();
    bed.store()
        .delete(&reach, Selection::Ids(ids(&written[..5])))
        .await
        .unwrap();
    let query = vec![0.2; DIMS];
    let before = bed
        .store()
        .search(&reach, nearest(&query, None, 20))
        .await
        .unwrap();
    let words = bed
        .store()
        .search(&reach, keywords("river", 20))
        .await
        .unwrap();
    bed.reopen().await;
    assert_eq!(bed.store().count(&reach, None).await.unwrap(), 45);
    assert_eq!(
        bed.store()
            .search(&reach, nearest(&query, None, 20))
            .await
            .unwrap(),
        before
    );
    assert_eq!(
        bed.store()
            .search(&reach, keywords("river", 20))
            .await
            .unwrap(),
        words
    );
    let filter = Filter::eq("category", "film");
    let expected = oracle
        .matching(&reach, Some(&filter))
        .into_iter()
        .filter(|d| !written[..5].contains(d))
        .count();
    assert_eq!(
        bed.store().count(&reach, Some(&filter)).await.unwrap(),
        expected as u64
    );
    let spec = text_spec("ns_a", "col_a");
    bed.store()
        .upsert(&spec, written[..5].to_vec())
        .await
        .unwrap();
    assert_eq!(
        bed.store().count(&reach, None).await.unwrap(),
        50,
        "and it can be written again"
    );
}

pub async fn works_without_vectors(bed: &mut impl Bed) {
    let spec = spec("ns_a", "col_plain", &[]);
    let written = documents(&spec, 12, 5);
    bed.store().upsert(&spec, written.clone()).await.unwrap();
    let reach = reach("ns_a", &["col_plain"]);
    assert_eq!(all(bed.store(), &reach, None).await.len(), 12);
    assert!(
        !bed.store()
            .search(&reach, keywords(written[0].keywords.as_ref().unwrap(), 3))
            .await
            .unwrap()
            .is_empty()
    );
    bed.store().flush().await.unwrap();
    bed.reopen().await;
    assert_eq!(bed.store().count(&reach, None).await.unwrap(), 12);
}

pub async fn is_unavailable_when_closed(bed: &mut impl Bed) {
    let (reach, _, written) = filled(bed, 3).await;
    bed.store().close().await.unwrap();
    let spec = text_spec("ns_a", "col_a");
    assert!(matches!(
        bed.store().count(&reach, None).await,
        Err(StoreError::Unavailable(_))
    ));
    assert!(matches!(
        bed.store().upsert(&spec, written).await,
        Err(StoreError::Unavailable(_))
    ));
    bed.reopen().await;
    assert_eq!(bed.store().count(&reach, None).await.unwrap(), 3);
}
