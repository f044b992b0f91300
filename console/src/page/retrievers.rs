use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use serde_json::{Value, json};

use super::template;
use crate::{
    api::Problem,
    load::{Change, Load, param},
    part::*,
    record::Record,
    session::use_session,
    text,
};

#[component]
pub fn Retrievers() -> impl IntoView {
    let session = use_session();
    let ns = param("ns");
    let Searched {
        search,
        offset,
        load,
    } = searched("/v1/retrievers/list", move || session.api_in(ns.get()));
    let create = RwSignal::new(false);
    let empty = move || {
        view! {
        <Empty icon="search" title="No retriever here" text="A retriever is a saved search over collections. A hybrid one is written for you from the collections you choose.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)>"Create a retriever"</button>
        </Empty>
    }.into_any()
    };
    view! {
        <Head title="Retrievers" text="Saved searches: stages over collections, tried here and published as pages.">
            <button type="button" class="btn primary" on:click=move |_| create.set(true)><Icon name="plus"/>"Create retriever"</button>
        </Head>
        <div class="row"><SearchBox query=search label="Search retrievers"/></div>
        <Listing load offset label="Retrievers" empty=empty.into() row=Callback::from(move |one| row(ns.get_untracked(), one))
            columns=vec![Column("Name", ""), Column("Stages", ""), Column("Collections", "num"), Column("Page", ""), Column("Created", "")]/>
        <Create open=create ns/>
    }
}

fn row(ns: String, one: Record) -> AnyView {
    let id = one.first(&["retriever_id", "retriever_name"]);
    view! {
        <tr>
            <th scope="row"><a href=format!("/console/ns/{ns}/retrievers/{id}")>{one.text("retriever_name")}</a><span class="sub mono">{id.clone()}</span></th>
            <td>{one.list("stages").into_iter().map(|s| view! { <span class="tag">{s.text("stage_name")}</span>" " }).collect_view()}</td>
            <td class="num">{one.list("collection_ids").len()}</td>
            <td>{if one.flag("is_published") { view! { <Badge status="published"/> }.into_any() } else { view! { <span class="muted">"not published"</span> }.into_any() }}</td>
            <td class="nowrap"><When at=one.opt("created_at")/></td>
        </tr>
    }
    .into_any()
}

#[component]
fn Create(open: RwSignal<bool>, ns: Memo<String>) -> impl IntoView {
    let session = use_session();
    let load = Load::<Record>::new(move || {
        let (api, wanted) = (session.api_in(ns.get()), open.get());
        async move {
            if !wanted {
                return std::future::pending().await;
            }
            api.post("/v1/collections/list?limit=100", &json!({})).await
        }
    });
    view! {
        <Modal open title="Create a retriever" class="wide">
            {move || match load.value.get() {
                None => view! { <Skeletons lines=4/> }.into_any(),
                Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any(),
                Some(Ok(all)) if all.list("results").is_empty() => view! {
                    <Empty icon="grid" title="First a collection" text="A retriever searches collections, and there is none in this namespace.">
                        <a class="btn primary" href=format!("/console/ns/{}/collections", ns.get_untracked())>"To the collections"</a>
                    </Empty>
                }.into_any(),
                Some(Ok(all)) => view! { <Form open ns all=all.list("results")/> }.into_any(),
            }}
        </Modal>
    }
}

#[component]
fn Form(open: RwSignal<bool>, ns: Memo<String>, all: Vec<Record>) -> impl IntoView {
    let session = use_session();
    let (name, description) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let (stages, inputs) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let all = StoredValue::new(all);
    let id_of = |c: &Record| c.first(&["collection_id", "collection_name"]);
    let chosen = RwSignal::new(all.with_value(|all| {
        if all.len() == 1 {
            all.iter().map(id_of).collect::<Vec<_>>()
        } else {
            Vec::new()
        }
    }));
    let write = move || {
        let picked: Vec<Record> = all.with_value(|all| {
            all.iter()
                .filter(|c| chosen.with(|ids| ids.contains(&id_of(c))))
                .cloned()
                .collect()
        });
        stages.set(text::pretty(&template::stages(&picked)));
        inputs.set(text::pretty(&template::inputs(&picked)));
    };
    Effect::new(move |_| write());
    let change = Change::new();
    let go = StoredValue::new_local(use_navigate());
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let parsed = parse("stages", &stages.get_untracked())
            .and_then(|s| Ok((s, parse("inputs", &inputs.get_untracked())?)));
        let (name, text, ids) = (
            name.get_untracked(),
            description.get_untracked(),
            chosen.get_untracked(),
        );
        let ns = ns.get_untracked();
        let api = session.api_in(ns.clone());
        let work = async move {
            let (stages, inputs) = parsed?;
            let mut body = json!({"retriever_name": name.trim(), "collection_identifiers": ids, "stages": stages, "input_schema": inputs});
            if !text.is_empty() {
                body["description"] = text.into();
            }
            api.post("/v1/retrievers", &body).await
        };
        change.run(work, move |made| {
            let id = made.first(&["retriever_id", "retriever_name"]);
            go.with_value(|go| go(&format!("/ns/{ns}/retrievers/{id}"), Default::default()));
        });
    };
    view! {
        <form class="form" on:submit=submit>
            <div class="form-row">
                <Field id="retriever-name" label="Name" value=name required=true placeholder="article-search"/>
                <Field id="retriever-text" label="Description" value=description/>
            </div>
            <fieldset class="stack-sm">
                <legend><strong>"Collections"</strong></legend>
                {all.with_value(|all| all.iter().map(|c| {
                    let (id, same) = (id_of(c), id_of(c));
                    let indexes = c.list("vector_indexes").iter().filter_map(|i| i.opt("feature_uri")).collect::<Vec<_>>().join(", ");
                    view! { <Check label=c.text("collection_name") hint=indexes checked=Signal::derive(move || chosen.with(|ids| ids.contains(&same)))
                        set=move |on| chosen.update(|ids| { ids.retain(|one| *one != id); if on { ids.push(id.clone()); } })/> }
                }).collect_view())}
            </fieldset>
            <Area id="stages" label="Stages (JSON)" value=stages rows=12 hint="Written for the chosen collections: by meaning and by letter, fused by rank. Change what you like; choosing collections again writes it anew."/>
            <Area id="inputs" label="Inputs (JSON)" value=inputs rows=5 hint="What a search asks for; stages read it as {{INPUT.name}}."/>
            <Submit change open label="Create"/>
        </form>
    }
}

fn parse(what: &str, text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|e| Problem::local(format!("the {what} are not JSON: {e}")))
}
