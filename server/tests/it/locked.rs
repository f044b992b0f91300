//! Pages that are not for everybody: with a password, or taken down. Nothing of them leaks anywhere.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, retriever},
};

pub const PUBLIC: &str = "/v1/public/retrievers/vault";

/// A page "vault" with the title "Hidden treasure" over one document "Golden mask".
pub async fn vault(server: &Server, publication: Value) -> (String, String) {
    let (namespace, id) = retriever(server, "treasure").await;
    let document = json!({"title": "Golden mask", "vectors": {"own": [1.0, 0.0, 0.0]}});
    let made = server
        .call_in(
            &namespace,
            "POST",
            "/v1/collections/things/documents",
            document,
        )
        .await
        .ok();
    assert!(made["document_id"].is_string());
    let secret = json!({"secret_name": "gate", "secret_value": "open sesame"});
    server
        .call("POST", "/v1/organizations/secrets", secret)
        .await
        .ok();
    let publish = format!("/v1/retrievers/{id}/publish");
    let mut body = json!({"public_name": "vault", "display_name": "Hidden treasure"});
    body.as_object_mut()
        .unwrap()
        .extend(publication.as_object().unwrap().clone());
    server
        .call_in(&namespace, "POST", &publish, body)
        .await
        .ok();
    (namespace, publish)
}

pub async fn plain(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> Answer {
    let mut request = server.request(method, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !body.is_null() {
        request = request.json(&body);
    }
    Server::send(request).await
}

/// Everything that strangers may ask about the page.
async fn around(server: &Server, headers: &[(&str, &str)]) -> Vec<(&'static str, Answer)> {
    let tell = json!({"document_id": "d", "interaction_type": ["click"], "position": 0});
    let mut answers = Vec::new();
    for (method, path, body) in [
        ("GET", "/v1/public/retrievers/vault/config", Value::Null),
        ("GET", "/v1/public/retrievers/vault/template", Value::Null),
        (
            "POST",
            "/v1/public/retrievers/vault/execute",
            json!({"inputs": {}}),
        ),
        (
            "POST",
            "/v1/public/retrievers/vault/interactions",
            tell.clone(),
        ),
        (
            "POST",
            "/v1/public/retrievers/vault/interactions/batch",
            json!({"interactions": [tell]}),
        ),
        ("GET", "/r/vault", Value::Null),
        ("GET", "/r/vault?query=mask", Value::Null),
        ("GET", "/r/vault/embed", Value::Null),
        ("GET", "/r/vault/icon", Value::Null),
        ("GET", "/r/vault/preview.png", Value::Null),
        ("GET", "/r/vault/item/doc_1", Value::Null),
        ("GET", "/sitemap.xml", Value::Null),
        ("GET", "/robots.txt", Value::Null),
        ("GET", "/v1/public/retrievers/", Value::Null),
        (
            "GET",
            "/v1/public/retrievers/?search=treasure&include_inactive=true",
            Value::Null,
        ),
    ] {
        answers.push((path, plain(server, method, path, headers, body).await));
    }
    answers
}

/// A page as it is, anything else as JSON.
fn text(answer: &Answer) -> String {
    let page = answer.body.as_str();
    page.map_or_else(|| answer.body.to_string(), ToOwned::to_owned)
}

fn leaks(answer: &Answer) -> bool {
    let text = format!("{} {:?}", answer.body, answer.headers);
    ["Hidden treasure", "Golden mask", "treasure", "things"]
        .iter()
        .any(|word| text.contains(word))
}

/// What the page's own form sends.
fn form(server: &Server, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    let request = server.request("POST", "/r/vault/unlock");
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

pub fn cookie_of(answer: &Answer) -> String {
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    for wanted in ["; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age="] {
        assert!(cookie.contains(wanted), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

both! {
    async fn a_page_with_a_password_shows_strangers_nothing_else(server) {
        let (namespace, publish) = vault(&server, json!({"password_secret_name": "gate"})).await;
        let lookup = server.call_in(&namespace, "GET", &publish, Value::Null).await.ok();
        assert_eq!(lookup["password_protected"], true);
        assert!(!lookup.to_string().contains("sesame") && !lookup.to_string().contains("argon"));
        for (path, answer) in around(&server, &[]).await {
            assert!(!leaks(&answer), "{path}: {:#}", answer.body);
            let expected = if path.starts_with(PUBLIC) { 401 } else if path.ends_with("icon") || path.ends_with(".png") { 404 } else if path.starts_with("/r/") { 403 } else { 200 };
            assert_eq!(answer.status, expected, "{path}");
            if path.starts_with(PUBLIC) {
                let body = answer.error(401, "AuthenticationError");
                assert_eq!((&body["error"]["code"], &body["error"]["details"]["password_protected"]), (&json!("password_required"), &json!(true)));
            } else if path == "/v1/public/retrievers/" {
                assert_eq!((&answer.body["total_count"], &answer.body["stats"]["total_password_protected"]), (&json!(0), &json!(1)));
            }
        }
        // The password in a header, as programs send it.
        let found = plain(&server, "POST", &format!("{PUBLIC}/execute"), &[("x-retriever-password", "open sesame")], json!({"inputs": {}})).await.ok();
        assert_eq!(found["documents"][0]["title"], "Golden mask");
        let wrong = plain(&server, "POST", &format!("{PUBLIC}/execute"), &[("x-retriever-password", "open")], json!({"inputs": {}})).await;
        assert_eq!(wrong.error(401, "AuthenticationError")["error"]["code"], "password_invalid");
        // Or once, for a cookie.
        let verify = async |password: &str| plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": password})).await;
        let refused = verify("open").await;
        assert!(!refused.headers.contains_key("set-cookie"));
        assert_eq!(refused.ok(), json!({"valid": false}));
        let verified = verify("open sesame").await;
        let cookie = cookie_of(&verified);
        assert_eq!(verified.ok(), json!({"valid": true}));
        for (path, answer) in around(&server, &[("cookie", &cookie)]).await {
            let expected = if path.ends_with("icon") || path.ends_with("doc_1") { 404 } else { 200 };
            assert_eq!(answer.status, expected, "{path}: {:#}", answer.body);
        }
        let page = plain(&server, "GET", "/r/vault", &[("cookie", &format!("theme=dark; {cookie}"))], Value::Null).await;
        assert_eq!(page.headers["cache-control"], "no-store");
        assert!(page.body.as_str().unwrap().contains("Golden mask"));
        assert!(page.body.as_str().unwrap().contains("noindex, nofollow"));
        // A cookie that is not of this server, not of this page, or too old opens nothing.
        let config = async |cookie: &str| plain(&server, "GET", &format!("{PUBLIC}/config"), &[("cookie", cookie)], Value::Null).await.status;
        assert_eq!(config(&cookie).await, 200);
        let (name, value) = cookie.split_once('=').unwrap();
        let (until, signature) = value.split_once('.').unwrap();
        let later = until.parse::<i64>().unwrap() + 1;
        for forged in [format!("{name}={later}.{signature}"), format!("{name}={until}.{}", "0".repeat(64)), format!("{name}={until}."), format!("{name}x={value}"), "=".into()] {
            assert_eq!(config(&forged).await, 401, "{forged}");
        }
        server.app.clock().advance(24 * 3600 + 1);
        assert_eq!(config(&cookie).await, 401, "it is a day old");
    }

    async fn without_script_a_form_opens_the_page(server) {
        vault(&server, json!({"password_secret_name": "gate"})).await;
        let client = |password: &str| form(&server, &[("password", password), ("to", "/r/vault?query=mask")]);
        let wrong = Server::send(client("open")).await;
        assert_eq!(wrong.status, 403);
        assert!(!leaks(&wrong));
        #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let right = browser.execute(client("open sesame").build().unwrap()).await.unwrap();
        assert_eq!((right.status().as_u16(), right.headers()["location"].to_str().unwrap()), (303, "/r/vault?query=mask"));
        let cookie = right.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(plain(&server, "GET", "/r/vault", &[("cookie", &cookie)], Value::Null).await.body.as_str().unwrap().contains("Golden mask"));
    }

    async fn guessing_is_slow(server) {
        vault(&server, json!({"password_secret_name": "gate"})).await;
        let verify = async |password: &str| plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": password})).await;
        let cookie = cookie_of(&verify("open sesame").await);
        server.app.clock().hold();
        let mut tried = 0;
        for guess in 0..40 {
            let answer = verify(&format!("guess {guess}")).await;
            if answer.status == 200 {
                tried += 1;
            } else {
                let wait = answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap();
                assert!((1..=900).contains(&wait));
                answer.error(429, "TooManyRequestsError");
            }
        }
        assert!((5..=8).contains(&tried), "{tried} guesses were looked at");
        // Whoever is in stays in, and a program that is known too.
        assert_eq!(plain(&server, "GET", &format!("{PUBLIC}/config"), &[("cookie", &cookie)], Value::Null).await.status, 200);
        let known = [("x-retriever-password", "open sesame")];
        assert_eq!(plain(&server, "GET", &format!("{PUBLIC}/config"), &known, Value::Null).await.status, 200);
        server.app.clock().advance(900);
        assert_eq!(verify("open sesame").await.ok(), json!({"valid": true}));
    }

    async fn the_owner_sets_changes_and_removes_the_password(server) {
        let (namespace, publish) = vault(&server, json!({})).await;
        let patch = async |body: Value| server.call_in(&namespace, "PATCH", &publish, body).await;
        let config = async |password: &str| plain(&server, "GET", &format!("{PUBLIC}/config"), &[("x-retriever-password", password)], Value::Null).await.status;
        let verify = async |password: &str| plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": password})).await;
        assert_eq!(config("").await, 200);
        assert_eq!(verify("whatever").await.ok(), json!({"valid": true}), "there is none");
        patch(json!({"password_secret_name": "unknown"})).await.error(404, "NotFoundError");
        assert_eq!(patch(json!({"password_secret_name": "gate"})).await.ok()["password_protected"], true);
        assert_eq!((config("wrong").await, config("open sesame").await), (401, 200));
        let cookie = cookie_of(&verify("open sesame").await);
        // Publishing again keeps what was closed closed.
        server.call_in(&namespace, "POST", &publish, json!({"public_name": "vault", "display_name": "Hidden treasure"})).await.ok();
        assert_eq!((config("wrong").await, config("open sesame").await), (401, 200));
        // Another value of the secret is another password, and what the old one opened is shut.
        server.call("PUT", "/v1/organizations/secrets/gate", json!({"secret_value": "close sesame"})).await.ok();
        assert_eq!((config("open sesame").await, config("close sesame").await), (401, 200));
        let shut = plain(&server, "GET", &format!("{PUBLIC}/config"), &[("cookie", &cookie)], Value::Null).await;
        assert_eq!(shut.status, 401);
        // Without the secret the page stays as closed as it was.
        server.call("DELETE", "/v1/organizations/secrets/gate", Value::Null).await.ok();
        assert_eq!(config("close sesame").await, 200);
        assert_eq!(patch(json!({"is_active": true, "password_secret_name": null})).await.ok()["password_protected"], true);
        let opened = patch(json!({"password_secret_name": ""})).await.ok();
        assert_eq!((&opened["password_protected"], opened.get("public_api_key")), (&json!(false), Some(&Value::Null)));
        assert_eq!(config("").await, 200);
    }

    async fn a_page_that_was_taken_down_never_was(server) {
        let (namespace, publish) = vault(&server, json!({"password_secret_name": "gate"})).await;
        server.call_in(&namespace, "PATCH", &publish, json!({"is_active": false})).await.ok();
        let nonce = |text: String| {
            let start = text.find("nonce=\"").map(|at| text[at + 7..at + 39].to_owned());
            start.map_or(text.clone(), |nonce| text.replace(&nonce, ""))
        };
        let unknown = |text: String| nonce(text).replace("nothing-here", "vault");
        for headers in [&[][..], &[("x-retriever-password", "open sesame")]] {
            for (path, answer) in around(&server, headers).await {
                assert!(!leaks(&answer), "{path}: {:#}", answer.body);
                if path.contains("vault") {
                    assert_eq!(answer.status, 404, "{path}");
                    let method = if path.ends_with("execute") || path.contains("interactions") { "POST" } else { "GET" };
                    let tell = json!({"document_id": "d", "interaction_type": ["click"], "position": 0});
                    let body = match path {
                        _ if method == "GET" => Value::Null,
                        _ if path.ends_with("batch") => json!({"interactions": [tell]}),
                        _ if path.ends_with("execute") => json!({"inputs": {}}),
                        _ => tell,
                    };
                    let never = plain(&server, method, &path.replace("vault", "nothing-here"), headers, body).await;
                    assert_eq!(nonce(text(&answer)), unknown(text(&never)), "{path}");
                }
            }
        }
        let verify = plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": "open sesame"})).await;
        verify.error(404, "NotFoundError");
        assert_eq!(Server::send(form(&server, &[("password", "open sesame")])).await.status, 404);
    }

    async fn a_page_answers_no_more_than_its_owner_says(server) {
        let (namespace, publish) = vault(&server, json!({"rate_limit_config": {"max_results_per_query": 2}})).await;
        for number in 0..4 {
            let document = json!({"title": format!("Coin {number}"), "vectors": {"own": [0.0, 1.0, 0.0]}});
            server.call_in(&namespace, "POST", "/v1/collections/things/documents", document).await.ok();
        }
        let count = async |body: Value| {
            let answer = plain(&server, "POST", &format!("{PUBLIC}/execute"), &[], body).await.ok();
            answer["documents"].as_array().unwrap().len()
        };
        assert_eq!(count(json!({})).await, 2);
        assert_eq!(count(json!({"limit": 1})).await, 1);
        assert_eq!(count(json!({"limit": 400})).await, 2);
        for pagination in [
            json!({"method": "offset", "page_size": 100, "page_number": 1}),
            json!({"method": "cursor", "limit": 100}),
            json!({"method": "scroll", "limit": 100}),
        ] {
            assert_eq!(count(json!({"pagination": pagination})).await, 2, "{pagination}");
        }
        server.call_in(&namespace, "PATCH", &publish, json!({"rate_limit_config": {"max_results_per_query": 100}})).await.ok();
        assert_eq!(count(json!({})).await, 5);
    }
}
