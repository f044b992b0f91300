//! Namespaces that are extracted anew.

use std::time::{Duration, Instant};

use loupe_server::{args, cause::Cause, db::Json, jobs::Claim, v1};
use serde_json::{Value, json};

use super::{MIGRATIONS, codes, migrated, validated};
use crate::{
    batches::{library, object, process},
    both,
    harness::{Server, retriever},
};

/// A picture of one pixel, and half of one.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const BROKEN: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn anew(source: &str, extractors: Value) -> Value {
    json!({"migration_type": "re_extract", "source_namespace_id": source, "target_namespace_name": "anew",
        "feature_extractors": extractors})
}

/// Every text cut into its sentences.
fn sentences() -> Value {
    json!([{"feature_extractor_name": "text_extractor", "parameters": {"split_by": "sentences", "chunk_size": 1, "chunk_overlap": 0}}])
}

fn target(migration: &Value) -> &str {
    let target = &migration["additional_data"]["target_namespace_id"];
    target.as_str().unwrap()
}

/// Of each stage: how many there are, are done, failed.
fn items(migration: &Value) -> Vec<[i64; 3]> {
    let stages = migration["progress"]["stages"].as_array().unwrap().iter();
    let members = ["items_total", "items_completed", "items_failed"];
    stages
        .map(|stage| members.map(|member| stage[member].as_i64().unwrap()))
        .collect()
}

/// Two short texts with several sentences each.
async fn texts(server: &Server, namespace: &str, bucket: &str) {
    for (title, words) in [
        (
            "Bread",
            "Knead flour and yeast. Bake the dough until it is brown.",
        ),
        (
            "Glacier",
            "A slow river of ice. It carves valleys into the rock.",
        ),
    ] {
        let text = json!({"property": "text", "type": "text", "data": words});
        object(server, namespace, bucket, title, text).await;
    }
}

async fn pictures(server: &Server, namespace: &str, bucket: &str, pictures: &[&str]) {
    for data in pictures {
        let blob = json!({"property": "image", "type": "image", "data": data});
        object(server, namespace, bucket, "picture", blob).await;
    }
}

async fn list(server: &Server, namespace: &str, path: &str) -> Vec<Value> {
    let page = server.call_in(namespace, "POST", path, json!({}));
    page.await.ok()["results"].as_array().unwrap().clone()
}

/// As if a worker had the task of a migration.
async fn claim(server: &Server, task_id: &str) -> Claim {
    type Row = (String, String, Json<Value>);
    let sql = "SELECT org_id, COALESCE(namespace_id, ''), work FROM tasks WHERE task_id = $1";
    let found: Option<Row> = server.app.db().one(sql, args![task_id]).await.unwrap();
    let (org_id, namespace_id, Json(work)) = found.unwrap();
    Claim {
        task_id: task_id.to_owned(),
        org_id,
        namespace_id: Some(namespace_id),
        parent_id: None,
        kind: v1::migrations::MIGRATE.to_owned(),
        work,
        owner: "nobody".into(),
        attempt: 1,
        tries: 0,
        cause: Cause::default(),
    }
}

/// Starts a migration where nobody works; answers its path and its task.
async fn begun(server: &Server, config: Value) -> (String, String) {
    let body = json!({"config": config, "start_immediately": true});
    let made = server
        .call("POST", &format!("{MIGRATIONS}/"), body)
        .await
        .ok();
    let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
    let begun = server.call("GET", &path, Value::Null).await.ok();
    let task = begun["task_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{begun:#}"));
    (path, task.to_owned())
}

/// Waits until a namespace has so many batches, which the leader makes.
async fn batched(server: &Server, namespace: &str, count: usize) -> Vec<Value> {
    let start = Instant::now();
    loop {
        let batches = list(server, namespace, "/v1/batches/list").await;
        if batches.len() >= count {
            return batches;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{batches:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// As if a worker had died before it made batches, and after some objects had come.
async fn forgets_what_it_did(server: &Server, namespace: &str) {
    let (postgres, namespace) = (server.app.db().is_postgres(), namespace.to_owned());
    let done = server.app.db().write(move |tx| Box::pin(async move {
        let stage = match postgres {
            true => "UPDATE migrations SET data = jsonb_set(data, '{progress,current_stage}', '\"namespace_setup\"')",
            false => "UPDATE migrations SET data = json_set(data, '$.progress.current_stage', 'namespace_setup')",
        };
        tx.run(stage, vec![]).await?;
        for groups in ["DELETE FROM batch_groups", "DELETE FROM batch_group_members"] {
            tx.run(groups, vec![]).await?;
        }
        let last = "DELETE FROM objects WHERE object_id = (SELECT MAX(object_id) FROM objects WHERE namespace_id = $1)";
        tx.run(last, args![namespace]).await
    }));
    assert_eq!(done.await.unwrap(), 1);
}

/// As [`library`], of pictures, beside the first one; answers namespace and bucket.
async fn bad_pictures(server: &Server) -> (String, String) {
    let namespace = server.namespace("bad pictures").await;
    let schema = json!({"properties": {"title": {"type": "string"}, "image": {"type": "image"}}});
    let bucket = json!({"bucket_name": "files", "bucket_schema": schema});
    let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket);
    let bucket = bucket.await.ok()["bucket_id"].as_str().unwrap().to_owned();
    let collection = json!({"collection_name": "documents", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "image_extractor", "version": "v1"}});
    let made = server.call_in(&namespace, "POST", "/v1/collections", collection);
    made.await.ok();
    (namespace, bucket)
}

both! {
    async fn a_namespace_is_extracted_anew_from_its_objects(server) {
        let (source, bucket, collection) = library(&server, "text_extractor", "text").await;
        texts(&server, &source, &bucket).await;
        process(&server, &source, &bucket).await;
        let search = json!({
            "retriever_name": "finder", "collection_identifiers": [collection],
            "input_schema": {"query": {"type": "text", "required": true}},
            "stages": [{"stage_name": "search", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{
                    "feature_uri": "loupe://text_extractor@v1/all_minilm_l6_v2_v1",
                    "query": {"input_mode": "text", "value": "{{INPUT.query}}"}, "top_k": 5,
                }],
                "final_top_k": 1,
            }}}],
        });
        server.call_in(&source, "POST", "/v1/retrievers", search).await.ok();
        // What callers wrote comes as it is.
        let notes = json!({"collection_name": "notes", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        server.call_in(&source, "POST", "/v1/collections", notes).await.ok();
        server.call_in(&source, "POST", "/v1/collections/notes/documents", json!({"title": "mine"})).await.ok();

        let mut config = anew(&source, sentences());
        config["batch_options"] = json!({"batch_size": 1});
        let checked = validated(&server, &config).await["validation_result"].clone();
        assert_eq!((&checked["valid"], &checked["warnings"]), (&json!(true), &json!([])), "{checked:#}");
        let coming = &checked["estimated_resources"];
        assert_eq!((&coming["objects"], &coming["documents"]), (&json!(2), &json!(1)));
        let done = migrated(&server, config).await;
        assert_eq!((&done["status"], &done["progress"]["overall_progress_percent"]), (&json!("completed"), &json!(100.0)), "{done:#}");
        assert_eq!(items(&done), [[3, 3, 0], [2, 2, 0], [2, 2, 0], [1, 1, 0]], "{done:#}");
        let stages: Vec<&Value> = done["progress"]["stages"].as_array().unwrap().iter().map(|one| &one["stage"]).collect();
        assert_eq!(stages, ["namespace_setup", "batch_creation", "batch_processing", "finalization"]);
        let target = target(&done);
        let found = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        assert_eq!((&found["namespace_ready"], &found["clone_status"]), (&json!(true), &json!("ready")), "{found:#}");
        let batches = list(&server, target, "/v1/batches/list").await;
        assert!(batches.len() == 2 && batches.iter().all(|one| one["status"] == "COMPLETED"), "{batches:#?}");

        // The source has one document of each text, what was made of it one of each sentence.
        let count = async |namespace: &str, collection: &str| {
            list(&server, namespace, &format!("/v1/collections/{collection}/documents/list")).await.len()
        };
        assert_eq!((count(&source, "documents").await, count(target, "documents").await, count(target, "notes").await), (2, 4, 1));
        let made = server.call_in(target, "GET", "/v1/collections/documents", Value::Null).await.ok();
        let parameters = &made["feature_extractor"]["parameters"];
        assert_eq!((&parameters["split_by"], &parameters["chunk_size"]), (&json!("sentences"), &json!(1)));
        let before = server.call_in(&source, "GET", "/v1/collections/documents", Value::Null).await.ok();
        assert_ne!(before["feature_extractor"]["parameters"]["split_by"], "sentences");

        // It stands by itself.
        let files = server.files(&format!("{target}/objects"));
        assert_eq!(files.len(), 2, "{files:#?}");
        let gone = server.call("DELETE", &format!("/v1/namespaces/{source}"), Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        assert_eq!(server.files(&format!("{target}/objects")), files);
        for (query, text) in [("baking in the oven", "Bake the dough"), ("how valleys are made", "It carves valleys")] {
            let answer = server.call_in(target, "POST", "/v1/retrievers/finder/execute", json!({"inputs": {"query": query}})).await.ok();
            let found = answer["documents"][0]["text"].as_str().unwrap_or_default();
            assert!(found.starts_with(text), "{query}: {answer:#}");
        }
        let home = list(&server, target, "/v1/buckets/list").await;
        let again = process(&server, target, home[0]["bucket_id"].as_str().unwrap()).await;
        assert_eq!(again["progress"]["objects_skipped"], 2, "{again:#}");
    }

    async fn vectors_of_the_objects_are_indexed_where_the_extractor_is_told_to(server) {
        let source = server.namespace("vectors").await;
        let bucket = json!({"bucket_name": "points", "bucket_schema": {"properties": {"title": {"type": "string"}, "v": {"type": "array"}}}});
        let bucket = server.call_in(&source, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].clone();
        let points = json!({"collection_name": "points", "source": {"type": "bucket", "bucket_ids": [bucket]}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1", "include_all_source_fields": true,
            "parameters": {"vector_fields": [{"field": "v", "name": "first", "dimensions": 3}]}}});
        server.call_in(&source, "POST", "/v1/collections", points).await.ok();
        let path = format!("/v1/buckets/{}/objects", bucket.as_str().unwrap());
        for (title, v) in [("east", [1.0, 0.0, 0.0]), ("north", [0.0, 1.0, 0.0])] {
            server.call_in(&source, "POST", &path, json!({"title": title, "v": v})).await.ok();
        }
        let near = json!({"retriever_name": "near", "collection_identifiers": ["points"], "input_schema": {}, "stages": [{
            "stage_name": "near", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "first", "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 1}], "final_top_k": 1}}}]});
        server.call_in(&source, "POST", "/v1/retrievers", near).await.ok();
        let told = json!([{"feature_extractor_name": "passthrough_extractor",
            "parameters": {"vector_fields": [{"field": "v", "name": "second", "dimensions": 3}]}}]);
        let mut config = anew(&source, told);
        // The index that the retriever searches will be no more.
        let checked = validated(&server, &config).await["validation_result"].clone();
        assert_eq!((&checked["valid"], codes(&checked["warnings"])), (&json!(true), vec!["feature_lost"]), "{checked:#}");
        let warning = &checked["warnings"][0];
        assert!(warning["message"].as_str().unwrap().contains("(near) searches by first") && warning["resource_type"] == "retriever", "{warning:#}");
        config["retriever_options"] = json!({"validate_references": false});
        let checked = validated(&server, &config).await;
        assert_eq!(checked["validation_result"]["warnings"], json!([]));
        let done = migrated(&server, config).await;
        assert_eq!(done["status"], "completed", "{done:#}");
        let vector = json!({"input_mode": "vector", "vector": [0.1, 1.0, 0.0]});
        let found = server.call_in(target(&done), "POST", "/v1/features/search", json!({"feature_uri": "second", "query": vector, "top_k": 1})).await.ok();
        assert_eq!(found["results"][0]["title"], "north", "{found:#}");
    }

    async fn objects_that_fail_are_tried_once_more_and_counted(server) {
        let (source, bucket, _) = library(&server, "image_extractor", "image").await;
        pictures(&server, &source, &bucket, &[DOT, BROKEN]).await;
        let done = migrated(&server, anew(&source, Value::Null)).await;
        assert_eq!(done["status"], "completed", "{done:#}");
        assert_eq!(items(&done), [[2, 2, 0], [1, 1, 0], [2, 1, 1], [1, 1, 0]], "{done:#}");
        for told in [&done["error_message"], &done["progress"]["stages"][2]["error_message"]] {
            assert!(told.as_str().unwrap_or_default().starts_with("1 of 2 objects failed"), "{done:#}");
        }
        let batches = list(&server, target(&done), "/v1/batches/list").await;
        assert_eq!(done["additional_data"]["retried_batches"], json!([batches[0]["batch_id"]]));

        // All of them: the migration fails.
        let (source, bucket) = bad_pictures(&server).await;
        pictures(&server, &source, &bucket, &[BROKEN]).await;
        let mut config = anew(&source, Value::Null);
        config["target_namespace_name"] = json!("worse");
        config["batch_options"] = json!({"retry_failed": false});
        let failed = migrated(&server, config).await;
        assert_eq!(failed["status"], "failed", "{failed:#}");
        assert!(failed["error_message"].as_str().unwrap().starts_with("1 of 1 objects failed"), "{failed:#}");
        assert!(failed["additional_data"]["retried_batches"].is_null(), "{failed:#}");
        let found = server.call("GET", &format!("/v1/namespaces/{}", target(&failed)), Value::Null).await.ok();
        assert_eq!((&found["namespace_ready"], &found["clone_status"]), (&json!(false), &json!("failed")), "{found:#}");
    }

    async fn what_came_before_a_worker_died_does_not_come_twice(server) {
        // Nobody works but the test.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (source, bucket, _) = library(&server, "text_extractor", "text").await;
        texts(&server, &source, &bucket).await;
        let (path, task) = begun(&server, anew(&source, sentences())).await;
        let claim = claim(&server, &task).await;
        let run = async || v1::migrations::run(&server.app, &claim).await;
        run().await.unwrap();
        let migration = server.call("GET", &path, Value::Null).await.ok();
        let target = target(&migration);
        let home = list(&server, target, "/v1/buckets/list").await[0]["bucket_id"].as_str().unwrap().to_owned();
        let ids = async || {
            let found = list(&server, target, &format!("/v1/buckets/{home}/objects/list")).await;
            found.iter().map(|one| one["object_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let told = async || {
            let feed = format!("/v1/events?limit=100&namespace_id={target}&event_type=object.created");
            server.call("GET", &feed, Value::Null).await.ok()["results"].as_array().unwrap().len()
        };
        let before = ids().await;
        assert_eq!((before.len(), told().await), (2, 2));
        batched(&server, target, 1).await;
        forgets_what_it_did(&server, target).await;
        assert_eq!(ids().await.len(), 1);
        run().await.unwrap();
        assert_eq!((ids().await, told().await), (before, 3));
        // Once more, it only looks.
        run().await.unwrap();
        assert_eq!(told().await, 3);
        let waiting = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!(waiting["status"], "in_progress", "{waiting:#}");
    }

    async fn what_is_canceled_takes_its_batches_with_it(server) {
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (source, bucket, _) = library(&server, "text_extractor", "text").await;
        texts(&server, &source, &bucket).await;
        let mut config = anew(&source, sentences());
        config["batch_options"] = json!({"batch_size": 1});
        let (path, task) = begun(&server, config).await;
        let claim = claim(&server, &task).await;
        v1::migrations::run(&server.app, &claim).await.unwrap();
        let migration = server.call("GET", &path, Value::Null).await.ok();
        let target = target(&migration);
        batched(&server, target, 2).await;
        server.call("POST", &format!("{path}/cancel"), json!({"reason": "not wanted"})).await.ok();
        let batches = list(&server, target, "/v1/batches/list").await;
        assert!(batches.len() == 2 && batches.iter().all(|one| one["status"] == "CANCELED"), "{batches:#?}");
        // The task finds that it is not wanted; it has no lease, so it cannot end itself.
        v1::migrations::run(&server.app, &claim).await.unwrap_err();
        let found = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        assert_eq!((&found["clone_status"], &found["clone_error"]), (&json!("failed"), &json!("the migration was canceled")), "{found:#}");
        let stopped = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&stopped["status"], &stopped["error_message"]), (&json!("cancelled"), &json!("not wanted")), "{stopped:#}");
    }

    async fn what_cannot_be_extracted_anew_is_told(server) {
        let (source, _, _) = library(&server, "text_extractor", "text").await;
        let of = |name: &str, parameters: Value| json!([{"feature_extractor_name": name, "parameters": parameters}]);
        let said = async |config: &Value, list: &str| {
            let checked = validated(&server, config).await["validation_result"][list].clone();
            codes(&checked).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let mut elsewhere = anew(&source, Value::Null);
        elsewhere["target_namespace_id"] = json!(source);
        let one = of("text_extractor", Value::Null)[0].clone();
        let twice = json!([one, one]);
        for (config, code) in [
            (anew(&source, of("no_extractor", Value::Null)), "unknown_extractor"),
            (anew(&source, twice), "named_twice"),
            (anew(&source, of("text_extractor", json!({"chunk_size": 0}))), "invalid_extractor"),
            (anew(&source, of("text_extractor", json!({"custom_headers": {"a": "b"}}))), "invalid_extractor"),
            (anew(&source, json!([{"feature_extractor_name": "text_extractor", "version": "v9"}])), "invalid_extractor"),
            (elsewhere, "not_enabled"),
        ] {
            assert_eq!(said(&config, "errors").await, [code], "{config}");
        }
        assert_eq!(said(&anew(&source, of("image_extractor", Value::Null)), "warnings").await, ["no_effect"]);
        let (written, _) = retriever(&server, "written").await;
        let named = anew(&written, of("passthrough_extractor", json!({})));
        assert_eq!(said(&named, "errors").await, ["no_objects"]);
        let draft = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": named, "start_immediately": true})).await.ok();
        assert_eq!(draft["status"], "draft", "{draft:#}");
    }
}
