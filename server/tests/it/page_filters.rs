//! What a page gets without being told: filters with their counts, a name, and words for search engines.

use serde_json::{Value, json};

use crate::{
    both,
    harness::Server,
    stages::{collection, retriever, stage},
};

/// What strangers find at an address.
async fn look(server: &Server, path: &str) -> Value {
    Server::send(server.request("GET", path)).await.ok()
}

async fn html(server: &Server, path: &str) -> String {
    let page = look(server, path).await;
    page.as_str().expect("a page").to_owned()
}

fn value(said: &str, count: u32) -> String {
    format!("<span>{said}</span><span class=\"n\">{count}</span>")
}

/// A namespace, and where a retriever over one film is published.
async fn unpublished(server: &Server) -> (String, String) {
    let namespace = server.namespace("films").await;
    let films = collection(server, &namespace, "films", &[json!({"title": "Faust"})]).await;
    let all = stage(
        "attribute_filter",
        json!({"field": "title", "operator": "exists"}),
    );
    let id = retriever(server, &namespace, &films, vec![all]).await;
    (namespace, format!("/v1/retrievers/{id}/publish"))
}

both! {
    async fn a_page_counts_its_filters_where_its_retriever_does_not(server) {
        let namespace = server.namespace("films").await;
        let film = |title: &str, kind: &str, year: i64, status: &str| json!({"title": title, "kind": kind, "year": year, "status": status});
        let films = [
            film("Asphalt", "crime", 1931, "public"), film("Spione", "crime", 1928, "public"),
            film("Nosferatu", "night", 1928, "public"), film("Unshown", "secret", 1928, "draft"),
        ];
        let films = collection(&server, &namespace, "films", &films).await;
        let open = stage("attribute_filter", json!({"field": "status", "operator": "eq", "value": "public"}));
        let id = retriever(&server, &namespace, &films, vec![open]).await;
        let path = format!("/v1/retrievers/{id}/publish");
        let mut display = json!({"title": "Films", "inputs": [], "exposed_fields": ["title", "kind", "year"], "components": {"show_filters": true}});
        let body = json!({"public_name": "films", "display_config": display});
        server.call_in(&namespace, "POST", &path, body).await.ok();
        // The fields that documents share values of, as the owner has them.
        let config = look(&server, "/v1/public/retrievers/films/config").await;
        assert_eq!(config["display_config"]["extensions"]["facets"], json!(["kind", "year"]));
        let page = html(&server, "/r/films").await;
        for one in [value("crime", 2), value("night", 1), value("1928", 2), value("1931", 1)] {
            assert!(page.contains(&one), "{one} in {page}");
        }
        // What no search shows is counted nowhere.
        assert!(page.contains("href=\"/r/films?f.kind=crime\"") && !page.contains("secret"), "{page}");
        // A number is found as one. The other filters count what is left, and the chosen one still has its other values.
        let page = html(&server, "/r/films?f.year=1928").await;
        assert!(page.contains("Spione") && page.contains("Nosferatu") && !page.contains("Asphalt"), "{page}");
        for one in [value("crime", 1), value("night", 1), value("1928", 2), value("1931", 1)] {
            assert!(page.contains(&one), "{one} in {page}");
        }
        for (named, is_there) in [(json!(["year"]), true), (json!([]), false)] {
            display["extensions"] = json!({"facets": named});
            server.call_in(&namespace, "PATCH", &path, json!({"display_config": display})).await.ok();
            let page = html(&server, "/r/films").await;
            assert_eq!((page.contains("f.year=1928"), page.contains("f.kind=")), (is_there, false), "{page}");
        }
    }

    async fn filters_count_what_was_found_where_something_was_asked(server) {
        let namespace = server.namespace("films").await;
        let body = json!({"collection_name": "films", "source": {"type": "direct_upsert"}, "feature_extractor": {
            "feature_extractor_name": "passthrough_extractor", "version": "v1",
            "parameters": {"vector_fields": [{"field": "embedding", "name": "own", "dimensions": 2}]}}});
        let films = server.call_in(&namespace, "POST", "/v1/collections", body).await.ok();
        let mut like = String::new();
        for (title, kind, year, vector) in [
            ("Asphalt", "crime", 1929, [1.0, 0.0]), ("M", "crime", 1931, [0.99, 0.1]), ("Spione", "spies", 1928, [0.98, 0.2]),
            ("Nosferatu", "night", 1922, [0.0, 1.0]), ("Faust", "night", 1926, [0.1, 0.99]), ("Vampyr", "crime", 1932, [0.0, 1.0]),
        ] {
            let film = json!({"title": title, "kind": kind, "year": year, "vectors": {"own": vector}});
            let made = server.call_in(&namespace, "POST", "/v1/collections/films/documents", film).await.ok();
            if like.is_empty() {
                like = made["document_id"].as_str().unwrap().to_owned();
            }
        }
        // One that counts by itself, over all that its filters let through, and one that does not.
        for (name, facets) in [("counted", json!([{"key": "kind"}])), ("uncounted", json!([]))] {
            let search = stage("feature_search", json!({"searches": [{"feature_uri": "own", "query": {"input_mode": "document", "document_ref": {"document_id": "{{INPUT.like}}"}},
                "top_k": 10, "min_score": 0.5, "on_empty": "random"}], "final_top_k": 10, "facets": facets}));
            let body = json!({"retriever_name": name, "collection_identifiers": [films["collection_id"]], "stages": [search],
                "input_schema": {"like": {"type": "text"}}});
            let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
            let input = json!({"field_name": "like", "field_schema": {"type": "text"}, "label": "Like"});
            let display = json!({"title": "Films", "inputs": [input], "exposed_fields": ["title", "kind", "year"], "components": {"show_filters": true},
                "extensions": {"facets": ["kind", "year"]}});
            let path = format!("/v1/retrievers/{}/publish", id["retriever_id"].as_str().unwrap());
            server.call_in(&namespace, "POST", &path, json!({"public_name": name, "display_config": display})).await.ok();
            let asked = format!("/r/{name}?like={like}");
            // Nothing is asked: all that there is. Then what is near, by its kinds and years.
            let page = html(&server, &format!("/r/{name}")).await;
            assert!(page.contains(&value("crime", 3)) && page.contains(&value("night", 2)), "{page}");
            let page = html(&server, &asked).await;
            for one in [value("crime", 1), value("spies", 1), value("1931", 1)] {
                assert!(page.contains(&one), "{one} in {page}");
            }
            assert!(!page.contains("f.kind=night") && !page.contains("f.year=1932"), "{page}");
            // The kind that is chosen leaves the others to be chosen, and of the years those that it has.
            let page = html(&server, &format!("{asked}&f.kind=spies")).await;
            assert!(page.contains("Spione") && !page.contains("Asphalt"), "{page}");
            for one in [value("crime", 1), value("spies", 1), value("1928", 1)] {
                assert!(page.contains(&one), "{one} in {page}");
            }
            assert!(!page.contains(&value("1931", 1)), "{page}");
            let page = html(&server, &format!("/r/{name}?f.kind=spies")).await;
            assert!(page.contains(&value("crime", 3)) && page.contains(&value("night", 2)), "{page}");
        }
    }

    async fn what_an_input_keeps_back_is_not_counted(server) {
        let namespace = server.namespace("orders").await;
        let order = |code: &str, kind: &str| json!({"title": kind, "kind": kind, "code": code});
        let orders = [order("a1", "tea"), order("a1", "tea"), order("b2", "coffee"), order("b2", "coffee")];
        let orders = collection(&server, &namespace, "orders", &orders).await;
        let own = stage("attribute_filter", json!({"field": "code", "operator": "eq", "value": "{{INPUT.code}}"}));
        let body = json!({"retriever_name": "own", "collection_identifiers": [orders], "stages": [own],
            "input_schema": {"code": {"type": "text", "required": true}}});
        let id = server.call_in(&namespace, "POST", "/v1/retrievers", body).await.ok();
        let path = format!("/v1/retrievers/{}/publish", id["retriever_id"].as_str().unwrap());
        let input = json!({"field_name": "code", "field_schema": {"type": "text"}, "label": "Code", "required": true});
        let display = json!({"title": "Orders", "inputs": [input], "exposed_fields": ["title", "kind"], "components": {"show_filters": true},
            "extensions": {"facets": ["kind"]}});
        server.call_in(&namespace, "POST", &path, json!({"public_name": "orders", "display_config": display})).await.ok();
        let page = html(&server, "/r/orders?code=a1").await;
        assert!(page.contains(&value("tea", 2)) && !page.contains("coffee"), "{page}");
        let page = html(&server, "/r/orders?code=guessed").await;
        assert!(!page.contains("tea") && !page.contains("coffee"), "{page}");
    }

    async fn a_page_that_says_little_is_named_and_described(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "Faust"})]).await;
        let all = || stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let first = retriever(&server, &namespace, &films, vec![all()]).await;
        let second = retriever(&server, &namespace, &films, vec![all()]).await;
        let publish = async |id: &str, body: Value| server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), body).await;
        let name = |made: Value| made["public_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        // A title of other letters gives no name of its own, and the second page of such a title gets another.
        let one = name(publish(&first, json!({"display_name": "映画", "tags": ["silent"]})).await.ok());
        assert_eq!(one, "search");
        let other = name(publish(&second, json!({"display_name": "映画", "include_metadata": false})).await.ok());
        assert!(other.starts_with("search-"), "{other}");
        assert_eq!(name(publish(&second, json!({"display_name": "映画"})).await.ok()), other);
        publish(&second, json!({"public_name": "search"})).await.error(409, "AlreadyExistsError");
        publish(&second, json!({"display_name": "映画", "include_metadata": false})).await.ok();
        for (page, text, keywords) in [(&one, "Search 映画: films", json!(["silent"])), (&other, "Search 映画", Value::Null)] {
            let config = look(&server, &format!("/v1/public/retrievers/{page}/config")).await;
            let seo = &config["display_config"]["seo"];
            assert_eq!((&seo["meta_title"], &seo["meta_description"], &seo["keywords"]), (&json!("映画"), &json!(text), &keywords), "{config:#}");
            let listed = look(&server, "/v1/public/retrievers/").await;
            let drawn = format!("/r/{page}/preview.png?v=");
            let mut listed = listed["results"].as_array().unwrap().iter();
            assert!(listed.any(|one| one["og_image_url"].as_str().is_some_and(|url| url.contains(&drawn))), "{drawn}");
            // A slash at the end leads to the same page.
            assert!(html(&server, &format!("/r/{page}/?q=x")).await.contains("映画"));
        }
    }

    async fn null_takes_away_what_a_page_need_not_have(server) {
        server.call("POST", "/v1/organizations/secrets", json!({"secret_name": "gate", "secret_value": "open sesame"})).await.ok();
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let display = json!({"title": "Films", "inputs": [], "exposed_fields": ["title"]});
        let mut body = json!({"public_name": "films", "display_config": display});
        for (member, value) in [
            ("category", json!("film")), ("tags", json!(["old"])), ("rate_limit_config", json!({"requests_per_minute": 3})),
            ("description", json!("Old ones.")), ("icon_base64", json!("iVBORw0KGgo=")), ("password_secret_name", json!("gate")),
        ] {
            body[member] = value;
        }
        let path = format!("/v1/retrievers/{id}/publish");
        let of = async |method: &str, body: Value| server.call_in(&namespace, method, &path, body).await.ok();
        of("POST", body).await;
        let has = |page: &Value, member: &str| page.get(member).is_some_and(|value| !value.is_null());
        let before = of("GET", Value::Null).await;
        assert!(["category", "description", "icon_base64"].iter().all(|member| has(&before, member)), "{before:#}");
        let cleared = of("PATCH", json!({"category": null, "tags": null, "rate_limit_config": null,
            "password_secret_name": null, "is_active": null, "display_config": null})).await;
        assert!(!has(&cleared, "category") && !has(&cleared["rate_limit_config"], "requests_per_minute"), "{cleared:#}");
        assert_eq!(cleared["tags"], json!([]));
        // A page has to look like something, and nobody opens one by leaving its password out.
        // What search engines are told of the tags goes with them.
        let mut display = before["display_config"].clone();
        assert_eq!(display["seo"].as_object_mut().unwrap().shift_remove("keywords"), Some(json!(["old"])));
        assert_eq!((&cleared["display_config"], &cleared["is_active"], &cleared["password_protected"]), (&display, &json!(true), &json!(true)));
        // Publishing again without a word of them keeps the others, and with `null` it does not.
        of("POST", json!({"public_name": "films"})).await;
        let kept = of("GET", Value::Null).await;
        assert_eq!((&kept["description"], &kept["icon_base64"]), (&before["description"], &before["icon_base64"]));
        of("POST", json!({"description": null, "icon_base64": null})).await;
        let bare = of("GET", Value::Null).await;
        assert!(!has(&bare, "description") && !has(&bare, "icon_base64"), "{bare:#}");
        assert_eq!((&bare["display_config"]["title"], bare["display_config"].get("description")), (&json!("Films"), None), "{bare:#}");
    }

    async fn publishing_again_keeps_what_it_does_not_say(server) {
        let (namespace, path) = unpublished(&server).await;
        let call = async |method: &str, body: Value| server.call_in(&namespace, method, &path, body).await.ok();
        let display = json!({"title": "Films", "inputs": [], "exposed_fields": ["title"], "extensions": {"embed": {"frame_ancestors": ["https://a.example"]}}});
        call("POST", json!({"public_name": "films", "description": "Old ones.", "category": "film", "tags": ["silent"], "include_metadata": false,
            "rate_limit_config": {"requests_per_minute": 900}, "display_config": display})).await;
        let before = call("GET", Value::Null).await;
        // Another name, and nothing else.
        call("POST", json!({"public_name": "old-films"})).await;
        let after = call("GET", Value::Null).await;
        assert_eq!((&after["public_name"], after.get("retriever_metadata")), (&json!("old-films"), None));
        for member in ["public_id", "description", "category", "tags", "rate_limit_config", "display_config", "created_at"] {
            assert_eq!(after[member], before[member], "{member}");
        }
        let frame = Server::send(server.request("GET", "/r/films/embed")).await;
        assert!(frame.headers["content-security-policy"].to_str().unwrap().contains("https://a.example"), "{:?}", frame.headers);
        // A title and a description, and what was made of them.
        call("POST", json!({"display_name": "Silent films", "description": "From before 1930."})).await;
        let after = call("GET", Value::Null).await;
        let (shown, seo) = (&after["display_config"], &after["display_config"]["seo"]);
        assert_eq!((&shown["title"], &shown["description"], &shown["extensions"]), (&json!("Silent films"), &json!("From before 1930."), &display["extensions"]));
        assert_eq!((&seo["meta_title"], &seo["meta_description"]), (&shown["title"], &shown["description"]));
        assert_eq!(after["public_name"], "old-films");
    }

    async fn publishing_again_opens_no_page_that_is_paused(server) {
        let (namespace, path) = unpublished(&server).await;
        let call = async |method: &str, body: Value| server.call_in(&namespace, method, &path, body).await.ok();
        let visited = async |name: &str| Server::send(server.request("GET", &format!("/r/{name}"))).await.status;
        call("POST", json!({"public_name": "films"})).await;
        call("PATCH", json!({"is_active": false})).await;
        call("POST", json!({"public_name": "old-films", "description": "From before 1930."})).await;
        assert_eq!(call("GET", Value::Null).await["is_active"], false);
        assert_eq!((visited("old-films").await, visited("films").await), (404, 404));
        call("PATCH", json!({"is_active": true})).await;
        assert_eq!(visited("old-films").await, 200);
        // One that was taken down is another page.
        call("PATCH", json!({"is_active": false})).await;
        call("DELETE", Value::Null).await;
        call("POST", json!({"public_name": "films"})).await;
        assert_eq!(visited("films").await, 200);
    }

    async fn numbers_of_formats_have_limits(server) {
        let namespace = server.namespace("films").await;
        let films = collection(&server, &namespace, "films", &[]).await;
        let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
        let id = retriever(&server, &namespace, &films, vec![all]).await;
        let path = format!("/v1/retrievers/{id}/publish");
        let with = |member: &str, number: i64| {
            let format = json!({"title": {"format": "text", "format_options": {member: number}}});
            json!({"public_name": "films", "display_config": {"title": "Films", "inputs": [], "exposed_fields": ["title"], "field_config": format}})
        };
        for (member, least) in [("truncate_chars", 1), ("width", 1), ("height", 1), ("decimals", 0), ("max_items", 1)] {
            let loc = ["body", "display_config", "field_config", "title", "format_options", member];
            let fault = server.call_in(&namespace, "POST", &path, with(member, least - 1)).await.invalid(&loc, "greater_than_equal");
            assert_eq!(fault["ctx"], json!({"ge": least}));
            server.call_in(&namespace, "POST", &path, with(member, least)).await.ok();
        }
        server.call_in(&namespace, "GET", &format!("{path}/availability"), Value::Null).await.invalid(&["query", "name"], "missing");
    }
}
