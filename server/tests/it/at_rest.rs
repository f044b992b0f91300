//! S-2 on the disk: what a real process writes while it runs, and the copy that `loupe backup` makes of it, hold no secret that
//! anybody was given or gave.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use loupe_server::auth::key::{self, Kind};
use serde_json::{Value, json};

use crate::{holding::held, logs::talkative};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        // A running process makes and removes files meanwhile.
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found
}

fn check(folder: &Path, needed: &[&str], secrets: &[String]) {
    let found = files(folder);
    for name in needed {
        let is_there = found.iter().any(|path| path.ends_with(name));
        assert!(is_there, "{} has no {name}", folder.display());
    }
    for path in found {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let secret = held(&bytes, secrets);
        assert_eq!(secret, None, "{} holds a secret", path.display());
    }
}

/// Makes, uses and rotates keys, and gives the server secrets to keep; answers all of them.
async fn secrets(url: &str, said: &str) -> Vec<String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    let mut words = said.split_whitespace();
    let first = words.find(|word| word.starts_with("loupe_sk_"));
    let first = first.unwrap().to_owned();
    let calls = AtomicU32::new(0);
    let call = async |key: &str, method: &str, path: &str, body: Value| -> Value {
        let request = http.request(method.parse().unwrap(), format!("{url}{path}"));
        // Answers that are kept to be repeated hold the secret as well.
        let once = format!("call {}", calls.fetch_add(1, Ordering::Relaxed));
        let request = request.bearer_auth(key).header("idempotency-key", once);
        let request = match body.is_null() {
            true => request,
            false => request.json(&body),
        };
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{method} {path}");
        answer.json().await.unwrap()
    };
    let count = match std::env::var_os("LOUPE_TEST_LONG") {
        Some(_) => 100,
        None => 10,
    };
    let mut secrets = vec![first.clone()];
    for number in 0..count {
        let body = json!({"name": format!("key-{number}")});
        let rotation = format!("{KEYS}/key-{number}/rotate");
        for (path, body) in [(KEYS, body), (rotation.as_str(), Value::Null)] {
            let made = call(&first, "POST", path, body).await;
            let secret = made["key"].as_str().unwrap().to_owned();
            call(&secret, "GET", "/v1/me", Value::Null).await;
            secrets.push(secret);
        }
    }
    let kept = "to_keep_a-value-7Qz".to_owned();
    let body = json!({"secret_name": "kept", "secret_value": kept});
    call(&first, "POST", "/v1/organizations/secrets", body).await;
    let access = "the_store_s-access-9Wk".to_owned();
    let body = json!({"name": "archive", "provider_type": "s3", "test_before_save": false, "provider_config": {
        "credentials": {"type": "access_key", "access_key_id": "AKIAEXAMPLE", "secret_access_key": access},
        "region": "eu-west-1", "endpoint_url": "https://storage.example"}});
    call(&first, "POST", "/v1/organizations/connections", body).await;
    let body = json!({"webhook_name": "hook", "event_types": ["collection.documents.written"],
        "channels": [{"channel": "webhook", "configs": {"url": "https://hooks.example.com/loupe"}}]});
    let hook = call(&first, "POST", "/v1/organizations/webhooks", body).await;
    let signing = &hook["channels"][0]["configs"]["signing_secret"];
    let signing = signing.as_str().unwrap_or_else(|| panic!("{hook:#}"));
    secrets.extend([kept, access, signing.to_owned()]);
    secrets
}

/// The log beside the database is at its most talkative.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_and_its_backup_hold_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (url, said, mut child) = talkative(folder.path(), &log).await;
    let secrets = secrets(&url, &said).await;
    assert!(secrets.len() > 20);
    check(
        folder.path(),
        &["loupe.db", "loupe.db-wal", "log"],
        &secrets,
    );

    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let data = (0..5)
        .rev()
        .map(|attempt| folder.path().join(format!("data{attempt}")))
        .find(|data| data.is_dir())
        .unwrap();
    let mut backup = Command::new(env!("CARGO_BIN_EXE_loupe"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LOUPE_")) {
        backup.env_remove(name);
    }
    let copy = folder.path().join("copy");
    let done = backup.env("LOUPE_DATA", data).arg("backup").arg(&copy);
    let done = done.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    check(&copy, &["loupe.db"], &secrets);
    check(folder.path(), &["loupe.db"], &secrets);
    for said in [done.stdout, done.stderr] {
        assert_eq!(held(&said, &secrets), None);
    }
}

/// S-1: whoever looks for keys that were published by mistake is told what they look like, and finds none here.
#[test]
fn no_source_holds_a_key() {
    const PATTERN: &str = "(loupe|usr|ret)_sk_[0-9A-Za-z]{36}";
    const TEXTS: [&str; 9] = ["rs", "toml", "json", "md", "py", "ts", "js", "html", "sql"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let told = std::fs::read_to_string(root.join("docs/operations.md")).unwrap();
    assert!(told.contains(PATTERN));
    let pattern = regex::Regex::new(PATTERN).unwrap();
    for kind in [Kind::Standard, Kind::UserScoped, Kind::Retriever] {
        assert!(pattern.is_match(&key::generate(kind)));
    }
    let folders = [
        "server/src",
        "server/wire/src",
        "server/engine/src",
        "server/tests",
        "hosted/src",
        "hosted/tests",
        "console/src",
        "docs",
        "end2end/journeys",
        "migrations",
        "scripts",
        "sdk-js/src",
        "demo",
    ];
    let mut sources: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files(&root.join(folder)))
        .collect();
    sources.extend(["README.md", "CHANGELOG.md", "openapi.json"].map(|name| root.join(name)));
    sources.retain(|path| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        kind.is_none_or(|kind| TEXTS.contains(&kind))
    });
    assert!(sources.len() > 500, "only {} sources", sources.len());
    for path in sources {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!pattern.is_match(&text), "{} holds a key", path.display());
    }
}
