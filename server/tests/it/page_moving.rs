//! A page that goes over to another retriever: who links to it, shows it or knows its password notices better results alone. And
//! a name that a page had, which leads to it and to nobody else.

use serde_json::{Value, json};

use crate::{
    both,
    harness::{Answer, Server, other_organization},
    locked::{PUBLIC, cookie_of, plain, vault},
};

/// A copy of the retriever that a path publishes: its id, and the path that publishes it.
async fn copy(server: &Server, namespace: &str, publish: &str, name: &str) -> (String, String) {
    let path = publish.strip_suffix("/publish").unwrap();
    let body = json!({"retriever_name": name});
    let made = server
        .call_in(namespace, "POST", &format!("{path}/clone"), body)
        .await
        .ok();
    let id = made["retriever_id"].as_str().unwrap().to_owned();
    let publish = format!("/v1/retrievers/{id}/publish");
    (id, publish)
}

/// Calls as another organization does.
async fn as_other(
    server: &Server,
    (key, namespace): (&str, &str),
    method: &str,
    path: &str,
    body: Value,
) -> Answer {
    let request = server.request(method, path).bearer_auth(key);
    let request = request.header("x-namespace", namespace);
    Server::send(if body.is_null() {
        request
    } else {
        request.json(&body)
    })
    .await
}

/// A retriever of another organization: its namespace, and the path that publishes it.
async fn elsewhere(server: &Server, key: &str) -> (String, String) {
    let body = json!({"namespace_name": "elsewhere"});
    let made = as_other(server, (key, ""), "POST", "/v1/namespaces", body).await;
    let namespace = made.ok()["namespace_id"].as_str().unwrap().to_owned();
    let body = json!({"collection_name": "things", "source": {"type": "direct_upsert"},
        "feature_extractor": {"feature_extractor_name": "passthrough_extractor", "version": "v1"}});
    let caller = (key, namespace.as_str());
    as_other(server, caller, "POST", "/v1/collections", body)
        .await
        .ok();
    let all = json!({"stage_name": "all", "config": {"stage_id": "attribute_filter", "parameters": {"field": "title", "operator": "exists"}}});
    let body =
        json!({"retriever_name": "all", "collection_identifiers": ["things"], "stages": [all]});
    let made = as_other(server, caller, "POST", "/v1/retrievers", body)
        .await
        .ok();
    let id = made["retriever_id"].as_str().unwrap();
    let publish = format!("/v1/retrievers/{id}/publish");
    (namespace, publish)
}

both! {
    async fn an_old_name_is_no_other_organizations_to_take(server) {
        let (namespace, publish) = vault(&server, json!({})).await;
        let rename = async |name: &str| server.call_in(&namespace, "POST", &publish, json!({"public_name": name})).await;
        rename("crypt").await.ok();
        let other = other_organization(&server).await;
        let (space, path) = elsewhere(&server, &other.key).await;
        let call = async |method: &str, path: &str, body: Value| as_other(&server, (&other.key, &space), method, path, body).await;
        let is_free = async |name: &str| call("GET", &format!("{path}/availability?name={name}"), Value::Null).await.ok()["available"].clone();
        assert_eq!((is_free("vault").await, is_free("crypt").await, is_free("unused").await), (json!(false), json!(false), json!(true)));
        let page = json!({"public_name": "vault", "display_config": {"title": "Phishing", "inputs": [], "exposed_fields": ["title"]}});
        call("POST", &path, page.clone()).await.error(409, "AlreadyExistsError");
        let led = plain(&server, "GET", "/r/vault", &[], Value::Null).await;
        assert!(led.body.to_string().contains("Hidden treasure") && !led.body.to_string().contains("Phishing"), "{:#}", led.body);
        // A name that nobody asked for gives way.
        let mut unnamed = page.clone();
        unnamed["public_name"] = Value::Null;
        unnamed["display_name"] = json!("Vault");
        call("POST", &path, unnamed).await.ok();
        let named = call("GET", &path, Value::Null).await.ok()["public_name"].clone();
        assert!(named.as_str().unwrap().starts_with("vault-"), "{named}");
        // The page goes back to it, and it is given up with the page.
        rename("vault").await.ok();
        assert_eq!(is_free("crypt").await, json!(false));
        server.call_in(&namespace, "DELETE", &publish, Value::Null).await.ok();
        assert_eq!((is_free("vault").await, is_free("crypt").await), (json!(true), json!(true)));
        call("POST", &path, page).await.ok();
    }

    async fn a_page_goes_over_to_another_retriever_whole(server) {
        let (namespace, publish) = vault(&server, json!({"public_name": "crypt", "password_secret_name": "gate"})).await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let named = json!({"public_name": "vault", "display_name": "Hidden treasure", "rate_limit_config": {"max_results_per_query": 7}, "tags": ["gold"]});
        call("POST", &publish, named).await.ok();
        let before = call("GET", &publish, Value::Null).await.ok();
        let verified = plain(&server, "POST", &format!("{PUBLIC}/verify"), &[], json!({"password": "open sesame"})).await;
        let cookie = cookie_of(&verified);
        let (id, other) = copy(&server, &namespace, &publish, "better").await;
        let to = |id: &str| json!({"retriever_id": id});
        let moved = call("POST", &format!("{publish}/move"), to(&id)).await.ok();
        // The same page, but of another retriever.
        assert_eq!(moved["retriever_id"], json!(id));
        for member in ["public_id", "public_name", "created_at", "rate_limit_config", "tags", "password_protected", "is_active"] {
            assert_eq!(moved[member], before[member], "{member}");
        }
        assert_eq!((call("GET", &publish, Value::Null).await.ok(), call("GET", &other, Value::Null).await.ok()), (Value::Null, moved));
        let listed = call("GET", "/v1/retrievers/published", Value::Null).await.ok();
        assert_eq!(listed["total"], 1);
        // It is open for who was let in, closed for others, and its old name leads to it.
        let look = async |path: &str, headers: &[(&str, &str)]| plain(&server, "GET", path, headers, Value::Null).await;
        let open = look("/r/crypt", &[("cookie", cookie.as_str())]).await.ok();
        assert!(open.as_str().unwrap().contains("Golden mask"));
        assert_eq!(look("/r/vault", &[]).await.status, 403);
        // What it is called and how it is opened is the other retriever's to change from now on.
        call("PATCH", &publish, json!({"is_active": true})).await.error(404, "NotFoundError");
        assert_eq!(call("PATCH", &other, json!({"password_secret_name": ""})).await.ok()["password_protected"], false);
        assert_eq!(look("/r/crypt", &[]).await.status, 200);
        // Again is nothing new; where there is no page, or one already, nothing moves.
        assert_eq!(call("POST", &format!("{other}/move"), to(&id)).await.ok()["retriever_id"], json!(id));
        call("POST", &format!("{publish}/move"), to(&id)).await.error(404, "NotFoundError");
        call("POST", &format!("{other}/move"), to("ret_nowhere")).await.error(404, "NotFoundError");
        call("POST", &format!("{other}/move"), json!({})).await.invalid(&["body", "retriever_id"], "missing");
        call("POST", &publish, json!({"public_name": "another", "display_name": "Another"})).await.ok();
        let (first, _) = publish.strip_prefix("/v1/retrievers/").unwrap().split_once('/').unwrap();
        call("POST", &format!("{other}/move"), to(first)).await.error(409, "AlreadyExistsError");
        // Gone, it leaves no name behind.
        call("DELETE", &other, Value::Null).await.ok();
        assert_eq!((look("/r/crypt", &[]).await.status, look("/r/another", &[]).await.status), (404, 200));
    }

    async fn a_page_stays_where_the_other_retriever_does_not_take_what_it_asks_for(server) {
        let (namespace, publish) = vault(&server, json!({})).await;
        let call = async |method: &str, path: &str, body: Value| server.call_in(&namespace, method, path, body).await;
        let asks = json!({"title": "Hidden treasure", "exposed_fields": ["title"], "inputs": [{"field_name": "words", "field_schema": {"type": "text"}, "label": "Words"}]});
        let mut retrievers = Vec::new();
        for (name, input) in [("by words", "words"), ("by colour", "colour")] {
            let stages = json!([{"stage_name": "all", "config": {"stage_id": "attribute_filter", "parameters": {"field": "title", "operator": "exists"}}}]);
            let body = json!({"retriever_name": name, "collection_identifiers": ["things"], "stages": stages, "input_schema": {input: {"type": "text"}}});
            let made = call("POST", "/v1/retrievers", body).await.ok();
            retrievers.push(made["retriever_id"].as_str().unwrap().to_owned());
        }
        call("DELETE", &publish, Value::Null).await.ok();
        let at = format!("/v1/retrievers/{}/publish", retrievers[0]);
        call("POST", &at, json!({"public_name": "vault", "display_config": asks})).await.ok();
        let loc = ["body", "display_config", "inputs", "0", "field_name"];
        call("POST", &format!("{at}/move"), json!({"retriever_id": retrievers[1]})).await.invalid(&loc, "value_error");
        assert_eq!(call("GET", &at, Value::Null).await.ok()["public_name"], "vault");
    }
}
