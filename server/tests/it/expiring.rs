//! Namespaces that go by themselves: when, how, and each of them once.

use std::time::{Duration, Instant};

use loupe_server::{
    args,
    v1::namespaces::{NAMESPACES, sweep},
};
use loupe_wire::NamespaceModel;
use serde_json::{Value, json};

use crate::{
    batches::{library, object},
    both,
    harness::Server,
};

/// A new namespace that lasts so long.
async fn lasting(server: &Server, name: &str, ttl_seconds: i64) -> String {
    let body = json!({"namespace_name": name, "ttl_seconds": ttl_seconds});
    let made = server.call("POST", "/v1/namespaces", body).await.ok();
    made["namespace_id"].as_str().unwrap().to_owned()
}

async fn is_there(server: &Server, namespace: &str) -> bool {
    let path = format!("/v1/namespaces/{namespace}");
    let answer = server.call("GET", &path, Value::Null).await;
    assert!(matches!(answer.status, 200 | 404), "{:#}", answer.body);
    answer.status == 200
}

/// What the audit log has of removals.
async fn removals(server: &Server) -> Value {
    let path = "/v1/organizations/audit/logs?action=namespace_deleted";
    server.call("GET", path, Value::Null).await.ok()
}

/// As while a namespace is made of another, or once it is.
async fn set_clone_status(server: &Server, id: &str, status: &'static str) {
    let owner = "SELECT owner FROM namespaces WHERE id = $1";
    let owners: Vec<(String,)> = server.app.db().all(owner, args![id]).await.unwrap();
    let (owner, id) = (owners[0].0.clone(), id.to_owned());
    let changed = server.app.db().write(move |tx| {
        Box::pin(async move {
            let record = NAMESPACES.hold(tx, &owner, &id).await?;
            let namespace = NamespaceModel {
                clone_status: Some(status.into()),
                ..record.data.0
            };
            NAMESPACES
                .update(tx, &owner, &id, &record.name, 1, &namespace)
                .await
        })
    });
    changed.await.unwrap();
}

both! {
    async fn a_namespace_goes_when_its_time_is_over(server) {
        let (brief, other) = (lasting(&server, "brief", 3600).await, server.namespace("other").await);
        let properties = json!({"title": {"type": "string"}, "text": {"type": "text"}});
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": properties}});
        let bucket = server.call_in(&brief, "POST", "/v1/buckets", bucket).await.ok();
        let text = json!({"property": "text", "type": "text", "data": "some words"});
        object(&server, &brief, bucket["bucket_id"].as_str().unwrap(), "words", text).await;
        assert_eq!(server.files(&brief).len(), 1);
        sweep(&server.app).await.unwrap();
        assert!(is_there(&server, &brief).await);

        // From here on the server's own round does it.
        server.app.clock().advance(3601);
        let start = Instant::now();
        while is_there(&server, &brief).await {
            assert!(start.elapsed().as_secs() < 180, "the namespace stays");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let left = "SELECT task_id FROM tasks WHERE kind = 'remove_namespace'";
        let tasks: Vec<(String,)> = server.app.db().all(left, vec![]).await.unwrap();
        assert_eq!(tasks.len(), 1);
        let task = server.task_end(&tasks[0].0).await;
        assert_eq!((&task["status"], &task["task_type"]), (&json!("COMPLETED"), &json!("api_namespaces_delete")));
        assert_eq!(server.files(&brief), Vec::<String>::new());
        assert_eq!(server.events("object.deleted").await.len(), 1);
        let told = removals(&server).await;
        let record = &told["results"][0];
        assert_eq!((&told["total"], &record["resource_id"]), (&json!(1), &json!(brief)), "{told:#}");
        assert_eq!((&record["actor_type"], &record["reason"]), (&json!("system"), &json!("expired")), "{told:#}");
        assert!(is_there(&server, &other).await);
    }

    async fn the_time_of_a_namespace_is_changed(server) {
        server.app.clock().hold();
        let change = async |namespace: &str, body: Value| {
            server.call("PATCH", &format!("/v1/namespaces/{namespace}"), body).await
        };
        let untouched = lasting(&server, "untouched", 60).await;
        let named = change(&untouched, json!({"description": "brief"})).await.ok();
        assert!(named["expires_at"].is_string(), "{named:#}");
        let prolonged = lasting(&server, "prolonged", 60).await;
        let past = json!({"expires_at": "2020-01-01T00:00:00Z"});
        change(&prolonged, past).await.invalid(&["body", "expires_at"], "value_error");
        change(&prolonged, json!({"ttl_seconds": 7200})).await.ok();
        let kept = lasting(&server, "kept", 60).await;
        let good = change(&kept, json!({"expires_at": null})).await.ok();
        assert_eq!(good["expires_at"], Value::Null, "{good:#}");
        // A moment without a zone is of UTC, and what is none is told.
        let later = change(&kept, json!({"expires_at": "2100-01-01T00:00:00"})).await.ok();
        assert_eq!(later["expires_at"], "2100-01-01T00:00:00Z", "{later:#}");
        change(&kept, json!({"expires_at": "soon"})).await.invalid(&["body", "expires_at"], "value_error");
        change(&kept, json!({"expires_at": null})).await.ok();
        let late = lasting(&server, "late", 7200).await;
        let soon = server.app.clock().now() + Duration::from_secs(60);
        change(&late, json!({"expires_at": soon})).await.ok();
        let body = json!({"namespace_name": "copy", "ttl_seconds": 60});
        let copy = server.call("POST", &format!("/v1/namespaces/{kept}/clone"), body).await.ok();
        let copy = copy["namespace"]["namespace_id"].as_str().unwrap();
        let all: [&str; 5] = [&untouched, &prolonged, &kept, &late, copy];
        let there = async || {
            sweep(&server.app).await.unwrap();
            let mut there = Vec::new();
            for one in all {
                there.push(is_there(&server, one).await);
            }
            there
        };

        server.app.clock().advance(59);
        assert_eq!(there().await, [true; 5]);
        server.app.clock().advance(1);
        assert_eq!(there().await, [false, true, true, false, false]);
        server.app.clock().advance(7140);
        assert_eq!(there().await, [false, false, true, false, false]);
    }

    async fn batches_may_end_in_a_namespace_whose_time_is_over(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "some words"});
        object(&server, &namespace, &bucket, "words", text).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let id = batch["batch_id"].as_str().unwrap().to_owned();
        let running = "UPDATE batches SET status = 'PROCESSING' WHERE batch_id = $1";
        server.app.db().write(move |tx| Box::pin(async move { tx.run(running, args![id]).await })).await.unwrap();
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"ttl_seconds": 3600})).await.ok();
        server.app.clock().advance(3601);
        sweep(&server.app).await.unwrap();
        assert!(is_there(&server, &namespace).await);
        // For a day: nobody keeps it by one batch after the other.
        server.app.clock().advance(86_400);
        sweep(&server.app).await.unwrap();
        assert!(!is_there(&server, &namespace).await);
    }

    async fn what_is_shown_of_the_end_counts(server) {
        server.app.clock().hold();
        let (good, brief) = (server.namespace("good").await, lasting(&server, "brief", 3600).await);
        // A process of an older version changes only what is shown.
        let early = "UPDATE namespaces SET expires_at = 1";
        server.app.db().write(move |tx| Box::pin(async move { tx.run(early, vec![]).await })).await.unwrap();
        sweep(&server.app).await.unwrap();
        assert!(is_there(&server, &good).await && is_there(&server, &brief).await);
        server.app.clock().advance(3600);
        sweep(&server.app).await.unwrap();
        assert!(is_there(&server, &good).await && !is_there(&server, &brief).await);
    }

    async fn a_namespace_stays_while_another_is_made_of_it(server) {
        let source = lasting(&server, "source", 3600).await;
        let body = json!({"namespace_name": "copy"});
        let made = server.call("POST", &format!("/v1/namespaces/{source}/clone"), body).await.ok();
        server.task_end(made["task_id"].as_str().unwrap()).await;
        let copy = made["namespace"]["namespace_id"].as_str().unwrap();
        set_clone_status(&server, copy, "cloning").await;
        server.app.clock().advance(3601);
        sweep(&server.app).await.unwrap();
        assert!(is_there(&server, &source).await);
        set_clone_status(&server, copy, "ready").await;
        sweep(&server.app).await.unwrap();
        assert!(!is_there(&server, &source).await && is_there(&server, copy).await);
    }

    async fn each_namespace_goes_once_however_many_sweep(server) {
        server.app.clock().hold();
        for name in ["first", "second", "third"] {
            lasting(&server, name, 60).await;
        }
        server.app.clock().advance(61);
        let (one, two, three) = tokio::join!(sweep(&server.app), sweep(&server.app), sweep(&server.app));
        for swept in [one, two, three] {
            swept.unwrap();
        }
        let told = removals(&server).await;
        assert_eq!(told["total"], 3, "{told:#}");
    }
}
