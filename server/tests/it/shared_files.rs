//! Files in a bucket that several processes share.

use std::time::{Duration, Instant};

use loupe_server::config::Config;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{
    batches::{ended, library, red_square},
    fake_s3::Bucket,
    harness::{self, Answer, Database, Server},
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

fn address(upload: &Value) -> &str {
    upload["presigned_url"].as_str().unwrap()
}

async fn put(server: &Server, address: &str, bytes: impl Into<reqwest::Body>) -> u16 {
    let sent = server.request("PUT", address).body(bytes);
    Server::send(sent).await.status
}

async fn keys_become(bucket: &Bucket, prefix: &str, count: usize) {
    let began = Instant::now();
    while bucket.keys(prefix).len() != count {
        let keys = bucket.keys(prefix);
        assert!(began.elapsed() < Duration::from_secs(180), "{keys:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Two processes over one store, and a picture that was sent to it.
struct Shared {
    second: Server,
    first: Server,
    store: Bucket,
    namespace: String,
    picture: Vec<u8>,
}

impl Shared {
    async fn get(&self, server: &Server, path: &str) -> Value {
        let answer = server.call_in(&self.namespace, "GET", path, Value::Null);
        answer.await.ok()
    }

    /// The address still takes bytes, but they are nobody's: what was confirmed stays.
    async fn what_was_confirmed_stays(&self, upload: &str, url: &str) {
        assert_eq!(put(&self.second, url, "something else").await, 200);
        for server in [&self.first, &self.second] {
            let path = format!("{upload}?return_presigned_urls=true");
            let shown = self.get(server, &path).await;
            let read = read(server, address(&shown)).await;
            assert_eq!(read, (200, self.picture.clone()));
        }
    }

    async fn objects_are_read_from_the_store(&self, object: &str) {
        let path = format!("{object}?return_presigned_urls=true");
        let object = self.get(&self.second, &path).await;
        let url = address(&object["blobs"][0]);
        assert!(url.starts_with(&self.store.address), "{url}");
        let answer = self.second.request("GET", url).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "image/png");
        assert_eq!(
            answer.headers()["content-disposition"],
            "inline; filename=\"red.png\""
        );
        assert_eq!(answer.bytes().await.unwrap(), self.picture);
    }

    /// Pictures of documents are read through whichever machine is asked.
    async fn thumbnails_are_read_at_both(&self, collection: &str) {
        let list = format!("/v1/collections/{collection}/documents/list");
        let body = json!({"return_presigned_urls": true});
        let list = self.first.call_in(&self.namespace, "POST", &list, body);
        let list = list.await.ok();
        let blobs = list["results"][0]["document_blobs"].as_array().unwrap();
        let thumbnail = blobs.iter().find(|blob| blob["role"] == "thumbnail");
        let url = address(thumbnail.expect("a picture has a thumbnail"));
        let path = url.strip_prefix(&self.first.url).unwrap();
        let (status, bytes) = read(&self.first, path).await;
        assert_eq!(status, 200);
        assert_eq!(read(&self.second, path).await, (200, bytes));
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
    let url = address(&upload);
    assert!(url.starts_with(&store.address), "{url}");
    assert_eq!(put(&first, url, picture.clone()).await, 200);
    let one = format!("{path}/{}", upload["upload_id"].as_str().unwrap());
    let confirm = format!("{one}/confirm");
    let auto = json!({"auto_submit_batch": true});
    let confirmed = second.call_in(&namespace, "POST", &confirm, auto);
    let confirmed = confirmed.await.ok();
    assert_eq!(confirmed["file_hash"], hash);
    let batch = format!("/v1/batches/{}", confirmed["batch_id"].as_str().unwrap());
    let batch = ended(&second, &namespace, &batch).await;
    assert_eq!(batch["status"], "COMPLETED", "{batch:#}");

    let shared = Shared {
        first,
        second,
        store,
        namespace,
        picture,
    };
    shared.what_was_confirmed_stays(&one, url).await;
    let object = confirmed["object_id"].as_str().unwrap();
    let object = format!("/v1/buckets/{bucket}/objects/{object}");
    shared.objects_are_read_from_the_store(&object).await;
    shared.thumbnails_are_read_at_both(&collection).await;
    assert!(shared.first.files("").is_empty() && shared.second.files("").is_empty());
    let direct = shared.store.direct();
    let methods = |method: &str| direct.iter().filter(|one| one.starts_with(method)).count();
    assert_eq!((methods("PUT"), methods("GET")), (2, 3), "{direct:#?}");
}

/// A bucket for films; answers the path of its uploads.
async fn films(server: &Server, namespace: &str) -> String {
    let schema = json!({"properties": {"film": {"type": "video"}}});
    let bucket = json!({"bucket_name": "films", "bucket_schema": schema});
    let bucket = server.call_in(namespace, "POST", "/v1/buckets", bucket);
    let bucket = bucket.await.ok();
    format!(
        "/v1/buckets/{}/uploads",
        bucket["bucket_id"].as_str().unwrap()
    )
}

fn film(megabytes: u32) -> Vec<u8> {
    (0..megabytes << 20).map(|at| (at >> 8) as u8).collect()
}

/// Files that go to a store through the server.
struct Through<'a> {
    server: &'a Server,
    store: &'a Bucket,
    namespace: &'a str,
    /// The path of the uploads.
    path: &'a str,
}

impl Through<'_> {
    async fn announce(&self, name: &str) -> Value {
        let body = json!({"filename": name, "content_type": "video/mp4", "skip_duplicates": false});
        let made = self.server.call_in(self.namespace, "POST", self.path, body);
        made.await.ok()
    }

    fn of(&self, upload: &Value) -> String {
        format!("{}/{}", self.path, upload["upload_id"].as_str().unwrap())
    }

    async fn confirm(&self, upload: &Value) -> Answer {
        let path = format!("{}/confirm", self.of(upload));
        let (server, namespace) = (self.server, self.namespace);
        server.call_in(namespace, "POST", &path, json!({})).await
    }

    /// Too much for one request to the store: it goes there in parts.
    async fn a_film_goes_there_in_parts(&self) {
        let (server, film) = (self.server, film(11));
        let whole = self.announce("film.mp4").await;
        assert!(address(&whole).starts_with(&server.url), "{whole:#}");
        assert_eq!(put(server, address(&whole), film.clone()).await, 200);
        assert_eq!(self.store.in_parts(), (1, 0));
        let confirmed = self.confirm(&whole).await.ok();
        assert_eq!(confirmed["file_hash"], hex::encode(Sha256::digest(&film)));
        let shown = format!("{}?return_presigned_urls=true", self.of(&whole));
        let shown = server.call_in(self.namespace, "GET", &shown, Value::Null);
        let shown = shown.await.ok();
        let part = server
            .request("GET", address(&shown))
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
    }

    /// One that breaks off and goes on; answers its path.
    async fn a_film_that_broke_off_goes_on(&self) -> String {
        let half = self.announce("half.mp4").await;
        let send = async |range: &str, bytes: &'static str| {
            let request = self.server.request("PUT", address(&half));
            let request = request.header("content-range", range).body(bytes);
            Server::send(request).await.status
        };
        assert_eq!(send("bytes 5-9/10", "-last").await, 202);
        assert_eq!(send("bytes 0-4/10", "first").await, 200);
        let confirmed = self.confirm(&half).await.ok();
        assert_eq!(
            confirmed["file_hash"],
            hex::encode(Sha256::digest("first-last"))
        );
        self.of(&half)
    }

    /// What is deleted, and what nobody confirms, leaves nothing behind.
    async fn nothing_is_left(&self, half: &str) {
        let (server, store) = (self.server, self.store);
        let uploads = format!("{}/uploads", self.namespace);
        assert_eq!(store.keys(&uploads).len(), 2, "{:#?}", store.keys(&uploads));
        let gone = server.call_in(self.namespace, "DELETE", half, Value::Null);
        assert_eq!(gone.await.status, 204);
        let lost = self.announce("lost.mp4").await;
        assert_eq!(put(server, address(&lost), "lost").await, 200);
        assert_eq!(store.keys(&uploads).len(), 2);
        server.app.clock().advance(7_300);
        keys_become(store, &uploads, 1).await;
    }

    /// A store that is down is no fault of the caller's, and none of the server's.
    async fn a_store_is_down_for_a_while(&self) {
        let health = self.server.call("GET", "/v1/health", Value::Null);
        let health = health.await.ok();
        assert_eq!(health["data"]["object_storage"], true, "{health:#}");
        self.store.set_down(true);
        let announced = self.announce("down.mp4").await;
        let refused = self.confirm(&announced).await;
        refused.error(503, "ServiceUnavailableError");
        self.store.set_down(false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_a_bucket_come_and_go_through_the_server_too() {
    let store = Bucket::start().await;
    let (mut config, folder) = settings(Database::Sqlite, &store).await;
    config.blobs.direct = false;
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("files").await;
    let path = films(&server, &namespace).await;
    let files = Through {
        server: &server,
        store: &store,
        namespace: &namespace,
        path: &path,
    };
    files.a_film_goes_there_in_parts().await;
    let half = files.a_film_that_broke_off_goes_on().await;
    files.nothing_is_left(&half).await;
    files.a_store_is_down_for_a_while().await;
    let settings = serde_json::to_string(server.app.config()).unwrap();
    assert!(settings.contains("s3://files/loupe") && !settings.contains("a secret"));
    let path = format!("/v1/namespaces/{namespace}");
    assert!(server.call("DELETE", &path, Value::Null).await.status < 300);
    keys_become(&store, &namespace, 0).await;
    assert_eq!(store.direct(), Vec::<String>::new());
}

/// A film that its sender takes to the store in parts.
struct Film {
    namespace: String,
    /// The path of the uploads.
    path: String,
    bytes: Vec<u8>,
    hash: String,
}

impl Film {
    async fn new(server: &Server) -> Self {
        let namespace = server.namespace("films").await;
        let (path, bytes) = (films(server, &namespace).await, film(9));
        Self {
            namespace,
            path,
            hash: hex::encode(Sha256::digest(&bytes)),
            bytes,
        }
    }

    /// Answers the path of an upload.
    async fn announce(&self, server: &Server) -> String {
        let body = json!({"filename": "film.mp4", "content_type": "video/mp4", "file_size_bytes": self.bytes.len(),
            "file_hash": self.hash, "skip_duplicates": false});
        let upload = server.call_in(&self.namespace, "POST", &self.path, body);
        let upload = upload.await.ok();
        format!("{}/{}", self.path, upload["upload_id"].as_str().unwrap())
    }

    async fn parts(&self, server: &Server, one: &str) -> Vec<Value> {
        let path = format!("{one}/parts");
        let told = server.call_in(&self.namespace, "POST", &path, Value::Null);
        told.await.ok()["parts"].as_array().unwrap().clone()
    }

    /// Which of the parts are there.
    async fn there(&self, server: &Server, one: &str) -> Vec<bool> {
        let parts = self.parts(server, one).await;
        parts.iter().map(|part| part["is_there"] == true).collect()
    }

    fn of_part(&self, part: &Value) -> Vec<u8> {
        let at = |member: &str| part[member].as_u64().unwrap() as usize;
        self.bytes[at("first_byte")..=at("last_byte")].to_vec()
    }

    async fn send(&self, server: &Server, part: &Value) {
        let sent = put(server, address(part), self.of_part(part)).await;
        assert_eq!(sent, 200);
    }

    async fn confirm(&self, server: &Server, one: &str) -> Answer {
        let path = format!("{one}/confirm");
        let body = json!({});
        server.call_in(&self.namespace, "POST", &path, body).await
    }

    /// The last part comes first; then the server is away.
    async fn goes_on_after_a_restart(&self, server: Server, store: &Bucket) -> Server {
        let one = self.announce(&server).await;
        let told = self.parts(&server, &one).await;
        assert_eq!(told.len(), 2);
        for part in &told {
            let url = address(part);
            assert!(url.starts_with(&store.address), "{url}");
            assert_eq!(part["headers"], json!({}));
        }
        self.send(&server, &told[1]).await;
        let server = server.restart().await;
        let told = self.parts(&server, &one).await;
        assert_eq!(self.there(&server, &one).await, [false, true]);
        let refused = self.confirm(&server, &one).await;
        let refused = refused.error(400, "BadRequestError").to_string();
        assert!(
            refused.contains("1 of its 2 parts are missing"),
            "{refused}"
        );
        // One that is cut short is not there.
        let cut = self.bytes[..100].to_vec();
        assert_eq!(put(&server, address(&told[0]), cut).await, 200);
        assert_eq!(self.there(&server, &one).await, [false, true]);
        self.send(&server, &told[0]).await;
        assert_eq!(store.keys(&format!("{}/uploads", self.namespace)).len(), 0);
        let confirmed = self.confirm(&server, &one).await.ok();
        assert_eq!(confirmed["file_hash"], self.hash.as_str());
        assert_eq!(store.in_parts(), (1, 0));
        let again = self.confirm(&server, &one).await.ok();
        assert_eq!(again["object_id"], confirmed["object_id"]);
        server
    }

    /// What is deleted, refused and sent again, or never confirmed leaves no parts behind.
    async fn leaves_no_parts_behind(&self, server: &Server, store: &Bucket) {
        let gone = self.announce(server).await;
        self.parts(server, &gone).await;
        assert_eq!(store.in_parts(), (1, 1));
        let gone = server.call_in(&self.namespace, "DELETE", &gone, Value::Null);
        assert_eq!(gone.await.status, 204);
        assert_eq!(store.in_parts(), (1, 0));
        let other = self.announce(server).await;
        for wrong in [true, false] {
            for part in &self.parts(server, &other).await {
                let mut bytes = self.of_part(part);
                bytes[0] ^= u8::from(wrong);
                assert_eq!(put(server, address(part), bytes).await, 200);
            }
            let status = self.confirm(server, &other).await.status;
            assert_eq!(status, if wrong { 400 } else { 200 });
        }
        assert_eq!(store.in_parts(), (3, 0));
        let lost = self.announce(server).await;
        let told = self.parts(server, &lost).await;
        self.send(server, &told[1]).await;
        server.app.clock().advance(7_300);
        all_parts_are_whole(store, 3).await;
    }

    /// Nor does a bucket that is removed.
    async fn goes_with_its_bucket(&self, server: &Server, store: &Bucket) {
        let left = self.announce(server).await;
        let told = self.parts(server, &left).await;
        self.send(server, &told[0]).await;
        assert_eq!(store.in_parts(), (3, 1));
        let bucket = self.path.strip_suffix("/uploads").unwrap();
        let gone = server.call_in(&self.namespace, "DELETE", bucket, Value::Null);
        gone.await.ok();
        all_parts_are_whole(store, 3).await;
    }
}

/// Waits until so many files were put together, and none is left in parts.
async fn all_parts_are_whole(store: &Bucket, count: usize) {
    let began = Instant::now();
    while store.in_parts() != (count, 0) {
        let there = store.in_parts();
        assert!(began.elapsed() < Duration::from_secs(180), "{there:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_goes_to_the_bucket_in_parts_and_goes_on_after_a_restart() {
    let store = Bucket::start().await;
    let (config, folder) = settings(Database::Sqlite, &store).await;
    let server = Server::start_with(config, folder, None).await;
    let film = Film::new(&server).await;
    let server = film.goes_on_after_a_restart(server, &store).await;
    film.leaves_no_parts_behind(&server, &store).await;
    film.goes_with_its_bucket(&server, &store).await;
}
