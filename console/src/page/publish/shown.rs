//! How a page will be seen: itself in a frame, in a list of a search engine, in a message, in other sites.

use leptos::prelude::*;

use super::{Place, draft::Draft, parts, refused};
use crate::{load::Load, part::*};

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

/// The page as it would be published, asked for anew as it is changed.
#[derive(Clone, Copy)]
pub struct Look {
    load: Load,
    /// Where it is; the last one stays while something is refused.
    address: Memo<Option<String>>,
}

impl Look {
    pub fn new(place: Place, draft: Draft, faults: Faults) -> Self {
        let is_whole = StoredValue::new(true);
        let load = Load::settled(REST, move || {
            let path = format!("{}/preview", place.path.get());
            let mut body = draft.body();
            is_whole.set_value(parts::finished(&mut body["display_config"]));
            Some(place.api.get_untracked().post(&path, &body))
        });
        Effect::new(move |_| match load.value.get() {
            // Where something was left out, what comes after it is counted otherwise.
            Some(Err(problem)) if is_whole.get_value() => refused(draft, faults, problem.notes),
            Some(Ok(_)) => refused(draft, faults, Vec::new()),
            _ => {}
        });
        // Of the same server, whatever it is called from outside.
        let address = Memo::new(move |last: Option<&Option<String>>| {
            let Some(answer) = load.good() else {
                return last.cloned().flatten();
            };
            let url = answer.text("preview_url");
            url.find("/r/").map(|at| url[at..].to_owned())
        });
        Self { load, address }
    }
}

/// The page as its visitors would see it: no script of it runs here.
pub fn preview(look: Look) -> AnyView {
    let Look { load, address } = look;
    let narrow = RwSignal::new(false);
    let size = |label: &'static str, is: bool| {
        view! { <button type="button" class="btn small" aria-pressed=move || (narrow.get() == is).to_string() on:click=move |_| narrow.set(is)>{label}</button> }
    };
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

/// The picture that links to a page are shown with: its own, else the one that is drawn of it. One of another server is not shown
/// here, for the console loads nothing from elsewhere.
fn picture_of(own: &str, origin: &str, drawn: Option<String>) -> Option<String> {
    if own.is_empty() {
        return drawn.map(|address| format!("{address}/preview.png"));
    }
    let path = own.strip_prefix(origin).unwrap_or(own);
    let is_here = path.starts_with('/') && !path.starts_with("//");
    is_here.then(|| path.to_owned())
}

/// The picture of a link. The room is the same whatever is in it, and before a picture is there.
fn pictured(draft: Draft, look: Look, words: Memo<(String, String)>) -> impl Fn() -> AnyView {
    let source = Memo::new(move |_| {
        let picture = picture_of(&draft.image.get(), &origin(), look.address.get());
        picture.filter(|_| !draft.access.is_locked())
    });
    let is_shown = Memo::new(move |_| source.with(Option::is_some));
    move || {
        if is_shown.get() {
            // The same element takes the next picture: the last one is there until then.
            return view! {
                <div class="picture" style:display="block" style:padding="0" style:overflow="hidden" style:aspect-ratio=SHAPE>
                    <img src=move || source.get() alt="The picture that links to the page are shown with" width="1200" height="630" loading="lazy"
                        style:width="100%" style:height="auto" style:aspect-ratio=SHAPE style:object-fit="cover"/>
                </div>
            }
            .into_any();
        }
        let own = draft.image.get();
        let inside = if draft.access.is_locked() {
            view! { <span class="muted">"A page with a password is shown without a picture."</span> }
                .into_any()
        } else if own.starts_with("https://") {
            let address = own.clone();
            view! { <a href=address target="_blank" rel="noopener noreferrer">{own}</a> }.into_any()
        } else {
            view! { <strong>{move || words.get().0}</strong> }.into_any()
        };
        view! { <div class="picture" style:aspect-ratio=SHAPE>{inside}</div> }.into_any()
    }
}

/// The page in a list of results, and as a card in a message.
pub fn told(draft: Draft, look: Look) -> AnyView {
    let host = origin();
    let host = host
        .split_once("://")
        .map_or(host.clone(), |(_, host)| host.to_owned());
    let at = {
        let host = host.clone();
        move || format!("{host} › r › {}", draft.name.get())
    };
    let words = Memo::new(move |_| draft.told());
    let picture = pictured(draft, look, words);
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
    use super::*;

    #[test]
    fn a_link_has_the_picture_of_the_draft_or_the_own_one() {
        let of = |own: &str| {
            let drawn = Some("/r/preview_1".to_owned());
            picture_of(own, "https://search.example.com", drawn)
        };
        assert_eq!(of("").as_deref(), Some("/r/preview_1/preview.png"));
        let here = "https://search.example.com/v1/files/1";
        assert_eq!(of(here).as_deref(), Some("/v1/files/1"));
        assert_eq!(of("/v1/files/1").as_deref(), Some("/v1/files/1"));
        for elsewhere in [
            "https://pictures.example.com/frog.png",
            "https://search.example.com.evil.example/frog.png",
            "//pictures.example.com/frog.png",
            "frog.png",
        ] {
            assert_eq!(of(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(picture_of("", "https://search.example.com", None), None);
    }
}
