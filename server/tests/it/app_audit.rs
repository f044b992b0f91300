//! S-9: who signs in to hosted apps and who fails is in the audit log, once each, without a secret.

use serde_json::{Value, json};

use crate::{
    app_sign_in::sign_up,
    apps::{at, host},
    browser::{Browser, GOOD, app, filled, server_with_mail},
    harness::{Database, Server, config, retriever},
};

const DENIED: &str = "action=permission_denied&resource_type=user";

async fn logs(server: &Server, query: &str) -> Value {
    let path = format!("/v1/organizations/audit/logs?limit=1000&{query}");
    server.call("GET", &path, Value::Null).await.ok()
}

/// The operation and code of each failure.
fn failures(page: &Value) -> Vec<(&str, &str)> {
    let results = page["results"].as_array().unwrap().iter();
    let mut found: Vec<_> = results
        .map(|one| {
            let member = |name: &str| one["changes"][name].as_str().unwrap_or_default();
            (member("operation"), member("code"))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Who was let in is told, with the way.
async fn ways_in_are_told(server: &Server, me: &Value, app_id: &str) {
    let user = me["id"].as_str().unwrap();
    let told = logs(server, &format!("action=user_updated&resource_id={user}")).await;
    assert_eq!(told["total"], 2, "{told:#}");
    let ways = ["POST /_auth/sign-in", "POST /_auth/verify"];
    for (record, way) in told["results"].as_array().unwrap().iter().zip(ways) {
        let changes = json!({"signed_in": true, "operation": way, "app_id": app_id});
        assert_eq!(record["changes"], changes);
        assert_eq!(
            (&record["actor_id"], &record["actor_type"]),
            (&me["id"], &json!("user"))
        );
        assert_eq!(
            (&record["status"], &record["ip_address"]),
            (&json!("success"), &json!("127.0.0.1"))
        );
        assert_eq!(record["resource_type"], "user");
        assert!(record.get("actor_key_name").is_none(), "{record:#}");
    }
}

/// What fails says whom it was about where that is known; who it was nobody knows.
async fn failures_are_told(server: &Server, ada: &mut Browser<'_>, user: &str, app_id: &str) {
    let wrong = [
        ("email", "ada@example.com"),
        ("password", "a lamp in the cove"),
    ];
    assert_eq!(ada.post("/_auth/sign-in", &wrong).await.status, 401);
    let nobody = [("email", "bob@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &nobody).await.status, 401);
    let told = logs(server, &format!("{DENIED}&resource_id={user}")).await;
    assert_eq!(told["total"], 1, "{told:#}");
    let record = &told["results"][0];
    assert_eq!(record["changes"]["code"], "password_wrong");
    assert_eq!(record["changes"]["app_id"], app_id);
    assert_eq!(
        (&record["actor_id"], &record["actor_type"]),
        (&json!("anonymous"), &json!("anonymous"))
    );
    assert_eq!(
        (&record["status"], &record["ip_address"]),
        (&json!("denied"), &json!("127.0.0.1"))
    );
    let told = logs(server, DENIED).await;
    assert_eq!(
        failures(&told),
        [
            ("POST /_auth/sign-in", "password_wrong"),
            ("POST /_auth/sign-in", "user_unknown"),
        ]
    );
}

async fn passwords(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", json!({"mode": "clerk"})).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    let me = ada.get("/_auth/me").await.ok();
    let user = me["id"].as_str().unwrap();
    server.app.clock().advance(1);
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &right).await.status, 303);

    ways_in_are_told(&server, &me, &id).await;

    failures_are_told(&server, &mut ada, user, &id).await;

    // An app with one password for everybody.
    app(
        &server,
        "vault",
        json!({"mode": "password", "password": "sesame, the third"}),
    )
    .await;
    let mut visitor = Browser::new(&server, "vault");
    let wrong = [("password", "sesame")];
    assert_eq!(visitor.post("/_auth/unlock", &wrong).await.status, 401);
    let told = logs(&server, DENIED).await;
    assert!(
        failures(&told).contains(&("POST /_auth/unlock", "password_wrong")),
        "{told:#}"
    );

    let all = logs(&server, "resource_type=user").await.to_string();
    for secret in [GOOD, "a lamp in the cove", "sesame", "bob@example.com"] {
        assert!(!all.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_that_open_and_that_do_not_are_told_sqlite() {
    passwords(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_that_open_and_that_do_not_are_told_postgres() {
    passwords(Database::Postgres).await;
}

/// What an app does for a visitor is the visitor's doing, and what its owner does with people is told, too.
async fn visitors(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let (namespace, _) = retriever(&server, "things").await;
    let id = app(&server, "club", json!({"mode": "clerk"})).await;
    let path = format!("/v1/apps/{id}");
    let build = json!({"build_config": {"api_allow": [{"pattern": "/collections/**"}], "env_vars": {"LOUPE_NAMESPACE": namespace}}});
    server.call("PATCH", &path, build).await.ok();
    let invited = json!({"email_address": "ada@example.com", "role": "editor"});
    let invite = format!("{path}/users/invite");
    server.call("POST", &invite, invited).await.ok();
    mails.wait(1).await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 2).await;
    let me = ada.get("/_auth/me").await.ok();
    let user = me["id"].as_str().unwrap();

    let documents = "/v1/collections/things/documents";
    let removed = async |browser: &mut Browser<'_>| {
        let thing = json!({"title": "one", "vectors": {"own": [1.0, 0.0, 0.0]}});
        let made = server.call_in(&namespace, "POST", documents, thing).await;
        let made = made.ok()["document_id"].as_str().unwrap().to_owned();
        let there = format!("/api/collections/things/documents/{made}");
        let request = at(&server, "club", "DELETE", &there);
        let request = request.header("origin", format!("http://{}", host(&server, "club")));
        browser.send(request).await.ok();
        let told = logs(&server, "action=document_deleted").await;
        told["results"][0].clone()
    };
    let record = removed(&mut ada).await;
    let who = |record: &Value| {
        let members = ["actor_id", "actor_type", "actor_key_name", "ip_address"];
        members.map(|name| record[name].as_str().unwrap().to_owned())
    };
    assert_eq!(
        who(&record),
        [user, "user", "app club", "127.0.0.1"],
        "{record:#}"
    );

    let role = format!("{path}/users/{user}/role");
    server
        .call("PATCH", &role, json!({"role": "curator"}))
        .await
        .ok();
    ada.post("/_auth/sign-out", &[("everywhere", "true")]).await;
    let told = logs(&server, &format!("resource_id={user}")).await;
    let changes: Vec<_> = told["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["action"].clone(), one["changes"].clone()))
        .collect();
    for (action, expected) in [
        (
            "user_created",
            json!({"operation": "POST /_auth/verify", "app_id": id}),
        ),
        (
            "user_updated",
            json!({"role": {"before": "editor", "after": "curator"}, "app_id": id}),
        ),
        (
            "user_updated",
            json!({"signed_out": true, "everywhere": true, "operation": "POST /_auth/sign-out", "app_id": id}),
        ),
    ] {
        assert!(
            changes.contains(&(json!(action), expected.clone())),
            "{expected:#} in {changes:#?}"
        );
    }
    let of_user = format!("{path}/users/{user}");
    server.call("DELETE", &of_user, Value::Null).await.ok();
    let told = logs(&server, &format!("action=user_deleted&resource_id={user}")).await;
    assert_eq!(
        (&told["total"], &told["results"][0]["actor_type"]),
        (&json!(1), &json!("user"))
    );

    // Without sign-in it is nobody in particular, and not the owner.
    server
        .call("PATCH", &path, json!({"auth_config": {"mode": "public"}}))
        .await
        .ok();
    server.app.clock().advance(2);
    let record = removed(&mut Browser::new(&server, "club")).await;
    assert_eq!(who(&record)[..2], ["anonymous", "anonymous"], "{record:#}");
    // What is called elsewhere as somebody here is still somebody of the app.
    let key = "0123456789abcdef0123456789abcdef";
    let keys = json!({"mode": "api_key", "api_keys": [{"name": user, "key": key}]});
    server
        .call("PATCH", &path, json!({ "auth_config": keys }))
        .await
        .ok();
    server.app.clock().advance(2);
    let thing = json!({"title": "one", "vectors": {"own": [1.0, 0.0, 0.0]}});
    let made = server
        .call_in(&namespace, "POST", documents, thing)
        .await
        .ok();
    let there = format!(
        "/api/collections/things/documents/{}",
        made["document_id"].as_str().unwrap()
    );
    let request = at(&server, "club", "DELETE", &there).bearer_auth(key);
    Server::send(request).await.ok();
    let told = logs(&server, "action=document_deleted").await;
    assert_eq!(
        told["results"][0]["actor_id"],
        json!(format!("{id}/{user}"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_names_visitors_and_what_owners_do_with_them_sqlite() {
    visitors(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_names_visitors_and_what_owners_do_with_them_postgres() {
    visitors(Database::Postgres).await;
}

/// Strangers from everywhere fail again and again: all of it is counted, in few records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_stranger_fills_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    app(&server, "club", json!({"mode": "clerk"})).await;
    let origin = format!("http://{}", host(&server, "club"));
    for number in 0..300 {
        let address = format!("203.0.{}.{}", number / 250, number % 250);
        let request = at(&server, "club", "POST", "/_auth/verify").header("origin", &origin);
        let request = request.header("x-forwarded-for", address);
        let answer = Server::send(filled(request, &[("token", "guessed")])).await;
        assert_eq!(answer.status, 410);
    }
    server.app.clock().advance(3601);
    let told = logs(&server, "action=permission_denied&resource_type=user").await;
    let records = told["results"].as_array().unwrap();
    let counted = records
        .iter()
        .map(|one| one["changes"]["refusals"].as_i64().unwrap());
    assert_eq!(counted.sum::<i64>(), 300);
    // A hundred that are told apart, and what came together, maybe told of twice.
    assert!((101..=102).contains(&records.len()), "{}", records.len());
    let others = records
        .iter()
        .find(|one| one["changes"]["operation"] == "*")
        .unwrap();
    assert!(others["ip_address"].is_null(), "{others:#}");
}
