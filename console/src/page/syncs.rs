//! What a bucket follows: folders of storages, and what each look into them brought.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    api::{Answer, Api},
    load::{Load, Query},
    part::{schema::Form, *},
    record::{Record, items, only, page},
    text,
};

const COLUMNS: &[Column] = &[
    Column("Folder", ""),
    Column("Looks", ""),
    Column("Status", ""),
    Column("Files", "num"),
    Column("Failed", "num"),
    Column("Last look", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "link",
    title: "This bucket follows no storage",
    text: "A sync makes objects of the files in a folder of S3, or of what speaks its language, and keeps up with what changes there.",
    link: None,
};

const LOOKS: &[Column] = &[
    Column("Began", ""),
    Column("Outcome", ""),
    Column("Found", "num"),
    Column("Taken over", "num"),
    Column("Unchanged", "num"),
    Column("Removed", "num"),
    Column("Failed", "num"),
    Column("Took", "num"),
];

const NO_LOOKS: Blank = Blank {
    icon: "clock",
    title: "It has not looked yet",
    text: "Every look into the storage stands here, with what it brought.",
    link: None,
};

const OUTCOMES: &[&str] = &["running", "completed", "failed", "interrupted", "skipped"];

const FORM: &str = "syncs";

/// What the form chooses from and rows name.
const KINDS: &[&str] = &["connections", "collections"];

/// What a change takes of what the form shows.
const CHANGED: &[&str] = &[
    "description",
    "polling_interval_seconds",
    "schema_mapping",
    "batch_collection_ids",
    "skip_batch_submission",
    "batch_size",
    "max_objects_per_run",
    "reconcile",
];

/// Where the syncs are, what they are named with, whose log is open.
#[derive(Clone, Copy)]
struct Around {
    api: Signal<Api>,
    path: Signal<String>,
    form: Form,
    log: Query,
}

impl Around {
    fn of(self, one: &Record) -> String {
        let id = text::escape(&one.text("sync_config_id"));
        format!("{}/{id}", self.path.get_untracked())
    }
}

/// The syncs of the bucket at `bucket`.
pub fn syncs(api: Signal<Api>, bucket: Signal<String>) -> AnyView {
    let path = Signal::derive(move || format!("{}/syncs", bucket.get()));
    let around = Around {
        api,
        path,
        form: Form::plain("sync"),
        log: Query::new("log"),
    };
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let path = format!("{}/list{}", path.get(), page_query(offset));
        list(api.get(), path, around.form)
    });
    load.poll_while(|one| one.flag("locked"));
    let rows = Rows::new(load);
    provide_context(rows);
    provide_context(around);
    let create = RwSignal::new(false);
    let saved = Callback::new(move |_| load.reload());
    let make = move |body: Value| {
        let body = sent(body, &[]);
        api.get_untracked().post(&path.get_untracked(), &body)
    };
    let patch = move |body: Value| {
        let path = around.of(&rows.of.get_untracked());
        api.get_untracked().patch(&path, &sent(body, CHANGED))
    };
    let title = Signal::derive(move || format!("Change {}", rows.of.get().text("source_path")));
    let empty = move || {
        view! { <Empty icon=BLANK.icon title=BLANK.title text=BLANK.text>{add(create)}</Empty> }
    };
    view! {
        <div class="row between"><h2>"Syncs"</h2>{add(create)}</div>
        {refusal(rows.change)}
        <Listing load offset=Some(offset) label="Syncs" columns=COLUMNS row empty=ViewFn::from(empty)/>
        <Fill open=create title="Follow a storage".to_owned() label="Create" form=around.form schema=FORM
            start=Callback::new(|()| json!({"sync_mode": "continuous"})) send=Callback::new(make) done=saved/>
        <Fill open=rows.dialog("Change") title label="Save" form=around.form.beside() schema=FORM
            start=Callback::new(move |()| shown(rows.of.get().0)) send=Callback::new(patch) done=saved/>
        <Discard rows what="sync" name="source_path" loses="The storage is followed no more. Objects that came from it stay."
            delete=Callback::new(move |one: Record| api.get_untracked().delete(&around.of(&one)))/>
        {looks(load, around)}
    }
    .into_any()
}

fn add(open: RwSignal<bool>) -> AnyView {
    view! { <button type="button" class="btn primary" on:click=move |_| open.set(true)><Icon name="plus"/>"Follow a storage"</button> }.into_any()
}

/// The syncs, once everything that they name is known.
fn list(api: Api, path: String, form: Form) -> Answer {
    Box::pin(async move {
        form.choices.set(choices(api.clone(), KINDS).await?);
        api.post(&path, &json!({})).await
    })
}

/// What the form holds, as a request has it: of a change only `members`.
fn sent(mut body: Value, members: &[&str]) -> Value {
    let of = body.as_object_mut().and_then(|all| all.remove("members"));
    let mappings = mappings(&items(&of.unwrap_or_default()));
    body["schema_mapping"] = json!({ "mappings": mappings });
    match members {
        [] => body,
        members => only(Record(body), members),
    }
}

/// What an answer holds, as the form has it.
fn shown(mut one: Value) -> Value {
    let mappings = Record(one.clone()).record("schema_mapping");
    one["members"] = members(&mappings.record("mappings"));
    one
}

/// The members by their names; the file itself is one of another kind than what is read of its name.
fn mappings(members: &[Record]) -> Value {
    let mut all = Map::new();
    for one in members {
        let source = one.record("source");
        let kind = source.text("type");
        let own: &[&str] = match kind.as_str() {
            "filename_regex" => &["type", "pattern"],
            "folder_path" => &["type", "segment", "full_path"],
            "constant" => &["type", "value"],
            _ => &["type"],
        };
        let mut entry = only(one.clone(), &["transform", "required"]);
        if kind == "file" {
            entry = json!({"blob_property": one.text("name")});
        }
        entry["target_type"] = if kind == "file" { "blob" } else { "field" }.into();
        entry["source"] = only(source, own);
        all.insert(one.text("name"), entry);
    }
    Value::Object(all)
}

/// The members as a list, each with its name.
fn members(mappings: &Record) -> Value {
    let all = mappings.members().into_iter().map(|(name, one)| {
        let mut member = only(one.clone(), &["source", "transform", "required"]);
        let name = one.opt("blob_property").unwrap_or(name);
        member["name"] = name.into();
        member
    });
    all.collect()
}

/// How often it looks, or that it does not.
fn plan(one: &Record) -> String {
    match (one.text("sync_mode").as_str(), one.flag("is_active")) {
        ("initial_only", true) => "once".to_owned(),
        ("initial_only", false) => "once, and has looked".to_owned(),
        (_, false) => "switched off".to_owned(),
        _ => {
            let seconds = one.int("polling_interval_seconds").unwrap_or(300);
            format!("every {}", text::span(seconds))
        }
    }
}

/// Its state in a word, and why it is so.
fn state(one: &Record) -> (&'static str, Option<String>) {
    let error = one.opt("last_error");
    if one.flag("locked") {
        return ("looking", None);
    }
    if one.flag("paused") {
        return ("paused", one.opt("pause_reason").or(error));
    }
    match one.text("status").as_str() {
        "FAILED" => ("failing", error),
        "COMPLETED_WITH_ERRORS" => ("COMPLETED_WITH_ERRORS", error),
        _ if !one.flag("is_active") => ("off", None),
        _ => ("active", None),
    }
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let around: Around = expect_context();
    let (title, id) = (one.text("source_path"), one.text("sync_config_id"));
    let (word, why) = state(&one);
    let why = why.map(|why| view! { <span class="sub cut">{why}</span> });
    let connection = around
        .form
        .name_of("connections", &one.text("connection_id"));
    let next = one
        .opt("next_sync_at")
        .filter(|_| word != "looking")
        .map(|at| view! { <span class="sub">"next "{when(Some(at))}</span> });
    let about = one.opt("description").unwrap_or(connection);
    let call = |verb: &'static str, said: &'static str, piece: &'static str| {
        let path = format!("{}/{piece}", around.of(&one));
        rows.call(verb, &title, said, move || {
            around.api.get_untracked().post(&path, &json!({}))
        })
    };
    let toggle = match one.flag("paused") {
        true => call("Resume", "It looks again", "resume"),
        false => call("Pause", "It looks no more until it is resumed", "pause"),
    };
    let run = call("Look now", "It looks", "trigger");
    let past = press("Log", &title, Box::new(move || around.log.set(&id)));
    let buttons = view! { {run}{toggle}{past}{rows.open("Change", &title, &one)}{rows.open("Remove", &title, &one)} };
    let stats = one.record("stats");
    line(vec![
        titled(None, title.clone(), about),
        cell("", view! { {plan(&one)}{next} }.into_any()),
        cell("", view! { {badge(word)}{why} }.into_any()),
        number(one.int("total_files_discovered")),
        number(stats.int("last_run_objects_failed")),
        cell("nowrap", when(one.opt("last_sync_at"))),
        cell("actions many", buttons.into_any()),
    ])
}

/// The looks of the sync in the address.
fn looks(all: Load, around: Around) -> AnyView {
    let (log, from, outcome) = (around.log, Query::new("from"), Query::new("outcome"));
    let load = Load::wanted(move || {
        let id = text::escape(&log.value.get());
        if id.is_empty() {
            return None;
        }
        let offset = from.number();
        let path = format!(
            "{}/{id}/jobs?limit=50&offset={offset}&include_total=true",
            around.path.get()
        );
        let body = match outcome.value.get() {
            one if one.is_empty() => json!({}),
            one => json!({ "status": one }),
        };
        Some(around.api.get().post(&path, &body))
    });
    load.poll_while(|one| one.text("status") == "running");
    let whose = move || {
        let id = log.value.get();
        let (known, _) = page(&all.good()?);
        let one = known
            .into_iter()
            .find(|one| one.text("sync_config_id") == id)?;
        one.opt("source_path")
    };
    let title = Signal::derive(move || {
        format!("Looks into {}", whose().unwrap_or_else(|| log.value.get()))
    });
    let above = move || view! { <Pick query=outcome label="Outcome" all="Every outcome" options=OUTCOMES/> };
    view! { <Log open=log.is_named() title load columns=LOOKS row=look blank=NO_LOOKS offset=from above=ViewFn::from(above)/> }.into_any()
}

fn look(one: Record) -> AnyView {
    let error = one
        .opt("error")
        .map(|error| view! { <span class="sub">{error}</span> });
    let began =
        view! { {when(one.opt("started_at"))}<span class="sub">{one.text("trigger")}</span> };
    line(vec![
        cell("nowrap", began.into_any()),
        cell(
            "text-cell",
            view! { {badge(&one.text("status"))}{error} }.into_any(),
        ),
        number(one.int("total_files")),
        number(one.int("files_synced")),
        number(one.int("files_verified")),
        number(one.record("metadata").int("files_removed")),
        number(one.int("files_failed")),
        words("num nowrap", took(&one).unwrap_or_default()),
    ])
}

fn took(one: &Record) -> Option<String> {
    let at = |name: &str| Some(js_sys::Date::parse(&one.opt(name)?));
    Some(text::millis(at("completed_at")? - at("started_at")?))
}

#[cfg(test)]
mod tests {
    use loupe_wire::{SyncConfigurationModel, SyncCreateRequest, SyncJobStatus, SyncUpdateRequest};

    use super::*;
    use crate::record::tests::sent as told;

    fn filled() -> Value {
        json!({"connection_id": "con_1", "source_path": "s3://media/a", "sync_mode": "continuous", "members": [
            {"name": "year", "source": {"type": "filename_regex", "pattern": "([0-9]{4})", "value": "old"}, "transform": "integer"},
            {"name": "shelf", "source": {"type": "folder_path", "segment": 0}},
            {"name": "scan", "source": {"type": "file", "pattern": "x"}, "transform": "lower"},
        ]})
    }

    #[test]
    fn what_the_form_makes_is_a_sync() {
        let body = sent(filled(), &[]);
        let made: SyncCreateRequest = serde_json::from_value(body.clone()).expect("a body");
        let mapping = told(&made).record("schema_mapping").record("mappings");
        assert_eq!(mapping.record("scan").text("target_type"), "blob");
        assert_eq!(mapping.record("scan").text("blob_property"), "scan");
        let year = json!({"type": "filename_regex", "pattern": "([0-9]{4})"});
        assert_eq!(mapping.record("year").record("source").0, year);
        assert!(body.get("members").is_none());
        let change = sent(filled(), CHANGED);
        assert!(change.get("source_path").is_none());
        serde_json::from_value::<SyncUpdateRequest>(change).expect("a change");
    }

    #[test]
    fn members_come_back_as_they_were_filled_in() {
        let body = sent(filled(), &[]);
        let back = shown(json!({"schema_mapping": body["schema_mapping"]}));
        assert_eq!(
            mappings(&items(&back["members"])),
            body["schema_mapping"]["mappings"]
        );
        assert_eq!(back["members"][2]["name"], "scan");
    }

    #[test]
    fn a_sync_is_told_as_it_is() {
        let model = SyncConfigurationModel {
            polling_interval_seconds: 300,
            last_error: Some("no answer".into()),
            ..Default::default()
        };
        let one = told(&model);
        assert_eq!(
            (plan(&one), state(&one)),
            ("every 5 min".into(), ("active", None))
        );
        let rests = SyncConfigurationModel {
            paused: true,
            ..model
        };
        assert_eq!(state(&told(&rests)), ("paused", Some("no answer".into())));
        for outcome in OUTCOMES {
            serde_json::from_value::<SyncJobStatus>((*outcome).into()).expect("a status");
        }
    }
}
