//! The answer of a retriever, several ways.

use leptos::prelude::*;

use super::documents::{name_of, picture_of, text_of};
use crate::{
    part::{Column, Empty, cell, image, line, number, table, words},
    record::Record,
    text,
};

/// The ways, as tabs.
pub const TABS: &[(&str, &str)] = &[
    ("results", "Results"),
    ("stages", "Stages"),
    ("explain", "Explain"),
    ("json", "JSON"),
];

/// Always above the results: a search that quietly does less is worse than one that fails.
pub fn warnings(answer: &Record) -> AnyView {
    let degraded = answer.list("degraded");
    let degraded = degraded.iter().map(|d| {
        format!(
            "{}: {}. {}",
            d.text("resource"),
            d.text("reason"),
            d.text("next_step")
        )
    });
    let limits = answer.list("limits");
    let limits = limits.iter().map(|l| {
        format!(
            "{}: {} asked for, {} applied",
            l.text("name"),
            l.text("requested"),
            l.text("applied")
        )
    });
    let all: Vec<String> = answer
        .opt("error")
        .into_iter()
        .chain(answer.strings("warnings"))
        .chain(degraded)
        .chain(limits)
        .collect();
    if all.is_empty() {
        return ().into_any();
    }
    view! { <div class="notice warn" role="status"><strong>"Mind this"</strong><ul>{all.into_iter().map(|w| view! { <li>{w}</li> }.into_any()).collect::<Vec<_>>()}</ul></div> }.into_any()
}

pub fn cards(answer: Record) -> AnyView {
    let mut hits = answer.list("documents");
    if hits.is_empty() {
        hits = answer.list("results");
    }
    let time = answer
        .record("stage_statistics")
        .float("total_time_ms")
        .map(text::millis);
    let cached = if answer.flag("cache_hit") {
        ", from the cache"
    } else {
        ""
    };
    if hits.is_empty() {
        return view! { <Empty icon="search" title="Nothing was found" text="The search ran and no document matched. Look at the stages to see where they were lost."/> }.into_any();
    }
    view! {
        <p class="muted" role="status">{text::counted(hits.len() as i64, "result", "results")}{time.map(|t| format!(" in {t}"))}{cached}</p>
        <div class="cards">{hits.into_iter().map(card).collect::<Vec<_>>()}</div>
    }
    .into_any()
}

fn card(hit: Record) -> AnyView {
    let name = name_of(&hit).unwrap_or_else(|| hit.text("document_id"));
    let score = hit.float("score").map(|s| format!("{s:.4}"));
    let picture = match picture_of(&hit) {
        Some(url) => image(Some(url), "noimg"),
        None => ().into_any(),
    };
    view! {
        <article class="card hit">
            {picture}
            <div>
                <div class="row between nowrap"><h3 class="truncate">{name}</h3>{score.map(|s| view! { <span class="tag" title="Score">{s}</span> })}</div>
                <p class="snippet">{text_of(&hit)}</p>
                <details><summary class="muted">"All fields"</summary><pre class="code-block" tabindex="0">{text::pretty(&hit.0)}</pre></details>
            </div>
        </article>
    }
    .into_any()
}

/// The cell that names a row, over what is to be said about it.
fn head(name: String, under: Option<String>) -> AnyView {
    view! { <th scope="row">{name}{under.map(|under| view! { <span class="sub">{under}</span> })}</th> }.into_any()
}

fn time(ms: Option<f64>) -> AnyView {
    words("num nowrap", text::millis(ms.unwrap_or(0.0)))
}

/// What went in and came out of each stage, and how long it took.
pub fn stages(answer: &Record) -> AnyView {
    let statistics = answer.record("stage_statistics");
    if statistics.0.is_null() {
        return view! { <Empty icon="list" title="No statistics" text="The server sent none for this run."/> }.into_any();
    }
    let rows = statistics
        .record("stages")
        .members()
        .into_iter()
        .map(|(name, s)| {
            let cached = s.flag("stage_cache_hit") || s.flag("cache_hit");
            line(vec![
                head(name, s.opt("error")),
                number(Some(s.int("input_count").unwrap_or(0))),
                number(Some(s.int("output_count").unwrap_or(0))),
                time(s.float("duration_ms")),
                words("", if cached { "yes" } else { "no" }.to_owned()),
            ])
        });
    let total = text::millis(statistics.float("total_time_ms").unwrap_or(0.0));
    let credits = statistics.float("credits_used").unwrap_or(0.0);
    view! {
        {table("Stages", STAGES, rows.collect(), Signal::stored(false))}
        <p class="muted">"In all "{total}", "{credits}" credits, run "<code>{answer.text("execution_id")}</code></p>
    }
    .into_any()
}

const STAGES: &[Column] = &[
    Column("Stage", ""),
    Column("In", "num"),
    Column("Out", "num"),
    Column("Time", "num"),
    Column("Cached", ""),
];

const PLAN: &[Column] = &[
    Column("Stage", ""),
    Column("In, about", "num"),
    Column("Out, about", "num"),
    Column("Time, about", "num"),
    Column("Notes", ""),
];

/// What the planner means to do, before it is done.
pub fn plan(plan: Record) -> AnyView {
    let rows = plan.list("execution_plan").into_iter().map(|s| {
        let notes = [s.strings("optimization_notes"), s.strings("warnings")].concat();
        line(vec![
            head(s.text("stage_name"), s.opt("stage_type")),
            number(Some(s.int("estimated_input").unwrap_or(0))),
            number(Some(s.int("estimated_output").unwrap_or(0))),
            time(s.float("estimated_duration_ms")),
            cell("text-cell", lines_of(notes)),
        ])
    });
    let slow = plan.strings("bottleneck_stages").join(", ");
    let advice = plan.list("optimization_suggestions").into_iter();
    let advice: Vec<AnyView> = advice
        .map(|one| {
            let told = format!(
                "{}: {}; {}.",
                one.text("stage_name"),
                one.text("suggestion"),
                one.text("reason")
            );
            view! { <p class="muted">{told}</p> }.into_any()
        })
        .collect();
    view! {
        {table("Plan", PLAN, rows.collect(), Signal::stored(false))}
        {(!slow.is_empty()).then(|| view! { <p class="muted">"Slowest: "{slow}</p> })}
        {advice}
    }
    .into_any()
}

/// Notes, a line each; what stands in backticks is code.
fn lines_of(notes: Vec<String>) -> AnyView {
    let each = notes.into_iter().map(|note| {
        let pieces = note.split('`').enumerate().map(|(at, piece)| {
            let piece = piece.to_owned();
            match at % 2 {
                1 => view! { <code>{piece}</code> }.into_any(),
                _ => piece.into_any(),
            }
        });
        view! { <li>{pieces.collect::<Vec<_>>()}</li> }.into_any()
    });
    view! { <ul class="sub-list">{each.collect::<Vec<_>>()}</ul> }.into_any()
}

const RANKING: &[Column] = &[
    Column("Document", ""),
    Column("Its place after each stage", ""),
];

/// Why documents stand where they do: their ways through the stages.
pub fn ranking(answer: &Record) -> AnyView {
    let ways = answer.record("diagnostics").record("ranking");
    let hits = answer.list("documents").into_iter();
    let rows: Vec<AnyView> = hits
        .filter_map(|hit| {
            let id = hit.text("document_id");
            let steps = ways.list(&id);
            let told: Vec<String> = steps.iter().map(step).collect();
            let name = name_of(&hit).unwrap_or_else(|| id.clone());
            let cells = vec![head(name, Some(id)), words("text-cell", told.join(" → "))];
            (!told.is_empty()).then(|| line(cells))
        })
        .collect();
    match rows.is_empty() {
        true => ().into_any(),
        false => table("Ranking", RANKING, rows, Signal::stored(false)),
    }
}

/// One step of a way: `rerank 1 (score 0.5000, rerank 0.7500)`.
fn step(one: &Record) -> String {
    let score = one
        .float("score")
        .map(|score| ("score".to_owned(), Some(score)));
    // In one order in every row, so that rows can be read one below the other.
    let mut scores = one.record("scores").members();
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    let scores = scores.into_iter();
    let scores = scores.map(|(name, score)| (name, score.0.as_f64()));
    let all = score.into_iter().chain(scores);
    let all: Vec<String> = all
        .filter_map(|(name, score)| Some(format!("{name} {:.4}", score?)))
        .collect();
    let place = format!("{} {}", one.text("stage"), one.int("rank").unwrap_or(0));
    match all.is_empty() {
        true => place,
        false => format!("{place} ({})", all.join(", ")),
    }
}

pub fn raw(answer: &Record) -> AnyView {
    view! { <pre class="code-block" tabindex="0">{text::pretty(&answer.0)}</pre> }.into_any()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_tells_place_and_scores() {
        let told = json!({"stage": "rerank", "rank": 1, "score": 0.5, "scores": {"rerank": 0.75}});
        let one = Record(told);
        assert_eq!(step(&one), "rerank 1 (score 0.5000, rerank 0.7500)");
        assert_eq!(step(&Record(json!({"stage": "sort", "rank": 2}))), "sort 2");
    }
}
