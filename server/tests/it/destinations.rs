//! Buckets that keep their files in a storage of the organization's own.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process, put_back, red_square},
    both,
    fake_s3::{Bucket, KEY},
    harness::{Answer, Server, other_organization},
};

pub fn connection(storage: &Bucket, name: &str) -> Value {
    json!({
        "name": name, "provider_type": "s3", "write_enabled": true, "test_before_save": false,
        "provider_config": {"endpoint_url": storage.address, "credentials": {"access_key_id": KEY, "secret_access_key": "s"}},
    })
}

pub async fn connect(server: &Server, connection: Value) -> String {
    let path = "/v1/organizations/connections";
    let made = server.call("POST", path, connection).await.ok();
    made["connection_id"].as_str().unwrap().to_owned()
}

/// A library whose bucket keeps its files in a storage.
struct Kept<'a> {
    server: &'a Server,
    storage: Bucket,
    connection: String,
    namespace: String,
    bucket: String,
    collection: String,
}

impl<'a> Kept<'a> {
    async fn new(server: &'a Server) -> Self {
        // The rest of this machine is closed to what callers aim.
        let storage = Bucket::start_at("127.0.0.2").await;
        let connection = connect(server, connection(&storage, "lake")).await;
        let (namespace, bucket, collection) = library(server, "image_extractor", "image").await;
        let kept = Self {
            server,
            storage,
            connection,
            namespace,
            bucket,
            collection,
        };
        // A bucket that is empty takes one, by the connection's name; it is known by its id from then on.
        let sent = json!({"destination": {"connection_id": "lake", "prefix": "s3://files/kept"}});
        let changed = kept.call("PATCH", "", sent).await.ok();
        let told = json!({"connection_id": kept.connection, "prefix": "s3://files/kept"});
        assert_eq!(changed["destination"], told);
        kept
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let path = format!("/v1/buckets/{}{path}", self.bucket);
        self.server
            .call_in(&self.namespace, method, &path, body)
            .await
    }

    /// Keys of the storage below the bucket's folder that begin with this.
    fn keys(&self, prefix: &str) -> Vec<String> {
        let prefix = format!("kept/{}/{prefix}", self.bucket);
        let mut keys: Vec<String> = self.storage.files().into_keys().collect();
        keys.retain(|key| key.starts_with(&prefix));
        keys
    }

    async fn keys_become(&self, prefix: &str, count: usize) {
        let began = Instant::now();
        while self.keys(prefix).len() != count {
            let keys = self.keys(prefix);
            assert!(began.elapsed() < Duration::from_secs(180), "{keys:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn picture(&self, title: &str) -> String {
        let (server, namespace) = (self.server, &self.namespace);
        object(server, namespace, &self.bucket, title, picture()).await
    }

    /// What an address of this server reads.
    async fn read(&self, blob: &Value) -> Vec<u8> {
        let url = blob["presigned_url"].as_str().unwrap();
        assert!(url.starts_with(&self.server.url), "{url}");
        let found = self.server.request("GET", url).send().await.unwrap();
        assert_eq!(found.status(), 200, "{url}");
        found.bytes().await.unwrap().to_vec()
    }

    async fn thumbnail(&self, namespace: &str, collection: &str) -> Value {
        let path = format!("/v1/collections/{collection}/documents/list");
        let body = json!({"return_presigned_urls": true});
        let list = self
            .server
            .call_in(namespace, "POST", &path, body)
            .await
            .ok();
        let blobs = list["results"][0]["document_blobs"].as_array().unwrap();
        let mut blobs = blobs.iter();
        let found = blobs.find(|blob| blob["role"] == "thumbnail");
        found.expect("a picture has a thumbnail").clone()
    }

    async fn announce(&self) -> Value {
        let body = json!({"filename": "red.png", "content_type": "image/png", "file_size_bytes": red_square().len(), "skip_duplicates": false});
        let upload = self.call("POST", "/uploads", body).await.ok();
        let url = upload["presigned_url"].as_str().unwrap();
        assert!(url.starts_with(&self.server.url), "{url}");
        upload
    }

    async fn put(&self, upload: &Value) -> Answer {
        let url = upload["presigned_url"].as_str().unwrap();
        Server::send(self.server.request("PUT", url).body(red_square())).await
    }

    async fn confirm(&self, upload: &Value) -> Value {
        let id = upload["upload_id"].as_str().unwrap();
        let path = format!("/uploads/{id}/confirm");
        self.call("POST", &path, json!({})).await.ok()
    }

    /// Sent whole or in parts, files arrive in the storage and become objects there.
    async fn uploads_arrive_there(&self) {
        let upload = self.announce().await;
        self.put(&upload).await.ok();
        let confirmed = self.confirm(&upload).await;
        let object = confirmed["object_id"].as_str().unwrap();
        self.keys_become(&format!("objects/{object}/"), 1).await;
        let parts = self.announce().await;
        let whole = red_square();
        let (first, last) = whole.split_at(20);
        let send = async |at: usize, bytes: &[u8]| {
            let url = parts["presigned_url"].as_str().unwrap();
            let range = format!("bytes {at}-{}/{}", at + bytes.len() - 1, whole.len());
            let request = self.server.request("PUT", url).body(bytes.to_vec());
            Server::send(request.header("content-range", range))
                .await
                .status
        };
        assert_eq!(send(20, last).await, 202);
        assert_eq!(send(0, first).await, 200);
        self.confirm(&parts).await;
        self.keys_become("uploads/", 2).await;
        let path = format!(
            "/uploads/{}?return_presigned_urls=true",
            parts["upload_id"].as_str().unwrap()
        );
        let shown = self.call("GET", &path, Value::Null).await.ok();
        assert_eq!(self.read(&shown).await, whole);
        for upload in [&upload, &parts] {
            let path = format!("/uploads/{}", upload["upload_id"].as_str().unwrap());
            assert_eq!(self.call("DELETE", &path, Value::Null).await.status, 204);
        }
        self.keys_become("uploads/", 0).await;
    }

    /// The connection stays as long as files are kept through it, and goes with the last of them.
    async fn its_connection_is_held(&self) {
        let one = format!("/v1/organizations/connections/{}", self.connection);
        let held = self.server.call("DELETE", &one, Value::Null).await;
        let held = held.error(409, "ConflictError");
        assert_eq!(held["error"]["code"], "connection_in_use");
        assert_eq!(held["error"]["details"]["buckets"], json!(["files"]));
        let gone = self.call("DELETE", "", Value::Null).await.ok();
        let task = gone["task_id"].as_str().unwrap();
        assert_eq!(self.server.task_end(task).await["status"], "COMPLETED");
        assert!(
            self.storage.files().is_empty(),
            "{:#?}",
            self.storage.files().keys()
        );
        self.server.call("DELETE", &one, Value::Null).await.ok();
    }
}

fn picture() -> Value {
    json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square())})
}

/// A bucket with this destination.
async fn aimed(server: &Server, namespace: &str, destination: Value) -> Answer {
    let schema = json!({"properties": {"image": {"type": "image"}}});
    let body = json!({"bucket_name": "aimed", "bucket_schema": schema, "destination": destination});
    server.call_in(namespace, "POST", "/v1/buckets", body).await
}

both! {
    async fn files_of_a_bucket_are_where_its_destination_says(server) {
        let kept = Kept::new(&server).await;
        let id = kept.picture("red").await;
        assert_eq!(kept.keys(&format!("objects/{id}/")).len(), 1);
        let path = format!("/objects/{id}?return_presigned_urls=true");
        let shown = kept.call("GET", &path, Value::Null).await.ok();
        assert_eq!(kept.read(&shown["blobs"][0]).await, red_square());

        // What is made of them is beside them.
        let batch = process(&server, &kept.namespace, &kept.bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let made = kept.keys(&format!("documents/{}/", kept.collection));
        assert!(!made.is_empty());
        let thumbnail = kept.thumbnail(&kept.namespace, &kept.collection).await;
        let read = kept.read(&thumbnail).await;
        let files = kept.storage.files();
        assert!(made.iter().any(|key| files[key] == read), "{made:#?}");
        kept.uploads_arrive_there().await;
        // The server's own store has none of it.
        assert_eq!(server.files(&kept.namespace), [""; 0]);

        // What replaces its documents replaces their files, and an object that goes takes everything along.
        process(&server, &kept.namespace, &kept.bucket).await;
        assert_eq!(kept.call("DELETE", &format!("/objects/{id}"), Value::Null).await.status, 204);
        kept.keys_become(&format!("objects/{id}/"), 0).await;
        let collection = format!("/v1/collections/{}", kept.collection);
        server.call_in(&kept.namespace, "DELETE", &collection, Value::Null).await.ok();
        kept.keys_become("documents/", 0).await;
        kept.its_connection_is_held().await;
    }

    async fn copies_of_such_a_bucket_have_a_place_of_their_own(server) {
        let kept = Kept::new(&server).await;
        kept.picture("red").await;
        process(&server, &kept.namespace, &kept.bucket).await;
        // In the same namespace the copy's files are beside those of its source.
        let clone = format!("/v1/collections/{}/clone", kept.collection);
        let body = json!({"collection_name": "copies"});
        let made = server.call_in(&kept.namespace, "POST", &clone, body).await.ok();
        let copy = made["collection_id"].as_str().unwrap();
        let made = kept.keys(&format!("documents/{}/", kept.collection)).len();
        assert_ne!(made, 0);
        kept.keys_become(&format!("documents/{copy}/"), made).await;
        assert_eq!(server.files(&kept.namespace), [""; 0]);
        server.call_in(&kept.namespace, "DELETE", &format!("/v1/collections/{copy}"), Value::Null).await.ok();
        kept.keys_become(&format!("documents/{copy}/"), 0).await;

        // A namespace that is removed takes its files along.
        let path = format!("/v1/namespaces/{}", kept.namespace);
        let gone = server.call("DELETE", &path, Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        assert!(kept.storage.files().is_empty(), "{:#?}", kept.storage.files().keys());
        let one = format!("/v1/organizations/connections/{}", kept.connection);
        server.call("DELETE", &one, Value::Null).await.ok();
    }

    async fn what_does_not_come_back_from_a_snapshot_holds_no_connection(server) {
        let kept = Kept::new(&server).await;
        let collection = format!("/v1/collections/{}", kept.collection);
        server.call_in(&kept.namespace, "DELETE", &collection, Value::Null).await.ok();
        let snapshots = format!("/v1/namespaces/{}/snapshots", kept.namespace);
        let made = server.call("POST", &snapshots, json!({})).await.ok();
        server.task_end(made["task_id"].as_str().unwrap()).await;
        let snapshot = format!("{snapshots}/{}", made["snapshot_id"].as_str().unwrap());
        let restored = async || {
            let path = format!("{snapshot}/restore");
            let begun = server.call("POST", &path, json!({"confirm_in_place": true})).await.ok();
            let task = server.task_end(begun["task_id"].as_str().unwrap()).await;
            assert_eq!(task["status"], "COMPLETED", "{task:#}");
            server.call("GET", &snapshot, Value::Null).await.ok()["last_restore"]["skipped_summary"].to_string()
        };
        let gone = kept.call("DELETE", "", Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;

        // Another one has its name by now: it stays away, and its place with it.
        let schema = json!({"properties": {"image": {"type": "image"}}});
        let body = json!({"bucket_name": "files", "bucket_schema": schema});
        let other = server.call_in(&kept.namespace, "POST", "/v1/buckets", body).await.ok();
        let told = restored().await;
        assert!(told.contains("has its name"), "{told}");
        kept.call("GET", "", Value::Null).await.error(404, "NotFoundError");
        let one = format!("/v1/organizations/connections/{}", kept.connection);
        server.call("DELETE", &one, Value::Null).await.ok();

        // Without the connection it comes back as one of this server's own store, and that is told.
        let other = format!("/v1/buckets/{}", other["bucket_id"].as_str().unwrap());
        let gone = server.call_in(&kept.namespace, "DELETE", &other, Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        let told = restored().await;
        assert!(told.contains("the connection of its destination is gone"), "{told}");
        let back = kept.call("GET", "", Value::Null).await.ok();
        assert_eq!(back["destination"], Value::Null);
    }

    async fn a_destination_is_a_place_that_the_caller_may_write_to(server) {
        let storage = Bucket::start_at("127.0.0.2").await;
        let namespace = server.namespace("aims").await;
        let own = connect(&server, connection(&storage, "lake")).await;
        let to = |connection: &str, prefix: &str| json!({"connection_id": connection, "prefix": prefix});

        // One of another organization is one that does not exist.
        let other = other_organization(&server).await;
        let request = server.request("POST", "/v1/organizations/connections").bearer_auth(&other.key);
        let others = Server::send(request.json(&connection(&storage, "theirs"))).await.ok();
        for unknown in [others["connection_id"].as_str().unwrap(), "theirs", "conn_none"] {
            let refused = aimed(&server, &namespace, to(unknown, "s3://files")).await.error(404, "NotFoundError");
            assert_eq!(refused["error"]["details"], json!({"resource": "connection", "id": unknown}));
        }
        for prefix in ["", "files/a", "s3://", "s3://../a"] {
            aimed(&server, &namespace, to(&own, prefix)).await.invalid(&["body", "destination", "prefix"], "value_error");
        }
        let mut reading = connection(&storage, "reading");
        reading["write_enabled"] = false.into();
        let reading = connect(&server, reading).await;
        aimed(&server, &namespace, to(&reading, "s3://files")).await.error(400, "BadRequestError");

        // With something in it, a bucket stays where it is.
        let made = aimed(&server, &namespace, to(&own, "s3://files/one")).await.ok();
        let bucket = format!("/v1/buckets/{}", made["bucket_id"].as_str().unwrap());
        let patch = async |prefix: &str| {
            let body = json!({"destination": to(&own, prefix)});
            server.call_in(&namespace, "PATCH", &bucket, body).await
        };
        patch("s3://files/two").await.ok();
        // Nothing was ever written at the first place: its connection is free once the bucket has another one.
        let second = connect(&server, connection(&storage, "second")).await;
        let moved = json!({"destination": to(&second, "s3://files/two")});
        server.call_in(&namespace, "PATCH", &bucket, moved).await.ok();
        patch("s3://files/two").await.ok();
        let one = format!("/v1/organizations/connections/{second}");
        server.call("DELETE", &one, Value::Null).await.ok();
        // Nor does a bucket keep its files where those of another one are, which would go with that one.
        let id = made["bucket_id"].as_str().unwrap();
        for prefix in [format!("s3://files/two/{id}"), format!("s3://files/two/{id}/deep/er")] {
            let schema = json!({"properties": {"image": {"type": "image"}}});
            let body = json!({"bucket_name": "within", "bucket_schema": schema, "destination": to(&own, &prefix)});
            let refused = server.call_in(&namespace, "POST", "/v1/buckets", body).await;
            refused.invalid(&["body", "destination", "prefix"], "value_error");
        }
        let body = json!({"blobs": [picture()]});
        server.call_in(&namespace, "POST", &format!("{bucket}/objects"), body).await.ok();
        let refused = patch("s3://files/one").await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "destination_in_use");
        patch("s3://files/two").await.ok();
        let keys: Vec<String> = storage.files().into_keys().collect();
        assert!(keys.len() == 1 && keys[0].starts_with("two/"), "{keys:#?}");
    }

    async fn a_clone_takes_no_key_to_a_storage_that_it_may_not_write_to(server) {
        let kept = Kept::new(&server).await;
        let path = format!("/v1/namespaces/{}/clone", kept.namespace);
        let clone = async |name: &str, operations: Value| {
            let scopes = json!([{"resource_type": "namespace", "resource_id": "*", "operations": operations}]);
            let body = json!({"name": name, "permissions": ["admin"], "scopes": scopes});
            let key = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
            let request = server.request("POST", &path).bearer_auth(key["key"].as_str().unwrap());
            Server::send(request.json(&json!({"namespace_name": name}))).await
        };
        let refused = clone("refused", json!(["modify_infrastructure"])).await.error(403, "ForbiddenError");
        assert_eq!(refused["error"]["code"], "scope_denied");
        server.call("GET", "/v1/namespaces/refused", Value::Null).await.error(404, "NotFoundError");
        let made = clone("taken", json!(["modify_infrastructure", "write_data"])).await.ok();
        let copy = made["namespace"]["namespace_id"].as_str().unwrap();
        let buckets = server.call_in(copy, "GET", "/v1/buckets", Value::Null).await.ok();
        assert_eq!(buckets["results"][0]["destination"]["connection_id"], json!(kept.connection), "{buckets:#}");
    }

    async fn a_storage_that_is_away_loses_nothing(server) {
        let kept = Kept::new(&server).await;
        kept.picture("red").await;
        let upload = kept.announce().await;
        kept.storage.set_down(true);
        let body = json!({"title": "lost", "blobs": [picture()]});
        let refused = kept.call("POST", "/objects", body).await.error(503, "ServiceUnavailableError");
        assert_eq!(refused["error"]["code"], "destination_unavailable");
        assert!(!refused.to_string().contains(&kept.storage.address), "{refused:#}");
        assert_eq!(kept.put(&upload).await.status, 503);
        let list = kept.call("GET", "/objects", Value::Null).await.ok();
        assert_eq!(list["results"].as_array().unwrap().len(), 1, "{list:#}");
        // A batch waits for it to be back.
        let back = async {
            put_back(&server).await;
            kept.storage.set_down(false);
        };
        let (batch, ()) = tokio::join!(process(&server, &kept.namespace, &kept.bucket), back);
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        kept.put(&upload).await.ok();
        kept.confirm(&upload).await;
        assert_eq!(kept.keys("objects/").len(), 2);
    }
}
