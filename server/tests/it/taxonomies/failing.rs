//! Taxonomies that cannot be applied.

use std::time::{Duration, Instant};

use super::*;

both! {
    async fn a_task_that_fails_is_told_to_the_feed(server) {
        let shop = shop(&server, "failing").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let things = [json!({"name": "apple", "article": {"code": "f"}})];
        let things = collection(&server, &shop.namespace, "things", &things).await;
        shop.call(&server, "DELETE", &format!("/v1/retrievers/{}", shop.finder), Value::Null).await.ok();
        let path = format!("/v1/collections/{things}/apply-taxonomy");
        let begun = shop.call(&server, "POST", &path, json!({"taxonomy_id": id})).await.ok();
        let task = server.task_end(begun["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "FAILED", "{task:#}");
        let start = Instant::now();
        let event = loop {
            if let Some(event) = server.events("resource.execution_failed").await.pop() {
                break event;
            }
            assert!(start.elapsed().as_secs() < 180, "the change feed is not told");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let told = &event["payload"];
        assert_eq!((&event["resource_type"], &event["operation"]), (&json!("resource"), &json!("other")));
        assert_eq!((&told["resource_type"], &told["resource_id"], &told["collection_id"]), (&json!("taxonomy"), &json!(id), &json!(things)), "{told:#}");
        assert_eq!(told["task_id"], begun["task_id"]);
        assert!(!told["error"].as_str().unwrap().is_empty(), "{told:#}");
        assert!(server.events("resource.executed").await.is_empty());
    }
}
