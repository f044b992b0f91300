//! An item's own page.

use leptos::prelude::*;
use loupe_wire::Timestamp;

use super::card::{picture, title};
use super::format::{Drawing, field, marked};
use super::look::{Look, get, label};
use super::media;
use super::query::Query;
use super::results::beacon;
use super::shell::{foot, top};
use super::text::{Marks, domain, safe_url, truncate};
use crate::{Hit, Page};

/// Addresses and names of the items before and after in the results the visitor came from.
#[derive(Debug, Default)]
pub struct Neighbours {
    pub before: Option<(String, String)>,
    pub after: Option<(String, String)>,
}

impl Neighbours {
    /// Neighbours of an item in a page of results.
    pub fn of(look: &Look, query: &Query, hits: &[Hit], document_id: &str) -> Self {
        let Some(index) = hits.iter().position(|hit| hit.document_id == document_id) else {
            return Self::default();
        };
        let at = |index: usize| {
            hits.get(index)
                .map(|hit| (query.item(&hit.document_id), title(look, hit)))
        };
        Self {
            before: index.checked_sub(1).and_then(at),
            after: at(index + 1),
        }
    }
}

/// Body of the page.
pub fn item(
    page: &Page,
    look: &Look,
    query: &Query,
    hit: &Hit,
    neighbours: Neighbours,
    now: Timestamp,
    told: bool,
) -> AnyView {
    let display = &page.display_config;
    let marks = Marks::of(&query.words());
    let drawing = Drawing {
        display,
        marks: &marks,
        now,
        brief: false,
    };
    let name = title(look, hit);
    let text = look.text(&hit.fields);
    let picture = picture(look, hit);
    let mut shown: Vec<String> = look
        .title(&hit.fields)
        .map(|(name, _)| name.to_owned())
        .into_iter()
        .collect();
    shown.extend(text.as_ref().map(|(name, _)| (*name).to_owned()));
    shown.extend(picture.as_ref().and_then(|(_, name)| name.clone()));
    let rows: Vec<_> = look
        .item_fields()
        .iter()
        .filter(|name| !shown.contains(name))
        .filter_map(|name| Some((name, field(&drawing, name, get(&hit.fields, name))?)))
        .map(|(name, value)| view! { <div><dt>{label(display, name)}</dt><dd>{value}</dd></div> })
        .collect();
    let file = media::of(display, hit);
    let poster = picture.as_ref().map(|(picture, _)| picture.url.clone());
    let player = file
        .as_ref()
        .and_then(|file| media::player(file, poster, &name))
        .map(|player| view! { <figure class="figure">{player}</figure> }.into_any());
    let image = picture.map(|(picture, _)| {
        let sized = picture.width.zip(picture.height).filter(|(width, height)| *width > 0 && *height > 0);
        let (width, height) = sized.unwrap_or((look.ratio.0.saturating_mul(60), look.ratio.1.saturating_mul(60)));
        view! {
            <figure class="figure">
                <img src=picture.url alt=name.clone() width=width.to_string() height=height.to_string() fetchpriority="high"/>
            </figure>
        }
        .into_any()
    });
    let image = player.or(image);
    let link = look.link(&hit.fields).and_then(|link| safe_url(&link)).map(|href| {
        let text = domain(&href).map_or_else(|| "Open the source".to_owned(), |domain| format!("Open at {domain}"));
        view! { <p><a class="button primary" href=href rel="noopener noreferrer nofollow">{text}</a></p> }
    });
    let beacon = told.then(|| beacon(page));
    let document = told.then(|| hit.document_id.clone());
    let back = if query.is_empty() {
        "All results"
    } else {
        "Back to the results"
    };
    let class = if image.is_some() {
        "item"
    } else {
        "item words"
    };
    view! {
        {top(page, &query.home)}
        <main id="content" class="shell" data-item=document data-beacon=beacon>
            <nav class="trail" aria-label="Back"><a href=query.at_page(query.page)><span aria-hidden="true">"← "</span>{back}</a></nav>
            <article class=class>
                {image}
                <div class="about-item">
                    <h1>{marked(&name, &marks)}</h1>
                    {text.map(|(_, text)| paragraphs(&text, &marks))}
                    {file.as_ref().map(media::link)}
                    {link}
                    {(!rows.is_empty()).then(|| view! { <dl class="particulars full">{rows}</dl> })}
                </div>
            </article>
            {beside(neighbours)}
        </main>
        {foot()}
    }
    .into_any()
}

fn paragraphs(text: &str, marks: &Marks) -> AnyView {
    let paragraphs = text
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| view! { <p>{marked(part.trim(), marks)}</p> })
        .collect_view();
    view! { <div class="reading">{paragraphs}</div> }.into_any()
}

fn beside(neighbours: Neighbours) -> Option<AnyView> {
    let step = |rel: &'static str, word: &'static str, to: Option<(String, String)>| {
        to.map(|(href, name)| view! {
            <a class=rel rel=rel href=href><span class="hint">{word}</span><span>{truncate(&name, 60)}</span></a>
        })
    };
    let some = neighbours.before.is_some() || neighbours.after.is_some();
    some.then(|| {
        view! {
            <nav class="beside" aria-label="Other results">
                {step("prev", "Previous", neighbours.before)}
                {step("next", "Next", neighbours.after)}
            </nav>
        }
        .into_any()
    })
}
