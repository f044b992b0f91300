//! One taxonomy: its tree, and where documents of a collection would belong.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::{applying, path_of};
use crate::{
    api::{Answer, Api},
    load::{Change, Load, Query, navigator},
    part::{schema::Form, *},
    record::Record,
    route::param,
    session::use_session,
    text,
};

const MATCHES: &[Column] = &[
    Column("Document", ""),
    Column("Belongs to", ""),
    Column("Score", "num"),
    Column("Takes over", ""),
];

/// Nodes that are listed where a taxonomy has no tree of its own.
const LISTED: usize = 100;

pub fn taxonomy() -> AnyView {
    let session = use_session();
    let (ns, id) = (param("ns"), param("taxonomy"));
    let version = Query::new("version");
    let api = Signal::derive(move || session.api_in(ns.get()));
    let path = Signal::derive(move || format!("/v1/taxonomies/{}", text::escape(&id.get())));
    let load = Load::new(move || {
        let query = match version.value.get() {
            none if none.is_empty() => String::new(),
            one => format!("?version={}", text::escape(&one)),
        };
        whole(api.get(), format!("{}{query}", path.get()), path.get())
    });
    let title = Signal::derive(move || match load.good() {
        Some(one) => one.text("taxonomy_name"),
        None => id.get(),
    });
    let go = navigator();
    let removed = Callback::new(move |()| go(&format!("/ns/{}/taxonomies", ns.get_untracked())));
    let rows = Rows::new(load);
    let (apply, cloning) = (RwSignal::new(false), RwSignal::new(false));
    let form = Form::plain("clone");
    let start = move || {
        let names = load.good().map(|one| one.record("names"));
        form.choices.set(names.unwrap_or_default());
        json!({})
    };
    let send = move |body: Value| {
        let path = format!("{}/clone", path.get_untracked());
        api.get_untracked().post(&path, &body)
    };
    let cloned = move |made: Record| {
        let ns = ns.get_untracked();
        go(&format!("/ns/{ns}/taxonomies/{}", made.text("taxonomy_id")));
    };
    view! {
        <Head title text="Where documents belong, and what they take over from there.">
            <button type="button" class="btn" disabled=move || load.good().is_none() on:click=move |_| apply.set(true)>"Apply"</button>
            <button type="button" class="btn" disabled=move || load.good().is_none() on:click=move |_| cloning.set(true)>"Clone"</button>
            {while_there(load, move || view! { <Remove what="taxonomy" name=title loses="Its versions go with it, and collections apply it no more." api path done=removed/> }.into_any())}
        </Head>
        <Fill open=cloning title="Clone the taxonomy".to_owned() label="Clone" form schema="taxonomies/clone" start=Callback::new(move |()| start())
            send=Callback::new(send) done=Callback::new(cloned)/>
        {refusal(rows.change)}
        {applying::dialog(apply, load, api)}
        {loaded(load, waiting(8), move |one| view! { {facts(&one, version, applying::applied(rows, api, &one))}<div class="halves">{tree(&one)}{trial(api, &one)}</div> }.into_any())}
    }
    .into_any()
}

/// The taxonomy with its versions, the names of what it uses, and its nodes. Where each document of a collection is a node,
/// the first of them are read.
fn whole(api: Api, path: String, all: String) -> Answer {
    Box::pin(async move {
        let mut one = api.get(&path).await?;
        let versions = api.get(&format!("{all}/versions")).await?;
        let names = choices(api.clone(), &["collections", "retrievers"]).await?;
        let source = one
            .record("config")
            .record("source_collection")
            .text("collection_id");
        if one.list("nodes").is_empty() && !source.is_empty() {
            let path = format!(
                "/v1/collections/{}/documents/list?limit={LISTED}",
                text::escape(&source)
            );
            let documents = api.post(&path, &json!({})).await?;
            one.0["nodes"] = documents.list("results").iter().map(node).collect();
        }
        let held = api
            .post("/v1/collections/list?limit=100", &json!({}))
            .await?;
        let id = one.text("taxonomy_id");
        let applies = |held: &Record| {
            let all = held.list("taxonomy_applications");
            all.iter().any(|one| one.text("taxonomy_id") == id)
        };
        let applied = held.list("results").into_iter().filter(applies);
        one.0["applied"] = applied.map(|held| held.0).collect();
        one.0["versions"] = versions.record("results").0;
        one.0["names"] = names.0;
        Ok(one)
    })
}

/// A document as a node without others around it.
fn node(document: &Record) -> Value {
    let label = document.first(&["label", "name", "title", "document_id"]);
    json!({"node_id": document.text("document_id"), "label": label, "level": 0})
}

fn named(one: &Record, of: &str, id: &str) -> String {
    let all = one.record("names").list(of);
    let found = all.into_iter().find(|one| one.text("id") == id);
    found.map_or_else(|| id.to_owned(), |one| one.text("name"))
}

fn facts(one: &Record, version: Query, applied: Option<AnyView>) -> AnyView {
    let config = one.record("config");
    let inputs = config.list("input_mappings").into_iter().map(|input| {
        let from = input.first(&["path", "override"]);
        format!("{} from {from}", input.text("input_key"))
    });
    // Each level of a hierarchy has its own.
    let mut from = config.list("hierarchical_nodes");
    from.push(config.record("source_collection"));
    let fields = from
        .into_iter()
        .flat_map(|one| one.list("enrichment_fields"))
        .map(|field| match field.opt("target_field") {
            Some(target) => format!("{} as {target}", field.text("field_path")),
            None => field.text("field_path"),
        });
    let (inputs, fields): (Vec<_>, Vec<_>) = (inputs.collect(), fields.collect());
    let fields = match fields.is_empty() {
        true => "what it lacks of the node's".to_owned(),
        false => fields.join(", "),
    };
    let now = one.int("version").unwrap_or(1);
    let versions = one.list("versions").into_iter().map(|other| {
        let number = other.int("version").unwrap_or(1);
        let at = other.opt("created_at").map(|at| text::moment(&at)).unwrap_or_default();
        view! { <option value=number.to_string() selected={number == now}>{format!("Version {number} of {at}")}</option> }.into_any()
    });
    let versions: Vec<_> = versions.collect();
    let pick = (versions.len() > 1).then(|| view! {
        <select class="select filter" aria-label="Version" on:change=move |event| version.set(&event_target_value(&event))>{versions}</select>
    });
    let found_by = one.opt("retriever_id").or(config.opt("retriever_id"));
    let mut lines = vec![fact(
        "Kind".to_owned(),
        view! { {text::words(&config.text("taxonomy_type"))}" "{pick} }.into_any(),
    )];
    if let Some(retriever) = found_by {
        lines.push(fact(
            "Nodes are found by".to_owned(),
            named(one, "retrievers", &retriever).into_any(),
        ));
    }
    if !inputs.is_empty() {
        lines.push(fact("Asked with".to_owned(), inputs.join(", ").into_any()));
    }
    if let Some(field) = config.opt("path_field") {
        lines.push(fact("Places are told by".to_owned(), field.into_any()));
    }
    lines.push(fact("Documents take over".to_owned(), fields.into_any()));
    lines.extend(applied);
    view! { <dl class="facts card">{lines}</dl> }.into_any()
}

/// The nodes below a node; those without one that is there are at the top.
fn below(nodes: &[Record], parent: Option<&str>) -> Vec<Record> {
    let known = |id: &str| nodes.iter().any(|one| one.text("node_id") == id);
    let is_below = |one: &&Record| match (one.opt("parent_id").filter(|id| known(id)), parent) {
        (Some(id), Some(parent)) => id == parent,
        (None, None) => true,
        _ => false,
    };
    nodes.iter().filter(is_below).cloned().collect()
}

fn branch(nodes: &[Record], parent: Option<&str>, depth: usize) -> AnyView {
    let here = below(nodes, parent).into_iter().map(|one| {
        let (id, label) = (one.text("node_id"), one.text("label"));
        // A tree that leads back into itself ends somewhere.
        let leaf = depth > 20 || below(nodes, Some(&id)).is_empty();
        match leaf {
            true => view! { <li class="leaf">{label}<span class="sub mono">{id}</span></li> }.into_any(),
            false => view! { <li><details open={depth < 2}><summary>{label}</summary>{branch(nodes, Some(&id), depth + 1)}</details></li> }.into_any(),
        }
    });
    view! { <ul class="tree">{here.collect::<Vec<_>>()}</ul> }.into_any()
}

fn tree(one: &Record) -> AnyView {
    let nodes = one.list("nodes");
    let more = (nodes.len() == LISTED)
        .then(|| view! { <p class="muted">{format!("The first {LISTED}.")}</p> });
    let inside = match nodes.is_empty() {
        true => view! { <p class="muted">"It has no node yet."</p> }.into_any(),
        false => view! { {branch(&nodes, None, 0)}{more} }.into_any(),
    };
    view! { <section class="card stack-sm" aria-labelledby="tree"><h2 id="tree">"Nodes"</h2>{inside}</section> }.into_any()
}

/// Where the first documents of a collection would belong; nothing is stored.
fn trial(api: Signal<Api>, one: &Record) -> AnyView {
    let (change, chosen) = (Change::new(), RwSignal::new(String::new()));
    let found = RwSignal::new(None::<Record>);
    let path = format!("{}/execute", path_of(one));
    let options = one
        .record("names")
        .list("collections")
        .into_iter()
        .map(|one| (one.text("id"), one.text("name")));
    let mut all = vec![(String::new(), "Choose one".to_owned())];
    all.extend(options);
    let ask = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let id = chosen.get_untracked();
        if id.is_empty() {
            change.refuse("choose a collection first");
            return;
        }
        let body = json!({"source_collection_id": id, "join_mode": "on_demand"});
        change.run(api.get_untracked().post(&path, &body), move |answer| {
            found.set(Some(answer))
        });
    };
    view! {
        <section class="card stack-sm" aria-labelledby="trial">
            <h2 id="trial">"Try it"</h2>
            <form class="form" on:submit=ask>
                <Choice id="of" label="Documents of" value=chosen options=Signal::stored(all) hint="Where they would belong is shown, and nothing is stored."/>
                <div><button class="btn" aria-busy=move || change.busy.get().to_string()><Icon name="play"/>"Find their nodes"</button></div>
            </form>
            {refusal(change)}
            <div role="status">{move || found.get().map(|answer| matches(&answer))}</div>
        </section>
    }
    .into_any()
}

fn matches(answer: &Record) -> AnyView {
    let all = answer.list("matches");
    let reason = answer
        .opt("first_error")
        .map(|reason| view! { <p class="notice warn">{reason}</p> });
    if all.is_empty() {
        return view! { {reason}<p class="muted">"No document found a node."</p> }.into_any();
    }
    let rows = all.into_iter().map(|one| {
        let path = one.strings("path");
        let place = match path.is_empty() {
            true => one.text("label"),
            false => path.join(" / "),
        };
        line(vec![
            name(None, String::new(), one.text("document_id")),
            words("", place),
            words(
                "num",
                one.float("score")
                    .map(|score| format!("{score:.3}"))
                    .unwrap_or_default(),
            ),
            tags(one.strings("enriched_fields")),
        ])
    });
    view! { {reason}{table("Nodes of the documents", MATCHES, rows.collect(), Signal::stored(false))} }.into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_below_their_parents() {
        let node = |id: &str, parent: Value| {
            Record(json!({"node_id": id, "label": id, "parent_id": parent}))
        };
        let nodes = [
            node("food", Value::Null),
            node("fruit", json!("food")),
            node("lost", json!("gone")),
        ];
        let names = |parent| -> Vec<String> {
            below(&nodes, parent)
                .iter()
                .map(|one| one.text("node_id"))
                .collect()
        };
        assert_eq!(names(None), ["food", "lost"]);
        assert_eq!(names(Some("food")), ["fruit"]);
        assert!(names(Some("fruit")).is_empty());
    }
}
