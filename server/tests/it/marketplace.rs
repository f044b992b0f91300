//! The catalogue of published retrievers: what lists and pages tell, under the names of a marketplace.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server},
    locked::{cookie_of, plain, vault},
    stages::{collection, retriever, stage},
};

const CATALOG: &str = "/v1/marketplace/catalog";

async fn get(server: &Server, path: &str) -> Answer {
    plain(server, "GET", path, &[], Value::Null).await
}

/// Searches a listing with a key.
async fn search(server: &Server, name: &str, query: &str, headers: &[(&str, &str)]) -> Answer {
    let key = format!("Bearer {}", server.key);
    let headers = [&[("authorization", key.as_str())][..], headers].concat();
    let path = format!("{CATALOG}/{name}/execute{query}");
    plain(server, "POST", &path, &headers, json!({"inputs": {}})).await
}

both! {
    async fn the_catalogue_tells_what_pages_tell(server) {
        let namespace = server.namespace("shelves").await;
        let films = collection(&server, &namespace, "films", &[json!({"title": "Nosferatu", "salary": 12})]).await;
        for (name, title, category, tags) in [("films", "Old films", "film", json!(["silent", "old"])), ("songs", "Songs", "music", json!(["old"]))] {
            let all = stage("attribute_filter", json!({"field": "title", "operator": "exists"}));
            let id = retriever(&server, &namespace, &films, vec![all]).await;
            let page = json!({"public_name": name, "category": category, "tags": tags, "rate_limit_config": {"requests_per_hour": 2},
                "display_config": {"title": title, "inputs": [], "exposed_fields": ["title"]}});
            server.call_in(&namespace, "POST", &format!("/v1/retrievers/{id}/publish"), page).await.ok();
            server.app.clock().advance(1);
        }
        for (query, expected) in [
            ("", &["songs", "films"][..]), ("category=film", &["films"]), ("category=none", &[]), ("tags=old", &["songs", "films"]),
            ("tags=silent&tags=old", &["films"]), ("tags=old,silent", &["films"]), ("group=any", &[]), ("search=OLD", &["films"]),
            ("limit=1", &["songs"]), ("limit=1&skip=1", &["films"]), ("tags=old&skip=1", &["films"]), ("tags=old&limit=1", &["songs"]), ("skip=2", &[]),
        ] {
            let told = get(&server, &format!("{CATALOG}?{query}")).await.ok();
            let names: Vec<&str> = told.as_array().unwrap().iter().map(|one| one["public_name"].as_str().unwrap()).collect();
            assert_eq!(names, expected, "{query}");
        }
        for (query, name) in [("limit=101", "limit"), ("limit=0", "limit"), ("skip=-1", "skip")] {
            get(&server, &format!("{CATALOG}?{query}")).await.invalid(&["query", name], "range");
        }

        let one = get(&server, &format!("{CATALOG}/films")).await.ok();
        assert_eq!((&one["title"], &one["namespace_id"], &one["status"], &one["visibility"]), (&json!("Old films"), &json!(namespace), &json!("published"), &json!("listed")), "{one:#}");
        assert_eq!((&one["available_tiers"][0]["tier"], &one["available_tiers"][0]["price_per_month"]), (&json!("free"), &json!(0.0)));
        assert_eq!((&one["anonymous_rate_limit"]["requests_per_hour"], &one["example_request"]), (&json!(2), &json!({"inputs": {}})));
        let organization = server.call("GET", "/v1/organizations", Value::Null).await.ok();
        assert_eq!(one["internal_id"], organization["organization_id"]);
        for what in ["config", "template"] {
            let page = get(&server, &format!("/v1/public/retrievers/films/{what}")).await.ok();
            assert_eq!(get(&server, &format!("{CATALOG}/films/{what}")).await.ok(), page);
        }

        // Searched with a key, as the page: its fields, and its limit, which no hour that ends meanwhile renews.
        server.app.clock().hold();
        let path = format!("{CATALOG}/films/execute");
        plain(&server, "POST", &path, &[], json!({"inputs": {}})).await.error(401, "AuthenticationError");
        search(&server, "films", "?return_vectors=true", &[]).await.invalid(&["query", "return_vectors"], "not_enabled");
        let found = search(&server, "films", "", &[]).await.ok();
        assert_eq!(found["documents"][0]["title"], "Nosferatu");
        assert!(!found.to_string().contains("salary"), "{found:#}");
        let page = plain(&server, "POST", "/v1/public/retrievers/films/execute", &[], json!({"inputs": {}})).await;
        assert_eq!(page.status, 200);
        assert_eq!(search(&server, "films", "", &[]).await.status, 429);
        for path in ["unknown", "unknown/config", "unknown/template"] {
            get(&server, &format!("{CATALOG}/{path}")).await.error(404, "NotFoundError");
        }
    }

    async fn a_listing_with_a_password_is_in_no_list(server) {
        let (namespace, publish) = vault(&server, json!({"password_secret_name": "gate"})).await;
        assert_eq!(get(&server, CATALOG).await.ok(), json!([]));
        for what in ["", "/config", "/template"] {
            let answer = get(&server, &format!("{CATALOG}/vault{what}")).await;
            assert!(!answer.body.to_string().contains("treasure"), "{:#}", answer.body);
            assert_eq!(answer.error(401, "AuthenticationError")["error"]["code"], "password_required");
        }
        search(&server, "vault", "", &[]).await.error(401, "AuthenticationError");
        let verify = async |password: &str| plain(&server, "POST", &format!("{CATALOG}/vault/verify"), &[], json!({"password": password})).await;
        assert_eq!(verify("open").await.ok(), json!({"valid": false}));
        let verified = verify("open sesame").await;
        let cookie = cookie_of(&verified);
        assert_eq!(verified.ok(), json!({"valid": true}));
        let one = plain(&server, "GET", &format!("{CATALOG}/vault"), &[("cookie", &cookie)], Value::Null).await.ok();
        assert_eq!((&one["title"], &one["visibility"]), (&json!("Hidden treasure"), &json!("unlisted")), "{one:#}");
        let found = search(&server, "vault", "", &[("x-retriever-password", "open sesame")]).await.ok();
        assert_eq!(found["documents"][0]["title"], "Golden mask");

        server.call_in(&namespace, "PATCH", &publish, json!({"is_active": false})).await.ok();
        get(&server, &format!("{CATALOG}/vault")).await.error(404, "NotFoundError");
    }
}
