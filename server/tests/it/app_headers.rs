//! Headers of an app's own, from the file `_headers` of its bundle.

use serde_json::{Value, json};

use crate::{
    apps::{at, bundle, deploy, deploy_bundle, host, make, packed, visit},
    both,
    browser::Browser,
    harness::{Answer, Database, Server},
};

const OWN: &str = "# of all files\n/*\n  Permissions-Policy: camera=()\n  Content-Security-Policy: script-src 'self'\n\n/assets/*\n  Cache-Control: public, max-age=600\n";
const FLOOR: &str = "object-src 'none'; base-uri 'none'; frame-ancestors 'none'";

fn policies(answer: &Answer) -> Vec<&str> {
    let policies = answer.headers.get_all("content-security-policy");
    policies.iter().map(|one| one.to_str().unwrap()).collect()
}

fn says(answer: &Answer, name: &str) -> String {
    let value = answer.headers.get(name);
    value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
}

both! {
    async fn what_is_said_of_files_is_not_said_of_what_stands_in_for_them(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let own = "/*\n  Permissions-Policy: camera=()\n  Cache-Control: public, max-age=31536000, immutable\n";
        let files = [("index.html", "<h1>One</h1>"), ("404.html", "<h1>Gone</h1>"), ("_headers", own), ("a.js", "1")];
        deploy_bundle(&server, &app, bundle(&files)).await;
        let kept = "public, max-age=31536000, immutable";
        let ask = |path: &str, accept: &str| Server::send(at(&server, "films", "GET", path).header("accept", accept));
        for (path, accept, status, cache) in [
            ("/a.js", "*/*", 200, kept), ("/", "text/html", 200, kept),
            ("/films/7", "text/html", 404, "no-cache"), ("/missing-4f2a9c1b.js", "*/*", 404, "no-cache"),
        ] {
            let answer = ask(path, accept).await;
            assert_eq!((answer.status, says(&answer, "cache-control")), (status, cache.to_owned()), "{path}");
            assert_eq!(says(&answer, "permissions-policy"), "camera=()", "{path}");
        }
        for (path, accept) in [("/missing.js", "*/*"), ("/films/7", "text/html")] {
            assert!(ask(path, accept).await.body.to_string().contains("Gone"), "{path}");
        }
        // Without a page that says so the app finds its way by the address.
        let files = [("index.html", "<h1>One</h1>"), ("_headers", own)];
        deploy_bundle(&server, &app, bundle(&files)).await;
        let answer = ask("/films/7", "text/html").await;
        assert_eq!((answer.status, says(&answer, "cache-control")), (200, "no-cache".to_owned()));
    }

    async fn an_app_says_headers_of_its_own(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        let files = [("dist/index.html", "<h1>One</h1>"), ("dist/_headers", OWN), ("dist/assets/a.js", "1")];
        let status = deploy_bundle(&server, &app, bundle(&files)).await;
        assert_eq!(status["status"], "complete", "{status:#}");

        // They come beside what every app has, never in its place.
        for path in ["/", "/films/7", "/assets/a.js"] {
            let answer = visit(&server, "films", path).await;
            let mut found = policies(&answer);
            found.sort_unstable();
            assert_eq!((answer.status, found), (200, vec![FLOOR, "script-src 'self'"]), "{path}");
            assert_eq!(says(&answer, "permissions-policy"), "camera=()", "{path}");
            assert_eq!(says(&answer, "x-content-type-options"), "nosniff", "{path}");
            assert_eq!(says(&answer, "cross-origin-resource-policy"), "same-origin", "{path}");
        }
        let script = visit(&server, "films", "/%61ssets/a.js").await;
        assert_eq!(says(&script, "cache-control"), "public, max-age=600");
        assert_eq!(says(&visit(&server, "films", "/").await, "cache-control"), "no-cache");
        let known = at(&server, "films", "GET", "/assets/a.js").header("if-none-match", says(&script, "etag"));
        let known = Server::send(known).await;
        assert_eq!((known.status, says(&known, "cache-control")), (304, "public, max-age=600".into()));
        // The file itself is no file of the app, and what is not a file of it hears nothing of them.
        let asked = at(&server, "films", "GET", "/_headers").header("accept", "*/*");
        assert_eq!(Server::send(asked).await.status, 404);
        server.call("PATCH", &format!("/v1/apps/{app}"), json!({"auth_config": {"mode": "clerk"}})).await.ok();
        let page = visit(&server, "films", "/").await;
        assert!(page.body.as_str().unwrap().contains("/_auth/sdk.js") && policies(&page).len() == 2);
        for path in ["/_auth/sign-in", "/_auth/sdk.js", "/api/retrievers"] {
            assert_eq!(says(&visit(&server, "films", path).await, "permissions-policy"), "", "{path}");
        }

        // They belong to the version: the next one has its own, the way back and publishing keep them.
        deploy(&server, &app, "production", json!({"index.html": "<h1>Two</h1>"})).await;
        let two = visit(&server, "films", "/").await;
        assert_eq!((policies(&two), says(&two, "permissions-policy")), (vec![FLOOR], String::new()));
        server.call("POST", &format!("/v1/apps/{app}/rollback"), json!({})).await.ok();
        server.call("POST", &format!("/v1/apps/{app}/publish"), json!({})).await.ok();
        let server = server.restart().await;
        assert_eq!(says(&visit(&server, "films", "/").await, "permissions-policy"), "camera=()");
        // Whoever downloads a version gets the file with it.
        let detail = server.call("GET", &format!("/v1/apps/{app}/versions/1"), Value::Null).await.ok();
        assert_eq!(detail["asset_manifest"]["_headers"]["size"], json!(OWN.len()));
    }

    async fn a_policy_of_its_own_leaves_room_for_the_sign_in(server) {
        const OWN: &str = "default-src 'none'; img-src 'self'";
        let app = json!({"slug": "club", "meta": {"title": "Club"}, "auth_config": {"mode": "clerk"}});
        let app = make(&server, app).await;
        let page = r#"<head><meta http-equiv="content-security-policy" content="connect-src https://api.example"></head>"#;
        let headers = format!("/*\n  Content-Security-Policy: {OWN}\n");
        let files = json!({"index.html": page, "a.js": "1", "_headers": headers});
        deploy(&server, &app, "production", files).await;

        // The page takes the script and lets it ask, and nothing else.
        let place = format!("http://{}/_auth/", host(&server, "club"));
        let permitted = format!("{OWN}; script-src {place}sdk.js; connect-src {place}");
        let shown = visit(&server, "club", "/").await;
        let known = at(&server, "club", "GET", "/").header("if-none-match", says(&shown, "etag"));
        let known = Server::send(known.header("accept", "text/html")).await;
        assert_eq!((shown.status, known.status), (200, 304));
        for answer in [&shown, &known] {
            let mut found = policies(answer);
            found.sort_unstable();
            assert_eq!(found, [permitted.as_str(), FLOOR]);
        }
        let text = shown.body.as_str().unwrap();
        assert!(text.contains(&format!(r#"content="connect-src https://api.example {place}""#)), "{text}");
        // What is no page has no script, and so has an app without sign-in.
        let script = visit(&server, "club", "/a.js").await;
        assert!(policies(&script).contains(&OWN));
        let open = json!({"auth_config": {"mode": "public"}});
        server.call("PATCH", &format!("/v1/apps/{app}"), open).await.ok();
        let left = visit(&server, "club", "/").await;
        assert!(policies(&left).contains(&OWN));
        assert_eq!(left.body, json!(page));
    }

    async fn headers_that_are_not_an_apps_to_say_fail_the_deploy(server) {
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}})).await;
        deploy(&server, &app, "production", json!({"index.html": "<h1>One</h1>"})).await;
        let kept = server.files(&format!("apps/{app}/"));
        for (own, why) in [
            ("/*\n  Set-Cookie: loupe_app=planted", "line 2: the header \"set-cookie\""),
            ("/*\n\n  X-Content-Type-Options: off", "line 3: x-content-type-options is nosniff"),
            ("Link: </a>", "line 1: a path"),
            (&*"#\n".repeat(9_000), "larger than"),
        ] {
            let status = deploy_bundle(&server, &app, bundle(&[("index.html", "<h1>New</h1>"), ("_headers", own)])).await;
            assert_eq!(status["status"], "failed", "{why}");
            assert!(status["error"].as_str().unwrap().contains(why), "{status:#}");
            // The log says it, too.
            let path = format!("/v1/apps/{app}/deploys/{}/logs/stream", status["deploy_id"].as_str().unwrap());
            let log = server.call("GET", &path, Value::Null).await.ok();
            assert!(log.as_str().unwrap().contains("failed: _headers"), "{log}");
        }
        // The last bundle goes just after its deploy has ended.
        server.files_become(&format!("apps/{app}/"), kept.len()).await;
        assert_eq!(server.files(&format!("apps/{app}/")), kept);
        assert!(visit(&server, "films", "/").await.body.as_str().unwrap().contains("One"));
        let inline = json!({"index.html": "<h1>New</h1>", "_headers": "/*\n  Content-Type: text/plain"});
        assert_eq!(deploy(&server, &app, "production", inline).await["status"], "failed");
    }

    async fn no_header_opens_a_locked_app_to_caches(server) {
        let auth = json!({"mode": "password", "password": "sesame, the third"});
        let app = make(&server, json!({"slug": "vault", "meta": {"title": "Vault"}, "auth_config": auth})).await;
        let own = "/*\n  Cache-Control: max-age=600\n/open\n  Cache-Control: Public, max-age=600\n";
        deploy(&server, &app, "production", json!({"index.html": "<h1>Vault</h1>", "_headers": own})).await;
        let mut visitor = Browser::new(&server, "vault");
        assert_eq!(says(&visitor.get("/").await, "cache-control"), "no-store");
        assert_eq!(visitor.post("/_auth/unlock", &[("password", "sesame, the third")]).await.status, 303);
        for path in ["/", "/open"] {
            let answer = visitor.get(path).await;
            let told = says(&answer, "cache-control");
            assert!(answer.status == 200 && told.contains("private") && !told.to_lowercase().contains("public"), "{told}");
        }
    }
}

/// No database has a part in it, and large pages take their time to be made smaller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_not_held_goes_by_with_the_script_in_it() {
    let server = Server::start(Database::Sqlite).await;
    let app = json!({"slug": "club", "meta": {"title": "Club"}, "auth_config": {"mode": "clerk"}});
    let app = make(&server, app).await;
    let words = "words of a long page ".repeat(110_000);
    let page = format!("<!doctype html><head><title>Long</title></head><p>{words}");
    assert!(page.len() > 2 << 20);
    deploy(&server, &app, "production", json!({"index.html": page})).await;
    let ask = || {
        at(&server, "club", "GET", "/")
            .header("accept", "text/html")
            .header("accept-encoding", "br")
    };
    let shown = Server::send(ask()).await;
    assert_eq!(
        (shown.status, says(&shown, "content-encoding")),
        (200, String::new())
    );
    let text = shown.body.as_str().unwrap();
    let start = text.find("<head><script src=\"/_auth/sdk.js\"").unwrap() + 6;
    let end = text.find("<title>").unwrap();
    assert!(
        format!("{}{}", &text[..start], &text[end..]) == page,
        "{}",
        &text[..200]
    );
    let known = ask().header("if-none-match", says(&shown, "etag"));
    assert_eq!(Server::send(known).await.status, 304);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_no_utf_8_keeps_its_bytes_beside_the_script() {
    const TITLE: &[u8] = b"<title>Caf\xe9</title></head><h1>Caf\xe9</h1>";
    let server = Server::start(Database::Sqlite).await;
    let app = json!({"slug": "club", "meta": {"title": "Club"}, "auth_config": {"mode": "clerk"}});
    let app = make(&server, app).await;
    let page = [&b"<!doctype html><head>"[..], TITLE].concat();
    let status = deploy_bundle(&server, &app, packed(&[("index.html", &page[..])])).await;
    assert_eq!(status["status"], "complete", "{status:#}");
    let asked = at(&server, "club", "GET", "/").header("accept", "text/html");
    let shown = asked.send().await.unwrap().bytes().await.unwrap();
    let start = &b"<!doctype html><head><script src=\"/_auth/sdk.js\""[..];
    assert!(
        shown.starts_with(start) && shown.ends_with(TITLE),
        "{shown:?}"
    );
}
