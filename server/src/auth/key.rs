//! Secrets of API keys: `{prefix}_` + 30 base62 (178 bits) + 6 base62 CRC32. A typo is refused without a database read.

use std::collections::BTreeSet;

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

/// Hashes of the secrets that a file has in it, such as a script that was built with one.
pub fn find_in(bytes: &[u8]) -> BTreeSet<String> {
    const MARK: &[u8] = b"_sk_";
    let places = bytes.windows(MARK.len()).enumerate();
    let places = places.filter(|(_, window)| *window == MARK);
    let secret = |(at, _): (usize, &[u8])| {
        let end = at + MARK.len() + RANDOM + CHECKSUM;
        [Kind::Standard, Kind::UserScoped, Kind::Retriever]
            .into_iter()
            .find_map(|kind| {
                let start = (at + MARK.len()).checked_sub(kind.prefix().len())?;
                let text = std::str::from_utf8(bytes.get(start..end)?).ok()?;
                is_well_formed(text).then(|| hash(text))
            })
    };
    places.filter_map(secret).collect()
}

/// What is stored instead of the secret.
pub fn hash(secret: &str) -> String {
    let mut digits = [0; 64];
    // Two digits a byte, of which there are 32. Every request does this, and `hex::encode` appends letter by letter.
    let _ = hex::encode_to_slice(Sha256::digest(secret.as_bytes()), &mut digits);
    String::from_utf8_lossy(&digits).into_owned()
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
    fn secrets_are_found_in_files_by_their_checksum() {
        let (one, two) = (generate(Kind::Retriever), generate(Kind::Standard));
        let file = format!(
            "const a=\"{one}\";b='{two}x';c=ret_sk_{};_sk_",
            "a".repeat(36)
        );
        let found = find_in(file.as_bytes());
        assert_eq!(found, [hash(&one), hash(&two)].into_iter().collect());
        assert!(find_in(b"_sk_").is_empty());
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "loupe_sk_", "Bearer", "loupe_sk_ü", &"a".repeat(45)] {
            assert!(!is_well_formed(text), "{text}");
        }
    }
}
