//! Looks that wait, that are repeated, and that others change beside them.

use super::*;
use crate::objects::{beside, release, run};

both! {
    async fn storages_that_do_not_answer_hold_up_nothing_else(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        let collection = json!({
            "collection_name": "words", "source": {"type": "bucket", "bucket_ids": [place.bucket]},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        });
        let collection = place.call(&server, "POST", "/v1/collections", collection).await;
        place.put(HANGS, "/media");
        let mut syncs = Vec::new();
        for folder in ["a", "b", "c"] {
            syncs.push(place.follow(&server, json!({"source_path": format!("s3://media/{folder}")})).await);
        }
        let running = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND kind = 'sync_storage' AND status = 'PROCESSING'";
        let began = Instant::now();
        while server.app.db().number(running, loupe_server::args![&place.namespace]).await.unwrap() < 3 {
            assert!(began.elapsed() < Duration::from_secs(180), "the looks do not run side by side");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Other work is done meanwhile.
        let objects = format!("/v1/buckets/{}/objects?auto_process=true", place.bucket);
        let object = json!({"blobs": [{"property": "letter", "type": "text", "data": "dear all"}]});
        place.call(&server, "POST", &objects, object).await;
        let count = format!("/v1/collections/{}/documents/count", collection["collection_id"].as_str().unwrap());
        let began = Instant::now();
        while place.call(&server, "GET", &count, Value::Null).await["count"] != 1 {
            assert!(began.elapsed() < Duration::from_secs(180), "the object is not processed");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Whoever stops them is heard while they wait.
        let began = Instant::now();
        place.call(&server, "POST", &format!("{}/pause", syncs[0]), Value::Null).await;
        place.call(&server, "DELETE", &syncs[1], Value::Null).await;
        let paused = place.still(&server, &syncs[0]).await;
        assert_eq!((&paused["status"], &paused["is_active"], &paused["next_sync_at"]), (&json!("SUSPENDED"), &json!(true), &Value::Null));
        let jobs = place.call(&server, "POST", &format!("{}/jobs", syncs[0]), json!({})).await;
        assert_eq!(jobs["results"][0]["status"], "interrupted");
        while server.app.db().number(running, loupe_server::args![&place.namespace]).await.unwrap() > 1 {
            assert!(began.elapsed() < Duration::from_secs(180), "a look goes on without its sync");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // What a look that was stopped did not list is not gone, and it goes on when it may. Whoever asks for a look gets one.
        place.take(HANGS);
        place.put("a/0.txt", "dear nobody");
        let asked = place.look(&server, &syncs[0]).await;
        assert_eq!((&asked["total_files_synced"], &asked["paused"]), (&json!(1), &json!(true)));
        place.put("a/a.txt", "dear none");
        place.call(&server, "POST", &format!("{}/resume", syncs[0]), Value::Null).await;
        let began = Instant::now();
        while place.objects(&server).await.len() != 3 {
            assert!(began.elapsed() < Duration::from_secs(180), "the look does not go on");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn a_file_may_come_slowly_where_nobody_waits(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        for (key, text) in [("in/a.txt", "dear all"), ("in/b.txt", "dear you"), ("in/c.txt", "dear one"), (SLOW, "in/")] {
            place.put(key, text);
        }
        // A request gives a file one second.
        let server = server.restart_with(|config| config.limits.request_seconds = 6).await;
        let path = format!("/v1/buckets/{}/objects", place.bucket);
        let from = json!({"connection_id": place.connection});
        let asked = json!({"blobs": [{"property": "letter", "type": "text", "data": "s3://media/in/a.txt", "metadata": from}]});
        let refused = server.call_in(&place.namespace, "POST", &path, asked).await;
        let fault = refused.invalid(&["body", "blobs", "0", "data"], "value_error");
        assert!(fault["msg"].as_str().unwrap().contains("within 1 seconds"), "{fault}");
        assert_eq!(server.files(&format!("{}/", place.namespace)), [""; 0]);
        place.take(NOW);
        place.take(ONCE);
        // A look takes what comes, two files at a time.
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true, "sync_concurrency": 2})).await;
        let done = place.still(&server, &sync).await;
        assert_eq!(done["status"], "COMPLETED", "{done:#}");
        assert_eq!(place.names(&server).await, ["a.txt", "b.txt", "c.txt"]);
        assert_eq!(place.files.lock().unwrap()[ONCE], "2");
    }

    async fn a_look_that_ended_is_not_done_again(server) {
        let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
        place.put("in/a.txt", "dear all");
        let sync = place.follow(&server, json!({"source_path": "s3://media/in", "skip_batch_submission": true})).await;
        place.still(&server, &sync).await;
        let path = format!("{sync}/jobs");
        let ended = place.call(&server, "POST", &path, json!({})).await;
        assert_eq!(ended["results"][0]["status"], "completed");
        // Its process died before it ended the task.
        let ending = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND kind = 'sync_storage' AND status = 'COMPLETED'";
        let completes = async || {
            let began = Instant::now();
            while server.app.db().number(ending, loupe_server::args![&place.namespace]).await.unwrap() != 1 {
                assert!(began.elapsed() < Duration::from_secs(180), "the task does not end");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        completes().await;
        place.put("in/b.txt", "dear none");
        let namespace = place.namespace.clone();
        let again = "UPDATE tasks SET status = 'QUEUED', ended_at = NULL WHERE namespace_id = $1 AND kind = 'sync_storage'";
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(again, loupe_server::args![&namespace]).await
        })).await.unwrap();
        completes().await;
        assert_eq!(place.names(&server).await, ["a.txt"]);
        assert_eq!(place.call(&server, "POST", &path, json!({})).await, ended);
        // The next look is one of its own.
        place.look(&server, &sync).await;
        assert_eq!(place.names(&server).await, ["a.txt", "b.txt"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_changes_at_once_are_both_kept() {
    let server = Server::start(Database::Postgres).await;
    let place = place(&server, json!({"properties": {"letter": {"type": "text"}}})).await;
    let sync = place
        .follow(&server, json!({"source_path": "s3://media/in"}))
        .await;
    place.still(&server, &sync).await;
    // Both are on their way before either may write.
    let mut beside = beside(&server).await;
    run(&mut beside, "BEGIN").await;
    run(&mut beside, "SELECT 1 FROM syncs FOR UPDATE").await;
    let changes = futures::future::join(
        place.call(&server, "PATCH", &sync, json!({"description": "mine"})),
        place.call(&server, "PATCH", &sync, json!({"batch_size": 7})),
    );
    futures::future::join(changes, release(beside, 2)).await;
    let kept = place.call(&server, "GET", &sync, Value::Null).await;
    assert_eq!(
        (&kept["description"], &kept["batch_size"]),
        (&json!("mine"), &json!(7))
    );
}
