//! Migrations: checked before they start, watched while they run, and what they leave.

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::{Server, other_organization},
};

const MIGRATIONS: &str = "/v1/namespaces/migrations";

fn copy(source: &str, target: &str) -> Value {
    json!({"migration_type": "copy", "source_namespace_id": source, "target_namespace_name": target})
}

both! {
    async fn a_namespace_is_migrated_under_watch(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "A slow river of ice."});
        object(&server, &namespace, &bucket, "Glacier", text).await;
        process(&server, &namespace, &bucket).await;
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"ttl_seconds": 86_400})).await.ok();
        let checked = server.call("POST", &format!("{MIGRATIONS}/validate"), json!({"config": copy(&namespace, "moved")})).await.ok();
        let result = &checked["validation_result"];
        assert_eq!((&result["valid"], &result["estimated_resources"]["documents"]), (&json!(true), &json!(1)), "{result:#}");
        let order = checked["dependency_graph"]["execution_order"].as_array().unwrap();
        assert_eq!(order[0..2], [json!(bucket), json!(collection)]);

        let made = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "moved")})).await.ok();
        assert_eq!(made["status"], "draft");
        let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
        let started = server.call("POST", &format!("{path}/start"), json!({})).await.ok();
        let task = server.task_end(started["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let done = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&done["status"], &done["progress"]["overall_progress_percent"]), (&json!("completed"), &json!(100.0)), "{done:#}");
        assert_eq!(done["progress"]["resources"][0]["status"], "completed");
        let target = done["additional_data"]["target_namespace_id"].as_str().unwrap();
        let moved = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        assert_eq!(moved["expires_at"], Value::Null, "{moved:#}");
        let collections = server.call_in(target, "POST", "/v1/collections/list", json!({})).await.ok();
        let copied = collections["results"][0]["collection_id"].as_str().unwrap();
        let count = server.call_in(target, "GET", &format!("/v1/collections/{copied}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 1);

        for (method, path, body) in [("POST", format!("{path}/start"), json!({})), ("POST", format!("{path}/cancel"), json!({}))] {
            server.call(method, &path, body).await.error(409, "ConflictError");
        }
        let listed = server.call("POST", &format!("{MIGRATIONS}/list"), json!({"status": "completed", "source_namespace_id": namespace})).await.ok();
        assert_eq!(listed["total"], 1);
        assert_eq!(server.call("DELETE", &path, Value::Null).await.status, 204);
        server.call("GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn what_stands_against_a_migration_is_told_before_it_starts(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "source").await;
        let codes = async |config: Value| {
            let checked = server.call("POST", &format!("{MIGRATIONS}/validate"), json!({"config": config})).await.ok();
            let errors = checked["validation_result"]["errors"].as_array().unwrap().clone();
            errors.iter().map(|error| error["error_code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let with = |member: &str, value: Value| {
            let mut config = copy(&namespace, "elsewhere");
            config[member] = value;
            config
        };
        assert!(codes(copy(&namespace, "elsewhere")).await.is_empty());
        for (config, code) in [
            (copy(&namespace, "source"), "name_taken"),
            (with("migration_type", json!("re_extract")), "not_enabled"),
            (with("preserve_resource_ids", json!(true)), "not_enabled"),
            (with("target_namespace_name", Value::Null), "missing_target"),
            (with("filters", json!({"collection_ids": ["col_none"]})), "not_found"),
            (with("filters", json!({"collection_ids": [], "retriever_ids": [retriever], "auto_include_dependencies": false})), "missing_dependency"),
        ] {
            assert_eq!(codes(config.clone()).await, [code], "{config}");
        }
        // What a retriever searches comes along by itself.
        assert!(codes(with("filters", json!({"collection_ids": [], "retriever_ids": [retriever]}))).await.is_empty());

        let broken = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "source"), "start_immediately": true})).await.ok();
        assert_eq!((&broken["status"], &broken["validation_result"]["valid"]), (&json!("draft"), &json!(false)));
        let path = format!("{MIGRATIONS}/{}", broken["migration_id"].as_str().unwrap());
        server.call("POST", &format!("{path}/start"), json!({})).await.error(409, "ConflictError");
        let cancelled = server.call("POST", &format!("{path}/cancel"), json!({"reason": "not wanted"})).await.ok();
        assert_eq!(cancelled["status"], "cancelled");

        let dry = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": with("dry_run", json!(true)), "start_immediately": true})).await.ok();
        assert_eq!(dry["status"], "completed");
        server.call("GET", "/v1/namespaces/elsewhere", Value::Null).await.error(404, "NotFoundError");

        let other = other_organization(&server).await;
        let send = async |method: &str, path: &str, body: Value| {
            Server::send(server.request(method, path).bearer_auth(&other.key).json(&body)).await
        };
        send("GET", &path, json!({})).await.error(404, "NotFoundError");
        send("POST", &format!("{MIGRATIONS}/validate"), json!({"config": copy(&namespace, "mine")})).await.error(404, "NotFoundError");
    }
}
