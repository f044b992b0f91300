//! Syncs with a filter of their own: it judges what they bring, in place of the bucket's.

use super::*;
use crate::{
    batches::process,
    stages::{collection, stage},
};

/// Makes a retriever that finds a letter which has one of these texts; answers its id.
async fn knowing(server: &Server, place: &Place, name: &str, texts: &[&str]) -> String {
    let known: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    let known = collection(server, &place.namespace, &format!("{name} texts"), &known).await;
    let condition = json!({"field": "text", "operator": "eq", "value": "{{INPUT.letter}}"});
    let finder = json!({
        "retriever_name": name, "collection_identifiers": [known], "input_schema": {"letter": {"type": "text", "required": true}},
        "stages": [stage("attribute_filter", json!({"conditions": {"AND": [condition]}}))],
    });
    let made = place.call(server, "POST", "/v1/retrievers", finder).await;
    made["retriever_id"].as_str().unwrap().to_owned()
}

both! {
    async fn a_sync_lets_in_what_its_own_filter_finds(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        let body = json!({
            "collection_name": "letters", "source": {"type": "bucket", "bucket_ids": [place.bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let letters = place.call(&server, "POST", "/v1/collections", body).await;
        let documents = format!("/v1/collections/{}/documents", letters["collection_id"].as_str().unwrap());
        let count = format!("{documents}/count");
        let finder = knowing(&server, &place, "of the sync", &["dear all"]).await;
        knowing(&server, &place, "of the bucket", &["dear none"]).await;
        let bucket = format!("/v1/buckets/{}", place.bucket);
        place.call(&server, "PATCH", &bucket, json!({"ingest_filter": {"retriever_id": "of the bucket"}})).await;
        place.put("in/a.txt", "dear all");
        place.put("in/b.txt", "dear none");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "ingest_filter": {"retriever_id": "of the sync"}})).await;
        let made = place.still(&server, &sync).await;
        assert_eq!(made["ingest_filter"]["retriever_id"], finder, "names become ids: {made:#}");
        looking::documents_are(&server, &place, &count, 1).await;
        let first = place.objects(&server).await[0]["object_id"].clone();
        let list = place.call(&server, "GET", &documents, Value::Null).await;
        assert_eq!(list["results"][0]["_internal"]["lineage"]["root_object_id"], first, "{list:#}");

        // What comes another way is judged by the bucket's filter, in the same batch.
        // Whoever names the sync has not been brought by it.
        let id = made["sync_config_id"].clone();
        let letter = json!({"property": "letter", "type": "text", "data": "dear none", "metadata": {"sync_config_id": id, "page": 1}});
        place.call(&server, "POST", &format!("{bucket}/objects"), json!({"blobs": [letter]})).await;
        let batch = process(&server, &place.namespace, &place.bucket).await;
        assert_eq!(batch["failed_object_count"], 0, "{batch:#}");
        looking::documents_are(&server, &place, &count, 2).await;

        // Another change leaves the filter, null takes it away: the bucket's judges what was left out.
        let same = place.call(&server, "PATCH", &sync, json!({"description": "letters"})).await;
        assert_eq!(same["ingest_filter"]["retriever_id"], finder, "{same:#}");
        let none = place.call(&server, "PATCH", &sync, json!({"ingest_filter": null})).await;
        assert_eq!(none.get("ingest_filter"), None, "{none:#}");
        process(&server, &place.namespace, &place.bucket).await;
        looking::documents_are(&server, &place, &count, 3).await;
    }
}
