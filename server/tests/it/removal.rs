//! Removals that take longer than their request: what they free, and what they leave alone.

use loupe_engine::store::Reach;
use loupe_server::args;
use serde_json::{Value, json};

use crate::{
    batches::{library, object, process},
    both,
    harness::Server,
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

/// How the rows of a namespace are counted, by table.
const COUNTS: [(&str, &str); 23] = [
    (
        "objects",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM objects WHERE namespace_id = $1",
    ),
    (
        "uploads",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM uploads WHERE namespace_id = $1",
    ),
    (
        "batches",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM batches WHERE namespace_id = $1",
    ),
    (
        "batch_objects",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE $1 <> ''",
    ),
    (
        "processed",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM processed WHERE namespace_id = $1",
    ),
    (
        "buckets",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM buckets WHERE owner = $1",
    ),
    (
        "collections",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM collections WHERE owner = $1",
    ),
    (
        "retrievers",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM retrievers WHERE owner = $1",
    ),
    (
        "published_retrievers",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM published_retrievers WHERE namespace_id = $1",
    ),
    (
        "page_passwords",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM page_passwords WHERE namespace_id = $1",
    ),
    (
        "page_names",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM page_names WHERE namespace_id = $1",
    ),
    (
        "interactions",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM interactions WHERE namespace_id = $1",
    ),
    (
        "evaluation_datasets",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluation_datasets WHERE namespace_id = $1",
    ),
    (
        "evaluations",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM evaluations WHERE namespace_id = $1",
    ),
    (
        "benchmarks",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM benchmarks WHERE namespace_id = $1",
    ),
    (
        "executions",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM executions WHERE namespace_id = $1",
    ),
    (
        "triggers",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM triggers WHERE namespace_id = $1",
    ),
    (
        "taxonomies",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM taxonomies WHERE owner = $1",
    ),
    (
        "taxonomy_versions",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM taxonomy_versions WHERE namespace_id = $1",
    ),
    (
        "clusters",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM clusters WHERE owner = $1",
    ),
    (
        "cluster_runs",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM cluster_runs WHERE namespace_id = $1",
    ),
    (
        "annotations",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM annotations WHERE namespace_id = $1",
    ),
    (
        "document_journal",
        "SELECT CAST(COUNT(*) AS BIGINT) FROM document_journal WHERE namespace_id = $1",
    ),
];

/// Rows that name the namespace, by table.
async fn rows(server: &Server, namespace: &str) -> Vec<(&'static str, i64)> {
    let mut left = Vec::new();
    for (table, sql) in COUNTS {
        let count = server.app.db().number(sql, args![namespace]).await.unwrap();
        if count > 0 {
            left.push((table, count));
        }
    }
    left
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
        let inside = server.call_in(&namespace, "GET", &bucket, Value::Null).await;
        assert!(matches!(inside.status, 403 | 404), "{:#}", inside.body);
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
