//! An item's own page.

use leptos::prelude::*;
use loupe_wire::Timestamp;

use super::card::{picture, title};
use super::format::{Drawing, fact, line, marked};
use super::look::{Look, get, label};
use super::media;
use super::moments::moments;
use super::query::{Query, encode};
use super::results::beacon;
use super::shell::{foot, top};
use super::text::{Marks, domain, safe_url, truncate};
use crate::{Hit, Media, Page, Picture};

/// Addresses and names of the items before and after in the results the visitor came from.
#[derive(Debug, Default)]
pub struct Neighbours {
    pub before: Option<(String, String)>,
    pub after: Option<(String, String)>,
    /// Ids of all that were found with it.
    pub found: Vec<String>,
}

impl Neighbours {
    /// Neighbours of an item in a page of results.
    pub fn of(look: &Look, query: &Query, hits: &[Hit], document_id: &str) -> Self {
        let found = hits.iter().map(|hit| hit.document_id.clone()).collect();
        let Some(index) = hits.iter().position(|hit| hit.document_id == document_id) else {
            return Self {
                found,
                ..Self::default()
            };
        };
        let at = |index: usize| {
            hits.get(index)
                .map(|hit| (query.item(&hit.document_id), title(look, hit)))
        };
        Self {
            before: index.checked_sub(1).and_then(at),
            after: at(index + 1),
            found,
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
    let texts = look.texts(&hit.fields);
    let picture = picture(look, hit);
    let mut shown: Vec<String> = texts.iter().map(|(name, _)| (*name).to_owned()).collect();
    shown.extend(look.title(&hit.fields).map(|(name, _)| name.to_owned()));
    shown.extend(picture.as_ref().and_then(|(_, name)| name.clone()));
    let particulars = particulars(&drawing, look, hit, &shown);
    let file = media::of(display, hit);
    let moments = file.as_ref().and_then(|file| {
        let shown = (file, hit.document_id.as_str());
        moments(look, query, &marks, shown, &neighbours.found)
    });
    let picture = picture.map(|(picture, _)| picture);
    let saved = media::whole(file.as_ref(), hit, picture.as_ref());
    let image = figure(look, file.as_ref(), picture, &name);
    let beacon = told.then(|| beacon(page));
    let document = told.then(|| hit.document_id.clone());
    let class = image.as_ref().map_or("item words", |_| "item");
    view! {
        {top(page, &query.home)}
        <main id="content" class="shell" data-item=document data-beacon=beacon>
            {bar(query, hit, saved)}
            <article class=class>
                {image}
                <div class="about-item">
                    {heading(&drawing, look, hit, &name)}
                    {readings(page, &texts, &marks)}
                    {file.as_ref().map(media::link)}
                    {media::whole_picture(hit)}
                    {source(look, hit)}
                    {particulars}
                </div>
            </article>
            {moments}
            {steps(neighbours)}
        </main>
        {foot()}
    }
    .into_any()
}

/// The way back, and what one takes along: the address of the item, without what was searched for, and its `file`.
fn bar(query: &Query, hit: &Hit, file: Option<String>) -> AnyView {
    let back = if query.is_empty() {
        "All results"
    } else {
        "Back to the results"
    };
    let own = format!("{}/item/{}", query.home, encode(&hit.document_id));
    let file = file.map(|href| {
        view! { <a class="button small" href=href download="" rel="nofollow">"Download"</a> }
    });
    view! {
        <div class="item-bar">
            <nav class="trail" aria-label="Back"><a href=query.at_page(query.page)><span aria-hidden="true">"← "</span>{back}</a></nav>
            <div class="taken">
                <button class="button small scripted" type="button" data-copy=own>"Copy link"</button>
                {file}
            </div>
        </div>
    }
    .into_any()
}

/// What plays the file, else the picture.
fn figure(
    look: &Look,
    file: Option<&Media>,
    picture: Option<Picture>,
    name: &str,
) -> Option<AnyView> {
    let poster = picture.as_ref().map(|picture| picture.url.clone());
    let player = file.and_then(|file| media::player(file, poster, name));
    if let Some(player) = player {
        return Some(view! { <figure class="figure">{player}</figure> }.into_any());
    }
    let picture = picture?;
    let sized = picture.width.zip(picture.height);
    let sized = sized.filter(|(width, height)| *width > 0 && *height > 0);
    let usual = |side: u32| side.saturating_mul(60);
    let (width, height) = sized.unwrap_or((usual(look.ratio.0), usual(look.ratio.1)));
    let (width, height) = (width.to_string(), height.to_string());
    Some(
        view! {
            <figure class="figure">
                <img src=picture.url alt=name.to_owned() width=width height=height fetchpriority="high"/>
            </figure>
        }
        .into_any(),
    )
}

/// The title, and what the owner's template puts above and beneath it.
fn heading(drawing: &Drawing<'_>, look: &Look, hit: &Hit, name: &str) -> AnyView {
    let around = look.around_item();
    // In a line a long text is cut, and what is not there leaves no place.
    let short = Drawing {
        brief: true,
        ..*drawing
    };
    let beside = |class, names: &[String]| line(&short, class, names, &hit.fields);
    view! {
        <div class="headed">
            {beside("slot eyebrow", &around.eyebrow)}
            <h1>{marked(name, drawing.marks)}</h1>
            {beside("slot", &around.line)}
        </div>
    }
    .into_any()
}

/// The fields that are not `shown` elsewhere, each with its name.
fn particulars(drawing: &Drawing<'_>, look: &Look, hit: &Hit, shown: &[String]) -> Option<AnyView> {
    let rows: Vec<_> = look
        .item_fields()
        .iter()
        .filter(|name| !shown.contains(name))
        .filter_map(|name| Some((name, fact(drawing, name, get(&hit.fields, name))?)))
        .map(|(name, value)| {
            view! { <div><dt>{label(drawing.display, name)}</dt><dd>{value}</dd></div> }
        })
        .collect();
    let some = !rows.is_empty();
    some.then(|| view! { <dl class="particulars full">{rows}</dl> }.into_any())
}

/// The way to where the document points.
fn source(look: &Look, hit: &Hit) -> Option<AnyView> {
    let href = look.link(&hit.fields).and_then(|link| safe_url(&link))?;
    let text = domain(&href).map_or_else(
        || "Open the source".to_owned(),
        |domain| format!("Open at {domain}"),
    );
    Some(view! { <p><a class="button primary" href=href rel="noopener noreferrer nofollow">{text}</a></p> }.into_any())
}

/// The running texts, each after the first with its name.
fn readings(page: &Page, texts: &[(&str, String)], marks: &Marks) -> Vec<AnyView> {
    let named = |name: &str| view! { <h2>{label(&page.display_config, name)}</h2> };
    let one = |(index, (name, text)): (usize, &(&str, String))| {
        view! { {(index > 0).then(|| named(name))}{paragraphs(text, marks)} }.into_any()
    };
    texts.iter().enumerate().map(one).collect()
}

fn paragraphs(text: &str, marks: &Marks) -> AnyView {
    let paragraphs = text
        .split("\n\n")
        .filter(|part| !part.trim().is_empty())
        .map(|part| view! { <p>{marked(part.trim(), marks)}</p> })
        .collect_view();
    view! { <div class="reading">{paragraphs}</div> }.into_any()
}

fn steps(neighbours: Neighbours) -> Option<AnyView> {
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
