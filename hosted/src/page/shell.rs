//! The document around every view.

use leptos::prelude::*;
use loupe_wire::Value;

use super::head::{Assets, Head};
use super::look::{CardStyle, Hover, Look, Mode, Template};
use super::text::{markdown, safe_link, safe_url, titled};
use super::theme::{Scheme, Theme};
use crate::{Host, Page};

/// A rendered document and the nonce its elements carry.
pub struct Document {
    pub html: String,
    pub nonce: String,
    /// Another text that is new with every rendering; empty without one.
    pub passing: String,
    /// Sites that may show it in a frame, as a policy names them; absent = its own alone.
    pub ancestors: Option<String>,
}

impl Document {
    /// What is the same while the page is the same.
    pub fn lasting(&self) -> String {
        let lasting = self.html.replace(&self.nonce, "");
        if self.passing.is_empty() {
            lasting
        } else {
            lasting.replace(&self.passing, "")
        }
    }
}

/// Renders a whole document.
pub fn document(
    host: &dyn Host,
    head: Head,
    theme: &Theme,
    class: String,
    body: impl FnOnce() -> AnyView,
) -> Document {
    let nonce = hex::encode(rand::random::<[u8; 16]>());
    let assets = Assets {
        style: host.asset("public.css"),
        script: host.asset("search.js"),
        icon: host.asset("favicon.svg"),
    };
    let html = Owner::new().with(|| {
        let language = head.language();
        let head = head.view(theme, &nonce, assets);
        let scheme = theme.scheme.attribute();
        view! {
            <html lang=language data-theme=scheme>
                <head>{head}</head>
                <body class=class>{body()}</body>
            </html>
        }
        .to_html()
    });
    // Marks between nodes serve hydration only, which these pages do without. Text cannot hold one: it is escaped.
    let html = format!("<!doctype html>{}", html.replace("<!>", ""));
    Document {
        html,
        nonce,
        passing: String::new(),
        ancestors: None,
    }
}

/// Class names of the body, all from fixed words.
pub fn body_class(look: &Look, asked: bool) -> String {
    let template = match look.template {
        Template::PortraitGallery => "t-portrait",
        Template::MediaSearch => "t-media",
        Template::DocumentSearch => "t-document",
        Template::Custom => "t-custom",
    };
    let mode = match look.mode {
        Mode::Grid => "m-grid",
        Mode::List => "m-list",
        Mode::Masonry => "m-masonry",
    };
    let card = match look.card {
        CardStyle::Bordered => "c-bordered",
        CardStyle::Elevated => "c-elevated",
        CardStyle::Flat => "c-flat",
        CardStyle::Glass => "c-glass",
    };
    let hover = match look.hover {
        Hover::Lift => "h-lift",
        Hover::Glow => "h-glow",
        Hover::Scale => "h-scale",
        Hover::Still => "h-still",
    };
    let wide = if look.full_width { " wide" } else { "" };
    let own = if look.is_own { " t-own" } else { "" };
    let state = if asked { "asked" } else { "landing" };
    format!("public {template} {mode} {card} {hover} {state}{wide}{own}")
}

/// Bar at the top: the way home, the owner's links and button.
pub fn top(page: &Page, path: &str) -> AnyView {
    let display = &page.display_config;
    let logo = display.logo_url.as_deref().and_then(safe_url);
    let icon = display
        .icon_base64
        .as_deref()
        .and_then(super::icon::decode)
        .map(|_| format!("{path}/icon"));
    let picture = logo
        .map(|url| view! { <img class="logo" src=url alt="" height="28" width="28"/> }.into_any())
        .or_else(|| {
            icon.map(|url| {
                view! { <img class="logo" src=url alt="" height="28" width="28"/> }.into_any()
            })
        });
    let links = display
        .external_links
        .iter()
        .filter_map(|link| Some((safe_link(&link.url)?, link.name.clone())))
        .map(|(url, name)| view! { <a href=url rel="noopener noreferrer nofollow">{name}</a> })
        .collect_view();
    let (button, sheet) = display
        .custom_cta
        .as_ref()
        .map(|cta| text_sheet("cta".to_owned(), &cta.label, &cta.markdown_content))
        .unzip();
    view! {
        <a class="skip" href="#content">"Skip to the results"</a>
        <header class="top">
            <a class="brand" href=path.to_owned() aria-label=display.title.clone()>{picture}<span>{display.title.clone()}</span></a>
            <nav class="links" aria-label="Links">{links}{button}</nav>
        </header>
        {sheet}
    }
    .into_any()
}

/// A button and the sheet that it opens.
fn sheet(id: String, label: &str, content: AnyView) -> (AnyView, AnyView) {
    let heading = view! { <h2>{label.to_owned()}</h2> };
    headed_sheet(id, label, heading.into_any(), content)
}

/// The same with a text of the owner's, whose own heading stands in the place of the button's words.
fn text_sheet(id: String, label: &str, text: &str) -> (AnyView, AnyView) {
    let text = titled(text);
    let content = view! { <div inner_html=text.rest></div> }.into_any();
    match text.heading {
        Some(own) => {
            let heading = view! { <h2 inner_html=own.html></h2> };
            headed_sheet(id, label, heading.into_any(), content)
        }
        None => sheet(id, label, content),
    }
}

fn headed_sheet(id: String, label: &str, heading: AnyView, content: AnyView) -> (AnyView, AnyView) {
    let button = view! { <button class="button" type="button" popovertarget=id.clone()>{label.to_owned()}</button> };
    let own = id.clone();
    let sheet = view! {
        <div id=own class="sheet prose" popover="auto" role="dialog" aria-label=label.to_owned()>
            <button class="close" type="button" popovertarget=id popovertargetaction="hide" aria-label="Close">"×"</button>
            {heading}
            {content}
        </div>
    };
    (button.into_any(), sheet.into_any())
}

/// A text beneath its title, which it does not say again.
fn beneath(title: &str, text: &str) -> String {
    let parts = titled(text);
    match parts.heading {
        Some(own) if own.words == title.trim() => parts.rest,
        _ => markdown(text),
    }
}

/// The owner's Markdown sections: one beneath the other to fold out, side by side of which one is open
/// (`extensions.markdowns: "tabs"`), or behind a button each (`"modal"`).
pub fn sections(page: &Page) -> Option<AnyView> {
    let sections = &page.display_config.markdowns;
    if sections.is_empty() {
        return None;
    }
    let extensions = page.display_config.extensions.as_ref();
    let manner = extensions.and_then(|all| all.get("markdowns")?.as_str());
    if manner == Some("modal") {
        let sheets = sections.iter().enumerate();
        let sheets: Vec<_> = sheets
            .map(|(index, section)| {
                let id = format!("about-{index}");
                text_sheet(id, &section.title, &section.content)
            })
            .collect();
        return Some(
            view! { <section class="about sheets" aria-label="About">{sheets}</section> }
                .into_any(),
        );
    }
    // Of details with one name, browsers keep one open.
    let is_tabs = manner == Some("tabs");
    let (class, name) = match is_tabs {
        true => ("about tabs", Some("about")),
        false => ("about", None),
    };
    let details = sections
        .iter()
        .enumerate()
        .map(|(index, section)| {
            let open = is_tabs && index == 0;
            let text = beneath(&section.title, &section.content);
            view! {
                <details name=name open=open>
                    <summary>{section.title.clone()}</summary>
                    <div class="prose" inner_html=text></div>
                </details>
            }
        })
        .collect_view();
    Some(view! { <section class=class aria-label="About">{details}</section> }.into_any())
}

/// Foot of the view for frames: the way to the page itself.
pub fn frame_foot(page: &Page, path: &str) -> AnyView {
    let label = format!("Open {} in a tab of its own", page.display_config.title);
    view! { <footer class="foot"><a href=path.to_owned() target="_blank" aria-label=label>"Search by Loupe"</a></footer> }.into_any()
}

/// Foot of a page of results: with a button that tells what its searches go through, as it was noted when the page was
/// published.
pub fn foot_of(page: &Page) -> AnyView {
    let Some(content) = workings(page) else {
        return foot();
    };
    let (button, sheet) = sheet("workings".to_owned(), "How it works", content);
    view! { <footer class="foot"><span>"Search by Loupe"</span>{button}</footer>{sheet} }.into_any()
}

/// The stages of the retriever, and what its documents are found by; nothing where none are told.
fn workings(page: &Page) -> Option<AnyView> {
    let config = page.display_config.retriever_config.as_ref()?;
    let listed = |name: &str| {
        config
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let word = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let stages: Vec<_> = listed("stages")
        .filter_map(|stage| {
            let (name, id) = (word(stage, "stage_name"), word(stage, "stage_id"));
            let name = name.or_else(|| id.clone())?;
            let id = id.filter(|id| *id != name);
            Some(view! { <li>{name}{id.map(|id| view! { " "<code>{id}</code> })}</li> })
        })
        .collect();
    let features: Vec<_> = listed("feature_extractors")
        .filter_map(|feature| {
            let named = ["extractor", "version", "output"];
            let words: Vec<String> = named
                .iter()
                .filter_map(|name| word(feature, name))
                .collect();
            (!words.is_empty()).then(|| view! { <li><code>{words.join(" ")}</code></li> })
        })
        .collect();
    let found_by = (!features.is_empty())
        .then(|| view! { <p>"Documents are found by:"</p><ul>{features}</ul> });
    (!stages.is_empty()).then(|| {
        view! { <div><p>"A search goes through:"</p><ol>{stages}</ol>{found_by}</div> }.into_any()
    })
}

/// Foot of every other page.
pub fn foot() -> AnyView {
    view! { <footer class="foot">"Search by Loupe"</footer> }.into_any()
}

/// A page that says one thing and tells nothing else.
pub fn notice(host: &dyn Host, title: &'static str, text: &'static str) -> Document {
    stating(host, title, move || view! { <p>{text}</p> }.into_any())
}

/// A page with a heading and what is beneath it, that nobody indexes.
pub fn stating(host: &dyn Host, title: &'static str, body: impl FnOnce() -> AnyView) -> Document {
    let theme = Theme {
        scheme: Scheme::Visitor,
        frame_color: None,
        css: String::new(),
    };
    document(
        host,
        Head::bare(title),
        &theme,
        "public notice-page".to_owned(),
        || {
            view! {
                <main id="content" class="statement">
                    <h1>{title}</h1>
                    {body()}
                </main>
            }
            .into_any()
        },
    )
}
