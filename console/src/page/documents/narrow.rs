//! Filter and sort of a list of documents, kept in the address. A filter is put together from conditions, or written as JSON.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    load::{Load, Query},
    page::collections::fields_of,
    part::{schema::Form, *},
    record::Record,
};

/// Operators by the kind of a field, with what they are called.
type Words = &'static [(&'static str, &'static str)];

const KINDS: &[(&str, Words)] = &[
    (
        "text",
        &[
            ("eq", "is"),
            ("ne", "is not"),
            ("contains", "contains"),
            ("starts_with", "starts with"),
            ("ends_with", "ends with"),
            ("in", "is one of (commas between)"),
            ("nin", "is none of (commas between)"),
            ("exists", "is there"),
            ("missing", "is not there"),
        ],
    ),
    (
        "number",
        &[
            ("eq", "is"),
            ("ne", "is not"),
            ("gt", "is more than"),
            ("gte", "is at least"),
            ("lt", "is less than"),
            ("lte", "is at most"),
            ("exists", "is there"),
            ("missing", "is not there"),
        ],
    ),
    (
        "moment",
        &[
            ("gt", "is after"),
            ("gte", "is from"),
            ("lt", "is before"),
            ("lte", "is until"),
            ("exists", "is there"),
            ("missing", "is not there"),
        ],
    ),
    ("boolean", &[("eq", "is"), ("ne", "is not")]),
    (
        "other",
        &[
            ("eq", "is or has"),
            ("ne", "neither is nor has"),
            ("exists", "is there"),
            ("missing", "is not there"),
        ],
    ),
];

/// Names of fields, with their types.
type Fields = [(String, String)];

fn kind_of(fields: &Fields, field: &str) -> Option<&'static str> {
    let (_, kind) = fields.iter().find(|(name, _)| name == field)?;
    Some(match kind.as_str() {
        "string" | "text" => "text",
        "number" | "integer" | "float" => "number",
        "date" | "datetime" => "moment",
        "boolean" => "boolean",
        _ => "other",
    })
}

/// The form of a filter over these fields.
fn shape(fields: &Fields) -> Record {
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let mut properties = Map::new();
    let field =
        json!({"type": "string", "title": "Field", "must": true, "enum": names, "resets": []});
    properties.insert("field".to_owned(), field);
    for (kind, words) in KINDS.iter().copied() {
        let mut when = vec!["field"];
        let own = names.iter().copied();
        when.extend(own.filter(|name| kind_of(fields, name) == Some(kind)));
        let (words, names): (Vec<&str>, Vec<&str>) = words.iter().copied().unzip();
        let is = json!({"type": "string", "title": "Condition", "must": true, "enum": words, "names": names, "when": when});
        let mut value = match kind {
            "number" => json!({"type": "number"}),
            "boolean" => {
                json!({"type": "string", "enum": ["true", "false"], "names": ["yes", "no"]})
            }
            "moment" => json!({"type": "string", "example": "2026-11-27"}),
            "text" => json!({"type": "string"}),
            _ => json!({}),
        };
        value["title"] = "Value".into();
        value["when"] = when.into();
        properties.insert(format!("{kind}_is"), is);
        properties.insert(kind.to_owned(), value);
    }
    let join = json!({"type": "string", "title": "Documents pass that meet", "must": true, "enum": ["AND", "OR"],
        "names": ["every condition", "any condition"]});
    let condition =
        json!({"type": "object", "title": "condition", "plain": true, "properties": properties});
    let conditions = json!({"type": "array", "items": condition});
    Record(json!({"plain": true, "properties": {"join": join, "conditions": conditions}}))
}

/// A condition as it is filled in; nothing while something of it lacks.
fn condition(fields: &Fields, one: &Record) -> Option<Value> {
    let field = one.opt("field")?;
    let kind = kind_of(fields, &field)?;
    let word = one.opt(&format!("{kind}_is"))?;
    let value = one.value(kind);
    let (word, value): (&str, Value) = match word.as_str() {
        "exists" => ("exists", true.into()),
        "missing" => ("exists", false.into()),
        word @ ("in" | "nin") => {
            let text = one.opt(kind)?;
            let all = text.split(',').map(str::trim);
            let all: Vec<&str> = all.filter(|one| !one.is_empty()).collect();
            (word, all.into())
        }
        word if kind == "boolean" => (word, (one.opt(kind)? == "true").into()),
        word => (word, value?.clone()),
    };
    Some(json!({"field": field, "operator": word, "value": value}))
}

/// The filter that is put together; nothing while something of it lacks.
fn filter_of(fields: &Fields, value: &Value) -> Option<String> {
    let form = Record(value.clone());
    let all = form.list("conditions");
    let all: Option<Vec<Value>> = all.iter().map(|one| condition(fields, one)).collect();
    let all = all?;
    if all.is_empty() {
        return Some(String::new());
    }
    let join = match form.text("join").as_str() {
        "OR" => "OR",
        _ => "AND",
    };
    Some(json!({ join: all }).to_string())
}

/// A condition as it is filled in again, where the form has it.
fn filled(fields: &Fields, one: &Value) -> Option<Value> {
    let one = Record(one.clone());
    let known = ["field", "operator", "value"];
    if one
        .members()
        .iter()
        .any(|(name, _)| !known.contains(&name.as_str()))
    {
        return None;
    }
    let field = one.opt("field")?;
    let kind = kind_of(fields, &field)?;
    let word = one.opt("operator").unwrap_or_else(|| "eq".to_owned());
    let (word, value): (&str, Value) = match (word.as_str(), one.value("value")) {
        ("exists", None | Some(Value::Bool(true))) => ("exists", Value::Null),
        ("exists", Some(Value::Bool(false))) => ("missing", Value::Null),
        (word @ ("in" | "nin"), Some(Value::Array(all))) => {
            let all: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            let all = all.filter(|all| !all.iter().any(|one| one.contains(',')))?;
            (word, all.join(", ").into())
        }
        (word, Some(Value::Bool(on))) if kind == "boolean" => (word, on.to_string().into()),
        (word, Some(value)) => {
            let fits = match kind {
                "text" | "moment" => value.is_string(),
                "number" => value.is_number(),
                "boolean" => false,
                _ => !value.is_object() && !value.is_array(),
            };
            fits.then(|| (word, value.clone()))?
        }
        _ => return None,
    };
    let (_, words) = KINDS.iter().find(|(name, _)| *name == kind)?;
    words.iter().find(|(known, _)| *known == word)?;
    let mut row = json!({"field": field});
    row[format!("{kind}_is")] = word.into();
    row[kind] = value;
    Some(row)
}

/// What is filled in for a filter; nothing where the form cannot say it.
fn opened(fields: &Fields, filter: &str) -> Option<Value> {
    if filter.trim().is_empty() {
        return Some(json!({"join": "AND", "conditions": []}));
    }
    let filter: Value = serde_json::from_str(filter).ok()?;
    let members = filter.as_object()?;
    let (join, all) = match (members.get("AND"), members.get("OR")) {
        (Some(Value::Array(all)), None) if members.len() == 1 => ("AND", all.clone()),
        (None, Some(Value::Array(all))) if members.len() == 1 => ("OR", all.clone()),
        (None, None) if members.contains_key("field") => ("AND", vec![filter.clone()]),
        _ => {
            let short = members.iter();
            let short = short.map(|(field, value)| json!({"field": field, "value": value}));
            ("AND", short.collect())
        }
    };
    let rows: Option<Vec<Value>> = all.iter().map(|one| filled(fields, one)).collect();
    Some(json!({"join": join, "conditions": rows?}))
}

/// A filter in the making, one way or the other.
#[derive(Clone, Copy)]
struct Draft {
    fields: Memo<Vec<(String, String)>>,
    form: Form,
    json: RwSignal<String>,
    is_json: RwSignal<bool>,
    wrong: RwSignal<&'static str>,
}

impl Draft {
    fn new(about: Load) -> Self {
        Self {
            fields: Memo::new(move |_| fields_of(&about.good().unwrap_or_default())),
            form: Form::plain("filter"),
            json: RwSignal::new(String::new()),
            is_json: RwSignal::new(false),
            wrong: RwSignal::new(""),
        }
    }

    /// Shows a filter as conditions, where these can say it.
    fn open(self, filter: &str) {
        let rows = self.fields.with_untracked(|fields| {
            let rows = opened(fields, filter);
            rows.filter(|_| !fields.is_empty())
        });
        self.wrong.set("");
        self.is_json.set(rows.is_none());
        self.json.set(filter.to_owned());
        self.form.value.set(rows.unwrap_or_default());
        self.form.shape.update(|n| *n += 1);
    }

    /// The filter as it is now; nothing while something lacks.
    fn filter(self) -> Option<String> {
        if self.is_json.get_untracked() {
            return Some(self.json.get_untracked().trim().to_owned());
        }
        let value = self.form.value.get_untracked();
        let filter = self
            .fields
            .with_untracked(|fields| filter_of(fields, &value));
        if filter.is_none() {
            self.wrong.set("A condition lacks something.");
        }
        filter
    }

    /// From conditions to JSON, and back where these can say it.
    fn turn(self) {
        let Some(filter) = self.filter() else { return };
        match self.is_json.get_untracked() {
            true => {
                self.open(&filter);
                if self.is_json.get_untracked() {
                    self.wrong.set("Only JSON can say this.");
                }
            }
            false => {
                self.wrong.set("");
                self.json.set(filter);
                self.is_json.set(true);
            }
        }
    }

    fn view(self) -> AnyView {
        let shape = Memo::new(move |_| self.fields.with(|fields| shape(fields)));
        let conditions = move || {
            self.form.shape.track();
            shape.with(|shape| schema::fields(self.form, "", shape))
        };
        let inside = move || {
            match self.is_json.get() {
            true => view! {
                <Area id="filter" label="Filter (JSON)" value=self.json rows=6
                    hint="For example {\"AND\": [{\"field\": \"category\", \"operator\": \"eq\", \"value\": \"birds\"}]}, or {\"category\": \"birds\"}."/>
            }
            .into_any(),
            false => conditions.into_any(),
        }
        };
        let turn = move || match self.is_json.get() {
            true => "Put it together",
            false => "Write it as JSON",
        };
        view! {
            {inside}
            <p class="problem" role="alert">{move || self.wrong.get()}</p>
            <div><button type="button" class="btn small" on:click=move |_| self.turn()>{turn}</button></div>
        }
        .into_any()
    }
}

/// A button, and the dialog behind it.
#[component]
pub fn Narrow(
    filter: Query,
    sort: Query,
    /// The collection.
    about: Load,
) -> AnyView {
    let open = RwSignal::new(false);
    let draft = Draft::new(about);
    let (field, descending) = (RwSignal::new(String::new()), RwSignal::new(false));
    let show = move |_| {
        draft.open(&filter.value.get_untracked());
        let sort = sort.value.get_untracked();
        descending.set(sort.starts_with('-'));
        field.set(sort.trim_start_matches(['-', '+']).to_owned());
        open.set(true);
    };
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let Some(condition) = draft.filter() else {
            return;
        };
        let field = field.get_untracked();
        let order = if descending.get_untracked() { "-" } else { "+" };
        filter.set(&condition);
        sort.set(&if field.is_empty() {
            String::new()
        } else {
            format!("{order}{field}")
        });
        open.set(false);
    };
    let active = move || !filter.value.get().is_empty() || !sort.value.get().is_empty();
    view! {
        <button type="button" class="btn" on:click=show>{move || if active() { "Filter and sort (on)" } else { "Filter and sort" }}</button>
        <Modal open title="Filter and sort".to_owned() class="wide">
            <form class="form" on:submit=submit>
                {draft.view()}
                <Field id="sort" label="Sort by field" value=field/>
                <Check label="Largest first" checked=descending set=move |on| descending.set(on)/>
                <footer><button class="btn primary">"Apply"</button></footer>
            </form>
        </Modal>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_put_together_and_opened_again() {
        let fields = [
            ("title", "string"),
            ("year", "integer"),
            ("seen", "boolean"),
            ("tags", "array"),
        ]
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        let filter = json!({"OR": [
            {"field": "title", "operator": "in", "value": ["owl", "crow"]},
            {"field": "year", "operator": "gte", "value": 1999},
            {"field": "seen", "operator": "eq", "value": false},
            {"field": "tags", "operator": "exists", "value": false},
        ]});
        let rows = opened(&fields, &filter.to_string()).expect("conditions");
        let again = filter_of(&fields, &rows).expect("a filter");
        assert_eq!(serde_json::from_str::<Value>(&again).ok(), Some(filter));
        let short = opened(&fields, r#"{"title": "owl"}"#).expect("conditions");
        assert_eq!(short["conditions"][0]["text"], "owl");
        let none = opened(&fields, "").expect("conditions");
        assert_eq!(filter_of(&fields, &none).as_deref(), Some(""));
        for other in [
            r#"{"NOT": [{"title": "owl"}]}"#,
            r#"{"AND": [{"OR": []}]}"#,
            r#"{"field": "title", "operator": "regex", "value": "a"}"#,
            r#"{"place": "here"}"#,
            "{",
        ] {
            assert_eq!(opened(&fields, other), None, "{other}");
        }
        let half = json!({"join": "AND", "conditions": [{"field": "year", "number_is": "eq"}]});
        assert_eq!(filter_of(&fields, &half), None);
    }
}
