//! The description of the API is a committed file: a change of the interface is a visible change of that file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The names in an object.
fn names(value: &Value) -> impl Iterator<Item = &String> {
    value
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
}

/// What clients rely on: which operations there are, the statuses that they answer, the members of what goes to and fro.
fn promised(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in names(&document["paths"]) {
        for method in names(&document["paths"][path]) {
            for status in names(&document["paths"][path][method]["responses"]) {
                found.insert(format!("{method} {path} answers {status}"));
            }
        }
    }
    let schemas = &document["components"]["schemas"];
    for name in names(schemas) {
        let parts = ["allOf", "oneOf", "anyOf"].map(|kind| schemas[name][kind].as_array());
        let parts = parts.into_iter().flatten().flatten();
        for part in parts.chain([&schemas[name]]) {
            found.extend(names(&part["properties"]).map(|member| format!("{name} has {member}")));
        }
    }
    found
}

/// What a new description takes back of an old one, unless its version says that clients have to look.
fn taken_back(old: &Value, new: &Value) -> Vec<String> {
    if old["info"]["version"] != new["info"]["version"] {
        return Vec::new();
    }
    promised(old).difference(&promised(new)).cloned().collect()
}

#[test]
fn nothing_is_taken_back_unseen() {
    let document = |status: &str, member: &str, version: &str| {
        json!({
            "info": {"version": version},
            "paths": {"/v1/a": {"get": {"responses": {status: {}}}}},
            "components": {"schemas": {"A": {"allOf": [{"properties": {member: {}}}]}}},
        })
    };
    let old = document("200", "one", "1");
    assert_eq!(taken_back(&old, &old), Vec::<String>::new());
    assert_eq!(
        taken_back(&old, &document("200", "two", "1")),
        ["A has one"]
    );
    assert_eq!(
        taken_back(&old, &document("204", "one", "1")),
        ["get /v1/a answers 200"]
    );
    assert_eq!(
        taken_back(&old, &document("204", "two", "2")),
        Vec::<String>::new()
    );
    assert_eq!(taken_back(&Value::Null, &old), Vec::<String>::new());
}

/// what clients rely on is not taken back by the way. `UPDATE_SNAPSHOTS=breaking` does so on purpose.
#[test]
fn the_description_equals_the_committed_snapshot() {
    let now = loupe_server::openapi::printed();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");
    if let Some(update) = std::env::var_os("UPDATE_SNAPSHOTS") {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let committed = read(&std::fs::read_to_string(path).unwrap_or_default());
        let lost = taken_back(&committed, &read(&now));
        assert!(
            lost.is_empty() || update == "breaking",
            "clients rely on these; UPDATE_SNAPSHOTS=breaking takes them back: {lost:#?}"
        );
        std::fs::write(path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == now,
        "the description of the API changed: look at the difference, then run the tests with UPDATE_SNAPSHOTS=1 and commit openapi.json"
    );
}

/// A description that refers to what it does not hold generates no client.
#[test]
fn every_reference_resolves() {
    let document = loupe_server::openapi::document();
    let document = serde_json::to_value(document).unwrap();
    let mut places = vec![&document];
    let mut count = 0;
    while let Some(place) = places.pop() {
        if let Some(target) = place.get("$ref").and_then(|target| target.as_str()) {
            assert!(
                document.pointer(&target[1..]).is_some(),
                "{target} is not there"
            );
            count += 1;
        }
        match place {
            serde_json::Value::Object(members) => places.extend(members.values()),
            serde_json::Value::Array(items) => places.extend(items),
            _ => {}
        }
    }
    assert!(count > 500, "only {count} references");
}

/// What makes an answer another one is a parameter, also where it is a header.
#[test]
fn headers_that_are_read_are_told() {
    let document = serde_json::to_value(loupe_server::openapi::document()).unwrap();
    let mut told = std::collections::BTreeMap::<String, usize>::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.filter_map(|one| one["$ref"].as_str()?.rsplit('/').next());
            let names: BTreeSet<&str> = names.collect();
            for (status, name) in [("304", "If-None-Match"), ("206", "Range")] {
                let answers = operation["responses"].get(status).is_some();
                let is_of_apps = operation["servers"].is_array();
                assert!(
                    is_of_apps || answers == names.contains(name),
                    "{method} {path} {name}"
                );
            }
            for name in names {
                *told.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    assert_eq!(
        (told["X-Checksum-SHA256"], told["Content-Range"]),
        (1, 1),
        "{told:#?}"
    );
    assert!(told["If-None-Match"] >= 5, "{told:#?}");
}

/// Clients name their functions after the operations.
#[test]
fn every_operation_has_a_name_of_its_own() {
    let document = loupe_server::openapi::document();
    let document = serde_json::to_value(document).unwrap();
    let mut names = std::collections::BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(name) = operation["operationId"].as_str()
                && let Some(other) = names.insert(name.to_owned(), (method, path))
            {
                panic!("{method} {path} and {other:?} are both called {name}");
            }
        }
    }
    assert!(names.len() > 200, "only {} operations", names.len());
}
