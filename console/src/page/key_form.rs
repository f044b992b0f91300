//! A new key: what it may do, in words, before it exists.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::keys::{holder, keys_path};
use crate::{
    load::{Change, Load, Query},
    part::*,
    session::use_session,
    text,
};

/// A level, what it is called, what a person may expect of it, what is sent: a level contains the ones below.
const LEVELS: [(&str, &str, &str, &[&str]); 4] = [
    (
        "read",
        "Read",
        "List, open and search. Changes nothing.",
        &["read"],
    ),
    (
        "write",
        "Write",
        "Also upload, process, create and change.",
        &["read", "write"],
    ),
    (
        "delete",
        "Delete",
        "Also remove files, collections and retrievers.",
        &["read", "write", "delete"],
    ),
    (
        "admin",
        "Admin",
        "Everything, with users, keys and settings.",
        &["admin"],
    ),
];

const EXPIRIES: [(&str, &str); 5] = [
    ("", "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];

/// What a key can be held to.
const RESOURCES: [&str; 6] = [
    "namespace",
    "bucket",
    "collection",
    "retriever",
    "document",
    "user",
];

const OPERATIONS: [&str; 9] = [
    "read_data",
    "write_data",
    "delete_data",
    "execute_retriever",
    "create_retriever",
    "delete_retriever",
    "execute_job",
    "cancel_job",
    "manage_permissions",
];

/// A resource that the key is held to.
#[derive(Clone, Copy)]
struct Scope {
    at: usize,
    kind: RwSignal<String>,
    id: RwSignal<String>,
    operations: RwSignal<Vec<&'static str>>,
}

/// What is filled in.
#[derive(Clone, Copy)]
struct Draft {
    name: RwSignal<String>,
    note: RwSignal<String>,
    level: RwSignal<&'static str>,
    days: RwSignal<String>,
    scopes: RwSignal<Vec<Scope>>,
    origins: RwSignal<String>,
    cap: RwSignal<String>,
    principal: RwSignal<String>,
}

fn empty() -> RwSignal<String> {
    RwSignal::new(String::new())
}

fn list(typed: &str) -> Vec<&str> {
    let all = typed.split([',', '\n', ' ']).map(str::trim);
    all.filter(|one| !one.is_empty()).collect()
}

impl Draft {
    fn new() -> Self {
        Self {
            name: empty(),
            note: empty(),
            level: RwSignal::new("read"),
            days: empty(),
            scopes: RwSignal::new(Vec::new()),
            origins: empty(),
            cap: empty(),
            principal: empty(),
        }
    }

    fn clear(self) {
        for text in [
            self.name,
            self.note,
            self.days,
            self.origins,
            self.cap,
            self.principal,
        ] {
            text.set(String::new());
        }
        self.level.set("read");
        self.scopes.set(Vec::new());
    }

    fn scopes(self) -> Vec<Value> {
        let all = self
            .scopes
            .get()
            .into_iter()
            .filter(|one| !one.id.get().trim().is_empty());
        all.map(|one| {
            let mut scope =
                json!({"resource_type": one.kind.get(), "resource_id": one.id.get().trim()});
            if !one.operations.with(Vec::is_empty) {
                scope["operations"] = one.operations.get().into();
            }
            scope
        })
        .collect()
    }

    /// What is sent; members that say nothing are left out.
    fn body(self) -> Value {
        let level = self.level.get();
        let permissions = LEVELS.iter().find(|one| one.0 == level).map(|one| one.3);
        let mut body = json!({"name": self.name.get().trim(), "permissions": permissions});
        for (member, text) in [("description", self.note), ("principal_id", self.principal)] {
            if !text.get().trim().is_empty() {
                body[member] = text.get().trim().into();
            }
        }
        if let Ok(days) = self.days.get().parse::<f64>() {
            body["expires_at"] = text::before(-days).into();
        }
        if let Ok(cap) = self.cap.get().trim().parse::<i64>() {
            body["rate_limit_override"] = cap.into();
        }
        let (scopes, origins) = (self.scopes(), self.origins.get());
        if !scopes.is_empty() {
            body["scopes"] = scopes.into();
        }
        if !list(&origins).is_empty() {
            body["allowed_origins"] = list(&origins).into();
        }
        body
    }
}

/// The key in a sentence, from what would be sent.
fn sentence(body: &Value) -> String {
    let level = body["permissions"].as_array().and_then(|all| all.last());
    let can = match level.and_then(Value::as_str) {
        Some("admin") => "do everything, with users, keys and settings",
        Some("delete") => "read, change and remove",
        Some("write") => "read and change",
        _ => "read and search",
    };
    let name = |scope: &Value| {
        let (kind, id) = (
            text::words(scope["resource_type"].as_str().unwrap_or("")),
            scope["resource_id"].as_str().unwrap_or(""),
        );
        match id.strip_suffix('*') {
            Some("") => format!("every {kind}"),
            Some(start) => format!("every {kind} that starts with {start}"),
            None => format!("the {kind} {id}"),
        }
    };
    let within = body["scopes"]
        .as_array()
        .map(|all| all.iter().map(name).collect::<Vec<_>>().join(" and "));
    let mut out = format!(
        "This key can {can}, in {}",
        within.unwrap_or_else(|| "the whole organization".into())
    );
    if let Some(id) = body["principal_id"].as_str() {
        out += &format!(", but sees only documents that {id} owns or was granted");
    }
    if let Some(all) = body["allowed_origins"].as_array() {
        let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        out += &format!(", from pages of {}", all.join(", "));
    }
    if let Some(cap) = body["rate_limit_override"].as_i64() {
        out += &format!(", at most {} a minute", text::counted(cap, "time", "times"));
    }
    match body["expires_at"].as_str() {
        Some(at) => out += &format!(", until {}.", text::moment(at)),
        None => out += ", until it is revoked.",
    }
    out
}

#[component]
pub fn KeyForm(
    open: RwSignal<bool>,
    secret: RwSignal<Option<(String, String)>>,
    load: Load,
    user: Query,
) -> AnyView {
    let session = use_session();
    let (draft, change) = (Draft::new(), Change::new());
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
    let expiries = EXPIRIES.map(|(value, label)| (value.to_owned(), label.to_owned()));
    let expiries = StoredValue::new(expiries.to_vec());
    view! {
        <Ask open title="Create an API key".to_owned() class="wide" label="Create key" change submit>
            <div class="form-row">
                <Field id="key-name" label="Name" value=draft.name required=true placeholder="ci-ingest" hint="One of a kind among the keys in use."/>
                <Field id="key-note" label="Note" value=draft.note placeholder="who uses it, and where"/>
            </div>
            {levels(draft)}
            {scopes(draft)}
            <div class="form-row">
                <Choice id="key-expiry" label="Expires" value=draft.days options=expiries.get_value()/>
                <Field id="key-cap" label="Requests a minute at most" value=draft.cap kind="number" placeholder="as the plan"/>
            </div>
            <details class="more"><summary>"For browsers and for end users"</summary>
                <div class="form-row">
                    <Field id="key-origins" label="Pages that may use it" value=draft.origins placeholder="https://shop.example, https://*.shop.example" hint="Origins, separated by commas; empty allows every one."/>
                    <Field id="key-principal" label="Documents of one principal only" value=draft.principal placeholder="user-42" hint="The key sees what this principal owns or was granted."/>
                </div>
            </details>
            <p class="notice" role="status">{move || sentence(&draft.body())}</p>
            <div><Copy text=curl label="Copy as curl"/></div>
        </Ask>
    }
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
    let next = StoredValue::new(0usize);
    let add = move |_| {
        next.update_value(|n| *n += 1);
        let scope = Scope {
            at: next.get_value(),
            kind: RwSignal::new("namespace".into()),
            id: empty(),
            operations: RwSignal::new(Vec::new()),
        };
        draft.scopes.update(|all| all.push(scope));
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
            <div><button type="button" class="btn small" on:click=add><Icon name="plus" size=14/>"Hold it to a resource"</button></div>
        </fieldset>
    }
    .into_any()
}

fn scope(draft: Draft, one: Scope) -> AnyView {
    let kinds = RESOURCES.map(|kind| view! { <option value=kind>{kind}</option> }.into_any());
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
    view! {
        <div class="scope">
            <div class="schema-row scope-row">
                <select class="select" aria-label="Kind of resource" on:change=move |e| one.kind.set(event_target_value(&e))>{Vec::from(kinds)}</select>
                <input class="input" aria-label="Id, or the start of ids and *" placeholder="an id, films-* or *" bind:value=one.id autocomplete="off" spellcheck="false"/>
                <button type="button" class="btn ghost icon" aria-label="Remove this resource" on:click=move |_| draft.scopes.update(|all| all.retain(|s| s.at != one.at))><Icon name="close"/></button>
            </div>
            <details class="more"><summary>"Only some operations"</summary><div class="options">{Vec::from(operations)}</div></details>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_in_a_sentence() {
        let wide = json!({"permissions": ["read", "write"]});
        assert_eq!(
            sentence(&wide),
            "This key can read and change, in the whole organization, until it is revoked."
        );
        let narrow = json!({"permissions": ["read"], "scopes": [{"resource_type": "bucket", "resource_id": "raw-*"}, {"resource_type": "namespace", "resource_id": "ns_1"}],
            "allowed_origins": ["https://a.example"], "rate_limit_override": 1200, "expires_at": "2026-12-01T10:00:00Z", "principal_id": "ann"});
        assert_eq!(
            sentence(&narrow),
            "This key can read and search, in every bucket that starts with raw- and the namespace ns_1, but sees only documents that ann owns or was \
             granted, from pages of https://a.example, at most 1,200 times a minute, until 2026-12-01 10:00."
        );
    }

    #[test]
    fn a_body_says_only_what_was_filled_in() {
        let owner = Owner::new();
        owner.set();
        let draft = Draft::new();
        draft.name.set(" ci ".into());
        assert_eq!(draft.body(), json!({"name": "ci", "permissions": ["read"]}));
        draft
            .origins
            .set("https://a.example, https://b.example".into());
        draft.cap.set("60".into());
        assert_eq!(
            draft.body()["allowed_origins"],
            json!(["https://a.example", "https://b.example"])
        );
        assert_eq!(draft.body()["rate_limit_override"], 60);
    }
}
