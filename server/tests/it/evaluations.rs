//! Evaluations: datasets, runs over them, runs held against each other, datasets made of what people did.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

const DATASETS: &str = "/v1/retrievers/evaluations/datasets";

/// Five things along one direction, and two retrievers: one finds them from the first to the last, one the other way.
async fn world(server: &Server) -> (String, Vec<String>, [String; 2]) {
    let (namespace, _) = crate::harness::retriever(server, "judged").await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let body = json!({"title": format!("thing {number}"), "place": number, "vectors": {"own": [1.0, number, 0.0]}});
        let made = server
            .call_in(&namespace, "POST", "/v1/collections/things/documents", body)
            .await
            .ok();
        ids.push(made["document_id"].as_str().unwrap().to_owned());
    }
    let mut retrievers = Vec::new();
    for (name, direction) in [("forth", "asc"), ("back", "desc")] {
        let body = json!({
            "retriever_name": name, "collection_identifiers": ["things"],
            "input_schema": {"least": {"type": "integer", "required": true}},
            "stages": [
                {"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                    "conditions": {"AND": [{"field": "place", "operator": "gte", "value": "{{INPUT.least}}"}]}}}},
                {"stage_name": "order", "stage_type": "sort", "config": {"stage_id": "sort_attribute", "parameters": {
                    "field": "place", "direction": direction}}},
            ],
        });
        let made = server
            .call_in(&namespace, "POST", "/v1/retrievers", body)
            .await
            .ok();
        retrievers.push(made["retriever_id"].as_str().unwrap().to_owned());
    }
    (namespace, ids, retrievers.try_into().unwrap())
}

pub async fn evaluate(server: &Server, namespace: &str, retriever: &str, body: Value) -> Value {
    let path = format!("/v1/retrievers/{retriever}/evaluations");
    let started = server.call_in(namespace, "POST", &path, body).await;
    assert_eq!(started.status, 202, "{:#}", started.body);
    let Answer { body: started, .. } = started;
    assert_eq!(
        (&started["status"], &started["task_type"]),
        (&json!("pending"), &json!("retriever.evaluation"))
    );
    let task = server.task_end(started["task_id"].as_str().unwrap()).await;
    let id = started["evaluation_id"].as_str().unwrap();
    let record = server
        .call_in(namespace, "GET", &format!("{path}/{id}"), Value::Null)
        .await
        .ok();
    let done = if record["status"] == "completed" {
        "COMPLETED"
    } else {
        "FAILED"
    };
    assert_eq!(task["status"], done, "{task:#}");
    record
}

both! {
    async fn a_run_measures_and_is_held_against_another(server) {
        let (namespace, ids, [forth, back]) = world(&server).await;
        let queries = json!([
            {"query_id": "first", "query_input": {"least": 0}, "relevant_documents": [ids[0], ids[1]], "relevance_scores": {ids[0].clone(): 3}},
            {"query_id": "second", "query_input": {"least": 1}, "relevant_documents": [ids[2]]},
            {"query_id": "nothing is right", "query_input": {"least": 0}, "relevant_documents": []},
            {"query_id": "no number", "query_input": {"least": "many"}, "relevant_documents": [ids[0]]},
        ]);
        let dataset = json!({"dataset_name": "orders", "description": "by hand", "queries": queries});
        let made = server.call_in(&namespace, "POST", DATASETS, dataset.clone()).await.ok();
        assert_eq!((&made["query_count"], &made["queries"][0]["query_id"]), (&json!(4), &json!("first")));
        server.call_in(&namespace, "POST", DATASETS, dataset).await.error(409, "AlreadyExistsError");
        for identifier in ["orders", made["dataset_id"].as_str().unwrap()] {
            assert_eq!(server.call_in(&namespace, "GET", &format!("{DATASETS}/{identifier}"), Value::Null).await.ok(), made);
        }
        let list = server.call_in(&namespace, "GET", DATASETS, Value::Null).await.ok();
        assert_eq!((&list["total"], &list["datasets"][0]["queries"], &list["datasets"][0]["query_count"]), (&json!(1), &json!([]), &json!(4)));

        let config = json!({"k_values": [3, 1], "metrics": ["precision", "recall", "ndcg", "mrr"]});
        let good = evaluate(&server, &namespace, &forth, json!({"dataset_name": "orders", "evaluation_config": config})).await;
        assert_eq!(good["status"], "completed", "{good:#}");
        assert_eq!((&good["total_queries"], &good["evaluated_queries"], &good["skipped_queries"]), (&json!(4), &json!(2), &json!(2)));
        let outcomes: Vec<_> = good["query_results"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
        assert_eq!(outcomes, ["evaluated", "evaluated", "skipped", "failed"]);
        // The first finds both at once, the second its one in the second place.
        let figure = |record: &Value, k: &str, name: &str| record["metrics_by_k"][k][name].as_f64().unwrap();
        assert_eq!((figure(&good, "1", "precision"), figure(&good, "1", "recall")), (0.5, 0.25));
        assert_eq!((figure(&good, "3", "recall"), figure(&good, "3", "mrr")), (1.0, 0.75));
        assert!((figure(&good, "3", "ndcg") - (1.0 + 1.0 / 3_f64.log2()) / 2.0).abs() < 1e-12);
        assert_eq!(good["overall_metrics"], good["metrics_by_k"]["3"]);
        assert_eq!(good["verdict"], Value::Null, "there is nothing to hold it against");

        let against = json!({"dataset_name": "orders", "evaluation_config": config, "baseline_evaluation_id": good["evaluation_id"]});
        let bad = evaluate(&server, &namespace, &back, against).await;
        let verdict = &bad["verdict"];
        assert_eq!((&verdict["passed"], &verdict["primary_metric"], &verdict["compared_metrics"]), (&json!(false), &json!("ndcg@3"), &json!(8)), "{verdict:#}");
        assert!(verdict["per_metric"]["mrr@3"]["delta"].as_f64().unwrap() < -0.3);
        // The same retriever again: nothing fell.
        let again = evaluate(&server, &namespace, &forth, json!({"dataset_name": "orders", "evaluation_config": config})).await;
        assert_eq!((&again["baseline_evaluation_id"], &again["verdict"]["passed"]), (&good["evaluation_id"], &json!(true)));

        let path = format!("/v1/retrievers/{forth}/evaluations");
        let list = async |query: &str| server.call_in(&namespace, "GET", &format!("{path}{query}"), Value::Null).await;
        let all = list("?status=completed&dataset_name=orders").await.ok();
        assert_eq!((&all["total"], &all["evaluations"][0]["evaluation_id"], &all["evaluations"][0]["query_results"]), (&json!(2), &again["evaluation_id"], &json!([])));
        assert_eq!(list("?status=failed").await.ok()["total"], 0);
        assert_eq!(list("?page=2&page_size=1").await.ok()["evaluations"][0]["evaluation_id"], good["evaluation_id"]);
        list("?page=0").await.invalid(&["query", "page"], "range");
        server.call_in(&namespace, "GET", &format!("{path}/{}", bad["evaluation_id"].as_str().unwrap()), Value::Null).await.error(404, "NotFoundError");
        // What evaluations ask nobody asked.
        let history = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{forth}/executions/list"), json!({})).await.ok();
        assert_eq!(history["results"], json!([]));
    }

    async fn a_run_that_measures_nothing_fails_and_says_why(server) {
        let (namespace, ids, [forth, _]) = world(&server).await;
        let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [ids[0]]}]);
        server.call_in(&namespace, "POST", DATASETS, json!({"dataset_name": "broken", "queries": queries})).await.ok();
        let failed = evaluate(&server, &namespace, &forth, json!({"dataset_name": "broken"})).await;
        assert_eq!(failed["status"], "failed");
        assert!(failed["error_message"].as_str().unwrap().contains("no query could be measured"), "{failed:#}");
        let start = async |body: Value| server.call_in(&namespace, "POST", &format!("/v1/retrievers/{forth}/evaluations"), body).await;
        start(json!({"dataset_name": "unknown"})).await.error(404, "NotFoundError");
        start(json!({"dataset_name": "broken", "evaluation_config": {"k_values": [0]}})).await.invalid(&["body", "evaluation_config", "k_values"], "range");
        start(json!({"dataset_name": "broken", "evaluation_config": {"metrics": ["beauty"]}})).await.invalid(&["body", "evaluation_config", "metrics"], "enum");
        start(json!({"dataset_name": "broken", "baseline_evaluation_id": failed["evaluation_id"]})).await.invalid(&["body", "baseline_evaluation_id"], "value_error");
        start(json!({"dataset_name": "broken", "baseline_evaluation_id": "eval_unknown"})).await.error(404, "NotFoundError");
        let twice = json!([{"query_id": "q", "query_input": {}, "relevant_documents": []}, {"query_id": "q", "query_input": {}, "relevant_documents": []}]);
        server.call_in(&namespace, "POST", DATASETS, json!({"dataset_name": "twice", "queries": twice})).await.invalid(&["body", "queries", "1", "query_id"], "unique");
        server.call_in(&namespace, "POST", DATASETS, json!({"dataset_name": "none", "queries": []})).await.invalid(&["body", "queries"], "too_short");
    }

    async fn what_people_did_makes_a_dataset(server) {
        let (namespace, ids, [forth, _]) = world(&server).await;
        let asked = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{forth}/execute"), json!({"inputs": {"least": 2}})).await.ok();
        let act = |kinds: &[&str], document: &str, query: Value| {
            let mut act = json!({"feature_id": document, "interaction_type": kinds, "position": 0, "retriever_id": forth});
            act.as_object_mut().unwrap().extend(query.as_object().unwrap().clone());
            act
        };
        let snapshot = json!({"query_snapshot": {"inputs": {"least": 0}}});
        let linked = json!({"execution_id": asked["execution_id"]});
        let acts = json!({"interactions": [
            act(&["click"], &ids[0], snapshot.clone()), act(&["click"], &ids[0], snapshot.clone()), act(&["purchase"], &ids[1], snapshot.clone()),
            act(&["click"], &ids[3], snapshot.clone()), act(&["negative_feedback"], &ids[3], snapshot.clone()),
            act(&["long_view"], &ids[2], linked.clone()), act(&["impression"], &ids[4], linked),
            act(&["click"], &ids[4], json!({})),
        ]});
        let told = server.call_in(&namespace, "POST", "/v1/retrievers/interactions/batch", acts).await.ok();
        assert_eq!(told["created"], 8, "{told:#}");
        let generate = async |body: Value| server.call_in(&namespace, "POST", &format!("/v1/retrievers/{forth}/evaluations/generate-from-interactions"), body).await;
        let few = generate(json!({})).await.error(400, "BadRequestError");
        assert_eq!(few["error"]["code"], "too_few_interactions");
        // The history of executions is written behind the answers.
        let start = std::time::Instant::now();
        let made = loop {
            let made = generate(json!({"min_interactions": 1, "dataset_name": format!("used {}", start.elapsed().as_micros())})).await.ok();
            if made["query_count"] == 2 {
                break made;
            }
            assert!(start.elapsed().as_secs() < 180, "{made:#}");
        };
        let queries = &made["queries"];
        assert_eq!((&queries[0]["query_input"], &queries[0]["relevance_scores"]), (&json!({"least": 0}), &json!({ids[0].clone(): 1, ids[1].clone(): 3})));
        assert_eq!((&queries[1]["query_input"], &queries[1]["relevance_scores"]), (&json!({"least": 2}), &json!({ids[2].clone(): 2})));
        let bought = generate(json!({"min_interactions": 1, "positive_interaction_types": ["purchase"], "dataset_name": "bought"})).await.ok();
        assert_eq!(bought["queries"][0]["relevant_documents"], json!([ids[1]]));
        generate(json!({"positive_interaction_types": ["stare"]})).await.invalid(&["body", "positive_interaction_types"], "enum");
        let record = evaluate(&server, &namespace, &forth, json!({"dataset_name": made["dataset_name"]})).await;
        assert_eq!((&record["status"], &record["evaluated_queries"]), (&json!("completed"), &json!(2)));
    }

    async fn retrievers_are_asked_again_what_people_asked(server) {
        let (namespace, ids, [forth, back]) = world(&server).await;
        // Nine people found what they wanted in the last place, one in the first.
        let acts: Vec<Value> = (0..10).map(|person| {
            let wanted = if person == 0 { 0 } else { 4 };
            json!({"feature_id": ids[wanted], "interaction_type": ["click"], "position": wanted, "retriever_id": forth,
                "session_id": format!("s{person}"), "query_snapshot": {"inputs": {"least": 0}}})
        }).collect();
        server.call_in(&namespace, "POST", "/v1/retrievers/interactions/batch", json!({"interactions": acts})).await.ok();
        let path = "/v1/retrievers/benchmarks";
        let body = |members: Value| {
            let mut body = json!({"benchmark_name": "other way", "baseline_retriever_id": "forth", "candidate_retriever_ids": [back]});
            body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            body
        };
        let ended = async |made: Value| loop {
            let one = server.call_in(&namespace, "GET", &format!("{path}/{}", made["benchmark_id"].as_str().unwrap()), Value::Null).await.ok();
            if matches!(one["status"].as_str(), Some("completed" | "failed")) {
                return one;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        let made = server.call_in(&namespace, "POST", path, body(json!({}))).await.ok();
        assert_eq!((&made["status"], &made["baseline_retriever_id"], &made["session_count"]), (&json!("pending"), &json!(forth), &json!(1000)));
        let done = ended(made).await;
        assert_eq!((&done["status"], &done["session_count"]), (&json!("completed"), &json!(10)), "{done:#}");
        let [was, is] = [0, 1].map(|place| &done["results"][place]["metrics"]);
        assert_eq!((&was["mean_rank_clicked"], &is["mean_rank_clicked"]), (&json!(4.6), &json!(1.4)));
        assert_eq!((&is["items_promoted"], &is["items_demoted"], &is["sessions_improved"], &was["sessions_neutral"]), (&json!(9), &json!(1), &json!(9), &json!(10)));
        assert!(done["results"][1]["latency"]["p50_ms"].as_f64().unwrap() > 0.0 && done["results"][1]["latency"]["stage_latencies"]["order"].is_f64());
        assert_ne!(done["results"][0]["pipeline_hash"], done["results"][1]["pipeline_hash"]);
        let comparison = &done["comparison"]["comparisons"][0];
        // Nine of ten rise from 1 / log2(6) to 1, one falls the other way.
        let rise = 0.8 * (1.0 - 1.0 / 6_f64.log2());
        assert!((comparison["ndcg_delta"]["10"].as_f64().unwrap() - rise).abs() < 1e-9, "{comparison:#}");
        assert!(comparison["p_value"].as_f64().unwrap() < 0.05 && comparison["confidence_interval"][0].as_f64().unwrap() > 0.0, "{comparison:#}");
        assert!(done["comparison"]["recommendation"].as_str().unwrap().starts_with(&back));

        let list = server.call_in(&namespace, "GET", &format!("{path}?retriever_id=forth&status=completed"), Value::Null).await.ok();
        assert_eq!((&list["total"], &list["benchmarks"][0]["benchmark_id"]), (&json!(1), &done["benchmark_id"]));
        let list = server.call_in(&namespace, "GET", &format!("{path}?retriever_id={back}&status=completed"), Value::Null).await.ok();
        assert_eq!((&list["total"], &list["benchmarks"][0]["benchmark_id"]), (&json!(1), &done["benchmark_id"]));
        let list = server.call_in(&namespace, "GET", &format!("{path}?retriever_id={back}&status=failed"), Value::Null).await.ok();
        assert_eq!((&list["total"], &list["benchmarks"]), (&json!(0), &json!([])));
        let none = json!({"session_filter": {"interaction_types": ["purchase"], "time_range": {"end": "2020-01-01T00:00:00Z"}}});
        let failed = ended(server.call_in(&namespace, "POST", path, body(none)).await.ok()).await;
        assert!(failed["status"] == "failed" && failed["error_message"].as_str().unwrap().contains("no interactions"), "{failed:#}");
        let refused = async |members: Value| server.call_in(&namespace, "POST", path, body(members)).await;
        refused(json!({"candidate_retriever_ids": ["forth"]})).await.invalid(&["body", "candidate_retriever_ids"], "unique");
        refused(json!({"candidate_retriever_ids": ["unknown"]})).await.error(404, "NotFoundError");
        refused(json!({"session_filter": {"sample_strategy": "best"}})).await.invalid(&["body", "session_filter", "sample_strategy"], "enum");
        for weight in [1e300, -1.0] {
            let weights = json!({"session_filter": {"interaction_weights": {"weights": {"click": weight}}}});
            refused(weights).await.invalid(&["body", "session_filter", "interaction_weights"], "range");
        }
        let one = format!("{path}/{}", done["benchmark_id"].as_str().unwrap());
        assert_eq!(server.call_in(&namespace, "DELETE", &one, Value::Null).await.status, 204);
        server.call_in(&namespace, "GET", &one, Value::Null).await.error(404, "NotFoundError");
    }

    async fn sessions_are_told_apart_by_the_nodes_of_their_documents(server) {
        let (namespace, ids, [forth, back]) = world(&server).await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await.ok();
        let refs = |id: &String| json!([{"collection_id": "things", "document_id": id}]);
        let made = call("/v1/taxonomies/from-documents", json!({"taxonomy_name": "places", "node_label": "First", "documents": refs(&ids[0])})).await;
        let more = format!("/v1/taxonomies/{}/nodes/from-documents", made["taxonomy_id"].as_str().unwrap());
        call(&more, json!({"node_label": "Last", "documents": refs(&ids[4])})).await;
        let task = call("/v1/collections/things/apply-taxonomy", json!({"taxonomy_id": "places"})).await;
        server.task_end(task["task_id"].as_str().unwrap()).await;
        let node = async |id: &String| {
            let path = format!("/v1/collections/things/documents/{id}");
            let one = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            let lineage = one["_internal"]["processing"]["taxonomy_lineage"].as_array().unwrap();
            assert_eq!(lineage.len(), 1, "{one:#}");
            lineage[0]["node_id"].as_str().unwrap().to_owned()
        };
        let (first, last) = (node(&ids[0]).await, node(&ids[4]).await);
        assert_ne!(first, last);
        // One person wanted what stands first, two what stands last.
        let acts: Vec<Value> = [0, 4, 4].iter().enumerate().map(|(person, wanted)| {
            json!({"feature_id": ids[*wanted], "interaction_type": ["click"], "position": wanted, "retriever_id": forth,
                "session_id": format!("s{person}"), "query_snapshot": {"inputs": {"least": 0}}})
        }).collect();
        call("/v1/retrievers/interactions/batch", json!({"interactions": acts})).await;
        let path = "/v1/retrievers/benchmarks";
        let ended = async |filter: Value| {
            let body = json!({"benchmark_name": "by node", "baseline_retriever_id": forth, "candidate_retriever_ids": [back], "session_filter": filter});
            let made = call(path, body).await;
            let path = format!("{path}/{}", made["benchmark_id"].as_str().unwrap());
            loop {
                let one = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
                if matches!(one["status"].as_str(), Some("completed" | "failed")) {
                    return one;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let all = ended(json!({})).await;
        let apart = &all["results"][1]["taxonomy_deltas"];
        assert_eq!((&all["session_count"], &apart[&first]["mean_rank_clicked"], &apart[&last]["mean_rank_clicked"]), (&json!(3), &json!(5.0), &json!(1.0)), "{all:#}");
        let comparison = &all["comparison"]["comparisons"][0];
        assert_eq!((&comparison["taxonomy_wins"], &comparison["taxonomy_losses"]), (&json!([last]), &json!([first])));
        let some = ended(json!({"taxonomy_node_ids": [last]})).await;
        assert_eq!((&some["session_count"], &some["session_filter"]["taxonomy_node_ids"]), (&json!(2), &json!([last])));
        assert_eq!(some["results"][0]["taxonomy_deltas"].as_object().unwrap().len(), 1, "{some:#}");
        let none = ended(json!({"taxonomy_node_ids": ["nowhere"]})).await;
        assert_eq!(none["status"], "failed", "{none:#}");
    }

    async fn predictions_are_measured_where_they_stand(server) {
        let score = async |body: Value| server.call("POST", "/v1/evaluations/score", body).await;
        let one = score(json!({"predicted": ["a", "b", "c"], "ground_truth": ["b", "x"]})).await.ok();
        assert_eq!((&one["count"], &one["metrics"]), (&json!(1), &json!(["precision", "recall", "f1", "map", "ndcg", "mrr"])));
        assert_eq!((&one["per_item"][0]["mrr"], &one["per_item"][0]["recall"]), (&json!(0.5), &json!(0.5)));
        let many = score(json!({"items": [{"predicted": ["a"], "ground_truth": ["a"]}, {"predicted": ["a"], "ground_truth": ["b"]}], "metrics": ["ndcg"], "k": 1})).await.ok();
        assert_eq!((&many["aggregate"], &many["k"]), (&json!({"ndcg": 0.5}), &json!(1)));
        score(json!({})).await.invalid(&["body", "items"], "missing");
        score(json!({"predicted": ["a"]})).await.invalid(&["body", "items"], "missing");
        score(json!({"predicted": ["a"], "ground_truth": ["a"], "metrics": ["luck"]})).await.invalid(&["body", "metrics"], "enum");
        let found = server.call("GET", "/v1/evaluations", Value::Null).await.ok();
        assert_eq!(found["endpoints"]["score"], "POST /v1/evaluations/score");
    }
}
