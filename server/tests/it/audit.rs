//! The audit log: one record for each change, with actor, resource, change and reason.

use serde_json::{Value, json};

use crate::{both, harness::Server};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";
const LOGS: &str = "/v1/organizations/audit/logs";

async fn change(server: &Server, method: &str, path: &str, body: Value) -> Value {
    let mut request = server
        .request(method, path)
        .bearer_auth(&server.key)
        .header("x-change-reason", "ticket 7")
        .header("user-agent", "the test");
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await.ok()
}

async fn logs(server: &Server, query: &str) -> Value {
    server
        .call("GET", &format!("{LOGS}{query}"), Value::Null)
        .await
        .ok()
}

both! {
    async fn reads_are_recorded_when_the_organization_wants_that(server) {
        let namespace = server.namespace("read").await;
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": "letters", "bucket_schema": {"properties": {"title": {"type": "string"}}}})).await.ok();
        let bucket = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        let settings = "/v1/organizations/audit/settings";
        assert_eq!(server.call("GET", settings, Value::Null).await.ok(), json!({"read_auditing_enabled": false}));
        server.call_in(&namespace, "GET", &bucket, Value::Null).await.ok();
        assert_eq!(logs(&server, "?action=bucket_accessed").await["total"], 0);

        server.call("PATCH", settings, json!({"read_auditing_enabled": "perhaps"})).await.invalid(&["body", "read_auditing_enabled"], "bool_type");
        assert_eq!(server.call("PATCH", settings, json!({})).await.ok()["read_auditing_enabled"], false);
        assert_eq!(server.call("PATCH", settings, json!({"read_auditing_enabled": true})).await.ok()["read_auditing_enabled"], true);
        assert_eq!(server.call("GET", settings, Value::Null).await.ok()["read_auditing_enabled"], true);
        for _ in 0..3 {
            server.call_in(&namespace, "GET", &bucket, Value::Null).await.ok();
        }
        server.call_in(&namespace, "GET", "/v1/buckets/bkt_unknown", Value::Null).await.error(404, "NotFoundError");
        let page = logs(&server, "?action=bucket_accessed").await;
        assert_eq!(page["total"], 1, "what is repeated is counted: {page:#}");
        let record = &page["results"][0];
        assert_eq!(format!("/v1/buckets/{}", record["resource_id"].as_str().unwrap()), bucket);
        assert_eq!((&record["status"], &record["changes"]["reads"]), (&json!("success"), &json!(3)));
        assert_eq!(record["changes"]["operation"], "GET /v1/buckets/{bucket_identifier}");
        assert_eq!(record["actor_email"], "owner@localhost");
        let told = logs(&server, "?action=organization_updated").await;
        assert_eq!(told["results"][0]["changes"]["read_auditing_enabled"], json!({"before": false, "after": true}));
    }
}

both! {
    /// Settings are one row, which each change writes whole.
    async fn settings_that_are_changed_beside_each_other_all_hold(server) {
        for round in 1..=20 {
            let reads = round % 2 == 0;
            let (one, other) = tokio::join!(
                server.call("PATCH", "/v1/organizations/audit/settings", json!({"read_auditing_enabled": reads})),
                server.call("PATCH", "/v1/organizations", json!({"rate_limit_overrides": {"search": round}})),
            );
            one.ok();
            other.ok();
            let settings = server.call("GET", "/v1/organizations/audit/settings", Value::Null).await.ok();
            assert_eq!(settings["read_auditing_enabled"], reads, "round {round}");
            let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
            assert_eq!(organization["rate_limits"]["search"], round, "round {round}");
        }
    }

    async fn each_event_of_a_key_is_one_record(server) {
        let made = change(&server, "POST", KEYS, json!({"name": "robot"})).await;
        let id = made["key_id"].as_str().unwrap();
        server.app.clock().advance(1);
        change(&server, "PATCH", &format!("{KEYS}/robot"), json!({"permissions": ["read"]})).await;
        server.app.clock().advance(1);
        let rotated = change(&server, "POST", &format!("{KEYS}/robot/rotate"), Value::Null).await;
        server.app.clock().advance(1);
        change(&server, "DELETE", &format!("{KEYS}/robot?force=true"), Value::Null).await;
        // What was refused or failed changed nothing and leaves no record.
        server.call("POST", KEYS, json!({"name": "admin"})).await.error(409, "AlreadyExistsError");

        let page = logs(&server, &format!("?resource_id={id}&resource_type=api_key")).await;
        let records = page["results"].as_array().unwrap();
        let actions: Vec<&str> = records.iter().map(|one| one["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["api_key_revoked", "api_key_rotated", "api_key_scope_updated", "api_key_created"]);
        assert_eq!((&page["total"], &page["skip"], &page["limit"]), (&json!(4), &json!(0), &json!(50)));
        for record in records {
            assert_eq!(record["actor_email"], "owner@localhost");
            assert_eq!(record["actor_key_name"], "admin");
            assert_eq!(record["reason"], "ticket 7");
            assert_eq!(record["user_agent"], "the test");
            assert_eq!(record["ip_address"], "127.0.0.1");
            assert_eq!(record["status"], "success");
            for secret in [&made, &rotated] {
                assert!(!record.to_string().contains(secret["key"].as_str().unwrap()));
            }
            let one = logs(&server, &format!("/{}", record["audit_id"].as_str().unwrap())).await;
            assert_eq!(&one, record);
        }
        let updated = &records[2]["changes"]["permissions"];
        assert_eq!(*updated, json!({"before": ["read", "write", "delete"], "after": ["read"]}));

        let one = logs(&server, "?action=api_key_rotated").await;
        assert_eq!(one["total"], 1);
        let window = logs(&server, &format!("?resource_id={id}&skip=1&limit=2")).await;
        assert_eq!(window["results"], json!([records[1], records[2]]));
        assert_eq!(logs(&server, "?end=2020-01-01").await["total"], 0);
        server.call("GET", &format!("{LOGS}?start=yesterday"), Value::Null).await.invalid(&["query", "start"], "datetime_parsing");
        server.call("GET", &format!("{LOGS}?limit=0"), Value::Null).await.invalid(&["query", "limit"], "greater_than_equal");
        server.call("GET", &format!("{LOGS}/aud_unknown"), Value::Null).await.error(404, "NotFoundError");
    }

    async fn resources_and_people_leave_records(server) {
        let namespace = server.namespace("audited").await;
        server.call("PATCH", &format!("/v1/namespaces/{namespace}"), json!({"description": "looked at"})).await.ok();
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": "b", "bucket_schema": {"properties": {}}})).await.ok();
        let path = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        server.call_in(&namespace, "PATCH", &path, json!({"description": "changed"})).await.ok();
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        let (other, retriever) = crate::harness::retriever(&server, "searcher").await;
        server.call_in(&other, "PATCH", &format!("/v1/retrievers/{retriever}"), json!({"description": "changed"})).await.ok();
        server.call_in(&other, "DELETE", &format!("/v1/retrievers/{retriever}"), Value::Null).await.ok();
        server.call_in(&other, "PATCH", "/v1/collections/things", json!({"description": "changed"})).await.ok();
        server.call_in(&other, "DELETE", "/v1/collections/things", Value::Null).await.ok();
        server.call("DELETE", &format!("/v1/namespaces/{other}"), Value::Null).await.ok();
        let user = "/v1/organizations/users/ada@example.org";
        server.call("POST", "/v1/organizations/users", json!({"email": "ada@example.org", "user_name": "Ada"})).await.ok();
        server.call("PATCH", user, json!({"role": "viewer"})).await.ok();
        server.call("DELETE", user, Value::Null).await.ok();
        for (action, count) in [
            ("namespace_created", 2), ("namespace_updated", 1), ("namespace_deleted", 1),
            ("bucket_created", 1), ("bucket_updated", 1), ("bucket_deleted", 1),
            ("collection_created", 1), ("collection_updated", 1), ("collection_deleted", 1),
            ("retriever_created", 1), ("retriever_updated", 1), ("retriever_deleted", 1),
            ("user_created", 1), ("user_updated", 1), ("user_deleted", 1),
        ] {
            assert_eq!(logs(&server, &format!("?action={action}")).await["total"], count, "{action}");
        }
    }

    async fn annotations_and_webhooks_leave_records(server) {
        let (namespace, _) = crate::harness::retriever(&server, "judged").await;
        let made = server.call_in(&namespace, "POST", "/v1/collections/things/documents", json!({"title": "one"})).await.ok();
        let document = &made["document_id"];
        let made = server.call_in(&namespace, "POST", "/v1/annotations", json!({"document_id": document, "label": "good"})).await.ok();
        let path = format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap());
        server.call_in(&namespace, "PATCH", &path, json!({"label": "bad"})).await.ok();
        // A change of nothing is none.
        server.call_in(&namespace, "PATCH", &path, json!({"label": "bad"})).await.ok();
        server.call_in(&namespace, "DELETE", &path, Value::Null).await.ok();
        let many = json!({"create": [{"document_id": document, "label": "a"}, {"document_id": document, "label": "b"}]});
        assert_eq!(server.call_in(&namespace, "POST", "/v1/annotations/bulk", many).await.ok()["created_count"], 2);

        let hook = json!({"webhook_name": "own", "event_types": ["collection.created"], "channels": [{"channel": "webhook", "configs": {"url": "http://127.0.0.2:9999/hook"}}]});
        let made = server.call("POST", "/v1/organizations/webhooks", hook.clone()).await.ok();
        let path = format!("/v1/organizations/webhooks/{}", made["webhook_id"].as_str().unwrap());
        let mut paused = hook;
        paused["is_active"] = false.into();
        server.call("PUT", &path, paused).await.ok();
        let gone = server.call("DELETE", &path, Value::Null).await;
        assert_eq!(gone.status, 204, "{:#}", gone.body);
        for (action, count, member) in [
            ("annotation_created", 3, "label"), ("annotation_updated", 1, "label"), ("annotation_deleted", 1, "label"),
            ("webhook_created", 1, "webhook_name"), ("webhook_updated", 1, "is_active"), ("webhook_deleted", 1, "webhook_name"),
        ] {
            let page = logs(&server, &format!("?action={action}")).await;
            assert_eq!(page["total"], count, "{action}: {page:#}");
            let record = &page["results"][0];
            assert!(record["changes"].get(member).is_some(), "{record:#}");
            assert!(!record.to_string().contains("127.0.0.2"), "{record:#}");
        }
        let changed = logs(&server, "?action=annotation_updated").await;
        assert_eq!(changed["results"][0]["changes"], json!({"label": {"before": "good", "after": "bad"}}));
    }

    async fn the_log_is_exported_as_lines(server) {
        for number in 0..5 {
            server.call("POST", KEYS, json!({"name": format!("key {number}")})).await.ok();
        }
        let total = logs(&server, "").await["total"].as_i64().unwrap();
        let answer = server.call("GET", &format!("{LOGS}/export"), Value::Null).await;
        assert_eq!(answer.headers["content-type"], "application/x-ndjson");
        let text = answer.ok();
        let lines: Vec<Value> = text.as_str().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len() as i64, total);
        let listed = logs(&server, "?limit=1000").await;
        assert_eq!(json!(lines), listed["results"]);
        let two = server.call("GET", &format!("{LOGS}/export?max_events=2"), Value::Null).await.ok();
        assert_eq!(two.as_str().unwrap().lines().count(), 2);
        let reader = server.call("POST", KEYS, json!({"name": "reader", "permissions": ["delete"]})).await.ok();
        let refused = server.request("GET", LOGS).bearer_auth(reader["key"].as_str().unwrap());
        Server::send(refused).await.error(403, "ForbiddenError");
        // What was refused a moment ago is among the lines.
        let refusals = server.call("GET", &format!("{LOGS}/export?action=permission_denied"), Value::Null).await.ok();
        assert_eq!(refusals["resource_type"], "organization", "{refusals}");
    }

    async fn the_use_of_a_key_is_counted_by_operation(server) {
        let made = server.call("POST", KEYS, json!({"name": "busy"})).await.ok();
        let (id, secret) = (made["key_id"].as_str().unwrap(), made["key"].as_str().unwrap());
        for (path, times) in [("/v1/me", 3), ("/v1/namespaces/ns_unknown", 2)] {
            for _ in 0..times {
                Server::send(server.request("GET", path).bearer_auth(secret)).await;
            }
        }
        // A search that fails costs nothing.
        let search = server.request("POST", "/v1/retrievers/ret_unknown/execute").bearer_auth(secret).json(&json!({"inputs": {}}));
        assert_eq!(Server::send(search).await.status, 403);
        let by_endpoint = server.call("GET", &format!("/v1/organizations/api-keys/{id}/usage/endpoints"), Value::Null).await.ok();
        let rows: Vec<(&str, i64, i64)> = by_endpoint.as_array().unwrap().iter()
            .map(|row| (row["path"].as_str().unwrap(), row["requests"].as_i64().unwrap(), row["errors"].as_i64().unwrap()))
            .collect();
        assert_eq!(rows, [("/v1/me", 3, 0), ("/v1/namespaces/{namespace_identifier}", 2, 2), ("/v1/retrievers/{retriever_id}/execute", 1, 1)]);
        // Every answer is in both figures; the slowest of three is no faster than all of them together.
        for row in by_endpoint.as_array().unwrap() {
            let [average, slowest] = ["avg_latency_ms", "p95_latency_ms"].map(|member| row[member].as_f64().unwrap());
            assert!(average > 0.0 && slowest * 1.13 >= average, "{row}");
        }
        for path in [format!("/v1/organizations/api-keys/{id}/usage"), format!("/v1/organizations/usage/api-keys/{id}")] {
            let sum = server.call("GET", &path, Value::Null).await.ok();
            assert_eq!((&sum["requests"], &sum["errors"], &sum["key_name"]), (&json!(6), &json!(3), &json!("busy")));
            assert_eq!((&sum["by_category"]["search"], &sum["spend_usd"]), (&json!(1), &json!(0.0)));
            // Two days, if it is midnight just now.
            let days = sum["days"].as_array().unwrap();
            let all = |member: &str| days.iter().map(|day| day[member].as_i64().unwrap()).sum::<i64>();
            assert_eq!((all("requests"), all("errors")), (6, 3), "{sum:#}");
            let last = days.last().unwrap()["day"].as_str().unwrap();
            assert!(sum["last_used_at"].as_str().unwrap().starts_with(last), "{sum:#}");
        }
        // The times go after 90 days, the sums stay.
        let start = (server.app.clock().now() - chrono::Duration::days(1)).format("%Y-%m-%d").to_string();
        server.app.clock().advance(91 * 24 * 3600);
        loupe_server::usage::sweep(&server.app).await.unwrap();
        let rows = server.call("GET", &format!("/v1/organizations/api-keys/{id}/usage/endpoints?start={start}"), Value::Null).await.ok();
        assert_eq!((&rows[0]["requests"], rows[0].get("p95_latency_ms")), (&json!(3), None), "{rows}");
        let before = server.call("GET", &format!("/v1/organizations/api-keys/{id}/usage?start=2020-01-01&end=2020-01-02"), Value::Null).await.ok();
        assert_eq!((&before["requests"], &before["days"]), (&json!(0), &json!([])));
        server.call("GET", "/v1/organizations/api-keys/key_unknown/usage", Value::Null).await.error(404, "NotFoundError");
    }
}

/// A call with a key, in a namespace, from an origin.
async fn by(
    server: &Server,
    key: &str,
    namespace: &str,
    method: &str,
    path: &str,
) -> crate::harness::Answer {
    let request = server
        .request(method, path)
        .bearer_auth(key)
        .header("x-namespace", namespace)
        .header("origin", "https://other.example");
    Server::send(if method == "GET" {
        request
    } else {
        request.json(&json!({}))
    })
    .await
}

both! {
    async fn each_refusal_is_one_record_and_a_flood_is_few(server) {
        let (namespace, _) = crate::harness::retriever(&server, "refusals").await;
        let reader = server.call("POST", KEYS, json!({"name": "reader", "permissions": ["read"]})).await.ok();
        let scoped = json!([{"resource_type": "bucket", "resource_id": "bkt_none"}]);
        let scoped = server.call("POST", KEYS, json!({"name": "scoped", "permissions": ["delete"], "scopes": scoped})).await.ok();
        let far = server.call("POST", KEYS, json!({"name": "far", "allowed_origins": ["https://here.example"]})).await.ok();
        let key = |made: &Value| made["key"].as_str().unwrap().to_owned();
        let collection = server.call_in(&namespace, "GET", "/v1/collections/things", Value::Null).await.ok();
        let id = collection["collection_id"].as_str().unwrap();
        for (made, method, path, code, kind, resource) in [
            (&reader, "DELETE", "/v1/buckets/bkt_1".to_owned(), "permission_denied", "bucket", "bkt_1"),
            (&scoped, "GET", format!("/v1/collections/{id}"), "scope_denied", "collection", id),
            (&far, "GET", "/v1/collections".to_owned(), "origin_not_allowed", "collection", "*"),
        ] {
            let refused = by(&server, &key(made), &namespace, method, &path).await.error(403, "ForbiddenError");
            assert_eq!(refused["error"]["code"], code);
            let page = logs(&server, &format!("?action=permission_denied&resource_type={kind}&resource_id={resource}")).await;
            assert_eq!(page["total"], 1, "{page:#}");
            let record = &page["results"][0];
            assert_eq!(record["status"], "denied");
            assert_eq!(record["actor_email"], "owner@localhost");
            assert_eq!(record["actor_key_name"], made["name"]);
            assert_eq!(record["ip_address"], "127.0.0.1");
            assert_eq!((&record["changes"]["code"], &record["changes"]["refusals"]), (&json!(code), &json!(1)));
            assert!(!record.to_string().contains(&key(made)));
        }
        let before = logs(&server, "?action=permission_denied").await["total"].as_i64().unwrap();
        assert_eq!(before, 3);

        // The same refusal again and again is counted; many different ones of a key are told as one.
        for _ in 0..300 {
            by(&server, &key(&reader), &namespace, "DELETE", "/v1/buckets/bkt_1").await.error(403, "ForbiddenError");
        }
        assert_eq!(logs(&server, "?action=permission_denied").await["total"], before);
        for number in 0..300 {
            by(&server, &key(&reader), &namespace, "DELETE", &format!("/v1/buckets/bkt_other_{number}")).await.error(403, "ForbiddenError");
        }
        let flood = logs(&server, "?action=permission_denied").await["total"].as_i64().unwrap();
        assert!(flood - before <= 100, "{flood} records");
        server.app.clock().advance(3601);
        let page = logs(&server, "?action=permission_denied&resource_id=bkt_1").await;
        assert_eq!(page["total"], 2);
        assert_eq!(page["results"][0]["changes"]["refusals"], 300);
        // What was allowed, or is not there, is no refusal.
        by(&server, &key(&reader), &namespace, "GET", "/v1/buckets/bkt_unknown").await.error(404, "NotFoundError");
        assert_eq!(logs(&server, "?action=permission_denied&resource_id=bkt_unknown").await["total"], 0);
        // Nothing is lost when the process stops.
        by(&server, &key(&reader), &namespace, "DELETE", "/v1/collections/col_last").await.error(403, "ForbiddenError");
        let server = server.restart().await;
        assert_eq!(logs(&server, "?action=permission_denied&resource_id=col_last").await["total"], 1);
    }

    async fn a_key_that_has_ended_leaves_one_record(server) {
        let revoked = server.call("POST", KEYS, json!({"name": "revoked"})).await.ok();
        server.call("DELETE", &format!("{KEYS}/revoked?force=true"), Value::Null).await.ok();
        let soon = (server.app.clock().now() + chrono::Duration::seconds(60)).to_rfc3339();
        let expired = server.call("POST", KEYS, json!({"name": "expired", "expires_at": soon})).await.ok();
        server.app.clock().advance(61);
        for (made, code) in [(&revoked, "api_key_revoked"), (&expired, "api_key_expired")] {
            let (id, secret) = (made["key_id"].as_str().unwrap(), made["key"].as_str().unwrap());
            // Whatever it is used for, it is one record.
            for path in ["/v1/me", "/v1/organizations", "/v1/namespaces", "/v1/me"] {
                let refused = Server::send(server.request("GET", path).bearer_auth(secret)).await.error(401, "AuthenticationError");
                assert_eq!(refused["error"]["code"], code);
            }
            let page = logs(&server, &format!("?action=permission_denied&resource_type=api_key&resource_id={id}")).await;
            assert_eq!(page["total"], 1, "{page:#}");
            let record = &page["results"][0];
            assert_eq!((&record["status"], &record["ip_address"]), (&json!("denied"), &json!("127.0.0.1")));
            assert_eq!((&record["actor_email"], &record["actor_key_name"]), (&json!("owner@localhost"), &made["name"]));
            assert_eq!((&record["changes"]["operation"], &record["changes"]["code"]), (&json!("authenticate"), &json!(code)));
            assert!(record["changes"]["refusals"].as_i64().unwrap() >= 1);
            assert!(!record.to_string().contains(secret));
        }
        // Nobody knows whose a key is that never was.
        let unknown = loupe_server::auth::key::generate(loupe_server::auth::key::Kind::Standard);
        Server::send(server.request("GET", "/v1/me").bearer_auth(unknown)).await.error(401, "AuthenticationError");
        assert_eq!(logs(&server, "?action=permission_denied").await["total"], 2);
        // What goes on is told of once an hour.
        let secret = revoked["key"].as_str().unwrap();
        Server::send(server.request("GET", "/v1/me").bearer_auth(secret)).await.error(401, "AuthenticationError");
        assert_eq!(logs(&server, "?action=permission_denied").await["total"], 2);
        server.app.clock().advance(3601);
        let of_revoked = format!("?action=permission_denied&resource_id={}", revoked["key_id"].as_str().unwrap());
        assert_eq!(logs(&server, &of_revoked).await["total"], 2);
    }

    async fn documents_and_replaced_resources_leave_records(server) {
        let (namespace, _) = crate::harness::retriever(&server, "kept").await;
        let things = "/v1/collections/things/documents";
        let mut ids = Vec::new();
        for number in 0..4 {
            let made = server.call_in(&namespace, "POST", things, json!({"title": format!("{number}")})).await.ok();
            ids.push(made["document_id"].as_str().unwrap().to_owned());
        }
        let reason = |method: &str, path: &str| server.request(method, path).bearer_auth(&server.key).header("x-namespace", &namespace).header("x-change-reason", "clean up");
        Server::send(reason("DELETE", &format!("{things}/{}", ids[0]))).await.ok();
        Server::send(reason("DELETE", &format!("{things}/batch")).json(&json!({"document_ids": ids[1..3], "reason": "there twice"}))).await.ok();
        let one = logs(&server, &format!("?action=document_deleted&resource_id={}", ids[0])).await;
        assert_eq!((&one["total"], &one["results"][0]["reason"]), (&json!(1), &json!("clean up")));
        let many = logs(&server, "?action=document_deleted&resource_id=*").await;
        assert_eq!((&many["total"], &many["results"][0]["changes"]["count"]), (&json!(1), &json!(2)));
        // What the body says is meant before what the header does.
        assert_eq!(many["results"][0]["reason"], "there twice");
        assert_eq!(many["results"][0]["changes"]["document_ids"], json!(ids[1..3]));
        // Who may see a document is told with what was before; a refusal of it is no change.
        let shared = format!("{things}/{}/acl", ids[3]);
        Server::send(reason("PATCH", &shared).json(&json!({"read": ["ada"]}))).await.ok();
        server.call_in(&namespace, "PATCH", &shared, json!({"read": 7})).await.invalid(&["body", "read"], "list_type");
        let told = logs(&server, &format!("?action=permission_updated&resource_type=document&resource_id={}", ids[3])).await;
        assert_eq!((&told["total"], &told["results"][0]["reason"]), (&json!(1), &json!("clean up")));
        let acl = &told["results"][0]["changes"]["acl"];
        assert_eq!((&acl["before"], &acl["after"]["read"]), (&Value::Null, &json!(["ada"])));

        // Nothing was deleted: nothing is told.
        server.call_in(&namespace, "DELETE", &format!("{things}/{}", ids[0]), Value::Null).await.error(404, "NotFoundError");
        assert_eq!(logs(&server, "?action=document_deleted").await["total"], 2);

        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": "b", "bucket_schema": {"properties": {}}})).await.ok();
        let path = format!("/v1/buckets/{}", bucket["bucket_id"].as_str().unwrap());
        Server::send(reason("PUT", &path).json(&json!({"bucket_name": "c"}))).await.ok();
        Server::send(reason("PUT", &format!("/v1/namespaces/{namespace}")).json(&json!({"namespace_name": "put"}))).await.ok();
        Server::send(reason("PATCH", "/v1/organizations").json(&json!({"organization_name": "Acme"}))).await.ok();
        for (action, member) in [("bucket_updated", "bucket_name"), ("namespace_updated", "namespace_name"), ("organization_updated", "organization_name")] {
            let page = logs(&server, &format!("?action={action}")).await;
            assert_eq!((&page["total"], &page["results"][0]["reason"]), (&json!(1), &json!("clean up")), "{action}");
            assert!(page["results"][0]["changes"][member]["before"].is_string(), "{page:#}");
        }
    }
}
