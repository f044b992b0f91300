//! A retriever as a page for everyone: written here, looked at while it is written, published.

mod access;
mod cards;
mod draft;
mod form;
mod frames;
mod icon;
mod own;
mod parts;
mod rename;
mod robots;
mod shown;
mod theme;

use leptos::prelude::*;
use serde_json::json;

use self::{
    draft::Draft,
    shown::{Look, preview, snippets},
};
use crate::{
    api::{Api, Problem},
    leave,
    load::{Change, Load},
    page::results,
    part::*,
    record::Record,
    route::param,
    session::use_session,
    text,
};

pub use shown::Address;

/// The first field with something wrong in it.
const WRONG: &str = ".page-editor [aria-invalid=\"true\"]";

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct Place {
    api: Signal<Api>,
    /// Of the publication.
    path: Signal<String>,
    load: Load,
    /// The answer to the last change: it says what the page passes over.
    answer: RwSignal<Option<Record>>,
}

pub fn publish() -> AnyView {
    let session = use_session();
    let (ns, id) = (param("ns"), param("retriever"));
    let api = Signal::derive(move || session.api_in(ns.get()));
    let of = Signal::derive(move || format!("/v1/retrievers/{}", text::escape(&id.get())));
    let load = Load::new(move || found(api.get(), of.get()));
    let path = Signal::derive(move || format!("{}/publish", of.get()));
    let answer = RwSignal::new(None);
    let place = Place {
        api,
        path,
        load,
        answer,
    };
    let back = move || format!("/console/ns/{}/retrievers/{}", ns.get(), id.get());
    view! {
        <Head title="Public page".to_owned() text="What visitors see and how it looks. Nothing is public before it is published.">
            <a class="btn" href=back>"Back to the retriever"</a>
        </Head>
        {loaded(load, waiting(8), move |all| view! { <Editor place all/> }.into_any())}
    }
    .into_any()
}

/// The retriever, what is published of it, and the fields that its documents have: nothing is exposed by guessing.
async fn found(api: Api, path: String) -> Result<Record, Problem> {
    const OWN: [&str; 5] = [
        "document_id",
        "collection_id",
        "document_blobs",
        "expanded",
        "vector_names",
    ];
    let retriever = api.get(&path).await?;
    let page = api.get(&format!("{path}/publish")).await?;
    let mut names: Vec<String> = Vec::new();
    if let Some(first) = retriever.strings("collection_ids").first() {
        let path = format!(
            "/v1/collections/{}/documents/list?limit=5",
            text::escape(first)
        );
        let documents = api.post(&path, &json!({})).await?.list("results");
        names = documents
            .iter()
            .flat_map(Record::members)
            .map(|(name, _)| name)
            .collect();
        names.retain(|name| !name.starts_with('_') && !OWN.contains(&name.as_str()));
    }
    names.extend(page.record("display_config").strings("exposed_fields"));
    names.sort();
    names.dedup();
    Ok(Record(
        json!({"retriever": retriever.0, "page": page.0, "fields": names}),
    ))
}

/// Fields that visitors read, of all that there are.
fn readable(fields: &[String]) -> Vec<String> {
    let inner =
        |name: &String| name.ends_with("_id") || name.ends_with("hash") || name.ends_with("_ms");
    fields.iter().filter(|name| !inner(name)).cloned().collect()
}

#[component]
fn Editor(place: Place, all: Record) -> AnyView {
    let (retriever, page) = (all.record("retriever"), all.record("page"));
    let fields = all.strings("fields");
    let draft = Draft::new(&retriever, &page, readable(&fields));
    let change = Change::new();
    let is_new = page.value("public_name").is_none();
    let said = expect_context::<Toasts>();
    let faults = Faults::new();
    provide_context(faults);
    parts::follow(draft.parts, draft.exposed);
    let look = Look::new(place, draft, faults);
    let written = move || {
        let mut body = draft.change();
        draft.access.add_to(&mut body);
        // That of a published page changes beside the form.
        json!([is_new.then(|| draft.name.get()), body])
    };
    let unsaved = leave::watch(written);
    Effect::new(move |_| {
        if let Some(problem) = change.problem.get() {
            refused(draft, faults, problem.notes);
            schema::lead(WRONG.to_owned());
        }
    });
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if draft.parts.is_wrong() {
            refused(draft, faults, Vec::new());
            schema::lead(WRONG.to_owned());
            return;
        }
        let (api, path) = (place.api.get_untracked(), place.path.get_untracked());
        let mut body = untrack(|| match is_new {
            true => draft.body(),
            false => draft.change(),
        });
        untrack(|| draft.access.add_to(&mut body));
        let call = match is_new {
            true => {
                body["public_name"] = draft.name.get_untracked().into();
                api.post(&path, &body)
            }
            false => api.patch(&path, &body),
        };
        change.run(call, move |answer| {
            unsaved.saved();
            said.say(if is_new {
                "Published."
            } else {
                "The page is changed."
            });
            place.answer.set(Some(answer));
            place.load.reload();
        });
    };
    view! {
        <div class="page-editor">
            <div class="stack">
                {(!is_new).then(|| view! { <Published place name=draft.name active=RwSignal::new(page.flag("is_active"))/> })}
                <form class="stack" id="page-form" on:submit=submit aria-label="The page">
                    {form::form(place, draft, fields, &page, look)}
                </form>
            </div>
            // Beside the form, where it is in sight however long that is.
            <div class="stack beside">
                {refusal(change)}
                {move || place.answer.get().map(|answer| results::warnings(&answer))}
                <div class="row"><button class="btn primary" form="page-form" aria-busy=move || change.busy.get().to_string() disabled=move || change.busy.get()>
                    {if is_new { "Publish" } else { "Publish the changes" }}
                </button></div>
                {preview(look)}
            </div>
        </div>
    }
    .into_any()
}

/// Shows what was refused beside its field.
fn refused(draft: Draft, faults: Faults, notes: Vec<(String, String)>) {
    draft.parts.refused(&notes);
    faults.0.set(notes);
}

/// What is public already: where it is, how it gets into other sites, and how it is taken down. It changes by itself: what
/// is written in the form meanwhile stays.
#[component]
fn Published(place: Place, name: RwSignal<String>, active: RwSignal<bool>) -> AnyView {
    let change = Change::new();
    let call = move |ends: bool| {
        let (api, path) = (place.api.get_untracked(), place.path.get_untracked());
        let on = !active.get_untracked();
        let call = match ends {
            true => api.delete(&path),
            false => api.patch(&path, &json!({ "is_active": on })),
        };
        change.run(call, move |_| {
            if ends {
                place.load.reload();
            } else {
                // The page may be gone by now.
                let _ = active.try_set(on);
            }
        });
    };
    let label = move || if active.get() { "Pause" } else { "Open again" };
    let state = move || match active.get() {
        true => "Everyone who has the address can search it.",
        false => "It is paused: visitors find nothing at its address.",
    };
    let addresses = move || {
        let name = name.get();
        let address = view! { <Address name=name.clone()/> };
        vec![address.into_any(), snippets(&name)]
    };
    let (ns, id) = (param("ns"), param("retriever"));
    let figures = move || {
        let at = format!("/console/ns/{}/retrievers/{}", ns.get(), id.get());
        format!("{at}?tab=searches&source=page")
    };
    let (asked, renamed) = (RwSignal::new(false), RwSignal::new(false));
    // The form begins anew without the page: what is lost is told as the dialog opens.
    let unsaved: leave::Unsaved = expect_context();
    let ends = move || match unsaved.any() {
        true => {
            "Links to it and frames of it end in nothing, and its name is free for others. The retriever stays. What you wrote in the form and did not publish is lost with it."
        }
        false => {
            "Links to it and frames of it end in nothing, and its name is free for others. The retriever stays."
        }
    };
    let submit = Callback::new(move |()| call(true));
    view! {
        <section class="card stack" aria-labelledby="at">
            <h2 id="at">"Published"</h2>
            <p class="muted">{state}</p>
            {addresses}
            {refusal(change)}
            <div class="row">
                <a class="btn" href=figures>"What visitors search for"</a>
                <button type="button" class="btn" on:click=move |_| call(false)>{label}</button>
                <button type="button" class="btn" on:click=move |_| renamed.set(true)>"Rename"</button>
                <button type="button" class="btn danger" on:click=move |_| asked.set(true)>"Take it down"</button>
            </div>
            <Ask open=asked title="Take the page down?".to_owned() label="Take it down" change submit danger=true>
                <p>{ends()}</p>
            </Ask>
            {rename::dialog(place, name, renamed)}
        </section>
    }
    .into_any()
}
