//! What a template leaves open: `{{TEMPLATE.name}}` in the place of an id that is named when the template is used.

use std::collections::HashMap;

use indexmap::IndexMap;
use loupe_wire::{Object, Value};

/// Beginnings of ids that are of one namespace, and mean nothing in another.
const PREFIXES: [&str; 8] = ["alt", "bkt", "clust", "col", "doc", "obj", "ret", "tax"];
/// Characters of such an id behind its beginning.
const LENGTH: usize = 20;

/// The text that stands for what is named later.
pub fn slot(name: &str) -> String {
    format!("{{{{TEMPLATE.{name}}}}}")
}

fn name_in(text: &str) -> Option<&str> {
    text.strip_prefix("{{TEMPLATE.")?.strip_suffix("}}")
}

/// Every text of a value, however deep.
fn texts(value: &mut Value, each: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => {
            for item in items {
                texts(item, each);
            }
        }
        Value::Object(members) => texts_of(members, each),
        _ => {}
    }
}

fn texts_of(members: &mut Object, each: &mut impl FnMut(&mut String)) {
    for (_, member) in members.iter_mut() {
        texts(member, each);
    }
}

/// What a template was not given, and what it was given in vain, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filled {
    pub missing: Vec<String>,
    pub unused: Vec<String>,
}

/// Puts what is named in the places that were left open.
pub fn fill(configuration: &mut Object, given: &IndexMap<String, String>) -> Filled {
    let mut filled = Filled::default();
    let mut used: Vec<String> = Vec::new();
    texts_of(configuration, &mut |text: &mut String| {
        let Some(name) = name_in(text).map(str::to_owned) else {
            return;
        };
        match given.get(&name) {
            Some(named) => text.clone_from(named),
            None if filled.missing.contains(&name) => {}
            None => filled.missing.push(name.clone()),
        }
        used.push(name);
    });
    let unused = given.keys().filter(|name| !used.contains(name));
    filled.unused = unused.cloned().collect();
    filled
}

/// Puts what stands for ids in their place; answers the ids that were there, each once.
pub fn stand_in(configuration: &mut Object, stands: &HashMap<String, String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    texts_of(configuration, &mut |text: &mut String| {
        let id = text.clone();
        let Some(stand) = stands.get(&id) else {
            return;
        };
        text.clone_from(stand);
        if !found.contains(&id) {
            found.push(id);
        }
    });
    found
}

/// An id that is left, which nothing stands for: it would mean nothing elsewhere.
pub fn left(configuration: &mut Object) -> Option<String> {
    let mut found = None;
    texts_of(configuration, &mut |text: &mut String| {
        if found.is_none() && is_id(text) {
            found = Some(text.clone());
        }
    });
    found
}

fn is_id(text: &str) -> bool {
    let Some((prefix, rest)) = text.split_once('_') else {
        return false;
    };
    let is_random = |rest: &str| {
        rest.len() >= LENGTH && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    PREFIXES.contains(&prefix) && is_random(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_left_open_is_filled_and_what_is_not_is_told() {
        let mut template = object(
            json!({"a": [slot("one"), "{{INPUT.one}}"], "b": {"c": slot("two"), "d": slot("two")}}),
        );
        let given = IndexMap::from([("one", "col_1"), ("three", "col_3")]);
        let given = given.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned()));
        let filled = fill(&mut template, &given.collect());
        assert_eq!(
            filled,
            Filled {
                missing: vec!["two".to_owned()],
                unused: vec!["three".to_owned()]
            }
        );
        assert_eq!(template["a"], json!(["col_1", "{{INPUT.one}}"]));
    }

    #[test]
    fn ids_get_stand_ins_and_others_are_found() {
        let id = crate::id::new("col_");
        let stands = HashMap::from([(id.clone(), "films".to_owned())]);
        let mut template = object(json!({"a": [id, id], "b": "films"}));
        assert_eq!(stand_in(&mut template, &stands), [id]);
        assert_eq!(template["a"], json!(["films", "films"]));
        assert_eq!(left(&mut template), None);
        let other = crate::id::new("ret_");
        template.insert("c".to_owned(), json!([{"d": other}]));
        assert_eq!(left(&mut template), Some(other));
        for text in [
            "col_short",
            "ret_a word and some more words",
            "none_00000000000000000000",
        ] {
            assert!(!is_id(text), "{text}");
        }
    }
}
