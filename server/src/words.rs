//! Numbers and nouns in sentences.

use std::fmt::Display;

/// A number and its noun: `1 object`, `2 objects`.
pub fn counted(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// A number, its noun, and what is said of it: `1 object was`, `2 objects were`.
pub fn said(number: impl Display, noun: &str, verbs: (&str, &str)) -> String {
    let number = number.to_string();
    let verb = if number == "1" { verbs.0 } else { verbs.1 };
    format!("{} {verb}", counted(number, noun))
}

/// A resource with its article: `a bucket`, `an alert`.
pub fn one(noun: &str) -> String {
    // Of resources those with a `u` sound as `user`.
    let article = match noun.starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    };
    format!("{article} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_their_article() {
        assert_eq!(
            [one("alert"), one("user"), one("bucket")],
            ["an alert", "a user", "a bucket"]
        );
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(0, "object"), "0 objects");
        assert_eq!(counted(1_i64, "object"), "1 object");
        assert_eq!(counted(1.5, "minute"), "1.5 minutes");
        let said = |number: usize| said(number, "document", ("was", "were"));
        assert_eq!([said(1), said(12)], ["1 document was", "12 documents were"]);
    }
}
