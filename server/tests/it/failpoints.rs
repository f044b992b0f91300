//! What a batch leaves when its process panics or dies between any two of its steps: nothing is lost, nothing is there
//! twice, nothing else is there, and the batch ends.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    harness::{self, Database},
    large_files::blob,
};

/// Objects of one batch: two chunks in each of two tiers.
const OBJECTS: usize = 4;

/// How long a batch may take, with all its failures.
const PATIENCE: Duration = Duration::from_secs(180);

/// The names of all places, from the source: one that is added is tried with the others.
fn places() -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for found in text.split("crate::fail_point!(\"").skip(1) {
                names.push(found.split('"').next().unwrap().to_owned());
            }
        }
    }
    names.sort();
    names
}

#[test]
fn every_step_of_a_batch_has_a_place_of_its_own() {
    let names = places();
    assert!((10..=15).contains(&names.len()), "{names:?}");
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

/// The binary on a data folder and a database of its own.
struct Process {
    folder: TempDir,
    /// Of PostgreSQL.
    database: Option<String>,
    /// What it says is kept, or it would have nobody to say it to.
    running: Option<(Child, Lines<BufReader<ChildStdout>>)>,
    deaths: usize,
    url: String,
    key: String,
    namespace: String,
    http: reqwest::Client,
}

impl Process {
    async fn start(database: Database) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(180))
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("armed")).unwrap();
        let config = harness::config(database, &folder).await;
        let url = config.database_url.expose_secret().to_owned();
        let mut process = Self {
            folder,
            database: (database == Database::Postgres).then_some(url),
            running: None,
            deaths: 0,
            url: String::new(),
            key: String::new(),
            namespace: String::new(),
            http,
        };
        process.open().await;
        process
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    async fn open(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .unwrap();
        let mut command = Command::from(harness::serve());
        command
            .env("LOUPE_DATA", self.folder.path().join("data"))
            .env("LOUPE_LISTEN", "127.0.0.1:0")
            .env("LOUPE_LOG", "warn")
            .env("LOUPE_MODELS__OFFLINE", "true")
            .env("LOUPE_JOBS__LEASE_SECONDS", "2")
            .env("LOUPE_JOBS__CHUNK_OBJECTS", "2")
            .env("LOUPE_LIMITS__FREE_DISK_BYTES", "1048576")
            .env("FAILPOINTS", self.folder.path().join("armed"))
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        if let Some(database) = &self.database {
            command.env("LOUPE_DATABASE_URL", database);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = self.key.is_empty();
        loop {
            let Some(line) = lines.next_line().await.unwrap() else {
                panic!("it does not start: {}", self.said());
            };
            let mut words = line.split_whitespace();
            if let Some(address) = words.find_map(|word| word.strip_suffix("/v1")) {
                self.url = address.to_owned();
                if !first {
                    break;
                }
            }
            let mut words = line.split_whitespace();
            if let Some(key) = words.find(|word| word.starts_with("loupe_sk_")) {
                self.key = key.to_owned();
                break;
            }
        }
        self.running = Some((child, lines));
    }

    /// The end of its log.
    fn said(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Starts it again if it has died.
    async fn revive(&mut self) {
        let (child, _) = self.running.as_mut().unwrap();
        if child.try_wait().unwrap().is_none() {
            return;
        }
        self.deaths += 1;
        if let Some(url) = &self.database {
            // What it held would run out in a few seconds: nobody waits for that here.
            let pool = sqlx::PgPool::connect(url).await.unwrap();
            for free in [
                "UPDATE leases SET until = 0",
                "UPDATE tasks SET lease_until = 0 WHERE lease_until IS NOT NULL",
            ] {
                sqlx::query(free).execute(&pool).await.unwrap();
            }
            pool.close().await;
        }
        self.open().await;
    }

    /// Status and body; none when the process is not there to answer.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut request = self
            .http
            .request(method.parse().unwrap(), format!("{}{path}", self.url))
            .bearer_auth(&self.key)
            .header("x-namespace", &self.namespace);
        if !body.is_null() {
            request = request.json(body);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.json().await.ok()?))
    }

    /// The answer, of the next process if need be.
    async fn ok(&mut self, method: &str, path: &str, body: Value) -> Value {
        let start = Instant::now();
        loop {
            if let Some((status, answer)) = self.ask(method, path, &body).await {
                assert_eq!(status, 200, "{method} {path}: {answer:#}");
                return answer;
            }
            assert!(start.elapsed() < PATIENCE, "{}", self.said());
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.revive().await;
        }
    }
}

/// A bucket, a collection over it and one over that.
struct Place {
    bucket: String,
    collections: Vec<String>,
    /// What was submitted so far, in so many batches.
    objects: BTreeSet<String>,
    batches: usize,
}

impl Place {
    async fn new(process: &mut Process) -> Self {
        let body = json!({"namespace_name": "places"});
        let made = process.ok("POST", "/v1/namespaces", body).await;
        process.namespace = text(&made["namespace_id"]);
        let schema = json!({"properties": {"number": {"type": "integer"}}});
        let body = json!({"bucket_name": "numbers", "bucket_schema": schema});
        let bucket = process.ok("POST", "/v1/buckets", body).await;
        let bucket = text(&bucket["bucket_id"]);
        let mut source = json!({"type": "bucket", "bucket_ids": [bucket]});
        let mut collections = Vec::new();
        for name in ["first", "second"] {
            let body = json!({
                "collection_name": name, "source": source,
                "feature_extractor": {
                    "feature_extractor_name": "passthrough_extractor", "version": "v1",
                    "field_passthrough": [{"source_path": "number"}],
                },
            });
            let made = process.ok("POST", "/v1/collections", body).await;
            let collection = text(&made["collection_id"]);
            source = json!({"type": "collection", "collection_ids": [collection]});
            collections.push(collection);
        }
        Self {
            bucket,
            collections,
            objects: BTreeSet::new(),
            batches: 0,
        }
    }

    /// Arms a place and processes batches until it was passed as often as it is armed.
    async fn pass(&mut self, process: &mut Process, name: &str, how: &str) {
        let armed = process.folder.path().join("armed").join(name);
        let (words, before) = (how.split(' ').count(), process.deaths);
        // A place that a batch comes to once is met again by the next one.
        for round in 0..=words {
            let batch = self.draft(process).await;
            if round == 0 {
                std::fs::write(&armed, how).unwrap();
            }
            self.finish(process, &batch).await;
            self.check(process, name, how).await;
            if !armed.exists() {
                break;
            }
        }
        assert!(!armed.exists(), "no batch comes to {name}: {how}");
        let deaths = how.split(' ').filter(|word| *word == "abort").count();
        assert_eq!(process.deaths - before, deaths, "{name}: {how}");
    }

    async fn draft(&mut self, process: &mut Process) -> String {
        let mut objects = Vec::new();
        for number in 0..OBJECTS {
            let path = format!("/v1/buckets/{}/objects", self.bucket);
            let made = process.ok("POST", &path, json!({"number": number})).await;
            objects.push(text(&made["object_id"]));
        }
        let path = format!("/v1/buckets/{}/batches", self.bucket);
        let body = json!({"object_ids": objects});
        let batch = process.ok("POST", &path, body).await;
        self.objects.extend(objects);
        self.batches += 1;
        text(&batch["batch_id"])
    }

    /// Submits a batch and waits for its end, whatever happens to the process.
    async fn finish(&self, process: &mut Process, batch_id: &str) {
        let path = format!("/v1/buckets/{}/batches/{batch_id}", self.bucket);
        let start = Instant::now();
        loop {
            let batch = process.ok("GET", &path, Value::Null).await;
            match batch["status"].as_str().unwrap() {
                // Whoever gets no answer asks again.
                "DRAFT" => {
                    let submit = format!("{path}/submit");
                    process.ask("POST", &submit, &json!({})).await;
                }
                "QUEUED" => {}
                "PROCESSING" => hurry(process, &path, &batch).await,
                "COMPLETED" => return,
                _ => panic!("{batch:#}\n{}", process.said()),
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the batch does not end: {batch:#}\n{}",
                process.said()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
            process.revive().await;
        }
    }

    /// Every object has one document in each collection, all are announced, and each batch ended once.
    async fn check(&self, process: &mut Process, name: &str, how: &str) {
        let mut stored = BTreeSet::new();
        for collection in &self.collections {
            let path = format!("/v1/collections/{collection}/documents/list?limit=1000");
            let list = process.ok("POST", &path, json!({})).await;
            let documents = list["results"].as_array().unwrap();
            let root = |one: &Value| text(&one["_internal"]["lineage"]["root_object_id"]);
            let mut roots: Vec<String> = documents.iter().map(root).collect();
            roots.sort();
            assert!(roots.iter().eq(&self.objects), "{name}: {how}: {roots:#?}");
            stored.extend(documents.iter().map(|one| text(&one["document_id"])));
        }
        assert_eq!(stored.len(), 2 * self.objects.len(), "{name}: {how}");
        let path = "/v1/events?limit=1000&event_type=collection.documents.";
        let path = |kind: &str| format!("{path}{kind}");
        let written = process.ok("GET", &path("written"), Value::Null).await;
        let written = written["results"].as_array().unwrap().iter();
        let ids = written.flat_map(|event| event["payload"]["document_ids"].as_array().unwrap());
        let announced: BTreeSet<String> = ids.map(text).collect();
        assert_eq!(announced, stored, "{name}: {how}");
        let ended = process
            .ok("GET", &path("batch_completed"), Value::Null)
            .await;
        let ended = ended["results"].as_array().unwrap();
        assert_eq!(ended.len(), 2 * self.batches, "{name}: {how}");
        for event in ended {
            let total = &event["payload"]["total_documents"];
            assert_eq!(total, OBJECTS, "{name}: {how}: {event:#}");
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Has what failed tried again at once: the pauses between tries grow, and have tests of their own. Nothing may be missing
/// that this would bring back.
async fn hurry(process: &Process, path: &str, batch: &Value) {
    let heal = format!("{path}/tiers/{}/heal", batch["current_tier"]);
    let body = json!({"action": "auto"});
    if let Some((200, healed)) = process.ask("POST", &heal, &body).await {
        let brought = (&healed["chunks_added"], &healed["objects_put_back"]);
        assert_eq!(brought, (&json!(0), &json!(0)), "{healed:#}");
    }
}

/// Each place in turn.
async fn at_every_place(database: Database, ways: &[&str]) {
    let mut process = Process::start(database).await;
    let mut place = Place::new(&mut process).await;
    for how in ways {
        for name in places() {
            place.pass(&mut process, &name, how).await;
        }
    }
}

mod a_process_that_dies_between_two_steps_loses_nothing {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        at_every_place(Database::Sqlite, &["abort"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        at_every_place(Database::Postgres, &["abort"]).await;
    }
}

mod a_worker_that_panics_between_two_steps_loses_nothing {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        at_every_place(Database::Sqlite, &["panic", "panic panic"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        at_every_place(Database::Postgres, &["panic", "panic panic"]).await;
    }
}

/// A process that dies when some of an object's documents are written and others are not, once with nothing there before and once
/// with more than the object gives now.
async fn between_slices(database: Database) {
    let mut process = Process::start(database).await;
    let body = json!({"namespace_name": "slices"});
    let made = process.ok("POST", "/v1/namespaces", body).await;
    process.namespace = text(&made["namespace_id"]);
    let schema = json!({"properties": {"title": {"type": "string"}, "file": {"type": "text"}}});
    let unique = json!({"fields": ["title"], "default_policy": "upsert"});
    let body = json!({"bucket_name": "files", "bucket_schema": schema, "unique_key": unique});
    let bucket = text(&process.ok("POST", "/v1/buckets", body).await["bucket_id"]);
    let body = json!({
        "collection_name": "rows", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"row_format": "jsonl"},
        },
    });
    let made = process.ok("POST", "/v1/collections", body).await;
    let place = Place {
        bucket,
        collections: vec![text(&made["collection_id"])],
        objects: BTreeSet::new(),
        batches: 0,
    };
    for (deaths, say, many) in [(1, "one", 1_300), (2, "two", 700)] {
        let rows: Vec<String> = (0..many)
            .map(|n| json!({"n": n, "say": say}).to_string())
            .collect();
        let file = blob("text", "application/x-ndjson", rows.join("\n").as_bytes());
        let path = format!("/v1/buckets/{}", place.bucket);
        let body = json!({"title": "rows", "blobs": [file]});
        process.ok("POST", &format!("{path}/objects"), body).await;
        let batch = process
            .ok("POST", &format!("{path}/batches"), json!({}))
            .await;
        // Nothing is to be written of small objects, then comes the first slice.
        let armed = process.folder.path().join("armed/batch.after_upsert");
        std::fs::write(&armed, "pass abort").unwrap();
        place.finish(&mut process, &text(&batch["batch_id"])).await;
        assert_eq!(process.deaths, deaths, "{say}");
        let path = format!("/v1/collections/{}/documents/list", place.collections[0]);
        for (said, expected) in [(say, many), ("one", if say == "one" { many } else { 0 })] {
            let filter = json!({"field": "say", "operator": "eq", "value": said});
            let body = json!({"filters": filter, "limit": 1, "include_total": true});
            let list = process.ok("POST", &path, body).await;
            assert_eq!(list["pagination"]["total"], expected, "{say}: {said}");
        }
    }
}

mod a_process_that_dies_between_slices_of_an_object_loses_nothing {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        between_slices(Database::Sqlite).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        between_slices(Database::Postgres).await;
    }
}
