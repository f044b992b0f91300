//! What visitors of an app reach of the API.

use serde_json::json;

use super::{at, host};
use crate::harness::Server;

/// Reading and searching, with the owner's authority, whatever the visitor sends along.
pub async fn visitors_read_and_search(server: &Server, namespace: &str, id: &str) {
    let ask = |method: &str, path: &str| at(server, "things", method, path);
    let execute = format!("/api/retrievers/{id}/execute");
    let found = Server::send(ask("POST", &execute).json(&json!({"inputs": {}}))).await;
    assert_eq!(found.headers["cache-control"], "private, no-store");
    assert_eq!(found.ok()["documents"][0]["title"], "one");
    let spoofed = ask("POST", &execute)
        .bearer_auth("loupe_sk_wrong")
        .header("x-namespace", "ns_other")
        .json(&json!({"inputs": {}}));
    assert_eq!(
        Server::send(spoofed).await.ok()["documents"][0]["title"],
        "one"
    );
    let list = Server::send(ask("GET", "/api/v1/collections/things/documents"))
        .await
        .ok();
    assert_eq!(list["results"][0]["title"], "one");
    let page = json!({"public_name": "things", "display_name": "Things"});
    server
        .call_in(
            namespace,
            "POST",
            &format!("/v1/retrievers/{id}/publish"),
            page,
        )
        .await
        .ok();
    let catalogue = Server::send(ask("GET", "/api/marketplace/catalog"))
        .await
        .ok();
    assert_eq!(
        (
            catalogue.as_array().unwrap().len(),
            &catalogue[0]["public_name"]
        ),
        (1, &json!("things"))
    );
    let found = Server::send(
        ask("POST", "/api/marketplace/catalog/things/execute").json(&json!({"inputs": {}})),
    )
    .await
    .ok();
    assert_eq!(found["documents"][0]["title"], "one");
    let streamed =
        Server::send(ask("POST", &execute).json(&json!({"inputs": {}, "stream": true}))).await;
    assert!(
        streamed.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/event-stream"),
        "{:?}",
        streamed.headers
    );
}

/// What visitors may call where the owner says nothing (S-45). It is written down again here: what is added there is added knowingly.
const OPEN: [&str; 20] = [
    "GET /v1/retrievers",
    "POST /v1/retrievers/list",
    "GET /v1/retrievers/{retriever_id}",
    "POST /v1/retrievers/{retriever_id}/execute",
    "GET /v1/collections",
    "POST /v1/collections/list",
    "GET /v1/collections/{collection_identifier}",
    "GET /v1/collections/{collection_identifier}/documents",
    "POST /v1/collections/{collection_identifier}/documents/list",
    "GET /v1/collections/{collection_identifier}/documents/{document_id}",
    "POST /v1/collections/{collection_identifier}/documents/aggregate",
    "POST /v1/collections/{collection_identifier}/documents/distinct",
    "GET /v1/documents/{document_id}",
    "POST /v1/documents/batch-get",
    "POST /v1/documents/list",
    "GET /v1/marketplace/catalog",
    "GET /v1/marketplace/catalog/{public_name}",
    "GET /v1/marketplace/catalog/{public_name}/config",
    "GET /v1/marketplace/catalog/{public_name}/template",
    "POST /v1/marketplace/catalog/{public_name}/execute",
];

/// Method and path of an operation at `/api` of an app, about this retriever and the collection `things`.
pub fn asked(operation: &'static str, id: &str) -> (&'static str, String) {
    let (method, path) = operation.split_once(' ').unwrap();
    let path = path
        .strip_prefix("/v1")
        .unwrap()
        .replace("{retriever_id}", id)
        .replace("{*key}", "k")
        .replace("{collection_identifier}", "things");
    let names = path.split('/');
    let names = names.map(|name| if name.starts_with('{') { "x" } else { name });
    let path = names.collect::<Vec<_>>().join("/");
    (method, format!("/api{path}"))
}

/// Everything else is not there, whatever the method.
pub async fn the_rest_is_not_there(server: &Server, id: &str) {
    let (mut open, mut refused) = (0, 0);
    for row in loupe_server::auth::table::TABLE {
        let (method, path) = asked(row.operation, id);
        let answer = loop {
            let request = at(server, "things", method, &path).bearer_auth(&server.key);
            // Written as JSON, so that nothing but the list refuses it.
            let request = match method {
                "GET" => request,
                _ => request.json(&json!({})),
            };
            let answer = Server::send(request).await;
            if answer.status != 429 {
                break answer;
            }
            server.app.clock().advance(60);
        };
        let no_such_path = answer.body["error"]["details"]["resource"] == "path";
        if OPEN.contains(&row.operation) {
            assert!(!no_such_path, "{} is refused", row.operation);
            open += 1;
        } else {
            let told = (answer.status, no_such_path);
            assert_eq!(told, (404, true), "{}: {:#}", row.operation, answer.body);
            refused += 1;
        }
    }
    assert_eq!(open, OPEN.len());
    assert!(refused > 200, "{refused}");
}

pub async fn other_spellings_lead_nowhere(server: &Server) {
    for path in [
        "/api",
        "/api/",
        "/api/../v1/me",
        "/api//retrievers",
        "/api/retrievers/%2e%2e/me",
        "/api/organizations/users",
        "/api/me",
    ] {
        let answer = Server::send(at(server, "things", "GET", path)).await;
        assert_ne!(answer.status, 200, "{path}: {:#}", answer.body);
        assert!(!answer.body.to_string().contains("org_"), "{path}");
    }
}

/// Rules open what they name, and never keys or pages.
pub async fn rules_open_what_they_name(server: &Server, app: &str, id: &str) {
    let ask = |method: &str, path: &str| at(server, "things", method, path);
    let publish = format!("/api/retrievers/{id}/publish");
    let rules = json!({"api_allow": [{"methods": ["POST"], "pattern": "/collections/*/documents"}, {"pattern": "/retrievers/**"}, {"pattern": "/organizations/**"}]});
    server
        .call(
            "PATCH",
            &format!("/v1/apps/{app}"),
            json!({"build_config": rules}),
        )
        .await
        .ok();
    let written = ask("POST", "/api/collections/things/documents")
        .json(&json!({"title": "two", "vectors": {"own": [0.0, 1.0, 0.0]}}));
    Server::send(written).await.ok();
    assert_eq!(
        Server::send(ask("GET", "/api/collections/things/documents"))
            .await
            .status,
        404
    );
    for (method, path) in [
        ("POST", format!("/api/retrievers/{id}/api-keys")),
        ("POST", publish),
        ("GET", "/api/organizations/users".into()),
    ] {
        let answer = Server::send(ask(method, &path).json(&json!({"name": "mine"}))).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

/// A page elsewhere can send forms and text, and gets nothing done.
pub async fn other_pages_get_nothing_done(server: &Server, id: &str) {
    let ask = |method: &str, path: &str| at(server, "things", method, path);
    let execute = format!("/api/retrievers/{id}/execute");
    let form = ask("POST", "/api/collections/things/documents")
        .header("content-type", "text/plain")
        .body(r#"{"title": "three"}"#);
    assert_eq!(Server::send(form).await.status, 400);
    for origin in [
        "https://evil.example",
        "null",
        "http://things.localhost.evil.example",
    ] {
        let crossed = ask("POST", &execute)
            .header("origin", origin)
            .json(&json!({"inputs": {}}));
        Server::send(crossed).await.error(403, "ForbiddenError");
    }
    let own = ask("POST", &execute)
        .header("origin", format!("http://{}", host(server, "things")))
        .json(&json!({"inputs": {}}));
    assert_eq!(Server::send(own).await.status, 200);
}
