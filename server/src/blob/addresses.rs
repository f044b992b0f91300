//! Addresses that open one file for a while: signed by this server, or by the store itself where callers may go there.

use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use serde::Deserialize;
use sha2::Sha256;

use super::{Blobs, routes::shown};
use crate::error::{ApiError, Result};

/// What the query of an address that this server signed says.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Signed {
    /// Unix time at which the address ends.
    #[serde(default)]
    expires: i64,
    #[serde(default)]
    signature: String,
    /// The name that a download gets.
    pub(super) filename: Option<String>,
}

impl Blobs {
    /// An address that reads the file for `ttl` seconds, a week at most where it leads to a bucket.
    pub fn signed_get_url(&self, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let direct = self.direct_for(key).and_then(|bucket| {
            let (kind, disposition) = shown(key, filename);
            let answer = [
                ("response-content-type", kind),
                ("response-content-disposition", disposition),
            ];
            bucket.sign(Method::GET, key, ttl, answer.into())
        });
        direct.unwrap_or_else(|| self.signed("GET", key, filename, ttl))
    }

    /// An address that reads the file for `ttl` seconds at least and twice as long at most. It stays the same for as long, so
    /// that browsers find again what they have kept. It leads to this server whatever the store, for pages of every origin
    /// show what it reads.
    pub fn steady_get_url(&self, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let window = i64::try_from(ttl).unwrap_or(i64::MAX / 4).max(1);
        let expires = (self.0.clock.now().timestamp().div_euclid(window) + 2) * window;
        self.address("GET", key, filename, expires)
    }

    /// An address that takes the file's bytes for `ttl` seconds.
    pub fn signed_put_url(&self, key: &str, ttl: u64) -> String {
        let direct = self
            .direct_for(key)
            .and_then(|bucket| bucket.sign(Method::PUT, key, ttl, Vec::new()));
        direct.unwrap_or_else(|| self.signed("PUT", key, None, ttl))
    }

    fn signed(&self, method: &str, key: &str, filename: Option<&str>, ttl: u64) -> String {
        let expires = self.0.clock.now().timestamp() + i64::try_from(ttl).unwrap_or(0);
        self.address(method, key, filename, expires)
    }

    fn address(&self, method: &str, key: &str, filename: Option<&str>, expires: i64) -> String {
        let signature = hex::encode(
            self.mac(method, key, filename, expires)
                .finalize()
                .into_bytes(),
        );
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("expires", &expires.to_string())
            .append_pair("signature", &signature);
        if let Some(filename) = filename {
            query.append_pair("filename", filename);
        }
        format!("{}/v1/blobs/{key}?{}", self.0.address, query.finish())
    }

    fn mac(&self, method: &str, key: &str, filename: Option<&str>, expires: i64) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0.secret)
            .expect("HMAC takes keys of any length");
        for piece in [
            "blob",
            method,
            key,
            filename.unwrap_or_default(),
            &expires.to_string(),
        ] {
            mac.update(&(piece.len() as u64).to_be_bytes());
            mac.update(piece.as_bytes());
        }
        mac
    }

    pub(super) fn check(&self, method: &str, key: &str, signed: &Signed) -> Result<()> {
        let refused = || {
            ApiError::forbidden(
                "",
                "the signature of this address is wrong or has expired: ask for a new one",
            )
        };
        let signature = hex::decode(&signed.signature).map_err(|_| refused())?;
        // Compares in constant time.
        self.mac(method, key, signed.filename.as_deref(), signed.expires)
            .verify_slice(&signature)
            .map_err(|_| refused())?;
        if signed.expires <= self.0.clock.now().timestamp() {
            return Err(refused());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{blob::tests::blobs, clock::Clock};

    fn signed(address: &str) -> (String, Signed) {
        let url = url::Url::parse(address).unwrap();
        let pairs: std::collections::HashMap<_, _> = url.query_pairs().into_owned().collect();
        let key = url.path().strip_prefix("/v1/blobs/").unwrap().to_owned();
        let signed = Signed {
            expires: pairs["expires"].parse().unwrap(),
            signature: pairs["signature"].clone(),
            filename: pairs.get("filename").cloned(),
        };
        (key, signed)
    }

    #[test]
    fn a_signature_opens_its_key_method_and_time_alone() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let (key, signed) = signed(&blobs.signed_get_url("ns_1/a/b.txt", Some("my file.txt"), 60));
        assert!(blobs.check("GET", &key, &signed).is_ok());
        assert!(blobs.check("PUT", &key, &signed).is_err());
        assert!(blobs.check("GET", "ns_2/a/b.txt", &signed).is_err());
        clock.advance(61);
        assert!(blobs.check("GET", &key, &signed).is_err());
    }

    #[test]
    fn a_steady_address_lasts_as_promised_and_stays_for_a_while() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::default());
        let blobs = blobs(&folder, &clock);
        let address = || blobs.steady_get_url("ns_1/a/b.png", None, 3600);
        // The beginning of a window.
        clock.advance(3600 - clock.now().timestamp().rem_euclid(3600));
        let first = address();
        clock.advance(3500);
        let late = address();
        assert_eq!(late, first);
        let (key, signed) = signed(&late);
        clock.advance(3600);
        assert!(blobs.check("GET", &key, &signed).is_ok());
        assert_ne!(address(), first);
        clock.advance(200);
        assert!(blobs.check("GET", &key, &signed).is_err());
    }
}
