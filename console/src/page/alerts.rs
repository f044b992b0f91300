pub mod everywhere;
mod history;

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, only, plain},
    route::param,
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

const FORM: &str = "alerts";

/// What forms choose from and rows name.
const KINDS: &[&str] = &["collections", "retrievers", "buckets"];

const WEBHOOKS: &str = "webhooks";

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
    schema::DrawInputs::provide();
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
            start=Callback::new(move |()| lifted(rows.of.get().0)) send=Callback::new(patch) done=saved below=ViewFn::from(move || written(change))/>
        <Discard rows what="alert" name="name" loses="It looks and tells no more. What it told is gone with it."
            delete=Callback::new(move |one: Record| api().delete(&path_of(&one.text("alert_id"))))/>
        {snoozes(rows, path_of, api)}
        {history::panel(load, log, path_of, move || session.api_in(ns.get()))}
    }
    .into_any()
}

/// The alerts, once everything that they name is known.
fn list(api: Api, path: String, body: Value, form: Form) -> Answer {
    Box::pin(async move {
        let all = choices(api.clone(), KINDS).await?;
        form.choices.set(with_webhooks(all, &api).await);
        api.post(&path, &body).await
    })
}

/// What there is to choose from, with the webhooks of the organization; those who may not see these choose among none.
async fn with_webhooks(mut all: Record, api: &Api) -> Record {
    let api = Api {
        namespace: None,
        ..api.clone()
    };
    if let Ok(mut found) = choices(api, &[WEBHOOKS]).await {
        all.0[WEBHOOKS] = found.0[WEBHOOKS].take();
    }
    all
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

/// What a change begins with: a webhook that the settings of a channel name stands beside them, as the form has it.
fn lifted(mut one: Value) -> Value {
    let channels = one["notification_config"]["channels"].as_array_mut();
    for channel in channels.into_iter().flatten() {
        let config = channel.get_mut("config").and_then(Value::as_object_mut);
        let named = config.and_then(|config| config.shift_remove("channel_id"));
        if let Some(named) = named.filter(|_| channel["channel_id"].is_null()) {
            channel["channel_id"] = named;
        }
    }
    one
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

/// Letters of what is asked that a sentence takes.
const LONG: usize = 60;

/// What a retriever is asked for, in short; files are no words.
fn asked(inputs: &Record) -> String {
    let all = inputs
        .members()
        .into_iter()
        .map(|(_, value)| plain(&value.0));
    let all: Vec<String> = all.filter(|text| !text.starts_with("data:")).collect();
    let all = all.join(", ");
    match all.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &all[..end]),
        None => all,
    }
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
    let name = match asked(&one.record("inputs")) {
        nothing if nothing.is_empty() => name,
        asked => format!("{name}, asked for “{asked}”,"),
    };
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
    let path = path_of(&id);
    let test = {
        let path = format!("{path}/execute");
        let call = move || session.api_in(ns.get_untracked()).post(&path, &json!({}));
        test_now(rows, log, &one, call)
    };
    let toggle = match on {
        true => ("Switch off", "It looks no more"),
        false => ("Switch on", "It looks again"),
    };
    let patch = move |body: Value| session.api_in(ns.get_untracked()).patch(&path, &body);
    let snooze = snooze(rows, &one, patch.clone());
    let toggle = rows.calls(toggle.0, toggle.1, move || patch(json!({"enabled": !on})));
    let send = {
        let path = format!("{}/test", path_of(&id));
        rows.tests(move || session.api_in(ns.get_untracked()).post(&path, &json!({})))
    };
    let first = [test, history::act(log, &id), rows.opens("Change", &one)];
    let more = vec![send, snooze, toggle, rows.opens("Remove", &one)];
    let buttons =
        view! { {Vec::from(first.map(|act| act.button(&title)))}{menu(&id, &title, more)} };
    line(vec![
        name(None, title.clone(), id),
        two(condition, looks),
        tags(receivers(&one, form)),
        cell("", state(&one)),
        cell("nowrap", when(one.opt("last_fired_at"))),
        cell("actions many", buttons.into_any()),
    ])
}

/// Whom an alert tells: the kinds of its channels, and webhooks of the organization by their names.
fn receivers(one: &Record, form: Form) -> Vec<String> {
    let channels = one.record("notification_config").list("channels");
    let told = channels.iter().map(|channel| {
        let kind = channel.text("channel_type");
        let address = channel.record("config").opt("url");
        let named = channel.opt("channel_id").filter(|_| address.is_none());
        match named {
            Some(id) => format!("{kind} {}", form.name_of(WEBHOOKS, &id)),
            None => kind,
        }
    });
    told.collect()
}

/// Lets an alert look now; what it finds then stands at the top of its log.
fn test_now(rows: Rows, log: Query, one: &Record, call: impl Fn() -> Answer + 'static) -> Act {
    let (one, toasts) = (one.clone(), expect_context::<Toasts>());
    let test = move || {
        let (id, why) = (one.text("alert_id"), quiet(&one));
        rows.change.run(call(), move |look| {
            let found = look.int("match_count").unwrap_or(0);
            if let Some(why) = why.filter(|_| found > 0 && !look.flag("triggered")) {
                let found = text::counted(found, "document", "documents");
                toasts.say(format!("It found {found} and told nobody: {why}"));
            }
            rows.reload();
            log.set(&id);
        });
    };
    Act("Test now", Box::new(test))
}

/// Why an alert tells nobody now, whatever it finds.
fn quiet(one: &Record) -> Option<String> {
    if let Some(until) = snoozed(one) {
        return Some(format!("it is snoozed until {}", text::moment(&until)));
    }
    let (fired, rest) = (one.opt("last_fired_at")?, one.int("cooldown_seconds")?);
    let since = (js_sys::Date::now() - js_sys::Date::parse(&fired)) / 1000.0;
    (since < rest as f64).then(|| format!("it rests {} after it fired", text::span(rest)))
}

/// Until when an alert is snoozed, if it is.
fn snoozed(one: &Record) -> Option<String> {
    let until = one.opt("snoozed_until")?;
    (js_sys::Date::parse(&until) > js_sys::Date::now()).then_some(until)
}

/// Whether an alert looks, why it cannot, and until when it tells nobody.
fn state(one: &Record) -> AnyView {
    let until = snoozed(one).filter(|_| one.flag("enabled"));
    let word = match (one.flag("enabled"), failure(one), &until) {
        (false, ..) => "off",
        (true, Some(_), _) => "failing",
        (true, None, None) => "active",
        (true, None, Some(_)) => "snoozed",
    };
    let until = until.map(|at| format!("until {}", text::moment(&at)));
    let below = failure(one).filter(|_| word == "failing").or(until);
    let below = below.map(|said| view! { <span class="sub">{said}</span> });
    view! { {badge(word)}{below} }.into_any()
}

/// How often looks failed in a row, and why the last one did.
fn failure(one: &Record) -> Option<String> {
    let why = one.opt("last_execution_error")?;
    let times = text::counted(
        one.int("consecutive_failures").unwrap_or(1),
        "look",
        "looks",
    );
    Some(format!("{times} failed: {why}"))
}

/// Asks for how long an alert tells nobody, or ends that.
fn snooze(rows: Rows, one: &Record, patch: impl Fn(Value) -> Answer + 'static) -> Act {
    if snoozed(one).is_none() {
        return rows.opens("Snooze", one);
    }
    rows.calls("Wake up", "It tells again", move || {
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

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateAlertRequest, PatchAlertRequest, SystemConditionType};

    use super::*;
    use crate::record::tests::variants;

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
        let one = json!({"source": "retriever", "retriever_id": "r", "trigger_on": "no_results", "inputs": {"query": "a bike"}});
        assert_eq!(said(one), "retrievers/r, asked for “a bike”, finds nothing");
        let one = json!({"source": "system", "system_condition": {"type": "collection_stale", "params": {"stall_minutes": 60, "collection_id": "c"}}});
        assert_eq!(
            said(one),
            "a collection got nothing new for 60 minutes, collection collections/c"
        );
    }

    #[test]
    fn a_webhook_is_told_by_its_name_wherever_it_is_named() {
        let owner = Owner::new();
        owner.set();
        let form = Form::plain("test");
        let known = json!({"webhooks": [{"id": "wh_1", "name": "desk"}]});
        form.choices.set(Record(known));
        let one = json!({"notification_config": {"channels": [
            {"channel_type": "webhook", "config": {"channel_id": "wh_1", "timeout": 3}},
            {"channel_type": "webhook", "channel_id": "wh_2"},
            {"channel_type": "webhook", "config": {"url": "https://a.example"}},
            {"channel_type": "email", "config": {"to_addresses": ["a@a.example"]}},
        ]}});
        let one = Record(lifted(one));
        assert_eq!(
            receivers(&one, form),
            ["webhook desk", "webhook wh_2", "webhook", "email"]
        );
        let first = &one.0["notification_config"]["channels"][0];
        assert_eq!(first["config"], json!({"timeout": 3}));
    }

    #[test]
    fn what_the_form_makes_is_an_alert() {
        let schema = schema::named(FORM).0;
        let offered = schema["properties"]["system_condition"]["properties"]["type"].clone();
        let kinds: Vec<SystemConditionType> =
            serde_json::from_value(offered["enum"].clone()).expect("conditions");
        assert_eq!(offered["names"].as_array().map(Vec::len), Some(kinds.len()));
        let mut offered = Record(offered).strings("enum");
        offered.sort_unstable();
        assert_eq!(offered, variants::<SystemConditionType>());
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
