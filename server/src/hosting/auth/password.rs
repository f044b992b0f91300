//! Which passwords people may choose.

use std::{collections::HashSet, sync::LazyLock};

/// Characters of a password.
const SHORTEST: usize = 8;
const LONGEST: usize = 128;

/// Those of the twenty thousand that people choose most which are long enough, in lower case.
static COMMON: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("common-passwords.txt").lines().collect());

/// Why a password cannot be taken.
pub(super) fn fault(password: &str, email: &str) -> Option<String> {
    let length = password.chars().count();
    let lower = password.to_lowercase();
    if length < SHORTEST {
        return Some(format!("A password has at least {SHORTEST} characters."));
    }
    if length > LONGEST {
        return Some(format!("A password has at most {LONGEST} characters."));
    }
    if COMMON.contains(lower.as_str()) || lower == email {
        return Some(
            "This password is one of those that are guessed first. Choose another.".into(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_guessed_first_is_refused() {
        assert!(COMMON.len() > 5_000);
        for bad in [
            "short",
            "password",
            "Password1",
            "12345678",
            "ada@example.com",
        ] {
            assert!(fault(bad, "ada@example.com").is_some(), "{bad}");
        }
        assert!(fault(&"a".repeat(129), "").is_some());
        assert_eq!(fault("correct horse battery", ""), None);
    }
}
