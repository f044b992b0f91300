//! Alerts of the organization: looked into, run, and evaluated by triggers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::id;
use crate::{
    both,
    harness::{Server, other_organization, retriever},
};

const ALERTS: &str = "/v1/organizations/alerts";

/// An alert on empty collections anywhere that looks when it is asked to; answers its address.
async fn empty_somewhere(server: &Server) -> String {
    let body = json!({
        "name": "somewhere", "source": "system", "system_condition": {"type": "collection_empty"}, "execution_mode": "on_demand",
        "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
    });
    let made = server.call("POST", ALERTS, body).await.ok();
    assert_eq!(made["execution_mode"], "on_demand");
    format!("{ALERTS}/{}", id(&made))
}

async fn get(server: &Server, path: &str) -> Value {
    server.call("GET", path, Value::Null).await.ok()
}

/// Ids of the looks on a page.
fn looks(page: &Value) -> Vec<&str> {
    let looks = page["results"].as_array().unwrap().iter();
    looks
        .map(|one| one["execution_id"].as_str().unwrap())
        .collect()
}

both! {
    async fn an_alert_of_the_organization_is_run_and_looked_into(server) {
        let (namespace, _) = retriever(&server, "looked").await;
        let path = empty_somewhere(&server).await;
        server.call("GET", &format!("{path}/results"), Value::Null).await.error(404, "NotFoundError");
        assert!(looks(&get(&server, &format!("{path}/executions")).await).is_empty());

        let found = server.call("POST", &format!("{path}/execute"), Value::Null).await.ok();
        assert_eq!((&found["triggered"], &found["match_count"]), (&json!(true), &json!(1)), "{found:#}");
        let look = found["execution_id"].as_str().unwrap();
        for list in [format!("{path}/executions"), format!("{ALERTS}/somewhere/executions"), format!("{ALERTS}/executions")] {
            assert_eq!(looks(&get(&server, &list).await), [look], "{list}");
        }
        for one in [format!("{path}/results"), format!("{ALERTS}/executions/{look}")] {
            assert_eq!(get(&server, &one).await["execution_id"], look, "{one}");
        }
        let shown = get(&server, &path).await;
        assert_eq!(shown["last_fired_at"], found["executed_at"]);
        // It is of no namespace, and tells in which ones it found something.
        let fired = server.events("alert.triggered").await;
        let notes = server.call("POST", "/v1/notifications/list", json!({"notification_type": "system_alert"})).await.ok();
        let note = &notes["results"][0]["metadata"];
        for (told, of) in [(&fired[0]["payload"], fired[0].get("namespace_id")), (note, note.get("namespace_id").filter(|id| !id.is_null()))] {
            assert_eq!((&told["namespace_ids"], of), (&json!([namespace]), None), "{told:#}");
        }

        // The namespace has none of it, and another organization neither.
        let inside = async |method: &str, path: String| server.call_in(&namespace, method, &path, Value::Null).await;
        inside("GET", format!("/v1/alerts/executions/{look}")).await.error(404, "NotFoundError");
        inside("POST", "/v1/alerts/somewhere/execute".into()).await.error(404, "NotFoundError");
        let all = inside("GET", "/v1/alerts/executions".into()).await.ok();
        assert!(looks(&all).is_empty());
        let other = other_organization(&server).await;
        let theirs = async |method: &str, path: &str| Server::send(server.request(method, path).bearer_auth(&other.key)).await;
        for (method, path) in [
            ("POST", format!("{path}/execute")), ("GET", format!("{path}/executions")), ("GET", format!("{path}/results")),
            ("GET", format!("{ALERTS}/executions/{look}")),
        ] {
            theirs(method, &path).await.error(404, "NotFoundError");
        }
        let all = theirs("GET", &format!("{ALERTS}/executions")).await.ok();
        assert!(looks(&all).is_empty());

        // Its looks go with it.
        server.call("DELETE", &path, Value::Null).await.ok();
        server.call("GET", &format!("{ALERTS}/executions/{look}"), Value::Null).await.error(404, "NotFoundError");
    }

    async fn a_snoozed_alert_looks_and_tells_nobody(server) {
        retriever(&server, "snoozed").await;
        let path = empty_somewhere(&server).await;
        let patch = async |until: Value| server.call("PATCH", &path, json!({"snoozed_until": until})).await;
        let execute = async || server.call("POST", &format!("{path}/execute"), Value::Null).await.ok()["triggered"].clone();
        let at = |seconds: i64| json!(server.app.clock().now() + chrono::Duration::seconds(seconds));
        patch(at(-1)).await.invalid(&["body", "snoozed_until"], "value_error");
        let set = patch(at(3600)).await.ok();
        assert!(set["snoozed_until"].is_string(), "{set:#}");
        assert_eq!(execute().await, false);
        assert_eq!(looks(&get(&server, &format!("{path}/executions")).await).len(), 1);
        server.app.clock().advance(3601);
        assert_eq!(execute().await, true);
        // Null ends it.
        patch(at(3600)).await.ok();
        assert_eq!(execute().await, false);
        assert_eq!(patch(Value::Null).await.ok()["snoozed_until"], Value::Null);
        assert_eq!(execute().await, true);
        assert_eq!(server.events("alert.triggered").await.len(), 2);
    }

    async fn a_namespace_that_is_removed_is_selected_no_more(server) {
        let (one, two) = (server.namespace("one").await, server.namespace("two").await);
        let body = |name: &str, selector: Value| json!({
            "name": name, "source": "system", "system_condition": {"type": "collection_empty"}, "execution_mode": "on_demand",
            "namespace_selector": selector, "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
        });
        // A name would be taken, and watch nothing.
        let named = body("named", json!({"mode": "selected", "namespace_ids": ["one"]}));
        server.call("POST", ALERTS, named).await.error(404, "NotFoundError");
        let made = server.call("POST", ALERTS, body("some", json!({"mode": "selected", "namespace_ids": [one, two]}))).await.ok();
        let some = format!("{ALERTS}/{}", id(&made));
        let made = server.call("POST", ALERTS, body("all", json!({"mode": "all"}))).await.ok();
        let all = format!("{ALERTS}/{}", id(&made));
        let remove = async |namespace: &str| {
            server.call("DELETE", &format!("/v1/namespaces/{namespace}"), Value::Null).await.ok();
        };
        let patch = async |path: &str, body: Value| server.call("PATCH", path, body).await;

        remove(&one).await;
        let left = get(&server, &some).await;
        assert_eq!((&left["namespace_selector"]["namespace_ids"], &left["enabled"]), (&json!([two]), &json!(true)));
        assert_eq!(patch(&some, json!({"description": "what is left"})).await.ok()["namespace_selector"], left["namespace_selector"]);
        assert_eq!(server.events("alert.updated").await.len(), 2);

        remove(&two).await;
        let left = get(&server, &some).await;
        assert_eq!((&left["namespace_selector"], &left["enabled"]), (&json!({"mode": "selected"}), &json!(false)));
        patch(&some, json!({"name": "none"})).await.ok();
        let path = ["body", "namespace_selector", "namespace_ids"];
        patch(&some, json!({"enabled": true})).await.invalid(&path, "value_error");
        let on = patch(&some, json!({"enabled": true, "namespace_selector": {"mode": "all"}})).await.ok();
        assert_eq!(on["enabled"], true);
        // One that watches all goes on.
        let others = get(&server, &all).await;
        assert_eq!((&others["enabled"], &others["created_at"]), (&json!(true), &others["updated_at"]));
    }

    async fn a_change_brings_no_namespace_back_that_is_removed_meanwhile(server) {
        let kept = server.namespace("kept").await;
        let selected = |ids: &[&str]| json!({"mode": "selected", "namespace_ids": ids});
        let made = server.call("POST", ALERTS, json!({
            "name": "some", "source": "system", "system_condition": {"type": "collection_empty"}, "execution_mode": "on_demand",
            "namespace_selector": selected(&[&kept]), "notification_config": {"channels": [{"channel_type": "email", "config": {"to_addresses": ["a@example.com"]}}]},
        })).await.ok();
        let some = format!("{ALERTS}/{}", id(&made));
        for round in 0..10 {
            let gone = server.namespace(&format!("gone{round}")).await;
            let both = json!({"namespace_selector": selected(&[&kept, &gone])});
            server.call("PATCH", &some, both.clone()).await.ok();
            let path = format!("/v1/namespaces/{gone}");
            let (again, told, removed) = tokio::join!(
                server.call("PATCH", &some, both),
                server.call("PATCH", &some, json!({"description": format!("round {round}")})),
                server.call("DELETE", &path, Value::Null),
            );
            assert!([200, 404].contains(&again.status), "{:#}", again.body);
            told.ok();
            removed.ok();
            let left = get(&server, &some).await;
            assert_eq!(left["namespace_selector"]["namespace_ids"], json!([kept]), "{round}");
            assert_eq!(left["description"], json!(format!("round {round}")));
        }
    }

    async fn a_trigger_evaluates_an_alert_of_the_organization(server) {
        let (namespace, _) = retriever(&server, "clocked").await;
        let path = empty_somewhere(&server).await;
        let trigger = json!({
            "trigger_type": "interval", "schedule_config": {"interval_seconds": 3600, "start_immediately": true},
            "action_type": "alert_evaluation", "action_config": {"alert_id": path.rsplit('/').next()},
        });
        // To who may not look at the organization's alerts there is none.
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let writer = server.call("POST", keys, json!({"name": "writer", "permissions": ["write"]})).await.ok();
        let request = server.request("POST", "/v1/triggers").bearer_auth(writer["key"].as_str().unwrap());
        Server::send(request.header("X-Namespace", &namespace).json(&trigger)).await.error(404, "NotFoundError");

        server.call_in(&namespace, "POST", "/v1/triggers", trigger.clone()).await.ok();
        let start = Instant::now();
        while looks(&get(&server, &format!("{path}/executions")).await).is_empty() {
            assert!(start.elapsed() < Duration::from_secs(180), "the trigger does not evaluate it");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(get(&server, &format!("{path}/results")).await["triggered"], true);
        server.call("DELETE", &path, Value::Null).await.ok();
        server.call_in(&namespace, "POST", "/v1/triggers", trigger).await.error(404, "NotFoundError");
    }
}
