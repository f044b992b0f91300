//! A namespace, or a part of it, taken into a new one: checked before it starts, watched while it runs.

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api},
    load::{Change, Load, Query},
    part::{schema::Form, *},
    record::{Record, page},
    route::param,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Into", ""),
    Column("Takes along", ""),
    Column("Status", ""),
    Column("Progress", "wide"),
    Column("Made", ""),
    Column("", "actions many"),
];

const BLANK: Blank = Blank {
    icon: "out",
    title: "No migration here",
    text: "A migration takes this namespace, or what you choose of it, into a new one. It says what it would do before it starts; what is here stays as it is.",
    link: None,
};

const PARTS: &[Column] = &[
    Column("Collection", ""),
    Column("Status", ""),
    Column("Done", "num"),
];

const STATES: &[&str] = &[
    "draft",
    "pending",
    "in_progress",
    "completed",
    "failed",
    "cancelled",
];

/// What the form chooses from.
const KINDS: &[&str] = &["collections", "retrievers", "taxonomies"];

const FORM: &str = "migrations";
const ALL: &str = "/v1/namespaces/migrations";

/// Rows of one page.
const LISTED: u32 = 50;

fn path_of(one: &Record) -> String {
    format!("{ALL}/{}", text::escape(&one.text("migration_id")))
}

fn is_open(one: &Record) -> bool {
    matches!(
        one.text("status").as_str(),
        "validating" | "pending" | "in_progress"
    )
}

pub fn migrations() -> AnyView {
    let (session, ns, toasts): (_, _, Toasts) = (use_session(), param("ns"), expect_context());
    let (status, offset) = (Query::new("status"), Query::new("offset"));
    let load = Load::new(move || {
        let body = asked(&ns.get(), &status.value.get(), offset.number());
        session.api().post(&format!("{ALL}/list"), &body)
    });
    load.poll_while(is_open);
    let rows = Rows::new(load);
    provide_context(rows);
    let form = Form::plain("migration");
    let known = Load::new(move || offered(session.api_in(ns.get()), form));
    let create = RwSignal::new(false);
    let checked = check(form, ns, create);
    let send = move |body: Value| {
        let body = sent(&body, &ns.get_untracked());
        session.api().post(&format!("{ALL}/"), &body)
    };
    let made = move |made: Record| {
        session.namespaces_changed.update(|n| *n += 1);
        toasts.say(match made.text("status").as_str() {
            "draft" => "The migration is kept, and not started",
            _ => "The migration is started",
        });
        load.reload();
    };
    let fresh = || json!({"config": {"what": "all"}});
    view! {
        <ListPage title="Migrations" text="This namespace, or a part of it, taken into a new one." load offset columns=COLUMNS row blank=BLANK rows
            create=Create::Dialog("Migrate", create) picks=vec![status]>
            <Pick query=status label="Status" all="Every status" options=STATES/>
        </ListPage>
        {move || known.value.with(|known| known.as_ref().and_then(|known| known.clone().err())).map(|problem| view! { <Explain problem/> })}
        <Fill open=create title="Migrate into a new namespace".to_owned() label="Migrate" form schema=FORM start=Callback::new(move |()| fresh())
            send=Callback::new(send) done=Callback::new(made) below=ViewFn::from(move || told(form, checked))/>
        {details(rows, load, form)}
        <Stop rows/>
        <Discard rows what="migration" name="migration_id" loses="Its record goes. The namespace that it made, and what was copied, stay."
            delete=Callback::new(move |one: Record| session.api().delete(&path_of(&one)))/>
    }
    .into_any()
}

/// The body of the list.
fn asked(ns: &str, status: &str, offset: i64) -> Value {
    let mut body = json!({"source_namespace_id": ns, "limit": LISTED, "offset": offset});
    if !status.is_empty() {
        body["status"] = status.into();
    }
    body
}

fn offered(api: Api, form: Form) -> Answer {
    Box::pin(async move {
        form.choices.set(choices(api, KINDS).await?);
        Ok(Record::default())
    })
}

/// The body as the server takes it. What is not chosen is named as none: a kind that is left out comes along whole.
fn sent(body: &Value, ns: &str) -> Value {
    let mut sent = body.clone();
    let config = &mut sent["config"];
    let chosen = Record(body["config"]["filters"].clone());
    let some = config["what"] == "some";
    if let Some(members) = config.as_object_mut() {
        members.retain(|name, _| name != "what" && name != "filters");
    }
    if some {
        config["filters"] = json!({
            "collection_ids": chosen.strings("collection_ids"), "retriever_ids": chosen.strings("retriever_ids"),
            "taxonomy_ids": chosen.strings("taxonomy_ids"),
            "auto_include_dependencies": chosen.value("auto_include_dependencies").is_none(),
        });
    }
    config["migration_type"] = "copy".into();
    config["source_namespace_id"] = ns.into();
    // What is ticked at first is not in the form's value.
    let start = body["start_immediately"].is_null();
    sent["start_immediately"] = start.into();
    sent
}

fn target(form: Form) -> String {
    let config = form.value.with(|body| Record(body["config"].clone()));
    config.text("target_namespace_name")
}

/// What the migration that is being written would do.
fn check(form: Form, ns: Memo<String>, open: RwSignal<bool>) -> Load {
    let session = use_session();
    Load::settled(500, move || {
        if !open.get() || target(form).is_empty() {
            return None;
        }
        let body = form.value.with(|body| sent(body, &ns.get_untracked()));
        let body = json!({"config": body["config"]});
        Some(session.api().post(&format!("{ALL}/validate"), &body))
    })
}

/// The same in words, below the form.
fn told(form: Form, checked: Load) -> AnyView {
    let said = move || {
        if target(form).is_empty() {
            return view! { <p class="muted">"Once the new namespace has a name, what would be taken along stands here."</p> }.into_any();
        }
        match checked.value.get() {
            Some(Ok(answer)) => findings(&answer.record("validation_result")),
            Some(Err(problem)) => view! { <Explain problem/> }.into_any(),
            None => view! { <span class="skeleton"></span> }.into_any(),
        }
    };
    view! { <div class="check-room stack-sm" role="status" aria-busy=move || checked.busy.get().to_string()>{said}</div> }.into_any()
}

/// What stands against a migration, what is to be known of it, and what it takes along.
fn findings(result: &Record) -> AnyView {
    let noted = |list: &str, class: &'static str| {
        let all = result.list(list).into_iter();
        let all = all.map(|one| view! { <p class=class>{one.text("message")}</p> }.into_any());
        all.collect::<Vec<_>>()
    };
    let time = result.int("estimated_duration_seconds");
    let time = time.map(|seconds| format!(", about {}", text::span(seconds)));
    view! {
        <p><strong>{along(result)}</strong>{time}</p>
        {noted("errors", "notice bad")}
        {noted("warnings", "notice warn")}
    }
    .into_any()
}

/// How many of each come along.
fn along(result: &Record) -> String {
    let all = result.record("estimated_resources").members().into_iter();
    let all = all.filter_map(|(name, n)| Some((name, n.0.as_i64().filter(|n| *n > 0)?)));
    let all: Vec<String> = all.map(|(name, n)| text::counted_as(n, &name)).collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

/// How far it is, and that in words.
fn progress(one: &Record) -> (f64, String) {
    let progress = one.record("progress");
    let share = progress.float("overall_progress_percent").unwrap_or(0.0) / 100.0;
    let (stages, current) = (progress.list("stages"), progress.text("current_stage"));
    // At the end, and of a copy, it is what was made that counts.
    let of = |name: &str| stages.iter().find(|stage| stage.text("stage") == name);
    let stage = match current.as_str() {
        "namespace_setup" | "batch_creation" => of(&current),
        _ => of("batch_processing"),
    };
    let words = stage.or(stages.first()).map(|stage| {
        let n = |name: &str| stage.int(name).unwrap_or(0);
        let done = format!(
            "{} of {}",
            text::count(n("items_completed")),
            text::count(n("items_total"))
        );
        match n("items_failed") {
            0 => done,
            failed => format!("{done}, {} failed", text::count(failed)),
        }
    });
    (share.clamp(0.0, 1.0), words.unwrap_or_default())
}

/// Where it goes: a new namespace has a name, one that is extended an id.
fn into(one: &Record) -> String {
    let config = one.record("config");
    config.first(&["target_namespace_name", "target_namespace_id"])
}

fn row(one: Record) -> AnyView {
    let (session, rows): (_, Rows) = (use_session(), expect_context());
    let config = one.record("config");
    let (id, status) = (one.text("migration_id"), one.text("status"));
    let made = one.record("additional_data").opt("target_namespace_id");
    let href = made.map(|ns| format!("/console/ns/{}/collections", text::escape(&ns)));
    let title = into(&one);
    let result = one.record("validation_result");
    let draft = status == "draft";
    let wrong = result.list("errors").into_iter().next();
    let wrong = wrong.filter(|_| draft).map(|one| one.text("message"));
    let why = one.opt("error_message").or(wrong).unwrap_or_default();
    let (share, words) = progress(&one);
    let bar = (!draft).then(|| {
        view! { <Progress share label="Progress of the migration"/><span class="sub">{words}</span> }
    });
    let kind = if config.flag("dry_run") {
        "dry run"
    } else {
        ""
    };
    let start = (draft && why.is_empty()).then(|| {
        let path = format!("{}/start", path_of(&one));
        rows.call("Start", &title, "The migration is under way", move || {
            session.api().post(&path, &json!({}))
        })
    });
    let stop = is_open(&one).then(|| rows.open("Stop", &title, &one));
    let remove = (!is_open(&one)).then(|| rows.open("Remove", &title, &one));
    let look = rows.open("Details", &title, &one);
    line(vec![
        name(href, title.clone(), id),
        two(along(&result), kind.to_owned()),
        cell(
            "",
            view! { {badge(&status)}<span class="sub cut">{why}</span> }.into_any(),
        ),
        cell("", bar.into_any()),
        cell("nowrap", when(one.opt("created_at"))),
        cell(
            "actions many",
            view! { {start}{stop}{look}{remove} }.into_any(),
        ),
    ])
}

/// One migration in a panel, as it goes on.
fn details(rows: Rows, load: Load, form: Form) -> AnyView {
    let open = rows.dialog("Details");
    let shown = Memo::new(move |_| {
        let of = rows.of.get();
        let all = load.good().map(|answer| page(&answer).0);
        let mut all = all.unwrap_or_default().into_iter();
        let now = all.find(|one| one.value("migration_id") == of.value("migration_id"));
        now.unwrap_or(of)
    });
    let title = Signal::derive(move || format!("Migration into {}", into(&shown.get())));
    view! {
        <Modal open title class="side">{move || whole(&shown.get(), form)}</Modal>
    }
    .into_any()
}

fn whole(one: &Record, form: Form) -> AnyView {
    let parts = one.record("progress").list("resources").into_iter();
    let parts = parts.map(|part| {
        let id = part.text("resource_id");
        let done = part.float("progress_percent").unwrap_or(0.0);
        line(vec![
            name(None, form.name_of("collections", &id), id),
            cell("", badge(&part.text("status"))),
            words("num", format!("{done:.0} %")),
        ])
    });
    let parts: Vec<_> = parts.collect();
    let parts = (!parts.is_empty()).then(|| {
        table(
            "Collections of the migration",
            PARTS,
            parts,
            Signal::stored(false),
        )
    });
    let at = |label: &str, member: &str| fact(label.to_owned(), when(one.opt(member)));
    let mut facts = vec![
        fact("Status".to_owned(), badge(&one.text("status"))),
        at("Started", "started_at"),
        at("Ended", "completed_at"),
    ];
    if let Some(task) = one.opt("task_id") {
        let task = view! { <code>{task}</code> };
        facts.push(fact("Task".to_owned(), task.into_any()));
    }
    let error = one
        .opt("error_message")
        .map(|why| view! { <p class="notice bad">{why}</p> });
    view! {
        <div class="stack">
            <dl class="facts">{facts}</dl>
            {error}
            {findings(&one.record("validation_result"))}
            {parts}
        </div>
    }
    .into_any()
}

/// Stops one that is under way, after a second thought.
#[component]
fn Stop(rows: Rows) -> AnyView {
    let (session, toasts): (_, Toasts) = (use_session(), expect_context());
    let (open, change) = (rows.dialog("Stop"), Change::new());
    let submit = Callback::new(move |()| {
        let path = format!("{}/cancel", path_of(&rows.of.get_untracked()));
        change.run(session.api().post(&path, &json!({})), move |_| {
            open.set(false);
            toasts.say("The migration is stopped");
            rows.reload();
        });
    });
    view! {
        <Ask open title="Stop the migration?".to_owned() label="Stop it" danger=true change submit>
            <p>"What it has copied stays. A namespace made for it is then marked as failed and can be deleted; nothing is resumed."</p>
        </Ask>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{
        CreateMigrationRequest, GetMigrationResponse, ListMigrationsRequest, MigrationProgress,
        StageProgress, ValidateMigrationRequest,
    };

    use super::*;
    use crate::record::tests::sent as answered;

    #[test]
    fn what_is_sent_is_taken() {
        let body =
            json!({"config": {"what": "all", "target_namespace_name": "next", "dry_run": true}});
        let body = sent(&body, "ns_1");
        let request: CreateMigrationRequest =
            serde_json::from_value(body.clone()).expect("a migration");
        assert!(request.start_immediately && request.config.dry_run);
        assert!(request.config.filters.is_none() && body["config"].get("what").is_none());
        let chosen = json!({"config": {"what": "some", "filters": {"retriever_ids": ["ret_1"]}}, "start_immediately": false});
        let body = sent(&chosen, "ns_1");
        assert_eq!(body["config"]["filters"]["collection_ids"], json!([]));
        let checked = json!({"config": body["config"]});
        let checked: ValidateMigrationRequest =
            serde_json::from_value(checked).expect("a migration");
        let filters = checked.config.filters.expect("filters");
        assert!(filters.auto_include_dependencies);
        assert_eq!(filters.retriever_ids, Some(vec!["ret_1".to_owned()]));
        let request: CreateMigrationRequest = serde_json::from_value(body).expect("a migration");
        assert!(!request.start_immediately);
        for state in STATES {
            serde_json::from_value::<ListMigrationsRequest>(asked("ns_1", state, 0))
                .expect("a list");
        }
    }

    #[test]
    fn how_far_a_migration_is() {
        let one = GetMigrationResponse {
            progress: MigrationProgress {
                overall_progress_percent: 50.0,
                stages: vec![StageProgress {
                    items_total: 4,
                    items_completed: 2,
                    ..Default::default()
                }],
                ..Default::default()
            },
            ..Default::default()
        };
        assert_eq!(progress(&answered(&one)), (0.5, "2 of 4".to_owned()));
        let stages = json!([{"stage": "namespace_setup", "items_total": 9, "items_completed": 9},
            {"stage": "batch_processing", "items_total": 9, "items_completed": 5, "items_failed": 2}]);
        for (current, words) in [
            ("namespace_setup", "9 of 9"),
            ("batch_processing", "5 of 9, 2 failed"),
            ("finalization", "5 of 9, 2 failed"),
        ] {
            let one = json!({"progress": {"overall_progress_percent": 80.0, "current_stage": current, "stages": stages}});
            assert_eq!(progress(&Record(one)), (0.8, words.to_owned()), "{current}");
        }
        let result =
            json!({"estimated_resources": {"buckets": 1, "collections": 2, "taxonomies": 0}});
        assert_eq!(along(&Record(result)), "1 bucket, 2 collections");
        assert_eq!(along(&Record::default()), "nothing");
    }

    #[test]
    fn where_a_migration_goes() {
        for (config, expected) in [
            (json!({"target_namespace_name": "next"}), "next"),
            (json!({"target_namespace_id": "ns_2"}), "ns_2"),
        ] {
            assert_eq!(into(&Record(json!({ "config": config }))), expected);
        }
    }
}
