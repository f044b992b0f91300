//! Apps whose `/api` is for programs and for people of the owner's own service: visitors bring a token that the service signed,
//! or a key that the owner gave them. Here is what is kept of both.

use std::collections::BTreeSet;

use loupe_wire::{AuthConfigInput, AuthConfigOutput, AuthConfigOutputMode, Object, Value};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    app::App,
    error::{ApiError, Result, Violation},
};

/// Keys of one app, and letters of a key and of its name.
const MOST: usize = 50;
const KEY: std::ops::RangeInclusive<usize> = 20..=200;
const NAME: usize = 100;

/// What a kept key has in place of itself.
const HASH: &str = "key_hash";

/// Whether visitors bring something that they were given elsewhere, and nobody signs in.
pub fn has_bearers(auth: Option<&AuthConfigOutput>) -> bool {
    use AuthConfigOutputMode::{ApiKey, Jwt};
    auth.is_some_and(|auth| matches!(auth.mode, Jwt | ApiKey))
}

/// The name of the key that was sent, if it is one of the app's.
pub fn key_name<'a>(auth: &'a AuthConfigOutput, sent: &str) -> Option<&'a str> {
    let hash = hash_of(sent);
    let mut keys = auth.api_keys.iter();
    let found = keys.find(|key| text(key, HASH) == Some(hash.as_str()))?;
    text(found, "name")
}

/// Keys are long and of chance: what is kept of them opens nothing.
fn hash_of(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

fn text<'a>(key: &'a Object, name: &str) -> Option<&'a str> {
    key.get(name).and_then(Value::as_str)
}

fn fault(path: &[&str], message: &str) -> ApiError {
    let path: Vec<&str> = std::iter::once("auth_config")
        .chain(path.iter().copied())
        .collect();
    Violation::body(&path, "value_error", message, Value::Null).into()
}

/// Tokens are proven by keys that lie somewhere.
///
/// # Errors
/// There is no address of keys.
pub(super) fn has_address(sent: &AuthConfigInput) -> Result<()> {
    let address = sent.jwt_jwks_url.as_deref();
    if address.is_some_and(|address| !address.is_empty()) {
        return Ok(());
    }
    let message =
        "tokens are proven by the keys of the service that signs them: give their address";
    let path = ["auth_config", "jwt_jwks_url"];
    Err(Violation::body(&path, "missing", message, Value::Null).into())
}

/// What is said of tokens, whichever mode it is said in, and that nothing is said of SAML.
///
/// # Errors
/// An address that is not asked, words that are too long, or a way that this server has not.
pub(super) async fn check(app: &App, sent: &AuthConfigInput) -> Result<()> {
    for (name, value) in [
        ("saml_idp_metadata_url", &sent.saml_idp_metadata_url),
        ("saml_sp_entity_id", &sent.saml_sp_entity_id),
        ("saml_acs_url", &sent.saml_acs_url),
    ] {
        // Forms send what is left empty.
        if value.as_ref().is_some_and(|value| !value.is_empty()) {
            let message = "this server speaks no SAML: OpenID Connect (sso_oidc) and tokens (jwt) are its ways to a service of your own";
            let path = ["auth_config", name];
            return Err(Violation::body(&path, "not_enabled", message, json!(value)).into());
        }
    }
    for (name, value) in [
        ("clerk_org_id", &sent.clerk_org_id),
        ("jwt_jwks_url", &sent.jwt_jwks_url),
        ("jwt_issuer", &sent.jwt_issuer),
        ("jwt_audience", &sent.jwt_audience),
    ] {
        if value.as_ref().is_some_and(|value| value.len() > 500) {
            return Err(fault(&[name], "at most 500 bytes"));
        }
    }
    let address = sent.jwt_jwks_url.as_deref();
    match address.filter(|address| !address.is_empty()) {
        Some(address) => is_believed(app, "jwt_jwks_url", address).await,
        None => Ok(()),
    }
}

/// That an address can be asked, and that what it tells is what its service said: people are let in by it.
///
/// # Errors
/// An address that is not asked, or where somebody in between could answer.
pub(super) async fn is_believed(app: &App, member: &str, address: &str) -> Result<()> {
    let path = ["auth_config", member];
    let wrong = |message: &str| Violation::body(&path, "value_error", message, address.into());
    let outbound = app.sign_in_outbound();
    let url = outbound.check(address);
    let url = url.map_err(|error| wrong(&error.to_string()))?;
    if outbound.is_safe(&url).await {
        return Ok(());
    }
    let message = "whoever is in between could answer in its place: an address begins with https, unless the settings of the server (outbound.allow, sign_in.oidc_addresses) name its network";
    Err(wrong(message).into())
}

/// What was said of SAML before it was refused means nothing.
pub(super) fn forget_saml(auth: &mut AuthConfigOutput) {
    auth.saml_idp_metadata_url = None;
    auth.saml_sp_entity_id = None;
    auth.saml_acs_url = None;
}

/// The keys as they are kept: name and hash. One that has no `key` is the one that had this name before.
///
/// # Errors
/// No key at all, too many of them, or one that is none.
pub(super) fn kept(sent: &[Object], old: Option<&AuthConfigOutput>) -> Result<Vec<Object>> {
    if sent.is_empty() || sent.len() > MOST {
        let message = format!("an app of this mode has 1 to {MOST} keys, each with a name");
        return Err(fault(&["api_keys"], &message));
    }
    let mut names = BTreeSet::new();
    let mut all = Vec::with_capacity(sent.len());
    for (number, key) in sent.iter().enumerate() {
        let number = number.to_string();
        let wrong = |member: &str, message: &str| fault(&["api_keys", &number, member], message);
        if let Some(other) = key
            .keys()
            .find(|one| !["name", "key"].contains(&one.as_str()))
        {
            return Err(wrong(other.as_str(), "a key has a name and a key"));
        }
        let name = text(key, "name").filter(|name| (1..=NAME).contains(&name.chars().count()));
        let Some(name) = name.filter(|name| !name.contains(char::is_control)) else {
            return Err(wrong("name", "a name has 1 to 100 letters"));
        };
        if !names.insert(name) {
            return Err(wrong("name", "two keys have this name"));
        }
        let hash = match key.get("key") {
            None | Some(Value::Null) => hash_before(old, name),
            Some(Value::String(key)) if is_key(key) => Some(hash_of(key)),
            Some(_) => None,
        };
        let Some(hash) = hash else {
            let message = "a key has 20 to 200 letters, digits and marks, without a blank; only one that is known may be left out";
            return Err(wrong("key", message));
        };
        let mut one = Object::new();
        one.insert("name".into(), json!(name));
        one.insert(HASH.into(), json!(hash));
        all.push(one);
    }
    Ok(all)
}

/// Whether a header can carry it, and nobody guesses it.
fn is_key(key: &str) -> bool {
    KEY.contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The hash of the key that has had this name.
fn hash_before(old: Option<&AuthConfigOutput>, name: &str) -> Option<String> {
    let mut keys = old?.api_keys.iter();
    let known = keys.find(|key| text(key, "name") == Some(name))?;
    text(known, HASH).map(ToOwned::to_owned)
}

/// Whether a key is as [`kept`] makes it. Before any app was called with keys they were kept as they were sent.
pub(super) fn is_hashed(key: &Object) -> bool {
    let own = |member: &String| member == "name" || member == HASH;
    key.contains_key(HASH) && key.keys().all(own)
}

/// The keys as they are told: by name. What opens something was told once, by the owner.
pub(super) fn shown(kept: &[Object]) -> Vec<Object> {
    let names = kept.iter().filter_map(|key| key.get("name"));
    let told = |name: &Value| Object::from_iter([("name".to_owned(), name.clone())]);
    names.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_kept_of_a_key_is_its_hash() {
        let sent = key(json!({"name": "shop", "key": "a-key-of-twenty-letters"}));
        let made = kept(std::slice::from_ref(&sent), None).unwrap();
        assert!(made.iter().all(is_hashed) && !is_hashed(&sent));
        assert!(!is_hashed(&key(
            json!({"name": "shop", "value": "in clear"})
        )));
        let both = json!({"name": "shop", "key": "in clear", "key_hash": "0"});
        assert!(!is_hashed(&key(both)));
    }
}
