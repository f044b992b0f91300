use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use serde_json::{Map, Value, json};

use crate::{
    load::{Change, param},
    part::*,
    record::Record,
    session::use_session,
    text,
};

const TYPES: [&str; 12] = [
    "text", "image", "pdf", "audio", "video", "excel", "string", "integer", "float", "boolean",
    "datetime", "object",
];

#[component]
pub fn Buckets() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/buckets/list", move || session.api_in(ns.get()));
    let create = RwSignal::new(false);
    let empty = move || {
        view! {
        <Empty icon="bucket" title="No bucket here" text="A bucket takes your files: drop them in, then process them into searchable documents.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)>"Create a bucket"</button>
        </Empty>
    }.into_any()
    };
    view! {
        <Head title="Buckets" text="Files as they came, by the fields they have.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)><Icon name="plus"/>"Create bucket"</button>
        </Head>
        <div class="row"><SearchBox query=search label="Search buckets"/></div>
        <Listing load offset label="Buckets" empty=empty.into() row=Callback::from(move |one| row(ns.get_untracked(), one))
            columns=vec![Column("Name", ""), Column("Fields", ""), Column("Objects", "num"), Column("Failed", "num"), Column("Size", "num"), Column("Last upload", "")]/>
        <Create open=create ns/>
    }
}

fn row(ns: String, one: Record) -> AnyView {
    let id = one.first(&["bucket_id", "bucket_name"]);
    let fields = one.record("bucket_schema").record("properties").members();
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{ns}/buckets/{id}")>{one.text("bucket_name")}</a><span class="sub mono">{id.clone()}</span></th>
            <td>{fields.into_iter().map(|(f, _)| view! { <span class="tag">{f}</span>" " }).collect_view()}</td>
            <td class="num">{text::count(one.int("object_count").unwrap_or(0))}</td>
            <td class="num">{text::count(one.int("failed_object_count").unwrap_or(0))}</td>
            <td class="num nowrap">{text::size(one.int("total_size_bytes").unwrap_or(0))}</td>
            <td class="nowrap"><When at=one.opt("last_upload_at")/></td>
        </tr>
    }
    .into_any()
}

/// A line of the schema form.
#[derive(Clone, Copy)]
struct Line {
    id: usize,
    name: RwSignal<String>,
    kind: RwSignal<String>,
}

fn line(id: usize, name: &str, kind: &str) -> Line {
    Line {
        id,
        name: RwSignal::new(name.into()),
        kind: RwSignal::new(kind.into()),
    }
}

#[component]
fn Create(open: RwSignal<bool>, ns: Memo<String>) -> impl IntoView {
    let session = use_session();
    let (name, description) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let lines = RwSignal::new(vec![line(0, "content", "text")]);
    let next = RwSignal::new(1usize);
    let change = Change::new();
    let go = StoredValue::new_local(use_navigate());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let mut properties = Map::new();
        for one in lines.get_untracked() {
            let field = one.name.get_untracked().trim().to_owned();
            if !field.is_empty() {
                properties.insert(field, json!({"type": one.kind.get_untracked()}));
            }
        }
        let mut body = json!({"bucket_name": name.get_untracked().trim(), "bucket_schema": {"properties": Value::Object(properties)}});
        if !description.get_untracked().is_empty() {
            body["description"] = description.get_untracked().into();
        }
        let ns = ns.get_untracked();
        change.run(
            session.api_in(ns.clone()).post("/v1/buckets", &body),
            move |made| {
                let id = made.first(&["bucket_id", "bucket_name"]);
                go.with_value(|go| go(&format!("/ns/{ns}/buckets/{id}"), Default::default()));
            },
        );
    };
    let add = move |_| {
        next.update(|n| *n += 1);
        lines.update(|all| all.push(line(next.get_untracked(), "", "string")));
    };
    view! {
        <Modal open title="Create a bucket">
            <form class="form" on:submit=submit>
                <Field id="bucket-name" label="Name" value=name required=true placeholder="articles"/>
                <Field id="bucket-text" label="Description" value=description/>
                <fieldset class="stack-sm">
                    <legend><strong>"Fields of an object"</strong></legend>
                    <For each=move || lines.get() key=|l| l.id let(one)>
                        <div class="schema-row">
                            <input class="input" aria-label="Field name" placeholder="field" bind:value=one.name/>
                            <select class="select" aria-label="Type" on:change=move |e| one.kind.set(event_target_value(&e))>
                                {TYPES.into_iter().map(|t| view! { <option value=t selected={one.kind.get_untracked() == t}>{t}</option> }).collect_view()}
                            </select>
                            <button type="button" class="btn ghost icon" aria-label="Remove this field"
                                on:click=move |_| lines.update(|all| all.retain(|l| l.id != one.id))><Icon name="close"/></button>
                        </div>
                    </For>
                    <div><button type="button" class="btn small" on:click=add><Icon name="plus" size=14/>"Add a field"</button></div>
                </fieldset>
                <Submit change open label="Create"/>
            </form>
        </Modal>
    }
}
