use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, page},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Webhook", ""),
    Column("Events", ""),
    Column("Receivers", ""),
    Column("Health", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "pulse",
    title: "No webhook yet",
    text: "A webhook tells your own programs, or a chat, as soon as something happens here: documents that were written, triggers that fired.",
    link: None,
};

const SENT: &[Column] = &[
    Column("Event", ""),
    Column("Status", ""),
    Column("Attempts", "num"),
    Column("Answer", ""),
    Column("When", ""),
    Column("", "actions"),
];

const NOTHING_SENT: Blank = Blank {
    icon: "pulse",
    title: "Nothing was sent",
    text: "What is sent stands here for 30 days, with what the receiver answered.",
    link: None,
};

const OUTCOMES: &[&str] = &["pending", "delivered", "failed"];

const FORM: &str = "webhooks";

const LIST: &str = "/v1/organizations/webhooks";

fn path_of(id: &str) -> String {
    format!("{LIST}/{}", text::escape(id))
}

/// The log's own buttons, and whose log it is.
#[derive(Clone, Copy)]
struct Sent(Rows, Query);

pub fn webhooks() -> AnyView {
    let session = use_session();
    let (offset, log) = (Query::new("offset"), Query::new("log"));
    let load = Load::new(move || {
        let path = format!("{LIST}/list{}", page_query(offset));
        session.api().post(&path, &json!({}))
    });
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(log);
    let (create, secret) = (RwSignal::new(false), RwSignal::new(None));
    // A change tells secrets, too: those of receivers that came with it.
    let saved = Callback::new(move |saved: Record| {
        load.reload();
        secret.set(secrets(&saved).map(|secret| (saved.text("webhook_name"), secret)));
    });
    let fresh = || json!({"event_types": [], "channels": [{"channel": "webhook", "configs": {}}]});
    let delete = move |one: Record| session.api().delete(&path_of(&one.text("webhook_id")));
    let put = move |body: Value| {
        let id = rows.of.get_untracked().text("webhook_id");
        session.api().put(&path_of(&id), &body)
    };
    view! {
        <ListPage title="Webhooks" text="Events that are sent to your own programs and chats as they happen." load offset columns=COLUMNS row blank=BLANK
            rows create=Create::Dialog("Create webhook", create)/>
        <Fill open=create title="Create a webhook".to_owned() label="Create" form=Form::plain("webhook") schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(move |body| session.api().post(LIST, &body)) done=saved/>
        <Fill open=rows.dialog("Change") title=Signal::derive(move || format!("Change {}", rows.of.get().text("webhook_name"))) label="Save"
            form=Form::plain("webhook-change") schema=FORM start=Callback::new(move |()| body(&rows.of.get())) send=Callback::new(put)
            done=saved/>
        <Discard rows what="webhook" name="webhook_name" loses="Nothing is sent to its receivers from now on, and its log is removed with it."
            delete=Callback::new(delete)/>
        <Secret secret variable="LOUPE_WEBHOOK_SECRET" why="The receiver checks with it that messages come from here. It is kept encrypted and is not shown again."/>
        {deliveries(rows, load, log)}
    }
    .into_any()
}

/// The signing secrets that are told, a line each.
fn secrets(made: &Record) -> Option<String> {
    let all = made.list("channels").into_iter();
    let all: Vec<_> = all
        .filter_map(|one| one.record("configs").opt("signing_secret"))
        .collect();
    Some(all.join("\n")).filter(|all| !all.is_empty())
}

/// What puts the webhook in its own place.
fn body(one: &Record) -> Value {
    let members = ["webhook_name", "event_types", "resource_types", "channels"];
    let mut body = json!({});
    for member in members {
        if let Some(value) = one.value(member) {
            body[member] = value.clone();
        }
    }
    body["is_active"] = one.flag("is_active").into();
    body
}

/// Channels that nothing is sent to any more, by their places, and why.
fn paused(one: &Record) -> Vec<(usize, String)> {
    let each = one.record("delivery_health").list("channels").into_iter();
    each.enumerate()
        .filter(|(_, channel)| channel.text("status") == "paused")
        .map(|(place, channel)| (place, channel.text("paused_for")))
        .collect()
}

/// How it does, in a word.
fn state(one: &Record) -> String {
    let health = one.record("delivery_health").text("status");
    match (health.as_str(), one.flag("is_active")) {
        ("paused", _) => health,
        (_, false) => "off".into(),
        ("", _) => "active".into(),
        _ => health,
    }
}

fn row(one: Record) -> AnyView {
    let (rows, log): (Rows, Query) = (expect_context(), expect_context());
    let session = use_session();
    let (id, title) = (one.text("webhook_id"), one.text("webhook_name"));
    let mut events: Vec<String> = one.strings("event_types");
    let more = events.len().saturating_sub(2);
    events.truncate(2);
    if more > 0 {
        events.push(format!("{more} more"));
    }
    let paused = paused(&one);
    let named = |(place, channel): (usize, Record)| match paused.iter().any(|(at, _)| *at == place)
    {
        true => format!("{} · paused", receiver(&channel)),
        false => receiver(&channel),
    };
    let receivers = one.list("channels").into_iter().enumerate();
    let receivers = receivers.map(named).collect();
    let health = one.record("delivery_health");
    let under = match (health.opt("last_error"), health.opt("last_success_at")) {
        (Some(error), _) if health.text("status") != "healthy" => error.into_any(),
        (_, Some(at)) => view! { "last delivered "{when(Some(at))} }.into_any(),
        _ => "nothing sent yet".into_any(),
    };
    let resume = (!one.flag("is_active") || !paused.is_empty()).then(|| active(rows, &one));
    let chosen = id.clone();
    let first = [
        Act("Log", Box::new(move || log.set(&chosen))),
        rows.opens("Change", &one),
    ];
    let path = format!("{}/test", path_of(&id));
    let test = rows.tests(move || session.api().post(&path, &json!({})));
    let more = vec![test, rows.opens("Remove", &one)];
    let buttons =
        view! { {resume}{Vec::from(first.map(|act| act.button(&title)))}{menu(&id, &title, more)} };
    line(vec![
        name(None, title.clone(), id),
        tags(events),
        tags(receivers),
        cell(
            "",
            view! { {badge(&state(&one))}<span class="sub cut">{under}</span> }.into_any(),
        ),
        cell("actions many", buttons.into_any()),
    ])
}

/// Whom a channel sends to, in short.
fn receiver(channel: &Record) -> String {
    let configs = channel.record("configs");
    let address = configs.first(&["url", "webhook_url"]);
    let host = address.split('/').nth(2).unwrap_or_default();
    match channel.text("channel").as_str() {
        "slack" => format!("chat {host}"),
        "email" => format!("mail {}", configs.strings("to_addresses").join(", ")),
        _ => host.to_owned(),
    }
}

/// A button that lets a webhook send again.
fn active(rows: Rows, one: &Record) -> AnyView {
    let session = use_session();
    let (title, path) = (one.text("webhook_name"), path_of(&one.text("webhook_id")));
    let mut body = body(one);
    body["is_active"] = true.into();
    rows.call("Set active", &title, "It sends again", move || {
        session.api().put(&path, &body)
    })
}

/// What the webhook in the address sent.
fn deliveries(rows: Rows, all: Load, log: Query) -> AnyView {
    let session = use_session();
    let (outcome, from) = (Query::new("outcome"), Query::new("from"));
    let whose = Memo::new(move |_| {
        let id = log.value.get();
        let (known, _) = page(&all.good()?);
        known.into_iter().find(|one| one.text("webhook_id") == id)
    });
    let load = Load::of(
        move || session.api(),
        move || match log.value.get() {
            id if id.is_empty() => id,
            id => format!(
                "{}/deliveries{}{}",
                path_of(&id),
                page_query(from),
                outcome.query("status")
            ),
        },
    );
    load.poll_while(is_due);
    let sent = Rows::new(load);
    provide_context(Sent(sent, log));
    let title = Signal::derive(move || {
        let name = whose.get().map(|one| one.text("webhook_name"));
        format!("Deliveries of {}", name.unwrap_or_else(|| log.value.get()))
    });
    let paused = move || Some(stopped(rows, &whose.get()?));
    let above = move || {
        view! {
            {paused}
            {refusal(sent.change)}
            <div class="row filters"><Pick query=outcome label="Status of the delivery" all="Every status" options=OUTCOMES/></div>
        }
    };
    view! { <Log open=log.is_named() title load columns=SENT row=delivery blank=NOTHING_SENT offset=from above=ViewFn::from(above)/> }
        .into_any()
}

/// Who is sent nothing any more, why, and how that ends.
fn stopped(rows: Rows, one: &Record) -> Option<AnyView> {
    let channels = one.list("channels");
    let told = paused(one).into_iter().filter_map(|(place, why)| {
        let receiver = receiver(channels.get(place)?);
        Some(view! { <span>{receiver}" could not be reached: "{why}</span> })
    });
    let told: Vec<_> = told.collect();
    let others = match state(one).as_str() {
        "paused" => "",
        "degraded" => " The other receivers get what happens.",
        _ => return None,
    };
    let view = view! {
        <div class="notice warn">
            <strong>"Paused"</strong>
            {told}
            <span>"Nothing is sent there until the webhook is set active again, and what happens meanwhile is not kept for it. What failed can be replayed from here afterwards."{others}</span>
            <div class="row">{active(rows, one)}</div>
        </div>
    };
    Some(view.into_any())
}

/// Whether an attempt is about to be made.
fn is_due(delivery: &Record) -> bool {
    let next = delivery.opt("next_attempt_at");
    next.is_some_and(|at| js_sys::Date::parse(&at) < js_sys::Date::now() + 5000.0)
}

fn delivery(one: Record) -> AnyView {
    let (session, Sent(rows, log)) = (use_session(), expect_context());
    let (id, event) = (one.text("delivery_id"), one.text("event_type"));
    let status = one.text("status");
    let pending = status == "pending";
    let replay = (!pending).then(|| {
        let id = id.clone();
        rows.call("Replay", &event, "It is sent once more", move || {
            let path = format!(
                "{}/deliveries/{id}/replay",
                path_of(&log.value.get_untracked())
            );
            session.api().post(&path, &json!({}))
        })
    });
    let answer = one.text("response_status");
    // What went wrong is told while it is tried again, too.
    let next = one.opt("next_attempt_at").filter(|_| pending);
    let next = next.map(|at| view! { <span class="sub">"next attempt "{when(Some(at))}</span> });
    let wrong = one.opt("error");
    let wrong = wrong.map(|wrong| view! { <span class="sub">{wrong}</span> });
    line(vec![
        name(None, event, id),
        cell("", badge(&status)),
        number(one.int("attempts")),
        cell("text-cell", view! { {answer}{wrong}{next} }.into_any()),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", replay.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        NotificationChannel, NotificationEmailConfig, WebhookEventType, WebhookInput, WebhookOutput,
    };

    use super::*;
    use crate::record::tests::{sent, variants};

    /// What a field of the form offers, in order.
    fn offered(field: &Record) -> Vec<String> {
        let mut offered = field.strings("enum");
        offered.sort_unstable();
        offered
    }

    #[test]
    fn every_event_and_every_channel_is_offered() {
        let members = schema::named(FORM).record("properties");
        let events = offered(&members.record("event_types").record("items"));
        assert_eq!(events, variants::<WebhookEventType>());
        let channel = members.record("channels").record("items");
        let channel = channel.record("properties").record("channel");
        assert_eq!(offered(&channel), variants::<NotificationChannel>());
        assert_eq!(
            channel.strings("names").len(),
            channel.strings("enum").len()
        );
        for kind in offered(&members.record("resource_types").record("items")) {
            let start = format!("{kind}.");
            assert!(events.iter().any(|one| one.starts_with(&start)), "{kind}");
        }
    }

    #[test]
    fn a_receiver_is_told_by_where_it_is() {
        let said = |kind: &str, configs: Value| {
            receiver(&Record(json!({"channel": kind, "configs": configs})))
        };
        let url = "https://shop.example/hooks/loupe";
        assert_eq!(said("webhook", json!({"url": url})), "shop.example");
        assert_eq!(
            said("slack", json!({"webhook_url": url})),
            "chat shop.example"
        );
        let mail = NotificationEmailConfig {
            to_addresses: vec!["a@shop.example".into(), "b@shop.example".into()],
            ..Default::default()
        };
        assert_eq!(
            said("email", sent(&mail).0),
            "mail a@shop.example, b@shop.example"
        );
    }

    #[test]
    fn a_receiver_that_is_paused_is_told_with_its_reason() {
        let one = Record(
            json!({"is_active": true, "delivery_health": {"status": "degraded", "channels": [
            {"channel": 0, "status": "healthy"}, {"channel": 1, "status": "paused", "paused_for": "410"}]}}),
        );
        assert_eq!(state(&one), "degraded");
        assert_eq!(paused(&one), [(1, "410".to_owned())]);
        assert_eq!(paused(&Record(json!({"is_active": true}))), []);
    }

    #[test]
    fn the_secrets_that_an_answer_tells_are_shown() {
        let channel = |configs: Value| json!({"channel": "webhook", "configs": configs});
        let told = json!({"channels": [channel(json!({"url": "a"})), channel(json!({"url": "b", "signing_secret": "whsec_b"}))]});
        assert_eq!(secrets(&Record(told)), Some("whsec_b".to_owned()));
        let told = json!({"channels": [channel(json!({"url": "a"}))]});
        assert_eq!(secrets(&Record(told)), None);
    }

    #[test]
    fn a_webhook_is_put_back_as_it_was() {
        let one = json!({"webhook_id": "wh_1", "webhook_name": "a", "event_types": ["object.created"], "is_active": false,
            "channels": [{"channel": "webhook", "configs": {"url": "https://a.example"}}], "delivery_health": {"status": "paused"}});
        let read: WebhookOutput = serde_json::from_value(one).expect("a webhook");
        let one = sent(&read);
        assert_eq!(state(&one), "paused");
        let put: WebhookInput = serde_json::from_value(body(&one)).expect("a body");
        assert_eq!((put.webhook_name.as_str(), put.is_active), ("a", false));
        assert_eq!(put.channels, read.channels);
    }
}
