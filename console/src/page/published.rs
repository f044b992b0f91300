use leptos::prelude::*;

use super::publish::Address;
use crate::{
    load::{Load, Query},
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
};

const COLUMNS: &[Column] = &[
    Column("Title", ""),
    Column("Address", ""),
    Column("State", ""),
    Column("Published", ""),
];

const BLANK: Blank = Blank {
    icon: "globe",
    title: "No page yet",
    text: "Publish a retriever and everyone who has the address can search it, without an account.",
    link: Some(("retrievers", "To the retrievers")),
};

pub fn published() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let offset = Query::new("offset");
    let load = Load::of(
        move || session.api_in(ns.get()),
        move || {
            format!(
                "/v1/retrievers/published?limit=50&offset={}",
                offset.number()
            )
        },
    );
    view! { <ListPage title="Published pages" text="Retrievers that everyone can search." load offset columns=COLUMNS row blank=BLANK/> }.into_any()
}

fn row(one: Record) -> AnyView {
    let href = format!(
        "/console/ns/{}/retrievers/{}/page",
        namespace(),
        one.text("retriever_id")
    );
    let state = match one.flag("is_active") {
        true => "published",
        false => "inactive",
    };
    let title = one.record("display_config").text("title");
    line(vec![
        name(Some(href), title, one.text("public_id")),
        cell(
            "",
            view! { <Address name=one.text("public_name")/> }.into_any(),
        ),
        cell("", badge(state)),
        cell("nowrap", when(one.opt("created_at"))),
    ])
}
