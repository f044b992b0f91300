use leptos::prelude::*;
use serde_json::json;

use super::demo::{Demo, Running};
use crate::{
    load::{Change, navigator},
    part::*,
    record::Record,
    session::use_session,
    text,
};

const COLUMNS: &[Column] = &[
    Column("Name", ""),
    Column("Description", ""),
    Column("Created", ""),
    Column("", "actions"),
];

const BLANK: Blank = Blank {
    icon: "layers",
    title: "No namespace yet",
    text: "A namespace holds buckets, collections and retrievers. Load the demo to see one at work in under two minutes, or make your own.",
    link: None,
};

pub fn namespaces() -> AnyView {
    let session = use_session();
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/namespaces/list", move || {
        session.namespaces_changed.track();
        session.api()
    });
    load.poll_while(|one| one.text("clone_status") == "cloning");
    let rows = Rows::new(load);
    provide_context(rows);
    let named = move |name: &str| rows.of.with(|one| one.first(&[name, "namespace_name"]));
    let removed = Callback::new(move |()| session.namespaces_changed.update(|n| *n += 1));
    let create = RwSignal::new(false);
    let made = RwSignal::new(None::<Record>);
    let above = move || move || made.get().map(|answer| view! { <Running answer/> });
    let first = move || {
        view! {
            <Demo made/>
            <button type="button" class="btn" on:click=move |_| create.set(true)>"Create a namespace"</button>
        }
    };
    view! {
        <ListPage title="Namespaces" text="Each holds its own files, documents and retrievers." load search offset columns=COLUMNS row
            blank=BLANK create=Create::Dialog("Create namespace", create) first=ViewFn::from(first) above=ViewFn::from(above)/>
        <Make open=create/>
        <Removal open=rows.dialog("Delete") what="namespace" name=Signal::derive(move || named("namespace_name"))
            loses="Its buckets, files, collections, documents, retrievers and pages go with it." api=Signal::derive(move || session.api())
            path=Signal::derive(move || format!("/v1/namespaces/{}", text::escape(&named("namespace_id")))) done=removed/>
    }
    .into_any()
}

fn row(one: Record) -> AnyView {
    let rows: Rows = expect_context();
    let id = one.first(&["namespace_id", "namespace_name"]);
    let href = format!("/console/ns/{}/collections", text::escape(&id));
    let title = one.text("namespace_name");
    let remove = rows.open("Delete", &title, &one);
    line(vec![
        name(Some(href), title, id),
        cell(
            "text-cell",
            view! { {one.text("description")}{copying(&one)} }.into_any(),
        ),
        cell("nowrap", when(one.opt("created_at"))),
        cell("actions", remove),
    ])
}

/// How far the documents of a copy are, until they are there.
fn copying(one: &Record) -> Option<AnyView> {
    let state = one.opt("clone_status").filter(|state| state != "ready")?;
    let error = one.text("clone_error");
    Some(view! { <span class="sub cut">{badge(&state)}{error}</span> }.into_any())
}

#[component]
fn Make(open: RwSignal<bool>) -> AnyView {
    let session = use_session();
    let (name, description) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let change = Change::new();
    let go = navigator();
    let submit = Callback::new(move |()| {
        let mut body = json!({"namespace_name": name.get_untracked().trim()});
        if !description.get_untracked().is_empty() {
            body["description"] = description.get_untracked().into();
        }
        change.run(session.api().post("/v1/namespaces", &body), move |made| {
            open.set(false);
            session.namespaces_changed.update(|n| *n += 1);
            let id = made.first(&["namespace_id", "namespace_name"]);
            go(&format!("/ns/{}/buckets", text::escape(&id)));
        });
    });
    view! {
        <Ask open title="Create a namespace".to_owned() label="Create" change submit>
            <Field id="ns-name" label="Name" value=name required=true placeholder="media" hint="Small letters, digits, dashes and underscores."/>
            <Field id="ns-text" label="Description" value=description/>
        </Ask>
    }.into_any()
}
