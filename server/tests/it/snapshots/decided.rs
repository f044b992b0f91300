//! Annotations in snapshots: put back with what they said, and copied beside the copies of their documents.

use loupe_server::{
    args,
    db::{Arg, Json},
};
use serde_json::{Value, json};

use super::{restore, take};
use crate::{
    both,
    harness::{Server, retriever},
};

async fn write(server: &Server, namespace: &str, title: &str) -> String {
    let path = "/v1/collections/things/documents";
    let body = json!({"title": title, "embedding": [1.0, 0.0, 0.0]});
    let made = server.call_in(namespace, "POST", path, body).await.ok();
    made["document_id"].as_str().unwrap().to_owned()
}

/// Annotates a document; answers the path of the annotation.
async fn decide(server: &Server, namespace: &str, body: Value) -> String {
    let path = "/v1/annotations";
    let made = server.call_in(namespace, "POST", path, body).await.ok();
    format!("{path}/{}", made["annotation_id"].as_str().unwrap())
}

/// The labels that retrievers read, each with the document that it is of.
async fn signal(server: &Server, namespace: &str) -> Vec<(String, String)> {
    let path = "/v1/collections/loupe_document_annotations/documents/list";
    let listed = server.call_in(namespace, "POST", path, json!({})).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let listed = listed.ok()["results"].as_array().unwrap().clone();
    let told = listed
        .iter()
        .map(|one| (text(&one["label"]), text(&one["annotated_document_id"])));
    let mut told: Vec<(String, String)> = told.collect();
    told.sort();
    told
}

/// Makes a snapshot one that was taken before snapshots had clusters, alerts, triggers and annotations.
async fn make_older(server: &Server, namespace: &str, snapshot: &str) {
    let id = snapshot.rsplit('/').next().unwrap().to_owned();
    let folder = server.app.config().data.join("blobs").join(namespace);
    let folder = folder.join("snapshots").join(&id);
    std::fs::remove_file(folder.join("annotations.ndjson")).unwrap();
    let file = folder.join("resources.json");
    let mut rows: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for kind in ["clusters", "alerts", "triggers"] {
        rows.as_object_mut().unwrap().remove(kind).unwrap();
    }
    std::fs::write(&file, rows.to_string()).unwrap();
    let written = server.app.db().write(move |tx| {
        Box::pin(async move {
            let find = "SELECT data FROM snapshots WHERE id = $1";
            let found: Option<(Json<Value>,)> = tx.one(find, args![&id]).await?;
            let mut data = found.unwrap().0.0;
            let digests = &mut data["manifest"]["frontier"]["digests"];
            let digests = digests.as_object_mut().unwrap();
            digests.remove("annotations.ndjson").unwrap();
            let update = "UPDATE snapshots SET data = $2 WHERE id = $1";
            tx.run(update, args![&id, Arg::json(&data)]).await
        })
    });
    assert_eq!(written.await.unwrap(), 1);
}

both! {
    async fn annotations_say_again_what_they_said(server) {
        let (namespace, _) = retriever(&server, "decided").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await.ok();
        let whales = write(&server, &namespace, "On whales").await;
        let on_whales = async |label: &str| decide(&server, &namespace, json!({"document_id": whales, "label": label})).await;
        let (edited, deleted, left) = (on_whales("relevant").await, on_whales("funny").await, on_whales("long").await);
        call("PATCH", &edited, json!({"confidence": 0.9})).await;
        let snapshot = take(&server, &namespace, json!({})).await;
        let manifest = server.call("GET", &snapshot, Value::Null).await.ok()["manifest"].clone();
        assert_eq!(manifest["mongo_collections"]["annotations"], 3, "{manifest:#}");

        call("PATCH", &edited, json!({"label": "irrelevant", "reasoning": "after"})).await;
        call("DELETE", &deleted, Value::Null).await;
        let since = on_whales("new").await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        let found = call("GET", &edited, Value::Null).await;
        let said = [&found["label"], &found["confidence"], &found["reasoning"], &found["version"]];
        assert_eq!(said, [&json!("relevant"), &json!(0.9), &Value::Null, &json!(4)], "{found:#}");
        // What it said meanwhile stays readable.
        assert_eq!(call("GET", &format!("{edited}/versions/3"), Value::Null).await["label"], "irrelevant");
        assert_eq!(call("GET", &format!("{edited}/versions"), Value::Null).await["versions"].as_array().unwrap().len(), 4);
        let found = call("GET", &deleted, Value::Null).await;
        assert_eq!((&found["label"], &found["version"]), (&json!("funny"), &json!(2)), "{found:#}");
        assert_eq!(call("GET", &format!("{deleted}/versions"), Value::Null).await["versions"].as_array().unwrap().len(), 2);
        assert_eq!(call("GET", &left, Value::Null).await["version"], 1);
        call("GET", &since, Value::Null).await;
        let labels = ["funny", "long", "new", "relevant"].map(|label| (label.to_owned(), whales.clone()));
        assert_eq!(signal(&server, &namespace).await, labels);
        let report = server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"].clone();
        assert_eq!(report["complete"], true, "{report:#}");
        // Once more there is nothing to turn back.
        let told = async || server.events("annotation.created").await.len() + server.events("annotation.updated").await.len();
        let before = told().await;
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        assert_eq!(told().await, before);
    }

    async fn an_annotation_that_nobody_remembers_is_what_was_kept_of_it(server) {
        let (namespace, _) = retriever(&server, "forgotten").await;
        let whales = write(&server, &namespace, "On whales").await;
        let path = decide(&server, &namespace, json!({"document_id": whales, "label": "relevent"})).await;
        server.call_in(&namespace, "PATCH", &path, json!({"label": "relevant"})).await.ok();
        let before = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let snapshot = take(&server, &namespace, json!({})).await;
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.app.clock().advance(91 * 86_400);
        loupe_server::v1::annotations::sweep(&server.app).await.unwrap();
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok(), before);
        let first = server.call_in(&namespace, "GET", &format!("{path}/versions/1"), Value::Null).await.ok();
        assert_eq!(first["label"], "relevent");
    }

    async fn annotations_are_copied_beside_their_documents(server) {
        let (namespace, asked) = retriever(&server, "decided").await;
        write(&server, &namespace, "On ships").await;
        let whales = write(&server, &namespace, "On whales").await;
        let body = json!({"document_id": whales, "label": "relevent", "retriever_id": asked});
        let annotation = decide(&server, &namespace, body).await;
        server.call_in(&namespace, "PATCH", &annotation, json!({"label": "relevant"})).await.ok();
        let snapshot = take(&server, &namespace, json!({})).await;
        let started = restore(&server, &snapshot, json!({"target_namespace_name": "beside"})).await;
        let other = started["target_namespace_id"].as_str().unwrap();
        let call = async |method: &str, path: &str, body: Value| server.call_in(other, method, path, body).await.ok();
        let found = call("POST", "/v1/collections/things/documents/list", json!({"filters": {"field": "title", "operator": "eq", "value": "On whales"}})).await;
        let copy = found["results"][0]["document_id"].as_str().unwrap();
        assert_ne!(copy, whales);
        let listed = call("POST", "/v1/annotations/list", json!({})).await;
        assert_eq!(listed["total_count"], 1, "{listed:#}");
        let copied = &listed["results"][0];
        assert_eq!((&copied["document_id"], &copied["label"], &copied["version"]), (&json!(copy), &json!("relevant"), &json!(2)), "{copied:#}");
        assert_eq!((&copied["namespace_id"], &copied["collection_id"]), (&json!(other), &found["results"][0]["collection_id"]));
        let retrievers = call("POST", "/v1/retrievers/list", json!({})).await;
        assert_eq!(copied["retriever_id"], retrievers["results"][0]["retriever_id"]);
        let path = format!("/v1/annotations/{}", copied["annotation_id"].as_str().unwrap());
        assert_ne!(path, annotation);
        assert_eq!(call("GET", &format!("{path}/versions/1"), Value::Null).await["label"], "relevent");
        assert_eq!(signal(&server, other).await, [("relevant".to_owned(), copy.to_owned())]);
    }

    async fn a_snapshot_of_before_is_restored_as_ever(server) {
        let (namespace, asked) = retriever(&server, "older").await;
        let whales = write(&server, &namespace, "On whales").await;
        let annotation = decide(&server, &namespace, json!({"document_id": whales, "label": "relevant"})).await;
        let snapshot = take(&server, &namespace, json!({})).await;
        make_older(&server, &namespace, &snapshot).await;
        server.call_in(&namespace, "PATCH", &annotation, json!({"label": "irrelevant"})).await.ok();
        server.call_in(&namespace, "DELETE", &format!("/v1/retrievers/{asked}"), Value::Null).await.ok();
        restore(&server, &snapshot, json!({"confirm_in_place": true})).await;
        server.call_in(&namespace, "GET", &format!("/v1/retrievers/{asked}"), Value::Null).await.ok();
        assert_eq!(server.call_in(&namespace, "GET", &annotation, Value::Null).await.ok()["label"], "irrelevant");
        let started = restore(&server, &snapshot, json!({"target_namespace_name": "beside"})).await;
        let other = started["target_namespace_id"].as_str().unwrap();
        let listed = server.call_in(other, "POST", "/v1/annotations/list", json!({})).await.ok();
        assert_eq!(listed["total_count"], 0);
        let report = server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"].clone();
        assert_eq!((&report["complete"], &report["vector_restored"]), (&json!(true), &json!(1)), "{report:#}");
    }
}
