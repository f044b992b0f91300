//! The keys that other services sign tokens with, read through the guarded client and kept for a while. One reads those of an
//! address at a time; whoever asks meanwhile waits for that, or goes on with those that are known.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, header};
use jsonwebtoken::{
    Algorithm,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyOperations, PublicKeyUse},
};
use loupe_wire::reading;
use moka::future::Cache;
use serde_json::Value;
use tokio::sync::oneshot;

use super::oidc::{SIGNATURES, read, refused, unusable};
use crate::{app::App, error::Result};

const SECOND: i64 = 1_000_000;

/// Keys are read anew, beside the calls, after the first, and believed until the second: one that its service took back opens
/// nothing for longer.
const STALE: i64 = 300 * SECOND;
const OVER: i64 = 600 * SECOND;

/// How often one that is not known is looked for.
const AGAIN: i64 = 60 * SECOND;

/// How long a service that did not answer is left alone; until then its answer is what it was.
const PAUSE: i64 = 5 * SECOND;

/// How long keys are waited for: callers stand behind it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of keys that are kept.
const KEPT: u64 = 16 << 20;

/// Keys of one service that are looked at.
const MOST: usize = 50;

/// What is known of the keys of a service.
#[derive(Debug)]
pub(super) struct Keys {
    set: Arc<JwkSet>,
    /// When they were read; 0 where they never could be.
    read_at: i64,
    /// When that was last tried, and why it brought nothing.
    tried_at: i64,
    failed: Option<String>,
    /// Somebody has begun to read them anew.
    renewing: AtomicBool,
    weight: u32,
}

impl Keys {
    /// The key of this name; of a token that names none, the only one.
    fn find(&self, kid: Option<&str>, now: i64) -> Option<Jwk> {
        if now - self.read_at >= OVER {
            return None;
        }
        match (kid, self.set.keys.as_slice()) {
            (Some(kid), _) => self.set.find(kid).cloned(),
            (None, [one]) => Some(one.clone()),
            (None, _) => None,
        }
    }

    /// Whether it is time to read them anew; told to one of those who ask.
    fn is_due(&self, now: i64) -> bool {
        now - self.read_at >= STALE
            && now - self.tried_at >= PAUSE
            && !self.renewing.swap(true, Ordering::Relaxed)
    }
}

/// Where keys are kept. Whoever has an app says where some lie: their bytes count.
pub(super) fn kept() -> Cache<String, Arc<Keys>> {
    Cache::builder()
        .max_capacity(KEPT)
        .weigher(|_: &String, keys: &Arc<Keys>| keys.weight)
        .time_to_live(Duration::from_secs(600))
        .build()
}

/// The key of a signature, among those that lie at an address and are kept under a name.
///
/// # Errors
/// There is no such key, or the keys cannot be read now.
pub(super) async fn key(app: &App, place: (&str, &str), kid: Option<&str>) -> Result<Jwk> {
    const UNKNOWN: &str = "the token is signed with an unknown key";
    let now = app.clock().micros();
    if let Some(keys) = app.hosting.auth.providers.keys.get(place.0).await {
        if let Some(key) = keys.find(kid, now) {
            if keys.is_due(now) {
                drop(begin(app, place));
            }
            return Ok(key);
        }
        if now - keys.read_at < AGAIN {
            return Err(refused(UNKNOWN));
        }
    }
    let keys = begin(app, place).await.map_err(unusable)?;
    match (keys.find(kid, app.clock().micros()), &keys.failed) {
        (Some(key), _) => Ok(key),
        (None, Some(why)) => Err(unusable(why)),
        (None, None) => Err(refused(UNKNOWN)),
    }
}

/// Reads the keys, unless somebody does so now or just did. Whoever asked may go: others wait for the same.
fn begin(app: &App, (name, address): (&str, &str)) -> oneshot::Receiver<Arc<Keys>> {
    let (tell, told) = oneshot::channel();
    let (state, name, address) = (app.clone(), name.to_owned(), address.to_owned());
    app.spawn(async move {
        let now = state.clock().micros();
        let kept = state.hosting.auth.providers.keys.entry(name.clone());
        let reading = renewed(&state, &name, &address);
        let keys = kept.or_insert_with_if(reading, |keys| now - keys.tried_at >= PAUSE);
        // Nobody may wait for it any more.
        let _ = tell.send(keys.await.into_value());
    });
    told
}

/// The keys as they are now; where they cannot be read, those of before, and why.
async fn renewed(app: &App, name: &str, address: &str) -> Arc<Keys> {
    let read_at = app.clock().micros();
    // Whoever has an app could lead to an address again and again, by keys that push those of others out of memory.
    let throttle = app.hosting.auth.throttle.keys(app, name);
    let told = match throttle {
        Ok(()) => told(app, address).await,
        Err(_) => Err(format!("{address} was asked too often")),
    };
    let tried_at = app.clock().micros();
    let before = app.hosting.auth.providers.keys.get(name).await;
    let (set, read_at, weight, failed) = match (told, before) {
        (Ok(told), _) => {
            let weight = u32::try_from(told.to_string().len() + 1_000).unwrap_or(u32::MAX);
            (Arc::new(key_set(&told)), read_at, weight, None)
        }
        (Err(why), Some(keys)) => (keys.set.clone(), keys.read_at, keys.weight, Some(why)),
        (Err(why), None) => {
            let none = JwkSet { keys: Vec::new() };
            (Arc::new(none), 0, 1_000, Some(why))
        }
    };
    Arc::new(Keys {
        set,
        read_at,
        tried_at,
        failed,
        renewing: AtomicBool::new(false),
        weight,
    })
}

/// What lies at an address of keys.
async fn told(app: &App, address: &str) -> std::result::Result<Value, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let read = tokio::time::timeout(PATIENCE, read(app, address, headers)).await;
    read.map_err(|_| format!("{address} did not answer in time"))?
}

/// How many keys lie at an address now, or why there is none.
pub(super) async fn ask_keys(app: &App, address: &str) -> std::result::Result<usize, String> {
    match key_set(&told(app, address).await?).keys.len() {
        0 => Err(format!("{address} tells no key that could be used")),
        count => Ok(count),
    }
}

/// The keys that can prove a token here. Others are none of ours: they would stand in the way of a token that names no key.
fn key_set(told: &Value) -> JwkSet {
    let keys = told.get("keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten();
    let keys = keys.filter_map(|key| reading::from_value::<Jwk>(key).ok());
    JwkSet {
        keys: keys.filter(verifies).take(MOST).collect(),
    }
}

/// Whether signatures that are believed are made with a key, as far as it says so.
fn verifies(key: &Jwk) -> bool {
    let common = &key.common;
    let is_of_a_kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => true,
        AlgorithmParameters::EllipticCurve(key) => key.curve == EllipticCurve::P256,
        AlgorithmParameters::OctetKeyPair(key) => key.curve == EllipticCurve::Ed25519,
        AlgorithmParameters::OctetKey(_) => false,
    };
    let purpose = common.public_key_use.as_ref();
    let operations = common.key_operations.as_ref();
    let believed = common.key_algorithm.is_none_or(|named| {
        let named = named.to_string().parse::<Algorithm>();
        named.is_ok_and(|named| SIGNATURES.contains(&named))
    });
    is_of_a_kind
        && believed
        && purpose.is_none_or(|purpose| *purpose == PublicKeyUse::Signature)
        && operations.is_none_or(|all| all.contains(&KeyOperations::Verify))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(set: &JwkSet) -> Vec<&str> {
        let names = set.keys.iter().map(|key| key.common.key_id.as_deref());
        names.map(Option::unwrap_or_default).collect()
    }

    fn keys(set: JwkSet, read_at: i64, tried_at: i64) -> Keys {
        Keys {
            set: Arc::new(set),
            read_at,
            tried_at,
            failed: None,
            renewing: AtomicBool::new(false),
            weight: 1,
        }
    }

    #[test]
    fn only_keys_that_prove_tokens_count() {
        let told = json!({"keys": [
            {"kid": "rsa", "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig", "alg": "RS256"},
            {"kid": "sealing", "kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "enc"},
            {"kid": "oaep", "kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "RSA-OAEP"},
            {"kid": "wrapping", "kty": "RSA", "n": "AQAB", "e": "AQAB", "key_ops": ["wrapKey"]},
            {"kid": "verifying", "kty": "RSA", "n": "AQAB", "e": "AQAB", "key_ops": ["verify"]},
            {"kid": "p256", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
            {"kid": "p384", "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"},
            {"kid": "p384 by name", "kty": "EC", "crv": "P-256", "alg": "ES384", "x": "AA", "y": "AA"},
            {"kid": "ed", "kty": "OKP", "crv": "Ed25519", "x": "AA"},
            {"kid": "shared", "kty": "oct", "k": "AA"},
            {"kid": "new", "kty": "from another day"},
            "no key",
        ]});
        assert_eq!(names(&key_set(&told)), ["rsa", "verifying", "p256", "ed"]);
        assert!(key_set(&json!({})).keys.is_empty());
    }

    #[test]
    fn a_token_that_names_no_key_finds_the_only_one_that_signs() {
        let signing = json!({"kty": "EC", "crv": "P-256", "use": "sig", "x": "AA", "y": "AA"});
        let sealing = json!({"kid": "b", "kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"});
        let one = key_set(&json!({"keys": [sealing, signing]}));
        assert!(keys(one, SECOND, SECOND).find(None, SECOND).is_some());
        let two = key_set(&json!({"keys": [signing, signing]}));
        assert!(keys(two, SECOND, SECOND).find(None, SECOND).is_none());
    }

    #[test]
    fn keys_are_renewed_by_one_and_are_over_after_a_while() {
        let signing = json!({"kid": "a", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"});
        let set = key_set(&json!({"keys": [signing]}));
        let keys = keys(set, SECOND, SECOND);
        assert!(!keys.is_due(STALE));
        assert!(keys.is_due(SECOND + STALE) && !keys.is_due(SECOND + STALE));
        assert!(keys.find(Some("a"), OVER).is_some());
        assert!(keys.find(Some("b"), OVER).is_none());
        assert!(keys.find(Some("a"), SECOND + OVER).is_none());
        // A service that just failed is left alone.
        let failed = super::tests::keys(JwkSet { keys: Vec::new() }, SECOND, STALE);
        assert!(!failed.is_due(SECOND + STALE) && failed.is_due(STALE + PAUSE));
    }
}
