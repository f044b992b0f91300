//! What templates read, found without running them: secrets, and what else there is beside inputs.

use serde_json::Value;

use super::pieces::{Piece, is_word, pieces, quoted};

/// What is told of a word of an expression that is no member of another: the word in small letters, and what follows it.
type Visit<'a> = dyn FnMut(&str, &str) + 'a;

/// The names of the secrets that the templates of a value read: `SECRET.name` and `SECRETS['name']`.
pub fn secrets_read(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, &mut |word, rest| {
        if matches!(word, "secret" | "secrets") {
            found.extend(named(rest));
        }
    });
    found.sort();
    found.dedup();
    found
}

/// Whether the templates of a value read what a search makes while it runs: its documents and its stages.
pub fn reads_the_run(value: &Value) -> bool {
    let mut reads = false;
    walk(value, &mut |word, _| {
        reads |= matches!(word, "doc" | "context" | "stage");
    });
    reads
}

fn walk(value: &Value, visit: &mut Visit<'_>) {
    match value {
        Value::String(text) => {
            for piece in pieces(text).unwrap_or_default() {
                if let Piece::Expression(source) = piece {
                    read(source, visit);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(object) => object.values().for_each(|member| walk(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn read(source: &str, visit: &mut Visit<'_>) {
    let bytes = source.as_bytes();
    let (mut i, mut before) = (0, b' ');
    while i < bytes.len() {
        let at = bytes[i];
        if at == b'"' || at == b'\'' {
            i += quoted(&bytes[i + 1..], at);
        } else if is_word(at) {
            let end = bytes[i..].iter().position(|c| !is_word(*c));
            let end = end.map_or(bytes.len(), |length| i + length);
            let word = source[i..end].to_ascii_lowercase();
            if before != b'.' {
                visit(&word, &source[end..]);
            }
            (i, before) = (end, b'w');
            continue;
        }
        if !at.is_ascii_whitespace() {
            before = at;
        }
        i += 1;
    }
}

/// The name behind the word: after a dot, or in brackets.
fn named(rest: &str) -> Option<String> {
    let rest = rest.trim_start();
    let name = match rest.strip_prefix('.') {
        Some(rest) => {
            let rest = rest.trim_start();
            let end = rest.bytes().position(|c| !is_word(c));
            &rest[..end.unwrap_or(rest.len())]
        }
        None => {
            let inside = rest.strip_prefix('[')?.trim_start();
            let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            inside[1..].split(quote).next()?
        }
    };
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{reads_the_run, secrets_read};

    #[test]
    fn secrets_are_found_where_they_are_read() {
        let value = json!({"a": "x {{ SECRET.one }}/{{ secrets [ 'two-three' ] | upper }}", "b": ["{{ INPUT.secret.four }}", 5],
            "c": "{{ 'secret.five' }} secret.six {{ Secrets.one ~ secretary.seven }}"});
        assert_eq!(secrets_read(&value), ["one", "two-three"]);
        assert!(secrets_read(&json!("{{ SECRET }}{{ SECRET[INPUT.name] }}{{ broken")).is_empty());
    }

    #[test]
    fn what_a_search_makes_is_told_from_what_it_was_asked() {
        for reads in [
            "{{ DOC.title }}",
            "a {{ upper(context['x']) }}",
            "{{ INPUT.a or Stage.name }}",
        ] {
            assert!(reads_the_run(&json!([reads])), "{reads}");
        }
        for reads_not in [
            "{{ INPUT.doc }}",
            "{{ INPUT['stage'] }}",
            "DOC.title",
            "{{ doctor }}",
        ] {
            assert!(!reads_the_run(&json!([reads_not])), "{reads_not}");
        }
    }
}
