//! Sign-in to hosted apps by a provider of OpenID Connect, and what is tried against it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
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

use crate::{
    apps::{host, visit},
    both,
    browser::{Browser, GOOD, app},
    harness::{Answer, Server},
};

/// A provider of OpenID Connect whose tokens are made to order.
#[derive(Clone)]
pub struct Idp {
    pub issuer: String,
    key: Arc<EcdsaKeyPair>,
    other: Arc<EcdsaKeyPair>,
    order: Arc<Mutex<Order>>,
    /// How often its keys were asked for.
    pub reads: Arc<AtomicUsize>,
    /// How often it was asked what it says of itself.
    descriptions: Arc<AtomicUsize>,
    /// Milliseconds until it tells them.
    pub pause: Arc<AtomicU64>,
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
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let idp = Self {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            key: key(),
            other: key(),
            order: Arc::default(),
            reads: Arc::default(),
            descriptions: Arc::default(),
            pause: Arc::default(),
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
        idp.descriptions.fetch_add(1, Ordering::SeqCst);
        let pause = idp.pause.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let issuer = &idp.issuer;
        Json(json!({
            "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"), "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"), "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }))
    }

    async fn keys(State(idp): State<Self>) -> Json<Value> {
        idp.reads.fetch_add(1, Ordering::SeqCst);
        let pause = idp.pause.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(pause)).await;
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
        let token = idp.signed(&head, &order.claims, order.forged);
        (
            StatusCode::OK,
            Json(json!({"access_token": "a", "token_type": "Bearer", "id_token": token})),
        )
    }

    /// A token that says this; forged, it is signed with a key that is not the provider's.
    pub fn signed(&self, head: &Value, claims: &Value, forged: bool) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(head), part(claims));
        let key = if forged { &self.other } else { &self.key };
        let signature = key
            .sign(&ring::rand::SystemRandom::new(), signed.as_bytes())
            .unwrap();
        let signature = if head["alg"] == "none" {
            String::new()
        } else {
            URL_SAFE_NO_PAD.encode(signature.as_ref())
        };
        format!("{signed}.{signature}")
    }

    /// What a good token says.
    pub fn claims(&self, nonce: &str) -> Value {
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

/// The good way, twice: one person. Answers its id.
async fn signs_one_person_in(server: &Server, idp: &Idp) -> Value {
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut ada = Browser::new(server, "club");
        let asked = begin(&mut ada, "/films#7").await;
        *idp.order.lock().unwrap() = Order {
            challenge: asked["code_challenge"].clone(),
            claims: idp.claims(&asked["nonce"]),
            ..Order::default()
        };
        let back = ada
            .get(&format!(
                "/_auth/callback/oidc?code=good&state={}&iss={}",
                asked["state"], idp.issuer
            ))
            .await;
        assert_eq!(
            (back.status, back.headers["location"].to_str().unwrap()),
            (303, "/films#7"),
            "{:#}",
            back.body
        );
        let me = ada.get("/_auth/me").await.ok();
        assert_eq!(
            (&me["email"], &me["avatar_url"]),
            (
                &json!("ada@example.com"),
                &json!("https://pictures.example/ada.png")
            )
        );
        names.push(me["id"].clone());
        assert_eq!(
            ada.get("/api/retrievers").await.status,
            403,
            "signed in, but the app has no namespace"
        );
    }
    assert_eq!(names[0], names[1]);
    names.swap_remove(0)
}

/// Comes back from the provider with a token that says what it was changed to.
pub async fn signs_in_as(
    idp: &Idp,
    browser: &mut Browser<'_>,
    change: impl FnOnce(&mut Value),
) -> Answer {
    let asked = begin(browser, "/").await;
    let mut claims = idp.claims(&asked["nonce"]);
    change(&mut claims);
    *idp.order.lock().unwrap() = Order {
        challenge: asked["code_challenge"].clone(),
        claims,
        ..Order::default()
    };
    let path = format!("/_auth/callback/oidc?code=good&state={}", asked["state"]);
    browser.get(&path).await
}

/// Attacks on the way there and back. Each changes one thing.
fn attacks_on_the_way() -> Vec<(&'static str, Change)> {
    vec![
        (
            "wrong state",
            by(|_, path, _| *path = path.replace("state=", "state=x")),
        ),
        (
            "no state",
            by(|_, path, _| *path = "/_auth/callback/oidc?code=good".into()),
        ),
        (
            "another browser",
            by(|_, _, browser| browser.cookies.clear()),
        ),
        (
            "a planted cookie",
            by(|_, _, browser| {
                browser
                    .cookies
                    .insert("loupe_flow".into(), "planted".into());
            }),
        ),
        (
            "another provider's callback",
            by(|_, path, _| *path = path.replace("/oidc?", "/google?")),
        ),
        (
            "another issuer answers",
            by(|_, path, _| path.push_str("&iss=https://evil.example")),
        ),
        (
            "another app's callback",
            by(|_, _, browser| browser.slug = "elsewhere"),
        ),
        (
            "the provider refuses",
            by(|_, path, _| *path = path.replace("code=good", "error=access_denied")),
        ),
        (
            "another code",
            by(|_, path, _| *path = path.replace("code=good", "code=swapped")),
        ),
    ]
}

/// Tokens that are not good. Each has one thing that is wrong.
fn attacks_with_tokens() -> Vec<(&'static str, Change)> {
    let claim = |name: &'static str, value: Value| {
        by(move |order, _, _| order.claims[name] = value.clone())
    };
    vec![
        (
            "another verifier",
            by(|order, _, _| order.challenge = "other".into()),
        ),
        ("another nonce", claim("nonce", json!("other"))),
        ("no nonce", claim("nonce", Value::Null)),
        ("another audience", claim("aud", json!("somebody"))),
        (
            "one of several audiences",
            claim("aud", json!(["somebody", "club"])),
        ),
        ("given to somebody else", claim("azp", json!("somebody"))),
        (
            "another issuer",
            claim("iss", json!("https://evil.example")),
        ),
        ("expired", claim("exp", json!(1_000_000))),
        ("nobody", claim("sub", json!(""))),
        (
            "no signature",
            by(|order, _, _| order.head = Some(json!({"alg": "none"}))),
        ),
        (
            "a shared secret",
            by(|order, _, _| order.head = Some(json!({"alg": "HS256", "kid": "one"}))),
        ),
        ("another key", by(|order, _, _| order.forged = true)),
        (
            "an unknown key",
            by(|order, _, _| order.head = Some(json!({"alg": "ES256", "kid": "two"}))),
        ),
    ]
}

/// A way is used once, and only for ten minutes; an address that nobody verified is nobody's.
async fn a_way_is_used_once_and_soon(server: &Server, idp: &Idp) {
    server.app.clock().advance(61);
    for (late, again, verified) in [
        (true, false, true),
        (false, true, true),
        (false, false, false),
    ] {
        let mut eve = Browser::new(server, "club");
        let asked = begin(&mut eve, "/").await;
        let mut claims = idp.claims(&asked["nonce"]);
        claims["sub"] = if verified {
            json!("1234")
        } else {
            json!("5678")
        };
        claims["email_verified"] = verified.into();
        *idp.order.lock().unwrap() = Order {
            challenge: asked["code_challenge"].clone(),
            claims,
            ..Order::default()
        };
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
}

both! {
    async fn a_provider_is_asked_by_one_at_a_time_what_it_says_of_itself(server) {
        let idp = Idp::start().await;
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "idp", "secret_value": "the secret"})).await.ok();
        let auth = |issuer: &str| json!({"mode": "sso_oidc", "oidc_issuer": issuer, "oidc_client_id": "club", "oidc_client_secret_name": "idp"});
        app(&server, "club", auth(&idp.issuer)).await;
        let start = async || Browser::new(&server, "club").post("/_auth/start", &[("provider", "oidc")]).await.status;
        idp.pause.store(500, Ordering::SeqCst);
        let starts = futures::future::join_all((0..15).map(|_| start())).await;
        assert_eq!(starts, [303; 15]);
        assert_eq!(idp.descriptions.load(Ordering::SeqCst), 1);
    }

    async fn a_service_of_ones_own_stands_beside_other_ways(server) {
        let idp = Idp::start().await;
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "idp", "secret_value": "the secret"})).await.ok();
        let auth = |ways: Value| json!({"mode": "clerk", "clerk_allowed_providers": ways, "oidc_issuer": idp.issuer,
            "oidc_client_id": "club", "oidc_client_secret_name": "idp"});
        let id = app(&server, "club", auth(json!(["email", "oidc"]))).await;
        let page = visit(&server, "club", "/_auth/sign-in").await;
        let page = page.body.as_str().unwrap().to_owned();
        assert!(page.contains("Continue with 127.0.0.2") && page.contains("password"), "{page}");
        // Its owner says what people call it.
        let called = |label: &str| json!({"build_config": {"env_vars": {"LOUPE_OIDC_LABEL": label}}});
        let path = format!("/v1/apps/{id}");
        server.call("PATCH", &path, called("Acme <Staff>")).await.ok();
        let page = visit(&server, "club", "/_auth/sign-in").await;
        assert!(page.body.as_str().unwrap().contains("Continue with Acme &lt;Staff&gt;"));
        server.call("PATCH", &path, called("")).await.ok();
        signs_one_person_in(&server, &idp).await;
        // Who takes it out of the list closes it, whatever else is known of it.
        let closed = json!({"auth_config": auth(json!(["email"]))});
        server.call("PATCH", &format!("/v1/apps/{id}"), closed).await.ok();
        let refused = Browser::new(&server, "club").post("/_auth/start", &[("provider", "oidc")]).await;
        assert_eq!(refused.status, 403);
    }

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

        let person = signs_one_person_in(&server, &idp).await;
        let logs = async |query: &str| server.call("GET", &format!("/v1/organizations/audit/logs?{query}"), Value::Null).await.ok();
        let told = logs(&format!("action=user_updated&resource_id={}", person.as_str().unwrap())).await;
        assert_eq!(told["total"], 2, "{told:#}");
        assert_eq!(told["results"][0]["changes"], json!({"signed_in": true, "operation": "GET /_auth/callback/oidc", "app_id": id}));
        let users = server.call("GET", &format!("/v1/apps/{id}/users"), Value::Null).await.ok();
        assert_eq!(users["total"], 1);

        // Everything else leads to no session.
        let attacks = [attacks_on_the_way(), attacks_with_tokens()];
        let count: usize = attacks.iter().map(Vec::len).sum();
        for (name, change) in attacks.into_iter().flatten() {
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
        // S-42: whoever signed in before has a session each, and no attack has made one.
        let sessions = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM app_sessions", vec![]).await.unwrap();
        assert_eq!(sessions, 2);
        let told = logs("action=permission_denied&resource_type=user").await;
        for code in ["flow_invalid", "wrong_issuer", "provider_refused"] {
            let mut told = told["results"].as_array().unwrap().iter();
            assert!(told.any(|one| one["changes"]["code"] == code), "{code}");
        }
        assert!(told["total"].as_i64().unwrap() < i64::try_from(count).unwrap(), "what is repeated is counted");
        a_way_is_used_once_and_soon(&server, &idp).await;
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
