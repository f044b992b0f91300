use leptos::prelude::*;
use serde_json::json;

use super::demo::{active, progress};
use crate::{
    load::{Load, Query},
    part::*,
    record::{Record, page},
    session::use_session,
    text,
};

#[component]
pub fn Tasks() -> impl IntoView {
    let session = use_session();
    let (status, offset) = (Query::new("status"), Query::new("offset"));
    let load = Load::new(move || {
        let (api, path) = (
            session.api(),
            format!("/v1/tasks/list{}", page_query(offset)),
        );
        let body = match status.value.get() {
            s if s.is_empty() => json!({}),
            s => json!({"status": s}),
        };
        async move { api.post(&path, &body).await.map(page) }
    });
    load.poll_while(|(tasks, _)| tasks.iter().any(active));
    let empty = || {
        view! { <Empty icon="list" title="No task" text="Long work appears here: batches, exports, removals. Ended tasks are archived after a day."/> }.into_any()
    };
    view! {
        <Head title="Tasks" text="Long work of the whole organization, newest first."/>
        <div class="row">
            <select class="select filter" aria-label="Status" prop:value=move || status.value.get() on:change=move |event| status.set(&event_target_value(&event))>
                <option value="">"Every status"</option>
                {["PENDING", "QUEUED", "IN_PROGRESS", "COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "CANCELED"].into_iter()
                    .map(|one| view! { <option value=one>{text::words(one)}</option> }).collect_view()}
            </select>
            <button type="button" class="btn" on:click=move |_| load.reload()>"Refresh"</button>
        </div>
        <Listing load offset label="Tasks" empty=empty.into() row=Callback::from(row)
            columns=vec![Column("Task", ""), Column("Status", ""), Column("Progress", "wide"), Column("Note", "")]/>
    }
}

fn row(task: Record) -> AnyView {
    let done = progress(&task);
    let note = task.first(&["error", "description"]);
    view! {
        <tr>
            <th scope="row">{text::words(task.text("task_type").trim_start_matches("api_"))}<span class="sub mono">{task.text("task_id")}</span></th>
            <td><Badge status=task.text("status")/></td>
            <td>{done.map(|(share, line)| view! { <Progress share=share label="Progress of the task"/><span class="sub">{line}</span> })}</td>
            <td>{note}</td>
        </tr>
    }
    .into_any()
}
