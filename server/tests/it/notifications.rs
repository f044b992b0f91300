//! Notifications: made by what happens, read, counted, removed.

use std::time::Duration;

use loupe_server::{cause::Cause, db::Json, jobs::Claim, v1};
use serde_json::{Value, json};

use crate::{
    batches::{ended, library, object},
    both,
    harness::{Server, other_organization, retriever},
};

const LIST: &str = "/v1/notifications/list";

/// A batch of objects with these pictures, processed to its end; answers its id.
async fn batch(
    server: &Server,
    namespace: &str,
    bucket: &str,
    name: &str,
    pictures: &[&str],
) -> String {
    let mut ids = Vec::new();
    for data in pictures {
        let blob = json!({"property": "image", "type": "image", "data": data});
        ids.push(object(server, namespace, bucket, name, blob).await);
    }
    let batches = format!("/v1/buckets/{bucket}/batches");
    let made = json!({"object_ids": ids, "batch_name": name});
    let made = server.call_in(namespace, "POST", &batches, made).await.ok();
    let id = made["batch_id"].as_str().unwrap().to_owned();
    server
        .call_in(
            namespace,
            "POST",
            &format!("{batches}/{id}/submit"),
            json!({}),
        )
        .await
        .ok();
    ended(server, namespace, &format!("{batches}/{id}")).await;
    id
}

/// A picture of one pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const BROKEN: &str = "iVBORw0KGgoAAAANSUhEUg==";

/// Gives up everything that waits to be copied, taken or written.
async fn give_up(server: &Server, reason: &str) {
    type Row = (String, String, String, String, Json<Value>);
    let waiting = "SELECT task_id, org_id, COALESCE(namespace_id, ''), COALESCE(kind, ''), work FROM tasks WHERE status = 'QUEUED' AND work IS NOT NULL ORDER BY created_at, task_id";
    let waiting: Vec<Row> = server.app.db().all(waiting, vec![]).await.unwrap();
    for (task_id, org_id, namespace_id, kind, Json(work)) in waiting {
        let claim = Claim {
            task_id,
            org_id,
            namespace_id: Some(namespace_id),
            parent_id: None,
            kind: kind.clone(),
            work,
            owner: "nobody".into(),
            attempt: 1,
            tries: 3,
            cause: Cause::default(),
        };
        let app = &server.app;
        match kind.as_str() {
            v1::copying::COPY => v1::copying::give_up(app, &claim, reason).await,
            v1::snapshots::CAPTURE => v1::snapshots::give_up(app, &claim, reason).await,
            v1::migrations::MIGRATE => v1::migrations::give_up(app, &claim, reason).await,
            v1::exports::EXPORT => v1::exports::give_up(app, &claim, reason).await,
            _ => Ok(()),
        }
        .unwrap();
    }
}

both! {
    async fn preferences_say_which_notifications_there_are(server) {
        let path = "/v1/notifications/preferences";
        let get = async || server.call("GET", path, Value::Null).await.ok()["preferences"].clone();
        let first = get().await;
        assert_eq!(first.as_object().unwrap().len(), 13);
        assert!(first.as_object().unwrap().values().all(|one| *one == json!({"in_app": true, "email": false})));
        server.call("PUT", path, json!({"preferences": {"gossip": {}}})).await.invalid(&["body", "preferences", "gossip"], "enum");
        server.call("PUT", path, json!({"preferences": {"custom": {"pigeon": true}}})).await.invalid(&["body", "preferences", "custom", "pigeon"], "enum");
        server.call("PUT", path, json!({"preferences": {"custom": {"email": 1}}})).await.invalid(&["body", "preferences", "custom", "email"], "bool_type");
        server.call("PUT", path, json!({"preferences": {"custom": []}})).await.invalid(&["body", "preferences", "custom"], "dict_type");
        assert_eq!(get().await, first, "what is refused changes nothing");

        let off = json!({"pipeline_success": {"in_app": false}});
        let set = server.call("PUT", path, json!({"preferences": off})).await.ok();
        assert_eq!(set["preferences"]["pipeline_success"], json!({"in_app": false, "email": false}));
        let (namespace, bucket, _) = library(&server, "image_extractor", "image").await;
        batch(&server, &namespace, &bucket, "good ones", &[DOT]).await;
        batch(&server, &namespace, &bucket, "bad ones", &[BROKEN]).await;
        let list = server.call("POST", LIST, json!({})).await.ok();
        assert_eq!((&list["total"], &list["results"][0]["type"]), (&json!(1), &json!("pipeline_failure")));
        let strange = other_organization(&server).await;
        let theirs = Server::send(server.request("GET", path).bearer_auth(&strange.key)).await.ok();
        assert_eq!(theirs["preferences"], first);
        let set = server.call("PUT", path, json!({"preferences": {}})).await.ok();
        assert_eq!(set["preferences"], first);
    }
}

both! {
    async fn the_end_of_a_batch_is_told_until_somebody_reads_it(server) {
        let (namespace, bucket, _) = library(&server, "image_extractor", "image").await;
        let done = batch(&server, &namespace, &bucket, "good ones", &[DOT]).await;
        server.app.clock().advance(1);
        let partly = batch(&server, &namespace, &bucket, "mixed ones", &[DOT, BROKEN]).await;
        server.app.clock().advance(1);
        batch(&server, &namespace, &bucket, "bad ones", &[BROKEN]).await;

        let list = server.call("POST", LIST, json!({})).await.ok();
        let told: Vec<_> = list["results"].as_array().unwrap().iter()
            .map(|one| (one["type"].as_str().unwrap(), one["priority"].as_str().unwrap(), one["title"].as_str().unwrap())).collect();
        assert_eq!(told, [
            ("pipeline_failure", "high", "Batch bad ones failed"),
            ("pipeline_failure", "medium", "Batch mixed ones is done, but 1 of 2 objects failed"),
            ("pipeline_success", "low", "Batch good ones is done"),
        ]);
        assert_eq!(list["total"], 3);
        assert_eq!((&list["results"][1]["metadata"]["batch_id"], &list["results"][2]["metadata"]["batch_id"]), (&json!(partly), &json!(done)));
        assert!(list["results"][0]["content"].as_str().unwrap().contains("The first error: "), "{list:#}");
        assert_eq!(list["results"][2]["content"], "1 document was written from 1 object.");
        assert!(list["results"].as_array().unwrap().iter().all(|one| one["read"] == false && one["delivery_status"]["in_app"] == "delivered"));

        let of = async |filter: Value| server.call("POST", LIST, filter).await.ok()["total"].clone();
        assert_eq!(of(json!({"notification_type": "pipeline_failure"})).await, 2);
        assert_eq!(of(json!({"priority": "high"})).await, 1);
        assert_eq!(of(json!({"user_id": "usr_somebody"})).await, 0, "none is for one user alone");
        let page = server.call("POST", &format!("{LIST}?limit=2&include_total=true"), json!({})).await.ok();
        assert_eq!((page["results"].as_array().unwrap().len(), &page["pagination"]["total"]), (2, &json!(3)));
        let next = page["pagination"]["next_cursor"].as_str().unwrap();
        let rest = server.call("POST", &format!("{LIST}?limit=2&cursor={next}"), json!({})).await.ok();
        assert_eq!(rest["results"][0]["title"], "Batch good ones is done");
        server.call("POST", LIST, json!({"priority": "urgent"})).await.invalid(&["body", "priority"], "enum");

        let unread = async || server.call("GET", "/v1/notifications/unread/count", Value::Null).await.ok()["count"].clone();
        assert_eq!(unread().await, 3);
        let path = "/v1/notifications/unread/count?user_id=usr_somebody";
        assert_eq!(server.call("GET", path, Value::Null).await.ok()["count"], 3, "what is for everybody is for each");
        let path = format!("/v1/notifications/{}", list["results"][0]["id"].as_str().unwrap());
        let read = server.call("POST", &format!("{path}/read"), Value::Null).await.ok();
        assert_eq!(read["read"], true);
        server.app.clock().advance(60);
        let again = server.call("POST", &format!("{path}/read"), Value::Null).await.ok();
        assert_eq!(again["read_at"], read["read_at"], "it was read when it was read first");
        assert_eq!((unread().await, of(json!({"read": true})).await), (json!(2), json!(1)));
        let all = server.call("POST", "/v1/notifications/read/all", json!({})).await.ok();
        assert_eq!(all, json!({"success": true, "updated_count": 2}));
        assert_eq!(unread().await, 0);

        assert_eq!(server.call("DELETE", &path, Value::Null).await.status, 204);
        server.call("GET", &path, Value::Null).await.error(404, "NotFoundError");
        server.call("DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        assert_eq!(of(json!({})).await, 2);
    }

    async fn what_is_given_up_is_told(server) {
        // Nobody works: it is given up where it waits.
        let server = server.restart_with(|config| config.jobs.workers = 0).await;
        let (namespace, _) = retriever(&server, "left").await;
        let clone = format!("/v1/namespaces/{namespace}/clone");
        server.call("POST", &clone, json!({"namespace_name": "copied"})).await.ok();
        server.call_in(&namespace, "POST", "/v1/collections/things/clone", json!({"collection_name": "more things"})).await.ok();
        server.call("POST", &format!("/v1/namespaces/{namespace}/snapshots"), json!({})).await.ok();
        let config = json!({"migration_type": "copy", "source_namespace_id": namespace, "target_namespace_name": "moved"});
        let migration = json!({"config": config, "start_immediately": true});
        server.call("POST", "/v1/namespaces/migrations/", migration).await.ok();
        // It would wait for its file.
        let export = server.call_in(&namespace, "POST", "/v1/collections/things/export", json!({"format": "json"}));
        assert!(tokio::time::timeout(Duration::from_secs(5), export).await.is_err());
        give_up(&server, "the disk is full").await;
        let list = server.call("POST", LIST, json!({})).await.ok();
        let told = list["results"].as_array().unwrap();
        let mut titles: Vec<&str> = told.iter().map(|one| one["title"].as_str().unwrap()).collect();
        titles.sort_unstable();
        assert_eq!(titles, [
            "A snapshot of left could not be taken",
            "The collection things could not be exported",
            "The migration into moved failed",
            "The new collection more things could not be filled",
            "The new namespace copied could not be filled",
        ]);
        for one in told {
            assert_eq!((&one["type"], &one["priority"]), (&json!("pipeline_failure"), &json!("high")), "{one:#}");
            assert!(one["content"].as_str().unwrap().starts_with("the disk is full. "), "{one:#}");
            assert!(one["metadata"]["task_id"].is_string(), "{one:#}");
        }
        // A migration ends once, whoever gives it up again.
        give_up(&server, "the disk is full").await;
        let migrations = server.call("POST", &format!("{LIST}?limit=100"), json!({})).await.ok();
        let migrations = migrations["results"].as_array().unwrap().iter();
        assert_eq!(migrations.filter(|one| one["title"] == "The migration into moved failed").count(), 1);
    }

    async fn another_organization_is_told_nothing(server) {
        let (namespace, bucket, _) = library(&server, "image_extractor", "image").await;
        batch(&server, &namespace, &bucket, "good ones", &[DOT]).await;
        let list = server.call("POST", LIST, json!({})).await.ok();
        let path = format!("/v1/notifications/{}", list["results"][0]["id"].as_str().unwrap());
        let other = other_organization(&server).await;
        let send = async |method: &str, path: &str| Server::send(server.request(method, path).bearer_auth(&other.key)).await;
        assert_eq!(send("POST", LIST).await.ok()["total"], 0);
        send("POST", "/v1/notifications/read/all").await.ok();
        send("GET", &path).await.error(404, "NotFoundError");
        send("POST", &format!("{path}/read")).await.error(404, "NotFoundError");
        send("DELETE", &path).await.error(404, "NotFoundError");
        assert_eq!(server.call("GET", &path, Value::Null).await.ok()["read"], false);
    }

    async fn old_ones_are_swept(server) {
        let (namespace, bucket, _) = library(&server, "image_extractor", "image").await;
        batch(&server, &namespace, &bucket, "good ones", &[DOT]).await;
        server.app.clock().advance(91 * 86_400);
        loupe_server::v1::notifications::sweep(&server.app).await.unwrap();
        assert_eq!(server.call("POST", LIST, json!({})).await.ok()["total"], 0);
    }

    async fn who_listens_is_told_how_many_are_unread(server) {
        let mut listener = Listener::open(&server, &server.key).await;
        assert_eq!(listener.next().await, 0);
        let mut second = Listener::open(&server, &server.key).await;
        assert_eq!(second.next().await, 0, "who comes later is told at once");
        let stranger = other_organization(&server).await;
        let mut apart = Listener::open(&server, &stranger.key).await;
        assert_eq!(apart.next().await, 0);

        let (namespace, bucket, _) = library(&server, "image_extractor", "image").await;
        batch(&server, &namespace, &bucket, "one", &[DOT]).await;
        let list = server.call("POST", LIST, json!({"read": false})).await.ok();
        let total = list["total"].as_i64().unwrap();
        assert!(total > 0, "{list:#}");
        assert_eq!((listener.until(total).await, second.until(total).await), (total, total));
        server.call("POST", "/v1/notifications/read/all", json!({})).await.ok();
        assert_eq!((listener.until(0).await, second.until(0).await), (0, 0));
        assert!(!apart.has_more().await, "another organization hears nothing of it");
        let path = "/v1/notifications/unread/count";
        server.request("GET", path).header("accept", "text/event-stream").send().await.map(|answer| assert_eq!(answer.status(), 401)).unwrap();
        assert_eq!(server.call("GET", path, Value::Null).await.ok(), json!({"count": 0}));

        // An organization listens a hundred times at once, whomever it names.
        let mut open = Vec::new();
        let refused = loop {
            let named = server.request("GET", &format!("{path}?user_id=somebody-{}", open.len())).bearer_auth(&server.key);
            let answer = named.header("accept", "text/event-stream").send().await.unwrap();
            if answer.status() != 200 {
                break answer;
            }
            open.push(answer);
            assert!(open.len() < 100);
        };
        assert_eq!((open.len(), refused.status().as_u16()), (98, 429));
        assert_eq!(refused.headers()["retry-after"], "1");
        let refused = refused.json::<Value>().await.unwrap();
        assert_eq!(refused["error"]["code"], "too_many_streams");
        let details = &refused["error"]["details"];
        assert_eq!((&details["limit"], &details["window"], &details["retry_after"]), (&json!(100), &json!("concurrent"), &json!(1)));
        assert_eq!(Listener::open(&server, &stranger.key).await.next().await, 0);
    }
}

/// Somebody who listens to the number of unread notifications.
struct Listener {
    answer: reqwest::Response,
    rest: String,
}

impl Listener {
    async fn open(server: &Server, key: &str) -> Self {
        let request = server
            .request("GET", "/v1/notifications/unread/count")
            .bearer_auth(key);
        let answer = request.header("accept", "text/event-stream").send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            answer,
            rest: String::new(),
        }
    }

    async fn next(&mut self) -> i64 {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let data = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
                self.rest = rest.to_owned();
                match data {
                    Some(data) => return data["count"].as_i64().unwrap(),
                    None => continue,
                }
            }
            let bytes = self
                .answer
                .chunk()
                .await
                .unwrap()
                .expect("the stream goes on");
            self.rest += std::str::from_utf8(&bytes).unwrap();
        }
    }

    /// The first number that is this one.
    async fn until(&mut self, count: i64) -> i64 {
        let wait = std::time::Duration::from_secs(120);
        let found = tokio::time::timeout(wait, async {
            while self.next().await != count {}
            count
        });
        found.await.expect("it was told")
    }

    async fn has_more(&mut self) -> bool {
        let wait = std::time::Duration::from_millis(100);
        tokio::time::timeout(wait, self.next()).await.is_ok()
    }
}
