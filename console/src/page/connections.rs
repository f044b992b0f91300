use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, only},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Connection", ""),
    Column("Storage", ""),
    Column("Status", ""),
    Column("Last used", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "plug",
    title: "No connection yet",
    text: "A connection lets objects be made of files in a storage of yours, by their address there.",
    link: None,
};

const FORM: &str = "connections";

const LIST: &str = "/v1/organizations/connections";

fn path_of(one: &Record) -> String {
    format!("{LIST}/{}", text::escape(&one.text("connection_id")))
}

pub fn connections() -> AnyView {
    let session = use_session();
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let path = format!("{LIST}/list{}", page_query(offset));
        session.api().post(&path, &json!({}))
    });
    let rows = Rows::new(load);
    provide_context(rows);
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let fresh = || json!({"provider_type": "s3", "provider_config": {"credentials": {"type": "access_key"}}});
    // Of what rows show, only what can be changed is sent; a masked secret stays what it is.
    let patch = move |body: Value| {
        let one = Record(body);
        let may_write = one.flag("write_enabled");
        let mut sent = only(one, &["name", "description", "provider_config"]);
        sent["write_enabled"] = may_write.into();
        session
            .api()
            .patch(&path_of(&rows.of.get_untracked()), &sent)
    };
    view! {
        <ListPage title="Connections" text="Storages of yours that objects may come from and exports may go to. Their secrets are kept encrypted." load offset columns=COLUMNS row
            blank=BLANK rows create=Create::Dialog("Create connection", create)/>
        <Fill open=create title="Create a connection".to_owned() label="Create" form=Form::plain("connection") schema=FORM
            start=Callback::new(move |()| fresh()) send=Callback::new(move |body| session.api().post(LIST, &body)) done=saved/>
        <Fill open=rows.dialog("Change") title=Signal::derive(move || format!("Change {}", rows.of.get().text("name"))) label="Save"
            form=Form::plain("connection-change") schema=FORM start=Callback::new(move |()| rows.of.get().0) send=Callback::new(patch) done=saved/>
        <Discard rows what="connection" name="name" loses="Nothing is fetched through it from now on. Files that were fetched stay."
            delete=Callback::new(move |one: Record| session.api().delete(&path_of(&one)))/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let (session, rows, toasts): (_, Rows, Toasts) =
        (use_session(), expect_context(), expect_context());
    let (title, path) = (one.text("name"), path_of(&one));
    let config = one.record("provider_config");
    let place = config.first(&["endpoint_url", "region"]);
    let test = move || {
        let call = session.api().post(&format!("{path}/test"), &json!({}));
        rows.change.run(call, move |answer| {
            match answer.flag("success") {
                true => toasts.say(format!("It works: {}", answer.text("message"))),
                false => rows
                    .change
                    .refuse_as("The test failed", answer.text("message")),
            }
            rows.reload();
        });
    };
    let state = match one.opt("last_error") {
        Some(error) => view! { {badge("failing")}<span class="sub cut">{error}</span> }.into_any(),
        None => badge(&one.text("status")),
    };
    let buttons = view! { {press("Test", &title, Box::new(test))}{rows.open("Change", &title, &one)}{rows.open("Remove", &title, &one)} };
    line(vec![
        name(None, title.clone(), one.text("connection_id")),
        two(one.text("provider_type"), place),
        cell("", state),
        cell("nowrap", when(one.opt("last_used_at"))),
        cell("actions", buttons.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{StorageConnectionCreateRequest, StorageProvider};

    use super::*;

    #[test]
    fn what_the_form_offers_exists() {
        let schema = schema::named(FORM).0;
        let offered = schema["properties"]["provider_type"]["enum"].clone();
        serde_json::from_value::<Vec<StorageProvider>>(offered).expect("storages");
        let body = json!({"name": "n", "provider_type": "s3", "provider_config": {"credentials": {"type": "access_key", "access_key_id": "a", "secret_access_key": "b"}}});
        serde_json::from_value::<StorageConnectionCreateRequest>(body).expect("a body");
    }
}
