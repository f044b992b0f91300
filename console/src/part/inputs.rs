//! What a search asks for, as fields: each typed by the schema of the retriever.

use std::collections::BTreeMap;

use js_sys::Uint8Array;
use leptos::prelude::*;
use serde_json::{Map, Value};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::File;

use crate::record::{Record, plain};

/// What is typed, by the names of the inputs.
pub type Values = RwSignal<BTreeMap<String, String>>;

/// The inputs of a call: typed by the schema, absent where nothing was entered.
pub fn inputs(
    schema: &[(String, Record)],
    values: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, field) in schema {
        let Some(text) = values.get(name).filter(|text| !text.is_empty()) else {
            continue;
        };
        let value = match field.text("type").as_str() {
            "number" | "float" => number(text).unwrap_or_else(|| text.clone().into()),
            "integer" => text
                .parse::<i64>()
                .map(Value::from)
                .unwrap_or_else(|_| Value::from(text.clone())),
            "boolean" => Value::from(text == "true"),
            "array" | "object" => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.clone()))
            }
            _ => Value::from(text.clone()),
        };
        out.insert(name.clone(), value);
    }
    out
}

/// A number as people type it. JSON is read everywhere: a reader of numbers of its own would be 15 KB more.
fn number(text: &str) -> Option<Value> {
    let whole = match text.strip_prefix('-') {
        Some(rest) if rest.starts_with('.') => format!("-0{rest}"),
        None if text.starts_with('.') => format!("0{text}"),
        _ => text.to_owned(),
    };
    let number = serde_json::from_str(&whole).ok();
    number.filter(Value::is_number)
}

/// The fields as they are before anything is typed.
pub fn defaults(fields: &[(String, Record)]) -> Values {
    let all = fields.iter();
    let all = all.filter_map(|(name, f)| Some((name.clone(), f.opt("default")?)));
    RwSignal::new(all.collect())
}

/// The files that an input takes, if it takes any, as a chooser of files knows them.
fn files_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "image" => "image/*",
        "video" => "video/*",
        "audio" => "audio/*",
        "pdf" => "application/pdf",
        "file" | "blob" => "",
        _ => return None,
    })
}

/// A file as an address that is the file itself.
pub async fn data_url(file: &File) -> Option<String> {
    let bytes = JsFuture::from(file.array_buffer()).await.ok()?;
    let bytes = Uint8Array::new(&bytes).to_vec();
    // The browser takes bytes as letters.
    let letters: String = bytes.into_iter().map(char::from).collect();
    let text = window().btoa(&letters).ok()?;
    let media = match file.type_() {
        media if media.is_empty() => "application/octet-stream".to_owned(),
        media => media,
    };
    Some(format!("data:{media};base64,{text}"))
}

#[component]
pub fn Input(name: String, field: Record, values: Values) -> AnyView {
    let id = format!("in-{name}");
    let type_name = field.text("type");
    let kind = match type_name.as_str() {
        "number" | "float" | "integer" => "number",
        "date" => "date",
        _ => "text",
    };
    let mut choices: Vec<String> = field.list("enum").iter().map(|one| plain(&one.0)).collect();
    if type_name == "boolean" {
        choices = vec!["true".into(), "false".into()];
    }
    let set = {
        let name = name.clone();
        move |value: String| drop(values.try_update(|all| all.insert(name.clone(), value)))
    };
    let get = {
        let name = name.clone();
        move || values.with(|all| all.get(&name).cloned().unwrap_or_default())
    };
    let (required, now) = (field.flag("required"), untrack(&get));
    let control = match (choices.is_empty(), files_of(&type_name)) {
        (false, _) => view! {
            <select class="select" id=id.clone() prop:value=get on:change=move |e| set(event_target_value(&e))>
                <option value="">"–"</option>{options_of(choices, &now)}
            </select>
        }.into_any(),
        (true, Some(accept)) => file(&id, &name, accept, get, set),
        (true, None) => view! { <input class="input" id=id.clone() type=kind step="any" required=required prop:value=get on:input=move |e| set(event_target_value(&e)) autocomplete="off"/> }.into_any(),
    };
    view! { <div class="field"><label for=id.clone()>{name}{(!required).then_some(" (optional)")}</label>{control}{field.opt("description").map(|d| view! { <span class="hint">{d}</span> })}</div> }.into_any()
}

/// What can be chosen. A list takes its value from them as it is made: it has none of them before.
fn options_of(all: Vec<String>, now: &str) -> Vec<AnyView> {
    let all = all.into_iter().map(|one| {
        let selected = one == now;
        view! { <option value=one.clone() selected=selected>{one.clone()}</option> }.into_any()
    });
    all.collect()
}

/// A file is chosen, or told by its address. A chosen one is no text to be read.
fn file(
    id: &str,
    name: &str,
    accept: &'static str,
    get: impl Fn() -> String + Clone + Send + Sync + 'static,
    set: impl Fn(String) + Clone + 'static,
) -> AnyView {
    let address = {
        let get = get.clone();
        move || {
            Some(get())
                .filter(|now| !now.starts_with("data:"))
                .unwrap_or_default()
        }
    };
    let said = move || match get().starts_with("data:") {
        true => "The chosen file",
        false => "https://… or choose a file",
    };
    let typed = set.clone();
    let choose = move |event: leptos::ev::Event| {
        let chosen: web_sys::HtmlInputElement = event_target(&event);
        let file = chosen.files().and_then(|all| all.get(0));
        let set = set.clone();
        spawn_local(async move {
            if let Some(file) = file {
                set(data_url(&file).await.unwrap_or_default());
            }
        });
    };
    view! {
        <input class="input" id=id.to_owned() placeholder=said prop:value=address on:input=move |e| typed(event_target_value(&e)) autocomplete="off"/>
        <input type="file" accept=accept aria-label=format!("File for {name}") on:change=choose/>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_as_people_type_them() {
        for (typed, number) in [
            ("0.5", 0.5),
            (".5", 0.5),
            ("-.25", -0.25),
            ("3", 3.0),
            ("1e3", 1000.0),
        ] {
            assert_eq!(
                super::number(typed).and_then(|it| it.as_f64()),
                Some(number),
                "{typed}"
            );
        }
        assert_eq!(super::number("five"), None);
        assert_eq!(super::number("\"5\""), None);
    }

    #[test]
    fn inputs_have_the_types_of_the_schema() {
        let schema = Record(json!({"q": {"type": "string"}, "n": {"type": "integer"}, "on": {"type": "boolean"}, "no": {"type": "string"}})).members();
        let values = [("q", "owl"), ("n", "3"), ("on", "true"), ("no", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        assert_eq!(
            Value::from(inputs(&schema, &values)),
            json!({"q": "owl", "n": 3, "on": true})
        );
    }
}
