//! Taxonomies of documents whose making is cut off, or fails on the way.

use std::time::{Duration, Instant};

use super::*;
use crate::{harness::Database, objects::beside};

/// A namespace, and the request for a taxonomy of its one document.
async fn asked(server: &Server) -> (String, Value) {
    let (namespace, _) = crate::harness::retriever(server, "promoted").await;
    let body = json!({"title": "a ship", "vectors": {"own": [1.0, 0.1, 0.0]}});
    let path = "/v1/collections/things/documents";
    let made = server.call_in(&namespace, "POST", path, body).await.ok();
    let documents = json!([{"collection_id": "things", "document_id": made["document_id"]}]);
    let body = json!({"taxonomy_name": "subjects", "node_label": "Sea", "documents": documents});
    (namespace, body)
}

const PATH: &str = "/v1/taxonomies/from-documents";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_cut_off_leaves_a_whole_taxonomy() {
    let server = Server::start(Database::Postgres).await;
    let (namespace, body) = asked(&server).await;
    // The collection is made, and what comes next waits.
    let mut waits = beside(&server).await;
    for sql in ["BEGIN", "LOCK TABLE retrievers IN EXCLUSIVE MODE"] {
        sqlx::query(sql).execute(&mut waits).await.unwrap();
    }
    let request = server
        .request("POST", PATH)
        .bearer_auth(&server.key)
        .header("X-Namespace", &namespace)
        .timeout(Duration::from_secs(2));
    assert!(request.json(&body).send().await.unwrap_err().is_timeout());
    let call = async |path: &str| server.call_in(&namespace, "GET", path, Value::Null).await;
    // A busy machine may not have come so far in the time of the request.
    let began = Instant::now();
    while call("/v1/collections/subjects%20nodes").await.status != 200 {
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "nothing is begun"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    sqlx::query("COMMIT").execute(&mut waits).await.unwrap();
    let began = Instant::now();
    while call("/v1/taxonomies/subjects").await.status != 200 {
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "what was begun is not finished"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

both! {
    async fn what_cannot_be_made_leaves_nothing_behind(server) {
        let (namespace, body) = asked(&server).await;
        // It may make things, not remove them.
        let operations = json!(["read_data", "write_data", "execute_retriever", "create_retriever", "execute_job", "modify_infrastructure", "manage_permissions"]);
        let key = json!({"name": "maker", "permissions": ["delete"], "scopes": [
            {"resource_type": "namespace", "resource_id": namespace, "operations": operations}]});
        let key = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", key).await.ok();
        let call = async || {
            let request = server.request("POST", PATH).bearer_auth(key["key"].as_str().unwrap());
            Server::send(request.header("X-Namespace", &namespace).json(&body)).await
        };
        let taken = json!({"retriever_name": "subjects nodes", "collection_identifiers": ["things"], "input_schema": {}, "stages": [
            {"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}]});
        let taken = server.call_in(&namespace, "POST", "/v1/retrievers", taken).await.ok();
        call().await.error(409, "AlreadyExistsError");
        let left = server.call_in(&namespace, "GET", "/v1/collections/subjects%20nodes", Value::Null).await;
        left.error(404, "NotFoundError");
        // And once the name is free, nothing is in the way.
        let path = format!("/v1/retrievers/{}", taken["retriever_id"].as_str().unwrap());
        server.call_in(&namespace, "DELETE", &path, Value::Null).await;
        let made = call().await.ok();
        assert_eq!((&made["node_label"], &made["taxonomy_created"]), (&json!("Sea"), &json!(true)));
    }
}
