//! Files that stay at their source: read in a storage of the organization's own, where nothing is written or removed.

use serde_json::{Value, json};

use crate::{
    batches::{library, process, put_back, red_square},
    both,
    destinations::{connect, connection},
    fake_s3::Bucket,
    harness::{Answer, Server},
};

const KEY: &str = "films/red.png";

/// A library with an object whose file stays in a storage that this server only reads.
struct Stay<'a> {
    server: &'a Server,
    storage: Bucket,
    connection: String,
    namespace: String,
    bucket: String,
    collection: String,
}

impl<'a> Stay<'a> {
    async fn new(server: &'a Server) -> Self {
        let storage = Bucket::start_at("127.0.0.2").await;
        storage.put(KEY, red_square());
        let mut reading = connection(&storage, "lake");
        reading["write_enabled"] = false.into();
        let connection = connect(server, reading).await;
        let (namespace, bucket, collection) = library(server, "image_extractor", "image").await;
        Self {
            server,
            storage,
            connection,
            namespace,
            bucket,
            collection,
        }
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let path = format!("/v1/buckets/{}{path}", self.bucket);
        self.server
            .call_in(&self.namespace, method, &path, body)
            .await
    }

    async fn link(&self) -> Value {
        let blob = json!({"property": "image", "type": "image", "data": format!("s3://files/{KEY}"), "canonicalize_source": false});
        let body = json!({"title": "red", "blobs": [blob]});
        self.call("POST", "/objects", body).await.ok()
    }

    async fn shown(&self, id: &str) -> Value {
        let path = format!("/objects/{id}?return_presigned_urls=true");
        self.call("GET", &path, Value::Null).await.ok()["blobs"][0].clone()
    }

    async fn get(&self, blob: &Value, range: &str) -> reqwest::Response {
        let url = blob["presigned_url"].as_str().unwrap();
        assert!(url.starts_with(&self.server.url), "{url}");
        let request = self.server.request("GET", url).header("range", range);
        request.send().await.unwrap()
    }

    async fn let_go(&self) -> Answer {
        let one = format!("/v1/organizations/connections/{}", self.connection);
        self.server.call("DELETE", &one, Value::Null).await
    }
}

fn id(object: &Value) -> &str {
    object["object_id"].as_str().unwrap()
}

both! {
    async fn a_file_stays_at_its_source_and_is_read_there(server) {
        let stay = Stay::new(&server).await;
        let made = stay.link().await;
        let blob = stay.shown(id(&made)).await;
        assert_eq!(blob["properties"]["connection_id"], stay.connection.as_str());
        assert_eq!(blob["properties"]["canonicalize_source"], false);
        assert_eq!(blob["details"]["size_bytes"], red_square().len());
        let whole = stay.get(&blob, "bytes=0-").await.bytes().await.unwrap();
        assert_eq!(whole, red_square());
        let part = stay.get(&blob, "bytes=1-3").await;
        assert_eq!((part.status().as_u16(), part.bytes().await.unwrap().as_ref()), (206, &b"PNG"[..]));
        // Here is what leads there, and tells nobody of it.
        let kept = server.files(&stay.namespace);
        assert_eq!(kept.len(), 1, "{kept:#?}");

        // What is made of it is the server's own.
        let batch = process(&server, &stay.namespace, &stay.bucket).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");
        let prefix = format!("{}/documents/{}", stay.namespace, stay.collection);
        assert!(!server.files(&prefix).is_empty());
        assert_eq!(stay.storage.files().into_keys().collect::<Vec<_>>(), [KEY]);

        // The connection is held as long as an object has such a file; the source outlives it.
        let held = stay.let_go().await.error(409, "ConflictError");
        assert_eq!(held["error"]["details"]["buckets"], json!(["files"]));
        let path = format!("/objects/{}", id(&made));
        assert_eq!(stay.call("DELETE", &path, Value::Null).await.status, 204);
        server.files_become(&format!("{}/objects", stay.namespace), 0).await;
        assert_eq!(stay.storage.files().into_keys().collect::<Vec<_>>(), [KEY]);
        stay.let_go().await.ok();
    }

    async fn a_source_that_is_away_is_waited_for_and_one_that_is_gone_fails_its_object(server) {
        let stay = Stay::new(&server).await;
        let made = stay.link().await;
        let blob = stay.shown(id(&made)).await;
        stay.storage.set_down(true);
        assert_eq!(stay.get(&blob, "bytes=0-").await.status(), 503);
        let back = async {
            put_back(&server).await;
            stay.storage.set_down(false);
        };
        let (batch, ()) = tokio::join!(process(&server, &stay.namespace, &stay.bucket), back);
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");

        let missing = json!({"property": "image", "type": "image", "data": "s3://files/none.png"});
        let body = json!({"title": "none", "canonicalize_source": false, "blobs": [missing]});
        stay.call("POST", "/objects", body).await.invalid(&["body", "blobs", "0", "data"], "value_error");
        // Without its source a file is gone, and so is what a snapshot kept: the way to it.
        let snapshots = format!("/v1/namespaces/{}/snapshots", stay.namespace);
        let snapshot = server.call("POST", &snapshots, json!({"copy_s3_objects": true})).await.ok();
        server.task_end(snapshot["task_id"].as_str().unwrap()).await;
        let path = format!("/objects/{}", id(&made));
        let restore = format!("{snapshots}/{}/restore", snapshot["snapshot_id"].as_str().unwrap());
        let restored = async || {
            assert_eq!(stay.call("DELETE", &path, Value::Null).await.status, 204);
            server.files_become(&format!("{}/objects", stay.namespace), 0).await;
            let begun = server.call("POST", &restore, json!({"confirm_in_place": true})).await.ok();
            let task = server.task_end(begun["task_id"].as_str().unwrap()).await;
            assert_eq!(task["status"], "COMPLETED", "{task:#}");
            stay.call("GET", &path, Value::Null).await.status
        };
        assert_eq!(restored().await, 200);
        stay.let_go().await.error(409, "ConflictError");
        let files = stay.storage.files();
        stay.storage.remove(KEY);
        assert_eq!(stay.get(&blob, "bytes=0-").await.status(), 404);
        assert_eq!(restored().await, 404);
        stay.storage.put(KEY, files[KEY].to_vec());
        stay.let_go().await.ok();
    }
}
