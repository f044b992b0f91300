//! One batch: how far it is, what failed, and what can be done about it.

mod again;
pub mod left_out;

use leptos::prelude::*;
use serde_json::json;

use self::{
    again::{again, diagnosis},
    left_out::left_out,
};
use super::{batches::progress, demo::active};
use crate::{
    api::Api,
    load::{Change, Load, Query},
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
    text,
};

const FAILED: &[Column] = &[
    Column("Object", ""),
    Column("Reason", "text-cell"),
    Column("Kind", ""),
    Column("Tier", "num"),
    Column("When", ""),
];

/// The batch of the page.
#[derive(Clone, Copy)]
struct Shown {
    api: Signal<Api>,
    path: Signal<String>,
    /// Whether it is of a bucket. One of documents alone has no routes but those that tell of it and stop it.
    placed: bool,
    load: Load,
    /// What was done with it last.
    change: Change,
    toasts: Toasts,
}

impl Shown {
    /// Whether the batch is so by now.
    fn is(self, what: fn(&Record) -> bool) -> Memo<bool> {
        Memo::new(move |_| self.load.good().is_some_and(|batch| what(&batch)))
    }
}

/// Where the objects of the batch are.
#[derive(Clone, Copy)]
struct Objects(Signal<String>);

/// Whether it waits to be submitted.
fn is_draft(batch: &Record) -> bool {
    batch.text("status") == "DRAFT"
}

/// Whether something of it can be stopped: it moves, or will by itself.
fn can_stop(batch: &Record) -> bool {
    let retry = batch.record("status_diagnostics").opt("next_retry_at");
    active(batch) || retry.is_some()
}

pub fn batch() -> AnyView {
    let session = use_session();
    let (ns, bucket, id) = (param("ns"), param("bucket"), param("batch"));
    let placed = !bucket.with_untracked(String::is_empty);
    let path = Signal::derive(move || {
        let of = match placed {
            true => format!("buckets/{}/", text::escape(&bucket.get())),
            false => String::new(),
        };
        format!("/v1/{of}batches/{}", text::escape(&id.get()))
    });
    let api = Signal::derive(move || session.api_in(ns.get()));
    let load = Load::of(move || api.get(), move || path.get());
    load.poll_while(active);
    let change = Change::new();
    let shown = Shown {
        api,
        path,
        placed,
        load,
        change,
        toasts: expect_context(),
    };
    let home = Signal::derive(move || format!("/console/ns/{}/buckets/{}", ns.get(), bucket.get()));
    provide_context(Names::of(move || api.get(), &["collections"]));
    provide_context(Objects(Signal::derive(move || {
        format!("{}/objects", home.get())
    })));
    let cancel = move |_| shown.call(change, "cancel", &json!({}), "The batch is canceled");
    let stoppable = shown.is(can_stop);
    let text = match placed {
        true => "Objects of one bucket on their way to documents.",
        false => "Documents of collections on their way to documents of others.",
    };
    let title = Signal::derive(move || {
        format!(
            "Batch {}",
            load.good()
                .and_then(|b| b.opt("batch_name"))
                .unwrap_or_else(|| id.get())
        )
    });
    view! {
        <Head title text>
            {placed.then(|| of_bucket(shown, home))}
            <Show when=move || stoppable.get()>
                <button type="button" class="btn danger" on:click=cancel aria-busy=move || change.busy.get().to_string()>"Cancel"</button>
            </Show>
        </Head>
        {refusal(change)}
        {loaded(load, waiting(5), move |batch| state(batch, shown))}
        {left_out(load)}
        {failed(shown)}
    }
    .into_any()
}

/// What can be done with a batch of a bucket.
fn of_bucket(shown: Shown, home: Signal<String>) -> AnyView {
    let change = shown.change;
    let submit = move |_| shown.call(change, "submit", &json!({}), "The batch is queued");
    let draft = shown.is(is_draft);
    let over = shown.is(|batch| !active(batch) && !is_draft(batch));
    view! {
        <a class="btn" href=move || home.get()>"The bucket"</a>
        {diagnosis(shown)}
        <Show when=move || draft.get()>
            <button type="button" class="btn primary" on:click=submit aria-busy=move || change.busy.get().to_string()>"Submit"</button>
        </Show>
        <Show when=move || over.get()>{again(shown)}</Show>
    }
    .into_any()
}

/// Asked for again whenever more of them have failed, and at the end. A batch without a bucket tells the first of them itself.
fn failed(shown: Shown) -> AnyView {
    let Shown {
        api,
        path,
        placed,
        load,
        ..
    } = shown;
    let ended = Memo::new(move |_| {
        load.good()
            .map(|batch| (batch.int("failed_object_count"), active(&batch)))
    });
    let offset = Query::new("offset");
    let failed = Load::wanted(move || {
        // Read, not only tracked: what nobody reads never learns that it has changed.
        ended.get();
        if !placed {
            let known = load.good()?.record("failed_objects").0;
            let known = Ok(Record(json!({ "results": known })));
            return Some(Box::pin(std::future::ready(known)));
        }
        let path = format!(
            "{}/failed-documents?limit=50&offset={}",
            path.get(),
            offset.number()
        );
        Some(api.get().get(&path))
    });
    let nothing = || view! { <p class="muted">"No object failed."</p> }.into_any();
    view! {
        <h2>"Failed objects"</h2>
        <Listing load=failed offset=Some(offset) label="Failed objects" empty=ViewFn::from(nothing) row=failure columns=FAILED/>
    }
    .into_any()
}

fn state(batch: Record, shown: Shown) -> AnyView {
    let (share, line) = progress(&batch);
    let failed = batch.int("failed_object_count").unwrap_or(0);
    let class = match (tint(&batch.text("status")), failed) {
        ("", 1..) => "warn",
        (tint, _) => tint,
    };
    let per_second = batch
        .record("progress")
        .float("items_per_second")
        .map(|n| format!("{n:.1} a second"));
    let note = Some(batch.first(&["error", "failure_reason", "status_message"]))
        .filter(|note| !note.is_empty());
    let total = batch
        .record("progress")
        .int("total")
        .unwrap_or(batch.list("object_ids").len() as i64);
    let tiers = batch.int("total_tiers").unwrap_or(1).max(1);
    let ended = !active(&batch) && !is_draft(&batch);
    let each = batch.list("tier_tasks").into_iter();
    let each: Vec<_> = each.map(|one| tier(one, ended, shown)).collect();
    view! {
        <div class="card stack" aria-live="polite">
            <div class="row between">{badge(&batch.text("status"))}<span class="muted">{line}{per_second.map(|s| format!(", {s}"))}</span></div>
            <Progress share=share label="Progress of the batch" class/>
            {note.map(|note| view! { <p>{note}</p> })}
            <dl class="stats">
                {stat("Objects", text::count(total).into_any())}
                {stat("Documents written", text::count(batch.int("documents_written").unwrap_or(0)).into_any())}
                {stat("Failed objects", text::count(failed).into_any())}
                {stat("Tier", format!("{} of {tiers}", batch.int("current_tier").map_or(1, |t| t + 1).min(tiers)).into_any())}
            </dl>
            <ul class="stack-sm tiers">{each}</ul>
        </div>
    }
    .into_any()
}

fn tier(one: Record, ended: bool, shown: Shown) -> AnyView {
    let number = one.int("tier_num").unwrap_or(0);
    let names: Names = expect_context();
    let collections = one.strings("collection_ids").into_iter().map(|id| {
        let href = format!("/console/ns/{}/collections/{id}", namespace());
        let of = id.clone();
        view! { <a class="tag" title=id href=href>{move || names.get(&of)}</a> }.into_any()
    });
    let collections: Vec<_> = collections.collect();
    let retry = (ended && shown.placed && has_failed(&one)).then(|| {
        let piece = format!("tiers/{number}/retry");
        let call = move || {
            let said = "What failed in the tier is tried again";
            shown.call(shown.change, &piece, &json!({}), said);
        };
        press("Retry", &format!("tier {}", number + 1), Box::new(call))
    });
    view! {
        <li class="row">
            <strong>"Tier "{number + 1}</strong>{badge(&one.text("status"))}
            {collections}
            <span class="muted">{one.int("documents_written").map(|n| text::counted(n, "document", "documents"))}" "{one.float("duration_ms").map(text::millis)}</span>
            {retry}
        </li>
    }
    .into_any()
}

/// Whether something of a tier can be tried again.
fn has_failed(tier: &Record) -> bool {
    let status = tier.text("status");
    matches!(status.as_str(), "FAILED" | "COMPLETED_WITH_ERRORS")
}

fn failure(one: Record) -> AnyView {
    let Objects(objects) = expect_context();
    let id = one.text("object_id");
    // A batch over a collection has documents for objects.
    let href = id
        .starts_with("obj_")
        .then(|| format!("{}/{id}", objects.get_untracked()));
    // A file is known by its name; its id stands below, before the collection.
    let of = one.text("collection_id");
    let (called, under) = match one.opt("filename") {
        Some(file) => (file, format!("{id} ")),
        None => (id, String::new()),
    };
    let names: Names = expect_context();
    let of = move || names.get(&of);
    let called = match href {
        Some(href) => view! { <a href=href>{called}</a> }.into_any(),
        None => called.into_any(),
    };
    line(vec![
        view! { <th scope="row">{called}<span class="sub">{under}{of}</span></th> }.into_any(),
        words("text-cell", one.text("error")),
        words("", one.text("error_type")),
        number(one.int("tier_num").map(|t| t + 1)),
        cell("nowrap", when(one.opt("timestamp"))),
    ])
}

#[cfg(test)]
mod tests {
    use loupe_wire::{BatchModel, TaskStatusEnum, TierTaskInfo};

    use super::*;
    use crate::record::tests::sent;

    #[test]
    fn a_tier_is_retried_where_something_failed() {
        let of = |status| TierTaskInfo {
            status,
            ..Default::default()
        };
        assert!(has_failed(&sent(&of(TaskStatusEnum::CompletedWithErrors))));
        assert!(has_failed(&sent(&of(TaskStatusEnum::Failed))));
        assert!(!has_failed(&sent(&of(TaskStatusEnum::Completed))));
        let draft = BatchModel {
            status: TaskStatusEnum::Draft,
            ..Default::default()
        };
        assert!(is_draft(&sent(&draft)) && !active(&sent(&draft)));
    }
}
