//! A new key: what it may do, in words, before it exists. And a key that is there, in the same words.

mod draft;
mod picking;

pub use draft::level;

use leptos::prelude::*;
use serde_json::json;

use self::{
    draft::{Draft, EXPIRIES, LEVELS, NEW_EXPIRIES, OPERATIONS, RESOURCES, Scope, sentence},
    picking::offers,
};
use super::keys::{holder, keys_path};
use crate::{
    load::{Change, Load, Query},
    part::*,
    record::Record,
    session::use_session,
    text,
};

#[component]
pub fn KeyForm(
    open: RwSignal<bool>,
    secret: RwSignal<Option<(String, String)>>,
    load: Load,
    user: Query,
) -> AnyView {
    let session = use_session();
    let (draft, change) = (Draft::new(), Change::new());
    Effect::new(move |_| {
        // The signals of resources go with the dialog that they were added in.
        if !open.get() {
            draft.scopes.set(Vec::new());
        }
    });
    let submit = Callback::new(move |()| {
        let (api, holder) = (session.api(), untrack(|| holder(session, user)));
        let body = untrack(|| draft.body());
        let name = draft.name.get_untracked();
        let call = async move { api.post(&keys_path(&holder?), &body).await };
        change.run(call, move |made| {
            open.set(false);
            draft.clear();
            load.reload();
            secret.set(Some((name, made.text("key"))));
        });
    });
    let curl = Signal::derive(move || {
        let path = holder(session, user).map_or_else(|_| String::new(), |email| keys_path(&email));
        let origin = window().location().origin().unwrap_or_default();
        text::curl(&origin, None, &path, &draft.body())
    });
    view! {
        <Ask open title="Create an API key".to_owned() class="wide" label="Create key" change submit>
            {called(draft)}
            {levels(draft)}
            {scopes(draft)}
            {bounds(draft, &EXPIRIES)}
            <details class="more"><summary>"For browsers and for end users"</summary>
                <div class="form-row">
                    {origins(draft)}
                    <Field id="key-principal" label="Documents of one principal only" value=draft.principal placeholder="user-42" hint="The key sees what this principal owns or was granted."/>
                </div>
            </details>
            <p class="notice" role="status">{move || sentence(&draft.body())}</p>
            <div><Copy text=curl label="Copy as curl"/></div>
        </Ask>
    }
    .into_any()
}

/// Changes what a key may do; its secret stays.
#[component]
pub fn KeyChange(open: RwSignal<bool>, key: RwSignal<Record>, load: Load, user: Query) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let (draft, change) = (Draft::new(), Change::new());
    Effect::new(move |_| match open.get() {
        true => key.with_untracked(|key| draft.fill(key)),
        // The signals of its resources go with this run, and the next key has rows of its own.
        false => draft.clear(),
    });
    let fixed = Signal::derive(move || key.get().text("key_type") == "retriever");
    let submit = Callback::new(move |()| {
        let body = untrack(|| draft.change(&key.get(), fixed.get()));
        if body == json!({}) {
            open.set(false);
            return;
        }
        let (api, holder) = (session.api(), untrack(|| holder(session, user)));
        let name = text::escape(&key.get_untracked().text("name"));
        let call = async move {
            api.patch(&format!("{}/{name}", keys_path(&holder?)), &body)
                .await
        };
        change.run(call, move |changed| {
            open.set(false);
            load.reload();
            toasts.say(format!(
                "{} is changed, from the next call on",
                changed.text("name")
            ));
        });
    });
    // The key as it would be: what is not sent stays.
    let told = move || {
        let key = key.get();
        let body = draft.change(&key, fixed.get());
        let mut after = key.0;
        for (member, value) in body.as_object().into_iter().flatten() {
            after[member.as_str()] = value.clone();
        }
        sentence(&after)
    };
    let title = Signal::derive(move || format!("Change {}", key.get().text("name")));
    view! {
        <Ask open title class="wide" label="Save" change submit>
            {called(draft)}
            {move || match fixed.get() {
                true => view! { <p class="muted">"What it may do is fixed: it executes one retriever."</p> }.into_any(),
                false => view! { {levels(draft)}{scopes(draft)} }.into_any(),
            }}
            {bounds(draft, &NEW_EXPIRIES)}
            {origins(draft)}
            <p class="notice" role="status">{told}</p>
        </Ask>
    }
    .into_any()
}

fn called(draft: Draft) -> AnyView {
    view! {
        <div class="form-row">
            <Field id="key-name" label="Name" value=draft.name required=true placeholder="ci-ingest" hint="One of a kind among the keys in use."/>
            <Field id="key-note" label="Note" value=draft.note placeholder="who uses it, and where"/>
        </div>
    }
    .into_any()
}

fn bounds(draft: Draft, expiries: &[(&str, &str)]) -> AnyView {
    let expiries = expiries.iter();
    let expiries = expiries.map(|(value, label)| ((*value).to_owned(), (*label).to_owned()));
    let expiries: Vec<_> = expiries.collect();
    view! {
        <div class="form-row">
            <Choice id="key-expiry" label="Expires" value=draft.days options=expiries/>
            <Field id="key-cap" label="Requests a minute at most" value=draft.cap kind="number" placeholder="as the plan"/>
        </div>
    }
    .into_any()
}

fn origins(draft: Draft) -> AnyView {
    view! { <Field id="key-origins" label="Pages that may use it" value=draft.origins placeholder="https://shop.example, https://*.shop.example" hint="Origins, separated by commas; empty allows every one."/> }
        .into_any()
}

fn levels(draft: Draft) -> AnyView {
    let all = LEVELS.map(|(value, label, effect, _)| {
        let on = move || draft.level.get() == value;
        view! {
            <label class="check option">
                <input type="radio" name="key-level" prop:checked=on on:change=move |_| draft.level.set(value)/>
                <span>{label}<span class="hint">{effect}</span></span>
            </label>
        }
        .into_any()
    });
    view! { <fieldset><legend class="label">"This key can"</legend><div class="options">{Vec::from(all)}</div></fieldset> }.into_any()
}

fn scopes(draft: Draft) -> AnyView {
    let add = move |_| {
        draft.scopes.update(|all| {
            let at = all.iter().map(|one| one.at + 1).max().unwrap_or(0);
            all.push(Scope::new(
                at,
                "namespace".into(),
                String::new(),
                Vec::new(),
            ));
        });
    };
    let none = move || {
        draft
            .scopes
            .with(Vec::is_empty)
            .then_some("Everywhere in the organization.")
    };
    view! {
        <fieldset class="stack-sm">
            <legend class="label">"Where"</legend>
            <p class="muted">{none}</p>
            <For each=move || draft.scopes.get() key=|one| one.at children=move |one| scope(draft, one)/>
            <div><button type="button" class="btn small add-scope" on:click=add><Icon name="plus" size=14/>"Hold it to a resource"</button></div>
        </fieldset>
    }
    .into_any()
}

fn scope(draft: Draft, one: Scope) -> AnyView {
    let now = one.kind.get_untracked();
    let kinds = RESOURCES.map(|kind| {
        let selected = kind == now;
        view! { <option value=kind selected=selected>{text::words(kind)}</option> }.into_any()
    });
    let operations = OPERATIONS.map(|operation| {
        let set = move |on| {
            one.operations.update(|all| {
                all.retain(|one| *one != operation);
                if on {
                    all.push(operation);
                }
            })
        };
        view! { <Check label=text::words(operation) checked=Signal::derive(move || one.operations.with(|all| all.contains(&operation))) set/> }.into_any()
    });
    let known = format!("scope-ids-{}", one.at);
    let take = move |_| {
        draft.scopes.update(|all| all.retain(|s| s.at != one.at));
        schema::lead("dialog[open] .add-scope".to_owned());
    };
    view! {
        <div class="scope">
            <div class="schema-row scope-row">
                <select class="select" aria-label="Kind of resource" on:change=move |e| one.kind.set(event_target_value(&e))>{Vec::from(kinds)}</select>
                <input class="input" aria-label="Id, or the start of ids and *" placeholder="an id, films-* or *" list=known.clone() bind:value=one.id required=true autocomplete="off" spellcheck="false"/>
                <button type="button" class="btn ghost icon" aria-label="Remove this resource" on:click=take><Icon name="close"/></button>
            </div>
            {offers(known, one.kind)}
            <details class="more"><summary>"Only some operations"</summary><div class="options">{Vec::from(operations)}</div></details>
        </div>
    }
    .into_any()
}
