//! What answers on the hosts of apps, and on no other: their paths name a server of their own.

use std::collections::BTreeMap;

use loupe_wire::{AppEndUser, ErrorResponse, Value};
use serde_json::json;
use utoipa::openapi::{
    OpenApi, PathItem,
    security::{ApiKey, ApiKeyValue, SecurityScheme},
};

use super::made;

/// The cookie that says who is signed in to an app.
const SESSION: &str = "app_session";

/// Adds the operations of apps' own hosts.
pub(super) fn add(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    made::add::<AppEndUser>(components);
    made::add::<ErrorResponse>(components);
    let cookie = ApiKeyValue::with_description(
        "__Host-loupe_app",
        "The session of somebody who signed in to the app; without TLS the cookie is called loupe_app.",
    );
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(cookie));
    components.add_security_scheme(SESSION, cookie);
    let items: BTreeMap<String, PathItem> =
        serde_json::from_value(paths()).expect("a literal that the snapshot test reads");
    document.paths.paths.extend(items);
}

fn paths() -> Value {
    let servers = json!([{
        "url": "{app_url}",
        "description": "The origin of a hosted app",
        "variables": {"app_url": {"default": "http://reading-room.localhost:8420", "description": "The app's `url`"}},
    }]);
    let item = |operations: Value| {
        let mut item = operations;
        item["servers"] = servers.clone();
        item
    };
    let person = json!({"$ref": "#/components/schemas/AppEndUser"});
    json!({
        "/_auth/me": item(json!({"get": read(
            "app_me", "Who is signed in to the app.", &person, &["401"],
        )})),
        "/_auth/users": item(json!({"get": read(
            "app_users", "Everybody who signed in to the app, for those who did.", &json!({"type": "array", "items": person}), &["401", "403"],
        )})),
        "/_auth/sdk.js": item(json!({"get": {
            "tags": ["app_host"], "operationId": "app_script", "security": [],
            "summary": "The sign-in script, which every page of the app gets.",
            "responses": {"200": {"description": "The script", "content": {"application/javascript": {"schema": {"type": "string"}}}}},
        }})),
        "/api/{path}": item(calls()),
    })
}

fn errors(statuses: &[&str]) -> Value {
    let told = |status: &&str| {
        let description = match *status {
            "401" => "Nobody is signed in, or what was sent in place of it opens nothing",
            "403" => "The owner of the app does not let visitors do this",
            "404" => "There is no such path, or the owner of the app has not opened it",
            "503" => "What would prove who calls, such as the keys of tokens, cannot be read now",
            _ => "Too many requests: wait for Retry-After seconds",
        };
        let schema = json!({"$ref": "#/components/schemas/ErrorResponse"});
        let answer = json!({"description": description, "content": {"application/json": {"schema": schema}}});
        ((*status).to_owned(), answer)
    };
    Value::Object(statuses.iter().map(told).collect())
}

fn read(name: &str, summary: &str, schema: &Value, statuses: &[&str]) -> Value {
    let mut responses = errors(statuses);
    responses["200"] =
        json!({"description": summary, "content": {"application/json": {"schema": schema}}});
    json!({
        "tags": ["app_host"], "operationId": name, "summary": summary, "security": [{SESSION: []}], "responses": responses,
    })
}

/// What the owner of the app opened of `/v1`, with the owner's authority.
fn calls() -> Value {
    let summary = "The operation of the same path under /v1, as far as the owner of the app opened it, with the owner's authority.";
    let path = json!({
        "name": "path", "in": "path", "required": true, "schema": {"type": "string"},
        "description": "The rest of the path, such as retrievers/{retriever_id}/execute", "example": "retrievers/list",
    });
    let methods = ["get", "post", "put", "patch", "delete"].map(|method| {
        let mut responses = errors(&["401", "403", "404", "429", "503"]);
        responses["200"] = json!({"description": "The answer of the operation", "content": {"application/json": {}}});
        let mut operation = json!({
            "tags": ["app_host"], "operationId": format!("app_api_{method}"), "summary": summary, "parameters": [path],
            // Without sign-in nobody needs a session; some apps are called with tokens or keys instead.
            "security": [{}, {SESSION: []}, {"bearer": []}], "responses": responses,
        });
        if method == "post" {
            operation["parameters"] =
                json!([path, {"$ref": "#/components/parameters/Idempotency-Key"}]);
        }
        if matches!(method, "post" | "put" | "patch") {
            operation["requestBody"] = json!({"content": {"application/json": {}}});
        }
        (method.to_owned(), operation)
    });
    Value::Object(methods.into_iter().collect())
}
