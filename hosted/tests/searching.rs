//! Searches with files, and what the script of a page finds to work with.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use common::{Fake, Reply, display, fake, get};
use loupe_hosted::Picture;
use serde_json::{Value, json};

/// A page that is searched by words, by a picture, or by both.
fn gallery(change: impl FnOnce(&mut Value)) -> Fake {
    let mut display = display();
    let picture = json!({"field_name": "picture", "field_schema": {"type": "image"}, "input_type": "image", "label": "Like this picture", "order": 1});
    display["inputs"].as_array_mut().unwrap().push(picture);
    change(&mut display);
    let mut host = fake(
        display,
        &[json!({"title": "A heron"}), json!({"title": "A crane"})],
    );
    host.hits[0].thumbnail = Some(Picture {
        url: "/heron.png".into(),
        ..Default::default()
    });
    host
}

/// One part of a form: its name, the name and kind of a file where it is one, and what it holds.
type Part<'a> = (&'a str, Option<(&'a str, &'a str)>, &'a [u8]);

/// As the script of a page sends it.
async fn post(host: &Arc<Fake>, path: &str, parts: &[Part<'_>]) -> Reply {
    post_as("cors", host, path, parts).await
}

async fn post_as(mode: &str, host: &Arc<Fake>, path: &str, parts: &[Part<'_>]) -> Reply {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let file = file.map_or_else(String::new, |(file, kind)| {
            format!("; filename=\"{file}\"\r\ncontent-type: {kind}")
        });
        let head =
            format!("--edge\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    let request = Request::post(path)
        .header("content-type", "multipart/form-data; boundary=edge")
        .header("sec-fetch-mode", mode)
        .body(Body::from(body));
    common::send(host, request.unwrap()).await
}

const HERON: Part<'_> = ("picture", Some(("heron.png", "image/png")), b"\x89PNG");

#[tokio::test]
async fn a_page_is_searched_with_a_picture() {
    let host = Arc::new(gallery(|_| ()));
    let landing = get(&host, "/r/books").await;
    let of_form = |name: &str| landing.attributes("form[data-search]", name);
    assert_eq!(of_form("method"), ["post"]);
    assert_eq!(of_form("enctype"), ["multipart/form-data"]);
    let of_file = |name: &str| landing.attributes("input[type=file]", name);
    assert_eq!(of_file("name"), ["picture"]);
    assert_eq!(of_file("accept"), ["image/*"]);
    assert!(of_file("required").is_empty(), "words will do");
    host.asked.lock().unwrap().clear();

    for (path, action) in [
        ("/r/books", "/r/books"),
        ("/r/books/embed", "/r/books/embed"),
    ] {
        let parts: [Part<'_>; 3] = [("query", None, b"grey"), HERON, ("f.tags", None, b"sea")];
        let found = post(&host, path, &parts).await;
        assert_eq!(found.status, StatusCode::OK);
        assert_eq!(found.headers["cache-control"], "no-store");
        assert_eq!(found.robots(), "noindex, follow");
        let asked = host.asked.lock().unwrap().pop().unwrap();
        assert_eq!(
            Value::Object(asked.inputs),
            json!({"query": "grey", "picture": "data:image/png;base64,iVBORw=="})
        );
        assert!(asked.filters.is_some());
        assert_eq!(found.attributes("form[data-search]", "action"), [action]);
        assert_eq!(found.texts(".file .note"), ["Searched with heron.png."]);
        // No address holds the picture, and nobody is told of it.
        assert!(!found.body.contains("iVBORw"));
        assert_eq!(
            found.attributes("[data-results]", "data-query"),
            [r#"{"inputs":{"query":"grey"}}"#]
        );
        assert_eq!(found.attributes("[data-by-file]", "id"), ["content"]);
        assert_eq!(
            found.attributes("article a.cover", "href")[0],
            "/r/books/item/doc_0"
        );
        assert!(found.attributes("[data-share]", "data-share").is_empty());
    }
    // The name of a file that a form sent by address is no picture.
    let named = get(&host, "/r/books?picture=heron.png").await;
    assert_eq!(named.robots(), "index, follow");
    assert!(host.asked.lock().unwrap().pop().unwrap().inputs.is_empty());
}

#[tokio::test]
async fn without_script_the_picture_is_kept_for_the_other_pages() {
    let mut gallery = gallery(|_| ());
    gallery.total = 40;
    let host = Arc::new(gallery);
    let parts: [Part<'_>; 2] = [("query", None, b"grey"), HERON];
    let found = post_as("navigate", &host, "/r/books", &parts).await;
    let next = found.attributes(".paging a", "href").remove(0);
    let item = found.attributes("article a.cover", "href").remove(0);
    assert!(next.contains("picture=held%3A"), "{next}");
    // Nobody is led to it by what others are given.
    assert!(found.attributes("[data-share]", "data-share").is_empty());
    assert!(
        !found
            .attributes("link[rel=canonical]", "href")
            .iter()
            .any(|to| to.contains("held"))
    );
    host.asked.lock().unwrap().clear();

    let second = get(&host, &next).await;
    assert_eq!(
        (second.status, second.robots()),
        (StatusCode::OK, "noindex, follow".into())
    );
    let asked = host.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        (Value::Object(asked.inputs), asked.page),
        (
            json!({"query": "grey", "picture": "data:image/png;base64,iVBORw=="}),
            2
        )
    );
    assert_eq!(second.texts(".file .note"), ["Searched with heron.png."]);
    assert!(!second.body.contains("iVBORw"));
    let back = get(&host, &item).await;
    assert!(
        back.body.contains("picture=held%3A"),
        "the way back to the results"
    );

    // Nobody guesses the name of another one.
    host.asked.lock().unwrap().clear();
    let lost = next.replace("held%3A", "held%3A0");
    let lost = get(&host, &lost).await;
    assert_eq!(lost.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        lost.texts(".file .note.bad"),
        ["This file is not kept any more: choose it again."]
    );
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_form_without_a_file_leads_to_the_address_of_the_search() {
    let host = Arc::new(gallery(|_| ()));
    let parts: [Part<'_>; 3] = [
        ("query", None, b"grey heron"),
        ("picture", Some(("", "application/octet-stream")), b""),
        ("other", None, b"1"),
    ];
    let sent = post(&host, "/r/books", &parts).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER);
    assert_eq!(sent.headers["location"], "/r/books?query=grey+heron");
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_cannot_be_searched_with_is_told_beside_its_input() {
    let host = Arc::new(gallery(|_| ()));
    let large = vec![0_u8; (8 << 20) + 1];
    let cases: [(&str, &[u8], &str); 2] = [
        (
            "image/png",
            &large,
            "This file is too large: 8 MB is the most.",
        ),
        ("text/html", b"<p>", "This file is no picture."),
    ];
    for (kind, content, fault) in cases {
        let refused = post(
            &host,
            "/r/books",
            &[("picture", Some(("x", kind)), content)],
        )
        .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.texts(".file .note.bad"), [fault]);
        assert_eq!(
            refused.attributes("input[type=file]", "aria-invalid"),
            ["true"]
        );
    }
    let request = Request::post("/r/books").body(Body::from("query=sea"));
    let no_form = common::send(&host, request.unwrap()).await;
    assert_eq!(no_form.status, StatusCode::BAD_REQUEST);
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn closed_pages_take_no_files() {
    let mut locked = gallery(|_| ());
    locked.password = Some("sesame");
    locked.page.is_protected = true;
    let mut inactive = gallery(|_| ());
    inactive.is_active = false;
    for (host, status) in [
        (locked, StatusCode::FORBIDDEN),
        (inactive, StatusCode::NOT_FOUND),
    ] {
        let host = Arc::new(host);
        let reply = post(&host, "/r/books", &[HERON]).await;
        assert_eq!(reply.status, status);
        assert!(!reply.body.contains("Old books") && host.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn pages_of_results_are_as_long_as_the_owner_allows() {
    let mut short = fake(
        display(),
        &[json!({"title": "A heron"}), json!({"title": "A crane"})],
    );
    short.page.most_results = Some(2);
    short.total = 5;
    let host = Arc::new(short);
    let second = get(&host, "/r/books?query=bird&page=2").await;
    assert_eq!(host.asked.lock().unwrap()[0].page_size, 2);
    let links = second.attributes(".paging ul a", "href");
    assert_eq!(links.last().unwrap(), "/r/books?query=bird&page=3");
    assert_eq!(second.texts(".paging a[aria-current=page]"), ["2"]);
    assert_eq!(
        second.attributes("li[data-document]", "data-position"),
        ["2", "3"]
    );
    assert_eq!(
        second.attributes("a[data-more]", "href"),
        ["/r/books?query=bird&page=3"]
    );
    assert!(
        get(&host, "/r/books?query=bird&page=3")
            .await
            .texts("a[data-more]")
            .is_empty()
    );

    let mut many = fake(display(), &[json!({"title": "A heron"})]);
    many.total = 1_000_000;
    let deep = get(&Arc::new(many), "/r/books?query=bird").await;
    assert!(
        deep.attributes(".paging ul a", "href")
            .contains(&"/r/books?query=bird&page=416".to_owned()),
        "a listing goes 10 000 deep"
    );
}

#[tokio::test]
async fn a_picture_is_looked_at_as_large_as_it_is() {
    let whole = async |original: &str| {
        let mut host = gallery(|_| ());
        host.hits[0].original = Some(original.into());
        let shown = get(&Arc::new(host), "/r/books?query=bird").await;
        assert_eq!(shown.attributes("article img", "src"), ["/heron.png"]);
        shown.attributes("button[data-enlarge]", "data-full")
    };
    let large = "/v1/blobs/heron.png?expires=9&signature=a";
    assert_eq!(whole(large).await, [large]);
    // What the card shows is large already; what is no address is none.
    for other in ["/heron.png", "javascript:alert(1)", "//other.example/x.png"] {
        assert!(whole(other).await.is_empty(), "{other}");
    }
}

#[tokio::test]
async fn the_script_finds_what_it_works_with() {
    let host = Arc::new(gallery(|_| ()));
    let asked = get(&host, "/r/books?query=bird").await;
    assert_eq!(
        asked.attributes("[data-share]", "data-share"),
        ["/r/books?query=bird"]
    );
    assert_eq!(
        asked.attributes("[data-enlarge]", "aria-label"),
        ["Enlarge the picture of A heron"]
    );
    assert_eq!(
        asked.attributes("form[data-remembers]", "action"),
        ["/r/books"]
    );
    assert!(asked.attributes("[data-full]", "data-full").is_empty());
    let framed = get(&host, "/r/books/embed?query=bird").await;
    for absent in ["[data-share]", "[data-enlarge]", "[data-remembers]"] {
        assert!(framed.attributes(absent, "class").is_empty(), "{absent}");
    }
    let still = gallery(|display| {
        display["components"]["result_card"] = json!({"card_click_action": "none"})
    });
    assert!(
        get(&Arc::new(still), "/r/books?query=bird")
            .await
            .attributes("[data-enlarge]", "class")
            .is_empty()
    );
    // Neither behind a password nor for those who ask not to be followed.
    let mut protected = gallery(|_| ());
    protected.page.is_protected = true;
    assert!(
        get(&Arc::new(protected), "/r/books")
            .await
            .attributes("[data-remembers]", "class")
            .is_empty()
    );
    let request = Request::get("/r/books")
        .header("dnt", "1")
        .body(Body::empty());
    let unfollowed = common::send(&host, request.unwrap()).await;
    assert!(
        unfollowed
            .attributes("[data-remembers]", "class")
            .is_empty()
    );
}
