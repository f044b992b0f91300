//! Triggers and alerts that would start themselves again and again.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{counted, executed, id, make};
use crate::{
    batches::{ended, library, object, process},
    both,
    harness::Server,
};

/// A trigger that processes a batch again as soon as any ends.
async fn rerun(server: &Server, namespace: &str, batch: &Value) -> String {
    let body = json!({
        "name": "again", "trigger_type": "event", "action_type": "batch_rerun",
        "schedule_config": {"event_type": "collection.documents.batch_completed"},
        "action_config": {"batch_id": batch["batch_id"]},
    });
    id(&make(server, namespace, body).await)
}

/// Waits for the end of every batch of the bucket; answers how many there are.
async fn all_ended(server: &Server, namespace: &str, bucket: &str) -> usize {
    let path = format!("/v1/buckets/{bucket}/batches");
    let list = server
        .call_in(namespace, "POST", &format!("{path}/list"), json!({}))
        .await
        .ok();
    let batches = list["results"].as_array().unwrap();
    for batch in batches {
        let id = batch["batch_id"].as_str().unwrap();
        ended(server, namespace, &format!("{path}/{id}")).await;
    }
    batches.len()
}

/// A place with one object that fails whenever it is processed, so that every batch of it ends with news; answers namespace and
/// bucket.
async fn failing(server: &Server) -> (String, String) {
    let (namespace, bucket, _) = library(server, "image_extractor", "image").await;
    let picture = STANDARD.encode(b"%PDF-1.4 not a picture");
    let picture = json!({"property": "image", "type": "image", "data": picture});
    object(server, &namespace, &bucket, "broken", picture).await;
    (namespace, bucket)
}

both! {
    async fn no_trigger_fires_on_what_it_did_itself(server) {
        let (namespace, bucket) = failing(&server).await;
        let first = process(&server, &namespace, &bucket).await;
        let id = rerun(&server, &namespace, &first).await;
        for count in 1..=3 {
            process(&server, &namespace, &bucket).await;
            let trigger = executed(&server, &namespace, &id, count).await;
            assert_eq!(trigger["last_execution_status"], "COMPLETED", "{trigger:#}");
            // What it started tells what it came of.
            let task = server.task_end(trigger["last_execution_task_id"].as_str().unwrap()).await;
            let started = server.task_end(task["outputs"][0]["task_id"].as_str().unwrap()).await;
            assert_eq!(started["additional_data"]["caused_by"], json!([id]), "{started:#}");
            all_ended(&server, &namespace, &bucket).await;
        }
        counted(&server, &namespace, &id, 0).await;
        assert_eq!(executed(&server, &namespace, &id, 3).await["execution_count"], 3);
        // The first one, and three by hand with one of the trigger each.
        assert_eq!(all_ended(&server, &namespace, &bucket).await, 7);
    }

    async fn triggers_do_not_start_each_other_without_end(server) {
        let (namespace, bucket) = failing(&server).await;
        let first = process(&server, &namespace, &bucket).await;
        let one = rerun(&server, &namespace, &first).await;
        let other = rerun(&server, &namespace, &first).await;
        process(&server, &namespace, &bucket).await;
        // Each fires on the batch of people and on that of the other one, and on nothing that follows.
        for trigger in [&one, &other] {
            executed(&server, &namespace, trigger, 2).await;
        }
        all_ended(&server, &namespace, &bucket).await;
        for trigger in [&one, &other] {
            counted(&server, &namespace, trigger, 0).await;
            executed(&server, &namespace, trigger, 2).await;
        }
        assert_eq!(all_ended(&server, &namespace, &bucket).await, 6);
    }
}
