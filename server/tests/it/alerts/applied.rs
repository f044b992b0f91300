//! Alerts that a collection applies by the clock.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{id, is_delivered, make, results, watch, write};
use crate::{
    both,
    harness::{Server, retriever},
    webhooks::Receiver,
};

/// A retriever of what is in a collection by its title.
pub(super) async fn titled(server: &Server, namespace: &str, collection: &str) -> String {
    let asked = json!({
        "retriever_name": "titled", "collection_identifiers": [collection],
        "input_schema": {"query": {"type": "text", "required": true}},
        "stages": [{"stage_name": "all", "stage_type": "filter", "config": {"stage_id": "attribute_filter", "parameters": {
            "conditions": {"AND": [{"field": "title", "operator": "eq", "value": "{{INPUT.query}}"}]},
        }}}],
    });
    let made = server
        .call_in(namespace, "POST", "/v1/retrievers", asked)
        .await
        .ok();
    made["retriever_id"].as_str().unwrap().to_owned()
}

/// Lets the collection apply an alert by the clock, with the query from this source; answers the collection's id.
async fn apply(server: &Server, namespace: &str, alert: &str, source: Value) -> String {
    let applied = json!({"alert_applications": [
        {"alert_id": alert, "execution_mode": "scheduled", "input_mappings": [{"input_key": "query", "source": source}]},
    ]});
    let path = "/v1/collections/things";
    let changed = server.call_in(namespace, "PATCH", path, applied).await.ok();
    assert_eq!(
        changed["alert_applications"][0]["execution_mode"],
        "scheduled"
    );
    changed["collection_id"].as_str().unwrap().to_owned()
}

/// Waits until what was written waits for the clock.
async fn waits(server: &Server, count: i64) {
    let waiting = "SELECT CAST(COUNT(*) AS BIGINT) FROM tasks WHERE kind = 'alert_gathered' AND status = 'QUEUED'";
    let start = Instant::now();
    while server.app.db().number(waiting, vec![]).await.unwrap() < count {
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "nothing waits for the clock"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The looks of an alert, once they satisfy.
async fn looks(
    server: &Server,
    namespace: &str,
    id: &str,
    satisfy: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let start = Instant::now();
    loop {
        let path = format!("/v1/alerts/{id}/executions?limit=100");
        let page = server.call_in(namespace, "GET", &path, Value::Null).await;
        let looks = page.ok()["results"].as_array().unwrap().clone();
        if satisfy(&looks) {
            return looks;
        }
        assert!(start.elapsed() < Duration::from_secs(180), "{looks:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn fired(look: &Value) -> bool {
    look["triggered"] == true
}

both! {
    async fn what_was_written_is_looked_at_at_the_next_moment(server) {
        server.app.clock().hold();
        let (namespace, _) = retriever(&server, "gathered").await;
        let retriever = titled(&server, &namespace, "things").await;
        let receiver = Receiver::start().await;
        let mut body = watch("like it", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        let id = id(&make(&server, &namespace, body).await);
        // By itself it has no query to ask with, which is told.
        let ask = format!("/v1/alerts/{id}/execute");
        assert_eq!(server.call_in(&namespace, "POST", &ask, Value::Null).await.status, 422);
        assert_eq!(server.events("alert.execution.failed").await.len(), 1);
        apply(&server, &namespace, &id, json!({"source_type": "document_field", "path": "title"})).await;
        let document = write(&server, &namespace, "dolphin").await;
        waits(&server, 1).await;
        let path = format!("/v1/alerts/{id}/results");
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        server.app.clock().advance(301);
        let look = results(&server, &namespace, &id, is_delivered).await;
        assert_eq!((&look["source_documents"], &look["match_count"]), (&json!([document]), &json!(1)), "{look:#}");
        receiver.wait(1).await;
    }

    async fn inputs_without_a_document_are_asked_at_every_moment(server) {
        server.app.clock().hold();
        let (namespace, _) = retriever(&server, "constant").await;
        let retriever = titled(&server, &namespace, "things").await;
        let receiver = Receiver::start().await;
        let mut body = watch("whales", &retriever, &receiver.url);
        body["execution_mode"] = json!("on_demand");
        let id = id(&make(&server, &namespace, body).await);
        let collection = apply(&server, &namespace, &id, json!({"source_type": "constant", "value": "whale"})).await;
        write(&server, &namespace, "whale").await;
        server.app.clock().advance(301);
        // The moment that the server began with may have found it already.
        let all = looks(&server, &namespace, &id, |all| all.iter().any(fired)).await;
        let look = all.iter().find(|one| fired(one)).unwrap();
        assert_eq!((&look["collection_id"], &look["match_count"]), (&json!(collection), &json!(1)), "{look:#}");
        receiver.wait(1).await;
        // It holds still, which is no news.
        server.app.clock().advance(301);
        let more = looks(&server, &namespace, &id, |now| now.len() > all.len()).await;
        assert_eq!(more.iter().filter(|one| fired(one)).count(), 1, "{more:#?}");
        receiver.wait(1).await;
    }
}
