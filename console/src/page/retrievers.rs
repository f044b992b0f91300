use leptos::prelude::*;

use crate::{
    part::*,
    record::Record,
    route::{namespace, param},
    session::use_session,
};

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Stages", ""),
    Column("Collections", "num"),
    Column("Page", ""),
    Column("Created", ""),
];

const BLANK: Blank = Blank {
    icon: "search",
    title: "No retriever here",
    text: "A retriever is a saved search over collections. A hybrid one is written for you from the collections you choose.",
    link: None,
};

pub fn retrievers() -> AnyView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/retrievers/list", move || session.api_in(ns.get()));
    view! {
        <ListPage title="Retrievers" text="Saved searches: stages over collections, tried here and published as pages." load search offset columns=COLUMNS
            row blank=BLANK create=Create::Page("Create retriever", "new-retriever")/>
    }.into_any()
}

fn row(one: Record) -> AnyView {
    let id = one.first(&["retriever_id", "retriever_name"]);
    let stages = one.list("stages").into_iter().map(|s| s.text("stage_name"));
    let page = match one.flag("is_published") {
        true => badge("published"),
        false => view! { <span class="muted">"not published"</span> }.into_any(),
    };
    line(vec![
        name(
            Some(format!("/console/ns/{}/retrievers/{id}", namespace())),
            one.text("retriever_name"),
            id,
        ),
        tags(stages.collect()),
        number(Some(one.list("collection_ids").len() as i64)),
        cell("", page),
        cell("nowrap", when(one.opt("created_at"))),
    ])
}
