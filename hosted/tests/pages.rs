//! What visitors and search engines see.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::http::StatusCode;
use common::{books, display, fake, get};
use loupe_hosted::HostError;
use serde_json::{Value, json};

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
async fn an_item_waits_for_no_slow_search() {
    let mut slow = books();
    slow.is_slow = true;
    let host = Arc::new(slow);
    let shown = get(&host, "/r/books/item/doc_1?query=sea&f.tags=sea");
    let shown = tokio::time::timeout(std::time::Duration::from_secs(30), shown).await;
    let shown = shown.expect("a page without its neighbours");
    assert_eq!(
        (shown.status, shown.texts("h1")),
        (StatusCode::OK, vec!["Moby-Dick".to_owned()])
    );
    assert!(shown.attributes(".beside a", "href").is_empty());
    assert_eq!(
        shown.attributes(".trail a", "href"),
        ["/r/books?query=sea&f.tags=sea"]
    );
    // It was asked as what it is: nothing that a visitor searched for, and without counts.
    let asked = host.asked.lock().unwrap();
    assert!(asked[0].is_beside && asked[0].facets.is_empty() && asked[0].filters.is_some());
}

#[tokio::test]
async fn a_picture_is_opened_as_large_as_it_is() {
    let mut host = books();
    host.hits[0].original = Some("/v1/blobs/whale.png?expires=9".into());
    host.hits[1].original = Some("javascript:alert(1)".into());
    let host = Arc::new(host);
    let shown = get(&host, "/r/books/item/doc_0").await;
    let links = shown.attributes(".about-item .button", "href");
    assert_eq!(links, ["/v1/blobs/whale.png?expires=9"]);
    for other in ["/r/books/item/doc_1", "/r/books/item/doc_2"] {
        let shown = get(&host, other).await;
        assert!(!shown.body.contains("Open the picture"), "{other}");
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
