//! Alerts that cannot look: they say so, and people are told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{execute, hourly, id, is_delivered, make, results, watch, write};
use crate::{
    both,
    harness::{Server, retriever},
    triggers::executed,
    webhooks::Receiver,
};

async fn get(server: &Server, namespace: &str, path: &str) -> Value {
    let found = server.call_in(namespace, "GET", path, Value::Null).await;
    found.ok()
}

/// The alert once so many of its looks failed in a row, or more.
async fn failed(server: &Server, namespace: &str, name: &str, least: i64) -> Value {
    let start = Instant::now();
    loop {
        let alert = get(server, namespace, &format!("/v1/alerts/{name}")).await;
        if alert["consecutive_failures"].as_i64().unwrap() >= least {
            return alert;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{alert:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn looks(server: &Server, namespace: &str, name: &str) -> Vec<Value> {
    let page = get(server, namespace, &format!("/v1/alerts/{name}/executions")).await;
    page["results"].as_array().unwrap().clone()
}

/// What people were told of the server.
async fn notices(server: &Server) -> Vec<Value> {
    let body = json!({"notification_type": "system_alert"});
    let page = server.call("POST", "/v1/notifications/list", body).await;
    page.ok()["results"].as_array().unwrap().clone()
}

async fn rename(server: &Server, namespace: &str, retriever: &str, name: &str) {
    let path = format!("/v1/retrievers/{retriever}");
    let body = json!({"retriever_name": name});
    server.call_in(namespace, "PATCH", &path, body).await.ok();
}

both! {
    async fn looks_that_fail_are_one_execution_and_told_once(server) {
        let (namespace, _) = retriever(&server, "lacking").await;
        write(&server, &namespace, "whale").await;
        let asked = json!({
            "retriever_name": "titled", "collection_identifiers": ["things"],
            "input_schema": {"query": {"type": "text", "required": true}},
            "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"AND": [{"field": "title", "operator": "eq", "value": "{{INPUT.query}}"}]},
            }}}],
        });
        server.call_in(&namespace, "POST", "/v1/retrievers", asked).await.ok();
        let receiver = Receiver::start().await;
        let mut body = watch("lacks", "titled", &receiver.url);
        body["execution_mode"] = json!("scheduled");
        body["trigger_on"] = json!("no_results");
        let made = make(&server, &namespace, body).await;
        assert_eq!((&made["consecutive_failures"], made.get("last_execution_error")), (&json!(0), None));
        let mut alert = Value::Null;
        for times in 1..=7 {
            server.app.clock().advance(301);
            alert = failed(&server, &namespace, "lacks", times).await;
        }
        let why = alert["last_execution_error"].as_str().unwrap();
        assert!(why.contains("query") && alert.get("last_fired_at").is_none(), "{alert:#}");
        let kept = looks(&server, &namespace, "lacks").await;
        assert_eq!(kept.len(), 1, "{kept:#?}");
        let look = &kept[0];
        assert_eq!((&look["error"], &look["consecutive_failures"]), (&json!(why), &alert["consecutive_failures"]));
        assert_eq!((&look["triggered"], &look["match_count"], &look["deliveries"]), (&json!(false), &json!(0), &json!([])));
        let one = format!("/v1/alerts/executions/{}", look["execution_id"].as_str().unwrap());
        assert_eq!(get(&server, &namespace, &one).await["error"], why);
        let told = notices(&server).await;
        assert_eq!(told.len(), 1, "{told:#?}");
        assert_eq!((&told[0]["title"], &told[0]["metadata"]["alert_id"]), (&json!("Alert lacks fails"), &made["alert_id"]));
        assert!(told[0]["content"].as_str().unwrap().contains(why));
        // It is no result, and nothing was told of it.
        server.call_in(&namespace, "GET", "/v1/alerts/lacks/results", Value::Null).await.error(404, "NotFoundError");
        assert!(server.events("alert.triggered").await.is_empty());

        // Another question begins anew.
        let path = "/v1/alerts/lacks";
        let mended = server.call_in(&namespace, "PATCH", path, json!({"inputs": {"query": "seal"}})).await.ok();
        assert_eq!((&mended["consecutive_failures"], mended.get("last_execution_error")), (&json!(0), None));
        server.app.clock().advance(301);
        results(&server, &namespace, "lacks", is_delivered).await;
        let kept = looks(&server, &namespace, "lacks").await;
        assert_eq!((kept.len(), &kept[0]["triggered"], &kept[1]["error"]), (2, &json!(true), &json!(why)));
        assert_eq!(notices(&server).await.len(), 1);
    }

    async fn a_look_that_fails_changes_nothing_of_what_is_known(server) {
        let (namespace, retriever) = retriever(&server, "called").await;
        let receiver = Receiver::start().await;
        make(&server, &namespace, watch("by name", "called", &receiver.url)).await;
        write(&server, &namespace, "whale").await;
        let first = results(&server, &namespace, "by name", is_delivered).await;
        rename(&server, &namespace, &retriever, "otherwise").await;
        write(&server, &namespace, "seal").await;
        let alert = failed(&server, &namespace, "by name", 1).await;
        assert_eq!(alert["last_fired_at"], first["executed_at"]);
        assert_eq!(results(&server, &namespace, "by name", |_| true).await["execution_id"], first["execution_id"]);
        // It held before, and holds again: that is no rise.
        rename(&server, &namespace, &retriever, "called").await;
        write(&server, &namespace, "orca").await;
        let again = results(&server, &namespace, "by name", |one| one["execution_id"] != first["execution_id"]).await;
        assert_eq!((&again["triggered"], &again["match_count"]), (&json!(false), &json!(3)));
        assert_eq!(failed(&server, &namespace, "by name", 0).await["consecutive_failures"], 0);
        // The next failures are others.
        rename(&server, &namespace, &retriever, "otherwise").await;
        let path = "/v1/alerts/by%20name/execute";
        server.call_in(&namespace, "POST", path, Value::Null).await.error(404, "NotFoundError");
        let kept = looks(&server, &namespace, "by name").await;
        let errors: Vec<bool> = kept.iter().map(|one| one["error"].is_string()).collect();
        assert_eq!(errors, [true, false, true, false]);
        receiver.wait(1).await;
    }

    async fn alerts_on_a_retriever_that_is_removed_are_turned_off_and_say_why(server) {
        let (namespace, retriever) = retriever(&server, "removed").await;
        let receiver = Receiver::start().await;
        let other = json!({
            "retriever_name": "kept", "collection_identifiers": ["things"], "input_schema": {},
            "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"AND": [{"field": "title", "operator": "exists", "value": true}]},
            }}}],
        });
        server.call_in(&namespace, "POST", "/v1/retrievers", other).await.ok();
        for (name, of) in [("by id", retriever.as_str()), ("by name", "removed"), ("other", "kept"), ("off", "removed")] {
            let mut body = watch(name, of, &receiver.url);
            body["enabled"] = json!(name != "off");
            make(&server, &namespace, body).await;
        }
        let slow = json!({
            "name": "slow", "source": "system",
            "system_condition": {"type": "retriever_latency", "params": {"retriever_id": retriever}},
            "notification_config": {"channels": [{"channel_type": "webhook", "config": {"url": receiver.url}}]},
        });
        make(&server, &namespace, slow).await;
        let over = watch("over", &retriever, &receiver.url);
        let over = format!("/v1/organizations/alerts/{}", id(&server.call("POST", "/v1/organizations/alerts", over).await.ok()));
        server.call_in(&namespace, "DELETE", &format!("/v1/retrievers/{retriever}"), Value::Null).await.ok();

        let enabled = async |name: &str| get(&server, &namespace, &format!("/v1/alerts/{name}")).await["enabled"].clone();
        for (name, is_on) in [("by id", false), ("by name", false), ("slow", false), ("off", false), ("other", true)] {
            assert_eq!(enabled(name).await, is_on, "{name}");
        }
        assert_eq!(server.call("GET", &over, Value::Null).await.ok()["enabled"], false);
        // What was off already is not told.
        let changed = server.events("alert.updated").await;
        let mut changed: Vec<&str> = changed.iter().map(|one| one["payload"]["name"].as_str().unwrap()).collect();
        changed.sort_unstable();
        assert_eq!(changed, ["by id", "by name", "over", "slow"]);
        let told = notices(&server).await;
        assert_eq!(told.len(), 4, "{told:#?}");
        for one in &told {
            let content = one["content"].as_str().unwrap();
            assert!(content.starts_with("The retriever removed that it watches was removed"), "{content}");
            assert_eq!(one["metadata"]["retriever_id"], retriever);
        }
        let on = json!({"enabled": true});
        for name in ["by%20id", "slow"] {
            server.call_in(&namespace, "PATCH", &format!("/v1/alerts/{name}"), on.clone()).await.error(404, "NotFoundError");
        }
        // What else there is of it is changed all the same.
        let told = json!({"description": "off for now"});
        for name in ["by%20id", "by%20name", "slow"] {
            server.call_in(&namespace, "PATCH", &format!("/v1/alerts/{name}"), told.clone()).await.ok();
        }
        server.call("PATCH", &over, told).await.ok();
        let on = json!({"enabled": true, "retriever_id": "kept"});
        server.call_in(&namespace, "PATCH", "/v1/alerts/by%20id", on).await.ok();
    }

    async fn a_trigger_tells_a_rise_once_and_leaves_alone_what_is_off(server) {
        let (namespace, retriever) = retriever(&server, "clocked").await;
        write(&server, &namespace, "whale").await;
        let receiver = Receiver::start().await;
        let mut body = watch("clocked", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        let alert = id(&make(&server, &namespace, body).await);
        let trigger = hourly(&alert);
        let made = server.call_in(&namespace, "POST", "/v1/triggers", trigger).await.ok();
        let trigger = made["trigger_id"].as_str().unwrap();
        let fires = async |count: i64| {
            let fired = executed(&server, &namespace, trigger, count).await;
            server.app.clock().advance(3601);
            fired["last_execution_status"].clone()
        };
        for count in 1..=2 {
            assert_eq!(fires(count).await, "COMPLETED");
        }
        let off = json!({"enabled": false});
        executed(&server, &namespace, trigger, 3).await;
        server.call_in(&namespace, "PATCH", "/v1/alerts/clocked", off).await.ok();
        assert_eq!(fires(3).await, "COMPLETED");
        assert_eq!(fires(4).await, "SKIPPED");
        let kept = looks(&server, &namespace, "clocked").await;
        let mut told: Vec<&Value> = kept.iter().map(|one| &one["triggered"]).collect();
        assert_eq!(told.pop(), Some(&json!(true)));
        assert_eq!(told, [false, false]);
        receiver.wait(1).await;
        // A request is told all the same.
        assert_eq!(execute(&server, &namespace, "clocked").await["triggered"], true);
        receiver.wait(2).await;
    }
}
