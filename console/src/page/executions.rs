//! What a retriever was asked, and how each answer came about.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::results;
use crate::{
    api::Api,
    load::{Load, Query},
    part::*,
    record::Record,
    text,
};

/// How executions end.
const STATES: &[&str] = &["completed", "completed_partial", "failed"];

/// Orders beside the newest first.
const ORDERS: &[&str] = &["oldest_first", "slowest_first", "most_found_first"];

const COLUMNS: &[Column] = &[
    Column("When", ""),
    Column("Asked", ""),
    Column("Status", ""),
    Column("Looked at", "num"),
    Column("Found", "num"),
    Column("Time", "num"),
    Column("", "actions"),
];

/// The executions of the retriever at `path`.
pub fn executions(api: Signal<Api>, path: Signal<String>) -> AnyView {
    let (offset, log) = (Query::new("offset"), Query::new("log"));
    let narrowing = Narrowing {
        ended: Query::new("ended"),
        asked: Query::new("asked"),
        order: Query::new("order"),
    };
    let path = Signal::derive(move || format!("{}/executions", path.get()));
    let load = Load::new(move || {
        let path = format!("{}/list{}", path.get(), page_query(offset));
        api.get().post(&path, &narrowing.body())
    });
    provide_context(log);
    let empty = move || {
        none_match([narrowing.asked, narrowing.ended].iter()).unwrap_or_else(|| {
            view! { <Empty icon="log" title="Nothing was asked" text="Every search with this retriever stands here: what was asked, and what its stages did."/> }.into_any()
        })
    };
    view! {
        <div class="row between">
            <h2>"Executions"</h2>
            <button type="button" class="btn" on:click=move |_| load.reload()>"Refresh"</button>
        </div>
        <div class="row filters">
            <SearchBox query=narrowing.asked label="Search what was asked".to_owned()/>
            <Pick query=narrowing.ended label="How they ended" all="Every end" options=STATES/>
            <Pick query=narrowing.order label="Order" all="Newest first" options=ORDERS/>
        </div>
        <Listing load offset=Some(offset) label="Executions" columns=COLUMNS row empty=ViewFn::from(empty)/>
        {details(api, path, log)}
    }
    .into_any()
}

/// Which executions are shown, and in which order.
#[derive(Clone, Copy)]
struct Narrowing {
    ended: Query,
    asked: Query,
    order: Query,
}

impl Narrowing {
    /// The body of the list call.
    fn body(self) -> Value {
        let (ended, asked) = (self.ended.value.get(), self.asked.value.get());
        let mut body = json!({});
        if !ended.is_empty() {
            body["status"] = json!(ended);
        }
        if !asked.trim().is_empty() {
            let words =
                json!({"field": "query_summary", "operator": "contains", "value": asked.trim()});
            body["filters"] = json!({ "AND": [words] });
        }
        let sort = match self.order.value.get().as_str() {
            "oldest_first" => ("created_at", "asc"),
            "slowest_first" => ("duration_ms", "desc"),
            "most_found_first" => ("total_returned", "desc"),
            _ => return body,
        };
        body["sorts"] = json!([{ "field": sort.0, "direction": sort.1 }]);
        body
    }
}

fn row(one: Record) -> AnyView {
    let log: Query = expect_context();
    let id = one.text("execution_id");
    let asked = one.opt("query_summary").unwrap_or_else(|| "nothing".into());
    let cached = one.float("cache_hit_rate").filter(|rate| *rate >= 1.0);
    let cached = cached.map(|_| view! { <span class="tag">"from the cache"</span> });
    let chosen = id.clone();
    let show = press("Stages", &id, Box::new(move || log.set(&chosen)));
    line(vec![
        cell("nowrap", when(one.opt("created_at"))),
        cell(
            "text-cell",
            view! { {asked}<span class="sub mono">{id}</span> }.into_any(),
        ),
        cell(
            "",
            view! { {badge(&one.text("status"))}" "{cached} }.into_any(),
        ),
        number(one.int("total_processed")),
        number(one.int("total_returned")),
        words(
            "num nowrap",
            one.float("duration_ms")
                .map(text::millis)
                .unwrap_or_default(),
        ),
        cell("actions", show),
    ])
}

/// The execution in the address.
fn details(api: Signal<Api>, path: Signal<String>, log: Query) -> AnyView {
    let load = Load::of(
        move || api.get(),
        move || match log.value.get() {
            id if id.is_empty() => id,
            id => format!("{}/{}", path.get(), text::escape(&id)),
        },
    );
    let told = |one: Record| {
        view! {
            <div class="row">{badge(&one.text("status"))}<span class="muted">{when(one.opt("created_at"))}</span></div>
            {results::warnings(&one)}
            {results::stages(&one)}
        }
        .into_any()
    };
    view! { <Modal open=log.is_named() title="Execution".to_owned() class="side wide"><div class="stack">{loaded(load, waiting(5), told)}</div></Modal> }.into_any()
}
