//! Migrations: checked before they start, watched while they run, and what they leave.

mod extending;
mod extracting;

use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::{Server, other_organization, retriever},
    stages::stage,
    webhooks::Receiver,
};

const MIGRATIONS: &str = "/v1/namespaces/migrations";

fn copy(source: &str, target: &str) -> Value {
    json!({"migration_type": "copy", "source_namespace_id": source, "target_namespace_name": target})
}

/// What is said of a migration before it starts.
async fn validated(server: &Server, config: &Value) -> Value {
    let path = format!("{MIGRATIONS}/validate");
    let config = json!({"config": config});
    server.call("POST", &path, config).await.ok()
}

/// A migration that was started and has ended.
async fn migrated(server: &Server, config: Value) -> Value {
    let body = json!({"config": config, "start_immediately": true});
    let made = server
        .call("POST", &format!("{MIGRATIONS}/"), body)
        .await
        .ok();
    let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
    let begun = server.call("GET", &path, Value::Null).await.ok();
    let task = begun["task_id"].as_str();
    let task = task.unwrap_or_else(|| panic!("it did not start: {begun:#}"));
    server.task_end(task).await;
    server.call("GET", &path, Value::Null).await.ok()
}

/// The codes of what is said there.
fn codes(of: &Value) -> Vec<&str> {
    let said = of.as_array().unwrap().iter();
    said.map(|one| one["error_code"].as_str().unwrap())
        .collect()
}

/// A taxonomy, and the retriever by which it finds its nodes; answers both ids.
async fn kinds(server: &Server, namespace: &str) -> (String, String) {
    let title = stage(
        "attribute_filter",
        json!({"field": "title", "value": "{{INPUT.title}}"}),
    );
    let body = json!({"retriever_name": "by title", "collection_identifiers": ["things"], "stages": [title],
        "input_schema": {"title": {"type": "text", "required": true}}});
    let made = server
        .call_in(namespace, "POST", "/v1/retrievers", body)
        .await
        .ok();
    let finder = made["retriever_id"].as_str().unwrap().to_owned();
    let body = json!({"taxonomy_name": "kinds", "config": {"taxonomy_type": "flat", "retriever_id": finder,
        "input_mappings": [{"input_key": "title", "path": "title"}], "source_collection": {"collection_id": "things"}}});
    let made = server
        .call_in(namespace, "POST", "/v1/taxonomies", body)
        .await
        .ok();
    (made["taxonomy_id"].as_str().unwrap().to_owned(), finder)
}

/// As if somebody canceled every migration at the moment at which documents are written next.
async fn cancels_where_documents_come(server: &Server) {
    let postgres = server.app.db().is_postgres();
    let prepared = server.app.db().write(move |tx| Box::pin(async move {
        if postgres {
            tx.run("CREATE FUNCTION cancels() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE migrations SET data = jsonb_set(data, ''{status}'', ''\"cancelled\"''); RETURN NEW; END'", vec![]).await?;
            tx.run("CREATE TRIGGER canceling AFTER INSERT ON events FOR EACH ROW WHEN (NEW.event_type = 'collection.documents.written') EXECUTE FUNCTION cancels()", vec![]).await
        } else {
            tx.run("CREATE TRIGGER canceling AFTER INSERT ON events WHEN NEW.event_type = 'collection.documents.written' BEGIN UPDATE migrations SET data = json_set(data, '$.status', 'cancelled'); END", vec![]).await
        }
    }));
    prepared.await.unwrap();
}

both! {
    async fn a_namespace_is_migrated_under_watch(server) {
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "A slow river of ice."});
        object(&server, &namespace, &bucket, "Glacier", text).await;
        process(&server, &namespace, &bucket).await;
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"ttl_seconds": 86_400})).await.ok();
        let checked = server.call("POST", &format!("{MIGRATIONS}/validate"), json!({"config": copy(&namespace, "moved")})).await.ok();
        let result = &checked["validation_result"];
        assert_eq!((&result["valid"], &result["estimated_resources"]["documents"]), (&json!(true), &json!(1)), "{result:#}");
        let order = checked["dependency_graph"]["execution_order"].as_array().unwrap();
        assert_eq!(order[0..2], [json!(bucket), json!(collection)]);

        let made = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "moved")})).await.ok();
        assert_eq!(made["status"], "draft");
        let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
        let started = server.call("POST", &format!("{path}/start"), json!({})).await.ok();
        let task = server.task_end(started["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        let done = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&done["status"], &done["progress"]["overall_progress_percent"]), (&json!("completed"), &json!(100.0)), "{done:#}");
        assert_eq!(done["progress"]["resources"][0]["status"], "completed");
        let target = done["additional_data"]["target_namespace_id"].as_str().unwrap();
        let moved = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        assert_eq!(moved["expires_at"], Value::Null, "{moved:#}");
        let collections = server.call_in(target, "POST", "/v1/collections/list", json!({})).await.ok();
        let copied = collections["results"][0]["collection_id"].as_str().unwrap();
        let count = server.call_in(target, "GET", &format!("/v1/collections/{copied}/documents/count"), Value::Null).await.ok();
        assert_eq!(count["count"], 1);

        for (method, path, body) in [("POST", format!("{path}/start"), json!({})), ("POST", format!("{path}/cancel"), json!({}))] {
            server.call(method, &path, body).await.error(409, "ConflictError");
        }
        let listed = server.call("POST", &format!("{MIGRATIONS}/list"), json!({"status": "completed", "source_namespace_id": namespace})).await.ok();
        assert_eq!(listed["total"], 1);
        assert_eq!(server.call("DELETE", &path, Value::Null).await.status, 204);
        server.call("GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn what_is_canceled_while_the_last_documents_are_copied_is_not_ready(server) {
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "A slow river of ice."});
        object(&server, &namespace, &bucket, "Glacier", text).await;
        process(&server, &namespace, &bucket).await;
        cancels_where_documents_come(&server).await;
        let made = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "stopped")})).await.ok();
        let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
        let started = server.call("POST", &format!("{path}/start"), json!({})).await.ok();
        server.task_end(started["task_id"].as_str().unwrap()).await;
        let stopped = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!(stopped["status"], "cancelled", "{stopped:#}");
        let target = stopped["additional_data"]["target_namespace_id"].as_str().unwrap();
        let found = server.call("GET", &format!("/v1/namespaces/{target}"), Value::Null).await.ok();
        assert_eq!((&found["namespace_ready"], &found["clone_status"]), (&json!(false), &json!("failed")), "{found:#}");
    }

    async fn what_is_canceled_stops_within_the_collection_that_is_copied(server) {
        let namespace = server.namespace("long").await;
        let body = json!({"collection_name": "letters", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
        let made = server.call_in(&namespace, "POST", "/v1/collections", body).await.ok();
        let path = format!("/v1/collections/{}/documents", made["collection_id"].as_str().unwrap());
        // One more than are copied at once.
        for number in 0..201 {
            server.call_in(&namespace, "POST", &path, json!({"number": number})).await.ok();
        }
        cancels_where_documents_come(&server).await;
        let made = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "short")})).await.ok();
        let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
        let started = server.call("POST", &format!("{path}/start"), json!({})).await.ok();
        server.task_end(started["task_id"].as_str().unwrap()).await;
        let stopped = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!(stopped["status"], "cancelled", "{stopped:#}");
        let target = stopped["additional_data"]["target_namespace_id"].as_str().unwrap();
        let kind = "collection.documents.written";
        let feed = format!("/v1/events?namespace_id={target}&event_type={kind}");
        let told = server.call("GET", &feed, Value::Null).await.ok();
        let counts: Vec<&Value> = told["results"].as_array().unwrap().iter().map(|one| &one["payload"]["count"]).collect();
        assert_eq!(counts, [&json!(200)], "{told:#}");
    }

    async fn what_stands_against_a_migration_is_told_before_it_starts(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "source").await;
        let codes = async |config: Value| {
            let checked = server.call("POST", &format!("{MIGRATIONS}/validate"), json!({"config": config})).await.ok();
            let errors = checked["validation_result"]["errors"].as_array().unwrap().clone();
            errors.iter().map(|error| error["error_code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let with = |member: &str, value: Value| {
            let mut config = copy(&namespace, "elsewhere");
            config[member] = value;
            config
        };
        assert!(codes(copy(&namespace, "elsewhere")).await.is_empty());
        for (config, code) in [
            (copy(&namespace, "source"), "name_taken"),
            (with("feature_extractors", json!([])), "not_enabled"),
            (with("preserve_resource_ids", json!(true)), "not_enabled"),
            (with("target_namespace_name", Value::Null), "missing_target"),
            (with("filters", json!({"collection_ids": ["col_none"]})), "not_found"),
            (with("filters", json!({"collection_ids": [], "retriever_ids": [retriever], "auto_include_dependencies": false})), "missing_dependency"),
        ] {
            assert_eq!(codes(config.clone()).await, [code], "{config}");
        }
        // What a retriever searches comes along by itself.
        assert!(codes(with("filters", json!({"collection_ids": [], "retriever_ids": [retriever]}))).await.is_empty());

        let broken = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": copy(&namespace, "source"), "start_immediately": true})).await.ok();
        assert_eq!((&broken["status"], &broken["validation_result"]["valid"]), (&json!("draft"), &json!(false)));
        let path = format!("{MIGRATIONS}/{}", broken["migration_id"].as_str().unwrap());
        server.call("POST", &format!("{path}/start"), json!({})).await.error(409, "ConflictError");
        let cancelled = server.call("POST", &format!("{path}/cancel"), json!({"reason": "not wanted"})).await.ok();
        assert_eq!(cancelled["status"], "cancelled");

        let dry = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": with("dry_run", json!(true)), "start_immediately": true})).await.ok();
        assert_eq!(dry["status"], "completed");
        server.call("GET", "/v1/namespaces/elsewhere", Value::Null).await.error(404, "NotFoundError");

        let other = other_organization(&server).await;
        let send = async |method: &str, path: &str, body: Value| {
            Server::send(server.request(method, path).bearer_auth(&other.key).json(&body)).await
        };
        send("GET", &path, json!({})).await.error(404, "NotFoundError");
        send("POST", &format!("{MIGRATIONS}/validate"), json!({"config": copy(&namespace, "mine")})).await.error(404, "NotFoundError");
    }

    async fn a_taxonomy_comes_along_with_what_it_needs_or_stays(server) {
        let (namespace, first) = retriever(&server, "source").await;
        let (taxonomy, finder) = kinds(&server, &namespace).await;
        let with = |filters: Value| {
            let mut config = copy(&namespace, "elsewhere");
            config["filters"] = filters;
            config
        };
        let all = validated(&server, &copy(&namespace, "elsewhere")).await;
        let order = all["dependency_graph"]["execution_order"].as_array().unwrap();
        let place = |id: &str| order.iter().position(|one| one == id).unwrap();
        assert!(place(&taxonomy) > place(&finder), "{order:?}");
        let nodes = all["dependency_graph"]["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["resource_id"] == taxonomy.as_str()).unwrap();
        assert_eq!(node["resource_type"], "taxonomy");
        assert!(node["dependencies"].as_array().unwrap().contains(&json!(finder)), "{node:#}");

        // Nobody named it: it stays where its retriever does.
        let left = validated(&server, &with(json!({"retriever_ids": [first]}))).await["validation_result"].clone();
        assert_eq!((codes(&left["errors"]), codes(&left["warnings"])), (vec![], vec!["left_out"]), "{left:#}");
        assert_eq!((&left["estimated_resources"]["taxonomies"], &left["estimated_resources"]["retrievers"]), (&json!(0), &json!(1)));
        // Who names it takes its retriever along, or is told.
        let named = json!({"retriever_ids": [first], "taxonomy_ids": [taxonomy]});
        let whole = validated(&server, &with(named.clone())).await["validation_result"].clone();
        assert_eq!((&whole["valid"], &whole["estimated_resources"]["retrievers"]), (&json!(true), &json!(2)), "{whole:#}");
        let mut alone = named.clone();
        alone["auto_include_dependencies"] = json!(false);
        let told = validated(&server, &with(alone.clone())).await["validation_result"].clone();
        assert_eq!(codes(&told["errors"]), ["missing_dependency"], "{told:#}");
        let draft = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": with(alone)})).await.ok();
        let start = format!("{MIGRATIONS}/{}/start", draft["migration_id"].as_str().unwrap());
        let refused = server.call("POST", &start, json!({"force": true})).await.error(409, "ConflictError");
        assert!(refused.to_string().contains("cannot be forced"), "{refused:#}");

        // The address that it names is told of its end.
        let receiver = Receiver::start().await;
        let mut config = with(named);
        config["webhook_url"] = json!("http://127.0.0.1:1/");
        let refused = validated(&server, &config).await;
        assert_eq!(codes(&refused["validation_result"]["errors"]), ["invalid_webhook"]);
        config["webhook_url"] = json!(receiver.url);
        let made = server.call("POST", &format!("{MIGRATIONS}/"), json!({"config": config, "start_immediately": true})).await.ok();
        let path = format!("{MIGRATIONS}/{}", made["migration_id"].as_str().unwrap());
        let begun = server.call("GET", &path, Value::Null).await.ok();
        server.task_end(begun["task_id"].as_str().unwrap()).await;
        let received = receiver.wait(1).await;
        let body: Value = serde_json::from_slice(&received[0].1).unwrap();
        assert_eq!((&body["event_type"], &body["payload"]["status"]), (&json!("migration.ended"), &json!("completed")), "{body:#}");
        let target = body["payload"]["target_namespace_id"].as_str().unwrap();
        let copied = server.call_in(target, "POST", "/v1/taxonomies/list", json!({})).await.ok();
        let by = copied["results"][0]["retriever_id"].as_str().unwrap();
        assert_ne!(by, finder);
        server.call_in(target, "GET", &format!("/v1/retrievers/{by}"), Value::Null).await.ok();
    }

    async fn what_has_no_effect_is_told(server) {
        let (namespace, _) = retriever(&server, "source").await;
        let mut config = copy(&namespace, "elsewhere");
        let plain = validated(&server, &config).await;
        assert_eq!(plain["validation_result"]["warnings"], json!([]));
        config["batch_options"] = json!({});
        config["cluster_options"] = json!({});
        config["taxonomy_options"] = json!({"preserve_taxonomy_ids": false, "re_run_enrichment": true});
        config["retriever_options"] = json!({"migrate_interactions": true, "migrate_execution_history": true});
        let told = validated(&server, &config).await["validation_result"].clone();
        assert_eq!(told["valid"], true, "{told:#}");
        let warnings = told["warnings"].as_array().unwrap();
        let about: Vec<&str> = warnings.iter().map(|one| one["message"].as_str().unwrap().split(' ').next().unwrap()).collect();
        assert_eq!(about, [
            "batch_options", "cluster_options", "taxonomy_options.re_run_enrichment",
            "retriever_options.migrate_interactions", "retriever_options.migrate_execution_history",
        ]);
        assert!(warnings.iter().all(|one| one["error_code"] == "no_effect" && one["severity"] == "warning"), "{told:#}");
    }
}
