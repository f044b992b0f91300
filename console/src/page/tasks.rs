use leptos::prelude::*;
use serde_json::{Value, json};

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
    view! {
        <ListPage title="Tasks" text="Long work of the whole organization, newest first." load offset columns=COLUMNS row blank=BLANK>
            <Pick query=status label="Status" all="Every status" options=STATES/>
            <Pick query=kind label="Kind" all="Every kind" options=KINDS/>
            <button type="button" class="btn" on:click=move |_| load.reload()>"Refresh"</button>
        </ListPage>
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
    }
}
