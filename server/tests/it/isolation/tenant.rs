//! Two organizations that hold the same things, made by the same steps.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{call, text};
use crate::harness::Server;

/// One of everything that an organization can hold, by the name that addresses give it.
pub struct Tenant {
    pub key: String,
    pub namespace: String,
    pub ids: BTreeMap<&'static str, String>,
    /// A page's end in its lists and in its feed.
    pub cursors: Vec<String>,
}

pub async fn tenant(server: &Server, key: &str, email: &str, word: &str) -> Tenant {
    let mut maker = Maker {
        server,
        key,
        word,
        namespace: String::new(),
        ids: BTreeMap::new(),
    };
    maker.namespace().await;
    maker.files().await;
    maker.documents().await;
    maker.searches().await;
    maker.comparisons().await;
    maker.clusters().await;
    maker.people(email).await;
    maker.storage().await;
    maker.apps_and_tasks().await;
    maker.end().await
}

/// A tenant that is being made.
struct Maker<'a> {
    server: &'a Server,
    key: &'a str,
    /// Is in its names.
    word: &'a str,
    namespace: String,
    ids: BTreeMap<&'static str, String>,
}

impl Maker<'_> {
    async fn get(&self, path: &str) -> Value {
        let (server, namespace) = (self.server, &self.namespace);
        let answer = call(server, self.key, namespace, "GET", path, Value::Null).await;
        answer.ok()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (server, namespace) = (self.server, &self.namespace);
        let answer = call(server, self.key, namespace, "POST", path, body).await;
        answer.ok()
    }

    fn keep(&mut self, names: &[&'static str], id: &str) {
        for name in names {
            self.ids.insert(*name, id.to_owned());
        }
    }

    fn id(&self, name: &str) -> String {
        self.ids[name].clone()
    }

    /// Makes a resource and keeps its id, a member of the answer, by the names that addresses give it.
    async fn make(
        &mut self,
        path: &str,
        body: Value,
        member: &str,
        names: &[&'static str],
    ) -> String {
        let id = text(&self.post(path, body).await, member);
        self.keep(names, &id);
        id
    }

    async fn namespace(&mut self) {
        let body = json!({"namespace_name": format!("{} space", self.word)});
        let names = ["namespace_identifier", "namespace_id"];
        let made = self.make("/v1/namespaces", body, "namespace_id", &names);
        self.namespace = made.await;
    }

    /// A bucket with an object, a batch of it, and an upload.
    async fn files(&mut self) {
        let word = self.word;
        let schema = json!({"properties": {"title": {"type": "string"}, "text": {"type": "text"}}});
        let body = json!({"bucket_name": format!("{word} bucket"), "bucket_schema": schema});
        let names = ["bucket_identifier", "bucket_id"];
        let bucket = self.make("/v1/buckets", body, "bucket_id", &names).await;
        let path = |kind: &str| format!("/v1/buckets/{bucket}/{kind}");
        let blob = json!({"property": "text", "type": "text", "data": "words"});
        let body = json!({"title": word, "blobs": [blob]});
        let names = ["object_identifier", "object_id"];
        let object = self.make(&path("objects"), body, "object_id", &names).await;
        let body = json!({"object_ids": [object]});
        self.make(&path("batches"), body, "batch_id", &["batch_id"])
            .await;
        let body = json!({"filename": "a.txt", "content_type": "text/plain"});
        self.make(&path("uploads"), body, "upload_id", &["upload_id"])
            .await;
    }

    async fn documents(&mut self) {
        let word = self.word;
        let body = json!({
            "collection_name": format!("{word}-things"), "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1",
                "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}},
        });
        let names = ["collection_identifier", "collection_id"];
        let made = self.make("/v1/collections", body, "collection_id", &names);
        let path = format!("/v1/collections/{}/documents", made.await);
        for number in 0..3 {
            let title = format!("{word} {number}");
            let body = json!({"title": title, "vectors": {"own": [1.0, number, 0.0]}});
            let made = text(&self.post(&path, body).await, "document_id");
            self.ids.entry("document_id").or_insert(made);
        }
    }

    /// A retriever that was executed and is published, and a taxonomy by it.
    async fn searches(&mut self) {
        let (word, collection) = (self.word, self.id("collection_id"));
        let body = json!({
            "retriever_name": format!("{word} search"), "collection_identifiers": [collection], "input_schema": {},
            "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}}}}],
        });
        let names = ["retriever_id"];
        let made = self.make("/v1/retrievers", body, "retriever_id", &names);
        let retriever = made.await;
        let path = |what: &str| format!("/v1/retrievers/{retriever}/{what}");
        let body = json!({"inputs": {}});
        let names = ["execution_id"];
        self.make(&path("execute"), body, "execution_id", &names)
            .await;
        let body = json!({"public_name": format!("{word}-page"), "display_name": word});
        self.post(&path("publish"), body).await;
        let body = json!({"taxonomy_name": format!("{word} kinds"), "config": {"taxonomy_type": "flat", "retriever_id": retriever,
            "input_mappings": [{"input_key": "title", "path": "title"}], "source_collection": {"collection_id": collection}}});
        let names = ["taxonomy_identifier", "taxonomy_id"];
        self.make("/v1/taxonomies", body, "taxonomy_id", &names)
            .await;
    }

    /// What retrievers are compared by: a benchmark, judgements with an evaluation, and what a visitor did.
    async fn comparisons(&mut self) {
        let word = self.word;
        let (retriever, document) = (self.id("retriever_id"), self.id("document_id"));
        let path = format!("/v1/retrievers/{retriever}/clone");
        let body = json!({"retriever_name": format!("{word} candidate")});
        let candidate = self.post(&path, body).await;
        let body = json!({"benchmark_name": word, "baseline_retriever_id": retriever,
            "candidate_retriever_ids": [candidate["retriever_id"]]});
        let (path, names) = ("/v1/retrievers/benchmarks", ["benchmark_id"]);
        self.make(path, body, "benchmark_id", &names).await;
        let queries =
            json!([{"query_id": "q", "query_input": {}, "relevant_documents": [document]}]);
        let body = json!({"dataset_name": format!("{word}-judgements"), "queries": queries});
        let path = "/v1/retrievers/evaluations/datasets";
        let names = ["dataset_identifier"];
        let dataset = self.make(path, body, "dataset_id", &names).await;
        self.evaluate(&retriever, &dataset).await;
        let body = json!({"feature_id": document, "interaction_type": ["click"], "position": 0, "retriever_id": retriever});
        let (path, names) = ("/v1/retrievers/interactions", ["interaction_id"]);
        self.make(path, body, "interaction_id", &names).await;
    }

    async fn evaluate(&mut self, retriever: &str, dataset: &str) {
        let path = format!("/v1/retrievers/{retriever}/evaluations");
        let body = json!({"dataset_name": dataset});
        let (server, namespace) = (self.server, &self.namespace);
        let run = call(server, self.key, namespace, "POST", &path, body).await;
        assert_eq!(run.status, 202, "{:#}", run.body);
        self.ended(&text(&run.body, "task_id")).await;
        self.keep(&["evaluation_id"], &text(&run.body, "evaluation_id"));
    }

    /// A cluster that was executed once.
    async fn clusters(&mut self) {
        let name = format!("{} groups", self.word);
        let body = json!({"cluster_name": name, "collection_ids": [self.id("collection_id")],
            "vector_config": {"feature_uri": "own", "clustering_method": "kmeans", "algorithm_params": {"n_clusters": 2}}});
        let names = ["cluster_identifier", "cluster_id"];
        let made = self.make("/v1/clusters", body, "cluster_id", &names);
        let path = format!("/v1/clusters/{}/execute", made.await);
        let begun = self.post(&path, Value::Null).await;
        self.ended(&text(&begun, "task_id")).await;
        self.keep(&["run_id"], &text(&begun["additional_data"], "run_id"));
    }

    /// A template, keys, a user and a secret.
    async fn people(&mut self, email: &str) {
        let (word, retriever) = (self.word, self.id("retriever_id"));
        let path = format!("/v1/templates/retrievers/from-retriever/{retriever}");
        let body = json!({"template_name": word});
        self.make(&path, body, "template_id", &["template_id"])
            .await;
        let robot = format!("{word}-robot");
        let path = format!("/v1/organizations/users/{email}/api-keys");
        let body = json!({"name": robot});
        self.make(&path, body, "key_id", &["key_id"]).await;
        self.keep(&["key_name"], &robot);
        let path = format!("/v1/retrievers/{retriever}/api-keys");
        self.post(&path, json!({"name": format!("{word}-widget")}))
            .await;
        let user = format!("{word}@people.example");
        let body = json!({"email": user, "user_name": word});
        self.post("/v1/organizations/users", body).await;
        self.keep(&["user_email"], &user);
        let secret = format!("{word}-secret");
        let body = json!({"secret_name": secret, "secret_value": "v"});
        self.post("/v1/organizations/secrets", body).await;
        self.keep(&["secret_name"], &secret);
    }

    /// A connection and a sync over it. The storage does not answer: the look ends, and nothing of the sync moves after it.
    async fn storage(&mut self) {
        let body = json!({
            "name": format!("{}-storage", self.word), "provider_type": "s3", "test_before_save": false, "provider_config": {
                "credentials": {"access_key_id": self.word, "secret_access_key": "s"}, "endpoint_url": "http://127.0.0.2:39999"},
        });
        let path = "/v1/organizations/connections";
        let names = ["connection_identifier"];
        let connection = self.make(path, body, "connection_id", &names).await;
        let body = json!({"connection_id": connection, "source_path": "s3://media/new"});
        let path = format!("/v1/buckets/{}/syncs", self.id("bucket_id"));
        let sync = self.post(&path, body).await;
        self.ended(sync["task_ids"][0].as_str().unwrap()).await;
        self.keep(&["sync_config_id"], &text(&sync, "sync_config_id"));
        self.keep(&["sync_job_id"], &text(&sync, "current_sync_run_id"));
    }

    /// An app, and the task of a copied collection.
    async fn apps_and_tasks(&mut self) {
        let word = self.word;
        let body = json!({"slug": format!("{word}-app"), "meta": {"title": word}});
        self.make("/v1/apps", body, "app_id", &["app_id"]).await;
        let path = format!("/v1/collections/{}/clone", self.id("collection_id"));
        let body = json!({"collection_name": format!("{word}-copy")});
        let clone = self.post(&path, body).await;
        assert!(clone.is_object());
        let tasks = self.get("/v1/tasks").await;
        let task = tasks["results"][0]["task_id"].as_str();
        if let Some(task) = task {
            self.ended(task).await;
        }
        self.keep(&["task_id"], task.unwrap_or("task"));
    }

    /// What was recorded of all that, and where its pages end.
    async fn end(mut self) -> Tenant {
        let log = self.get("/v1/organizations/audit/logs").await;
        self.keep(&["audit_id"], &text(&log["results"][0], "audit_id"));
        let collection = self.id("collection_id");
        let path = format!("/v1/collections/{collection}/documents?limit=1");
        let page = self.get(&path).await;
        let feed = self.get("/v1/events?limit=1").await;
        Tenant {
            key: self.key.to_owned(),
            namespace: self.namespace,
            ids: self.ids,
            cursors: vec![
                text(&page["pagination"], "next_cursor"),
                text(&feed, "next_cursor"),
            ],
        }
    }

    /// Waits for the end of a task.
    async fn ended(&self, task: &str) {
        let path = format!("/v1/tasks/{task}");
        let start = std::time::Instant::now();
        loop {
            let answer = call(self.server, self.key, "", "GET", &path, Value::Null).await;
            let status = answer.body["status"].as_str();
            let goes_on = matches!(
                status,
                Some("QUEUED" | "PROCESSING" | "PENDING" | "IN_PROGRESS")
            );
            if answer.status != 200 || !goes_on {
                return;
            }
            assert!(start.elapsed().as_secs() < 180, "{:#}", answer.body);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}
