//! Keys that nobody declared are ignored and named until 2 November 2026, and refused from then.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

/// 2026-11-02T00:00:00Z.
const THE_DAY: i64 = 1_793_577_600;

fn set_clock(server: &Server, at: i64) {
    let now = server.app.clock().now().timestamp();
    server.app.clock().advance(at - now);
}

fn body(name: &str) -> Value {
    json!({
        "bucket_name": name,
        "bucket_schema": {"properties": {"title": {"type": "string"}}},
        "colour": "red",
    })
}

fn collection(name: &str) -> Value {
    json!({
        "collection_name": name,
        "source": {"type": "direct_upsert", "font": "serif"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
    })
}

async fn post(server: &Server, namespace: &str, name: &str, request: &str) -> Answer {
    let request = server
        .request("POST", "/v1/buckets")
        .bearer_auth(&server.key)
        .header("x-namespace", namespace)
        .header("idempotency-key", request)
        .json(&body(name));
    Server::send(request).await
}

both! {
    async fn unknown_keys_are_named_before_the_day_and_refused_from_it(server) {
        set_clock(&server, THE_DAY - 3_600);
        let namespace = server.namespace("tolerant").await;
        let first = post(&server, &namespace, "one", "1").await;
        // A repetition gets the same answer, warnings included.
        assert_eq!(post(&server, &namespace, "one", "1").await.body, first.body);
        let made = first.ok();
        assert_eq!(made["bucket_name"], "one");
        let warnings = made["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{made:#}");
        for words in ["the key colour ", "refused from 2026-11-02", "accepted keys: bucket_name, "] {
            assert!(warnings[0].as_str().unwrap().contains(words), "{warnings:?}");
        }

        let inner = server.call_in(&namespace, "POST", "/v1/collections", collection("three")).await.ok();
        assert!(inner["warnings"][0].as_str().unwrap().contains("the key source.font "), "{inner:#}");

        let list = server.call_in(&namespace, "POST", "/v1/buckets/list", json!({"colour": "red"})).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 1);
        assert_eq!(list["warnings"][0]["resource"], "body", "{list:#}");
        assert_eq!((&list["warnings"][0]["id"], &list["warnings"][0]["reason"]), (&json!("colour"), &json!("unknown_key")));
        // What is wrong besides stays wrong, and who sends nothing unknown hears nothing.
        let wrong = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": 7, "colour": "red"})).await;
        wrong.invalid(&["body", "bucket_name"], "string_type");
        let plain = json!({"bucket_name": "plain", "bucket_schema": {"properties": {}}});
        let plain = server.call_in(&namespace, "POST", "/v1/buckets", plain).await.ok();
        assert_eq!(plain["warnings"], Value::Null);

        set_clock(&server, THE_DAY);
        let refused = post(&server, &namespace, "two", "2").await;
        let fault = refused.invalid(&["body", "colour"], "extra_forbidden");
        assert!(fault["msg"].as_str().unwrap().contains("accepted keys: bucket_name, "), "{fault:#}");
        let accepted = fault["ctx"]["accepted"].as_array().unwrap();
        assert!(accepted.contains(&json!("bucket_schema")), "{fault:#}");
        let refused = server.call_in(&namespace, "POST", "/v1/collections", collection("four")).await;
        refused.invalid(&["body", "source", "font"], "extra_forbidden");
        let list = server.call_in(&namespace, "POST", "/v1/buckets/list", json!({})).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 2);
    }

    async fn a_body_of_nothing_but_unknown_keys_costs_little(server) {
        let namespace = server.namespace("flooded").await;
        let keys: serde_json::Map<String, Value> = (0..300_000).map(|number| (format!("k{number}"), json!(1))).collect();
        for (day, status) in [(THE_DAY - 3_600, 200), (THE_DAY, 422)] {
            set_clock(&server, day);
            let start = std::time::Instant::now();
            let answer = server.call_in(&namespace, "POST", "/v1/buckets/list", Value::Object(keys.clone())).await;
            let told = match status {
                200 => &answer.body["warnings"],
                _ => &answer.body["detail"],
            };
            assert_eq!((answer.status, told.as_array().unwrap().len()), (status, 100));
            assert!(start.elapsed().as_secs() < 50, "{:?}", start.elapsed());
        }
    }
}
