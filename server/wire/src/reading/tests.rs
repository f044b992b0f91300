use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
enum Kind {
    Plain,
    Held(i64),
    Pair(i64, bool),
    Named { size: f64 },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    One { count: u8 },
}

#[derive(Debug, PartialEq, Deserialize)]
struct Inner {
    count: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Tagless {}

#[derive(Debug, PartialEq, Deserialize)]
struct Outer {
    name: Option<String>,
    kinds: Vec<Kind>,
    #[serde(default)]
    by_number: BTreeMap<u32, f32>,
    #[serde(default)]
    pair: (bool, char),
    #[serde(default)]
    inner: Vec<Inner>,
    tagged: Option<Tagged>,
    any: Option<Value>,
}

fn whole() -> Value {
    json!({
        "name": null,
        "kinds": ["Plain", {"Held": -3}, {"Pair": [1, true]}, {"Named": {"size": 2}}],
        "by_number": {"7": 1.5},
        "pair": [false, "x"],
        "inner": [{"count": 1, "more": [1, {"deep": null}]}],
        "tagged": {"type": "one", "count": 9},
        "any": {"a": [1, -2, 0.5, "text", true, null]},
    })
}

#[test]
fn reads_what_the_usual_deserializer_reads() {
    let expected: Outer = serde_json::from_value(whole()).unwrap();
    assert_eq!(from_value::<Outer>(&whole()), Ok(expected));
    assert_eq!(from_value::<Value>(&whole()), Ok(whole()));
}

#[test]
fn says_what_does_not_fit_as_the_usual_deserializer_does_and_where() {
    let cases = [
        (json!({"kinds": 1}), "kinds"),
        (json!({"kinds": ["Plain", "Unheard"]}), "kinds.1"),
        (json!({"kinds": [{"Held": "x"}]}), "kinds.0.Held"),
        (json!({"kinds": [{"Held": 1, "Plain": 2}]}), "kinds.0"),
        (json!({"kinds": [], "name": 1.5}), "name"),
        (
            json!({"kinds": [], "inner": [{"count": 300}]}),
            "inner.0.count",
        ),
        (json!({"kinds": [], "inner": [{}]}), "inner.0"),
        (json!({"kinds": [], "pair": [true]}), "pair"),
        (json!({"kinds": [], "pair": [true, "x", 3]}), "pair"),
        (
            json!({"kinds": [], "by_number": {"1": null}}),
            "by_number.1",
        ),
        (json!({"kinds": [], "tagged": {"count": 1}}), "tagged"),
        (json!({"name": "x"}), ""),
        (json!([]), ""),
    ];
    for (value, path) in cases {
        let fault = from_value::<Outer>(&value).unwrap_err();
        assert_eq!(fault.path.join("."), path, "{value}");
        let usual = serde_json::from_value::<Outer>(value.clone());
        if value.is_object() {
            assert_eq!(fault.message, usual.unwrap_err().to_string(), "{value}");
        }
    }
}

#[test]
fn names_the_keys_that_no_type_has() {
    let mut value = whole();
    value["colour"] = json!(1);
    value["kinds"][3]["Named"]["a.b"] = json!([1]);
    let (_, unknown) = with_unknown_keys::<Outer>(&value).unwrap();
    assert_eq!(
        unknown,
        [vec!["kinds", "3", "Named", "a.b"], vec!["colour"]]
    );
    let (_, unknown) = with_unknown_keys::<IgnoredAny>(&value).unwrap();
    assert_eq!(unknown, [Vec::<String>::new()]);
}

#[test]
fn names_only_so_many_keys() {
    let many: serde_json::Map<String, Value> = (0..100_000)
        .map(|number| (format!("key{number}"), Value::Null))
        .collect();
    let (_, unknown) = with_unknown_keys::<Tagless>(&Value::Object(many)).unwrap();
    assert_eq!(unknown.len(), reader::MOST_UNKNOWN);
}

#[test]
fn texts_that_are_no_json_are_faults() {
    assert!(from_str::<Value>("{").unwrap_err().message.contains("EOF"));
    assert_eq!(from_slice::<u8>(b"7"), Ok(7));
}
