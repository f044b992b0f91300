//! Secrets of API keys: `{prefix}_` + 30 base62 (178 bits) + 6 base62 CRC32. A typo is refused without a database read.

use sha2::{Digest, Sha256};

use crate::id;

/// The kinds of key, told apart by their prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Standard,
    UserScoped,
    Retriever,
}

impl Kind {
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Standard => "loupe_sk_",
            Self::UserScoped => "usr_sk_",
            Self::Retriever => "ret_sk_",
        }
    }
}

const RANDOM: usize = 30;
const CHECKSUM: usize = 6;

/// A new secret, shown once.
pub fn generate(kind: Kind) -> String {
    let body = format!("{}{}", kind.prefix(), id::random_base62(RANDOM));
    let checksum = id::base62_checksum(crc32fast::hash(body.as_bytes()));
    body + &checksum
}

/// Whether this can be a secret of ours at all.
pub fn is_well_formed(secret: &str) -> bool {
    let known = [Kind::Standard, Kind::UserScoped, Kind::Retriever]
        .into_iter()
        .any(|kind| {
            secret
                .strip_prefix(kind.prefix())
                .is_some_and(|rest| rest.len() == RANDOM + CHECKSUM)
        });
    if !known || !secret.is_ascii() {
        return false;
    }
    let (body, checksum) = secret.split_at(secret.len() - CHECKSUM);
    id::base62_checksum(crc32fast::hash(body.as_bytes())) == checksum
}

/// What is stored instead of the secret.
pub fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_changed_character_is_refused() {
        for kind in [Kind::Standard, Kind::UserScoped, Kind::Retriever] {
            let secret = generate(kind);
            assert!(is_well_formed(&secret), "{secret}");
            for place in 0..secret.len() {
                for other in ["0", "z", "_"] {
                    let mut typo = secret.clone();
                    typo.replace_range(place..=place, other);
                    assert!(
                        typo == secret || !is_well_formed(&typo),
                        "{typo} from {secret}"
                    );
                }
            }
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "loupe_sk_", "Bearer", "loupe_sk_ü", &"a".repeat(45)] {
            assert!(!is_well_formed(text), "{text}");
        }
    }
}
