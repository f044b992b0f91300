//! Changes of clusters beside each other: what is read, edited and written back is held meanwhile.

use super::*;
use crate::{
    harness::Database,
    objects::{beside, release, run},
};

/// A cluster of three groups.
async fn kinds(server: &Server, namespace: &str) -> String {
    let body = by_vectors("kinds", "kmeans", json!({"n_clusters": 3}));
    make(server, namespace, body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_keeps_the_name_and_the_labels_that_two_give_it() {
    let server = Server::start(Database::Postgres).await;
    let namespace = things(&server, "labels").await;
    let id = kinds(&server, &namespace).await;
    let (_, told) = executed(&server, &namespace, &id, Value::Null).await;
    let run_id = told["run_id"].as_str().unwrap();
    let path = format!("/v1/clusters/{id}/executions/{run_id}");
    let mut waits = beside(&server).await;
    run(&mut waits, "BEGIN").await;
    run(&mut waits, "SELECT 1 FROM cluster_runs FOR UPDATE").await;
    let call = async |member: &str, body: Value| {
        let path = format!("{path}/{member}");
        server.call_in(&namespace, "PATCH", &path, body).await.ok()
    };
    let both = futures::future::join(
        call("labels", json!({"labels": {"cl_0": "my own"}})),
        call("name", json!({"run_name": "the first"})),
    );
    futures::future::join(both, release(waits, 2)).await;
    let shown = server
        .call_in(&namespace, "GET", &path, Value::Null)
        .await
        .ok();
    assert_eq!(
        (&shown["run_name"], &shown["label_overrides"]),
        (&json!("the first"), &json!({"cl_0": "my own"})),
        "{shown:#}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_that_ends_takes_back_nothing_that_was_said_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::harness::config(Database::Postgres, &folder).await;
    // Nobody works: the execution waits to be canceled.
    config.jobs.workers = 0;
    let server = Server::start_with(config, folder, None).await;
    let namespace = things(&server, "described").await;
    let id = kinds(&server, &namespace).await;
    let path = format!("/v1/clusters/{id}");
    let call = async |method: &str, path: &str, body: Value| {
        server.call_in(&namespace, method, path, body).await.ok()
    };
    let task = call("POST", &format!("{path}/execute"), Value::Null).await;
    let run_id = task["additional_data"]["run_id"].as_str().unwrap();
    let mut waits = beside(&server).await;
    run(&mut waits, "BEGIN").await;
    // As another process describes it; not committed.
    run(
        &mut waits,
        "UPDATE clusters SET data = jsonb_set(data, '{_model,description}', '\"said beside\"')",
    )
    .await;
    let cancel = format!("{path}/executions/{run_id}/cancel");
    let canceled = call("POST", &cancel, Value::Null);
    let (canceled, ()) = futures::future::join(canceled, release(waits, 1)).await;
    assert_eq!(canceled["status"], "canceled");
    // What is sent again is told as it is kept.
    let shown = call("PATCH", &path, json!({"metadata": {"by": "me"}})).await;
    assert_eq!(shown["description"], "said beside", "{shown:#}");
}
