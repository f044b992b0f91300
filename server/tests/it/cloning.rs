//! Clones: documents with their vectors and files, without processing anything again.

use std::time::Instant;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    alerts,
    batches::{library, object, process, red_square},
    both,
    harness::{Server, retriever},
};

/// Waits until the collection has this many documents.
async fn filled(server: &Server, namespace: &str, collection: &str, count: i64) {
    let start = Instant::now();
    let path = format!("/v1/collections/{collection}/documents/count");
    loop {
        let found = server
            .call_in(namespace, "GET", &path, Value::Null)
            .await
            .ok();
        if found["count"] == count {
            return;
        }
        assert!(
            start.elapsed().as_secs() < 180,
            "expected {count} documents: {found:#}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Waits for the end of the last copy.
async fn copied(server: &Server) {
    let last = "SELECT task_id FROM tasks WHERE kind = 'copy_collections' ORDER BY created_at DESC LIMIT 1";
    let found: Option<(String,)> = server.app.db().one(last, vec![]).await.unwrap();
    let task = server
        .task_end(&found.expect("a clone leaves a task").0)
        .await;
    assert_eq!(task["status"], "COMPLETED", "{task:#}");
}

both! {
    async fn a_collection_is_made_after_another_with_its_documents(server) {
        let (namespace, bucket, collection) = library(&server, "image_extractor", "image").await;
        let picture = json!({"property": "image", "type": "image", "data": STANDARD.encode(red_square())});
        let root = object(&server, &namespace, &bucket, "red", picture).await;
        process(&server, &namespace, &bucket).await;
        let clone = format!("/v1/collections/{collection}/clone");
        let answer = server.call_in(&namespace, "POST", &clone, json!({"collection_name": "copies", "metadata": {"own": 1}})).await.ok();
        assert_eq!(answer["source_collection_id"], collection.as_str());
        let made = answer["collection_id"].as_str().unwrap().to_owned();
        let one = format!("/v1/collections/{made}");
        let found = server.call_in(&namespace, "GET", &one, Value::Null).await.ok();
        let pattern = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        assert_eq!((&found["collection_name"], &found["metadata"]), (&json!("copies"), &json!({"own": 1})));
        for member in ["feature_extractor", "source", "vector_indexes"] {
            assert_eq!(found[member], pattern[member], "{member}");
        }
        copied(&server).await;
        filled(&server, &namespace, &made, 1).await;

        // The copy stands by itself: it outlives its source, vectors and thumbnail included.
        let list = json!({"return_presigned_urls": true, "return_vectors": true});
        let read = async |collection: &str| {
            let path = format!("/v1/collections/{collection}/documents/list");
            server.call_in(&namespace, "POST", &path, list.clone()).await.ok()["results"][0].clone()
        };
        let (before, copy) = (read(&collection).await, read(&made).await);
        assert_ne!(before["document_id"], copy["document_id"]);
        assert_eq!((&copy["title"], &copy["_internal"]["lineage"]["root_object_id"]), (&json!("red"), &json!(root)));
        assert_eq!(copy["_internal"]["collection_id"], made.as_str());
        assert!(copy["vectors"].as_object().is_some_and(|vectors| !vectors.is_empty()));
        assert_eq!(copy["vectors"], before["vectors"]);
        let path = format!("/v1/collections/{collection}");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.files_become(&format!("{namespace}/documents/{collection}"), 0).await;
        let blobs = copy["document_blobs"].as_array().unwrap();
        let thumbnail = blobs.iter().find(|blob| blob["role"] == "thumbnail").unwrap();
        let url = thumbnail["presigned_url"].as_str().unwrap();
        assert_eq!(Server::send(server.request("GET", url)).await.status, 200);

        // What was made is known of the copy, so nothing is made again.
        let again = process(&server, &namespace, &bucket).await;
        assert_eq!(again["progress"]["objects_skipped"], 1, "{again:#}");

        // Another extractor makes other documents: none are copied.
        let clone = format!("{one}/clone");
        let other = json!({"collection_name": "others", "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let other = server.call_in(&namespace, "POST", &clone, other).await.ok();
        let second = server.call_in(&namespace, "POST", &clone, json!({"collection_name": "seconds"})).await.ok();
        copied(&server).await;
        filled(&server, &namespace, second["collection_id"].as_str().unwrap(), 1).await;
        filled(&server, &namespace, other["collection_id"].as_str().unwrap(), 0).await;

        server.call_in(&namespace, "POST", &clone, json!({"collection_name": "others"})).await.error(409, "AlreadyExistsError");
        server.call_in(&namespace, "POST", &clone, json!({})).await.invalid(&["body", "collection_name"], "missing");
        let stranger = server.namespace("stranger").await;
        server.call_in(&stranger, "POST", &clone, json!({"collection_name": "mine"})).await.error(404, "NotFoundError");
    }

    async fn a_clone_with_another_extractor_reads_what_its_pattern_reads(server) {
        let namespace = server.namespace("cut anew").await;
        let call = async |path: &str, body: Value| server.call_in(&namespace, "POST", path, body).await.ok();
        let schema = json!({"properties": {"title": {"type": "string"}, "plot": {"type": "text"}}});
        let bucket = call("/v1/buckets", json!({"bucket_name": "films", "bucket_schema": schema})).await;
        let pattern = call("/v1/collections", json!({
            "collection_name": "films", "source": {"type": "bucket", "bucket_ids": [bucket["bucket_id"]]},
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "plot"},
                "field_passthrough": [{"source_path": "title"}]},
        })).await;
        let clone = async |name: &str, extractor: Value| {
            let made = call("/v1/collections/films/clone", json!({"collection_name": name, "feature_extractor": extractor})).await;
            made["collection"]["feature_extractor"].clone()
        };
        let own = &pattern["feature_extractor"];
        let mut cut = json!({"feature_extractor_name": "text_extractor", "version": "v1", "parameters": {"split_by": "sentences", "chunk_size": 2, "chunk_overlap": 0}});
        let sentences = clone("sentences", cut.clone()).await;
        for member in ["input_mappings", "field_passthrough", "include_all_source_fields"] {
            assert_eq!(sentences[member], own[member], "{member}");
        }
        assert_eq!(sentences["parameters"]["split_by"], "sentences");
        // What is said holds.
        cut["input_mappings"] = json!({"text": "title"});
        cut["include_all_source_fields"] = true.into();
        let titles = clone("titles", cut).await;
        assert_eq!((&titles["input_mappings"], titles.get("field_passthrough")), (&json!({"text": "title"}), None));
        // Another extractor has other inputs; what documents take along is no matter of it.
        let plain = clone("plain", json!({"feature_extractor_name": "passthrough_extractor", "version": "v1"})).await;
        assert_eq!((plain.get("input_mappings"), &plain["field_passthrough"]), (None, &own["field_passthrough"]));
        // The same said again is the same extractor: documents are copied.
        clone("again", json!({"feature_extractor_name": "text_extractor", "version": "v1"})).await;
        copied(&server).await;
    }

    async fn a_namespace_is_cloned_and_outlives_its_source(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        for (title, words) in [("Bread", "Knead flour and yeast and bake the dough."), ("Glacier", "A slow river of ice.")] {
            let text = json!({"property": "text", "type": "text", "data": words});
            object(&server, &namespace, &bucket, title, text).await;
        }
        process(&server, &namespace, &bucket).await;
        let retriever = json!({
            "retriever_name": "search", "collection_identifiers": [collection],
            "input_schema": {"query": {"type": "text", "required": true}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{
                    "feature_uri": "loupe://text_extractor@v1/all_minilm_l6_v2_v1",
                    "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": 5, "lexical": true,
                }],
                "final_top_k": 2,
            }}}],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", retriever).await.ok();

        let clone = format!("/v1/namespaces/{namespace}/clone");
        let answer = server.call("POST", &clone, json!({"namespace_name": "copied library"})).await.ok();
        assert_eq!((&answer["status"], &answer["source_namespace_id"]), (&json!("cloning"), &json!(namespace)));
        assert_eq!(answer["cloned_resource_counts"], json!({"collections": 1, "retrievers": 1, "buckets": 1, "taxonomies": 0}));
        let copy = answer["namespace"]["namespace_id"].as_str().unwrap().to_owned();
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let found = server.call("GET", &format!("/v1/namespaces/{copy}"), Value::Null).await.ok();
        assert_eq!((&found["clone_status"], &found["namespace_ready"]), (&json!("ready"), &json!(true)));

        let ids = &answer["cloned_resources"];
        let new = |kind: &str, old: &str| ids[kind][old].as_str().unwrap().to_owned();
        let collection = new("collections", &collection);
        let found = server.call_in(&copy, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        let new_bucket = new("buckets", &bucket);
        assert_eq!(found["source"]["bucket_ids"], json!([new_bucket]));
        // Stored files are not duplicated.
        let found = server.call_in(&copy, "GET", &format!("/v1/buckets/{new_bucket}"), Value::Null).await.ok();
        assert_eq!((&found["bucket_name"], &found["object_count"]), (&json!("files"), &json!(0)));
        let retriever = new("retrievers", retriever["retriever_id"].as_str().unwrap());
        assert_eq!(answer["primary_retriever_id"], retriever.as_str());
        server.call_in(&namespace, "GET", &format!("/v1/retrievers/{retriever}"), Value::Null).await.error(404, "NotFoundError");

        let gone = server.call("DELETE", &format!("/v1/namespaces/{namespace}"), Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        let execute = format!("/v1/retrievers/{retriever}/execute");
        for (query, title) in [("baking a loaf", "Bread"), ("frozen landscape", "Glacier"), ("yeast", "Bread")] {
            let answer = server.call_in(&copy, "POST", &execute, json!({"inputs": {"query": query}})).await.ok();
            assert_eq!(answer["documents"][0]["title"], title, "{query}: {answer:#}");
        }
    }

    async fn a_cloned_collection_names_no_alert_of_its_source(server) {
        let (namespace, watched) = retriever(&server, "watched").await;
        let alert = alerts::watch("new things", &watched, "http://127.0.0.2:4321/");
        let alert = alerts::id(&alerts::make(&server, &namespace, alert).await);
        let applied = json!({"alert_applications": [{"alert_id": alert, "execution_mode": "on_ingest", "input_mappings": [
            {"input_key": "query", "source": {"source_type": "document_field", "path": "title"}},
        ]}]});
        server.call_in(&namespace, "PATCH", "/v1/collections/things", applied).await.ok();
        let clone = format!("/v1/namespaces/{namespace}/clone");
        let answer = server.call("POST", &clone, json!({"namespace_name": "unwatched"})).await.ok();
        let copy = answer["namespace"]["namespace_id"].as_str().unwrap();
        let found = server.call_in(copy, "GET", "/v1/collections/things", Value::Null).await.ok();
        assert_eq!(found["alert_applications"], Value::Null, "{found:#}");
        let source = server.call_in(&namespace, "GET", "/v1/collections/things", Value::Null).await.ok();
        assert_eq!(source["alert_applications"][0]["alert_id"], json!(alert));
    }

    async fn a_collection_made_after_another_is_watched_by_the_same_alerts(server) {
        let (namespace, watched) = retriever(&server, "watching").await;
        let make = async |name: &str| alerts::id(&alerts::make(&server, &namespace, alerts::watch(name, &watched, "http://127.0.0.2:4321/")).await);
        let (stays, goes) = (make("stays").await, make("goes").await);
        let mappings = json!([{"input_key": "query", "source": {"source_type": "document_field", "path": "title"}}]);
        let applied = [&stays, &goes].map(|id| json!({"alert_id": id, "execution_mode": "on_demand", "input_mappings": mappings}));
        server.call_in(&namespace, "PATCH", "/v1/collections/things", json!({"alert_applications": applied})).await.ok();
        let source = server.call_in(&namespace, "GET", "/v1/collections/things", Value::Null).await.ok();
        let clone = async |name: &str| {
            server.call_in(&namespace, "POST", "/v1/collections/things/clone", json!({"collection_name": name})).await.ok();
            server.call_in(&namespace, "GET", &format!("/v1/collections/{name}"), Value::Null).await.ok()
        };
        assert_eq!(clone("both").await["alert_applications"], source["alert_applications"]);
        // One that was removed since stands in nobody's way.
        server.call_in(&namespace, "DELETE", &format!("/v1/alerts/{goes}"), Value::Null).await;
        let rest = clone("rest").await;
        assert_eq!(rest["alert_applications"], json!([source["alert_applications"][0]]), "{rest:#}");
    }

    async fn a_clone_whose_source_goes_before_it_is_copied_fails(server) {
        // Nobody works yet.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (namespace, _) = retriever(&server, "going").await;
        let clone = format!("/v1/namespaces/{namespace}/clone");
        let answer = server.call("POST", &clone, json!({"namespace_name": "part"})).await.ok();
        let copy = format!("/v1/namespaces/{}", answer["namespace"]["namespace_id"].as_str().unwrap());
        // What is not there yet is no pattern.
        let again = format!("{copy}/clone");
        let refused = server.call("POST", &again, json!({"namespace_name": "again"})).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "namespace_not_ready");
        server.call_in(&namespace, "DELETE", "/v1/collections/things", Value::Null).await.ok();
        let workers = loupe_server::config::Config::default().jobs.workers;
        let server = server.restart_with(|config| config.jobs.workers = workers).await;
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "FAILED", "{task:#}");
        let found = server.call("GET", &copy, Value::Null).await.ok();
        assert_eq!((&found["clone_status"], &found["namespace_ready"]), (&json!("failed"), &json!(false)), "{found:#}");
        assert!(found["clone_error"].as_str().unwrap().contains("deleted"), "{found:#}");
        // A clone of it has its own end.
        let answer = server.call("POST", &again, json!({"namespace_name": "again"})).await.ok();
        assert_eq!((&answer["namespace"]["clone_status"], &answer["namespace"]["clone_error"]), (&json!("cloning"), &Value::Null));
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
    }

    async fn what_a_clone_cannot_do_is_refused(server) {
        let namespace = server.namespace("pattern").await;
        let clone = format!("/v1/namespaces/{namespace}/clone");
        let send = async |extra: Value| {
            let mut body = json!({"namespace_name": "copy"});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            server.call("POST", &clone, body).await
        };
        send(json!({"include_resources": {"taxonomies": true, "retrievers": false}})).await.invalid(&["body", "include_resources", "taxonomies"], "value_error");
        send(json!({"include_resources": {"collections": false}})).await.invalid(&["body", "include_resources", "retrievers"], "value_error");
        send(json!({"mode": "branch"})).await.invalid(&["body", "mode"], "not_enabled");
        send(json!({"namespace_name": "a/b/c"})).await.invalid(&["body", "namespace_name"], "string_pattern_mismatch");
        send(json!({"source_organization_id": "org_other"})).await.error(404, "NotFoundError");
        send(json!({"namespace_name": "pattern"})).await.error(409, "AlreadyExistsError");
        server.call("POST", "/v1/namespaces/ns_unknown/clone", json!({"namespace_name": "copy"})).await.error(404, "NotFoundError");
        let bare = send(json!({"include_resources": {"collections": false, "retrievers": false}})).await.ok();
        let task = server.task_end(bare["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED");
    }
}
