//! A form made from a JSON schema, for values whose shape the server tells: parameters of stages and of extractors.

use leptos::prelude::*;
use serde_json::{Map, Value};

use super::{Icon, Toasts};
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
    /// The start of every field's id.
    pub id: StoredValue<String>,
}

impl Form {
    pub fn new(id: String, value: Value, features: Signal<Vec<String>>) -> Self {
        Self {
            value: RwSignal::new(value),
            shape: RwSignal::new(0),
            features,
            id: StoredValue::new(id),
        }
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
    let typed = typed.trim();
    if typed.is_empty() {
        return Value::Null;
    }
    match schema.text("type").as_str() {
        "string" => typed.into(),
        "array" if texts(schema) => {
            let all = typed
                .split(',')
                .map(str::trim)
                .filter(|one| !one.is_empty());
            Value::from(all.collect::<Vec<_>>())
        }
        _ => serde_json::from_str(typed).unwrap_or_else(|_| typed.into()),
    }
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

/// The fields of an object: those that are needed or set at once, the others behind a fold.
pub fn fields(form: Form, path: &str, schema: &Record) -> AnyView {
    let needed = schema.strings("required");
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (name, field) in schema.record("properties").members() {
        let place = format!("{path}/{name}");
        let set = !form.get(&place).is_null();
        // What the server takes without heeding it, and second names, are not worth a field.
        let idle = ["Accepted", "The same as"];
        if !set
            && idle
                .iter()
                .any(|idle| field.text("description").starts_with(idle))
        {
            continue;
        }
        let view = one(form, &place, &name, &field, needed.contains(&name));
        match set || needed.contains(&name) {
            true => first.push(view),
            false => rest.push(view),
        }
    }
    if first.is_empty() && rest.len() < 9 {
        first.append(&mut rest);
    }
    let more = (!rest.is_empty()).then(|| {
        view! { <details class="more"><summary>"More settings"</summary><div class="form-grid">{rest}</div></details> }
    });
    view! { <div class="form-grid">{first}</div>{more} }.into_any()
}

fn one(form: Form, path: &str, name: &str, schema: &Record, needed: bool) -> AnyView {
    let id = format!("{}{}", form.id.get_value(), path.replace('/', "-"));
    let label = format!(
        "{}{}",
        text::words(name),
        if needed { " (required)" } else { "" }
    );
    let kind = schema.text("type");
    let has = |member: &str| schema.value(member).is_some();
    let inside = match kind.as_str() {
        "boolean" => return yes_or_no(form, path, &label, schema),
        "array" if !texts(schema) && schema.record("items").text("type") == "object" => {
            return list(form, path, name, &schema.record("items"));
        }
        "object" if schema.text("format") == "query" => return query(form, path),
        "object" if has("properties") => {
            return group(text::words(name), fields(form, path, schema));
        }
        _ if has("enum") => pick(form, path, &id, schema, schema.strings("enum")),
        "string" if name.ends_with("feature_uri") => {
            pick(form, path, &id, schema, form.features.get())
        }
        _ => typed(form, path, &id, schema),
    };
    let hint = schema.text("description");
    let note = (!hint.is_empty())
        .then(|| view! { <span class="hint" id=format!("{id}-hint")>{hint}</span> });
    view! { <div class="field"><label for=id>{label}</label>{inside}{note}</div> }.into_any()
}

/// Fields that belong together.
fn group(label: String, inside: AnyView) -> AnyView {
    view! { <fieldset class="group"><legend>{label}</legend>{inside}</fieldset> }.into_any()
}

fn yes_or_no(form: Form, path: &str, label: &str, schema: &Record) -> AnyView {
    let default = schema.flag("default");
    let on = form.get(path).as_bool().unwrap_or(default);
    let path = path.to_owned();
    let set = move |event| {
        let on = event_target_checked(&event);
        form.set(
            &path,
            if on == default {
                Value::Null
            } else {
                on.into()
            },
        );
    };
    let label = label.to_owned();
    view! {
        <label class="check">
            <input type="checkbox" prop:checked=on on:change=set/>
            <span>{label}<span class="hint">{schema.text("description")}</span></span>
        </label>
    }
    .into_any()
}

fn pick(form: Form, path: &str, id: &str, schema: &Record, mut all: Vec<String>) -> AnyView {
    let now = show(&form.get(path));
    if !now.is_empty() && !all.contains(&now) {
        all.push(now.clone());
    }
    let default = match schema.opt("default") {
        Some(default) => format!("{default} (default)"),
        None => "none".into(),
    };
    let options = all.into_iter().map(|one| {
        let (selected, value) = (one == now, one.clone());
        view! { <option value=value selected=selected>{one}</option> }.into_any()
    });
    let path = path.to_owned();
    let set = move |event| {
        form.set(
            &path,
            read(
                &Record(serde_json::json!({"type": "string"})),
                &event_target_value(&event),
            ),
        )
    };
    view! {
        <select class="select" id=id.to_owned() aria-describedby=format!("{id}-hint") on:change=set>
            <option value="">{default}</option>{options.collect::<Vec<_>>()}
        </select>
    }
    .into_any()
}

fn typed(form: Form, path: &str, id: &str, schema: &Record) -> AnyView {
    let now = show(&form.get(path));
    let many = schema.text("type") == "object" || now.contains('\n');
    let default = schema.opt("default").filter(|default| default != "[]");
    let (path, kind) = (path.to_owned(), schema.clone());
    let set = move |event| form.set(&path, read(&kind, &event_target_value(&event)));
    let about = format!("{id}-hint");
    let id = id.to_owned();
    if many {
        return view! { <textarea class="textarea code" id=id rows="4" spellcheck="false" aria-describedby=about placeholder="{ }" prop:value=now on:change=set></textarea> }.into_any();
    }
    view! {
        <input class="input" id=id prop:value=now placeholder=default list="templates" autocomplete="off" spellcheck="false" aria-describedby=about
            on:input=set/>
    }
    .into_any()
}

/// What is searched for: words, or the likeness of a document; anything else as JSON.
fn query(form: Form, path: &str) -> AnyView {
    let mode_path = format!("{path}/input_mode");
    let mode = show(&form.get(&mode_path));
    let modes = [
        ("text", "Words"),
        ("content", "A picture or file by its address"),
        ("document", "Documents like a document"),
        ("vector", "A vector"),
    ];
    let options = modes.map(|(one, label)| {
        view! { <option value=one selected={mode == one}>{label}</option> }.into_any()
    });
    let id = format!("{}{}", form.id.get_value(), path.replace('/', "-"));
    let place = match mode.as_str() {
        "document" => format!("{path}/document_ref/document_id"),
        _ => format!("{path}/value"),
    };
    let schema = Record(match mode.as_str() {
        "vector" => serde_json::json!({}),
        _ => serde_json::json!({"type": "string"}),
    });
    let choose = {
        let path = path.to_owned();
        move |event| {
            form.reshape(
                &path,
                serde_json::json!({"input_mode": event_target_value(&event)}),
            )
        }
    };
    let label = match mode.as_str() {
        "document" => "id of the document",
        "vector" => "numbers",
        _ => "what to search for",
    };
    let value = format!("{id}-value");
    view! {
        <div class="field"><label for=id.clone()>"query by"</label><select class="select" id=id on:change=choose>{Vec::from(options)}</select></div>
        <div class="field"><label for=value.clone()>{label}</label>{typed(form, &place, &value, &schema)}
            <span class="hint" id=format!("{value}-hint")>"Text, or an input such as {{INPUT.query}}"</span></div>
    }
    .into_any()
}

/// Objects in order: each can be taken out, and another added.
fn list(form: Form, path: &str, name: &str, item: &Record) -> AnyView {
    let toasts: Toasts = expect_context();
    let now = form.get(path).as_array().cloned().unwrap_or_default();
    let single = text::words(name.trim_end_matches("es").trim_end_matches('s'));
    let items = (0..now.len()).map(|n| {
        let place = format!("{path}/{n}");
        let (path, now, said) = (path.to_owned(), now.clone(), single.clone());
        let take = move |_| {
            let mut now = now.clone();
            now.remove(n);
            form.reshape(&path, if now.is_empty() { Value::Null } else { now.into() });
            toasts.say(format!("{said} {} removed", n + 1));
        };
        view! {
            <fieldset class="group">
                <legend>{format!("{single} {}", n + 1)}</legend>
                <button type="button" class="btn ghost icon small corner" aria-label=format!("Remove {single} {}", n + 1) on:click=take><Icon name="close"/></button>
                {fields(form, &place, item)}
            </fieldset>
        }
        .into_any()
    });
    let items = items.collect::<Vec<_>>();
    let add = {
        let path = path.to_owned();
        move |_| {
            let mut now = now.clone();
            now.push(Value::Object(Map::new()));
            form.reshape(&path, now.into());
        }
    };
    view! {
        <div class="whole stack-sm">
            {items}
            <div><button type="button" class="btn small" on:click=add><Icon name="plus" size=14/>{format!("Add a {single}")}</button></div>
        </div>
    }
    .into_any()
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
        assert_eq!(read(&kind("string"), "  "), Value::Null);
        assert_eq!(read(&Record::default(), "true"), json!(true));
    }

    #[test]
    fn defaults_make_a_schema() {
        let schema = schema_of(&Record(json!({"n": 3, "x": 0.5, "on": true, "s": "a"})));
        let kinds = schema.record("properties").members();
        let kinds: Vec<_> = kinds.iter().map(|(_, field)| field.text("type")).collect();
        assert_eq!(kinds, ["integer", "number", "boolean", "string"]);
    }
}
