//! Every condition of the server in a state in which it holds. What they are about is made through the API; the clock only moves
//! when a test moves it.

use std::time::{Duration, Instant};

use axum::{Json, Router, http::StatusCode};
use serde_json::{Value, json};

use super::{execute, make, write};
use crate::{
    batches::{ended, library, object},
    billing::amid_a_month,
    both,
    evaluations::evaluate,
    harness::{Server, retriever},
    supervising::submit,
};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// Makes an alert on a condition, called as that, which looks when it is asked to.
async fn asked(server: &Server, namespace: &str, kind: &str, params: Value) {
    let alert = json!({
        "name": kind, "source": "system", "system_condition": {"type": kind, "params": params}, "execution_mode": "on_demand",
        "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
    });
    make(server, namespace, alert).await;
}

/// Whether a condition holds, and that it is told.
async fn holds(server: &Server, namespace: &str, kind: &str) -> bool {
    let found = execute(server, namespace, kind).await;
    let holds = found["match_count"].as_i64().unwrap() > 0;
    assert_eq!(found["triggered"], holds, "{kind}: {found:#}");
    holds
}

/// Waits until a condition holds: what was searched is written down a little later.
async fn comes_to_hold(server: &Server, namespace: &str, kind: &str) {
    let start = Instant::now();
    while !holds(server, namespace, kind).await {
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "{kind} does not hold"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn none_holds(server: &Server, namespace: &str, kinds: &[&str]) {
    for kind in kinds {
        assert!(!holds(server, namespace, kind).await, "{kind} holds");
    }
}

async fn search(server: &Server, namespace: &str, retriever: &str, times: usize) {
    let path = format!("/v1/retrievers/{retriever}/execute");
    for _ in 0..times {
        let body = json!({"inputs": {}, "skip_cache": true});
        server.call_in(namespace, "POST", &path, body).await.ok();
    }
}

/// The endpoint of a model whose quota is used up.
async fn used_up() -> (StatusCode, Json<Value>) {
    let said = json!({"error": {"message": "not now", "code": "insufficient_quota"}});
    (StatusCode::TOO_MANY_REQUESTS, Json(said))
}

/// The server again, with a model for texts at an endpoint that refuses.
async fn with_refusing_model(server: Server) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(used_up);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let endpoint =
        json!({"output": "all_minilm_l6_v2_v1", "protocol": "tei", "url": url, "dims": 384});
    server
        .restart_with(|config| {
            config.models.endpoints = vec![serde_json::from_value(endpoint).unwrap()];
        })
        .await
}

/// A bucket of one text whose batch was submitted; answers the namespace and the batch's path.
async fn submitted(server: &Server, extractor: &str) -> (String, String) {
    let (namespace, bucket, _) = library(server, extractor, "text").await;
    let text = json!({"property": "text", "type": "text", "data": "a few words"});
    object(server, &namespace, &bucket, "t", text).await;
    let path = submit(server, &namespace, &bucket).await;
    (namespace, path)
}

both! {
    async fn conditions_of_collections_hold(server) {
        server.app.clock().hold();
        let (namespace, _) = retriever(&server, "collections").await;
        for kind in ["collection_empty", "collection_drift", "collection_stale"] {
            asked(&server, &namespace, kind, json!({})).await;
        }
        assert!(holds(&server, &namespace, "collection_empty").await);
        none_holds(&server, &namespace, &["collection_drift", "collection_stale"]).await;
        write(&server, &namespace, "whale").await;
        // The first look at vectors is what the next one is held against.
        none_holds(&server, &namespace, &["collection_empty", "collection_drift"]).await;
        for title in ["rose", "tulip", "daisy"] {
            let body = json!({"title": title, "vectors": {"own": [0.0, 1.0, 0.0]}});
            server.call_in(&namespace, "POST", "/v1/collections/things/documents", body).await.ok();
        }
        assert!(holds(&server, &namespace, "collection_drift").await);
        none_holds(&server, &namespace, &["collection_drift"]).await;
        server.app.clock().advance(25 * HOUR);
        assert!(holds(&server, &namespace, "collection_stale").await);
    }

    async fn what_comes_through_the_api_keeps_a_collection_from_being_stale(server) {
        server.app.clock().hold();
        let (namespace, _) = retriever(&server, "fed").await;
        asked(&server, &namespace, "collection_stale", json!({})).await;
        let stale = async || holds(&server, &namespace, "collection_stale").await;
        for _ in 0..3 {
            server.app.clock().advance(20 * HOUR);
            write(&server, &namespace, "whale").await;
            assert!(!stale().await);
        }
        server.app.clock().advance(20 * HOUR);
        // An alert that was made a moment ago remembers nothing, and asks the documents.
        let late = json!({
            "name": "late", "source": "system", "system_condition": {"type": "collection_stale"}, "execution_mode": "on_demand",
            "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
        });
        make(&server, &namespace, late).await;
        none_holds(&server, &namespace, &["late", "collection_stale"]).await;
        server.app.clock().advance(5 * HOUR);
        assert!(holds(&server, &namespace, "late").await);
        assert!(stale().await);
        // A document that is only changed is nothing new; another one is.
        let document = write(&server, &namespace, "seal").await;
        assert!(!stale().await);
        server.app.clock().advance(25 * HOUR);
        let path = format!("/v1/collections/things/documents/{document}");
        server.call_in(&namespace, "PATCH", &path, json!({"title": "a seal"})).await.ok();
        assert!(stale().await);
        assert!(holds(&server, &namespace, "late").await);
    }

    async fn what_is_sent_again_under_its_own_id_is_new(server) {
        server.app.clock().hold();
        let namespace = "sent-again";
        let body = json!({"namespace_id": namespace, "vector_configs": [{"name": "plot", "dimension": 3}]});
        server.call("POST", "/v1/namespaces/standalone", body).await.ok();
        let send = async |title: &str| {
            let film = json!({"document_id": "one", "vectors": {"plot": [1, 0, 0]}, "payload": {"title": title}});
            let path = format!("/v1/namespaces/{namespace}/documents/upsert");
            server.call("POST", &path, json!({"documents": [film]})).await.ok();
        };
        send("first").await;
        asked(&server, namespace, "collection_stale", json!({})).await;
        server.app.clock().advance(25 * HOUR);
        assert!(holds(&server, namespace, "collection_stale").await);
        send("second").await;
        none_holds(&server, namespace, &["collection_stale"]).await;
        server.app.clock().advance(25 * HOUR);
        assert!(holds(&server, namespace, "collection_stale").await);
    }

    async fn conditions_of_searches_hold(server) {
        amid_a_month(&server);
        server.app.clock().hold();
        let (namespace, retriever) = retriever(&server, "searched").await;
        let kinds = ["retriever_no_results", "retriever_latency", "retriever_no_interactions", "retriever_alignment_regression", "budget_threshold"];
        for kind in kinds {
            // As if it had been a million times faster: how long a search takes is no matter of a test.
            let params = match kind {
                "retriever_latency" => json!({"latency_multiplier": 0.000_001, "retriever_id": retriever}),
                _ => json!({}),
            };
            asked(&server, &namespace, kind, params).await;
        }
        none_holds(&server, &namespace, &kinds).await;
        // Two days ago each of twenty searches was followed by a click.
        search(&server, &namespace, &retriever, 20).await;
        let click = json!({"feature_id": "doc_1", "interaction_type": ["click"], "position": 0, "retriever_id": retriever});
        let clicks = json!({"interactions": vec![click; 20]});
        let made = server.call_in(&namespace, "POST", "/v1/retrievers/interactions/batch", clicks).await.ok();
        assert_eq!(made["created"], 20, "{made:#}");
        none_holds(&server, &namespace, &["retriever_latency", "retriever_no_interactions", "retriever_alignment_regression", "budget_threshold"]).await;
        server.app.clock().advance(46 * HOUR);
        search(&server, &namespace, &retriever, 10).await;
        server.app.clock().advance(2 * HOUR);
        search(&server, &namespace, &retriever, 20).await;
        let limits = json!({"spend_limits": {"monthly_usd": 0.000_001}});
        server.call("PATCH", "/v1/organizations", limits).await.ok();
        for kind in kinds {
            comes_to_hold(&server, &namespace, kind).await;
        }
    }

    async fn an_evaluation_that_fell_holds(server) {
        server.app.clock().hold();
        let (namespace, retriever) = retriever(&server, "judged").await;
        let document = write(&server, &namespace, "whale").await;
        asked(&server, &namespace, "retriever_accuracy", json!({})).await;
        let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [document]}]);
        let dataset = json!({"dataset_name": "whales", "queries": queries});
        server.call_in(&namespace, "POST", "/v1/retrievers/evaluations/datasets", dataset).await.ok();
        let run = async || {
            let record = evaluate(&server, &namespace, &retriever, json!({"dataset_name": "whales"})).await;
            assert_eq!(record["status"], "completed", "{record:#}");
            server.app.clock().advance(MINUTE);
        };
        run().await;
        run().await;
        none_holds(&server, &namespace, &["retriever_accuracy"]).await;
        // The retriever finds what has a title.
        let path = format!("/v1/collections/things/documents/{document}");
        server.call_in(&namespace, "PUT", &path, json!({"name": "whale"})).await.ok();
        run().await;
        assert!(holds(&server, &namespace, "retriever_accuracy").await);
    }

    async fn conditions_of_what_fails_hold(server) {
        let server = with_refusing_model(server).await;
        server.app.clock().hold();
        let before = server.namespace("before").await;
        let kinds = ["batch_failed", "batch_error_rate", "dlq_growth", "provider_quota_exhausted"];
        asked(&server, &before, "dlq_growth", json!({})).await;
        none_holds(&server, &before, &["dlq_growth"]).await;
        let (namespace, path) = submitted(&server, "text_extractor").await;
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "FAILED", "{batch:#}");
        // What happens in the very moment of a look is of the next one.
        server.app.clock().advance(MINUTE);
        for kind in kinds {
            asked(&server, &namespace, kind, json!({})).await;
            assert!(holds(&server, &namespace, kind).await, "{kind}: {batch:#}");
        }
        // It is of the organization, wherever one asks.
        assert!(holds(&server, &before, "dlq_growth").await);
        server.app.clock().advance(11 * MINUTE);
        none_holds(&server, &namespace, &["batch_failed"]).await;
        server.app.clock().advance(HOUR);
        none_holds(&server, &namespace, &kinds).await;
    }

    async fn conditions_of_what_waits_hold(server) {
        // Batches are admitted here, and nobody works on them.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (namespace, path) = submitted(&server, "passthrough_extractor").await;
        let start = Instant::now();
        while server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["status"] != "PROCESSING" {
            assert!(start.elapsed() < Duration::from_secs(180), "the batch is not admitted");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        server.app.clock().hold();
        let kinds = ["batch_stalled", "ingest_stalled", "task_queue_degraded"];
        for kind in kinds {
            // Less than after which the server itself looks after what stands still.
            asked(&server, &namespace, kind, json!({"stall_minutes": 10})).await;
        }
        none_holds(&server, &namespace, &kinds).await;
        server.app.clock().advance(11 * MINUTE);
        for kind in kinds {
            assert!(holds(&server, &namespace, kind).await, "{kind}");
        }
    }
}
