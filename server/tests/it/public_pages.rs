//! What strangers cannot find out of a public page, and what looking costs this server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    apps::make,
    both,
    harness::{Answer, Database, Server, config},
    stages::{collection, retriever, stage},
};

/// Publishes a retriever under a name.
async fn publish(server: &Server, namespace: &str, id: &str, page: Value) {
    let path = format!("/v1/retrievers/{id}/publish");
    server.call_in(namespace, "POST", &path, page).await.ok();
}

fn page(name: &str, title: &str, exposed: &[&str]) -> Value {
    json!({"public_name": name, "display_config": {"title": title, "inputs": [], "exposed_fields": exposed}})
}

/// 210 more pages like the first.
const COPIES: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 210) \
    INSERT INTO published_retrievers (public_id, org_id, namespace_id, retriever_id, public_name, is_active, created_at, updated_at, data, title, is_locked, is_indexed) \
    SELECT public_id || CAST(i AS TEXT), org_id, namespace_id, retriever_id || CAST(i AS TEXT), public_name || CAST(i AS TEXT), is_active, created_at - i, updated_at, \
    data, title, is_locked, is_indexed FROM published_retrievers, n WHERE public_name = 'first-page'";

/// As a stranger asks.
pub async fn ask(server: &Server, method: &str, path: &str, body: Value) -> Answer {
    let request = server.request(method, path);
    Server::send(if body.is_null() {
        request
    } else {
        request.json(&body)
    })
    .await
}

/// The map of the site has each open page with its day, and is not read all the time.
async fn the_map_is_read_now_and_then(server: &Server) {
    let map = ask(server, "GET", "/sitemap.xml", Value::Null).await;
    let text = map.body.as_str().unwrap();
    // The day may have turned since.
    let day = |before: i64| {
        (server.app.clock().now() - chrono::Duration::seconds(before))
            .format("%Y-%m-%d")
            .to_string()
    };
    let dated = [0, 300]
        .iter()
        .any(|before| text.contains(&format!("<lastmod>{}</lastmod>", day(*before))));
    assert!(text.contains("/r/first-page</loc>") && dated, "{text}");
    assert!(!text.contains("fourth-page"), "{text}");
    // Nobody reads it all the time.
    server.app.clock().hold();
    let mut refused = None;
    for _ in 0..31 {
        let answer = ask(server, "GET", "/sitemap.xml", Value::Null).await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    assert!(
        refused
            .expect("a refusal")
            .headers
            .contains_key("retry-after")
    );
    server.app.clock().advance(60);
    assert_eq!(
        ask(server, "GET", "/sitemap.xml", Value::Null).await.status,
        200
    );
}

both! {
    async fn hidden_fields_are_told_by_no_filter_and_no_facet(server) {
        let namespace = server.namespace("films").await;
        let body = json!({"collection_name": "films", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 3}]}}});
        server.call_in(&namespace, "POST", "/v1/collections", body).await.ok();
        for (title, salary, kind) in [("M", 12, "crime"), ("Faust", 99, "night")] {
            let document = json!({"title": title, "salary": salary, "about": {"kind": kind}, "vectors": {"own": [1.0, 0.0, 0.0]}});
            server.call_in(&namespace, "POST", "/v1/collections/films/documents", document).await.ok();
        }
        let search = stage("feature_search", json!({"searches": [{"feature_uri": "own", "query": {"input_mode": "vector", "value": [1.0, 0.0, 0.0]}, "top_k": 10}],
            "final_top_k": 10, "facets": [{"key": "salary"}, {"key": "about.kind"}]}));
        let id = retriever(&server, &namespace, "films", vec![search]).await;
        publish(&server, &namespace, &id, page("films", "Films", &["title", "about"])).await;
        let tabs = json!([{"tab_id": "all", "label": "All", "retriever_id": id, "display_config": page("", "Films", &["title", "about"])["display_config"]}]);
        let app = make(&server, json!({"slug": "films", "meta": {"title": "Films"}, "tabs": tabs})).await;
        server.call("POST", &format!("/v1/apps/{app}/publish"), json!({})).await.ok();
        let by_page = async |filters: Value| ask(&server, "POST", "/v1/public/retrievers/films/execute", json!({"inputs": {}, "filters": filters})).await;
        let by_tab = async |filters: Value| ask(&server, "POST", "/v1/public/apps/films/search", json!({"tab_id": "all", "settings": {"filters": filters}})).await;
        for filters in [
            json!({"salary": 99}), json!({"field": "salary", "operator": "gt", "value": 50}),
            json!({"OR": [{"field": "title", "operator": "eq", "value": "M"}, {"NOT": [{"field": "salary", "operator": "lt", "value": 50}]}]}),
        ] {
            by_page(filters.clone()).await.invalid(&["body", "filters", "salary"], "invalid_filter");
            by_tab(filters).await.invalid(&["body", "filters", "salary"], "invalid_filter");
        }
        by_page(json!({"field": "titles", "operator": "eq", "value": 1})).await.invalid(&["body", "filters", "titles"], "invalid_filter");
        // Members that no page of results has are refused as the API itself refuses them.
        let stray = json!({"method": "offset", "cursor": "x"});
        let paged = json!({"inputs": {}, "pagination": stray});
        ask(&server, "POST", "/v1/public/retrievers/films/execute", paged).await.invalid(&["body", "pagination", "cursor"], "extra_forbidden");
        for (settings, place, kind) in [
            (json!({"pagination": stray}), &["body", "settings", "pagination", "cursor"][..], "extra_forbidden"),
            (json!({"limit": 501}), &["body", "settings", "limit"], "out_of_range"),
            (json!({"limit": 0}), &["body", "settings", "limit"], "out_of_range"),
            (json!({"stages": []}), &["body", "settings"], "value_error"),
            (json!({"filters": "title"}), &["body", "settings"], "value_error"),
        ] {
            let search = json!({"tab_id": "all", "settings": settings});
            ask(&server, "POST", "/v1/public/apps/films/search", search).await.invalid(place, kind);
        }
        // What is shown may be asked about, and is counted.
        for (filters, count) in [(json!({}), 2), (json!({"title": "M"}), 1), (json!({"field": "about.kind", "operator": "eq", "value": "night"}), 1)] {
            for answer in [by_page(filters.clone()).await.ok(), by_tab(filters.clone()).await.ok()] {
                assert_eq!(answer["documents"].as_array().unwrap().len(), count, "{filters}: {answer:#}");
                let keys: Vec<_> = answer["facets"].as_array().unwrap().iter().map(|facet| facet["key"].clone()).collect();
                assert_eq!(keys, [json!("about.kind")], "{answer:#}");
                assert!(!answer.to_string().contains("salary"), "{answer:#}");
            }
        }
    }

    async fn an_item_is_shown_as_long_as_the_search_shows_it(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let path = format!("/v1/collections/{films}/documents");
        let mut ids = Vec::new();
        for status in ["public", "draft"] {
            let made = server.call_in(&namespace, "POST", &path, json!({"title": status, "status": status})).await.ok();
            ids.push(made["document_id"].as_str().unwrap().to_owned());
        }
        let open = stage("attribute_filter", json!({"field": "status", "operator": "eq", "value": "public"}));
        let id = retriever(&server, &namespace, "films", vec![open]).await;
        publish(&server, &namespace, &id, page("films", "Films", &["title"])).await;
        let item = async |id: &str| ask(&server, "GET", &format!("/r/films/item/{id}"), Value::Null).await.status;
        assert_eq!((item(&ids[0]).await, item(&ids[1]).await), (200, 404));
        for (status, expected) in [("draft", 404), ("public", 200)] {
            server.call_in(&namespace, "PATCH", &format!("{path}/{}", ids[0]), json!({"status": status})).await.ok();
            assert_eq!(item(&ids[0]).await, expected, "{status}");
        }
    }

    async fn pages_of_results_are_as_long_as_the_owner_allows(server) {
        let namespace = server.namespace("films").await;
        let documents = ["M", "Faust", "Metropolis"].map(|title| json!({"title": title}));
        let films = collection(&server, &namespace, "films", &documents).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let mut body = page("short-films", "Films", &["title"]);
        body["rate_limit_config"] = json!({"max_results_per_query": 2});
        publish(&server, &namespace, &id, body).await;
        let shown = async |path: &str| ask(&server, "GET", path, Value::Null).await.body.to_string();
        let (first, second) = (shown("/r/short-films").await, shown("/r/short-films?page=2").await);
        let more = json!({"inputs": {}, "stream": true, "return_vectors": true, "expand": ["title"], "write_token": "w", "consistency": {"mode": "strong"}});
        let told = ask(&server, "POST", "/v1/public/retrievers/short-films/execute", more).await.ok();
        let left_out = ["stream", "expand", "return_vectors", "write_token", "consistency"].map(|member| format!("a page does without '{member}': it was left out"));
        assert_eq!((told["documents"].as_array().unwrap().len(), &told["warnings"]), (2, &json!(left_out)));
        let told = ask(&server, "POST", "/v1/public/retrievers/short-films/execute", json!({"inputs": {}})).await.ok();
        assert_eq!(told["warnings"], json!([]));
        let cards = |shown: &str| shown.matches("<article").count();
        assert_eq!((cards(&first), cards(&second)), (2, 1), "{first} {second}");
        assert!(first.contains("/r/short-films?page=2") && !first.contains("/r/short-films?page=3"), "{first}");
    }

    async fn a_page_asks_for_what_its_retriever_takes(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let body = json!({"retriever_name": "asked", "collection_identifiers": [films], "stages": [all], "input_schema": {"query": {"type": "text", "required": false}}});
        let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let path = format!("/v1/retrievers/{}/publish", made["retriever_id"].as_str().unwrap());
        let with = |name: &str| {
            let mut body = page("films", "Films", &["title"]);
            body["display_config"]["inputs"] = json!([{"field_name": name, "field_schema": {"type": "text"}, "label": "Words"}]);
            body
        };
        let loc = ["body", "display_config", "inputs", "0", "field_name"];
        server.call_in(&namespace, "POST", &path, with("words")).await.invalid(&loc, "value_error");
        server.call_in(&namespace, "POST", &path, with("query")).await.ok();
        let change = json!({"display_config": with("words")["display_config"]});
        server.call_in(&namespace, "PATCH", &path, change).await.invalid(&loc, "value_error");
    }

    async fn a_page_is_looked_at_before_it_is_published(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let path = format!("/v1/collections/{films}/documents");
        server.call_in(&namespace, "POST", &path, json!({"title": "Nosferatu", "salary": 12})).await.ok();
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, "films", vec![all]).await;
        publish(&server, &namespace, &id, page("films", "Old films", &["title"])).await;
        let path = format!("/v1/retrievers/{id}/publish");
        let preview = format!("{path}/preview");
        let mut body = page("films", "New films", &["title"]);
        body["display_config"]["theme"] = json!({"primary_color": "#b00020"});
        let made = server.call_in(&namespace, "POST", &preview, body.clone()).await.ok();
        let at = made["preview_url"].as_str().unwrap().strip_prefix(&server.app.config().address()).unwrap().to_owned();
        let looked = ask(&server, "GET", &at, Value::Null).await;
        let shown = looked.body.to_string();
        assert!(shown.contains("New films") && shown.contains("Nosferatu") && shown.contains("noindex"), "{shown}");
        assert!(!shown.contains("salary"));
        let name = at.rsplit('/').next().unwrap();
        let asked = json!({"inputs": {}});
        let answer = ask(&server, "POST", &format!("/v1/public/retrievers/{name}/execute"), asked).await.ok();
        assert_eq!(answer["documents"].as_array().unwrap().len(), 1);
        // Visitors find what was published, and no list tells of anything else.
        assert!(ask(&server, "GET", "/r/films", Value::Null).await.body.to_string().contains("Old films"));
        let listed = ask(&server, "GET", "/v1/public/retrievers/", Value::Null).await.ok();
        assert_eq!(listed["total_count"], 1);
        assert!(!ask(&server, "GET", "/sitemap.xml", Value::Null).await.body.to_string().contains("preview"));
        // It is bad as it would be when published, and no better.
        body["display_config"]["field_config"] = json!({"salary": {"format": "number"}});
        server.call_in(&namespace, "POST", &preview, body).await.invalid(&["body", "display_config", "field_config", "salary"], "value_error");
        server.app.clock().advance(3_601);
        assert_eq!(ask(&server, "GET", &at, Value::Null).await.status, 404);
        loupe_server::v1::publishing::sweep(&server.app).await.unwrap();
        let left = server.app.db().number("SELECT CAST(COUNT(*) AS BIGINT) FROM page_previews", vec![]).await.unwrap();
        assert_eq!(left, 0);
    }

    async fn a_template_is_names_of_fields_and_nothing_else(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "Nosferatu", "year": 1922, "salary": 12})]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let with = |template: Value| {
            let mut body = page("films", "Films", &["title", "year"]);
            body["display_config"]["template_type"] = json!("shop-window");
            body["display_config"]["extensions"] = json!({"template": template});
            body
        };
        let own = json!({"character": "media-search", "picture": {"place": "none"}, "card": {"heading": ["title"], "eyebrow": ["year"]}});
        publish(&server, &namespace, &id, with(own.clone())).await;
        let shown = ask(&server, "GET", "/r/films", Value::Null).await.body.to_string();
        assert!(shown.contains("t-media") && shown.contains("t-own") && shown.contains("slot eyebrow"), "{shown}");
        assert!(!shown.contains("salary"), "{shown}");
        // Others read it to build the same page.
        let told = ask(&server, "GET", "/v1/public/retrievers/films/template", Value::Null).await.ok();
        assert_eq!(told["display_config"]["extensions"]["template"], own, "{told:#}");
        let path = format!("/v1/retrievers/{id}/publish");
        for (template, inside) in [
            (json!({"card": {"line": ["salary"]}}), &["card", "line", "0"][..]),
            (json!({"card": {"line": ["year"], "facts": ["year"]}}), &["card", "facts"]),
            (json!({"css": "*{color:red}"}), &["css"]),
            (json!({"character": "<b>"}), &["character"]),
            (json!({"picture": {"ratio": "1/0"}}), &["picture", "ratio"]),
        ] {
            let loc = [&["body", "display_config", "extensions", "template"][..], inside].concat();
            let body = with(template);
            server.call_in(&namespace, "POST", &path, body.clone()).await.invalid(&loc, "value_error");
            server.call_in(&namespace, "POST", &format!("{path}/preview"), body.clone()).await.invalid(&loc, "value_error");
            let change = json!({"display_config": body["display_config"]});
            server.call_in(&namespace, "PATCH", &path, change).await.invalid(&loc, "value_error");
        }
        let kept = server.call_in(&namespace, "GET", &path, Value::Null).await.ok();
        assert_eq!(kept["display_config"]["extensions"]["template"], own, "{kept:#}");
    }

    async fn a_page_has_the_icon_it_was_published_with_and_says_what_its_owner_lets_it(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "M"})]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let icon = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let with = |own: Value, tells: bool| {
            let mut body = page("films", "Films", &["title"]);
            body["icon_base64"] = json!(icon);
            body["display_config"]["icon_base64"] = own;
            body["include_metadata"] = json!(tells);
            body
        };
        let config = async || ask(&server, "GET", "/v1/public/retrievers/films/config", Value::Null).await.ok()["display_config"].clone();
        publish(&server, &namespace, &id, with(Value::Null, true)).await;
        assert_eq!(config().await["icon_base64"], icon);
        let stages = async |place: &str| ask(&server, "GET", &format!("{place}/films/template"), Value::Null).await.ok()["stages"].clone();
        for place in ["/v1/public/retrievers", "/v1/marketplace/catalog"] {
            assert_eq!(stages(place).await[0]["config"]["stage_id"], "attribute_filter", "{place}");
        }
        let file = ask(&server, "GET", "/r/films/icon", Value::Null).await;
        assert_eq!((file.status, file.headers["content-type"].to_str().unwrap()), (200, "image/png"));
        let html = ask(&server, "GET", "/r/films", Value::Null).await;
        let html = html.body.as_str().unwrap();
        assert!(html.contains("/r/films/icon") && html.contains("How it works") && html.contains("attribute_filter"), "{html}");
        assert_eq!(ask(&server, "GET", "/v1/public/retrievers/", Value::Null).await.ok()["results"][0]["icon_base64"], icon);

        // What the page names stands before it. Who gives no metadata away tells nothing of the stages, nor after a change.
        let own = format!("data:image/png;base64,{icon}");
        publish(&server, &namespace, &id, with(json!(own), false)).await;
        let silent = config().await;
        assert_eq!((&silent["icon_base64"], silent.get("retriever_config")), (&json!(own), None));
        for place in ["/v1/public/retrievers", "/v1/marketplace/catalog"] {
            assert_eq!(stages(place).await, json!([]), "{place}");
        }
        let path = format!("/v1/retrievers/{id}/publish");
        server.call_in(&namespace, "PATCH", &path, json!({"display_config": page("", "Renamed", &["title"])["display_config"]})).await.ok();
        let renamed = config().await;
        assert_eq!((&renamed["title"], renamed.get("retriever_config")), (&json!("Renamed"), None));
        let html = ask(&server, "GET", "/r/films", Value::Null).await;
        assert!(!html.body.as_str().unwrap().contains("How it works"));
    }

    async fn what_nobody_searched_for_is_no_search(server) {
        let namespace = server.namespace("films").await;
        let documents = ["M", "Faust", "Metropolis"].map(|title| json!({"title": title}));
        let films = collection(&server, &namespace, "films", &documents).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let schema = json!({"like": {"type": "document_reference", "required": false}, "query": {"type": "text", "required": false}});
        let body = json!({"retriever_name": "films", "collection_identifiers": [films], "stages": [all], "input_schema": schema});
        let made = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let id = made["retriever_id"].as_str().unwrap();
        let mut five = page("films", "Films", &["title"]);
        five["rate_limit_config"] = json!({"requests_per_minute": 5, "max_results_per_query": 2});
        publish(&server, &namespace, id, five).await;
        // The beginning of a minute.
        server.app.clock().advance(60 - server.app.clock().now().timestamp().rem_euclid(60));
        server.app.clock().hold();
        let landing = ask(&server, "GET", "/r/films", Value::Null).await.ok();
        let document = landing.as_str().unwrap().split("data-document=\"").nth(1).unwrap().split('"').next().unwrap();
        for path in ["?query=silent", "?query=silent&page=2", &format!("/item/{document}?query=silent"), &format!("?like={document}")] {
            // What stands beside the item takes nothing: each of them is one of five.
            assert_eq!(ask(&server, "GET", &format!("/r/films{path}"), Value::Null).await.status, 200, "{path}");
        }
        assert_eq!(ask(&server, "GET", "/r/films", Value::Null).await.status, 429);
        server.app.clock().advance(60);

        // Two searches: one for words, one by a document. The history is written behind the answers, in their order.
        let figures = format!("/v1/analytics/retrievers/{id}/performance?source=page");
        let began = Instant::now();
        let sum = loop {
            let told = server.call_in(&namespace, "GET", &figures, Value::Null).await.ok();
            if told["summary"]["execution_count"] == 2 {
                break told["summary"].clone();
            }
            assert!(began.elapsed() < Duration::from_secs(180), "{told:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let queries = sum["top_queries"].as_array().unwrap();
        assert_eq!((queries.len(), &queries[0]["query"], &queries[0]["count"]), (1, &json!("silent"), &json!(1)), "{sum:#}");
        let path = format!("/v1/retrievers/{id}/executions/list");
        let history = server.call_in(&namespace, "POST", &path, json!({})).await.ok();
        assert_eq!(history["pagination"]["total"], 4, "{history:#}");
        for (typed, recent) in [("silent", json!(["silent"])), ("doc_", json!([]))] {
            let told = server.call_in(&namespace, "GET", &format!("/v1/retrievers/typeahead?q={typed}"), Value::Null).await.ok();
            assert_eq!(told["recent_searches"], recent, "{told:#}");
        }
    }

    async fn a_category_is_taken_away_by_an_empty_one(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let mut body = page("films", "Films", &["title"]);
        body["category"] = json!("film");
        publish(&server, &namespace, &id, body).await;
        let path = format!("/v1/retrievers/{id}/publish");
        let change = async |change: Value| server.call_in(&namespace, "PATCH", &path, change).await.ok();
        assert_eq!(change(json!({"tags": ["old"]})).await["category"], "film");
        assert_eq!(change(json!({"category": ""})).await.get("category").filter(|category| !category.is_null()), None);
    }

    async fn a_name_is_free_for_the_retriever_that_has_it(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let all = || stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let first = retriever(&server, &namespace, &films, vec![all()]).await;
        let second = retriever(&server, &namespace, &films, vec![all()]).await;
        publish(&server, &namespace, &first, page("films", "Films", &["title"])).await;
        let ask = async |id: &str, name: &str| server.call_in(&namespace, "GET", &format!("/v1/retrievers/{id}/publish/availability?name={name}"), Value::Null).await;
        let (one, other) = (first.as_str(), second.as_str());
        for (id, name, free) in [(one, "films", true), (other, "films", false), (other, "other", true), (other, "no", false), (other, "Films", false)] {
            assert_eq!(ask(id, name).await.ok(), json!({"name": name, "available": free}));
        }
        ask("ret_nowhere", "other").await.error(404, "NotFoundError");
        let listed = server.call_in(&namespace, "GET", "/v1/retrievers/published", Value::Null).await.ok();
        assert_eq!((&listed["limit"], &listed["total"]), (&json!(100), &json!(1)));
    }

    async fn the_list_is_narrowed_and_paged_by_the_database(server) {
        let namespace = server.namespace("many").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "gate", "secret_value": "open sesame"})).await.ok();
        let mut ids = Vec::new();
        for (name, title) in [("first-page", "Übersicht"), ("second-page", "100% films_"), ("third-page", "100 films"), ("fourth-page", "Closed")] {
            let id = retriever(&server, &namespace, &films, vec![stage("attribute_filter", json!({"field": "title", "operator": "exists"}))]).await;
            let mut page = page(name, title, &["title"]);
            if title == "Closed" {
                page["password_secret_name"] = json!("gate");
            }
            publish(&server, &namespace, &id, page).await;
            ids.push(id);
            server.app.clock().advance(1);
        }
        let list = async |query: &str| {
            let answer = ask(&server, "GET", &format!("/v1/public/retrievers/?{query}"), Value::Null).await.ok();
            let names: Vec<String> = answer["results"].as_array().unwrap().iter().map(|one| one["public_name"].as_str().unwrap().to_owned()).collect();
            (names, answer["total_count"].as_i64().unwrap(), answer)
        };
        let (names, total, answer) = list("").await;
        assert_eq!((names, total), (["third-page", "second-page", "first-page"].map(String::from).to_vec(), 3));
        assert_eq!(answer["stats"], json!({"total_active": 4, "total_password_protected": 1, "total_open": 3}));
        for (query, expected, count) in [
            ("page_size=2", &["third-page", "second-page"][..], 3), ("page_size=2&page=2", &["first-page"], 3), ("page=500&page_size=1000", &[], 3),
            ("search=%C3%9CBERsicht", &["first-page"], 1), ("search=SECOND-", &["second-page"], 1), ("search=%25", &["second-page"], 1),
            ("search=s_", &["second-page"], 1), ("search=100", &["third-page", "second-page"], 2), ("search=closed", &[], 0), ("search=!", &[], 0),
        ] {
            let (names, total, _) = list(query).await;
            assert_eq!((names, total), (expected.iter().map(ToString::to_string).collect(), count), "{query}");
        }
        let long = "x".repeat(201);
        assert_eq!(list(&format!("search={}", &long[1..])).await.1, 0);
        let wide = format!("search={long}");
        for (query, name, kind) in [
            ("page=501", "page", "range"), ("page=0", "page", "range"), ("page_size=1001", "page_size", "range"), (&wide, "search", "string_too_long"),
        ] {
            ask(&server, "GET", &format!("/v1/public/retrievers/?{query}"), Value::Null).await.invalid(&["query", name], kind);
        }
        // A title that was changed is found by the new one.
        let renamed = json!({"display_config": page("", "Renamed", &["title"])["display_config"]});
        server.call_in(&namespace, "PATCH", &format!("/v1/retrievers/{}/publish", ids[1]), renamed).await.ok();
        assert_eq!((list("search=renamed").await.1, list("search=films_").await.1), (1, 0));

        the_map_is_read_now_and_then(&server).await;

        // A long page is read in parts, of which none is lost and none told twice.
        server.app.db().write(|tx| Box::pin(async move { tx.run(COPIES, vec![]).await })).await.unwrap();
        for (query, length) in [("page_size=1000", 213), ("page_size=150", 150), ("page_size=150&page=2", 63), ("page_size=213", 213), ("page_size=100&page=3", 13)] {
            let (names, total, _) = list(query).await;
            assert_eq!((names.len(), total), (length, 213), "{query}");
        }
    }
}

/// Whoever has one address of version 6 has 2⁶⁴ of them: they are one guesser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_version_6_guesses_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(Database::Sqlite, &folder).await;
    config.trust_proxy = true;
    let server = Server::start_with(config, folder, None).await;
    let namespace = server.namespace("films").await;
    let films = collection(&server, &namespace, "films", &[]).await;
    let secret = json!({"secret_name": "gate", "secret_value": "open sesame"});
    server
        .call("POST", "/v1/organizations/secrets", secret)
        .await
        .ok();
    let all = stage(
        "attribute_filter",
        json!({"field": "title", "operator": "exists"}),
    );
    let id = retriever(&server, &namespace, &films, vec![all]).await;
    let mut vault = page("vault", "Vault", &["title"]);
    vault["password_secret_name"] = json!("gate");
    vault["rate_limit_config"] = json!({"enable_ip_limits": true, "max_requests_per_ip_hour": 3});
    publish(&server, &namespace, &id, vault).await;
    server.app.clock().hold();
    let from = |address: String, path: &str, body: Value| {
        let request = server.request("POST", &format!("/v1/public/retrievers/vault/{path}"));
        let request = request.header("x-retriever-password", "open sesame");
        Server::send(request.header("x-forwarded-for", address).json(&body))
    };
    let guess = |address: String| from(address, "verify", json!({"password": "wrong"}));
    for number in 0..5 {
        let answer = guess(format!("2001:db8:1:1:{number:x}::1")).await;
        assert_eq!(answer.ok()["valid"], false);
    }
    let refused = guess("2001:db8:1:1:ffff::1".into()).await;
    refused.error(429, "TooManyRequestsError");
    guess("2001:db8:1:2::1".into()).await.ok();

    // Searches too: three an hour.
    let search = |address: String| from(address, "execute", json!({"inputs": {}}));
    for number in 0..3 {
        search(format!("2001:db8:2:1::{number:x}")).await.ok();
    }
    search("2001:db8:2:1:9::9".into())
        .await
        .error(429, "TooManyRequestsError");
    search("2001:db8:2:2::9".into()).await.ok();
}
