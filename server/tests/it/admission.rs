//! What a bucket lets in: its `ingest_filter` judges objects before they are processed.

use std::{sync::atomic::Ordering, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    fetching::serve,
    harness::Server,
    stages::{collection, stage},
    supervising::{submit, through},
    transforming::{asking, moody},
};

/// A namespace, a bucket that a collection is filled from, and that collection.
struct Place {
    namespace: String,
    bucket: String,
    documents: String,
}

impl Place {
    async fn new(server: &Server) -> Self {
        let (namespace, bucket, documents) = library(server, "passthrough_extractor", "text").await;
        Self {
            namespace,
            bucket,
            documents,
        }
    }

    async fn call(
        &self,
        server: &Server,
        method: &str,
        path: &str,
        body: Value,
    ) -> crate::harness::Answer {
        server.call_in(&self.namespace, method, path, body).await
    }

    /// Makes a retriever that finds documents of a collection whose field is the input; answers its id.
    async fn finder(
        &self,
        server: &Server,
        collection: &str,
        (field, input): (&str, &str),
    ) -> String {
        let condition =
            json!({"field": field, "operator": "eq", "value": format!("{{{{INPUT.{input}}}}}")});
        let body = json!({
            "retriever_name": format!("by {input}"), "collection_identifiers": [collection],
            "input_schema": {input: {"type": "text", "required": true}},
            "stages": [stage("attribute_filter", json!({"conditions": {"AND": [condition]}}))],
        });
        let made = self.call(server, "POST", "/v1/retrievers", body).await.ok();
        made["retriever_id"].as_str().unwrap().to_owned()
    }

    async fn filter(&self, server: &Server, filter: Value) -> Value {
        let path = format!("/v1/buckets/{}", self.bucket);
        let body = json!({ "ingest_filter": filter });
        self.call(server, "PATCH", &path, body).await.ok()
    }

    async fn note(&self, server: &Server, title: &str, text: &str) -> String {
        let text = json!({"property": "text", "type": "text", "data": text});
        object(server, &self.namespace, &self.bucket, title, text).await
    }

    async fn change(&self, server: &Server, object_id: &str, change: Value) {
        let path = format!("/v1/buckets/{}/objects/{object_id}", self.bucket);
        self.call(server, "PATCH", &path, change).await.ok();
    }

    /// Processes the bucket and waits for the end; answers the batch.
    async fn process(&self, server: &Server) -> Value {
        let batch = process(server, &self.namespace, &self.bucket).await;
        assert_eq!(batch["failed_object_count"], 0, "{batch:#}");
        batch
    }

    async fn documents(&self, server: &Server) -> Vec<Value> {
        let path = format!("/v1/collections/{}/documents/list", self.documents);
        let body = json!({"sort": {"field": "title", "direction": "asc"}});
        let page = self.call(server, "POST", &path, body).await.ok();
        page["results"].as_array().unwrap().clone()
    }

    async fn titles(&self, server: &Server) -> Vec<Value> {
        let documents = self.documents(server).await;
        documents.iter().map(|one| one["title"].clone()).collect()
    }
}

both! {
    async fn a_bucket_lets_in_what_its_retriever_finds(server) {
        let place = Place::new(&server).await;
        let known = collection(&server, &place.namespace, "known", &[json!({"name": "apple"}), json!({"name": "pear"})]).await;
        let finder = place.finder(&server, &known, ("name", "title")).await;
        let kept = place.filter(&server, json!({"retriever_id": "by title", "retriever_version": 1})).await;
        assert_eq!(kept["ingest_filter"]["retriever_id"], finder, "names become ids");
        let apple = place.note(&server, "apple", "round").await;
        place.note(&server, "stone", "hard").await;
        let batch = place.process(&server).await;
        assert_eq!(place.titles(&server).await, [json!("apple")]);
        let told = batch["tier_tasks"][0]["extractor_jobs"][0]["warnings"][0].as_str().unwrap_or_default();
        assert!(told.contains("ingest_filter"), "{batch:#}");

        // What is as it was is not judged again; what was left out is.
        place.filter(&server, json!({"retriever_id": finder, "action": "drop"})).await;
        place.process(&server).await;
        assert_eq!(place.titles(&server).await, [json!("apple"), json!("stone")]);
        // What is let in no more leaves its documents.
        place.change(&server, &apple, json!({"title": "pear"})).await;
        place.process(&server).await;
        assert_eq!(place.titles(&server).await, [json!("stone")]);
        // A change of something else leaves the filter, null takes it away.
        let path = format!("/v1/buckets/{}", place.bucket);
        let same = place.call(&server, "PATCH", &path, json!({"description": "of things"})).await.ok();
        assert_eq!(same["ingest_filter"]["action"], "drop");
        assert_eq!(place.filter(&server, Value::Null).await.get("ingest_filter"), None);
        place.process(&server).await;
        assert_eq!(place.titles(&server).await, [json!("pear"), json!("stone")]);
    }

    async fn an_object_is_not_found_for_its_own_documents(server) {
        let place = Place::new(&server).await;
        let finder = place.finder(&server, &place.documents, ("title", "title")).await;
        let properties = json!({"title": {"type": "string"}, "text": {"type": "text"}, "year": {"type": "integer"}});
        let body = json!({"bucket_schema": {"properties": properties}, "ingest_filter": {"retriever_id": finder, "action": "drop"}});
        place.call(&server, "PATCH", &format!("/v1/buckets/{}", place.bucket), body).await.ok();
        let first = place.note(&server, "one", "first").await;
        place.process(&server).await;
        place.note(&server, "one", "second").await;
        place.change(&server, &first, json!({"year": 1984})).await;
        place.process(&server).await;
        let held = place.documents(&server).await;
        let roots: Vec<&Value> = held.iter().map(|one| &one["_internal"]["lineage"]["root_object_id"]).collect();
        assert_eq!(roots, [&json!(first)], "{held:#?}");
    }

    async fn a_filter_tags_and_its_errors_do_as_it_says(server) {
        let place = Place::new(&server).await;
        let known = collection(&server, &place.namespace, "known", &[json!({"name": "sweet"})]).await;
        // The text of a file is an input by the name of its property.
        let finder = place.finder(&server, &known, ("name", "text")).await;
        place.filter(&server, json!({"retriever_id": finder, "action": "tag"})).await;
        place.note(&server, "a", "sweet").await;
        place.note(&server, "b", "bitter").await;
        place.process(&server).await;
        let said = |document: &Value| document["_internal"]["ingest_filter"].clone();
        let told: Vec<Value> = place.documents(&server).await.iter().map(said).collect();
        let note = |matched: bool| json!({"retriever_id": finder, "matched": matched});
        assert_eq!(told, [note(true), note(false)]);

        let path = format!("/v1/retrievers/{finder}");
        place.call(&server, "DELETE", &path, Value::Null).await;
        place.note(&server, "c", "sweet").await;
        place.process(&server).await;
        let told: Vec<Value> = place.documents(&server).await.iter().map(said).collect();
        assert!(told[2]["error"].is_string(), "kept, with what went wrong: {told:#?}");

        let other = place.finder(&server, &known, ("name", "text")).await;
        place.filter(&server, json!({"retriever_id": other, "on_error": "drop"})).await;
        place.call(&server, "DELETE", &format!("/v1/retrievers/{other}"), Value::Null).await;
        place.note(&server, "d", "sweet").await;
        place.process(&server).await;
        assert_eq!(place.titles(&server).await, [json!("a"), json!("b"), json!("c")]);
    }

    async fn a_filter_whose_answer_is_not_whole_refuses_nothing(server) {
        let place = Place::new(&server).await;
        let known = ["apple", "pear", "plum"].map(|name| json!({ "name": name }));
        collection(&server, &place.namespace, "known", &known).await;
        let (address, failures) = moody().await;
        let by_title = json!({"AND": [{"field": "name", "operator": "eq", "value": "{{INPUT.title}}"}]});
        let finder = json!({
            "retriever_name": "known titles", "collection_identifiers": ["known"], "input_schema": {"title": {"type": "text", "required": true}},
            "stages": [stage("attribute_filter", json!({"conditions": by_title})), asking(&address, Some("remove"))],
        });
        place.call(&server, "POST", "/v1/retrievers", finder).await.ok();
        place.filter(&server, json!({"retriever_id": "known titles", "on_error": "drop"})).await;
        place.note(&server, "apple", "round").await;
        // What was found is left out, as the service is away; it has come back when it is asked again.
        failures.store(1, Ordering::SeqCst);
        let path = submit(&server, &place.namespace, &place.bucket).await;
        let (batch, pauses) = through(&server, &place.namespace, &path).await;
        assert_eq!((&batch["status"], pauses.len()), (&json!("COMPLETED"), 1), "{batch:#}");
        assert_eq!(place.titles(&server).await, [json!("apple")]);
        // It stays away: the filter says what becomes of what cannot be judged.
        failures.store(usize::MAX, Ordering::SeqCst);
        place.note(&server, "pear", "long").await;
        let path = submit(&server, &place.namespace, &place.bucket).await;
        let (batch, _) = through(&server, &place.namespace, &path).await;
        assert_eq!(place.titles(&server).await, [json!("apple")], "{batch:#}");
        place.filter(&server, json!({"retriever_id": "known titles", "on_error": "keep"})).await;
        place.note(&server, "plum", "blue").await;
        let path = submit(&server, &place.namespace, &place.bucket).await;
        through(&server, &place.namespace, &path).await;
        let told = place.documents(&server).await;
        let of = |title: &str| told.iter().find(|one| one["title"] == title).cloned().unwrap_or_default();
        let said = of("plum")["_internal"]["ingest_filter"]["error"].to_string();
        assert!(said.contains("not whole"), "{told:#?}");
    }

    async fn a_last_word_and_a_time_that_is_over_are_not_tried_again(server) {
        let place = Place::new(&server).await;
        let ways = [("gone", "404"), ("slow", "the time of the retriever ran out")];
        let known = ways.map(|(way, _)| json!({ "name": way }));
        collection(&server, &place.namespace, "known", &known).await;
        let router = Router::new()
            .route("/gone/facts", get(|| async { StatusCode::NOT_FOUND }))
            .route("/slow/facts", get(|| async { tokio::time::sleep(Duration::from_secs(5)).await }));
        let address = serve(router, "127.0.0.2").await;
        let by_title = json!({"AND": [{"field": "name", "operator": "eq", "value": "{{INPUT.title}}"}]});
        for (way, reason) in ways {
            let finder = json!({
                "retriever_name": way, "collection_identifiers": ["known"], "input_schema": {"title": {"type": "text", "required": true}},
                "stages": [stage("attribute_filter", json!({"conditions": by_title})), asking(&format!("{address}/{way}"), Some("remove"))],
            });
            place.call(&server, "POST", "/v1/retrievers", finder).await.ok();
            place.filter(&server, json!({"retriever_id": way, "timeout_seconds": 1})).await;
            place.note(&server, way, "words").await;
            let path = submit(&server, &place.namespace, &place.bucket).await;
            let (batch, pauses) = through(&server, &place.namespace, &path).await;
            assert_eq!((&batch["status"], pauses.len()), (&json!("COMPLETED"), 0), "{way}: {batch:#}");
            let told = place.documents(&server).await;
            let one = told.iter().find(|one| one["title"] == way).cloned().unwrap_or_default();
            let said = one["_internal"]["ingest_filter"]["error"].to_string();
            assert!(said.contains(reason), "{way}: {told:#?}");
        }
    }

    async fn a_filter_that_cannot_run_is_refused(server) {
        let place = Place::new(&server).await;
        let finder = place.finder(&server, &place.documents, ("title", "title")).await;
        let path = format!("/v1/buckets/{}", place.bucket);
        let send = async |filter: Value| place.call(&server, "PATCH", &path, json!({"ingest_filter": filter})).await;
        send(json!({"retriever_id": "ret_unknown"})).await.error(404, "NotFoundError");
        send(json!({"retriever_id": ""})).await.invalid(&["body", "ingest_filter", "retriever_id"], "string_too_short");
        send(json!({"retriever_id": finder, "retriever_version": 2})).await.invalid(&["body", "ingest_filter", "retriever_version"], "value_error");
        for (seconds, kind) in [(0, "greater_than_equal"), (301, "less_than_equal")] {
            let path = ["body", "ingest_filter", "timeout_seconds"];
            send(json!({"retriever_id": finder, "timeout_seconds": seconds})).await.invalid(&path, kind);
        }
        let scopes = json!([{"resource_type": "bucket", "resource_id": place.bucket, "operations": ["read_data", "write_data"]}]);
        let body = json!({"name": "writer", "permissions": ["write"], "scopes": scopes});
        let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
        let request = server.request("PATCH", &path).bearer_auth(made["key"].as_str().unwrap());
        let request = request.header("x-namespace", &place.namespace).json(&json!({"ingest_filter": {"retriever_id": finder}}));
        let refused = Server::send(request).await.error(403, "ForbiddenError");
        assert_eq!(refused["error"]["code"], "scope_denied", "its retriever is for who may execute it");
    }

    async fn a_cloned_bucket_is_filtered_by_the_clones_retriever(server) {
        let place = Place::new(&server).await;
        let finder = place.finder(&server, &place.documents, ("title", "title")).await;
        place.filter(&server, json!({"retriever_id": finder})).await;
        let path = format!("/v1/namespaces/{}/clone", place.namespace);
        let filter = async |name: &str, resources: Value| {
            let body = json!({"namespace_name": name, "include_resources": resources});
            let cloned = server.call("POST", &path, body).await.ok();
            let namespace = cloned["namespace"]["namespace_id"].as_str().unwrap().to_owned();
            let bucket = server.call_in(&namespace, "GET", "/v1/buckets/files", Value::Null).await.ok();
            (bucket["ingest_filter"]["retriever_id"].clone(), cloned["cloned_resources"]["retrievers"][&finder].clone())
        };
        let (own, new) = filter("with-retrievers", json!({"collections": true, "retrievers": true})).await;
        assert!(new.is_string() && own == new, "{own} {new}");
        let (own, _) = filter("without-retrievers", json!({"collections": false, "retrievers": false})).await;
        assert_eq!(own, Value::Null);
    }
}
