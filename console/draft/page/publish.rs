//! A retriever as a page for everyone.

use leptos::prelude::*;
use loupe_wire::{PublicNameAvailabilityResponse, PublishRetrieverResponse, PublishedRetrieverResponse, RetrieverModelOutput};
use serde_json::{Value, json};

use crate::{
    load::{Change, Load},
    part::*,
    session::use_session,
    text,
};

/// `My films` as `my-films`.
fn slug(name: &str) -> String {
    let mapped: String = name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    mapped.split('-').filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("-").chars().take(50).collect()
}

#[component]
pub fn Publish(open: RwSignal<bool>, ns: Memo<String>, retriever: RetrieverModelOutput, done: Callback<()>) -> impl IntoView {
    let session = use_session();
    let retriever = StoredValue::new(retriever);
    let path = StoredValue::new(retriever.with_value(|r| format!("/v1/retrievers/{}/publish", text::escape(r.retriever_id.as_deref().unwrap_or(&r.retriever_name)))));
    let now = Load::<Option<PublishedRetrieverResponse>>::new(move || {
        let (api, wanted) = (session.api_in(ns.get()), open.get());
        async move {
            if !wanted {
                return std::future::pending().await;
            }
            match api.get(&path.get_value()).await {
                Err(problem) if problem.status == 404 => Ok(None),
                other => other,
            }
        }
    });
    let change = Change::new();
    let end = move |_| {
        let api = session.api_in(ns.get_untracked());
        change.run(async move { api.delete(&path.get_value()).await }, move |()| { now.reload(); done.run(()); });
    };
    view! {
        <Modal open title="Publish as a page">
            {move || change.problem.get().map(|problem| view! { <Explain problem/> })}
            {move || match now.value.get() {
                None => view! { <Skeletons lines=4/> }.into_any(),
                Some(Err(problem)) => view! { <Explain problem retry=Callback::new(move |()| now.reload())/> }.into_any(),
                Some(Ok(Some(page))) => view! {
                    <p>"Everyone who has the address can search this retriever."</p>
                    <Address name=page.public_name/>
                    <footer>
                        <button type="button" class="btn danger" on:click=end aria-busy=move || change.busy.get().to_string()>"Take it down"</button>
                        <button type="button" class="btn primary" on:click=move |_| open.set(false)>"Done"</button>
                    </footer>
                }.into_any(),
                Some(Ok(None)) => view! { <Form open ns path retriever done=Callback::new(move |()| { now.reload(); done.run(()); })/> }.into_any(),
            }}
        </Modal>
    }
}

/// The page's address: to open, to copy.
#[component]
pub fn Address(name: String) -> impl IntoView {
    let href = format!("/r/{name}");
    let full = format!("{}{href}", window().location().origin().unwrap_or_default());
    view! { <div class="uri"><a href=href target="_blank" rel="noopener">{full.clone()}</a><Copy text=Signal::stored(full)/></div> }
}

#[component]
fn Form(open: RwSignal<bool>, ns: Memo<String>, path: StoredValue<String>, retriever: StoredValue<RetrieverModelOutput>, done: Callback<()>) -> impl IntoView {
    let session = use_session();
    let label = retriever.with_value(|r| r.retriever_name.clone());
    let (name, title) = (RwSignal::new(slug(&label)), RwSignal::new(label));
    let description = RwSignal::new(retriever.with_value(|r| r.description.clone().unwrap_or_default()));
    let (fields, chosen) = (RwSignal::new(Vec::<String>::new()), RwSignal::new(Vec::<String>::new()));
    let known = Load::<Value>::new(move || {
        let api = session.api_in(ns.get());
        let first = retriever.with_value(|r| r.collection_ids.first().cloned());
        async move {
            let Some(first) = first else { return Ok(json!({})) };
            api.post(&format!("/v1/collections/{}/documents/list?limit=5", text::escape(&first)), &json!({})).await
        }
    });
    // The fields that real documents have, so that nothing is exposed by guessing.
    Effect::new(move |_| {
        let Some(found) = known.good() else { return };
        let rows = found.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut names: Vec<String> = rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys().cloned()).collect();
        names.retain(|n| !n.starts_with('_') && !matches!(n.as_str(), "document_id" | "collection_id" | "document_blobs" | "expanded" | "vector_names"));
        names.sort();
        names.dedup();
        chosen.set(names.iter().filter(|n| !n.ends_with("_id") && !n.ends_with("hash") && !n.ends_with("_ms")).cloned().collect());
        fields.set(names);
    });
    let free = Load::<Option<PublicNameAvailabilityResponse>>::new(move || {
        let (api, name) = (session.api_in(ns.get()), name.get());
        let path = format!("{}/availability?name={}", path.get_value(), text::escape(&name));
        async move {
            // Typing is not finished with the first letter.
            gloo_timers::future::TimeoutFuture::new(300).await;
            if name.len() < 3 { Ok(None) } else { api.get(&path).await.map(Some) }
        }
    });
    let change = Change::new();
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let mut display = json!({"title": title.get_untracked(), "exposed_fields": chosen.get_untracked()});
        let mut body = json!({"public_name": name.get_untracked(), "display_name": title.get_untracked()});
        let text = description.get_untracked();
        if !text.is_empty() {
            display["description"] = text.clone().into();
            body["description"] = text.into();
        }
        body["display_config"] = display;
        let api = session.api_in(ns.get_untracked());
        change.run(async move { api.post::<PublishRetrieverResponse>(&path.get_value(), &body).await }, move |_| done.run(()));
    };
    view! {
        <form class="form" on:submit=submit>
            <Field id="page-name" label="Name in the address" value=name required=true hint="3 to 50 small letters, digits and dashes."/>
            <p role="status" class="muted">{move || match free.value.get() {
                Some(Ok(Some(answer))) if answer.available => format!("/r/{} is free.", answer.name),
                Some(Ok(Some(answer))) => format!("/r/{} is taken.", answer.name),
                Some(Err(problem)) => problem.fields.first().map_or(problem.message, |(_, what)| what.clone()),
                _ => "Checking the name.".into(),
            }}</p>
            <Field id="page-title" label="Title" value=title required=true/>
            <Field id="page-text" label="Description" value=description/>
            <fieldset class="stack-sm"><legend><strong>"Fields that visitors see"</strong></legend>
                {move || fields.get().into_iter().map(|field| {
                    let (one, same) = (field.clone(), field.clone());
                    view! { <Check label=field checked=Signal::derive(move || chosen.with(|all| all.contains(&same)))
                        set=move |on| chosen.update(|all| { all.retain(|f| *f != one); if on { all.push(one.clone()); } })/> }
                }).collect_view()}
            </fieldset>
            <Submit change open label="Publish"/>
        </form>
    }
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn names_become_addresses() {
        assert_eq!(slug("My  Films!"), "my-films");
    }
}
