//! Removals that take longer than their request: what they free, and what they leave alone.

use std::collections::BTreeMap;

use loupe_engine::store::Reach;
use loupe_server::args;
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
    stages::stage,
};

/// Three objects with documents, one upload that waits, one that was confirmed.
async fn fill(server: &Server) -> (String, String, String) {
    let (namespace, bucket, collection) = library(server, "text_extractor", "text").await;
    for words in ["some words", "other words", "more words"] {
        let text = json!({"property": "text", "type": "text", "data": words});
        object(server, &namespace, &bucket, words, text).await;
    }
    let uploads = format!("/v1/buckets/{bucket}/uploads");
    for confirmed in [false, true] {
        let upload = json!({"filename": "a.txt", "content_type": "text/plain"});
        let upload = server
            .call_in(&namespace, "POST", &uploads, upload)
            .await
            .ok();
        let url = upload["presigned_url"].as_str().unwrap();
        let sent = Server::send(server.request("PUT", url).body("uploaded words")).await;
        assert_eq!(sent.status, 200);
        if confirmed {
            let id = upload["upload_id"].as_str().unwrap();
            let confirm = format!("{uploads}/{id}/confirm");
            server
                .call_in(&namespace, "POST", &confirm, Value::Null)
                .await
                .ok();
        }
    }
    let batch = process(server, &namespace, &bucket).await;
    assert_eq!(batch["documents_written"], 4, "{batch:#}");
    (namespace, bucket, collection)
}

async fn documents(server: &Server, namespace: &str, collection: &str) -> u64 {
    let reach = Reach {
        namespace_id: namespace.to_owned(),
        collection_ids: vec![collection.to_owned()],
        principal: None,
    };
    server.app.store().count(&reach, None).await.unwrap()
}

/// Tables with a namespace or an owner whose rows are no part of a namespace, or outlast it, and why.
const EXCEPTIONS: [(&str, &str); 12] = [
    ("apps", "of organizations"),
    ("connections", "of organizations"),
    ("migrations", "of organizations"),
    ("namespaces", "of organizations"),
    ("webhooks", "of organizations"),
    ("idempotency_keys", "of callers"),
    ("leases", "of processes"),
    ("events", "the feed tells that it went"),
    (
        "tasks",
        "they tell what was done, and go to the archive after a day",
    ),
    ("tasks_archive", "the same"),
    ("ingestion_usage", "what was used is paid all the same"),
    ("ingestion_by_collection", "the same"),
];

/// What empties itself while the server works.
const PASSING: [&str; 2] = ["annotation_signals", "document_journal"];

/// The columns of a table and their types.
type Columns = Vec<(String, String)>;

/// Every table whose rows belong to a namespace, from the schema: one that is added is proven with the others.
async fn tables(server: &Server) -> BTreeMap<String, Columns> {
    let db = server.app.db();
    let listing = if db.is_postgres() {
        "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), CAST(data_type AS TEXT) FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
    } else {
        "SELECT m.name, c.name, c.type FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid"
    };
    let listed: Vec<(String, String, String)> = db.all(listing, vec![]).await.unwrap();
    let mut tables: BTreeMap<String, Columns> = BTreeMap::new();
    for (table, column, kind) in listed {
        let columns = tables.entry(table).or_default();
        columns.push((column, kind.to_lowercase()));
    }
    for (table, why) in EXCEPTIONS {
        assert!(tables.remove(table).is_some(), "{table} ({why}) is gone");
    }
    tables.retain(|_, columns| owner(columns).is_some());
    assert!(tables.len() > 30, "only {} tables", tables.len());
    tables
}

/// The column that says whose a row is.
fn owner(columns: &[(String, String)]) -> Option<&'static str> {
    let has = |name: &&str| columns.iter().any(|(column, _)| column == name);
    ["namespace_id", "owner"].into_iter().find(has)
}

/// Rows that name the namespace, by table.
async fn rows(server: &Server, namespace: &str) -> Vec<(&'static str, i64)> {
    let db = server.app.db();
    let mut left = Vec::new();
    for (table, columns) in tables(server).await {
        let owner = owner(&columns).unwrap();
        let sql = format!("SELECT CAST(COUNT(*) AS BIGINT) FROM {table} WHERE {owner} = $1");
        let sql: &'static str = sql.leak();
        let count = db.number(sql, args![namespace]).await.unwrap();
        if count > 0 {
            let table: &'static str = table.leak();
            left.push((table, count));
        }
    }
    // They are named by their batch alone.
    let sql = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects";
    let count = db.number(sql, vec![]).await.unwrap();
    if count > 0 {
        left.push(("batch_objects", count));
    }
    left
}

/// A row in every table that has none of the namespace: nothing of it is ever due, or read.
async fn fill_rest(server: &Server, namespace: &str) {
    let held = rows(server, namespace).await;
    for (table, columns) in tables(server).await {
        let has = held.iter().any(|(held, _)| *held == table);
        if has || PASSING.contains(&table.as_str()) {
            continue;
        }
        let owner = owner(&columns).unwrap();
        let value = |(column, kind): &(String, String)| match kind.as_str() {
            _ if column == owner => "$1",
            "bigint" | "integer" => "9000000000000000",
            "boolean" => "FALSE",
            "jsonb" => "'{}'",
            _ => "'left'",
        };
        let values: Vec<&str> = columns.iter().map(value).collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let (names, values) = (names.join(", "), values.join(", "));
        let sql = format!("INSERT INTO {table} ({names}) VALUES ({values})");
        let (sql, namespace): (&'static str, String) = (sql.leak(), namespace.to_owned());
        let written = server
            .app
            .db()
            .write(move |tx| Box::pin(async move { tx.run(sql, args![namespace]).await }));
        assert_eq!(written.await.unwrap(), 1, "{table}");
    }
}

/// Waits until nothing of the namespace is worked on any more.
async fn idle(server: &Server, namespace: &str) {
    let waiting = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND status IN ('QUEUED', 'PROCESSING')";
    let executed = "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1";
    let start = std::time::Instant::now();
    loop {
        let db = server.app.db();
        let waiting = db.number(waiting, args![namespace]).await.unwrap();
        let executed = db.number(executed, args![namespace]).await.unwrap();
        if waiting == 0 && executed > 0 {
            return;
        }
        assert!(
            start.elapsed().as_secs() < 180,
            "{waiting} tasks, {executed} executions"
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// One of most kinds in the namespace, made as callers make them.
async fn furnish(server: &Server, namespace: &str) {
    let post = async |path: &str, body: Value| {
        let made = server.call_in(namespace, "POST", path, body).await;
        made.ok()
    };
    let own = json!({"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]});
    let things = json!({
        "collection_name": "things", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1", "parameters": own},
    });
    let things = post("/v1/collections", things).await["collection_id"].clone();
    let thing = json!({"title": "thing", "vectors": {"own": [1.0, 0.0, 0.0]}});
    let thing = post("/v1/collections/things/documents", thing).await["document_id"].clone();
    let all =
        json!({"conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]}});
    let body = json!({"retriever_name": "all", "collection_identifiers": ["things"], "input_schema": {}, "stages": [stage("attribute_filter", all)]});
    let retriever = post("/v1/retrievers", body).await["retriever_id"].clone();
    let path = |what: &str| format!("/v1/retrievers/{}/{what}", retriever.as_str().unwrap());
    post(&path("execute"), json!({"inputs": {}})).await;
    let page = json!({"public_name": "leaving-page", "display_name": "leaving"});
    post(&path("publish"), page).await;
    let body = json!({"taxonomy_name": "kinds", "config": {"taxonomy_type": "flat", "retriever_id": retriever,
        "input_mappings": [{"input_key": "title", "path": "title"}], "source_collection": {"collection_id": things}}});
    post("/v1/taxonomies", body).await;
    let body = json!({"cluster_name": "groups", "collection_ids": [things],
        "vector_config": {"feature_uri": "own", "clustering_method": "kmeans", "algorithm_params": {"n_clusters": 2}}});
    post("/v1/clusters", body).await;
    let queries = json!([{"query_id": "q", "query_input": {}, "relevant_documents": [thing]}]);
    let body = json!({"dataset_name": "judgements", "queries": queries});
    post("/v1/retrievers/evaluations/datasets", body).await;
    let body = json!({"feature_id": thing, "interaction_type": ["click"], "position": 0, "retriever_id": retriever});
    post("/v1/retrievers/interactions", body).await;
    let body = json!({
        "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600},
        "action_type": "retriever_execution", "action_config": {"retriever_id": retriever},
    });
    let trigger = post("/v1/triggers", body).await["trigger_id"].clone();
    let path = format!("/v1/triggers/{}/execute", trigger.as_str().unwrap());
    post(&path, Value::Null).await;
    let retriever = retriever.as_str().unwrap();
    let mut alert = crate::alerts::watch("new things", retriever, "http://127.0.0.2:4321/");
    alert["execution_mode"] = json!("on_demand");
    crate::alerts::make(server, namespace, alert).await;
    let body = json!({"document_id": thing, "label": "relevant"});
    post("/v1/annotations", body).await;
    post("/v1/collections/things/export", json!({"format": "json"})).await;
    let path = format!("/v1/namespaces/{namespace}/snapshots");
    server.call("POST", &path, json!({})).await.ok();
    idle(server, namespace).await;
}

both! {
    async fn a_bucket_goes_with_all_it_held(server) {
        let (namespace, bucket, collection) = fill(&server).await;
        assert_eq!(documents(&server, &namespace, &collection).await, 4);
        let path = format!("/v1/buckets/{bucket}");
        let answer = server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        assert_eq!(answer["object_count"], 4);
        // At once out of reach, then freed.
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!((&task["status"], &task["task_type"]), (&json!("COMPLETED"), &json!("api_buckets_delete")));
        assert_eq!(documents(&server, &namespace, &collection).await, 0);
        assert_eq!(server.files(&namespace), Vec::<String>::new());
        // The collection is not the bucket's.
        assert_eq!(rows(&server, &namespace).await, [("collections", 1)]);
        let deleted = server.events("object.deleted").await;
        assert_eq!(deleted.len(), 4);
        assert!(deleted.iter().all(|event| event["payload"]["bucket_id"] == bucket.as_str()));
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn a_namespace_goes_with_all_it_held(server) {
        let (namespace, bucket, collection) = fill(&server).await;
        let other = server.namespace("neighbour").await;
        let keep = json!({"bucket_name": "kept", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
        let keep = server.call_in(&other, "POST", "/v1/buckets", keep).await.ok();
        let kept = format!("/v1/buckets/{}", keep["bucket_id"].as_str().unwrap());
        let text = json!({"blobs": [{"property": "text", "type": "text", "data": "kept"}]});
        server.call_in(&other, "POST", &format!("{kept}/objects"), text).await.ok();
        let retriever = json!({
            "retriever_name": "search", "collection_identifiers": ["documents"],
            "stages": [{"stage_name": "cut", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"field": "title", "operator": "exists", "value": true},
            }}}],
        });
        let retriever = server.call_in(&namespace, "POST", "/v1/retrievers", retriever).await.ok();
        let retriever = format!("/v1/retrievers/{}", retriever["retriever_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &format!("{retriever}/execute"), json!({"inputs": {}})).await.ok();

        let path = format!("/v1/namespaces/{namespace}");
        let answer = server.call("DELETE", &path, Value::Null).await.ok();
        server.call("GET", &path, Value::Null).await.error(404, "NotFoundError");
        let bucket = format!("/v1/buckets/{bucket}");
        server.call_in(&namespace, "GET", &bucket, Value::Null).await.error(404, "NotFoundError");
        let task = server.task_end(answer["task_id"].as_str().unwrap()).await;
        assert_eq!((&task["status"], &task["task_type"]), (&json!("COMPLETED"), &json!("api_namespaces_delete")));
        assert_eq!(documents(&server, &namespace, &collection).await, 0);
        assert_eq!(server.files(&namespace), Vec::<String>::new());
        assert_eq!(rows(&server, &namespace).await, []);
        let gone = server.events("collection.deleted").await;
        assert_eq!(gone[0]["payload"]["collection_id"], collection.as_str());
        assert_eq!(server.events("object.deleted").await.len(), 4);
        // The neighbour keeps everything.
        assert_eq!(server.files(&other).len(), 1);
        server.call_in(&other, "GET", &kept, Value::Null).await.ok();
    }

    async fn no_table_keeps_a_row_of_a_removed_namespace(server) {
        let (namespace, ..) = fill(&server).await;
        furnish(&server, &namespace).await;
        fill_rest(&server, &namespace).await;
        let held: Vec<&str> = rows(&server, &namespace).await.into_iter().map(|(table, _)| table).collect();
        for table in tables(&server).await.into_keys() {
            assert!(held.contains(&table.as_str()) || PASSING.contains(&table.as_str()), "{table} holds nothing to remove");
        }
        let gone = server.call("DELETE", &format!("/v1/namespaces/{namespace}"), Value::Null).await.ok();
        let task = server.task_end(gone["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED", "{task:#}");
        assert_eq!(rows(&server, &namespace).await, []);
        assert_eq!(server.files(&namespace), Vec::<String>::new());
        // Whoever follows the feed hears of each thing that went.
        for kind in ["taxonomy", "cluster", "alert", "trigger"] {
            let ids = async |what: &str| {
                let events = server.events(&format!("{kind}.{what}")).await;
                let id = |event: &Value| event["payload"][format!("{kind}_id")].as_str().unwrap().to_owned();
                events.iter().map(id).collect::<std::collections::BTreeSet<_>>()
            };
            let (made, gone) = (ids("created").await, ids("deleted").await);
            assert!(!made.is_empty() && made.is_subset(&gone), "{kind}: {made:?} {gone:?}");
        }
    }

    async fn triggers_of_a_namespace_that_is_being_removed_fire_no_more(server) {
        // Nobody works: the removal does not come to them.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (namespace, retriever) = crate::harness::retriever(&server, "left").await;
        let trigger = json!({
            "trigger_type": "interval", "schedule_config": {"interval_seconds": 60},
            "action_type": "retriever_execution", "action_config": {"retriever_id": retriever},
        });
        server.call_in(&namespace, "POST", "/v1/triggers", trigger).await.ok();
        server.call("DELETE", &format!("/v1/namespaces/{namespace}"), Value::Null).await.ok();
        server.app.clock().advance(61);
        loupe_server::v1::triggers::tick(&server.app).await.unwrap();
        assert_eq!(server.events("trigger.fired").await, Vec::<Value>::new());
    }

    async fn the_id_of_a_namespace_that_is_not_freed_stays_taken(server) {
        let id = "ns_halfgone1";
        let made = json!({"namespace_name": "half gone", "namespace_id": id});
        server.call("POST", "/v1/namespaces", made.clone()).await.ok();
        let gone = server.call("DELETE", &format!("/v1/namespaces/{id}"), Value::Null).await.ok();
        let task = gone["task_id"].as_str().unwrap().to_owned();
        server.task_end(&task).await;
        // As if the workers had died of it again and again.
        let mut data = server.call("GET", &format!("/v1/tasks/{task}"), Value::Null).await.ok();
        data["status"] = json!("FAILED");
        let (row, failed) = (task.clone(), "UPDATE tasks SET status = 'FAILED', data = $2 WHERE task_id = $1");
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(failed, args![row, loupe_server::db::Arg::json(&data)]).await
        })).await.unwrap();
        server.call("POST", "/v1/namespaces", made.clone()).await.error(409, "AlreadyExistsError");
        server.call("DELETE", &format!("/v1/tasks/{task}"), Value::Null).await.error(409, "ConflictError");
        server.app.clock().advance(30 * 86_400);
        loupe_server::jobs::archive(&server.app).await.unwrap();
        server.call("POST", "/v1/namespaces", made).await.error(409, "AlreadyExistsError");
    }

    async fn the_id_of_a_removed_namespace_is_nobody_elses_for_a_moment(server) {
        let id = "ns_freed00001";
        let made = json!({"namespace_name": "freed", "namespace_id": id});
        let path = format!("/v1/namespaces/{id}");
        let stranger = crate::harness::other_organization(&server).await;
        let theirs = async || {
            let asked = server.request("POST", "/v1/namespaces").bearer_auth(&stranger.key);
            Server::send(asked.json(&made)).await
        };
        for _ in 0..2 {
            // Its own organization may have it again at once.
            server.call("POST", "/v1/namespaces", made.clone()).await.ok();
            let gone = server.call("DELETE", &path, Value::Null).await.ok();
            server.task_end(gone["task_id"].as_str().unwrap()).await;
        }
        server.app.clock().hold();
        theirs().await.error(409, "AlreadyExistsError");
        server.app.clock().advance(11);
        theirs().await.ok();
        server.call("GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn a_collection_takes_its_documents_along(server) {
        let (namespace, bucket, collection) = fill(&server).await;
        let path = format!("/v1/collections/{collection}");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        let start = std::time::Instant::now();
        while documents(&server, &namespace, &collection).await > 0 {
            assert!(start.elapsed().as_secs() < 180, "the documents stay");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        // The bucket keeps its objects and their files.
        let found = server.call_in(&namespace, "GET", &format!("/v1/buckets/{bucket}"), Value::Null).await.ok();
        assert_eq!(found["object_count"], 4);
        assert_eq!(server.files(&format!("{namespace}/objects")).len(), 4);
    }

    async fn a_bucket_whose_batches_run_is_kept_unless_forced(server) {
        let (namespace, bucket, _) = fill(&server).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let path = format!("/v1/buckets/{bucket}");
        let batch = server.call_in(&namespace, "POST", &batches, json!({"dedup_strategy": "force"})).await.ok();
        let id = batch["batch_id"].as_str().unwrap().to_owned();
        let queued = "UPDATE batches SET status = 'PROCESSING' WHERE batch_id = $1";
        server.app.db().write(move |tx| Box::pin(async move { tx.run(queued, args![id]).await })).await.unwrap();
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(409, "ConflictError");
        let forced = server.call_in(&namespace, "DELETE", &format!("{path}?force_foreclose=true"), Value::Null).await.ok();
        let task = server.task_end(forced["task_id"].as_str().unwrap()).await;
        assert_eq!(task["status"], "COMPLETED");
        assert_eq!(rows(&server, &namespace).await, [("collections", 1)]);
    }
}
