//! Apps with one password for everybody.

use serde_json::{Value, json};

use crate::{
    apps::{at, deploy, host},
    both,
    browser::{Browser, app, filled},
    harness::{Database, Server, config},
};

const GIVEN: &str = "sesame, the third";

/// A cookie that somebody changed, that is old, or of another app.
async fn other_cookies_open_nothing(server: &Server, visitor: &mut Browser<'_>) {
    let cookie = visitor
        .cookies
        .iter()
        .next()
        .map(|(name, value)| (name.clone(), value.clone()))
        .unwrap();
    let (until, signature) = cookie.1.split_once('.').unwrap();
    let later = format!("{}.{signature}", until.parse::<i64>().unwrap() + 1);
    visitor.cookies.insert(cookie.0.clone(), later);
    assert_eq!(visitor.get("/").await.status, 401);
    app(
        server,
        "other",
        json!({"mode": "password", "password": GIVEN}),
    )
    .await;
    let mut neighbour = Browser::new(server, "other");
    neighbour.cookies.insert(cookie.0.clone(), cookie.1.clone());
    assert_eq!(neighbour.get("/").await.status, 401);
    visitor.cookies.insert(cookie.0.clone(), cookie.1.clone());
    assert_eq!(visitor.get("/").await.status, 200);
}

both! {
    async fn an_app_with_a_password_tells_nothing_before_it(server) {
        let id = app(&server, "vault", json!({"mode": "password", "password": GIVEN})).await;
        let path = format!("/v1/apps/{id}");
        let told = server.call("GET", &path, Value::Null).await.ok();
        assert_eq!((&told["password_protected"], &told["auth_config"]["mode"], &told["auth_config"]["password"]), (&json!(true), &json!("password"), &Value::Null));
        assert!(!told.to_string().contains("argon2"), "{told:#}");
        server.call("POST", &format!("{path}/publish"), json!({})).await.ok();

        let mut visitor = Browser::new(&server, "vault");
        let page = visitor.get("/films?x=1").await;
        let html = page.body.as_str().unwrap();
        assert_eq!((page.status, page.headers["cache-control"].to_str().unwrap()), (401, "no-store"));
        assert!(html.contains("/_auth/unlock") && html.contains("/films?x=1") && !html.contains("<h1>Club"), "{html}");
        for (method, path) in [("GET", "/api/retrievers"), ("GET", "/index.html"), ("POST", "/_auth/sign-in"), ("GET", "/_auth/sdk.js")] {
            let answer = Server::send(at(&server, "vault", method, path)).await;
            assert_eq!(answer.error(401, "AuthenticationError")["error"]["details"]["password_protected"], true, "{path}");
        }
        for path in ["config", "gallery"] {
            Server::send(server.request("GET", &format!("/v1/public/apps/vault/{path}"))).await.error(401, "AuthenticationError");
        }

        // The script of the form is no part of the app.
        assert!(html.contains(r#"<script src="/_auth/form.js" defer>"#), "{html}");
        let script = Server::send(at(&server, "vault", "GET", "/_auth/form.js")).await;
        assert_eq!((script.status, script.headers["content-type"].to_str().unwrap()), (200, "application/javascript; charset=utf-8"));

        // The form of another site opens nothing, nor does a wrong password.
        let elsewhere = at(&server, "vault", "POST", "/_auth/unlock").header("origin", "https://evil.example").header("content-type", "application/x-www-form-urlencoded").body("password=x");
        assert_eq!(Server::send(elsewhere).await.status, 403);
        let wrong = visitor.post("/_auth/unlock", &[("password", "sesame"), ("return_to", "/films?x=1")]).await;
        let html = wrong.body.as_str().unwrap();
        assert!(wrong.status == 401 && html.contains("not the password") && html.contains("/films?x=1"), "{html}");
        assert!(visitor.cookies.is_empty());
        let right = visitor.post("/_auth/unlock", &[("password", GIVEN), ("return_to", "//evil.example")]).await;
        assert_eq!((right.status, right.headers["location"].to_str().unwrap()), (303, "/"));
        let page = visitor.get("/films").await;
        assert!(page.status == 200 && page.body.as_str().unwrap().contains("<h1>Club"));
        assert!(page.headers.get_all("vary").iter().any(|value| value == "cookie"));
        assert!(!page.headers["cache-control"].to_str().unwrap().contains("public"));
        assert_ne!(visitor.get("/api/retrievers").await.status, 401);
        // The form in another tab leads where it would have; another change of the app leaves the password alone.
        let again = visitor.post("/_auth/unlock", &[("password", "typed in another tab"), ("return_to", "/films?x=2")]).await;
        assert_eq!((again.status, again.headers["location"].to_str().unwrap()), (303, "/films?x=2"));
        assert_eq!(visitor.get("/_auth/unlock").await.status, 303);
        server.call("PATCH", &path, json!({"meta": {"title": "Another club"}})).await.ok();
        assert_eq!(Browser::new(&server, "vault").get("/").await.status, 401);

        other_cookies_open_nothing(&server, &mut visitor).await;

        // What else changes keeps the password; a new one ends what the old one opened.
        server.call("PATCH", &path, json!({"auth_config": {"mode": "password"}})).await.ok();
        assert_eq!(visitor.get("/").await.status, 200);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "password", "password": "sesame, the fourth"}})).await.ok();
        assert_eq!(visitor.get("/").await.status, 401);
        assert_eq!(visitor.post("/_auth/unlock", &[("password", "sesame, the fourth")]).await.status, 303);
        server.app.clock().advance(24 * 3600 + 1);
        assert_eq!(visitor.get("/").await.status, 401);

        server.call("PATCH", &path, json!({"auth_config": {"mode": "public"}})).await.ok();
        assert_eq!(visitor.get("/").await.status, 200);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "password"}})).await.invalid(&["body", "auth_config", "password"], "missing");
        let short = json!({"slug": "short", "meta": {"title": "Short"}, "auth_config": {"mode": "password", "password": "short"}});
        assert_eq!(server.call("POST", "/v1/apps", short).await.status, 422);
    }

    async fn passwords_of_apps_are_not_guessed(server) {
        app(&server, "vault", json!({"mode": "password", "password": GIVEN})).await;
        let mut visitor = Browser::new(&server, "vault");
        server.app.clock().hold();
        let mut slowed = None;
        for number in 0..10 {
            let guess = format!("guess number {number}");
            let form = [("password", guess.as_str()), ("return_to", "/films?q=sea")];
            let answer = visitor.post("/_auth/unlock", &form).await;
            if answer.status == 429 {
                slowed = Some(answer);
                break;
            }
            assert_eq!(answer.status, 401);
        }
        let slowed = slowed.unwrap();
        let passing = format!("<span data-wait aria-live=\"off\">{}</span> s", slowed.headers["retry-after"].to_str().unwrap());
        let told = slowed.body.as_str().unwrap();
        assert!(told.contains(&passing) && told.contains("name=\"return_to\" value=\"/films?q=sea\""), "{told}");
        server.app.clock().advance(3600);
        assert_eq!(visitor.post("/_auth/unlock", &[("password", GIVEN)]).await.status, 303);
    }
}

both! {
    async fn the_password_of_an_app_is_the_value_of_a_secret(server) {
        for (name, value) in [("gate", GIVEN), ("short", "sesame")] {
            server.call("POST", "/v1/organizations/secrets", json!({"secret_name": name, "secret_value": value})).await.ok();
        }
        let with = |secret: &str| json!({"slug": "vault", "meta": {"title": "Club"}, "password_secret_name": secret});
        server.call("POST", "/v1/apps", with("unknown")).await.error(404, "NotFoundError");
        server.call("POST", "/v1/apps", with("short")).await.invalid(&["body", "password_secret_name"], "value_error");
        for auth in [json!({"mode": "clerk"}), json!({"mode": "password", "password": "another password"})] {
            let mut both = with("gate");
            both["auth_config"] = auth;
            server.call("POST", "/v1/apps", both).await.invalid(&["body", "password_secret_name"], "value_error");
        }
        let made = server.call("POST", "/v1/apps", with("gate")).await.ok();
        assert_eq!((&made["password_protected"], &made["auth_config"]["mode"]), (&json!(true), &json!("password")));
        assert!(!made.to_string().contains("sesame"), "{made:#}");
        let id = made["app_id"].as_str().unwrap();
        deploy(&server, id, "production", json!({"index.html": "<!doctype html><h1>Club</h1>"})).await;
        let mut visitor = Browser::new(&server, "vault");
        assert_eq!(visitor.get("/").await.status, 401);
        assert_eq!(visitor.post("/_auth/unlock", &[("password", GIVEN)]).await.status, 303);
        assert_eq!(visitor.get("/").await.status, 200);
        // An empty name takes it away, and leaves other ways in as they are.
        let path = format!("/v1/apps/{id}");
        let open = server.call("PATCH", &path, json!({"password_secret_name": ""})).await.ok();
        assert_eq!(open["password_protected"], false);
        assert_eq!(Browser::new(&server, "vault").get("/").await.status, 200);
        server.call("PATCH", &path, json!({"auth_config": {"mode": "clerk"}})).await.ok();
        let kept = server.call("PATCH", &path, json!({"password_secret_name": ""})).await.ok();
        assert_eq!(kept["auth_config"]["mode"], "clerk");
    }
}

/// Whoever guesses from all addresses of a network keeps nobody else out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_of_one_network_keep_no_other_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    let auth = json!({"mode": "password", "password": GIVEN});
    app(&server, "vault", auth).await;
    // All of it happens within one minute of the clock.
    let second = server.app.clock().now().timestamp().rem_euclid(60);
    server.app.clock().advance(60 - second);
    server.app.clock().hold();
    let origin = format!("http://{}", host(&server, "vault"));
    let give = |address: String, password: &'static str| {
        let request = at(&server, "vault", "POST", "/_auth/unlock").header("origin", &origin);
        let request = request.header("x-forwarded-for", address);
        Server::send(filled(request, &[("password", password)]))
    };
    let mut reached = 0;
    for number in 0..40 {
        let answer = give(format!("203.0.113.{number}"), "a guess of many").await;
        reached += usize::from(answer.status == 401);
    }
    assert_eq!(reached, 30);
    assert_eq!(give("203.0.113.200".into(), GIVEN).await.status, 429);
    assert_eq!(give("198.51.100.7".into(), GIVEN).await.status, 303);
}
