//! The fields of a form, each as its schema wants it.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use serde_json::{Map, Value};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::spawn_local;

use super::{DrawInputs, Form, applies, beside, is_lines, read, show, texts};
use crate::{
    part::{Check, Icon, Toasts},
    record::{Record, plain},
    text,
};

/// The fields of an object: those that are needed or set at once, the others behind a fold. Schemas of the console itself
/// are `plain`: all at once but what is `more`.
pub fn fields(form: Form, path: &str, schema: &Record) -> AnyView {
    let needed = schema.strings("required");
    let plain = schema.flag("plain");
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (name, field) in schema.record("properties").members() {
        if !applies(form, path, &field) {
            continue;
        }
        let place = format!("{path}/{name}");
        let (held, more) = (form.get(&place), field.flag("more"));
        // The server tells defaults, too: they are nothing that somebody set.
        let told = more && field.value("default") == Some(&held);
        let set = !held.is_null() && !told;
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
        match set || needed.contains(&name) || (plain && !more) {
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
    let label = match schema.opt("title") {
        Some(title) => title,
        None if needed => format!("{} (required)", text::words(name)),
        None => text::words(name),
    };
    let kind = schema.text("type");
    let has = |member: &str| schema.value(member).is_some();
    if schema.text("format") == "inputs"
        && let Some(draw) = use_context::<DrawInputs>()
        && let Some(inside) = draw.0(form, path)
    {
        return group(label, inside);
    }
    let inside = match kind.as_str() {
        "boolean" => return yes_or_no(form, path, &label, schema),
        "array" if !texts(schema) && schema.record("items").text("type") == "object" => {
            return list(form, path, name, &schema.record("items"));
        }
        "object" if schema.text("format") == "query" => return query(form, path),
        "array" if is_chosen(&schema.record("items")) => {
            let inside = several(form, path, &schema.record("items"));
            let hint = schema.opt("description");
            let hint = hint.map(|hint| view! { <span class="hint">{hint}</span> });
            let fault = form.faults.told(place_of(path), format!("{id}-fault"));
            return group(label, view! { {inside}{hint}{fault} }.into_any());
        }
        // A group of the body that is none for the reader.
        "object" if schema.flag("plain") && !has("title") => return fields(form, path, schema),
        "object" if has("properties") => return group(label, fields(form, path, schema)),
        _ if has("enum") || has("of") => pick(form, path, &id, schema, options(form, schema)),
        "string" if name.ends_with("feature_uri") => {
            let all = form
                .features
                .get()
                .into_iter()
                .map(|uri| (uri.clone(), uri));
            pick(form, path, &id, schema, all.collect())
        }
        _ => typed(form, path, &id, schema),
    };
    let hint = schema.text("description");
    let note = (!hint.is_empty())
        .then(|| view! { <span class="hint" id=format!("{id}-hint")>{hint}</span> });
    let fault = form.faults.told(place_of(path), format!("{id}-fault"));
    view! { <div class="field"><label for=id>{label}</label>{inside}{note}{fault}</div> }.into_any()
}

/// Whether the values of a list are ticked among those that there are.
fn is_chosen(items: &Record) -> bool {
    items.value("of").is_some() || items.value("enum").is_some()
}

/// A field's place as refusals name it.
fn place_of(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}

/// What says more about a field: its hint, and what was refused of it.
fn about(id: &str) -> String {
    format!("{id}-hint {id}-fault")
}

/// Leads to the first place of a selector, once what changed is drawn.
pub fn lead(selector: String) {
    spawn_local(async move {
        TimeoutFuture::new(0).await;
        let found = document().query_selector(&selector).ok().flatten();
        if let Some(found) = found.and_then(|one| one.dyn_into::<web_sys::HtmlElement>().ok()) {
            let _ = found.focus();
        }
    });
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

/// What can be chosen, and under which words.
fn options(form: Form, schema: &Record) -> Vec<(String, String)> {
    if let Some(of) = schema.opt("of") {
        let all = form.choices.with_untracked(|all| all.list(&of));
        let pair = |one: Record| (one.text("id"), one.text("name"));
        return all.into_iter().map(pair).collect();
    }
    let names = schema.strings("names");
    let all = schema.strings("enum").into_iter().enumerate();
    all.map(|(at, one)| (one.clone(), names.get(at).cloned().unwrap_or(one)))
        .collect()
}

fn pick(
    form: Form,
    path: &str,
    id: &str,
    schema: &Record,
    mut all: Vec<(String, String)>,
) -> AnyView {
    let now = show(&form.get(path));
    if !now.is_empty() && !all.iter().any(|(one, _)| *one == now) {
        all.push((now.clone(), now.clone()));
    }
    let must = schema.flag("must");
    let default = match schema.opt("default") {
        Some(default) => format!("{default} (default)"),
        None if must => "Choose one".into(),
        None => "none".into(),
    };
    // What has to have a value, and has one, cannot be left without; some give none a name of their own.
    let named = all.iter().any(|(one, _)| one.is_empty());
    if !named && (!must || now.is_empty()) {
        all.insert(0, (String::new(), default));
    }
    let options = all.into_iter().map(|(one, label)| {
        let selected = one == now;
        view! { <option value=one selected=selected>{label}</option> }.into_any()
    });
    let (place, faults) = (place_of(path), form.faults);
    let (path, resets) = (path.to_owned(), schema.value("resets").is_some());
    let (members, own) = (schema.strings("resets"), format!("#{id}"));
    // Groups of fields are left empty; what is one field goes.
    let cleared = schema.strings("clears");
    let set = move |event| {
        let chosen = event_target_value(&event);
        let value = if chosen.is_empty() {
            Value::Null
        } else {
            chosen.into()
        };
        form.set(&path, value);
        if resets {
            let (above, _) = path.rsplit_once('/').unwrap_or_default();
            for member in &members {
                form.set(&beside(above, member), Value::Object(Map::new()));
            }
            for member in &cleared {
                form.set(&beside(above, member), Value::Null);
            }
            form.shape.update(|n| *n += 1);
            // The fields are made anew, and one goes on where one was.
            lead(own.clone());
        }
    };
    view! {
        <select class="select" id=id.to_owned() aria-describedby=about(id) aria-invalid=move || faults.mark(&place) required=must on:change=set>
            {options.collect::<Vec<_>>()}
        </select>
    }
    .into_any()
}

/// Any number of words, in lines by what comes before the first dot.
fn several(form: Form, path: &str, items: &Record) -> AnyView {
    let held = form.get(path);
    let held: Vec<String> = crate::record::items(&held)
        .iter()
        .map(|one| plain(&one.0))
        .collect();
    let mut lines: Vec<(String, Vec<AnyView>)> = Vec::new();
    let (start, resets) = (form.id.get_value(), items.flag("resets"));
    for (word, named) in options(form, items) {
        // Names of things are no words with dots in them.
        let (kind, rest) = match word.split_once('.') {
            Some(pair) if named == word => pair,
            _ => ("", word.as_str()),
        };
        let checked = Signal::stored(held.contains(&word));
        let label = match named == word {
            true => text::words(&rest.replace('.', " ")),
            false => named,
        };
        let (path, one) = (path.to_owned(), word.clone());
        let id = format!("{start}{}-{word}", path.replace('/', "-"));
        let own = format!("[id=\"{id}\"]");
        let set = move |on: bool| {
            let mut now = form.get(&path).as_array().cloned().unwrap_or_default();
            now.retain(|held| held != &one);
            if on {
                now.push(one.clone().into());
            }
            form.set(&path, now.into());
            if resets {
                form.shape.update(|n| *n += 1);
                lead(own.clone());
            }
        };
        let check = view! { <Check id label checked set/> }.into_any();
        match lines.last_mut().filter(|(last, _)| last == kind) {
            Some((_, checks)) => checks.push(check),
            None => lines.push((kind.to_owned(), vec![check])),
        }
    }
    if lines.is_empty() {
        return view! { <span class="hint">"There is none to choose yet."</span> }.into_any();
    }
    let class = match items.value("of") {
        Some(_) => "several names",
        None => "several",
    };
    let lines = lines.into_iter().map(|(kind, checks)| {
        let label = text::words(&kind);
        view! { <div class=class role="group" aria-label=label><span class="muted" aria-hidden="true">{text::words(&kind)}</span><div class="row">{checks}</div></div> }.into_any()
    });
    lines.collect::<Vec<_>>().into_any()
}

fn typed(form: Form, path: &str, id: &str, schema: &Record) -> AnyView {
    let held = form.get(path);
    let prose = is_lines(schema) || schema.text("format") == "text";
    let now = match &held {
        Value::Array(all) if prose => all.iter().map(plain).collect::<Vec<_>>().join("\n"),
        held => show(held),
    };
    let many = schema.text("type") == "object" || now.contains('\n');
    let default = schema.opt("default").filter(|default| default != "[]");
    let (place, faults) = (place_of(path), form.faults);
    let wrong = move || faults.mark(&place);
    let (path, like) = (path.to_owned(), schema.clone());
    let set = move |event| form.set(&path, read(&like, &event_target_value(&event)));
    let about = about(id);
    let (id, must) = (id.to_owned(), schema.flag("must"));
    let placeholder = default.or_else(|| schema.opt("example"));
    let kind = match schema.text("format").as_str() {
        "password" => "password",
        "url" => "url",
        _ => "text",
    };
    if prose {
        return view! { <textarea class="textarea" id=id rows="4" aria-describedby=about aria-invalid=wrong required=must prop:value=now on:input=set></textarea> }.into_any();
    }
    if many {
        return view! { <textarea class="textarea code" id=id rows="4" spellcheck="false" aria-describedby=about aria-invalid=wrong placeholder="{ }" prop:value=now on:change=set></textarea> }.into_any();
    }
    view! {
        <input class="input" id=id type=kind prop:value=now placeholder=placeholder required=must list="templates" autocomplete="off" spellcheck="false"
            aria-describedby=about aria-invalid=wrong on:input=set/>
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

/// The objects of a list as they are by now.
fn held(form: Form, path: &str) -> Vec<Value> {
    form.get(path).as_array().cloned().unwrap_or_default()
}

/// Objects in order: each can be taken out, and another added; those that are `ordered` can be moved.
fn list(form: Form, path: &str, name: &str, item: &Record) -> AnyView {
    let single = item
        .opt("title")
        .unwrap_or_else(|| text::words(name.trim_end_matches("es").trim_end_matches('s')));
    let id = format!("{}{}", form.id.get_value(), path.replace('/', "-"));
    let items = 0..held(form, path).len();
    let items: Vec<_> = items
        .map(|n| entry(form, path, (id.as_str(), n), &single, item))
        .collect();
    let article = match single.starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    };
    let add = {
        let (path, id) = (path.to_owned(), id.clone());
        let first = item.value("default").cloned();
        move |_| {
            let mut now = held(form, &path);
            now.push(first.clone().unwrap_or_else(|| Value::Object(Map::new())));
            lead(format!(
                "#{id}-{} :is(input, select, textarea)",
                now.len() - 1
            ));
            form.reshape(&path, now.into());
        }
    };
    view! {
        <div class="whole stack-sm">
            {items}
            <div><button type="button" class="btn small" id=format!("{id}-add") on:click=add><Icon name="plus" size=14/>{format!("Add {article} {single}")}</button></div>
        </div>
    }
    .into_any()
}

/// One of the objects: the list's id and its own number.
fn entry(form: Form, path: &str, (id, n): (&str, usize), single: &str, item: &Record) -> AnyView {
    let toasts: Toasts = expect_context();
    let said = format!("{single} {}", n + 1);
    let take = {
        let (path, id, said) = (path.to_owned(), id.to_owned(), said.clone());
        move |_| {
            let mut now = held(form, &path);
            if n < now.len() {
                now.remove(n);
            }
            let left = if now.is_empty() {
                Value::Null
            } else {
                now.into()
            };
            form.reshape(&path, left);
            lead(format!("#{id}-add"));
            toasts.say(format!("{said} removed"));
        }
    };
    let up = (n > 0 && item.flag("ordered")).then(|| {
        let (path, id) = (path.to_owned(), id.to_owned());
        let rise = move |_| {
            let mut now = held(form, &path);
            if n < now.len() {
                now.swap(n - 1, n);
            }
            form.reshape(&path, now.into());
            lead(format!("#{id}-{} :is(.corner + .corner, input)", n - 1));
        };
        view! { <button type="button" class="btn ghost icon small corner" aria-label=format!("Move {said} up") on:click=rise><Icon name="up"/></button> }
    });
    view! {
        <fieldset class="group" id=format!("{id}-{n}")>
            <legend>{said.clone()}</legend>
            <button type="button" class="btn ghost icon small corner" aria-label=format!("Remove {said}") on:click=take><Icon name="close"/></button>
            {up}
            {fields(form, &format!("{path}/{n}"), item)}
        </fieldset>
    }
    .into_any()
}
