//! Who signed in to an app, and who was asked to.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::one::Shown;
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, only},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Person", ""),
    Column("Role", ""),
    Column("Since", ""),
    Column("Last sign-in", ""),
    Column("", "actions"),
];

const INVITED: &[Column] = &[
    Column("Address", ""),
    Column("Role", ""),
    Column("Status", ""),
    Column("Invited", ""),
    Column("", "actions"),
];

const FORM: &str = "apps/people";

/// The rows of those who have not come yet.
#[derive(Clone, Copy)]
struct Invited(Rows);

pub fn people(shown: Shown) -> AnyView {
    let session = use_session();
    let (search, offset) = (Query::new("q"), Query::new("offset"));
    let path = move || format!("{}/users", shown.path.get());
    let load = Load::new(move || {
        let window = format!("limit=50&offset={}", offset.number());
        let path = format!("{}?{window}{}", path(), search.query("search"));
        listed(session.api(), path)
    });
    let waited = Load::new(move || waiting_for(session.api(), format!("{}/invitations", path())));
    let rows = Rows::new(load);
    provide_context(rows);
    let invite = RwSignal::new(false);
    // Who is there already has another role by an invitation.
    let saved = Callback::new(move |_| {
        load.reload();
        waited.reload();
    });
    let path = move || untrack(path);
    let delete = move |one: Record| {
        let id = text::escape(&one.text("user_id"));
        session.api().delete(&format!("{}/{id}", path()))
    };
    let role = move |body| {
        let id = text::escape(&rows.of.get_untracked().text("user_id"));
        let sent = only(Record(body), &["role"]);
        session.api().patch(&format!("{}/{id}/role", path()), &sent)
    };
    let asks = move || {
        let one = shown.load.good()?;
        let signs_in = signs_in(&one);
        Some(match signs_in {
            true => view! { <button type="button" class="btn" on:click=move |_| invite.set(true)><Icon name="plus"/>"Invite"</button> }.into_any(),
            false => view! { <span class="muted">"Nobody signs in to this app, so nobody is invited: that is said under “Sign-in and API”."</span> }.into_any(),
        })
    };
    let empty = move || {
        none_match([search].iter()).unwrap_or_else(|| view! { <Empty icon="people" title="Nobody yet" text="Whoever signs in stands here. People whom you invite get a mail."/> }.into_any())
    };
    view! {
        <div class="row between">
            <h2>"People"</h2>
            {asks}
        </div>
        <div class="row filters"><SearchBox query=search label="Search people".to_owned()/></div>
        {refusal(rows.change)}
        <Listing load label="People" columns=COLUMNS row empty=ViewFn::from(empty) offset=Some(offset)/>
        {invited(waited, Signal::derive(path))}
        <Fill open=invite title="Invite somebody".to_owned() label="Invite" form=Form::plain("invite") schema=FORM
            start=Callback::new(|()| json!({"role": "org:member"})) send=Callback::new(move |body| session.api().post(&format!("{}/invite", path()), &body)) done=saved/>
        <Fill open=rows.dialog("Role") title=Signal::derive(move || format!("Role of {}", rows.of.get().text("email"))) label="Save"
            form=Form::plain("role") schema=FORM start=Callback::new(move |()| rows.of.get().0) send=Callback::new(role) done=saved/>
        <Discard rows what="person" name="email" loses="The account is gone, and signed out everywhere."
            delete=Callback::new(delete)/>
    }
    .into_any()
}

/// Those who were invited and have not come yet.
fn invited(load: Load, path: Signal<String>) -> AnyView {
    let session = use_session();
    let rows = Rows::new(load);
    provide_context(Invited(rows));
    let delete = move |one: Record| {
        let id = text::escape(&one.text("invitation_id"));
        let path = path.get_untracked();
        session.api().delete(&format!("{path}/invitations/{id}"))
    };
    let nobody = || view! { <p class="muted">"Nobody is waited for."</p> };
    view! {
        <h2>"Invited"</h2>
        <Listing load label="Invited" columns=INVITED row=invitation empty=ViewFn::from(nobody) offset=None/>
        <Discard rows what="invitation" name="email_address" loses="The role waits no longer: who comes with this address comes as everybody does."
            delete=Callback::new(delete)/>
    }
    .into_any()
}

/// Whether visitors of the app come by name.
fn signs_in(one: &Record) -> bool {
    let mode = one.record("auth_config").text("mode");
    matches!(mode.as_str(), "clerk" | "sso_oidc")
}

/// One page of those who came.
fn listed(api: Api, path: String) -> Answer {
    Box::pin(async move {
        let mut answer = api.get(&path).await?;
        answer.0["results"] = answer.0["users"].take();
        Ok(answer)
    })
}

fn waiting_for(api: Api, path: String) -> Answer {
    Box::pin(async move {
        let mut all = api.get(&path).await?.list("invitations");
        all.retain(|one| one.text("status") == "pending");
        let all: Vec<_> = all.into_iter().map(|one| one.0).collect();
        Ok(Record(json!({ "results": all })))
    })
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let email = one.text("email");
    let buttons = view! { {rows.open("Role", &email, &one)}{rows.open("Remove", &email, &one)} };
    let called = one.first(&["name", "email"]);
    let shown = match one.value("email_verified").and_then(Value::as_bool) {
        Some(false) if !email.is_empty() => format!("{email} (not proven)"),
        _ => email,
    };
    let with = with(&one.text("last_signed_in_with"));
    let last =
        view! { {when(one.opt("last_signed_in_at"))}<span class="sub">{with}</span> }.into_any();
    line(vec![
        name(None, called, shown),
        words("", one.text("role")),
        cell("nowrap", when(one.opt("joined_at"))),
        cell("nowrap", last),
        cell("actions", buttons.into_any()),
    ])
}

/// What somebody signed in with.
fn with(way: &str) -> &'static str {
    match way {
        "password" => "with a password",
        "passkey" => "with a passkey",
        "google" => "with Google",
        "github" => "with GitHub",
        "oidc" => "with single sign-on",
        _ => "",
    }
}

fn invitation(one: Record) -> AnyView {
    let Invited(rows) = expect_context();
    let address = one.text("email_address");
    let remove = rows.open("Remove", &address, &one);
    line(vec![
        name(None, address, String::new()),
        words("", one.text("role")),
        cell("", badge("invited")),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", remove),
    ])
}
