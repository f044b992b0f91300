//! Clusters, alerts and triggers in snapshots: put back as they were, and copied so that none acts by itself.

use serde_json::{Value, json};

use super::{restore, take};
use crate::{
    alerts, batches, both,
    clusters::{by_vectors, executed, make, things},
    harness::{Server, retriever},
    webhooks::Receiver,
};

/// How the last restoration of a snapshot went.
async fn report(server: &Server, snapshot: &str) -> Value {
    server.call("GET", snapshot, Value::Null).await.ok()["last_restore"].clone()
}

/// Restores into a new namespace; answers that.
async fn beside(server: &Server, snapshot: &str) -> String {
    let body = json!({"target_namespace_name": "beside"});
    let started = restore(server, snapshot, body).await;
    started["target_namespace_id"].as_str().unwrap().to_owned()
}

/// What a namespace lists of a kind, by its names.
async fn listed(server: &Server, namespace: &str, kind: &str, name: &str) -> Vec<(String, Value)> {
    let path = format!("/v1/{kind}/list");
    let found = server.call_in(namespace, "POST", &path, json!({})).await;
    let found = found.ok()["results"].as_array().unwrap().clone();
    let named = found
        .into_iter()
        .map(|one| (one[name].as_str().unwrap().to_owned(), one));
    let mut named: Vec<(String, Value)> = named.collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    named
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A trigger that asks a retriever.
fn asks(name: &str, retriever: &str, kind: &str, schedule: Value) -> Value {
    json!({
        "name": name, "trigger_type": kind, "schedule_config": schedule,
        "action_type": "retriever_execution", "action_config": {"retriever_id": retriever},
    })
}

both! {
    async fn clusters_come_back_with_what_they_found(server) {
        let namespace = things(&server, "gathered").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await.ok();
        let (turned, gone) = (
            make(&server, &namespace, by_vectors("turned", "kmeans", json!({"n_clusters": 3}))).await,
            make(&server, &namespace, by_vectors("gone", "kmeans", json!({"n_clusters": 3}))).await,
        );
        let (_, found) = executed(&server, &namespace, &gone, Value::Null).await;
        call("PATCH", "/v1/collections/things", json!({"cluster_applications": [{"cluster_id": gone}]})).await;
        let kept = listed(&server, &namespace, "triggers", "trigger_id").await;
        call("POST", &format!("/v1/triggers/{}/pause", kept[0].0), Value::Null).await;
        let snapshot = take(&server, &namespace, json!({})).await;
        let manifest = server.call("GET", &snapshot, Value::Null).await.ok()["manifest"].clone();
        assert_eq!((&manifest["mongo_collections"]["clusters"], &manifest["mongo_collections"]["triggers"]), (&json!(2), &json!(1)), "{manifest:#}");

        call("PATCH", &format!("/v1/clusters/{turned}"), json!({"cluster_name": "renamed", "description": "after"})).await;
        let (_, since) = executed(&server, &namespace, &turned, Value::Null).await;
        call("DELETE", &format!("/v1/clusters/{gone}"), Value::Null).await;
        server.files_become(&format!("{namespace}/clusters/{gone}"), 0).await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let told = call("GET", &format!("/v1/clusters/{turned}"), Value::Null).await;
        assert_eq!((&told["cluster_name"], &told["description"]), (&json!("turned"), &Value::Null), "{told:#}");
        // What was found since is found still.
        assert_eq!((&told["status"], &told["last_run_id"]), (&json!("COMPLETED"), &since["run_id"]), "{told:#}");
        let told = call("GET", &format!("/v1/clusters/{gone}"), Value::Null).await;
        assert_eq!((&told["status"], &told["last_run_id"], &told["num_clusters"]), (&json!("COMPLETED"), &found["run_id"], &json!(3)), "{told:#}");
        let groups = call("GET", &format!("/v1/clusters/{gone}/groups"), Value::Null).await;
        assert_eq!((&groups["total_groups"], &groups["total_documents"]), (&json!(3), &json!(30)), "{groups:#}");
        // So is who is in which.
        let path = format!("/v1/clusters/{gone}/executions/{}/export?format=json", text(&found["run_id"]));
        assert_eq!(call("GET", &path, Value::Null).await.as_array().unwrap().len(), 30);
        let collection = call("GET", "/v1/collections/things", Value::Null).await;
        assert_eq!(collection["cluster_applications"][0]["cluster_id"], gone.as_str(), "{collection:#}");
        // It was paused, and is.
        let mut living = listed(&server, &namespace, "triggers", "trigger_id").await;
        living.retain(|(_, one)| one["status"] != "disabled");
        assert_eq!((living.len(), &living[0].1["status"], &living[0].1["action_config"]["cluster_id"]), (1, &json!("paused"), &json!(gone)), "{living:#?}");
        let report = report(&server, &snapshot).await;
        assert_eq!((&report["complete"], &report["skipped_summary"]), (&json!(true), &json!([])), "{report:#}");

        let other = beside(&server, &snapshot).await;
        let copied = listed(&server, &other, "clusters", "cluster_name").await;
        assert_eq!((copied.len(), copied[0].0.as_str(), copied[1].0.as_str()), (2, "gone", "turned"));
        let things = listed(&server, &other, "collections", "collection_name").await[0].1.clone();
        let copy = &copied[0].1;
        assert_eq!((&copy["status"], &copy["input_collections"]), (&json!("PENDING"), &json!([things["collection_id"]])), "{copy:#}");
        assert_ne!(copy["cluster_id"], gone.as_str());
        assert_eq!(things["cluster_applications"][0]["cluster_id"], copy["cluster_id"], "{things:#}");
        let triggers = listed(&server, &other, "triggers", "trigger_id").await;
        assert_eq!((triggers.len(), &triggers[0].1["status"], &triggers[0].1["action_config"]["cluster_id"]), (1, &json!("paused"), &copy["cluster_id"]));
        let (_, run) = executed(&server, &other, text(&copy["cluster_id"]), Value::Null).await;
        assert_eq!((&run["status"], &run["num_points"]), (&json!("completed"), &json!(30)), "{run:#}");
    }

    async fn alerts_come_back_with_their_channels(server) {
        let (namespace, asked) = retriever(&server, "watched").await;
        let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
        let telling = |receiver: &Receiver, token: &str| json!({"channels": [
            {"channel_type": "webhook", "config": {"url": receiver.url, "headers": {"x-token": token}}},
        ]});
        let watch = |name: &str| json!({
            "name": name, "retriever_id": asked, "trigger_on": "no_results", "execution_mode": "on_demand",
            "notification_config": telling(&receiver, "open sesame"),
        });
        let turned = alerts::id(&alerts::make(&server, &namespace, watch("turned")).await);
        let gone = alerts::id(&alerts::make(&server, &namespace, watch("gone")).await);
        let snapshot = take(&server, &namespace, json!({})).await;
        let files = server.files(&format!("{namespace}/snapshots"));
        assert!(!files.is_empty());
        for file in files {
            let bytes = std::fs::read(server.app.config().data.join("blobs").join(&file)).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("sesame"), "{file} tells a secret");
        }

        let path = format!("/v1/alerts/{turned}");
        let changed = json!({"name": "renamed", "min_count": 7, "notification_config": telling(&elsewhere, "sesame, close")});
        server.call_in(&namespace, "PATCH", &path, changed).await.ok();
        server.call_in(&namespace, "DELETE", &format!("/v1/alerts/{gone}"), Value::Null).await.ok();
        // It takes its alerts along: they are off.
        server.call_in(&namespace, "DELETE", &format!("/v1/retrievers/{asked}"), Value::Null).await.ok();
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["enabled"], false);
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let report_in_place = report(&server, &snapshot).await;
        assert_eq!((&report_in_place["complete"], &report_in_place["skipped_summary"]), (&json!(true), &json!([])), "{report_in_place:#}");
        let found = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&found["name"], found.get("min_count"), &found["enabled"]), (&json!("turned"), None, &json!(true)), "{found:#}");
        for id in [&turned, &gone] {
            assert_eq!(alerts::execute(&server, &namespace, id).await["triggered"], true);
        }
        let told = receiver.wait(2).await;
        assert!(told.iter().all(|(headers, _)| headers["x-token"] == "open sesame"));
        elsewhere.wait(0).await;

        // Both namespaces would tell the same people.
        let other = beside(&server, &snapshot).await;
        let copied = listed(&server, &other, "alerts", "name").await;
        let retriever = listed(&server, &other, "retrievers", "retriever_id").await[0].0.clone();
        assert_eq!((copied.len(), copied[0].0.as_str(), copied[1].0.as_str()), (2, "gone", "turned"));
        for (_, one) in &copied {
            assert_eq!((&one["enabled"], &one["retriever_id"], &one["namespace_id"]), (&json!(false), &json!(retriever), &json!(other)), "{one:#}");
        }
        let report = report(&server, &snapshot).await;
        assert_eq!((&report["complete"], &report["skipped_summary"]), (&json!(true), &json!(["turned off in the new namespace: 2 alerts"])), "{report:#}");
        let copy = text(&copied[0].1["alert_id"]);
        assert_ne!(copy, gone);
        server.call_in(&other, "PATCH", &format!("/v1/alerts/{copy}"), json!({"enabled": true})).await.ok();
        assert_eq!(alerts::execute(&server, &other, copy).await["triggered"], true);
        assert_eq!(receiver.wait(3).await[2].0["x-token"], "open sesame");
    }

    async fn triggers_wait_for_moments_to_come(server) {
        let (namespace, bucket, _) = batches::library(&server, "passthrough_extractor", "text").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await.ok();
        let body = json!({"retriever_name": "finder", "collection_identifiers": ["documents"], "input_schema": {},
            "stages": [crate::stages::stage("attribute_filter", json!({"field": "title", "value": "Bread"}))]});
        let finder = text(&call("POST", "/v1/retrievers", body).await["retriever_id"]).to_owned();
        let picture = json!({"property": "text", "type": "text", "data": "Knead flour."});
        batches::object(&server, &namespace, &bucket, "Bread", picture).await;
        let batch = text(&batches::process(&server, &namespace, &bucket).await["batch_id"]).to_owned();
        let trigger = async |body: Value| format!("/v1/triggers/{}", text(&call("POST", "/v1/triggers", body).await["trigger_id"]));
        let hourly = json!({"interval_seconds": 3600});
        let (turned, stopped, rested, gone) = (
            trigger(asks("turned", &finder, "interval", hourly.clone())).await,
            trigger(asks("stopped", &finder, "interval", hourly.clone())).await,
            trigger(asks("rested", &finder, "interval", hourly)).await,
            trigger(asks("gone", &finder, "event", json!({"event_type": "object.created", "event_threshold": 2}))).await,
        );
        let yearly = json!({"interval_seconds": 31_536_000});
        trigger(json!({"name": "again", "trigger_type": "interval", "schedule_config": yearly,
            "action_type": "batch_rerun", "action_config": {"batch_id": batch}})).await;
        call("POST", &format!("{rested}/pause"), Value::Null).await;
        let snapshot = take(&server, &namespace, json!({})).await;

        call("PATCH", &turned, json!({"description": "after", "schedule_config": {"interval_seconds": 60}})).await;
        call("POST", &format!("{stopped}/pause"), Value::Null).await;
        call("POST", &format!("{rested}/resume"), Value::Null).await;
        assert_eq!(server.call_in(&namespace, "DELETE", &gone, Value::Null).await.status, 204);
        server.app.clock().hold();
        server.app.clock().advance(7200);
        let now = server.app.clock().now();
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let next = |one: &Value| text(&one["next_scheduled_at"]).parse::<chrono::DateTime<chrono::Utc>>().unwrap();
        let found = call("GET", &turned, Value::Null).await;
        assert_eq!((&found["schedule_config"]["interval_seconds"], &found["description"]), (&json!(3600), &Value::Null), "{found:#}");
        assert!(next(&found) >= now, "{found:#}");
        // Whom people paused stays paused; what was paused then is again.
        for path in [&stopped, &rested] {
            let found = call("GET", path, Value::Null).await;
            assert_eq!((&found["status"], found.get("next_scheduled_at")), (&json!("paused"), None), "{found:#}");
        }
        let found = call("GET", &gone, Value::Null).await;
        assert_eq!((&found["status"], &found["event_counter"], &found["schedule_config"]["event_threshold"]), (&json!("active"), &json!(0), &json!(2)), "{found:#}");
        let told = async || server.events("trigger.updated").await.len() + server.events("trigger.created").await.len();
        let before = told().await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        assert_eq!(told().await, before);

        let other = beside(&server, &snapshot).await;
        let copied = listed(&server, &other, "triggers", "name").await;
        let names: Vec<&str> = copied.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["gone", "rested", "stopped", "turned"]);
        let retriever = listed(&server, &other, "retrievers", "retriever_id").await[0].0.clone();
        for (_, one) in &copied {
            assert_eq!((&one["status"], one.get("next_scheduled_at"), &one["action_config"]["retriever_id"]), (&json!("paused"), None, &json!(retriever)), "{one:#}");
        }
        let report = report(&server, &snapshot).await;
        let left = "the trigger again: batches and executions are not in the new namespace";
        assert_eq!((&report["complete"], &report["skipped_summary"]), (&json!(false), &json!([left, "paused in the new namespace: 4 triggers"])), "{report:#}");
        let path = format!("/v1/triggers/{}", text(&copied[3].1["trigger_id"]));
        let resumed = server.call_in(&other, "POST", &format!("{path}/resume"), Value::Null).await.ok();
        assert_eq!(resumed["status"], "active");
        assert!(next(&resumed) > now, "{resumed:#}");
    }
}
