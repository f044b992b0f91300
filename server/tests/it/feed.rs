//! The change feed under writers: whoever follows `next_cursor` sees everything, once and in order. In short form, unless
//! FEED_EVENTS names how many events there are to be.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object},
    both,
    harness::{Database, Server},
    queue::beside,
};

const WRITERS: usize = 8;

/// Events of each writer: 100,000 of all with `LOUPE_TEST_LONG`.
fn each() -> usize {
    match std::env::var_os("LOUPE_TEST_LONG") {
        Some(_) => 100_000_usize.div_ceil(WRITERS),
        None => 150,
    }
}

/// Follows the feed until it has seen everything there is after the writers ended; answers each event's `seq` and payload.
async fn follow(server: &Server, done: &AtomicBool) -> Vec<(i64, Value)> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let last = done.load(Ordering::Acquire);
        let path = format!("/v1/events?limit=37&event_type=object.created&cursor={cursor}");
        let page = server.call("GET", &path, Value::Null).await.ok();
        let events = page["results"].as_array().unwrap();
        let event = |one: &Value| (one["seq"].as_i64().unwrap(), one["payload"].clone());
        seen.extend(events.iter().map(event));
        if let Some(next) = page["next_cursor"].as_str() {
            cursor = next.to_owned();
        }
        match page["has_more"].as_bool().unwrap() {
            true => {}
            false if last => return seen,
            false => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

async fn write(server: &Server, namespace: &str, bucket: &str, writer: usize) -> Vec<String> {
    let path = format!("/v1/buckets/{bucket}/objects");
    let each = each();
    let mut made = Vec::with_capacity(each);
    for number in 0..each {
        let body = json!({"n": writer * each + number});
        let object = server.call_in(namespace, "POST", &path, body).await.ok();
        made.push(object["object_id"].as_str().unwrap().to_owned());
    }
    made
}

/// `servers` write and are read, each by half of the writers and by a reader of its own.
async fn nothing_is_skipped(servers: &[Server]) {
    let first = &servers[0];
    let namespace = first.namespace("feed").await;
    let bucket =
        json!({"bucket_name": "b", "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
    let bucket = first
        .call_in(&namespace, "POST", "/v1/buckets", bucket)
        .await
        .ok();
    let bucket = bucket["bucket_id"].as_str().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let writing = async {
        let writers = (0..WRITERS).map(|writer| {
            let server = &servers[writer % servers.len()];
            write(server, &namespace, bucket, writer)
        });
        let made = join_all(writers).await;
        done.store(true, Ordering::Release);
        made
    };
    let reading = join_all(servers.iter().map(|server| follow(server, &done)));
    let (made, seen) = tokio::join!(writing, reading);
    println!("{} events in {:?}", WRITERS * each(), start.elapsed());
    let mut made: Vec<String> = made.into_iter().flatten().collect();
    made.sort();
    for events in seen {
        let rising = events.windows(2).all(|pair| pair[0].0 < pair[1].0);
        assert!(rising, "seq rises strictly");
        let told = |(_, payload): (i64, Value)| payload["object_id"].as_str().unwrap().to_owned();
        let mut told: Vec<String> = events.into_iter().map(told).collect();
        told.sort();
        assert_eq!(told.len(), made.len());
        assert_eq!(told, made, "everything once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_one_process_miss_nothing() {
    nothing_is_skipped(&[Server::start(Database::Sqlite).await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_two_processes_miss_nothing() {
    let first = Server::start(Database::Postgres).await;
    let second = beside(&first).await;
    nothing_is_skipped(&[first, second]).await;
}

/// Every type of event that the contract names.
const TYPES: [&str; 43] = [
    "object.created",
    "objects.created.batch",
    "object.updated",
    "object.deleted",
    "document.created",
    "document.updated",
    "document.deleted",
    "documents.updated.batch",
    "documents.deleted.batch",
    "collection.created",
    "collection.updated",
    "collection.deleted",
    "collection.documents.written",
    "collection.documents.batch_completed",
    "cluster.created",
    "cluster.updated",
    "cluster.deleted",
    "cluster.execution.started",
    "cluster.execution.completed",
    "cluster.execution.failed",
    "trigger.created",
    "trigger.updated",
    "trigger.deleted",
    "trigger.paused",
    "trigger.resumed",
    "trigger.fired",
    "trigger.execution.completed",
    "trigger.execution.failed",
    "taxonomy.created",
    "taxonomy.updated",
    "taxonomy.deleted",
    "alert.created",
    "alert.updated",
    "alert.deleted",
    "alert.triggered",
    "alert.execution.completed",
    "alert.execution.failed",
    "annotation.created",
    "annotation.updated",
    "annotation.deleted",
    "resource.executed",
    "resource.execution_failed",
    "manifest.apply.resource_state",
];

#[test]
fn the_vocabulary_of_the_feed_is_that_of_the_contract() {
    let document = serde_json::to_value(loupe_server::openapi::document()).unwrap();
    let told = &document["components"]["schemas"]["WebhookEventType"]["enum"];
    let mut told: Vec<&str> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind.as_str().unwrap())
        .collect();
    let mut named = TYPES.to_vec();
    told.sort_unstable();
    named.sort_unstable();
    assert_eq!(told, named);
}

both! {
    async fn events_go_after_ninety_days_and_readers_go_on(server) {
        let namespace = server.namespace("kept").await;
        let bucket = json!({"bucket_name": "b", "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let objects = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
        let make = async |number: i64| {
            server.call_in(&namespace, "POST", &objects, json!({"n": number})).await.ok();
        };
        let told = async |cursor: &str| {
            let path = format!("/v1/events?event_type=object.created&cursor={cursor}");
            let page = server.call("GET", &path, Value::Null).await.ok();
            page["results"].as_array().unwrap().clone()
        };
        make(1).await;
        make(2).await;
        let old = told("").await;
        server.app.clock().advance(89 * 86_400);
        make(3).await;
        loupe_server::v1::events::sweep(&server.app).await.unwrap();
        assert_eq!(told("").await.len(), 3);
        server.app.clock().advance(2 * 86_400);
        loupe_server::v1::events::sweep(&server.app).await.unwrap();
        make(4).await;
        let left = told("").await;
        assert_eq!((old.len(), left.len()), (2, 2), "{left:#?}");
        let seqs: Vec<i64> = old.iter().chain(&left).map(|event| event["seq"].as_i64().unwrap()).collect();
        assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
        // Whoever stood before what went goes on with what is there.
        assert_eq!(told(old[0]["cursor"].as_str().unwrap()).await, left);
    }

    async fn a_type_that_no_event_has_is_refused(server) {
        let path = "/v1/events?event_type=object.eaten";
        server.call("GET", path, Value::Null).await.invalid(&["query", "event_type"], "parsing");
        for kind in TYPES {
            server.call("GET", &format!("/v1/events?event_type={kind}"), Value::Null).await.ok();
        }
    }

    async fn the_feed_goes_on_by_every_name_of_a_cursor(server) {
        let namespace = server.namespace("named").await;
        let bucket = json!({"bucket_name": "b", "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let objects = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
        for number in 0..3 {
            server.call_in(&namespace, "POST", &objects, json!({"n": number})).await.ok();
        }
        let get = async |query: &str| server.call("GET", &format!("/v1/events?{query}"), Value::Null).await;
        let all = get("").await.ok();
        let seq = |page: &Value, at: usize| page["results"][at]["seq"].clone();
        let first = get("page_size=1").await.ok();
        assert_eq!((first["results"].as_array().unwrap().len(), &first["has_more"]), (1, &json!(true)));
        assert_eq!(get("page_size=1&limit=2").await.ok()["results"].as_array().unwrap().len(), 2);
        let next = first["next_cursor"].as_str().unwrap();
        for name in ["cursor", "next_cursor", "after"] {
            let page = get(&format!("limit=1&{name}={next}")).await.ok();
            assert_eq!(seq(&page, 0), seq(&all, 1), "{name}");
            get(&format!("{name}=nonsense")).await.invalid(&["query", "cursor"], "cursor_invalid");
        }
        // At the end of the feed the cursor that was sent comes back, whatever it was called.
        let end = all["next_cursor"].as_str().unwrap();
        assert_eq!(get(&format!("after={end}")).await.ok()["next_cursor"], end);
        assert_eq!(get("page_size=0").await.status, 422);
    }

    async fn a_reader_may_begin_at_the_end(server) {
        let get = async |query: &str| server.call("GET", &format!("/v1/events?{query}"), Value::Null).await;
        let namespaces = [server.namespace("one").await, server.namespace("other").await];
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            let bucket = json!({"bucket_name": name, "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
            let bucket = server.call_in(&namespaces[0], "POST", "/v1/buckets", bucket).await.ok();
            let path = format!("/v1/buckets/{}/objects", bucket["bucket_id"].as_str().unwrap());
            server.call_in(&namespaces[0], "POST", &path, json!({"n": number})).await.ok();
        }
        let path = format!("/v1/namespaces/{}", namespaces[1]);
        server.call("PATCH", &path, json!({"description": "nothing is in it"})).await.ok();
        let whole = get("limit=1000").await.ok();
        let end = get("tail=0").await.ok();
        assert_eq!((&end["results"], &end["has_more"], &end["next_cursor"]), (&json!([]), &json!(false), &whole["next_cursor"]));
        // The newest that are asked for, oldest first, and on from there.
        let made = "event_type=object.created";
        let all = get(made).await.ok();
        assert_eq!(all["results"].as_array().unwrap().len(), 3, "{all:#}");
        for (tail, count) in [(1, 1), (2, 2), (1000, 3)] {
            let page = get(&format!("{made}&tail={tail}&namespace_id={}", namespaces[0])).await.ok();
            assert_eq!(page["results"].as_array().unwrap()[..], all["results"].as_array().unwrap()[3 - count..], "{page:#}");
            assert_eq!(page["next_cursor"], all["next_cursor"]);
        }
        let page = get(&format!("{made}&tail=2&limit=1")).await.ok();
        assert_eq!((&page["results"][0], &page["has_more"]), (&all["results"][1], &json!(true)));
        // Where there is nothing, too, a reader goes on behind what there is now.
        let none = get(&format!("{made}&tail=5&namespace_id={}", namespaces[1])).await.ok();
        assert_eq!((&none["results"], &none["next_cursor"]), (&json!([]), &whole["next_cursor"]));
        get(&format!("tail=1&cursor={}", end["next_cursor"].as_str().unwrap())).await.invalid(&["query", "tail"], "value_error");
        assert_eq!((get("tail=-1").await.status, get("tail=1001").await.status), (422, 422));
    }

    async fn an_event_names_the_request_that_it_came_of(server) {
        let namespace = server.namespace("traced").await;
        let bucket = json!({"bucket_name": "b", "bucket_schema": {"properties": {"n": {"type": "integer"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok();
        let bucket = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        // Many at once share a transaction on SQLite, and each keeps its own.
        let objects = format!("{bucket}/objects");
        let request = || server.request("POST", &objects).bearer_auth(&server.key).header("x-namespace", &*namespace);
        let make = |number: i64| {
            let mine = format!("mine-{number}");
            let request = request().header("x-request-id", &*mine).json(&json!({"n": number}));
            async move {
                let object = Server::send(request).await.ok();
                (object["object_id"].as_str().unwrap().to_owned(), mine)
            }
        };
        let made: HashMap<String, String> = join_all((0..20).map(make)).await.into_iter().collect();
        // Without an id of the caller's own it is that of the answer.
        let last = Server::send(request().json(&json!({"n": 20}))).await;
        let given = last.headers["x-request-id"].to_str().unwrap().to_owned();
        let last = last.ok()["object_id"].as_str().unwrap().to_owned();
        let events = server.events("object.created").await;
        assert_eq!(events.len(), 21);
        for event in events {
            let id = event["payload"]["object_id"].as_str().unwrap();
            let trace = if id == last { &given } else { &made[id] };
            assert_eq!(event["trace_id"], *trace, "{event:#}");
        }
        // What the server does later is of no request.
        let gone = server.call_in(&namespace, "DELETE", &bucket, Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        let events = server.events("object.deleted").await;
        assert_eq!(events.len(), 21);
        assert!(events.iter().all(|event| event["trace_id"].is_null()), "{events:#?}");
    }

    async fn a_batch_that_is_canceled_is_told_of(server) {
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (namespace, bucket, collection) = library(&server, "text_extractor", "text").await;
        let text = json!({"property": "text", "type": "text", "data": "some words"});
        object(&server, &namespace, &bucket, "t", text).await;
        let batches = format!("/v1/buckets/{bucket}/batches");
        let batch = server.call_in(&namespace, "POST", &batches, json!({"auto_submit": true})).await.ok();
        let path = format!("{batches}/{}", batch["batch_id"].as_str().unwrap());
        server.call_in(&namespace, "POST", &format!("{path}/cancel"), json!({})).await.ok();
        assert_eq!(ended(&server, &namespace, &path).await["status"], "CANCELED");
        let told = server.events("collection.documents.batch_completed").await;
        assert_eq!(told.len(), 1, "{told:#?}");
        let payload = &told[0]["payload"];
        assert_eq!((&payload["batch_id"], &payload["collection_id"], &payload["status"]), (&batch["batch_id"], &json!(collection), &json!("CANCELED")));
    }
}
