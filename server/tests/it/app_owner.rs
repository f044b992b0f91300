//! What owners are told of their apps before visitors meet with it, and what visitors are told otherwise.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, make, visit},
    both,
    browser::app,
    harness::{Answer, Server, retriever},
};

async fn get(server: &Server, path: &str) -> Value {
    server.call("GET", path, Value::Null).await.ok()
}

async fn api(server: &Server, slug: &str, method: &str, path: &str) -> Answer {
    let request = at(server, slug, method, &format!("/api{path}"));
    Server::send(match method {
        "GET" => request,
        _ => request.json(&json!({"inputs": {}})),
    })
    .await
}

/// What the owner is told of an app, joined.
async fn warned(server: &Server, path: &str) -> String {
    get(server, path).await["warnings"].to_string()
}

/// A path that needs a namespace and names no retriever.
const LIST: &str = "/collections";

/// What a visitor is told of an app without a namespace: nothing that only its owner could do.
async fn is_not_set_up(server: &Server, slug: &str) {
    let refused = api(server, slug, "GET", LIST).await;
    let refused = refused.error(403, "UnauthorizedError");
    assert_eq!(refused["error"]["code"], "app_without_namespace");
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(
        !told.contains("X-Namespace") && !told.contains("ns_"),
        "{told}"
    );
}

both! {
    async fn an_app_keeps_working_in_the_namespace_that_was_the_only_one(server) {
        let early = app(&server, "early", Value::Null).await;
        let early = format!("/v1/apps/{early}");
        let (one, id) = retriever(&server, "one").await;
        let late = app(&server, "late", Value::Null).await;
        let late = format!("/v1/apps/{late}");
        let known = get(&server, &late).await;
        assert_eq!((&known["namespace_id"], &known["warnings"]), (&json!(one), &json!([])));
        assert_eq!(get(&server, &early).await["namespace_id"], Value::Null);
        assert_eq!(warned(&server, &early).await, "[]");
        assert_eq!(api(&server, "early", "GET", LIST).await.status, 200);

        // Another namespace changes nothing for who had one, and is told to the owner of who had none.
        let two = server.namespace("two").await;
        assert_eq!((api(&server, "late", "GET", LIST).await.status, warned(&server, &late).await), (200, "[]".into()));
        let told = warned(&server, &early).await;
        assert!(told.contains("no namespace is set and there are several"), "{told}");
        is_not_set_up(&server, "early").await;
        let execute = format!("/retrievers/{id}/execute");
        for (method, path) in [("POST", execute.as_str()), ("GET", "/marketplace/catalog")] {
            assert_eq!(api(&server, "early", method, path).await.status, 200, "{path}");
        }
        let listed = get(&server, "/v1/apps").await;
        let listed: Vec<_> = listed["results"].as_array().unwrap().iter().map(|one| one["namespace_id"].clone()).collect();
        assert_eq!(listed, [json!(one), Value::Null]);
        let changed = server.call_in(&two, "PATCH", &early, json!({})).await.ok();
        assert_eq!((&changed["namespace_id"], &changed["warnings"]), (&json!(two), &json!([])));
        assert_eq!(api(&server, "early", "GET", LIST).await.status, 200);

        // Nor is it kept from the owner that the namespace is gone.
        let gone = server.call("DELETE", &format!("/v1/namespaces/{two}"), Value::Null).await.ok();
        server.task_end(gone["task_id"].as_str().unwrap()).await;
        let told = warned(&server, &early).await;
        assert!(told.contains(&format!("its namespace {two} is gone")), "{told}");
        is_not_set_up(&server, "early").await;
        let build = json!({"build_config": {"env_vars": {"LOUPE_NAMESPACE": one}}});
        let changed = server.call("PATCH", &early, build).await.ok();
        assert_eq!((&changed["namespace_id"], &changed["warnings"]), (&json!(one), &json!([])));
    }

    async fn what_a_rollback_would_serve_is_told(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        let previous = async || get(&server, &path).await["environments"]["production"]["previous_version"].clone();
        let back = async || server.call("POST", &format!("{path}/rollback"), json!({})).await;
        deploy(&server, &app, "staging", json!({"index.html": "<h1>One"})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Two"})).await;
        // Version 2 is the first that visitors got.
        assert_eq!(previous().await, Value::Null);
        back().await.error(409, "ConflictError");
        for words in ["Three", "Four"] {
            deploy(&server, &app, "production", json!({"index.html": words})).await;
        }
        server.call("POST", &format!("{path}/versions/1/restore"), json!({})).await.ok();
        let gone = server.app.db().write(|tx| Box::pin(async move { tx.run("DELETE FROM app_versions WHERE version = 3", vec![]).await }));
        assert_eq!(gone.await.unwrap(), 1);
        for expected in [4, 2] {
            assert_eq!(previous().await, json!(expected));
            let now = back().await.ok();
            assert_eq!(now["version"], expected);
            assert_eq!(now["environments"]["production"]["previous_version"], previous().await);
        }
        assert_eq!(previous().await, Value::Null);
        back().await.error(409, "ConflictError");
    }

    async fn nobody_is_invited_where_nobody_signs_in(server) {
        let app = app(&server, "club", Value::Null).await;
        let path = format!("/v1/apps/{app}");
        let invite = async || server.call("POST", &format!("{path}/users/invite"), json!({"email_address": "ada@example.com"})).await;
        let refused = invite().await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "no_sign_in");
        assert_eq!(get(&server, &format!("{path}/users/invitations")).await["total"], 0);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "clerk"}})).await.ok();
        assert_eq!(invite().await.ok()["status"], "pending");
    }

    async fn a_page_on_which_nobody_can_sign_in_says_so(server) {
        const WORDS: &str = "Nobody can sign in at the moment.";
        let id = app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["google"]})).await;
        let theme = json!({"theme": {"primary_color": "#007aff", "font_family": "Georgia", "border_radius": "3px", "surface_color": "#fffdf5",
            "border_color": "#333333", "background_color": "#ffffff", "text_color": "#111111"}, "publish": true});
        let path = format!("/v1/apps/{id}");
        server.call("PATCH", &path, theme).await.ok();
        for page in ["sign-in", "sign-up"] {
            let shown = visit(&server, "club", &format!("/_auth/{page}")).await;
            let html = shown.body.as_str().unwrap();
            assert!(html.contains(WORDS), "{html}");
            // It looks like the app's pages.
            assert!(html.contains("Georgia,serif"), "{html}");
            assert!(html.contains("border:1px solid #333333;border-radius:3px;background:#fffdf5;"), "{html}");
        }
        server.call("PATCH", &path, json!({"auth_config": {"mode": "clerk", "clerk_allowed_providers": ["google", "email"]}})).await.ok();
        for page in ["sign-in", "sign-up"] {
            let shown = visit(&server, "club", &format!("/_auth/{page}")).await;
            assert!(!shown.body.as_str().unwrap().contains(WORDS), "{page}");
        }
    }

    async fn scripts_of_sign_in_go_out_packed(server) {
        app(&server, "club", json!({"mode": "clerk", "clerk_allowed_providers": ["email"]})).await;
        for script in ["sdk", "form", "passkeys"] {
            let path = format!("/_auth/{script}.js");
            let ask = |coding: &str| at(&server, "club", "GET", &path).header("accept-encoding", coding);
            let plain = Server::send(ask("br;q=0, gzip")).await;
            let packed = ask("gzip, br").send().await.unwrap();
            assert_eq!((plain.status, packed.status().as_u16()), (200, 200));
            assert!(!plain.headers.contains_key("content-encoding"));
            let headers = packed.headers().clone();
            assert_eq!(headers["content-encoding"], "br");
            assert_eq!(headers["vary"], "accept-encoding");
            assert_eq!(headers["content-type"], plain.headers["content-type"]);
            assert_ne!(headers["etag"], plain.headers["etag"]);
            let bytes = packed.bytes().await.unwrap();
            let mut text = Vec::new();
            brotli::BrotliDecompress(&mut &*bytes, &mut text).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), plain.body.as_str().unwrap());
            assert!(bytes.len() * 2 < plain.body.as_str().unwrap().len());
            for (coding, tag) in [("br", &headers["etag"]), ("gzip", &plain.headers["etag"])] {
                let known = Server::send(ask(coding).header("if-none-match", tag)).await;
                assert_eq!(known.status, 304, "{script} {coding}");
            }
        }
    }

    async fn devices_find_what_belongs_to_an_app(server) {
        const NAME: &str = ".well-known/apple-app-site-association";
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Films", NAME: "{\"webcredentials\":{}}"})).await;
        let found = Server::send(at(&server, "films", "GET", &format!("/{NAME}"))).await;
        assert_eq!((found.status, &found.headers["content-type"]), (200, &"application/json".parse().unwrap()));
        assert!(!found.headers.contains_key("content-disposition"));
    }

    async fn keys_inside_of_live_apps_go_neither_with_their_user_nor_unseen(server) {
        let user = json!({"email": "ada@example.com", "user_name": "Ada"});
        server.call("POST", "/v1/organizations/users", user).await.ok();
        let of_user = "/v1/organizations/users/ada@example.com";
        let keys = format!("{of_user}/api-keys");
        let key = |made: &Value| made["key"].as_str().unwrap().to_owned();
        let app = make(&server, json!({"slug": "keyed", "meta": {"title": "Keyed"}})).await;
        let put_in = async |key: &str| {
            let files = json!({"index.html": "<p>", "main.js": format!("const key = '{key}';")});
            deploy(&server, &app, "production", files).await;
        };
        let made = server.call("POST", &keys, json!({"name": "widget", "permissions": ["read"]})).await.ok();
        let rotate = async || server.call("POST", &format!("{keys}/widget/rotate"), json!({})).await.ok();
        assert_eq!(made["referencing_apps"], Value::Null);
        assert_eq!(rotate().await["referencing_apps"], Value::Null, "no app has it");
        let now = key(&rotate().await);
        put_in(&now).await;
        let refused = server.call("DELETE", of_user, Value::Null).await.error(409, "ConflictError");
        assert_eq!(refused["error"]["code"], "key_in_use");
        let apps = &refused["error"]["details"]["referencing_apps"];
        assert_eq!((&apps[0]["app_id"], apps.as_array().unwrap().len()), (&json!(app), 1));
        let works = Server::send(server.request("GET", "/v1/me").bearer_auth(&now)).await;
        assert_eq!(works.status, 200, "nothing was revoked");
        let rotated = rotate().await;
        assert_eq!(rotated["referencing_apps"][0]["slug"], "keyed");
        put_in(&key(&rotated)).await;
        server.call("DELETE", of_user, Value::Null).await.error(409, "ConflictError");
        server.call("DELETE", &format!("{of_user}?force=true"), Value::Null).await.ok();
        let over = Server::send(server.request("GET", "/v1/me").bearer_auth(key(&rotated))).await;
        assert_eq!(over.status, 401);
    }
}
