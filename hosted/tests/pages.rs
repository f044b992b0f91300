//! What visitors and search engines see.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use common::{Fake, display, fake, get, get_with};
use loupe_hosted::{HostError, Media, MediaKind, Picture};
use serde_json::{Value, json};

fn books() -> Fake {
    fake(
        display(),
        &[
            json!({"title": "The sea wolf", "description": "A tale of the sea.", "tags": ["sea"], "year": 1904, "secret": "s3cr3t"}),
            json!({"title": "Moby-Dick", "description": "A whale.", "tags": ["sea"], "year": 1851, "secret": "s3cr3t"}),
            json!({"title": "Walden", "description": "A pond.", "tags": [], "year": 1854}),
        ],
    )
}

#[tokio::test]
async fn the_landing_page_is_indexed_and_a_query_is_not() {
    let host = Arc::new(books());
    let landing = get(&host, "/r/books").await;
    assert_eq!(landing.status, StatusCode::OK);
    assert_eq!(landing.robots(), "index, follow");
    assert_eq!(
        landing.attributes("link[rel=canonical]", "href"),
        ["https://search.example.com/r/books"]
    );
    assert_eq!(landing.texts("h1"), ["Old books"]);
    assert_eq!(landing.texts("article h3").len(), 3);
    assert!(
        landing
            .texts("script[type='application/ld+json']")
            .concat()
            .contains("SearchAction")
    );
    let asked = get(&host, "/r/books?query=sea").await;
    assert_eq!(asked.robots(), "noindex, follow");
    assert_eq!(
        get(&host, "/r/books?page=2").await.robots(),
        "noindex, follow"
    );
    assert_eq!(
        asked.texts("mark"),
        ["sea", "sea"],
        "title and text of the one document about it"
    );
    assert_eq!(
        asked.texts("[role=status]"),
        ["3 results for “sea” in 7 ms"]
    );
    assert_eq!(asked.attributes("input[name=query]", "value"), ["sea"]);
}

#[tokio::test]
async fn only_exposed_fields_are_shown_and_asked_about() {
    let host = Arc::new(books());
    for path in ["/r/books", "/r/books?query=sea", "/r/books/item/doc_0"] {
        let reply = get(&host, path).await;
        assert!(
            !reply.body.contains("s3cr3t") && !reply.body.contains("feature_uri"),
            "{path}"
        );
    }
    get(
        &host,
        "/r/books?query=sea&f.secret=s3cr3t&f.tags=sea&admin=1",
    )
    .await;
    let asked = host.asked.lock().unwrap().pop().unwrap();
    assert_eq!(Value::Object(asked.inputs), json!({"query": "sea"}));
    assert_eq!(
        asked.filters,
        Some(json!({"AND": [{"field": "tags", "operator": "in", "value": ["sea"]}]}))
    );
    assert_eq!(asked.facets, ["tags"]);
}

#[tokio::test]
async fn pages_are_numbered_links_that_keep_the_query() {
    let mut books = books();
    books.total = 240;
    let host = Arc::new(books);
    let reply = get(&host, "/r/books?query=sea&f.tags=sea&page=5").await;
    let links = reply.attributes(".paging a", "href");
    assert!(
        links.contains(&"/r/books?query=sea&f.tags=sea&page=4".to_owned()),
        "{links:?}"
    );
    assert!(
        links.contains(&"/r/books?query=sea&f.tags=sea".to_owned()),
        "the first page has no number"
    );
    assert_eq!(reply.texts(".paging a[aria-current=page]"), ["5"]);
    assert_eq!(reply.attributes(".chip.on", "href"), ["/r/books?query=sea"]);
    assert_eq!(host.asked.lock().unwrap()[0].page, 5);
}

#[tokio::test]
async fn nothing_found_and_nothing_worked_are_two_views() {
    let mut none = fake(display(), &[]);
    none.total = 0;
    let host = Arc::new(none);
    let empty = get(&host, "/r/books?query=unicorn&f.tags=sea").await;
    assert_eq!(empty.status, StatusCode::OK);
    assert_eq!(empty.texts(".state h2"), ["Nothing found for “unicorn”"]);
    assert_eq!(
        empty.attributes(".ways a", "href"),
        ["/r/books?query=unicorn"]
    );
    assert_eq!(empty.texts(".state .suggestions a"), ["sea stories"]);
    let cases: [(fn() -> HostError, StatusCode); 4] = [
        (
            || HostError::Failed("disk on fire at node 3".into()),
            StatusCode::SERVICE_UNAVAILABLE,
        ),
        (|| HostError::Timeout, StatusCode::GATEWAY_TIMEOUT),
        (
            || HostError::Invalid("stage 2".into()),
            StatusCode::BAD_REQUEST,
        ),
        (
            || HostError::Busy { retry_after_s: 9 },
            StatusCode::TOO_MANY_REQUESTS,
        ),
    ];
    for (error, status) in cases {
        let mut failing = books();
        failing.error = Some(error);
        let reply = get(&Arc::new(failing), "/r/books?query=unicorn").await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.attributes("input[name=query]", "value"), ["unicorn"]);
        assert!(
            !reply.body.contains("Nothing found")
                && !reply.body.contains("node 3")
                && !reply.body.contains("stage 2")
        );
        assert_eq!(
            reply.headers.contains_key("retry-after"),
            status == StatusCode::TOO_MANY_REQUESTS
        );
    }
}

#[tokio::test]
async fn an_item_has_its_own_page_with_a_way_back_and_on() {
    let host = Arc::new(books());
    let reply = get(&host, "/r/books/item/doc_1?query=sea").await;
    assert_eq!(reply.texts("h1"), ["Moby-Dick"]);
    assert_eq!(
        reply.attributes("link[rel=canonical]", "href"),
        ["https://search.example.com/r/books/item/doc_1"]
    );
    assert_eq!(
        reply.attributes(".beside a", "href"),
        [
            "/r/books/item/doc_0?query=sea",
            "/r/books/item/doc_2?query=sea"
        ]
    );
    assert_eq!(reply.attributes(".trail a", "href"), ["/r/books?query=sea"]);
    let alone = get(&host, "/r/books/item/doc_1").await;
    assert_eq!(alone.robots(), "index, follow");
    assert!(
        alone
            .texts("script[type='application/ld+json']")
            .concat()
            .contains("CreativeWork")
    );
    assert_eq!(
        host.asked.lock().unwrap().len(),
        1,
        "no search without a query"
    );
    assert_eq!(
        get(&host, "/r/books/item/doc_9").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn closed_pages_tell_nothing() {
    let missing = get(&Arc::new(books()), "/r/other").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let mut inactive = books();
    inactive.is_active = false;
    let mut protected = books();
    protected.password = Some("sesame");
    protected.page.is_protected = true;
    protected.page.display_config.icon_base64 = Some("iVBORw0KGgo=".into());
    for (host, status) in [
        (inactive, StatusCode::NOT_FOUND),
        (protected, StatusCode::FORBIDDEN),
    ] {
        let host = Arc::new(host);
        for path in ["/r/books", "/r/books?query=sea", "/r/books/item/doc_0"] {
            let reply = get(&host, path).await;
            assert_eq!(reply.status, status, "{path}");
            assert!(
                !reply.body.contains("Old books")
                    && !reply.body.contains("sea wolf")
                    && !reply.body.contains("canonical")
            );
            assert_eq!(reply.robots(), "noindex, nofollow");
            if status == StatusCode::NOT_FOUND {
                let nonce =
                    |reply: &common::Reply| reply.attributes("head > style", "nonce").concat();
                let same = reply.body.replace(&nonce(&reply), "")
                    == missing.body.replace(&nonce(&missing), "");
                assert!(
                    same,
                    "a page that was taken down looks as one that never was"
                );
            }
        }
        assert_eq!(
            get(&host, "/r/books/icon").await.status,
            StatusCode::NOT_FOUND
        );
        assert!(host.asked.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_password_opens_a_page_and_nothing_keeps_it() {
    let mut protected = books();
    protected.password = Some("sesame");
    protected.page.is_protected = true;
    let host = Arc::new(protected);
    let locked = get(&host, "/r/books?query=sea").await;
    assert_eq!(locked.attributes("form", "action"), ["/r/books/unlock"]);
    assert_eq!(
        locked.attributes("input[name=to]", "value"),
        ["/r/books?query=sea"]
    );
    assert_eq!(locked.headers["cache-control"], "no-store");
    let post = async |fields: &str| {
        let request = Request::post("/r/books/unlock")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(fields.to_owned()));
        common::send(&host, request.unwrap()).await
    };
    let wrong = post("password=open&to=/r/books%3Fquery%3Dsea").await;
    assert_eq!(wrong.status, StatusCode::FORBIDDEN);
    assert_eq!(
        wrong.texts("[role=alert]"),
        ["This is not the password of this page."]
    );
    assert!(!wrong.headers.contains_key("set-cookie") && !wrong.body.contains("Old books"));
    let often = post("password=again+and+again").await;
    assert_eq!(
        (often.status, often.headers["retry-after"].to_str().unwrap()),
        (StatusCode::TOO_MANY_REQUESTS, "7")
    );
    let right = post("password=sesame&to=/r/books%3Fquery%3Dsea").await;
    assert_eq!(right.status, StatusCode::SEE_OTHER);
    assert_eq!(right.headers["location"], "/r/books?query=sea");
    assert_eq!(right.headers["set-cookie"], "key=sesame");
    let elsewhere = post("password=sesame&to=https://evil.example/").await;
    assert_eq!(elsewhere.headers["location"], "/r/books");
    for path in ["/r/books", "/r/books?query=sea", "/r/books/item/doc_0"] {
        let request = Request::get(path)
            .header("cookie", "key=sesame")
            .body(Body::empty());
        let open = common::send(&host, request.unwrap()).await;
        assert_eq!(open.status, StatusCode::OK);
        assert_eq!(
            (
                open.robots().as_str(),
                open.headers["cache-control"].to_str().unwrap()
            ),
            ("noindex, nofollow", "no-store"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn what_visitors_do_is_told_unless_they_ask_not_to_be_followed() {
    let host = Arc::new(books());
    let reply = get(&host, "/r/books?query=sea&page=2").await;
    let attribute = |name: &str| reply.attributes("[data-results]", name).concat();
    assert_eq!(
        attribute("data-beacon"),
        "/v1/public/retrievers/books/interactions/batch"
    );
    assert_eq!(attribute("data-execution"), "exec_1");
    assert_eq!(attribute("data-query"), r#"{"inputs":{"query":"sea"}}"#);
    assert_eq!(
        reply.attributes("li[data-document]", "data-document"),
        ["doc_0", "doc_1", "doc_2"]
    );
    let places: Vec<u64> = reply
        .attributes("li[data-document]", "data-position")
        .iter()
        .map(|place| place.parse().unwrap())
        .collect();
    assert!(places[0] > 0 && places[1] == places[0] + 1, "{places:?}");
    assert_eq!(
        get(&host, "/r/books/item/doc_1")
            .await
            .attributes("[data-item]", "data-item"),
        ["doc_1"]
    );
    // The landing page is the same page, whichever search filled it.
    let tag = get(&host, "/r/books").await.headers["etag"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        get_with(&host, "/r/books", Some(&tag)).await.status,
        StatusCode::NOT_MODIFIED
    );
    for header in ["dnt", "sec-gpc"] {
        for path in ["/r/books?query=sea", "/r/books/item/doc_1"] {
            let request = Request::get(path).header(header, "1").body(Body::empty());
            let unfollowed = common::send(&host, request.unwrap()).await;
            assert!(
                unfollowed
                    .attributes("[data-beacon]", "data-beacon")
                    .is_empty(),
                "{header} {path}"
            );
            assert!(
                unfollowed
                    .attributes("[data-execution]", "data-execution")
                    .is_empty(),
                "{header} {path}"
            );
        }
    }
}

#[tokio::test]
async fn a_page_that_waits_asks_nothing() {
    let mut waiting = books();
    waiting.page.allows_empty_query = false;
    let host = Arc::new(waiting);
    let reply = get(&host, "/r/books").await;
    assert_eq!(reply.texts("article").len(), 0);
    assert_eq!(reply.texts(".suggestions a"), ["sea stories"]);
    assert!(host.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn headers_keep_a_page_safe_and_fresh() {
    let host = Arc::new(books());
    let first = get(&host, "/r/books").await;
    let nonce = first.attributes("head > style", "nonce").concat();
    let policy = first.headers["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(nonce.len() == 32 && policy.contains(&format!("style-src 'self' 'nonce-{nonce}'")));
    assert!(!policy.contains("unsafe"));
    assert_eq!(first.headers["x-content-type-options"], "nosniff");
    assert!(
        first.attributes("[style]", "style").is_empty(),
        "the policy refuses style attributes"
    );
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    let again = get_with(&host, "/r/books", Some(&tag)).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    assert!(
        !again.headers.contains_key("content-security-policy"),
        "it would name another nonce"
    );
    assert_eq!(
        get(&host, "/r/books?query=sea").await.headers["cache-control"],
        "no-store"
    );
}

#[tokio::test]
async fn machines_find_the_map() {
    let host = Arc::new(books());
    let map = get(&host, "/sitemap.xml").await;
    assert!(
        map.body
            .contains("<loc>https://search.example.com/r/books</loc><lastmod>1970-01-01</lastmod>")
    );
    assert!(
        get(&host, "/robots.txt")
            .await
            .body
            .contains("Sitemap: https://search.example.com/sitemap.xml")
    );
}

#[tokio::test]
async fn a_full_page_is_small() {
    let long = "A sentence of the ordinary kind, with a number 17 and a name. ".repeat(40);
    let fields: Vec<Value> = (0..24)
        .map(|index| json!({"title": format!("Book {index}"), "description": format!("{index} {long}"), "tags": ["sea", index.to_string()], "year": 1800 + index}))
        .collect();
    let reply = get(
        &Arc::new(fake(display(), &fields)),
        "/r/books?query=sentence",
    )
    .await;
    let mut packed = Vec::new();
    let params = brotli::enc::BrotliEncoderParams {
        quality: 5,
        ..Default::default()
    };
    brotli::BrotliCompress(&mut reply.body.as_bytes(), &mut packed, &params).unwrap();
    assert!(packed.len() < 10_000, "{} bytes", packed.len());
    let unsized_images = reply
        .dom()
        .select(&scraper::Selector::parse("img:not([width])").unwrap())
        .count();
    assert_eq!(unsized_images, 0);
}

#[tokio::test]
async fn a_frame_of_another_site_gets_the_search_alone() {
    let host = Arc::new(books());
    let policy = |page: &common::Reply| {
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        policy.rsplit("frame-ancestors ").next().unwrap().to_owned()
    };
    let framed = get(&host, "/r/books/embed?query=sea").await;
    assert_eq!(framed.status, StatusCode::OK);
    assert_eq!(policy(&framed), "*");
    assert_eq!(policy(&get(&host, "/r/books").await), "'self'");
    assert_eq!(framed.robots(), "noindex, follow");
    assert_eq!(framed.texts("article h3").len(), 3);
    assert!(framed.texts("header.top").is_empty());
    // Searches stay in the frame, results leave it.
    assert_eq!(
        framed.attributes("form[data-search]", "action"),
        ["/r/books/embed"]
    );
    let results = framed.attributes("article a.cover", "href");
    assert!(
        results
            .iter()
            .all(|href| href.starts_with("/r/books/item/")),
        "{results:?}"
    );
    assert!(
        framed
            .attributes("article a.cover", "target")
            .iter()
            .all(|target| target == "_blank")
    );

    let mut chosen = display();
    chosen["extensions"] = json!({"embed": {"frame_ancestors": ["https://shop.example", "*", "https://x.example; script-src *"]}});
    let host = Arc::new(fake(chosen, &[]));
    assert_eq!(
        policy(&get(&host, "/r/books/embed").await),
        "'self' https://shop.example"
    );
    let mut locked = books();
    locked.page.is_protected = true;
    assert_eq!(
        policy(&get(&Arc::new(locked), "/r/books/embed").await),
        "'self'"
    );
    assert_eq!(
        get(&Arc::new(books()), "/r/nothing/embed").await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn files_open_at_the_place_that_was_found() {
    let mut host = books();
    host.hits[1].media = Some(Media {
        kind: MediaKind::Video,
        url: "/v1/blobs/film.mp4?expires=9".into(),
        start: Some(65.5),
        ..Media::default()
    });
    host.hits[1].thumbnail = Some(Picture {
        url: "/small.webp".into(),
        ..Picture::default()
    });
    host.hits[2].media = Some(Media {
        url: "javascript:alert(1)".into(),
        ..Media::default()
    });
    let host = Arc::new(host);
    let film = get(&host, "/r/books/item/doc_1?query=whale").await;
    let address = "/v1/blobs/film.mp4?expires=9#t=65.5";
    assert_eq!(film.attributes("video", "src"), [address]);
    assert_eq!(film.attributes("video", "poster"), ["/small.webp"]);
    assert_eq!(film.attributes(".about-item a", "href"), [address]);
    assert_eq!(film.texts(".about-item a"), ["Open the video at 1:05"]);
    assert_eq!(film.texts("mark"), ["whale"]);
    let hostile = get(&host, "/r/books/item/doc_2").await;
    assert!(hostile.attributes("video", "src").is_empty() && !hostile.body.contains("javascript:"));

    // A file elsewhere, in a field that the owner named for it.
    let mut mapped = display();
    mapped["exposed_fields"] = json!(["title", "scan", "page_number"]);
    mapped["field_mappings"] = json!({"pdf": "scan", "video": "secret"});
    let fields = json!({"title": "Log", "scan": "https://a.example/x.pdf", "page_number": 3, "secret": "https://a.example/x.mp4"});
    let paper = get(&Arc::new(fake(mapped, &[fields])), "/r/books/item/doc_0").await;
    assert_eq!(
        paper.attributes(".about-item .button", "href"),
        ["https://a.example/x.pdf#page=3"]
    );
    assert!(paper.attributes("video", "src").is_empty());
}

#[tokio::test]
async fn what_is_missing_is_said_and_is_no_empty_result() {
    let mut late = books();
    late.is_partial = true;
    let late = get(&Arc::new(late), "/r/books").await;
    assert_eq!(late.status, StatusCode::OK);
    assert_eq!(late.texts("[data-partial]").len(), 1);
    assert_eq!(late.headers["cache-control"], "no-store");
    let mut nothing = fake(display(), &[]);
    nothing.is_partial = true;
    let nothing = get(&Arc::new(nothing), "/r/books?query=sea").await;
    assert_eq!(nothing.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(nothing.texts(".state h2"), ["The search was not finished"]);
    assert!(!nothing.body.contains("Nothing found"));
}

#[tokio::test]
async fn a_page_without_a_picture_of_its_own_gets_one() {
    let drawn = get(&Arc::new(books()), "/r/books").await;
    let image = drawn.attributes("meta[property='og:image']", "content");
    assert!(
        image[0].starts_with("https://search.example.com/r/books/preview.png?v="),
        "{image:?}"
    );
    assert_eq!(
        drawn.attributes("meta[property='og:image:width']", "content"),
        ["1200"]
    );
    assert_eq!(
        drawn.attributes("meta[name='twitter:image']", "content"),
        image
    );
    assert_eq!(
        drawn.attributes("meta[name='twitter:card']", "content"),
        ["summary_large_image"]
    );
    let mut own = display();
    own["seo"] = json!({"og_image_url": "/own.png"});
    let own = get(&Arc::new(fake(own, &[])), "/r/books").await;
    assert_eq!(
        own.attributes("meta[property='og:image']", "content"),
        ["https://search.example.com/own.png"]
    );
    assert!(!own.body.contains("og:image:width"));
    let mut closed = books();
    closed.page.is_protected = true;
    let closed = get(&Arc::new(closed), "/r/books").await;
    assert!(!closed.body.contains("preview.png"));
}
