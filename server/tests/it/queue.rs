//! The queue: claims over processes, the work of the dead, order and tries, in short forms.

use std::time::{Duration, Instant};

use loupe_server::{
    args,
    cause::Cause,
    jobs::{self, Claim},
    v1::{
        removal::REMOVE_OBJECTS,
        tasks::{self, NewTask},
    },
};
use loupe_wire::{TaskStatusEnum, TaskType};
use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object},
    both,
    harness::{Database, Server},
};

/// Leaves a piece of work that a worker does in no time: there is nothing to remove.
async fn leave(server: &Server, org_id: &str, namespace: &str, work: Value) -> String {
    let kind = TaskType::ApiCollectionsDocumentsBulkDelete;
    let task = NewTask::work(org_id, namespace, kind, REMOVE_OBJECTS, work);
    let now = server.app.clock().micros();
    let write = server
        .app
        .db()
        .write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }));
    write.await.unwrap().task_id
}

async fn org_id(server: &Server) -> String {
    let me = server.call("GET", "/v1/me", Value::Null).await.ok();
    me["organization_id"].as_str().unwrap().to_owned()
}

async fn number(server: &Server, sql: &'static str, namespace: &str) -> i64 {
    server.app.db().number(sql, args![namespace]).await.unwrap()
}

/// Another process on the database of this one.
pub async fn beside(server: &Server) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = server.app.config().clone();
    config.data = folder.path().join("data");
    config.listen = "127.0.0.1:0".parse().unwrap();
    Server::start_with(config, folder, Some(server.key.clone())).await
}

const LEFT: &str =
    "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND status <> 'COMPLETED'";
const CLAIMS: &str = "SELECT CAST(SUM(attempt) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND status = 'COMPLETED'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_do_every_piece_of_work_once() {
    const PIECES: i64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let mut config = crate::harness::config(Database::Postgres, &folder).await;
    // Who stands still for a while on a busy machine is not taken for dead.
    config.jobs.lease_seconds = 60;
    let first = Server::start_with(config, folder, None).await;
    let (second, third) = (beside(&first).await, beside(&first).await);
    let namespace = first.namespace("claims").await;
    let org_id = org_id(&first).await;
    for _ in 0..PIECES {
        leave(&first, &org_id, &namespace, json!({"object_ids": []})).await;
    }
    let start = Instant::now();
    while number(&first, LEFT, &namespace).await > 0 {
        assert!(start.elapsed().as_secs() < 300, "work is left");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Whoever claims a piece counts its attempts up.
    assert_eq!(number(&first, CLAIMS, &namespace).await, PIECES);
    drop((second, third));
}

const CLAIM: &str =
    "UPDATE tasks SET status = 'PROCESSING', lease_owner = 'me', attempt = 1 WHERE task_id = $1";
const CANCEL: &str = "UPDATE tasks SET status = 'CANCELED', lease_owner = NULL WHERE task_id = $1";

both! {
    async fn a_note_of_a_worker_does_not_undo_an_end_beside_it(server) {
        let namespace = server.namespace("noted").await;
        let (kind, org_id) = (TaskType::ApiCollectionsDocumentsBulkDelete, org_id(&server).await);
        let mut task = NewTask::work(&org_id, &namespace, kind, REMOVE_OBJECTS, json!({}));
        // Work of nobody's: no worker of this server claims it.
        (task.kind, task.status) = (None, TaskStatusEnum::Pending);
        let now = server.app.clock().micros();
        let left = server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await }));
        let id = left.await.unwrap().task_id;
        let claimed = id.clone();
        server.app.db().write(move |tx| Box::pin(async move { tx.run(CLAIM, args![claimed]).await })).await.unwrap();
        let claim = Claim {
            task_id: id.clone(), org_id, namespace_id: Some(namespace.clone()), parent_id: None, kind: REMOVE_OBJECTS.into(),
            work: Value::Null, owner: "me".into(), attempt: 1, tries: 0, cause: Default::default(),
        };
        let (ended, (begun, begins)) = (id.clone(), tokio::sync::oneshot::channel());
        let app = server.app.clone();
        let end = tokio::spawn(async move {
            let end = app.db().write(move |tx| Box::pin(async move {
                let changed = tx.run(CANCEL, args![ended]).await;
                let _ = begun.send(());
                // Long enough for the worker to look. On the thread: the writer of SQLite has no other.
                std::thread::sleep(Duration::from_millis(300));
                changed
            }));
            end.await
        });
        begins.await.unwrap();
        let noted = tasks::note(&server.app, &claim, "progress", json!(1)).await;
        end.await.unwrap().unwrap();
        assert!(noted.unwrap_err().is_conflict());
        let kept = server.call("GET", &format!("/v1/tasks/{id}"), Value::Null).await.ok();
        assert_eq!(kept["status"], "CANCELED", "{kept:#}");
    }

    async fn what_ended_a_day_ago_is_in_the_archive(server) {
        let namespace = server.namespace("old").await;
        let org_id = org_id(&server).await;
        let task = leave(&server, &org_id, &namespace, json!({"object_ids": []})).await;
        server.task_end(&task).await;
        let path = format!("/v1/tasks/{task}");
        let listed = async || {
            let all = server.call_in(&namespace, "POST", "/v1/tasks/list", json!({})).await.ok();
            let all = all["results"].as_array().unwrap().iter();
            all.filter(|one| one["task_id"] == *task).count()
        };
        server.app.clock().advance(23 * 3600);
        assert_eq!((jobs::archive(&server.app).await.unwrap(), listed().await), (0, 1));
        let fresh = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(fresh["additional_data"]["from_durable_store"], Value::Null, "{fresh:#}");
        server.app.clock().advance(3601);
        assert_eq!((jobs::archive(&server.app).await.unwrap(), listed().await), (1, 0));
        let kept = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&kept["status"], &kept["additional_data"]["from_durable_store"]), (&json!("COMPLETED"), &json!(true)));
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn the_work_of_the_dead_is_done_within_its_lease(server) {
        let server = server.restart_with(|config| config.jobs.lease_seconds = 2).await;
        let namespace = server.namespace("dead").await;
        let org_id = org_id(&server).await;
        let lease = i64::try_from(server.app.config().jobs.lease_seconds).unwrap() * 1_000_000;
        let kind = TaskType::ApiCollectionsDocumentsBulkDelete;
        let task = NewTask::work(&org_id, &namespace, kind, REMOVE_OBJECTS, json!({"object_ids": []}));
        let now = server.app.clock().micros();
        let start = Instant::now();
        // Claimed by a worker that is killed in the same moment.
        let task_id = server.app.db().write(move |tx| Box::pin(async move {
            let task = tasks::insert(tx, task, now).await?;
            let claim = "UPDATE tasks SET status = 'PROCESSING', lease_owner = 'dead', lease_until = $2, attempt = 1 WHERE task_id = $1";
            tx.run(claim, args![&task.task_id, now + lease]).await?;
            Ok(task.task_id)
        })).await.unwrap();
        while number(&server, LEFT, &namespace).await > 0 {
            assert!(start.elapsed().as_secs() < 180, "the lease of two seconds is long over");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(start.elapsed().as_millis() >= 1_900, "the lease was not waited for");
        assert_eq!(number(&server, CLAIMS, &namespace).await, 2);
        // The dead one wakes up: what it says changes nothing.
        let late = Claim {
            task_id, org_id, namespace_id: Some(namespace.clone()), parent_id: None, kind: REMOVE_OBJECTS.into(),
            work: Value::Null, owner: "dead".into(), attempt: 1, tries: 0, cause: Cause::default(),
        };
        let done = server.app.db().write(move |tx| Box::pin(async move {
            jobs::finish(tx, &late, TaskStatusEnum::Failed, now).await
        }));
        assert!(!done.await.unwrap());
        assert_eq!(number(&server, LEFT, &namespace).await, 0);
    }

    async fn a_task_shows_where_its_work_stands(server) {
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let namespace = server.namespace("shown").await;
        let org_id = org_id(&server).await;
        let task_id = leave(&server, &org_id, &namespace, json!({"object_ids": []})).await;
        // A worker claims it, and puts it back.
        for status in ["PROCESSING", "QUEUED"] {
            let id = task_id.clone();
            let set = "UPDATE tasks SET status = $2 WHERE task_id = $1";
            let moved = server.app.db().write(move |tx| Box::pin(async move { tx.run(set, args![id, status]).await }));
            assert_eq!(moved.await.unwrap(), 1);
            let task = server.call("GET", &format!("/v1/tasks/{task_id}"), Value::Null).await.ok();
            assert_eq!(task["status"], status, "{task:#}");
            let filters = json!({"filters": {"AND": [{"field": "status", "operator": "eq", "value": status}]}});
            for (method, path, body) in [
                ("GET", format!("/v1/tasks?status={status}"), Value::Null),
                ("POST", "/v1/tasks/list".to_owned(), json!({"status": status})),
                ("POST", "/v1/tasks/list".to_owned(), filters),
            ] {
                let listed = server.call(method, &path, body).await.ok();
                let tasks = listed["results"].as_array().unwrap();
                assert!(tasks.iter().any(|task| task["task_id"] == task_id), "{path}: {listed:#}");
                assert!(tasks.iter().all(|task| task["status"] == status), "{path}: {listed:#}");
            }
        }
    }

    async fn a_list_of_tasks_says_why_they_failed(server) {
        let namespace = server.namespace("failed").await;
        let org_id = org_id(&server).await;
        let mut task = NewTask::work(&org_id, &namespace, TaskType::ApiBucketsDelete, REMOVE_OBJECTS, Value::Null);
        (task.kind, task.status) = (None, TaskStatusEnum::Failed);
        task.additional_data.insert("error".into(), "the disk is full".into());
        let now = server.app.clock().micros();
        server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, task, now).await })).await.unwrap();
        let listed = server.call("GET", "/v1/tasks?status=FAILED", Value::Null).await.ok();
        assert_eq!(listed["results"][0]["error"], "the disk is full", "{listed:#}");
        let same = json!({"filters": {"AND": [{"field": "error", "operator": "eq", "value": "the disk is full"}]}});
        let listed = server.call("POST", "/v1/tasks/list", same).await.ok();
        assert_eq!(listed["results"][0]["additional_data"]["error"], "the disk is full", "{listed:#}");
    }

    async fn batches_start_in_the_order_of_their_submission(server) {
        let (namespace, bucket, _) = library(&server, "passthrough_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a few words"});
        let object = object(&server, &namespace, &bucket, "t", text).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let mut submitted = Vec::new();
        for _ in 0..20 {
            let body = json!({"object_ids": [object], "auto_submit": true});
            let batch = server.call_in(&namespace, "POST", &batches, body).await.ok();
            submitted.push(batch["batch_id"].as_str().unwrap().to_owned());
        }
        // Whenever one looks, the places have no holes.
        loop {
            let queue = server.call("GET", "/v1/batches/queue", Value::Null).await.ok();
            let waiting = queue["waiting"].as_array().unwrap();
            let places: Vec<_> = waiting.iter().map(|one| one["position"].as_u64().unwrap()).collect();
            assert_eq!(places, (1..=places.len() as u64).collect::<Vec<_>>());
            let ids: Vec<_> = waiting.iter().map(|one| one["batch_id"].as_str().unwrap()).collect();
            assert_eq!(ids, submitted[submitted.len() - ids.len()..]);
            assert!(queue["active_jobs"].as_u64() <= queue["max_concurrency"].as_u64());
            if waiting.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut started = Vec::new();
        for id in &submitted {
            let batch = ended(&server, &namespace, &format!("{batches}/{id}")).await;
            assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
            started.push(batch["tier_tasks"][0]["started_at"].as_str().unwrap().to_owned());
        }
        assert!(started.is_sorted(), "{started:#?}");
    }

    async fn what_may_pass_is_tried_three_times_and_nothing_else_is(server) {
        let namespace = server.namespace("tries").await;
        let org_id = org_id(&server).await;
        // No second passes by itself: each pause is seen.
        server.app.clock().hold();
        // Work that cannot be read is a fault of the server's own, which may be mended by the next version.
        let unreadable = leave(&server, &org_id, &namespace, json!("unreadable")).await;
        let kind = TaskType::ApiCollectionsDocumentsBulkDelete;
        let unknown = NewTask::work(&org_id, &namespace, kind, "no_such_kind", Value::Null);
        let now = server.app.clock().micros();
        let unknown = server.app.db().write(move |tx| Box::pin(async move { tasks::insert(tx, unknown, now).await }));
        let unknown = unknown.await.unwrap().task_id;
        let read = async |task: &str| -> (String, i64, i64) {
            let sql = "SELECT status, tries, CASE WHEN status = 'QUEUED' THEN run_after - updated_at ELSE 0 END FROM tasks WHERE task_id = $1";
            server.app.db().one(sql, args![task]).await.unwrap().unwrap()
        };
        let (start, mut pauses) = (Instant::now(), Vec::new());
        loop {
            let (status, tries, pause) = read(&unreadable).await;
            if pause > 0 && pauses.last() != Some(&(tries, pause)) {
                pauses.push((tries, pause));
                server.app.clock().advance(pause / 1_000_000 + 1);
            }
            server.app.work.notify_waiters();
            if status == "FAILED" {
                break;
            }
            assert!(start.elapsed().as_secs() < 180, "{status} after {tries} tries");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Each pause is twice the one before.
        assert_eq!(pauses, [(1, 2_000_000), (2, 4_000_000)]);
        let (status, tries) = loop {
            let (status, tries, _) = read(&unknown).await;
            if status != "QUEUED" && status != "PROCESSING" {
                break (status, tries);
            }
            assert!(start.elapsed().as_secs() < 180, "{status} after {tries} tries");
            server.app.work.notify_waiters();
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!((status.as_str(), tries), ("FAILED", 0));
    }
}
