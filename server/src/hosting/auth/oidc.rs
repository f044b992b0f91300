//! What providers are asked, through the guarded client: their description, a code's tokens. What an ID token
//! says is believed after its signature, issuer, audience, time and nonce were checked.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use loupe_engine::web::{Answer, Ask, Web};
use loupe_wire::{Value, reading};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    described::describe,
    keys::key,
    provider::{Client, Person},
    requests::address,
};
use crate::{
    app::App,
    error::{ApiError, Result},
};

/// Largest answer of a provider.
const ANSWER: u64 = 512 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Signatures that are believed: none with a shared secret, and no absent one.
pub(super) const SIGNATURES: [Algorithm; 8] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::EdDSA,
];

/// What a provider says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    issuer: String,
    pub authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

pub(super) fn unusable(cause: impl std::fmt::Display) -> ApiError {
    tracing::warn!(%cause, "a provider of sign-in cannot be used");
    ApiError::unavailable("", "This service cannot be used at the moment.")
}

pub(super) fn refused(cause: impl std::fmt::Display) -> ApiError {
    tracing::info!(%cause, "a sign-in was refused");
    ApiError::bad_request(
        "provider_refused",
        "The service did not sign you in. Begin again.",
    )
}

/// Asks what is believed, and may be told a secret: nobody in between hears it or answers in its place.
async fn ask(app: &App, ask: Ask) -> std::result::Result<Answer, String> {
    let outbound = app.sign_in_outbound();
    let url = outbound.check(&ask.url);
    let url = url.map_err(|error| error.to_string())?;
    if !outbound.is_safe(&url).await {
        return Err(format!("{url} is not asked without https"));
    }
    let ask = Ask {
        timeout: PATIENCE,
        max_bytes: ANSWER,
        ..ask
    };
    let answer = outbound.ask(ask).await;
    answer.map_err(|error| error.to_string())
}

async fn get<T: DeserializeOwned>(app: &App, url: &str, bearer: Option<&str>) -> Result<T> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(bearer) = bearer {
        let value = HeaderValue::from_str(&format!("Bearer {bearer}")).map_err(refused)?;
        headers.insert(header::AUTHORIZATION, value);
    }
    read(app, url, headers).await.map_err(unusable)
}

/// What is at an address, or why it cannot be used.
pub(super) async fn read<T: DeserializeOwned>(
    app: &App,
    url: &str,
    headers: HeaderMap,
) -> std::result::Result<T, String> {
    let request = Ask {
        headers,
        ..Ask::call(Method::GET, url, Bytes::new())
    };
    let answer = ask(app, request).await?;
    if !answer.status.is_success() {
        return Err(format!("{url} answered {}", answer.status));
    }
    let read = reading::from_slice(&answer.body);
    read.map_err(|_| format!("{url} answered what is not expected there"))
}

/// The description of a provider as it is now, which must call itself as it is called; or why there is none.
pub(super) async fn ask_description(
    app: &App,
    issuer: &str,
) -> std::result::Result<Description, String> {
    let url = format!(
        "{}/.well-known/openid-configuration",
        issuer.trim_end_matches('/')
    );
    let headers = [(header::ACCEPT, HeaderValue::from_static("application/json"))];
    let described: Description = read(app, &url, headers.into_iter().collect()).await?;
    if described.issuer == issuer {
        return Ok(described);
    }
    Err(format!("{issuer} calls itself {}", described.issuer))
}

/// Tokens of an owner's own service: where its keys lie, and what the tokens have to say besides.
pub(super) struct Signed<'a> {
    pub keys: &'a str,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

impl Signed<'_> {
    /// Whom a token is about; nobody where it is forged, over, or of somebody else.
    ///
    /// # Errors
    /// The keys cannot be read now.
    pub async fn subject(&self, app: &App, token: &str) -> Result<Option<String>> {
        #[derive(Deserialize)]
        struct Subject {
            sub: String,
        }
        let head = jsonwebtoken::decode_header(token).ok();
        let Some(head) = head.filter(|head| SIGNATURES.contains(&head.alg)) else {
            return Ok(None);
        };
        // Beside those of providers, which are kept by what they call themselves.
        let name = format!("at {}", self.keys);
        let key = match key(app, (&name, self.keys), head.kid.as_deref()).await {
            Ok(key) => key,
            Err(error) if error.is_callers() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut validation = Validation::new(head.alg);
        let mut needed = vec!["exp", "sub"];
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            needed.push("iss");
        }
        match &self.audience {
            Some(audience) => {
                validation.set_audience(&[audience]);
                needed.push("aud");
            }
            // The owner says that whomever a token is for, its bearer may call.
            None => validation.validate_aud = false,
        }
        validation.set_required_spec_claims(&needed);
        validation.validate_nbf = true;
        validation.leeway = 30;
        let Ok(key) = DecodingKey::from_jwk(&key) else {
            return Ok(None);
        };
        let claims = jsonwebtoken::decode::<Subject>(token, &key, &validation);
        Ok(claims.ok().map(|claims| claims.claims.sub))
    }
}

/// What an ID token says.
#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    aud: Audience,
    azp: Option<String>,
    nonce: Option<String>,
    email: Option<String>,
    #[serde(default)]
    email_verified: Value,
    name: Option<String>,
    picture: Option<String>,
}

/// What a provider tells of a person to whoever asks with the access token.
#[derive(Debug, Deserialize)]
struct Info {
    sub: String,
    email: Option<String>,
    #[serde(default)]
    email_verified: Value,
    name: Option<String>,
    picture: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Whether an address is proven, as far as the provider says so; some write truth as text.
fn proven(said: &Value) -> Option<bool> {
    match said {
        Value::Null => None,
        Value::Bool(proven) => Some(*proven),
        Value::String(text) => Some(text.eq_ignore_ascii_case("true")),
        _ => Some(false),
    }
}

#[derive(Debug, Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
}

/// A code on its way to being a person.
pub(super) struct Exchange<'a> {
    pub app: &'a App,
    pub client: &'a Client,
    pub code: &'a str,
    pub redirect_uri: &'a str,
    pub verifier: &'a str,
}

impl Exchange<'_> {
    /// Headers and form that ask for the tokens of the code.
    fn asking(&self, by_header: bool) -> Result<(HeaderMap, Bytes)> {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", self.code)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("code_verifier", self.verifier);
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        match self.client.secret.as_deref().filter(|_| by_header) {
            Some(secret) => {
                let encode = |text: &str| {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let pair = format!("{}:{}", encode(&self.client.client_id), encode(secret));
                let value = format!("Basic {}", STANDARD.encode(pair));
                let value = HeaderValue::from_str(&value).map_err(refused)?;
                headers.insert(header::AUTHORIZATION, value);
            }
            None => {
                form.append_pair("client_id", &self.client.client_id);
                if let Some(secret) = &self.client.secret {
                    form.append_pair("client_secret", secret);
                }
            }
        }
        Ok((headers, form.finish().into()))
    }

    /// The tokens of the code.
    async fn tokens(&self, endpoint: &str, by_header: bool) -> Result<Tokens> {
        let (headers, form) = self.asking(by_header)?;
        let request = Ask {
            headers,
            ..Ask::call(Method::POST, endpoint, form)
        };
        let answer = ask(self.app, request).await.map_err(unusable)?;
        if !answer.status.is_success() {
            return Err(refused(format!("the code was answered {}", answer.status)));
        }
        reading::from_slice(&answer.body).map_err(refused)
    }

    /// Who the ID token is about.
    pub async fn oidc(&self, nonce: &str) -> Result<Person> {
        let described = describe(self.app, &self.client.issuer).await?;
        let methods = &described.token_endpoint_auth_methods_supported;
        let by_header =
            methods.is_empty() || methods.iter().any(|one| one == "client_secret_basic");
        let tokens = self.tokens(&described.token_endpoint, by_header).await?;
        let token = tokens
            .id_token
            .ok_or_else(|| refused("there is no ID token"))?;
        let mut claims = self.check(&described, &token, nonce).await?;
        if let (None, Some(token)) = (&claims.email, &tokens.access_token) {
            self.ask_more(&described, token, &mut claims).await?;
        }
        let email = claims.email.as_deref().and_then(address);
        // What a provider says nothing of may be anybody's; what it says is not proven is nobody's.
        let (email, claimed) = match proven(&claims.email_verified) {
            Some(true) => (email, None),
            Some(false) => (None, None),
            None => (None, email),
        };
        Ok(Person {
            issuer: described.issuer.clone(),
            subject: claims.sub,
            email,
            claimed,
            name: claims.name.map(short),
            picture: claims.picture.filter(|url| is_picture(url)),
        })
    }

    /// Many providers put into the ID token only who it is, and tell the rest where they are asked for it.
    async fn ask_more(
        &self,
        described: &Description,
        token: &str,
        claims: &mut Claims,
    ) -> Result<()> {
        let Some(endpoint) = &described.userinfo_endpoint else {
            return Ok(());
        };
        let info: Info = get(self.app, endpoint, Some(token)).await?;
        if info.sub != claims.sub {
            return Err(refused("what the provider tells is of somebody else"));
        }
        claims.email = info.email;
        claims.email_verified = info.email_verified;
        claims.name = claims.name.take().or(info.name);
        claims.picture = claims.picture.take().or(info.picture);
        Ok(())
    }

    async fn check(&self, described: &Description, token: &str, nonce: &str) -> Result<Claims> {
        let head = jsonwebtoken::decode_header(token).map_err(refused)?;
        if !SIGNATURES.contains(&head.alg) {
            return Err(refused("the token has a signature that is not believed"));
        }
        let place = (described.issuer.as_str(), described.jwks_uri.as_str());
        let key = key(self.app, place, head.kid.as_deref()).await?;
        let mut validation = Validation::new(head.alg);
        validation.set_issuer(&[&described.issuer]);
        validation.set_audience(&[&self.client.client_id]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.leeway = 30;
        let key = DecodingKey::from_jwk(&key).map_err(refused)?;
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation);
        let claims = claims.map_err(refused)?.claims;
        if claims.nonce.as_deref() != Some(nonce) {
            return Err(refused("the token is not for this sign-in"));
        }
        // A token for several parties says whom it was given to.
        let several = matches!(&claims.aud, Audience::Several(all) if all.len() > 1);
        let given = claims.azp.as_deref();
        if given.is_some_and(|azp| azp != self.client.client_id) || (several && given.is_none()) {
            return Err(refused("the token was given to somebody else"));
        }
        if matches!(&claims.aud, Audience::One(one) if *one != self.client.client_id) {
            return Err(refused("the token is for somebody else"));
        }
        if claims.sub.is_empty() || claims.sub.len() > 255 {
            return Err(refused("the token names nobody"));
        }
        Ok(claims)
    }

    /// GitHub has tokens only: who it is, and which address is proven, is asked with them.
    pub async fn github(&self) -> Result<Person> {
        #[derive(Deserialize)]
        struct Account {
            id: i64,
            login: String,
            name: Option<String>,
            avatar_url: Option<String>,
        }
        #[derive(Deserialize)]
        struct Mail {
            email: String,
            primary: bool,
            verified: bool,
        }
        let issuer = &self.client.issuer;
        let api = if issuer == "https://github.com" {
            "https://api.github.com".to_owned()
        } else {
            format!("{issuer}/api/v3")
        };
        let endpoint = format!("{issuer}/login/oauth/access_token");
        let tokens = self.tokens(&endpoint, false).await?;
        let token = tokens
            .access_token
            .ok_or_else(|| refused("there is no access token"))?;
        let account: Account = get(self.app, &format!("{api}/user"), Some(&token)).await?;
        let mails: Vec<Mail> = get(self.app, &format!("{api}/user/emails"), Some(&token)).await?;
        let proven = mails.iter().find(|mail| mail.primary && mail.verified);
        Ok(Person {
            issuer: issuer.clone(),
            subject: account.id.to_string(),
            email: proven.and_then(|mail| address(&mail.email)),
            claimed: None,
            name: Some(short(account.name.unwrap_or(account.login))),
            picture: account.avatar_url.filter(|url| is_picture(url)),
        })
    }
}

fn short(name: String) -> String {
    name.chars().take(100).collect()
}

fn is_picture(url: &str) -> bool {
    url.starts_with("https://") && url.len() <= 1_000
}
