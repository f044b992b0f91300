//! Searches that take too long, texts that are too long, and weights that were found elsewhere.

use std::sync::Mutex;
use std::time::Duration;

use super::*;

fn searching(more: Value) -> Value {
    let mut parameters = json!({"searches": [search(json!({}))], "final_top_k": 2});
    let members = parameters.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    json!({"feature_search": parameters})
}

/// The words, their places and their kinds of what is wrong with a stage.
fn wrong(id: &str, parameters: Value) -> Vec<(String, &'static str)> {
    let stage = json!({"stage_name": "s", "config": {"stage_id": id, "parameters": parameters}});
    let stage = serde_json::from_value(stage).unwrap();
    let found = Plan::compile(&[stage], &IndexMap::new()).err();
    let found = found.unwrap_or_default().into_iter();
    found.map(|p| (p.loc[4..].join("."), p.r#type)).collect()
}

#[tokio::test]
async fn a_search_that_takes_too_long_is_asked_once_more_for_less() {
    let slow = async |more: Value| {
        let memory = Memory {
            delay: Duration::from_secs(60),
            fast_for: 3,
            ..store()
        };
        let run = run(memory, json!({"query": "1,0"}));
        plan(searching(more)).run(run).await.unwrap()
    };
    let out = slow(json!({"hard_timeout_ms": 20})).await;
    assert!(ids(&out).is_empty());
    assert_eq!(out.degraded[0].reason, "the search took longer than 20 ms");
    let out = slow(json!({"hard_timeout_ms": 20, "degrade_retry": true})).await;
    assert_eq!(ids(&out), ["a", "b"]);
    let told = &out.degraded[0].reason;
    assert!(told.contains("once more for 2 documents"), "{told}");
    // Still too many.
    let more = json!({"hard_timeout_ms": 20, "degrade_retry": true, "final_top_k": 4});
    let out = slow(more).await;
    assert!(ids(&out).is_empty() && out.degraded.len() == 1);
    // Without a limit nothing takes too long.
    let without = answer(
        searching(json!({"degrade_retry": true})),
        json!({"query": "1,0"}),
    )
    .await;
    assert_eq!(ids(&without), ["a", "b"]);
    assert!(without.degraded.is_empty() && without.warnings.is_empty());
}

#[tokio::test]
async fn a_text_longer_than_a_part_is_cut_by_itself() {
    let parts = async |more: Value, length: usize| {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut run = run(store(), json!({"query": "x".repeat(length)}));
        run.encoders = Arc::new(Plain {
            calls: calls.clone(),
        });
        let out = plan(searching(more)).run(run).await.unwrap();
        assert_eq!(ids(&out), ["a", "b"]);
        let calls = calls.lock().unwrap();
        calls.iter().map(Vec::len).sum::<usize>()
    };
    assert_eq!(parts(json!({}), 1000).await, 1);
    assert_eq!(parts(json!({}), 1500).await, 2);
    assert_eq!(parts(json!({"auto_preprocess": false}), 1500).await, 1);
    // What is said wins.
    let own = json!({"query_preprocessing": {"params": {"chunk_size": 500}}});
    assert_eq!(parts(own, 1500).await, 3);
}

fn set(weights: Value) -> Value {
    json!({"weight_set_id": "ws_1", "weights": weights, "evaluation_id": "eval_2", "baseline_evaluation_id": "eval_1",
        "shipped_at": "2026-11-01T00:00:00Z"})
}

#[tokio::test]
async fn shipped_weights_take_the_place_of_learned_ones() {
    let list = |learning: Value| {
        searching(
            json!({"fusion": "learned", "learning_config": learning, "final_top_k": 4,
            "searches": [search(json!({"lexical": true, "query": "red {{INPUT.query}}"}))]}),
        )
    };
    let weighed = async |weights: Value, fallen: &[&str]| {
        let config = json!({"shipped_weight_set": set(weights), "evaluation_dataset_id": "judged"});
        let mut run = run(store(), json!({"query": "boat"}));
        run.outside.fallen = fallen.iter().map(|name| (*name).to_owned()).collect();
        plan(list(config)).run(run).await.unwrap()
    };
    // By its vector `a` is first, by its words `b`.
    let out = weighed(json!({"search_0": 1}), &[]).await;
    assert_eq!(ids(&out)[0], "a");
    let told = &out.learned["feature_search"];
    assert_eq!(
        (&told["applied"], &told["weight_set_id"]),
        (&json!(true), &json!("ws_1"))
    );
    let out = weighed(json!({"search_0_lexical": 2.5}), &[]).await;
    assert_eq!(ids(&out)[0], "b");
    assert!(out.warnings.is_empty(), "{:?}", out.warnings);
    // Weights of a dataset over which the retriever fell behind are not used.
    let out = weighed(json!({"search_0": 1}), &["judged"]).await;
    assert_eq!(out.learned["feature_search"]["applied"], false);
    assert!(out.warnings[0].contains("fell behind its baseline"));
    // Acts that nobody does teach nothing, and the answer says so.
    for config in [
        json!({"reward_signal": "clik"}),
        json!({"reward_map": {"buy": 5}}),
    ] {
        let out = answer(list(config), json!({"query": "boat"})).await;
        let told = |one: &String| one.contains("is no type of interaction");
        assert_eq!(out.warnings.iter().filter(|one| told(one)).count(), 1);
    }
    // Without the fusion that learns the configuration says nothing.
    let other = searching(json!({"learning_config": {"min_interactions": 1}}));
    let out = answer(other, json!({"query": "1,0"})).await;
    assert!(out.warnings[0].contains("`learning_config`"));
}

#[tokio::test]
async fn what_any_way_of_a_query_finds_is_learned_from() {
    let searches = [search(json!({"lexical": true, "top_k": 1}))];
    let list = json!({"query_expand": {"num_expansions": 1,
        "feature_search_config": {"searches": searches, "fusion": "learned"}}});
    let out = answer(list, json!({"query": "car"})).await;
    let told = &out.statistics.stages["query_expand"].metadata;
    assert_eq!(told["expansions"], json!(["car blue"]));
    // By the query with `blue` the words find `a`, by the query alone they found `c`.
    let ranks = &out.learned["query_expand"]["ranks"];
    assert_eq!(ranks["c"], json!({"search_0_lexical": 0}), "{ranks}");
    assert_eq!(ranks["a"]["search_0"], 0, "{ranks}");
}

#[test]
fn weights_of_fields_and_ends_of_a_scale_are_what_can_be() {
    let weights = |weights: Value| {
        wrong(
            "mmr",
            json!({"diversity_fields": ["a.b"], "diversity_field_weights": weights}),
        )
    };
    assert!(weights(json!({"a.b": 2})).is_empty());
    assert!(weights(json!({"a.b": "{{INPUT.much}}"})).is_empty());
    let place = |field: &str| format!("diversity_field_weights.{field}");
    for wrong in [json!("2"), json!(-1), json!(1e300)] {
        let found = weights(json!({"a.b": wrong}));
        assert_eq!(found, [(place("a.b"), "out_of_range")], "{wrong}");
    }
    let found = weights(json!({"other": 1}));
    assert_eq!(found, [(place("other"), "extra_forbidden")]);
    let ends = |low: f64, high: f64| {
        wrong(
            "score_normalize",
            json!({"min_value": low, "max_value": high}),
        )
    };
    assert!(ends(0.0, 1.0).is_empty());
    for high in [0.5, 0.1] {
        assert_eq!(ends(0.5, high), [("min_value".to_owned(), "value_error")]);
    }
}

#[tokio::test]
async fn no_scale_turns_scores_round() {
    for (ends, score) in [
        (json!({"min_value": 2}), 0.0),
        (json!({"max_value": 0.05}), 1.0),
    ] {
        let mut list = searching(json!({}));
        list["score_normalize"] = ends;
        let out = answer(list, json!({"query": "1,0"})).await;
        let scores: Vec<f64> = out
            .documents
            .iter()
            .filter_map(|one| one["score"].as_f64())
            .collect();
        assert_eq!(scores, [score; 2]);
    }
}

#[test]
fn weights_that_cannot_be_used_are_refused() {
    let of = |set: Value| {
        let parameters = json!({"searches": [search(json!({}))], "fusion": "learned",
            "learning_config": {"shipped_weight_set": set}});
        wrong("feature_search", parameters)
    };
    let place = |end: &str| format!("learning_config.shipped_weight_set.{end}");
    assert!(of(set(json!({"search_0": 1, "search_0_lexical": 0}))).is_empty());
    for (weights, end, kind) in [
        (
            json!({"search_1": 1}),
            "weights.search_1",
            "extra_forbidden",
        ),
        (json!({"search_0": -1}), "weights.search_0", "out_of_range"),
        (
            json!({"search_0": "{{INPUT.x}}"}),
            "weights.search_0",
            "out_of_range",
        ),
        (json!({"search_0": 0}), "weights", "missing"),
        (json!({}), "weights", "missing"),
    ] {
        let found = of(set(weights.clone()));
        assert_eq!(found[0], (place(end), kind), "{weights}");
    }
    let reward = json!({"reward_map": {"click": "five"}});
    let parameters = json!({"searches": [search(json!({}))], "learning_config": reward});
    assert_eq!(
        wrong("feature_search", parameters),
        [("learning_config.reward_map.click".to_owned(), "float_type")]
    );
    let tiers = json!({"reference_collection_id": "texts", "match_tiers": ["exact", "psychic"]});
    assert_eq!(
        wrong("cross_compare", tiers),
        [("match_tiers.1".to_owned(), "enum")]
    );
    let mut late = set(json!({"search_0": 1}));
    late["shipped_at"] = json!("yesterday");
    assert_eq!(of(late), [(place("shipped_at"), "datetime_parsing")]);
    let mut less = set(json!({"search_0": 1}));
    less.as_object_mut().unwrap().shift_remove("evaluation_id");
    assert_eq!(of(less), [(place("evaluation_id"), "missing")]);
    // A reranker learns nothing that a dataset alone could hold back.
    let lone = json!({"learning_config": {"evaluation_dataset_id": "judged"}});
    assert_eq!(
        wrong("rerank", lone),
        [("learning_config.shipped_weight_set".to_owned(), "missing")]
    );
    let any = json!({"learning_config": {"shipped_weight_set": set(json!({"rerank": 1, "n": 2}))}});
    assert!(wrong("rerank", any).is_empty());
}

#[tokio::test]
async fn a_query_is_embedded_as_a_query() {
    let of = |task: Value| {
        let query = json!({"input_mode": "text", "value": "x", "embedding_task": task});
        let searches = json!({"searches": [{"feature_uri": FLAT, "query": query}]});
        let found = wrong("feature_search", searches);
        found.into_iter().map(|(_, kind)| kind).collect::<Vec<_>>()
    };
    for good in [
        json!("retrieval_query"),
        json!("classification"),
        json!(null),
        json!("{{INPUT.x}}"),
    ] {
        assert!(of(good.clone()).is_empty(), "{good}");
    }
    assert_eq!(of(json!("poetry")), ["enum"]);
    // Another task changes nothing, and the answer says so.
    for (task, told) in [("retrieval_query", 0), ("classification", 1)] {
        let query = json!({"input_mode": "text", "value": "1,0", "embedding_task": task});
        let list = json!({"feature_search": {"searches": [{"feature_uri": FLAT, "query": query}], "final_top_k": 2}});
        let out = answer(list, json!({})).await;
        assert_eq!(ids(&out), ["a", "b"]);
        assert_eq!(out.warnings.len(), told, "{:?}", out.warnings);
    }
}

#[tokio::test]
async fn rows_are_filtered_so_many_at_a_time() {
    for size in [1, 2, 1000] {
        let red = json!({"field": "color", "value": "red", "batch_size": size});
        let list = json!({"sort_attribute": {"field": "document_id", "direction": "asc"}, "sample": {"preserve_top_k": 10},
            "attribute_filter": red});
        let out = answer(list, json!({})).await;
        assert_eq!(ids(&out), ["b", "c", "pic1"], "{size}");
    }
}

#[tokio::test]
async fn stages_without_parameters_have_those_of_the_interface() {
    let list = json!({"limit": {"limit": 3}, "json_transform": {}, "aggregate": {}});
    let out = answer(list, json!({})).await;
    assert_eq!(out.documents[0]["count"], 3);
    assert!(out.warnings.is_empty(), "{:?}", out.warnings);
    let called = json!({"allowed_domains": ["a.example"]});
    assert!(wrong("api_call", called).is_empty());
    assert!(wrong("llm_filter", json!({})).is_empty());
    assert!(wrong("rerank", json!({"top_k": 100_000})).is_empty());
}
