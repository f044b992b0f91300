//! Apps that nobody signs in to, and whose `/api` is not for everybody: whoever calls brings a token of the owner's own service,
//! or a key that the owner gave.

use axum::http::{HeaderMap, HeaderName, header};
use loupe_wire::{AuthConfigOutput, AuthConfigOutputMode};

use super::oidc;
use crate::{
    app::App,
    error::{ApiError, Result},
    v1::apps,
};

/// Letters of what a token says whom it is about.
const SUBJECT: usize = 255;

/// Who calls: whom the token is about, or the name of the key.
///
/// # Errors
/// 401 when nothing was sent, or what opens nothing; 503 when the service of the owner does not answer.
pub async fn bearer(app: &App, auth: &AuthConfigOutput, headers: &HeaderMap) -> Result<String> {
    let wants_key = auth.mode == AuthConfigOutputMode::ApiKey;
    let Some(sent) = sent(headers, wants_key) else {
        let message =
            "this app is called with a token or a key: send it as Authorization: Bearer …";
        return Err(ApiError::unauthenticated("token_required", message));
    };
    let who = match wants_key {
        true => apps::key_name(auth, sent).map(ToOwned::to_owned),
        false => subject(app, auth, sent).await?,
    };
    let message = "this token or key opens nothing here, or opens nothing any more";
    who.ok_or_else(|| ApiError::unauthenticated("token_invalid", message))
}

/// What was sent to prove who calls. Keys may come in a header of their own.
fn sent(headers: &HeaderMap, is_key: bool) -> Option<&str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let own = || {
        let name = HeaderName::from_static("x-api-key");
        text(name).filter(|_| is_key)
    };
    let sent = bearer.map(|(_, token)| token).or_else(own);
    sent.map(str::trim).filter(|sent| !sent.is_empty())
}

/// Whom a good token is about; nobody where it is none.
async fn subject(app: &App, auth: &AuthConfigOutput, token: &str) -> Result<Option<String>> {
    let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let Some(address) = said(&auth.jwt_jwks_url) else {
        return Ok(None);
    };
    let signed = oidc::Signed {
        keys: &address,
        issuer: said(&auth.jwt_issuer),
        audience: said(&auth.jwt_audience),
    };
    let subject = signed.subject(app, token).await?;
    Ok(subject.filter(|subject| {
        (1..=SUBJECT).contains(&subject.len()) && !subject.contains(char::is_control)
    }))
}
