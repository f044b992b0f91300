//! Keys: made, changed, rotated, revoked, expired; refused by the very next request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
};

const KEYS: &str = "/v1/organizations/users/owner@localhost/api-keys";

async fn make(server: &Server, body: Value) -> Value {
    server.call("POST", KEYS, body).await.ok()
}

fn secret(key: &Value) -> &str {
    key["key"].as_str().unwrap()
}

async fn me(server: &Server, secret: &str) -> Answer {
    Server::send(server.request("GET", "/v1/me").bearer_auth(secret)).await
}

both! {
    async fn a_rotated_key_keeps_its_id_and_its_old_secret_is_refused_at_once(server) {
        let made = make(&server, json!({
            "name": "site", "note": "the shop window", "permissions": ["write"], "allowed_origins": ["https://*.example.com"],
        })).await;
        assert_eq!((&made["description"], &made["note"]), (&json!("the shop window"), &json!("the shop window")));
        // What is left out stays, and a null takes the note away.
        let path = format!("{KEYS}/site");
        for (change, note) in [(json!({"expires_at": null}), "the shop window"), (json!({"note": null}), "")] {
            let changed = server.call("PATCH", &path, change).await.ok();
            assert_eq!((&changed["description"], &changed["note"], &changed["scopes"]), (&json!(note), &json!(note), &json!([])));
        }
        // An answer has it under both names, and may be sent back.
        let both = json!({"description": "the shop", "note": "the window"});
        let changed = server.call("PATCH", &path, both).await.ok();
        assert_eq!((&changed["description"], &changed["note"]), (&json!("the shop"), &json!("the shop")));
        let listed = server.call("GET", KEYS, Value::Null).await.ok();
        assert!(listed["results"].as_array().unwrap().iter().all(|key| key["scopes"] == json!([])), "{listed:#}");
        let old = secret(&made);
        me(&server, old).await.ok();
        let rotated = server.call("POST", &format!("{KEYS}/site/rotate"), Value::Null).await.ok();
        let new = secret(&rotated);
        assert_ne!(old, new);
        for member in ["key_id", "permissions", "allowed_origins", "created_at", "name"] {
            assert_eq!(made[member], rotated[member], "{member}");
        }
        assert_ne!(made["key_hash"], rotated["key_hash"]);
        me(&server, old).await.error(401, "AuthenticationError");
        me(&server, new).await.ok();
        let elsewhere = server.request("GET", "/v1/me").bearer_auth(new).header("origin", "https://evil.example.org");
        assert_eq!(Server::send(elsewhere).await.error(403, "ForbiddenError")["error"]["code"], "origin_not_allowed");
        let here = server.request("GET", "/v1/me").bearer_auth(new).header("origin", "https://shop.example.com");
        Server::send(here).await.ok();
        // A browser leaves out the port that a scheme has by itself.
        let ports = json!({"allowed_origins": ["HTTPS://shop.example.com:443", "http://shop.example.com:8080", "http://*.example.com:80"]});
        let plain = json!(["HTTPS://shop.example.com", "http://shop.example.com:8080", "http://*.example.com"]);
        assert_eq!(server.call("PATCH", &path, ports).await.ok()["allowed_origins"], plain);
        for (origin, status) in [("https://shop.example.com", 200), ("http://a.example.com", 200), ("http://shop.example.com:8081", 403)] {
            let request = server.request("GET", "/v1/me").bearer_auth(new).header("origin", origin);
            assert_eq!(Server::send(request).await.status, status, "{origin}");
        }
    }

    async fn a_key_in_use_is_revoked_only_by_force(server) {
        let made = make(&server, json!({"name": "worker"})).await;
        me(&server, secret(&made)).await.ok();
        let path = format!("{KEYS}/worker");
        let refused = server.call("DELETE", &path, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "key_in_use");
        assert_eq!(refused["error"]["details"]["referencing_apps"], json!([]));
        assert!(refused["error"]["details"]["last_used_at"].is_string());
        me(&server, secret(&made)).await.ok();
        server.call("DELETE", &format!("{path}?force=true"), Value::Null).await.ok();
        let error = me(&server, secret(&made)).await.error(401, "AuthenticationError");
        assert_eq!(error["error"]["code"], "api_key_revoked");
        // For good: no second end, no change, no rotation; the name is free again.
        for (method, path) in [("DELETE", path.clone()), ("PATCH", path.clone()), ("POST", format!("{path}/rotate"))] {
            let answer = server.call(method, &path, if method == "PATCH" { json!({}) } else { Value::Null }).await;
            assert_eq!(answer.error(409, "ConflictError")["error"]["code"], "api_key_revoked");
        }
        make(&server, json!({"name": "worker"})).await;
        let all = server.call("GET", &format!("{KEYS}?include_revoked=true"), Value::Null).await.ok();
        let active = server.call("GET", KEYS, Value::Null).await.ok();
        assert_eq!((all["total"].as_i64(), active["total"].as_i64()), (Some(3), Some(2)));
        let revoked = all["results"].as_array().unwrap().iter().find(|key| key["status"] == "revoked").unwrap();
        assert!(revoked["revoked_at"].is_string() && revoked["revoked_by"].is_string(), "{revoked}");
    }

    async fn no_key_is_called_like_the_id_of_another(server) {
        let one = make(&server, json!({"name": "one"})).await;
        let id = one["key_id"].as_str().unwrap();
        make(&server, json!({"name": "two"})).await;
        server.call("POST", KEYS, json!({"name": id})).await.error(409, "AlreadyExistsError");
        server.call("PATCH", &format!("{KEYS}/two"), json!({"name": id})).await.error(409, "AlreadyExistsError");
        // A path takes either.
        server.call("DELETE", &format!("{KEYS}/{id}"), Value::Null).await.ok();
        me(&server, secret(&one)).await.error(401, "AuthenticationError");
    }

    async fn what_is_refused_is_no_use_of_a_key(server) {
        let made = make(&server, json!({"name": "reader", "permissions": ["read"]})).await;
        let refused = server.request("GET", KEYS).bearer_auth(secret(&made));
        Server::send(refused).await.error(403, "ForbiddenError");
        let unknown = server.request("GET", "/v1/namespaces/ns_unknown").bearer_auth(secret(&made));
        Server::send(unknown).await.error(404, "NotFoundError");
        let list = server.call("GET", KEYS, Value::Null).await.ok();
        let found = list["results"].as_array().unwrap().iter().find(|key| key["name"] == "reader").unwrap();
        assert!(found["last_used_at"].is_null(), "{found:#}");
        server.call("DELETE", &format!("{KEYS}/reader"), Value::Null).await.ok();
    }

    async fn a_key_nobody_used_for_a_week_is_revoked_without_force(server) {
        let made = make(&server, json!({"name": "idle"})).await;
        me(&server, secret(&made)).await.ok();
        server.call("DELETE", &format!("{KEYS}/idle"), Value::Null).await.error(409, "ConflictError");
        // A restart forgets what was used lately; the database does not.
        let server = server.restart().await;
        server.call("DELETE", &format!("{KEYS}/idle"), Value::Null).await.error(409, "ConflictError");
        server.app.clock().advance(8 * 24 * 3600);
        server.call("DELETE", &format!("{KEYS}/idle"), Value::Null).await.ok();
    }

    async fn an_expired_key_is_refused_and_stays_so(server) {
        let at = server.app.clock().now() + chrono::Duration::seconds(100);
        make(&server, json!({"name": "heir"})).await;
        let made = make(&server, json!({"name": "brief", "expires_at": at})).await;
        me(&server, secret(&made)).await.ok();
        let past = json!({"name": "late", "expires_at": "2020-01-01T00:00:00Z"});
        server.call("POST", KEYS, past).await.invalid(&["body", "expires_at"], "value_error");
        // A moment without a zone is of UTC, and what is none is told.
        let path = format!("{KEYS}/heir");
        for (sent, kept) in [("2100-01-01T00:00:00", "2100-01-01T00:00:00Z"), ("2100-01-01T02:00:00.5+02:00", "2100-01-01T00:00:00.500Z")] {
            assert_eq!(server.call("PATCH", &path, json!({"expires_at": sent})).await.ok()["expires_at"], kept);
        }
        assert!(server.call("PATCH", &path, json!({"expires_at": null})).await.ok()["expires_at"].is_null());
        server.call("PATCH", &path, json!({"expires_at": "soon"})).await.invalid(&["body", "expires_at"], "value_error");
        server.call("PATCH", &path, json!({"expires_at": 5})).await.invalid(&["body", "expires_at"], "string_type");
        let tomorrow = json!({"name": "tomorrow", "expires_at": "2100-01-01T00:00:00"});
        assert_eq!(make(&server, tomorrow).await["expires_at"], "2100-01-01T00:00:00Z");
        server.app.clock().advance(101);
        let error = me(&server, secret(&made)).await.error(401, "AuthenticationError");
        assert_eq!(error["error"]["code"], "api_key_expired");
        let list = server.call("GET", KEYS, Value::Null).await.ok();
        let brief = list["results"].as_array().unwrap().iter().find(|key| key["name"] == "brief");
        assert_eq!(brief.unwrap()["status"], "expired");
        let later = json!({"expires_at": null});
        server.call("PATCH", &format!("{KEYS}/brief"), later).await.error(409, "ConflictError");
        // It keeps nobody from its name, neither who is called so from now on nor who is new.
        server.call("PATCH", &format!("{KEYS}/heir"), json!({"name": "brief"})).await.ok();
        server.call("PATCH", &format!("{KEYS}/brief"), json!({"name": "heir"})).await.ok();
        make(&server, json!({"name": "brief"})).await;
    }

    async fn a_key_is_changed_and_the_change_holds_at_once(server) {
        let at = server.app.clock().now() + chrono::Duration::seconds(1000);
        let made = make(&server, json!({"name": "robot", "permissions": ["admin"], "expires_at": at, "rate_limit_override": 7})).await;
        let robot = secret(&made).to_owned();
        let users = || async { Server::send(server.request("GET", KEYS).bearer_auth(&robot)).await };
        users().await.ok();
        let path = format!("{KEYS}/robot");
        let changed = server.call("PATCH", &path, json!({"permissions": ["read"], "expires_at": null, "name": "reader"})).await.ok();
        assert_eq!(changed["permissions"], json!(["read"]));
        assert!(changed["expires_at"].is_null());
        assert_eq!(changed["rate_limit_override"], 7);
        users().await.error(403, "ForbiddenError");
        server.call("PATCH", &path, json!({})).await.error(404, "NotFoundError");
        let path = format!("{KEYS}/reader");
        server.call("PATCH", &path, json!({"name": "admin"})).await.error(409, "AlreadyExistsError");
        server.call("PATCH", &path, json!({"permissions": []})).await.invalid(&["body", "permissions"], "too_short");
        server.call("PATCH", &path, json!({"rate_limit_override": 0})).await.invalid(&["body", "rate_limit_override"], "greater_than_equal");
        server.call("PATCH", &path, json!({"status": "revoked"})).await.invalid(&["body", "status"], "immutable_field");
        let origin = json!({"allowed_origins": ["https://example.com/page"]});
        server.call("PATCH", &path, origin).await.invalid(&["body", "allowed_origins", "0"], "value_error");
        let scope = json!({"scopes": [{"resource_type": "bucket", "resource_id": "a*b"}]});
        server.call("PATCH", &path, scope).await.invalid(&["body", "scopes", "0", "resource_id"], "value_error");
        let cleared = server.call("PATCH", &path, json!({"rate_limit_override": null})).await.ok();
        assert!(cleared["rate_limit_override"].is_null());
    }

    async fn a_scoped_key_lists_the_keys_and_the_people_that_it_covers(server) {
        let one = make(&server, json!({"name": "one"})).await;
        make(&server, json!({"name": "two"})).await;
        let (key_id, user_id) = (&one["key_id"], &one["user_id"]);
        server.call("POST", "/v1/organizations/users", json!({"email": "ada@example.org", "user_name": "Ada"})).await.ok();
        for (scope, keys, people) in [
            (json!({"resource_type": "bucket", "resource_id": "bkt_none"}), 0, 0),
            (json!({"resource_type": "api_key", "resource_id": key_id}), 1, 0),
            (json!({"resource_type": "user", "resource_id": user_id}), 0, 1),
        ] {
            let name = scope["resource_type"].as_str().unwrap();
            let made = make(&server, json!({"name": name, "permissions": ["admin"], "scopes": [scope]})).await;
            let get = async |path: &str| Server::send(server.request("GET", path).bearer_auth(secret(&made))).await;
            let me = get("/v1/me").await.ok();
            assert_eq!((&me["key"]["key_id"], &me["key"]["scopes"]), (&made["key_id"], &json!([scope])));
            let list = get(KEYS).await.ok();
            assert_eq!(list["total"], keys, "{name}: {list:#}");
            assert!(list["results"].as_array().unwrap().iter().all(|key| key["key_id"] == *key_id));
            let list = get("/v1/organizations/users").await.ok();
            assert_eq!(list["total"], people, "{name}: {list:#}");
            let owner = get("/v1/organizations/users/owner@localhost").await;
            assert_eq!(owner.status, if people == 1 { 200 } else { 403 }, "{name}: {:#}", owner.body);
            get("/v1/organizations/users/ada@example.org").await.error(403, "ForbiddenError");
        }
    }

    async fn null_takes_an_address_away(server) {
        let (user, organization) = ("/v1/organizations/users/owner@localhost", "/v1/organizations");
        let picture = "https://pictures.example/1.png";
        for (path, member, sent) in [(user, "avatar_url", picture), (organization, "logo_url", picture), (organization, "billing_email", "bills@example.org"), (organization, "notifications_email", "news@example.org")] {
            let change = async |body: Value| server.call("PATCH", path, body).await.ok()[member].clone();
            assert_eq!(change(json!({member: sent})).await, sent);
            assert_eq!(change(json!({})).await, sent, "what is not sent stays");
            assert_eq!(change(json!({member: null})).await, Value::Null);
            assert_eq!(server.call("GET", path, Value::Null).await.ok()[member], Value::Null);
            server.call("PATCH", path, json!({member: null, "colour": "red"})).await.invalid(&["body", "colour"], "extra_forbidden");
        }
    }

    async fn the_organizations_own_key_is_protected(server) {
        let path = format!("{KEYS}/admin");
        for (method, path, body) in [
            ("PATCH", path.clone(), json!({"name": "other"})),
            ("POST", format!("{path}/rotate"), Value::Null),
            ("DELETE", format!("{path}?force=true"), Value::Null),
            ("PATCH", "/v1/organizations/users/owner@localhost".into(), json!({"status": "suspended"})),
            ("DELETE", "/v1/organizations/users/owner@localhost".into(), Value::Null),
        ] {
            let error = server.call(method, &path, body).await.error(403, "ForbiddenError");
            assert_eq!(error["error"]["code"], "protected_key", "{method} {path}");
        }
        me(&server, &server.key).await.ok();
    }

    async fn a_suspended_or_removed_user_has_no_keys(server) {
        for (email, end) in [("ada@example.org", "PATCH"), ("bob@example.org", "DELETE")] {
            let user = format!("/v1/organizations/users/{email}");
            let keys = format!("{user}/api-keys");
            server.call("POST", "/v1/organizations/users", json!({"email": email, "user_name": "Someone"})).await.ok();
            let one = server.call("POST", &keys, json!({"name": "one"})).await.ok();
            let two = server.call("POST", &keys, json!({"name": "two"})).await.ok();
            for key in [&one, &two] {
                assert_eq!(me(&server, secret(key)).await.ok()["user_email"], email);
            }
            let body = if end == "PATCH" { json!({"status": "suspended"}) } else { Value::Null };
            server.call(end, &user, body).await.ok();
            for key in [&one, &two] {
                me(&server, secret(key)).await.error(401, "AuthenticationError");
            }
            if end == "PATCH" {
                server.call("POST", &keys, json!({"name": "three"})).await.error(409, "ConflictError");
                server.call("PATCH", &user, json!({"status": "active"})).await.ok();
                me(&server, secret(&one)).await.error(401, "AuthenticationError");
            } else {
                server.call("GET", &user, Value::Null).await.error(404, "NotFoundError");
                // The address is free again, and its new owner is somebody else.
                let again = server.call("POST", "/v1/organizations/users", json!({"email": email, "user_name": "Someone else"})).await.ok();
                assert_ne!(again["user_id"], one["user_id"]);
                assert_eq!(server.call("GET", &keys, Value::Null).await.ok()["total"], 0);
            }
        }
    }

    async fn a_retrievers_key_is_listed_and_revoked_with_its_retriever(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "window").await;
        let path = format!("/v1/retrievers/{retriever}/api-keys");
        let made = server.call_in(&namespace, "POST", &path, json!({"name": "browser", "allowed_origins": ["https://shop.example"]})).await.ok();
        assert!(secret(&made).starts_with("ret_sk_"), "{made}");
        assert_eq!(made["key_type"], "retriever");
        assert_eq!(made["scopes"], json!([{"resource_type": "retriever", "resource_id": retriever, "operations": ["execute_retriever"]}]));
        let list = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(list["total"], 1);
        assert!(!list.to_string().contains(secret(&made)));
        let id = made["key_id"].as_str().unwrap();
        server.call_in(&namespace, "DELETE", &format!("{path}/key_unknown"), Value::Null).await.error(404, "NotFoundError");
        me(&server, secret(&made)).await.ok();
        // As every key that is in use.
        let refused = server.call_in(&namespace, "DELETE", &format!("{path}/{id}"), Value::Null).await.error(409, "ConflictError");
        assert_eq!((&refused["error"]["code"], &refused["error"]["details"]["key_id"]), (&json!("key_in_use"), &json!(id)));
        assert!(refused["error"]["details"]["last_used_at"].is_string(), "{refused:#}");
        me(&server, secret(&made)).await.ok();
        server.call_in(&namespace, "DELETE", &format!("{path}/{id}?force=true"), Value::Null).await.ok();
        me(&server, secret(&made)).await.error(401, "AuthenticationError");
        assert_eq!(server.call_in(&namespace, "GET", &path, Value::Null).await.ok()["total"], 0);
        assert_eq!(server.call_in(&namespace, "GET", &format!("{path}?include_revoked=true"), Value::Null).await.ok()["total"], 1);

        let unused = server.call_in(&namespace, "POST", &path, json!({"name": "unused"})).await.ok();
        let unused = format!("{path}/{}", unused["key_id"].as_str().unwrap());
        server.call_in(&namespace, "DELETE", &unused, Value::Null).await.ok();

        let orphan = server.call_in(&namespace, "POST", &path, json!({"name": "orphan"})).await.ok();
        server.call_in(&namespace, "DELETE", &format!("/v1/retrievers/{retriever}"), Value::Null).await.ok();
        me(&server, secret(&orphan)).await.error(401, "AuthenticationError");
    }

    async fn a_key_in_the_hands_of_strangers_names_nobody_and_opens_nothing_else(server) {
        let (namespace, retriever) = crate::harness::retriever(&server, "shown").await;
        let path = format!("/v1/retrievers/{retriever}/api-keys");
        let page = server.call_in(&namespace, "POST", &path, json!({"name": "page"})).await.ok();
        let person = make(&server, json!({"name": "eve", "principal_id": "eve"})).await;
        for (key, status) in [(&page, 403), (&person, 404)] {
            let told = me(&server, secret(key)).await.ok();
            assert!(told["user_email"].is_null(), "{told:#}");
            assert_eq!(told["key"]["key_id"], key["key_id"]);
            // The catalogue is no retriever of the page's.
            let request = server.request("POST", "/v1/marketplace/catalog/nothing/execute").bearer_auth(secret(key));
            assert_eq!(Server::send(request.json(&json!({"inputs": {}}))).await.status, status);
        }
        assert_eq!(me(&server, &server.key).await.ok()["user_email"], "owner@localhost");
    }

    async fn ten_thousand_typing_errors_cost_no_read_of_the_database(server) {
        let before = server.app.keys.entry_count();
        for place in 0..server.key.len() {
            let mut typo = server.key.clone();
            typo.replace_range(place..=place, if &typo[place..=place] == "x" { "y" } else { "x" });
            assert_eq!(me(&server, &typo).await.error(401, "AuthenticationError")["error"]["code"], "api_key_malformed");
        }
        assert_eq!(server.app.keys.entry_count(), before);
    }
}

/// Another process on the same database.
async fn beside(first: &Server) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = first.app.config().clone();
    config.data = folder.path().join("data");
    config.listen.set_port(0);
    Server::start_with(config, folder, Some(first.key.clone())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_refuses_an_ended_key_within_a_second() {
    let first = Server::start(crate::harness::Database::Postgres).await;
    let others = [beside(&first).await, beside(&first).await];
    let made = make(&first, json!({"name": "shared"})).await;
    let mut old = secret(&made).to_owned();
    let rotation = ("POST", format!("{KEYS}/shared/rotate"));
    let revocation = ("DELETE", format!("{KEYS}/shared?force=true"));
    for (method, path) in [rotation, revocation] {
        for server in &others {
            me(server, &old).await.ok();
        }
        let answer = first.call(method, &path, Value::Null).await.ok();
        let ended = Instant::now();
        me(&first, &old).await.error(401, "AuthenticationError");
        for server in &others {
            loop {
                let sent = ended.elapsed();
                if me(server, &old).await.status == 401 {
                    break;
                }
                assert!(sent < Duration::from_secs(1), "{method}: {sent:?}");
            }
        }
        if let Some(new) = answer["key"].as_str() {
            old = new.to_owned();
        }
    }
}
