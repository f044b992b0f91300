use leptos::prelude::*;
use serde_json::{Value, json};

use super::demo::active;
use crate::{
    load::{Load, Query},
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Batch", ""),
    Column("Status", ""),
    Column("Progress", "wide"),
    Column("Documents", "num"),
    Column("Failed", "num"),
    Column("Created", ""),
];

const BLANK: Blank = Blank {
    icon: "play",
    title: "No batch yet",
    text: "A batch turns a bucket's objects into documents. Open a bucket and press Process.",
    link: Some(("buckets", "To the buckets")),
};

const STATES: &[&str] = &[
    "DRAFT",
    "QUEUED",
    "PROCESSING",
    "COMPLETED",
    "COMPLETED_WITH_ERRORS",
    "FAILED",
    "CANCELED",
];

pub fn batches() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let (status, offset) = (Query::new("status"), Query::new("offset"));
    let load = Load::new(move || {
        let ns = ns.get();
        let body = asked(&ns, &status.value.get(), offset.number());
        session.api_in(ns).post("/v1/batches/list", &body)
    });
    load.poll_while(active);
    provide_context(Names::of(move || session.api_in(ns.get()), &["buckets"]));
    view! {
        <ListPage title="Batches" text="Work that turns objects into documents." load offset columns=COLUMNS row blank=BLANK picks=vec![status]>
            <Pick query=status label="Status" all="Every status" options=STATES/>
        </ListPage>
    }
    .into_any()
}

/// The body of the list, which spans the organization and takes its window in the body.
fn asked(ns: &str, status: &str, offset: i64) -> Value {
    let mut body = json!({"namespace_id": ns, "limit": 50, "offset": offset});
    if !status.is_empty() {
        body["status"] = status.into();
    }
    body
}

/// Share done and a line about it.
pub fn progress(batch: &Record) -> (f64, String) {
    if batch.value("progress").is_none() {
        return (if active(batch) { 0.0 } else { 1.0 }, String::new());
    }
    let progress = batch.record("progress");
    let (processed, total) = (
        progress.int("processed").unwrap_or(0),
        progress.int("total").unwrap_or(0),
    );
    let share = progress
        .float("percent")
        .map(|p| p / 100.0)
        .unwrap_or(if total > 0 {
            processed as f64 / total as f64
        } else {
            0.0
        });
    let mut line = format!("{} of {}", text::count(processed), text::count(total));
    if let Some(position) = progress.int("queue_position").filter(|p| *p > 0) {
        line = format!("number {position} in the queue");
    } else if let Some(seconds) = progress
        .float("eta_seconds")
        .filter(|s| *s >= 1.0 && active(batch))
    {
        line = match seconds < 600.0 {
            true => format!("{line}, about {seconds:.0} s left"),
            false => format!("{line}, about {:.0} min left", seconds / 60.0),
        };
    }
    (share.clamp(0.0, 1.0), line)
}

fn row(batch: Record) -> AnyView {
    let (share, under) = progress(&batch);
    let (id, bucket) = (batch.text("batch_id"), batch.text("bucket_id"));
    let href = format!("/console{}", text::batch(&namespace(), &bucket, &id));
    let bar = view! { <Progress share label="Progress of the batch" class=tint(&batch.text("status"))/><span class="sub">{under}</span> };
    let (names, called): (Names, _) = (expect_context(), batch.first(&["batch_name", "batch_id"]));
    let of = bucket.clone();
    line(vec![
        view! { <th scope="row"><a href=href>{called}</a><span class="sub" title=bucket>{move || names.get(&of)}</span></th> }.into_any(),
        cell("", badge(&batch.text("status"))),
        cell("", bar.into_any()),
        number(batch.int("documents_written")),
        number(Some(batch.int("failed_object_count").unwrap_or(0))),
        cell("nowrap", when(batch.opt("created_at"))),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BatchModel, BatchProgress, ListBatchesRequest, TaskStatusEnum};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn what_can_be_picked_is_known_to_the_server() {
        for status in STATES {
            let body = serde_json::from_value(asked("ns_1", status, 50));
            let body: ListBatchesRequest = body.expect("a body");
            assert!(!matches!(body.status, None | Some(TaskStatusEnum::Unknown)));
        }
    }

    #[test]
    fn a_batch_tells_how_far_it_is() {
        let progress_of = |progress| BatchModel {
            status: TaskStatusEnum::Processing,
            progress: Some(progress),
            ..Default::default()
        };
        let half = progress_of(BatchProgress {
            processed: 5,
            total: Some(10),
            eta_seconds: Some(4.0),
            ..Default::default()
        });
        assert_eq!(
            progress(&sent(&half)),
            (0.5, "5 of 10, about 4 s left".to_owned())
        );
        let waiting = progress_of(BatchProgress {
            total: Some(10),
            queue_position: Some(2),
            ..Default::default()
        });
        assert_eq!(progress(&sent(&waiting)).1, "number 2 in the queue");
    }
}
