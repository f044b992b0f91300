//! What an app was: versions that overtake each other, go and leave nothing, and the name that it had.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    apps::{at, bundle, deploy, deploy_bundle, host, make, visit},
    both,
    fake_s3::Bucket,
    harness::{self, Database, Server, other_organization},
    queue::beside,
};

/// Changes rows behind the server's back.
async fn run(server: &Server, sql: &'static str) {
    let run = server
        .app
        .db()
        .write(move |tx| Box::pin(async move { tx.run(sql, vec![]).await }));
    assert!(run.await.unwrap() > 0, "{sql}");
}

fn page(words: &str) -> Value {
    json!({"index.html": format!("<!doctype html><title>{words}</title><h1>{words}</h1>")})
}

both! {
    async fn a_slow_deploy_is_kept_and_a_newer_one_stays(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Newer")).await;
        // As if that one had been asked for an hour after the next.
        run(&server, "UPDATE app_deploys SET created_at = created_at + 3600000000").await;
        let late = deploy(&server, &app, "production", page("Older")).await;
        assert_eq!((&late["status"], &late["error"]), (&json!("complete"), &Value::Null));
        assert!(visit(&server, "films", "/").await.body.to_string().contains("Newer"));
        assert!(visit(&server, "films--v2", "/").await.body.to_string().contains("Older"));
        let told = server.call("GET", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        assert_eq!(told["version"], 1);
        // Another environment is none of its business.
        deploy(&server, &app, "staging", page("Tried")).await;
        assert!(visit(&server, "films--staging", "/").await.body.to_string().contains("Tried"));
    }

    async fn a_deploy_tells_what_its_page_asks_for_and_does_not_have(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let html = "<!doctype html><link rel=stylesheet href=/assets/main.css><script src=/build/main.js></script><h1>Films</h1>";
        let told = deploy(&server, &app, "production", json!({"index.html": html, "assets/main.css": "h1{}"})).await;
        assert_eq!(told["status"], "complete", "it is served all the same");
        let test = &told["smoke_test"];
        assert_eq!((&test["passed"], &test["errors"]), (&json!(false), &json!(["index.html asks for /build/main.js, which is not among the files"])));
        assert_eq!(test["url"], json!(format!("http://{}", host(&server, "films--v1"))));
        assert!(test["tested_at"].is_string() && test["duration_ms"].is_i64(), "{test}");
        let log = format!("/v1/apps/{app}/deploys/{}/logs/stream", told["deploy_id"].as_str().unwrap());
        let log = server.call("GET", &log, Value::Null).await.ok();
        assert!(log.as_str().unwrap().contains("asks for /build/main.js"), "{log}");
        let packed = bundle(&[("dist/index.html", html), ("dist/build/main.js", "1"), ("dist/assets/main.css", "h1{}")]);
        let whole = deploy_bundle(&server, &app, packed).await;
        assert_eq!((&whole["smoke_test"]["passed"], &whole["smoke_test"]["errors"]), (&json!(true), &Value::Null));
    }

    async fn an_app_that_cannot_be_read_says_so_in_its_owners_words(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Films")).await;
        for file in server.files(&format!("apps/{app}/files")) {
            std::fs::remove_file(server.folder.path().join("data/blobs").join(file)).unwrap();
        }
        let patch = async |monitoring: Value| {
            let body = json!({ "monitoring_config": monitoring });
            server.call("PATCH", &format!("/v1/apps/{app}"), body).await.ok();
            let shown = visit(&server, "films", "/").await;
            assert_eq!(shown.status, 503);
            shown.body.as_str().unwrap().to_owned()
        };
        assert!(patch(json!({})).await.contains("<h1>Something went wrong</h1>"));
        let own = patch(json!({"custom_error_message": "The <projector> broke."})).await;
        assert!(own.contains("The &lt;projector&gt; broke."), "{own}");
        assert_eq!(patch(json!({"error_boundary_enabled": false})).await, "try again in a moment");
        // A script is told, not shown.
        let script = Server::send(at(&server, "films", "GET", "/index.html").header("accept", "*/*")).await;
        assert_eq!((script.status, script.body), (503, json!("try again in a moment")));
    }

    async fn what_is_promoted_leaves_the_page_that_visitors_see(server) {
        const CONFIG: &str = "/v1/public/apps/films/config";
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        let post = async |what: &str| server.call("POST", &format!("{path}/{what}"), json!({})).await.ok();
        let seen = async |title: &str, words: &str| {
            let config = Server::send(server.request("GET", CONFIG)).await.ok();
            assert_eq!(config["meta"]["title"], title);
            let shown = visit(&server, "films", "/").await;
            assert!(shown.body.to_string().contains(words), "{}", shown.body);
        };
        deploy(&server, &app, "staging", page("One")).await;
        Server::send(server.request("GET", CONFIG)).await.error(404, "NotFoundError");
        post("promote").await;
        // The first switch publishes what was edited until then.
        seen("Films", "One").await;
        deploy(&server, &app, "staging", page("Two")).await;
        server.call("PATCH", &path, json!({"meta": {"title": "Better"}, "publish": true})).await.ok();
        seen("Better", "One").await;
        post("promote").await;
        seen("Better", "Two").await;
        // Back from the promotion, then from what was published.
        assert_eq!(post("rollback").await["version"], 3);
        seen("Better", "One").await;
        assert_eq!(post("rollback").await["version"], 1);
        seen("Films", "One").await;
        post("versions/2/restore").await;
        seen("Better", "Two").await;
    }

    async fn going_back_passes_over_what_is_gone(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        for words in ["One", "Two", "Three"] {
            deploy(&server, &app, "production", page(words)).await;
        }
        run(&server, "DELETE FROM app_versions WHERE version = 2").await;
        let path = format!("/v1/apps/{app}/rollback");
        assert_eq!(server.call("POST", &path, json!({})).await.ok()["version"], 1);
        assert!(visit(&server, "films", "/").await.body.to_string().contains("One"));
        server.call("POST", &path, json!({})).await.error(409, "ConflictError");
    }

    async fn old_versions_go_with_their_files_and_archives(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}");
        deploy(&server, &app, "production", page("One")).await;
        server.call("GET", &format!("{path}/versions/1/download"), Value::Null).await.ok();
        server.files_become(&format!("apps/{app}/archives"), 1).await;
        deploy(&server, &app, "production", page("Two")).await;
        deploy(&server, &app, "staging", page("Tried")).await;
        for _ in 0..49 {
            server.call("POST", &format!("{path}/publish"), json!({})).await.ok();
        }
        // The fifty-third version: the first two are too old, the third is served.
        deploy(&server, &app, "production", page("Three")).await;
        server.files_become(&format!("apps/{app}/archives"), 0).await;
        server.files_become(&format!("apps/{app}/files"), 3).await;
        let versions = server.call("GET", &format!("{path}/versions"), Value::Null).await.ok();
        assert_eq!(versions["total"], 51);
        for (slug, words) in [("films", "Three"), ("films--v52", "Two"), ("films--staging", "Tried")] {
            assert!(visit(&server, slug, "/").await.body.to_string().contains(words), "{slug}");
        }
        server.call("POST", &format!("{path}/versions/1/restore"), json!({})).await.error(404, "NotFoundError");
    }

    async fn a_bundle_that_nobody_deploys_goes(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let path = format!("/v1/apps/{app}/deploy/upload-url");
        let place = server.call("POST", &path, json!({"filename": "dist.zip"})).await.ok();
        let put = server.request("PUT", place["upload_url"].as_str().unwrap()).body(bundle(&[("index.html", "")]));
        Server::send(put).await.ok();
        loupe_server::v1::apps::sweep(&server.app).await.unwrap();
        assert_eq!(server.files("apps").len(), 1, "a deploy may still come");
        server.app.clock().advance(2 * 3600 + 1);
        loupe_server::v1::apps::sweep(&server.app).await.unwrap();
        server.files_become("apps", 0).await;
    }

    async fn pages_that_are_open_find_their_pieces_after_a_deploy(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let version = |name: &str| json!({"index.html": name, format!("assets/{name}.js"): name, "plain.js": name, "404.html": "Gone"});
        let ask = |path: String| Server::send(at(&server, "films", "GET", &path).header("accept", "*/*"));
        deploy(&server, &app, "production", version("main-4f2a9c1b")).await;
        deploy(&server, &app, "production", version("main-8d3f1a2b")).await;
        for (name, status) in [("main-4f2a9c1b", 200), ("main-8d3f1a2b", 200), ("main-0a0b0c0d", 404)] {
            let found = ask(format!("/assets/{name}.js")).await;
            assert_eq!(found.status, status, "{name}");
            assert_eq!(found.body.as_str().unwrap() == name, status == 200, "{name}");
            assert_eq!(found.headers["cache-control"].to_str().unwrap().contains("immutable"), status == 200, "{name}");
        }
        // What has no hash in its name is that of now, and previews are one version each.
        assert_eq!(ask("/plain.js".into()).await.body, "main-8d3f1a2b");
        let preview = at(&server, "films--v2", "GET", "/assets/main-4f2a9c1b.js").header("accept", "*/*");
        assert_eq!(Server::send(preview).await.status, 404);
        // Nor do pages lose them whose version is taken back.
        server.call("POST", &format!("/v1/apps/{app}/rollback"), json!({})).await.ok();
        assert_eq!(ask("/plain.js".into()).await.body, "main-4f2a9c1b");
        for name in ["main-4f2a9c1b", "main-8d3f1a2b"] {
            assert_eq!(ask(format!("/assets/{name}.js")).await.body, name);
        }
        deploy(&server, &app, "production", version("main-1b2c3d4e")).await;
        for name in ["main-4f2a9c1b", "main-8d3f1a2b"] {
            assert_eq!(ask(format!("/assets/{name}.js")).await.body, name);
        }
        // No page is open for ever.
        server.app.clock().advance(24 * 3600 + 1);
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"meta": {"title": "Better"}})).await.ok();
        for name in ["main-4f2a9c1b", "main-8d3f1a2b"] {
            assert_eq!(ask(format!("/assets/{name}.js")).await.status, 404);
        }
    }

    async fn a_name_that_an_app_had_leads_to_it_for_a_while(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Films")).await;
        let rename = async |slug: &str| server.call("PATCH", &format!("/v1/apps/{app}"), json!({"slug": slug})).await.ok();
        rename("movies").await;
        rename("pictures").await;
        for slug in ["films", "movies", "films--v1"] {
            let moved = visit(&server, slug, "/a?b=c").await;
            let there = format!("http://{}/a?b=c", host(&server, "pictures"));
            assert_eq!((moved.status, moved.headers["location"].to_str().unwrap()), (308, there.as_str()), "{slug}");
            assert_eq!(moved.headers["cache-control"], "no-store");
        }
        // Whoever has the name now is there.
        let other = make(&server, json!({"slug": "movies", "meta": {"title": "Others"}})).await;
        deploy(&server, &other, "production", page("Others")).await;
        assert!(visit(&server, "movies", "/").await.body.to_string().contains("Others"));
        assert_eq!(visit(&server, "films", "/").await.status, 308);
        server.app.clock().advance(91 * 86_400);
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"meta": {"title": "Better"}})).await.ok();
        assert_eq!(visit(&server, "films", "/").await.status, 404);
        // One that is gone leads nowhere.
        server.call("DELETE", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        assert_eq!(visit(&server, "pictures", "/").await.status, 404);
    }

    async fn a_name_that_served_something_stays_with_its_organization(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", page("Films")).await;
        let draft = make(&server, json!({"slug": "draft", "meta": {"title": "Draft"}})).await;
        let other = other_organization(&server).await;
        let take = async |slug: &str| {
            let body = json!({"slug": slug, "meta": {"title": "Theirs"}});
            Server::send(server.request("POST", "/v1/apps").bearer_auth(&other.key).json(&body)).await
        };
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"slug": "pictures"})).await.ok();
        take("films").await.error(409, "AlreadyExistsError");
        server.call("DELETE", &format!("/v1/apps/{app}"), Value::Null).await.ok();
        take("pictures").await.error(409, "AlreadyExistsError");
        // Nobody was ever at this one.
        server.call("DELETE", &format!("/v1/apps/{draft}"), Value::Null).await.ok();
        take("draft").await.ok();
        for slug in ["films", "pictures"] {
            make(&server, json!({"slug": slug, "meta": {"title": "Ours again"}})).await;
        }
    }
}

/// Whether the app of this process has these words on its page.
async fn shows(server: &Server, words: &str) -> bool {
    let page = visit(server, "films", "/").await;
    let text = page.body.as_str().unwrap_or_default();
    text.contains(&format!("<h1>{words}</h1>"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_serves_what_was_gone_back_to_within_a_second() {
    let (store, folder) = (Bucket::start().await, tempfile::tempdir().unwrap());
    let mut config = harness::config(Database::Postgres, &folder).await;
    config.master_key = "1f".repeat(32).into();
    config.blobs = store.settings();
    let first = Server::start_with(config, folder, None).await;
    let others = [beside(&first).await, beside(&first).await];
    let app = make(&first, json!({"slug": "films", "meta": {"title": "Films"}})).await;
    for words in ["One", "Two"] {
        deploy(&first, &app, "production", page(words)).await;
    }
    let mut before = "Two";
    let path = format!("/v1/apps/{app}");
    let changes = [
        ("POST", "/rollback", json!({}), "One"),
        ("POST", "/versions/2/restore", json!({}), "Two"),
        ("PATCH", "", json!({"is_active": false}), ""),
    ];
    for (method, what, body, after) in changes {
        for server in &others {
            // Deployed by any of the three, and remembered by this one.
            let began = Instant::now();
            while !shows(server, before).await {
                assert!(began.elapsed() < Duration::from_secs(60), "{before}");
            }
        }
        let path = format!("{path}{what}");
        first.call(method, &path, body).await.ok();
        let changed = Instant::now();
        assert!(!shows(&first, before).await, "{what}");
        for server in &others {
            loop {
                // What counts is when the page was asked for: a machine that is slow to answer makes nobody late.
                let sent = changed.elapsed();
                if !shows(server, before).await {
                    break;
                }
                assert!(sent < Duration::from_secs(1), "{what}: {sent:?}");
            }
            assert!(after.is_empty() || shows(server, after).await, "{what}");
        }
        before = after;
    }
}
