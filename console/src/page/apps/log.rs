//! What happened to an app in the last week, line by line: what was deployed, what was called, what failed, what pages told.

use leptos::prelude::*;

use super::{deploys::deploys, one::Shown};
use crate::{
    load::{Load, Query},
    part::*,
    record::{Record, plain},
    session::use_session,
    text,
};

/// Kinds of lines, by the words of the interface and of people.
const KINDS: [(&str, &str); 4] = [
    ("deploys", "Deploys"),
    ("requests", "Calls of visitors"),
    ("errors", "Errors"),
    ("interactions", "What visitors did"),
];

const COLUMNS: &[Column] = &[Column("Line", ""), Column("More", ""), Column("When", "")];

/// As far back as lines of calls are kept, and as many as can be read.
const ASKED: &str = "hours=168&limit=100";

/// Members of a report that have a place of their own.
const SHOWN: [&str; 5] = ["event_type", "timestamp", "level", "message", "metadata"];

pub fn log(shown: Shown) -> AnyView {
    let kind = Query::new("kind");
    let options = KINDS.map(|(word, label)| {
        let selected = kind.value.with_untracked(|now| now == word);
        view! { <option value=word selected=selected>{label}</option> }.into_any()
    });
    let part = move || match kind.value.get().as_str() {
        "requests" => lines(shown, "requests"),
        "errors" => lines(shown, "errors"),
        "interactions" => lines(shown, "interactions"),
        _ => deploys(shown),
    };
    view! {
        <div class="row between">
            <h2>"Log of the last week"</h2>
            <select class="select filter" aria-label="Kind of lines" on:change=move |event| kind.set(&event_target_value(&event))>{Vec::from(options)}</select>
        </div>
        {part}
    }
    .into_any()
}

fn lines(shown: Shown, kind: &'static str) -> AnyView {
    let session = use_session();
    let path = move || format!("{}/logs?log_type={kind}&{ASKED}", shown.path.get());
    let load = Load::of(move || session.api(), path);
    let empty = move || view! { <Empty icon="app" title="Nothing in a week" text="The newest 100 lines of a week stand here, unless the app keeps none. Calls that were answered with 401, 404 or 429 have no line."/> };
    view! { <Listing load label="Lines" columns=COLUMNS row empty=ViewFn::from(empty) offset=None/> }
        .into_any()
}

/// What a line is about, and what more it tells.
fn told(one: &Record) -> (String, String) {
    let Some(kind) = one.opt("event_type") else {
        let took = text::millis(one.float("duration_ms").unwrap_or(0.0));
        let mut more = vec![format!("status {}", one.text("status")), took];
        more.extend(one.opt("user_id").map(|user| format!("by {user}")));
        let call = format!("{} {}", one.text("method"), one.text("path"));
        return (call, more.join(", "));
    };
    let about = one.record("metadata");
    let message = about.opt("message").or_else(|| one.opt("message"));
    let mut all = one.members();
    all.extend(about.members());
    let more = all
        .into_iter()
        .filter(|(name, value)| !SHOWN.contains(&name.as_str()) && !value.0.is_null())
        .map(|(name, value)| format!("{}: {}", text::words(&name), plain(&value.0)));
    (message.unwrap_or(kind), more.collect::<Vec<_>>().join(", "))
}

fn row(one: Record) -> AnyView {
    let (about, more) = told(&one);
    line(vec![
        words("text-cell", about),
        words("text-cell", more),
        cell("nowrap", when(one.opt("timestamp"))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_and_reports_are_told_in_a_line() {
        let call = json!({"method": "GET", "path": "/api/retrievers", "status": 503, "duration_ms": 12.4, "level": "error", "user_id": "eu_1"});
        let (about, more) = told(&Record(call));
        assert_eq!(about, "GET /api/retrievers");
        assert_eq!(more, "status 503, 12 ms, by eu_1");
        let failed = json!({"event_type": "error", "level": "error", "metadata": {"type": "TypeError", "message": "x is undefined", "url": "/films"}});
        let (about, more) = told(&Record(failed));
        assert_eq!(about, "x is undefined");
        assert_eq!(more, "type: TypeError, url: /films");
        let click = json!({"event_type": "click", "position": 1, "query": null, "timestamp": "2026-11-21T10:00:00Z"});
        let click = told(&Record(click));
        assert_eq!(click, ("click".to_owned(), "position: 1".to_owned()));
    }
}
