use leptos::prelude::*;
use serde_json::json;

use super::demo::{active, progress};
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
    "COMPLETED",
    "COMPLETED_WITH_ERRORS",
    "FAILED",
    "CANCELED",
];

pub fn tasks() -> AnyView {
    let session = use_session();
    let (status, offset) = (Query::new("status"), Query::new("offset"));
    let load = Load::new(move || {
        let body = match status.value.get() {
            s if s.is_empty() => json!({}),
            s => json!({"status": s}),
        };
        let path = format!("/v1/tasks/list{}", page_query(offset));
        session.api().post(&path, &body)
    });
    load.poll_while(active);
    view! {
        <ListPage title="Tasks" text="Long work of the whole organization, newest first." load offset columns=COLUMNS row blank=BLANK>
            <Pick query=status label="Status" all="Every status" options=STATES/>
            <button type="button" class="btn" on:click=move |_| load.reload()>"Refresh"</button>
        </ListPage>
    }.into_any()
}

fn row(task: Record) -> AnyView {
    let bar = progress(&task).map(|(share, under)| view! { <Progress share label="Progress of the task"/><span class="sub">{under}</span> });
    let kind = text::words(task.text("task_type").trim_start_matches("api_"));
    line(vec![
        name(None, kind, task.text("task_id")),
        cell("", badge(&task.text("status"))),
        cell("", bar.into_any()),
        words("", task.first(&["error", "description"])),
    ])
}
