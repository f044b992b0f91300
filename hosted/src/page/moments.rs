//! The other places of the file behind an item: moments of a recording, pages of a PDF. Each leads to its own page, whose
//! player begins there; with script the player of this page goes there at once.

use leptos::prelude::*;

use super::card::picture;
use super::format::marked;
use super::look::Look;
use super::media::clock;
use super::query::Query;
use super::text::Marks;
use crate::{Hit, Media, MediaKind};

/// Places that are listed: those around the one that is shown.
const MOST: usize = 60;
const TEXT_CHARS: usize = 120;

/// Where in its file a document is.
fn place(part: &Hit) -> Option<(f64, u64)> {
    let media = part.media.as_ref()?;
    let page = media.page.unwrap_or_default();
    let start = media.start.unwrap_or_default();
    Some((start, page)).filter(|_| media.kind != MediaKind::Pdf || page > 0)
}

/// The documents of the file that `found` names, in their order, and the one that is shown; all of them where nothing was
/// searched for. Each place is there once. None where the one that is shown is not among them: then they are others' neighbours.
fn listed<'a>(media: &'a Media, shown: &str, found: &[String]) -> Vec<&'a Hit> {
    let is_shown = |part: &Hit| part.document_id == shown;
    let is_found = |part: &Hit| found.is_empty() || found.contains(&part.document_id);
    let mut parts: Vec<&Hit> = media
        .parts
        .iter()
        .filter(|part| place(part).is_some() && (is_found(part) || is_shown(part)))
        .collect();
    // The one that is shown stands for the others of its place.
    parts.sort_by(|a, b| {
        let order = |part: &Hit| place(part).unwrap_or_default();
        let ((a_start, a_page), (b_start, b_page)) = (order(a), order(b));
        let by_place = a_page.cmp(&b_page).then(a_start.total_cmp(&b_start));
        by_place.then(is_shown(b).cmp(&is_shown(a)))
    });
    parts.dedup_by(|next, kept| place(next) == place(kept));
    let Some(at) = parts.iter().position(|part| is_shown(part)) else {
        return Vec::new();
    };
    let first = at.saturating_sub(MOST / 2);
    parts.into_iter().skip(first).take(MOST).collect()
}

/// The list of places in a file, where there are several: the document that is `shown`, and of its neighbours those that were
/// `found` by the search that the visitor came from.
pub fn moments(
    look: &Look,
    query: &Query,
    marks: &Marks,
    (media, shown): (&Media, &str),
    found: &[String],
) -> Option<AnyView> {
    let parts = listed(media, shown, found);
    if parts.len() < 2 {
        return None;
    }
    // What all of them say says nothing of any.
    let texts: Vec<Option<String>> = parts
        .iter()
        .map(|part| look.text(&part.fields).map(|(_, text)| text))
        .collect();
    let differ = texts.windows(2).any(|pair| pair[0] != pair[1]);
    let items: Vec<_> = parts
        .iter()
        .zip(texts)
        .filter_map(|(part, text)| {
            let text = text.filter(|_| differ);
            one(look, query, marks, part, text, part.document_id == shown)
        })
        .collect();
    let heading = match (media.kind, found.is_empty()) {
        (MediaKind::Pdf, false) => "Pages that were found",
        (MediaKind::Pdf, true) => "In this PDF",
        (_, false) => "Moments that were found",
        (MediaKind::Video, true) => "In this video",
        (MediaKind::Audio, true) => "In this recording",
    };
    Some(
        view! {
            <section class="moments" aria-labelledby="moments" data-moments>
                <h2 id="moments">{heading}</h2>
                <ol>{items}</ol>
            </section>
        }
        .into_any(),
    )
}

fn one(
    look: &Look,
    query: &Query,
    marks: &Marks,
    part: &Hit,
    text: Option<String>,
    is_shown: bool,
) -> Option<AnyView> {
    let media = part.media.as_ref()?;
    let start = media.start.unwrap_or_default();
    let (when, seek) = match (media.kind, media.page) {
        (MediaKind::Pdf, page) => (format!("Page {}", page?), None),
        _ => (span(start, media.end), Some(start.to_string())),
    };
    let image = picture(look, part).map(|(picture, _)| {
        view! { <img src=picture.url alt="" width="96" height="54" loading="lazy" decoding="async"/> }
    });
    let text = text.map(|text| {
        let text = marks.snippet(&text, TEXT_CHARS);
        view! { <span class="what">{marked(&text, marks)}</span> }
    });
    let current = is_shown.then_some("true");
    Some(
        view! {
            <li><a href=query.item(&part.document_id) aria-current=current data-seek=seek>
                {image}<span class="when">{when}</span>{text}
            </a></li>
        }
        .into_any(),
    )
}

/// `1:05 to 1:20`.
fn span(start: f64, end: Option<f64>) -> String {
    let (start, end) = (clock(start), end.map(clock));
    match end.filter(|end| *end != start) {
        Some(end) => format!("{start} to {end}"),
        None => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: usize, start: f64) -> Hit {
        Hit {
            document_id: format!("doc_{id}"),
            media: Some(Media {
                start: Some(start),
                ..Media::default()
            }),
            ..Hit::default()
        }
    }

    fn ids(parts: Vec<&Hit>) -> Vec<&str> {
        parts.iter().map(|part| part.document_id.as_str()).collect()
    }

    #[test]
    fn each_place_is_there_once_in_the_order_of_the_file() {
        let media = Media {
            parts: vec![part(3, 30.0), part(1, 10.0), part(2, 10.0), part(4, 5.0)],
            ..Media::default()
        };
        assert_eq!(
            ids(listed(&media, "doc_2", &[])),
            ["doc_4", "doc_2", "doc_3"]
        );
        let found = ["doc_3".to_owned(), "doc_9".to_owned()];
        assert_eq!(ids(listed(&media, "doc_2", &found)), ["doc_2", "doc_3"]);
    }

    #[test]
    fn a_long_list_is_the_part_around_what_is_shown() {
        let parts = (0..200u8).map(|n| part(n.into(), f64::from(n)));
        let media = Media {
            parts: parts.collect(),
            ..Media::default()
        };
        let listed = ids(listed(&media, "doc_100", &[]));
        assert_eq!((listed.len(), listed[0]), (MOST, "doc_70"));
    }

    #[test]
    fn what_is_not_around_what_is_shown_is_no_list() {
        let media = Media {
            parts: vec![part(1, 10.0), part(2, 20.0)],
            ..Media::default()
        };
        assert!(listed(&media, "doc_3", &[]).is_empty());
    }

    #[test]
    fn a_stretch_is_told_by_both_its_ends() {
        assert_eq!(span(65.2, Some(80.0)), "1:05 to 1:20");
        assert_eq!(span(0.0, Some(0.4)), "0:00");
    }
}
