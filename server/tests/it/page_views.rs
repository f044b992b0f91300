//! What a public page shows beside its results: files at the place that was found, the picture for links, old names, and what
//! is there when something does not answer.

use std::time::{Duration, Instant};

use axum::{Router, body::Body, http::Request};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use loupe_engine::store::{CollectionSpec, Document, document_id};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{
    bad_input::{pdf, pdf_of},
    batches::process,
    both,
    fetching::serve,
    harness::{Answer, Server},
    stages::{collection, retriever, stage},
};

/// Asks as a visitor does; where it is led on is an answer.
async fn visit(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    #[expect(clippy::disallowed_methods, reason = "a test asks its own server")]
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let mut request = client.request(method.parse().unwrap(), format!("{}{path}", server.url));
    if method == "POST" {
        request = request.json(&json!({"inputs": {}}));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Server::send(request).await
}

async fn look(server: &Server, path: &str) -> Answer {
    visit(server, "GET", path, &[]).await
}

fn text(answer: &Answer) -> &str {
    answer.body.as_str().unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers[name].to_str().unwrap()
}

fn page(name: &str, title: &str, exposed: &[&str]) -> Value {
    json!({"public_name": name, "display_config": {"title": title, "inputs": [], "exposed_fields": exposed}})
}

fn all() -> Value {
    stage(
        "attribute_filter",
        json!({"field": "title", "operator": "exists"}),
    )
}

/// A page over films with these titles; answers the namespace and the path that publishes it.
async fn films(server: &Server, titles: &[String], page: Value) -> (String, String) {
    let namespace = server.namespace("films").await;
    let films: Vec<Value> = titles.iter().map(|title| json!({"title": title})).collect();
    let films = collection(server, &namespace, "films", &films).await;
    let id = retriever(server, &namespace, &films, vec![all()]).await;
    let path = format!("/v1/retrievers/{id}/publish");
    server.call_in(&namespace, "POST", &path, page).await.ok();
    (namespace, path)
}

fn some(number: usize) -> Vec<String> {
    (0..number).map(|n| format!("Film number {n}")).collect()
}

/// The address of the first link whose text this is.
fn link<'a>(page: &'a str, said: &str) -> &'a str {
    let before = page.split(said).next().unwrap();
    assert_ne!(before.len(), page.len(), "no {said} in {page}");
    let from = before.rfind("href=\"").unwrap() + 6;
    before[from..].split('"').next().unwrap()
}

both! {
    async fn a_pdf_opens_at_the_page_that_was_found(server) {
        let namespace = server.namespace("papers").await;
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}, "paper": {"type": "pdf"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let papers = json!({"collection_name": "papers", "source": {"type": "bucket", "bucket_ids": [bucket]}, "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "paper"},
            "parameters": {"split_by": "pages", "chunk_size": 1}, "field_passthrough": [{"source_path": "title"}]}});
        let papers = server.call_in(&namespace, "POST", "/v1/collections", papers).await.ok()["collection_id"].as_str().unwrap().to_owned();
        let blob = json!({"property": "paper", "type": "pdf", "data": format!("data:application/pdf;base64,{}", STANDARD.encode(pdf("An engine of steam")))});
        server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects"), json!({"title": "Engines", "blobs": [blob]})).await.ok();
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let documents = server.call_in(&namespace, "GET", &format!("/v1/collections/{papers}/documents"), Value::Null).await.ok();
        let document = documents["results"][0]["document_id"].as_str().unwrap();
        let id = retriever(&server, &namespace, &papers, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        // Without a configuration the file is among what is shown.
        server.call_in(&namespace, "POST", &publish, json!({"public_name": "papers"})).await.ok();
        let made = server.call_in(&namespace, "GET", &publish, Value::Null).await.ok();
        assert!(made["display_config"]["exposed_fields"].as_array().unwrap().contains(&json!("paper")), "{made:#}");
        let item = format!("/r/papers/item/{document}");
        // The beginning of an hour.
        server.app.clock().advance(3600 - server.app.clock().now().timestamp().rem_euclid(3600));
        let shown = look(&server, &item).await;
        let file = link(text(&shown), "Open the PDF at page 1").replace("&amp;", "&");
        let file = file.strip_suffix("#page=1").expect("a page").to_owned();
        let file = file.strip_prefix(&server.app.config().address()).expect("this server").to_owned();
        let opened = look(&server, &file).await;
        assert_eq!((opened.status, header(&opened, "content-type")), (200, "application/pdf"));
        assert!(!opened.headers.contains_key("content-security-policy"), "viewers show nothing under one");
        // What browsers have kept they find again: the page is the same a moment later.
        server.app.clock().advance(60);
        let tag = header(&shown, "etag").to_owned();
        assert_eq!(visit(&server, "GET", &item, &[("if-none-match", &tag)]).await.status, 304);
        // Where the field is not shown, the file is not either.
        server.call_in(&namespace, "POST", &publish, page("papers", "Papers", &["title", "text"])).await.ok();
        let shown = look(&server, &item).await;
        assert!(text(&shown).contains("Engines") && !text(&shown).contains("Open the PDF"), "{}", text(&shown));
    }

    async fn an_item_lists_the_places_of_its_file(server) {
        let namespace = server.namespace("papers").await;
        let bucket = json!({"bucket_name": "files", "bucket_schema": {"properties": {"title": {"type": "string"}, "paper": {"type": "pdf"}}}});
        let bucket = server.call_in(&namespace, "POST", "/v1/buckets", bucket).await.ok()["bucket_id"].as_str().unwrap().to_owned();
        let papers = json!({"collection_name": "papers", "source": {"type": "bucket", "bucket_ids": [bucket]}, "feature_extractor": {
            "feature_extractor_name": "text_extractor", "version": "v1", "input_mappings": {"text": "paper"},
            "parameters": {"split_by": "pages", "chunk_size": 1}, "field_passthrough": [{"source_path": "title"}]}});
        let papers = server.call_in(&namespace, "POST", "/v1/collections", papers).await.ok()["collection_id"].as_str().unwrap().to_owned();
        for (title, pages) in [("Engines", &["An engine of steam", "A kettle of copper"][..]), ("Ships", &["A hull of iron"])] {
            let blob = json!({"property": "paper", "type": "pdf", "data": format!("data:application/pdf;base64,{}", STANDARD.encode(pdf_of(pages)))});
            server.call_in(&namespace, "POST", &format!("/v1/buckets/{bucket}/objects"), json!({"title": title, "blobs": [blob]})).await.ok();
        }
        let batch = process(&server, &namespace, &bucket).await;
        assert_eq!(batch["status"], "COMPLETED", "{batch:#}");
        let id = retriever(&server, &namespace, &papers, vec![all()]).await;
        let publish = format!("/v1/retrievers/{id}/publish");
        server.call_in(&namespace, "POST", &publish, page("papers", "Papers", &["title", "text", "paper"])).await.ok();
        let documents = server.call_in(&namespace, "GET", &format!("/v1/collections/{papers}/documents"), Value::Null).await.ok();
        let documents = documents["results"].as_array().unwrap();
        let of = |words: &str| documents.iter().find(|one| one["text"].as_str().unwrap().contains(words)).unwrap()["document_id"].as_str().unwrap().to_owned();
        let item = |words: &str| format!("/r/papers/item/{}", of(words));
        // The beginning of an hour: addresses of files are the same within one.
        server.app.clock().advance(3600 - server.app.clock().now().timestamp().rem_euclid(3600));
        let first = look(&server, &item("engine")).await;
        let shown = text(&first);
        assert!(shown.contains("In this PDF") && shown.contains("A kettle of copper") && !shown.contains("A hull of iron"), "{shown}");
        assert_eq!(link(shown, "Page 2"), item("kettle"));
        let second = look(&server, &item("kettle")).await;
        assert!(text(&second).contains("Open the PDF at page 2"), "{}", text(&second));
        let alone = look(&server, &item("hull")).await;
        assert!(!text(&alone).contains("data-moments"), "{}", text(&alone));
        // Where the field is not shown, nothing tells which places there are.
        server.call_in(&namespace, "POST", &publish, page("papers", "Papers", &["title", "text"])).await.ok();
        let shown = look(&server, &item("engine")).await;
        assert!(!text(&shown).contains("data-moments") && !text(&shown).contains("kettle"), "{}", text(&shown));
    }

    async fn a_long_recording_is_listed_around_what_is_shown_and_by_no_server_without_room(server) {
        const SCENES: usize = 320;
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let id = |number: usize| document_id(&films, "obj_film", &number.to_string());
        let film = json!({"field": "film", "role": "source", "content_type": "video/mp4", "url": "blob://film.mp4", "filename": "film.mp4"});
        let scene = |number: usize| {
            let internal = json!({"document_id": id(number), "collection_id": films, "namespace_id": namespace, "mime_type": "video/mp4",
                "document_blobs": [film], "lineage": {"root_object_id": "obj_film"}});
            let payload = json!({"title": format!("Scene {number}"), "start_time": number, "_internal": internal});
            let payload = payload.as_object().cloned().unwrap();
            Document { document_id: id(number), collection_id: films.clone(), payload: payload.into(), ..Default::default() }
        };
        let spec = CollectionSpec { namespace_id: namespace.clone(), collection_id: films.clone(), vectors: Vec::new() };
        server.app.store().upsert(&spec, (0..SCENES).map(scene).collect()).await.unwrap();
        let retriever = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = format!("/v1/retrievers/{retriever}/publish");
        server.call_in(&namespace, "POST", &publish, page("films", "Films", &["title", "film"])).await.ok();
        // The beginning of an hour: addresses of files are the same within one.
        server.app.clock().advance(3600 - server.app.clock().now().timestamp().rem_euclid(3600));
        for (number, listed, others) in [(0, [0, 1, 59], [60, 319]), (310, [281, 309, 319], [0, 200]), (319, [290, 300, 319], [0, 200])] {
            let shown = look(&server, &format!("/r/films/item/{}", id(number))).await;
            let has = |scene: usize| text(&shown).contains(&format!("href=\"/r/films/item/{}\"", id(scene)));
            assert!(listed.into_iter().all(has) && !others.into_iter().any(has), "{number}: {}", text(&shown));
        }
        // It is as much work as a search: where there is no turn the item is shown without it.
        let mut held = Vec::new();
        while let Ok(turn) = server.app.turns.take().await {
            held.push(turn);
        }
        let shown = look(&server, &format!("/r/films/item/{}", id(310))).await;
        assert_eq!(shown.status, 200);
        assert!(text(&shown).contains("Scene 310") && !text(&shown).contains("data-moments"), "{}", text(&shown));
    }

    async fn pictures_have_their_size_and_are_opened_where_their_field_is_shown(server) {
        let namespace = server.namespace("prints").await;
        let prints = collection(&server, &namespace, "prints", &[]).await;
        let id = document_id(&prints, "obj_print", "0");
        let scan = json!({"field": "scan", "role": "source", "type": "image", "content_type": "image/png", "url": "blob://scan.png", "filename": "scan.png"});
        let small = json!({"field": "thumbnail", "role": "thumbnail", "type": "image", "content_type": "image/webp", "url": "blob://small.webp", "filename": "small.webp"});
        let internal = json!({"document_id": id, "collection_id": prints, "namespace_id": namespace, "mime_type": "image/png", "document_blobs": [scan, small]});
        let payload = json!({"title": "A heron", "width": 421, "height": 633, "_internal": internal});
        let payload = payload.as_object().cloned().unwrap();
        let print = Document { document_id: id.clone(), collection_id: prints.clone(), payload: payload.into(), ..Default::default() };
        let spec = CollectionSpec { namespace_id: namespace.clone(), collection_id: prints.clone(), vectors: Vec::new() };
        server.app.store().upsert(&spec, vec![print]).await.unwrap();
        let retriever = retriever(&server, &namespace, &prints, vec![all()]).await;
        let publish = format!("/v1/retrievers/{retriever}/publish");
        for exposed in [&["title"][..], &["title", "scan"]] {
            let mut body = page("prints", "Prints", exposed);
            body["display_config"]["layout"] = json!({"mode": "masonry"});
            server.call_in(&namespace, "POST", &publish, body).await.ok();
            let sized = "width=\"421\" height=\"633\"";
            let cards = look(&server, "/r/prints").await;
            assert!(text(&cards).contains(sized), "{}", text(&cards));
            // What the script shows large.
            let large = text(&cards).split("data-full=\"").nth(1).map(|rest| rest.split('"').next().unwrap().contains("scan.png"));
            assert_eq!(large, (exposed.len() > 1).then_some(true), "{}", text(&cards));
            let item = look(&server, &format!("/r/prints/item/{id}")).await;
            assert!(text(&item).contains(sized), "{}", text(&item));
            assert_eq!(text(&item).contains("Open the picture"), exposed.len() > 1, "{}", text(&item));
            let told = visit(&server, "POST", "/v1/public/retrievers/prints/execute", &[]).await.ok();
            let told = &told["documents"][0];
            assert_eq!((&told["thumbnail_width"], &told["thumbnail_height"], told.get("width")), (&json!(421), &json!(633), None), "{told:#}");
            let large = told["thumbnail_full_url"].as_str().map(|large| large.contains("scan.png"));
            assert_eq!((told["thumbnail_url"].as_str().unwrap().contains("small.webp"), large), (true, (exposed.len() > 1).then_some(true)), "{told:#}");
        }
        let item = look(&server, &format!("/r/prints/item/{id}")).await;
        assert!(link(text(&item), "Open the picture").contains("scan.png"), "{}", text(&item));
    }

    async fn links_to_a_page_are_shown_with_a_picture_of_it(server) {
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "gate", "secret_value": "open sesame"})).await.ok();
        let (namespace, publish) = films(&server, &some(1), page("films", "Old films", &["title"])).await;
        let address = async || {
            let shown = look(&server, "/r/films").await;
            let shown = text(&shown).split("property=\"og:image\"").nth(1).map(ToOwned::to_owned);
            let meta = shown?.split('>').next()?.to_owned();
            let url = meta.split("content=\"").nth(1)?.split('"').next()?.to_owned();
            Some(url.strip_prefix(&server.app.config().address()).unwrap_or(&url).to_owned())
        };
        let first = address().await.expect("a picture");
        let drawn = look(&server, &first).await;
        assert_eq!((drawn.status, header(&drawn, "content-type"), header(&drawn, "cache-control")), (200, "image/png", "public, max-age=3600"));
        let bytes = server.request("GET", &first).send().await.unwrap().bytes().await.unwrap();
        assert!(bytes.starts_with(b"\x89PNG"));
        // The header of a PNG tells its size.
        assert_eq!((&bytes[16..20], &bytes[20..24]), (&1200_u32.to_be_bytes()[..], &630_u32.to_be_bytes()[..]));
        let tag = header(&drawn, "etag").to_owned();
        assert_eq!(visit(&server, "GET", &first, &[("if-none-match", &tag)]).await.status, 304);
        // What the page says or looks like changes it, and its address with it.
        let mut seen = vec![(first, tag)];
        for display in [
            json!({"title": "New films", "inputs": [], "exposed_fields": ["title"]}),
            json!({"title": "New films", "inputs": [], "exposed_fields": ["title"], "theme": {"background_color": "#201a17", "text_color": "#ffffff"}}),
            json!({"title": "\u{6620}\u{753b} \u{1f3ac}", "inputs": [], "exposed_fields": ["title"], "description": "x".repeat(400)}),
        ] {
            server.call_in(&namespace, "PATCH", &publish, json!({"display_config": display})).await.ok();
            let next = address().await.expect("a picture");
            let drawn = look(&server, &next).await;
            assert_eq!(drawn.status, 200);
            let tag = header(&drawn, "etag").to_owned();
            assert!(seen.iter().all(|(address, old)| *address != next && *old != tag), "{next} {tag}");
            seen.push((next, tag));
        }
        // The owner's own picture comes first.
        let own = json!({"title": "Films", "inputs": [], "exposed_fields": ["title"], "seo": {"og_image_url": "https://a.example/own.png"}});
        server.call_in(&namespace, "PATCH", &publish, json!({"display_config": own})).await.ok();
        assert_eq!(address().await.as_deref(), Some("https://a.example/own.png"));
        // What is closed has none, with and without a name that was known.
        for closed in [json!({"password_secret_name": "gate"}), json!({"password_secret_name": "", "is_active": false})] {
            server.call_in(&namespace, "PATCH", &publish, closed).await.ok();
            let refused = look(&server, "/r/films/preview.png").await;
            assert_eq!((refused.status, text(&refused)), (404, "not found\n"));
        }
        assert_eq!(look(&server, "/r/nothing/preview.png").await.status, 404);
    }

    async fn an_old_name_leads_to_the_new_one_until_another_page_takes_it(server) {
        let (namespace, publish) = films(&server, &some(1), page("first-name", "Films", &["title"])).await;
        let rename = async |name: &str| server.call_in(&namespace, "POST", &publish, page(name, "Films", &["title"])).await;
        rename("second-name").await.ok();
        rename("third-name").await.ok();
        for old in ["first-name", "second-name"] {
            for (path, to) in [
                (format!("/r/{old}?query=a%20b&page=2"), "/r/third-name?query=a%20b&page=2"),
                (format!("/r/{old}/item/doc_1"), "/r/third-name/item/doc_1"),
                (format!("/r/{old}/embed"), "/r/third-name/embed"),
                (format!("/r/{old}/preview.png?v=1"), "/r/third-name/preview.png?v=1"),
                (format!("/v1/public/retrievers/{old}/config"), "/v1/public/retrievers/third-name/config"),
            ] {
                let led = look(&server, &path).await;
                assert_eq!((led.status, header(&led, "location"), header(&led, "cache-control")), (308, to, "no-cache"), "{path}");
            }
            let found = visit(&server, "POST", &format!("/v1/public/retrievers/{old}/execute"), &[]).await.ok();
            assert_eq!(found["documents"].as_array().unwrap().len(), 1, "programs search on");
        }
        // The map and the list tell the new name alone.
        let map = look(&server, "/sitemap.xml").await;
        assert!(text(&map).contains("third-name") && !text(&map).contains("first-name"));
        // Back to the first name: nothing is led in a circle.
        rename("first-name").await.ok();
        assert_eq!((look(&server, "/r/first-name").await.status, look(&server, "/r/third-name").await.status), (200, 308));
        // Another page takes an old name: it is that page's.
        let free = server.call_in(&namespace, "GET", &format!("{publish}/availability?name=second-name"), Value::Null).await.ok();
        assert_eq!(free["available"], true);
        let films = collection(&server, &namespace, "more", &[json!({"title": "Another"})]).await;
        let other = retriever(&server, &namespace, &films, vec![all()]).await;
        server.call_in(&namespace, "POST", &format!("/v1/retrievers/{other}/publish"), page("second-name", "Others", &["title"])).await.ok();
        let taken = look(&server, "/r/second-name").await;
        assert!(taken.status == 200 && text(&taken).contains("Others"));
        // A page that is closed, or gone, is closed under every name.
        server.call_in(&namespace, "PATCH", &publish, json!({"is_active": false})).await.ok();
        let closed = look(&server, "/r/third-name").await;
        assert!(closed.status == 404 && !closed.headers.contains_key("location"));
        server.call_in(&namespace, "DELETE", &publish, Value::Null).await.ok();
        assert_eq!(look(&server, "/r/third-name").await.status, 404);
        let left = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM page_names", vec![]).await.unwrap();
        assert_eq!(left, 0);
    }

    async fn a_page_shows_what_is_there_when_a_service_does_not_answer(server) {
        let silent = serve(Router::new().fallback(|| async { std::future::pending::<()>().await }), "127.0.0.2").await;
        let namespace = server.namespace("films").await;
        let body = json!({"collection_name": "films", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}});
        server.call_in(&namespace, "POST", "/v1/collections", body).await.ok();
        let document = json!({"title": "Nosferatu", "vectors": {"own": [1.0, 0.0, 0.0]}});
        server.call_in(&namespace, "POST", "/v1/collections/films/documents", document).await.ok();
        let search = stage("feature_search", json!({"searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 10}],
            "final_top_k": 10}));
        let ask = stage("api_call", json!({"url": format!("{silent}/x"), "allowed_domains": ["127.0.0.2"], "output_field": "facts"}));
        // Documents that were found are shown; those that nobody has searched are not.
        for (name, stages, most, status) in [("found-films", vec![search, ask.clone()], 3000, 200), ("lost-films", vec![all(), ask], 1000, 503)] {
            let body = json!({"retriever_name": name, "collection_identifiers": ["films"], "stages": stages, "budget_limits": {"max_time_ms": most}});
            let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
            let publish = format!("/v1/retrievers/{}/publish", made["retriever_id"].as_str().unwrap());
            server.call_in(&namespace, "POST", &publish, page(name, "Films", &["title"])).await.ok();
            let shown = look(&server, &format!("/r/{name}")).await;
            assert_eq!((shown.status, header(&shown, "cache-control")), (status, "no-store"), "{}", text(&shown));
            assert_eq!(text(&shown).contains("Nosferatu") && text(&shown).contains("data-partial"), status == 200, "{}", text(&shown));
            assert_eq!(text(&shown).contains("The search was not finished"), status == 503, "{}", text(&shown));
            assert!(!text(&shown).contains("127.0.0.2"), "that is the owner's to know");
            let answer = visit(&server, "POST", &format!("/v1/public/retrievers/{name}/execute"), &[]).await.ok();
            assert_eq!((&answer["status"], answer["warnings"].as_array().unwrap().len()), (&json!("completed_partial"), 1), "{answer:#}");
        }
    }

    async fn stages_of_a_search_are_told_where_the_owner_wants_it(server) {
        let mut body = page("films", "Films", &["title"]);
        body["display_config"]["extensions"] = json!({"progress": true});
        films(&server, &some(2), body).await;
        let told = visit(&server, "GET", "/r/films", &[("accept", "text/event-stream")]).await;
        assert_eq!((told.status, header(&told, "content-type")), (200, "text/event-stream"));
        let told = text(&told);
        let place = |words: &str| told.find(words).unwrap_or_else(|| panic!("no {words} in {told}"));
        assert!(place("\"found\":2") < place("event: page") && place("event: page") < place("Film number 1"), "{told}");
        let steps = &told[..place("event: page")];
        assert!(!steps.contains("attribute_filter"), "what runs is told by its place: {steps}");
        assert_eq!(header(&visit(&server, "GET", "/r/films", &[("accept", "text/html")]).await, "content-type"), "text/html; charset=utf-8");
    }

    async fn who_reads_nothing_of_what_is_told_holds_no_turn_of_others(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "Nosferatu"})]).await;
        // They tell more than what waits for a reader.
        let stages = (0..16).map(|number| {
            let mut stage = all();
            stage["stage_name"] = json!(format!("stage_{number}"));
            stage
        });
        let id = retriever(&server, &namespace, &films, stages.collect()).await;
        let path = format!("/v1/retrievers/{id}");
        let mut body = page("films", "Films", &["title"]);
        body["display_config"]["extensions"] = json!({"progress": true});
        server.call_in(&namespace, "POST", &format!("{path}/publish"), body).await.ok();
        // One turn is left.
        let mut held = Vec::new();
        while let Ok(turn) = server.app.turns.take().await {
            held.push(turn);
        }
        held.pop();
        let host = server.url.strip_prefix("http://").unwrap();
        let of_page = Request::get("/r/films").header("host", host).header("accept", "text/event-stream");
        let of_key = Request::post(format!("{path}/execute")).header("host", host).header("x-namespace", &namespace)
            .header("authorization", format!("Bearer {}", server.key)).header("content-type", "application/json");
        let of_key = of_key.body(Body::from(json!({"inputs": {}, "stream": true}).to_string()));
        let mut unread = Vec::new();
        for request in [of_page.body(Body::empty()).unwrap(), of_key.unwrap()] {
            let told = loupe_server::app::router(server.app.clone()).oneshot(request).await.unwrap();
            assert_eq!((told.status().as_u16(), told.headers()["content-type"].to_str().unwrap()), (200, "text/event-stream"));
            unread.push(told);
            let start = Instant::now();
            while server.app.turns.take().await.is_err() {
                assert!(start.elapsed() < Duration::from_secs(180), "the turn is still held");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        drop(unread);
    }

    async fn small_answers_are_paged_to_their_end(server) {
        let mut small = page("films", "Films", &["title"]);
        small["rate_limit_config"] = json!({"max_results_per_query": 4});
        films(&server, &some(10), small).await;
        let mut seen = std::collections::BTreeSet::new();
        let mut next = Some("/r/films".to_owned());
        for _ in 0..3 {
            let shown = look(&server, &next.take().expect("another page")).await;
            let shown = text(&shown);
            seen.extend(shown.split("data-document=\"").skip(1).map(|one| one.split('"').next().unwrap().to_owned()));
            next = shown.split('<').find(|tag| tag.contains("rel=\"next\"")).map(|tag| {
                let address = tag.split("href=\"").nth(1).unwrap().split('"').next().unwrap();
                address.replace("&amp;", "&")
            });
        }
        assert_eq!((seen.len(), next), (10, None));
    }

    async fn items_count_as_searches_and_a_full_minute_says_so(server) {
        let mut few = page("films", "Films", &["title"]);
        few["rate_limit_config"] = json!({"requests_per_minute": 2});
        films(&server, &some(1), few).await;
        // The beginning of a minute.
        server.app.clock().advance(60 - server.app.clock().now().timestamp().rem_euclid(60));
        server.app.clock().hold();
        let shown = look(&server, "/r/films").await;
        let document = text(&shown).split("data-document=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let item = format!("/r/films/item/{document}");
        assert_eq!(look(&server, &item).await.status, 200);
        let full = look(&server, &item).await;
        assert_eq!(full.status, 429);
        assert!(header(&full, "retry-after").parse::<u64>().unwrap() <= 60);
        assert!(!text(&full).contains("Film number"));
        server.app.clock().advance(60);
        assert_eq!(look(&server, &item).await.status, 200);
    }

    async fn search_engines_are_led_to_pages_that_want_them(server) {
        let (namespace, publish) = films(&server, &some(1), page("films", "Films", &["title"])).await;
        let listed = async || text(&look(&server, "/sitemap.xml").await).contains("/r/films<");
        assert!(listed().await);
        for (robots, is_listed) in [("NoIndex, follow", false), ("none", false), ("index, nofollow", true)] {
            let mut display = page("films", "Films", &["title"])["display_config"].clone();
            display["seo"] = json!({"robots": robots});
            server.call_in(&namespace, "PATCH", &publish, json!({"display_config": display})).await.ok();
            assert_eq!(listed().await, is_listed, "{robots}");
            let said = text(&look(&server, "/r/films").await).contains(&format!("content=\"{}\"", robots.to_lowercase()));
            assert!(said, "{robots}");
        }
        // What they read is made of the retriever where the owner says nothing else.
        let path = publish.strip_suffix("/publish").unwrap();
        server.call_in(&namespace, "PATCH", path, json!({"tags": ["silent films", "horror"]})).await.ok();
        for (seo, keywords) in [(Value::Null, "silent films, horror"), (json!({"keywords": ["old films"]}), "old films")] {
            let mut display = page("films", "Films", &["title"])["display_config"].clone();
            display["seo"] = seo;
            server.call_in(&namespace, "PATCH", &publish, json!({"display_config": display})).await.ok();
            let said = text(&look(&server, "/r/films").await).contains(&format!("content=\"{keywords}\""));
            assert!(said, "{keywords}");
        }
        // Pictures have signed addresses outside of `/r/`.
        let robots = look(&server, "/robots.txt").await;
        assert!(text(&robots).contains("\nAllow: /v1/blobs/\nDisallow: /v1/\n"), "{}", text(&robots));
    }
}
