//! What a retriever is asked, on its page and elsewhere: how often, how fast, what people typed, what they did with the answers.

use leptos::prelude::*;

use crate::{
    api::Api,
    load::{Load, Query},
    part::{
        chart::{Bar, chart},
        *,
    },
    record::Record,
    text,
};

/// Spans that can be looked at: what the address calls them, their words, their days, and what a bar stands for.
const SPANS: [(&str, &str, u32, &str); 3] = [
    ("day", "Last 24 hours", 1, "hour"),
    ("week", "Last 7 days", 7, "day"),
    ("month", "Last 30 days", 30, "day"),
];

fn chosen(span: &str) -> (u32, &'static str) {
    let chosen = SPANS.iter().find(|one| one.0 == span);
    let (_, _, days, by) = chosen.unwrap_or(&SPANS[0]);
    (*days, by)
}

const SOURCES: [(&str, &str); 3] = [
    ("", "Asked anywhere"),
    ("page", "Asked on the page"),
    ("api", "Asked by callers"),
];

const QUERIES: &[Column] = &[
    Column("Asked for", ""),
    Column("Times", "num"),
    Column("Found", "num"),
    Column("Last", ""),
];

/// The figures of the retriever at `path`.
pub fn searches(api: Signal<Api>, path: Signal<String>) -> AnyView {
    let (span, source) = (Query::new("span"), Query::new("source"));
    let load = Load::of(
        move || api.get(),
        move || {
            let (days, by) = chosen(&span.value.get());
            let id = path.get();
            let id = id.rsplit('/').next().unwrap_or_default();
            format!(
                "/v1/analytics/retrievers/{id}/performance?start_date={}&group_by={by}&source={}",
                text::escape(&text::before(f64::from(days))),
                text::escape(&source.value.get())
            )
        },
    );
    let option = |query: Query, value: &'static str, label: &'static str| {
        let selected = query.value.with_untracked(|now| now == value);
        view! { <option value=value selected=selected>{label}</option> }.into_any()
    };
    let spans = SPANS.map(|(value, label, ..)| option(span, value, label));
    let sources = SOURCES.map(|(value, label)| option(source, value, label));
    view! {
        <div class="row between">
            <h2>"Searches"</h2>
            <div class="row">
                <select class="select filter" aria-label="Where it was asked" on:change=move |event| source.set(&event_target_value(&event))>{Vec::from(sources)}</select>
                <select class="select filter" aria-label="Span of time" on:change=move |event| span.set(&event_target_value(&event))>{Vec::from(spans)}</select>
            </div>
        </div>
        {loaded(load, waiting(8), move |one| told(one, chosen(&span.value.get_untracked())))}
    }
    .into_any()
}

fn told(one: Record, (days, by): (u32, &str)) -> AnyView {
    let sum = one.record("summary");
    if sum.int("execution_count").unwrap_or(0) == 0 {
        return view! { <Empty icon="chart" title="Nothing was asked" text="How often this retriever is asked stands here, how fast it answers, what people look for and what they do with the answers."/> }.into_any();
    }
    let count = |name: &str| text::count(sum.int(name).unwrap_or(0)).into_any();
    let millis = |name: &str| text::millis(sum.float(name).unwrap_or(0.0)).into_any();
    let clicked = 100.0 * sum.float("click_through_rate").unwrap_or(0.0);
    let hourly = by == "hour";
    let stretches = if hourly { 24 * days } else { days };
    let each = f64::from(days) / f64::from(stretches);
    let moments = (0..stretches).rev();
    let moments: Vec<String> = moments.map(|n| text::before(each * f64::from(n))).collect();
    let over = chart(
        "Searches",
        &["found something", "found nothing"],
        bars(&one.list("metrics"), &moments, hourly),
        (360.0, 940.0),
    );
    view! {
        <dl class="stats">
            {stat("Searches", count("execution_count"))}
            {stat("Found nothing", count("zero_result_count"))}
            {stat("Clicks", count("clicks"))}
            {stat("With a click", format!("{clicked:.0} %").into_any())}
            {stat("Median time", millis("p50_latency_ms"))}
            {stat("95th percentile", millis("p95_latency_ms"))}
        </dl>
        <section class="card stack" aria-labelledby="over-time"><h3 id="over-time">"Searches over time"</h3>{over}</section>
        <section class="card stack" aria-labelledby="most-asked"><h3 id="most-asked">"What is asked for most"</h3>{queries("Queries", &sum.list("top_queries"), "Only searches with words have queries.")}</section>
        <section class="card stack" aria-labelledby="not-found"><h3 id="not-found">"What is not found"</h3>{queries("Queries without results", &sum.list("zero_result_queries"), "Every query found something.")}</section>
    }
    .into_any()
}

/// A bar for each hour or day, of universal time, up to the last of these moments; also where nothing was asked. Hours are told
/// by the clock of whoever looks.
fn bars(stretches: &[Record], moments: &[String], hourly: bool) -> Vec<Bar> {
    let long = if hourly { 13 } else { 10 };
    let bar = |at: &String| {
        let at = at.get(..long).unwrap_or_default();
        let of_it = stretches
            .iter()
            .find(|one| one.text("time_bucket").starts_with(at));
        let count = |name: &str| of_it.and_then(|one| one.int(name)).unwrap_or(0);
        let (all, none) = (count("execution_count"), count("zero_result_count"));
        let name = match hourly {
            true => text::moment(&format!("{at}:00:00Z"))
                .chars()
                .skip(11)
                .collect(),
            false => at.chars().skip(5).collect(),
        };
        (name, vec![all - none, none])
    };
    moments.iter().map(bar).collect()
}

fn queries(label: &'static str, all: &[Record], none: &'static str) -> AnyView {
    if all.is_empty() {
        return view! { <p class="muted">{none}</p> }.into_any();
    }
    let rows = all.iter().map(|one| {
        line(vec![
            words("text-cell", one.text("query")),
            number(one.int("count")),
            number(one.int("results")),
            cell("nowrap", when(one.opt("last_asked_at"))),
        ])
    });
    table(label, QUERIES, rows.collect(), Signal::stored(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hours_and_days_without_searches_have_bars_too() {
        let at = |at: &str| {
            Record(json!({"time_bucket": at, "execution_count": 5, "zero_result_count": 2}))
        };
        let moments = ["2026-11-21T23:40:00.000Z", "2026-11-22T00:40:00.000Z"].map(str::to_owned);
        assert_eq!(
            bars(&[at("2026-11-22T00:00:00Z")], &moments, true),
            [
                ("23:00".to_owned(), vec![0, 0]),
                ("00:00".to_owned(), vec![3, 2])
            ]
        );
        assert_eq!(
            bars(&[at("2026-11-22T00:00:00Z")], &moments, false)[1],
            ("11-22".to_owned(), vec![3, 2])
        );
    }
}
