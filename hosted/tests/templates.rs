//! Templates of owners' own, the places of a file, and the owner's sections.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use common::{Fake, display, fake, get, send};
use loupe_hosted::{Hit, Media, MediaKind, Picture};
use serde_json::{Value, json};

fn book() -> Value {
    json!({"title": "The sea wolf", "description": "A tale of the sea.", "notes": "Read aloud.\n\nTwice.",
        "tags": ["sea"], "year": 1904, "secret": "s3cr3t"})
}

/// Books with a template of the owner's own.
fn shop(template: Value) -> Fake {
    let mut display = display();
    display["exposed_fields"] = json!(["title", "description", "notes", "tags", "year"]);
    display["template_type"] = json!("shop-window");
    display["extensions"] = json!({ "template": template });
    fake(display, &[book()])
}

#[tokio::test]
async fn fields_stand_where_the_owners_template_says() {
    let host = Arc::new(shop(json!({
        "character": "portrait-gallery", "picture": {"place": "beside", "ratio": "2/3"},
        "card": {"eyebrow": ["tags"], "heading": ["title"], "line": ["year"], "text": ["notes"]},
        "item": {"line": ["year"], "text": ["description", "notes"], "facts": ["tags"]},
    })));
    let shown = get(&host, "/r/books?query=sea").await;
    let class = shown.attributes("body", "class").concat();
    assert!(
        class.contains("t-portrait") && class.contains("t-own"),
        "{class}"
    );
    assert_eq!(shown.texts("article .eyebrow dd li"), ["sea"]);
    assert_eq!(shown.texts("article h3"), ["The sea wolf"]);
    assert_eq!(shown.texts("article .slot:not(.eyebrow) dd"), ["1904"]);
    assert_eq!(shown.texts("article .text"), ["Read aloud. Twice."]);
    assert!(shown.texts("article .particulars").is_empty());
    assert_eq!(shown.attributes("article", "class"), ["result across"]);
    assert!(shown.texts("style").concat().contains("--thumb-ratio:2/3;"));
    let item = get(&host, "/r/books/item/doc_0").await;
    assert_eq!(item.texts(".headed .slot dd"), ["1904"]);
    assert_eq!(
        item.texts(".reading p"),
        ["A tale of the sea.", "Read aloud.", "Twice."]
    );
    assert_eq!(
        item.texts(".about-item h2"),
        ["Notes"],
        "the second text has its name"
    );
    assert_eq!(item.texts(".particulars.full dt"), ["Tags"]);
    assert!(!item.body.contains("s3cr3t"));
}

#[tokio::test]
async fn a_page_without_a_sound_template_is_whole() {
    // A built-in name is the built-in template, and what is no template is none.
    let mut built_in = shop(json!({"card": {"text": ["notes"]}}));
    built_in.page.display_config.template_type = Some("document-search".into());
    let broken = shop(json!({"card": {"text": ["secret"]}, "style": "*{color:red}"}));
    for (host, class) in [(built_in, "t-document"), (broken, "t-custom")] {
        let shown = get(&Arc::new(host), "/r/books").await;
        assert_eq!(shown.texts("article .text"), ["A tale of the sea."]);
        let classes = shown.attributes("body", "class").concat();
        assert!(
            classes.contains(class) && !classes.contains("t-own"),
            "{classes}"
        );
        assert!(!shown.body.contains("color:red"));
    }
}

/// A film in three pieces, each a document.
fn film(kind: MediaKind) -> Fake {
    let fields =
        |text: &str| json!({"title": "The storm", "description": text, "secret": "s3cr3t"});
    let mut host = fake(
        display(),
        &["A calm sea.", "Wind.", "The wreck."].map(fields),
    );
    let place = |number: usize| Media {
        kind,
        url: "/film?expires=9".into(),
        start: Some(number as f64 * 60.0).filter(|start| *start > 0.0),
        end: Some(number as f64 * 60.0 + 45.0),
        page: Some(number as u64 + 1),
        ..Media::default()
    };
    let piece = |(number, hit): (usize, &Hit)| Hit {
        media: Some(place(number)),
        thumbnail: Some(Picture {
            url: format!("/small/{number}.webp"),
            ..Picture::default()
        }),
        ..hit.clone()
    };
    let parts: Vec<Hit> = host.hits.iter().enumerate().map(piece).collect();
    for (number, hit) in host.hits.iter_mut().enumerate() {
        let parts = parts.iter().rev().cloned().collect();
        hit.media = Some(Media {
            parts,
            ..place(number)
        });
    }
    host
}

#[tokio::test]
async fn an_item_lists_the_moments_of_its_recording() {
    let host = Arc::new(film(MediaKind::Video));
    let shown = get(&host, "/r/books/item/doc_1").await;
    assert_eq!(shown.texts("[data-moments] h2"), ["In this video"]);
    assert_eq!(
        shown.texts(".when"),
        ["0:00 to 0:45", "1:00 to 1:45", "2:00 to 2:45"]
    );
    assert_eq!(shown.texts(".what"), ["A calm sea.", "Wind.", "The wreck."]);
    assert_eq!(
        shown.attributes(".moments a", "data-seek"),
        ["0", "60", "120"]
    );
    assert_eq!(
        shown.attributes(".moments img", "src"),
        ["/small/0.webp", "/small/1.webp", "/small/2.webp"]
    );
    assert_eq!(shown.texts("[aria-current=true] .when"), ["1:00 to 1:45"]);
    assert!(!shown.body.contains("s3cr3t"));
    // Each leads to its own page, whose player begins there.
    let links = shown.attributes(".moments a", "href");
    assert_eq!(links[2], "/r/books/item/doc_2");
    let third = get(&host, &links[2]).await;
    assert_eq!(third.attributes("video", "src"), ["/film?expires=9#t=120"]);
}

#[tokio::test]
async fn after_a_search_the_moments_are_those_that_it_found() {
    let mut found = film(MediaKind::Video);
    // What the search finds is less than what there is of the film.
    found.hits.remove(1);
    let shown = get(&Arc::new(found), "/r/books/item/doc_0?query=sea").await;
    assert_eq!(
        shown.texts("[data-moments] h2"),
        ["Moments that were found"]
    );
    assert_eq!(
        shown.attributes(".moments a", "href"),
        [
            "/r/books/item/doc_0?query=sea",
            "/r/books/item/doc_2?query=sea"
        ]
    );
    assert_eq!(shown.texts(".what mark"), ["sea"]);
}

#[tokio::test]
async fn pages_of_a_pdf_are_listed_the_same_way() {
    let host = Arc::new(film(MediaKind::Pdf));
    let shown = get(&host, "/r/books/item/doc_0").await;
    assert_eq!(shown.texts("[data-moments] h2"), ["In this PDF"]);
    assert_eq!(shown.texts(".when"), ["Page 1", "Page 2", "Page 3"]);
    assert!(shown.attributes(".moments a", "data-seek").is_empty());
    let links = shown.attributes(".moments a", "href");
    let second = get(&host, &links[1]).await;
    assert_eq!(
        second.attributes(".about-item .button", "href"),
        ["/film?expires=9#page=2"]
    );
}

#[tokio::test]
async fn stages_are_told_before_the_page_where_the_owner_wants_it() {
    let ask = async |progress: bool, accept: &str| {
        let mut display = display();
        display["extensions"] = json!({ "progress": progress });
        let host = Arc::new(fake(display, &[book()]));
        let request = Request::get("/r/books?query=sea").header("accept", accept);
        send(&host, request.body(Body::empty()).unwrap()).await
    };
    let told = ask(true, "text/event-stream").await;
    assert_eq!(told.headers["content-type"], "text/event-stream");
    assert_eq!(told.headers["cache-control"], "no-store");
    let events: Vec<(String, Value)> = told
        .body
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            (name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect();
    let step = |found: Value| {
        let data = json!({"at": 1, "of": 1, "found": found, "ms": found});
        ("event: step".to_owned(), data)
    };
    assert_eq!(events[..2], [step(Value::Null), step(json!(2))]);
    assert_eq!((events.len(), events[2].0.as_str()), (3, "event: page"));
    let page = events[2].1.as_str().unwrap();
    // What was found is marked within the words.
    for part in [" wolf</", "data-results", "data-progress"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // Without script, and on other pages, the page is all there is.
    for (progress, accept) in [(true, "text/html"), (false, "text/event-stream")] {
        let whole = ask(progress, accept).await;
        assert_eq!(whole.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(whole.texts("article h3"), ["The sea wolf"]);
        assert_eq!(
            whole.attributes("form[data-progress]", "action").len(),
            usize::from(progress)
        );
    }
}

#[tokio::test]
async fn sections_are_folded_side_by_side_or_behind_buttons() {
    let page = async |manner: Value| {
        let mut display = display();
        display["markdowns"] = json!([{"title": "Help", "content": "*How*"}, {"title": "Terms", "content": "Be kind."}]);
        display["extensions"] = json!({ "markdowns": manner });
        get(&Arc::new(fake(display, &[])), "/r/books").await
    };
    let folded = page(Value::Null).await;
    assert_eq!(folded.texts(".about summary"), ["Help", "Terms"]);
    assert!(folded.attributes(".about details", "open").is_empty());
    let tabs = page(json!("tabs")).await;
    assert_eq!(
        tabs.attributes(".about.tabs details", "name"),
        ["about", "about"]
    );
    assert_eq!(tabs.texts(".about details[open] summary"), ["Help"]);
    let modal = page(json!("modal")).await;
    assert_eq!(modal.texts(".about > button"), ["Help", "Terms"]);
    let targets = modal.attributes(".about > button", "popovertarget");
    assert_eq!(modal.attributes(".about [popover]", "id"), targets);
    assert_eq!(modal.texts(".about [popover] em"), ["How"]);
}

#[tokio::test]
async fn a_text_that_begins_with_a_heading_has_no_other() {
    let page = async |manner: Value| {
        let mut display = display();
        display["markdowns"] = json!([
            {"title": "Help", "content": "# How to *ask*\n\n### In words\n\nAnything."},
            {"title": "Terms", "content": "## Terms\n\nBe kind."}]);
        display["extensions"] = json!({ "markdowns": manner });
        get(&Arc::new(fake(display, &[])), "/r/books").await
    };
    let modal = page(json!("modal")).await;
    assert_eq!(modal.texts(".about > button"), ["Help", "Terms"]);
    let headings = |level: &str| modal.texts(&format!(".about [popover] {level}"));
    assert_eq!(headings("h2"), ["How to ask", "Terms"]);
    assert_eq!(headings("h3"), ["In words"]);
    assert!(headings("h1").is_empty());
    let folded = page(Value::Null).await;
    assert_eq!(folded.texts(".about summary"), ["Help", "Terms"]);
    assert_eq!(folded.texts(".about h3"), ["How to ask"]);
    assert_eq!(folded.texts(".about h4"), ["In words"]);
}
