//! One document in a side panel.

use leptos::prelude::*;
use loupe_wire::{BlobURLRef, DocumentResponse};
use serde_json::Value;

use super::documents::name_of;
use crate::{
    api::plain,
    load::{Load, Query},
    part::*,
    session::use_session,
    text,
};

/// Opens for the document named in the address.
#[component]
pub fn Document(open: Query, ns: Memo<String>, collection: Memo<String>) -> impl IntoView {
    let session = use_session();
    let shown = RwSignal::new(false);
    Effect::new(move |_| shown.set(!open.value.get().is_empty()));
    Effect::new(move |_| {
        if !shown.get() && !open.value.get_untracked().is_empty() {
            open.set("");
        }
    });
    let load = Load::<DocumentResponse>::new(move || {
        let (api, id) = (session.api_in(ns.get()), open.value.get());
        let path = format!("/v1/collections/{}/documents/{}?return_presigned_urls=true&return_vectors=true&return_vector_names=true",
            text::escape(&collection.get()), text::escape(&id));
        async move {
            if id.is_empty() {
                return std::future::pending().await;
            }
            api.get(&path).await
        }
    });
    view! {
        <Modal open=shown title="Document" class="side">
            {move || match load.value.get() {
                Some(Ok(one)) if one.document_id == open.value.get() => parts(one).into_any(),
                Some(Err(problem)) if !load.busy.get() => view! { <Explain problem retry=Callback::new(move |()| load.reload())/> }.into_any(),
                _ => view! { <Skeletons lines=8/> }.into_any(),
            }}
        </Modal>
    }
}

fn parts(one: DocumentResponse) -> impl IntoView {
    let id = one.document_id.clone();
    let internal = one.internal.as_ref().and_then(|i| i.lineage.as_ref()).map(|l| serde_json::to_value(l).unwrap_or_default());
    let raw = text::pretty(&one);
    let vectors: Vec<(String, usize)> = one.extra.get("_vectors").or(one.extra.get("vectors")).and_then(Value::as_object)
        .map(|all| all.iter().map(|(name, v)| (name.clone(), v.as_array().map_or(0, Vec::len))).collect())
        .unwrap_or_else(|| one.vector_names.iter().map(|name| (name.clone(), 0)).collect());
    let fields = one.extra.iter().filter(|(name, _)| !matches!(name.as_str(), "vectors" | "_vectors")).map(|(n, v)| (n.clone(), plain(v))).collect::<Vec<_>>();
    view! {
        <div class="stack">
            <div><strong>{name_of(&one.extra)}</strong><div class="uri"><code>{id.clone()}</code><Copy text=Signal::stored(id)/></div></div>
            {(!one.document_blobs.is_empty()).then(|| view! { <section class="stack-sm"><h3>"Files"</h3><div class="blobs">{one.document_blobs.into_iter().map(blob).collect_view()}</div></section> })}
            <section class="stack-sm"><h3>"Fields"</h3><dl class="facts">{fields.into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()}</dl></section>
            <section class="stack-sm"><h3>"Vectors"</h3>
                {vectors.is_empty().then(|| view! { <p class="muted">"None."</p> })}
                <dl class="facts">{vectors.into_iter().map(|(name, dims)| view! { <dt class="mono">{name}</dt><dd>{if dims > 0 { format!("{dims} dimensions") } else { "present".into() }}</dd> }).collect_view()}</dl>
            </section>
            {internal.map(lineage)}
            <details><summary>"All of it as JSON"</summary><pre class="code-block" tabindex="0">{raw}</pre></details>
        </div>
    }
}

fn blob(one: BlobURLRef) -> impl IntoView {
    let image = text::wire_name(&one.r#type) == "image";
    let label = format!("{} ({})", one.field, text::wire_name(&one.role));
    let name = one.filename.clone().unwrap_or_else(|| one.field.clone());
    match one.presigned_url {
        Some(url) if image => { let href = url.clone(); view! { <figure><a href=href target="_blank" rel="noopener"><img src=url alt=name loading="lazy"/></a><figcaption>{label}</figcaption></figure> }.into_any() }
        Some(url) => view! { <figure><figcaption><a href=url target="_blank" rel="noopener">{name}</a>" "{label}</figcaption></figure> }.into_any(),
        None => view! { <figure><figcaption>{label}" "{one.unavailable_reason}</figcaption></figure> }.into_any(),
    }
}

/// Where the document comes from.
fn lineage(value: Value) -> impl IntoView {
    let lines = value.as_object().map(|all| all.iter().filter(|(_, v)| !v.is_null()).map(|(n, v)| (text::words(n), plain(v))).collect::<Vec<_>>()).unwrap_or_default();
    view! {
        <section class="stack-sm"><h3>"Lineage"</h3>
            <dl class="facts">{lines.into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd class="mono">{value}</dd> }).collect_view()}</dl>
        </section>
    }
}
