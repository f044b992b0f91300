//! Who signed in to an app, and who was asked to.

use leptos::prelude::*;
use serde_json::json;

use super::one::Shown;
use crate::{
    api::{Answer, Api},
    load::Load,
    part::{schema::Form, *},
    record::{Record, only},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Person", ""),
    Column("Role", ""),
    Column("Status", ""),
    Column("Since", ""),
    Column("", "actions"),
];

const FORM: &str = "apps/people";

pub fn people(shown: Shown) -> AnyView {
    let session = use_session();
    let load = Load::new(move || everybody(session.api(), format!("{}/users", shown.path.get())));
    let rows = Rows::new(load);
    provide_context(rows);
    let invite = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let path = move || format!("{}/users", shown.path.get_untracked());
    let delete = move |one: Record| {
        let (path, id) = (path(), text::escape(&one.text("id")));
        session.api().delete(&match one.opt("user_id") {
            Some(_) => format!("{path}/{id}"),
            None => format!("{path}/invitations/{id}"),
        })
    };
    let role = move |body| {
        let id = text::escape(&rows.of.get_untracked().text("id"));
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
    let empty = move || view! { <Empty icon="people" title="Nobody yet" text="Whoever signs in stands here. People whom you invite get a mail."/> };
    view! {
        <div class="row between">
            <h2>"People"</h2>
            {asks}
        </div>
        {refusal(rows.change)}
        <Listing load label="People" columns=COLUMNS row empty=ViewFn::from(empty) offset=None/>
        <Fill open=invite title="Invite somebody".to_owned() label="Invite" form=Form::plain("invite") schema=FORM
            start=Callback::new(|()| json!({"role": "org:member"})) send=Callback::new(move |body| session.api().post(&format!("{}/invite", path()), &body)) done=saved/>
        <Fill open=rows.dialog("Role") title=Signal::derive(move || format!("Role of {}", rows.of.get().text("email"))) label="Save"
            form=Form::plain("role") schema=FORM start=Callback::new(move |()| rows.of.get().0) send=Callback::new(role) done=saved/>
        <Discard rows what="person" name="email" loses="The account is gone, and signed out everywhere."
            delete=Callback::new(delete)/>
    }
    .into_any()
}

/// Whether visitors of the app come by name.
fn signs_in(one: &Record) -> bool {
    let mode = one.record("auth_config").text("mode");
    matches!(mode.as_str(), "clerk" | "sso_oidc")
}

/// People, and after them those who have not come yet.
fn everybody(api: Api, path: String) -> Answer {
    Box::pin(async move {
        let mut all = Vec::new();
        for mut one in api.get(&path).await?.list("users") {
            one.0["id"] = one.text("user_id").into();
            all.push(one.0);
        }
        let asked = api.get(&format!("{path}/invitations")).await?;
        for one in asked.list("invitations") {
            if one.text("status") == "pending" {
                all.push(json!({"id": one.text("invitation_id"), "email": one.text("email_address"), "role": one.text("role"),
                    "joined_at": one.text("created_at")}));
            }
        }
        Ok(Record(json!({ "results": all })))
    })
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let email = one.text("email");
    let known = one.opt("user_id").is_some();
    let role = known.then(|| rows.open("Role", &email, &one));
    let buttons = view! { {role}{rows.open("Remove", &email, &one)} };
    let called = one.first(&["name", "email"]);
    line(vec![
        name(None, called, email),
        words("", one.text("role")),
        cell("", badge(if known { "active" } else { "invited" })),
        cell("nowrap", when(one.opt("joined_at"))),
        cell("actions", buttons.into_any()),
    ])
}
