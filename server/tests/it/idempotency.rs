//! A POST with an `Idempotency-Key` is done once.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Database, Server},
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
        let replayed = answers.iter().filter(|one| one.headers.contains_key("idempotency-replayed")).count();
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
    let replayed = |one: &Answer| one.headers.contains_key("idempotency-replayed");
    assert_eq!(answers.iter().filter(|one| replayed(one)).count(), 49);
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
    assert!(replayed(&later));
    assert_eq!(later.ok(), made);
    assert_eq!(count(&second, &namespace).await, 1);
}
