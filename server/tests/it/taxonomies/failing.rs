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

    async fn copies_without_room_are_told_of_and_their_documents_stay(server) {
        let shop = shop(&server, "full").await;
        let id = shop.make(&server, shop.flat("kinds", tax_and_facts())).await;
        let shelf = collection(&server, &shop.namespace, "shelf", &[]).await;
        let written = json!({"collection_name": "written", "source": {"type": "direct_upsert"},
            "taxonomy_applications": [{"taxonomy_id": id, "target_collection_id": "shelf"}],
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        shop.call(&server, "POST", "/v1/collections", written).await.ok();
        // With the two kinds there is room for a document with its copy, and for one more document.
        crate::quotas::put_away(&server, 999_995).await;
        crate::quotas::set(&server, "pro", false).await;
        let write = async |name: &str| {
            let document = json!({"name": name, "article": {"code": "f"}});
            shop.call(&server, "POST", "/v1/collections/written/documents", document).await
        };
        write("apple").await.ok();
        assert_eq!(shop.documents(&server, &shelf).await.len(), 1);
        let pear = write("pear").await.ok();
        let lineage = &pear["_internal"]["processing"]["taxonomy_lineage"];
        assert!(lineage[0]["error"].as_str().unwrap().contains("quota of documents"), "{pear:#}");
        assert_eq!(shop.documents(&server, &shelf).await.len(), 1);
        write("plum").await.error(403, "QuotaExceededError");
    }
}
