//! What batches make of objects that change, that fit one collection of several, and of requests that name what is not
//! there.

use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object, process},
    both,
};

both! {
    async fn an_object_for_one_of_two_collections_is_not_failed_by_the_other(server) {
        let namespace = server.namespace("two kinds").await;
        let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}, "summary": {"type": "text"}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": "files", "bucket_schema": schema})).await.ok();
        let bucket = bucket["bucket_id"].as_str().unwrap().to_owned();
        for property in ["text", "summary"] {
            let collection = json!({
                "collection_name": format!("of {property}"), "source": {"type": "bucket", "bucket_ids": [bucket]},
                "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": property}},
            });
            server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        }
        let blob = |property: &str| json!({"property": property, "type": "text", "data": "a few words"});
        object(&server, &namespace, &bucket, "one", blob("text")).await;
        object(&server, &namespace, &bucket, "other", blob("summary")).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!((batch["documents_written"].as_i64(), batch["failed_object_count"].as_i64()), (Some(2), Some(0)));
        // Again: nothing changed, so nothing is to do, and nothing fails.
        let again = process(&server, &namespace, &bucket).await;
        assert_eq!(again["status"], "COMPLETED", "{again:#}");
        assert_eq!(again["progress"]["objects_skipped"], 2);
        // An object that no collection takes still fails, with the reason.
        let body = json!({"title": "nothing"});
        server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects"), body).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");
        assert!(batch["failed_objects"][0]["error"].as_str().unwrap().contains("nothing for the extractor's input"), "{batch:#}");
    }

    async fn an_object_that_changes_and_fails_says_that_its_old_documents_stay(server) {
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let unique = json!({"unique_key": {"fields": ["title"], "default_policy": "upsert"}, "bucket_name": "unique",
            "bucket_schema": {"properties": {"title": {"type": "string"}, "image": {"type": "image"}}}});
        let unique = server.call_in(&namespace, "POST", "/v1/buckets", unique).await.ok();
        let unique = unique["bucket_id"].as_str().unwrap().to_owned();
        let own = json!({"collection_name": "own", "source": {"type": "bucket", "bucket_ids": [unique]},
            "feature_extractor": {"feature_extractor_name": "image_extractor", "version": "v1"}});
        let own = server.call_in(&namespace, "POST", "/v1/collections", own).await.ok()["collection_id"].as_str().unwrap().to_owned();
        let picture = |bytes: &[u8]| {
            use base64::{Engine, engine::general_purpose::STANDARD};
            json!({"property": "image", "type": "image", "data": STANDARD.encode(bytes), "metadata": {"filename": "a.png"}})
        };
        object(&server, &namespace, &unique, "one", picture(&crate::batches::red_square())).await;
        assert_eq!(process(&server, &namespace, &unique).await["status"], "COMPLETED");
        object(&server, &namespace, &unique, "one", picture(b"no picture")).await;
        let batch = process(&server, &namespace, &unique).await;
        assert_eq!(batch["status"], "FAILED", "{batch:#}");
        let error = batch["failed_objects"][0]["error"].as_str().unwrap();
        assert!(error.ends_with("the collection keeps the documents of the object as it was before"), "{error}");
        let count = server.call_in(&namespace, "GET", &format!("/v1/collections/{own}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 1);
        // The first failure of an object keeps nothing, and does not say so.
        object(&server, &namespace, &bucket, "two", picture(b"no picture")).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert!(!batch["failed_objects"][0]["error"].as_str().unwrap().contains("keeps"), "{batch:#} {collection}");
    }

    async fn batches_name_what_is_there_and_are_found_by_it(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let blob = json!({"property": "text", "type": "text", "data": "words"});
        let mut ids = Vec::new();
        for title in ["one", "two", "three"] {
            ids.push(object(&server, &namespace, &bucket, title, blob.clone()).await);
        }
        let batches = format!("/v1/buckets/{bucket}/batches");
        let make = |body: Value| { let (server, namespace, batches) = (&server, &namespace, &batches); async move { server.call_in(namespace, "POST", batches, body).await } };
        make(json!({"object_ids": ids, "collection_ids": ["col_unknown"]})).await.error(404, "NotFoundError");
        let mut unknown = ids.clone();
        unknown.push("obj_unknown".into());
        let refused = make(json!({"object_ids": unknown})).await.error(404, "NotFoundError");
        assert_eq!(refused["error"]["details"]["id"], "obj_unknown");
        // Names are ids from then on.
        let named = make(json!({"object_ids": ids, "collection_ids": ["documents"]})).await.ok();
        assert_eq!(named["collection_ids"], json!([collection]));
        make(json!({"object_ids": ids})).await.ok();
        for (wanted, count) in [(collection.as_str(), 1), ("col_unknown", 0), ("%", 0), ("col_%", 0)] {
            let list = server.call_in(&namespace, "POST", "/v1/batches/list", json!({"collection_id": wanted})).await.ok();
            assert_eq!((list["total_count"].as_i64(), list["results"].as_array().unwrap().len()), (Some(count), count as usize), "{wanted}");
        }
        // A page of them leads to the next.
        let page = async |body: Value| server.call_in(&namespace, "POST", "/v1/batches/list", body).await;
        let first = page(json!({"limit": 1})).await.ok();
        let next = first["pagination"]["next_cursor"].as_str().unwrap();
        let second = page(json!({"limit": 1, "cursor": next})).await.ok();
        assert_ne!(first["results"][0]["batch_id"], second["results"][0]["batch_id"]);
        assert_eq!((second["results"].as_array().unwrap().len(), second["pagination"].get("next_cursor")), (1, None), "{second:#}");
        page(json!({"cursor": "elsewhere"})).await.invalid(&["query", "cursor"], "cursor_invalid");
        let id = named["batch_id"].as_str().unwrap();
        let without = json!({"include_processing_history": false});
        server.call_in(&namespace, "POST", &format!("{batches}/{id}/submit"), without).await.invalid(&["body", "include_processing_history"], "not_enabled");
        server.call_in(&namespace, "POST", &format!("{batches}/{id}/submit"), json!({})).await.ok();
        ended(&server, &namespace, &format!("{batches}/{id}")).await;
    }

    async fn many_objects_are_added_to_a_batch_at_once(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let objects: Vec<Value> = (0..70).map(|number| json!({"title": number.to_string()})).collect();
            let made = server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects/batch"), json!({"objects": objects})).await.ok();
            ids.extend(made["succeeded"].as_array().unwrap().iter().map(|one| one["object_id"].as_str().unwrap().to_owned()));
        }
        let batches = format!("/v1/buckets/{bucket}/batches");
        let draft = server.call_in(&namespace, "POST", &batches, json!({"object_ids": ids[..1]})).await.ok();
        let path = format!("{batches}/{}/objects", draft["batch_id"].as_str().unwrap());
        let whole = server.call_in(&namespace, "POST", &path, json!({"object_ids": ids})).await.ok();
        assert_eq!(whole["object_ids"].as_array().unwrap().len(), ids.len());
        let mut unknown = ids.clone();
        unknown[150] = "obj_unknown".into();
        let refused = server.call_in(&namespace, "POST", &path, json!({"object_ids": unknown})).await.error(404, "NotFoundError");
        assert_eq!(refused["error"]["details"]["id"], "obj_unknown");
    }

    async fn faults_of_a_confirmation_are_told_at_their_place(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let body = json!({"confirmations": [{"upload_id": "upl_a"}, {"upload_id": "upl_b", "file_size_bytes": "many"}]});
        let path = format!("/v1/buckets/{bucket}/uploads/confirm/batch");
        let answer = server.call_in(&namespace, "POST", &path, body).await;
        assert_eq!(answer.status, 422, "{:#}", answer.body);
        assert_eq!(answer.body["detail"][0]["loc"], json!(["body", "confirmations", "1", "file_size_bytes"]), "{:#}", answer.body);
    }
}
