//! Signatures of deliveries: `X-Loupe-Signature`, and beside it the three headers of Standard Webhooks
//! (<https://www.standardwebhooks.com>, version 1), so that a receiver may check with a library.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

/// What secrets that the server makes begin with.
const PREFIX: &str = "whsec_";

/// A new secret: 24 random bytes in the form that libraries read.
pub fn generate() -> String {
    let bytes: [u8; 24] = rand::random();
    format!("{PREFIX}{}", STANDARD.encode(bytes))
}

/// Whether receivers can read a secret of a caller's: what looks as one for libraries has to be one.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check(secret: &str) -> Result<(), &'static str> {
    let Some(encoded) = secret.strip_prefix(PREFIX) else {
        return Ok(());
    };
    match STANDARD.decode(encoded) {
        Ok(key) if !key.is_empty() => Ok(()),
        _ => Err("what follows whsec_ is base64, with its padding"),
    }
}

/// The signing headers of one attempt, with a signature for each secret that is valid now.
///
/// `X-Loupe-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]`, HMAC-SHA256 over `<t>.<body>` with the secret's text as key;
/// `webhook-signature: v1,<base64>[ v1,<base64>]`, HMAC-SHA256 over `<id>.<t>.<body>` with the secret's bytes as key.
pub fn headers(secrets: &[String], id: &str, seconds: i64, body: &[u8]) -> HeaderMap {
    let at = seconds.to_string();
    let own: String = secrets
        .iter()
        .map(|secret| {
            let mac = mac(secret.as_bytes(), &[at.as_bytes(), b".", body]);
            format!(",v1={}", hex::encode(mac))
        })
        .collect();
    let standard: Vec<String> = secrets
        .iter()
        .map(|secret| {
            let said = [id.as_bytes(), b".", at.as_bytes(), b".", body];
            format!("v1,{}", STANDARD.encode(mac(&key(secret), &said)))
        })
        .collect();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", standard.join(" ")),
        ("x-loupe-signature", format!("t={seconds}{own}")),
    ] {
        if secrets.is_empty() && name.ends_with("signature") {
            continue;
        }
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// The bytes that a secret stands for, as the libraries read it; the text itself when it is no base64.
fn key(secret: &str) -> Vec<u8> {
    let encoded = secret.strip_prefix(PREFIX).unwrap_or(secret);
    STANDARD
        .decode(encoded)
        .unwrap_or_else(|_| secret.as_bytes().to_vec())
}

fn mac(key: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    // A key of any length is a key.
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    for piece in pieces {
        mac.update(piece);
    }
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification's own libraries.
    #[test]
    fn the_standard_signature_is_that_of_the_libraries() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned();
        let body = br#"{"test": 2432232314}"#;
        let headers = headers(
            &[secret],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            body,
        );
        assert_eq!(
            headers["webhook-signature"],
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
    }

    #[test]
    fn a_secret_that_libraries_cannot_read_is_told() {
        for good in [
            &*generate(),
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "any text",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "whsec_",
            "whsec_any text",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_valid_secret_signs() {
        let secrets = [generate(), "any text".to_owned()];
        let headers = headers(&secrets, "msg_1", 7, b"body");
        let own = headers["x-loupe-signature"].to_str().unwrap();
        assert_eq!((own.matches("v1=").count(), &own[..4]), (2, "t=7,"));
        let standard = headers["webhook-signature"].to_str().unwrap();
        assert_eq!(standard.split(' ').count(), 2);
        assert!(
            super::headers(&[], "msg_1", 7, b"body")
                .get("x-loupe-signature")
                .is_none()
        );
    }
}
