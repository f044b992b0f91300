//! Tiers and jobs of batches that are canceled, and tiers that are healed. The server under test has no workers, so that what
//! runs stays where it is; what a worker would do is done by hand.

use loupe_server::{
    args,
    cause::Cause,
    jobs::{self, Claim},
};
use loupe_wire::TaskStatusEnum;
use serde_json::{Value, json};

use crate::{batches::ended, both, harness::Server};

/// Two collections over a bucket of two notes, and one over the first of them.
struct Place {
    namespace: String,
    bucket: String,
}

impl Place {
    /// A place in a server that admits batches and works on none.
    async fn idle(server: Server) -> (Server, Self) {
        let server = server
            .restart_with(|config| {
                config.jobs.workers = 0;
                config.jobs.chunk_objects = 1;
            })
            .await;
        let namespace = server.namespace("stopping").await;
        let bucket = json!({"bucket_name": "notes", "bucket_schema": {"properties": {"note": {"type": "string"}}}});
        let made = server
            .call_in(&namespace, "POST", "/v1/buckets", bucket)
            .await
            .ok();
        let bucket = made["bucket_id"].as_str().unwrap().to_owned();
        let place = Self { namespace, bucket };
        let source = json!({"type": "bucket", "bucket_ids": [place.bucket]});
        place.collection(&server, "pages", source.clone(), 4).await;
        place.collection(&server, "words", source, 1).await;
        let over = json!({"type": "collection", "collection_ids": ["pages"]});
        place.collection(&server, "pairs", over, 2).await;
        for note in ["one two three four", "five six"] {
            let path = format!("/v1/buckets/{}/objects", place.bucket);
            place
                .call(&server, "POST", &path, json!({ "note": note }))
                .await;
        }
        (server, place)
    }

    async fn call(&self, server: &Server, method: &str, path: &str, body: Value) -> Value {
        let answer = server.call_in(&self.namespace, method, path, body).await;
        answer.ok()
    }

    async fn collection(&self, server: &Server, name: &str, source: Value, words: i64) {
        let mappings = match source["type"] == "bucket" {
            true => json!({"text": "note"}),
            false => Value::Null,
        };
        let extractor = json!({
            "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": mappings,
            "parameters": {"split_by": "words", "chunk_size": words, "chunk_overlap": 0},
        });
        let body =
            json!({"collection_name": name, "source": source, "feature_extractor": extractor});
        self.call(server, "POST", "/v1/collections", body).await;
    }

    /// A batch that runs; its path.
    async fn running(&self, server: &Server) -> String {
        let batches = format!("/v1/buckets/{}/batches", self.bucket);
        let made = self
            .call(server, "POST", &batches, json!({"auto_submit": true}))
            .await;
        let path = format!("{batches}/{}", made["batch_id"].as_str().unwrap());
        let start = std::time::Instant::now();
        while self.call(server, "GET", &path, Value::Null).await["status"] != "PROCESSING" {
            assert!(start.elapsed().as_secs() < 180, "the batch is not admitted");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        path
    }

    async fn count(&self, server: &Server, collection: &str) -> i64 {
        let path = format!("/v1/collections/{collection}");
        let found = self.call(server, "GET", &path, Value::Null).await;
        found["document_count"].as_i64().unwrap()
    }
}

/// Another process takes one chunk of the batch's task.
async fn claim(server: &Server, task_id: &str) -> Claim {
    let (task_id, until) = (task_id.to_owned(), server.app.clock().micros() + 60_000_000);
    let sql = "UPDATE tasks SET status = 'PROCESSING', lease_owner = 'elsewhere', lease_until = $2, attempt = 1 WHERE task_id = (SELECT task_id FROM tasks WHERE parent_id = $1 AND status = 'QUEUED' ORDER BY created_at, task_id LIMIT 1) RETURNING task_id, org_id";
    let write = server.app.db().write(move |tx| {
        Box::pin(async move { tx.one::<(String, String)>(sql, args![task_id, until]).await })
    });
    let (task_id, org_id) = write.await.unwrap().unwrap();
    Claim {
        task_id,
        org_id,
        namespace_id: None,
        parent_id: None,
        kind: "batch_chunk".into(),
        work: Value::Null,
        owner: "elsewhere".into(),
        attempt: 1,
        tries: 0,
        cause: Cause::default(),
    }
}

/// Whether the process that holds the claim can still end its work.
async fn finishes(server: &Server, claim: Claim) -> bool {
    let now = server.app.clock().micros();
    let write = server.app.db().write(move |tx| {
        Box::pin(async move { jobs::finish(tx, &claim, TaskStatusEnum::Completed, now).await })
    });
    write.await.unwrap()
}

async fn working(server: Server) -> Server {
    server.restart_with(|config| config.jobs.workers = 2).await
}

both! {
    async fn a_tier_that_runs_is_canceled_and_who_works_on_it_notices(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let batch = place.call(&server, "GET", &path, Value::Null).await;
        let claim = claim(&server, batch["task_id"].as_str().unwrap()).await;
        let task = place.call(&server, "POST", &format!("{path}/tiers/0/cancel?reason=wrong%20files"), Value::Null).await;
        assert_eq!((&task["task_id"], &task["status"]), (&batch["task_id"], &json!("CANCELED")), "{task:#}");
        assert_eq!(task["cancellation"], json!({"ray_jobs_requested": 2, "ray_jobs_accepted": 2, "ray_jobs_refused": 0}));
        assert_eq!(task["additional_data"]["cancellations"][0]["reason"], "wrong files");
        assert!(!jobs::is_held(server.app.db(), &claim).await.unwrap(), "its worker may write on");
        assert!(!finishes(&server, claim).await, "a canceled chunk was ended by who lost it");

        let batch = place.call(&server, "GET", &path, Value::Null).await;
        let states: Vec<&Value> = batch["tier_tasks"].as_array().unwrap().iter().map(|tier| &tier["status"]).collect();
        assert_eq!((&batch["status"], states), (&json!("CANCELED"), vec![&json!("CANCELED"), &json!("SKIPPED")]), "{batch:#}");
        assert_eq!(batch["tier_tasks"][0]["extractor_jobs"][0]["error"], "canceled: wrong files");
        let audit = place.call(&server, "GET", &format!("{path}/audit"), Value::Null).await;
        assert_eq!((&audit["all_balanced"], &audit["has_lost_objects"]), (&json!(true), &json!(false)), "{audit:#}");

        // It is over; there is no third tier.
        for (tier, status, kind) in [("0", 409, "ConflictError"), ("1", 409, "ConflictError"), ("2", 404, "NotFoundError"), ("last", 404, "NotFoundError")] {
            server.call_in(&place.namespace, "POST", &format!("{path}/tiers/{tier}/cancel"), Value::Null).await.error(status, kind);
        }
        // A refusal leaves the batch as it was.
        let caps = "/v1/organizations/billing/spending-caps";
        server.call("POST", caps, json!({"hard_spending_cap": 0, "hard_cap_enabled": true})).await.ok();
        for (again, body) in [("tiers/0/heal", json!({"action": "auto"})), ("resubmit?from_tier=0", Value::Null)] {
            server.call_in(&place.namespace, "POST", &format!("{path}/{again}"), body).await.error(403, "QuotaExceededError");
        }
        let waiting = "SELECT CAST(COUNT(*) AS BIGINT) FROM batch_objects WHERE status = 'PENDING'";
        assert_eq!(server.app.db().number(waiting, vec![]).await.unwrap(), 0);
        server.call("POST", caps, json!({"hard_cap_enabled": false, "hard_spending_cap": null})).await.ok();
        // What was canceled is healed.
        let healed = place.call(&server, "POST", &format!("{path}/tiers/0/heal"), json!({"action": "auto"})).await;
        assert_eq!((&healed["objects_put_back"], &healed["status"]), (&json!(2), &json!("QUEUED")), "{healed:#}");
        let server = working(server).await;
        let batch = ended(&server, &place.namespace, &path).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(11)), "{batch:#}");
    }

    async fn a_batch_says_when_it_last_moved(server) {
        let (server, place) = Place::idle(server).await;
        let batches = format!("/v1/buckets/{}/batches", place.bucket);
        let draft = place.call(&server, "POST", &batches, json!({})).await;
        assert_eq!((&draft["health"], &draft["last_activity_at"]), (&Value::Null, &Value::Null), "{draft:#}");
        let path = place.running(&server).await;
        let moved = |batch: &Value| batch["last_activity_at"].as_str().unwrap().to_owned();
        let begun = place.call(&server, "GET", &path, Value::Null).await;
        assert_eq!(begun["health"], "healthy", "{begun:#}");
        // Nobody works on it for half an hour.
        server.app.clock().advance(31 * 60);
        let still = place.call(&server, "GET", &path, Value::Null).await;
        assert_eq!((&still["health"], moved(&still)), (&json!("stalled"), moved(&begun)), "{still:#}");
        // A worker holds a part of it.
        claim(&server, begun["task_id"].as_str().unwrap()).await;
        let goes_on = place.call(&server, "GET", &path, Value::Null).await;
        assert_eq!(goes_on["health"], "healthy", "{goes_on:#}");
        assert!(moved(&goes_on) > moved(&begun), "{goes_on:#}");
        let tiers = &goes_on["tier_tasks"];
        let job = &tiers[0]["extractor_jobs"][0];
        assert!(moved(&tiers[0]) > moved(&begun) && moved(job) > moved(&begun), "{tiers:#}");
        assert_eq!(tiers[1]["last_activity_at"], Value::Null, "{tiers:#}");
        // A list says the same.
        let list = place.call(&server, "POST", &format!("{batches}/list"), json!({})).await;
        let find = |of: &Value| list["results"].as_array().unwrap().iter().find(|one| one["batch_id"] == of["batch_id"]).unwrap().clone();
        assert!(find(&begun)["health"] == "healthy" && moved(&find(&begun)) > moved(&begun), "{list:#}");
        assert_eq!(find(&draft)["health"], Value::Null, "{list:#}");
        place.call(&server, "POST", &format!("{path}/cancel"), Value::Null).await;
        let ended = place.call(&server, "GET", &path, Value::Null).await;
        assert_eq!((&ended["status"], &ended["health"]), (&json!("CANCELED"), &Value::Null), "{ended:#}");
        assert!(moved(&ended) > moved(&begun), "{ended:#}");
    }

    async fn a_tier_to_come_is_canceled_and_the_others_go_on(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let task = place.call(&server, "POST", &format!("{path}/tiers/1/cancel"), Value::Null).await;
        assert_eq!((&task["status"], &task["cancellation"]["ray_jobs_requested"]), (&json!("PROCESSING"), &json!(0)), "{task:#}");
        let server = working(server).await;
        let batch = ended(&server, &place.namespace, &path).await;
        let states: Vec<&Value> = batch["tier_tasks"].as_array().unwrap().iter().map(|tier| &tier["status"]).collect();
        assert_eq!((&batch["status"], states), (&json!("CANCELED"), vec![&json!("COMPLETED"), &json!("CANCELED")]), "{batch:#}");
        assert_eq!((place.count(&server, "pages").await, place.count(&server, "pairs").await), (2, 0));
        // Who follows the feed knows that it is over, and nobody is told that it is done.
        let told = server.events("collection.documents.batch_completed").await;
        assert!(told.iter().all(|event| event["payload"]["status"] == "CANCELED") && told.len() == 3, "{told:#?}");
        let list = server.call("POST", "/v1/notifications/list", json!({})).await.ok();
        assert_eq!(list["total"], 0, "{list:#}");
        // The next run takes up what was left.
        place.call(&server, "POST", &format!("{path}/resubmit"), Value::Null).await;
        let batch = ended(&server, &place.namespace, &path).await;
        assert_eq!((&batch["status"], place.count(&server, "pairs").await), (&json!("COMPLETED"), 3), "{batch:#}");
    }

    async fn one_job_of_a_tier_is_canceled_and_made_up_for(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let batch = place.call(&server, "GET", &path, Value::Null).await;
        let words = place.call(&server, "GET", "/v1/collections/words", Value::Null).await["collection_id"].clone();
        let jobs = batch["tier_tasks"][0]["extractor_jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["collection_ids"] == json!([words])).unwrap();
        let claim = claim(&server, batch["task_id"].as_str().unwrap()).await;
        let job = format!("{path}/tiers/0/jobs/{}", job["ray_job_id"].as_str().unwrap());
        let told = place.call(&server, "POST", &format!("{job}/cancel?reason=too%20small"), Value::Null).await;
        assert_eq!((&told["status"], &told["tier_status"], &told["collection_ids"]), (&json!("CANCELED"), &json!("PROCESSING"), &json!([words])), "{told:#}");
        // The chunk that a worker was at is handed to another one, who leaves the collection out.
        assert_eq!(told["cancellation"]["ray_jobs_accepted"], 1);
        assert!(!finishes(&server, claim).await, "the worker ended a chunk that was taken from it");
        server.call_in(&place.namespace, "POST", &format!("{job}/cancel"), Value::Null).await.error(409, "ConflictError");
        server.call_in(&place.namespace, "POST", &format!("{path}/tiers/0/jobs/job_unknown/cancel"), Value::Null).await.error(404, "NotFoundError");
        server.call_in(&place.namespace, "POST", &format!("{path}/tiers/5/jobs/job_unknown/cancel"), Value::Null).await.error(404, "NotFoundError");

        let server = working(server).await;
        let batch = ended(&server, &place.namespace, &path).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        assert_eq!((place.count(&server, "pages").await, place.count(&server, "words").await, place.count(&server, "pairs").await), (2, 0, 3));
        // The tier lacks what the collection was to hold.
        let healed = place.call(&server, "POST", &format!("{path}/tiers/0/heal"), json!({"action": "auto"})).await;
        assert_eq!((&healed["objects_put_back"], &healed["healed"]), (&json!(2), &json!(true)), "{healed:#}");
        let batch = ended(&server, &place.namespace, &path).await;
        assert_eq!((&batch["status"], place.count(&server, "words").await), (&json!("COMPLETED"), 6), "{batch:#}");
        let healed = place.call(&server, "POST", &format!("{path}/tiers/0/heal"), json!({"action": "auto"})).await;
        assert_eq!((&healed["objects_put_back"], &healed["healed"], &healed["task_id"]), (&json!(0), &json!(false), &Value::Null), "{healed:#}");
    }

    async fn the_last_job_of_a_tier_takes_the_tier_along(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let batch = place.call(&server, "GET", &path, Value::Null).await;
        let jobs = batch["tier_tasks"][0]["extractor_jobs"].as_array().unwrap();
        let mut states = Vec::new();
        for job in jobs {
            let path = format!("{path}/tiers/0/jobs/{}/cancel", job["ray_job_id"].as_str().unwrap());
            states.push(place.call(&server, "POST", &path, Value::Null).await["tier_status"].clone());
        }
        assert_eq!(states, [json!("PROCESSING"), json!("CANCELED")]);
        let batch = place.call(&server, "GET", &path, Value::Null).await;
        assert_eq!(batch["status"], "CANCELED", "{batch:#}");
    }

    async fn a_bucket_that_is_removed_by_force_leaves_no_work(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let batch = place.call(&server, "GET", &path, Value::Null).await;
        let task_id = batch["task_id"].as_str().unwrap().to_owned();
        let held = claim(&server, &task_id).await;
        let bucket = format!("/v1/buckets/{}?force_foreclose=true", place.bucket);
        let removal = place.call(&server, "DELETE", &bucket, Value::Null).await;
        assert!(!finishes(&server, held).await);
        let left = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'batch_chunk' AND status IN ('QUEUED', 'PROCESSING')";
        assert_eq!(server.app.db().number(left, vec![]).await.unwrap(), 0);
        let task = server.call("GET", &format!("/v1/tasks/{task_id}"), Value::Null).await.ok();
        assert_eq!(task["status"], "CANCELED", "{task:#}");
        let told = server.events("collection.documents.batch_completed").await;
        assert!(!told.is_empty());
        for event in &told {
            let payload = &event["payload"];
            assert_eq!((&payload["batch_id"], &payload["status"]), (&batch["batch_id"], &json!("CANCELED")), "{event:#}");
            assert_eq!((&payload["total_documents"], &payload["reason"]), (&Value::Null, &json!("its bucket was removed")), "{event:#}");
        }
        let server = working(server).await;
        assert_eq!(server.task_end(removal["task_id"].as_str().unwrap()).await["status"], "COMPLETED");
    }

    async fn what_stands_still_in_a_tier_is_started_again(server) {
        let (server, place) = Place::idle(server).await;
        let path = place.running(&server).await;
        let heal = format!("{path}/tiers/0/heal");
        let task_id = place.call(&server, "GET", &path, Value::Null).await["task_id"].as_str().unwrap().to_owned();
        // What a worker is at is no standstill, unless somebody says so.
        let held = claim(&server, &task_id).await;
        let healed = place.call(&server, "POST", &heal, json!({"action": "auto"})).await;
        assert_eq!((&healed["healed"], &healed["chunks_restarted"]), (&json!(false), &json!(0)), "{healed:#}");
        let healed = place.call(&server, "POST", &heal, json!({"action": "restart"})).await;
        assert_eq!((&healed["healed"], &healed["chunks_restarted"]), (&json!(true), &json!(1)), "{healed:#}");
        assert!(!finishes(&server, held).await);
        // A worker that died, and chunks that are gone.
        claim(&server, &task_id).await;
        server.app.clock().advance(120);
        let healed = place.call(&server, "POST", &heal, json!({"action": "auto"})).await;
        assert_eq!(healed["chunks_restarted"], 1, "{healed:#}");
        let parent = task_id.clone();
        let lost = server.app.db().write(move |tx| Box::pin(async move {
            tx.run("DELETE FROM tasks WHERE parent_id = $1", args![parent]).await
        }));
        assert_eq!(lost.await.unwrap(), 2);
        let healed = place.call(&server, "POST", &heal, json!({"action": "auto"})).await;
        assert_eq!((&healed["chunks_added"], &healed["status"]), (&json!(2), &json!("PROCESSING")), "{healed:#}");

        let healed = place.call(&server, "POST", &format!("{path}/tiers/1/heal"), json!({"action": "auto"})).await;
        assert_eq!(healed["healed"], false, "a tier to come: {healed:#}");
        server.call_in(&place.namespace, "POST", &format!("{path}/tiers/7/heal"), json!({"action": "auto"})).await.error(404, "NotFoundError");
        assert_eq!(server.call_in(&place.namespace, "POST", &heal, json!({"action": "pray"})).await.status, 422);
        assert_eq!(server.call_in(&place.namespace, "POST", &heal, json!({})).await.status, 422);
        let server = working(server).await;
        let batch = ended(&server, &place.namespace, &path).await;
        assert_eq!((&batch["status"], &batch["documents_written"]), (&json!("COMPLETED"), &json!(11)), "{batch:#}");
        server.call_in(&place.namespace, "POST", &heal, json!({"action": "restart"})).await.error(409, "ConflictError");
    }
}
