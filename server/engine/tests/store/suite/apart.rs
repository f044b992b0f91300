//! Namespaces and principals see their own.

use loupe_engine::store::{Reach, Selection, WithVectors};

use super::{Bed, all, filled, ids, keywords, nearest};
use crate::oracle::Oracle;
use crate::world::{DIMS, documents, reach, text_spec};

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
