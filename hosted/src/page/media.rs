//! The file behind an item: a recording that plays from the second that was found, a PDF that opens at the page. Both are
//! fragments of the address, so they work without JavaScript.

use leptos::prelude::*;
use loupe_wire::DisplayConfig;

use super::look::{get, text_of};
use super::text::safe_url;
use crate::{Hit, Media, MediaKind, Picture};

/// The file that the server found, else the address in a field that the owner named for it.
pub fn of(display: &DisplayConfig, hit: &Hit) -> Option<Media> {
    let media = hit.media.clone().or_else(|| mapped(display, hit))?;
    let url = safe_url(&media.url)?;
    Some(Media { url, ..media })
}

fn mapped(display: &DisplayConfig, hit: &Hit) -> Option<Media> {
    let mappings = display.field_mappings.as_ref()?;
    let value = |slot: &str| get(&hit.fields, mappings.get(slot).map_or(slot, String::as_str));
    let slots = [
        ("video", MediaKind::Video),
        ("audio", MediaKind::Audio),
        ("pdf", MediaKind::Pdf),
    ];
    let (url, kind) = slots
        .into_iter()
        .find_map(|(slot, kind)| Some((text_of(get(&hit.fields, mappings.get(slot)?)?)?, kind)))?;
    let start = value("start_time").and_then(|start| start.as_f64());
    Some(Media {
        kind,
        url,
        start: start.filter(|start| start.is_finite() && *start > 0.0),
        page: value("page_number").and_then(|page| page.as_u64()),
        ..Media::default()
    })
}

/// The address that leads to what was found.
fn address(media: &Media) -> String {
    let url = media.url.split('#').next().unwrap_or_default();
    match (media.kind, media.start, media.page) {
        (MediaKind::Pdf, _, Some(page)) => format!("{url}#page={page}"),
        (MediaKind::Video | MediaKind::Audio, Some(start), _) => format!("{url}#t={start}"),
        _ => url.to_owned(),
    }
}

/// Address of the file as a whole, to be saved: the recording or the PDF, else the picture.
pub fn whole(file: Option<&Media>, hit: &Hit, picture: Option<&Picture>) -> Option<String> {
    let file = file.and_then(|file| file.url.split('#').next());
    let original = || hit.original.as_deref().and_then(safe_url);
    let shown = || picture.map(|picture| picture.url.clone());
    file.map(str::to_owned).or_else(original).or_else(shown)
}

/// `3725` seconds as `1:02:05`.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// What plays a recording; none for what is read. `poster` stands for a film until it is played.
pub fn player(media: &Media, poster: Option<String>, name: &str) -> Option<AnyView> {
    let (address, name) = (address(media), name.to_owned());
    Some(match media.kind {
        MediaKind::Video => view! {
            <video src=address poster=poster controls=true playsinline=true preload="metadata" width="960" height="540"
                aria-label=name></video>
        }
        .into_any(),
        MediaKind::Audio => {
            view! { <audio src=address controls=true preload="metadata" aria-label=name></audio> }
                .into_any()
        }
        MediaKind::Pdf => return None,
    })
}

/// The link that opens the file itself, at what was found.
pub fn link(media: &Media) -> AnyView {
    let (noun, class) = match media.kind {
        MediaKind::Video => ("video", "button"),
        MediaKind::Audio => ("recording", "button"),
        MediaKind::Pdf => ("PDF", "button primary"),
    };
    let place = match (media.kind, media.start, media.page) {
        (MediaKind::Pdf, _, Some(page)) => format!(" at page {page}"),
        (MediaKind::Video | MediaKind::Audio, Some(start), _) => format!(" at {}", clock(start)),
        _ => String::new(),
    };
    let text = format!("Open the {noun}{place}");
    view! { <p><a class=class href=address(media) rel="nofollow">{text}</a></p> }.into_any()
}

/// The link that opens the picture as large as it is: the page shows a small one.
pub fn whole_picture(hit: &Hit) -> Option<AnyView> {
    let address = safe_url(hit.original.as_deref()?)?;
    Some(
        view! { <p><a class="button" href=address rel="nofollow">"Open the picture"</a></p> }
            .into_any(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_and_a_page_are_part_of_the_address() {
        let mut media = Media {
            url: "/film.mp4?expires=1#t=3".into(),
            start: Some(12.5),
            page: Some(7),
            ..Media::default()
        };
        assert_eq!(address(&media), "/film.mp4?expires=1#t=12.5");
        media.kind = MediaKind::Pdf;
        assert_eq!(address(&media), "/film.mp4?expires=1#page=7");
        media.page = None;
        assert_eq!(address(&media), "/film.mp4?expires=1");
        assert_eq!(
            (clock(65.9), clock(3725.0)),
            ("1:05".into(), "1:02:05".into())
        );
    }
}
