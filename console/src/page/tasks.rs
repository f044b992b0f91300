use leptos::prelude::*;
use serde_json::{Value, json};

use super::{
    batch::left_out::sums,
    demo::{active, progress},
};
use crate::{
    load::{Load, Query},
    part::*,
    record::Record,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Task", ""),
    Column("Status", ""),
    Column("Progress", "wide"),
    Column("Note", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "list",
    title: "No task",
    text: "Long work appears here: batches, exports, removals. Ended tasks are archived after a day.",
    link: None,
};

const STATES: &[&str] = &[
    "PENDING",
    "QUEUED",
    "IN_PROGRESS",
    "PROCESSING",
    "COMPLETED",
    "COMPLETED_WITH_ERRORS",
    "FAILED",
    "CANCELED",
    "INTERRUPTED",
];

/// What the server makes tasks of, by their types.
const KINDS: &[&str] = &[
    "api_buckets_batches_process",
    "api_buckets_batches_submit",
    "engine_object_processing",
    "api_buckets_objects_create",
    "api_buckets_uploads_batch_confirm",
    "api_buckets_delete",
    "api_collections_trigger",
    "api_collections_export",
    "api_collections_documents_create",
    "api_collections_documents_bulk_delete",
    "api_namespaces_create",
    "api_namespaces_delete",
    "api_namespaces_migrations_run",
    "api_namespaces_snapshot_create",
    "api_namespaces_snapshot_restore",
    "api_retrievers_execute",
    "api_evaluations_run",
    "api_taxonomies_execute",
    "api_taxonomies_materialize",
    "api_manifest_apply",
    "engine_cluster_build",
    "materialize",
];

/// What has ended leaves a record, which may go.
const ENDED: &[&str] = &[
    "COMPLETED",
    "COMPLETED_WITH_ERRORS",
    "FAILED",
    "CANCELED",
    "INTERRUPTED",
    "SKIPPED",
];

fn path_of(task: &Record) -> String {
    format!("/v1/tasks/{}", text::escape(&task.text("task_id")))
}

pub fn tasks() -> AnyView {
    let session = use_session();
    let (status, kind, offset) = (
        Query::new("status"),
        Query::new("type"),
        Query::new("offset"),
    );
    let load = Load::new(move || {
        let body = asked(&status.value.get(), &kind.value.get());
        let path = format!("/v1/tasks/list{}", page_query(offset));
        session.api().post(&path, &body)
    });
    load.poll_while(active);
    let rows = Rows::new(load);
    provide_context(rows);
    let delete = move |task: Record| session.api().delete(&path_of(&task));
    view! {
        <ListPage title="Tasks" text="Long work of the whole organization, newest first." load offset columns=COLUMNS row rows blank=BLANK
            picks=vec![status, kind]>
            <Pick query=status label="Status" all="Every status" options=STATES/>
            <Pick query=kind label="Kind" all="Every kind" options=KINDS/>
            <button type="button" class="btn" on:click=move |_| load.reload()>"Refresh"</button>
        </ListPage>
        {details(rows)}
        <Discard rows what="task" loses="Only the record of the task goes; what it made stays." name="task_id" delete=Callback::new(delete)/>
    }.into_any()
}

/// The body of the list for what is picked.
fn asked(status: &str, kind: &str) -> Value {
    let mut body = json!({});
    for (member, picked) in [("status", status), ("task_type", kind)] {
        if !picked.is_empty() {
            body[member] = picked.into();
        }
    }
    body
}

/// All that is known of the task in question.
fn details(rows: Rows) -> AnyView {
    let session = use_session();
    let open = rows.dialog("Details");
    let load = Load::of(
        move || session.api(),
        move || match open.get() {
            true => path_of(&rows.of.get()),
            false => String::new(),
        },
    );
    load.poll_while(active);
    let is_asked = move |one: &Record| {
        let id = rows.of.with(|task| task.text("task_id"));
        one.text("task_id") == id
    };
    view! {
        <Modal open title="Task".to_owned() class="side">
            {move || match load.value.get() {
                Some(Ok(one)) if is_asked(&one) => facts(&one),
                Some(Err(problem)) if !load.busy.get() => view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any(),
                _ => view! { <Skeletons lines=6/> }.into_any(),
            }}
        </Modal>
    }
    .into_any()
}

fn facts(task: &Record) -> AnyView {
    let id = task.text("task_id");
    let shown = id.clone();
    let mut lines = vec![
        fact(
            "Id".to_owned(),
            view! { <span class="row nowrap"><code>{shown}</code><Copy text=Signal::stored(id)/></span> }.into_any(),
        ),
        fact("Status".to_owned(), badge(&task.text("status"))),
    ];
    let said = [
        "description",
        "error",
        "queue_position",
        "estimated_wait_minutes",
    ];
    let said = said
        .into_iter()
        .filter_map(|name| Some(fact(text::words(name), task.opt(name)?.into_any())));
    lines.extend(said);
    let left_out = sums(&task.record("additional_data"));
    if !left_out.is_empty() {
        let left_out = left_out.join("; ");
        lines.push(fact("Left out".to_owned(), left_out.into_any()));
    }
    let parts = [
        ("Made from", "inputs"),
        ("What came of it", "outputs"),
        ("Cancellation", "cancellation"),
        ("More", "additional_data"),
    ];
    let parts = parts.into_iter().filter_map(|(title, name)| {
        let raw = text::pretty(task.value(name)?);
        Some(view! { <section class="stack-sm"><h3>{title}</h3><pre class="code-block" tabindex="0">{raw}</pre></section> }.into_any())
    });
    let parts: Vec<_> = parts.collect();
    view! { <div class="stack"><dl class="facts">{lines}</dl>{parts}</div> }.into_any()
}

fn row(task: Record) -> AnyView {
    let rows: Rows = expect_context();
    let id = task.text("task_id");
    let ended = ENDED.contains(&task.text("status").as_str());
    let remove = ended.then(|| rows.open("Remove", &id, &task));
    let actions = view! { {rows.open("Details", &id, &task)}{remove} };
    let tint = tint(&task.text("status"));
    let bar = progress(&task).map(|(share, under)| view! { <Progress share label="Progress of the task" class=tint/><span class="sub">{under}</span> });
    let kind = text::words(task.text("task_type").trim_start_matches("api_"));
    line(vec![
        name(None, kind, id),
        cell("", badge(&task.text("status"))),
        cell("", bar.into_any()),
        words("", task.first(&["error", "description"])),
        cell("actions", actions.into_any()),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::ListTasksRequest;

    use super::*;

    #[test]
    fn what_can_be_picked_is_known_to_the_server() {
        for status in STATES {
            for kind in KINDS {
                serde_json::from_value::<ListTasksRequest>(asked(status, kind)).expect("a body");
            }
        }
        assert_eq!(asked("", ""), json!({}));
        for status in ENDED {
            serde_json::from_value::<ListTasksRequest>(asked(status, "")).expect("a body");
        }
    }
}
