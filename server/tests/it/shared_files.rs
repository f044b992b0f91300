//! Files in a bucket that several processes share.

use std::time::{Duration, Instant};

use loupe_server::config::Config;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{
    batches::{ended, library, red_square},
    fake_s3::Bucket,
    harness::{self, Database, Server},
};

async fn settings(database: Database, bucket: &Bucket) -> (Config, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(database, &folder).await;
    config.master_key = "1f".repeat(32).into();
    config.blobs = bucket.settings();
    (config, folder)
}

/// Another process, with a folder of its own, that leaves the work of batches to the first one.
async fn beside(server: &Server) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = server.app.config().clone();
    config.data = folder.path().join("data");
    config.listen.set_port(0);
    config.jobs.workers = 0;
    Server::start_with(config, folder, Some(server.key.clone())).await
}

async fn read(server: &Server, address: &str) -> (u16, Vec<u8>) {
    let answer = server.request("GET", address).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.bytes().await.unwrap().to_vec())
}

async fn keys_become(bucket: &Bucket, prefix: &str, count: usize) {
    let began = Instant::now();
    while bucket.keys(prefix).len() != count {
        let keys = bucket.keys(prefix);
        assert!(began.elapsed() < Duration::from_secs(180), "{keys:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_machines_share_the_files_of_one_bucket() {
    let store = Bucket::start().await;
    let (config, folder) = settings(Database::Postgres, &store).await;
    let first = Server::start_with(config, folder, None).await;
    let second = beside(&first).await;
    let (namespace, bucket, collection) = library(&first, "image_extractor", "image").await;
    let path = format!("/v1/buckets/{bucket}/uploads");
    let picture = red_square();
    let hash = hex::encode(Sha256::digest(&picture));
    let body = json!({"filename": "red.png", "content_type": "image/png", "file_size_bytes": picture.len(), "file_hash": hash});
    let upload = first.call_in(&namespace, "POST", &path, body).await.ok();

    // Sent to the store itself, confirmed at the other machine.
    let url = upload["presigned_url"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&store.address), "{url}");
    let sent = first.request("PUT", &url).body(picture.clone());
    assert_eq!(Server::send(sent).await.status, 200);
    let one = format!("{path}/{}", upload["upload_id"].as_str().unwrap());
    let confirm = format!("{one}/confirm");
    let auto = json!({"auto_submit_batch": true});
    let confirmed = second
        .call_in(&namespace, "POST", &confirm, auto)
        .await
        .ok();
    assert_eq!(confirmed["file_hash"], hash);
    let batch = format!("/v1/batches/{}", confirmed["batch_id"].as_str().unwrap());
    let batch = ended(&second, &namespace, &batch).await;
    assert_eq!(batch["status"], "COMPLETED", "{batch:#}");

    // The address still takes bytes, but they are nobody's: what was confirmed stays.
    let late = second.request("PUT", &url).body("something else");
    assert_eq!(Server::send(late).await.status, 200);
    for server in [&first, &second] {
        let shown = format!("{one}?return_presigned_urls=true");
        let shown = server
            .call_in(&namespace, "GET", &shown, Value::Null)
            .await
            .ok();
        let url = shown["presigned_url"].as_str().unwrap();
        assert_eq!(read(server, url).await, (200, picture.clone()));
    }
    let object = format!(
        "/v1/buckets/{bucket}/objects/{}?return_presigned_urls=true",
        confirmed["object_id"].as_str().unwrap()
    );
    let object = second
        .call_in(&namespace, "GET", &object, Value::Null)
        .await
        .ok();
    let url = object["blobs"][0]["presigned_url"].as_str().unwrap();
    assert!(url.starts_with(&store.address), "{url}");
    let answer = second.request("GET", url).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(
        answer.headers()["content-disposition"],
        "inline; filename=\"red.png\""
    );
    assert_eq!(answer.bytes().await.unwrap(), picture);

    // Pictures of documents are read through whichever machine is asked.
    let list = format!("/v1/collections/{collection}/documents/list");
    let list = first
        .call_in(
            &namespace,
            "POST",
            &list,
            json!({"return_presigned_urls": true}),
        )
        .await
        .ok();
    let blobs = list["results"][0]["document_blobs"].as_array().unwrap();
    let thumbnail = blobs.iter().find(|blob| blob["role"] == "thumbnail");
    let url = thumbnail.expect("a picture has a thumbnail")["presigned_url"].as_str();
    let path = url.unwrap().strip_prefix(&first.url).unwrap();
    let (status, bytes) = read(&first, path).await;
    assert_eq!(status, 200);
    assert_eq!(read(&second, path).await, (200, bytes));
    assert!(first.files("").is_empty() && second.files("").is_empty());
    let direct = store.direct();
    let methods = |method: &str| direct.iter().filter(|one| one.starts_with(method)).count();
    assert_eq!((methods("PUT"), methods("GET")), (2, 3), "{direct:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_bucket_come_and_go_through_the_server_too() {
    let store = Bucket::start().await;
    let (mut config, folder) = settings(Database::Sqlite, &store).await;
    config.blobs.direct = false;
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("files").await;
    let bucket = json!({"bucket_name": "films", "bucket_schema": {"properties": {"film": {"type": "video"}}}});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let path = format!(
        "/v1/buckets/{}/uploads",
        bucket["bucket_id"].as_str().unwrap()
    );
    let announce = async |name: &str| {
        let body = json!({"filename": name, "content_type": "video/mp4", "skip_duplicates": false});
        server.call_in(&namespace, "POST", &path, body).await.ok()
    };
    let address = |upload: &Value| upload["presigned_url"].as_str().unwrap().to_owned();
    let one = |upload: &Value| format!("{path}/{}", upload["upload_id"].as_str().unwrap());
    let uploads = format!("{namespace}/uploads");

    // Too much for one request to the store: it goes there in parts.
    let film: Vec<u8> = (0_u32..11 << 20).map(|at| (at >> 8) as u8).collect();
    let whole = announce("film.mp4").await;
    assert!(address(&whole).starts_with(&server.url), "{whole:#}");
    let sent = server.request("PUT", &address(&whole)).body(film.clone());
    assert_eq!(Server::send(sent).await.status, 200);
    assert_eq!(store.in_parts(), (1, 0));
    let confirm = format!("{}/confirm", one(&whole));
    let confirmed = server
        .call_in(&namespace, "POST", &confirm, json!({}))
        .await
        .ok();
    assert_eq!(confirmed["file_hash"], hex::encode(Sha256::digest(&film)));
    let shown = format!("{}?return_presigned_urls=true", one(&whole));
    let shown = server
        .call_in(&namespace, "GET", &shown, Value::Null)
        .await
        .ok();
    let part = server
        .request("GET", &address(&shown))
        .header("range", "bytes=6000000-6000009")
        .send()
        .await
        .unwrap();
    assert_eq!(part.status().as_u16(), 206);
    assert_eq!(
        part.headers()["content-range"],
        format!("bytes 6000000-6000009/{}", film.len())
    );
    assert_eq!(part.bytes().await.unwrap(), film[6_000_000..6_000_010]);

    // One that breaks off and goes on.
    let half = announce("half.mp4").await;
    let send = async |range: &str, bytes: &'static str| {
        let request = server.request("PUT", &address(&half));
        let request = request.header("content-range", range).body(bytes);
        Server::send(request).await.status
    };
    assert_eq!(send("bytes 5-9/10", "-last").await, 202);
    assert_eq!(send("bytes 0-4/10", "first").await, 200);
    let confirm = format!("{}/confirm", one(&half));
    let confirmed = server
        .call_in(&namespace, "POST", &confirm, json!({}))
        .await
        .ok();
    assert_eq!(
        confirmed["file_hash"],
        hex::encode(Sha256::digest("first-last"))
    );

    // What is deleted, and what nobody confirms, leaves nothing behind.
    assert_eq!(store.keys(&uploads).len(), 2, "{:#?}", store.keys(&uploads));
    let gone = server
        .call_in(&namespace, "DELETE", &one(&half), Value::Null)
        .await;
    assert_eq!(gone.status, 204);
    let lost = announce("lost.mp4").await;
    let sent = server.request("PUT", &address(&lost)).body("lost");
    assert_eq!(Server::send(sent).await.status, 200);
    assert_eq!(store.keys(&uploads).len(), 2);
    server.app.clock().advance(7_300);
    keys_become(&store, &uploads, 1).await;
    let health = server.call("GET", "/v1/health", Value::Null).await.ok();
    assert_eq!(health["data"]["object_storage"], true, "{health:#}");
    // A store that is down is no fault of the caller's, and none of the server's.
    store.set_down(true);
    let again = format!("{}/confirm", one(&announce("down.mp4").await));
    let refused = server.call_in(&namespace, "POST", &again, json!({})).await;
    refused.error(503, "ServiceUnavailableError");
    store.set_down(false);
    let settings = serde_json::to_string(server.app.config()).unwrap();
    assert!(settings.contains("s3://files/loupe") && !settings.contains("a secret"));
    let path = format!("/v1/namespaces/{namespace}");
    assert!(server.call("DELETE", &path, Value::Null).await.status < 300);
    keys_become(&store, &namespace, 0).await;
    assert_eq!(store.direct(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_goes_to_the_bucket_in_parts_and_goes_on_after_a_restart() {
    let store = Bucket::start().await;
    let (config, folder) = settings(Database::Sqlite, &store).await;
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("films").await;
    let bucket = json!({"bucket_name": "films", "bucket_schema": {"properties": {"film": {"type": "video"}}}});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let path = format!(
        "/v1/buckets/{}/uploads",
        bucket["bucket_id"].as_str().unwrap()
    );
    let film: Vec<u8> = (0_u32..9 << 20).map(|at| (at >> 8) as u8).collect();
    let hash = hex::encode(Sha256::digest(&film));
    let announce = async |server: &Server| {
        let body = json!({"filename": "film.mp4", "content_type": "video/mp4", "file_size_bytes": film.len(),
            "file_hash": hash, "skip_duplicates": false});
        let upload = server.call_in(&namespace, "POST", &path, body).await.ok();
        format!("{path}/{}", upload["upload_id"].as_str().unwrap())
    };
    let parts = async |server: &Server, one: &str| {
        let path = format!("{one}/parts");
        let told = server.call_in(&namespace, "POST", &path, Value::Null).await;
        told.ok()["parts"].as_array().unwrap().clone()
    };
    let there = |parts: &[Value]| -> Vec<bool> {
        parts.iter().map(|part| part["is_there"] == true).collect()
    };
    let send = async |server: &Server, part: &Value, bytes: &[u8]| {
        let request = server.request("PUT", part["presigned_url"].as_str().unwrap());
        Server::send(request.body(bytes.to_vec())).await.status
    };
    let confirm = async |server: &Server, one: &str| {
        let path = format!("{one}/confirm");
        server.call_in(&namespace, "POST", &path, json!({})).await
    };
    let one = announce(&server).await;
    let told = parts(&server, &one).await;
    let at = |part: &Value, member: &str| part[member].as_u64().unwrap() as usize;
    let bytes = |part: &Value| film[at(part, "first_byte")..=at(part, "last_byte")].to_vec();
    assert_eq!(told.len(), 2);
    for part in &told {
        let url = part["presigned_url"].as_str().unwrap();
        assert!(url.starts_with(&store.address), "{url}");
        assert_eq!(part["headers"], json!({}));
    }
    // The last one first; then the server is away.
    assert_eq!(send(&server, &told[1], &bytes(&told[1])).await, 200);
    let server = server.restart().await;
    let told = parts(&server, &one).await;
    assert_eq!(there(&told), [false, true]);
    let refused = confirm(&server, &one).await;
    assert!(
        refused
            .body
            .to_string()
            .contains("1 of its 2 parts are missing"),
        "{:#}",
        refused.body
    );
    refused.error(400, "BadRequestError");
    // One that is cut short is not there.
    assert_eq!(send(&server, &told[0], &film[..100]).await, 200);
    assert_eq!(there(&parts(&server, &one).await), [false, true]);
    assert_eq!(send(&server, &told[0], &bytes(&told[0])).await, 200);
    assert_eq!(store.keys(&format!("{namespace}/uploads")).len(), 0);
    let confirmed = confirm(&server, &one).await.ok();
    assert_eq!(confirmed["file_hash"], hash.as_str());
    assert_eq!(store.in_parts(), (1, 0));
    assert_eq!(
        confirm(&server, &one).await.ok()["object_id"],
        confirmed["object_id"]
    );

    // What is deleted, refused and sent again, or never confirmed leaves no parts behind.
    let gone = announce(&server).await;
    parts(&server, &gone).await;
    assert_eq!(store.in_parts(), (1, 1));
    assert_eq!(
        server
            .call_in(&namespace, "DELETE", &gone, Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(store.in_parts(), (1, 0));
    let other = announce(&server).await;
    for wrong in [true, false] {
        for part in &parts(&server, &other).await {
            let mut bytes = bytes(part);
            bytes[0] ^= u8::from(wrong);
            assert_eq!(send(&server, part, &bytes).await, 200);
        }
        let status = confirm(&server, &other).await.status;
        assert_eq!(status, if wrong { 400 } else { 200 });
    }
    assert_eq!(store.in_parts(), (3, 0));
    let none = async || {
        let began = Instant::now();
        while store.in_parts() != (3, 0) {
            let there = store.in_parts();
            assert!(began.elapsed() < Duration::from_secs(180), "{there:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let lost = announce(&server).await;
    let told = parts(&server, &lost).await;
    assert_eq!(send(&server, &told[1], &bytes(&told[1])).await, 200);
    server.app.clock().advance(7_300);
    none().await;
    // Nor does a bucket that is removed.
    let left = announce(&server).await;
    let told = parts(&server, &left).await;
    assert_eq!(send(&server, &told[0], &bytes(&told[0])).await, 200);
    assert_eq!(store.in_parts(), (3, 1));
    let bucket = path.strip_suffix("/uploads").unwrap();
    let gone = server.call_in(&namespace, "DELETE", bucket, Value::Null);
    gone.await.ok();
    none().await;
}
