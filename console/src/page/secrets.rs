//! Secrets that stages, connections and apps use by their names.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::Load,
    part::{schema::Form, *},
    record::{Record, only},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[Column("Secret", ""), Column("", "actions")];

const BLANK: Blank = Blank {
    icon: "key",
    title: "No secret yet",
    text: "A secret is kept encrypted under a name. Stages that call other services and sign-in by other services use it by that name.",
    link: None,
};

const FORM: &str = "secrets";

const LIST: &str = "/v1/organizations/secrets";

fn path_of(one: &Record) -> String {
    format!("{LIST}/{}", text::escape(&one.text("secret_name")))
}

pub fn secrets() -> AnyView {
    let session = use_session();
    let load = Load::new(move || list(session.api()));
    let rows = Rows::new(load);
    provide_context(rows);
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let put = move |body: Value| {
        let path = path_of(&rows.of.get_untracked());
        session.api().put(&path, &changed(body))
    };
    let title =
        Signal::derive(move || format!("Another value for {}", rows.of.get().text("secret_name")));
    view! {
        <ListPage title="Secrets" text="Credentials for other services, used by their names. A value is never shown again." load columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Create secret", create)/>
        <Fill open=create title="Create a secret".to_owned() label="Create" form=Form::plain("secret") schema=FORM
            start=Callback::new(|()| json!({})) send=Callback::new(move |body| session.api().post(LIST, &body)) done=saved/>
        <Fill open=rows.dialog("Change") title label="Save" form=Form::plain("secret-change") schema=FORM
            start=Callback::new(|()| json!({"known": "yes"})) send=Callback::new(put) done=saved/>
        <Discard rows what="secret" name="secret_name" loses="Whatever uses it by its name is refused by the other service, or does not start, from now on."
            delete=Callback::new(move |one: Record| session.api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// What is sent of a change: the value alone.
fn changed(body: Value) -> Value {
    only(Record(body), &["secret_value"])
}

/// The names, as rows.
fn list(api: Api) -> Answer {
    Box::pin(async move { api.get(LIST).await.map(|all| named(&all)) })
}

fn named(all: &Record) -> Record {
    let names = all.strings("secrets").into_iter();
    let rows = names.map(|name| json!({ "secret_name": name }));
    Record(json!({"results": rows.collect::<Vec<Value>>()}))
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let title = one.text("secret_name");
    let buttons =
        view! { {rows.open("Change", &title, &one)}{rows.open("Remove", &title, &one)} }.into_any();
    line(vec![
        view! { <th scope="row" class="mono">{title}</th> }.into_any(),
        cell("actions", buttons),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateSecretRequest, SecretsListResponse, UpdateSecretRequest};

    use super::*;
    use crate::record::{page, tests::sent};

    #[test]
    fn names_are_rows() {
        let all = SecretsListResponse {
            secrets: vec!["a".into(), "b".into()],
            count: 2,
        };
        let (rows, total) = page(&named(&sent(&all)));
        assert_eq!((rows[1].text("secret_name").as_str(), total), ("b", 2));
    }

    #[test]
    fn what_the_form_makes_is_taken() {
        let body = json!({"secret_name": "a", "secret_value": "x"});
        serde_json::from_value::<CreateSecretRequest>(body).expect("a body");
        let change = changed(json!({"known": "yes", "secret_value": "y"}));
        assert_eq!(change, json!({"secret_value": "y"}));
        serde_json::from_value::<UpdateSecretRequest>(change).expect("a change");
    }
}
