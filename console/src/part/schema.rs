//! A form made from a JSON schema, for values whose shape the server tells: parameters of stages and of extractors.

mod asking;
mod fields;

use leptos::prelude::*;
use serde_json::{Map, Value};

pub use asking::DrawInputs;
pub use fields::{fields, lead};

use super::Faults;
use crate::{
    record::{Record, plain},
    text,
};

/// The value that a form edits, and what its fields may be filled from.
#[derive(Clone, Copy)]
pub struct Form {
    pub value: RwSignal<Value>,
    /// Rings when lists get longer or shorter: then the fields are made anew.
    pub shape: RwSignal<u32>,
    /// Addresses of features, to be chosen, never typed.
    pub features: Signal<Vec<String>>,
    /// What there is to choose from, by the word that a schema has under `of`: objects with `id` and `name`.
    pub choices: RwSignal<Record>,
    /// The start of every field's id.
    pub id: StoredValue<String>,
    /// What was refused when it was sent last.
    pub faults: Faults,
}

impl Form {
    pub fn new(id: String, value: Value, features: Signal<Vec<String>>) -> Self {
        Self {
            value: RwSignal::new(value),
            shape: RwSignal::new(0),
            features,
            choices: RwSignal::new(Record::default()),
            id: StoredValue::new(id),
            faults: Faults::new(),
        }
    }

    /// A form that is about no features.
    pub fn plain(id: &str) -> Self {
        let none = Signal::stored(Vec::new());
        Self::new(id.to_owned(), Value::Null, none)
    }

    /// Another form that chooses from the same.
    pub fn beside(self) -> Self {
        Self {
            value: RwSignal::new(Value::Null),
            shape: RwSignal::new(0),
            faults: Faults::new(),
            ..self
        }
    }

    /// What is chosen from by this word is called so.
    pub fn name_of(self, of: &str, id: &str) -> String {
        let all = self.choices.with_untracked(|all| all.list(of));
        let named = all.iter().find(|one| one.text("id") == id);
        named.map_or_else(|| id.to_owned(), |one| one.text("name"))
    }

    fn get(self, path: &str) -> Value {
        self.value
            .with_untracked(|root| root.pointer(path).cloned())
            .unwrap_or_default()
    }

    fn set(self, path: &str, value: Value) {
        self.value.update(|root| put(root, path, value));
    }

    fn reshape(self, path: &str, value: Value) {
        self.set(path, value);
        self.shape.update(|n| *n += 1);
    }
}

/// The schema of a form by its name: the path of its file below `src/page`. The page brings all of them along as data, so
/// that they weigh nothing in the program; empty when there is none of this name.
#[cfg(target_family = "wasm")]
pub fn named(name: &str) -> Record {
    let page = document().get_element_by_id("forms");
    let text = page.and_then(|forms| forms.text_content());
    let forms: Value = text
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    Record(forms).record(name)
}

/// Tests have no page, but the files.
#[cfg(not(target_family = "wasm"))]
pub fn named(name: &str) -> Record {
    let path = format!("{}/src/page/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    Record(serde_json::from_str(&text).unwrap_or_default())
}

/// Writes `value` at a JSON pointer, with the objects on the way; null takes the member away.
fn put(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    let mut pieces = path.split('/').skip(1).peekable();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        if let Value::Array(all) = at {
            let Some(one) = piece.parse().ok().and_then(|n: usize| all.get_mut(n)) else {
                return;
            };
            at = one;
        } else {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(members) = at else { return };
            if last && value.is_null() {
                members.shift_remove(piece);
                return;
            }
            at = members.entry(piece).or_insert(Value::Null);
        }
        if last {
            *at = value;
            return;
        }
    }
}

/// What a person typed, as the schema wants it. A template stays text whatever the type.
fn read(schema: &Record, typed: &str) -> Value {
    // Blanks around a text that stands before another mean something.
    let typed = match schema.flag("verbatim") {
        true => typed,
        false => typed.trim(),
    };
    if typed.is_empty() {
        return Value::Null;
    }
    match schema.text("type").as_str() {
        "string" => typed.into(),
        "array" if texts(schema) => {
            let end = if is_lines(schema) { '\n' } else { ',' };
            let all = typed
                .split(end)
                .map(str::trim)
                .filter(|one| !one.is_empty());
            Value::from(all.collect::<Vec<_>>())
        }
        _ => serde_json::from_str(typed).unwrap_or_else(|_| typed.into()),
    }
}

/// Whether each text of a list has a line of its own.
fn is_lines(schema: &Record) -> bool {
    schema.text("format") == "lines"
}

/// A value as it is typed.
fn show(value: &Value) -> String {
    match value {
        Value::Array(all) if all.iter().all(Value::is_string) => {
            all.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        Value::Array(_) | Value::Object(_) => text::pretty(value),
        other => plain(other),
    }
}

fn texts(schema: &Record) -> bool {
    schema.record("items").text("type") == "string"
}

/// A schema for values whose defaults alone are known.
pub fn schema_of(defaults: &Record) -> Record {
    let kinds = defaults.members().into_iter().map(|(name, value)| {
        let kind = match &value.0 {
            Value::Bool(_) => "boolean",
            Value::Number(n) if n.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            _ => "string",
        };
        let mut field = Map::new();
        field.insert("type".into(), kind.into());
        field.insert("default".into(), value.0);
        (name, Value::Object(field))
    });
    let mut schema = Map::new();
    schema.insert("properties".into(), Value::Object(kinds.collect()));
    Record(Value::Object(schema))
}

/// The place of a member beside the fields of `path`; `../` leads to those around them.
fn beside(path: &str, place: &str) -> String {
    match (place.strip_prefix("../"), path.rsplit_once('/')) {
        (Some(rest), Some((above, _))) => beside(above, rest),
        _ => format!("{path}/{place}"),
    }
}

/// Whether a field is asked for: `"when": ["../channel", "slack"]` names a member and the values that call for it, `or` another
/// member that does as well, `unless` those that leave it out. A list has each of its values.
fn applies(form: Form, path: &str, field: &Record) -> bool {
    let holds = |named: &str| {
        let named = field.strings(named);
        let (place, values) = named.split_first()?;
        let held = form.get(&beside(path, place));
        Some(match held.as_array() {
            Some(all) => all.iter().any(|one| values.contains(&plain(one))),
            None => values.contains(&show(&held)),
        })
    };
    let also = || holds("or").unwrap_or(false);
    let called = holds("when").is_none_or(|called| called || also());
    called && !holds("unless").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_where_the_path_leads() {
        let mut root = json!({});
        put(&mut root, "/searches", json!([{}]));
        put(&mut root, "/searches/0/query/value", "{{INPUT.q}}".into());
        put(&mut root, "/limit", 3.into());
        assert_eq!(
            root,
            json!({"searches": [{"query": {"value": "{{INPUT.q}}"}}], "limit": 3})
        );
        put(&mut root, "/limit", Value::Null);
        put(&mut root, "/searches/7/query", 1.into());
        assert_eq!(
            root,
            json!({"searches": [{"query": {"value": "{{INPUT.q}}"}}]})
        );
    }

    #[test]
    fn what_is_typed_has_the_type_of_the_schema() {
        let kind = |kind: &str| Record(json!({"type": kind, "items": {"type": "string"}}));
        assert_eq!(read(&kind("integer"), " 5 "), json!(5));
        assert_eq!(read(&kind("integer"), "{{INPUT.n}}"), json!("{{INPUT.n}}"));
        assert_eq!(read(&kind("string"), "5"), json!("5"));
        assert_eq!(read(&kind("array"), "a, b,"), json!(["a", "b"]));
        let lines =
            Record(json!({"type": "array", "format": "lines", "items": {"type": "string"}}));
        assert_eq!(
            read(&lines, "lions, tigers\n\nbears\n"),
            json!(["lions, tigers", "bears"])
        );
        let affix = Record(json!({"type": "string", "verbatim": true}));
        assert_eq!(read(&affix, " km"), json!(" km"));
        assert_eq!(read(&kind("string"), "  "), Value::Null);
        assert_eq!(read(&Record::default(), "true"), json!(true));
    }

    #[test]
    fn a_field_is_there_for_the_values_that_call_for_it() {
        let owner = Owner::new();
        owner.set();
        let form = Form::plain("test");
        form.value
            .set(json!({"kind": "cron", "channels": [{"channel": "slack", "configs": {}}]}));
        let on = |when: Value| Record(json!({ "when": when }));
        assert!(applies(
            form,
            "/settings",
            &on(json!(["../kind", "event", "cron"]))
        ));
        assert!(!applies(form, "", &on(json!(["kind", "event"]))));
        let place = "/channels/0/configs";
        assert!(applies(form, place, &on(json!(["../channel", "slack"]))));
        assert!(applies(form, place, &Record::default()));
        let unless = |when: Value| Record(json!({ "unless": when }));
        assert!(!applies(form, "", &unless(json!(["kind", "cron"]))));
        assert!(applies(form, "", &unless(json!(["kind", "event"]))));
        assert!(applies(form, "", &unless(json!(["other", "event"]))));
        form.value
            .set(json!({"mode": "some", "ways": ["mail", "own"]}));
        let or = |way: &str| Record(json!({"when": ["mode", "own"], "or": ["ways", way]}));
        assert!(applies(form, "", &or("own")) && !applies(form, "", &or("other")));
    }

    #[test]
    fn defaults_make_a_schema() {
        let schema = schema_of(&Record(json!({"n": 3, "x": 0.5, "on": true, "s": "a"})));
        let kinds = schema.record("properties").members();
        let kinds: Vec<_> = kinds.iter().map(|(_, field)| field.text("type")).collect();
        assert_eq!(kinds, ["integer", "number", "boolean", "string"]);
    }
}
