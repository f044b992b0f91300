mod calendar;

use js_sys::{Function, Object, Reflect};
use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    cron,
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, only, page},
    route::param,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Trigger", ""),
    Column("Runs", ""),
    Column("Does", ""),
    Column("Status", ""),
    Column("Last outcome", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "clock",
    title: "No trigger here",
    text: "A trigger does something by itself: by the clock, when something happened, or when a measure calls for it.",
    link: None,
};

const PAST: &[Column] = &[
    Column("When", ""),
    Column("Outcome", ""),
    Column("Took", "num"),
    Column("Task", ""),
];

const NO_PAST: Blank = Blank {
    icon: "clock",
    title: "It has not run yet",
    text: "Every run stands here for 90 days, with what came of it.",
    link: None,
};

const STATES: &[&str] = &["active", "paused", "failed"];
const ACTIONS: &[&str] = &[
    "retriever_execution",
    "collection_trigger",
    "batch_rerun",
    "cluster",
    "taxonomy_enrichment",
    "alert_evaluation",
];

const FORM: &str = "triggers";

/// What forms choose from and rows name.
const KINDS: &[&str] = &[
    "collections",
    "retrievers",
    "batches",
    "clusters",
    "taxonomies",
    "alerts",
];

fn path_of(one: &Record) -> String {
    format!("/v1/triggers/{}", text::escape(&one.text("trigger_id")))
}

/// What rows need besides their own buttons: the names of things, the log in the address, the namespace.
#[derive(Clone, Copy)]
struct Around(Form, Query, Memo<String>);

pub fn triggers() -> AnyView {
    schema::DrawInputs::provide();
    let session = use_session();
    let ns = param("ns");
    let (status, action, log) = (
        Query::new("status"),
        Query::new("action"),
        Query::new("log"),
    );
    let form = Form::plain("trigger");
    let load = Load::new(move || {
        // A namespace has no more.
        let mut body = json!({"limit": 200});
        for (member, query) in [("status", status), ("action_type", action)] {
            if !query.value.with(String::is_empty) {
                body[member] = query.value.get().into();
            }
        }
        list(session.api_in(ns.get()), body, form)
    });
    load.poll_while(|one| one.text("last_execution_status") == "QUEUED");
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(Around(form, log, ns));
    let api = move || session.api_in(ns.get_untracked());
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let change = form.beside();
    // Only what can be changed is sent: the rest tells which fields the schedule has.
    let patch = move |body: Value| {
        let sent = only(Record(body), &["name", "description", "schedule_config"]);
        api().patch(&path_of(&rows.of.get_untracked()), &sent)
    };
    let fresh = || json!({"trigger_type": "cron", "schedule_config": {}, "action_type": "retriever_execution", "action_config": {}});
    view! {
        <ListPage title="Triggers" text="What this namespace does by itself." load columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Create trigger", create) picks=vec![status, action]>
            <Pick query=status label="Status" all="Every status" options=STATES/>
            <Pick query=action label="Action" all="Every action" options=ACTIONS/>
        </ListPage>
        <Fill open=create title="Create a trigger".to_owned() label="Create" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(move |body| api().post("/v1/triggers", &body)) done=saved note=sentence/>
        <Fill open=rows.dialog("Change") title=Signal::derive(move || format!("Change {}", rows.of.get().text("name"))) label="Save" form=change schema=FORM
            start=Callback::new(move |()| rows.of.get().0) send=Callback::new(patch) done=saved note=sentence/>
        <Discard rows what="trigger" name="name" loses="It runs no more. Its history is kept." delete=Callback::new(move |one: Record| api().delete(&path_of(&one)))/>
        {coming(load)}
        {history(load, log, ns)}
    }
    .into_any()
}

/// The triggers that are in use, once everything that they name is known.
fn list(api: Api, body: Value, form: Form) -> Answer {
    Box::pin(async move {
        let all = choices(api.clone(), KINDS).await?;
        form.choices.set(all);
        let mut answer = api.post("/v1/triggers/list", &body).await?;
        // What was removed stays readable, by its id.
        let mut found = std::mem::take(&mut answer.0["results"]);
        if let Some(found) = found.as_array_mut() {
            found.retain(|one| one["status"] != "disabled");
        }
        Ok(Record(json!({"results": found})))
    })
}

/// When it runs.
fn schedule(kind: &str, config: &Record, named: impl Fn(&str) -> String) -> String {
    let collection = config.opt("collection_id").map(|id| named(&id));
    match kind {
        "cron" => {
            let zone = config.opt("timezone").unwrap_or_else(|| "UTC".into());
            format!("{} ({zone})", config.first(&["cron_expression", "cron"]))
        }
        "interval" => format!(
            "every {}",
            text::span(config.int("interval_seconds").unwrap_or(0))
        ),
        "event" => {
            let count = config.int("event_threshold").filter(|count| *count > 1);
            let count = count.map_or_else(String::new, |count| format!(", {count} times"));
            let within = collection.map_or_else(String::new, |name| format!(" in {name}"));
            format!("on {}{within}{count}", config.text("event_type"))
        }
        _ => {
            let of = collection.map_or_else(String::new, |name| format!(" of {name}"));
            condition(config, &of)
        }
    }
}

/// What has to be measured.
fn condition(config: &Record, of: &str) -> String {
    let threshold = config.float("threshold").unwrap_or(0.0);
    let what = match config.text("condition_type").as_str() {
        "metric" => {
            let figure = text::words(&config.text("metric"));
            let is = match config.text("operator").as_str() {
                "gt" => "above",
                "lt" => "below",
                "lte" => "at most",
                _ => "at least",
            };
            return format!("when {figure}{of} is {is} {threshold}");
        }
        "drift" => "the vectors",
        _ => "the documents",
    };
    format!("when {what}{of} changed by {threshold}")
}

/// The schedule that is being filled in, with its next moments where they can be told.
fn sentence(body: &Value) -> String {
    let one = Record(body.clone());
    let config = one.record("schedule_config");
    if one.text("trigger_type") != "cron" {
        return match one.text("trigger_type").as_str() {
            "interval" => format!("It runs {}.", schedule("interval", &config, str::to_owned)),
            "event" => "It runs once so many of these events have come, and counts anew. What it leads to itself does not count.".into(),
            _ if config.text("condition_type") == "metric" => {
                "It runs once the figure is so, and again when it was not so in between.".into()
            }
            _ => "It runs when there has been so much of a change since it ran last.".into(),
        };
    }
    let zone = config.opt("timezone").unwrap_or_else(|| "UTC".into());
    let expression = config.first(&["cron_expression", "cron"]);
    let Some(now) = wall(&zone) else {
        return format!("{zone} is no time zone that this browser knows.");
    };
    match cron::next(&expression, now, 5) {
        Some(all) if !all.is_empty() => format!("It runs on {} ({zone}).", all.join(", ")),
        Some(_) => "It never runs: no day is like that.".into(),
        None if expression.is_empty() => "The next five moments stand here.".into(),
        None => "The server says whether it understands this.".into(),
    }
}

/// What clocks show there now.
fn wall(zone: &str) -> Option<cron::Minute> {
    let (now, options) = (js_sys::Date::new_0(), Object::new());
    Reflect::set(&options, &"timeZone".into(), &zone.into()).ok()?;
    // Called by name: a zone that there is not is thrown.
    let show: Function = Reflect::get(&now, &"toLocaleString".into()).ok()?.into();
    let said = show.call2(&now, &"sv-SE".into(), &options).ok()?;
    calendar::minute(&said.as_string()?)
}

/// What the clock does within a week, for the triggers that are shown.
fn coming(all: Load) -> AnyView {
    let days = Memo::new(move |_| {
        let shown = all.good().map(|answer| page(&answer).0);
        calendar::days(&shown.unwrap_or_default(), wall)
    });
    let line = |(day, said): calendar::Day| {
        let said = said.into_iter().map(|one| view! { <li>{one}</li> });
        let said = said.collect::<Vec<_>>();
        fact(day, view! { <ul class="sub-list">{said}</ul> }.into_any())
    };
    let card = move || {
        let days = days.get();
        (!days.is_empty()).then(|| {
            view! {
                <section class="card stack-sm" aria-labelledby="coming">
                    <h2 id="coming">"The next seven days"</h2>
                    <p class="muted">"By the clock of the zone that stands there, else by UTC."</p>
                    <dl class="facts">{days.into_iter().map(line).collect::<Vec<_>>()}</dl>
                </section>
            }
        })
    };
    card.into_any()
}

/// What it does, and with what.
fn action(one: &Record, form: Form) -> (String, String) {
    let config = one.record("action_config");
    let kind = one.text("action_type");
    let (verb, of, member) = match kind.as_str() {
        "retriever_execution" => ("runs a retriever", "retrievers", "retriever_id"),
        "collection_trigger" => ("processes a collection", "collections", "collection_id"),
        "batch_rerun" => ("runs a batch again", "batches", "batch_id"),
        "cluster" => ("makes groups anew", "clusters", "cluster_id"),
        "taxonomy_enrichment" => ("applies a taxonomy", "taxonomies", "taxonomy_id"),
        "alert_evaluation" => ("looks for an alert", "alerts", "alert_id"),
        _ => return (text::words(&kind), String::new()),
    };
    (verb.into(), form.name_of(of, &config.text(member)))
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let Around(form, log, ns) = expect_context();
    let (id, title, status) = (one.text("trigger_id"), one.text("name"), one.text("status"));
    let named = |id: &str| form.name_of("collections", id);
    let runs = schedule(
        &one.text("trigger_type"),
        &one.record("schedule_config"),
        named,
    );
    let cron = one
        .record("schedule_config")
        .first(&["cron_expression", "cron"]);
    let said = cron::words(&cron).map(|said| view! { <span class="sub">{said}</span> });
    let next = one.opt("next_scheduled_at").filter(|_| status == "active");
    let next = next.map(|at| view! { <span class="sub">"next "{when(Some(at))}</span> });
    let (does, with) = action(&one, form);
    let state = if one.flag("is_overdue") {
        "overdue"
    } else {
        &status
    };
    let last = match one.opt("last_execution_status") {
        Some(outcome) => {
            let error = one
                .opt("last_execution_error")
                .filter(|_| outcome != "COMPLETED");
            let under = match error {
                Some(error) => error.into_any(),
                None => when(one.opt("last_triggered_at")),
            };
            view! { {badge(&outcome)}<span class="sub cut">{under}</span> }.into_any()
        }
        None => view! { <span class="muted">"never ran"</span> }.into_any(),
    };
    let buttons = buttons(&one, rows, log, ns);
    line(vec![
        name(None, title, id),
        cell("", view! { {runs}{said}{next} }.into_any()),
        two(does, with),
        cell("", badge(state)),
        cell("", last),
        cell("actions many", buttons),
    ])
}

/// What can be done with a trigger; what is rarer stands in a menu.
fn buttons(one: &Record, rows: Rows, log: Query, ns: Memo<String>) -> AnyView {
    let (session, id, title) = (use_session(), one.text("trigger_id"), one.text("name"));
    let call = |verb: &'static str, said: &'static str, piece: &'static str| {
        let path = format!("{}/{piece}", path_of(one));
        rows.calls(verb, said, move || {
            session.api_in(ns.get_untracked()).post(&path, &json!({}))
        })
    };
    let toggle = match one.text("status").as_str() {
        "active" => call("Pause", "It is paused", "pause"),
        _ => call("Resume", "It runs by its schedule again", "resume"),
    };
    let chosen = id.clone();
    let first = [
        call("Run now", "It was started", "execute"),
        Act("History", Box::new(move || log.set(&chosen))),
        rows.opens("Change", one),
    ];
    let more = vec![toggle, rows.opens("Remove", one)];
    view! { {Vec::from(first.map(|act| act.button(&title)))}{menu(&id, &title, more)} }.into_any()
}

/// What came of the trigger in the address, run by run.
fn history(all: Load, log: Query, ns: Memo<String>) -> AnyView {
    let session = use_session();
    let from = Query::new("from");
    let load = Load::wanted(move || -> Option<Answer> {
        let (id, api) = (log.value.get(), session.api_in(ns.get()));
        if id.is_empty() {
            return None;
        }
        let path = format!(
            "/v1/triggers/{}/history?limit=50&offset={}",
            text::escape(&id),
            from.number()
        );
        Some(Box::pin(async move {
            let answer = api.get(&path).await?;
            let (runs, total) = (answer.record("executions").0, answer.int("total"));
            Ok(Record(json!({"results": runs, "total": total})))
        }))
    });
    load.poll_while(|one| {
        matches!(
            one.text("status").as_str(),
            "QUEUED" | "PENDING" | "IN_PROGRESS"
        )
    });
    let whose = Memo::new(move |_| {
        let id = log.value.get();
        let (known, _) = page(&all.good()?);
        known.into_iter().find(|one| one.text("trigger_id") == id)
    });
    let title = Signal::derive(move || {
        let name = whose.get().map(|one| one.text("name"));
        format!("History of {}", name.unwrap_or_else(|| log.value.get()))
    });
    let stopped = move || {
        let one = whose.get().filter(|one| one.text("status") == "failed")?;
        Some(view! {
            <div class="notice bad">
                <strong>"Stopped"</strong>
                <span>{format!("It failed {} in a row. Resume it when the cause is gone.", text::counted(one.int("consecutive_failures").unwrap_or(0), "time", "times"))}</span>
            </div>
        })
    };
    view! { <Log open=log.is_named() title load columns=PAST row=run blank=NO_PAST offset=from above=ViewFn::from(stopped)/> }.into_any()
}

fn run(one: Record) -> AnyView {
    let took = one.float("execution_time_ms").map(text::millis);
    line(vec![
        cell("nowrap", when(one.opt("triggered_at"))),
        cell("", badge(&one.text("status"))),
        words("num nowrap", took.unwrap_or_default()),
        two(one.text("task_id"), one.text("error")),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{CreateTriggerRequest, TriggerActionType, TriggerStatus, WebhookEventType};

    use super::*;
    use crate::record::tests::variants;

    fn said(kind: &str, config: Value) -> String {
        schedule(kind, &Record(config), |id| format!("<{id}>"))
    }

    #[test]
    fn a_schedule_is_told_in_words() {
        assert_eq!(
            said(
                "cron",
                json!({"cron": "0 9 * * *", "timezone": "Europe/Vienna"})
            ),
            "0 9 * * * (Europe/Vienna)"
        );
        assert_eq!(
            said("interval", json!({"interval_seconds": 5400})),
            "every 90 min"
        );
        let event = json!({"event_type": "object.created", "event_threshold": 100, "collection_id": "col_1"});
        assert_eq!(
            said("event", event),
            "on object.created in <col_1>, 100 times"
        );
        let drift = json!({"condition_type": "drift", "threshold": 0.1, "collection_id": "col_1"});
        assert_eq!(
            said("conditional", drift),
            "when the vectors of <col_1> changed by 0.1"
        );
        let volume = json!({"condition_type": "volume", "threshold": 2.0});
        assert_eq!(
            said("conditional", volume),
            "when the documents changed by 2"
        );
        let mut metric = json!({"condition_type": "metric", "metric": "document_count", "threshold": 5, "collection_id": "col_1"});
        assert_eq!(
            said("conditional", metric.clone()),
            "when document count of <col_1> is at least 5"
        );
        metric["operator"] = "lt".into();
        assert_eq!(
            said("conditional", metric),
            "when document count of <col_1> is below 5"
        );
    }

    #[test]
    fn what_the_form_offers_exists() {
        let schema = schema::named(FORM).0;
        let members = &schema["properties"];
        let schedule = Record(members["schedule_config"]["properties"].clone());
        let mut offered = schedule.record("event_type").strings("enum");
        // Triggers do not fire on what triggers do.
        let mut all = variants::<WebhookEventType>();
        all.retain(|one| !one.starts_with("trigger."));
        let bare = schedule.record("collection_id").strings("unless");
        assert!(
            bare.iter().skip(1).all(|one| offered.contains(one)),
            "{bare:?}"
        );
        offered.sort_unstable();
        assert_eq!(offered, all);
        for field in ["condition_type", "metric", "operator"] {
            let field = schedule.record(field);
            let (values, names) = (field.strings("enum"), field.strings("names"));
            assert_eq!(values.len(), names.len(), "{values:?}");
        }
        for kind in members["action_type"]["enum"].as_array().expect("kinds") {
            serde_json::from_value::<TriggerActionType>(kind.clone()).expect("an action");
        }
        for state in STATES {
            serde_json::from_value::<TriggerStatus>((*state).into()).expect("a status");
        }
        let body = json!({"name": "n", "trigger_type": "interval", "schedule_config": {"interval_seconds": 60},
            "action_type": "batch_rerun", "action_config": {"batch_id": "b"}});
        serde_json::from_value::<CreateTriggerRequest>(body).expect("a body");
    }
}
