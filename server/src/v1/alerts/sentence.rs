//! What an alert says when it fires.

use loupe_wire::{AlertExecutionResult, Object};

use super::{Alert, conditions};

/// Letters of an input that a sentence has; what is longer is no words of people.
const LONGEST_SAID: usize = 100;

/// What happened, in one line or a few.
pub(super) fn sentence(
    alert: &Alert,
    result: &AlertExecutionResult,
    asked: &str,
    findings: &[conditions::Finding],
) -> String {
    let name = &alert.alert.name;
    if !findings.is_empty() {
        let said: Vec<&str> = findings
            .iter()
            .map(|finding| finding.text.as_str())
            .collect();
        return format!("{name}: {}", said.join("; "));
    }
    match result.match_count {
        0 => format!("{name}: {asked} finds nothing"),
        1 => format!("{name}: {asked} finds one document"),
        count => format!("{name}: {asked} finds {count} documents"),
    }
}

/// A retriever and the words that it was asked with, as a sentence begins.
pub(super) fn asked(retriever: &str, inputs: &Object) -> String {
    let words: Vec<String> = inputs
        .values()
        .filter_map(|value| value.as_str())
        .filter(|words| !words.trim().is_empty() && words.chars().count() <= LONGEST_SAID)
        .map(|words| format!("“{}”", words.trim()))
        .collect();
    match words.is_empty() {
        true => retriever.to_owned(),
        false => format!("{retriever}, asked for {},", words.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_retriever_is_named_with_the_words_that_it_was_asked_with() {
        let of = |inputs: Value| asked("books", inputs.as_object().unwrap());
        let long = "x".repeat(LONGEST_SAID + 1);
        assert_eq!(of(json!({"limit": 3, "empty": " ", "file": long})), "books");
        assert_eq!(
            of(json!({"query": " a big cat "})),
            "books, asked for “a big cat”,"
        );
        assert_eq!(
            of(json!({"a": "x", "b": "y"})),
            "books, asked for “x” and “y”,"
        );
    }
}
