use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use serde_json::json;

use super::demo::{Demo, Running};
use crate::{
    load::Change,
    part::*,
    record::Record,
    session::{Session, use_session},
    text,
};

#[component]
pub fn Namespaces() -> impl IntoView {
    let session = use_session();
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/namespaces/list", move || {
        session.namespaces_changed.track();
        session.api()
    });
    let create = RwSignal::new(false);
    let made = RwSignal::new(None::<Record>);
    let searched = move || !search.value.get().is_empty();
    let empty = move || {
        if searched() {
            view! { <Empty icon="search" title="No namespace has that name" text="Nothing matches what you typed."><button type="button" class="btn" on:click=move |_| search.set("")>"Clear the search"</button></Empty> }.into_any()
        } else {
            view! {
            <Empty icon="layers" title="No namespace yet" text="A namespace holds buckets, collections and retrievers. Load the demo to see one at work in under two minutes, or make your own.">
                <Demo made/>
                <button type="button" class="btn" on:click=move |_| create.set(true)>"Create a namespace"</button>
            </Empty>
        }.into_any()
        }
    };
    view! {
        <Head title="Namespaces" text="Each holds its own files, documents and retrievers.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)><Icon name="plus"/>"Create namespace"</button>
        </Head>
        {move || made.get().map(|answer| view! { <Running answer/> })}
        <div class="row"><SearchBox query=search label="Search namespaces"/></div>
        <Listing load offset label="Namespaces" empty=empty.into() row=Callback::from(move |one| row(session, one))
            columns=vec![Column("Name", ""), Column("Description", ""), Column("Created", ""), Column("", "actions")]/>
        <Create open=create/>
    }
}

fn row(session: Session, one: Record) -> AnyView {
    let id = one.first(&["namespace_id", "namespace_name"]);
    let path = format!("/v1/namespaces/{}", text::escape(&id));
    let removed = Callback::new(move |()| session.namespaces_changed.update(|n| *n += 1));
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{}/collections", text::escape(&id))>{one.text("namespace_name")}</a><span class="sub mono">{id.clone()}</span></th>
            <td class="text-cell">{one.text("description")}</td>
            <td class="nowrap"><When at=one.opt("created_at")/></td>
            <td class="actions"><Remove what="namespace" name=Signal::stored(one.text("namespace_name")) loses="Its buckets, files, collections, documents, retrievers and pages go with it."
                api=Signal::derive(move || session.api()) path=Signal::stored(path) done=removed/></td>
        </tr>
    }
    .into_any()
}

#[component]
fn Create(open: RwSignal<bool>) -> impl IntoView {
    let session = use_session();
    let (name, description) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let change = Change::new();
    let go = StoredValue::new_local(use_navigate());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let mut body = json!({"namespace_name": name.get_untracked().trim()});
        if !description.get_untracked().is_empty() {
            body["description"] = description.get_untracked().into();
        }
        change.run(session.api().post("/v1/namespaces", &body), move |made| {
            open.set(false);
            session.namespaces_changed.update(|n| *n += 1);
            let id = made.first(&["namespace_id", "namespace_name"]);
            go.with_value(|go| {
                go(
                    &format!("/ns/{}/buckets", text::escape(&id)),
                    Default::default(),
                )
            });
        });
    };
    view! {
        <Modal open title="Create a namespace">
            <form class="form" on:submit=submit>
                <Field id="ns-name" label="Name" value=name required=true placeholder="media" hint="Small letters, digits, dashes and underscores."/>
                <Field id="ns-text" label="Description" value=description/>
                <Submit change open label="Create"/>
            </form>
        </Modal>
    }
}
