//! Alerts that have what they find processed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::applied::titled;
use super::{fired, id, is_delivered, make, results};
use crate::{
    batches::{ended, library, object, process},
    both,
    harness::Server,
};

/// An alert that has objects processed again whose documents have the title of one that was just written; answers its id.
async fn processing(server: &Server, namespace: &str, bucket: &str) -> String {
    let retriever = titled(server, namespace, "documents").await;
    let config =
        json!({"bucket_id": bucket, "collection_id": "documents", "dedup_strategy": "force"});
    let alert = json!({
        "name": "again", "retriever_id": retriever, "execution_mode": "on_demand", "cooldown_seconds": 0,
        "notification_config": {"channels": [{"channel_type": "batch", "config": config}]},
    });
    let id = id(&make(server, namespace, alert).await);
    let query =
        json!({"input_key": "query", "source": {"source_type": "document_field", "path": "title"}});
    let applied = json!({"alert_applications": [
        {"alert_id": id, "execution_mode": "on_ingest", "input_mappings": [query]},
    ]});
    let path = "/v1/collections/documents";
    server.call_in(namespace, "PATCH", path, applied).await.ok();
    id
}

/// The batches of the bucket, once there are so many and all have ended.
async fn batches(server: &Server, namespace: &str, bucket: &str, count: usize) {
    let (path, start) = (format!("/v1/buckets/{bucket}/batches"), Instant::now());
    let list = loop {
        let list = server
            .call_in(namespace, "POST", &format!("{path}/list"), json!({}))
            .await
            .ok();
        let list = list["results"].as_array().unwrap().clone();
        assert!(list.len() <= count, "{list:#?}");
        if list.len() == count {
            break list;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{list:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    for batch in list {
        let id = batch["batch_id"].as_str().unwrap();
        ended(server, namespace, &format!("{path}/{id}")).await;
    }
}

fn text(data: &str) -> Value {
    json!({"property": "text", "type": "text", "data": data})
}

both! {
    async fn what_is_found_is_processed_and_not_again_for_that(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let alert = processing(&server, &namespace, &bucket).await;
        for (number, title) in ["red", "blue"].into_iter().enumerate() {
            let object = object(&server, &namespace, &bucket, title, text(title)).await;
            process(&server, &namespace, &bucket).await;
            fired(&server, number + 1).await;
            let about = |look: &Value| look["matches"][0]["asset_id"] == object.as_str() && is_delivered(look);
            results(&server, &namespace, &alert, about).await;
            // The one of people, and the one that the alert made.
            batches(&server, &namespace, &bucket, 2 * (number + 1)).await;
        }
        assert_eq!(server.events("alert.triggered").await.len(), 2);
    }
}
