//! Who gets to see a page, and what it says to browsers and to sites around it.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use common::{books, display, fake, get, get_with};
use serde_json::json;

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
    assert_eq!(
        often.texts("[role=alert]"),
        ["Too many wrong passwords. Wait 7 s, then try again."]
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
