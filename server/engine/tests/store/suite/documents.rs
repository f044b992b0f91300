//! Writing, reading by id, deleting, reopening.

use std::collections::BTreeSet;

use loupe_engine::filter::{Filter, Operator};
use loupe_engine::store::{Distance, Document, Selection, StoreError, WithVectors};
use serde_json::json;

use super::{Bed, all, filled, ids, keywords, nearest, stripped};
use crate::world::{self, DIMS, documents, reach, spec, text_spec};

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
    changed.payload = json!({"title": "anew"}).as_object().unwrap().clone().into();
    store.upsert(&spec, vec![changed.clone()]).await.unwrap();
    let found = store
        .get(&reach, &wanted[..1], WithVectors::Yes)
        .await
        .unwrap();
    assert_eq!(
        found[0].payload, changed.payload,
        "nothing of the replaced payload is left"
    );
    assert_eq!(
        found[0].keywords, changed.keywords,
        "whoever reads vectors has the document whole"
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
        payload: json!({"n": 2}).as_object().unwrap().clone().into(),
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
