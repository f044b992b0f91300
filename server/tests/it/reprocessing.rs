//! Objects that are processed again after they changed.

use serde_json::{Value, json};

use crate::{batches::process, both};

both! {
    async fn a_shorter_text_leaves_no_chunk_of_the_longer_one(server) {
        let namespace = server.namespace("notes").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let bucket = bucket["bucket_id"].as_str().unwrap();
        let collection = json!({
            "collection_name": "chunks",
            "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {
                "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "note"},
                "parameters": {"split_by": "words", "chunk_size": 2, "chunk_overlap": 0},
            },
        });
        server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        let objects = format!("/v1/buckets/{bucket}/objects");
        let mut ids = Vec::new();
        for note in ["one two three four five six", "seven eight nine ten"] {
            let made = server.call_in(&namespace, "POST", &objects, json!({ "note": note })).await.ok();
            ids.push(made["object_id"].as_str().unwrap().to_owned());
        }
        let chunks = async || {
            let path = "/v1/collections/chunks/documents/list";
            let list = server.call_in(&namespace, "POST", path, json!({"limit": 100})).await.ok();
            let documents = list["results"].as_array().unwrap();
            let mut texts: Vec<String> =
                documents.iter().map(|document| document["text"].as_str().unwrap().to_owned()).collect();
            texts.sort();
            texts
        };
        process(&server, &namespace, bucket).await;
        assert_eq!(chunks().await, ["five six", "nine ten", "one two", "seven eight", "three four"]);

        // The one that changed is made anew; the one that did not keeps its documents.
        let path = format!("{objects}/{}", ids[0]);
        server.call_in(&namespace, "PATCH", &path, json!({"note": "eleven twelve"})).await.ok();
        let batch = process(&server, &namespace, bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!(batch["progress"]["objects_skipped"], 1, "{batch:#}");
        assert_eq!(chunks().await, ["eleven twelve", "nine ten", "seven eight"]);
        let count = server.call_in(&namespace, "GET", "/v1/collections/chunks/documents/count", Value::Null).await.ok();
        assert_eq!(count["count"], 3);
        // Whoever follows the feed has what the collection has.
        let gone = server.events("documents.deleted.batch").await;
        assert_eq!((gone.len(), &gone[0]["payload"]["count"]), (1, &json!(2)), "{gone:#?}");
        assert_eq!((&batch["documents_deleted"], &batch["tier_tasks"][0]["documents_deleted"]), (&json!(2), &json!(2)), "{batch:#}");
        let mut held = std::collections::BTreeSet::new();
        for event in server.events("collection.documents.written").await {
            held.extend(event["payload"]["document_ids"].as_array().unwrap().clone().into_iter().map(|id| id.to_string()));
        }
        for id in gone[0]["payload"]["document_ids"].as_array().unwrap() {
            assert!(held.remove(&id.to_string()), "{id} was told of before");
        }
        let list = server.call_in(&namespace, "POST", "/v1/collections/chunks/documents/list", json!({"limit": 100})).await.ok();
        let listed = list["results"].as_array().unwrap().iter().map(|one| one["document_id"].to_string());
        assert_eq!(listed.collect::<std::collections::BTreeSet<_>>(), held);
    }
}
