//! How an app is visited: pages that were opened, what failed, how fast pages were.

use leptos::prelude::*;

use super::one::Shown;
use crate::{
    load::{Load, Query},
    part::{
        chart::{Bar, chart},
        *,
    },
    record::Record,
    session::use_session,
    text,
};

/// Spans that can be looked at: their hours, and their words.
const SPANS: [(&str, &str); 3] = [
    ("24", "Last 24 hours"),
    ("168", "Last 7 days"),
    ("720", "Last 30 days"),
];

const BARS: usize = 24;

const VITALS: &[Column] = &[
    Column("Measure", ""),
    Column("Half are below", "num"),
    Column("Three quarters are below", "num"),
    Column("95 of 100 are below", "num"),
    Column("Reports", "num"),
];

const ERRORS: &[Column] = &[
    Column("When", ""),
    Column("Error", ""),
    Column("On the page", ""),
];

pub fn visits(shown: Shown) -> AnyView {
    let session = use_session();
    let span = Query::new("hours");
    let load = Load::of(
        move || session.api(),
        move || {
            let hours = span.value.get();
            let hours = SPANS
                .iter()
                .find(|(one, _)| *one == hours)
                .unwrap_or(&SPANS[0])
                .0;
            format!("{}/analytics?hours={hours}", shown.path.get())
        },
    );
    let options = SPANS.map(|(hours, label)| {
        let selected = span.value.with_untracked(|now| now == hours);
        view! { <option value=hours selected=selected>{label}</option> }.into_any()
    });
    view! {
        <div class="row between">
            <h2>"Visits"</h2>
            <select class="select filter" aria-label="Span of time" on:change=move |event| span.set(&event_target_value(&event))>{Vec::from(options)}</select>
        </div>
        {loaded(load, waiting(8), told)}
    }
    .into_any()
}

fn told(one: Record) -> AnyView {
    let count = |name: &str| text::count(one.int(name).unwrap_or(0)).into_any();
    let rate = one.float("error_rate_per_minute").unwrap_or(0.0);
    let errors = one.int("total_errors").unwrap_or(0);
    let over = match errors {
        0 => view! { <p class="muted">"No page reported an error."</p> }.into_any(),
        _ => chart(
            "Errors",
            &["errors"],
            bars(&one.list("errors_over_time")),
            (360.0, 940.0),
        ),
    };
    view! {
        <dl class="stats">
            {stat("Pages opened", count("total_pageviews"))}
            {stat("Reports of pages", count("total_events"))}
            {stat("Errors", count("total_errors"))}
            {stat("Errors a minute", format!("{rate:.2}").into_any())}
        </dl>
        <section class="card stack" aria-labelledby="errors"><h3 id="errors">"Errors over time"</h3>{over}{recent(&one)}</section>
        <section class="card stack" aria-labelledby="vitals"><h3 id="vitals">"How fast pages were for visitors"</h3>{vitals(&one)}</section>
        <p class="muted">"Visitors' addresses are not kept, and previews are not counted. What pages report is told in the documentation of apps."</p>
    }
    .into_any()
}

/// The hours, several to a bar where there are many.
fn bars(hours: &[Record]) -> Vec<Bar> {
    let each = hours.len().div_ceil(BARS).max(1);
    let days = each > 2;
    let bar = |some: &[Record]| {
        let at = text::moment(&some[0].text("timestamp"));
        let name = if days { at.get(5..10) } else { at.get(11..16) };
        let sum = some.iter().filter_map(|one| one.int("count")).sum();
        (name.unwrap_or_default().to_owned(), vec![sum])
    };
    hours.chunks(each).map(bar).collect()
}

fn recent(one: &Record) -> AnyView {
    let all = one.list("recent_errors");
    if all.is_empty() {
        return ().into_any();
    }
    let rows = all.into_iter().map(|error| {
        line(vec![
            cell("nowrap", when(error.opt("timestamp"))),
            cell("text-cell", view! { {error.text("error_message")}<span class="sub">{error.text("error_type")}</span> }.into_any()),
            words("", error.text("url")),
        ])
    });
    table(
        "Newest errors",
        ERRORS,
        rows.collect(),
        Signal::stored(false),
    )
}

/// What a measure is called, and whether it is a time.
fn measure(name: &str) -> (String, bool) {
    let told = match name {
        "LCP" => "The largest thing is there",
        "FCP" => "The first thing is there",
        "INP" => "An answer to a press",
        "FID" => "An answer to the first press",
        "TTFB" => "The first byte came",
        "CLS" => return ("How far things jump (CLS)".to_owned(), false),
        other => return (other.to_owned(), false),
    };
    (format!("{told} ({name})"), true)
}

fn vitals(one: &Record) -> AnyView {
    let all = one.list("vitals");
    if all.is_empty() {
        return view! { <p class="muted">"No page reported a measure."</p> }.into_any();
    }
    let rows = all.into_iter().map(|vital| {
        let (label, time) = measure(&vital.text("metric_name"));
        let value = |name: &str| {
            let value = vital.float(name).unwrap_or(0.0);
            words(
                "num nowrap",
                if time {
                    text::millis(value)
                } else {
                    format!("{value:.2}")
                },
            )
        };
        line(vec![
            words("", label),
            value("p50"),
            value("p75"),
            value("p95"),
            number(vital.int("sample_count")),
        ])
    });
    table(
        "Measures of pages",
        VITALS,
        rows.collect(),
        Signal::stored(false),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_hours_share_a_bar() {
        let hour = |n: usize| {
            Record(
                json!({"timestamp": format!("2026-11-{:02}T{:02}:00:00Z", 1 + n / 24, n % 24), "count": 1}),
            )
        };
        let day: Vec<_> = (0..25).map(hour).collect();
        assert_eq!(bars(&day).len(), 13);
        assert_eq!(bars(&day)[1], ("02:00".to_owned(), vec![2]));
        let week: Vec<_> = (0..169).map(hour).collect();
        let week = bars(&week);
        assert!(week.len() <= BARS);
        assert_eq!(week[0].0, "11-01");
        assert_eq!(week.iter().map(|(_, parts)| parts[0]).sum::<i64>(), 169);
        assert!(bars(&[]).is_empty());
    }
}
