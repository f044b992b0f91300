//! What a collection is for at the moment, and its schema brought up to its documents.

use loupe_engine::store::{Reach, WithVectors};
use loupe_server::{
    args,
    db::Arg,
    v1::collections::{self, COLLECTIONS},
};
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
    stages,
};

const THINGS: &str = "/v1/collections/things";

async fn change(server: &Server, namespace: &str, state: &str) -> Value {
    let body = json!({"lifecycle_state": state, "async_transition": false});
    let path = format!("{THINGS}/lifecycle");
    let told = server.call_in(namespace, "PATCH", &path, body).await.ok();
    assert_eq!(told["lifecycle_state"], state, "{told:#}");
    assert!(told.get("task_id").is_none(), "{told:#}");
    told
}

async fn search(server: &Server, namespace: &str, retriever: &str) -> Value {
    let path = format!("/v1/retrievers/{retriever}/execute");
    let body = json!({"inputs": {}, "skip_cache": true});
    server.call_in(namespace, "POST", &path, body).await.ok()
}

fn found(answer: &Value) -> usize {
    answer["documents"].as_array().unwrap().len()
}

async fn filled(server: &Server) -> (String, String) {
    let (namespace, retriever) = crate::harness::retriever(server, "lifecycle").await;
    for number in 0..3 {
        let vectors = json!({"own": [1.0, number, 0.0]});
        let body = json!({"title": format!("thing {number}"), "vectors": vectors});
        let path = format!("{THINGS}/documents");
        server.call_in(&namespace, "POST", &path, body).await.ok();
    }
    (namespace, retriever)
}

both! {
    async fn a_cold_collection_is_searched_and_gets_nothing(server) {
        let (namespace, retriever) = filled(&server).await;
        let told = server.call_in(&namespace, "GET", &format!("{THINGS}/lifecycle"), Value::Null).await.ok();
        assert_eq!((&told["lifecycle_state"], &told["vector_document_count"]), (&json!("active"), &json!(3)), "{told:#}");
        let told = change(&server, &namespace, "cold").await;
        assert!(told["last_transitioned_at"].is_string() && told["warning"].is_string(), "{told:#}");
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 3);
        let list = server.call_in(&namespace, "GET", &format!("{THINGS}/documents"), Value::Null).await.ok();
        let document = list["results"][0]["document_id"].as_str().unwrap().to_owned();
        for (method, path, body) in [
            ("POST", format!("{THINGS}/documents"), json!({"title": "new"})),
            ("PATCH", format!("{THINGS}/documents/{document}"), json!({"title": "changed"})),
            ("DELETE", format!("{THINGS}/documents/{document}"), Value::Null),
        ] {
            let refused = server.call_in(&namespace, method, &path, body).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "collection_not_active");
        }
        change(&server, &namespace, "active").await;
        server.call_in(&namespace, "POST", &format!("{THINGS}/documents"), json!({"title": "new", "vectors": {"own": [0.0, 0.0, 1.0]}})).await.ok();
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 4);
        assert_eq!(server.call_in(&namespace, "PATCH", &format!("{THINGS}/lifecycle"), json!({"lifecycle_state": "lukewarm"})).await.status, 422);
        server.call_in(&namespace, "GET", "/v1/collections/nowhere/lifecycle", Value::Null).await.error(404, "NotFoundError");
    }

    async fn an_archived_collection_lies_in_a_file_until_it_is_brought_back(server) {
        let (namespace, retriever) = filled(&server).await;
        let told = change(&server, &namespace, "archived").await;
        assert_eq!((&told["vector_document_count"], &told["s3_vector_count"]), (&json!(0), &json!(3)), "{told:#}");
        let file = told["s3_vector_index"].as_str().unwrap().to_owned();
        assert_eq!(server.files(&file), std::slice::from_ref(&file));
        let shown = server.call_in(&namespace, "GET", THINGS, Value::Null).await.ok();
        assert_eq!((&shown["lifecycle_state"], &shown["document_count"]), (&json!("archived"), &json!(3)));
        let answer = search(&server, &namespace, &retriever).await;
        assert_eq!(found(&answer), 0);
        assert!(answer["warnings"][0].as_str().unwrap().contains("archived"), "{answer:#}");
        for path in [format!("{THINGS}/documents"), format!("{THINGS}/documents/doc_1")] {
            let refused = server.call_in(&namespace, "GET", &path, Value::Null).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "collection_archived");
        }
        let clone = json!({"collection_name": "things again"});
        server.call_in(&namespace, "POST", &format!("{THINGS}/clone"), clone).await.error(409, "ConflictError");

        // What was written through the API does not come back by itself, and a snapshot holds it.
        let server = server.restart().await;
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 0);
        let snapshots = format!("/v1/namespaces/{namespace}/snapshots");
        let taken = server.call("POST", &snapshots, json!({})).await.ok();
        server.task_end(taken["task_id"].as_str().unwrap()).await;
        let snapshot = format!("{snapshots}/{}", taken["snapshot_id"].as_str().unwrap());
        let restored = server.call("POST", &format!("{snapshot}/restore"), json!({"target_namespace_name": "before"})).await.ok();
        server.task_end(restored["task_id"].as_str().unwrap()).await;
        let other = restored["target_namespace_id"].as_str().unwrap();
        let shown = server.call_in(other, "GET", THINGS, Value::Null).await.ok();
        assert_eq!((&shown["lifecycle_state"], &shown["document_count"]), (&json!("active"), &json!(3)), "{shown:#}");

        // Frozen is archived, and not to be deleted.
        change(&server, &namespace, "frozen").await;
        let refused = server.call_in(&namespace, "DELETE", THINGS, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "collection_frozen");
        let told = change(&server, &namespace, "cold").await;
        assert_eq!((&told["vector_document_count"], told.get("s3_vector_index")), (&json!(3), None), "{told:#}");
        assert!(server.files(&file).is_empty());
        let near = json!({"retriever_name": "near", "collection_identifiers": ["things"], "input_schema": {}, "stages": [
            {"stage_name": "near", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
                "searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 2.0, 0.0]}, "top_k": 1}], "final_top_k": 1}}}]});
        let near = server.call_in(&namespace, "POST", "/v1/retrievers", near).await.ok();
        let answer = search(&server, &namespace, near["retriever_id"].as_str().unwrap()).await;
        assert_eq!(answer["documents"][0]["title"], "thing 2", "{answer:#}");
        change(&server, &namespace, "active").await;
        change(&server, &namespace, "archived").await;
        server.call_in(&namespace, "DELETE", THINGS, Value::Null).await.ok();
        server.files_become(&file, 0).await;
    }

    async fn what_is_on_its_way_into_its_file_is_out_of_reach_and_moved_once(server) {
        let (namespace, retriever) = filled(&server).await;
        let listed = server.call_in(&namespace, "GET", &format!("{THINGS}/documents"), Value::Null).await.ok();
        let document = listed["results"][0]["document_id"].as_str().unwrap().to_owned();
        // Nobody works: the move stays where it is.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let path = format!("{THINGS}/lifecycle");
        let told = server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "archived"})).await.ok();
        let task = told["task_id"].as_str().unwrap().to_owned();
        assert_eq!(told["vector_document_count"], 3, "{told:#}");
        for (method, path, body, code) in [
            ("PATCH", path.clone(), json!({"lifecycle_state": "active"}), "lifecycle_transition_running"),
            ("DELETE", THINGS.to_owned(), Value::Null, "lifecycle_transition_running"),
            ("POST", format!("/v1/namespaces/{namespace}/snapshots"), json!({}), "lifecycle_transition_running"),
            ("POST", format!("{THINGS}/documents"), json!({"title": "late"}), "collection_not_active"),
            ("POST", format!("{THINGS}/sync-schema"), json!({}), "collection_archived"),
            ("POST", format!("{THINGS}/documents/distinct"), json!({"field": "title"}), "collection_archived"),
            ("POST", format!("{THINGS}/documents/aggregate"), json!({"aggregations": [{"function": "count", "alias": "n"}]}), "collection_archived"),
            ("POST", "/v1/documents/list".to_owned(), json!({"collection_ids": [told["collection_id"]]}), "collection_archived"),
        ] {
            let refused = server.call_in(&namespace, method, &path, body).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], code, "{method} {path}");
        }
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 0);
        let anywhere = server.call_in(&namespace, "POST", "/v1/documents/list", json!({})).await.ok();
        assert_eq!(anywhere["results"], json!([]), "{anywhere:#}");
        server.call_in(&namespace, "GET", &format!("/v1/documents/{document}"), Value::Null).await.error(404, "NotFoundError");
        let typed = server.call_in(&namespace, "GET", "/v1/retrievers/typeahead?q=thing", Value::Null).await.ok();
        assert_eq!(typed["values"], json!([]), "{typed:#}");

        let server = server.restart_with(|config| config.jobs.workers = 2).await;
        assert_eq!(server.task_end(&task).await["status"], "COMPLETED");
        let told = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&told["vector_document_count"], &told["s3_vector_count"]), (&json!(0), &json!(3)), "{told:#}");
        // Its words are in the file as they were, for what makes documents may know some that no field has.
        let file = told["s3_vector_index"].as_str().unwrap();
        let text = std::fs::read_to_string(server.folder.path().join("data/blobs").join(file)).unwrap();
        let words: Vec<Value> = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["keywords"].clone()).collect();
        assert!(words.len() == 3 && words.iter().all(|words| words.as_str().is_some_and(|words| words.contains("thing"))), "{words:?}");
        let list = format!("{THINGS}/documents/list");
        server.call_in(&namespace, "POST", &list, json!({})).await.error(409, "ConflictError");
        change(&server, &namespace, "active").await;
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 3);
    }

    async fn nothing_is_put_away_while_tasks_read_it(server) {
        let (namespace, _) = filled(&server).await;
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let path = format!("{THINGS}/lifecycle");
        let snapshots = format!("/v1/namespaces/{namespace}/snapshots");
        let clone = json!({"collection_name": "copies"});
        let reading = [(format!("{THINGS}/clone"), clone), (snapshots, json!({}))];
        for (reader, body) in reading {
            server.call_in(&namespace, "POST", &reader, body).await.ok();
            let refused = server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "archived"})).await.error(409, "ConflictError");
            assert_eq!(refused["error"]["code"], "collection_busy");
            // Nothing moves: it may turn cold, and back.
            server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "cold"})).await.ok();
            server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "active"})).await.ok();
            let done = "UPDATE tasks SET status = 'COMPLETED' WHERE status = 'QUEUED'";
            server.app.db().write(move |tx| Box::pin(async move { tx.run(done, vec![]).await })).await.unwrap();
        }
        server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "archived"})).await.ok();
    }

    async fn what_was_journalled_before_the_move_is_in_the_file(server) {
        let (namespace, retriever) = filled(&server).await;
        let listed = server.call_in(&namespace, "GET", &format!("{THINGS}/documents"), Value::Null).await.ok();
        let document = &listed["results"][0];
        // Acknowledged by a process that died before it applied it.
        let entry = json!({
            "operation": "delete", "namespace_id": namespace, "collection_id": document["collection_id"],
            "document_ids": [document["document_id"]],
        });
        let insert = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
        let place = (namespace.clone(), document["collection_id"].as_str().unwrap().to_owned());
        let seq = server.app.next_journal_seq();
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(insert, args![seq, place.0, place.1, "delete", 1_i64, Arg::json(&entry)]).await
        })).await.unwrap();
        let told = change(&server, &namespace, "archived").await;
        assert_eq!(told["s3_vector_count"], 2, "{told:#}");
        change(&server, &namespace, "active").await;
        assert_eq!(found(&search(&server, &namespace, &retriever).await), 2);
    }

    async fn what_a_dead_process_journalled_comes_behind_nothing_newer(server) {
        let (namespace, _) = filled(&server).await;
        let documents = format!("{THINGS}/documents");
        let listed = server.call_in(&namespace, "GET", &documents, Value::Null).await.ok();
        let [first, other] = [0, 1].map(|number| listed["results"][number].clone());
        let ids = [&first, &other].map(|one| one["document_id"].as_str().unwrap().to_owned());
        let collection = COLLECTIONS.find(server.app.db(), &namespace, "things").await.unwrap();
        let spec = collections::spec(&server.app, &namespace, &collection);
        let reach = Reach { namespace_id: namespace.clone(), collection_ids: vec![collection.id.clone()], principal: None };
        let mut left = server.app.store().get(&reach, &ids, WithVectors::Yes).await.unwrap();
        left.iter_mut().for_each(|one| drop(one.payload.insert("title".into(), json!("left"))));
        let entry = json!({"operation": "upsert", "collection": spec, "documents": left});
        let insert = "INSERT INTO document_journal (seq, namespace_id, collection_id, operation, created_at, data) VALUES ($1, $2, $3, $4, $5, $6)";
        let place = (namespace.clone(), first["collection_id"].as_str().unwrap().to_owned());
        let (seq, now) = (server.app.next_journal_seq(), server.app.clock().micros());
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(insert, args![seq, place.0, place.1, "upsert", now, Arg::json(&entry)]).await
        })).await.unwrap();
        // Another process writes since, and has it in the document store before anybody finds what was left.
        server.call_in(&namespace, "PATCH", &format!("{documents}/{}", ids[0]), json!({"title": "newer"})).await.ok();
        loupe_server::v1::documents::trim(&server.app).await.unwrap();
        let server = server.restart().await;
        let kept = server.call_in(&namespace, "GET", &format!("{documents}/{}", ids[0]), Value::Null).await;
        assert_eq!(kept.ok()["title"], "newer");
        let written = server.call_in(&namespace, "GET", &format!("{documents}/{}", ids[1]), Value::Null).await;
        assert_eq!(written.ok()["title"], "left");
        loupe_server::v1::documents::trim(&server.app).await.unwrap();
        let left = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM document_journal", vec![]).await.unwrap();
        assert_eq!(left, 0);
    }

    async fn objects_that_go_while_a_collection_is_away_stay_gone(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let mut ids = Vec::new();
        for title in ["kept", "removed", "shelved"] {
            let blob = json!({"property": "text", "type": "text", "data": format!("what is {title}")});
            ids.push(object(&server, &namespace, &bucket, title, blob).await);
        }
        process(&server, &namespace, &bucket).await;
        let path = format!("/v1/collections/{collection}/lifecycle");
        let away = json!({"lifecycle_state": "archived", "async_transition": false});
        server.call_in(&namespace, "PATCH", &path, away).await.ok();
        let objects = format!("/v1/buckets/{bucket}/objects");
        let removed = server.call_in(&namespace, "DELETE", &format!("{objects}/{}", ids[1]), Value::Null).await;
        assert_eq!(removed.status, 204);
        let shelve = json!({"object_ids": [ids[2]], "reason": "a complaint"});
        server.call_in(&namespace, "POST", &format!("{objects}/bulk-soft-delete"), shelve).await.ok();
        let noted = async || server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM away_removals", vec![]).await.unwrap();
        let start = std::time::Instant::now();
        while noted().await < 2 {
            assert!(start.elapsed().as_secs() < 180, "the removals are not noted");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        // A snapshot of the file has nothing of them either.
        let snapshots = format!("/v1/namespaces/{namespace}/snapshots");
        let taken = server.call("POST", &snapshots, json!({})).await.ok();
        server.task_end(taken["task_id"].as_str().unwrap()).await;
        let restore = format!("{snapshots}/{}/restore", taken["snapshot_id"].as_str().unwrap());
        let restored = server.call("POST", &restore, json!({"target_namespace_name": "before"})).await.ok();
        server.task_end(restored["task_id"].as_str().unwrap()).await;
        let other = restored["target_namespace_id"].as_str().unwrap();
        let list = server.call_in(other, "GET", "/v1/collections/documents/documents", Value::Null).await.ok();
        let titles: Vec<&Value> = list["results"].as_array().unwrap().iter().map(|one| &one["title"]).collect();
        assert_eq!(titles, ["kept"], "{list:#}");
        let back = json!({"lifecycle_state": "active", "async_transition": false});
        server.call_in(&namespace, "PATCH", &path, back).await.ok();
        let list = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}/documents"), Value::Null).await.ok();
        let titles: Vec<&Value> = list["results"].as_array().unwrap().iter().map(|one| &one["title"]).collect();
        assert_eq!(titles, ["kept"], "{list:#}");
        assert_eq!(noted().await, 0);
    }

    async fn batches_pass_over_what_is_not_active(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        object(&server, &namespace, &bucket, "one", json!({"property": "text", "type": "text", "data": "a few words"})).await;
        let path = format!("/v1/collections/{collection}/lifecycle");
        server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "cold"})).await.ok();
        let trigger = format!("/v1/collections/{collection}/trigger");
        server.call_in(&namespace, "POST", &trigger, json!({})).await.error(409, "ConflictError");
        let batches = format!("/v1/buckets/{bucket}/batches");
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let submit = format!("{batches}/{}/submit", draft["batch_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &submit, json!({})).await.error(400, "BadRequestError");
        server.call_in(&namespace, "PATCH", &path, json!({"lifecycle_state": "active"})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(1)), "{batch:#}");
    }

    async fn a_schema_learns_the_fields_of_its_documents(server) {
        let namespace = server.namespace("schemas").await;
        let documents = [json!({"title": "M", "year": 1931}), json!({"title": "Faust", "year": 1926.5, "silent": true})];
        let films = stages::collection(&server, &namespace, "films", &documents).await;
        let over = json!({"collection_name": "over", "source": {"type": "collection", "collection_ids": [films]}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1", "include_all_source_fields": true}});
        let over = server.call_in(&namespace, "POST", "/v1/collections", over).await.ok()["collection_id"].clone();
        let path = format!("/v1/collections/{films}/sync-schema");
        let told = server.call_in(&namespace, "POST", &path, Value::Null).await.ok();
        assert_eq!((&told["previous_version"], &told["schema_version"], &told["documents_sampled"]), (&json!(1), &json!(2), &json!(2)), "{told:#}");
        let mut added: Vec<&str> = told["fields_added"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        added.sort_unstable();
        assert_eq!(added, ["silent", "title", "year"], "{told:#}");
        assert_eq!(told["downstream_collections_updated"], json!([over]));
        let shown = server.call_in(&namespace, "GET", "/v1/collections/films", Value::Null).await.ok();
        let properties = &shown["output_schema"]["properties"];
        assert_eq!((&properties["year"]["type"], &properties["silent"]["type"]), (&json!("number"), &json!("boolean")), "{shown:#}");
        assert!(shown["last_schema_sync"].is_string());
        let shown = server.call_in(&namespace, "GET", "/v1/collections/over", Value::Null).await.ok();
        assert_eq!(shown["input_schema"]["properties"]["title"]["type"], "string", "{shown:#}");
        assert_eq!(shown["output_schema"]["properties"]["title"]["type"], "string", "{shown:#}");

        let again = server.call_in(&namespace, "POST", &path, json!({"sample_size": 1})).await.ok();
        assert_eq!((&again["fields_added"], &again["schema_version"], &again["documents_sampled"]), (&json!([]), &json!(2), &json!(1)), "{again:#}");
        server.call_in(&namespace, "PATCH", "/v1/collections/films", json!({"schema_sync_enabled": false})).await.ok();
        let skipped = server.call_in(&namespace, "POST", &path, json!({})).await.ok();
        assert_eq!((&skipped["skipped"], &skipped["schema_version"]), (&json!(true), &json!(2)), "{skipped:#}");
        assert!(skipped["last_sync"].is_string() && skipped["reason"].is_string());
        let forced = server.call_in(&namespace, "POST", &path, json!({"force": true})).await.ok();
        assert_eq!(forced["documents_sampled"], 2, "{forced:#}");
        server.call_in(&namespace, "POST", &path, json!({"sample_size": 0})).await.invalid(&["body", "sample_size"], "greater_than_equal");
    }
}
