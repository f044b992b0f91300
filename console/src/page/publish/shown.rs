//! How a page will be seen: itself in a frame, in a list of a search engine, in a message, in other sites.

use leptos::prelude::*;

use super::{Place, draft::Draft};
use crate::{load::Load, part::*};

/// Time without a change after which the page is shown anew.
const REST: u32 = 600;

/// The page's address: to open, to copy.
#[component]
pub fn Address(name: String) -> AnyView {
    let href = format!("/r/{name}");
    let full = format!("{}{href}", origin());
    view! { <div class="uri"><a href=href target="_blank" rel="noopener">{full.clone()}</a><Copy text=Signal::stored(full)/></div> }.into_any()
}

fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

/// What another site takes to show the page.
pub fn snippets(name: &str) -> AnyView {
    let origin = origin();
    let all = [
        (
            "An element that grows with its results",
            format!(
                "<script src=\"{origin}/embed.js\"></script>\n<loupe-search page=\"{name}\"></loupe-search>"
            ),
        ),
        (
            "A frame, without a script",
            format!(
                "<iframe src=\"{origin}/r/{name}/embed\" title=\"Search\" loading=\"lazy\" style=\"width:100%;height:40rem;border:0\"></iframe>"
            ),
        ),
    ];
    let one = |(label, code): (&'static str, String)| {
        view! {
            <div class="stack-sm"><div class="row between"><strong class="label">{label}</strong><Copy text=Signal::stored(code.clone()) label="Copy"/></div>
            <pre class="code-block" tabindex="0" aria-label=label>{code}</pre></div>
        }
    };
    let all: Vec<_> = all.into_iter().map(one).collect();
    view! { <details class="more"><summary>"In another site"</summary><div class="stack">{all}</div></details> }.into_any()
}

/// The page as it would be published, as its visitors would see it: no script of it runs here.
pub fn preview(place: Place, draft: Draft) -> AnyView {
    let load = Load::settled(REST, move || {
        let path = format!("{}/preview", place.path.get());
        let body = draft.body();
        Some(place.api.get_untracked().post(&path, &body))
    });
    let narrow = RwSignal::new(false);
    let size = |label: &'static str, is: bool| {
        view! { <button type="button" class="btn small" aria-pressed=move || (narrow.get() == is).to_string() on:click=move |_| narrow.set(is)>{label}</button> }
    };
    // Of the same server, whatever it is called from outside.
    let address = Memo::new(move |_| {
        let url = load.good().map(|answer| answer.text("preview_url"));
        let url = url.unwrap_or_default();
        url.find("/r/").map(|at| url[at..].to_owned())
    });
    let frame = move || {
        match address.get() {
        Some(address) => view! {
            <iframe title="Preview of the page" src=address sandbox="allow-forms allow-same-origin" class:narrow=move || narrow.get()></iframe>
        }
        .into_any(),
        None => view! { <Skeletons lines=8/> }.into_any(),
    }
    };
    let problem = move || match load.value.get() {
        Some(Err(problem)) => Some(view! { <Explain problem/> }),
        _ => None,
    };
    view! {
        <section class="card stack preview" aria-labelledby="preview">
            <div class="row between">
                <h2 id="preview">"Preview"</h2>
                <div class="row">{size("Wide", false)}{size("Phone", true)}
                    {move || address.get().map(|address| view! { <a class="btn small" href=address target="_blank" rel="noopener">"Open"</a> })}
                </div>
            </div>
            <p class="muted">"As visitors will see it, with the real search behind it. It follows what you change; nothing of it is public."</p>
            {problem}
            <div class="stage-room" aria-busy=move || load.busy.get().to_string()>{frame}</div>
        </section>
    }
    .into_any()
}

/// The page in a list of results, and as a card in a message.
pub fn told(draft: Draft) -> AnyView {
    let host = origin();
    let host = host
        .split_once("://")
        .map_or(host.clone(), |(_, host)| host.to_owned());
    let at = {
        let host = host.clone();
        move || format!("{host} › r › {}", draft.name.get())
    };
    let words = Memo::new(move |_| draft.told());
    let picture = move || match draft.image.get() {
        address if address.starts_with("https://") => {
            view! { <span class="muted">{address}</span> }.into_any()
        }
        _ => view! { <strong>{move || words.get().0}</strong> }.into_any(),
    };
    view! {
        <div class="halves">
            <figure class="told"><figcaption class="muted">"In a list of results"</figcaption>
                <div class="found"><span class="muted">{at}</span><strong>{move || words.get().0}</strong><span>{move || words.get().1}</span></div>
            </figure>
            <figure class="told"><figcaption class="muted">"As a link in a message"</figcaption>
                <div class="link-card"><div class="picture">{picture}</div><span class="muted">{host}</span><strong>{move || words.get().0}</strong><span>{move || words.get().1}</span></div>
            </figure>
        </div>
    }
    .into_any()
}
