//! R-43: templates, filters and cursors of strangers, broken in every way: each is read or refused with a sentence, in time,
//! and nothing else happens.

use super::*;
use crate::filter::Filter;
use crate::template::{self, Context};

/// Pieces that mean something in one of the languages.
const PIECES: [&str; 48] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "|",
    ".",
    "[",
    "]",
    "(",
    ")",
    "INPUT",
    "DOC",
    "CONTEXT",
    "tojson",
    "truncate(",
    "default(",
    "for x in ",
    "range(1000000000)",
    "\"",
    "'",
    "\\",
    "*",
    "**",
    "~",
    "if ",
    " else ",
    "not ",
    "and ",
    "9223372036854775808",
    "-1",
    "1e999",
    "\u{0}",
    "ß",
    "\u{1f4a9}",
    "null",
    "true",
    ",",
    ":",
    "{",
    "}",
    "$and",
    "$regex",
    "(a+)+$",
    "_internal",
    "AND",
    "\u{202e}",
];

/// Breaks texts until the time is over; what they do is `run`'s to judge.
fn hostile(corpus: &[&str], mut run: impl FnMut(&str)) {
    let corpus: Vec<&[u8]> = corpus.iter().map(|text| text.as_bytes()).collect();
    crate::hostile::run(&corpus, &PIECES, |bytes| {
        run(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn hostile_templates_are_read_or_refused() {
    let corpus = [
        "{{INPUT.query}}",
        "{{ DOC.title | upper | truncate(20) }} of {{ DOC['n'] + 1 }}",
        "{{ DOC | tojson }}",
        "a {{ CONTEXT.INDEX }} {{ (INPUT.list | first) ~ 'x' if INPUT.list else 'none' }}",
        "{{ INPUT.list | map(attribute='a') | join(', ') | default('x') }}",
        "{{ INPUT.text | replace('a', 'b') | split(' ') | length }}",
    ];
    let inputs = json!({"query": "whale {{ INPUT.query }}", "list": [1, "b", {"a": null}], "text": "ä b".repeat(50)});
    let now = chrono::DateTime::from_timestamp(1_795_000_000, 0).unwrap();
    let mut context = Context::new(inputs.as_object().unwrap(), now);
    context.set(
        "DOC",
        &json!({"title": "A", "n": 1, "deep": {"er": [[[]]]}}),
    );
    context.set("CONTEXT", &json!({"INDEX": 3}));
    hostile(&corpus, |text| {
        let checked = template::check(text);
        if let Err(error) = &checked {
            assert!(!error.to_string().is_empty(), "{text}");
        }
        let rendered = template::render_text(text, &context);
        // A filter that there is not may stand where nothing comes to it.
        if template::check_stored(text).is_err() {
            assert!(checked.is_err(), "what is not run is refused: {text}");
            assert!(rendered.is_err(), "what is refused is not rendered: {text}");
        }
        let _ = template::render_value(&json!({"a": [text]}), &context);
        let _ = template::render_operand(&json!(text), &context);
    });
}

#[test]
fn hostile_filters_are_read_or_refused() {
    let corpus = [
        r#"{"AND": [{"field": "a.b", "operator": "eq", "value": 1}, {"OR": [{"field": "c", "operator": "in", "value": ["x", null]}]}]}"#,
        r#"{"color": "red", "n": {"$gte": 1, "$lt": 1e3}, "NOT": {"tags": {"$regex": "^a.*b$"}}}"#,
        r#"{"field": "place", "operator": "geo_radius", "value": {"center": {"lat": 1, "lon": 2}, "radius": 10}}"#,
        r#"{"field": "text", "operator": "phrase", "value": "two words", "case_sensitive": true}"#,
        r#"{"a": {"$exists": false}, "b": {"$is_null": true}, "d": {"$contains": "x"}}"#,
    ];
    let documents = [
        json!({"a": {"b": 1}, "color": "red", "n": 5, "tags": ["ab", "b"], "text": "two words", "place": {"lat": 1.0, "lon": 2.0}}),
        json!({"a": null, "n": "x", "tags": {"x": []}}),
        json!({}),
    ];
    hostile(&corpus, |text| {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return;
        };
        match Filter::parse(&value) {
            Ok(filter) => {
                // What is told of a filter is a filter again, and it means the same.
                let matcher = filter.matcher();
                for document in &documents {
                    assert_eq!(
                        matcher.matches(document),
                        filter.matches(document),
                        "{text}"
                    );
                }
                assert!(!filter.to_string().is_empty());
            }
            Err(error) => assert!(!error.msg.is_empty(), "{text}"),
        }
    });
}

#[tokio::test]
async fn hostile_cursors_are_read_or_refused() {
    let list = || json!({"feature_search": {"searches": [search(json!({}))]}});
    let page = async |cursor: Option<&str>| {
        let mut with = run(store(), json!({"query": "1,0"}));
        let told = json!({"method": "cursor", "limit": 1, "cursor": cursor});
        with.pagination = Some(serde_json::from_value(told).unwrap());
        plan(list()).run(with).await
    };
    let first = page(None).await.unwrap();
    let honest = first.pagination["next_cursor"].as_str().unwrap().to_owned();
    let second = page(Some(&honest)).await.unwrap();
    assert_ne!(ids(&first), ids(&second));
    let mut texts = Vec::new();
    let corpus = [honest.as_str(), "eyJhIjoxfQ", "AAAA", "%00"];
    // Breaking is quick; what is asked with it is not.
    hostile(&corpus, |text| {
        if texts.len() < 2_000 {
            texts.push(text.to_owned());
        }
    });
    let (mut read, mut refused) = (0, 0);
    for text in texts {
        match page(Some(&text)).await {
            Ok(_) => read += 1,
            Err(RunError::Cursor(reason)) => {
                assert!(!reason.is_empty());
                refused += 1;
            }
            Err(other) => panic!("{text}: {other}"),
        }
    }
    assert!(refused > read, "{refused} refused, {read} read");
}
