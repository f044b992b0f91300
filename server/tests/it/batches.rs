//! Files in, searchable documents out: objects, batches, failures with reasons, search by words.

use std::time::{Duration, Instant};

use loupe_server::args;
use serde_json::{Value, json};

use crate::{both, harness::Server};

/// A namespace with a bucket of texts and a collection that embeds them; answers namespace, bucket, collection.
pub async fn library(server: &Server, extractor: &str, property: &str) -> (String, String, String) {
    let namespace = server.namespace("library").await;
    let schema = json!({"properties": {"title": {"type": "string"}, property: {"type": property}}});
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let bucket = bucket["bucket_id"].as_str().unwrap().to_owned();
    let collection = json!({
        "collection_name": "documents",
        "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {
            "feature_extractor_name": extractor,
            "version": "v1",
            "field_passthrough": [{"source_path": "title"}],
        },
    });
    let collection = server
        .call_in(&namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    (
        namespace,
        bucket,
        collection["collection_id"].as_str().unwrap().to_owned(),
    )
}

pub async fn object(
    server: &Server,
    namespace: &str,
    bucket: &str,
    title: &str,
    blob: Value,
) -> String {
    let body = json!({"title": title, "blobs": [blob]});
    let made = server
        .call_in(
            namespace,
            "POST",
            &format!("/v1/buckets/{bucket}/objects"),
            body,
        )
        .await
        .ok();
    made["object_id"].as_str().unwrap().to_owned()
}

/// Makes a batch of everything, submits it and waits for its end.
pub async fn process(server: &Server, namespace: &str, bucket: &str) -> Value {
    let batches = format!("/v1/buckets/{bucket}/batches");
    let batch = server
        .call_in(namespace, "POST", &batches, json!({}))
        .await
        .ok();
    let id = batch["batch_id"].as_str().unwrap().to_owned();
    assert_eq!(batch["status"], "DRAFT");
    let task = server
        .call_in(
            namespace,
            "POST",
            &format!("{batches}/{id}/submit"),
            json!({}),
        )
        .await
        .ok();
    assert_eq!(task["additional_data"]["batch_id"], id.as_str());
    ended(server, namespace, &format!("{batches}/{id}")).await
}

/// Waits until a chunk was put back: what it needs is away.
pub async fn put_back(server: &Server) {
    const PUT_BACK: &str =
        "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'batch_chunk' AND run_after > 0";
    let start = Instant::now();
    while server.app.db().number(PUT_BACK, vec![]).await.unwrap() == 0 {
        assert!(start.elapsed().as_secs() < 180, "no chunk is put back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn ended(server: &Server, namespace: &str, path: &str) -> Value {
    let start = Instant::now();
    loop {
        let batch = server
            .call_in(namespace, "GET", path, Value::Null)
            .await
            .ok();
        let status = batch["status"].as_str().unwrap();
        if matches!(
            status,
            "COMPLETED" | "COMPLETED_WITH_ERRORS" | "FAILED" | "CANCELED"
        ) {
            return batch;
        }
        assert!(
            start.elapsed() < Duration::from_secs(300),
            "the batch does not end: {batch:#}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The union of the announced ids is what the batch says it wrote, and what its list has. Answers what was told of its end.
async fn what_was_written_is_told(
    server: &Server,
    namespace: &str,
    collection: &str,
    batch: &Value,
) -> Vec<Value> {
    let written = server.events("collection.documents.written").await;
    let ids: std::collections::BTreeSet<&str> = written
        .iter()
        .flat_map(|event| event["payload"]["document_ids"].as_array().unwrap())
        .map(|id| id.as_str().unwrap())
        .collect();
    let completed = server.events("collection.documents.batch_completed").await;
    assert_eq!(completed.len(), 1);
    assert_eq!(completed[0]["payload"]["total_documents"], ids.len());
    // As its list has them.
    let list = format!("/v1/collections/{collection}/documents/list");
    for (filters, count) in [
        (json!({"batch_id": batch["batch_id"]}), ids.len()),
        (json!({"batch_id": "btch_none"}), 0),
        (
            json!({"AND": [{"field": "batch_id", "operator": "ne", "value": batch["batch_id"]}]}),
            0,
        ),
    ] {
        let page = server
            .call_in(namespace, "POST", &list, json!({"filters": filters}))
            .await
            .ok();
        assert_eq!(
            page["results"].as_array().unwrap().len(),
            count,
            "{filters}"
        );
    }
    completed
}

both! {
    async fn texts_become_documents_that_words_find(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        for (title, text) in [
            ("Bread", "Knead flour, water, salt and yeast, let the dough rise and bake it in a hot oven."),
            ("Bicycle", "Two wheels, a chain and pedals: a machine that carries its rider along the road."),
            ("Glacier", "A slow river of ice that carves valleys out of mountains over thousands of years."),
        ] {
            object(&server, &namespace, &bucket, title, json!({"property": "text", "type": "text", "data": text})).await;
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!(batch["progress"]["processed"], 3);
        assert_eq!(batch["documents_written"], 3);
        let task = server.call("GET", &format!("/v1/tasks/{}", batch["task_id"].as_str().unwrap()), Value::Null).await.ok();
        assert_eq!(task["status"], "COMPLETED");
        let moment = |name: &str| chrono::DateTime::parse_from_rfc3339(task[name].as_str().unwrap()).unwrap();
        assert!(moment("created_at") <= moment("completed_at") && moment("completed_at") <= moment("updated_at"), "{task:#}");

        let completed = what_was_written_is_told(&server, &namespace, &collection, &batch).await;

        let uri = "loupe://text_extractor@v1/all_minilm_l6_v2_v1";
        let found = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        assert_eq!(found["vector_indexes"][0]["feature_uri"], uri);
        assert_eq!(found["document_count"], 3);
        let changed = json!({"description": "texts"});
        let changed = server.call_in(&namespace, "PATCH", &format!("/v1/collections/{collection}"), changed).await.ok();
        assert_eq!((&changed["document_count"], &changed["description"]), (&json!(3), &json!("texts")));
        let search = |value: &str, lexical: bool| json!({
            "feature_uri": uri, "query": {"input_mode": "text", "value": value}, "top_k": 10, "lexical": lexical,
        });
        let retriever = json!({
            "retriever_name": "search",
            "collection_identifiers": ["documents"],
            "input_schema": {"query": {"type": "text", "required": true}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [search("{{INPUT.query}}", true)], "final_top_k": 3,
            }}}],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", retriever).await.ok();
        let execute = format!("/v1/retrievers/{}/execute", retriever["retriever_id"].as_str().unwrap());
        for (query, title) in [("baking a loaf", "Bread"), ("cycling", "Bicycle"), ("frozen landscape", "Glacier"), ("yeast", "Bread")] {
            let answer = server.call_in(&namespace, "POST", &execute, json!({"inputs": {"query": query}})).await.ok();
            assert_eq!(answer["documents"][0]["title"], title, "{query}: {answer:#}");
        }

        // The same objects again: nothing to do, nothing twice.
        let again = process(&server, &namespace, &bucket).await;
        assert_eq!(again["status"], "COMPLETED", "{again:#}");
        assert_eq!(again["progress"]["objects_skipped"], 3);
        // It wrote nothing, and nothing is told of it.
        assert_eq!(server.events("collection.documents.batch_completed").await, completed);
        let count = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 3);
    }

    async fn broken_files_fail_with_reasons_and_the_rest_is_kept(server) {
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let picture = |data: Vec<u8>, name: &str| {
            use base64::{Engine, engine::general_purpose::STANDARD};
            json!({"property": "image", "type": "image", "data": STANDARD.encode(data), "metadata": {"filename": name}})
        };
        let good = object(&server, &namespace, &bucket, "good", picture(red_square(), "red.png")).await;
        object(&server, &namespace, &bucket, "mislabelled", picture(b"%PDF-1.4 not a picture".to_vec(), "a.png")).await;
        object(&server, &namespace, &bucket, "bomb", picture(bomb(), "bomb.png")).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED_WITH_ERRORS", "{batch:#}");
        assert_eq!(batch["failed_object_count"], 2);
        let path = format!("/v1/buckets/{bucket}/batches/{}/failed-documents", batch["batch_id"].as_str().unwrap());
        for (member, value) in [("limit", 0), ("limit", 1001), ("offset", -1)] {
            let beyond = format!("{path}?{member}={value}");
            server.call_in(&namespace, "GET", &beyond, Value::Null).await.invalid(&["query", member], "range");
        }
        let failed = server.call_in(&namespace, "GET", &format!("{path}?limit=1000"), Value::Null).await.ok();
        for failure in failed["results"].as_array().unwrap() {
            assert!(failure["error"].as_str().unwrap().len() > 10, "{failure:#}");
            assert_ne!(failure["error_type"], "transient", "{failure:#}");
            // The object itself says so, too.
            let path = format!("/v1/buckets/{bucket}/objects/{}", failure["object_id"].as_str().unwrap());
            let object = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            assert_eq!((&object["status"], &object["error"]), (&json!("FAILED"), &failure["error"]), "{object:#}");
            assert_eq!(object["blobs"][0]["details"]["filename"], failure["filename"], "{failure:#}");
        }
        let objects = format!("/v1/buckets/{bucket}/objects/list");
        let all = server.call_in(&namespace, "POST", &objects, json!({})).await.ok();
        let failed = all["results"].as_array().unwrap().iter().filter(|one| !one["error"].is_null());
        assert_eq!(failed.count(), 2, "{all:#}");
        let told = server.call("POST", "/v1/notifications/list", json!({})).await.ok().to_string();
        assert!(told.contains("from 3 objects, of which 2 failed"), "{told}");
        let list = json!({"return_presigned_urls": true});
        let documents = server.call_in(&namespace, "POST", &format!("/v1/collections/{collection}/documents/list"), list).await.ok();
        let documents = documents["results"].as_array().unwrap();
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0]["_internal"]["lineage"]["root_object_id"], good.as_str());
        let blobs = documents[0]["document_blobs"].as_array().unwrap();
        let thumbnail = blobs.iter().find(|blob| blob["role"] == "thumbnail").expect("a picture has a thumbnail");
        let url = thumbnail["presigned_url"].as_str().unwrap().replace(&server.app.config().address(), "");
        let file = Server::send(server.request("GET", &url)).await;
        assert_eq!(file.status, 200);
        assert!(file.headers["content-type"].to_str().unwrap().starts_with("image/"));
    }

    async fn a_canceled_batch_stops_and_can_be_queued_again(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        for number in 0..3 {
            let text = json!({"property": "text", "type": "text", "data": format!("text number {number}")});
            object(&server, &namespace, &bucket, "t", text).await;
        }
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        let task = server.call_in(&namespace, "POST", &format!("{path}/submit"), json!({})).await.ok();
        // Nothing is before it: there is no place to tell of, and no wait.
        assert_eq!((&task["queue_position"], &task["estimated_wait_minutes"]), (&Value::Null, &Value::Null), "{task:#}");
        let canceled = server.call_in(&namespace, "POST", &format!("{path}/cancel"), json!({})).await;
        // It may have ended before the cancellation came.
        if canceled.status == 200 {
            let task = canceled.ok();
            assert_eq!(task["status"], "CANCELED");
            assert!(task["cancellation"]["ray_jobs_requested"].is_i64());
            let after = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
            assert_eq!(after["status"], "CANCELED");
            let refused = server.call_in(&namespace, "POST", &format!("{path}/submit?force=true"), json!({})).await;
            assert_eq!(refused.error(409, "ConflictError")["error"]["code"], "batch_not_draft");
            server.call_in(&namespace, "POST", &format!("{path}/resubmit"), json!({})).await.ok();
        } else {
            canceled.error(409, "ConflictError");
        }
        let ended = ended(&server, &namespace, &path).await;
        assert_eq!(ended["status"], "COMPLETED", "{ended:#}");
    }

    async fn a_draft_is_canceled_with_a_task_to_show_for_it(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        // Members that are always there.
        assert_eq!((draft.get("lifecycle"), draft.get("lifecycle_reason")), (Some(&Value::Null), Some(&Value::Null)), "{draft:#}");
        let path = format!("{batches}/{}", draft["batch_id"].as_str().unwrap());
        let task = server.call_in(&namespace, "POST", &format!("{path}/cancel?reason=too%20early"), Value::Null).await.ok();
        assert_eq!((&task["status"], &task["description"]), (&json!("CANCELED"), &json!("Process 0 objects")), "{task:#}");
        let id = task["task_id"].as_str().unwrap();
        let found = server.call("GET", &format!("/v1/tasks/{id}"), Value::Null).await.ok();
        assert_eq!((&found["status"], &found["additional_data"]["cancellation_reason"]), (&json!("CANCELED"), &json!("too early")), "{found:#}");
        // What every task of a batch says.
        let data = &found["additional_data"];
        assert_eq!((&data["total_tiers"], &data["collection_ids"], &data["object_count"]), (&json!(1), &json!([]), &json!(0)), "{found:#}");
        let shown = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&shown["status"], &shown["task_id"]), (&json!("CANCELED"), &json!(id)));
    }

    async fn a_batch_without_a_collection_or_objects_is_refused(server) {
        let namespace = server.namespace("empty").await;
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let batches = format!("/v1/buckets/{}/batches", bucket["bucket_id"].as_str().unwrap());
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let submit = format!("{batches}/{}/submit", batch["batch_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &submit, json!({})).await.error(400, "BadRequestError");
        let unknown = json!({"object_ids": ["obj_unknown"]});
        server.call_in(&namespace, "POST", &batches, unknown).await.error(404, "NotFoundError");
    }

    async fn a_batch_takes_what_its_filter_matches(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let mut ids = Vec::new();
        for title in ["red", "red", "blue", "red"] {
            let text = json!({"property": "text", "type": "text", "data": format!("a text under {title}")});
            ids.push(object(&server, &namespace, &bucket, title, text).await);
        }
        let batches = format!("/v1/buckets/{bucket}/batches");
        let red = json!({"AND": [{"field": "title", "operator": "eq", "value": "red"}]});
        let batch = server.call_in(&namespace, "POST", &batches, json!({"filters": red, "auto_submit": true})).await.ok();
        assert_eq!(batch["object_ids"], json!([ids[0], ids[1], ids[3]]));
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        let end = ended(&server, &namespace, &path).await;
        assert_eq!((&end["status"], &end["documents_written"]), (&json!("COMPLETED"), &json!(3)));
        let first = server.call_in(&namespace, "POST", &batches, json!({"filters": red, "limit": 2})).await.ok();
        assert_eq!(first["object_ids"], json!([ids[0], ids[1]]));
        // Where an object stands is a member like any other.
        let waiting = json!({"field": "status", "operator": "eq", "value": "DRAFT"});
        let bulk = json!({"filters": {"AND": [waiting]}, "chunk_size": 1});
        let bulk = server.call_in(&namespace, "POST", &format!("{batches}/bulk-submit"), bulk).await.ok();
        assert_eq!((&bulk["total_objects"], &bulk["total_batches"]), (&json!(1), &json!(1)));
        let both = json!({"filters": red, "object_ids": [ids[0]]});
        server.call_in(&namespace, "POST", &batches, both).await.invalid(&["body", "filters"], "value_error");
        let wrong = json!({"filters": {"AND": [{"field": "title", "operator": "like", "value": "red"}]}});
        assert_eq!(server.call_in(&namespace, "POST", &batches, wrong).await.status, 422);
        // An object named twice leaves no gap in which the batch would lose another.
        let twice = json!({"object_ids": [ids[0], ids[0], ids[2]]});
        let twice = server.call_in(&namespace, "POST", &batches, twice).await.ok();
        let positions = "SELECT CAST(MAX(position) AS BIGINT) FROM batch_objects WHERE batch_id = $1";
        let last = server.app.db().number(positions, args![twice["batch_id"].as_str().unwrap()]).await.unwrap();
        assert_eq!((twice["object_ids"].as_array().unwrap().len(), last), (2, 1));
    }

    async fn objects_are_processed_as_they_come(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let objects = format!("/v1/buckets/{bucket}/objects");
        let one = |words: &str| json!({"title": words, "blobs": [{"property": "text", "type": "text", "data": words}]});
        let made = server.call_in(&namespace, "POST", &format!("{objects}?auto_process=true"), one("first words")).await.ok();
        let path = made["consistency"]["poll"]["path"].as_str().unwrap();
        let batch = ended(&server, &namespace, path).await;
        assert_eq!((&batch["status"], &batch["object_ids"]), (&json!("COMPLETED"), &json!([made["object_id"]])));
        let many = json!({"objects": [one("second words"), one("third words")]});
        let made = server.call_in(&namespace, "POST", &format!("{objects}/batch?auto_process=true"), many).await.ok();
        let path = made["succeeded"][1]["consistency"]["poll"]["path"].as_str().unwrap();
        let batch = ended(&server, &namespace, path).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(2)));
        let count = format!("/v1/collections/{collection}/documents/count");
        let count = server.call_in(&namespace, "GET", &count, Value::Null).await.ok();
        assert_eq!(count["count"], 3);
        // Where nothing would be processed, nothing is made.
        let path = format!("/v1/collections/{collection}");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        let refused = server.call_in(&namespace, "POST", &format!("{objects}?auto_process=true"), one("fourth")).await;
        refused.error(400, "BadRequestError");
        let page = server.call_in(&namespace, "GET", &format!("{objects}?include_total=true"), Value::Null).await.ok();
        assert_eq!(page["pagination"]["total"], 3);
    }

    async fn work_of_a_dead_process_is_done_by_the_next(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        for number in 0..40 {
            let text = json!({"property": "text", "type": "text", "data": format!("a short text with the number {number}")});
            object(&server, &namespace, &bucket, "t", text).await;
        }
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &format!("{path}/submit"), json!({})).await.ok();
        let server = server.restart().await;
        let batch = ended(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let count = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 40);
    }
}

/// A small red PNG.
pub fn red_square() -> Vec<u8> {
    png(64, 64, &[255, 0, 0].repeat(64 * 64))
}

/// A PNG whose header claims 100 megapixels and holds none.
pub fn bomb() -> Vec<u8> {
    png(20_000, 5_000, &[])
}

fn png(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut rows = Vec::new();
    for row in rgb.chunks(width as usize * 3) {
        rows.push(0);
        rows.extend_from_slice(row);
    }
    // Stored blocks need no compressor.
    let mut data = vec![0x78, 0x01];
    for (index, block) in rows.chunks(60_000).enumerate() {
        let last = u8::from((index + 1) * 60_000 >= rows.len());
        let size = u16::try_from(block.len()).unwrap();
        data.push(last);
        data.extend_from_slice(&size.to_le_bytes());
        data.extend_from_slice(&(!size).to_le_bytes());
        data.extend_from_slice(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in &rows {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    data.extend_from_slice(&((b << 16) | a).to_be_bytes());
    let mut file = vec![0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
    let mut header = Vec::new();
    header.extend_from_slice(&width.to_be_bytes());
    header.extend_from_slice(&height.to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    for (kind, body) in [(b"IHDR", header), (b"IDAT", data), (b"IEND", Vec::new())] {
        file.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
        let mut chunk = kind.to_vec();
        chunk.extend_from_slice(&body);
        file.extend_from_slice(&chunk);
        file.extend_from_slice(&crc32fast::hash(&chunk).to_be_bytes());
    }
    file
}
