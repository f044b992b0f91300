//! One document in a side panel.

mod around;
mod change;

use leptos::prelude::*;

use super::{annotations::annotations, documents::name_of};
use crate::{
    api::Api,
    load::{Load, Query},
    part::*,
    record::{Record, plain},
    route::namespace,
    session::use_session,
    text,
};

/// What is asked for of it: also the documents that it was made of, and those that were made of it.
const SHOWN: &str = "return_presigned_urls=true&return_vectors=true&return_vector_names=true&expand=parent,ancestors,children";

/// Where the document is, and who is told when it is no longer what it was.
#[derive(Clone, Copy)]
struct Place {
    api: Signal<Api>,
    path: Signal<String>,
    collection: Memo<String>,
    /// The collection.
    about: Load,
    changed: Callback<()>,
    removed: Callback<()>,
}

/// Opens for the document named in the address.
#[component]
pub fn Document(
    open: Query,
    ns: Memo<String>,
    collection: Memo<String>,
    /// The collection.
    about: Load,
    /// Called when the document was changed or deleted.
    changed: Callback<()>,
) -> AnyView {
    let session = use_session();
    let shown = open.is_named();
    let api = Signal::derive(move || session.api_in(ns.get()));
    let path = Signal::derive(move || match open.value.get() {
        id if id.is_empty() => id,
        id => format!(
            "/v1/collections/{}/documents/{}",
            text::escape(&collection.get()),
            text::escape(&id)
        ),
    });
    let load = Load::of(
        move || api.get(),
        move || match path.get() {
            path if path.is_empty() => path,
            path => format!("{path}?{SHOWN}"),
        },
    );
    let place = Place {
        api,
        path,
        collection,
        about,
        changed: Callback::new(move |()| {
            load.reload();
            changed.run(());
        }),
        removed: Callback::new(move |()| {
            shown.set(false);
            changed.run(());
        }),
    };
    let decided = move || annotations(ns, collection, open.value);
    view! {
        <Modal open=shown title="Document".to_owned() class="side">
            {move || match load.value.get() {
                Some(Ok(one)) if one.text("document_id") == open.value.get() => parts(one, decided(), place),
                Some(Err(problem)) if !load.busy.get() => view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any(),
                _ => view! { <Skeletons lines=8/> }.into_any(),
            }}
        </Modal>
    }
    .into_any()
}

/// What is shown apart from the document's own fields.
const APART: [&str; 4] = ["document_id", "document_blobs", "expanded", "vectors"];

/// The document's own fields, in the order sent.
fn own(one: &Record) -> Vec<(String, Record)> {
    let is_own = |name: &str| !name.starts_with('_') && !APART.contains(&name);
    let mut all = one.members();
    all.retain(|(name, _)| is_own(name));
    all
}

fn parts(mut one: Record, annotations: AnyView, place: Place) -> AnyView {
    let id = one.text("document_id");
    let internal = one.record("_internal").record("lineage");
    let relations = around::relations(&one.record("expanded"));
    // Other documents are no part of this one.
    if let Some(members) = one.0.as_object_mut() {
        members.shift_remove("expanded");
        members.shift_remove("_expanded");
    }
    let raw = text::pretty(&one.0);
    let blobs = one.list("document_blobs");
    let vectors = vectors(&one);
    let tools = change::tools(place, &one);
    let similar = around::similar(place, id.clone());
    let fields = own(&one)
        .into_iter()
        .map(|(name, value)| (name, plain(&value.0)))
        .collect::<Vec<_>>();
    view! {
        <div class="stack">
            <div><strong>{name_of(&one)}</strong><div class="uri"><code>{id.clone()}</code><Copy text=Signal::stored(id)/></div></div>
            {tools}
            {(!blobs.is_empty()).then(|| view! { <section class="stack-sm"><h3>"Files"</h3><div class="blobs">{blobs.into_iter().map(blob).collect::<Vec<_>>()}</div></section> })}
            <section class="stack-sm"><h3>"Fields"</h3><dl class="facts">{fields.into_iter().map(|(name, value)| fact(name, value.into_any())).collect::<Vec<_>>()}</dl></section>
            {annotations}
            <section class="stack-sm"><h3>"Vectors"</h3>
                {vectors.is_empty().then(|| view! { <p class="muted">"None."</p> })}
                <dl class="facts">{vectors.into_iter().map(|(name, dims)| view! { <dt class="mono">{name}</dt><dd>{if dims > 0 { format!("{dims} dims") } else { "present".into() }}</dd> }.into_any()).collect::<Vec<_>>()}</dl>
            </section>
            {similar}
            {relations}
            {(!internal.members().is_empty()).then(|| lineage(internal))}
            <details><summary>"All of it as JSON"</summary><pre class="code-block" tabindex="0">{raw}</pre></details>
        </div>
    }
    .into_any()
}

/// Names and lengths: a vector's numbers say nothing to a person.
fn vectors(one: &Record) -> Vec<(String, usize)> {
    let full = one.record("vectors").members();
    if full.is_empty() {
        return one
            .strings("_vectors")
            .into_iter()
            .map(|name| (name, 0))
            .collect();
    }
    full.into_iter()
        .map(|(name, v)| (name, v.0.as_array().map_or(0, Vec::len)))
        .collect()
}

fn blob(one: Record) -> AnyView {
    let image = one.text("type") == "image";
    let label = format!("{} ({})", one.text("field"), one.text("role"));
    let name = one.first(&["filename", "field"]);
    match one.opt("presigned_url") {
        Some(url) if image => { let href = url.clone(); view! { <figure><a href=href target="_blank" rel="noopener"><img src=url alt=name loading="lazy"/></a><figcaption>{label}</figcaption></figure> }.into_any() }
        Some(url) => view! { <figure><figcaption><a href=url target="_blank" rel="noopener">{name}</a>" "{label}</figcaption></figure> }.into_any(),
        None => view! { <figure><figcaption>{label}" "{one.text("unavailable_reason")}</figcaption></figure> }.into_any(),
    }
}

/// Where the document comes from.
fn lineage(value: Record) -> AnyView {
    let origin = value.opt("root_bucket_id").zip(value.opt("root_object_id"));
    let origin = origin.map(|(bucket, object)| {
        let href = format!(
            "/console/ns/{}/buckets/{bucket}/objects/{object}",
            namespace()
        );
        view! { <p><a href=href>"The object that it was made of"</a></p> }
    });
    let lines = value
        .members()
        .into_iter()
        // The documents on the way stand above.
        .filter(|(name, v)| !v.0.is_null() && name != "chain")
        .map(|(n, v)| (text::words(&n), plain(&v.0)))
        .collect::<Vec<_>>();
    view! {
        <section class="stack-sm"><h3>"Lineage"</h3>{origin}
            <dl class="facts">{lines.into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd class="mono">{value}</dd> }.into_any()).collect::<Vec<_>>()}</dl>
        </section>
    }
    .into_any()
}
