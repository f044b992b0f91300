//! How a page will be seen: itself in a frame, in a list of a search engine, in a message, in other sites.

use leptos::prelude::*;

use super::{Place, draft::Draft, parts, refused};
use crate::{
    load::Load, part::*, record::Record, route::param, session::use_session, text::escape,
};

/// Time without a change after which the page is shown anew.
const REST: u32 = 600;

/// Of the picture that links are shown with.
const SHAPE: &str = "1200 / 630";

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
    let is_whole = StoredValue::new(true);
    let load = Load::settled(REST, move || {
        let path = format!("{}/preview", place.path.get());
        let mut body = draft.body();
        is_whole.set_value(parts::finished(&mut body["display_config"]));
        Some(place.api.get_untracked().post(&path, &body))
    });
    let faults: Faults = expect_context();
    Effect::new(move |_| match load.value.get() {
        // Where something was left out, what comes after it is counted otherwise.
        Some(Err(problem)) if is_whole.get_value() => refused(draft, faults, problem.notes),
        Some(Ok(_)) => refused(draft, faults, Vec::new()),
        _ => {}
    });
    let narrow = RwSignal::new(false);
    let size = |label: &'static str, is: bool| {
        view! { <button type="button" class="btn small" aria-pressed=move || (narrow.get() == is).to_string() on:click=move |_| narrow.set(is)>{label}</button> }
    };
    // Of the same server, whatever it is called from outside; the last one stays while something is refused.
    let address = Memo::new(move |last: Option<&Option<String>>| {
        let Some(answer) = load.good() else {
            return last.cloned().flatten();
        };
        let url = answer.text("preview_url");
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

/// The address of the picture that is drawn of the page, where it is published.
fn drawn() -> Memo<Option<String>> {
    let session = use_session();
    let (ns, id) = (param("ns"), param("retriever"));
    let path = move || format!("/v1/retrievers/{}/publish", escape(&id.get()));
    let load = Load::of(move || session.api_in(ns.get()), path);
    Memo::new(move |_| load.good().and_then(|page| picture_of(&page)))
}

/// The same of a publication. Nobody is shown one of a page that is paused or has a password.
fn picture_of(page: &Record) -> Option<String> {
    let is_open = page.flag("is_active") && !page.flag("password_protected");
    let name = page.opt("public_name").filter(|_| is_open)?;
    // Browsers keep a picture for a while: that of a page that changed is another.
    let changed = escape(&page.text("updated_at"));
    Some(format!("/r/{name}/preview.png?v={changed}"))
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
    let drawn = drawn();
    // The room is the same whatever is in it, and before a picture is there.
    let picture = move || {
        let own = draft.image.get();
        let inside = match drawn.get() {
            Some(address) if own.is_empty() => {
                return view! {
                    <div class="picture" style:display="block" style:padding="0" style:overflow="hidden" style:aspect-ratio=SHAPE>
                        <img src=address alt="The picture of the page as it is published" width="1200" height="630" loading="lazy"
                            style:width="100%" style:height="auto"/>
                    </div>
                }
                .into_any();
            }
            _ if own.starts_with("https://") => {
                view! { <span class="muted">{own}</span> }.into_any()
            }
            _ => view! { <strong>{move || words.get().0}</strong> }.into_any(),
        };
        view! { <div class="picture" style:aspect-ratio=SHAPE>{inside}</div> }.into_any()
    };
    view! {
        <div class="halves">
            <figure class="told"><figcaption class="muted">"In a list of results"</figcaption>
                <div class="found"><span class="muted">{at}</span><strong>{move || words.get().0}</strong><span>{move || words.get().1}</span></div>
            </figure>
            <figure class="told"><figcaption class="muted">"As a link in a message"</figcaption>
                <div class="link-card">{picture}<span class="muted">{host}</span><strong>{move || words.get().0}</strong><span>{move || words.get().1}</span></div>
            </figure>
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_open_page_has_a_picture_for_everyone() {
        let of = |active: bool, locked: bool| {
            let page = json!({"public_name": "films", "is_active": active, "password_protected": locked,
                "updated_at": "2026-11-24T17:00:00Z"});
            picture_of(&Record(page))
        };
        let drawn = "/r/films/preview.png?v=2026-11-24T17%3A00%3A00Z";
        assert_eq!(of(true, false).as_deref(), Some(drawn));
        assert_eq!(of(false, false), None);
        assert_eq!(of(true, true), None);
        assert_eq!(picture_of(&Record::default()), None);
    }
}
