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
        // Where nothing failed there is nothing to do again.
        let task = fired(&server, &namespace, again.clone()).await;
        assert_eq!((&task["status"], &task["additional_data"]["skipped"]), (&json!("SKIPPED"), &json!("no failed object can be retried")), "{task:#}");
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
        // What a filter finds none of is no failure, nor is a draft left behind.
        let count_of = async || {
            let path = format!("/v1/buckets/{bucket}/batches/list");
            server.call_in(&namespace, "POST", &path, json!({})).await.ok()["results"].as_array().unwrap().len()
        };
        let green = json!({"AND": [{"field": "title", "operator": "eq", "value": "green"}]});
        let (before, task) = (count_of().await, fired(&server, &namespace, json!({"batch_id": id, "filters": green})).await);
        assert_eq!((&task["status"], count_of().await), (&json!("SKIPPED"), before), "{task:#}");
        // An object that is gone keeps the others from nothing.
        let gone = format!("/v1/buckets/{bucket}/objects/{}", ids[1]);
        server.call_in(&namespace, "DELETE", &gone, Value::Null).await.ok();
        let task = fired(&server, &namespace, json!({"batch_id": id})).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{}", task["outputs"][0]["batch_id"].as_str().unwrap());
        assert_eq!(ended(&server, &namespace, &path).await["object_ids"], json!([ids[0]]));
        // The batch that ended stays what it was.
        let path = format!("/v1/buckets/{bucket}/batches/{id}");
        let same = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&same["task_id"], &same["documents_written"]), (&first["task_id"], &first["documents_written"]));
    }
}
