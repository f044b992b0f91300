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

/// Calls with secrets in every place that has one; answers what the log must not hold, and the admin key.
async fn speak(url: &str, said: &str) -> (Vec<String>, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    let key = said
        .split_whitespace()
        .find(|word| word.starts_with("loupe_sk_"))
        .unwrap()
        .to_owned();
    let call = async |method: &str, path: &str, namespace: &str, body: Value| -> Value {
        let address = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{url}{path}")
        };
        let mut request = http
            .request(method.parse().unwrap(), address)
            .header("x-namespace", namespace)
            .header("x-request-id", "my-own-id");
        if !path.starts_with("http") {
            request = request.bearer_auth(&key).header(
                "idempotency-key",
                format!("TheIdempotencyKey{method}{path}"),
            );
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        request
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap_or_default()
    };
    let namespace = call(
        "POST",
        "/v1/namespaces",
        "",
        json!({"namespace_name": "logged"}),
    )
    .await;
    let namespace = namespace["namespace_id"].as_str().unwrap();
    let made = call("POST", KEYS, "", json!({"name": "second"})).await;
    let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}, "text": {"type": "text"}}}});
    let bucket = call("POST", "/v1/buckets", namespace, bucket).await;
    let bucket = bucket["bucket_id"].as_str().unwrap();
    let collection = json!({
        "collection_name": "things", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}},
    });
    let collection = call("POST", "/v1/collections", namespace, collection).await;
    let collection = collection["collection_id"].as_str().unwrap();
    let documents = format!("/v1/collections/{collection}/documents");
    call(
        "POST",
        &documents,
        namespace,
        json!({"title": "TheDocumentText"}),
    )
    .await;
    call(
        "POST",
        &format!("{documents}/list?search=TheSearchedWords"),
        namespace,
        json!({"colour": "TheUnknownValue"}),
    )
    .await;
    call(
        "POST",
        &documents,
        namespace,
        json!({"title": 7, "vectors": "TheWrongVector"}),
    )
    .await;
    let object = json!({"title": "t", "blobs": [{"property": "text", "type": "text", "data": "TheBlobText"}]});
    call(
        "POST",
        &format!("/v1/buckets/{bucket}/objects"),
        namespace,
        object,
    )
    .await;
    let upload = json!({"filename": "a.txt", "content_type": "text/plain", "file_size_bytes": 3});
    let upload = call(
        "POST",
        &format!("/v1/buckets/{bucket}/uploads"),
        namespace,
        upload,
    )
    .await;
    let presigned = upload["presigned_url"].as_str().unwrap().to_owned();
    let signature = url::Url::parse(&presigned)
        .unwrap()
        .query_pairs()
        .find(|(name, _)| name.contains("sig"))
        .unwrap()
        .1
        .into_owned();
    let put = http
        .put(&presigned)
        .header("content-type", "text/plain")
        .body("abc")
        .send()
        .await
        .unwrap();
    assert!(put.status().is_success(), "{:?}", put.text().await);
    call(
        "GET",
        &presigned.replace(&signature, "TheWrongSignature"),
        "",
        Value::Null,
    )
    .await;
    let wrong = http
        .get(format!("{url}/v1/me?api_key=TheKeyInTheQuery"))
        .bearer_auth("loupe_sk_TheWrongBearer")
        .header("cookie", "session=TheCookie")
        .header("x-retriever-password", "ThePassword");
    assert_eq!(wrong.send().await.unwrap().status(), 401);
    http.get(format!("{url}/metrics"))
        .bearer_auth("TheMetricsToken")
        .send()
        .await
        .unwrap();
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
    (sent.map(ToOwned::to_owned).to_vec(), key)
}
