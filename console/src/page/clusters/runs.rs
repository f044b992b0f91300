//! What each execution of a cluster found, newest first.

use leptos::prelude::*;
use serde_json::json;

use super::goes_on;
use crate::{
    api::Api,
    load::{Change, Load, Query},
    part::*,
    record::Record,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Execution", ""),
    Column("Status", ""),
    Column("Groups", "num"),
    Column("Documents", "num"),
    Column("Begun", ""),
    Column("", "actions"),
];

/// Where rows lead, and what they call.
#[derive(Clone, Copy)]
struct Around {
    api: Signal<Api>,
    path: Signal<String>,
    run: Query,
    tab: Query,
    export: Change,
}

/// The executions of the cluster at `path`.
pub fn runs(api: Signal<Api>, path: Signal<String>) -> AnyView {
    let offset = Query::new("offset");
    let load = Load::new(move || {
        let path = format!("{}/executions/list{}", path.get(), page_query(offset));
        api.get().post(&path, &json!({}))
    });
    load.poll_while(goes_on);
    let rows = Rows::new(load);
    let around = Around {
        api,
        path,
        run: Query::new("run"),
        tab: Query::new("tab"),
        export: Change::new(),
    };
    provide_context(rows);
    provide_context(around);
    let empty = || view! { <Empty icon="clock" title="Nothing is gathered yet" text="The newest hundred executions stand here, with what each found."/> };
    view! {
        {refusal(rows.change)}{refusal(around.export)}
        <Listing load offset=Some(offset) label="Executions" columns=COLUMNS row empty=ViewFn::from(empty)/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let around: Around = expect_context();
    let id = one.text("run_id");
    let title = one.opt("run_name").unwrap_or_else(|| id.clone());
    let path = format!(
        "{}/executions/{}",
        around.path.get_untracked(),
        text::escape(&id)
    );
    let error = one
        .opt("error_message")
        .map(|error| view! { <span class="sub cut">{error}</span> });
    let buttons = if goes_on(&one) {
        let path = format!("{path}/cancel");
        rows.call("Cancel", &title, "It ends within a second", move || {
            around.api.get_untracked().post(&path, &json!({}))
        })
    } else if one.text("status") == "completed" {
        let chosen = id.clone();
        let show = move || {
            around.run.set(&chosen);
            around.tab.set("");
        };
        let name = format!("{id}.csv");
        let save = move || {
            let name = name.clone();
            let call = around
                .api
                .get_untracked()
                .text(&format!("{path}/export?format=csv"));
            around.export.run(call, move |answer| {
                download(&name, "text/csv", answer.0.as_str().unwrap_or_default());
            });
        };
        view! { {press("Groups", &title, Box::new(show))}{press("Export", &title, Box::new(save))} }
            .into_any()
    } else {
        ().into_any()
    };
    line(vec![
        name(None, title, id),
        cell("", view! { {badge(&one.text("status"))}{error} }.into_any()),
        number(one.int("num_clusters")),
        number(one.int("num_points")),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", buttons),
    ])
}
