pub mod everywhere;

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, only, page, plain},
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Alert", ""),
    Column("Fires when", ""),
    Column("Tells", ""),
    Column("Status", ""),
    Column("Last fired", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "alert",
    title: "No alert here",
    text: "An alert asks a retriever, or looks at the server, again and again, and tells people when the answer calls for it.",
    link: None,
};

const LOOKS: &[Column] = &[
    Column("When", ""),
    Column("Outcome", ""),
    Column("Found", ""),
    Column("Told", ""),
    Column("Took", "num"),
];

const NO_LOOKS: Blank = Blank {
    icon: "alert",
    title: "It has not looked yet",
    text: "Every look stands here for two days, and for 90 when it fired.",
    link: None,
};

const FORM: &str = "alerts";

/// What forms choose from and rows name.
const KINDS: &[&str] = &["collections", "retrievers", "buckets"];

/// What can be changed of an alert.
const MEMBERS: [&str; 13] = [
    "name",
    "description",
    "retriever_id",
    "trigger_on",
    "min_count",
    "threshold",
    "inputs",
    "cooldown_seconds",
    "renotify_interval_seconds",
    "system_condition",
    "notification_config",
    "enabled",
    "execution_mode",
];

/// What null takes away: the form has nothing where it was emptied.
const CLEARED: [&str; 2] = ["description", "renotify_interval_seconds"];

/// For how long an alert can be snoozed, in days.
const SNOOZES: [(&str, f64); 3] = [("1 hour", 1.0 / 24.0), ("1 day", 1.0), ("1 week", 7.0)];

fn path_of(id: &str) -> String {
    format!("/v1/alerts/{}", text::escape(id))
}

/// What rows need besides their own buttons.
#[derive(Clone, Copy)]
struct Around(Form, Query, Memo<String>);

pub fn alerts() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let (search, offset, log) = (Query::new("q"), Query::new("offset"), Query::new("log"));
    let form = Form::plain("alert");
    let load = Load::new(move || {
        let path = format!("/v1/alerts/list{}", page_query(offset));
        let body = match search.value.get() {
            words if words.is_empty() => json!({}),
            words => json!({ "search": words }),
        };
        list(session.api_in(ns.get()), path, body, form)
    });
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(Around(form, log, ns));
    let api = move || session.api_in(ns.get_untracked());
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let change = form.beside();
    let patch = move |body: Value| {
        let id = rows.of.get_untracked().text("alert_id");
        api().patch(&path_of(&id), &changed(body, &MEMBERS))
    };
    let fresh = || json!({"source": "retriever", "trigger_on": "results", "notification_config": {"channels": [{"channel_type": "webhook", "config": {}}]}});
    view! {
        <ListPage title="Alerts" text="Questions that are asked again and again, and who is told of the answer." load search offset columns=COLUMNS row
            blank=BLANK rows create=Create::Dialog("Create alert", create)/>
        <Fill open=create title="Create an alert".to_owned() label="Create" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(move |body| api().post("/v1/alerts", &made(body))) done=saved below=ViewFn::from(move || written(form))/>
        <Fill open=rows.dialog("Change") title=Signal::derive(move || format!("Change {}", rows.of.get().text("name"))) label="Save" form=change schema=FORM
            start=Callback::new(move |()| rows.of.get().0) send=Callback::new(patch) done=saved below=ViewFn::from(move || written(change))/>
        <Discard rows what="alert" name="name" loses="It looks and tells no more. What it told is gone with it."
            delete=Callback::new(move |one: Record| api().delete(&path_of(&one.text("alert_id"))))/>
        {snoozes(rows, path_of, api)}
        {looks(load, log, path_of, move || session.api_in(ns.get()))}
    }
    .into_any()
}

/// The alerts, once everything that they name is known.
fn list(api: Api, path: String, body: Value, form: Form) -> Answer {
    Box::pin(async move {
        let all = choices(api.clone(), KINDS).await?;
        form.choices.set(all);
        api.post(&path, &body).await
    })
}

/// A new alert says nothing of the kind that it is not.
fn made(mut body: Value) -> Value {
    let system = body["source"] == "system";
    if let Some(members) = body.as_object_mut() {
        let empty = |value: &Value| value.as_object().is_some_and(|inside| inside.is_empty());
        members.retain(|name, value| !(empty(value) || (system && name == "trigger_on")));
    }
    body
}

/// What a change sends of the form.
fn changed(body: Value, members: &[&str]) -> Value {
    let mut sent = only(Record(body), members);
    for name in CLEARED {
        if sent.get(name).is_none() {
            sent[name] = Value::Null;
        }
    }
    // One of no field asks for nothing.
    if sent["threshold"]["field"].is_null() {
        sent["threshold"] = Value::Null;
    }
    sent
}

/// The alert that is being written, as a sentence.
fn written(form: Form) -> AnyView {
    let schema = StoredValue::new(schema::named(FORM));
    let said = move || {
        let one = form.value.with(|body| Record(body.clone()));
        let condition = one.record("system_condition");
        let is_told = match one.text("source") == "system" {
            true => condition.value("type").is_some(),
            false => one.value("retriever_id").is_some(),
        };
        if !is_told {
            return "What it fires at stands here.".to_owned();
        }
        let named = |of: &str, id: &str| form.name_of(of, id);
        let condition = schema.with_value(|schema| sentence(&one, schema, named));
        format!("It fires when {condition}.")
    };
    view! { <p class="notice" role="status">{said}</p> }.into_any()
}

fn number_of(value: f64) -> String {
    plain(&json!(value)).trim_end_matches(".0").to_owned()
}

/// The condition in a sentence, in the words that the form has for it.
fn sentence(one: &Record, schema: &Record, named: impl Fn(&str, &str) -> String) -> String {
    let members = schema.record("properties");
    let word = |field: &Record, value: &str| {
        let at = field.strings("enum").iter().position(|one| one == value);
        let name = at.and_then(|at| field.strings("names").into_iter().nth(at));
        name.unwrap_or_else(|| text::words(value))
    };
    if one.text("source") == "system" {
        let condition = one.record("system_condition");
        let field = members.record("system_condition").record("properties");
        let mut out = word(&field.record("type"), &condition.text("type"));
        for (member, value) in condition.record("params").members() {
            let value = match member.as_str() {
                "stall_minutes" => {
                    out += &format!(" for {} minutes", plain(&value.0));
                    continue;
                }
                "collection_id" => named("collections", &plain(&value.0)),
                "retriever_id" => named("retrievers", &plain(&value.0)),
                _ => plain(&value.0),
            };
            out += &format!(", {} {value}", text::words(member.trim_end_matches("_id")));
        }
        return out;
    }
    let name = named("retrievers", &one.text("retriever_id"));
    if one.text("trigger_on") == "no_results" {
        return format!("{name} finds nothing");
    }
    let mut out = match one.int("min_count").unwrap_or(1) {
        ..=1 => format!("{name} finds something"),
        count => format!("{name} finds at least {count}"),
    };
    let threshold = one.record("threshold");
    if let Some(field) = threshold.opt("field") {
        let operators = members.record("threshold").record("properties");
        let is = word(&operators.record("operator"), &threshold.text("operator"));
        let value = threshold
            .float("value")
            .map_or_else(|| threshold.text("value"), number_of);
        out += &format!(", the first with {field} {is} {value}");
    }
    out
}

fn row(one: Record) -> AnyView {
    let (session, rows): (_, Rows) = (use_session(), expect_context());
    let Around(form, log, ns) = expect_context();
    let (id, title, on) = (one.text("alert_id"), one.text("name"), one.flag("enabled"));
    let schema = schema::named(FORM);
    let condition = sentence(&one, &schema, |of, id| form.name_of(of, id));
    let mut looks = text::words(&one.text("execution_mode"));
    if let Some(rest) = one.int("cooldown_seconds").filter(|rest| *rest > 0) {
        looks += &format!(", rests {}", text::span(rest));
    }
    let channels = one.record("notification_config").list("channels");
    let channels = channels
        .iter()
        .map(|one| one.text("channel_type"))
        .collect();
    let path = path_of(&id);
    let test = {
        let path = format!("{path}/execute");
        let call = move || session.api_in(ns.get_untracked()).post(&path, &json!({}));
        test_now(rows, log, &title, &id, call)
    };
    let toggle = match on {
        true => ("Switch off", "It looks no more"),
        false => ("Switch on", "It looks again"),
    };
    let patch = move |body: Value| session.api_in(ns.get_untracked()).patch(&path, &body);
    let snooze = snooze(rows, &title, &one, patch.clone());
    let toggle = rows.call(toggle.0, &title, toggle.1, move || {
        patch(json!({"enabled": !on}))
    });
    let send = {
        let path = format!("{}/test", path_of(&id));
        let call = move || session.api_in(ns.get_untracked()).post(&path, &json!({}));
        rows.send_test(&title, call)
    };
    let past = history(log, &title, &id);
    let buttons = view! { {test}{send}{past}{snooze}{toggle}{rows.open("Change", &title, &one)}{rows.open("Remove", &title, &one)} };
    line(vec![
        name(None, title.clone(), id),
        two(condition, looks),
        tags(channels),
        cell("", state(&one)),
        cell("nowrap", when(one.opt("last_fired_at"))),
        cell("actions many", buttons.into_any()),
    ])
}

/// A button that lets an alert look now; what it finds then stands at the top of its log.
fn test_now(
    rows: Rows,
    log: Query,
    name: &str,
    id: &str,
    call: impl Fn() -> Answer + 'static,
) -> AnyView {
    let id = id.to_owned();
    let test = move || {
        let id = id.clone();
        rows.change.run(call(), move |_| {
            rows.reload();
            log.set(&id);
        });
    };
    press("Test now", name, Box::new(test))
}

/// Until when an alert is snoozed, if it is.
fn snoozed(one: &Record) -> Option<String> {
    let until = one.opt("snoozed_until")?;
    (js_sys::Date::parse(&until) > js_sys::Date::now()).then_some(until)
}

/// Whether an alert looks, and until when it tells nobody.
fn state(one: &Record) -> AnyView {
    let until = snoozed(one).filter(|_| one.flag("enabled"));
    let word = match (one.flag("enabled"), &until) {
        (false, _) => "off",
        (true, None) => "active",
        (true, Some(_)) => "snoozed",
    };
    let until =
        until.map(|at| view! { <span class="sub">{format!("until {}", text::moment(&at))}</span> });
    view! { {badge(word)}{until} }.into_any()
}

/// A button that asks for how long an alert tells nobody, or ends that.
fn snooze(
    rows: Rows,
    name: &str,
    one: &Record,
    patch: impl Fn(Value) -> Answer + 'static,
) -> AnyView {
    if snoozed(one).is_none() {
        return rows.open("Snooze", name, one);
    }
    rows.call("Wake up", name, "It tells again", move || {
        patch(json!({"snoozed_until": null}))
    })
}

/// Asks for how long.
fn snoozes(
    rows: Rows,
    path_of: fn(&str) -> String,
    api: impl Fn() -> Api + Copy + Send + Sync + 'static,
) -> AnyView {
    let open = rows.dialog("Snooze");
    let title = Signal::derive(move || format!("Snooze {}", rows.of.get().text("name")));
    let run = rows.runner("It tells nobody until then");
    let choice = move |(label, days): (&'static str, f64)| {
        let snooze = move |_| {
            open.set(false);
            let path = path_of(&rows.of.get_untracked().text("alert_id"));
            run(api().patch(&path, &json!({"snoozed_until": text::before(-days)})));
        };
        view! { <button type="button" class="btn" on:click=snooze>{label}</button> }.into_any()
    };
    view! {
        <Modal open title>
            <p>"It goes on looking, and tells nobody for:"</p>
            <div class="row">{Vec::from(SNOOZES.map(choice))}</div>
        </Modal>
    }
    .into_any()
}

/// A button that shows what an alert found.
fn history(log: Query, name: &str, id: &str) -> AnyView {
    let id = id.to_owned();
    press("History", name, Box::new(move || log.set(&id)))
}

/// What the alert in the address found, look by look.
fn looks(
    all: Load,
    log: Query,
    path_of: fn(&str) -> String,
    api: impl Fn() -> Api + 'static,
) -> AnyView {
    let from = Query::new("from");
    let load = Load::of(api, move || match log.value.get() {
        id if id.is_empty() => id,
        id => format!("{}/executions{}", path_of(&id), page_query(from)),
    });
    load.poll_while(|one| {
        let told = one.list("deliveries");
        told.iter()
            .any(|one| matches!(one.text("status").as_str(), "pending" | "deferred"))
    });
    let title = Signal::derive(move || {
        let id = log.value.get();
        let known = all.good().map(|all| page(&all).0).unwrap_or_default();
        let name = known.into_iter().find(|one| one.text("alert_id") == id);
        format!("History of {}", name.map_or(id, |one| one.text("name")))
    });
    view! { <Log open=log.is_named() title load columns=LOOKS row=look blank=NO_LOOKS offset=from above=ViewFn::from(|| ())/> }.into_any()
}

fn look(one: Record) -> AnyView {
    let collection = one.text("collection_id");
    let ns = namespace();
    let count = one.int("match_count").unwrap_or(0);
    let found = one.list("matches").into_iter().take(5).map(|found| {
        let id = found.text("document_id");
        let score = format!(" {:.2}", found.float("score").unwrap_or(0.0));
        // An alert of the organization stands in no namespace: nothing says which one the collection is in.
        let shown = match collection.is_empty() || ns.is_empty() {
            true => view! { <code>{id}</code> }.into_any(),
            false => {
                let href = format!(
                    "/console/ns/{ns}/collections/{collection}?document={}",
                    text::escape(&id)
                );
                view! { <a href=href>{id}</a> }.into_any()
            }
        };
        view! { <li>{shown}{score}</li> }.into_any()
    });
    let told = one.list("deliveries").into_iter().map(|told| {
        let line = format!("{} ", told.text("channel_type"));
        view! { <li>{line}{badge(&told.text("status"))}<span class="sub">{told.text("error")}</span></li> }.into_any()
    });
    let outcome = match (one.flag("triggered"), count) {
        (true, _) => "fired",
        (false, 0) => "quiet",
        (false, _) => "not told",
    };
    let (found, told) = (found.collect::<Vec<_>>(), told.collect::<Vec<_>>());
    line(vec![
        cell("nowrap", when(one.opt("executed_at"))),
        cell("", badge(outcome)),
        cell(
            "",
            view! { {text::count(count)}<ul class="sub-list">{found}</ul> }.into_any(),
        ),
        cell("", view! { <ul class="sub-list">{told}</ul> }.into_any()),
        words(
            "num nowrap",
            one.float("duration_ms")
                .map(text::millis)
                .unwrap_or_default(),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateAlertRequest, PatchAlertRequest, SystemConditionType};

    use super::*;

    fn said(one: Value) -> String {
        let schema = schema::named(FORM);
        sentence(&Record(one), &schema, |of, id| format!("{of}/{id}"))
    }

    #[test]
    fn a_condition_is_told_in_a_sentence() {
        let one = json!({"source": "retriever", "retriever_id": "r", "trigger_on": "results", "min_count": 3,
            "threshold": {"field": "score", "operator": "gte", "value": 0.8}});
        assert_eq!(
            said(one),
            "retrievers/r finds at least 3, the first with score at least 0.8"
        );
        let one = json!({"source": "retriever", "retriever_id": "r", "trigger_on": "no_results"});
        assert_eq!(said(one), "retrievers/r finds nothing");
        let one = json!({"source": "system", "system_condition": {"type": "collection_stale", "params": {"stall_minutes": 60, "collection_id": "c"}}});
        assert_eq!(
            said(one),
            "a collection got nothing new for 60 minutes, collection collections/c"
        );
    }

    #[test]
    fn what_the_form_makes_is_an_alert() {
        let schema = schema::named(FORM).0;
        let offered = schema["properties"]["system_condition"]["properties"]["type"].clone();
        let kinds: Vec<SystemConditionType> =
            serde_json::from_value(offered["enum"].clone()).expect("conditions");
        assert_eq!(offered["names"].as_array().map(Vec::len), Some(kinds.len()));
        // Whoever reads one that there is not tells all that there are.
        let unknown = serde_json::from_value::<SystemConditionType>(json!("?")).expect_err("none");
        let told = unknown.to_string();
        let (_, told) = told.split_once("expected one of ").expect("a list");
        let mut all: Vec<&str> = told.split(", ").map(|one| one.trim_matches('`')).collect();
        let offered = Record(offered).strings("enum");
        let mut offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        all.sort_unstable();
        offered.sort_unstable();
        assert_eq!(offered, all);
        let body = json!({"name": "n", "source": "system", "trigger_on": "results", "threshold": {}, "system_condition": {"type": "batch_failed", "params": {}},
            "notification_config": {"channels": [{"channel_type": "slack", "config": {"webhook_url": "https://a.example"}}]}});
        let body = made(body);
        assert!(body.get("threshold").is_none() && body.get("trigger_on").is_none());
        serde_json::from_value::<CreateAlertRequest>(body.clone()).expect("a body");
        let change = changed(body, &MEMBERS);
        let change: PatchAlertRequest = serde_json::from_value(change).expect("a change");
        assert_eq!(change.renotify_interval_seconds, Some(None));
        assert_eq!(change.threshold, Some(None));
        let snooze = json!({"snoozed_until": "2026-11-24T21:00:00.000Z"});
        let snooze: PatchAlertRequest = serde_json::from_value(snooze).expect("a snooze");
        assert!(snooze.snoozed_until.flatten().is_some());
    }
}
