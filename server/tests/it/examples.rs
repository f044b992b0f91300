//! The examples of the description, sent one after the other: each works, as the description says.

use std::collections::{BTreeMap, BTreeSet};

use loupe_server::db::Json;
use serde_json::Value;

use crate::{
    both,
    harness::{Answer, Server, form},
};

/// The text with what answers gave; templates of retrievers stay.
fn filled(text: &str, saved: &BTreeMap<String, String>) -> String {
    saved.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{{name}}}}}"), value)
    })
}

/// The path of an example: what it says itself, else the id that was made last.
fn path(example: &Value, route: &str, saved: &BTreeMap<String, String>) -> String {
    let pieces = route.split('/').map(|piece| {
        let Some(name) = piece
            .strip_prefix('{')
            .and_then(|piece| piece.strip_suffix('}'))
        else {
            return piece.to_owned();
        };
        if let Some(said) = example["path"][name].as_str() {
            return filled(said, saved);
        }
        let id = name.replace("_identifier", "_id");
        saved
            .get(&id)
            .unwrap_or_else(|| panic!("nothing made a {id} before {example}"))
            .clone()
    });
    pieces.collect::<Vec<_>>().join("/")
}

async fn send(server: &Server, example: &Value, saved: &BTreeMap<String, String>) -> Answer {
    let (method, route) = example["operation"]
        .as_str()
        .unwrap()
        .split_once(' ')
        .unwrap();
    if let Some(address) = example["url"].as_str() {
        let text = example["text"].as_str().unwrap_or_default().to_owned();
        return Server::send(server.request(method, &filled(address, saved)).body(text)).await;
    }
    let query = example["query"].as_object().into_iter().flatten();
    let query = query.map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        format!("{name}={value}")
    });
    let query = query.collect::<Vec<_>>().join("&");
    let address = format!("{}?{query}", path(example, route, saved));
    let mut request = server
        .request(method, address.trim_end_matches('?'))
        .bearer_auth(&server.key);
    request = request.header("x-change-reason", format!("{method} {route}"));
    if let Some(namespace) = saved.get("namespace_id") {
        request = request.header("x-namespace", namespace);
    }
    if !example["body"].is_null() {
        let body: Value =
            serde_json::from_str(&filled(&example["body"].to_string(), saved)).unwrap();
        request = request.json(&body);
    }
    if let Some(fields) = example["form"].as_object() {
        let fields = fields.iter();
        let fields: Vec<(&str, &str)> = fields
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        request = form(request, &fields);
    }
    Server::send(request).await
}

/// The answer has the headers that the description tells of it, those aside that come only when something is amiss. When to come
/// back is not always known where a service is away.
fn check_headers(document: &Value, declared: &Value, answer: &Answer) {
    let declared = match declared["$ref"].as_str() {
        Some(name) => document.pointer(&name[1..]).unwrap(),
        None => declared,
    };
    let names = declared["headers"].as_object().unwrap().keys();
    let names: Vec<&str> = names.map(String::as_str).collect();
    assert!(names.contains(&"X-RateLimit-Limit"), "{declared:#}");
    for name in names.into_iter().filter(|name| {
        *name != "X-Namespace-Unresolved" && (*name != "Retry-After" || answer.status == 429)
    }) {
        let sent = answer.headers.get(name).and_then(|sent| sent.to_str().ok());
        assert!(
            sent.is_some_and(|sent| sent.parse::<i64>().is_ok()),
            "{name}: {sent:?}"
        );
    }
}

/// What records only where it finds something to change, which the story leaves open.
const SELDOM: [&str; 8] = [
    "DELETE /v1/apps/{app_id}/users/{user_id}",
    "DELETE /v1/buckets/{bucket_identifier}/batches/{batch_id}/documents",
    "DELETE /v1/collections/{collection_identifier}/documents/batch",
    "PATCH /v1/apps/{app_id}/users/{user_id}/role",
    "POST /v1/apps/{app_id}/domains/{domain}/verify",
    "POST /v1/buckets/{bucket_id}/syncs/{sync_config_id}/trigger",
    "POST /v1/collections/{collection_id}/sync-schema",
    "POST /v1/manifest/apply",
];

/// The description tells of the header with the reason where the audit log kept one, and nowhere else.
fn check_reasons(document: &Value, mut kept: BTreeSet<String>) {
    let mut told = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut names = parameters.filter_map(|one| one["$ref"].as_str());
            if names.any(|name| name.ends_with("/X-Change-Reason")) {
                told.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    kept.extend(SELDOM.map(ToOwned::to_owned));
    assert_eq!(told, kept);
}

/// Waits until no task waits or runs.
async fn settle(server: &Server) {
    let began = std::time::Instant::now();
    loop {
        // In one look: between two, one that waits may begin, and one that runs may leave another that waits.
        let tasks = server
            .call("GET", "/v1/tasks?limit=100", Value::Null)
            .await
            .ok();
        let mut tasks = tasks["results"].as_array().unwrap().iter();
        if !tasks.any(|task| task["status"] == "QUEUED" || task["status"] == "PROCESSING") {
            return;
        }
        assert!(began.elapsed().as_secs() < 180, "the tasks do not end");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

both! {
    async fn every_operation_has_an_example_that_works(server) {
        let document = loupe_server::openapi::document();
        let document: Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
        let story: Vec<Value> = serde_json::from_str(loupe_server::openapi::STORY).unwrap();
        // What answers on the hosts of apps is asked there, by the tests of apps.
        let own = document["paths"].as_object().unwrap().iter().filter(|(_, item)| item["servers"].is_null());
        let mut missing: BTreeSet<String> = own.flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().iter().filter(|(_, operation)| operation["responses"].is_object());
            methods.map(move |(method, _)| format!("{} {path}", method.to_uppercase()))
        }).collect();
        let mut saved = BTreeMap::new();
        for example in &story {
            let operation = example["operation"].as_str().unwrap();
            missing.remove(operation);
            let (method, route) = operation.split_once(' ').unwrap();
            let mut answer = send(&server, example, &saved).await;
            // Written behind the answer that told its id.
            while example["soon"] == true && answer.status == 404 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                answer = send(&server, example, &saved).await;
            }
            let declared = &document["paths"][route][method.to_lowercase()]["responses"][answer.status.to_string()];
            let expected = example["status"].as_u64().map_or(answer.status < 300, |status| status == u64::from(answer.status));
            assert!(expected && declared.is_object(), "{example}: {} {:#}", answer.status, answer.body);
            check_headers(&document, declared, &answer);
            for (name, place) in example["save"].as_object().into_iter().flatten() {
                let value = answer.body.pointer(place.as_str().unwrap()).and_then(Value::as_str);
                let value = value.unwrap_or_else(|| panic!("{example} answers no {place}: {:#}", answer.body));
                saved.insert(name.clone(), value.to_owned());
            }
            if example["settle"] == true {
                settle(&server).await;
            }
        }
        let reasons: Vec<(Json<Value>,)> = server.app.db().all("SELECT data FROM audit_log", vec![]).await.unwrap();
        let kept: BTreeSet<String> = reasons.iter().filter_map(|(record,)| record.0["reason"].as_str().map(ToOwned::to_owned)).collect();
        check_reasons(&document, kept);
        assert_eq!(missing, BTreeSet::new(), "operations without an example in server/src/openapi/examples.json");
    }
}
