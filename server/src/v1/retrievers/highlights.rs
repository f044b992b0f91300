//! Where the documents of an answer have the words of the query.

use loupe_wire::{
    Object, Value,
    marks::{Marks, Run},
};
use serde_json::json;

/// Characters of a piece of text, and fields of one document.
const SNIPPET: usize = 240;
const MOST_FIELDS: usize = 10;
/// Members inside of members that are looked into.
const DEEPEST: usize = 4;
/// A text longer than this is a file, not a question.
const LONGEST_QUERY: usize = 1_000;

/// `{document_id: {field: [{text, marked}]}}`, for the fields that have a word of the inputs.
pub fn of(inputs: &Object, documents: &[Object]) -> Object {
    let words: Vec<&str> = inputs
        .values()
        .filter_map(Value::as_str)
        .filter(|text| text.len() <= LONGEST_QUERY && !text.contains("://"))
        .collect();
    let marks = Marks::of(&words.join(" "));
    let mut out = Object::new();
    for document in documents {
        let Some(id) = document.get("document_id").and_then(Value::as_str) else {
            continue;
        };
        let mut found = Object::new();
        for (name, value) in document {
            if !name.starts_with('_') && !name.ends_with("_id") {
                look(&marks, name, value, DEEPEST, &mut found);
            }
        }
        if !found.is_empty() {
            out.insert(id.to_owned(), Value::Object(found));
        }
    }
    out
}

fn look(marks: &Marks, path: &str, value: &Value, depth: usize, found: &mut Object) {
    match value {
        _ if found.len() >= MOST_FIELDS || depth == 0 => {}
        Value::String(text) if !text.contains("://") => {
            let runs = marks.runs(&marks.snippet(text, SNIPPET));
            if runs.iter().any(|run| run.marked) {
                let told = runs
                    .into_iter()
                    .map(|Run { text, marked }| json!({"text": text, "marked": marked}));
                found.insert(path.to_owned(), told.collect());
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                look(marks, &format!("{path}.{name}"), value, depth - 1, found);
            }
        }
        // The first item that has a word stands for the list.
        Value::Array(items) => {
            for item in items {
                if found.contains_key(path) {
                    break;
                }
                look(marks, path, item, depth - 1, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn fields_with_words_of_the_query_are_told_in_runs() {
        let documents = [
            object(
                json!({"document_id": "a", "title": "The <b>Whale</b>", "meta": {"tags": ["sea", "whales"]}, "n": 3,
                "owner_id": "whale", "_internal": {"x": "whale"}, "link": "https://whale.example"}),
            ),
            object(json!({"document_id": "b", "title": "Nothing"})),
        ];
        let told = of(
            &object(json!({"query": "whale", "image": "https://x.example"})),
            &documents,
        );
        assert_eq!(
            json!(told),
            json!({"a": {
                "title": [{"text": "The <b>", "marked": false}, {"text": "Whale", "marked": true}, {"text": "</b>", "marked": false}],
                "meta.tags": [{"text": "whales", "marked": true}],
            }})
        );
        assert!(of(&Object::new(), &documents).is_empty());
    }
}
