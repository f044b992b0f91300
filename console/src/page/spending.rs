//! What the organization spends: the month so far, its days, what the money went to, and where spending ends.

mod limits;

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::{
    api::{Api, Problem},
    load::{Load, Query},
    part::{
        chart::{Bar, MONEY, chart_of, share},
        *,
    },
    record::Record,
    session::use_session,
    text,
};

const USAGE: &str = "/v1/organizations/usage";
const BREAKDOWN: &str = "/v1/organizations/billing/usage/breakdown";

/// What money is spent on, as the server counts it.
const KINDS: &[&str] = &["ingestion", "search", "storage"];

/// Days that the chart shows, and months that can be chosen.
const DAYS: u32 = 14;
const MONTHS: usize = 6;

/// The least part of a month after which its pace says something: a day.
const FIRST: f64 = 1.0 / 31.0;

const COLUMNS: &[Column] = &[
    Column("Of", ""),
    Column("What", ""),
    Column("Credits", "num"),
    Column("Share", "num"),
];

/// The parts of a breakdown: the member, and what its names are.
const PARTS: [(&str, &str); 4] = [
    ("by_operation", "Work"),
    ("by_namespace", "Namespace"),
    ("by_retriever", "Retriever"),
    ("by_extractor", "Extractor"),
];

pub fn spending() -> AnyView {
    let session = use_session();
    let month = Query::new("month");
    let sum = Load::of(move || session.api(), || USAGE.to_owned());
    let days = Load::new(move || by_day(session.api()));
    let parts = Load::new(move || {
        let path = match month.value.get() {
            now if now.is_empty() => BREAKDOWN.to_owned(),
            month => format!("{BREAKDOWN}?billing_month={}", text::escape(&month)),
        };
        broken_down(session.api(), path)
    });
    let save = move |_| {
        if let Some(parts) = parts.good() {
            let name = format!("spending-{}.csv", parts.text("billing_month"));
            download(&name, "text/csv", &csv(&lines_of(&parts)));
        }
    };
    view! {
        <Head title="Spending".to_owned() text="What this month costs so far, what it goes to, and where it stops."/>
        <div class="stack spend-room">{loaded(sum, waiting(5), so_far)}</div>
        <section class="card stack" aria-labelledby="by-day"><h2 id="by-day">"By day, last 14 days"</h2>
            <div class="chart-room">{loaded(days, waiting(8), by_day_chart)}</div></section>
        <div class="halves">
            <section class="card stack" aria-labelledby="limits">{limits::limits()}</section>
            <section class="card stack" aria-labelledby="estimate">{limits::estimate()}</section>
        </div>
        <section class="card stack" aria-labelledby="parts">
            <div class="row between"><h2 id="parts">"What it went to"</h2>
                <div class="row">{months(month)}<button type="button" class="btn" on:click=save>"Download as CSV"</button></div></div>
            {loaded(parts, waiting(5), went_to)}
        </section>
    }
    .into_any()
}

/// What it went to, with the names of namespaces where they can be had.
async fn broken_down(api: Api, path: String) -> Result<Record, Problem> {
    let mut parts = api.get(&path).await?;
    let spaces = api
        .post("/v1/namespaces/list?limit=100", &json!({}))
        .await
        .map(|all| all.list("results"))
        .unwrap_or_default();
    parts.0["names"] = spaces
        .into_iter()
        .map(|one| (one.text("namespace_id"), one.text("namespace_name")))
        .collect::<Value>();
    Ok(parts)
}

/// Which month is broken down.
fn months(month: Query) -> AnyView {
    let now = text::before(0.0);
    let chosen = month.value.get_untracked();
    let options = months_back(&now, MONTHS).into_iter().enumerate();
    let options = options.map(|(at, one)| {
        let value = if at == 0 { String::new() } else { one.clone() };
        let selected = value == chosen;
        view! { <option value=value selected=selected>{one}</option> }.into_any()
    });
    view! {
        <select class="select filter" aria-label="Month" on:change=move |event| month.set(&event_target_value(&event))>{options.collect::<Vec<_>>()}</select>
    }
    .into_any()
}

/// The month of a moment and those before it, as `2026-11`.
fn months_back(at: &str, many: usize) -> Vec<String> {
    let number = |from: usize, to: usize| at.get(from..to).and_then(|n| n.parse::<usize>().ok());
    let (Some(year), Some(month @ 1..)) = (number(0, 4), number(5, 7)) else {
        return Vec::new();
    };
    let first = year * 12 + month - 1;
    let all = (0..many).filter_map(|back| first.checked_sub(back));
    all.map(|month| format!("{:04}-{:02}", month / 12, month % 12 + 1))
        .collect()
}

/// What a month comes to at its pace, once the pace says something.
fn forecast(spent: f64, passed: f64) -> Option<f64> {
    (passed >= FIRST).then(|| spent / passed.min(1.0))
}

/// How much of a period is over.
fn passed(start: &str, end: &str) -> f64 {
    let (start, end) = (js_sys::Date::parse(start), js_sys::Date::parse(end));
    (js_sys::Date::now() - start) / (end - start)
}

fn so_far(one: Record) -> AnyView {
    let (spend, pool) = (one.record("spend"), one.record("pool"));
    let usd = |name: &str| spend.float(name).unwrap_or(0.0);
    let figure = |label: &'static str, name: &str| {
        let sum = text::dollars(usd(name));
        stat(label, view! { <span class="num">{sum}</span> }.into_any())
    };
    let passed = passed(&one.text("period_start"), &one.text("period_end"));
    let pace = forecast(usd("total_usd"), passed);
    view! {
        <dl class="stats">
            {figure("Spent this month", "total_usd")}
            {figure("Ingestion", "ingestion_usd")}
            {figure("Search", "search_usd")}
            {figure("Storage", "storage_usd")}
        </dl>
        <section class="card stack" aria-labelledby="pool"><h2 id="pool">"Pool"</h2>{of_pool(&pool, pace)}</section>
    }
    .into_any()
}

/// How much of what the plan includes is used, and where the pace leads.
fn of_pool(pool: &Record, pace: Option<f64>) -> AnyView {
    let usd = |name: &str| pool.float(name).unwrap_or(0.0);
    let (total, used) = (usd("total_usd"), usd("used_usd"));
    let meter = (total > 0.0).then(|| {
        let words = format!("{} of {}", text::dollars(used), text::dollars(total));
        let bar = share("Included in the plan".to_owned(), words, Some(used / total));
        view! { <ul class="meters free">{bar}</ul> }
    });
    let none = (total <= 0.0).then_some("The plan includes no pool: it is paid by contract. ");
    let pace = match pace {
        None => "What the month comes to can be told after its first day.".to_owned(),
        Some(pace) if total > 0.0 && pace > total => format!(
            "At this pace the month comes to {}, {} beyond the pool.",
            text::dollars(pace),
            text::dollars(pace - total)
        ),
        Some(pace) => format!("At this pace the month comes to {}.", text::dollars(pace)),
    };
    let resets = pool.opt("reset_date").map(|at| {
        let day = at.get(..10).unwrap_or(&at).to_owned();
        format!(" It begins anew on {day}.")
    });
    view! { {meter}<p class="muted">{none}{pace}{resets}</p> }.into_any()
}

/// Millionths of a dollar, by kind.
fn millionths(spend: &Record) -> Vec<i64> {
    let usd = |kind: &&str| spend.float(&format!("{kind}_usd")).unwrap_or(0.0);
    let all = KINDS.iter().map(usd);
    all.map(|usd| (usd * 1e6).round() as i64).collect()
}

/// Each of the last days. The server has sums and no series, so each day is asked for.
async fn by_day(api: Api) -> Result<Record, Problem> {
    let day = |ago: f64| text::before(ago).get(..10).unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for ago in (0..DAYS).rev().map(f64::from) {
        let (start, end) = (day(ago), day(ago - 1.0));
        let path = format!("{USAGE}?start={start}T00:00:00Z&end={end}T00:00:00Z");
        let spend = api.get(&path).await?.record("spend");
        all.push(json!({"at": start.get(5..), "parts": millionths(&spend)}));
    }
    Ok(Record(json!({ "results": all })))
}

fn by_day_chart(answer: Record) -> AnyView {
    let bars = answer.list("results").into_iter().map(|one| {
        let parts = one.list("parts").into_iter();
        let parts = parts.map(|n| n.0.as_i64().unwrap_or(0));
        (one.text("at"), parts.collect())
    });
    let bars = bars.collect::<Vec<Bar>>();
    chart_of("Spending by day", KINDS, bars, (330.0, 940.0), MONEY)
}

/// What credits went to: of what kind it is, its name, and how many.
type Line = (&'static str, String, i64);

fn lines_of(parts: &Record) -> Vec<Line> {
    let mut all = Vec::new();
    for (member, of) in PARTS {
        let names = parts.record(member).members().into_iter();
        all.extend(names.map(|(name, n)| (of, name, n.0.as_i64().unwrap_or(0))));
    }
    all
}

/// Credits that are told in whole ones: what cost less was not for nothing.
fn few(credits: i64) -> String {
    match credits {
        0 => "< 1".to_owned(),
        credits => text::count(credits),
    }
}

fn share_of(credits: i64, all: i64) -> String {
    match credits as f64 / all.max(1) as f64 * 100.0 {
        share if share < 1.0 => "< 1 %".to_owned(),
        share => format!("{share:.0} %"),
    }
}

fn csv(lines: &[Line]) -> String {
    let lines = lines
        .iter()
        .map(|(of, name, credits)| format!("{of},{},{credits}\n", text::quoted(name)));
    format!("of,name,credits\n{}", lines.collect::<String>())
}

fn went_to(parts: Record) -> AnyView {
    let all = parts.int("total_credits").unwrap_or(0);
    let names = parts.record("names");
    let lines = lines_of(&parts);
    if lines.is_empty() {
        return view! { <Empty icon="chart" title="Nothing was spent" text="Once files are processed or searched in this month, what that cost stands here."/> }.into_any();
    }
    let rows = lines.into_iter().map(|(of, name, credits)| {
        let link =
            (of == "Namespace").then(|| format!("/console/ns/{}/collections", text::escape(&name)));
        let name = match link {
            Some(href) => {
                let known = names.opt(&name).unwrap_or(name);
                view! { <a href=href>{known}</a> }.into_any()
            }
            None => view! { <span class="mono">{name}</span> }.into_any(),
        };
        line(vec![
            words("", of.to_owned()),
            cell("", name),
            words("num nowrap", few(credits)),
            words("num nowrap", share_of(credits, all)),
        ])
    });
    let rows: Vec<AnyView> = rows.collect();
    view! {
        {table("Credits by what they went to", COLUMNS, rows, Signal::stored(false))}
        <p class="muted">"A thousand credits are a dollar. Each kind of thing shares out the same credits anew."</p>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_go_back_over_the_turn_of_a_year() {
        assert_eq!(
            months_back("2026-02-03T00:00:00Z", 3),
            ["2026-02", "2026-01", "2025-12"]
        );
        assert!(months_back("soon", 3).is_empty());
    }

    #[test]
    fn a_pace_is_told_after_the_first_day() {
        assert_eq!(forecast(1.0, 0.01), None);
        assert_eq!(forecast(10.0, 0.5), Some(20.0));
        assert_eq!(forecast(10.0, 1.2), Some(10.0));
    }

    #[test]
    fn small_sums_keep_their_parts() {
        let spend = json!({"ingestion_usd": 0.0312, "search_usd": 0.000_002});
        assert_eq!(millionths(&Record(spend)), [31_200, 2, 0]);
    }

    #[test]
    fn what_it_went_to_survives_as_a_table_of_text() {
        let parts = json!({"by_operation": {"search": 3}, "by_retriever": {"a \"b\"": 2}});
        let lines = lines_of(&Record(parts));
        assert_eq!(lines.len(), 2);
        assert_eq!(
            csv(&lines),
            "of,name,credits\nWork,\"search\",3\nRetriever,\"a \"\"b\"\"\",2\n"
        );
    }
}
