//! Answers of the API, read by the names of their fields.
//!
//! The wire types decode every field of every resource, which is most of a megabyte of WebAssembly for the few fields
//! that a page shows. Here fields are read by name; the tests write them with the wire types and read them back.

use serde_json::Value;

/// One answer, or a part of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record(pub Value);

impl Record {
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text, empty when absent.
    pub fn text(&self, name: &str) -> String {
        self.value(name).map(plain).unwrap_or_default()
    }

    pub fn opt(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// The first of `names` that is there.
    pub fn first(&self, names: &[&str]) -> String {
        names
            .iter()
            .find_map(|name| self.opt(name))
            .unwrap_or_default()
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        self.value(name).and_then(Value::as_f64)
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.float(name).map(|n| n as i64)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn record(&self, name: &str) -> Record {
        Record(self.value(name).cloned().unwrap_or_default())
    }

    pub fn list(&self, name: &str) -> Vec<Record> {
        self.value(name).map(items).unwrap_or_default()
    }

    pub fn strings(&self, name: &str) -> Vec<String> {
        self.list(name).iter().map(|one| plain(&one.0)).collect()
    }

    /// The members in the order sent.
    pub fn members(&self) -> Vec<(String, Record)> {
        let all = self.0.as_object().into_iter().flatten();
        all.map(|(name, value)| (name.clone(), Record(value.clone())))
            .collect()
    }
}

/// These members of `one` that are there, as a body.
pub fn only(one: Record, members: &[&str]) -> Value {
    let kept = members
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), one.value(name)?.clone())));
    Value::Object(kept.collect())
}

pub fn items(value: &Value) -> Vec<Record> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .map(Record)
        .collect()
}

/// A value without the quotes of JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A list's rows and how many there are in all.
pub type Page = (Vec<Record>, i64);

/// Lists name their total in four ways.
pub fn page(answer: &Record) -> Page {
    let rows = answer.list("results");
    let named = ["total_count", "total", "total_documents"]
        .iter()
        .find_map(|name| answer.int(name));
    let total = named
        .or_else(|| answer.record("pagination").int("total"))
        .unwrap_or(rows.len() as i64);
    (rows, total)
}

#[cfg(test)]
pub mod tests {
    use std::fmt::Debug;

    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::json;

    use super::*;

    /// What the server would send.
    pub fn sent(value: &impl Serialize) -> Record {
        Record(serde_json::to_value(value).expect("wire types are JSON"))
    }

    /// The names of all variants, in order: whoever reads one that there is not tells them.
    pub fn variants<T: DeserializeOwned + Debug>() -> Vec<String> {
        let unknown = serde_json::from_value::<T>(json!("?")).expect_err("none is called so");
        let told = unknown.to_string();
        let (_, told) = told.split_once("expected one of ").expect("a list");
        let names = told.split(", ").map(|one| one.trim_matches('`').to_owned());
        let mut all: Vec<String> = names.collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn totals_are_found_wherever_they_are() {
        let rows = json!([{"a": 1}]);
        for (body, total) in [
            (json!({"results": rows, "total_count": 7}), 7),
            (json!({"results": rows, "total": 8}), 8),
            (json!({"results": rows, "pagination": {"total": 9}}), 9),
            (json!({"results": rows}), 1),
        ] {
            assert_eq!(page(&Record(body)).1, total);
        }
    }

    #[test]
    fn a_body_has_the_members_that_are_there() {
        let one = Record(json!({"a": 1, "b": null, "c": [2]}));
        assert_eq!(only(one, &["a", "b", "x"]), json!({"a": 1}));
    }

    #[test]
    fn absent_and_null_are_the_same() {
        let record = Record(json!({"a": null, "n": 3, "s": "x"}));
        assert_eq!(
            (record.opt("a"), record.opt("b"), record.int("n")),
            (None, None, Some(3))
        );
        assert_eq!(record.first(&["a", "s"]), "x");
    }
}
