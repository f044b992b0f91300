//! What the log has no word for is told as a change of what it is a part of: pages of retrievers, triggers of a namespace, syncs
//! of a bucket, apps of the organization.

use serde_json::{Value, json};

use crate::{apps, both, harness::Server};

/// Calls that the log keeps the reason of.
struct Told<'s> {
    server: &'s Server,
    namespace: String,
}

impl Told<'_> {
    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let request = self
            .server
            .request(method, path)
            .bearer_auth(&self.server.key)
            .header("x-namespace", &self.namespace)
            .header("x-change-reason", "because");
        let answer = Server::send(if body.is_null() {
            request
        } else {
            request.json(&body)
        })
        .await;
        assert!(answer.status < 300, "{method} {path}: {:#}", answer.body);
        answer.body
    }

    /// The newest records of a resource, the oldest first: what changed, each of them with actor and reason.
    async fn changes(&self, query: &str) -> Vec<Value> {
        let path = format!("/v1/organizations/audit/logs?limit=1000&{query}");
        let page = self.server.call("GET", &path, Value::Null).await.ok();
        let records = page["results"].as_array().unwrap().iter().rev();
        let told = records.filter(|one| one["changes"]["change"].is_string());
        told.map(|one| {
            assert_eq!(
                (&one["reason"], &one["actor_email"]),
                (&json!("because"), &json!("owner@localhost")),
                "{one:#}"
            );
            one["changes"].clone()
        })
        .collect()
    }

    async fn names(&self, query: &str) -> Vec<String> {
        // Of one moment, they have no order.
        let changes = self.changes(query).await.into_iter();
        let mut names: Vec<String> = changes
            .map(|one| one["change"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

both! {
    async fn pages_that_come_change_move_and_go_are_told(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "shown").await;
        let told = Told { server: &server, namespace };
        let path = format!("/v1/retrievers/{retriever}");
        let clone = told.call("POST", &format!("{path}/clone"), json!({"retriever_name": "better"})).await;
        let other = text(&clone["retriever_id"]).to_owned();
        let page = format!("{path}/publish");
        for (method, path, body) in [
            ("POST", page.clone(), json!({"public_name": "shown-here", "display_name": "Shown here"})),
            ("PATCH", page.clone(), json!({"rate_limit_config": {"requests_per_minute": 7}})),
            ("POST", format!("{page}/move"), json!({"retriever_id": other})),
            ("DELETE", format!("/v1/retrievers/{other}/publish"), Value::Null),
        ] {
            server.app.clock().advance(1);
            told.call(method, &path, body).await;
        }
        let changes = told.changes(&format!("action=retriever_updated&resource_id={retriever}")).await;
        assert_eq!(changes, [
            json!({"change": "page_published", "public_name": "shown-here", "password_protected": false}),
            json!({"change": "page_updated", "public_name": "shown-here", "members": ["rate_limit_config"]}),
            json!({"change": "page_moved", "public_name": "shown-here", "from": retriever, "to": other}),
        ]);
        let changes = told.names(&format!("action=retriever_updated&resource_id={other}")).await;
        assert_eq!(changes, ["page_moved", "page_unpublished"]);
        // There is none any more: nothing is told.
        server.call_in(&told.namespace, "DELETE", &page, Value::Null).await.error(404, "NotFoundError");
        assert_eq!(told.changes(&format!("action=retriever_updated&resource_id={retriever}")).await.len(), 3);
    }

    async fn triggers_and_datasets_are_told_of_their_namespace(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "moved").await;
        let told = Told { server: &server, namespace: namespace.clone() };
        let made = told.call("POST", "/v1/triggers", json!({
            "name": "look", "trigger_type": "cron", "schedule_config": {"cron": "0 7 1 1 *"},
            "action_type": "retriever_execution", "action_config": {"retriever_id": retriever},
        })).await;
        let path = format!("/v1/triggers/{}", text(&made["trigger_id"]));
        told.call("PATCH", &path, json!({"description": "once a year"})).await;
        let started = told.call("POST", &format!("{path}/execute"), Value::Null).await;
        for step in ["pause", "resume"] {
            told.call("POST", &format!("{path}/{step}"), Value::Null).await;
        }
        told.call("DELETE", &path, Value::Null).await;
        told.call("POST", "/v1/retrievers/evaluations/datasets", json!({
            "dataset_name": "asked", "queries": [{"query_id": "one", "query_input": {}, "relevant_documents": ["doc_1"]}],
        })).await;
        server.task_end(text(&started["task_id"])).await;
        told.call("DELETE", &format!("/v1/tasks/{}", text(&started["task_id"])), Value::Null).await;
        let names = told.names(&format!("action=namespace_updated&resource_id={namespace}")).await;
        assert_eq!(names, [
            "evaluation_dataset_created", "task_deleted", "trigger_created", "trigger_deleted", "trigger_executed", "trigger_paused", "trigger_resumed", "trigger_updated",
        ]);
    }

    async fn what_goes_from_buckets_and_retrievers_is_told(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "held").await;
        let told = Told { server: &server, namespace };
        let bucket = told.call("POST", "/v1/buckets", json!({"bucket_name": "b", "bucket_schema": {"properties": {"title": {"type": "string"}}}})).await;
        let bucket = text(&bucket["bucket_id"]).to_owned();
        let objects = format!("/v1/buckets/{bucket}/objects");
        let object = told.call("POST", &objects, json!({"title": "one"})).await;
        let object = text(&object["object_id"]);
        told.call("DELETE", &format!("{objects}/{object}"), Value::Null).await;
        let connection = told.call("POST", "/v1/organizations/connections", json!({
            "name": "inbox", "provider_type": "s3", "test_before_save": false, "provider_config": {
                "credentials": {"type": "access_key", "access_key_id": "AKIAEXAMPLE", "secret_access_key": "its secret"},
                "region": "eu-west-1", "endpoint_url": "http://127.0.0.2:19999/",
            },
        })).await;
        let syncs = format!("/v1/buckets/{bucket}/syncs");
        let sync = told.call("POST", &syncs, json!({"connection_id": connection["connection_id"], "source_path": "s3://media/in"})).await;
        let sync = format!("{syncs}/{}", text(&sync["sync_config_id"]));
        told.call("PATCH", &sync, json!({"description": "what comes in"})).await;
        told.call("POST", &format!("{sync}/pause"), Value::Null).await;
        told.call("POST", &format!("{sync}/resume"), Value::Null).await;
        told.call("DELETE", &sync, Value::Null).await;
        let query = format!("action=bucket_updated&resource_id={bucket}");
        assert_eq!(told.names(&query).await, ["object_deleted", "sync_created", "sync_deleted", "sync_paused", "sync_resumed", "sync_updated"]);
        let gone = told.changes(&query).await;
        assert!(gone.contains(&json!({"change": "object_deleted", "object_id": object})), "{gone:#?}");

        let click = json!({"feature_id": "doc_1", "interaction_type": ["click"], "position": 1, "retriever_id": retriever});
        let click = told.call("POST", "/v1/retrievers/interactions", click).await;
        told.call("DELETE", &format!("/v1/retrievers/interactions/{}", text(&click["interaction_id"])), Value::Null).await;
        assert_eq!(told.names(&format!("action=retriever_updated&resource_id={retriever}")).await, ["interaction_deleted"]);
        told.call("POST", "/v1/collections/things/export", json!({"format": "csv"})).await;
        let exports = told.changes("action=collection_accessed").await;
        assert_eq!((exports.len(), &exports[0]["change"], &exports[0]["format"]), (1, &json!("collection_exported"), &json!("csv")));
    }

    async fn batches_uploads_and_migrations_that_go_are_told(server) {
        let told = Told { server: &server, namespace: server.namespace("going").await };
        let bucket = told.call("POST", "/v1/buckets", json!({"bucket_name": "b", "bucket_schema": {"properties": {"title": {"type": "string"}}}})).await;
        let bucket = text(&bucket["bucket_id"]).to_owned();
        let home = format!("/v1/buckets/{bucket}");
        let object = told.call("POST", &format!("{home}/objects"), json!({"title": "one"})).await;
        let batch = told.call("POST", &format!("{home}/batches"), json!({"object_ids": [object["object_id"]]})).await;
        let path = format!("{home}/batches/{}", text(&batch["batch_id"]));
        told.call("DELETE", &path, Value::Null).await;
        server.call_in(&told.namespace, "DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        let upload = json!({"filename": "a.txt", "content_type": "text/plain"});
        let upload = told.call("POST", &format!("{home}/uploads"), upload).await;
        let path = format!("{home}/uploads/{}", text(&upload["upload_id"]));
        told.call("DELETE", &path, Value::Null).await;
        server.call_in(&told.namespace, "DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        let mut changes = told.changes(&format!("action=bucket_updated&resource_id={bucket}")).await;
        // Of one moment, they have no order.
        changes.sort_by_key(|one| text(&one["change"]).to_owned());
        assert_eq!(changes, [
            json!({"change": "batch_deleted", "batch_id": batch["batch_id"], "status": "DRAFT"}),
            json!({"change": "upload_deleted", "upload_id": upload["upload_id"]}),
        ]);

        let config = json!({"migration_type": "copy", "source_namespace_id": told.namespace, "target_namespace_name": "gone"});
        let made = told.call("POST", "/v1/namespaces/migrations/", json!({"config": config})).await;
        told.call("DELETE", &format!("/v1/namespaces/migrations/{}", text(&made["migration_id"])), Value::Null).await;
        let changes = told.changes(&format!("action=namespace_updated&resource_id={}", told.namespace)).await;
        assert_eq!(changes, [json!({"change": "migration_deleted", "migration_id": made["migration_id"]})]);
    }

    async fn migrations_that_start_and_are_canceled_are_told(server) {
        let namespace = server.namespace("moving").await;
        let told = Told { server: &server, namespace };
        let all = "/v1/namespaces/migrations/";
        let config = |dry: bool| json!({"migration_type": "copy", "source_namespace_id": told.namespace, "target_namespace_name": "moved", "dry_run": dry});
        let mut expected = Vec::new();
        for (dry, calls, names) in [
            (true, &["start"][..], &["migration_started"][..]),
            (false, &["start"], &["migration_started"]),
            (false, &["cancel"], &["migration_canceled"]),
        ] {
            let body = json!({"config": config(dry)});
            let made = told.call("POST", all, body).await;
            for call in calls {
                server.app.clock().advance(1);
                told.call("POST", &format!("{all}{}/{call}", text(&made["migration_id"])), json!({})).await;
            }
            expected.extend(names.iter().map(|name| json!({"change": name, "migration_id": made["migration_id"]})));
        }
        let changes = told.changes(&format!("action=namespace_updated&resource_id={}", told.namespace)).await;
        assert_eq!(changes, expected);
    }

    async fn apps_are_told_of_the_organization_without_their_variables(server) {
        let told = Told { server: &server, namespace: server.namespace("home").await };
        let made = told.call("POST", "/v1/apps", json!({"slug": "reading-room", "meta": {"title": "Reading room"}})).await;
        let app = format!("/v1/apps/{}", text(&made["app_id"]));
        told.call("PATCH", &app, json!({"build_config": {"env_vars": {"TITLE": "a private word"}}})).await;
        told.call("POST", &format!("{app}/publish"), json!({})).await;
        told.call("POST", &format!("{app}/domains"), json!({"domain": "reading.example.com"})).await;
        told.call("DELETE", &format!("{app}/domains/reading.example.com"), Value::Null).await;
        let files = json!({"index.html": "<!doctype html><title>Open</title>"});
        told.call("POST", &format!("{app}/deploy"), json!({"environment": "staging", "source_files": files})).await;
        told.call("DELETE", &app, Value::Null).await;
        let changes = told.changes("action=organization_updated").await;
        let names = told.names("action=organization_updated").await;
        assert_eq!(names, [
            "app_created", "app_deleted", "app_deployed", "app_domain_added", "app_domain_removed", "app_published", "app_updated",
        ]);
        assert!(changes.iter().all(|one| one["app_id"] == made["app_id"]), "{changes:#?}");
        assert!(!json!(changes).to_string().contains("a private word"), "{changes:#?}");
        // A change that is only tried is none.
        let other = apps::make(&server, json!({"slug": "other", "meta": {"title": "Other"}})).await;
        let before = told.server.call("GET", "/v1/organizations/audit/logs?action=organization_updated", Value::Null).await.ok()["total"].clone();
        told.call("PATCH", &format!("/v1/apps/{other}?dry_run=true"), json!({"meta": {"title": "Tried"}})).await;
        let after = told.server.call("GET", "/v1/organizations/audit/logs?action=organization_updated", Value::Null).await.ok()["total"].clone();
        assert_eq!(before, after);
    }
}
