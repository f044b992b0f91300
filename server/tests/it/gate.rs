//! The table of operations and what each kind of key may do: the table equals the description of the API, and the server
//! equals the table.

use std::collections::BTreeSet;

use loupe_server::auth::{
    rank,
    table::{Access, Row, TABLE},
};
use loupe_wire::Permission;
use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

#[test]
fn the_table_has_a_row_for_each_operation_of_the_description() {
    let document = loupe_server::openapi::document();
    let document: Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
    let mut described = BTreeSet::new();
    // What has a server of its own is for the hosts of apps, which know no key.
    let paths = document["paths"].as_object().unwrap().iter();
    for (path, item) in paths.filter(|(_, item)| item.get("servers").is_none()) {
        for (method, operation) in item.as_object().unwrap() {
            if !operation["responses"].is_object() {
                continue;
            }
            let name = format!("{} {path}", method.to_uppercase()).replace("{key}", "{*key}");
            let row = TABLE.iter().find(|row| row.operation == name);
            let row = row.unwrap_or_else(|| panic!("auth/table.rs has no row for {name}"));
            let public = row.access == Access::Public;
            // An empty requirement says in words that no key is needed.
            let open = operation["security"].as_array().is_none_or(|all| {
                all.iter()
                    .all(|one| one.as_object().is_some_and(serde_json::Map::is_empty))
            });
            assert_eq!(open, public, "{name}");
            assert_eq!(
                operation["x-required-permission"].is_null(),
                public,
                "{name}"
            );
            described.insert(name);
        }
    }
    let rows: Vec<String> = TABLE.iter().map(|row| row.operation.to_owned()).collect();
    let unique: BTreeSet<String> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), unique.len(), "an operation has two rows");
    assert_eq!(unique, described);
}

/// The keys that every operation is tried with.
struct Ring {
    namespace: String,
    levels: Vec<(Permission, String)>,
    revoked: String,
    expired: String,
    retriever: String,
    elsewhere: String,
    /// Admin, but only for a bucket that is not there.
    scoped: String,
    principal: String,
}

async fn mint(server: &Server, body: Value) -> String {
    let made = server.call("POST", KEYS, body).await.ok();
    made["key"].as_str().unwrap().to_owned()
}

async fn ring(server: &Server) -> Ring {
    let (namespace, retriever) = crate::harness::retriever(server, "matrix").await;
    let mut levels = Vec::new();
    for level in [
        Permission::Read,
        Permission::Write,
        Permission::Delete,
        Permission::Admin,
    ] {
        let name = format!("{level:?}");
        levels.push((
            level,
            mint(server, json!({"name": name, "permissions": [level]})).await,
        ));
    }
    let at = server.app.clock().now() + chrono::Duration::seconds(30);
    let expired = mint(
        server,
        json!({"name": "expired", "permissions": ["admin"], "expires_at": at}),
    )
    .await;
    server.app.clock().advance(31);
    let revoked = mint(server, json!({"name": "revoked", "permissions": ["admin"]})).await;
    server
        .call("DELETE", &format!("{KEYS}/revoked"), Value::Null)
        .await
        .ok();
    let made = server
        .call_in(
            &namespace,
            "POST",
            &format!("/v1/retrievers/{retriever}/api-keys"),
            json!({"name": "ret"}),
        )
        .await
        .ok();
    Ring {
        retriever: made["key"].as_str().unwrap().to_owned(),
        elsewhere: mint(server, json!({"name": "elsewhere", "permissions": ["admin"], "allowed_origins": ["https://here.example"]})).await,
        scoped: mint(server, json!({"name": "scoped", "permissions": ["admin"], "scopes": [{"resource_type": "bucket", "resource_id": "bkt_none"}]})).await,
        principal: mint(server, json!({"name": "principal", "permissions": ["admin"], "principal_id": "user-7"})).await,
        namespace,
        levels,
        revoked,
        expired,
    }
}

/// The path of an operation about things that are not there.
fn unknown(path: &str) -> String {
    let mut filled = String::new();
    for piece in path.split_inclusive('/') {
        if let Some(rest) = piece.strip_prefix('{') {
            filled.push_str("unknown");
            filled.push_str(rest.split_once('}').unwrap().1);
        } else {
            filled.push_str(piece);
        }
    }
    filled
}

async fn call(server: &Server, ring: &Ring, operation: &str, key: Option<&str>) -> Answer {
    let (method, path) = operation.split_once(' ').unwrap();
    let mut request = server
        .request(method, &unknown(path))
        .header("x-namespace", &ring.namespace)
        .header("origin", "https://other.example");
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    if method != "GET" {
        request = request.json(&json!({}));
    }
    Server::send(request).await
}

/// Whether a key that is for something else has learned nothing.
fn is_harmless(row: &Row, answer: &Answer) -> bool {
    match answer.status {
        403 => answer.body["error"]["code"] == "scope_denied",
        // Nothing is there, or the request is wrong before anything is looked at.
        404 | 422 | 400 => true,
        200 => {
            let lists = [
                &answer.body["results"],
                &answer.body["secrets"],
                &answer.body["buckets"],
            ];
            // An export that names no namespace describes nothing.
            let exported = row.operation.ends_with("/manifest/export")
                && !answer.body.to_string().contains("namespaces");
            row.access == Access::AnyKey || lists.contains(&&json!([])) || exported
        }
        _ => false,
    }
}

both! {
    async fn every_operation_answers_every_kind_of_key_as_the_table_says(server) {
        let ring = ring(&server).await;
        let mut cells = 0;
        for row in TABLE {
            let name = row.operation;
            if row.access == Access::Public {
                let answer = call(&server, &ring, name, None).await;
                assert!(answer.status != 401 && answer.status < 500, "{name}: {}", answer.body);
                cells += 1;
                continue;
            }
            for (kind, key) in [("none", None), ("garbage", Some("loupe_sk_garbage")), ("revoked", Some(ring.revoked.as_str())), ("expired", Some(ring.expired.as_str()))] {
                let answer = call(&server, &ring, name, key).await;
                assert_eq!(answer.status, 401, "{name} with {kind}: {}", answer.body);
                cells += 1;
            }
            let answer = call(&server, &ring, name, Some(&ring.elsewhere)).await;
            assert_eq!(answer.body["error"]["code"], "origin_not_allowed", "{name}");

            let needed = match row.access {
                Access::Level(level) => level,
                _ => Permission::Read,
            };
            for (level, key) in &ring.levels {
                let enough = rank(*level) >= rank(needed);
                // The demo takes a minute, and what it does is tested elsewhere.
                if enough && name.contains("/quickstart/") {
                    continue;
                }
                let answer = call(&server, &ring, name, Some(key)).await;
                let refused = answer.body["error"]["code"] == "permission_denied";
                assert_eq!(refused, !enough, "{name} with {level:?}: {}", answer.body);
                assert!(answer.status < 500 && answer.status != 401, "{name} with {level:?}: {}", answer.body);
                cells += 1;
            }
            let answer = call(&server, &ring, name, Some(&ring.retriever)).await;
            let open = matches!(row.access, Access::AnyKey | Access::Execute);
            assert_eq!(answer.body["error"]["code"] == "permission_denied", !open, "{name} with a retriever's key: {}", answer.body);

            let answer = call(&server, &ring, name, Some(&ring.principal)).await;
            let closed = needed == Permission::Admin || !row.end_users;
            assert_eq!(answer.body["error"]["code"] == "permission_denied", closed, "{name} with an end user's key: {}", answer.body);

            let answer = call(&server, &ring, name, Some(&ring.scoped)).await;
            let harmless = is_harmless(row, &answer);
            assert!(harmless, "{name} with a key scoped to a bucket: {} {}", answer.status, answer.body);
            cells += 4;
        }
        println!("{cells} cells");
        assert!(cells > 1000);
        server.call("GET", "/v1/organizations", Value::Null).await.ok();
    }

    async fn a_namespace_is_needed_where_the_description_says_so(server) {
        let document = loupe_server::openapi::document();
        let document: Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
        let (mut needing, mut optional) = (0, 0);
        for row in TABLE.iter().filter(|row| row.access != Access::Public) {
            let (method, path) = row.operation.split_once(' ').unwrap();
            if path.contains("/quickstart/") {
                continue;
            }
            let security = document["paths"][path][method.to_lowercase()]["security"].as_array().unwrap();
            let named = security.iter().filter(|one| one["namespace"].is_array()).count();
            let needed = named == security.len();
            let body = if method == "GET" { Value::Null } else { json!({}) };
            let answer = server.call(method, &unknown(path), body).await;
            let told = answer.body["error"]["code"] == "namespace_header_missing";
            assert_eq!(told, needed, "{}: {}", row.operation, answer.body);
            if told {
                answer.error(403, "UnauthorizedError");
            }
            needing += usize::from(needed);
            optional += usize::from(named > 0 && !needed);
        }
        assert!(needing > 200 && optional > 5, "{needing} and {optional}");
    }

    async fn a_retrievers_key_executes_its_retriever_only(server) {
        let (namespace, mine) = crate::harness::retriever(&server, "mine").await;
        let other = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{mine}/clone"), json!({"retriever_name": "other"})).await.ok();
        let other = other["retriever_id"].as_str().unwrap().to_owned();
        let made = server.call_in(&namespace, "POST", &format!("/v1/retrievers/{mine}/api-keys"), json!({"name": "only mine"})).await.ok();
        let key = made["key"].as_str().unwrap().to_owned();
        let execute = |id: String| {
            let request = server.request("POST", &format!("/v1/retrievers/{id}/execute")).bearer_auth(&key)
                .header("x-namespace", &namespace).json(&json!({"inputs": {}}));
            Server::send(request)
        };
        execute(mine.clone()).await.ok();
        assert_eq!(execute(other).await.error(403, "ForbiddenError")["error"]["code"], "scope_denied");
    }

    async fn scopes_hold_for_reads_lists_and_changes(server) {
        let namespace = server.namespace("scoped").await;
        let mut ids = Vec::new();
        for name in ["one", "two"] {
            let body = json!({"bucket_name": name, "bucket_schema": {"properties": {}}});
            let made = server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
            ids.push(made["bucket_id"].as_str().unwrap().to_owned());
        }
        let call = |key: String, method: &'static str, path: String, body: Value| {
            let mut request = server.request(method, &path).bearer_auth(key).header("x-namespace", &namespace);
            if !body.is_null() {
                request = request.json(&body);
            }
            Server::send(request)
        };
        let scope = json!([{"resource_type": "bucket", "resource_id": ids[0], "operations": ["read_data"]}]);
        let reader = mint(&server, json!({"name": "reader", "permissions": ["delete"], "scopes": scope})).await;
        let (one, two) = (format!("/v1/buckets/{}", ids[0]), format!("/v1/buckets/{}", ids[1]));
        call(reader.clone(), "GET", one.clone(), Value::Null).await.ok();
        call(reader.clone(), "GET", "/v1/buckets/one".into(), Value::Null).await.ok();
        for (method, path, body) in [
            ("GET", two.clone(), Value::Null), ("GET", format!("{two}/objects"), Value::Null),
            ("PATCH", one.clone(), json!({"description": "mine"})), ("DELETE", one.clone(), Value::Null),
            ("POST", "/v1/buckets".into(), json!({"bucket_name": "three", "bucket_schema": {"properties": {}}})),
            ("GET", "/v1/tasks".into(), Value::Null), ("GET", "/v1/events".into(), Value::Null),
        ] {
            let answer = call(reader.clone(), method, path.clone(), body).await;
            assert_eq!(answer.error(403, "ForbiddenError")["error"]["code"], "scope_denied", "{method} {path}");
        }
        for (method, path) in [("GET", "/v1/buckets?include_total=true"), ("POST", "/v1/buckets/list?include_total=true")] {
            let list = call(reader.clone(), method, path.into(), Value::Null).await.ok();
            assert_eq!(list["results"].as_array().unwrap().len(), 1, "{list}");
            assert_eq!(list["results"][0]["bucket_id"], ids[0].as_str());
            assert_eq!(list["total_count"], 1);
        }
        // A scope of the namespace, or a pattern, covers what is in it.
        let wide = json!([{"resource_type": "namespace", "resource_id": namespace}]);
        let wide = mint(&server, json!({"name": "wide", "permissions": ["delete"], "scopes": wide})).await;
        call(wide.clone(), "GET", two.clone(), Value::Null).await.ok();
        call(wide.clone(), "GET", "/v1/tasks".into(), Value::Null).await.ok();
        let other = server.namespace("not scoped").await;
        let outside = server.request("GET", "/v1/buckets").bearer_auth(&wide).header("x-namespace", &other);
        assert_eq!(Server::send(outside).await.ok()["results"], json!([]));
        let namespaces = call(wide, "GET", "/v1/namespaces".into(), Value::Null).await.ok();
        assert_eq!(namespaces["results"].as_array().unwrap().len(), 1);
        let pattern = json!([{"resource_type": "bucket", "resource_id": "bkt_*"}]);
        let pattern = mint(&server, json!({"name": "pattern", "scopes": pattern})).await;
        call(pattern.clone(), "GET", one, Value::Null).await.ok();
        call(pattern, "PATCH", two, json!({"description": "mine"})).await.ok();
    }

    async fn whoever_starts_a_task_may_follow_it(server) {
        let (namespace, _) = crate::harness::retriever(&server, "started").await;
        let buckets = ["one", "two"].map(|name| json!({"bucket_name": name, "bucket_schema": {"properties": {}}}));
        let mut ids = Vec::new();
        for body in buckets {
            let made = server.call_in(&namespace, "POST", "/v1/buckets", body).await.ok();
            ids.push(made["bucket_id"].as_str().unwrap().to_owned());
        }
        let call = async |key: &str, method: &str, path: &str| {
            let request = server.request(method, path).bearer_auth(key).header("x-namespace", &namespace);
            Server::send(request).await
        };
        let scope = |id: &str| json!([{"resource_type": "bucket", "resource_id": id}]);
        let narrow = mint(&server, json!({"name": "narrow", "permissions": ["delete"], "scopes": scope(&ids[0])})).await;
        let other = mint(&server, json!({"name": "other", "permissions": ["delete"], "scopes": scope(&ids[1])})).await;
        let removed = call(&narrow, "DELETE", &format!("/v1/buckets/{}", ids[0])).await.ok();
        let task = format!("/v1/tasks/{}", removed["task_id"].as_str().unwrap());
        let followed = call(&narrow, "GET", &task).await.ok();
        assert_eq!(followed["task_id"], removed["task_id"]);
        // Nor does it take the namespace.
        Server::send(server.request("GET", &task).bearer_auth(&narrow)).await.ok();
        assert_eq!(call(&other, "GET", &task).await.error(403, "ForbiddenError")["error"]["code"], "scope_denied");
        // Its list is of everybody's, and its removal a matter of the namespace.
        assert_eq!(call(&narrow, "GET", "/v1/tasks").await.error(403, "ForbiddenError")["error"]["code"], "scope_denied");
        assert_eq!(call(&narrow, "DELETE", &task).await.error(403, "ForbiddenError")["error"]["code"], "scope_denied");
        // An end user follows what is theirs alone.
        let eve = mint(&server, json!({"name": "eve", "principal_id": "eve", "permissions": ["read"]})).await;
        call(&eve, "GET", &task).await.error(404, "NotFoundError");
        // Also when it has moved to the archive.
        server.task_end(removed["task_id"].as_str().unwrap()).await;
        server.app.clock().advance(25 * 3600);
        loupe_server::jobs::archive(&server.app).await.unwrap();
        let archived = call(&narrow, "GET", &task).await.ok();
        assert_eq!(archived["additional_data"]["from_durable_store"], true, "{archived:#}");
    }

    async fn alerts_and_annotations_have_scopes_of_their_own(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "watched").await;
        let alert = |name: &str| json!({"name": name, "retriever_id": retriever, "notification_config": {"channels": [
            {"channel_type": "webhook", "config": {"url": "http://127.0.0.2:9999/hook"}}]}});
        let mut paths = Vec::new();
        let mut ids = Vec::new();
        for name in ["one", "two"] {
            let made = server.call_in(&namespace, "POST", "/v1/alerts", alert(name)).await.ok();
            ids.push(made["alert_id"].clone());
            paths.push(format!("/v1/alerts/{}", made["alert_id"].as_str().unwrap()));
        }
        let call = async |key: &str, method: &str, path: &str, body: Value| {
            let mut request = server.request(method, path).bearer_auth(key).header("x-namespace", &namespace);
            if !body.is_null() {
                request = request.json(&body);
            }
            Server::send(request).await
        };
        let denied = |answer: Answer| assert_eq!(answer.error(403, "ForbiddenError")["error"]["code"], "scope_denied");
        let scope = json!([{"resource_type": "alert", "resource_id": ids[0]}]);
        let key = mint(&server, json!({"name": "of one alert", "permissions": ["delete"], "scopes": scope})).await;
        for (method, path) in [("GET", "/v1/alerts"), ("POST", "/v1/alerts/list")] {
            let list = call(&key, method, path, Value::Null).await.ok();
            assert_eq!((list["results"].as_array().unwrap().len(), &list["results"][0]["alert_id"]), (1, &ids[0]), "{list:#}");
        }
        call(&key, "GET", &paths[0], Value::Null).await.ok();
        assert_eq!(call(&key, "PATCH", &paths[0], json!({"enabled": false})).await.ok()["enabled"], false);
        denied(call(&key, "GET", &paths[1], Value::Null).await);
        denied(call(&key, "DELETE", &paths[1], Value::Null).await);
        denied(call(&key, "GET", "/v1/alerts/executions", Value::Null).await);
        denied(call(&key, "POST", "/v1/alerts", alert("three")).await);
        call(&key, "DELETE", &paths[0], Value::Null).await.ok();

        let things = "/v1/collections/things";
        let document = server.call_in(&namespace, "POST", &format!("{things}/documents"), json!({"title": "one"})).await.ok();
        let collection = server.call_in(&namespace, "GET", things, Value::Null).await.ok();
        let label = json!({"document_id": document["document_id"], "label": "good"});
        let all = json!({"resource_type": "annotation", "resource_id": "*"});
        let blind = mint(&server, json!({"name": "blind", "scopes": [all]})).await;
        call(&blind, "POST", "/v1/annotations", label.clone()).await.error(404, "NotFoundError");
        let scopes = json!([all, {"resource_type": "collection", "resource_id": collection["collection_id"]}]);
        let judge = mint(&server, json!({"name": "judge", "scopes": scopes})).await;
        let made = call(&judge, "POST", "/v1/annotations", label.clone()).await.ok();
        assert_eq!(call(&judge, "POST", "/v1/annotations/list", json!({})).await.ok()["total_count"], 1);
        assert_eq!(call(&judge, "GET", "/v1/annotations/stats", Value::Null).await.ok()["total"], 1);
        let one = json!([{"resource_type": "annotation", "resource_id": made["annotation_id"]}]);
        let one = mint(&server, json!({"name": "of one annotation", "scopes": one})).await;
        call(&one, "GET", &format!("/v1/annotations/{}", made["annotation_id"].as_str().unwrap()), Value::Null).await.ok();
        denied(call(&one, "POST", "/v1/annotations/list", json!({})).await);
        denied(call(&one, "POST", "/v1/annotations", label).await);
    }
}
