use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    load::{Change, Load, Query},
    part::*,
    record::{Record, plain},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("When", ""),
    Column("Action", ""),
    Column("Resource", ""),
    Column("By", ""),
    Column("Outcome", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "log",
    title: "Nothing was recorded",
    text: "No change passes these filters. What people and programs change in this organization is written here.",
    link: None,
};

const TIMES: [(&str, f64); 4] = [
    ("hour", 1.0 / 24.0),
    ("day", 1.0),
    ("week", 7.0),
    ("month", 30.0),
];

const SPANS: &[&str] = &["hour", "day", "week", "month"];

const RESOURCES: &[&str] = &[
    "organization",
    "user",
    "api_key",
    "namespace",
    "collection",
    "document",
    "bucket",
    "retriever",
    "cluster",
    "taxonomy",
    "storage_connection",
    "alert",
    "annotation",
    "secret",
    "webhook",
];

/// The filters, all of them in the address.
#[derive(Clone, Copy)]
struct Filters {
    action: Query,
    kind: Query,
    resource: Query,
    actor: Query,
    span: Query,
}

impl Filters {
    /// As the query of a call, starting with `&`.
    fn query(self) -> String {
        let mut out = String::new();
        let named = [
            ("action", self.action),
            ("resource_type", self.kind),
            ("resource_id", self.resource),
            ("actor_id", self.actor),
        ];
        for (name, query) in named {
            query.value.with(|value| {
                if !value.is_empty() {
                    out += &format!("&{name}={}", text::escape(value));
                }
            });
        }
        let span = self.span.value.get();
        if let Some((_, days)) = TIMES.iter().find(|(name, _)| *name == span) {
            out += &format!("&start={}", text::escape(&text::before(*days)));
        }
        out
    }
}

/// Opens a record beside the list.
#[derive(Clone, Copy)]
struct Open(RwSignal<bool>, RwSignal<Record>);

pub fn audit() -> AnyView {
    let session = use_session();
    let filters = Filters {
        action: Query::new("action"),
        kind: Query::new("kind"),
        resource: Query::new("resource"),
        actor: Query::new("actor"),
        span: Query::new("within"),
    };
    let offset = Query::new("offset");
    let load = Load::of(
        move || session.api(),
        move || {
            let window = format!("limit=50&skip={}", offset.number());
            format!("/v1/organizations/audit/logs?{window}{}", filters.query())
        },
    );
    let (open, shown) = (RwSignal::new(false), RwSignal::new(Record::default()));
    provide_context(Open(open, shown));
    let typed = |query: Query, label: &'static str| {
        view! {
            <input class="input filter" aria-label=label placeholder=label prop:value=move || query.value.get() spellcheck="false"
                on:change=move |event| query.set(event_target_value(&event).trim())/>
        }
        .into_any()
    };
    view! {
        <ListPage title="Audit log" text="Who changed what, the newest first. Records are kept and cannot be changed." load offset columns=COLUMNS row blank=BLANK>
            <Pick query=filters.action label="Action" all="Every action" options=ACTIONS/>
            <Pick query=filters.kind label="Kind of resource" all="Every resource" options=RESOURCES/>
            <Pick query=filters.span label="Within" all="At any time" options=SPANS/>
            {typed(filters.resource, "Id of the resource")}
            {typed(filters.actor, "Id of the actor")}
            <Export filters/>
            <Reads/>
        </ListPage>
        <Modal open title="Audit record".to_owned() class="side">{move || details(shown.get())}</Modal>
    }
    .into_any()
}

/// Whether the log is told of reads, too.
#[component]
fn Reads() -> AnyView {
    const SETTINGS: &str = "/v1/organizations/audit/settings";
    let session = use_session();
    let toasts: Toasts = expect_context();
    let (change, load) = (
        Change::new(),
        Load::of(move || session.api(), || SETTINGS.to_owned()),
    );
    let on = move |answer: &Record| answer.flag("read_auditing_enabled");
    let is = move || load.good().is_some_and(|answer| on(&answer));
    let checked = RwSignal::new(false);
    Effect::new(move |_| checked.set(is()));
    Effect::new(move |_| {
        // The box was pressed in vain.
        if change.problem.with(Option::is_some) {
            checked.set(untrack(is));
        }
    });
    let set = move |wanted: bool| {
        checked.set(wanted);
        let body = json!({ "read_auditing_enabled": wanted });
        change.run(session.api().patch(SETTINGS, &body), move |answer| {
            toasts.say(match on(&answer) {
                true => "Reads are recorded from now on",
                false => "Reads are not recorded any more",
            });
            load.put(answer);
        });
    };
    view! { <Check label="Record reads, too" checked set/>{refusal(change)} }.into_any()
}

/// The members of a record that stand in a table, in the order of its columns.
const FIELDS: [&str; 13] = [
    "timestamp",
    "action",
    "status",
    "resource_type",
    "resource_id",
    "actor_type",
    "actor_id",
    "actor_name",
    "actor_email",
    "actor_key_name",
    "reason",
    "ip_address",
    "changes",
];

/// Lines of JSON as a table for a spreadsheet.
fn table_of(lines: &str) -> String {
    let records = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let rows = records.map(|record| {
        let cells =
            FIELDS.map(|field| text::quoted(&record.get(field).map(plain).unwrap_or_default()));
        cells.join(",") + "\r\n"
    });
    FIELDS.join(",") + "\r\n" + &rows.collect::<String>()
}

/// The log as it is filtered, as a file.
#[component]
fn Export(filters: Filters) -> AnyView {
    let session = use_session();
    let toasts: Toasts = expect_context();
    let change = Change::new();
    let export = move |as_table: bool| {
        let path = format!(
            "/v1/organizations/audit/logs/export?max_events=10000{}",
            untrack(|| filters.query())
        );
        change.run(session.api().text(&path), move |lines| {
            let lines = plain(&lines.0);
            let count = lines.lines().count();
            match as_table {
                true => download("audit.csv", "text/csv", &table_of(&lines)),
                false => download("audit.ndjson", "application/x-ndjson", &lines),
            }
            let records = text::counted(count as i64, "record", "records");
            toasts.say(format!("{records} exported"));
        });
    };
    view! {
        <button type="button" class="btn" aria-busy=move || change.busy.get().to_string() on:click=move |_| export(false)>"Export NDJSON"</button>
        <button type="button" class="btn" aria-busy=move || change.busy.get().to_string() on:click=move |_| export(true)>"Export CSV"</button>
        {refusal(change)}
    }
    .into_any()
}

/// Who did it, as far as it is known.
fn actor(one: &Record) -> (String, String) {
    let who = one.first(&["actor_name", "actor_email", "actor_id"]);
    let how = match one.opt("actor_key_name") {
        Some(key) => format!("with the key {key}"),
        None => one.text("actor_type"),
    };
    (who, how)
}

fn row(one: Record) -> AnyView {
    let Open(open, shown) = expect_context();
    let (who, how) = actor(&one);
    let action = what(&one);
    let label = format!("Open {action} of {}", one.text("resource_id"));
    let show = {
        let one = one.clone();
        move |_| {
            shown.set(one.clone());
            open.set(true);
        }
    };
    let button = view! { <button type="button" class="btn small" aria-label=label on:click=show>"Open"</button> };
    line(vec![
        cell("nowrap", when(one.opt("timestamp"))),
        words("nowrap", action),
        two(
            text::words(&one.text("resource_type")),
            one.text("resource_id"),
        ),
        two(who, how),
        cell("", badge(&one.text("status"))),
        cell("actions", button.into_any()),
    ])
}

/// What happened, in words: where the log tells of a part as a change of the whole, that of the part.
fn what(one: &Record) -> String {
    let part = one.record("changes").opt("change");
    text::words(&part.unwrap_or_else(|| one.text("action")))
}

/// The value of a changed member before and after, where the record has both.
fn sides(value: &Record) -> (String, String) {
    let side = |names: &[&str]| names.iter().find_map(|name| value.0.get(name)).map(shown);
    match (
        side(&["old", "before", "from"]),
        side(&["new", "after", "to"]),
    ) {
        (None, None) => (String::new(), shown(&value.0)),
        (old, new) => (old.unwrap_or_default(), new.unwrap_or_default()),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => text::pretty(value),
        Value::Null => "nothing".into(),
        other => plain(other),
    }
}

const CHANGES: &[Column] = &[
    Column("Member", ""),
    Column("Before", ""),
    Column("After", ""),
];

fn details(one: Record) -> AnyView {
    let (who, how) = actor(&one);
    let changed = one
        .record("changes")
        .members()
        .into_iter()
        .map(|(member, value)| {
            let (old, new) = sides(&value);
            let code = |text: String| cell("change", view! { <code>{text}</code> }.into_any());
            line(vec![words("", member), code(old), code(new)])
        });
    let changed = changed.collect::<Vec<_>>();
    let facts = [
        ("When", one.opt("timestamp").map(|at| text::exact(&at))),
        (
            "Resource",
            Some(format!(
                "{} {}",
                text::words(&one.text("resource_type")),
                one.text("resource_id")
            )),
        ),
        ("By", Some(format!("{who}, {how}"))),
        ("Actor", one.opt("actor_id")),
        ("Reason", one.opt("reason")),
        ("Address", one.opt("ip_address")),
        ("Program", one.opt("user_agent")),
        ("Record", one.opt("audit_id")),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some(fact(name.to_owned(), value?.into_any())));
    let table = match changed.is_empty() {
        true => view! { <p class="muted">"This record tells no change."</p> }.into_any(),
        false => table("Changes", CHANGES, changed, Signal::stored(false)),
    };
    view! {
        <div class="stack">
            <div class="row between"><strong>{what(&one)}</strong>{badge(&one.text("status"))}</div>
            <dl class="facts">{facts.collect::<Vec<_>>()}</dl>
            <section class="stack-sm"><h3>"What changed"</h3>{table}</section>
            <details><summary>"All of it as JSON"</summary><pre class="code-block" tabindex="0">{text::pretty(&one.0)}</pre></details>
        </div>
    }
    .into_any()
}

/// What is recorded.
const ACTIONS: &[&str] = &[
    "permission_denied",
    "permission_updated",
    "organization_updated",
    "api_key_created",
    "api_key_rotated",
    "api_key_revoked",
    "api_key_scope_updated",
    "user_created",
    "user_updated",
    "user_deleted",
    "namespace_created",
    "namespace_updated",
    "namespace_deleted",
    "namespace_accessed",
    "bucket_created",
    "bucket_updated",
    "bucket_deleted",
    "bucket_accessed",
    "collection_created",
    "collection_updated",
    "collection_deleted",
    "collection_accessed",
    "document_deleted",
    "document_bulk_soft_deleted",
    "retriever_created",
    "retriever_updated",
    "retriever_deleted",
    "retriever_accessed",
    "retriever_queried",
    "cluster_created",
    "cluster_updated",
    "cluster_deleted",
    "cluster_executed",
    "cluster_accessed",
    "taxonomy_created",
    "taxonomy_updated",
    "taxonomy_deleted",
    "taxonomy_accessed",
    "alert_created",
    "alert_updated",
    "alert_deleted",
    "alert_triggered",
    "alert_accessed",
    "annotation_created",
    "annotation_updated",
    "annotation_deleted",
    "storage_connection_created",
    "storage_connection_updated",
    "storage_connection_deleted",
    "storage_connection_tested",
    "storage_connection_failed",
    "secret_created",
    "secret_updated",
    "secret_deleted",
    "secret_accessed",
    "webhook_created",
    "webhook_updated",
    "webhook_deleted",
];

#[cfg(test)]
mod tests {
    use loupe_wire::{AuditAction, AuditEventResponse};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn both_sides_of_a_change_are_found() {
        let value = Record(json!({"old": "a", "new": null}));
        assert_eq!(sides(&value), ("a".into(), "nothing".into()));
        assert_eq!(sides(&Record(json!(3))), (String::new(), "3".into()));
    }

    #[test]
    fn the_actor_is_a_person_with_a_key() {
        let event = AuditEventResponse {
            actor_email: Some("ann@example.com".into()),
            actor_key_name: Some("ci".into()),
            ..Default::default()
        };
        assert_eq!(
            actor(&sent(&event)),
            ("ann@example.com".into(), "with the key ci".into())
        );
    }

    #[test]
    fn a_change_of_a_part_is_told_as_one_of_the_part() {
        let event = |changes| AuditEventResponse {
            action: "retriever_updated".into(),
            changes: Some(changes),
            ..Default::default()
        };
        let told = |changes| what(&sent(&event(changes)));
        assert_eq!(
            told(json!({"change": "page_moved"})),
            text::words("page_moved")
        );
        let of_itself = json!({"description": {"before": "a", "after": "b"}});
        assert_eq!(told(of_itself), text::words("retriever_updated"));
    }

    #[test]
    fn records_become_rows_of_a_table() {
        let one = AuditEventResponse {
            action: "user_updated".into(),
            actor_name: Some("=Ann \"A\"".into()),
            changes: Some(json!({"role": {"before": "viewer"}})),
            ..Default::default()
        };
        let line = sent(&one).0.to_string();
        let table = table_of(&format!("{line}\n{line}\n"));
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!((rows.len(), rows[0]), (3, FIELDS.join(",").as_str()));
        assert!(rows[1].contains(r#","'=Ann ""A""","#), "{}", rows[1]);
        assert!(rows[1].ends_with(r#","{""role"":{""before"":""viewer""}}""#));
    }

    #[test]
    fn every_action_offered_exists() {
        for action in ACTIONS {
            serde_json::from_value::<AuditAction>((*action).into()).expect("an action of the API");
        }
    }
}
