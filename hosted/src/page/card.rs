//! One result.

use leptos::prelude::*;
use loupe_wire::{RetrieverInputSchemaFieldType as Kind, Timestamp};

use super::beside::Beside;
use super::format::{Drawing, fact, field, line, marked};
use super::input::{Input, is_text};
use super::look::{Click, Look, Mode, get, label};
use super::query::Query;
use super::text::{Marks, safe_url, truncate};
use crate::{Hit, Page, Picture};

/// Letters of a title that is searched with.
const WORDS: usize = 200;

/// What every card of a list shares.
pub struct Cards<'a> {
    pub page: &'a Page,
    pub look: &'a Look,
    pub query: &'a Query,
    pub marks: Marks,
    pub now: Timestamp,
    pub beside: &'a Beside,
}

/// Picture of a document: the server's thumbnail, else the field the owner named. Also the field it came from.
pub fn picture(look: &Look, hit: &Hit) -> Option<(Picture, Option<String>)> {
    if let Some(picture) = &hit.thumbnail
        && let Some(url) = safe_url(&picture.url)
    {
        let field = look
            .thumbnail_url(&hit.fields)
            .map(|(name, _)| name.to_owned());
        return Some((
            Picture {
                url,
                ..picture.clone()
            },
            field,
        ));
    }
    let (name, url) = look.thumbnail_url(&hit.fields)?;
    Some((
        Picture {
            url: safe_url(&url)?,
            width: None,
            height: None,
        },
        Some(name.to_owned()),
    ))
}

/// Address of the picture as large as it is, where the card shows a small one of it.
fn whole(hit: &Hit, small: &Picture) -> Option<String> {
    let whole = safe_url(hit.original.as_deref()?)?;
    (whole != small.url).then_some(whole)
}

/// Title of a document, or its id.
pub fn title(look: &Look, hit: &Hit) -> String {
    look.title(&hit.fields)
        .map_or_else(|| "Untitled".to_owned(), |(_, title)| title)
}

impl Cards<'_> {
    /// The card of the result at this place of the list.
    pub fn view(&self, index: usize, hit: &Hit) -> AnyView {
        let look = self.look;
        let name = look.title(&hit.fields).map(|(name, _)| name.to_owned());
        let text = look.text(&hit.fields);
        let picture = picture(look, hit).filter(|_| look.thumbnail);
        let mut shown: Vec<String> = name.into_iter().collect();
        shown.extend(text.as_ref().map(|(name, _)| (*name).to_owned()));
        shown.extend(picture.as_ref().and_then(|(_, name)| name.clone()));
        let (badge, beneath) = self.badge(hit, picture.is_some());
        shown.extend(look.badge(&hit.fields).map(|(name, _)| name.to_owned()));
        let title = truncate(&title(look, hit), look.title_chars);
        let heading = marked(&title, &self.marks);
        let heading = match self.target(hit) {
            Some((href, outside)) => {
                let rel = outside.then_some("noopener noreferrer nofollow");
                // A frame is no place for what a result leads to.
                let place = self.query.is_framed().then_some("_blank");
                view! { <a class="cover" href=href rel=rel target=place>{heading}</a> }.into_any()
            }
            None => heading,
        };
        let text = text.map(|(_, text)| {
            let text = self.marks.snippet(&text, look.text_chars);
            view! { <p class="text">{marked(&text, &self.marks)}</p> }
        });
        let media = look.thumbnail.then(|| {
            self.media(
                index,
                hit,
                &title,
                picture.map(|(picture, _)| picture),
                badge,
            )
        });
        let score = hit.score.filter(|_| look.score)
            .map(|score| view! { <span class="score" title="Score of this result">{format!("{score:.2}")}</span> });
        let class = if look.horizontal {
            "result across"
        } else {
            "result"
        };
        // Places count over all pages of the results, from 0.
        let before = u64::from(self.query.page.saturating_sub(1)) * u64::from(look.page_size);
        let eyebrow = &look.around().eyebrow;
        let beside = |class, names: &[String]| line(&self.drawing(), class, names, &hit.fields);
        let place = (before + index as u64).to_string();
        view! {
            <li data-document=hit.document_id.clone() data-position=place>
                <article class=class>
                    {media}
                    <div class="body">
                        {beside("slot eyebrow", eyebrow)}
                        <h3>{heading}{score}</h3>
                        {beside("slot", &beneath)}
                        {text}
                        {self.facts(hit, &shown)}
                        {self.similar(hit, &title)}
                    </div>
                </article>
            </li>
        }
        .into_any()
    }

    /// The mark that lies over the picture, and the fields beneath the heading: without a picture the mark is the first of them.
    fn badge(&self, hit: &Hit, has_picture: bool) -> (Option<AnyView>, Vec<String>) {
        let mut line = self.look.around().line.clone();
        let Some((name, value)) = self.look.badge(&hit.fields) else {
            return (None, line);
        };
        if has_picture {
            return (field(&self.drawing(), name, Some(value)), line);
        }
        line.insert(0, name.to_owned());
        (None, line)
    }

    fn target(&self, hit: &Hit) -> Option<(String, bool)> {
        match self.look.click {
            Click::Nowhere => None,
            Click::Link => {
                let link = self.look.link(&hit.fields).and_then(|link| safe_url(&link));
                Some(link.map_or_else(
                    || (self.query.item(&hit.document_id), false),
                    |link| (link, true),
                ))
            }
            Click::Similar => {
                let item = || self.query.item(&hit.document_id);
                Some((self.like(hit).unwrap_or_else(item), false))
            }
            Click::Item => Some((self.query.item(&hit.document_id), false)),
        }
    }

    fn media(
        &self,
        index: usize,
        hit: &Hit,
        title: &str,
        picture: Option<Picture>,
        badge: Option<AnyView>,
    ) -> AnyView {
        let look = self.look;
        // Lists of words keep no empty place where there is no picture; a grid does, so that rows stay even.
        let Some(picture) = picture else {
            let empty = look.mode == Mode::Grid && !look.horizontal;
            return empty
                .then(|| view! { <div class="media blank" aria-hidden="true"></div> })
                .into_any();
        };
        let first_row = index < look.columns as usize;
        let (loading, priority) = match index {
            0 => ("eager", Some("high")),
            _ if first_row => ("eager", None),
            _ => ("lazy", None),
        };
        let (width, height) = match (look.mode, picture.width, picture.height) {
            (Mode::Masonry, Some(width), Some(height)) if width > 0 && height > 0 => {
                (width, height)
            }
            _ => (
                look.ratio.0.saturating_mul(40),
                look.ratio.1.saturating_mul(40),
            ),
        };
        let badge = badge.map(|badge| view! { <span class="overlay">{badge}</span> });
        let whole = whole(hit, &picture);
        view! {
            <div class="media">
                <img src=picture.url alt="" width=width.to_string() height=height.to_string() loading=loading
                    decoding="async" fetchpriority=priority/>
                {badge}
                {self.enlarge(title, whole, self.query.item(&hit.document_id))}
            </div>
        }
        .into_any()
    }

    /// Shows the picture large, with script, under the address of the item's `own` page: `whole`, or the one of the card. A
    /// card that does nothing has none, and a frame as high as its page has no place for it.
    fn enlarge(&self, title: &str, whole: Option<String>, own: String) -> Option<AnyView> {
        let able = self.look.click != Click::Nowhere && !self.query.is_framed();
        let named = format!("Enlarge the picture of {title}");
        able.then(|| view! {
            <button class="enlarge scripted" type="button" data-enlarge data-full=whole data-page=own aria-label=named>
                <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                    <path d="M9.5 2.5h4v4m0-4-5 5m-2 6h-4v-4m0 4 5-5" fill="none" stroke="currentColor" stroke-width="1.5"></path>
                </svg>
            </button>
        }.into_any())
    }

    fn drawing(&self) -> Drawing<'_> {
        Drawing {
            display: &self.page.display_config,
            marks: &self.marks,
            now: self.now,
            brief: true,
        }
    }

    fn facts(&self, hit: &Hit, shown: &[String]) -> Option<AnyView> {
        let display = &self.page.display_config;
        let rows: Vec<_> = self.look.card_fields().iter()
            .filter(|name| !shown.contains(name))
            .filter_map(|name| Some((name, fact(&self.drawing(), name, get(&hit.fields, name))?)))
            .take(8)
            .map(|(name, value)| view! { <div><dt>{label(display, name)}</dt><dd>{value}</dd></div> })
            .collect();
        (!rows.is_empty()).then(|| view! { <dl class="particulars">{rows}</dl> }.into_any())
    }

    /// Where what is like a document is found: by the document itself, where the retriever takes one as an input, else by
    /// what it is called. Nowhere without an input for either, or where the retriever needs another one beside it.
    fn like(&self, hit: &Hit) -> Option<String> {
        let is_reference =
            |input: &&Input| input.config.field_schema.r#type == Kind::DocumentReference;
        let inputs = &self.query.inputs;
        let reference = inputs.iter().find(is_reference);
        let input = reference.or_else(|| inputs.iter().find(|input| is_text(input)))?;
        let is_other = |other: &&Input| other.name != input.name;
        if inputs
            .iter()
            .filter(is_other)
            .any(|other| other.is_needed(self.page))
        {
            return None;
        }
        if reference.is_some() {
            return Some(self.query.only(input, &hit.document_id));
        }
        let (_, title) = self.look.title(&hit.fields)?;
        let words: String = title.chars().take(WORDS).collect();
        Some(self.query.only(input, &words))
    }

    fn similar(&self, hit: &Hit, title: &str) -> Option<AnyView> {
        let href = self.like(hit).filter(|_| self.look.find_similar)?;
        let named = format!("Find similar to {title}");
        Some(
            view! { <a class="button small" href=href aria-label=named>"Find similar"</a> }
                .into_any(),
        )
    }
}
