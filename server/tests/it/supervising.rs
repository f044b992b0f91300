//! Batches that are looked after: trouble that passes delays them, what may have passed is retried by the clock, what stands
//! still starts again, and what takes too long ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use loupe_server::{args, v1::batches::supervise};
use serde_json::{Value, json};

use crate::{
    batches::{library, object},
    both,
    harness::Server,
};

type Said = (StatusCode, [(&'static str, &'static str); 1], Json<Value>);

/// The endpoint of a model for texts and of one for language: answers so many times with a status before it does its work.
#[derive(Clone, Default)]
struct Model {
    status: Arc<AtomicU16>,
    failures: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

impl Model {
    fn fail(&self, status: u16, times: usize) {
        self.status.store(status, Ordering::SeqCst);
        self.failures.store(times, Ordering::SeqCst);
        self.calls.store(0, Ordering::SeqCst);
    }

    /// The answer, or the trouble that is due.
    fn answer(&self, good: Value) -> Said {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let (set, read) = (Ordering::SeqCst, Ordering::SeqCst);
        let less = |left: usize| left.checked_sub(1);
        let (status, answer) = match self.failures.fetch_update(set, read, less) {
            Ok(_) => (
                StatusCode::from_u16(self.status.load(Ordering::SeqCst)).unwrap(),
                json!({"error": {"message": "not now", "code": "insufficient_quota"}}),
            ),
            Err(_) => (StatusCode::OK, good),
        };
        (status, [("retry-after", "0")], Json(answer))
    }
}

async fn embed(State(model): State<Model>, Json(body): Json<Value>) -> Said {
    let texts = body["inputs"].as_array().unwrap().len();
    model.answer(json!(vec![vec![1.0; 384]; texts]))
}

async fn chat(State(model): State<Model>) -> Said {
    let words = json!({"year": 1927}).to_string();
    model.answer(json!({"choices": [{"message": {"content": words}}]}))
}

/// The server again, with the model's endpoint in the place of the model that embeds texts, or as its language model.
async fn with_model(server: Server, embeds: bool) -> (Server, Model) {
    let model = Model::default();
    let router = Router::new()
        .route("/embed", post(embed))
        .route("/chat/completions", post(chat))
        .with_state(model.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let server = server.restart_with(|config| {
        config.jobs.running_batches = 1;
        if embeds {
            let endpoint = json!({"output": "all_minilm_l6_v2_v1", "protocol": "tei", "url": url, "dims": 384});
            config.models.endpoints = vec![serde_json::from_value(endpoint).unwrap()];
        } else {
            let language = json!({"url": url, "model": "small"});
            config.models.language = Some(serde_json::from_value(language).unwrap());
        }
    });
    (server.await, model)
}

/// Submits a batch of everything in the bucket; answers its path.
pub async fn submit(server: &Server, namespace: &str, bucket: &str) -> String {
    let batches = format!("/v1/buckets/{bucket}/batches");
    let body = json!({"auto_submit": true});
    let batch = server.call_in(namespace, "POST", &batches, body).await.ok();
    format!("{batches}/{}", batch["batch_id"].as_str().unwrap())
}

/// A bucket of one text whose batch was submitted; answers the namespace and the batch's path.
async fn submitted(server: &Server) -> (String, String) {
    let (namespace, bucket, _) = library(server, "text_extractor", "text").await;
    let text = json!({"property": "text", "type": "text", "data": "a few words"});
    object(server, &namespace, &bucket, "t", text).await;
    let path = submit(server, &namespace, &bucket).await;
    (namespace, path)
}

/// Waits until the batch is as it should be. Whoever may do something is woken meanwhile.
#[track_caller]
fn until(
    server: &Server,
    namespace: &str,
    path: &str,
    holds: impl Fn(&Value) -> bool,
) -> impl Future<Output = Value> {
    let caller = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        loop {
            let batch = server.call_in(namespace, "GET", path, Value::Null).await;
            let batch = batch.ok();
            if holds(&batch) {
                return batch;
            }
            assert!(start.elapsed().as_secs() < 180, "{caller}: {batch:#}");
            server.app.work.notify_waiters();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn has_ended(batch: &Value) -> bool {
    let status = batch["status"].as_str().unwrap();
    matches!(status, "COMPLETED" | "COMPLETED_WITH_ERRORS" | "FAILED")
}

/// Moves the clock to each next try of the batch's work until the batch has ended; answers it, and the pauses in seconds.
pub async fn through(server: &Server, namespace: &str, path: &str) -> (Value, Vec<i64>) {
    let waits = "SELECT run_after, run_after - updated_at FROM tasks WHERE namespace_id = $1 AND kind = 'batch_chunk' AND status = 'QUEUED' AND run_after > $2";
    let (start, mut pauses) = (Instant::now(), Vec::new());
    loop {
        let batch = server.call_in(namespace, "GET", path, Value::Null).await;
        let batch = batch.ok();
        if has_ended(&batch) {
            return (batch, pauses);
        }
        assert!(start.elapsed().as_secs() < 180, "{pauses:?} {batch:#}");
        let (db, now) = (server.app.db(), server.app.clock().micros());
        let next: Option<(i64, i64)> = db.one(waits, args![namespace, now]).await.unwrap();
        if let Some((at, pause)) = next {
            pauses.push(pause / 1_000_000);
            server.app.clock().advance((at - now) / 1_000_000 + 1);
        }
        server.app.work.notify_waiters();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until the batch's work has failed once.
async fn failed_once(server: &Server, namespace: &str) {
    let tries = "SELECT CAST(COALESCE(MAX(tries), 0) AS BIGINT) FROM tasks WHERE namespace_id = $1";
    let (db, start) = (server.app.db(), Instant::now());
    while db.number(tries, args![namespace]).await.unwrap() == 0 {
        assert!(start.elapsed().as_secs() < 180, "nothing fails");
        server.app.work.notify_waiters();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Microseconds after its last change at which the batch is looked at next; none when it is not.
async fn looked_at(server: &Server, namespace: &str) -> Option<i64> {
    let due = "SELECT CAST(COALESCE(MAX(due_at - updated_at), -1) AS BIGINT) FROM batches WHERE namespace_id = $1";
    let due = server.app.db().number(due, args![namespace]).await.unwrap();
    (due >= 0).then_some(due)
}

async fn failures(server: &Server, namespace: &str, path: &str) -> Vec<Value> {
    let path = format!("{path}/failed-documents");
    let failed = server.call_in(namespace, "GET", &path, Value::Null).await;
    failed.ok()["results"].as_array().unwrap().clone()
}

const HOUR: i64 = 3_600;

/// Takes away the work of the one chunk that there is.
async fn lose(server: &Server, namespace: &str) {
    let lose = "DELETE FROM tasks WHERE namespace_id = $1 AND kind = 'batch_chunk'";
    let place = namespace.to_owned();
    let write = server
        .app
        .db()
        .write(move |tx| Box::pin(async move { tx.run(lose, args![&place]).await }));
    assert_eq!(write.await.unwrap(), 1);
}

both! {
    async fn a_model_that_is_away_for_a_while_delays_a_batch(server) {
        let (server, model) = with_model(server, true).await;
        // Each try asks twice.
        model.fail(503, 4);
        let (namespace, path) = submitted(&server).await;
        let (batch, pauses) = through(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(1)), "{batch:#}");
        assert_eq!((pauses.len(), model.calls.load(Ordering::SeqCst)), (2, 5));
        // Each is four times the one before, and up to half as long again.
        for (least, pause) in [12, 48].into_iter().zip(&pauses) {
            assert!((least..=least + least / 2).contains(pause), "{pauses:?}");
        }
        assert_eq!((&batch["retry_count"], &batch["error_summary"]), (&json!(0), &Value::Null));
        assert_eq!(looked_at(&server, &namespace).await, None);
    }

    async fn who_waits_for_a_turn_is_told_how_long(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, 4);
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a few words"});
        object(&server, &namespace, &bucket, "t", text).await;
        let path = submit(&server, &namespace, &bucket).await;
        let (_, pauses) = through(&server, &namespace, &path).await;
        // One that goes on and on, and one behind it.
        model.fail(503, usize::MAX);
        let text = json!({"property": "text", "type": "text", "data": "some more words"});
        object(&server, &namespace, &bucket, "u", text).await;
        let path = submit(&server, &namespace, &bucket).await;
        until(&server, &namespace, &path, |batch| batch["status"] == "PROCESSING").await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let draft = server.call_in(&namespace, "POST", &batches, json!({})).await.ok();
        let submit = format!("{batches}/{}/submit", draft["batch_id"].as_str().unwrap());
        let task = server.call_in(&namespace, "POST", &submit, json!({})).await.ok();
        assert_eq!(task["queue_position"], 1, "{task:#}");
        let took: u32 = pauses.iter().map(|pause| u32::try_from(*pause).unwrap()).sum();
        let wait = task["estimated_wait_minutes"].as_f64().unwrap() * 60.0;
        assert!((f64::from(took)..f64::from(took) + 60.0).contains(&wait), "{wait} {pauses:?}");
    }

    async fn a_language_model_that_is_away_delays_a_batch_too(server) {
        let (server, model) = with_model(server, false).await;
        model.fail(503, 4);
        let (namespace, bucket, _) = library(&server, "passthrough_extractor", "text").await;
        let collection = json!({"collection_name": "years", "source": {"type": "bucket", "bucket_ids": [bucket]},
            "feature_extractor": {"feature_extractor_name": "text_extractor", "version": "v1",
                "parameters": {"response_shape": {"year": "integer"}}}});
        let collection = server.call_in(&namespace, "POST", "/v1/collections", collection).await.ok();
        let text = json!({"property": "text", "type": "text", "data": "a film of 1927"});
        object(&server, &namespace, &bucket, "t", text).await;
        let path = submit(&server, &namespace, &bucket).await;
        let (batch, pauses) = through(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], pauses.len()), (&json!("COMPLETED"), 2), "{batch:#}");
        let list = format!("/v1/collections/{}/documents/list", collection["collection_id"].as_str().unwrap());
        let documents = server.call_in(&namespace, "POST", &list, json!({})).await.ok();
        assert_eq!(documents["results"][0]["year"], 1927, "{documents:#}");
    }

    async fn an_endpoint_that_refuses_ends_a_batch_at_once(server) {
        let (server, model) = with_model(server, true).await;
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "a few words"});
        object(&server, &namespace, &bucket, "t", text).await;
        for status in [401, 402, 403, 429] {
            model.fail(status, usize::MAX);
            let path = submit(&server, &namespace, &bucket).await;
            let (batch, pauses) = through(&server, &namespace, &path).await;
            assert_eq!(batch["status"], "FAILED", "{status} {batch:#}");
            let task = server.task_end(batch["task_id"].as_str().unwrap()).await;
            assert_eq!((&task["outputs"], task["error"].is_string()), (&Value::Null, true), "{task:#}");
            assert_eq!((pauses.len(), model.calls.load(Ordering::SeqCst)), (0, 1), "{status}");
            assert_eq!(batch["error_summary"], json!({"permanent": 1}), "{status}");
            assert_eq!(batch["tier_tasks"][0]["error_summary"], json!({"permanent": 1}), "{status}");
            let failures = failures(&server, &namespace, &path).await;
            assert_eq!(failures[0]["error_type"], "permanent", "{failures:#?}");
            assert!(failures[0]["error"].as_str().unwrap().contains(&status.to_string()), "{failures:#?}");
        }
        // None of them is retried.
        assert_eq!(looked_at(&server, &namespace).await, None);
    }

    async fn what_may_pass_is_retried_after_one_two_and_four_hours(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, usize::MAX);
        let (namespace, path) = submitted(&server).await;
        let (mut batch, pauses) = through(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], pauses.len()), (&json!("FAILED"), 2), "{batch:#}");
        for (retry, hours) in [(1, 1), (2, 2), (3, 4)] {
            assert_eq!(batch["error_summary"], json!({"transient": 1}), "{batch:#}");
            assert_eq!(batch["failure_category"], "infrastructure");
            assert!(batch["status_diagnostics"]["next_retry_at"].is_string(), "{batch:#}");
            assert_eq!(looked_at(&server, &namespace).await, Some(hours * HOUR * 1_000_000));
            server.app.clock().advance(hours * HOUR + 1);
            let task = batch["task_id"].clone();
            // However many take themselves for the leader, it is retried once.
            let (one, other) = tokio::join!(supervise(&server.app), supervise(&server.app));
            one.unwrap();
            other.unwrap();
            let begun = until(&server, &namespace, &path, |now| now["task_id"] != task).await;
            assert_eq!(begun["retry_count"], retry, "{begun:#}");
            assert!(begun["last_retry_at"].is_string() && begun["retry_reason"].is_string(), "{begun:#}");
            (batch, _) = through(&server, &namespace, &path).await;
            assert_eq!(batch["status"], "FAILED", "{batch:#}");
        }
        // Three times and no oftener.
        assert_eq!(looked_at(&server, &namespace).await, None);
        assert_eq!(batch["status_diagnostics"]["next_retry_at"], Value::Null);
        // Who asks for it gets it, and all retries again.
        model.fail(503, 0);
        server.call_in(&namespace, "POST", &format!("{path}/retry"), json!({})).await.ok();
        let (batch, _) = through(&server, &namespace, &path).await;
        assert_eq!((&batch["status"], &batch["retry_count"]), (&json!("COMPLETED"), &json!(0)), "{batch:#}");
        assert_eq!(batch["error_summary"], Value::Null);
    }

    async fn a_batch_that_waits_for_its_retry_is_canceled_at_once(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, usize::MAX);
        let (namespace, path) = submitted(&server).await;
        let (failed, _) = through(&server, &namespace, &path).await;
        assert!(failed["status_diagnostics"]["next_retry_at"].is_string(), "{failed:#}");
        let cancel = format!("{path}/cancel?reason=the%20model%20is%20gone");
        let task = server.call_in(&namespace, "POST", &cancel, Value::Null).await.ok();
        assert_eq!((&task["task_id"], &task["status"]), (&failed["task_id"], &json!("CANCELED")), "{task:#}");
        // Nothing ran that could be stopped.
        let nothing = json!({"ray_jobs_requested": 0, "ray_jobs_accepted": 0, "ray_jobs_refused": 0});
        assert_eq!(task["cancellation"], nothing, "{task:#}");
        let batch = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&batch["status"], &batch["status_message"]), (&json!("CANCELED"), &json!("the model is gone")), "{batch:#}");
        assert_eq!(batch["status_diagnostics"]["next_retry_at"], Value::Null);
        assert_eq!(looked_at(&server, &namespace).await, None);
        // Why its object failed is still told.
        assert_eq!(failures(&server, &namespace, &path).await.len(), 1);
        model.fail(503, 0);
        server.app.clock().advance(5 * HOUR);
        supervise(&server.app).await.unwrap();
        let later = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&later["status"], &later["task_id"], &later["retry_count"]), (&json!("CANCELED"), &failed["task_id"], &json!(0)), "{later:#}");
        assert_eq!(model.calls.load(Ordering::SeqCst), 0);
        server.call_in(&namespace, "POST", &cancel, Value::Null).await.error(409, "ConflictError");
        // Whoever wants it after all may ask for it.
        server.call_in(&namespace, "POST", &format!("{path}/retry"), json!({})).await.ok();
        let (batch, _) = through(&server, &namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
    }

    async fn what_takes_longer_than_a_day_is_ended(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, usize::MAX);
        let (namespace, path) = submitted(&server).await;
        failed_once(&server, &namespace).await;
        // It is tried on and on.
        let begin = || {
            let (place, forget) = (namespace.clone(), "UPDATE tasks SET tries = 0 WHERE namespace_id = $1 AND kind = 'batch_chunk'");
            server.app.db().write(move |tx| Box::pin(async move { tx.run(forget, args![&place]).await }))
        };
        assert_eq!(begin().await.unwrap(), 1);
        // Half a day is nothing yet.
        server.app.clock().advance(12 * HOUR);
        let held = until(&server, &namespace, &path, |batch| batch["status"] == "PROCESSING").await;
        assert_eq!(held["node_death_resubmit_count"], 0);
        begin().await.unwrap();
        server.app.clock().advance(12 * HOUR + 60);
        let batch = until(&server, &namespace, &path, has_ended).await;
        assert_eq!((&batch["status"], &batch["failure_category"]), (&json!("FAILED"), &json!("timeout")), "{batch:#}");
        assert!(batch["failure_reason"].as_str().unwrap().contains("24 hours"), "{batch:#}");
        let failures = failures(&server, &namespace, &path).await;
        assert_eq!((failures.len(), &failures[0]["error_type"]), (1, &json!("resource")), "{failures:#?}");
        assert_eq!(looked_at(&server, &namespace).await, None);
        let left = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE namespace_id = $1 AND status IN ('QUEUED', 'PROCESSING')";
        assert_eq!(server.app.db().number(left, args![&namespace]).await.unwrap(), 0);
        assert_eq!(server.events("collection.documents.batch_completed").await.len(), 1);
    }

    async fn work_that_is_lost_is_made_anew_after_half_an_hour(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, usize::MAX);
        let (namespace, path) = submitted(&server).await;
        failed_once(&server, &namespace).await;
        lose(&server, &namespace).await;
        model.fail(503, 0);
        server.app.clock().advance(HOUR / 2 + 60);
        let batch = until(&server, &namespace, &path, has_ended).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(1)), "{batch:#}");
        assert_eq!(batch["node_death_resubmit_count"], 1, "{batch:#}");
    }

    async fn a_batch_whose_work_is_lost_again_and_again_is_queued_anew(server) {
        let (server, model) = with_model(server, true).await;
        model.fail(503, usize::MAX);
        let (namespace, path) = submitted(&server).await;
        for restarts in 1..=3 {
            failed_once(&server, &namespace).await;
            lose(&server, &namespace).await;
            server.app.clock().advance(HOUR / 2 + 60);
            until(&server, &namespace, &path, |batch| batch["node_death_resubmit_count"] == restarts).await;
        }
        failed_once(&server, &namespace).await;
        lose(&server, &namespace).await;
        server.app.clock().advance(HOUR / 2 + 60);
        let batch = until(&server, &namespace, &path, has_ended).await;
        assert_eq!((&batch["status"], &batch["failure_category"]), (&json!("FAILED"), &json!("orphaned")), "{batch:#}");
        assert_eq!(batch["error_summary"], json!({"transient": 1}), "{batch:#}");
        model.fail(503, 0);
        server.app.clock().advance(HOUR / 2 + 60);
        // It is counted before it is queued.
        let batch = until(&server, &namespace, &path, |batch| batch["status"] == "COMPLETED").await;
        assert_eq!((&batch["retry_count"], &batch["documents_written"]), (&json!(1), &json!(1)), "{batch:#}");
    }
}
