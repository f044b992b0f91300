//! Sign-in of hosted apps, against a mail server and a provider that do what real ones do, and what attackers would.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Form, State},
    http::StatusCode,
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{
    apps::{at, deploy, host, make, visit},
    both,
    harness::{Answer, Database, Server, config},
};

/// The request with the fields of a form.
fn filled<V: AsRef<str>>(
    request: reqwest::RequestBuilder,
    form: &[(&str, V)],
) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

/// A mail server that keeps what it gets.
#[derive(Clone, Default)]
struct Mails(Arc<Mutex<Vec<String>>>);

impl Mails {
    async fn start() -> (Self, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let mails = Self::default();
        let kept = mails.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(kept.clone().talk(stream));
            }
        });
        (mails, url)
    }

    async fn talk(self, stream: tokio::net::TcpStream) {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        write.write_all(b"220 here\r\n").await.unwrap();
        let (mut in_mail, mut mail) = (false, String::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let answer = match (in_mail, line.as_str()) {
                (true, ".") => {
                    in_mail = false;
                    self.0.lock().unwrap().push(std::mem::take(&mut mail));
                    "250 kept\r\n"
                }
                (true, line) => {
                    mail += line.strip_suffix('=').unwrap_or(line);
                    if !line.ends_with('=') {
                        mail.push('\n');
                    }
                    continue;
                }
                (false, "DATA") => {
                    in_mail = true;
                    "354 go on\r\n"
                }
                (false, "QUIT") => "221 bye\r\n",
                _ => "250 good\r\n",
            };
            if write.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Waits for so many mails, and answers the last one.
    async fn wait(&self, count: usize) -> String {
        for _ in 0..200 {
            let mails = self.0.lock().unwrap().clone();
            if mails.len() >= count {
                assert_eq!(mails.len(), count);
                return mails[count - 1].replace("=3D", "=");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} of {count} mails came", self.0.lock().unwrap().len());
    }
}

fn token_of(mail: &str) -> String {
    let rest = mail
        .split("token=")
        .nth(1)
        .unwrap_or_else(|| panic!("no link in {mail}"));
    rest.chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

/// A browser: it keeps cookies, and says where it is.
struct Browser<'s> {
    server: &'s Server,
    slug: &'static str,
    cookies: BTreeMap<String, String>,
}

impl<'s> Browser<'s> {
    fn new(server: &'s Server, slug: &'static str) -> Self {
        Self {
            server,
            slug,
            cookies: BTreeMap::new(),
        }
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Answer {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = if cookies.is_empty() {
            request
        } else {
            request.header("cookie", cookies.join("; "))
        };
        let answer = Server::send(request).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            for part in ["Path=/", "HttpOnly", "SameSite=Lax"] {
                assert!(cookie.contains(part), "{cookie}");
            }
            assert!(!cookie.contains("Domain"), "{cookie}");
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    async fn get(&mut self, path: &str) -> Answer {
        let request = at(self.server, self.slug, "GET", path).header("accept", "text/html,*/*");
        self.send(request).await
    }

    /// A form of a page of the app itself.
    async fn post(&mut self, path: &str, form: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", host(self.server, self.slug));
        let request = at(self.server, self.slug, "POST", path).header("origin", origin);
        self.send(filled(request, form)).await
    }

    async fn who(&mut self) -> Value {
        let session = self.get("/_auth/session").await.ok();
        session["user"]["email"].clone()
    }

    fn session(&self) -> Option<&String> {
        self.cookies.get("loupe_app")
    }
}

async fn server_with_mail(database: Database) -> (Server, Mails) {
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(database, &folder).await;
    config.mail.url = url.into();
    (Server::start_with(config, folder, None).await, mails)
}

async fn app(server: &Server, slug: &str, auth: Value) -> String {
    let body = json!({"slug": slug, "meta": {"title": "Club"}, "auth_config": auth});
    let app = make(server, body).await;
    deploy(
        server,
        &app,
        "production",
        json!({"index.html": "<!doctype html><head><title>Club</title></head><h1>Club</h1>"}),
    )
    .await;
    app
}

const GOOD: &str = "a lamp in the cave";

async fn sign_up(browser: &mut Browser<'_>, mails: &Mails, email: &str, count: usize) {
    let form = [
        ("email", email),
        ("password", GOOD),
        ("name", "Ada"),
        ("return_to", "/films?x=1"),
    ];
    assert_eq!(browser.post("/_auth/sign-up", &form).await.status, 200);
    let token = token_of(&mails.wait(count).await);
    assert_eq!(
        browser
            .get(&format!("/_auth/verify?token={token}"))
            .await
            .status,
        200
    );
    assert_eq!(
        browser.who().await,
        Value::Null,
        "reading a page signs nobody in"
    );
    let done = browser.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(
        (done.status, done.headers["location"].to_str().unwrap()),
        (303, "/films?x=1")
    );
    let again = browser.post("/_auth/verify", &[("token", &token)]).await;
    assert_eq!(again.status, 410, "a link opens once");
}

async fn mail_and_password(database: Database) {
    let (server, mails) = server_with_mail(database).await;
    let id = app(&server, "club", json!({"mode": "clerk"})).await;
    let other = app(&server, "elsewhere", json!({"mode": "clerk"})).await;

    // The script is in every page, with the configuration, and answers without anybody signed in.
    let page = visit(&server, "club", "/").await;
    let text = page.body.as_str().unwrap().to_owned();
    assert!(text.contains(r#"<head><script src="/_auth/sdk.js" data-config="{&quot;app&quot;:&quot;club&quot;}"></script><title>"#), "{text}");
    let script = visit(&server, "club", "/_auth/sdk.js").await;
    assert_eq!(
        script.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
    assert!(script.body.as_str().unwrap().contains("LoupeAuth"));
    let mut ada = Browser::new(&server, "club");
    ada.get("/_auth/me").await.error(401, "AuthenticationError");
    ada.get("/_auth/users")
        .await
        .error(401, "AuthenticationError");
    assert_eq!(
        ada.get("/_auth/session").await.ok(),
        json!({"is_signed_in": false, "user": null})
    );
    ada.get("/api/retrievers")
        .await
        .error(401, "AuthenticationError");

    // An account, by a link in a mail.
    for (password, why) in [
        ("short", "at least 8"),
        ("password123", "guessed first"),
        (&*"x".repeat(129), "at most 128"),
    ] {
        let refused = ada
            .post(
                "/_auth/sign-up",
                &[("email", "ada@example.com"), ("password", password)],
            )
            .await;
        assert_eq!(refused.status, 422, "{password}");
        assert!(
            refused.body.as_str().unwrap().contains(why),
            "{}",
            refused.body
        );
    }
    sign_up(&mut ada, &mails, "Ada@Example.com", 1).await;
    assert_eq!(ada.who().await, "ada@example.com");
    let me = ada.get("/_auth/me").await.ok();
    assert_eq!((&me["name"], me.get("password")), (&json!("Ada"), None));
    let users = ada.get("/_auth/users").await.ok();
    assert_eq!(users, json!([me]));

    // Signing out and in: a new session each time, the old one is dead.
    let first = ada.session().unwrap().clone();
    ada.post(
        "/_auth/sign-in",
        &[("email", "ada@example.com"), ("password", GOOD)],
    )
    .await;
    let second = ada.session().unwrap().clone();
    assert_ne!(first, second);
    let old =
        at(&server, "club", "GET", "/_auth/me").header("cookie", format!("loupe_app={first}"));
    assert_eq!(Server::send(old).await.status, 401);
    let out = ada
        .post("/_auth/sign-out", &[("return_to", "//evil.example")])
        .await;
    assert_eq!(
        (out.status, out.headers["location"].to_str().unwrap()),
        (303, "/")
    );
    let dead =
        at(&server, "club", "GET", "/_auth/me").header("cookie", format!("loupe_app={second}"));
    assert_eq!(Server::send(dead).await.status, 401);
    let wrong = ada
        .post(
            "/_auth/sign-in",
            &[
                ("email", "ada@example.com"),
                ("password", "a lamp in the cove"),
            ],
        )
        .await;
    let nobody = ada
        .post(
            "/_auth/sign-in",
            &[("email", "bob@example.com"), ("password", GOOD)],
        )
        .await;
    assert_eq!((wrong.status, nobody.status), (401, 401));
    // The same page but for the address and the policy's number.
    let same = |answer: &Answer, email: &str| {
        let page = answer.body.as_str().unwrap().replace(email, "EMAIL");
        let start = page.find("nonce=").unwrap();
        let end = start + page[start..].find('>').unwrap();
        format!("{}{}", &page[..start], &page[end..])
    };
    assert_eq!(
        same(&wrong, "ada@example.com"),
        same(&nobody, "bob@example.com")
    );

    // Nothing of the account works at another app, and no other page signs anybody in or out.
    ada.post(
        "/_auth/sign-in",
        &[("email", "ada@example.com"), ("password", GOOD)],
    )
    .await;
    let cookie = format!("loupe_app={}", ada.session().unwrap());
    let there = at(&server, "elsewhere", "GET", "/_auth/me").header("cookie", &cookie);
    assert_eq!(Server::send(there).await.status, 401);
    for origin in [
        "https://evil.example",
        "null",
        &format!("http://{}", host(&server, "elsewhere")),
        &server.url,
    ] {
        let crossed = at(&server, "club", "POST", "/_auth/sign-out")
            .header("cookie", &cookie)
            .header("origin", origin);
        let crossed = filled(crossed, &[("a", "b")]);
        assert_eq!(Server::send(crossed).await.status, 403, "{origin}");
    }
    let silent = at(&server, "club", "POST", "/_auth/sign-out").header("cookie", &cookie);
    let silent = filled(silent, &[("a", "b")]);
    assert_eq!(Server::send(silent).await.status, 403);
    assert_eq!(ada.who().await, "ada@example.com");

    // Asking for an account that exists tells the page nothing and the owner of the address something.
    let mut eve = Browser::new(&server, "club");
    let form = [
        ("email", "ada@example.com"),
        ("password", "another password"),
        ("name", "Eve"),
    ];
    let known = eve.post("/_auth/sign-up", &form).await;
    assert!(mails.wait(2).await.contains("You have one already"));
    let form = [
        ("email", "new@example.com"),
        ("password", "another password"),
        ("name", "Eve"),
    ];
    let unknown = eve.post("/_auth/sign-up", &form).await;
    assert_eq!(
        same(&known, "ada@example.com"),
        same(&unknown, "new@example.com")
    );
    // The link of an account that somebody else asked for needs the password that they chose.
    let token = token_of(&mails.wait(3).await);
    let mut victim = Browser::new(&server, "club");
    assert_eq!(
        victim
            .post("/_auth/verify", &[("token", &token)])
            .await
            .status,
        401
    );
    assert_eq!(victim.who().await, Value::Null);

    // A forgotten password: one link, half an hour, and every session is over.
    let mut lost = Browser::new(&server, "club");
    lost.post("/_auth/forgot", &[("email", "nobody@example.com")])
        .await
        .ok();
    lost.post("/_auth/forgot", &[("email", "ada@example.com")])
        .await
        .ok();
    let token = token_of(&mails.wait(4).await);
    server.app.clock().advance(31 * 60);
    let late = lost
        .post(
            "/_auth/reset",
            &[("token", &token), ("password", "a new lamp there")],
        )
        .await;
    assert_eq!(late.status, 410);
    lost.post("/_auth/forgot", &[("email", "ada@example.com")])
        .await
        .ok();
    let token = token_of(&mails.wait(5).await);
    let weak = lost
        .post(
            "/_auth/reset",
            &[("token", &token), ("password", "12345678")],
        )
        .await;
    assert_eq!(weak.status, 422);
    let changed = lost
        .post(
            "/_auth/reset",
            &[("token", &token), ("password", "a new lamp there")],
        )
        .await;
    assert_eq!(changed.status, 303);
    assert!(mails.wait(6).await.contains("was changed"));
    assert_eq!(ada.who().await, Value::Null);
    assert_eq!(lost.who().await, "ada@example.com");
    assert_eq!(
        lost.post(
            "/_auth/reset",
            &[("token", &token), ("password", "once more again")]
        )
        .await
        .status,
        410
    );

    // Everywhere at once.
    ada.post(
        "/_auth/sign-in",
        &[
            ("email", "ada@example.com"),
            ("password", "a new lamp there"),
        ],
    )
    .await;
    assert_eq!(ada.who().await, "ada@example.com");
    lost.post("/_auth/sign-out", &[("everywhere", "true")])
        .await;
    assert_eq!(ada.who().await, Value::Null);

    // The owner sees people, gives roles, closes the list, and removes them.
    let path = format!("/v1/apps/{id}/users");
    let users = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(
        (&users["total"], &users["users"][0]["role"]),
        (&json!(1), &json!("org:member"))
    );
    let user = users["users"][0]["user_id"].as_str().unwrap().to_owned();
    let role = server
        .call(
            "PATCH",
            &format!("{path}/{user}/role"),
            json!({"role": "editor"}),
        )
        .await
        .ok();
    assert_eq!(role["role"], "editor");
    let theirs = format!("/v1/apps/{other}/users/{user}");
    server
        .call("DELETE", &theirs, Value::Null)
        .await
        .error(404, "NotFoundError");
    ada.post(
        "/_auth/sign-in",
        &[
            ("email", "ada@example.com"),
            ("password", "a new lamp there"),
        ],
    )
    .await;
    let build = json!({"build_config": {"env_vars": {"LOUPE_LIST_USERS": "off"}}});
    server
        .call("PATCH", &format!("/v1/apps/{id}"), build)
        .await
        .ok();
    ada.get("/_auth/users").await.error(403, "ForbiddenError");
    server
        .call("DELETE", &format!("{path}/{user}"), Value::Null)
        .await
        .ok();
    assert_eq!(ada.who().await, Value::Null);

    // A session ends after a week without a visit, and after a month in any case.
    server
        .call(
            "POST",
            &format!("{path}/invite"),
            json!({"email_address": "ada@example.com", "role": "curator"}),
        )
        .await
        .ok();
    assert!(mails.wait(7).await.contains("invited"));
    sign_up(&mut ada, &mails, "ada@example.com", 8).await;
    let users = server.call("GET", &path, Value::Null).await.ok();
    assert_eq!(users["users"][0]["role"], "curator");
    for days in [6, 6, 6, 6, 5] {
        server.app.clock().advance(days * 86_400);
        assert_eq!(ada.who().await, "ada@example.com");
    }
    server.app.clock().advance(86_400);
    assert_eq!(ada.who().await, Value::Null);
    ada.post(
        "/_auth/sign-in",
        &[("email", "ada@example.com"), ("password", GOOD)],
    )
    .await;
    server.app.clock().advance(7 * 86_400 + 1);
    assert_eq!(ada.who().await, Value::Null);
    // No secret is in the database.
    let rows: Vec<(String, String)> = server
        .app
        .db()
        .all("SELECT token_hash, user_id FROM app_sessions", vec![])
        .await
        .unwrap();
    assert!(
        rows.iter()
            .all(|(hash, _)| hash.len() == 64 && *hash != second)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_by_mail_and_password_on_sqlite() {
    mail_and_password(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_by_mail_and_password_on_postgres() {
    mail_and_password(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guessing_is_slowed_and_the_owner_still_gets_in() {
    let (mails, url) = Mails::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.mail.url = url.into();
    // A proxy names the addresses here.
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    app(
        &server,
        "club",
        json!({"mode": "clerk", "clerk_allowed_providers": ["email"]}),
    )
    .await;
    let mut ada = Browser::new(&server, "club");
    sign_up(&mut ada, &mails, "ada@example.com", 1).await;
    ada.post("/_auth/sign-out", &[]).await;

    let origin = format!("http://{}", host(&server, "club"));
    let guess = |address: String, number: usize| {
        let password = format!("guess number {number}");
        let form = [
            ("email", "ada@example.com".to_owned()),
            ("password", password),
        ];
        let request = at(&server, "club", "POST", "/_auth/sign-in").header("origin", &origin);
        Server::send(filled(request.header("x-forwarded-for", address), &form))
    };
    // 1,000 guesses from 100 addresses within ten minutes.
    let mut reached = 0;
    for number in 0..1_000 {
        let answer = guess(format!("203.0.113.{}", number % 100), number).await;
        match answer.status {
            401 => reached += 1,
            429 => assert!(answer.headers.contains_key("retry-after")),
            other => panic!("{other}: {:#}", answer.body),
        }
        if number % 100 == 99 {
            server.app.clock().advance(60);
        }
    }
    assert!(
        (5..=200).contains(&reached),
        "{reached} guesses reached the hash"
    );
    println!("{reached} of 1000 guesses reached the hash");
    // Ada's own browser is known.
    let right = [("email", "ada@example.com"), ("password", GOOD)];
    assert_eq!(ada.post("/_auth/sign-in", &right).await.status, 303);
    // One address at one account waits longer each time.
    server.app.clock().advance(900);
    let mut waits = Vec::new();
    for number in 0..12 {
        let answer = guess("198.51.100.7".into(), number).await;
        if answer.status == 429 {
            let wait: i64 = answer.headers["retry-after"]
                .to_str()
                .unwrap()
                .parse()
                .unwrap();
            waits.push(wait);
            server.app.clock().advance(wait);
        }
    }
    assert!(
        waits.len() >= 3 && waits.is_sorted() && waits[0] < waits[2],
        "{waits:?}"
    );
}

/// A provider of OpenID Connect whose tokens are made to order.
#[derive(Clone)]
struct Idp {
    issuer: String,
    key: Arc<EcdsaKeyPair>,
    other: Arc<EcdsaKeyPair>,
    order: Arc<Mutex<Order>>,
}

/// What the next token says.
#[derive(Clone, Default)]
struct Order {
    challenge: String,
    claims: Value,
    head: Option<Value>,
    forged: bool,
}

fn key() -> Arc<EcdsaKeyPair> {
    let random = ring::rand::SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    Arc::new(
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap(),
    )
}

impl Idp {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let idp = Self {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            key: key(),
            other: key(),
            order: Arc::default(),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(Self::describe))
            .route("/keys", get(Self::keys))
            .route("/token", post(Self::token))
            .with_state(idp.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        idp
    }

    async fn describe(State(idp): State<Self>) -> Json<Value> {
        let issuer = &idp.issuer;
        Json(json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"), "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"), "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }))
    }

    async fn keys(State(idp): State<Self>) -> Json<Value> {
        let point = idp.key.public_key().as_ref();
        let (x, y) = (
            URL_SAFE_NO_PAD.encode(&point[1..33]),
            URL_SAFE_NO_PAD.encode(&point[33..]),
        );
        Json(
            json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "one", "x": x, "y": y}]}),
        )
    }

    async fn token(
        State(idp): State<Self>,
        headers: axum::http::HeaderMap,
        Form(form): Form<BTreeMap<String, String>>,
    ) -> (StatusCode, Json<Value>) {
        let order = idp.order.lock().unwrap().clone();
        let basic = headers
            .get("authorization")
            .map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(
            basic.as_deref(),
            Some("Basic Y2x1Yjp0aGUrc2VjcmV0"),
            "club:the+secret"
        );
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
        if form["code"] != "good"
            || challenge != order.challenge
            || form["grant_type"] != "authorization_code"
        {
            return (
                StatusCode::BAD_REQUEST,
                Json(json!({"error": "invalid_grant"})),
            );
        }
        let head = order
            .head
            .clone()
            .unwrap_or_else(|| json!({"alg": "ES256", "kid": "one"}));
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(&order.claims));
        let key = if order.forged { &idp.other } else { &idp.key };
        let signature = key
            .sign(&ring::rand::SystemRandom::new(), signed.as_bytes())
            .unwrap();
        let signature = if head["alg"] == "none" {
            String::new()
        } else {
            URL_SAFE_NO_PAD.encode(signature.as_ref())
        };
        (
            StatusCode::OK,
            Json(
                json!({"access_token": "a", "token_type": "Bearer", "id_token": format!("{signed}.{signature}")}),
            ),
        )
    }

    /// What a good token says.
    fn claims(&self, nonce: &str) -> Value {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        json!({
            "iss": self.issuer, "sub": "1234", "aud": "club", "nonce": nonce, "iat": now, "exp": now + 300,
            "email": "ada@example.com", "email_verified": true, "name": "Ada", "picture": "https://pictures.example/ada.png",
        })
    }
}

/// What an attack does to what the provider answers, to the way back, and to the browser.
type Change = Box<dyn Fn(&mut Order, &mut String, &mut Browser<'_>)>;

fn by(change: impl Fn(&mut Order, &mut String, &mut Browser<'_>) + 'static) -> Change {
    Box::new(change)
}

/// Begins at the app; answers what the provider is asked with.
async fn begin(browser: &mut Browser<'_>, return_to: &str) -> BTreeMap<String, String> {
    let form = [("provider", "oidc"), ("return_to", return_to)];
    let away = browser.post("/_auth/start", &form).await;
    assert_eq!(away.status, 303, "{:#}", away.body);
    let url = url::Url::parse(away.headers["location"].to_str().unwrap()).unwrap();
    assert_eq!(url.path(), "/authorize");
    let asked: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    assert_eq!(
        (
            asked["code_challenge_method"].as_str(),
            asked["response_type"].as_str()
        ),
        ("S256", "code")
    );
    assert_eq!(
        asked["redirect_uri"],
        format!(
            "http://{}/_auth/callback/oidc",
            host(browser.server, browser.slug)
        )
    );
    asked
}

both! {
    async fn a_provider_signs_people_in_and_no_attack_does(server) {
        let idp = Idp::start().await;
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "idp", "secret_value": "the secret"})).await.ok();
        // What was allowed before the app had a service of its own opens no second door.
        let auth = json!({"mode": "sso_oidc", "oidc_issuer": idp.issuer, "oidc_client_id": "club", "oidc_client_secret_name": "idp",
            "clerk_allowed_providers": ["email", "google"]});
        let id = app(&server, "club", auth.clone()).await;
        app(&server, "elsewhere", auth).await;
        let page = visit(&server, "club", "/_auth/sign-in").await;
        let page = page.body.as_str().unwrap().to_owned();
        assert!(page.contains("Continue with 127.0.0.2") && !page.contains("password"), "{page}");

        // The good way, twice: one person.
        let mut names = Vec::new();
        for _ in 0..2 {
            let mut ada = Browser::new(&server, "club");
            let asked = begin(&mut ada, "/films#7").await;
            *idp.order.lock().unwrap() = Order { challenge: asked["code_challenge"].clone(), claims: idp.claims(&asked["nonce"]), ..Order::default() };
            let back = ada.get(&format!("/_auth/callback/oidc?code=good&state={}&iss={}", asked["state"], idp.issuer)).await;
            assert_eq!((back.status, back.headers["location"].to_str().unwrap()), (303, "/films#7"), "{:#}", back.body);
            let me = ada.get("/_auth/me").await.ok();
            assert_eq!((&me["email"], &me["avatar_url"]), (&json!("ada@example.com"), &json!("https://pictures.example/ada.png")));
            names.push(me["id"].clone());
            assert_eq!(ada.get("/api/retrievers").await.status, 403, "signed in, but the app has no namespace");
        }
        assert_eq!(names[0], names[1]);
        let users = server.call("GET", &format!("/v1/apps/{id}/users"), Value::Null).await.ok();
        assert_eq!(users["total"], 1);

        // Everything else leads to no session. Each attack changes one thing.
        let claim = |name: &'static str, value: Value| by(move |order, _, _| order.claims[name] = value.clone());
        let attacks: Vec<(&str, Change)> = vec![
            ("wrong state", by(|_, path, _| *path = path.replace("state=", "state=x"))),
            ("no state", by(|_, path, _| *path = "/_auth/callback/oidc?code=good".into())),
            ("another browser", by(|_, _, browser| browser.cookies.clear())),
            ("a planted cookie", by(|_, _, browser| { browser.cookies.insert("loupe_flow".into(), "planted".into()); })),
            ("another provider's callback", by(|_, path, _| *path = path.replace("/oidc?", "/google?"))),
            ("another issuer answers", by(|_, path, _| path.push_str("&iss=https://evil.example"))),
            ("another app's callback", by(|_, _, browser| browser.slug = "elsewhere")),
            ("the provider refuses", by(|_, path, _| *path = path.replace("code=good", "error=access_denied"))),
            ("another code", by(|_, path, _| *path = path.replace("code=good", "code=swapped"))),
            ("another verifier", by(|order, _, _| order.challenge = "other".into())),
            ("another nonce", claim("nonce", json!("other"))),
            ("no nonce", claim("nonce", Value::Null)),
            ("another audience", claim("aud", json!("somebody"))),
            ("one of several audiences", claim("aud", json!(["somebody", "club"]))),
            ("given to somebody else", claim("azp", json!("somebody"))),
            ("another issuer", claim("iss", json!("https://evil.example"))),
            ("expired", claim("exp", json!(1_000_000))),
            ("nobody", claim("sub", json!(""))),
            ("no signature", by(|order, _, _| order.head = Some(json!({"alg": "none"})))),
            ("a shared secret", by(|order, _, _| order.head = Some(json!({"alg": "HS256", "kid": "one"})))),
            ("another key", by(|order, _, _| order.forged = true)),
            ("an unknown key", by(|order, _, _| order.head = Some(json!({"alg": "ES256", "kid": "two"})))),
        ];
        let count = attacks.len();
        for (name, change) in attacks {
            server.app.clock().advance(61);
            let mut eve = Browser::new(&server, "club");
            let asked = begin(&mut eve, "/").await;
            let mut order = Order { challenge: asked["code_challenge"].clone(), claims: idp.claims(&asked["nonce"]), ..Order::default() };
            let mut path = format!("/_auth/callback/oidc?code=good&state={}", asked["state"]);
            change(&mut order, &mut path, &mut eve);
            *idp.order.lock().unwrap() = order;
            let back = eve.get(&path).await;
            assert!((400..500).contains(&back.status), "{name}: {}", back.status);
            assert_eq!(eve.session(), None, "{name}");
        }
        println!("{count} attacks refused");
        // A way is used once, and only for ten minutes; an address that nobody verified is nobody's.
        server.app.clock().advance(61);
        for (late, again, verified) in [(true, false, true), (false, true, true), (false, false, false)] {
            let mut eve = Browser::new(&server, "club");
            let asked = begin(&mut eve, "/").await;
            let mut claims = idp.claims(&asked["nonce"]);
            claims["sub"] = if verified { json!("1234") } else { json!("5678") };
            claims["email_verified"] = verified.into();
            *idp.order.lock().unwrap() = Order { challenge: asked["code_challenge"].clone(), claims, ..Order::default() };
            let path = format!("/_auth/callback/oidc?code=good&state={}", asked["state"]);
            if late {
                server.app.clock().advance(601);
            }
            if again {
                assert_eq!(eve.get(&path).await.status, 303);
                let flow = eve.cookies.clone();
                eve.cookies = flow;
                eve.cookies.remove("loupe_app");
            }
            assert_eq!(eve.get(&path).await.status, 400);
            assert_eq!(eve.session(), None);
        }
        let users = server.call("GET", &format!("/v1/apps/{id}/users"), Value::Null).await.ok();
        assert_eq!(users["total"], 1);
        // Ways that the app does not have.
        let mut eve = Browser::new(&server, "club");
        for provider in ["google", "github", "other"] {
            assert_eq!(eve.post("/_auth/start", &[("provider", provider)]).await.status, 403, "{provider}");
        }
        assert_eq!(eve.post("/_auth/sign-in", &[("email", "ada@example.com"), ("password", GOOD)]).await.status, 403);
    }
}
