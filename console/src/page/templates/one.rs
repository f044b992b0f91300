//! One template: what it makes, what it needs, and the requests that it is.

use leptos::prelude::*;

use super::{is_own, kept, makes, path_of, using::Use};
use crate::{
    load::{Load, navigator},
    part::*,
    record::Record,
    route::param,
    session::use_session,
    text,
};

const HELD: &[Column] = &[
    Column("Name", ""),
    Column("Kind", ""),
    Column("About", "text-cell"),
];

pub fn template() -> AnyView {
    let session = use_session();
    let (ns, kind, id) = (param("ns"), param("kind"), param("template"));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let load = Load::of(
        move || api.get(),
        move || {
            let (kind, id) = (text::escape(&kind.get()), text::escape(&id.get()));
            format!("/v1/templates/{kind}/{id}")
        },
    );
    let of = Signal::derive(move || load.good().unwrap_or_default());
    let title = Signal::derive(move || match load.good() {
        Some(one) => one.text("name"),
        None => id.get(),
    });
    let path = Signal::derive(move || of.with(path_of));
    let open = RwSignal::new(false);
    let go = navigator();
    let removed = Callback::new(move |()| {
        let ns = text::escape(&ns.get_untracked());
        go(&format!("/ns/{ns}/templates"));
    });
    let remove = move || {
        of.with(is_own).then(|| view! { <Remove what="template" name=title loses="What was made of it stays." api path done=removed/> }.into_any())
    };
    view! {
        <Head title text="How something is made, to make others like it.">
            {remove}
            <button type="button" class="btn primary" disabled=move || load.good().is_none() on:click=move |_| open.set(true)>"Use"</button>
        </Head>
        {loaded(load, waiting(8), whole)}
        <Use open of/>
    }
    .into_any()
}

fn whole(one: Record) -> AnyView {
    view! { {facts(&one)}{held(&one)}{configuration(&one)} }.into_any()
}

fn facts(one: &Record) -> AnyView {
    let mut lines = vec![
        fact("About".to_owned(), one.text("description").into_any()),
        fact("Makes".to_owned(), makes(one).into_any()),
        fact(
            "Scope".to_owned(),
            text::words(&one.text("scope")).into_any(),
        ),
    ];
    let told: [(&str, Vec<String>); 4] = [
        ("Category", one.opt("category").into_iter().collect()),
        ("Tags", one.strings("tags")),
        ("Made for", one.strings("use_cases")),
        ("Finds", one.strings("example_queries")),
    ];
    for (label, all) in told {
        if !all.is_empty() {
            lines.push(fact(label.to_owned(), all.join(", ").into_any()));
        }
    }
    let needs = one.strings("requirements").into_iter();
    let needs: Vec<AnyView> = needs
        .map(|one| view! { <li>{one}</li> }.into_any())
        .collect();
    if !needs.is_empty() {
        let needs = view! { <ul class="sub-list">{needs}</ul> };
        lines.push(fact("Needs".to_owned(), needs.into_any()));
    }
    if let Some(kept) = kept(one) {
        let of = one.text("source_resource_id");
        let of = view! { {kept}" of "<code>{of}</code> };
        lines.push(fact("Kept".to_owned(), of.into_any()));
    }
    let id = one.text("template_id");
    let id = view! { <code>{id.clone()}</code>" "<Copy text=Signal::stored(id)/> };
    lines.push(fact("Id".to_owned(), id.into_any()));
    view! { <dl class="facts card">{lines}</dl> }.into_any()
}

/// What a namespace that is made of it holds.
fn held(one: &Record) -> Option<AnyView> {
    if one.text("template_type") != "namespace" {
        return None;
    }
    let mut rows = Vec::new();
    for (section, requests) in one.record("configuration").members() {
        let single = section.strip_suffix("ies").map(|start| format!("{start}y"));
        let single = single.or_else(|| section.strip_suffix('s').map(str::to_owned));
        let single = single.unwrap_or(section);
        for request in crate::record::items(&requests.0) {
            let called = request.text(&format!("{single}_name"));
            let about = request.text("description");
            rows.push(line(vec![
                view! { <th scope="row">{called}</th> }.into_any(),
                words("", text::words(&single)),
                words("text-cell", about),
            ]));
        }
    }
    let all = table("What it holds", HELD, rows, Signal::stored(false));
    Some(view! { <section class="card stack" aria-labelledby="held"><h2 id="held">"Holds"</h2>{all}</section> }.into_any())
}

fn configuration(one: &Record) -> AnyView {
    let config = text::pretty(&one.record("configuration").0);
    let copied = Signal::stored(config.clone());
    view! {
        <section class="card stack" aria-labelledby="configuration">
            <div class="row between"><h2 id="configuration">"Configuration"</h2><Copy text=copied label="Copy"/></div>
            <pre class="code-block" role="region" tabindex="0" aria-label="The configuration as JSON">{config}</pre>
        </section>
    }
    .into_any()
}
