use leptos::prelude::*;
use serde_json::json;

use super::{batches::progress, demo::active};
use crate::{
    load::{Change, Load, Query, param},
    part::*,
    record::{Record, page},
    session::use_session,
    text,
};

#[component]
pub fn Batch() -> impl IntoView {
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
    let load = Load::<Record>::new(move || api.get().get(&path.get()));
    load.poll_while(active);
    let ended = Memo::new(move |_| {
        load.good()
            .map(|batch| (batch.int("failed_object_count"), active(&batch)))
    });
    let offset = Query::new("offset");
    let failed = Load::new(move || {
        ended.track();
        let (api, path) = (
            api.get(),
            format!(
                "{}/failed-documents?limit=50&offset={}",
                path.get(),
                offset.number()
            ),
        );
        async move { api.get(&path).await.map(page) }
    });
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
        {move || change.problem.get().map(|problem| view! { <Explain problem/> })}
        {move || match load.value.get() {
            None => view! { <Skeletons/> }.into_any(),
            Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any(),
            Some(Ok(batch)) => state(batch).into_any(),
        }}
        <h2>"Failed objects"</h2>
        <Listing load=failed offset label="Failed objects" empty=nothing.into() row=Callback::from(failure)
            columns=vec![Column("Object", ""), Column("Reason", ""), Column("Kind", ""), Column("Tier", "num"), Column("When", "")]/>
    }
}

fn state(batch: Record) -> impl IntoView {
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
            <div class="row between"><Badge status=batch.text("status")/><span class="muted">{line}{per_second.map(|s| format!(", {s}"))}</span></div>
            <Progress share=share label="Progress of the batch" class/>
            {note.map(|note| view! { <p>{note}</p> })}
            <dl class="stats">
                <div class="stat"><dt>"Objects"</dt><dd>{text::count(total)}</dd></div>
                <div class="stat"><dt>"Documents written"</dt><dd>{text::count(batch.int("documents_written").unwrap_or(0))}</dd></div>
                <div class="stat"><dt>"Failed objects"</dt><dd>{text::count(failed)}</dd></div>
                <div class="stat"><dt>"Tier"</dt><dd>{format!("{} of {tiers}", batch.int("current_tier").map_or(1, |t| t + 1).min(tiers))}</dd></div>
            </dl>
            <ul class="stack-sm tiers">{batch.list("tier_tasks").into_iter().map(tier).collect_view()}</ul>
        </div>
    }
}

fn tier(one: Record) -> impl IntoView {
    let errors = one.list("errors").len();
    view! {
        <li class="row">
            <strong>"Tier "{one.int("tier_num").unwrap_or(0) + 1}</strong><Badge status=one.text("status")/>
            {one.strings("collection_ids").into_iter().map(|id| view! { <span class="tag mono">{id}</span> }).collect_view()}
            <span class="muted">{one.int("documents_written").map(|n| format!("{} documents", text::count(n)))}" "{one.float("duration_ms").map(text::millis)}</span>
            {(errors > 0).then(|| format!("{errors} errors"))}
        </li>
    }
}

fn failure(one: Record) -> AnyView {
    view! {
        <tr>
            <th scope="row" class="mono">{one.text("object_id")}</th>
            <td>{one.text("error")}</td>
            <td>{one.text("error_type")}</td>
            <td class="num">{one.int("tier_num").map(|t| t + 1)}</td>
            <td class="nowrap"><When at=one.opt("timestamp")/></td>
        </tr>
    }
    .into_any()
}
