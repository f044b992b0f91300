//! Lists that are searched, filtered or sorted look at every row, however many there are.

use loupe_server::{
    args,
    v1::tasks::{self, NewTask},
};
use loupe_wire::{TaskStatusEnum, TaskType};
use serde_json::{Value, json};

use crate::{both, harness::Server};

/// Lays copies of a row over the one that is looked for, seven of each moment.
const OBJECTS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO objects (object_id, namespace_id, bucket_id, content_hash, status, size_bytes, created_at, updated_at, data) SELECT 'obj_copy_' || CAST(i AS TEXT), namespace_id, bucket_id, content_hash, status, size_bytes, created_at + i / 7, updated_at, data FROM objects, n WHERE object_id = $1";
const UPLOADS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO uploads (upload_id, namespace_id, bucket_id, status, created_at, updated_at, expires_at, data) SELECT 'upl_copy_' || CAST(i AS TEXT), namespace_id, bucket_id, status, created_at + i / 7, updated_at, expires_at, data FROM uploads, n WHERE upload_id = $1";
const TASKS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) INSERT INTO tasks (task_id, org_id, namespace_id, task_type, status, created_at, updated_at, ended_at, data) SELECT 'tsk_copy_' || CAST(i AS TEXT), org_id, namespace_id, task_type, status, created_at + i / 7, updated_at, ended_at, data FROM tasks, n WHERE task_id = $1";

async fn copy(server: &Server, sql: &'static str, id: &Value) {
    let id = id.as_str().unwrap().to_owned();
    let db = server.app.db();
    let copied = db.write(move |tx| Box::pin(async move { tx.run(sql, args![id]).await }));
    assert_eq!(copied.await.unwrap(), 10_050);
}

async fn bucket(server: &Server) -> (String, String) {
    let namespace = server.namespace("long lists").await;
    let body =
        json!({"bucket_name": "hay", "bucket_schema": {"properties": {"text": {"type": "text"}}}});
    let bucket = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let id = bucket["bucket_id"].as_str().unwrap();
    (namespace, format!("/v1/buckets/{id}"))
}

fn equal(field: &str, value: &str) -> Value {
    json!({"filters": {"AND": [{"field": field, "operator": "eq", "value": value}]}})
}

/// What a list finds, and how much that is.
async fn found(server: &Server, namespace: &str, list: &str, body: Value) -> (Vec<Value>, Value) {
    let path = format!("{list}&include_total=true");
    let page = server.call_in(namespace, "POST", &path, body).await.ok();
    let results = page["results"].as_array().unwrap().clone();
    (results, page["pagination"]["total"].clone())
}

both! {
    async fn every_object_is_looked_at(server) {
        let (namespace, bucket) = bucket(&server).await;
        let mut ids = Vec::new();
        for title in ["the needle", "hay"] {
            let made = server.call_in(&namespace, "POST", &format!("{bucket}/objects"), json!({"title": title})).await.ok();
            ids.push(made["object_id"].clone());
        }
        copy(&server, OBJECTS, &ids[1]).await;
        let list = format!("{bucket}/objects/list");
        let (needle, total) = found(&server, &namespace, &format!("{list}?limit=5"), equal("title", "the needle")).await;
        assert_eq!((needle.len(), &needle[0]["object_id"], total), (1, &ids[0], json!(1)));
        let (end, total) = found(&server, &namespace, &format!("{list}?limit=100&offset=10000"), equal("title", "hay")).await;
        assert_eq!((end.len(), total), (51, json!(10_051)));
        let sort = json!({"sort": {"field": "title", "direction": "desc"}});
        let (sorted, total) = found(&server, &namespace, &format!("{list}?limit=2"), sort).await;
        assert_eq!((&sorted[0]["object_id"], &sorted[1]["title"], total), (&ids[0], &json!("hay"), json!(10_052)));
    }

    async fn every_upload_is_looked_at(server) {
        let (namespace, bucket) = bucket(&server).await;
        let path = format!("{bucket}/uploads");
        let mut ids = Vec::new();
        for name in ["needle.txt", "hay.txt"] {
            let body = json!({"filename": name, "content_type": "text/plain"});
            let made = server.call_in(&namespace, "POST", &path, body).await.ok();
            ids.push(made["upload_id"].clone());
        }
        copy(&server, UPLOADS, &ids[1]).await;
        let (needle, total) = found(&server, &namespace, &format!("{path}/list?limit=5"), equal("filename", "needle.txt")).await;
        assert_eq!((needle.len(), &needle[0]["upload_id"], total), (1, &ids[0], json!(1)));
    }

    async fn every_task_is_looked_at(server) {
        let namespace = server.namespace("long lists").await;
        let me = server.call("GET", "/v1/me", Value::Null).await.ok();
        let mut ids = Vec::new();
        for description in ["the needle", "hay"] {
            let org_id = me["organization_id"].as_str().unwrap();
            let kind = TaskType::ApiCollectionsDocumentsBulkDelete;
            let mut task = NewTask::work(org_id, &namespace, kind, "", Value::Null);
            (task.kind, task.status) = (None, TaskStatusEnum::Completed);
            task.description = description.into();
            let now = server.app.clock().micros();
            let made = server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }));
            ids.push(json!(made.await.unwrap().task_id));
        }
        copy(&server, TASKS, &ids[1]).await;
        let (needle, total) = found(&server, &namespace, "/v1/tasks/list?limit=5", equal("description", "the needle")).await;
        assert_eq!((needle.len(), &needle[0]["task_id"], total), (1, &ids[0], json!(1)));
    }
}
