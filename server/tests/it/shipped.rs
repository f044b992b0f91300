//! Weights that evaluations speak for: shipped to a search or a reranker, and held back where the retriever fell behind.

use serde_json::{Value, json};

use crate::{
    both,
    evaluations::evaluate,
    harness::Server,
    machines::{self, sorted, titles},
    stages::{execute, retriever, stage},
};

const DATASETS: &str = "/v1/retrievers/evaluations/datasets";
const THINGS: &str = "/v1/collections/things/documents";

/// Three things, by shape from the first to the last, by color the other way; the last is what is wanted.
async fn things(server: &Server) -> (String, Vec<String>) {
    let namespace = server.namespace("weights").await;
    let fields = json!([{"field": "a", "name": "shape", "dimensions": 3}, {"field": "b", "name": "color", "dimensions": 3}]);
    let collection = json!({"collection_name": "things", "source": {"type": "direct_upsert"}, "feature_extractor": {
        "feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": {"vector_fields": fields}}});
    server
        .call_in(&namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    let mut ids = Vec::new();
    for number in 0..3 {
        let (near, far) = (f64::from(number) * 0.4, f64::from(2 - number) * 0.4);
        let body = json!({"title": number.to_string(), "vectors": {"shape": [1.0, near, 0.0], "color": [1.0, far, 0.0]}});
        let made = server.call_in(&namespace, "POST", THINGS, body).await.ok();
        ids.push(made["document_id"].as_str().unwrap().to_owned());
    }
    let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [ids[2]]}]);
    let dataset = json!({"dataset_name": "wanted", "queries": queries});
    server
        .call_in(&namespace, "POST", DATASETS, dataset)
        .await
        .ok();
    (namespace, ids)
}

/// A retriever that searches by these features; answers what came of making it.
fn searching(name: &str, features: &[&str], learning: Option<&Value>) -> Value {
    let searches: Vec<Value> = features
        .iter()
        .map(|feature| json!({"feature_uri": feature, "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}}))
        .collect();
    let mut parameters = json!({"searches": searches, "final_top_k": 3});
    if let Some(config) = learning {
        parameters["fusion"] = json!("learned");
        parameters["learning_config"] = config.clone();
    }
    json!({"retriever_name": name, "collection_identifiers": ["things"], "input_schema": {},
        "stages": [stage("feature_search", parameters)]})
}

fn set(weights: Value, measured: &Value, baseline: &Value) -> Value {
    json!({"weight_set_id": "ws_1", "weights": weights, "evaluation_id": measured["evaluation_id"],
        "baseline_evaluation_id": baseline["evaluation_id"], "shipped_at": "2026-11-01T00:00:00Z"})
}

both! {
    async fn weights_are_shipped_by_an_evaluation_and_held_back_by_one(server) {
        let (namespace, ids) = things(&server).await;
        let make = async |body: Value| server.call_in(&namespace, "POST", "/v1/retrievers", body).await;
        let made = async |body: Value| make(body).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        let wanted = || json!({"dataset_name": "wanted"});
        let by_shape = made(searching("shape", &["shape"], None)).await;
        let by_color = made(searching("color", &["color"], None)).await;
        let worse = evaluate(&server, &namespace, &by_shape, wanted()).await;
        let better = evaluate(&server, &namespace, &by_color, wanted()).await;
        let both = |set: &Value| searching("shipped", &["shape", "color"], Some(&json!({"shipped_weight_set": set, "evaluation_dataset_id": "wanted"})));
        let good = set(json!({"search_1": 3}), &better, &worse);
        // What fell, what is not there, and lists that are none.
        let fell = make(both(&set(json!({"search_1": 3}), &worse, &better))).await;
        fell.invalid(&["body", "stages"], "value_error");
        let mut unknown = good.clone();
        unknown["baseline_evaluation_id"] = json!("eval_unknown");
        make(both(&unknown)).await.error(404, "NotFoundError");
        let lost = json!({"shipped_weight_set": good, "evaluation_dataset_id": "nowhere"});
        make(searching("lost", &["shape", "color"], Some(&lost))).await.error(404, "NotFoundError");
        let place = ["body", "stages", "0", "config", "parameters", "learning_config", "shipped_weight_set", "weights", "search_7"];
        make(both(&set(json!({"search_7": 3}), &better, &worse))).await.invalid(&place, "extra_forbidden");

        let shipped = made(both(&good)).await;
        let answer = execute(&server, &namespace, &shipped, json!({})).await;
        let context = &answer["learned_fusion_context"]["feature_search"];
        assert_eq!((&context["applied"], &context["weight_set_id"], &context["weights"]["search_1"]), (&json!(true), &json!("ws_1"), &json!(1.0)), "{context:#}");
        assert_eq!((&answer["documents"][0]["document_id"], &answer["warnings"]), (&json!(ids[2]), &json!([])));
        let first = evaluate(&server, &namespace, &shipped, wanted()).await;
        assert_eq!((&first["weight_set_id"], &first["verdict"]), (&json!("ws_1"), &Value::Null));
        // What was wanted is gone: the next evaluation falls, and the weights with it.
        server.call_in(&namespace, "DELETE", &format!("{THINGS}/{}", ids[2]), Value::Null).await.ok();
        let fallen = evaluate(&server, &namespace, &shipped, wanted()).await;
        assert_eq!(fallen["verdict"]["passed"], false, "{fallen:#}");
        let answer = execute(&server, &namespace, &shipped, json!({})).await;
        assert_eq!(answer["learned_fusion_context"]["feature_search"]["applied"], false, "{answer:#}");
        assert!(answer["warnings"][0].as_str().unwrap().contains("fell behind its baseline"), "{answer:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reranker_orders_by_the_weights_that_were_shipped_to_it() {
    let (server, _, namespace, films, _) = machines::server().await;
    let plain = retriever(&server, &namespace, &films, vec![sorted()]).await;
    let found = execute(&server, &namespace, &plain, json!({})).await;
    let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [found["documents"][0]["document_id"]]}]);
    let dataset = json!({"dataset_name": "wanted", "queries": queries});
    server
        .call_in(&namespace, "POST", DATASETS, dataset)
        .await
        .ok();
    let wanted = || json!({"dataset_name": "wanted"});
    let before = evaluate(&server, &namespace, &plain, wanted()).await;
    let after = evaluate(&server, &namespace, &plain, wanted()).await;
    let weights = set(json!({"rerank": 1, "decade": 3}), &after, &before);
    let rerank = stage(
        "rerank",
        json!({"inference_name": "tei", "learning_config": {"shipped_weight_set": weights}}),
    );
    let one = retriever(&server, &namespace, &films, vec![sorted(), rerank]).await;
    let answer = execute(&server, &namespace, &one, json!({"query": "vampire"})).await;
    // The model would have Nosferatu first; its word counts a quarter, the decade the rest.
    assert_eq!(titles(&answer), ["M", "Nosferatu", "Faust"], "{answer:#}");
    let score = |place: usize| {
        let scores = &answer["documents"][place]["scores"];
        scores["rerank"].as_f64().unwrap()
    };
    assert_eq!((score(0), score(1), score(2)), (0.75, 0.25, 0.0));
    let told = &answer["stage_statistics"]["stages"]["rerank"]["metadata"];
    assert_eq!(told["weight_set_id"], "ws_1");
}
