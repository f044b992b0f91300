//! Triggers: by the clock, on events, when a condition holds; once each, and no more after too many failures.

mod adding;
mod changed;
mod conditional;
mod looping;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Database, Server, retriever},
    queue::beside,
    webhooks::Receiver,
};

async fn make(server: &Server, namespace: &str, body: Value) -> Value {
    server
        .call_in(namespace, "POST", "/v1/triggers", body)
        .await
        .ok()
}

fn search(retriever: &str, kind: &str, schedule: Value) -> Value {
    json!({
        "name": "look", "trigger_type": kind, "schedule_config": schedule,
        "action_type": "retriever_execution", "action_config": {"retriever_id": retriever},
    })
}

/// The trigger once it has been executed so often and the last one is over.
pub async fn executed(server: &Server, namespace: &str, id: &str, count: i64) -> Value {
    let start = Instant::now();
    loop {
        let trigger = server
            .call_in(namespace, "GET", &format!("/v1/triggers/{id}"), Value::Null)
            .await
            .ok();
        let done = trigger["execution_count"].as_i64().unwrap_or(0);
        assert!(done <= count, "{trigger:#}");
        if done == count && trigger["last_execution_status"] != "QUEUED" {
            return trigger;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The trigger once it has counted so many events. The server counts by itself, too, and may be at it.
async fn counted(server: &Server, namespace: &str, id: &str, count: i64) -> Value {
    let start = Instant::now();
    loop {
        loupe_server::v1::triggers::count_events(&server.app)
            .await
            .unwrap();
        let path = format!("/v1/triggers/{id}");
        let trigger = server.call_in(namespace, "GET", &path, Value::Null).await;
        let trigger = trigger.ok();
        if trigger["event_counter"] == count {
            return trigger;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn id(trigger: &Value) -> String {
    trigger["trigger_id"].as_str().unwrap().to_owned()
}

async fn write(server: &Server, namespace: &str, title: &str) {
    let path = "/v1/collections/things/documents";
    server
        .call_in(
            namespace,
            "POST",
            path,
            json!({"title": title, "vectors": {"own": [1.0, 0.0, 0.0]}}),
        )
        .await
        .ok();
}

/// three processes look at every minute of an hour, and each minute fires once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_fire_each_minute_once() {
    let is_long = std::env::var_os("LOUPE_TEST_LONG").is_some();
    let minutes = if is_long { 60 } else { 20 };
    let first = Server::start(Database::Postgres).await;
    let servers = [beside(&first).await, beside(&first).await, first];
    let advance = |seconds: i64| {
        for server in &servers {
            server.app.clock().advance(seconds);
        }
    };
    let server = &servers[2];
    let (namespace, retriever) = retriever(server, "hour").await;
    // What passes on the real clock meanwhile ends no minute.
    let second = server.app.clock().micros() / 1_000_000 % 60;
    advance(62 - second);
    for server in &servers {
        server.app.clock().hold();
    }
    let body = search(&retriever, "cron", json!({"cron": "* * * * *"}));
    let id = id(&make(server, &namespace, body).await);
    for minute in 1..=minutes {
        advance(60);
        let ticks = servers
            .iter()
            .map(|server| loupe_server::v1::triggers::tick(&server.app));
        for tick in futures::future::join_all(ticks).await {
            tick.unwrap();
        }
        executed(server, &namespace, &id, minute).await;
    }
    let path = format!("/v1/triggers/{id}/history");
    let history = server
        .call_in(&namespace, "GET", &path, Value::Null)
        .await
        .ok();
    assert_eq!(history["total"], minutes);
}

both! {
    async fn what_nobody_looked_at_is_overdue_and_runs_once(server) {
        let (namespace, retriever) = retriever(&server, "down").await;
        // No minute ends by itself between what is done and what is looked at.
        server.app.clock().hold();
        // Nobody leads any more, as if every process were down.
        let start = Instant::now();
        while !loupe_server::jobs::hold_lease(&server.app, "leader", "the test", 31_536_000).await.unwrap() {
            assert!(start.elapsed() < Duration::from_secs(180), "the lease stays with the leader");
            server.app.clock().advance(11);
        }
        let made = make(&server, &namespace, search(&retriever, "cron", json!({"cron": "* * * * *"}))).await;
        assert_eq!(made["is_overdue"], false);
        let id = id(&made);
        server.app.clock().advance(3 * 3_600);
        let late = server.call_in(&namespace, "GET", &format!("/v1/triggers/{id}"), Value::Null).await.ok();
        assert_eq!((&late["is_overdue"], &late["execution_count"]), (&json!(true), &json!(0)));
        let ticks = (0..4).map(|_| loupe_server::v1::triggers::tick(&server.app));
        for tick in futures::future::join_all(ticks).await {
            tick.unwrap();
        }
        assert_eq!(executed(&server, &namespace, &id, 1).await["is_overdue"], false);
    }

    async fn the_clock_fires_each_moment_once(server) {
        let (namespace, retriever) = retriever(&server, "timed").await;
        server.app.clock().hold();
        let body = search(&retriever, "cron", json!({"cron": "0 9 * * *", "timezone": "Europe/Vienna"}));
        let made = make(&server, &namespace, body).await;
        let id = id(&made);
        assert_eq!(made["schedule_config"], json!({"cron": "0 9 * * *", "cron_expression": "0 9 * * *", "timezone": "Europe/Vienna"}));
        assert_eq!((&made["status"], &made["is_overdue"], &made["execution_count"]), (&json!("active"), &json!(false), &json!(0)));
        let next: chrono::DateTime<chrono::Utc> = made["next_scheduled_at"].as_str().unwrap().parse().unwrap();
        assert!(matches!(next.format("%H:%M").to_string().as_str(), "07:00" | "08:00"), "{next}");

        // Three days pass at once: what was missed runs once, and the next moment is ahead.
        server.app.clock().advance(3 * 86_400);
        let fired = executed(&server, &namespace, &id, 1).await;
        assert_eq!((&fired["last_execution_status"], &fired["consecutive_failures"]), (&json!("COMPLETED"), &json!(0)));
        let next: chrono::DateTime<chrono::Utc> = fired["next_scheduled_at"].as_str().unwrap().parse().unwrap();
        assert!(next > server.app.clock().now());
        // Several that look at the same moment fire it once.
        server.app.clock().advance(86_400);
        let app = &server.app;
        let ticks = (0..8).map(|_| loupe_server::v1::triggers::tick(app));
        for tick in futures::future::join_all(ticks).await {
            tick.unwrap();
        }
        executed(&server, &namespace, &id, 2).await;
        let history = server.call_in(&namespace, "GET", &format!("/v1/triggers/{id}/history"), Value::Null).await.ok();
        assert_eq!((&history["total"], &history["executions"][0]["status"]), (&json!(2), &json!("COMPLETED")));
        assert!(history["executions"][0]["execution_time_ms"].as_f64().is_some());
        let task = server.task_end(history["executions"][0]["task_id"].as_str().unwrap()).await;
        assert_eq!((&task["task_type"], &task["outputs"][0]["retriever_id"]), (&json!("api_retrievers_execute"), &json!(retriever)));
        for (kind, count) in [("trigger.created", 1), ("trigger.fired", 2), ("trigger.execution.completed", 2)] {
            assert_eq!(server.events(kind).await.len(), count, "{kind}");
        }
    }

    async fn pausing_stops_and_resuming_begins_anew(server) {
        let (namespace, retriever) = retriever(&server, "paused").await;
        let made = make(&server, &namespace, search(&retriever, "interval", json!({"interval_seconds": 60, "start_immediately": true}))).await;
        let id = id(&made);
        executed(&server, &namespace, &id, 1).await;
        let path = format!("/v1/triggers/{id}");
        let paused = server.call_in(&namespace, "POST", &format!("{path}/pause"), Value::Null).await.ok();
        assert_eq!((&paused["status"], &paused["next_scheduled_at"]), (&json!("paused"), &Value::Null));
        server.app.clock().advance(3_600);
        loupe_server::v1::triggers::tick(&server.app).await.unwrap();
        executed(&server, &namespace, &id, 1).await;
        // By hand it runs all the same.
        let task = server.call_in(&namespace, "POST", &format!("{path}/execute"), Value::Null).await.ok();
        server.task_end(task["task_id"].as_str().unwrap()).await;
        server.call_in(&namespace, "POST", &format!("{path}/resume"), Value::Null).await.ok();
        executed(&server, &namespace, &id, 2).await;
        server.app.clock().advance(61);
        executed(&server, &namespace, &id, 3).await;
        let changed = server.call_in(&namespace, "PATCH", &path, json!({"name": "rarely", "schedule_config": {"interval_seconds": 86_400}})).await.ok();
        assert_eq!((&changed["name"], &changed["schedule_config"]["interval_seconds"]), (&json!("rarely"), &json!(86_400)));
        // A description that is sent as null goes; one that is not sent stays.
        let mut told = Vec::new();
        for change in [json!({"description": "each day"}), json!({"name": "daily"}), json!({"description": null})] {
            told.push(server.call_in(&namespace, "PATCH", &path, change).await.ok()["description"].clone());
        }
        assert_eq!(told, [json!("each day"), json!("each day"), Value::Null]);
        server.call_in(&namespace, "PATCH", &path, json!({"status": "failed"})).await.invalid(&["body", "status"], "value_error");

        assert_eq!(server.call_in(&namespace, "DELETE", &path, Value::Null).await.status, 204);
        let gone = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(gone["status"], "disabled");
        for (kind, count) in [("trigger.paused", 1), ("trigger.resumed", 1), ("trigger.updated", 4), ("trigger.deleted", 1)] {
            assert_eq!(server.events(kind).await.len(), count, "{kind}");
        }
        server.call_in(&namespace, "POST", &format!("{path}/execute"), Value::Null).await.error(409, "ConflictError");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(409, "ConflictError");
    }

    async fn events_fire_at_their_threshold_and_rest(server) {
        let (namespace, retriever) = retriever(&server, "counted").await;
        let schedule = json!({"event_type": "document.created", "event_threshold": 3, "cooldown_seconds": 600});
        let id = id(&make(&server, &namespace, search(&retriever, "event", schedule)).await);
        for title in ["one", "two"] {
            write(&server, &namespace, title).await;
        }
        let waiting = counted(&server, &namespace, &id, 2).await;
        assert_eq!(waiting["execution_count"], 0);
        write(&server, &namespace, "three").await;
        let fired = executed(&server, &namespace, &id, 1).await;
        assert_eq!(fired["event_counter"], 0);
        // In the cooldown it counts; after it, it fires without another event.
        for title in ["four", "five", "six"] {
            write(&server, &namespace, title).await;
        }
        let resting = counted(&server, &namespace, &id, 3).await;
        assert_eq!(resting["execution_count"], 1);
        // Sent as it was, it forgets nothing.
        let same = json!({"name": "thrice", "schedule_config": resting["schedule_config"]});
        let same = server.call_in(&namespace, "PATCH", &format!("/v1/triggers/{id}"), same).await.ok();
        assert_eq!((&same["event_counter"], &same["next_scheduled_at"]), (&json!(3), &resting["next_scheduled_at"]), "{same:#}");
        server.app.clock().advance(601);
        executed(&server, &namespace, &id, 2).await;
    }

    async fn events_of_a_collection_count_by_its_name_too(server) {
        let (namespace, retriever) = retriever(&server, "by-name").await;
        let things = server.call_in(&namespace, "GET", "/v1/collections/things", Value::Null).await.ok()["collection_id"].clone();
        server.call_in(&namespace, "POST", "/v1/collections", json!({
            "collection_name": "more", "source": {"type": "direct_upsert"},
            "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"},
        })).await.ok();
        let of = |collection: &str| json!({"event_type": "document.created", "collection_id": collection});
        let made = make(&server, &namespace, search(&retriever, "event", of("things"))).await;
        assert_eq!(made["schedule_config"]["collection_id"], things);
        let other = id(&make(&server, &namespace, search(&retriever, "event", of("more"))).await);
        write(&server, &namespace, "one").await;
        executed(&server, &namespace, &id(&made), 1).await;
        let path = format!("/v1/triggers/{other}");
        let changed = server.call_in(&namespace, "PATCH", &path, json!({"schedule_config": of("things")})).await.ok();
        assert_eq!((&changed["schedule_config"]["collection_id"], &changed["execution_count"]), (&things, &json!(0)));
        write(&server, &namespace, "two").await;
        executed(&server, &namespace, &other, 1).await;
        // What objects tell names no collection.
        let objects = search(&retriever, "event", json!({"event_type": "object.created", "collection_id": "things"}));
        server.call_in(&namespace, "POST", "/v1/triggers", objects).await
            .invalid(&["body", "schedule_config", "collection_id"], "value_error");
    }

    async fn events_are_counted_again_after_a_pause(server) {
        let (namespace, retriever) = retriever(&server, "resumed").await;
        let schedule = json!({"event_type": "document.created"});
        let id = id(&make(&server, &namespace, search(&retriever, "event", schedule)).await);
        let path = format!("/v1/triggers/{id}");
        let (pause, resume) = (format!("{path}/pause"), format!("{path}/resume"));
        let by_request = [("POST", pause.as_str(), Value::Null), ("POST", resume.as_str(), Value::Null)];
        let by_change = [("PATCH", path.as_str(), json!({"status": "paused"})), ("PATCH", path.as_str(), json!({"status": "active"}))];
        for (count, [off, on]) in [(1, by_request), (2, by_change)] {
            server.call_in(&namespace, off.0, off.1, off.2).await.ok();
            // Nobody waits for events now, so nobody reads them.
            loupe_server::v1::triggers::count_events(&server.app).await.unwrap();
            server.call_in(&namespace, on.0, on.1, on.2).await.ok();
            write(&server, &namespace, "again").await;
            executed(&server, &namespace, &id, count).await;
        }
    }

    async fn a_condition_on_a_collection_that_is_gone_fails_and_is_stopped(server) {
        let (namespace, retriever) = retriever(&server, "unmeasured").await;
        let condition = json!({"condition_type": "volume", "threshold": 1.0, "collection_id": "things", "check_interval_seconds": 60});
        let id = id(&make(&server, &namespace, search(&retriever, "conditional", condition)).await);
        loupe_server::v1::triggers::tick(&server.app).await.unwrap();
        server.call_in(&namespace, "DELETE", "/v1/collections/things", Value::Null).await.ok();
        let path = format!("/v1/triggers/{id}");
        for count in 1..=5 {
            server.app.clock().advance(61);
            loupe_server::v1::triggers::tick(&server.app).await.unwrap();
            // The server looks by itself, too, and may be at it.
            let start = Instant::now();
            let trigger = loop {
                let trigger = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
                if trigger["consecutive_failures"] == count {
                    break trigger;
                }
                assert!(start.elapsed() < Duration::from_secs(180), "{trigger:#}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            assert_eq!(trigger["last_execution_status"], "FAILED", "{trigger:#}");
            assert!(trigger["last_execution_error"].is_string(), "{trigger:#}");
        }
        let stopped = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!((&stopped["status"], &stopped["next_scheduled_at"], &stopped["execution_count"]), (&json!("failed"), &Value::Null, &json!(0)));
        let notices = server.call("POST", "/v1/notifications/list", json!({"priority": "high"})).await.ok();
        assert_eq!((&notices["total"], &notices["results"][0]["title"]), (&json!(1), &json!("Trigger look was stopped")));
        assert_eq!(server.events("trigger.execution.failed").await.len(), 5);
    }

    async fn no_trigger_fires_on_what_triggers_do(server) {
        let (namespace, retriever) = retriever(&server, "endless").await;
        for kind in ["trigger.fired", "trigger.execution.completed"] {
            let body = search(&retriever, "event", json!({"event_type": kind}));
            server.call_in(&namespace, "POST", "/v1/triggers", body).await
                .invalid(&["body", "schedule_config", "event_type"], "value_error");
        }
        // One from before there was this rule waits for nothing, and the others go on.
        let schedule = json!({"event_type": "document.created"});
        let old = id(&make(&server, &namespace, search(&retriever, "event", schedule.clone())).await);
        let good = id(&make(&server, &namespace, search(&retriever, "event", schedule)).await);
        let mut data = server.call_in(&namespace, "GET", &format!("/v1/triggers/{old}"), Value::Null).await.ok();
        data["schedule_config"]["event_type"] = json!("trigger.fired");
        let (row, update) = (old.clone(), "UPDATE triggers SET data = $2 WHERE trigger_id = $1");
        server.app.db().write(move |tx| Box::pin(async move {
            tx.run(update, loupe_server::args![row, loupe_server::db::Arg::json(&data)]).await
        })).await.unwrap();
        write(&server, &namespace, "one").await;
        executed(&server, &namespace, &good, 1).await;
        loupe_server::v1::triggers::count_events(&server.app).await.unwrap();
        executed(&server, &namespace, &old, 0).await;
    }

    async fn removed_triggers_take_no_room_and_go_after_a_while(server) {
        let (namespace, retriever) = retriever(&server, "many").await;
        let mut body = search(&retriever, "cron", json!({"cron": "0 0 1 1 *"}));
        body["status"] = json!("paused");
        let first = id(&make(&server, &namespace, body.clone()).await);
        let post = || server.call_in(&namespace, "POST", "/v1/triggers", body.clone());
        for _ in 1..200 {
            post().await.ok();
        }
        post().await.error(409, "ConflictError");
        let path = format!("/v1/triggers/{first}");
        assert_eq!(server.call_in(&namespace, "DELETE", &path, Value::Null).await.status, 204);
        post().await.ok();
        post().await.error(409, "ConflictError");
        server.app.clock().advance(89 * 86_400);
        loupe_server::v1::triggers::sweep(&server.app).await.unwrap();
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["status"], "disabled");
        server.app.clock().advance(2 * 86_400);
        loupe_server::v1::triggers::sweep(&server.app).await.unwrap();
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
    }

    async fn what_fails_again_and_again_is_stopped_and_told(server) {
        let (namespace, retriever) = retriever(&server, "failing").await;
        let mut body = search(&retriever, "interval", json!({"interval_seconds": 60}));
        body["action_config"]["acceptance"] = json!({"min_results": 1});
        let id = id(&make(&server, &namespace, body).await);
        for count in 1..=5 {
            server.app.clock().advance(61);
            let trigger = executed(&server, &namespace, &id, count).await;
            assert_eq!((&trigger["last_execution_status"], &trigger["consecutive_failures"]), (&json!("FAILED"), &json!(count)));
            assert_eq!(trigger["last_execution_error"], "the retriever found 0 documents of at least 1");
        }
        let stopped = executed(&server, &namespace, &id, 5).await;
        assert_eq!((&stopped["status"], &stopped["next_scheduled_at"]), (&json!("failed"), &Value::Null));
        let notices = server.call("POST", "/v1/notifications/list", json!({"priority": "high"})).await.ok();
        assert_eq!((&notices["total"], &notices["results"][0]["title"]), (&json!(1), &json!("Trigger look was stopped")));
        assert_eq!(server.events("trigger.execution.failed").await.len(), 5);
        write(&server, &namespace, "found").await;
        server.call_in(&namespace, "POST", &format!("/v1/triggers/{id}/resume"), Value::Null).await.ok();
        server.app.clock().advance(61);
        let well = executed(&server, &namespace, &id, 6).await;
        assert_eq!((&well["last_execution_status"], &well["consecutive_failures"]), (&json!("COMPLETED"), &json!(0)));
    }

    async fn a_search_that_gets_worse_or_better_is_told_through_webhooks(server) {
        let (namespace, retriever) = retriever(&server, "canary").await;
        let receiver = Receiver::start().await;
        let webhook = server.call("POST", "/v1/organizations/webhooks", json!({
            "webhook_name": "canary", "event_types": ["cluster.deleted"],
            "channels": [{"channel": "webhook", "configs": {"url": receiver.url}}],
        })).await.ok();
        let mut body = search(&retriever, "interval", json!({"interval_seconds": 60}));
        body["action_config"]["acceptance"] = json!({"judge_field": "checked.good", "min_pass_ratio": 0.5});
        body["action_config"]["notification_config"] = json!({"channels": [{"channel_type": "webhook", "channel_id": webhook["webhook_id"]}]});
        write(&server, &namespace, "unchecked").await;
        let trigger = id(&make(&server, &namespace, body).await);
        let look = async |count: i64| {
            server.app.clock().advance(61);
            executed(&server, &namespace, &trigger, count).await
        };
        let failed = look(1).await;
        assert_eq!(failed["last_execution_error"], "0 of 1 document pass by checked.good, of at least a part of 0.5");
        receiver.wait(1).await;
        // What is as it was is no news.
        assert_eq!(look(2).await["consecutive_failures"], 2);
        let good = json!({"title": "checked", "checked": {"good": true}, "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", "/v1/collections/things/documents", good).await.ok();
        assert_eq!(look(3).await["last_execution_status"], "COMPLETED");
        let told: Vec<Value> = receiver.wait(2).await.iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect();
        let kinds: Vec<&Value> = told.iter().map(|one| &one["event_type"]).collect();
        assert_eq!(kinds, ["trigger.execution.failed", "trigger.execution.completed"], "{told:#?}");
        assert_eq!((&told[0]["trigger_id"], told[0].get("diagnostics")), (&json!(trigger), None));
    }

    async fn lists_are_narrowed_and_sorted(server) {
        let (namespace, retriever) = retriever(&server, "listed").await;
        for (name, kind, schedule) in [
            ("b", "cron", json!({"cron": "0 0 1 1 *"})),
            ("a", "interval", json!({"interval_seconds": 86_400})),
        ] {
            let mut body = search(&retriever, kind, schedule);
            body["name"] = json!(name);
            make(&server, &namespace, body).await;
            server.app.clock().advance(1);
        }
        let list = async |body: Value| {
            let list = server.call_in(&namespace, "POST", "/v1/triggers/list", body).await.ok();
            let names = list["results"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(list(json!({})).await, ["a", "b"]);
        assert_eq!(list(json!({"sort_by": "name", "direction": "desc"})).await, ["b", "a"]);
        assert_eq!(list(json!({"trigger_type": "cron"})).await, ["b"]);
        assert_eq!(list(json!({"resource_id": retriever, "limit": 1, "offset": 1})).await, ["b"]);
        assert_eq!(list(json!({"status": "paused"})).await, Vec::<String>::new());
        let whole = server.call_in(&namespace, "GET", "/v1/triggers", Value::Null).await.ok();
        assert_eq!((&whole["total"], &whole["limit"]), (&json!(2), &json!(50)));
        let get = async |query: &str| server.call_in(&namespace, "GET", &format!("/v1/triggers?{query}"), Value::Null).await;
        for (query, name, total) in [
            ("limit=1", "a", 2),
            ("limit=1&offset=1", "b", 2),
            ("trigger_type=cron", "b", 1),
            ("sort_by=name&direction=desc&limit=1", "b", 2),
        ] {
            let page = get(query).await.ok();
            let results = page["results"].as_array().unwrap();
            assert_eq!((results.len(), &results[0]["name"], &page["total"]), (1, &json!(name), &json!(total)), "{query}");
        }
        assert_eq!(get("status=disabled").await.ok()["results"], json!([]));
        get("limit=0").await.invalid(&["query", "limit"], "greater_than_equal");
        get("limit=1001").await.invalid(&["query", "limit"], "less_than_equal");
        get("offset=-1").await.invalid(&["query", "offset"], "greater_than_equal");
        assert_eq!(get("status=sleeping").await.status, 422);
        let elsewhere = server.namespace("elsewhere").await;
        let one = format!("/v1/triggers/{}", whole["results"][0]["trigger_id"].as_str().unwrap());
        server.call_in(&elsewhere, "GET", &one, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&elsewhere, "DELETE", &one, Value::Null).await.error(404, "NotFoundError");
    }

    async fn triggers_that_could_not_fire_are_refused(server) {
        let (namespace, retriever) = retriever(&server, "refused").await;
        let post = async |change: Value| {
            let mut body = search(&retriever, "cron", json!({"cron": "0 9 * * *"}));
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            server.call_in(&namespace, "POST", "/v1/triggers", body).await
        };
        for said_never in ["61 * * * *", "0 0 30 2 *"] {
            post(json!({"schedule_config": {"cron": said_never}})).await.invalid(&["body", "schedule_config", "cron_expression"], "invalid_cron");
        }
        post(json!({"schedule_config": {"cron": "0 9 * * *", "timezone": "Middle/Earth"}})).await.invalid(&["body", "schedule_config", "timezone"], "value_error");
        post(json!({"trigger_type": "interval"})).await.invalid(&["body", "schedule_config"], "value_error");
        post(json!({"action_config": {"retriever_id": "ret_unknown"}})).await.error(404, "NotFoundError");
        post(json!({"action_config": {}})).await.invalid(&["body", "action_config", "retriever_id"], "missing");
        // What would be ignored is refused.
        post(json!({"schedule_config": {"cron": "0 9 * * *", "interval_seconds": 60}})).await
            .invalid(&["body", "schedule_config", "interval_seconds"], "extra_forbidden");
        let refused = async |member: &str, value: Value| {
            let mut config = json!({"retriever_id": retriever});
            config[member] = value;
            post(json!({"action_config": config})).await
        };
        refused("speed", json!(1)).await.invalid(&["body", "action_config", "speed"], "extra_forbidden");
        refused("acceptance", json!({"max_stage_latency_breaches": 0})).await
            .invalid(&["body", "action_config", "acceptance", "max_stage_latency_breaches"], "not_enabled");
        refused("acceptance", json!({"min_pass_ratio": 0.5})).await
            .invalid(&["body", "action_config", "acceptance", "judge_field"], "missing");
        assert_eq!(refused("acceptance", json!({"min_pass_ratio": 2, "judge_field": "good"})).await.status, 422);
        refused("notification_config", json!({"channels": [{"channel_type": "slack", "config": {"webhook_url": "http://127.0.0.2:9/"}}]})).await
            .invalid(&["body", "action_config", "notification_config", "channels", "0", "channel_id"], "missing");
        refused("notification_config", json!({"channels": [{"channel_type": "webhook", "channel_id": "wh_0000000000000000"}]})).await
            .error(404, "NotFoundError");
        post(json!({"action_type": "cluster", "action_config": {"cluster_id": "clu_1"}})).await.error(404, "NotFoundError");
        post(json!({"status": "disabled"})).await.invalid(&["body", "status"], "value_error");
    }
}
