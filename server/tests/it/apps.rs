//! Hosted apps: a bundle goes up, is served on a host of its own, and can be taken back.

mod hosts;
mod limits;
mod serving;
mod streaming;
mod visiting;

use std::io::Write;

use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

pub use visiting::asked;

use crate::{
    both,
    harness::{Answer, Server, other_organization, retriever},
};

/// An archive of these files.
pub fn bundle(files: &[(&str, &str)]) -> Vec<u8> {
    let files = files.iter().map(|(name, text)| (*name, text.as_bytes()));
    packed(&files.collect::<Vec<_>>())
}

/// An archive of files that may be no texts.
pub fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The host of an app of this server.
pub fn host(server: &Server, slug: &str) -> String {
    let port = server.url.rsplit(':').next().unwrap();
    format!("{slug}.localhost:{port}")
}

/// A request to the host of an app; redirects are answers.
pub fn at(server: &Server, slug: &str, method: &str, path: &str) -> reqwest::RequestBuilder {
    #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
    let client = reqwest::Client::builder()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    client
        .request(method.parse().unwrap(), format!("{}{path}", server.url))
        .header("host", host(server, slug))
}

pub async fn visit(server: &Server, slug: &str, path: &str) -> Answer {
    let request = at(server, slug, "GET", path).header("accept", "text/html,*/*");
    Server::send(request).await
}

/// Makes an app; answers its id.
pub async fn make(server: &Server, body: Value) -> String {
    let made = server.call("POST", "/v1/apps", body).await.ok();
    made["app_id"].as_str().unwrap().to_owned()
}

/// Waits for the end of a deploy by its log, and answers how it stands.
async fn ended(server: &Server, app: &str, deploy: &Value) -> Value {
    let id = deploy["deploy_id"].as_str().unwrap();
    let path = format!("/v1/apps/{app}/deploys/{id}");
    let log = server
        .call("GET", &format!("{path}/logs/stream"), Value::Null)
        .await
        .ok();
    let log = log.as_str().unwrap();
    assert!(
        log.contains("event: log") && log.contains("event: end"),
        "{log}"
    );
    server.call("GET", &path, Value::Null).await.ok()
}

/// Deploys files that come in the request.
pub async fn deploy(server: &Server, app: &str, environment: &str, files: Value) -> Value {
    let body = json!({"environment": environment, "source_files": files});
    let deploy = server
        .call("POST", &format!("/v1/apps/{app}/deploy"), body)
        .await
        .ok();
    ended(server, app, &deploy).await
}

/// Deploys an archive, as a program would.
pub async fn deploy_bundle(server: &Server, app: &str, bytes: Vec<u8>) -> Value {
    let path = format!("/v1/apps/{app}/deploy");
    let place = server
        .call(
            "POST",
            &format!("{path}/upload-url"),
            json!({"filename": "dist.zip"}),
        )
        .await
        .ok();
    let key = place["bundle_s3_key"].clone();
    let verify = format!("{path}/verify-upload");
    let before = server
        .call("POST", &verify, json!({"bundle_s3_key": key}))
        .await
        .ok();
    assert_eq!(before["exists"], false);
    let put = server
        .request("PUT", place["upload_url"].as_str().unwrap())
        .body(bytes.clone());
    assert_eq!(Server::send(put).await.status, 200);
    let after = server
        .call("POST", &verify, json!({"bundle_s3_key": key}))
        .await
        .ok();
    assert_eq!(
        (&after["exists"], &after["size_bytes"]),
        (&json!(true), &json!(bytes.len()))
    );
    let arrived = after["last_modified"].as_str().unwrap();
    assert!(chrono::DateTime::parse_from_rfc3339(arrived).is_ok());
    let deploy = server
        .call("POST", &path, json!({"bundle_s3_key": key}))
        .await
        .ok();
    assert_eq!(deploy["status"], "queued");
    ended(server, app, &deploy).await
}

both! {
    async fn a_bundle_becomes_a_site_and_can_be_taken_back(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let made = server.call("GET", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        assert_eq!(made["url"], json!(format!("http://{}", host(&server, "films"))));
        assert_eq!((&made["version"], &made["auth_config"], &made["hero"]), (&json!(0), &Value::Null, &Value::Null));
        assert_eq!(visit(&server, "films", "/").await.status, 404);

        let script = "console.log('films');\n".repeat(100);
        let one = bundle(&[
            ("dist/index.html", "<!doctype html><head><title>One</title></head><h1>One</h1>"),
            ("dist/assets/main-4f2a9c1b.js", &script),
            ("dist/drawing.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"),
            ("dist/docs/index.html", "<p>docs"),
        ]);
        let status = deploy_bundle(&server, &app, one).await;
        assert_eq!((&status["status"], &status["error"]), (&json!("complete"), &Value::Null), "{status:#}");

        serving::pages_have_their_headers(&server).await;
        serving::a_script_is_kept_small_and_in_parts(&server, &script).await;
        serving::versions_come_and_go_back(&server, &app).await;
        serving::what_is_staged_is_promoted(&server, &app).await;
        serving::a_version_is_packed(&server, &app).await;

        // A restart changes nothing; an app that is off is not there; one that is gone leaves no file.
        let path = format!("/v1/apps/{app}");
        let server = server.restart().await;
        assert!(visit(&server, "films", "/").await.body.as_str().unwrap().contains("Three"));
        server.call("PATCH", &path, json!({"is_active": false})).await.ok();
        assert_eq!(visit(&server, "films", "/").await.status, 404);
        server.call("PATCH", &path, json!({"is_active": true, "slug": "pictures"})).await.ok();
        // Who comes by the former name is led on, as long as there is something to be led to.
        assert_eq!(visit(&server, "films", "/").await.status, 308);
        assert_eq!(visit(&server, "pictures", "/").await.status, 200);
        assert!(!server.files(&format!("apps/{app}")).is_empty());
        server.call("DELETE", &path, Value::Null).await.ok();
        for slug in ["pictures", "films"] {
            assert_eq!(visit(&server, slug, "/").await.status, 404);
        }
        assert_eq!(server.files(&format!("apps/{app}")), Vec::<String>::new());
    }

    async fn bad_bundles_fail_with_their_reason(server) {
        let app = make(&server, json!({"slug": "bad", "meta": {"title": "Bad"}})).await;
        for (bytes, reason) in [
            (b"no archive".to_vec(), "no zip archive"),
            (bundle(&[("index.html", ""), ("../../evil", "x")]), "inside of the bundle"),
            (bundle(&[("index.html", ""), ("/etc/passwd", "x")]), "inside of the bundle"),
            (bundle(&[("index.html", ""), ("INDEX.html", "x")]), "same file"),
            (bundle(&[("src/main.ts", "")]), "no index.html"),
            (bundle(&[("index.html", ""), ("zeros", &"\0".repeat(13 << 20))]), "hundred times"),
        ] {
            let status = deploy_bundle(&server, &app, bytes).await;
            assert_eq!(status["status"], "failed", "{reason}");
            assert!(status["error"].as_str().unwrap().contains(reason), "{status:#}");
        }
        assert_eq!(server.files("").len(), 0, "nothing of them is kept");
        let path = format!("/v1/apps/{app}/deploy");
        for (body, place) in [
            (json!({}), "bundle_s3_key"),
            (json!({"source_files": {"../x": "y"}}), "source_files"),
            (json!({"source_files": {"a": "", "A": ""}}), "source_files"),
        ] {
            let refused = server.call("POST", &path, body).await;
            assert_eq!(refused.status, 422);
            assert!(refused.body.to_string().contains(place), "{:#}", refused.body);
        }
        let other = make(&server, json!({"slug": "other", "meta": {"title": "Other"}})).await;
        let place = server.call("POST", &format!("/v1/apps/{other}/deploy/upload-url"), json!({"filename": "a.zip"})).await.ok();
        let put = server.request("PUT", place["upload_url"].as_str().unwrap()).body(bundle(&[("index.html", "")]));
        Server::send(put).await.ok();
        let theirs = json!({"bundle_s3_key": place["bundle_s3_key"]});
        server.call("POST", &path, theirs.clone()).await.error(404, "NotFoundError");
        let seen = server.call("POST", &format!("{path}/verify-upload"), theirs).await.ok();
        assert_eq!(seen["exists"], false);
    }

    async fn a_host_is_an_apps_or_the_servers_never_both(server) {
        let app = make(&server, json!({"slug": "apart", "meta": {"title": "Apart"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Apart</h1>", "v1/apps": "a file"})).await;
        // Paths of the server are paths of the app there.
        for path in ["/console/", "/v1/me", "/healthz", "/metrics", "/docs", "/v1/openapi.json"] {
            let answer = visit(&server, "apart", path).await;
            assert!(answer.body.to_string().contains("Apart"), "{path}: {}", answer.body);
        }
        let keyed = at(&server, "apart", "GET", "/v1/me").bearer_auth(&server.key).header("accept", "*/*");
        assert_eq!(Server::send(keyed).await.status, 404);
        // No page of another origin reads what is there.
        let asked = at(&server, "apart", "OPTIONS", "/v1/me").header("origin", "https://evil.example").header("access-control-request-method", "GET");
        let answer = Server::send(asked).await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
        for slug in ["nobody", "a.b", "apart--v9", "apart--other", "--", "apart--"] {
            let answer = visit(&server, slug, "/v1/me").await;
            assert_eq!(answer.status, if slug == "apart--" { 200 } else { 404 }, "{slug}");
        }
        // The server's own hosts are untouched.
        assert_eq!(server.call("GET", "/v1/me", Value::Null).await.status, 200);
        let names = ["APART.localhost", "apart.localhost."];
        for name in names {
            let request = server.request("GET", "/").header("host", name).header("accept", "text/html");
            assert!(Server::send(request).await.body.to_string().contains("Apart"), "{name}");
        }
    }

    async fn what_is_edited_is_seen_when_it_is_published(server) {
        let (namespace, id) = retriever(&server, "windows").await;
        let display = json!({"title": "All", "inputs": [], "exposed_fields": ["title"]});
        let body = json!({"slug": "window", "meta": {"title": "Window"}, "tabs": [
            {"tab_id": "all", "label": "All", "retriever_id": id, "display_config": display},
            {"tab_id": "none", "label": "None", "retriever_id": "ret_unknown", "display_config": display},
        ]});
        let app = make(&server, body).await;
        let path = format!("/v1/apps/{app}");
        let config = "/v1/public/apps/window/config";
        let public = |path: &'static str| Server::send(server.request("GET", path));
        public(config).await.error(404, "NotFoundError");
        let published = server.call("POST", &format!("{path}/publish"), json!({"message": "go"})).await.ok();
        assert_eq!((&published["version"], &published["has_unpublished_changes"]), (&json!(1), &json!(false)));
        let edited = server.call("PATCH", &path, json!({"meta": {"title": "Better"}})).await.ok();
        assert_eq!(edited["has_unpublished_changes"], true);
        assert_eq!(public(config).await.ok()["meta"]["title"], "Window");
        let dry = server.call("PATCH", &format!("{path}?dry_run=true"), json!({"is_active": false})).await.ok();
        assert_eq!(dry["is_active"], false);
        server.call("PATCH", &path, json!({"publish": true})).await.ok();
        let seen = public(config).await.ok();
        assert_eq!((&seen["meta"]["title"], &seen["hero"], &seen["is_active"]), (&json!("Better"), &Value::Null, &json!(true)));
        // What is not sent stays, what is null goes.
        let parts = json!({"hero": {"headline": "Hello"}, "custom_html": "<p>Own</p>", "seo": {"meta_title": "Found"}});
        server.call("PATCH", &path, parts).await.ok();
        let left = server.call("PATCH", &path, json!({"hero": null, "seo": null})).await.ok();
        assert_eq!((&left["hero"], &left["seo"], &left["custom_html"]), (&Value::Null, &Value::Null, &json!("<p>Own</p>")));
        let left = server.call("PATCH", &path, json!({"custom_html": null, "publish": true})).await.ok();
        assert_eq!((&left["custom_html"], &left["meta"]["title"]), (&Value::Null, &json!("Better")));

        let search = |body: Value| Server::send(server.request("POST", "/v1/public/apps/window/search").json(&body));
        let found = search(json!({"tab_id": "all"})).await.ok();
        assert_eq!(found["documents"], json!([]));
        search(json!({"tab_id": "none"})).await.error(404, "NotFoundError");
        search(json!({"tab_id": "unknown"})).await.error(404, "NotFoundError");
        // The gallery is what its own inputs find, with the fields that it names.
        let gallery = "/v1/public/apps/window/gallery";
        public(gallery).await.error(404, "NotFoundError");
        let document = json!({"title": "one", "secret": "two", "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", "/v1/collections/things/documents", document).await.ok();
        let featured = json!({"retriever_id": id, "field_config": {"title": {"format": "text"}}});
        server.call("PATCH", &path, json!({"featured_gallery": featured, "publish": true})).await.ok();
        let found = public(gallery).await.ok();
        assert_eq!((&found["documents"][0]["title"], &found["documents"][0]["secret"]), (&json!("one"), &Value::Null));
        server.call("PATCH", &path, json!({"auth_config": {"mode": "clerk"}})).await.ok();
        public(gallery).await.error(401, "AuthenticationError");
        server.call("PATCH", &path, json!({"auth_config": {"mode": "public"}})).await.ok();
        server.call("PATCH", &path, json!({"featured_gallery": {"enabled": false, "retriever_id": id}, "publish": true})).await.ok();
        public(gallery).await.error(404, "NotFoundError");

        let noted = server.request("POST", "/v1/public/apps/window/interactions").json(&json!({"event_type": "click", "own": 1}));
        assert_eq!(Server::send(noted).await.ok()["success"], true);
        let kept: Vec<(String,)> = server.app.db().all("SELECT kind FROM app_events", vec![]).await.unwrap();
        assert_eq!(kept, [("interaction".to_owned(),)]);
    }

    async fn a_key_inside_of_a_live_app_is_not_revoked_by_accident(server) {
        let keys = "/v1/organizations/users/owner@localhost/api-keys";
        let made = server.call("POST", keys, json!({"name": "widget", "permissions": ["read"]})).await.ok();
        let key = made["key"].as_str().unwrap();
        let app = make(&server, json!({"slug": "keyed", "meta": {"title": "Keyed"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<p>", "main.js": format!("const key = '{key}';")})).await;
        let path = format!("{keys}/widget");
        let refused = server.call("DELETE", &path, Value::Null).await.error(409, "ConflictError");
        let apps = &refused["error"]["details"]["referencing_apps"];
        assert_eq!((&apps[0]["app_id"], &apps[0]["slug"], apps.as_array().unwrap().len()), (&json!(app), &json!("keyed"), 1));
        // The key itself is nowhere but in the file.
        let rows: Vec<(String,)> = server.app.db().all("SELECT CAST(data AS TEXT) FROM apps", vec![]).await.unwrap();
        assert!(rows.iter().all(|(row,)| !row.contains(key)));
        // A version without it, and nothing holds it any more.
        deploy(&server, &app, "production", json!({"index.html": "<p>"})).await;
        server.call("DELETE", &path, Value::Null).await.ok();
    }

    async fn slugs_and_settings_are_checked(server) {
        let make = |body: Value| server.call("POST", "/v1/apps", body);
        let meta = json!({"title": "A"});
        for slug in ["a", "Upper", "two--hyphens", "api", "-a-", "ü-ber"] {
            assert_eq!(make(json!({"slug": slug, "meta": meta})).await.status, 422, "{slug}");
        }
        make(json!({"slug": "taken", "meta": meta})).await.ok();
        make(json!({"slug": "taken", "meta": meta})).await.error(409, "AlreadyExistsError");
        let elsewhere = other_organization(&server).await;
        let theirs = server.request("POST", "/v1/apps").bearer_auth(&elsewhere.key).json(&json!({"slug": "taken", "meta": meta}));
        Server::send(theirs).await.error(409, "AlreadyExistsError");
        let other = make(json!({"slug": "other", "meta": meta})).await.ok();
        let path = format!("/v1/apps/{}", other["app_id"].as_str().unwrap());
        for dry in ["", "?dry_run=true"] {
            server.call("PATCH", &format!("{path}{dry}"), json!({"slug": "taken"})).await.error(409, "AlreadyExistsError");
        }
        let dry = server.call("PATCH", &format!("{path}?dry_run=true"), json!({"slug": "free"})).await.ok();
        assert_eq!(dry["slug"], "free");
        assert_eq!(server.call("GET", &path, Value::Null).await.ok()["slug"], "other");
        for (auth, place) in [
            (json!({"mode": "jwt"}), "jwt_jwks_url"),
            (json!({"mode": "jwt", "jwt_jwks_url": "http://10.0.0.1/keys"}), "jwt_jwks_url"),
            (json!({"mode": "jwt", "jwt_jwks_url": "http://1.1.1.1/keys"}), "jwt_jwks_url"),
            (json!({"mode": "api_key"}), "api_keys"),
            (json!({"mode": "api_key", "api_keys": [{"name": "shop", "key": "short"}]}), "key"),
            (json!({"mode": "api_key", "api_keys": [{"name": "shop"}]}), "key"),
            (json!({"mode": "api_key", "api_keys": [{"name": "", "key": "a-key-of-twenty-letters"}]}), "name"),
            (json!({"mode": "api_key", "api_keys": [{"name": "a", "key": "a-key-of-twenty-letters", "role": "x"}]}), "role"),
            (json!({"mode": "sso_oidc"}), "oidc_issuer"),
            (json!({"mode": "clerk", "clerk_allowed_providers": ["myspace"]}), "clerk_allowed_providers"),
            (json!({"mode": "sso_oidc", "oidc_issuer": "http://10.0.0.1", "oidc_client_id": "x"}), "oidc_issuer"),
            (json!({"mode": "sso_oidc", "oidc_issuer": "http://1.1.1.1", "oidc_client_id": "x"}), "oidc_issuer"),
        ] {
            let refused = make(json!({"slug": "auth", "meta": meta, "auth_config": auth})).await;
            assert_eq!(refused.status, 422, "{auth}");
            assert!(refused.body["detail"][0]["loc"].to_string().contains(place), "{:#}", refused.body);
        }
        for (auth, member) in [(json!({"mode": "sso_saml"}), "mode"), (json!({"mode": "clerk", "saml_acs_url": "https://a.example"}), "saml_acs_url")] {
            let refused = make(json!({"slug": "auth", "meta": meta, "auth_config": auth})).await;
            refused.invalid(&["body", "auth_config", member], "not_enabled");
        }
        let rule = json!({"api_allow": [{"pattern": "retrievers"}]});
        make(json!({"slug": "rules", "meta": meta, "build_config": rule})).await.invalid(&["body", "build_config", "api_allow", "0"], "value_error");
        let principal = json!({"env_vars": {"LOUPE_PRINCIPAL": "User"}});
        make(json!({"slug": "own", "meta": meta, "build_config": principal})).await.invalid(&["body", "build_config", "env_vars", "LOUPE_PRINCIPAL"], "value_error");
        let secret = json!({"secrets": {"TOKEN": "worth money"}});
        make(json!({"slug": "secrets", "meta": meta, "build_config": secret})).await.invalid(&["body", "build_config", "secrets"], "not_enabled");
        let list = server.call("GET", "/v1/apps?search=tak", Value::Null).await.ok();
        assert_eq!((&list["total_count"], &list["results"][0]["slug"]), (&json!(1), &json!("taken")));
        server.call("GET", "/v1/apps?limit=0", Value::Null).await.invalid(&["query", "limit"], "range");
    }

    async fn an_owner_is_told_of_settings_that_do_nothing(server) {
        let rules = json!([{"pattern": "/retrievers/*/execute"}, {"pattern": "/organizations/**"}, {"methods": ["DELETE"], "pattern": "/marketplace/catalog"}]);
        let auth = json!({"mode": "clerk", "clerk_org_id": "org_1", "clerk_allowed_providers": ["email", "google", "github", "oidc"]});
        let build = json!({"api_allow": rules, "env_vars": {"LOUPE_PRINCIPLE": "user", "LOUPE_LIST_USERS": "off", "THEIRS": "1"}});
        let body = json!({"slug": "told", "meta": {"title": "Told"}, "auth_config": auth, "build_config": build});
        let made = server.call("POST", "/v1/apps", body).await.ok();
        let warnings: Vec<&str> = made["warnings"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        let told = ["/organizations/**", "/marketplace/catalog", "LOUPE_PRINCIPLE", "clerk_org_id", "sign_in.google", "sign_in.github", "oidc_issuer"];
        assert_eq!(warnings.len(), told.len(), "{warnings:#?}");
        for (warning, words) in warnings.iter().zip(told) {
            assert!(warning.contains(words), "{warning}");
        }
        let path = format!("/v1/apps/{}", made["app_id"].as_str().unwrap());
        assert_eq!(server.call("GET", &path, Value::Null).await.ok()["warnings"], made["warnings"]);
        let mended = json!({"auth_config": {"mode": "clerk", "clerk_allowed_providers": ["email"]}, "build_config": {"api_allow": [], "env_vars": {}}});
        assert_eq!(server.call("PATCH", &path, mended).await.ok()["warnings"], json!([]));
    }

    async fn types_that_are_unknown_are_downloads_and_odd_spellings_are_nothing(server) {
        let app = make(&server, json!({"slug": "odd", "meta": {"title": "Odd"}})).await;
        let files = json!({"index.html": "<h1>Odd</h1>", "assets/index.html": "<h1>Assets</h1>", "setup.exe": "MZ", "LICENSE": "free"});
        assert_eq!(deploy(&server, &app, "production", files).await["status"], "complete");
        serving::what_is_not_known_is_a_download(&server).await;
        serving::odd_spellings_lead_to_no_file(&server).await;
    }

    async fn pages_of_sign_in_wear_the_colours_of_the_app(server) {
        let theme = json!({"primary_color": "#7a1f5c", "background_color": "#fff8e7", "text_color": "#5b3a29"});
        let app = json!({"slug": "worn", "meta": {"title": "Worn"}, "theme": theme, "auth_config": {"mode": "clerk"}});
        let app = make(&server, app).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Worn</h1>"})).await;
        let page = visit(&server, "worn", "/_auth/sign-in").await;
        let page = page.body.as_str().unwrap();
        for colours in ["background:#fff8e7;color:#5b3a29;", "background:#7a1f5c;color:#fff;"] {
            assert!(page.contains(colours), "no {colours} in {page}");
        }
    }

    async fn visitors_reach_what_the_owner_opened_and_nothing_else(server) {
        let (namespace, id) = retriever(&server, "things").await;
        let app = make(&server, json!({"slug": "things", "meta": {"title": "Things"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>Things"})).await;
        let document = json!({"title": "one", "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", "/v1/collections/things/documents", document).await.ok();
        let ask = |method: &str, path: &str| at(&server, "things", method, path);
        visiting::visitors_read_and_search(&server, &namespace, &id).await;
        visiting::the_rest_is_not_there(&server, &id).await;
        server.app.clock().advance(60);
        visiting::other_spellings_lead_nowhere(&server).await;
        server.app.clock().advance(60);
        visiting::rules_open_what_they_name(&server, &app, &id).await;
        visiting::other_pages_get_nothing_done(&server, &id).await;
        // It counts for the owner, under the app.
        loupe_server::usage::flush(&server.app).await.unwrap();
        let used: Vec<(String,)> = server.app.db().all("SELECT key_id FROM key_usage WHERE key_id LIKE 'app_%'", vec![]).await.unwrap();
        assert!(used.iter().any(|(id,)| *id == app), "{used:?}");
        // One visitor cannot spend everybody's share. No time passes: a slow machine would ask too seldom.
        server.app.clock().hold();
        let mut last = 200;
        for _ in 0..400 {
            last = Server::send(ask("GET", "/api/retrievers")).await.status;
            if last == 429 {
                break;
            }
        }
        assert_eq!(last, 429);
    }
}
