//! Stages that put documents beside others: linked, compared, alike.

use super::{
    local::{q, searched},
    *,
};
use crate::store::Document;

fn makers() -> Vec<Document> {
    let mut list = vec![
        document(
            "m1",
            [1.0, 0.0],
            "",
            json!({"color": "blue", "name": "Blaumann", "n": 99}),
        ),
        document(
            "m2",
            [0.0, 1.0],
            "",
            json!({"color": "red", "name": "Rossi", "content": "red boat"}),
        ),
    ];
    list.iter_mut()
        .for_each(|d| d.collection_id = "col_m".into());
    list
}

/// A run that may read the makers beside the retriever's own collections.
fn beside(query: Value) -> Run {
    let mut memory = store();
    memory.documents.extend(makers());
    let mut with = run(memory, query);
    let mut makers = collections()[0].clone();
    (makers.collection_id, makers.name) = ("col_m".into(), "makers".into());
    with.references = vec![makers];
    with
}

#[tokio::test]
async fn linked_documents_lend_their_members() {
    let with = async |more: Value| {
        let mut parameters = json!({"target_collection_id": "makers", "source_field": "color", "target_field": "color", "fields_to_merge": ["name", "n"]});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        plan(searched(json!({"document_enrich": parameters})))
            .run(beside(q()))
            .await
            .unwrap()
    };
    let out = with(json!({})).await;
    assert_eq!(ids(&out), ["a", "b", "c", "d"]);
    assert_eq!(
        (&out.documents[0]["name"], &out.documents[0]["n"]),
        (&json!("Blaumann"), &json!(3)),
        "its own n stays"
    );
    assert_eq!(
        (&out.documents[2]["name"], out.documents[3].get("name")),
        (&json!("Rossi"), None)
    );
    let out = with(json!({"strategy": "replace", "allow_missing": false})).await;
    assert_eq!(ids(&out), ["a", "b", "c"]);
    assert_eq!(out.documents[0]["n"], 99);
    let out = with(json!({"strategy": "append", "when": {"color": "blue"}})).await;
    assert_eq!(
        (&out.documents[0]["n"], out.documents[1].get("name")),
        (&json!([3, 99]), None)
    );
    let out = with(json!({"output_field": "maker"})).await;
    assert_eq!(out.documents[1]["maker"], json!({"name": "Rossi"}));
    let list = searched(
        json!({"document_enrich": {"target_collection_id": "{{INPUT.c}}", "source_field": "color"}}),
    );
    let refused = plan(list.clone())
        .run(run(store(), json!({"query": "1,0", "c": "col_m"})))
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("there is no collection `col_m`")
    );
    assert!(plan(list).references().is_empty());
    assert_eq!(
        plan(searched(
            json!({"document_enrich": {"target_collection_id": "makers"}})
        ))
        .references(),
        ["makers"]
    );
}

#[tokio::test]
async fn documents_are_compared_by_the_strictest_way_that_matches() {
    let compare = async |more: Value| {
        let mut parameters = json!({"reference_collection_id": "col_m", "source_field": "color", "reference_field": "color"});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        plan(searched(json!({"cross_compare": parameters})))
            .run(beside(q()))
            .await
            .unwrap()
    };
    let out = compare(json!({})).await;
    let told: Vec<_> = out
        .documents
        .iter()
        .map(|f| {
            (
                f["item"].as_str().unwrap(),
                f["classification"].as_str().unwrap(),
                &f["match_tier"],
            )
        })
        .collect();
    let (exact, none) = (json!("exact"), Value::Null);
    assert_eq!(
        told,
        [
            ("blue", "exact_match", &exact),
            ("red", "exact_match", &exact),
            ("red", "exact_match", &exact),
            ("green", "no_match", &none)
        ]
    );
    assert_eq!(out.documents[0]["match"]["document_id"], "m1");
    assert!(out.warnings.is_empty(), "{:?}", out.warnings);
    // Who compares with some of the references cannot say that nothing matches.
    let some = compare(json!({"reference_limit": 1})).await;
    assert_eq!(some.documents[1]["classification"], "no_match");
    assert!(
        some.warnings[0].contains("raise `reference_limit`"),
        "{:?}",
        some.warnings
    );
    let out = compare(
        json!({"extraction_mode": "labels", "output_mode": "enrich", "output_field": "found"}),
    )
    .await;
    assert_eq!(
        (ids(&out), &out.documents[0]["found"][0]["item"]),
        (vec!["a", "b", "c", "d"], &json!("blue"))
    );
    let out = compare(json!({"match_tiers": ["visual"]})).await;
    assert!(
        out.degraded[0].reason.contains("no pictures"),
        "{:?}",
        out.degraded
    );
    let out = compare(json!({"match_tiers": ["semantic"], "reference_field": "content"})).await;
    // The tests' encoder gives every word the same vector: the meaning is equal.
    assert_eq!(
        (
            &out.documents[3]["match_tier"],
            &out.documents[3]["match"]["document_id"]
        ),
        (&json!("semantic"), &json!("m2"))
    );
    let wrong = searched(
        json!({"cross_compare": {"reference_collection_id": "col_m", "match_tiers": ["{{INPUT.query}}"]}}),
    );
    assert!(
        plan(wrong)
            .run(beside(q()))
            .await
            .unwrap_err()
            .to_string()
            .contains("no match tier")
    );
}

#[tokio::test]
async fn letters_tell_how_near_two_texts_are() {
    let memory = Memory {
        documents: vec![
            document("a", [1.0, 0.0], "", json!({"content": "kitten\nsunday\n"})),
            {
                let mut other =
                    document("m", [1.0, 0.0], "", json!({"content": "Sitten\nsaturdays"}));
                other.collection_id = "col_p".into();
                other
            },
        ],
        ..Memory::default()
    };
    let list = json!({"attribute_filter": {"field": "document_id", "value": "a"},
        "cross_compare": {"reference_collection_id": "pictures", "extraction_mode": "lines"}});
    let out = plan(list).run(run(memory, q())).await.unwrap();
    // kitten and sitten: one of six letters differs.
    assert!((out.documents[0]["score"].as_f64().unwrap() - 5.0 / 6.0).abs() < 1e-12);
    assert_eq!(
        (
            &out.documents[0]["classification"],
            &out.documents[0]["match_tier"]
        ),
        (&json!("partial_match"), &json!("fuzzy"))
    );
    assert_eq!(out.documents[1]["classification"], "no_match");
}

#[tokio::test]
async fn each_sentence_of_the_query_finds_its_best_part() {
    let part = |id: &str, object: &str, vector: [f32; 2]| {
        document(
            id,
            vector,
            "",
            json!({"_internal": {"lineage": {"root_object_id": object}}}),
        )
    };
    let memory = || Memory {
        documents: vec![
            part("a", "o1", [1.0, 0.0]),
            part("b", "o2", [0.6, 0.8]),
            part("c", "o1", [0.0, 1.0]),
        ],
        ..Memory::default()
    };
    let with = async |more: Value, query: &str| {
        let mut parameters = json!({"feature_uri": FLAT});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        plan(json!({"maxsim_rerank": parameters}))
            .run(run(memory(), json!({"query": query})))
            .await
            .unwrap()
    };
    let out = with(json!({}), "0,1").await;
    assert_eq!(ids(&out), ["c", "b", "a"]);
    // Two sentences; an object is as good as its best part for each of them.
    let out = with(json!({"match_on": "root_object_id"}), "1,0").await;
    assert_eq!(ids(&out), ["a", "c", "b"]);
    assert!((out.documents[1]["scores"]["maxsim"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(
        ids(&with(json!({"top_n": 1}), "0,1").await),
        ["a", "b", "c"]
    );
    let out = with(json!({}), "").await;
    assert!(out.warnings[0].contains("the query is empty"));
}

#[tokio::test]
async fn common_values_make_documents_alike_too() {
    let list = searched(
        json!({"mmr": {"lambda": 0.5, "top_k": 2, "diversity_fields": ["color"], "diversity_field_weights": {"color": 2.0}}}),
    );
    // b and c are both red: after a (blue) b is next; then by color alone d would be, but two are kept.
    assert_eq!(ids(&answer(list, q()).await), ["a", "b"]);
    let list = searched(
        json!({"attribute_filter": {"field": "color", "operator": "ne", "value": "blue"},
        "mmr": {"lambda": 0.3, "top_k": 2, "diversity_fields": ["color"]}}),
    );
    assert_eq!(
        ids(&answer(list, q()).await),
        ["b", "d"],
        "c has the color of b"
    );
    let list = searched(
        json!({"mmr": {"lambda": 0.3, "top_k": 2, "diversity_features": [{"feature_uri": FLAT, "weight": 0.5}]}}),
    );
    assert_eq!(ids(&answer(list, q()).await), ["a", "d"]);
}

#[tokio::test]
async fn a_search_within_is_known_for_as_long_as_its_stage_lets() {
    let memory = Arc::new(store());
    let kept = Arc::new(Kept::new(std::time::Duration::from_secs(60)));
    let asked = async |lets: Value, later: i64| {
        let mut with = run(Memory::default(), json!({"query": "1,0"}));
        with.store = memory.clone();
        with.now += chrono::Duration::seconds(later);
        with.keeping = Some(Keeping {
            kept: kept.clone(),
            whose: "a".into(),
            version: (1, 0),
            most: None,
        });
        let within = json!([{"stage_name": "s", "config": {"stage_id": "feature_search", "parameters": {"searches": [search(json!({}))]}}}]);
        let mut enrich = json!({"retriever_config": {"stages": within}});
        enrich
            .as_object_mut()
            .unwrap()
            .extend(lets.as_object().unwrap().clone());
        let before = memory.searches.lock().unwrap().len();
        plan(json!({"document_enrich": enrich}))
            .run(with)
            .await
            .unwrap();
        memory.searches.lock().unwrap().len() > before
    };
    let ten = || json!({"cache_ttl_seconds": 10});
    assert!(asked(ten(), 0).await);
    assert!(!asked(ten(), 9).await);
    assert!(asked(ten(), 11).await);
    assert!(!asked(json!({}), 30).await);
    assert!(asked(json!({"cache_ttl_seconds": 0}), 30).await);
}
