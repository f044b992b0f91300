//! Triggers on what is added: it counts however it is added, and once.

use serde_json::{Value, json};

use super::{counted, id, make, search, write};
use crate::{
    batches::{object, process},
    both,
    harness::{Database, Server, retriever},
    queue::beside,
};

/// A trigger that counts this and never gets enough.
async fn counter(server: &Server, namespace: &str, retriever: &str, event: &str) -> String {
    let schedule = json!({"event_type": event, "event_threshold": 1_000});
    id(&make(server, namespace, search(retriever, "event", schedule)).await)
}

/// A bucket, and a collection of what is in it.
async fn files(server: &Server, namespace: &str) -> String {
    let post =
        async |path: &str, body: Value| server.call_in(namespace, "POST", path, body).await.ok();
    let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}}});
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
    let bucket = post("/v1/buckets", bucket).await["bucket_id"].clone();
    let collection = json!({
        "collection_name": "made", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "field_passthrough": [{"source_path": "title"}]},
    });
    post("/v1/collections", collection).await;
    bucket.as_str().unwrap().to_owned()
}

fn text(data: &str) -> Value {
    json!({"property": "text", "type": "text", "data": data})
}

both! {
    async fn what_is_added_counts_however_it_is_added(server) {
        let (namespace, retriever) = retriever(&server, "added").await;
        let bucket = files(&server, &namespace).await;
        let documents = counter(&server, &namespace, &retriever, "documents_added").await;
        let objects = counter(&server, &namespace, &retriever, "objects_added").await;
        object(&server, &namespace, &bucket, "one", text("one")).await;
        let many: Vec<Value> = ["two", "three", "four"].into_iter().map(|title| json!({"title": title, "blobs": [text(title)]})).collect();
        let path = format!("/v1/buckets/{bucket}/objects/batch");
        server.call_in(&namespace, "POST", &path, json!({"objects": many})).await.ok();
        counted(&server, &namespace, &objects, 4).await;
        write(&server, &namespace, "by itself").await;
        counted(&server, &namespace, &documents, 1).await;
        // What a batch writes is told of once.
        process(&server, &namespace, &bucket).await;
        let path = "/v1/collections/made/documents/count";
        let made = server.call_in(&namespace, "GET", path, Value::Null).await.ok();
        assert_eq!(made["count"], 4, "{made:#}");
        write(&server, &namespace, "after it").await;
        counted(&server, &namespace, &documents, 6).await;
        counted(&server, &namespace, &objects, 4).await;
        // Objects are of no collection, however they are added.
        let schedule = json!({"event_type": "objects_added", "collection_id": "made"});
        server.call_in(&namespace, "POST", "/v1/triggers", search(&retriever, "event", schedule)).await
            .invalid(&["body", "schedule_config", "collection_id"], "value_error");
        let schedule = json!({"event_type": "documents_added", "collection_id": "made"});
        make(&server, &namespace, search(&retriever, "event", schedule)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_count_what_is_added_once() {
    let first = Server::start(Database::Postgres).await;
    let (second, third) = (beside(&first).await, beside(&first).await);
    let (namespace, retriever) = retriever(&first, "added").await;
    let id = counter(&first, &namespace, &retriever, "documents_added").await;
    let add = async |server: &Server| {
        for number in 0..10 {
            write(server, &namespace, &format!("book {number}")).await;
            loupe_server::v1::triggers::count_events(&server.app)
                .await
                .unwrap();
        }
    };
    tokio::join!(add(&first), add(&second), add(&third));
    let trigger = counted(&second, &namespace, &id, 30).await;
    assert_eq!(trigger["execution_count"], 0);
}
