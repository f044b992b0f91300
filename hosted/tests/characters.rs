//! What pages make of values, inputs and answers that their owners say nothing more of.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::http::StatusCode;
use common::{Fake, Reply, books, display, fake, get};
use loupe_hosted::{Picture, Written};
use serde_json::{Value, json};

/// A host of one document, with these members laid over the usual configuration.
fn host(over: Value, document: &Value) -> Fake {
    let mut whole = display();
    for (name, value) in over.as_object().unwrap() {
        whole[name] = value.clone();
    }
    fake(whole, std::slice::from_ref(document))
}

fn with_picture(mut host: Fake) -> Arc<Fake> {
    host.hits[0].thumbnail = Some(Picture {
        url: "/v1/blobs/small.webp?expires=9".into(),
        ..Picture::default()
    });
    Arc::new(host)
}

fn film() -> Value {
    json!({"title": "Harbour", "start_time": 3725, "duration": 65.5, "recorded_at": "1922-03-04T17:05:00Z", "page_number": 12})
}

const EXPOSED: [&str; 5] = [
    "title",
    "start_time",
    "duration",
    "recorded_at",
    "page_number",
];

#[tokio::test]
async fn a_media_page_marks_its_pictures_with_the_time_and_tells_the_day() {
    let over = json!({"template_type": "media-search", "exposed_fields": EXPOSED});
    let shown = with_picture(host(over.clone(), &film()));
    let page = get(&shown, "/r/books").await;
    assert_eq!(page.texts(".overlay"), ["1:02:05"]);
    assert_eq!(page.texts(".body > .slot dd"), ["4 Mar 1922"]);
    let item = get(&shown, "/r/books/item/doc_0").await;
    let particulars = item.texts(".particulars dd");
    assert_eq!(particulars, ["1:02:05", "1:05", "4 March 1922", "12"]);
    // Without a picture the mark stands in the line.
    let bare = get(&Arc::new(host(over, &film())), "/r/books").await;
    assert_eq!(bare.texts(".body > .slot dd"), ["1:02:05", "4 Mar 1922"]);
    // The owner's own place comes first, and other templates have none of it.
    let named = json!({"template_type": "media-search", "exposed_fields": EXPOSED, "field_mappings": {"badge": "duration"}});
    let named = get(&with_picture(host(named, &film())), "/r/books").await;
    assert_eq!(named.texts(".overlay"), ["1:05"]);
    let plain = json!({"template_type": "portrait-gallery", "exposed_fields": EXPOSED});
    let plain = get(&with_picture(host(plain, &film())), "/r/books").await;
    assert!(plain.texts(".overlay").is_empty());
}

#[tokio::test]
async fn a_document_page_tells_where_a_text_stands() {
    let over = json!({"template_type": "document-search", "exposed_fields": EXPOSED});
    let page = get(&Arc::new(host(over, &film())), "/r/books").await;
    assert_eq!(page.texts(".body > .slot dd"), ["p. 12"]);
}

#[tokio::test]
async fn a_badge_is_shown_without_a_picture_too() {
    let over = json!({"exposed_fields": ["title", "state"], "field_mappings": {"badge": "state"}});
    let document = json!({"title": "Harbour", "state": "Restored"});
    let bare = get(&Arc::new(host(over.clone(), &document)), "/r/books").await;
    assert_eq!(bare.texts(".body > .slot dd"), ["Restored"]);
    let pictured = get(&with_picture(host(over, &document)), "/r/books").await;
    assert_eq!(pictured.texts(".overlay"), ["Restored"]);
    assert!(pictured.texts(".body > .slot dd").is_empty());
}

#[tokio::test]
async fn links_to_an_item_have_a_picture_that_lasts() {
    let shown = with_picture(books());
    let lasting = "https://search.example.com/r/books/item/doc_0/picture";
    let item = get(&shown, "/r/books/item/doc_0").await;
    for (selector, name) in [
        ("meta[property='og:image']", "content"),
        ("meta[name='twitter:image']", "content"),
    ] {
        assert_eq!(item.attributes(selector, name), [lasting], "{selector}");
    }
    let data = item.texts("script[type='application/ld+json']").concat();
    assert!(
        data.contains(&format!("\"thumbnailUrl\":\"{lasting}\"")),
        "{data}"
    );
    let led = get(&shown, "/r/books/item/doc_0/picture").await;
    assert_eq!(led.status, StatusCode::FOUND);
    assert_eq!(led.headers["location"], "/v1/blobs/small.webp?expires=9");
    assert_eq!(led.headers["cache-control"], "public, max-age=600");
    for nothing in ["doc_1/picture", "doc_9/picture"] {
        let reply = get(&shown, &format!("/r/books/item/{nothing}")).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{nothing}");
    }
    let mut locked = books();
    locked.password = Some("sesame");
    let mut gone = books();
    gone.is_active = false;
    for closed in [locked, gone] {
        let reply = get(&with_picture(closed), "/r/books/item/doc_0/picture").await;
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (StatusCode::NOT_FOUND, "not found\n")
        );
        assert!(!reply.headers.contains_key("location"));
    }
}

fn inputs(of: Value) -> Arc<Fake> {
    Arc::new(host(json!({ "inputs": of }), &json!({"title": "Walden"})))
}

fn asked(host: &Fake) -> Value {
    let asked = host.asked.lock().unwrap();
    Value::Object(asked.last().unwrap().inputs.clone())
}

#[tokio::test]
async fn results_say_what_they_are_like() {
    let mut shown = books();
    let reference = json!({"field_name": "similar_to", "field_schema": {"type": "document_reference"}, "label": "Like", "required": false});
    let inputs = &mut shown.page.display_config.inputs;
    inputs.push(serde_json::from_value(reference).unwrap());
    let shown = Arc::new(shown);
    let page = get(&shown, "/r/books?similar_to=doc_1&f.tags=sea").await;
    assert_eq!(
        page.texts("[role=status]"),
        ["3 results like Moby-Dick in 7 ms"]
    );
    assert_eq!(page.texts("title"), ["like Moby-Dick · Old books"]);
    assert_eq!(
        page.texts(".chips a").first().map(String::as_str),
        Some("Like Moby-Dick ×")
    );
    assert_eq!(
        page.attributes(".chips a", "href")
            .first()
            .map(String::as_str),
        Some("/r/books?f.tags=sea")
    );
    let gone = get(&shown, "/r/books?similar_to=doc_9").await;
    assert_eq!(
        gone.texts("[role=status]"),
        ["3 results like one result in 7 ms"]
    );
    let usual = get(&shown, "/r/books?query=sea").await;
    assert!(usual.texts(".chips").is_empty());
}

#[tokio::test]
async fn what_nobody_drew_is_drawn_by_its_schema() {
    let of = |name: &str, schema: Value| json!({"field_name": name, "field_schema": schema, "label": name, "required": false});
    let shown = inputs(json!([
        of("query", json!({"type": "text"})),
        of("open", json!({"type": "boolean"})),
        of("least", json!({"type": "integer"})),
        of("from", json!({"type": "date"})),
        of("at", json!({"type": "datetime"})),
        of("level", json!({"type": "integer", "enum": [1, 2]})),
        of(
            "kinds",
            json!({"type": "array", "items": {"type": "string", "enum": ["film", "note"]}})
        ),
        of(
            "names",
            json!({"type": "array", "items": {"type": "string"}})
        ),
        of("more", json!({"type": "object"})),
    ]));
    let page = get(&shown, "/r/books").await;
    let kinds = ["open", "least", "from", "at", "kinds", "names"].map(|name| {
        let kinds = page.attributes(&format!("input[name={name}]"), "type");
        kinds.first().cloned().unwrap_or_default()
    });
    assert_eq!(
        kinds,
        ["checkbox", "number", "date", "date", "checkbox", "text"]
    );
    assert_eq!(page.texts("select[name=level] option"), ["Any", "1", "2"]);
    assert_eq!(page.texts("textarea[name=more]").len(), 1);

    let path = "/r/books?names=Ishmael%2C+Ahab&names=Pip&more=%7B%22a%22%3A+1%7D&level=2";
    let page = get(&shown, path).await;
    assert_eq!(
        asked(&shown),
        json!({"names": ["Ishmael", "Ahab", "Pip"], "more": {"a": 1}, "level": 2})
    );
    assert_eq!(
        page.attributes("input[name=names]", "value"),
        ["Ishmael, Ahab, Pip"]
    );
    for (wrong, name, said) in [
        (
            "more=%7Ba",
            "more",
            "Write this as a JSON object, such as {\"name\": 1}.",
        ),
        (
            "more=%5B1%5D",
            "more",
            "Write this as a JSON object, such as {\"name\": 1}.",
        ),
        ("level=3", "level", "Choose one that is offered."),
        (
            "kinds=film&kinds=song",
            "kinds",
            "Choose one that is offered.",
        ),
    ] {
        let reply = get(&shown, &format!("/r/books?{wrong}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{wrong}");
        assert_eq!(
            reply.texts(&format!("#in-{name}-note, .choices .bad")),
            [said],
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_text_of_several_lines_has_room() {
    let area = |name: &str| json!({"field_name": name, "field_schema": {"type": "text"}, "input_type": "textarea", "label": name, "required": false});
    let shown = inputs(json!([area("story"), area("end")]));
    let page = get(&shown, "/r/books?q=one%0Atwo&end=three").await;
    assert_eq!(page.texts("textarea"), ["one\ntwo", "three"]);
    assert!(page.attributes("input.entry", "name").is_empty());
    assert_eq!(asked(&shown), json!({"story": "one\ntwo", "end": "three"}));
}

fn search_action(reply: &Reply) -> bool {
    let data = reply.texts("script[type='application/ld+json']");
    data.concat().contains("SearchAction")
}

#[tokio::test]
async fn a_page_without_words_is_offered_for_no_words() {
    let number = json!([{"field_name": "least", "field_schema": {"type": "integer"}, "label": "Least", "required": false}]);
    let shown = inputs(number);
    let page = get(&shown, "/r/books").await;
    assert!(!search_action(&page) && page.robots() == "index, follow");
    assert_eq!(
        get(&shown, "/r/books?q=sea").await.robots(),
        "noindex, follow"
    );
    assert!(search_action(&get(&Arc::new(books()), "/r/books").await));
}

#[tokio::test]
async fn a_title_that_the_font_lacks_is_left_out_of_the_picture() {
    let address = |title: &str, name: &str| {
        let display = serde_json::from_value(
            json!({"title": title, "inputs": [], "exposed_fields": ["title"]}),
        );
        let address =
            loupe_hosted::page::picture_address(&display.unwrap(), name, "https://a.example");
        address.split("?v=").nth(1).unwrap().to_owned()
    };
    let written = address("Ελληνικά", "one");
    // The name is not in the picture, so that it is the same under another one.
    assert_eq!(written, address("Русский", "two"));
    assert_ne!(written, address("One", "one"));
}

#[tokio::test]
async fn what_a_model_wrote_stands_above_the_results() {
    let mut shown = books();
    let written = |text: &str, group: Option<&str>| Written {
        text: text.into(),
        group: group.map(str::to_owned),
        sources: vec!["doc_1".into(), "doc_9".into()],
    };
    shown.hits[1]
        .fields
        .insert("secret".into(), json!("s3cr3t"));
    shown.written = vec![written(
        "**Whales** <script>pwn()</script> [x](javascript:pwn())",
        Some("sea"),
    )];
    let shown = Arc::new(shown);
    let page = get(&shown, "/r/books?query=whales").await;
    assert_eq!(page.texts(".written .prose strong"), ["Whales"]);
    assert_eq!(page.texts(".written h3"), ["sea"]);
    assert_eq!(page.texts(".written .sources a"), ["Moby-Dick"]);
    assert_eq!(
        page.attributes(".written .sources a", "href"),
        ["/r/books/item/doc_1"]
    );
    assert!(
        page.texts(".written > .hint")
            .concat()
            .contains("language model")
    );
    assert!(
        page.attributes(".written .prose a", "href").is_empty()
            && page.texts(".written script").is_empty()
    );
    assert!(!page.body.contains("s3cr3t"));
    assert_eq!(page.texts("article h3").len(), 3);

    // Alone it is no empty answer.
    let mut alone = books();
    alone.hits.clear();
    alone.total = 0;
    alone.written = vec![written("Nothing of the kind.", None)];
    let page = get(&Arc::new(alone), "/r/books?query=whales").await;
    assert!(page.texts(".state").is_empty());
    assert_eq!(page.texts(".written .prose"), ["Nothing of the kind.\n"]);
}

#[tokio::test]
async fn a_frame_shows_that_there_is_no_page() {
    let mut gone = books();
    gone.is_active = false;
    let gone = Arc::new(gone);
    for path in ["/r/books/embed", "/r/nothing/embed"] {
        let reply = get(&gone, path).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.ends_with("frame-ancestors *"), "{policy}");
        assert_eq!(reply.texts("h1"), ["Page not found"]);
    }
    let mut locked = books();
    locked.password = Some("sesame");
    for (host, path) in [(Arc::new(locked), "/r/books/embed"), (gone, "/r/books")] {
        let reply = get(&host, path).await;
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.ends_with("frame-ancestors 'self'"), "{policy}");
    }
}
