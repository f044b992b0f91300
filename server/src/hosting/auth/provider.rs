//! Signing in with another service: providers of OpenID Connect by discovery, Google among them, and GitHub. Code with
//! PKCE, state and nonce, bound to the browser that began, used once, within ten minutes.

use std::sync::Arc;

use axum::response::Response;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use loupe_hosted::auth::Provider;
use loupe_wire::{AuthConfigOutput, AuthConfigOutputMode};
use moka::future::Cache;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    Asked,
    arriving::{Arriving, not_invited},
    described, hash, keys, oidc,
    requests::cookie,
    session::{self, Cookie, place},
    store::{self, NewToken, Profile, User},
};
use crate::{
    app::App,
    db::Tx,
    error::{ApiError, Result},
    id,
    v1::{apps, secrets},
};

/// How long the way to a provider and back may take.
const WAY: i64 = 10 * 60 * 1_000_000;

const FLOW: &str = "flow";

/// What providers said of themselves, and the keys that they sign with.
pub(super) struct Providers {
    pub described: Cache<String, Arc<described::Described>>,
    pub keys: Cache<String, Arc<keys::Keys>>,
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            described: described::kept(),
            keys: keys::kept(),
        }
    }
}

/// The ways in which people sign in to an app.
#[derive(Debug, Default)]
pub(super) struct Ways {
    pub by_mail: bool,
    others: Vec<(Service, String)>,
}

/// Another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Google,
    Github,
    Oidc,
}

impl Service {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Github => "github",
            Self::Oidc => "oidc",
        }
    }
}

impl Ways {
    /// Nobody comes in.
    pub const fn is_none(&self) -> bool {
        !self.by_mail && self.others.is_empty()
    }

    /// The buttons of a page; the app's own service is called as its owner says.
    pub fn providers(&self, own: Option<&str>) -> Vec<Provider> {
        let own = own.filter(|label| !label.trim().is_empty());
        let label = |service: Service| own.filter(|_| service == Service::Oidc);
        let button = |(service, host): &(Service, String)| Provider {
            id: service.name().into(),
            label: label(*service).unwrap_or(host).to_owned(),
        };
        self.others.iter().map(button).collect()
    }

    /// The other services.
    pub fn services(&self) -> impl Iterator<Item = Service> {
        self.others.iter().map(|(service, _)| *service)
    }

    fn find(&self, name: &str) -> Result<Service> {
        let found = self
            .others
            .iter()
            .find(|(service, _)| service.name() == name);
        found.map(|(service, _)| *service).ok_or_else(|| {
            ApiError::forbidden(
                "provider_not_allowed",
                "This app does not use this service.",
            )
        })
    }
}

/// What the app's owner allows, as far as this server is set up for it.
pub(super) fn ways(app: &App, auth: Option<&AuthConfigOutput>) -> Ways {
    let Some(auth) = auth else {
        return Ways::default();
    };
    let allowed: Vec<_> = auth
        .clerk_allowed_providers
        .iter()
        .filter_map(|name| apps::check::provider(name))
        .collect();
    // Whoever asks for their own service wants nobody who comes another way, whatever was allowed before.
    let only_own = auth.mode == AuthConfigOutputMode::SsoOidc;
    let allows = |name| match only_own {
        true => name == "oidc",
        false => allowed.is_empty() || allowed.contains(&name),
    };
    let settings = &app.config().sign_in;
    let mut others = Vec::new();
    if settings.google.is_some() && allows("google") {
        others.push((Service::Google, "Google".to_owned()));
    }
    if settings.github.is_some() && allows("github") {
        others.push((Service::Github, "GitHub".to_owned()));
    }
    if let Some(issuer) = auth.oidc_issuer.as_ref().filter(|_| allows("oidc")) {
        let host = url::Url::parse(issuer).ok();
        let host = host.and_then(|url| url.host_str().map(ToOwned::to_owned));
        others.push((
            Service::Oidc,
            host.unwrap_or_else(|| "single sign-on".into()),
        ));
    }
    // In the order in which the owner named them.
    others.sort_by_key(|(service, _)| allowed.iter().position(|name| *name == service.name()));
    Ways {
        by_mail: allows("email"),
        others,
    }
}

/// What this server is to a provider.
pub(super) struct Client {
    /// Of OpenID Connect; GitHub has none.
    pub issuer: String,
    pub client_id: String,
    pub secret: Option<String>,
    pub scopes: Vec<String>,
}

/// The settings of a service, those of an app among them: whose it is, and how people sign in to it.
pub(super) async fn client(
    app: &App,
    (org_id, auth): (&str, Option<&AuthConfigOutput>),
    service: Service,
) -> Result<Client> {
    let settings = &app.config().sign_in;
    let of = |settings: Option<&crate::config::OauthClient>, issuer: &str, scopes: &[&str]| {
        let settings = settings.ok_or_else(|| ApiError::not_found("provider", service.name()))?;
        Ok(Client {
            issuer: settings.issuer.clone().unwrap_or_else(|| issuer.to_owned()),
            client_id: settings.client_id.clone(),
            secret: Some(settings.client_secret.expose_secret().to_owned()),
            scopes: scopes.iter().map(ToString::to_string).collect(),
        })
    };
    match service {
        Service::Google => of(
            settings.google.as_ref(),
            "https://accounts.google.com",
            &["openid", "email", "profile"],
        ),
        Service::Github => of(
            settings.github.as_ref(),
            "https://github.com",
            &["read:user", "user:email"],
        ),
        Service::Oidc => {
            let missing = || ApiError::not_found("provider", service.name());
            let auth = auth.ok_or_else(missing)?;
            let secret = match &auth.oidc_client_secret_name {
                Some(name) => Some(secrets::value(app, org_id, name).await.map_err(|_| {
                    ApiError::unavailable("", "This service is not set up: its secret is missing.")
                })?),
                None => None,
            };
            let mut scopes = auth.oidc_scopes.clone();
            if scopes.is_empty() {
                scopes = ["openid", "email", "profile"].map(ToOwned::to_owned).into();
            } else if !scopes.iter().any(|scope| scope == "openid") {
                scopes.insert(0, "openid".into());
            }
            Ok(Client {
                issuer: auth.oidc_issuer.clone().ok_or_else(missing)?,
                client_id: auth.oidc_client_id.clone().ok_or_else(missing)?,
                secret,
                scopes,
            })
        }
    }
}

/// What has to come back as it went.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Way {
    provider: String,
    issuer: String,
    nonce: String,
    verifier: String,
    redirect_uri: String,
    return_to: String,
    /// Hash of the cookie of the browser that began.
    browser: String,
}

/// Leads a browser to a provider.
pub(super) async fn start(asked: &Asked<'_>) -> Result<Response> {
    let app = asked.app;
    app.hosting.auth.throttle.address(app).await?;
    let auth = asked.site.hosted.auth_config.as_ref();
    let service = ways(app, auth).find(asked.text("provider"))?;
    let client = client(app, (&asked.site.org_id, auth), service).await?;
    let authorize = match service {
        Service::Github => format!("{}/login/oauth/authorize", client.issuer),
        _ => described::describe(app, &client.issuer)
            .await?
            .authorization_endpoint
            .clone(),
    };
    let (state, browser) = (id::random_base62(43), id::random_base62(43));
    let way = Way {
        provider: service.name().into(),
        issuer: client.issuer.clone(),
        nonce: id::random_base62(43),
        verifier: id::random_base62(64),
        redirect_uri: format!("{}/_auth/callback/{}", asked.site.origin, service.name()),
        return_to: asked.return_to(),
        browser: hash(&browser),
    };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(way.verifier.as_bytes()));
    let mut url = url::Url::parse(&authorize).map_err(|_| unusable())?;
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.client_id)
        .append_pair("redirect_uri", &way.redirect_uri)
        .append_pair("scope", &client.scopes.join(" "))
        .append_pair("state", &state)
        .append_pair("nonce", &way.nonce)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    let (place, now, token_hash) = (place(asked.site), app.clock().micros(), hash(&state));
    let write = app.db().write(move |tx| {
        Box::pin(async move {
            let token = NewToken {
                kind: FLOW,
                hash: &token_hash,
                user_id: "",
                expires_at: now + WAY,
                data: &way,
            };
            store::insert_token(tx, &place, &token).await
        })
    });
    write.await?;
    let mut response = session::redirect(url.as_str());
    let cookie = Cookie::Flow.set(app, &browser);
    response
        .headers_mut()
        .append(axum::http::header::SET_COOKIE, cookie);
    Ok(response)
}

fn unusable() -> ApiError {
    ApiError::unavailable("", "This service cannot be used at the moment.")
}

fn refused(code: &'static str, message: &str) -> ApiError {
    ApiError::bad_request(code, message)
}

/// A person as a provider knows them.
#[derive(Debug)]
pub(super) struct Person {
    pub issuer: String,
    pub subject: String,
    /// Only where the provider has proven it.
    pub email: Option<String>,
    /// One of which the provider does not say whether it is proven.
    pub claimed: Option<String>,
    pub name: Option<String>,
    pub picture: Option<String>,
}

/// Where a browser comes back from a provider.
pub(super) async fn callback(asked: &Asked<'_>, name: &str) -> Result<Response> {
    let app = asked.app;
    app.hosting.auth.throttle.address(app).await?;
    let sent = |name: &str| asked.query.get(name).map_or("", String::as_str);
    let way = take(asked, sent("state"), name).await?;
    if !sent("error").is_empty() {
        return Err(refused(
            "provider_refused",
            "The service did not sign you in. Try again.",
        ));
    }
    // Said by providers against mixing up two of them.
    let issuer = sent("iss");
    if !issuer.is_empty() && issuer != way.issuer {
        return Err(refused(
            "wrong_issuer",
            "Another service answered than the one that was asked.",
        ));
    }
    let auth = asked.site.hosted.auth_config.as_ref();
    let service = ways(app, auth).find(name)?;
    let client = client(app, (&asked.site.org_id, auth), service).await?;
    if client.issuer != way.issuer || sent("code").is_empty() {
        return Err(refused(
            "flow_invalid",
            "This sign-in cannot go on. Begin again.",
        ));
    }
    let exchange = oidc::Exchange {
        app,
        client: &client,
        code: sent("code"),
        redirect_uri: &way.redirect_uri,
        verifier: &way.verifier,
    };
    let person = match service {
        Service::Github => exchange.github().await?,
        _ => exchange.oidc(&way.nonce).await?,
    };
    let user = admit(asked, person).await?;
    session::begin(asked, &user, &way.return_to).await
}

/// The way that began with this state in this browser; it is over then, whatever comes of it.
async fn take(asked: &Asked<'_>, state: &str, name: &str) -> Result<Way> {
    let app = asked.app;
    let (place, now, token_hash) = (place(asked.site), app.clock().micros(), hash(state));
    let taken: Option<(String, Way)> = app
        .db()
        .write(move |tx| {
            Box::pin(async move { store::take_token(tx, &place, FLOW, &token_hash, now).await })
        })
        .await?;
    let here = cookie(asked.headers, Cookie::Flow.name(app)).map(hash);
    taken
        .map(|(_, way)| way)
        .filter(|way| way.provider == name && here.as_deref() == Some(way.browser.as_str()))
        .ok_or_else(|| {
            refused(
                "flow_invalid",
                "This sign-in is too old, or began in another browser. Begin again.",
            )
        })
}

/// The user that this person is: by what the provider calls them, else by an address that both sides have proven, else new.
async fn admit(asked: &Asked<'_>, person: Person) -> Result<User> {
    let (arriving, now) = (Arriving::of(asked), asked.app.clock().micros());
    let work = asked
        .app
        .db()
        .write(move |tx| Box::pin(async move { admit_in(tx, &arriving, person, now).await }));
    work.await
}

async fn admit_in(tx: &mut Tx, arriving: &Arriving, person: Person, now: i64) -> Result<User> {
    let place = &arriving.place;
    let identity = (person.issuer.as_str(), person.subject.as_str());
    let known = store::by_identity_in(tx, place, identity.0, identity.1).await?;
    let known = known.map(|user| user.user_id).unwrap_or_default();
    if let Some(mut user) = store::hold(tx, place, &known).await? {
        let profile = &mut user.profile;
        if !profile.is_named {
            profile.name = person.name.or(profile.name.take());
        }
        profile.avatar_url = person.picture.or(profile.avatar_url.take());
        profile.claimed_email = person.claimed.or(profile.claimed_email.take());
        store::update(tx, place, &user, now).await?;
        return Ok(user);
    }
    if person.email.is_none() && person.claimed.is_none() {
        return Err(refused(
            "email_unverified",
            "The service has not verified your e-mail address. Verify it there first.",
        ));
    }
    if let Some(email) = &person.email {
        // Whoever is here has proven the address, and so has the provider.
        let known = store::by_email_in(tx, place, email).await?;
        let known = known.map(|user| user.user_id).unwrap_or_default();
        if let Some(user) = store::hold(tx, place, &known).await? {
            store::insert_identity(tx, place, identity, &user.user_id, now).await?;
            return Ok(user);
        }
    }
    let profile = Profile {
        name: person.name,
        avatar_url: person.picture,
        claimed_email: person.claimed,
        ..Default::default()
    };
    let user = arriving.admit(tx, person.email, profile, now).await?;
    let user = user.ok_or_else(not_invited)?;
    store::insert_identity(tx, place, identity, &user.user_id, now).await?;
    Ok(user)
}
