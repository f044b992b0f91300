//! Objects that are soft deleted and taken back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object, process},
    both,
    harness::Server,
};

async fn titles(server: &Server, namespace: &str, collection: &str) -> Vec<String> {
    let path = format!("/v1/collections/{collection}/documents/list");
    let list = server
        .call_in(namespace, "POST", &path, json!({"limit": 100}))
        .await
        .ok();
    let results = list["results"].as_array().unwrap().iter();
    let mut titles: Vec<String> = results
        .map(|one| one["title"].as_str().unwrap().to_owned())
        .collect();
    titles.sort();
    titles
}

async fn until_there(server: &Server, namespace: &str, collection: &str, expected: &[&str]) {
    let start = Instant::now();
    while titles(server, namespace, collection).await != expected {
        assert!(
            start.elapsed().as_secs() < 180,
            "the documents do not become {expected:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both! {
    async fn soft_deleted_objects_leave_every_collection_and_come_back(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = |words: &str| json!({"property": "text", "type": "text", "data": words});
        let bad = object(&server, &namespace, &bucket, "bad", text("words that nobody wants")).await;
        object(&server, &namespace, &bucket, "good", text("words that everybody wants")).await;
        process(&server, &namespace, &bucket).await;
        assert_eq!(titles(&server, &namespace, &collection).await, ["bad", "good"]);
        let path = format!("/v1/buckets/{bucket}/objects/bulk-soft-delete");
        let body = json!({"object_ids": [bad, "obj_unknown"], "reason": "a complaint"});
        let told = server.call_in(&namespace, "POST", &path, body.clone()).await.ok();
        assert_eq!(told, json!({"soft_deleted": 1, "requested": 2, "collections": 1}));
        until_there(&server, &namespace, &collection, &["good"]).await;
        // Its record and its file stay, with the reason.
        let of_object = format!("/v1/buckets/{bucket}/objects/{bad}");
        let shown = server.call_in(&namespace, "GET", &of_object, Value::Null).await.ok();
        assert_eq!((&shown["status"], &shown["error"]), (&json!("DEACTIVATED"), &json!("disabled by bulk_purge: a complaint")), "{shown:#}");
        assert_eq!(server.files(&format!("{namespace}/objects/{bad}")).len(), 1, "{:#?}", server.files(""));
        let events = server.events("object.updated").await;
        let payload = &events.last().unwrap()["payload"];
        assert_eq!((&payload["object_id"], &payload["lifecycle_state"], &payload["reason"]), (&json!(bad), &json!("disabled"), &json!("a complaint")));
        let logs = "/v1/organizations/audit/logs?action=document_bulk_soft_deleted";
        let record = server.call("GET", logs, Value::Null).await.ok()["results"][0].clone();
        assert_eq!((&record["resource_id"], &record["changes"]["object_ids"]), (&json!(bucket), &json!([bad])), "{record:#}");
        let again = server.call_in(&namespace, "POST", &path, body).await.ok();
        assert_eq!(again["soft_deleted"], 0);

        // Batches pass it over; a change of it does not take it back.
        server.call_in(&namespace, "PATCH", &of_object, json!({"title": "worse"})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((batch["object_ids"].as_array().unwrap().len(), &batch["status"]), (1, &json!("COMPLETED")), "{batch:#}");
        let batches = format!("/v1/buckets/{bucket}/batches");
        let named = server.call_in(&namespace, "POST", &batches, json!({"object_ids": [bad], "auto_submit": true})).await.ok();
        let named = ended(&server, &namespace, &format!("{batches}/{}", named["batch_id"].as_str().unwrap())).await;
        assert_eq!(named["status"], "FAILED");
        assert!(named["failed_objects"][0]["error"].as_str().unwrap().contains("disabled"), "{named:#}");
        assert_eq!(server.call_in(&namespace, "GET", &of_object, Value::Null).await.ok()["status"], "DEACTIVATED");
        let plan = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/reconciliation"), Value::Null).await.ok();
        assert_eq!((&plan["source_object_count"], &plan["delta"]), (&json!(1), &json!(0)), "{plan:#}");

        let back = json!({"object_ids": [bad], "reason": "unfounded", "lifecycle_state": "active", "source": "review"});
        assert_eq!(server.call_in(&namespace, "POST", &path, back).await.ok()["soft_deleted"], 1);
        let shown = server.call_in(&namespace, "GET", &of_object, Value::Null).await.ok();
        assert_eq!((&shown["status"], shown.get("error")), (&json!("DRAFT"), None), "{shown:#}");
        process(&server, &namespace, &bucket).await;
        assert_eq!(titles(&server, &namespace, &collection).await, ["good", "worse"]);

        let wrong = json!({"object_ids": [bad], "reason": "x", "lifecycle_state": "lost"});
        server.call_in(&namespace, "POST", &path, wrong).await.invalid(&["body", "lifecycle_state"], "enum");
        for body in [json!({"object_ids": [], "reason": "x"}), json!({"object_ids": [bad]}), json!({"object_ids": [bad], "reason": "x".repeat(501)})] {
            assert_eq!(server.call_in(&namespace, "POST", &path, body).await.status, 422);
        }
    }
}
