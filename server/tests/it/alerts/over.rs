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
        "notification_config": {"channels": [{"channel_type": "email", "config": {}}]},
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
