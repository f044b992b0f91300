//! What the log says, and what it never says.

use std::{io::Read, path::Path, process::Stdio, time::Duration};

use serde_json::{Value, json};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// The real binary at its most talkative: lines with ids, and nothing of what callers send.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_has_ids_and_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (url, said, mut child) = talkative(folder.path(), &log).await;
    let (sent, key) = speak(&url, &said).await;
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert!(child.wait().unwrap().success());

    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    let requests: Vec<&Value> = lines
        .iter()
        .filter(|line| line["fields"]["message"] == "request")
        .collect();
    assert!(requests.len() >= 10, "{log}");
    assert!(requests.iter().all(|line| {
        line["fields"]["request_id"]
            .as_str()
            .is_some_and(|id| !id.is_empty())
    }));
    assert!(
        requests
            .iter()
            .any(|line| line["fields"]["request_id"] == "my-own-id"
                && line["fields"]["status"] == 200)
    );
    // The vector engine speaks, but not of what it expects of a program that it is not part of.
    let engine = |line: &&Value| {
        line["target"]
            .as_str()
            .is_some_and(|target| target.starts_with("qdrant_edge"))
    };
    let engine: Vec<&Value> = lines.iter().filter(engine).collect();
    assert!(!engine.is_empty(), "{log}");
    assert!(
        engine.iter().all(|line| line["level"] != "WARN"),
        "{engine:#?}"
    );
    for secret in sent.iter().chain([&key]) {
        assert!(!log.contains(secret.as_str()), "the log tells {secret}");
    }
}

/// Starts the binary; answers its address and what it said. A port that is free may be somebody else's a moment later.
pub async fn talkative(folder: &Path, log: &Path) -> (String, String, std::process::Child) {
    for attempt in 0..5 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let mut child = crate::harness::serve()
            .env("LOUPE_DATA", folder.join(format!("data{attempt}")))
            .env("LOUPE_LISTEN", &address)
            .env("LOUPE_LOG", "trace")
            .env("LOUPE_LOG_FORMAT", "json")
            .env("LOUPE_METRICS_TOKEN", "TheMetricsToken")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let said = tokio::task::spawn_blocking(move || {
            let (mut said, mut byte) = (Vec::new(), [0]);
            while !String::from_utf8_lossy(&said).contains("First key") || !said.ends_with(b"\n") {
                if output.read(&mut byte).unwrap() == 0 {
                    return None;
                }
                said.push(byte[0]);
            }
            String::from_utf8(said).ok()
        });
        if let Some(said) = said.await.unwrap() {
            return (format!("http://{address}"), said, child);
        }
        child.wait().unwrap();
    }
    panic!("{}", std::fs::read_to_string(log).unwrap());
}

/// A caller with the first key.
struct Caller<'a> {
    http: reqwest::Client,
    url: &'a str,
    key: String,
}

impl<'a> Caller<'a> {
    fn new(url: &'a str, said: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        let mut words = said.split_whitespace();
        let key = words.find(|word| word.starts_with("loupe_sk_"));
        let key = key.unwrap().to_owned();
        Self { http, url, key }
    }

    async fn post(&self, path: &str, namespace: &str, body: Value) -> Value {
        let request = self
            .http
            .post(format!("{}{path}", self.url))
            .header("x-namespace", namespace)
            .header("x-request-id", "my-own-id")
            .bearer_auth(&self.key)
            .header("idempotency-key", format!("TheIdempotencyKeyPOST{path}"))
            .json(&body);
        let answer = request.send().await.unwrap();
        answer.json().await.unwrap_or_default()
    }

    /// Documents with secrets in what is written, searched and refused.
    async fn write(&self, namespace: &str) {
        let collection = json!({
            "collection_name": "things", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1",
                "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}},
        });
        let collection = self.post("/v1/collections", namespace, collection).await;
        let collection = collection["collection_id"].as_str().unwrap();
        let documents = format!("/v1/collections/{collection}/documents");
        let good = json!({"title": "TheDocumentText"});
        self.post(&documents, namespace, good).await;
        let list = format!("{documents}/list?search=TheSearchedWords");
        let unknown = json!({"colour": "TheUnknownValue"});
        self.post(&list, namespace, unknown).await;
        let wrong = json!({"title": 7, "vectors": "TheWrongVector"});
        self.post(&documents, namespace, wrong).await;
    }

    /// A file by a signed address; answers the signature.
    async fn upload(&self, namespace: &str) -> String {
        let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}}});
        let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
        let bucket = self.post("/v1/buckets", namespace, bucket).await;
        let path = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        let object = json!({"title": "t", "blobs": [{"property": "text", "type": "text", "data": "TheBlobText"}]});
        self.post(&format!("{path}/objects"), namespace, object)
            .await;
        let upload =
            json!({"filename": "a.txt", "content_type": "text/plain", "file_size_bytes": 3});
        let upload = self
            .post(&format!("{path}/uploads"), namespace, upload)
            .await;
        let presigned = upload["presigned_url"].as_str().unwrap();
        let signature = url::Url::parse(presigned)
            .unwrap()
            .query_pairs()
            .find(|(name, _)| name.contains("sig"))
            .unwrap()
            .1
            .into_owned();
        let put = self
            .http
            .put(presigned)
            .header("content-type", "text/plain");
        let put = put.body("abc").send().await.unwrap();
        assert!(put.status().is_success(), "{:?}", put.text().await);
        let wrong = presigned.replace(&signature, "TheWrongSignature");
        let wrong = self.http.get(wrong).header("x-request-id", "my-own-id");
        wrong.send().await.unwrap();
        signature
    }

    /// Secrets of every other kind that a request may have.
    async fn sign_in_wrongly(&self) {
        let wrong = self
            .http
            .get(format!("{}/v1/me?api_key=TheKeyInTheQuery", self.url))
            .bearer_auth("loupe_sk_TheWrongBearer")
            .header("cookie", "session=TheCookie")
            .header("x-retriever-password", "ThePassword");
        assert_eq!(wrong.send().await.unwrap().status(), 401);
        let metrics = self.http.get(format!("{}/metrics", self.url));
        let metrics = metrics.bearer_auth("TheMetricsToken");
        metrics.send().await.unwrap();
    }
}

/// Calls with secrets in every place that has one; answers what the log must not hold, and the admin key.
async fn speak(url: &str, said: &str) -> (Vec<String>, String) {
    let caller = Caller::new(url, said);
    let namespace = json!({"namespace_name": "logged"});
    let namespace = caller.post("/v1/namespaces", "", namespace).await;
    let namespace = namespace["namespace_id"].as_str().unwrap();
    let made = caller.post(KEYS, "", json!({"name": "second"})).await;
    caller.write(namespace).await;
    let signature = caller.upload(namespace).await;
    caller.sign_in_wrongly().await;
    let sent = [
        made["key"].as_str().unwrap(),
        &signature,
        "TheDocumentText",
        "TheSearchedWords",
        "TheUnknownValue",
        "TheWrongVector",
        "TheBlobText",
        "TheWrongSignature",
        "TheKeyInTheQuery",
        "TheWrongBearer",
        "TheCookie",
        "ThePassword",
        "TheMetricsToken",
        "TheIdempotencyKey",
    ];
    (sent.map(ToOwned::to_owned).to_vec(), caller.key)
}
