//! What is asked of the server about a manifest, and how its answers are read.

use serde_json::{Map, Value, json};

use crate::{
    api::{Answer, Api},
    record::Record,
};

/// What can be asked.
pub const VALIDATE: &str = "validate";
pub const LINT: &str = "lint";
pub const DIFF: &str = "diff";
pub const APPLY: &str = "apply";

/// Members of a comparison: what is made, what is otherwise, and what is only there.
const COMPARED: [&str; 3] = ["to_create", "differences", "in_system_only"];

fn sent(api: &Api, what: &str, text: &str, values: &Value) -> Answer {
    let values = values.to_string();
    let fields = [("manifest_file", text), ("parameters", values.as_str())];
    api.form(&format!("/v1/manifest/{what}"), &fields)
}

/// Those values that are still asked for: others would be refused.
fn kept(values: &Value, is_asked_for: impl Fn(&str) -> bool) -> Value {
    let all = values.as_object().into_iter().flatten();
    let kept = all.filter(|(name, _)| is_asked_for(name));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(kept.collect())
}

/// The text and what was asked, with whether it holds and with what was told of it. What does not hold is compared with nothing.
pub fn ask(api: Api, what: &'static str, text: String, values: Value) -> Answer {
    Box::pin(async move {
        let mut values = kept(&values, |name| text.contains(name));
        let mut checked = sent(&api, VALIDATE, &text, &values).await?;
        // A name may be somewhere else in the text, and no parameter any more.
        let specs = checked.list("parameters");
        let left = kept(&values, |name| {
            specs.iter().any(|one| one.text("name") == name)
        });
        if left != values {
            values = left;
            checked = sent(&api, VALIDATE, &text, &values).await?;
        }
        let told = match what {
            LINT => sent(&api, what, &text, &values).await?,
            DIFF if checked.flag("valid") => sent(&api, what, &text, &values).await?,
            _ => Record::default(),
        };
        Ok(found(what, text, &values, checked, told))
    })
}

/// Does what was compared, and tells what became of it.
pub fn apply(api: Api, planned: Record) -> Answer {
    Box::pin(async move {
        let text = planned.text("text");
        let values = planned.record("values").0;
        let told = sent(&api, APPLY, &text, &values).await?;
        Ok(found(APPLY, text, &values, planned.record("checked"), told))
    })
}

fn found(of: &str, text: String, values: &Value, checked: Record, told: Record) -> Record {
    Record(json!({"of": of, "text": text, "values": values, "checked": checked.0, "told": told.0}))
}

/// Whether a comparison has something to do.
pub fn changes(found: &Record) -> bool {
    let told = found.record("told");
    let updates = told.list("differences").into_iter();
    let mut updates = updates.filter(|one| one.text("action") == "update");
    !told.list("to_create").is_empty() || updates.next().is_some()
}

/// The line that a place begins with, counted from 1, and the path behind it.
pub fn place_of(said: &str) -> (Option<usize>, String) {
    let line = said.strip_prefix("line ").and_then(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    });
    match line {
        None => (None, said.to_owned()),
        Some(line) => {
            let path = said.split_once(", ").map_or("", |(_, path)| path);
            (Some(line), path.to_owned())
        }
    }
}

/// A sentence as its place and the rest.
pub fn split(sentence: &str) -> (&str, &str) {
    sentence.split_once(": ").unwrap_or(("", sentence))
}

/// The lines in which something is wrong.
pub fn lines(found: &Record) -> Vec<usize> {
    let errors = found.record("checked").strings("errors").into_iter();
    let lines = errors.filter_map(|one| place_of(split(&one).0).0);
    lines.collect()
}

/// The section of a manifest that a kind of resource is in.
pub fn section(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(start) => format!("{start}ies"),
        None => format!("{kind}s"),
    }
}

/// How many of a kind are made, changed, refused, as the text says, and not in it.
pub type Counts = (String, [i64; 5]);

/// The counts of a comparison, kind by kind in the order of the text.
pub fn counts(found: &Record) -> Vec<Counts> {
    let described = found.record("checked").record("resources").members();
    let described = described.into_iter();
    let mut all: Vec<Counts> = described
        .map(|(section, n)| (section, [0, 0, 0, n.0.as_i64().unwrap_or(0), 0]))
        .collect();
    for item in items(found) {
        let section = section(&item.text("resource_type"));
        let at = match all.iter().position(|(name, _)| *name == section) {
            Some(at) => at,
            None => {
                all.push((section, [0; 5]));
                all.len() - 1
            }
        };
        let column = match item.text("action").as_str() {
            "create" => 0,
            "update" => 1,
            "conflict" => 2,
            _ => 4,
        };
        let row = &mut all[at].1;
        row[column] += 1;
        // What is only there is not described.
        if column != 4 {
            row[3] -= 1;
        }
    }
    all
}

/// Everything that a comparison names.
pub fn items(found: &Record) -> Vec<Record> {
    let told = found.record("told");
    let all = COMPARED.iter().flat_map(|member| told.list(member));
    all.collect()
}

/// The parameters of a manifest as fields. What is neither text nor a number is typed as JSON.
pub fn parameters(found: &Record) -> Record {
    let all = found.record("checked").list("parameters").into_iter();
    let fields: Map<String, Value> = all
        .map(|spec| {
            let name = spec.text("name");
            (name, field(&spec))
        })
        .collect();
    Record(json!({"plain": true, "properties": fields}))
}

fn field(spec: &Record) -> Value {
    let kind = spec.text("type");
    let known = spec.strings("enum");
    let mut about: Vec<String> = spec.opt("description").into_iter().collect();
    let mut field = json!({"title": spec.text("name")});
    match kind.as_str() {
        "string" if !known.is_empty() => field["enum"] = known.clone().into(),
        "boolean" => about.push("true or false".to_owned()),
        _ if !known.is_empty() => about.push(format!("one of {}", known.join(", "))),
        _ => {}
    }
    match kind.as_str() {
        "array" => {
            let items = spec.opt("items").unwrap_or_else(|| "string".to_owned());
            field["type"] = "array".into();
            field["items"] = json!({ "type": items });
        }
        "boolean" => {}
        kind => field["type"] = kind.into(),
    }
    let default = spec.value("default");
    field["must"] = (spec.flag("required") && default.is_none()).into();
    if let Some(default) = default {
        field["default"] = default.clone();
    }
    field["description"] = about.join(": ").into();
    field
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        DiffItem, DiffResult, ManifestParameterSpec, ManifestParameterType, ValidateResult,
    };

    use super::*;
    use crate::record::tests::sent;

    fn known(of: &str, checked: Record, told: Record) -> Record {
        found(of, String::new(), &json!({}), checked, told)
    }

    fn item(kind: &str, action: &str) -> DiffItem {
        DiffItem {
            resource_type: kind.into(),
            name: "a".into(),
            action: action.into(),
            details: None,
        }
    }

    #[test]
    fn places_are_told_with_their_lines() {
        let (place, rest) = split("line 12, buckets.0.colour: a bucket has no such member: it has");
        assert_eq!(rest, "a bucket has no such member: it has");
        assert_eq!(place_of(place), (Some(12), "buckets.0.colour".to_owned()));
        assert_eq!(place_of("line 3"), (Some(3), String::new()));
        assert_eq!(place_of("buckets.0"), (None, "buckets.0".to_owned()));
        let checked = ValidateResult {
            errors: vec!["line 3: no".into(), "manifest: too long".into()],
            ..Default::default()
        };
        let found = known(VALIDATE, sent(&checked), Record::default());
        assert_eq!(lines(&found), [3]);
    }

    #[test]
    fn what_is_as_the_text_says_is_what_is_left_of_it() {
        let mut checked = ValidateResult::default();
        checked.resources.insert("buckets".into(), 4);
        checked.resources.insert("taxonomies".into(), 1);
        let diff = DiffResult {
            to_create: vec![item("bucket", "create"), item("taxonomy", "create")],
            differences: vec![item("bucket", "update"), item("bucket", "conflict")],
            in_system_only: vec![item("alert", "none")],
        };
        let found = known(DIFF, sent(&checked), sent(&diff));
        let expected = [
            ("buckets", [1, 1, 1, 1, 0]),
            ("taxonomies", [1, 0, 0, 0, 0]),
            ("alerts", [0, 0, 0, 0, 1]),
        ];
        assert_eq!(
            counts(&found),
            expected.map(|(name, all)| (name.to_owned(), all))
        );
        assert!(changes(&found));
        assert_eq!(items(&found).len(), 5);
        let same = DiffResult {
            differences: vec![item("bucket", "conflict")],
            ..Default::default()
        };
        let same = known(DIFF, sent(&checked), sent(&same));
        assert!(!changes(&same));
    }

    #[test]
    fn parameters_are_fields_and_old_values_are_not_sent() {
        let spec = |name: &str, kind, required, default| ManifestParameterSpec {
            name: name.into(),
            r#type: kind,
            required,
            default,
            ..Default::default()
        };
        let checked = ValidateResult {
            parameters: vec![
                spec("results", ManifestParameterType::Integer, true, None),
                spec(
                    "on",
                    ManifestParameterType::Boolean,
                    true,
                    Some(json!(true)),
                ),
                spec("tags", ManifestParameterType::Array, false, None),
            ],
            ..Default::default()
        };
        let found = known(VALIDATE, sent(&checked), Record::default());
        let fields = parameters(&found).0["properties"].clone();
        assert_eq!(
            fields["results"],
            json!({"title": "results", "type": "integer", "must": true, "description": ""})
        );
        assert_eq!(
            fields["on"],
            json!({"title": "on", "must": false, "default": true, "description": "true or false"})
        );
        assert_eq!(fields["tags"]["items"]["type"], "string");
        let values = json!({"results": 3, "gone": 1});
        let left = kept(&values, |name| name == "results");
        assert_eq!(left, json!({"results": 3}));
    }
}
