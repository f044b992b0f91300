//! What collections do by themselves: check documents against a schema, run retrievers for them, and be processed by a
//! schedule.

use std::time::{Duration, Instant};

use loupe_server::args;
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
    stages::{collection, stage},
    triggers::executed,
};

/// As many copies of a trigger as leave no room beside it.
const TRIGGERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199) INSERT INTO triggers (trigger_id, org_id, namespace_id, action_type, trigger_type, status, resource_id, next_at, created_at, updated_at, data) SELECT 'trg_copy_' || CAST(i AS TEXT), org_id, namespace_id, action_type, trigger_type, status, resource_id, next_at, created_at, updated_at, data FROM triggers, n WHERE trigger_id = $1";

async fn note(server: &Server, namespace: &str, bucket: &str, title: &str) {
    let text = json!({"property": "text", "type": "text", "data": title});
    object(server, namespace, bucket, title, text).await;
}

/// The documents of a collection, by their titles.
async fn documents(server: &Server, namespace: &str, collection: &str) -> Vec<Value> {
    let path = format!("/v1/collections/{collection}/documents/list");
    let body = json!({"sort": {"field": "title", "direction": "asc"}, "limit": 100});
    let page = server.call_in(namespace, "POST", &path, body).await.ok();
    page["results"].as_array().unwrap().clone()
}

/// Waits until a collection has so many documents.
async fn filled(server: &Server, namespace: &str, collection: &str, count: usize) {
    let start = Instant::now();
    while documents(server, namespace, collection).await.len() < count {
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "the documents do not come"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The kinds of a code, which a field of the document has.
fn enrichment(path: &str) -> Value {
    json!({
        "retriever_id": "kinds of a code", "input_mappings": [{"input_key": "code", "source": {"source_type": "document_field", "path": path}}],
        "write_back_fields": [{"source_field": "label", "target_field": "kind.first"}, {"source_field": "label", "target_field": "kind.all", "mode": "all_as_array"},
            {"source_field": "label", "target_field": "words", "mode": "concat"}, {"source_field": "none", "target_field": "none"}],
    })
}

/// A collection that such retrievers run for.
fn enriched(enrichments: Value) -> Value {
    json!({"collection_name": "written", "source": {"type": "direct_upsert"}, "retriever_enrichments": enrichments,
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}})
}

/// What cannot be run is refused where it is.
async fn what_cannot_run_is_refused(server: &Server, namespace: &str) {
    let call = async |body: Value| {
        server
            .call_in(namespace, "POST", "/v1/collections", body)
            .await
    };
    let at = |place: &[&str]| {
        [&["body", "retriever_enrichments", "0"][..], place]
            .concat()
            .iter()
            .map(|piece| (*piece).to_owned())
            .collect::<Vec<String>>()
    };
    for (place, kind, member, sent) in [
        (
            at(&["input_mappings", "0", "input_key"]),
            "value_error",
            "/input_mappings/0/input_key",
            json!("cod"),
        ),
        (
            at(&["input_mappings", "0", "source", "path"]),
            "missing",
            "/input_mappings/0/source",
            json!({"source_type": "document_field"}),
        ),
        (
            at(&["input_mappings", "0", "source", "source_type"]),
            "not_enabled",
            "/input_mappings/0/source",
            json!({"source_type": "source_blob"}),
        ),
        (
            at(&["write_back_fields", "1", "target_field"]),
            "value_error",
            "/write_back_fields/1/target_field",
            json!("_internal.lineage"),
        ),
        (
            at(&["write_back_fields", "0", "target_field"]),
            "value_error",
            "/write_back_fields/0/target_field",
            json!("document_id"),
        ),
    ] {
        let mut wrong = enrichment("article.code");
        *wrong.pointer_mut(member).unwrap() = sent;
        let place: Vec<&str> = place.iter().map(String::as_str).collect();
        call(enriched(json!([wrong]))).await.invalid(&place, kind);
    }
    let mut unknown = enrichment("article.code");
    unknown["retriever_id"] = json!("ret_unknown");
    call(enriched(json!([unknown])))
        .await
        .error(404, "NotFoundError");
}

both! {
    async fn documents_are_checked_against_the_schema_of_their_collection(server) {
        let namespace = server.namespace("checked").await;
        let id = collection(&server, &namespace, "checked", &[]).await;
        let path = format!("/v1/collections/{id}");
        let written = format!("{path}/documents");
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        call("PATCH", &path, json!({"schema_validation": "strict"})).await.invalid(&["body", "schema_validation"], "value_error");
        call("PATCH", &path, json!({"document_schema": {"properties": {"year": {"$ref": "#"}}}})).await.invalid(&["body", "document_schema", "properties", "year", "$ref"], "value_error");
        let many: Vec<usize> = (0..257).collect();
        call("PATCH", &path, json!({"document_schema": {"properties": {"year": {"enum": many}}}})).await
            .invalid(&["body", "document_schema", "properties", "year", "enum"], "value_error");
        let schema = json!({"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}, "year": {"type": "integer", "minimum": 1900}}});
        let changed = call("PATCH", &path, json!({"document_schema": schema, "schema_validation": "strict"})).await.ok();
        assert_eq!((&changed["document_schema"], &changed["schema_validation"]), (&schema, &json!("strict")));

        let refused = call("POST", &written, json!({"year": 1800})).await;
        assert_eq!(refused.status, 422, "{:#}", refused.body);
        assert_eq!(refused.body["detail"].as_array().unwrap().len(), 2, "{:#}", refused.body);
        let long = call("POST", &written, json!({"title": "t", "year": "x".repeat(50_000)})).await;
        assert!(long.body.to_string().len() < 2_000, "what is long is told by how it begins");
        long.invalid(&["body", "year"], "int_type");
        call("POST", &written, json!({"year": 1800})).await.invalid(&["body", "title"], "missing");
        call("POST", &written, json!({"year": 1800})).await.invalid(&["body", "year"], "greater_than_equal");
        let mut ids = Vec::new();
        for title in ["a", "b"] {
            let made = call("POST", &written, json!({"title": title, "year": 1984})).await.ok();
            ids.push(made["document_id"].as_str().unwrap().to_owned());
        }
        let one = format!("{written}/{}", ids[0]);
        call("PATCH", &one, json!({"year": "x"})).await.invalid(&["body", "year"], "int_type");
        call("PUT", &one, json!({"year": 1950})).await.invalid(&["body", "title"], "missing");
        let updates = json!({"updates": [{"document_id": ids[0], "update_data": {"year": 2000}}, {"document_id": ids[1], "update_data": {"year": "x"}}]});
        let told = call("POST", &format!("{written}/batch"), updates).await.ok();
        assert_eq!((&told["updated_count"], &told["failed_count"]), (&json!(1), &json!(1)), "{told:#}");
        assert!(told["results"][1]["error"].as_str().unwrap().contains("year: expected integer"), "{told:#}");
        let told = call("PATCH", &format!("{written}/bulk"), json!({"update_data": {"year": false}})).await.ok();
        assert_eq!((&told["updated_count"], &told["status"]), (&json!(0), &json!("COMPLETED_WITH_ERRORS")), "{told:#}");
        assert!(told["message"].as_str().unwrap().starts_with("2 documents stay as they are: the collection's schema: year: expected integer"), "{told:#}");
        let years: Vec<Value> = documents(&server, &namespace, &id).await.iter().map(|one| one["year"].clone()).collect();
        assert_eq!(years, [json!(2000), json!(1984)]);

        // The same is told only, and no more once it is as it should be.
        call("PATCH", &path, json!({"schema_validation": "warn"})).await.ok();
        let made = call("POST", &written, json!({"year": 1})).await.ok();
        assert_eq!(made["_internal"]["schema_warnings"], json!(["title: expected a value", "year: expected at least 1900"]), "{made:#}");
        let one = format!("{written}/{}", made["document_id"].as_str().unwrap());
        let mended = call("PATCH", &one, json!({"title": "c", "year": 1999})).await.ok();
        assert_eq!(mended["_internal"].get("schema_warnings"), None, "{mended:#}");
        call("PATCH", &path, json!({"schema_validation": "off"})).await.ok();
        let made = call("POST", &written, json!({"year": "x"})).await.ok();
        assert_eq!(made["_internal"].get("schema_warnings"), None, "{made:#}");
        // Asked for, it is told all the same.
        let checked = call("POST", &format!("{written}/schema/validate"), json!({"year": "x"})).await.ok();
        assert_eq!((&checked["valid"], checked["errors"].as_array().unwrap().len()), (&json!(false), 2), "{checked:#}");

        // A clone has the schema, too.
        call("PATCH", &path, json!({"schema_validation": "strict", "schema_sync_enabled": false})).await.ok();
        call("POST", &format!("{path}/clone"), json!({"collection_name": "checked_too"})).await.ok();
        let clone = call("GET", "/v1/collections/checked_too", Value::Null).await.ok();
        assert_eq!((&clone["document_schema"], &clone["schema_validation"], &clone["schema_sync_enabled"]), (&schema, &json!("strict"), &json!(false)));
    }

    async fn documents_of_own_vectors_are_checked_as_well(server) {
        let body = json!({"namespace_id": "checked-vectors", "vector_configs": [{"name": "plot", "dimension": 3}]});
        server.call("POST", "/v1/namespaces/standalone", body).await.ok();
        let change = async |body: Value| server.call_in("checked-vectors", "PATCH", "/v1/collections/documents", body).await.ok();
        change(json!({"document_schema": {"properties": {"year": {"type": "integer"}}}, "schema_validation": "strict"})).await;
        let upsert = async |year: Value| {
            let documents = json!([{"document_id": "one", "vectors": {"plot": [1, 0, 0]}, "payload": {"year": year}}]);
            server.call("POST", "/v1/namespaces/checked-vectors/documents/upsert", json!({"documents": documents})).await
        };
        upsert(json!("x")).await.invalid(&["body", "documents", "0", "payload", "year"], "int_type");
        assert_eq!(upsert(json!(1984)).await.ok().get("warnings"), None);
        change(json!({"schema_validation": "warn"})).await;
        assert_eq!(upsert(json!("x")).await.ok()["warnings"], json!(["one: year: expected integer"]));
        let found = server.call("GET", "/v1/namespaces/checked-vectors/documents/one", Value::Null).await.ok();
        assert_eq!((&found["year"], &found["_internal"]["schema_warnings"]), (&json!("x"), &json!(["year: expected integer"])), "{found:#}");
    }

    async fn objects_whose_documents_break_the_schema_fail_with_the_reason(server) {
        let (namespace, bucket, id) = library(&server, "passthrough_extractor", "text").await;
        let path = format!("/v1/collections/{id}");
        let change = async |body: Value| server.call_in(&namespace, "PATCH", &path, body).await.ok();
        change(json!({"document_schema": {"properties": {"title": {"type": "string", "maxLength": 5}}}, "schema_validation": "strict"})).await;
        for title in ["brief", "much too long"] {
            note(&server, &namespace, &bucket, title).await;
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!((&batch["status"], &batch["failed_object_count"]), (&json!("COMPLETED_WITH_ERRORS"), &json!(1)), "{batch:#}");
        let failed = format!("/v1/buckets/{bucket}/batches/{}/failed-documents", batch["batch_id"].as_str().unwrap());
        let failed = server.call_in(&namespace, "GET", &failed, Value::Null).await.ok();
        let failure = &failed["results"][0];
        assert_eq!(failure["error_type"], "permanent", "{failure:#}");
        assert!(failure["error"].as_str().unwrap().contains("title: expected at most 5 characters"), "{failure:#}");
        assert_eq!(documents(&server, &namespace, &id).await.len(), 1);

        change(json!({"schema_validation": "warn"})).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let held = documents(&server, &namespace, &id).await;
        let warned: Vec<bool> = held.iter().map(|one| one["_internal"]["schema_warnings"].is_array()).collect();
        assert_eq!(warned, [false, true], "{held:#?}");
    }

    async fn retrievers_run_for_documents_as_they_come(server) {
        let (namespace, bucket, filled) = library(&server, "passthrough_extractor", "text").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let kinds = [json!({"label": "Fruit", "code": "f", "tax": 7}), json!({"label": "Food", "code": "f"}), json!({"label": "Tools", "code": "t"})];
        let kinds = collection(&server, &namespace, "kinds", &kinds).await;
        let finder = json!({
            "retriever_name": "kinds of a code", "collection_identifiers": [kinds], "input_schema": {"code": {"type": "string", "required": true}},
            "stages": [stage("attribute_filter", json!({"conditions": {"AND": [{"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}]}})),
                stage("sort_attribute", json!({"field": "label", "direction": "desc"}))],
        });
        let finder = call("POST", "/v1/retrievers", finder).await.ok()["retriever_id"].as_str().unwrap().to_owned();
        what_cannot_run_is_refused(&server, &namespace).await;

        let held = call("POST", "/v1/collections", enriched(json!([enrichment("article.code")]))).await.ok();
        assert_eq!(held["retriever_enrichments"][0]["retriever_id"], finder, "names become ids");
        let path = "/v1/collections/written/documents";
        let apple = call("POST", path, json!({"name": "apple", "article": {"code": "f"}})).await.ok();
        assert_eq!((&apple["kind"], &apple["words"], apple.get("none")), (&json!({"first": "Fruit", "all": ["Fruit", "Food"]}), &json!("Fruit Food"), None), "{apple:#}");
        let told = &apple["_internal"]["processing"]["retriever_enrichments"];
        assert_eq!((&told[0]["retriever_id"], &told[0]["enriched_fields"]), (&json!(finder), &json!(["kind.first", "kind.all", "words"])));
        let stone = call("POST", path, json!({"name": "stone"})).await.ok();
        assert_eq!((stone.get("kind"), stone["_internal"].get("processing")), (None, None), "{stone:#}");
        let wrong = call("POST", path, json!({"name": "wrong", "article": {"code": 7}})).await.ok();
        assert!(wrong["_internal"]["processing"]["retriever_enrichments"][0]["error"].is_string(), "{wrong:#}");

        // Documents of batches, those that the filter lets through; switched off, none.
        let mut some = enrichment("title");
        some["scroll_filters"] = json!({"AND": [{"field": "title", "operator": "ne", "value": "t"}]});
        call("PATCH", &format!("/v1/collections/{filled}"), json!({"retriever_enrichments": [some]})).await.ok();
        for title in ["f", "t"] {
            note(&server, &namespace, &bucket, title).await;
        }
        assert_eq!(process(&server, &namespace, &bucket).await["status"], "COMPLETED");
        let found = documents(&server, &namespace, &filled).await;
        assert_eq!((&found[0]["kind"]["first"], found[1].get("kind")), (&json!("Fruit"), None), "{found:#?}");
        let mut off = enrichment("article.code");
        off["enabled"] = json!(false);
        call("PATCH", "/v1/collections/written", json!({"retriever_enrichments": [off]})).await.ok();
        let plain = call("POST", path, json!({"name": "pear", "article": {"code": "f"}})).await.ok();
        assert_eq!(plain.get("kind"), None, "{plain:#}");

        // What is too large is left where it was found.
        let large = json!({"label": "x".repeat(70_000), "code": "l"});
        call("POST", &format!("/v1/collections/{kinds}/documents"), large).await.ok();
        call("PATCH", "/v1/collections/written", json!({"retriever_enrichments": [enrichment("article.code")]})).await.ok();
        let small = call("POST", path, json!({"name": "lead", "article": {"code": "l"}})).await.ok();
        assert_eq!((small.get("kind"), small.get("words")), (None, None), "{:#}", small["_internal"]);

        // A retriever that is gone takes no document with it.
        call("PATCH", "/v1/collections/written", json!({"retriever_enrichments": [enrichment("article.code")]})).await.ok();
        call("DELETE", &format!("/v1/retrievers/{finder}"), Value::Null).await;
        let late = call("POST", path, json!({"name": "plum", "article": {"code": "f"}})).await.ok();
        assert!(late["_internal"]["processing"]["retriever_enrichments"][0]["error"].is_string(), "{late:#}");
        assert_eq!(late.get("kind"), None, "{late:#}");
    }

    async fn a_collection_is_processed_by_its_schedule(server) {
        let (namespace, bucket, id) = library(&server, "passthrough_extractor", "text").await;
        let path = format!("/v1/collections/{id}");
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let every = |seconds: i64| json!({"schedule": {"trigger_type": "interval", "schedule_config": {"interval_seconds": seconds}}});
        call("PATCH", &path, json!({"schedule": {"trigger_type": "often", "schedule_config": {}}})).await.invalid(&["body", "schedule", "trigger_type"], "enum");
        call("PATCH", &path, every(0)).await.invalid(&["body", "schedule", "schedule_config", "interval_seconds"], "value_error");
        collection(&server, &namespace, "written", &[]).await;
        call("PATCH", "/v1/collections/written", every(60)).await.invalid(&["body", "schedule"], "value_error");

        let kept = call("PATCH", &path, every(3_600)).await.ok();
        let first = kept["trigger_id"].as_str().unwrap().to_owned();
        let trigger = call("GET", &format!("/v1/triggers/{first}"), Value::Null).await.ok();
        assert_eq!((&trigger["action_type"], &trigger["action_config"]["collection_id"]), (&json!("collection_trigger"), &json!(id)), "{trigger:#}");
        // A moment at which there is nothing to do is no failure.
        server.app.clock().advance(3_601);
        let passed = executed(&server, &namespace, &first, 1).await;
        assert_eq!((&passed["last_execution_status"], &passed["consecutive_failures"]), (&json!("SKIPPED"), &json!(0)), "{passed:#}");
        // Nor is one at which everything is put away, and it leaves no batch.
        let text = json!({"property": "text", "type": "text", "data": "away"});
        let away = object(&server, &namespace, &bucket, "away", text).await;
        let shelf = format!("/v1/buckets/{bucket}/objects/bulk-soft-delete");
        call("POST", &shelf, json!({"object_ids": [away], "reason": "kept", "lifecycle_state": "archived"})).await.ok();
        let nothing = call("POST", &format!("{path}/trigger"), json!({})).await.error(400, "BadRequestError");
        assert_eq!(nothing["error"]["code"], "nothing_to_process");
        let batches = call("POST", &format!("/v1/buckets/{bucket}/batches/list"), json!({})).await.ok();
        assert_eq!(batches["results"], json!([]), "{batches:#}");
        note(&server, &namespace, &bucket, "one").await;
        server.app.clock().advance(3_601);
        let done = executed(&server, &namespace, &first, 2).await;
        assert_eq!(done["last_execution_status"], "COMPLETED", "{done:#}");
        filled(&server, &namespace, &id, 1).await;

        // The collection says when: the same again changes nothing, another schedule is another trigger.
        call("PATCH", &format!("/v1/triggers/{first}"), json!({"schedule_config": {"interval_seconds": 5}})).await.error(409, "ConflictError");
        assert_eq!(call("PATCH", &path, every(3_600)).await.ok()["trigger_id"], first.as_str());
        let changed = call("PATCH", &path, every(7_200)).await.ok();
        let second = changed["trigger_id"].as_str().unwrap().to_owned();
        let status = async |id: &str| call("GET", &format!("/v1/triggers/{id}"), Value::Null).await.ok()["status"].clone();
        assert_eq!((status(&first).await, status(&second).await), (json!("disabled"), json!("active")));

        // It goes with its trigger, and the trigger with it.
        assert_eq!(call("DELETE", &format!("/v1/triggers/{second}"), Value::Null).await.status, 204);
        let without = call("GET", &path, Value::Null).await.ok();
        assert_eq!((without.get("schedule"), without.get("trigger_id")), (None, None), "{without:#}");
        let third = call("PATCH", &path, every(7_200)).await.ok()["trigger_id"].as_str().unwrap().to_owned();
        assert_eq!(status(&third).await, "active");
        assert_ne!(third, second);
        call("DELETE", &path, Value::Null).await.ok();
        assert_eq!(status(&third).await, "disabled");
    }

    async fn another_schedule_takes_the_room_of_the_one_before(server) {
        let (namespace, bucket, id) = library(&server, "passthrough_extractor", "text").await;
        let change = async |seconds: i64| {
            let body = json!({"schedule": {"trigger_type": "interval", "schedule_config": {"interval_seconds": seconds}}});
            server.call_in(&namespace, "PATCH", &format!("/v1/collections/{id}"), body).await.ok()["trigger_id"].as_str().unwrap().to_owned()
        };
        let first = change(3_600).await;
        let copied = first.clone();
        let copied = server.app.db().write(move |tx| Box::pin(async move { tx.run(TRIGGERS, args![copied]).await }));
        assert_eq!(copied.await.unwrap(), 199);
        let more = json!({"collection_name": "more", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
            "schedule": {"trigger_type": "interval", "schedule_config": {"interval_seconds": 60}}});
        server.call_in(&namespace, "POST", "/v1/collections", more).await.error(409, "ConflictError");
        assert_ne!(change(7_200).await, first);
    }

    async fn a_schedule_is_for_who_may_process_the_collection(server) {
        let (namespace, _, id) = library(&server, "passthrough_extractor", "text").await;
        let scopes = json!([{"resource_type": "collection", "resource_id": id, "operations": ["read_data", "write_data"]}]);
        let body = json!({"name": "writer", "permissions": ["write"], "scopes": scopes});
        let made = server.call("POST", "/v1/organizations/users/owner@localhost/api-keys", body).await.ok();
        let change = async |body: Value| {
            let request = server.request("PATCH", &format!("/v1/collections/{id}")).bearer_auth(made["key"].as_str().unwrap());
            Server::send(request.header("x-namespace", &namespace).json(&body)).await
        };
        change(json!({"description": "of a writer"})).await.ok();
        let schedule = json!({"schedule": {"trigger_type": "interval", "schedule_config": {"interval_seconds": 3_600}}});
        let refused = change(schedule).await.error(403, "ForbiddenError");
        assert_eq!(refused["error"]["code"], "scope_denied");
    }

    async fn a_schedule_and_clusters_change_together(server) {
        let (namespace, _, id) = library(&server, "passthrough_extractor", "text").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let cluster = json!({"cluster_name": "titles", "collection_ids": [id], "cluster_type": "attribute", "attribute_config": {"attributes": ["title"]}});
        call("POST", "/v1/clusters", cluster).await.ok();
        let active = async || call("POST", "/v1/triggers/list", json!({"status": "active"})).await.ok()["total"].clone();
        let path = format!("/v1/collections/{id}");
        for seconds in [60, 120] {
            let sent = json!({"cluster_applications": [{"cluster_id": "titles"}],
                "schedule": {"trigger_type": "interval", "schedule_config": {"interval_seconds": seconds}}});
            call("PATCH", &path, sent).await.ok();
            assert_eq!(active().await, json!(2), "{seconds}");
        }
        call("DELETE", &path, Value::Null).await.ok();
        assert_eq!(active().await, json!(0));
    }

    async fn a_collection_is_made_from_names_of_features(server) {
        let namespace = server.namespace("features").await;
        let make = async |name: &str, more: Value| {
            let mut body = json!({"collection_name": name, "source": {"type": "direct_upsert"}});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.call_in(&namespace, "POST", "/v1/collections", body).await
        };
        let told = server.call("GET", "/v1/collections/features", Value::Null).await.ok();
        let text = told["modalities"][0]["features"].as_array().unwrap().iter()
            .find(|one| one["feature_extractor_name"] == "text_extractor").unwrap().clone();
        let uri = text["feature_uris"][0].as_str().unwrap();
        for (name, features) in [
            ("by_name", json!(["text_extractor"])),
            ("by_id", json!(["text_extractor_v1"])),
            ("by_address", json!([uri, "text_extractor"])),
        ] {
            let made = make(name, json!({"features": features})).await.ok();
            let extractor = &made["feature_extractor"];
            assert_eq!((&extractor["feature_extractor_name"], &extractor["include_all_source_fields"]), (&json!("text_extractor"), &json!(true)), "{made:#}");
            assert_eq!(made["vector_indexes"][0]["feature_uri"], uri, "{made:#}");
        }
        make("several", json!({"features": ["text_extractor", "passthrough_extractor"]})).await.invalid(&["body", "features", "1"], "value_error");
        make("unknown", json!({"features": ["taste"]})).await.invalid(&["body", "features", "0"], "feature_not_found");
        make("other", json!({"features": ["loupe://text_extractor@v1/other"]})).await.invalid(&["body", "features", "0"], "feature_not_found");
        let extractor = json!({"feature_extractor_name": "text_extractor", "version": "v1"});
        make("both", json!({"features": ["text_extractor"], "feature_extractor": extractor})).await.invalid(&["body", "features"], "value_error");
        make("neither", json!({"features": []})).await.invalid(&["body", "feature_extractor"], "missing");
    }

    async fn indexes_are_found_by_their_new_names(server) {
        let (namespace, _) = crate::harness::retriever(&server, "names").await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let path = "/v1/collections/things";
        call("POST", &format!("{path}/documents"), json!({"title": "near", "vectors": {"own": [1.0, 0.0, 0.0]}})).await.ok();
        for (map, member) in [
            (json!({"other": "main"}), "other"), (json!({"own": "own"}), "own"), (json!({"own": "a b"}), "own"), (json!({"own": ""}), "own"),
        ] {
            call("PATCH", path, json!({"index_map": map})).await.invalid(&["body", "index_map", member], "value_error");
        }
        let changed = call("PATCH", path, json!({"index_map": {"own": "main"}})).await.ok();
        assert_eq!(changed["index_map"], json!({"own": "main"}));
        let search = json!({"feature_uri": "main", "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 5});
        let finder = crate::stages::retriever(&server, &namespace, "things", vec![stage("feature_search", json!({"searches": [search], "final_top_k": 5}))]).await;
        let execute = format!("/v1/retrievers/{finder}/execute");
        let found = call("POST", &execute, json!({"inputs": {}})).await.ok();
        assert_eq!(found["documents"][0]["title"], "near", "{found:#}");
        // A clone has the names, too; without them nothing is found by them.
        let cloned = call("POST", &format!("{path}/clone"), json!({"collection_name": "things_too"})).await.ok();
        assert_eq!(cloned["collection"]["index_map"], json!({"own": "main"}), "{cloned:#}");
        let changed = call("PATCH", path, json!({"index_map": {}})).await.ok();
        assert_eq!(changed.get("index_map"), None);
        let lost = call("POST", &execute, json!({"inputs": {}})).await;
        assert!(lost.status == 400 || lost.body["documents"] == json!([]), "{:#}", lost.body);
    }
}
