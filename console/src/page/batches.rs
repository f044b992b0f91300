use leptos::prelude::*;
use serde_json::json;

use super::demo::active;
use crate::{
    load::{Load, Query, param},
    part::*,
    record::{Record, page},
    session::use_session,
    text,
};

#[component]
pub fn Batches() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let (ns, at) = (ns.get(), offset.value.get().parse::<i64>().unwrap_or(0));
        let api = session.api_in(ns.clone());
        // This list spans the organization and takes its window in the body.
        let body = json!({"namespace_id": ns, "limit": 50, "offset": at});
        async move { api.post("/v1/batches/list", &body).await.map(page) }
    });
    load.poll_while(|(rows, _)| rows.iter().any(active));
    let empty = move || {
        view! {
        <Empty icon="play" title="No batch yet" text="A batch turns a bucket's objects into documents. Open a bucket and press Process.">
            <a class="btn primary" href=format!("/console/ns/{}/buckets", ns.get_untracked())>"To the buckets"</a>
        </Empty>
    }.into_any()
    };
    view! {
        <Head title="Batches" text="Work that turns objects into documents."/>
        <Listing load offset label="Batches" empty=empty.into() row=Callback::from(move |one| row(ns.get_untracked(), one))
            columns=vec![Column("Batch", ""), Column("Status", ""), Column("Progress", "wide"), Column("Documents", "num"), Column("Failed", "num"), Column("Created", "")]/>
    }
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
        line = format!("{line}, about {seconds:.0} s left");
    }
    (share.clamp(0.0, 1.0), line)
}

fn row(ns: String, batch: Record) -> AnyView {
    let (share, line) = progress(&batch);
    let (id, bucket) = (batch.text("batch_id"), batch.text("bucket_id"));
    let href = format!("/console/ns/{ns}/batches/{bucket}/{id}");
    view! {
        <tr>
            <th scope="row"><a href=href>{batch.first(&["batch_name", "batch_id"])}</a><span class="sub mono">{bucket}</span></th>
            <td><Badge status=batch.text("status")/></td>
            <td><Progress share=share label="Progress of the batch"/><span class="sub">{line}</span></td>
            <td class="num">{batch.int("documents_written").map(text::count)}</td>
            <td class="num">{text::count(batch.int("failed_object_count").unwrap_or(0))}</td>
            <td class="nowrap"><When at=batch.opt("created_at")/></td>
        </tr>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BatchModel, BatchProgress, TaskStatusEnum};

    use super::*;
    use crate::record::tests::sent;

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
