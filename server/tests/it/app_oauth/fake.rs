//! Providers that speak as Google and GitHub do: the same addresses, members and refusals.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Form, Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The fake's own key, which signs nothing else.
const KEY: &str = "\
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDOz2GyWTW0VHCQ3s3i8yggeBCI2J1IHBvkofKtPtGbWanEt5Sr\
KO5ZzQASK2CNsglQBBCqQOtjBigcL/W/ddo0Zcs2hyVhh82RVyhiXm/epDJHqxrCkKm6QrKjWXU+0QaFMef6c4zMM2fdBw1SJeUO\
LTBUTQh5E4/7D0RGf1W1L8uY0gMCNrV5Lp42s919tNFoUY2f9XKgLBzl7wVodUxYtbwz4Qmqyz6BLHBZElfDeBHF13cg2rGw7Y+o\
gLGiv6iCitGHjO6thQYXpEo0B4yKfvw5ldentwdTFOtxOBuxf2NKZs6OIMjF1UwQDl3q6uEGfKf8LF5zgJwkCmq5OuffAgMBAAEC\
ggEAUNEs2f/Po1U+GfbfmTkxbKLOv1N6/yNw6QM6bOY4Dg/XbnbZI5verPwV84O8+xJgXkMAai/tbGiLAxzg2X2KFGDVLU1Z18e0\
lv/q2aoS6Hvc5DHixra2hQGsgnYigbY4aJOMlkxScLgD9hVb6MbDQKt7D+58iagR42ffY/c9vIwph5+n4T7SgEzS2Z4wny/VzBgN\
2ezY39zF4+PJ1S7WYkNxhmj06urhMoPUZiecgBXLNo0kGBOhfe8m6gcvM6vgqFacpqu3uIeUhSBk0SbkLoO18SC0VFNd+1OQbx55\
8DG+VgFiUvKDyRQZqes15FXwZWTIHvQUqK44jz3ie/9/5QKBgQDs+2ze6PNWthcZjXjnwG0Iag521MaCxqtuusBIiDS8JG5/FyX+\
fxd7WR6G+3Yi8max6vNLyLQBAftG5rpTlQ1+TXK9ocrui4sMDyHJwlV2CnSv/73/BEmF+wUW5fngrVnX+tIUP6OSmP9ebQtDFhs4\
j16nkXBAu0SNvl6jlX1fIwKBgQDfaBmfOBvGIOKZMXbLAM2a+5g6y0vbZ+mrdUpW2R5REbBuxLEiaZV2rxLdi7Dw9mjcTjhu7Khw\
9sAi5AKFOpd8zm2wDjzOZUktv/2JbhM298CQPVrxYghZQizkBpag8ptmidhJaNrbG0dsnpcXTBqa4e59sC3ohhyBvDdQOsQeFQKB\
gQCHZrx0vHrUj2OxaOCs4Ygqp5YuFTJ65BJtSOy2RISE/vfXS52cxHbhNjE4BJMiMoe0nj52jW0zqjMs9oV9XguAn7WwXbH6C+bd\
dAPlKFD2CdFUAfZHr+ZmU987jxjvY3yS56+CfD30c9Bs3jbyFL5m2ZvGeFW/1n+70Qp3wuEIKwKBgQCI/fGwM5y8Wo/49l7szppF\
bgAEFYN3j/m2nN6v8MVpWtqAofYoruvq8iI0XiNrLv5QEVsDkfUcCAL7oit1fN9FteOG8MQSoANGnZMfwbLgov2etTDeEYojCbQz\
Q2L8YKgwMVjCcxy4/LpIfdsSeyVZUi+HPRB5pDs4xqx4cwCtnQKBgGdMUVmT7NHq2/GLVwmccLUV+QjcXPWfTDUwA8tyURhvnr+N\
U5TgkGMr0yKRls0qqjhA3+Vm1k4vzxf62qoNZQsXz/OpsSxklctQ+4aAQJIF3FuuTcUFPVPsuxNyUaYz4FvddEuOv1prcrTR0Ic0\
FHxZBIpl2AiKdh7dYIhwimS7";

pub const GOOGLE: (&str, &str) = (
    "407408718192-films.apps.googleusercontent.com",
    "GOCSPX-of_the_club",
);
pub const GITHUB: (&str, &str) = ("Iv1.8a61f9b3a7aba766", "c3d1e0f2a4b596877869504132abcdef");

const TOKEN: &str = "gho_16C7e42F292c6912E7710c838347Ae178B4a";

type Words = BTreeMap<String, String>;

#[derive(Clone)]
pub struct Fake {
    pub base: String,
    key: Arc<RsaKeyPair>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// Ways back that were registered.
    ways: Vec<String>,
    /// What each code was asked with. A code is good once.
    codes: BTreeMap<String, Words>,
    given: usize,
    /// Who is signed in there: claims of Google; account and addresses of GitHub.
    claims: Value,
    account: Value,
    emails: Value,
}

impl Fake {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
        let key = STANDARD.decode(KEY).unwrap();
        let fake = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            key: Arc::new(RsaKeyPair::from_pkcs8(&key).unwrap()),
            known: Arc::default(),
        };
        let described = "/.well-known/openid-configuration";
        let router = Router::new()
            .route(described, get(Self::google_describes))
            .route("/o/oauth2/v2/auth", get(Self::google_asks))
            .route("/token", post(Self::google_tokens))
            .route("/oauth2/v3/certs", get(Self::google_keys))
            .route("/login/oauth/authorize", get(Self::github_asks))
            .route("/login/oauth/access_token", post(Self::github_token))
            .route("/api/v3/user", get(Self::github_user))
            .route("/api/v3/user/emails", get(Self::github_emails))
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        fake
    }

    /// Lets people be sent back there.
    pub fn register(&self, way: String) {
        self.known.lock().unwrap().ways.push(way);
    }

    /// Who is signed in at Google.
    pub fn google(&self, claims: Value) {
        self.known.lock().unwrap().claims = claims;
    }

    /// Who is signed in at GitHub: number, login, name, and addresses with whether they are the first and proven.
    pub fn github(&self, id: i64, login: &str, name: Value, emails: &[(&str, bool, bool)]) {
        let account = json!({
            "login": login, "id": id, "node_id": "MDQ6VXNlcjE=", "avatar_url": format!("https://avatars.example/u/{id}?v=4"),
            "gravatar_id": "", "html_url": format!("https://code.example/{login}"), "type": "User", "site_admin": false,
            "name": name, "company": null, "blog": "", "location": null, "email": null, "bio": null, "public_repos": 2,
            "followers": 20, "created_at": "2008-01-14T04:33:35Z", "updated_at": "2026-01-14T04:33:35Z",
        });
        let emails = emails.iter().map(|(email, primary, verified)| {
            let visibility = if *primary { json!("private") } else { Value::Null };
            json!({"email": email, "primary": primary, "verified": verified, "visibility": visibility})
        });
        let mut known = self.known.lock().unwrap();
        known.account = account;
        known.emails = emails.collect();
    }

    /// The way back of a person who agreed.
    fn agreed(&self, asked: Words, wanted: (&str, &str), more: &[(&str, &str)]) -> Response {
        let (client_id, scope) = wanted;
        let is = |name: &str, value: &str| asked.get(name).is_some_and(|sent| sent == value);
        let good = is("client_id", client_id)
            && is("scope", scope)
            && is("response_type", "code")
            && is("code_challenge_method", "S256");
        let mut known = self.known.lock().unwrap();
        let way = asked.get("redirect_uri");
        let (Some(way), true) = (way.filter(|way| known.ways.contains(way)), good) else {
            return (StatusCode::BAD_REQUEST, format!("refused: {asked:?}")).into_response();
        };
        known.given += 1;
        let code = format!("4/0A-{}", known.given);
        let mut back = url::Url::parse(way).unwrap();
        back.query_pairs_mut()
            .append_pair("state", &asked["state"])
            .append_pair("code", &code)
            .extend_pairs(more);
        known.codes.insert(code, asked);
        (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
    }

    /// What a code was asked with, for whoever asked.
    fn redeem(&self, form: &Words) -> Option<Words> {
        let asked = self.known.lock().unwrap().codes.remove(form.get("code")?)?;
        let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(form.get("code_verifier")?));
        let same =
            asked["redirect_uri"] == *form.get("redirect_uri")? && asked["code_challenge"] == proof;
        same.then_some(asked)
    }

    async fn google_describes(State(fake): State<Self>) -> Json<Value> {
        let base = &fake.base;
        Json(json!({
            "issuer": base, "authorization_endpoint": format!("{base}/o/oauth2/v2/auth"),
            "device_authorization_endpoint": format!("{base}/device/code"), "token_endpoint": format!("{base}/token"),
            "userinfo_endpoint": format!("{base}/v1/userinfo"), "revocation_endpoint": format!("{base}/revoke"),
            "jwks_uri": format!("{base}/oauth2/v3/certs"),
            "response_types_supported": ["code", "token", "id_token", "code token", "code id_token", "token id_token", "code token id_token", "none"],
            "response_modes_supported": ["query", "fragment", "form_post"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"], "scopes_supported": ["openid", "email", "profile"],
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "claims_supported": ["aud", "email", "email_verified", "exp", "family_name", "given_name", "iat", "iss", "name", "picture", "sub"],
            "code_challenge_methods_supported": ["plain", "S256"], "grant_types_supported": ["authorization_code", "refresh_token"],
        }))
    }

    async fn google_asks(State(fake): State<Self>, Query(asked): Query<Words>) -> Response {
        let more = [
            ("scope", "email profile openid"),
            ("authuser", "0"),
            ("prompt", "consent"),
        ];
        fake.agreed(asked, (GOOGLE.0, "openid email profile"), &more)
    }

    async fn google_tokens(
        State(fake): State<Self>,
        headers: HeaderMap,
        Form(form): Form<Words>,
    ) -> Response {
        let refused = |status: StatusCode, error: &str| {
            let told = json!({"error": error, "error_description": "Bad Request"});
            (status, Json(told)).into_response()
        };
        let basic = format!(
            "Basic {}",
            STANDARD.encode(format!("{}:{}", GOOGLE.0, GOOGLE.1))
        );
        let sent = headers.get(header::AUTHORIZATION);
        if sent.is_none_or(|sent| sent != basic.as_str()) {
            return refused(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        let Some(asked) = fake.redeem(&form) else {
            return refused(StatusCode::BAD_REQUEST, "invalid_grant");
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut claims = json!({
            "iss": fake.base, "azp": GOOGLE.0, "aud": GOOGLE.0, "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q",
            "nonce": asked["nonce"], "iat": now.as_secs(), "exp": now.as_secs() + 3600,
        });
        for (name, value) in fake.known.lock().unwrap().claims.as_object().unwrap() {
            claims[name] = value.clone();
        }
        Json(json!({
            "access_token": "ya29.a0AfB_by", "expires_in": 3599, "scope": "openid email profile", "token_type": "Bearer",
            "id_token": fake.signed(&claims),
        }))
        .into_response()
    }

    fn signed(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = json!({"alg": "RS256", "kid": "two", "typ": "JWT"});
        let signed = format!("{}.{}", part(&head), part(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        let made = self.key.sign(
            &RSA_PKCS1_SHA256,
            &random,
            signed.as_bytes(),
            &mut signature,
        );
        made.unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Two keys, of which the second one signs: the other one is of tomorrow.
    async fn google_keys(State(fake): State<Self>) -> Json<Value> {
        let public: PublicKeyComponents<Vec<u8>> = fake.key.public().into();
        let key = |kid: &str, n: &[u8]| json!({"kid": kid, "kty": "RSA", "alg": "RS256", "use": "sig", "n": URL_SAFE_NO_PAD.encode(n), "e": URL_SAFE_NO_PAD.encode(&public.e)});
        let mut other = public.n.clone();
        other[1] ^= 1;
        Json(json!({"keys": [key("one", &other), key("two", &public.n)]}))
    }

    async fn github_asks(State(fake): State<Self>, Query(asked): Query<Words>) -> Response {
        fake.agreed(asked, (GITHUB.0, "read:user user:email"), &[])
    }

    /// Refusals are answers of 200, and what does not ask for JSON gets a form.
    async fn github_token(
        State(fake): State<Self>,
        headers: HeaderMap,
        Form(form): Form<Words>,
    ) -> Response {
        let is = |name: &str, value: &str| form.get(name).is_some_and(|sent| sent == value);
        let told: &[(&str, &str)] = if !is("client_id", GITHUB.0) || !is("client_secret", GITHUB.1)
        {
            &[("error", "incorrect_client_credentials")]
        } else if fake.redeem(&form).is_none() {
            &[
                ("error", "bad_verification_code"),
                (
                    "error_description",
                    "The code passed is incorrect or expired.",
                ),
            ]
        } else {
            &[
                ("access_token", TOKEN),
                ("scope", "read:user,user:email"),
                ("token_type", "bearer"),
            ]
        };
        let accepts = headers.get(header::ACCEPT);
        if accepts.is_some_and(|kind| kind == "application/json") {
            return Json(told.iter().copied().collect::<BTreeMap<_, _>>()).into_response();
        }
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(told).finish().into_response()
    }

    async fn github_user(State(fake): State<Self>, headers: HeaderMap) -> Response {
        refused(&headers)
            .unwrap_or_else(|| Json(fake.known.lock().unwrap().account.clone()).into_response())
    }

    async fn github_emails(State(fake): State<Self>, headers: HeaderMap) -> Response {
        refused(&headers)
            .unwrap_or_else(|| Json(fake.known.lock().unwrap().emails.clone()).into_response())
    }
}

/// Whoever calls GitHub's API says its name, and has a token.
fn refused(headers: &HeaderMap) -> Option<Response> {
    if !headers.contains_key(header::USER_AGENT) {
        let told = "Request forbidden by administrative rules.";
        return Some((StatusCode::FORBIDDEN, told).into_response());
    }
    let bearer = headers.get(header::AUTHORIZATION);
    if bearer.is_some_and(|bearer| bearer == format!("Bearer {TOKEN}").as_str()) {
        return None;
    }
    let told = json!({"message": "Bad credentials", "status": "401"});
    Some((StatusCode::UNAUTHORIZED, Json(told)).into_response())
}
