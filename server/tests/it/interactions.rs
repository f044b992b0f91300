//! Interactions: what people did with results, told by callers and by pages.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Server, retriever},
};

const PATH: &str = "/v1/retrievers/interactions";

fn click(document: &str) -> Value {
    json!({"feature_id": document, "interaction_type": ["click"], "position": 1})
}

fn with(mut interaction: Value, members: Value) -> Value {
    let members = members.as_object().unwrap().clone();
    interaction.as_object_mut().unwrap().extend(members);
    interaction
}

fn documents(list: &Value) -> Vec<&str> {
    let rows = list["results"].as_array().unwrap();
    rows.iter()
        .map(|one| one["feature_id"].as_str().unwrap())
        .collect()
}

both! {
    async fn what_was_done_is_kept_found_and_forgotten(server) {
        let (namespace, id) = retriever(&server, "films").await;
        let post = async |body: Value| server.call_in(&namespace, "POST", PATH, body).await;
        let linked = json!({"retriever_id": "films", "query_snapshot": {"inputs": {"query": "whales"}}, "document_score": 0.75,
            "result_set_size": 10, "metadata": {"device": "phone"}, "interaction_type": ["positive_feedback", "click", "click"]});
        let made = post(with(click("doc_1"), linked)).await.ok();
        assert_eq!((&made["retriever_id"], &made["deduplicated"], &made["warning"]), (&json!(id), &json!(false), &Value::Null));
        assert_eq!(made["interaction_type"], json!(["click", "positive_feedback"]));
        assert!(made["occurred_at"].is_string() && made["timestamp"].is_string());
        let path = format!("{PATH}/{}", made["interaction_id"].as_str().unwrap());
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok(), made);
        let loose = post(click("doc_2")).await.ok();
        assert!(loose["warning"].as_str().unwrap().contains("execution_id"));
        // Nobody acts in the future.
        let ahead = post(with(click("doc_3"), json!({"occurred_at": "2999-01-01T00:00:00Z"}))).await.ok();
        assert!(ahead["occurred_at"].as_str().unwrap().starts_with("20"), "{ahead:#}");

        let list = async |query: &str, body: Value| server.call_in(&namespace, "POST", &format!("{PATH}/list{query}"), body).await;
        let all = list("?include_total=true", json!({})).await.ok();
        assert_eq!((documents(&all).len(), &all["pagination"]["total"], &all["items"]), (3, &json!(3), &all["results"]));
        assert_eq!(documents(&list("", json!({"retriever_id": "films"})).await.ok()), ["doc_1"]);
        assert_eq!(documents(&list("", json!({"interaction_type": "positive_feedback"})).await.ok()), ["doc_1"]);
        assert_eq!(documents(&list("", json!({"interaction_type": "view"})).await.ok()), Vec::<&str>::new());
        assert_eq!(documents(&list("", json!({"feature_id": "doc_2"})).await.ok()), ["doc_2"]);
        let sorted = json!({"sort": {"field": "feature_id", "direction": "asc"}});
        assert_eq!(documents(&list("", sorted).await.ok()), ["doc_1", "doc_2", "doc_3"]);
        let filtered = json!({"filters": {"AND": [{"field": "metadata.device", "operator": "eq", "value": "phone"}]}});
        assert_eq!(documents(&list("", filtered).await.ok()), ["doc_1"]);
        list("", json!({"interaction_type": "stare"})).await.invalid(&["body", "interaction_type"], "enum");

        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        server.call_in(&namespace, "GET", &path, Value::Null).await.error(404, "NotFoundError");
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.error(404, "NotFoundError");
        // Another namespace has none of it.
        let elsewhere = server.namespace("elsewhere").await;
        assert_eq!(documents(&server.call_in(&elsewhere, "POST", &format!("{PATH}/list"), json!({})).await.ok()), Vec::<&str>::new());
    }

    async fn lists_look_at_every_interaction(server) {
        let (namespace, _) = retriever(&server, "films").await;
        let post = async |body: Value| server.call_in(&namespace, "POST", PATH, body).await.ok();
        post(with(click("doc_1"), json!({"position": 7, "user_id": "ann"}))).await;
        post(click("doc_2")).await;
        // So many others that the first one is far behind them.
        for round in 0..14 {
            let double = "INSERT INTO interactions (interaction_id, namespace_id, retriever_id, execution_id, feature_id, user_id, session_id, public_id, kinds, fingerprint, occurred_at, created_at, data) SELECT interaction_id || $1, namespace_id, retriever_id, execution_id, feature_id, user_id, session_id, public_id, kinds, fingerprint || $1, occurred_at, created_at + 1, data FROM interactions WHERE feature_id = 'doc_2'";
            let name = format!("-{round}");
            let doubled = server.app.db().write(move |tx| Box::pin(async move { tx.run(double, loupe_server::args![name]).await }));
            assert_eq!(doubled.await.unwrap(), 1 << round);
        }
        let list = async |query: &str, body: Value| server.call_in(&namespace, "POST", &format!("{PATH}/list{query}"), body).await.ok();
        let filter = |field: &str, value: Value| json!({"filters": {"AND": [{"field": field, "operator": "eq", "value": value}]}});
        assert_eq!(documents(&list("", filter("position", json!(7))).await), ["doc_1"]);
        assert_eq!(documents(&list("", filter("user_id", json!("ann"))).await), ["doc_1"]);
        assert_eq!(documents(&list("?limit=1", json!({"sort": {"field": "position", "direction": "desc"}})).await), ["doc_1"]);
        let all = list("?limit=1&include_total=true", filter("feature_id", json!("doc_2"))).await;
        assert_eq!((documents(&all), &all["pagination"]["total"]), (vec!["doc_2"], &json!(1 << 14)));
    }

    async fn what_is_told_twice_is_kept_once(server) {
        let (namespace, _) = retriever(&server, "films").await;
        let post = async |body: Value| server.call_in(&namespace, "POST", PATH, body).await.ok();
        let who = json!({"execution_id": "exec_1", "session_id": "s1"});
        let first = post(with(click("doc_1"), who.clone())).await;
        let again = post(with(click("doc_1"), who.clone())).await;
        assert_eq!((&again["interaction_id"], &again["deduplicated"]), (&first["interaction_id"], &json!(true)));
        // Somebody else, another execution, another act: each is one of its own.
        for other in [json!({"session_id": "s2"}), json!({"execution_id": "exec_2"}), json!({"interaction_type": ["purchase"]}), json!({"position": 2})] {
            assert_eq!(post(with(with(click("doc_1"), who.clone()), other)).await["deduplicated"], false);
        }
        // Nobody knows whether two clicks of nobody are one.
        post(click("doc_1")).await;
        assert_eq!(post(click("doc_1")).await["deduplicated"], false);
        let bulk = json!({"interactions": [with(click("doc_1"), who), click("doc_2"), with(click("doc_3"), json!({"retriever_id": "nothing"}))]});
        let bulk = server.call_in(&namespace, "POST", &format!("{PATH}/batch"), bulk).await.ok();
        assert_eq!((&bulk["created"], &bulk["failed"]), (&json!(1), &json!(1)), "{bulk:#}");
        let told: Vec<_> = bulk["results"].as_array().unwrap().iter().map(|one| (one["index"].as_i64().unwrap(), one["status"].as_str().unwrap())).collect();
        assert_eq!(told, [(0, "deduplicated"), (1, "created")]);
        assert!(bulk["errors"][0].as_str().unwrap().starts_with("interaction 2:"));
    }

    async fn what_is_no_interaction_is_refused(server) {
        let (namespace, id) = retriever(&server, "films").await;
        let post = async |body: Value| server.call_in(&namespace, "POST", PATH, body).await;
        post(json!({"feature_id": "", "interaction_type": ["click"], "position": 0})).await.invalid(&["body", "feature_id"], "string_too_short");
        post(json!({"feature_id": "d", "interaction_type": [], "position": 0})).await.invalid(&["body", "interaction_type"], "too_short");
        post(json!({"feature_id": "d", "interaction_type": ["stare"], "position": 0})).await.invalid(&["body", "interaction_type", "0"], "enum");
        post(json!({"feature_id": "d", "interaction_type": ["click"], "position": -1})).await.invalid(&["body", "position"], "greater_than_equal");
        post(with(click("d"), json!({"metadata": {"text": "x".repeat(20_000)}}))).await.invalid(&["body", "metadata"], "too_long");
        post(with(click("d"), json!({"retriever_id": "unknown"}))).await.error(404, "NotFoundError");
        let many: Vec<Value> = (0..1001).map(|_| click("d")).collect();
        server.call_in(&namespace, "POST", &format!("{PATH}/batch"), json!({"interactions": many})).await.invalid(&["body", "interactions"], "too_long");
        // A key for one retriever tells of that one.
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let scopes = json!([{"resource_type": "retriever", "resource_id": id}]);
        let key = server.call("POST", keys, json!({"name": "one", "permissions": ["write"], "scopes": scopes})).await.ok();
        let tell = async |body: Value| {
            let request = server.request("POST", PATH).bearer_auth(key["key"].as_str().unwrap()).header("x-namespace", &namespace);
            Server::send(request.json(&body)).await
        };
        tell(with(click("d"), json!({"retriever_id": id}))).await.ok();
        tell(click("d")).await.error(403, "ForbiddenError");
    }

    async fn pages_tell_what_their_visitors_do(server) {
        let (namespace, id) = retriever(&server, "films").await;
        let publish = format!("/v1/retrievers/{id}/publish");
        server.call_in(&namespace, "POST", &publish, json!({"public_name": "films"})).await.ok();
        let path = "/v1/public/retrievers/films/interactions";
        let visitor = |path: &str, body: Value| server.request("POST", path).header("x-session-id", "visit-1").json(&body);
        let sent = json!({"document_id": "doc_1", "interaction_type": ["click"], "position": 0, "execution_id": "exec_1"});
        let told = Server::send(visitor(path, sent.clone())).await.ok();
        assert_eq!((&told["session_id"], &told["retriever_id"]), (&json!("visit-1"), &Value::Null), "the retriever is not told to strangers");
        // A beacon is a text without a key or a type of its own.
        let batch = json!({"interactions": [sent, {"document_id": "doc_1", "interaction_type": ["dwell"], "position": 0, "metadata": {"seconds": 12}}]});
        let beacon = server.request("POST", &format!("{path}/batch")).header("content-type", "text/plain;charset=UTF-8").header("x-session-id", "visit-1").body(batch.to_string());
        let answer = Server::send(beacon).await.ok();
        assert_eq!((&answer["created"], &answer["results"][0]["status"]), (&json!(1), &json!("deduplicated")));
        let kept = server.call_in(&namespace, "POST", &format!("{PATH}/list"), json!({"session_id": "visit-1"})).await.ok();
        assert_eq!(documents(&kept), ["doc_1", "doc_1"]);
        assert_eq!(kept["results"][0]["retriever_id"], json!(id));
        let many: Vec<Value> = (0..101).map(|_| json!({"document_id": "d", "interaction_type": ["view"], "position": 0})).collect();
        Server::send(visitor(&format!("{path}/batch"), json!({"interactions": many}))).await.invalid(&["body", "interactions"], "too_long");
        Server::send(visitor("/v1/public/retrievers/others/interactions", json!({"document_id": "d", "interaction_type": ["view"], "position": 0}))).await.error(404, "NotFoundError");
        // One address tells so much and no more.
        let hundred: Vec<Value> = (0..100).map(|_| json!({"document_id": "d", "interaction_type": ["view"], "position": 0})).collect();
        server.app.clock().hold();
        let mut refused = false;
        for _ in 0..31 {
            let answer = Server::send(visitor(&format!("{path}/batch"), json!({"interactions": hundred}))).await;
            refused = answer.status == 429;
            if refused {
                break;
            }
        }
        assert!(refused, "nothing stops an address that floods");
    }
}
