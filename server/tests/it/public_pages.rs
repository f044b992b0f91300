//! What strangers cannot find out of a public page, and what looking costs this server.

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

async fn ask(server: &Server, method: &str, path: &str, body: Value) -> Answer {
    let request = server.request(method, path);
    Server::send(if body.is_null() {
        request
    } else {
        request.json(&body)
    })
    .await
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
            ("page_size=2", &["third-page", "second-page"][..], 3), ("page_size=2&page=2", &["first-page"], 3), ("page=9000000000000000000&page_size=100", &[], 3),
            ("search=%C3%9CBERsicht", &["first-page"], 1), ("search=SECOND-", &["second-page"], 1), ("search=%25", &["second-page"], 1),
            ("search=s_", &["second-page"], 1), ("search=100", &["third-page", "second-page"], 2), ("search=closed", &[], 0), ("search=!", &[], 0),
        ] {
            let (names, total, _) = list(query).await;
            assert_eq!((names, total), (expected.iter().map(ToString::to_string).collect(), count), "{query}");
        }
        let long = "x".repeat(20_000);
        assert_eq!(list(&format!("search={long}")).await.1, 0);
        // A title that was changed is found by the new one.
        let renamed = json!({"display_config": page("", "Renamed", &["title"])["display_config"]});
        server.call_in(&namespace, "PATCH", &format!("/v1/retrievers/{}/publish", ids[1]), renamed).await.ok();
        assert_eq!((list("search=renamed").await.1, list("search=films_").await.1), (1, 0));

        let map = ask(&server, "GET", "/sitemap.xml", Value::Null).await;
        let text = map.body.as_str().unwrap();
        let day = server.app.clock().now().format("%Y-%m-%d").to_string();
        assert!(text.contains("/r/first-page</loc>") && text.contains(&format!("<lastmod>{day}</lastmod>")), "{text}");
        assert!(!text.contains("fourth-page"), "{text}");
        // Nobody reads it all the time.
        let mut refused = None;
        for _ in 0..31 {
            let answer = ask(&server, "GET", "/sitemap.xml", Value::Null).await;
            if answer.status == 429 {
                refused = Some(answer);
                break;
            }
        }
        assert!(refused.expect("a refusal").headers.contains_key("retry-after"));
        server.app.clock().advance(60);
        assert_eq!(ask(&server, "GET", "/sitemap.xml", Value::Null).await.status, 200);
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
