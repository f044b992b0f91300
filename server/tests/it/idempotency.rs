//! A POST with an `Idempotency-Key` is done once.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, host, make},
    both,
    harness::{Answer, Database, Server, retriever},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

async fn post(server: &Server, namespace: &str, path: &str, name: &str, body: Value) -> Answer {
    let request = server
        .request("POST", path)
        .bearer_auth(&server.key)
        .header("x-namespace", namespace)
        .header("idempotency-key", name)
        .json(&body);
    Server::send(request).await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.headers.contains_key("idempotency-replayed")
}

fn bucket(name: &str) -> Value {
    json!({"bucket_name": name, "bucket_schema": {"properties": {}}})
}

async fn count(server: &Server, namespace: &str) -> usize {
    let list = server
        .call_in(namespace, "GET", "/v1/buckets", Value::Null)
        .await
        .ok();
    list["results"].as_array().unwrap().len()
}

both! {
    async fn fifty_repetitions_make_one_resource(server) {
        let namespace = server.namespace("repeated").await;
        let answers = futures::future::join_all(
            (0..50).map(|_| post(&server, &namespace, "/v1/buckets", "once", bucket("only"))),
        ).await;
        let first = answers[0].clone().ok();
        let replayed = answers.iter().filter(|one| is_replayed(one)).count();
        assert_eq!(replayed, 49);
        for answer in answers {
            assert!(answer.headers.contains_key("x-ratelimit-limit"));
            assert_eq!(answer.ok(), first);
        }
        assert_eq!(count(&server, &namespace).await, 1);

        let other = post(&server, &namespace, "/v1/buckets", "once", bucket("another")).await;
        assert_eq!(other.error(409, "ConflictError")["error"]["code"], "idempotency_key_reused");
        let elsewhere = post(&server, &namespace, "/v1/namespaces/list", "once", bucket("only")).await;
        elsewhere.error(409, "ConflictError");
        assert_eq!(count(&server, &namespace).await, 1);

        // A restart forgets nothing; a day does.
        let server = server.restart().await;
        assert_eq!(post(&server, &namespace, "/v1/buckets", "once", bucket("only")).await.ok(), first);
        server.app.clock().advance(24 * 3600 + 1);
        post(&server, &namespace, "/v1/buckets", "once", bucket("only")).await.error(409, "AlreadyExistsError");
        post(&server, &namespace, "/v1/buckets", "once", bucket("another")).await.ok();
    }

    async fn a_failure_is_not_kept(server) {
        let namespace = server.namespace("failing").await;
        let wrong = json!({"bucket_name": 7});
        assert_eq!(post(&server, &namespace, "/v1/buckets", "again", wrong).await.status, 422);
        post(&server, &namespace, "/v1/buckets", "again", bucket("right")).await.ok();
        assert_eq!(count(&server, &namespace).await, 1);
        let long = "x".repeat(256);
        post(&server, &namespace, "/v1/buckets", &long, bucket("long")).await.error(400, "BadRequestError");
    }

    async fn what_was_cut_off_is_not_done_again(server) {
        let namespace = server.namespace("cut off").await;
        post(&server, &namespace, "/v1/buckets", "once", bucket("only")).await.ok();
        // As a process leaves it that dies between its work and its answer.
        server.app.db().write(|tx| Box::pin(async move {
            tx.run("UPDATE idempotency_keys SET status = NULL, body = NULL, content_type = NULL", vec![]).await
        })).await.unwrap();
        server.app.clock().advance(120);
        for body in [bucket("only"), bucket("only")] {
            let again = post(&server, &namespace, "/v1/buckets", "once", body).await;
            assert_eq!(again.error(409, "ConflictError")["error"]["code"], "idempotency_outcome_unknown");
        }
        assert_eq!(count(&server, &namespace).await, 1);
        post(&server, &namespace, "/v1/buckets", "another", bucket("other")).await.ok();
    }

    async fn two_keys_of_the_same_name_are_two_requests(server) {
        let namespace = server.namespace("apart").await;
        let made = server.call("POST", KEYS, json!({"name": "other"})).await.ok();
        post(&server, &namespace, "/v1/buckets", "shared", bucket("mine")).await.ok();
        let request = server.request("POST", "/v1/buckets").bearer_auth(made["key"].as_str().unwrap())
            .header("x-namespace", &namespace).header("idempotency-key", "shared").json(&bucket("theirs"));
        Server::send(request).await.ok();
        assert_eq!(count(&server, &namespace).await, 2);
    }

    async fn what_a_stranger_tells_twice_is_kept_once(server) {
        let (namespace, id) = retriever(&server, "films").await;
        let publish = async |name: &str| {
            let body = json!({"public_name": name});
            server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), body).await.ok();
        };
        publish("films").await;
        let path = "/v1/public/retrievers/films/interactions";
        let tell = async |path: &str, name: &str, body: &Value| {
            let request = server.request("POST", path).header("x-session-id", "visit-1").header("idempotency-key", name);
            Server::send(request.json(body)).await
        };
        let told = json!({"document_id": "doc_1", "interaction_type": ["click"], "position": 0});
        let first = tell(path, "once", &told).await;
        assert!(!is_replayed(&first));
        let first = first.ok();
        // Later, when it would be an act of its own.
        server.app.clock().advance(3600);
        let again = tell(path, "once", &told).await;
        assert!(is_replayed(&again) && again.headers.contains_key("x-ratelimit-limit"));
        assert_eq!(again.ok(), first);
        let list = json!({"session_id": "visit-1"});
        let kept = async || server.call_in(&namespace, "POST", "/v1/retrievers/interactions/list", list.clone()).await.ok();
        assert_eq!(kept().await["results"].as_array().unwrap().len(), 1);
        let mut other = told.clone();
        other["document_id"] = "doc_2".into();
        assert_eq!(tell(path, "once", &other).await.error(409, "ConflictError")["error"]["code"], "idempotency_key_reused");
        // Another operation of the page is another request, whatever it is called.
        let batch = json!({"interactions": [other]});
        let batched = tell(&format!("{path}/batch"), "once", &batch).await.ok();
        server.app.clock().advance(3600);
        assert_eq!(tell(&format!("{path}/batch"), "once", &batch).await.ok(), batched);
        assert_eq!(kept().await["results"].as_array().unwrap().len(), 2);
        // What only reads is read anew, and no address of a visitor is kept.
        let search = "/v1/public/retrievers/films/execute";
        for _ in 0..2 {
            let found = tell(search, "once", &json!({"inputs": {}})).await;
            assert!(!is_replayed(&found));
            found.ok();
        }
        let rows: Vec<(String, Vec<u8>)> = server.app.db().all("SELECT key_id, body FROM idempotency_keys", vec![]).await.unwrap();
        assert_eq!(rows.len(), 2);
        for (key_id, body) in rows {
            assert!(key_id.len() == 64 && !String::from_utf8_lossy(&body).contains("doc_"), "{key_id}");
        }
    }

    async fn what_visitors_of_an_app_send_twice_is_done_once(server) {
        let (namespace, _) = retriever(&server, "things").await;
        let rules = json!({"api_allow": [{"methods": ["POST"], "pattern": "/collections/*/documents"}], "env_vars": {"LOUPE_NAMESPACE": namespace}});
        for slug in ["things", "others"] {
            let app = make(&server, json!({"slug": slug, "meta": {"title": "Things"}, "build_config": rules})).await;
            deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        }
        let write = async |slug: &str, name: &str, title: &str| {
            let request = at(&server, slug, "POST", "/api/collections/things/documents").header("idempotency-key", name);
            Server::send(request.json(&json!({"title": title}))).await
        };
        let first = write("things", "once", "one").await.ok();
        let again = write("things", "once", "one").await;
        assert!(is_replayed(&again));
        assert_eq!(again.ok(), first);
        write("things", "once", "two").await.error(409, "ConflictError");
        // Another app is another owner, and so is the key that the app stands for.
        assert_ne!(write("others", "once", "one").await.ok()["document_id"], first["document_id"]);
        let path = "/v1/collections/things/documents";
        assert_ne!(post(&server, &namespace, path, "once", json!({"title": "one"})).await.ok()["document_id"], first["document_id"]);
        let list = server.call_in(&namespace, "GET", path, Value::Null).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 3);
    }

    async fn a_page_of_an_app_notes_once(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films"})).await;
        let own = format!("http://{}", host(&server, "films"));
        for (name, replayed) in [("once", false), ("once", true), ("twice", false)] {
            let request = at(&server, "films", "POST", "/_auth/interactions").header("origin", &own).header("idempotency-key", name);
            let noted = Server::send(request.json(&json!({"event_type": "click", "document_id": "d"}))).await;
            assert_eq!((noted.status, is_replayed(&noted)), (200, replayed), "{name}");
        }
        let analytics = server.call("GET", &format!("/v1/apps/{app}/analytics"), Value::Null).await.ok();
        assert_eq!(analytics["total_events"], 2);
    }

    async fn a_form_that_is_sent_again_is_the_same(server) {
        let send = async |boundary: &str, name: &str| {
            let manifest = format!("version: \"1.0\"\nmetadata: {{name: once}}\nnamespaces:\n  - name: {name}\n");
            let body = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"manifest_file\"\r\n\r\n{manifest}\r\n--{boundary}--\r\n");
            let request = server.request("POST", "/v1/manifest/apply").bearer_auth(&server.key).header("idempotency-key", "applied");
            Server::send(request.header("content-type", format!("multipart/form-data; boundary={boundary}")).body(body)).await
        };
        let first = send("one", "shelf").await.ok();
        assert_eq!(first["created_count"], 1, "{first:#}");
        let again = send("another", "shelf").await;
        assert!(is_replayed(&again));
        assert_eq!(again.ok(), first);
        assert_eq!(send("one", "table").await.error(409, "ConflictError")["error"]["code"], "idempotency_key_reused");
    }

    async fn a_stream_takes_no_name(server) {
        let (namespace, id) = retriever(&server, "streamed").await;
        let stages = json!([{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}]);
        for (path, body) in [
            (format!("/v1/retrievers/{id}/execute"), json!({"inputs": {}, "stream": true})),
            ("/v1/retrievers/execute".into(), json!({"collection_identifiers": ["things"], "stages": stages, "inputs": {}, "stream": true})),
        ] {
            let refused = post(&server, &namespace, &path, "told", body.clone()).await.error(400, "BadRequestError");
            assert_eq!(refused["error"]["code"], "idempotency_key_on_stream");
            let told = server.call_in(&namespace, "POST", &path, body.clone()).await;
            assert!(told.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"), "{path}: {:#}", told.body);
            // Without the stream the name is still free.
            let mut whole = body;
            whole["stream"] = false.into();
            post(&server, &namespace, &path, &path, whole).await.ok();
        }
    }

    async fn a_repeated_answer_holds_the_secret_and_the_database_does_not(server) {
        let body = json!({"name": "minted once"});
        let first = post(&server, "", KEYS, "mint", body.clone()).await.ok();
        let again = post(&server, "", KEYS, "mint", body).await.ok();
        assert_eq!(first, again);
        let secret = first["key"].as_str().unwrap().as_bytes();
        let rows: Vec<(Vec<u8>,)> = server.app.db().all("SELECT body FROM idempotency_keys", vec![]).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].0.len() > 200);
        assert!(!rows[0].0.windows(secret.len()).any(|window| window == secret));
    }
}

/// Another process on the same database.
async fn beside(server: &Server) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = server.app.config().clone();
    config.data = folder.path().join("data");
    config.listen.set_port(0);
    Server::start_with(config, folder, Some(server.key.clone())).await
}

/// Processes on one database do it once together, and one that comes later knows of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_make_one_resource() {
    let first = Server::start(Database::Postgres).await;
    let second = beside(&first).await;
    let namespace = first.namespace("shared").await;
    let servers = [&first, &second];
    let path = "/v1/buckets";
    let sent = servers.iter().cycle().take(50);
    let sent = sent.map(|server| post(server, &namespace, path, "once", bucket("only")));
    let answers = futures::future::join_all(sent).await;
    assert_eq!(answers.iter().filter(|one| is_replayed(one)).count(), 49);
    let made = answers[0].clone().ok();
    for answer in answers {
        assert_eq!(answer.ok(), made);
    }
    assert_eq!(count(&first, &namespace).await, 1);

    let another = bucket("another");
    let other = post(&second, &namespace, "/v1/buckets", "once", another).await;
    assert_eq!(
        other.error(409, "ConflictError")["error"]["code"],
        "idempotency_key_reused"
    );
    let second = second.restart().await;
    let later = post(&second, &namespace, "/v1/buckets", "once", bucket("only")).await;
    assert!(is_replayed(&later));
    assert_eq!(later.ok(), made);
    assert_eq!(count(&second, &namespace).await, 1);
}
