use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::Problem,
    load::{Change, Load},
    part::*,
    record::{Page, Record, page},
    session::{Session, use_session},
    text,
};

/// Level, what a person may expect of it, and what is sent: a level contains the ones below.
const LEVELS: [(&str, &str, &[&str]); 4] = [
    ("read", "Read: list and search", &["read"]),
    (
        "write",
        "Write: also upload, process, create",
        &["read", "write"],
    ),
    (
        "delete",
        "Delete: also remove",
        &["read", "write", "delete"],
    ),
    ("admin", "Admin: everything, keys included", &["admin"]),
];

fn path(session: Session) -> Result<String, Problem> {
    let email = session
        .me
        .with_untracked(|me| me.as_ref().and_then(|me| me.opt("user_email")));
    let email = email.ok_or_else(|| {
        Problem::local("this key belongs to no user; sign in with a user's key to see keys")
    })?;
    Ok(format!(
        "/v1/organizations/users/{}/api-keys",
        text::escape(&email)
    ))
}

#[component]
pub fn Keys() -> impl IntoView {
    let session = use_session();
    let known = Memo::new(move |_| session.me.with(Option::is_some));
    let load = Load::new(move || {
        let (ready, api, path) = (known.get(), session.api(), path(session));
        async move {
            if !ready {
                // Who it is arrives first; then this runs again.
                return std::future::pending().await;
            }
            api.get(&path?).await.map(page)
        }
    });
    let (create, secret) = (RwSignal::new(false), RwSignal::new(None::<String>));
    let (acting, act) = (
        RwSignal::new(false),
        RwSignal::new((String::new(), Verb::Rotate)),
    );
    let ask = Callback::new(move |asked: (String, Verb)| {
        act.set(asked);
        acting.set(true);
    });
    let empty = || {
        view! { <Empty icon="key" title="No key" text="Keys authenticate every call."/> }.into_any()
    };
    view! {
        <Head title="API keys" text="Keys authenticate every call. A secret is shown once, at creation.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)><Icon name="plus"/>"Create key"</button>
        </Head>
        <Listing load label="API keys" empty=empty.into() row=Callback::from(move |key| row(ask, key))
            columns=vec![Column("Name", ""), Column("Key", ""), Column("Permissions", ""), Column("Status", ""), Column("Last used", ""), Column("Expires", ""), Column("Created", ""), Column("", "actions")]/>
        <Create open=create secret load/>
        <Act open=acting act secret load/>
        <Secret secret/>
    }
}

/// What is about to happen to a key.
#[derive(Clone, Copy, PartialEq)]
enum Verb {
    Rotate,
    Revoke,
}

fn row(ask: Callback<(String, Verb)>, key: Record) -> AnyView {
    let name = key.text("name");
    let buttons = (key.text("status") == "active").then(|| {
        [(Verb::Rotate, "Rotate"), (Verb::Revoke, "Revoke")].map(|(verb, label)| {
            let asked = name.clone();
            view! { <button type="button" class="btn small" aria-label=format!("{label} {name}") on:click=move |_| ask.run((asked.clone(), verb))>{label}</button>" " }
        }).to_vec()
    });
    let levels = key.strings("permissions").join(", ");
    let scopes: Vec<String> = key
        .list("scopes")
        .iter()
        .map(|s| format!("{}:{}", s.text("resource_type"), s.text("resource_id")))
        .collect();
    let scopes = if scopes.is_empty() {
        "Organization-wide".to_owned()
    } else {
        scopes.join(", ")
    };
    view! {
        <tr>
            <th scope="row">{key.text("name")}<span class="sub mono">{key.text("key_id")}</span></th>
            <td class="mono nowrap">{key.opt("key_prefix").map(|prefix| format!("{}…", prefix.trim_end_matches('…')))}</td>
            <td>{levels}<span class="sub">{scopes}</span></td>
            <td><Badge status=key.text("status")/></td>
            <td class="nowrap"><When at=key.opt("last_used_at")/></td>
            <td class="nowrap">{match key.opt("expires_at") { Some(at) => text::moment(&at), None => "never".into() }}</td>
            <td class="nowrap"><When at=key.opt("created_at")/></td>
            <td class="actions">{buttons}</td>
        </tr>
    }
    .into_any()
}

/// The question before a key changes for good.
#[component]
fn Act(
    open: RwSignal<bool>,
    act: RwSignal<(String, Verb)>,
    secret: RwSignal<Option<String>>,
    load: Load<Page>,
) -> impl IntoView {
    let session = use_session();
    let (force, change) = (RwSignal::new(false), Change::new());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let ((name, verb), api, path) = (act.get_untracked(), session.api(), path(session));
        let forced = force.get_untracked();
        let call = async move {
            let path = format!("{}/{}", path?, text::escape(&name));
            match verb {
                Verb::Rotate => api.post(&format!("{path}/rotate"), &json!({})).await,
                Verb::Revoke => api.delete(&format!("{path}?force={forced}")).await,
            }
        };
        change.run(call, move |answer| {
            open.set(false);
            load.reload();
            secret.set(answer.opt("key"));
        });
    };
    let title = Signal::derive(move || {
        let (name, verb) = act.get();
        match verb {
            Verb::Rotate => format!("Rotate {name}?"),
            Verb::Revoke => format!("Revoke {name}?"),
        }
    });
    view! {
        <Modal open title>
            <form class="form" on:submit=submit>
                {move || match act.get().1 {
                    Verb::Rotate => view! { <p>"The key gets a new secret and keeps its name and permissions. The old secret is refused from the next request on."</p> }.into_any(),
                    Verb::Revoke => view! {
                        <p>"Every call with this key is refused from now on. This cannot be undone."</p>
                        <Check label="Also when it is in use" checked=force set=move |on| force.set(on)/>
                    }.into_any(),
                }}
                {move || match act.get().1 {
                    Verb::Rotate => view! { <Submit change open label="Rotate"/> },
                    Verb::Revoke => view! { <Submit change open label="Revoke" danger=true/> },
                }}
            </form>
        </Modal>
    }
}

#[component]
fn Create(
    open: RwSignal<bool>,
    secret: RwSignal<Option<String>>,
    load: Load<Page>,
) -> impl IntoView {
    let session = use_session();
    let (name, note) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (level, days) = (
        RwSignal::new("read".to_owned()),
        RwSignal::new(String::new()),
    );
    let change = Change::new();
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let permissions = LEVELS
            .iter()
            .find(|(one, _, _)| *one == level.get_untracked())
            .map_or(&["read"][..], |found| found.2);
        let mut body = json!({"name": name.get_untracked().trim(), "permissions": permissions});
        if !note.get_untracked().is_empty() {
            body["description"] = note.get_untracked().into();
        }
        if let Ok(days) = days.get_untracked().parse::<f64>() {
            let at = js_sys::Date::new(&(js_sys::Date::now() + days * 86_400_000.0).into());
            body["expires_at"] = String::from(at.to_iso_string()).into();
        }
        let (api, path) = (session.api(), path(session));
        change.run(async move { api.post(&path?, &body).await }, move |made| {
            open.set(false);
            name.set(String::new());
            load.reload();
            secret.set(made.opt("key"));
        });
    };
    let levels = LEVELS
        .iter()
        .map(|(one, label, _)| (one.to_string(), label.to_string()))
        .collect::<Vec<_>>();
    let expiries = [
        ("", "Never"),
        ("7", "In 7 days"),
        ("30", "In 30 days"),
        ("90", "In 90 days"),
        ("365", "In a year"),
    ];
    let expiries = expiries
        .map(|(value, label)| (value.to_owned(), label.to_owned()))
        .to_vec();
    view! {
        <Modal open title="Create an API key">
            <form class="form" on:submit=submit>
                <Field id="key-name" label="Name" value=name required=true placeholder="ci-ingest"/>
                <div class="form-row">
                    <Choice id="key-level" label="This key can" value=level options=levels.clone()/>
                    <Choice id="key-expiry" label="Expires" value=days options=expiries.clone()/>
                </div>
                <Field id="key-note" label="Note" value=note/>
                <Submit change open label="Create key"/>
            </form>
        </Modal>
    }
}
