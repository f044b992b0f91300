//! Secrets that the server has to read again, such as keys of other services, encrypted with a key made from the master
//! key. What is sealed for one owner and name opens for no other.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;

use crate::error::{ApiError, Result};

/// Seals and opens, and signs what visitors carry.
pub struct Vault {
    key: LessSafeKey,
    signing: [u8; 32],
}

impl Vault {
    /// A vault whose key is made from the master key, so that no other use of the master key tells anything of it.
    ///
    /// # Errors
    /// Never for a master key of 32 bytes.
    pub fn new(master: &[u8; 32]) -> anyhow::Result<Self> {
        let derived = |purpose: &[u8]| -> anyhow::Result<[u8; 32]> {
            let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(master)?;
            mac.update(purpose);
            Ok(mac.finalize().into_bytes().into())
        };
        let key = UnboundKey::new(&AES_256_GCM, &derived(b"loupe vault 1")?)
            .ok()
            .context("the vault's key has a wrong length")?;
        Ok(Self {
            key: LessSafeKey::new(key),
            signing: derived(b"loupe signatures 1")?,
        })
    }

    /// The signature of these words, in hex: whoever holds it was given it by this server.
    ///
    /// # Errors
    /// Never: a key may have any length.
    pub fn signature(&self, words: &[&str]) -> Result<String> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.signing);
        let mut mac = mac.map_err(ApiError::internal)?;
        mac.update(&aad(words));
        Ok(hex::encode(mac.finalize().into_bytes()))
    }

    /// The text encrypted for its place.
    ///
    /// # Errors
    /// The text is longer than the cipher takes, which is many gigabytes.
    pub fn seal(&self, place: &[&str], text: &str) -> Result<String> {
        let number: [u8; NONCE_LEN] = rand::random();
        let mut sealed = text.as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(number),
                Aad::from(aad(place)),
                &mut sealed,
            )
            .map_err(|_| ApiError::internal("a secret could not be encrypted"))?;
        let whole: Vec<u8> = number.into_iter().chain(sealed).collect();
        Ok(STANDARD.encode(whole))
    }

    /// The text that was sealed for this place.
    ///
    /// # Errors
    /// It was sealed for another place or with another master key, or was changed.
    pub fn open(&self, place: &[&str], sealed: &str) -> Result<String> {
        self.unseal(place, sealed).ok_or_else(|| {
            ApiError::internal(
                "a secret cannot be decrypted: is this the master key that encrypted it?",
            )
        })
    }

    /// Whether a text that anybody may have sent was sealed here for this place.
    pub fn opens(&self, place: &[&str], sealed: &str) -> bool {
        self.unseal(place, sealed).is_some()
    }

    fn unseal(&self, place: &[&str], sealed: &str) -> Option<String> {
        let whole = STANDARD.decode(sealed).ok()?;
        let (number, rest) = whole.split_at_checked(NONCE_LEN)?;
        let number = Nonce::try_assume_unique_for_key(number).ok()?;
        let mut rest = rest.to_vec();
        let text = self
            .key
            .open_in_place(number, Aad::from(aad(place)), &mut rest)
            .ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

/// The place as bytes that no other place has.
fn aad(place: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in place {
        bytes.extend((piece.len() as u64).to_be_bytes());
        bytes.extend(piece.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::Vault;

    #[test]
    fn a_signature_is_of_its_words() {
        let vault = Vault::new(&[7; 32]).unwrap();
        let signature = vault.signature(&["page", "1"]).unwrap();
        assert_eq!(signature.len(), 64);
        assert_eq!(vault.signature(&["page", "1"]).unwrap(), signature);
        assert_ne!(vault.signature(&["page1", ""]).unwrap(), signature);
        let other = Vault::new(&[8; 32]).unwrap();
        assert_ne!(other.signature(&["page", "1"]).unwrap(), signature);
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_alone() {
        let vault = Vault::new(&[7; 32]).unwrap();
        let sealed = vault.seal(&["org_a", "token"], "sésame").unwrap();
        assert!(!sealed.contains("same"));
        assert_eq!(vault.open(&["org_a", "token"], &sealed).unwrap(), "sésame");
        let again = vault.seal(&["org_a", "token"], "sésame").unwrap();
        assert_ne!(sealed, again, "the same secret twice is not told");
        for place in [["org_b", "token"], ["org_a", "other"], ["org_at", "oken"]] {
            assert!(vault.open(&place, &sealed).is_err(), "{place:?}");
        }
        let other = Vault::new(&[8; 32]).unwrap();
        assert!(other.open(&["org_a", "token"], &sealed).is_err());
        for broken in [
            "",
            "AAAA",
            "no base64!",
            &sealed[4..],
            &sealed.replace('=', ""),
        ] {
            assert!(
                broken == sealed || vault.open(&["org_a", "token"], broken).is_err(),
                "{broken}"
            );
        }
    }
}
