//! Alerts on the state of the server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{execute, fired, id, make, results};
use crate::{
    both,
    harness::{Server, retriever},
};

/// An alert on one condition, called as that.
fn condition(kind: &str, params: Value) -> Value {
    json!({
        "name": kind, "source": "system", "system_condition": {"type": kind, "params": params},
        "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
    })
}

async fn what_conditions_cannot_have_is_refused(server: &Server, namespace: &str, retriever: &str) {
    let bad = condition("batch_stalled", json!({"mood": 1}));
    server
        .call_in(namespace, "POST", "/v1/alerts", bad)
        .await
        .invalid(
            &["body", "system_condition", "params", "mood"],
            "value_error",
        );
    // Nor a parameter that another condition has, or a collection that would never hold it.
    let bad = condition("batch_failed", json!({"budget_fraction": 0.5}));
    server
        .call_in(namespace, "POST", "/v1/alerts", bad)
        .await
        .invalid(
            &["body", "system_condition", "params", "budget_fraction"],
            "value_error",
        );
    // Those of the interface may be sent with any.
    let mut all = condition(
        "batch_failed",
        json!({"stall_minutes": 5, "latency_multiplier": 2, "error_rate_threshold": 0.1, "drop_fraction": 0.5}),
    );
    all["name"] = json!("all of them");
    make(server, namespace, all).await;
    let elsewhere = server.namespace("elsewhere").await;
    for (kind, params) in [
        ("collection_stale", json!({"collection_id": "col_none"})),
        ("retriever_latency", json!({"retriever_id": "ret_none"})),
    ] {
        let mut bad = condition(kind, params);
        bad["name"] = json!("bad");
        server
            .call_in(namespace, "POST", "/v1/alerts", bad.clone())
            .await
            .error(404, "NotFoundError");
        server
            .call("POST", "/v1/organizations/alerts", bad)
            .await
            .error(404, "NotFoundError");
    }
    let mut of_one = condition("retriever_latency", json!({"retriever_id": retriever}));
    of_one["name"] = json!("of one");
    server
        .call_in(&elsewhere, "POST", "/v1/alerts", of_one.clone())
        .await
        .error(404, "NotFoundError");
    server
        .call("POST", "/v1/organizations/alerts", of_one.clone())
        .await
        .ok();
    make(server, namespace, of_one).await;
}

both! {
    async fn what_a_condition_holds_for_besides_is_news(server) {
        let (namespace, _) = retriever(&server, "besides").await;
        let empty = make(&server, &namespace, json!({
            "name": "empty", "source": "system", "system_condition": {"type": "collection_empty"},
            "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
        })).await;
        server.app.clock().advance(301);
        fired(&server, 1).await;
        let collection = json!({
            "collection_name": "more", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        server.app.clock().advance(301);
        let told = fired(&server, 2).await;
        assert!(told[1]["payload"]["text"].as_str().unwrap().contains("collection more is empty"), "{told:?}");
        // Both are known now.
        server.app.clock().advance(301);
        results(&server, &namespace, &id(&empty), |one| one["triggered"] == false).await;
        assert_eq!(fired(&server, 2).await.len(), 2);
    }

    async fn the_state_of_the_server_is_watched(server) {
        let (namespace, nothing) = retriever(&server, "state").await;
        let empty = make(&server, &namespace, condition("collection_empty", json!({}))).await;
        assert_eq!(empty["execution_mode"], "scheduled");
        for kind in [
            "batch_failed", "batch_stalled", "retriever_latency", "retriever_no_results", "batch_error_rate", "collection_drift",
            "task_queue_degraded", "dlq_growth", "provider_quota_exhausted", "collection_stale", "budget_threshold", "ingest_stalled",
            "retriever_no_interactions", "retriever_accuracy", "retriever_alignment_regression",
        ] {
            let made = make(&server, &namespace, condition(kind, json!({}))).await;
            let found = execute(&server, &namespace, &id(&made)).await;
            assert_eq!(found["triggered"], false, "{kind}: {found}");
        }
        server.app.clock().advance(301);
        let id = id(&empty);
        results(&server, &namespace, &id, |one| one["triggered"] == true).await;
        let told = server.events("alert.triggered").await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0]["payload"]["text"].as_str().unwrap().contains("collection things is empty"), "{told:?}");

        // Ten searches that find nothing are what the alert waits for.
        for _ in 0..10 {
            let path = format!("/v1/retrievers/{nothing}/execute");
            server.call_in(&namespace, "POST", &path, json!({"inputs": {}})).await.ok();
        }
        let start = Instant::now();
        while execute(&server, &namespace, "retriever_no_results").await["triggered"] != true {
            assert!(start.elapsed() < Duration::from_secs(180));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        what_conditions_cannot_have_is_refused(&server, &namespace, &nothing).await;
    }
}
