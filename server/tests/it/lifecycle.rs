//! What a collection is for at the moment, and its schema brought up to its documents.

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
    stages,
};

const THINGS: &str = "/v1/collections/things";

async fn change(server: &Server, namespace: &str, state: &str) -> Value {
    let body = json!({"lifecycle_state": state, "async_transition": false});
    let path = format!("{THINGS}/lifecycle");
    let told = server.call_in(namespace, "PATCH", &path, body).await.ok();
    assert_eq!(told["lifecycle_state"], state, "{told:#}");
    assert!(told.get("task_id").is_none(), "{told:#}");
    told
}

async fn search(server: &Server, namespace: &str, retriever: &str) -> Value {
    let path = format!("/v1/retrievers/{retriever}/execute");
    let body = json!({"inputs": {}, "skip_cache": true});
    server.call_in(namespace, "POST", &path, body).await.ok()
}

fn found(answer: &Value) -> usize {
    answer["documents"].as_array().unwrap().len()
}

async fn filled(server: &Server) -> (String, String) {
    let (namespace, retriever) = crate::harness::retriever(server, "lifecycle").await;
    for number in 0..3 {
        let vectors = json!({"own": [1.0, number, 0.0]});
        let body = json!({"title": format!("thing {number}"), "vectors": vectors});
        let path = format!("{THINGS}/documents");
        server.call_in(&namespace, "POST", &path, body).await.ok();
    }
    (namespace, retriever)
}

both! {
    async fn a_cold_collection_is_searched_and_gets_nothing(server) {
        let (namespace, retriever) = filled(&server).await;
        let told = server.call_in(&namespace, "GET", &format!("{THINGS}/lifecycle"), Value::Null).await.ok();
        assert_eq!((&told["lifecycle_state"], &told["vector_document_count"]), (&json!("active"), &json!(3)), "{told:#}");
        let told = change(&server, &namespace, "cold").await;
        assert!(told["last_transitioned_at"].is_string() && told["warning"].is_string(), "{told:#}");
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 3);
        let list = server.call_in(&namespace, "GET", &format!("{THINGS}/documents"), Value::Null).await.ok();
        let document = list["results"][0]["document_id"].as_str().unwrap().to_owned();
        for (method, path, body) in [
            ("POST", format!("{THINGS}/documents"), json!({"title": "new"})),
            ("PATCH", format!("{THINGS}/documents/{document}"), json!({"title": "changed"})),
            ("DELETE", format!("{THINGS}/documents/{document}"), Value::Null),
        ] {
            let refused = server.call_in(&namespace, method, &path, body).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "collection_not_active");
        }
        change(&server, &namespace, "active").await;
        server.call_in(&namespace, "POST", &format!("{THINGS}/documents"), json!({"title": "new", "vectors": {"own": [0.0, 0.0, 1.0]}})).await.ok();
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 4);
        assert_eq!(server.call_in(&namespace, "PATCH", &format!("{THINGS}/lifecycle"), json!({"lifecycle_state": "lukewarm"})).await.status, 422);
        server.call_in(&namespace, "GET", "/v1/collections/nowhere/lifecycle", Value::Null).await.error(404, "NotFoundError");
    }

    async fn an_archived_collection_lies_in_a_file_until_it_is_brought_back(server) {
        let (namespace, retriever) = filled(&server).await;
        let told = change(&server, &namespace, "archived").await;
        assert_eq!((&told["vector_document_count"], &told["s3_vector_count"]), (&json!(0), &json!(3)), "{told:#}");
        let file = told["s3_vector_index"].as_str().unwrap().to_owned();
        assert_eq!(server.files(&file), std::slice::from_ref(&file));
        let shown = server.call_in(&namespace, "GET", THINGS, Value::Null).await.ok();
        assert_eq!((&shown["lifecycle_state"], &shown["document_count"]), (&json!("archived"), &json!(3)));
        let answer = search(&server, &namespace, &retriever).await;
        assert_eq!(found(&answer), 0);
        assert!(answer["warnings"][0].as_str().unwrap().contains("archived"), "{answer:#}");
        for path in [format!("{THINGS}/documents"), format!("{THINGS}/documents/doc_1")] {
            let refused = server.call_in(&namespace, "GET", &path, Value::Null).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "collection_archived");
        }
        let clone = json!({"collection_name": "things again"});
        server.call_in(&namespace, "POST", &format!("{THINGS}/clone"), clone).await.error(409, "ConflictError");

        // What was written through the API does not come back by itself, and a snapshot holds it.
        let server = server.restart().await;
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 0);
        let snapshots = format!("/v1/namespaces/{namespace}/snapshots");
        let taken = server.call("POST", &snapshots, json!({})).await.ok();
        server.task_end(taken["task_id"].as_str().unwrap()).await;
        let snapshot = format!("{snapshots}/{}", taken["snapshot_id"].as_str().unwrap());
        let restored = server.call("POST", &format!("{snapshot}/restore"), json!({"target_namespace_name": "before"})).await.ok();
        server.task_end(restored["task_id"].as_str().unwrap()).await;
        let other = restored["target_namespace_id"].as_str().unwrap();
        let shown = server.call_in(other, "GET", THINGS, Value::Null).await.ok();
        assert_eq!((&shown["lifecycle_state"], &shown["document_count"]), (&json!("active"), &json!(3)), "{shown:#}");

        // Frozen is archived, and not to be deleted.
        change(&server, &namespace, "frozen").await;
        let refused = server.call_in(&namespace, "DELETE", THINGS, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "collection_frozen");
        let told = change(&server, &namespace, "cold").await;
        assert_eq!((&told["vector_document_count"], told.get("s3_vector_index")), (&json!(3), None), "{told:#}");
        assert!(server.files(&file).is_empty());
        let near = json!({"retriever_name": "near", "collection_identifiers": ["things"], "input_schema": {}, "stages": [
            {"stage_name": "near", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 2.0, 0.0]}, "top_k": 1}], "final_top_k": 1}}}]});
        let near = server.call_in(&namespace, "POST", "/v1/retrievers", near).await.ok();
        let answer = search(&server, &namespace, near["retriever_id"].as_str().unwrap()).await;
        assert_eq!(answer["documents"][0]["title"], "thing 2", "{answer:#}");
        change(&server, &namespace, "active").await;
        change(&server, &namespace, "archived").await;
        server.call_in(&namespace, "DELETE", THINGS, Value::Null).await.ok();
        server.files_become(&file, 0).await;
    }

    async fn batches_pass_over_what_is_not_active(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        object(&server, &namespace, &bucket, "one", json!({"property": "text", "type": "text", "data": "a few words"})).await;
        let path = format!("/v1/collections/{collection}/lifecycle");
        server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "cold"})).await.ok();
        let trigger = format!("/v1/collections/{collection}/trigger");
        server.call_in(&namespace, "POST", &trigger, json!({})).await.error(409, "ConflictError");
        let batches = format!("/v1/buckets/{bucket}/batches");
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let submit = format!("{batches}/{}/submit", draft["batch_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &submit, json!({})).await.error(400, "BadRequestError");
        server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "active"})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(1)), "{batch:#}");
    }

    async fn a_schema_learns_the_fields_of_its_documents(server) {
        let namespace = server.namespace("schemas").await;
        let documents = [json!({"title": "M", "year": 1931}), json!({"title": "Faust", "year": 1926.5, "silent": true})];
        let films = stages::collection(&server, &namespace, "films", &documents).await;
        let over = json!({"collection_name": "over", "source": {"type": "collection", "collection_ids": [films]}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1", "include_all_source_fields": true}});
        let over = server.call_in(&namespace, "POST", "/v1/collections", over).await.ok()["collection_id"].clone();
        let path = format!("/v1/collections/{films}/sync-schema");
        let told = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
        assert_eq!((&told["previous_version"], &told["schema_version"], &told["documents_sampled"]), (&json!(1), &json!(2), &json!(2)), "{told:#}");
        let mut added: Vec<&str> = told["fields_added"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        added.sort_unstable();
        assert_eq!(added, ["silent", "title", "year"], "{told:#}");
        assert_eq!(told["downstream_collections_updated"], json!([over]));
        let shown = server.call_in(&namespace, "GET", "/v1/collections/films", Value::Null).await.ok();
        let properties = &shown["output_schema"]["properties"];
        assert_eq!((&properties["year"]["type"], &properties["silent"]["type"]), (&json!("number"), &json!("boolean")), "{shown:#}");
        assert!(shown["last_schema_sync"].is_string());
        let shown = server.call_in(&namespace, "GET", "/v1/collections/over", Value::Null).await.ok();
        assert_eq!(shown["input_schema"]["properties"]["title"]["type"], "string", "{shown:#}");
        assert_eq!(shown["output_schema"]["properties"]["title"]["type"], "string", "{shown:#}");

        let again = server.call_in(&namespace, "POST", &path, json!({"sample_size": 1})).await.ok();
        assert_eq!((&again["fields_added"], &again["schema_version"], &again["documents_sampled"]), (&json!([]), &json!(2), &json!(1)), "{again:#}");
        server.call_in(&namespace, "PATCH", "/v1/collections/films", json!({"schema_sync_enabled": false})).await.ok();
        let skipped = server.call_in(&namespace, "POST", &path, json!({})).await.ok();
        assert_eq!((&skipped["skipped"], &skipped["schema_version"]), (&json!(true), &json!(2)), "{skipped:#}");
        assert!(skipped["last_sync"].is_string() && skipped["reason"].is_string());
        let forced = server.call_in(&namespace, "POST", &path, json!({"force": true})).await.ok();
        assert_eq!(forced["documents_sampled"], 2, "{forced:#}");
        server.call_in(&namespace, "POST", &path, json!({"sample_size": 0})).await.invalid(&["body", "sample_size"], "greater_than_equal");
    }
}
