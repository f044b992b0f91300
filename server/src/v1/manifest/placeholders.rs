//! `${{ parameters.NAME }}` and `${{ secrets.NAME }}`: what a manifest leaves open until it is applied.

use std::sync::LazyLock;

use loupe_wire::{Object, Value};
use regex::Regex;

/// What is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Parameters,
    Secrets,
}

static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{\{\s*(parameters|secrets)\.([A-Za-z0-9_.-]+)\s*\}\}")
        .expect("a literal that every test of manifests reads")
});

impl Of {
    fn word(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Secrets => "secrets",
        }
    }
}

/// The placeholder of a secret.
pub fn secret(name: &str) -> String {
    format!("${{{{ secrets.{name} }}}}")
}

/// Whether a text leaves a secret open.
pub fn has_secret(text: &str) -> bool {
    names_in(text, Of::Secrets).next().is_some()
}

fn names_in(text: &str, of: Of) -> impl Iterator<Item = &str> {
    let found = PLACE.captures_iter(text);
    found.filter_map(move |found| {
        let name = found.get(2).map(|name| name.as_str());
        name.filter(|_| found.get(1).is_some_and(|word| word.as_str() == of.word()))
    })
}

/// The names that a value leaves open.
pub fn names(value: &Value, of: Of, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.extend(names_in(text, of).map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| names(item, of, out)),
        Value::Object(members) => members.values().for_each(|member| names(member, of, out)),
        _ => {}
    }
}

/// Puts values in the places left open; one that has none stays. A text that is nothing but its place becomes the value itself.
pub fn fill(value: &mut Value, of: Of, values: &Object) {
    match value {
        Value::String(text) => {
            if let Some(filled) = filled(text, of, values) {
                *value = filled;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, of, values)),
        Value::Object(members) => {
            let members = members.values_mut();
            members.for_each(|member| fill(member, of, values));
        }
        _ => {}
    }
}

fn filled(text: &str, of: Of, values: &Object) -> Option<Value> {
    let first = PLACE.find(text)?;
    if first.as_str() == text {
        let name = names_in(text, of).next()?;
        return values.get(name).cloned();
    }
    let written = PLACE.replace_all(text, |found: &regex::Captures<'_>| {
        let value = values.get(&found[2]).filter(|_| &found[1] == of.word());
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => found[0].to_owned(),
        }
    });
    Some(written.into_owned().into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_take_values_or_texts() {
        let mut value = json!({"a": "${{ parameters.n }}", "b": ["x-${{parameters.n}}-${{ secrets.n }}"], "c": "{{INPUT.n}}", "d": "${{ parameters.other }}"});
        let values = json!({"n": 3}).as_object().cloned().unwrap();
        fill(&mut value, Of::Parameters, &values);
        let filled = json!({"a": 3, "b": ["x-3-${{ secrets.n }}"], "c": "{{INPUT.n}}", "d": "${{ parameters.other }}"});
        assert_eq!(value, filled);
        let (mut open, mut secrets) = (Vec::new(), Vec::new());
        names(&value, Of::Parameters, &mut open);
        names(&value, Of::Secrets, &mut secrets);
        assert_eq!(
            (open, secrets),
            (vec!["other".to_owned()], vec!["n".to_owned()])
        );
        assert!(has_secret(&secret("key")) && !has_secret("{{secrets.key}}"));
    }
}
