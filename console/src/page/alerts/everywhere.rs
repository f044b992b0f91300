//! Alerts of the organization: they look at the state of every namespace, or of chosen ones.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    FORM, MEMBERS, history, lifted, made, receivers, sentence, snooze, snoozes, state, test_now,
    with_webhooks, written,
};
use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{
        schema::{self, Form},
        *,
    },
    record::Record,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Alert", ""),
    Column("Fires when", ""),
    Column("Watches", ""),
    Column("Tells", ""),
    Column("Status", ""),
    Column("Last fired", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "alert",
    title: "No alert of the organization",
    text: "One alert here looks at the state of every namespace, those that come later too: batches that fail, collections that get nothing new, a budget that runs out.",
    link: None,
};

const LIST: &str = "/v1/organizations/alerts";

fn path_of(id: &str) -> String {
    format!("{LIST}/{}", text::escape(id))
}

/// What the form is filled with: it asks for other things than that of a namespace.
fn filled(mut one: Value) -> Value {
    one["over"] = "organization".into();
    if one["namespace_selector"]["mode"].is_null() {
        one["namespace_selector"] = json!({"mode": "all"});
    }
    one
}

/// What of it is sent.
fn sent(body: Value) -> Value {
    let mut body = made(body);
    let selector = Record(body["namespace_selector"].take());
    body["namespace_selector"] = match selector.text("mode").as_str() {
        "selected" => {
            json!({"mode": "selected", "namespace_ids": selector.strings("namespace_ids")})
        }
        _ => json!({"mode": "all"}),
    };
    if let Some(members) = body.as_object_mut() {
        members.shift_remove("over");
    }
    body
}

/// What can be changed of an alert of the organization.
fn changed(body: Value) -> Value {
    let all = [&MEMBERS[..], &["namespace_selector"]].concat();
    super::changed(sent(body), &all)
}

pub fn everywhere() -> AnyView {
    schema::DrawInputs::provide();
    let session = use_session();
    let (search, offset, log) = (Query::new("q"), Query::new("offset"), Query::new("log"));
    let form = Form::plain("alert");
    let load = Load::new(move || {
        let path = format!("{LIST}/list{}", page_query(offset));
        let body = match search.value.get() {
            words if words.is_empty() => json!({}),
            words => json!({ "search": words }),
        };
        list(session.api(), path, body, form)
    });
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(form);
    provide_context(log);
    let (create, change) = (RwSignal::new(false), form.beside());
    let saved = Callback::new(move |_| load.reload());
    let patch = move |body: Value| {
        let path = path_of(&rows.of.get_untracked().text("alert_id"));
        session.api().patch(&path, &changed(body))
    };
    let fresh = || json!({"source": "system", "system_condition": {"params": {}}, "notification_config": {"channels": [{"channel_type": "webhook", "config": {}}]}});
    view! {
        <ListPage title="Organization alerts" text="The state of all namespaces, or of chosen ones, is looked at every five minutes." load search offset columns=COLUMNS row
            blank=BLANK rows create=Create::Dialog("Create alert", create)/>
        <Fill open=create title="Create an alert of the organization".to_owned() label="Create" form schema=FORM
            start=Callback::new(move |()| filled(fresh())) send=Callback::new(move |body| session.api().post(LIST, &sent(body))) done=saved
            below=ViewFn::from(move || written(form))/>
        <Fill open=rows.dialog("Change") title=Signal::derive(move || format!("Change {}", rows.of.get().text("name"))) label="Save" form=change schema=FORM
            start=Callback::new(move |()| filled(lifted(rows.of.get().0))) send=Callback::new(patch) done=saved below=ViewFn::from(move || written(change))/>
        <Discard rows what="alert" name="name" loses="It looks at no namespace any more. What it told is gone with it."
            delete=Callback::new(move |one: Record| session.api().delete(&path_of(&one.text("alert_id"))))/>
        {snoozes(rows, path_of, move || session.api())}
        {history::panel(load, log, path_of, move || session.api())}
    }
    .into_any()
}

/// The alerts, once what they name is known.
fn list(api: Api, path: String, body: Value, form: Form) -> Answer {
    Box::pin(async move {
        let all = choices(api.clone(), &["namespaces"]).await?;
        form.choices.set(with_webhooks(all, &api).await);
        api.post(&path, &body).await
    })
}

/// The namespaces that an alert watches, by their names.
fn watched(one: &Record, named: impl Fn(&str) -> String) -> Vec<String> {
    let selector = one.record("namespace_selector");
    match selector.text("mode").as_str() {
        "selected" => {
            let ids = selector.strings("namespace_ids");
            ids.iter().map(|id| named(id)).collect()
        }
        _ => vec!["every namespace".to_owned()],
    }
}

fn row(one: Record) -> AnyView {
    let (session, rows, form): (_, Rows, Form) =
        (use_session(), expect_context(), expect_context());
    let log: Query = expect_context();
    let (id, title, on) = (one.text("alert_id"), one.text("name"), one.flag("enabled"));
    let path = path_of(&id);
    let condition = sentence(&one, &schema::named(FORM), |of, id| form.name_of(of, id));
    let rest = one.int("renotify_interval_seconds");
    let rest = rest.map(|rest| format!("tells again after {}", text::span(rest)));
    let test = {
        let path = format!("{path}/execute");
        let call = move || session.api().post(&path, &json!({}));
        test_now(rows, log, &one, call)
    };
    let send = {
        let path = format!("{path}/test");
        rows.tests(move || session.api().post(&path, &json!({})))
    };
    let toggle = match on {
        true => ("Switch off", "It looks no more"),
        false => ("Switch on", "It looks again"),
    };
    let patch = move |body: Value| session.api().patch(&path, &body);
    let snooze = snooze(rows, &one, patch.clone());
    let toggle = rows.calls(toggle.0, toggle.1, move || patch(json!({"enabled": !on})));
    let first = [test, history::act(log, &id), rows.opens("Change", &one)];
    let more = vec![send, snooze, toggle, rows.opens("Remove", &one)];
    let buttons =
        view! { {Vec::from(first.map(|act| act.button(&title)))}{menu(&id, &title, more)} };
    line(vec![
        name(None, title.clone(), id),
        two(condition, rest.unwrap_or_default()),
        tags(watched(&one, |id| form.name_of("namespaces", id))),
        tags(receivers(&one, form)),
        cell("", state(&one)),
        cell("nowrap", when(one.opt("last_fired_at"))),
        cell("actions many", buttons.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateAlertRequest, NamespaceSelectorMode, PatchAlertRequest};

    use super::*;

    fn form(selector: Value) -> Value {
        json!({"name": "n", "source": "system", "system_condition": {"type": "batch_failed", "params": {}}, "namespace_selector": selector,
            "notification_config": {"channels": [{"channel_type": "slack", "config": {"webhook_url": "https://a.example"}}]}})
    }

    #[test]
    fn what_the_form_makes_is_an_alert_over_namespaces() {
        // What a change of the mode leaves behind is not sent.
        let body = sent(filled(form(json!({"mode": "all", "namespace_ids": {}}))));
        assert_eq!(body["namespace_selector"], json!({"mode": "all"}));
        assert!(body.get("over").is_none());
        serde_json::from_value::<CreateAlertRequest>(body).expect("a body");

        let chosen = filled(form(json!({"mode": "selected", "namespace_ids": ["ns_1"]})));
        let body = sent(chosen.clone());
        let alert: CreateAlertRequest = serde_json::from_value(body).expect("a body");
        let selector = alert.namespace_selector.expect("a selector");
        assert_eq!(selector.mode, Some(NamespaceSelectorMode::Selected));
        assert_eq!(selector.namespace_ids, ["ns_1"]);
        let change = changed(chosen);
        assert!(change.get("source").is_none());
        serde_json::from_value::<PatchAlertRequest>(change).expect("a change");
    }

    #[test]
    fn what_is_watched_is_named() {
        let named = |id: &str| format!("<{id}>");
        let one = Record(form(
            json!({"mode": "selected", "namespace_ids": ["a", "b"]}),
        ));
        assert_eq!(watched(&one, named), ["<a>", "<b>"]);
        assert_eq!(
            watched(&Record(form(Value::Null)), named),
            ["every namespace"]
        );
    }

    #[test]
    fn the_form_offers_the_modes_that_there_are() {
        let schema = schema::named(FORM).0;
        let offered = &schema["properties"]["namespace_selector"]["properties"]["mode"]["enum"];
        serde_json::from_value::<Vec<NamespaceSelectorMode>>(offered.clone()).expect("modes");
    }
}
