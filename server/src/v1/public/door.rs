//! Who sees a publication: one rule for the API, the pages, the map and the beacons. What is not active does not exist for
//! strangers; what has a password shows them nothing but that.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use subtle::ConstantTimeEq;

use crate::{
    app::App,
    error::{ApiError, Result},
    front,
    password::{self, Checked, hashing::salt},
    v1::publishing::{self, Published},
};

/// How long a visitor who gave the password need not give it again.
const SECONDS: i64 = 24 * 3600;

const PASSWORD: &str = "x-retriever-password";

/// What a visitor brings along to see a page with a password.
#[derive(Debug, Clone, Default)]
pub struct Proof {
    cookies: String,
    password: Option<String>,
}

impl Proof {
    /// What a browser brings along.
    pub fn cookies(cookies: &str) -> Self {
        Self {
            cookies: cookies.to_owned(),
            password: None,
        }
    }

    fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        // No password is longer: nothing is hashed for a flood of bytes.
        let password = text(PASSWORD).filter(|password| password.len() <= 1024);
        Self {
            cookies: text(header::COOKIE.as_str()).unwrap_or_default().to_owned(),
            password: password.map(ToOwned::to_owned),
        }
    }

    fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self
            .cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        pairs
            .into_iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Proof {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Ok(Self::of(&parts.headers))
    }
}

/// A publication as a visitor finds it.
pub enum Door {
    Open(Box<Published>),
    Locked,
}

/// The publication of this name, if it exists for strangers.
///
/// # Errors
/// 401 for a wrong password, 429 for too many of them.
pub async fn find(app: &App, public_name: &str, proof: &Proof) -> Result<Option<Door>> {
    let found = publishing::find_public(app, public_name).await?;
    let Some(found) = found.filter(|found| found.data.is_active) else {
        return Ok(None);
    };
    let found = Box::new(found);
    if !found.data.password_protected || knows(app, &found, proof).await? {
        return Ok(Some(Door::Open(found)));
    }
    Ok(Some(Door::Locked))
}

/// As [`find`], for those who need it open.
///
/// # Errors
/// 404 for what does not exist for strangers, 401 for what is locked.
pub async fn enter(app: &App, public_name: &str, proof: &Proof) -> Result<Published> {
    match find(app, public_name, proof).await? {
        None => Err(missing(public_name)),
        Some(Door::Open(published)) => Ok(*published),
        Some(Door::Locked) => {
            let message = "this page has a password: verify it, or send it in X-Retriever-Password";
            Err(ApiError::unauthenticated("password_required", message)
                .with("password_protected", true))
        }
    }
}

fn missing(public_name: &str) -> ApiError {
    ApiError::not_found("published_retriever", public_name)
}

async fn knows(app: &App, published: &Published, proof: &Proof) -> Result<bool> {
    let name = cookie_name(app, published);
    if let Some(cookie) = proof.cookie(&name)
        && is_valid(app, published, cookie)?
    {
        return Ok(true);
    }
    match &proof.password {
        None => Ok(false),
        Some(password) if is_password(app, published, password).await? => Ok(true),
        Some(_) => {
            let message = "this is not the password of the page";
            Err(ApiError::unauthenticated("password_invalid", message)
                .with("password_protected", true))
        }
    }
}

async fn is_password(app: &App, published: &Published, password: &str) -> Result<bool> {
    // A page whose hash is gone opens for nobody.
    if published.hash.is_empty() {
        return Ok(false);
    }
    let (thing, hash) = (&published.data.public_id, &published.hash);
    let checked = password::check(app, thing, front::address(), hash, password).await?;
    if checked == Checked::Right {
        publishing::renew(app, published, password).await;
    }
    Ok(checked.is_right())
}

/// Tries a password: the cookie that opens the page, none for a wrong one.
///
/// # Errors
/// 404 for what does not exist for strangers, 429 for too many wrong passwords.
pub async fn unlock(app: &App, public_name: &str, password: &str) -> Result<Unlocked> {
    let found = publishing::find_public(app, public_name).await?;
    let found = found.filter(|found| found.data.is_active);
    let found = found.ok_or_else(|| missing(public_name))?;
    if !found.data.password_protected {
        return Ok(Unlocked::NoPassword);
    }
    if !is_password(app, &found, password).await? {
        return Ok(Unlocked::Wrong);
    }
    let until = app.clock().micros() / 1_000_000 + SECONDS;
    let signature = signature(app, &found, until)?;
    let name = cookie_name(app, &found);
    let secure = if is_https(app) { "; Secure" } else { "" };
    Ok(Unlocked::Cookie(format!(
        "{name}={until}.{signature}; Path=/; Max-Age={SECONDS}; HttpOnly; SameSite=Lax{secure}"
    )))
}

/// What a password came to.
pub enum Unlocked {
    /// The text of `Set-Cookie`.
    Cookie(String),
    NoPassword,
    Wrong,
}

fn is_https(app: &App) -> bool {
    app.config().address().starts_with("https://")
}

/// The prefix makes browsers refuse such a cookie from a neighbour's host.
fn cookie_name(app: &App, published: &Published) -> String {
    let prefix = if is_https(app) { "__Host-" } else { "" };
    format!("{prefix}loupe_page_{}", published.data.public_id)
}

/// The salt of the hash is among the words: whoever knows the old password of a page does not know the new one, and a hash
/// that is renewed shuts nobody out.
fn signature(app: &App, published: &Published, until: i64) -> Result<String> {
    let (salt, until) = (salt(&published.hash), until.to_string());
    app.vault()
        .signature(&["page", &published.data.public_id, salt, &until])
}

fn is_valid(app: &App, published: &Published, cookie: &str) -> Result<bool> {
    let Some((until, sent)) = cookie.split_once('.') else {
        return Ok(false);
    };
    let Ok(until) = until.parse::<i64>() else {
        return Ok(false);
    };
    let expected = signature(app, published, until)?;
    let same = bool::from(expected.as_bytes().ct_eq(sent.as_bytes()));
    Ok(same && until > app.clock().micros() / 1_000_000 && !published.hash.is_empty())
}
