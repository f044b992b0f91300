//! What a draft changes of the retriever that it began as.

use serde_json::Value;

use super::sendable;
use crate::record::{Record, items};

/// A stage that is not as it was: its name, what became of it, and the values that changed.
#[derive(Debug, PartialEq)]
pub struct Changed {
    pub name: String,
    pub what: String,
    pub values: Vec<Difference>,
}

/// The place of a value, what it was, what it is.
pub type Difference = (String, Option<Value>, Option<Value>);

/// The stages of `now` beside those of `source`, in their order; those that are gone come last.
pub fn of(source: &Record, now: &Value) -> Vec<Changed> {
    let (before, now) = (
        items(&sendable(source.record("stages").0)),
        items(&sendable(now.clone())),
    );
    let place = |all: &[Record], one: &Record| {
        let name = one.text("stage_name");
        all.iter()
            .position(|other| other.text("stage_name") == name)
    };
    // Places among the stages that are in both: one that is added moves no other.
    let kept: Vec<&Record> = before
        .iter()
        .filter(|one| place(&now, one).is_some())
        .collect();
    let stays: Vec<&Record> = now
        .iter()
        .filter(|one| place(&before, one).is_some())
        .collect();
    let rank = |all: &[&Record], one: &Record| {
        all.iter()
            .position(|other| other.text("stage_name") == one.text("stage_name"))
    };
    let mut out = Vec::new();
    for one in &now {
        let name = one.text("stage_name");
        let Some(at) = place(&before, one) else {
            out.push(changed(name, "added"));
            continue;
        };
        let mut values = Vec::new();
        differ("", Some(&before[at].0), Some(&one.0), &mut values);
        let moved = rank(&kept, one) != rank(&stays, one);
        let what = match (moved, values.is_empty()) {
            (true, true) => "moved",
            (true, false) => "moved and changed",
            (false, false) => "changed",
            (false, true) => continue,
        };
        out.push(Changed {
            values,
            ..changed(name, what)
        });
    }
    let gone = before.iter().filter(|one| place(&now, one).is_none());
    out.extend(gone.map(|one| changed(one.text("stage_name"), "taken out")));
    out
}

fn changed(name: String, what: &str) -> Changed {
    Changed {
        name,
        what: what.to_owned(),
        values: Vec::new(),
    }
}

/// Every value that is not the same, by its place.
fn differ(at: &str, before: Option<&Value>, now: Option<&Value>, out: &mut Vec<Difference>) {
    if before == now {
        return;
    }
    let place = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    match (before, now) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for name in old.keys() {
                differ(&place(name), old.get(name), new.get(name), out);
            }
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                differ(&place(name), None, new.get(name), out);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if deep(old) && deep(new) => {
            for n in 0..old.len().max(new.len()) {
                differ(&place(&(n + 1).to_string()), old.get(n), new.get(n), out);
            }
        }
        _ => out.push((
            at.trim_start_matches("config.")
                .trim_start_matches("parameters.")
                .to_owned(),
            before.cloned(),
            now.cloned(),
        )),
    }
}

/// Whether a list is one of objects, whose members are told one by one.
fn deep(all: &[Value]) -> bool {
    all.iter().all(Value::is_object)
}

/// How much is changed, in words.
pub fn told(all: &[Changed]) -> String {
    match all.len() {
        0 => "No stage is changed.".to_owned(),
        1 => "1 stage is changed.".to_owned(),
        count => format!("{count} stages are changed."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stage(name: &str, parameters: Value) -> Value {
        json!({"stage_name": name, "stage_type": "reduce", "config": {"stage_id": "limit", "parameters": parameters}})
    }

    fn source() -> Record {
        Record(json!({"stages": [
            stage("search", json!({"searches": [{"top_k": 100}], "fields": ["a", "b"]})),
            stage("sort", json!({"field": "year"})),
            stage("last", json!({"limit": 10})),
        ]}))
    }

    #[test]
    fn nothing_is_changed_by_looking() {
        let same = source().record("stages").0;
        assert!(of(&source(), &same).is_empty());
        assert_eq!(told(&[]), "No stage is changed.");
    }

    #[test]
    fn each_stage_is_told_by_what_became_of_it() {
        let now = json!([
            stage(
                "search",
                json!({"searches": [{"top_k": 50}, {"top_k": 10}], "fields": ["a"]})
            ),
            stage("new", json!({})),
            stage("last", json!({"limit": 10})),
        ]);
        let all = of(&source(), &now);
        let what: Vec<_> = all
            .iter()
            .map(|one| (one.name.as_str(), one.what.as_str()))
            .collect();
        assert_eq!(
            what,
            [
                ("search", "changed"),
                ("new", "added"),
                ("sort", "taken out")
            ]
        );
        let values: Vec<_> = all[0]
            .values
            .iter()
            .map(|(place, ..)| place.as_str())
            .collect();
        assert_eq!(values, ["searches.1.top_k", "searches.2", "fields"]);
        assert_eq!(all[0].values[0].1, Some(json!(100)));
        assert_eq!(all[0].values[1].1, None);
        assert_eq!(told(&all), "3 stages are changed.");
    }

    #[test]
    fn a_stage_that_stands_elsewhere_has_moved() {
        let mut now = source().record("stages").0;
        now.as_array_mut().expect("stages").swap(1, 2);
        let what: Vec<_> = of(&source(), &now)
            .into_iter()
            .map(|one| one.what)
            .collect();
        assert_eq!(what, ["moved", "moved"]);
    }
}
