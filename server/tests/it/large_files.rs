//! Files that are not in the server's memory as a whole, through a batch: what is read from the disk, and what is kept from it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{object, process},
    both,
    harness::Server,
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
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
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

fn blob(kind: &str, mime: &str, bytes: &[u8]) -> Value {
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
