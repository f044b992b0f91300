//! What a key was used for: a chart over time and a table of operations.

use leptos::prelude::*;
use serde_json::json;

use crate::{
    api::{Api, Problem},
    load::Load,
    part::{
        chart::{Bar, chart},
        *,
    },
    record::{Record, items},
    session::use_session,
    text,
};

/// The words of a range, its days, and how many bars it has.
const RANGES: [(&str, f64, u32); 3] = [
    ("24 hours", 1.0, 6),
    ("7 days", 7.0, 7),
    ("30 days", 30.0, 10),
];

/// What requests are for, as the server counts them.
pub const KINDS: &[&str] = &["search", "ingestion", "other"];

const COLUMNS: &[Column] = &[
    Column("Operation", ""),
    Column("Requests", "num"),
    Column("Errors", "num"),
    Column("Mean", "num"),
    Column("95th percentile", "num"),
    Column("Last", ""),
];

/// Where the use of every key within a week is told at once.
pub fn usage_path() -> String {
    let start = text::escape(&text::before(7.0));
    format!("/v1/organizations/usage/api-keys?start={start}")
}

/// Requests of each day that is named.
pub fn by_day(sum: &Record, named: &[String]) -> Vec<i64> {
    let days = sum.list("days");
    let of = |name: &String| {
        let day = days.iter().find(|day| day.text("day") == *name);
        day.and_then(|day| day.int("requests")).unwrap_or(0)
    };
    named.iter().map(of).collect()
}

/// The days of UTC that a week up to now touches.
pub fn week() -> Vec<String> {
    let days = (0..=7).rev().map(|ago| text::before(f64::from(ago)));
    days.map(|at| at.chars().take(10).collect()).collect()
}

/// Requests of one kind each.
pub fn parts(sum: &Record) -> Vec<i64> {
    let all = sum.record("by_category");
    KINDS
        .iter()
        .map(|kind| all.int(kind).unwrap_or(0))
        .collect()
}

/// The sums of equal pieces of time up to now. The server has no series, so each piece is asked for.
async fn series(
    api: &Api,
    path: &str,
    days: f64,
    bars: u32,
) -> Result<Vec<serde_json::Value>, Problem> {
    let piece = days / f64::from(bars);
    let mut out = Vec::new();
    for n in (0..bars).rev() {
        let start = text::before(piece * f64::from(n + 1));
        let end = text::before(piece * f64::from(n));
        let path = format!(
            "{path}?start={}&end={}",
            text::escape(&start),
            text::escape(&end)
        );
        let sum = api.get(&path).await?;
        // The last bar is of today, so days are named by their end.
        let (start, end) = (text::moment(&start), text::moment(&end));
        let at = if days > 1.0 {
            end.get(5..10)
        } else {
            start.get(11..16)
        };
        out.push(json!({"at": at, "parts": parts(&sum), "requests": sum.int("requests"), "errors": sum.int("errors")}));
    }
    Ok(out)
}

/// One answer of everything that is shown.
async fn ask(api: Api, id: String, range: usize) -> Result<Record, Problem> {
    let (_, days, bars) = RANGES[range];
    let path = format!("/v1/organizations/api-keys/{}/usage", text::escape(&id));
    let start = text::escape(&text::before(days));
    let operations = api.get(&format!("{path}/endpoints?start={start}")).await?;
    let series = series(&api, &path, days, bars).await?;
    Ok(Record(
        json!({"series": series, "operations": operations.0}),
    ))
}

#[component]
pub fn KeyUsage(open: RwSignal<bool>, key: RwSignal<Record>) -> AnyView {
    let session = use_session();
    let range = RwSignal::new(1usize);
    let load = Load::new(move || {
        let (api, wanted, id, range) = (
            session.api(),
            open.get(),
            key.get().text("key_id"),
            range.get(),
        );
        async move {
            if !wanted || id.is_empty() {
                return std::future::pending().await;
            }
            ask(api, id, range).await
        }
    });
    Effect::new(move |_| {
        key.track();
        load.value.set(None);
    });
    let title = Signal::derive(move || format!("Usage of {}", key.get().text("name")));
    let records = move || {
        let id = text::escape(&key.get().text("key_id"));
        format!("/console/audit?resource={id}")
    };
    let choose = move |at: usize| {
        view! { <button type="button" aria-pressed=move || (range.get() == at).to_string() on:click=move |_| range.set(at)>{RANGES[at].0}</button> }.into_any()
    };
    view! {
        <Modal open title class="side wide">
            <div class="stack">
                <div class="row between">
                    <div class="segments" role="group" aria-label="Time">{choose(0)}{choose(1)}{choose(2)}</div>
                    <code class="muted">{move || key.get().text("key_id")}</code>
                </div>
                {loaded(load, waiting(8), parts_of)}
                <p><a href=records>"What was done to this key and what it was refused, in the audit log"</a></p>
            </div>
        </Modal>
    }
    .into_any()
}

fn parts_of(answer: Record) -> AnyView {
    let series = answer.list("series");
    let sum = |name: &str| series.iter().filter_map(|one| one.int(name)).sum::<i64>();
    let (requests, errors) = (sum("requests"), sum("errors"));
    if requests == 0 {
        return view! { <Empty icon="chart" title="Not used" text="No call was made with this key in that time."/> }.into_any();
    }
    let bars: Vec<Bar> = series
        .iter()
        .map(|one| {
            let parts = one
                .list("parts")
                .into_iter()
                .map(|n| n.0.as_i64().unwrap_or(0));
            (one.text("at"), parts.collect())
        })
        .collect();
    let rows = items(&answer.record("operations").0)
        .into_iter()
        .map(operation);
    view! {
        <dl class="stats">
            {stat("Requests", text::count(requests).into_any())}
            {stat("Errors", text::count(errors).into_any())}
        </dl>
        {chart("Requests over time", KINDS, bars, (60.0, 526.0))}
        <h3>"Operations"</h3>
        {table("Operations", COLUMNS, rows.collect(), Signal::stored(false))}
    }
    .into_any()
}

fn operation(one: Record) -> AnyView {
    let name = format!("{} {}", one.text("method"), one.text("path"));
    let time = |member: &str| {
        let took = one.float(member).map(text::millis);
        words("num nowrap", took.unwrap_or_default())
    };
    line(vec![
        cell("text-cell", view! { <code>{name}</code> }.into_any()),
        number(one.int("requests")),
        number(one.int("errors")),
        time("avg_latency_ms"),
        time("p95_latency_ms"),
        cell("nowrap", when(one.opt("last_used_at"))),
    ])
}
