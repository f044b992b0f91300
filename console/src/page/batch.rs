use leptos::prelude::*;
use serde_json::json;

use super::{batches::progress, demo::active};
use crate::{
    load::{Change, Load, Query},
    part::*,
    record::Record,
    route::param,
    session::use_session,
    text,
};

const FAILED: &[Column] = &[
    Column("Object", ""),
    Column("Reason", ""),
    Column("Kind", ""),
    Column("Tier", "num"),
    Column("When", ""),
];

pub fn batch() -> AnyView {
    let session = use_session();
    let (ns, bucket, id) = (param("ns"), param("bucket"), param("batch"));
    let path = Signal::derive(move || {
        format!(
            "/v1/buckets/{}/batches/{}",
            text::escape(&bucket.get()),
            text::escape(&id.get())
        )
    });
    let api = Signal::derive(move || session.api_in(ns.get()));
    let load = Load::of(move || api.get(), move || path.get());
    load.poll_while(active);
    let ended = Memo::new(move |_| {
        load.good()
            .map(|batch| (batch.int("failed_object_count"), active(&batch)))
    });
    let offset = Query::new("offset");
    let failed = Load::of(
        move || api.get(),
        move || {
            ended.track();
            format!(
                "{}/failed-documents?limit=50&offset={}",
                path.get(),
                offset.number()
            )
        },
    );
    let change = Change::new();
    let cancel = move |_| {
        let path = format!("{}/cancel", path.get_untracked());
        change.run(api.get_untracked().post(&path, &json!({})), move |_| {
            load.reload()
        });
    };
    let moving = Memo::new(move |_| load.good().is_some_and(|batch| active(&batch)));
    let nothing = || view! { <p class="muted">"No object failed."</p> }.into_any();
    let title = Signal::derive(move || {
        format!(
            "Batch {}",
            load.good()
                .and_then(|b| b.opt("batch_name"))
                .unwrap_or_else(|| id.get())
        )
    });
    view! {
        <Head title text="Objects of one bucket on their way to documents.">
            <a class="btn" href=move || format!("/console/ns/{}/buckets/{}", ns.get(), bucket.get())>"The bucket"</a>
            <Show when=move || moving.get()>
                <button type="button" class="btn danger" on:click=cancel aria-busy=move || change.busy.get().to_string()>"Cancel"</button>
            </Show>
        </Head>
        {refusal(change)}
        {loaded(load, waiting(5), state)}
        <h2>"Failed objects"</h2>
        <Listing load=failed offset=Some(offset) label="Failed objects" empty=ViewFn::from(nothing) row=failure columns=FAILED/>
    }
    .into_any()
}

fn state(batch: Record) -> AnyView {
    let (share, line) = progress(&batch);
    let failed = batch.int("failed_object_count").unwrap_or(0);
    let class = match failed {
        0 => "",
        _ => "warn",
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
            <ul class="stack-sm tiers">{batch.list("tier_tasks").into_iter().map(tier).collect::<Vec<_>>()}</ul>
        </div>
    }
    .into_any()
}

fn tier(one: Record) -> AnyView {
    let errors = one.list("errors").len();
    view! {
        <li class="row">
            <strong>"Tier "{one.int("tier_num").unwrap_or(0) + 1}</strong>{badge(&one.text("status"))}
            {one.strings("collection_ids").into_iter().map(|id| view! { <span class="tag mono">{id}</span> }.into_any()).collect::<Vec<_>>()}
            <span class="muted">{one.int("documents_written").map(|n| format!("{} documents", text::count(n)))}" "{one.float("duration_ms").map(text::millis)}</span>
            {(errors > 0).then(|| format!("{errors} errors"))}
        </li>
    }
    .into_any()
}

fn failure(one: Record) -> AnyView {
    line(vec![
        name(None, String::new(), one.text("object_id")),
        words("", one.text("error")),
        words("", one.text("error_type")),
        number(one.int("tier_num").map(|t| t + 1)),
        cell("nowrap", when(one.opt("timestamp"))),
    ])
}
