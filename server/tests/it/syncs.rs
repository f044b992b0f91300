//! Buckets that follow a folder of a storage: what comes there, changes there and goes there.

mod filtered;
mod looking;
mod owning;
mod revoked;
mod waiting;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Query, Request, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    both,
    fetching::serve,
    harness::{self, Database, Server},
};

/// Files of the storage by their keys; texts are their content.
type Files = Arc<Mutex<BTreeMap<String, String>>>;

/// Names the file that the storage does not give in any time.
const HANGS: &str = "out/hangs";

/// Has the storage refuse whoever asks.
const REVOKED: &str = "out/revoked";

/// Is part of every ETag: files look new when it changes.
const LOOKS: &str = "out/looks";

/// Names the folder whose files come a letter at a time.
const SLOW: &str = "out/slow";

/// How many of those are on their way, and how many were at once.
const NOW: &str = "out/now";
const ONCE: &str = "out/once";

/// Counts a slow file that begins or ends.
fn count(files: &Files, change: i64) {
    let mut files = files.lock().unwrap();
    let number = |name: &str| {
        let text = files.get(name);
        text.map_or(0, |text| text.parse::<i64>().unwrap())
    };
    let now = number(NOW) + change;
    let once = number(ONCE).max(now);
    files.insert(NOW.into(), now.to_string());
    files.insert(ONCE.into(), once.to_string());
}

/// A text a letter at a time.
fn slowly(files: Files, text: String) -> Body {
    let piece = move |at: usize| {
        let (files, text) = (files.clone(), text.clone());
        async move {
            let letter = text.get(at..=at)?.to_owned();
            if at == 0 {
                count(&files, 1);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            if at + 1 == text.len() {
                count(&files, -1);
            }
            Some((Ok::<_, std::io::Error>(letter), at + 1))
        }
    };
    Body::from_stream(futures::stream::unfold(0, piece))
}

/// A small S3 that lists two files at a time. What it is asked with is checked where single files are fetched.
async fn storage(files: Files) -> String {
    let router = Router::new().fallback(answer).with_state(files);
    serve(router, "127.0.0.2").await
}

async fn answer(
    State(state): State<Files>,
    Query(asked): Query<BTreeMap<String, String>>,
    uri: Uri,
    _: Request,
) -> Response {
    let files = state.lock().unwrap().clone();
    let path = uri.path();
    let asked_for = path.trim_end_matches('/');
    if files.get(HANGS).is_some_and(|key| asked_for.ends_with(key)) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    if files.contains_key(REVOKED) {
        let refusal = "<Error><Code>InvalidAccessKeyId</Code></Error>";
        return (StatusCode::FORBIDDEN, refusal).into_response();
    }
    if path.trim_end_matches('/') == "/media" {
        return list(&files, &asked).into_response();
    }
    let key = path
        .strip_prefix("/media/")
        .unwrap_or_default()
        .replace("%20", " ");
    match files.get(&key) {
        Some(text) => (
            [
                (header::CONTENT_TYPE, "text/plain".to_owned()),
                (header::CONTENT_LENGTH, text.len().to_string()),
                (header::ETAG, format!("\"{}\"", text.len())),
                (
                    header::LAST_MODIFIED,
                    "Sat, 21 Nov 2026 10:00:00 GMT".to_owned(),
                ),
            ],
            match files.get(SLOW) {
                Some(folder) if key.starts_with(folder) => slowly(state, text.clone()),
                _ => text.clone().into(),
            },
        )
            .into_response(),
        None => (
            StatusCode::NOT_FOUND,
            "<Error><Code>NoSuchKey</Code></Error>",
        )
            .into_response(),
    }
}

fn list(files: &BTreeMap<String, String>, asked: &BTreeMap<String, String>) -> String {
    let prefix = asked.get("prefix").cloned().unwrap_or_default();
    let after = asked.get("continuation-token").cloned().unwrap_or_default();
    let mut found = files
        .iter()
        .filter(|(key, _)| key.starts_with(&prefix) && **key > after);
    let page: Vec<_> = found.by_ref().take(2).collect();
    let next = found.next().and_then(|_| page.last()).map(|(key, _)| key);
    let looks = files.get(LOOKS).map_or("", String::as_str);
    let entry = |(key, text): &(&String, &String)| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-11-21T10:00:00.000Z</LastModified><ETag>&quot;{}{looks}&quot;</ETag><Size>{}</Size></Contents>",
            text.len(),
            text.len()
        )
    };
    format!(
        "<ListBucketResult><Name>media</Name><IsTruncated>{}</IsTruncated>{}{}</ListBucketResult>",
        next.is_some(),
        next.map(|key| format!("<NextContinuationToken>{key}</NextContinuationToken>"))
            .unwrap_or_default(),
        page.iter().map(entry).collect::<String>(),
    )
}

struct Place {
    namespace: String,
    bucket: String,
    connection: String,
    files: Files,
}

async fn place(server: &Server, schema: Value) -> Place {
    place_with(server, json!({ "bucket_schema": schema })).await
}

async fn place_with(server: &Server, mut bucket: Value) -> Place {
    let files = Files::default();
    let storage = storage(files.clone()).await;
    let connection = json!({
        "name": "archive", "provider_type": "s3", "test_before_save": false, "provider_config": {
            "credentials": {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "s"}, "endpoint_url": storage},
    });
    let connection = server
        .call("POST", "/v1/organizations/connections", connection)
        .await
        .ok();
    let namespace = server.namespace("following").await;
    bucket["bucket_name"] = "letters".into();
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    Place {
        namespace,
        bucket: bucket["bucket_id"].as_str().unwrap().to_owned(),
        connection: connection["connection_id"].as_str().unwrap().to_owned(),
        files,
    }
}

impl Place {
    fn put(&self, key: &str, text: &str) {
        self.files
            .lock()
            .unwrap()
            .insert(key.to_owned(), text.to_owned());
    }

    fn take(&self, key: &str) {
        self.files.lock().unwrap().remove(key);
    }

    fn path(&self) -> String {
        format!("/v1/buckets/{}/syncs", self.bucket)
    }

    async fn call(&self, server: &Server, method: &str, path: &str, body: Value) -> Value {
        server
            .call_in(&self.namespace, method, path, body)
            .await
            .ok()
    }

    async fn follow(&self, server: &Server, mut body: Value) -> String {
        body["connection_id"] = self.connection.as_str().into();
        let made = self.call(server, "POST", &self.path(), body).await;
        format!(
            "{}/{}",
            self.path(),
            made["sync_config_id"].as_str().unwrap()
        )
    }

    /// Waits until no look is under way, and answers the sync.
    async fn still(&self, server: &Server, sync: &str) -> Value {
        let began = Instant::now();
        loop {
            let now = self.call(server, "GET", sync, Value::Null).await;
            if now["locked"] == false {
                return now;
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{now:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn look(&self, server: &Server, sync: &str) -> Value {
        self.call(server, "POST", &format!("{sync}/trigger"), Value::Null)
            .await;
        self.still(server, sync).await
    }

    /// The objects' files and fields, in the order of their names.
    async fn objects(&self, server: &Server) -> Vec<Value> {
        let path = format!("/v1/buckets/{}/objects/list?limit=100", self.bucket);
        let found = self.call(server, "POST", &path, json!({})).await;
        let mut all = found["results"].as_array().unwrap().clone();
        all.sort_by_key(|one| one["blobs"][0]["details"]["filename"].to_string());
        all
    }

    async fn names(&self, server: &Server) -> Vec<String> {
        let all = self.objects(server).await;
        all.iter()
            .map(|one| {
                one["blobs"][0]["details"]["filename"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }
}

both! {
    async fn what_comes_changes_and_goes_in_a_storage_does_so_in_the_bucket(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}, "year": {"type": "integer"}, "kind": {"type": "string"}}})).await;
        let collection = json!({
            "collection_name": "words", "source": {"type": "bucket", "bucket_ids": [place.bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "field_passthrough": [{"source_path": "year"}]},
        });
        let collection = place.call(&server, "POST", "/v1/collections", collection).await;
        for (key, text) in [
            ("in/1912/letter 1912 a.txt", "dear all"), ("in/1912/letter 1912 b.txt", "dear none"), ("in/1920/letter 1920 c.txt", "dear you"),
            ("in/1920/deep/letter 1920 d.txt", "dear me"), ("in/1920/notes.md", "skip me"), ("in/empty/", ""), ("in/empty-handed.txt", ""), ("other/letter 1900 x.txt", "elsewhere"),
        ] {
            place.put(key, text);
        }
        let sync = place.follow(&server, json!({
            "source_path": "s3://media/in", "file_filters": {"include_patterns": ["*.txt"]}, "batch_size": 3,
            "schema_mapping": {"mappings": {
                "year": {"target_type": "field", "source": {"type": "filename_regex", "pattern": r"(\d{4})"}, "transform": "integer"},
                "kind": {"target_type": "field", "source": {"type": "constant", "value": "letter"}}}},
        })).await;
        let first = place.still(&server, &sync).await;
        assert_eq!(first["status"], "COMPLETED", "{first:#}");
        assert_eq!((&first["total_files_discovered"], &first["total_files_synced"]), (&json!(4), &json!(4)));
        assert!(first["next_sync_at"].is_string());
        let objects = place.objects(&server).await;
        assert_eq!(objects.len(), 4, "{objects:#?}");
        assert_eq!((&objects[0]["year"], &objects[0]["kind"]), (&json!(1912), &json!("letter")));
        assert_eq!(objects[3]["key_prefix"], "/1920/deep");
        let before: Vec<Value> = objects.iter().map(|one| one["object_id"].clone()).collect();
        // Each is processed once, by the batches of the look.
        assert_eq!(first["batches_created"], 2);
        let documents = format!("/v1/collections/{}/documents/count", collection["collection_id"].as_str().unwrap());
        looking::documents_are(&server, &place, &documents, 4).await;

        looking::known_content_makes_no_object(&server, &place, &sync).await;

        // One comes, one changes, one goes.
        place.put("in/1930/letter 1930 e.txt", "dear late one");
        place.put("in/1912/letter 1912 b.txt", "dear somebody after all");
        place.files.lock().unwrap().remove("in/1912/letter 1912 a.txt");
        let next = place.look(&server, &sync).await;
        assert_eq!(next["stats"]["last_run_objects_synced"], 2, "{next:#}");
        assert_eq!(place.names(&server).await, ["letter 1912 b.txt", "letter 1920 c.txt", "letter 1920 d.txt", "letter 1930 e.txt"]);
        let objects = place.objects(&server).await;
        assert!(!before.contains(&objects[0]["object_id"]), "the changed file has another object");
        assert_eq!((&objects[1]["object_id"], &objects[2]["object_id"]), (&before[2], &before[3]));
        looking::documents_are(&server, &place, &documents, 4).await;

        looking::looks_are_told(&server, &place, &sync).await;

        // Without the sync its objects stay.
        place.call(&server, "DELETE", &sync, Value::Null).await;
        server.call_in(&place.namespace, "GET", &sync, Value::Null).await.error(404, "NotFoundError");
        assert_eq!(place.names(&server).await.len(), 4);
    }

    async fn one_bad_file_costs_one_object_and_a_storage_that_fails_is_asked_later(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}, "year": {"type": "integer", "required": true}}})).await;
        place.put("a 1912.txt", "fine");
        place.put("b.txt", "no year in its name");
        place.put("c.png", "a picture that the schema has no place for");
        place.put("d//e 1913.txt", "a key with an empty piece");
        let year = json!({"mappings": {"year": {"target_type": "field", "required": true, "transform": "integer",
            "source": {"type": "filename_regex", "pattern": r"(\d{4})"}}}});
        let sync = place.follow(&server, json!({"source_path": "media", "schema_mapping": year, "skip_batch_submission": true, "sync_mode": "initial_only"})).await;
        let first = place.still(&server, &sync).await;
        assert_eq!((&first["status"], &first["total_files_failed"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(3)), "{first:#}");
        assert!(first["last_error"].as_str().unwrap().contains("b.txt"), "{}", first["last_error"]);
        assert_eq!(place.names(&server).await, ["a 1912.txt"]);
        // One look was asked for.
        assert_eq!((&first["is_active"], &first["next_sync_at"]), (&json!(false), &Value::Null));

        let gone = place.follow(&server, json!({"source_path": "s3://media/x", "description": "nothing there"})).await;
        assert_eq!(place.still(&server, &gone).await["status"], "COMPLETED");
        let connection = format!("/v1/organizations/connections/{}", place.connection);
        let broken = json!({"provider_config": {"credentials": {"access_key_id": "a", "secret_access_key": "b"}, "endpoint_url": "http://127.0.0.2:39999"}});
        server.call("PATCH", &connection, broken).await.ok();
        let failed = place.look(&server, &gone).await;
        assert_eq!((&failed["status"], &failed["consecutive_failures"]), (&json!("FAILED"), &json!(1)), "{failed:#}");
        assert!(failed["last_error"].is_string() && failed["next_sync_at"].is_string());
        let jobs = place.call(&server, "POST", &format!("{gone}/jobs"), json!({"status": "failed"})).await;
        assert_eq!(jobs["results"].as_array().unwrap().len(), 1);
        // What a storage that fails does not list is not gone.
        assert_eq!(place.names(&server).await, ["a 1912.txt"]);

        let paused = place.call(&server, "POST", &format!("{gone}/pause"), Value::Null).await;
        assert_eq!((&paused["paused"], &paused["next_sync_at"]), (&json!(true), &Value::Null));
        let resumed = place.call(&server, "POST", &format!("{gone}/resume"), Value::Null).await;
        assert_eq!((&resumed["paused"], &resumed["consecutive_failures"]), (&json!(false), &json!(0)));
    }

    async fn what_cannot_be_followed_is_refused(server) {
        let place = place(&server, json!({"properties": {}})).await;
        let path = place.path();
        let mapped = |entry: Value| json!({"source_path": "s3://media", "schema_mapping": {"mappings": {"year": entry}}});
        for (body, loc) in [
            (json!({"source_path": ""}), vec!["body", "source_path"]),
            (json!({"source_path": "gs://media/x"}), vec!["body", "source_path"]),
            (json!({"source_path": "s3://media", "file_filters": {"include_patterns": ["[a"]}}), vec!["body", "file_filters", "include_patterns"]),
            (json!({"source_path": "s3://media", "file_filters": {"min_size_bytes": "large"}}), vec!["body", "file_filters"]),
            (mapped(json!({"target_type": "field", "source": {"type": "filename_regex", "pattern": "("}})), vec!["body", "schema_mapping", "mappings", "year"]),
            (mapped(json!({"target_type": "field", "source": {"type": "constant", "value": 1}, "transform": "rot13"})), vec!["body", "schema_mapping", "mappings", "year"]),
            (mapped(json!({"target_type": "blob", "source": {"type": "constant", "value": 1}})), vec!["body", "schema_mapping", "mappings", "year"]),
        ] {
            let mut body = body;
            body["connection_id"] = place.connection.as_str().into();
            server.call_in(&place.namespace, "POST", &path, body).await.invalid(&loc, "value_error");
        }
        // Where a sync begins and what it filters by both hold.
        let filters = json!({"modified_after": "2020-01-01T00:00:00Z"});
        let body = json!({"connection_id": place.connection, "source_path": "s3://media", "file_filters": filters, "sync_from": "2021-01-01T00:00:00Z"});
        let later = server.call_in(&place.namespace, "POST", &path, body).await.ok();
        assert_eq!(later["file_filters"]["modified_after"], "2021-01-01T00:00:00Z", "{later:#}");
        let body = json!({"connection_id": place.connection, "source_path": "s3://media", "polling_interval_seconds": 5});
        server.call_in(&place.namespace, "POST", &path, body).await.invalid(&["body", "polling_interval_seconds"], "greater_than_equal");
        let body = json!({"connection_id": place.connection, "source_path": "s3://media", "ingest_filter": {"retriever_id": "ret_x"}});
        server.call_in(&place.namespace, "POST", &path, body).await.error(404, "NotFoundError");
        let body = json!({"connection_id": place.connection, "source_path": "s3://media", "provider_filters": {"a": 1}});
        server.call_in(&place.namespace, "POST", &path, body).await.invalid(&["body", "provider_filters"], "not_enabled");
        for (reconcile, member) in [
            (json!({"re_extract_on_update": false}), "re_extract_on_update"),
            (json!({"re_extract_fields": ["kind"]}), "re_extract_fields"),
        ] {
            let body = json!({"connection_id": place.connection, "source_path": "s3://media", "reconcile": reconcile});
            server.call_in(&place.namespace, "POST", &path, body).await.invalid(&["body", "reconcile", member], "not_enabled");
        }
        let body = json!({"connection_id": "conn_nothing", "source_path": "s3://media"});
        server.call_in(&place.namespace, "POST", &path, body).await.error(404, "NotFoundError");
        let listed = place.call(&server, "POST", &format!("{path}/list"), json!({})).await;
        let made: Vec<&Value> = listed["results"].as_array().unwrap().iter().map(|sync| &sync["sync_config_id"]).collect();
        assert_eq!(made, [&later["sync_config_id"]], "nothing of what was refused");
    }
}

/// A process of its own on the database of this server.
fn process(server: &Server, folder: &std::path::Path) -> tokio::process::Child {
    use secrecy::ExposeSecret;
    let config = server.app.config();
    tokio::process::Command::from(harness::serve())
        .env("LOUPE_DATA", folder)
        .env("LOUPE_LISTEN", "127.0.0.1:0")
        .env("LOUPE_DATABASE_URL", config.database_url.expose_secret())
        .env("LOUPE_MASTER_KEY", config.master_key.expose_secret())
        .env("LOUPE_MODELS__OFFLINE", "true")
        .env("LOUPE_JOBS__LEASE_SECONDS", "2")
        .env("LOUPE_LIMITS__FREE_DISK_BYTES", "1048576")
        .env("LOUPE_OUTBOUND__ALLOW", r#"["127.0.0.2"]"#)
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_whose_process_is_killed_goes_on_in_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = harness::config(Database::Postgres, &folder).await;
    config.master_key = "5a".repeat(32).into();
    // This process looks into nothing until the other one is dead.
    config.jobs.workers = 0;
    let server = Server::start_with(config, folder, None).await;
    let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
    for (key, text) in [
        ("in/a.txt", "dear all"),
        ("in/b.txt", "dear none"),
        ("in/c.txt", "dear you"),
        (HANGS, "in/b.txt"),
    ] {
        place.put(key, text);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = process(&server, elsewhere.path());
    let sync = place
        .follow(
            &server,
            json!({"source_path": "s3://media/in", "batch_size": 1, "skip_batch_submission": true}),
        )
        .await;
    let began = Instant::now();
    while place.objects(&server).await.len() != 1 {
        assert!(
            began.elapsed() < Duration::from_secs(180),
            "the other process makes no object"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        place.call(&server, "GET", &sync, Value::Null).await["locked"],
        true
    );
    other.kill().await.unwrap();
    place.files.lock().unwrap().remove(HANGS);
    let server = server.restart_with(|config| config.jobs.workers = 2).await;
    let done = place.still(&server, &sync).await;
    assert_eq!(done["status"], "COMPLETED", "{done:#}");
    assert_eq!(place.names(&server).await, ["a.txt", "b.txt", "c.txt"]);
    let claims = "SELECT CAST(MAX(attempt) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND kind = 'sync_storage'";
    let claims = server
        .app
        .db()
        .number(claims, loupe_server::args![&place.namespace]);
    assert_eq!(
        claims.await.unwrap(),
        2,
        "the look was claimed once by each process"
    );
}
