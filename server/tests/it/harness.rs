//! A whole server on port 0, over SQLite or PostgreSQL.

pub mod databases;

use std::{cell::RefCell, path::PathBuf, time::Duration};

use loupe_server::{boot, config::Config, serving};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs one body as `name::sqlite` and `name::postgres`.
#[macro_export]
macro_rules! both {
    ($($(#[$doc:meta])* async fn $name:ident($server:ident) $body:block)*) => {
        $($(#[$doc])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn body($server: $crate::harness::Server) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::harness::Server::start($crate::harness::Database::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::harness::Server::start($crate::harness::Database::Postgres).await).await;
                $crate::harness::databases::leave().await;
            }
        })*
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

pub struct Server {
    pub url: String,
    /// The admin key of the first organization.
    pub key: String,
    pub app: loupe_server::app::App,
    pub folder: TempDir,
    http: reqwest::Client,
    started: Option<boot::Started>,
    serving: tokio::task::JoinHandle<()>,
}

/// A status and a body.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub headers: reqwest::header::HeaderMap,
}

impl Answer {
    /// The body of a 200; anything else stops the test.
    #[track_caller]
    pub fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{:#}", self.body);
        self.body
    }

    /// The body of an error with this status and `error.type`.
    #[track_caller]
    pub fn error(self, status: u16, kind: &str) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        assert_eq!(self.body["success"], false, "{:#}", self.body);
        assert_eq!(self.body["status"], status, "{:#}", self.body);
        assert_eq!(self.body["error"]["type"], kind, "{:#}", self.body);
        self.body
    }

    /// The first fault of a 422, whose `loc` and `type` must be these.
    #[track_caller]
    pub fn invalid(self, loc: &[&str], kind: &str) -> Value {
        assert_eq!(self.status, 422, "{:#}", self.body);
        let faults = self.body["detail"].as_array().unwrap().clone();
        let found = faults.iter().find(|fault| {
            let path: Vec<String> = fault["loc"]
                .as_array()
                .unwrap()
                .iter()
                .map(|piece| piece.as_str().expect("pieces are text").to_owned())
                .collect();
            path == loc && fault["type"] == kind
        });
        found
            .unwrap_or_else(|| panic!("no fault {loc:?} of type {kind} in {:#}", self.body))
            .clone()
    }
}

thread_local! {
    static FOLDERS: RefCell<Folders> = const { RefCell::new(Folders(Vec::new())) };
}

/// Data folders that are removed when the test's thread ends, and not with the server: its store still writes then, and for
/// each file that it cannot, the vector engine looks up the names of a backtrace, which takes a fifth of a second.
struct Folders(Vec<PathBuf>);

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Where models are kept between tests.
fn model_cache() -> PathBuf {
    std::env::var_os("LOUPE_MODEL_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/loupe/models"),
        PathBuf::from,
    )
}

/// `loupe serve` as a process of its own. What the tests' own environment says is no setting of it.
pub fn serve() -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loupe"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LOUPE_")) {
        command.env_remove(name);
    }
    command.arg("serve");
    command
}

pub async fn config(database: Database, folder: &TempDir) -> Config {
    let mut config = Config {
        data: folder.path().join("data"),
        listen: "127.0.0.1:0".parse().unwrap(),
        ..Config::default()
    };
    config.models.cache = model_cache();
    config.extractor = env!("CARGO_BIN_EXE_loupe").into();
    config.limits.free_disk_bytes = 1 << 20;
    // Short where a process dies, and long enough that one which stands still on a busy machine is not taken for dead.
    config.jobs.lease_seconds = 10;
    config.jobs.resubmit_seconds = 0;
    // Where tests serve what is fetched; the rest of this machine stays closed.
    config.outbound.allow = vec!["127.0.0.2".into()];
    config.apps.resolver = Some(*crate::domains::NAME_SERVER);
    if database == Database::Postgres {
        config.database_url = databases::make().await.into();
    }
    config
}

impl Server {
    pub async fn start(database: Database) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = config(database, &folder).await;
        Self::start_with(config, folder, None).await
    }

    /// Starts with these settings; `key` is that of an organization made before.
    pub async fn start_with(mut config: Config, mut folder: TempDir, key: Option<String>) -> Self {
        folder.disable_cleanup(true);
        FOLDERS.with_borrow_mut(|folders| folders.0.push(folder.path().to_owned()));
        let listener = tokio::net::TcpListener::bind(config.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        config.listen = address;
        let started = boot::open(config).await.unwrap();
        let key = started
            .first_key
            .clone()
            .or(key)
            .expect("a new database makes a first key");
        boot::start_work(&started.app);
        let stop = started.app.stop.clone();
        let serving = tokio::spawn(serving::serve(listener, started.app.clone(), stop));
        #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
        let http = reqwest::Client::builder()
            .tls_certs_only([])
            .timeout(Duration::from_secs(180))
            .build()
            .unwrap();
        Self {
            url: format!("http://{address}"),
            key,
            app: started.app.clone(),
            folder,
            http,
            started: Some(started),
            serving,
        }
    }

    /// Stops this server and starts another one on its folder and database.
    pub async fn restart(self) -> Self {
        self.restart_with(|_| ()).await
    }

    /// The same, with other settings.
    pub async fn restart_with(self, change: impl FnOnce(&mut Config)) -> Self {
        let Self {
            started,
            app,
            folder,
            key,
            serving,
            ..
        } = self;
        let mut config = app.config().clone();
        config.listen.set_port(0);
        change(&mut config);
        app.stop.cancel();
        drop(app);
        serving.await.unwrap();
        if let Some(started) = started {
            started.close().await;
        }
        Self::start_with(config, folder, Some(key)).await
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.url)
        };
        self.http.request(method.parse().unwrap(), url)
    }

    pub async fn send(request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Answer {
            status,
            body,
            headers,
        }
    }

    /// With the admin key, without a namespace.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let mut request = self.request(method, path).bearer_auth(&self.key);
        if !body.is_null() {
            request = request.json(&body);
        }
        Self::send(request).await
    }

    /// With the admin key, in a namespace.
    pub async fn call_in(&self, namespace: &str, method: &str, path: &str, body: Value) -> Answer {
        let mut request = self
            .request(method, path)
            .bearer_auth(&self.key)
            .header("X-Namespace", namespace);
        if !body.is_null() {
            request = request.json(&body);
        }
        Self::send(request).await
    }

    /// Every file in the blob store whose key starts with this.
    pub fn files(&self, prefix: &str) -> Vec<String> {
        let root = self.folder.path().join("data/blobs");
        let mut folders = vec![root.clone()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            // A folder may go while it is read.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let key = path.strip_prefix(&root).unwrap().to_str().unwrap();
                    found.push(key.to_owned());
                }
            }
        }
        found.retain(|key| key.starts_with(prefix));
        found.sort();
        found
    }

    /// Waits until the blob store holds this many files under the prefix.
    #[track_caller]
    pub fn files_become(&self, prefix: &str, count: usize) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let start = std::time::Instant::now();
            while self.files(prefix).len() != count {
                let files = self.files(prefix);
                assert!(
                    start.elapsed() < Duration::from_secs(180),
                    "{caller}: expected {count} files, found {files:#?}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits for the end of a task and answers it.
    pub async fn task_end(&self, task_id: &str) -> Value {
        let start = std::time::Instant::now();
        loop {
            let path = format!("/v1/tasks/{task_id}");
            let task = self.call("GET", &path, Value::Null).await.ok();
            if !matches!(task["status"].as_str(), Some("QUEUED" | "PROCESSING")) {
                return task;
            }
            assert!(
                start.elapsed() < Duration::from_secs(180),
                "the task does not end: {task:#}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Every event of the organization of one kind.
    pub async fn events(&self, kind: &str) -> Vec<Value> {
        let path = format!("/v1/events?limit=1000&event_type={kind}");
        let page = self.call("GET", &path, Value::Null).await.ok();
        page["results"].as_array().unwrap().clone()
    }

    /// A new namespace's id.
    pub async fn namespace(&self, name: &str) -> String {
        let namespace = self
            .call("POST", "/v1/namespaces", json!({ "namespace_name": name }))
            .await
            .ok();
        namespace["namespace_id"].as_str().unwrap().to_owned()
    }
}

/// The request with a form of these fields.
pub fn form(request: reqwest::RequestBuilder, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let part = |(name, value): &(&str, &str)| {
        format!("--BOUNDARY\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body: String = fields.iter().map(part).collect();
    request
        .header("content-type", "multipart/form-data; boundary=BOUNDARY")
        .body(body + "--BOUNDARY--\r\n")
}

/// A namespace with a collection of own vectors of three numbers and a retriever over it; answers namespace and retriever.
pub async fn retriever(server: &Server, name: &str) -> (String, String) {
    let namespace = server.namespace(name).await;
    let collection = json!({
        "collection_name": "things",
        "source": {"type": "direct_upsert"},
        "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor",
            "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]},
        },
    });
    server
        .call_in(&namespace, "POST", "/v1/collections", collection)
        .await
        .ok();
    let body = json!({
        "retriever_name": name,
        "collection_identifiers": ["things"],
        "input_schema": {},
        "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]},
        }}}],
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    (namespace, made["retriever_id"].as_str().unwrap().to_owned())
}

/// An organization beside the first one, as an installation for several would have it.
pub struct Organization {
    pub org_id: String,
    /// Its admin key.
    pub key: String,
}

/// Makes another organization with an owner and an admin key.
pub async fn other_organization(server: &Server) -> Organization {
    use loupe_server::{args, auth::key, db::Arg};
    let (org_id, user_id, key_id) = ("org_other", "usr_other", "key_other");
    let secret = key::generate(key::Kind::Standard);
    let hash = key::hash(&secret);
    let organization = loupe_wire::OrganizationModelResponse {
        organization_id: org_id.into(),
        organization_name: "Another".into(),
        account_type: loupe_wire::AccountTier::Enterprise,
        ..Default::default()
    };
    let user = loupe_wire::UserModel {
        user_id: user_id.into(),
        organization_id: org_id.into(),
        email: "owner@elsewhere.example".into(),
        user_name: "Other".into(),
        role: loupe_wire::UserRole::Admin,
        status: loupe_wire::UserStatus::Active,
        ..Default::default()
    };
    let model = loupe_wire::APIKeyModel {
        key_id: Some(key_id.into()),
        key_hash: hash[..12].into(),
        internal_id: org_id.into(),
        organization_id: Some(org_id.into()),
        user_id: user_id.into(),
        name: "other admin".into(),
        permissions: vec![loupe_wire::Permission::Admin],
        ..Default::default()
    };
    let write = server.app.db().write(move |tx| {
        Box::pin(async move {
            tx.run("INSERT INTO organizations (org_id, created_at, updated_at, data) VALUES ($1, 9000000000000000, 1, $2)", args![org_id, Arg::json(&organization)]).await?;
            tx.run("INSERT INTO users (user_id, org_id, email, created_at, updated_at, data) VALUES ($1, $2, $3, 1, 1, $4)", args![user_id, org_id, "owner@elsewhere.example", Arg::json(&user)]).await?;
            tx.run("INSERT INTO api_keys (key_id, org_id, user_id, name, secret_hash, status, is_protected, created_at, updated_at, data) VALUES ($1, $2, $3, 'other admin', $4, 'active', TRUE, 1, 1, $5)", args![key_id, org_id, user_id, hash, Arg::json(&model)]).await
        })
    });
    write.await.unwrap();
    Organization {
        org_id: org_id.to_owned(),
        key: secret,
    }
}
