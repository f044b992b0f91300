//! Whole buckets in batches, and places in the queue.

use loupe_server::args;
use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object},
    both,
    harness::Server,
    long_lists::{OBJECTS, copy},
};

/// The same server, with batches that wait for ever.
async fn waiting(server: Server) -> Server {
    server
        .restart_with(|config| config.jobs.running_batches = 0)
        .await
}

/// A bucket of so many notes, every second one red; answers namespace, bucket and the notes.
async fn notes(server: &Server, count: usize) -> (String, String, Vec<String>) {
    let (namespace, bucket, _) = library(server, "passthrough_extractor", "text").await;
    let mut ids = Vec::new();
    for number in 0..count {
        let title = if number % 2 == 0 { "red" } else { "blue" };
        let text = json!({"property": "text", "type": "text", "data": format!("note {number}")});
        ids.push(object(server, &namespace, &bucket, title, text).await);
    }
    (namespace, bucket, ids)
}

fn red() -> Value {
    json!({"AND": [{"field": "title", "operator": "eq", "value": "red"}]})
}

const BATCHES: &str = "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1";

/// Batches that somebody else's organization waits for.
async fn crowd(server: &Server, count: i64) {
    const WAITING: &str = "INSERT INTO batches (batch_id, org_id, namespace_id, bucket_id, status, queued_at, created_at, updated_at, data) VALUES ($1, 'org_else', 'ns_else', 'bkt_else', 'QUEUED', 1, 1, 1, $2)";
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            for number in 0..count {
                let id = format!("btch_else_{number}");
                tx.run(WAITING, args![id, json!({"bucket_id": "bkt_else"})])
                    .await?;
            }
            Ok(())
        })
    });
    write.await.unwrap();
}

/// Older objects like this one.
async fn copies(server: &Server, object_id: &str, count: i64) {
    const COPY: &str = "INSERT INTO objects (object_id, namespace_id, bucket_id, key_prefix, unique_key, content_hash, idempotency_key, status, size_bytes, created_at, updated_at, data) SELECT CAST($1 AS TEXT), namespace_id, bucket_id, key_prefix, NULL, content_hash, NULL, status, size_bytes, created_at - $2, updated_at, data FROM objects WHERE object_id = $3";
    let object_id = object_id.to_owned();
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            for number in 1..=count {
                let id = format!("obj_copy_{number}");
                tx.run(COPY, args![id, number, &object_id]).await?;
            }
            Ok(())
        })
    });
    write.await.unwrap();
}

both! {
    async fn a_bucket_is_split_once_however_often_it_is_asked_for(server) {
        let server = waiting(server).await;
        let (namespace, bucket, ids) = notes(&server, 5).await;
        let path = format!("/v1/buckets/{bucket}/batches");
        let bulk = async |body: Value| server.call_in(&namespace, "POST", &format!("{path}/bulk-submit"), body).await.ok();
        // Two at once are one.
        let (first, second) = tokio::join!(bulk(json!({"chunk_size": 2})), bulk(json!({"chunk_size": 2})));
        assert_eq!(first, second);
        assert_eq!((&first["total_objects"], &first["total_batches"], &first["submitted"], &first["failed"]), (&json!(5), &json!(3), &json!(3), &json!(0)), "{first:#}");
        let batches = first["batches"].as_array().unwrap();
        for (number, (batch, held)) in batches.iter().zip([&ids[..2], &ids[2..4], &ids[4..]]).enumerate() {
            assert_eq!((&batch["status"], &batch["queue_position"]), (&json!("QUEUED"), &json!(number + 1)), "{first:#}");
            assert_eq!(batch["object_count"], held.len());
            let id = batch["batch_id"].as_str().unwrap();
            let shown = server.call_in(&namespace, "GET", &format!("{path}/{id}"), Value::Null).await.ok();
            assert_eq!(shown["object_ids"], json!(held));
            let task = server.call("GET", &format!("/v1/tasks/{}", shown["task_id"].as_str().unwrap()), Value::Null).await.ok();
            assert_eq!(task["additional_data"]["object_count"], held.len());
        }
        assert_eq!(bulk(json!({"chunk_size": 2})).await, first);
        assert_eq!(server.app.db().number(BATCHES, args![&namespace]).await.unwrap(), 3);

        // Something else is another group: so many objects, or those that match.
        let some = bulk(json!({"chunk_size": 2, "max_objects": 3})).await;
        let counts = |bulk: &Value| bulk["batches"].as_array().unwrap().iter().map(|one| one["object_count"].as_i64().unwrap()).collect::<Vec<_>>();
        assert_eq!((counts(&some), &some["total_objects"]), (vec![2, 1], &json!(3)));
        let filtered = bulk(json!({"chunk_size": 2, "filters": red()})).await;
        assert_eq!((counts(&filtered), &filtered["total_objects"], &filtered["total_batches"]), (vec![2, 1], &json!(3), &json!(2)));
        let last = filtered["batches"][1]["batch_id"].as_str().unwrap();
        let shown = server.call_in(&namespace, "GET", &format!("{path}/{last}"), Value::Null).await.ok();
        assert_eq!(shown["object_ids"], json!([ids[4]]));

        // Once they have ended the same is done again.
        let server = server.restart_with(|config| config.jobs.running_batches = 8).await;
        for batch in first["batches"].as_array().unwrap() {
            let path = format!("{path}/{}", batch["batch_id"].as_str().unwrap());
            assert_eq!(ended(&server, &namespace, &path).await["status"], "COMPLETED");
        }
        let again = server.call_in(&namespace, "POST", &format!("{path}/bulk-submit"), json!({"chunk_size": 2})).await.ok();
        assert_ne!(again["batch_group_id"], first["batch_group_id"]);
        assert_eq!(again["submitted"], 3);
    }

    async fn a_batch_is_gathered_from_several_pages(server) {
        let server = waiting(server).await;
        let (namespace, bucket, ids) = notes(&server, 1).await;
        copies(&server, &ids[0], 1_050).await;
        let path = format!("/v1/buckets/{bucket}/batches");
        let bulk = server.call_in(&namespace, "POST", &format!("{path}/bulk-submit"), json!({"chunk_size": 1_040})).await.ok();
        assert_eq!((&bulk["total_objects"], &bulk["total_batches"]), (&json!(1_051), &json!(2)));
        let mut found = Vec::new();
        for (batch, count) in bulk["batches"].as_array().unwrap().iter().zip([1_040, 11]) {
            assert_eq!(batch["object_count"], count);
            let path = format!("{path}/{}", batch["batch_id"].as_str().unwrap());
            let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            found.extend(shown["object_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()));
        }
        // Every one once, oldest first.
        let all: Vec<String> = (1..=1_050).rev().map(|number| format!("obj_copy_{number}")).chain([ids[0].clone()]).collect();
        assert_eq!(found, all);
    }

    async fn what_cannot_be_split_is_refused_before_anything_is_made(server) {
        let server = server.restart_with(|config| config.limits.batch_objects = 2).await;
        let (namespace, bucket, _) = notes(&server, 3).await;
        let path = format!("/v1/buckets/{bucket}/batches/bulk-submit");
        let bulk = async |body: Value| server.call_in(&namespace, "POST", &path, body).await;
        bulk(json!({"chunk_size": 3})).await.invalid(&["body", "chunk_size"], "less_than_equal");
        bulk(json!({"chunk_size": 2, "collection_ids": ["col_unknown"]})).await.error(404, "NotFoundError");
        assert_eq!(bulk(json!({"chunk_size": 2, "filters": {"AND": [{"field": "title", "operator": "like", "value": "red"}]}})).await.status, 422);
        assert_eq!(server.app.db().number(BATCHES, args![&namespace]).await.unwrap(), 0);
        let empty = json!({"bucket_name": "empty", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        let empty = server.call_in(&namespace, "POST", "/v1/buckets", empty).await.ok();
        let path = format!("/v1/buckets/{}/batches/bulk-submit", empty["bucket_id"].as_str().unwrap());
        let none = server.call_in(&namespace, "POST", &path, json!({})).await.ok();
        assert_eq!((&none["total_objects"], &none["batches"]), (&json!(0), &json!([])));
    }

    async fn a_filter_says_how_many_batches_a_large_bucket_is(server) {
        let server = waiting(server).await;
        let (namespace, bucket, ids) = notes(&server, 3).await;
        copy(&server, OBJECTS, &json!(ids[1])).await;
        let path = format!("/v1/buckets/{bucket}/batches/bulk-submit");
        let bulk = async |body: Value| server.call_in(&namespace, "POST", &path, body).await;
        bulk(json!({"chunk_size": 1})).await.invalid(&["body", "chunk_size"], "value_error");
        let some = json!({"chunk_size": 1, "filters": red()});
        let group = bulk(some.clone()).await.ok();
        assert_eq!((&group["total_objects"], &group["submitted"], &group["failed"]), (&json!(2), &json!(2), &json!(0)), "{group:#}");
        // As if as many batches as one call makes had been there before them.
        let full = "UPDATE batch_groups SET ended_at = 0, batches = 10000, seen_at = 0, seen_id = '' WHERE namespace_id = $1";
        let place = namespace.clone();
        let filled = server.app.db().write(move |tx| Box::pin(async move { tx.run(full, args![place]).await }));
        assert_eq!(filled.await.unwrap(), 1);
        let group = bulk(some).await.ok();
        assert!(group["failed"].as_i64().unwrap() > 0, "{group:#}");
        let last = group["batches"].as_array().unwrap().last().unwrap();
        assert!(last["error"].as_str().unwrap().contains("max_objects"), "{group:#}");
        assert_eq!(server.app.db().number(BATCHES, args![&namespace]).await.unwrap(), 2);
    }

    async fn a_bucket_that_is_removed_takes_what_is_split_along(server) {
        let server = waiting(server).await;
        let (namespace, bucket, _) = notes(&server, 2).await;
        let path = format!("/v1/buckets/{bucket}");
        server.call_in(&namespace, "POST", &format!("{path}/batches/bulk-submit"), json!({"chunk_size": 1})).await.ok();
        let removed = server.call_in(&namespace, "DELETE", &format!("{path}?force_foreclose=true"), Value::Null).await.ok();
        server.task_end(removed["task_id"].as_str().unwrap()).await;
        for sql in [
            BATCHES,
            "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_groups WHERE namespace_id = $1",
            "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_group_members WHERE namespace_id = $1",
        ] {
            assert_eq!(server.app.db().number(sql, args![&namespace]).await.unwrap(), 0, "{sql}");
        }
    }

    async fn places_in_the_queue_are_right_for_any_number(server) {
        let server = waiting(server).await;
        let (namespace, bucket, _) = notes(&server, 1).await;
        crowd(&server, 1_100).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        for place in [1_101, 1_102] {
            let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
            let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
            let task = server.call_in(&namespace, "POST", &format!("{path}/submit"), json!({})).await.ok();
            assert_eq!(task["queue_position"], place);
            let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            assert_eq!(shown["progress"]["queue_position"], place);
        }
        let queue = server.call("GET", "/v1/batches/queue", Value::Null).await.ok();
        let places: Vec<_> = queue["waiting"].as_array().unwrap().iter().map(|one| one["position"].as_i64().unwrap()).collect();
        assert_eq!(places, [1_101, 1_102]);
    }
}
