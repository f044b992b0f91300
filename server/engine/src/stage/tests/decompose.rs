//! Queries that are cut into parts.

use super::*;

/// A search for a text of two parts, one like `a`, one like `d`.
async fn cut(preprocessing: Value) -> Outcome {
    let list = json!({"feature_search": {"final_top_k": 10,
        "searches": [search(json!({"query_preprocessing": preprocessing}))]}});
    answer(list, json!({"query": "1,0\n\n0,1"})).await
}

fn by_paragraphs(more: Value) -> Value {
    let mut how = json!({"params": {"split_by": "paragraphs", "chunk_size": 1}});
    how.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    how
}

#[tokio::test]
async fn the_parts_of_a_query_make_one_list() {
    let out = cut(by_paragraphs(json!({}))).await;
    assert_eq!(ids(&out), ["b", "a", "d", "c"]);
    let told = &out.statistics.stages["feature_search"].metadata["searches"];
    assert_eq!(*told, json!([{"name": "search_0", "found": 4}]));
    let out = cut(by_paragraphs(json!({"aggregation": "max"}))).await;
    assert_eq!(ids(&out), ["a", "d", "b", "c"]);
    let out = cut(by_paragraphs(json!({"aggregation": "avg"}))).await;
    assert_eq!(ids(&out), ["b", "a", "d", "c"]);
    // Of documents that share a value the best stays.
    let out = cut(by_paragraphs(
        json!({"aggregation": "max", "dedup_field": "g"}),
    ))
    .await;
    assert_eq!(ids(&out), ["a", "d", "c"]);
}

#[tokio::test]
async fn a_query_has_so_many_parts_at_most() {
    let out = cut(by_paragraphs(json!({"max_chunks": 1}))).await;
    assert_eq!(ids(&out), ["a", "b", "c", "d"]);
    assert!(
        out.warnings[0].contains("has 2 parts"),
        "{:?}",
        out.warnings
    );
    // A text that is one part is searched with as it is.
    let out = cut(json!({})).await;
    assert!(out.warnings.is_empty(), "{:?}", out.warnings);
    let list = json!({"feature_search": {"searches": [search(json!({"query_preprocessing":
        {"params": {"chunk_size": 5, "chunk_overlap": 5}}}))]}});
    let told = failure(list, json!({"query": "1,0"})).await;
    assert!(told.contains("less than chunk_size"), "{told}");
}

#[test]
fn parts_are_searched_by_the_feature_of_the_search() {
    let stage = json!({"stage_name": "s", "config": {"stage_id": "feature_search", "parameters":
        {"searches": [search(json!({"query_preprocessing": {"feature_uri": IMAGE, "params": {"fps": 1}}}))]}}});
    let stage = serde_json::from_value(stage).unwrap();
    let found = Plan::compile(&[stage], &IndexMap::new())
        .err()
        .unwrap_or_default();
    let mut told: Vec<(String, &str)> = found
        .into_iter()
        .map(|one| (one.loc[6..].join("."), one.r#type))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            (
                "query_preprocessing.feature_uri".to_owned(),
                "invalid_feature_uri"
            ),
            (
                "query_preprocessing.params.fps".to_owned(),
                "extra_forbidden"
            ),
        ]
    );
}
