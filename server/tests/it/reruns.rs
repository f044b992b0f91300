//! Triggers that process a batch again: what failed of it, or its objects in a new one.

use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object, process},
    both,
    harness::Server,
};

/// Fires a trigger that processes a batch again; answers its task once that ended.
async fn fired(server: &Server, namespace: &str, action: Value) -> Value {
    let body = json!({"name": "again", "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600},
        "action_type": "batch_rerun", "action_config": action});
    let made = server
        .call_in(namespace, "POST", "/v1/triggers", body)
        .await
        .ok();
    let path = format!(
        "/v1/triggers/{}/execute",
        made["trigger_id"].as_str().unwrap()
    );
    let task = server
        .call_in(namespace, "POST", &path, Value::Null)
        .await
        .ok();
    // It is no batch's own task, which says what the batch is of.
    assert_eq!(task["task_type"], "api_buckets_batches_submit", "{task:#}");
    let task = server.task_end(task["task_id"].as_str().unwrap()).await;
    let path = path.replace("/execute", "/history");
    let past = server.call_in(namespace, "GET", &path, Value::Null).await;
    let past = past.ok()["executions"][0].clone();
    // Why nothing was done is said wherever the firing is told of.
    assert_eq!(past["status"], task["status"], "{past:#}");
    assert_eq!(
        past.get("error"),
        task["additional_data"].get("skipped"),
        "{past:#}"
    );
    task
}

async fn count(server: &Server, namespace: &str, collection: &str) -> Value {
    let path = format!("/v1/collections/{collection}/documents/count");
    let told = server.call_in(namespace, "GET", &path, Value::Null).await;
    told.ok()["count"].clone()
}

both! {
    async fn a_trigger_processes_again_what_failed(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        for title in ["red", "blue"] {
            let text = json!({"property": "text", "type": "text", "data": format!("a text under {title}")});
            object(&server, &namespace, &bucket, title, text).await;
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let id = batch["batch_id"].as_str().unwrap();
        let again = json!({"batch_id": id, "retry_failed_only": true});
        // Where nothing failed there is nothing to do again, and no trigger to blame.
        let task = fired(&server, &namespace, again.clone()).await;
        assert_eq!((&task["status"], &task["additional_data"]["skipped"]), (&json!("SKIPPED"), &json!("no failed object can be retried")), "{task:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{id}/retry");
        server.call_in(&namespace, "POST", &path, Value::Null).await.error(400, "BadRequestError");
        let fail = "UPDATE batch_objects SET status = 'FAILED', error = 'broken', error_type = 'permanent' WHERE batch_id = $1 AND position = 0";
        let broken = id.to_owned();
        let failed = server.app.db().write(move |tx| Box::pin(async move { tx.run(fail, loupe_server::args![broken]).await }));
        assert_eq!(failed.await.unwrap(), 1);

        let task = fired(&server, &namespace, again).await;
        // Of two objects one failed, and one is done again.
        assert_eq!((&task["status"], &task["outputs"][0]["objects"]), (&json!("COMPLETED"), &json!(1)), "{task:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{id}");
        let after = ended(&server, &namespace, &path).await;
        assert_eq!((&after["status"], &after["failed_object_count"], &after["task_id"]), (&json!("COMPLETED"), &json!(0), &task["outputs"][0]["task_id"]), "{after:#}");
        assert_eq!(count(&server, &namespace, &collection).await, 2);
        let batches = server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/batches/list"), json!({})).await.ok();
        assert_eq!(batches["results"].as_array().unwrap().len(), 1, "{batches:#}");
        server.call_in(&namespace, "POST", "/v1/triggers", json!({"name": "none", "trigger_type": "interval",
            "schedule_config": {"interval_seconds": 3600}, "action_type": "batch_rerun", "action_config": {"batch_id": "btch_none"}})).await.error(404, "NotFoundError");
    }

    async fn a_trigger_processes_objects_of_a_batch_in_a_new_one(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let mut ids = Vec::new();
        for title in ["red", "blue"] {
            let text = json!({"property": "text", "type": "text", "data": format!("a text under {title}")});
            ids.push(object(&server, &namespace, &bucket, title, text).await);
        }
        let first = process(&server, &namespace, &bucket).await;
        assert_eq!(first["status"], "COMPLETED", "{first:#}");
        let id = first["batch_id"].as_str().unwrap();
        let red = json!({"AND": [{"field": "title", "operator": "eq", "value": "red"}]});
        for (filters, meant) in [(red, vec![&ids[0]]), (json!({}), ids.iter().collect())] {
            let task = fired(&server, &namespace, json!({"batch_id": id, "filters": filters})).await;
            assert_eq!(task["status"], "COMPLETED", "{task:#}");
            let again = task["outputs"][0]["batch_id"].as_str().unwrap();
            assert_ne!(again, id);
            let path = format!("/v1/buckets/{bucket}/batches/{again}");
            let done = ended(&server, &namespace, &path).await;
            // Nothing changed, so that nothing is made twice.
            assert_eq!((&done["status"], &done["object_ids"]), (&json!("COMPLETED"), &json!(meant)), "{done:#}");
            assert_eq!((&done["task_id"], count(&server, &namespace, &collection).await), (&task["outputs"][0]["task_id"], json!(2)), "{done:#}");
        }
        // What matches nothing makes no batch, and fails nobody.
        let none = json!({"AND": [{"field": "title", "operator": "eq", "value": "green"}]});
        let list = async || server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/batches/list"), json!({})).await.ok()["results"].as_array().unwrap().len();
        let before = list().await;
        let task = fired(&server, &namespace, json!({"batch_id": id, "filters": none})).await;
        assert_eq!(task["status"], "SKIPPED", "{task:#}");
        assert!(task["additional_data"]["skipped"].as_str().unwrap().contains("no object of the bucket matches"), "{task:#}");
        let direct = json!({"filters": none, "auto_submit": true});
        let refused = server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/batches"), direct).await.error(400, "BadRequestError");
        assert_eq!(refused["error"]["code"], "nothing_to_process", "{refused:#}");
        assert_eq!(list().await, before);
        // The batch that ended stays what it was.
        let path = format!("/v1/buckets/{bucket}/batches/{id}");
        let same = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&same["task_id"], &same["documents_written"]), (&first["task_id"], &first["documents_written"]));
        // An object that was deleted since keeps the others from nothing.
        let gone = server.call_in(&namespace, "DELETE", &format!("/v1/buckets/{bucket}/objects/{}", ids[0]), Value::Null).await;
        assert_eq!(gone.status, 204, "{:#}", gone.body);
        let task = fired(&server, &namespace, json!({"batch_id": id})).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{}", task["outputs"][0]["batch_id"].as_str().unwrap());
        assert_eq!(ended(&server, &namespace, &path).await["object_ids"], json!([ids[1]]));
    }

    async fn a_trigger_processes_documents_of_a_batch_again(server) {
        let namespace = server.namespace("redone").await;
        let collection = async |name: &str, source: Value, required: bool| {
            let body = json!({"collection_name": name, "source": source, "feature_extractor": {
                "feature_extractor_name": "text_extractor", "version": "v1",
                "field_passthrough": [{"source_path": "topic", "required": required}]}});
            let made = server.call_in(&namespace, "POST", "/v1/collections", body).await.ok();
            made["collection_id"].as_str().unwrap().to_owned()
        };
        // Documents that nobody made of objects: the batch of them has no bucket.
        let letters = collection("letters", json!({"type": "direct_upsert"}), false).await;
        let source = json!({"type": "collection", "collection_ids": [letters]});
        let strict = collection("strict", source, true).await;
        let path = format!("/v1/collections/{letters}/documents");
        let write = async |body: Value| {
            let made = server.call_in(&namespace, "POST", &path, body).await.ok();
            made["document_id"].as_str().unwrap().to_owned()
        };
        let good = write(json!({"text": "dear sir", "topic": "letter"})).await;
        let bad = write(json!({"text": "hello there"})).await;
        let trigger = format!("/v1/collections/{strict}/trigger");
        let begun = server.call_in(&namespace, "POST", &trigger, json!({})).await;
        assert_eq!(begun.status, 202, "{:#}", begun.body);
        let id = begun.body["batch_id"].as_str().unwrap();
        let path_of = |id: &str| format!("/v1/batches/{id}");
        let batch = ended(&server, &namespace, &path_of(id)).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(1)), "{batch:#}");

        // What failed is mended, and alone is done again.
        server.call_in(&namespace, "PATCH", &format!("{path}/{bad}"), json!({"topic": "greeting"})).await.ok();
        let task = fired(&server, &namespace, json!({"batch_id": id, "retry_failed_only": true})).await;
        assert_eq!((&task["status"], &task["outputs"][0]["objects"]), (&json!("COMPLETED"), &json!(1)), "{task:#}");
        let batch = ended(&server, &namespace, &path_of(id)).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");
        assert_eq!(count(&server, &namespace, &strict).await, 2);

        // All of them, or those that match, in a new batch.
        let letter = json!({"AND": [{"field": "topic", "operator": "eq", "value": "letter"}]});
        for (filters, meant) in [(json!({}), vec![&good, &bad]), (letter, vec![&good])] {
            let task = fired(&server, &namespace, json!({"batch_id": id, "filters": filters})).await;
            assert_eq!(task["status"], "COMPLETED", "{task:#}");
            let again = task["outputs"][0]["batch_id"].as_str().unwrap();
            assert_ne!(again, id);
            let done = ended(&server, &namespace, &path_of(again)).await;
            let ids = done["object_ids"].as_array().unwrap();
            let all = meant.iter().all(|one| ids.contains(&json!(one)));
            assert_eq!((&done["status"], ids.len(), all), (&json!("COMPLETED"), meant.len(), true), "{done:#}");
            assert_eq!(count(&server, &namespace, &strict).await, 2);
        }
        // Documents that match nothing make no batch.
        let none = json!({"AND": [{"field": "topic", "operator": "eq", "value": "bill"}]});
        let task = fired(&server, &namespace, json!({"batch_id": id, "filters": none})).await;
        assert_eq!(task["status"], "SKIPPED", "{task:#}");

        // It is canceled where no bucket is named, and is done again in another. Nobody works meanwhile: it would end first.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let begun = server.call_in(&namespace, "POST", &trigger, json!({})).await;
        let id = begun.body["batch_id"].as_str().unwrap();
        server.call_in(&namespace, "POST", &format!("{}/cancel", path_of(id)), Value::Null).await.ok();
        assert_eq!(ended(&server, &namespace, &path_of(id)).await["status"], "CANCELED");
        let server = server.restart_with(|config| config.jobs.workers = 2).await;
        let task = fired(&server, &namespace, json!({"batch_id": id})).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let again = task["outputs"][0]["batch_id"].as_str().unwrap();
        assert_eq!(ended(&server, &namespace, &path_of(again)).await["status"], "COMPLETED");
    }

    async fn what_is_done_again_passes_over_collections_that_are_gone(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let other = json!({"collection_name": "others", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let other = server.call_in(&namespace, "POST", "/v1/collections", other).await.ok()["collection_id"].clone();
        let text = json!({"property": "text", "type": "text", "data": "a text under red"});
        object(&server, &namespace, &bucket, "red", text).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], batch["collection_ids"].as_array().map(Vec::len)), (&json!("COMPLETED"), Some(2)), "{batch:#}");
        let id = batch["batch_id"].as_str().unwrap();
        let path = format!("/v1/buckets/{bucket}/batches/{id}");
        server.call_in(&namespace, "DELETE", "/v1/collections/others", Value::Null).await.ok();

        // In a new batch.
        let task = fired(&server, &namespace, json!({"batch_id": id})).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let again = format!("/v1/buckets/{bucket}/batches/{}", task["outputs"][0]["batch_id"].as_str().unwrap());
        assert_eq!(ended(&server, &namespace, &again).await["collection_ids"], json!([collection]));
        // In the batch itself.
        let fail = "UPDATE batch_objects SET status = 'FAILED', error = 'broken', error_type = 'permanent' WHERE batch_id = $1";
        let broken = id.to_owned();
        let failed = server.app.db().write(move |tx| Box::pin(async move { tx.run(fail, loupe_server::args![broken]).await }));
        assert_eq!(failed.await.unwrap(), 1);
        server.call_in(&namespace, "POST", &format!("{path}/retry"), json!({"retry_mode": "all"})).await.ok();
        let after = ended(&server, &namespace, &path).await;
        assert_eq!((&after["status"], &after["collection_ids"]), (&json!("COMPLETED"), &json!([collection])), "{after:#}");
        // Whoever names it is told that it is gone.
        let named = json!({"collection_ids": [other]});
        server.call_in(&namespace, "POST", &format!("{path}/submit"), named).await.error(404, "NotFoundError");
    }

    async fn objects_of_several_buckets_are_processed_by_name(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}}});
        let second = json!({"bucket_name": "more", "bucket_schema": schema});
        let second = server.call_in(&namespace, "POST", "/v1/buckets", second).await.ok();
        let second = second["bucket_id"].as_str().unwrap();
        let over = json!({"collection_name": "both", "source": {"type": "bucket", "bucket_ids": [bucket, second]},
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1"}});
        let over = server.call_in(&namespace, "POST", "/v1/collections", over).await.ok();
        let collection = over["collection_id"].as_str().unwrap();
        let text = |title: &str| json!({"property": "text", "type": "text", "data": format!("a text under {title}")});
        let one = object(&server, &namespace, &bucket, "red", text("red")).await;
        object(&server, &namespace, second, "red", text("red")).await;
        let other = object(&server, &namespace, second, "blue", text("blue")).await;
        let trigger = async |body: Value| server.call_in(&namespace, "POST", &format!("/v1/collections/{collection}/trigger"), body).await;
        // Nothing is begun for those of them that are there.
        trigger(json!({"object_ids": [one, "obj_none"]})).await.error(404, "NotFoundError");
        let batches = async |bucket: &str| {
            let list = server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/batches/list"), json!({})).await.ok();
            list["results"].as_array().unwrap().len()
        };
        assert_eq!((batches(&bucket).await, batches(second).await), (0, 0));
        let begun = async |body: Value| {
            let answer = trigger(body).await;
            assert_eq!(answer.status, 202, "{:#}", answer.body);
            answer.body
        };
        let told = begun(json!({"object_ids": [one, other]})).await;
        assert_eq!((&told["object_count"], &told["batch_count"]), (&json!(2), &json!(2)), "{told:#}");
        // A filter may mean objects of one bucket alone.
        let blue = json!({"AND": [{"field": "title", "operator": "eq", "value": "blue"}]});
        let told = begun(json!({"source_filters": blue})).await;
        assert_eq!((&told["object_count"], &told["batch_count"]), (&json!(1), &json!(1)), "{told:#}");
        let green = json!({"AND": [{"field": "title", "operator": "eq", "value": "green"}]});
        let refused = trigger(json!({"source_filters": green})).await.error(400, "BadRequestError");
        assert_eq!(refused["error"]["code"], "nothing_to_process", "{refused:#}");
    }
}
