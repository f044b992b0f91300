//! Which notifications reach people, and how.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::KINDS;
use crate::{
    load::{Change, Load},
    part::*,
    record::Record,
    session::use_session,
    text,
};

const PATH: &str = "/v1/notifications/preferences";
const ORGANIZATION: &str = "/v1/organizations";

const COLUMNS: &[Column] = &[
    Column("What is told", ""),
    Column("Here", ""),
    Column("By e-mail", ""),
];

/// The ways that a notification takes, and their words.
const WAYS: [(&str, &str); 2] = [("in_app", "here"), ("email", "by e-mail")];

/// The dialog; what is set is asked for when it opens.
pub fn preferences(open: RwSignal<bool>) -> AnyView {
    let session = use_session();
    let load = Load::new(move || {
        let (api, wanted) = (session.api(), open.get());
        async move {
            if !wanted {
                return std::future::pending().await;
            }
            let all = api.get(PATH).await?.record("preferences");
            let mail = api.get(ORGANIZATION).await?.text("notifications_email");
            Ok(Record(json!({"preferences": all.0, "mail": mail})))
        }
    });
    // What was set before is not shown while it is asked for anew.
    let inside = move || match load.busy.get() {
        true => waiting(6).run(),
        false => loaded(load, waiting(6), move |all| form(open, &all)),
    };
    view! { <Modal open title="Which notifications reach you".to_owned()>{inside}</Modal> }
        .into_any()
}

fn form(open: RwSignal<bool>, all: &Record) -> AnyView {
    let (session, toasts): (_, Toasts) = (use_session(), expect_context());
    let (chosen, before) = (RwSignal::new(all.record("preferences").0), all.text("mail"));
    let (mail, change) = (RwSignal::new(before.clone()), Change::new());
    let submit = Callback::new(move |()| {
        let (api, now) = (session.api(), mail.get_untracked().trim().to_owned());
        let moved = (now != before).then(|| body_of(&now));
        let body = json!({"preferences": chosen.get_untracked()});
        let call = async move {
            if let Some(moved) = moved {
                api.patch(ORGANIZATION, &moved).await?;
            }
            api.put(PATH, &body).await
        };
        change.run(call, move |_| {
            open.set(false);
            toasts.say("Notifications go these ways from now on");
        });
    });
    let rows = KINDS.iter().map(|kind| row(kind, chosen)).collect();
    view! {
        <Sheet change submit label="Save" open>
            {table("Notifications and their ways", COLUMNS, rows, Signal::stored(false))}
            <Field id="notify-mail" label="E-mails go to" kind="email" value=mail
                hint="One address for the whole organization. Without it nothing is mailed."/>
        </Sheet>
    }
    .into_any()
}

/// What changes the address, or takes it away.
fn body_of(mail: &str) -> Value {
    let mail = Some(mail).filter(|mail| !mail.is_empty());
    json!({ "notifications_email": mail })
}

/// What this server tells under a kind.
fn about(kind: &str) -> &'static str {
    match kind {
        "pipeline_success" => "Batches that are done",
        "pipeline_failure" => "Work that failed: batches, groups, copies, snapshots, exports",
        "system_alert" => "Triggers and webhooks that stopped, conditions of the server",
        "billing_alert" => "Budgets that are nearly spent",
        "quota_alert" => "Quotas of the plan that are nearly full",
        _ => "Matches of your own alerts",
    }
}

fn row(kind: &'static str, chosen: RwSignal<Value>) -> AnyView {
    let name = text::words(kind);
    let mut cells = vec![titled(None, name.clone(), about(kind).to_owned())];
    cells.extend(WAYS.map(|(way, words)| {
        let on = chosen.with_untracked(|all| all[kind][way].as_bool().unwrap_or(false));
        let set = move |event| {
            let on = event_target_checked(&event);
            chosen.update(|all| all[kind][way] = on.into());
        };
        let said = format!("{name} {words}");
        let tick = view! { <label class="check"><input type="checkbox" prop:checked=on on:change=set/><span class="sr-only">{said}</span></label> };
        cell("", tick.into_any())
    }));
    line(cells)
}

#[cfg(test)]
mod tests {
    use loupe_wire::{OrganizationUpdateRequest, UpdatePreferencesRequest};

    use super::*;

    #[test]
    fn what_is_sent_is_taken() {
        let body = json!({"preferences": {"quota_alert": {"in_app": true, "email": false}}});
        serde_json::from_value::<UpdatePreferencesRequest>(body).expect("preferences");
        for mail in ["", "desk@example.com"] {
            serde_json::from_value::<OrganizationUpdateRequest>(body_of(mail)).expect("a change");
        }
        assert_eq!(body_of("")["notifications_email"], Value::Null);
        for kind in KINDS {
            assert_eq!(*kind == "custom", about(kind).starts_with("Matches"));
        }
    }
}
