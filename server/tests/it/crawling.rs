//! Sites crawled by collections: what is read of them, what is left alone, and what comes of crawling them again.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use serde_json::{Value, json};

use crate::{
    batches::{library, process},
    both,
    fetching::serve,
    harness::Server,
};

const PNG: &[u8] = include_bytes!("../../../docs/picture.png");

/// Which paths were asked for how often, the words that opened them, and whether the site has changed or is busy.
#[derive(Clone, Default)]
struct Visits {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    words: Arc<Mutex<Vec<String>>>,
    changed: Arc<AtomicBool>,
    busy: Arc<AtomicBool>,
}

impl Visits {
    fn of(&self, path: &str) -> usize {
        self.asked.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

async fn note(State(visits): State<Visits>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let busy = visits.busy.load(Ordering::SeqCst) && path == "/harbour";
    *visits.asked.lock().unwrap().entry(path).or_default() += 1;
    if let Some(words) = request.headers().get(header::AUTHORIZATION) {
        let words = words.to_str().unwrap().to_owned();
        visits.words.lock().unwrap().push(words);
    }
    match busy {
        true => StatusCode::TOO_MANY_REQUESTS.into_response(),
        false => next.run(request).await,
    }
}

fn page(title: &str, words: &str, links: &[&str]) -> Html<String> {
    let links: String = links
        .iter()
        .map(|link| format!("<a href='{link}'>{link}</a> "))
        .collect();
    Html(format!(
        "<!doctype html><html lang=en><title>{title}</title><body><p>{words}</p>{links}"
    ))
}

async fn home(State(visits): State<Visits>) -> Html<String> {
    let links = [
        "/harbour",
        "/private/plans",
        "/endless/1",
        "/huge",
        "/broken",
        "/inside",
        "/print",
        "/paper.txt",
        "/film.mp4",
        "/old",
        "/busy",
    ];
    let links = match visits.changed.load(Ordering::SeqCst) {
        false => links.to_vec(),
        true => vec!["/paper.txt"],
    };
    page(
        "Home",
        "This site tells of harbours, of boats and of everything that floats.",
        &links,
    )
}

async fn harbour() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=en><head><title>The harbour</title><meta property='og:image' content='/lion.png'></head>\
          <body><p>Forty boats lie in the harbour, most of them are blue and one of them is red.</p>\
          <pre><code class='language-sh'>sail --out</code></pre><img src=/lion.png alt='A boat'>\
          <a href='/'>home</a><a href='/harbour#boats'>boats</a><a href='/tides.zip'>tides</a></body></html>",
    )
}

async fn endless(Path(number): Path<u64>) -> Html<String> {
    let (next, then) = (
        format!("/endless/{}", number + 1),
        format!("/endless/{}", number * 2),
    );
    page(
        "Endless",
        &format!("This is day {number} of a calendar without an end."),
        &[&next, &then],
    )
}

async fn huge() -> impl IntoResponse {
    let piece = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let pieces =
        futures::stream::iter((0..64).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
    (
        [(header::CONTENT_TYPE, "text/html")],
        Body::from_stream(pieces),
    )
}

/// A site with all that sites do to those who crawl them.
async fn site(visits: &Visits) -> String {
    let robots = || async { "User-agent: *\nDisallow: /private/\n" };
    let broken = || async {
        Html("<div><p>A broken page that <b>never <i>closes what it opens, nor <table><td>says why")
    };
    let print = || async {
        page(
            "Print",
            "The harbour, to be printed: it has another text than the page itself.",
            &[],
        )
    };
    let print = move || async move {
        let Html(text) = print().await;
        Html(format!("<link rel=canonical href='/harbour'>{text}"))
    };
    let slow = |State(visits): State<Visits>, Path(number): Path<u64>| async move {
        while !visits.changed.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        page("Slow", &format!("Page {number} takes its time."), &[])
    };
    let router = Router::new()
        .route("/", get(home))
        .route("/slow/{number}", get(slow))
        .route("/robots.txt", get(robots))
        .route("/harbour", get(harbour))
        .route(
            "/private/plans",
            get(|| async { page("Plans", "Nobody may read these plans.", &[]) }),
        )
        .route("/endless/{number}", get(endless))
        .route("/huge", get(huge))
        .route("/broken", get(broken))
        .route(
            "/inside",
            get(|| async { Redirect::temporary("http://127.0.0.1:8420/v1/health") }),
        )
        .route("/print", get(print))
        .route(
            "/paper.txt",
            get(|| async { "A plain text about rope, without any mark-up." }),
        )
        .route("/film.mp4", get(|| async { "no film" }))
        .route("/old", get(|| async { Redirect::permanent("/harbour") }))
        .route(
            "/busy",
            get(|| async { StatusCode::SERVICE_UNAVAILABLE.into_response() }),
        )
        .route(
            "/lion.png",
            get(|| async { ([(header::CONTENT_TYPE, "image/png")], PNG) }),
        )
        .layer(middleware::from_fn_with_state(visits.clone(), note))
        .with_state(visits.clone());
    serve(router, "127.0.0.2").await
}

/// A collection that crawls what a bucket's objects name; answers namespace, bucket and collection.
async fn crawling(server: &Server, name: &str, parameters: Value) -> (String, String, String) {
    let namespace = server.namespace(name).await;
    let body = json!({"bucket_name": "sites", "bucket_schema": {"properties": {"url": {"type": "string"}}}});
    let made = server
        .call_in(&namespace, "POST", "/v1/buckets", body)
        .await
        .ok();
    let bucket = made["bucket_id"].as_str().unwrap().to_owned();
    let body = json!({
        "collection_name": "pages", "source": {"type": "bucket", "bucket_ids": [bucket]},
        "feature_extractor": {"feature_extractor_name": "web_scraper", "version": "v1", "parameters": parameters},
    });
    let made = server
        .call_in(&namespace, "POST", "/v1/collections", body)
        .await
        .ok();
    let indexes = made["vector_indexes"].as_array().unwrap();
    assert_eq!(
        indexes[0]["feature_uri"],
        "loupe://web_scraper@v1/all_minilm_l6_v2_v1"
    );
    assert_eq!(
        made["output_schema"]["properties"]["page_url"]["type"],
        "string"
    );
    (
        namespace,
        bucket,
        made["collection_id"].as_str().unwrap().to_owned(),
    )
}

async fn object(server: &Server, namespace: &str, bucket: &str, url: &str) -> String {
    let path = format!("/v1/buckets/{bucket}/objects");
    let made = server
        .call_in(namespace, "POST", &path, json!({ "url": url }))
        .await
        .ok();
    made["object_id"].as_str().unwrap().to_owned()
}

async fn pages(server: &Server, namespace: &str, collection: &str) -> Vec<Value> {
    let path = format!("/v1/collections/{collection}/documents?limit=1000");
    let found = server
        .call_in(namespace, "GET", &path, Value::Null)
        .await
        .ok();
    let mut found = found["results"].as_array().unwrap().clone();
    found.sort_by_key(|one| one["page_url"].as_str().unwrap().to_owned());
    found
}

both! {
    async fn a_site_is_crawled_and_found_in(server) {
        let visits = Visits::default();
        let site = site(&visits).await;
        let parameters = json!({"max_depth": 8, "max_pages": 12, "max_retries": 1, "retry_base_delay": 0.1, "exclude_patterns": ["/huge*"]});
        let (namespace, bucket, collection) = crawling(&server, "crawling", parameters).await;
        object(&server, &namespace, &bucket, &site).await;
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let found = pages(&server, &namespace, &collection).await;
        let paths: Vec<&str> = found.iter().map(|one| one["page_url"].as_str().unwrap().strip_prefix(&site).unwrap()).collect();
        assert_eq!(found.len(), 12, "{paths:?}");
        for there in ["/", "/harbour", "/broken", "/paper.txt", "/endless/1"] {
            assert_eq!(paths.iter().filter(|path| **path == there).count(), 1, "{there} in {paths:?}");
        }
        for never in ["/private/plans", "/huge", "/film.mp4", "/tides.zip"] {
            assert_eq!(visits.of(never), 0, "{never}");
        }
        for once in ["/robots.txt", "/", "/print", "/inside", "/lion.png"] {
            assert_eq!(visits.of(once), 1, "{once}");
        }
        assert_eq!(visits.of("/busy"), 2, "once more, as asked");
        assert!(!paths.iter().any(|path| ["/print", "/old", "/inside"].contains(path)), "{paths:?}");
        let harbour = found.iter().find(|one| one["title"] == "The harbour").unwrap();
        assert!(harbour["content"].as_str().unwrap().starts_with("Forty boats lie in the harbour"), "{harbour:#}");
        assert_eq!((&harbour["crawl_depth"], &harbour["total_chunks"]), (&json!(1), &json!(1)));
        assert_eq!(harbour["parent_url"], format!("{site}/"));
        assert_eq!(harbour["code_blocks"], json!([{"language": "sh", "code": "sail --out"}]));
        assert_eq!(harbour["images"], json!([{"src": format!("{site}/lion.png"), "alt": "A boat"}]));
        assert_eq!(harbour["asset_links"], json!([format!("{site}/tides.zip")]));
        assert_eq!(harbour["_internal"]["metadata"]["language"], "en");

        let search = json!({"stage_name": "near", "stage_type": "filter", "config": {"stage_id": "feature_search", "parameters": {
            "searches": [{"feature_uri": "loupe://web_scraper@v1/all_minilm_l6_v2_v1", "query": {"input_mode": "text", "value": "ropes"}, "top_k": 3}], "final_top_k": 3}}});
        let body = json!({"collection_identifiers": [collection], "input_schema": {}, "stages": [search], "inputs": {}});
        let answer = server.call_in(&namespace, "POST", "/v1/retrievers/execute", body).await.ok();
        assert_eq!(answer["documents"][0]["page_url"], format!("{site}/paper.txt"));
    }

    async fn a_site_that_is_crawled_again_keeps_what_is_left_of_it(server) {
        let visits = Visits::default();
        let site = site(&visits).await;
        let parameters = json!({"max_depth": 1, "max_retries": 0, "chunk_strategy": "words", "chunk_size": 6, "chunk_overlap": 0,
            "include_patterns": ["/harbour", "/paper.txt"], "generate_image_embeddings": false});
        let (namespace, bucket, collection) = crawling(&server, "again", parameters).await;
        object(&server, &namespace, &bucket, &site).await;
        process(&server, &namespace, &bucket).await;
        let before = pages(&server, &namespace, &collection).await;
        let rope: Vec<&Value> = before.iter().filter(|one| one["page_url"] == format!("{site}/paper.txt")).collect();
        assert_eq!(rope.len(), 2, "{before:#?}");
        assert_eq!((&rope[0]["total_chunks"], visits.of("/lion.png"), visits.of("/broken")), (&json!(2), 0, 0));
        assert!(before.iter().any(|one| one["page_url"] == format!("{site}/harbour")));
        visits.changed.store(true, Ordering::SeqCst);
        let path = format!("/v1/collections/{collection}/trigger");
        let begun = server.call_in(&namespace, "POST", &path, json!({"dedup_strategy": "force"})).await;
        assert_eq!(begun.status, 202, "{:#}", begun.body);
        let batch = format!("/v1/batches/{}", begun.body["batch_id"].as_str().unwrap());
        crate::batches::ended(&server, &namespace, &batch).await;
        let after = pages(&server, &namespace, &collection).await;
        assert!(!after.iter().any(|one| one["page_url"] == format!("{site}/harbour")), "{after:#?}");
        let ids = |all: &[Value]| -> Vec<Value> {
            all.iter().filter(|one| one["page_url"] == format!("{site}/paper.txt")).map(|one| one["document_id"].clone()).collect()
        };
        let (mut one, mut two) = (ids(&before), ids(&after));
        one.sort_by_key(ToString::to_string);
        two.sort_by_key(ToString::to_string);
        assert_eq!(one, two, "a page that is there still keeps its documents");
    }

    async fn sites_that_take_their_time_keep_nobody_waiting(server) {
        let visits = Visits::default();
        let site = site(&visits).await;
        // Pages wait for half a minute; the model is loaded before they are asked.
        let (namespace, bucket, _) = library(&server, "text_extractor", "text").await;
        let process_one = async |title: &str| {
            let blob = json!({"property": "text", "type": "text", "data": "what waits for nobody"});
            crate::batches::object(&server, &namespace, &bucket, title, blob).await;
            process(&server, &namespace, &bucket).await
        };
        process_one("first").await;
        let mut crawls = Vec::new();
        // More batches than run at once, and more sites than there are workers.
        for name in ["one", "two", "three"] {
            let parameters = json!({"max_depth": 0, "generate_image_embeddings": false});
            let (namespace, bucket, collection) = crawling(&server, name, parameters).await;
            for number in 0..2 {
                object(&server, &namespace, &bucket, &format!("{site}/slow/{number}")).await;
            }
            let path = format!("/v1/collections/{collection}/trigger");
            let begun = server.call_in(&namespace, "POST", &path, json!({})).await;
            assert_eq!(begun.status, 202, "{:#}", begun.body);
            crawls.push((namespace, format!("/v1/batches/{}", begun.body["batch_id"].as_str().unwrap())));
        }
        let start = std::time::Instant::now();
        while visits.of("/slow/0") + visits.of("/slow/1") < 3 {
            assert!(start.elapsed().as_secs() < 180, "the sites are not asked");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let other = process_one("other").await;
        assert_eq!(other["status"], "COMPLETED", "{other:#}");
        for (namespace, batch) in &crawls {
            let status = server.call_in(namespace, "GET", batch, Value::Null).await.ok()["status"].clone();
            assert_eq!(status, "PROCESSING");
        }
        visits.changed.store(true, Ordering::SeqCst);
        for (namespace, batch) in &crawls {
            let ended = crate::batches::ended(&server, namespace, batch).await;
            assert_eq!(ended["status"], "COMPLETED", "{ended:#}");
        }
    }

    async fn a_site_that_is_busy_loses_no_pages(server) {
        let visits = Visits::default();
        let site = site(&visits).await;
        let parameters = json!({"max_depth": 1, "max_retries": 0, "include_patterns": ["/harbour", "/paper.txt"], "generate_image_embeddings": false});
        let (namespace, bucket, collection) = crawling(&server, "busy", parameters).await;
        object(&server, &namespace, &bucket, &site).await;
        process(&server, &namespace, &bucket).await;
        let before = pages(&server, &namespace, &collection).await;
        assert_eq!(before.len(), 3, "{before:#?}");
        let again = async || {
            let path = format!("/v1/collections/{collection}/trigger");
            let begun = server.call_in(&namespace, "POST", &path, json!({"dedup_strategy": "force"})).await;
            let batch = begun.body["batch_id"].as_str().unwrap().to_owned();
            let ended = crate::batches::ended(&server, &namespace, &format!("/v1/batches/{batch}")).await;
            assert_eq!(ended["status"], "COMPLETED", "{ended:#}");
            let logs = server.call_in(&namespace, "GET", &format!("/v1/buckets/{bucket}/batches/{batch}/logs"), Value::Null).await.ok();
            let warned = logs["logs"].as_array().unwrap().iter().filter(|one| one["level"] == "warning");
            warned.map(|one| one["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        visits.busy.store(true, Ordering::SeqCst);
        let warned = again().await;
        assert!(warned.len() == 1 && warned[0].contains("cut short"), "{warned:?}");
        assert_eq!(pages(&server, &namespace, &collection).await.len(), 3);
        // What is gone for good goes, once the site answers.
        visits.changed.store(true, Ordering::SeqCst);
        visits.busy.store(false, Ordering::SeqCst);
        assert_eq!(again().await, Vec::<String>::new());
        assert_eq!(pages(&server, &namespace, &collection).await.len(), 2);
    }

    async fn words_that_open_a_site_are_sent_there_and_shown_to_nobody(server) {
        const WORDS: &str = "Bearer of-the-harbour-7";
        let visits = Visits::default();
        let site = site(&visits).await;
        let parameters = json!({"max_depth": 0, "generate_image_embeddings": false, "custom_headers": {"Authorization": WORDS}});
        let (namespace, bucket, collection) = crawling(&server, "opened", parameters).await;
        object(&server, &namespace, &bucket, &site).await;
        process(&server, &namespace, &bucket).await;
        assert!(visits.words.lock().unwrap().iter().any(|words| words == WORDS));
        let shown = server.call_in(&namespace, "GET", &format!("/v1/collections/{collection}"), Value::Null).await.ok();
        let list = server.call_in(&namespace, "GET", "/v1/collections", Value::Null).await.ok();
        let path = format!("/v1/collections/{collection}/clone");
        let clone = server.call_in(&namespace, "POST", &path, json!({"collection_name": "copy"})).await.ok();
        for told in [&shown, &list, &clone] {
            assert!(!told.to_string().contains("of-the-harbour"), "{told:#}");
        }
        // But not to where somebody else says.
        let bucket_of_theirs = server.call_in(&namespace, "POST", "/v1/buckets", json!({"bucket_name": "theirs", "bucket_schema": {"properties": {"url": {"type": "string"}}}})).await.ok();
        let turned = json!({"collection_name": "turned", "source": {"type": "bucket", "bucket_ids": [bucket_of_theirs["bucket_id"]]}});
        server.call_in(&namespace, "POST", &path, turned).await.invalid(&["body", "source"], "sealed_headers");
        // A copy sends it, too; whoever only saw how it is shown sends it nowhere.
        visits.words.lock().unwrap().clear();
        let path = format!("/v1/collections/{}/trigger", clone["collection_id"].as_str().unwrap());
        let begun = server.call_in(&namespace, "POST", &path, json!({"dedup_strategy": "force"})).await;
        let batch = format!("/v1/batches/{}", begun.body["batch_id"].as_str().unwrap());
        crate::batches::ended(&server, &namespace, &batch).await;
        assert!(visits.words.lock().unwrap().iter().any(|words| words == WORDS));
        let refuse = async |parameters: Value, path: &[&str]| {
            let body = json!({"collection_name": "stolen", "source": {"type": "bucket", "bucket_ids": [bucket]},
                "feature_extractor": {"feature_extractor_name": "web_scraper", "version": "v1", "parameters": parameters}});
            let path: Vec<&str> = ["body", "feature_extractor", "parameters"].iter().chain(path).copied().collect();
            server.call_in(&namespace, "POST", "/v1/collections", body).await.invalid(&path, "value_error");
        };
        refuse(shown["feature_extractor"]["parameters"].clone(), &["custom_headers", "Authorization"]).await;
        refuse(json!({"llm_api_key": "sk-1"}), &["llm_api_key"]).await;
    }

    async fn what_cannot_be_crawled_says_why(server) {
        let visits = Visits::default();
        let site = site(&visits).await;
        let (namespace, bucket, _) = crawling(&server, "refused", json!({"max_retries": 0})).await;
        let mut reasons = BTreeMap::new();
        for (url, reason) in [
            ("http://127.0.0.1:8420/".to_owned(), "public internet"),
            (format!("{site}/inside"), "public internet"),
            (format!("{site}/private/plans"), "robots.txt"),
            (format!("{site}/huge"), "larger than"),
            (format!("{site}/lion.png"), "picture"),
            (format!("{site}/none"), "answers 404"),
            (format!("{site}/busy"), "answers 503"),
            ("ftp://a.example/".to_owned(), "no address of a page"),
        ] {
            reasons.insert(object(&server, &namespace, &bucket, &url).await, (url, reason));
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "FAILED", "{batch:#}");
        let path = format!("/v1/buckets/{bucket}/batches/{}/failed-documents?limit=100", batch["batch_id"].as_str().unwrap());
        let failed = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        let failed = failed["results"].as_array().unwrap().clone();
        assert_eq!(failed.len(), reasons.len(), "{failed:#?}");
        for one in failed {
            let (url, reason) = &reasons[one["object_id"].as_str().unwrap()];
            let told = one["error"].as_str().unwrap();
            assert!(told.contains(reason), "{url}: {one:#}");
        }
        for (parameters, member) in [
            (json!({"render_strategy": "javascript"}), "render_strategy"),
            (json!({"proxies": ["http://p.example"]}), "proxies"),
            (json!({"captcha_service_provider": "x"}), "captcha_service_provider"),
            (json!({"youtube_mode": "force"}), "youtube_mode"),
            (json!({"crawl_mode": "semantic"}), "crawl_goal"),
            (json!({"include_patterns": ["^/docs/.*$"]}), "include_patterns"),
            (json!({"max_pages": 501}), "max_pages"),
            (json!({"custom_headers": {"a b": "c"}}), "custom_headers"),
            (json!({"response_shape": {"year": "integer"}}), "response_shape"),
            (json!({"max_page": 5}), "max_page"),
        ] {
            let body = json!({
                "collection_name": "refused", "source": {"type": "bucket", "bucket_ids": [bucket]},
                "feature_extractor": {"feature_extractor_name": "web_scraper", "version": "v1", "parameters": parameters},
            });
            server.call_in(&namespace, "POST", "/v1/collections", body).await
                .invalid(&["body", "feature_extractor", "parameters", member], "value_error");
        }
    }
}
