//! Files that are not in the server's memory as a whole, through a batch: what is read from the disk, and what is kept from it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{object, process},
    both,
    harness::Server,
    stages::stage,
};

/// A bucket of files of a type, and a collection over it.
async fn shelf(
    server: &Server,
    kind: &str,
    extractor: &str,
    parameters: Value,
) -> (String, String, String) {
    let namespace = server.namespace("large").await;
    let schema = json!({"properties": {"title": {"type": "string"}, "file": {"type": kind}}});
    let unique = json!({"fields": ["title"], "default_policy": "upsert"});
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema, "unique_key": unique});
    let made = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let bucket = made["bucket_id"].as_str().unwrap().to_owned();
    let collection = json!({
        "collection_name": "made of them", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": extractor, "version": "v1", "parameters": parameters},
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    let collection = made["collection_id"].as_str().unwrap().to_owned();
    (namespace, bucket, collection)
}

pub fn blob(kind: &str, mime: &str, bytes: &[u8]) -> Value {
    let data = format!("data:{mime};base64,{}", STANDARD.encode(bytes));
    json!({"property": "file", "type": kind, "data": data})
}

/// A film of two seconds.
fn film() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    let made = std::process::Command::new("ffmpeg")
        .args(
            "-nostdin -v error -f lavfi -i testsrc=s=64x48:r=4:d=2 -pix_fmt yuv420p -y".split(' '),
        )
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success(), "the tests need ffmpeg");
    std::fs::read(path).unwrap()
}

both! {
    async fn a_file_that_is_read_from_the_disk_becomes_documents(server) {
        let parameters = json!({"row_format": "jsonl"});
        let (namespace, bucket, collection) = shelf(&server, "text", "passthrough_extractor", parameters).await;
        // One word a row: the file is long, the index of its words is not the matter.
        let words = "w".repeat(32_000);
        let rows: String = (0..160).map(|number| format!("{{\"number\": {number}, \"words\": \"{words}\"}}\n")).collect();
        assert!(rows.len() > 5_000_000, "more than is kept in memory of a file: {}", rows.len());
        let rows = blob("text", "application/x-ndjson", rows.as_bytes());
        object(&server, &namespace, &bucket, "rows", rows).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!(batch["documents_written"], 160);
        let count = format!("/v1/collections/{collection}/documents/count");
        let count = server.call_in(&namespace, "GET", &count, Value::Null).await.ok();
        assert_eq!(count["count"], 160);
    }

    async fn rows_that_come_in_slices_are_all_stored_or_none(server) {
        let parameters = json!({"row_format": "jsonl"});
        let (namespace, bucket, collection) = shelf(&server, "text", "passthrough_extractor", parameters).await;
        let sent = async |rows: String| {
            object(&server, &namespace, &bucket, "rows", blob("text", "application/x-ndjson", rows.as_bytes())).await;
            process(&server, &namespace, &bucket).await
        };
        let rows = |say: &str, many: usize| (0..many).map(|n| format!("{{\"n\": {n}, \"say\": \"{say}\"}}\n")).collect::<String>();
        let count = async |say: &str| {
            let path = format!("/v1/collections/{collection}/documents/list");
            let body = json!({"filters": {"field": "say", "operator": "eq", "value": say}, "limit": 1, "include_total": true});
            server.call_in(&namespace, "POST", &path, body).await.ok()["pagination"]["total"].clone()
        };
        // Three slices.
        let batch = sent(rows("one", 1_300)).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(1_300)), "{batch:#}");
        let written = server.events("collection.documents.written").await;
        let told = written.iter().flat_map(|event| event["payload"]["document_ids"].as_array().unwrap());
        let told: std::collections::HashSet<&str> = told.map(|id| id.as_str().unwrap()).collect();
        assert_eq!(told.len(), 1_300);
        let completed = server.events("collection.documents.batch_completed").await;
        assert_eq!(completed[0]["payload"]["total_documents"], 1_300);
        // A file that is broken at its end changes nothing of what there is.
        let batch = sent(rows("two", 900) + "no row").await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("FAILED"), &json!(0)), "{batch:#}");
        let error = batch["error"].as_str().unwrap();
        assert!(error.starts_with("line 901 of the file is not a JSON object"), "{error}");
        assert_eq!((count("one").await, count("two").await), (json!(1_300), json!(0)));
        // A shorter one leaves no rows of the longer one behind.
        let batch = sent(rows("three", 700)).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(700)), "{batch:#}");
        assert_eq!((count("one").await, count("three").await), (json!(0), json!(700)));
    }

    async fn a_segment_tells_where_its_film_and_its_picture_are(server) {
        let parameters = json!({"time_split_interval": 1, "run_multimodal_embedding": false});
        let (namespace, bucket, collection) = shelf(&server, "video", "multimodal_extractor", parameters).await;
        object(&server, &namespace, &bucket, "film", blob("video", "video/mp4", &film())).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let documents = format!("/v1/collections/{collection}/documents");
        let sorted = json!({"sort": {"field": "start_time", "direction": "asc"}, "return_presigned_urls": true});
        let list = server.call_in(&namespace, "POST", &format!("{documents}/list"), sorted).await.ok();
        let segment = &list["results"][1];
        let read = async |name: &str| {
            let address = segment[name].as_str().unwrap_or_else(|| panic!("{name}: {segment:#}"));
            let address = address.replace(&server.app.config().address(), "");
            server.request("GET", &address).send().await.unwrap().bytes().await.unwrap()
        };
        assert_eq!(&read("source_video_url").await[4..8], b"ftyp");
        assert!(read("thumbnail_url").await.len() > 100);
        let span = ["start_time", "end_time"].map(|name| segment[name].as_f64().unwrap());
        let part = format!("#t={},{}", span[0], span[1]);
        let whole = segment["source_video_url"].as_str().unwrap();
        assert_eq!(segment["video_segment_url"], format!("{whole}{part}"));
        let is_part = |document: &Value| document["video_segment_url"].as_str().is_some_and(|address| address.ends_with(&part));
        // What a retriever finds tells the same.
        let condition = json!({"AND": [{"field": "segment_index", "operator": "eq", "value": 1}]});
        let finder = json!({"retriever_name": "second", "collection_identifiers": [collection], "input_schema": {},
            "stages": [stage("attribute_filter", json!({"conditions": condition}))]});
        let finder = server.call_in(&namespace, "POST", "/v1/retrievers", finder).await.ok();
        let execute = format!("/v1/retrievers/{}/execute", finder["retriever_id"].as_str().unwrap());
        let found = server.call_in(&namespace, "POST", &execute, json!({"inputs": {}, "return_presigned_urls": true})).await.ok();
        assert!(is_part(&found["documents"][0]), "{found:#}");

        // Addresses end: what is sent back of them is no field, and where nobody asks for them there are none.
        let one = format!("{documents}/{}", segment["document_id"].as_str().unwrap());
        let back = json!({"thumbnail_url": segment["thumbnail_url"], "video_segment_url": segment["video_segment_url"], "scene": 2});
        server.call_in(&namespace, "PATCH", &one, back).await.ok();
        let plain = server.call_in(&namespace, "GET", &one, Value::Null).await.ok();
        assert_eq!((plain.get("thumbnail_url"), plain.get("video_segment_url"), &plain["scene"]), (None, None, &json!(2)), "{plain:#}");
        // A field of that name is the document's own.
        let own = "https://example.com/a.png";
        server.call_in(&namespace, "PATCH", &one, json!({"thumbnail_url": own})).await.ok();
        let shown = server.call_in(&namespace, "GET", &format!("{one}?return_presigned_urls=true"), Value::Null).await.ok();
        assert!(shown["thumbnail_url"] == own && is_part(&shown), "{shown:#}");
    }

    async fn a_converted_film_goes_from_the_disk_to_the_store(server) {
        let parameters = json!({"preset": "ultrafast", "max_resolution": 144});
        let (namespace, bucket, collection) = shelf(&server, "video", "transcoding_extractor", parameters).await;
        object(&server, &namespace, &bucket, "film", blob("video", "video/mp4", &film())).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let path = format!("/v1/collections/{collection}/documents/list");
        let list = server.call_in(&namespace, "POST", &path, json!({"return_presigned_urls": true})).await.ok();
        let blobs = list["results"][0]["document_blobs"].as_array().unwrap();
        let converted = blobs.iter().find(|blob| blob["role"] == "processed").expect("the film once more");
        let url = converted["presigned_url"].as_str().unwrap().replace(&server.app.config().address(), "");
        let kept = server.request("GET", &url).send().await.unwrap().bytes().await.unwrap();
        assert_eq!(&kept[4..8], b"ftyp");
        assert_eq!(converted["size_bytes"], kept.len());
    }
}
