//! Alerts: told once for each rise of their condition, through every channel, whatever made them look.

mod again;
mod applied;
mod channels;
mod conditions;
mod failing;
mod held;
mod over;
mod processing;
mod sending;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, other_organization, retriever},
    webhooks::Receiver,
};

pub async fn make(server: &Server, namespace: &str, body: Value) -> Value {
    server
        .call_in(namespace, "POST", "/v1/alerts", body)
        .await
        .ok()
}

pub fn id(alert: &Value) -> String {
    alert["alert_id"].as_str().unwrap().to_owned()
}

/// An alert on a retriever, told to a receiver.
pub fn watch(name: &str, retriever: &str, url: &str) -> Value {
    json!({
        "name": name, "retriever_id": retriever,
        "notification_config": {"channels": [{"channel_type": "webhook", "config": {"url": url}}]},
    })
}

async fn write(server: &Server, namespace: &str, title: &str) -> String {
    let path = "/v1/collections/things/documents";
    let body = json!({"title": title, "vectors": {"own": [1.0, 0.0, 0.0]}});
    let made = server.call_in(namespace, "POST", path, body).await.ok();
    made["document_id"].as_str().unwrap().to_owned()
}

pub async fn execute(server: &Server, namespace: &str, id: &str) -> Value {
    let path = format!("/v1/alerts/{id}/execute");
    server
        .call_in(namespace, "POST", &path, Value::Null)
        .await
        .ok()
}

/// The last look, once it satisfies.
pub async fn results(
    server: &Server,
    namespace: &str,
    id: &str,
    satisfies: impl Fn(&Value) -> bool,
) -> Value {
    let start = Instant::now();
    loop {
        let path = format!("/v1/alerts/{id}/results");
        let found = server.call_in(namespace, "GET", &path, Value::Null).await;
        if found.status == 200 && satisfies(&found.body) {
            return found.body;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub fn is_delivered(execution: &Value) -> bool {
    execution["deliveries"][0]["status"] == "delivered"
}

/// What was told, once it is that often.
async fn fired(server: &Server, count: usize) -> Vec<Value> {
    let start = Instant::now();
    loop {
        let told = server.events("alert.triggered").await;
        if told.len() >= count {
            return told;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A trigger that evaluates an alert now and every hour.
fn hourly(alert: &str) -> Value {
    json!({
        "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600, "start_immediately": true},
        "action_type": "alert_evaluation", "action_config": {"alert_id": alert},
    })
}

both! {
    async fn what_is_written_makes_alerts_look_and_each_rise_is_told_once(server) {
        let (namespace, retriever) = retriever(&server, "watched").await;
        let receiver = Receiver::start().await;
        let made = make(&server, &namespace, watch("anything", &retriever, &receiver.url)).await;
        let id = id(&made);
        assert!(id.starts_with("alt_"));
        assert_eq!(
            [&made["source"], &made["trigger_on"], &made["min_count"], &made["execution_mode"], &made["enabled"]],
            [&json!("retriever"), &json!("results"), &json!(1), &json!("on_ingest"), &json!(true)]
        );
        let document = write(&server, &namespace, "whale").await;
        let seen = results(&server, &namespace, &id, is_delivered).await;
        assert_eq!((&seen["triggered"], &seen["source_documents"]), (&json!(true), &json!([document])));
        let messages = receiver.wait(1).await;
        let told: Value = serde_json::from_slice(&messages[0].1).unwrap();
        assert_eq!((&told["event_type"], &told["alert_id"]), (&json!("alert.triggered"), &json!(id)));
        assert_eq!((&told["match_count"], &told["matches"][0]["document_id"]), (&seen["match_count"], &seen["matches"][0]["document_id"]));
        assert!(messages[0].0.contains_key("webhook-id"));

        // It holds already: another document is no news.
        write(&server, &namespace, "dolphin").await;
        let again = results(&server, &namespace, &id, |one| one["execution_id"] != seen["execution_id"]).await;
        assert_eq!((&again["triggered"], &again["deliveries"]), (&json!(false), &json!([])));
        receiver.wait(1).await;
        let shown = server.call_in(&namespace, "GET", "/v1/alerts/anything", Value::Null).await.ok();
        assert_eq!(shown["last_fired_at"], seen["executed_at"]);
        for (kind, count) in [("alert.created", 1), ("alert.triggered", 1), ("alert.execution.completed", 2)] {
            assert_eq!(server.events(kind).await.len(), count, "{kind}");
        }
        let notes = server.call("POST", "/v1/notifications/list", json!({"notification_type": "custom"})).await.ok();
        assert_eq!((&notes["total"], &notes["results"][0]["metadata"]["alert_id"]), (&json!(1), &json!(id)));
    }

    async fn after_long_looks_alerts_rest_and_then_look_at_all_that_was_written(server) {
        let (namespace, retriever) = retriever(&server, "watched").await;
        let receiver = Receiver::start().await;
        let id = id(&make(&server, &namespace, watch("anything", &retriever, &receiver.url)).await);
        server.app.clock().hold();
        write(&server, &namespace, "whale").await;
        let first = results(&server, &namespace, &id, is_delivered).await;
        // Three seconds long, so that they rest for ten.
        let lengthen = server.app.db().write(|tx| {
            Box::pin(tx.run("UPDATE tasks SET created_at = created_at - 3000000 WHERE kind = 'alert_ingest'", vec![]))
        });
        assert_eq!(lengthen.await.unwrap(), 1);
        let written = [write(&server, &namespace, "dolphin").await, write(&server, &namespace, "orca").await];
        for seconds in [0, 9] {
            server.app.clock().advance(seconds);
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let seen = results(&server, &namespace, &id, |_| true).await;
            assert_eq!(seen["execution_id"], first["execution_id"], "{seconds}");
        }
        server.app.clock().advance(2);
        let next = results(&server, &namespace, &id, |one| one["execution_id"] != first["execution_id"]).await;
        assert_eq!(next["source_documents"], json!(written));
    }

    async fn a_rest_is_kept_on_every_path_and_what_stands_is_told_again_when_asked(server) {
        let (namespace, retriever) = retriever(&server, "rested").await;
        let receiver = Receiver::start().await;
        write(&server, &namespace, "whale").await;
        let mut body = watch("rests", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        body["cooldown_seconds"] = json!(600);
        let id = id(&make(&server, &namespace, body).await);
        assert_eq!(execute(&server, &namespace, &id).await["triggered"], true);
        assert_eq!(execute(&server, &namespace, &id).await["triggered"], false);
        server.app.clock().advance(601);
        assert_eq!(execute(&server, &namespace, &id).await["triggered"], true);
        receiver.wait(2).await;

        // By the clock, what stands is told once, and again only where that is asked for.
        let mut body = watch("stands", &retriever, &receiver.url);
        body["execution_mode"] = json!("scheduled");
        let path = format!("/v1/alerts/{}", self::id(&make(&server, &namespace, body).await));
        let id = path.rsplit('/').next().unwrap();
        server.app.clock().advance(301);
        results(&server, &namespace, id, is_delivered).await;
        receiver.wait(3).await;
        server.app.clock().advance(301);
        results(&server, &namespace, id, |one| one["triggered"] == false).await;
        server.call_in(&namespace, "PATCH", &path, json!({"renotify_interval_seconds": 60})).await.ok();
        server.app.clock().advance(301);
        results(&server, &namespace, id, is_delivered).await;
        receiver.wait(4).await;
        // Null takes it away, and what else may not be there.
        assert_eq!(server.call_in(&namespace, "PATCH", &path, json!({"renotify_interval_seconds": 59})).await.status, 422);
        let threshold = json!({"field": "score", "operator": "gte", "value": 0});
        let set = json!({"description": "a rest", "threshold": threshold, "metadata": {"team": "night"}});
        let set = server.call_in(&namespace, "PATCH", &path, set).await.ok();
        assert_eq!((&set["threshold"], &set["renotify_interval_seconds"]), (&threshold, &json!(60)));
        let none = json!({"description": null, "threshold": null, "renotify_interval_seconds": null, "inputs": null, "metadata": null});
        let none = server.call_in(&namespace, "PATCH", &path, none).await.ok();
        for member in ["description", "threshold", "renotify_interval_seconds"] {
            assert_eq!(none[member], Value::Null, "{none:#}");
        }
        assert_eq!((&set["metadata"]["team"], &none["metadata"]["team"]), (&json!("night"), &Value::Null), "{none:#}");
    }

    async fn no_results_thresholds_and_least_counts_decide(server) {
        let (namespace, retriever) = retriever(&server, "decided").await;
        let make_one = async |name: &str, more: Value| {
            let mut body = json!({
                "name": name, "retriever_id": retriever, "execution_mode": "on_demand",
                "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
            });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            id(&make(&server, &namespace, body).await)
        };
        let nothing = make_one("nothing", json!({"trigger_on": "no_results"})).await;
        let two = make_one("two", json!({"min_count": 2})).await;
        let titled = make_one("titled", json!({"threshold": {"field": "title", "operator": "eq", "value": "whale"}})).await;
        let found = execute(&server, &namespace, &nothing).await;
        assert_eq!((&found["triggered"], &found["match_count"]), (&json!(true), &json!(0)));
        // No mail server is configured: that is told, and is no failure of the alert.
        let told = results(&server, &namespace, &nothing, |one| one["deliveries"][0]["status"] != "deferred").await;
        assert_eq!(told["deliveries"][0]["status"], "not_configured");
        assert!(told["deliveries"][0]["error"].as_str().unwrap().contains("no mail server"));

        write(&server, &namespace, "whale").await;
        assert_eq!(execute(&server, &namespace, &nothing).await["triggered"], false);
        assert_eq!(execute(&server, &namespace, &two).await["triggered"], false);
        assert_eq!(execute(&server, &namespace, &titled).await["triggered"], true);
        write(&server, &namespace, "whale").await;
        assert_eq!(execute(&server, &namespace, &two).await["triggered"], true);
        // Turned around, it takes as little as one that is made so.
        let path = format!("/v1/alerts/{nothing}");
        let around = server.call_in(&namespace, "PATCH", &path, json!({"trigger_on": "results"})).await.ok();
        assert_eq!(around["min_count"], 1, "{around:#}");
    }

    async fn documents_map_to_inputs_and_each_asks_for_itself(server) {
        let (namespace, _) = retriever(&server, "mapped").await;
        let asked = json!({
            "retriever_name": "titled", "collection_identifiers": ["things"],
            "input_schema": {"query": {"type": "text", "required": true}},
            "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
                "conditions": {"AND": [{"field": "title", "operator": "eq", "value": "{{INPUT.query}}"}]},
            }}}],
        });
        let asked = server.call_in(&namespace, "POST", "/v1/retrievers", asked).await.ok();
        let retriever = asked["retriever_id"].as_str().unwrap();
        let receiver = Receiver::start().await;
        let mut body = watch("like it", retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        let id = id(&make(&server, &namespace, body).await);
        let applied = json!({"alert_applications": [{"alert_id": id, "execution_mode": "on_ingest", "input_mappings": [
            {"input_key": "query", "source": {"source_type": "document_field", "path": "title"}},
        ]}]});
        let collection = server.call_in(&namespace, "PATCH", "/v1/collections/things", applied.clone()).await.ok();
        assert_eq!(collection["alert_applications"][0]["alert_id"], json!(id));
        let mut unknown = applied.clone();
        unknown["alert_applications"][0]["alert_id"] = json!("alt_none");
        server.call_in(&namespace, "PATCH", "/v1/collections/things", unknown).await.error(404, "NotFoundError");

        let first = write(&server, &namespace, "dolphin").await;
        results(&server, &namespace, &id, |one| one["source_documents"] == json!([first]) && is_delivered(one)).await;
        let second = write(&server, &namespace, "seal").await;
        results(&server, &namespace, &id, |one| one["source_documents"] == json!([second]) && is_delivered(one)).await;
        let messages = receiver.wait(2).await;
        let told: Value = serde_json::from_slice(&messages[1].1).unwrap();
        assert_eq!((&told["match_count"], &told["matches"][0]["document_id"]), (&json!(1), &json!(second)));
    }

    async fn looks_at_once_fire_once(server) {
        let (namespace, retriever) = retriever(&server, "together").await;
        let receiver = Receiver::start().await;
        write(&server, &namespace, "whale").await;
        let mut body = watch("once", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        body["cooldown_seconds"] = json!(600);
        let id = id(&make(&server, &namespace, body).await);
        // No more than a busy machine searches at once without refusing any.
        let looks = futures::future::join_all((0..3).map(|_| execute(&server, &namespace, &id))).await;
        assert_eq!(looks.iter().filter(|look| look["triggered"] == true).count(), 1, "{looks:?}");
        receiver.wait(1).await;
    }

    async fn an_organization_watches_its_namespaces(server) {
        let (namespace, retriever) = retriever(&server, "over").await;
        let body = json!({
            "name": "empty somewhere", "source": "system", "system_condition": {"type": "collection_empty"},
            "namespace_selector": {"mode": "selected", "namespace_ids": [namespace]},
            "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
        });
        let made = server.call("POST", "/v1/organizations/alerts", body).await.ok();
        assert_eq!((&made["namespace_id"], &made["namespace_selector"]["mode"]), (&Value::Null, &json!("selected")));
        server.app.clock().advance(301);
        fired(&server, 1).await;
        // It is not an alert of the namespace.
        let path = format!("/v1/alerts/{}", id(&made));
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        let all = server.call("GET", "/v1/organizations/alerts", Value::Null).await.ok();
        assert_eq!((&all["total_count"], &all["stats"]["enabled_alerts"]), (&json!(1), &json!(1)));

        // An alert of a namespace watches no other; nor does one of another organization.
        let mut body = watch("too far", &retriever, "http://127.0.0.2:4321/");
        body["namespace_selector"] = json!({"mode": "all"});
        server.call_in(&namespace, "POST", "/v1/alerts", body).await
            .invalid(&["body", "namespace_selector", "mode"], "value_error");
        let other = other_organization(&server).await;
        let mut body = watch("theirs", &retriever, "http://127.0.0.2:4321/");
        Server::send(server.request("POST", "/v1/organizations/alerts").bearer_auth(&other.key).json(&body)).await.error(404, "NotFoundError");
        body["retriever_id"] = Value::Null;
        server.call_in(&namespace, "POST", "/v1/alerts", body).await.invalid(&["body", "retriever_id"], "missing");
        let mut inside = watch("inside", &retriever, "http://169.254.169.254/latest");
        server.call_in(&namespace, "POST", "/v1/alerts", inside.clone()).await
            .invalid(&["body", "notification_config", "channels", "0", "config", "url"], "value_error");
        channels::none_is_taken_that_leads_nowhere(&server, &namespace, &inside).await;
        let mut from_elsewhere = inside.clone();
        from_elsewhere["notification_config"]["template_id"] = json!("tmpl_1");
        server.call_in(&namespace, "POST", "/v1/alerts", from_elsewhere).await
            .invalid(&["body", "notification_config", "template_id"], "not_enabled");
        inside["notification_config"]["channels"][0]["channel_type"] = json!("pigeon");
        server.call_in(&namespace, "POST", "/v1/alerts", inside).await
            .invalid(&["body", "notification_config", "channels", "0", "channel_type"], "enum");
    }

    async fn a_trigger_evaluates_an_alert(server) {
        let (namespace, retriever) = retriever(&server, "clocked").await;
        write(&server, &namespace, "whale").await;
        let receiver = Receiver::start().await;
        let mut body = watch("clocked", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        let alert = id(&make(&server, &namespace, body).await);
        let trigger = hourly(&alert);
        let made = server.call_in(&namespace, "POST", "/v1/triggers", trigger.clone()).await.ok();
        results(&server, &namespace, &alert, is_delivered).await;
        receiver.wait(1).await;
        let gone = server.call_in(&namespace, "DELETE", &format!("/v1/alerts/{alert}"), Value::Null).await.ok();
        assert_eq!(gone["success"], true);
        server.call_in(&namespace, "POST", "/v1/triggers", trigger).await.error(404, "NotFoundError");
        assert!(made["trigger_id"].is_string());
    }
}
