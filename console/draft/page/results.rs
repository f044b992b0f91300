//! The answer of a retriever, several ways.

use leptos::prelude::*;
use loupe_wire::{ExecuteRetrieverResponse, ExplainRetrieverResponse, Object};
use serde_json::Value;

use super::documents::{name_of, text_of};
use crate::{
    api::plain,
    part::{Column, Empty},
    text,
};

/// Always above the results: a search that quietly does less is worse than one that fails.
pub fn warnings(answer: &ExecuteRetrieverResponse) -> AnyView {
    let degraded = answer.degraded.iter().map(|d| format!("{}: {}. {}", d.resource, d.reason, d.next_step));
    let limits = answer.limits.iter().map(|l| format!("{}: {} asked for, {} applied", l.name, l.requested, l.applied));
    let all: Vec<String> = answer.error.iter().cloned().chain(answer.warnings.iter().cloned()).chain(degraded).chain(limits).collect();
    if all.is_empty() {
        return ().into_any();
    }
    view! { <div class="notice warn" role="status"><strong>"Mind this"</strong><ul>{all.into_iter().map(|w| view! { <li>{w}</li> }).collect_view()}</ul></div> }.into_any()
}

pub fn cards(answer: ExecuteRetrieverResponse) -> AnyView {
    let hits = if answer.documents.is_empty() { answer.results } else { answer.documents };
    let time = answer.stage_statistics.map(|s| text::millis(s.total_time_ms));
    let cached = if answer.cache_hit { ", from the cache" } else { "" };
    if hits.is_empty() {
        return view! { <Empty icon="search" title="Nothing was found" text="The search ran and no document matched. Look at the stages to see where they were lost."/> }.into_any();
    }
    view! {
        <p class="muted" role="status">{hits.len()}" results"{time.map(|t| format!(" in {t}"))}{cached}</p>
        <div class="cards">{hits.into_iter().map(card).collect_view()}</div>
    }
    .into_any()
}

/// The picture to show for a result: a thumbnail where there is one.
fn picture(hit: &Object) -> Option<String> {
    let blobs = hit.get("document_blobs").and_then(Value::as_array);
    let images = blobs.into_iter().flatten().filter(|b| b.get("type").and_then(Value::as_str) == Some("image"));
    let best = images.max_by_key(|b| b.get("role").and_then(Value::as_str) == Some("thumbnail"));
    best.and_then(|b| b.get("presigned_url")?.as_str().map(str::to_owned))
}

fn card(hit: Object) -> impl IntoView {
    let id = hit.get("document_id").map(plain).unwrap_or_default();
    let name = name_of(&hit).unwrap_or_else(|| id.clone());
    let score = hit.get("score").and_then(Value::as_f64).map(|s| format!("{s:.4}"));
    let picture = match picture(&hit) {
        Some(url) => view! { <img src=url alt="" loading="lazy"/> }.into_any(),
        None => ().into_any(),
    };
    view! {
        <article class="card hit">
            {picture}
            <div>
                <div class="row between nowrap"><h3 class="truncate">{name}</h3>{score.map(|s| view! { <span class="tag" title="Score">{s}</span> })}</div>
                <p class="snippet">{text_of(&hit)}</p>
                <details><summary class="muted">"All fields"</summary><pre class="code-block" tabindex="0">{text::pretty(&hit)}</pre></details>
            </div>
        </article>
    }
}

fn table(label: &'static str, columns: &[Column], rows: AnyView) -> AnyView {
    view! {
        <div class="table-wrap" tabindex="0" role="region" aria-label=label>
            <table class="table"><caption class="sr-only">{label}</caption>
                <thead><tr>{columns.iter().map(|Column(name, class)| view! { <th scope="col" class=*class>{*name}</th> }).collect_view()}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}

/// What went in and came out of each stage, and how long it took.
pub fn stages(answer: &ExecuteRetrieverResponse) -> AnyView {
    let Some(statistics) = &answer.stage_statistics else {
        return view! { <Empty icon="list" title="No statistics" text="The server sent none for this run."/> }.into_any();
    };
    let rows = statistics.stages.iter().map(|(name, s)| {
        let cached = s.stage_cache_hit.or(s.cache_hit).unwrap_or(false);
        view! {
            <tr><th scope="row">{name.clone()}{s.error.clone().map(|e| view! { <span class="sub">{e}</span> })}</th>
                <td class="num">{text::count(s.input_count)}</td><td class="num">{text::count(s.output_count)}</td>
                <td class="num">{text::millis(s.duration_ms)}</td><td>{if cached { "yes" } else { "no" }}</td></tr>
        }
    });
    let rows = rows.collect_view().into_any();
    let total = text::millis(statistics.total_time_ms);
    view! {
        {table("Stages", &[Column("Stage", ""), Column("In", "num"), Column("Out", "num"), Column("Time", "num"), Column("Cached", "")], rows)}
        <p class="muted">"In all "{total}", run "<code>{answer.execution_id.clone()}</code></p>
    }
    .into_any()
}

/// What the planner means to do, before it is done.
pub fn plan(plan: ExplainRetrieverResponse) -> AnyView {
    let rows = plan.execution_plan.into_iter().map(|s| {
        let notes = s.optimization_notes.into_iter().chain(s.warnings).collect::<Vec<_>>().join(" ");
        view! {
            <tr><th scope="row">{s.stage_name}<span class="sub">{s.stage_type}</span></th>
                <td class="num">{text::count(s.estimated_input)}</td><td class="num">{text::count(s.estimated_output)}</td>
                <td class="num">{text::millis(s.estimated_duration_ms)}</td><td>{notes}</td></tr>
        }
    });
    let rows = rows.collect_view().into_any();
    view! {
        {table("Plan", &[Column("Stage", ""), Column("In, about", "num"), Column("Out, about", "num"), Column("Time, about", "num"), Column("Notes", "")], rows)}
        {(!plan.bottleneck_stages.is_empty()).then(|| view! { <p class="muted">"Slowest: "{plan.bottleneck_stages.join(", ")}</p> })}
    }
    .into_any()
}

pub fn raw(answer: &ExecuteRetrieverResponse) -> AnyView {
    view! { <pre class="code-block" tabindex="0">{text::pretty(answer)}</pre> }.into_any()
}
